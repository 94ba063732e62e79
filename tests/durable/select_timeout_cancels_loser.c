/* A timer wins a select against an activity: its row goes in the commit of that turn, and the activity is cancelled. */
#include "tests/support/durable_world.h"

static ebb_status race(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step both[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_timer(o, 30 * EBB_SECOND)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, both, &won);
    if (st != EBB_OK || won != 1) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
}

static void the_loser_is_cancelled_with_the_cause(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "race", 1, race), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    const uint64_t start = world_now(d->world);
    durable_start(d, "a", "race", "7");
    durable_pass(d, 29 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 1 messages 0");
    assert_int_equal(d->started, 1);
    durable_pass(d, EBB_SECOND + EBB_SECOND / 2);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_RACE_LOST);
    assert_true(d->at - start < 30 * EBB_SECOND + 10 * EBB_MS);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 0 messages 0"); /* of the echo */
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    assert_int_equal(durable_stats(d).cancelled, 1);
    assert_int_equal(durable_stats(d).late_acks, 1);
    assert_int_equal(d->warnings + d->errors, 0); /* it was requested: that it ended is information */
}

static ebb_status loses_at_once(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step both[] = {ebb_orch_event(o, "go"), ebb_orch_call(o, "hang", in, NULL)};
    size_t won;
    (void)out;
    ebb_status st = ebb_orch_select(o, 2, both, &won);
    return st == EBB_OK && won == 0 ? EBB_OK : EBB_FAILED;
}

static void a_call_that_is_lost_in_its_turn_never_starts(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "race", 1, loses_at_once), EBB_OK);
    durable_start(d, "a", "race", "7");
    durable_signal(d, "a", "go", "");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed");
    assert_int_equal(d->started, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_loser_is_cancelled_with_the_cause),
        IN_WORLD(a_call_that_is_lost_in_its_turn_never_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
