/* A run in which futures hear of the ends of a task and a region replays: the kernel calls at the same places. */
#include "tests/support/replay_run.h"

static ebb_status nap(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, EBB_MS);
}

typedef struct band {
    ebb_sleeper sleeper;
    ebb_task task;
    ebb_region region;
    int ends;
} band;

static void count_end(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    assert_int_equal(st, EBB_OK);
    ++*(int *)arg;
}

static ebb_status lead(ebb_cx *cx, void *state) {
    band *b = state;
    if (b->region.id == 0) {
        b->region = ebb_region_open(cx, NULL);
        b->task = ebb_spawn(cx, b->region, nap, &b->sleeper);
        ebb_future *f[] = {ebb_task_ended(cx, b->task), ebb_region_closed(cx, b->region)};
        for (int i = 0; i < 2; i++) (void)ebb_future_on_done(f[i], count_end, &b->ends);
        return EBB_PENDING;
    }
    return ebb_region_join(cx, b->region);
}

static void a_run_with_such_ends_replays(void **state) {
    (void)state;
    run r = record(NULL);
    band b = {.ends = 0};
    ebb_task leader = ebb_spawn(r.host, ebb_runtime_root(r.rt), lead, &b);
    at_pump(&r, 0);
    at_pump(&r, 2 * EBB_MS);
    assert_int_equal(b.ends, 2);
    (void)ebb_task_wake(r.host, leader);
    ebb_region_close(r.host, ebb_runtime_root(r.rt));
    at_pump(&r, 3 * EBB_MS);
    stop_and_compare(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_with_such_ends_replays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
