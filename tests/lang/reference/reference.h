/* The language a second time, slow and plain: programs run by walking their typed IR, on values that never change. Nothing
 * of it is shared with the bytecode, the VM or the VM's values; only the adapter to the machines is. Beside it, programs
 * at random. */
#ifndef EBB_TESTS_REFERENCE_H
#define EBB_TESTS_REFERENCE_H

#include "tests/support/program_world.h"

/* A value: what it is, without unions. Never changed once it is made. */
typedef struct rv {
    uint32_t type; /* never a union */
    uint32_t n;    /* elements, fields; of a map keys and values in turn, in the order of keys; bytes */
    uint64_t word;
    const struct rv *const *of;
    const uint8_t *bytes;
} rv;

typedef struct reference {
    ebb__run *run; /* of the call */
    const ebb__program *ir;
    const ebb__shape *shapes;
    uint32_t none; /* the type */
    uint32_t depth;
    struct rv_chunk *memory; /* of the outermost call */
    uint64_t ops;            /* so far, by kind: */
    uint64_t seen[EBB__OPS];
} reference;

/* ---- value.c ---- */

void *rv_alloc(reference *r, size_t n);
void rv_free_all(reference *r);
const rv *rv_word(reference *r, uint32_t type, uint64_t word);
const rv *rv_bytes(reference *r, uint32_t type, const void *bytes, size_t n);
const rv *rv_of(reference *r, uint32_t type, const rv *const *of, uint32_t n);
const rv *rv_with(reference *r, const rv *x, uint32_t i, const rv *part); /* a copy with another part */
const rv *rv_push(reference *r, const rv *list, const rv *x);
/* The place of a key in a map: true if it is there. */
bool rv_find(reference *r, const rv *map, const rv *key, uint32_t *at);
const rv *rv_put(reference *r, const rv *map, const rv *key, const rv *value);
const rv *rv_remove(reference *r, const rv *map, uint32_t at);
int rv_order(reference *r, const rv *a, const rv *b); /* 0: equal */
const rv *rv_text(reference *r, const rv *x);

/* From and to the values that the machines carry. `type` is what the place of the value says, perhaps a union. False
 * and NULL: no memory. */
const rv *rv_from(reference *r, uint32_t type, ebb__value x);
bool rv_to(reference *r, uint32_t type, const rv *x, ebb__value *out);

/* ---- interpret.c ---- */

/* A way of executing; `ctx` is a reference. */
bool reference_call(void *ctx, ebb__run *run, uint32_t fn, const ebb__value *args, ebb__value *out);

/* ---- generate.c ---- */

/* A program without errors, the same for the same seed. */
lang_text generate(uint64_t seed);

#endif
