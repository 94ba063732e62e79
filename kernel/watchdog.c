#include "kernel/watchdog.h"

ebb_status ebb_watchdog_check(const ebb_rt *rt, ebb_watchdog *w, uint64_t now, ebb_blame *out) {
    /* Acquire: with the odd number the stores before it are seen. */
    uint64_t n = atomic_load_explicit(&rt->poll_number, memory_order_acquire);
    if (n != w->poll) {
        *w = (ebb_watchdog){n, now, 0};
        return EBB_OK;
    }
    if (n % 2 == 0) return EBB_OK;
    uint64_t age = now - w->since;
    uint64_t due = w->reported == 0 ? EBB_SECOND : w->reported + 10 * EBB_SECOND;
    if (age < due) return EBB_OK;
    /* Acquire, so that the number read after them is not an older one than they belong to. */
    *out = (ebb_blame){atomic_load_explicit(&rt->poll_task, memory_order_acquire),
                       atomic_load_explicit(&rt->poll_site, memory_order_acquire)};
    if (atomic_load_explicit(&rt->poll_number, memory_order_relaxed) != n) return EBB_OK;
    w->reported = age;
    return EBB_TIMEOUT;
}
