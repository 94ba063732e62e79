/* Semaphore. A permit that is released while a task waits is granted to the first waiter at once, so no other task
 * can take it first. A waiter that gives up passes its grant on. */
#include <assert.h>

#include "kernel/wait.h"
#include "sched/claim.h"

void ebb_sem_init(ebb_sem *s, uint32_t permits) {
    *s = (ebb_sem){.free = permits};
}

static void hand_on(ebb_sem *s) {
    for (ebb_wait *w; (w = ebb__waiters_grant(&s->first)) != NULL;) {
        if (ebb__waiter_is_task(w)) {
            ebb__wake_waiter(w);
            return;
        }
        if (ebb__waiter_notify(w)) return;
    }
    s->free++;
}

static void sem_cancel(ebb_wait *w) {
    ebb_sem *s = w->on;
    if (w->granted) hand_on(s);
    else ebb__waiters_remove(&s->first, &s->last, w);
}

static const ebb_wait_kind acquiring = {"semaphore", sem_cancel};

static ebb_status acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w) {
    if (ebb_checkpoint(cx) != EBB_OK) {
        if (w->cx != NULL) {
            sem_cancel(w);
            ebb__wait_end(w);
        }
        return EBB_CANCELLED;
    }
    if (w->cx != NULL) {
        if (!w->granted) return EBB_PENDING;
        ebb__wait_end(w);
        return EBB_OK;
    }
    if (s->free > 0) {
        assert(s->first == NULL);
        s->free--;
        return EBB_OK;
    }
    ebb_status st = ebb__wait_begin(cx, w, &acquiring, s);
    if (st == EBB_PENDING) ebb__waiters_add(&s->first, &s->last, w);
    return st;
}

ebb_status ebb_sem_acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w) {
    ebb_status st;
    EBB__AWAIT(cx, st, acquire(cx, s, w));
    return st;
}

void ebb_sem_release(ebb_cx *cx, ebb_sem *s) {
    (void)cx;
    hand_on(s);
}

/* ---- claims ---------------------------------------------------------------------------------------------- */

ebb_status ebb__permit_join(void *sem, ebb_wait *w) {
    ebb_sem *s = sem;
    if (s->free > 0) {
        s->free--;
        return EBB_OK;
    }
    ebb__waiters_add(&s->first, &s->last, w);
    return EBB_PENDING;
}

void ebb__permit_leave(void *sem, ebb_wait *w) {
    ebb_sem *s = sem;
    ebb__waiters_remove(&s->first, &s->last, w);
}

void ebb__permit_give_back(void *sem) {
    hand_on(sem);
}
