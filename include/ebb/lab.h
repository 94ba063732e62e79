/* ebb/lab.h - testing by schedule: a lab that takes every decision of the scheduler, the explorer and the
 * shrinker of failing schedules, replay of a journal, and cancellation injected at every suspension point.
 *
 * Everything here runs in virtual time on the thread that calls it. The rules at the head of ebb/kernel.h hold
 * here too. */
#ifndef EBB_LAB_H
#define EBB_LAB_H

#include <ebb/sched.h>
#include <ebb/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct ebb_lab_scenario {
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
} ebb_lab_scenario;
/* Each function may be NULL. */

/* For scenarios and the tasks they spawn. */
ebb_runtime *ebb_lab_runtime(ebb_lab *lab, uint32_t i);    /* i from 0 on */
ebb_region ebb_lab_region(const ebb_lab *lab, uint32_t i); /* its region for this round */
void *ebb_lab_state(ebb_lab *lab);
void *ebb_lab_alloc(ebb_lab *lab, size_t n);       /* zeroed, until the round is over; NULL: no memory */
uint32_t ebb_lab_choose(ebb_lab *lab, uint32_t n); /* 0 to n - 1; n at most 65535 */
uint32_t ebb_lab_round(const ebb_lab *lab);        /* 0 for the first */
void ebb_lab_send(ebb_lab *lab, ebb_cx *from, const ebb_msg *msg); /* to the runtime of msg->target */
void ebb_lab_fail(ebb_lab *lab, const char *text); /* the run is over; the first text stands, copied */

/* What is run: a scenario, and where its decisions come from. */
typedef struct ebb_lab_case {
    const ebb_lab_scenario *scenario;
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

typedef struct ebb_lab_explore_opts {
    uint32_t size;      /* sizeof(ebb_lab_explore_opts) of the caller; 0: this one */
    uint64_t schedules; /* at most so many; 0: 1000 */
    uint32_t depth;     /* 0: random, one seed after the other. Else every way that the first `depth`
                           decisions can go is tried, and the rest take the first way */
    void (*progress)(void *ctx, uint64_t done, uint64_t of); /* after each run; may be NULL */
    void *ctx;
} ebb_lab_explore_opts;

typedef struct ebb_lab_explore_result {
    uint64_t schedules;     /* that were run, the failing one included */
    bool exhausted;         /* with `depth`: there are no more */
    ebb_lab_result failure; /* its status is EBB_OK if all is well */
} ebb_lab_explore_result;

/* Looks for a schedule of c->scenario that fails, from c->seed on; captures it in `c`. Returns
 * out->failure.status. */
ebb_status ebb_lab_explore(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_explore_opts *opts,
                           ebb_lab_explore_result *out);

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
ebb_status ebb_lab_load(ebb_lab *lab, const char *bytes, size_t n, const ebb_lab_scenario *own,
                        ebb_lab_case *out, ebb_lab_error *error);

/* The built-in scenarios, NULL after the last. */
const ebb_lab_scenario *ebb_lab_scenario_at(size_t i);

/* ---- replay ---------------------------------------------------------------------------------------- */

/* Drives a new runtime with a journal: the same inputs, ghosts in place of the tasks' code. What it
 * writes to `trace` (may be NULL) is byte for byte the trace of the recorded run, if that was flushed
 * only at its end. On failure `message` says what was expected and found at which operation:
 * EBB_ERR_DIVERGED; as ebb_trace_reader_next; EBB_ERR_INVALID for a journal with a gap or one that was not
 * started first; EBB_ERR_LIMIT; EBB_ERR_NOMEM. See docs/journal.md. */
typedef struct ebb_journal_replay_result {
    uint64_t operations;
    char message[160];
} ebb_journal_replay_result;
ebb_status ebb_journal_replay(ebb_allocator a, const void *journal, size_t n, ebb_write_fn trace, void *ctx,
                              ebb_journal_replay_result *out);

/* ---- injection ----------------------------------------------------------------------------------------- */

/* Runs a program again and again in virtual time, and asks it to stop at another place each time: at every
 * suspension point (after each poll of a task), and there again when the workflow comes into each of its
 * states (once as a second request, once as a cancel from around it, once as force), and by force after each
 * later poll, so that drain handlers are cut at each of theirs. After each run all oracles of the kernel must
 * hold on its trace, its audit log must verify, nothing may be left, and `check` must agree. A drain that
 * hangs until its budget is over is no failure but counts as forced: a `check` that minds looks at
 * report->drain_timed_out && !report->forced. There is no loop: functions of ebb/loop.h say
 * EBB_ERR_INVALID.
 *
 * The types of workflows are those of ebb/workflow.h, which a program that uses this includes. */
struct ebb_audit;
struct ebb_workflow;
struct ebb_workflow_report;
typedef struct ebb_injection {
    const char *name;
    /* Builds the program: opens its workflows in `cx`'s region, with `audit`, and spawns its work. The
     * workflow that is asked to stop is `*target`; the run is over when everything has ended. */
    ebb_status (*setup)(ebb_cx *cx, struct ebb_audit *audit, void *state, struct ebb_workflow *target);
    /* All has ended. EBB_OK, or what is wrong with what is left in `state`. May be NULL. The report is that
     * of the target; IDLE if it ended before it was asked. */
    ebb_status (*check)(void *state, const struct ebb_workflow_report *report);
    size_t state_size;  /* of the state, which is zeroed before each run */
    uint64_t max_polls; /* a run. 0: 100,000; more is a livelock */
    bool expect_leaks;  /* LEAK_DETECTED is no failure */
} ebb_injection;

typedef struct ebb_injected {
    uint64_t points; /* suspension points of the program when nobody stops it */
    uint64_t runs;   /* in all */
    uint64_t leaks;  /* runs that ended in LEAK_DETECTED */
    uint64_t forced; /* runs that came by DRAIN_TIMEOUT: forced, or over their budget */
    char text[320];  /* of the first failure: which run, what was expected and what was found */
} ebb_injected;

/* EBB_OK: no run failed. EBB_ERR_ORACLE: `text` says which did, and how; EBB_ERR_NOMEM; what `setup`
 * returned. */
ebb_status ebb_inject(ebb_allocator a, const ebb_injection *what, ebb_injected *out);

#ifdef __cplusplus
}
#endif
#endif
