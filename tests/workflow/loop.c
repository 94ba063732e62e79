/* Workflows on a libuv loop: what stands by for a stop is nothing that goes on. */
#include "tests/support/loop_world.h"

#include <ebb/workflow.h>

static ebb_workflow open_here(loop_world *w) {
    ebb_workflow_opts o = {.type = &ebb_workflow_publish_abort, .parent = w->region};
    ebb_workflow wf = ebb_workflow_open(ebb_loop_cx(w->loop), &o);
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    return wf;
}

static ebb_status count_drain(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)d;
    ++*(uint32_t *)arg;
    return EBB_OK;
}

static ebb_status nap(ebb_cx *cx, void *arg) {
    bool *over = arg;
    ebb_status st = ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    *over = true;
    return st;
}

static void spawn_nap(loop_world *w, ebb_region r, bool *over) {
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(ebb_loop_cx(w->loop), r, nap, over).id), EBB_OK);
}

/* The handlers that wait with it are not at work either. */
static void stand_by(loop_world *w, uint32_t workflows, uint32_t *drained) {
    for (uint32_t i = 0; i < workflows; i++) {
        ebb_workflow wf = open_here(w);
        assert_int_equal(ebb_workflow_on_drain(w->cx, wf, "count", count_drain, drained), EBB_OK);
        assert_int_equal(ebb_workflow_on_drain_fiber(w->cx, wf, "count", count_drain, drained), EBB_OK);
    }
}

static void an_idle_workflow_does_not_keep_uv_run_going_where_there_are_no_futures(void **state) {
    loop_world *w = *state;
    static uint32_t drained; /* handlers count until the world ends */
    drained = 0;
    ebb_workflow wf = open_here(w);
    loop_run(w);
    stand_by(w, 3, &drained);
    loop_run(w);
    assert_int_equal(drained, 0);
    ebb_workflow_report report;
    assert_int_equal(ebb_workflow_report_of(w->cx, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_IDLE);
}

static void an_idle_workflow_does_not_keep_it_going_where_futures_have_been(void **state) {
    loop_world *w = *state;
    static uint32_t drained; /* handlers count until the world ends */
    drained = 0;
    for (int root = 0; root < 2; root++) {
        bool over = false;
        spawn_nap(w, root ? ebb_runtime_root(w->rt) : w->region, &over);
        loop_run(w);
        assert_true(over);
        stand_by(w, 1, &drained);
        loop_run(w);
    }
    assert_int_equal(drained, 0);
}

static void what_works_in_a_workflow_keeps_it_going(void **state) {
    loop_world *w = *state;
    static uint32_t drained; /* handlers count until the world ends */
    drained = 0;
    for (uint32_t i = 0; i < 4; i++) {
        bool over = false;
        stand_by(w, i, &drained);
        spawn_nap(w, ebb_workflow_region(w->cx, open_here(w)), &over);
        loop_run(w);
        assert_true(over);
    }
}

/* A drain has its time, though nothing but it goes on. */
static ebb_status slow_drain(ebb_cx *cx, ebb_drain *d, void *arg) {
    ebb_sleeper s = {0};
    (void)d;
    ebb_status st = ebb_sleep(cx, &s, 20 * EBB_MS);
    *(bool *)arg = true;
    return st;
}

static void a_drain_keeps_it_going_until_it_is_over(void **state) {
    loop_world *w = *state;
    bool over = false;
    ebb_workflow wf = open_here(w);
    assert_int_equal(ebb_workflow_on_drain_fiber(w->cx, wf, "slow", slow_drain, &over), EBB_OK);
    loop_run(w);
    assert_false(over);
    assert_int_equal(ebb_workflow_request(ebb_loop_cx(w->loop), wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    loop_run(w);
    assert_true(over);
    assert_int_equal(ebb_workflow_join(w->cx, wf, NULL), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(an_idle_workflow_does_not_keep_uv_run_going_where_there_are_no_futures),
        ON_A_LOOP(an_idle_workflow_does_not_keep_it_going_where_futures_have_been),
        ON_A_LOOP(what_works_in_a_workflow_keeps_it_going),
        ON_A_LOOP(a_drain_keeps_it_going_until_it_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
