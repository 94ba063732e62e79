/* Tasks: the transition table, one poll, and the one function that ends a task. */
#ifndef EBB__TASK_H
#define EBB__TASK_H

#include "kernel/rt.h"

/* Asks a task to stop, or more urgently: never runs it, never fails. `deadline` is only for the lane. */
void ebb__task_request(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint8_t severity, uint32_t polls,
                       uint64_t deadline);
/* Its budget is over. A task that was not asked yet is asked first, with what its region was told. */
void ebb__task_overdue(ebb_runtime *rt, ebb__task *t);
/* It parks. A wake that came during its poll asks for one more, whatever the poll led to. */
void ebb__task_rewoken(ebb_runtime *rt, ebb__task *t);
/* Its own deadline has come. */
void ebb__task_fired(ebb_runtime *rt, ebb__task *t);
/* Cancels it, and not only with its region: with a reason and a budget of its own. */
void ebb__task_cancel_own(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint64_t origin, const char *message);
/* Ends one that was created and never polled. */
void ebb__task_end_unpolled(ebb_runtime *rt, ebb__task *t);

/* How a task is remembered while it waits in a join: its index, and as much of its generation as there
 * is room for. */
static inline uint32_t ebb__joiner_of(const ebb__task *t) {
    return t->index | t->generation << 24;
}

/* t waits in a join: for the task of that index, or for a region (0). It may have joined others in the same poll.
 * Cancelled in its own poll it is in a lane already, and is polled again. */
#define EBB__JOINS_SEVERAL UINT32_MAX
static inline void ebb__joins(ebb__task *t, uint32_t index) {
    bool several = t->flags & F_JOINING && t->joins != index;
    if (t->queue == EBB_LANE_NONE) t->joins = several ? EBB__JOINS_SEVERAL : index;
    t->flags |= F_JOINING;
}

/* The task that waits for `of` in a join, if there still is one. Parked, it knows what it waits for. If that are
 * several, or it was woken and is not polled yet, it does not: then it may have left, or be another whose slot has
 * had 256 users since, and is taken for the joiner all the same. */
static inline ebb__task *ebb__joiner(const ebb_runtime *rt, const ebb__task *of) {
    if ((of->waiter & 0xffffff) == 0) return NULL;
    ebb__task *t = ebb__task_at(rt, of->waiter & 0xffffff);
    bool waits = t->phase != 0 && t->phase != EBB_TASK_COMPLETED && t->flags & F_JOINING;
    if (!waits || ebb__joiner_of(t) != of->waiter) return NULL;
    bool knows = t->queue == EBB_LANE_NONE && t->joins != EBB__JOINS_SEVERAL;
    return knows && t->joins != of->index ? NULL : t;
}

/* Which phases may follow which, a bit each. Nothing follows Completed. Here, so that the compiler sees which
 * moves can't be refused. */
#define EBB__TO(phase) (1u << (phase))
static const uint8_t ebb__phase_legal[EBB_TASK_COMPLETED + 1] = {
    [EBB_TASK_CREATED] =
        EBB__TO(EBB_TASK_RUNNING) | EBB__TO(EBB_TASK_CANCEL_REQUESTED) | EBB__TO(EBB_TASK_COMPLETED),
    [EBB_TASK_RUNNING] = EBB__TO(EBB_TASK_CANCEL_REQUESTED) | EBB__TO(EBB_TASK_COMPLETED),
    [EBB_TASK_CANCEL_REQUESTED] =
        EBB__TO(EBB_TASK_CANCEL_REQUESTED) | EBB__TO(EBB_TASK_CANCELLING) | EBB__TO(EBB_TASK_COMPLETED),
    [EBB_TASK_CANCELLING] =
        EBB__TO(EBB_TASK_CANCELLING) | EBB__TO(EBB_TASK_FINALIZING) | EBB__TO(EBB_TASK_COMPLETED),
    [EBB_TASK_FINALIZING] = EBB__TO(EBB_TASK_FINALIZING) | EBB__TO(EBB_TASK_COMPLETED),
    [EBB_TASK_COMPLETED] = 0,
};
bool ebb__phase_refused(ebb_runtime *rt, ebb__task *t, ebb_task_phase to);

/* Moves to another phase if the table has it; else counts and traces an illegal transition. */
static inline bool ebb__phase_move(ebb_runtime *rt, ebb__task *t, ebb_task_phase to) {
    if (EBB__UNLIKELY(!(ebb__phase_legal[t->phase] & 1u << to))) return ebb__phase_refused(rt, t, to);
    t->phase = (uint8_t)to;
    return true;
}

/* Around every call of its body. */
static inline void ebb__polling(ebb_runtime *rt, ebb__task *t) {
    assert(rt->current == NULL && t->queue == EBB_LANE_NONE);
    t->flags = (t->flags | F_POLLING) & ~(uint32_t)F_JOINING;
    rt->current = t;
}
static inline void ebb__polled(ebb_runtime *rt, ebb__task *t) {
    assert(rt->current == t);
    rt->current = NULL;
    t->flags &= ~(uint32_t)F_POLLING;
}

/* One poll, taken from `lane`, whose head had waited for `waited` polls of others. */
void ebb__task_poll_slow(ebb_runtime *rt, ebb__task *t, ebb_lane lane, uint32_t waited);
void ebb__task_polled(ebb_runtime *rt, ebb__task *t, ebb_status st);
EBB__INLINE void ebb__task_poll(ebb_runtime *rt, ebb__task *t, ebb_lane lane, uint32_t waited) {
    rt->stats.polls++;
    if (t->phase == EBB_TASK_CREATED) ebb__phase_move(rt, t, EBB_TASK_RUNNING);
    bool metered = t->polls_left != EBB_POLLS_UNBOUNDED && t->phase != EBB_TASK_CANCEL_REQUESTED;
    if (EBB__UNLIKELY(rt->observed || metered || t->flags & (F_RETURNED | F_FORCED))) {
        ebb__task_poll_slow(rt, t, lane, waited);
        return;
    }
    ebb__polling(rt, t);
    ebb_status st = t->poll(&t->cx, t->state);
    ebb__polled(rt, t);
    if (st != EBB_PENDING || t->flags & (F_FORCED | F_REWAKE)) ebb__task_polled(rt, t, st);
}

/* A task record for the finalizers of a region, not yet among its tasks. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__closer_new(ebb_runtime *rt, ebb__region *r);
void ebb__closer_start(ebb_runtime *rt, ebb__region *r);

/* As `waiter`: its outcome is not its region's. No task has the index 0. */
enum { EBB__APART = 1u << 24 };

static inline bool ebb__task_is_runner(const ebb_runtime *rt, const ebb__task *t) {
    return t->flags & F_CLOSER && ebb__region_at(rt, t->region)->runner == t->index;
}

/* Nothing else lives in its region but the supervisor's place and operators who are not released, and that is to
 * close. */
static inline bool ebb__runner_is_last(const ebb__region *r) {
    uint32_t others = (r->flags & R_SUPERVISED ? 1u : 0u) + (r->flags & R_APART ? 1u : 0u);
    return r->runner != 0 && r->tasks.n + r->children.n == others + 1 &&
           (r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS));
}

/* For kernel/supervisor.c: makes room for a task; a task that is one, in its drain. */
ebb_status ebb__task_room(ebb_runtime *rt);
ebb_task ebb__supervisor_spawn(ebb_runtime *rt, ebb_cx *cx, ebb__region *drain, ebb_poll_fn poll, void *state,
                               const char *site);

/* Gives back a kept or abandoned task that has ended. */
void ebb__task_release(ebb_runtime *rt, ebb__task *t);

void ebb__signal_update(ebb_runtime *rt, ebb__task *t);

/* The checkpoint that is part of another operation: the journal has only that one. */
ebb_status ebb__acknowledge(ebb_cx *cx);

#endif
