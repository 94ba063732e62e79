/* Calls of a store: made, begun, done, freed. A call is one block: the record of this layer, then the provider's struct.
 * Its future refers to it by a remote handle, so that a region that was forced may be gone when the provider answers. */
#define _POSIX_C_SOURCE 200809L
#include "durable/store.h"

#include <string.h>

#include "base/alloc.h"

enum { CHUNK = 1024, TEXT_MOST = 511 };

typedef struct ebb__call ebb__call;
struct ebb__call {
    ebb__message posted; /* to the loop's thread, by the done of another one */
    ebb__call_gate *gate;
    ebb__arena arena;
    ebb_remote *remote;                             /* NULL: not begun, or the store's own */
    void (*ended)(void *arg, ebb_provider_call *c); /* of the store's own */
    void *arg;
    bool nomem;           /* a part of what it asks is missing */
    uint8_t fault;        /* ebb__store_fault, after the answer */
    bool insists;         /* asks again after a retryable failure, until `until` */
    uint64_t until;       /* ebb_now */
    uint64_t pause;       /* ns before the next attempt */
    ebb_future *sleeping; /* the pause; NULL: none */
    ebb_allocator allocator;
};

#define HEAD ((sizeof(ebb__call) + sizeof(ebb__widest) - 1) / sizeof(ebb__widest) * sizeof(ebb__widest))

static ebb_provider_call *asked(ebb__call *k) {
    return (ebb_provider_call *)(void *)((char *)k + HEAD);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static void ask_open(const ebb_provider *p, void *self, ebb_provider_call *c) {
    (void)self;
    p->open((ebb_provider_open_call *)c);
}

#define ASK(fn)                                                                                              \
    static void ask_##fn(const ebb_provider *p, void *self, ebb_provider_call *c) {                          \
        p->fn(self, (ebb_provider_##fn##_call *)c);                                                          \
    }
ASK(close)
ASK(join)
ASK(renew)
ASK(leave)
ASK(fetch_turns)
ASK(ack_turn)
ASK(abandon_turns)
ASK(fetch_work)
ASK(ack_work)
ASK(abandon_work)
ASK(start)
ASK(send)
ASK(history)
ASK(instance)
ASK(list)
ASK(value)
ASK(outstanding)
ASK(mark)
ASK(reset)
ASK(remove)

#define ROW(OP, fn, class, repeatable)                                                                       \
    [EBB_PROVIDER_##OP] = {#fn, sizeof(ebb_provider_##fn##_call), class, repeatable, ask_##fn}

/* A join that is repeated leaves a node behind that lapses; a second reset or start finds what the first has done. */
const ebb__call_type ebb__call_types[EBB_PROVIDER_OPS] = {
    ROW(OPEN, open, EBB__CALL_RESERVED, true),
    ROW(CLOSE, close, EBB__CALL_RESERVED, false),
    ROW(JOIN, join, EBB__CALL_RESERVED, true),
    ROW(RENEW, renew, EBB__CALL_RESERVED, true),
    ROW(LEAVE, leave, EBB__CALL_RESERVED, true),
    ROW(FETCH_TURNS, fetch_turns, EBB__CALL_YIELDS, false),
    ROW(ACK_TURN, ack_turn, EBB__CALL_RESERVED, true),
    ROW(ABANDON_TURNS, abandon_turns, EBB__CALL_RESERVED, true),
    ROW(FETCH_WORK, fetch_work, EBB__CALL_YIELDS, false),
    ROW(ACK_WORK, ack_work, EBB__CALL_RESERVED, true),
    ROW(ABANDON_WORK, abandon_work, EBB__CALL_RESERVED, true),
    ROW(START, start, EBB__CALL_YIELDS, true),
    ROW(SEND, send, EBB__CALL_YIELDS, false),
    ROW(HISTORY, history, EBB__CALL_YIELDS, true),
    ROW(INSTANCE, instance, EBB__CALL_YIELDS, true),
    ROW(LIST, list, EBB__CALL_YIELDS, true),
    ROW(VALUE, value, EBB__CALL_YIELDS, true),
    ROW(OUTSTANDING, outstanding, EBB__CALL_YIELDS, true),
    ROW(MARK, mark, EBB__CALL_RESERVED, true),
    ROW(RESET, reset, EBB__CALL_RESERVED, false),
    ROW(REMOVE, remove, EBB__CALL_YIELDS, true),
};

/* A cancel is a send, and has the reserve. */
static bool yields(const ebb_provider_call *c) {
    if (ebb__call_types[c->op].of == EBB__CALL_RESERVED) return false;
    return c->op != EBB_PROVIDER_SEND ||
           ((const ebb_provider_send_call *)c)->kind != EBB_PROVIDER_MESSAGE_CANCEL;
}

static void take(ebb_runtime *rt, ebb__message *m);

/* ---- made and freed --------------------------------------------------------------------------------------------- */

void *ebb__call_new(ebb__call_gate *g, ebb_provider_op op) {
    const size_t n = HEAD + ebb__call_types[op].bytes;
    ebb__call *k = ebb__alloc(&g->allocator, n);
    if (k == NULL) return NULL;
    memset(k, 0, n);
    k->posted.take = take;
    k->gate = g;
    k->allocator = g->allocator;
    ebb__arena_init(&k->arena, g->allocator, CHUNK);
    ebb_provider_call *c = asked(k);
    c->op = op;
    c->attempt = 1;
    c->text = "";
    c->host = k;
    return c;
}

static void call_free(ebb__call *k) {
    ebb_allocator a = k->allocator;
    const size_t n = HEAD + ebb__call_types[asked(k)->op].bytes;
    if (k->remote != NULL) ebb_remote_release(k->remote);
    ebb__arena_free(&k->arena);
    ebb__free(&a, k, n);
}

void ebb__call_free(ebb_provider_call *c) {
    if (c != NULL) call_free(c->host);
}

static void value_free(void *c) {
    ebb__call_free(c);
}

static const ebb_type call_value = {"call of a store", 0, NULL, value_free, 0};

void *ebb__call_of(const ebb_value *v) {
    return v->type == &call_value ? v->as.p : NULL;
}

void *ebb_provider_alloc(ebb_provider_call *c, size_t n) {
    return ebb__arena_alloc(&c->host->arena, n);
}

void *ebb_provider_copy(ebb_provider_call *c, const void *from, size_t n) {
    char *to = n < SIZE_MAX ? ebb_provider_alloc(c, n + 1) : NULL;
    if (to == NULL) return NULL;
    if (n != 0) memcpy(to, from, n);
    to[n] = 0;
    return to;
}

void *ebb__call_room(ebb_provider_call *c, size_t n) {
    void *at = ebb_provider_alloc(c, n);
    if (at == NULL) c->host->nomem = true;
    else c->bytes += n;
    return at;
}

void ebb__call_nomem(ebb_provider_call *c) {
    c->host->nomem = true;
}

const char *ebb__call_text(ebb_provider_call *c, const char *text) {
    if (text == NULL || *text == 0) return "";
    const size_t n = strlen(text);
    char *to = ebb__call_room(c, n + 1);
    if (to == NULL) return "";
    memcpy(to, text, n + 1);
    return to;
}

ebb_blob ebb__call_blob(ebb_provider_call *c, ebb_blob b) {
    ebb_blob copy = {NULL, 0};
    void *to = b.at != NULL ? ebb__call_room(c, b.n) : NULL;
    if (to == NULL) return copy;
    if (b.n != 0) memcpy(to, b.at, b.n);
    copy.at = to;
    copy.n = b.n;
    return copy;
}

/* ---- done --------------------------------------------------------------------------------------------------------- */

static void start(ebb__call *k);

static void admit_waiting(ebb__call_gate *g) {
    if (g->admitting) return;
    g->admitting = true;
    while (g->waiting.calls > 0 && g->begun < g->most + g->reserve)
        start(ebb__call_queue_pop(&g->waiting)->host);
    g->admitting = false;
}

static void put_text(ebb__call *k, const char *text) {
    ebb_provider_call *c = asked(k);
    const size_t n = text != NULL ? strnlen(text, TEXT_MOST) : 0;
    char *copy = n != 0 ? ebb_provider_copy(c, text, n) : NULL;
    c->text = copy != NULL ? copy : "";
}

static void crash(ebb__call_gate *g) {
    if (g->crashed) return;
    g->crashed = true;
    g->faults->crash(g->faults->arg);
}

bool ebb__call_is_wanted(const ebb_provider_call *c) {
    const ebb_remote *r = c->host->remote;
    return r == NULL || ebb_remote_state(r) == EBB_FUTURE_PENDING;
}

/* The future may dispose of the call before this returns. */
static void hand_over(ebb__call *k) {
    ebb_remote *r = k->remote;
    k->remote = NULL;
    (void)ebb_remote_settle(r, ebb_value_owned(&call_value, asked(k)));
    ebb_remote_release(r);
}

/* ---- again ---------------------------------------------------------------------------------------------------------- */

#define PAUSE_NS      (10 * EBB_MS)
#define PAUSE_MOST_NS EBB_SECOND
enum { AT_ONCE = 3 }; /* attempts without a pause, where there can be no timer */

static bool is_worth_another(ebb__call *k) {
    return k->insists && !k->gate->closed && ebb_remote_state(k->remote) == EBB_FUTURE_PENDING &&
           ebb_provider_class_of(asked(k)->status) == EBB_PROVIDER_RETRYABLE;
}

static void ask_again(ebb__call *k) {
    ebb__call_gate *g = k->gate;
    ebb_provider_call *c = asked(k);
    c->attempt++;
    c->next = NULL;
    c->mine = NULL;
    c->text = "";
    k->fault = EBB__FAULT_NONE;
    if (g->begun >= g->most + g->reserve) ebb__call_queue_push(&g->waiting, c);
    else start(k);
}

static void asleep_remove(ebb__call_gate *g, ebb_provider_call *c) {
    ebb_provider_call **at = &g->asleep;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    g->sleeping--;
}

/* The pause is over; or its timer was cancelled with the root region, where pauses are not to be had any more. */
static void woken(ebb_cx *cx, void *arg) {
    ebb__call *k = arg;
    ebb__call_gate *g = k->gate;
    ebb_future *f = k->sleeping;
    const bool cut = ebb_future_is_cancelled(f);
    (void)cx;
    k->sleeping = NULL;
    ebb_future_drop(f);
    asleep_remove(g, asked(k));
    if (is_worth_another(k) && (!cut || asked(k)->attempt < AT_ONCE)) ask_again(k);
    else {
        hand_over(k);
        ebb__call_gate_rest(g);
    }
}

/* Ends all pauses: `woken` follows in the pump. */
void ebb__call_gate_wake(ebb__call_gate *g) {
    for (ebb_provider_call *c = g->asleep; c != NULL; c = c->next)
        (void)ebb_future_cancel(c->host->sleeping, EBB_CANCEL_USER);
}

/* False: there is no other attempt. */
static bool sleep_before_next(ebb__call *k) {
    ebb__call_gate *g = k->gate;
    if (!is_worth_another(k)) return false;
    ebb_cx *cx = ebb_runtime_host(g->runtime);
    const uint64_t now = ebb_now(cx);
    if (now >= k->until || k->until - now < k->pause) return false;
    ebb_future *f = ebb_after_site(cx, k->pause, "pause before a call is repeated");
    if (ebb_future_on_cleanup(f, woken, k) != EBB_OK) {
        ebb_future_drop(f);
        return false;
    }
    k->sleeping = f;
    k->pause = k->pause < PAUSE_MOST_NS / 2 ? 2 * k->pause : PAUSE_MOST_NS;
    asked(k)->next = g->asleep;
    g->asleep = asked(k);
    g->sleeping++;
    return true;
}

/* ---- ended ---------------------------------------------------------------------------------------------------------- */

void ebb__call_gate_rest(ebb__call_gate *g) {
    if (g->begun == 0 && g->sleeping == 0 && g->inside == 0 && g->idle != NULL) g->idle(g);
}

static void apply_fault(ebb__call *k) {
    if (k->fault == EBB__FAULT_LOST_REPLY) {
        asked(k)->status = EBB_ERR_UNAVAILABLE;
        put_text(k, "the answer was lost");
    }
    if (k->fault == EBB__FAULT_CRASH_AFTER) crash(k->gate);
}

/* A failure for a moment is nobody's concern. What says nothing about the database changes nothing. */
static void note_away(ebb__call_gate *g, const ebb_provider_call *c) {
    const uint64_t now = ebb_now(ebb_runtime_host(g->runtime));
    if (c->status == EBB_ERR_UNAVAILABLE) {
        if (g->away_since == 0) g->away_since = now != 0 ? now : 1;
        if (g->away_told || now - g->away_since < EBB__AWAY_AFTER) return;
        g->away_told = true;
        g->away(g, c->text, now - g->away_since);
    } else if (ebb_provider_class_of(c->status) != EBB_PROVIDER_RETRYABLE && c->status != EBB_ERR_CLOSED) {
        if (g->away_told) g->away(g, NULL, now - g->away_since);
        g->away_since = 0;
        g->away_told = false;
    }
}

/* On the loop's thread. The call is its reader's from here on, or gone with a reader that is. */
static void finish(ebb__call *k) {
    ebb__call_gate *g = k->gate;
    ebb_provider_call *c = asked(k);
    g->begun--;
    g->inside++;
    apply_fault(k);
    if (g->away != NULL && !g->crashed && k->ended == NULL) note_away(g, c);
    if (k->ended != NULL) {
        k->ended(k->arg, c);
        call_free(k);
    } else if (g->crashed) ebb__call_queue_push(&g->dead, c);
    else if (!sleep_before_next(k)) hand_over(k);
    admit_waiting(g);
    g->inside--;
    ebb__call_gate_rest(g);
}

static void take(ebb_runtime *rt, ebb__message *m) {
    ebb__call *k = (ebb__call *)(void *)m;
    if (rt != NULL) finish(k);
    else call_free(k);
}

void ebb_provider_done(ebb_provider_call *c, ebb_status st, const char *text) {
    ebb__call *k = c->host;
    ebb__heap *h = k->gate->heap;
    c->status = st;
    put_text(k, text);
    if (h->thread == ebb__this_thread()) finish(k);
    else if (!ebb__post(h, &k->posted)) call_free(k);
}

/* ---- begun ---------------------------------------------------------------------------------------------------------- */

static ebb__store_fault fault_of(ebb__call_gate *g, const ebb_provider_call *c) {
    const uint64_t n = g->calls++;
    return g->faults != NULL ? g->faults->at(g->faults->arg, n, c) : EBB__FAULT_NONE;
}

static void start(ebb__call *k) {
    ebb__call_gate *g = k->gate;
    ebb_provider_call *c = asked(k);
    const ebb__store_fault fault = k->ended == NULL ? fault_of(g, c) : EBB__FAULT_NONE;
    g->begun++;
    if (fault == EBB__FAULT_CRASH_BEFORE) crash(g);
    if ((g->crashed && k->ended == NULL) || fault == EBB__FAULT_BEFORE) {
        ebb_provider_done(c, EBB_ERR_UNAVAILABLE, "the store was not asked");
        return;
    }
    k->fault = (uint8_t)fault;
    ebb__call_types[c->op].ask(g->provider, g->self, c);
}

static ebb_status admit(const ebb__call_gate *g, const ebb_provider_call *c) {
    if (c->host->nomem) return EBB_ERR_NOMEM;
    if (g->closed)
        return ebb__durable_say(EBB_ERR_CLOSED, "the store is closed; %s was not begun",
                                ebb__call_types[c->op].name);
    if (yields(c) && g->begun >= g->most)
        return ebb__durable_say(EBB_ERR_BUSY,
                                "%u operations of the store are in flight (%u); %s was not begun", g->begun,
                                g->most, ebb__call_types[c->op].name);
    return EBB_OK;
}

static const ebb_operation call_op = {"call of a store", NULL, NULL};

ebb_future *ebb__call_begin(ebb_cx *cx, ebb_provider_call *c, const char *site) {
    ebb__call_gate *g = c->host->gate;
    ebb_status st = admit(g, c);
    ebb_future *f = st == EBB_OK ? ebb_promise_new_site(cx, &call_op, NULL, site)
                                 : ebb__durable_future_failed(cx, st, site);
    if (st == EBB_OK) st = ebb_future_status_of(f);
    if (st == EBB_PENDING) {
        st = ebb_remote_new(f, &c->host->remote);
        if (st != EBB_OK) (void)ebb_promise_reject(f, st);
    }
    if (st != EBB_OK) {
        ebb__call_free(c);
        return f;
    }
    if (g->waiting.calls > 0 || g->begun >= g->most + g->reserve) ebb__call_queue_push(&g->waiting, c);
    else start(c->host);
    return f;
}

ebb_future *ebb__call_insist(ebb_cx *cx, ebb_provider_call *c, uint64_t until, const char *site) {
    ebb__call *k = c->host;
    k->insists = ebb__call_types[c->op].repeatable;
    k->until = until;
    k->pause = PAUSE_NS;
    return ebb__call_begin(cx, c, site);
}

void ebb__call_ask(ebb_provider_call *c, void (*ended)(void *arg, ebb_provider_call *c), void *arg) {
    ebb__call *k = c->host;
    k->ended = ended;
    k->arg = arg;
    start(k);
}

void ebb__call_gate_fini(ebb__call_gate *g) {
    while (g->waiting.calls > 0) ebb__call_free(ebb__call_queue_pop(&g->waiting));
    while (g->dead.calls > 0) ebb__call_free(ebb__call_queue_pop(&g->dead));
}
