/* Admission: who may add work to a region, and when. The table is in docs/kernel.md.
 *
 * A closed or cancelled region admits nothing. A region is *stopping* if it is inside a unit of work and a region
 * around that unit was closed. A stopping region still admits work from callers inside that unit. So a close
 * refuses new work at the edge of every unit, and admitted work can finish. */
#ifndef EBB__ADMIT_H
#define EBB__ADMIT_H

#include "kernel/rt.h"

/* May `t` add work to `r`? EBB_OK; EBB_ERR_CLOSED; EBB_CANCELLED for a task with a request, which thereby
 * acknowledges it unless it is masked. */
ebb_status ebb__admit_slow(ebb_runtime *rt, ebb__task *t, ebb__region *r);

static inline ebb_status ebb__admit(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    if (EBB__LIKELY(r->state == EBB_REGION_OPEN && !(r->flags & R_STOPPING))) return EBB_OK;
    return ebb__admit_slow(rt, t, r);
}

/* May `t` begin an obligation or operation of its own? For the host, the root decides. */
ebb_status ebb__admit_own(ebb_runtime *rt, ebb__task *t);

/* The status that `t` gets for a refusal by `r`. */
ebb_status ebb__admit_refused(ebb_runtime *rt, ebb__task *t, ebb__region *r);

/* True after a close of the region, or of one above it. */
static inline bool ebb__is_closing(const ebb__region *r) {
    return r->state != EBB_REGION_OPEN || r->flags & R_STOPPING;
}

/* A close of a region above has reached `r`: it shuts, or, inside a unit, is stopping from now on. */
void ebb__region_stop(ebb_runtime *rt, ebb__region *r);
/* Marks a new region `r`, not a cleanup scope, as stopping because its parent is. */
void ebb__region_stop_new(ebb_runtime *rt, ebb__region *r);

#endif
