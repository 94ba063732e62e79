/* A drain supervisor controls how a region ends. It is a task in a region of its own below that region, the *drain
 * region*. The drain region is a cleanup scope from the start: close and cancel from above do not reach it, force
 * does. The supervisor is woken
 *   - when close, cancel or force has reached its region,
 *   - when only the drain region is left in a closing region,
 *   - when only the supervisor is left in a closing drain region,
 *   - at its alarm.
 * Force does not abandon it, since it decides how its region ends. It runs first in the timed lane, so that it is
 * in time under load too. Its region can't finalize before the drain region has closed, and so not before the
 * supervisor has returned.
 *
 * A drain region may have an *operators' region*, for tasks that serve an operator while everything else ends.
 * Until it is released, close, cancel and force from above do not reach it, and no region waits for it. Then it
 * ends like any other. */
#ifndef EBB__SUPERVISOR_H
#define EBB__SUPERVISOR_H

#include "kernel/rt.h"

/* Called when a supervisor has ended. */
void ebb__supervisor_ended(ebb_runtime *rt, ebb__region *drain);

static inline bool ebb__is_drain_region(const ebb__region *r) {
    return (r->flags & (R_SUPERVISED | R_CLEANUP)) == (R_SUPERVISED | R_CLEANUP);
}

static inline bool ebb__is_supervisor(const ebb_runtime *rt, const ebb__task *t) {
    const ebb__region *r = ebb__region_at(rt, t->region);
    return ebb__is_drain_region(r) && ebb__cold_of(r)->supervisor == t->index;
}

/* Nothing else lives in its region, or in the drain region, but operators that are not released. */
static inline bool ebb__supervisor_is_last(const ebb__region *r) {
    return r->flags & R_SUPERVISED && r->tasks.n + r->children.n == (r->flags & R_APART ? 2u : 1u);
}

static inline void ebb__leak_report(ebb_runtime *rt, ebb__leak leak) {
    if (rt->layers.call.leaked != NULL) rt->layers.call.leaked(rt, &leak);
}

#endif
