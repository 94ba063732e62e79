/* Obligations: resolved exactly once, or named as a leak and aborted. */
#include "tests/support/world.h"

typedef struct promise {
    ebb_obligation id;
    ebb_status reserved, resolved, again;
    puppet *hook;
    bool commit, abort;
} promise;

static void reserves(ebb_cx *cx, puppet *p) {
    promise *o = p->arg;
    if (o->id.id == 0) {
        o->id = ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, puppet_abort, o->hook);
        o->reserved = ebb_id_status(o->id.id);
    }
    if (!o->commit && !o->abort) return;
    o->resolved = o->commit ? ebb_obligation_commit(cx, o->id) : ebb_obligation_abort(cx, o->id);
    o->again = o->commit ? ebb_obligation_abort(cx, o->id) : ebb_obligation_commit(cx, o->id);
}

static puppet *promising(world *w, ebb_region r, promise o, ebb_status returns) {
    promise *copy = world_keep(w, sizeof *copy);
    *copy = o;
    if (copy->hook == NULL) copy->hook = puppet_new(w, (puppet){.says = "aborted"});
    return puppet_start(w, r, (puppet){.act = reserves, .arg = copy, .returns = returns});
}

static void a_committed_obligation_runs_no_hook_and_can_not_be_resolved_again(void **state) {
    world *w = *state;
    promise *o = promising(w, w->root, (promise){.commit = true}, EBB_OK)->arg;
    world_settle(w);
    assert_int_equal(o->reserved, EBB_OK);
    assert_int_equal(o->resolved, EBB_OK);
    assert_int_equal(o->again, EBB_ERR_RESOLVED);
    assert_int_equal(ebb_obligation_commit(w->host, o->id), EBB_ERR_RESOLVED);
    assert_int_equal(w->aborts, 0);
    assert_int_equal(stats_of(w).obligations, 0);
    assert_int_equal(stats_of(w).leaks, 0);
}

static void an_aborted_obligation_runs_its_hook_once_and_at_once(void **state) {
    world *w = *state;
    promise *o = promising(w, w->root, (promise){.abort = true}, EBB_OK)->arg;
    world_settle(w);
    assert_int_equal(o->resolved, EBB_OK);
    assert_int_equal(o->again, EBB_ERR_RESOLVED);
    assert_int_equal(o->hook->polls, 1);
    ebb_obligation hookless = ebb_obligation_reserve(w->host, EBB_OBLIGATION_IO, NULL, NULL);
    assert_int_equal(ebb_obligation_abort(w->host, hookless), EBB_OK);
    assert_int_equal(ebb_obligation_abort(w->host, hookless), EBB_ERR_RESOLVED);
}

static void what_a_task_leaves_reserved_is_a_leak_with_its_place(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    promise *o = promising(w, r, (promise){0}, EBB_OK)->arg;
    world_settle(w);
    assert_int_equal(o->hook->polls, 1);
    assert_int_equal(stats_of(w).leaks, 1);
    assert_int_equal(stats_of(w).obligations, 0);
    assert_int_equal(report_of(w, r).leaked, 1);
    assert_int_equal(report_of(w, r).status, EBB_OK); /* the task itself did not fail */
    ebb_work who;
    assert_int_equal(ebb_region_leaked_at(w->host, r, 0, &who), EBB_OK);
    assert_int_equal(who.id, o->id.id);
    assert_non_null(strstr(who.site, "kernel/obligations.c:"));
    assert_int_equal(ebb_region_leaked_at(w->host, r, 1, &who), EBB_ERR_INVALID);
    char text[300];
    text_of(w, EBB_EV_OBLIGATION_LEAKED, o->id.id, text, sizeof text);
    assert_string_equal(text, who.site);
    assert_true(event_of(w, EBB_EV_OBLIGATION_LEAKED, o->id.id).decision_seq <
                event_of(w, EBB_EV_OBLIGATION_ABORTED, o->id.id).decision_seq);
    assert_int_equal(ebb_obligation_commit(w->host, o->id), EBB_ERR_RESOLVED);
    assert_int_equal(ebb_obligation_abort(w->host, o->id), EBB_ERR_RESOLVED);
    assert_int_equal(o->hook->polls, 1);
}

static void somebody_else_may_resolve_it_while_the_task_lives(void **state) {
    world *w = *state;
    puppet *p = promising(w, w->root, (promise){0}, EBB_PENDING);
    promise *o = p->arg;
    world_settle(w);
    assert_int_equal(ebb_obligation_commit(w->host, o->id), EBB_OK);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(stats_of(w).leaks, 0);
    assert_int_equal(w->aborts, 0);
}

static void commits_for_its_task(ebb_cx *cx, puppet *p) {
    promise *o = p->arg;
    o->resolved = ebb_obligation_commit(cx, o->id);
}

static void reserves_and_defers(ebb_cx *cx, puppet *p) {
    promise *o = p->arg;
    o->id = ebb_obligation_reserve(cx, EBB_OBLIGATION_FENCE, puppet_abort, o->hook);
    (void)ebb_defer(cx, puppet_poll, puppet_new(p->world, (puppet){.act = commits_for_its_task, .arg = o}));
}

static void a_finalizer_may_still_resolve_it(void **state) {
    world *w = *state;
    promise *o = world_keep(w, sizeof *o);
    o->hook = puppet_new(w, IGNORING);
    (void)puppet_start(w, w->root, (puppet){.act = reserves_and_defers, .arg = o});
    world_settle(w);
    assert_int_equal(o->resolved, EBB_OK);
    assert_int_equal(stats_of(w).leaks, 0);
}

static void reserves_three(ebb_cx *cx, puppet *p) {
    puppet **hooks = p->arg;
    p->returns = ebb_checkpoint(cx);
    if (p->returns != EBB_OK) return;
    for (int i = 0; i < 3; i++) (void)ebb_obligation_reserve(cx, EBB_OBLIGATION_ACK, puppet_abort, hooks[i]);
    p->returns = EBB_PENDING;
}

static void a_cancelled_task_that_leaks_has_all_of_them_aborted_last_first(void **state) {
    world *w = *state;
    puppet **hooks = world_keep(w, 3 * sizeof(puppet *));
    static const char *const names[] = {"1", "2", "3"};
    for (int i = 0; i < 3; i++) hooks[i] = puppet_new(w, (puppet){.says = names[i]});
    puppet *p =
        puppet_start(w, w->root, (puppet){.act = reserves_three, .arg = hooks, .returns = EBB_PENDING});
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_string_equal(w->log, "3 2 1 ");
    assert_int_equal(stats_of(w).leaks, 3);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
}

static void works_in_a_hook(ebb_cx *cx, puppet *p) {
    promise *o = p->arg;
    o->resolved = ebb_obligation_commit(cx, o->id);
    o->again = ebb_runtime_pump(ebb_cx_runtime(cx), 1);
    ebb_obligation more = ebb_obligation_reserve(cx, EBB_OBLIGATION_IO, NULL, NULL);
    o->reserved = ebb_obligation_commit(cx, more);
}

static void a_hook_may_reserve_and_resolve_but_not_pump(void **state) {
    world *w = *state;
    promise *other = world_keep(w, sizeof *other);
    other->id = ebb_obligation_reserve(w->host, EBB_OBLIGATION_TRANSACTION, NULL, NULL);
    puppet *hook = puppet_new(w, (puppet){.act = works_in_a_hook, .arg = other});
    (void)promising(w, w->root, (promise){.hook = hook}, EBB_OK);
    world_settle(w);
    assert_int_equal(other->resolved, EBB_OK);
    assert_int_equal(other->reserved, EBB_OK);
    assert_int_equal(other->again, EBB_ERR_REENTERED);
}

static void an_obligation_of_a_region_holds_it_until_its_tasks_and_finalizers_are_done(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    promise *o = world_keep(w, sizeof *o);
    o->id = ebb_region_reserve(w->host, r, EBB_OBLIGATION_LEASE, NULL, NULL);
    assert_int_equal(stats_of(w).obligations, 1);
    puppet *fin = puppet_new(w, (puppet){.act = commits_for_its_task, .arg = o});
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(o->resolved, EBB_OK);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).leaked, 0);
}

static void the_host_reserves_in_the_root(void **state) {
    world *w = *state;
    puppet *hook = puppet_new(w, IGNORING);
    ebb_obligation o = ebb_obligation_reserve(w->host, EBB_OBLIGATION_PERMIT, puppet_abort, hook);
    assert_int_equal(event_of(w, EBB_EV_OBLIGATION_RESERVED, o.id).region_id, w->root.id);
    ebb_region_close(w->host, w->root);
    world_pass(w, 60000 * EBB_MS);
    assert_int_equal(hook->polls, 0);
    assert_int_equal(state_of(w, w->root), EBB_REGION_FINALIZING); /* it waits, as it would for a task */
    ebb_region_force(w->host, w->root);
    world_settle(w);
    assert_int_equal(hook->polls, 1);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    assert_int_equal(stats_of(w).leaks, 1);
}

static void one_that_a_region_holds_has_the_whole_budget_and_may_be_resolved_late(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *hook = puppet_new(w, IGNORING);
    ebb_obligation lease = ebb_region_reserve(w->host, r, EBB_OBLIGATION_LEASE, puppet_abort, hook);
    ebb_budget five_seconds = {world_now(w) + 5000 * EBB_MS, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, "stop", five_seconds);
    world_pass(w, 3900 * EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_FINALIZING);
    assert_int_equal(ebb_obligation_commit(w->host, lease), EBB_OK);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(hook->polls, 0);
    assert_int_equal(report_of(w, r).leaked, 0);
}

static void one_that_a_region_holds_is_a_leak_when_the_budget_is_over(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), below = open_region(w, r);
    puppet *hook = puppet_new(w, IGNORING);
    ebb_obligation lease = ebb_region_reserve(w->host, below, EBB_OBLIGATION_LEASE, puppet_abort, hook);
    ebb_region_cancel(w->host, r, EBB_CANCEL_TIMEOUT, "stop");
    world_pass(w, 1500 * EBB_MS);
    assert_int_equal(state_of(w, below), EBB_REGION_FINALIZING);
    world_pass(w, 600 * EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(hook->polls, 1);
    assert_int_equal(ebb_obligation_commit(w->host, lease), EBB_ERR_RESOLVED);
    assert_int_equal(stats_of(w).leaks, 1);
}

static void a_region_waits_for_each_of_many(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_obligation held[3];
    for (int i = 0; i < 3; i++) held[i] = ebb_region_reserve(w->host, r, EBB_OBLIGATION_ACK, NULL, NULL);
    ebb_region_close(w->host, r);
    for (int i = 0; i < 3; i++) {
        world_pass(w, 10000 * EBB_MS);
        assert_int_equal(state_of(w, r), EBB_REGION_FINALIZING);
        assert_int_equal(i == 1 ? ebb_obligation_abort(w->host, held[i])
                                : ebb_obligation_commit(w->host, held[i]),
                         EBB_OK);
    }
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(stats_of(w).leaks, 0);
}

static void kinds_are_checked(void **state) {
    world *w = *state;
    for (int kind = -1; kind <= 8; kind++) {
        bool known = kind >= EBB_OBLIGATION_PERMIT && kind <= EBB_OBLIGATION_TRANSACTION;
        ebb_obligation o = ebb_obligation_reserve(w->host, (ebb_obligation_kind)kind, NULL, NULL);
        assert_int_equal(ebb_id_status(o.id), known ? EBB_OK : EBB_ERR_INVALID);
        assert_int_equal(ebb_obligation_commit(w->host, o), known ? EBB_OK : EBB_ERR_INVALID);
        if (known) assert_int_equal(event_of(w, EBB_EV_OBLIGATION_RESERVED, o.id).value, kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_committed_obligation_runs_no_hook_and_can_not_be_resolved_again),
        IN_WORLD(an_aborted_obligation_runs_its_hook_once_and_at_once),
        IN_WORLD(what_a_task_leaves_reserved_is_a_leak_with_its_place),
        IN_WORLD(somebody_else_may_resolve_it_while_the_task_lives),
        IN_WORLD(a_finalizer_may_still_resolve_it),
        IN_WORLD(a_cancelled_task_that_leaks_has_all_of_them_aborted_last_first),
        IN_WORLD(a_hook_may_reserve_and_resolve_but_not_pump),
        IN_WORLD(an_obligation_of_a_region_holds_it_until_its_tasks_and_finalizers_are_done),
        IN_WORLD(the_host_reserves_in_the_root),
        IN_WORLD(one_that_a_region_holds_has_the_whole_budget_and_may_be_resolved_late),
        IN_WORLD(one_that_a_region_holds_is_a_leak_when_the_budget_is_over),
        IN_WORLD(a_region_waits_for_each_of_many),
        IN_WORLD(kinds_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
