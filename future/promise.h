/* What a promise is, for those that are one and more: tasks, operations of other layers. */
#ifndef EBB__FUTURE_PROMISE_H
#define EBB__FUTURE_PROMISE_H

#include "future/future.h"

typedef struct ebb__promise {
    ebb__many many; /* one edge, to the future that it was settled with */
    const ebb_operation *op;
    void *arg;
} ebb__promise;

extern const ebb__kind ebb__promise_kind;

/* The region of a pending future is closed: what wants to hear of that does. */
void ebb__future_closing(ebb__scope *s, ebb_future *f);

/* NULL and *st. With an op it is produced: the region waits for it. */
ebb_future *ebb__promise_new(ebb_cx *cx, const ebb__kind *kind, const ebb_operation *op, void *arg,
                             const char *site, ebb_status *st);
bool ebb__is_promise(const ebb_future *f);
/* For people: what produces it, or what it does with its inputs. */
const char *ebb__future_name(const ebb_future *f);
/* As `closing` of an operation: it only waits for something that a region has for itself, as a task or a child
 * process. Whoever gives it up leaves nothing behind. */
void ebb__only_waits(ebb_cx *cx, ebb_future *f, void *arg);
/* What goes on when nobody waits for this future any more. */
bool ebb__is_left_behind(const ebb_future *f);

/* A piece of n edges of a node, none attached. NULL: no memory. The caller makes the node refer to it. */
ebb__edges *ebb__edges_new(ebb__heap *h, ebb_future *node, uint32_t n);

#endif
