/* A worker whose n-th allocation fails, for each n: the instance ends all the same, once, with the right result. And one
 * that is ended after its n-th poll: nothing of it is left. */
#include "tests/support/durable_world.h"

#include <unistd.h>

static ebb_status two(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob first;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, &(ebb_call_opts){.attempts = 5}), &first);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, EBB_SECOND), NULL);
    return st == EBB_OK
               ? ebb_orch_await(o, ebb_orch_call(o, "echo", first, &(ebb_call_opts){.attempts = 5}), out)
               : st;
}

/* False: no allocation has failed. */
static bool fails_at(uint64_t n) {
    world *w = world_new(NULL, false);
    durable *d = durable_new(w, &(ebb_worker_opts){.lease = 3 * EBB_SECOND});
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "42");
    w->memory.fail_at = w->memory.calls + n;
    const bool begun = ebb_worker_begin(d->worker) == EBB_OK;
    durable_pass(d, 60 * EBB_SECOND);
    const bool failed = w->memory.failures > 0;
    w->memory.fail_at = 0;
    if (begun) durable_pass(d, 30 * EBB_SECOND);
    if (begun && strcmp(durable_state(d, "a"), "Completed 42") != 0)
        print_error("allocation %d: %s\n%s", (int)n, durable_rows(d, "a"), d->log);
    if (begun) assert_string_equal(durable_state(d, "a"), "Completed 42");
    if (begun) assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    if (begun && durable_stats(d).running != 0) print_error("allocation %d\n", (int)n);
    if (begun) assert_int_equal(durable_stats(d).running, 0); /* no place is lost */
    world_end(w);
    return failed;
}

static void the_nth_allocation_fails(void **state) {
    (void)state;
    for (uint64_t n = 1; fails_at(n); n++) assert_true(n < 5000);
}

/* From the n-th allocation on there is none for 5 s. False: so many were not made. */
static bool is_without_memory_from(uint64_t n) {
    world *w = world_new(NULL, false);
    durable *d = durable_new(w, &(ebb_worker_opts){.lease = 3 * EBB_SECOND});
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "42");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    w->memory.fail_at = w->memory.calls + n;
    w->memory.fail_after = true;
    const uint64_t before = stats_of(w).polls;
    durable_pass(d, 5 * EBB_SECOND);
    const bool failed = w->memory.failures > 0;
    if (stats_of(w).polls - before > 2000) print_error("allocation %d\n", (int)n);
    assert_in_range(stats_of(w).polls - before, 1, 2000); /* it does not spin */
    w->memory.fail_after = false;
    w->memory.fail_at = 0;
    durable_pass(d, 60 * EBB_SECOND);
    if (strcmp(durable_state(d, "a"), "Completed 42") != 0)
        print_error("allocation %d: %s\n%s", (int)n, durable_rows(d, "a"), d->log);
    assert_string_equal(durable_state(d, "a"), "Completed 42");
    world_end(w);
    return failed;
}

static void it_goes_on_when_memory_is_back(void **state) {
    (void)state;
    alarm(300);
    for (uint64_t n = 1; is_without_memory_from(n); n++) assert_true(n < 5000);
    alarm(0);
}

/* Ended after n polls: by a cancel or by force, of the worker or of all. */
static bool ends_after(uint64_t n, bool force, bool all) {
    world *w = world_new(NULL, false);
    durable *d = durable_new(w, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "42");
    durable_start(d, "b", "two", "42");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    uint64_t polls = 0;
    for (int idle = 0; polls < n && idle < 2;) {
        ebb_inbox_receive(w->rt);
        const uint64_t before = stats_of(w).polls;
        (void)ebb_runtime_pump(w->rt, 1);
        if (stats_of(w).polls != before) {
            polls++;
            idle = 0;
            continue;
        }
        const uint64_t due = ebb_runtime_next_due(w->rt);
        if (due < 30 * EBB_SECOND) ebb_runtime_advance(w->rt, due);
        else idle++;
    }
    const ebb_region of = all ? w->root : ebb_worker_region(d->worker);
    if (force) ebb_region_force(w->host, of);
    else ebb_region_cancel(w->host, of, EBB_CANCEL_USER, "");
    world_end(w); /* nothing is left */
    return polls == n;
}

static void it_may_end_after_any_poll(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        uint64_t n = 0;
        while (ends_after(n, (how & 1) != 0, (how & 2) != 0)) n++;
        assert_in_range(n, 50, 5000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(it_goes_on_when_memory_is_back),
        cmocka_unit_test(it_may_end_after_any_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
