/* A randomised driver over the public API: kernel, scheduler, futures, fibers, workflows, several runtimes.
 *
 * A run is one seed. It has a hub with two or more sides. A side is a runtime with the program that runs on it:
 * tasks, fibers, finalizers, hooks, callbacks and drain handlers, each of which does random operations whenever it
 * has its turn. The program keeps the rules of the API (memory that outlives its users, one wait in use at a time,
 * handles only as long as they are good), and nothing else: which ids it uses, in which order, and how things end
 * is chance. What must hold all the same is in judge.c.
 *
 * With one thread a run is a function of its seed. With threads each side has its own. */
#ifndef EBB_TESTS_DRIVER_H
#define EBB_TESTS_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>

enum {
    SIDES = 2,
    HANDLES = 40,  /* futures that a side remembers */
    PROMISES = 40, /* and those that it has to settle */
    IDS = 24,
    FLOWS = 6,
    REMOTES = 16,
    BRIDGES = 3,
    CLEANUPS = 4, /* of one probe */
    WAITERS = 8   /* in awaits of the driver's own */
};

typedef struct hub hub;
typedef struct side side;

/* ---- memory ----------------------------------------------------------------------------------------------- */

/* Memory of the program, freed when the run is over. */
typedef struct block block;

/* A word that somebody owns. `freed` once when the run is over. */
typedef struct word {
    hub *hub;
    atomic_uint freed;
} word;

/* The allocator of a side: counts, and refuses by chance. */
typedef struct memory {
    atomic_llong live;
    uint64_t dice; /* 0: refuses nothing */
    uint32_t one_in;
    atomic_uint refused;
    bool off;
    pthread_mutex_t lock;
} memory;

/* ---- the parts of a side ---------------------------------------------------------------------------------- */

/* A future that is good as long as `region` is not closed. The pool has one use of it. */
typedef struct handle {
    ebb_future *f;
    ebb_region region;
} handle;

/* A promise that waits for its end. */
typedef struct pledge {
    ebb_future *f;
    ebb_region region;
    bool op, exported;
} pledge;

/* What was heard of a future. */
typedef struct probe {
    side *s;
    uint32_t done, cancels, cleanups;
    uint32_t attached, left; /* cleanups; those that have not run */
    bool ordered, heard;     /* cleanups were all attached before the end; done and cancel are */
    struct probe *next;
} probe;

/* The finalizers of a task that have not begun: they run last first. */
typedef struct finalizers_left {
    uint32_t left;
} finalizers_left;

typedef enum await_kind {
    NOTHING,
    SLEEP,
    SEND,
    RECV,
    ACQUIRE,
    PLACE,
    JOIN_REGION,
    JOIN_TASK,
    FUTURE,
    JOIN_FLOW,
    BRIDGE_SEND,
    BRIDGE_RECV,
    WATCH,
    PARK,
    GRANT, /* an await of the driver's own */
    AWAITS
} await_kind;

typedef enum node_kind { TASK, FIBER, FINALIZER, DRAIN, HOOK } node_kind;

/* A task, finalizer, hook or drain handler. */
typedef struct node {
    side *s;
    node_kind kind;
    ebb_task self;
    uint32_t polls;
    bool stubborn; /* does not end, whatever it is told, until the run does */
    bool waits;    /* an await has said that it is pending */
    await_kind await;
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_region region;
    ebb_task task;
    handle future;
    ebb_workflow flow;
    ebb_bridge *bridge;
    ebb_obligation permit;
    uint64_t item, span, seen;
    finalizers_left own;    /* of the task */
    finalizers_left *stack; /* of a finalizer: where it stands, */
    uint32_t place;         /* and which it is, from 1 on */
    uint32_t ends, begun;
    atomic_uint aborts; /* of an obligation */
    bool committed, counts;
    struct node *next;
} node;

/* Who is told of something that future callbacks do. */
typedef struct call {
    side *s;
    uint32_t uses, releases;
    bool must; /* a finally or bracket that was made */
    struct call *next;
} call;

struct side {
    hub *hub;
    uint32_t number;
    uint64_t dice, now;
    uint64_t advanced; /* as far as its runtime was told */
    memory memory;
    ebb_runtime *rt;
    ebb_peer *peer;
    ebb_chan *chan;
    ebb_broadcast *broadcast;
    ebb_sem sem;
    handle handles[HANDLES];
    pledge pledges[PROMISES];
    uint64_t task[IDS], region[IDS], obligation[IDS], timer[IDS];
    ebb_workflow flow[FLOWS];
    node *waiter[WAITERS];
    ebb_witness witness[IDS];
    ebb_watchdog dog;
    uint32_t tasks, regions, obligations, timers, flows;
    uint32_t ops, max_ops;
    uint32_t depth; /* of hooks and callbacks that do operations */
    node *nodes;
    probe *probes;
    call *calls;
    uint32_t root_stack;
    ebb_audit *audit;
    char *log;
    size_t log_n, log_room;
    uint8_t *trace, *journal;
    size_t trace_n, trace_room, journal_n, journal_room;
    bool recorded, journaled, watched, fibers, force, freed, early, closed;
    atomic_bool inbound;
    uint32_t abandoned;
    uint64_t polls, futures;
    char wrong[200]; /* what the heap's verifier or its guard said */
};

struct hub {
    uint64_t seed;
    uint32_t sides;
    side side[SIDES];
    bool threads;
    atomic_bool ending; /* whatever runs comes to its end */
    pthread_mutex_t lock;
    block *blocks;
    word **words;
    size_t n_words, room_words;
    ebb_remote *remote[REMOTES];
    ebb_bridge *bridge[BRIDGES];
    uint32_t bridge_from[BRIDGES];
    atomic_llong objects; /* made and not freed */
    uint64_t hash;        /* of what happened */
};

/* ---- world.c ---------------------------------------------------------------------------------------------- */

uint64_t dice_next(uint64_t *dice);
/* 0 to n - 1. Never two of these in one expression: their order would be the compiler's. */
uint32_t pick(side *s, uint32_t n);
bool one_in(side *s, uint32_t n);

/* Zeroed, until the run is over. Never NULL. */
void *fresh(hub *h, size_t n);
void free_all(hub *h);
ebb_allocator side_allocator(side *s);
ebb_value some_word(hub *h);
extern const ebb_type word_type, object_type;

bool side_begin(side *s);
void side_free(side *s);
void side_record(side *s, bool flush);
void side_advance(side *s);
bool busy(const side *s); /* it may still do operations */

/* The run has failed: prints what, the seed and how to repeat it, and ends the process. */
_Noreturn void failed(const hub *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* With --talk: what a run does with futures, on stderr. */
extern bool driver_talks;
#define TALK(...)                                                                                            \
    do {                                                                                                     \
        if (driver_talks) fprintf(stderr, __VA_ARGS__);                                                      \
    } while (0)

/* Ids that were made, and odd ones. */
ebb_task some_task(side *s);
ebb_region some_region(side *s);
ebb_region some_target(side *s);
uint64_t some_id(side *s, const uint64_t *ids, uint32_t made);
void remember(side *s, uint64_t *ids, uint32_t *made, uint64_t id);
uint64_t some_span(side *s);
ebb_cancel_kind some_kind(side *s);
ebb_status some_end(side *s);

/* ---- tasks.c ---------------------------------------------------------------------------------------------- */

node *new_node(side *s, node_kind kind);
ebb_status poll_node(ebb_cx *cx, void *state);
ebb_status fiber_node(ebb_cx *cx, void *arg);
ebb_status drain_node(ebb_cx *cx, ebb_drain *d, void *arg);
ebb_status drain_fiber(ebb_cx *cx, ebb_drain *d, void *arg);
void spawn_some(side *s, ebb_cx *cx);
void defer_some(side *s, ebb_cx *cx, node *owner);
void reserve_some(side *s, ebb_cx *cx);
void open_some(side *s, ebb_cx *cx);
/* `owner` is the node whose code this is; NULL: the host's, a hook's or a callback's. */
void any_op(side *s, ebb_cx *cx, node *owner);

/* ---- futures.c -------------------------------------------------------------------------------------------- */

/* A use of a future that the caller consumes; never NULL. */
ebb_future *some_future(side *s, ebb_cx *cx);
handle some_handle(side *s, ebb_cx *cx);
/* Gives a use to the pool, or drops it. A future that was just made is held by the region of cx. */
void put_handle(side *s, handle h);
void put_future(side *s, ebb_cx *cx, ebb_future *f);
void future_op(side *s, ebb_cx *cx);
void use_value(side *s, ebb_cx *cx, ebb_value v);
void settle_some(side *s, bool all);
void forget_closed(side *s);

/* ---- peers.c ---------------------------------------------------------------------------------------------- */

ebb_future *remote_op(side *s, ebb_cx *cx); /* NULL: it was nothing that makes a future */
void put_remote(side *s, ebb_remote *r);
ebb_bridge *some_bridge(side *s, bool from);
void close_hub(hub *h);

/* ---- flows.c ---------------------------------------------------------------------------------------------- */

void flow_op(side *s, ebb_cx *cx);
void flows_end(side *s);

/* ---- judge.c ---------------------------------------------------------------------------------------------- */

/* Nothing happens by itself any more: nobody waits for what has come. */
void judge_idle(side *s);
/* Its root is closed. */
void judge_closed(side *s);
/* Its runtime is freed. */
void judge_records(side *s);
void judge_end(hub *h);

/* ---- run.c ------------------------------------------------------------------------------------------------ */

/* One run, on this thread or on one thread a side. Returns a hash of all traces. */
uint64_t drive(uint64_t seed, bool threads);
extern const char *driver_program; /* for the command that repeats a run */

/* What the runs so far were like: sides. */
typedef struct tally {
    uint64_t sides, early, starved, forced, replayed, polls, futures;
} tally;
extern tally driver_tally;

#endif
