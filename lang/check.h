/* lang/check.h - the checker's state, and the steps it takes in this order. */
#ifndef EBB_LANG_CHECK_H
#define EBB_LANG_CHECK_H

#include "lang/decl.h"
#include "lang/diag.h"
#include "lang/lexer.h"
#include "lang/tree.h"

struct ebb__check {
    ebb__vec types;   /* ebb__type_info */
    ebb__map type_of; /* the first type of a hash */
    ebb__scope builtins;
    ebb__vec decls;      /* ebb__decl *, of all modules, in order; methods and messages too */
    ebb__vec typestates; /* ebb__typestate *, specs too */
    ebb__vec protocols;  /* ebb__protocol * */
    ebb__vec fns;        /* ebb__ir_fn * */
    ebb__vec calls;      /* ebb__call */
    ebb__type machine_error, request_failed, none;
    uint32_t import_depth, alias_depth;
    uint32_t names; /* of the constant that is being read, so far */
    ebb__program *program;
};

/* A call, for the purity of functions. */
typedef struct ebb__call {
    ebb__decl *from; /* NULL: no function, but a handler or the like */
    ebb__decl *to;
    ebb__span span;
    bool pure;     /* the caller has to be pure */
    uint32_t next; /* 1 + the call of `to` before this one; 0: there is none */
} ebb__call;

/* ---- steps ---- */

void ebb__builtins_init(ebb_lang *c);
void ebb__resolve(ebb_lang *c, ebb__source *root); /* loads modules, declares items */
void ebb__signatures(ebb_lang *c);                 /* types, protocols, typestates: everything but bodies */
void ebb__bodies(ebb_lang *c);                     /* functions, handlers; makes the IR */
void ebb__check_purity(ebb_lang *c);
void ebb__check_protocols(ebb_lang *c);
void ebb__check_provenance(ebb_lang *c);
void ebb__check_reach(ebb_lang *c);
void ebb__check_unused(ebb_lang *c);
void ebb__program_build(ebb_lang *c);

/* ---- names in context ---- */

/* Where a name is looked up. */
typedef struct ebb__where {
    ebb__source *source;
    ebb__typestate *typestate; /* NULL: none */
} ebb__where;

typedef enum ebb__ref_kind {
    EBB__R_NONE,
    EBB__R_DECL,
    EBB__R_STATE,
    EBB__R_ROLE,
    EBB__R_REPORTED
} ebb__ref_kind;

typedef struct ebb__ref {
    uint8_t kind;
    ebb__decl *decl;   /* of DECL: types include messages */
    ebb__state *state; /* of STATE */
    ebb__role *role;
} ebb__ref;

/* What a PATH names. NONE: nothing; use ebb__unknown to report it. REPORTED: something that was reported. */
ebb__ref ebb__lookup_path(ebb_lang *c, ebb__where w, uint32_t path);

/* The same for all but the last name of a path. */
ebb__ref ebb__lookup_prefix(ebb_lang *c, ebb__where w, uint32_t path);
ebb__ref ebb__name_lookup(ebb_lang *c, ebb__where w, ebb__name name, ebb__span at);
void ebb__unknown(ebb_lang *c, ebb__where w, uint32_t path, const char *what);

/* The name closest to `name` among the candidates that `next` gives; 0: none is close. */
ebb__name ebb__closest(const ebb_lang *c, ebb__name name, const ebb__name *candidates, uint32_t n);

/* The last name of a path. */
ebb__name ebb__path_name(const ebb__source *s, uint32_t path);

/* Whether an ATTR is the one that may stand there; if not, it was reported. */
bool ebb__check_attr(ebb_lang *c, const ebb__source *s, uint32_t attr, ebb__name allowed);

/* ---- types in context ---- */

ebb__type ebb__read_type(ebb_lang *c, ebb__where w, uint32_t node);
ebb__type ebb__decl_type(ebb_lang *c, ebb__decl *d);

/* False: a tuple or state of `n` parts has too many, and it was reported. */
bool ebb__check_parts(ebb_lang *c, ebb__span at, uint32_t n);

/* The message that a PATH names; ERROR: reported. `what` for the message. */
ebb__type ebb__read_message(ebb_lang *c, ebb__where w, uint32_t path);
ebb__type ebb__read_choice(ebb_lang *c, ebb__where w, uint32_t choice);

/* ---- questions about declarations ---- */

ebb__state *ebb__state_named(const ebb__typestate *ts, ebb__name name);
ebb__role *ebb__role_named(const ebb__protocol *p, ebb__name name);

/* The request that `payload` is for a receiver of type `to` (a MACHINE or ROLE), or NULL. */
const ebb__req *ebb__req_to(const ebb_lang *c, ebb__type to, ebb__type payload);

/* The request that `payload` is for a typestate, by its roles. */
const ebb__req *ebb__req_of(const ebb__typestate *ts, ebb__type payload);

/* Whether a receiver has a handler or a transition for the message. */
bool ebb__type_accepts(const ebb_lang *c, ebb__type to, ebb__type payload);

/* The response set of an explicit capability in a handler of `ts` for `payload`; 0: none. */
ebb__type ebb__explicit_responses(const ebb__typestate *ts, ebb__type payload);

#endif
