/* Broadcast. Invariant: a waiter in the queue has seen the latest version, for it joins only then, and every new
 * version empties the queue. */
#include "sched/broadcast.h"
#include "base/alloc.h"
#include "kernel/wait.h"

#include <string.h>

struct ebb_broadcast {
    ebb_runtime *rt;
    uint64_t version; /* 0: nothing was set yet */
    uint32_t item_size;
    uint32_t keeps; /* waiting futures: the broadcast stays allocated */
    bool closed;
    bool freed; /* by its owner */
    ebb_wait *first, *last;
    ebb_allocator allocator; /* a copy: the runtime may be freed before the broadcast */
    char item[];
};

ebb_status ebb_broadcast_new(ebb_runtime *rt, uint32_t item_size, ebb_broadcast **out) {
    *out = NULL;
    if (item_size > INT32_MAX) return EBB_ERR_INVALID;
    ebb_broadcast *b = ebb__alloc(&rt->allocator, sizeof *b + item_size);
    if (b == NULL) return EBB_ERR_NOMEM;
    *b = (ebb_broadcast){.rt = rt, .item_size = item_size, .allocator = rt->allocator};
    *out = b;
    return EBB_OK;
}

static void release_memory(ebb_broadcast *b) {
    ebb_allocator a = b->allocator;
    ebb__free(&a, b, sizeof *b + b->item_size);
}

static void shut(ebb_broadcast *b) {
    b->closed = true;
    ebb__waiters_end(&b->first, &b->last, ebb__wake_waiter);
}

void ebb_broadcast_free(ebb_broadcast *b) {
    if (b == NULL) return;
    b->keeps++; /* the last waiter may release it */
    b->freed = true;
    if (b->keeps > 1) shut(b);
    ebb__broadcast_release(b);
}

void ebb_broadcast_close(ebb_cx *cx, ebb_broadcast *b) {
    (void)cx;
    shut(b);
}

/* ---- values ----------------------------------------------------------------------------------------------- */

ebb_status ebb_broadcast_set(ebb_cx *cx, ebb_broadcast *b, const void *item) {
    (void)cx;
    if (b->closed) return EBB_ERR_CLOSED;
    if (b->item_size != 0) memcpy(b->item, item, b->item_size);
    b->version++;
    for (ebb_wait *w; (w = ebb__waiters_grant(&b->first)) != NULL;) {
        if (ebb__waiter_is_task(w)) ebb__wake_waiter(w);
        else (void)ebb__waiter_notify(w);
    }
    return EBB_OK;
}

uint64_t ebb_broadcast_get(const ebb_broadcast *b, void *item) {
    if (b->version != 0 && b->item_size != 0) memcpy(item, b->item, b->item_size);
    return b->version;
}

static void next_leave(ebb_wait *w) {
    ebb_broadcast *b = w->on;
    if (!w->granted) ebb__waiters_remove(&b->first, &b->last, w);
}

static const ebb_wait_kind waiting = {"broadcast", next_leave};

static ebb_status leave(ebb_wait *w, ebb_status st) {
    if (w->cx != NULL) {
        next_leave(w);
        ebb__wait_end(w);
    }
    return st;
}

static ebb_status next(ebb_cx *cx, ebb_broadcast *b, ebb_wait *w, uint64_t *seen, void *item) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (b->version > *seen) {
        *seen = ebb_broadcast_get(b, item);
        return leave(w, EBB_OK);
    }
    if (b->version < *seen) return leave(w, EBB_ERR_INVALID);
    if (b->closed) return leave(w, EBB_ERR_CLOSED);
    if (w->cx != NULL) return EBB_PENDING;
    ebb_status st = ebb__wait_begin(cx, w, &waiting, b);
    if (st == EBB_PENDING) ebb__waiters_add(&b->first, &b->last, w);
    return st;
}

ebb_status ebb_broadcast_next(ebb_cx *cx, ebb_broadcast *b, ebb_wait *w, uint64_t *seen, void *item) {
    ebb_status st;
    EBB__AWAIT(cx, st, next(cx, b, w, seen, item));
    return st;
}

/* ---- futures ---------------------------------------------------------------------------------------------- */

ebb_runtime *ebb__broadcast_runtime(const ebb_broadcast *b) {
    return b->rt;
}

uint64_t ebb__broadcast_version(const ebb_broadcast *b) {
    return b->version;
}

void ebb__broadcast_keep(void *p) {
    ((ebb_broadcast *)p)->keeps++;
}

void ebb__broadcast_release(void *p) {
    ebb_broadcast *b = p;
    if (--b->keeps == 0 && b->freed) release_memory(b);
}

ebb_status ebb__broadcast_join(void *p, ebb_wait *w) {
    ebb_broadcast *b = p;
    if (b->closed) return EBB_ERR_CLOSED;
    ebb__waiters_add(&b->first, &b->last, w);
    return EBB_PENDING;
}

void ebb__broadcast_leave(void *p, ebb_wait *w) {
    ebb_broadcast *b = p;
    ebb__waiters_remove(&b->first, &b->last, w);
}
