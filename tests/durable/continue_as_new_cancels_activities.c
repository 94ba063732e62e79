/* Continue-as-new: what was outstanding goes with the execution; signals, state and the instance go on. */
#include "tests/support/durable_world.h"

static ebb_status nightly(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob note;
    const int night = *(const char *)in.at - '0';
    char next[2] = {(char)('0' + night + 1), 0}, key[2] = {(char)('a' + night), 0};
    (void)ebb_orch_call(o, "hang", in, NULL);
    ebb_status st = ebb_orch_await(o, ebb_orch_timer(o, 10 * EBB_SECOND), NULL);
    if (st != EBB_OK) return st;
    if (ebb_orch_set(o, key, ebb_blob_text("done")) != EBB_OK) return EBB_FAILED;
    if (night < 3) return ebb_orch_continue_as_new(o, ebb_blob_text(next), 0);
    if (!ebb_orch_get(o, "a", &note) || ebb_orch_execution(o) != 4) return EBB_FAILED;
    if (ebb_orch_receive(o, "note", &note) != EBB_OK) return EBB_FAILED;
    *out = note;
    return EBB_OK;
}

static void each_execution_takes_its_activities_along(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "nightly", 1, nightly), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "nightly", "0");
    durable_signal(d, "a", "note", "carried");
    for (int night = 1; night <= 4; night++) {
        durable_pass(d, 9 * EBB_SECOND);
        assert_int_equal(d->started, night);
        assert_int_equal(d->cancelled, night - 1);
        assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 1 messages 0");
        durable_pass(d, EBB_SECOND);
    }
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed carried");
    assert_int_equal(d->cancelled, 4);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(each_execution_takes_its_activities_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
