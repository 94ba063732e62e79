#ifndef EBB__RUNTIME_H
#define EBB__RUNTIME_H

#include "kernel/rt.h"

/* Reserves slots for the messages of single-task cancels, since a cancel must not allocate. */
void ebb__reasons_refill(ebb_runtime *rt);

#endif
