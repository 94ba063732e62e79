/* lang/emit_branch.c - branches, loops and patterns. */
#include "lang/emit.h"

#include "lang/check.h"

/* ---- if ---- */

static void branch(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    if (to != EBB__NOWHERE && x->type != EBB__TY_NEVER) ebb__emit_stored(e, x, to);
    else ebb__emit_into(e, x, EBB__NOWHERE);
}

void ebb__emit_if(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    uint32_t done = 0, i = 0;
    for (; i + 1 < x->n; i += 2) {
        ebb__emit_mark mark = ebb__emit_begin(e);
        uint32_t next = ebb__emit_jump(e, EBB__VM_JUMP_IFNOT, ebb__emit_value(e, x->args[i]));
        ebb__emit_end(e, mark);
        branch(e, x->args[i + 1], x->n % 2 == 1 ? to : EBB__NOWHERE);
        if (x->args[i + 1]->type != EBB__TY_NEVER) ebb__emit_chain(e, &done);
        ebb__emit_here(e, next);
    }
    if (i < x->n) branch(e, x->args[i], to);
    ebb__emit_chain_here(e, done);
    if (x->n % 2 == 0 && to != EBB__NOWHERE) ebb__emit_int(e, to, 0);
}

/* ---- patterns ---- */

static void bind(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg) {
    uint32_t to = e->slots[p->slot] = (uint16_t)ebb__emit_register(e, p->type);
    ebb__emit_move(e, p->type, to, reg);
    ebb__emit_share(e, p->type, to);
}

/* The flag is in a word: goes on if it is set. */
static void need(ebb__emitter *e, uint32_t flag, uint32_t *fails) {
    uint32_t on = ebb__emit_jump(e, EBB__VM_JUMP_IF, flag);
    ebb__emit_chain(e, fails);
    ebb__emit_here(e, on);
}

static void test(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg, uint32_t *fails) {
    uint32_t flag = ebb__emit_word(e);
    (void)ebb__emit(e, EBB__VM_IS, flag, reg, 0);
    ebb__emit_extra(e, p->member);
    need(e, flag, fails);
    if (p->n == 0 || p->of[0]->op == EBB__PAT_ANY) return;
    uint32_t member = ebb__emit_register(e, p->member);
    ebb__emit_narrow(e, reg, p->member, member);
    ebb__emit_pattern(e, p->of[0], member, fails);
}

static void equal(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg, uint32_t *fails) {
    uint32_t flag = ebb__emit_word(e), value = ebb__emit_value(e, p->value);
    (void)ebb__emit(e, ebb__emit_is_ref(e, p->type) ? EBB__VM_EQ_R : EBB__VM_EQ_W, flag, reg, value);
    need(e, flag, fails);
}

static void parts(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg, uint32_t *fails) {
    for (uint32_t i = 0; i < p->n; i++) {
        const ebb__ir_pattern *of = p->of[i];
        if (of->op == EBB__PAT_ANY) continue;
        uint32_t type = e->m->shapes[p->type].of[i], part = ebb__emit_register(e, type);
        (void)ebb__emit(e, ebb__emit_is_ref(e, type) ? EBB__VM_GET_R : EBB__VM_GET_W, part, reg,
                        ebb__emit_field_slot(e, p->type, i));
        ebb__emit_pattern(e, of, part, fails);
    }
}

void ebb__emit_pattern(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg, uint32_t *fails) {
    switch (p->op) {
    case EBB__PAT_BIND: bind(e, p, reg); break;
    case EBB__PAT_IS: test(e, p, reg, fails); break;
    case EBB__PAT_EQUAL: equal(e, p, reg, fails); break;
    case EBB__PAT_TUPLE:
    case EBB__PAT_RECORD: parts(e, p, reg, fails); break;
    default: break;
    }
}

/* ---- match and let ---- */

static void arm(ebb__emitter *e, const ebb__ir *x, uint32_t reg, uint32_t to, uint32_t *done) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    uint32_t fails = 0;
    ebb__emit_pattern(e, x->pattern, reg, &fails);
    if (x->n == 2) need(e, ebb__emit_value(e, x->args[1]), &fails);
    branch(e, x->args[0], to);
    if (x->args[0]->type != EBB__TY_NEVER) ebb__emit_chain(e, done);
    ebb__emit_chain_here(e, fails);
    ebb__emit_end(e, mark);
}

void ebb__emit_match(ebb__emitter *e, const ebb__ir *x, uint32_t to) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    const ebb__ir *value = x->args[0];
    uint32_t done = 0, reg = e->slots[x->a] = (uint16_t)ebb__emit_register(e, value->type);
    ebb__emit_stored(e, value, reg);
    for (uint32_t i = 1; i < x->n; i++) arm(e, x->args[i], reg, to, &done);
    (void)ebb__emit(e, EBB__VM_UNREACHABLE, 0, 0, 0); /* the arms cover the type */
    ebb__emit_chain_here(e, done);
    ebb__emit_end(e, mark);
}

void ebb__emit_let(ebb__emitter *e, const ebb__ir *x) {
    const ebb__ir *value = x->args[0];
    const ebb__ir_pattern *p = x->pattern;
    if (value->type == EBB__TY_NEVER) {
        ebb__emit_into(e, value, EBB__NOWHERE);
        return;
    }
    uint32_t reg = ebb__emit_register(e, value->type), fails = 0;
    ebb__emit_stored(e, value, reg);
    if (p->op == EBB__PAT_BIND) {
        e->slots[p->slot] = (uint16_t)reg;
        return;
    }
    ebb__emit_pattern(e, p, reg, &fails);
    if (fails == 0) return;
    uint32_t on = ebb__emit_jump(e, EBB__VM_JUMP, 0);
    ebb__emit_chain_here(e, fails);
    if (x->n > 1) ebb__emit_into(e, x->args[1], EBB__NOWHERE);
    (void)ebb__emit(e, EBB__VM_UNREACHABLE, 0, 0, 0);
    ebb__emit_here(e, on);
}

/* ---- loops ---- */

static void begin_loop(ebb__emitter *e, ebb__emit_loop *loop) {
    *loop = (ebb__emit_loop){.outer = e->loop};
    e->loop = loop;
}

static void end_loop(ebb__emitter *e, ebb__emit_loop *loop, uint32_t head) {
    ebb__emit_back(e, head);
    ebb__emit_chain_here(e, loop->breaks);
    e->loop = loop->outer;
}

void ebb__emit_while(ebb__emitter *e, const ebb__ir *x) {
    ebb__emit_loop loop;
    const ebb__ir *test_of = x->args[0];
    begin_loop(e, &loop);
    uint32_t head = e->n;
    if (test_of->op != EBB__OP_BOOL || test_of->i == 0) {
        ebb__emit_mark mark = ebb__emit_begin(e);
        uint32_t on = ebb__emit_jump(e, EBB__VM_JUMP_IF, ebb__emit_value(e, test_of));
        ebb__emit_end(e, mark);
        ebb__emit_chain(e, &loop.breaks);
        ebb__emit_here(e, on);
    }
    ebb__emit_into(e, x->args[1], EBB__NOWHERE);
    ebb__emit_chain_here(e, loop.continues);
    e->span = x->span;
    end_loop(e, &loop, head);
}

/* Leaves the loop when `index` is not below `end`. */
static void test_end(ebb__emitter *e, ebb__vm_op less, uint32_t index, uint32_t end) {
    uint32_t flag = ebb__emit_word(e);
    (void)ebb__emit(e, less, flag, index, end);
    uint32_t on = ebb__emit_jump(e, EBB__VM_JUMP_IF, flag);
    ebb__emit_chain(e, &e->loop->breaks);
    ebb__emit_here(e, on);
}

static void next_turn(ebb__emitter *e, ebb__emit_loop *loop, ebb__vm_op add, uint32_t index, uint32_t head) {
    ebb__emit_chain_here(e, loop->continues);
    uint32_t one = ebb__emit_word(e);
    ebb__emit_int(e, one, 1);
    (void)ebb__emit(e, add, index, index, one);
    end_loop(e, loop, head);
}

void ebb__emit_range(ebb__emitter *e, const ebb__ir *x) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    ebb__emit_loop loop;
    bool u = ebb__emit_kind(e, x->args[0]->type) == EBB__TY_U64;
    uint32_t index = ebb__emit_word(e), end = ebb__emit_word(e);
    e->slots[x->a] = (uint16_t)index;
    ebb__emit_into(e, x->args[0], index);
    ebb__emit_into(e, x->args[1], end);
    begin_loop(e, &loop);
    uint32_t head = e->n;
    test_end(e, u ? EBB__VM_LT_U : EBB__VM_LT_I, index, end);
    ebb__emit_into(e, x->args[2], EBB__NOWHERE);
    e->span = x->span;
    next_turn(e, &loop, u ? EBB__VM_ADD_U : EBB__VM_ADD_I, index, head);
    ebb__emit_end(e, mark);
}

static uint32_t element(ebb__emitter *e, uint32_t type, ebb__vm_op word, ebb__vm_op ref, uint32_t of,
                        uint32_t index) {
    uint32_t reg = ebb__emit_register(e, type);
    (void)ebb__emit(e, ebb__emit_is_ref(e, type) ? ref : word, reg, of, index);
    return reg;
}

/* A pattern of two looks at key and value as they are; any other at a tuple. */
static void pair(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t map_type, uint32_t map, uint32_t index,
                 uint32_t *fails) {
    const uint32_t *of = e->m->shapes[map_type].of;
    if (p->op == EBB__PAT_ANY) return;
    if (p->op == EBB__PAT_TUPLE) {
        ebb__emit_pattern(e, p->of[0], element(e, of[0], EBB__VM_KEY_W, EBB__VM_KEY_R, map, index), fails);
        ebb__emit_pattern(e, p->of[1], element(e, of[1], EBB__VM_VALUE_W, EBB__VM_VALUE_R, map, index),
                          fails);
        return;
    }
    uint32_t tuple = ebb__emit_ref(e), refs = e->refs, words = e->words;
    (void)element(e, of[0], EBB__VM_KEY_W, EBB__VM_KEY_R, map, index);
    uint32_t value = element(e, of[1], EBB__VM_VALUE_W, EBB__VM_VALUE_R, map, index);
    ebb__emit_share(e, of[1], value);
    (void)ebb__emit(e, EBB__VM_MAKE, tuple, refs, words);
    ebb__emit_extra(e, p->type);
    ebb__emit_pattern(e, p, tuple, fails);
}

void ebb__emit_each(ebb__emitter *e, const ebb__ir *x) {
    ebb__emit_mark mark = ebb__emit_begin(e);
    ebb__emit_loop loop;
    const ebb__ir *of = x->args[0];
    bool map = ebb__emit_kind(e, of->type) == EBB__TY_MAP;
    uint32_t reg = ebb__emit_ref(e), index = ebb__emit_word(e), end = ebb__emit_word(e), fails = 0;
    ebb__emit_stored(e, of, reg);
    ebb__emit_int(e, index, 0);
    (void)ebb__emit(e, map ? EBB__VM_MAP_LEN : EBB__VM_LIST_LEN, end, reg, 0);
    begin_loop(e, &loop);
    uint32_t head = e->n;
    test_end(e, EBB__VM_LT_I, index, end);
    if (map) pair(e, x->pattern, of->type, reg, index, &fails);
    else if (x->pattern->op != EBB__PAT_ANY)
        ebb__emit_pattern(
            e, x->pattern,
            element(e, e->m->shapes[of->type].of[0], EBB__VM_LIST_W, EBB__VM_LIST_R, reg, index), &fails);
    ebb__emit_into(e, x->args[1], EBB__NOWHERE);
    ebb__emit_chain_here(e, fails);
    e->span = x->span;
    next_turn(e, &loop, EBB__VM_ADD_I, index, head);
    ebb__emit_end(e, mark);
}
