/* A runtime with a clock: spans that begin in the middle of a turn count from then, no timer fires early, and
 * since the readings are in the journal a replay agrees. Work is a poll that moves the clock. */
#include "tests/support/replay_run.h"

#include <ebb/future.h>

static uint64_t the_time;

static uint64_t read_the_time(void *ctx) {
    assert_ptr_equal(ctx, &the_time);
    return the_time;
}

static run with_a_clock(void) {
    the_time = 7 * EBB_SECOND;
    return record(&(ebb_runtime_opts){
        .runtime_id = 3, .now = the_time, .clock = read_the_time, .clock_ctx = &the_time});
}

/* As a host does: turn after turn, each at the time that something is due. */
static void runs_on(run *r) {
    for (;;) {
        ebb_runtime_advance(r->rt, the_time);
        if (ebb_runtime_pump(r->rt, 1000) == EBB_PENDING) continue;
        uint64_t due = ebb_runtime_next_due(r->rt);
        if (due == EBB_FOREVER) return;
        if (due > the_time) the_time = due;
    }
}

static void works(uint64_t span) {
    the_time += span;
}

/* The deadline that the last task was told of. */
static uint64_t deadline_told(run *r) {
    bytes trace = {NULL, 0, 0};
    ebb_trace_reader in;
    ebb_event ev;
    uint64_t deadline = 0;
    ebb_trace_take(r->rt, true, bytes_add, &trace);
    bytes_add(&r->trace, trace.p, trace.n);
    assert_int_equal(ebb_trace_reader_open(&in, r->trace.p, r->trace.n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) {
        if (ev.type == EBB_EV_CANCEL_REQUESTED) deadline = ev.other;
    }
    free(trace.p);
    return deadline;
}

/* The blocks of the trace were cut by deadline_told, so events are compared one by one. */
static void stop_and_compare_events(run *r) {
    bytes again = {NULL, 0, 0};
    ebb_journal_replay_result result;
    ebb_trace_reader a, b;
    ebb_event x, y;
    stop(r);
    ebb_status st =
        ebb_journal_replay(ebb_libc_allocator(), r->journal.p, r->journal.n, bytes_add, &again, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    assert_int_equal(ebb_trace_reader_open(&a, r->trace.p, r->trace.n), EBB_OK);
    assert_int_equal(ebb_trace_reader_open(&b, again.p, again.n), EBB_OK);
    while ((st = ebb_trace_reader_next(&a, &x)) == EBB_OK) {
        assert_int_equal(ebb_trace_reader_next(&b, &y), EBB_OK);
        ebb_record one = ebb_event_record(&x), other = ebb_event_record(&y);
        assert_memory_equal(&one, &other, sizeof one);
        assert_int_equal(x.time, y.time);
    }
    assert_int_equal(st, EBB_PENDING);
    assert_int_equal(ebb_trace_reader_next(&b, &y), EBB_PENDING);
    free(again.p);
    forget(r);
}

/* ---- spans ---------------------------------------------------------------------------------------------- */

typedef struct sleeper {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_future *f;
    uint64_t began, slept;
    ebb_status status;
} sleeper;

static ebb_status works_and_sleeps(ebb_cx *cx, void *state) {
    sleeper *s = state;
    EBB_BEGIN(s);
    works(300 * EBB_MS);
    s->began = the_time;
    EBB_AWAIT(s, s->status, ebb_sleep(cx, &s->nap, 500 * EBB_MS));
    s->slept = the_time - s->began;
    EBB_END(s);
}

static void a_sleep_counts_from_the_time_at_which_it_begins(void **state) {
    (void)state;
    run r = with_a_clock();
    sleeper s = {.status = EBB_PENDING};
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), works_and_sleeps, &s);
    runs_on(&r);
    assert_int_equal(s.status, EBB_OK);
    assert_in_range(s.slept, 500 * EBB_MS, 501 * EBB_MS);
    stop_and_compare(&r);
}

static ebb_status works_and_awaits(ebb_cx *cx, void *state) {
    sleeper *s = state;
    EBB_BEGIN(s);
    works(300 * EBB_MS);
    s->began = the_time;
    s->f = ebb_after(cx, 500 * EBB_MS);
    EBB_AWAIT(s, s->status, ebb_await(cx, s->f, NULL));
    s->slept = the_time - s->began;
    works(300 * EBB_MS);
    s->began = the_time;
    s->f = ebb_within(cx, ebb_future_never(cx), 200 * EBB_MS);
    EBB_AWAIT(s, s->status, ebb_await(cx, s->f, NULL));
    assert_int_equal(s->status, EBB_TIMEOUT);
    assert_in_range(the_time - s->began, 200 * EBB_MS, 201 * EBB_MS);
    EBB_END(s);
}

static void so_do_the_futures_of_a_time(void **state) {
    (void)state;
    run r = with_a_clock();
    sleeper s = {.status = EBB_PENDING};
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), works_and_awaits, &s);
    runs_on(&r);
    assert_in_range(s.slept, 500 * EBB_MS, 501 * EBB_MS);
    assert_int_equal(s.status, EBB_TIMEOUT);
    stop_and_compare(&r);
}

static ebb_status sets_a_deadline(ebb_cx *cx, void *state) {
    works(300 * EBB_MS);
    *(uint64_t *)state = ebb_now(cx);
    return EBB_OK;
}

static void the_time_is_that_of_the_clock(void **state) {
    (void)state;
    run r = with_a_clock();
    uint64_t seen = 0;
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), sets_a_deadline, &seen);
    runs_on(&r);
    assert_int_equal(seen, 7300 * EBB_MS);
    the_time -= EBB_SECOND; /* never back */
    assert_int_equal(ebb_now(r.host), 7300 * EBB_MS);
    stop_and_compare(&r);
}

/* ---- what gets due meanwhile -------------------------------------------------------------------------------- */

static ebb_status works_and_naps(ebb_cx *cx, void *state) {
    sleeper *s = state;
    EBB_BEGIN(s);
    for (;;) {
        s->slept++;
        EBB_AWAIT(s, s->status, ebb_sleep(cx, &s->nap, 1));
        if (s->status != EBB_OK) return s->status;
        works(5 * EBB_MS);
    }
    EBB_END(s);
}

static void a_pump_ends_though_its_work_lasts_until_timers_are_due(void **state) {
    (void)state;
    run r = with_a_clock();
    sleeper a = {.slept = 0}, b = {.slept = 0};
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), works_and_naps, &a);
    (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), works_and_naps, &b);
    for (int i = 0; i < 10; i++) {
        uint64_t before = a.slept;
        works(EBB_MS);
        ebb_runtime_advance(r.rt, the_time);
        assert_int_equal(ebb_runtime_pump(r.rt, 1000), EBB_OK);
        assert_true(a.slept <= before + 1);
    }
    assert_true(ebb_runtime_next_due(r.rt) <= ebb_now(r.host)); /* and is asked for again at once */
    assert_true(a.slept >= 5);
    stop_and_compare(&r);
}

/* ---- budgets ------------------------------------------------------------------------------------------------ */

static ebb_status takes_its_time(ebb_cx *cx, void *state) {
    (void)state;
    (void)ebb_checkpoint(cx);
    return EBB_PENDING;
}

static ebb_status works_and_fails(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    works(3 * EBB_SECOND); /* more than its siblings' budget */
    return EBB_FAILED;
}

static void siblings_of_a_late_failure_have_their_whole_budget(void **state) {
    (void)state;
    run r = with_a_clock();
    ebb_region region = ebb_region_open(r.host, NULL);
    (void)ebb_spawn(r.host, region, takes_its_time, NULL);
    (void)ebb_spawn(r.host, region, works_and_fails, NULL);
    ebb_runtime_advance(r.rt, the_time);
    assert_int_equal(ebb_runtime_pump(r.rt, 1000), EBB_OK);
    assert_int_equal(deadline_told(&r), 12 * EBB_SECOND); /* urgent: 2 s */
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(r.rt, &stats);
    assert_int_equal(stats.tasks, 1);
    runs_on(&r);
    stop_and_compare_events(&r);
}

typedef struct canceller {
    ebb_region region;
    ebb_task task;
    int verb;
} canceller;

static ebb_status works_and_cancels(ebb_cx *cx, void *state) {
    const canceller *c = state;
    works(3 * EBB_SECOND);
    if (c->verb == 0) ebb_region_cancel(cx, c->region, EBB_CANCEL_TIMEOUT, "late");
    if (c->verb == 1) ebb_task_cancel(cx, c->task, EBB_CANCEL_TIMEOUT, "late");
    if (c->verb == 2)
        ebb_region_cancel_within(cx, c->region, EBB_CANCEL_TIMEOUT, "late",
                                 (ebb_budget){ebb_now(cx) + 2 * EBB_SECOND, 9, 0});
    return EBB_OK;
}

static void a_cancel_gives_its_whole_budget(void **state) {
    (void)state;
    for (int verb = 0; verb < 3; verb++) {
        run r = with_a_clock();
        canceller c = {.region = ebb_region_open(r.host, NULL), .verb = verb};
        c.task = ebb_spawn(r.host, c.region, takes_its_time, NULL);
        (void)ebb_spawn(r.host, ebb_runtime_root(r.rt), works_and_cancels, &c);
        ebb_runtime_advance(r.rt, the_time);
        assert_int_equal(ebb_runtime_pump(r.rt, 1000), EBB_OK);
        assert_int_equal(deadline_told(&r), 12 * EBB_SECOND);
        runs_on(&r);
        assert_true(the_time >= 11600 * EBB_MS); /* forced when 20 % are left */
        stop_and_compare_events(&r);
    }
}

/* Refused for want of memory: recorded after it was done, so its reading stands before it. */
static void a_refused_spawn_replays_with_its_reading(void **state) {
    (void)state;
    the_time = 7 * EBB_SECOND;
    run r = record(
        &(ebb_runtime_opts){.max_tasks = 2, .now = the_time, .clock = read_the_time, .clock_ctx = &the_time});
    ebb_region a = ebb_region_open(r.host, NULL), b = ebb_region_open(r.host, NULL);
    (void)ebb_spawn(r.host, a, takes_its_time, NULL);
    (void)ebb_spawn(r.host, b, takes_its_time, NULL);
    works(EBB_SECOND);
    assert_int_equal(ebb_id_status(ebb_spawn(r.host, a, takes_its_time, NULL).id), EBB_ERR_LIMIT);
    works(EBB_SECOND);
    assert_int_equal(ebb_id_status(ebb_spawn(r.host, b, takes_its_time, NULL).id), EBB_ERR_LIMIT);
    ebb_region_cancel(r.host, b, EBB_CANCEL_USER, "again");
    works(EBB_SECOND);
    runs_on(&r);
    stop_and_compare(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleep_counts_from_the_time_at_which_it_begins),
        cmocka_unit_test(so_do_the_futures_of_a_time),
        cmocka_unit_test(the_time_is_that_of_the_clock),
        cmocka_unit_test(a_pump_ends_though_its_work_lasts_until_timers_are_due),
        cmocka_unit_test(siblings_of_a_late_failure_have_their_whole_budget),
        cmocka_unit_test(a_cancel_gives_its_whole_budget),
        cmocka_unit_test(a_refused_spawn_replays_with_its_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
