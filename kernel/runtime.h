#ifndef EBB__RUNTIME_H
#define EBB__RUNTIME_H

#include "kernel/rt.h"

/* Makes room for the messages of single-task cancels, outside of the cancels themselves. */
void ebb__reasons_refill(ebb_runtime *rt);

#endif
