/* Reasons and budgets. A further cancel only makes the reason stronger and the budget tighter. */
#ifndef EBB__REASON_H
#define EBB__REASON_H

#include "kernel/rt.h"

/* The cleanup budget of a request of this severity that begins now. */
ebb_budget ebb__cleanup_budget(const ebb_runtime *rt, uint8_t severity, uint8_t priority);

/* For a cleanup budget from now to `deadline`: when tasks are forced, so that 20 % remains for finalizers. The
 * remainder is a multiple of 1024 ns. */
uint64_t ebb__force_at(uint64_t now, uint64_t deadline);

/* Limits a budget by a deadline that is still to come: it ends no later than the budget that this deadline would
 * start. So a polite cancel can't extend the time. */
void ebb__cap_by_deadline(const ebb_runtime *rt, uint64_t own, uint64_t *deadline, uint64_t *force_at);

/* ebb_region_causes; `out` is NULL in a replay, which needs only the traced events. */
ebb_status ebb__cause_chain(ebb_cx *cx, ebb_region region, ebb_region_cause *out, uint32_t room, uint32_t *n,
                            bool *truncated);

#endif
