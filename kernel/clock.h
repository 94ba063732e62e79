/* The time that spans are counted from. Without a clock hook the time is what the host advanced it to, and
 * none of this does anything. With one, whatever adds a span to the time reads the clock first: the time of
 * the turn may be long ago by then, and a timer that counts from there fires early.
 *
 * A reading is an input, so the journal has it. */
#ifndef EBB__CLOCK_H
#define EBB__CLOCK_H

#include "kernel/rt.h"

/* Moves the time on; it never goes back. */
void ebb__clock_set(ebb_runtime *rt, uint64_t now);

/* Before an operation: recorded as ebb_runtime_advance, if the time has moved. */
void ebb__clock_read_slow(ebb_runtime *rt);
static inline void ebb__clock_read(ebb_runtime *rt) {
    if (rt->clock != NULL) ebb__clock_read_slow(rt);
}

/* Inside an operation or between the calls of a pump, where the kernel itself starts a budget. It is recorded
 * whether or not the time has moved, so that a replay knows at which of these places it stands. */
void ebb__clock_read_inside_slow(ebb_runtime *rt);
static inline void ebb__clock_read_inside(ebb_runtime *rt) {
    if (EBB__UNLIKELY(rt->clock != NULL || rt->recorded_clock != NULL)) ebb__clock_read_inside_slow(rt);
}

#endif
