/* The end of a workflow as a future. */
#include "tests/support/workflow_world.h"

static const ebb_workflow_type type = {.name = "job", .budget = MS(100)};

static ebb_status status(workflow_world *ww, ebb_future *f) {
    world_settle(ww->world);
    return ebb_future_status_of(f);
}

static void its_end_is_heard_and_its_outcome_is_joined_afterwards(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report = {.state = EBB_WORKFLOW_IDLE};
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &type});
    puppet *p = workflow_work(ww, wf, IGNORING);
    ebb_future *f[2] = {ebb_workflow_ended(ww->host, wf), ebb_workflow_ended(ww->host, wf)};
    ebb_future *late = ebb_within(ww->host, f[1], EBB_MS);
    assert_int_equal(status(ww, f[0]), EBB_PENDING);
    world_pass(ww->world, MS(2));
    assert_int_equal(ebb_await(ww->host, late, NULL), EBB_TIMEOUT);
    workflow_finish(ww, p);
    assert_int_equal(status(ww, f[0]), EBB_OK);
    assert_int_equal(status(ww, ebb_workflow_ended(ww->host, wf)), EBB_OK);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_IDLE);
    assert_int_equal(status(ww, ebb_workflow_ended(ww->host, wf)), EBB_OK);
}

static void a_stopped_one_is_heard_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &type});
    (void)workflow_work(ww, wf, IGNORING);
    ebb_future *f = ebb_workflow_ended(ww->host, wf);
    workflow_stop(ww, wf);
    assert_int_equal(status(ww, f), EBB_PENDING);
    world_pass(ww->world, 2 * EBB_SECOND);
    assert_int_equal(status(ww, f), EBB_OK);
}

static void ask(ebb_cx *cx, puppet *p) {
    p->seen = ebb_future_status_of(ebb_workflow_ended(cx, *(ebb_workflow *)p->arg));
}

static void one_inside_can_not_wait_for_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &type});
    puppet *p = workflow_work(ww, wf, (puppet){.act = ask, .arg = &wf, .returns = EBB_OK});
    world_settle(ww->world);
    assert_int_equal(p->seen, EBB_ERR_INVALID);
    assert_int_equal(status(ww, ebb_workflow_ended(ww->host, (ebb_workflow){0})), EBB_ERR_INVALID);
    workflow_stop(ww, wf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(its_end_is_heard_and_its_outcome_is_joined_afterwards),
        IN_WORKFLOWS(a_stopped_one_is_heard_too),
        IN_WORKFLOWS(one_inside_can_not_wait_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
