/* durable/worker.h - a worker inside: what its files share.
 *
 * A worker has two regions: its own, which programs close and cancel, and a unit of work in it, where everything runs, so
 * that work that was claimed may finish after a close. Its fibers:
 *
 *   main       joins the store, renews leases, and in the end gives everything back (lease.c)
 *   dispatcher fetches instances, and starts a fiber for the turn of each (dispatch.c)
 *   claimer    fetches activities for free places (activity.c)
 *   a turn     feeds the run of one instance and commits (dispatch.c)
 *   a supervisor one for each activity: opens its region, waits for its end, acks (activity.c)
 *
 * Invariants:
 *  - What can't be done now is not asked for again at once: an instance that is claimed while its turn is in flight is
 *    given back after that turn, and a fetch that has failed is repeated after a pause, whatever has woken the dispatcher.
 *  - `instances` has an entry for each instance that is hot or has a turn now. Hot: a run that waits, and a token with
 *    which the store keeps the instance for this node. A turn in flight owns its entry; nobody else touches its run.
 *  - `activities` has what this worker holds a token of. A token that is gone is renewed and acked no more.
 *  - After `left` nothing is claimed, acked or renewed: the store has given all of it to others. */
#ifndef EBB_DURABLE_WORKER_H
#define EBB_DURABLE_WORKER_H

#include "base/map.h"
#include "durable/engine.h"
#include "durable/store.h"

enum { EBB__ACTIVITY_LISTS = 256 };

typedef struct ebb__registered_orch {
    const char *name;
    uint32_t version;
    ebb_orch_fn fn;
} ebb__registered_orch;

typedef struct ebb__registered_activity {
    struct ebb__registered_activity *next;
    const char *name;
    ebb_activity_fn fn;
    void *arg;
    ebb_activity_opts opts;
    uint32_t running;
} ebb__registered_activity;

/* An instance that is hot, or has a turn now. */
typedef struct ebb__hot {
    ebb_worker *worker;
    uint64_t key;
    char *id;
    uint64_t execution;
    ebb__orch_run *run;             /* NULL: it is cold */
    ebb__orch_run *shadow;          /* of the double run; NULL: none */
    ebb_provider_token token;       /* that keeps it here; 0: none */
    ebb_provider_token later;       /* of a claim that came while its turn was in flight; 0: none */
    ebb_task task;                  /* of its turn; id 0: none */
    bool parked;                    /* the turn that was fed is over */
    uint64_t bytes;                 /* counted in `hot_bytes` of the worker while it is idle */
    struct ebb__hot *newer, *older; /* by last use, while it is idle */
} ebb__hot;

struct ebb_activity {
    ebb_worker *worker;
    ebb__registered_activity *of;
    ebb_activity *next, *prev;           /* of all */
    ebb_activity *next_like, *prev_like; /* of those in the same list of `activities_by_number` */
    ebb__arena arena;
    const char *instance, *name, *id_key;
    uint64_t key, execution, number;
    uint32_t attempt, claim;
    ebb_blob input;
    ebb_provider_token token;
    ebb_region region; /* of its body; id 0: not yet */
    bool gone;         /* the token holds nothing any more, and the body is cancelled */
    bool handed_over;  /* it is to be given back */
    bool returned;     /* the body has */
    bool forced;       /* its supervisor was, and has not seen the end of the body */
    ebb_status status;
    ebb_blob output;
    ebb_failure why;
    bool failed_by_name; /* `why` is set */
};

/* A fiber that naps until it has something to do. */
typedef struct ebb__worker_fiber {
    ebb_task task; /* id 0: it has ended, or has not begun */
    bool begun, woken, keeps_reserve;
    ebb_timer
        reserve; /* armed for a time that never comes: its memory is that of a nap when there is no other */
} ebb__worker_fiber;

/* A node of the store. There is one for activities and one for instances: a fetch of turns whose answer was lost leaves
 * claims behind that nobody knows, and only a new node ends them. The activities must not end with it. */
typedef struct ebb__membership {
    ebb_provider_node node; /* id 0: it has to join */
    uint64_t until;         /* of its lease, by the host's boot clock */
} ebb__membership;

struct ebb_worker {
    ebb_runtime *rt;
    ebb_allocator allocator;
    ebb_store *store;
    ebb__call_gate *gate;
    ebb_region region, unit;
    ebb_worker_opts opts;
    char name[128];
    const char **tags;
    size_t tags_n;
    ebb__arena arena; /* of names and registrations */
    ebb__registered_orch *orchs;
    size_t orchs_n, orchs_room;
    ebb__registered_activity *handlers;
    bool begun, closing, left;
    bool over; /* it is closing, and has nothing to do any more: nothing is fetched */
    ebb__membership work_node, turn_node;
    ebb__worker_fiber main, dispatcher, claimer;
    bool look_for_turns, look_for_work, renew_now;
    bool turns_unknown;           /* the answer of a fetch of turns was lost */
    bool turns_alone, work_alone; /* a suspect runs, and nothing else is claimed */
    bool turn_suspects, work_suspects;
    uint32_t turns;            /* in flight */
    ebb__map instances;        /* key -> ebb__hot * */
    ebb__hot *newest, *oldest; /* idle ones */
    ebb_activity *activities;
    ebb_activity *activities_by_number[EBB__ACTIVITY_LISTS]; /* by a hash of instance, execution and number */
    ebb__hint_listener listener;
    ebb_worker_stats stats;
};

/* ---- worker.c ---- */
void ebb__worker_log(ebb_worker *w, ebb_durable_level level, const char *instance, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* On this fiber of the worker: waits until it is woken, or the time has come. False: it is cancelled. */
bool ebb__worker_nap(ebb_cx *cx, ebb__worker_fiber *f, uint64_t until);
void ebb__worker_wake(ebb_worker *w, ebb__worker_fiber *f);
/* When to look again after a fetch that says `again`: within a lease, because hints may be lost, and what others claim after
 * the fetch lapses without one. */
uint64_t ebb__worker_again(ebb_cx *cx, const ebb_worker *w, uint64_t again);
/* False: the worker is closing, and no unit of work waits for this instance. */
bool ebb__worker_serves(const ebb_worker *w, uint64_t key);
/* False: it is closing, and no unit of work waits for any. */
bool ebb__worker_may_fetch(const ebb_worker *w);
/* Asks the store and waits. NULL: *st says why it was not asked, or this task was cancelled. Else free the call. */
void *ebb__worker_ask(ebb_cx *cx, ebb_provider_call *c, ebb_status *st);
/* The same, again and again until it is done or fails for good. */
void *ebb__worker_insist(ebb_cx *cx, ebb_worker *w, ebb_provider_call *c, ebb_status *st);
/* Asks and does not wait. */
void ebb__worker_tell(ebb_cx *cx, ebb_provider_call *c);

/* ---- lease.c ---- */
ebb_status ebb__worker_main(ebb_cx *cx, void *worker);

/* ---- dispatch.c ---- */
ebb_status ebb__dispatcher(ebb_cx *cx, void *worker);
/* What is registered for a name and version; version 0: the highest. NULL: nothing. */
const ebb__registered_orch *ebb__orch_of(const ebb_worker *w, const char *name, uint32_t version);

/* ---- hot.c ---- */
ebb__hot *ebb__hot_of(ebb_worker *w, const ebb_provider_turn_item *item); /* makes one. NULL: no memory */
ebb__hot *ebb__hot_find(const ebb_worker *w, uint64_t key);
void ebb__hot_idle(ebb_cx *cx, ebb__hot *h);    /* its turn is over; it may be evicted at once */
void ebb__hot_take(ebb__hot *h);                /* its turn begins */
void ebb__hot_discard(ebb_cx *cx, ebb__hot *h); /* the runs; the entry stays */
void ebb__hot_free(ebb_cx *cx, ebb__hot *h);
void ebb__hot_let_go(ebb_cx *cx, ebb_worker *w, ebb_provider_token of); /* the claim alone; does not wait */
void ebb__hot_let_go_all(ebb_cx *cx, ebb_worker *w); /* that are idle; others may have them at once */
void ebb__hot_free_all(ebb_cx *cx, ebb_worker *w);

/* ---- activity.c ---- */
ebb_status ebb__claimer(ebb_cx *cx, void *worker);
/* "NAME", or "NAME@TAG" (`tag` not NULL), in memory of the call. */
const char *ebb__queue_of(ebb_provider_call *c, const char *name, const char *tag);
ebb__registered_activity *ebb__handler_of(const ebb_worker *w, const char *name, size_t n);
bool ebb__worker_has_place(const ebb_worker *w, const ebb__registered_activity *r);
/* Starts an activity whose token this worker has. Without memory it is given back. */
void ebb__activity_start(ebb_cx *cx, ebb_worker *w, ebb__registered_activity *r,
                         const ebb_provider_work_item *item);
void ebb__activity_free_all(ebb_worker *w); /* of a worker whose region has closed */
void ebb__activity_cancel(ebb_activity *a, ebb_cancel_kind kind, const char *why);
ebb_activity *ebb__activity_find(ebb_worker *w, uint64_t key, uint64_t execution, uint64_t number);

/* ---- double_run.c ---- */
/* Runs the turn that `h` has just run once more, on a fiber with other paint. EBB_ERR_NONDETERMINISM: see the shadow's
 * difference. */
ebb_status ebb__double_run(ebb_cx *cx, ebb__hot *h, const ebb_provider_ack_turn_call *ack);
/* Feeds recorded turns up to number `upto` to a run. Waits on the fiber of the turn of `h`. */
ebb_status ebb__hot_replay(ebb_cx *cx, ebb__hot *h, ebb__orch_run *r, uint64_t upto);
ebb__orch_run *ebb__hot_run_new(ebb_cx *cx, ebb__hot *h, const ebb__registered_orch *of, bool exact);
/* Waits until the run that was fed is parked. Its outcome; EBB_CANCELLED: this task is cancelled. */
ebb_status ebb__hot_parked(ebb_cx *cx, ebb__hot *h, ebb__orch_run *r, ebb_status fed);

#endif
