/* A journal of a run with futures replays to the same trace: callback runners are tasks like others, and their wakes,
 * timers and waits are inputs that the journal has. The oracles hold on the way. */
#include "tests/support/replay_run.h"

#include <ebb/future.h>

typedef struct client {
    EBB_TASK_STATE;
    ebb_future *f;
    ebb_value v;
    int cleaned;
} client;

static ebb_future *again_later(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_after(cx, (uint64_t)(v->as.i + 2) * EBB_MS);
}

static void cleans(ebb_cx *cx, void *arg) {
    (void)cx;
    ((client *)arg)->cleaned++;
}

static ebb_status sleeps_for_ever(ebb_cx *cx, void *state) {
    ebb_sleeper *nap = state;
    return ebb_sleep(cx, nap, EBB_SECOND);
}

static ebb_status asks(ebb_cx *cx, void *state) {
    client *c = state;
    ebb_status st;
    EBB_BEGIN(c);
    c->f = ebb_then(cx, ebb_after(cx, 3 * EBB_MS), again_later, c);
    (void)ebb_future_on_cleanup(c->f, cleans, c);
    EBB_AWAIT(c, st, ebb_await(cx, c->f, &c->v));
    if (st != EBB_OK) return st;
    c->f = ebb_within(cx, ebb_future_never(cx), 4 * EBB_MS);
    EBB_AWAIT(c, st, ebb_await(cx, c->f, &c->v));
    assert_true(st == EBB_TIMEOUT || st == EBB_CANCELLED);
    (void)ebb_mask(cx);
    c->f = ebb_after(cx, EBB_MS); /* cleanup awaits too */
    EBB_AWAIT(c, st, ebb_await(cx, c->f, NULL));
    (void)ebb_unmask(cx);
    EBB_END(c);
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

static void run_with_end_at(uint64_t at, void (*verb)(ebb_cx *cx, ebb_region r)) {
    run r = record(NULL);
    client c[3];
    ebb_sleeper nap = {.due = 0};
    memset(c, 0, sizeof c);
    ebb_region all = ebb_region_open(r.host, NULL);
    for (int i = 0; i < 3; i++) ebb_spawn(r.host, all, asks, &c[i]);
    ebb_future *task = ebb_go(r.host, all, sleeps_for_ever, &nap);
    for (uint64_t now = 0; now < 30; now++) {
        at_pump(&r, now * EBB_MS);
        if (now == at) verb(r.host, all);
        if (now == 20) (void)ebb_future_cancel(task, EBB_CANCEL_USER);
    }
    verb(r.host, ebb_runtime_root(r.rt));
    at_pump(&r, 40 * EBB_SECOND);
    ebb_region_state state;
    assert_int_equal(ebb_region_state_of(r.host, ebb_runtime_root(r.rt), &state), EBB_OK);
    assert_int_equal(state, EBB_REGION_CLOSED);
    for (int i = 0; i < 3; i++) assert_int_equal(c[i].cleaned, 1);
    stop(&r);
    check_trace(&r.trace);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void cancels(ebb_cx *cx, ebb_region r) {
    ebb_region_cancel(cx, r, EBB_CANCEL_SHUTDOWN, "over");
}

static void a_run_that_closes_replays(void **state) {
    (void)state;
    run_with_end_at(12, ebb_region_close);
}

static void a_run_that_is_cancelled_at_any_time_replays(void **state) {
    (void)state;
    for (uint64_t at = 0; at < 14; at++) run_with_end_at(at, cancels);
}

static void a_run_that_is_forced_at_any_time_replays(void **state) {
    (void)state;
    for (uint64_t at = 0; at < 14; at++) run_with_end_at(at, ebb_region_force);
}

static ebb_status begins(ebb_cx *cx, void *state) {
    static const ebb_operation op = {"endless", NULL, NULL};
    *(ebb_future **)state = ebb_promise_new(cx, &op, NULL);
    return EBB_OK;
}

/* Its operation is left behind, and there is no memory to keep that for the report: nor is there in the replay. */
static void a_run_that_can_not_note_what_was_abandoned_replays(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    run r = record(&(ebb_runtime_opts){.runtime_id = 3, .allocator = ebb_failing_allocator(&memory)});
    ebb_future *f = NULL;
    ebb_region all = ebb_region_open(r.host, NULL);
    (void)ebb_spawn(r.host, all, begins, &f);
    at_pump(&r, 0);
    memory.fail_at = memory.calls + 1;
    memory.fail_after = true;
    ebb_region_force(r.host, all);
    at_pump(&r, EBB_MS);
    assert_true(memory.failures > 0);
    memory.fail_at = 0;
    memory.fail_after = false;
    (void)ebb_promise_reject(f, EBB_CANCELLED);
    ebb_obligation o = ebb_region_reserve(r.host, ebb_runtime_root(r.rt), EBB_OBLIGATION_LEASE, NULL, NULL);
    assert_int_equal(ebb_obligation_commit(r.host, o), EBB_OK);
    ebb_region_close(r.host, ebb_runtime_root(r.rt));
    at_pump(&r, 2 * EBB_MS);
    stop_and_compare(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_closes_replays),
        cmocka_unit_test(a_run_that_is_cancelled_at_any_time_replays),
        cmocka_unit_test(a_run_that_is_forced_at_any_time_replays),
        cmocka_unit_test(a_run_that_can_not_note_what_was_abandoned_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
