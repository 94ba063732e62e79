/* lang/infer_record.c - records, states, and the fields and elements of values. */
#include "lang/body.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

/* ---- records and states ---- */

static uint32_t find_field(const ebb__field *fields, uint32_t n, ebb__name name) {
    uint32_t i = 0;
    while (i < n && fields[i].name != name) i++;
    return i;
}

/* The value that a field of the next state has if the literal does not say: what the present state has there. */
static ebb__ir *carried(ebb__body *b, const ebb__state *to, uint32_t i, ebb__span span) {
    const ebb__field *f = &to->fields[i];
    if (b->ts != to->typestate || (b->fn->kind == EBB__FN_NEW)) return NULL;
    const ebb__field *fields = b->state != NULL ? b->state->fields : b->ts->fields;
    uint32_t n = b->state != NULL ? b->state->n_fields : b->ts->n_fields,
             at_field = find_field(fields, n, f->name);
    if (at_field == n || fields[at_field].type != f->type) return NULL;
    ebb__local *l = ebb__local_field(b, at_field);
    if (l != NULL) ebb__flow_move(b, l, span);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_SELF_FIELD, f->type, span, 0);
    x->a = at_field;
    return x;
}

static ebb__name unset_field(ebb__body *b, const ebb__state *to, ebb__ir *x) {
    ebb__name unset = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->args[i] != x) continue;
        ebb__ir *value = carried(b, to, i, x->span);
        if (value != NULL) x->args[i] = value;
        else if (unset == 0) unset = to->fields[i].name;
    }
    return unset;
}

static ebb__ir *init_value(ebb__body *b, uint32_t init, ebb__type type) {
    uint32_t value = at(b, init)->child;
    if (value != 0) return ebb__infer_as(b, value, type);
    ebb__name name = ebb__token_at(b->s, at(b, init)->tok)->name; /* `P { x }` */
    ebb__span span = span_of(b, init);
    ebb__local *l = ebb__local_find(b, name);
    if (l != NULL) return ebb__coerce(b, ebb__read_local(b, l, span, false), type);
    (void)ebb__diag_report(b->c, EBB__E0201, span, "there is no variable %n", name);
    return ebb__ir_invalid(b, span);
}

static void infer_inits(ebb__body *b, ebb__ir *x, uint32_t node, const ebb__field *fields, uint32_t n,
                        const char *what) {
    for (uint32_t init = at(b, node)->child; init != 0; init = at(b, init)->next) {
        const ebb__syntax *s = at(b, init);
        if (s->kind != EBB__S_INIT || s->tok == 0) continue;
        ebb__name name = ebb__token_at(b->s, s->tok)->name, names[64];
        ebb__span span = ebb__token_span(b->s, s->tok);
        uint32_t i = find_field(fields, n, name), k = 0;
        if (i == n) {
            ebb__diag *d = ebb__diag_report(b->c, EBB__E0303, span, "%s has no field %n", what, name);
            for (; k < n && k < 64; k++) names[k] = fields[k].name;
            ebb__name close = ebb__closest(b->c, name, names, k);
            if (close != 0 && s->child != 0) {
                ebb__diag_help(b->c, d, "did you mean %n?", close);
                ebb__diag_edit(b->c, d, span, "%n", close);
            }
            if (s->child != 0) (void)ebb__infer(b, s->child, 0);
        } else if (i < x->n && x->args[i] != x) {
            (void)ebb__diag_report(b->c, EBB__E0304, span, "%n is set twice", name);
        } else if (i < x->n) {
            x->args[i] = init_value(b, init, fields[i].type);
        }
    }
}

/* `node` is the literal, or 0: a state without braces. */
ebb__ir *ebb__infer_state(ebb__body *b, ebb__state *to, uint32_t node, ebb__span span) {
    ebb__type t = ebb__type_decl(b->c, EBB__TY_STATE, to->typestate->decl, to->index);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_STATE, t, span, to->n_fields);
    x->a = to->index;
    if (b->ts != to->typestate) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0407, span, "%n is a state of %n", to->name,
                                        to->typestate->decl->name);
        ebb__diag_help(b->c, d, "values of it come from %n::new and from methods", to->typestate->decl->name);
        return ebb__ir_invalid(b, span);
    }
    if (node != 0) infer_inits(b, x, node, to->fields, to->n_fields, ebb__name_text(b->c, to->name));
    ebb__name unset = unset_field(b, to, x);
    if (unset != 0) {
        ebb__span end = span_of(b, node);
        ebb__diag *d =
            ebb__diag_report(b->c, EBB__E0406, span, "%n has a field %n that nothing sets", to->name, unset);
        (void)end;
        ebb__diag_help(b->c, d, "write %n { %n: ... }", to->name, unset);
        return ebb__ir_invalid(b, span);
    }
    return x;
}

ebb__ir *ebb__infer_record(ebb__body *b, uint32_t node) {
    uint32_t path = at(b, node)->child;
    ebb__span span = span_of(b, node);
    ebb__ref r = ebb__lookup_path(b->c, b->w, path);
    if (r.kind == EBB__R_STATE) return ebb__infer_state(b, r.state, node, span);
    if (r.kind == EBB__R_NONE) ebb__unknown(b->c, b->w, path, "the record");
    bool type = r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPE;
    ebb__type t = type ? ebb__decl_type(b->c, r.decl) : (ebb__type)EBB__TY_ERROR;
    if (t == EBB__TY_ERROR || ebb__type_kind_of(b->c, t) != EBB__TY_RECORD || r.decl->broken) {
        if (r.kind != EBB__R_NONE && r.kind != EBB__R_REPORTED && (!type || t != EBB__TY_ERROR) &&
            (r.decl == NULL || !r.decl->broken))
            (void)ebb__diag_report(b->c, EBB__E0301, ebb__node_span(b->s, path), "this is no record");
        for (uint32_t i = at(b, node)->child; i != 0; i = at(b, i)->next) {
            if (at(b, i)->kind == EBB__S_INIT && at(b, i)->child != 0)
                (void)ebb__infer(b, at(b, i)->child, 0);
        }
        return ebb__ir_invalid(b, span);
    }
    const ebb__decl *d = ebb__type_at(b->c, t)->decl;
    ebb__ir *x = ebb__ir_new(b, EBB__OP_RECORD, t, span, d->n_fields);
    infer_inits(b, x, node, d->fields, d->n_fields, ebb__name_text(b->c, d->name));
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->args[i] != x) continue;
        (void)ebb__diag_report(b->c, EBB__E0304, span, "%n is not set", d->fields[i].name);
        return ebb__ir_invalid(b, span);
    }
    return x;
}

/* ---- fields and elements ---- */

static void report_absent(ebb__body *b, const ebb__typestate *ts, ebb__name name, ebb__span span,
                          const ebb__state *here) {
    for (uint32_t i = 0; i < ts->n_states; i++) {
        const ebb__state *st = ts->states[i];
        if (find_field(st->fields, st->n_fields, name) == st->n_fields) continue;
        if (here == NULL)
            (void)ebb__diag_report(b->c, EBB__E0408, span, "%n is a field of %n; here the state is not known",
                                   name, st->name);
        else
            (void)ebb__diag_report(b->c, EBB__E0408, span, "%n is a field of %n; this is %n", name, st->name,
                                   here->name);
        return;
    }
    (void)ebb__diag_report(b->c, EBB__E0303, span, "%n has no field %n", ts->decl->name, name);
}

static ebb__ir *self_field(ebb__body *b, uint32_t node, bool borrow) {
    ebb__name name = ebb__token_at(b->s, at(b, node)->tok)->name;
    ebb__span span = span_of(b, node);
    const ebb__field *fields = b->state != NULL ? b->state->fields : b->ts->fields;
    uint32_t n = b->state != NULL ? b->state->n_fields : b->ts->n_fields, i = find_field(fields, n, name);
    if (i == n) {
        if (!b->ts->decl->broken)
            report_absent(b, b->ts, name, ebb__token_span(b->s, at(b, node)->tok), b->state);
        return ebb__ir_invalid(b, span);
    }
    ebb__local *l = ebb__local_field(b, i);
    if (l != NULL && borrow) ebb__flow_borrow(b, l, span);
    else if (l != NULL) ebb__flow_move(b, l, span);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_SELF_FIELD, fields[i].type, span, 0);
    x->a = i;
    return x;
}

static ebb__ir *field_of(ebb__body *b, ebb__ir *base, ebb__name name, ebb__span span, ebb__span name_span) {
    const ebb__type_info *t = ebb__type_at(b->c, base->type);
    const ebb__field *fields = NULL;
    uint32_t n = 0;
    if (t->kind == EBB__TY_ERROR) return ebb__ir_invalid(b, span);
    if (t->kind == EBB__TY_RECORD) fields = t->decl->fields, n = t->decl->n_fields;
    if (t->kind == EBB__TY_STATE)
        fields = t->decl->typestate->states[t->index]->fields,
        n = t->decl->typestate->states[t->index]->n_fields;
    uint32_t i = find_field(fields, n, name);
    if (i < n) {
        ebb__ir *x = ebb__ir_1(b, EBB__OP_FIELD, fields[i].type, span, base);
        x->a = i;
        if (!ebb__type_at(b->c, x->type)->moves) return x;
        (void)ebb__diag_report(b->c, EBB__E0501, span,
                               "a %t can't be taken out of a field that is not self's", x->type);
        return ebb__ir_invalid(b, span);
    }
    bool broken = (t->kind == EBB__TY_RECORD || t->kind == EBB__TY_STATE) && t->decl->broken;
    if (broken) return ebb__ir_invalid(b, span);
    if (t->kind == EBB__TY_STATE)
        report_absent(b, t->decl->typestate, name, name_span, t->decl->typestate->states[t->index]);
    else if (ebb__type_errors(b->c, base->type, false) != base->type)
        (void)ebb__diag_report(b->c, EBB__E0308, base->span, "this is %t", base->type);
    else (void)ebb__diag_report(b->c, EBB__E0303, name_span, "%t has no field %n", base->type, name);
    return ebb__ir_invalid(b, span);
}

ebb__ir *ebb__infer_field(ebb__body *b, uint32_t node, bool borrow) {
    const ebb__syntax *x = at(b, node);
    if (x->tok == 0) return ebb__ir_invalid(b, span_of(b, node));
    if (at(b, x->child)->kind == EBB__S_SELF && b->ts != NULL && b->fn->kind != EBB__FN_NEW)
        return self_field(b, node, borrow);
    ebb__ir *base = ebb__infer_borrowed(b, x->child);
    return field_of(b, base, ebb__token_at(b->s, x->tok)->name, span_of(b, node),
                    ebb__token_span(b->s, x->tok));
}

ebb__ir *ebb__infer_index(ebb__body *b, uint32_t node) {
    uint32_t list = at(b, node)->child, index = at(b, list)->next;
    ebb__ir *base = ebb__infer_borrowed(b, list);
    const ebb__type_info *t = ebb__type_at(b->c, base->type);
    ebb__type element = EBB__TY_ERROR, key = EBB__TY_I64;
    if (t->kind == EBB__TY_LIST) element = t->of[0];
    else if (t->kind == EBB__TY_MAP) key = t->of[0], element = t->of[1];
    else if (t->kind == EBB__TY_STRING || t->kind == EBB__TY_BYTES) element = EBB__TY_I64;
    else if (t->kind != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, base->span, "%t has no elements", base->type);
    if (element == EBB__TY_ERROR) {
        (void)ebb__infer(b, index, 0);
        return ebb__ir_invalid(b, span_of(b, node));
    }
    return ebb__ir_2(b, EBB__OP_INDEX, element, span_of(b, node), base, ebb__infer_as(b, index, key));
}
