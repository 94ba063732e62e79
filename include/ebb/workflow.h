/* ebb/workflow.h - how a service is stopped, a rollout cancelled, a publish undone: request, drain, finalize, with a
 * budget and an audit log.
 *
 * A *workflow* owns a region. Everything that is spawned, opened or reserved there is its work. A request to stop takes
 * it through these states. Each step is a line in the audit log:
 *
 *     IDLE -> CANCEL_REQUESTED -> DRAINING -+-> DRAIN_COMPLETE -+-> FINALIZING -+-> FINALIZED
 *                                           +-> DRAIN_TIMEOUT --+               +-> LEAK_DETECTED
 *
 *   request      CAN-001  The region is closed. New work, an accept too, is refused with EBB_ERR_CLOSED
 *                         (ebb_region_closed_text names the workflow). ebb_stopping(cx) is true and ebb_closing(cx)
 *                         completes. Work in flight goes on.
 *   drain        CAN-002  The drain handlers start, in the order in which they were added.
 *     cancel_at           Work that is still in flight is cancelled, with the rest of the budget to clean up.
 *     complete   CAN-003  Nothing is in flight and all handlers have ended.
 *     timeout    CAN-004  The budget has passed. The rest of the work is forced. With `no_force` the drain goes on: an
 *                         operator may call ebb_workflow_explain, extend or force it. on_overdue is called, again
 *                         every 10 s.
 *   finalize              The finalizers of the region run, and everything is released.
 *     clean      CAN-005  Nothing was left behind.
 *     leak       CAN-006  Something was left behind: obligations that nobody resolved, work that did not stop. Each is
 *                         named. Everything is released all the same.
 *
 * A close, cancel or force of the region by others is a request too: by a region around it, or because a task in it has
 * failed (EBB_FAIL_FAST). A workflow whose work ends without a request stays IDLE and ends when it is joined.
 *
 * The rules at the head of ebb/kernel.h hold here too, and these:
 *  - A request can't fail for lack of memory: its memory is allocated when the workflow is opened and when handlers are
 *    added.
 *  - Nesting: a workflow in the region of another is requested to stop with the outer one. It has at most the time that
 *    the outer one has left.
 *  - Threads: all functions belong to the runtime's thread; nothing checks that. Another thread stops a service by
 *    kill(getpid(), SIGTERM). It stops a workflow by a message to a task of the runtime: with ebb_peer_run, with a
 *    bridge, or with a promise that it settles as an ebb_remote.
 *  - An id is stale after the join: every function that takes it returns EBB_ERR_STALE. Between the end and the join a
 *    request returns EBB_ERR_CANCEL_ALREADY_FINAL.
 *  - The trace has every transition too, as `workflow` events. */
#ifndef EBB_WORKFLOW_H
#define EBB_WORKFLOW_H

#include <ebb/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- workflows ------------------------------------------------------------------------------------ */

typedef struct ebb_workflow {
    uint64_t id; /* as those of the kernel: of one runtime, stale after the join, may carry an error */
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

/* The kind of work that a workflow stops: one of the five below, or one of your own. It must outlive its workflows. */
typedef struct ebb_workflow_type {
    const char *name;          /* not empty */
    uint64_t budget;           /* ns from the request to the end of the drain */
    ebb_cancel_kind cancel_as; /* the kind of the cancel at cancel_at. NONE: that of the request */
} ebb_workflow_type;

extern const ebb_workflow_type ebb_workflow_lifecycle_shutdown;      /* 5000 ms; SHUTDOWN */
extern const ebb_workflow_type ebb_workflow_rollout_cancel;          /* 3000 ms */
extern const ebb_workflow_type ebb_workflow_publish_abort;           /* 2000 ms */
extern const ebb_workflow_type ebb_workflow_health_check_cancel;     /* 1000 ms */
extern const ebb_workflow_type ebb_workflow_epoch_transition_cancel; /* 3000 ms */

typedef struct ebb_audit ebb_audit; /* see below */

typedef struct ebb_workflow_opts {
    uint32_t size;                 /* sizeof(ebb_workflow_opts) of the caller; 0: this one */
    const ebb_workflow_type *type; /* must outlive the workflow */
    const char *name;              /* "v42"; copied and cut at EBB_MESSAGE_MAX. NULL: none */
    uint64_t budget;               /* ns. 0: that of the type */
    /* When work in flight is cancelled, ns after the request. 0: at 60 % of the budget; this moves if the budget is
     * extended or bounded by a shorter one. Equal to the budget: not before the budget has passed. */
    uint64_t cancel_at;
    bool no_force;             /* when the budget has passed, wait for an operator */
    bool root;                 /* stops the root region. One such workflow may exist; no task owns it */
    ebb_region parent;         /* where its region is opened; the owner stays the same. 0: the region of cx */
    ebb_failure_policy policy; /* of its region; the root always collects */
    /* Must outlive the workflow: an ended workflow uses its log until it is joined or forgotten. NULL: the log of the
     * workflow around it, if there is one. */
    ebb_audit *audit;
    /* Called at every change of state, right when it happens, on the stack of its cause. With ebb_runtime_host(rt)
     * (rt is ebb_cx_runtime(cx), passed in `arg`) it may call ebb_workflow_request, _extend, _force, _report_of,
     * _leak_at, _explain and _refusal. It may not wait or join. Read the leaks at LEAK_DETECTED. NULL: not called. */
    void (*on_state)(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to);
    void *arg; /* of on_state and on_overdue */
    /* With `no_force`: called when the budget has passed, and again every EBB_WORKFLOW_OVERDUE_AGAIN until the
     * workflow is extended, forced or drained. It may call what on_state may; ebb_workflow_explain names the work
     * that holds the drain up. NULL: not called. */
    void (*on_overdue)(void *arg, ebb_workflow wf);
} ebb_workflow_opts;

#define EBB_WORKFLOW_OVERDUE_AGAIN (10 * EBB_SECOND)

/* Opens a workflow and its region. The task that opens it owns it, as with a region: when the task returns, the
 * workflow is requested to stop and waited for. A workflow with `root`, and one of the host, has no such owner. The id
 * is valid until the join. It carries an error:
 *   EBB_ERR_CLOSED                   the region around it is closed
 *   EBB_ERR_NOMEM, EBB_ERR_LIMIT     nothing changed
 *   EBB_ERR_INVALID                  no type; a type without a name, or with a `cancel_as` that is no reason; no
 *                                    budget, or one over 2^62 ns; a cancel_at after the budget; both root and parent
 *   EBB_ERR_BUSY                     the root has a workflow
 *   EBB_ERR_FOREIGN, EBB_ERR_STALE   the parent is of another runtime, or gone
 *   EBB_ERR_VERSION                  unknown options */
#define ebb_workflow_open(cx, ...) ebb_workflow_open_site((cx), (__VA_ARGS__), EBB_SITE)
ebb_workflow ebb_workflow_open_site(ebb_cx *cx, const ebb_workflow_opts *opts, const char *site);

/* The region of the workflow's work. An id that carries the error if there is no such workflow. */
ebb_region ebb_workflow_region(ebb_cx *cx, ebb_workflow workflow);

/* The region of tasks that serve an operator, by HTTP for example: they extend, explain and force the workflow on
 * behalf of somebody outside. These tasks are not work of the workflow: neither in flight nor drained. The request
 * does not close this region: it admits work until all work of the workflow has drained, was forced, or has ended by
 * itself. Then it is closed. Tasks that are still in it a twentieth of the budget later (more if cancel_at is early)
 * are cancelled; the finalizers wait for them. The first call opens the region; no task owns it. A failure in it is
 * the workflow's, and ends nothing else. The id carries an error: EBB_ERR_CLOSED: the drain ended before the first
 * call. EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed. The errors of the workflow's id. */
ebb_region ebb_workflow_operator_region(ebb_cx *cx, ebb_workflow workflow);

/* The innermost workflow that this task belongs to: the task is in its region, or one of its drain handlers. Id 0:
 * none. */
ebb_workflow ebb_workflow_of(ebb_cx *cx);

/* ---- drain handlers --------------------------------------------------------------------------------- */

/* What a drain handler reports with. It is valid until the workflow is joined or forgotten, so tasks that the handler
 * spawns may use it too. */
typedef struct ebb_drain ebb_drain;

/* A drain handler: it stops, completes or undoes something. It is the poll function of a task of its own, so
 * EBB_PENDING waits. State between two polls belongs in `arg`. Neither the close nor the cancel of the workflow's
 * region reaches the handler. It may spawn, reserve and open regions in its own region, ebb_cx_region(cx); the drain
 * waits for these too. When the budget has passed, the handler is forced with the rest. A negative status is
 * reported, and is the workflow's failure. */
typedef ebb_status (*ebb_drain_fn)(ebb_cx *cx, ebb_drain *d, void *arg);

/* Adds a drain handler. `name` is not copied. EBB_ERR_CANCEL_INVALID_PHASE: after the request. EBB_ERR_CLOSED: the
 * work has ended by itself. EBB_ERR_INVALID: no name or function. EBB_ERR_NOMEM, EBB_ERR_LIMIT: not added, and the
 * failure is the workflow's, as that of a spawn is the region's. */
#define ebb_workflow_on_drain(cx, wf, name, fn, arg)                                                         \
    ebb_workflow_on_drain_site((cx), (wf), (name), (fn), (arg), EBB_SITE)
ebb_status ebb_workflow_on_drain_site(ebb_cx *cx, ebb_workflow workflow, const char *name, ebb_drain_fn fn,
                                      void *arg, const char *site);
/* Adds a drain handler that is a fiber: its awaits wait in place. Its stack is allocated in this call. Errors as
 * above. */
#define ebb_workflow_on_drain_fiber(cx, wf, name, fn, arg)                                                   \
    ebb_workflow_on_drain_fiber_site((cx), (wf), (name), (fn), (arg), EBB_SITE)
ebb_status ebb_workflow_on_drain_fiber_site(ebb_cx *cx, ebb_workflow workflow, const char *name,
                                            ebb_drain_fn fn, void *arg, const char *site);

/* For handlers. */
uint64_t ebb_drain_left(ebb_cx *cx, const ebb_drain *d); /* ns until the budget has passed; then 0 */
/* Reports progress, for ebb_workflow_explain and the audit log. Without a call they show 0 of 0. */
void ebb_drain_progress(ebb_drain *d, uint64_t done, uint64_t total);
/* Writes a fact to the audit log, as a line of its own. A text that is too long is cut, and marked. NULL is "".
 * Without a log the call does nothing. */
void ebb_drain_evidence(ebb_drain *d, const char *key, const char *value);
ebb_workflow ebb_drain_workflow(const ebb_drain *d); /* the workflow that drains */

/* ---- stopping ----------------------------------------------------------------------------------------- */

/* Requests the workflow to stop. The call is idempotent: a second request returns EBB_OK and is absorbed, and a
 * stronger reason replaces the first. A kind that is no reason (NONE, PARENT) is USER. A message of NULL is "".
 * EBB_ERR_CANCEL_ALREADY_FINAL: the workflow has ended; or its work has ended by itself, and its finalizers, which
 * still run, have the workflow's budget from now on. EBB_ERR_STALE: it was joined. */
ebb_status ebb_workflow_request(ebb_cx *cx, ebb_workflow workflow, ebb_cancel_kind kind, const char *message);

/* Extends the budget of a drain by `more` ns, from its end or from now, whichever is later; to 2^62 ns in all at
 * most. A cancel_at that is 60 % of the budget moves too; one that was given does not. EBB_ERR_CANCEL_INVALID_PHASE:
 * the workflow does not drain, or its work in flight has a cleanup budget already (after cancel_at, unless
 * `no_force`). EBB_ERR_LIMIT: the budget can't grow, or the workflow around it leaves no time. EBB_ERR_INVALID:
 * `more` is 0. */
ebb_status ebb_workflow_extend(ebb_cx *cx, ebb_workflow workflow, uint64_t more);

/* Ends a drain now, as if its budget had passed. In FINALIZING it ends the time of the finalizers: they have 8 more
 * polls. `message` is `by` in the log; NULL: "operator". EBB_ERR_CANCEL_INVALID_PHASE: the workflow neither drains
 * nor finalizes. */
ebb_status ebb_workflow_force(ebb_cx *cx, ebb_workflow workflow, const char *message);

/* Prints what the workflow waits for, one line each: handlers with their progress, and tasks, operations and
 * obligations in flight with the site where they were spawned, begun or reserved. Tasks and obligations have their
 * age (that of tasks in steps of 17 ms). Tasks have what they wait for. In FINALIZING there are the finalizers too.
 * Handlers and on_state may call it. `write` gets pieces of text that are not 0-terminated. Returns EBB_OK, or the
 * error of the id. */
ebb_status ebb_workflow_explain(ebb_cx *cx, ebb_workflow workflow,
                                void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* Something that was left behind. `what` and `kind` are constants, and `site` is one of your program: they stay valid
 * after the join. */
typedef struct ebb_workflow_leak {
    /* "obligation": nobody resolved it. "aborted": an obligation of an abandoned task. "task", "finalizer": abandoned.
     * "operation": it goes on without its region. */
    const char *what;
    const char *kind; /* of an obligation: "fence"; of an operation: "process", "blocking"; else "" */
    /* id: of the obligation, task or finalizer. owner: of an obligation, its task; 0: the region. */
    uint64_t id, owner;
    ebb_region region; /* that it belongs to */
    const char *site;  /* where it was reserved, spawned, added or begun */
    /* Tells an operation from others: the program of a process. Else "". */
    char name[EBB_MESSAGE_MAX + 1];
} ebb_workflow_leak;

/* The state of a workflow, now or at its end. */
typedef struct ebb_workflow_report {
    ebb_workflow workflow;
    ebb_workflow_state state;
    /* The first failure of its region and handlers. If there is none: EBB_CANCELLED if a task of the region, and not
     * only a handler, was cancelled. */
    ebb_status status;
    uint64_t elapsed;     /* ns from the request until now, or until the end. 0: no request */
    uint64_t budget;      /* ns, as it is now: extended, or bounded by a shorter one */
    bool cancelled;       /* cancel_at came before the drain was complete */
    bool drain_timed_out; /* the drain was over its budget, or forced: there is a CAN-004 */
    bool forced;          /* by an operator, or by a region around it; in DRAINING or FINALIZING */
    uint32_t absorbed;    /* requests after the first */
    uint32_t leaks;       /* things left behind; see ebb_workflow_leak_at */
    uint32_t unnamed;     /* of these, how many have no name for lack of memory */
    uint8_t epoch;        /* 1 with the request, one more each time its severity rises */
    ebb_reason reason; /* of the request; kind NONE: there was none. A signal to a service: USER, "SIGTERM" */
    ebb_status audit;  /* the first failure to write a line of the log; EBB_OK: all are written */
} ebb_workflow_report;

/* Writes the report of a workflow to *out. Returns EBB_OK, or the error of the id. */
ebb_status ebb_workflow_report_of(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out);
/* Writes the i-th leak to *out. EBB_ERR_INVALID: past the last that has a name. The join frees the leaks: call it in
 * `on_state`, at LEAK_DETECTED. */
ebb_status ebb_workflow_leak_at(ebb_cx *cx, ebb_workflow workflow, uint32_t i, ebb_workflow_leak *out);

/* Waits for the end of the workflow. It is a poll operation and a checkpoint; for the host it returns EBB_PENDING. A
 * workflow without a request ends when its work has ended. At the end the id is stale, and `out` (may be NULL) has the
 * report.
 *   EBB_ERR_CANCEL_LEAK           LEAK_DETECTED; or the work ended by itself and left something behind.
 *   EBB_ERR_CANCEL_DRAIN_TIMEOUT  `no_force`: the budget has passed, and the workflow still drains. The id stays valid:
 *                                 extend or force the workflow, and join again.
 *   EBB_CANCELLED                 a task of the workflow was cancelled; or the caller is: then the id stays valid and
 *                                 `out` is not written. Zero `out` before: its workflow.id tells the two apart.
 *   EBB_ERR_BUSY                  another task waits.
 *   EBB_ERR_INVALID               a task of the workflow would wait for itself.
 *   else                          as ebb_region_join: the first failure, or EBB_OK.
 * `out` is written at the end and with EBB_ERR_CANCEL_DRAIN_TIMEOUT, and not otherwise. A workflow that nobody joins
 * is forgotten when the region around it closes. Its end is then in the log, and is no failure of that region. */
ebb_status ebb_workflow_join(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out);

/* Completes without a value when the workflow has ended, at once if that was before; join it afterwards for its outcome.
 * Any number may wait, beside the one that joins. As a join, it lets a workflow without a request end when its work has
 * ended. A workflow with `no_force` that is over its budget goes on being waited for: bound the future in time.
 * Otherwise as ebb_region_closed. */
#define ebb_workflow_ended(cx, workflow) ebb_workflow_ended_site((cx), (workflow), EBB_SITE)
ebb_future *ebb_workflow_ended_site(ebb_cx *cx, ebb_workflow workflow, const char *site);

/* The text of the last call on the workflow that its state refused: "rollout_cancel#3 v42: extend is not allowed in
 * FINALIZING". "" if there was none. Valid until the next call on the workflow. An invalid argument leaves no text. */
const char *ebb_workflow_refusal(ebb_cx *cx, ebb_workflow workflow);

/* Writes to `out` why a region returns EBB_ERR_CLOSED: "publish_abort#2 v42 is DRAINING (USER: wrong tag): no new
 * work". The text is cut to `room` and ends with a 0. Returns its length; 0: the region is open or unknown. Without
 * room nothing is written. */
size_t ebb_region_closed_text(ebb_cx *cx, ebb_region region, char *out, size_t room);

/* ---- audit log ----------------------------------------------------------------------------------------- */

/* One JSON object a line (docs/workflow.md lists its fields). Each line has the hash of the line before and its own, so
 * an edited, removed or swapped line shows. A line is one write: it survives the death of the process, but not of the
 * machine. A failure to write a line stops nothing: report.audit has the failure, and the next line has the number of
 * lost lines. Such a log never verifies again: start a new one. Workflows of several threads may write to a log; one
 * thread opens and closes it. The allocator `a` must stay valid until the log is closed. */

/* Opens a regular file to append to, or creates it (mode 0644 less the umask). An incomplete last line is cut off.
 * Workflows that an earlier process did not finish are listed (ebb_audit_unfinished_at), and noted in the log. The
 * lock is one of flock(2): a program that is executed does not have it, a child that was only forked shares it. Free
 * the log by ebb_audit_close. EBB_ERR_BUSY: another process or log has the file. EBB_ERR_CORRUPT: the file is no
 * log, its chain is broken, or the bytes after the last newline are not the start of a line (`ebb audit verify` says
 * where). EBB_ERRNO(EINVAL): not a regular file. EBB_ERR_NOMEM, EBB_ERRNO(errno). */
ebb_status ebb_audit_open(ebb_allocator a, const char *path, ebb_audit **out);

/* A log with another destination. */
typedef struct ebb_audit_sink {
    /* Gets a whole line with its newline, and takes all of it or fails. It is called in the middle of a step, by one
     * thread at a time. It may not call functions of a workflow or a log. */
    ebb_status (*append)(void *ctx, const char *line, size_t n);
    uint64_t (*clock)(void *ctx); /* ns since 1970, for "at". NULL: always 0 */
    void *ctx;                    /* of both; must stay valid until the log is closed */
} ebb_audit_sink;
/* Makes a log that writes to a sink and starts with line 1. The struct is copied. Free the log by ebb_audit_close.
 * EBB_ERR_INVALID: no `append`. EBB_ERR_NOMEM. The failure of `append`. */
ebb_status ebb_audit_new(ebb_allocator a, const ebb_audit_sink *sink, ebb_audit **out);

/* Closes and frees a log. No workflow may use it any more: an ended workflow does until it is joined, or its runtime is
 * freed. NULL is allowed. */
void ebb_audit_close(ebb_audit *audit);

/* A workflow that had not ended when an earlier process ended. */
typedef struct ebb_audit_unfinished {
    uint64_t number;          /* "id" in the log */
    char workflow[48];        /* its type */
    char name[48];            /* "": none */
    ebb_workflow_state state; /* its last */
    uint64_t line;            /* its last one, from 1 on */
} ebb_audit_unfinished;
/* Writes the i-th to *out. EBB_ERR_INVALID: past the last. */
ebb_status ebb_audit_unfinished_at(const ebb_audit *audit, size_t i, ebb_audit_unfinished *out);

/* The result of ebb_audit_verify. */
typedef struct ebb_audit_verdict {
    uint64_t lines;      /* lines read */
    uint64_t workflows;  /* workflows opened */
    uint64_t stopped;    /* of these, requested to stop */
    uint64_t unfinished; /* of these, without an end */
    bool cut;            /* the last line is incomplete */
    uint64_t line;       /* the first that is wrong; 0: none */
    char invariant[24];  /* the one that is broken: "three-phase" */
    char text[240];      /* what was expected and what was found */
} ebb_audit_verdict;
/* Proves from the bytes of a log alone that its workflows kept the protocol:
 *   three-phase      every workflow goes through the states above, in order
 *   no-new-work      after the request nothing is added to the work in flight
 *   drain-bounded    no drain is longer than its budget without CAN-004
 *   finalize-clean   CAN-005 only if nothing was left behind; CAN-006 only if everything left behind is named
 *   idempotent       a second request is absorbed and weakens nothing
 *   audit-complete   no line is missing, edited, swapped or malformed
 * EBB_OK. EBB_ERR_ORACLE: the verdict says which of these is broken, and where. EBB_ERR_NOMEM. A crash may leave a last
 * line without its newline: it only has to be the start of a line. */
ebb_status ebb_audit_verify(ebb_allocator a, const char *bytes, size_t n, ebb_audit_verdict *out);

/* ---- a service ----------------------------------------------------------------------------------------- */

/* Exit statuses of ebb_service_run. If several apply, the order is FORCED, TIMEOUT, FAILED, LEAK, OK. */
typedef enum ebb_service_exit {
    EBB_SERVICE_OK = 0, /* stopped, or ended by itself; left nothing behind. Work may have been cancelled */
    EBB_SERVICE_FAILED = 1, /* it could not start, or a task failed. Returned when all others have ended */
    /* The budget of the drain passed, or ebb_workflow_force was called. The rest of the work was forced; with
     * `no_force` it may have ended by itself, late. */
    EBB_SERVICE_TIMEOUT = 3,
    EBB_SERVICE_FORCED = 4, /* a second signal forced it */
    EBB_SERVICE_LEAK = 5    /* stopped in time, but something was left behind */
} ebb_service_exit;

typedef struct ebb_service_opts {
    uint32_t size;               /* sizeof(ebb_service_opts) of the caller; 0: this one */
    ebb_loop_opts loop;          /* needs an allocator */
    ebb_workflow_opts shutdown;  /* the service sets `root` and `parent`. `type` NULL: lifecycle_shutdown */
    ebb_workflow_report *report; /* how it ended, or in `status` why it did not start. NULL: none */
    /* Gets the text of ebb_workflow_explain for the shutdown workflow, in pieces that are not 0-terminated: at
     * SIGUSR1, and with `shutdown.no_force` when the drain is overdue, again every EBB_WORKFLOW_OVERDUE_AGAIN. NULL:
     * standard error. It is called on the loop's thread, with a line for each task, and should not block. */
    void (*log)(void *log_ctx, const char *text, size_t n);
    void *log_ctx;
    /* How many loops the service runs on, each with a thread; see below. 0, 1: one. EBB_SERVICE_LOOPS_ALL: one for each
     * core. More than 255: EBB_ERR_LIMIT in the report. */
    uint32_t loops;
    /* Where `ebb top` may look at the service while it runs and stops: the path of a Unix socket, which the service
     * creates for its user alone (0600) and removes at its end. "": the well-known place, where `ebb top PID` finds
     * it: $XDG_RUNTIME_DIR/ebb/PID.sock, or /tmp/ebb-UID/PID.sock; the directory is made with the rights 0700, and
     * refused with EBB_ERRNO(EACCES) if another user owns it or could write to it. A socket that a dead process has
     * left is replaced; with a live one the service fails with EBB_ERRNO(EADDRINUSE). NULL: nobody can look. */
    const char *inspect;
} ebb_service_opts;

#define EBB_SERVICE_LOOPS_ALL UINT32_MAX /* one for each core that this process may use */

/* Runs a service on this thread until it has ended: a loop, the shutdown workflow over its root region, and `fn` as the
 * first fiber, in the root. Returns an ebb_service_exit. `fn` adds drain handlers by ebb_workflow_on_drain(cx,
 * ebb_workflow_of(cx), ...). SIGTERM or SIGINT requests the service to stop. A second one, however soon, forces it;
 * finalizers still have their time then (docs/workflow.md, Budgets). SIGUSR1 prints what the service waits for (`log`),
 * before and after the request. If `fn` fails, that is a request too, SIBLING_FAILED. If another task fails, nothing
 * stops.
 *
 * A service may run again, and on several threads at once: then each receives every signal. Afterwards these signals
 * have their default action, whatever they had before, and SIGPIPE stays blocked on this thread. A function in the
 * pool that was forced and still runs is not waited for: what it uses, `arg` and the allocator must then stay valid
 * as long as the process, and the loop, a few descriptors and one of the 255 runtime ids are not freed. */
int ebb_service_run(const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg);

/* With `loops`, `fn` runs on each loop, with the same `arg`. The first loop is this thread. The loops share nothing
 * else. Several threads read `arg` at a time. `log` is called on each of them, one at a time. The allocator must be
 * safe on all of them. Limits of a runtime or a server are those of one loop.
 *
 * An address that several loops listen on is one address: the system distributes its connections. With port 0 they get
 * the same port. A port that another process listens on is refused as usual.
 *
 * There is one shutdown. A signal first requests the other loops to stop. When all have confirmed, or after 1 s, the
 * request of the shutdown workflow is written. The shutdown waits for all loops. Each loop after the first has a
 * workflow of its own with the same type, budget and log, below the shutdown workflow in the log ("loop 1"). There
 * ebb_workflow_of(cx) is that workflow, and drain handlers belong to their loop. Extend and force reach all loops.
 * If `fn` fails on one loop, all stop. `shutdown.on_state` and `on_overdue` are called for the shutdown workflow
 * only. SIGUSR1 explains all loops, and so does an overdue shutdown. The report is that of the shutdown workflow,
 * with the leaks of all loops. Its state is LEAK_DETECTED if that of one loop is; `cancelled`, `drain_timed_out` and
 * `forced` likewise. If a loop can't start, none does, and the report has the status. */

/* The index of this loop among those of the service, from 0 on; 0 if there is no service. */
uint32_t ebb_service_loop(ebb_cx *cx);

#ifdef __cplusplus
}
#endif
#endif
