/* Operations of layers above: what somebody does for a region outside of its tasks, as a function in a thread
 * pool. The layer that begins one names it when the region is forced and can't wait for it any longer. */
#ifndef EBB__OPERATION_H
#define EBB__OPERATION_H

#include "kernel/rt.h"

/* An operation that was begun for this region goes on without it: it counts as abandoned, and stands in the
 * trace and in the region's report with the place where it began. `name` (may be NULL) tells it from others of
 * its kind: a path, a program. Needs no memory, but without it the report has only the count. */
void ebb__operation_abandoned(ebb_cx *cx, ebb_region region, const char *what, const char *name,
                              const char *site);

#endif
