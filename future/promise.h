/* The record of a promise, for kinds that extend it: tasks, operations of other layers. */
#ifndef EBB__FUTURE_PROMISE_H
#define EBB__FUTURE_PROMISE_H

#include "future/future.h"

typedef struct ebb__promise {
    ebb__many many; /* one edge, to the future that it was settled with */
    const ebb_operation *op;
    void *arg;
} ebb__promise;

extern const ebb__kind ebb__promise_kind;

/* Makes a promise. NULL and *st. With an op the region waits for its producer. */
ebb_future *ebb__promise_new(ebb_cx *cx, const ebb__kind *kind, const ebb_operation *op, void *arg,
                             const char *site, ebb_status *st);
bool ebb__is_promise(const ebb_future *f);
/* For dumps: the name of the operation, or of the kind. */
const char *ebb__future_name(const ebb_future *f);
/* As `closing` of an operation, marks one that only waits for something that a region owns anyway, such as a task or
 * a child process. Abandoning it leaves nothing behind. */
void ebb__only_waits(ebb_cx *cx, ebb_future *f, void *arg);
/* True if an operation goes on after this future was abandoned. */
bool ebb__is_left_behind(const ebb_future *f);

/* Makes a piece of n edges of a node, none attached. NULL: no memory. The caller makes the node refer to it. */
ebb__edges *ebb__edges_new(ebb__heap *h, ebb_future *node, uint32_t n);

#endif
