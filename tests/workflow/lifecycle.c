/* Workflows: request, drain, finalize. */
#include "tests/support/workflow_world.h"

static ebb_status count_drain(ebb_cx *cx, ebb_drain *d, void *arg) {
    uint32_t *n = arg;
    (void)cx;
    ebb_drain_progress(d, 1, 1);
    ++*n;
    return EBB_OK;
}

static void what_is_in_flight_and_ends_in_time_is_never_cancelled(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    uint32_t drained = 0;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .name = "test"});
    ebb_region r = ebb_workflow_region(w->host, wf);
    assert_int_equal(ebb_workflow_on_drain(w->host, wf, "count", count_drain, &drained), EBB_OK);
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    assert_int_equal(ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_settle(w);
    assert_int_equal(drained, 1);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, r, puppet_poll, p).id), EBB_ERR_CLOSED);
    char text[160];
    assert_true(ebb_region_closed_text(w->host, r, text, sizeof text) > 0);
    assert_string_equal(text, "lifecycle_shutdown#1 test is DRAINING (USER: enough): no new work");
    world_pass(w, MS(2999));
    assert_int_equal(phase_of(w, p->id), EBB_TASK_RUNNING);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    ebb_workflow_report report;
    assert_int_equal(ebb_workflow_join(w->host, wf, &report), EBB_OK);
    assert_false(report.cancelled);
    assert_int_equal(workflow_state(ww, wf), 0);
    assert_string_equal(workflow_story(ww, 1),
                        "opened requested drain_started handler_done drain_completed finalizing finalized");
}

static void what_is_left_at_cancel_at_is_cancelled_and_what_ignores_that_is_forced(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown});
    ebb_region r = ebb_workflow_region(w->host, wf);
    puppet *heeds = puppet_start(w, r, HEEDING), *ignores = puppet_start(w, r, IGNORING);
    world_settle(w);
    assert_int_equal(ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    world_pass(w, MS(2999));
    assert_int_equal(phase_of(w, heeds->id), EBB_TASK_RUNNING);
    world_pass(w, MS(1));
    assert_int_equal(phase_of(w, heeds->id), EBB_TASK_COMPLETED);
    assert_int_equal(info_of(w, ignores->id).reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(w, MS(1999));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(w, MS(1));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(ebb_workflow_join(w->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
}

static void one_that_nobody_stops_ends_when_it_is_joined_and_its_work_has_ended(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    uint32_t drained = 0;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v1"});
    assert_int_equal(ebb_workflow_on_drain(w->host, wf, "count", count_drain, &drained), EBB_OK);
    puppet *p = puppet_start(w, ebb_workflow_region(w->host, wf), IGNORING);
    assert_int_equal(ebb_workflow_join(w->host, wf, NULL), EBB_PENDING);
    world_settle(w);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(ebb_workflow_join(w->host, wf, NULL), EBB_OK);
    assert_int_equal(drained, 0);
    assert_string_equal(workflow_story(ww, 1), "opened completed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(what_is_in_flight_and_ends_in_time_is_never_cancelled),
        IN_WORKFLOWS(what_is_left_at_cancel_at_is_cancelled_and_what_ignores_that_is_forced),
        IN_WORKFLOWS(one_that_nobody_stops_ends_when_it_is_joined_and_its_work_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
