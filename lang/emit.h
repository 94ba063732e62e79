/* lang/emit.h - from the typed IR of a function to its bytecode.
 *
 * Each kind of value has a stack of registers. An expression takes registers above those in use, and the end of the
 * statement gives them back. A slot of the IR gets its register where it is bound, and keeps it until the end of its block.
 *
 * A value is evaluated `into` a register; a reader may also ask where a `value` is, and gets the register of a variable
 * without a copy, which is valid until something else is evaluated. Code that stores a reference which a variable or an
 * object still has marks it as shared at once. */
#ifndef EBB_LANG_EMIT_H
#define EBB_LANG_EMIT_H

#include "lang/vm.h"

enum { EBB__NOWHERE = 0xffff }; /* the value is not needed */

typedef struct ebb__emit_loop {
    struct ebb__emit_loop *outer;
    uint32_t breaks, continues; /* chains of JUMPs to patch: each holds the pc of the one before, plus 1 */
} ebb__emit_loop;

typedef struct ebb__emitter {
    ebb__image *m;
    const ebb__ir_fn *fn;
    uint32_t *code;
    uint32_t n, room;
    ebb__place *places;
    uint32_t n_places, places_room;
    uint16_t *slots; /* register of each slot */
    uint32_t words, refs, most_words, most_refs;
    ebb__emit_loop *loop;
    ebb__span span;
    bool has_self; /* reference 0 is a state object that is no slot */
    bool oom;
    const char *limit; /* what the function has too much of, or NULL */
} ebb__emitter;

/* ---- emit.c: assembling ---- */

bool ebb__emit_is_ref(const ebb__emitter *e, uint32_t type);
uint8_t ebb__emit_kind(const ebb__emitter *e, uint32_t type);
uint32_t ebb__emit(ebb__emitter *e, ebb__vm_op op, uint32_t a, uint32_t b, uint32_t c); /* its pc */
void ebb__emit_extra(ebb__emitter *e, uint32_t x);
void ebb__emit_wide(ebb__emitter *e, ebb__vm_op op, uint32_t a, uint32_t number);
uint32_t ebb__emit_jump(ebb__emitter *e, ebb__vm_op op, uint32_t a); /* to be patched */
void ebb__emit_here(ebb__emitter *e, uint32_t jump);                 /* patches it to the present pc */
void ebb__emit_chain(ebb__emitter *e, uint32_t *chain);              /* a JUMP that belongs to a chain */
void ebb__emit_chain_here(ebb__emitter *e, uint32_t chain);
void ebb__emit_back(ebb__emitter *e, uint32_t to);
uint32_t ebb__emit_word(ebb__emitter *e); /* a new register */
uint32_t ebb__emit_ref(ebb__emitter *e);
uint32_t ebb__emit_register(ebb__emitter *e, uint32_t type);
void ebb__emit_int(ebb__emitter *e, uint32_t to, int64_t value);
void ebb__emit_constant(ebb__emitter *e, uint32_t to, uint32_t type, const char *bytes, uint32_t n);

typedef struct ebb__emit_mark {
    uint32_t words, refs;
} ebb__emit_mark;
static inline ebb__emit_mark ebb__emit_begin(const ebb__emitter *e) {
    return (ebb__emit_mark){e->words, e->refs};
}
static inline void ebb__emit_end(ebb__emitter *e, ebb__emit_mark mark) {
    e->words = mark.words;
    e->refs = mark.refs;
}

/* ---- emit_expr.c ---- */

void ebb__emit_into(ebb__emitter *e, const ebb__ir *x, uint32_t to); /* a register of the kind, or NOWHERE */
uint32_t ebb__emit_value(ebb__emitter *e, const ebb__ir *x);         /* where it is; not to be changed */
/* The same for the first of two operands: a copy if the second one may change it. */
uint32_t ebb__emit_first(ebb__emitter *e, const ebb__ir *x, const ebb__ir *second);
void ebb__emit_stored(ebb__emitter *e, const ebb__ir *x,
                      uint32_t to); /* the same as into, for a value that is stored */
void ebb__emit_move(ebb__emitter *e, uint32_t type, uint32_t to, uint32_t from);
void ebb__emit_share(ebb__emitter *e, uint32_t type, uint32_t reg);
uint32_t ebb__emit_self(const ebb__emitter *e);
/* From a member to a union, or the other way round. */
void ebb__emit_widen(ebb__emitter *e, uint32_t from_type, uint32_t from, uint32_t to_type, uint32_t to);
void ebb__emit_narrow(ebb__emitter *e, uint32_t from, uint32_t to_type, uint32_t to);
void ebb__emit_result(ebb__emitter *e, uint32_t type, uint32_t reg); /* returns with a value of a type */

/* ---- emit_branch.c ---- */

void ebb__emit_if(ebb__emitter *e, const ebb__ir *x, uint32_t to);
void ebb__emit_match(ebb__emitter *e, const ebb__ir *x, uint32_t to);
void ebb__emit_let(ebb__emitter *e, const ebb__ir *x);
void ebb__emit_while(ebb__emitter *e, const ebb__ir *x);
void ebb__emit_range(ebb__emitter *e, const ebb__ir *x);
void ebb__emit_each(ebb__emitter *e, const ebb__ir *x);
/* Jumps to the chain if the value does not match; binds names. */
void ebb__emit_pattern(ebb__emitter *e, const ebb__ir_pattern *p, uint32_t reg, uint32_t *fails);

/* ---- emit_place.c ---- */

void ebb__emit_set_place(ebb__emitter *e, const ebb__ir *x);
void ebb__emit_index(ebb__emitter *e, const ebb__ir *x, uint32_t to);
void ebb__emit_collection(ebb__emitter *e, const ebb__ir *x, uint32_t to); /* LIST ... KEYS */
/* The slot of a field, which has to be one of the first 256. */
uint32_t ebb__emit_field_slot(ebb__emitter *e, uint32_t type, uint32_t field);

/* ---- emit_effect.c ---- */

void ebb__emit_effect(ebb__emitter *e, const ebb__ir *x, uint32_t to);

#endif
