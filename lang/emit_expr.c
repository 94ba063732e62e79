/* lang/emit_expr.c - expressions: where their values go, literals, operators, records, calls, `?`. */
#include "lang/emit.h"

#include "lang/check.h"

/* ---- moving and sharing ---- */

uint32_t ebb__emit_self(const ebb__emitter *e) {
    return e->has_self ? 0 : e->slots[0];
}

void ebb__emit_move(ebb__emitter *e, uint32_t type, uint32_t to, uint32_t from) {
    if (to == EBB__NOWHERE || to == from) return;
    (void)ebb__emit(e, ebb__emit_is_ref(e, type) ? EBB__VM_MOVE_R : EBB__VM_MOVE_W, to, from, 0);
}

/* Strings never change, and a direct value has one owner. */
void ebb__emit_share(ebb__emitter *e, uint32_t type, uint32_t reg) {
    switch (ebb__emit_kind(e, type)) {
    case EBB__TY_LIST:
    case EBB__TY_MAP:
    case EBB__TY_TUPLE:
    case EBB__TY_RECORD:
    case EBB__TY_UNION: (void)ebb__emit(e, EBB__VM_SHARE, reg, 0, 0); break;
    default: break;
    }
}

/* Whether the value is new, so that nothing else refers to it. */
static bool is_fresh(const ebb__ir *x) {
    switch (x->op) {
    case EBB__OP_WIDEN: return is_fresh(x->args[0]);
    case EBB__OP_RECORD:
    case EBB__OP_STATE:
    case EBB__OP_TUPLE:
    case EBB__OP_LIST:
    case EBB__OP_MAP:
    case EBB__OP_ADD:
    case EBB__OP_KEYS:
    case EBB__OP_CALL: return true;
    default: return false;
    }
}

void ebb__emit_stored(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_into(e, x, to);
    if (to != EBB__NOWHERE && x->type != EBB__TY_NEVER && !is_fresh(x)) ebb__emit_share(e, x->type, to);
}

/* ---- where a value is ---- */

uint32_t ebb__emit_value(ebb__emitter *e, const ebb__ir *x) {
    if (x->op == EBB__OP_LOCAL) return e->slots[x->a];
    if (x->op == EBB__OP_AS_ROLE) return ebb__emit_value(e, x->args[0]);
    if (x->op == EBB__OP_SELF && ebb__emit_is_ref(e, x->type)) return ebb__emit_self(e);
    uint32_t to = ebb__emit_register(e, x->type);
    ebb__emit_into(e, x, to);
    return to;
}

/* Whether evaluating may assign to a variable. */
static bool assigns(const ebb__ir *x) {
    if (x->op == EBB__OP_BLOCK || x->op == EBB__OP_IF || x->op == EBB__OP_MATCH) return true;
    for (uint32_t i = 0; i < x->n; i++) {
        if (assigns(x->args[i])) return true;
    }
    return false;
}

uint32_t ebb__emit_first(ebb__emitter *e, const ebb__ir *x, const ebb__ir *second) {
    if (!assigns(second)) return ebb__emit_value(e, x);
    uint32_t to = ebb__emit_register(e, x->type);
    ebb__emit_stored(e, x, to);
    return to;
}

/* ---- operators ---- */

static ebb__vm_op arithmetic(const ebb__emitter *e, const ebb__ir *x) {
    uint8_t kind = ebb__emit_kind(e, x->args[0]->type);
    bool u = kind == EBB__TY_U64;
    switch (x->op) {
    case EBB__OP_ADD:
        if (kind == EBB__TY_LIST) return EBB__VM_LIST_JOIN;
        if (kind == EBB__TY_STRING || kind == EBB__TY_BYTES) return EBB__VM_BYTES_JOIN;
        return u ? EBB__VM_ADD_U : EBB__VM_ADD_I;
    case EBB__OP_SUB: return u ? EBB__VM_SUB_U : EBB__VM_SUB_I;
    case EBB__OP_MUL: return u ? EBB__VM_MUL_U : EBB__VM_MUL_I;
    case EBB__OP_DIV: return u ? EBB__VM_DIV_U : EBB__VM_DIV_I;
    case EBB__OP_REM: return u ? EBB__VM_REM_U : EBB__VM_REM_I;
    case EBB__OP_AND: return EBB__VM_AND;
    case EBB__OP_OR: return EBB__VM_OR;
    case EBB__OP_XOR: return EBB__VM_XOR;
    case EBB__OP_SHL: return EBB__VM_SHL;
    default: return u ? EBB__VM_SHR_U : EBB__VM_SHR_I;
    }
}

static ebb__vm_op comparison(const ebb__emitter *e, const ebb__ir *x) {
    uint32_t type = x->args[0]->type;
    uint8_t kind = ebb__emit_kind(e, type);
    bool ref = ebb__emit_is_ref(e, type), i = kind == EBB__TY_I64 || kind == EBB__TY_DURATION;
    switch (x->op) {
    case EBB__OP_EQ: return ref ? EBB__VM_EQ_R : EBB__VM_EQ_W;
    case EBB__OP_NE: return ref ? EBB__VM_NE_R : EBB__VM_NE_W;
    case EBB__OP_LT:
    case EBB__OP_GT: return ref ? EBB__VM_LT_R : i ? EBB__VM_LT_I : EBB__VM_LT_U;
    default: return ref ? EBB__VM_LE_R : i ? EBB__VM_LE_I : EBB__VM_LE_U;
    }
}

static void binary(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    bool compares = x->op >= EBB__OP_EQ && x->op <= EBB__OP_GE;
    uint32_t a = ebb__emit_first(e, x->args[0], x->args[1]), b = ebb__emit_value(e, x->args[1]);
    bool swap = x->op == EBB__OP_GT || x->op == EBB__OP_GE;
    e->span = x->span;
    (void)ebb__emit(e, compares ? comparison(e, x) : arithmetic(e, x), to, swap ? b : a, swap ? a : b);
    ebb__emit_end(e, mark);
}

static void unary(ebb__emitter *e, const ebb__ir *x, ebb__vm_op op, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t a = ebb__emit_value(e, x->args[0]);
    e->span = x->span;
    (void)ebb__emit(e, op, to, a, 0);
    ebb__emit_end(e, mark);
}

/* A u64 to an i64 may fail; a duration is one already. */
static void to_i64(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    bool u = ebb__emit_kind(e, x->args[0]->type) == EBB__TY_U64;
    if (u) unary(e, x, EBB__VM_TO_I, to);
    else ebb__emit_into(e, x->args[0], to);
}

static void logic(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_into(e, x->args[0], to);
    uint32_t skip = ebb__emit_jump(e, x->op == EBB__OP_AND_ALSO ? EBB__VM_JUMP_IFNOT : EBB__VM_JUMP_IF, to);
    ebb__emit_into(e, x->args[1], to);
    ebb__emit_here(e, skip);
}

/* ---- unions ---- */

void ebb__emit_widen(ebb__emitter *e, uint32_t from_type, uint32_t from, uint32_t to_type, uint32_t to) {
    if (ebb__emit_kind(e, from_type) == EBB__TY_UNIT) {
        (void)ebb__emit(e, EBB__VM_UNIT, to, 0, 0);
        ebb__emit_extra(e, EBB__TY_UNIT);
        from = to;
    } else if (!ebb__emit_is_ref(e, from_type)) {
        (void)ebb__emit(e, EBB__VM_BOX, to, from, 0);
        ebb__emit_extra(e, from_type);
        from = to;
    }
    (void)ebb__emit(e, EBB__VM_WIDEN, to, from, 0);
    ebb__emit_extra(e, to_type);
}

void ebb__emit_narrow(ebb__emitter *e, uint32_t from, uint32_t to_type, uint32_t to) {
    if (to == EBB__NOWHERE) return;
    if (ebb__emit_kind(e, to_type) == EBB__TY_UNIT) {
        ebb__emit_int(e, to, 0);
        return;
    }
    (void)ebb__emit(e, ebb__emit_is_ref(e, to_type) ? EBB__VM_CAST : EBB__VM_UNBOX, to, from, 0);
    ebb__emit_extra(e, to_type);
}

static void widen(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    const ebb__ir *from = x->args[0];
    if (from->type == EBB__TY_NEVER) {
        ebb__emit_into(e, from, EBB__NOWHERE);
        return;
    }
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t reg = 0;
    if (ebb__emit_is_ref(e, from->type)) ebb__emit_into(e, from, reg = to);
    else if (from->type == EBB__TY_UNIT) ebb__emit_into(e, from, EBB__NOWHERE);
    else reg = ebb__emit_value(e, from);
    e->span = x->span;
    ebb__emit_widen(e, from->type, reg, x->type, to);
    ebb__emit_end(e, mark);
}

/* ---- giving back ---- */

static uint32_t rest_of(const ebb__emitter *e, uint32_t type, bool errors) {
    const ebb__shape *s = &e->m->shapes[type];
    uint32_t n = 0, last = 0;
    if (s->kind != EBB__TY_UNION) return s->is_error == errors ? type : (uint32_t)EBB__TY_NEVER;
    for (uint32_t i = 0; i < s->n; i++) {
        if (e->m->shapes[s->of[i]].is_error != errors) continue;
        last = s->of[i];
        n++;
    }
    return n == 0 ? (uint32_t)EBB__TY_NEVER : n == 1 ? last : type;
}

/* A value of `type` as the function's result. The union `type` may have members that it is not: the cast knows. */
void ebb__emit_result(ebb__emitter *e, uint32_t type, uint32_t reg) {
    uint32_t result = e->fn->result;
    if (!ebb__emit_is_ref(e, result)) {
        (void)ebb__emit(e, EBB__VM_RETURN_W, reg, 0, 0);
        return;
    }
    ebb__emit_mark mark = ebb__emit_begin(e);
    if (type != result) {
        uint32_t to = ebb__emit_ref(e);
        bool narrow = ebb__emit_kind(e, type) == EBB__TY_UNION;
        if (narrow) ebb__emit_narrow(e, reg, result, to);
        else ebb__emit_widen(e, type, reg, result, to);
        reg = to;
    }
    (void)ebb__emit(e, EBB__VM_RETURN_R, reg, 0, 0);
    ebb__emit_end(e, mark);
}

static void give_back(ebb__emitter *e, const ebb__ir *x) {
    const ebb__ir *value = x->args[0];
    ebb__emit_mark mark = ebb__emit_begin(e);
    if (value->type == EBB__TY_NEVER) {
        ebb__emit_into(e, value, EBB__NOWHERE);
    } else {
        uint32_t reg = ebb__emit_value(e, value);
        e->span = x->span;
        if (!is_fresh(value)) ebb__emit_share(e, value->type, reg);
        ebb__emit_result(e, value->type, reg);
    }
    ebb__emit_end(e, mark);
}

/* An error leaves; then what is left goes on as the value. */
static void try(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    const ebb__ir *from = x->args[0];
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t reg = ebb__emit_value(e, from), good = 0;
    bool always = rest_of(e, from->type, false) == EBB__TY_NEVER;
    e->span = x->span;
    if (!always) {
        uint32_t flag = ebb__emit_word(e);
        (void)ebb__emit(e, EBB__VM_IS_ERROR, flag, reg, 0);
        good = ebb__emit_jump(e, EBB__VM_JUMP_IFNOT, flag);
    }
    ebb__emit_result(e, from->type, reg);
    if (!always) {
        ebb__emit_here(e, good);
        ebb__emit_narrow(e, reg, x->type, to);
    }
    ebb__emit_end(e, mark);
}

/* ---- records and calls ---- */

/* Evaluates into registers one behind the other, of each kind. */
static void gather(ebb__emitter *e, ebb__ir *const *args, uint32_t n, uint32_t *refs, uint32_t *words) {
    *refs = e->refs;
    *words = e->words;
    for (uint32_t i = 0; i < n; i++) (void)ebb__emit_register(e, args[i]->type);
    uint32_t ref = *refs, word = *words;
    for (uint32_t i = 0; i < n; i++)
        ebb__emit_stored(e, args[i], ebb__emit_is_ref(e, args[i]->type) ? ref++ : word++);
}

static void make(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t refs, words;
    if (e->m->shapes[x->type].constant != NULL) {
        (void)ebb__emit(e, EBB__VM_UNIT, to, 0, 0);
    } else {
        gather(e, x->args, x->n, &refs, &words);
        e->span = x->span;
        (void)ebb__emit(e, EBB__VM_MAKE, to, refs, words);
    }
    ebb__emit_extra(e, x->type);
    ebb__emit_end(e, mark);
}

/* The receiver of a method is borrowed or consumed as it stands: its fields change in place. */
static void receiver(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    if (x->op == EBB__OP_SELF) {
        ebb__emit_move(e, EBB__TY_ERROR, to, ebb__emit_self(e));
    } else if (x->op == EBB__OP_SELF_FIELD) {
        uint32_t slot = ebb__emit_field_slot(e, e->m->self_of[e->fn->id].state, x->a);
        (void)ebb__emit(e, EBB__VM_OWN_FIELD, to, ebb__emit_self(e), slot);
    } else {
        ebb__emit_into(e, x, to);
    }
}

static void call(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    bool method = x->fn->kind == EBB__FN_METHOD && x->n > 0;
    uint32_t self = method ? ebb__emit_ref(e) : 0, refs = e->refs, words = e->words;
    if (method) receiver(e, x->args[0], self);
    if (method) gather(e, x->args + 1, x->n - 1, &refs, &words);
    else gather(e, x->args, x->n, &refs, &words);
    e->span = x->span;
    bool ref = ebb__emit_is_ref(e, x->fn->result);
    if (to == EBB__NOWHERE) to = ebb__emit_register(e, x->fn->result);
    (void)ebb__emit(e, ref ? EBB__VM_CALL_R : EBB__VM_CALL_W, to, method ? self : refs, words);
    ebb__emit_extra(e, x->fn->id);
    ebb__emit_end(e, mark);
}

static void text(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t first = e->refs, n = x->n;
    if (n > EBB__REGISTERS) e->limit = "a string of more than 250 parts";
    for (uint32_t i = 0; i < n && e->limit == NULL; i++) (void)ebb__emit_ref(e);
    for (uint32_t i = 0; i < n; i++) {
        ebb__emit_mark part = ebb__emit_begin(e);
        const ebb__ir *arg = x->args[i];
        uint32_t at = first + i;
        if (arg->type == EBB__TY_STRING) {
            ebb__emit_into(e, arg, at);
        } else if (ebb__emit_is_ref(e, arg->type)) {
            (void)ebb__emit(e, EBB__VM_STR_R, at, ebb__emit_value(e, arg), 0);
        } else {
            (void)ebb__emit(e, EBB__VM_STR_W, at, ebb__emit_value(e, arg), 0);
            ebb__emit_extra(e, arg->type);
        }
        ebb__emit_end(e, part);
    }
    e->span = x->span;
    (void)ebb__emit(e, EBB__VM_TEXT, to, first, n);
    ebb__emit_end(e, mark);
}

static void str(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    const ebb__ir *arg = x->args[0];
    if (arg->type == EBB__TY_STRING) {
        ebb__emit_into(e, arg, to);
        return;
    }
    unary(e, x, ebb__emit_is_ref(e, arg->type) ? EBB__VM_STR_R : EBB__VM_STR_W, to);
    if (!ebb__emit_is_ref(e, arg->type)) ebb__emit_extra(e, arg->type);
}

/* ---- variables and fields ---- */

static void field(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    bool ref = ebb__emit_is_ref(e, x->type);
    uint32_t slot, from;
    if (x->op == EBB__OP_SELF_FIELD) {
        slot = ebb__emit_field_slot(e, e->m->self_of[e->fn->id].state, x->a);
        from = ebb__emit_self(e);
    } else {
        slot = ebb__emit_field_slot(e, x->args[0]->type, x->a);
        from = ebb__emit_value(e, x->args[0]);
    }
    e->span = x->span;
    (void)ebb__emit(e, ref ? EBB__VM_GET_R : EBB__VM_GET_W, to, from, slot);
    ebb__emit_end(e, mark);
}

static void set_local(ebb__emitter *e, const ebb__ir *x) {
    if (e->slots[x->a] == UINT16_MAX) e->slots[x->a] = (uint16_t)ebb__emit_register(e, e->fn->slots[x->a]);
    uint32_t to = e->slots[x->a];
    const ebb__ir *value = x->args[0];
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t temp = ebb__emit_register(e, value->type); /* the old value may be read */
    ebb__emit_stored(e, value, temp);
    ebb__emit_move(e, value->type, to, temp);
    ebb__emit_end(e, mark);
}

static void set_self_field(ebb__emitter *e, const ebb__ir *x) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    const ebb__ir *value = x->args[0];
    uint32_t slot = ebb__emit_field_slot(e, e->m->self_of[e->fn->id].state, x->a);
    uint32_t reg = ebb__emit_register(e, value->type);
    ebb__emit_stored(e, value, reg);
    e->span = x->span;
    (void)ebb__emit(e, ebb__emit_is_ref(e, value->type) ? EBB__VM_SET_R : EBB__VM_SET_W, ebb__emit_self(e),
                    reg, slot);
    ebb__emit_end(e, mark);
}

static void block(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    bool value = !(x->flags & EBB__IR_DISCARD) && x->n > 0;
    for (uint32_t i = 0; i < x->n; i++) {
        bool last = value && i + 1 == x->n;
        if (x->args[i]->op == EBB__OP_LET) ebb__emit_let(e, x->args[i]);
        else if (last) ebb__emit_stored(e, x->args[i], to);
        else ebb__emit_into(e, x->args[i], EBB__NOWHERE);
    }
    if (!value && x->type == EBB__TY_UNIT && to != EBB__NOWHERE) ebb__emit_int(e, to, 0);
    ebb__emit_end(e, mark);
}

/* ---- all ---- */

static void jump(ebb__emitter *e, const ebb__ir *x) {
    if (e->loop != NULL) ebb__emit_chain(e, x->op == EBB__OP_BREAK ? &e->loop->breaks : &e->loop->continues);
}

static void machine_of_self(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    if (ebb__emit_is_ref(e, x->type)) ebb__emit_move(e, x->type, to, ebb__emit_self(e));
    else (void)ebb__emit(e, EBB__VM_SELF, to, 0, 0);
}

/* Those that give no value. True: it was one. */
static bool statement(ebb__emitter *e, const ebb__ir *x) {
    switch (x->op) {
    case EBB__OP_SET_LOCAL: set_local(e, x); return true;
    case EBB__OP_SET_SELF_FIELD: set_self_field(e, x); return true;
    case EBB__OP_SET_PLACE:
    case EBB__OP_PUSH: ebb__emit_set_place(e, x); return true;
    case EBB__OP_LET: ebb__emit_let(e, x); return true;
    case EBB__OP_WHILE: ebb__emit_while(e, x); return true;
    case EBB__OP_FOR_RANGE: ebb__emit_range(e, x); return true;
    case EBB__OP_FOR_EACH: ebb__emit_each(e, x); return true;
    case EBB__OP_BREAK:
    case EBB__OP_CONTINUE: jump(e, x); return true;
    case EBB__OP_RETURN: give_back(e, x); return true;
    default: return false;
    }
}

static void into(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    switch (x->op) {
    case EBB__OP_UNIT: ebb__emit_int(e, to, 0); break;
    case EBB__OP_INT:
    case EBB__OP_BOOL: ebb__emit_int(e, to, x->i); break;
    case EBB__OP_STRING: ebb__emit_constant(e, to, EBB__TY_STRING, x->bytes, x->n_bytes); break;
    case EBB__OP_BYTES: ebb__emit_constant(e, to, EBB__TY_BYTES, x->bytes, x->n_bytes); break;
    case EBB__OP_LOCAL: ebb__emit_move(e, x->type, to, e->slots[x->a]); break;
    case EBB__OP_SELF: machine_of_self(e, x, to); break;
    case EBB__OP_SELF_FIELD:
    case EBB__OP_FIELD: field(e, x, to); break;
    case EBB__OP_INDEX: ebb__emit_index(e, x, to); break;
    case EBB__OP_NEG: unary(e, x, EBB__VM_NEG, to); break;
    case EBB__OP_NOT: unary(e, x, EBB__VM_NOT, to); break;
    case EBB__OP_BIT_NOT: unary(e, x, EBB__VM_BIT_NOT, to); break;
    case EBB__OP_TO_I64: to_i64(e, x, to); break;
    case EBB__OP_TO_U64: unary(e, x, EBB__VM_TO_U, to); break;
    case EBB__OP_AND_ALSO:
    case EBB__OP_OR_ELSE: logic(e, x, to); break;
    case EBB__OP_WIDEN: widen(e, x, to); break;
    case EBB__OP_AS_ROLE: ebb__emit_into(e, x->args[0], to); break;
    case EBB__OP_RECORD:
    case EBB__OP_STATE:
    case EBB__OP_TUPLE: make(e, x, to); break;
    case EBB__OP_TEXT: text(e, x, to); break;
    case EBB__OP_STR: str(e, x, to); break;
    case EBB__OP_CALL: call(e, x, to); break;
    case EBB__OP_LIST:
    case EBB__OP_MAP:
    case EBB__OP_LEN:
    case EBB__OP_HAS:
    case EBB__OP_GET:
    case EBB__OP_REMOVE:
    case EBB__OP_KEYS: ebb__emit_collection(e, x, to); break;
    default:
        if (x->op >= EBB__OP_ADD && x->op <= EBB__OP_GE) binary(e, x, to);
        else ebb__emit_effect(e, x, to);
    }
}

/* What gives a value gets a register for it, needed or not, unless its branches can do without. */
void ebb__emit_into(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    if (e->oom || e->limit != NULL) return;
    e->span = x->span;
    switch (x->op) {
    case EBB__OP_BLOCK: block(e, x, to); return;
    case EBB__OP_IF: ebb__emit_if(e, x, to); return;
    case EBB__OP_MATCH: ebb__emit_match(e, x, to); return;
    case EBB__OP_TRY: try(e, x, to); return;
    case EBB__OP_CALL:
        if (to == EBB__NOWHERE) {
            call(e, x, to);
            return;
        }
        break;
    default: break;
    }
    if (statement(e, x)) {
        if (to != EBB__NOWHERE && x->type == EBB__TY_UNIT) ebb__emit_int(e, to, 0);
        return;
    }
    ebb__emit_mark mark = ebb__emit_begin(e);
    if (to == EBB__NOWHERE) to = ebb__emit_register(e, x->type);
    into(e, x, to);
    ebb__emit_end(e, mark);
}
