/* lang/value_compare.c - comparing values of one type. */
#include "lang/host.h"

#include <string.h>

/* WORK: objects that one comparison may visit. A unit of the budget pays for A_UNIT of them, or for so many pieces of
 * BYTES of a string, so that comparing is no way around the budget. */
enum { WORK = 1 << 20, A_UNIT = 64, BYTES = 512 };

typedef struct comparison {
    ebb__run *run;
    uint32_t work;
} comparison;

static int order_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int order_i64(uint64_t a, uint64_t b) {
    return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
}

static bool pay(ebb__run *run, uint32_t work) {
    run->budget -= work / A_UNIT;
    return run->budget >= 0 || work < A_UNIT || ebb__run_trap(run, EBB__TRAP_BUDGET, (ebb__span){0});
}

static int order_bytes(const ebb__object *a, const ebb__object *b) {
    uint32_t n = a->n < b->n ? a->n : b->n;
    int order = n == 0 ? 0 : memcmp(ebb__object_bytes(a), ebb__object_bytes(b), n);
    return order != 0 ? order : order_u64(a->n, b->n);
}

static bool compare(comparison *c, uint32_t type, ebb__value a, ebb__value b, uint32_t depth, int *out);

static bool compare_fields(comparison *c, const ebb__shape *s, ebb__object *a, ebb__object *b, uint32_t depth,
                           int *out) {
    *out = 0;
    for (uint32_t i = 0; i < s->n && *out == 0; i++) {
        if (!compare(c, s->of[i], a->slots[s->at[i]], b->slots[s->at[i]], depth, out)) return false;
    }
    return true;
}

static bool compare_lists(comparison *c, const ebb__shape *s, ebb__object *a, ebb__object *b, uint32_t depth,
                          int *out) {
    uint32_t n = ebb__array_len(a), m = ebb__array_len(b);
    *out = 0;
    for (uint32_t i = 0; i < n && i < m && *out == 0; i++) {
        if (!compare(c, s->of[0], *ebb__array_at(a, i), *ebb__array_at(b, i), depth, out)) return false;
    }
    if (*out == 0) *out = order_u64(n, m);
    return true;
}

static bool compare_maps(comparison *c, const ebb__shape *s, ebb__object *a, ebb__object *b, uint32_t depth,
                         int *out) {
    uint32_t n = ebb__dict_len(c->run, a), m = ebb__dict_len(c->run, b);
    *out = 0;
    for (uint32_t i = 0; i < n && i < m && *out == 0; i++) {
        if (!compare(c, s->of[0], *ebb__dict_key(c->run, a, i), *ebb__dict_key(c->run, b, i), depth, out))
            return false;
        if (*out == 0 &&
            !compare(c, s->of[1], *ebb__dict_value(c->run, a, i), *ebb__dict_value(c->run, b, i), depth, out))
            return false;
    }
    if (*out == 0) *out = order_u64(n, m);
    return true;
}

static bool compare_objects(comparison *c, uint32_t type, ebb__object *a, ebb__object *b, uint32_t depth,
                            int *out) {
    const ebb__shape *s = &c->run->shapes[type];
    if (depth == 0) return ebb__run_trap(c->run, EBB__TRAP_DEPTH, (ebb__span){0});
    if (c->work++ > WORK) return ebb__run_trap(c->run, EBB__TRAP_BUDGET, (ebb__span){0});
    if (a == b) {
        *out = 0;
        return true;
    }
    if (a->type != b->type) {
        *out = order_u64(a->type, b->type);
        return true;
    }
    switch (s->kind) {
    case EBB__TY_STRING:
    case EBB__TY_BYTES:
        c->work += (a->n < b->n ? a->n : b->n) / BYTES;
        *out = order_bytes(a, b);
        return true;
    case EBB__TY_LIST: return compare_lists(c, s, a, b, depth - 1, out);
    case EBB__TY_MAP: return compare_maps(c, s, a, b, depth - 1, out);
    case EBB__TY_RECORD:
    case EBB__TY_TUPLE:
    case EBB__TY_STATE: return compare_fields(c, s, a, b, depth - 1, out);
    default: return compare(c, type, a->slots[0], b->slots[0], depth - 1, out); /* a boxed word */
    }
}

static bool compare(comparison *c, uint32_t type, ebb__value a, ebb__value b, uint32_t depth, int *out) {
    switch (c->run->shapes[type].kind) {
    case EBB__TY_I64:
    case EBB__TY_DURATION: *out = order_i64(a.word, b.word); return true;
    default: *out = order_u64(a.word, b.word); return true;
    case EBB__TY_UNION: type = a.ref->type; break;
    case EBB__TY_STRING:
    case EBB__TY_BYTES:
    case EBB__TY_LIST:
    case EBB__TY_MAP:
    case EBB__TY_TUPLE:
    case EBB__TY_RECORD:
    case EBB__TY_STATE: break;
    }
    return compare_objects(c, type, a.ref, b.ref, depth, out);
}

bool ebb__value_compare(ebb__run *run, uint32_t type, ebb__value a, ebb__value b, int *out) {
    comparison c = {run, 0};
    *out = 0;
    return compare(&c, type, a, b, EBB__VALUE_DEPTH, out) && pay(run, c.work);
}

bool ebb__object_compare(ebb__run *run, ebb__object *a, ebb__object *b, int *out) {
    comparison c = {run, 0};
    *out = 0;
    return compare_objects(&c, a->type, a, b, EBB__VALUE_DEPTH, out) && pay(run, c.work);
}

bool ebb__array_has(ebb__run *run, ebb__object *list, ebb__value x, uint64_t *out) {
    uint32_t type = run->shapes[list->type].of[0], n = ebb__array_len(list);
    bool ref = run->shapes[type].is_ref;
    *out = 0;
    for (uint32_t i = 0; i < n && !*out; i++) {
        int order = 0;
        if (!ref) order = ebb__array_at(list, i)->word != x.word;
        else if (!ebb__value_compare(run, type, *ebb__array_at(list, i), x, &order)) return false;
        *out = order == 0;
    }
    return pay(run, n);
}
