/* durable/run.h - a run inside: what the files of the engine share. All others use engine.h.
 *
 * A turn is fed in two passes. First its inputs are taken in order: steps end, signals arrive (input.c). What follows
 * from that without the code's doing, the next attempt of a call and the cancel set of a cancel, is kept as *consequences*,
 * because a history has all inputs of a turn before its actions. Then the consequences are carried out and the code is
 * resumed; each action, mark and end goes through ebb__run_emit, which writes it or compares it with the record
 * (replay.c).
 *
 * Invariants:
 *  - `outstanding` has exactly the steps whose state is EBB__STEP_OUTSTANDING, in the order in which they were made.
 *  - `targets` is sorted by number: a number is given to each attempt and timer of a call too.
 *  - `wants` has what this turn asks of the store, by rising number. What the turn loses again is marked `gone`.
 *  - An `outcome` other than EBB_OK is final: the fiber is never resumed, and nothing is committed. */
#ifndef EBB_DURABLE_RUN_H
#define EBB_DURABLE_RUN_H

#include <string.h>

#include "durable/engine.h"
#include "durable/store.h"
#include "fiber/fiber.h"

enum { EBB__CODE_MOST = 64 << 20, EBB__VALUES_BYTES = 256 << 10, EBB__CARRIED_BYTES = 16 << 20 };
#define EBB__CLEANUP_SPAN (UINT64_C(24) * 3600 * EBB_SECOND)

typedef enum ebb__step_kind {
    EBB__STEP_CALL = 1,
    EBB__STEP_TIMER = 2,
    EBB__STEP_EVENT = 3,
    EBB__STEP_CHILD = 4
} ebb__step_kind;

typedef enum ebb__step_state {
    EBB__STEP_OUTSTANDING = 1,
    EBB__STEP_ENDED = 2,
    EBB__STEP_USED = 3
} ebb__step_state;

typedef struct ebb__step ebb__step;
struct ebb__step {
    uint64_t id; /* the event number of its first action */
    ebb__step_kind kind;
    ebb__step_state state;
    bool kept, shielded;
    bool cancelled;       /* by the cancel of the instance, and no await has returned that yet */
    uint64_t ended_at;    /* the event that ended it */
    ebb_status status;    /* of an ended step */
    ebb_blob value;       /* of a completed one */
    ebb_failure why;      /* of a failed one; code NULL: nothing is known */
    ebb__event_text name; /* of the activity, signal or child */
    ebb_blob input;       /* of a call */
    const char *child;    /* the id */
    ebb_call_opts policy; /* of a call */
    uint32_t attempt;     /* of a call, from 1 on */
    uint64_t running;     /* of a call: the number of the attempt that is outstanding; 0: none */
    uint64_t pause;       /* of a call: the timer before its next attempt; 0: none */
    uint64_t deadline;    /* of a call: the timer of its attempt; 0: none */
    const char *site;
    ebb__step *next, *prev; /* in `outstanding` */
};

typedef struct ebb__list { /* grows in an arena */
    void *at;
    size_t n, room;
} ebb__list;

typedef struct ebb__target {
    uint64_t number;
    ebb__step *step;
} ebb__target;

typedef struct ebb__signal { /* a signal that nobody has used up */
    uint64_t number;
    ebb__event event;
    ebb__step *taken; /* by an event step that was not awaited yet */
    struct ebb__signal *next;
} ebb__signal;

typedef enum ebb__want_kind { EBB__WANT_WORK = 1, EBB__WANT_TIMER = 2, EBB__WANT_CHILD = 3 } ebb__want_kind;
typedef struct ebb__want {
    ebb__want_kind kind;
    bool gone;
    uint64_t number;
    ebb__step *step;
    uint64_t due;                /* of a timer */
    ebb_provider_outgoing start; /* of a child */
} ebb__want;

typedef enum ebb__consequence_kind {
    EBB__THEN_RETRY = 1,  /* an attempt has failed: the pause, or the next */
    EBB__THEN_NEXT = 2,   /* the pause is over */
    EBB__THEN_DROP = 3,   /* the attempt `number` was out of time: its row goes */
    EBB__THEN_UNTIME = 4, /* the timer `number` is not needed any more */
    EBB__THEN_CANCEL = 5, /* the instance is cancelled: the time for its cleanup begins */
    EBB__THEN_LOSE = 6,   /* `step` is cancelled with the instance */
    EBB__THEN_TERMINATE = 7
} ebb__consequence_kind;
typedef struct ebb__consequence {
    ebb__consequence_kind kind;
    ebb__step *step;
    uint64_t number;
} ebb__consequence;

typedef struct ebb__value {
    const char *key;
    ebb_blob value; /* at NULL: removed */
    bool set;       /* in this turn */
} ebb__value;

typedef struct ebb__patch {
    ebb__event_text name;
    bool answer;
} ebb__patch;

struct ebb_orch {
    ebb__orch_run_opts opts;
    ebb_allocator allocator;
    ebb_runtime *rt;
    ebb_cx *cx;     /* of the fiber, from its first run on */
    ebb_task task;  /* id 0: none */
    ebb_wait *wait; /* on the fiber's stack, while it is parked; else NULL */
    bool fed;       /* a turn is being run */
    bool begun;     /* the fiber has run */
    bool returned;  /* the code has */
    bool replaying; /* this turn is a recorded one */
    ebb_status outcome;
    char difference[600];

    uint64_t turn, event; /* the last */
    uint64_t first;       /* number of the first event of this turn */
    uint64_t now;         /* of this turn */
    uint32_t actions;     /* in this turn */

    ebb__arena memory;  /* of the run */
    ebb__arena code;    /* of ebb_orch_alloc */
    ebb__arena scratch; /* of this turn */
    uint64_t bytes, code_bytes;

    ebb__event_writer writer; /* of a new turn */
    ebb__event_reader record; /* of a recorded turn, behind its inputs */
    ebb__list wants, consequences, dropped, untimed, ended_children; /* of this turn */
    bool all_work;         /* this turn ends the execution, and no call runs on */
    ebb_cancel_kind cause; /* of `all_work` */

    ebb__list targets, values, patches;
    ebb__step *outstanding, *outstanding_last;
    uint32_t waits; /* event steps in `outstanding` */
    ebb__signal *signals, *signals_last;
    uint32_t signals_n; /* not taken */
    uint64_t values_bytes;
    const ebb_blob *custom; /* to be stored with this turn; NULL: as it is */
    const ebb_blob *status; /* the last that was set, in this turn or before; NULL: none */

    ebb__event started; /* texts and blobs in `memory` */
    const char *parent;
    uint32_t version;
    ebb__event_seed seed; /* of `started`, or of the last reset: ids of children are made of it */
    uint64_t random[2];   /* goes on from the seed */
    bool cancelled,
        cancel_untold; /* untold: it came before the code has run, and no await has returned it yet */
    const char *cancel_reason;
    uint64_t cleanup_by, cleanup_timer;

    ebb_failure failure; /* of the last await, join or select */
    ebb_failure own;     /* of ebb_orch_fail; code NULL and `own_set` false: none */
    bool own_set;
    bool continued;
    ebb_blob next_input;
    uint32_t next_version;

    ebb_instance_state ends; /* 0: it goes on */
    bool continues;          /* the end is a continue-as-new */
    ebb__event end;          /* its event */
};

/* ---- run.c ---- */
/* Memory of the run; its failure ends the turn with EBB_ERR_NOMEM. Called on the fiber, it does not return then. */
void *ebb__run_new(ebb_orch *r, size_t n);
ebb_blob ebb__run_copy(ebb_orch *r, ebb_blob b);
const char *ebb__run_text(ebb_orch *r, const char *at, size_t n);
/* Adds a zeroed entry. NULL: no memory, as ebb__run_new. */
void *ebb__run_add(ebb_orch *r, ebb__arena *arena, ebb__list *l, size_t size);
/* Ends the turn without a commit. On the fiber it does not return. */
void ebb__run_fail(ebb_orch *r, ebb_status st);
/* On the fiber: the turn is over; returns in the next. */
void ebb__run_pause(ebb_orch *r);
/* The context is the run's own fiber, which runs now. */
bool ebb__run_is_here(const ebb_orch *r);

/* ---- replay.c ---- */
/* Writes an event, or compares it with the record. Returns its number; 0: the turn has failed (only off the fiber). */
uint64_t ebb__run_emit(ebb_orch *r, const ebb__event *e, const char *site);
/* True if the next recorded event is this patch marker. False in a new turn. */
bool ebb__run_next_is_patch(const ebb_orch *r, ebb__event_text name, bool *answer);
/* At the end of a turn: the record must be used up. */
void ebb__run_check_end(ebb_orch *r);

/* ---- input.c ---- */
bool ebb__run_concerns(ebb_orch *r, const ebb__event *e);
void ebb__run_take(ebb_orch *r, const ebb__event *e);
void ebb__run_serve(ebb_orch *r, ebb__event_text name); /* gives a signal to the oldest wait for that name */
ebb__signal *ebb__run_signal(const ebb_orch *r, ebb__event_text name); /* the oldest that nobody has taken */
void ebb__run_use_signal(ebb_orch *r, ebb__signal *g);

/* ---- step.c ---- */
ebb__step *ebb__run_step(const ebb_orch *r,
                         uint64_t number); /* the step of an action, attempt or timer; NULL */
ebb__want *ebb__run_want(ebb_orch *r, ebb__want_kind kind, ebb__step *s, uint64_t number, uint64_t due);
bool ebb__run_target(ebb_orch *r, ebb__step *s, uint64_t number);
void ebb__step_end(ebb_orch *r, ebb__step *s, uint64_t at, ebb_status st, const ebb__event *e);
uint16_t ebb__run_tag(const ebb_orch *r);
/* When a span from this turn on is over: at most INT64_MAX, as stores keep times. */
uint64_t ebb__run_due(const ebb_orch *r, uint64_t span);
/* EBB_OK, the error that the id carries, EBB_ERR_STALE, EBB_ERR_FOREIGN. */
ebb_status ebb__step_find(const ebb_orch *r, ebb_step id, ebb__step **out);
bool ebb__name_is_valid(const char *name);
/* Whether an instance may be started with this id: "." and ".." are no segments of a path, in which ids are sent. */
bool ebb__id_may_start(const char *id);
uint64_t ebb__mixed(uint64_t x);
void ebb__uuid_say(uint64_t high, uint64_t low, char out[37]); /* a UUID of these random numbers */
/* A seed for the child with this number (0: for the next execution), of the run's own seed. */
ebb__event_seed ebb__run_seed(const ebb_orch *r, uint64_t number);

/* ---- retry.c ---- */
void ebb__call_attempt(ebb_orch *r, ebb__step *s); /* schedules the next attempt */
void ebb__call_again(ebb_orch *r, ebb__step *s);   /* the pause, or the next attempt */
bool ebb__call_may_retry(const ebb__step *s, bool final);

/* ---- turn.c ---- */
void ebb__turn_open(ebb_orch *r);
/* Cancels a step: its mark, and what the commit deletes. The step is ended already. */
void ebb__turn_cancel(ebb_orch *r, ebb__step *s, ebb_cancel_kind cause);
void ebb__turn_drop(ebb_orch *r, uint64_t attempt, ebb_cancel_kind cause);
void ebb__turn_untime(ebb_orch *r, uint64_t timer);
void ebb__turn_consequences(ebb_orch *r);
/* The code has returned. */
void ebb__turn_end(ebb_orch *r, ebb_status st, ebb_blob out);

/* Little-endian, on every machine. */
static inline void ebb__seed_words(const ebb__event_seed *seed, uint64_t out[2]) {
    out[0] = out[1] = 0;
    for (size_t i = 0; i < sizeof seed->at; i++) out[i / 8] |= (uint64_t)seed->at[i] << i % 8 * 8;
}
static inline ebb__event_text ebb__text_of(const char *text) {
    ebb__event_text t = {text, strlen(text)};
    return t;
}
static inline bool ebb__same_text(ebb__event_text a, ebb__event_text b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

#endif
