/* Places by peer address: which exchanges may start, wait, or are ended for others. */
#define _POSIX_C_SOURCE 200809L
#include "http/address.h"

#include "base/alloc.h"
#include "http/http.h"

/* An exchange in the queue takes a seventh of the memory of one with a stack. */
enum {
    YOUNG_MS = 250,
    LOOK_AT = 32,
    LOOK_AGAIN_MS = 10,
    ADDRESSES_A_LOOK = 64,
    LEAVING_MOST = 64,
    QUEUE = 8
};

/* ---- creation and end ------------------------------------------------------------------------------------- */

/* Appends to the list of addresses that have connections. The first is checked next. */
static void enter(ebb_http_server *s, ebb__address *a) {
    a->next = NULL;
    a->prev = s->address_last;
    if (a->prev != NULL) a->prev->next = a;
    else s->address_first = a;
    s->address_last = a;
}

static void remove_from_all(ebb_http_server *s, const ebb__address *a) {
    if (a->prev != NULL) a->prev->next = a->next;
    else s->address_first = a->next;
    if (a->next != NULL) a->next->prev = a->prev;
    else s->address_last = a->prev;
}

ebb_status ebb__address_join(ebb__conn *c) {
    ebb_http_server *s = c->server;
    uint32_t slot = (uint32_t)(ebb__server_rate_limit(c) - s->rate_limits.address);
    ebb__address *a = s->addresses[slot];
    if (a == NULL) {
        a = ebb__alloc(&s->allocator, sizeof *a);
        if (a == NULL) return EBB_ERR_NOMEM;
        *a = (ebb__address){.slot = slot, .blocked_last = &a->blocked};
        s->addresses[slot] = a;
        enter(s, a);
    }
    a->connections++;
    c->from = a;
    return EBB_OK;
}

static void block(ebb__conn *c) {
    ebb__address *a = c->from;
    if (c->blocked) return;
    c->blocked = true;
    c->blocked_next = NULL;
    c->blocked_at = a->blocked_last;
    *a->blocked_last = c;
    a->blocked_last = &c->blocked_next;
}

static void unblock(ebb__conn *c) {
    if (!c->blocked) return;
    c->blocked = false;
    *c->blocked_at = c->blocked_next;
    if (c->blocked_next != NULL) c->blocked_next->blocked_at = c->blocked_at;
    else c->from->blocked_last = c->blocked_at;
}

void ebb__address_leave(ebb__conn *c) {
    ebb__address *a = c->from;
    if (a == NULL) return;
    unblock(c);
    c->from = NULL;
    if (--a->connections > 0) return;
    c->server->addresses[a->slot] = NULL;
    remove_from_all(c->server, a);
    ebb__free(&c->server->allocator, a, sizeof *a);
}

/* ---- lists ------------------------------------------------------------------------------------------------ */

static void append(struct ebb__exchanges *l, ebb_http *x) {
    x->held_next = NULL;
    x->held_prev = l->last;
    if (l->last != NULL) l->last->held_next = x;
    else l->first = x;
    l->last = x;
}

static void take_out(struct ebb__exchanges *l, ebb_http *x) {
    if (x->held_prev != NULL) x->held_prev->held_next = x->held_next;
    else l->first = x->held_next;
    if (x->held_next != NULL) x->held_next->held_prev = x->held_prev;
    else l->last = x->held_prev;
}

static bool has_room(const ebb_http_server *s, const ebb__address *a) {
    return a->waiting + a->young + a->leaving < s->limits.stalled;
}

/* A place is free: wakes the connection that has waited longest. */
static void wake_one(ebb__address *a, const ebb_http_server *s) {
    ebb__conn *c = a->blocked;
    if (c == NULL || !has_room(s, a)) return;
    unblock(c);
    ebb__conn_touch(c);
}

/* The caller changes its state. */
static void remove_from_lists(ebb_http *x) {
    ebb__address *a = x->conn->from;
    if (x->place == EBB__PLACE_WAITING) {
        if (a->look_from == x) a->look_from = x->held_next;
        take_out(&a->waits, x);
        a->waiting--;
    } else if (x->place == EBB__PLACE_YOUNG) {
        take_out(&a->starts, x);
        a->young--;
    } else {
        return;
    }
    x->conn->held--;
}

void ebb__address_started(ebb_http *x) {
    ebb__address *a = x->conn->from;
    append(&a->starts, x);
    a->young++;
    ebb__place_step(x, EBB__PLACE_STARTS);
    x->conn->held++;
}

void ebb__address_let_go(ebb_http *x) {
    bool young = x->place == EBB__PLACE_YOUNG;
    if (!young && x->place != EBB__PLACE_WAITING) return;
    if (young && !ebb__exchange_is_gone(x) && ebb__exchange_has_region(x))
        return; /* it has not waited for its peer yet, but may */
    remove_from_lists(x);
    ebb__place_step(x, EBB__PLACE_RESTS);
    wake_one(x->conn->from, x->conn->server);
}

void ebb__address_late(ebb_http *x) {
    if (x->place >= EBB__PLACE_LATE) return;
    remove_from_lists(x);
    ebb__place_step(x, EBB__PLACE_TOO_LATE);
    wake_one(x->conn->from, x->conn->server);
}

void ebb__address_left(ebb_http *x) {
    if (x->place != EBB__PLACE_LEAVING) return;
    ebb__place_step(x, EBB__PLACE_IS_LEFT);
    x->conn->from->leaving--;
    wake_one(x->conn->from, x->conn->server);
}

/* ---- eviction --------------------------------------------------------------------------------------------- */

/* Exchanges that started a while ago and do not wait for their peer, wait for something else. */
static void age(ebb__address *a, uint64_t now) {
    ebb_http *x;
    while ((x = a->starts.first) != NULL && now - x->started >= YOUNG_MS * EBB_MS) {
        remove_from_lists(x);
        ebb__place_step(x, EBB__PLACE_RESTS);
    }
}

static ebb_http *stalled_from(ebb_http *x, uint64_t now, ebb_http **next) {
    for (int i = 0; x != NULL && i < LOOK_AT; i++, x = x->held_next) {
        if (ebb__pacing_is_stalled(x, now)) return x;
    }
    *next = x;
    return NULL;
}

/* Bounded, since many may wait. Slow but moving exchanges may be first, with stalled ones after them: so a second
 * search continues where the last one ended. */
static ebb_http *longest_stalled(ebb__address *a, uint64_t now) {
    ebb_http *second, *x;
    if (now < a->look_at) return NULL;
    x = stalled_from(a->waits.first, now, &second);
    if (x == NULL) x = stalled_from(a->look_from != NULL ? a->look_from : second, now, &a->look_from);
    if (x == NULL) a->look_at = now + LOOK_AGAIN_MS * EBB_MS;
    return x;
}

/* The place is free when the handler has ended: its memory is in use until then. */
static bool evict_one(ebb__address *a, uint64_t now) {
    if (a->leaving >= LEAVING_MOST) return false;
    ebb_http *x = longest_stalled(a, now);
    if (x == NULL) return false;
    x->conn->server->stats.evicted++;
    if (ebb__exchange_has_region(x)) {
        remove_from_lists(x);
        ebb__place_step(x, EBB__PLACE_EVICTS);
        a->leaving++;
        wake_one(a, x->conn->server);
    }
    ebb__conn_task_late(x, "it stalled, and others need its place");
    return true;
}

/* Moves the exchange to the end of the list. Handlers that waited for something else may all get here at once, beyond
 * the limit. */
void ebb__address_hold(ebb_http *x) {
    ebb__address *a = x->conn->from;
    const ebb_http_server *s = x->conn->server;
    remove_from_lists(x);
    append(&a->waits, x);
    a->waiting++;
    ebb__place_step(x, EBB__PLACE_WAITS);
    x->conn->held++;
    if (a->waiting > s->limits.stalled) (void)evict_one(a, ebb__now(x->loop->rt));
}

bool ebb__address_has_room(ebb__conn *c) {
    ebb_http_server *s = c->server;
    ebb__address *a = c->from;
    if (c->held == 0 || has_room(s, a)) return true;
    uint64_t now = ebb__now(c->loop->rt);
    age(a, now);
    if (!has_room(s, a)) (void)evict_one(a, now);
    if (has_room(s, a)) return true;
    block(c);
    return false;
}

bool ebb__address_may_queue(const ebb__conn *c) {
    return c->starts == NULL || c->from->queued < (uint64_t)QUEUE * c->server->limits.stalled;
}

void ebb__address_evict_any(ebb_http_server *s, uint32_t most) {
    for (int i = 0; i < ADDRESSES_A_LOOK && most > 0 && s->address_first != NULL; i++) {
        ebb__address *a = s->address_first;
        remove_from_all(s, a);
        enter(s, a);
        while (most > 0 && evict_one(a, ebb__now(s->loop->rt))) most--;
    }
}
