/* A program with workflows again with its n-th allocation refused, for each n: alone, and with all that
 * follow. Opening and adding say EBB_ERR_NOMEM and leave nothing; a request never fails; what drains comes
 * to its end; leaks are counted even if there is no memory to name them; everything is given back. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include <ebb/ebb.h>

enum { STUBBORN = 6, LOG = 1 << 20 };

typedef struct program {
    ebb_failing failing;
    ebb_runtime *rt;
    ebb_cx *host;
    ebb_audit *audit;
    char *log;
    size_t log_n;
    ebb_workflow outer, inner;
    ebb_sleeper nap[4];
    ebb_future *timer;
    uint32_t stubborn, added, handled;
    uint64_t told; /* how often somebody heard of EBB_ERR_NOMEM */
    bool cooperative;
} program;

static ebb_status append(void *ctx, const char *line, size_t n) {
    program *p = ctx;
    if (p->log_n + n > LOG) return EBB_ERR_LIMIT;
    memcpy(p->log + p->log_n, line, n);
    p->log_n += n;
    return EBB_OK;
}

static ebb_status saw(program *p, ebb_status st) {
    if (st == EBB_ERR_NOMEM) p->told++;
    else if (st != EBB_OK) fail_msg("%s", ebb_status_name(st));
    return st;
}

/* ---- work ------------------------------------------------------------------------------------ */

static ebb_status never(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static ebb_status naps(ebb_cx *cx, void *state) {
    program *p = state;
    ebb_status st = ebb_sleep(cx, &p->nap[0], 100 * EBB_MS);
    if (st == EBB_ERR_NOMEM) p->told++;
    return st == EBB_ERR_NOMEM ? EBB_OK : st;
}

static ebb_status awaits(ebb_cx *cx, void *state) {
    program *p = state;
    if (p->timer == NULL) p->timer = ebb_after(cx, 200 * EBB_MS);
    ebb_status st = ebb_await(cx, p->timer, NULL);
    if (st == EBB_ERR_NOMEM) p->told++;
    return st == EBB_ERR_NOMEM ? EBB_OK : st;
}

static ebb_status handle(ebb_cx *cx, ebb_drain *d, void *arg) {
    program *p = arg;
    ebb_drain_evidence(d, "memory", "none");
    ebb_drain_progress(d, 1, 1);
    (void)cx;
    p->handled++;
    return EBB_OK;
}

static ebb_status handle_in_fiber(ebb_cx *cx, ebb_drain *d, void *arg) {
    program *p = arg;
    ebb_status st = ebb_sleep(cx, &p->nap[1], 10 * EBB_MS);
    if (st == EBB_ERR_NOMEM) p->told++;
    return handle(cx, d, arg);
}

/* ---- the program ----------------------------------------------------------------------------- */

static ebb_workflow open_one(program *p, const ebb_workflow_type *type, ebb_region parent) {
    ebb_workflow wf = ebb_workflow_open(
        p->host,
        &(ebb_workflow_opts){.type = type, .parent = parent, .policy = EBB_FAIL_COLLECT, .audit = p->audit});
    if (saw(p, ebb_id_status(wf.id)) != EBB_OK) wf.id = 0;
    return wf;
}

static void add_handlers(program *p, ebb_workflow wf) {
    ebb_status poll = ebb_workflow_on_drain(p->host, wf, "poll", handle, p);
    ebb_status fiber = ebb_workflow_on_drain_fiber(p->host, wf, "fiber", handle_in_fiber, p);
    p->added += saw(p, poll) == EBB_OK;
    p->added += saw(p, fiber) == EBB_OK;
}

static void spawn_work(program *p, ebb_region r) {
    (void)saw(p, ebb_id_status(ebb_spawn(p->host, r, naps, p).id));
    (void)saw(p, ebb_id_status(ebb_spawn(p->host, r, awaits, p).id));
    for (int i = 0; i < STUBBORN && !p->cooperative; i++) {
        p->stubborn += saw(p, ebb_id_status(ebb_spawn(p->host, r, never, p).id)) == EBB_OK;
    }
}

static void pump_to(program *p, uint64_t end) {
    for (;;) {
        while (ebb_runtime_pump(p->rt, 100) == EBB_PENDING) {}
        uint64_t due = ebb_runtime_next_due(p->rt);
        if (due > end) break;
        ebb_runtime_advance(p->rt, due);
    }
    ebb_runtime_advance(p->rt, end);
    while (ebb_runtime_pump(p->rt, 100) == EBB_PENDING) {}
}

static void expect_end(program *p, ebb_workflow wf) {
    ebb_workflow_report report;
    assert_int_equal(ebb_workflow_report_of(p->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, p->stubborn > 0 ? EBB_WORKFLOW_LEAK_DETECTED : EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.leaks, p->stubborn);
    assert_true(report.unnamed <= report.leaks);
    for (uint32_t i = 0; i < report.leaks; i++) {
        ebb_workflow_leak leak;
        ebb_status st = ebb_workflow_leak_at(p->host, wf, i, &leak);
        assert_int_equal(st, i < report.leaks - report.unnamed ? EBB_OK : EBB_ERR_INVALID);
    }
    ebb_status st = ebb_workflow_join(p->host, wf, NULL);
    if (p->stubborn > 0) assert_int_equal(st, EBB_ERR_CANCEL_LEAK);
    else assert_true(st == EBB_OK || st == EBB_ERR_NOMEM); /* a spawn that failed is its region's failure */
    if (report.unnamed > 0) p->told++;
}

static ebb_status heeds(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

static void add_operator(program *p, ebb_workflow wf) {
    ebb_region r = ebb_workflow_operator_region(p->host, wf);
    if (saw(p, ebb_id_status(r.id)) == EBB_OK)
        (void)saw(p, ebb_id_status(ebb_spawn(p->host, r, heeds, p).id));
}

static void drive(program *p) {
    p->outer = open_one(p, &ebb_workflow_rollout_cancel, (ebb_region){0});
    if (p->outer.id == 0) return;
    p->inner = open_one(p, &ebb_workflow_publish_abort, ebb_workflow_region(p->host, p->outer));
    add_handlers(p, p->outer);
    if (p->inner.id != 0) add_handlers(p, p->inner);
    add_operator(p, p->outer);
    spawn_work(p, ebb_workflow_region(p->host, p->inner.id != 0 ? p->inner : p->outer));
    pump_to(p, 50 * EBB_MS);
    assert_int_equal(ebb_workflow_request(p->host, p->outer, EBB_CANCEL_USER, "enough"), EBB_OK);
    assert_int_equal(ebb_workflow_request(p->host, p->outer, EBB_CANCEL_SHUTDOWN, "now"), EBB_OK);
    assert_int_equal(ebb_workflow_extend(p->host, p->outer, EBB_MS), EBB_OK);
    pump_to(p, 4 * EBB_SECOND);
    assert_int_equal(p->handled, p->added);
    if (p->inner.id != 0) expect_end(p, p->inner);
    expect_end(p, p->outer);
}

static void close_root(program *p) {
    ebb_region_state state;
    ebb_region_cancel(p->host, ebb_runtime_root(p->rt), EBB_CANCEL_SHUTDOWN, "over");
    pump_to(p, 6 * EBB_SECOND);
    assert_int_equal(ebb_region_state_of(p->host, ebb_runtime_root(p->rt), &state), EBB_OK);
    assert_int_equal(state, EBB_REGION_CLOSED);
}

static void verify_log(const program *p, uint64_t n) {
    ebb_audit_verdict verdict;
    ebb_status st = ebb_audit_verify(ebb_libc_allocator(), p->log, p->log_n, &verdict);
    if (st == EBB_OK) return;
    fail_msg("allocation %u: line %u: %s: %s\n%.*s", (unsigned)n, (unsigned)verdict.line, verdict.invariant,
             verdict.text, (int)p->log_n, p->log);
}

/* How many allocations it has asked for. */
static uint64_t run(uint64_t n, bool and_after, bool cooperative) {
    program p = {.failing = {.inner = ebb_libc_allocator(), .fail_at = n, .fail_after = and_after},
                 .cooperative = cooperative};
    ebb_audit_sink sink = {.append = append, .ctx = &p};
    p.log = malloc(LOG);
    assert_non_null(p.log);
    assert_int_equal(ebb_audit_new(ebb_libc_allocator(), &sink, &p.audit), EBB_OK);
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&p.failing)};
    if (saw(&p, ebb_runtime_new(&opts, &p.rt)) == EBB_OK) {
        p.host = ebb_runtime_host(p.rt);
        drive(&p);
        close_root(&p);
        ebb_runtime_free(p.rt);
        verify_log(&p, n);
    }
    ebb_audit_close(p.audit);
    free(p.log);
    if (p.failing.failures > 0 && p.told == 0) fail_msg("allocation %u: nobody was told", (unsigned)n);
    if (p.failing.live != 0) fail_msg("allocation %u: %d blocks are left", (unsigned)n, (int)p.failing.live);
    assert_int_equal(p.failing.live_bytes, 0);
    return p.failing.calls;
}

static void sweep(bool and_after, bool cooperative) {
    uint64_t calls = run(0, false, cooperative);
    assert_true(calls > 10);
    for (uint64_t n = 1; n <= calls; n++) (void)run(n, and_after, cooperative);
    print_message("%u runs\n", (unsigned)calls + 1);
}

static void one_allocation_fails_and_the_work_stops_in_time(void **state) {
    (void)state;
    sweep(false, true);
}

static void all_allocations_from_one_on_fail_and_the_work_stops_in_time(void **state) {
    (void)state;
    sweep(true, true);
}

static void one_allocation_fails_and_the_work_is_forced(void **state) {
    (void)state;
    sweep(false, false);
}

static void all_allocations_from_one_on_fail_and_the_work_is_forced(void **state) {
    (void)state;
    sweep(true, false);
}

/* ---- single calls ---------------------------------------------------------------------------- */

static void a_handler_that_can_not_be_added_is_not_added_and_the_others_run(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 40; n++) {
        program p = {.failing = {.inner = ebb_libc_allocator()}};
        ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&p.failing)};
        assert_int_equal(ebb_runtime_new(&opts, &p.rt), EBB_OK);
        p.host = ebb_runtime_host(p.rt);
        ebb_workflow wf =
            ebb_workflow_open(p.host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
        assert_int_equal(ebb_workflow_on_drain(p.host, wf, "first", handle, &p), EBB_OK);
        p.failing.fail_at = p.failing.calls + n;
        ebb_status st = ebb_workflow_on_drain_fiber(p.host, wf, "second", handle, &p);
        p.failing.fail_at = 0;
        assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
        assert_int_equal(ebb_workflow_request(p.host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
        pump_to(&p, EBB_MS);
        assert_int_equal(p.handled, st == EBB_OK ? 2 : 1);
        /* A fiber that found no memory is the failure of where it was to be, as any spawn is. */
        ebb_status joined = ebb_workflow_join(p.host, wf, NULL);
        assert_true(joined == EBB_OK || joined == st);
        ebb_runtime_free(p.rt);
        assert_int_equal(p.failing.live, 0);
        if (st == EBB_OK) return;
    }
    fail_msg("it can't be added");
}

static void limits_of_regions_and_tasks_are_told_and_leave_nothing(void **state) {
    (void)state;
    for (uint32_t most = 1; most < 4; most++) {
        program p = {.failing = {.inner = ebb_libc_allocator()}};
        ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&p.failing),
                                 .max_regions = most, /* it takes two besides the root */
                                 .max_tasks = 2};     /* its supervisor and one more */
        assert_int_equal(ebb_runtime_new(&opts, &p.rt), EBB_OK);
        p.host = ebb_runtime_host(p.rt);
        ebb_workflow wf =
            ebb_workflow_open(p.host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
        assert_int_equal(ebb_id_status(wf.id), most < 3 ? EBB_ERR_LIMIT : EBB_OK);
        if (most == 3) {
            assert_int_equal(ebb_workflow_on_drain(p.host, wf, "first", handle, &p), EBB_OK);
            assert_int_equal(ebb_workflow_on_drain(p.host, wf, "second", handle, &p), EBB_ERR_LIMIT);
            assert_int_equal(ebb_workflow_request(p.host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
        }
        pump_to(&p, EBB_MS);
        ebb_runtime_stats stats;
        ebb_runtime_stats_of(p.rt, &stats);
        assert_int_equal(stats.regions, 1);
        assert_int_equal(stats.tasks, 0);
        assert_int_equal(p.handled, most == 3);
        ebb_runtime_free(p.rt);
        assert_int_equal(p.failing.live, 0);
    }
}

static void a_log_that_can_not_be_made_leaves_nothing(void **state) {
    (void)state;
    program p = {.failing = {.inner = ebb_libc_allocator(), .fail_at = 1}};
    ebb_audit_sink sink = {.append = append, .ctx = &p};
    ebb_audit *audit = NULL;
    assert_int_equal(ebb_audit_new(ebb_failing_allocator(&p.failing), &sink, &audit), EBB_ERR_NOMEM);
    assert_null(audit);
    assert_int_equal(p.failing.live, 0);
    assert_int_equal(p.log_n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_allocation_fails_and_the_work_stops_in_time),
        cmocka_unit_test(all_allocations_from_one_on_fail_and_the_work_stops_in_time),
        cmocka_unit_test(one_allocation_fails_and_the_work_is_forced),
        cmocka_unit_test(all_allocations_from_one_on_fail_and_the_work_is_forced),
        cmocka_unit_test(a_handler_that_can_not_be_added_is_not_added_and_the_others_run),
        cmocka_unit_test(limits_of_regions_and_tasks_are_told_and_leave_nothing),
        cmocka_unit_test(a_log_that_can_not_be_made_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
