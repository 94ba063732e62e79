/* Workflows in workflows: who is asked with whom, what time each has, and why the log says it was. */
#include "tests/support/workflow_world.h"

static ebb_workflow open_in(workflow_world *ww, ebb_workflow parent, const ebb_workflow_type *type) {
    ebb_workflow_opts opts = {.type = type};
    if (parent.id != 0) opts.parent = ebb_workflow_region(ww->host, parent);
    return workflow_new(ww, &opts);
}

static const ebb_workflow nobody = {0};

/* ---- budgets --------------------------------------------------------------------------------- */

static void a_child_is_asked_with_its_parent_and_keeps_its_own_shorter_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_health_check_cancel);
    drainer *h = drainer_add(ww, child, "child's", (drainer){.returns = EBB_OK});
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, parent);
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_DRAINING);
    assert_int_equal(workflow_report(ww, child).budget, MS(1000));
    assert_int_equal(workflow_report(ww, parent).budget, MS(5000));
    assert_int_equal(h->polls, 1);
    world_pass(ww->world, MS(1100));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_LEAK_DETECTED);
    world_pass(ww->world, MS(1));
    assert_int_equal(workflow_state(ww, parent),
                     EBB_WORKFLOW_LEAK_DETECTED); /* what was left below is left here */
}

static void a_child_that_is_asked_after_its_parent_has_at_most_what_is_left_there(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_health_check_cancel);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_lifecycle_shutdown);
    puppet *p = workflow_work(ww, child, IGNORING);
    workflow_stop(ww, parent);
    assert_int_equal(workflow_report(ww, child).budget, MS(1000));
    world_pass(ww->world, MS(999));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(101));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_state(ww, parent), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(phase_of(ww->world, p->id), 0);
}

static void a_parent_that_is_asked_later_shortens_the_drain_of_its_child(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_health_check_cancel);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_lifecycle_shutdown);
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, child);
    assert_int_equal(workflow_report(ww, child).budget, MS(5000));
    world_pass(ww->world, MS(500));
    assert_int_equal(workflow_state(ww, parent), EBB_WORKFLOW_IDLE);
    workflow_stop(ww, parent);
    assert_int_equal(workflow_report(ww, child).budget, MS(1500)); /* 500 are over, 1000 are left there */
    world_pass(ww->world, MS(999));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(101));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, child).elapsed, MS(1500));
}

static void a_parent_that_is_asked_later_does_not_lengthen_the_drain_of_its_child(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_health_check_cancel);
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, child);
    world_pass(ww->world, MS(500));
    workflow_stop(ww, parent);
    assert_int_equal(workflow_report(ww, child).budget, MS(1000));
    world_pass(ww->world, MS(600));
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, child).elapsed, MS(1000));
}

static void a_child_can_not_be_extended_past_its_parent(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_publish_abort);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_health_check_cancel);
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, parent);
    assert_int_equal(ebb_workflow_extend(ww->host, child, MS(5000)), EBB_OK); /* as much as there is */
    assert_int_equal(workflow_report(ww, child).budget, MS(2000));
    workflow_says(workflow_line(ww, "extended", 0), "\"by_ms\":1000");
    assert_int_equal(ebb_workflow_extend(ww->host, child, MS(1)), EBB_ERR_LIMIT);
    assert_int_equal(workflow_report(ww, child).budget, MS(2000));
    assert_int_equal(ebb_workflow_extend(ww->host, parent, MS(500)), EBB_OK);
    assert_int_equal(ebb_workflow_extend(ww->host, child, MS(500)), EBB_OK);
    assert_int_equal(workflow_report(ww, child).budget, MS(2500));
}

static void three_levels_have_the_meet_of_all_in_any_order_of_requests(void **state) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    workflow_world *ww = *state;
    for (int o = 0; o < 6; o++) {
        ebb_workflow wf[3];
        wf[0] = open_in(ww, nobody, &ebb_workflow_publish_abort);          /* 2000 */
        wf[1] = open_in(ww, wf[0], &ebb_workflow_lifecycle_shutdown);      /* 5000 */
        wf[2] = open_in(ww, wf[1], &ebb_workflow_epoch_transition_cancel); /* 3000 */
        (void)workflow_work(ww, wf[2], IGNORING);
        uint64_t start = world_now(ww->world), last = 0;
        for (int i = 0; i < 3; i++) {
            workflow_stop(ww, wf[orders[o][i]]);
            if (orders[o][i] == 0) last = world_now(ww->world);
            world_pass(ww->world, MS(100));
        }
        for (int i = 0; i < 3; i++) {
            ebb_workflow_report r = workflow_report(ww, wf[i]);
            uint64_t asked = world_now(ww->world) - r.elapsed;
            assert_int_equal(asked + r.budget, last + MS(2000)); /* all end with the outermost */
        }
        world_pass(ww->world, start + MS(2500) - world_now(ww->world));
        for (int i = 3; i-- > 0;)
            assert_int_equal(ebb_workflow_join(ww->host, wf[i], NULL), EBB_ERR_CANCEL_LEAK);
    }
}

static void a_child_that_waits_for_an_operator_is_forced_with_its_parent(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_publish_abort);
    ebb_workflow child =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel,
                                              .no_force = true,
                                              .parent = ebb_workflow_region(ww->host, parent)});
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, parent);
    world_pass(ww->world, MS(1500));
    assert_int_equal(ebb_workflow_join(ww->host, child, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    world_pass(ww->world, MS(700));
    assert_int_equal(ebb_workflow_join(ww->host, child, &report), EBB_ERR_CANCEL_LEAK);
    assert_true(report.forced);
    assert_int_equal(ebb_workflow_join(ww->host, parent, &report), EBB_ERR_CANCEL_LEAK);
    assert_false(report.forced);
}

/* ---- who holds whom up ----------------------------------------------------------------------- */

static void a_parent_drains_until_its_child_has_ended(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_rollout_cancel);
    drainer *h = drainer_add(ww, child, "slow", (drainer){.sleeps = MS(2500)});
    workflow_stop(ww, parent);
    world_pass(ww->world, MS(2499));
    assert_int_equal(workflow_state(ww, parent), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_int_equal(h->slept, EBB_OK);
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_state(ww, parent), EBB_WORKFLOW_FINALIZED);
}

static void a_child_that_is_stopped_by_itself_leaves_its_parent_idle(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_rollout_cancel);
    puppet *p = workflow_work(ww, parent, IGNORING);
    workflow_stop(ww, child);
    assert_int_equal(workflow_state(ww, child), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_state(ww, parent), EBB_WORKFLOW_IDLE);
    assert_int_equal(ebb_workflow_join(ww->host, child, NULL), EBB_OK);
    assert_int_equal(ebb_workflow_join(ww->host, parent, NULL), EBB_PENDING);
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, parent, NULL), EBB_OK);
}

static void a_parent_that_is_joined_waits_for_a_child_that_is_idle(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_rollout_cancel);
    assert_int_equal(ebb_workflow_join(ww->host, parent, NULL), EBB_PENDING);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, parent, NULL), EBB_PENDING);
    assert_int_equal(ebb_workflow_join(ww->host, child, NULL), EBB_PENDING);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, child, NULL), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, parent, NULL), EBB_OK);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void the_log_has_the_chain_of_reasons_to_the_root_cause(void **state) {
    workflow_world *ww = *state;
    ebb_workflow a = open_in(ww, nobody, &ebb_workflow_lifecycle_shutdown);
    ebb_workflow b = open_in(ww, a, &ebb_workflow_rollout_cancel),
                 c = open_in(ww, b, &ebb_workflow_publish_abort);
    (void)workflow_work(ww, c, HEEDING);
    assert_int_equal(ebb_workflow_request(ww->host, a, EBB_CANCEL_TIMEOUT, "too slow"), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(workflow_report(ww, c).reason.kind, EBB_CANCEL_PARENT);
    assert_int_equal(workflow_report(ww, c).reason.severity, ebb_cancel_kind_severity(EBB_CANCEL_TIMEOUT));
    const char *lines[] = {workflow_line(ww, "requested", 1), workflow_line(ww, "requested", 2)};
    bool deepest = strstr(lines[0], "\"id\":3,") != NULL;
    workflow_says(lines[deepest ? 0 : 1],
                  "\"reason\":[{\"kind\":\"PARENT\",\"severity\":2,\"message\":\"\"},{\"kind\":\"PARENT\","
                  "\"severity\":2,\"message\":\"\"},{\"kind\":\"TIMEOUT\",\"severity\":2,\"message\":\"too "
                  "slow\"}]");
    workflow_says(lines[deepest ? 0 : 1], "\"parent\":2,");
    workflow_says(lines[deepest ? 1 : 0], "\"reason\":[{\"kind\":\"PARENT\",\"severity\":2,\"message\":\"\"},"
                                          "{\"kind\":\"TIMEOUT\",\"severity\":2,\"message\":\"too slow\"}]");
    workflow_says(workflow_line(ww, "requested", 0), "\"reason\":[{\"kind\":\"TIMEOUT\",");
}

static void a_reason_that_no_workflow_has_said_first_is_in_the_chain_too(void **state) {
    workflow_world *ww = *state;
    ebb_region around = open_region(ww->world, ww->world->root);
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around});
    (void)workflow_work(ww, wf, HEEDING);
    ebb_region_cancel(ww->host, around, EBB_CANCEL_LEASE_LOST, "row is gone");
    world_settle(ww->world);
    workflow_says(workflow_line(ww, "requested", 0), "{\"kind\":\"LEASE_LOST\",");
    workflow_says(workflow_line(ww, "requested", 0), "\"message\":\"row is gone\"}]");
}

static void what_is_cancelled_in_a_child_is_told_no_less_than_the_parent_was(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_rollout_cancel);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_health_check_cancel);
    puppet *p = workflow_work(ww, child, IGNORING);
    assert_int_equal(ebb_workflow_request(ww->host, parent, EBB_CANCEL_SHUTDOWN, "power"), EBB_OK);
    world_pass(ww->world, MS(600)); /* cancel_at of the child only */
    assert_true(workflow_report(ww, child).cancelled);
    assert_false(workflow_report(ww, parent).cancelled);
    assert_int_equal(info_of(ww->world, p->id).reason.severity,
                     ebb_cancel_kind_severity(EBB_CANCEL_SHUTDOWN));
}

static uint32_t links_in(const char *line) {
    uint32_t n = 0;
    for (const char *at = line; (at = strstr(at, "{\"kind\":")) != NULL; at++) n++;
    return n;
}

static void a_chain_of_reasons_is_cut_at_its_depth_and_the_root_cause_is_told_all_the_same(void **state) {
    enum { DEEP = 40 };
    workflow_world *ww = *state;
    ebb_workflow wf[DEEP];
    for (int i = 0; i < DEEP; i++)
        wf[i] = open_in(ww, i == 0 ? nobody : wf[i - 1], &ebb_workflow_rollout_cancel);
    puppet *p = workflow_work(ww, wf[DEEP - 1], IGNORING);
    assert_int_equal(ebb_workflow_request(ww->host, wf[0], EBB_CANCEL_SHUTDOWN, "power"), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(workflow_lines(ww, "requested"), DEEP);
    for (uint32_t i = 0; i < DEEP; i++) {
        const char *line = workflow_line(ww, "requested", i);
        assert_true(links_in(line) <= EBB_CHAIN_DEPTH);
        workflow_says(line, "{\"kind\":\"SHUTDOWN\",\"severity\":3,\"message\":\"power\"}]");
    }
    world_pass(ww->world, MS(1800));
    assert_int_equal(info_of(ww->world, p->id).reason.severity,
                     ebb_cancel_kind_severity(EBB_CANCEL_SHUTDOWN));
}

static void a_stronger_reason_of_the_parent_reaches_a_child_that_drains_already(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_rollout_cancel);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_lifecycle_shutdown);
    (void)workflow_work(ww, child, IGNORING);
    workflow_stop(ww, child);
    assert_int_equal(ebb_workflow_request(ww->host, parent, EBB_CANCEL_SHUTDOWN, "power"), EBB_OK);
    world_pass(ww->world, MS(1800)); /* by then at the latest: what is in the parent is cancelled */
    assert_int_equal(workflow_report(ww, child).reason.severity,
                     ebb_cancel_kind_severity(EBB_CANCEL_SHUTDOWN));
    assert_int_equal(workflow_report(ww, child).epoch, 2);
}

/* What it was told stands first in every line, whatever its region is told later, and when that is gone; the root
 * cause stands last. The log is verified when the test ends. */
static void the_log_keeps_the_reason_from_around_when_that_is_told_more_and_when_it_is_gone(void **state) {
    workflow_world *ww = *state;
    ebb_region around = open_region(ww->world, ww->world->root);
    ebb_workflow_opts opts = {.type = &ebb_workflow_lifecycle_shutdown, .parent = around};
    ebb_workflow wf = workflow_new(ww, &opts);
    puppet *p = workflow_work(ww, wf, IGNORING);
    ebb_region_cancel(ww->host, around, EBB_CANCEL_USER, "enough");
    world_settle(ww->world);
    assert_true(workflow_report(ww, wf).cancelled);
    ebb_region_cancel(ww->host, around, EBB_CANCEL_LEASE_LOST, "row is gone"); /* it says SHUTDOWN on */
    world_settle(ww->world);
    workflow_says(workflow_line(ww, "absorbed", 0),
                  "\"reason\":[{\"kind\":\"PARENT\",\"severity\":2,\"message\":\"\"},"
                  "{\"kind\":\"LEASE_LOST\",\"severity\":2,\"message\":\"row is gone\"}]");
    p->heeds = true;
    p->on_cancel = EBB_CANCELLED;
    (void)ebb_task_wake(ww->host, p->id);
    world_settle(ww->world);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "again"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    workflow_says(workflow_line(ww, "refused", 0),
                  "\"reason\":[{\"kind\":\"PARENT\",\"severity\":2,\"message\":\"\"},"
                  "{\"kind\":\"LEASE_LOST\",\"severity\":2,\"message\":\"row is gone\"}]");
}

static void the_closed_text_names_the_outermost_that_was_asked(void **state) {
    workflow_world *ww = *state;
    char text[160];
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_rollout_cancel);
    ebb_workflow child = open_in(ww, parent, &ebb_workflow_health_check_cancel);
    (void)workflow_work(ww, child, IGNORING);
    ebb_region r = ebb_workflow_region(ww->host, child);
    workflow_stop(ww, child);
    assert_true(ebb_region_closed_text(ww->host, r, text, sizeof text) > 0);
    assert_string_equal(text, "health_check_cancel#2 is DRAINING (USER: enough): no new work");
    workflow_stop(ww, parent);
    assert_true(ebb_region_closed_text(ww->host, r, text, sizeof text) > 0);
    assert_string_equal(text, "rollout_cancel#1 is DRAINING (USER: enough): no new work");
    assert_int_equal(ebb_region_closed_text(ww->host, r, text, 9), 8); /* cut to fit */
    assert_string_equal(text, "rollout_");
    assert_int_equal(ebb_region_closed_text(ww->host, ww->world->root, text, sizeof text),
                     0); /* that is open */
    assert_int_equal(ebb_region_closed_text(ww->host, r, text, 0), 0);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void a_child_without_a_log_of_its_own_writes_to_that_of_its_parent(void **state) {
    workflow_world *ww = *state;
    ebb_workflow parent = open_in(ww, nobody, &ebb_workflow_rollout_cancel);
    ebb_workflow_opts opts = {.type = &ebb_workflow_publish_abort,
                              .parent = ebb_workflow_region(ww->host, parent)};
    ebb_workflow child = ebb_workflow_open(ww->host, &opts);
    assert_int_equal(ebb_id_status(child.id), EBB_OK);
    workflow_says(workflow_line(ww, "opened", 1),
                  "\"workflow\":\"publish_abort\",\"name\":\"\",\"id\":2,\"parent\":1");
    workflow_stop(ww, parent);
    workflow_says(workflow_story(ww, 2), "opened requested drain_started");
}

static void a_workflow_without_any_log_goes_through_its_states_all_the_same(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = ebb_workflow_open(ww->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_int_equal(report.audit, EBB_OK);
    assert_int_equal(workflow_lines(ww, "opened"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(a_child_is_asked_with_its_parent_and_keeps_its_own_shorter_budget),
        IN_WORKFLOWS(a_child_that_is_asked_after_its_parent_has_at_most_what_is_left_there),
        IN_WORKFLOWS(a_parent_that_is_asked_later_shortens_the_drain_of_its_child),
        IN_WORKFLOWS(a_parent_that_is_asked_later_does_not_lengthen_the_drain_of_its_child),
        IN_WORKFLOWS(a_child_can_not_be_extended_past_its_parent),
        IN_WORKFLOWS(three_levels_have_the_meet_of_all_in_any_order_of_requests),
        IN_WORKFLOWS(a_child_that_waits_for_an_operator_is_forced_with_its_parent),
        IN_WORKFLOWS(a_parent_drains_until_its_child_has_ended),
        IN_WORKFLOWS(a_child_that_is_stopped_by_itself_leaves_its_parent_idle),
        IN_WORKFLOWS(a_parent_that_is_joined_waits_for_a_child_that_is_idle),
        IN_WORKFLOWS(the_log_has_the_chain_of_reasons_to_the_root_cause),
        IN_WORKFLOWS(a_reason_that_no_workflow_has_said_first_is_in_the_chain_too),
        IN_WORKFLOWS(what_is_cancelled_in_a_child_is_told_no_less_than_the_parent_was),
        IN_WORKFLOWS(a_chain_of_reasons_is_cut_at_its_depth_and_the_root_cause_is_told_all_the_same),
        IN_WORKFLOWS(a_stronger_reason_of_the_parent_reaches_a_child_that_drains_already),
        IN_WORKFLOWS(the_log_keeps_the_reason_from_around_when_that_is_told_more_and_when_it_is_gone),
        IN_WORKFLOWS(the_closed_text_names_the_outermost_that_was_asked),
        IN_WORKFLOWS(a_child_without_a_log_of_its_own_writes_to_that_of_its_parent),
        IN_WORKFLOWS(a_workflow_without_any_log_goes_through_its_states_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
