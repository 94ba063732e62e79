/* lang/value.h - values of a running program.
 *
 * A value is one slot: a *word* (bool, i64, u64, duration, RequestId, handles, Pending, ReplyCap; () is the word 0), or
 * a *reference* to an object. Which of the two it is, its type says (ebb__shape.is_ref). Words have no tag.
 *
 * An object has a header, then `n_refs` references, then `n` words from slot `words_at` on. A string has bytes instead. The
 * type in the header is that of a record, state, tuple, list, map, string or bytes, never of a union: a union is the
 * reference to its member's object. A member that is a word is boxed in an object with one word. A state object has as
 * many slots as the largest state of its typestate, with the typestate's own fields first: so helpers find them in any
 * state, and the fields of a machine are such an object.
 *
 * Where objects live:
 *  - In the arena of the dispatch (or of main), until it ends.
 *  - In a *block*: a counted piece of memory with one object and all that it refers to. Messages and the fields of
 *    machines refer to blocks. Objects of a block never change.
 *  - As constants of the program (EBB__FROZEN, not counted).
 * Only objects of the arena change, and only through their owner: a list or record is changed in place unless it is
 * FROZEN or SHARED, else it is copied first. Whoever stores a reference that something else still has sets SHARED. A
 * copy of an object shares what it refers to. A wrong SHARED breaks value semantics, never memory.
 *
 * The size of a value, on every platform: 16 bytes an object, and 8 for each slot; the bytes of a string are rounded up
 * to 8. What is referred to twice counts twice. */
#ifndef EBB_LANG_VALUE_H
#define EBB_LANG_VALUE_H

#include "lang/shape.h"

enum {
    EBB__SHARED = 1,   /* somebody else may refer to it: copy before a change */
    EBB__FROZEN = 2,   /* never changes: of a block, or a constant */
    EBB__COUNTED = 4,  /* the first object of a block */
    EBB__SEALED = 8,   /* a machine's fields: each reference is NULL, a constant, or counted */
    EBB__CONSTANT = 16 /* of the program: FROZEN, lives as long as it does */
};

struct ebb__object {
    uint16_t type; /* number of the type */
    uint8_t flags; /* EBB__SHARED ... */
    uint8_t room;  /* of a list or map that may grow in place: log2 of the elements it has room for, plus 1 */
    uint32_t n_refs;
    uint32_t n;        /* words; of a string or bytes, bytes */
    uint32_t words_at; /* slot of the first word */
    ebb__value slots[];
};
_Static_assert(sizeof(ebb__object) == 16, "the size formula");

/* Values nest at most this deep where they are copied, compared or printed. */
enum { EBB__VALUE_DEPTH = 100 };

static inline uint8_t *ebb__object_bytes(const ebb__object *o) {
    return (uint8_t *)(uintptr_t)o->slots;
}
static inline uint64_t *ebb__object_word(ebb__object *o, uint32_t i) {
    return &o->slots[o->words_at + i].word;
}

/* ---- making; a NULL is a trap: run->trap says which ---- */

/* Memory of the dispatch, aligned to 8. */
void *ebb__run_alloc(ebb__run *run, size_t bytes);

/* An object with the shape's slots, for a record, tuple or state; the slots are zero. */
ebb__object *ebb__object_make(ebb__run *run, uint32_t type);
/* A word as a member of a union. */
ebb__object *ebb__object_box(ebb__run *run, uint32_t type, uint64_t word);
ebb__object *ebb__bytes_new(ebb__run *run, uint32_t type, const void *bytes,
                            size_t n);                                 /* bytes NULL: not set */
ebb__object *ebb__array_new(ebb__run *run, uint32_t type, uint32_t n); /* elements are zero and must be set */
ebb__object *ebb__dict_new(ebb__run *run, uint32_t type, uint32_t room);

/* The object as one that may be changed: itself, or a copy. */
ebb__object *ebb__object_own(ebb__run *run, ebb__object *o);

/* Marks a reference that is stored a second time. */
static inline void ebb__object_share(ebb__object *o) {
    if (!(o->flags & (EBB__SHARED | EBB__FROZEN))) o->flags |= EBB__SHARED;
}

/* ---- fields, lists, maps ---- */

/* Fields are in the order of the declaration. */
static inline ebb__value *ebb__field_slot(const ebb__shape *s, ebb__object *o, uint32_t field) {
    return &o->slots[s->at[field]];
}

uint32_t ebb__array_len(const ebb__object *o);
ebb__value *ebb__array_at(ebb__object *o, uint32_t i); /* i < len */
/* The list with one more; it may be another object. `o` is owned. */
ebb__object *ebb__array_push(ebb__run *run, ebb__object *o, ebb__value x);
/* Whether an element equals x. False: a trap. */
bool ebb__array_has(ebb__run *run, ebb__object *list, ebb__value x, uint64_t *out);
ebb__object *ebb__array_join(ebb__run *run, ebb__object *a, ebb__object *b);

uint32_t ebb__dict_len(const ebb__run *run, const ebb__object *o);
ebb__value *ebb__dict_key(const ebb__run *run, ebb__object *o, uint32_t i); /* in the order of keys */
ebb__value *ebb__dict_value(const ebb__run *run, ebb__object *o, uint32_t i);
/* Where the key is, or would be. */
bool ebb__dict_find(ebb__run *run, ebb__object *o, ebb__value key, uint32_t *at);
/* The map with the pair; `o` is owned. */
ebb__object *ebb__dict_set(ebb__run *run, ebb__object *o, ebb__value key, ebb__value value);
void ebb__dict_remove(const ebb__run *run, ebb__object *o, uint32_t at); /* `o` is owned */

/* ---- comparing, printing ---- */

/* Values of one type: <0, 0, >0, in the order of the language; for records and unions only 0 has a meaning. False: a
 * trap, the values are too deep or too large. */
bool ebb__value_compare(ebb__run *run, uint32_t type, ebb__value a, ebb__value b, int *out);

/* The same for two values of a reference type. */
bool ebb__object_compare(ebb__run *run, ebb__object *a, ebb__object *b, int *out);

/* The text of a value. Strings stand as they are, inside of others in quotes. */
ebb__object *ebb__value_text(ebb__run *run, uint32_t type, ebb__value x);
ebb__object *ebb__object_text(ebb__run *run, ebb__object *o); /* of a reference type */

/* An object of a record, tuple, state, list or map as JSON. On the stack of a fiber, so values may nest less deep. */
enum { EBB__JSON_VALUE_DEPTH = 32 };
ebb__object *ebb__object_json(ebb__run *run, uint32_t type, ebb__object *o);

/* A text that is put together: begin, parts, end. */
typedef struct ebb__builder {
    ebb__run *run;
    ebb__object *text; /* NULL: a trap */
    size_t room;
    uint32_t depth;
} ebb__builder;
ebb__builder ebb__builder_begin(ebb__run *run);
void ebb__builder_bytes(ebb__builder *b, const void *s, size_t n);
void ebb__builder_value(ebb__builder *b, uint32_t type, ebb__value x); /* as ebb__value_text */
ebb__object *ebb__builder_end(ebb__builder *b);                        /* a string; NULL: a trap */

/* ---- blocks ---- */

/* The size by the formula; more than `limit` if it is that large, SIZE_MAX if it is too deep. */
size_t ebb__value_size(const ebb__object *o, size_t limit);

/* A counted copy, with a count of 1; of an object that is counted, the same with one more; a constant is itself. NULL:
 * `*st` is EBB_ERR_NOMEM, EBB_ERR_LIMIT above `limit` bytes, or EBB_ERR_INVALID: too deep. Keeping and dropping a constant does nothing. */
ebb__object *ebb__block_of(ebb_program *p, ebb__object *o, size_t limit, ebb_status *st);
/* The size of a counted object or a constant. */
size_t ebb__block_size(const ebb__object *o);
/* The trap for a failure of ebb__block_of, where what is too large is `large`. */
bool ebb__block_trap(ebb__run *run, ebb_status st, uint8_t large, ebb__span at);
void ebb__block_keep(ebb__object *o);
void ebb__block_drop(ebb__object *o);

#endif
