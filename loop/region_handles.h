/* What a region's finalizer of this layer's own waits for, for those who tell people. */
#ifndef EBB__LOOP_REGION_HANDLES_H
#define EBB__LOOP_REGION_HANDLES_H

#include "kernel/layer.h"

/* Calls `each` for every handle that the finalizer still has to see closed; `name` is "" if it has none. False: the
 * finalizer is somebody else's. */
bool ebb__region_handles_each(const ebb__obligation_view *finalizer,
                              void (*each)(void *ctx, const char *what, const char *name, const char *site),
                              void *ctx);

#endif
