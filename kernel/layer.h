/* The interface of the kernel to future/, fiber/, loop/, workflow/, http/, lab/, web/ and cli/. Only kernel/ and
 * sched/ may include kernel/rt.h and the other headers of this folder; scripts/check-layers enforces that.
 *
 * A layer keeps one record for each runtime and registers hooks (ebb__layer_add). Records of tasks and regions are
 * opaque here. The fields that the hot paths of a layer read are declared as a *face*: the part of a record that
 * the inline accessors need. kernel/rt.h asserts that faces and records agree. */
#ifndef EBB__LAYER_H
#define EBB__LAYER_H

#include <stdatomic.h>
#include <string.h>

#include "base/slab.h"
#include <ebb/kernel.h>

#define EBB__LIKELY(x)   __builtin_expect(!!(x), 1)
#define EBB__UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For code that runs in every poll: a call would cost as much as the code itself. */
#define EBB__INLINE __attribute__((always_inline)) static inline

typedef struct ebb__task ebb__task;
typedef struct ebb__region ebb__region;

/* ---- layers and their hooks ---------------------------------------------------------------------------- */

/* Work or obligations that did not end as they should. */
typedef enum ebb__leak_kind {
    EBB__LEAK_TASK = 1,   /* a task that was abandoned */
    EBB__LEAK_FINALIZER,  /* a finalizer that was abandoned */
    EBB__LEAK_OBLIGATION, /* an obligation that nobody resolved */
    EBB__LEAK_ABORTED,    /* an obligation of a task that was abandoned */
    EBB__LEAK_OPERATION   /* an operation of a layer that outlives its region */
} ebb__leak_kind;

typedef struct ebb__leak {
    ebb__leak_kind what;
    uint8_t kind;              /* ebb_obligation_kind of an obligation; else 0 */
    const ebb__region *region; /* the region it is charged to */
    uint64_t id, owner;        /* of the task or obligation, and of its owner task; owner 0: the region */
    const char *site;          /* where it was spawned, reserved, added or begun */
    const char *operation;     /* of an operation: its kind */
    const char *name;          /* of an operation: its name, or ""; otherwise NULL */
} ebb__leak;

/* A layer leaves the hooks that it does not need NULL. If several layers have the same hook, all are called in the
 * order of their slots; `park` is called until one returns true. */
typedef struct ebb__hooks {
    /* Suspends the caller until its task is polled again; false if the caller can't wait in place. */
    bool (*park)(ebb_cx *cx);
    /* An await has returned EBB_CANCELLED. */
    void (*await_refused)(ebb_cx *cx);
    /* A task has ended: each one that ebb__task_watch was called for, and some others. Nothing of the task runs
     * any more; its record still exists. */
    void (*task_ended)(ebb_cx *cx, ebb_status status);
    /* Something was just abandoned or leaked. */
    void (*leaked)(ebb_runtime *rt, const ebb__leak *leak);
    /* A closing region has refused work, or a unit in it has admitted work from inside itself. */
    void (*admission)(ebb_runtime *rt, const ebb__region *r, bool refused);
    /* A task or region has ended for which ebb__task_observe or ebb__region_observe was called; the other id is 0.
     * May wake tasks; runs no code of the program. */
    void (*ended)(ebb_runtime *rt, ebb_task task, ebb_region region);
    /* A unit of work has closed. */
    void (*unit_closed)(ebb_runtime *rt);
    /* ebb_runtime_dump has printed the tree: print what the layer has. */
    void (*shown)(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx);
    /* The runtime is being freed; all records of the kernel still exist. */
    void (*freed)(ebb_runtime *rt);
} ebb__hooks;

enum { EBB__LAYERS = 8 };

typedef struct ebb__layer {
    uint8_t slot; /* a constant of the layer, below EBB__LAYERS: the place of its record */
    ebb__hooks hooks;
} ebb__layer;

/* Registers a layer with a runtime, once. `layer` must stay valid as long as the runtime. EBB_ERR_BUSY: the slot
 * is taken. EBB_ERR_INVALID: there is no such slot, or `record` is NULL. */
ebb_status ebb__layer_add(ebb_runtime *rt, const ebb__layer *layer, void *record);
/* Only for a layer that frees its record before the runtime is freed. */
void ebb__layer_remove(ebb_runtime *rt, const ebb__layer *layer);

/* ---- faces --------------------------------------------------------------------------------------------- */

#define EBB__FACE __attribute__((may_alias)) /* the kernel reads the same memory as another type */

typedef struct ebb__layers {
    void *record[EBB__LAYERS]; /* by slot */
    const ebb__layer *layer[EBB__LAYERS];
    ebb__hooks
        call; /* the hook of the only layer that has it, or a function that calls each; NULL: no layer has it */
} ebb__layers;

typedef struct EBB__FACE ebb__rt_face {
    ebb__layers layers;
    uint64_t now;
    uint8_t id;
    bool watched;  /* a watchdog may read this runtime */
    bool recorded; /* a trace or a journal is on */
    bool confined; /* ebb__rt_confine */
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
    EBB__TASK_WATCHED = 1u << 12, /* at its end, its waits are dropped and `task_ended` is called */
    EBB__TASK_SHIFT = 10,
    EBB__TASK_BYTES = 64,
    EBB__TASK_COLD_BYTES = 48,
    EBB__REGION_SHIFT = 9,
    EBB__REGION_BYTES = 128
};

typedef struct EBB__FACE ebb__task_cold_face {
    const char *site;
    ebb_wait *wait; /* the first of its waits */
} ebb__task_cold_face;

/* What a layer keeps for a region that has a callback runner. The first member of the layer's own record. */
typedef struct ebb__callbacks {
    void (*ended)(ebb_runtime *rt, struct ebb__callbacks *c);    /* the runner has ended */
    void (*released)(ebb_runtime *rt, struct ebb__callbacks *c); /* the region closes; may run user code */
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

/* The time of the current turn. */
static inline uint64_t ebb__now(const ebb_runtime *rt) {
    return ebb__face_of(rt)->now;
}

static inline uint8_t ebb__rt_id(const ebb_runtime *rt) {
    return ebb__face_of(rt)->id;
}

/* The code that runs is confined: ebb__rt_confine. Never in a page, which has no fibers. */
static inline bool ebb__rt_is_confined(const ebb_runtime *rt) {
#ifdef __wasm__
    (void)rt;
    return false;
#else
    return EBB__UNLIKELY(ebb__face_of(rt)->confined);
#endif
}
static inline bool ebb__is_confined(const ebb_cx *cx) {
    return ebb__rt_is_confined(ebb__rt_of(cx));
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

/* Requests a call of the `task_ended` hooks when the task ends. */
static inline void ebb__task_watch(ebb_cx *cx) {
    ((ebb__task_face *)(void *)cx)->flags |= EBB__TASK_WATCHED;
}

/* The task's function has returned. If nothing else of the task has to end, takes that request back: the task ends
 * without a call of the hooks. False: they will be called. */
bool ebb__task_unwatch(ebb_cx *cx);

/* The callbacks of the task's region; NULL: the region never had a callback runner. */
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

/* An await: repeats `operation` while it is pending and the caller can wait in place. */
#define EBB__AWAIT(cx, st, operation)                                                                        \
    do {                                                                                                     \
        if (ebb__is_confined(cx)) {                                                                          \
            (st) = EBB_ERR_DURABLE_CONTEXT;                                                                  \
            break;                                                                                           \
        }                                                                                                    \
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

/* The error for an id that was not found. */
ebb_status ebb__lookup_failed(const ebb_runtime *rt, uint64_t id);

/* The record of an id in a slab, or NULL. */
static inline void *ebb__record_of(const ebb_runtime *rt, const ebb__slab *s, uint64_t id, uint32_t shift,
                                   size_t hot) {
    uint32_t generation = (uint32_t)id, i = (uint32_t)(id >> 32) & 0xffffff;
    if (EBB__UNLIKELY(generation == 0 || id >> 56 != ebb__rt_id(rt) || i - 1 >= s->used - 1)) return NULL;
    ebb__slot *slot = ebb__slab_at_as(s, i, shift, hot);
    return EBB__LIKELY(slot->generation == generation) ? slot : NULL;
}

/* Looks an id up in a slab: EBB_OK and its index, or the error. */
static inline ebb_status ebb__lookup(const ebb_runtime *rt, const ebb__slab *s, uint64_t id,
                                     uint32_t *index) {
    *index = (uint32_t)(id >> 32) & 0xffffff;
    return EBB__LIKELY(ebb__record_of(rt, s, id, s->shift, s->hot) != NULL) ? EBB_OK
                                                                            : ebb__lookup_failed(rt, id);
}

/* ---- a runtime ----------------------------------------------------------------------------------------- */

const ebb_allocator *ebb__rt_allocator(const ebb_runtime *rt);
bool ebb__rt_is_pumping(const ebb_runtime *rt);
/* Polls so far. */
uint64_t ebb__rt_polls(const ebb_runtime *rt);
/* Live tasks, without those that ebb__rt_standby excludes. */
uint64_t ebb__rt_tasks(const ebb_runtime *rt);
/* Tasks that can be polled, in a lane. */
uint32_t ebb__rt_lane(const ebb_runtime *rt, ebb_lane lane);
/* Adds `by` to the number of tasks that wait for a stop. These do not count as work. */
void ebb__rt_standby(ebb_runtime *rt, int by);
/* As ebb_runtime_next_due, but perhaps too early, since it does not search the timer wheel. */
uint64_t ebb__rt_due(const ebb_runtime *rt);
/* Bytes of the kernel's records in use. */
uint64_t ebb__rt_bytes(const ebb_runtime *rt);
/* Events recorded in the trace so far; 0 without a trace. */
uint64_t ebb__rt_events(const ebb_runtime *rt);
bool ebb__rt_is_traced(const ebb_runtime *rt);
/* Whether the trace, or the journal, has full blocks to take. */
bool ebb__rt_has_blocks(const ebb_runtime *rt, bool journal);
/* True if it has a record at all, that is in no whole block either. */
bool ebb__rt_has_records(const ebb_runtime *rt, bool journal);
/* The caller of a function that has no `cx`: the task that is being polled, else the host. */
ebb_cx *ebb__current_cx(ebb_runtime *rt);
/* Asks the lab which of n things of a layer comes next; 0 without a lab. Not journaled: what follows is. */
uint32_t ebb__rt_choose(ebb_runtime *rt, uint32_t n);
/* A task that does many things in a poll does one, so that each is a suspension point: for injection and the lab. */
void ebb__rt_set_stepped(ebb_runtime *rt, bool on);
bool ebb__rt_is_stepped(const ebb_runtime *rt);
/* Short pumps, for a host that must not be blocked. An overdue task gets its last polls when it is woken, not at
 * once; a pump advances only a few regions. */
void ebb__rt_set_short_pumps(ebb_runtime *rt, bool on);
/* While it is on, the code that runs is *confined*: it may neither wait nor start or owe work, whatever `cx` of this
 * runtime it has found. Awaits (also of what is ready), waits, spawns, regions, finalizers, obligations, masks and
 * operations return EBB_ERR_DURABLE_CONTEXT, or an id or future with it. What is refused so reaches neither the trace
 * nor the journal, and fails no region. The verbs, wake-ups, timers and the ends of promises are not refused.
 * ebb__fiber_spawn_confined switches it on and off around the code of a fiber. */
void ebb__rt_confine(ebb_runtime *rt, bool on);
/* Makes room for one obligation or finalizer. EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__rt_reserve_obligation(ebb_runtime *rt);
/* Call before an operation that adds a duration to the current time: reads the clock if the runtime has one. */
void ebb__clock_refresh(ebb_runtime *rt);

/* A part of each cleanup budget is kept for finalizers; the rest is for tasks. The kernel and its layers divide
 * budgets with these functions. */
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

/* Copies a message; one that is too long is cut and marked. NULL is "". */
void ebb__message_copy(char out[EBB_MESSAGE_MAX + 1], const char *message);

/* Names what runs now, for a watchdog in another thread. ebb__watch_leave takes what ebb__watch_enter returned. */
typedef struct ebb__watched {
    bool inside;
    uint64_t id;
    const char *site;
} ebb__watched;
ebb__watched ebb__watch_enter(ebb_runtime *rt, uint64_t id, const char *site);
void ebb__watch_leave(ebb_runtime *rt, ebb__watched outer);
void ebb__watch_name(ebb_runtime *rt, uint64_t id, const char *site);

/* An event of a layer, for the trace and the journal: docs/trace.md has what the fields mean for each type. `what` and
 * `site` are strings that live as long as the runtime (a name, a place in the program), for types that have them
 * (EBB__STRINGS_BOTH). `text` is copied. */
typedef struct ebb__note {
    uint8_t type;
    uint32_t value;
    uint64_t task, region, other;
    const char *what, *site, *text;
} ebb__note;
enum { EBB__NOTE_BYTES = 512, EBB__NOTE_TEXT = 120 }; /* of the texts in a journal; of one `text` */
#define EBB__NOTE_END "\x1f"

void ebb__note_slow(ebb_runtime *rt, const ebb__note *n);
static inline bool ebb__is_recorded(const ebb_runtime *rt) {
    return EBB__UNLIKELY(ebb__face_of(rt)->recorded);
}
/* Records an event. A macro, so that the event is put together only if something records. */
#define ebb__note_event(rt, ...)                                                                             \
    (ebb__is_recorded(rt) ? ebb__note_slow((rt), &(ebb__note){__VA_ARGS__}) : (void)0)

/* ---- captures ------------------------------------------------------------------------------------------ */

/* Starts a trace in the middle of a run, with what is there now as `present`. EBB_ERR_BUSY: a trace is being recorded;
 * EBB_ERR_NOMEM, EBB_ERR_INVALID as ebb_trace_start. */
ebb_status ebb__capture_start(ebb_runtime *rt, size_t bytes);
/* How many events it has; *full: its buffer is, and what has happened since is not in it. 0: there is none. */
uint64_t ebb__capture_events(const ebb_runtime *rt, bool *full);
/* Ends it, and passes its file to `write`: up to where its buffer was full, without a gap. `write` NULL: drops it. */
void ebb__capture_end(ebb_runtime *rt, ebb_write_fn write, void *ctx);

/* ---- trace contexts ------------------------------------------------------------------------------------ */

/* The context of a region. It belongs to the layer that sets it. */
typedef struct ebb__trace_context {
    ebb_traceparent at;
    uint32_t given; /* spans that were made of it so far */
} ebb__trace_context;

/* Sets the context of a region before anything is opened or spawned in it: regions below inherit it. `c` must stay valid
 * until the region has closed. */
void ebb__region_set_trace(ebb_runtime *rt, ebb_region region, ebb__trace_context *c);
ebb__trace_context *ebb__region_trace(const ebb__region *r); /* NULL: none */
ebb__trace_context *ebb__trace_of(const ebb_cx *cx);         /* of the region of cx; NULL: none */
/* The context for what this one asks for: the same trace, a new span. */
ebb_traceparent ebb__trace_next(const ebb_runtime *rt, ebb__trace_context *c);
/* The same span for the same number, on every machine. */
ebb_traceparent ebb__trace_child(const ebb_traceparent *of, uint64_t number);

/* What takes or gives a context, in the value of its event. */
typedef enum ebb__trace_party {
    EBB__TRACE_REQUEST = 1,  /* an exchange of a server; of a client, when it gives */
    EBB__TRACE_INSTANCE = 2, /* an instance */
    EBB__TRACE_ACTIVITY = 3  /* an activity */
} ebb__trace_party;
/* Records that work has taken a context, or given one to a party. `task` may be 0. */
void ebb__note_trace_slow(ebb_runtime *rt, bool given, ebb__trace_party party, uint64_t task,
                          ebb_region region, uint64_t other, const ebb_traceparent *t);
#define ebb__note_trace(rt, ...) (ebb__is_recorded(rt) ? ebb__note_trace_slow((rt), __VA_ARGS__) : (void)0)

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* The context of a task that has not ended; NULL and *st: EBB_ERR_STALE, EBB_ERR_FOREIGN, or the error that the id
 * carries. `st` may be NULL. */
ebb_cx *ebb__task_cx(const ebb_runtime *rt, ebb_task id, ebb_status *st);
/* The budget has run out: every await of the task returns EBB_CANCELLED, masked or not. */
bool ebb__is_overdue(const ebb_cx *cx);
bool ebb__is_masked(const ebb_cx *cx);
/* The task's body has returned. */
bool ebb__has_returned(const ebb_cx *cx);
/* The severity of the task's cancel request; 0: there was none. */
uint8_t ebb__task_severity(const ebb_cx *cx);

/* A live task, for reports. */
typedef struct ebb__task_view {
    uint64_t id;
    ebb_region region;
    const char *site;
    ebb_task_phase phase;
    uint64_t age_ms; /* UINT64_MAX: not known */
    bool masked, in_finalizer;
    const char *doing;    /* "about to be polled", "joins", the name of its wait, ... */
    bool waits;           /* `doing` is the name of a wait */
    const ebb_wait *wait; /* that wait, for the layer whose it is; else NULL */
} ebb__task_view;
/* Calls `each` for the live tasks of a region, or of the runtime (r NULL), without the kernel's own tasks. */
void ebb__tasks_each(const ebb_runtime *rt, ebb__region *r, void (*each)(void *ctx, const ebb__task_view *t),
                     void *ctx);
/* The same for the first `most` tasks of a region, the kernel's own counted. Returns how many it has visited. */
uint32_t ebb__tasks_some(const ebb_runtime *rt, ebb__region *r, uint32_t most,
                         void (*each)(void *ctx, const ebb__task_view *t), void *ctx);

/* The same for one task. False: it has ended, or is the kernel's own. */
bool ebb__task_look(const ebb_runtime *rt, ebb_task id, void (*each)(void *ctx, const ebb__task_view *t),
                    void *ctx);

/* The polls of a task. */
typedef struct ebb__poll_time {
    uint64_t task;
    const char *site;
    uint64_t polls, total_ns, max_ns;
} ebb__poll_time;
/* Measures polls from now on, for `for_ns`; a later call extends it. Not inside a finalizer. EBB_ERR_NOMEM;
 * EBB_ERR_INVALID: the runtime has no clock. */
ebb_status ebb__poll_times_on(ebb_runtime *rt, uint64_t for_ns);
/* All polls since *since, and the longest of them. False: they are not measured. */
bool ebb__poll_times_of(const ebb_runtime *rt, uint64_t *since, ebb__poll_time *all, ebb__poll_time *longest);
/* How many of them took how long, by ebb__time_class. NULL: they are not measured. */
enum { EBB__POLL_TIMES = 32 };
const uint64_t *ebb__poll_times_by_length(const ebb_runtime *rt);
/* The least i for which a time is less than 2^i ns, at most 31. */
static inline uint32_t ebb__time_class(uint64_t ns) {
    return ns >> 30 != 0 ? EBB__POLL_TIMES - 1 : ns == 0 ? 0 : 32 - (uint32_t)__builtin_clz((uint32_t)ns);
}
/* False: not measured, or tasks with longer polls have its place in the table. */
bool ebb__poll_time_of(const ebb_runtime *rt, uint64_t task, ebb__poll_time *out);
/* The tasks whose polls took longest in all, at most `most` > 0, the longest first. Returns their number. */
uint32_t ebb__poll_times_most(const ebb_runtime *rt, ebb__poll_time *out, uint32_t most);

/* Requests a call of the `ended` hooks when the task has ended, or the region has closed. EBB_ERR_STALE: it has.
 * EBB_ERR_FOREIGN, or the error that the id carries. */
ebb_status ebb__task_observe(ebb_cx *cx, ebb_task task);
ebb_status ebb__region_observe(ebb_cx *cx, ebb_region region);

/* Ends a task without running it again: a task that was never polled, or one that is parked, and that owes nothing.
 * Runs no code of the task; its waits leave their queues through their `cancel` hooks, and the `task_ended` hooks are
 * called before this returns. The outcome is EBB_DISCARDED: for a join, for an observer, in its info. Its region does
 * not count it as failed, cancelled or abandoned, and closes as if the task had returned EBB_OK. Allocates nothing.
 * On an error nothing has changed, and the refusal is traced:
 *   EBB_ERR_OWES     it has obligations, finalizers (a task of ebb_go has one) or regions of its own, or has returned
 *   EBB_ERR_BUSY     it is being polled, or masked
 *   EBB_CANCELLED    it has a cancel request, and ends by that protocol
 *   EBB_ERR_INVALID  it is a task of the kernel's own
 *   EBB_ERR_STALE    it has ended, which counts as a stale wake-up; EBB_ERR_FOREIGN, or the error that the id carries
 * If a `cancel` hook of its waits cancels the task, it ends as one whose body has returned, in its next poll. */
ebb_status ebb__task_discard(ebb_cx *cx, ebb_task task);

/* Refuses a spawn because a layer lacks a resource of the task (EBB_ERR_NOMEM or EBB_ERR_LIMIT). The refusal is
 * traced and counts against the region as if the kernel had refused. */
ebb_task ebb__spawn_refused(ebb_cx *cx, ebb_region region, ebb_status why, const char *site);
/* A task whose outcome goes to a future, not to its region. A fault still goes to the region. */
ebb_task ebb__spawn_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                          const ebb_task_opts *opts, const char *site);

/* Wakes the waiting task, as an input that the journal records. Waits begin and end with ebb_wait_begin and
 * ebb_wait_end. */
void ebb__waiter_wake(const ebb_wait *w);

/* ---- callback runners ---------------------------------------------------------------------------------- */

/* Spawns the task that runs the callbacks of a region. It is admitted as long as tasks live there, is polled at
 * least once, and has no limit on its polls. It is woken when nothing else lives in a closing region, and must
 * then end. `callbacks` stay with the region until it closes. Errors as for a spawn. */
ebb_task ebb__runner_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                         ebb__callbacks *callbacks, const char *site);

bool ebb__is_runner_slow(const ebb_cx *cx);
static inline bool ebb__is_runner(const ebb_cx *cx) {
    return EBB__UNLIKELY(ebb__task_face_of(cx)->flags & EBB__TASK_INTERNAL) && ebb__is_runner_slow(cx);
}

/* What a callback runner needs in its poll. */
typedef struct ebb__runner_view {
    uint8_t request; /* ebb_cancel_kind of its request; 0: none */
    bool overdue, masked;
    bool closing;   /* a close has reached its region */
    bool last;      /* nothing else lives in a closing region */
    bool last_poll; /* the runner is overdue, and this is its last poll */
} ebb__runner_view;
ebb__runner_view ebb__runner_look(const ebb_cx *cx);

/* ---- regions ------------------------------------------------------------------------------------------- */

ebb_status ebb__region_get(const ebb_runtime *rt, ebb_region id, ebb__region **out);
ebb__region *ebb__region_of(const ebb_cx *cx);
ebb_region_state ebb__region_state(const ebb__region *r);
ebb_region ebb__region_name(const ebb_runtime *rt, const ebb__region *r);
/* NULL for the root. */
ebb__region *ebb__region_parent(const ebb_runtime *rt, const ebb__region *r);
/* The next region after `r` in the tree below `top`, parents before children; with `into`, children of `r` too.
 * NULL: there is none. Counted in the runtime's visits. */
ebb__region *ebb__region_next(ebb_runtime *rt, const ebb__region *r, const ebb__region *top, bool into);
/* The argument of its on_closed hook if the hook is `on_closed`; otherwise NULL. */
void *ebb__region_hook_arg(const ebb__region *r,
                           void (*on_closed)(void *arg, const ebb_region_report *report));
ebb__callbacks *ebb__region_callbacks(const ebb__region *r);
/* Its live tasks, without the kernel's own. */
uint32_t ebb__region_tasks(const ebb_runtime *rt, ebb__region *r);

typedef enum ebb__region_trait {
    EBB__REGION_ROOT,
    EBB__REGION_UNIT,    /* a unit of work */
    EBB__REGION_CLEANUP, /* a cleanup scope */
    EBB__REGION_FORCED,
    EBB__REGION_CLOSING, /* a close has reached it */
    EBB__REGION_ENDS,    /* closes by itself when it is empty */
    EBB__REGION_APART,   /* operators that are not released: no region waits for it */
    EBB__REGION_ALONE    /* nothing lives in it but its drain supervisor and operators */
} ebb__region_trait;
bool ebb__region_is(const ebb_runtime *rt, const ebb__region *r, ebb__region_trait trait);
/* Of its cancel request; 0: there was none. */
uint8_t ebb__region_request(const ebb__region *r); /* ebb_cancel_kind */
uint8_t ebb__region_severity(const ebb__region *r);
/* Its own deadline; after a cancel request, the end of the cleanup budget. */
uint64_t ebb__region_deadline(const ebb__region *r);
/* When its tasks are forced; EBB_FOREVER: there was no request. */
uint64_t ebb__region_force_at(const ebb__region *r);
const char *ebb__region_message(const ebb__region *r);
const char *ebb__region_site(const ebb__region *r);

/* What a program is shown of a region. */
typedef struct ebb__region_view {
    ebb_region_state state;
    uint8_t request, severity, epoch; /* of its cancel request; 0: there was none */
    int32_t status;                   /* ebb_status so far */
    uint32_t depth;                   /* 0: the root */
    uint32_t tasks, children;         /* live */
    uint32_t obligations;             /* reserved there, including those of its tasks */
    uint32_t abandoned, leaked;       /* as in its report */
    uint64_t failed;                  /* the task that failed first */
    uint64_t deadline;                /* as ebb__region_deadline */
    const char *message;
} ebb__region_view;
ebb__region_view ebb__region_look(const ebb__region *r);
/* It was asked to cancel. Of a region that is no more: true. */
bool ebb__region_is_cancelled(ebb_runtime *rt, ebb_region region);
/* The reason of the cancel request; kind EBB_CANCEL_NONE: there was none. */
ebb_reason ebb__region_reason(const ebb_runtime *rt, const ebb__region *r);
/* The region whose cancel request reached `r` through its parents. */
const ebb__region *ebb__region_cause(const ebb_runtime *rt, const ebb__region *r);

/* An obligation or finalizer of a task (cx) or a region (r), the next finalizer first. */
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

/* As ebb_region_open_site, but no task owns the region; `cx` is only the caller. */
ebb_region ebb__region_open_apart(ebb_cx *cx, const ebb_region_opts *opts, const char *site);
/* True if `cx` may join the region. */
bool ebb__region_is_owned(const ebb_cx *cx, const ebb__region *r);
/* The region closes by itself once it is empty, as if it were joined. */
void ebb__region_joining(ebb_cx *cx, ebb_region region);
/* As ebb_region_defer, for state of a layer: admitted for any caller as long as tasks live in the region. */
ebb_status ebb__region_defer_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg,
                                   const char *site);

/* ---- admission and operations -------------------------------------------------------------------------- */

/* Admits an operation for `cx`: an operation of its own, or one that brings in work from outside (inbound).
 * EBB_ERR_CLOSED; EBB_CANCELLED for a task with a request, which thereby acknowledges it unless it is masked. A
 * refusal is traced and journaled. */
ebb_status ebb__admit_operation(ebb_cx *cx);
ebb_status ebb__admit_inbound(ebb_cx *cx);

/* Reports an operation that was begun for this region and outlives it. The operation counts as abandoned; the
 * trace and the region's report have the site where it began. `name` (may be NULL) tells it from others of its
 * kind: a path, a program. `number` (0: none) is that of its future in the trace. Never fails; without memory the report has only the count. */
void ebb__operation_abandoned(ebb_cx *cx, ebb_region region, const char *what, const char *name,
                              const char *site, uint64_t number);

/* ---- drain supervisors: kernel/supervisor.h says what they are ------------------------------------------ */

typedef struct ebb__supervisor {
    ebb_task task; /* carries the error if there is no supervisor */
    ebb_region region;
} ebb__supervisor;

/* `on_closed` is for the root only, which has no other observer of its close; its argument is `state`. On
 * EBB_ERR_CLOSED, EBB_ERR_BUSY (there is a supervisor), EBB_ERR_NOMEM and EBB_ERR_LIMIT nothing has changed. */
ebb__supervisor ebb__supervisor_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                                    void (*on_closed)(void *arg, const ebb_region_report *report),
                                    const char *site);
/* Sets the supervisor's alarm, which replaces the previous one; EBB_FOREVER: none. Allocates nothing. */
void ebb__supervisor_alarm(ebb_cx *cx, ebb_task supervisor, uint64_t at);
/* Opens the operators' region of a supervisor's region, which must have none. No task owns it. Errors as for
 * ebb_region_open. */
ebb_region ebb__operators_open(ebb_cx *cx, ebb_region drain, const char *site);
/* From now on the supervisor's region waits for its operators' region, and force reaches it. Tasks that live in it
 * at the deadline are cancelled. The caller closes the operators' region. */
void ebb__operators_release(ebb_cx *cx, ebb_region operators, uint64_t deadline);

#endif
