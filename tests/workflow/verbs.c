/* The kernel's verbs on what a workflow keeps for itself, its supervisor and the region of that, whose ids every dump and
 * trace shows; and tasks that would wait for themselves. */
#include "tests/support/workflow_world.h"

/* ---- verbs ----------------------------------------------------------------------------------- */

typedef struct parts {
    ebb_workflow wf;
    ebb_region region, own_region;
    ebb_task supervisor;
    drainer *poll, *fiber;
} parts;

/* As an operator finds them: in the trace. */
static void find_parts(world *w, parts *p) {
    ebb_event ev;
    for (uint32_t i = 0; find_event(w, EBB_EV_REGION_OPENED, 0, i, &ev); i++) {
        if (ev.other == p->region.id) p->own_region.id = ev.region_id;
    }
    for (uint32_t i = 0; p->supervisor.id == 0 && find_event(w, EBB_EV_TASK_SPAWNED, 0, i, &ev); i++) {
        if (ev.region_id == p->own_region.id) p->supervisor.id = ev.task_id;
    }
    assert_int_not_equal(p->own_region.id, 0);
    assert_int_not_equal(p->supervisor.id, 0);
}

static parts parts_new(workflow_world *ww, puppet work) {
    parts p = {.wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort})};
    p.region = ebb_workflow_region(ww->host, p.wf);
    find_parts(ww->world, &p);
    (void)puppet_start(ww->world, p.region, work);
    p.poll = drainer_add(ww, p.wf, "poll", (drainer){.sleeps = MS(300)});
    p.fiber = drainer_add_fiber(ww, p.wf, "fiber", (drainer){.sleeps = MS(300)});
    world_settle(ww->world);
    return p;
}

typedef enum moment { WHILE_IDLE, RIGHT_AFTER_THE_REQUEST, IN_THE_DRAIN, AFTER_CANCEL_AT, MOMENTS } moment;

static void come_to(workflow_world *ww, const parts *p, moment m) {
    if (m == WHILE_IDLE) return;
    assert_int_equal(ebb_workflow_request(ww->host, p->wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    if (m >= IN_THE_DRAIN) world_settle(ww->world);
    if (m >= AFTER_CANCEL_AT) world_pass(ww->world, MS(1201));
}

static void force_supervisor(ebb_cx *cx, const parts *p) {
    ebb_task_force(cx, p->supervisor);
}

static void cancel_supervisor(ebb_cx *cx, const parts *p) {
    ebb_task_cancel(cx, p->supervisor, EBB_CANCEL_SHUTDOWN, "from a dump");
}

static void force_its_region(ebb_cx *cx, const parts *p) {
    ebb_region_force(cx, p->own_region);
}

static void cancel_its_region(ebb_cx *cx, const parts *p) {
    ebb_region_cancel(cx, p->own_region, EBB_CANCEL_SHUTDOWN, "from a dump");
}

static void close_its_region(ebb_cx *cx, const parts *p) {
    ebb_region_close(cx, p->own_region);
}

typedef void (*verb)(ebb_cx *cx, const parts *p);

static void no_verb_on_the_supervisor_stops_it_or_the_workflow(void **state) {
    static const verb verbs[] = {force_supervisor, cancel_supervisor};
    workflow_world *ww = *state;
    for (int v = 0; v < 2; v++) {
        for (moment m = WHILE_IDLE; m < AFTER_CANCEL_AT; m++) {
            parts p = parts_new(ww, HEEDING);
            come_to(ww, &p, m);
            ebb_workflow_state before = workflow_state(ww, p.wf);
            verbs[v](ww->host, &p);
            world_pass(ww->world, MS(250)); /* longer than what a cancelled task has to clean up */
            assert_int_equal(workflow_state(ww, p.wf), before);
            come_to(ww, &p, RIGHT_AFTER_THE_REQUEST);
            world_pass(ww->world, MS(1600));
            assert_int_equal(p.poll->slept, EBB_OK);
            assert_int_equal(p.fiber->slept, EBB_OK);
            ebb_workflow_report report = {0};
            assert_int_equal(ebb_workflow_join(ww->host, p.wf, &report), EBB_CANCELLED); /* at cancel_at */
            assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
            assert_false(report.drain_timed_out);
        }
    }
    assert_int_equal(stats_of(ww->world).abandoned, 0);
}

static void under_every_verb_at_every_moment_a_workflow_ends_and_can_be_joined(void **state) {
    static const verb verbs[] = {force_supervisor, cancel_supervisor, force_its_region, cancel_its_region,
                                 close_its_region};
    workflow_world *ww = *state;
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
        for (moment m = WHILE_IDLE; m < MOMENTS; m++) {
            parts p = parts_new(ww, m == AFTER_CANCEL_AT ? IGNORING : HEEDING);
            come_to(ww, &p, m);
            verbs[v](ww->host, &p);
            world_pass(ww->world, MS(500));
            (void)ebb_workflow_request(ww->host, p.wf, EBB_CANCEL_USER, "enough");
            world_pass(ww->world, MS(3000));
            ebb_workflow_report report = {0};
            ebb_status st = ebb_workflow_join(ww->host, p.wf, &report);
            if (st == EBB_PENDING) fail_msg("verb %zu, moment %d: it never ends", v, (int)m);
            assert_true(report.state == EBB_WORKFLOW_FINALIZED || report.state == EBB_WORKFLOW_LEAK_DETECTED);
            assert_int_equal(report.leaks > 0, st == EBB_ERR_CANCEL_LEAK);
        }
    }
}

static void its_region_when_forced_before_any_request_is_a_request_and_a_force(void **state) {
    workflow_world *ww = *state;
    parts p = parts_new(ww, HEEDING);
    force_its_region(ww->host, &p);
    world_pass(ww->world, MS(1000));
    assert_true(workflow_state(ww, p.wf) >= EBB_WORKFLOW_FINALIZED);
    assert_true(workflow_report(ww, p.wf).forced);
    workflow_says(workflow_story(ww, 1), "opened requested drain_started");
}

static void the_region_around_closes_though_its_workflows_supervisor_was_forced(void **state) {
    workflow_world *ww = *state;
    ebb_region around = open_region(ww->world, ww->world->root);
    parts p = {
        .wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around})};
    p.region = ebb_workflow_region(ww->host, p.wf);
    find_parts(ww->world, &p);
    force_supervisor(ww->host, &p);
    world_pass(ww->world, MS(500));
    ebb_region_close(ww->host, around);
    world_settle(ww->world);
    assert_int_equal(state_of(ww->world, around), EBB_REGION_CLOSED);
    assert_string_equal(workflow_story(ww, 1),
                        "opened requested drain_started drain_completed finalizing finalized");
}

/* ---- joins from inside ------------------------------------------------------------------------ */

static void join_it(ebb_cx *cx, puppet *p) {
    p->number = (uint64_t)(uint32_t)ebb_workflow_join(cx, *(ebb_workflow *)p->arg, NULL);
}

/* What joining `wf` says to a task of `r`. */
static ebb_status join_from(workflow_world *ww, ebb_region r, ebb_workflow wf) {
    ebb_workflow *which = world_keep(ww->world, sizeof *which);
    *which = wf;
    puppet *p = puppet_start(ww->world, r, (puppet){.act = join_it, .arg = which, .returns = EBB_OK});
    world_settle(ww->world);
    assert_int_equal(p->polls, 1);
    return (ebb_status)(int32_t)(uint32_t)p->number;
}

static void a_task_of_a_workflow_can_not_join_it_or_one_around_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow outer = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    ebb_region in_outer = ebb_workflow_region(ww->host, outer), below = open_region(ww->world, in_outer);
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = below});
    ebb_region in_inner = ebb_workflow_region(ww->host, inner);
    assert_int_equal(join_from(ww, in_outer, outer), EBB_ERR_INVALID);
    assert_int_equal(join_from(ww, below, outer), EBB_ERR_INVALID);
    assert_int_equal(join_from(ww, in_inner, outer), EBB_ERR_INVALID);
    assert_int_equal(join_from(ww, in_inner, inner), EBB_ERR_INVALID);
    assert_int_equal(join_from(ww, open_region(ww->world, in_inner), inner), EBB_ERR_INVALID);
    world_settle(ww->world);
    assert_int_equal(workflow_state(ww, outer), EBB_WORKFLOW_IDLE); /* nobody waits for it */
    assert_int_equal(workflow_state(ww, inner), EBB_WORKFLOW_IDLE);
}

static void whoever_is_around_or_beside_a_workflow_may_join_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow outer = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    ebb_region in_outer = ebb_workflow_region(ww->host, outer);
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = in_outer});
    ebb_workflow beside = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    workflow_stop(ww, inner);
    assert_int_equal(join_from(ww, in_outer, inner), EBB_OK);
    workflow_stop(ww, beside);
    assert_int_equal(join_from(ww, in_outer, beside), EBB_OK);
}

static void join_own(ebb_cx *cx, ebb_drain *d, drainer *me) {
    me->slept = ebb_workflow_join(cx, ebb_drain_workflow(d), NULL);
}

static void a_handler_can_not_join_what_it_drains(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    drainer *poll = drainer_add(ww, wf, "poll", (drainer){.act = join_own});
    drainer *fiber = drainer_add_fiber(ww, wf, "fiber", (drainer){.act = join_own});
    workflow_stop(ww, wf);
    assert_int_equal(poll->slept, EBB_ERR_INVALID);
    assert_int_equal(fiber->slept, EBB_ERR_INVALID);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(no_verb_on_the_supervisor_stops_it_or_the_workflow),
        IN_WORKFLOWS(under_every_verb_at_every_moment_a_workflow_ends_and_can_be_joined),
        IN_WORKFLOWS(its_region_when_forced_before_any_request_is_a_request_and_a_force),
        IN_WORKFLOWS(the_region_around_closes_though_its_workflows_supervisor_was_forced),
        IN_WORKFLOWS(a_task_of_a_workflow_can_not_join_it_or_one_around_it),
        IN_WORKFLOWS(whoever_is_around_or_beside_a_workflow_may_join_it),
        IN_WORKFLOWS(a_handler_can_not_join_what_it_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
