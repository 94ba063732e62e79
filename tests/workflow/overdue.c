/* A drain that is over its budget and is not forced: it is told, again and again, until an operator acts; and
 * what comes after a drain has an end, whoever waits for an operator. */
#include "kernel/rt.h"
#include "tests/support/workflow_world.h"

typedef struct pager {
    workflow_world *ww;
    uint32_t calls;
    uint64_t at[8]; /* ms of the world's clock, of the first calls */
    const char *text;
    ebb_status (*act)(ebb_cx *cx, ebb_workflow wf);
    ebb_status acted;
} pager;

static void page(void *arg, ebb_workflow wf) {
    pager *p = arg;
    if (p->calls < 8) p->at[p->calls] = world_now(p->ww->world) / EBB_MS;
    p->calls++;
    p->text = workflow_explained(p->ww, wf);
    if (p->act != NULL) p->acted = p->act(ebb_runtime_host(p->ww->rt), wf);
}

static ebb_workflow open_paged(workflow_world *ww, pager *p, bool no_force) {
    p->ww = ww;
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort,
                                                 .name = "v42",
                                                 .no_force = no_force,
                                                 .on_overdue = page,
                                                 .arg = p});
}

/* In steps that a clock has: a jump over several of its times is one call. */
static void pass_s(workflow_world *ww, uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; i++) world_pass(ww->world, MS(1000));
}

/* ---- the drain --------------------------------------------------------------------------------- */

static void an_overdue_drain_is_told_at_the_end_of_its_budget_and_every_10_s(void **state) {
    workflow_world *ww = *state;
    pager p = {0};
    ebb_workflow wf = open_paged(ww, &p, true);
    puppet *stuck = workflow_work(ww, wf, IGNORING);
    uint64_t asked = world_now(ww->world) / EBB_MS;
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    assert_int_equal(p.calls, 0);
    world_pass(ww->world, MS(1));
    assert_int_equal(p.calls, 1);
    workflow_says(p.text, "publish_abort#1 v42 is DRAINING, 2000 of 2000 ms, USER: enough, over its budget");
    workflow_says(p.text, "  task ");
    pass_s(ww, 31);
    assert_int_equal(p.calls, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(p.at[i] - asked, 2000 + 10000 * i);
    workflow_finish(ww, stuck);
    pass_s(ww, 60);
    assert_int_equal(p.calls, 4); /* nobody is told of a drain that is over */
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_lines(ww, "drain_timeout"), 1); /* the log has it once */
}

static ebb_work named;

/* As another thread would see it while the hook runs. */
static ebb_status is_watched(ebb_cx *cx, ebb_workflow wf) {
    ebb_watchdog dog = {0};
    (void)wf;
    assert_int_equal(ebb_watchdog_check(ebb_cx_runtime(cx), &dog, 0, &named), EBB_OK);
    return ebb_watchdog_check(ebb_cx_runtime(cx), &dog, EBB_SECOND, &named);
}

static void the_watchdog_names_the_region_of_a_hook_that_does_not_return(void **state) {
    workflow_world *ww = *state;
    pager p = {.act = is_watched};
    ww->rt->watched = ww->rt->observed = true;
    ebb_workflow wf = open_paged(ww, &p, true);
    puppet *stuck = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    pass_s(ww, 2);
    assert_int_equal(p.acted, EBB_TIMEOUT);
    assert_int_equal(named.id, ebb_workflow_region(ww->host, wf).id);
    workflow_finish(ww, stuck);
}

static void an_extended_drain_is_told_when_the_extension_is_over(void **state) {
    workflow_world *ww = *state;
    pager p = {0};
    ebb_workflow wf = open_paged(ww, &p, true);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2000));
    assert_int_equal(p.calls, 1);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(25000)), EBB_OK);
    pass_s(ww, 24);
    assert_int_equal(p.calls, 1);
    pass_s(ww, 1);
    assert_int_equal(p.calls, 2);
    pass_s(ww, 10);
    assert_int_equal(p.calls, 3);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    pass_s(ww, 30);
    assert_int_equal(p.calls, 3);
}

static void a_drain_that_is_forced_at_its_end_is_not_overdue(void **state) {
    workflow_world *ww = *state;
    pager p = {0};
    ebb_workflow wf = open_paged(ww, &p, false);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    pass_s(ww, 30);
    assert_int_equal(p.calls, 0);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

static ebb_status forces(ebb_cx *cx, ebb_workflow wf) {
    return ebb_workflow_force(cx, wf, "the pager");
}

static ebb_status extends(ebb_cx *cx, ebb_workflow wf) {
    return ebb_workflow_extend(cx, wf, MS(500));
}

static void whoever_is_told_may_force_it(void **state) {
    workflow_world *ww = *state;
    pager p = {.act = forces, .acted = EBB_PENDING};
    ebb_workflow wf = open_paged(ww, &p, true);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    pass_s(ww, 3);
    assert_int_equal(p.acted, EBB_OK);
    assert_int_equal(p.calls, 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    workflow_says(workflow_line(ww, "drain_forced", 0), "\"by\":\"the pager\"");
}

static void whoever_is_told_may_extend_it(void **state) {
    workflow_world *ww = *state;
    pager p = {.act = extends, .acted = EBB_PENDING};
    ebb_workflow wf = open_paged(ww, &p, true);
    puppet *stuck = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2000));
    assert_int_equal(p.acted, EBB_OK);
    assert_int_equal(workflow_report(ww, wf).budget, MS(2500));
    world_pass(ww->world, MS(500));
    assert_int_equal(p.calls, 2);
    assert_int_equal(workflow_report(ww, wf).budget, MS(3000));
    workflow_finish(ww, stuck);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* A call on it may come before its supervisor, after a long poll: the hook runs once all the same. */
static void whoever_finds_it_overdue_first_tells_it_once(void **state) {
    workflow_world *ww = *state;
    pager p = {0};
    ebb_workflow wf = open_paged(ww, &p, true);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    ebb_runtime_advance(ww->rt, world_now(ww->world) + MS(2500));
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1000)), EBB_OK);
    assert_int_equal(p.calls, 1);
    world_settle(ww->world);
    assert_int_equal(p.calls, 1);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
}

/* ---- finalizing -------------------------------------------------------------------------------- */

static ebb_workflow with_a_finalizer(workflow_world *ww, bool no_force, puppet *p) {
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = no_force});
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer(ww->host, r, puppet_poll, p), EBB_OK);
    return wf;
}

static void finalizers_are_bounded_by_the_budget_with_an_operator_and_without(void **state) {
    workflow_world *ww = *state;
    for (int no_force = 0; no_force < 2; no_force++) {
        ebb_workflow wf = with_a_finalizer(ww, no_force, puppet_new(ww->world, IGNORING));
        workflow_stop(ww, wf);
        world_pass(ww->world, MS(1999));
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
        world_pass(ww->world, MS(301)); /* and a tenth of it */
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
        assert_false(workflow_report(ww, wf).drain_timed_out);
    }
}

static ebb_status sleep_150_ms(ebb_cx *cx, void *nap) {
    return ebb_sleep(cx, nap, MS(150));
}

static void finalizers_after_an_overdue_drain_have_their_part_from_its_end_on(void **state) {
    workflow_world *ww = *state;
    ebb_sleeper nap = {0};
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = true});
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer(ww->host, r, sleep_150_ms, &nap), EBB_OK); /* it has 200 */
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    pass_s(ww, 9);
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    world_pass(ww->world, MS(150));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void force_is_legal_while_it_finalizes_and_ends_what_does_not_end(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    for (int no_force = 0; no_force < 2; no_force++) {
        ebb_workflow wf = with_a_finalizer(ww, no_force, puppet_new(ww->world, IGNORING));
        workflow_stop(ww, wf);
        world_pass(ww->world, MS(10));
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
        assert_int_equal(ebb_workflow_force(ww->host, wf, "pager"), EBB_OK);
        world_pass(ww->world, MS(2));
        assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
        assert_int_equal(report.state, EBB_WORKFLOW_LEAK_DETECTED);
        assert_true(report.forced);
        assert_false(report.drain_timed_out); /* the drain was in time */
        assert_true(report.elapsed <= MS(12));
        const char *line = workflow_line(ww, "finalize_forced", (uint32_t)no_force);
        workflow_says(line, "\"from\":\"FINALIZING\",\"to\":\"FINALIZING\"");
        workflow_says(line, "\"by\":\"pager\"");
    }
}

static void a_finalizer_that_heeds_such_a_force_leaves_nothing(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = with_a_finalizer(ww, true, puppet_new(ww->world, HEEDING));
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    world_pass(ww->world, MS(2));
    (void)ebb_workflow_join(ww->host, wf, &report);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.leaks, 0);
    workflow_says(workflow_line(ww, "finalize_forced", 0), "\"by\":\"operator\"");
}

static void a_second_force_ends_the_finalizers_of_the_first(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = with_a_finalizer(ww, false, puppet_new(ww->world, IGNORING));
    (void)workflow_work(ww, wf, HEEDING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_force(ww->host, wf, "first"), EBB_OK);
    world_pass(ww->world, MS(1));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    assert_int_equal(ebb_workflow_force(ww->host, wf, "second"), EBB_OK);
    world_pass(ww->world, MS(2));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(ebb_workflow_force(ww->host, wf, "third"), EBB_ERR_CANCEL_INVALID_PHASE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(an_overdue_drain_is_told_at_the_end_of_its_budget_and_every_10_s),
        IN_WORKFLOWS(the_watchdog_names_the_region_of_a_hook_that_does_not_return),
        IN_WORKFLOWS(an_extended_drain_is_told_when_the_extension_is_over),
        IN_WORKFLOWS(a_drain_that_is_forced_at_its_end_is_not_overdue),
        IN_WORKFLOWS(whoever_is_told_may_force_it),
        IN_WORKFLOWS(whoever_is_told_may_extend_it),
        IN_WORKFLOWS(whoever_finds_it_overdue_first_tells_it_once),
        IN_WORKFLOWS(finalizers_are_bounded_by_the_budget_with_an_operator_and_without),
        IN_WORKFLOWS(finalizers_after_an_overdue_drain_have_their_part_from_its_end_on),
        IN_WORKFLOWS(force_is_legal_while_it_finalizes_and_ends_what_does_not_end),
        IN_WORKFLOWS(a_finalizer_that_heeds_such_a_force_leaves_nothing),
        IN_WORKFLOWS(a_second_force_ends_the_finalizers_of_the_first),
    };
    return cmocka_run_group_tests_name("workflow_overdue", tests, NULL, NULL);
}
