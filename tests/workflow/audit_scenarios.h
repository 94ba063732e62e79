/* tests/workflow/audit_scenarios.h - workflows that end in every way there is, for their logs. */
#ifndef EBB_TESTS_AUDIT_SCENARIOS_H
#define EBB_TESTS_AUDIT_SCENARIOS_H

#include "tests/support/workflow_world.h"

static void end_puppet(world *w, puppet *p) {
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
}

static ebb_status report_and_end(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)arg;
    ebb_drain_evidence(d, "epoch", "41 \"last known good\"");
    ebb_drain_progress(d, 2, 2);
    return EBB_OK;
}

static void clean(workflow_world *ww) {
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .name = "v42"});
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, "report", report_and_end, NULL), EBB_OK);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(10));
    end_puppet(ww->world, p);
}

static void cancelled(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1200));
}

static void timed_out(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel});
    for (int i = 0; i < 2; i++) (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_finish(ww->world);
}

static void forced(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(5));
    assert_int_equal(ebb_workflow_force(ww->host, wf, "the operator"), EBB_OK);
    world_finish(ww->world);
}

/* Its budget is over, it is extended, and it ends in time after that. */
static void extended(workflow_world *ww) {
    ebb_workflow wf = workflow_new(
        ww,
        &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .cancel_at = MS(2000), .no_force = true});
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, "report", report_and_end, NULL), EBB_OK);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "still"), EBB_OK);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1000)), EBB_OK);
    world_pass(ww->world, MS(300));
    end_puppet(ww->world, p);
}

/* Its budget is over, nobody extends it, and it ends all the same. */
static void overdue(workflow_world *ww) {
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = true});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2600));
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "still"), EBB_OK);
    world_pass(ww->world, MS(200));
    end_puppet(ww->world, p);
}

static void nested(workflow_world *ww) {
    ebb_workflow outer =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .name = "all"});
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel,
                                              .parent = ebb_workflow_region(ww->host, outer)});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, inner), IGNORING);
    world_settle(ww->world);
    workflow_stop(ww, outer);
    world_pass(ww->world, MS(7));
    end_puppet(ww->world, p);
}

static void nested_and_forced(workflow_world *ww) {
    ebb_workflow outer = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown});
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel,
                                              .parent = ebb_workflow_region(ww->host, outer)});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, inner), IGNORING);
    workflow_stop(ww, outer);
    assert_int_equal(ebb_workflow_force(ww->host, outer, "now"), EBB_OK);
    world_finish(ww->world);
}

static void absorbed(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_epoch_transition_cancel});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_TIMEOUT, "slow"), EBB_OK);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "please"), EBB_OK);
    world_pass(ww->world, MS(1));
    end_puppet(ww->world, p);
}

static void refused(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1)), EBB_ERR_CANCEL_INVALID_PHASE);
    workflow_stop(ww, wf);
    world_finish(ww->world);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "late"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
}

static void completed(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void reserve(ebb_cx *cx, puppet *p) {
    (void)p;
    assert_int_equal(ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, NULL, NULL).id), EBB_OK);
}

/* What leaks before the request is told, and does not count against the end. */
static void leaked_before(workflow_world *ww) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), (puppet){.act = reserve});
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_finish(ww->world);
}

static void unfinished(workflow_world *ww) {
    (void)workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .name = "v42"});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
}

static const struct {
    const char *name;
    void (*run)(workflow_world *ww);
    const char *story; /* of the last workflow */
} scenarios[] = {
    {"clean", clean,
     "opened requested drain_started evidence handler_done drain_completed finalizing finalized"},
    {"cancelled", cancelled,
     "opened requested drain_started drain_cancelled drain_completed finalizing finalized"},
    {"timed_out", timed_out,
     "opened requested drain_started drain_cancelled drain_timeout finalizing left left leak_detected"},
    {"forced", forced, "opened requested drain_started drain_forced finalizing finalized"},
    {"extended", extended,
     "opened requested drain_started evidence handler_done drain_timeout drain_cancelled absorbed extended "
     "drain_completed finalizing finalized"},
    {"overdue", overdue,
     "opened requested drain_started drain_cancelled drain_timeout absorbed drain_completed finalizing "
     "finalized"},
    {"nested", nested, "opened requested drain_started drain_completed finalizing finalized"},
    {"nested_and_forced", nested_and_forced,
     "opened requested drain_started absorbed drain_forced finalizing left leak_detected"},
    {"absorbed", absorbed,
     "opened requested drain_started absorbed absorbed drain_completed finalizing finalized"},
    {"refused", refused,
     "opened refused requested drain_started drain_completed finalizing finalized refused"},
    {"completed", completed, "opened completed"},
    {"leaked_before", leaked_before,
     "opened left requested drain_started drain_completed finalizing finalized"},
    {"unfinished", unfinished, "opened requested drain_started"},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

#endif
