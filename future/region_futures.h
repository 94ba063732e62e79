/* The futures of one region, and the callback runner that runs their callbacks.
 *
 * Every pending future of the region is a member, and so is every held object. The callback runner cancels the
 * members with the region. An entry of `members` is the cell's address with three flags in its low bits: the cell is
 * held; the future was notified of the close; a temporary flag of cancel_spared. A future that has ended stays in the
 * queue until the callback runner has notified its waiters.
 *
 * Invariants: a member's cell has its index; a queued future is a member; `producers` counts futures whose operation
 * has not ended, and while there are any, the callback runner does not end by itself. Without a callback runner all
 * members have ended, except those that an abandoned runner left. The region still holds its members until it closes,
 * and gets another callback runner if more are made. After the close this record stays until the last producer has
 * ended. */
#ifndef EBB__FUTURE_REGION_FUTURES_H
#define EBB__FUTURE_REGION_FUTURES_H

#include "base/arena.h"
#include "future/heap.h"

typedef struct ebb__due {
    uint64_t at, order;
    struct ebb_future *future;
} ebb__due;

struct ebb__region_futures {
    ebb__callbacks callbacks; /* the kernel's functions for a region with callbacks */
    ebb__heap *heap;
    uint32_t index;
    ebb_region region;
    ebb_task runner;
    ebb_cx *cx;         /* of the callback runner; NULL: it has ended */
    bool running;       /* the callback runner is being polled */
    bool shut;          /* in its last poll: new futures are refused */
    bool cancel_seen;   /* the region's cancel was applied to the members */
    bool spared;        /* some members were spared by the cancel */
    bool spared_queued; /* some of those are queued, and their inputs are yet to be spared */
    bool listens;       /* some members may have to be notified of the close */
    bool closed;        /* they were notified */
    bool ending;        /* futures are being ended or released without a callback runner */
    bool let_go;        /* the region is closed and holds nothing */
    uintptr_t *members;
    uint32_t members_n, members_room;
    uint32_t room; /* members_room; 0 without a callback runner, so that a new member takes the slow path */
    uint32_t producers;
    /* without a callback runner: members that other threads have ended and whose messages are to come */
    uint32_t expected;
    struct ebb_future *first, *last; /* the queue */
    uint8_t stage;                   /* stage of the first in the queue */
    ebb__due *dues;                  /* timers, a binary heap */
    uint32_t dues_n, dues_room;
    uint64_t due_order;
    ebb_timer timer; /* armed for the first of `dues` */
    uint64_t timer_at;
    ebb__arena arena;
};

static inline ebb__region_futures *ebb__region_futures_at(const ebb__heap *h, uint32_t i) {
    return (uintptr_t)h->regions[i] & 1 ? NULL : h->regions[i];
}

static inline ebb__cell *ebb__member_cell(uintptr_t m) {
    return (ebb__cell *)(m & ~(uintptr_t)7);
}

/* The futures of cx's region; NULL: it has none. */
static inline ebb__region_futures *ebb__region_futures_here(const ebb_cx *cx) {
    return (ebb__region_futures *)(void *)ebb__callbacks_of(cx);
}

/* The futures of cx's region, made if there are none, with room for one more member. NULL and *st: EBB_ERR_NOMEM,
 * EBB_ERR_CLOSED, EBB_ERR_THREAD. */
ebb__region_futures *ebb__region_futures_slow(ebb_cx *cx, ebb_status *st);
static inline ebb__region_futures *ebb__region_futures_get(ebb_cx *cx, ebb_status *st) {
    ebb__region_futures *s = ebb__region_futures_here(cx);
    if (EBB__LIKELY(s != NULL && s->members_n < s->room && s->heap->thread == ebb__this_thread())) return s;
    return ebb__region_futures_slow(cx, st);
}

/* Adds a member, held. The caller has made sure of the room. */
static inline void ebb__member_add(ebb__region_futures *s, ebb__cell *c) {
    c->region = s->index;
    s->members[s->members_n++] = (uintptr_t)c | 1;
    c->member = s->members_n;
}
void ebb__member_remove(ebb__region_futures *s, ebb__cell *c);

static inline ebb__region_futures *ebb__region_futures_of_cell(ebb__heap *h, const ebb__cell *c) {
    return h->regions[c->region & ~EBB__CELL_FLAGS];
}

/* Wakes the callback runner. */
void ebb__region_futures_wake(ebb__region_futures *s);

/* Makes sure that there is a callback runner, a new one if the last has ended. EBB_ERR_CLOSED: the region is closed;
 * EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__region_futures_ensure_runner(ebb_cx *cx, ebb__region_futures *s);

/* Sets the timer of f, which is a member. The timer does not outlive the membership. EBB_ERR_NOMEM. */
ebb_status ebb__due_add(ebb__region_futures *s, struct ebb_future *f, uint64_t at);
void ebb__due_remove(ebb__region_futures *s, struct ebb_future *f);

/* This layer's hooks in the kernel. */
extern const ebb__layer ebb__future_layer;
void ebb__futures_free(ebb_runtime *rt);
/* Frees the record. */
void ebb__region_futures_free(ebb__region_futures *s);
/* The same if the region is closed and neither a producer nor a message is to come. */
void ebb__region_futures_maybe_free(ebb__region_futures *s);

#endif
