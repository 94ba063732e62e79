/* Lanes: a task runs in the cancel lane once it has a request, in the timed lane if it has a deadline, otherwise
 * in the ready lane. A task is in at most one lane, and its place there was reserved when it was spawned. */
#ifndef EBB__LANE_H
#define EBB__LANE_H

#include "kernel/rt.h"

/* Reserves a place for one more task with a deadline. */
bool ebb__timed_admit(ebb_runtime *rt);
void ebb__lane_start(ebb_runtime *rt);
void ebb__lane_stop(ebb_runtime *rt);
/* Moves the cancel lane's buckets with the clock. */
void ebb__lane_time(ebb_runtime *rt);

static inline ebb_lane ebb__lane_of(const ebb__task *t) {
    return t->request != 0 ? EBB_LANE_CANCEL : t->flags & F_TIMED ? EBB_LANE_TIMED : EBB_LANE_READY;
}

/* Enqueues a task that is in no lane, in the lane of its state. */
void ebb__enqueue_slow(ebb_runtime *rt, ebb__task *t);
static inline bool ebb__ready_is_empty(const ebb_runtime *rt) {
    return rt->ready_first == NULL && rt->queue[EBB__READY].count == 0;
}
static inline void ebb__enqueue_ready(ebb_runtime *rt, ebb__task *t) {
    assert(t->queue == EBB_LANE_NONE && t->phase != 0 && t->phase != EBB_TASK_COMPLETED);
    if (ebb__ready_is_empty(rt)) rt->ready_first = t;
    else t->qpos = ebb__run_queue_push(&rt->run_queues, &rt->queue[EBB__READY], t->index);
    t->queue = EBB_LANE_READY; /* last: after a store of a byte the compiler reloads everything else */
}
/* True if a push calls no other function. */
static inline bool ebb__ready_has_room(const ebb_runtime *rt) {
    const ebb__queue *q = &rt->queue[EBB__READY];
    return ebb__ready_is_empty(rt) || q->put != q->put_end;
}
static inline void ebb__enqueue(ebb_runtime *rt, ebb__task *t) {
    if (EBB__UNLIKELY(t->request != 0 || t->flags & F_TIMED)) {
        ebb__enqueue_slow(rt, t);
        return;
    }
    ebb__enqueue_ready(rt, t);
}
/* As ebb__enqueue, for a caller that knows the cleanup deadline: does not read the region. */
void ebb__enqueue_cancelled(ebb_runtime *rt, ebb__task *t, uint64_t deadline);
/* True if a task of the cancel lane belongs in an earlier bucket because of this deadline. */
bool ebb__due_sooner(ebb_runtime *rt, const ebb__task *t, uint64_t deadline);
/* The cancel lane's bucket for a deadline. */
static inline uint8_t ebb__bucket_of(const ebb_runtime *rt, uint64_t deadline) {
    uint64_t b = deadline >> EBB__BUCKET_SHIFT;
    if (b < rt->cancel_base) b = rt->cancel_base;
    if (b > rt->cancel_base + 63) b = rt->cancel_base + 63;
    return (uint8_t)(b & 63);
}
/* Removes the task from its lane, if it is in one. */
void ebb__dequeue(ebb_runtime *rt, ebb__task *t);
/* Pops the next task of a non-empty lane. */
ebb__task *ebb__lane_pop_slow(ebb_runtime *rt, ebb_lane lane);
/* Pops the nth task near the head instead, for the lab; the head if there are fewer. */
ebb__task *ebb__lane_pick(ebb_runtime *rt, ebb_lane lane, uint32_t nth);

/* How many tasks ahead the pump prefetches. */
enum { EBB__AHEAD = 12 };

EBB__INLINE ebb__task *ebb__queue_pop(ebb_runtime *rt, ebb__queue *q) {
    uint32_t ahead = ebb__run_queue_peek(&rt->run_queues, q, EBB__AHEAD);
    if (ahead != 0) __builtin_prefetch(ebb__task_at(rt, ahead), 1);
    ebb__task *t = ebb__task_at(rt, ebb__run_queue_pop(&rt->run_queues, q));
    assert(t->queue != EBB_LANE_NONE && t->phase != 0);
    t->queue = EBB_LANE_NONE;
    return t;
}

/* Pops the next task of the ready lane; NULL if it is empty. */
EBB__INLINE ebb__task *ebb__ready_pop(ebb_runtime *rt) {
    ebb__task *t = rt->ready_first;
    if (t != NULL) {
        rt->ready_first = NULL;
        t->queue = EBB_LANE_NONE;
        return t;
    }
    ebb__queue *q = &rt->queue[EBB__READY];
    return q->count == 0 ? NULL : ebb__queue_pop(rt, q);
}

static inline uint32_t ebb__ready_count(const ebb_runtime *rt) {
    return rt->queue[EBB__READY].count + (rt->ready_first != NULL);
}

static inline ebb__task *ebb__lane_pop(ebb_runtime *rt, ebb_lane lane) {
    return lane == EBB_LANE_READY ? ebb__ready_pop(rt) : ebb__lane_pop_slow(rt, lane);
}
uint32_t ebb__lane_count(const ebb_runtime *rt, ebb_lane lane);

/* Makes a task runnable, once. */
void ebb__wake_slow(ebb_runtime *rt, ebb__task *t);
/* True if the task is parked and ebb__enqueue_ready enqueues it without another call. */
static inline bool ebb__wakes_at_once(const ebb_runtime *rt, const ebb__task *t) {
    return !(t->flags & (F_POLLING | F_TIMED)) && (t->queue | t->request) == 0 && ebb__ready_has_room(rt);
}
static inline void ebb__wake(ebb_runtime *rt, ebb__task *t) {
    if (EBB__LIKELY(rt->trace == NULL && ebb__wakes_at_once(rt, t))) ebb__enqueue_ready(rt, t);
    else ebb__wake_slow(rt, t);
}

/* The end of a task's cleanup budget; EBB_FOREVER without a request. */
uint64_t ebb__cleanup_deadline(const ebb_runtime *rt, const ebb__task *t);

#endif
