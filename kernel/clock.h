/* The start of durations. Without a clock hook the time is what the host advanced it to, and these functions do
 * nothing. With one, every operation that adds a duration to the time reads the clock first: the current turn may
 * have begun long ago, and a timer that counts from there would fire early.
 *
 * A reading is an input, so it is journaled. */
#ifndef EBB__CLOCK_H
#define EBB__CLOCK_H

#include "kernel/rt.h"

/* Advances the time; it never goes back. */
void ebb__clock_set(ebb_runtime *rt, uint64_t now);

/* For use before an operation: journaled as ebb_runtime_advance if the time has moved. */
void ebb__clock_read_slow(ebb_runtime *rt);
static inline void ebb__clock_read(ebb_runtime *rt) {
    if (rt->clock != NULL) ebb__clock_read_slow(rt);
}

/* For use inside an operation or between the calls of a pump, where the kernel itself starts a budget. Always
 * journaled, even if the time has not moved, so that a replay finds one reading for each of these places. */
void ebb__clock_read_inside_slow(ebb_runtime *rt);
static inline void ebb__clock_read_inside(ebb_runtime *rt) {
    if (EBB__UNLIKELY(rt->clock != NULL || rt->recorded_clock != NULL)) ebb__clock_read_inside_slow(rt);
}

#endif
