/* Queues of waiters, shared by channels and semaphores. A waiter with a grant leaves the queue at once and stores
 * the grant until it takes it. `last` is valid only if there is a first. */
#ifndef EBB__WAITERS_H
#define EBB__WAITERS_H

#include <ebb/sched.h>

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

#endif
