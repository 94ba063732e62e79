/* lang/body.h - checking a body: one walk that infers types, follows linear values and makes the IR.
 *
 * The walk goes in the order of evaluation, so the state of each local at a point is what was seen so far: LIVE, MOVED,
 * or both after branches that disagree. A direct value's state is its type at that point. Where control splits, the
 * states are saved, and merged where it joins (flow.c). In tail position a value leaves the function: each leaf is an
 * exit of its own, so what one branch consumes is not mixed with another.
 *
 * Besides the variables, these are locals too: the implicit reply capability of a handler, and each field of self whose
 * type moves. */
#ifndef EBB_LANG_BODY_H
#define EBB_LANG_BODY_H

#include "lang/check.h"

enum { EBB__LIVE = 1, EBB__MOVED = 2 };

typedef enum ebb__local_kind {
    EBB__L_VAR,
    EBB__L_REPLY,     /* the implicit capability */
    EBB__L_SELF,      /* self of a method that consumes it */
    EBB__L_SELF_FIELD /* `slot` is the index of the field */
} ebb__local_kind;

typedef struct ebb__local {
    uint8_t kind, flow;
    bool mut, used, quiet; /* `quiet`: not reported if it is unused */
    ebb__name name;
    ebb__type type;
    uint32_t slot;
    ebb__span span, drop; /* `drop`: what a fix removes if it is unused; n is 0: nothing */
    ebb__span moved;      /* where it was moved */
} ebb__local;

typedef struct ebb__cell {
    ebb__type type;
    uint8_t flow;
    ebb__span moved;
} ebb__cell;

typedef struct ebb__flow {
    uint32_t n;
    bool dead;
    ebb__cell *cells;
} ebb__flow;

typedef struct ebb__loop {
    struct ebb__loop *outer;
    ebb__flow *head, *out; /* `out`: the merged states at breaks; NULL: none yet */
    uint32_t locals;       /* before the loop */
} ebb__loop;

typedef struct ebb__body {
    ebb_lang *c;
    ebb__where w;
    ebb__source *s;
    ebb__ir_fn *fn;
    ebb__decl *decl;       /* of a function, else NULL */
    ebb__typestate *ts;    /* whose self there is, else NULL */
    ebb__state *state;     /* of self; NULL: any */
    ebb__handler *handler; /* of handlers and timers */
    ebb__type result;
    ebb__type responses; /* of the implicit capability; 0: none */
    bool pure, in_machine, dead, warned_dead, self_owned;
    const char *pure_why;
    ebb__vec locals; /* ebb__local */
    ebb__vec slots;  /* ebb__type */
    ebb__loop *loop;
} ebb__body;

/* ---- flow.c ---- */

ebb__local *ebb__local_at(const ebb__body *b, uint32_t i);
ebb__local *ebb__local_add(ebb__body *b, ebb__local_kind kind, ebb__name name, ebb__type type, ebb__span at);
ebb__local *ebb__local_find(const ebb__body *b, ebb__name name);
ebb__local *ebb__local_reply(const ebb__body *b);
ebb__local *ebb__local_field(const ebb__body *b, uint32_t field);
uint32_t ebb__slot_new(ebb__body *b, ebb__type type);

/* The value is consumed. Reports if it can't be. */
void ebb__flow_move(ebb__body *b, ebb__local *l, ebb__span at);

/* The value is read, and stays where it is. */
void ebb__flow_borrow(ebb__body *b, ebb__local *l, ebb__span at);

ebb__flow *ebb__flow_save(ebb__body *b);
void ebb__flow_load(ebb__body *b, const ebb__flow *f);

/* The present states become those after a join with `f`. `at` is what joins. */
void ebb__flow_merge(ebb__body *b, const ebb__flow *f, ebb__span at);

/* At the end of a loop's body: it must be as at the head. */
void ebb__flow_back(ebb__body *b, ebb__flow *head, ebb__span at);

/* The locals from `from` on leave their scope. */
void ebb__scope_end(ebb__body *b, uint32_t from, ebb__span at);

typedef enum ebb__exit_kind { EBB__EXIT_RETURN, EBB__EXIT_TRY } ebb__exit_kind;

/* Control leaves the function with a value of type `t`. `before` is where a fix may insert a statement; n is 0. */
void ebb__flow_exit(ebb__body *b, ebb__exit_kind kind, ebb__type t, ebb__span at, ebb__span before);

/* ---- making IR ---- */

ebb__ir *ebb__ir_new(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, uint32_t n);
ebb__ir *ebb__ir_invalid(ebb__body *b, ebb__span at);
ebb__ir *ebb__ir_1(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, ebb__ir *x);
ebb__ir *ebb__ir_2(ebb__body *b, ebb__op op, ebb__type type, ebb__span at, ebb__ir *x, ebb__ir *y);

/* ---- infer_*.c: each gives a node, INVALID if something was reported ---- */

/* `expected` guides literals; 0: nothing is known. The type may be another one. */
ebb__ir *ebb__infer(ebb__body *b, uint32_t node, ebb__type expected);

/* The same without consuming a variable or a field of self. */
ebb__ir *ebb__infer_borrowed(ebb__body *b, uint32_t node);

/* The type is `to`, or E0301. */
ebb__ir *ebb__infer_as(ebb__body *b, uint32_t node, ebb__type to);
ebb__ir *ebb__coerce(ebb__body *b, ebb__ir *x, ebb__type to);

ebb__ir *ebb__literal(ebb__body *b, uint32_t node, ebb__type expected); /* of LITERAL and PAT_LITERAL */
ebb__ir *ebb__read_local(ebb__body *b, ebb__local *l, ebb__span span, bool borrow);
ebb__ir *ebb__infer_record(ebb__body *b, uint32_t node);
ebb__ir *ebb__infer_field(ebb__body *b, uint32_t node, bool borrow);
ebb__ir *ebb__infer_index(ebb__body *b, uint32_t node);

/* A state literal; `node` is 0 if it has no braces. */
ebb__ir *ebb__infer_state(ebb__body *b, ebb__state *to, uint32_t node, ebb__span span);
ebb__ir *ebb__infer_call(ebb__body *b, uint32_t node, ebb__type expected);
ebb__ir *ebb__infer_request(ebb__body *b, uint32_t node);
ebb__ir *ebb__infer_emit(ebb__body *b, uint32_t node);
ebb__ir *ebb__infer_if(ebb__body *b, uint32_t node, ebb__type expected, bool tail);
ebb__ir *ebb__infer_match(ebb__body *b, uint32_t node, ebb__type expected, bool tail);

/* The last byte of a node: the brace of a block. */
ebb__span ebb__end_of(const ebb__body *b, uint32_t node);

/* Control reaches the end of a block in tail position: the return of (), or NULL, and what is missing was reported. */
ebb__ir *ebb__infer_fall_off(ebb__body *b, ebb__span end);

/* In tail position the value is returned, and the type is NEVER. */
ebb__ir *ebb__infer_block(ebb__body *b, uint32_t node, ebb__type expected, bool tail);
ebb__ir *ebb__infer_tail(ebb__body *b, uint32_t node);

/* A pattern that looks at a value of type `t`; binds its names. `fails` tells whether some value does not match. */
ebb__ir_pattern *ebb__infer_pattern(ebb__body *b, uint32_t node, ebb__type t);
bool ebb__pattern_fails(ebb_lang *c, const ebb__ir_pattern *p);

/* Checks that the arms cover the type, and that each is needed. `guarded[i]` tells whether an arm has a guard. */
void ebb__check_arms(ebb__body *b, ebb__type t, ebb__ir_pattern **arms, const bool *guarded, uint32_t n,
                     ebb__span at, ebb__span end);

/* Helps to pass errors on from this body: what to declare, with edits if that changes no caller (true), or what else. */
bool ebb__help_errors(ebb__body *b, struct ebb__diag *d, ebb__type errors);

/* An effect at `at`: E0413 in pure code. */
void ebb__effect_at(ebb__body *b, ebb__span at, const char *what);

ebb__ir *ebb__constant(ebb_lang *c, ebb__decl *d, ebb__span at);

#endif
