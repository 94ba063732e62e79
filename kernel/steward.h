/* A steward watches over how a region ends. It is a task in a region of its own below that one, the *annex*:
 * a cleanup scope from the start, which closing and cancelling from above do not reach, but force does. It
 * is woken
 *   - when a verb has reached its region,
 *   - when nothing but the annex is left in a region that is to close,
 *   - when nothing but itself is left in an annex that is to close,
 *   - at its alarm.
 * Force does not abandon it: it has to say how its region ends. It runs in the timed lane, before
 * everybody else there: under load too it is in time. Its region can't finalize before the annex has
 * closed, so before the steward has returned.
 *
 * An annex may have an *operators' region*: for tasks that serve an operator while all the rest ends. Close,
 * cancel and force from above do not reach it, and nobody waits for it, until it is released. Then it has to
 * end as all the rest. */
#ifndef EBB__STEWARD_H
#define EBB__STEWARD_H

#include "kernel/rt.h"

typedef struct ebb__steward {
    ebb_task task; /* an id that carries the error, if there is none */
    ebb_region annex;
} ebb__steward;

/* `on_closed` is for the root only, whose end nobody else hears of; its argument is `state`. EBB_ERR_CLOSED,
 * EBB_ERR_BUSY (it has one), EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed. */
ebb__steward ebb__steward_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                              void (*on_closed)(void *arg, const ebb_report *report), const char *site);

/* Wakes the steward at that time, and not at any it was set to before; EBB_FOREVER: never. Needs no
 * memory. */
void ebb__steward_alarm(ebb_cx *cx, ebb_task steward, uint64_t at);

/* The operators' region of an annex, which has none yet. Nobody owns it. Its errors are those of
 * ebb_region_open. */
ebb_region ebb__operators_open(ebb_cx *cx, ebb_region annex, const char *site);

/* From now on the annex waits for its operators' region, and force reaches it. What is left in it at the
 * deadline is cancelled. It is not closed yet: the caller does that. */
void ebb__operators_release(ebb_cx *cx, ebb_region operators, uint64_t deadline);

/* The region closes by itself once nothing lives in it, as if it were joined. */
void ebb__region_joining(ebb_cx *cx, ebb_region region);

/* An event of a layer above, in the trace as in the journal. */
void ebb__note(ebb_cx *cx, uint8_t type, uint64_t task, uint64_t region, uint32_t value, uint64_t other);

/* For the end of a steward. */
void ebb__steward_over(ebb_rt *rt, ebb__region *annex);

static inline bool ebb__is_annex(const ebb__region *r) {
    return (r->flags & (R_STEWARD | R_CLEANUP)) == (R_STEWARD | R_CLEANUP);
}

static inline bool ebb__is_steward(const ebb_rt *rt, const ebb__task *t) {
    const ebb__region *r = ebb__region_at(rt, t->region);
    return ebb__is_annex(r) && ebb__cold_of(r)->steward == t->index;
}

/* Nothing else lives in its region, or in the annex, but operators who are not released. */
static inline bool ebb__steward_is_last(const ebb__region *r) {
    return r->flags & R_STEWARD && r->tasks.n + r->children.n == (r->flags & R_APART ? 2u : 1u);
}

static inline void ebb__blame(ebb_rt *rt, ebb__guilty g) {
    if (rt->blame != NULL) rt->blame(rt, &g);
}

#endif
