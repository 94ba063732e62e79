/* A channel between two runtimes.
 *
 * The items stand in a ring that both threads see: the sending side alone moves `tail`, the receiving side
 * `head`. Each side serves its own waiters, as a channel does (see sched/chan.c): a place or an item is
 * granted to the first of them, counted in `granted`, and taken when that one is polled.
 *
 * Who finds nothing for a waiter wants the other side's bell. What holds: while somebody waits, WANTED or
 * RUNG is set in this side's `bell`, and the other's index was looked at after WANTED was set. Whoever moves
 * an index looks at the other's bell after that. Both pairs are sequentially consistent: so either the one
 * sees the index, or the other sees that it is wanted, and no wake is lost. One letter a side is under way at
 * most (RUNG), however often it is rung.
 *
 * The end: `sealed` says that nothing will be sent any more, and only the sending side may say it, or be
 * found dead. The receiving side asks for it. So whoever sees `sealed` and then no item has had them all. */
#include "base/alloc.h"
#include "future/peer.h"
#include "sched/waiters.h"

enum { WANTED = 1, RUNG = 2, LINE = 64 /* bytes that two threads don't share */ };

/* What one side has. The bell and the letters apart, its own thread's. */
typedef struct side {
    ebb__message attach, detach, rung;
    ebb__tie tie;
    ebb_bridge *bridge;
    ebb__heap *heap;
    ebb_wait *first, *last; /* who waits, and is granted nothing */
    uint32_t granted;       /* to those who have not taken it yet */
    uint32_t seen;          /* the other's index, as last looked at */
    uint32_t index;         /* as published */
    uint32_t slot;          /* of the ring, that comes next */
    char apart[LINE];
    _Atomic uint32_t published; /* how many were sent, or received, modulo 2^32 */
    char apart_too[LINE];
    _Atomic uint32_t bell;
} side;

struct ebb_bridge {
    side from, to;
    _Atomic uint32_t users; /* references that users have */
    _Atomic uint32_t refs;  /* one for the users, one a tie, one a letter under way */
    _Atomic uint32_t sealed, asked;
    ebb_allocator allocator;
    uint32_t capacity, item_size;
    char items[];
};

static size_t bytes_of(const ebb_bridge *b) {
    return sizeof *b + (size_t)b->capacity * b->item_size;
}

static void keep(ebb_bridge *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed); /* the caller has one already */
}

static void release(ebb_bridge *b) {
    /* Release, so that what others did comes before; acquire for whoever frees it. */
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *from = b->from.heap, *to = b->to.heap;
    ebb_allocator a = b->allocator;
    ebb__free(&a, b, bytes_of(b));
    ebb__heap_release(from);
    ebb__heap_release(to);
}

/* ---- bells ------------------------------------------------------------------------------------------------------ */

/* Any thread but, by then, not the side's own. */
static void ring(side *s) {
    /* Acquire: if the letter is posted, its last taker has let go of it. Release: what was done before the
     * ringing is seen by whoever clears RUNG. */
    uint32_t before = atomic_exchange_explicit(&s->bell, RUNG, memory_order_acq_rel);
    if (before & RUNG) return;
    keep(s->bridge);
    if (!ebb__post(s->heap, &s->rung)) release(s->bridge);
}

static inline void ring_if_wanted(side *s) {
    /* Sequentially consistent: after the index that was just published. */
    if (EBB__UNLIKELY(atomic_load(&s->bell) & WANTED)) ring(s);
}

static void publish(side *s) {
    /* Sequentially consistent: before the look at the other's bell. As a release: the item was written, or
     * read, before. */
    atomic_store(&s->published, s->index);
}

/* Sequentially consistent: if the bell is wanted, after that was said. As an acquire: the items up to there
 * are to be read, or the places up to there to be written. */
static void look(side *s, const side *other) {
    s->seen = atomic_load(&other->published);
}

static bool is_sealed(const ebb_bridge *b) {
    /* Acquire, and before the look for items: what was sent before is seen. */
    return atomic_load(&b->sealed) != 0;
}

static void wake_all(ebb_wait *w) {
    for (; w != NULL; w = w->next) ebb__waiter_wake(w);
}

static bool grant(ebb_wait **first) {
    ebb_wait *w = ebb__waiters_grant(first);
    if (w != NULL) ebb__waiter_wake(w);
    return w != NULL;
}

/* ---- sending side ------------------------------------------------------------------------------------------------ */

static bool has_place(const ebb_bridge *b) {
    const side *s = &b->from;
    return s->index - s->seen + s->granted < b->capacity;
}

/* From here on nothing is sent. */
static void seal(ebb_bridge *b) {
    if (is_sealed(b)) return;
    atomic_store(&b->sealed, 1); /* sequentially consistent, as an index is */
    wake_all(b->from.first);
    ring_if_wanted(&b->to);
}

/* True if nothing may be sent any more. */
static inline bool shut(ebb_bridge *b) {
    /* Relaxed: whether this one comes before or after the other side's wish, nobody can tell. */
    if (EBB__UNLIKELY(atomic_load_explicit(&b->asked, memory_order_relaxed) != 0)) seal(b);
    return atomic_load_explicit(&b->sealed, memory_order_relaxed) != 0; /* this side's own */
}

static void grant_places(ebb_bridge *b) {
    side *s = &b->from;
    while (s->first != NULL && has_place(b) && grant(&s->first)) s->granted++;
}

/* A place, if the other side has made one by now; else its bell is wanted. */
static bool find_place(ebb_bridge *b) {
    side *s = &b->from;
    if (s->first != NULL) return false; /* that comes first; the bell is wanted already */
    if (has_place(b)) return true;
    look(s, &b->to);
    if (has_place(b)) return true;
    atomic_fetch_or(&s->bell, WANTED); /* sequentially consistent: before the look that follows */
    look(s, &b->to);
    return has_place(b);
}

static void send_leave(ebb_wait *w) {
    ebb_bridge *b = w->on;
    if (w->granted) {
        b->from.granted--;
        grant_places(b);
    } else {
        ebb__waiters_remove(&b->from.first, &b->from.last, w);
    }
}

static const ebb_wait_kind sending = {"bridge, to send", send_leave};

/* Ends a wait that did not get what it waited for. */
static ebb_status leave(ebb_wait *w, ebb_status st) {
    if (w->cx != NULL) {
        w->kind->cancel(w);
        ebb_wait_end(w);
    }
    return st;
}

static inline void put(ebb_bridge *b, const void *item) {
    side *s = &b->from;
    if (b->item_size != 0) memcpy(b->items + (size_t)s->slot * b->item_size, item, b->item_size);
    if (++s->slot == b->capacity) s->slot = 0;
    s->index++;
    publish(s);
    ring_if_wanted(&b->to);
}

/* EBB_OK: there is a place, and it is the caller's to use at once. */
static ebb_status get_place(ebb_cx *cx, ebb_bridge *b, ebb_wait *w) {
    if (shut(b)) return leave(w, EBB_ERR_CLOSED);
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL) {
        if (!w->granted) return EBB_PENDING;
        ebb_wait_end(w);
        b->from.granted--;
        return EBB_OK;
    }
    if (find_place(b)) return EBB_OK;
    ebb_status st = ebb_wait_begin(cx, w, &sending, b);
    if (st != EBB_OK) return st;
    ebb__waiters_add(&b->from.first, &b->from.last, w);
    return EBB_PENDING;
}

ebb_status ebb_bridge_send(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, const void *item) {
    if (ebb__heap_at(ebb__rt_of(cx)) != b->from.heap) return EBB_ERR_FOREIGN;
    ebb_status st;
    EBB__AWAIT(cx, st, get_place(cx, b, w));
    if (st == EBB_OK) put(b, item);
    return st;
}

/* ---- receiving side ---------------------------------------------------------------------------------------------- */

static bool has_item(const ebb_bridge *b) {
    const side *s = &b->to;
    return s->seen - s->index > s->granted;
}

/* Sealed, and the last item was taken. */
static bool is_over(ebb_bridge *b) {
    if (!is_sealed(b)) return false;
    look(&b->to, &b->from);
    return b->to.seen == b->to.index;
}

static void grant_items(ebb_bridge *b) {
    side *s = &b->to;
    while (s->first != NULL && has_item(b) && grant(&s->first)) s->granted++;
    if (s->first != NULL && is_over(b)) wake_all(s->first);
}

static bool find_item(ebb_bridge *b) {
    side *s = &b->to;
    if (s->first != NULL) return false; /* that comes first; the bell is wanted already */
    if (has_item(b)) return true;
    look(s, &b->from);
    if (has_item(b)) return true;
    atomic_fetch_or(&s->bell, WANTED); /* sequentially consistent: before the looks that follow */
    look(s, &b->from);
    return has_item(b);
}

static void recv_leave(ebb_wait *w) {
    ebb_bridge *b = w->on;
    if (w->granted) {
        b->to.granted--;
        grant_items(b);
    } else {
        ebb__waiters_remove(&b->to.first, &b->to.last, w);
    }
}

static const ebb_wait_kind receiving = {"bridge, to receive", recv_leave};

static inline void take(ebb_bridge *b, void *item) {
    side *s = &b->to;
    if (b->item_size != 0) memcpy(item, b->items + (size_t)s->slot * b->item_size, b->item_size);
    if (++s->slot == b->capacity) s->slot = 0;
    s->index++;
    publish(s);
    ring_if_wanted(&b->from);
    if (EBB__UNLIKELY(s->first != NULL) && is_over(b)) wake_all(s->first);
}

/* EBB_OK: there is an item, and it is the caller's to take at once. */
static ebb_status get_item(ebb_cx *cx, ebb_bridge *b, ebb_wait *w) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL) {
        if (!w->granted) return is_over(b) ? leave(w, EBB_ERR_CLOSED) : EBB_PENDING;
        ebb_wait_end(w);
        b->to.granted--;
        return EBB_OK;
    }
    if (find_item(b)) return EBB_OK;
    if (is_over(b)) return EBB_ERR_CLOSED;
    ebb_status st = ebb_wait_begin(cx, w, &receiving, b);
    if (st != EBB_OK) return st;
    ebb__waiters_add(&b->to.first, &b->to.last, w);
    return EBB_PENDING;
}

ebb_status ebb_bridge_recv(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, void *item) {
    if (ebb__heap_at(ebb__rt_of(cx)) != b->to.heap) return EBB_ERR_FOREIGN;
    ebb_status st;
    EBB__AWAIT(cx, st, get_item(cx, b, w));
    if (st == EBB_OK) take(b, item);
    return st;
}

/* The receiving side wants no more. */
static void ask(ebb_bridge *b) {
    /* Release: it comes with the letter, or is seen by the sender's next look. */
    atomic_store_explicit(&b->asked, 1, memory_order_release);
    ring(&b->from);
}

/* ---- letters ------------------------------------------------------------------------------------------------------ */

static void serve_senders(ebb_bridge *b) {
    side *s = &b->from;
    if (shut(b) || s->first == NULL) return;
    look(s, &b->to);
    grant_places(b);
    if (s->first == NULL) return;
    atomic_fetch_or(&s->bell, WANTED); /* sequentially consistent: before the look that follows */
    look(s, &b->to);
    grant_places(b);
}

static void serve_receivers(ebb_bridge *b) {
    side *s = &b->to;
    if (s->first == NULL) return;
    look(s, &b->from);
    grant_items(b);
    if (s->first == NULL) return;
    atomic_fetch_or(&s->bell, WANTED); /* sequentially consistent: before the looks that follow */
    look(s, &b->from);
    grant_items(b);
}

static void take_rung(ebb_runtime *rt, ebb__message *l) {
    side *s = (side *)(void *)((char *)l - offsetof(side, rung));
    ebb_bridge *b = s->bridge;
    /* Acquire: what came before the ringing. Release: the letter is out of the stack. */
    (void)atomic_exchange_explicit(&s->bell, 0, memory_order_acq_rel);
    if (rt != NULL && s == &b->from) serve_senders(b);
    else if (rt != NULL) serve_receivers(b);
    release(b);
}

/* The runtime of this side is no more: its waiters are gone with it. */
static void side_gone(side *s) {
    ebb_bridge *b = s->bridge;
    s->first = s->last = NULL;
    if (s == &b->from) seal(b);
    else ask(b);
}

static void take_attach(ebb_runtime *rt, ebb__message *l) {
    side *s = (side *)(void *)((char *)l - offsetof(side, attach));
    if (rt != NULL) {
        ebb__tie_add(ebb__heap_at(rt), &s->tie); /* which has the letter's reference now */
        return;
    }
    side_gone(s);
    release(s->bridge);
}

static void tie_gone(ebb__tie *tie) {
    side *s = (side *)(void *)((char *)tie - offsetof(side, tie));
    side_gone(s);
    release(s->bridge);
}

static void take_detach(ebb_runtime *rt, ebb__message *l) {
    side *s = (side *)(void *)((char *)l - offsetof(side, detach));
    ebb_bridge *b = s->bridge;
    if (rt != NULL && s->tie.at != NULL) {
        ebb__tie_remove(&s->tie);
        release(b);
    }
    release(b);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void side_init(side *s, ebb_bridge *b, ebb_peer *peer) {
    s->attach.take = take_attach;
    s->detach.take = take_detach;
    s->rung.take = take_rung;
    s->tie.gone = tie_gone;
    s->bridge = b;
    s->heap = ebb__heap_keep(ebb__peer_heap(peer));
    atomic_init(&s->published, 0);
    atomic_init(&s->bell, 0);
}

static void attach(side *s) {
    if (ebb__post(s->heap, &s->attach)) return;
    side_gone(s);
    release(s->bridge);
}

ebb_status ebb_bridge_new(ebb_peer *from, ebb_peer *to, uint32_t capacity, uint32_t item_size,
                          ebb_bridge **out) {
    *out = NULL;
    if (from == NULL || to == NULL) return EBB_ERR_INVALID;
    if (capacity == 0 || capacity > INT32_MAX || (uint64_t)capacity * item_size > INT32_MAX) {
        return EBB_ERR_INVALID;
    }
    ebb_allocator a = ebb__peer_heap(from)->allocator;
    size_t bytes = sizeof(ebb_bridge) + (size_t)capacity * item_size;
    ebb_bridge *b = ebb__alloc(&a, bytes);
    if (b == NULL) return EBB_ERR_NOMEM;
    memset(b, 0, sizeof *b);
    b->allocator = a;
    b->capacity = capacity;
    b->item_size = item_size;
    atomic_init(&b->users, 1);
    atomic_init(&b->refs, 3);
    side_init(&b->from, b, from);
    side_init(&b->to, b, to);
    attach(&b->from);
    attach(&b->to);
    *out = b;
    return EBB_OK;
}

ebb_bridge *ebb_bridge_keep(ebb_bridge *b) {
    atomic_fetch_add_explicit(&b->users, 1, memory_order_relaxed); /* the caller has one already */
    return b;
}

static void detach(side *s) {
    keep(s->bridge);
    if (!ebb__post(s->heap, &s->detach)) release(s->bridge);
}

void ebb_bridge_release(ebb_bridge *b) {
    if (b == NULL) return;
    /* Release, so that what others did with it comes before; acquire for the last. */
    if (atomic_fetch_sub_explicit(&b->users, 1, memory_order_acq_rel) != 1) return;
    detach(&b->from);
    detach(&b->to);
    release(b);
}

ebb_status ebb_bridge_close(ebb_cx *cx, ebb_bridge *b) {
    const ebb__heap *h = ebb__heap_at(ebb__rt_of(cx));
    if (h == b->from.heap) {
        seal(b);
        return EBB_OK;
    }
    if (h != b->to.heap) return EBB_ERR_FOREIGN;
    ask(b);
    return EBB_OK;
}
