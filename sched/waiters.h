/* Queues of waiters, shared by channels and semaphores. */
#ifndef EBB__WAITERS_H
#define EBB__WAITERS_H

#include <ebb/sched.h>

static inline void ebb__waiters_add(ebb_wait **first, ebb_wait **last, ebb_wait *w) {
    w->next = NULL;
    w->prev = *last;
    if (*last != NULL) (*last)->next = w;
    else *first = w;
    *last = w;
}

static inline void ebb__waiters_remove(ebb_wait **first, ebb_wait **last, ebb_wait *w) {
    if (w->prev != NULL) w->prev->next = w->next;
    else *first = w->next;
    if (w->next != NULL) w->next->prev = w->prev;
    else *last = w->prev;
}

/* The first that has not been granted anything yet; those that have are at the front. */
static inline ebb_wait *ebb__waiters_first(ebb_wait *first) {
    while (first != NULL && first->granted) first = first->next;
    return first;
}

#endif
