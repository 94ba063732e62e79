/* lang/infer_call.c - calls: functions, methods, and what is built in but for messages (infer_message.c). */
#include "lang/infer_call.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

void ebb__effect_at(ebb__body *b, ebb__span span, const char *what) {
    if (b->decl != NULL) b->decl->effects = true;
    if (b->pure) (void)ebb__diag_report(b->c, EBB__E0413, span, "%s does not %s", b->pure_why, what);
}

/* ---- arguments ---- */

uint32_t ebb__args_of(const ebb__body *b, uint32_t node, uint32_t *out, uint32_t most) {
    uint32_t n = 0;
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) {
        if (at(b, x)->kind != EBB__S_ARG) continue;
        if (n < most) out[n] = at(b, x)->child;
        n++;
    }
    return n;
}

void ebb__args_skip(ebb__body *b, uint32_t node) {
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) {
        if (at(b, x)->kind == EBB__S_ARG && at(b, x)->child != 0) (void)ebb__infer(b, at(b, x)->child, 0);
    }
}

bool ebb__args_count(ebb__body *b, uint32_t node, uint32_t n, uint32_t least, uint32_t most,
                     const char *usage) {
    if (n >= least && n <= most) return true;
    (void)ebb__diag_report(b->c, EBB__E0302, span_of(b, node), "%d arguments; it is called as %s", (int64_t)n,
                           usage);
    ebb__args_skip(b, node);
    return false;
}

/* Fills `x->args` from `skip` on. */
static void infer_args(ebb__body *b, uint32_t node, const ebb__decl *d, ebb__ir *x, uint32_t skip) {
    uint32_t i = 0;
    for (uint32_t a = at(b, node)->child; a != 0; a = at(b, a)->next) {
        if (at(b, a)->kind != EBB__S_ARG) continue;
        if (i >= d->n_fields) {
            if (i++ == d->n_fields) {
                ebb__diag *diag = ebb__diag_report(b->c, EBB__E0302, span_of(b, a), "%n takes %d arguments",
                                                   d->name, (int64_t)d->n_fields);
                ebb__diag_label(b->c, diag, d->span, "declared here");
            }
            (void)ebb__infer(b, at(b, a)->child, 0);
            continue;
        }
        ebb__name name = at(b, a)->tok == 0 ? 0 : ebb__token_at(b->s, at(b, a)->tok)->name;
        if (name != 0 && name != d->fields[i].name)
            (void)ebb__diag_report(b->c, EBB__E0302, ebb__token_span(b->s, at(b, a)->tok),
                                   "the parameter here is %n", d->fields[i].name);
        ebb__ir *value = ebb__infer_as(b, at(b, a)->child, d->fields[i].type);
        if (skip + i < x->n) x->args[skip + i] = value;
        i++;
    }
    if (i >= d->n_fields) return;
    ebb__diag *diag =
        ebb__diag_report(b->c, EBB__E0302, span_of(b, node), "%n is missing", d->fields[i].name);
    ebb__diag_label(b->c, diag, d->span, "declared here");
    for (; skip + i < x->n; i++) x->args[skip + i] = ebb__ir_invalid(b, x->span);
}

static ebb__ir *call(ebb__body *b, uint32_t node, ebb__decl *d, ebb__ir *self) {
    ebb__ir *x = ebb__ir_new(b, EBB__OP_CALL, d->type, span_of(b, node), d->n_fields + (self != NULL));
    bool handler = b->decl == NULL && !b->pure; /* may call anything, and nobody calls it */
    ebb__call *record = handler ? NULL : ebb__vec_push(b->c, &b->c->check->calls);
    if (record != NULL) *record = (ebb__call){b->pure ? NULL : b->decl, d, x->span};
    d->used = true;
    x->fn = d->fn;
    if (self != NULL && x->n > 0) x->args[0] = self;
    infer_args(b, node, d, x, self != NULL);
    return x;
}

/* ---- T::new and T::spawn ---- */

static ebb__ir *construct(ebb__body *b, uint32_t node, ebb__decl *type, bool spawn) {
    ebb__span span = span_of(b, node);
    ebb__typestate *ts = type->typestate;
    if (ts == NULL || ts->make == NULL || ts->spec) {
        if (ts == NULL || ts->spec)
            (void)ebb__diag_report(b->c, EBB__E0401, span, "%n can't be made", type->name);
        ebb__args_skip(b, node);
        return ebb__ir_invalid(b, span);
    }
    ebb__ir *x = call(b, node, ts->make, NULL);
    if (!spawn) return x;
    ebb__effect_at(b, span, "spawn");
    return ebb__ir_1(b, EBB__OP_SPAWN, ebb__type_decl(b->c, EBB__TY_MACHINE, type, 0), span, x);
}

static ebb__ir *call_path(ebb__body *b, uint32_t node, uint32_t path, ebb__type expected) {
    const ebb__syntax *p = at(b, path);
    ebb__span span = span_of(b, node);
    ebb__name name = ebb__path_name(b->s, path);
    bool plain = p->end - p->first == 1;
    if (plain && ebb__local_find(b, name) != NULL) {
        (void)ebb__diag_report(b->c, EBB__E0301, span_of(b, path), "%n is a variable and can't be called",
                               name);
        ebb__args_skip(b, node);
        return ebb__ir_invalid(b, span);
    }
    if (!plain && (name == EBB__N_new || name == EBB__N_spawn)) {
        ebb__ref in = ebb__lookup_prefix(b->c, b->w, path);
        if (in.kind == EBB__R_DECL && in.decl->kind == EBB__D_TYPESTATE)
            return construct(b, node, in.decl, name == EBB__N_spawn);
    }
    ebb__ref r = ebb__lookup_path(b->c, b->w, path);
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_FN && r.decl->fn != NULL)
        return call(b, node, r.decl, NULL);
    if (plain && (r.kind == EBB__R_NONE || (r.kind == EBB__R_DECL && r.decl->builtin))) {
        ebb__ir *x = ebb__infer_builtin(b, node, name, expected);
        if (x != NULL) return x;
    }
    if (r.kind == EBB__R_NONE) ebb__unknown(b->c, b->w, path, "the function");
    else if (r.kind != EBB__R_REPORTED) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0301, span_of(b, path), "%n is no function", name);
        if (r.kind == EBB__R_STATE || r.decl == NULL || r.decl->kind == EBB__D_TYPE)
            ebb__diag_help(b->c, d, "a value is written %n { ... }", name);
    }
    ebb__args_skip(b, node);
    return ebb__ir_invalid(b, span);
}

/* ---- methods ---- */

static ebb__decl *method_in(const ebb__vec *v, ebb__name name) {
    for (uint32_t i = 0; i < v->n; i++) {
        if (ebb__decl_at(v, i)->name == name && name != EBB__N_new) return ebb__decl_at(v, i);
    }
    return NULL;
}

static ebb__decl *method_of(const ebb__typestate *ts, const ebb__state *st, ebb__name name) {
    ebb__decl *d = st == NULL ? NULL : method_in(&st->methods, name);
    return d != NULL ? d : method_in(&ts->fns, name);
}

static void report_no_method(ebb__body *b, const ebb__typestate *ts, const ebb__state *here, ebb__name name,
                             ebb__span span) {
    const char *states = "";
    for (uint32_t i = 0; i < ts->n_states; i++) {
        if (method_in(&ts->states[i]->methods, name) == NULL) continue;
        states = ebb__format(b->c, states[0] == 0 ? "%s%n" : "%s, %n", states, ts->states[i]->name);
    }
    if (states[0] == 0) {
        (void)ebb__diag_report(b->c, EBB__E0303, span, "%n has no method %n", ts->decl->name, name);
        return;
    }
    ebb__diag *d = ebb__diag_report(b->c, EBB__E0409, span, "the value is in %s",
                                    here == NULL ? "no known state" : ebb__name_text(b->c, here->name));
    ebb__diag_note(b->c, d, "%n is a method of %s", name, states);
}

/* The variable or field that an expression reads as it stands; NULL: it makes a new value. */
static ebb__local *place_of(const ebb__body *b, const ebb__ir *x) {
    for (uint32_t i = 0; i < b->locals.n; i++) {
        ebb__local *l = ebb__local_at(b, i);
        if (x->op == EBB__OP_LOCAL && l->kind == EBB__L_VAR && l->slot == x->a) return l;
        if (x->op == EBB__OP_SELF_FIELD && l->kind == EBB__L_SELF_FIELD && l->slot == x->a) return l;
        if (x->op == EBB__OP_SELF && l->kind == EBB__L_SELF) return l;
    }
    return NULL;
}

static ebb__ir *call_method(ebb__body *b, uint32_t node, ebb__ir *self, const ebb__typestate *ts,
                            const ebb__state *st, ebb__name name, ebb__span name_span) {
    ebb__decl *d = method_of(ts, st, name);
    if (d == NULL || d->fn == NULL) {
        ebb__local *lost = place_of(b, self);
        if (!ts->decl->broken) report_no_method(b, ts, st, name, name_span);
        if (lost != NULL) lost->type = EBB__TY_ERROR;
        ebb__args_skip(b, node);
        return ebb__ir_invalid(b, span_of(b, node));
    }
    ebb__local *place = d->consumes ? place_of(b, self) : NULL;
    ebb__ir *x = call(b, node, d, self);
    if (place != NULL) ebb__flow_move(b, place, name_span);
    else if (d->consumes && self->op == EBB__OP_SELF && !b->self_owned && !b->in_machine)
        (void)ebb__diag_report(b->c, EBB__E0501, name_span, "self is only borrowed here");
    return x;
}

static ebb__ir *call_machine(ebb__body *b, uint32_t node, ebb__ir *m, ebb__name name, ebb__span name_span) {
    ebb__ir *x = ebb__infer_handle_method(b, node, m, name);
    if (x != NULL) return x;
    const ebb__type_info *t = ebb__type_at(b->c, m->type);
    bool state_method = false;
    for (uint32_t i = 0; t->kind == EBB__TY_MACHINE && i < t->decl->typestate->n_states; i++)
        state_method =
            state_method || method_of(t->decl->typestate, t->decl->typestate->states[i], name) != NULL;
    if (state_method) {
        ebb__diag *d =
            ebb__diag_report(b->c, EBB__E0505, name_span, "%n is managed: it is only sent to", t->decl->name);
        ebb__diag_help(b->c, d, "send it a message that a handler answers");
    } else {
        (void)ebb__diag_report(b->c, EBB__E0303, name_span,
                               "a handle has send, request, start and stop, but no %n", name);
    }
    ebb__args_skip(b, node);
    return ebb__ir_invalid(b, span_of(b, node));
}

static ebb__ir *call_member(ebb__body *b, uint32_t node, uint32_t callee) {
    const ebb__syntax *f = at(b, callee);
    ebb__ir *self = ebb__infer_borrowed(b, f->child);
    ebb__name name = f->tok == 0 ? 0 : ebb__token_at(b->s, f->tok)->name;
    ebb__span name_span = f->tok == 0 ? span_of(b, callee) : ebb__token_span(b->s, f->tok);
    const ebb__type_info *t = ebb__type_at(b->c, self->type);
    bool of_self = self->op == EBB__OP_SELF;
    if (of_self && method_of(b->ts, b->state, name) != NULL)
        return call_method(b, node, self, b->ts, b->state, name, name_span);
    if (of_self && b->state == NULL && !b->in_machine)
        return call_method(b, node, self, b->ts, NULL, name, name_span);
    if (t->kind == EBB__TY_STATE)
        return call_method(b, node, self, t->decl->typestate, t->decl->typestate->states[t->index], name,
                           name_span);
    if (t->kind == EBB__TY_MACHINE || t->kind == EBB__TY_ROLE)
        return call_machine(b, node, self, name, name_span);
    ebb__ir *x = t->kind == EBB__TY_ERROR ? NULL : ebb__infer_value_method(b, node, self, name);
    if (x != NULL) return x;
    if (t->kind != EBB__TY_ERROR) {
        if (ebb__type_errors(b->c, self->type, false) != self->type)
            (void)ebb__diag_report(b->c, EBB__E0308, self->span, "this is %t", self->type);
        else (void)ebb__diag_report(b->c, EBB__E0303, name_span, "%t has no method %n", self->type, name);
    }
    ebb__args_skip(b, node);
    return ebb__ir_invalid(b, span_of(b, node));
}

ebb__ir *ebb__infer_call(ebb__body *b, uint32_t node, ebb__type expected) {
    uint32_t callee = at(b, node)->child;
    if (at(b, callee)->kind == EBB__S_PATH_EXPR) return call_path(b, node, at(b, callee)->child, expected);
    if (at(b, callee)->kind == EBB__S_FIELD_OF) return call_member(b, node, callee);
    ebb__ir *x = ebb__infer(b, callee, 0);
    if (x->type != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "%t can't be called", x->type);
    ebb__args_skip(b, node);
    return ebb__ir_invalid(b, span_of(b, node));
}
