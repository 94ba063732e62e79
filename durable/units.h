/* durable/units.h - units of work that wait for instances. One that has waited may wait again, so a closing worker stays
 * until it has ended. */
#ifndef EBB_DURABLE_UNITS_H
#define EBB_DURABLE_UNITS_H

#include <ebb/kernel.h>

#include "base/map.h"

/* Invariant: `regions` has every unit that has waited and still has tasks, or there was no memory for it; and some that
 * have ended, at most as many as `most`. */
typedef struct ebb__units {
    ebb_runtime *rt;
    ebb__map regions; /* by id: ebb_region */
    size_t most;      /* past it those that have ended are taken out */
} ebb__units;

void ebb__units_init(ebb__units *u, ebb_runtime *rt, ebb_allocator a);
void ebb__units_fini(ebb__units *u);
/* The innermost unit that the region of cx is in; id 0: none. */
ebb_region ebb__unit_of(ebb_cx *cx);
/* Without memory it is forgotten. */
void ebb__units_add(ebb__units *u, ebb_region unit);
/* One of them has tasks, and `region` is not in it. */
bool ebb__units_wait(const ebb__units *u, ebb_region region);

#endif
