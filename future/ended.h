/* The ends of tasks and regions, for this layer's hooks. */
#ifndef EBB__FUTURE_ENDED_H
#define EBB__FUTURE_ENDED_H

#include "future/future.h"

/* The kernel's hook: completes the futures that wait for this end. */
void ebb__observed_ended(ebb_runtime *rt, ebb_task task, ebb_region region);

#endif
