#include "web/bench/work.h"

enum { CROWD = 1000 };

static struct {
    ebb_runtime *rt;
    ebb_region region;
    bench_work work;
    uint32_t n;
} bench;

static ebb_status wakes_itself(ebb_cx *cx, void *state) {
    (void)state;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_status ends_at_once(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK;
}

static ebb_status until_cancelled(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_cancelled(cx) ? EBB_CANCELLED : EBB_PENDING;
}

static void spawn(uint32_t n, ebb_poll_fn poll) {
    for (uint32_t i = 0; i < n; i++) (void)ebb_spawn(ebb_runtime_host(bench.rt), bench.region, poll, NULL);
}

static uint64_t polls(void) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(bench.rt, &s);
    return s.polls;
}

ebb_status bench_prepare(bench_work work, uint32_t n, ebb_allocator a) {
    ebb_runtime_opts opts = {.allocator = a};
    ebb_status st = ebb_runtime_new(&opts, &bench.rt);
    if (st != EBB_OK) return st;
    bench.work = work;
    bench.n = n;
    bench.region = ebb_region_open(ebb_runtime_host(bench.rt), NULL);
    if (work == BENCH_POLL) spawn(CROWD, wakes_itself);
    if (work == BENCH_CANCEL) spawn(n, until_cancelled);
    (void)ebb_runtime_pump(bench.rt, work == BENCH_POLL ? CROWD : UINT32_MAX);
    return EBB_OK;
}

uint64_t bench_run(void) {
    uint64_t before = polls();
    switch (bench.work) {
    case BENCH_POLL: (void)ebb_runtime_pump(bench.rt, bench.n); break;
    case BENCH_SPAWN:
        for (uint32_t i = 0; i < bench.n; i++) {
            spawn(1, ends_at_once);
            (void)ebb_runtime_pump(bench.rt, 1);
        }
        break;
    case BENCH_CANCEL:
        ebb_region_cancel(ebb_runtime_host(bench.rt), bench.region, EBB_CANCEL_USER, "all of you");
        (void)ebb_runtime_pump(bench.rt, UINT32_MAX);
        break;
    }
    uint64_t done = polls() - before;
    ebb_runtime_free(bench.rt);
    return done;
}
