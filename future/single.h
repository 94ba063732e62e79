/* Futures with one input and one callback. */
#ifndef EBB__FUTURE_SINGLE_H
#define EBB__FUTURE_SINGLE_H

#include "future/future.h"

/* A node of a kind that begins with an ebb__single, waiting for f, which it consumes. Static failed ones if
 * that can't be. */
ebb_future *ebb__single_new(ebb_cx *cx, const ebb__kind *kind, ebb_future *f, const void *fn, void *arg,
                            const char *site);
bool ebb__single_cancelled(ebb__scope *s, ebb_future *f, uint32_t *work);
void ebb__single_forward(ebb__scope *s, ebb_future *f, ebb__edge *e);

#endif
