/* What a watchdog in another thread can see: which poll, finalizer, hook or callback runs now, and where it is
 * from. */
#ifndef EBB__WATCHDOG_H
#define EBB__WATCHDOG_H

#include "kernel/rt.h"

/* The number is odd while something runs. Its release publishes the two stores before it. */
static inline void ebb__watch_begin(ebb_rt *rt, uint64_t task, const char *site) {
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_relaxed); /* only we write it */
    atomic_store_explicit(&rt->poll_site, site, memory_order_relaxed);
    atomic_store_explicit(&rt->poll_task, task, memory_order_relaxed);
    atomic_store_explicit(&rt->poll_number, n + 1, memory_order_release);
}

/* The even number publishes nothing, so it needs no order. */
static inline void ebb__watch_end(ebb_rt *rt) {
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_relaxed);
    atomic_store_explicit(&rt->poll_number, n + 1, memory_order_relaxed);
}

/* Hooks run at any place, also inside a poll: then it is the poll that takes so long, but the hook is named. */
typedef struct ebb__watched {
    bool inside;
    uint64_t id;
    const char *site;
} ebb__watched;

static inline void ebb__watch_name(ebb_rt *rt, uint64_t id, const char *site) {
    atomic_store_explicit(&rt->poll_site, site, memory_order_release);
    atomic_store_explicit(&rt->poll_task, id, memory_order_release);
}

static inline ebb__watched ebb__watch_enter(ebb_rt *rt, uint64_t id, const char *site) {
    if (EBB__LIKELY(!rt->watched)) return (ebb__watched){false, 0, NULL};
    ebb__watched outer = {atomic_load_explicit(&rt->poll_number, memory_order_relaxed) % 2 == 1,
                          atomic_load_explicit(&rt->poll_task, memory_order_relaxed),
                          atomic_load_explicit(&rt->poll_site, memory_order_relaxed)};
    if (outer.inside) ebb__watch_name(rt, id, site);
    else ebb__watch_begin(rt, id, site);
    return outer;
}

static inline void ebb__watch_leave(ebb_rt *rt, ebb__watched outer) {
    if (EBB__LIKELY(!rt->watched)) return;
    if (outer.inside) ebb__watch_name(rt, outer.id, outer.site);
    else ebb__watch_end(rt);
}

#endif
