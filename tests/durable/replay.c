/* Replay: a history makes the code do what it did; changed code is found, with both sides and the line; nothing of a
 * turn that was not committed is left. Every committed turn of these tests is also run twice (tests/support/orch_script.h). */
#include "tests/support/orch_script.h"

static ebb_status two_calls(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob first;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "reserve", in, NULL), &first);
    if (st != EBB_OK) return st;
    return ebb_orch_await(o, ebb_orch_call(o, "charge", first, NULL), out);
}

static void a_sequence_runs_turn_by_turn(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.work_n, 1);
    assert_string_equal(s->ack.work[0].name, "reserve");
    assert_int_equal(s->ack.work[0].activity, 2);
    script_complete(s, 2, "seat 4");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(s->ack.work[0].name, "charge");
    assert_memory_equal(s->ack.work[0].input.at, "seat 4", 6);
    script_complete(s, 4, "paid");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(script_output(s), "paid");
    assert_int_equal(s->work_n, 0);
    script_end(s);
}

static void an_evicted_run_goes_on_where_it_was(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_complete(s, 2, "seat 4");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_complete(s, 4, "paid");
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_string_equal(script_output(s), "paid");
    script_end(s);
}

static void a_refused_commit_leaves_nothing(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_complete(s, 2, "seat 4");
    script_refused(s, EBB_SECOND);
    assert_int_equal(ebb__orch_run_turns(s->run), 1);
    assert_int_equal(script_turn(s, EBB_SECOND), EBB_OK);
    assert_int_equal(s->ack.turn, 2);
    assert_int_equal(s->ack.work[0].activity, 4);
    script_end(s);
}

static void messages_that_concern_nothing_are_ignored(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_complete(s, 99, "never asked");
    script_fire(s, 2);
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_events(s), "");
    script_complete(s, 2, "seat 4");
    script_complete(s, 2, "seat 5"); /* a second end of the same attempt */
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_events(s), "#3 activity_completed step 2 body seat 4\n"
                                          "#4 activity_scheduled \"charge\" body seat 4 attempt 1\n");
    script_end(s);
}

/* ---- changed code ------------------------------------------------------------------------------------------------ */

static ebb_status other_name(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "book", in, NULL), out);
}

static ebb_status other_input(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_call(o, "reserve", ebb_blob_text("8"), NULL), out);
}

static ebb_status other_kind(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_timer(o, EBB_SECOND), out);
}

static ebb_status one_more(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step first = ebb_orch_call(o, "reserve", in, NULL);
    (void)ebb_orch_event(o, "paid");
    return ebb_orch_await(o, first, out);
}

static ebb_status one_less(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "paid"), out);
}

static ebb_status returns(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)o;
    (void)in;
    (void)out;
    return EBB_OK;
}

static void changed_code_is_named_with_both_sides(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    const struct {
        ebb_orch_fn fn;
        const char *says, *asks;
    } all[] = {
        {other_name, "turn 1 has event #2 activity_scheduled \"reserve\" body 7",
         "the code asks for activity_scheduled \"book\""},
        {other_input, "#2 activity_scheduled \"reserve\" body 7", "activity_scheduled \"reserve\" body 8"},
        {other_kind, "#2 activity_scheduled", "timer_created"},
        {one_more, "turn 1 has no more events", "event_awaited \"paid\""},
        {one_less, "#2 activity_scheduled", "event_awaited \"paid\""},
        {returns, "#2 activity_scheduled", "the code asks for completed"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(script_evict(s, all[i].fn), EBB_ERR_NONDETERMINISM);
        const char *said = ebb__orch_run_difference(s->run);
        assert_non_null(strstr(said, all[i].says));
        assert_non_null(strstr(said, all[i].asks));
        if (all[i].fn != returns) assert_non_null(strstr(said, "durable/replay.c:"));
    }
    assert_int_equal(script_evict(s, two_calls), EBB_OK); /* nothing was destroyed */
    script_complete(s, 2, "seat 4");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_end(s);
}

static ebb_status patched(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st;
    if (ebb_orch_patched(o, "insure")) {
        st = ebb_orch_await(o, ebb_orch_call(o, "insure", in, NULL), NULL);
        if (st != EBB_OK) return st;
    }
    st = ebb_orch_await(o, ebb_orch_call(o, "reserve", in, NULL), out);
    if (st != EBB_OK) return st;
    if (ebb_orch_patched(o, "insure")) return EBB_OK;
    return ebb_orch_await(o, ebb_orch_call(o, "charge", *out, NULL), out);
}

static void a_patch_keeps_old_histories_as_they_were(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    s->no_shadow = true; /* it runs the old code */
    assert_int_equal(script_evict(s, patched), EBB_OK);
    script_complete(s, 2, "seat 4");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(s->ack.work[0].name, "charge"); /* the answer stays no */
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_end(s);
}

static void a_patch_takes_the_new_way_in_new_histories(void **state) {
    script *s = script_new(*state, patched, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(s->ack.work[0].name, "insure");
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_complete(s, s->work[0], "");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    script_complete(s, s->work[0], "seat 4");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_string_equal(script_output(s), "seat 4");
    script_end(s);
}

/* ---- what code may know -------------------------------------------------------------------------------------------- */

static ebb_status knows(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *text = ebb_orch_alloc(o, 400), id[37];
    (void)in;
    ebb_orch_new_id(o, id);
    ebb_orch_log(o, EBB_DURABLE_INFO, "first");
    ebb_status st = ebb_orch_await(o, ebb_orch_timer(o, EBB_SECOND), NULL);
    ebb_orch_log(o, EBB_DURABLE_INFO, "second");
    (void)snprintf(text, 400, "%s %llu %016llx %s", id, (unsigned long long)ebb_orch_now(o),
                   (unsigned long long)ebb_orch_random(o), ebb_orch_id(o));
    *out = ebb_blob_text(text);
    return st;
}

static void time_and_random_numbers_are_recorded_and_logs_are_not_repeated(void **state) {
    script *s = script_new(*state, knows, "");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.timers[0].due, s->now + EBB_SECOND);
    assert_int_equal(script_evict(s, NULL), EBB_OK);
    script_fire(s, 2);
    assert_int_equal(script_turn(s, 3 * EBB_SECOND), EBB_OK); /* the shadow compares the result */
    char at[32];
    (void)snprintf(at, sizeof at, " %llu ", (unsigned long long)s->now);
    assert_non_null(strstr(script_output(s), at));
    assert_non_null(strstr(script_output(s), "order-7"));
    assert_string_equal(s->log, "first|second|");
    script_end(s);
}

static ebb_status awaits_elsewhere(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_cx *cx;
    memcpy(&cx, in.at, sizeof cx);
    ebb_sleeper nap = {0};
    if (ebb_sleep(cx, &nap, EBB_SECOND) != EBB_ERR_DURABLE_CONTEXT) return EBB_FAILED;
    if (ebb_await(cx, ebb_after(cx, EBB_SECOND), NULL) != EBB_ERR_DURABLE_CONTEXT) return EBB_FAILED;
    return ebb_orch_await(o, ebb_orch_call(o, "reserve", ebb_blob_text("x"), NULL), out);
}

static void any_other_await_is_refused(void **state) {
    world *w = *state;
    script *s = script_new(w, awaits_elsewhere, "");
    ebb__event e = {.kind = EBB__EVENT_STARTED, .name = {"order", 5}, .body = {&w->host, sizeof w->host}};
    s->inbox_n = 0;
    script_give(s, EBB_PROVIDER_MESSAGE_START, &e);
    assert_int_equal(script_turn(s, 0), EBB_OK);
    assert_int_equal(s->ack.work_n, 1);
    script_end(s);
}

/* ---- non-determinism, found by the double run ------------------------------------------------------------------------ */

static ebb_blob bytes(const void *at, size_t n) {
    return (ebb_blob){at, n};
}

static uint64_t counter;
static int line; /* of the action that differs; the same in every run */

static ebb_status static_counter(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    counter++;
    line = __LINE__ + 1;
    return ebb_orch_await(o, ebb_orch_call(o, "count", bytes(&counter, sizeof counter), NULL), out);
}

static ebb_status a_pointer(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const void *p = ebb_orch_alloc(o, 8);
    (void)in;
    line = __LINE__ + 1;
    return ebb_orch_await(o, ebb_orch_call(o, "point", bytes(&p, sizeof p), NULL), out);
}

static ebb_status __attribute__((noinline)) uninitialised(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    /* Of the stack itself: AddressSanitizer keeps plain locals elsewhere, where no paint is. */
    volatile size_t n = 512;
    char *name = __builtin_alloca(n);
    (void)in;
    memcpy(name, "anna", 5); /* its other bytes are whatever was there */
    line = __LINE__ + 1;
    return ebb_orch_await(o, ebb_orch_call(o, "greet", bytes(name, n), NULL), out);
}

static ebb_status a_clock(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    struct timespec now;
    (void)in;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    line = __LINE__ + 1;
    return ebb_orch_await(o, ebb_orch_call(o, "stamp", bytes(&now.tv_nsec, sizeof now.tv_nsec), NULL), out);
}

static void a_double_run_finds(void **state, ebb_orch_fn fn) {
    script *s = script_new(*state, fn, "");
    char site[40];
    s->no_shadow = true;
    assert_int_equal(script_turn(s, 0), EBB_OK);
    ebb_status st = ebb__orch_run_replay(s->world->host, s->shadow, &s->turns[0]);
    world_settle(s->world);
    if (st == EBB_OK) st = ebb__orch_run_outcome(s->shadow);
    assert_int_equal(st, EBB_ERR_NONDETERMINISM);
    (void)snprintf(site, sizeof site, "durable/replay.c:%d", line);
    assert_non_null(strstr(ebb__orch_run_difference(s->shadow), site));
    script_end(s);
}

static void a_double_run_finds_a_static_counter(void **state) {
    a_double_run_finds(state, static_counter);
}
static void a_double_run_finds_a_pointer(void **state) {
    a_double_run_finds(state, a_pointer);
}
static void a_double_run_finds_an_uninitialised_byte(void **state) {
    a_double_run_finds(state, uninitialised);
}
static void a_double_run_finds_a_clock(void **state) {
    a_double_run_finds(state, a_clock);
}

/* ---- memory and damage --------------------------------------------------------------------------------------------------- */

static void memory_may_fail_at_any_allocation(void **state) {
    for (uint64_t n = 1;; n++) {
        world *w = world_new(NULL, false);
        script *s = script_new(w, two_calls, "7");
        s->no_shadow = true;
        w->memory.fail_at = w->memory.calls + n;
        ebb_status st = script_turn(s, 0);
        const bool failed = w->memory.failures > 0;
        w->memory.fail_at = 0;
        if (st != EBB_OK) {
            assert_int_equal(st, EBB_ERR_NOMEM);
            s->turns_n = 0;
            assert_int_equal(script_evict(s, NULL), EBB_OK); /* and the turn is tried again */
            assert_int_equal(script_turn(s, 0), EBB_OK);
        }
        assert_int_equal(s->ack.work_n, 1);
        script_end(s);
        world_end(w);
        if (!failed) break;
        assert_true(n < 100);
    }
    (void)state;
}

static void a_damaged_turn_is_named(void **state) {
    script *s = script_new(*state, two_calls, "7");
    assert_int_equal(script_turn(s, 0), EBB_OK);
    ((uint8_t *)(uintptr_t)s->turns[0].body.at)[9] ^= 1;
    assert_int_equal(script_evict(s, NULL), EBB_ERR_CORRUPT);
    assert_non_null(strstr(ebb_durable_error(), "turn 1"));
    ((uint8_t *)(uintptr_t)s->turns[0].body.at)[9] ^= 1;
    s->turns[0].turn = 2;
    assert_int_equal(script_evict(s, NULL), EBB_ERR_CORRUPT);
    script_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_sequence_runs_turn_by_turn),
        IN_WORLD(an_evicted_run_goes_on_where_it_was),
        IN_WORLD(a_refused_commit_leaves_nothing),
        IN_WORLD(messages_that_concern_nothing_are_ignored),
        IN_WORLD(changed_code_is_named_with_both_sides),
        IN_WORLD(a_patch_keeps_old_histories_as_they_were),
        IN_WORLD(a_patch_takes_the_new_way_in_new_histories),
        IN_WORLD(time_and_random_numbers_are_recorded_and_logs_are_not_repeated),
        IN_WORLD(any_other_await_is_refused),
        IN_WORLD(a_double_run_finds_a_static_counter),
        IN_WORLD(a_double_run_finds_a_pointer),
        IN_WORLD(a_double_run_finds_an_uninitialised_byte),
        IN_WORLD(a_double_run_finds_a_clock),
        cmocka_unit_test(memory_may_fail_at_any_allocation),
        IN_WORLD(a_damaged_turn_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
