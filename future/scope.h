/* A scope: the futures of one region, and the callback runner that runs what they need.
 *
 * Every pending future of the region is a member, and so is what is held; the callback runner cancels them with the
 * region. An entry is the cell's address, with a bit that says that it is held, one that it was told of the
 * close, and one that is set only while what was spared by a cancel is looked at again. A future that has ended stands in `queue` until the callback runner has told those who wait for
 * it.
 *
 * What holds: a member's cell knows its place; a queued future is a member; `producers` counts those whose
 * operation is not done yet, and while there are any the callback runner does not end by itself. Without a callback runner
 * all members have ended, but those that an abandoned one has left. The region holds them all the same until it
 * closes, and has another callback runner if somebody makes more. After that the scope lives on until the last producer
 * is done. */
#ifndef EBB__FUTURE_SCOPE_H
#define EBB__FUTURE_SCOPE_H

#include "base/arena.h"
#include "future/heap.h"

typedef struct ebb__due {
    uint64_t at, order;
    struct ebb_future *future;
} ebb__due;

struct ebb__scope {
    ebb__callbacks callbacks; /* the kernel's way to it */
    ebb__heap *heap;
    uint32_t index;
    ebb_region region;
    ebb_task runner;
    ebb_cx *cx;         /* the runner's; NULL: it has ended */
    bool running;       /* it is being polled */
    bool shut;          /* for the last time: nobody would serve what is made now */
    bool told;          /* the cancel of the region has reached the futures */
    bool spared;        /* there are members that were spared by the cancel */
    bool spared_queued; /* and of these some in the queue, whose inputs are still to be spared */
    bool listens;       /* there may be members that want to hear of the close */
    bool closed;        /* they have */
    bool ending;        /* the callback runner is over, and ends what is left */
    bool let_go;        /* the region is closed: nothing is held any more */
    uintptr_t *members;
    uint32_t members_n, members_room;
    uint32_t room; /* members_room; 0 without a callback runner, so that a new member has to look */
    uint32_t producers;
    uint32_t
        expected; /* without a callback runner: members that others have ended, whose letters are to come */
    struct ebb_future *first, *last; /* the queue */
    uint8_t stage;                   /* how far the first is */
    ebb__due *dues;                  /* timers: a binary heap */
    uint32_t dues_n, dues_room;
    uint64_t due_order;
    ebb_timer timer; /* armed for the first of them */
    uint64_t timer_at;
    ebb__arena arena;
};

static inline ebb__scope *ebb__scope_at(const ebb__heap *h, uint32_t i) {
    return (uintptr_t)h->scopes[i] & 1 ? NULL : h->scopes[i];
}

static inline ebb__cell *ebb__member_cell(uintptr_t m) {
    return (ebb__cell *)(m & ~(uintptr_t)7);
}

/* The scope of cx's region; NULL: it has none. */
static inline ebb__scope *ebb__scope_here(const ebb_cx *cx) {
    return (ebb__scope *)(void *)ebb__callbacks_of(cx);
}

/* The scope of cx's region, made if there is none; room for one more member. NULL and *st: EBB_ERR_NOMEM,
 * EBB_ERR_CLOSED, EBB_ERR_THREAD. */
ebb__scope *ebb__scope_slow(ebb_cx *cx, ebb_status *st);
static inline ebb__scope *ebb__scope_of(ebb_cx *cx, ebb_status *st) {
    ebb__scope *s = ebb__scope_here(cx);
    if (EBB__LIKELY(s != NULL && s->members_n < s->room && s->heap->thread == ebb__this_thread())) return s;
    return ebb__scope_slow(cx, st);
}

/* A new member, held. The room is there. */
static inline void ebb__member_add(ebb__scope *s, ebb__cell *c) {
    c->scope = s->index;
    s->members[s->members_n++] = (uintptr_t)c | 1;
    c->member = s->members_n;
}
void ebb__member_remove(ebb__scope *s, ebb__cell *c);

static inline ebb__scope *ebb__cell_scope(ebb__heap *h, const ebb__cell *c) {
    return h->scopes[c->scope & ~EBB__SCOPE_FLAGS];
}

/* The callback runner has something to do. */
void ebb__scope_wake(ebb__scope *s);

/* It has a callback runner, and another if the first has ended. EBB_ERR_CLOSED: too late; EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__scope_serve(ebb_cx *cx, ebb__scope *s);

/* A timer for f, which is a member, and no longer. EBB_ERR_NOMEM. */
ebb_status ebb__due_add(ebb__scope *s, struct ebb_future *f, uint64_t at);
void ebb__due_remove(ebb__scope *s, struct ebb_future *f);

/* Hooks of the runtime. */
extern const ebb__layer ebb__future_layer;
void ebb__futures_free(ebb_runtime *rt);
/* Frees a scope. */
void ebb__scope_free(ebb__scope *s);
/* The same if its region is closed and nothing is still to come. */
void ebb__scope_maybe_free(ebb__scope *s);

#endif
