/* race, any and select: each ends as one of its inputs. */
#include "future/many.h"

typedef struct race {
    ebb__many many;
    ebb_selected *selected; /* of a select: the value, once completed */
    ebb_status failure;     /* of the last failed input that `any` has skipped */
} race;
_Static_assert(sizeof(void *) != 8 || sizeof(race) == 120, "what a race costs, without its edges");

static void trace_selected(void *object, ebb_gc_marker *t) {
    ebb_gc_mark_value(t, &((const ebb_selected *)object)->value);
}

static void free_selected(void *object) {
    ebb_selected *s = object;
    ebb_value v = s->value;
    s->value = ebb_value_none();
    ebb__dispose_word(v);
}

const ebb_type ebb__selected_type = {"selected", sizeof(ebb_selected), trace_selected, free_selected, 0};

ebb_selected *ebb_selected_of(const ebb_value *v) {
    return v != NULL && v->type == &ebb__selected_type ? v->as.p : NULL;
}

static void trace_race(void *object, ebb_gc_marker *t) {
    const race *r = object;
    ebb__trace_many(object, t);
    ebb_gc_mark(t, r->selected);
}

/* ---- inputs ----------------------------------------------------------------------------------------------- */

/* Drops an input that cannot win. */
static void skip(ebb__region_futures *s, race *r, ebb__edge *e) {
    ebb_future *f = &r->many.future;
    ebb_cancel_kind kind = ebb__kind_of_cancel(ebb__edge_input(e));
    ebb__edge_drop(s->heap, e);
    if (--f->spare > 0) return;
    if (r->failure != EBB_OK) (void)ebb__fail_with(f, r->failure);
    else (void)ebb__cancel_as(f, kind);
}

static void note_won(const ebb__region_futures *s, const ebb_future *f, const ebb__edge *e) {
    ebb__note_event(s->heap->rt, EBB_EV_RACE_WON, .value = ebb__edge_index(e), .region = s->region.id,
                    .other = ebb__future_number(f));
}

static void race_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb_future *input = ebb__edge_input(e);
    if (ebb__state_of(input) == EBB_FUTURE_CANCELLED) {
        skip(s, (race *)(void *)f, e);
        return;
    }
    note_won(s, f, e);
    ebb__end_as(f, input);
    ebb__edge_drop(s->heap, e);
}

static void any_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    race *r = (race *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (ebb__state_of(input) == EBB_FUTURE_FAILED) {
        r->failure = ebb__status_of(input);
        skip(s, r, e);
        return;
    }
    race_ended(s, f, e);
}

static void select_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    race *r = (race *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (ebb__state_of(input) != EBB_FUTURE_COMPLETED) {
        race_ended(s, f, e);
        return;
    }
    note_won(s, f, e);
    *r->selected = (ebb_selected){ebb__edge_index(e), ebb__value_from(input)};
    (void)ebb__complete(f, ebb_value_object(r->selected));
    ebb__edge_drop(s->heap, e);
}

static void drop_selected(ebb__heap *h, race *r) {
    ebb__cell *c = (ebb__cell *)(void *)r->selected - 1;
    ebb__shade(h, c);
    if (ebb__state_of(&r->many.future) != EBB_FUTURE_COMPLETED) {
        free_selected(r->selected);
        ebb__heap_free_cell(h, c);
    }
    r->selected = NULL;
}

static bool race_let_go(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    race *r = (race *)(void *)f;
    bool won = ebb__state_of(f) != EBB_FUTURE_CANCELLED;
    ebb_cancel_kind kind = won ? EBB_CANCEL_RACE_LOST : ebb__kind_of_cancel(f);
    if (!ebb__many_let_go(s->heap, &r->many, kind, work)) return false;
    if (r->selected != NULL) drop_selected(s->heap, r);
    return true;
}

/* ---- making ----------------------------------------------------------------------------------------------- */

#define RACE(word, ended)                                                                                    \
    {                                                                                                        \
        .type = {word, sizeof(race), trace_race, NULL, EBB__TYPE_NODE_OF_MANY}, .input_ended = (ended),      \
        .cancelled = race_let_go,                                                                            \
    }

static const ebb__kind race_kind = RACE("race", race_ended);
static const ebb__kind any_kind = RACE("any", any_ended);
static const ebb__kind select_kind = RACE("select", select_ended);

/* Allocates the value of a select. Only the node holds it. */
static ebb_status selected_new(ebb_cx *cx, race *r) {
    ebb_status st = EBB_OK;
    r->selected = ebb__object_new(cx, &ebb__selected_type, sizeof(ebb_selected), &st);
    if (r->selected == NULL) return st;
    ebb__cell *c = (ebb__cell *)(void *)r->selected - 1;
    ebb__member_remove(ebb__region_futures_of_cell(ebb__heap_of(c), c), c);
    return EBB_OK;
}

static ebb_future *race_new(ebb_cx *cx, const ebb__kind *kind, size_t n, ebb_future *const *fs,
                            const char *site) {
    ebb_status st = EBB_OK;
    race *r = (race *)(void *)ebb__many_new(cx, kind, n, fs, site, &st);
    if (r == NULL) return ebb__many_refused(n, fs, st, site);
    if (kind == &select_kind) st = selected_new(cx, r);
    ebb__many_wait(&r->many, n, fs, st, site);
    if (n == 0) (void)ebb__fail_with(&r->many.future, EBB_CANCELLED);
    return &r->many.future;
}

ebb_future *ebb_race_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site) {
    return race_new(cx, &race_kind, n, fs, site);
}

ebb_future *ebb_any_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site) {
    return race_new(cx, &any_kind, n, fs, site);
}

ebb_future *ebb_select_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site) {
    return race_new(cx, &select_kind, n, fs, site);
}
