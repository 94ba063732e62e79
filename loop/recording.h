/* Recording a loop to files: its trace and its journal, from the first event.
 *
 * The runtime records into rings of blocks. After each turn the loop hands the full blocks to a thread, which writes
 * them: a slow disk never delays the loop. While the thread is behind, blocks stay in the ring; when that is full, the
 * recorder counts what is lost. */
#ifndef EBB__LOOP_RECORDING_H
#define EBB__LOOP_RECORDING_H

#include "loop/loop.h"

/* Opens the files that the options name, and sets what the runtime has to record. *out NULL: none. */
ebb_status ebb__recording_new(const ebb_loop_opts *opts, ebb_runtime_opts *rt, ebb__recording **out);
/* Hands over the full blocks. */
void ebb__recording_turn(ebb__recording *r, ebb_runtime *rt);
/* Writes what is left, closes the files and frees the record. rt NULL: there is no runtime. NULL is allowed. */
void ebb__recording_end(ebb__recording *r, ebb_runtime *rt);

#endif
