/* lang/emit_place.c - places (what is assigned to through a variable or a field of self), lists, maps, bytes.
 *
 * A place is a path: a variable or a field of self, then fields and elements. To change it, each object on the path is
 * owned from the outside in; then the last one is set. Keys on the path are evaluated before, once each. */
#include "lang/emit.h"

#include <assert.h>

#include "lang/check.h"

enum { PATH_MAX_KEYS = 16 };

typedef struct path {
    const ebb__ir *at[PATH_MAX_KEYS]; /* INDEX */
    uint32_t key[PATH_MAX_KEYS];      /* the register of its key */
    uint32_t n;
} path;

uint32_t ebb__emit_field_slot(ebb__emitter *e, uint32_t type, uint32_t field) {
    const ebb__image *m = e->m;
    uint32_t machine = m->self_of[e->fn->id].machine;
    for (uint32_t i = 0; type == 0 && i < m->n_shapes; i++) {
        if (m->shapes[i].kind == EBB__TY_STATE && m->shapes[i].typestate + 1 == machine) type = i;
    }
    uint32_t slot = field < m->shapes[type].n ? m->shapes[type].at[field] : 0;
    assert(slot <= UINT8_MAX); /* there are EBB__FIELDS_MAX */
    return slot;
}

static uint32_t self_slot(ebb__emitter *e, const ebb__ir *x) {
    return ebb__emit_field_slot(e, e->m->self_of[e->fn->id].state, x->a);
}

/* ---- paths ---- */

static void evaluate_keys(ebb__emitter *e, const ebb__ir *x, path *p) {
    if (x->op != EBB__OP_FIELD && x->op != EBB__OP_INDEX) return;
    evaluate_keys(e, x->args[0], p);
    if (x->op != EBB__OP_INDEX) return;
    if (p->n == PATH_MAX_KEYS) {
        e->limit = "a place of more than 16 elements of elements";
        return;
    }
    p->at[p->n] = x;
    p->key[p->n] = ebb__emit_register(e, x->args[1]->type);
    ebb__emit_into(e, x->args[1], p->key[p->n]);
    p->n++;
}

static uint32_t key_of(const path *p, const ebb__ir *x) {
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->at[i] == x) return p->key[i];
    }
    return 0;
}

static bool is_map(const ebb__emitter *e, const ebb__ir *x) {
    return ebb__emit_kind(e, x->type) == EBB__TY_MAP;
}

static bool key_is_ref(const ebb__emitter *e, const ebb__ir *map) {
    return ebb__emit_is_ref(e, e->m->shapes[map->type].of[0]);
}

/* The register of the object at the place, which may be changed. */
static uint32_t own(ebb__emitter *e, const ebb__ir *x, const path *p) {
    uint32_t base, to;
    if (x->op == EBB__OP_LOCAL) {
        (void)ebb__emit(e, EBB__VM_OWN, e->slots[x->a], 0, 0);
        return e->slots[x->a];
    }
    if (x->op == EBB__OP_SELF_FIELD) {
        to = ebb__emit_ref(e);
        (void)ebb__emit(e, EBB__VM_OWN_FIELD, to, ebb__emit_self(e), self_slot(e, x));
        return to;
    }
    base = own(e, x->args[0], p);
    to = ebb__emit_ref(e);
    if (x->op == EBB__OP_FIELD) {
        (void)ebb__emit(e, EBB__VM_OWN_FIELD, to, base, ebb__emit_field_slot(e, x->args[0]->type, x->a));
        return to;
    }
    ebb__vm_op op = !is_map(e, x->args[0])      ? EBB__VM_LIST_OWN
                    : key_is_ref(e, x->args[0]) ? EBB__VM_MAP_OWN_R
                                                : EBB__VM_MAP_OWN_W;
    (void)ebb__emit(e, op, to, base, key_of(p, x));
    return to;
}

static void store(ebb__emitter *e, const ebb__ir *x, const path *p, uint32_t reg);

static void store_element(ebb__emitter *e, const ebb__ir *x, const path *p, uint32_t reg) {
    bool ref = ebb__emit_is_ref(e, x->type);
    uint32_t base = own(e, x->args[0], p), key = key_of(p, x);
    if (!is_map(e, x->args[0])) {
        (void)ebb__emit(e, ref ? EBB__VM_LIST_SET_R : EBB__VM_LIST_SET_W, base, key, reg);
        return;
    }
    bool key_ref = key_is_ref(e, x->args[0]);
    (void)ebb__emit(e,
                    key_ref ? (ref ? EBB__VM_MAP_SET_RR : EBB__VM_MAP_SET_RW)
                            : (ref ? EBB__VM_MAP_SET_WR : EBB__VM_MAP_SET_WW),
                    base, key, reg);
    store(e, x->args[0], p, base);
}

/* Puts the value into the place. */
static void store(ebb__emitter *e, const ebb__ir *x, const path *p, uint32_t reg) {
    bool ref = ebb__emit_is_ref(e, x->type);
    if (x->op == EBB__OP_LOCAL) {
        ebb__emit_move(e, x->type, e->slots[x->a], reg);
    } else if (x->op == EBB__OP_SELF_FIELD) {
        (void)ebb__emit(e, ref ? EBB__VM_SET_R : EBB__VM_SET_W, ebb__emit_self(e), reg, self_slot(e, x));
    } else if (x->op == EBB__OP_FIELD) {
        uint32_t base = own(e, x->args[0], p);
        (void)ebb__emit(e, ref ? EBB__VM_SET_R : EBB__VM_SET_W, base, reg,
                        ebb__emit_field_slot(e, x->args[0]->type, x->a));
    } else {
        store_element(e, x, p, reg);
    }
}

void ebb__emit_set_place(ebb__emitter *e, const ebb__ir *x) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    path p = {.n = 0};
    const ebb__ir *place = x->args[0], *value = x->args[1];
    evaluate_keys(e, place, &p);
    uint32_t reg = ebb__emit_register(e, value->type);
    ebb__emit_stored(e, value, reg);
    e->span = x->span;
    if (x->op == EBB__OP_PUSH) {
        uint32_t list = own(e, place, &p);
        (void)ebb__emit(e, ebb__emit_is_ref(e, value->type) ? EBB__VM_PUSH_R : EBB__VM_PUSH_W, list, reg, 0);
        reg = list;
    }
    store(e, place, &p, reg);
    ebb__emit_end(e, mark);
}

static void remove_key(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    path p = {.n = 0};
    evaluate_keys(e, x->args[0], &p);
    uint32_t key = ebb__emit_value(e, x->args[1]);
    uint32_t map = own(e, x->args[0], &p);
    e->span = x->span;
    (void)ebb__emit(e, key_is_ref(e, x->args[0]) ? EBB__VM_MAP_REMOVE_R : EBB__VM_MAP_REMOVE_W, to, map, key);
}

/* ---- elements ---- */

static void get_element(ebb__emitter *e, const ebb__ir *of, uint32_t base, uint32_t key, uint32_t type,
                        uint32_t to) {
    bool ref = ebb__emit_is_ref(e, type);
    ebb__vm_op op = EBB__VM_BYTES_AT;
    uint8_t kind = ebb__emit_kind(e, of->type);
    if (kind == EBB__TY_LIST) op = ref ? EBB__VM_LIST_R : EBB__VM_LIST_W;
    else if (kind == EBB__TY_MAP && key_is_ref(e, of)) op = ref ? EBB__VM_MAP_RR : EBB__VM_MAP_RW;
    else if (kind == EBB__TY_MAP) op = ref ? EBB__VM_MAP_WR : EBB__VM_MAP_WW;
    (void)ebb__emit(e, op, to, base, key);
}

void ebb__emit_index(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t base = ebb__emit_first(e, x->args[0], x->args[1]), key = ebb__emit_value(e, x->args[1]);
    e->span = x->span;
    get_element(e, x->args[0], base, key, x->type, to);
    ebb__emit_end(e, mark);
}

static void has(ebb__emitter *e, const ebb__ir *of, uint32_t base, uint32_t key, uint32_t to) {
    bool map = is_map(e, of), ref = ebb__emit_is_ref(e, e->m->shapes[of->type].of[0]);
    (void)ebb__emit(e,
                    map ? (ref ? EBB__VM_MAP_HAS_R : EBB__VM_MAP_HAS_W)
                        : (ref ? EBB__VM_LIST_HAS_R : EBB__VM_LIST_HAS_W),
                    to, base, key);
}

/* The element, or None. */
static void get(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    const ebb__ir *of = x->args[0];
    const ebb__shape *s = &e->m->shapes[of->type];
    uint32_t type = s->of[s->kind == EBB__TY_MAP], flag = ebb__emit_word(e), none = e->m->lang->check->none;
    uint32_t base = ebb__emit_first(e, of, x->args[1]), key = ebb__emit_value(e, x->args[1]),
             found = ebb__emit_register(e, type);
    e->span = x->span;
    if (s->kind == EBB__TY_MAP) {
        has(e, of, base, key, flag);
    } else {
        uint32_t len = ebb__emit_word(e);
        (void)ebb__emit(e, EBB__VM_LIST_LEN, len, base, 0);
        (void)ebb__emit(e, EBB__VM_LT_U, flag, key, len);
    }
    uint32_t no = ebb__emit_jump(e, EBB__VM_JUMP_IFNOT, flag);
    get_element(e, of, base, key, type, found);
    ebb__emit_widen(e, type, found, x->type, to);
    uint32_t done = ebb__emit_jump(e, EBB__VM_JUMP, 0);
    ebb__emit_here(e, no);
    (void)ebb__emit(e, EBB__VM_UNIT, to, 0, 0);
    ebb__emit_extra(e, none);
    (void)ebb__emit(e, EBB__VM_WIDEN, to, to, 0);
    ebb__emit_extra(e, x->type);
    ebb__emit_here(e, done);
}

/* ---- literals ---- */

static void list(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    (void)ebb__emit(e, EBB__VM_LIST, to, 0, 0);
    ebb__emit_extra(e, x->type);
    for (uint32_t i = 0; i < x->n; i++) {
        ebb__emit_mark mark = ebb__emit_begin(e);
        uint32_t reg = ebb__emit_register(e, x->args[i]->type);
        ebb__emit_stored(e, x->args[i], reg);
        (void)ebb__emit(e, ebb__emit_is_ref(e, x->args[i]->type) ? EBB__VM_PUSH_R : EBB__VM_PUSH_W, to, reg,
                        0);
        ebb__emit_end(e, mark);
    }
}

static void map(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    (void)ebb__emit(e, EBB__VM_MAP, to, 0, 0);
    ebb__emit_extra(e, x->type);
    for (uint32_t i = 0; i + 1 < x->n; i += 2) {
        ebb__emit_mark mark = ebb__emit_begin(e);
        bool key_ref = ebb__emit_is_ref(e, x->args[i]->type), ref = ebb__emit_is_ref(e, x->args[i + 1]->type);
        uint32_t key = ebb__emit_register(e, x->args[i]->type),
                 value = ebb__emit_register(e, x->args[i + 1]->type);
        ebb__emit_into(e, x->args[i], key);
        ebb__emit_stored(e, x->args[i + 1], value);
        (void)ebb__emit(e,
                        key_ref ? (ref ? EBB__VM_MAP_SET_RR : EBB__VM_MAP_SET_RW)
                                : (ref ? EBB__VM_MAP_SET_WR : EBB__VM_MAP_SET_WW),
                        to, key, value);
        ebb__emit_end(e, mark);
    }
}

static void len(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    uint8_t kind = ebb__emit_kind(e, x->args[0]->type);
    (void)ebb__emit(e,
                    kind == EBB__TY_LIST  ? EBB__VM_LIST_LEN
                    : kind == EBB__TY_MAP ? EBB__VM_MAP_LEN
                                          : EBB__VM_BYTES_LEN,
                    to, ebb__emit_value(e, x->args[0]), 0);
}

void ebb__emit_collection(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    switch (x->op) {
    case EBB__OP_LIST: list(e, x, to); break;
    case EBB__OP_MAP: map(e, x, to); break;
    case EBB__OP_LEN: len(e, x, to); break;
    case EBB__OP_GET: get(e, x, to); break;
    case EBB__OP_REMOVE: remove_key(e, x, to); break;
    case EBB__OP_KEYS:
        (void)ebb__emit(e, EBB__VM_MAP_KEYS, to, ebb__emit_value(e, x->args[0]), 0);
        ebb__emit_extra(e, x->type);
        break;
    default: {
        uint32_t base = ebb__emit_first(e, x->args[0], x->args[1]), key = ebb__emit_value(e, x->args[1]);
        has(e, x->args[0], base, key, to);
    }
    }
    ebb__emit_end(e, mark);
}
