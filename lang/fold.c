/* lang/fold.c - arithmetic on constants, with the traps of the machine. */
#include "lang/fold.h"

/* Both give NULL, or why the operation traps. */
static const char *fold_i64(uint8_t op, int64_t x, int64_t y, int64_t *out) {
    const char *overflow = "the result is out of the range of an i64";
    switch (op) {
    case EBB__OP_NEG: return __builtin_sub_overflow((int64_t)0, x, out) ? overflow : NULL;
    case EBB__OP_ADD: return __builtin_add_overflow(x, y, out) ? overflow : NULL;
    case EBB__OP_SUB: return __builtin_sub_overflow(x, y, out) ? overflow : NULL;
    case EBB__OP_MUL: *out = (int64_t)((uint64_t)x * (uint64_t)y); return NULL; /* the caller has looked */
    case EBB__OP_DIV:
    case EBB__OP_REM:
        if (y == 0) return "a division by 0";
        if (x == INT64_MIN && y == -1) return overflow;
        *out = op == EBB__OP_DIV ? x / y : x % y;
        return NULL;
    case EBB__OP_SHR: *out = x < 0 ? (int64_t) ~(~(uint64_t)x >> y) : x >> y; return NULL;
    default: return "";
    }
}

static const char *fold_u64(uint8_t op, uint64_t x, uint64_t y, uint64_t *out) {
    const char *overflow = "the result is out of the range of a u64";
    switch (op) {
    case EBB__OP_ADD: return __builtin_add_overflow(x, y, out) ? overflow : NULL;
    case EBB__OP_SUB: return __builtin_sub_overflow(x, y, out) ? overflow : NULL;
    case EBB__OP_MUL: *out = x * y; return NULL; /* the caller has looked */
    case EBB__OP_DIV:
    case EBB__OP_REM:
        if (y == 0) return "a division by 0";
        *out = op == EBB__OP_DIV ? x / y : x % y;
        return NULL;
    case EBB__OP_SHR: *out = x >> y; return NULL;
    default: return "";
    }
}

/* What is the same for both. */
static bool fold_bits(uint8_t op, uint64_t x, uint64_t y, uint64_t *out) {
    switch (op) {
    case EBB__OP_BIT_NOT: *out = ~x; return true;
    case EBB__OP_AND: *out = x & y; return true;
    case EBB__OP_OR: *out = x | y; return true;
    case EBB__OP_XOR: *out = x ^ y; return true;
    case EBB__OP_SHL: *out = x << y; return true;
    default: return false;
    }
}

/* Whether a product of magnitudes does not fit in 64 bits; by halves, for a compiler turns a test by division into a
 * 128-bit product, and a wasm module has no function for that. */
static bool product_overflows(uint64_t x, uint64_t y) {
    uint64_t low = (x & UINT32_MAX) * (y & UINT32_MAX), high = x >> 32, cross;
    if (high != 0 && y >> 32 != 0) return true;
    cross = high * (y & UINT32_MAX) + (y >> 32) * (x & UINT32_MAX);
    return cross >> 32 != 0 || (cross << 32) > UINT64_MAX - low;
}

static uint64_t magnitude(int64_t x) {
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static bool mul_overflows(int64_t x, int64_t y) {
    uint64_t most = (uint64_t)INT64_MAX + ((x < 0) != (y < 0));
    return product_overflows(magnitude(x), magnitude(y)) || magnitude(x) * magnitude(y) > most;
}

static bool is_number(ebb__type t) {
    return t == EBB__TY_I64 || t == EBB__TY_U64 || t == EBB__TY_DURATION;
}

ebb__ir *ebb__fold(ebb__body *b, ebb__ir *x) {
    if (x->n == 0 || !is_number(x->type)) return x;
    const ebb__ir *l = x->args[0], *r = x->args[x->n - 1];
    bool shift = x->op == EBB__OP_SHL || x->op == EBB__OP_SHR;
    const char *why = NULL;
    if (r->op != EBB__OP_INT) return x;
    if (shift && (uint64_t)r->i >= 64) why = "a shift by 64 or more";
    else if (l->op != EBB__OP_INT && !(r->i == 0 && (x->op == EBB__OP_DIV || x->op == EBB__OP_REM))) return x;
    int64_t i = 0;
    uint64_t u = 0, left = l->op == EBB__OP_INT ? (uint64_t)l->i : 1;
    if (why == NULL && fold_bits(x->op, left, (uint64_t)r->i, &u)) i = (int64_t)u;
    else if (why == NULL && x->type == EBB__TY_U64 && x->op == EBB__OP_MUL &&
             product_overflows(left, (uint64_t)r->i))
        why = "the result is out of the range of a u64";
    else if (why == NULL && x->type == EBB__TY_U64)
        why = fold_u64(x->op, left, (uint64_t)r->i, &u), i = (int64_t)u;
    else if (why == NULL && x->op == EBB__OP_MUL && mul_overflows((int64_t)left, r->i))
        why = "the result is out of the range of an i64";
    else if (why == NULL) why = fold_i64(x->op, (int64_t)left, r->i, &i);
    if (why != NULL && why[0] == 0) return x;
    if (why != NULL) {
        (void)ebb__diag_report(b->c, EBB__E0312, x->span, "this always traps: %s", why);
        return ebb__ir_invalid(b, x->span);
    }
    ebb__ir *folded = ebb__ir_new(b, EBB__OP_INT, x->type, x->span, 0);
    folded->i = i;
    return folded;
}
