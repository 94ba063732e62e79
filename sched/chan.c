/* Channel. Invariants:
 *  - length + reserved <= capacity; a waiting sender that is granted a place has it in `reserved`.
 *  - promised <= length; a waiting receiver that is granted an item has it in `promised`. The item
 *    stays in the queue until that receiver takes it, so a cancel in between loses nothing.
 *  - a waiter that is not granted exists only while there is nothing for it: whoever frees a place or
 *    brings an item grants it on. So nobody overtakes, and no wake is lost. */
#include "base/alloc.h"
#include "kernel/lane.h"
#include "sched/waiters.h"

#include <string.h>

struct ebb_chan {
    ebb_rt *rt;
    uint32_t capacity, item_size;
    uint32_t head, length, reserved, promised;
    bool closed;
    ebb_wait *send_first, *send_last, *recv_first, *recv_last;
    char items[];
};

ebb_status ebb_chan_new(ebb_rt *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out) {
    *out = NULL;
    if (capacity == 0 || (item_size != 0 && capacity > UINT32_MAX / item_size)) return EBB_ERR_INVALID;
    ebb_chan *ch = ebb__alloc(&rt->allocator, sizeof *ch + (size_t)capacity * item_size);
    if (ch == NULL) return EBB_ERR_NOMEM;
    *ch = (ebb_chan){.rt = rt, .capacity = capacity, .item_size = item_size};
    *out = ch;
    return EBB_OK;
}

void ebb_chan_free(ebb_chan *ch) {
    if (ch == NULL) return;
    ebb__free(&ch->rt->allocator, ch, sizeof *ch + (size_t)ch->capacity * ch->item_size);
}

uint32_t ebb_chan_length(const ebb_chan *ch) {
    return ch->length;
}

static void copy(void *to, const void *from, uint32_t n) {
    if (n == 8) memcpy(to, from, 8);
    else memcpy(to, from, n);
}

static void place_freed(ebb_chan *ch) {
    ebb_wait *w = ebb__waiters_first(ch->send_first);
    if (w == NULL) return;
    w->granted = 1;
    ch->reserved++;
    ebb__wake_waiter(w->cx);
}

static void item_freed(ebb_chan *ch) {
    ebb_wait *w = ebb__waiters_first(ch->recv_first);
    if (w == NULL) return;
    w->granted = 1;
    ch->promised++;
    ebb__wake_waiter(w->cx);
}

static void send_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    ebb__waiters_remove(&ch->send_first, &ch->send_last, w);
    if (!w->granted) return;
    ch->reserved--;
    place_freed(ch);
}

static void recv_leave(ebb_wait *w) {
    ebb_chan *ch = w->on;
    ebb__waiters_remove(&ch->recv_first, &ch->recv_last, w);
    if (!w->granted) return;
    ch->promised--;
    item_freed(ch);
}

/* Ends a wait that did not get what it waited for. */
static ebb_status leave(ebb_wait *w, ebb_status st) {
    if (w->cx != NULL) {
        w->cancel(w);
        ebb_wait_end(w);
    }
    return st;
}

static void put(ebb_chan *ch, const void *item) {
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
        ebb__waiters_remove(&ch->send_first, &ch->send_last, w);
        ebb_wait_end(w);
        return EBB_OK;
    }
    if (ch->length + ch->reserved < ch->capacity) {
        ch->reserved++;
        return EBB_OK;
    }
    ebb_wait_begin(cx, w, send_leave, ch, "channel, to send");
    ebb__waiters_add(&ch->send_first, &ch->send_last, w);
    return EBB_PENDING;
}

ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item) {
    ebb_status st = get_place(cx, ch, w);
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
    ebb_status st = get_place(cx, ch, w);
    if (st != EBB_OK) return st;
    *permit = ebb_reserve(cx, EBB_PERMIT, permit_abort, ch);
    st = ebb_id_status(permit->id);
    if (st != EBB_OK) permit_abort(ch);
    return st;
}

ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item) {
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

ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item) {
    if (ebb_checkpoint(cx) != EBB_OK) return leave(w, EBB_CANCELLED);
    if (w->cx != NULL ? !w->granted : ch->length == ch->promised) {
        if (ch->closed) return leave(w, EBB_ERR_CLOSED);
        if (w->cx == NULL) {
            ebb_wait_begin(cx, w, recv_leave, ch, "channel, to receive");
            ebb__waiters_add(&ch->recv_first, &ch->recv_last, w);
        }
        return EBB_PENDING;
    }
    if (w->cx != NULL) {
        ebb__waiters_remove(&ch->recv_first, &ch->recv_last, w);
        ebb_wait_end(w);
        ch->promised--;
    }
    copy(item, ch->items + (size_t)ch->head * ch->item_size, ch->item_size);
    if (++ch->head == ch->capacity) ch->head = 0;
    ch->length--;
    place_freed(ch);
    return EBB_OK;
}

void ebb_chan_close(ebb_cx *cx, ebb_chan *ch) {
    (void)cx;
    ch->closed = true;
    for (ebb_wait *w = ch->send_first; w != NULL; w = w->next) ebb__wake_waiter(w->cx);
    for (ebb_wait *w = ch->recv_first; w != NULL; w = w->next) ebb__wake_waiter(w->cx);
}
