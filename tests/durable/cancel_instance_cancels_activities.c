/* The cancel of an instance: everything outstanding goes in the turn that gets it, and the code may compensate. */
#include "tests/support/durable_world.h"

static ebb_status fan(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    enum { N = 20 };
    ebb_step all[N];
    (void)out;
    for (size_t i = 0; i < N; i++) all[i] = ebb_orch_call(o, "hang", in, NULL);
    return ebb_orch_join(o, N, all);
}

static ebb_status saga(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "hang", in, NULL), NULL);
    (void)out;
    if (st != EBB_CANCELLED) return EBB_FAILED;
    st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), NULL);
    return st == EBB_OK ? EBB_CANCELLED : st;
}

static void request(durable *d, const char *id, const char *reason) {
    assert_int_equal(durable_await(d, ebb_instance_cancel(d->world->host, d->store, id, reason)), EBB_OK);
}

static void all_activities_are_cancelled(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "fan", 1, fan), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "fan", "");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->started, 20);
    request(d, "a", "no longer needed");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->cancelled, 20);
    assert_int_equal(d->kind, EBB_CANCEL_USER);
    assert_string_equal(durable_state(d, "a"), "Cancelled no longer needed");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(durable_await(d, ebb_instance_cancel(d->world->host, d->store, "a", NULL)),
                     EBB_ERR_UNKNOWN_INSTANCE);
    assert_int_equal(durable_await(d, ebb_instance_cancel(d->world->host, d->store, "nobody", NULL)),
                     EBB_ERR_UNKNOWN_INSTANCE);
}

static void code_may_compensate(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "saga", 1, saga), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "saga", "");
    durable_pass(d, EBB_SECOND);
    request(d, "a", "");
    durable_pass(d, EBB_SECOND / 2);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 1 messages 0");
    request(d, "a", "a second one changes nothing");
    durable_pass(d, 2 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Cancelled");
    assert_int_equal(d->ended, 2);
}

static void an_activity_that_waits_for_a_place_never_starts(void **state) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.activities = 1});
    assert_int_equal(ebb_worker_orch(d->worker, "fan", 1, fan), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "fan", "");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 20 claimed 1 timers 0 messages 0");
    request(d, "a", "");
    durable_pass(d, 100 * EBB_SECOND);
    assert_int_equal(d->started, 1); /* the handlers of the other nineteen never ran */
    assert_string_equal(durable_state(d, "a"), "Cancelled");
}

static ebb_status parent(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_child(o, "fan", in, &(ebb_child_opts){.id = "child"}), out);
}

static void children_get_a_cancel_with_their_parent(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "fan", 1, fan), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "parent", 1, parent), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "p", "parent", "");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "child"), "Running");
    request(d, "p", "enough");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "p"), "Cancelled enough");
    assert_string_equal(durable_state(d, "child"), "Cancelled p has cancelled it");
    assert_int_equal(d->cancelled, 20);
}

static ebb_status stubborn(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    (void)in;
    (void)out;
    d->started++;
    (void)ebb_mask(cx);
    for (;;) {
        ebb_sleeper nap = {0};
        if (ebb_sleep(cx, &nap, EBB_SECOND) != EBB_OK) break; /* only force ends it */
    }
    d->ended++;
    d->at = ebb_now(cx);
    return EBB_CANCELLED;
}

static ebb_status calls_stubborn(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "stubborn", in, NULL), out);
}

static void after_its_grace_it_is_forced(void **state) {
    durable *d = durable_new(*state, NULL);
    const ebb_activity_opts opts = {.grace = 3 * EBB_SECOND};
    assert_int_equal(ebb_worker_activity(d->worker, "stubborn", stubborn, d, &opts), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "calls", 1, calls_stubborn), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "calls", "");
    durable_pass(d, EBB_SECOND);
    const uint64_t then = ebb_now(d->world->host);
    request(d, "a", "");
    durable_pass(d, 2 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Cancelled"); /* it waits for nobody */
    assert_int_equal(d->ended, 0);
    durable_pass(d, 3 * EBB_SECOND);
    assert_int_equal(d->ended, 1);
    assert_true(d->at - then <= 3 * EBB_SECOND + 100 * EBB_MS && d->at - then >= 2 * EBB_SECOND);
    assert_int_equal(durable_stats(d).running, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(all_activities_are_cancelled),
        IN_WORLD(code_may_compensate),
        IN_WORLD(an_activity_that_waits_for_a_place_never_starts),
        IN_WORLD(children_get_a_cancel_with_their_parent),
        IN_WORLD(after_its_grace_it_is_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
