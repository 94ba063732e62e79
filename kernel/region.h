/* Regions: who owns whom, and the one function that moves a region on. */
#ifndef EBB__REGION_H
#define EBB__REGION_H

#include "kernel/record.h"

/* Moves a region, and then its parents, as far on as it can go without anybody's code. */
void ebb__region_advance(ebb_rt *rt, ebb__region *r);
/* Open -> Closing. */
static inline void ebb__region_shut(ebb_rt *rt, ebb__region *r) {
    r->state = EBB_REGION_CLOSING;
    ebb__emit_region(rt, EBB_EV_REGION_CLOSING, r, 0, 0, 0);
}
/* Closing -> Draining: something lives in it. */
static inline void ebb__region_drain(ebb_rt *rt, ebb__region *r) {
    r->state = EBB_REGION_DRAINING;
    ebb__emit_region(rt, EBB_EV_REGION_DRAINING, r, 0, 0, 0);
}
/* The pump will move it on: for what verbs may not do themselves. */
void ebb__sweep_later(ebb_rt *rt, ebb__region *r);
/* Does that, for one region: may run hooks. False if there was none. */
bool ebb__sweep_one(ebb_rt *rt);

/* A task of it failed (not: was cancelled), or could not be spawned (task 0). */
void ebb__region_failed(ebb_rt *rt, ebb__region *r, ebb_status status, uint64_t task);

/* For a task whose body is over: cancels the regions that it opened; true if none is left. */
bool ebb__scopes_join(ebb_rt *rt, ebb__task *t);

void ebb__report_of(const ebb_rt *rt, const ebb__region *r, ebb_report *out);

/* The root. EBB_ERR_NOMEM. */
ebb_status ebb__root_open(ebb_rt *rt);

void ebb__leaks_forget(ebb_rt *rt, ebb__region *r);

#endif
