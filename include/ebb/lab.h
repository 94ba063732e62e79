/* ebb/lab.h - testing by schedule: a lab that takes every decision of the scheduler, the explorer and the shrinker of
 * failing schedules, whole programs in a network of the lab, replay of a journal, and cancellation injected at every
 * suspension point.
 *
 * Everything here runs in virtual time on the calling thread. The rules at the head of ebb/kernel.h apply. */
#ifndef EBB_LAB_H
#define EBB_LAB_H

#include <ebb/sched.h>
#include <ebb/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lab --------------------------------------------------------------------------------------------- */

/* A lab runs programs in virtual time under a scheduler that takes every decision through one chooser, and checks every
 * event with the oracles. The decisions are: which runtime runs next, how many tasks it polls (1 to 4), which of the
 * runnable tasks near the head of a lane is polled, which message between runtimes arrives next, when time advances,
 * when the scenario acts from outside, and how the run ends. The same scenario, seed and choices give the same run: the
 * traces are equal byte for byte. So a failing run can be repeated, shrunk and saved.
 *
 * A *scenario* builds work in one or more runtimes on one thread. The runtimes have the ids 1, 2, ... Messages between
 * the same two runtimes arrive in the order in which they were sent, those of different pairs in any order. There is
 * one clock, but a runtime learns the time only when it runs, as loops do. */
typedef struct ebb_lab ebb_lab;
#define EBB_LAB_RUNTIMES 8
struct ebb_lab_network;

typedef struct ebb_lab_scenario {
    const char *name;  /* one word */
    const char *about; /* one line */
    uint32_t runtimes; /* 0: 1; at most EBB_LAB_RUNTIMES */
    uint32_t steps;    /* how often `step` is called */
    size_t state_size; /* bytes of ebb_lab_state */
    /* Builds regions and tasks in ebb_lab_region of each runtime. Called once per round, with a zeroed state, after
     * everything of the previous round has ended. A status other than EBB_OK fails the run. */
    ebb_status (*setup)(ebb_lab *lab);
    /* Does the n-th action from outside, n < steps. Called in order, when the chooser decides. */
    void (*step)(ebb_lab *lab, uint32_t n);
    /* Called just before a message is delivered, to hand its word to the receiver. */
    void (*received)(ebb_lab *lab, const ebb_msg *msg);
    /* Called if another round follows: ends the work outside of ebb_lab_region. After it the lab closes or cancels
     * those regions. After the last round the lab ends the roots instead, and with them everything. */
    void (*finish)(ebb_lab *lab);
    /* Called when everything has ended without a violation. Reports errors with ebb_lab_fail. */
    void (*check)(ebb_lab *lab);
    /* Frees what `setup` made. Called in any case, before the memory of the round is freed. */
    void (*teardown)(ebb_lab *lab);
    /* A round goes on until nothing is left to do, timers included. False: the lab may end it when only timers are left,
     * and ends it 400 decisions after its last step. */
    bool until_quiet;
    void *arg; /* for these functions: ebb_lab_arg */
    /* For programs in a network: ebb_lab_network_play and what it plays; see "A network" below. Both NULL: none. */
    void (*play)(ebb_lab *lab);
    const struct ebb_lab_network *network;
} ebb_lab_scenario;
/* Each function may be NULL. */

/* For scenarios and the tasks they spawn. */
ebb_runtime *ebb_lab_runtime(ebb_lab *lab, uint32_t i);    /* the runtime with the id i + 1 */
ebb_region ebb_lab_region(const ebb_lab *lab, uint32_t i); /* its region for this round */
void *ebb_lab_state(ebb_lab *lab);                         /* the scenario's state, `state_size` bytes */
void *ebb_lab_arg(const ebb_lab *lab);                     /* the scenario's `arg` */
void *ebb_lab_alloc(ebb_lab *lab, size_t n); /* zeroed, freed at the end of the round; NULL: no memory */
uint32_t ebb_lab_choose(ebb_lab *lab, uint32_t n); /* a decision: 0 to n - 1; n at most 65535 */
void ebb_lab_send(ebb_lab *lab, ebb_cx *from, const ebb_msg *msg); /* to the runtime of msg->target */
void ebb_lab_fail(ebb_lab *lab, const char *text); /* ends the run; the first text is copied */
/* The same with another name than "check": one word of at most 31 bytes. A case is shrunk as long as its name stays. */
void ebb_lab_fail_as(ebb_lab *lab, const char *failure, const char *text);

/* What ebb_lab_inject does to a program in a network. In files its names have no EBB_LAB_ and are in small letters. */
typedef enum ebb_lab_action {
    EBB_LAB_NOTHING = 0,
    EBB_LAB_CANCEL,   /* cancels the task that was just polled */
    EBB_LAB_STOP,     /* sends SIGTERM to the program */
    EBB_LAB_SHUTDOWN, /* cancels the root region of the program's loop */
    EBB_LAB_FORCE,    /* forces that region */
    EBB_LAB_RESET,    /* resets all connections of the program */
    EBB_LAB_ACTIONS
} ebb_lab_action;
const char *ebb_lab_action_name(ebb_lab_action action); /* "cancel" */

/* A scenario and the source of its decisions. */
typedef struct ebb_lab_case {
    const ebb_lab_scenario *scenario; /* must stay valid */
    uint64_t seed;                    /* of the decisions, unless `recorded` */
    bool recorded;     /* decisions come from `choices`, then are always 0; else they come from `seed` */
    uint16_t *choices; /* each is taken modulo the number of alternatives */
    size_t n_choices;  /* number of `choices` */
    char *script; /* for the scenario `storm`: its lines, instead of lines made from the seed. NULL: none */
    size_t script_n;       /* bytes in `script` */
    int plant;             /* the oracle whose bug is planted, in builds that have planted bugs; 0: none */
    char failure[32];      /* the expected failure, as ebb_lab_result.failure; "": none yet */
    ebb_lab_action action; /* in a network: what happens right after the poll `point` */
    uint64_t point;        /* the polls of all programs are counted, from 1 */
} ebb_lab_case;

typedef struct ebb_lab_opts {
    uint32_t size;       /* sizeof(ebb_lab_opts) of the caller; 0: this one */
    uint64_t min_events; /* run more rounds until this number of events was traced. 0: one round */
    uint64_t max_steps;  /* decisions in one round before it counts as a livelock. 0: 50,000 */
    /* Called with pieces of the traces, in order. `runtime` counts from 0. May be NULL. */
    void (*trace)(void *ctx, uint32_t runtime, const void *bytes, size_t n);
    /* The same for the journals. NULL: no journal is recorded. */
    void (*journal)(void *ctx, uint32_t runtime, const void *bytes, size_t n);
    void *ctx; /* the first argument of `trace` and `journal` */
} ebb_lab_opts;

typedef struct ebb_lab_result {
    ebb_status status; /* EBB_OK: the run did not fail */
    /* The oracle's name, "livelock", "check" (ebb_lab_fail), "script", or a name given to ebb_lab_fail_as. "": none. */
    char failure[32];
    char text[200];   /* what was expected and what was found */
    uint32_t runtime; /* the runtime of `event`, from 0 */
    ebb_event event;  /* the event that shows the failure; type 0: none */
    uint64_t events,  /* events traced */
        steps;        /* decisions taken, those with one alternative included */
    uint32_t rounds;  /* rounds run */
    size_t choices;   /* decisions that had more than one alternative */
    uint64_t polls;   /* polls of tasks, in a network */
} ebb_lab_result;

/* Make and free a lab. NULL: no memory. One thread at a time may use it. */
ebb_lab *ebb_lab_new(ebb_allocator a);
void ebb_lab_free(ebb_lab *lab); /* NULL is allowed */

/* Runs a case: all rounds, then closes everything and checks the oracles a last time. Returns out->status: EBB_OK,
 * EBB_ERR_ORACLE, EBB_ERR_LIMIT (livelock), EBB_FAILED (ebb_lab_fail), EBB_ERR_SYNTAX (script), EBB_ERR_NOMEM,
 * EBB_ERR_INVALID (no scenario, or too many runtimes), EBB_ERR_VERSION, or what `setup` returned. `opts` may be
 * NULL. */
ebb_status ebb_lab_run(ebb_lab *lab, const ebb_lab_case *c, const ebb_lab_opts *opts, ebb_lab_result *out);

/* Turns `c` into a case that repeats the last run: its choices, script and failure. Frees the choices and script that
 * `c` had. EBB_ERR_NOMEM: unchanged. */
ebb_status ebb_lab_capture(ebb_lab *lab, ebb_lab_case *c);
/* Frees the choices and script of `c`, which must come from this lab. */
void ebb_lab_case_free(ebb_lab *lab, ebb_lab_case *c);

typedef struct ebb_lab_explore_opts {
    uint32_t size;      /* sizeof(ebb_lab_explore_opts) of the caller; 0: this one */
    uint64_t schedules; /* the most schedules to run; 0: 1000 */
    /* 0: random schedules, one for each seed. Else all alternatives of the first `depth` decisions are tried, and all
     * later decisions take the first alternative. */
    uint32_t depth;
    void (*progress)(void *ctx, uint64_t done, uint64_t of); /* called after each run; may be NULL */
    void *ctx;                                               /* the first argument of `progress` */
} ebb_lab_explore_opts;

typedef struct ebb_lab_explore_result {
    uint64_t schedules;     /* schedules that were run, the failing one included */
    bool exhausted;         /* with `depth`: all schedules were run */
    ebb_lab_result failure; /* of the failing schedule; status EBB_OK: none failed */
} ebb_lab_explore_result;

/* Searches for a schedule of c->scenario that fails, starting at c->seed, and captures it in `c`. Returns
 * out->failure.status. On EBB_ERR_NOMEM nothing may be captured. `opts` may be NULL. */
ebb_status ebb_lab_explore(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_explore_opts *opts,
                           ebb_lab_explore_result *out);

/* Shrinks a captured case as long as it fails in the same way: drops lines and steps of its script, then shortens its
 * choices. `runs` bounds the work (0: 20,000): each run costs 1, plus 1 for every 100 decisions. EBB_ERR_INVALID: the
 * case is not captured or does not fail. EBB_ERR_NOMEM: `c` is shrunk as far as it got. `progress` may be NULL. */
ebb_status ebb_lab_shrink(ebb_lab *lab, ebb_lab_case *c, uint32_t runs,
                          void (*progress)(void *ctx, uint64_t done, uint64_t of), void *ctx);

typedef struct ebb_lab_error {
    uint32_t line;  /* from 1 */
    char text[160]; /* what was expected and what was found */
} ebb_lab_error;

/* Save a case as text, and load it; docs/lab.md has the format. ebb_lab_load looks for the scenario among the built-in
 * ones and `own` (may be NULL); free the case with ebb_lab_case_free. EBB_ERR_SYNTAX, EBB_ERR_VERSION: `error` has the
 * line and what was expected there. EBB_ERR_NOMEM. On an error `*out` holds no memory. */
void ebb_lab_save(const ebb_lab_case *c, ebb_write_fn write, void *ctx);
ebb_status ebb_lab_load(ebb_lab *lab, const char *bytes, size_t n, const ebb_lab_scenario *own,
                        ebb_lab_case *out, ebb_lab_error *error);

/* Returns the i-th built-in scenario; NULL after the last. */
const ebb_lab_scenario *ebb_lab_scenario_at(size_t i);

/* ---- a network ---------------------------------------------------------------------------------------- */

/* A scenario whose `play` is ebb_lab_network_play runs whole programs in one thread: services, and the clients that use
 * them. Each program has a loop of its own. Its streams, listeners, name lookups, files, timers and clocks are the lab's:
 * in memory, and in virtual time. All of Ebb above that is the code that also runs in production. The chooser decides
 * which program goes on, when a segment arrives, how many bytes a read returns, and which faults happen, within the
 * limits of the scenario. The first alternative is always the plain one: programs in turn, the least latency, whole
 * reads and writes, no fault. So ebb_lab_run with no choices plays the plain story; seeds explore; and a failure is
 * captured, shrunk, saved and replayed as above.
 *
 * What makes a failure:
 *  - an oracle that the trace of a program violates;
 *  - "check": ebb_lab_fail, called by a client or by `check`;
 *  - "stuck": a program waits and nothing will wake it, or a client has not ended within `patience`, or a service
 *    has not ended within `patience` after SIGTERM;
 *  - "exit": a program has ended with another status than 0, in a run that nothing has disturbed;
 *  - "leak": a program has ended with EBB_SERVICE_LEAK, unless it was forced; or a client has not freed all its memory;
 *  - "left": a program has ended and left a socket, a listener, a file or a libuv handle open;
 *  - "livelock": too many decisions;
 *  - "crash": the process of the run has died.
 *
 * Limits of the lab:
 *  - There are no threads: functions for the thread pool run on the thread of the program. Other threads and child
 *    processes can't be made (EBB_ERRNO(ENOSYS)). A service has one loop: EBB_SERVICE_LOOPS_ALL is 1.
 *  - Whatever a program does without Ebb is real: stdio, its own system calls, and static variables, which keep their
 *    values from run to run unless `forks` is set.
 *  - TLS works, but OpenSSL's random numbers are real, so runs with TLS can't be replayed. */

typedef struct ebb_lab_program {
    const char *name; /* one word. Name lookups find it */
    /* Numeric. Programs with the same address are on one machine: they share its ports, its loopback and its files.
     * NULL: "127.0.0.1" */
    const char *ip;
    /* A service: the `main` of a program that calls ebb_service_run. `args` are its arguments after the name, up to
     * a NULL; NULL: none. When all clients have ended, the services get SIGTERM. */
    int (*main)(int argc, char **argv);
    const char *const *args;
    bool never_listens; /* a service that clients do not wait for */
    /* Without `main`, a client: the first fiber of a service. The lab gives it memory. It starts when every service has
     * listened or ended, and ends by itself. */
    ebb_status (*fn)(ebb_cx *cx, void *arg);
    void *arg;
} ebb_lab_program;

typedef struct ebb_lab_network {
    const ebb_lab_program *programs; /* at most EBB_LAB_RUNTIMES */
    uint32_t n;
    uint64_t latency;     /* of a segment, at least. 0: 100 us */
    uint64_t slowest;     /* of a segment, at most. 0: 50 ms */
    uint64_t patience;    /* 0: 10 minutes */
    uint64_t disk_bytes;  /* of a machine's files; more give ENOSPC. 0: no limit */
    uint32_t descriptors; /* of a program; more give EMFILE. 0: 1024 */
    /* Each run has a process of its own: static variables of the programs start anew, and a crash is a failure, "crash".
     * Then nothing that `setup`, `check` and the programs write is seen by the caller of ebb_lab_run. */
    bool forks;
    /* The most faults of each kind in a run. */
    uint32_t resets;        /* a connection is reset when a segment is sent */
    uint32_t refusals;      /* a connection is refused, or its attempt times out */
    uint32_t losses;        /* a segment is lost, and sent again after 200 ms or more */
    uint32_t partitions;    /* nothing passes between two programs for 1 to 100 s */
    uint32_t name_errors;   /* a name lookup fails */
    uint32_t file_errors;   /* a file operation fails with EIO, ENOSPC or EMFILE */
    uint32_t accept_errors; /* an accept fails with EMFILE */
} ebb_lab_network;

/* Plays the scenario's network. It calls these functions of the scenario: `setup` before the programs start, `step` when
 * the chooser decides, `check` when all programs have ended, and `teardown`. On a machine without fibers the run fails
 * with EBB_ERR_LIMIT. */
void ebb_lab_network_play(ebb_lab *lab);

/* The lab whose run is on this thread; NULL: there is none. */
ebb_lab *ebb_lab_here(void);
/* True if in this run a fault was made, an action was injected, or one of the functions below was called. A client that
 * gets an error in an undisturbed run has found a bug. */
bool ebb_lab_disturbed(const ebb_lab *lab);
/* For `step`: send a signal to a program; let nothing pass between two programs for a time; reset all connections of a
 * program. Programs are given by name. EBB_ERR_INVALID: no such program. */
ebb_status ebb_lab_signal(ebb_lab *lab, const char *program, int signum);
ebb_status ebb_lab_partition(ebb_lab *lab, const char *a, const char *b, uint64_t ns);
ebb_status ebb_lab_reset(ebb_lab *lab, const char *program);
/* Write and read a file of the program's machine. EBB_ERR_INVALID: no such program. EBB_ERR_NOMEM. The bytes that are
 * read are valid until the next call of the lab; NULL: there is no such file. */
ebb_status ebb_lab_file_put(ebb_lab *lab, const char *program, const char *path, const void *bytes, size_t n);
const void *ebb_lab_file_get(ebb_lab *lab, const char *program, const char *path, size_t *n);

typedef struct ebb_lab_inject_opts {
    uint32_t size;    /* sizeof(ebb_lab_inject_opts) of the caller; 0: this one */
    uint64_t actions; /* a bit, 1 << ebb_lab_action, for each action to inject. 0: all */
    uint64_t every;   /* injects at every n-th point. 0: 1 */
    void (*progress)(void *ctx, uint64_t done, uint64_t of); /* called after each run; may be NULL */
    void *ctx;                                               /* the first argument of `progress` */
} ebb_lab_inject_opts;

typedef struct ebb_lab_inject_result {
    uint64_t points;        /* polls of all programs when nothing is injected: the suspension points */
    uint64_t runs;          /* all runs */
    ebb_lab_result failure; /* of the failing run; status EBB_OK: none failed */
} ebb_lab_inject_result;

/* Runs a case of a network once for each action at each suspension point, that is after each poll of a task of any
 * program. Stops at the first failure, and captures it in `c`: it can be run alone, shrunk and saved.
 * Returns out->failure.status. `opts` may be NULL. */
ebb_status ebb_lab_inject(ebb_lab *lab, ebb_lab_case *c, const ebb_lab_inject_opts *opts,
                          ebb_lab_inject_result *out);

/* The `main` of a program that has scenarios of its own. Its arguments are those of `ebb lab`:
 *     list | run SCENARIO [--seed N] [--trace FILE] [--journal FILE]
 *     explore SCENARIO [--schedules N] [--seed N] [--out FILE] | inject SCENARIO [--every N] [--out FILE]
 *     replay FILE [--trace FILE] [--journal FILE]
 * `scenarios` ends with NULL. Prints to stdout, and returns an exit code: 0: no failure; 1: a failure, 2: wrong
 * arguments or files. */
int ebb_lab_main(ebb_allocator a, int argc, char **argv, const ebb_lab_scenario *const *scenarios);

/* ---- replay ---------------------------------------------------------------------------------------- */

typedef struct ebb_journal_replay_result {
    uint64_t operations; /* operations replayed */
    char message[160];   /* of a failure: the operation, what was expected and what was found */
} ebb_journal_replay_result;

/* Replays a journal in a new runtime: the inputs are the same, and the recorded calls stand for the code of the tasks.
 * Writes a trace to `trace` (may be NULL) that is equal byte for byte to that of the recorded run, if that was flushed
 * only at its end. EBB_ERR_DIVERGED: the runtime did something else than in the recorded run. EBB_ERR_FORMAT,
 * EBB_ERR_CORRUPT, EBB_ERR_TRUNCATED: as of the reader. EBB_ERR_INVALID: the journal has a gap, or recording started
 * after the runtime was used. EBB_ERR_LIMIT: calls are nested deeper than 200. EBB_ERR_NOMEM. See docs/journal.md. */
ebb_status ebb_journal_replay(ebb_allocator a, const void *journal, size_t n, ebb_write_fn trace, void *ctx,
                              ebb_journal_replay_result *out);

/* ---- injection ----------------------------------------------------------------------------------------- */

/* Injection runs a program many times in virtual time, and each time stops its workflow at another point: before the
 * first poll, and at every suspension point (after each poll of a task). At each point there are runs with a request, a
 * cancel from above and a force. There are more runs in which the request is followed by a second request, a cancel
 * from above or a force when the workflow enters one of its states, and by a force after each later poll, so that drain
 * handlers are cut off at each of their suspension points. After each run all oracles must hold on its trace, its audit
 * log must verify, no work or memory may be left, and `check` must return EBB_OK. A drain that hangs until its budget
 * is used up is not a failure but counts as forced; to treat it as one, `check` tests report->drain_timed_out &&
 * !report->forced. There is no loop: functions of ebb/loop.h give EBB_ERR_INVALID; a program with a loop runs in a
 * network, with ebb_lab_inject.
 *
 * The types of workflows are those of ebb/workflow.h: include it to use injection. */
struct ebb_audit;
struct ebb_workflow;
struct ebb_workflow_report;
/* One run: what is injected, and where. Take it from a report. */
typedef struct ebb_injection_run {
    uint64_t point;
    uint32_t state, action;
    uint64_t later;
} ebb_injection_run;

typedef struct ebb_injection {
    const char *name; /* for messages */
    /* Builds the program: opens its workflows in `cx`'s region with `audit`, and spawns its work. Sets `*target` to the
     * workflow to stop. The run ends when everything has ended. */
    ebb_status (*setup)(ebb_cx *cx, struct ebb_audit *audit, void *state, struct ebb_workflow *target);
    /* Called when everything has ended: EBB_OK, or the error found in `state`. May be NULL. `report` is that of the
     * target; its state is IDLE if the target ended before it was stopped. */
    ebb_status (*check)(void *state, const struct ebb_workflow_report *report);
    size_t state_size;  /* bytes of `state`, which is zeroed before each run */
    uint64_t max_polls; /* polls in one run; more count as a livelock. 0: 100,000 */
    bool expect_leaks;  /* LEAK_DETECTED is not a failure */
    /* Only this run, the `run` of a failure, after one without a stop. NULL: all runs. */
    const ebb_injection_run *only;
} ebb_injection;

typedef struct ebb_injected {
    uint64_t points;       /* suspension points of the program when it is not stopped */
    uint64_t runs;         /* all runs */
    uint64_t leaks;        /* runs that ended in LEAK_DETECTED */
    uint64_t forced;       /* runs that passed through DRAIN_TIMEOUT: forced, or over their budget */
    char text[320];        /* of the first failure: which run, what was expected and what was found */
    ebb_injection_run run; /* the last run: the one that failed */
} ebb_injected;

/* Runs an injection; stops at the first failure. EBB_OK: no run failed. EBB_ERR_ORACLE: `text` describes the failed
 * run. EBB_ERR_NOMEM. EBB_ERR_INVALID: no `setup`, or it set no target. Else what `setup` returned. */
ebb_status ebb_inject(ebb_allocator a, const ebb_injection *what, ebb_injected *out);

#ifdef __cplusplus
}
#endif
#endif
