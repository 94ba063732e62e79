/* A workflow whose work is also on another runtime: one request, one drain, one end. */
#include "tests/support/two_worlds.h"

#define MS(n) ((n)*EBB_MS)

typedef struct far_work {
    ebb_peer *peer;
    puppet *there; /* on b */
    ebb_future *future;
} far_work;

static ebb_status here(ebb_cx *cx, void *state) {
    far_work *f = state;
    ebb_value v;
    if (f->future == NULL) f->future = ebb_peer_run(cx, f->peer, puppet_poll, f->there);
    return ebb_await(cx, f->future, &v);
}

/* A shutdown of a, with work there of which b has a part. Budget 5 s, cancel_at 3 s. */
static ebb_workflow shut(two *t, far_work *f, puppet there, bool no_force) {
    ebb_workflow_opts o = {
        .type = &ebb_workflow_lifecycle_shutdown, .no_force = no_force, .policy = EBB_FAIL_COLLECT};
    ebb_workflow wf = ebb_workflow_open(t->a->host, &o);
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    *f = (far_work){.peer = t->to_b, .there = puppet_new(t->b, there)};
    ebb_region r = ebb_workflow_region(t->a->host, wf);
    assert_int_equal(ebb_id_status(ebb_spawn(t->a->host, r, here, f).id), EBB_OK);
    meet(t);
    assert_int_equal(f->there->polls, 1);
    assert_int_equal(ebb_workflow_request(t->a->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    meet(t);
    return wf;
}

static void pass(two *t, uint64_t span) {
    world_pass(t->a, span);
    world_pass(t->b, span);
    meet(t);
}

static ebb_workflow_report report(two *t, ebb_workflow wf) {
    ebb_workflow_report r = {0};
    assert_int_equal(ebb_workflow_report_of(t->a->host, wf, &r), EBB_OK);
    return r;
}

static ebb_region far_region(two *t) {
    ebb_event ev;
    assert_true(find_event(t->b, EBB_EV_REGION_OPENED, 0, 1, &ev)); /* the first is the root */
    return (ebb_region){ev.region_id};
}

static void looks_whether_it_stops(ebb_cx *cx, puppet *p) {
    if (ebb_stopping(cx)) p->returns = EBB_OK;
}

static void a_request_closes_what_is_there_and_the_drain_waits_for_it(void **state) {
    two *t = *state;
    far_work f;
    ebb_workflow wf = shut(t, &f, IGNORING, false);
    assert_int_equal(state_of(t->b, far_region(t)), EBB_REGION_DRAINING);
    assert_int_equal(ebb_id_status(ebb_spawn(t->b->host, far_region(t), puppet_poll, f.there).id),
                     EBB_ERR_CLOSED);
    pass(t, MS(2900));
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_DRAINING);
    f.there->returns = EBB_OK;
    ebb_event spawned;
    assert_true(find_event(t->b, EBB_EV_TASK_SPAWNED, 0, 0, &spawned));
    (void)ebb_task_wake(t->b->host, (ebb_task){spawned.task_id});
    meet(t);
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_FINALIZED);
    assert_false(report(t, wf).cancelled);
}

static void what_listens_there_ends_at_once(void **state) {
    two *t = *state;
    far_work f;
    ebb_workflow wf = shut(t, &f, (puppet){.act = looks_whether_it_stops, .returns = EBB_PENDING}, false);
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_FINALIZED);
}

static void at_cancel_at_it_is_cancelled_there_with_the_rest_of_the_budget(void **state) {
    two *t = *state;
    far_work f;
    ebb_workflow wf = shut(t, &f, IGNORING, false);
    pass(t, MS(2999));
    assert_int_equal(count_events(t->b, EBB_EV_REGION_CANCELLED, far_region(t).id), 0);
    pass(t, MS(1));
    ebb_event told = event_of(t->b, EBB_EV_REGION_CANCELLED, far_region(t).id);
    assert_int_equal(told.cancel_kind, EBB_CANCEL_SHUTDOWN);
    assert_in_range(told.other, world_now(t->b) + MS(2000), world_now(t->b) + MS(2510));
    pass(t, MS(1990));
    assert_int_equal(state_of(t->b, far_region(t)), EBB_REGION_DRAINING);
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_DRAINING);
    pass(t, MS(20));
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(count_events(t->b, EBB_EV_ABANDONED, 0), 1);
}

static void without_force_it_stays_there_until_an_operator_says_so(void **state) {
    two *t = *state;
    far_work f;
    ebb_workflow wf = shut(t, &f, IGNORING, true);
    pass(t, MS(60000));
    assert_int_equal(report(t, wf).state, EBB_WORKFLOW_DRAINING);
    assert_int_equal(state_of(t->b, far_region(t)), EBB_REGION_DRAINING);
    assert_int_equal(ebb_workflow_force(t->a->host, wf, NULL), EBB_OK);
    pass(t, MS(1000));
    assert_true(report(t, wf).state >= EBB_WORKFLOW_FINALIZED);
    assert_int_equal(count_events(t->b, EBB_EV_ABANDONED, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TWO_WORLDS(a_request_closes_what_is_there_and_the_drain_waits_for_it),
        IN_TWO_WORLDS(what_listens_there_ends_at_once),
        IN_TWO_WORLDS(at_cancel_at_it_is_cancelled_there_with_the_rest_of_the_budget),
        IN_TWO_WORLDS(without_force_it_stays_there_until_an_operator_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
