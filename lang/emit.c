/* lang/emit.c - assembling: instructions, jumps, registers, constants; and the functions of a program one by one. */
#include "lang/emit.h"

#include <string.h>

#include "base/alloc.h"
#include "lang/check.h"

const ebb__vm_info ebb__vm_infos[EBB__VM_OPS] = {
#define EBB_VM(name, a, b, c, extra, text) {#name, {EBB__##a, EBB__##b, EBB__##c}, extra},
#include "lang/vm_op.def"
#undef EBB_VM
};

bool ebb__emit_is_ref(const ebb__emitter *e, uint32_t type) {
    return e->m->shapes[type].is_ref;
}

uint8_t ebb__emit_kind(const ebb__emitter *e, uint32_t type) {
    return e->m->shapes[type].kind;
}

/* ---- instructions ---- */

static void *grown(ebb__emitter *e, void *at, uint32_t *room, size_t size) {
    uint32_t more = *room == 0 ? 64 : *room * 2;
    void *p = ebb__resize(&e->m->allocator, at, *room * size, more * size);
    if (p == NULL) {
        e->oom = true;
        return NULL;
    }
    *room = more;
    return p;
}

static void put(ebb__emitter *e, uint32_t word) {
    if (e->n == e->room) {
        uint32_t *code = e->n >= EBB__CODE_MAX - 64 ? NULL : grown(e, e->code, &e->room, sizeof *code);
        if (code == NULL) {
            if (!e->oom) e->limit = "more than 65,000 instructions";
            return;
        }
        e->code = code;
    }
    e->code[e->n++] = word;
}

static void put_place(ebb__emitter *e) {
    const ebb__place *last = e->n_places == 0 ? NULL : &e->places[e->n_places - 1];
    if (last != NULL && memcmp(&last->span, &e->span, sizeof e->span) == 0) return;
    if (e->n_places == e->places_room) {
        ebb__place *places = grown(e, e->places, &e->places_room, sizeof *places);
        if (places == NULL) return;
        e->places = places;
    }
    e->places[e->n_places++] = (ebb__place){e->n, e->span};
}

uint32_t ebb__emit(ebb__emitter *e, ebb__vm_op op, uint32_t a, uint32_t b, uint32_t c) {
    put_place(e);
    put(e, ebb__vm_pack(op, a & 255, b & 255, c & 255));
    return e->n == 0 ? 0 : e->n - 1;
}

void ebb__emit_extra(ebb__emitter *e, uint32_t x) {
    put(e, x);
}

void ebb__emit_wide(ebb__emitter *e, ebb__vm_op op, uint32_t a, uint32_t number) {
    if (number > UINT16_MAX) e->limit = "one of more than 65,536 constants of the program";
    (void)ebb__emit(e, op, a, number & 255, number >> 8);
}

/* ---- jumps: I3 has the target in 24 bits, I2 in 16 ---- */

static void aim(ebb__emitter *e, uint32_t jump, uint32_t to) {
    if (jump >= e->n) return;
    uint32_t x = e->code[jump];
    bool wide = ebb__vm_infos[x & 255].operand[0] == EBB__I3;
    e->code[jump] = wide ? (x & 255) | to << 8 : (x & 0xffff) | to << 16;
}

static uint32_t target(const ebb__emitter *e, uint32_t jump) {
    return jump >= e->n ? 0 : e->code[jump] >> 8;
}

uint32_t ebb__emit_jump(ebb__emitter *e, ebb__vm_op op, uint32_t a) {
    return ebb__emit(e, op, op == EBB__VM_JUMP ? 0 : a, 0, 0);
}

void ebb__emit_here(ebb__emitter *e, uint32_t jump) {
    aim(e, jump, e->n);
}

void ebb__emit_chain(ebb__emitter *e, uint32_t *chain) {
    uint32_t jump = ebb__emit_jump(e, EBB__VM_JUMP, 0);
    aim(e, jump, *chain);
    *chain = jump + 1;
}

void ebb__emit_chain_here(ebb__emitter *e, uint32_t chain) {
    while (chain != 0 && chain <= e->n) {
        uint32_t next = target(e, chain - 1);
        aim(e, chain - 1, e->n);
        if (next >= chain) return;
        chain = next;
    }
}

void ebb__emit_back(ebb__emitter *e, uint32_t to) {
    aim(e, ebb__emit(e, EBB__VM_LOOP, 0, 0, 0), to);
}

/* ---- registers and constants ---- */

static uint32_t take(ebb__emitter *e, uint32_t *top, uint32_t *most) {
    if (*top >= EBB__REGISTERS) {
        e->limit = "more than 250 variables, parameters and intermediate values of a kind";
        return 0;
    }
    uint32_t reg = (*top)++;
    if (*top > *most) *most = *top;
    return reg;
}

uint32_t ebb__emit_word(ebb__emitter *e) {
    return take(e, &e->words, &e->most_words);
}

uint32_t ebb__emit_ref(ebb__emitter *e) {
    return take(e, &e->refs, &e->most_refs);
}

uint32_t ebb__emit_register(ebb__emitter *e, uint32_t type) {
    return ebb__emit_is_ref(e, type) ? ebb__emit_ref(e) : ebb__emit_word(e);
}

void ebb__emit_int(ebb__emitter *e, uint32_t to, int64_t value) {
    ebb__image *m = e->m;
    if (value >= INT16_MIN && value <= INT16_MAX) {
        ebb__emit_wide(e, EBB__VM_INT, to, (uint16_t)value);
        return;
    }
    uint32_t i = 0;
    while (i < m->n_words && m->words[i] != (uint64_t)value) i++;
    if (i == m->n_words) {
        uint64_t *words =
            m->n_words < m->words_room ? m->words : grown(e, m->words, &m->words_room, sizeof *words);
        if (words == NULL) return;
        m->words = words;
        m->words[m->n_words++] = (uint64_t)value;
    }
    ebb__emit_wide(e, EBB__VM_WORD, to, i);
}

static ebb__object *make_constant(ebb__image *m, uint32_t type, const char *bytes, uint32_t n) {
    ebb__object *o = ebb__image_new(m, sizeof *o + ((size_t)n + 7) / 8 * 8);
    if (o == NULL) return NULL;
    *o = (ebb__object){.type = (uint16_t)type, .flags = EBB__FROZEN | EBB__CONSTANT, .n = n};
    if (n > 0) memcpy(ebb__object_bytes(o), bytes, n);
    return o;
}

void ebb__emit_constant(ebb__emitter *e, uint32_t to, uint32_t type, const char *bytes, uint32_t n) {
    ebb__image *m = e->m;
    uint32_t i = m->n_constants;
    while (i-- > 0) {
        const ebb__object *o = m->constants[i];
        if (o->type == type && o->n == n && (n == 0 || memcmp(ebb__object_bytes(o), bytes, n) == 0)) break;
    }
    if (i == UINT32_MAX) {
        ebb__object **all = m->n_constants < m->constants_room
                                ? m->constants
                                : grown(e, m->constants, &m->constants_room, sizeof *all);
        ebb__object *o = all == NULL ? NULL : make_constant(m, type, bytes, n);
        if (all != NULL) m->constants = all;
        if (o == NULL) {
            e->oom = true;
            return;
        }
        i = m->n_constants;
        m->constants[m->n_constants++] = o;
    }
    ebb__emit_wide(e, EBB__VM_CONSTANT, to, i);
}

/* ---- functions ---- */

static bool has_self(const ebb__ir_fn *fn) {
    return fn->kind >= EBB__FN_HANDLER;
}

/* Self first, if it is no slot; then the parameters. Each gets the next register of its kind. */
static bool set_params(ebb__emitter *e, ebb__bytecode *code) {
    const ebb__ir_fn *fn = e->fn;
    uint32_t n = fn->n_params + has_self(fn), *params = ebb__image_new(e->m, (n + 1) * sizeof *params);
    if (params == NULL) return false;
    e->has_self = has_self(fn);
    if (e->has_self) {
        (void)ebb__emit_ref(e);
        params[0] = e->m->self_of[fn->id].state;
    }
    for (uint32_t i = 0; i < fn->n_params; i++) {
        params[i + e->has_self] = fn->slots[i];
        e->slots[i] = (uint16_t)ebb__emit_register(e, fn->slots[i]);
    }
    code->param_words = e->words;
    code->param_refs = e->refs;
    code->params = params;
    code->n_params = n;
    code->self = e->m->self_of[fn->id].machine;
    code->result = fn->result;
    return true;
}

static bool keep(ebb__emitter *e, ebb__bytecode *code) {
    uint32_t *at = ebb__image_new(e->m, (e->n + 1) * sizeof *at);
    ebb__place *places = ebb__image_new(e->m, (e->n_places + 1) * sizeof *places);
    if (at == NULL || places == NULL) return false;
    if (e->n > 0) memcpy(at, e->code, e->n * sizeof *at);
    if (e->n_places > 0) memcpy(places, e->places, e->n_places * sizeof *places);
    code->at = at;
    code->n = e->n;
    code->places = places;
    code->n_places = e->n_places;
    code->n_words = (uint16_t)e->most_words;
    code->n_refs = (uint16_t)e->most_refs;
    return true;
}

static ebb_status emit_fn(ebb__image *m, const ebb__ir_fn *fn, ebb__bytecode *code) {
    ebb__emitter e = {.m = m, .fn = fn, .span = fn->span};
    size_t slots = (fn->n_slots + 1) * sizeof *e.slots;
    e.slots = ebb__alloc(&m->allocator, slots);
    if (e.slots == NULL) return EBB_ERR_NOMEM;
    memset(e.slots, 0xff, slots);
    bool ok = set_params(&e, code);
    if (ok && fn->body != NULL) ebb__emit_into(&e, fn->body, EBB__NOWHERE);
    if (ok) (void)ebb__emit(&e, EBB__VM_UNREACHABLE, 0, 0, 0);
    ok = ok && !e.oom && (e.limit != NULL || keep(&e, code));
    ebb__free(&m->allocator, e.slots, slots);
    ebb__free(&m->allocator, e.code, e.room * sizeof *e.code);
    ebb__free(&m->allocator, e.places, e.places_room * sizeof *e.places);
    if (!ok) return EBB_ERR_NOMEM;
    m->limit_at = fn->span;
    return e.limit != NULL ? ebb__image_limit(m, fn->name, e.limit) : EBB_OK;
}

ebb_status ebb__emit_all(ebb__image *m) {
    ebb_status st = EBB_OK;
    m->codes = ebb__image_new(m, (m->ir->n_fns + 1) * sizeof *m->codes);
    if (m->codes == NULL) return EBB_ERR_NOMEM;
    m->n_codes = m->ir->n_fns;
    for (uint32_t i = 0; st == EBB_OK && i < m->ir->n_fns; i++) st = emit_fn(m, m->ir->fns[i], &m->codes[i]);
    return st;
}
