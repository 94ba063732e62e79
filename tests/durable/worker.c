/* A worker over the lab store: from a start to the end, by way of activities, timers, signals and children. */
#include "tests/support/durable_world.h"

static ebb_status two(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob first;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), &first);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, 10 * EBB_SECOND), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "echo", first, NULL), out) : st;
}

static void an_instance_runs_to_its_end(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "two", "42");
    assert_string_equal(durable_state(d, "a"), "Running");
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 1 messages 0");
    assert_int_equal(durable_stats(d).hot, 1);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 42");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(d->started, 2);
    const ebb_worker_stats s = durable_stats(d);
    assert_int_equal(s.completed, 2);
    assert_int_equal(s.turns, 4);
    assert_int_equal(s.replays, 0);
    assert_int_equal(s.hot, 0);
    assert_string_equal(d->log, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(an_instance_runs_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
