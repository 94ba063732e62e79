/* lang/decl.h - what a program declares, with its names resolved.
 *
 * Filled in steps: resolve.c makes a declaration for each item, signature.c resolves types, protocols and typestates,
 * infer.c checks bodies, and the last ones check what needs the whole program (protocol.c, provenance.c, reach.c). */
#ifndef EBB_LANG_DECL_H
#define EBB_LANG_DECL_H

#include "base/map.h"
#include "lang/ir.h"
#include "lang/type.h"

typedef enum ebb__decl_kind {
    EBB__D_TYPE,
    EBB__D_CONST,
    EBB__D_FN,
    EBB__D_TYPESTATE,
    EBB__D_PROTOCOL,
    EBB__D_SPEC,
    EBB__D_IMPORT
} ebb__decl_kind;

typedef struct ebb__field {
    ebb__name name;
    ebb__type type;
    ebb__span span;
    struct ebb__role *role; /* of a typestate's field: `as ROLE` */
} ebb__field;

enum { EBB__MAILBOX_MAX = 65535 }; /* EBB_MACHINE_MAILBOX_MAX */
enum { EBB__FIELDS_MAX = 200 };    /* of a record, tuple or state; parameters: each needs a register */
enum { EBB__LOCALS_MAX = 500 };    /* at one place of a function: there are as many registers */
enum { EBB__STATES_MAX = 16384 };  /* of a typestate: they are looked up one by one */

typedef struct ebb__decl {
    uint8_t kind;
    bool pub, is_error, broken, used, builtin;
    bool ambiguous; /* another one has its name: that was reported, and what the name means is not known */
    enum { EBB__UNRESOLVED, EBB__RESOLVING, EBB__RESOLVED } step;
    ebb__name name;
    ebb__source *source; /* NULL: built in */
    uint32_t node;       /* the item, or the `msg` */
    ebb__span span;      /* of the name */
    ebb__type type;      /* of a type or constant; the result of a function */
    ebb__field *fields;  /* of a record, and the parameters of a function */
    uint32_t n_fields;
    ebb__ir *value; /* of a constant */
    uint32_t names; /* of a constant: the others that it is made of, each as often as it is named */
    ebb__ir_fn *fn;
    struct ebb__typestate *typestate; /* of a typestate or spec; of a method its owner */
    struct ebb__state *state;         /* of a method */
    struct ebb__protocol *protocol;   /* of a protocol; of a message its owner */
    ebb__source *module;              /* of an import */
    bool consumes;                    /* a method that returns a state */
    bool effects;                     /* a function that does something, or calls one that does */
    uint32_t callers;                 /* 1 + the last of its calls in ebb__check.calls; 0: none */
    struct ebb__decl *next_effect;    /* of the functions whose callers are still to be looked at */
} ebb__decl;

/* The names of a module. */
typedef struct ebb__scope {
    ebb__map map; /* name -> ebb__decl * */
} ebb__scope;

/* ---- protocols ---- */

typedef struct ebb__effect {
    ebb__type payload;    /* a union of messages */
    struct ebb__role *to; /* NULL: a reply */
    ebb__span span;
} ebb__effect;

typedef struct ebb__rtrans {
    ebb__type trigger;
    ebb__name peer; /* 0: any */
    uint32_t node, n_targets, n_effects;
    struct ebb__rstate **targets; /* none: it stays */
    ebb__effect *effects;
    ebb__span span;
} ebb__rtrans;

typedef struct ebb__rstate {
    ebb__name name;
    struct ebb__role *role;
    uint32_t n_trans;
    ebb__rtrans *trans;
    bool final;
    ebb__span span;
    uint32_t node;
} ebb__rstate;

typedef struct ebb__role {
    ebb__name name;
    struct ebb__protocol *protocol;
    uint32_t index, n_states;
    ebb__rstate *states;
    ebb__span span;
    uint32_t node;
} ebb__role;

typedef struct ebb__req {
    ebb__role *from, *to;
    ebb__type payload, responses;
    uint64_t within_ms; /* 0: never */
    ebb__span span;
} ebb__req;

typedef struct ebb__protocol {
    ebb__decl *decl;
    ebb__decl **msgs; /* of kind TYPE */
    ebb__role **roles;
    ebb__req *reqs;
    uint32_t n_msgs, n_roles, n_reqs;
} ebb__protocol;

/* ---- typestates ---- */

/* A message that a handler may send or request. */
typedef struct ebb__sent {
    ebb__type payload, to; /* `to` is the type of the handle */
    ebb__role *bound;      /* what the field of the handle is bound to */
    ebb__name label;
    bool request;
    ebb__span span;
} ebb__sent;

typedef enum ebb__handler_kind { EBB__H_ON, EBB__H_AFTER, EBB__H_DEFER, EBB__H_IGNORE } ebb__handler_kind;

typedef struct ebb__handler {
    uint8_t kind;
    uint32_t node, targets_node;
    ebb__span span;           /* of the selector */
    struct ebb__state *state; /* NULL: a default */
    ebb__type selector;
    ebb__type origin; /* `for`: the request; 0: none */
    ebb__name label;
    ebb__span origin_span;
    struct ebb__state **targets;
    uint32_t n_targets;
    bool bad_target; /* one was reported */
    bool stays;      /* no `->`, or `stay` among the targets */
    ebb__type errors;
    const ebb__req *req;   /* of a handler of a request */
    ebb__type responses;   /* of a handler that binds its capability: what it may reply; else 0 */
    ebb__vec sent;         /* ebb__sent */
    ebb__ir_fn *fn, *time; /* `time` of a timer */
    uint64_t time_ms;      /* of a timer with a constant time, else 0 */
} ebb__handler;

typedef struct ebb__state {
    ebb__name name;
    uint32_t index, node;
    ebb__span span;
    struct ebb__typestate *typestate;
    ebb__field *fields; /* those of the typestate, then its own */
    uint32_t n_fields;
    ebb__vec methods;     /* ebb__decl * */
    ebb__vec handlers;    /* ebb__handler * */
    ebb__vec invariants;  /* ebb__ir_fn * */
    uint32_t entry, exit; /* nodes */
    ebb__ir_fn *entry_fn, *exit_fn;
    bool final, hot, reached, ends;
    ebb__name role_state; /* `as`: else its own name */
} ebb__state;

typedef struct ebb__implements {
    ebb__role *role;
    ebb__span span;
} ebb__implements;

typedef struct ebb__typestate {
    ebb__decl *decl;
    bool spec, linear; /* has an @final state */
    ebb__field *fields;
    uint32_t n_fields;
    ebb__state **states;
    uint32_t n_states;
    ebb__vec fns;        /* ebb__decl *, `new` among them */
    ebb__decl *make;     /* `new` */
    ebb__vec handlers;   /* defaults */
    ebb__vec invariants; /* ebb__ir_fn * */
    ebb__vec invariant_nodes;
    ebb__implements *roles;
    uint32_t n_roles;
    ebb__state *fault;
    uint32_t mailbox; /* 0: the default */
    ebb__type observes;
    ebb__span first_request; /* source UINT32_MAX: none */
    bool lost_role;          /* a role of it is not known, so its messages are not: that was reported */
    bool misplaced; /* a request stands in a function: it was reported, and what it yields is not known */
} ebb__typestate;

static inline ebb__handler *ebb__handler_at(const ebb__vec *v, uint32_t i) {
    return *EBB__VEC_AT(v, ebb__handler *, i);
}

static inline ebb__decl *ebb__decl_at(const ebb__vec *v, uint32_t i) {
    return *EBB__VEC_AT(v, ebb__decl *, i);
}

#endif
