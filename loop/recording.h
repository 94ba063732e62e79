/* Recording a loop to files: its trace and its journal, from the first event.
 *
 * The runtime records into rings of blocks. After each turn the loop hands the full blocks to a thread, which writes
 * them: a slow disk never delays the loop. While the thread is behind, blocks stay in the ring; when that is full, the
 * recorder counts what is lost. A block that is not full is handed over when the runtime has recorded nothing more for
 * QUIET_NS: who looks at the file of a service that hangs finds there what it did last.
 *
 * A file is one recording's: it is locked as long as that lasts. */
#ifndef EBB__LOOP_RECORDING_H
#define EBB__LOOP_RECORDING_H

#include "loop/loop.h"

/* Opens the files that the options name, and sets what the runtime has to record. *out NULL: none. */
ebb_status ebb__recording_new(const ebb_loop_opts *opts, ebb_runtime_opts *rt, ebb__recording **out);
/* Hands over the full blocks, or after a while all. */
void ebb__recording_turn(ebb__recording *r, ebb_runtime *rt);
/* When a turn is needed at the latest. EBB_FOREVER: nothing waits to be handed over. */
uint64_t ebb__recording_due(const ebb__recording *r);
/* Writes what is left, closes the files and frees the record. rt NULL: there is no runtime. NULL is allowed. */
void ebb__recording_end(ebb__recording *r, ebb_runtime *rt);

#endif
