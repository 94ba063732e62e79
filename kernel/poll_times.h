/* How long polls take, while somebody looks. kernel/layer.h has what other layers use. */
#ifndef EBB__POLL_TIMES_H
#define EBB__POLL_TIMES_H

#include "kernel/rt.h"

/* A poll of the task has ended that began at `began`, by the runtime's clock. May end the measuring. */
void ebb__poll_took(ebb_runtime *rt, uint64_t task, const char *site, uint64_t began);
void ebb__poll_times_free(ebb_runtime *rt);

#endif
