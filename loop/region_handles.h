/* The handles that a region's finalizer waits for, for reports. */
#ifndef EBB__LOOP_REGION_HANDLES_H
#define EBB__LOOP_REGION_HANDLES_H

#include "kernel/layer.h"

/* Calls `each` for every handle that the finalizer still has to close; `name` is "" if the handle has none. False:
 * the finalizer does not belong to this layer. */
bool ebb__region_handles_each(const ebb__obligation_view *finalizer,
                              void (*each)(void *ctx, const char *what, const char *name, const char *site),
                              void *ctx);

#endif
