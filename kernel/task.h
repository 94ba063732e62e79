/* Tasks: the transition table, one poll, and the one function that ends a task. */
#ifndef EBB__TASK_H
#define EBB__TASK_H

#include "kernel/rt.h"

/* Requests a task to stop, or strengthens the request. Never runs the task, never fails. `deadline` only selects
 * the place in the cancel lane. */
void ebb__task_request(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint8_t severity, uint32_t polls,
                       uint64_t deadline);
/* The task's budget has run out. The caller has requested it to stop before. */
void ebb__task_overdue(ebb_runtime *rt, ebb__task *t);
/* The task parks. A wake-up during its poll makes it runnable again, whatever the poll returned. */
void ebb__task_rewoken(ebb_runtime *rt, ebb__task *t);
/* The timer of the task is due: its own deadline, or its own budget. */
void ebb__task_fired(ebb_runtime *rt, ebb__task *t);
/* Cancels one task, with a reason and a budget of its own, not its region's. */
void ebb__task_cancel_own(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint64_t origin, const char *message);
/* Ends a task that was never polled. */
void ebb__task_end_unpolled(ebb_runtime *rt, ebb__task *t);
/* Ends a task that is being discarded: kernel/discard.c. */
void ebb__task_end_discarded(ebb_runtime *rt, ebb__task *t);
/* True for a task that has not ended. A stale id is counted and traced. */
bool ebb__task_is_live(ebb_runtime *rt, ebb_task id, ebb__task **out);

/* Identifies a task that waits in a join: its index and the low 8 bits of its generation. */
static inline uint32_t ebb__joiner_of(const ebb__task *t) {
    return t->index | t->generation << 24;
}

/* `t` waits in a join for the task of that index, or for a region (0). It may have joined others in the same poll.
 * If it was cancelled during the poll it is already in a lane, and is polled again. */
#define EBB__JOINS_SEVERAL UINT32_MAX
static inline void ebb__joins(ebb__task *t, uint32_t index) {
    bool several = t->flags & F_JOINING && t->joins != index;
    if (t->queue == EBB_LANE_NONE) t->joins = several ? EBB__JOINS_SEVERAL : index;
    t->flags |= F_JOINING;
}

/* The task that waits for `of` in a join, or NULL. A parked task records what it joins, unless it joins several. A
 * task that joins several, or was woken and not polled yet, may have stopped waiting; after 256 reuses of its slot
 * it may be another task. The caller treats it as the joiner all the same. */
static inline ebb__task *ebb__joiner(const ebb_runtime *rt, const ebb__task *of) {
    if ((of->waiter & 0xffffff) == 0) return NULL;
    ebb__task *t = ebb__task_at(rt, of->waiter & 0xffffff);
    bool waits = t->phase != 0 && t->phase != EBB_TASK_COMPLETED && t->flags & F_JOINING;
    if (!waits || ebb__joiner_of(t) != of->waiter) return NULL;
    bool knows = t->queue == EBB_LANE_NONE && t->joins != EBB__JOINS_SEVERAL;
    return knows && t->joins != of->index ? NULL : t;
}

/* Legal transitions, one bit for each next phase. Nothing follows Completed. The table is in the header so that
 * the compiler can drop the check for moves that are always legal. */
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

/* Moves to another phase if the table has the transition; otherwise counts and traces it as illegal. */
static inline bool ebb__phase_move(ebb_runtime *rt, ebb__task *t, ebb_task_phase to) {
    if (EBB__UNLIKELY(!(ebb__phase_legal[t->phase] & 1u << to))) return ebb__phase_refused(rt, t, to);
    t->phase = (uint8_t)to;
    return true;
}

/* Before and after every call of the body. */
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

/* One poll of a task from `lane`, whose head had waited for `waited` polls of other lanes. */
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

/* Reserves the task that runs the finalizers of a region; it is not among the region's tasks yet. EBB_ERR_NOMEM,
 * EBB_ERR_LIMIT. */
ebb_status ebb__closer_new(ebb_runtime *rt, ebb__region *r);
void ebb__closer_start(ebb_runtime *rt, ebb__region *r);

/* In `waiter`: the outcome goes to a future, not to the region. No task has the index 0. */
enum { EBB__APART = 1u << 24 };

static inline bool ebb__task_is_runner(const ebb_runtime *rt, const ebb__task *t) {
    return t->flags & F_CLOSER && ebb__region_at(rt, t->region)->runner == t->index;
}

/* True if only the supervisor's region and unreleased operators live beside the runner, and the region is closing. */
static inline bool ebb__runner_is_last(const ebb__region *r) {
    uint32_t others = (r->flags & R_SUPERVISED ? 1u : 0u) + (r->flags & R_APART ? 1u : 0u);
    return r->runner != 0 && r->tasks.n + r->children.n == others + 1 &&
           (r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS));
}

/* For kernel/supervisor.c: reserves memory for a task; spawns a supervisor in its drain region. */
ebb_status ebb__task_room(ebb_runtime *rt);
ebb_task ebb__supervisor_spawn(ebb_runtime *rt, ebb_cx *cx, ebb__region *drain, ebb_poll_fn poll, void *state,
                               const char *site);

/* Frees the record of a kept or abandoned task that has ended. */
void ebb__task_release(ebb_runtime *rt, ebb__task *t);

void ebb__signal_update(ebb_runtime *rt, ebb__task *t);

/* A checkpoint inside another operation; the journal records only that operation. */
ebb_status ebb__acknowledge(ebb_cx *cx);

#endif
