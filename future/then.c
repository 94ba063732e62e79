/* then, map, catch: one input, one callback. */
#include "future/then.h"

ebb_future *ebb__single_new(ebb_cx *cx, const ebb__kind *kind, ebb_future *f, const void *fn, void *arg,
                            const char *site) {
    ebb_status st = ebb__usable_in(ebb__heap_at(ebb__rt_of(cx)), f);
    if (st == EBB_OK && fn == NULL) st = EBB_ERR_INVALID;
    ebb_future *node = st == EBB_OK ? ebb__future_new(cx, kind, site, &st) : NULL;
    if (node == NULL) {
        ebb__consume_failed(f, site);
        return ebb__failed(st);
    }
    ebb__single *n = (ebb__single *)(void *)node;
    n->fn.any = fn;
    n->arg = arg;
    ebb__edge_attach(node, &n->edge, f, EBB__EDGE_NODE, site);
    return node;
}

bool ebb__single_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    (void)work;
    ebb__edge_cancel(s->heap, &((ebb__single *)(void *)f)->edge, ebb__kind_of_cancel(f));
    return true;
}

/* Ends f as its input ended. */
void ebb__single_forward(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__end_as(f, ebb__edge_input(e));
    ebb__edge_drop(s->heap, e);
}

static const ebb__kind then_kind, catch_kind;

/* The future that only waits to end as f does, if f has no other reader. Else NULL. */
static ebb_future *only_follower(const ebb__region_futures *s, const ebb_future *f) {
    const uint16_t seen = EBB__F_EXPORTED | EBB__F_SHARED | EBB__F_SHIELDED | EBB__F_CLEANUP;
    const ebb__edge *e = f->waiters;
    if (e == NULL || e->next != e || e->input & EBB__EDGE_MASK || f->flags & seen) return NULL;
    if (ebb__has_ended(f) || f->owners != 1 || f->holds > 0 || f->hooks != NULL) return NULL;
    ebb_future *g = ebb__edge_node(e);
    const ebb__kind *kind = ebb__kind_of(g);
    bool follows = (kind == &then_kind || kind == &catch_kind) && g->flags & EBB__F_FORWARD;
    return follows && !ebb__has_ended(g) && g->cell.region == s->index ? g : NULL;
}

/* A loop of callbacks, of which each returns a future with the next one, would be a chain that gets longer with each
 * round: memory, and a search for its end (ebb__is_wanted) at each operation. So a follower of f follows `next`
 * directly, and f, which nobody can see any more, ends. */
static void become(ebb__region_futures *s, ebb_future *f, ebb__edge *e, ebb_future *next) {
    ebb__edge_drop(s->heap, e);
    f->flags |= EBB__F_FORWARD;
    ebb_future *g = only_follower(s, f);
    if (g == NULL) {
        ebb__become(f, e, next);
        return;
    }
    ebb__edge *of_g = &((ebb__single *)(void *)g)->edge;
    ebb__edge_drop(s->heap, of_g);
    ebb__become(g, of_g, next);
    (void)ebb__complete(f, ebb_value_none());
}

static void then_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__single *n = (ebb__single *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (f->flags & EBB__F_FORWARD || ebb__state_of(input) != EBB_FUTURE_COMPLETED) {
        ebb__single_forward(s, f, e);
        return;
    }
    become(s, f, e, n->fn.then(s->cx, &input->value, n->arg));
}

static void map_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__single *n = (ebb__single *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (f->flags & EBB__F_FORWARD || ebb__state_of(input) != EBB_FUTURE_COMPLETED) {
        ebb__single_forward(s, f, e);
        return;
    }
    ebb_value v = n->fn.map(s->cx, &input->value, n->arg);
    if (ebb__is_foreign(s->heap, &v)) {
        ebb__edge_drop(s->heap, e);
        (void)ebb__fail_with(f, EBB_ERR_FOREIGN);
        return;
    }
    if (v.type != NULL && v.type == input->value.type && v.as.p == input->value.as.p) {
        v = ebb__value_from(input); /* returned as it came, without being taken */
    } else {
        ebb__object_let_go(ebb__value_cell(&v));
    }
    ebb__edge_drop(s->heap, e);
    (void)ebb__complete(f, v);
}

static void catch_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    ebb__single *n = (ebb__single *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    if (f->flags & EBB__F_FORWARD || ebb__state_of(input) != EBB_FUTURE_FAILED) {
        ebb__single_forward(s, f, e);
        return;
    }
    become(s, f, e, n->fn.caught(s->cx, ebb__status_of(input), n->arg));
}

#define SINGLE(word, ended)                                                                                  \
    {                                                                                                        \
        .type = {word, sizeof(ebb__single), ebb__trace_single, NULL,                                         \
                 EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE},                                       \
        .input_ended = (ended), .cancelled = ebb__single_cancelled,                                          \
    }

static const ebb__kind then_kind = SINGLE("then", then_ended);
static const ebb__kind map_kind = SINGLE("map", map_ended);
static const ebb__kind catch_kind = SINGLE("catch", catch_ended);

ebb_future *ebb_then_site(ebb_cx *cx, ebb_future *f, ebb_then_fn fn, void *arg, const char *site) {
    return ebb__single_new(cx, &then_kind, f, (const void *)(uintptr_t)fn, arg, site);
}

ebb_future *ebb_map_site(ebb_cx *cx, ebb_future *f, ebb_map_fn fn, void *arg, const char *site) {
    return ebb__single_new(cx, &map_kind, f, (const void *)(uintptr_t)fn, arg, site);
}

ebb_future *ebb_catch_site(ebb_cx *cx, ebb_future *f, ebb_catch_fn fn, void *arg, const char *site) {
    return ebb__single_new(cx, &catch_kind, f, (const void *)(uintptr_t)fn, arg, site);
}
