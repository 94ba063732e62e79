/* lang/infer_expr.c - expressions other than calls and branches. */
#include "lang/body.h"
#include "lang/fold.h"

/* ---- making IR ---- */

ebb__ir *ebb__ir_new(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, uint32_t n) {
    ebb__ir *x = EBB__NEW(b->c, ebb__ir);
    *x = (ebb__ir){.op = (uint8_t)op, .type = type, .span = at, .n = n};
    x->args = n == 0 ? NULL : ebb__lang_array(b->c, n, sizeof *x->args);
    if (x->args == NULL) x->n = 0;
    for (uint32_t i = 0; i < x->n; i++) x->args[i] = x; /* never NULL; replaced at once */
    return x;
}

ebb__ir *ebb__ir_invalid(ebb__body *b, ebb__span at) {
    return ebb__ir_new(b, EBB__OP_INVALID, EBB__TY_ERROR, at, 0);
}

ebb__ir *ebb__ir_1(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, ebb__ir *x) {
    ebb__ir *y = ebb__ir_new(b, op, type, at, 1);
    if (y->n == 1) y->args[0] = x;
    return y;
}

ebb__ir *ebb__ir_2(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, ebb__ir *x, ebb__ir *y) {
    ebb__ir *z = ebb__ir_new(b, op, type, at, 2);
    if (z->n == 2) {
        z->args[0] = x;
        z->args[1] = y;
    }
    return z;
}

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

/* ---- fitting ---- */

static ebb__ir *mismatch(ebb__body *b, const ebb__ir *x, ebb__type to) {
    ebb__type plain = ebb__type_errors(b->c, x->type, false);
    bool hides = plain != x->type && plain != EBB__TY_NEVER && ebb__type_fit(b->c, plain, to) != EBB__FIT_NOT;
    if (hides) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0308, x->span, "this is %t", x->type);
        ebb__diag_help(b->c, d, "pass the error on with `?`");
        ebb__diag_edit(b->c, d, (ebb__span){x->span.source, x->span.at + x->span.n, 0}, "?");
    } else {
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "expected %t, found %t", to, x->type);
    }
    return ebb__ir_invalid(b, x->span);
}

ebb__ir *ebb__coerce(ebb__body *b, ebb__ir *x, ebb__type to) {
    switch (ebb__type_fit(b->c, x->type, to)) {
    case EBB__FIT_SAME: return x;
    case EBB__FIT_WIDEN: return ebb__ir_1(b, EBB__OP_WIDEN, to, x->span, x);
    case EBB__FIT_ROLE: return ebb__ir_1(b, EBB__OP_AS_ROLE, to, x->span, x);
    default: return mismatch(b, x, to);
    }
}

ebb__ir *ebb__infer_as(ebb__body *b, uint32_t node, ebb__type to) {
    return ebb__coerce(b, ebb__infer(b, node, to), to);
}

/* ---- literals ---- */

static ebb__type number_type(const ebb__body *b, ebb__type expected) {
    const ebb__type *of;
    uint32_t n = expected == 0 ? 0 : ebb__type_members(b->c, &expected, &of);
    bool i64 = false, u64 = false;
    for (uint32_t i = 0; i < n; i++) {
        i64 = i64 || of[i] == EBB__TY_I64;
        u64 = u64 || of[i] == EBB__TY_U64;
    }
    return u64 && !i64 ? EBB__TY_U64 : EBB__TY_I64;
}

/* `negative`: behind a minus, where one more is allowed. */
static ebb__ir *infer_int(ebb__body *b, uint32_t node, ebb__type expected, bool negative) {
    const ebb__token *t = ebb__token_at(b->s, at(b, node)->tok);
    uint64_t value;
    bool u64, i64;
    if (!ebb__token_number(b->s, t, &value, &u64, &i64)) return ebb__ir_invalid(b, span_of(b, node));
    ebb__type type = u64 ? (ebb__type)EBB__TY_U64 : i64 ? (ebb__type)EBB__TY_I64 : number_type(b, expected);
    if (type == EBB__TY_I64 && value > (uint64_t)INT64_MAX + negative) {
        (void)ebb__diag_report(b->c, EBB__E0103, span_of(b, node), "the largest i64 is 9223372036854775807");
        return ebb__ir_invalid(b, span_of(b, node));
    }
    ebb__ir *x = ebb__ir_new(b, EBB__OP_INT, type, span_of(b, node), 0);
    x->i = (int64_t)value;
    return x;
}

ebb__ir *ebb__literal(ebb__body *b, uint32_t node, ebb__type expected) {
    const ebb__token *t = ebb__token_at(b->s, at(b, node)->tok);
    ebb__span span = span_of(b, node);
    uint64_t ms;
    bool u, i;
    ebb__ir *x;
    switch (t->kind) {
    case EBB__T_INT: return infer_int(b, node, expected, false);
    case EBB__T_DURATION:
        if (!ebb__token_number(b->s, t, &ms, &u, &i)) return ebb__ir_invalid(b, span);
        x = ebb__ir_new(b, EBB__OP_INT, EBB__TY_DURATION, span, 0);
        x->i = (int64_t)ms;
        return x;
    case EBB__T_true:
    case EBB__T_false:
        x = ebb__ir_new(b, EBB__OP_BOOL, EBB__TY_BOOL, span, 0);
        x->i = t->kind == EBB__T_true;
        return x;
    case EBB__T_BYTES: x = ebb__ir_new(b, EBB__OP_BYTES, EBB__TY_BYTES, span, 0); break;
    default: x = ebb__ir_new(b, EBB__OP_STRING, EBB__TY_STRING, span, 0);
    }
    x->bytes = ebb__token_bytes(b->c, b->s, t, &x->n_bytes);
    return x;
}

static uint32_t count(const ebb__body *b, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) n++;
    return n;
}

static bool prints(const ebb__body *b, ebb__type t) {
    uint8_t kind = ebb__type_kind_of(b->c, t);
    return !ebb__type_at(b->c, t)->moves && kind != EBB__TY_REQUEST_ID;
}

static ebb__ir *infer_fstring(ebb__body *b, uint32_t node) {
    ebb__ir *all = ebb__ir_new(b, EBB__OP_TEXT, EBB__TY_STRING, span_of(b, node), count(b, node));
    uint32_t i = 0;
    for (uint32_t x = at(b, node)->child; x != 0 && i < all->n; x = at(b, x)->next) {
        ebb__ir *part = ebb__infer(b, x, 0);
        if (!prints(b, part->type))
            (void)ebb__diag_report(b->c, EBB__E0301, part->span, "%t has no text", part->type);
        all->args[i++] = part;
    }
    return all;
}

/* ---- names ---- */

ebb__ir *ebb__read_local(ebb__body *b, ebb__local *l, ebb__span span, bool borrow) {
    if (borrow) ebb__flow_borrow(b, l, span);
    else ebb__flow_move(b, l, span);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_LOCAL, l->type, span, 0);
    x->a = l->slot;
    return x;
}

static ebb__ir *infer_name(ebb__body *b, uint32_t node, bool borrow) {
    uint32_t path = at(b, node)->child;
    const ebb__syntax *p = at(b, path);
    ebb__span span = span_of(b, node);
    bool plain = p->end - p->first == 1;
    ebb__name name = ebb__path_name(b->s, path);
    ebb__local *l = plain ? ebb__local_find(b, name) : NULL;
    if (l != NULL) return ebb__read_local(b, l, span, borrow);
    if (plain && name == EBB__N_stay && b->handler != NULL)
        return ebb__ir_new(b, EBB__OP_UNIT, EBB__TY_UNIT, span, 0);
    ebb__ref r = ebb__lookup_path(b->c, b->w, path);
    if (r.kind == EBB__R_STATE) return ebb__infer_state(b, r.state, 0, span);
    if (r.kind == EBB__R_NONE) ebb__unknown(b->c, b->w, path, "the name");
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_CONST) return ebb__constant(b->c, r.decl, span);
    if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPE) {
        ebb__type t = ebb__decl_type(b->c, r.decl);
        if (t == EBB__TY_ERROR || r.decl->broken) return ebb__ir_invalid(b, span);
        const ebb__type_info *x = ebb__type_at(b->c, t);
        if (x->kind == EBB__TY_RECORD && x->decl->n_fields == 0)
            return ebb__ir_new(b, EBB__OP_RECORD, t, span, 0);
        if (x->kind == EBB__TY_RECORD)
            (void)ebb__diag_report(b->c, EBB__E0304, span, "%n has fields: %n { %n: ... }", name, name,
                                   x->decl->fields[0].name);
        else (void)ebb__diag_report(b->c, EBB__E0301, span, "%n is a type, not a value", name);
    } else if (r.kind == EBB__R_DECL && r.decl->kind == EBB__D_TYPESTATE) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0301, span, "%n is a typestate, not a value", name);
        ebb__diag_help(b->c, d, "%n::spawn(...) makes a machine of it, %n::new(...) a direct value", name,
                       name);
    } else if (r.kind == EBB__R_DECL) {
        (void)ebb__diag_report(b->c, EBB__E0301, span,
                               r.decl->kind == EBB__D_FN ? "a function is no value: call it"
                                                         : "this is no value");
    } else if (r.kind == EBB__R_ROLE) {
        (void)ebb__diag_report(b->c, EBB__E0301, span, "a role is no value");
    }
    return ebb__ir_invalid(b, span);
}

static ebb__ir *infer_self(ebb__body *b, uint32_t node, bool borrow) {
    ebb__span span = span_of(b, node);
    if (b->ts == NULL || b->fn->kind == EBB__FN_NEW) {
        (void)ebb__diag_report(b->c, EBB__E0201, span, "there is no self here");
        return ebb__ir_invalid(b, span);
    }
    if (b->in_machine) {
        return ebb__ir_new(b, EBB__OP_SELF, ebb__type_decl(b->c, EBB__TY_MACHINE, b->ts->decl, 0), span, 0);
    }
    if (b->state == NULL) {
        if (!borrow) (void)ebb__diag_report(b->c, EBB__E0301, span, "self may be in any state here");
        return ebb__ir_new(b, EBB__OP_SELF, EBB__TY_ERROR, span, 0);
    }
    for (uint32_t i = 0; !borrow && i < b->locals.n; i++) {
        if (ebb__local_at(b, i)->kind == EBB__L_SELF) ebb__flow_move(b, ebb__local_at(b, i), span);
    }
    if (!borrow && !b->self_owned) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0501, span, "self is only borrowed here");
        ebb__diag_note(b->c, d, "a method consumes self if its result has a state");
    }
    return ebb__ir_new(b, EBB__OP_SELF, ebb__type_decl(b->c, EBB__TY_STATE, b->ts->decl, b->state->index),
                       span, 0);
}

/* ---- lists, maps, tuples ---- */

static bool may_contain(ebb__body *b, const ebb__ir *x) {
    if (!ebb__type_at(b->c, x->type)->moves) return true;
    bool cap = ebb__type_kind_of(b->c, x->type) == EBB__TY_REPLY_CAP;
    (void)ebb__diag_report(b->c, cap ? EBB__E0508 : EBB__E0313, x->span,
                           "a %t has one owner and can't be put in here", x->type);
    return false;
}

static ebb__type part_of(const ebb__body *b, ebb__type expected, uint8_t kind, uint32_t i) {
    const ebb__type *of;
    uint32_t n = expected == 0 ? 0 : ebb__type_members(b->c, &expected, &of);
    for (uint32_t k = 0; k < n; k++) {
        const ebb__type_info *t = ebb__type_at(b->c, of[k]);
        if (t->kind == kind && i < t->n) return t->of[i];
    }
    return 0;
}

static ebb__ir *element(ebb__body *b, uint32_t node, ebb__type *type) {
    ebb__ir *x = ebb__infer(b, node, *type);
    if (!may_contain(b, x)) return ebb__ir_invalid(b, x->span);
    if (*type == 0) *type = x->type;
    return ebb__coerce(b, x, *type);
}

static ebb__ir *infer_list(ebb__body *b, uint32_t node, ebb__type expected) {
    ebb__type of = part_of(b, expected, EBB__TY_LIST, 0);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_LIST, 0, span_of(b, node), count(b, node));
    uint32_t i = 0;
    for (uint32_t e = at(b, node)->child; e != 0 && i < x->n; e = at(b, e)->next)
        x->args[i++] = element(b, e, &of);
    if (of == 0 && at(b, node)->child == 0) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0301, x->span, "the type of the elements is not known");
        ebb__diag_help(b->c, d, "give the variable a type, as in `var xs: [i64] = [];`");
    }
    x->type = of == 0 ? (ebb__type)EBB__TY_ERROR : ebb__type_of(b->c, EBB__TY_LIST, &of, 1);
    return x;
}

static ebb__ir *infer_map(ebb__body *b, uint32_t node, ebb__type expected) {
    ebb__type of[2] = {part_of(b, expected, EBB__TY_MAP, 0), part_of(b, expected, EBB__TY_MAP, 1)};
    ebb__ir *x = ebb__ir_new(b, EBB__OP_MAP, 0, span_of(b, node), 2 * count(b, node));
    uint32_t i = 0;
    for (uint32_t e = at(b, node)->child; e != 0 && i + 1 < x->n; e = at(b, e)->next) {
        if (at(b, e)->kind != EBB__S_ENTRY_KV) {
            (void)ebb__diag_report(b->c, EBB__E0105, span_of(b, e), "expected key: value");
            x->args[i] = x->args[i + 1] = ebb__ir_invalid(b, span_of(b, e));
        } else {
            uint32_t key = at(b, e)->child;
            x->args[i] = element(b, key, &of[0]);
            x->args[i + 1] = element(b, at(b, key)->next, &of[1]);
        }
        i += 2;
    }
    if (of[0] == 0 || of[1] == 0)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "the types of keys and values are not known");
    x->type = of[0] == 0 || of[1] == 0 ? (ebb__type)EBB__TY_ERROR : ebb__type_of(b->c, EBB__TY_MAP, of, 2);
    return x;
}

static ebb__ir *infer_tuple(ebb__body *b, uint32_t node, ebb__type expected) {
    uint32_t n = count(b, node), i = 0;
    if (n == 0) return ebb__ir_new(b, EBB__OP_UNIT, EBB__TY_UNIT, span_of(b, node), 0);
    ebb__ir *x = ebb__ir_new(b, EBB__OP_TUPLE, 0, span_of(b, node), n);
    ebb__type *of = ebb__lang_array(b->c, n, sizeof *of);
    if (of == NULL || x->n == 0) return ebb__ir_invalid(b, x->span);
    for (uint32_t e = at(b, node)->child; e != 0; e = at(b, e)->next, i++) {
        of[i] = part_of(b, expected, EBB__TY_TUPLE, i);
        ebb__ir *value = ebb__infer(b, e, of[i]);
        if (of[i] == 0 || ebb__type_fit(b->c, value->type, of[i]) == EBB__FIT_NOT) of[i] = value->type;
        x->args[i] = may_contain(b, value) ? ebb__coerce(b, value, of[i]) : ebb__ir_invalid(b, value->span);
        of[i] = x->args[i]->type;
    }
    if (!ebb__check_parts(b->c, x->span, n)) return ebb__ir_invalid(b, x->span);
    x->type = ebb__type_of(b->c, EBB__TY_TUPLE, of, n);
    return x;
}

/* ---- operators ---- */

static ebb__ir *infer_unary(ebb__body *b, uint32_t node, ebb__type expected) {
    uint32_t child = at(b, node)->child;
    uint8_t op = ebb__token_at(b->s, at(b, node)->tok)->kind;
    ebb__span span = span_of(b, node);
    bool literal =
        at(b, child)->kind == EBB__S_LITERAL && ebb__token_at(b->s, at(b, child)->tok)->kind == EBB__T_INT;
    if (op == EBB__T_BANG)
        return ebb__ir_1(b, EBB__OP_NOT, EBB__TY_BOOL, span, ebb__infer_as(b, child, EBB__TY_BOOL));
    ebb__ir *x = literal ? infer_int(b, child, expected, op == EBB__T_MINUS) : ebb__infer(b, child, expected);
    if (literal && op == EBB__T_MINUS && x->op == EBB__OP_INT && x->type == EBB__TY_I64 && x->i == INT64_MIN)
        return x;
    bool number =
        x->type == EBB__TY_I64 || (op == EBB__T_TILDE ? x->type == EBB__TY_U64 : x->type == EBB__TY_DURATION);
    if (x->type == EBB__TY_ERROR) return x;
    if (x->type == EBB__TY_U64 && op == EBB__T_MINUS) {
        (void)ebb__diag_report(b->c, EBB__E0103, span, "a u64 is never negative");
        return ebb__ir_invalid(b, span);
    }
    if (!number) {
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "expected a number, found %t", x->type);
        return ebb__ir_invalid(b, span);
    }
    return ebb__fold(b, ebb__ir_1(b, op == EBB__T_MINUS ? EBB__OP_NEG : EBB__OP_BIT_NOT, x->type, span, x));
}

typedef struct operator_row {
    uint8_t token, op;
    enum { ARITHMETIC, BITS, SHIFT, EQUAL, ORDER, LOGIC } class;
} operator_row;

static const operator_row *operator_of(uint8_t token, bool shift) {
    static const operator_row rows[] = {{EBB__T_PLUS, EBB__OP_ADD, ARITHMETIC},
                                        {EBB__T_MINUS, EBB__OP_SUB, ARITHMETIC},
                                        {EBB__T_STAR, EBB__OP_MUL, ARITHMETIC},
                                        {EBB__T_SLASH, EBB__OP_DIV, ARITHMETIC},
                                        {EBB__T_PERCENT, EBB__OP_REM, ARITHMETIC},
                                        {EBB__T_AND, EBB__OP_AND, BITS},
                                        {EBB__T_OR, EBB__OP_OR, BITS},
                                        {EBB__T_XOR, EBB__OP_XOR, BITS},
                                        {EBB__T_EQEQ, EBB__OP_EQ, EQUAL},
                                        {EBB__T_NE, EBB__OP_NE, EQUAL},
                                        {EBB__T_LT, EBB__OP_LT, ORDER},
                                        {EBB__T_LE, EBB__OP_LE, ORDER},
                                        {EBB__T_GT, EBB__OP_GT, ORDER},
                                        {EBB__T_GE, EBB__OP_GE, ORDER},
                                        {EBB__T_ANDAND, EBB__OP_AND_ALSO, LOGIC},
                                        {EBB__T_OROR, EBB__OP_OR_ELSE, LOGIC}};
    static const operator_row shl = {EBB__T_LT, EBB__OP_SHL, SHIFT}, shr = {EBB__T_GT, EBB__OP_SHR, SHIFT};
    if (shift) return token == EBB__T_LT ? &shl : &shr;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].token == token) return &rows[i];
    }
    return &rows[0];
}

static bool allowed(const ebb__body *b, const operator_row *row, ebb__type t) {
    uint8_t kind = ebb__type_kind_of(b->c, t);
    bool number = kind == EBB__TY_I64 || kind == EBB__TY_U64,
         text = kind == EBB__TY_STRING || kind == EBB__TY_BYTES;
    bool time = kind == EBB__TY_DURATION;
    switch (row->class) {
    case ARITHMETIC:
        if (row->op == EBB__OP_ADD) return number || time || text || kind == EBB__TY_LIST;
        return number || (row->op == EBB__OP_SUB && time);
    case BITS:
    case SHIFT: return number;
    case ORDER: return number || text || time;
    default: return !ebb__type_at(b->c, t)->moves && kind != EBB__TY_REQUEST_ID;
    }
}

static ebb__ir *bad_operands(ebb__body *b, const operator_row *row, const ebb__ir *x, const ebb__ir *y,
                             uint32_t node) {
    ebb__span op = ebb__token_span(b->s, at(b, node)->tok);
    bool id = x->type == EBB__TY_REQUEST_ID || y->type == EBB__TY_REQUEST_ID;
    ebb__type plain = ebb__type_errors(b->c, x->type, false);
    (void)row;
    if (id) (void)ebb__diag_report(b->c, EBB__E0806, op, "a RequestId can't be compared or computed with");
    else if (plain != x->type && plain != EBB__TY_NEVER)
        (void)ebb__coerce(b, ebb__ir_new(b, EBB__OP_INVALID, x->type, x->span, 0), plain);
    else {
        ebb__diag *d =
            ebb__diag_report(b->c, EBB__E0301, op, "this operator does not take %t and %t", x->type, y->type);
        ebb__diag_label(b->c, d, x->span, "%t", x->type);
        ebb__diag_label(b->c, d, y->span, "%t", y->type);
    }
    return ebb__ir_invalid(b, span_of(b, node));
}

static bool is_int_literal(const ebb__body *b, uint32_t node) {
    return at(b, node)->kind == EBB__S_LITERAL && ebb__token_at(b->s, at(b, node)->tok)->kind == EBB__T_INT;
}

static ebb__ir *infer_logic(ebb__body *b, uint32_t node, const operator_row *row) {
    uint32_t left = at(b, node)->child, right = at(b, left)->next;
    ebb__ir *x = ebb__infer_as(b, left, EBB__TY_BOOL);
    ebb__flow *skipped = ebb__flow_save(b);
    ebb__ir *y = ebb__infer_as(b, right, EBB__TY_BOOL);
    ebb__flow_merge(b, skipped, span_of(b, right));
    return ebb__ir_2(b, row->op, EBB__TY_BOOL, span_of(b, node), x, y);
}

static ebb__ir *infer_binary(ebb__body *b, uint32_t node, ebb__type expected) {
    const ebb__syntax *s = at(b, node);
    uint32_t left = s->child, right = at(b, left)->next;
    const operator_row *row =
        operator_of(ebb__token_at(b->s, s->tok)->kind, (s->flags & EBB__FLAG_SHIFT) != 0);
    if (row->class == LOGIC) return infer_logic(b, node, row);
    ebb__type hint = row->class == EQUAL || row->class == ORDER ? 0 : expected;
    ebb__ir *x, *y;
    if (is_int_literal(b, left) &&
        !is_int_literal(b, right)) { /* the other side knows the type; a literal does nothing */
        y = ebb__infer(b, right, hint);
        x = ebb__infer(b, left, y->type == EBB__TY_DURATION ? 0 : y->type);
    } else {
        x = ebb__infer(b, left, hint);
        y = ebb__infer(b, right, row->class == SHIFT ? 0 : x->type);
    }
    if (x->type == EBB__TY_ERROR || y->type == EBB__TY_ERROR) return ebb__ir_invalid(b, span_of(b, node));
    bool scaled = row->op == EBB__OP_MUL && x->type == EBB__TY_DURATION && y->type == EBB__TY_I64;
    if (scaled) return ebb__fold(b, ebb__ir_2(b, EBB__OP_MUL, EBB__TY_DURATION, span_of(b, node), x, y));
    if (row->class != SHIFT && x->type != y->type) {
        if (ebb__type_fit(b->c, y->type, x->type) == EBB__FIT_WIDEN) y = ebb__coerce(b, y, x->type);
        else if (ebb__type_fit(b->c, x->type, y->type) == EBB__FIT_WIDEN) x = ebb__coerce(b, x, y->type);
    }
    bool same = row->class == SHIFT ? y->type == EBB__TY_I64 || y->type == EBB__TY_U64 : x->type == y->type;
    if (!same || !allowed(b, row, x->type)) return bad_operands(b, row, x, y, node);
    ebb__type t = row->class == EQUAL || row->class == ORDER ? (ebb__type)EBB__TY_BOOL : x->type;
    return ebb__fold(b, ebb__ir_2(b, row->op, t, span_of(b, node), x, y));
}

/* ---- `?` ---- */

/* Whose callers a fix would not have to change: a handler, a timer, main. The end of the result; n is 0: there is none,
 * and it begins here. */
static bool may_declare(const ebb__body *b, ebb__span *result) {
    uint32_t node = b->handler != NULL ? b->handler->node : b->decl != NULL ? b->decl->node : 0;
    uint32_t block = node == 0 ? 0 : ebb__child_of(b->s, node, EBB__S_BLOCK);
    bool main = b->handler == NULL && block != 0 && b->decl->name == EBB__N_main;
    if (block == 0 || (b->handler == NULL && !main)) return false;
    uint32_t type = main ? at(b, node)->child : b->handler->targets_node;
    while (main && type != 0 && !ebb__is_type(at(b, type)->kind)) type = at(b, type)->next;
    *result = type != 0 ? span_of(b, type) : (ebb__span){b->s->id, span_of(b, block).at, 0};
    return true;
}

bool ebb__help_errors(ebb__body *b, ebb__diag *d, ebb__type errors) {
    ebb__span result;
    const char *text =
        errors == b->c->check->machine_error ? "MachineError" : ebb__format(b->c, "%t", errors);
    bool declared = may_declare(b, &result),
         can = declared || b->fn->kind == EBB__FN_PLAIN || b->fn->kind == EBB__FN_METHOD;
    const char *begin = b->handler != NULL ? "-> stay" : "-> ()";
    if (!can) ebb__diag_help(b->c, d, "match on the result: no error leaves this code");
    else if (declared && result.n == 0) ebb__diag_help(b->c, d, "declare it: %s | %s", begin, text);
    else ebb__diag_help(b->c, d, "declare it: | %s", text);
    if (declared && result.n == 0) ebb__diag_edit(b->c, d, result, "%s | %s ", begin, text);
    else if (declared)
        ebb__diag_edit(b->c, d, (ebb__span){result.source, result.at + result.n, 0}, " | %s", text);
    return declared;
}

static ebb__ir *infer_try(ebb__body *b, uint32_t node) {
    ebb__ir *x = ebb__infer(b, at(b, node)->child, 0);
    ebb__span span = span_of(b, node), mark = {span.source, span.at + span.n - 1, 1};
    if (x->type == EBB__TY_ERROR) return x;
    ebb__type errors = ebb__type_errors(b->c, x->type, true), rest = ebb__type_errors(b->c, x->type, false);
    if (errors == EBB__TY_NEVER) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0307, mark, "%t has no @error member", x->type);
        ebb__diag_help(b->c, d, "leave the `?` out");
        ebb__diag_edit(b->c, d, mark, "");
        return x;
    }
    if (b->result != EBB__TY_ERROR && ebb__type_fit(b->c, errors, b->result) == EBB__FIT_NOT) {
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0307, mark, "the result has no place for %t",
                                        ebb__type_without(b->c, errors, b->result));
        ebb__diag_label(b->c, d, b->fn->span, "its result is %t", b->result);
        (void)ebb__help_errors(b, d, ebb__type_without(b->c, errors, b->result));
    }
    ebb__flow_exit(b, EBB__EXIT_TRY, errors, mark, (ebb__span){0});
    return ebb__ir_1(b, EBB__OP_TRY, rest, span, x);
}

/* ---- all ---- */

static ebb__ir *infer_hole(ebb__body *b, uint32_t node) {
    (void)ebb__diag_report(b->c, EBB__E0107, span_of(b, node), "this is still to be written");
    return ebb__ir_invalid(b, span_of(b, node));
}

static ebb__ir *infer(ebb__body *b, uint32_t node, ebb__type expected, bool borrow) {
    switch (at(b, node)->kind) {
    case EBB__S_LITERAL: return ebb__literal(b, node, expected);
    case EBB__S_FSTRING: return infer_fstring(b, node);
    case EBB__S_SELF: return infer_self(b, node, borrow);
    case EBB__S_PATH_EXPR: return infer_name(b, node, borrow);
    case EBB__S_RECORD_LIT: return ebb__infer_record(b, node);
    case EBB__S_TUPLE: return infer_tuple(b, node, expected);
    case EBB__S_PAREN: return infer(b, at(b, node)->child, expected, borrow);
    case EBB__S_LIST: return infer_list(b, node, expected);
    case EBB__S_MAP: return infer_map(b, node, expected);
    case EBB__S_CALL: return ebb__infer_call(b, node, expected);
    case EBB__S_FIELD_OF: return ebb__infer_field(b, node, borrow);
    case EBB__S_INDEX: return ebb__infer_index(b, node);
    case EBB__S_TRY: return infer_try(b, node);
    case EBB__S_UNARY: return infer_unary(b, node, expected);
    case EBB__S_BINARY: return infer_binary(b, node, expected);
    case EBB__S_IF: return ebb__infer_if(b, node, expected, false);
    case EBB__S_MATCH: return ebb__infer_match(b, node, expected, false);
    case EBB__S_BLOCK: return ebb__infer_block(b, node, expected, false);
    case EBB__S_REQUEST: return ebb__infer_request(b, node);
    case EBB__S_EMIT: return ebb__infer_emit(b, node);
    case EBB__S_HOLE: return infer_hole(b, node);
    default: return ebb__ir_invalid(b, span_of(b, node));
    }
}

ebb__ir *ebb__infer(ebb__body *b, uint32_t node, ebb__type expected) {
    return infer(b, node, expected, false);
}

ebb__ir *ebb__infer_borrowed(ebb__body *b, uint32_t node) {
    return infer(b, node, 0, true);
}
