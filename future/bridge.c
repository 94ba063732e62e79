/* A channel between two runtimes.
 *
 * The items are in a ring that both threads access. Only the sending side advances its index, and only the receiving
 * side its own. Each side grants places or items to its own waiters, as a channel does (sched/chan.c): a grant goes
 * to the first waiter, is counted in `granted`, and is taken when that waiter is polled.
 *
 * A side that has nothing for a waiter sets WANTED in its bell. Invariant: while a task waits, WANTED or RUNG is set
 * in this side's `bell`, and the other side's index was read after WANTED was set. A side that advances its index
 * reads the other side's bell after that. All four accesses are sequentially consistent: either the one side sees the
 * index, or the other side sees WANTED, and no wake-up is lost. At most one message to a side is under way (RUNG),
 * however often the bell is rung.
 *
 * The end: `sealed` means that nothing more will be sent. Only the sending side sets it, also when its runtime is
 * freed. The receiving side asks for it (`seal_asked`). A receiver that sees `sealed` and then no item has received
 * every item. */
#include "base/alloc.h"
#include "future/claim.h"
#include "future/peer.h"
#include "sched/waiters.h"

enum { WANTED = 1, RUNG = 2, LINE = 64 /* bytes of a cache line */ };

/* One side. Only its own thread uses it, except the messages, `published` and `bell`. */
typedef struct side {
    ebb__message attach, detach, rung;
    ebb__tie tie;
    ebb_bridge *bridge;
    ebb__heap *heap;
    ebb_wait *first, *last;   /* waiters without a grant */
    void (*watch)(void *arg); /* NULL: none */
    void *watch_arg;
    uint32_t granted; /* grants and claims that were not taken yet */
    uint32_t seen;    /* the other side's index, as last read */
    uint32_t index;   /* this side's index */
    uint32_t slot;    /* the next slot of the ring */
    char apart[LINE];
    _Atomic uint32_t published; /* `index`: items sent, or received, modulo 2^32 */
    char apart_too[LINE];
    _Atomic uint32_t bell;
} side;

struct ebb_bridge {
    side from, to;
    _Atomic uint32_t users; /* references of users */
    _Atomic uint32_t refs;  /* one for all users, one for each tie, one for each message under way */
    _Atomic uint32_t sealed, seal_asked;
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
    /* Release: the thread that frees it sees what others did. Acquire: for that thread. */
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    ebb__heap *from = b->from.heap, *to = b->to.heap;
    ebb_allocator a = b->allocator;
    ebb__free(&a, b, bytes_of(b));
    ebb__heap_release(from);
    ebb__heap_release(to);
}

/* ---- bells ------------------------------------------------------------------------------------------------ */

/* Any thread. */
static void ring(side *s) {
    /* Acquire: if the message is posted, its last receiver is done with it. Release: the thread that clears RUNG sees
     * what was done before the bell was rung. */
    uint32_t before = atomic_exchange_explicit(&s->bell, RUNG, memory_order_acq_rel);
    if (before & RUNG) return;
    keep(s->bridge);
    if (!ebb__post(s->heap, &s->rung)) release(s->bridge);
}

static inline void ring_if_wanted(side *s) {
    /* Sequentially consistent: after the index was published. */
    if (EBB__UNLIKELY(atomic_load(&s->bell) & WANTED)) ring(s);
}

static void publish(side *s) {
    /* Sequentially consistent: before the read of the other side's bell. Also a release: the item was written, or
     * read, before. */
    atomic_store(&s->published, s->index);
}

/* Sequentially consistent: after WANTED was set, if it is. Also an acquire: the items up to the index may be read, or
 * the places up to it written. */
static void look(side *s, const side *other) {
    s->seen = atomic_load(&other->published);
}

static bool is_sealed(const ebb_bridge *b) {
    /* Acquire, and before the read of the index: items sent before the seal are seen. */
    return atomic_load(&b->sealed) != 0;
}

static void end_waiters(side *s) {
    ebb__waiters_end(&s->first, &s->last, ebb__waiter_wake);
}

/* False: there is no waiter that takes it. */
static bool grant(side *s) {
    s->granted++;
    for (ebb_wait *w; (w = ebb__waiters_grant(&s->first)) != NULL;) {
        if (ebb__waiter_is_task(w)) {
            ebb__waiter_wake(w);
            return true;
        }
        if (ebb__waiter_notify(w)) return true;
    }
    s->granted--;
    return false;
}

/* ---- sending side ----------------------------------------------------------------------------------------- */

static bool has_place(const ebb_bridge *b) {
    const side *s = &b->from;
    return s->index - s->seen + s->granted < b->capacity;
}

/* From here on nothing can be sent. */
static void seal(ebb_bridge *b) {
    if (is_sealed(b)) return;
    atomic_store(&b->sealed, 1); /* sequentially consistent, as publishing an index */
    end_waiters(&b->from);
    ring_if_wanted(&b->to);
}

/* True if nothing may be sent any more. */
static inline bool shut(ebb_bridge *b) {
    /* Relaxed: no order between a send and the other side's close can be observed. */
    if (EBB__UNLIKELY(atomic_load_explicit(&b->seal_asked, memory_order_relaxed) != 0)) seal(b);
    return atomic_load_explicit(&b->sealed, memory_order_relaxed) != 0; /* written by this side */
}

static void grant_places(ebb_bridge *b) {
    side *s = &b->from;
    while (s->first != NULL && has_place(b) && grant(s)) continue;
}

/* True if there is a place, after another look at the other side's index. Else sets WANTED. */
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

/* Ends a wait without a grant. */
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

/* EBB_OK: the caller has a place and must use it at once. */
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

/* ---- receiving side --------------------------------------------------------------------------------------- */

static bool has_item(const ebb_bridge *b) {
    const side *s = &b->to;
    return s->seen - s->index > s->granted;
}

/* Sealed, and the last item was received. */
static bool is_drained(ebb_bridge *b) {
    if (!is_sealed(b)) return false;
    look(&b->to, &b->from);
    return b->to.seen == b->to.index;
}

static void grant_items(ebb_bridge *b) {
    side *s = &b->to;
    while (s->first != NULL && has_item(b) && grant(s)) continue;
    if (s->first != NULL && is_drained(b)) end_waiters(s);
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
    if (EBB__UNLIKELY(s->first != NULL) && is_drained(b)) end_waiters(s);
}

/* EBB_OK: the caller has an item and must take it at once. */
static ebb_status get_item(ebb_cx *cx, ebb_bridge *b, ebb_wait *w) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL) {
        if (!w->granted) return is_drained(b) ? leave(w, EBB_ERR_CLOSED) : EBB_PENDING;
        ebb_wait_end(w);
        b->to.granted--;
        return EBB_OK;
    }
    if (find_item(b)) return EBB_OK;
    if (is_drained(b)) return EBB_ERR_CLOSED;
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

/* ---- without waiting, and as futures ---------------------------------------------------------------------- */

static bool is_from(const ebb_cx *cx, const ebb_bridge *b) {
    return ebb__heap_at(ebb__rt_of(cx)) == b->from.heap;
}

static bool is_to(const ebb_cx *cx, const ebb_bridge *b) {
    return ebb__heap_at(ebb__rt_of(cx)) == b->to.heap;
}

ebb_status ebb_bridge_try_send(ebb_cx *cx, ebb_bridge *b, const void *item) {
    if (!is_from(cx, b)) return EBB_ERR_FOREIGN;
    if (shut(b)) return EBB_ERR_CLOSED;
    if (!find_place(b)) return EBB_PENDING;
    put(b, item);
    return EBB_OK;
}

ebb_status ebb_bridge_try_recv(ebb_cx *cx, ebb_bridge *b, void *item) {
    if (!is_to(cx, b)) return EBB_ERR_FOREIGN;
    if (!find_item(b)) return is_drained(b) ? EBB_ERR_CLOSED : EBB_PENDING;
    take(b, item);
    return EBB_OK;
}

static void claim_keep(void *b) {
    keep(b);
}

static void claim_release(void *b) {
    release(b);
}

static ebb_status place_join(void *p, ebb_wait *w) {
    ebb_bridge *b = p;
    if (shut(b)) return EBB_ERR_CLOSED;
    if (find_place(b)) {
        b->from.granted++;
        return EBB_OK;
    }
    ebb__waiters_add(&b->from.first, &b->from.last, w);
    return EBB_PENDING;
}

static void place_leave(void *p, ebb_wait *w) {
    ebb_bridge *b = p;
    ebb__waiters_remove(&b->from.first, &b->from.last, w);
}

static void place_unread(void *p) {
    ebb_bridge *b = p;
    b->from.granted--;
    grant_places(b);
    release(b);
}

static ebb_status item_join(void *p, ebb_wait *w) {
    ebb_bridge *b = p;
    if (find_item(b)) {
        b->to.granted++;
        return EBB_OK;
    }
    if (is_drained(b)) return EBB_ERR_CLOSED;
    ebb__waiters_add(&b->to.first, &b->to.last, w);
    return EBB_PENDING;
}

static void item_leave(void *p, ebb_wait *w) {
    ebb_bridge *b = p;
    ebb__waiters_remove(&b->to.first, &b->to.last, w);
}

static void item_unread(void *p) {
    ebb_bridge *b = p;
    b->to.granted--;
    grant_items(b);
    release(b);
}

static const ebb_type place_type = {"place of a bridge", 0, NULL, place_unread, EBB__TYPE_AT_HOME};
static const ebb_type item_type = {"item of a bridge", 0, NULL, item_unread, EBB__TYPE_AT_HOME};

static const ebb__claim_kind sending_future = {
    .kind = EBB__CLAIM_FUTURE("bridge, to send"),
    .join = place_join,
    .leave = place_leave,
    .keep = claim_keep,
    .release = claim_release,
    .claim = &place_type,
};
static const ebb__claim_kind receiving_future = {
    .kind = EBB__CLAIM_FUTURE("bridge, to receive"),
    .join = item_join,
    .leave = item_leave,
    .keep = claim_keep,
    .release = claim_release,
    .claim = &item_type,
};

ebb_future *ebb_bridge_send_future_site(ebb_cx *cx, ebb_bridge *b, const char *site) {
    if (b == NULL) return ebb__failed(EBB_ERR_INVALID);
    if (!is_from(cx, b)) return ebb__failed(EBB_ERR_FOREIGN);
    return ebb__claim_future(cx, &sending_future, b, site);
}

ebb_future *ebb_bridge_recv_future_site(ebb_cx *cx, ebb_bridge *b, const char *site) {
    if (b == NULL) return ebb__failed(EBB_ERR_INVALID);
    if (!is_to(cx, b)) return ebb__failed(EBB_ERR_FOREIGN);
    return ebb__claim_future(cx, &receiving_future, b, site);
}

ebb_status ebb_bridge_put(ebb_cx *cx, ebb_value *claim, const void *item) {
    ebb_bridge *b = ebb__claim_use(claim, &place_type);
    (void)cx;
    if (b == NULL) return EBB_ERR_INVALID;
    ebb_status st = shut(b) ? EBB_ERR_CLOSED : EBB_OK;
    b->from.granted--;
    if (st == EBB_OK) put(b, item);
    release(b);
    return st;
}

ebb_status ebb_bridge_take(ebb_cx *cx, ebb_value *claim, void *item) {
    ebb_bridge *b = ebb__claim_use(claim, &item_type);
    (void)cx;
    if (b == NULL) return EBB_ERR_INVALID;
    b->to.granted--;
    take(b, item);
    release(b);
    return EBB_OK;
}

/* The receiving side closes: asks the sending side to seal. */
static void ask_to_seal(ebb_bridge *b) {
    /* Release: the sender sees it with the message, or at its next send. */
    atomic_store_explicit(&b->seal_asked, 1, memory_order_release);
    ring(&b->from);
}

/* ---- messages --------------------------------------------------------------------------------------------- */

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

static void take_rung(ebb_runtime *rt, ebb__message *m) {
    side *s = (side *)(void *)((char *)m - offsetof(side, rung));
    ebb_bridge *b = s->bridge;
    /* Acquire: sees what was done before the bell was rung. Release: the message may be posted again. */
    (void)atomic_exchange_explicit(&s->bell, 0, memory_order_acq_rel);
    if (rt != NULL && s == &b->from) serve_senders(b);
    else if (rt != NULL) serve_receivers(b);
    if (rt != NULL && s->watch != NULL) s->watch(s->watch_arg);
    release(b);
}

/* The runtime of this side was freed, and its waiters with it. */
static void side_gone(side *s) {
    ebb_bridge *b = s->bridge;
    s->first = s->last = NULL;
    if (s == &b->from) seal(b);
    else ask_to_seal(b);
}

static void take_attach(ebb_runtime *rt, ebb__message *m) {
    side *s = (side *)(void *)((char *)m - offsetof(side, attach));
    if (rt != NULL) {
        ebb__tie_add(ebb__heap_at(rt), &s->tie); /* the tie takes over the message's reference */
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

static void take_detach(ebb_runtime *rt, ebb__message *m) {
    side *s = (side *)(void *)((char *)m - offsetof(side, detach));
    ebb_bridge *b = s->bridge;
    if (rt != NULL && s->tie.at != NULL) {
        ebb__tie_remove(&s->tie);
        release(b);
    }
    release(b);
}

/* ---- watching ---------------------------------------------------------------------------------------------- */

void ebb__bridge_watch(ebb_bridge *b, bool receives, void (*watch)(void *arg), void *arg) {
    side *s = receives ? &b->to : &b->from;
    s->watch = watch;
    s->watch_arg = arg;
}

bool ebb__bridge_is_shut(ebb_bridge *b) {
    return shut(b);
}

/* ---- life ------------------------------------------------------------------------------------------------- */

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
    /* Release: the last user sees what others did. Acquire: for the last. */
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
    ask_to_seal(b);
    return EBB_OK;
}
