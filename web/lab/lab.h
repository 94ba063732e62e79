/* Exports of ebb-lab.wasm and ebb-mutant.wasm besides those of web/wasm/abi.h: what a fixture needs to be run
 * as cli/fixture_run.c runs it. No package has them.
 *
 * An instance runs one script, after `start`, and is thrown away with it. "Fills" is what web/wasm/abi.h says;
 * an address of a text is good as long as the instance. */
#ifndef EBB__WEB_LAB_H
#define EBB__WEB_LAB_H

#include "web/wasm/abi.h"

/* The runtime has been started with a trace. Seed 0: first come, first served. EBB_ERR_INVALID: it has not, or
 * there is a script already; EBB_ERR_NOMEM. */
int32_t EBB__EXPORT(lab_begin)(uint64_t seed);

/* As ebb__script_line. The scratch has the message of EBB_ERR_SYNTAX, up to a 0. */
int32_t EBB__EXPORT(lab_line)(const char *line, size_t n);
int32_t EBB__EXPORT(lab_result)(void);
/* What the last line read, if it was a `chain`. Fills: links (i32), then for each: region (i64), kind,
 * severity (i32), message (48 bytes). */
void EBB__EXPORT(lab_chain)(void);
/* What the script has made, from 0. Fills: id (i64), ebb__thing_kind, how often its abort hook has run, address
 * of its name (i32). EBB_ERR_INVALID: there are no more. */
int32_t EBB__EXPORT(lab_thing)(uint32_t i);

/* Hands over what was traced since the last time, to `bytes`, and shows it to the oracles and the fingerprint.
 * EBB_ERR_LIMIT: the trace is longer than TRACE_MOST. */
enum { TRACE_MOST = 1 << 20 };
int32_t EBB__EXPORT(lab_take)(void);
/* Of all that was taken. Fills: the high and the low half (i64). */
int32_t EBB__EXPORT(lab_fingerprint)(void);
/* The parity fingerprint of any whole trace, of this instance or from elsewhere. Fills as lab_fingerprint. */
int32_t EBB__EXPORT(lab_parity)(const void *trace, size_t n);
/* At the end nothing may be left. */
int32_t EBB__EXPORT(lab_check_end)(void);
/* The first one. Fills: decision_seq of its event (i64, 0 at the end of the run), addresses of the names of the
 * oracle and of the event and of what was expected (i32 each). EBB_ERR_INVALID: there is none. */
int32_t EBB__EXPORT(lab_violation)(void);

#endif
