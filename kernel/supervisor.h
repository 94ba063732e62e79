/* A supervisor watches over how a region ends. It is a task in a region of its own below that one, the *drain*:
 * a cleanup scope from the start, which closing and cancelling from above do not reach, but force does. It
 * is woken
 *   - when a verb has reached its region,
 *   - when nothing but the drain is left in a region that is to close,
 *   - when nothing but itself is left in an drain that is to close,
 *   - at its alarm.
 * Force does not abandon it: it has to say how its region ends. It runs in the timed lane, before
 * everybody else there: under load too it is in time. Its region can't finalize before the drain has
 * closed, so before the supervisor has returned.
 *
 * An drain may have an *operators' region*: for tasks that serve an operator while all the rest ends. Close,
 * cancel and force from above do not reach it, and nobody waits for it, until it is released. Then it has to
 * end as all the rest. */
#ifndef EBB__SUPERVISOR_H
#define EBB__SUPERVISOR_H

#include "kernel/rt.h"

/* For the end of a supervisor. */
void ebb__supervisor_over(ebb_runtime *rt, ebb__region *drain);

static inline bool ebb__is_drain_region(const ebb__region *r) {
    return (r->flags & (R_SUPERVISED | R_CLEANUP)) == (R_SUPERVISED | R_CLEANUP);
}

static inline bool ebb__is_supervisor(const ebb_runtime *rt, const ebb__task *t) {
    const ebb__region *r = ebb__region_at(rt, t->region);
    return ebb__is_drain_region(r) && ebb__cold_of(r)->supervisor == t->index;
}

/* Nothing else lives in its region, or in the drain, but operators who are not released. */
static inline bool ebb__supervisor_is_last(const ebb__region *r) {
    return r->flags & R_SUPERVISED && r->tasks.n + r->children.n == (r->flags & R_APART ? 2u : 1u);
}

static inline void ebb__leak_report(ebb_runtime *rt, ebb__leak leak) {
    if (rt->layers.call.leaked != NULL) rt->layers.call.leaked(rt, &leak);
}

#endif
