/* An orchestration that fails, or completes, leaves no activity behind, but those that it has shielded. */
#include "tests/support/durable_world.h"

static ebb_status ends(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    for (int i = 0; i < 5; i++) (void)ebb_orch_call(o, "hang", in, NULL);
    const bool shields = *(const char *)in.at == 's';
    if (shields) (void)ebb_orch_shield(o, ebb_orch_call(o, "echo", in, NULL));
    (void)ebb_orch_await(o, ebb_orch_timer(o, EBB_SECOND / 2), NULL);
    *out = in;
    if (*(const char *)in.at == 'c') return EBB_OK;
    return ebb_orch_fail(o, &(ebb_failure){.code = "sold_out", .message = "nothing is left"});
}

static durable *run(void **state, const char *input) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "ends", 1, ends), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "ends", input);
    durable_pass(d, EBB_SECOND / 4);
    assert_true(d->started >= 5);
    durable_pass(d, EBB_SECOND / 2);
    assert_int_equal(d->cancelled, 5);
    return d;
}

static void a_failure_cancels_all(void **state) {
    durable *d = run(state, "f");
    assert_string_equal(durable_state(d, "a"), "Failed sold_out");
    assert_int_equal(d->kind, EBB_CANCEL_SIBLING_FAILED);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
}

static void a_completion_cancels_all(void **state) {
    durable *d = run(state, "c");
    assert_string_equal(durable_state(d, "a"), "Completed c");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
}

static void what_is_shielded_runs_on_and_its_result_is_dropped(void **state) {
    durable *d = run(state, "s");
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 0 messages 0");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(durable_stats(d).completed, 1);
    assert_string_equal(durable_state(d, "a"), "Failed sold_out");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_failure_cancels_all),
        IN_WORLD(a_completion_cancels_all),
        IN_WORLD(what_is_shielded_runs_on_and_its_result_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
