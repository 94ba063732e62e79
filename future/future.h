/* The record of a future, its edges, and the functions that end one.
 *
 * A change of `state` settles or cancels a future. The code that made the change puts the future into its region's
 * queue, once. The callback runner then finishes it: it lets go of the inputs, runs the callbacks and notifies the
 * waiters.
 *
 * An edge means that a node waits for an input and owns it. The input's `waiters` is a ring of edges. The node's
 * reference keeps the input alive; the ring keeps nothing alive. `owners` counts the edges to a future, including
 * those that left the ring because the future ended. */
#ifndef EBB__FUTURE_FUTURE_H
#define EBB__FUTURE_FUTURE_H

#include "future/region_futures.h"
#include "kernel/layer.h"

typedef struct ebb__edge ebb__edge;
typedef struct ebb__hook ebb__hook;
typedef struct ebb__kind ebb__kind;

/* Flags of a future. */
enum {
    EBB__F_STATIC = 1u << 0,   /* a shared failed future of no region; never written */
    EBB__F_QUEUED = 1u << 1,   /* in its region's queue */
    EBB__F_FINISHED = 1u << 2, /* its callbacks have run: a new edge is ready at once */
    EBB__F_PRODUCED = 1u << 3, /* its producer has yet to settle it: the memory stays */
    EBB__F_SETTLED = 1u << 4,  /* its producer has settled it, or lost to a cancel */
    EBB__F_EXPORTED = 1u << 5, /* other threads may refer to it */
    EBB__F_LOOSE = 1u << 6,    /* uncounted references may exist: only a collection frees it */
    EBB__F_SHARED = 1u << 7,
    EBB__F_SHIELDED = 1u << 8,
    EBB__F_READY = 1u << 9,    /* queued because an input has ended, not because it has */
    EBB__F_SORTED = 1u << 10,  /* its hooks are in the order in which they run */
    EBB__F_SPARED = 1u << 11,  /* not cancelled with the region: a masked task or a cleanup waits for it */
    EBB__F_FORWARD = 1u << 12, /* its callback has run: it ends as its input does */
    EBB__F_STEP = 1u << 13,    /* meaning depends on the kind */
    /* returned by a release or a finally: only force cancels it, and one of its holds is its own until it has ended */
    EBB__F_CLEANUP = 1u << 14,
    EBB__F_WORK = 1u << 15 /* counted in `producers`: the region waits for it */
};

/* 80 bytes; the fields of its kind follow. */
struct ebb_future {
    ebb__cell cell;
    /* low 8 bits: ebb_future_state; above: the ebb_cancel_kind, or EBB__STATE_TAKEN */
    _Atomic uint32_t state;
    uint16_t flags;
    uint16_t holds; /* uses that callers have left; UINT16_MAX is never decremented */
    uint32_t owners;
    uint32_t spare;  /* meaning depends on the kind */
    ebb_value value; /* once completed; once failed: failure.c */
    ebb_future *local_next;
    ebb__edge *waiters; /* the last edge of the ring */
    ebb__hook *hooks;
    const char *site;
};
_Static_assert(sizeof(void *) != 8 || sizeof(ebb_future) == 80, "with an edge and a callback it is 120");

/* With EBB_FUTURE_PENDING: the promise was settled with another future and ends as that one does. It can be
 * cancelled, but not settled again. */
#define EBB__STATE_TAKEN (UINT32_C(1) << 16)

/* What an edge belongs to: the low bits of `input`. */
enum {
    EBB__EDGE_NODE = 0,
    EBB__EDGE_MANY = 1,
    EBB__EDGE_AWAIT = 2,
    EBB__EDGE_IMPORT = 3,
    EBB__EDGE_MASK = 3
};

struct ebb__edge {
    uintptr_t input;        /* the future, and in the low bits EBB__EDGE_*; 0: no input */
    ebb__edge *next, *prev; /* in the ring; next is NULL outside of it */
};

/* A future with one input. */
typedef struct ebb__single {
    ebb_future future;
    ebb__edge edge;
    union {
        ebb_then_fn then;
        ebb_map_fn map;
        ebb_catch_fn caught;
        ebb_finally_fn finally;
        ebb_make_fn make;
        const void *any;
    } fn;
    void *arg;
} ebb__single;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__single) == 120, "what a then costs");

/* One of several edges of a node. */
typedef struct ebb__item {
    ebb__edge edge;
    uint32_t slot;  /* index in its piece */
    uint32_t index; /* index of the input */
} ebb__item;

/* A piece of a node's edges. The edges are split into pieces, so that tracing one cell is bounded work. */
enum { EBB__EDGES_A_PIECE = 64 };
typedef struct ebb__edges {
    ebb__cell cell;
    struct ebb__edges *next;
    ebb_future *node;
    uint32_t n;
    ebb__item item[];
} ebb__edges;

/* A future with several inputs. Its kind has EBB__TYPE_MANY. */
typedef struct ebb__many {
    ebb_future future;
    ebb__edges *edges;
    /* ended inputs that the node has yet to process, linked by edge->prev */
    ebb__edge *ready, **ready_tail;
} ebb__many;

/* The functions and the type of a kind of future. */
struct ebb__kind {
    ebb_type type; /* its name, its size, its references */
    /* The input of `e` has ended, and `e` has left its ring. Runs in a poll of the node's own callback runner, and
     * the node is pending. Drops the input by ebb__edge_drop. */
    void (*input_ended)(ebb__region_futures *s, ebb_future *f, ebb__edge *e);
    /* The future was cancelled: drops its inputs. False: some are left, because `work` is used up. NULL: nothing to
     * do. */
    bool (*cancelled)(ebb__region_futures *s, ebb_future *f, uint32_t *work);
    /* Its timer (ebb__due_add) has fired. The future is pending. */
    void (*fired)(ebb__region_futures *s, ebb_future *f);
    /* Takes a future that has ended, or whose runtime is being freed, out of the queue that it waits in. Runs no code
     * of the program; the second call does nothing. NULL: it waits in none. */
    void (*leave)(ebb_future *f);
    /* Values besides `value`, by index; NULL after the last. Its type has EBB__TYPE_KEEPS. */
    ebb_value *(*kept)(ebb_future *f, uint32_t i);
};

struct ebb__hook {
    ebb__cell cell;
    ebb__hook *next;
    union {
        ebb_done_fn done;
        ebb_cancel_fn cancel;
        ebb_cleanup_fn cleanup;
    } fn;
    void *arg;
    uint8_t what;
};

extern const ebb_type ebb__dead_type; /* of a large cell that is to be swept */
extern const ebb_type ebb__nested_type;
/* type of the value in an exported future after the value was moved out */
extern const ebb_type ebb__moved_type;
/* their free may be called early, and twice */
extern const ebb_type ebb__outcomes_type, ebb__selected_type;

/* ---- accessors -------------------------------------------------------------------------------------------- */

static inline const ebb__kind *ebb__kind_of(const ebb_future *f) {
    return (const ebb__kind *)(const void *)f->cell.type;
}

static inline ebb_future *ebb__edge_input(const ebb__edge *e) {
    return (ebb_future *)(e->input & ~(uintptr_t)EBB__EDGE_MASK);
}

static inline bool ebb__has_ended(const ebb_future *f) {
    /* Acquire: a reader that sees the end sees the value. */
    return (atomic_load_explicit(&f->state, memory_order_acquire) & 0xff) >= EBB_FUTURE_COMPLETED;
}

static inline ebb_future_state ebb__state_of(const ebb_future *f) {
    return (ebb_future_state)(atomic_load_explicit(&f->state, memory_order_acquire) & 0xff);
}

static inline ebb_cancel_kind ebb__kind_of_cancel(const ebb_future *f) {
    return (ebb_cancel_kind)(atomic_load_explicit(&f->state, memory_order_acquire) >> 8);
}

/* Ends a future that other threads may refer to, if it is pending. True for the one caller that ended it. */
static inline bool ebb__claim(ebb_future *f, uint32_t to) {
    uint32_t was = atomic_load_explicit(&f->state, memory_order_relaxed);
    do {
        if ((was & 0xff) != EBB_FUTURE_PENDING) return false;
        /* Release: a thread that loses sees the writes before this one. Acquire: the winner sees the writes of the
         * thread that made the future. */
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &was, to, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

/* The static failed future of a status. */
ebb_future *ebb__failed(ebb_status st);
bool ebb__is_static(const void *cell);

/* The cell of an object or a future. */
static inline ebb__cell *ebb__cell_of(const void *object_or_future) {
    ebb__cell *c = (ebb__cell *)(uintptr_t)object_or_future;
    if (ebb__is_static(c)) return c;
    ebb__page *b = ebb__page_of(c);
    return ebb__cell_at(b, ebb__cell_index(b, c));
}

static inline ebb__cell *ebb__value_cell(const ebb_value *v) {
    if (v->type == NULL || v->type->size == 0 || v->as.p == NULL) return NULL;
    return v->type->reserved & EBB__TYPE_FUTURE ? v->as.p : (ebb__cell *)v->as.p - 1;
}

/* True for an object of another heap than h. Futures of other heaps are checked where they are used. */
static inline bool ebb__is_foreign(const ebb__heap *h, const ebb_value *v) {
    const ebb__cell *c = ebb__value_cell(v);
    return c != NULL && !(v->type->reserved & EBB__TYPE_FUTURE) && ebb__heap_of(c) != h;
}

static inline ebb__region_futures *ebb__region_futures_of(const ebb_future *f) {
    return ebb__heap_of(f)->regions[f->cell.region];
}

/* True for a member that is a root of a collection. */
static inline bool ebb__member_is_root(uintptr_t m) {
    const ebb_future *f = (const ebb_future *)(void *)ebb__member_cell(m);
    if (m & 1) return true;
    return f->flags & EBB__F_QUEUED || (f->flags & EBB__F_PRODUCED && ebb__has_ended(f));
}

/* ---- making ----------------------------------------------------------------------------------------------- */

/* Makes a pending future, held once by the region of cx. NULL and *st. */
ebb_future *ebb__future_new(ebb_cx *cx, const ebb__kind *kind, const char *site, ebb_status *st);

/* EBB_OK if the calling thread may use the handle. Else EBB_ERR_THREAD, EBB_ERR_CONSUMED (in debug), or
 * EBB_ERR_INVALID for NULL. */
ebb_status ebb__usable(const ebb_future *f);
/* The same for an input of a node in heap h: also EBB_ERR_FOREIGN. */
ebb_status ebb__usable_in(const ebb__heap *h, const ebb_future *f);
/* Consumes one use of the handle. `site`: where. */
void ebb__consume(ebb_future *f, const char *site);
/* The same for an owner that ends: it also cancels f, unless f is shielded or shared with others. */
void ebb__let_go_of(ebb_future *f, ebb_cancel_kind kind, const char *site);
/* Adds one use to a handle, which may have none left. */
void ebb__hold_again(ebb_future *f);
/* Consumes the input of a node that could not be made: cancels f, since no node waits for it. */
void ebb__consume_failed(ebb_future *f, const char *site);

/* ---- edges ------------------------------------------------------------------------------------------------ */

/* The edge waits for f and owns it. Consumes one use of f. `belongs`: EBB__EDGE_*. If f has ended already, the node
 * is queued and processes the end in the pump. */
void ebb__edge_attach(ebb_future *node, ebb__edge *e, ebb_future *f, unsigned belongs, const char *site);
/* For EBB__EDGE_AWAIT and EBB__EDGE_IMPORT, which read the value of a finished future themselves. If callbacks were
 * attached after the end, the edge waits until they have run. Does nothing if it waits already. */
void ebb__edge_rejoin(ebb__edge *e);
/* The node of an edge; not for EBB__EDGE_AWAIT. */
ebb_future *ebb__edge_node(const ebb__edge *e);
/* Drops the input, which may free it. */
void ebb__edge_drop(ebb__heap *h, ebb__edge *e);
/* Drops the input and cancels it as an ending owner does. */
void ebb__edge_cancel(ebb__heap *h, ebb__edge *e, ebb_cancel_kind kind);
static inline void ebb__trace_edge(ebb_gc_marker *t, const ebb__edge *e);

/* ---- ending ----------------------------------------------------------------------------------------------- */

/* Each ends a future: with a value, which is moved, with a failure, or as cancelled. A future as value is flattened.
 * False: f had ended before, and the value was disposed of. */
bool ebb__complete(ebb_future *f, ebb_value v);
bool ebb__fail_with(ebb_future *f, ebb_status st);
bool ebb__fail_as(ebb_future *f, ebb_value failure); /* with that of another future */
bool ebb__cancel_as(ebb_future *f, ebb_cancel_kind kind);
/* Ends f as `input` ended. Moves the value if there is no other reader. */
void ebb__end_as(ebb_future *f, ebb_future *input);
/* f waits for `input`, returned by a callback, through its own edge `e`. An unusable input, also NULL, counts as
 * failed. */
void ebb__become(ebb_future *f, ebb__edge *e, ebb_future *input);
/* The status that f ended with. */
ebb_status ebb__status_of(const ebb_future *f);
/* Ends the region's hold on an object, which another reference may keep. */
void ebb__object_let_go(ebb__cell *c);
/* Disposes of a value that was passed to a call which failed. */
void ebb__refuse_value(ebb_value v);
/* Calls the type's free for a value that is a word. Objects belong to the heap, but a list that nothing holds
 * releases its words at once. */
void ebb__dispose(ebb_value v);
void ebb__dispose_word(ebb_value v); /* does nothing for an object */
/* The value of `input`: moved out if the caller is the only reader, else a copy that does not own. */
ebb_value ebb__value_from(ebb_future *input);

/* failure.c: why a future has failed, in words. The value of one that failed is its status (as.i), or an object with
 * status and text. ebb__fail_because: as ebb__fail_with; without memory the text is lost. Longer texts are cut. */
enum { EBB__FAILURE_TEXT = 512 };
bool ebb__fail_because(ebb_future *f, ebb_status st, const char *text);
ebb_status ebb__failure_status(const ebb_value *v);
const char *ebb__failure_text(const ebb_future *f); /* ""; valid as long as the handle */
/* The text of the failure that the last await of this thread has returned, or that was said there since. */
const char *ebb__failure_said(void);
void ebb__failure_say(const char *text);

/* A callback of f is about to run: names it to a watchdog. */
static inline void ebb__watch_callback(const ebb__region_futures *s, const ebb_future *f) {
    if (EBB__UNLIKELY(ebb__face_of(s->heap->rt)->watched)) ebb__watch_name(s->heap->rt, 0, f->site);
}

/* note.c: events of the trace. Call the last three only if ebb__is_recorded. */
uint64_t ebb__future_number(const ebb_future *f); /* in the trace; 0: a static future */
void ebb__note_future_made(const ebb_cx *cx, const ebb__region_futures *s, const ebb_future *f);
void ebb__note_future_ended(const ebb_future *f);
void ebb__note_operation(const ebb_future *f, bool begun);

/* wanted.c: f is pending, and no owner of it, direct or indirect, has ended and has yet to cancel it. Only then may
 * an operation touch the memory that it was given. Also false if there is no memory to look at many owners. */
bool ebb__is_wanted(ebb_future *f);
/* Another thread has ended f, and its message was received. */
void ebb__ended_elsewhere(ebb_future *f);
/* Puts a future that has ended, or is ready, into its region's queue, unless it is there. */
void ebb__enqueue_future(ebb_future *f);
/* Works on a region's queue. True if it is empty. */
bool ebb__run_queue(ebb__region_futures *s, uint32_t *work);
/* The callback runner has ended: notifies the waiters and drops the callbacks. */
void ebb__abandon_queue(ebb__region_futures *s);
/* Frees f if it has ended and nothing refers to it. */
void ebb__maybe_free(ebb__heap *h, ebb_future *f);
/* Runs the hooks of a future that has ended, and frees them. False: `work` is used up, and the next call continues. */
bool ebb__future_hooks_run(ebb__region_futures *s, ebb_future *f, uint32_t *work);
/* From here on the region waits for the producer of f. */
void ebb__count_as_work(ebb_future *f);
/* The producer of f has ended. */
void ebb__produced(ebb_future *f);

void ebb__trace_cell(ebb_gc_marker *t, const void *cell);
void ebb__trace_future(void *object, ebb_gc_marker *t); /* the references that every future has */
void ebb__trace_single(void *object, ebb_gc_marker *t);

static inline void ebb__trace_edge(ebb_gc_marker *t, const ebb__edge *e) {
    ebb__trace_cell(t, ebb__edge_input(e));
}

void ebb__verify_and_report(ebb__heap *h);

/* value.c: the region of cx holds an object, possibly among others. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__object_hold(ebb_cx *cx, ebb__cell *c);
/* Makes an object of `size` bytes, held by the region of cx. NULL and *st. */
void *ebb__object_new(ebb_cx *cx, const ebb_type *type, size_t size, ebb_status *st);

/* await.c: what a wait of ebb_await is for: the name of the future, or of its operation, and where it was made (may be
 * NULL). False: it is another wait, or NULL. */
bool ebb__await_look(const ebb_wait *w, const char **what, const char **site);
/* await.c: the future that a task awaits has ended. */
void ebb__await_ended(ebb__edge *e);
/* If the cell is the awaiter of a masked task: the future that the task awaits. Else NULL. */
ebb_future *ebb__awaited_masked(ebb__cell *c);
/* import.c: a future that another runtime has imported has ended. */
void ebb__import_ended(ebb__edge *e);
/* promise.c: as ebb_promise_reject and ebb_future_failed, with a text. */
ebb_status ebb__promise_reject_because(ebb_future *f, ebb_status failure, const char *text);
ebb_future *ebb__future_failed_because(ebb_cx *cx, ebb_status failure, const char *text, const char *site);
/* promise.c: the promise will end as `inner` does, or fails for lack of memory. */
void ebb__promise_adopt(ebb_future *f, ebb_future *inner);

#endif
