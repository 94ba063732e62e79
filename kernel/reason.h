/* Reasons and budgets: the two things that a cancellation only ever makes stronger and tighter. */
#ifndef EBB__REASON_H
#define EBB__REASON_H

#include "kernel/rt.h"

/* The cleanup budget that a request of this severity gives, from now on. */
ebb_budget ebb__cleanup_budget(const ebb_runtime *rt, uint8_t severity, uint8_t priority);

/* Of a cleanup budget that starts now and ends at `deadline`: when tasks are forced, so that 20 % is
 * left for finalizers. In whole 1024 ns before the deadline. */
uint64_t ebb__force_at(uint64_t now, uint64_t deadline);

/* A budget that starts while a deadline of its own is still to come ends no later than the one that this
 * deadline would have given: a polite cancel can't win time. */
void ebb__cap_by_deadline(const ebb_runtime *rt, uint64_t own, uint64_t *deadline, uint64_t *force_at);

/* ebb_region_causes; `out` may be NULL for a replay, which only wants what is traced. */
ebb_status ebb__cause_chain(ebb_cx *cx, ebb_region region, ebb_region_cause *out, uint32_t room, uint32_t *n,
                            bool *truncated);

#endif
