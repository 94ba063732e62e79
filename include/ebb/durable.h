/* ebb/durable.h - orchestrations whose every decision is in a history, and activities that are cancelled by deleting
 * their queue row. A crash at any point loses nothing that was acknowledged.
 *
 *     static ebb_status pay(ebb_orch *o, ebb_blob in, ebb_blob *out) {
 *         ebb_step race[] = {ebb_orch_call(o, "charge", in, NULL), ebb_orch_timer(o, 30 * EBB_SECOND)};
 *         size_t won;
 *         ebb_status st = ebb_orch_select(o, 2, race, &won);    // the loser's row goes in this very commit
 *         if (st != EBB_OK) return st;
 *         return won == 1 ? EBB_TIMEOUT : ebb_orch_await(o, race[0], out);
 *     }
 *     ...
 *     ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = "sqlite:orders.db"}), &v);
 *     store = ebb_store_of(&v);
 *     ebb_worker_open(cx, store, NULL, &worker);
 *     ebb_worker_orch(worker, "pay", 1, pay);
 *     ebb_worker_activity(worker, "charge", charge, NULL, NULL);
 *     ebb_worker_begin(worker);
 *     ebb_await(cx, ebb_instance_start(cx, store, &(ebb_start_opts){.id = "order-7", .name = "pay"}), NULL);
 *
 * An *instance* is one run of an orchestration under an id. It has *executions*: the first, and one more for each
 * continue-as-new, reset or reuse of its id. An execution is a sequence of *turns*: the code runs until it waits, and
 * all that it has asked for is committed at once, with the messages that it was given. The rules:
 *
 *  - *Orchestrations are deterministic*: they are run again from their history. They may use what this header gives
 *    them, and nothing else: no clock, no random numbers, no static state, no other await. Activities may do anything.
 *  - *Nothing starts before its commit.* What a turn schedules and loses again is in the history and in no queue.
 *  - *Activities run at least once.* ebb_activity_key is the same for all runs of one attempt.
 *  - *Blobs* in are borrowed for the call, blobs out are copied. They are JSON by convention, so that tools can show
 *    them. A blob that an orchestration gets is valid until it returns.
 *  - *Time*: spans are ns. Times of the store are ns since 1970 in the store's clock, not those of ebb_now.
 *  - *Failures* have the statuses below, and a text: ebb_durable_error, or the ebb_failure of a step.
 *  - *Threads*: everything belongs to the thread of its loop, as in ebb/loop.h. SQLite uses threads of its own: the
 *    runtime's allocator must be safe on all of them. Several loops of a process open one SQLite file together.
 *
 * A store that can't be reached is not a failure of an orchestration: workers try again. ebb/provider.h is for those
 * who write a store. */
#ifndef EBB_DURABLE_H
#define EBB_DURABLE_H

#include <ebb/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_store ebb_store;
typedef struct ebb_worker ebb_worker;
typedef struct ebb_orch ebb_orch;
typedef struct ebb_activity ebb_activity;
struct ebb_provider; /* ebb/provider.h */

typedef struct ebb_blob {
    const void *at; /* may be NULL if n is 0 */
    size_t n;       /* bytes */
} ebb_blob;

/* The bytes of a 0-terminated text, without the 0. They stay the caller's. */
ebb_blob ebb_blob_text(const char *text);

/* Why an activity, a child or an instance failed. Texts are 0-terminated. */
typedef struct ebb_failure {
    const char *code;    /* for programs: "card_declined". NULL: the name of the status */
    const char *message; /* for people. NULL: the text of the status */
    ebb_blob details;    /* for programs; JSON by convention */
    bool final;          /* another attempt would not help: a retry policy ends here */
} ebb_failure;

/* The text of the last failure of a function of this header on this thread, with the thing, the value and the limit.
 * After an await that has failed it is the text of that future, also through ebb_within, ebb_race and the like, whatever
 * else has failed meanwhile; "" if that has none. Read it before the next call and before the next await. */
const char *ebb_durable_error(void);

/* Limits, which no option raises. Past EBB_DURABLE_PAYLOAD a call gives EBB_ERR_LIMIT and nothing is written. */
#define EBB_DURABLE_PAYLOAD 2097152 /* bytes of one input, output, signal, status, details or value */
#define EBB_DURABLE_ID                                                                                       \
    255 /* bytes of an id of an instance, of a name and of a key; not empty, no byte below 32 */
#define EBB_DURABLE_WARN    10000 /* events of an execution at which it is logged as long */
#define EBB_DURABLE_EVENTS  50000 /* events of an execution; past it the instance is suspended */
#define EBB_DURABLE_ACTIONS 10000 /* actions of a turn; past it the step carries EBB_ERR_LIMIT */
#define EBB_DURABLE_TURN                                                                                     \
    67108864 /* bytes of the events of a turn, with their payloads; past it the instance is suspended */
#define EBB_DURABLE_BATCH   1000  /* messages that a turn is given; others wait for the next */
#define EBB_DURABLE_SIGNALS 10000 /* signals of an instance that it has not taken */
#define EBB_DURABLE_VALUES  1024  /* keys of an instance's key-value state; 256 KiB of keys and values */
#define EBB_DURABLE_QUEUED  4096  /* operations of a store in flight: see ebb_store_opts */

/* ---- stores ------------------------------------------------------------------------------------------------- */

typedef enum ebb_durability {
    EBB_DURABILITY_FULL = 0,  /* a commit survives a power cut */
    EBB_DURABILITY_NORMAL = 1 /* SQLite: a commit survives the process; a power cut may lose the last ones */
} ebb_durability;

typedef struct ebb_store_opts {
    uint32_t size; /* sizeof(ebb_store_opts) of the caller; 0: this one */
    /* Which store: "sqlite:PATH", "postgres://USER@HOST:PORT/DATABASE?option=value", "lab:" or "lab:NAME" (in memory;
     * stores of one loop with the same name are one). Copied. A password in it is never shown in a text. */
    const char *url;
    const char *listen_url;    /* PostgreSQL: for LISTEN, where `url` leads through a pooler. NULL: `url` */
    ebb_durability durability; /* of SQLite */
    bool read_only;            /* nothing is written, no schema made: for tools. Writes give EBB_ERR_CLOSED */
    bool no_create;            /* EBB_ERR_SCHEMA instead of making or upgrading a schema */
    /* SQLite: if another process owns the file, ask that process over its socket, PATH.sock. For clients and operators:
     * a worker can't be opened on such a store. */
    bool client;
    /* Most operations in flight: 4,096. Past it starts and signals fail with EBB_ERR_BUSY at once. An eighth more is
     * kept for acks, cancels and renewals, which wait instead. */
    uint32_t queued;
    const struct ebb_provider
        *provider; /* a store of your own, which gets the URL. It must outlive the store. NULL: by URL */
} ebb_store_opts;

/* Opens a store and, unless it may not, makes or upgrades its schema. The value: ebb_store_of. The store belongs to
 * the region of cx, which closes it after its tasks and futures have ended (ebb_runtime_free does not: of a store that is
 * open then, memory, threads and the lock of a file stay with the process); discarding the value closes it too, so
 * do not discard the value of a store that was closed. A cancel gives up the attempt. The future fails with
 *   EBB_ERR_INVALID      no URL, or one that is not valid; ebb_durable_error names the part
 *   EBB_ERR_BUSY         SQLite: another process owns the file, and `client` is not set (loops of one process share it)
 *   EBB_ERR_SCHEMA       the schema is newer than this library can read, or there is none and `no_create`
 *   EBB_ERR_UNAVAILABLE  it can't be reached now
 *   EBB_ERR_STORE        it can't be used: wrong password, a damaged file
 *   EBB_ERR_VERSION, EBB_ERR_NOMEM, EBB_ERR_CLOSED */
#define ebb_store_open(cx, ...) ebb_store_open_site((cx), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_store_open_site(ebb_cx *cx, const ebb_store_opts *opts, const char *site);
/* The store in the value of an open. NULL: another value. */
ebb_store *ebb_store_of(const ebb_value *v);
/* Closes a store when all operations in flight have ended. `s` is not valid any more after the future has ended. A
 * cancel stops only the wait. EBB_ERR_BUSY: a worker is open on it. EBB_ERR_CLOSED: it is being closed already. */
#define ebb_store_close(cx, s) ebb_store_close_site((cx), (s), EBB_SITE)
ebb_future *ebb_store_close_site(ebb_cx *cx, ebb_store *s, const char *site);

/* ---- workers ------------------------------------------------------------------------------------------------- */

typedef enum ebb_durable_level {
    EBB_DURABLE_INFO = 1,
    EBB_DURABLE_WARNING = 2,
    EBB_DURABLE_ERROR = 3
} ebb_durable_level;

typedef struct ebb_worker_opts {
    uint32_t size;       /* sizeof(ebb_worker_opts) of the caller; 0: this one */
    const char *name;    /* of this worker, for people. Copied. NULL: "HOST:PID" */
    uint32_t turns;      /* most instances that it runs at a time: 64 */
    uint32_t activities; /* most activities that it runs at a time: 64. It claims only for free places */
    /* Instances that wait keep their fiber, so that their next event needs no replay: 10,000 of them, and 256 MiB of
     * their stacks and memory. Past either the ones that were used longest ago are evicted. EBB_WORKER_NO_CACHE: none. */
    uint32_t cache;
    uint64_t cache_bytes;
    uint64_t lease; /* after so long without a renewal others may take its work: 30 s; at least 1 s */
    /* Every how many turns one is run twice to find non-determinism: 0: never; 1: each, as tests do. */
    uint32_t double_run;
    const char *const *tags; /* it runs calls with these tags too; NULL after the last. Copied. NULL: none */
    /* Called with what a person should know: a suspended instance, a late ack, an orchestration's own log. `instance`
     * is "" if it is about none. NULL: standard error, warnings and errors only. */
    void (*log)(void *arg, ebb_durable_level level, const char *instance, const char *text);
    void *arg; /* of `log` */
} ebb_worker_opts;
#define EBB_WORKER_NO_CACHE UINT32_MAX

/* Makes a worker, in a region of its own below that of cx, as ebb_http_listen does. It claims nothing before
 * ebb_worker_begin. It is freed when its region has closed; the store must be open until then, so open both in one
 * region. What ends it:
 *   close   it claims no more turns and no more activities, but those of instances that a unit of work of this runtime
 *           waits for (ebb_instance_wait on this store). Fibers of orchestrations are discarded, which runs no code. Activities go on,
 *           those with `handover` excepted, which are cancelled with SHUTDOWN now and visible to others at once
 *   cancel  activities are cancelled (ebb_activity_reason has the kind), and their rows are visible to others at once
 *   end     its lease is expired: another worker has its work within a second
 * EBB_ERR_INVALID, EBB_ERR_VERSION, EBB_ERR_NOMEM, EBB_ERR_CLOSED. `opts` may be NULL. */
ebb_status ebb_worker_open(ebb_cx *cx, ebb_store *s, const ebb_worker_opts *opts, ebb_worker **out);
/* The region of the worker, to close, cancel or force the worker alone. */
ebb_region ebb_worker_region(const ebb_worker *w);

/* An orchestration: the body of a fiber without an ebb_cx. Any await but those of ebb_orch returns
 * EBB_ERR_DURABLE_CONTEXT there. EBB_OK: it has completed with *out (left alone: empty). EBB_CANCELLED after a cancel
 * of the instance: it is cancelled. Anything else: it has failed with that status, see ebb_orch_fail. `in` is valid
 * until it returns. *out is copied when it has returned: memory of ebb_orch_alloc or static, not of its stack. */
typedef ebb_status (*ebb_orch_fn)(ebb_orch *o, ebb_blob in, ebb_blob *out);

/* Registers an orchestration. An instance stays with the version that it has started with; a start without a version
 * gets the highest of the worker that runs its first turn. Before ebb_worker_begin only. EBB_ERR_EXISTS: this name and
 * version is registered. EBB_ERR_INVALID: no function, no name, version 0. EBB_ERR_BUSY: it has begun. EBB_ERR_NOMEM. */
ebb_status ebb_worker_orch(ebb_worker *w, const char *name, uint32_t version, ebb_orch_fn fn);

/* An activity: the body of a fiber in the worker's region, with all of Ebb at hand. EBB_OK: completed with *out, which
 * is copied when it has returned (memory of ebb_activity_alloc, not of its stack). Anything else: this attempt has
 * failed with that status, see ebb_activity_fail. It is cancelled when its row is gone (the kind is the cause if that
 * is known, else LEASE_LOST), and forced when its grace is over. What a cancelled activity returns is dropped. */
typedef ebb_status (*ebb_activity_fn)(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out);

typedef struct ebb_activity_opts {
    uint32_t size;    /* sizeof(ebb_activity_opts) of the caller; 0: this one */
    uint32_t at_once; /* most of this name at a time in this worker. 0: as many as the worker runs */
    uint32_t
        attempts; /* claims without an end after which it is poisoned, and fails with EBB_ERR_POISONED: 10 */
    uint64_t grace; /* from its cancel to its force: 5 s. It bounds the cleanup budget of the kind */
    bool handover;  /* the close of the worker cancels it already: another worker may run it at once */
} ebb_activity_opts;

/* Registers an activity. `opts` may be NULL. Errors as of ebb_worker_orch. */
ebb_status ebb_worker_activity(ebb_worker *w, const char *name, ebb_activity_fn fn, void *arg,
                               const ebb_activity_opts *opts);
/* Registers a program as an activity. It gets {"input":...,"key":"...","attempt":N} and the end of the file on standard
 * input; an input that is not JSON is a string. What it writes to standard output is the result. Exit 0: completed. 75
 * (EX_TEMPFAIL): failed, another attempt may help. Other exits and signals: failed for good (`final`). The message has
 * the last line of standard error. `process` is copied; its `stdio` is ignored, and `group` is on. A cancel sends
 * SIGTERM, then SIGKILL, to the group. Errors as of ebb_worker_orch. */
ebb_status ebb_worker_command(ebb_worker *w, const char *name, const ebb_process_opts *process,
                              const ebb_activity_opts *opts);

/* Begins to claim work: from the next turn of the loop on. EBB_ERR_BUSY: it has begun. EBB_ERR_INVALID: nothing is
 * registered. EBB_ERR_CLOSED: its region is closed. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb_worker_begin(ebb_worker *w);

/* The function of a program for `ebb worker --load FILE`, a shared library that exports it as "ebb_app" (in C++ extern
 * "C"). It registers orchestrations and activities on `w`, which the command then begins. It is called on a fiber of
 * cx, once; `ebb durable replay --load FILE` calls it too, on a worker that never begins. Not EBB_OK: the command says
 * so and ends. The library is linked without libebb, whose functions the command brings: cc -shared -fPIC. It is
 * never unloaded. */
typedef ebb_status (*ebb_app_fn)(ebb_cx *cx, ebb_worker *w);

typedef struct ebb_worker_stats {
    uint64_t turns;      /* committed so far */
    uint64_t replays;    /* executions that were run again from their history */
    uint64_t evictions;  /* instances that lost their fiber to the limits of the cache */
    uint64_t fenced;     /* turns that another worker had committed before */
    uint64_t lease_lost; /* activities cancelled because their lease was lost */
    uint64_t late_acks;  /* activities that ended after their row was gone */
    uint64_t cancelled;  /* activities cancelled because their row was deleted */
    uint64_t completed;  /* activities completed */
    uint64_t failed;     /* activities failed */
    uint64_t suspended;  /* instances suspended by this worker */
    uint64_t retried;    /* operations of the store that failed for a time and were repeated */
    uint64_t queue_age;  /* ns that the oldest claimed activity had waited at the last claim */
    /* Entry i: cancels that reached their task less than 2^i ns after their turn's commit, and not less than half of that.
     * Those of commits of this process: no other's time is known. */
    uint64_t cancel_latency[32];
    uint32_t hot;       /* instances on their fiber now */
    uint64_t hot_bytes; /* of their stacks and memory */
    uint32_t running;   /* activities now */
} ebb_worker_stats;
void ebb_worker_stats_of(const ebb_worker *w, ebb_worker_stats *out);

/* For activities. Texts are valid until it ends. */
void *ebb_activity_arg(const ebb_activity *a);            /* of ebb_worker_activity */
const char *ebb_activity_instance(const ebb_activity *a); /* the id of the instance that called it */
const char *ebb_activity_name(const ebb_activity *a);
/* The same for every run of this attempt and for no other: the idempotency key for what it does outside. */
const char *ebb_activity_key(const ebb_activity *a);
uint32_t ebb_activity_attempt(const ebb_activity *a); /* of the call's retry policy, from 1 on */
uint32_t ebb_activity_claim(const ebb_activity *a);   /* how often this attempt was claimed, from 1 on */
/* Why it is cancelled: what was asked for, of its row or of a region above it. Kind NONE: it is not. */
ebb_reason ebb_activity_reason(const ebb_activity *a);
/* Allocates n bytes that are freed after it has ended. NULL: no memory. */
void *ebb_activity_alloc(ebb_activity *a, size_t n);
/* Keeps a copy of the failure and returns EBB_FAILED, to return from the activity. EBB_ERR_LIMIT, EBB_ERR_NOMEM. */
ebb_status ebb_activity_fail(ebb_activity *a, const ebb_failure *why);

/* ---- orchestrations: steps -------------------------------------------------------------------------------------- */

/* What an orchestration waits for: a call, a timer, an event, a child. A small id, valid in its instance until it was
 * awaited. A function that can't make one returns an id that carries the error, and the await of it returns that error:
 *   EBB_ERR_INVALID  no name, a name that is too long
 *   EBB_ERR_LIMIT    the payload or the actions of this turn
 *   EBB_ERR_NOMEM    the instance is evicted, and the turn is tried again: code does not see it */
typedef struct ebb_step {
    uint64_t id;
} ebb_step;

typedef enum ebb_backoff {
    EBB_BACKOFF_NONE = 0,       /* at once */
    EBB_BACKOFF_FIXED = 1,      /* `pause` each time */
    EBB_BACKOFF_LINEAR = 2,     /* 1, 2, 3, ... times `pause` */
    EBB_BACKOFF_EXPONENTIAL = 3 /* 1, 2, 4, ... times `pause` */
} ebb_backoff;

typedef struct ebb_call_opts {
    uint32_t size;       /* sizeof(ebb_call_opts) of the caller; 0: this one */
    uint32_t attempts;   /* most attempts. 0: 1 */
    ebb_backoff backoff; /* the pause between attempts, a durable timer */
    uint64_t pause;      /* ns: 1 s */
    uint64_t max_pause;  /* the longest pause. 0: no bound */
    uint64_t timeout;    /* ns for one attempt, from its commit on. Past it its row is deleted. 0: none */
    bool retry_timeouts; /* a timeout is worth another attempt. Else the call ends with EBB_TIMEOUT */
    const char *tag;     /* only workers that have this tag run it. NULL: any worker that has its name */
    const char
        *session; /* calls with the same session run in the same worker as long as that lives. NULL: none */
} ebb_call_opts;

/* Calls an activity. It starts when this turn is committed. Each attempt has an id of its own. A failure that is
 * `final` gets no other attempt. `opts` may be NULL. */
#define ebb_orch_call(o, name, in, ...) ebb_orch_call_site((o), (name), (in), (__VA_ARGS__), EBB_SITE)
ebb_step ebb_orch_call_site(ebb_orch *o, const char *name, ebb_blob in, const ebb_call_opts *opts,
                            const char *site);
/* Completes `span` ns after the time of this turn, without a value. */
#define ebb_orch_timer(o, span) ebb_orch_timer_site((o), (span), EBB_SITE)
ebb_step ebb_orch_timer_site(ebb_orch *o, uint64_t span, const char *site);
/* Completes with the oldest signal of that name that nobody has taken, and takes it. Waits are served in the order in
 * which they were made. A wait that is lost in a select gives its signal back, as the oldest. */
#define ebb_orch_event(o, name) ebb_orch_event_site((o), (name), EBB_SITE)
ebb_step ebb_orch_event_site(ebb_orch *o, const char *name, const char *site);
/* Takes the oldest signal of that name without waiting: to empty a queue. EBB_PENDING: there is none in this turn. */
#define ebb_orch_receive(o, name, out) ebb_orch_receive_site((o), (name), (out), EBB_SITE)
ebb_status ebb_orch_receive_site(ebb_orch *o, const char *name, ebb_blob *out, const char *site);

typedef struct ebb_child_opts {
    uint32_t size; /* sizeof(ebb_child_opts) of the caller; 0: this one */
    /* NULL: this instance's id, "/", the number of the step, and 8 digits of the execution. Not "." and not "..". */
    const char *id;
    uint32_t version; /* 0: the highest */
    bool
        detached; /* it does not end with this instance, and the step completes without a value when it is started */
} ebb_child_opts;

/* Starts another orchestration. The step completes with its output, or fails with its failure. If this instance ends,
 * or the step is lost in a select, the child gets a cancel; nobody waits for it. An id that exists: EBB_ERR_EXISTS, in
 * the await. `opts` may be NULL. */
#define ebb_orch_child(o, name, in, ...) ebb_orch_child_site((o), (name), (in), (__VA_ARGS__), EBB_SITE)
ebb_step ebb_orch_child_site(ebb_orch *o, const char *name, ebb_blob in, const ebb_child_opts *opts,
                             const char *site);

/* Waits for a step, and uses it up. *out (may be NULL) is valid until the orchestration returns.
 *   EBB_OK                 completed with *out
 *   EBB_FAILED, a status   failed: see ebb_orch_failure
 *   EBB_TIMEOUT            the last attempt of a call was out of time
 *   EBB_CANCELLED          the instance was cancelled, and the step with it (once; see Cancel); or the step was lost in
 *                          a select
 *   EBB_ERR_STALE          there is no such step: an id of 0, or made up
 *   EBB_ERR_CONSUMED       it was awaited before
 *   EBB_ERR_FOREIGN        it is of another instance */
#define ebb_orch_await(o, step, out) ebb_orch_await_site((o), (step), (out), EBB_SITE)
ebb_status ebb_orch_await_site(ebb_orch *o, ebb_step step, ebb_blob *out, const char *site);
/* Waits until all steps have ended; none is used up. Returns the first failure in the order of events, else EBB_OK.
 * Others go on after a failure. Other errors as of an await. */
#define ebb_orch_join(o, n, steps) ebb_orch_join_site((o), (n), (steps), EBB_SITE)
ebb_status ebb_orch_join_site(ebb_orch *o, size_t n, const ebb_step *steps, const char *site);
/* Waits for the first of several steps to end, whether completed or failed: the lowest event number wins. EBB_OK: *won
 * is its index; await it for its outcome. The others are cancelled, and their rows deleted in the commit of this turn,
 * but for those that are kept or shielded. Any number of steps; 0: EBB_ERR_INVALID. EBB_CANCELLED: see Cancel. */
#define ebb_orch_select(o, n, steps, won) ebb_orch_select_site((o), (n), (steps), (won), EBB_SITE)
ebb_status ebb_orch_select_site(ebb_orch *o, size_t n, const ebb_step *steps, size_t *won, const char *site);
/* The step is not cancelled when it loses a select. Returns the step. */
ebb_step ebb_orch_keep(ebb_orch *o, ebb_step step);
/* The step is in no cancel set: it loses no select, and a cancel of the instance leaves it running, so that a saga can
 * learn whether the charge has happened. If the instance ends first, it runs on and its result is dropped. Returns the
 * step. */
ebb_step ebb_orch_shield(ebb_orch *o, ebb_step step);
/* Why the step of the last await, join or select failed. It has the name and text of the status if nothing else is
 * known. Valid until the orchestration returns. */
const ebb_failure *ebb_orch_failure(const ebb_orch *o);

/* ---- orchestrations: ends and cancel ------------------------------------------------------------------------------ */

/* Keeps a copy of the failure and returns EBB_FAILED, to return from the orchestration. EBB_ERR_LIMIT. */
ebb_status ebb_orch_fail(ebb_orch *o, const ebb_failure *why);
/* Ends this execution and begins the next with another input, in the same version or, if `version` is not 0, another.
 * Use it as `return ebb_orch_continue_as_new(o, in, 0);`. All that is outstanding is cancelled, but the shielded.
 * Signals that were not taken, key-value state and a pending cancel go over. EBB_OK; EBB_ERR_LIMIT: the input, or
 * signals of more than 16 MiB; EBB_CANCELLED: the instance is cancelled. */
#define ebb_orch_continue_as_new(o, in, version) ebb_orch_continue_as_new_site((o), (in), (version), EBB_SITE)
ebb_status ebb_orch_continue_as_new_site(ebb_orch *o, ebb_blob in, uint32_t version, const char *site);

/* Cancel: ebb_instance_cancel, or the parent's end, is an event of the history. In the turn that gets it everything
 * outstanding is deleted but what is shielded, and each await, join and select that waits or begins with such a step
 * returns EBB_CANCELLED once. Steps that are made afterwards work as usual: the code may compensate, until the time
 * ebb_orch_cleanup_by, when the instance is terminated. */
bool ebb_orch_cancelled(const ebb_orch *o);            /* a cancel was requested */
const char *ebb_orch_cancel_reason(const ebb_orch *o); /* its text; "": none */
uint64_t
ebb_orch_cleanup_by(const ebb_orch *o); /* in the store's clock: 24 h after the cancel; 0: no cancel */

/* ---- orchestrations: what they know --------------------------------------------------------------------------------- */

const char *ebb_orch_id(const ebb_orch *o);     /* of the instance */
const char *ebb_orch_parent(const ebb_orch *o); /* the id of its parent; "": none */
uint64_t ebb_orch_execution(const ebb_orch *o); /* from 1 on */
uint32_t ebb_orch_version(const ebb_orch *o);   /* that it was started with */
uint64_t ebb_orch_now(const ebb_orch *o);       /* the recorded time of this turn: ns since 1970 */
uint64_t ebb_orch_random(ebb_orch *o); /* the same in every replay, and different in every execution */
void ebb_orch_new_id(ebb_orch *o, char out[37]); /* a UUID in text, as random as that */
/* Whether code may do what it was changed to do: true if this execution has not yet passed this point without the
 * marker. The answer is recorded the first time. `name` is one of the program's own. */
#define ebb_orch_patched(o, name) ebb_orch_patched_site((o), (name), EBB_SITE)
bool ebb_orch_patched_site(ebb_orch *o, const char *name, const char *site);
/* True while recorded turns are run again. Only for what is outside of the orchestration, as a log. */
bool ebb_orch_is_replaying(const ebb_orch *o);
/* Writes a line to the worker's log, once: not in a replay, nor in a double run. */
void ebb_orch_log(ebb_orch *o, ebb_durable_level level, const char *text);
/* Allocates n zeroed bytes that are freed with the fiber: the only memory that may be alive across an await. NULL: no
 * memory, or more than 64 MiB. */
void *ebb_orch_alloc(ebb_orch *o, size_t n);

/* Sets what ebb_instance_status shows as `custom`. EBB_ERR_LIMIT. */
ebb_status ebb_orch_set_status(ebb_orch *o, ebb_blob status);
/* Key-value state of the instance: it outlives executions, and ebb_instance_get reads it from outside. Written with the
 * commit of the turn. A blob whose `at` is NULL removes the key. EBB_ERR_LIMIT: see EBB_DURABLE_VALUES. */
#define ebb_orch_set(o, key, value) ebb_orch_set_site((o), (key), (value), EBB_SITE)
ebb_status ebb_orch_set_site(ebb_orch *o, const char *key, ebb_blob value, const char *site);
/* Reads it. False: there is none. *out is valid until the next set of the key. */
bool ebb_orch_get(const ebb_orch *o, const char *key, ebb_blob *out);

/* ---- clients ---------------------------------------------------------------------------------------------------------- */

/* All are futures of the region of cx, and copy their arguments. A cancel stops only the wait: the operation may have
 * been done. They fail with EBB_ERR_UNAVAILABLE (the store can't be reached now: try again), EBB_ERR_STORE (it refused,
 * and will again), EBB_ERR_CLOSED (the store), EBB_ERR_BUSY (too many operations in flight), EBB_ERR_LIMIT,
 * EBB_ERR_INVALID, EBB_ERR_NOMEM, and with what each names. */

typedef struct ebb_start_opts {
    uint32_t size;    /* sizeof(ebb_start_opts) of the caller; 0: this one */
    const char *id;   /* NULL: a new UUID. Not "." and not "..", which no path can have */
    const char *name; /* of the orchestration */
    uint32_t version; /* 0: the highest that the worker has */
    ebb_blob input;
    bool reuse; /* if the id is that of an ended instance: a new execution of it */
} ebb_start_opts;
/* Starts an instance. The value is an ebb_instance_info. A start with the id, name and input of an instance that exists
 * changes nothing and succeeds. EBB_ERR_EXISTS: it has another name or input; or it has ended, and `reuse` is set, but
 * it runs again already. */
#define ebb_instance_start(cx, s, ...) ebb_instance_start_site((cx), (s), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_instance_start_site(ebb_cx *cx, ebb_store *s, const ebb_start_opts *opts, const char *site);

typedef struct ebb_signal_opts {
    uint32_t size;    /* sizeof(ebb_signal_opts) of the caller; 0: this one */
    const char *id;   /* of the instance. NULL: that of `start` */
    const char *name; /* of the signal */
    ebb_blob body;
    const char
        *dedup; /* a second signal with it in one execution of the instance changes nothing. NULL: none */
    const ebb_start_opts
        *start; /* if there is no such instance, or it has ended and `reuse` is set: starts it first */
} ebb_signal_opts;
/* Sends a signal: those of one name arrive in the order in which the futures completed. EBB_ERR_UNKNOWN_INSTANCE: there
 * is none, or it has ended. EBB_ERR_LIMIT: it has EBB_DURABLE_SIGNALS that it has not taken. */
#define ebb_instance_signal(cx, s, ...) ebb_instance_signal_site((cx), (s), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_instance_signal_site(ebb_cx *cx, ebb_store *s, const ebb_signal_opts *opts, const char *site);

/* The state of an instance. It is stored by name: "Running". */
typedef enum ebb_instance_state {
    EBB_INSTANCE_RUNNING = 1,
    EBB_INSTANCE_SUSPENDED =
        2, /* code and history differ, it is poisoned or too long: `text` says; see resume, reset */
    EBB_INSTANCE_COMPLETED = 3,
    EBB_INSTANCE_FAILED = 4,
    EBB_INSTANCE_CANCELLED = 5,
    EBB_INSTANCE_TERMINATED = 6
} ebb_instance_state;
const char *ebb_instance_state_name(ebb_instance_state s); /* "Running"; never NULL */

typedef struct ebb_instance_info {
    const char *id;
    const char *name;
    const char *parent; /* the id of its parent; "": none */
    uint32_t version;   /* 0: it has not run yet, and gets one then */
    uint32_t semantics; /* of the engine that its execution was begun with; 0: it has not run yet */
    ebb_instance_state state;
    bool unserved;           /* no live worker has its orchestration, or an activity that it waits for */
    uint64_t execution;      /* the last, from 1 on */
    uint64_t turn;           /* of that, its last; 0: none */
    uint64_t started, ended; /* in the store's clock; ended 0: it has not */
    ebb_blob input, output;  /* output: of a completed one */
    ebb_failure failure;     /* of a failed one: its code is not NULL */
    const char *text;        /* why it is suspended, cancelled or terminated; "": nothing */
    ebb_blob custom;         /* ebb_orch_set_status */
} ebb_instance_info;
/* The info in the value of a start, status or wait. It belongs to the value. NULL: another value. */
const ebb_instance_info *ebb_instance_info_of(const ebb_value *v);

/* The instance now. The value: ebb_instance_info_of. EBB_ERR_UNKNOWN_INSTANCE. */
#define ebb_instance_status(cx, s, id) ebb_instance_status_site((cx), (s), (id), EBB_SITE)
ebb_future *ebb_instance_status_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site);
/* Completes when the instance has ended, in whatever way: look at `state`. Else as a status. EBB_ERR_SUSPENDED: it is
 * suspended, so nobody can say when. In a unit of work it keeps a worker of this store that is closing at the instance,
 * but not at others that this one waits for. EBB_ERR_CLOSED: the store was closed meanwhile. */
#define ebb_instance_wait(cx, s, id) ebb_instance_wait_site((cx), (s), (id), EBB_SITE)
ebb_future *ebb_instance_wait_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site);
/* The value of a key. ebb_blob_of reads it. EBB_ERR_UNKNOWN_INSTANCE; a key that is not there has `at` NULL. */
#define ebb_instance_get(cx, s, id, key) ebb_instance_get_site((cx), (s), (id), (key), EBB_SITE)
ebb_future *ebb_instance_get_site(ebb_cx *cx, ebb_store *s, const char *id, const char *key,
                                  const char *site);
ebb_blob ebb_blob_of(const ebb_value *v);

/* ---- operators ---------------------------------------------------------------------------------------------------------- */

/* Requests an instance to cancel: see Cancel. The future completes when the request is stored. A second one changes
 * nothing. `reason` may be NULL. EBB_ERR_UNKNOWN_INSTANCE: there is none, or it has ended. */
#define ebb_instance_cancel(cx, s, id, reason) ebb_instance_cancel_site((cx), (s), (id), (reason), EBB_SITE)
ebb_future *ebb_instance_cancel_site(ebb_cx *cx, ebb_store *s, const char *id, const char *reason,
                                     const char *site);
/* Ends an instance now, running no code of it: everything outstanding is deleted in the same commit, children get a
 * cancel. Errors as of a cancel. */
#define ebb_instance_terminate(cx, s, id, reason)                                                            \
    ebb_instance_terminate_site((cx), (s), (id), (reason), EBB_SITE)
ebb_future *ebb_instance_terminate_site(ebb_cx *cx, ebb_store *s, const char *id, const char *reason,
                                        const char *site);
/* Lets a suspended instance go on, with the code as it is now. EBB_ERR_INVALID: it is not suspended.
 * EBB_ERR_UNKNOWN_INSTANCE: there is none, or it has ended. */
#define ebb_instance_resume(cx, s, id) ebb_instance_resume_site((cx), (s), (id), EBB_SITE)
ebb_future *ebb_instance_resume_site(ebb_cx *cx, ebb_store *s, const char *id, const char *site);
/* Begins a new execution with the history of the last one up to the end of the turn that has event number `event`.
 * What was outstanding there is scheduled again; signals that came later are delivered again; children that were
 * started later are cancelled. From there on random numbers, and ids that are made of them, are others than before. The
 * instance may have ended, or be suspended. EBB_ERR_INVALID: no such event. EBB_ERR_FENCED: a turn was committed meanwhile. */
#define ebb_instance_reset(cx, s, id, event) ebb_instance_reset_site((cx), (s), (id), (event), EBB_SITE)
ebb_future *ebb_instance_reset_site(ebb_cx *cx, ebb_store *s, const char *id, uint64_t event,
                                    const char *site);
/* Deletes an instance and all that is stored of it. EBB_ERR_BUSY: it has not ended, and `force` is not set. Its children
 * stay. EBB_ERR_UNKNOWN_INSTANCE. */
#define ebb_instance_delete(cx, s, id, force) ebb_instance_delete_site((cx), (s), (id), (force), EBB_SITE)
ebb_future *ebb_instance_delete_site(ebb_cx *cx, ebb_store *s, const char *id, bool force, const char *site);

/* Which instances; all conditions hold. */
typedef struct ebb_instance_filter {
    uint32_t size;      /* sizeof(ebb_instance_filter) of the caller; 0: this one */
    const char *name;   /* of the orchestration. NULL: any */
    const char *prefix; /* of the id. NULL: any */
    const char *parent; /* children of this instance. NULL: any */
    bool tree;          /* with `parent`: all below it and the instance itself, parents first */
    uint32_t states;    /* 1 << ebb_instance_state, or'ed. 0: any */
    uint64_t started_after, ended_before; /* in the store's clock. 0: any */
    const char *after; /* the id after which a page begins: the last of the page before. NULL: the first */
    uint32_t most;     /* of a page: 100; at most 1,000 */
} ebb_instance_filter;
/* A page of instances, ordered by id (with `tree`: parents first). input and output are left out. The value:
 * ebb_instances_of, valid as long as the value. *n below `most`: it is the last page. */
#define ebb_instance_list(cx, s, ...) ebb_instance_list_site((cx), (s), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_instance_list_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                   const char *site);
const ebb_instance_info *ebb_instances_of(const ebb_value *v, size_t *n);

/* Called after each page with the sum so far. False ends the operation. */
typedef bool (*ebb_instance_progress_fn)(void *arg, uint64_t done);
/* Cancels all that match, or deletes all that match and have ended, page by page. The value is their number
 * (ebb_value_int). With `dry_run` it only counts. `progress` may be NULL. A cancel of the future stops after the page. */
typedef struct ebb_bulk_opts {
    uint32_t size; /* sizeof(ebb_bulk_opts) of the caller; 0: this one */
    bool dry_run;
    const char *reason; /* of a cancel */
    ebb_instance_progress_fn progress;
    void *arg; /* of `progress` */
} ebb_bulk_opts;
#define ebb_instance_cancel_all(cx, s, filter, ...)                                                          \
    ebb_instance_cancel_all_site((cx), (s), (filter), (__VA_ARGS__), EBB_SITE)
#define ebb_instance_prune(cx, s, filter, ...)                                                               \
    ebb_instance_prune_site((cx), (s), (filter), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_instance_cancel_all_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                         const ebb_bulk_opts *opts, const char *site);
ebb_future *ebb_instance_prune_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                    const ebb_bulk_opts *opts, const char *site);

/* One event of a history. */
typedef struct ebb_history_event {
    uint64_t number;  /* in its execution, from 1 on */
    uint64_t turn;    /* from 1 on */
    uint64_t at;      /* the time of the turn */
    const char *kind; /* "activity_scheduled" */
    const char *json; /* its fields, one JSON object */
} ebb_history_event;
/* The events of an execution (0: the last), turn by turn: at most `most` turns (0: all) after turn `after`. The value:
 * ebb_history_of, valid as long as the value. EBB_ERR_UNKNOWN_INSTANCE. EBB_ERR_INVALID: there is no such execution.
 * EBB_ERR_CORRUPT: a row is damaged; ebb_durable_error names it. EBB_ERR_VERSION: a later Ebb wrote it. */
typedef struct ebb_history_opts {
    uint32_t size; /* sizeof(ebb_history_opts) of the caller; 0: this one */
    uint64_t execution, after;
    uint32_t most;
    /* Proves that the history could have come about: turns without a gap, every end has its start and is the only one,
     * nothing after the last event, every step that was outstanding at the end is cancelled. EBB_ERR_ORACLE. */
    bool verify;
    uint64_t bytes; /* no turn is read after the one whose `json` takes all past this; 0: all are */
} ebb_history_opts;
#define ebb_instance_history(cx, s, id, ...)                                                                 \
    ebb_instance_history_site((cx), (s), (id), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_instance_history_site(ebb_cx *cx, ebb_store *s, const char *id, const ebb_history_opts *opts,
                                      const char *site);
const ebb_history_event *ebb_history_of(const ebb_value *v, size_t *n);

/* ---- tests --------------------------------------------------------------------------------------------------------------- */

/* A call that an orchestration makes in a test, and its answer. */
typedef struct ebb_test_call {
    const char *name;
    ebb_blob input;
    uint32_t attempt; /* from 1 on */
    uint32_t nth;     /* of this name in this run, from 0 on */
    /* The answer, to be filled in; it is copied. Left alone: completed at once with nothing. */
    uint64_t after;      /* ns from its start to its answer; EBB_FOREVER: none */
    ebb_status status;   /* EBB_OK, or its failure */
    ebb_failure failure; /* of EBB_FAILED */
    ebb_blob output;
} ebb_test_call;

/* A signal or a cancel from outside. */
typedef struct ebb_test_signal {
    uint64_t at;      /* ns after the start */
    const char *name; /* NULL: a cancel */
    ebb_blob body;    /* of a cancel: its reason */
} ebb_test_signal;

typedef struct ebb_orch_test_opts {
    uint32_t size;           /* sizeof(ebb_orch_test_opts) of the caller; 0: this one */
    ebb_allocator allocator; /* required */
    ebb_orch_fn fn;          /* the orchestration */
    ebb_blob input;
    void (*answer)(
        void *arg,
        ebb_test_call *call); /* answers each call. It must give the same answer to the same call */
    void *arg;                /* of `answer` and `child` */
    ebb_orch_fn (*child)(void *arg,
                         const char *name); /* the function of a child's name. NULL: there are none */
    const ebb_test_signal *signals;
    size_t signals_n;
    bool
        plain_only; /* one run. Else it is run again: evicted, crashed and cancelled after every turn; see below */
} ebb_orch_test_opts;

typedef struct ebb_orch_test_result {
    ebb_instance_state state; /* how the plain run ended; RUNNING: it waits for what never comes */
    ebb_status status;        /* what the orchestration returned */
    const char *output;       /* 0-terminated; the result owns its texts */
    size_t output_n;
    const char *history;    /* of the plain run, one event a line */
    uint32_t turns, runs;   /* of the plain run; how many runs there were */
    const char *difference; /* what differed, and in which run; "": nothing */
} ebb_orch_test_result;

/* Runs an orchestration in virtual time on this thread, with answers of the test in the place of activities, every turn
 * run twice. The plain run gives the result. Then, for each n: the fiber is evicted after turn n, and the worker crashes
 * before and after the commit of turn n; the histories must be the same. And the instance is cancelled after turn n: it
 * must end, and leave nothing outstanding. EBB_OK. EBB_ERR_DIVERGED: a run differed, or the code is not deterministic:
 * `difference` says where. EBB_ERR_INVALID, EBB_ERR_VERSION, EBB_ERR_NOMEM. Free the result by ebb_orch_test_free in
 * any case. */
ebb_status ebb_orch_test(const ebb_orch_test_opts *opts, ebb_orch_test_result *out);
void ebb_orch_test_free(const ebb_orch_test_opts *opts, ebb_orch_test_result *r);

#ifdef __cplusplus
}
#endif
#endif
