/* Futures that wait for a time: after, within, delay, schedule. Their timers are in the region's `dues`, and `spare`
 * is the index there plus 1. The runtime's timer is armed for the first of them. */
#include "future/then.h"

static bool bad_span(uint64_t span) {
    return span > INT64_MAX && span != EBB_FOREVER;
}

static uint64_t due_at(ebb_cx *cx, uint64_t span) {
    uint64_t now = ebb_now(cx);
    return span > EBB_FOREVER - now ? EBB_FOREVER : now + span;
}

/* The region waits for a future that waits for a time: until its end, the future is its own producer. */
static void produce(ebb_future *f) {
    f->flags |= EBB__F_PRODUCED;
    ebb__count_as_work(f);
}

static void produced(ebb_future *f) {
    if (f->flags & EBB__F_PRODUCED) ebb__produced(f);
}

static void set_timer(ebb_cx *cx, ebb_future *f, uint64_t at) {
    (void)cx;
    ebb_status st = ebb__due_add(ebb__region_futures_of(f), f, at);
    if (st != EBB_OK) (void)ebb__fail_with(f, st);
    else produce(f);
}

/* ---- after ------------------------------------------------------------------------------------------------ */

static void after_fired(ebb__region_futures *s, ebb_future *f) {
    (void)s;
    (void)ebb__complete(f, ebb_value_none());
    produced(f);
}

static bool after_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    (void)work;
    ebb__due_remove(s, f);
    produced(f);
    return true;
}

static const ebb__kind after_kind = {
    .type = {"after", sizeof(ebb_future), ebb__trace_future, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE},
    .cancelled = after_cancelled,
    .fired = after_fired,
};

ebb_future *ebb_after_site(ebb_cx *cx, uint64_t span, const char *site) {
    ebb_status st = EBB_OK;
    if (bad_span(span)) return ebb__failed(EBB_ERR_INVALID);
    ebb_future *f = ebb__future_new(cx, &after_kind, site, &st);
    if (f == NULL) return ebb__failed(st);
    set_timer(cx, f, due_at(cx, span));
    return f;
}

/* ---- within ----------------------------------------------------------------------------------------------- */

static void within_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__due_remove(s, f);
    ebb__single_forward(s, f, e);
}

static void within_fired(ebb__region_futures *s, ebb_future *f) {
    ebb__single *n = (ebb__single *)(void *)f;
    /* in time: the end of the input is processed soon */
    if (ebb__has_ended(ebb__edge_input(&n->edge))) return;
    (void)ebb__fail_with(f, EBB_TIMEOUT);
    ebb__edge_cancel(s->heap, &n->edge, EBB_CANCEL_TIMEOUT);
}

static bool within_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    ebb__due_remove(s, f);
    return ebb__single_cancelled(s, f, work);
}

static const ebb__kind within_kind = {
    .type = {"within", sizeof(ebb__single), ebb__trace_single, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE},
    .input_ended = within_ended,
    .cancelled = within_cancelled,
    .fired = within_fired,
};

ebb_future *ebb_within_site(ebb_cx *cx, ebb_future *f, uint64_t span, const char *site) {
    static const char some_function;
    if (bad_span(span)) {
        ebb__consume_failed(f, site);
        return ebb__failed(EBB_ERR_INVALID);
    }
    ebb_future *node = ebb__single_new(cx, &within_kind, f, &some_function, NULL, site);
    if (ebb__is_static(node) || span == EBB_FOREVER) return node;
    ebb_status st = ebb__due_add(ebb__region_futures_of(node), node, due_at(cx, span));
    if (st != EBB_OK) {
        (void)ebb__fail_with(node, st);
        ebb__edge_cancel(ebb__heap_of(node), &((ebb__single *)(void *)node)->edge, EBB_CANCEL_RESOURCE);
    }
    return node;
}

/* ---- delay ------------------------------------------------------------------------------------------------ */

static void delay_fired(ebb__region_futures *s, ebb_future *f) {
    ebb__single *n = (ebb__single *)(void *)f;
    ebb__become(f, &n->edge, n->fn.make(s->cx, n->arg));
    produced(f);
}

static bool delay_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    ebb__due_remove(s, f);
    (void)ebb__single_cancelled(s, f, work);
    produced(f);
    return true;
}

static const ebb__kind delay_kind = {
    .type = {"delay", sizeof(ebb__single), ebb__trace_single, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE},
    .input_ended = ebb__single_forward,
    .cancelled = delay_cancelled,
    .fired = delay_fired,
};

ebb_future *ebb_future_delay_site(ebb_cx *cx, uint64_t span, ebb_make_fn fn, void *arg, const char *site) {
    ebb_status st = fn == NULL || bad_span(span) ? EBB_ERR_INVALID : EBB_OK;
    ebb_future *f = st == EBB_OK ? ebb__future_new(cx, &delay_kind, site, &st) : NULL;
    if (f == NULL) return ebb__failed(st);
    ebb__single *n = (ebb__single *)(void *)f;
    n->fn.make = fn;
    n->arg = arg;
    set_timer(cx, f, due_at(cx, span));
    return f;
}

/* ---- schedule --------------------------------------------------------------------------------------------- */

typedef struct schedule {
    ebb__single single;
    ebb_repeat_fn fn;
    uint64_t span, next, n;
} schedule;

static void schedule_fired(ebb__region_futures *s, ebb_future *f) {
    schedule *p = (schedule *)(void *)f;
    ebb__become(f, &p->single.edge, p->fn(s->cx, p->n++, p->single.arg));
}

static bool is_none(const ebb_value *v) {
    return v->type == NULL && v->as.u == 0;
}

/* The next call is due one span after the last was due, or now if that has passed. */
static void schedule_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    schedule *p = (schedule *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (ebb__state_of(input) != EBB_FUTURE_COMPLETED || !is_none(&input->value)) {
        ebb__single_forward(s, f, e);
        produced(f);
        return;
    }
    ebb__edge_drop(s->heap, e);
    uint64_t now = ebb__now(s->heap->rt);
    p->next = p->next > EBB_FOREVER - p->span ? EBB_FOREVER : p->next + p->span;
    if (p->next < now) p->next = now;
    ebb_status st = ebb__due_add(s, f, p->next);
    if (st == EBB_OK) return;
    (void)ebb__fail_with(f, st);
    produced(f);
}

static const ebb__kind schedule_kind = {
    .type = {"schedule", sizeof(schedule), ebb__trace_single, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE},
    .input_ended = schedule_ended,
    .cancelled = delay_cancelled,
    .fired = schedule_fired,
};

ebb_future *ebb_future_repeat_site(ebb_cx *cx, uint64_t span, ebb_repeat_fn fn, void *arg, const char *site) {
    ebb_status st = fn == NULL || bad_span(span) || span == 0 ? EBB_ERR_INVALID : EBB_OK;
    ebb_future *f = st == EBB_OK ? ebb__future_new(cx, &schedule_kind, site, &st) : NULL;
    if (f == NULL) return ebb__failed(st);
    schedule *p = (schedule *)(void *)f;
    p->fn = fn;
    p->single.arg = arg;
    p->span = span;
    p->next = due_at(cx, span);
    set_timer(cx, f, p->next);
    return f;
}
