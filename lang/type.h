/* lang/type.h - types. Each is interned: equal types have equal numbers.
 *
 * Records are equal by their declaration. A union is flat, without duplicates, and ordered by number. NEVER is the
 * type of an expression that does not return, and fits everywhere. So does ERROR, the type of an expression with a
 * reported mistake: nothing more is reported about it. */
#ifndef EBB_LANG_TYPE_H
#define EBB_LANG_TYPE_H

#include "lang/lang.h"

#include "base/text.h"

typedef uint32_t ebb__type;

typedef enum ebb__type_kind {
    EBB__TY_ERROR, /* the first ten are also the number of the type */
    EBB__TY_NEVER,
    EBB__TY_UNIT,
    EBB__TY_BOOL,
    EBB__TY_I64,
    EBB__TY_U64,
    EBB__TY_STRING,
    EBB__TY_BYTES,
    EBB__TY_DURATION,   /* milliseconds, an i64 */
    EBB__TY_REQUEST_ID, /* opaque */
    EBB__TY_LIST,       /* of[0] */
    EBB__TY_MAP,        /* of[0]: key, of[1]: value */
    EBB__TY_TUPLE,      /* of[...] */
    EBB__TY_RECORD,     /* decl */
    EBB__TY_UNION,      /* of[...] */
    EBB__TY_STATE,      /* a direct value: decl is the typestate, index the state */
    EBB__TY_MACHINE,    /* Machine<decl>, a typestate */
    EBB__TY_ROLE,       /* Machine<decl::role>, a protocol; index is the role */
    EBB__TY_PENDING,    /* Pending<of[0]> */
    EBB__TY_REPLY_CAP   /* ReplyCap<of[0]> */
} ebb__type_kind;

typedef struct ebb__type_info {
    uint8_t kind;
    bool moves;    /* a value of it has one owner: it contains a direct value, a Pending or a ReplyCap */
    bool is_error; /* a record that is marked @error */
    uint32_t index, n;
    const ebb__type *of;
    struct ebb__decl *decl;
    uint32_t next;    /* in its hash chain */
    uint32_t kind_id; /* of a record that is sent: its number in the program's table of kinds, from 1 */
} ebb__type_info;

void ebb__types_init(ebb_lang *c);
ebb__type_info *ebb__type_at(const ebb_lang *c, ebb__type t);
static inline uint8_t ebb__type_kind_of(const ebb_lang *c, ebb__type t) {
    return ebb__type_at(c, t)->kind;
}

ebb__type ebb__type_of(ebb_lang *c, ebb__type_kind kind, const ebb__type *of, uint32_t n);
ebb__type ebb__type_decl(ebb_lang *c, ebb__type_kind kind, struct ebb__decl *decl, uint32_t index);
ebb__type ebb__type_union(ebb_lang *c, const ebb__type *of, uint32_t n);
ebb__type ebb__type_join(ebb_lang *c, ebb__type a, ebb__type b);

/* The members of a union; of another type, the type itself. */
uint32_t ebb__type_members(const ebb_lang *c, const ebb__type *t, const ebb__type **out);
bool ebb__type_has(const ebb_lang *c, ebb__type whole, ebb__type member);

/* The union without the members of `part`; NEVER if nothing is left. */
ebb__type ebb__type_without(ebb_lang *c, ebb__type whole, ebb__type part);

/* The members that are marked @error, or those that are not. */
ebb__type ebb__type_errors(ebb_lang *c, ebb__type t, bool errors);

/* How a value of `from` gets to a place of `to`. */
typedef enum ebb__fit { EBB__FIT_NOT, EBB__FIT_SAME, EBB__FIT_WIDEN, EBB__FIT_ROLE } ebb__fit;
ebb__fit ebb__type_fit(const ebb_lang *c, ebb__type from, ebb__type to);

/* Whether a value may be dropped: false for what has to be consumed, which `moves` too. */
bool ebb__type_drops(const ebb_lang *c, ebb__type t);

void ebb__type_print(ebb_lang *c, ebb__text *t, ebb__type type);

#endif
