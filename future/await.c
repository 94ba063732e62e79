/* ebb_await: a task waits for a future. */
#include <assert.h>

#include "future/promise.h"

/* The record of one await: a member of the task's region, held until the wait ends. */
typedef struct awaiter {
    ebb__cell cell;
    ebb__edge edge;
    ebb_wait wait; /* `on` is the awaiter */
} awaiter;

static void trace_awaiter(void *object, ebb_gc_marker *t) {
    const awaiter *a = object;
    ebb__trace_edge(t, &a->edge);
}

static const ebb_type awaiter_type = {"await", sizeof(awaiter), trace_awaiter, NULL, EBB__TYPE_OWN};

static awaiter *awaiter_of(ebb__edge *e) {
    return (awaiter *)(void *)((char *)e - offsetof(awaiter, edge));
}

void ebb__await_ended(ebb__edge *e) {
    ebb__waiter_wake(&awaiter_of(e)->wait);
}

ebb_future *ebb__awaited_masked(ebb__cell *c) {
    if (c->type != &awaiter_type) return NULL;
    awaiter *a = (awaiter *)(void *)c;
    const ebb_cx *cx = a->wait.cx;
    bool masked = cx != NULL && ebb__is_masked(cx) && !ebb__is_overdue(cx);
    return masked ? ebb__edge_input(&a->edge) : NULL;
}

static void awaiter_free(awaiter *a) {
    ebb__heap *h = ebb__heap_of(a);
    ebb__member_remove(ebb__region_futures_of_cell(h, &a->cell), &a->cell);
    ebb__heap_free_cell(h, &a->cell);
}

/* The task has ended or is cancelled: cancels the awaited future. */
static void await_cancel(ebb_wait *w) {
    awaiter *a = w->on;
    ebb__edge_cancel(ebb__heap_of(a), &a->edge, EBB_CANCEL_PARENT);
}

static void await_left(ebb_wait *w);
static const ebb_wait_kind awaiting = {"future", await_left};

/* The kernel ends the wait after this, so the record stays allocated until a collection. */
static void await_left(ebb_wait *w) {
    awaiter *a = w->on;
    await_cancel(w);
    ebb__heap *h = ebb__heap_of(a);
    ebb__member_remove(ebb__region_futures_of_cell(h, &a->cell), &a->cell);
}

bool ebb__await_look(const ebb_wait *w, const char **what, const char **site) {
    const ebb_future *f =
        w == NULL || w->kind != &awaiting ? NULL : ebb__edge_input(&((awaiter *)w->on)->edge);
    if (f == NULL) return false;
    *what = ebb__future_name(f);
    *site = f->site;
    return true;
}

static awaiter *find(ebb_cx *cx, ebb_future *f) {
    for (ebb_wait *w = ebb__waits_of(cx); w != NULL; w = w->sibling) {
        if (w->kind == &awaiting && ebb__edge_input(&((awaiter *)w->on)->edge) == f) return w->on;
    }
    return NULL;
}

/* The future may have failed with these statuses too. A failure of the await itself therefore has a status of its
 * own. */
static ebb_status own_shortage(ebb_status st) {
    return st == EBB_ERR_NOMEM || st == EBB_ERR_LIMIT ? EBB_ERR_NOT_AWAITED : st;
}

static ebb_status begin(ebb_cx *cx, ebb_future *f) {
    ebb_status st = EBB_OK;
    ebb__region_futures *s = ebb__region_futures_get(cx, &st);
    if (s == NULL) return own_shortage(st);
    awaiter *a = ebb__heap_alloc(s->heap, &awaiter_type, sizeof *a);
    if (a == NULL) return EBB_ERR_NOT_AWAITED;
    ebb__member_add(s, &a->cell);
    st = ebb_wait_begin(cx, &a->wait, &awaiting, a);
    if (st != EBB_OK) {
        awaiter_free(a);
        return st;
    }
    ebb__note_event(ebb__rt_of(cx), EBB_EV_FUTURE_AWAITED, .task = ebb_cx_task(cx).id,
                    .other = ebb__future_number(f));
    ebb__edge_attach(NULL, &a->edge, f, EBB__EDGE_AWAIT, "ebb_await");
    return EBB_PENDING;
}

/* EBB_OK if the region of cx can hold the value that the caller gets. */
static ebb_status make_room(ebb_cx *cx, const ebb_future *f, const ebb_value *v) {
    if (v == NULL || ebb__state_of(f) != EBB_FUTURE_COMPLETED) return EBB_OK;
    return own_shortage(ebb__object_hold(cx, ebb__value_cell(&f->value)));
}

/* Reads the outcome for the caller. */
static ebb_status collect(ebb_future *f, ebb_value *v) {
    ebb_status st = ebb__status_of(f);
    ebb_value got = st == EBB_OK ? ebb__value_from(f) : ebb_value_none();
    if (v != NULL) *v = got;
    else ebb__dispose(got); /* a borrowed value has no type, or another reference */
    if (ebb__state_of(f) == EBB_FUTURE_FAILED) ebb__failure_say(ebb__failure_text(f));
    return st;
}

static ebb_status end(ebb_cx *cx, awaiter *a, ebb_future *f, ebb_value *v) {
    ebb_status st = make_room(cx, f, v);
    if (st != EBB_OK) return st;
    st = collect(f, v);
    ebb_wait_end(&a->wait);
    ebb__edge_drop(ebb__heap_of(a), &a->edge);
    awaiter_free(a);
    return st;
}

/* f has ended, and no callback or other waiter is yet to read its value. */
static bool is_ready(const ebb_future *f) {
    return ebb__has_ended(f) && f->hooks == NULL && (f->flags & EBB__F_FINISHED || f->owners <= 1);
}

static ebb_status await_first(ebb_cx *cx, ebb_future *f, ebb_value *v) {
    ebb__heap *h = ebb__heap_at(ebb__rt_of(cx));
    ebb_status st = ebb__usable_in(h, f);
    if (st != EBB_OK) return st;
    assert(f != NULL);
    bool host = ebb__is_host(cx);
    if (ebb__is_runner(cx)) {
        ebb__misuse(h, EBB_ERR_NOT_TASK, "a callback can't await", f->site);
        return EBB_ERR_NOT_TASK;
    }
    if (!host && ebb_checkpoint(cx) != EBB_OK) {
        ebb__let_go_of(f, EBB_CANCEL_PARENT, "ebb_await");
        return EBB_CANCELLED;
    }
    if (is_ready(f)) {
        if (ebb__is_static(f)) return collect(f, v);
        st = make_room(cx, f, v);
        if (st != EBB_OK) return st;
        f->owners++; /* keeps f while its value is read */
        ebb__consume(f, "ebb_await");
        st = collect(f, v);
        f->owners--;
        ebb__maybe_free(ebb__heap_of(f), f);
        return st;
    }
    return host ? EBB_ERR_NOT_TASK : begin(cx, f);
}

static ebb_status await_poll(ebb_cx *cx, ebb_future *f, ebb_value *v) {
    awaiter *a = f == NULL || ebb__is_host(cx) ? NULL : find(cx, f);
    if (a == NULL) return await_first(cx, f, v);
    if (ebb_checkpoint(cx) == EBB_OK) {
        if (is_ready(f)) return end(cx, a, f, v);
        ebb__edge_rejoin(&a->edge);
        return EBB_PENDING;
    }
    await_cancel(&a->wait);
    ebb_wait_end(&a->wait);
    awaiter_free(a);
    return EBB_CANCELLED;
}

ebb_status ebb_await(ebb_cx *cx, ebb_future *f, ebb_value *v) {
    ebb_status st;
    if (v != NULL) *v = ebb_value_none();
    EBB__AWAIT(cx, st, await_poll(cx, f, v));
    return st;
}
