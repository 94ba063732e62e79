/* Semaphore. A permit that is released while somebody waits is handed to the first waiter at once
 * (`granted`), so nobody can come in between, and a waiter that goes away hands it on. */
#include "kernel/lane.h"
#include "sched/waiters.h"

void ebb_sem_init(ebb_sem *s, uint32_t permits) {
    *s = (ebb_sem){.free = permits};
}

static void hand_on(ebb_sem *s) {
    ebb_wait *w = ebb__waiters_first(s->first);
    if (w == NULL) {
        s->free++;
        return;
    }
    w->granted = 1;
    ebb__wake_waiter(w->cx);
}

static void sem_cancel(ebb_wait *w) {
    ebb_sem *s = w->on;
    ebb__waiters_remove(&s->first, &s->last, w);
    if (w->granted) hand_on(s);
}

ebb_status ebb_sem_acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w) {
    if (w->cx != NULL && w->granted) {
        ebb__waiters_remove(&s->first, &s->last, w);
        ebb_wait_end(w);
        return EBB_OK;
    }
    if (ebb_checkpoint(cx) != EBB_OK) {
        if (w->cx != NULL) {
            sem_cancel(w);
            ebb_wait_end(w);
        }
        return EBB_CANCELLED;
    }
    if (w->cx != NULL) return EBB_PENDING;
    if (s->free > 0) {
        s->free--;
        return EBB_OK;
    }
    ebb_wait_begin(cx, w, sem_cancel, s, "semaphore");
    ebb__waiters_add(&s->first, &s->last, w);
    return EBB_PENDING;
}

void ebb_sem_release(ebb_cx *cx, ebb_sem *s) {
    (void)cx;
    hand_on(s);
}
