/* Which lane a task runs in: cancel once it is asked to stop, timed if it has a deadline, else ready.
 * A task stands in at most one lane, and its room there was reserved when it was spawned. */
#ifndef EBB__LANE_H
#define EBB__LANE_H

#include "kernel/rt.h"

/* Reserves what one more task needs. */
bool ebb__lanes_admit(ebb_rt *rt, bool timed);
void ebb__lane_start(ebb_rt *rt);
void ebb__lane_stop(ebb_rt *rt);

static inline ebb_lane ebb__lane_of(const ebb__task *t) {
    return t->told != 0 ? EBB_LANE_CANCEL : t->flags & F_TIMED ? EBB_LANE_TIMED : EBB_LANE_READY;
}

/* Puts a task that is in no lane into the one that its state asks for. */
void ebb__enqueue(ebb_rt *rt, ebb__task *t);
/* The same when its cleanup deadline is at hand: spares a look at its region. */
void ebb__enqueue_cancelled(ebb_rt *rt, ebb__task *t, uint64_t deadline);
/* Takes it out of its lane, if it is in one. */
void ebb__dequeue(ebb_rt *rt, ebb__task *t);
/* The next task of a lane that is not empty; `nth` is for the lab, 0 is the head. */
ebb__task *ebb__lane_pop(ebb_rt *rt, ebb_lane lane, uint32_t nth);
uint32_t ebb__lane_count(const ebb_rt *rt, ebb_lane lane);

/* Makes a task runnable, once. */
void ebb__wake(ebb_rt *rt, ebb__task *t);

/* The same, as an input that the journal has: for awaits whose other side is not the kernel. */
void ebb__wake_waiter(ebb_cx *cx);

/* The end of a task's cleanup budget; EBB_FOREVER if it was not asked to stop. */
uint64_t ebb__cleanup_deadline(const ebb_rt *rt, const ebb__task *t);

#endif
