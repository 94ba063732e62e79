/* ebb/kernel.h - tasks, regions, obligations, and how they end.
 *
 * A *region* owns tasks, child regions, obligations and finalizers; nothing outlives its region. A
 * *task* is a poll function and the caller's state. Everything ends by one protocol, in three verbs:
 *
 *   close    no new work; what runs goes on to its end              ebb_stopping(cx) is true
 *   cancel   close, and ask what runs to stop, with a cleanup budget ebb_cancelled(cx) is true
 *   force    the budget is over: what does not return is abandoned
 *
 * The verbs never fail, never allocate, never block and never run your code: they mark and enqueue.
 * Your code runs in ebb_runtime_pump() (ebb/sched.h); besides, only ebb_obligation_abort() calls the hook of what it aborts.
 *
 * Rules that hold for every function below, unless it says otherwise:
 *  - Threads: a runtime belongs to one thread at a time. Only ebb_watchdog_* may be called elsewhere.
 *  - `cx` says who asks: the task that is being polled; outside of polls ebb_runtime_host(rt), or, where the host runs
 *    the code of tasks between their polls (a browser does), a task that is parked: it may do everything but
 *    wait.
 *  - Ids are values; a stale one is EBB_ERR_STALE, one of another runtime EBB_ERR_FOREIGN. Never UB.
 *  - A *poll operation* returns EBB_PENDING while it waits, and is called again when the task is polled. In a
 *    fiber (ebb/fiber.h) it waits in place and never returns that.
 *  - Memory: what allocates says so, and what it does when there is none.
 *  - Strings given as `site` are kept by pointer (use literals); messages are copied and cut.
 *  - fork: the child may use a runtime only if the parent no longer does; nothing is shared.
 *  - longjmp: not out of a poll, finalizer or hook; the kernel would believe that it still runs.
 *    Return EBB_FAULTED instead. */
#ifndef EBB_KERNEL_H
#define EBB_KERNEL_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_runtime ebb_runtime;

/* Ids: 8 bits runtime, 24 bits index, 32 bits generation. 0 is no id. An id may carry an error: a
 * constructor that fails returns one, and everything done with it returns that error. A region
 * remembers a spawn that found no memory or met a limit as its failure, until join. */
typedef struct ebb_task {
    uint64_t id;
} ebb_task;
typedef struct ebb_region {
    uint64_t id;
} ebb_region;
typedef struct ebb_obligation {
    uint64_t id;
} ebb_obligation;

/* EBB_OK for an id that names something (now or once), else the error that it carries. */
ebb_status ebb_id_status(uint64_t id);

/* ---- context ---------------------------------------------------------------------------------- */

/* Who asks. The first word of a task's record; the rest is the kernel's. A cx is valid as long as
 * its task lives, and stays at its address. */
typedef struct ebb_cx {
    uint32_t signal;
} ebb_cx;
#define EBB_CX_CANCEL 1u /* cancel is requested and not masked */
#define EBB_CX_STOP   2u /* the region is closing */

/* True once this task is asked to stop and is not masked. Acknowledges nothing. One load. */
static inline bool ebb_cancelled(const ebb_cx *cx) {
    return (cx->signal & EBB_CX_CANCEL) != 0;
}

/* True once this task's region no longer admits work: finish what you have, take nothing new. */
static inline bool ebb_stopping(const ebb_cx *cx) {
    return cx->signal != 0;
}

ebb_runtime *ebb_cx_runtime(const ebb_cx *cx);
ebb_task ebb_cx_task(const ebb_cx *cx);     /* id 0 for the host */
ebb_region ebb_cx_region(const ebb_cx *cx); /* the root for the host */
uint64_t ebb_now(const ebb_cx *cx);         /* by the runtime's clock; else what the host advanced it to */

/* ---- reason and budget ------------------------------------------------------------------------ */

/* Why something is cancelled. The severity belongs to the kind: polite, urgent, forced. PARENT is
 * what a child is told; it has the severity of the root cause. */
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
    EBB_CANCEL_DROPPED = 15 /* of futures only: nobody could reach it any more */
} ebb_cancel_kind;

typedef enum ebb_severity {
    EBB_SEVERITY_POLITE = 1,
    EBB_SEVERITY_URGENT = 2,
    EBB_SEVERITY_FORCED = 3
} ebb_severity;

#define EBB_MESSAGE_MAX 47 /* bytes of a reason's message, then a 0; a longer one ends in "..." */

typedef struct ebb_reason {
    uint8_t kind;      /* ebb_cancel_kind; NONE: not cancelled */
    uint8_t severity;  /* ebb_severity; 0: not cancelled */
    uint8_t runtime;   /* where it was said first */
    uint64_t origin;   /* id of the task or region that said it; 0: the host */
    uint64_t sequence; /* the runtime's count of requests */
    char message[EBB_MESSAGE_MAX + 1];
} ebb_reason;

/* What cleaning up may cost. The meet of two is the earlier deadline, fewer polls, higher priority. */
typedef struct ebb_budget {
    uint64_t deadline; /* absolute; EBB_FOREVER: none */
    uint32_t polls;    /* EBB_POLLS_UNBOUNDED: none */
    uint8_t priority;  /* higher is more urgent */
} ebb_budget;
#define EBB_POLLS_UNBOUNDED UINT32_MAX

const char *ebb_cancel_kind_name(ebb_cancel_kind kind);      /* "USER"; never NULL */
ebb_severity ebb_cancel_kind_severity(ebb_cancel_kind kind); /* 0 for NONE and PARENT */

/* The stronger of two reasons: severity, then the earlier sequence, then runtime, kind, origin,
 * message. A join: commutative, associative, idempotent. A reason of kind NONE is its zero. */
ebb_reason ebb_reason_strengthen(const ebb_reason *a, const ebb_reason *b);

/* The tighter of two budgets. A meet: commutative, associative, idempotent. */
ebb_budget ebb_budget_combine(ebb_budget a, ebb_budget b);

/* ---- runtime ---------------------------------------------------------------------------------- */

/* How long cleaning up may take, by severity (index 1..3). 0 in either field: the default. */
typedef struct ebb_cleanup_budget {
    uint64_t time_ns;
    uint32_t polls;
} ebb_cleanup_budget;

typedef struct ebb_runtime_opts {
    uint32_t size; /* sizeof(ebb_runtime_opts) of the caller; 0: this one */
    ebb_allocator allocator;
    uint8_t runtime_id; /* the top byte of every id; tell runtimes apart by it */
    uint64_t now;       /* the time at the start */
    ebb_cleanup_budget cleanup[4];
    uint32_t max_tasks;   /* 0: 2^24 - 1 */
    uint32_t max_regions; /* 0: 2^24 - 1 */
    bool watched;         /* publish what is being polled, for ebb_watchdog_check */
    /* The time now, for spans that begin in the middle of a turn: the runtime reads it when a span is armed or
     * a cleanup budget starts, and in ebb_now. A loop has its own. NULL: the time is what ebb_runtime_advance says. */
    uint64_t (*clock)(void *ctx);
    void *clock_ctx;
    uint32_t chain_depth; /* links of a cause chain that is read. 0: EBB_CHAIN_DEPTH */
    uint32_t chain_bytes; /* and its bytes; see ebb_region_causes. 0: EBB_CHAIN_BYTES */
} ebb_runtime_opts;

/* A new runtime with its root region open. EBB_ERR_NOMEM leaves nothing behind. */
ebb_status ebb_runtime_new(const ebb_runtime_opts *opts, ebb_runtime **out);

/* Frees everything, in any state but from inside a pump, without running anybody's code but
 * the `free` of values that futures still have. To end in good order, cancel or
 * close the root, pump until ebb_region_state_of says EBB_REGION_CLOSED, then free. NULL is allowed. */
void ebb_runtime_free(ebb_runtime *rt);

ebb_cx *ebb_runtime_host(ebb_runtime *rt); /* the host's own context: its region is the root */
ebb_region ebb_runtime_root(const ebb_runtime *rt);

typedef struct ebb_runtime_stats {
    uint64_t polls;   /* polls so far */
    uint64_t spawned; /* tasks so far */
    uint64_t ended;
    uint64_t stale_wakes;   /* wakes and cancels of what had ended */
    uint64_t leaks;         /* obligations nobody resolved */
    uint64_t abandoned;     /* tasks and finalizers that did not return */
    uint64_t illegal;       /* transitions refused */
    uint64_t trace_lost;    /* events lost to a full trace buffer */
    uint32_t tasks;         /* alive */
    uint32_t regions;       /* not closed, the root included */
    uint32_t obligations;   /* reserved */
    uint32_t timers;        /* armed by ebb_timer_arm */
    uint32_t runnable;      /* queued in a lane */
    uint32_t retired;       /* slots whose generations are used up */
    uint32_t worst_wait[3]; /* cancel, timed, ready: most polls of other lanes while its head waited */
} ebb_runtime_stats;

void ebb_runtime_stats_of(const ebb_runtime *rt, ebb_runtime_stats *out);

/* Prints the live tree, one line an object: regions with state and reason, tasks with phase, lane,
 * mask, what they wait for and where they were spawned, obligations and finalizers. `write` gets
 * pieces of text that are not 0-terminated. No recursion, no allocation. */
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
    ebb_status status; /* the first failure; else EBB_CANCELLED if a task was; else EBB_OK */
    ebb_task failed;   /* whose failure that was */
    uint32_t abandoned;
    uint32_t leaked;
} ebb_region_report;

typedef enum ebb_failure_policy {
    EBB_FAIL_FAST = 0,   /* the first failure cancels the others with SIBLING_FAILED */
    EBB_FAIL_COLLECT = 1 /* the first failure is remembered, the others go on */
} ebb_failure_policy;

typedef struct ebb_region_opts {
    uint32_t size;     /* sizeof(ebb_region_opts) of the caller; 0: this one */
    ebb_region parent; /* 0: the region of cx */
    ebb_failure_policy policy;
    uint64_t deadline; /* absolute; cancelled with TIMEOUT then. 0: none */
    uint8_t priority;
    bool cleanup; /* a cleanup scope: admits work while what is around it is cancelled */
    bool unit; /* a unit of work: a close from above leaves it open to the tasks inside. Not with `cleanup` */
    /* Called once from the pump when the region has closed; then it is freed without a join. */
    void (*on_closed)(void *arg, const ebb_region_report *report);
    void *arg;
    const char *site; /* set by the macro */
} ebb_region_opts;

/* A new child region. A task's regions that are still open when it returns are cancelled and joined; a
 * failure of theirs is then the task's. The failure of a region that nobody has joined when its parent
 * closes is the parent's.
 * A *cleanup scope* may be opened only by a task under request or a finalizer (else
 * EBB_ERR_NOT_CLEANING); its budget is what is left of its owner's (each of its tasks may use as many polls
 * as the owner has left), and a cancel from above does not reach into it (force does). Never fails loudly:
 * see ebb_id_status. EBB_ERR_CLOSED: the parent does not admit it (docs/kernel.md, Admission); EBB_CANCELLED instead
 * for a task that is itself cancelled, which is a checkpoint. EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed.
 * `opts` may be NULL. */
#define ebb_region_open(cx, ...) ebb_region_open_site((cx), (__VA_ARGS__), EBB_SITE)
ebb_region ebb_region_open_site(ebb_cx *cx, const ebb_region_opts *opts, const char *site);

/* The three verbs, on a region and everything below it. An id that is stale counts as a stale wake;
 * a foreign one or one that carries an error is ignored. Repeating one is allowed: a cancel
 * strengthens the reason and tightens the budget. They return nothing because they can't fail. */
void ebb_region_close(ebb_cx *cx, ebb_region region);
void ebb_region_cancel(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message);
void ebb_region_force(ebb_cx *cx, ebb_region region);

/* As ebb_region_cancel, with a cleanup budget of the caller's own instead of the table's. */
void ebb_region_cancel_within(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message,
                              ebb_budget budget);

/* Waits until all of a region has ended, closes it, and returns the first failure (see ebb_region_report). Leaks and
 * abandoned work are none: `on_closed` tells of them.
 * A poll operation: EBB_PENDING while it is not closed, then the region is freed. In a task it is a
 * checkpoint, so it may return EBB_CANCELLED (the region is then still there; it goes with the
 * task). Only whoever opened the region may join it: its task, or the host (else EBB_ERR_BUSY). */
ebb_status ebb_region_join(ebb_cx *cx, ebb_region region);

/* What is known of a region; its state is EBB_REGION_CLOSED until it is joined or its parent closes. */
ebb_status ebb_region_state_of(ebb_cx *cx, ebb_region region, ebb_region_state *out);
ebb_status ebb_region_report_of(ebb_cx *cx, ebb_region region, ebb_region_report *out);

/* The i-th task or operation that was abandoned, or obligation that leaked, in this region: its id (0 for an
 * operation) and where it was spawned, begun or reserved. EBB_ERR_INVALID past the last. */
typedef struct ebb_work {
    uint64_t id;
    const char *site;
} ebb_work;
ebb_status ebb_region_abandoned_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out);
ebb_status ebb_region_leaked_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out);

/* The cause chain of a region's cancellation, the region's own reason first, its root cause last,
 * read through the parents. At most `room` links, `chain_depth` of the runtime's options, and `chain_bytes` of
 * these, where a link counts 32 and its message. Where it is cut `truncated` is true, the last link given is the
 * root cause, which is given in any case if there is room for a link, and a chain_truncated event is traced. */
#define EBB_CHAIN_DEPTH 24   /* unless the options say otherwise */
#define EBB_CHAIN_BYTES 1024 /* the same */
typedef struct ebb_region_cause {
    ebb_region region;
    ebb_reason reason;
} ebb_region_cause;
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

/* One step of a task. EBB_PENDING parks it until somebody wakes it; anything else ends it:
 * EBB_FAULTED is a fault, which no cancel hides; other negative values are failures. Wakes may be
 * spurious: look again at what you wait for. */
typedef ebb_status (*ebb_poll_fn)(ebb_cx *cx, void *state);

typedef struct ebb_task_opts {
    uint32_t size;     /* sizeof(ebb_task_opts) of the caller; 0: this one */
    uint64_t deadline; /* absolute; cancelled with TIMEOUT then, and it runs in the timed lane. 0: none */
    uint32_t polls;    /* cancelled with BUDGET after so many. 0: unbounded */
    uint8_t priority;
    bool keep; /* the outcome is kept for ebb_task_join */
} ebb_task_opts;

#define EBB_SITE_(file, line)     file ":" #line
#define EBB_SITE_LINE(file, line) EBB_SITE_(file, line)
#define EBB_SITE                  EBB_SITE_LINE(__FILE__, __LINE__)

/* A new task in `region`. It is queued, and not polled before this returns. Its end is the region's: a failure is one of
 * the region. `state` stays the caller's and must live until the task has ended. A fifth argument, which may be left out,
 * is an ebb_task_opts: ebb_spawn(cx, region, poll, state, &(ebb_task_opts){.deadline = t}). Room for the task in every
 * queue is allocated now, so that no later wake or cancel needs memory. Errors as of ebb_region_open; EBB_ERR_NOMEM and
 * EBB_ERR_LIMIT are also the region's failure. ebb_go (ebb/future.h) starts a task whose end is a future's; ebb_fiber_spawn
 * and ebb_fiber_go (ebb/fiber.h) are the same for a fiber. */
#define ebb_spawn(...) EBB_WITH_OPTS(ebb_spawn_site, ebb_spawn_opts_site, __VA_ARGS__)
ebb_task ebb_spawn_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state, const char *site);
ebb_task ebb_spawn_opts_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                             const ebb_task_opts *opts, const char *site);

/* Calls `plain` with four arguments, or `with` if there are more, and adds the site. An initializer in braces counts as
 * several arguments: up to eight commas in it. */
#define EBB_WITH_OPTS(plain, with, ...)                                                                      \
    EBB_PICK_(__VA_ARGS__, with, with, with, with, with, with, with, with, with, plain, 0)                   \
    (__VA_ARGS__, EBB_SITE)
#define EBB_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, name, ...) name

/* Waits for a kept task and returns its outcome. A poll operation and a checkpoint, like
 * ebb_region_join. One waiter at a time, else EBB_ERR_BUSY: as long as the task that asked first still
 * waits in a join. */
ebb_status ebb_task_join(ebb_cx *cx, ebb_task task);

/* Makes a parked task runnable, in the lane that its state asks for. Deduplicated; during the task's
 * own poll it schedules one more. A wake of a task that has ended is counted as stale and is no
 * error. Returns EBB_ERR_FOREIGN, EBB_ERR_STALE or EBB_OK. */
ebb_status ebb_task_wake(ebb_cx *cx, ebb_task task);

/* cancel and force for one task. */
void ebb_task_cancel(ebb_cx *cx, ebb_task task, ebb_cancel_kind kind, const char *message);
void ebb_task_force(ebb_cx *cx, ebb_task task);

/* A place where a task may stop: EBB_CANCELLED if it is asked to and is not masked (or its budget is
 * over, masked or not), and that is then acknowledged; else EBB_OK. Every await is one. It keeps
 * saying EBB_CANCELLED; a cleanup that awaits does so masked. */
ebb_status ebb_checkpoint_slow(ebb_cx *cx);
static inline ebb_status ebb_checkpoint(ebb_cx *cx) {
    return ebb_cancelled(cx) ? ebb_checkpoint_slow(cx) : EBB_OK;
}

/* In a masked section a cancel waits. Nests to 32 and holds across awaits. */
#define EBB_MASK_MAX 32
ebb_status ebb_mask(ebb_cx *cx);   /* EBB_ERR_MASK_DEPTH for the 33rd */
ebb_status ebb_unmask(ebb_cx *cx); /* EBB_ERR_MASK_UNDERFLOW */

typedef struct ebb_task_info {
    ebb_task task;
    ebb_region region;
    ebb_task_phase phase;
    ebb_status status; /* of a completed task that is kept */
    uint8_t mask_depth;
    uint8_t lane;  /* ebb_lane */
    uint8_t epoch; /* 0: no request yet */
    bool forced;
    ebb_reason reason;
    ebb_budget budget;
    const char *site;
} ebb_task_info;

typedef enum ebb_lane {
    EBB_LANE_NONE = 0,
    EBB_LANE_CANCEL = 1,
    EBB_LANE_TIMED = 2,
    EBB_LANE_READY = 3
} ebb_lane;

ebb_status ebb_task_info_of(ebb_cx *cx, ebb_task task, ebb_task_info *out);

/* ---- witness ---------------------------------------------------------------------------------- */

/* What an observer holds of one task's cancellation. */
typedef struct ebb_witness {
    ebb_task task;
    ebb_region region;
    uint8_t epoch, phase, severity, kind;
    ebb_budget budget;
} ebb_witness;

ebb_status ebb_task_witness(ebb_cx *cx, ebb_task task, ebb_witness *out);

/* EBB_OK if `later` may follow `earlier`, else the EBB_ERR_WITNESS_* that says why it may not. */
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

/* A promise to resolve something: reserve, then exactly one of commit and abort. `on_abort` (may be
 * NULL) runs when it is aborted, by ebb_obligation_abort or because it leaked; it runs in the pump or in
 * ebb_obligation_abort, never inside a verb. Belongs to the task that reserves it, or to the root region for the host.
 * A task that is cancelled and not masked is refused, with EBB_CANCELLED; so are hooks of a task that has ended, with
 * EBB_ERR_CLOSED. */
#define ebb_obligation_reserve(cx, kind, on_abort, arg)                                                      \
    ebb_obligation_reserve_site((cx), (kind), (on_abort), (arg), EBB_SITE)
ebb_obligation ebb_obligation_reserve_site(ebb_cx *cx, ebb_obligation_kind kind, void (*on_abort)(void *arg),
                                           void *arg, const char *site);
/* The same for a region, by whoever may spawn into it. It holds the region in Finalizing until it is resolved,
 * by its finalizers, another task or the host; a region that is forced leaks it. */
#define ebb_region_reserve(cx, region, kind, on_abort, arg)                                                  \
    ebb_region_reserve_site((cx), (region), (kind), (on_abort), (arg), EBB_SITE)
ebb_obligation ebb_region_reserve_site(ebb_cx *cx, ebb_region region, ebb_obligation_kind kind,
                                       void (*on_abort)(void *arg), void *arg, const char *site);
ebb_status ebb_obligation_commit(ebb_cx *cx,
                                 ebb_obligation obligation);            /* EBB_ERR_RESOLVED the second time */
ebb_status ebb_obligation_abort(ebb_cx *cx, ebb_obligation obligation); /* likewise; runs on_abort now */

/* Runs `fn` when this task has returned (or been abandoned), last added first, masked. It is polled
 * like a task: EBB_PENDING waits. It may open cleanup scopes. EBB_ERR_NOMEM: not added. The host's
 * belong to the root region. */
#define ebb_defer(cx, fn, arg) ebb_defer_site((cx), (fn), (arg), EBB_SITE)
ebb_status ebb_defer_site(ebb_cx *cx, ebb_poll_fn fn, void *arg, const char *site);
/* The same for a region: runs when its tasks and children have ended. */
#define ebb_region_defer(cx, region, fn, arg) ebb_region_defer_site((cx), (region), (fn), (arg), EBB_SITE)
ebb_status ebb_region_defer_site(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg, const char *site);

/* ---- waits ------------------------------------------------------------------------------------ */

/* What a task waits for. Embed it, zeroed, in the state that you pass to an await; it is in use
 * until that await has returned something else than EBB_PENDING. */
typedef struct ebb_wait ebb_wait;

/* One kind of wait. `cancel` takes the waiter out of wherever it is queued; the kernel calls it when
 * the task ends or is abandoned meanwhile. */
typedef struct ebb_wait_kind {
    const char *what; /* for ebb_runtime_dump: "channel" */
    void (*cancel)(ebb_wait *w);
} ebb_wait_kind;

struct ebb_wait {
    ebb_wait *next, *prev;      /* in the queue of what is waited for */
    ebb_wait *sibling, **owner; /* among the waits of the task */
    ebb_cx *cx;                 /* who waits; NULL: not in use */
    const ebb_wait_kind *kind;
    void *on;         /* what is waited for */
    uint32_t granted; /* what it waited for is its own now */
    uint32_t number;  /* in the journal */
};

/* For those who build awaits: `w` now waits for cx's task; and no longer. EBB_ERR_NOT_TASK: the host
 * can't wait. EBB_ERR_BUSY: `w` is in use. EBB_ERR_CLOSED: the task is over, only its hooks still run. */
ebb_status ebb_wait_begin(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on);
void ebb_wait_end(ebb_wait *w);

/* ---- recording -------------------------------------------------------------------------------- */

/* What a runtime records; ebb/trace.h reads it. */
typedef enum ebb_event_type {
#define EBB_EVENT(name, value, text, is_cancel) name = (value),
#include <ebb/event.def>
#undef EBB_EVENT
    EBB_EV_MAX = 80
} ebb_event_type;

/* A record of 32 bytes, as it stands in buffers and files, little-endian. The meaning of `value` and
 * `other` by type stands in event.def. For a journal, `type` is an operation; docs/journal.md lists them. */
typedef struct ebb_record {
    uint8_t type;
    uint8_t phase; /* of the task after the event (ebb_task_phase), or of the region (ebb_region_state) */
    uint8_t kind;  /* ebb_cancel_kind of what it was told; 0: not cancelled */
    uint8_t epoch; /* low 4 bits: cancel epoch; high 4 bits: severity */
    uint32_t value;
    uint64_t task;
    uint64_t region;
    uint64_t other;
} ebb_record;

/* Starts recording into buffers of `bytes` each (rounded to whole blocks; EBB_ERR_NOMEM). When a
 * buffer is full before it is taken, events are dropped and counted, and a gap record says how many:
 * recording never stalls. 0 bytes stops; a new start drops what was not taken, and one that fails
 * (EBB_ERR_NOMEM, EBB_ERR_INVALID) changes nothing. A trace tells the whole story, and a journal can be
 * replayed, only if they are started before anything else is done with the runtime. */
ebb_status ebb_trace_start(ebb_runtime *rt, size_t bytes);
ebb_status ebb_journal_start(ebb_runtime *rt, size_t bytes);

/* Takes what has been recorded, as bytes to append to a file: the first call gives the file header
 * too. `write` is called with whole blocks only, unless `flush`, which ends the block in hand. */
typedef void (*ebb_write_fn)(void *ctx, const void *bytes, size_t n);
void ebb_trace_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx);
void ebb_journal_take(ebb_runtime *rt, bool flush, ebb_write_fn write, void *ctx);

/* The host's turn and microtask batch: stamped on every event from here on. They start at 1, 1; a 0
 * is ignored. */
void ebb_runtime_set_turn(ebb_runtime *rt, uint64_t host_turn_id, uint64_t microtask_batch_id);

/* ---- watchdog --------------------------------------------------------------------------------- */

/* Call from another thread, now and then, with one ebb_watchdog, zeroed, a runtime: EBB_TIMEOUT and
 * who it is when one poll, finalizer or hook has been running for 1 s, and again every 10 s; else EBB_OK. Of
 * hooks and callbacks that a poll calls, the one that runs is named: an abort hook by its obligation and where
 * that was reserved, on_closed, on_state and on_overdue by their region and where it was opened, a callback
 * (id 0) by where its future was made. `now` is that thread's own monotonic clock. The runtime must be made with
 * `watched`. */
typedef struct ebb_watchdog {
    uint64_t poll, since, reported;
} ebb_watchdog;
ebb_status ebb_watchdog_check(const ebb_runtime *rt, ebb_watchdog *w, uint64_t now, ebb_work *out);

#ifdef __cplusplus
}
#endif
#endif
