/* Channel. Invariants:
 *  - length + reserved <= capacity; a waiting sender that is granted a place has it in `reserved`.
 *  - promised <= length; a waiting receiver that is granted an item has it in `promised`. The item
 *    stays in the queue until that receiver takes it, so a cancel in between loses nothing.
 *  - a waiter that is not granted exists only while there is nothing for it: whoever frees a place or
 *    brings an item grants it on. So nobody overtakes, and no wake is lost. */
#include "base/alloc.h"
#include "sched/waiters.h"

#include <string.h>

struct ebb_chan {
    ebb_rt *rt;
    ebb_allocator allocator; /* the runtime's, which may be gone before */
    uint32_t capacity, item_size;
    uint32_t head, length, reserved, promised;
    bool closed;
    ebb_wait *send_first, *send_last, *recv_first, *recv_last;
    char items[];
};

ebb_status ebb_chan_new(ebb_rt *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out) {
    *out = NULL;
    if (capacity == 0 || (uint64_t)capacity * item_size > INT32_MAX) return EBB_ERR_INVALID;
    ebb_chan *ch = ebb__alloc(&rt->allocator, sizeof *ch + (size_t)capacity * item_size);
    if (ch == NULL) return EBB_ERR_NOMEM;
    *ch = (ebb_chan){.rt = rt, .allocator = rt->allocator, .capacity = capacity, .item_size = item_size};
    *out = ch;
    return EBB_OK;
}

void ebb_chan_free(ebb_chan *ch) {
    if (ch == NULL) return;
    ebb_allocator a = ch->allocator;
    ebb__free(&a, ch, sizeof *ch + (size_t)ch->capacity * ch->item_size);
}

uint32_t ebb_chan_length(const ebb_chan *ch) {
    return ch->length;
}

static inline void copy(void *to, const void *from, uint32_t n) {
    if (n == 8) memcpy(to, from, 8);
    else if (n != 0) memcpy(to, from, n);
}

__attribute__((noinline)) static void place_freed(ebb_chan *ch) {
    if (ebb__waiters_grant(&ch->send_first, &ch->send_last)) ch->reserved++;
}

static inline void item_freed(ebb_chan *ch) {
    if (ebb__waiters_grant(&ch->recv_first, &ch->recv_last)) ch->promised++;
}

static void send_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    if (w->granted) {
        ch->reserved--;
        place_freed(ch);
    } else {
        ebb__waiters_remove(&ch->send_first, &ch->send_last, w);
    }
}

static void recv_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    if (w->granted) {
        ch->promised--;
        item_freed(ch);
    } else {
        ebb__waiters_remove(&ch->recv_first, &ch->recv_last, w);
    }
}

static const ebb_wait_kind sending = {"channel, to send", send_leave};
static const ebb_wait_kind receiving = {"channel, to receive", recv_leave};

/* Ends a wait that did not get what it waited for. */
static ebb_status leave(ebb_wait *w, ebb_status st) {
    if (w->cx != NULL) {
        w->kind->cancel(w);
        ebb__wait_end(w);
    }
    return st;
}

static inline void put(ebb_chan *ch, const void *item) {
    uint32_t at = ch->head + ch->length;
    if (at >= ch->capacity) at -= ch->capacity;
    copy(ch->items + (size_t)at * ch->item_size, item, ch->item_size);
    ch->length++;
    item_freed(ch);
}

/* EBB_OK: there is a place and it is the caller's, counted in `reserved`. */
static ebb_status get_place(ebb_cx *cx, ebb_chan *ch, ebb_wait *w) {
    if (ch->closed) return leave(w, EBB_ERR_CLOSED);
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL) {
        if (!w->granted) return EBB_PENDING;
        ebb__wait_end(w);
        return EBB_OK;
    }
    if (ch->length + ch->reserved < ch->capacity) {
        ch->reserved++;
        return EBB_OK;
    }
    ebb_status st = ebb__wait_begin(cx, w, &sending, ch);
    if (st == EBB_PENDING) ebb__waiters_add(&ch->send_first, &ch->send_last, w);
    return st;
}

ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item) {
    if (EBB__LIKELY(w->cx == NULL && !ch->closed && !ebb_cancelled(cx) &&
                    ch->length + ch->reserved < ch->capacity)) {
        put(ch, item);
        return EBB_OK;
    }
    ebb_status st;
    EBB__AWAIT(cx, st, get_place(cx, ch, w));
    if (st != EBB_OK) return st;
    ch->reserved--;
    put(ch, item);
    return EBB_OK;
}

static void permit_abort(void *arg) {
    ebb_chan *ch = arg;
    ch->reserved--;
    place_freed(ch);
}

ebb_status ebb_chan_reserve(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, ebb_obligation *permit) {
    ebb_status st;
    EBB__AWAIT(cx, st, get_place(cx, ch, w));
    if (st != EBB_OK) return st;
    *permit = ebb_reserve(cx, EBB_PERMIT, permit_abort, ch);
    st = ebb_id_status(permit->id);
    if (st != EBB_OK) permit_abort(ch);
    return st;
}

/* Any other obligation would upset the count of places. */
static bool is_permit_of(const ebb_chan *ch, ebb_obligation permit) {
    uint32_t i;
    if (ebb__lookup(ch->rt, &ch->rt->duties, permit.id, &i) != EBB_OK)
        return true; /* resolving it says why */
    const ebb__duty *d = ebb__duty_at(ch->rt, i);
    return d->kind == EBB_PERMIT && d->fn.on_abort == permit_abort && d->arg == ch;
}

ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item) {
    if (!is_permit_of(ch, permit)) return EBB_ERR_INVALID;
    if (ch->closed) {
        ebb_status st = ebb_abort(cx, permit);
        return st == EBB_OK ? EBB_ERR_CLOSED : st;
    }
    ebb_status st = ebb_commit(cx, permit);
    if (st != EBB_OK) return st;
    ch->reserved--;
    put(ch, item);
    return EBB_OK;
}

static void wake_all(ebb_wait *w) {
    for (; w != NULL; w = w->next) ebb__wake_waiter(w);
}

static inline ebb_status take(ebb_chan *ch, void *item) {
    copy(item, ch->items + (size_t)ch->head * ch->item_size, ch->item_size);
    if (++ch->head == ch->capacity) ch->head = 0;
    ch->length--;
    if (ch->send_first != NULL) place_freed(ch);
    if (EBB__UNLIKELY(ch->closed) && ch->length == 0) wake_all(ch->recv_first);
    return EBB_OK;
}

__attribute__((noinline)) static ebb_status recv_slow(ebb_cx *cx, ebb_chan *ch, ebb_wait *w) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    return ch->closed && ch->length == 0 ? leave(w, EBB_ERR_CLOSED) : EBB_PENDING;
}

EBB__INLINE ebb_status receive(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    if (EBB__UNLIKELY(ebb_cancelled(cx))) return recv_slow(cx, ch, w);
    if (w->cx != NULL) {
        if (EBB__UNLIKELY(!w->granted)) return recv_slow(cx, ch, w);
        ebb__wait_end(w);
        ch->promised--;
        return take(ch, item);
    }
    if (ch->length > ch->promised) return take(ch, item);
    if (EBB__UNLIKELY(ch->closed) && ch->length == 0) return EBB_ERR_CLOSED;
    ebb_status st = ebb__wait_begin(cx, w, &receiving, ch);
    if (EBB__LIKELY(st == EBB_PENDING)) ebb__waiters_add(&ch->recv_first, &ch->recv_last, w);
    return st;
}

ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    ebb_status st;
    EBB__AWAIT(cx, st, receive(cx, ch, w, item));
    return st;
}

void ebb_chan_close(ebb_cx *cx, ebb_chan *ch) {
    (void)cx;
    ch->closed = true;
    wake_all(ch->send_first);
    wake_all(ch->recv_first);
}
