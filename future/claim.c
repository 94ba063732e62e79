/* Channels, semaphores and broadcasts as futures. The value of such a future is a claim: a word that is used once, or given back
 * when nobody reads it. So a lost race loses nothing, whoever decides it, and however late. */
#include "future/claim.h"

#include <assert.h>

#include "sched/broadcast.h"
#include "sched/claim.h"

static ebb__claimer *claimer_of(ebb_wait *w) {
    return (ebb__claimer *)(void *)((char *)w - offsetof(ebb__claimer, wait));
}

static const ebb__claim_kind *kind_of(const ebb_future *f) {
    return (const ebb__claim_kind *)(const void *)ebb__kind_of(f);
}

static void release(const ebb__claim_kind *k, void *on) {
    if (k->release != NULL) k->release(on);
}

/* f, which keeps `on`, has what it waited for. If another thread cancels f just now, disposing of the claim gives it
 * back. */
static void deliver(ebb_future *f, const ebb__claim_kind *k, void *on) {
    if (k->claim != NULL) {
        (void)ebb__complete(f, ebb_value_owned(k->claim, on));
        return;
    }
    assert(k->value != NULL);
    (void)ebb__complete(f, k->value(on));
    release(k, on);
}

/* The waiter has left the queue. */
static bool notify(ebb_wait *w) {
    ebb_future *f = &claimer_of(w)->future;
    const ebb__claim_kind *k = kind_of(f);
    void *on = w->on;
    bool granted = w->granted != 0;
    w->on = NULL;
    if (granted && !ebb__has_ended(f)) {
        deliver(f, k, on);
        return true;
    }
    if (!granted) (void)ebb__fail_with(f, EBB_ERR_CLOSED);
    release(k, on);
    return false;
}

static const ebb__waiter_kind waiter_kind = {{"future", NULL}, notify};

void ebb__claim_leave(ebb_future *f) {
    const ebb__claim_kind *k = kind_of(f);
    ebb_wait *w = &((ebb__claimer *)(void *)f)->wait;
    void *on = w->on;
    if (on == NULL) return;
    w->on = NULL;
    k->leave(on, w);
    release(k, on);
}

bool ebb__claim_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    (void)s;
    (void)work;
    ebb__claim_leave(f);
    return true;
}

ebb_future *ebb__claim_future(ebb_cx *cx, const ebb__claim_kind *k, void *on, const char *site) {
    ebb_status st = EBB_OK;
    ebb_future *f = ebb__future_new(cx, &k->kind, site, &st);
    if (f == NULL) return ebb__failed(st);
    ebb_wait *w = &((ebb__claimer *)(void *)f)->wait;
    w->kind = &waiter_kind.kind;
    st = k->join(on, w);
    if (st != EBB_PENDING && st != EBB_OK) {
        (void)ebb__fail_with(f, st);
        return f;
    }
    if (k->keep != NULL) k->keep(on);
    if (st == EBB_PENDING) w->on = on;
    else deliver(f, k, on);
    return f;
}

void *ebb__claim_use(ebb_value *v, const ebb_type *type) {
    if (v == NULL || v->type != type) return NULL;
    void *on = v->as.p;
    *v = ebb_value_none();
    return on;
}

/* ---- channels --------------------------------------------------------------------------------------------- */

static void item_unread(void *ch) {
    ebb__item_give_back(ch);
    ebb__chan_release(ch);
}

static void place_unread(void *ch) {
    ebb__place_give_back(ch);
    ebb__chan_release(ch);
}

static const ebb_type item_type = {"item of a channel", 0, NULL, item_unread, EBB__TYPE_AT_HOME};
static const ebb_type place_type = {"place of a channel", 0, NULL, place_unread, EBB__TYPE_AT_HOME};

static const ebb__claim_kind receiving = {
    .kind = EBB__CLAIM_FUTURE("channel, to receive"),
    .join = ebb__item_join,
    .leave = ebb__item_leave,
    .keep = ebb__chan_keep,
    .release = ebb__chan_release,
    .claim = &item_type,
};
static const ebb__claim_kind sending = {
    .kind = EBB__CLAIM_FUTURE("channel, to send"),
    .join = ebb__place_join,
    .leave = ebb__place_leave,
    .keep = ebb__chan_keep,
    .release = ebb__chan_release,
    .claim = &place_type,
};

static ebb_future *of_channel(ebb_cx *cx, const ebb__claim_kind *k, ebb_chan *ch, const char *site) {
    if (ch == NULL) return ebb__failed(EBB_ERR_INVALID);
    if (ebb__chan_runtime(ch) != ebb__rt_of(cx)) return ebb__failed(EBB_ERR_FOREIGN);
    return ebb__claim_future(cx, k, ch, site);
}

ebb_future *ebb_chan_recv_future_site(ebb_cx *cx, ebb_chan *ch, const char *site) {
    return of_channel(cx, &receiving, ch, site);
}

ebb_future *ebb_chan_send_future_site(ebb_cx *cx, ebb_chan *ch, const char *site) {
    return of_channel(cx, &sending, ch, site);
}

ebb_status ebb_chan_take(ebb_cx *cx, ebb_value *claim, void *item) {
    ebb_chan *ch = ebb__claim_use(claim, &item_type);
    (void)cx;
    if (ch == NULL) return EBB_ERR_INVALID;
    ebb__item_take(ch, item);
    ebb__chan_release(ch);
    return EBB_OK;
}

ebb_status ebb_chan_put(ebb_cx *cx, ebb_value *claim, const void *item) {
    ebb_chan *ch = ebb__claim_use(claim, &place_type);
    (void)cx;
    if (ch == NULL) return EBB_ERR_INVALID;
    ebb_status st = ebb__place_put(ch, item);
    ebb__chan_release(ch);
    return st;
}

/* ---- semaphores ------------------------------------------------------------------------------------------- */

static const ebb_type permit_type = {"permit of a semaphore", 0, NULL, ebb__permit_give_back,
                                     EBB__TYPE_AT_HOME};

static const ebb__claim_kind acquiring = {
    .kind = EBB__CLAIM_FUTURE("semaphore"),
    .join = ebb__permit_join,
    .leave = ebb__permit_leave,
    .claim = &permit_type,
};

ebb_future *ebb_sem_acquire_future_site(ebb_cx *cx, ebb_sem *s, const char *site) {
    if (s == NULL) return ebb__failed(EBB_ERR_INVALID);
    return ebb__claim_future(cx, &acquiring, s, site);
}

/* ---- broadcasts ------------------------------------------------------------------------------------------- */

static ebb_value version_of(const void *b) {
    return ebb_value_int((int64_t)ebb__broadcast_version(b));
}

static const ebb__claim_kind watching = {
    .kind = EBB__CLAIM_FUTURE("broadcast"),
    .join = ebb__broadcast_join,
    .leave = ebb__broadcast_leave,
    .keep = ebb__broadcast_keep,
    .release = ebb__broadcast_release,
    .value = version_of,
};

ebb_future *ebb_broadcast_next_future_site(ebb_cx *cx, ebb_broadcast *b, uint64_t seen, const char *site) {
    if (b == NULL) return ebb__failed(EBB_ERR_INVALID);
    if (ebb__broadcast_runtime(b) != ebb__rt_of(cx)) return ebb__failed(EBB_ERR_FOREIGN);
    if (ebb__broadcast_version(b) > seen) return ebb_future_ready_site(cx, version_of(b), site);
    if (ebb__broadcast_version(b) < seen) return ebb__failed(EBB_ERR_INVALID);
    return ebb__claim_future(cx, &watching, b, site);
}
