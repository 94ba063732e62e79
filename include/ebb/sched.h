/* ebb/sched.h - what runs next: the pump, timers, stackless tasks, channels, semaphores, messages
 * between runtimes, replay, and the lab in which all of it is tested.
 *
 * The rules at the head of ebb/kernel.h hold here too. */
#ifndef EBB_SCHED_H
#define EBB_SCHED_H

#include <ebb/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pump --------------------------------------------------------------------------------------- */

/* Sets the time; it never goes back (an earlier one is ignored). Timers fire in the next pump. */
void ebb_advance(ebb_rt *rt, uint64_t now);

/* Fires timers that are due and polls at most `max_polls` tasks, in three lanes: cancel (by cleanup
 * deadline), timed (by deadline), ready (first come, first served). When all have work the cycle is
 * 8 : 1 : 1, so the head of a lane waits for at most 2, 9 and 9 polls of the other lanes.
 * EBB_PENDING: there is more to do at this time; EBB_OK: nothing until somebody wakes, cancels or
 * advances. EBB_ERR_REENTERED from inside a poll: nothing was done, the work waits for the pump that
 * runs. May allocate, but does not fail without memory. */
ebb_status ebb_pump(ebb_rt *rt, uint32_t max_polls);

/* When the pump has something to do if nothing else happens: now, a time, or EBB_FOREVER. */
uint64_t ebb_next_due(const ebb_rt *rt);

/* ---- timers ------------------------------------------------------------------------------------- */

/* Wakes `task` once, at the first millisecond that is not before `due`. The id is spent when it has
 * fired. A timer does not end with its task: it fires and wakes nobody, unless it is disarmed.
 * EBB_ERR_NOMEM, EBB_ERR_STALE, EBB_ERR_FOREIGN as an id that carries the error. */
typedef struct ebb_timer {
    uint64_t id;
} ebb_timer;
ebb_timer ebb_timer_arm(ebb_cx *cx, ebb_task task, uint64_t due);
/* EBB_ERR_STALE if it has fired or was disarmed. */
ebb_status ebb_timer_disarm(ebb_cx *cx, ebb_timer timer);

/* Waits for a time span. A poll operation and a checkpoint; `s` is zeroed before and reusable after. */
typedef struct ebb_sleeper {
    ebb_wait wait;
    ebb_timer timer;
    uint64_t due;
} ebb_sleeper;
ebb_status ebb_sleep(ebb_cx *cx, ebb_sleeper *s, uint64_t span);

/* ---- stackless tasks ------------------------------------------------------------------------------ */

/* A poll function written as if it could wait:
 *
 *     typedef struct { EBB_TASK_STATE; ebb_sleeper nap; int n; } hello;
 *     static ebb_status hello_poll(ebb_cx *cx, void *state) {
 *         hello *h = state;
 *         ebb_status st;
 *         EBB_BEGIN(h);
 *         for (h->n = 0; h->n < 3; h->n++) {
 *             EBB_AWAIT(h, st, ebb_sleep(cx, &h->nap, 10 * EBB_MS));
 *             if (st != EBB_OK) return st;
 *         }
 *         EBB_END(h);
 *     }
 *
 * What must live across an EBB_AWAIT stands in the state, not in locals. No EBB_AWAIT inside a switch
 * of your own. EBB_YIELD lets others run first. EBB_END returns EBB_OK. */
#define EBB_TASK_STATE unsigned ebb_line
#define EBB_BEGIN(s)                                                                                         \
    switch ((s)->ebb_line) {                                                                                 \
    case 0:
#define EBB_AWAIT(s, st, operation)                                                                          \
    do {                                                                                                     \
        (s)->ebb_line = __LINE__;                                                                            \
        EBB_FALLTHROUGH;                                                                                     \
    case __LINE__:                                                                                           \
        if (((st) = (operation)) == EBB_PENDING) return EBB_PENDING;                                         \
    } while (0)
#define EBB_YIELD(cx, s)                                                                                     \
    do {                                                                                                     \
        (s)->ebb_line = __LINE__;                                                                            \
        (void)ebb_wake((cx), ebb_self(cx));                                                                  \
        return EBB_PENDING;                                                                                  \
    case __LINE__:;                                                                                          \
    } while (0)
#define EBB_END(s)                                                                                           \
    }                                                                                                        \
    (s)->ebb_line = 0;                                                                                       \
    return EBB_OK
#if defined(__GNUC__)
#define EBB_FALLTHROUGH __attribute__((fallthrough))
#else
#define EBB_FALLTHROUGH (void)0
#endif

/* ---- channel -------------------------------------------------------------------------------------- */

/* A bounded queue of items of one size between tasks of one runtime. Sending has two phases: reserve
 * a place, then send into it; what could not be sent is still yours. Receiving is cancel-safe: an
 * item is delivered or still in the queue. Waiters are served first come, first served. The host may
 * send and receive too, but can't wait: EBB_ERR_NOT_TASK instead of EBB_PENDING. */
typedef struct ebb_chan ebb_chan;

/* EBB_ERR_NOMEM, EBB_ERR_INVALID (capacity 0, or more than 2 GiB of items). Free it when no task can touch
 * it any more: after the region of the tasks that do has closed, before or after ebb_rt_free. */
ebb_status ebb_chan_new(ebb_rt *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out);
void ebb_chan_free(ebb_chan *ch);

/* Sends a copy of an item, waiting for a place. A poll operation and a checkpoint. EBB_ERR_CLOSED
 * once the channel is closed; the item was not sent then, nor if EBB_CANCELLED. */
ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item);
/* Receives into `item`. EBB_ERR_CLOSED once it is closed and empty. */
ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item);

/* The two phases by themselves. A reserved place is an obligation of the task (EBB_PERMIT): send with
 * it, or abort it; a task that ends with one has leaked it, and the place is free again. (ebb_commit
 * would resolve it without sending: the place would be lost.) */
ebb_status ebb_chan_reserve(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, ebb_obligation *permit);
ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item);

/* No more sending; what is in it can still be received. Wakes everybody. */
void ebb_chan_close(ebb_cx *cx, ebb_chan *ch);
uint32_t ebb_chan_length(const ebb_chan *ch);

/* ---- semaphore ------------------------------------------------------------------------------------ */

/* Counted permits. First come, first served; a permit that was granted to a waiter which is then
 * cancelled goes to the next. */
typedef struct ebb_sem {
    uint32_t free;
    ebb_wait *first, *last;
} ebb_sem;

void ebb_sem_init(ebb_sem *s, uint32_t permits);
/* A poll operation and a checkpoint. EBB_ERR_NOT_TASK if the host would have to wait. */
ebb_status ebb_sem_acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w);
void ebb_sem_release(ebb_cx *cx, ebb_sem *s);

/* ---- messages between runtimes --------------------------------------------------------------------- */

/* What one runtime may ask of another. Carrying it there is the host's business (the lab's, a
 * loop's); it takes effect when the receiver takes it in, and stands in the receiver's journal. */
typedef enum ebb_verb {
    EBB_MSG_WAKE = 1,
    EBB_MSG_CANCEL = 2,
    EBB_MSG_CLOSE = 3,
    EBB_MSG_FORCE = 4,
    EBB_MSG_WORD = 5
} ebb_verb;

typedef struct ebb_msg {
    ebb_verb verb;
    ebb_cancel_kind kind;
    uint64_t target; /* a task (wake, cancel, force) or region (all but wake) of the receiver */
    bool to_region;
    uint64_t word;  /* for whoever is woken */
    uint64_t left;  /* of a cancelled region: ns to clean up, EBB_FOREVER: no bound. 0: the table's budget */
    uint32_t polls; /* with that: of each of its tasks */
    char message[EBB_MESSAGE_MAX + 1];
} ebb_msg;

/* Takes a message in. EBB_ERR_FOREIGN if it is for somebody else; EBB_ERR_INVALID; stale targets are
 * counted, like any late wake. */
ebb_status ebb_receive(ebb_rt *rt, const ebb_msg *msg);

/* ---- replay ---------------------------------------------------------------------------------------- */

/* Drives a new runtime with a journal: the same inputs, ghosts in place of the tasks' code. What it
 * writes to `trace` (may be NULL) is byte for byte the trace of the recorded run, if that was flushed
 * only at its end. On failure `message` says what was expected and found at which operation:
 * EBB_ERR_DIVERGED; as ebb_reader_next; EBB_ERR_INVALID for a journal with a gap or one that was not
 * started first; EBB_ERR_LIMIT; EBB_ERR_NOMEM. See docs/journal.md. */
typedef struct ebb_replay_result {
    uint64_t operations;
    char message[160];
} ebb_replay_result;
ebb_status ebb_replay(ebb_allocator a, const void *journal, size_t n, ebb_write_fn trace, void *ctx,
                      ebb_replay_result *out);

/* ---- lab --------------------------------------------------------------------------------------------- */

/* Runs programs under a scheduler that takes every decision through one chooser, in virtual time, with
 * the oracles watching every event. A decision is: whose turn it is, how many tasks it polls (1 to 4),
 * which of the runnable tasks near the head of a lane, which message between runtimes arrives next, when
 * time moves on, when the scenario does something from outside, and how it all ends. The same scenario,
 * seed and choices give the same run, byte for byte of its trace; so what fails once can be run again,
 * cut down and kept.
 *
 * A *scenario* builds work in one or more runtimes that live in one thread. Runtimes have the ids 1, 2,
 * ...; messages between two of them arrive in the order they were sent, those of different pairs in any
 * order. The clock is one, but a runtime learns the time when it has its turn, as loops do. */
typedef struct ebb_lab ebb_lab;
#define EBB_LAB_RUNTIMES 8

typedef struct ebb_scenario {
    const char *name;  /* one word */
    const char *about; /* one line */
    uint32_t runtimes; /* 0: 1; at most EBB_LAB_RUNTIMES */
    uint32_t steps;    /* how often `step` is to be called */
    size_t state_size; /* of ebb_lab_state */
    /* Builds regions and tasks, in ebb_lab_region of each runtime. Called once a round, with a zeroed
     * state; nothing of the round before is alive then. */
    ebb_status (*setup)(ebb_lab *lab);
    /* Does the n-th thing from outside, n < steps, in order, whenever the chooser says so. */
    void (*step)(ebb_lab *lab, uint32_t n);
    /* A message is about to be taken in by its receiver: the place to hand over its word. */
    void (*received)(ebb_lab *lab, const ebb_msg *msg);
    /* Another round follows: makes what runs outside of ebb_lab_region end. The lab closes or cancels
     * those regions; after the last round it ends the roots, and with them everything. */
    void (*finish)(ebb_lab *lab);
    /* All has ended well. What is wrong is told to ebb_lab_fail. */
    void (*check)(ebb_lab *lab);
    /* Frees what setup made: called whatever happened, before the round's own memory goes. */
    void (*teardown)(ebb_lab *lab);
} ebb_scenario;
/* Each function may be NULL. */

/* For scenarios and the tasks they spawn. */
ebb_rt *ebb_lab_runtime(ebb_lab *lab, uint32_t i);         /* i from 0 on */
ebb_region ebb_lab_region(const ebb_lab *lab, uint32_t i); /* its region for this round */
void *ebb_lab_state(ebb_lab *lab);
void *ebb_lab_alloc(ebb_lab *lab, size_t n);       /* zeroed, until the round is over; NULL: no memory */
uint32_t ebb_lab_choose(ebb_lab *lab, uint32_t n); /* 0 to n - 1; n at most 65535 */
uint32_t ebb_lab_round(const ebb_lab *lab);        /* 0 for the first */
void ebb_lab_send(ebb_lab *lab, ebb_cx *from, const ebb_msg *msg); /* to the runtime of msg->target */
void ebb_lab_fail(ebb_lab *lab, const char *text); /* the run is over; the first text stands, copied */

/* What is run: a scenario, and where its decisions come from. */
typedef struct ebb_lab_case {
    const ebb_scenario *scenario;
    uint64_t seed;
    bool recorded;     /* decisions are `choices`, then always the first; else they come from the seed */
    uint16_t *choices; /* each is taken modulo the number of ways there are */
    size_t n_choices;
    char *script; /* for `storm`: its lines, instead of those that the seed makes. NULL: none */
    size_t script_n;
    int plant;        /* the oracle whose bug is planted, in builds that have them; 0: none */
    char failure[32]; /* what went wrong, as ebb_lab_result.failure; "": nothing yet */
} ebb_lab_case;

typedef struct ebb_lab_opts {
    uint32_t size;       /* sizeof(ebb_lab_opts) of the caller; 0: this one */
    uint64_t min_events; /* starts another round until so many were traced. 0: one round */
    uint64_t max_steps;  /* decisions a round before it counts as a livelock. 0: 50,000 */
    /* Take the traces and journals, as they come; NULL: nobody does. */
    void (*trace)(void *ctx, uint32_t runtime, const void *bytes, size_t n);
    void (*journal)(void *ctx, uint32_t runtime, const void *bytes, size_t n);
    void *ctx;
} ebb_lab_opts;

typedef struct ebb_lab_result {
    ebb_status status; /* EBB_OK: nothing is wrong */
    char failure[32];  /* the oracle's name, or "livelock", "check" (ebb_lab_fail), "script"; "": none */
    char text[200];    /* what was expected and what was found */
    uint32_t runtime;  /* where */
    ebb_event event;   /* at which event; type 0: none */
    uint64_t events, steps;
    uint32_t rounds;
    size_t choices; /* decisions that had more than one way */
} ebb_lab_result;

/* NULL: no memory. One thread at a time. */
ebb_lab *ebb_lab_new(ebb_allocator a);
void ebb_lab_free(ebb_lab *lab); /* NULL is allowed */

/* Runs a case to its end: all rounds, then everything is closed, and the oracles have the last word.
 * Returns out->status: EBB_OK, EBB_ERR_ORACLE, EBB_ERR_LIMIT (livelock), EBB_FAILED (check),
 * EBB_ERR_SYNTAX (script), EBB_ERR_NOMEM, EBB_ERR_INVALID. `opts` may be NULL. */
ebb_status ebb_lab_run(ebb_lab *lab, const ebb_lab_case *c, const ebb_lab_opts *opts, ebb_lab_result *out);

/* Makes `c` a case that repeats the last run: its choices, script and failure. What `c` had is freed.
 * EBB_ERR_NOMEM: unchanged. */
ebb_status ebb_lab_capture(ebb_lab *lab, ebb_lab_case *c);
void ebb_lab_case_free(ebb_lab *lab, ebb_lab_case *c); /* its choices and script */

typedef struct ebb_explore_opts {
    uint32_t size;      /* sizeof(ebb_explore_opts) of the caller; 0: this one */
    uint64_t schedules; /* at most so many; 0: 1000 */
    uint32_t depth;     /* 0: random, one seed after the other. Else every way that the first `depth`
                           decisions can go is tried, and the rest take the first way */
    void (*progress)(void *ctx, uint64_t done, uint64_t of); /* after each run; may be NULL */
    void *ctx;
} ebb_explore_opts;

typedef struct ebb_explore_result {
    uint64_t schedules;     /* that were run, the failing one included */
    bool exhausted;         /* with `depth`: there are no more */
    ebb_lab_result failure; /* its status is EBB_OK if all is well */
} ebb_explore_result;

/* Looks for a schedule of c->scenario that fails, from c->seed on; captures it in `c`. Returns
 * out->failure.status. */
ebb_status ebb_lab_explore(ebb_lab *lab, ebb_lab_case *c, const ebb_explore_opts *opts,
                           ebb_explore_result *out);

/* Cuts a captured case down while it fails in the same way: drops lines and steps of its script, then
 * shortens its choices. `runs` is how many tries it may take (0: 20,000). Returns EBB_OK, or
 * EBB_ERR_INVALID if it does not fail, EBB_ERR_NOMEM with the case as far as it got. */
ebb_status ebb_lab_shrink(ebb_lab *lab, ebb_lab_case *c, uint32_t runs,
                          void (*progress)(void *ctx, uint64_t done, uint64_t of), void *ctx);

/* A case as text, to keep; docs/lab.md has the format. Load finds the scenario among the built-in ones
 * and `own` (may be NULL). EBB_ERR_SYNTAX, EBB_ERR_VERSION: `error` says which line and what was
 * expected there. EBB_ERR_NOMEM. */
typedef struct ebb_lab_error {
    uint32_t line;
    char text[160];
} ebb_lab_error;
void ebb_lab_save(const ebb_lab_case *c, ebb_write_fn write, void *ctx);
ebb_status ebb_lab_load(ebb_lab *lab, const char *bytes, size_t n, const ebb_scenario *own, ebb_lab_case *out,
                        ebb_lab_error *error);

/* The built-in scenarios, NULL after the last. */
const ebb_scenario *ebb_lab_scenario(size_t i);

#ifdef __cplusplus
}
#endif
#endif
