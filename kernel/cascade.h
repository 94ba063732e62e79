/* Close, cancel and force for a region and everything below it. */
#ifndef EBB__CASCADE_H
#define EBB__CASCADE_H

#include "kernel/rt.h"

/* `budget` NULL: the default for the severity. */
void ebb__cancel_tree(ebb_runtime *rt, ebb__region *r, uint8_t kind, uint64_t origin, const char *message,
                      const ebb_budget *budget);
void ebb__force_tree(ebb_runtime *rt, ebb__region *r, uint64_t origin);

/* Arms the region's timer. It is due at its deadline, then at the end of its tasks' budget, then of its
 * finalizers'. */
void ebb__region_arm(ebb_runtime *rt, ebb__region *r, uint64_t at);

/* Acts on the outermost passed deadline of `r` and of the regions around it. The pump may not have seen it yet,
 * and a cancel must not give more time than the deadline does. May close and free `r`. */
void ebb__pass_deadlines(ebb_runtime *rt, ebb__region *r);

/* A timer of the wheel is due. */
void ebb__fired(ebb_runtime *rt, uint32_t ref);

#endif
