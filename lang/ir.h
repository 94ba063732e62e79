/* lang/ir.h - the typed IR: what the checker hands to a back end.
 *
 * A program without errors is a list of functions, a table of kinds (the record types that are sent), and the
 * typestates with a table for each state. Bodies are trees of `ebb__ir`: every name is resolved to a slot, an index or
 * a function; every node has its type; conversions are explicit (WIDEN, AS_ROLE); carried fields of a state literal are
 * filled in; messages that a `?` passes on are types of the function's result.
 *
 * Values. A type of kind BOOL, I64, U64, DURATION, REQUEST_ID, MACHINE, ROLE, PENDING or REPLY_CAP is one word; the others
 * are references (STRING, BYTES, LIST, MAP, TUPLE, RECORD, STATE, and UNION, which has a tag: the number of the member's type).
 * Values are immutable but for places: SET_PLACE on what a slot or a field of self holds copies what is shared.
 *
 * Slots. A function has `n_slots`; the first are its parameters; every binding has a slot of its own, so that a register
 * compiler may take slots for registers. `slots[i]` is the type. Temporaries are not slots. */
#ifndef EBB_LANG_IR_H
#define EBB_LANG_IR_H

#include "lang/type.h"

typedef enum ebb__op {
#define EBB_OP(name, text) EBB__OP_##name,
#include "lang/ir_op.def"
#undef EBB_OP
    EBB__OPS
} ebb__op;

enum { EBB__IR_DISCARD = 1 };

struct ebb__ir_pattern;
struct ebb__ir_fn;

typedef struct ebb__ir {
    uint8_t op, flags;
    ebb__type type;
    ebb__span span;
    uint32_t a, b;
    uint32_t n;
    struct ebb__ir **args;
    union {
        int64_t i;
        struct {
            const char *bytes;
            uint32_t n_bytes;
        };
        struct ebb__ir_pattern *pattern;
        struct ebb__ir_fn *fn;
    };
} ebb__ir;

/* A pattern. `type` is that of the value it looks at. */
typedef enum ebb__pattern_op {
    EBB__PAT_ANY,  /* holds */
    EBB__PAT_BIND, /* holds; the value goes into `slot` */
    EBB__PAT_IS, /* the tag of a union is `member` (perhaps a smaller union); then of[0] looks at that, if n is 1 */
    EBB__PAT_EQUAL, /* equals the constant `value` */
    EBB__PAT_TUPLE, /* of[i] looks at element i */
    EBB__PAT_RECORD /* of[i] looks at field i, in the order of declaration; also of a state */
} ebb__pattern_op;

typedef struct ebb__ir_pattern {
    uint8_t op;
    ebb__type type, member;
    uint32_t slot, n;
    struct ebb__ir_pattern **of;
    ebb__ir *value;
    ebb__span span;
} ebb__ir_pattern;

typedef enum ebb__fn_kind {
    EBB__FN_PLAIN,
    EBB__FN_NEW,    /* makes the first state */
    EBB__FN_METHOD, /* slot 0 is self, a direct value (of a helper of the typestate: in any state) */
    EBB__FN_HANDLER, /* slots: the payload, then the origin if the handler has `for`, then the ReplyCap if it binds one */
    EBB__FN_TIMER, /* no parameters */
    EBB__FN_ENTRY,
    EBB__FN_EXIT,
    EBB__FN_INVARIANT, /* bool */
    EBB__FN_TIME       /* duration: when the timer fires after the state is entered */
} ebb__fn_kind;

typedef struct ebb__ir_fn {
    uint8_t kind;
    bool has_implicit_cap; /* a handler of a request that does not bind its capability */
    uint32_t id;
    const char *name; /* "Valve.Open.close", "Server.Ready.on AuthorizeReq" */
    ebb__span span;
    ebb__type result; /* of a handler: () for stay, its states, and its errors */
    uint32_t n_params, n_slots;
    const ebb__type *slots;
    ebb__ir *body;
} ebb__ir_fn;

/* What a state does with a kind of message. Entries of one kind differ in their origin. */
typedef struct ebb__ir_entry {
    uint32_t kind;         /* number in ebb__program.kinds */
    uint8_t action;        /* ebb__handler_kind: ON, DEFER or IGNORE */
    uint32_t origin_kind;  /* 0: any; else the kind of the request that this answers */
    uint32_t origin_label; /* a name; 0: any */
    ebb__ir_fn *fn;        /* of ON */
} ebb__ir_entry;

typedef struct ebb__ir_timer {
    ebb__ir_fn *time, *fn;
} ebb__ir_timer;

typedef struct ebb__ir_state {
    const char *name;
    bool final, hot;
    uint32_t n_fields;
    const struct ebb__field *fields; /* those of the typestate, then its own */
    ebb__ir_entry *entries;          /* its own, then the defaults that they do not hide; ordered by kind */
    uint32_t n_entries;
    ebb__ir_timer *timers; /* in the order of the source */
    uint32_t n_timers;
    ebb__ir_fn *entry, *exit; /* or NULL */
    ebb__ir_fn **invariants;  /* the typestate's, then its own */
    uint32_t n_invariants;
} ebb__ir_state;

typedef struct ebb__ir_machine {
    struct ebb__decl *decl;
    const char *name;
    bool spec;        /* a monitor; it observes the kinds of its entries */
    ebb__ir_fn *make; /* `new`; NULL for a spec, which begins in state 0 */
    ebb__ir_state *states;
    uint32_t n_states;
    uint32_t fault;   /* the state of `fault ->`; UINT32_MAX: none */
    uint32_t mailbox; /* 0: the default */
} ebb__ir_machine;

/* A kind of message. */
typedef struct ebb__ir_kind {
    ebb__type type;      /* a record */
    ebb__type responses; /* of a request: the union of what may come back; 0: it is no request */
    uint64_t within_ms;  /* of a request; 0: never */
} ebb__ir_kind;

typedef struct ebb__program {
    ebb__ir_kind *kinds; /* from 1; 0 is none */
    uint32_t n_kinds;
    ebb__ir_fn **fns; /* by id */
    uint32_t n_fns;
    ebb__ir_machine *machines;
    uint32_t n_machines;
    ebb__ir_fn *main; /* NULL: a module without `fn main` */
} ebb__program;

/* The program of a compilation that had no errors, else NULL. Types are read with ebb__type_at. */
const ebb__program *ebb__lang_program(const ebb_lang *c);

#endif
