/* Internal interface of fibers, for layers above that build tasks on them. */
#ifndef EBB__FIBER_H
#define EBB__FIBER_H

#include <ebb/fiber.h>

#include "fiber/sanitizer.h"

typedef struct ebb__fiber ebb__fiber;
typedef struct ebb__fibers ebb__fibers;

/* A fiber with its stack; it is alive, or in the pool. `sp` is NULL until the first run. `status` is EBB_PENDING
 * until the function has returned. No other fiber gets the stack until the task has *ended*: waits that lie on the
 * stack are dropped before that, and finalizers and hooks of an abandoned task may still use objects on it. */
struct ebb__fiber {
    void *sp;     /* stack pointer of the suspended fiber */
    void *caller; /* stack pointer of the side that resumed it */
    ebb_cx *cx;   /* of its task, from the first run on */
    ebb_status status;
    uint32_t refusals; /* awaits that returned EBB_CANCELLED */
    bool confined;
    int16_t paint; /* the byte that fills its stack before it starts; EBB__UNPAINTED */
    ebb_fiber_fn fn;
    void *arg;
    ebb__fibers *all;
    ebb__fiber *next, *prev; /* in the list of live fibers; in the pool only `next` */
    ebb__fiber *chain;       /* next fiber of the same chain in `wrapped` */
    char *base;              /* lowest byte of the stack */
    size_t touched;          /* bytes of the stack that have memory, as last measured */
    const char *site;
    uint64_t task; /* id of its task, from the first run on */
    ebb__notes notes;
};

/* The fibers of one runtime. A *wrapped* fiber has run, and its task has a poll function other than ebb__fiber_poll.
 * It is found by its task, in one of `room` chains. `room` is a power of two and at least the number of fibers, alive
 * or pooled. */
struct ebb__fibers {
    ebb_runtime *rt;
    size_t stack_bytes;
    uint32_t max;
    uint32_t alive, peak;
    uint32_t pooled;
    uint64_t touched;        /* bytes of memory of all stacks */
    uint64_t pooled_touched; /* of those in the pool */
    uint32_t recent_peak;    /* the most alive at a time; decays as fibers end */
    uint32_t ends;           /* fibers that have ended; every DECAY_ENDS of them `recent_peak` decays */
    ebb__fiber *first;       /* of the live ones */
    ebb__fiber *pool;        /* last in, first out: the stack used last is the warmest */
    ebb__fiber **wrapped;
    uint32_t room; /* chains in `wrapped` */
};

/* Index of this layer's record in a runtime. */
enum { EBB__FIBER_SLOT = 0 };

/* The fibers of a runtime; NULL if it has had none. */
static inline ebb__fibers *ebb__fibers_at(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__FIBER_SLOT);
}

/* Makes a fiber without a task: the state for ebb__fiber_poll. EBB_ERR_LIMIT, EBB_ERR_NOMEM. */
ebb_status ebb__fiber_new(ebb_runtime *rt, ebb_fiber_fn fn, void *arg, const char *site, ebb__fiber **out);
/* An ebb_poll_fn. The task's poll function is this one, or one that calls it. From the first call on, the fiber
 * belongs to that task and ends with it. */
ebb_status ebb__fiber_poll(ebb_cx *cx, void *fiber);
/* Frees a fiber that never ran: its task was not spawned, or has ended and had another poll function. */
void ebb__fiber_drop(ebb__fiber *f);

/* ---- confined fibers ----------------------------------------------------------------------------------- */

/* A fiber whose code waits only in ebb__fiber_wait. While it runs, its runtime is confined (ebb__rt_confine): other
 * awaits, and new work, are refused with EBB_ERR_DURABLE_CONTEXT, whatever `cx` the code has found. So its task never
 * owes anything, and a parked one can be discarded at any time (ebb__task_discard): the hook of its wait is called, and
 * its stack is back in the pool when the discard returns. A cancel runs none of its code: the task ends in the poll
 * that follows with EBB_CANCELLED. Errors as ebb_fiber_spawn. `paint`: the byte that fills the stack before the fiber
 * starts, so that what it reads of unused stack is known; the whole stack then has memory. */
enum { EBB__UNPAINTED = -1 };
ebb_task ebb__fiber_spawn_confined(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg, int paint,
                                   const ebb_task_opts *opts, const char *site);
/* Waits once: begins the wait `w` (zeroed), suspends the running fiber, which must be `cx`'s, until its task is polled
 * again, and ends the wait. Resume it with ebb__waiter_wake or ebb_task_wake. Wake-ups may be spurious: check again
 * what the fiber waits for. Not a checkpoint. For every fiber, confined or not. EBB_ERR_INVALID: `cx` is not the
 * running fiber. Errors of ebb_wait_begin. */
ebb_status ebb__fiber_wait(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on);

/* Frees all pooled stacks. */
void ebb__fibers_trim(ebb_runtime *rt);

/* The fiber that runs on this thread, or NULL. */
const ebb__fiber *ebb__fiber_here(void);

#endif
