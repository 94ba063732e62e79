/* A model of the combinators, written from the table in ebb/future.h and nothing else: what becomes of the
 * result, of its inputs and of the callbacks, given the order in which things happen.
 *
 * A *scene* is one combinator and a plan for each future that it meets: its inputs are slots 0 to 2 (those
 * that traverse and retry make too), what its callback returns is slot INNER, what a release returns slot
 * RELEASE. A slot that completes has its own word as its value. */
#ifndef EBB_TESTS_FUTURE_MODEL_H
#define EBB_TESTS_FUTURE_MODEL_H

#include <ebb/ebb.h>

/* How and when a slot ends. NOW: it has before anybody looks. NOTHING: the callback returns NULL. */
typedef enum plan {
    COMPLETES_NOW,
    COMPLETES_LATER,
    FAILS_NOW,
    FAILS_LATER,
    CANCELLED_NOW,
    CANCELLED_LATER,
    NEVER,
    NOTHING,
    PLANS
} plan;

typedef enum combinator {
    THEN,
    MAP,
    CATCH,
    FINALLY,
    BRACKET,
    WITHIN,
    NESTED, /* a promise that is settled with its input */
    DELAY,
    SCHEDULE,
    ALL,
    ALL_SETTLED,
    RACE,
    ANY,
    SELECT,
    TRAVERSE,
    RETRY,
    COMBINATORS
} combinator;

extern const char *const combinator_names[COMBINATORS];
extern const char *const plan_names[PLANS];

enum { INPUTS = 3, INNER = 3, RELEASE = 4, SLOTS = 5, NOBODY = -1 };

/* When the result is cancelled from outside. */
typedef enum moment { NOT_AT_ALL, BEFORE, BETWEEN, AFTER, MOMENTS } moment;

/* Where: in this runtime, or in another one, from where they come by remote handles or by ebb_remote_import. */
typedef enum place { HERE, BY_REMOTE, BY_IMPORT, PLACES } place;

typedef struct scene {
    combinator what;
    int inputs; /* that are there when it is made */
    plan plan[SLOTS];
    int at_once;    /* traverse */
    bool late;      /* within: the time is over before anything ends later */
    bool backwards; /* what ends later does so from the last to the first */
    moment cancel;
    place where; /* the slots live */
} scene;

/* How something ended, as seen from outside. */
typedef struct ending {
    ebb_future_state state;
    ebb_status status;
    ebb_cancel_kind kind;
    int value; /* the slot whose word it has; NOBODY */
} ending;

typedef struct model {
    const scene *scene;
    bool made[SLOTS];   /* by the world or a callback */
    bool waited[SLOTS]; /* the result waits for it, and owns it */
    ending slot[SLOTS];
    ending result;
    bool is_list, is_selected;
    ending list[INPUTS];
    int left;            /* inputs that have not been heard of */
    ebb_status failure;  /* the last that `any` skipped */
    int next;            /* traverse, retry: what is made next */
    int calls, releases; /* of callbacks */
    bool releasing;
    ending before; /* how it is to end after the release */
} model;

ebb_status slot_failure(int slot); /* the status that it fails with, if it does */

/* The result was made: its inputs are slots 0 to inputs - 1. */
void model_start(model *m, const scene *s);
/* A slot that was made has ended as its plan says, and if the result waits for it, that hears of it now. */
void model_hears(model *m, int i);
/* A slot that was not cancelled meanwhile ends: does not tell anybody. */
void model_ends(model *m, int i);
/* Somebody cancels the result. */
void model_cancel(model *m, ebb_cancel_kind kind);
/* The span of within, delay or schedule is over. */
void model_time_is_over(model *m);
/* The callback runner has begun to work on it: traverse and retry call their callbacks. */
void model_begins(model *m);

#endif
