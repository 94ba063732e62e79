/* An attempt that is out of time is cancelled and its row deleted; the next attempt has a row of its own. */
#include "tests/support/durable_world.h"

static ebb_status twice(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts opts = {.attempts = 2,
                                .backoff = EBB_BACKOFF_FIXED,
                                .pause = 5 * EBB_SECOND,
                                .timeout = 10 * EBB_SECOND,
                                .retry_timeouts = true};
    return ebb_orch_await(o, ebb_orch_call(o, "hang", in, &opts), out);
}

static void each_attempt_is_cancelled_in_its_time(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "twice", 1, twice), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "twice", "");
    durable_pass(d, 11 * EBB_SECOND);
    assert_int_equal(d->started, 1);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_TIMEOUT);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 1 messages 0"); /* the pause */
    durable_pass(d, 5 * EBB_SECOND);
    assert_int_equal(d->started, 2);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 1 messages 0");
    durable_pass(d, 10 * EBB_SECOND);
    assert_int_equal(d->cancelled, 2);
    assert_string_equal(durable_state(d, "a"), "Failed EBB_TIMEOUT");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(each_attempt_is_cancelled_in_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
