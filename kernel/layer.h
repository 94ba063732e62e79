/* The door of the kernel: what future/, fiber/, loop/, workflow/, http/, lab/, web/ and cli/ use of a runtime.
 * kernel/rt.h and the other headers of this folder are for kernel/ and sched/ alone; scripts/check-layers
 * refuses them to the rest.
 *
 * A layer keeps one record a runtime and registers hooks (ebb__layer_add). Records of tasks and regions are
 * opaque here. What the hot paths of a layer read is declared as a *face*: the part of a record that its inline
 * accessors need. kernel/rt.h asserts that faces and records agree. */
#ifndef EBB__LAYER_H
#define EBB__LAYER_H

#include <stdatomic.h>
#include <string.h>

#include "base/slab.h"
#include <ebb/kernel.h>

#define EBB__LIKELY(x)   __builtin_expect(!!(x), 1)
#define EBB__UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For one step of every poll: a call would cost as much as the step. */
#define EBB__INLINE __attribute__((always_inline)) static inline

typedef struct ebb__task ebb__task;
typedef struct ebb__region ebb__region;

/* ---- layers and their hooks ---------------------------------------------------------------------------- */

/* What did not end as it should. */
typedef enum ebb__leak_kind {
    EBB__LEAK_TASK = 1,   /* a task that was abandoned */
    EBB__LEAK_FINALIZER,  /* a finalizer that was abandoned */
    EBB__LEAK_OBLIGATION, /* an obligation that nobody resolved */
    EBB__LEAK_ABORTED,    /* an obligation of a task that was abandoned */
    EBB__LEAK_OPERATION   /* an operation of a layer that goes on without its region */
} ebb__leak_kind;

typedef struct ebb__leak {
    ebb__leak_kind what;
    uint8_t kind;              /* ebb_obligation_kind of an obligation; else 0 */
    const ebb__region *region; /* where it happened */
    uint64_t id, owner;        /* of the task or obligation, and of the task that had it; 0: the region */
    const char *site;          /* where it was spawned, reserved, added or begun */
    const char *operation;     /* of an operation: what it is */
    const char *name;          /* of an operation: which, "" if it has no name; else NULL */
} ebb__leak;

/* A layer leaves NULL what it has no use for. If several layers have the same hook, all are called, in the order
 * of their slots; `park` until one says true. */
typedef struct ebb__hooks {
    /* Suspends the caller until its task is polled again; false if it can't wait in place. */
    bool (*park)(ebb_cx *cx);
    /* An await has returned EBB_CANCELLED. */
    void (*await_refused)(ebb_cx *cx);
    /* A task has ended that ebb__task_watch was called for, or that ended by the long way for another reason.
     * Nothing of it runs any more; the record is still there. */
    void (*task_ended)(ebb_cx *cx, ebb_status status);
    /* Something was abandoned or leaked just now. */
    void (*leaked)(ebb_runtime *rt, const ebb__leak *leak);
    /* A region that is closing has refused work, or a unit in it has begun work inside itself. */
    void (*admission)(ebb_runtime *rt, const ebb__region *r, bool refused);
    /* The runtime is freed, with all records of the kernel still in place. */
    void (*freed)(ebb_runtime *rt);
} ebb__hooks;

enum { EBB__LAYERS = 8 };

typedef struct ebb__layer {
    uint8_t slot; /* a constant of its own, below EBB__LAYERS: where its record is kept */
    ebb__hooks hooks;
} ebb__layer;

/* Registers a layer with a runtime, once. `layer` stays valid as long as the runtime. EBB_ERR_BUSY: the slot is
 * taken. EBB_ERR_INVALID: there is no such slot, or `record` is NULL. */
ebb_status ebb__layer_add(ebb_runtime *rt, const ebb__layer *layer, void *record);
/* Only for a layer that frees its record before the runtime is freed. */
void ebb__layer_remove(ebb_runtime *rt, const ebb__layer *layer);

/* ---- faces --------------------------------------------------------------------------------------------- */

#define EBB__FACE __attribute__((may_alias)) /* the kernel reads the same memory as another type */

typedef struct ebb__layers {
    void *record[EBB__LAYERS]; /* by slot */
    const ebb__layer *layer[EBB__LAYERS];
    ebb__hooks
        call; /* the only layer's that has the hook, or a function that calls each; NULL: nobody has it */
} ebb__layers;

typedef struct EBB__FACE ebb__rt_face {
    ebb__layers layers;
    uint64_t now;
    uint8_t id;
    bool watched; /* a watchdog may look */
    ebb__slab tasks, regions;
} ebb__rt_face;

typedef struct EBB__FACE ebb__task_face {
    ebb_cx cx;
    uint32_t generation;
    ebb_poll_fn poll;
    void *state;
    ebb_runtime *rt;
    uint32_t index; /* 0: the host */
    uint32_t region;
    uint8_t kernel[12];
    uint32_t flags;
} ebb__task_face;
enum {
    EBB__TASK_INTERNAL = 1u << 6, /* a task of the kernel: callback runner, drain supervisor, closer */
    EBB__TASK_WATCHED = 1u << 12, /* its end looks for waits and is told to layers */
    EBB__TASK_SHIFT = 10,
    EBB__TASK_BYTES = 64,
    EBB__TASK_COLD_BYTES = 48,
    EBB__REGION_SHIFT = 9,
    EBB__REGION_BYTES = 128
};

typedef struct EBB__FACE ebb__task_cold_face {
    const char *site;
    ebb_wait *wait; /* the first thing that it waits for */
} ebb__task_cold_face;

/* What a layer keeps for a region together with a callback runner. The first member of the layer's own record. */
typedef struct ebb__callbacks {
    void (*ended)(ebb_runtime *rt, struct ebb__callbacks *c);    /* the runner has ended */
    void (*released)(ebb_runtime *rt, struct ebb__callbacks *c); /* the region closes; may run users' code */
} ebb__callbacks;

typedef struct EBB__FACE ebb__region_face {
    uint8_t kernel[EBB__REGION_BYTES - 8];
    ebb__callbacks *callbacks;
} ebb__region_face;

/* ---- inline accessors ---------------------------------------------------------------------------------- */

static inline const ebb__rt_face *ebb__face_of(const ebb_runtime *rt) {
    return (const ebb__rt_face *)(const void *)rt;
}

static inline const ebb__task_face *ebb__task_face_of(const ebb_cx *cx) {
    return (const ebb__task_face *)(const void *)cx;
}

/* The record of a layer; NULL: it has not been added. */
static inline void *ebb__layer_record(const ebb_runtime *rt, unsigned slot) {
    return ebb__face_of(rt)->layers.record[slot];
}

static inline ebb_runtime *ebb__rt_of(const ebb_cx *cx) {
    return ebb__task_face_of(cx)->rt;
}

/* The time of the turn. */
static inline uint64_t ebb__now(const ebb_runtime *rt) {
    return ebb__face_of(rt)->now;
}

static inline uint8_t ebb__rt_id(const ebb_runtime *rt) {
    return ebb__face_of(rt)->id;
}

static inline bool ebb__is_host(const ebb_cx *cx) {
    return ebb__task_face_of(cx)->index == 0;
}

/* A number that no other live task of the runtime has. */
static inline uint32_t ebb__task_number(const ebb_cx *cx) {
    return ebb__task_face_of(cx)->index;
}

static inline bool ebb__task_runs(const ebb_cx *cx, ebb_poll_fn poll) {
    return ebb__task_face_of(cx)->poll == poll;
}

/* The state of a task with this poll function; NULL: it has another. */
static inline void *ebb__task_state(const ebb_cx *cx, ebb_poll_fn poll) {
    return ebb__task_face_of(cx)->poll == poll ? ebb__task_face_of(cx)->state : NULL;
}

/* Its end is told to the hooks `task_ended`. */
static inline void ebb__task_watch(ebb_cx *cx) {
    ((ebb__task_face *)(void *)cx)->flags |= EBB__TASK_WATCHED;
}

/* What the callback runner of its region serves; NULL: there has been none. */
static inline ebb__callbacks *ebb__callbacks_of(const ebb_cx *cx) {
    const ebb__task_face *t = ebb__task_face_of(cx);
    const ebb__region_face *r = (const ebb__region_face *)ebb__slab_at_as(
        &ebb__face_of(t->rt)->regions, t->region, EBB__REGION_SHIFT, sizeof *r);
    return r->callbacks;
}

/* The first of the waits of a task, chained by `sibling`. */
static inline ebb_wait *ebb__waits_of(const ebb_cx *cx) {
    const ebb__task_face *t = ebb__task_face_of(cx);
    const char *chunk = ebb__face_of(t->rt)->tasks.base[t->index >> EBB__TASK_SHIFT];
    size_t i = t->index & ((1u << EBB__TASK_SHIFT) - 1);
    const void *cold = chunk + ((size_t)EBB__TASK_BYTES << EBB__TASK_SHIFT) + i * EBB__TASK_COLD_BYTES;
    return ((const ebb__task_cold_face *)cold)->wait;
}

static inline bool ebb__park(ebb_cx *cx) {
    bool (*park)(ebb_cx *) = ebb__face_of(ebb__rt_of(cx))->layers.call.park;
    return EBB__UNLIKELY(park != NULL) && park(cx);
}

static inline void ebb__await_refused(ebb_cx *cx) {
    void (*refused)(ebb_cx *) = ebb__face_of(ebb__rt_of(cx))->layers.call.await_refused;
    if (refused != NULL) refused(cx);
}

/* An await: `operation` again and again while it is pending and the caller can wait in place. */
#define EBB__AWAIT(cx, st, operation)                                                                        \
    do {                                                                                                     \
        do {                                                                                                 \
            (st) = (operation);                                                                              \
        } while ((st) == EBB_PENDING && ebb__park(cx));                                                      \
        if (EBB__UNLIKELY((st) == EBB_CANCELLED)) ebb__await_refused(cx);                                    \
    } while (0)

/* ---- ids ----------------------------------------------------------------------------------------------- */

static inline uint64_t ebb__id(const ebb_runtime *rt, uint32_t index, uint32_t generation) {
    return (uint64_t)ebb__rt_id(rt) << 56 | (uint64_t)index << 32 | generation;
}

/* An id that carries an error: generation 0, the negated status as index. */
static inline uint64_t ebb__id_error(const ebb_runtime *rt, ebb_status st) {
    return (uint64_t)ebb__rt_id(rt) << 56 | (uint64_t)(uint32_t)-st << 32;
}

/* What is wrong with an id that was not found. */
ebb_status ebb__lookup_failed(const ebb_runtime *rt, uint64_t id);

/* The record of an id in a slab, or NULL. */
static inline void *ebb__record_of(const ebb_runtime *rt, const ebb__slab *s, uint64_t id, uint32_t shift,
                                   size_t hot) {
    uint32_t generation = (uint32_t)id, i = (uint32_t)(id >> 32) & 0xffffff;
    if (EBB__UNLIKELY(generation == 0 || id >> 56 != ebb__rt_id(rt) || i - 1 >= s->used - 1)) return NULL;
    ebb__slot *slot = ebb__slab_at_as(s, i, shift, hot);
    return EBB__LIKELY(slot->generation == generation) ? slot : NULL;
}

/* Looks an id up in a slab: EBB_OK and its index, or what is wrong with it. */
static inline ebb_status ebb__lookup_as(const ebb_runtime *rt, const ebb__slab *s, uint64_t id,
                                        uint32_t *index, uint32_t shift, size_t hot) {
    *index = (uint32_t)(id >> 32) & 0xffffff;
    return EBB__LIKELY(ebb__record_of(rt, s, id, shift, hot) != NULL) ? EBB_OK : ebb__lookup_failed(rt, id);
}

static inline ebb_status ebb__lookup(const ebb_runtime *rt, const ebb__slab *s, uint64_t id,
                                     uint32_t *index) {
    return ebb__lookup_as(rt, s, id, index, s->shift, s->hot);
}

/* ---- a runtime ----------------------------------------------------------------------------------------- */

const ebb_allocator *ebb__rt_allocator(const ebb_runtime *rt);
bool ebb__rt_is_pumping(const ebb_runtime *rt);
/* Polls so far. */
uint64_t ebb__rt_polls(const ebb_runtime *rt);
/* Live tasks, without those that ebb__rt_standby has taken out. */
uint64_t ebb__rt_tasks(const ebb_runtime *rt);
/* Adds `by` to the number of tasks that wait for a stop and are no work until then. */
void ebb__rt_standby(ebb_runtime *rt, int by);
/* As ebb_runtime_next_due, but perhaps too early: without a look into the timer wheel. */
uint64_t ebb__rt_due(const ebb_runtime *rt);
/* Bytes of the kernel's records in use. */
uint64_t ebb__rt_bytes(const ebb_runtime *rt);
/* Events recorded in the trace so far; 0 without a trace. */
uint64_t ebb__rt_events(const ebb_runtime *rt);
/* Is there a trace? */
bool ebb__rt_is_traced(const ebb_runtime *rt);
/* Short pumps: a task whose budget is over gets its last polls when it is woken, not at once, and a pump moves
 * few regions on. For a host that must not be kept waiting. */
void ebb__rt_set_short_pumps(ebb_runtime *rt, bool on);
/* Makes room for one obligation or finalizer. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__rt_reserve_obligation(ebb_runtime *rt);
/* Before an operation that counts spans from now: reads the clock if the runtime has one. */
void ebb__clock_refresh(ebb_runtime *rt);
#ifdef EBB_MUTANTS
/* Plants the bug that the oracle of this number (ebb_oracle) is there to find; -1: none. */
void ebb__set_mutant(ebb_runtime *rt, int mutant);
#endif

/* A cleanup budget is for tasks, but for a part of it that is kept for finalizers. The whole kernel and its layers
 * divide budgets by these. */
enum { EBB__KEPT_SHARE = 5 };
static inline uint64_t ebb__kept_of(uint64_t budget) {
    return budget / EBB__KEPT_SHARE;
}
static inline uint64_t ebb__kept_beside(uint64_t tasks_part) {
    return tasks_part / (EBB__KEPT_SHARE - 1);
}
static inline uint64_t ebb__budget_keeping(uint64_t kept) {
    return kept * EBB__KEPT_SHARE;
}

/* Copies a message, cut with a mark. NULL is "". */
void ebb__message_copy(char out[EBB_MESSAGE_MAX + 1], const char *message);

/* Who runs now, for a watchdog in another thread. ebb__watch_leave gets what ebb__watch_enter returned. */
typedef struct ebb__watched {
    bool inside;
    uint64_t id;
    const char *site;
} ebb__watched;
ebb__watched ebb__watch_enter(ebb_runtime *rt, uint64_t id, const char *site);
void ebb__watch_leave(ebb_runtime *rt, ebb__watched outer);
void ebb__watch_name(ebb_runtime *rt, uint64_t id, const char *site);

/* An event of a layer, in the trace as in the journal. */
void ebb__note(ebb_cx *cx, uint8_t type, uint64_t task, uint64_t region, uint32_t value, uint64_t other);

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* The context of a task that has not ended; NULL and *st: EBB_ERR_STALE, EBB_ERR_FOREIGN, or what the id carries.
 * `st` may be NULL. */
ebb_cx *ebb__task_cx(const ebb_runtime *rt, ebb_task id, ebb_status *st);
/* Its budget is over: every await of it returns EBB_CANCELLED, masked or not. */
bool ebb__is_overdue(const ebb_cx *cx);
bool ebb__is_masked(const ebb_cx *cx);
/* Its body has returned. */
bool ebb__has_returned(const ebb_cx *cx);
/* The severity of the cancel request to it; 0: there was none. */
uint8_t ebb__task_severity(const ebb_cx *cx);

/* What is known of a live task, for reports. */
typedef struct ebb__task_view {
    uint64_t id;
    ebb_region region;
    const char *site;
    ebb_task_phase phase;
    uint64_t age_ms; /* UINT64_MAX: not known */
    bool masked, in_finalizer;
    const char *doing; /* "about to be polled", "joins", what it waits for, ... */
    bool waits;        /* `doing` is the name of a wait */
} ebb__task_view;
/* Calls `each` for the live tasks of a region, or of the runtime (r NULL), that are not the kernel's own. */
void ebb__tasks_each(const ebb_runtime *rt, ebb__region *r, void (*each)(void *ctx, const ebb__task_view *t),
                     void *ctx);

/* A spawn that fails because a layer has not what the task needs, with EBB_ERR_NOMEM or EBB_ERR_LIMIT: refused,
 * traced and remembered by its region as if the kernel had none. */
ebb_task ebb__spawn_refused(ebb_cx *cx, ebb_region region, ebb_status why, const char *site);
/* A task whose outcome is not its region's, unless it faults: it has a future. */
ebb_task ebb__spawn_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                          const ebb_task_opts *opts, const char *site);

/* Wakes whoever waits, as an input that the journal has. Waits begin and end with ebb_wait_begin and
 * ebb_wait_end. */
void ebb__waiter_wake(const ebb_wait *w);

/* ---- callback runners ---------------------------------------------------------------------------------- */

/* A task that runs the callbacks of a region. It may come as long as tasks live there, is polled at least once,
 * has no bound on its polls, and is woken when it is the last that lives in a region that is to close: then it
 * has to end. `state` is its state; `callbacks` stay with the region until it closes. An id that carries an
 * error: as a spawn. */
ebb_task ebb__runner_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                         ebb__callbacks *callbacks, const char *site);

bool ebb__is_runner_slow(const ebb_cx *cx);
static inline bool ebb__is_runner(const ebb_cx *cx) {
    return EBB__UNLIKELY(ebb__task_face_of(cx)->flags & EBB__TASK_INTERNAL) && ebb__is_runner_slow(cx);
}

/* What a callback runner has to know in its poll. */
typedef struct ebb__runner_view {
    uint8_t request; /* ebb_cancel_kind of the request to it; 0: none */
    bool overdue, masked;
    bool closing;   /* a close has reached its region */
    bool last;      /* nothing else lives in a region that is to close */
    bool last_poll; /* it is overdue, and this is the last poll that it gets */
} ebb__runner_view;
ebb__runner_view ebb__runner_look(const ebb_cx *cx);

/* ---- regions ------------------------------------------------------------------------------------------- */

ebb_status ebb__region_get(const ebb_runtime *rt, ebb_region id, ebb__region **out);
ebb__region *ebb__region_of(const ebb_cx *cx);
ebb_region_state ebb__region_state(const ebb__region *r);
ebb_region ebb__region_name(const ebb_runtime *rt, const ebb__region *r);
/* NULL: it is the root. */
ebb__region *ebb__region_parent(const ebb_runtime *rt, const ebb__region *r);
/* The region after `r` in the tree below `top`, parents before children; `into`: its children too. NULL: that
 * was the last. Counted in the runtime's visits. */
ebb__region *ebb__region_next(ebb_runtime *rt, const ebb__region *r, const ebb__region *top, bool into);
/* The argument of its on_closed hook, if it has that one; else NULL. */
void *ebb__region_hook_arg(const ebb__region *r,
                           void (*on_closed)(void *arg, const ebb_region_report *report));
ebb__callbacks *ebb__region_callbacks(const ebb__region *r);
/* Its live tasks that are not the kernel's own. */
uint32_t ebb__region_tasks(const ebb_runtime *rt, ebb__region *r);

enum {
    EBB__REGION_ROOT = 1u << 0,
    EBB__REGION_UNIT = 1u << 1,    /* a unit of work */
    EBB__REGION_CLEANUP = 1u << 2, /* a cleanup scope */
    EBB__REGION_FORCED = 1u << 3,
    EBB__REGION_CLOSING = 1u << 4, /* a close has reached it */
    EBB__REGION_ENDS = 1u << 5,    /* it closes by itself when nothing lives in it */
    EBB__REGION_APART = 1u << 6,   /* operators who are not released: nobody waits for it */
    EBB__REGION_ALONE = 1u << 7    /* nothing lives in it but its drain supervisor and operators */
};

typedef struct ebb__region_view {
    ebb_region_state state;
    uint32_t traits;                  /* EBB__REGION_* */
    uint8_t request, severity, epoch; /* of the cancel request; 0: there was none */
    int32_t status;                   /* ebb_status so far */
    uint32_t depth;                   /* 0: the root */
    uint32_t tasks, children;         /* live */
    uint32_t obligations;             /* reserved there, those of its tasks included */
    uint32_t abandoned, leaked;       /* as in its report */
    uint64_t failed;                  /* the task that failed first */
    uint64_t deadline;                /* its own; after a cancel request, the end of the cleanup budget */
    uint64_t force_at;                /* when its tasks are forced; EBB_FOREVER without a request */
    const char *message, *site;
} ebb__region_view;
ebb__region_view ebb__region_look(const ebb_runtime *rt, const ebb__region *r);
uint32_t ebb__region_traits(const ebb_runtime *rt, const ebb__region *r);
/* The reason of the cancel request; kind EBB_CANCEL_NONE: there was none. */
ebb_reason ebb__region_reason(const ebb_runtime *rt, const ebb__region *r);
/* The region whose request was passed on to `r` by its parents. */
const ebb__region *ebb__region_cause(const ebb_runtime *rt, const ebb__region *r);

/* What a task (cx) or a region (r) still has to do, the next finalizer first. */
typedef struct ebb__obligation_view {
    uint64_t id;
    uint8_t kind;         /* ebb_obligation_kind; 0: a finalizer */
    ebb_poll_fn finalize; /* of a finalizer */
    void *arg;
    const char *site;
    uint64_t since;
} ebb__obligation_view;
void ebb__task_obligations(const ebb_runtime *rt, ebb_task task,
                           void (*each)(void *ctx, const ebb__obligation_view *o), void *ctx);
void ebb__region_obligations(const ebb_runtime *rt, const ebb__region *r,
                             void (*each)(void *ctx, const ebb__obligation_view *o), void *ctx);

/* As ebb_region_open_site, but the region is nobody's: `cx` only asks for it. */
ebb_region ebb__region_open_apart(ebb_cx *cx, const ebb_region_opts *opts, const char *site);
/* The region closes by itself once nothing lives in it, as if it were joined. */
void ebb__region_joining(ebb_cx *cx, ebb_region region);
/* As ebb_region_defer, for what layers keep in a region: as long as tasks live there, whoever asks. */
ebb_status ebb__region_defer_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg,
                                   const char *site);

/* ---- admission and operations -------------------------------------------------------------------------- */

/* May an operation begin for `cx`: one of its own, or one that brings work in from outside? EBB_ERR_CLOSED;
 * EBB_CANCELLED for a task under request, which is acknowledged with it unless it is masked. A refusal is in the
 * trace and in the journal. */
ebb_status ebb__admit_operation(ebb_cx *cx);
ebb_status ebb__admit_inbound(ebb_cx *cx);

/* An operation that was begun for this region goes on without it: it counts as abandoned, and stands in the
 * trace and in the region's report with the place where it began. `name` (may be NULL) tells it from others of
 * its kind: a path, a program. Needs no memory, but without it the report has only the count. */
void ebb__operation_abandoned(ebb_cx *cx, ebb_region region, const char *what, const char *name,
                              const char *site);

/* ---- drain supervisors: kernel/supervisor.h says what they are ------------------------------------------ */

typedef struct ebb__supervisor {
    ebb_task task; /* an id that carries the error, if there is none */
    ebb_region region;
} ebb__supervisor;

/* `on_closed` is for the root only, whose end nobody else hears of; its argument is `state`. EBB_ERR_CLOSED,
 * EBB_ERR_BUSY (it has one), EBB_ERR_NOMEM, EBB_ERR_LIMIT: nothing changed. */
ebb__supervisor ebb__supervisor_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                                    void (*on_closed)(void *arg, const ebb_region_report *report),
                                    const char *site);
/* Wakes the supervisor at that time, and not at any it was set to before; EBB_FOREVER: never. Needs no
 * memory. */
void ebb__supervisor_alarm(ebb_cx *cx, ebb_task supervisor, uint64_t at);
/* The operators' region of a supervisor's region, which has none yet. Nobody owns it. Its errors are those of
 * ebb_region_open. */
ebb_region ebb__operators_open(ebb_cx *cx, ebb_region of, const char *site);
/* From now on the supervisor's region waits for its operators' region, and force reaches it. What is left in it
 * at the deadline is cancelled. It is not closed yet: the caller does that. */
void ebb__operators_release(ebb_cx *cx, ebb_region operators, uint64_t deadline);

#endif
