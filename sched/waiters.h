/* Queues of waiters, shared by channels and semaphores. A waiter with a grant leaves the queue at once and stores
 * the grant until it takes it. `last` is valid only if there is a first. */
#ifndef EBB__WAITERS_H
#define EBB__WAITERS_H

#include <assert.h>
#include <ebb/sched.h>

/* A waiter that is no task: `cx` is NULL, and `kind` is the first member of this. Such a waiter is out of the queue
 * when it is notified. */
typedef struct ebb__waiter_kind {
    ebb_wait_kind kind;
    /* It was granted what it waits for; or, if `granted` is 0, there is nothing to wait for any more. False: it does
     * not take the grant. Runs no code of the program. */
    bool (*notify)(ebb_wait *w);
} ebb__waiter_kind;

static inline bool ebb__waiter_is_task(const ebb_wait *w) {
    return w->cx != NULL;
}

static inline bool ebb__waiter_notify(ebb_wait *w) {
    return ((const ebb__waiter_kind *)(const void *)w->kind)->notify(w);
}

static inline void ebb__waiters_add(ebb_wait **first, ebb_wait **last, ebb_wait *w) {
    w->next = NULL;
    if (*first == NULL) {
        w->prev = NULL;
        *first = w;
    } else {
        w->prev = *last;
        (*last)->next = w;
    }
    *last = w;
}

static inline void ebb__waiters_remove(ebb_wait **first, ebb_wait **last, ebb_wait *w) {
    assert(w->prev != NULL ? w->prev->next == w : *first == w);
    assert(w->next != NULL ? w->next->prev == w : *last == w);
    if (w->prev != NULL) w->prev->next = w->next;
    else *first = w->next;
    if (w->next != NULL) w->next->prev = w->prev;
    else *last = w->prev;
}

/* Grants the first waiter and returns it for the caller to wake; NULL if the queue is empty. */
static inline ebb_wait *ebb__waiters_grant(ebb_wait **first) {
    ebb_wait *w = *first;
    if (w == NULL) return NULL;
    *first = w->next;
    if (w->next != NULL) w->next->prev = NULL;
    w->granted = 1;
    return w;
}

/* There is nothing to wait for any more: wakes the tasks, which leave the queue when they are polled, and takes the
 * others out. `wake` is inlined. */
static inline void ebb__waiters_end(ebb_wait **first, ebb_wait **last, void (*wake)(const ebb_wait *w)) {
    ebb_wait *next;
    for (ebb_wait *w = *first; w != NULL; w = next) {
        next = w->next;
        if (ebb__waiter_is_task(w)) {
            wake(w);
        } else {
            ebb__waiters_remove(first, last, w);
            (void)ebb__waiter_notify(w);
        }
    }
}

#endif
