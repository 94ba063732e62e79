/* The operators' region of a workflow: it works on after the request, is nobody's work, and ends last. */
#include "tests/support/workflow_world.h"

typedef struct operator{
    workflow_world *ww;
    ebb_workflow wf;
    ebb_status (*does)(ebb_cx * cx, struct operator* me); /* when it is woken, once */
    ebb_status did;
    bool answers; /* takes 50 ms for its answer, then returns */
    bool heeds;   /* returns when its region is closed */
    bool done;
    ebb_task task;
    ebb_status slept;
    uint32_t polls;
    bool saw_stopping;
    ebb_sleeper nap;
}
operator;

static ebb_status operate(ebb_cx *cx, void *state) {
    operator* me = state;
    me->polls++;
    me->saw_stopping |= ebb_stopping(cx);
    if (me->does != NULL && !me->done) {
        me->done = true;
        me->did = me->does(cx, me);
    }
    if (me->done && me->answers) {
        me->slept = ebb_sleep(cx, &me->nap, MS(50));
        return me->slept == EBB_PENDING ? EBB_PENDING : EBB_OK;
    }
    return me->heeds && ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v42"});
}

static ebb_workflow open_patient(workflow_world *ww) {
    return workflow_new(
        ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v42", .no_force = true});
}

static operator* operator_start(workflow_world *ww, ebb_workflow wf, operator model) {
    operator* o = world_keep(ww->world, sizeof *o);
    *o = model;
    o->ww = ww;
    o->wf = wf;
    ebb_region r = ebb_workflow_operator_region(ww->host, wf);
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    o->task = ebb_spawn_site(ww->host, r, operate, o, "operator.c:1");
    assert_int_equal(ebb_id_status(o->task.id), EBB_OK);
    world_settle(ww->world);
    return o;
}

/* Somebody outside asks it for something. */
static void operator_does(operator* o, ebb_status (*does)(ebb_cx *cx, operator* me)) {
    o->does = does;
    (void)ebb_task_wake(o->ww->host, o->task);
    world_settle(o->ww->world);
}

/* ---- after the request ------------------------------------------------------------------------- */

static ebb_status extends(ebb_cx *cx, operator* me) {
    return ebb_workflow_extend(cx, me->wf, MS(5000));
}

static ebb_status forces(ebb_cx *cx, operator* me) {
    return ebb_workflow_force(cx, me->wf, "the operator");
}

static ebb_status spawns(ebb_cx *cx, operator* me) {
    operator* more = world_keep(me->ww->world, sizeof *more);
    more->heeds = true;
    more->ww = me->ww;
    return ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), operate, more).id);
}

static void an_operator_works_on_after_the_request_and_after_the_cancel(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    operator* o = operator_start(ww, wf, (operator){.heeds = true});
    puppet *stuck = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1500)); /* cancel_at is over */
    assert_int_equal(info_of(ww->world, stuck->id).epoch, 1);
    assert_int_equal(info_of(ww->world, o->task).epoch, 0);
    assert_false(o->saw_stopping);
    operator_does(o, spawns); /* another connection, say */
    assert_int_equal(o->did, EBB_OK);
    world_pass(ww->world, MS(1000));
    o->done = false;
    operator_does(o, extends); /* it is overdue */
    assert_int_equal(o->did, EBB_OK);
    assert_int_equal(workflow_report(ww, wf).budget, MS(7500));
    workflow_finish(ww, stuck);
    assert_true(o->saw_stopping); /* the rest has drained */
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void operators_are_neither_in_flight_nor_work(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)operator_start(ww, wf, (operator){.heeds = true});
    workflow_says(workflow_explained(ww, wf), "0 in flight");
    workflow_stop(ww, wf); /* there is nothing to drain */
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_report(ww, wf).elapsed, 0);
    workflow_says(workflow_line(ww, "requested", 0), "\"in_flight\":0");
}

static void an_explanation_names_operators_only_when_they_hold_it_up(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)operator_start(ww, wf, (operator){.answers = false});
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    assert_null(strstr(workflow_explained(ww, wf), "operator.c:1"));
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    workflow_says(workflow_explained(ww, wf), "operator.c:1");
}

/* ---- the end ----------------------------------------------------------------------------------- */

static void an_operator_that_does_not_stop_is_cancelled_a_twentieth_of_the_budget_later(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operator* o = operator_start(ww, wf, (operator){.heeds = false});
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING); /* what had to drain has drained */
    world_pass(ww->world, MS(99));
    assert_int_equal(info_of(ww->world, o->task).epoch, 0);
    world_pass(ww->world, MS(1));
    assert_int_equal(info_of(ww->world, o->task).epoch, 1);
    world_pass(ww->world, MS(3000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, wf).leaks, 1);
}

/* A cancel of those that serve it is no failure, and nothing that was left. */
static void an_operator_that_heeds_that_cancel_leaves_nothing(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_operator_region(ww->host, wf);
    (void)puppet_start(ww->world, r, HEEDING);
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    world_pass(ww->world, MS(100));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
}

static void a_force_lets_an_operator_answer(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_patient(ww);
    operator* o = operator_start(ww, wf, (operator){.answers = true});
    puppet *last = puppet_new(ww->world, (puppet){.says = "last"});
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), puppet_poll, last),
                     EBB_OK);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(9000));
    operator_does(o, forces);
    assert_int_equal(o->did, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    world_pass(ww->world, MS(49));
    assert_int_equal(o->slept, EBB_PENDING);
    assert_string_equal(ww->world->log, ""); /* finalizers come last */
    world_pass(ww->world, MS(1));
    assert_int_equal(o->slept, EBB_OK);
    assert_string_equal(ww->world->log, "last ");
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_int_equal(report.leaks, 1); /* what held it up */
    workflow_says(workflow_line(ww, "drain_forced", 0), "\"by\":\"the operator\"");
}

static void a_force_ends_operators_that_do_not_end_and_leaves_finalizers_their_time(void **state) {
    workflow_world *ww = *state;
    puppet *last = puppet_new(ww->world, (puppet){.says = "last"});
    ebb_workflow wf = open_plain(ww);
    (void)operator_start(ww, wf, (operator){.heeds = false});
    ebb_region r = ebb_workflow_region(ww->host, wf);
    (void)puppet_start(ww->world, ebb_workflow_operator_region(ww->host, wf), HEEDING);
    assert_int_equal(ebb_region_defer(ww->host, r, puppet_poll, last), EBB_OK);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    world_pass(ww->world, MS(220)); /* a tenth of the budget, and ticks */
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_string_equal(ww->world->log, "last ");
    assert_int_equal(workflow_report(ww, wf).leaks, 2);
}

static void a_force_from_around_lets_an_operator_answer_too(void **state) {
    workflow_world *ww = *state;
    ebb_region around = ebb_region_open(ww->host, NULL);
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around});
    operator* o = operator_start(ww, wf, (operator){.answers = true, .done = true});
    (void)workflow_work(ww, wf, IGNORING);
    ebb_region_force(ww->host, around);
    world_pass(ww->world, MS(50));
    assert_int_equal(o->slept, EBB_OK);
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

static void the_outer_workflow_waits_for_the_operators_of_an_inner_one(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    ebb_workflow inner = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel,
                                                               .parent = ebb_workflow_region(ww->host, wf)});
    operator* o = operator_start(ww, inner, (operator){.heeds = true});
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    assert_true(o->saw_stopping); /* the inner one had nothing to drain */
    assert_int_equal(workflow_state(ww, inner), EBB_WORKFLOW_FINALIZED);
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_workflow_whose_work_ends_by_itself_lets_them_go(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    operator* o = operator_start(ww, wf, (operator){.heeds = true});
    puppet *p = workflow_work(ww, wf, IGNORING);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_pass(ww->world, MS(1000));
    assert_false(o->saw_stopping);
    workflow_finish(ww, p);
    assert_true(o->saw_stopping);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_IDLE);
}

static void operators_who_have_ended_before_hold_nothing_up(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operator* o = operator_start(ww, wf, (operator){.heeds = true});
    ebb_region_close(ww->host, ebb_workflow_operator_region(ww->host, wf));
    world_settle(ww->world);
    assert_true(o->saw_stopping);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    (void)drainer_add(ww, wf, "slow", (drainer){.sleeps = MS(100)});
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(100));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* ---- units --------------------------------------------------------------------------------------- */

/* Its answer needs a task: a connection with an exchange, say. */
static ebb_status forces_and_spawns(ebb_cx *cx, operator* me) {
    ebb_status st = forces(cx, me);
    assert_true(ebb_stopping(cx));
    return st == EBB_OK ? spawns(cx, me) : st;
}

/* What operators begin is not work of the workflow, so it is not counted: the log has nothing in flight then. */
static void what_a_unit_of_an_operator_begins_is_not_counted(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    ebb_region_opts unit = {.parent = ebb_workflow_operator_region(ww->host, wf), .unit = true};
    operator* o = world_keep(ww->world, sizeof *o);
    *o = (operator){.ww = ww, .wf = wf, .heeds = true};
    o->task = ebb_spawn(ww->host, ebb_region_open(ww->host, &unit), operate, o);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    operator_does(o, forces_and_spawns);
    assert_int_equal(o->did, EBB_OK);
    world_pass(ww->world, MS(500));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    workflow_says(workflow_line(ww, "leak_detected", 0), "\"inside\":0");
}

/* ---- the region -------------------------------------------------------------------------------- */

static void there_is_one_and_it_can_be_made_until_the_drain_is_over(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww), other = open_plain(ww);
    ebb_region r = ebb_workflow_operator_region(ww->host, wf);
    assert_int_equal(ebb_workflow_operator_region(ww->host, wf).id, r.id);
    puppet *p = workflow_work(ww, other, IGNORING);
    puppet *last = puppet_new(ww->world, IGNORING);
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), puppet_poll, last),
                     EBB_OK);
    workflow_stop(ww, other);
    assert_int_equal(ebb_id_status(ebb_workflow_operator_region(ww->host, other).id), EBB_OK); /* it drains */
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, other), EBB_WORKFLOW_FINALIZED);
    ebb_workflow third = open_plain(ww);
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, third), puppet_poll, last),
                     EBB_OK);
    workflow_stop(ww, third);
    assert_int_equal(workflow_state(ww, third), EBB_WORKFLOW_FINALIZING);
    assert_int_equal(ebb_id_status(ebb_workflow_operator_region(ww->host, third).id), EBB_ERR_CLOSED);
    assert_int_equal(ebb_workflow_join(ww->host, other, NULL), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_workflow_operator_region(ww->host, other).id), EBB_ERR_STALE);
}

/* Machines of a service that closes wait for its units, which may still send. The operators' units are none of these. */
static void operators_do_not_hold_up_machines(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    const ebb_region_opts unit = {.parent = ebb_workflow_operator_region(ww->host, wf), .unit = true};
    const ebb_machines_opts opts = {.parent = ebb_workflow_region(ww->host, wf), .n_kinds = 1};
    ebb_machines *ms;
    operator* o = world_keep(ww->world, sizeof *o);
    *o = (operator){.ww = ww, .wf = wf, .heeds = true};
    o->task = ebb_spawn(ww->host, ebb_region_open(ww->host, &unit), operate, o);
    assert_int_equal(ebb_machines_open(ww->host, &ms, &opts), EBB_OK);
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_report(ww, wf).elapsed, 0);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static void awaits_one(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    assert_int_equal(ebb_await(cx, ebb_future_ready(cx, ebb_value_int(7)), NULL), EBB_OK);
    me->says = "has it";
}

/* The callback runner of the handlers' futures is in the same region as the operators'. */
static void operators_do_not_hold_up_a_drain_whose_handlers_use_futures(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)operator_start(ww, wf, (operator){.heeds = true});
    drainer *h = drainer_add(ww, wf, "awaits", (drainer){.act = awaits_one});
    workflow_stop(ww, wf);
    assert_int_equal(h->polls, 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(an_operator_works_on_after_the_request_and_after_the_cancel),
        IN_WORKFLOWS(operators_are_neither_in_flight_nor_work),
        IN_WORKFLOWS(an_explanation_names_operators_only_when_they_hold_it_up),
        IN_WORKFLOWS(an_operator_that_does_not_stop_is_cancelled_a_twentieth_of_the_budget_later),
        IN_WORKFLOWS(an_operator_that_heeds_that_cancel_leaves_nothing),
        IN_WORKFLOWS(a_force_lets_an_operator_answer),
        IN_WORKFLOWS(a_force_ends_operators_that_do_not_end_and_leaves_finalizers_their_time),
        IN_WORKFLOWS(a_force_from_around_lets_an_operator_answer_too),
        IN_WORKFLOWS(the_outer_workflow_waits_for_the_operators_of_an_inner_one),
        IN_WORKFLOWS(a_workflow_whose_work_ends_by_itself_lets_them_go),
        IN_WORKFLOWS(operators_who_have_ended_before_hold_nothing_up),
        IN_WORKFLOWS(operators_do_not_hold_up_machines),
        IN_WORKFLOWS(operators_do_not_hold_up_a_drain_whose_handlers_use_futures),
        IN_WORKFLOWS(what_a_unit_of_an_operator_begins_is_not_counted),
        IN_WORKFLOWS(there_is_one_and_it_can_be_made_until_the_drain_is_over),
    };
    return cmocka_run_group_tests_name("workflow_operators", tests, NULL, NULL);
}
