/* lang/reach.c - which states are reached, and from which a final one is; names that nothing uses. */
#include "lang/check.h"

static bool has_state(const ebb_lang *c, const ebb__typestate *ts, ebb__type t, const ebb__state *st) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &t, &of);
    for (uint32_t i = 0; i < n; i++) {
        const ebb__type_info *x = ebb__type_at(c, of[i]);
        if (x->kind == EBB__TY_STATE && x->decl == ts->decl && x->index == st->index) return true;
    }
    return false;
}

static bool handlers_lead(const ebb__vec *handlers, const ebb__state *to) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        for (uint32_t k = 0; k < h->n_targets; k++) {
            if (h->targets[k] == to) return true;
        }
    }
    return false;
}

/* Whether some method, handler or timer leads from one state to another. */
static bool leads(const ebb_lang *c, const ebb__state *from, const ebb__state *to) {
    const ebb__typestate *ts = from->typestate;
    for (uint32_t i = 0; i < from->methods.n; i++) {
        if (has_state(c, ts, ebb__decl_at(&from->methods, i)->type, to)) return true;
    }
    return handlers_lead(&from->handlers, to) || (!from->final && handlers_lead(&ts->handlers, to));
}

static void find_reached(const ebb_lang *c, ebb__typestate *ts) {
    for (uint32_t i = 0; i < ts->n_states; i++) {
        bool first = ts->spec ? i == 0 : ts->make != NULL && has_state(c, ts, ts->make->type, ts->states[i]);
        ts->states[i]->reached = first || ts->states[i] == ts->fault;
        ts->states[i]->ends = ts->states[i]->final;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < ts->n_states; i++) {
            for (uint32_t k = 0; k < ts->n_states; k++) {
                ebb__state *from = ts->states[i], *to = ts->states[k];
                bool reach = from->reached && !to->reached, end = to->ends && !from->ends;
                if ((!reach && !end) || !leads(c, from, to)) continue;
                to->reached = to->reached || reach;
                from->ends = from->ends || end;
                changed = true;
            }
        }
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
