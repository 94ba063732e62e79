/* The runtime's records. Private to kernel/ and sched/: other layers come in by kernel/layer.h.
 *
 * Everything that a wake, a poll or a cancel touches of a task is its hot record, one cache line; the
 * cold record is read when something unusual is attached (F_COLD), and by dumps. Links between
 * records are slab indices, 0 for none. */
#ifndef EBB__RT_H
#define EBB__RT_H

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/run_queue.h"
#include "base/slab.h"
#include "base/u32s.h"
#include "base/wheel.h"
#include "kernel/layer.h"
#include <ebb/kernel.h>

/* An index in a field of 24 bits. */
#define EBB__24(index) ((index)&EBB__SLAB_MAX_INDEX)

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
    EBB__OBLIGATION_SHIFT = 7,
    EBB__TIMER_SHIFT = 10,
    EBB__REASON_SHIFT = 5,
    EBB__REASONS_SPARE = 32,   /* messages of single-task cancels that are kept room for */
    EBB__BUCKETS = 64,         /* of the cancel lane */
    EBB__READY = EBB__BUCKETS, /* the ready lane's queue */
    EBB__QUEUES = EBB__BUCKETS + 1,
    EBB__BUCKET_SHIFT = 27, /* a bucket is 2^27 ns wide, 134 ms */
    EBB__BORN_SHIFT = 24,   /* ages are kept in steps of 17 ms, up to two years */
    EBB__KEPT_UNIT = 1024   /* ns: the part of a budget kept for finalizers is a multiple of this */
};

/* Sources of the timer wheel. */
enum { EBB__W_TIMER = 0, EBB__W_TASK = 1, EBB__W_REGION = 2 };

/* Task flags. */
enum {
    F_POLLING = 1u << 0,
    F_REWAKE = 1u << 1,   /* woken during its own poll */
    F_RETURNED = 1u << 2, /* its body has returned; regions, finalizers and obligations may be left */
    F_FORCED = 1u << 3,
    F_FIN_FORCED = 1u << 4, /* the finalizers' part of the budget is over too */
    F_ABANDONED = 1u << 5,
    F_CLOSER = EBB__TASK_INTERNAL, /* its region's closer, callback runner or drain supervisor */
    F_TIMED = 1u << 7,             /* has a deadline: runs in the timed lane */
    F_JOINING = 1u << 8,           /* waits for a region or task to end */
    F_KEEP = 1u << 9,              /* the outcome is kept */
    F_OWN_CANCEL = 1u << 10,    /* cancelled by itself, not only with its region: cold.node, reason, kept */
    F_NODE = 1u << 11,          /* cold.node may be armed */
    F_WAIT = EBB__TASK_WATCHED, /* cold.wait may be not empty */
    F_OWES = 1u << 13,          /* cold.owed is not empty */
    F_SCOPE = 1u << 14,         /* cold.scopes is not empty */
    F_IN_FINALIZER = 1u << 15,
    /* Ends by the long way. */
    F_COLD = F_ABANDONED | F_CLOSER | F_KEEP | F_OWN_CANCEL | F_NODE | F_WAIT | F_OWES | F_SCOPE
};

struct ebb__task {
    ebb_cx cx; /* the free list's link while the slot is free */
    uint32_t generation;
    ebb_poll_fn poll;
    void *state;
    ebb_runtime *rt;
    uint32_t index, region;
    union {
        uint32_t pos;       /* in the region's tasks */
        uint32_t kept_prev; /* of a kept task that has ended: the one before it */
    };
    union {
        uint32_t qpos;      /* in its lane */
        uint32_t joins;     /* parked in a join: the index of the task that it waits for; 0: for a region */
        uint32_t kept_next; /* of a kept task that has ended: the one after it */
    };
    uint8_t phase; /* ebb_task_phase; 0: the slot is free */
    uint8_t queue; /* low 2 bits ebb_lane, above them the bucket */
    uint8_t mask;
    uint8_t request; /* kind << 4 | severity << 2 | epoch of the cancel request; 0: none */
    uint32_t flags;  /* F_* */
    union {
        uint32_t polls_left;
        int32_t status; /* F_RETURNED: what it ends with */
    };
    uint32_t waiter; /* the task that joins this one: index and 8 bits of generation */
};
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__task) == 64, "one cache line");
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__task) == EBB__TASK_BYTES, "the face of a task");
#define EBB__SAME(record, face, field) (offsetof(record, field) == offsetof(face, field))
_Static_assert(EBB__SAME(ebb__task, ebb__task_face, generation) &&
                   EBB__SAME(ebb__task, ebb__task_face, poll) &&
                   EBB__SAME(ebb__task, ebb__task_face, state) && EBB__SAME(ebb__task, ebb__task_face, rt) &&
                   EBB__SAME(ebb__task, ebb__task_face, index) &&
                   EBB__SAME(ebb__task, ebb__task_face, region) &&
                   EBB__SAME(ebb__task, ebb__task_face, flags),
               "the face of a task");

typedef struct ebb__cold {
    const char *site;
    ebb_wait *wait;
    ebb__node node;          /* its own deadline; with F_OWN_CANCEL, when it is forced */
    uint32_t scopes : 24;    /* the first of the regions that it opened */
    uint32_t priority : 8;   /* in the timed lane */
    uint32_t owed;           /* the first of its finalizers and obligations */
    uint32_t reason : 24;    /* slot of its own reason; 0: none, or no room for the message */
    uint32_t force_left : 8; /* polls that are left once its budget is over */
    union {
        uint32_t kept; /* F_OWN_CANCEL: the part of that budget kept for finalizers, in EBB__KEPT_UNIT ns */
        uint32_t born; /* else: when it was spawned, in 2^EBB__BORN_SHIFT ns, modulo 2^32 */
    };
} ebb__cold;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cold) == EBB__TASK_COLD_BYTES,
               "three quarters of a cache line");
_Static_assert(EBB__SAME(ebb__cold, ebb__task_cold_face, wait), "the face of a task");

/* Region flags. */
enum {
    R_CLEANUP = 1u << 0,
    R_JOINING = 1u << 1, /* closes by itself when nothing lives in it */
    R_FORCED = 1u << 2,
    R_SWEEP = 1u << 3, /* queued for the pump to move on */
    R_ROOT = 1u << 4,
    R_NODE = 1u << 5,       /* its timer may be armed */
    R_HOOK = 1u << 6,       /* has on_closed */
    R_SUPERVISED = 1u << 7, /* has a drain supervisor: kernel/supervisor.h */
    R_UNIT = 1u << 8,       /* a unit of work */
    R_STOPPING = 1u << 9,   /* Open inside a unit, and closed around that: `gate` says who may still ask */
    R_ENDS = 1u << 10,      /* stopping, and nobody can add to it: it closes when it is empty */
    R_BOUNDED = 1u << 11, /* a cleanup scope, or inside one: its budget is its owner's and is never widened */
    R_OPERATOR = 1u << 12, /* the operators' region of a drain region */
    R_APART = 1u << 13,    /* a drain region whose operators' region is not counted as living in it */
    R_LEFT = 1u << 14,     /* its task has returned and has cancelled it */
    R_MORE = 1u << 15 /* has, or has had, an owner, obligations, a closer, a runner, kept tasks or leaks */
};

/* Two cache lines. The first is all that the end of a task and the close of a plain region touch; a cancel
 * touches both. */
struct ebb__region {
    union {
        uint32_t link;        /* free list */
        uint32_t walk_next;   /* within a cascade: the next region */
        uint32_t closed_next; /* Closed: the next of its parent's that is */
    };
    uint32_t generation;
    uint32_t index, parent;
    union {
        uint32_t pos;         /* in the parent's children */
        uint32_t closed_prev; /* Closed: the previous of its parent's that is */
    };
    uint32_t closed; /* the first of its children that have closed and are not joined */
    uint32_t flags;  /* R_* */
    uint8_t state;   /* ebb_region_state; 0: the slot is free */
    ebb__u32s tasks;
    ebb__u32s children;

    union {
        uint64_t deadline;    /* its own, or inherited */
        uint64_t cleanup_end; /* with a request: the end of the cleanup budget */
    };
    uint64_t force_at;         /* with a request: the end of the part of the budget that tasks may use */
    uint64_t origin, sequence; /* of the request */
    uint32_t polls;            /* what each task in it may use; with a request, of the cleanup budget */
    uint8_t policy;
    uint8_t priority;
    uint8_t request; /* as in a task */
    int32_t status;
    uint32_t owner;            /* the task that opened it; 0: the host */
    uint32_t owed;             /* its own finalizers and obligations */
    uint32_t runner;           /* its callback runner: it ends when nothing else is left here */
    ebb__callbacks *callbacks; /* what that serves, until the region closes */
};
_Static_assert(sizeof(void *) != 8 || offsetof(ebb__region, deadline) == 64, "two cache lines");
_Static_assert(sizeof(void *) != 8 || (sizeof(ebb__region) == EBB__REGION_BYTES &&
                                       EBB__SAME(ebb__region, ebb__region_face, callbacks)),
               "the face of a region");

/* What few regions have, and what only dumps and reports read. */
typedef struct ebb__region_cold {
    const char *site;
    uint64_t failed;
    uint32_t depth;
    uint32_t abandoned, leaked;
    uint32_t obligations; /* reserved here, those of its tasks included */
    uint32_t closer;      /* the task that runs its finalizers, reserved with the first */
    uint32_t kept;        /* kept and abandoned tasks that have ended */
    uint32_t leaks;       /* leaked obligations, for the report */
    uint32_t owner_next, owner_prev;
    char message[EBB_MESSAGE_MAX + 1];
    uint32_t sweep_next; /* there only if R_SWEEP */
    uint32_t gate; /* there only if R_STOPPING: the outermost unit that the close from above has left open */
    uint32_t supervisor; /* there only if R_SUPERVISED: the task that watches over its end */
    ebb__node node;      /* armed only if R_NODE */
    void (*on_closed)(void *arg, const ebb_region_report *report); /* there only if R_HOOK */
    void *arg;
} ebb__region_cold;

/* An obligation, or a finalizer: the obligation to run a function at the end. */
typedef struct ebb__obligation {
    uint32_t link;
    uint32_t generation;
    uint32_t index, next, prev;
    uint32_t task, region; /* task 0: the region's own */
    uint8_t kind;          /* ebb_obligation_kind; 0: a finalizer */
    uint8_t state;         /* OBLIGATION_* */
    union {
        void (*on_abort)(void *arg);
        ebb_poll_fn finalize;
    } fn;
    void *arg;
    const char *site;
    uint64_t since;
} ebb__obligation;
enum { OBLIGATION_FREE = 0, OBLIGATION_OPEN = 1, OBLIGATION_LEAKED = 2 };

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

struct ebb_runtime {
    /* The face: kernel/layer.h. */
    ebb__layers layers;
    uint64_t now;
    uint8_t id;
    bool watched; /* poll_number and what follows it are written around every poll */
    ebb__slab tasks, regions;

    ebb__task host; /* not in the slab; its index is 0 */
    ebb_allocator allocator;
    uint64_t (*clock)(void *ctx);          /* NULL: the host alone moves the time */
    uint64_t (*recorded_clock)(void *ctx); /* a replay's: the readings that stand in its journal */
    void *clock_ctx;
    bool pumping;
    bool observed; /* trace, journal or watchdog is on */
    bool short_pumps;
    uint32_t root;
    ebb__task *current; /* being polled */
    ebb__recorder *trace, *journal;
    uint64_t turn, batch;

    uint32_t credit; /* tasks that can be spawned without asking for memory */
    ebb__slab obligations, timers, reasons;
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
    uint32_t (*choose)(void *ctx,
                       uint32_t n); /* which of n runnable tasks of a lane comes next; NULL: the head */
    void *choose_ctx;

    ebb_cleanup_budget cleanup[4];
    uint32_t chain_depth, chain_bytes; /* of a cause chain that is read */
    bool reasons_low;
    uint64_t sequence; /* of requests */
    uint32_t waits;    /* begun so far: their numbers in the journal */
    uint32_t standby;  /* tasks that are no work: ebb__rt_standby */
    uint64_t visits;   /* regions that verbs, joins and counts have looked at: for tests of what they cost */
    ebb_runtime_stats stats;

    /* What a watchdog in another thread reads. */
    _Atomic uint64_t poll_number; /* odd while a poll runs */
    _Atomic(const char *) poll_site;
    _Atomic uint64_t poll_task;
#ifdef EBB_MUTANTS
    int mutant;
#endif
};
_Static_assert(EBB__SAME(ebb_runtime, ebb__rt_face, layers) && EBB__SAME(ebb_runtime, ebb__rt_face, now) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, id) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, watched) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, tasks) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, regions),
               "the face of a runtime");

/* ---- records and ids -------------------------------------------------------------------------- */

static inline ebb__task *ebb__task_at(const ebb_runtime *rt, uint32_t i) {
    return (ebb__task *)(void *)(rt->tasks.base[i >> EBB__TASK_SHIFT] +
                                 (size_t)(i & ((1u << EBB__TASK_SHIFT) - 1)) * sizeof(ebb__task));
}

static inline ebb__cold *ebb__cold_at(const ebb_runtime *rt, uint32_t i) {
    return (ebb__cold *)(void *)(rt->tasks.base[i >> EBB__TASK_SHIFT] +
                                 (sizeof(ebb__task) << EBB__TASK_SHIFT) +
                                 (size_t)(i & ((1u << EBB__TASK_SHIFT) - 1)) * sizeof(ebb__cold));
}

static inline ebb__region *ebb__region_at(const ebb_runtime *rt, uint32_t i) {
    return (ebb__region *)(void *)(rt->regions.base[i >> EBB__REGION_SHIFT] +
                                   (size_t)(i & ((1u << EBB__REGION_SHIFT) - 1)) * sizeof(ebb__region));
}

static inline ebb__timer_cold *ebb__timer_cold_at(const ebb_runtime *rt, uint32_t i) {
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

static inline ebb__obligation *ebb__obligation_at(const ebb_runtime *rt, uint32_t i) {
    return ebb__slab_at(&rt->obligations, i);
}

static inline uint64_t ebb__task_id(const ebb__task *t) {
    return t->index == 0 ? 0 : ebb__id(t->rt, t->index, t->generation);
}

static inline uint64_t ebb__region_id(const ebb_runtime *rt, const ebb__region *r) {
    return ebb__id(rt, r->index, r->generation);
}

static inline uint64_t ebb__obligation_id(const ebb_runtime *rt, const ebb__obligation *d) {
    return ebb__id(rt, d->index, d->generation);
}

static inline ebb_status ebb__find_task(const ebb_runtime *rt, ebb_task id, ebb__task **out) {
    uint32_t i;
    ebb_status st = ebb__lookup_as(rt, &rt->tasks, id.id, &i, EBB__TASK_SHIFT, sizeof(ebb__task));
    if (st != EBB_OK) return st;
    *out = ebb__task_at(rt, i);
    return (*out)->phase == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb_status ebb__find_region(const ebb_runtime *rt, ebb_region id, ebb__region **out) {
    uint32_t i;
    ebb_status st = ebb__lookup_as(rt, &rt->regions, id.id, &i, EBB__REGION_SHIFT, sizeof(ebb__region));
    if (st != EBB_OK) return st;
    *out = ebb__region_at(rt, i);
    return (*out)->state == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb__task *ebb__task_of(const ebb_cx *cx) {
    return (ebb__task *)(uintptr_t)cx;
}

/* What is kept for finalizers: of a region's cleanup budget, and of a task's own. */
static inline uint64_t ebb__region_kept(const ebb__region *r) {
    return r->cleanup_end > r->force_at ? r->cleanup_end - r->force_at : 0;
}
static inline uint64_t ebb__own_kept(const ebb__cold *c) {
    return (uint64_t)c->kept * EBB__KEPT_UNIT;
}

/* Its body and its finalizers are over: hooks that still run in its name may not add to what it owes. */
static inline bool ebb__is_over(const ebb__task *t) {
    return (t->flags & (F_RETURNED | F_IN_FINALIZER)) == F_RETURNED;
}

/* Its budget is over: every await of it says EBB_CANCELLED, whatever it waits for. */
static inline bool ebb__task_is_overdue(const ebb__task *t) {
    return t->flags & (F_FORCED | F_FIN_FORCED) && t->cx.signal & EBB_CX_CANCEL;
}

static inline uint8_t ebb__request_pack(uint8_t kind, uint8_t severity, uint8_t epoch) {
    return (uint8_t)(kind << 4 | severity << 2 | epoch);
}
static inline uint8_t ebb__request_kind(uint8_t request) {
    return request >> 4;
}
static inline uint8_t ebb__request_severity(uint8_t request) {
    return request >> 2 & 3;
}
static inline uint8_t ebb__request_epoch(uint8_t request) {
    return request & 3;
}

#endif
