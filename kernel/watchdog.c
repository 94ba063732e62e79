#include "kernel/watchdog.h"

/* Hooks run anywhere, even inside a poll. The long poll is then reported with the name of the hook. */
void ebb__watch_name(ebb_runtime *rt, uint64_t id, const char *site) {
    atomic_store_explicit(&rt->poll_site, site, memory_order_release);
    atomic_store_explicit(&rt->poll_task, id, memory_order_release);
}

ebb__watched ebb__watch_enter(ebb_runtime *rt, uint64_t id, const char *site) {
    if (EBB__LIKELY(!rt->watched)) return (ebb__watched){false, 0, NULL};
    ebb__watched outer = {atomic_load_explicit(&rt->poll_number, memory_order_relaxed) % 2 == 1,
                          atomic_load_explicit(&rt->poll_task, memory_order_relaxed),
                          atomic_load_explicit(&rt->poll_site, memory_order_relaxed)};
    if (outer.inside) ebb__watch_name(rt, id, site);
    else ebb__watch_begin(rt, id, site);
    return outer;
}

void ebb__watch_leave(ebb_runtime *rt, ebb__watched outer) {
    if (EBB__LIKELY(!rt->watched)) return;
    if (outer.inside) ebb__watch_name(rt, outer.id, outer.site);
    else ebb__watch_end(rt);
}

ebb_status ebb_watchdog_check(const ebb_runtime *rt, ebb_watchdog *w, uint64_t now, ebb_work *out) {
    /* Acquire: a reader of the odd number also sees the stores before it. */
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_acquire);
    if (n != w->poll) {
        *w = (ebb_watchdog){n, now, 0};
        return EBB_OK;
    }
    if (n % 2 == 0) return EBB_OK;
    uint64_t age = now - w->since;
    uint64_t due = w->reported == 0 ? EBB_SECOND : w->reported + 10 * EBB_SECOND;
    if (age < due) return EBB_OK;
    /* Acquire, so that the number read after these fields is not older than they are. */
    *out = (ebb_work){atomic_load_explicit(&rt->poll_task, memory_order_acquire),
                      atomic_load_explicit(&rt->poll_site, memory_order_acquire)};
    if (atomic_load_explicit(&rt->poll_number, memory_order_relaxed) != n) return EBB_OK;
    w->reported = age;
    return EBB_TIMEOUT;
}
