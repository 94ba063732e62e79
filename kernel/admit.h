/* Admission: who may add work to what, and when. The table is in docs/kernel.md.
 *
 * A region that is closed or cancelled admits nothing. One that is only *stopping*, because it is inside a
 * unit of work and a region around that unit was closed, goes on admitting what is asked for from inside that
 * unit. So a close refuses new work at the edge of every unit, and what was admitted can finish. */
#ifndef EBB__ADMIT_H
#define EBB__ADMIT_H

#include "kernel/rt.h"

/* May `t` add something to `r`? EBB_OK; EBB_ERR_CLOSED; EBB_CANCELLED for a task under request, which is
 * acknowledged with it unless it is masked. */
ebb_status ebb__admit_slow(ebb_runtime *rt, ebb__task *t, ebb__region *r);

static inline ebb_status ebb__admit(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    if (EBB__LIKELY(r->state == EBB_REGION_OPEN && !(r->flags & R_STOPPING))) return EBB_OK;
    return ebb__admit_slow(rt, t, r);
}

/* May it take on something of its own: an obligation, an operation? The host's is the root's. */
ebb_status ebb__admit_own(ebb_runtime *rt, ebb__task *t);

/* What a refusal says to `t`. */
ebb_status ebb__admit_refused(ebb_runtime *rt, ebb__task *t, ebb__region *r);

/* Does its close, or one from above, reach the region? */
static inline bool ebb__is_closing(const ebb__region *r) {
    return r->state != EBB_REGION_OPEN || r->flags & R_STOPPING;
}

/* `r` is reached by a close that was said to a region above it: it shuts, or, inside a unit, is stopping from
 * now on. */
void ebb__region_stop(ebb_runtime *rt, ebb__region *r);
/* A new region `r`, not a cleanup scope, in a parent that is stopping. */
void ebb__region_stop_new(ebb_runtime *rt, ebb__region *r);

#endif
