/* The cancel of an instance, its ends, attempts of a call, continue-as-new, state: what a turn commits of them. */
#include "tests/support/orch_script.h"

static ebb_status saga(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step charge = ebb_orch_shield(o, ebb_orch_call(o, "charge", in, NULL));
    const ebb_step mail = ebb_orch_call(o, "mail", in, NULL), t = ebb_orch_timer(o, EBB_SECOND);
    const ebb_step child = ebb_orch_child(o, "ship", in, NULL), e = ebb_orch_event(o, "go");
    const ebb_step all[] = {mail, t, child, e};
    ebb_status st = ebb_orch_join(o, 4, all);
    if (st != EBB_CANCELLED || !ebb_orch_cancelled(o)) return st;
    for (size_t i = 0; i < 4; i++) {
        if (ebb_orch_await(o, all[i], NULL) != EBB_CANCELLED) return EBB_FAILED;
    }
    st = ebb_orch_await(o, charge, out); /* it was shielded: has it happened? */
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "refund", *out, NULL), NULL);
    return st == EBB_OK ? EBB_CANCELLED : st;
}

static void a_cancel_takes_all_but_the_shielded_and_lets_code_compensate(void **state) {
    script *s = script_new(*state, saga, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->work_n, 2);
    script_cancel(s, "closed by the operator");
    script_complete(s, 3, "the mail was sent"); /* in the same batch, after the cancel */
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.cancelled_n, 1);
    assert_int_equal(s->ack.cancelled[0].activity, 3);
    assert_true(script_has_work(s, 2));
    assert_int_equal(s->timers_n, 1); /* of the cleanup */
    assert_non_null(strstr(s->said, "6 order-7/5-"));
    assert_int_equal(s->ack.ends, 0);
    script_cancel(s, "again");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(script_events(s), "");
    script_complete(s, 2, "receipt");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(s->ack.work[0].name, "refund");
    script_complete(s, s->ack.work[0].activity, "");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_CANCELLED);
    assert_string_equal(s->ack.text, "closed by the operator");
    assert_int_equal(s->timers_n, 0);
    script_end(s);
}

static void a_cleanup_that_takes_too_long_is_terminated(void **state) {
    script *s = script_new(*state, saga, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_cancel(s, "");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.timers[0].due, s->now + UINT64_C(86400) * EBB_SECOND);
    script_fire(s, s->ack.timers[0].step);
    assert_int_equal(script_turn(s, UINT64_C(86400) * EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_TERMINATED);
    assert_true(script_has_work(s, 2)); /* what is shielded runs on */
    script_end(s);
}

static ebb_status plain(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "a", in, NULL), out);
}

static void a_cancel_before_the_first_turn_starts_nothing(void **state) {
    script *s = script_new(*state, plain, "7");
    script_cancel(s, "early");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_CANCELLED);
    assert_int_equal(s->ack.work_n, 0);
    script_end(s);
}

static ebb_status fails(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)out;
    for (int i = 0; i < 3; i++) (void)ebb_orch_call(o, "a", in, NULL);
    (void)ebb_orch_shield(o, ebb_orch_call(o, "b", in, NULL));
    (void)ebb_orch_child(o, "c", in, &(ebb_child_opts){.id = "c-1"});
    (void)ebb_orch_child(o, "d", in, &(ebb_child_opts){.id = "d-1", .detached = true});
    (void)ebb_orch_await(o, ebb_orch_timer(o, 1), NULL);
    return ebb_orch_fail(o, &(ebb_failure){.code = "sold_out", .message = "nothing is left"});
}

static void a_failure_cancels_what_is_outstanding(void **state) {
    script *s = script_new(*state, fails, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->work_n, 4);
    assert_string_equal(s->said, "1 c-1|1 d-1|");
    script_fire(s, s->timers[0]);
    assert_int_equal(script_turn(s, 1), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_FAILED);
    assert_int_equal(s->work_n, 1);
    assert_true(script_has_work(s, 5));
    assert_string_equal(s->said, "6 c-1|");
    assert_int_equal(s->ack.cancelled[0].cause, EBB_CANCEL_SIBLING_FAILED);
    assert_non_null(strstr(script_events(s), "failed \"nothing is left\" \"sold_out\"") != NULL
                        ? script_events(s)
                        : strstr(script_events(s), "\"sold_out\" \"nothing is left\""));
    script_end(s);
}

/* ---- attempts --------------------------------------------------------------------------------------------------- */

static ebb_status retries(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts opts = {.attempts = 3,
                                .backoff = EBB_BACKOFF_EXPONENTIAL,
                                .pause = 2 * EBB_SECOND,
                                .timeout = 10 * EBB_SECOND,
                                .retry_timeouts = true,
                                .tag = "gpu"};
    return ebb_orch_await(o, ebb_orch_call(o, "render", in, &opts), out);
}

static void attempts_have_ids_pauses_and_timeouts_of_their_own(void **state) {
    script *s = script_new(*state, retries, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(s->ack.work[0].queue, "render@gpu");
    assert_int_equal(s->ack.timers[0].due, s->now + 10 * EBB_SECOND);
    script_fail(s, 2, EBB_FAILED, "busy", false);
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->work_n, 0);
    assert_int_equal(s->timers_n, 1); /* the pause, and not the timeout */
    assert_int_equal(s->ack.timers[0].due, s->now + 2 * EBB_SECOND);
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_fire(s, s->timers[0]);
    assert_int_equal(script_turn(s, 2 * EBB_SECOND), EBB_OK);
    const uint64_t second = s->ack.work[0].activity;
    assert_true(second > 2);
    assert_int_equal(s->ack.work[0].attempt, 2);
    script_fire(s, s->timers[0]); /* out of time */
    assert_int_equal(script_turn(s, 10 * EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.cancelled[0].activity, second);
    assert_int_equal(s->ack.cancelled[0].cause, EBB_CANCEL_TIMEOUT);
    assert_int_equal(s->ack.timers[0].due, s->now + 4 * EBB_SECOND);
    script_fire(s, s->timers[0]);
    assert_int_equal(script_turn(s, 4 * EBB_SECOND), EBB_OK);
    script_fail(s, s->work[0], EBB_FAILED, "busy", false);
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_FAILED);
    assert_int_equal(s->timers_n, 0);
    script_end(s);
}

static void a_final_failure_gets_no_other_attempt(void **state) {
    script *s = script_new(*state, retries, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_fail(s, 2, EBB_FAILED, "declined", true);
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_FAILED);
    script_end(s);
}

static ebb_status times_out(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts opts = {.attempts = 3, .timeout = 10 * EBB_SECOND};
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "render", in, &opts), out);
    return st == EBB_TIMEOUT ? EBB_OK : EBB_FAILED;
}

static void a_timeout_is_retried_only_if_the_policy_says_so(void **state) {
    script *s = script_new(*state, times_out, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_fire(s, 3);
    script_complete(s, 2, "in the same batch, later");
    assert_int_equal(script_turn(s, 10 * EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.ends, EBB_INSTANCE_COMPLETED);
    assert_int_equal(s->work_n, 0);
    script_end(s);
}

/* ---- continue-as-new and state ------------------------------------------------------------------------------------- */

static ebb_status nightly(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_blob nothing = {NULL, 0};
    ebb_blob seen;
    (void)out;
    (void)ebb_orch_call(o, "report", in, NULL);
    if (ebb_orch_set(o, "nights", ebb_blob_text("1")) != EBB_OK || !ebb_orch_get(o, "nights", &seen))
        return EBB_FAILED;
    if (ebb_orch_set(o, "gone", ebb_blob_text("x")) != EBB_OK) return EBB_FAILED;
    if (ebb_orch_set(o, "gone", nothing) != EBB_OK || ebb_orch_get(o, "gone", &seen)) return EBB_FAILED;
    if (ebb_orch_set_status(o, ebb_blob_text("\"asleep\"")) != EBB_OK) return EBB_FAILED;
    (void)ebb_orch_await(o, ebb_orch_timer(o, 1), NULL);
    return ebb_orch_continue_as_new(o, ebb_blob_text("8"), 2);
}

static void continue_as_new_takes_state_and_signals_along(void **state) {
    script *s = script_new(*state, nightly, "7");
    script_signal(s, "go", "1");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.unread, 1);
    assert_int_equal(s->ack.values_n, 2);
    assert_null(s->ack.values[1].value.at);
    assert_memory_equal(s->ack.custom->at, "\"asleep\"", 8);
    script_signal(s, "go", "2");
    script_fire(s, s->timers[0]);
    assert_int_equal(script_turn(s, 1), EBB_OK);
    assert_int_equal(s->work_n, 0);
    assert_int_equal(s->ack.ends, 0);
    assert_int_equal(s->ack.next_version, 2);
    assert_null(s->ack.custom);
    ebb__event_reader r, list;
    ebb__event next, e;
    ebb__event_reader_list(&r, *s->ack.next);
    assert_int_equal(ebb__event_read(&r, &next), EBB_OK);
    assert_int_equal(next.kind, EBB__EVENT_STARTED);
    assert_memory_equal(next.body.at, "8", 1);
    assert_int_not_equal(next.seed.at[0], 42);
    ebb__event_reader_list(&list, next.values);
    assert_int_equal(ebb__event_read(&list, &e), EBB_OK);
    assert_memory_equal(e.key.at, "nights", 6);
    assert_int_equal(ebb__event_read(&list, &e), EBB_ERR_EOF);
    ebb__event_reader_list(&list, next.carried);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(ebb__event_read(&list, &e), EBB_OK);
        assert_int_equal(*(const char *)e.body.at, '0' + i);
    }
    script_end(s);
}

static ebb_status counts_values(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    static char large[256 << 10];
    char key[16];
    (void)in;
    *out = ebb_blob_text("ok");
    for (int i = 0; i < EBB_DURABLE_VALUES; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        if (ebb_orch_set(o, key, ebb_blob_text("v")) != EBB_OK) return EBB_FAILED;
    }
    if (ebb_orch_set(o, "one more", ebb_blob_text("v")) != EBB_ERR_LIMIT) return EBB_FAILED;
    const ebb_blob much = {large, sizeof large};
    return ebb_orch_set(o, "k0", much) == EBB_ERR_LIMIT ? EBB_OK : EBB_FAILED;
}

static void values_are_limited(void **state) {
    script *s = script_new(*state, counts_values, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "ok");
    script_end(s);
}

/* ---- children ---------------------------------------------------------------------------------------------------------- */

static ebb_status parent(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_child(o, "ship", in, &(ebb_child_opts){.id = "taken"}), NULL);
    if (st != EBB_ERR_EXISTS) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_child(o, "ship", in, NULL), out);
}

static void a_child_ends_with_its_output_or_the_name_of_its_error(void **state) {
    script *s = script_new(*state, parent, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    ebb__event_reader r;
    ebb__event e;
    ebb__event_reader_list(&r, s->ack.outgoing[0].exists);
    assert_int_equal(ebb__event_read(&r, &e), EBB_OK);
    script_give(s, EBB_PROVIDER_MESSAGE_CHILD, &e);
    assert_int_equal(script_turn(s, 0), EBB_OK);
    e = (ebb__event){.kind = EBB__EVENT_CHILD_COMPLETED, .step = 99, .body = ebb_blob_text("there")};
    e.id = (ebb__event_text){s->ack.outgoing[0].id, strlen(s->ack.outgoing[0].id)};
    script_give(s, EBB_PROVIDER_MESSAGE_CHILD, &e); /* known by its id, whatever the step */
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "there");
    script_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_cancel_takes_all_but_the_shielded_and_lets_code_compensate),
        IN_WORLD(a_cleanup_that_takes_too_long_is_terminated),
        IN_WORLD(a_cancel_before_the_first_turn_starts_nothing),
        IN_WORLD(a_failure_cancels_what_is_outstanding),
        IN_WORLD(attempts_have_ids_pauses_and_timeouts_of_their_own),
        IN_WORLD(a_final_failure_gets_no_other_attempt),
        IN_WORLD(a_timeout_is_retried_only_if_the_policy_says_so),
        IN_WORLD(continue_as_new_takes_state_and_signals_along),
        IN_WORLD(values_are_limited),
        IN_WORLD(a_child_ends_with_its_output_or_the_name_of_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
