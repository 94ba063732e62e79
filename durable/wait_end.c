/* The wait for the end of an instance: it is read, then again when a hint says that it has ended, and at the latest
 * after a second. */
#include <string.h>

#include "base/alloc.h"
#include "durable/client.h"
#include "kernel/layer.h"

#define POLL EBB_SECOND

/* Invariants: `pending` is the read or the pause that is in flight, and its callbacks go on with this record. `store` is
 * NULL from the close of the store on: then the store may be gone. */
typedef struct ending {
    ebb_future *promise, *pending;
    ebb_store *store;
    ebb_allocator allocator;
    ebb__hint_listener listener;
    ebb__awaited awaited;
    bool in_unit;  /* `awaited` is in the store's list */
    uint64_t key;  /* 0: no read has come back */
    uint64_t ends; /* that the listeners of the store knew of when it began */
    bool hinted, pausing, stopped;
    char id[EBB_DURABLE_ID + 1];
} ending;

static void ask(ebb_cx *cx, ending *e);

static void forget_store(ending *e) {
    if (e->store == NULL) return;
    ebb__store_unlisten(e->store, &e->listener);
    if (e->in_unit) ebb__store_unawait(e->store, &e->awaited);
    e->store = NULL;
}

static void end(ending *e, ebb_status st, ebb_value v) {
    ebb_allocator a = e->allocator;
    ebb_future *promise = e->promise;
    forget_store(e);
    ebb__free(&a, e, sizeof *e);
    if (st == EBB_OK) (void)ebb_promise_settle(promise, v);
    else (void)ebb__promise_reject_because(promise, st, ebb__durable_said(st));
}

static void gone(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    ending *e = arg;
    (void)kind;
    if (e->pausing && e->hinted && !e->stopped) ask(cx, e);
    else if (e->pausing && e->store == NULL && !e->stopped) ask(cx, e);
    else end(e, EBB_CANCELLED, ebb_value_none());
}

static void follow(ending *e, ebb_future *f, ebb_done_fn then) {
    e->pending = f;
    ebb_status st = ebb_future_on_cancel(f, gone, e);
    if (st == EBB_OK) {
        st = ebb_future_on_done(f, then, e);
        e->stopped |= st != EBB_OK;
        if (st == EBB_OK || ebb_future_cancel(f, EBB_CANCEL_RESOURCE)) return;
    }
    end(e, st, ebb_value_none());
}

static void paused(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ask(cx, arg);
}

static bool has_ended(ebb_instance_state s) {
    return s != EBB_INSTANCE_RUNNING && s != EBB_INSTANCE_SUSPENDED;
}

/* From here on its own end alone is told. Until now any end may have been. */
static void learn_key(ending *e, uint64_t key) {
    e->key = key;
    if (e->store == NULL) return;
    e->hinted |= ebb__store_ends(e->store) != e->ends;
    ebb__store_listen_for(e->store, &e->listener, key);
}

static void answered(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    ending *e = arg;
    ebb_provider_instance_call *c = st == EBB_OK ? ebb__call_of(v) : NULL;
    if (st != EBB_OK) (void)ebb__durable_say(st, "%s", ebb__failure_text(e->pending));
    else if (c->call.status != EBB_OK) st = ebb__durable_say(c->call.status, "%s", c->call.text);
    if (st == EBB_OK && c->row.state == EBB_INSTANCE_SUSPENDED)
        st = ebb__durable_say(EBB_ERR_SUSPENDED, "%s is suspended: %s", e->id, c->row.text);
    if (st != EBB_OK) {
        end(e, st, ebb_value_none());
        return;
    }
    if (e->key != c->row.key) learn_key(e, c->row.key);
    if (e->store != NULL && e->in_unit) ebb__store_await_key(e->store, &e->awaited, e->key);
    if (has_ended(c->row.state)) {
        ebb_value own = ebb_value_take(cx, v), info = ebb_value_none();
        c = ebb__call_of(&own);
        st = ebb__client_info_value(&c->call, &c->row, &info);
        end(e, st, info);
    } else if (e->hinted || e->store == NULL) {
        ask(cx, e);
    } else {
        e->pausing = true;
        follow(e, ebb_after(cx, POLL), paused);
    }
}

static void ask(ebb_cx *cx, ending *e) {
    e->hinted = e->pausing = false;
    if (e->store == NULL) {
        end(e, ebb__durable_say(EBB_ERR_CLOSED, "the store was closed before %s had ended", e->id),
            ebb_value_none());
        return;
    }
    ebb_provider_instance_call *c = ebb__call_new(ebb__store_gate(e->store), EBB_PROVIDER_INSTANCE);
    if (c == NULL) {
        end(e, EBB_ERR_NOMEM, ebb_value_none());
        return;
    }
    c->id = ebb__call_text(&c->call, e->id);
    follow(e, ebb__call_begin(cx, &c->call, EBB_SITE), answered);
}

static void on_hint(void *arg, const ebb_provider_hint *h) {
    ending *e = arg;
    const bool mine =
        h->kind == EBB_PROVIDER_HINT_LOST || (h->kind == EBB_PROVIDER_HINT_ENDED && h->key == e->key);
    if (!mine) return;
    e->hinted = true;
    if (e->pausing) (void)ebb_future_cancel(e->pending, EBB_CANCEL_USER);
}

static void on_closed(void *arg) {
    ending *e = arg;
    forget_store(e);
    if (e->pausing) (void)ebb_future_cancel(e->pending, EBB_CANCEL_USER);
}

static void cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ending *e = arg;
    (void)cx;
    (void)f;
    e->stopped = true;
    (void)ebb_future_cancel(e->pending, EBB_CANCEL_USER);
}

static bool is_in_unit(ebb_cx *cx) {
    ebb_runtime *rt = ebb_cx_runtime(cx);
    for (const ebb__region *r = ebb__region_of(cx); r != NULL; r = ebb__region_parent(rt, r)) {
        if (ebb__region_is(rt, r, EBB__REGION_UNIT)) return true;
    }
    return false;
}

static const ebb_operation wait_op = {"end of an instance", cancel, NULL};

ebb_future *ebb_instance_wait_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site) {
    ebb_status st = ebb__client_check_id(id);
    if (st != EBB_OK) return ebb__durable_future_failed(cx, st, site);
    ebb__call_gate *g = ebb__store_gate(s);
    ending *e = ebb__alloc(&g->allocator, sizeof *e);
    if (e == NULL) return ebb__durable_future_failed(cx, EBB_ERR_NOMEM, site);
    memset(e, 0, sizeof *e);
    e->store = s;
    e->allocator = g->allocator;
    e->listener = (ebb__hint_listener){.hint = on_hint, .closed = on_closed, .arg = e};
    e->in_unit = is_in_unit(cx);
    memcpy(e->id, id, strlen(id) + 1);
    e->promise = ebb_promise_new_site(cx, &wait_op, e, site);
    ebb_future *f = e->promise;
    if (ebb_future_status_of(f) != EBB_PENDING) {
        ebb__free(&g->allocator, e, sizeof *e);
        return f;
    }
    e->ends = ebb__store_ends(s);
    ebb__store_listen_for(s, &e->listener, 0);
    if (e->in_unit) ebb__store_await(s, &e->awaited);
    ask(cx, e);
    return f;
}
