/* all, all_settled and traverse: the value is a list of outcomes. */
#include "future/many.h"

/* The list is allocated with the node, so that the end of the last input cannot fail. */
typedef struct outcomes {
    size_t n;
    ebb_outcome item[];
} outcomes;

/* EBB__F_STEP: an input has ended the node. */
typedef struct all {
    ebb__many many;
    outcomes *list; /* the value, once completed */
} all;

static void trace_outcomes(void *object, ebb_gc_marker *t) {
    const outcomes *o = object;
    for (size_t i = 0; i < o->n; i++) ebb_gc_mark_value(t, &o->item[i].value);
}

static void free_outcomes(void *object) {
    outcomes *o = object;
    while (o->n > 0) ebb__dispose_word(o->item[--o->n].value);
}

const ebb_type ebb__outcomes_type = {"outcomes", sizeof(outcomes), trace_outcomes, free_outcomes, 0};

ebb_outcome *ebb_outcomes_of(const ebb_value *v, size_t *n) {
    outcomes *o = v != NULL && v->type == &ebb__outcomes_type ? v->as.p : NULL;
    if (n != NULL) *n = o != NULL ? o->n : 0;
    return o != NULL ? o->item : NULL;
}

/* Allocates the node's list. Only the node holds it. */
static ebb_status list_new(ebb_cx *cx, all *a, size_t n) {
    ebb_status st = EBB_OK;
    if (n > (SIZE_MAX / 2 - sizeof(outcomes)) / sizeof(ebb_outcome)) return EBB_ERR_LIMIT;
    a->list = ebb__object_new(cx, &ebb__outcomes_type, sizeof(outcomes) + n * sizeof(ebb_outcome), &st);
    if (a->list == NULL) return st;
    a->list->n = n;
    ebb__cell *c = (ebb__cell *)a->list - 1;
    ebb__member_remove(ebb__region_futures_of_cell(ebb__heap_of(c), c), c);
    return EBB_OK;
}

static void trace_all(void *object, ebb_gc_marker *t) {
    const all *a = object;
    ebb__trace_many(object, t);
    ebb_gc_mark(t, a->list);
}

/* ---- inputs ----------------------------------------------------------------------------------------------- */

static void complete(all *a) {
    (void)ebb__complete(&a->many.future, ebb_value_object(a->list));
}

/* Stores the outcome of an input and drops the input. */
static void note(ebb__region_futures *s, all *a, ebb__edge *e) {
    ebb_future *input = ebb__edge_input(e);
    ebb_outcome *o = &a->list->item[ebb__edge_index(e)];
    o->status = ebb__status_of(input);
    if (o->status == EBB_OK) o->value = ebb__value_from(input);
    ebb__edge_drop(s->heap, e);
    if (--a->many.future.spare == 0) complete(a);
}

static void settled_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    note(s, (all *)(void *)f, e);
}

static void all_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb_future *input = ebb__edge_input(e);
    if (ebb__state_of(input) == EBB_FUTURE_COMPLETED) {
        note(s, (all *)(void *)f, e);
        return;
    }
    f->flags |= EBB__F_STEP;
    ebb__end_as(f, input);
    ebb__edge_drop(s->heap, e);
}

/* Disposes of the outcomes that were stored. */
static bool drop_list(ebb__heap *h, all *a, uint32_t *work) {
    for (; a->list->n > 0; --*work) {
        if (*work == 0) return false;
        a->list->n--;
        ebb__dispose(a->list->item[a->list->n].value);
    }
    ebb__heap_free_cell(h, (ebb__cell *)a->list - 1);
    return true;
}

static bool all_let_go(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    all *a = (all *)(void *)f;
    bool by_input = f->flags & EBB__F_STEP || ebb__state_of(f) != EBB_FUTURE_CANCELLED;
    ebb_cancel_kind kind = by_input ? EBB_CANCEL_SIBLING_FAILED : ebb__kind_of_cancel(f);
    if (!ebb__many_let_go(s->heap, &a->many, kind, work)) return false;
    if (a->list == NULL) return true;
    ebb__shade(s->heap, (ebb__cell *)a->list - 1);
    if (ebb__state_of(f) != EBB_FUTURE_COMPLETED && !drop_list(s->heap, a, work)) return false;
    a->list = NULL;
    return true;
}

/* ---- all, all_settled ------------------------------------------------------------------------------------- */

static const ebb__kind all_kind = {
    .type = {"all", sizeof(all), trace_all, NULL, EBB__TYPE_NODE_OF_MANY},
    .input_ended = all_ended,
    .cancelled = all_let_go,
};

static const ebb__kind settled_kind = {
    .type = {"all_settled", sizeof(all), trace_all, NULL, EBB__TYPE_NODE_OF_MANY},
    .input_ended = settled_ended,
    .cancelled = all_let_go,
};

static ebb_future *all_new(ebb_cx *cx, const ebb__kind *kind, size_t n, ebb_future *const *fs,
                           const char *site) {
    ebb_status st = EBB_OK;
    all *a = (all *)(void *)ebb__many_new(cx, kind, n, fs, site, &st);
    if (a == NULL) return ebb__many_refused(n, fs, st, site);
    st = list_new(cx, a, n);
    ebb__many_wait(&a->many, n, fs, st, site);
    if (st == EBB_OK && n == 0) complete(a);
    return &a->many.future;
}

ebb_future *ebb_all_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site) {
    return all_new(cx, &all_kind, n, fs, site);
}

ebb_future *ebb_all_settled_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site) {
    return all_new(cx, &settled_kind, n, fs, site);
}

/* ---- traverse --------------------------------------------------------------------------------------------- */

/* Has as many edges as inputs may be pending at a time. Each begins with the placeholder ebb__not_made_yet, so that
 * `make` is first called in the pump. */
typedef struct traverse {
    all all;
    ebb_each_fn make;
    void *arg;
    size_t next;
} traverse;

static void make_next(ebb__region_futures *s, traverse *t, ebb__edge *e) {
    ebb_future *f = &t->all.many.future;
    if (t->next == t->all.list->n) return;
    ((ebb__item *)(void *)e)->index = (uint32_t)t->next;
    ebb_future *made = t->make(s->cx, t->next++, t->arg);
    ebb_status st = ebb__usable_in(s->heap, made);
    if (st == EBB_OK) ebb__edge_attach(f, e, made, EBB__EDGE_MANY, f->site);
    else (void)ebb__fail_with(f, st);
}

static void traverse_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    if (ebb__edge_input(e) == ebb__not_made_yet()) ebb__edge_drop(s->heap, e);
    else all_ended(s, f, e);
    if (!ebb__has_ended(f)) make_next(s, (traverse *)(void *)f, e);
}

static const ebb__kind traverse_kind = {
    .type = {"traverse", sizeof(traverse), trace_all, NULL, EBB__TYPE_NODE_OF_MANY},
    .input_ended = traverse_ended,
    .cancelled = all_let_go,
};

static void attach_all_not_made(ebb__many *m, const char *site) {
    for (ebb__edges *p = m->edges; p != NULL; p = p->next) {
        for (uint32_t i = 0; i < p->n; i++) {
            ebb__edge_attach(&m->future, &p->item[i].edge, ebb__not_made_yet(), EBB__EDGE_MANY, site);
        }
    }
}

ebb_future *ebb_traverse_site(ebb_cx *cx, size_t n, size_t at_once, ebb_each_fn make, void *arg,
                              const char *site) {
    static ebb_future *const none[1];
    ebb_status st = at_once == 0 || make == NULL ? EBB_ERR_INVALID : EBB_OK;
    traverse *t =
        st == EBB_OK ? (traverse *)(void *)ebb__many_new(cx, &traverse_kind, n, none, site, &st) : NULL;
    if (t == NULL) return ebb__failed(st);
    ebb_future *f = &t->all.many.future;
    t->make = make;
    t->arg = arg;
    st = list_new(cx, &t->all, n);
    if (st == EBB_OK) st = ebb__many_reserve(&t->all.many, (uint32_t)(at_once < n ? at_once : n));
    if (st != EBB_OK) (void)ebb__fail_with(f, st);
    else if (n == 0) complete(&t->all);
    else attach_all_not_made(&t->all.many, site);
    return f;
}
