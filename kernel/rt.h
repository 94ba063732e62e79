/* The runtime's records. Private to kernel/ and sched/.
 *
 * Everything that a wake, a poll or a cancel touches of a task is its hot record, one cache line; the
 * cold record is read when something unusual is attached (F_COLD), and by dumps. Links between
 * records are slab indices, 0 for none. */
#ifndef EBB__RT_H
#define EBB__RT_H

#include <stdatomic.h>
#include <string.h>

#include "base/lanes.h"
#include "base/slab.h"
#include "base/u32s.h"
#include "base/wheel.h"
#include <ebb/kernel.h>

#define EBB__LIKELY(x)   __builtin_expect(!!(x), 1)
#define EBB__UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For what is one step of every poll: a call would cost as much as the step. */
#define EBB__INLINE __attribute__((always_inline)) static inline

/* Test builds plant bugs, one at a time, to show that the oracles find them. */
#ifdef EBB_MUTANTS
enum { /* numbered as ebb_oracle of ebb/trace.h */
#define EBB_ORACLE(name, text) EBB__PLANT_##name,
#include <ebb/oracle.def>
#undef EBB_ORACLE
};
#define EBB__MUTANT(rt, oracle) ((rt)->mutant == EBB__PLANT_##oracle)
#else
#define EBB__MUTANT(rt, oracle) false
#endif

enum {
    EBB__FORCE_POLLS = 8, /* what a task still gets once its budget is over */
    EBB__TASK_SHIFT = 10,
    EBB__REGION_SHIFT = 9,
    EBB__DUTY_SHIFT = 7,
    EBB__TIMER_SHIFT = 10,
    EBB__REASON_SHIFT = 5,
    EBB__REASONS_SPARE = 32,   /* messages of single-task cancels that are kept room for */
    EBB__BUCKETS = 64,         /* of the cancel lane */
    EBB__READY = EBB__BUCKETS, /* the ready lane's queue */
    EBB__QUEUES = EBB__BUCKETS + 1,
    EBB__BUCKET_SHIFT = 27, /* a bucket is 2^27 ns wide, 134 ms */
    EBB__BORN_SHIFT = 24    /* ages are told in 17 ms, up to two years */
};

/* Sources of the timer wheel. */
enum { EBB__W_TIMER = 0, EBB__W_TASK = 1, EBB__W_REGION = 2 };

/* Task flags. */
enum {
    F_POLLING = 1u << 0,
    F_REWAKE = 1u << 1,   /* woken during its own poll */
    F_RETURNED = 1u << 2, /* its body is over; what is left are regions, finalizers, obligations */
    F_FORCED = 1u << 3,
    F_FIN_FORCED = 1u << 4, /* the finalizers' part of the budget is over too */
    F_ABANDONED = 1u << 5,
    F_CLOSER = 1u << 6,      /* its region's closer, servant or steward */
    F_TIMED = 1u << 7,       /* has a deadline: runs in the timed lane */
    F_JOINING = 1u << 8,     /* waits for a region or task to end */
    F_KEEP = 1u << 9,        /* the outcome is kept */
    F_OWN_CANCEL = 1u << 10, /* cancelled by itself, not only with its region: cold.node, reason, kept */
    F_NODE = 1u << 11,       /* cold.node may be armed */
    F_WAIT = 1u << 12,       /* cold.wait may be not empty */
    F_DUTY = 1u << 13,       /* cold.duties is not empty */
    F_SCOPE = 1u << 14,      /* cold.scopes is not empty */
    F_IN_FINALIZER = 1u << 15,
    /* Ends by the long way. */
    F_COLD = F_ABANDONED | F_CLOSER | F_KEEP | F_OWN_CANCEL | F_NODE | F_WAIT | F_DUTY | F_SCOPE
};

typedef struct ebb__task {
    ebb_cx cx; /* the free list's link while the slot is free */
    uint32_t generation;
    ebb_poll_fn poll;
    void *state;
    ebb_rt *rt;
    uint32_t index, region;
    uint32_t pos; /* in the region's tasks; of a kept task that has ended, its predecessor */
    union {
        uint32_t qpos;  /* in its lane; of a kept task that has ended, its successor */
        uint32_t joins; /* parked in a join: the index of the task that it waits for; 0: for a region */
    };
    uint8_t phase; /* ebb_phase; 0: the slot is free */
    uint8_t queue; /* low 2 bits ebb_lane, above them the bucket */
    uint8_t mask;
    uint8_t told; /* kind << 4 | severity << 2 | epoch */
    uint16_t flags;
    uint8_t force_left;
    uint8_t priority;
    uint32_t polls_left; /* of a task that has ended, its status */
    uint32_t waiter;     /* the task that joins this one: index and 8 bits of generation */
} ebb__task;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__task) == 64, "one cache line");

typedef struct ebb__cold {
    const char *site;
    ebb_wait *wait;
    ebb__node node;  /* its own deadline; once cancelled, when it is forced */
    uint32_t scopes; /* regions that it opened */
    uint32_t duties; /* obligations and finalizers, last first */
    uint32_t reason; /* slot of its own reason; 0: none, or no room for the message */
    union {
        uint32_t kept; /* if cancelled by itself: the part of that budget kept for finalizers, in 1024 ns */
        uint32_t born; /* else: when it was spawned, in 2^EBB__BORN_SHIFT ns, modulo 2^32 */
    };
} ebb__cold;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cold) == 48, "three quarters of a cache line");

/* Region flags. */
enum {
    R_CLEANUP = 1u << 0,
    R_JOINING = 1u << 1, /* closes by itself when nothing lives in it */
    R_FORCED = 1u << 2,
    R_SWEEP = 1u << 3, /* queued for the pump to move on */
    R_ROOT = 1u << 4,
    R_NODE = 1u << 5,     /* its timer may be armed */
    R_HOOK = 1u << 6,     /* has on_closed */
    R_STEWARD = 1u << 7,  /* has a steward: kernel/steward.h */
    R_UNIT = 1u << 8,     /* a unit of work */
    R_STOPPING = 1u << 9, /* Open inside a unit, and closed around that: `gate` says who may still ask */
    R_ENDS = 1u << 10,    /* of a stopping one: nobody will ask for more, so it closes when it is empty */
    R_BOUNDED = 1u << 11, /* a cleanup scope, or inside one: its budget is its owner's and is never widened */
    R_OPERATOR = 1u << 12, /* the operators' region of an annex */
    R_APART = 1u << 13,    /* an annex whose operators' region is not counted as living in it */
    R_LEFT = 1u << 14,     /* its task is over, and has told it so */
    R_MORE = 1u << 15      /* has, or has had, an owner, duties, a closer, a servant, kept tasks or leaks */
};

/* Two cache lines. The first is all that the end of a task and the close of a plain region touch; a cancel
 * touches both. */
typedef struct ebb__region {
    uint32_t link; /* free list; within a cascade, the next region; of a closed one, the next closed */
    uint32_t generation;
    uint32_t index, parent;
    uint32_t pos;    /* in the parent's children; of a closed one, the previous closed */
    uint32_t closed; /* children that have closed and are not joined */
    int32_t status;
    uint8_t state; /* ebb_region_state; 0: the slot is free */
    uint8_t told;  /* as in a task */
    uint16_t flags;
    ebb__u32s tasks;
    ebb__u32s children;

    uint64_t deadline; /* its own; once cancelled, the end of the cleanup budget */
    uint64_t force_at; /* the end of the part of that which tasks may use */
    uint64_t origin, sequence;
    uint32_t polls; /* what each task in it may use; once cancelled, of the cleanup budget */
    uint8_t policy;
    uint8_t priority;
    uint32_t owner;           /* the task that opened it; 0: the host */
    uint32_t duties;          /* its own finalizers and obligations, last first */
    uint32_t closer;          /* the task that runs its finalizers, reserved with the first */
    uint32_t servant;         /* the task that serves its futures: it ends when nothing else is left here */
    struct ebb__scope *scope; /* its futures, until it closes */
} ebb__region;
_Static_assert(sizeof(void *) != 8 || (sizeof(ebb__region) == 128 && offsetof(ebb__region, deadline) == 64),
               "two cache lines");

/* What few regions have, and what only dumps and reports read. */
typedef struct ebb__region_cold {
    const char *site;
    uint64_t failed;
    uint32_t depth;
    uint32_t abandoned, leaked;
    uint32_t obligations; /* reserved here, those of its tasks included */
    uint32_t kept;        /* kept and abandoned tasks that have ended */
    uint32_t leaks;       /* leaked obligations, for the report */
    uint32_t owner_next, owner_prev;
    char message[EBB_MESSAGE_MAX + 1];
    uint32_t sweep_next; /* there only if R_SWEEP */
    uint32_t gate; /* there only if R_STOPPING: the outermost unit that the close from above has left open */
    uint32_t steward; /* there only if R_STEWARD: the task that watches over its end */
    ebb__node node;   /* armed only if R_NODE */
    void (*on_closed)(void *arg, const ebb_report *report); /* there only if R_HOOK */
    void *arg;
} ebb__region_cold;

/* An obligation or a finalizer: what a task or region still has to do. */
typedef struct ebb__duty {
    uint32_t link;
    uint32_t generation;
    uint32_t index, next, prev;
    uint32_t task, region; /* task 0: the region's own */
    uint8_t kind;          /* ebb_obligation_kind; 0: a finalizer */
    uint8_t state;         /* DUTY_* */
    union {
        void (*on_abort)(void *arg);
        ebb_poll_fn finalize;
    } fn;
    void *arg;
    const char *site;
    uint64_t since;
} ebb__duty;
enum { DUTY_FREE = 0, DUTY_OPEN = 1, DUTY_LEAKED = 2 };

typedef struct ebb__timer {
    uint32_t link;
    uint32_t generation;
    ebb__links links;
} ebb__timer;

typedef struct ebb__timer_cold {
    uint64_t due;
    ebb_task task; /* who is woken */
} ebb__timer_cold;

typedef struct ebb__own_reason {
    uint32_t link, generation;
    ebb_reason reason;
} ebb__own_reason;

/* The timed lane: a binary heap by deadline, then priority, then order of arrival. */
typedef struct ebb__timed {
    struct ebb__timed_entry {
        uint64_t deadline;
        uint32_t rank; /* (255 - priority) << 24 | arrival, which wraps */
        uint32_t task;
    } * heap;
    uint32_t n, room, arrivals;
    uint32_t members; /* live tasks with a deadline: never more than `room` */
} ebb__timed;

typedef struct ebb__recorder ebb__recorder;

/* Who did not end as it should, told to rt->blame when it happens. */
typedef enum ebb__guilt {
    EBB__G_TASK = 1,
    EBB__G_FINALIZER,
    EBB__G_LEAK,
    EBB__G_ABORTED,
    EBB__G_OPERATION
} ebb__guilt;
typedef struct ebb__guilty {
    ebb__guilt what; /* ABORTED: an obligation of a task that was abandoned */
    uint8_t kind;    /* of an obligation */
    uint32_t region; /* where, an index */
    uint64_t id, owner;
    const char *site;
    const char *operation, *name; /* of an operation: what it is, and which */
} ebb__guilty;

struct ebb_rt {
    ebb__task host; /* not in the slab; its index is 0 */
    ebb_allocator allocator;
    uint64_t now;
    uint64_t (*clock)(void *ctx);          /* NULL: the host alone moves the time */
    uint64_t (*recorded_clock)(void *ctx); /* a replay's: the readings that stand in its journal */
    void *clock_ctx;
    uint8_t id;
    bool pumping;
    uint32_t root;
    ebb__task *current; /* being polled */
    bool observed;      /* trace, journal or watchdog is on */
    ebb__recorder *trace, *journal;
    uint64_t turn, batch;

    uint32_t credit; /* tasks that can be spawned without asking for memory */
    ebb__slab tasks, regions, duties, timers, reasons;
    ebb__lanes lanes;
    /* The ready lane's head, if the lane was empty when it came. It is not in the queue then. NULL: none. */
    ebb__task *ready_first;
    ebb__queue queue[EBB__QUEUES];
    uint64_t cancel_buckets; /* a bit a bucket that has members */
    uint64_t cancel_base;    /* the earliest bucket number that may have members */
    ebb__timed timed;
    uint32_t cancel_count;
    uint8_t cycle;      /* 0..9: whose turn it is */
    uint32_t contended; /* more than one lane had work: `wait` counts */
    uint32_t wait[4];   /* polls of other lanes since this lane's head came first */
    uint32_t worst_wait[4];
    uint32_t sweep_head, sweep_tail;
    uint32_t telling; /* the region whose child's on_closed runs: it can't close yet */
    ebb__wheel wheel;

    ebb_cleanup_budget cleanup[4];
    uint32_t chain_depth, chain_bytes; /* of a cause chain that is read */
    bool reasons_low;
    uint64_t sequence; /* of requests */
    uint32_t waits;    /* begun so far: their numbers in the journal */
    uint64_t visits;   /* regions that verbs, joins and counts have looked at: for tests of what they cost */
    ebb_stats stats;

    /* Suspends whoever awaits until its task is polled again; false if it can't wait in place, as only a
     * fiber can. NULL: nobody can. */
    bool (*park)(ebb_cx *cx);
    /* An await has said EBB_CANCELLED: whoever goes on awaiting all the same has to let others run now and
     * then. NULL: nobody can. */
    void (*refused)(ebb_cx *cx);

    /* The fibers of this runtime, made when the first is, and what frees them. `task_over` hears of each
     * task that ended by the long way, when nothing of it runs any more. */
    struct ebb__fibers *fibers;
    void (*fibers_free)(ebb_rt *rt);
    void (*task_over)(ebb__task *t, ebb_status status);

    /* The futures of this runtime, made when the first is, and what frees them. */
    struct ebb__heap *heap;
    void (*heap_free)(struct ebb__heap *heap);
    void (*scope_over)(ebb_rt *rt, struct ebb__scope *scope);   /* the servant has ended */
    void (*scope_closed)(ebb_rt *rt, struct ebb__scope *scope); /* the region closes; runs users' code */

    /* The workflows of this runtime, made when the first is, and what frees them. */
    struct ebb__workflows *workflows;
    void (*workflows_free)(struct ebb__workflows *w);
    void (*blame)(ebb_rt *rt, const ebb__guilty *g);
    /* Its host is a browser: a task whose budget is over has its last polls when it is woken, not at once, and a
     * pump takes little time. */
    bool patient;
    uint32_t standby; /* tasks that wait for a stop and are nobody's work until then */
    /* Hears of what a region that stops has refused, or a unit in it has begun inside itself. NULL: nobody. */
    void (*on_asked)(ebb_rt *rt, const ebb__region *r, bool refused);

    /* The lab's: which of n runnable tasks of a lane comes next. */
    uint32_t (*choose)(void *ctx, uint32_t n);
    void *choose_ctx;

    /* What a watchdog in another thread reads: written around every poll if `watched`. */
    bool watched;
    _Atomic uint64_t poll_number; /* odd while a poll runs */
    _Atomic(const char *) poll_site;
    _Atomic uint64_t poll_task;
#ifdef EBB_MUTANTS
    int mutant;
#endif
};

/* ---- records and ids -------------------------------------------------------------------------- */

static inline ebb__task *ebb__task_at(const ebb_rt *rt, uint32_t i) {
    return (ebb__task *)(void *)(rt->tasks.base[i >> EBB__TASK_SHIFT] +
                                 (size_t)(i & ((1u << EBB__TASK_SHIFT) - 1)) * sizeof(ebb__task));
}

static inline ebb__cold *ebb__cold_at(const ebb_rt *rt, uint32_t i) {
    return (ebb__cold *)(void *)(rt->tasks.base[i >> EBB__TASK_SHIFT] +
                                 (sizeof(ebb__task) << EBB__TASK_SHIFT) +
                                 (size_t)(i & ((1u << EBB__TASK_SHIFT) - 1)) * sizeof(ebb__cold));
}

static inline ebb__region *ebb__region_at(const ebb_rt *rt, uint32_t i) {
    return (ebb__region *)(void *)(rt->regions.base[i >> EBB__REGION_SHIFT] +
                                   (size_t)(i & ((1u << EBB__REGION_SHIFT) - 1)) * sizeof(ebb__region));
}

static inline ebb__timer_cold *ebb__timer_cold_at(const ebb_rt *rt, uint32_t i) {
    return (ebb__timer_cold *)(void *)(rt->timers.base[i >> EBB__TIMER_SHIFT] +
                                       (sizeof(ebb__timer) << EBB__TIMER_SHIFT) +
                                       (size_t)(i & ((1u << EBB__TIMER_SHIFT) - 1)) *
                                           sizeof(ebb__timer_cold));
}

/* In the same chunk, behind the hot ones. */
static inline ebb__region_cold *ebb__cold_of(const ebb__region *r) {
    uint32_t i = r->index & ((1u << EBB__REGION_SHIFT) - 1);
    const ebb__region *end = r + ((1u << EBB__REGION_SHIFT) - i);
    return (ebb__region_cold *)(uintptr_t)end + i;
}

static inline ebb__duty *ebb__duty_at(const ebb_rt *rt, uint32_t i) {
    return ebb__slab_at(&rt->duties, i);
}

static inline uint64_t ebb__id(const ebb_rt *rt, uint32_t index, uint32_t generation) {
    return (uint64_t)rt->id << 56 | (uint64_t)index << 32 | generation;
}

static inline uint64_t ebb__task_id(const ebb__task *t) {
    return t->index == 0 ? 0 : ebb__id(t->rt, t->index, t->generation);
}

static inline uint64_t ebb__region_id(const ebb_rt *rt, const ebb__region *r) {
    return ebb__id(rt, r->index, r->generation);
}

static inline uint64_t ebb__duty_id(const ebb_rt *rt, const ebb__duty *d) {
    return ebb__id(rt, d->index, d->generation);
}

/* An id that carries an error: generation 0, the negated status as index. */
static inline uint64_t ebb__id_error(const ebb_rt *rt, ebb_status st) {
    return (uint64_t)rt->id << 56 | (uint64_t)(uint32_t)-st << 32;
}

/* Looks an id up in a slab: EBB_OK and its index, or what is wrong with it. */
ebb_status ebb__lookup_failed(const ebb_rt *rt, uint64_t id);

/* Its record, or NULL. */
static inline void *ebb__record_of(const ebb_rt *rt, const ebb__slab *s, uint64_t id, uint32_t shift,
                                   size_t hot) {
    uint32_t generation = (uint32_t)id, i = (uint32_t)(id >> 32) & 0xffffff;
    if (EBB__UNLIKELY(generation == 0 || id >> 56 != rt->id || i - 1 >= s->used - 1)) return NULL;
    ebb__slot *slot = ebb__slab_at_as(s, i, shift, hot);
    return EBB__LIKELY(slot->generation == generation) ? slot : NULL;
}

static inline ebb_status ebb__lookup_as(const ebb_rt *rt, const ebb__slab *s, uint64_t id, uint32_t *index,
                                        uint32_t shift, size_t hot) {
    *index = (uint32_t)(id >> 32) & 0xffffff;
    return EBB__LIKELY(ebb__record_of(rt, s, id, shift, hot) != NULL) ? EBB_OK : ebb__lookup_failed(rt, id);
}

static inline ebb_status ebb__lookup(const ebb_rt *rt, const ebb__slab *s, uint64_t id, uint32_t *index) {
    return ebb__lookup_as(rt, s, id, index, s->shift, s->hot);
}

static inline ebb_status ebb__find_task(const ebb_rt *rt, ebb_task id, ebb__task **out) {
    uint32_t i;
    ebb_status st = ebb__lookup_as(rt, &rt->tasks, id.id, &i, EBB__TASK_SHIFT, sizeof(ebb__task));
    if (st != EBB_OK) return st;
    *out = ebb__task_at(rt, i);
    return (*out)->phase == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb_status ebb__find_region(const ebb_rt *rt, ebb_region id, ebb__region **out) {
    uint32_t i;
    ebb_status st = ebb__lookup_as(rt, &rt->regions, id.id, &i, EBB__REGION_SHIFT, sizeof(ebb__region));
    if (st != EBB_OK) return st;
    *out = ebb__region_at(rt, i);
    return (*out)->state == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb__task *ebb__task_of(const ebb_cx *cx) {
    return (ebb__task *)(uintptr_t)cx;
}

/* Its body and its finalizers are over: what still runs in its name are hooks, which may not add to what
 * it has to do. */
static inline bool ebb__is_over(const ebb__task *t) {
    return (t->flags & (F_RETURNED | F_IN_FINALIZER)) == F_RETURNED;
}

/* Its budget is over: every await of it says EBB_CANCELLED, whatever it waits for. */
static inline bool ebb__is_overdue(const ebb__task *t) {
    return t->flags & (F_FORCED | F_FIN_FORCED) && t->cx.signal & EBB_SIGNAL_CANCEL;
}

static inline ebb_rt *ebb__rt_of(const ebb_cx *cx) {
    return ebb__task_of(cx)->rt;
}

static inline uint8_t ebb__told(uint8_t kind, uint8_t severity, uint8_t epoch) {
    return (uint8_t)(kind << 4 | severity << 2 | epoch);
}
static inline uint8_t ebb__told_kind(uint8_t told) {
    return told >> 4;
}
static inline uint8_t ebb__told_severity(uint8_t told) {
    return told >> 2 & 3;
}
static inline uint8_t ebb__told_epoch(uint8_t told) {
    return told & 3;
}

#endif
