/* Waits: what a parked task waits for, so that the end of the task can remove it from a queue. */
#ifndef EBB__WAIT_H
#define EBB__WAIT_H

#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/task.h"

/* True if the task can wait for certain: it is in its body and is not an internal task. */
static inline bool ebb__can_wait(const ebb__task *t) {
    return t->index != 0 && !(t->flags & (F_CLOSER | F_RETURNED));
}

/* F_WAIT stays set: it only says that the end of the task must check. */
static inline void ebb__wait_link(ebb__task *t, ebb_wait *w, const ebb_wait_kind *kind, void *on) {
    ebb__cold *c = ebb__cold_at(t->rt, t->index);
    assert(t->index != 0 && w->cx == NULL);
    w->cx = &t->cx;
    w->kind = kind;
    w->on = on;
    w->granted = 0;
    w->sibling = c->wait;
    w->owner = &c->wait;
    if (c->wait != NULL) c->wait->owner = &w->sibling;
    c->wait = w;
    t->flags |= F_WAIT;
}

void ebb__wait_record(ebb__task *t, ebb_wait *w);

/* EBB_PENDING, or the error if the task can't wait. */
static inline ebb_status ebb__wait_begin(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on) {
    ebb__task *t = ebb__task_of(cx);
    if (EBB__UNLIKELY(t->index == 0 || ebb__task_is_runner(t->rt, t))) return EBB_ERR_NOT_TASK;
    if (EBB__UNLIKELY(ebb__is_finalized(t))) return EBB_ERR_CLOSED;
    if (EBB__UNLIKELY(w->cx != NULL)) return EBB_ERR_BUSY;
    ebb__wait_link(t, w, kind, on);
    if (EBB__UNLIKELY(t->rt->recorded)) ebb__wait_record(t, w);
    return EBB_PENDING;
}

static inline void ebb__wait_unlink(ebb_wait *w) {
    assert(w->cx != NULL && *w->owner == w);
    *w->owner = w->sibling;
    if (w->sibling != NULL) w->sibling->owner = w->owner;
    w->cx = NULL;
}

static inline void ebb__wait_end(ebb_wait *w) {
    ebb_runtime *rt = ebb__task_of(w->cx)->rt;
    ebb__journal(rt, w->cx, (ebb_record){.type = J_WAIT_END, .value = w->number});
    ebb__wait_unlink(w);
}

/* Removes a wait from its queue, through its own hook. */
void ebb__wait_drop(ebb_runtime *rt, ebb_wait *w);

/* Wakes the waiting task, as an input that is journaled: the waker is not the kernel. */
void ebb__wake_waiter_slow(ebb__task *t);
static inline void ebb__wake_waiter(const ebb_wait *w) {
    ebb__task *t = ebb__task_of(w->cx);
    if (EBB__LIKELY(!t->rt->observed && ebb__wakes_at_once(t->rt, t))) ebb__enqueue_ready(t->rt, t);
    else ebb__wake_waiter_slow(t);
}

#endif
