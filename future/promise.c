/* Futures with a producer: promises, operations, tasks; and futures that have ended from the start. */
#include "future/promise.h"

#include "base/alloc.h"

static void trace_promise(void *object, ebb_gc_marker *t) {
    const ebb__promise *p = object;
    ebb__trace_future(object, t);
    ebb__trace_cell(t, p->many.edges);
}

static void forget_adopted(ebb__heap *h, ebb__promise *p) {
    ebb__edges *e = p->many.edges;
    p->many.edges = NULL;
    p->many.ready = NULL;
    p->many.ready_tail = &p->many.ready;
    ebb__heap_free_cell(h, &e->cell);
}

/* The future that f was settled with has ended. */
static void adopted_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__end_as(f, ebb__edge_input(e));
    ebb__edge_drop(s->heap, e);
    forget_adopted(s->heap, (ebb__promise *)(void *)f);
}

static bool promise_let_go(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    ebb__promise *p = (ebb__promise *)(void *)f;
    (void)work;
    if (p->many.edges != NULL) {
        ebb__edge_cancel(s->heap, &p->many.edges->item[0].edge, ebb__kind_of_cancel(f));
        forget_adopted(s->heap, p);
    }
    bool cancelled = ebb__state_of(f) == EBB_FUTURE_CANCELLED; /* else another thread has settled it */
    if (cancelled && f->flags & EBB__F_WORK && p->op->cancel != NULL) p->op->cancel(s->cx, f, p->arg);
    return true;
}

const ebb__kind ebb__promise_kind = {
    .type = {"promise", sizeof(ebb__promise), trace_promise, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_MANY | EBB__TYPE_LETS_GO},
    .input_ended = adopted_ended,
    .cancelled = promise_let_go,
};

ebb_future *ebb__promise_new(ebb_cx *cx, const ebb__kind *kind, const ebb_operation *op, void *arg,
                             const char *site, ebb_status *st) {
    ebb_future *f = ebb__future_new(cx, kind, site, st);
    if (f == NULL) return NULL;
    ebb__promise *p = (ebb__promise *)(void *)f;
    p->many.ready_tail = &p->many.ready;
    p->op = op;
    p->arg = arg;
    f->flags |= EBB__F_PRODUCED;
    if (op != NULL) ebb__count_as_work(f);
    if (op != NULL && op->closing != NULL && op->closing != ebb__only_waits) {
        ebb__region_futures_of(f)->listens = true;
    }
    return f;
}

ebb_future *ebb_promise_new_site(ebb_cx *cx, const ebb_operation *op, void *arg, const char *site) {
    ebb_status st = EBB_OK;
    ebb_future *f = ebb__promise_new(cx, &ebb__promise_kind, op, arg, site, &st);
    return f != NULL ? f : ebb__failed(st);
}

static const ebb__kind never_kind = {
    .type = {"never", sizeof(ebb_future), ebb__trace_future, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE},
};

ebb_future *ebb_future_never_site(ebb_cx *cx, const char *site) {
    ebb_status st = EBB_OK;
    ebb_future *f = ebb__future_new(cx, &never_kind, site, &st);
    return f != NULL ? f : ebb__failed(st);
}

void ebb__only_waits(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    (void)arg;
}

bool ebb__is_left_behind(const ebb_future *f) {
    if (!(f->flags & EBB__F_WORK)) return false;
    return !ebb__is_promise(f) || ((const ebb__promise *)(const void *)f)->op->closing != ebb__only_waits;
}

/* ---- settling --------------------------------------------------------------------------------------------- */

static void trace_edges(void *object, ebb_gc_marker *t) {
    const ebb__edges *e = object;
    ebb__trace_cell(t, e->next);
    for (uint32_t i = 0; i < e->n; i++) ebb__trace_edge(t, &e->item[i].edge);
}

static const ebb_type edges_type = {"edges", sizeof(ebb__edges), trace_edges, NULL, EBB__TYPE_OWN};

ebb__edges *ebb__edges_new(ebb__heap *h, ebb_future *node, uint32_t n) {
    ebb__edges *e = ebb__heap_alloc(h, &edges_type, sizeof *e + n * sizeof(ebb__item));
    if (e == NULL) return NULL;
    e->node = node;
    e->n = n;
    for (uint32_t i = 0; i < n; i++) e->item[i].slot = i;
    return e;
}

void ebb__promise_adopt(ebb_future *f, ebb_future *inner) {
    ebb__promise *p = (ebb__promise *)(void *)f;
    ebb_status st = ebb__usable_in(ebb__heap_of(f), inner);
    ebb__edges *e = st == EBB_OK ? ebb__edges_new(ebb__heap_of(f), f, 1) : NULL;
    if (e == NULL) {
        ebb__consume_failed(inner, f->site);
        (void)ebb__fail_with(f, st == EBB_OK ? EBB_ERR_NOMEM : st);
        return;
    }
    p->many.edges = e;
    ebb__edge_attach(f, &e->item[0].edge, inner, EBB__EDGE_MANY, f->site);
}

/* EBB_OK if the producer may settle f now. A producer may do so after the handle was consumed. EBB_ERR_FOREIGN leaves
 * the object alone, and f is yet to be settled. */
static ebb_status settle_begin(ebb_future *f, ebb_value v) {
    if (f == NULL || ebb__is_static(f) || f->cell.type == NULL) return EBB_ERR_INVALID;
    ebb__heap *h = ebb__heap_of(f);
    if (h->thread != ebb__this_thread()) {
        ebb__misuse(h, EBB_ERR_THREAD, "a future was settled on another thread than its runtime's", f->site);
        return EBB_ERR_THREAD;
    }
    if (!ebb__is_promise(f)) return EBB_ERR_INVALID;
    if (f->flags & EBB__F_SETTLED) {
        ebb__misuse(h, EBB_ERR_RESOLVED, "a future was settled twice", f->site);
        return EBB_ERR_RESOLVED;
    }
    if (ebb__is_foreign(h, &v)) {
        ebb__misuse(h, EBB_ERR_FOREIGN, "a future was settled with an object of another heap", f->site);
        return EBB_ERR_FOREIGN;
    }
    f->flags |= EBB__F_SETTLED;
    return EBB_OK;
}

static ebb_status settle_end(ebb_future *f, bool won) {
    bool cancelled = ebb__state_of(f) == EBB_FUTURE_CANCELLED;
    if (f->flags & EBB__F_PRODUCED) ebb__produced(f);
    return won ? EBB_OK : cancelled ? EBB_CANCELLED : EBB_ERR_RESOLVED;
}

ebb_status ebb_promise_settle(ebb_future *f, ebb_value v) {
    ebb_status st = settle_begin(f, v);
    if (st != EBB_OK) {
        if (st != EBB_ERR_THREAD && st != EBB_ERR_FOREIGN) ebb__refuse_value(v);
        return st;
    }
    ebb__object_let_go(ebb__value_cell(&v));
    return settle_end(f, ebb__complete(f, v));
}

ebb_status ebb__promise_reject_because(ebb_future *f, ebb_status failure, const char *text) {
    if (failure >= EBB_OK) return EBB_ERR_INVALID;
    ebb_status st = settle_begin(f, ebb_value_none());
    if (st != EBB_OK) return st;
    return settle_end(f, ebb__fail_because(f, failure, text));
}

ebb_status ebb_promise_reject(ebb_future *f, ebb_status failure) {
    return ebb__promise_reject_because(f, failure, "");
}

ebb_future *ebb_future_ready_site(ebb_cx *cx, ebb_value v, const char *site) {
    ebb_status st = EBB_OK;
    if (ebb__is_foreign(ebb__heap_at(ebb__rt_of(cx)), &v)) return ebb__failed(EBB_ERR_FOREIGN);
    ebb_future *f = ebb__promise_new(cx, &ebb__promise_kind, NULL, NULL, site, &st);
    if (f == NULL) {
        if (st != EBB_ERR_THREAD) ebb__refuse_value(v);
        return ebb__failed(st);
    }
    f->flags = EBB__F_SETTLED;
    ebb__object_let_go(ebb__value_cell(&v));
    (void)ebb__complete(f, v);
    return f;
}

ebb_future *ebb__future_failed_because(ebb_cx *cx, ebb_status failure, const char *text, const char *site) {
    if (failure >= EBB_OK) return ebb__failed(EBB_ERR_INVALID);
    ebb_status st = EBB_OK;
    ebb_future *f = ebb__promise_new(cx, &ebb__promise_kind, NULL, NULL, site, &st);
    if (f == NULL) return ebb__failed(st);
    f->flags = EBB__F_SETTLED;
    (void)ebb__fail_because(f, failure, text);
    return f;
}

ebb_future *ebb_future_failed_site(ebb_cx *cx, ebb_status failure, const char *site) {
    return ebb__future_failed_because(cx, failure, "", site);
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

typedef struct go_future {
    ebb__promise promise;
    ebb_poll_fn poll;
    void *state;
    ebb_task task;
    ebb_status status;
} go_future;

/* True if the task has a cancel request of this severity already, for example with its region. A second cancel that
 * is no stronger would only shorten its budget. */
static bool is_cancelled_already(ebb_cx *cx, ebb_task task, ebb_cancel_kind kind) {
    const ebb_cx *t = ebb__task_cx(ebb__rt_of(cx), task, NULL);
    return t != NULL && ebb__task_severity(t) >= (uint8_t)ebb_cancel_kind_severity(kind);
}

static void go_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    go_future *g = (go_future *)(void *)f;
    (void)arg;
    ebb_cancel_kind kind = ebb__kind_of_cancel(f);
    if (kind == EBB_CANCEL_DROPPED) kind = EBB_CANCEL_USER;
    if (!is_cancelled_already(cx, g->task, kind))
        ebb_task_cancel(cx, g->task, kind, "its future was cancelled");
}

static const ebb_operation go_op = {"task", go_cancel, ebb__only_waits};

static const ebb__kind go_kind = {
    .type = {"task", sizeof(go_future), trace_promise, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_MANY | EBB__TYPE_LETS_GO},
    .input_ended = adopted_ended,
    .cancelled = promise_let_go,
};

bool ebb__is_promise(const ebb_future *f) {
    return f->cell.type == &ebb__promise_kind.type || f->cell.type == &go_kind.type;
}

static ebb_status go_poll(ebb_cx *cx, void *state) {
    go_future *g = state;
    g->status = g->poll(cx, g->state);
    return g->status;
}

/* The task's first finalizer, which runs last, however the task has ended. */
static ebb_status go_finished(ebb_cx *cx, void *state) {
    go_future *g = state;
    (void)cx;
    ebb_future *f = &g->promise.many.future;
    if (g->status == EBB_OK) (void)ebb_promise_settle(f, ebb_value_none());
    else
        (void)ebb_promise_reject(f, g->status < 0              ? g->status
                                    : g->status == EBB_PENDING ? EBB_CANCELLED
                                                               : EBB_ERR_INVALID);
    return EBB_OK;
}

ebb_future *ebb_go_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                        const ebb_task_opts *opts, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_status st = poll == NULL ? EBB_ERR_INVALID : ebb__rt_reserve_obligation(rt);
    ebb_future *f = st == EBB_OK ? ebb__promise_new(cx, &go_kind, &go_op, NULL, site, &st) : NULL;
    if (f == NULL) return ebb__failed(st);
    go_future *g = (go_future *)(void *)f;
    g->poll = poll;
    g->state = state;
    g->status = EBB_PENDING;
    g->task = ebb__spawn_apart(cx, region, go_poll, g, opts, site);
    st = ebb_id_status(g->task.id);
    if (st == EBB_OK) {
        /* cannot fail: the memory was reserved */
        (void)ebb_defer_site(ebb__task_cx(rt, g->task, NULL), go_finished, g, site);
    } else {
        (void)ebb_promise_reject(f, st);
    }
    return f;
}
