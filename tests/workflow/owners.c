/* Who may open, stop and join a workflow, from where, and what becomes of it when they end. */
#include "tests/support/workflow_world.h"

#include <stdlib.h>

/* ---- opening --------------------------------------------------------------------------------- */

static ebb_status open_with(workflow_world *ww, ebb_workflow_opts opts) {
    opts.audit = ww->audit;
    return ebb_id_status(ebb_workflow_open(ww->host, &opts).id);
}

static void bad_options_are_refused_by_name_and_leave_nothing(void **state) {
    static const ebb_workflow_type nameless = {"", EBB_SECOND, EBB_CANCEL_NONE},
                                   null_name = {NULL, EBB_SECOND, EBB_CANCEL_NONE},
                                   no_budget = {"x", 0, EBB_CANCEL_NONE},
                                   odd_kind = {"x", EBB_SECOND, EBB_CANCEL_PARENT};
    workflow_world *ww = *state;
    const ebb_workflow_type *p = &ebb_workflow_publish_abort;
    ebb_region gone = open_region(ww->world, ww->world->root),
               closed = open_region(ww->world, ww->world->root);
    (void)puppet_start(ww->world, closed, IGNORING);
    ebb_region_close(ww->host, closed);
    assert_int_equal(ebb_region_join(ww->host, gone), EBB_OK);
    uint32_t regions = stats_of(ww->world).regions, tasks = stats_of(ww->world).tasks;
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = NULL}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = &nameless}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = &null_name}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = &no_budget}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = &odd_kind}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .budget = EBB_FOREVER}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .cancel_at = MS(2001)}), EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .size = 3}), EBB_ERR_VERSION);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .parent = closed}), EBB_ERR_CLOSED);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .parent = gone}), EBB_ERR_STALE);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .root = true, .parent = ww->world->root}),
                     EBB_ERR_INVALID);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .policy = (ebb_failure_policy)7}),
                     EBB_ERR_INVALID);
    world_settle(ww->world);
    assert_int_equal(stats_of(ww->world).regions, regions);
    assert_int_equal(stats_of(ww->world).tasks, tasks);
    assert_int_equal(workflow_lines(ww, "opened"), 0);
    assert_int_equal(open_with(ww, (ebb_workflow_opts){.type = p, .size = sizeof(ebb_workflow_opts)}),
                     EBB_OK);
}

static void a_long_name_is_cut_and_marked(void **state) {
    workflow_world *ww = *state;
    (void)workflow_new(ww,
                       &(ebb_workflow_opts){
                           .type = &ebb_workflow_publish_abort,
                           .name = "0123456789012345678901234567890123456789012345678901234567890123456789"});
    workflow_says(workflow_line(ww, "opened", 0),
                  "\"name\":\"01234567890123456789012345678901234567890123...\"");
}

/* ---- tasks and fibers that open one ---------------------------------------------------------- */

typedef struct opener {
    EBB_TASK_STATE;
    workflow_world *ww;
    ebb_workflow wf;
    puppet *work;
    drainer *handler;
    ebb_status got;
    ebb_workflow_report report;
    bool joins, asks, patient;
} opener;

static void open_own(ebb_cx *cx, opener *o) {
    o->wf = workflow_open(o->ww, cx,
                          &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = o->patient});
    if (o->handler != NULL) {
        assert_int_equal(ebb_workflow_on_drain(cx, o->wf, "handler", drainer_run, o->handler), EBB_OK);
    }
    if (o->work == NULL) return;
    ebb_region r = ebb_workflow_region(cx, o->wf);
    o->work->id = ebb_spawn(cx, r, puppet_poll, o->work, &(ebb_task_opts){.keep = true});
}

static ebb_status open_in_task(ebb_cx *cx, void *state) {
    opener *o = state;
    EBB_BEGIN(o);
    open_own(cx, o);
    if (o->asks) assert_int_equal(ebb_workflow_request(cx, o->wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    if (!o->joins) return EBB_OK;
    EBB_AWAIT(o, o->got, ebb_workflow_join(cx, o->wf, &o->report));
    return o->got;
    EBB_END(o);
}

static ebb_status open_in_fiber(ebb_cx *cx, void *state) {
    opener *o = state;
    open_own(cx, o);
    if (o->asks) assert_int_equal(ebb_workflow_request(cx, o->wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    if (!o->joins) return EBB_OK;
    o->got = ebb_workflow_join(cx, o->wf, &o->report);
    return o->got;
}

static opener *opener_new(workflow_world *ww, puppet work) {
    opener *o = world_keep(ww->world, sizeof *o);
    o->ww = ww;
    o->work = puppet_new(ww->world, work);
    o->handler = world_keep(ww->world, sizeof *o->handler);
    o->handler->world = ww->world;
    return o;
}

static ebb_task start(workflow_world *ww, opener *o, bool fiber) {
    ebb_task_opts keep = {.keep = true};
    ebb_task t = fiber ? ebb_fiber_spawn(ww->host, ww->world->root, open_in_fiber, o, &keep)
                       : ebb_spawn(ww->host, ww->world->root, open_in_task, o, &keep);
    world_settle(ww->world);
    return t;
}

static void a_task_or_fiber_that_joins_its_workflow_has_its_report(void **state) {
    workflow_world *ww = *state;
    for (int fiber = 0; fiber < 2; fiber++) {
        opener *o = opener_new(ww, IGNORING);
        o->joins = o->asks = true;
        ebb_task t = start(ww, o, fiber);
        world_pass(ww->world, MS(100));
        assert_int_equal(phase_of(ww->world, t), EBB_TASK_RUNNING);
        workflow_finish(ww, o->work);
        assert_int_equal(o->got, EBB_OK);
        assert_int_equal(o->report.state, EBB_WORKFLOW_FINALIZED);
        assert_int_equal(o->report.elapsed, MS(100));
        assert_int_equal(o->handler->polls, 1);
        assert_int_equal(ebb_task_join(ww->host, t), EBB_OK);
    }
}

static void a_joiner_hears_of_the_timeout_of_a_patient_one(void **state) {
    workflow_world *ww = *state;
    for (int fiber = 0; fiber < 2; fiber++) {
        opener *o = opener_new(ww, IGNORING);
        o->joins = o->asks = o->patient = true;
        ebb_task t = start(ww, o, fiber);
        world_pass(ww->world, MS(2000));
        assert_int_equal(o->got, EBB_ERR_CANCEL_DRAIN_TIMEOUT);
        assert_int_equal(o->report.state, EBB_WORKFLOW_DRAINING);
        /* It returns with that as its failure, and its workflow is waited for. */
        assert_int_not_equal(phase_of(ww->world, t), EBB_TASK_COMPLETED);
        workflow_finish(ww, o->work);
        assert_int_equal(phase_of(ww->world, t), EBB_TASK_COMPLETED);
        assert_int_equal(ebb_task_join(ww->host, t), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    }
}

static void a_task_that_opens_one_and_returns_stops_it_and_is_not_over_before_it_is(void **state) {
    workflow_world *ww = *state;
    for (int fiber = 0; fiber < 2; fiber++) {
        opener *o = opener_new(ww, IGNORING);
        o->handler->sleeps = MS(20);
        ebb_task t = start(ww, o, fiber);
        ebb_workflow_report report = workflow_report(ww, o->wf);
        assert_int_equal(report.state, EBB_WORKFLOW_DRAINING);
        assert_string_equal(report.reason.message, "its task has returned");
        assert_int_equal(o->handler->polls, 1);
        workflow_finish(ww, o->work);
        assert_int_not_equal(phase_of(ww->world, t), EBB_TASK_COMPLETED); /* the handler sleeps */
        world_pass(ww->world, MS(20));
        assert_int_equal(o->handler->slept, EBB_OK);
        assert_int_equal(phase_of(ww->world, t), EBB_TASK_COMPLETED);
        assert_int_equal(workflow_state(ww, o->wf), EBB_WORKFLOW_FINALIZED);
        assert_int_equal(ebb_workflow_join(ww->host, o->wf, NULL), EBB_OK);
    }
}

static void a_task_that_is_cancelled_in_its_join_keeps_the_id_and_its_workflow_is_stopped(void **state) {
    workflow_world *ww = *state;
    opener *o = opener_new(ww, HEEDING);
    o->joins = true;
    ebb_task t = start(ww, o, false);
    ebb_task_cancel(ww->host, t, EBB_CANCEL_USER, "leave");
    world_settle(ww->world);
    assert_int_equal(o->got, EBB_CANCELLED);
    assert_int_equal(o->work->seen, EBB_CANCELLED);
    assert_int_equal(workflow_state(ww, o->wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(ebb_workflow_join(ww->host, o->wf, NULL), EBB_CANCELLED);
}

static void a_task_that_is_forced_takes_its_workflow_with_it(void **state) {
    workflow_world *ww = *state;
    opener *o = opener_new(ww, IGNORING);
    o->joins = true;
    ebb_task t = start(ww, o, false);
    ebb_task_force(ww->host, t);
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, o->wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, o->wf).leaks, 1);
}

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct joiner {
    ebb_workflow wf;
    ebb_status got;
    uint32_t polls;
    bool deaf; /* asks once, and never returns */
} joiner;

static ebb_status join_once(ebb_cx *cx, void *state) {
    joiner *j = state;
    if (j->polls++ > 0 && j->deaf) return EBB_PENDING;
    j->got = ebb_workflow_join(cx, j->wf, NULL);
    return j->got == EBB_PENDING ? EBB_PENDING : EBB_OK;
}

static void of_two_tasks_that_join_the_second_is_told_that_it_is_busy(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    joiner a = {.wf = wf}, b = {.wf = wf};
    (void)ebb_spawn(ww->host, ww->world->root, join_once, &a);
    (void)ebb_spawn(ww->host, ww->world->root, join_once, &b);
    world_settle(ww->world);
    assert_int_equal(a.got, EBB_PENDING);
    assert_int_equal(b.got, EBB_ERR_BUSY);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_BUSY);
    workflow_stop(ww, wf);
    workflow_finish(ww, p);
    assert_int_equal(a.got, EBB_OK);
    assert_int_equal(a.polls, 2); /* it is woken when there is something to hear */
    assert_int_equal(workflow_state(ww, wf), 0);
}

static void a_joiner_that_is_gone_leaves_the_place_to_the_next(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    joiner a = {.wf = wf}, b = {.wf = wf};
    ebb_task first = ebb_spawn(ww->host, ww->world->root, join_once, &a);
    world_settle(ww->world);
    ebb_task_cancel(ww->host, first, EBB_CANCEL_USER, "leave");
    world_settle(ww->world);
    assert_int_equal(a.got, EBB_CANCELLED);
    (void)ebb_spawn(ww->host, ww->world->root, join_once, &b);
    world_settle(ww->world);
    assert_int_equal(b.got, EBB_PENDING);
    workflow_stop(ww, wf);
    workflow_finish(ww, p);
    assert_int_equal(b.got, EBB_OK);
}

static void a_joiner_that_is_abandoned_leaves_the_place_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    joiner deaf = {.wf = wf, .deaf = true}, next = {.wf = wf};
    ebb_task t = ebb_spawn(ww->host, ww->world->root, join_once, &deaf);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_BUSY);
    ebb_task_force(ww->host, t);
    world_pass(ww->world, MS(1000));
    assert_int_equal(stats_of(ww->world).abandoned, 1);
    (void)ebb_spawn(ww->host, ww->world->root, join_once, &next);
    workflow_stop(ww, wf);
    assert_int_equal(next.got, EBB_PENDING);
    workflow_finish(ww, p);
    assert_int_equal(next.got, EBB_OK);
}

static void a_joiner_hears_of_the_end_even_if_the_region_around_is_gone_by_then(void **state) {
    workflow_world *ww = *state;
    ebb_region around = open_region(ww->world, ww->world->root);
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    joiner j = {.wf = wf};
    ebb_task t = ebb_spawn(ww->host, ww->world->root, join_once, &j);
    world_settle(ww->world);
    assert_int_equal(j.got, EBB_PENDING);
    ebb_region_close(ww->host, around);
    world_settle(ww->world);
    /* Poll by poll, until the workflow and the region around it have ended and the joiner is only woken. */
    p->returns = EBB_OK;
    (void)ebb_task_wake(ww->host, p->id);
    while (state_of(ww->world, around) != EBB_REGION_CLOSED) (void)ebb_runtime_pump(ww->rt, 1);
    assert_int_equal(j.polls, 1);
    /* That forgets those that nobody can join any more. */
    (void)workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    world_settle(ww->world);
    assert_int_equal(j.got, EBB_OK);
    assert_int_equal(phase_of(ww->world, t), 0);
}

static void one_that_nobody_joins_is_forgotten_with_the_region_around_it(void **state) {
    workflow_world *ww = *state;
    ebb_region around = open_region(ww->world, ww->world->root);
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around});
    workflow_stop(ww, wf);
    (void)workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(ebb_region_join(ww->host, around), EBB_OK);
    (void)workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_STALE);
}

static void join_own(ebb_cx *cx, ebb_drain *d, drainer *me) {
    me->slept = ebb_workflow_join(cx, ebb_drain_workflow(d), NULL);
}

static void a_handler_that_joins_its_own_workflow_is_refused(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    const drainer *d = drainer_add_fiber(ww, wf, "knot", (drainer){.act = join_own});
    workflow_stop(ww, wf);
    assert_int_equal(d->slept, EBB_ERR_INVALID);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void look_where(ebb_cx *cx, puppet *p) {
    p->number = ebb_workflow_of(cx).id;
}

static void a_task_is_in_the_innermost_workflow_around_it_or_in_none(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    puppet looks = {.act = look_where, .number = 1, .returns = EBB_PENDING};
    ebb_workflow outer = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    ebb_region r = ebb_workflow_region(w->host, outer);
    ebb_workflow inner =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = r});
    puppet *nowhere = puppet_start(w, w->root, looks), *out = puppet_start(w, r, looks);
    puppet *in = puppet_start(w, open_region(w, ebb_workflow_region(w->host, inner)), looks);
    world_settle(w);
    assert_int_equal(nowhere->number, 0);
    assert_int_equal(out->number, outer.id);
    assert_int_equal(in->number, inner.id);
    assert_int_equal(ebb_workflow_of(w->host).id, 0);
}

/* ---- asking, from everywhere ----------------------------------------------------------------- */

static void ask_own(ebb_cx *cx, puppet *p) {
    if (p->polls > 1) return;
    ebb_workflow wf = ebb_workflow_of(cx);
    assert_int_equal(wf.id, p->number);
    assert_int_equal(ebb_workflow_request(cx, wf, EBB_CANCEL_USER, "from inside"), EBB_OK);
    assert_true(ebb_stopping(cx));
    assert_false(ebb_cancelled(cx));
}

static void a_task_may_stop_the_workflow_that_it_is_in(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf),
                             (puppet){.act = ask_own, .number = wf.id, .returns = EBB_PENDING});
    world_settle(ww->world);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    assert_int_equal(workflow_report(ww, wf).reason.origin, p->id.id);
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void ask_that(ebb_cx *cx, puppet *p) {
    p->seen = ebb_workflow_request(cx, (ebb_workflow){p->number}, EBB_CANCEL_USER, "from a hook");
}

static void an_abort_hook_may_ask(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *hook = puppet_new(w, (puppet){.act = ask_that, .number = wf.id});
    ebb_obligation o = ebb_region_reserve(w->host, ebb_workflow_region(w->host, wf), EBB_OBLIGATION_FENCE,
                                          puppet_abort, hook);
    assert_int_equal(ebb_obligation_abort(w->host, o), EBB_OK);
    assert_int_equal(hook->seen, EBB_OK);
    world_settle(w);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    workflow_says(workflow_line(ww, "requested", 0), "from a hook");
}

static void an_abort_hook_at_the_end_may_ask_and_is_absorbed(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *hook = puppet_new(w, (puppet){.act = ask_that, .number = wf.id});
    (void)ebb_region_reserve(w->host, ebb_workflow_region(w->host, wf), EBB_OBLIGATION_FENCE, puppet_abort,
                             hook);
    workflow_stop(ww, wf);
    world_pass(w, MS(2200)); /* it leaks, when everything else is over and the budget too */
    assert_int_equal(hook->seen, EBB_OK);
    assert_int_equal(workflow_report(ww, wf).absorbed, 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

static void a_finalizer_may_ask_and_is_absorbed(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    puppet *last = puppet_new(w, (puppet){.act = ask_that, .number = wf.id});
    assert_int_equal(ebb_region_defer(w->host, ebb_workflow_region(w->host, wf), puppet_poll, last), EBB_OK);
    workflow_stop(ww, wf);
    assert_int_equal(last->seen, EBB_OK);
    assert_int_equal(workflow_report(ww, wf).absorbed, 1);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static ebb_status finalize_slowly(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, MS(50));
}

static void a_request_while_its_work_completes_comes_too_late(void **state) {
    workflow_world *ww = *state;
    ebb_sleeper nap = {.due = 0};
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v1"});
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), finalize_slowly, &nap),
                     EBB_OK);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_pass(ww->world, MS(10));
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "late"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    assert_string_equal(ebb_workflow_refusal(ww->host, wf),
                        "publish_abort#1 v1: request is not allowed in IDLE: its work has ended");
    assert_int_equal(ebb_workflow_on_drain(ww->host, wf, "late", drainer_run, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_ERR_CANCEL_INVALID_PHASE);
    world_pass(ww->world, MS(50));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    workflow_says(workflow_story(ww, 1), "completed");
}

/* ---- from on_state --------------------------------------------------------------------------- */

typedef struct meddler {
    workflow_world *ww;
    ebb_workflow_state in;
    ebb_status (*act)(ebb_cx *cx, ebb_workflow wf);
    ebb_workflow other; /* id 0: itself */
    ebb_status got;
} meddler;

static void meddle(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    meddler *m = arg;
    (void)from;
    if (to == m->in) m->got = m->act(m->ww->host, m->other.id != 0 ? m->other : wf);
}

static ebb_status do_request(ebb_cx *cx, ebb_workflow wf) {
    return ebb_workflow_request(cx, wf, EBB_CANCEL_TIMEOUT, "from on_state");
}

static ebb_status do_force(ebb_cx *cx, ebb_workflow wf) {
    return ebb_workflow_force(cx, wf, "from on_state");
}

static ebb_status do_extend(ebb_cx *cx, ebb_workflow wf) {
    return ebb_workflow_extend(cx, wf, MS(1000));
}

static ebb_workflow open_meddled(meddler *m) {
    return workflow_new(
        m->ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .on_state = meddle, .arg = m});
}

static void on_state_may_force_it_as_soon_as_it_drains(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    meddler m = {.ww = ww, .in = EBB_WORKFLOW_DRAINING, .act = do_force};
    ebb_workflow wf = open_meddled(&m);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(200));
    assert_int_equal(m.got, EBB_OK);
    assert_int_equal(h->polls, 1);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_CANCELLED);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_true(report.forced);
}

static void on_state_may_extend_it_as_soon_as_it_drains(void **state) {
    workflow_world *ww = *state;
    meddler *m = world_keep(ww->world, sizeof *m);
    *m = (meddler){.ww = ww, .in = EBB_WORKFLOW_DRAINING, .act = do_extend};
    ebb_workflow wf = open_meddled(m);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(m->got, EBB_OK);
    world_pass(ww->world, MS(1799));
    assert_int_equal(info_of(ww->world, p->id).epoch, 0);
    assert_int_equal(workflow_report(ww, wf).budget, MS(3000));
}

static void on_state_may_stop_the_next_one(void **state) {
    workflow_world *ww = *state;
    ebb_workflow next = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    meddler m = {.ww = ww, .in = EBB_WORKFLOW_FINALIZED, .act = do_request, .other = next};
    ebb_workflow wf = open_meddled(&m);
    workflow_stop(ww, wf);
    assert_int_equal(m.got, EBB_OK);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_state(ww, next), EBB_WORKFLOW_FINALIZED);
    assert_string_equal(workflow_report(ww, next).reason.message, "from on_state");
}

/* ---- the root -------------------------------------------------------------------------------- */

static void the_root_has_one_workflow_which_stops_everything(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow_report report;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .root = true});
    assert_int_equal(ebb_workflow_region(w->host, wf).id, w->root.id);
    assert_int_equal(ebb_workflow_of(w->host).id, wf.id);
    ebb_workflow_opts second = {.type = &ebb_workflow_lifecycle_shutdown, .root = true};
    assert_int_equal(ebb_id_status(ebb_workflow_open(w->host, &second).id), EBB_ERR_BUSY);
    puppet *p = puppet_start(w, open_region(w, w->root), IGNORING);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    workflow_stop(ww, wf);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, w->root, puppet_poll, p).id), EBB_ERR_CLOSED);
    assert_int_equal(h->polls, 1);
    workflow_finish(ww, p);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    assert_int_equal(ebb_workflow_join(w->host, wf, &report), EBB_OK);
    assert_string_equal(workflow_story(ww, 1),
                        "opened requested drain_started handler_done drain_completed finalizing finalized");
}

static void the_roots_workflow_forces_what_does_not_stop(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .root = true});
    puppet *p = puppet_start(ww->world, ww->world->root, IGNORING);
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(3000));
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_SHUTDOWN);
    world_pass(ww->world, MS(2500));
    assert_int_equal(state_of(ww->world, ww->world->root), EBB_REGION_CLOSED);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
}

static void the_roots_workflow_completes_when_it_is_joined_and_all_has_ended(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .root = true});
    puppet *p = puppet_start(ww->world, ww->world->root, IGNORING);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_settle(ww->world);
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    assert_string_equal(workflow_story(ww, 1), "opened completed");
}

static void a_root_whose_workflow_was_joined_knows_of_none(void **state) {
    workflow_world *ww = *state;
    char text[160];
    ebb_workflow_type *type =
        malloc(sizeof *type); /* it has to live as long as its workflows, and not longer */
    assert_non_null(type);
    *type = ebb_workflow_lifecycle_shutdown;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = type, .root = true});
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    free(type);
    assert_int_equal(ebb_workflow_of(ww->host).id, 0);
    (void)ebb_region_closed_text(ww->host, ww->world->root, text, sizeof text);
    assert_null(strstr(text, "lifecycle_shutdown"));
}

static void the_root_may_have_a_workflow_again_if_one_could_not_be_opened(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow_opts opts = {.type = &ebb_workflow_lifecycle_shutdown, .root = true, .audit = ww->audit};
    for (uint64_t n = 1; n < 20; n++) {
        w->memory.fail_at = w->memory.calls + n;
        ebb_workflow wf = ebb_workflow_open(w->host, &opts);
        w->memory.fail_at = 0;
        world_settle(w);
        ebb_status st = ebb_id_status(wf.id);
        if (st == EBB_OK) return;
        assert_int_equal(st, EBB_ERR_NOMEM);
        assert_int_equal(state_of(w, w->root), EBB_REGION_OPEN);
    }
    fail_msg("it can't be opened");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(bad_options_are_refused_by_name_and_leave_nothing),
        IN_WORKFLOWS(a_long_name_is_cut_and_marked),
        IN_WORKFLOWS(a_task_or_fiber_that_joins_its_workflow_has_its_report),
        IN_WORKFLOWS(a_joiner_hears_of_the_timeout_of_a_patient_one),
        IN_WORKFLOWS(a_task_that_opens_one_and_returns_stops_it_and_is_not_over_before_it_is),
        IN_WORKFLOWS(a_task_that_is_cancelled_in_its_join_keeps_the_id_and_its_workflow_is_stopped),
        IN_WORKFLOWS(a_task_that_is_forced_takes_its_workflow_with_it),
        IN_WORKFLOWS(of_two_tasks_that_join_the_second_is_told_that_it_is_busy),
        IN_WORKFLOWS(a_joiner_that_is_gone_leaves_the_place_to_the_next),
        IN_WORKFLOWS(a_joiner_that_is_abandoned_leaves_the_place_too),
        IN_WORKFLOWS(a_joiner_hears_of_the_end_even_if_the_region_around_is_gone_by_then),
        IN_WORKFLOWS(one_that_nobody_joins_is_forgotten_with_the_region_around_it),
        IN_WORKFLOWS(a_handler_that_joins_its_own_workflow_is_refused),
        IN_WORKFLOWS(a_task_is_in_the_innermost_workflow_around_it_or_in_none),
        IN_WORKFLOWS(a_task_may_stop_the_workflow_that_it_is_in),
        IN_WORKFLOWS(an_abort_hook_may_ask),
        IN_WORKFLOWS(an_abort_hook_at_the_end_may_ask_and_is_absorbed),
        IN_WORKFLOWS(a_finalizer_may_ask_and_is_absorbed),
        IN_WORKFLOWS(a_request_while_its_work_completes_comes_too_late),
        IN_WORKFLOWS(on_state_may_force_it_as_soon_as_it_drains),
        IN_WORKFLOWS(on_state_may_extend_it_as_soon_as_it_drains),
        IN_WORKFLOWS(on_state_may_stop_the_next_one),
        IN_WORKFLOWS(the_root_has_one_workflow_which_stops_everything),
        IN_WORKFLOWS(the_roots_workflow_forces_what_does_not_stop),
        IN_WORKFLOWS(the_roots_workflow_completes_when_it_is_joined_and_all_has_ended),
        IN_WORKFLOWS(a_root_whose_workflow_was_joined_knows_of_none),
        IN_WORKFLOWS(the_root_may_have_a_workflow_again_if_one_could_not_be_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
