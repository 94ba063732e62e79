/* Futures: the record, its edges, and the one function that ends one.
 *
 * A future is settled or cancelled by a change of its `state`; whoever made it queues the future in its
 * scope, once. The callback runner then finishes it: what it owns, its callbacks, and those who wait.
 *
 * An edge says that a node waits for an input, and owns it. The input's `waiters` is a ring of them; the
 * node's reference keeps the input alive, the ring keeps nobody. `owners` counts the edges to a future,
 * those that have left the ring because it ended included. */
#ifndef EBB__FUTURE_FUTURE_H
#define EBB__FUTURE_FUTURE_H

#include "future/scope.h"
#include "kernel/layer.h"

typedef struct ebb__edge ebb__edge;
typedef struct ebb__hook ebb__hook;
typedef struct ebb__kind ebb__kind;

/* Flags of a future. */
enum {
    EBB__F_STATIC = 1u << 0,   /* a failed one that is nobody's; never written to */
    EBB__F_QUEUED = 1u << 1,   /* in its scope's queue */
    EBB__F_FINISHED = 1u << 2, /* everybody was told of its end */
    EBB__F_PRODUCED = 1u << 3, /* its producer has still to settle it: the memory stays */
    EBB__F_SETTLED = 1u << 4,  /* its producer has ended it, or tried to */
    EBB__F_EXPORTED = 1u << 5, /* other threads may know it */
    EBB__F_LOOSE = 1u << 6,    /* somebody may refer to it who is not counted: only a collection frees it */
    EBB__F_SHARED = 1u << 7,
    EBB__F_SHIELDED = 1u << 8,
    EBB__F_READY = 1u << 9,    /* queued, not because it ended but because its input has */
    EBB__F_SORTED = 1u << 10,  /* its hooks stand in the order in which they run */
    EBB__F_SPARED = 1u << 11,  /* by the region's cancel: a masked task, or a cleanup, waits for it */
    EBB__F_FORWARD = 1u << 12, /* its own work is done: it ends as its input does */
    EBB__F_STEP = 1u << 13,    /* of the kind that needs it: see there */
    EBB__F_CLEANUP = 1u << 14, /* a release or a finally has returned it: only force cancels it, and until it
                                    has ended one of its holds is its own */
    EBB__F_WORK = 1u << 15     /* produced, and counted so: the region waits for it */
};

/* 80 bytes; what a kind needs follows. */
struct ebb_future {
    ebb__cell cell;
    _Atomic uint32_t state; /* ebb_future_state, and above 8 bits the ebb_cancel_kind, or EBB__STATE_TAKEN */
    uint16_t flags;
    uint16_t holds; /* uses that the caller has left; UINT16_MAX stays */
    uint32_t owners;
    uint32_t spare;  /* of the kind */
    ebb_value value; /* once completed; as.i is the status once failed */
    ebb_future *local_next;
    ebb__edge *waiters; /* the last of a ring */
    ebb__hook *hooks;
    const char *site;
};
_Static_assert(sizeof(void *) != 8 || sizeof(ebb_future) == 80, "with an edge and a callback it is 120");

/* With EBB_FUTURE_PENDING: a promise was settled with another future, and ends as that. It can be cancelled, but
 * nobody else can settle it. */
#define EBB__STATE_TAKEN (UINT32_C(1) << 16)

/* What an edge belongs to, in the low bits of `input`. */
enum {
    EBB__EDGE_NODE = 0,
    EBB__EDGE_MANY = 1,
    EBB__EDGE_AWAIT = 2,
    EBB__EDGE_IMPORT = 3,
    EBB__EDGE_MASK = 3
};

struct ebb__edge {
    uintptr_t input;        /* the future and what the edge belongs to; 0: none */
    ebb__edge *next, *prev; /* in the ring; next NULL: not in it */
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
    uint32_t slot;  /* in its piece */
    uint32_t index; /* of the input */
} ebb__item;

/* A piece of a node's edges: not all in one cell, so that no step of a collection has to look at more. */
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
    ebb__edge *ready, **ready_tail; /* inputs that have ended, which it has not heard of; by edge->prev */
} ebb__many;

/* What a future does, by kind. */
struct ebb__kind {
    ebb_type type; /* its name, its size, what it refers to */
    /* The input of `e` has ended, and e has left its ring. Runs in the poll of the node's own callback runner; the
     * node is pending. Lets go of the input by ebb__edge_drop. */
    void (*input_ended)(ebb__scope *s, ebb_future *f, ebb__edge *e);
    /* It was cancelled: lets go of what it owns. False: not all of it yet, `work` is used up. NULL: nothing
     * to do. */
    bool (*cancelled)(ebb__scope *s, ebb_future *f, uint32_t *work);
    /* The timer that it has set by ebb__due_add has fired. It is pending. */
    void (*fired)(ebb__scope *s, ebb_future *f);
    /* Values that it has besides its own, by number; NULL: no more. Its type has EBB__TYPE_KEEPS. */
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

extern const ebb_type ebb__dead_type; /* of a large cell that waits to be swept */
extern const ebb_type ebb__nested_type;
extern const ebb_type ebb__moved_type; /* stands in an exported future whose value was moved out */
extern const ebb_type ebb__outcomes_type, ebb__selected_type; /* their free may be called early, and again */

/* ---- what is what ------------------------------------------------------------------------------------------- */

static inline const ebb__kind *ebb__kind_of(const ebb_future *f) {
    return (const ebb__kind *)(const void *)f->cell.type;
}

static inline ebb_future *ebb__edge_input(const ebb__edge *e) {
    return (ebb_future *)(e->input & ~(uintptr_t)EBB__EDGE_MASK);
}

static inline bool ebb__has_ended(const ebb_future *f) {
    /* Acquire: whoever sees the end sees the value. */
    return (atomic_load_explicit(&f->state, memory_order_acquire) & 0xff) >= EBB_FUTURE_COMPLETED;
}

static inline ebb_future_state ebb__state_of(const ebb_future *f) {
    return (ebb_future_state)(atomic_load_explicit(&f->state, memory_order_acquire) & 0xff);
}

static inline ebb_cancel_kind ebb__kind_of_cancel(const ebb_future *f) {
    return (ebb_cancel_kind)(atomic_load_explicit(&f->state, memory_order_acquire) >> 8);
}

/* Takes a future that other threads know out of PENDING: true for whoever has ended it. */
static inline bool ebb__claim(ebb_future *f, uint32_t to) {
    uint32_t was = atomic_load_explicit(&f->state, memory_order_relaxed);
    do {
        if ((was & 0xff) != EBB_FUTURE_PENDING) return false;
        /* Release: who loses to it on another thread sees what came before. Acquire: the winner follows the
         * maker. */
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &was, to, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

/* Static failed futures, one a status. */
ebb_future *ebb__failed(ebb_status st);
bool ebb__is_static(const void *cell);

/* The cell of what a user calls an object or a future. */
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

/* An object of another heap than h. A future is told apart where it is used. */
static inline bool ebb__is_foreign(const ebb__heap *h, const ebb_value *v) {
    const ebb__cell *c = ebb__value_cell(v);
    return c != NULL && !(v->type->reserved & EBB__TYPE_FUTURE) && ebb__heap_of(c) != h;
}

static inline ebb__scope *ebb__future_scope(const ebb_future *f) {
    return ebb__heap_of(f)->scopes[f->cell.scope];
}

/* A member that a collection starts from. */
static inline bool ebb__member_is_root(uintptr_t m) {
    const ebb_future *f = (const ebb_future *)(void *)ebb__member_cell(m);
    if (m & 1) return true;
    return f->flags & EBB__F_QUEUED || (f->flags & EBB__F_PRODUCED && ebb__has_ended(f));
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

/* A pending future of a kind, held once, in the scope of cx. NULL and *st. */
ebb_future *ebb__future_new(ebb_cx *cx, const ebb__kind *kind, const char *site, ebb_status *st);

/* EBB_OK if the handle may be used by the thread that asks: else EBB_ERR_THREAD, EBB_ERR_CONSUMED (in
 * debug), EBB_ERR_INVALID for NULL. */
ebb_status ebb__usable(const ebb_future *f);
/* The same for an input of something in a heap: also EBB_ERR_FOREIGN. */
ebb_status ebb__usable_in(const ebb__heap *h, const ebb_future *f);
/* One use of the handle is over. `site`: where. */
void ebb__consume(ebb_future *f, const char *site);
/* The same as an owner of it that ends: unless it is spared, it is cancelled. */
void ebb__let_go_of(ebb_future *f, ebb_cancel_kind kind, const char *site);
/* One use more, of a handle that may have none left. */
void ebb__hold_again(ebb_future *f);
/* Consumes the input of something that could not be made: with it nobody waits for f. */
void ebb__consume_failed(ebb_future *f, const char *site);

/* ---- edges ------------------------------------------------------------------------------------------------------ */

/* The edge waits for f and owns it. Consumes one use of f. `belongs`: EBB__EDGE_*. If f has ended already,
 * the node is made ready, and hears of it in the pump. */
void ebb__edge_attach(ebb_future *node, ebb__edge *e, ebb_future *f, unsigned belongs, const char *site);
/* For EBB__EDGE_AWAIT and EBB__EDGE_IMPORT, which read the value of a finished future by themselves: if callbacks
 * were attached after the end, the edge waits until they have run. Does nothing if it is waiting already. */
void ebb__edge_rejoin(ebb__edge *e);
/* The node that an edge belongs to; not for EBB__EDGE_AWAIT. */
ebb_future *ebb__edge_node(const ebb__edge *e);
/* Lets go of the input: it may be freed by this. */
void ebb__edge_drop(ebb__heap *h, ebb__edge *e);
/* The same, and cancels it as an owner does. */
void ebb__edge_cancel(ebb__heap *h, ebb__edge *e, ebb_cancel_kind kind);
static inline void ebb__trace_edge(ebb_gc_marker *t, const ebb__edge *e);

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Ends it with a value, moved, or a failure; flattens nested ones. False: it had ended before, and the value
 * was disposed of. */
bool ebb__complete(ebb_future *f, ebb_value v);
bool ebb__fail_with(ebb_future *f, ebb_status st);
bool ebb__cancel_as(ebb_future *f, ebb_cancel_kind kind);
/* Ends f as `input`, which has ended, did; moves its value if nobody else can ask for it. */
void ebb__end_as(ebb_future *f, ebb_future *input);
/* f waits for `input`, which a callback has returned, by its own edge `e`. One that can't be used, NULL too,
 * counts as failed. */
void ebb__become(ebb_future *f, ebb__edge *e, ebb_future *input);
/* The status it ended with. */
ebb_status ebb__status_of(const ebb_future *f);
/* An object is not held by its region any more: something else refers to it, or nothing. */
void ebb__object_let_go(ebb__cell *c);
/* A value was handed over that nobody takes. */
void ebb__refuse_value(ebb_value v);
/* Calls the type's free of a value that is a word. An object is the heap's, but a list that nobody holds lets
 * go of its words now. */
void ebb__dispose(ebb_value v);
void ebb__dispose_word(ebb_value v); /* an object is let alone */
/* The value of `input`: moved out if `f` is the only one who can ask, else a copy that does not own. */
ebb_value ebb__value_from(ebb_future *input);

/* What is attached to f is about to run: for a watchdog. */
static inline void ebb__watch_callback(const ebb__scope *s, const ebb_future *f) {
    if (EBB__UNLIKELY(ebb__face_of(s->heap->rt)->watched)) ebb__watch_name(s->heap->rt, 0, f->site);
}

/* wanted.c: it is pending, and so is what it is for: no owner has ended that has yet to let go of it. What an
 * operation was given may be touched only then. False too if there is no memory to look at a crowd of owners. */
bool ebb__is_wanted(ebb_future *f);
/* Another thread has ended it, and its letter was taken. */
void ebb__ended_elsewhere(ebb_future *f);
/* Puts a future that has ended, or is ready, into its scope's queue, if it is not there. */
void ebb__enqueue_future(ebb_future *f);
/* Works on a scope's queue. True if it is empty. */
bool ebb__run_queue(ebb__scope *s, uint32_t *work);
/* The callback runner is over: those who wait are told, callbacks are not. */
void ebb__abandon_queue(ebb__scope *s);
/* Frees it if it has ended and nothing can refer to it. */
void ebb__maybe_free(ebb__heap *h, ebb_future *f);
/* The region waits for its producer. */
void ebb__count_as_work(ebb_future *f);
/* The producer is done. */
void ebb__produced(ebb_future *f);

void ebb__trace_cell(ebb_gc_marker *t, const void *cell);
void ebb__trace_future(void *object, ebb_gc_marker *t); /* what every future refers to */
void ebb__trace_single(void *object, ebb_gc_marker *t);

static inline void ebb__trace_edge(ebb_gc_marker *t, const ebb__edge *e) {
    ebb__trace_cell(t, ebb__edge_input(e));
}

void ebb__verify_and_tell(ebb__heap *h);

/* value.c: the region of cx holds an object, besides others that do. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__object_hold(ebb_cx *cx, ebb__cell *c);
/* An object of `size` bytes, held by the region of cx. NULL and *st. */
void *ebb__object_new(ebb_cx *cx, const ebb_type *type, size_t size, ebb_status *st);

/* await.c: the future that a task waits for has ended. */
void ebb__await_ended(ebb__edge *e);
/* What a task awaits whose cancel has to wait, if the cell says that one does; else NULL. */
ebb_future *ebb__awaited_masked(ebb__cell *c);
/* import.c: the future that another runtime has imported has ended. */
void ebb__import_ended(ebb__edge *e);
/* promise.c: the promise ends as `inner`, or fails for want of memory. */
void ebb__promise_adopt(ebb_future *f, ebb_future *inner);

#endif
