#ifndef EBB__RUNTIME_H
#define EBB__RUNTIME_H

#include "kernel/rt.h"

/* Makes room for the messages of single-task cancels, outside of the cancels themselves. */
void ebb__reasons_refill(ebb_rt *rt);

#ifdef EBB_MUTANTS
/* Plants the bug that the oracle of this number (ebb_oracle) is there to find; -1: none. */
void ebb__set_mutant(ebb_rt *rt, int mutant);
#endif

#endif
