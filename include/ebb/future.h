/* ebb/future.h - values that come later, how they are combined, and how they end.
 *
 * A *future* is a handle to a value that somebody produces: a promise of yours, a timer, a task, an
 * operation of a loop. It ends once: COMPLETED with a value, FAILED with a status, or CANCELLED. Two kinds
 * of edges tie futures together, and they are never the same: *data* (who waits for whose value) and
 * *ownership* (who is cancelled with whom).
 *
 *     ebb_future *page  = fetch(cx, url);
 *     ebb_future *quick = ebb_within(cx, page, 200 * EBB_MS);   // owns page: late means cancelled
 *     ebb_future *two[] = {quick, fetch(cx, mirror)};
 *     ebb_future *best  = ebb_race(cx, 2, two);                 // the loser is cancelled
 *     st = ebb_await(cx, best, &body);                          // consumes it
 *
 * Rules that hold for every function below, besides those at the head of ebb/kernel.h:
 *  - A constructor takes the `cx`; its region holds the new handle until it is consumed, dropped, or the
 *    region closes. So a local variable is safe, and an early return leaks nothing.
 *  - ebb_await and the combinators *consume* their inputs: the handle is theirs. ebb_future_keep first, to use it
 *    again afterwards.
 *  - A constructor never returns NULL: what can't be made (no memory, a closed region, a bad argument, the
 *    wrong thread) is a failed future with that status, which surfaces where it is awaited.
 *  - Callbacks run in ebb_runtime_pump, in the name of the region's callback runner: they may do what a task may, but not
 *    await (EBB_ERR_NOT_TASK), nor may a finalizer that a callback has deferred. They never run inside the call
 *    that attaches or settles.
 *  - Cancelling a future frees its readers at once; its producer drains, and the region waits for that.
 *  - A region that is cancelled cancels its futures, but not what a masked task of it awaits, nor what the
 *    release of a bracket or a finally has begun; those that cleanup code makes after that live on until it is
 *    forced. Then what callbacks still make is cancelled, and in the end refused (EBB_ERR_CLOSED). A region that
 *    closes cancels what nobody produces any more.
 *  - Threads: a future belongs to its runtime's thread. Others hold an ebb_remote. */
#ifndef EBB_FUTURE_H
#define EBB_FUTURE_H

#include <ebb/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_future ebb_future;

/* ---- values --------------------------------------------------------------------------------------- */

/* What trace functions report to. */
typedef struct ebb_gc_marker ebb_gc_marker;

/* A type of values. With a `size` it lives on the runtime's heap: made by ebb_gc_new, freed when nothing
 * refers to it; `trace` (may be NULL) names what it refers to, with ebb_gc_mark and ebb_gc_mark_value, and does
 * nothing else. Without one it is a word that somebody owns, a file descriptor for example. `free` (may be
 * NULL) lets go of what is not memory of the heap; it gets the object or the word, once: in the pump, or
 * in the call that disposes of the value, which for a remote is on that thread. An object's has to free
 * the words in it. It may not look at other objects, which may be gone. What a trace function names must
 * be there: clear a reference to a future when you let go of that. */
typedef struct ebb_type {
    const char *name;
    size_t size;
    void (*trace)(void *object, ebb_gc_marker *t);
    void (*free)(void *object);
    uint32_t reserved; /* 0 */
} ebb_type;

/* 16 bytes. With type NULL it is a plain word, or a pointer that somebody else owns. */
typedef struct ebb_value {
    const ebb_type *type;
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
static inline ebb_value ebb_value_pointer(void *p) { /* borrowed: it stays its owner's */
    ebb_value v = {NULL, {p}};
    return v;
}
static inline ebb_value ebb_value_owned(const ebb_type *type,
                                        void *p) { /* moved: `type->free` will be called */
    ebb_value v = {type, {p}};
    return v;
}

/* A zeroed object of the heap, held by the region of cx until it is moved into a value that a future takes,
 * let go of by ebb_value_discard, or the region closes. NULL: no memory, a closed region, the wrong thread. */
void *ebb_gc_new(ebb_cx *cx, const ebb_type *type);
/* The object as a value. */
ebb_value ebb_value_object(void *object);
/* In a trace function: `object` refers to this (an object or a future; NULL is allowed). */
void ebb_gc_mark(ebb_gc_marker *t, const void *object_or_future);
void ebb_gc_mark_value(ebb_gc_marker *t, const ebb_value *v);

/* Callbacks see a value that is *borrowed*: it stays the future's. Taking it makes it the caller's, who
 * then moves it on or discards it; `v` is empty afterwards, for others who look too. An object is held by
 * the region of cx again; if there is no memory for that the result is empty, and `v` is not. */
ebb_value ebb_value_take(ebb_cx *cx, ebb_value *v);
/* Lets go of a value that was taken or awaited: calls `free` of a word, and leaves an object to the heap. */
void ebb_value_discard(ebb_cx *cx, ebb_value v);

/* Bytes in the region's arena: they go with the region in one step. The value may live longer: reading it
 * then is EBB_ERR_CLOSED. EBB_ERR_NOMEM. */
ebb_status ebb_bytes_new(ebb_cx *cx, size_t n, ebb_value *out, void **at);
ebb_status ebb_bytes_of(ebb_cx *cx, const ebb_value *v, void **at, size_t *n);

/* ---- making and ending ------------------------------------------------------------------------------ */

typedef enum ebb_future_state {
    EBB_FUTURE_PENDING = 0,
    EBB_FUTURE_SETTLING = 1, /* another thread is writing its value */
    EBB_FUTURE_COMPLETED = 2,
    EBB_FUTURE_FAILED = 3,
    EBB_FUTURE_CANCELLED = 4
} ebb_future_state;

/* An operation: who produces a future's value. `cancel` (may be NULL) is called once, in the pump, when the
 * future was cancelled before its producer was done: it asks that to stop. The producer always ends by
 * exactly one ebb_promise_settle or ebb_promise_reject, cancelled or not; until then the region waits for it. */
typedef struct ebb_operation {
    const char *name; /* for ebb_runtime_dump and reports: "accept" */
    void (*cancel)(ebb_cx *cx, ebb_future *f, void *arg);
    /* May be NULL. Called once, in the pump, when the region is closed while the future is pending: for what
     * waits for new work, and is to end then. One that is begun after the close is not told. */
    void (*closing)(ebb_cx *cx, ebb_future *f, void *arg);
} ebb_operation;

/* A future that somebody settles, once: the handle stays good for that when it was consumed or cancelled,
 * until it is settled or the region has closed. Without an `op` nothing is known of its producer: the region
 * does not wait for it, and cancels it when it closes. One that will not be settled is rejected with
 * EBB_CANCELLED, else its memory stays until then. */
#define ebb_promise_new(cx, op, arg) ebb_promise_new_site((cx), (op), (arg), EBB_SITE)
ebb_future *ebb_promise_new_site(ebb_cx *cx, const ebb_operation *op, void *arg, const char *site);

/* Ends a promise with a value, which is moved into it. EBB_OK; EBB_CANCELLED if a cancel came first: the
 * value was disposed of; EBB_ERR_RESOLVED the second time, and disposed of too. A value that is a future
 * (ebb_value_future) is flattened: the promise ends as that does. From then on it can be cancelled, but not settled
 * again, by a remote handle neither. EBB_ERR_FOREIGN: the value is an object of another runtime's heap; it stays
 * where it is, and the promise is still to be settled. */
ebb_status ebb_promise_settle(ebb_future *f, ebb_value v);
/* Ends it with a failure. EBB_CANCELLED as status cancels it. A status that is no failure is
 * EBB_ERR_INVALID. */
ebb_status ebb_promise_reject(ebb_future *f, ebb_status failure);
/* A future as a value, to settle with. Whoever takes it consumes it. */
ebb_value ebb_value_future(ebb_future *f);

#define ebb_future_ready(cx, v) ebb_future_ready_site((cx), (v), EBB_SITE) /* completed */
#define ebb_future_failed(cx, st)                                                                            \
    ebb_future_failed_site((cx), (st), EBB_SITE) /* failed; EBB_CANCELLED: cancelled */
#define ebb_future_never(cx) ebb_future_never_site((cx), EBB_SITE)
/* Completes when the region of cx is closed: for what waits and is not to wait any longer then, in an
 * ebb_select. In a region that does not admit work any more it has completed. */
#define ebb_closing(cx) ebb_closing_site((cx), EBB_SITE)
ebb_future *ebb_future_never_site(ebb_cx *cx, const char *site);
ebb_future *ebb_closing_site(ebb_cx *cx, const char *site);
ebb_future *ebb_future_ready_site(ebb_cx *cx, ebb_value v, const char *site);
ebb_future *ebb_future_failed_site(ebb_cx *cx, ebb_status failure, const char *site);

/* A task as a future of its status: cancelling it asks the task to cancel. It belongs to the region of cx,
 * the task to `region`. The value is none. Its end is the future's and not the region's: whoever has the
 * future decides what a failure or a cancel means. A fault is both. */
#define ebb_go(...)                            EBB_WITH_OPTS(EBB_GO_, ebb_go_site, __VA_ARGS__)
#define EBB_GO_(cx, region, poll, state, site) ebb_go_site((cx), (region), (poll), (state), NULL, (site))
ebb_future *ebb_go_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                        const ebb_task_opts *opts, const char *site);

/* Cancels it: true if this was what ended it. It reads as cancelled at once; its dependants and what it
 * owns follow in the next pump. Never fails for want of memory. False for what the release of a bracket or a
 * finally has returned: only force ends that. */
bool ebb_future_cancel(ebb_future *f, ebb_cancel_kind kind);

ebb_future_state ebb_future_state_of(const ebb_future *f);
/* EBB_PENDING, EBB_OK, EBB_CANCELLED or its failure. */
ebb_status ebb_future_status_of(const ebb_future *f);
ebb_cancel_kind ebb_future_cancel_kind_of(const ebb_future *f); /* why it was cancelled; NONE */
/* For producers that poll: one load. */
bool ebb_future_is_cancelled(const ebb_future *f);

/* Waits for it and moves its value into `v` (may be NULL: disposed of). Consumes it. A poll operation and a
 * checkpoint in a task (repeat it with the same future, kept in the state), blocking in a fiber. A task
 * that is cancelled meanwhile gets EBB_CANCELLED, and with it the future is. EBB_ERR_NOT_TASK: a callback,
 * or the host and it is pending; EBB_ERR_NOT_AWAITED: there was no memory to wait, or to hold the object that it
 * has. Nothing is consumed then, and the await may be tried again; EBB_ERR_NOMEM and EBB_ERR_LIMIT are the
 * future's own failure. A word that somebody else
 * may still ask for, because the handle was kept, is borrowed: it stays the future's. */
ebb_status ebb_await(ebb_cx *cx, ebb_future *f, ebb_value *v);

/* ---- holding ---------------------------------------------------------------------------------------- */

/* One more use of the handle: each await, combinator or drop takes one away. Returns f. */
ebb_future *ebb_future_keep(ebb_future *f);
/* Lets go of the handle. If nothing else refers to it and it is pending, it is cancelled as dropped when
 * the heap is collected. */
void ebb_future_drop(ebb_future *f);
/* From now on cancelling one that owns it cancels it only if that was the last, holders included. */
ebb_future *ebb_future_share(ebb_future *f);
/* From now on no owner's end cancels it. The region's cancel does. */
ebb_future *ebb_future_shield(ebb_future *f);

/* Callbacks, any number. `on_done` for a value or a failure (then `v` is empty), `on_cancel` for a cancel,
 * each in the order in which they were attached; then cleanups, on every end, the last first. They run once;
 * attached to a future that has ended, in the next pump, and an await waits for that. EBB_ERR_NOMEM,
 * EBB_ERR_CLOSED (its region runs its finalizers, and no callbacks any more), or the status of a future that could
 * not be made: not attached. */
typedef void (*ebb_done_fn)(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg);
typedef void (*ebb_cancel_fn)(ebb_cx *cx, ebb_cancel_kind kind, void *arg);
typedef void (*ebb_cleanup_fn)(ebb_cx *cx, void *arg);
ebb_status ebb_future_on_done(ebb_future *f, ebb_done_fn fn, void *arg);
ebb_status ebb_future_on_cancel(ebb_future *f, ebb_cancel_fn fn, void *arg);
ebb_status ebb_future_on_cleanup(ebb_future *f, ebb_cleanup_fn fn, void *arg);
/* Keeps an object of the heap alive until f has ended and its callbacks have run: for their `arg`. Of another
 * heap: EBB_ERR_FOREIGN. */
ebb_status ebb_future_hold(ebb_future *f, void *object);

/* ---- combinators -------------------------------------------------------------------------------------- */

/* What becomes of the result:
 *
 *   an input is              cancelled                         failed
 *   then, map                cancelled                         failed
 *   catch                    cancelled, not caught             caught
 *   finally, bracket         runs, then cancelled              runs, then failed
 *   all, traverse            the others are cancelled, so      the others are cancelled, failed
 *   all_settled              noted                             noted
 *   race, select             skipped; none left: cancelled     wins
 *   any                      skipped; none left: cancelled     skipped; none left: the last failure
 *
 * Cancelling the result cancels the inputs that it owns. Losers are cancelled, and their producers drain in
 * their regions; the result does not wait for that. A callback that returns NULL fails it with
 * EBB_ERR_INVALID. What is refused consumes its inputs all the same. A function pointer that is NULL:
 * EBB_ERR_INVALID. An input of another runtime, or a map that returns an object of its heap: EBB_ERR_FOREIGN.
 * A span of 2^63 ns or more that is not
 * EBB_FOREVER (a negative one): EBB_ERR_INVALID. */
typedef ebb_future *(*ebb_then_fn)(ebb_cx *cx, ebb_value *v, void *arg);
typedef ebb_value (*ebb_map_fn)(ebb_cx *cx, ebb_value *v, void *arg);
typedef ebb_future *(*ebb_catch_fn)(ebb_cx *cx, ebb_status st, void *arg);
typedef ebb_future *(*ebb_finally_fn)(ebb_cx *cx, void *arg); /* NULL: nothing to wait for */

#define ebb_then(cx, f, fn, arg)    ebb_then_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_map(cx, f, fn, arg)     ebb_map_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_catch(cx, f, fn, arg)   ebb_catch_site((cx), (f), (fn), (arg), EBB_SITE)
#define ebb_finally(cx, f, fn, arg) ebb_finally_site((cx), (f), (fn), (arg), EBB_SITE)
ebb_future *ebb_then_site(ebb_cx *cx, ebb_future *f, ebb_then_fn fn, void *arg, const char *site);
ebb_future *ebb_map_site(ebb_cx *cx, ebb_future *f, ebb_map_fn fn, void *arg, const char *site);
ebb_future *ebb_catch_site(ebb_cx *cx, ebb_future *f, ebb_catch_fn fn, void *arg, const char *site);
/* `fn` runs whatever the end of f, and what it returns is waited for. If that fails and f has not, the
 * result fails so. What it returns is cleanup, as what the release of a bracket returns. */
ebb_future *ebb_finally_site(ebb_cx *cx, ebb_future *f, ebb_finally_fn fn, void *arg, const char *site);

/* How each of several ended; the value of all, all_settled and traverse, in the order of the inputs. The
 * array is the value's own: take what you want to keep. NULL if it is no such value. */
typedef struct ebb_outcome {
    ebb_status status;
    ebb_value value;
} ebb_outcome;
ebb_outcome *ebb_outcomes_of(const ebb_value *v, size_t *n);

/* Of no inputs: an empty list. */
#define ebb_all(cx, n, fs)         ebb_all_site((cx), (n), (fs), EBB_SITE)
#define ebb_all_settled(cx, n, fs) ebb_all_settled_site((cx), (n), (fs), EBB_SITE)
ebb_future *ebb_all_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_all_settled_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);

/* The first to end. Of no inputs: cancelled. select also tells which it was. */
#define ebb_race(cx, n, fs)   ebb_race_site((cx), (n), (fs), EBB_SITE)
#define ebb_any(cx, n, fs)    ebb_any_site((cx), (n), (fs), EBB_SITE)
#define ebb_select(cx, n, fs) ebb_select_site((cx), (n), (fs), EBB_SITE)
ebb_future *ebb_race_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_any_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
ebb_future *ebb_select_site(ebb_cx *cx, size_t n, ebb_future *const *fs, const char *site);
typedef struct ebb_selected {
    size_t index;
    ebb_value value;
} ebb_selected;
ebb_selected *ebb_selected_of(const ebb_value *v); /* NULL if it is no such value */

/* Time: by the clock that ebb_runtime_advance moves. A timer whose future has ended, or that has lost to something else,
 * is disarmed by the next pump. */
#define ebb_after(cx, span)                  ebb_after_site((cx), (span), EBB_SITE)
#define ebb_within(cx, f, span)              ebb_within_site((cx), (f), (span), EBB_SITE)
#define ebb_future_delay(cx, span, fn, arg)  ebb_future_delay_site((cx), (span), (fn), (arg), EBB_SITE)
#define ebb_future_repeat(cx, span, fn, arg) ebb_future_repeat_site((cx), (span), (fn), (arg), EBB_SITE)
/* Sleeps: completes with nothing after a time span. */
ebb_future *ebb_after_site(ebb_cx *cx, uint64_t span, const char *site);
/* Fails with EBB_TIMEOUT, and cancels f so, if f has not ended by then. */
ebb_future *ebb_within_site(ebb_cx *cx, ebb_future *f, uint64_t span, const char *site);
/* Calls fn after a time span and ends as what it returns. */
typedef ebb_future *(*ebb_make_fn)(ebb_cx *cx, void *arg);
ebb_future *ebb_future_delay_site(ebb_cx *cx, uint64_t span, ebb_make_fn fn, void *arg, const char *site);
/* Calls fn every `span` (not 0), first after one span, with 0, and waits for what it returns before the
 * next. Ends when that completes with a value other than none, or fails, or is cancelled: as that. A call
 * whose time has passed meanwhile is made at once, but only one. */
typedef ebb_future *(*ebb_repeat_fn)(ebb_cx *cx, uint64_t n, void *arg);
ebb_future *ebb_future_repeat_site(ebb_cx *cx, uint64_t span, ebb_repeat_fn fn, void *arg, const char *site);

/* Calls `make` until what it returns completes, at most `attempts` times; `attempt` counts from 0. Between
 * them it sleeps for `pause`, and then `factor` times longer each time, up to `max_pause` (0: no bound).
 * Ends as the last attempt. A cancelled attempt cancels it. */
typedef struct ebb_retry_opts {
    uint32_t attempts; /* not 0 */
    uint32_t factor;   /* 0: 1 */
    uint64_t pause, max_pause;
} ebb_retry_opts;
typedef ebb_future *(*ebb_attempt_fn)(ebb_cx *cx, uint32_t attempt, void *arg);
#define ebb_retry(cx, opts, make, arg) ebb_retry_site((cx), (opts), (make), (arg), EBB_SITE)
ebb_future *ebb_retry_site(ebb_cx *cx, const ebb_retry_opts *opts, ebb_attempt_fn make, void *arg,
                           const char *site);

/* Calls `make` for 0 to n - 1 and waits for all, with at most `at_once` (not 0) pending at a time. */
typedef ebb_future *(*ebb_each_fn)(ebb_cx *cx, size_t i, void *arg);
#define ebb_traverse(cx, n, at_once, make, arg)                                                              \
    ebb_traverse_site((cx), (n), (at_once), (make), (arg), EBB_SITE)
ebb_future *ebb_traverse_site(ebb_cx *cx, size_t n, size_t at_once, ebb_each_fn make, void *arg,
                              const char *site);

/* Once `acquire` has completed, `use` runs with its value, and `release` runs when what that returned has
 * ended, however it did. What `release` returns (NULL: nothing) is waited for, and then the result ends as
 * `use` did. If `acquire` does not complete nothing else runs. Cancelling the result cancels `acquire` or
 * what `use` returned; `release` still runs, once, after a cancel too, with the value of `acquire`.
 *
 * What `release` returned is cleanup that has begun. It is protected as a masked section is, with the futures
 * of its region that it waits for: whoever cancels the result, the region or the cleanup itself, it goes on,
 * and the region waits for what produces it; force ends it. A remote handle's cancel and its own producer's are
 * not held back. A task that `release` has started is asked to stop as any task of its region: it masks what it
 * has to finish. */
typedef ebb_future *(*ebb_release_fn)(ebb_cx *cx, ebb_value *v, void *arg);
#define ebb_bracket(cx, acquire, use, release, arg)                                                          \
    ebb_bracket_site((cx), (acquire), (use), (release), (arg), EBB_SITE)
ebb_future *ebb_bracket_site(ebb_cx *cx, ebb_future *acquire, ebb_then_fn use, ebb_release_fn release,
                             void *arg, const char *site);

/* ---- other threads ------------------------------------------------------------------------------------ */

/* A counted handle to a future, for any thread: it keeps the future, and may outlive its runtime. Then the
 * last one frees what is left, by the runtime's allocator, on its thread. */
typedef struct ebb_remote ebb_remote;

/* A remote handle with one reference. The future stays the caller's. EBB_ERR_NOMEM, EBB_ERR_INVALID. */
ebb_status ebb_remote_new(ebb_future *f, ebb_remote **out);
ebb_remote *ebb_remote_keep(ebb_remote *r); /* one more reference; returns r */
void ebb_remote_release(ebb_remote *r);     /* NULL is allowed */

/* From any thread, without a lock and without memory. They take effect at once for whoever looks at the
 * handle; dependants follow when its runtime takes them in. Only a promise can be settled, and not with an
 * object of a heap or a future: EBB_ERR_INVALID. EBB_ERR_CLOSED: the runtime is gone, and the value was
 * disposed of, as it is when EBB_CANCELLED or EBB_ERR_RESOLVED says that something else came first. */
bool ebb_remote_cancel(ebb_remote *r, ebb_cancel_kind kind);
ebb_status ebb_remote_settle(ebb_remote *r, ebb_value v);
ebb_status ebb_remote_reject(ebb_remote *r, ebb_status st);
ebb_future_state ebb_remote_state(const ebb_remote *r);

/* Takes in what other threads have done to futures of this runtime and what they have sent it. Call it
 * before each ebb_runtime_pump of a runtime that others know. */
void ebb_inbox_receive(ebb_runtime *rt);
/* `wake` is called, from any thread, when there is something to take in and there was nothing before: make
 * the runtime's thread call ebb_inbox_receive. Set it before others know the runtime. */
ebb_status ebb_inbox_on_wake(ebb_runtime *rt, void (*wake)(void *ctx), void *ctx);
/* This thread is the runtime's from now on. Futures know the thread that made the first of them. */
ebb_status ebb_runtime_adopt(ebb_runtime *rt);

/* ---- other runtimes ----------------------------------------------------------------------------------- */

/* Runtimes share nothing: each has its own tasks, heap and thread, and they send each other letters, which
 * ebb_inbox_receive takes in. Whoever is to be reached calls ebb_inbox_on_wake first. What lies between two runtimes is
 * allocated when it is made, by the maker's allocator, and freed on either thread: that allocator has to
 * allow it, and to last as long as anybody has a handle. A runtime that is freed while others still know it
 * is seen by them as closed; nobody hangs. */

/* A counted handle to a runtime, for any thread. It may outlive it. */
typedef struct ebb_peer ebb_peer;
/* On the runtime's thread. EBB_ERR_NOMEM. */
ebb_status ebb_peer_of(ebb_runtime *rt, ebb_peer **out);
ebb_peer *ebb_peer_keep(ebb_peer *p); /* one more reference; returns p */
void ebb_peer_release(ebb_peer *p);   /* NULL is allowed */

/* A future of another runtime as one of this one's: it ends as that does. Takes one reference of `remote`
 * over, whatever becomes of it. Cancelling it cancels the remote future at once, as ebb_remote_cancel; one
 * that was shared or shielded when it was exported is let go of instead, as by any owner. The region waits
 * until the other runtime has answered. If that is freed first: EBB_ERR_CLOSED. The value must be a word; an
 * object of the other heap, or a handle of its loop: EBB_ERR_INVALID. A word that is owned is moved here
 * if nobody there holds, awaits or owns the remote future any more (of several imports the last gets it), else
 * it is borrowed: good as long as somebody there keeps it. Asking after it was moved, here or by an await or a
 * combinator there, is EBB_ERR_CONSUMED. */
#define ebb_remote_import(cx, remote) ebb_remote_import_site((cx), (remote), EBB_SITE)
ebb_future *ebb_remote_import_site(ebb_cx *cx, ebb_remote *remote, const char *site);

/* A child region on another runtime, under its root: `body` runs there as its first task, with `arg`, and
 * when that has returned the region closes. The future is held by the region of cx, which has the far one as
 * its child: it does not close before that has, and what is said to it (close; cancel, with its kind and
 * message; force) is said to the far region by a letter. In a unit of work the far region is a part of that: a
 * close that leaves the unit open leaves it open to the body and what that spawns. Refused as a region is.
 * Cancelling the future cancels the far region.
 * The future ends as that: with nothing, or its status. It fails with EBB_ERR_CLOSED if the peer is gone or its
 * root closes, or as opening the region does. If the region here was forced and did not wait, the body may
 * still run: what `arg` points to has to bear that. A runtime that is freed cancels the far regions that it
 * has opened, as DISCONNECT. Takes no reference of `peer`. */
#define ebb_peer_run(cx, peer, body, arg) ebb_peer_run_site((cx), (peer), (body), (arg), EBB_SITE)
ebb_future *ebb_peer_run_site(ebb_cx *cx, ebb_peer *peer, ebb_poll_fn body, void *arg, const char *site);

/* A bounded queue of items of one size, from the tasks of one runtime to those of another. Cancel-safe and
 * fair as ebb_chan is: what could not be sent is still the sender's, an item is delivered or still there,
 * waiters are served first come, first served. A side whose runtime is freed closes it. */
typedef struct ebb_bridge ebb_bridge;

/* A bridge with one reference; any thread. EBB_ERR_NOMEM, EBB_ERR_INVALID (capacity 0, more than 2 GiB of
 * items). Keep one reference on each side until no task there can touch it any more: until after the region
 * of the tasks that do has closed. Items that nobody has received go with the last. */
ebb_status ebb_bridge_new(ebb_peer *from, ebb_peer *to, uint32_t capacity, uint32_t item_size,
                          ebb_bridge **out);
ebb_bridge *ebb_bridge_keep(ebb_bridge *b); /* one more reference; returns b */
void ebb_bridge_release(ebb_bridge *b);     /* NULL is allowed */

/* As ebb_chan_send and ebb_chan_recv: poll operations and checkpoints, blocking in a fiber. Only on the
 * runtime whose side it is: else EBB_ERR_FOREIGN. */
ebb_status ebb_bridge_send(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, const void *item);
ebb_status ebb_bridge_recv(ebb_cx *cx, ebb_bridge *b, ebb_wait *w, void *item);

/* No more sending, from either side; what was sent can still be received, all of it: if the receiving side
 * closes, EBB_ERR_CLOSED follows when the sending side has agreed and the last item was taken.
 * EBB_ERR_FOREIGN. */
ebb_status ebb_bridge_close(ebb_cx *cx, ebb_bridge *b);

/* ---- heap ---------------------------------------------------------------------------------------------- */

/* Each runtime has one heap for its futures and objects, made when the first is. It is precise, does not
 * move, and is collected by its own thread between polls, a bounded step at a time. What is consumed and has
 * ended is freed at once, without a collection. */
typedef struct ebb_heap_opts {
    uint32_t size;    /* sizeof(ebb_heap_opts) of the caller; 0: this one */
    size_t max_bytes; /* of blocks; constructors fail with EBB_ERR_LIMIT beyond. 0: no limit. At least
                            1,081,344, else EBB_ERR_INVALID */
    size_t trigger;   /* bytes that are allocated, and not freed early, before a collection starts; more if
                       more was alive at the last ones. 0: 4 MiB */
    uint32_t step;    /* objects that one step may look at. 0: 16384 */
    bool every_time;  /* tests: a whole collection before every allocation */
    bool verify;      /* tests: the verifier after every collection; what it finds is told to `misuse` */
    bool debug;       /* consumed handles are kept until a collection, so that their use is told */
    uint64_t (*clock)(void *ctx); /* ns, for the pause histogram; NULL: none */
    /* Told what was done wrong, and where the handle was consumed, if that is known. May be NULL. */
    void (*misuse)(void *ctx, ebb_status st, const char *what, const char *site);
    void *ctx;
} ebb_heap_opts;
/* Before the first future. EBB_ERR_BUSY after it; EBB_ERR_NOMEM; EBB_ERR_VERSION; EBB_ERR_INVALID. */
ebb_status ebb_heap_setup(ebb_runtime *rt, const ebb_heap_opts *opts);

typedef struct ebb_heap_stats {
    uint64_t allocated;   /* objects so far */
    uint64_t freed_early; /* of these, freed without a collection */
    uint64_t swept;       /* and by one */
    uint64_t dropped;     /* pending futures that nobody could reach */
    uint64_t collections;
    uint64_t steps;     /* of collections */
    size_t live;        /* objects, those that wait to be swept included */
    size_t bytes;       /* of blocks */
    uint64_t pause_max; /* ns */
    uint64_t pause[32]; /* steps that took less than 2^i ns, and not less than half of that */
} ebb_heap_stats;
void ebb_heap_stats_of(const ebb_runtime *rt, ebb_heap_stats *out);

/* A whole collection now. EBB_ERR_REENTERED from a trace function; EBB_ERR_THREAD. */
ebb_status ebb_gc_collect(ebb_runtime *rt);
/* Looks at every object: EBB_OK, or EBB_ERR_CORRUPT and what is wrong in `text` (may be NULL). */
ebb_status ebb_heap_verify(ebb_runtime *rt, char *text, size_t room);

/* Prints what is pending or draining, region by region: what it is and where it was made. As ebb_runtime_dump. */
void ebb_future_dump(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
