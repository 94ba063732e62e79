/* finally and bracket: cleanup that runs at any end, and whose future is waited for. */
#include "future/then.h"

/* How the input ended, kept while the cleanup's future is waited for. */
typedef struct ending {
    ebb_future_state state;
    ebb_cancel_kind kind;
    ebb_value value; /* of a failure too: failure.c */
} ending;

static ending ending_of(ebb_future *f) {
    ebb_future_state state = ebb__state_of(f);
    ebb_value v = state == EBB_FUTURE_COMPLETED ? ebb__value_from(f) : f->value;
    return (ending){state, ebb__kind_of_cancel(f), v};
}

static void end_as(ebb_future *f, const ending *e) {
    if (e->state == EBB_FUTURE_COMPLETED) (void)ebb__complete(f, e->value);
    else if (e->state == EBB_FUTURE_FAILED) (void)ebb__fail_as(f, e->value);
    else (void)ebb__cancel_as(f, e->kind);
}

/* A future that the callback returned is cleanup that has begun. Neither the end of the result nor a cancel of the
 * region cancels it, and it holds itself until it has ended. */
static void protect(ebb__heap *h, ebb_future *f) {
    if (ebb__usable_in(h, f) != EBB_OK || ebb__is_static(f)) return;
    f->flags |= EBB__F_SHIELDED;
    if (f->flags & (EBB__F_FINISHED | EBB__F_CLEANUP)) return;
    ebb__hold_again(f);
    f->flags |= EBB__F_CLEANUP;
}

/* Lets a cleanup's future run without a waiter. */
static void let_run(ebb__heap *h, ebb_future *f) {
    if (f == NULL || ebb__usable_in(h, f) != EBB_OK || ebb__is_static(f)) return;
    protect(h, f);
    ebb__consume(f, f->site);
}

/* The cleanup's future has ended. The result ends as its input did; if the input completed and the cleanup did not,
 * as the cleanup did. */
static void released(ebb__region_futures *s, ebb_future *f, ebb__edge *e, const ending *was) {
    ebb_future *input = ebb__edge_input(e);
    if (was->state == EBB_FUTURE_COMPLETED && ebb__state_of(input) != EBB_FUTURE_COMPLETED) {
        ebb_value v = was->value;
        ebb__end_as(f, input);
        ebb__dispose(v);
    } else {
        end_as(f, was);
    }
    ebb__edge_drop(s->heap, e);
}

/* ---- finally ---------------------------------------------------------------------------------------------- */

/* EBB__F_STEP: the callback has run. */
typedef struct finally {
    ebb__single single;
    ending was;
} finally;

static void trace_finally(void *object, ebb_gc_marker *t) {
    const finally *n = object;
    ebb__trace_single(object, t);
    ebb_gc_mark_value(t, &n->was.value);
}

static void finally_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    finally *n = (finally *)(void *)f;
    if (f->flags & EBB__F_STEP) {
        ending was = n->was;
        n->was.value = ebb_value_none();
        ebb__shade_value(s->heap, &was.value);
        released(s, f, e, &was);
        return;
    }
    n->was = ending_of(ebb__edge_input(e));
    f->flags |= EBB__F_STEP;
    ebb__edge_drop(s->heap, e);
    ebb_future *next = n->single.fn.finally(s->cx, n->single.arg);
    if (next == NULL) {
        ending was = n->was;
        n->was.value = ebb_value_none();
        end_as(f, &was);
    } else {
        protect(s->heap, next);
        ebb__become(f, e, next);
    }
}

static bool finally_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    finally *n = (finally *)(void *)f;
    (void)work;
    if (f->flags & EBB__F_STEP) {
        ebb__edge_drop(s->heap, &n->single.edge);
        ebb_value v = n->was.value;
        n->was.value = ebb_value_none();
        if (n->was.state == EBB_FUTURE_COMPLETED) ebb__dispose(v);
        return true;
    }
    f->flags |= EBB__F_STEP;
    ebb__edge_cancel(s->heap, &n->single.edge, ebb__kind_of_cancel(f));
    let_run(s->heap, n->single.fn.finally(s->cx, n->single.arg));
    return true;
}

static ebb_value *finally_kept(ebb_future *f, uint32_t i) {
    return i == 0 ? &((finally *)(void *)f)->was.value : NULL;
}

static const ebb__kind finally_kind = {
    .type = {"finally", sizeof(finally), trace_finally, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE | EBB__TYPE_KEEPS},
    .input_ended = finally_ended,
    .cancelled = finally_cancelled,
    .kept = finally_kept,
};

ebb_future *ebb_finally_site(ebb_cx *cx, ebb_future *f, ebb_finally_fn fn, void *arg, const char *site) {
    return ebb__single_new(cx, &finally_kind, f, (const void *)(uintptr_t)fn, arg, site);
}

/* ---- bracket ---------------------------------------------------------------------------------------------- */

typedef enum bracket_step { ACQUIRING, USING, RELEASING } bracket_step;

typedef struct bracket {
    ebb__single single; /* fn.then is `use` */
    ebb_release_fn release;
    bracket_step step;
    ebb_value resource; /* the acquired value */
    ending was;
} bracket;

static void trace_bracket(void *object, ebb_gc_marker *t) {
    const bracket *b = object;
    ebb__trace_single(object, t);
    ebb_gc_mark_value(t, &b->resource);
    ebb_gc_mark_value(t, &b->was.value);
}

/* Disposes of the resource if `release` did not take it. */
static ebb_future *run_release(ebb__region_futures *s, bracket *b) {
    b->step = RELEASING;
    ebb_future *next = b->release(s->cx, &b->resource, b->single.arg);
    ebb_value left = b->resource;
    b->resource = ebb_value_none();
    ebb__shade_value(s->heap, &left);
    ebb__dispose(left);
    return next;
}

static void bracket_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    bracket *b = (bracket *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (b->step == ACQUIRING) {
        if (ebb__state_of(input) != EBB_FUTURE_COMPLETED) {
            ebb__single_forward(s, f, e);
            return;
        }
        b->step = USING;
        b->resource = ebb__value_from(input);
        ebb__edge_drop(s->heap, e);
        ebb_future *used = b->single.fn.then(s->cx, &b->resource, b->single.arg);
        ebb__become(f, e, used != NULL ? used : ebb__failed(EBB_ERR_INVALID));
        return;
    }
    if (b->step == RELEASING) {
        ending was = b->was;
        b->was.value = ebb_value_none();
        ebb__shade_value(s->heap, &was.value);
        released(s, f, e, &was);
        return;
    }
    b->was = ending_of(input);
    ebb__edge_drop(s->heap, e);
    ebb_future *next = run_release(s, b);
    if (next != NULL) {
        protect(s->heap, next);
        ebb__become(f, e, next);
    } else {
        ending was = b->was;
        b->was.value = ebb_value_none();
        end_as(f, &was);
    }
}

static bool bracket_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    bracket *b = (bracket *)(void *)f;
    (void)work;
    if (b->step == RELEASING) {
        ebb__edge_drop(s->heap, &b->single.edge);
        ebb_value v = b->was.value;
        b->was.value = ebb_value_none();
        if (b->was.state == EBB_FUTURE_COMPLETED) ebb__dispose(v);
        return true;
    }
    ebb_future *input = ebb__edge_input(&b->single.edge);
    if (b->step == ACQUIRING && input != NULL &&
        ebb__state_of(input) == EBB_FUTURE_COMPLETED) { /* acquired, but not processed yet */
        b->step = USING;
        b->resource = ebb__value_from(input);
    }
    ebb__edge_cancel(s->heap, &b->single.edge, ebb__kind_of_cancel(f));
    if (b->step == USING) let_run(s->heap, run_release(s, b));
    return true;
}

static ebb_value *bracket_kept(ebb_future *f, uint32_t i) {
    bracket *b = (bracket *)(void *)f;
    return i == 0 ? &b->resource : i == 1 ? &b->was.value : NULL;
}

static const ebb__kind bracket_kind = {
    .type = {"bracket", sizeof(bracket), trace_bracket, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE | EBB__TYPE_KEEPS},
    .input_ended = bracket_ended,
    .cancelled = bracket_cancelled,
    .kept = bracket_kept,
};

ebb_future *ebb_bracket_site(ebb_cx *cx, ebb_future *acquire, ebb_then_fn use, ebb_release_fn release,
                             void *arg, const char *site) {
    if (release == NULL) use = NULL;
    ebb_future *f = ebb__single_new(cx, &bracket_kind, acquire, (const void *)(uintptr_t)use, arg, site);
    if (!ebb__is_static(f)) ((bracket *)(void *)f)->release = release;
    return f;
}
