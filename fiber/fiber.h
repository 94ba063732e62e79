/* Fibers from inside: for layers above that make tasks of them in ways of their own. */
#ifndef EBB__FIBER_H
#define EBB__FIBER_H

#include <ebb/fiber.h>

#include "fiber/sanitizer.h"

typedef struct ebb__fiber ebb__fiber;
typedef struct ebb__fibers ebb__fibers;

/* A fiber and its stack, which stay together until the pool is trimmed: it is alive, or in the pool.
 * `sp` is NULL until it runs for the first time. `status` is EBB_PENDING until its function has returned. The
 * stack is nobody else's until its task has *ended*: waits that still lie there are dropped before, and
 * finalizers and hooks of a task that was abandoned may use what lies there. */
struct ebb__fiber {
    void *sp;     /* where it is suspended */
    void *caller; /* where whoever resumed it is */
    ebb_cx *cx;   /* its task's, once it has run */
    ebb_status status;
    uint32_t refusals; /* awaits that said EBB_CANCELLED */
    ebb_fiber_fn fn;
    void *arg;
    ebb__fibers *all;
    ebb__fiber *next, *prev; /* among the alive; `next` in the pool */
    ebb__fiber *chain;       /* of a guest */
    char *base;              /* of the stack */
    size_t touched;          /* bytes of the stack that have memory, when that was last looked at */
    const char *site;
    uint64_t task; /* its id, once it has run */
    ebb__notes notes;
};

/* Of one runtime. A *guest* is a fiber that has run and whose task has another poll function than
 * ebb__fiber_poll; it is found by its task in one of `room` chains, which is a power of two and not less than
 * there are fibers, alive or pooled. */
struct ebb__fibers {
    ebb_runtime *rt;
    size_t stack_bytes;
    uint32_t max, alive, peak, pooled;
    uint64_t touched, pooled_touched; /* bytes of memory of all stacks; and of those in the pool */
    uint32_t crowd, ends; /* how many were alive lately; and how many have ended, to tell what lately is */
    ebb__fiber *first;    /* alive */
    ebb__fiber *pool;     /* the one that ended last comes first: its stack is the warmest */
    ebb__fiber **guests;
    uint32_t room;
};

/* The slot of this layer's record. */
enum { EBB__FIBER_SLOT = 0 };

/* The fibers of a runtime; NULL: it has had none. */
static inline ebb__fibers *ebb__fibers_at(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__FIBER_SLOT);
}

/* A fiber without a task: the state for ebb__fiber_poll. EBB_ERR_LIMIT, EBB_ERR_NOMEM. */
ebb_status ebb__fiber_new(ebb_runtime *rt, ebb_fiber_fn fn, void *arg, const char *site, ebb__fiber **out);
/* An ebb_poll_fn, for a task of its own; the task's poll function may be another one that calls it. From the
 * first call on the fiber goes with that task. */
ebb_status ebb__fiber_poll(ebb_cx *cx, void *fiber);
/* For one that never ran: its task never came to be, or has ended and had another poll function. */
void ebb__fiber_drop(ebb__fiber *f);

/* Frees the stacks that lie ready. */
void ebb__fibers_trim(ebb_runtime *rt);

/* The fiber that runs on this thread, or NULL. */
const ebb__fiber *ebb__fiber_here(void);

#endif
