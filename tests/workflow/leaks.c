/* What is left behind: every kind of it is named, in every workflow that is around it, and released. */
#include "tests/support/workflow_world.h"

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
}

static ebb_workflow_leak leak_of(workflow_world *ww, ebb_workflow wf, uint32_t i) {
    ebb_workflow_leak leak = {.what = ""};
    assert_int_equal(ebb_workflow_leak_at(ww->host, wf, i, &leak), EBB_OK);
    return leak;
}

static void run_out(workflow_world *ww, ebb_workflow wf) {
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

/* A task that reserves one of each kind. */
typedef struct debtor {
    world *world;
    ebb_obligation owed[6];
    puppet *hook;
    bool returns;
} debtor;

static ebb_status borrow(ebb_cx *cx, void *state) {
    debtor *d = state;
    if (d->owed[0].id == 0) {
        d->owed[0] =
            ebb_obligation_reserve_site(cx, EBB_OBLIGATION_PERMIT, puppet_abort, d->hook, "permit.c:1");
        d->owed[1] = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_ACK, puppet_abort, d->hook, "ack.c:2");
        d->owed[2] =
            ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, puppet_abort, d->hook, "lease.c:3");
        d->owed[3] =
            ebb_obligation_reserve_site(cx, EBB_OBLIGATION_FENCE, puppet_abort, d->hook, "fence.c:4");
        d->owed[4] = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_IO, puppet_abort, d->hook, "io.c:5");
        d->owed[5] = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_TRANSACTION, puppet_abort, d->hook,
                                                 "transaction.c:6");
    }
    return d->returns ? EBB_OK : EBB_PENDING;
}

static const char *const kinds[] = {"permit", "ack", "lease", "fence", "io", "transaction"};
static const char *const sites[] = {"permit.c:1", "ack.c:2", "lease.c:3",
                                    "fence.c:4",  "io.c:5",  "transaction.c:6"};

/* Each of the six, whatever the order in which they are let go of. */
static void expect_six(workflow_world *ww, ebb_workflow wf, uint32_t from, const debtor *d, ebb_task owner,
                       const char *what) {
    for (uint32_t k = 0; k < 6; k++) {
        uint32_t found = 0;
        for (uint32_t i = from; i < from + 6; i++) {
            ebb_workflow_leak leak = leak_of(ww, wf, i);
            if (leak.id != d->owed[k].id) continue;
            found++;
            assert_string_equal(leak.what, what);
            assert_string_equal(leak.kind, kinds[k]);
            assert_string_equal(leak.site, sites[k]);
            assert_int_equal(leak.owner, owner.id);
        }
        assert_int_equal(found, 1);
    }
}

static void the_obligations_of_a_task_that_is_abandoned_are_aborted_and_each_is_named(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    debtor d = {.world = w, .hook = puppet_new(w, (puppet){.returns = EBB_OK})};
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(w->host, wf);
    ebb_task t = ebb_spawn_site(w->host, r, borrow, &d, "debtor.c:9");
    world_settle(w);
    run_out(ww, wf);
    assert_int_equal(w->aborts, 6);
    assert_int_equal(workflow_report(ww, wf).leaks, 7);
    assert_int_equal(workflow_report(ww, wf).unnamed, 0);
    ebb_workflow_leak leak = leak_of(ww, wf, 0);
    assert_string_equal(leak.what, "task");
    assert_string_equal(leak.kind, "");
    assert_string_equal(leak.site, "debtor.c:9");
    assert_int_equal(leak.id, t.id);
    assert_int_equal(leak.region.id, r.id);
    expect_six(ww, wf, 1, &d, t, "aborted");
    assert_int_equal(ebb_workflow_leak_at(w->host, wf, 7, &leak), EBB_ERR_INVALID);
    assert_int_equal(workflow_lines(ww, "left"), 7);
    workflow_says(workflow_line(ww, "left", 0), "\"what\":\"task\",\"kind\":\"\"");
    workflow_says(workflow_line(ww, "left", 0), "\"site\":\"debtor.c:9\"");
    workflow_says(workflow_line(ww, "leak_detected", 0), "\"left\":7");
}

static void obligations_that_a_task_forgets_are_leaks_and_named(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    debtor d = {.world = w, .hook = puppet_new(w, (puppet){.returns = EBB_OK}), .returns = false};
    ebb_workflow wf = open_plain(ww);
    ebb_task t = ebb_spawn(w->host, ebb_workflow_region(w->host, wf), borrow, &d);
    world_settle(w);
    workflow_stop(ww, wf);
    d.returns = true;
    (void)ebb_task_wake(w->host, t);
    world_settle(w);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, wf).leaks, 6);
    assert_int_equal(w->aborts, 6);
    expect_six(ww, wf, 0, &d, t, "obligation");
    assert_false(workflow_report(ww, wf).drain_timed_out);
}

static void an_obligation_of_the_region_is_named_without_an_owner(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    ebb_obligation o = ebb_region_reserve_site(ww->host, r, EBB_OBLIGATION_FENCE, NULL, NULL, "fence.c:8");
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    ebb_workflow_leak leak = leak_of(ww, wf, 0);
    assert_string_equal(leak.what, "obligation");
    assert_string_equal(leak.kind, "fence");
    assert_string_equal(leak.site, "fence.c:8");
    assert_int_equal(leak.id, o.id);
    assert_int_equal(leak.owner, 0);
    assert_int_equal(leak.region.id, r.id);
    const char *line = workflow_line(ww, "left", 0);
    workflow_says(line, "\"what\":\"obligation\",\"kind\":\"fence\"");
    workflow_says(line, "\"owner\":\"its region\"");
    workflow_says(line, "\"site\":\"fence.c:8\"");
}

static void what_leaks_before_the_request_is_in_the_log_but_does_not_count(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    debtor d = {.world = w, .hook = puppet_new(w, (puppet){.returns = EBB_OK}), .returns = true};
    ebb_workflow wf = open_plain(ww);
    (void)ebb_spawn(w->host, ebb_workflow_region(w->host, wf), borrow, &d);
    world_settle(w);
    assert_int_equal(workflow_lines(ww, "left"), 6);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    workflow_stop(ww, wf);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_report(ww, wf).leaks, 0);
}

static void a_handler_that_never_ends_is_left_behind_with_its_place(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    drainer *poll = world_keep(ww->world, sizeof *poll), *fiber = world_keep(ww->world, sizeof *fiber);
    poll->stays = fiber->stays = true;
    poll->world = fiber->world = ww->world;
    assert_int_equal(ebb_workflow_on_drain_site(ww->host, wf, "poll", drainer_run, poll, "poll.c:1"), EBB_OK);
    assert_int_equal(ebb_workflow_on_drain_fiber_site(ww->host, wf, "fiber", drainer_run, fiber, "fiber.c:2"),
                     EBB_OK);
    run_out(ww, wf);
    assert_int_equal(workflow_report(ww, wf).leaks, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ebb_workflow_leak leak = leak_of(ww, wf, i);
        assert_string_equal(leak.what, "task");
        assert_string_equal(leak.site, leak.id == poll->task.id ? "poll.c:1" : "fiber.c:2");
    }
}

static ebb_status stay(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static void spawn_one(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    (void)ebb_spawn_site(cx, ebb_cx_region(cx), stay, me, "spawned.c:3");
    (void)ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, NULL, NULL, "lease.c:4");
}

static void what_a_handler_has_spawned_and_reserved_is_left_behind_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)drainer_add(ww, wf, "spawns", (drainer){.act = spawn_one});
    run_out(ww, wf);
    assert_int_equal(workflow_report(ww, wf).leaks, 2);
    assert_string_equal(leak_of(ww, wf, 0).site, "lease.c:4");
    assert_string_equal(leak_of(ww, wf, 0).what, "obligation");
    assert_string_equal(leak_of(ww, wf, 1).site, "spawned.c:3");
    assert_string_equal(leak_of(ww, wf, 1).what, "task");
}

static void a_finalizer_of_a_task_that_never_ends_is_named(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer_site(ww->host, r, stay, NULL, "finalizer.c:5"), EBB_OK);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(3000));
    ebb_workflow_leak leak = leak_of(ww, wf, 0);
    assert_string_equal(leak.what, "finalizer");
    assert_string_equal(leak.site, "finalizer.c:5");
    assert_int_equal(workflow_report(ww, wf).leaks, 1);
}

static void what_is_left_below_is_named_in_every_workflow_around_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf[3];
    ebb_workflow_opts opts = {.type = &ebb_workflow_publish_abort};
    for (int i = 0; i < 3; i++) {
        wf[i] = workflow_new(ww, &opts);
        opts.parent = ebb_workflow_region(ww->host, wf[i]);
    }
    puppet *p = puppet_start(ww->world, opts.parent, IGNORING);
    workflow_stop(ww, wf[0]);
    world_pass(ww->world, MS(2200));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(workflow_report(ww, wf[i]).leaks, 1);
        assert_int_equal(leak_of(ww, wf[i], 0).id, p->id.id);
        assert_int_equal(leak_of(ww, wf[i], 0).region.id, opts.parent.id);
    }
    assert_int_equal(workflow_lines(ww, "left"), 3);
}

static void what_is_left_elsewhere_is_not_named(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww), other = open_plain(ww);
    ebb_region aside = open_region(ww->world, ww->world->root);
    (void)puppet_start(ww->world, aside, IGNORING);
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, other), IGNORING);
    workflow_stop(ww, wf);
    workflow_stop(ww, other);
    ebb_region_force(ww->host, aside);
    world_pass(ww->world, MS(2200));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(workflow_report(ww, wf).leaks, 0);
    assert_int_equal(workflow_report(ww, other).leaks, 1);
}

static void a_crowd_that_is_left_behind_is_named_to_the_last(void **state) {
    workflow_world *ww = *state;
    enum { CROWD = 100 };
    ebb_workflow wf = open_plain(ww);
    for (int i = 0; i < CROWD; i++)
        (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    run_out(ww, wf);
    assert_int_equal(workflow_report(ww, wf).leaks, CROWD);
    for (uint32_t i = 0; i < CROWD; i++) assert_string_equal(leak_of(ww, wf, i).what, "task");
    assert_int_equal(workflow_lines(ww, "left"), CROWD);
}

static void a_leak_that_there_is_no_memory_to_name_is_counted(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = open_plain(ww);
    for (int i = 0; i < 6; i++) (void)puppet_start(w, ebb_workflow_region(w->host, wf), IGNORING);
    workflow_stop(ww, wf);
    world_pass(w, MS(1999));
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
    world_pass(w, MS(201));
    w->memory.fail_at = 0;
    w->memory.fail_after = false;
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.state, EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(report.leaks, 6);
    assert_int_equal(report.unnamed, 6);
    ebb_workflow_leak leak;
    assert_int_equal(ebb_workflow_leak_at(w->host, wf, 0, &leak), EBB_ERR_INVALID);
    assert_int_equal(workflow_lines(ww, "left"), 6); /* the log needs no memory */
    assert_int_equal(ebb_workflow_join(w->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(the_obligations_of_a_task_that_is_abandoned_are_aborted_and_each_is_named),
        IN_WORKFLOWS(obligations_that_a_task_forgets_are_leaks_and_named),
        IN_WORKFLOWS(an_obligation_of_the_region_is_named_without_an_owner),
        IN_WORKFLOWS(what_leaks_before_the_request_is_in_the_log_but_does_not_count),
        IN_WORKFLOWS(a_handler_that_never_ends_is_left_behind_with_its_place),
        IN_WORKFLOWS(what_a_handler_has_spawned_and_reserved_is_left_behind_too),
        IN_WORKFLOWS(a_finalizer_of_a_task_that_never_ends_is_named),
        IN_WORKFLOWS(what_is_left_below_is_named_in_every_workflow_around_it),
        IN_WORKFLOWS(what_is_left_elsewhere_is_not_named),
        IN_WORKFLOWS(a_crowd_that_is_left_behind_is_named_to_the_last),
        IN_WORKFLOWS(a_leak_that_there_is_no_memory_to_name_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
