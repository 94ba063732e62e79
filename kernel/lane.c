#include "kernel/lane.h"

#include <assert.h>

#include "kernel/record.h"

static void moved(void *ctx, uint32_t item, uint32_t pos) {
    ebb__task_at(ctx, item)->qpos = pos;
}

void ebb__lane_start(ebb_runtime *rt) {
    ebb__run_queue_init(&rt->run_queues, rt->queue, EBB__QUEUES, moved, rt);
    rt->cancel_base = rt->now >> EBB__BUCKET_SHIFT;
}

void ebb__lane_stop(ebb_runtime *rt) {
    ebb__run_queue_fini(&rt->run_queues, &rt->allocator);
    ebb__free(&rt->allocator, rt->timed.heap, rt->timed.room * sizeof *rt->timed.heap);
}

bool ebb__timed_admit(ebb_runtime *rt) {
    ebb__timed *h = &rt->timed;
    if (h->members < h->room) return true;
    uint32_t room = h->room == 0 ? 16 : h->room * 2;
    void *p = ebb__resize(&rt->allocator, h->heap, h->room * sizeof *h->heap, room * sizeof *h->heap);
    if (p == NULL) return false;
    h->heap = p;
    h->room = room;
    return true;
}

/* ---- timed: a heap ------------------------------------------------------------------------------------- */

static bool before(const struct ebb__timed_entry *a, const struct ebb__timed_entry *b) {
    if (a->deadline != b->deadline) return a->deadline < b->deadline;
    if (a->rank >> 24 != b->rank >> 24) return a->rank < b->rank;
    return (int32_t)((a->rank - b->rank) << 8) < 0; /* arrivals wrap: compare differences */
}

static void place(ebb_runtime *rt, uint32_t i, struct ebb__timed_entry e) {
    rt->timed.heap[i] = e;
    ebb__task_at(rt, e.task)->qpos = i;
}

static void sift_up(ebb_runtime *rt, uint32_t i, struct ebb__timed_entry e) {
    while (i > 0 && before(&e, &rt->timed.heap[(i - 1) / 2])) {
        place(rt, i, rt->timed.heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(rt, i, e);
}

static void timed_push(ebb_runtime *rt, ebb__task *t, uint64_t deadline) {
    ebb__timed *h = &rt->timed;
    assert(h->n < h->room && h->n < h->members); /* its place was reserved when the task was spawned */
    uint32_t rank = (uint32_t)(255 - ebb__cold_at(rt, t->index)->priority) << 24 | (h->arrivals++ & 0xffffff);
    sift_up(rt, h->n++, (struct ebb__timed_entry){deadline, rank, t->index});
}

static void timed_remove(ebb_runtime *rt, uint32_t i) {
    ebb__timed *h = &rt->timed;
    assert(i < h->n);
    struct ebb__timed_entry e = h->heap[--h->n];
    if (i == h->n) return;
    if (i > 0 && before(&e, &h->heap[(i - 1) / 2])) {
        sift_up(rt, i, e);
        return;
    }
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= h->n) break;
        if (c + 1 < h->n && before(&h->heap[c + 1], &h->heap[c])) c++;
        if (!before(&h->heap[c], &e)) break;
        place(rt, i, h->heap[c]);
        i = c;
    }
    place(rt, i, e);
}

/* ---- cancel: buckets by deadline ----------------------------------------------------------------------- */

/* Bucket numbers are absolute; the 64 from cancel_base on have a queue each. An earlier or later deadline goes to
 * the nearest of them. The base follows the clock but never passes a member. */
static inline unsigned first_from_base(const ebb_runtime *rt) {
    unsigned at = rt->cancel_base & 63;
    return (unsigned)__builtin_ctzll(rt->cancel_buckets >> at | rt->cancel_buckets << (-at & 63));
}

void ebb__lane_time(ebb_runtime *rt) {
    uint64_t now = rt->now >> EBB__BUCKET_SHIFT;
    if (rt->cancel_base >= now) return;
    if (rt->cancel_buckets == 0) {
        rt->cancel_base = now;
        return;
    }
    uint64_t first = rt->cancel_base + first_from_base(rt);
    rt->cancel_base = first < now ? first : now;
}

bool ebb__due_sooner(ebb_runtime *rt, const ebb__task *t, uint64_t deadline) {
    uint32_t b = ebb__bucket_of(rt, deadline), base = (uint32_t)(rt->cancel_base & 63);
    return ((b - base) & 63) < (((t->queue >> 2) - base) & 63);
}

static inline uint32_t first_bucket(const ebb_runtime *rt) {
    return ((uint32_t)rt->cancel_base + first_from_base(rt)) & 63;
}

static void bucket_emptied(ebb_runtime *rt, uint32_t b) {
    rt->cancel_buckets &= ~(UINT64_C(1) << b);
    ebb__lane_time(rt);
}

uint64_t ebb__cleanup_deadline(const ebb_runtime *rt, const ebb__task *t) {
    uint64_t d = EBB_FOREVER;
    const ebb__region *r = ebb__region_at(rt, t->region);
    if (r->request != 0) d = r->cleanup_end;
    if (t->flags & F_OWN_CANCEL) {
        const ebb__cold *c = ebb__cold_at(rt, t->index);
        uint64_t kept = ebb__own_kept(c);
        uint64_t own = c->node.due > EBB_FOREVER - kept ? EBB_FOREVER : c->node.due + kept;
        if (own < d) d = own;
    }
    return d;
}

/* ---- all lanes ----------------------------------------------------------------------------------------- */

void ebb__enqueue_cancelled(ebb_runtime *rt, ebb__task *t, uint64_t deadline) {
    assert(t->queue == EBB_LANE_NONE && t->phase != EBB_TASK_COMPLETED);
    uint32_t b = ebb__bucket_of(rt, deadline);
    t->queue = (uint8_t)(EBB_LANE_CANCEL | b << 2);
    t->qpos = ebb__run_queue_push(&rt->run_queues, &rt->queue[b], t->index);
    rt->cancel_buckets |= UINT64_C(1) << b;
    rt->cancel_count++;
}

void ebb__enqueue_slow(ebb_runtime *rt, ebb__task *t) {
    if (t->request != 0) {
        ebb__enqueue_cancelled(rt, t, ebb__cleanup_deadline(rt, t));
        return;
    }
    uint64_t d = ebb__region_at(rt, t->region)->deadline;
    if (t->flags & F_NODE && ebb__cold_at(rt, t->index)->node.due < d) {
        d = ebb__cold_at(rt, t->index)->node.due;
    }
    if (t->flags & F_CLOSER) d = 0; /* a supervisor comes first: it enforces the deadlines of others */
    t->queue = EBB_LANE_TIMED;
    timed_push(rt, t, d);
}

void ebb__dequeue(ebb_runtime *rt, ebb__task *t) {
    switch (t->queue & 3) {
    case EBB_LANE_CANCEL: {
        uint32_t b = t->queue >> 2;
        assert(rt->cancel_count > 0 && rt->queue[b].count > 0);
        ebb__run_queue_remove(&rt->run_queues, &rt->queue[b], t->qpos);
        if (rt->queue[b].count == 0) bucket_emptied(rt, b);
        rt->cancel_count--;
        break;
    }
    case EBB_LANE_TIMED: timed_remove(rt, t->qpos); break;
    case EBB_LANE_READY:
        if (rt->ready_first == t) rt->ready_first = NULL;
        else ebb__run_queue_remove(&rt->run_queues, &rt->queue[EBB__READY], t->qpos);
        break;
    default: break;
    }
    t->queue = EBB_LANE_NONE;
}

uint32_t ebb__lane_count(const ebb_runtime *rt, ebb_lane lane) {
    switch (lane) {
    case EBB_LANE_CANCEL: return rt->cancel_count;
    case EBB_LANE_TIMED: return rt->timed.n;
    case EBB_LANE_READY: return ebb__ready_count(rt);
    default: return 0;
    }
}

/* The nth member near the head, for the lab; searches two blocks. */
static ebb__task *pick_queue(ebb_runtime *rt, ebb__queue *q, uint32_t nth) {
    uint32_t seen = 0;
    uint32_t *at = q->take, *end = q->take_end;
    for (uint32_t b = q->head, n = 0; b != 0 && n < 2; n++) {
        for (; at != end && !(b == q->tail && at == q->put); at++) {
            if (*at == 0 || seen++ != nth) continue;
            ebb__task *t = ebb__task_at(rt, *at);
            ebb__dequeue(rt, t);
            return t;
        }
        b = ebb__run_queue_block(&rt->run_queues, b)->next;
        if (b == 0) break;
        at = ebb__run_queue_block(&rt->run_queues, b)->item;
        end = at + EBB__BLOCK_ITEMS;
    }
    return NULL;
}

ebb__task *ebb__lane_pop_slow(ebb_runtime *rt, ebb_lane lane) {
    if (lane == EBB_LANE_TIMED) {
        assert(rt->timed.n > 0);
        ebb__task *t = ebb__task_at(rt, rt->timed.heap[0].task);
        timed_remove(rt, 0);
        t->queue = EBB_LANE_NONE;
        return t;
    }
    assert(rt->cancel_count > 0 && rt->cancel_buckets != 0);
    uint32_t b = first_bucket(rt);
    ebb__task *t = ebb__queue_pop(rt, &rt->queue[b]);
    rt->cancel_count--;
    if (rt->queue[b].count == 0) bucket_emptied(rt, b);
    return t;
}

ebb__task *ebb__lane_pick(ebb_runtime *rt, ebb_lane lane, uint32_t nth) {
    ebb__task *t = NULL;
    if (nth > 0 && lane == EBB_LANE_CANCEL) t = pick_queue(rt, &rt->queue[first_bucket(rt)], nth);
    if (nth > 0 && lane == EBB_LANE_READY) {
        t = pick_queue(rt, &rt->queue[EBB__READY], nth - (rt->ready_first != NULL));
    }
    return t != NULL ? t : ebb__lane_pop(rt, lane);
}

void ebb__wake_slow(ebb_runtime *rt, ebb__task *t) {
    if (t->flags & F_POLLING) {
        if (t->flags & F_REWAKE) return;
        t->flags |= F_REWAKE;
    } else {
        if (t->queue != EBB_LANE_NONE) return;
        ebb__enqueue(rt, t);
    }
    ebb__emit_task(rt, EBB_EV_TASK_WOKEN, t, (uint32_t)ebb__lane_of(t),
                   rt->current == NULL ? 0 : ebb__task_id(rt->current));
}

ebb_status ebb_task_wake(ebb_cx *cx, ebb_task task) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    ebb__journal(rt, cx, (ebb_record){.type = J_WAKE, .task = task.id});
    if (st == EBB_OK && t->phase != EBB_TASK_COMPLETED) {
        ebb__wake(rt, t);
        return EBB_OK;
    }
    if (st == EBB_ERR_STALE || st == EBB_OK) {
        rt->stats.stale_wakes++;
        ebb__emit_plain(rt, EBB_EV_STALE_WAKE, task.id, 0, 0, 0);
        return EBB_ERR_STALE;
    }
    return st;
}
