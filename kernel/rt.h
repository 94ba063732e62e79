/* The runtime's records. Only kernel/ and sched/ include this header; other layers use kernel/layer.h.
 *
 * The hot record of a task, one cache line, holds everything that a wake-up, a poll or a cancel touches. The cold
 * record is read for a task with F_COLD, and by dumps. Links between records are slab indices; 0 means none. */
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

enum {
    EBB__FORCE_POLLS = 8, /* polls of a task after its budget has run out */
    EBB__OBLIGATION_SHIFT = 7,
    EBB__TIMER_SHIFT = 10,
    EBB__REASON_SHIFT = 5,
    EBB__REASONS_SPARE = 32,   /* spare slots for the messages of single-task cancels */
    EBB__BUCKETS = 64,         /* of the cancel lane; each has a queue */
    EBB__READY = EBB__BUCKETS, /* the ready lane's queue */
    EBB__QUEUES = EBB__BUCKETS + 1,
    EBB__BUCKET_SHIFT = 27, /* a bucket is 2^27 ns wide, 134 ms */
    EBB__BORN_SHIFT = 24,   /* ages are kept in steps of 17 ms and wrap after two years */
    EBB__KEPT_UNIT = 1024   /* ns: the part of a budget kept for finalizers is a multiple of this */
};

/* Sources of the timer wheel. */
enum { EBB__W_TIMER = 0, EBB__W_TASK = 1, EBB__W_REGION = 2 };

/* Task flags. */
enum {
    F_POLLING = 1u << 0,
    F_REWAKE = 1u << 1,   /* woken during its own poll */
    F_RETURNED = 1u << 2, /* its body has returned; regions, finalizers and obligations may remain */
    F_FORCED = 1u << 3,
    F_FIN_FORCED = 1u << 4, /* the finalizers' part of the budget has run out too */
    F_ABANDONED = 1u << 5,
    F_CLOSER = EBB__TASK_INTERNAL, /* its region's closer, callback runner or drain supervisor */
    F_TIMED = 1u << 7,             /* has a deadline: runs in the timed lane */
    F_JOINING = 1u << 8,           /* waits for a region or task to end */
    F_KEEP = 1u << 9,              /* the outcome is kept */
    F_OWN_CANCEL = 1u << 10,       /* has its own cancel request: cold.node, reason, kept */
    F_NODE = 1u << 11,             /* cold.node may be armed */
    F_WAIT = EBB__TASK_WATCHED,    /* cold.wait may be non-empty */
    F_OWES = 1u << 13,             /* cold.owed is not empty */
    F_SCOPE = 1u << 14,            /* cold.scopes is not empty */
    F_IN_FINALIZER = 1u << 15,
    F_OBSERVED = 1u << 16, /* a layer hears of its end */
    F_DISCARDED = 1u << 17,
    /* A task with one of these flags ends in end_cold. */
    F_COLD = F_ABANDONED | F_CLOSER | F_KEEP | F_OWN_CANCEL | F_NODE | F_WAIT | F_OWES | F_SCOPE | F_OBSERVED
};

struct ebb__task {
    ebb_cx cx; /* link of the free list while the slot is free */
    uint32_t generation;
    ebb_poll_fn poll;
    void *state;
    ebb_runtime *rt;
    uint32_t index, region;
    union {
        uint32_t pos;       /* position in the region's tasks */
        uint32_t kept_prev; /* of a kept task that has ended: the previous one */
    };
    union {
        uint32_t qpos;      /* position in its lane */
        uint32_t joins;     /* parked in a join: index of the task that it waits for; 0: a region */
        uint32_t kept_next; /* of a kept task that has ended: the next one */
    };
    uint8_t phase; /* ebb_task_phase; 0: the slot is free */
    uint8_t queue; /* low 2 bits ebb_lane, above them the bucket */
    uint8_t mask;
    uint8_t request; /* kind << 4 | severity << 2 | epoch of the cancel request; 0: none */
    uint32_t flags;  /* F_* */
    union {
        uint32_t polls_left;
        int32_t status; /* with F_RETURNED: the status it will end with */
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
    ebb__node node;          /* due at its own deadline; with F_OWN_CANCEL, when it is forced */
    uint32_t scopes : 24;    /* first region that it opened */
    uint32_t priority : 8;   /* its priority in the timed lane */
    uint32_t owed;           /* first of its finalizers and obligations */
    uint32_t reason : 24;    /* slot of its own reason; 0: none, or no room for the message */
    uint32_t force_left : 8; /* polls left after its budget has run out */
    union {
        uint32_t kept; /* with F_OWN_CANCEL: the finalizers' part of its budget, in EBB__KEPT_UNIT ns */
        uint32_t born; /* otherwise: when it was spawned, in 2^EBB__BORN_SHIFT ns, modulo 2^32 */
    };
} ebb__cold;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cold) == EBB__TASK_COLD_BYTES,
               "three quarters of a cache line");
_Static_assert(EBB__SAME(ebb__cold, ebb__task_cold_face, wait), "the face of a task");

/* Region flags. */
enum {
    R_CLEANUP = 1u << 0,
    R_JOINING = 1u << 1, /* closes by itself when it is empty */
    R_FORCED = 1u << 2,
    R_SWEEP = 1u << 3, /* queued for the pump, which advances it */
    R_ROOT = 1u << 4,
    R_NODE = 1u << 5,       /* its timer may be armed */
    R_HOOK = 1u << 6,       /* has on_closed */
    R_SUPERVISED = 1u << 7, /* has a drain supervisor: kernel/supervisor.h */
    R_UNIT = 1u << 8,       /* a unit of work */
    R_STOPPING = 1u << 9,   /* Open, in a unit inside a closed region: `gate` limits who may add work */
    R_ENDS = 1u << 10,      /* stopping, and no task may add work: closes when it is empty */
    R_BOUNDED = 1u << 11,   /* a cleanup scope, or in one: the owner's budget bounds it */
    R_OPERATOR = 1u << 12,  /* the operators' region of a drain region */
    R_APART = 1u << 13,     /* a drain region that does not wait for its operators' region */
    R_LEFT = 1u << 14,      /* its task has returned and cancelled it */
    R_OBSERVED = 1u << 16,  /* a layer hears of its close */
    R_TRACED = 1u << 17,    /* has a trace context */
    R_MORE = 1u << 15 /* has, or has had, an owner, obligations, a closer, a runner, kept tasks or leaks */
};

/* Two cache lines. The end of a task and the close of a plain region touch only the first; a cancel touches both. */
struct ebb__region {
    union {
        uint32_t link;        /* link of the free list */
        uint32_t walk_next;   /* during a cascade: the next region to visit */
        uint32_t closed_next; /* when Closed: next closed sibling */
    };
    uint32_t generation;
    uint32_t index, parent;
    union {
        uint32_t pos;         /* position in the parent's children */
        uint32_t closed_prev; /* when Closed: previous closed sibling */
    };
    uint32_t closed; /* first of its children that are closed and not joined */
    uint32_t flags;  /* R_* */
    uint8_t state;   /* ebb_region_state; 0: the slot is free */
    ebb__u32s tasks;
    ebb__u32s children;

    union {
        uint64_t deadline;    /* its own, or inherited */
        uint64_t cleanup_end; /* after a request: end of the cleanup budget */
    };
    uint64_t force_at;         /* after a request: when tasks are forced and the finalizers' part begins */
    uint64_t origin, sequence; /* of the request */
    uint32_t polls; /* polls that each task in it may use; after a request, of the cleanup budget */
    uint8_t policy;
    uint8_t priority;
    uint8_t request; /* packed as in a task */
    int32_t status;
    uint32_t owner;            /* the task that opened it; 0: the host */
    uint32_t owed;             /* its own finalizers and obligations */
    uint32_t runner;           /* its callback runner, which ends last */
    ebb__callbacks *callbacks; /* the callbacks it runs, until the region closes */
};
_Static_assert(sizeof(void *) != 8 || offsetof(ebb__region, deadline) == 64, "two cache lines");
_Static_assert(sizeof(void *) != 8 || (sizeof(ebb__region) == EBB__REGION_BYTES &&
                                       EBB__SAME(ebb__region, ebb__region_face, callbacks)),
               "the face of a region");

/* Fields that few regions use, or that only dumps and reports read. */
typedef struct ebb__region_cold {
    const char *site;
    uint64_t failed;
    uint32_t depth;
    uint32_t abandoned, leaked;
    uint32_t obligations; /* reserved here, including those of its tasks */
    uint32_t closer;      /* the task that runs its finalizers, reserved with the first finalizer */
    uint32_t kept;        /* first of the kept and abandoned tasks that have ended */
    uint32_t leaks;       /* first leaked obligation, for the report */
    uint32_t owner_next, owner_prev;
    char message[EBB_MESSAGE_MAX + 1];
    uint32_t sweep_next; /* valid only with R_SWEEP */
    uint32_t gate;       /* valid only with R_STOPPING: the outermost unit that is still open */
    uint32_t supervisor; /* valid only with R_SUPERVISED: its drain supervisor */
    ebb__node node;      /* armed only if R_NODE */
    void (*on_closed)(void *arg, const ebb_region_report *report); /* valid only with R_HOOK */
    void *arg;
    struct ebb__trace_context *trace; /* valid only with R_TRACED */
} ebb__region_cold;

/* An obligation, or a finalizer: an obligation to run a function at the end. */
typedef struct ebb__obligation {
    uint32_t link;
    uint32_t generation;
    uint32_t index, next, prev;
    uint32_t task, region; /* task 0: it belongs to the region */
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
    ebb_task task; /* the task to wake */
} ebb__timer_cold;

typedef struct ebb__own_reason {
    uint32_t link, generation;
    ebb_reason reason;
} ebb__own_reason;

/* The timed lane: a binary heap ordered by deadline, then priority, then arrival. */
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

typedef struct ebb__poll_times ebb__poll_times;

struct ebb_runtime {
    /* The part that kernel/layer.h declares as a face. */
    ebb__layers layers;
    uint64_t now;
    uint8_t id;
    bool watched;  /* polls are measured, or poll_number and the fields after it are read by a watchdog */
    bool recorded; /* a trace or a journal is on */
    bool confined; /* ebb__rt_confine */
    ebb__slab tasks, regions;

    ebb__task host; /* not in the slab; its index is 0 */
    ebb_allocator allocator;
    uint64_t (*clock)(void *ctx);          /* NULL: only the host advances the time */
    uint64_t (*recorded_clock)(void *ctx); /* during a replay: returns the readings in its journal */
    void *clock_ctx;
    bool pumping;
    bool observed; /* recorded or watched */
    bool stepped;  /* ebb__rt_set_stepped */
    bool short_pumps;
    uint32_t root;
    ebb__task *current; /* the task that is being polled */
    ebb__recorder *trace, *journal;
    uint64_t turn, batch;

    uint32_t credit; /* tasks that can be spawned without an allocation */
    ebb__slab obligations, timers, reasons;
    ebb__run_queues run_queues;
    /* The head of the ready lane if the lane was empty when it arrived; it is then not in the queue. NULL: none. */
    ebb__task *ready_first;
    ebb__queue queue[EBB__QUEUES];
    uint64_t cancel_buckets; /* one bit for each bucket that has members */
    uint64_t cancel_base;    /* the earliest bucket number that may have members */
    ebb__timed timed;
    uint32_t cancel_count;
    uint8_t cycle;      /* 0..9: selects the lane of the next poll */
    uint32_t contended; /* more than one lane had work, so `wait` counts */
    uint32_t wait[4];   /* polls of other lanes since this lane's head became the head */
    uint32_t worst_wait[4];
    uint32_t sweep_head, sweep_tail;
    uint32_t hook_parent; /* on_closed of a child of this region runs: it can't close */
    ebb__wheel wheel;
    uint32_t (*choose)(void *ctx,
                       uint32_t n); /* chooses one of n runnable tasks of a lane; NULL: always the head */
    void *choose_ctx;

    ebb_cleanup_budget cleanup[4];
    uint32_t chain_depth, chain_bytes; /* limits for reading a cause chain */
    bool reasons_low;
    uint64_t sequence; /* number of the last cancel request */
    uint32_t waits;    /* waits begun so far: their numbers in the journal */
    uint32_t standby;  /* tasks that do not count as work: ebb__rt_standby */
    uint64_t visits;   /* regions that verbs, joins and counts have visited, for tests of their cost */
    ebb_runtime_stats stats;

    ebb__poll_times *poll_times; /* NULL: nobody looks, and polls are not measured */

    /* Read by a watchdog in another thread. */
    _Atomic uint64_t poll_number; /* odd while a poll runs */
    _Atomic(const char *) poll_site;
    _Atomic uint64_t poll_task;
};
_Static_assert(EBB__SAME(ebb_runtime, ebb__rt_face, layers) && EBB__SAME(ebb_runtime, ebb__rt_face, now) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, id) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, watched) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, recorded) &&
                   EBB__SAME(ebb_runtime, ebb__rt_face, confined) &&
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

/* The cold records follow the hot ones in the same chunk. */
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

/* *out is NULL if there is no such record. */
static inline ebb_status ebb__find_task(const ebb_runtime *rt, ebb_task id, ebb__task **out) {
    *out = ebb__record_of(rt, &rt->tasks, id.id, EBB__TASK_SHIFT, sizeof **out);
    if (EBB__UNLIKELY(*out == NULL)) return ebb__lookup_failed(rt, id.id);
    return (*out)->phase == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb_status ebb__find_region(const ebb_runtime *rt, ebb_region id, ebb__region **out) {
    *out = ebb__record_of(rt, &rt->regions, id.id, EBB__REGION_SHIFT, sizeof **out);
    if (EBB__UNLIKELY(*out == NULL)) return ebb__lookup_failed(rt, id.id);
    return (*out)->state == 0 ? EBB_ERR_STALE : EBB_OK;
}

static inline ebb__task *ebb__task_of(const ebb_cx *cx) {
    return (ebb__task *)(uintptr_t)cx;
}

/* The finalizers' part of a region's cleanup budget, and of a task's own. */
static inline uint64_t ebb__region_kept(const ebb__region *r) {
    return r->cleanup_end > r->force_at ? r->cleanup_end - r->force_at : 0;
}
static inline uint64_t ebb__own_kept(const ebb__cold *c) {
    return (uint64_t)c->kept * EBB__KEPT_UNIT;
}

/* The body and the finalizers have ended. Hooks that still run for the task may not reserve or defer. */
static inline bool ebb__is_finalized(const ebb__task *t) {
    return (t->flags & (F_RETURNED | F_IN_FINALIZER)) == F_RETURNED;
}

/* The budget has run out: every await of the task returns EBB_CANCELLED, whatever it waits for. */
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
