#include "kernel/clock.h"

#include "kernel/lane.h"
#include "kernel/record.h"

void ebb__clock_set(ebb_runtime *rt, uint64_t now) {
    if (now <= rt->now) return;
    rt->now = now;
    ebb__lane_time(rt);
}

void ebb__clock_read_slow(ebb_runtime *rt) {
    uint64_t now = rt->clock(rt->clock_ctx);
    if (now <= rt->now) return;
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_ADVANCE, .other = now});
    ebb__clock_set(rt, now);
}

void ebb__clock_read_inside_slow(ebb_runtime *rt) {
    uint64_t now = rt->clock != NULL ? rt->clock(rt->clock_ctx) : rt->recorded_clock(rt->clock_ctx);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_CLOCK, .other = now});
    ebb__clock_set(rt, now);
}
