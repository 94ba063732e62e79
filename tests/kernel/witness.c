/* Witnesses: what an observer may believe after what. */
#include "tests/support/world.h"

static ebb_witness witness_of(world *w, ebb_task t) {
    ebb_witness x;
    assert_int_equal(ebb_task_witness(w->host, t, &x), EBB_OK);
    return x;
}

static void the_witnesses_of_a_whole_life_follow_each_other(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING});
    ebb_witness seen[16];
    size_t n = 0;
    seen[n++] = witness_of(w, p->id);
    world_settle(w);
    seen[n++] = witness_of(w, p->id);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    seen[n++] = witness_of(w, p->id);
    world_settle(w);
    seen[n++] = witness_of(w, p->id);
    assert_int_equal(seen[n - 1].phase, EBB_TASK_CANCELLING);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_LEASE_LOST, NULL);
    seen[n++] = witness_of(w, p->id);
    world_pass(w, 10 * EBB_MS);
    seen[n++] = witness_of(w, p->id);
    ebb_region_cancel(w->host, r, EBB_CANCEL_SHUTDOWN, NULL);
    seen[n++] = witness_of(w, p->id);
    assert_int_equal(seen[n - 1].epoch, 3);
    assert_int_equal(seen[n - 1].kind, EBB_CANCEL_SHUTDOWN);
    p->on_cancel = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    seen[n++] = witness_of(w, p->id);
    assert_int_equal(seen[n - 1].phase, EBB_TASK_COMPLETED);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i; k < n; k++) assert_int_equal(ebb_witness_check(&seen[i], &seen[k]), EBB_OK);
    }
    for (size_t i = 2; i < n; i++) assert_int_not_equal(ebb_witness_check(&seen[i], &seen[0]), EBB_OK);
}

static ebb_witness some(void) {
    return (ebb_witness){{7},          {8}, 2, EBB_TASK_CANCELLING, EBB_SEVERITY_URGENT, EBB_CANCEL_TIMEOUT,
                         {1000, 20, 3}};
}

static void each_way_back_is_refused_by_name(void **state) {
    (void)state;
    ebb_witness a = some(), b = some();
    assert_int_equal(ebb_witness_check(&a, &b), EBB_OK);
    b = some(), b.task.id = 9;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_TASK);
    b = some(), b.region.id = 9;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_REGION);
    b = some(), b.epoch = 1;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_EPOCH);
    b = some(), b.phase = EBB_TASK_CANCEL_REQUESTED;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_PHASE);
    b = some(), b.severity = EBB_SEVERITY_POLITE;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_SEVERITY);
    b = some(), b.budget.deadline = 1001;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_BUDGET);
    b = some(), b.budget.polls = 21;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_BUDGET);
    b = some(), b.budget.priority = 2;
    assert_int_equal(ebb_witness_check(&a, &b), EBB_ERR_WITNESS_BUDGET);
}

static void each_way_on_is_accepted(void **state) {
    (void)state;
    ebb_witness a = some(), b = some();
    b.epoch = 3;
    b.phase = EBB_TASK_FINALIZING;
    b.severity = EBB_SEVERITY_FORCED;
    b.kind = EBB_CANCEL_SHUTDOWN;
    b.budget = (ebb_budget){999, 19, 4};
    assert_int_equal(ebb_witness_check(&a, &b), EBB_OK);
    /* Before the first request there is no budget to be kept. */
    a = (ebb_witness){{7}, {8}, 0, EBB_TASK_RUNNING, 0, 0, {10, 1, 0}};
    assert_int_equal(ebb_witness_check(&a, &b), EBB_OK);
}

static void there_is_no_witness_of_what_is_gone(void **state) {
    world *w = *state;
    puppet *p = puppet_new(w, (puppet){.returns = EBB_OK});
    ebb_task t = ebb_spawn(w->host, w->root, puppet_poll, p);
    world_settle(w);
    ebb_witness x;
    assert_int_equal(ebb_task_witness(w->host, t, &x), EBB_ERR_STALE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_witnesses_of_a_whole_life_follow_each_other),
        cmocka_unit_test(each_way_back_is_refused_by_name),
        cmocka_unit_test(each_way_on_is_accepted),
        IN_WORLD(there_is_no_witness_of_what_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
