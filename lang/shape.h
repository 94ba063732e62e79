/* lang/shape.h - types as a running program needs them: which values are references, and where fields stand.
 *
 * There is one shape for each type of the compilation, with the same number. `at` gives the slot of each field of a
 * record or state, or element of a tuple: references first, then words. */
#ifndef EBB_LANG_SHAPE_H
#define EBB_LANG_SHAPE_H

#include "lang/ir.h"

typedef struct ebb__object ebb__object;
typedef struct ebb__run ebb__run;
typedef struct ebb_program ebb_program;

typedef union ebb__value {
    uint64_t word;
    ebb__object *ref;
} ebb__value;
_Static_assert(sizeof(ebb__value) == 8, "a slot is 8 bytes on every platform");

typedef struct ebb__shape {
    uint8_t kind; /* ebb__type_kind */
    bool is_ref, is_error;
    uint32_t n;         /* fields, elements, members */
    const uint32_t *of; /* their types */
    const char *name;   /* of a record or state, without its module; of others, as the language writes it */
    const char *const *names; /* of fields */
    const uint16_t *at;       /* their slots */
    uint32_t n_refs, n_words; /* of a record, tuple or state: slots; of a boxed word, one word */
    uint32_t kind_id;         /* of a record that is sent: its number in the program's kinds; else 0 */
    uint32_t typestate;       /* of a state: its machine in the program; else UINT32_MAX */
    uint32_t state;
    ebb__object *constant; /* of () and of records without fields: their only value, boxed if it is a word */
} ebb__shape;

/* Whether a value of type `member` may stand where the union `whole` is expected; also for whole == member. */
bool ebb__shape_has(const ebb__shape *whole, uint32_t whole_type, uint32_t member);

#endif
