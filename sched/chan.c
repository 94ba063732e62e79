/* Channel. Invariants:
 * - length + reserved <= capacity; a place granted to a waiting sender counts in `reserved`.
 * - loose <= length; the other items are granted to waiting receivers. A granted item stays in the queue until its
 *   receiver takes it, so a cancel in between loses nothing.
 * - A waiter without a grant exists only while there is nothing to grant: a freed place or a new item is granted
 *   at once. So no task overtakes a waiter, and no wake-up is lost.
 * - A claim of a future is a grant without a waiter, counted in the same way. */
#include "base/alloc.h"
#include "kernel/wait.h"
#include "sched/claim.h"

#include <assert.h>
#include <string.h>

struct ebb_chan {
    ebb_runtime *rt;
    uint32_t capacity, item_size;
    uint32_t size;       /* of all places, in bytes */
    uint32_t head, tail; /* offsets of the first item and of the first free place, in bytes */
    uint32_t length, reserved;
    uint32_t loose; /* items that are not granted to a waiter */
    uint32_t keeps; /* claims and waiting futures: the channel stays allocated */
    bool closed;
    bool freed; /* by its owner */
    bool plain; /* the channel is open, and an item is one word */
    ebb_wait *send_first, *send_last, *recv_first, *recv_last;
    ebb_allocator allocator; /* a copy: the runtime may be freed before the channel */
    char items[];
};

ebb_status ebb_chan_new(ebb_runtime *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out) {
    *out = NULL;
    if (capacity == 0 || (uint64_t)capacity * item_size > INT32_MAX) return EBB_ERR_INVALID;
    uint32_t size = capacity * item_size;
    ebb_chan *ch = ebb__alloc(&rt->allocator, sizeof *ch + size);
    if (ch == NULL) return EBB_ERR_NOMEM;
    *ch = (ebb_chan){.rt = rt,
                     .capacity = capacity,
                     .item_size = item_size,
                     .size = size,
                     .plain = item_size == sizeof(uint64_t),
                     .allocator = rt->allocator};
    *out = ch;
    return EBB_OK;
}

static void release_memory(ebb_chan *ch) {
    ebb_allocator a = ch->allocator;
    ebb__free(&a, ch, sizeof *ch + ch->size);
}

static void end_all(ebb_chan *ch);

void ebb_chan_free(ebb_chan *ch) {
    if (ch == NULL) return;
    ch->freed = true;
    if (ch->keeps == 0) {
        release_memory(ch);
        return;
    }
    ch->keeps++; /* the last waiter may release the channel */
    end_all(ch);
    ebb__chan_release(ch);
}

uint32_t ebb_chan_length(const ebb_chan *ch) {
    return ch->length;
}

/* `from` may be NULL for an item of size 0. */
static inline void copy(void *to, const void *from, uint32_t n) {
    if (n != 0) memcpy(to, from, n);
}

/* Returns the place at `*at` and advances `*at` to the next. */
static inline char *step(ebb_chan *ch, uint32_t *at, uint32_t item_size) {
    char *place = ch->items + *at;
    uint32_t next = *at + item_size;
    *at = next == ch->size ? 0 : next;
    return place;
}

static inline bool grant(ebb_wait **first) {
    for (ebb_wait *w; (w = ebb__waiters_grant(first)) != NULL;) {
        if (EBB__LIKELY(ebb__waiter_is_task(w))) {
            ebb__wake_waiter(w);
            return true;
        }
        if (ebb__waiter_notify(w)) return true;
    }
    return false;
}

static inline void place_freed(ebb_chan *ch) {
    if (grant(&ch->send_first)) ch->reserved++;
}

static inline void item_freed(ebb_chan *ch) {
    if (!grant(&ch->recv_first)) ch->loose++;
    assert(ch->loose <= ch->length);
}

static void send_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    if (w->granted) {
        assert(ch->reserved > 0);
        ch->reserved--;
        place_freed(ch);
    } else {
        ebb__waiters_remove(&ch->send_first, &ch->send_last, w);
    }
}

static void recv_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    if (w->granted) {
        item_freed(ch);
    } else {
        ebb__waiters_remove(&ch->recv_first, &ch->recv_last, w);
    }
}

static const ebb_wait_kind sending = {"channel, to send", send_leave};
static const ebb_wait_kind receiving = {"channel, to receive", recv_leave};

/* Ends a wait without a grant. */
static ebb_status leave(ebb_wait *w, ebb_status st) {
    if (w->cx != NULL) {
        w->kind->cancel(w);
        ebb__wait_end(w);
    }
    return st;
}

static inline void put(ebb_chan *ch, const void *item, uint32_t item_size) {
    assert(ch->length + ch->reserved < ch->capacity);
    copy(step(ch, &ch->tail, item_size), item, item_size);
    ch->length++;
    item_freed(ch);
}

/* EBB_OK: the caller has a place, which is counted in `reserved`. */
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

__attribute__((noinline)) static ebb_status send_slow(ebb_cx *cx, ebb_chan *ch, ebb_wait *w,
                                                      const void *item) {
    ebb_status st;
    EBB__AWAIT(cx, st, get_place(cx, ch, w));
    if (st != EBB_OK) return st;
    ch->reserved--;
    put(ch, item, ch->item_size);
    return EBB_OK;
}

ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item) {
    if (EBB__LIKELY(w->cx == NULL && ch->plain && !ebb_cancelled(cx) &&
                    ch->length + ch->reserved < ch->capacity)) {
        put(ch, item, sizeof(uint64_t));
        return EBB_OK;
    }
    return send_slow(cx, ch, w, item);
}

static void permit_abort(void *arg) {
    ebb_chan *ch = arg;
    assert(ch->reserved > 0);
    ch->reserved--;
    place_freed(ch);
}

ebb_status ebb_chan_reserve(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, ebb_obligation *permit) {
    ebb_status st;
    EBB__AWAIT(cx, st, get_place(cx, ch, w));
    if (st != EBB_OK) return st;
    *permit = ebb_obligation_reserve(cx, EBB_OBLIGATION_PERMIT, permit_abort, ch);
    st = ebb_id_status(permit->id);
    if (st != EBB_OK) permit_abort(ch);
    return st;
}

/* Another obligation would falsify the count of places. */
static bool is_permit_of(const ebb_chan *ch, ebb_obligation permit) {
    uint32_t i;
    if (ebb__lookup(ch->rt, &ch->rt->obligations, permit.id, &i) != EBB_OK)
        return true; /* resolving it returns the error */
    const ebb__obligation *d = ebb__obligation_at(ch->rt, i);
    return d->kind == EBB_OBLIGATION_PERMIT && d->fn.on_abort == permit_abort && d->arg == ch;
}

ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item) {
    if (!is_permit_of(ch, permit)) return EBB_ERR_INVALID;
    if (ch->closed) {
        ebb_status st = ebb_obligation_abort(cx, permit);
        return st == EBB_OK ? EBB_ERR_CLOSED : st;
    }
    ebb_status st = ebb_obligation_commit(cx, permit);
    if (st != EBB_OK) return st;
    ch->reserved--;
    put(ch, item, ch->item_size);
    return EBB_OK;
}

/* Closed and empty: there is nothing to receive any more. */
static void end_receivers(ebb_chan *ch) {
    ebb__waiters_end(&ch->recv_first, &ch->recv_last, ebb__wake_waiter);
}

static void end_senders(ebb_chan *ch) {
    ebb__waiters_end(&ch->send_first, &ch->send_last, ebb__wake_waiter);
}

static inline void take(ebb_chan *ch, void *item, uint32_t item_size) {
    assert(ch->loose < ch->length); /* the item is not loose any more, or was granted */
    copy(item, step(ch, &ch->head, item_size), item_size);
    ch->length--;
}

static ebb_status take_any(ebb_chan *ch, void *item) {
    take(ch, item, ch->item_size);
    place_freed(ch);
    if (ch->closed && ch->length == 0) end_receivers(ch);
    return EBB_OK;
}

static ebb_status receive(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL && w->granted) {
        ebb__wait_end(w);
        return take_any(ch, item);
    }
    if (ch->closed && ch->length == 0) return leave(w, EBB_ERR_CLOSED);
    if (w->cx != NULL) return EBB_PENDING;
    if (ch->loose > 0) {
        ch->loose--;
        return take_any(ch, item);
    }
    ebb_status st = ebb__wait_begin(cx, w, &receiving, ch);
    if (st == EBB_PENDING) ebb__waiters_add(&ch->recv_first, &ch->recv_last, w);
    return st;
}

__attribute__((noinline)) static ebb_status recv_slow(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    ebb_status st;
    EBB__AWAIT(cx, st, receive(cx, ch, w, item));
    return st;
}

/* The common case, without another call; recv_slow covers all cases. */
ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    ebb__task *t = ebb__task_of(cx);
    if (EBB__UNLIKELY(ebb_cancelled(cx) || !ch->plain || t->rt->observed)) return recv_slow(cx, ch, w, item);
    if (w->cx != NULL) {
        if (EBB__UNLIKELY(!w->granted || ch->send_first != NULL)) return recv_slow(cx, ch, w, item);
        ebb__wait_unlink(w);
        take(ch, item, sizeof(uint64_t));
        return EBB_OK;
    }
    if (ch->loose > 0 || !ebb__can_wait(t) || t->rt->layers.call.park != NULL)
        return recv_slow(cx, ch, w, item);
    ebb__wait_link(t, w, &receiving, ch);
    ebb__waiters_add(&ch->recv_first, &ch->recv_last, w);
    return EBB_PENDING;
}

ebb_status ebb_chan_try_send(ebb_cx *cx, ebb_chan *ch, const void *item) {
    (void)cx;
    if (ch->closed) return EBB_ERR_CLOSED;
    if (ch->length + ch->reserved >= ch->capacity) return EBB_PENDING;
    put(ch, item, ch->item_size);
    return EBB_OK;
}

ebb_status ebb_chan_try_recv(ebb_cx *cx, ebb_chan *ch, void *item) {
    (void)cx;
    if (ch->loose == 0) return ch->closed && ch->length == 0 ? EBB_ERR_CLOSED : EBB_PENDING;
    ch->loose--;
    return take_any(ch, item);
}

static void shut(ebb_chan *ch) {
    ch->closed = true;
    ch->plain = false;
    end_senders(ch);
}

void ebb_chan_close(ebb_cx *cx, ebb_chan *ch) {
    (void)cx;
    shut(ch);
    if (ch->length == 0) end_receivers(ch);
}

/* ---- claims ---------------------------------------------------------------------------------------------- */

/* The owner has freed the channel: only futures still wait. */
static void end_all(ebb_chan *ch) {
    shut(ch);
    end_receivers(ch);
}

ebb_runtime *ebb__chan_runtime(const ebb_chan *ch) {
    return ch->rt;
}

void ebb__chan_keep(void *p) {
    ((ebb_chan *)p)->keeps++;
}

void ebb__chan_release(void *p) {
    ebb_chan *ch = p;
    if (--ch->keeps == 0 && ch->freed) release_memory(ch);
}

ebb_status ebb__item_join(void *p, ebb_wait *w) {
    ebb_chan *ch = p;
    if (ch->closed && ch->length == 0) return EBB_ERR_CLOSED;
    if (ch->loose > 0) {
        ch->loose--;
        return EBB_OK;
    }
    ebb__waiters_add(&ch->recv_first, &ch->recv_last, w);
    return EBB_PENDING;
}

void ebb__item_leave(void *p, ebb_wait *w) {
    ebb_chan *ch = p;
    ebb__waiters_remove(&ch->recv_first, &ch->recv_last, w);
}

void ebb__item_give_back(void *p) {
    item_freed(p);
}

void ebb__item_take(ebb_chan *ch, void *item) {
    (void)take_any(ch, item);
}

ebb_status ebb__place_join(void *p, ebb_wait *w) {
    ebb_chan *ch = p;
    if (ch->closed) return EBB_ERR_CLOSED;
    if (ch->length + ch->reserved < ch->capacity) {
        ch->reserved++;
        return EBB_OK;
    }
    ebb__waiters_add(&ch->send_first, &ch->send_last, w);
    return EBB_PENDING;
}

void ebb__place_leave(void *p, ebb_wait *w) {
    ebb_chan *ch = p;
    ebb__waiters_remove(&ch->send_first, &ch->send_last, w);
}

void ebb__place_give_back(void *p) {
    permit_abort(p);
}

ebb_status ebb__place_put(ebb_chan *ch, const void *item) {
    if (ch->closed) {
        permit_abort(ch);
        return EBB_ERR_CLOSED;
    }
    ch->reserved--;
    put(ch, item, ch->item_size);
    return EBB_OK;
}
