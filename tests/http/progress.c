/* Progress: what a pace shows, and what descriptors leave room for. */
#include "http/progress.h"

#include "http/capacity.h"
#include "tests/support/trace_build.h"

enum { RATE = 500 };

static const uint64_t start = 1000 * EBB_SECOND;

static void silence_is_as_late_as_it_lasts(void **state) {
    ebb__pace p = {0};
    (void)state;
    assert_int_equal(ebb__pace_late(&p, start), 0);
    ebb__pace_wait(&p, start);
    assert_int_equal(ebb__pace_late(&p, start + 30 * EBB_SECOND), 30 * EBB_SECOND);
}

/* A byte a second for a minute: it is as late as if it had sent next to nothing. */
static void a_byte_now_and_then_is_worth_a_byte(void **state) {
    ebb__pace p = {0};
    (void)state;
    ebb__pace_wait(&p, start);
    for (uint64_t s = 1; s <= 60; s++) assert_false(ebb__pace_bytes(&p, start + s * EBB_SECOND, 1, RATE));
    assert_int_equal(ebb__pace_late(&p, start + 60 * EBB_SECOND), 60 * EBB_SECOND - 60 * EBB_SECOND / RATE);
}

static void who_keeps_the_rate_is_never_late(void **state) {
    ebb__pace p = {0};
    (void)state;
    ebb__pace_wait(&p, start);
    for (uint64_t s = 1; s <= 3600; s++) {
        assert_int_equal(ebb__pace_late(&p, start + s * EBB_SECOND), EBB_SECOND);
        assert_true(ebb__pace_bytes(&p, start + s * EBB_SECOND, RATE, RATE));
    }
}

/* Nothing is saved up: what was fast may not be silent for longer. */
static void the_clock_does_not_go_below_zero(void **state) {
    ebb__pace p = {0};
    (void)state;
    ebb__pace_wait(&p, start);
    assert_true(ebb__pace_bytes(&p, start + 1, 1 << 30, RATE));
    assert_true(ebb__pace_bytes(&p, start + 1, UINT64_MAX, RATE));
    assert_int_equal(ebb__pace_late(&p, start + 1 + EBB_SECOND), EBB_SECOND);
}

/* Many short waits, each of which ends with a byte, are a long one. */
static void rests_do_not_wipe_the_clock(void **state) {
    ebb__pace p = {0};
    uint64_t now = start;
    (void)state;
    for (int i = 0; i < 10; i++) {
        ebb__pace_wait(&p, now);
        now += EBB_SECOND;
        (void)ebb__pace_bytes(&p, now, 1, RATE);
        ebb__pace_rest(&p, now);
        assert_int_equal(ebb__pace_late(&p, now), 0);
        now += 100 * EBB_SECOND; /* ours, not the peer's */
    }
    ebb__pace_wait(&p, now);
    assert_int_equal(ebb__pace_late(&p, now), 10 * EBB_SECOND - 10 * EBB_SECOND / RATE);
    assert_false(ebb__pace_bytes(&p, now, 10, RATE));
}

static void bytes_that_nobody_waits_for_count_too(void **state) {
    ebb__pace p = {0};
    (void)state;
    ebb__pace_wait(&p, start);
    ebb__pace_rest(&p, start + 10 * EBB_SECOND);
    assert_false(ebb__pace_bytes(&p, start + 11 * EBB_SECOND, 4 * RATE, RATE));
    ebb__pace_wait(&p, start + 20 * EBB_SECOND);
    assert_int_equal(ebb__pace_late(&p, start + 20 * EBB_SECOND), 6 * EBB_SECOND);
}

static void without_a_rate_any_byte_is_enough(void **state) {
    ebb__pace p = {0};
    (void)state;
    ebb__pace_wait(&p, start);
    assert_false(ebb__pace_bytes(&p, start + EBB_SECOND, 0, EBB_HTTP_NO_RATE));
    assert_true(ebb__pace_bytes(&p, start + 29 * EBB_SECOND, 1, EBB_HTTP_NO_RATE));
    assert_int_equal(ebb__pace_late(&p, start + 29 * EBB_SECOND), 0);
}

static void the_first_nanoseconds_of_a_clock_are_a_time_too(void **state) {
    ebb__pace p = {.shown = EBB_SECOND};
    (void)state;
    ebb__pace_wait(&p, 5);
    assert_int_not_equal(p.since, 0);
    assert_false(ebb__pace_bytes(&p, 6, 0, RATE));
    assert_int_not_equal(p.since, 0);
}

static ebb_http_limits room(uint32_t descriptors, uint32_t connections, uint32_t stalled) {
    ebb_http_limits l = {.connections = connections, .stalled = stalled};
    ebb__room_for_descriptors(&l, descriptors);
    return l;
}

static void descriptors_bound_connections_and_places(void **state) {
    (void)state;
    assert_int_equal(room(896, 0, 0).connections, 448);
    assert_int_equal(room(896, 0, 0).stalled, 224);
    assert_int_equal(room(1 << 20, 0, 0).connections, 10000);
    assert_int_equal(room(1 << 20, 0, 0).stalled, 2048);
    assert_int_equal(room(1 << 20, 50000, 7).connections, 50000);
    assert_int_equal(room(1 << 20, 50000, 7).stalled, 7);
    for (uint32_t n = 1; n < 3000; n++) {
        ebb_http_limits l = room(n, UINT32_MAX, 0);
        assert_true(l.connections >= 1 && l.stalled >= 1);
        if (n >= 18)
            assert_true(l.connections + l.connections / 8 + 1 <= n); /* with those that are told 503 */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_as_late_as_it_lasts),
        cmocka_unit_test(a_byte_now_and_then_is_worth_a_byte),
        cmocka_unit_test(who_keeps_the_rate_is_never_late),
        cmocka_unit_test(the_clock_does_not_go_below_zero),
        cmocka_unit_test(rests_do_not_wipe_the_clock),
        cmocka_unit_test(bytes_that_nobody_waits_for_count_too),
        cmocka_unit_test(without_a_rate_any_byte_is_enough),
        cmocka_unit_test(the_first_nanoseconds_of_a_clock_are_a_time_too),
        cmocka_unit_test(descriptors_bound_connections_and_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
