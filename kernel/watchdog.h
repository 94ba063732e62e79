/* For a watchdog in another thread: the poll, finalizer, hook or callback that runs now, and its site. */
#ifndef EBB__WATCHDOG_H
#define EBB__WATCHDOG_H

#include "kernel/rt.h"

/* The number is odd while something runs. Its release store publishes the two stores before it. These are release
 * stores too: a watchdog that reads one of them also sees that the number is no longer that of the poll before. */
static inline void ebb__watch_begin(ebb_runtime *rt, uint64_t task, const char *site) {
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_relaxed); /* the only writer */
    assert(n % 2 == 0);
    atomic_store_explicit(&rt->poll_site, site, memory_order_release);
    atomic_store_explicit(&rt->poll_task, task, memory_order_release);
    atomic_store_explicit(&rt->poll_number, n + 1, memory_order_release);
}

/* The even number publishes nothing, so it needs no order; the stores of the next poll order it. */
static inline void ebb__watch_end(ebb_runtime *rt) {
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_relaxed);
    assert(n % 2 == 1);
    atomic_store_explicit(&rt->poll_number, n + 1, memory_order_relaxed);
}

#endif
