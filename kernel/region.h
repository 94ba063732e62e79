/* Regions: ownership, and the one function that advances a region. */
#ifndef EBB__REGION_H
#define EBB__REGION_H

#include "kernel/record.h"

/* Nested regions are mostly opened one after the other, and so are neighbours in the slab. A walk from parent to
 * child or back prefetches the record of a later region. `i` need not be a valid index. `all`: more than a close
 * needs. */
enum { EBB__REGIONS_AHEAD = 8 };
static inline void ebb__prefetch_region(const ebb_runtime *rt, uint32_t i, bool all) {
    if (i >= rt->regions.used) return;
    const ebb__region *r = ebb__region_at(rt, i);
    __builtin_prefetch(r, 1);
    if (all) __builtin_prefetch(&r->deadline, 1);
}

/* Neither the region nor an internal task that waits to be the last in it can proceed. */
static inline bool ebb__region_stays(const ebb__region *r) {
    if (r->flags & (R_MORE | R_SUPERVISED | R_JOINING | R_ENDS)) return false;
    if (r->state == EBB_REGION_OPEN) return true;
    return r->state == EBB_REGION_DRAINING && (r->tasks.n > 0 || r->children.n > 0);
}

/* Advances a region, and then its parents, as far as possible without user code. */
void ebb__region_advance_slow(ebb_runtime *rt, ebb__region *r);
static inline void ebb__region_advance(ebb_runtime *rt, ebb__region *r) {
    if (!ebb__region_stays(r)) ebb__region_advance_slow(rt, r);
}
/* Legal transitions, one bit for each next state. Nothing follows Closed. The table is in the header so that the
 * compiler can drop the check for moves that are always legal. */
#define EBB__NEXT(state) (1u << (state))
static const uint8_t ebb__region_legal[EBB_REGION_CLOSED + 1] = {
    [EBB_REGION_OPEN] = EBB__NEXT(EBB_REGION_CLOSING),
    [EBB_REGION_CLOSING] = EBB__NEXT(EBB_REGION_DRAINING) | EBB__NEXT(EBB_REGION_FINALIZING),
    [EBB_REGION_DRAINING] = EBB__NEXT(EBB_REGION_FINALIZING),
    [EBB_REGION_FINALIZING] = EBB__NEXT(EBB_REGION_CLOSED),
    [EBB_REGION_CLOSED] = 0,
};
bool ebb__region_refused(ebb_runtime *rt, ebb__region *r, ebb_region_state to);

/* The one place that changes the state of a region. A move that is not in the table is refused, traced as
 * `illegal` and counted in ebb_runtime_stats.illegal. */
static inline bool ebb__region_move(ebb_runtime *rt, ebb__region *r, ebb_region_state to) {
    if (EBB__UNLIKELY(!(ebb__region_legal[r->state] & EBB__NEXT(to)))) return ebb__region_refused(rt, r, to);
    r->state = (uint8_t)to;
    return true;
}

/* Open -> Closing. */
static inline void ebb__region_shut(ebb_runtime *rt, ebb__region *r) {
    if (!ebb__region_move(rt, r, EBB_REGION_CLOSING)) return;
    ebb__emit_region(rt, EBB_EV_REGION_CLOSING, r, 0, 0, 0);
}
/* Closing -> Draining: the region is not empty. */
static inline void ebb__region_drain(ebb_runtime *rt, ebb__region *r) {
    if (!ebb__region_move(rt, r, EBB_REGION_DRAINING)) return;
    ebb__emit_region(rt, EBB_EV_REGION_DRAINING, r, 0, 0, 0);
}
/* Queues the region for the pump, which does what verbs may not: it runs user code. */
void ebb__sweep_later(ebb_runtime *rt, ebb__region *r);
/* Advances one queued region; may run hooks. False: the queue was empty. */
bool ebb__sweep_one(ebb_runtime *rt);

/* Opens the cleanup scope of a supervisor; no task owns it. Errors as for ebb_region_open; not journaled. */
ebb_region ebb__drain_region_open(ebb_cx *cx, ebb_region parent, const char *site);

/* The next region after `r` in the tree below `top`, parents before children; with `into`, children of `r` too.
 * NULL: there is none. */
static inline ebb__region *ebb__region_after(const ebb_runtime *rt, ebb__region *r, const ebb__region *top,
                                             bool into) {
    if (into && r->children.n > 0) return ebb__region_at(rt, ebb__u32s_data(&r->children)[0]);
    while (r != top) {
        ebb__region *parent = ebb__region_at(rt, r->parent);
        if (r->pos + 1 < parent->children.n) {
            return ebb__region_at(rt, ebb__u32s_data(&parent->children)[r->pos + 1]);
        }
        r = parent;
    }
    return NULL;
}

/* Calls a function of the layer whose callback runner serves this region. */
void ebb__callbacks_call(ebb_runtime *rt, const ebb__region *r,
                         void (*fn)(ebb_runtime *rt, ebb__callbacks *c));

/* A task of the region failed (was not only cancelled), or could not be spawned (task 0). */
void ebb__region_failed(ebb_runtime *rt, ebb__region *r, ebb_status status, uint64_t task);

/* For a task whose body has returned: cancels the regions that it opened. True if none remains. */
bool ebb__scopes_join(ebb_runtime *rt, ebb__task *t);
/* The task's budget has run out: the next join forces the regions that were only cancelled before. */
void ebb__scopes_again(ebb_runtime *rt, ebb__task *t);

void ebb__report_of(const ebb_runtime *rt, const ebb__region *r, ebb_region_report *out);

/* Opens the root. EBB_ERR_NOMEM. */
ebb_status ebb__root_open(ebb_runtime *rt);

void ebb__leaks_forget(ebb_runtime *rt, ebb__region *r);

#endif
