/* lang/infer_builtin.c - functions and methods that are built in. */
#include "lang/infer_call.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static ebb__ir *convert(ebb__body *b, uint32_t node, ebb__name to) {
    uint32_t arg;
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &arg, 1), 1, 1,
                         to == EBB__N_i64 ? "i64(x)" : "u64(x)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__infer(b, arg, 0);
    bool from_i64 = x->type == EBB__TY_I64, from_u64 = x->type == EBB__TY_U64;
    bool ok = to == EBB__N_u64 ? from_i64 : from_u64 || x->type == EBB__TY_DURATION;
    if (x->type == EBB__TY_ERROR) return x;
    if (!ok) {
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "%t can't be converted", x->type);
        return ebb__ir_invalid(b, span_of(b, node));
    }
    if (to == EBB__N_u64) return ebb__ir_1(b, EBB__OP_TO_U64, EBB__TY_U64, span_of(b, node), x);
    return ebb__ir_1(b, EBB__OP_TO_I64, EBB__TY_I64, span_of(b, node), x);
}

static ebb__ir *simple(ebb__body *b, uint32_t node, ebb__op op, ebb__type result, ebb__type arg,
                       const char *usage) {
    uint32_t x;
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &x, 1), 1, 1, usage))
        return ebb__ir_invalid(b, span_of(b, node));
    return ebb__ir_1(b, op, result, span_of(b, node), ebb__infer_as(b, x, arg));
}

static ebb__ir *call_assert(ebb__body *b, uint32_t node) {
    uint32_t args[2], n = ebb__args_of(b, node, args, 2);
    if (!ebb__args_count(b, node, n, 1, 2, "assert(condition) or assert(condition, message)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__ir_new(b, EBB__OP_ASSERT, EBB__TY_UNIT, span_of(b, node), n);
    for (uint32_t i = 0; i < x->n; i++)
        x->args[i] = ebb__infer_as(b, args[i], i == 0 ? EBB__TY_BOOL : EBB__TY_STRING);
    return x;
}

static ebb__ir *call_str(ebb__body *b, uint32_t node) {
    uint32_t arg;
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &arg, 1), 1, 1, "str(x)"))
        return ebb__ir_invalid(b, span_of(b, node));
    ebb__ir *x = ebb__infer(b, arg, 0);
    if (x->type == EBB__TY_REQUEST_ID)
        (void)ebb__diag_report(b->c, EBB__E0806, x->span, "a RequestId has no text");
    else if (ebb__type_at(b->c, x->type)->moves)
        (void)ebb__diag_report(b->c, EBB__E0301, x->span, "%t has no text", x->type);
    return ebb__ir_1(b, EBB__OP_STR, EBB__TY_STRING, span_of(b, node), x);
}

ebb__ir *ebb__infer_builtin(ebb__body *b, uint32_t node, ebb__name name, ebb__type expected) {
    ebb__span span = span_of(b, node);
    ebb__ir *x;
    (void)expected;
    switch (name) {
    case EBB__N_now:
        if (!ebb__args_count(b, node, ebb__args_of(b, node, NULL, 0), 0, 0, "now()"))
            return ebb__ir_invalid(b, span);
        if (b->pure) (void)ebb__diag_report(b->c, EBB__E0413, span, "%s does not read the time", b->pure_why);
        return ebb__ir_new(b, EBB__OP_NOW, EBB__TY_DURATION, span, 0);
    case EBB__N_print:
        ebb__effect_at(b, span, "print");
        return simple(b, node, EBB__OP_PRINT, EBB__TY_UNIT, EBB__TY_STRING, "print(text)");
    case EBB__N_trap:
        x = simple(b, node, EBB__OP_TRAP, EBB__TY_NEVER, EBB__TY_STRING, "trap(text)");
        b->dead = true;
        return x;
    case EBB__N_assert: return call_assert(b, node);
    case EBB__N_str: return call_str(b, node);
    case EBB__N_i64:
    case EBB__N_u64: return convert(b, node, name);
    case EBB__N_RequestId:
        (void)ebb__diag_report(b->c, EBB__E0806, span, "a RequestId comes from request only");
        ebb__args_skip(b, node);
        return ebb__ir_invalid(b, span);
    default: return ebb__infer_message(b, node, name);
    }
}

/* ---- methods of values ---- */

/* What a variable is changed through: FIELD and INDEX around a variable or a field of self. */
bool ebb__is_place(ebb__body *b, const ebb__ir *x) {
    const ebb__ir *root = x;
    while (root->op == EBB__OP_FIELD || root->op == EBB__OP_INDEX) root = root->args[0];
    if (root->op == EBB__OP_SELF_FIELD) {
        bool mine = b->in_machine || b->self_owned;
        if (!mine)
            (void)ebb__diag_report(
                b->c, EBB__E0311, x->span,
                "self is borrowed: only handlers and methods that return a state change it");
        return mine;
    }
    for (uint32_t i = b->locals.n; root->op == EBB__OP_LOCAL && i-- > 0;) {
        const ebb__local *l = ebb__local_at(b, i);
        if (l->kind != EBB__L_VAR || l->slot != root->a) continue;
        if (l->mut) return true;
        ebb__diag *d = ebb__diag_report(b->c, EBB__E0311, x->span, "%n does not change", l->name);
        ebb__diag_label(b->c, d, l->span, "declared here");
        const char *text = b->s->text + l->span.at;
        bool is_let =
            l->span.at >= 4 && text[-4] == 'l' && text[-3] == 'e' && text[-2] == 't' && text[-1] == ' ';
        if (is_let) {
            ebb__diag_help(b->c, d, "declare it with var");
            ebb__diag_edit(b->c, d, (ebb__span){b->s->id, l->span.at - 4, 3}, "var");
        }
        return false;
    }
    if (x->type != EBB__TY_ERROR)
        (void)ebb__diag_report(b->c, EBB__E0311, x->span, "this is a value, not a place");
    return false;
}

static ebb__ir *with_one(ebb__body *b, uint32_t node, ebb__ir *self, ebb__op op, ebb__type result,
                         ebb__type arg, const char *usage) {
    uint32_t x;
    if (!ebb__args_count(b, node, ebb__args_of(b, node, &x, 1), 1, 1, usage))
        return ebb__ir_invalid(b, span_of(b, node));
    return ebb__ir_2(b, op, result, span_of(b, node), self, ebb__infer_as(b, x, arg));
}

static ebb__ir *with_none(ebb__body *b, uint32_t node, ebb__ir *self, ebb__op op, ebb__type result,
                          const char *usage) {
    if (!ebb__args_count(b, node, ebb__args_of(b, node, NULL, 0), 0, 0, usage))
        return ebb__ir_invalid(b, span_of(b, node));
    return ebb__ir_1(b, op, result, span_of(b, node), self);
}

static ebb__ir *list_method(ebb__body *b, uint32_t node, ebb__ir *self, ebb__name name, ebb__type of) {
    switch (name) {
    case EBB__N_push:
        if (!ebb__is_place(b, self)) return ebb__ir_invalid(b, span_of(b, node));
        return with_one(b, node, self, EBB__OP_PUSH, EBB__TY_UNIT, of, "push(x)");
    case EBB__N_has: return with_one(b, node, self, EBB__OP_HAS, EBB__TY_BOOL, of, "has(x)");
    case EBB__N_get:
        return with_one(b, node, self, EBB__OP_GET, ebb__type_join(b->c, of, b->c->check->none), EBB__TY_I64,
                        "get(index)");
    default: return NULL;
    }
}

static ebb__ir *map_method(ebb__body *b, uint32_t node, ebb__ir *self, ebb__name name, ebb__type key,
                           ebb__type value) {
    switch (name) {
    case EBB__N_has: return with_one(b, node, self, EBB__OP_HAS, EBB__TY_BOOL, key, "has(key)");
    case EBB__N_get:
        return with_one(b, node, self, EBB__OP_GET, ebb__type_join(b->c, value, b->c->check->none), key,
                        "get(key)");
    case EBB__N_remove:
        if (!ebb__is_place(b, self)) return ebb__ir_invalid(b, span_of(b, node));
        return with_one(b, node, self, EBB__OP_REMOVE, EBB__TY_BOOL, key, "remove(key)");
    case EBB__N_keys:
        return with_none(b, node, self, EBB__OP_KEYS, ebb__type_of(b->c, EBB__TY_LIST, &key, 1), "keys()");
    default: return NULL;
    }
}

ebb__ir *ebb__infer_value_method(ebb__body *b, uint32_t node, ebb__ir *self, ebb__name name) {
    const ebb__type_info *t = ebb__type_at(b->c, self->type);
    bool sized = t->kind == EBB__TY_LIST || t->kind == EBB__TY_MAP || t->kind == EBB__TY_STRING ||
                 t->kind == EBB__TY_BYTES;
    if (sized && name == EBB__N_len) return with_none(b, node, self, EBB__OP_LEN, EBB__TY_I64, "len()");
    if (t->kind == EBB__TY_LIST) return list_method(b, node, self, name, t->of[0]);
    if (t->kind == EBB__TY_MAP) return map_method(b, node, self, name, t->of[0], t->of[1]);
    return NULL;
}
