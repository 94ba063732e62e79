/* kernel/poll_times.c - how long polls take, while somebody looks.
 *
 * Off, it costs nothing: a poll takes the same branch that a watchdog's does. On, each poll reads the clock twice and
 * writes one slot of a table. Two tasks may want the same slot; the one whose polls have taken longer keeps it, as in
 * the majority vote of Boyer and Moore: the votes are nanoseconds. The measuring ends by itself, at the end of the
 * first poll after `until`: whoever looks need not say that they have left. */
#include "kernel/poll_times.h"

#include "base/alloc.h"

enum { SLOTS = 1024 };

struct ebb__poll_times {
    uint64_t since, until;
    bool watched; /* also without it */
    ebb__poll_time all, longest;
    uint64_t by_length[EBB__POLL_TIMES];
    struct {
        ebb__poll_time time;
        uint64_t votes;
    } slot[SLOTS];
};

static void add(ebb__poll_time *p, uint64_t took) {
    p->polls++;
    p->total_ns += took;
    if (took > p->max_ns) p->max_ns = took;
}

static void stop(ebb_runtime *rt) {
    rt->watched = rt->poll_times->watched;
    rt->observed = rt->watched || rt->recorded;
    ebb__free(&rt->allocator, rt->poll_times, sizeof *rt->poll_times);
    rt->poll_times = NULL;
}

void ebb__poll_took(ebb_runtime *rt, uint64_t task, const char *site, uint64_t began) {
    ebb__poll_times *m = rt->poll_times;
    uint64_t now = rt->clock(rt->clock_ctx), took = now > began ? now - began : 0;
    uint32_t i = (uint32_t)(task >> 32) % SLOTS;
    add(&m->all, took);
    m->by_length[ebb__time_class(took)]++;
    if (took >= m->longest.max_ns) m->longest = (ebb__poll_time){task, site, 1, took, took};
    if (m->slot[i].time.task != task) {
        if (m->slot[i].votes > took) {
            m->slot[i].votes -= took;
        } else {
            m->slot[i].time = (ebb__poll_time){.task = task, .site = site};
            m->slot[i].votes = 0;
        }
    }
    if (m->slot[i].time.task == task) {
        m->slot[i].votes += took;
        add(&m->slot[i].time, took);
    }
    if (now > m->until) stop(rt);
}

ebb_status ebb__poll_times_on(ebb_runtime *rt, uint64_t for_ns) {
    if (rt->clock == NULL) return EBB_ERR_INVALID;
    uint64_t now = rt->clock(rt->clock_ctx);
    if (rt->poll_times == NULL) {
        rt->poll_times = ebb__alloc(&rt->allocator, sizeof *rt->poll_times);
        if (rt->poll_times == NULL) return EBB_ERR_NOMEM;
        memset(rt->poll_times, 0, sizeof *rt->poll_times);
        rt->poll_times->since = now;
        rt->poll_times->watched = rt->watched;
        rt->watched = rt->observed = true;
    }
    rt->poll_times->until = now + for_ns;
    return EBB_OK;
}

void ebb__poll_times_free(ebb_runtime *rt) {
    if (rt->poll_times != NULL) stop(rt);
}

bool ebb__poll_times_of(const ebb_runtime *rt, uint64_t *since, ebb__poll_time *all,
                        ebb__poll_time *longest) {
    const ebb__poll_times *m = rt->poll_times;
    if (m == NULL) return false;
    *since = m->since;
    *all = m->all;
    *longest = m->longest;
    return true;
}

const uint64_t *ebb__poll_times_by_length(const ebb_runtime *rt) {
    return rt->poll_times != NULL ? rt->poll_times->by_length : NULL;
}

bool ebb__poll_time_of(const ebb_runtime *rt, uint64_t task, ebb__poll_time *out) {
    const ebb__poll_times *m = rt->poll_times;
    uint32_t i = (uint32_t)(task >> 32) % SLOTS;
    if (m == NULL || m->slot[i].time.task != task) return false;
    *out = m->slot[i].time;
    return true;
}

uint32_t ebb__poll_times_most(const ebb_runtime *rt, ebb__poll_time *out, uint32_t most) {
    const ebb__poll_times *m = rt->poll_times;
    uint32_t n = 0;
    for (uint32_t i = 0; m != NULL && i < SLOTS; i++) {
        const ebb__poll_time *p = &m->slot[i].time;
        if (p->polls == 0 || (n == most && p->total_ns <= out[n - 1].total_ns)) continue;
        uint32_t at = n < most ? n++ : most - 1;
        for (; at > 0 && out[at - 1].total_ns < p->total_ns; at--) out[at] = out[at - 1];
        out[at] = *p;
    }
    return n;
}
