/* ebb/kernel.h - tasks, regions, obligations, and how they end.
 *
 * A *region* owns tasks, child regions, obligations and finalizers. Nothing outlives its region. A *task* is a poll
 * function and the caller's state. Everything ends by one protocol of three verbs:
 *
 *   close    no new work; running work goes on to its end              ebb_stopping(cx) is true
 *   cancel   close, and request running work to stop within a budget   ebb_cancelled(cx) is true
 *   force    the budget is used up; a task that still does not return is abandoned
 *
 * The verbs never fail, never allocate, never block and never run your code: they mark and enqueue. Your code runs in
 * ebb_runtime_pump() (ebb/sched.h). The one exception is ebb_obligation_abort(), which calls the abort hook itself.
 *
 * Rules for every function below, unless its comment says otherwise:
 *  - Threads: a runtime belongs to one thread at a time. Of this header, only ebb_watchdog_check may be called from
 *    another thread.
 *  - `cx` is the caller: the task that is being polled, or ebb_runtime_host(rt) outside of polls. A host that runs the
 *    code of tasks between their polls (a browser does) passes the `cx` of the parked task, which may do everything but
 *    wait.
 *  - Ids are values. A stale id gives EBB_ERR_STALE, an id of another runtime EBB_ERR_FOREIGN. Neither is undefined
 *    behaviour.
 *  - A *poll operation* returns EBB_PENDING while it waits. Call it again when the task is polled again. In a fiber
 *    (ebb/fiber.h) it waits in place and never returns EBB_PENDING.
 *  - Memory: a function that allocates documents what it does when there is no memory.
 *  - Strings passed as `site` are kept by pointer: use literals. Messages are copied and truncated.
 *  - fork: the child may use a runtime only if the parent no longer does. Nothing is shared.
 *  - longjmp: do not leave a poll, finalizer or hook by longjmp; the kernel would treat it as still running. Return
 *    EBB_FAULTED instead. */
#ifndef EBB_KERNEL_H
#define EBB_KERNEL_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_runtime ebb_runtime;

/* Ids: 8 bits runtime, 24 bits index, 32 bits generation. 0 is no id. A constructor that fails returns an id that
 * carries the error; every function called with this id returns that error. If a spawn fails with EBB_ERR_NOMEM or
 * EBB_ERR_LIMIT, the region also keeps this as its failure, until join. */
typedef struct ebb_task {
    uint64_t id;
} ebb_task;
typedef struct ebb_region {
    uint64_t id;
} ebb_region;
typedef struct ebb_obligation {
    uint64_t id;
} ebb_obligation;

/* EBB_OK for the id of something that exists or existed; else the error that the id carries. EBB_ERR_INVALID for 0. */
ebb_status ebb_id_status(uint64_t id);

/* ---- context ---------------------------------------------------------------------------------- */

/* The caller of a function: the first word of a task's record. The rest of the record belongs to the kernel. A cx is
 * valid as long as its task lives, and its address does not change. */
typedef struct ebb_cx {
    uint32_t signal; /* EBB_CX_CANCEL and EBB_CX_STOP; read it with the functions below */
} ebb_cx;
#define EBB_CX_CANCEL 1u /* cancel is requested and not masked */
#define EBB_CX_STOP   2u /* the region is closing */

/* True once this task has a cancel request and is not masked. Does not acknowledge the request. One load. */
static inline bool ebb_cancelled(const ebb_cx *cx) {
    return (cx->signal & EBB_CX_CANCEL) != 0;
}

/* True once this task's region is closing, or the task is cancelled: finish the work in flight, accept no new work. */
static inline bool ebb_stopping(const ebb_cx *cx) {
    return cx->signal != 0;
}

ebb_runtime *ebb_cx_runtime(const ebb_cx *cx);
ebb_task ebb_cx_task(const ebb_cx *cx);     /* id 0 for the host */
ebb_region ebb_cx_region(const ebb_cx *cx); /* the root for the host */
uint64_t ebb_now(const ebb_cx *cx); /* the runtime's clock, or without one the last ebb_runtime_advance */

/* ---- reason and budget ------------------------------------------------------------------------ */

/* Why something is cancelled. The kind determines the severity: USER, RACE_LOST and DISCONNECT are polite, TIMEOUT,
 * BUDGET, SIBLING_FAILED, LEASE_LOST and RESOURCE urgent, SHUTDOWN is forced. A child that is cancelled because of its
 * parent has the kind PARENT and the severity of the root cause. */
typedef enum ebb_cancel_kind {
    EBB_CANCEL_NONE = 0,
    EBB_CANCEL_USER = 1,
    EBB_CANCEL_RACE_LOST = 2,
    EBB_CANCEL_DISCONNECT = 3,
    EBB_CANCEL_TIMEOUT = 4,
    EBB_CANCEL_BUDGET = 5,
    EBB_CANCEL_SIBLING_FAILED = 6,
    EBB_CANCEL_LEASE_LOST = 7,
    EBB_CANCEL_RESOURCE = 8,
    EBB_CANCEL_SHUTDOWN = 9,
    EBB_CANCEL_PARENT = 10,
    EBB_CANCEL_KINDS = 11,
    EBB_CANCEL_DROPPED = 15 /* futures only: the future was no longer reachable */
} ebb_cancel_kind;

typedef enum ebb_severity {
    EBB_SEVERITY_POLITE = 1,
    EBB_SEVERITY_URGENT = 2,
    EBB_SEVERITY_FORCED = 3
} ebb_severity;

#define EBB_MESSAGE_MAX                                                                                      \
    47 /* bytes of a reason's message without the 0; a longer message is cut and ends in "..." */

typedef struct ebb_reason {
    uint8_t kind;                      /* ebb_cancel_kind; NONE: not cancelled */
    uint8_t severity;                  /* ebb_severity; 0: not cancelled */
    uint8_t runtime;                   /* id of the runtime where the cancel started */
    uint64_t origin;                   /* id of the task or region that cancelled; 0: the host */
    uint64_t sequence;                 /* number of the cancel in its runtime */
    char message[EBB_MESSAGE_MAX + 1]; /* 0-terminated */
} ebb_reason;

/* The bounds of cleanup. */
typedef struct ebb_budget {
    uint64_t deadline; /* absolute; EBB_FOREVER: none */
    uint32_t polls;    /* EBB_POLLS_UNBOUNDED: no bound */
    uint8_t priority;  /* higher is more urgent */
} ebb_budget;
#define EBB_POLLS_UNBOUNDED UINT32_MAX

const char *ebb_cancel_kind_name(ebb_cancel_kind kind);      /* "USER"; never NULL */
ebb_severity ebb_cancel_kind_severity(ebb_cancel_kind kind); /* 0 for NONE, PARENT and DROPPED */

/* Returns the stronger of two reasons: the higher severity, then the earlier sequence, then runtime, kind, origin,
 * message. A join: commutative, associative, idempotent. A reason of kind NONE is the neutral element. */
ebb_reason ebb_reason_strengthen(const ebb_reason *a, const ebb_reason *b);

/* Returns the tighter of two budgets: the earlier deadline, the fewer polls, the higher priority. A meet: commutative,
 * associative, idempotent. */
ebb_budget ebb_budget_combine(ebb_budget a, ebb_budget b);

/* ---- runtime ---------------------------------------------------------------------------------- */

/* How much cleanup may cost after a cancel of one severity. The defaults are 5 s and 1024 polls for polite, 2 s and 256
 * for urgent, 500 ms and 64 for forced. */
typedef struct ebb_cleanup_budget {
    uint64_t time_ns; /* 0: the default */
    uint32_t polls;   /* of each task; 0: the default */
} ebb_cleanup_budget;

typedef void (*ebb_write_fn)(void *ctx, const void *bytes, size_t n);

/* What to record from the first event on: see Recording, below. */
typedef struct ebb_recording {
    size_t bytes; /* of the buffer; 0: not recorded */
    /* Appends to a file. Called when the buffer is full, so that nothing is lost, and in ebb_runtime_free; on the
     * thread of the runtime, which waits. NULL: ebb_trace_take and ebb_journal_take take the records. */
    ebb_write_fn write;
    void *ctx; /* the first argument of `write` */
} ebb_recording;

typedef struct ebb_runtime_opts {
    uint32_t size;                 /* sizeof(ebb_runtime_opts) of the caller; 0: this one */
    ebb_allocator allocator;       /* required */
    uint8_t runtime_id;            /* the top byte of every id; distinguishes runtimes */
    uint64_t now;                  /* the time at the start */
    ebb_cleanup_budget cleanup[4]; /* by ebb_severity; entry 0 is not used */
    uint32_t max_tasks;            /* 0: 2^24 - 1 */
    uint32_t max_regions;          /* 0: 2^24 - 1 */
    bool watched;                  /* publish what is being polled, for ebb_watchdog_check */
    /* Returns the time, for spans that begin in the middle of a pump: the runtime reads it in ebb_now, when a span is
     * armed, and when a cleanup budget starts. A loop brings its own. NULL: ebb_runtime_advance sets the time. */
    uint64_t (*clock)(void *ctx);
    void *clock_ctx;       /* the argument of `clock` */
    uint32_t chain_depth;  /* most links that ebb_region_causes returns. 0: EBB_CHAIN_DEPTH */
    uint32_t chain_bytes;  /* most bytes of these links. 0: EBB_CHAIN_BYTES */
    ebb_recording trace;   /* everything that it does */
    ebb_recording journal; /* everything that it is asked, for a replay */
} ebb_runtime_opts;

/* Makes a runtime with an open root region; free it with ebb_runtime_free. EBB_ERR_NOMEM, EBB_ERR_INVALID (no
 * allocator) and EBB_ERR_VERSION leave nothing behind, and `*out` is NULL. */
ebb_status ebb_runtime_new(const ebb_runtime_opts *opts, ebb_runtime **out);

/* Frees the runtime in any state. Must not be called inside a pump. Runs no code of the program but the `free` of
 * values that futures still have. For an orderly end, cancel or close the root, pump until ebb_region_state_of gives
 * EBB_REGION_CLOSED, then free. NULL is allowed. */
void ebb_runtime_free(ebb_runtime *rt);

ebb_cx *ebb_runtime_host(ebb_runtime *rt); /* the host's own context: its region is the root */
ebb_region ebb_runtime_root(const ebb_runtime *rt);

typedef struct ebb_runtime_stats {
    uint64_t polls;         /* polls so far */
    uint64_t spawned;       /* tasks started so far */
    uint64_t ended;         /* tasks ended so far */
    uint64_t stale_wakes;   /* wake-ups and cancels of tasks and regions that had ended */
    uint64_t leaks;         /* obligations that leaked */
    uint64_t abandoned;     /* tasks, finalizers and operations that were abandoned */
    uint64_t illegal;       /* state transitions refused */
    uint64_t trace_lost;    /* events lost to a full trace buffer */
    uint32_t tasks;         /* tasks alive */
    uint32_t regions;       /* regions not closed, the root included */
    uint32_t obligations;   /* obligations reserved and not resolved */
    uint32_t timers;        /* timers armed by ebb_timer_arm */
    uint32_t runnable;      /* tasks in run queues */
    uint32_t retired;       /* slots whose generations are used up */
    uint32_t worst_wait[3]; /* cancel, timed, ready: most polls of other lanes while the head waited */
} ebb_runtime_stats;

void ebb_runtime_stats_of(const ebb_runtime *rt, ebb_runtime_stats *out);

/* Prints the live tree, one object per line: regions with state and reason; tasks with phase, lane, mask, what they
 * wait for and where they were spawned; obligations and finalizers. The text passed to `write` is not 0-terminated. No
 * recursion, no allocation. */
void ebb_runtime_dump(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* ---- regions ---------------------------------------------------------------------------------- */

typedef enum ebb_region_state {
    EBB_REGION_OPEN = 1,
    EBB_REGION_CLOSING = 2,
    EBB_REGION_DRAINING = 3,
    EBB_REGION_FINALIZING = 4,
    EBB_REGION_CLOSED = 5
} ebb_region_state;

/* How a region ended. */
typedef struct ebb_region_report {
    ebb_region region;
    ebb_status status;  /* the first failure; else EBB_CANCELLED if a task was cancelled; else EBB_OK */
    ebb_task failed;    /* the task with the first failure; 0: none */
    uint32_t abandoned; /* tasks, finalizers and operations that were abandoned */
    uint32_t leaked;    /* obligations that leaked */
} ebb_region_report;

typedef enum ebb_failure_policy {
    EBB_FAIL_FAST = 0,   /* the first failure cancels the other tasks with SIBLING_FAILED */
    EBB_FAIL_COLLECT = 1 /* the first failure is kept for the report; the other tasks go on */
} ebb_failure_policy;

typedef struct ebb_region_opts {
    uint32_t size;             /* sizeof(ebb_region_opts) of the caller; 0: this one */
    ebb_region parent;         /* 0: the region of cx */
    ebb_failure_policy policy; /* what the first failure does */
    uint64_t deadline;         /* absolute; the region is cancelled with TIMEOUT then. 0: none */
    uint8_t priority;          /* the parent's, if that is higher */
    bool cleanup;              /* a cleanup scope: admits work while its parent is cancelled */
    bool unit; /* a unit of work: a close from above leaves it open to its own tasks. Not with `cleanup` */
    /* Called once from the pump when the region has closed. The region is freed after that and cannot be joined. */
    void (*on_closed)(void *arg, const ebb_region_report *report);
    void *arg;        /* the first argument of `on_closed` */
    const char *name; /* in a trace; kept by pointer: use a literal. NULL: none */
} ebb_region_opts;

/* Opens a child region. Returns its id, or an id that carries the error: see ebb_id_status. `opts` may be NULL.
 *
 * When a task returns, its regions that are still open are cancelled and joined; if one of them fails, the task fails.
 * When a region closes, its child regions that nobody joined are freed; if one of them failed, the region fails.
 *
 * A *cleanup scope* may be opened only by a finalizer or a task with a cancel request, else EBB_ERR_NOT_CLEANING. Its
 * budget is the rest of its owner's budget; each of its tasks may use as many polls as the owner has left. A cancel
 * from above does not reach into a cleanup scope, force does.
 *
 * EBB_ERR_CLOSED: the parent does not admit it (docs/kernel.md, Admission). A cancelled task gets EBB_CANCELLED
 * instead, and this is a checkpoint. EBB_ERR_INVALID: an unknown policy, or `unit` with `cleanup`. EBB_ERR_NOMEM,
 * EBB_ERR_LIMIT, EBB_ERR_VERSION: nothing changed. */
#define ebb_region_open(cx, ...) ebb_region_open_site((cx), (__VA_ARGS__), EBB_SITE)
ebb_region ebb_region_open_site(ebb_cx *cx, const ebb_region_opts *opts, const char *site);

/* Close, cancel or force a region and everything below it. They return nothing because they cannot fail. They may be
 * repeated: another cancel strengthens the reason and tightens the budget. A kind without severity counts as USER. A
 * stale id counts as a stale wake-up; a foreign id or one that carries an error is ignored. */
void ebb_region_close(ebb_cx *cx, ebb_region region);
void ebb_region_cancel(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message);
void ebb_region_force(ebb_cx *cx, ebb_region region);

/* As ebb_region_cancel, with the caller's cleanup budget instead of that of ebb_runtime_opts. */
void ebb_region_cancel_within(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message,
                              ebb_budget budget);

/* Waits until everything in a region has ended, closes and frees the region, and returns its status: the first failure,
 * EBB_CANCELLED or EBB_OK. Leaks and abandoned work are not failures: `on_closed` and ebb_region_report_of report them.
 * A poll operation. In a task it is a checkpoint: after EBB_CANCELLED because of the caller's own cancel the region
 * still exists, and ends with the task. Only the task that opened the region, or the host for the host's regions, may
 * join it, else EBB_ERR_BUSY. EBB_ERR_INVALID: the root, or a region with `on_closed`. EBB_ERR_NOT_TASK: a callback. */
ebb_status ebb_region_join(ebb_cx *cx, ebb_region region);

/* Write the state or the report of a region to `*out`. A closed region has the state EBB_REGION_CLOSED until it is
 * joined or its parent closes; after that its id is stale. */
ebb_status ebb_region_state_of(ebb_cx *cx, ebb_region region, ebb_region_state *out);
ebb_status ebb_region_report_of(ebb_cx *cx, ebb_region region, ebb_region_report *out);

/* A task, operation or obligation. */
typedef struct ebb_work {
    uint64_t id;      /* 0 for an operation */
    const char *site; /* where it was spawned, begun or reserved */
} ebb_work;

/* The i-th task or operation of this region that was abandoned, and the i-th obligation that leaked. EBB_ERR_INVALID if
 * `i` is past the last. */
ebb_status ebb_region_abandoned_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out);
ebb_status ebb_region_leaked_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out);

#define EBB_CHAIN_DEPTH 24   /* the default of `chain_depth` */
#define EBB_CHAIN_BYTES 1024 /* the default of `chain_bytes` */

/* One link of a cause chain. */
typedef struct ebb_region_cause {
    ebb_region region; /* the region that was cancelled */
    ebb_reason reason; /* why */
} ebb_region_cause;

/* Writes the cause chain of a region's cancel to `out`: the region's own reason first, then those of its parents, the
 * root cause last. `*n` is the number of links; 0 if the region is not cancelled. The chain has at most `room` links,
 * at most `chain_depth` links and at most `chain_bytes` bytes (ebb_runtime_opts), where a link counts 32 bytes plus its
 * message. If links are left out, `*truncated` is true and a chain_truncated event is traced. The root cause is never
 * left out, unless `room` is 0. */
ebb_status ebb_region_causes(ebb_cx *cx, ebb_region region, ebb_region_cause *out, uint32_t room, uint32_t *n,
                             bool *truncated);

/* ---- tasks ------------------------------------------------------------------------------------ */

typedef enum ebb_task_phase {
    EBB_TASK_CREATED = 1,
    EBB_TASK_RUNNING = 2,
    EBB_TASK_CANCEL_REQUESTED = 3,
    EBB_TASK_CANCELLING = 4,
    EBB_TASK_FINALIZING = 5,
    EBB_TASK_COMPLETED = 6
} ebb_task_phase;

/* One step of a task. EBB_PENDING parks the task until a wake-up; any other value ends it. EBB_FAULTED is a fault,
 * which a cancel does not hide. EBB_CANCELLED is a cancel. Other negative values are failures. Wake-ups may be
 * spurious: check again what the task waits for. */
typedef ebb_status (*ebb_poll_fn)(ebb_cx *cx, void *state);

typedef struct ebb_task_opts {
    uint32_t size;     /* sizeof(ebb_task_opts) of the caller; 0: this one */
    uint64_t deadline; /* absolute: cancelled with TIMEOUT then; until then in the timed lane. 0: none */
    uint32_t polls;    /* the task is cancelled with BUDGET after this number of polls. 0: no bound */
    uint8_t priority;  /* the region's, if that is higher */
    bool keep;         /* the outcome is kept for ebb_task_join */
    const char *name;  /* in a trace; kept by pointer: use a literal. NULL: none */
} ebb_task_opts;

#define EBB_SITE_(file, line)     file ":" #line
#define EBB_SITE_LINE(file, line) EBB_SITE_(file, line)
#define EBB_SITE                  EBB_SITE_LINE(__FILE__, __LINE__)

/* Starts a task in `region`. Returns its id, or an id that carries an error. The task is queued and is not polled
 * before this returns. If the task fails, the region fails. `state` stays the caller's and must stay valid until the
 * task has ended. An optional fifth argument is an ebb_task_opts:
 *
 *     ebb_spawn(cx, region, poll, state, &(ebb_task_opts){.deadline = t});
 *
 * Room for the task in every run queue is allocated now, so that no later wake-up or cancel needs memory.
 * EBB_ERR_CLOSED, EBB_CANCELLED, EBB_ERR_VERSION as ebb_region_open; EBB_ERR_INVALID: `poll` is NULL. EBB_ERR_NOMEM and
 * EBB_ERR_LIMIT are also the region's failure. ebb_go (ebb/future.h) starts a task whose outcome a future gets.
 * ebb_fiber_spawn and ebb_fiber_go (ebb/fiber.h) start fibers. */
#define ebb_spawn(...) EBB_WITH_OPTS(ebb_spawn_site, ebb_spawn_opts_site, __VA_ARGS__)
ebb_task ebb_spawn_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state, const char *site);
ebb_task ebb_spawn_opts_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                             const ebb_task_opts *opts, const char *site);

/* Calls `plain` if there are four arguments and `with` if there are more, and adds the site. An initializer in braces
 * counts as several arguments; it may contain up to eight commas. Fewer than four: the compiler names what is missing. */
#define EBB_WITH_OPTS(plain, with, ...)                                                                      \
    EBB_PICK_(__VA_ARGS__, with, with, with, with, with, with, with, with, with, plain,                      \
              needs_cx_region_function_argument, needs_cx_region_function_argument,                          \
              needs_cx_region_function_argument, 0)                                                          \
    (__VA_ARGS__, EBB_SITE)
#define EBB_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, name, ...) name

/* Waits for a task that was spawned with `keep`, returns its outcome and frees it. A poll operation and a checkpoint,
 * like ebb_region_join. EBB_ERR_BUSY: another task already waits in a join of it. EBB_ERR_INVALID: the task was spawned
 * without `keep`, or is the caller. EBB_ERR_NOT_TASK: a callback. EBB_DISCARDED: a layer of Ebb has ended the task
 * without running it again (docs/kernel.md, Discard). */
ebb_status ebb_task_join(ebb_cx *cx, ebb_task task);

/* Makes a parked task runnable, in the lane that its state calls for. Idempotent until the task is polled; during the
 * task's own poll it schedules one more poll. EBB_ERR_STALE: the task has ended; the wake-up is counted as stale and
 * has no other effect. EBB_ERR_FOREIGN, or the error that the id carries. */
ebb_status ebb_task_wake(ebb_cx *cx, ebb_task task);

/* Cancel or force one task. As ebb_region_cancel and ebb_region_force otherwise. */
void ebb_task_cancel(ebb_cx *cx, ebb_task task, ebb_cancel_kind kind, const char *message);
void ebb_task_force(ebb_cx *cx, ebb_task task);

/* A place where a task may stop. EBB_CANCELLED, which acknowledges the request, if the task is cancelled and not
 * masked, or its budget is used up, masked or not. Else EBB_OK. Every await is a checkpoint. All later checkpoints
 * return EBB_CANCELLED too: cleanup code that awaits does so masked. */
ebb_status ebb_checkpoint_slow(ebb_cx *cx);
static inline ebb_status ebb_checkpoint(ebb_cx *cx) {
    return ebb_cancelled(cx) ? ebb_checkpoint_slow(cx) : EBB_OK;
}

/* Begin and end a masked section, in which a cancel request waits. Up to 32 masks may be nested; they hold across
 * awaits. EBB_ERR_MASK_DEPTH: the 33rd mask. EBB_ERR_MASK_UNDERFLOW: no mask to end, or the mask of a finalizer.
 * EBB_ERR_NOT_TASK: the host. */
#define EBB_MASK_MAX 32
ebb_status ebb_mask(ebb_cx *cx);
ebb_status ebb_unmask(ebb_cx *cx);

typedef struct ebb_task_info {
    ebb_task task;
    ebb_region region;
    ebb_task_phase phase;
    ebb_status status;  /* the outcome of a completed task that is kept; else EBB_PENDING */
    uint8_t mask_depth; /* 0: not masked */
    uint8_t lane;       /* ebb_lane: the run queue that it is in */
    uint8_t epoch;      /* cancel epoch; 0: no cancel request yet */
    bool forced;        /* its budget is used up */
    ebb_reason reason;  /* of its cancel request */
    ebb_budget budget;  /* what is left of its budget */
    const char *site;   /* where it was spawned */
} ebb_task_info;

typedef enum ebb_lane {
    EBB_LANE_NONE = 0,
    EBB_LANE_CANCEL = 1,
    EBB_LANE_TIMED = 2,
    EBB_LANE_READY = 3
} ebb_lane;

/* Writes the state of a task to `*out`. */
ebb_status ebb_task_info_of(ebb_cx *cx, ebb_task task, ebb_task_info *out);

/* ---- witness ---------------------------------------------------------------------------------- */

/* A snapshot of one task's cancellation; the fields are those of ebb_task_info and its reason. */
typedef struct ebb_witness {
    ebb_task task;
    ebb_region region;
    uint8_t epoch, phase, severity, kind;
    ebb_budget budget;
} ebb_witness;

/* Takes a snapshot of `task`. */
ebb_status ebb_task_witness(ebb_cx *cx, ebb_task task, ebb_witness *out);

/* EBB_OK if `later` may follow `earlier`; else the EBB_ERR_WITNESS_* that names the first field which may not. */
ebb_status ebb_witness_check(const ebb_witness *earlier, const ebb_witness *later);

/* ---- obligations and finalizers --------------------------------------------------------------- */

typedef enum ebb_obligation_kind {
    EBB_OBLIGATION_PERMIT = 1,
    EBB_OBLIGATION_ACK = 2,
    EBB_OBLIGATION_LEASE = 3,
    EBB_OBLIGATION_FENCE = 4,
    EBB_OBLIGATION_IO = 5,
    EBB_OBLIGATION_TRANSACTION = 6
} ebb_obligation_kind;

/* Reserves an obligation: a promise to resolve something by exactly one commit or abort. Returns its id, or an id that
 * carries an error. It belongs to the task that reserves it; an obligation of the host belongs to the root region. If
 * its task ends before it is resolved, it leaks and is aborted. `on_abort` (may be NULL) is called with `arg` when it
 * is aborted: in ebb_obligation_abort, or after a leak in the pump, never inside a verb. EBB_CANCELLED: the task is
 * cancelled and not masked. EBB_ERR_CLOSED: the task has ended and only its hooks still run, or the root admits
 * nothing. EBB_ERR_INVALID: an unknown kind. EBB_ERR_NOMEM. */
#define ebb_obligation_reserve(cx, kind, on_abort, arg)                                                      \
    ebb_obligation_reserve_site((cx), (kind), (on_abort), (arg), EBB_SITE)
ebb_obligation ebb_obligation_reserve_site(ebb_cx *cx, ebb_obligation_kind kind, void (*on_abort)(void *arg),
                                           void *arg, const char *site);
/* Reserves an obligation of a region. The caller must be one that may spawn into the region; errors as ebb_region_open.
 * The region stays in EBB_REGION_FINALIZING until a finalizer, another task or the host has resolved the obligation. If
 * the region is forced, the obligation leaks. */
#define ebb_region_reserve(cx, region, kind, on_abort, arg)                                                  \
    ebb_region_reserve_site((cx), (region), (kind), (on_abort), (arg), EBB_SITE)
ebb_obligation ebb_region_reserve_site(ebb_cx *cx, ebb_region region, ebb_obligation_kind kind,
                                       void (*on_abort)(void *arg), void *arg, const char *site);
/* Resolve an obligation. Abort calls `on_abort` before it returns. EBB_ERR_RESOLVED: it was resolved before, or has
 * leaked. */
ebb_status ebb_obligation_commit(ebb_cx *cx, ebb_obligation obligation);
ebb_status ebb_obligation_abort(ebb_cx *cx, ebb_obligation obligation);

/* Adds a finalizer: `fn` runs when this task has returned or was abandoned, masked, the last added first. It is polled
 * like a task: EBB_PENDING waits. It may open cleanup scopes. A finalizer of the host belongs to the root region.
 * EBB_ERR_NOMEM, EBB_ERR_INVALID (`fn` is NULL), EBB_ERR_CLOSED (the task has returned): not added. */
#define ebb_defer(cx, fn, arg) ebb_defer_site((cx), (fn), (arg), EBB_SITE)
ebb_status ebb_defer_site(ebb_cx *cx, ebb_poll_fn fn, void *arg, const char *site);

/* Adds a finalizer of a region: `fn` runs when the region's tasks and child regions have ended. Errors as ebb_defer;
 * and EBB_ERR_CLOSED or EBB_CANCELLED if the region does not admit it, as ebb_region_open. */
#define ebb_region_defer(cx, region, fn, arg) ebb_region_defer_site((cx), (region), (fn), (arg), EBB_SITE)
ebb_status ebb_region_defer_site(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg, const char *site);

/* ---- waits ------------------------------------------------------------------------------------ */

/* One wait of a task. Embed it, zeroed, in the state that you pass to an await. It is in use until the await returns
 * something other than EBB_PENDING. */
typedef struct ebb_wait ebb_wait;

/* One kind of wait. */
typedef struct ebb_wait_kind {
    const char *what; /* for ebb_runtime_dump: "channel" */
    /* Takes the waiter out of the queue that it is in. The kernel calls it if the task ends or is abandoned
     * meanwhile. */
    void (*cancel)(ebb_wait *w);
} ebb_wait_kind;

struct ebb_wait {
    ebb_wait *next, *prev;      /* in the queue of `on` */
    ebb_wait *sibling, **owner; /* among the waits of the task */
    ebb_cx *cx;                 /* the waiting task; NULL: not in use */
    const ebb_wait_kind *kind;  /* set by ebb_wait_begin */
    void *on;                   /* the object that the task waits for */
    uint32_t granted;           /* not 0: the waiter has been given the item or place that it waits for */
    uint32_t number;            /* in the journal */
};

/* To build awaits: begin and end a wait of cx's task. EBB_ERR_NOT_TASK: the host and callbacks cannot wait.
 * EBB_ERR_BUSY: `w` is in use. EBB_ERR_CLOSED: the task has ended and only its hooks still run. */
ebb_status ebb_wait_begin(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on);
void ebb_wait_end(ebb_wait *w);

/* ---- recording -------------------------------------------------------------------------------- */

/* The events that a runtime records; ebb/trace.h reads them. */
typedef enum ebb_event_type {
#define EBB_EVENT(name, value, text, is_cancel) name = (value),
#include <ebb/event.def>
#undef EBB_EVENT
    EBB_EV_MAX = 200
} ebb_event_type;

/* A record of 32 bytes, little-endian, as in buffers and files. */
typedef struct ebb_record {
    uint8_t type;    /* ebb_event_type; in a journal an operation, see docs/journal.md */
    uint8_t phase;   /* of the task after the event (ebb_task_phase), or of the region (ebb_region_state) */
    uint8_t kind;    /* ebb_cancel_kind of its cancel request; 0: not cancelled */
    uint8_t epoch;   /* low 4 bits: cancel epoch; high 4 bits: severity */
    uint32_t value;  /* by type: see event.def */
    uint64_t task;   /* id; 0: none */
    uint64_t region; /* id; 0: none */
    uint64_t other;  /* by type: see event.def */
} ebb_record;

/* Start recording into a buffer of `bytes` (rounded up to blocks of 4096, at least two). 0 bytes stops. If the buffer
 * is full, events are dropped and counted, and a gap record has their number: recording never stalls. A new start drops
 * the records that were not taken. A start that fails (EBB_ERR_NOMEM, EBB_ERR_INVALID: too large) changes nothing. A
 * trace is complete, and a journal can be replayed, only if recording starts before anything else is done with the
 * runtime. */
ebb_status ebb_trace_start(ebb_runtime *rt, size_t bytes);
ebb_status ebb_journal_start(ebb_runtime *rt, size_t bytes);

/* Take the records out of the buffer, as bytes to append to a file. The first call also writes the file header. `write`
 * is called with full blocks only; `flush` also writes the last, partial block. Not for a recording with a `write` of its
 * own. */
void ebb_trace_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx);
void ebb_journal_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx);

/* Sets the host's turn and microtask batch, which every later event carries. They start at 1, 1. A call in which either
 * is 0 is ignored. */
void ebb_runtime_set_turn(ebb_runtime *rt, uint64_t host_turn_id, uint64_t microtask_batch_id);

/* ---- trace context ---------------------------------------------------------------------------- */

/* The context of a distributed trace, as W3C defines it: which trace work belongs to, and the span that asked for it. A
 * server takes it from the header `traceparent` of a request; it belongs to the region of the exchange and to all regions
 * below it. Calls of a client and starts of durable instances that are made there pass it on, each with a span id of
 * its own. */
typedef struct ebb_traceparent {
    uint8_t trace[16]; /* not all 0 */
    uint8_t span[8];   /* not all 0 */
    uint8_t flags;     /* 1: sampled, 2: the trace id is random; others are 0 */
} ebb_traceparent;

enum { EBB_TRACEPARENT_TEXT = 55 }; /* "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" */

/* Reads the value of a header, of version 00 or a later one that begins like it. EBB_ERR_FORMAT: it is not valid, and
 * *out is unchanged. */
ebb_status ebb_traceparent_parse(const char *text, size_t n, ebb_traceparent *out);
/* Writes a context as a header of version 00, 0-terminated. */
void ebb_traceparent_text(const ebb_traceparent *t, char out[EBB_TRACEPARENT_TEXT + 1]);
/* The context of the work that runs in cx. False: it has none, and *out is unchanged. */
bool ebb_cx_traceparent(const ebb_cx *cx, ebb_traceparent *out);

/* ---- watchdog --------------------------------------------------------------------------------- */

/* The state of a watchdog: zero it, and use one for each runtime. */
typedef struct ebb_watchdog {
    uint64_t poll, since, reported;
} ebb_watchdog;

/* Finds a poll, finalizer or hook that does not return. Call it periodically from another thread; `now` is the
 * monotonic clock of that thread. The runtime must be made with `watched`. EBB_TIMEOUT if one call has been running for
 * 1 s, and again every 10 s; else EBB_OK. `*out` names the call. For a hook or callback inside a poll it names the
 * hook: an abort hook by its obligation and where that was reserved; on_closed, on_state and on_overdue by their region
 * and where that was opened; a callback (id 0) by where its future was made; the `cancel` of a wait by its task and
 * `what`. */
ebb_status ebb_watchdog_check(const ebb_runtime *rt, ebb_watchdog *w, uint64_t now, ebb_work *out);

#ifdef __cplusplus
}
#endif
#endif
