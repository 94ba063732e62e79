/* A journal of a run with workflows replays to the same trace, byte for byte: supervisors, alarms and their
 * steps are inputs that the journal has. The oracles hold on the way. */
#include "tests/support/replay_run.h"

#include <ebb/ebb.h>

typedef struct worker {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_obligation fence;
    ebb_workflow own;
    uint64_t span;
    bool heeds;
    ebb_status st;
} worker;

typedef struct program {
    worker task[4], opener, operator[2];
    worker handler[3];
    ebb_workflow outer, inner;
    uint64_t fiber_span;
} program;

static ebb_status works(ebb_cx *cx, void *state) {
    worker *w = state;
    EBB_BEGIN(w);
    w->fence = ebb_obligation_reserve(cx, EBB_OBLIGATION_FENCE, NULL, NULL);
    EBB_AWAIT(w, w->st, ebb_sleep(cx, &w->nap, w->span));
    if (w->st != EBB_OK && !w->heeds) return EBB_PENDING;
    (void)ebb_obligation_commit(cx, w->fence);
    EBB_END(w);
}

static ebb_status handles(ebb_cx *cx, ebb_drain *d, void *arg) {
    worker *w = arg;
    ebb_drain_progress(d, 1, 2);
    ebb_drain_evidence(d, "key", "value");
    return ebb_sleep(cx, &w->nap, w->span);
}

/* Opens one of its own, and leaves it to its end. */
static ebb_status opens(ebb_cx *cx, void *state) {
    worker *w = state;
    if (w->own.id != 0) return EBB_OK;
    w->own = ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel});
    (void)ebb_spawn(cx, ebb_workflow_region(cx, w->own), never_ends, NULL);
    return EBB_PENDING;
}

static ebb_status naps(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {.due = 0};
    return ebb_sleep(cx, &nap, *(const uint64_t *)arg);
}

static void build(run *r, program *p, bool no_force, bool root) {
    ebb_workflow_opts outer = {.type = &ebb_workflow_publish_abort, .no_force = no_force, .root = root};
    p->outer = ebb_workflow_open(r->host, &outer);
    ebb_region all = ebb_workflow_region(r->host, p->outer);
    p->inner =
        ebb_workflow_open(r->host, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .parent = all});
    ebb_region below = ebb_workflow_region(r->host, p->inner);
    for (int i = 0; i < 4; i++) {
        p->task[i] = (worker){.span = (uint64_t)(500 + 700 * i) * EBB_MS, .heeds = i != 3};
        (void)ebb_spawn(r->host, i % 2 == 0 ? all : below, works, &p->task[i]);
    }
    (void)ebb_spawn(r->host, all, opens, &p->opener);
    /* Somebody serves its operators: one ends by itself, one when it is cancelled. */
    ebb_region operators = ebb_workflow_operator_region(r->host, p->inner);
    (void)ebb_spawn(r->host, operators, works, &p->operator[0]);
    (void)ebb_spawn(r->host, operators, works, &p->operator[1]);
    p->operator[0] =(worker){.span = 300 * EBB_MS};
    p->operator[1] =(worker){.span = 30 * EBB_SECOND, .heeds = true};
    p->fiber_span = 800 * EBB_MS;
    (void)ebb_fiber_spawn(r->host, below, naps, &p->fiber_span);
    for (int i = 0; i < 3; i++) p->handler[i].span = (uint64_t)(i + 1) * 100 * EBB_MS;
    assert_int_equal(ebb_workflow_on_drain(r->host, p->outer, "a", handles, &p->handler[0]), EBB_OK);
    assert_int_equal(ebb_workflow_on_drain_fiber(r->host, p->inner, "b", handles, &p->handler[1]), EBB_OK);
    assert_int_equal(ebb_workflow_on_drain(r->host, p->inner, "c", handles, &p->handler[2]), EBB_OK);
}

static void check_trace(const bytes *trace) {
    ebb_trace_reader in;
    ebb_event ev;
    ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&in, trace->p, trace->n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) {
        if (ebb_checker_event(check, &ev) != EBB_OK) break;
    }
    if (ebb_checker_violation(check) == NULL) (void)ebb_checker_end(check, true);
    if (ebb_checker_violation(check) != NULL) fail_msg("%s", ebb_checker_violation(check)->text);
    ebb_checker_free(check);
}

typedef void (*deed)(run *r, program *p);

static void run_with(deed does, uint64_t at_ms, bool no_force, bool root) {
    run r = record(NULL);
    program p;
    memset(&p, 0, sizeof p);
    build(&r, &p, no_force, root);
    for (uint64_t now = 0; now <= 6000; now += 50) {
        at_pump(&r, now * EBB_MS);
        if (now == at_ms) does(&r, &p);
    }
    ebb_region_cancel(r.host, ebb_runtime_root(r.rt), EBB_CANCEL_SHUTDOWN, "over");
    at_pump(&r, 6001 * EBB_MS);
    at_pump(&r, 40 * EBB_SECOND);
    at_pump(&r, 80 * EBB_SECOND);
    ebb_region_state state;
    assert_int_equal(ebb_region_state_of(r.host, ebb_runtime_root(r.rt), &state), EBB_OK);
    assert_int_equal(state, EBB_REGION_CLOSED);
    stop(&r);
    assert_true(count(&r.trace, EBB_EV_WORKFLOW) >= 6);
    check_trace(&r.trace);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void at_many_times(deed does) {
    for (uint64_t at = 0; at <= 2000; at += 250) {
        run_with(does, at, false, false);
        run_with(does, at, true, false);
        run_with(does, at, false, true);
    }
}

static void requests(run *r, program *p) {
    (void)ebb_workflow_request(r->host, p->outer, EBB_CANCEL_USER, "enough");
}

static void requests_twice_and_extends(run *r, program *p) {
    requests(r, p);
    (void)ebb_workflow_request(r->host, p->inner, EBB_CANCEL_SHUTDOWN, "now");
    (void)ebb_workflow_extend(r->host, p->outer, 700 * EBB_MS);
}

static void requests_and_forces(run *r, program *p) {
    requests(r, p);
    (void)ebb_workflow_force(r->host, p->outer, "now");
}

static void closes(run *r, program *p) {
    ebb_region_close(r->host, ebb_workflow_region(r->host, p->outer));
}

static void cancels(run *r, program *p) {
    ebb_region_cancel(r->host, ebb_workflow_region(r->host, p->inner), EBB_CANCEL_DISCONNECT, "gone");
}

static void forces(run *r, program *p) {
    ebb_region_force(r->host, ebb_workflow_region(r->host, p->outer));
}

static void joins(run *r, program *p) {
    (void)ebb_workflow_join(r->host, p->inner, NULL);
}

static void a_run_that_is_stopped_at_any_time_replays(void **state) {
    (void)state;
    at_many_times(requests);
}

static void a_run_that_is_asked_twice_and_extended_replays(void **state) {
    (void)state;
    at_many_times(requests_twice_and_extends);
}

static void a_run_that_is_forced_by_an_operator_replays(void **state) {
    (void)state;
    at_many_times(requests_and_forces);
}

static void a_run_that_is_closed_cancelled_or_forced_from_outside_replays(void **state) {
    (void)state;
    at_many_times(closes);
    at_many_times(cancels);
    at_many_times(forces);
}

static void a_run_whose_workflow_completes_replays(void **state) {
    (void)state;
    at_many_times(joins);
}

/* The first allocation of its supervisor succeeds, or another one: a replay fails the first in any case. */
static void a_workflow_that_finds_no_memory_replays(void **state) {
    (void)state;
    for (uint32_t regions = 0; regions < 64; regions++) {
        for (uint64_t n = 1; n < 20; n++) {
            ebb_failing memory = {.inner = ebb_libc_allocator()};
            run r = record(&(ebb_runtime_opts){.allocator = ebb_failing_allocator(&memory)});
            for (uint32_t i = 0; i < regions; i++) (void)ebb_region_open(r.host, NULL);
            memory.fail_at = memory.calls + n;
            (void)ebb_workflow_open(r.host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
            stop_and_compare(&r);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_is_stopped_at_any_time_replays),
        cmocka_unit_test(a_run_that_is_asked_twice_and_extended_replays),
        cmocka_unit_test(a_run_that_is_forced_by_an_operator_replays),
        cmocka_unit_test(a_run_that_is_closed_cancelled_or_forced_from_outside_replays),
        cmocka_unit_test(a_run_whose_workflow_completes_replays),
        cmocka_unit_test(a_workflow_that_finds_no_memory_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
