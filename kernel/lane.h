/* Which lane a task runs in: cancel once it is asked to stop, timed if it has a deadline, else ready.
 * A task stands in at most one lane, and its room there was reserved when it was spawned. */
#ifndef EBB__LANE_H
#define EBB__LANE_H

#include "kernel/rt.h"

/* Room for one more task with a deadline. */
bool ebb__timed_admit(ebb_runtime *rt);
void ebb__lane_start(ebb_runtime *rt);
void ebb__lane_stop(ebb_runtime *rt);
/* The clock has moved: the cancel lane's buckets follow. */
void ebb__lane_time(ebb_runtime *rt);

static inline ebb_lane ebb__lane_of(const ebb__task *t) {
    return t->request != 0 ? EBB_LANE_CANCEL : t->flags & F_TIMED ? EBB_LANE_TIMED : EBB_LANE_READY;
}

/* Puts a task that is in no lane into the one that its state asks for. */
void ebb__enqueue_slow(ebb_runtime *rt, ebb__task *t);
static inline bool ebb__ready_is_empty(const ebb_runtime *rt) {
    return rt->ready_first == NULL && rt->queue[EBB__READY].count == 0;
}
static inline void ebb__enqueue_ready(ebb_runtime *rt, ebb__task *t) {
    assert(t->queue == EBB_LANE_NONE && t->phase != 0 && t->phase != EBB_TASK_COMPLETED);
    if (ebb__ready_is_empty(rt)) rt->ready_first = t;
    else t->qpos = ebb__lanes_push(&rt->lanes, &rt->queue[EBB__READY], t->index);
    t->queue = EBB_LANE_READY; /* last: the store of a byte makes the compiler forget what it has loaded */
}
/* That calls no other function. */
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
/* The same when its cleanup deadline is at hand: spares a look at its region. */
void ebb__enqueue_cancelled(ebb_runtime *rt, ebb__task *t, uint64_t deadline);
/* Whether a task of the cancel lane belongs further ahead, with this deadline. */
bool ebb__due_sooner(ebb_runtime *rt, const ebb__task *t, uint64_t deadline);
/* The cancel lane's bucket for a deadline. */
static inline uint8_t ebb__bucket_of(const ebb_runtime *rt, uint64_t deadline) {
    uint64_t b = deadline >> EBB__BUCKET_SHIFT;
    if (b < rt->cancel_base) b = rt->cancel_base;
    if (b > rt->cancel_base + 63) b = rt->cancel_base + 63;
    return (uint8_t)(b & 63);
}
/* Takes it out of its lane, if it is in one. */
void ebb__dequeue(ebb_runtime *rt, ebb__task *t);
/* The next task of a lane that is not empty. */
ebb__task *ebb__lane_pop_slow(ebb_runtime *rt, ebb_lane lane);
/* The nth near its head instead, for the lab; the head if there is none. */
ebb__task *ebb__lane_pick(ebb_runtime *rt, ebb_lane lane, uint32_t nth);

/* How far the pump's memory accesses are started before they are needed. */
enum { EBB__AHEAD = 12 };

EBB__INLINE ebb__task *ebb__queue_pop(ebb_runtime *rt, ebb__queue *q) {
    uint32_t ahead = ebb__lanes_peek(&rt->lanes, q, EBB__AHEAD);
    if (ahead != 0) __builtin_prefetch(ebb__task_at(rt, ahead), 1);
    ebb__task *t = ebb__task_at(rt, ebb__lanes_pop(&rt->lanes, q));
    assert(t->queue != EBB_LANE_NONE && t->phase != 0);
    t->queue = EBB_LANE_NONE;
    return t;
}

/* The next task of the ready lane; NULL if there is none. */
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
/* It is parked, and ebb__enqueue_ready puts it where it belongs without another call. */
static inline bool ebb__wakes_at_once(const ebb_runtime *rt, const ebb__task *t) {
    return !(t->flags & (F_POLLING | F_TIMED)) && (t->queue | t->request) == 0 && ebb__ready_has_room(rt);
}
static inline void ebb__wake(ebb_runtime *rt, ebb__task *t) {
    if (EBB__LIKELY(rt->trace == NULL && ebb__wakes_at_once(rt, t))) ebb__enqueue_ready(rt, t);
    else ebb__wake_slow(rt, t);
}

/* The end of a task's cleanup budget; EBB_FOREVER if it was not asked to stop. */
uint64_t ebb__cleanup_deadline(const ebb_runtime *rt, const ebb__task *t);

#endif
