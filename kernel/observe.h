/* The ends of tasks and regions that a layer observes: kernel/layer.h says how. */
#ifndef EBB__OBSERVE_H
#define EBB__OBSERVE_H

#include "kernel/rt.h"

/* Calls the `ended` hook of the layers, as user code that the journal records. */
void ebb__observed_task_ended(ebb_runtime *rt, uint64_t task);
void ebb__observed_region_ended(ebb_runtime *rt, uint64_t region);

#endif
