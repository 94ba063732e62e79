/* lang/image.h - a program as it is run: shapes, bytecode, constants. Made once, then read only; memory is an arena. */
#ifndef EBB_LANG_IMAGE_H
#define EBB_LANG_IMAGE_H

#include "lang/value.h"

/* Where an instruction comes from, for traps: those from `pc` on. */
typedef struct ebb__place {
    uint32_t pc;
    ebb__span span;
} ebb__place;

/* The code of a function. Parameters are in the first registers of their kind, in order; `params[i]` is the type of the
 * i-th, self included. */
typedef struct ebb__bytecode {
    const uint32_t *at;
    uint32_t n;
    uint16_t n_words, n_refs; /* registers */
    const uint32_t *params;
    uint32_t n_params, param_words, param_refs;
    uint32_t result; /* type */
    uint32_t self;   /* of a helper, whose state is not known: 1 + its machine; else 0 */
    const ebb__place *places;
    uint32_t n_places;
} ebb__bytecode;

typedef struct ebb__image {
    ebb_lang *lang;
    const ebb__program *ir;
    ebb_allocator allocator;
    ebb__arena arena;
    ebb__shape *shapes;
    uint32_t n_shapes;
    ebb__bytecode *codes; /* by id of the function */
    uint32_t n_codes;
    ebb__object **constants; /* strings and bytes */
    uint32_t n_constants, constants_room;
    uint64_t *words; /* constants that do not fit an instruction */
    uint32_t n_words, words_room;
    struct {
        uint32_t machine; /* 1 + whose self each function has; 0: none */
        uint32_t state;   /* the type of that self; 0: it may be in any state */
    } * self_of;
    const char *limit, *limit_of; /* EBB_ERR_LIMIT: which limit, and what exceeds it */
    ebb__span limit_at;
} ebb__image;

ebb_status ebb__image_make(ebb_lang *c, ebb_allocator a, ebb__image *out);
void ebb__image_free(ebb__image *m);

/* EBB_ERR_LIMIT, with its texts. */
ebb_status ebb__image_limit(ebb__image *m, const char *of, const char *limit);

void *ebb__image_new(ebb__image *m, size_t n); /* zeroed; NULL: no memory */
const char *ebb__image_text(ebb__image *m, const char *s, size_t n);

ebb_status ebb__shapes_build(ebb__image *m);

/* Compiles every function; EBB_ERR_LIMIT: one needs too many registers. */
ebb_status ebb__emit_all(ebb__image *m);

/* Whether the interpreter may run the function: whatever the bytes of its code, it then touches no memory that is not
 * its own. `why` and `pc` say what is wrong; both may be NULL. *why NULL: there was no memory to find out. */
bool ebb__verify(const ebb__image *m, uint32_t fn, const char **why, uint32_t *pc);

#endif
