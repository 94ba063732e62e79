/* lang/program.c - the program that a back end gets: kinds, and a table for each state. */
#include "lang/check.h"

#include "lang/source.h"

/* ---- kinds ---- */

static uint32_t kind_of(ebb_lang *c, ebb__vec *kinds, ebb__type t) {
    ebb__type_info *x = ebb__type_at(c, t);
    if (x->kind != EBB__TY_RECORD) return 0;
    if (x->kind_id != 0) return x->kind_id;
    ebb__ir_kind *k = ebb__vec_push(c, kinds);
    if (k == NULL) return 0;
    k->type = t;
    return x->kind_id = kinds->n - 1;
}

static void add_requests(ebb_lang *c, ebb__vec *kinds) {
    for (uint32_t i = 0; i < c->check->protocols.n; i++) {
        const ebb__protocol *p = *EBB__VEC_AT(&c->check->protocols, ebb__protocol *, i);
        for (uint32_t k = 0; k < p->n_msgs; k++) (void)kind_of(c, kinds, p->msgs[k]->type);
        for (uint32_t k = 0; k < p->n_reqs; k++) {
            uint32_t id = kind_of(c, kinds, p->reqs[k].payload);
            ebb__ir_kind *kind = EBB__VEC_AT(kinds, ebb__ir_kind, id);
            kind->responses = kind->responses == 0 ? p->reqs[k].responses
                                                   : ebb__type_join(c, kind->responses, p->reqs[k].responses);
            kind->within_ms = p->reqs[k].within_ms;
        }
    }
}

/* ---- states ---- */

static bool is_hidden(const ebb__state *st, ebb__type selector) {
    for (uint32_t i = 0; i < st->handlers.n; i++) {
        const ebb__handler *h = ebb__handler_at(&st->handlers, i);
        if (h->kind != EBB__H_AFTER && h->selector == selector) return true;
    }
    return false;
}

static void add_entry(ebb_lang *c, ebb__vec *kinds, ebb__ir_state *out, const ebb__handler *h) {
    ebb__ir_entry e = {kind_of(c, kinds, h->selector), h->kind,
                       h->origin == 0 ? 0 : kind_of(c, kinds, h->origin), h->label, h->fn};
    if (h->responses != 0 && e.kind != 0) EBB__VEC_AT(kinds, ebb__ir_kind, e.kind)->responses = h->responses;
    uint32_t at = out->n_entries++;
    for (; at > 0 && out->entries[at - 1].kind > e.kind; at--) out->entries[at] = out->entries[at - 1];
    out->entries[at] = e;
}

static void add_handlers(ebb_lang *c, ebb__vec *kinds, ebb__ir_state *out, const ebb__vec *handlers,
                         const ebb__state *hiding) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        if (h->kind == EBB__H_AFTER) out->timers[out->n_timers++] = (ebb__ir_timer){h->time, h->fn};
        else if (hiding == NULL || !is_hidden(hiding, h->selector)) add_entry(c, kinds, out, h);
    }
}

static void build_state(ebb_lang *c, ebb__vec *kinds, const ebb__state *st, ebb__ir_state *out) {
    const ebb__typestate *ts = st->typestate;
    uint32_t most = st->handlers.n + ts->handlers.n + 1;
    *out = (ebb__ir_state){
        .name = ebb__name_text(c, st->name), .final = st->final, .hot = st->hot, .n_fields = st->n_fields};
    out->fields = st->fields;
    out->entry = st->entry_fn;
    out->exit = st->exit_fn;
    out->entries = ebb__lang_array(c, most, sizeof *out->entries);
    out->timers = ebb__lang_array(c, most, sizeof *out->timers);
    out->invariants = ebb__lang_array(c, st->invariants.n + ts->invariants.n + 1, sizeof *out->invariants);
    if (out->entries == NULL || out->timers == NULL || out->invariants == NULL) return;
    add_handlers(c, kinds, out, &st->handlers, NULL);
    add_handlers(c, kinds, out, &ts->handlers, st);
    for (uint32_t i = 0; i < ts->invariants.n; i++)
        out->invariants[out->n_invariants++] = *EBB__VEC_AT(&ts->invariants, ebb__ir_fn *, i);
    for (uint32_t i = 0; i < st->invariants.n; i++)
        out->invariants[out->n_invariants++] = *EBB__VEC_AT(&st->invariants, ebb__ir_fn *, i);
}

static void build_machine(ebb_lang *c, ebb__vec *kinds, const ebb__typestate *ts, ebb__ir_machine *out) {
    *out = (ebb__ir_machine){.decl = ts->decl,
                             .name = ebb__name_text(c, ts->decl->name),
                             .spec = ts->spec,
                             .mailbox = ts->mailbox};
    out->make = ts->make == NULL ? NULL : ts->make->fn;
    out->fault = ts->fault == NULL ? UINT32_MAX : ts->fault->index;
    out->states = ebb__lang_array(c, ts->n_states + 1, sizeof *out->states);
    for (uint32_t i = 0; out->states != NULL && i < ts->n_states; i++)
        build_state(c, kinds, ts->states[i], &out->states[out->n_states++]);
}

/* ---- the whole ---- */

/* A response has a number even if nobody handles it: its request has ended all the same. */
static void number_responses(ebb_lang *c, ebb__vec *kinds, ebb__type t) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &t, &of);
    for (uint32_t i = 0; i < n; i++) (void)kind_of(c, kinds, of[i]);
}

/* Messages that are only sent, published or subscribed to are kinds too. */
static void number_sent(ebb_lang *c, ebb__vec *kinds, ebb__ir *x, uint32_t depth) {
    if (x == NULL || depth > 4 * EBB_LANG_MAX_DEPTH) return;
    if ((x->op == EBB__OP_SEND || x->op == EBB__OP_REQUEST || x->op == EBB__OP_EMIT_REQUEST) && x->n == 2)
        x->b = kind_of(c, kinds, x->args[1]->type);
    if (x->op == EBB__OP_REPLY && x->n == 1) number_responses(c, kinds, x->args[0]->type);
    if (x->op == EBB__OP_REPLY_TO && x->n == 2) number_responses(c, kinds, x->args[1]->type);
    if (x->op == EBB__OP_PUBLISH && x->n == 2) x->b = kind_of(c, kinds, x->args[0]->type);
    if (x->op == EBB__OP_SUBSCRIBE || x->op == EBB__OP_UNSUBSCRIBE) x->b = kind_of(c, kinds, x->a);
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->args[i] != x) number_sent(c, kinds, x->args[i], depth + 1);
    }
}

/* Each state has a type, also one that no expression makes. */
static void name_states(ebb_lang *c) {
    for (uint32_t i = 0; i < c->check->typestates.n; i++) {
        const ebb__typestate *ts = *EBB__VEC_AT(&c->check->typestates, ebb__typestate *, i);
        for (uint32_t s = 0; s < ts->n_states; s++)
            (void)ebb__type_decl(c, EBB__TY_STATE, ts->decl, ts->states[s]->index);
    }
}

void ebb__program_build(ebb_lang *c) {
    struct ebb__check *k = c->check;
    ebb__program *p = EBB__NEW(c, ebb__program);
    name_states(c);
    ebb__vec kinds = {.size = sizeof(ebb__ir_kind)};
    if (ebb__vec_push(c, &kinds) == NULL) return;
    add_requests(c, &kinds);
    p->machines = ebb__lang_array(c, k->typestates.n + 1, sizeof *p->machines);
    p->fns = ebb__lang_array(c, k->fns.n + 1, sizeof *p->fns);
    if (!c->oom && p->machines != NULL && p->fns != NULL) {
        for (uint32_t i = 0; i < k->typestates.n; i++)
            build_machine(c, &kinds, *EBB__VEC_AT(&k->typestates, ebb__typestate *, i),
                          &p->machines[p->n_machines++]);
        for (uint32_t i = 0; i < k->fns.n; i++) {
            p->fns[p->n_fns++] = *EBB__VEC_AT(&k->fns, ebb__ir_fn *, i);
            number_sent(c, &kinds, p->fns[i]->body, 0);
        }
    }
    p->kinds = ebb__lang_array(c, kinds.n + 1, sizeof *p->kinds);
    for (uint32_t i = 0; p->kinds != NULL && i < kinds.n; i++)
        p->kinds[p->n_kinds++] = *EBB__VEC_AT(&kinds, ebb__ir_kind, i);
    ebb__vec_free(c, &kinds);
    for (uint32_t i = 0; i < k->decls.n; i++) {
        const ebb__decl *d = ebb__decl_at(&k->decls, i);
        if (d->kind == EBB__D_FN && d->name == EBB__N_main && d->typestate == NULL && d->source->id == 0)
            p->main = d->fn;
    }
    k->program = p;
}

const ebb__program *ebb__lang_program(const ebb_lang *c) {
    return c->check == NULL || c->oom || c->errors > 0 ? NULL : c->check->program;
}
