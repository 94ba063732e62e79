/* lang/infer_pattern.c - patterns: what they test, what they bind. */
#include "lang/body.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

static ebb__ir_pattern *pattern_new(ebb__body *b, ebb__pattern_op op, ebb__type t, ebb__span span,
                                    uint32_t n) {
    ebb__ir_pattern *p = EBB__NEW(b->c, ebb__ir_pattern);
    *p = (ebb__ir_pattern){.op = (uint8_t)op, .type = t, .span = span, .n = n};
    p->of = n == 0 ? NULL : ebb__lang_array(b->c, n, sizeof *p->of);
    if (p->of == NULL) p->n = 0;
    return p;
}

/* A value with one owner that a pattern neither binds nor moves is lost. */
static ebb__ir_pattern *any(ebb__body *b, ebb__type t, ebb__span span) {
    if (!ebb__type_drops(b->c, t) && t != EBB__TY_ERROR) {
        bool pending = ebb__type_kind_of(b->c, t) == EBB__TY_PENDING;
        (void)ebb__diag_report(b->c, pending ? EBB__E0510 : EBB__E0504, span, "a %t is dropped here: bind it",
                               t);
    }
    return pattern_new(b, EBB__PAT_ANY, t, span, 0);
}

static ebb__ir_pattern *bind(ebb__body *b, ebb__name name, ebb__type t, ebb__span span) {
    ebb__local *l = ebb__local_add(b, EBB__L_VAR, name, t, span);
    ebb__ir_pattern *p = pattern_new(b, EBB__PAT_BIND, t, span, 0);
    p->slot = l->slot;
    return p;
}

/* `inner` looks at the value if it is a `member` of `t`. */
static ebb__ir_pattern *test(ebb__body *b, ebb__type t, ebb__type member, ebb__ir_pattern *inner,
                             ebb__span span) {
    if (t == member || t == EBB__TY_ERROR || member == EBB__TY_ERROR) return inner;
    if (ebb__type_fit(b->c, member, t) == EBB__FIT_NOT) {
        (void)ebb__diag_report(b->c, EBB__E0301, span, "a %t is never %t", t, member);
        return pattern_new(b, EBB__PAT_ANY, EBB__TY_ERROR, span, 0);
    }
    ebb__ir_pattern *p = pattern_new(b, EBB__PAT_IS, t, span, 1);
    p->member = member;
    if (p->n > 0) p->of[0] = inner;
    return p;
}

/* The type that a PATH names in a pattern; NEVER: it names no type. */
static ebb__type named_type(ebb__body *b, ebb__ref r) {
    if (r.kind == EBB__R_STATE)
        return ebb__type_decl(b->c, EBB__TY_STATE, r.state->typestate->decl, r.state->index);
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPE) return ebb__decl_type(b->c, r.decl);
    return r.kind == EBB__R_REPORTED ? (ebb__type)EBB__TY_ERROR : (ebb__type)EBB__TY_NEVER;
}

static ebb__ir_pattern *infer_bind(ebb__body *b, uint32_t node, ebb__type t) {
    const ebb__syntax *x = at(b, node);
    ebb__name name = ebb__token_at(b->s, x->tok)->name;
    ebb__span span = ebb__token_span(b->s, x->tok);
    if (x->child != 0) {
        ebb__type member = ebb__read_type(b->c, b->w, x->child);
        ebb__ir_pattern *inner = name == EBB__N__ ? any(b, member, span) : bind(b, name, member, span);
        return test(b, t, member, inner, span_of(b, node));
    }
    ebb__type named = named_type(b, ebb__name_lookup(b->c, b->w, name, span));
    if (named == EBB__TY_NEVER) return bind(b, name, t, span);
    return test(b, t, named, any(b, named, span), span);
}

static ebb__type member_of_kind(const ebb__body *b, ebb__type t, uint8_t kind) {
    const ebb__type *of;
    uint32_t n = ebb__type_members(b->c, &t, &of);
    for (uint32_t i = 0; i < n; i++) {
        if (ebb__type_kind_of(b->c, of[i]) == kind) return of[i];
    }
    return EBB__TY_NEVER;
}

static ebb__ir_pattern *infer_literal(ebb__body *b, uint32_t node, ebb__type t) {
    ebb__span span = span_of(b, node);
    uint8_t tok = ebb__token_at(b->s, at(b, node)->tok)->kind;
    ebb__type u64 = member_of_kind(b, t, EBB__TY_U64);
    ebb__ir *value = ebb__literal(b, node, tok == EBB__T_INT ? u64 : 0);
    if (value->type == EBB__TY_ERROR) return pattern_new(b, EBB__PAT_ANY, EBB__TY_ERROR, span, 0);
    ebb__ir_pattern *p = pattern_new(b, EBB__PAT_EQUAL, value->type, span, 0);
    p->value = value;
    return test(b, t, value->type, p, span);
}

static ebb__ir_pattern *infer_tuple(ebb__body *b, uint32_t node, ebb__type t) {
    uint32_t n = 0, i = 0;
    ebb__span span = span_of(b, node);
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) n++;
    if (n == 0) return test(b, t, EBB__TY_UNIT, pattern_new(b, EBB__PAT_ANY, EBB__TY_UNIT, span, 0), span);
    if (n == 1) return ebb__infer_pattern(b, at(b, node)->child, t);
    ebb__type tuple = member_of_kind(b, t, EBB__TY_TUPLE);
    uint32_t arity = tuple == EBB__TY_NEVER ? 0 : ebb__type_at(b->c, tuple)->n;
    if (arity != n && t != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0301, span, "%d values, but this is %t", (int64_t)n, t);
    ebb__ir_pattern *p = pattern_new(b, EBB__PAT_TUPLE, tuple, span, n);
    for (uint32_t x = at(b, node)->child; x != 0 && i < p->n; x = at(b, x)->next, i++) {
        p->of[i] = ebb__infer_pattern(
            b, x, arity == n ? ebb__type_at(b->c, tuple)->of[i] : (ebb__type)EBB__TY_ERROR);
    }
    if (arity != n) return pattern_new(b, EBB__PAT_ANY, EBB__TY_ERROR, span, 0);
    return test(b, t, tuple, p, span);
}

static ebb__type path_type(ebb__body *b, uint32_t path) {
    ebb__type t = named_type(b, ebb__lookup_path(b->c, b->w, path));
    if (t != EBB__TY_NEVER) return t;
    ebb__unknown(b->c, b->w, path, "the type");
    return EBB__TY_ERROR;
}

static ebb__ir_pattern *infer_path(ebb__body *b, uint32_t node, ebb__type t) {
    uint32_t path = at(b, node)->child, inner = at(b, path)->next;
    ebb__type member = path_type(b, path);
    ebb__span span = span_of(b, node);
    if (inner != 0 && at(b, inner)->next != 0) {
        (void)ebb__diag_report(b->c, EBB__E0302, span,
                               "one pattern stands for the value: use { field: ... } for its fields");
    }
    ebb__ir_pattern *p = inner != 0 ? ebb__infer_pattern(b, inner, member) : any(b, member, span);
    return test(b, t, member, p, span);
}

static const ebb__field *fields_of(const ebb__body *b, ebb__type t, uint32_t *n) {
    const ebb__type_info *x = ebb__type_at(b->c, t);
    *n = 0;
    if (x->kind == EBB__TY_RECORD) {
        *n = x->decl->n_fields;
        return x->decl->fields;
    }
    if (x->kind != EBB__TY_STATE) return NULL;
    *n = x->decl->typestate->states[x->index]->n_fields;
    return x->decl->typestate->states[x->index]->fields;
}

static void infer_field(ebb__body *b, uint32_t node, ebb__ir_pattern *p, const ebb__field *fields, uint32_t n,
                        ebb__type member) {
    const ebb__syntax *x = at(b, node);
    if (x->tok == 0) return;
    ebb__name name = ebb__token_at(b->s, x->tok)->name;
    ebb__span span = ebb__token_span(b->s, x->tok);
    uint32_t i = 0;
    while (i < n && fields[i].name != name) i++;
    ebb__type t = i < n ? fields[i].type : (ebb__type)EBB__TY_ERROR;
    if (i == n && member != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0303, span, "%t has no field %n", member, name);
    ebb__ir_pattern *inner = x->child != 0 ? ebb__infer_pattern(b, x->child, t) : bind(b, name, t, span);
    if (i < p->n) p->of[i] = inner;
}

static ebb__ir_pattern *infer_record(ebb__body *b, uint32_t node, ebb__type t) {
    uint32_t path = at(b, node)->child, n;
    ebb__type member = path_type(b, path);
    ebb__span span = span_of(b, node);
    const ebb__field *fields = fields_of(b, member, &n);
    if (fields == NULL && n == 0 && member != EBB__TY_ERROR &&
        ebb__type_kind_of(b->c, member) != EBB__TY_RECORD)
        (void)ebb__diag_report(b->c, EBB__E0301, span, "%t has no fields", member);
    if (ebb__type_at(b->c, member)->moves && !ebb__type_drops(b->c, member)) (void)any(b, member, span);
    ebb__ir_pattern *p = pattern_new(b, EBB__PAT_RECORD, member, span, n);
    for (uint32_t x = at(b, path)->next; x != 0; x = at(b, x)->next) infer_field(b, x, p, fields, n, member);
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->of[i] == NULL) p->of[i] = pattern_new(b, EBB__PAT_ANY, fields[i].type, span, 0);
    }
    return test(b, t, member, p, span);
}

ebb__ir_pattern *ebb__infer_pattern(ebb__body *b, uint32_t node, ebb__type t) {
    switch (at(b, node)->kind) {
    case EBB__S_PAT_WILD: return any(b, t, span_of(b, node));
    case EBB__S_PAT_LITERAL: return infer_literal(b, node, t);
    case EBB__S_PAT_BIND: return infer_bind(b, node, t);
    case EBB__S_PAT_TUPLE: return infer_tuple(b, node, t);
    case EBB__S_PAT_PATH: return infer_path(b, node, t);
    case EBB__S_PAT_RECORD: return infer_record(b, node, t);
    default: return pattern_new(b, EBB__PAT_ANY, EBB__TY_ERROR, span_of(b, node), 0);
    }
}
