/* Futures with one input and one callback. */
#ifndef EBB__FUTURE_THEN_H
#define EBB__FUTURE_THEN_H

#include "future/future.h"

/* Makes a node of a kind that begins with an ebb__single. The node waits for f and consumes it. Returns a static
 * failed future if there is no node. */
ebb_future *ebb__single_new(ebb_cx *cx, const ebb__kind *kind, ebb_future *f, const void *fn, void *arg,
                            const char *site);
bool ebb__single_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work);
void ebb__single_forward(ebb__region_futures *s, ebb_future *f, ebb__edge *e);

#endif
