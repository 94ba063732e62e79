/* A timer that nobody waits for any more is disarmed by the pump that hears of it: nothing is due for it, and the
 * host does not wake up for it. */
#include "tests/support/future_world.h"

#define HOUR (3600 * EBB_SECOND)

static uint32_t timers(const future_world *fw) {
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(fw->rt, &stats);
    return stats.timers;
}

/* The next time at which one is due; EBB_FOREVER: none is armed. */
static void armed_for(future_world *fw, uint64_t due) {
    future_settle(fw);
    assert_int_equal(timers(fw), due == EBB_FOREVER ? 0 : 1);
    /* the wheel may be looked at earlier, to move what is far away */
    if (due == EBB_FOREVER) assert_int_equal(ebb_runtime_next_due(fw->rt), EBB_FOREVER);
    else assert_true(ebb_runtime_next_due(fw->rt) <= due);
}

static ebb_future *make_never(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_future_never(cx);
}

static ebb_future *repeat(ebb_cx *cx, uint64_t n, void *arg) {
    (void)n;
    (void)arg;
    return ebb_future_ready(cx, ebb_value_none());
}

static ebb_future *fail_once_more(ebb_cx *cx, uint32_t attempt, void *arg) {
    (void)attempt;
    (void)arg;
    return ebb_future_failed(cx, EBB_FAILED);
}

static ebb_future *after(ebb_cx *cx) {
    return ebb_after(cx, HOUR);
}

static ebb_future *within(ebb_cx *cx) {
    return ebb_within(cx, ebb_future_never(cx), HOUR);
}

static ebb_future *delay(ebb_cx *cx) {
    return ebb_future_delay(cx, HOUR, make_never, NULL);
}

static ebb_future *schedule(ebb_cx *cx) {
    return ebb_future_repeat(cx, HOUR, repeat, NULL);
}

static ebb_future *retry(ebb_cx *cx) {
    const ebb_retry_opts opts = {.attempts = 3, .pause = HOUR};
    return ebb_retry(cx, &opts, fail_once_more, NULL);
}

typedef ebb_future *(*make_fn)(ebb_cx *cx);
static const make_fn makes[] = {after, within, delay, schedule, retry};
enum { MAKES = 5 };

static void one_that_is_cancelled_is_disarmed(void **state) {
    future_world *fw = *state;
    for (size_t i = 0; i < MAKES; i++) {
        ebb_future *f = makes[i](fw->host);
        armed_for(fw, HOUR);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        armed_for(fw, EBB_FOREVER);
        ebb_future_drop(f);
    }
}

static void one_that_has_lost_is_disarmed(void **state) {
    future_world *fw = *state;
    for (size_t i = 0; i < MAKES; i++) {
        ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
        ebb_future *two[] = {makes[i](fw->host), p};
        ebb_future *f = ebb_race(fw->host, 2, two);
        armed_for(fw, HOUR);
        assert_int_equal(ebb_promise_settle(p, ebb_value_int(1)), EBB_OK);
        armed_for(fw, EBB_FOREVER);
        assert_int_equal(ebb_future_status_of(f), EBB_OK);
        ebb_future_drop(f);
    }
}

static void a_within_that_is_in_time_is_disarmed(void **state) {
    future_world *fw = *state;
    const ebb_status ends[] = {EBB_OK, EBB_FAILED, EBB_CANCELLED};
    for (size_t i = 0; i < 3; i++) {
        ebb_future *p = ebb_promise_new(fw->host, NULL, NULL);
        ebb_future *f = ebb_within(fw->host, p, HOUR);
        armed_for(fw, HOUR);
        assert_int_equal(ends[i] == EBB_OK ? ebb_promise_settle(p, ebb_value_none())
                                           : ebb_promise_reject(p, ends[i]),
                         EBB_OK);
        armed_for(fw, EBB_FOREVER);
        assert_int_equal(ebb_future_status_of(f), ends[i]);
        ebb_future_drop(f);
    }
}

/* Cancelling the first leaves the second, however they stand; what is left still fires in time. */
static void the_others_stay_armed(void **state) {
    future_world *fw = *state;
    uint64_t now = ebb_now(fw->host);
    ebb_future *f[4];
    for (uint64_t i = 0; i < 4; i++) f[i] = ebb_after(fw->host, (i + 1) * EBB_SECOND);
    armed_for(fw, now + EBB_SECOND);
    assert_true(ebb_future_cancel(f[1], EBB_CANCEL_USER));
    armed_for(fw, now + EBB_SECOND);
    assert_true(ebb_future_cancel(f[0], EBB_CANCEL_USER));
    armed_for(fw, now + 3 * EBB_SECOND);
    future_pass(fw, 3 * EBB_SECOND - 2 * EBB_MS);
    assert_int_equal(ebb_future_status_of(f[2]), EBB_PENDING);
    future_pass(fw, 4 * EBB_MS);
    assert_int_equal(ebb_future_status_of(f[2]), EBB_OK);
    assert_int_equal(ebb_future_status_of(f[3]), EBB_PENDING);
    armed_for(fw, now + 4 * EBB_SECOND);
    assert_true(ebb_future_cancel(f[3], EBB_CANCEL_USER));
    armed_for(fw, EBB_FOREVER);
    for (size_t i = 0; i < 4; i++) ebb_future_drop(f[i]);
}

static ebb_status await_within(ebb_cx *cx, void *arg) {
    (void)arg;
    for (int i = 0; i < 100; i++) {
        ebb_status st = ebb_await(cx, ebb_within(cx, ebb_after(cx, EBB_MS), HOUR), NULL);
        if (st != EBB_OK) return st;
    }
    return EBB_OK;
}

static void a_fiber_that_bounds_its_awaits_leaves_no_timer(void **state) {
    future_world *fw = *state;
    ebb_region r = ebb_region_open(fw->host, NULL);
    ebb_fiber_spawn(fw->host, r, await_within, NULL);
    future_pass(fw, EBB_SECOND);
    armed_for(fw, EBB_FOREVER);
    ebb_region_close(fw->host, r);
    future_settle(fw);
}

static ebb_status make_all(ebb_cx *cx, void *arg) {
    (void)arg;
    for (size_t i = 0; i < MAKES; i++) (void)makes[i](cx);
    return EBB_OK;
}

static void those_of_a_region_go_with_its_cancel(void **state) {
    future_world *fw = *state;
    for (int forced = 0; forced < 2; forced++) {
        ebb_region r = ebb_region_open(fw->host, NULL);
        ebb_spawn(fw->host, r, make_all, NULL);
        armed_for(fw, HOUR);
        if (forced) ebb_region_force(fw->host, r);
        else ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "enough");
        armed_for(fw, EBB_FOREVER);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(one_that_is_cancelled_is_disarmed),
        IN_FUTURES(one_that_has_lost_is_disarmed),
        IN_FUTURES(a_within_that_is_in_time_is_disarmed),
        IN_FUTURES(the_others_stay_armed),
        IN_FUTURES(a_fiber_that_bounds_its_awaits_leaves_no_timer),
        IN_FUTURES(those_of_a_region_go_with_its_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
