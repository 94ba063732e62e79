/* ebb/workflow.h - how a service is stopped, a rollout called off, a publish undone: request, drain,
 * finalize, with a budget and an audit trail.
 *
 * A *workflow* owns a region. Whatever is spawned, opened or reserved there is its work. When it is asked to
 * stop, it goes through the states below, each of which leaves a line in the audit log:
 *
 *     IDLE -> CANCEL_REQUESTED -> DRAINING -+-> DRAIN_COMPLETE -+-> FINALIZING -+-> FINALIZED
 *                                           +-> DRAIN_TIMEOUT --+               +-> LEAK_DETECTED
 *
 *   request      CAN-001  The region is closed: new work is refused with EBB_ERR_CLOSED (ebb_region_closed_text says
 *                         by whom), an accept too; ebb_stopping(cx) is true and ebb_closing(cx) completes;
 *                         what is in flight goes on.
 *   drain        CAN-002  The drain handlers start, in the order in which they were added.
 *     cancel_at           What is still in flight then is cancelled, with the rest of the budget to clean up.
 *     complete   CAN-003  Nothing is in flight and all handlers are done.
 *     timeout    CAN-004  The budget is over. What is left is forced, unless `no_force`: then an operator may
 *                         ask why (ebb_workflow_explain), extend it or force it. on_overdue
 *                         is told, again every 10 s.
 *   finalize              The region's finalizers run, everything is released.
 *     clean      CAN-005
 *     leak       CAN-006  Something was left: obligations that nobody resolved, work that did not stop.
 *                         Each is named; it is released all the same.
 *
 * The same happens if the region is closed, cancelled or forced by others: by what is around it, or because a
 * task in it has failed (EBB_FAIL_FAST). A workflow whose work ends without that ends as what it is, IDLE,
 * when it is joined.
 *
 * The rules at the head of ebb/kernel.h hold here too, and these:
 *  - A request can't fail for lack of memory: what it needs is taken when the workflow is opened and when
 *    handlers are added.
 *  - Nesting: a workflow opened in the region of another is asked to stop when that is, and has at most the
 *    time that is left there.
 *  - Threads: all of this is of the runtime's thread, and nothing checks that. Another one asks a service to
 *    stop by kill(getpid(), SIGTERM), and a workflow by ebb_peer_run, a bridge, or a promise that it settles as an
 *    ebb_remote, for a task here that then asks.
 *  - An id is stale once it is joined: EBB_ERR_STALE from every function that takes it. Between its end and
 *    the join a request says EBB_ERR_CANCEL_ALREADY_FINAL.
 *  - The trace has every transition too, as `workflow` events. */
#ifndef EBB_WORKFLOW_H
#define EBB_WORKFLOW_H

#include <ebb/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- workflows ------------------------------------------------------------------------------------ */

typedef struct ebb_workflow {
    uint64_t id; /* as those of the kernel: of a runtime, stale after the join, may carry an error */
} ebb_workflow;

typedef enum ebb_workflow_state {
    EBB_WORKFLOW_IDLE = 1,
    EBB_WORKFLOW_CANCEL_REQUESTED = 2,
    EBB_WORKFLOW_DRAINING = 3,
    EBB_WORKFLOW_DRAIN_COMPLETE = 4,
    EBB_WORKFLOW_DRAIN_TIMEOUT = 5,
    EBB_WORKFLOW_FINALIZING = 6,
    EBB_WORKFLOW_FINALIZED = 7,
    EBB_WORKFLOW_LEAK_DETECTED = 8
} ebb_workflow_state;

const char *ebb_workflow_state_name(ebb_workflow_state s); /* "DRAINING"; never NULL */

/* What kind of work is stopped. The five below, or one of your own: a struct that outlives its workflows. */
typedef struct ebb_workflow_type {
    const char *name;
    uint64_t budget;           /* ns from the request to the end of the drain */
    ebb_cancel_kind cancel_as; /* what is told at cancel_at. NONE: the reason of the request */
} ebb_workflow_type;

extern const ebb_workflow_type ebb_workflow_lifecycle_shutdown;      /* 5000 ms; SHUTDOWN */
extern const ebb_workflow_type ebb_workflow_rollout_cancel;          /* 3000 ms */
extern const ebb_workflow_type ebb_workflow_publish_abort;           /* 2000 ms */
extern const ebb_workflow_type ebb_workflow_health_check_cancel;     /* 1000 ms */
extern const ebb_workflow_type ebb_workflow_epoch_transition_cancel; /* 3000 ms */

typedef struct ebb_audit ebb_audit; /* see below */

typedef struct ebb_workflow_opts {
    uint32_t size; /* sizeof(ebb_workflow_opts) of the caller; 0: this one */
    const ebb_workflow_type *type;
    const char *name; /* which one of its type, "v42"; copied and cut at EBB_MESSAGE_MAX. NULL: none */
    uint64_t budget;  /* ns. 0: that of the type */
    /* ns after the request. 0: 60 % of the budget, and it moves with that when it is extended or meets a
     * shorter one. The budget itself: never before it is over. */
    uint64_t cancel_at;
    bool no_force;     /* when the budget is over, wait for an operator */
    bool root;         /* it is the root region that it stops; there can be one such, and nobody owns it */
    ebb_region parent; /* where its region is opened. 0: in the region of cx. Who owns it is the same */
    ebb_failure_policy policy; /* of its region; the root always collects */
    /* Must outlive it: one that has ended uses its log until it is joined or forgotten. NULL: that of the
     * workflow around it, if there is one. */
    ebb_audit *audit;
    /* Told of every change of state, right when it happens, on the stack of whoever caused it. With
     * ebb_runtime_host(rt) (rt: ebb_cx_runtime(cx), in `arg`) it may call ebb_workflow_request, _extend, _force,
     * _info, _leaked, _explain and _refusal, and nothing that waits or joins. LEAK_DETECTED is where to read
     * what was left. NULL: nobody is told. */
    void (*on_state)(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to);
    void *arg; /* of both hooks */
    /* With `no_force`: told when the budget is over, and again every EBB_WORKFLOW_OVERDUE_AGAIN while nobody extends
     * or forces it. It may call what on_state may; ebb_workflow_explain says who holds it up. NULL: nobody is
     * told. */
    void (*on_overdue)(void *arg, ebb_workflow wf);
} ebb_workflow_opts;

#define EBB_WORKFLOW_OVERDUE_AGAIN (10 * EBB_SECOND)

/* A new workflow, with its region. It belongs to the task that opens it, as a region does: when that returns,
 * the workflow is asked to stop, and waited for. (Not so with `root`, and for the host, who never returns.)
 * An id that carries the error: EBB_ERR_CLOSED; EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed;
 * EBB_ERR_INVALID: no type, a type without a name or with a `cancel_as` that is no reason, no budget at all
 * or one over 2^62 ns, a cancel_at after it, root and parent; EBB_ERR_BUSY: the root has one;
 * EBB_ERR_FOREIGN, EBB_ERR_STALE: of the parent; EBB_ERR_VERSION. */
#define ebb_workflow_open(cx, ...) ebb_workflow_open_site((cx), (__VA_ARGS__), EBB_SITE)
ebb_workflow ebb_workflow_open_site(ebb_cx *cx, const ebb_workflow_opts *opts, const char *site);

/* Where its work belongs. An id that carries the error if there is no such workflow. */
ebb_region ebb_workflow_region(ebb_cx *cx, ebb_workflow workflow);

/* Where tasks belong that serve an operator, by HTTP say: that extend, explain and force the workflow for
 * somebody outside. They are no work of it: neither in flight nor drained. The request does not close this region:
 * it accepts, spawns and answers until all the rest has drained, was forced, or has ended by itself. Then it is
 * closed, and what is left in it a twentieth of the budget later (more if cancel_at is early) is cancelled; the
 * finalizers wait for it. Made by
 * the first call, and nobody's own. A failure in it is the workflow's, and ends nothing else. An id that carries
 * the error: EBB_ERR_CLOSED: the drain is over; EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed; what is wrong with
 * the workflow's id. */
ebb_region ebb_workflow_operator_region(ebb_cx *cx, ebb_workflow workflow);

/* The workflow in whose region, or drain, this task is; the innermost. Id 0: none. */
ebb_workflow ebb_workflow_of(ebb_cx *cx);

/* ---- drain handlers --------------------------------------------------------------------------------- */

/* What a handler reports with. It is good until the workflow is joined or forgotten, and so for the tasks
 * that the handler spawns too. */
typedef struct ebb_drain ebb_drain;

/* Stops, completes or undoes something. It is a poll function in a task of its own: EBB_PENDING waits.
 * Neither the close nor the cancel of the workflow's region reaches it, and it may spawn, reserve and open
 * regions in its own, ebb_cx_region(cx): the drain waits for these too. When the budget is over it is
 * forced with all the rest. A negative status is reported, and is the workflow's failure. What a poll
 * function keeps between two polls stands in `arg`. */
typedef ebb_status (*ebb_drain_fn)(ebb_cx *cx, ebb_drain *d, void *arg);

/* Adds a handler. `name` is kept by pointer. EBB_ERR_CANCEL_INVALID_PHASE after the request; EBB_ERR_NOMEM,
 * EBB_ERR_LIMIT: not added, and the workflow's failure, as a spawn's is the region's. */
#define ebb_workflow_on_drain(cx, wf, name, fn, arg)                                                         \
    ebb_workflow_on_drain_site((cx), (wf), (name), (fn), (arg), EBB_SITE)
ebb_status ebb_workflow_on_drain_site(ebb_cx *cx, ebb_workflow workflow, const char *name, ebb_drain_fn fn,
                                      void *arg, const char *site);
/* The same for a handler that is a fiber: its awaits wait in place. It has its stack from now on. */
#define ebb_workflow_on_drain_fiber(cx, wf, name, fn, arg)                                                   \
    ebb_workflow_on_drain_fiber_site((cx), (wf), (name), (fn), (arg), EBB_SITE)
ebb_status ebb_workflow_on_drain_fiber_site(ebb_cx *cx, ebb_workflow workflow, const char *name,
                                            ebb_drain_fn fn, void *arg, const char *site);

/* For handlers. */
uint64_t ebb_drain_left(ebb_cx *cx, const ebb_drain *d); /* ns until the budget is over; then 0 */
/* How far it is; explain and the audit log show it. Without it they say 0 of 0. */
void ebb_drain_progress(ebb_drain *d, uint64_t done, uint64_t total);
/* A fact for the audit log, as a line of its own. What does not fit into one line is cut, and marked. NULL is
 * "". Without a log it goes nowhere. */
void ebb_drain_evidence(ebb_drain *d, const char *key, const char *value);
ebb_workflow ebb_drain_workflow(const ebb_drain *d);

/* ---- stopping ----------------------------------------------------------------------------------------- */

/* Asks it to stop. EBB_OK, the second time too: that is absorbed, and a stronger reason strengthens the one
 * it had. A kind that is no reason of its own (NONE, PARENT) is USER; a message of NULL is "".
 * EBB_ERR_CANCEL_ALREADY_FINAL: it has ended; or its work has, by itself, and its finalizers, which still
 * run, have its budget from now on. EBB_ERR_STALE: it was joined. */
ebb_status ebb_workflow_request(ebb_cx *cx, ebb_workflow workflow, ebb_cancel_kind kind, const char *message);

/* Gives a drain so many ns more, from the end of its budget or from now, whichever is later; 2^62 in all
 * at most. EBB_ERR_CANCEL_INVALID_PHASE: it does not drain, or what was in flight has its cleanup budget
 * already (after cancel_at, unless `no_force`). EBB_ERR_LIMIT: there is no more, or the workflow around it
 * leaves none. EBB_ERR_INVALID: 0. A cancel_at that is 60 % of the budget moves along; one that was given
 * does not. */
ebb_status ebb_workflow_extend(ebb_cx *cx, ebb_workflow workflow, uint64_t more);

/* Ends a drain now, as if its budget were over; of a workflow that finalizes, the time of its finalizers: they
 * have 8 polls more. `message` is `by` in the log; NULL: "operator".
 * EBB_ERR_CANCEL_INVALID_PHASE: it neither drains nor finalizes. */
ebb_status ebb_workflow_force(ebb_cx *cx, ebb_workflow workflow, const char *message);

/* Prints what it waits for, one line each: handlers with their progress; tasks, operations and obligations in
 * flight, and where they were spawned, begun or reserved; of tasks and obligations how old they are (tasks: in steps
 * of 17 ms), of tasks what they wait for. Handlers may ask, and on_state. `write` gets pieces of text that are
 * not 0-terminated. Returns EBB_OK, or what is wrong with the id. */
ebb_status ebb_workflow_explain(ebb_cx *cx, ebb_workflow workflow,
                                void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* Something that was left behind. Its texts are constants, `site` one of your program: they outlast the
 * join. */
typedef struct ebb_workflow_leak {
    const char *what;   /* "obligation": nobody resolved it; "aborted": an obligation of a task that was
                         abandoned; "task", "finalizer": abandoned; "operation": it goes on without its region */
    const char *kind;   /* of an obligation: "fence"; of an operation: "process", "blocking"; else "" */
    uint64_t id, owner; /* owner: the task, of an obligation; 0: the region's own */
    ebb_region region;
    const char *site; /* where it was reserved, spawned, added, begun */
    char name[EBB_MESSAGE_MAX +
              1]; /* of an operation, to tell it from others: the program of a process; or "" */
} ebb_workflow_leak;

/* How it is, or was. */
typedef struct ebb_workflow_report {
    ebb_workflow workflow;
    ebb_workflow_state state;
    /* Of its region and handlers: the first failure; else EBB_CANCELLED if a task of the region was, and not
     * only a handler. */
    ebb_status status;
    uint64_t elapsed;     /* ns since the request; of one that has ended, until then. 0: no request */
    uint64_t budget;      /* ns, as it is now */
    bool cancelled;       /* cancel_at came before all was done */
    bool drain_timed_out; /* it was over its budget, or forced while it drained: there is a CAN-004 */
    bool forced;          /* by an operator, or from around it; while it drained or finalized */
    uint32_t absorbed;    /* requests after the first */
    uint32_t leaks;       /* what was left behind: ebb_workflow_leak_at */
    uint32_t unnamed;     /* of these, how many there was no memory to name */
    uint8_t epoch;        /* 1 with the request, one more when its severity rises */
    ebb_reason reason;
    ebb_status audit; /* the first failure to write a line; EBB_OK: all are written */
} ebb_workflow_report;

ebb_status ebb_workflow_report_of(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out);
/* The i-th that was left behind. EBB_ERR_INVALID past the last that has a name. Only before the join, which
 * frees them: ask in `on_state`, at LEAK_DETECTED. */
ebb_status ebb_workflow_leak_at(ebb_cx *cx, ebb_workflow workflow, uint32_t i, ebb_workflow_leak *out);

/* Waits for its end. A poll operation and a checkpoint; for the host it returns EBB_PENDING. One that is not
 * asked to stop ends when its work has ended. The id is stale then, and `out` (may be NULL) has the report.
 *   EBB_ERR_CANCEL_LEAK           LEAK_DETECTED; or it ended by itself and left something behind.
 *   EBB_ERR_CANCEL_DRAIN_TIMEOUT  `no_force`: the budget is over, and it still drains. The id stays:
 *                                 extend or force it, and join again.
 *   EBB_CANCELLED                 a task of it was cancelled; or the caller is: then the id stays, and `out`
 *                                 is as it was. Zeroed before, its workflow.id tells the two apart.
 *   else                          as ebb_region_join: the first failure, or EBB_OK.
 * `out` is written at the end and with EBB_ERR_CANCEL_DRAIN_TIMEOUT, else not. EBB_ERR_BUSY: somebody else
 * waits. EBB_ERR_INVALID: a task of its own would wait for itself. One that nobody joins is forgotten when
 * the region around it closes: how it ended is in the log then, and nobody's failure. */
ebb_status ebb_workflow_join(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out);

/* The last call on it that was refused, in words: "rollout_cancel#3 v42: extend is not allowed in
 * FINALIZING". "" if none was. Valid until the next call on it. What was wrong with an argument leaves
 * none. */
const char *ebb_workflow_refusal(ebb_cx *cx, ebb_workflow workflow);

/* Why a region says EBB_ERR_CLOSED, in words: "publish_abort#2 v42 is DRAINING (USER: wrong tag): no new
 * work". Returns the length, cut to fit, and ends with a 0; it is 0 if the region is open or unknown. With no
 * room nothing is written. */
size_t ebb_region_closed_text(ebb_cx *cx, ebb_region region, char *out, size_t room);

/* ---- audit log ----------------------------------------------------------------------------------------- */

/* One JSON object a line (docs/workflow.md lists its fields). Each has the hash of the line before and its
 * own, so that an edited, removed or swapped line shows. A line is one write: it survives the death of the
 * process (not of the machine). A line that can't be written stops nothing: report.audit has the failure, and
 * the next line says how many are lost, so that the log never verifies again: start a new one. Workflows of several
 * threads may write to it; it is opened and closed by one. `a` must be good until it is closed. */

/* Opens a regular file to append to, or makes it (mode 0644 less the umask). A last line that is not whole is
 * cut off, and what a process before has not finished is told (ebb_audit_unfinished_at) and noted. The lock is
 * one of flock(2): a program that is executed does not have it, a child that was only forked shares it.
 * EBB_ERR_BUSY: another process or log has it. EBB_ERR_CORRUPT: it is no log, or its chain is broken, or what
 * follows the last newline is not the start of a line (`ebb audit verify` says where). EBB_ERRNO(EINVAL): no
 * regular file. EBB_ERR_NOMEM, EBB_ERRNO(errno). */
ebb_status ebb_audit_open(ebb_allocator a, const char *path, ebb_audit **out);

/* A log that goes elsewhere; it starts with line 1. `append` gets a whole line with its newline, and takes
 * all of it or fails; it is called in the middle of a step, by one thread at a time, and calls nothing of a workflow
 * or a log. The
 * struct is copied, what `ctx` points to is not. EBB_ERR_INVALID: no `append`; EBB_ERR_NOMEM; what `append`
 * says. */
typedef struct ebb_audit_sink {
    ebb_status (*append)(void *ctx, const char *line, size_t n);
    uint64_t (*clock)(void *ctx); /* ns since 1970, for "at". NULL: always 0 */
    void *ctx;
} ebb_audit_sink;
ebb_status ebb_audit_new(ebb_allocator a, const ebb_audit_sink *sink, ebb_audit **out);

/* Only when no workflow uses it any more: one that has ended does until it is joined, or its runtime
 * freed. NULL is allowed. */
void ebb_audit_close(ebb_audit *audit);

/* A workflow that was not finished when the process before ended. */
typedef struct ebb_audit_unfinished {
    uint64_t number;   /* "id" in the log */
    char workflow[48]; /* its type */
    char name[48];
    ebb_workflow_state state;
    uint64_t line; /* its last one, from 1 on */
} ebb_audit_unfinished;
/* EBB_ERR_INVALID past the last. */
ebb_status ebb_audit_unfinished_at(const ebb_audit *audit, size_t i, ebb_audit_unfinished *out);

/* Proves from a log alone that its workflows kept the protocol:
 *   three-phase      every workflow goes through the states above, in order
 *   no-new-work      after the request nothing is added to what is in flight
 *   drain-bounded    no drain is longer than its budget without CAN-004
 *   finalize-clean   CAN-005 only if nothing was left; CAN-006 only if each is named
 *   idempotent       a second request is absorbed and weakens nothing
 *   audit-complete   no line is missing, edited or swapped, and none is malformed
 * EBB_OK; EBB_ERR_ORACLE: the verdict says which of these is broken, where; EBB_ERR_NOMEM. A last line
 * without its newline is what a crash leaves: it only has to be the start of one. */
typedef struct ebb_audit_verdict {
    uint64_t lines;      /* that were looked at */
    uint64_t workflows;  /* that were opened */
    uint64_t stopped;    /* of these, asked to stop */
    uint64_t unfinished; /* of all that were opened, without an end */
    bool cut;            /* the last line is not whole */
    uint64_t line;       /* the first that is wrong; 0: none */
    char invariant[24];  /* "three-phase" */
    char text[240];      /* what was expected and what was found */
} ebb_audit_verdict;
ebb_status ebb_audit_verify(ebb_allocator a, const char *bytes, size_t n, ebb_audit_verdict *out);

/* ---- a service ----------------------------------------------------------------------------------------- */

/* Exit statuses of ebb_service_run. */
typedef enum ebb_service_exit {
    EBB_SERVICE_OK = 0,      /* stopped, or ended by itself, and nothing was left, cancelled or not */
    EBB_SERVICE_FAILED = 1,  /* it could not start, or a task failed; told when all others have ended */
    EBB_SERVICE_TIMEOUT = 3, /* the budget was over, or ebb_workflow_force: what was left was forced */
    EBB_SERVICE_FORCED = 4,  /* a second signal forced it */
    EBB_SERVICE_LEAK = 5     /* stopped in time, but something was left behind */
} ebb_service_exit;

typedef struct ebb_service_opts {
    uint32_t size;               /* sizeof(ebb_service_opts) of the caller; 0: this one */
    ebb_loop_opts loop;          /* its allocator is needed */
    ebb_workflow_opts shutdown;  /* `type` NULL: ebb_workflow_lifecycle_shutdown. `root`, `parent` are set */
    ebb_workflow_report *report; /* how it ended, or in `status` why it did not start. NULL: nobody asks */
    /* Gets what ebb_workflow_explain says of the shutdown workflow, in pieces that are not 0-terminated: at
     * SIGUSR1, and with `shutdown.no_force` when it is overdue, again every EBB_WORKFLOW_OVERDUE_AGAIN. NULL: it goes
     * to standard error. It is called on the loop's thread, with a line for each task: it should not block. */
    void (*log)(void *log_ctx, const char *text, size_t n);
    void *log_ctx;
    /* How many loops it runs on, each with a thread; see below. 0, 1: one. EBB_SERVICE_LOOPS_ALL: one a core. More than 255:
     * EBB_ERR_LIMIT. */
    uint32_t loops;
} ebb_service_opts;

#define EBB_SERVICE_LOOPS_ALL UINT32_MAX /* as many as there are cores that this process may use */

/* Runs a service on this thread until it has ended: a loop, the shutdown workflow over its root region, and
 * `fn` as the first fiber, in the root. SIGTERM or SIGINT asks it to stop, a second one, however soon, forces
 * it; finalizers still have their time then (docs/workflow.md, Budgets). SIGUSR1 explains what it is at, whether it was
 * asked to stop or not (`log`). If `fn` fails that is a request too, SIBLING_FAILED; that another task fails stops
 * nothing. Returns an ebb_service_exit. `fn` adds its drain handlers by ebb_workflow_on_drain(cx, ebb_workflow_of(cx), ...).
 *
 * It may run again, or on several threads at once: then each hears every signal. Afterwards these signals
 * have their default action, whatever they had before, and SIGPIPE stays blocked on this thread. A function in the
 * pool that was forced and still runs is not waited for: what it uses, `arg` and the allocator must last as
 * long as the process then, and the loop, a few descriptors and one of the 255 runtime ids stay with it. */
int ebb_service_run(const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg);

/* With `loops`, `fn` runs on each loop, with the same `arg`; the first loop is this thread. They share nothing else:
 * `arg` is read by several threads at a time, `log` is called on each of them, one at a time, the allocator must be
 * good for all of them, and limits of a runtime or a server are those of one loop.
 *
 * An address that several loops listen on is one address: the system spreads its connections over them. With port 0
 * they get the same port. A port that another process listens on is refused as ever.
 *
 * There is one shutdown. A signal asks the other loops first; when all have confirmed, or after 1 s, the request of
 * the shutdown workflow is written, and that waits for all of them. Each loop after the first has a workflow of its own
 * with the same type, budget and log, below the shutdown workflow in the log ("loop 1"): there ebb_workflow_of(cx) is
 * that one, and drain handlers belong to their loop. Extend and force reach all of them. If `fn` fails on one loop, all
 * stop. `shutdown.on_state` and `on_overdue` are told of the shutdown workflow only; SIGUSR1 explains all loops, and so
 * does a shutdown that is overdue. The report is that of the shutdown workflow, with the leaks of all; its state is
 * LEAK_DETECTED if one of them has that. A loop that could not start: none does, and the report has the status. */

/* Which of the service's loops this is, from 0 on; 0 if there is no service. */
uint32_t ebb_service_loop(ebb_cx *cx);

#ifdef __cplusplus
}
#endif
#endif
