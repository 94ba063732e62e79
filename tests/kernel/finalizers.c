/* Finalizers: each once, last added first, after everything else, and masked. */
#include "tests/support/world.h"

typedef struct ends {
    puppet *fin[4];
    uint32_t n;
    ebb_status added[4], late;
} ends;

static void defers_all(ebb_cx *cx, puppet *p) {
    ends *e = p->arg;
    if (p->polls > 1) return;
    for (uint32_t i = 0; i < e->n; i++) e->added[i] = ebb_defer(cx, puppet_poll, e->fin[i]);
}

static ends *ends_of(world *w, uint32_t n) {
    static const char *const names[] = {"1", "2", "3", "4"};
    ends *e = world_keep(w, sizeof *e);
    e->n = n;
    for (uint32_t i = 0; i < n; i++) e->fin[i] = puppet_new(w, (puppet){.says = names[i]});
    return e;
}

static void the_finalizers_of_a_task_run_last_first_once_each_however_it_ends(void **state) {
    world *w = *state;
    static const ebb_status how[] = {EBB_OK, EBB_FAILED, EBB_FAULTED, EBB_CANCELLED};
    for (size_t i = 0; i < 4; i++) {
        w->log[0] = 0;
        ends *e = ends_of(w, 3);
        puppet *p = puppet_start(w, w->root, (puppet){.act = defers_all, .arg = e, .returns = how[i]});
        world_settle(w);
        assert_string_equal(w->log, "3 2 1 ");
        assert_int_equal(info_of(w, p->id).status, how[i]);
        assert_int_equal(count_events(w, EBB_EV_FINALIZER_DONE, p->id.id), 3);
    }
}

static void they_run_when_the_task_is_cancelled_between_cleanup_and_the_end(void **state) {
    world *w = *state;
    ends *e = ends_of(w, 2);
    puppet heeding = HEEDING;
    heeding.act = defers_all;
    heeding.arg = e;
    puppet *p = puppet_start(w, w->root, heeding);
    world_settle(w);
    assert_string_equal(w->log, "");
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_string_equal(w->log, "2 1 ");
    ebb_event done = event_of(w, EBB_EV_FINALIZER_DONE, p->id.id);
    assert_true(event_of(w, EBB_EV_CLEANUP_DONE, p->id.id).decision_seq < done.decision_seq);
    assert_true(done.decision_seq < event_of(w, EBB_EV_FINALIZED, p->id.id).decision_seq);
}

static void a_finalizer_may_wait_and_the_next_one_waits_for_it(void **state) {
    world *w = *state;
    ends *e = ends_of(w, 2);
    e->fin[1]->returns = EBB_PENDING;
    puppet *p = puppet_start(w, w->root, (puppet){.act = defers_all, .arg = e});
    world_settle(w);
    assert_string_equal(w->log, "2 ");
    assert_int_equal(phase_of(w, p->id), EBB_TASK_RUNNING);
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_string_equal(w->log, "2 2 ");
    e->fin[1]->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_string_equal(w->log, "2 2 2 1 ");
    assert_int_equal(p->polls, 1); /* the body is not polled again */
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
}

static void sleeps_a_little(ebb_cx *cx, puppet *p) {
    p->returns = ebb_sleep(cx, &p->nap, 30 * EBB_MS);
}

static void a_finalizer_may_sleep_though_its_task_is_cancelled(void **state) {
    world *w = *state;
    ends *e = ends_of(w, 1);
    e->fin[0]->act = sleeps_a_little;
    puppet heeding = HEEDING;
    heeding.act = defers_all;
    heeding.arg = e;
    puppet *p = puppet_start(w, w->root, heeding);
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_SHUTDOWN, NULL);
    world_pass(w, 29 * EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_FINALIZING);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal((int32_t)event_of(w, EBB_EV_FINALIZER_DONE, p->id.id).value, EBB_OK);
}

static void wakes_itself(ebb_cx *cx, puppet *p) {
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    p->returns = p->polls < 4 ? EBB_PENDING : EBB_OK;
}

static void a_finalizer_that_wakes_its_task_is_polled_again_and_leaves_nothing_behind(void **state) {
    world *w = *state;
    for (int i = 0; i < 3; i++) {
        ends *e = ends_of(w, 2);
        e->fin[0]->act = e->fin[1]->act = wakes_itself;
        puppet *p = puppet_new(w, (puppet){.act = defers_all, .arg = e});
        (void)ebb_spawn(w->host, w->root, puppet_poll, p);
        world_settle(w);
        assert_int_equal(e->fin[0]->polls, 4);
        assert_int_equal(e->fin[1]->polls, 4);
        assert_int_equal(stats_of(w).runnable, 0);
        assert_int_equal(stats_of(w).tasks, 0);
    }
}

static void one_that_fails_makes_its_task_fail_and_the_others_run_all_the_same(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ends *e = ends_of(w, 3);
    e->fin[2]->returns = EBB_FAILED;
    e->fin[1]->returns = (ebb_status)-1001;
    puppet *p = puppet_start(w, r, (puppet){.act = defers_all, .arg = e});
    world_settle(w);
    assert_string_equal(w->log, "3 2 1 ");
    assert_int_equal(info_of(w, p->id).status, EBB_FAILED); /* the first one that did */
    assert_int_equal(report_of(w, r).status, EBB_FAILED);
}

static void a_failure_of_the_body_stands_before_one_of_a_finalizer(void **state) {
    world *w = *state;
    ends *e = ends_of(w, 1);
    e->fin[0]->returns = EBB_FAILED;
    puppet *p = puppet_start(w, w->root, (puppet){.act = defers_all, .arg = e, .returns = (ebb_status)-1001});
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, -1001);
}

/* ---- regions ------------------------------------------------------------------------------------ */

static void the_finalizers_of_a_region_run_after_its_tasks_and_children(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), child = open_region(w, r);
    ends *e = ends_of(w, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, e->fin[i]), EBB_OK);
    puppet *inner = puppet_new(w, (puppet){.says = "child"});
    assert_int_equal(ebb_region_defer(w->host, child, puppet_poll, inner), EBB_OK);
    puppet *a = puppet_start(w, r, (puppet){.says = "task", .returns = EBB_PENDING});
    world_settle(w);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_string_equal(w->log, "task task child ");
    a->returns = EBB_OK;
    (void)ebb_task_wake(w->host, a->id);
    world_settle(w);
    assert_string_equal(w->log, "task task child task 3 2 1 ");
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
}

static void a_failing_finalizer_of_a_region_is_what_join_returns(void **state) {
    world *w = *state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        ebb_region r = open_region(w, w->root);
        puppet *fin = puppet_new(w, (puppet){.returns = EBB_FAILED});
        (void)ebb_region_defer(w->host, r, puppet_poll, fin);
        if (cancelled) ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        else ebb_region_close(w->host, r);
        world_settle(w);
        assert_int_equal(fin->polls, 1);
        assert_int_equal(ebb_region_join(w->host, r), EBB_FAILED);
    }
}

static void those_of_the_host_belong_to_the_root(void **state) {
    world *w = *state;
    puppet *fin = puppet_new(w, (puppet){.says = "root"});
    assert_int_equal(ebb_defer(w->host, puppet_poll, fin), EBB_OK);
    ebb_region_close(w->host, w->root);
    world_settle(w);
    assert_string_equal(w->log, "root ");
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
}

static void defers_more(ebb_cx *cx, puppet *p) {
    ends *e = p->arg;
    e->late = ebb_defer(cx, puppet_poll, e->fin[0]);
    e->added[3] = ebb_region_defer(cx, ebb_cx_region(cx), puppet_poll, e->fin[0]);
}

static void none_may_be_added_when_it_could_not_run_any_more(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ends *e = ends_of(w, 1);
    puppet *fin = puppet_new(w, (puppet){.act = defers_more, .arg = e});
    assert_int_equal(ebb_region_defer(w->host, r, NULL, fin), EBB_ERR_INVALID);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_ERR_CLOSED);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(e->late, EBB_ERR_CLOSED);
    assert_int_equal(e->added[3], EBB_ERR_CLOSED);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_ERR_CLOSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_finalizers_of_a_task_run_last_first_once_each_however_it_ends),
        IN_WORLD(they_run_when_the_task_is_cancelled_between_cleanup_and_the_end),
        IN_WORLD(a_finalizer_may_wait_and_the_next_one_waits_for_it),
        IN_WORLD(a_finalizer_may_sleep_though_its_task_is_cancelled),
        IN_WORLD(a_finalizer_that_wakes_its_task_is_polled_again_and_leaves_nothing_behind),
        IN_WORLD(one_that_fails_makes_its_task_fail_and_the_others_run_all_the_same),
        IN_WORLD(a_failure_of_the_body_stands_before_one_of_a_finalizer),
        IN_WORLD(the_finalizers_of_a_region_run_after_its_tasks_and_children),
        IN_WORLD(a_failing_finalizer_of_a_region_is_what_join_returns),
        IN_WORLD(those_of_the_host_belong_to_the_root),
        IN_WORLD(none_may_be_added_when_it_could_not_run_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
