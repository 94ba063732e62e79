/* Queues of waiters, shared by channels and semaphores. Whoever is granted what it waits for leaves
 * the queue at once; until it takes it, the grant is noted in the waiter. `last` counts only if there is a first. */
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

/* The first of them is granted what it waits for. Returns it, for the caller to wake; NULL if nobody waits. */
static inline ebb_wait *ebb__waiters_grant(ebb_wait **first) {
    ebb_wait *w = *first;
    if (w == NULL) return NULL;
    *first = w->next;
    if (w->next != NULL) w->next->prev = NULL;
    w->granted = 1;
    return w;
}

#endif
