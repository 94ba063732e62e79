/* Duties: obligations and finalizers, which a task or a region still has to discharge. */
#ifndef EBB__DUTY_H
#define EBB__DUTY_H

#include "kernel/rt.h"

/* The finalizer that runs next for a task whose body is over (for a closer: its region's); NULL: none. */
ebb__duty *ebb__next_finalizer(ebb_rt *rt, ebb__task *t);
/* Polls it once. True if it is over, done or abandoned; false if it waits. */
bool ebb__run_finalizer(ebb_rt *rt, ebb__task *t, ebb__duty *d);

/* What is still reserved is a leak: traced, aborted, counted. Runs hooks. */
void ebb__leak_all(ebb_rt *rt, ebb__task *t);
void ebb__leak_region(ebb_rt *rt, ebb__region *r);

/* Keeps the site of an operation that was abandoned for the region's report, if there is memory. */
ebb_status ebb__operation_keep(ebb_rt *rt, ebb__region *r, const char *site);

/* As ebb_region_defer, for what layers above keep in a region: as long as tasks live there, whoever asks. */
ebb_status ebb__region_defer_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg,
                                   const char *site);

#endif
