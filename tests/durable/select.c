/* Join and select: the lowest event number wins; losers go in the commit of the same turn, but for those that are kept
 * or shielded; signals that were lost are given back; bad ids are named. */
#include "tests/support/orch_script.h"

static ebb_status race(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step both[] = {ebb_orch_call(o, "charge", in, NULL), ebb_orch_timer(o, 30 * EBB_SECOND)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, both, &won);
    if (st != EBB_OK) return st;
    if (won == 0) return ebb_orch_await(o, both[0], out);
    if (ebb_orch_await(o, both[0], NULL) != EBB_CANCELLED) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_call(o, "release", in, NULL), out);
}

static void a_timeout_cancels_the_call_in_its_turn(void **state) {
    script *s = script_new(*state, race, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_true(script_has_work(s, 2) && script_has_timer(s, 3));
    script_fire(s, 3);
    assert_int_equal(script_turn(s, 30 * EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.cancelled_n, 1);
    assert_int_equal(s->ack.cancelled[0].activity, 2);
    assert_int_equal(s->ack.cancelled[0].cause, EBB_CANCEL_RACE_LOST);
    assert_false(script_has_work(s, 2));
    script_complete(s, 2, "too late");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_events(s), "");
    script_end(s);
}

static void the_call_that_wins_deletes_the_timer(void **state) {
    script *s = script_new(*state, race, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_complete(s, 2, "paid");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(script_output(s), "paid");
    assert_int_equal(s->timers_n, 0);
    script_end(s);
}

static void the_lowest_event_number_wins(void **state) {
    for (int timer_first = 0; timer_first < 2; timer_first++) {
        script *s = script_new(*state, race, "7");
        assert_int_equal(script_turn(s, 0), EBB_OK);
        if (timer_first) script_fire(s, 3);
        script_complete(s, 2, "paid");
        if (!timer_first) script_fire(s, 3);
        assert_int_equal(script_turn(s, 30 * EBB_SECOND), EBB_OK);
        if (timer_first) assert_string_equal(s->ack.work[0].name, "release");
        else assert_string_equal(script_output(s), "paid");
        script_end(s);
    }
}

static ebb_status lost_at_once(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step go = ebb_orch_event(o, "go");
    ebb_status st = ebb_orch_await(o, go, NULL);
    if (st != EBB_OK) return st;
    ebb_step three[] = {ebb_orch_call(o, "a", in, NULL), ebb_orch_event(o, "go"), ebb_orch_timer(o, 1),
                        ebb_orch_child(o, "child", in, NULL)};
    size_t won;
    st = ebb_orch_select(o, 4, three, &won);
    (void)out;
    return st == EBB_OK && won == 1 ? ebb_orch_await(o, ebb_orch_timer(o, 5), NULL) : EBB_FAILED;
}

static void what_is_scheduled_and_lost_in_one_turn_is_in_no_queue(void **state) {
    script *s = script_new(*state, lost_at_once, "7");
    script_signal(s, "go", "1");
    script_signal(s, "go", "2");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.work_n, 0);
    assert_int_equal(s->ack.cancelled_n, 0);
    assert_int_equal(s->ack.timers_n, 1);
    assert_int_equal(s->ack.timers_cancelled_n, 0);
    assert_string_equal(s->said, "");
    assert_non_null(strstr(script_events(s), "activity_scheduled \"a\""));
    assert_non_null(strstr(script_events(s), "child_started"));
    assert_non_null(strstr(script_events(s), "step_cancelled"));
    script_end(s);
}

static ebb_status gives_back(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step both[] = {ebb_orch_event(o, "paid"), ebb_orch_call(o, "charge", in, NULL)};
    size_t won;
    ebb_blob first, second;
    ebb_status st = ebb_orch_select(o, 2, both, &won);
    if (st != EBB_OK || won != 1) return EBB_FAILED;
    if (ebb_orch_await(o, both[0], NULL) != EBB_CANCELLED) return EBB_FAILED;
    if (ebb_orch_receive(o, "paid", &first) != EBB_OK) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_event(o, "paid"), &second) != EBB_OK) return EBB_FAILED;
    if (ebb_orch_receive(o, "paid", out) != EBB_PENDING) return EBB_FAILED;
    char *text = ebb_orch_alloc(o, 8);
    memcpy(text, first.at, 1);
    memcpy(text + 1, second.at, 1);
    *out = ebb_blob_text(text);
    return EBB_OK;
}

static void a_lost_wait_gives_its_signal_back_as_the_oldest(void **state) {
    script *s = script_new(*state, gives_back, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_complete(s, 3, "paid");
    script_signal(s, "paid", "1");
    script_signal(s, "paid", "2");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "12");
    assert_int_equal(s->ack.unread, 0);
    script_end(s);
}

static ebb_status keeps(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[] = {ebb_orch_keep(o, ebb_orch_call(o, "kept", in, NULL)),
                      ebb_orch_shield(o, ebb_orch_call(o, "shielded", in, NULL)), ebb_orch_timer(o, 1)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 3, all, &won);
    if (st != EBB_OK || won != 2) return EBB_FAILED;
    if (ebb_orch_join(o, 2, all) != EBB_OK) return EBB_FAILED;
    return ebb_orch_await(o, all[1], out);
}

static void kept_and_shielded_steps_lose_no_select(void **state) {
    script *s = script_new(*state, keeps, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_fire(s, 4);
    assert_int_equal(script_turn(s, 1), EBB_OK);
    assert_int_equal(s->ack.cancelled_n, 0);
    assert_int_equal(s->work_n, 2);
    script_complete(s, 2, "one");
    assert_int_equal(script_turn(s, 1), EBB_OK);
    script_complete(s, 3, "two");
    assert_int_equal(script_turn(s, 1), EBB_OK);
    assert_string_equal(script_output(s), "two");
    script_end(s);
}

static ebb_status many(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    enum { N = 1000 };
    ebb_step *all = ebb_orch_alloc(o, N * sizeof *all);
    (void)out;
    for (size_t i = 0; i < N; i++) all[i] = ebb_orch_call(o, "part", in, NULL);
    size_t won;
    ebb_status st = ebb_orch_select(o, N, all, &won);
    if (st != EBB_OK || won != 500) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_timer(o, 1), NULL);
}

static void a_thousand_losers_are_one_ack(void **state) {
    script *s = script_new(*state, many, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->work_n, 1000);
    script_complete(s, 502, "");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.cancelled_n, 999);
    assert_int_equal(s->work_n, 0);
    script_end(s);
}

static ebb_status joins(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[] = {ebb_orch_call(o, "a", in, NULL), ebb_orch_call(o, "b", in, NULL),
                      ebb_orch_call(o, "c", in, NULL)};
    ebb_status st = ebb_orch_join(o, 3, all);
    char *text = ebb_orch_alloc(o, 100);
    (void)snprintf(text, 100, "%d %s", st, ebb_orch_failure(o)->code);
    *out = ebb_blob_text(text);
    return ebb_orch_await(o, all[0], NULL) == EBB_OK ? EBB_OK : EBB_FAILED;
}

static void a_join_waits_for_all_and_has_the_first_failure(void **state) {
    script *s = script_new(*state, joins, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_fail(s, 4, EBB_FAILED, "late", false);
    script_fail(s, 3, EBB_FAILED, "later", false);
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->work_n, 1);
    script_complete(s, 2, "");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "-3 late");
    script_end(s);
}

/* ---- bad ids and limits -------------------------------------------------------------------------------------------- */

static ebb_status misuses(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    static char large[EBB_DURABLE_PAYLOAD + 1], long_name[EBB_DURABLE_ID + 2];
    memset(long_name, 'n', EBB_DURABLE_ID + 1);
    const ebb_blob much = {large, sizeof large};
    const ebb_step t = ebb_orch_timer(o, 1);
    const ebb_step none = {0}, foreign = {t.id ^ UINT64_C(3) << 48}, made_up = {t.id + 1000};
    size_t won;
    *out = ebb_blob_text("ok");
    if (ebb_orch_await(o, none, NULL) != EBB_ERR_STALE) return EBB_FAILED;
    if (ebb_orch_await(o, made_up, NULL) != EBB_ERR_STALE) return EBB_FAILED;
    if (ebb_orch_await(o, foreign, NULL) != EBB_ERR_FOREIGN) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_call(o, "", in, NULL), NULL) != EBB_ERR_INVALID) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_call(o, NULL, in, NULL), NULL) != EBB_ERR_INVALID) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_call(o, "tab\t", in, NULL), NULL) != EBB_ERR_INVALID) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_child(o, "c", in, &(ebb_child_opts){.id = ".."}), NULL) != EBB_ERR_INVALID)
        return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_event(o, long_name), NULL) != EBB_ERR_INVALID) return EBB_FAILED;
    if (ebb_orch_await(o, ebb_orch_call(o, "a", much, NULL), NULL) != EBB_ERR_LIMIT) return EBB_FAILED;
    if (strstr(ebb_durable_error(), "2097153 bytes (2097152)") == NULL) return EBB_FAILED;
    if (ebb_orch_select(o, 0, NULL, &won) != EBB_ERR_INVALID) return EBB_FAILED;
    const ebb_step stale[] = {t, none}, bad[] = {t, ebb_orch_call(o, "", in, NULL)};
    if (ebb_orch_select(o, 2, stale, &won) != EBB_ERR_STALE) return EBB_FAILED;
    if (ebb_orch_await(o, t, NULL) != EBB_OK || ebb_orch_await(o, t, NULL) != EBB_ERR_CONSUMED)
        return EBB_FAILED;
    if (ebb_orch_select(o, 1, &t, &won) != EBB_ERR_CONSUMED) return EBB_FAILED;
    return ebb_orch_join(o, 1, &bad[1]) == EBB_ERR_INVALID ? EBB_OK : EBB_FAILED;
}

static void bad_ids_and_limits_are_named(void **state) {
    script *s = script_new(*state, misuses, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_fire(s, 2);
    assert_int_equal(script_turn(s, 1), EBB_OK);
    assert_string_equal(script_output(s), "ok");
    script_end(s);
}

static ebb_status too_many(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    for (int i = 0; i < EBB_DURABLE_ACTIONS; i++) (void)ebb_orch_timer(o, 1);
    *out = ebb_blob_text("ok");
    return ebb_orch_await(o, ebb_orch_call(o, "a", in, NULL), NULL) == EBB_ERR_LIMIT ? EBB_OK : EBB_FAILED;
}

static void actions_of_a_turn_are_limited(void **state) {
    script *s = script_new(*state, too_many, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "ok");
    script_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_timeout_cancels_the_call_in_its_turn),
        IN_WORLD(the_call_that_wins_deletes_the_timer),
        IN_WORLD(the_lowest_event_number_wins),
        IN_WORLD(what_is_scheduled_and_lost_in_one_turn_is_in_no_queue),
        IN_WORLD(a_lost_wait_gives_its_signal_back_as_the_oldest),
        IN_WORLD(kept_and_shielded_steps_lose_no_select),
        IN_WORLD(a_thousand_losers_are_one_ack),
        IN_WORLD(a_join_waits_for_all_and_has_the_first_failure),
        IN_WORLD(bad_ids_and_limits_are_named),
        IN_WORLD(actions_of_a_turn_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
