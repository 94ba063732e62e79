/* Futures with several inputs: how they attach and drop them.
 *
 * The edges are in pieces, in the order of the inputs. An edge without an input was dropped. The pieces are freed
 * when the node has ended, by its kind's `cancelled`, which EBB__TYPE_LETS_GO has called at any end. The end itself
 * is immediate; the other inputs are cancelled after it, a bounded number in each poll. */
#ifndef EBB__FUTURE_MANY_H
#define EBB__FUTURE_MANY_H

#include "future/future.h"

enum { EBB__TYPE_NODE_OF_MANY = EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_MANY | EBB__TYPE_LETS_GO };

/* Makes a pending node of a kind that begins with an ebb__many, for n inputs; `spare` is n. NULL and *st: nothing was
 * consumed. EBB_ERR_INVALID: fs is NULL. EBB_ERR_LIMIT: more than 2^32 - 1. */
ebb__many *ebb__many_new(ebb_cx *cx, const ebb__kind *kind, size_t n, ebb_future *const *fs, const char *site,
                         ebb_status *st);
/* The node waits for fs and consumes them. If `st` is not EBB_OK, an input is unusable or there is no memory, the
 * node fails and all inputs are cancelled. */
void ebb__many_wait(ebb__many *m, size_t n, ebb_future *const *fs, ebb_status st, const char *site);
/* The result of a constructor that could not make its node: cancels and consumes fs. */
ebb_future *ebb__many_refused(size_t n, ebb_future *const *fs, ebb_status st, const char *site);
/* Adds n edges, none attached. EBB_ERR_NOMEM, EBB_ERR_LIMIT: not all were added. */
ebb_status ebb__many_reserve(ebb__many *m, uint32_t n);
/* Drops and cancels all inputs, and frees the edges. False: `work` is used up. */
bool ebb__many_let_go(ebb__heap *h, ebb__many *m, ebb_cancel_kind kind, uint32_t *work);
void ebb__trace_many(void *object, ebb_gc_marker *t);

static inline uint32_t ebb__edge_index(const ebb__edge *e) {
    return ((const ebb__item *)(const void *)e)->index;
}

/* The placeholder input of an edge whose first real input is made in the pump. Users cannot have it. */
static inline ebb_future *ebb__not_made_yet(void) {
    return ebb__failed(EBB_OK);
}

#endif
