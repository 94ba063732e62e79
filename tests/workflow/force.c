/* The end of a budget: force, and what an operator may do instead; extending; clocks that jump. */
#include "tests/support/workflow_world.h"

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
}

static ebb_workflow open_patient(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = true});
}

/* ---- the budget is over ---------------------------------------------------------------------- */

static void force_ends_it_within_a_tenth_of_the_budget(void **state) {
    workflow_world *ww = *state;
    const ebb_workflow_type *types[] = {&ebb_workflow_lifecycle_shutdown, &ebb_workflow_rollout_cancel,
                                        &ebb_workflow_publish_abort, &ebb_workflow_health_check_cancel,
                                        &ebb_workflow_epoch_transition_cancel};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = types[i]});
        (void)workflow_work(ww, wf, IGNORING);
        (void)workflow_work(ww, wf, (puppet){.returns = EBB_PENDING, .spins = false});
        (void)drainer_add(ww, wf, "stuck", (drainer){.stays = true});
        (void)drainer_add_fiber(ww, wf, "stuck too", (drainer){.stays = true});
        workflow_stop(ww, wf);
        world_pass(ww->world, types[i]->budget + types[i]->budget / 10);
        ebb_workflow_report report = workflow_report(ww, wf);
        assert_int_equal(report.state, EBB_WORKFLOW_LEAK_DETECTED);
        assert_int_equal(report.leaks, 4);
        assert_int_equal(report.unnamed, 0);
        assert_true(report.elapsed <= types[i]->budget + types[i]->budget / 10);
    }
}

static void work_that_spins_and_ignores_everything_is_forced_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    p->spins = true; /* not before: it would never settle */
    (void)ebb_task_wake(ww->host, p->id);
    ebb_runtime_advance(ww->rt, world_now(ww->world) + MS(1));
    world_settle(ww->world);
    world_pass(ww->world, MS(200));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

static void a_force_polls_what_heeds_it_and_leaves_that_clean(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, (puppet){.returns = EBB_PENDING, .on_cancel = EBB_CANCELLED});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    p->heeds = true; /* it looks up in the last poll that it gets */
    world_pass(ww->world, MS(201));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_true(report.drain_timed_out);
    assert_int_equal(report.leaks, 0);
    workflow_says(workflow_line(ww, "finalized", 0), "\"drain_timed_out\":1");
}

static void a_finalizer_that_never_ends_is_over_with_the_rest_of_the_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_leak leak;
    ebb_workflow wf = open_plain(ww);
    puppet *p = puppet_new(ww->world, IGNORING);
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), puppet_poll, p), EBB_OK);
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    world_pass(ww->world, MS(3000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_false(workflow_report(ww, wf).drain_timed_out);
    assert_int_equal(ebb_workflow_leak_at(ww->host, wf, 0, &leak), EBB_OK);
    assert_string_equal(leak.what, "finalizer");
}

/* ---- no_force -------------------------------------------------------------------------------- */

static void an_operator_who_extends_it_lets_it_complete(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_patient(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(400)), EBB_OK); /* from now */
    assert_int_equal(workflow_report(ww, wf).budget, MS(2900));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    workflow_says(workflow_line(ww, "extended", 0), "\"budget_ms\":2900.000");
    world_pass(ww->world, MS(399));
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.elapsed, MS(2899));
    assert_int_equal(report.budget, MS(2900));
}

static void an_extension_that_is_over_waits_for_the_operator_again(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2000));
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(workflow_lines(ww, "drain_timeout"), i);
        assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
        assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(100)), EBB_OK);
        world_pass(ww->world, MS(99));
        assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
        world_pass(ww->world, MS(1));
    }
    workflow_says(workflow_line(ww, "drain_timeout", 2), "\"elapsed_ms\":2200.000,\"budget_ms\":2200.000");
}

static void an_operator_who_forces_it_ends_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_patient(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(9000));
    assert_int_equal(ebb_workflow_force(ww->host, wf, "pager"), EBB_OK);
    world_pass(ww->world, MS(200));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_true(report.forced);
    assert_true(report.drain_timed_out);
    assert_int_equal(report.elapsed, MS(9000));
    const char *line = workflow_line(ww, "drain_forced", 0);
    workflow_says(line, "\"code\":\"CAN-004\"");
    workflow_says(line, "\"by\":\"pager\"");
    workflow_says(line, "\"elapsed_ms\":9000.000");
}

static void the_budget_of_one_that_waits_for_an_operator_does_not_grow_by_itself(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    puppet *p = workflow_work(ww, wf, IGNORING), *other = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(5000));
    workflow_finish(ww, other);
    (void)ebb_workflow_request(ww->host, wf, EBB_CANCEL_SHUTDOWN, "now");
    ebb_region_close(ww->host, ebb_workflow_region(ww->host, wf)); /* its supervisor looks again */
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_report(ww, wf).budget, MS(2000));
    workflow_finish(ww, p);
    assert_int_equal(workflow_report(ww, wf).state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_report(ww, wf).budget, MS(2000));
    workflow_says(workflow_line(ww, "drain_completed", 0), "\"elapsed_ms\":6000.000,\"budget_ms\":2000.000");
}

static void a_finalizer_that_never_ends_may_be_forced_by_its_region_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    puppet *p = puppet_new(ww->world, IGNORING);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer(ww->host, r, puppet_poll, p), EBB_OK);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(600));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    ebb_region_force(ww->host, r);
    world_pass(ww->world, MS(500));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

/* ---- extending ------------------------------------------------------------------------------- */

static void extending_before_cancel_at_moves_both_ends(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1000));
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1000)), EBB_OK);
    workflow_says(workflow_line(ww, "extended", 0), "\"by_ms\":1000");
    world_pass(ww->world, MS(799));
    assert_int_equal(info_of(ww->world, p->id).epoch, 0); /* 60 % of 3000 */
    world_pass(ww->world, MS(1));
    assert_int_equal(info_of(ww->world, p->id).epoch, 1);
    world_pass(ww->world, MS(1199));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_true(workflow_report(ww, wf).drain_timed_out);
}

static void extending_after_cancel_at_is_refused_if_it_is_forced_at_the_end(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1300));
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1000)), EBB_ERR_CANCEL_INVALID_PHASE);
    assert_string_equal(
        ebb_workflow_refusal(ww->host, wf),
        "publish_abort#1: extend is not allowed in DRAINING: what was in flight has its cleanup "
        "budget already");
    world_pass(ww->world, MS(900));
    assert_int_equal(workflow_report(ww, wf).elapsed, MS(2000));
}

static void extending_after_cancel_at_is_allowed_if_it_is_not_forced(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1300));
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1000)), EBB_OK);
    world_pass(ww->world, MS(1699));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_pass(ww->world, MS(1));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
}

static void extending_by_nothing_is_invalid_and_changes_nothing(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, 0), EBB_ERR_INVALID);
    assert_int_equal(workflow_report(ww, wf).budget, MS(2000));
    assert_int_equal(workflow_lines(ww, "extended"), 0);
}

static void extending_by_the_most_again_and_again_stops_at_the_limit(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    puppet *last = puppet_new(ww->world, IGNORING);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer(ww->host, r, puppet_poll, last), EBB_OK);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, EBB_FOREVER), EBB_OK); /* cut to what there is */
    assert_true(workflow_report(ww, wf).budget <= UINT64_C(1) << 62);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, EBB_FOREVER), EBB_ERR_LIMIT);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, 1), EBB_ERR_LIMIT);
    assert_int_equal(workflow_lines(ww, "extended"), 1);
    world_pass(ww->world, MS(60000));
    assert_int_equal(info_of(ww->world, p->id).epoch, 0);
    workflow_finish(ww, p);
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, wf),
                     EBB_WORKFLOW_FINALIZING); /* its finalizer has all that time too */
    assert_int_equal(workflow_report(ww, wf).leaks, 0);
}

/* ---- forcing --------------------------------------------------------------------------------- */

static void forcing_before_cancel_at_ends_it_now(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *heeds = workflow_work(ww, wf, HEEDING);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(100));
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    world_pass(ww->world, MS(200));
    assert_int_equal(heeds->seen, EBB_CANCELLED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_int_equal(report.elapsed, MS(100));
    assert_int_equal(report.leaks, 1);
    assert_true(report.forced);
    workflow_says(workflow_line(ww, "drain_forced", 0), "\"by\":\"operator\"");
}

static void forcing_when_cancel_at_is_the_budget_leaves_nobody_behind_who_heeds_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .cancel_at = MS(2000)});
    drainer *h = drainer_add(ww, wf, "quick", (drainer){.returns = EBB_OK});
    (void)workflow_work(ww, wf, HEEDING);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK); /* before anything was polled */
    world_pass(ww->world, MS(200));
    assert_int_equal(h->polls, 1);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.leaks, 0);
}

static void finalizers_have_time_after_a_force(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *last = puppet_new(ww->world, (puppet){.says = "last"});
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), puppet_poll, last),
                     EBB_OK);
    (void)workflow_work(ww, wf, HEEDING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    world_settle(ww->world);
    assert_string_equal(ww->world->log, "last ");
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_int_equal(report.leaks, 0);
}

/* ---- from outside ---------------------------------------------------------------------------- */

typedef void (*verb)(ebb_cx *cx, ebb_region r);

static void cancels(ebb_cx *cx, ebb_region r) {
    ebb_region_cancel(cx, r, EBB_CANCEL_DISCONNECT, "gone");
}

static const verb verbs[] = {ebb_region_close, cancels, ebb_region_force};
enum { CLOSE, CANCEL, FORCE, VERBS };

static void a_region_that_is_closed_from_outside_is_a_request(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    puppet *p = workflow_work(ww, wf, IGNORING);
    ebb_region_close(ww->host, ebb_workflow_region(ww->host, wf));
    world_settle(ww->world);
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.state, EBB_WORKFLOW_DRAINING);
    assert_int_equal(report.budget, MS(2000));
    assert_int_equal(report.reason.kind, EBB_CANCEL_USER);
    assert_string_equal(report.reason.message, "its region was closed");
    assert_int_equal(h->polls, 1);
    assert_int_equal(info_of(ww->world, p->id).epoch, 0);
}

static void a_region_that_is_cancelled_from_outside_is_a_request_with_that_reason_and_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    (void)workflow_work(ww, wf, IGNORING);
    ebb_budget b = {world_now(ww->world) + MS(500), EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(ww->host, ebb_workflow_region(ww->host, wf), EBB_CANCEL_LEASE_LOST,
                             "row is gone", b);
    world_settle(ww->world);
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.state, EBB_WORKFLOW_DRAINING);
    assert_int_equal(report.reason.kind, EBB_CANCEL_LEASE_LOST);
    assert_string_equal(report.reason.message, "row is gone");
    assert_true(report.cancelled);
    assert_true(report.budget <= MS(500) && report.budget >= MS(399)); /* a fifth is kept for finalizers */
    assert_int_equal(h->polls, 1);
    world_pass(ww->world, MS(550));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

static void a_region_that_is_forced_from_outside_is_forced_by_what_is_around_it(void **state) {
    workflow_world *ww = *state;
    for (int draining = 0; draining < 2; draining++) {
        ebb_workflow_report report;
        ebb_workflow wf = open_plain(ww);
        (void)workflow_work(ww, wf, HEEDING);
        (void)workflow_work(ww, wf, IGNORING);
        if (draining) workflow_stop(ww, wf);
        if (draining) world_pass(ww->world, MS(10));
        ebb_region_force(ww->host, ebb_workflow_region(ww->host, wf));
        world_pass(ww->world, MS(1000));
        assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
        assert_true(report.forced);
        assert_true(report.drain_timed_out);
        assert_int_equal(report.leaks, 1);
        const char *line = workflow_line(ww, "drain_forced", (uint32_t)draining);
        workflow_says(line, "\"by\":\"what is around it\"");
    }
}

static void closing_after_the_request_changes_nothing(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    ebb_region_close(ww->host, ebb_workflow_region(ww->host, wf));
    world_pass(ww->world, MS(1199));
    assert_int_equal(info_of(ww->world, p->id).epoch, 0);
    assert_int_equal(workflow_report(ww, wf).absorbed, 0);
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_cancel_from_outside_in_a_drain_is_absorbed_and_cancels_at_once(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    ebb_region_cancel(ww->host, ebb_workflow_region(ww->host, wf), EBB_CANCEL_SHUTDOWN, "power");
    world_settle(ww->world);
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.absorbed, 1);
    assert_int_equal(report.reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_int_equal(report.epoch, 2);
    assert_true(report.cancelled);
    assert_true(report.budget <= MS(500));
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_int_equal(workflow_lines(ww, "drain_cancelled"), 1);
}

/* What comes from outside when the workflow comes into a state. */
typedef struct intruder {
    workflow_world *ww;
    ebb_workflow_state in;
    verb verb;
    bool done;
} intruder;

static void intrude(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    intruder *i = arg;
    (void)from;
    if (to != i->in) return;
    i->done = true;
    i->verb(i->ww->host, ebb_workflow_region(i->ww->host, wf));
}

static void every_verb_from_outside_in_every_state_leads_to_an_end(void **state) {
    workflow_world *ww = *state;
    for (int s = EBB_WORKFLOW_CANCEL_REQUESTED; s <= EBB_WORKFLOW_LEAK_DETECTED; s++) {
        for (int v = 0; v < VERBS; v++) {
            for (int patient = 0; patient < 2; patient++) {
                intruder i = {.ww = ww, .in = (ebb_workflow_state)s, .verb = verbs[v]};
                ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort,
                                                                        .no_force = patient,
                                                                        .on_state = intrude,
                                                                        .arg = &i});
                bool ends = s != EBB_WORKFLOW_DRAIN_TIMEOUT && s != EBB_WORKFLOW_LEAK_DETECTED;
                (void)drainer_add(ww, wf, "h", (drainer){.sleeps = MS(5)});
                (void)workflow_work(ww, wf,
                                    ends ? (puppet){.heeds = true, .returns = EBB_PENDING} : IGNORING);
                workflow_stop(ww, wf);
                world_pass(ww->world, MS(2200));
                if (patient && !ends) assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
                world_pass(ww->world, MS(2200));
                assert_true(i.done);
                assert_true(workflow_state(ww, wf) >= EBB_WORKFLOW_FINALIZED);
                ebb_status st = ebb_workflow_join(ww->host, wf, NULL);
                assert_true(st == EBB_OK || st == EBB_CANCELLED || st == EBB_ERR_CANCEL_LEAK);
            }
        }
    }
}

static void a_task_that_fails_fast_stops_the_workflow_with_its_failure(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    puppet *sibling = workflow_work(ww, wf, HEEDING);
    (void)workflow_work(ww, wf, (puppet){.returns = EBB_FAILED});
    world_settle(ww->world);
    assert_int_equal(sibling->seen, EBB_CANCELLED);
    assert_int_equal(h->polls, 1);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_FAILED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.reason.kind, EBB_CANCEL_SIBLING_FAILED);
    workflow_says(workflow_line(ww, "finalized", 0), "\"status\":\"EBB_FAILED\"");
}

static void a_failure_that_is_collected_stops_nothing(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = workflow_new(
        ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .policy = EBB_FAIL_COLLECT});
    puppet *p = workflow_work(ww, wf, IGNORING);
    (void)workflow_work(ww, wf, (puppet){.returns = EBB_FAILED});
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_FAILED);
    assert_int_equal(report.state, EBB_WORKFLOW_IDLE);
}

/* ---- clocks that jump ------------------------------------------------------------------------ */

static void jump(workflow_world *ww, uint64_t span) {
    ebb_runtime_advance(ww->rt, world_now(ww->world) + span);
    world_settle(ww->world);
}

static void a_clock_that_jumps_past_the_budget_is_told_as_it_was(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    jump(ww, MS(7000));
    world_pass(ww->world, MS(2000));
    const char *line = workflow_line(ww, "drain_timeout", 0);
    workflow_says(line, "\"elapsed_ms\":7000.000,\"budget_ms\":2000.000");
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, wf).budget, MS(2000));
}

static void a_clock_that_jumps_past_the_budget_does_not_make_a_late_end_one_in_time(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    ebb_runtime_advance(ww->rt, world_now(ww->world) + MS(7000));
    workflow_finish(ww, p);
    world_pass(ww->world, MS(200));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(workflow_lines(ww, "drain_timeout"), 1);
    assert_int_equal(workflow_lines(ww, "drain_completed"), 0);
    assert_true(report.drain_timed_out);
}

static void a_clock_that_jumps_past_everything_abandons_only_what_does_not_return(void **state) {
    workflow_world *ww = *state;
    for (int at_cancel = 0; at_cancel < 2; at_cancel++) {
        ebb_workflow_leak leak;
        ebb_workflow wf = open_plain(ww);
        (void)workflow_work(ww, wf, HEEDING);
        puppet *ignores = workflow_work(ww, wf, IGNORING);
        (void)drainer_add(ww, wf, "quick", (drainer){.sleeps = MS(100)});
        workflow_stop(ww, wf);
        if (at_cancel) world_pass(ww->world, MS(1200));
        jump(ww, 3600 * EBB_SECOND);
        world_pass(ww->world, MS(200));
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
        assert_int_equal(workflow_report(ww, wf).leaks, 1); /* neither its supervisor nor its handler */
        assert_int_equal(ebb_workflow_leak_at(ww->host, wf, 0, &leak), EBB_OK);
        assert_int_equal(leak.id, ignores->id.id);
    }
}

static void a_drain_that_is_late_says_so_before_anybody_else_writes_a_line(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    (void)drainer_add(ww, wf, "slow", (drainer){.sleeps = 3600 * EBB_SECOND, .returns = EBB_OK});
    ebb_runtime_advance(ww->rt, world_now(ww->world) + 527 * EBB_US); /* alarms come at whole milliseconds */
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    jump(ww, MS(1) + 300 * EBB_US);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    ebb_status st = ebb_workflow_on_drain(ww->host, wf, "late", drainer_run, NULL);
    assert_int_equal(st, EBB_ERR_CANCEL_INVALID_PHASE);
    jump(ww, MS(4000));
    world_pass(ww->world, MS(1000));
    workflow_says(workflow_story(ww, 1), "drain_cancelled drain_timeout finalizing refused handler_done ");
    workflow_says(workflow_line(ww, "drain_timeout", 0), "\"elapsed_ms\":2000.300,\"budget_ms\":2000.000");
}

static void what_is_forced_after_a_jump_writes_nothing_before_the_timeout(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    (void)drainer_add(ww, wf, "slow", (drainer){.sleeps = 3600 * EBB_SECOND, .returns = EBB_OK});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1500));
    jump(ww, MS(4000)); /* the kernel forces at the same time as the supervisor is woken */
    world_pass(ww->world, MS(1000));
    workflow_says(workflow_story(ww, 1), "drain_cancelled drain_timeout finalizing ");
    workflow_says(workflow_line(ww, "drain_timeout", 0), "\"elapsed_ms\":5500.000,\"budget_ms\":2000.000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(force_ends_it_within_a_tenth_of_the_budget),
        IN_WORKFLOWS(work_that_spins_and_ignores_everything_is_forced_too),
        IN_WORKFLOWS(a_force_polls_what_heeds_it_and_leaves_that_clean),
        IN_WORKFLOWS(a_finalizer_that_never_ends_is_over_with_the_rest_of_the_budget),
        IN_WORKFLOWS(an_operator_who_extends_it_lets_it_complete),
        IN_WORKFLOWS(an_extension_that_is_over_waits_for_the_operator_again),
        IN_WORKFLOWS(an_operator_who_forces_it_ends_it),
        IN_WORKFLOWS(the_budget_of_one_that_waits_for_an_operator_does_not_grow_by_itself),
        IN_WORKFLOWS(a_finalizer_that_never_ends_may_be_forced_by_its_region_too),
        IN_WORKFLOWS(extending_before_cancel_at_moves_both_ends),
        IN_WORKFLOWS(extending_after_cancel_at_is_refused_if_it_is_forced_at_the_end),
        IN_WORKFLOWS(extending_after_cancel_at_is_allowed_if_it_is_not_forced),
        IN_WORKFLOWS(extending_by_nothing_is_invalid_and_changes_nothing),
        IN_WORKFLOWS(extending_by_the_most_again_and_again_stops_at_the_limit),
        IN_WORKFLOWS(forcing_before_cancel_at_ends_it_now),
        IN_WORKFLOWS(forcing_when_cancel_at_is_the_budget_leaves_nobody_behind_who_heeds_it),
        IN_WORKFLOWS(finalizers_have_time_after_a_force),
        IN_WORKFLOWS(a_region_that_is_closed_from_outside_is_a_request),
        IN_WORKFLOWS(a_region_that_is_cancelled_from_outside_is_a_request_with_that_reason_and_budget),
        IN_WORKFLOWS(a_region_that_is_forced_from_outside_is_forced_by_what_is_around_it),
        IN_WORKFLOWS(closing_after_the_request_changes_nothing),
        IN_WORKFLOWS(a_cancel_from_outside_in_a_drain_is_absorbed_and_cancels_at_once),
        IN_WORKFLOWS(every_verb_from_outside_in_every_state_leads_to_an_end),
        IN_WORKFLOWS(a_task_that_fails_fast_stops_the_workflow_with_its_failure),
        IN_WORKFLOWS(a_failure_that_is_collected_stops_nothing),
        IN_WORKFLOWS(a_clock_that_jumps_past_the_budget_is_told_as_it_was),
        IN_WORKFLOWS(a_clock_that_jumps_past_the_budget_does_not_make_a_late_end_one_in_time),
        IN_WORKFLOWS(a_clock_that_jumps_past_everything_abandons_only_what_does_not_return),
        IN_WORKFLOWS(a_drain_that_is_late_says_so_before_anybody_else_writes_a_line),
        IN_WORKFLOWS(what_is_forced_after_a_jump_writes_nothing_before_the_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
