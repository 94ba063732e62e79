/* The ends of tasks and regions as futures. The heap has a map from the id to the first of the futures that wait for
 * its end; the others are linked to that one. Invariant: a future is in the list of its id while `key` is not 0. */
#include "future/ended.h"

typedef struct ender {
    ebb_future future;
    uint64_t key;
    struct ender *next, *prev; /* prev NULL: the first, which the map has */
} ender;

/* A task and a region may have the same id. */
static uint64_t key_of_task(ebb_task task) {
    return task.id ^ UINT64_C(0xff) << 56;
}

static void leave(ebb_future *f) {
    ender *e = (ender *)(void *)f;
    ebb__heap *h = ebb__heap_of(f);
    if (e->key == 0) return;
    if (e->next != NULL) e->next->prev = e->prev;
    if (e->prev != NULL) e->prev->next = e->next;
    else if (e->next == NULL) ebb__map_remove(&h->ends, e->key);
    else *(ender **)ebb__map_find(&h->ends, e->key) = e->next;
    e->key = 0;
}

static bool cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    (void)s;
    (void)work;
    leave(f);
    return true;
}

static ebb_status join(ender *e, uint64_t key) {
    ender **first = ebb__map_put(&ebb__heap_of(e)->ends, key);
    if (first == NULL) return EBB_ERR_NOMEM;
    e->key = key;
    e->next = *first;
    if (e->next != NULL) e->next->prev = e;
    *first = e;
    return EBB_OK;
}

void ebb__observed_ended(ebb_runtime *rt, ebb_task task, ebb_region region) {
    ebb__heap *h = ebb__heap_at(rt);
    uint64_t key = task.id != 0 ? key_of_task(task) : region.id;
    for (ender **first; (first = ebb__map_find(&h->ends, key)) != NULL;) {
        ebb_future *f = &(*first)->future;
        leave(f);
        (void)ebb__complete(f, ebb_value_none());
    }
}

#define ENDER(word)                                                                                          \
    {                                                                                                        \
        .type = {word, sizeof(ender), ebb__trace_future, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE},            \
        .cancelled = cancelled, .leave = leave,                                                              \
    }

static const ebb__kind task_kind = ENDER("end of a task");
static const ebb__kind region_kind = ENDER("end of a region");

/* `st` is that of looking for the id. What has ended already is no failure. */
static ebb_future *wait_for(ebb_cx *cx, const ebb__kind *kind, uint64_t key, ebb_status st,
                            const char *site) {
    if (st == EBB_ERR_STALE) return ebb_future_ready_site(cx, ebb_value_none(), site);
    ebb_future *f = st == EBB_OK ? ebb__future_new(cx, kind, site, &st) : NULL;
    if (f == NULL) return ebb__failed(st);
    st = join((ender *)(void *)f, key);
    if (st != EBB_OK) (void)ebb__fail_with(f, st);
    return f;
}

ebb_future *ebb_task_ended_site(ebb_cx *cx, ebb_task task, const char *site) {
    if (!ebb__is_host(cx) && task.id == ebb_cx_task(cx).id) return ebb__failed(EBB_ERR_INVALID);
    return wait_for(cx, &task_kind, key_of_task(task), ebb__task_observe(cx, task), site);
}

/* Whether the caller's region is `top` or below it. */
static bool is_inside(const ebb_cx *cx, const ebb__region *top) {
    const ebb__region *r = ebb__region_of(cx);
    while (r != NULL && r != top) r = ebb__region_parent(ebb__rt_of(cx), r);
    return r == top;
}

ebb_future *ebb_region_closed_site(ebb_cx *cx, ebb_region region, const char *site) {
    ebb__region *r;
    ebb_status st = ebb__region_get(ebb__rt_of(cx), region, &r);
    if (st == EBB_OK && is_inside(cx, r)) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__region_observe(cx, region);
    ebb_future *f = wait_for(cx, &region_kind, region.id, st, site);
    if (st == EBB_OK && ebb__region_is_owned(cx, r)) ebb__region_joining(cx, region);
    return f;
}
