/* The three verbs over a region and everything below it. */
#ifndef EBB__CASCADE_H
#define EBB__CASCADE_H

#include "kernel/rt.h"

/* `budget` NULL: the table's. */
void ebb__cancel_tree(ebb_runtime *rt, ebb__region *r, uint8_t kind, uint64_t origin, const char *message,
                      const ebb_budget *budget);
void ebb__force_tree(ebb_runtime *rt, ebb__region *r, uint64_t origin);

/* The region's own timer: its deadline, then the end of its tasks' budget, then of its finalizers'. */
void ebb__region_arm(ebb_runtime *rt, ebb__region *r, uint64_t at);

/* The deadlines of `r` and of what is around it that have passed, though the pump has not seen it yet: the
 * outermost is acted on now, so that no cancel wins time from it. May close and free `r`. */
void ebb__pass_deadlines(ebb_runtime *rt, ebb__region *r);

/* A node of the wheel has come due. */
void ebb__fired(ebb_runtime *rt, uint32_t ref);

#endif
