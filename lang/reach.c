/* lang/reach.c - which states are reached, and from which a final one is; names that nothing uses. */
#include "lang/check.h"

/* A step from a state to a state, by index. Behind the states is one more node: the defaults of the typestate, to which
 * each state leads that is not final. */
typedef struct edge {
    uint32_t from, to;
} edge;

typedef struct graph {
    ebb_lang *c;
    const ebb__typestate *ts;
    ebb__vec edges;
} graph;

static void add(graph *g, uint32_t from, uint32_t to) {
    edge *e = ebb__vec_push(g->c, &g->edges);
    if (e != NULL) *e = (edge){from, to};
}

/* To the states among the members of a type. */
static void add_type(graph *g, uint32_t from, ebb__type t) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(g->c, &t, &of);
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(g->c, of[i]);
        if (x->kind == EBB__TY_STATE && x->decl == g->ts->decl) add(g, from, x->index);
    }
}

static void add_handlers(graph *g, uint32_t from, const ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        for (uint32_t k = 0; k < h->n_targets; k++) add(g, from, h->targets[k]->index);
    }
}

static void add_all(graph *g) {
    const ebb__typestate *ts = g->ts;
    for (uint32_t i = 0; i < ts->n_states; i++) {
        const ebb__state *st = ts->states[i];
        for (uint32_t k = 0; k < st->methods.n; k++) add_type(g, i, ebb__decl_at(&st->methods, k)->type);
        add_handlers(g, i, &st->handlers);
        if (!st->final) add(g, i, ts->n_states);
    }
    add_handlers(g, ts->n_states, &ts->handlers);
}

/* Marks what the marked states lead to, or `back`, what leads to them. */
static void flood(const graph *g, bool back, bool *marked) {
    uint32_t n = g->ts->n_states + 1, top = 0, *stack = ebb__lang_array(g->c, n, sizeof *stack);
    uint32_t *first = ebb__lang_array(g->c, n, sizeof *first); /* 1 + the first edge of a node */
    uint32_t *next = ebb__lang_array(g->c, g->edges.n + 1, sizeof *next);
    if (stack == NULL || first == NULL || next == NULL) return;
    for (uint32_t i = 0; i < n; i++)
        if (marked[i]) stack[top++] = i;
    for (uint32_t i = 0; i < g->edges.n; i++) {
        const edge *e = EBB__VEC_AT(&g->edges, edge, i);
        uint32_t *slot = &first[back ? e->to : e->from];
        next[i] = *slot;
        *slot = i + 1;
    }
    while (top > 0) {
        for (uint32_t i = first[stack[--top]]; i != 0; i = next[i - 1]) {
            const edge *e = EBB__VEC_AT(&g->edges, edge, i - 1);
            uint32_t other = back ? e->from : e->to;
            if (!marked[other]) stack[top++] = other;
            marked[other] = true;
        }
    }
}

static void find_reached(ebb_lang *c, const ebb__typestate *ts) {
    graph g = {.c = c, .ts = ts, .edges = {.size = sizeof(edge)}};
    bool *reached = ebb__lang_array(c, ts->n_states + 1, 1), *ends = ebb__lang_array(c, ts->n_states + 1, 1);
    if (reached == NULL || ends == NULL) return;
    if (ts->spec && ts->n_states > 0) reached[0] = true;
    if (ts->fault != NULL) reached[ts->fault->index] = true;
    add_all(&g);
    uint32_t steps = g.edges.n;
    if (!ts->spec) add_type(&g, 0, ts->make->type); /* not steps: the states that `new` makes */
    for (uint32_t i = steps; i < g.edges.n; i++) reached[EBB__VEC_AT(&g.edges, edge, i)->to] = true;
    g.edges.n = steps;
    for (uint32_t i = 0; i < ts->n_states; i++) ends[i] = ts->states[i]->final;
    flood(&g, false, reached);
    flood(&g, true, ends);
    for (uint32_t i = 0; i < ts->n_states; i++) {
        ts->states[i]->reached = reached[i];
        ts->states[i]->ends = ends[i];
    }
    ebb__vec_free(c, &g.edges);
}

static void check_timers(ebb_lang *c, const ebb__state *st) {
    const ebb__source *s = st->typestate->decl->source;
    for (uint32_t i = 0; i < st->handlers.n; i++) {
        const ebb__handler *h = ebb__handler_at(&st->handlers, i);
        if (h->kind != EBB__H_AFTER || h->stays || h->n_targets != 1 || h->targets[0] != st) continue;
        ebb__span at = ebb__node_span(s, ebb__child_of(s, h->targets_node, EBB__S_PATH));
        ebb__diag *d = ebb__diag_report(c, EBB__W0908, at,
                                        "this stays in %n, and does not begin the time again", st->name);
        ebb__diag_help(c, d, "if it is to run once, write stay");
        ebb__diag_edit(c, d, at, "stay");
    }
}

void ebb__check_reach(ebb_lang *c) {
    for (uint32_t i = 0; i < c->check->typestates.n && !c->oom; i++) {
        ebb__typestate *ts = *EBB__VEC_AT(&c->check->typestates, ebb__typestate *, i);
        if (ts->decl->broken || (ts->make == NULL && !ts->spec)) continue;
        if (ts->make != NULL && ts->make->type == EBB__TY_ERROR) continue;
        find_reached(c, ts);
        for (uint32_t k = 0; k < ts->n_states; k++) {
            const ebb__state *st = ts->states[k];
            check_timers(c, st);
            if (!st->reached)
                (void)ebb__diag_report(c, EBB__W0903, st->span, "nothing leads to %n", st->name);
            else if (ts->linear && !st->ends)
                (void)ebb__diag_report(c, EBB__W0904, st->span, "from %n no final state can be reached",
                                       st->name);
        }
    }
}

void ebb__check_unused(ebb_lang *c) {
    for (uint32_t i = 0; i < c->check->decls.n && !c->oom; i++) {
        const ebb__decl *d = ebb__decl_at(&c->check->decls, i);
        bool reports = d->kind == EBB__D_IMPORT || d->kind == EBB__D_FN || d->kind == EBB__D_CONST;
        if (!reports || d->used || d->pub || d->broken || d->name == 0 || d->name == EBB__N_main) continue;
        if (ebb__name_text(c, d->name)[0] == '_') continue;
        ebb__diag *diag = ebb__diag_report(c, EBB__W0905, d->span, "%n is never used", d->name);
        ebb__diag_help(c, diag, "take it out");
        ebb__diag_edit(c, diag, ebb__node_span(d->source, d->node), "");
    }
}
