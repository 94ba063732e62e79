/* ebb/future.h - values that come later, how they are combined, and how they end.
 *
 * A *future* is a handle to a value that comes later, from a promise of yours, a timer, a task or an operation of a
 * loop. It ends once: COMPLETED with a value, FAILED with a status, or CANCELLED. Futures are connected by two kinds of
 * edges, which are kept apart: *data* (which future waits for which value) and *ownership* (which future is cancelled
 * with which).
 *
 *     ebb_future *page  = fetch(cx, url);
 *     ebb_future *quick = ebb_within(cx, page, 200 * EBB_MS);   // owns page: late means cancelled
 *     ebb_future *two[] = {quick, fetch(cx, mirror)};
 *     ebb_future *best  = ebb_race(cx, 2, two);                 // the loser is cancelled
 *     st = ebb_await(cx, best, &body);                          // consumes it
 *
 * Rules for every function below, in addition to those at the head of ebb/kernel.h:
 *  - The region of `cx` holds a new handle until it is consumed or dropped, or the region closes. So a local variable
 *    is safe, and an early return leaks nothing.
 *  - ebb_await and the combinators *consume* their inputs. To use a handle again afterwards, call ebb_future_keep
 *    first. The use of a consumed handle gives EBB_ERR_CONSUMED.
 *  - A constructor never returns NULL. On an error (no memory, a closed region, an invalid argument, the wrong thread)
 *    it returns a failed future with that status, which the await of it returns.
 *  - Callbacks run in ebb_runtime_pump, as the region's callback runner. They may do what a task may, but not await
 *    (EBB_ERR_NOT_TASK); nor may a finalizer that a callback has deferred. They never run inside the call that attaches
 *    them or settles the future.
 *  - Cancelling a future ends it for its readers at once. Its producer drains, and the region waits for the producer.
 *  - A region that is cancelled cancels its futures, except those that a masked task of the region awaits and those
 *    that the release of a bracket or a finally has begun. Futures that cleanup code makes later live until the region
 *    is forced. From then on futures that callbacks make are cancelled, and in the end refused (EBB_ERR_CLOSED). A
 *    region that closes cancels the futures that have no producer any more.
 *  - Threads: a future belongs to its runtime's thread (else EBB_ERR_THREAD). Other threads use an ebb_remote. */
#ifndef EBB_FUTURE_H
#define EBB_FUTURE_H

#include <ebb/machine.h>
#include <ebb/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_future ebb_future;

/* ---- values --------------------------------------------------------------------------------------- */

/* The argument of a trace function, for ebb_gc_mark and ebb_gc_mark_value. */
typedef struct ebb_gc_marker ebb_gc_marker;

/* A type of values: objects of the runtime's heap, made by ebb_gc_new and freed when nothing refers to them; or words
 * with an owner, for example file descriptors. */
typedef struct ebb_type {
    const char *name;
    size_t size; /* of an object; 0: a word */
    /* Passes each future, object and value that `object` refers to to ebb_gc_mark or ebb_gc_mark_value, and does
     * nothing else. These must exist: clear a reference to a future when you consume or drop it. May be NULL. */
    void (*trace)(void *object, ebb_gc_marker *t);
    /* Frees what is not memory of the heap, the words in an object included. Called once with the object or word: in
     * the pump, or in the call that disposes of the value; for a remote handle on the calling thread. Must not access
     * other objects, which may be freed already. May be NULL. */
    void (*free)(void *object);
    uint32_t reserved; /* 0 */
} ebb_type;

/* A value of 16 bytes. */
typedef struct ebb_value {
    const ebb_type *type; /* NULL: a plain word, or a borrowed pointer */
    union {
        void *p;
        int64_t i;
        uint64_t u;
        double d;
    } as;
} ebb_value;

static inline ebb_value ebb_value_none(void) {
    ebb_value v = {NULL, {NULL}};
    return v;
}
static inline ebb_value ebb_value_int(int64_t i) {
    ebb_value v = {NULL, {NULL}};
    v.as.i = i;
    return v;
}
static inline ebb_value ebb_value_pointer(void *p) { /* borrowed: `p` stays with its owner */
    ebb_value v = {NULL, {p}};
    return v;
}
static inline ebb_value ebb_value_owned(const ebb_type *type,
                                        void *p) { /* moved: `type->free` is called in the end */
    ebb_value v = {type, {p}};
    return v;
}

/* Makes a zeroed object of the heap. The region of cx holds it until it is moved into a value that a future takes, it
 * is discarded by ebb_value_discard, or the region closes. NULL: no memory, a closed region, the wrong thread, or a
 * type with size 0. */
void *ebb_gc_new(ebb_cx *cx, const ebb_type *type);
/* Returns the object as a value. NULL gives no value. */
ebb_value ebb_value_object(void *object);
/* For trace functions: mark an object, future or value that the traced object refers to. NULL is allowed. */
void ebb_gc_mark(ebb_gc_marker *t, const void *object_or_future);
void ebb_gc_mark_value(ebb_gc_marker *t, const ebb_value *v);

/* Takes a value out of a future. Callbacks get *borrowed* values, which stay with the future. A taken value belongs to
 * the caller, who moves it on or discards it; `*v` is empty afterwards, also for later callbacks. A taken object is
 * held by the region of cx; if there is no memory for that, the result is empty and `*v` is unchanged. */
ebb_value ebb_value_take(ebb_cx *cx, ebb_value *v);
/* Disposes of a value that was taken or awaited: calls `free` of a word, and leaves an object to the heap. */
void ebb_value_discard(ebb_cx *cx, ebb_value v);

/* ebb_bytes_new allocates `n` bytes in the region's arena, at `*at`. They are freed with the region. EBB_ERR_NOMEM,
 * EBB_ERR_LIMIT, EBB_ERR_CLOSED, EBB_ERR_THREAD. ebb_bytes_of reads such a value. The value may outlive the region:
 * ebb_bytes_of then gives EBB_ERR_CLOSED. EBB_ERR_INVALID: not a value of ebb_bytes_new. */
ebb_status ebb_bytes_new(ebb_cx *cx, size_t n, ebb_value *out, void **at);
ebb_status ebb_bytes_of(ebb_cx *cx, const ebb_value *v, void **at, size_t *n);

/* ---- making and ending ------------------------------------------------------------------------------ */

typedef enum ebb_future_state {
    EBB_FUTURE_PENDING = 0,
    EBB_FUTURE_SETTLING = 1, /* another thread is writing the value */
    EBB_FUTURE_COMPLETED = 2,
    EBB_FUTURE_FAILED = 3,
    EBB_FUTURE_CANCELLED = 4
} ebb_future_state;

/* An operation: the producer of a future's value. It always ends by exactly one ebb_promise_settle or
 * ebb_promise_reject, cancelled or not. The region waits for that. */
typedef struct ebb_operation {
    const char *name; /* for ebb_runtime_dump and reports: "accept" */
    /* Requests the producer to stop. Called once, in the pump, if the future is cancelled before it is settled. May be
     * NULL. */
    void (*cancel)(ebb_cx *cx, ebb_future *f, void *arg);
    /* For a producer that waits for new work and should stop when the region closes. Called once, in the pump, if the
     * region is closed while the future is pending; not for an operation that begins after the close. May be NULL. */
    void (*closing)(ebb_cx *cx, ebb_future *f, void *arg);
} ebb_operation;

/* Makes a promise: a future that the program settles once. The handle stays valid for settling after it was consumed or
 * cancelled, until it is settled or the region has closed. `arg` is passed to the functions of `op`. Without an `op`
 * (NULL) the region does not wait for the producer, and cancels the promise when it closes. If you will not settle a
 * promise, reject it with EBB_CANCELLED; else its memory is kept until the region has closed. */
#define ebb_promise_new(cx, op, arg) ebb_promise_new_site((cx), (op), (arg), EBB_SITE)
ebb_future *ebb_promise_new_site(ebb_cx *cx, const ebb_operation *op, void *arg, const char *site);

/* Completes a promise with a value, which is moved into it. If the value is a future (ebb_value_future), the promise
 * ends as that future does; until then it can be cancelled, but not settled again, also not by a remote handle.
 * EBB_CANCELLED: it was cancelled before. EBB_ERR_RESOLVED: it was settled before. EBB_ERR_INVALID: not a promise. In
 * these cases the value is disposed of. EBB_ERR_FOREIGN: the value is an object of another runtime's heap.
 * EBB_ERR_THREAD. In these two cases the value stays with the caller, and the promise is still to be settled. */
ebb_status ebb_promise_settle(ebb_future *f, ebb_value v);
/* Fails a promise. The status EBB_CANCELLED cancels it. Returns as ebb_promise_settle. EBB_ERR_INVALID also if
 * `failure` is not negative. */
ebb_status ebb_promise_reject(ebb_future *f, ebb_status failure);
/* Returns a future as a value, to settle a promise with. The promise consumes the future. */
ebb_value ebb_value_future(ebb_future *f);

/* Futures that have ended from the start, or never end by themselves. A failed future with EBB_CANCELLED is
 * cancelled. */
#define ebb_future_ready(cx, v)   ebb_future_ready_site((cx), (v), EBB_SITE)   /* completed */
#define ebb_future_failed(cx, st) ebb_future_failed_site((cx), (st), EBB_SITE) /* failed */
#define ebb_future_never(cx)      ebb_future_never_site((cx), EBB_SITE) /* pending until it is cancelled */
/* Returns a future that completes when the region of cx is closed. Use it in an ebb_select to stop waiting then. In a
 * region that is already closing it is completed. */
#define ebb_closing(cx) ebb_closing_site((cx), EBB_SITE)
ebb_future *ebb_future_never_site(ebb_cx *cx, const char *site);
ebb_future *ebb_closing_site(ebb_cx *cx, const char *site);
ebb_future *ebb_future_ready_site(ebb_cx *cx, ebb_value v, const char *site);
ebb_future *ebb_future_failed_site(ebb_cx *cx, ebb_status failure, const char *site);

/* Starts a task in `region` and returns a future of its outcome, which belongs to the region of cx. Arguments as of
 * ebb_spawn. The future completes without a value, or fails or is cancelled as the task did; for an abandoned task it
 * is cancelled. Cancelling the future cancels the task. The region does not fail with the task: the reader of the
 * future decides what a failure or a cancel means. A fault (EBB_FAULTED) is the failure of both. If no task can be
 * made, the future fails as ebb_spawn; EBB_ERR_NOMEM and EBB_ERR_LIMIT of a task are then also the region's failure.
 * `keep` of the options is ignored. */
#define ebb_go(...)                            EBB_WITH_OPTS(EBB_GO_, ebb_go_site, __VA_ARGS__)
#define EBB_GO_(cx, region, poll, state, site) ebb_go_site((cx), (region), (poll), (state), NULL, (site))
ebb_future *ebb_go_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                        const ebb_task_opts *opts, const char *site);

/* Complete without a value when the task has ended, or the region has closed, in whatever way; at once if that was
 * before. The outcome stays where it is: join the task or region afterwards, which does not wait any more. There may
 * be any number of these futures for one task or region, and cancelling one changes nothing there. A region that the
 * caller may join closes by itself once nothing lives in it, as if it were being joined; another one closes when its
 * owner lets it. EBB_ERR_INVALID: the caller itself, or a region that the caller is in. EBB_ERR_FOREIGN, EBB_ERR_NOMEM,
 * or the error that the id carries. */
#define ebb_task_ended(cx, task)      ebb_task_ended_site((cx), (task), EBB_SITE)
#define ebb_region_closed(cx, region) ebb_region_closed_site((cx), (region), EBB_SITE)
ebb_future *ebb_task_ended_site(ebb_cx *cx, ebb_task task, const char *site);
ebb_future *ebb_region_closed_site(ebb_cx *cx, ebb_region region, const char *site);

/* Cancels a future. True if this call ended it. It reads as cancelled at once; its dependants and the futures that it
 * owns follow in the next pump. Does not consume the handle. Needs no memory. Always false for a future that the
 * release of a bracket or a finally has returned: only force ends it. */
bool ebb_future_cancel(ebb_future *f, ebb_cancel_kind kind);

/* The state of a future. They do not consume the handle. */
ebb_future_state ebb_future_state_of(const ebb_future *f);
/* EBB_PENDING, EBB_OK, EBB_CANCELLED or its failure. */
ebb_status ebb_future_status_of(const ebb_future *f);
ebb_cancel_kind ebb_future_cancel_kind_of(const ebb_future *f); /* why it was cancelled; else NONE */
/* For producers that poll: one load. */
bool ebb_future_is_cancelled(const ebb_future *f);

/* Waits for a future, consumes it, moves its value into `*v` and returns its status. If `v` is NULL, the value is
 * disposed of. In a task a poll operation and a checkpoint: repeat it with the same future, kept in the state. In a
 * fiber it waits in place. If the task is cancelled meanwhile, the await consumes the future, cancels it as an owner
 * does, and returns EBB_CANCELLED. If the handle was kept, others may still read the value: a word is then only
 * borrowed and stays with the future. EBB_ERR_NOT_TASK: called by a callback, or by the host while the future is
 * pending. EBB_ERR_NOT_AWAITED: no memory to wait, or to hold the object in the value. In these two cases the future is
 * not consumed, and the await may be repeated. EBB_ERR_NOMEM and EBB_ERR_LIMIT are failures of the future itself.
 * EBB_ERR_FOREIGN: a future of another runtime. */
ebb_status ebb_await(ebb_cx *cx, ebb_future *f, ebb_value *v);

/* ---- holding ---------------------------------------------------------------------------------------- */

/* Adds one use of the handle; each await, combinator or drop consumes one. Returns f, or a failed future if the handle
 * cannot be used. */
ebb_future *ebb_future_keep(ebb_future *f);
/* Consumes one use of the handle. If nothing else refers to a pending future, it is cancelled with EBB_CANCEL_DROPPED
 * when the heap is collected. */
void ebb_future_drop(ebb_future *f);
/* From now on the cancel of an owner cancels f only if no other owner or holder is left. Returns as ebb_future_keep. */
ebb_future *ebb_future_share(ebb_future *f);
/* From now on the end of an owner does not cancel f. A cancel of the region does. Returns as ebb_future_keep. */
ebb_future *ebb_future_shield(ebb_future *f);

/* Attach a callback; there may be any number. `on_done` callbacks run after a value or a failure (then `v` is empty),
 * `on_cancel` callbacks after a cancel, in the order in which they were attached. After them the cleanups run, on every
 * end, the last attached first. Each runs once. If the future has ended already, the callback runs in the next pump,
 * and an await of the future waits for it. Not attached: EBB_ERR_NOMEM, EBB_ERR_LIMIT; EBB_ERR_CLOSED: the region runs
 * its finalizers, and no more callbacks; EBB_ERR_INVALID: `fn` is NULL; or the status of a future that could not be
 * made. */
typedef void (*ebb_done_fn)(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg);
typedef void (*ebb_cancel_fn)(ebb_cx *cx, ebb_cancel_kind kind, void *arg);
typedef void (*ebb_cleanup_fn)(ebb_cx *cx, void *arg);
ebb_status ebb_future_on_done(ebb_future *f, ebb_done_fn fn, void *arg);
ebb_status ebb_future_on_cancel(ebb_future *f, ebb_cancel_fn fn, void *arg);
ebb_status ebb_future_on_cleanup(ebb_future *f, ebb_cleanup_fn fn, void *arg);
/* Keeps an object of the heap, the `arg` of a callback for example, alive until f has ended and its callbacks have run.
 * EBB_ERR_FOREIGN: an object of another heap. Else as ebb_future_on_done. */
ebb_status ebb_future_hold(ebb_future *f, void *object);

/* ---- combinators -------------------------------------------------------------------------------------- */

/* How the result ends if an input does not complete:
 *
 *                            if an input is cancelled          if an input fails
 *   then, map                cancelled                         failed
 *   catch                    cancelled, not caught             caught
 *   finally, bracket         the callback runs, cancelled      the callback runs, failed
 *   all, traverse            other inputs and result cancelled other inputs cancelled, failed
 *   all_settled              completed with that outcome       completed with that outcome
 *   race, select             skipped; none left: cancelled     failed
 *   any                      skipped; none left: see below     skipped; none left: the last failure
 *
 * `any` is cancelled only if all inputs were cancelled. Cancelling the result cancels the inputs that it owns. Losers
 * are cancelled, and their producers drain in their regions; the result does not wait for them. Inputs are consumed
 * even if the call fails. The result fails with EBB_ERR_INVALID if a function pointer is NULL, if a callback other than
 * that of finally or release returns NULL, or for a span of 2^63 ns or more (a negative one) that is not EBB_FOREVER.
 * It fails with EBB_ERR_FOREIGN if an input belongs to another runtime, or a map returns an object of another heap. */
typedef ebb_future *(*ebb_then_fn)(ebb_cx *cx, ebb_value *v, void *arg);
typedef ebb_value (*ebb_map_fn)(ebb_cx *cx, ebb_value *v, void *arg);
typedef ebb_future *(*ebb_catch_fn)(ebb_cx *cx, ebb_status st, void *arg);
typedef ebb_future *(*ebb_finally_fn)(ebb_cx *cx, void *arg); /* may return NULL: nothing to wait for */

/* then: calls `fn` with the value of f; the result ends as the future that `fn` returns. map: the result completes with
 * the value that `fn` returns. catch: calls `fn` with the failure of f; the result ends as the future that `fn`
 * returns. */
#define ebb_then(cx, f, fn, arg)    ebb_then_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_map(cx, f, fn, arg)     ebb_map_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_catch(cx, f, fn, arg)   ebb_catch_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_finally(cx, f, fn, arg) ebb_finally_site((cx), (f), (fn), (arg), EBB_SITE)
ebb_future *ebb_then_site(ebb_cx *cx, ebb_future *f, ebb_then_fn fn, void *arg, const char *site);
ebb_future *ebb_map_site(ebb_cx *cx, ebb_future *f, ebb_map_fn fn, void *arg, const char *site);
ebb_future *ebb_catch_site(ebb_cx *cx, ebb_future *f, ebb_catch_fn fn, void *arg, const char *site);
/* finally: calls `fn` when f has ended in any way, waits for the future that `fn` returns, and ends as f did. But if f
 * completed and that future fails or is cancelled, the result ends as that future. The future that `fn` returns is
 * cleanup, like that of a bracket's `release`. */
ebb_future *ebb_finally_site(ebb_cx *cx, ebb_future *f, ebb_finally_fn fn, void *arg, const char *site);

/* How one of several inputs ended. */
typedef struct ebb_outcome {
    ebb_status status;
    ebb_value value; /* empty unless `status` is EBB_OK */
} ebb_outcome;
/* Reads the value of all, all_settled or traverse: an array of `*n` outcomes, in the order of the inputs. The array
 * belongs to `v`: take the values that you want to keep. NULL: `v` is another value. */
ebb_outcome *ebb_outcomes_of(const ebb_value *v, size_t *n);

/* Wait for all inputs. Without inputs the result is an empty list. */
#define ebb_all(cx, n, ...)         ebb_all_site((cx), (n), (__VA_ARGS__), EBB_SITE)
#define ebb_all_settled(cx, n, ...) ebb_all_settled_site((cx), (n), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_all_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_all_settled_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);

/* Wait for the first input: race and select for the first that completes or fails, any for the first that completes.
 * The result ends as that input; the value of select also has its index. Without inputs the result is cancelled. */
#define ebb_race(cx, n, ...)   ebb_race_site((cx), (n), (__VA_ARGS__), EBB_SITE)
#define ebb_any(cx, n, ...)    ebb_any_site((cx), (n), (__VA_ARGS__), EBB_SITE)
#define ebb_select(cx, n, ...) ebb_select_site((cx), (n), (__VA_ARGS__), EBB_SITE)
ebb_future *ebb_race_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_any_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_select_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
typedef struct ebb_selected {
    size_t index;    /* of the input that completed */
    ebb_value value; /* its value: take it to keep it */
} ebb_selected;
/* Reads the value of select, which belongs to `v`. NULL: `v` is another value. */
ebb_selected *ebb_selected_of(const ebb_value *v);

/* Time is that of ebb_now. The timer of a future that has ended is disarmed by the next pump. */
#define ebb_after(cx, span)                  ebb_after_site((cx), (span), EBB_SITE)
#define ebb_within(cx, f, span)              ebb_within_site((cx), (f), (span), EBB_SITE)
#define ebb_future_delay(cx, span, fn, arg)  ebb_future_delay_site((cx), (span), (fn), (arg), EBB_SITE)
#define ebb_future_repeat(cx, span, fn, arg) ebb_future_repeat_site((cx), (span), (fn), (arg), EBB_SITE)
/* Completes without a value after `span`. */
ebb_future *ebb_after_site(ebb_cx *cx, uint64_t span, const char *site);
/* Ends as f, if f ends within `span`. Else fails with EBB_TIMEOUT and cancels f with EBB_CANCEL_TIMEOUT. */
ebb_future *ebb_within_site(ebb_cx *cx, ebb_future *f, uint64_t span, const char *site);
/* Calls `fn` after `span` and ends as the future that `fn` returns. */
typedef ebb_future *(*ebb_make_fn)(ebb_cx *cx, void *arg);
ebb_future *ebb_future_delay_site(ebb_cx *cx, uint64_t span, ebb_make_fn fn, void *arg, const char *site);
/* Calls `fn` every `span` (not 0), with n = 0 after the first span, and waits for the future that `fn` returns before
 * the next call. Ends as that future when it fails, is cancelled, or completes with a value; ebb_value_int(0) and a
 * NULL pointer count as no value. If the time of a call passes during the wait, one call is made at once, not
 * several. */
typedef ebb_future *(*ebb_repeat_fn)(ebb_cx *cx, uint64_t n, void *arg);
ebb_future *ebb_future_repeat_site(ebb_cx *cx, uint64_t span, ebb_repeat_fn fn, void *arg, const char *site);

typedef struct ebb_retry_opts {
    uint32_t size;     /* sizeof(ebb_retry_opts) of the caller; 0: this one */
    uint32_t attempts; /* most calls of `make`; not 0 */
    uint32_t factor;   /* each pause is this number of times longer than the one before; 0: 1 */
    uint64_t pause,    /* ns between the first two attempts */
        max_pause;     /* the longest pause; 0: no bound */
    /* Called with the failure of an attempt and the `arg` of ebb_retry: false ends the retry with this failure. NULL:
     * every failure is worth another attempt. */
    bool (*again)(ebb_status st, void *arg);
} ebb_retry_opts;
/* Calls `make` until the future that it returns completes, at most `attempts` times; `attempt` counts from 0. Ends as
 * the last attempt: the one after which `again` returns false, or the last that `attempts` allows. If an attempt is
 * cancelled, the result is cancelled. `*opts` is copied. */
typedef ebb_future *(*ebb_attempt_fn)(ebb_cx *cx, uint32_t attempt, void *arg);
#define ebb_retry(cx, opts, make, arg) ebb_retry_site((cx), (opts), (make), (arg), EBB_SITE)
ebb_future *ebb_retry_site(ebb_cx *cx, const ebb_retry_opts *opts, ebb_attempt_fn make, void *arg,
                           const char *site);

/* Calls `make` with 0 to n - 1 and waits for all futures that it returns, with at most `at_once` (not 0) pending at a
 * time. The value is read by ebb_outcomes_of. */
typedef ebb_future *(*ebb_each_fn)(ebb_cx *cx, size_t i, void *arg);
#define ebb_traverse(cx, n, at_once, make, arg)                                                              \
    ebb_traverse_site((cx), (n), (at_once), (make), (arg), EBB_SITE)
ebb_future *ebb_traverse_site(ebb_cx *cx, size_t n, size_t at_once, ebb_each_fn make, void *arg,
                              const char *site);

/* Calls `use` with the value of `acquire`, waits for the future that `use` returns, calls `release` with the value of
 * `acquire`, waits for the future that `release` returns (NULL: nothing to wait for), and ends as the future of `use`.
 * But if that completed and the future of `release` fails or is cancelled, the result ends as the future of `release`.
 * If `acquire` does not complete, neither `use` nor `release` is called. Cancelling the result cancels `acquire` or the
 * future of `use`. If `acquire` has completed, `release` is called exactly once, after a cancel too.
 *
 * The future of `release` is cleanup that has begun. It is protected like a masked section, and so are the futures of
 * its region that it waits for: a cancel of the result, of the region or of the future itself does not end it, and the
 * region waits for its producer. Force ends it. A cancel by a remote handle or by its own producer still ends it. A
 * task that `release` has started is cancelled like any task of its region: the task must mask the part that it has to
 * finish. */
typedef ebb_future *(*ebb_release_fn)(ebb_cx *cx, ebb_value *v, void *arg);
#define ebb_bracket(cx, acquire, use, release, arg)                                                          \
    ebb_bracket_site((cx), (acquire), (use), (release), (arg), EBB_SITE)
ebb_future *ebb_bracket_site(ebb_cx *cx, ebb_future *acquire, ebb_then_fn use, ebb_release_fn release,
                             void *arg, const char *site);

/* ---- channels, semaphores, broadcasts -------------------------------------------------------------------- */

/* The waits of ebb/sched.h as futures, to be raced, selected and bounded in time. The value of such a future is a
 * *claim*: an item of the channel, a place in it, or a permit, which belongs to whoever reads the value, and is used
 * once. A claim that nobody reads, or that is discarded (ebb_value_discard, an await without a value), is given back:
 * the item is still in its place in the queue, the place is free, the permit goes to the next waiter. So whatever
 * becomes of the future, nothing is lost, and a send that lost a race has sent nothing. Futures and tasks wait in one
 * queue, first come, first served. When its region closes and nothing else lives there, such a future is cancelled, as
 * one without a producer. It fails with EBB_ERR_CLOSED where the await does, with EBB_ERR_FOREIGN for a channel of
 * another runtime and with EBB_ERR_INVALID for NULL. */

/* Completes with an item of the channel. ebb_chan_take takes it out of the queue, the oldest first, and empties
 * `*claim`: the value of an await, or the borrowed value of a callback. EBB_ERR_INVALID: `*claim` is not an item of a
 * channel. */
#define ebb_chan_recv_future(cx, ch) ebb_chan_recv_future_site((cx), (ch), EBB_SITE)
ebb_future *ebb_chan_recv_future_site(ebb_cx *cx, ebb_chan *ch, const char *site);
ebb_status ebb_chan_take(ebb_cx *cx, ebb_value *claim, void *item);

/* Completes with a place in the channel. ebb_chan_put sends a copy of `item` there, does not wait, and empties
 * `*claim`. EBB_ERR_CLOSED: the channel was closed since; the item was not sent. EBB_ERR_INVALID: `*claim` is not a
 * place of a channel. */
#define ebb_chan_send_future(cx, ch) ebb_chan_send_future_site((cx), (ch), EBB_SITE)
ebb_future *ebb_chan_send_future_site(ebb_cx *cx, ebb_chan *ch, const char *site);
ebb_status ebb_chan_put(ebb_cx *cx, ebb_value *claim, const void *item);

/* Completes with a permit. ebb_value_discard releases it; so does the end of a bracket that acquires it. */
#define ebb_sem_acquire_future(cx, s) ebb_sem_acquire_future_site((cx), (s), EBB_SITE)
ebb_future *ebb_sem_acquire_future_site(ebb_cx *cx, ebb_sem *s, const char *site);

/* Completes when the broadcast has a version after `seen`; the value is that version (ebb_value_int), the latest at
 * this moment. Read it by ebb_broadcast_get, which may return a later one. EBB_ERR_CLOSED: closed, and nothing
 * newer. EBB_ERR_INVALID: `seen` is no version of it yet. */
#define ebb_broadcast_next_future(cx, b, seen) ebb_broadcast_next_future_site((cx), (b), (seen), EBB_SITE)
ebb_future *ebb_broadcast_next_future_site(ebb_cx *cx, ebb_broadcast *b, uint64_t seen, const char *site);

/* ---- other threads ------------------------------------------------------------------------------------ */

/* A counted handle to a future, for any thread. It keeps the future and may outlive the runtime. The last release after
 * the end of the runtime frees the rest, with the runtime's allocator, on the releasing thread. */
typedef struct ebb_remote ebb_remote;

/* Makes a remote handle with one reference. Does not consume the future. EBB_ERR_NOMEM; EBB_ERR_INVALID: NULL, or a
 * future that could not be made; EBB_ERR_CONSUMED; EBB_ERR_THREAD. */
ebb_status ebb_remote_new(ebb_future *f, ebb_remote **out);
ebb_remote *ebb_remote_keep(ebb_remote *r); /* adds a reference; returns r */
void ebb_remote_release(ebb_remote *r);     /* drops a reference; NULL is allowed */

/* Cancel, settle, fail or read a future from any thread, without locks and without memory. A reader of the handle sees
 * the effect at once; dependants follow when the runtime calls ebb_inbox_receive. ebb_remote_cancel returns true if the
 * call ended the future. EBB_CANCELLED: the future was cancelled before; a runtime that is freed cancels its pending
 * futures. EBB_ERR_RESOLVED: it was settled before. EBB_ERR_CLOSED: the runtime is being freed at this moment. In these
 * cases the value is disposed of. EBB_ERR_INVALID: the future is not a promise (the value is disposed of), the value is
 * an object of a heap or a future (the value stays with the caller), or `st` is not negative. */
bool ebb_remote_cancel(ebb_remote *r, ebb_cancel_kind kind);
ebb_status ebb_remote_settle(ebb_remote *r, ebb_value v);
ebb_status ebb_remote_reject(ebb_remote *r, ebb_status st);
ebb_future_state ebb_remote_state(const ebb_remote *r);

/* Receives the messages from other threads and runtimes. Call it before each ebb_runtime_pump of a runtime that others
 * can reach. */
void ebb_inbox_receive(ebb_runtime *rt);
/* Sets a function that is called, on any thread, when the inbox was empty and gets a message: make the runtime's thread
 * call ebb_inbox_receive. Set it before others can reach the runtime. EBB_ERR_NOMEM. */
ebb_status ebb_inbox_on_wake(ebb_runtime *rt, void (*wake)(void *ctx), void *ctx);
/* Makes the calling thread the runtime's thread. Until then it is the thread that made the runtime's first future.
 * EBB_ERR_NOMEM. */
ebb_status ebb_runtime_adopt(ebb_runtime *rt);

/* ---- other runtimes ----------------------------------------------------------------------------------- */

/* Runtimes share nothing: each has its own tasks, heap and thread. They send each other messages, which
 * ebb_inbox_receive receives. A runtime that others reach calls ebb_inbox_on_wake first. An object between two runtimes
 * is allocated when it is made, by its maker's allocator, and is freed on either thread: this allocator must be
 * thread-safe, and must last as long as any handle exists. If a runtime is freed while others can still reach it, it is
 * closed to them; nobody hangs. */

/* A counted handle to a runtime, for any thread. It may outlive the runtime. */
typedef struct ebb_peer ebb_peer;
/* Makes a handle with one reference, on the runtime's thread (else EBB_ERR_THREAD). EBB_ERR_NOMEM. */
ebb_status ebb_peer_of(ebb_runtime *rt, ebb_peer **out);
ebb_peer *ebb_peer_keep(ebb_peer *p); /* adds a reference; returns p */
void ebb_peer_release(ebb_peer *p);   /* drops a reference; NULL is allowed */

/* Returns a future of this runtime that ends as a future of another runtime does. Takes over one reference of `remote`,
 * also on failure. Cancelling the import cancels the remote future at once, as ebb_remote_cancel does. If that was
 * shared or shielded when the handle was made, the import gives it up as any owner does instead. The region waits until
 * the other runtime has answered. EBB_ERR_CLOSED: the other runtime was freed first. EBB_ERR_INVALID: the value is an
 * object of the other heap or a handle of its loop; it must be a word. An owned word is moved here if nobody there
 * holds, awaits or owns the remote future any more; of several imports the last gets it. Else it is borrowed, and valid
 * as long as somebody there keeps it. EBB_ERR_CONSUMED: the word was moved before, by another import or by an await or
 * combinator there. */
#define ebb_remote_import(cx, remote) ebb_remote_import_site((cx), (remote), EBB_SITE)
ebb_future *ebb_remote_import_site(ebb_cx *cx, ebb_remote *remote, const char *site);

/* Opens a child region on another runtime, under its root, and runs `body` with `arg` there as its first task: a poll
 * function, not a fiber, but it may spawn one (ebb_fiber_spawn in ebb_cx_region). The region closes when `body` has
 * returned and what it has spawned has ended. The far region is a child of the region of cx, which does not close before
 * it, and passes on close, cancel (with kind, message and the rest of the budget) and force as messages. In a unit of
 * work the far region is a part of the unit: a close that leaves the unit open leaves the far region open to `body` and
 * the tasks that it spawns.
 *
 * The future belongs to the region of cx. Cancelling it cancels the far region. It ends as the far region: completed
 * without a value, or with its status. It fails with EBB_ERR_CLOSED if the peer is freed or its root admits no work,
 * with EBB_ERR_INVALID if `peer` or `body` is NULL, and else as ebb_region_open and ebb_go. If the region here is
 * forced and does not wait, `body` may still run: `arg` must stay valid until it has returned. A runtime that is freed
 * cancels the far regions that it has opened, with DISCONNECT. Takes no reference of `peer`. */
#define ebb_peer_run(cx, peer, body, arg) ebb_peer_run_site((cx), (peer), (body), (arg), EBB_SITE)
ebb_future *ebb_peer_run_site(ebb_cx *cx, ebb_peer *peer, ebb_poll_fn body, void *arg, const char *site);

/* A bounded queue of items of one size, from the tasks of one runtime to those of another, with backpressure.
 * Cancel-safe and fair as ebb_chan: an item that could not be sent stays with the sender, a sent item is delivered or
 * still in the queue, waiters are served first come, first served. If the runtime of one side is freed, the bridge is
 * closed. */
typedef struct ebb_bridge ebb_bridge;

/* Makes a bridge with one reference, on any thread. EBB_ERR_NOMEM; EBB_ERR_INVALID: a peer is NULL, capacity 0, or 2
 * GiB of items or more. Keep one reference on each side until the region of the tasks that use the bridge has closed.
 * Items that nobody received are freed with the last reference. */
ebb_status ebb_bridge_new(ebb_peer *from, ebb_peer *to, uint32_t capacity, uint32_t item_size,
                          ebb_bridge **out);
ebb_bridge *ebb_bridge_keep(ebb_bridge *b); /* adds a reference; returns b */
void ebb_bridge_release(ebb_bridge *b);     /* drops a reference; NULL is allowed */

/* Send and receive, as ebb_chan_send and ebb_chan_recv: poll operations and checkpoints. EBB_ERR_FOREIGN: not called on
 * the sending or the receiving runtime, respectively. */
ebb_status ebb_bridge_send(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, const void *item);
ebb_status ebb_bridge_recv(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, void *item);
/* The same without waiting. EBB_PENDING: the bridge is full, or has no item that is not granted to a waiter. */
ebb_status ebb_bridge_try_send(ebb_cx *cx, ebb_bridge *b, const void *item);
ebb_status ebb_bridge_try_recv(ebb_cx *cx, ebb_bridge *b, void *item);
/* The same as futures. Their values are claims, as of ebb_chan_send_future and ebb_chan_recv_future, which are used by
 * ebb_bridge_put and ebb_bridge_take. A claim keeps the bridge, but belongs to the runtime of its side. */
#define ebb_bridge_send_future(cx, b) ebb_bridge_send_future_site((cx), (b), EBB_SITE)
#define ebb_bridge_recv_future(cx, b) ebb_bridge_recv_future_site((cx), (b), EBB_SITE)
ebb_future *ebb_bridge_send_future_site(ebb_cx *cx, ebb_bridge *b, const char *site);
ebb_future *ebb_bridge_recv_future_site(ebb_cx *cx, ebb_bridge *b, const char *site);
ebb_status ebb_bridge_put(ebb_cx *cx, ebb_value *claim, const void *item);
ebb_status ebb_bridge_take(ebb_cx *cx, ebb_value *claim, void *item);

/* Closes the bridge for sending; either side may call it. All items that were sent can still be received. If the
 * receiving side closes, ebb_bridge_recv gives EBB_ERR_CLOSED only after the sending side has agreed and the last item
 * was received. EBB_ERR_FOREIGN: called on another runtime. */
ebb_status ebb_bridge_close(ebb_cx *cx, ebb_bridge *b);

/* ---- heap ---------------------------------------------------------------------------------------------- */

/* Each runtime has one heap for its futures and objects, made with the first of them. The collector is precise, does
 * not move objects, and runs on the runtime's thread between polls, in bounded steps. A future that is consumed and has
 * ended is freed at once, without a collection. */
typedef struct ebb_heap_opts {
    uint32_t size; /* sizeof(ebb_heap_opts) of the caller; 0: this one */
    /* The most bytes of blocks. Beyond that constructors fail with EBB_ERR_LIMIT. At least 1,081,344, else
     * EBB_ERR_INVALID. 0: no limit. */
    size_t max_bytes;
    /* A collection starts when this number of bytes was allocated and not freed early; later if more was alive at the
     * last collections. 0: 4 MiB. */
    size_t trigger;
    uint32_t step;   /* most objects that one step of a collection visits. 0: 16384 */
    bool every_time; /* for tests: a full collection before every allocation */
    bool verify; /* for tests: ebb_heap_verify after every collection; `misuse` is called with its errors */
    bool debug;  /* consumed handles are kept until a collection, so that `misuse` reports their use */
    uint64_t (*clock)(void *ctx); /* returns ns, for the histogram of pauses; NULL: no histogram */
    /* Called with each misuse of a handle: its status, a text, and where the handle was made or, with `debug`,
     * consumed; `site` may be NULL. May be NULL. */
    void (*misuse)(void *ctx, ebb_status st, const char *what, const char *site);
    void *ctx; /* the first argument of `clock` and `misuse` */
} ebb_heap_opts;
/* Sets the options of the heap; call it before the first future or object is made, else EBB_ERR_BUSY. EBB_ERR_NOMEM,
 * EBB_ERR_VERSION; EBB_ERR_INVALID: `opts` is NULL or `max_bytes` too small. */
ebb_status ebb_heap_setup(ebb_runtime *rt, const ebb_heap_opts *opts);

typedef struct ebb_heap_stats {
    uint64_t allocated;   /* objects allocated so far */
    uint64_t freed_early; /* of these, freed without a collection */
    uint64_t swept;       /* of these, freed by a collection */
    uint64_t dropped;     /* pending futures that were cancelled because they were no longer reachable */
    uint64_t collections; /* collections so far */
    uint64_t steps;       /* steps of collections so far */
    size_t live;          /* objects not freed, unreachable ones included */
    size_t bytes;         /* bytes of blocks */
    uint64_t pause_max;   /* ns of the longest step */
    uint64_t pause[32];   /* entry i: steps that took less than 2^i ns, and not less than half of that */
} ebb_heap_stats;
void ebb_heap_stats_of(const ebb_runtime *rt, ebb_heap_stats *out);

/* Runs a full collection now. EBB_ERR_REENTERED: called during a collection, by a trace function. EBB_ERR_THREAD. */
ebb_status ebb_gc_collect(ebb_runtime *rt);
/* Checks every object. EBB_ERR_CORRUPT: `text` (may be NULL) has the error. EBB_ERR_THREAD. */
ebb_status ebb_heap_verify(ebb_runtime *rt, char *text, size_t room);

/* Prints the pending and draining futures of each region: what they are and where they were made. `write` as of
 * ebb_runtime_dump. */
void ebb_future_dump(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* ---- machines ----------------------------------------------------------------------------------------- */

/* The value of ebb_machine_ask: `value.as.p`, valid as long as the value. */
typedef struct ebb_machine_answer {
    const void *payload;
    uint32_t size;
    uint16_t kind;
} ebb_machine_answer;

/* Asks a machine: a request as ebb_machine_call of ebb/machine.h, whose reply is a future. The future fails with
 * EBB_TIMEOUT (`within` ns have passed; 0: any time), EBB_ERR_NOT_RUNNING (the machine has stopped), EBB_FAULTED,
 * EBB_ERR_UNHANDLED, or the error of the call. If it is cancelled, the reply becomes a dead letter. A payload that has
 * references is kept and dropped by the functions of its kind, which must be valid as long as the value. */
#define ebb_machine_ask(cx, ms, to, kind, payload, size, within)                                             \
    ebb_machine_ask_site((cx), (ms), (to).id, (kind), (payload), (size), (within), EBB_SITE)
ebb_future *ebb_machine_ask_site(ebb_cx *cx, ebb_machines *ms, uint64_t to, uint16_t kind,
                                 const void *payload, size_t size, uint64_t within, const char *site);

/* Asks a machine of a program as System: a request by its name, with its fields, as of ebb_program_send of ebb/program.h.
 * The value is that of ebb_machine_ask, which ebb_program_json writes. `within`: 0, what the protocol says. Fails as
 * ebb_machine_ask; EBB_ERR_INVALID: there is no such request, or the fields are not its fields. */
#define ebb_program_ask(cx, p, to, kind, fields, n, within)                                                  \
    ebb_program_ask_site((cx), (p), (to).id, (kind), (fields), (n), (within), EBB_SITE)
struct ebb_program;
struct ebb_program_field;
ebb_future *ebb_program_ask_site(ebb_cx *cx, struct ebb_program *p, uint64_t to, const char *kind,
                                 const struct ebb_program_field *fields, size_t n, uint64_t within,
                                 const char *site);

/* ---- machines of other runtimes ------------------------------------------------------------------------- */

/* A handle to a machine, for another runtime: made on the thread of the machine, then handed over, and used once, by
 * ebb_machine_remote_import or ebb_machine_remote_release. It may be passed between threads as any pointer. */
typedef struct ebb_machine_remote ebb_machine_remote;

typedef struct ebb_machine_remote_opts {
    uint32_t size; /* sizeof(ebb_machine_remote_opts) of the caller; 0: this one */
    /* Places of the machine's mailbox that are reserved for what comes over the link; 0: 16. At most 65535. */
    uint32_t credits;
    uint32_t message; /* bytes of the largest payload that crosses; 0: 64. At most EBB_MACHINE_MESSAGE_MAX */
} ebb_machine_remote_opts;

/* Makes a handle to `machine`, and reserves its places. Not in a handler. EBB_ERR_MAILBOX_FULL: the mailbox has not so
 * many free. EBB_ERR_NOT_RUNNING, EBB_ERR_UNKNOWN_MACHINE, EBB_ERR_CLOSED (the machines drain), EBB_ERR_INVALID (the
 * options, a proxy, or in a handler), EBB_ERR_VERSION, EBB_ERR_NOMEM. */
ebb_status ebb_machine_remote_new(ebb_machines *ms, ebb_machine machine, const ebb_machine_remote_opts *opts,
                                  ebb_machine_remote **out);
/* Gives up a handle that is not imported, on any thread. NULL is allowed. */
void ebb_machine_remote_release(ebb_machine_remote *remote);

/* Spawns and starts a *proxy* among the machines of another runtime: a machine that stands for the one of the handle.
 * Sends and requests to the proxy reach it. Each uses a *credit*, a place in its mailbox: a message until it has left
 * the mailbox, a request until it is answered. Beside the errors of ebb_machine_send there are
 *   EBB_ERR_MAILBOX_FULL  there is no credit left
 *   EBB_ERR_LIMIT         the payload is larger than `message`
 *   EBB_ERR_FOREIGN       the kind has references (`keep` or `drop` of its ebb_machine_kind): it can't cross
 *   EBB_ERR_NOT_RUNNING   the machine has ended or drains, or its runtime was freed
 * A reply to such a request has the same limits. `m->from` of the receiver has the id of the sender, which belongs to
 * the sender's runtime: to answer by a send, import a handle to it. Kinds have the same numbers in both runtimes.
 *
 * ebb_machine_stop of the proxy ends the link; what was sent before is still delivered. When the machine ends, the
 * proxy stops, after the last answer. When the machine's runtime is freed, it stops at once, and its requests fail as
 * STOPPED. A publish reaches the machines of one runtime: a subscriber passes it on.
 *
 * Takes over the handle, also on failure. Returns the proxy, or an id that carries an error: those of ebb_machine_spawn,
 * EBB_ERR_CLOSED (also: the machine has ended), or EBB_ERR_INVALID (the runtime of the machine itself, or in a handler),
 * EBB_ERR_LIMIT (2 GiB of credits). */
ebb_machine ebb_machine_remote_import(ebb_machines *ms, ebb_machine_remote *remote);

#ifdef __cplusplus
}
#endif
#endif
