/* Draining: what is in flight may finish, whatever it is and wherever it waits; handlers run; and the drain
 * is over when both are done. */
#include "tests/support/workflow_world.h"

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(
        ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .policy = EBB_FAIL_COLLECT});
}

static void wake_to(workflow_world *ww, puppet *p, ebb_status st) {
    p->returns = st;
    (void)ebb_task_wake(ww->host, p->id);
    world_settle(ww->world);
}

/* ---- what is in flight ----------------------------------------------------------------------- */

static void work_that_ends_at_the_last_moment_before_cancel_at_is_not_cancelled(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    ebb_runtime_advance(ww->rt, world_now(ww->world) + MS(1800) - 1);
    wake_to(ww, p, EBB_OK);
    assert_int_equal(count_events(ww->world, EBB_EV_CANCEL_REQUESTED, p->id.id), 0);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_false(report.cancelled);
    assert_int_equal(report.elapsed, MS(1800) - 1);
    assert_int_equal(workflow_lines(ww, "drain_cancelled"), 0);
}

static void what_is_cancelled_at_cancel_at_has_the_rest_of_the_budget_to_clean_up(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1800));
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_USER);
    assert_string_equal(info_of(ww->world, p->id).reason.message, "enough");
    world_pass(ww->world, MS(1199));
    assert_false(info_of(ww->world, p->id).forced);
    wake_to(ww, p, EBB_CANCELLED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_true(report.cancelled);
    assert_false(report.drain_timed_out);
    workflow_says(workflow_line(ww, "drain_cancelled", 0), "\"elapsed_ms\":1800.000");
}

static void what_a_type_tells_at_cancel_at_is_no_request_of_its_own(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(4000));
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_SHUTDOWN);
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.reason.kind, EBB_CANCEL_USER);
    assert_int_equal(report.absorbed, 0);
    assert_int_equal(report.epoch, 1);
}

static void a_stronger_request_after_cancel_at_is_told_to_what_is_in_flight(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1800));
    assert_int_equal(info_of(ww->world, p->id).reason.severity, EBB_SEVERITY_POLITE);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_SHUTDOWN, "power"), EBB_OK);
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_string_equal(info_of(ww->world, p->id).reason.message, "power");
    assert_int_equal(workflow_report(ww, wf).budget, MS(3000)); /* a reason takes no time away */
    world_pass(ww->world, MS(1199));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
}

static void a_cancel_at_that_is_the_budget_cancels_nothing_before_that_is_over(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(
        ww,
        &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .budget = MS(100), .cancel_at = MS(100)});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    puppet *heeds = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(99));
    assert_int_equal(info_of(ww->world, p->id).epoch, 0);
    world_pass(ww->world, MS(11));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    ebb_workflow_leak leak;
    assert_int_equal(workflow_report(ww, wf).leaks, 1); /* whoever heeds what it is told is not left behind */
    assert_int_equal(ebb_workflow_leak_at(ww->host, wf, 0, &leak), EBB_OK);
    assert_int_equal(leak.id, p->id.id);
    assert_int_not_equal(leak.id, heeds->id.id);
}

typedef struct channel_user {
    ebb_chan *chan;
    ebb_wait wait;
    uint32_t item, received;
    ebb_status got;
} channel_user;

static ebb_status receive_all(ebb_cx *cx, void *state) {
    channel_user *u = state;
    while ((u->got = ebb_chan_recv(cx, u->chan, &u->wait, &u->item)) == EBB_OK) u->received++;
    return u->got == EBB_ERR_CLOSED ? EBB_OK : u->got;
}

static void a_channel_in_the_region_is_drained_to_its_last_item(void **state) {
    workflow_world *ww = *state;
    channel_user u = {.chan = NULL};
    assert_int_equal(ebb_chan_new(ww->rt, 8, sizeof u.item, &u.chan), EBB_OK);
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), receive_all, &u);
    workflow_stop(ww, wf);
    ebb_wait wait = {.cx = NULL};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(ebb_chan_send(ww->host, u.chan, &wait, &i), EBB_OK);
        world_pass(ww->world, MS(100));
    }
    assert_int_equal(u.received, 5);
    ebb_chan_close(ww->host, u.chan);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    ebb_chan_free(u.chan);
}

static void whoever_still_waits_for_a_channel_at_cancel_at_is_told(void **state) {
    workflow_world *ww = *state;
    channel_user u = {.chan = NULL};
    assert_int_equal(ebb_chan_new(ww->rt, 8, sizeof u.item, &u.chan), EBB_OK);
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), receive_all, &u);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1799));
    assert_int_equal(u.got, EBB_PENDING);
    world_pass(ww->world, MS(1));
    assert_int_equal(u.got, EBB_CANCELLED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_CANCELLED);
    ebb_chan_free(u.chan);
}

static ebb_status nap_in_fiber(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {.due = 0};
    return ebb_sleep(cx, &nap, *(const uint64_t *)arg);
}

static void fibers_finish_in_place_or_are_cancelled_in_place(void **state) {
    workflow_world *ww = *state;
    static const uint64_t quick = 500 * EBB_MS, slow = 5000 * EBB_MS;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    ebb_task_opts keep = {.keep = true};
    ebb_task a = ebb_fiber_spawn(ww->host, r, nap_in_fiber, (void *)(uintptr_t)&quick, &keep);
    ebb_task b = ebb_fiber_spawn(ww->host, r, nap_in_fiber, (void *)(uintptr_t)&slow, &keep);
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1799));
    assert_int_equal(info_of(ww->world, a).status, EBB_OK);
    assert_int_equal(info_of(ww->world, a).epoch, 0);
    assert_int_equal(phase_of(ww->world, b), EBB_TASK_RUNNING);
    world_pass(ww->world, MS(1));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_CANCELLED);
}

/* ---- futures --------------------------------------------------------------------------------- */

typedef struct operation {
    ebb_future *f;
    uint32_t cancels;
    ebb_status got;
    bool answers; /* the producer ends as soon as it is asked to */
} operation;

static void ask_producer(ebb_cx *cx, ebb_future *f, void *arg) {
    operation *o = arg;
    (void)cx;
    o->cancels++;
    if (o->answers) (void)ebb_promise_reject(f, EBB_CANCELLED);
}
static const ebb_operation slow_op = {"slow", ask_producer, NULL};

static ebb_status await_operation(ebb_cx *cx, void *state) {
    operation *o = state;
    if (o->f == NULL) o->f = ebb_promise_new(cx, &slow_op, o);
    o->got = ebb_await(cx, o->f, NULL);
    return o->got;
}

static operation *start_operation(workflow_world *ww, ebb_workflow wf, bool answers) {
    operation *o = world_keep(ww->world, sizeof *o);
    o->answers = answers;
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), await_operation, o);
    world_settle(ww->world);
    assert_int_equal(o->got, EBB_PENDING);
    return o;
}

static void an_operation_that_is_pending_at_the_request_may_settle(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operation *o = start_operation(ww, wf, true);
    workflow_stop(ww, wf);
    workflow_says(workflow_line(ww, "requested", 0), "\"in_flight\":1,"); /* its callback runner is no work */
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    assert_int_equal(ebb_promise_settle(o->f, ebb_value_int(7)), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(o->got, EBB_OK);
    assert_int_equal(o->cancels, 0);
    assert_int_equal(workflow_state(ww, wf),
                     EBB_WORKFLOW_FINALIZED); /* its callback runner does not hold it up */
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void an_operation_that_is_still_pending_at_cancel_at_is_cancelled_once(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operation *o = start_operation(ww, wf, true);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1799));
    assert_int_equal(o->cancels, 0);
    world_pass(ww->world, MS(1));
    assert_int_equal(o->cancels, 1);
    assert_int_equal(o->got, EBB_CANCELLED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_CANCELLED);
}

static void a_producer_that_still_drains_holds_the_drain_up_until_it_ends(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operation *o = start_operation(ww, wf, false);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(o->got, EBB_CANCELLED);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    (void)ebb_promise_reject(o->f, EBB_CANCELLED);
    world_settle(ww->world);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_producer_that_never_ends_is_over_with_the_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    operation *o = start_operation(ww, wf, false);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(3300));
    assert_int_equal(workflow_lines(ww, "drain_timeout"), 1);
    assert_true(workflow_state(ww, wf) >= EBB_WORKFLOW_FINALIZED);
    (void)ebb_promise_reject(o->f, EBB_CANCELLED);
}

/* A future of the workflow's region that has ended, and a handler that uses it when nothing else lives there. */
typedef struct leftover {
    ebb_future *f;
    uint32_t cleaned;
    ebb_status attached, got;
    ebb_value value;
} leftover;

static ebb_status leaves_one(ebb_cx *cx, void *state) {
    leftover *l = state;
    l->f = ebb_future_ready(cx, ebb_value_int(7));
    return EBB_OK;
}

static void count_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ((leftover *)arg)->cleaned++;
}

static void uses_it(ebb_cx *cx, ebb_drain *d, drainer *me) {
    leftover *l = me->arg;
    (void)d;
    if (me->polls < 2) return; /* first it sleeps */
    me->sleeps = 0;
    if (l->attached == EBB_PENDING) l->attached = ebb_future_on_cleanup(l->f, count_cleanup, l);
    if (l->got == EBB_PENDING) l->got = ebb_await(cx, l->f, &l->value);
    me->stays = l->got == EBB_PENDING;
}

static void a_handler_may_use_the_futures_of_the_region_when_nothing_else_lives_there(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    leftover l = {.attached = EBB_PENDING, .got = EBB_PENDING};
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), leaves_one, &l);
    drainer *h = drainer_add(ww, wf, "uses it", (drainer){.act = uses_it, .arg = &l, .sleeps = MS(10)});
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(10));
    world_settle(ww->world);
    assert_true(h->polls >= 2);
    assert_int_equal(l.attached, EBB_OK);
    assert_int_equal(l.cleaned, 1);
    assert_int_equal(l.got, EBB_OK);
    assert_int_equal(l.value.as.i, 7);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* ---- regions --------------------------------------------------------------------------------- */

static void nested_regions_drain_to_the_innermost(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    for (int i = 0; i < 20; i++) r = open_region(ww->world, r);
    puppet *p = puppet_start(ww->world, r, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    wake_to(ww, p, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

typedef struct owner {
    EBB_TASK_STATE;
    workflow_world *ww;
    puppet *child;
    ebb_region region;
    ebb_status got;
} owner;

static ebb_status own_a_region(ebb_cx *cx, void *state) {
    owner *o = state;
    EBB_BEGIN(o);
    o->region = ebb_region_open(cx, NULL);
    (void)ebb_spawn(cx, o->region, puppet_poll, o->child);
    EBB_AWAIT(o, o->got, ebb_region_join(cx, o->region));
    EBB_END(o);
}

static void a_region_that_a_task_owns_is_joined_by_it_within_the_drain(void **state) {
    workflow_world *ww = *state;
    owner o = {.ww = ww, .child = puppet_new(ww->world, HEEDING)};
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), own_a_region, &o);
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1799));
    assert_int_equal(o.child->seen, EBB_OK);
    world_pass(ww->world, MS(1));
    assert_int_equal(o.child->seen, EBB_CANCELLED);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

typedef struct cleaner {
    EBB_TASK_STATE;
    puppet *child;
    ebb_region scope;
    ebb_status got;
} cleaner;

static ebb_status clean_up(ebb_cx *cx, void *state) {
    cleaner *c = state;
    if (c->ebb_line == 0 && ebb_checkpoint(cx) == EBB_OK) return EBB_PENDING;
    EBB_BEGIN(c);
    assert_int_equal(ebb_mask(cx), EBB_OK);
    c->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
    c->child->id = ebb_spawn(cx, c->scope, puppet_poll, c->child);
    EBB_AWAIT(c, c->got, ebb_region_join(cx, c->scope));
    (void)ebb_unmask(cx);
    EBB_END(c);
}

static void a_cleanup_scope_has_the_rest_of_the_budget_and_the_drain_waits_for_it(void **state) {
    workflow_world *ww = *state;
    cleaner c = {.child = puppet_new(ww->world, IGNORING)};
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), clean_up, &c);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2900));
    assert_int_equal(ebb_id_status(c.scope.id), EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    wake_to(ww, c.child, EBB_OK);
    assert_int_equal(c.got, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_workflow_in_a_cleanup_scope_works_and_stops(void **state) {
    workflow_world *ww = *state;
    cleaner c = {.child = puppet_new(ww->world, IGNORING)};
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(ww->host, ebb_workflow_region(ww->host, wf), clean_up, &c);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2000));
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel, .parent = c.scope});
    drainer *h = drainer_add(ww, inner, "inner", (drainer){.returns = EBB_OK});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, inner), IGNORING);
    world_settle(ww->world);
    assert_int_equal(workflow_state(ww, inner), EBB_WORKFLOW_IDLE);
    workflow_stop(ww, inner);
    assert_int_equal(workflow_report(ww, inner).budget, MS(1000)); /* all that is left around it */
    assert_int_equal(h->polls, 1);
    wake_to(ww, p, EBB_OK);
    assert_int_equal(workflow_state(ww, inner), EBB_WORKFLOW_FINALIZED);
    wake_to(ww, c.child, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void handlers_start_in_the_order_in_which_they_were_added(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "a", (drainer){.says = "a"});
    (void)drainer_add_fiber(ww, wf, "b", (drainer){.says = "b"});
    (void)drainer_add(ww, wf, "c", (drainer){.says = "c"});
    (void)drainer_add_fiber(ww, wf, "d", (drainer){.says = "d"});
    world_pass(ww->world, MS(1000));
    assert_string_equal(ww->world->log, "");
    workflow_stop(ww, wf);
    assert_string_equal(ww->world->log, "a b c d ");
    assert_string_equal(workflow_story(ww, 1),
                        "opened requested drain_started handler_done handler_done "
                        "handler_done handler_done drain_completed finalizing finalized");
}

static void the_drain_waits_for_every_handler_and_not_for_more(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *poll = drainer_add(ww, wf, "poll", (drainer){.sleeps = MS(300)});
    drainer *fiber = drainer_add_fiber(ww, wf, "fiber", (drainer){.sleeps = MS(2400)});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2399));
    assert_int_equal(poll->slept, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_int_equal(fiber->slept, EBB_OK); /* cancel_at did not reach it */
    assert_int_equal(fiber->polls, 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_handler_that_fails_is_reported_and_is_the_failure_of_the_workflow(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "bad", (drainer){.returns = EBB_FAILED});
    drainer *other = drainer_add(ww, wf, "good", (drainer){.sleeps = MS(10)});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(10));
    assert_int_equal(other->slept, EBB_OK); /* the others go on */
    const char *line = workflow_line(ww, "handler_done", 0);
    workflow_says(line, "\"handler\":\"bad\",\"status\":\"EBB_FAILED\"");
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_FAILED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.status, EBB_FAILED);
}

static void a_fiber_handler_that_fails_is_the_failure_of_the_workflow_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add_fiber(ww, wf, "bad", (drainer){.returns = EBB_ERR_LIMIT});
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_LIMIT);
}

static ebb_status idle_task(ebb_cx *cx, void *state) {
    drainer *me = state;
    return ebb_sleep(cx, &me->nap, MS(700));
}

static void spawn_and_return(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    assert_int_equal(ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), idle_task, me).id), EBB_OK);
}

static void the_drain_waits_for_what_a_handler_has_spawned(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "spawns", (drainer){.act = spawn_and_return});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(699));
    assert_int_equal(workflow_lines(ww, "handler_done"), 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void open_join_reserve(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    ebb_region r = ebb_region_open(cx, NULL);
    (void)ebb_spawn(cx, r, idle_task, me);
    ebb_obligation o = ebb_obligation_reserve(cx, EBB_OBLIGATION_FENCE, NULL, NULL);
    assert_int_equal(ebb_id_status(o.id), EBB_OK);
    assert_int_equal(ebb_region_join(cx, r), EBB_OK);
    assert_int_equal(ebb_obligation_commit(cx, o), EBB_OK);
}

static void a_fiber_handler_opens_regions_awaits_them_and_reserves(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add_fiber(ww, wf, "works", (drainer){.act = open_join_reserve});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(700));
    assert_int_equal(h->polls, 1);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void await_a_timer(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    me->slept = ebb_await(cx, ebb_after(cx, MS(2000)), NULL);
}

static void a_fiber_handler_awaits_futures_and_their_callback_runner_does_not_hold_it_up(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add_fiber(ww, wf, "awaits", (drainer){.act = await_a_timer});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_int_equal(h->slept, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void ask_again(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)me;
    assert_int_equal(ebb_workflow_request(cx, ebb_drain_workflow(d), EBB_CANCEL_TIMEOUT, "hurry"), EBB_OK);
}

static void a_handler_may_ask_again(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "asks", (drainer){.act = ask_again});
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.absorbed, 1);
    assert_int_equal(report.reason.kind, EBB_CANCEL_TIMEOUT);
}

static void give_up(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)me;
    if (me->polls == 1) assert_int_equal(ebb_workflow_force(cx, ebb_drain_workflow(d), "hopeless"), EBB_OK);
}

static void a_handler_may_force(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "forces", (drainer){.act = give_up});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(100));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_true(report.forced);
    assert_int_equal(report.leaks, 0);
    workflow_says(workflow_line(ww, "drain_forced", 0), "\"by\":\"hopeless\"");
}

static void force_own_region(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    if (me->polls == 1) ebb_region_force(cx, ebb_cx_region(cx));
}

static void a_handler_that_forces_its_own_region_ends_the_drain_by_force(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "forces", (drainer){.act = force_own_region});
    drainer *other = drainer_add(ww, wf, "sleeps", (drainer){.sleeps = MS(500)});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1000));
    assert_int_equal(other->slept, EBB_CANCELLED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_true(report.forced);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
}

static void handlers_of_one_that_nobody_stops_never_run(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *poll = drainer_add(ww, wf, "poll", (drainer){.says = "no"});
    drainer *fiber = drainer_add_fiber(ww, wf, "fiber", (drainer){.says = "no"});
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    assert_int_equal(poll->polls + fiber->polls, 0);
    assert_string_equal(workflow_story(ww, 1), "opened completed");
}

static void a_handler_without_a_name_or_a_function_is_refused(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, NULL, drainer_run, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, "x", NULL, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_workflow_on_drain_fiber(ww->host, wf, "x", NULL, NULL), EBB_ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(work_that_ends_at_the_last_moment_before_cancel_at_is_not_cancelled),
        IN_WORKFLOWS(what_is_cancelled_at_cancel_at_has_the_rest_of_the_budget_to_clean_up),
        IN_WORKFLOWS(what_a_type_tells_at_cancel_at_is_no_request_of_its_own),
        IN_WORKFLOWS(a_stronger_request_after_cancel_at_is_told_to_what_is_in_flight),
        IN_WORKFLOWS(a_cancel_at_that_is_the_budget_cancels_nothing_before_that_is_over),
        IN_WORKFLOWS(a_channel_in_the_region_is_drained_to_its_last_item),
        IN_WORKFLOWS(whoever_still_waits_for_a_channel_at_cancel_at_is_told),
        IN_WORKFLOWS(fibers_finish_in_place_or_are_cancelled_in_place),
        IN_WORKFLOWS(an_operation_that_is_pending_at_the_request_may_settle),
        IN_WORKFLOWS(an_operation_that_is_still_pending_at_cancel_at_is_cancelled_once),
        IN_WORKFLOWS(a_producer_that_still_drains_holds_the_drain_up_until_it_ends),
        IN_WORKFLOWS(a_producer_that_never_ends_is_over_with_the_budget),
        IN_WORKFLOWS(a_handler_may_use_the_futures_of_the_region_when_nothing_else_lives_there),
        IN_WORKFLOWS(nested_regions_drain_to_the_innermost),
        IN_WORKFLOWS(a_region_that_a_task_owns_is_joined_by_it_within_the_drain),
        IN_WORKFLOWS(a_cleanup_scope_has_the_rest_of_the_budget_and_the_drain_waits_for_it),
        IN_WORKFLOWS(a_workflow_in_a_cleanup_scope_works_and_stops),
        IN_WORKFLOWS(handlers_start_in_the_order_in_which_they_were_added),
        IN_WORKFLOWS(the_drain_waits_for_every_handler_and_not_for_more),
        IN_WORKFLOWS(a_handler_that_fails_is_reported_and_is_the_failure_of_the_workflow),
        IN_WORKFLOWS(a_fiber_handler_that_fails_is_the_failure_of_the_workflow_too),
        IN_WORKFLOWS(the_drain_waits_for_what_a_handler_has_spawned),
        IN_WORKFLOWS(a_fiber_handler_opens_regions_awaits_them_and_reserves),
        IN_WORKFLOWS(a_fiber_handler_awaits_futures_and_their_callback_runner_does_not_hold_it_up),
        IN_WORKFLOWS(a_handler_may_ask_again),
        IN_WORKFLOWS(a_handler_may_force),
        IN_WORKFLOWS(a_handler_that_forces_its_own_region_ends_the_drain_by_force),
        IN_WORKFLOWS(handlers_of_one_that_nobody_stops_never_run),
        IN_WORKFLOWS(a_handler_without_a_name_or_a_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
