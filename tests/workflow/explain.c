/* What an operator is told: what a drain waits for, where that comes from, how old it is. */
#include "tests/support/workflow_world.h"

#include <stdlib.h>

static ebb_workflow open_patient(workflow_world *ww) {
    return workflow_new(
        ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v42", .no_force = true});
}

/* The line of the text that has this in it; fails the test if there is none, or more than one. */
static const char *line_with(workflow_world *ww, const char *text, const char *part) {
    const char *at = strstr(text, part);
    if (at == NULL) fail_msg("expected \"%s\" in\n%s", part, text);
    if (strstr(at + strlen(part), part) != NULL) fail_msg("\"%s\" stands twice in\n%s", part, text);
    const char *start = at, *end = strchr(at, '\n');
    while (start > text && start[-1] != '\n') start--;
    char *line = world_keep(ww->world, (size_t)(end - start) + 1);
    memcpy(line, start, (size_t)(end - start));
    return line;
}

/* The number before " ms ago", which is told in steps of 17 ms. */
static void expect_age(const char *line, unsigned ms) {
    const char *at = strstr(line, " ms ago");
    if (at == NULL) fail_msg("no age in: %s", line);
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    unsigned found = (unsigned)strtoul(at, NULL, 10);
    if (found > ms + 17 || found + 17 < ms) fail_msg("expected about %u ms in: %s", ms, line);
}

static ebb_status stay(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static ebb_status hold_fence(ebb_cx *cx, void *state) {
    bool *reserved = state;
    if (!*reserved) (void)ebb_obligation_reserve_site(cx, EBB_OBLIGATION_FENCE, NULL, NULL, "fence.c:4");
    *reserved = true;
    return EBB_PENDING;
}

static void the_first_line_says_its_state_its_time_its_reason_and_what_is_in_flight(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    assert_string_equal(workflow_explained(ww, wf), "publish_abort#1 v42 is IDLE, 0 in flight\n");
    ebb_region r = ebb_workflow_region(ww->host, wf);
    for (int i = 0; i < 3; i++) (void)puppet_start(ww->world, r, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1500));
    workflow_says(workflow_explained(ww, wf),
                  "publish_abort#1 v42 is DRAINING, 1500 of 2000 ms, USER: enough, 3 in flight\n");
    world_pass(ww->world, MS(500));
    workflow_says(workflow_explained(ww, wf),
                  "publish_abort#1 v42 is DRAINING, 2000 of 2000 ms, USER: enough, over "
                  "its budget: extend or force it, 3 in flight\n");
}

static void a_task_is_named_with_its_place_and_age_and_its_obligations_with_theirs(void **state) {
    workflow_world *ww = *state;
    bool *reserved = world_keep(ww->world, sizeof *reserved);
    ebb_workflow wf = open_patient(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    world_pass(ww->world, MS(300));
    (void)ebb_spawn_site(ww->host, r, hold_fence, reserved, "holder.c:3");
    world_pass(ww->world, MS(1000));
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    const char *text = workflow_explained(ww, wf);
    const char *task = line_with(ww, text, "holder.c:3"), *fence = line_with(ww, text, "fence.c:4");
    workflow_says(task, "  task ");
    workflow_says(task, "spawned at holder.c:3");
    expect_age(task, 3500);
    workflow_says(fence, "  obligation ");
    workflow_says(fence, ", fence, reserved at fence.c:4, 3500 ms ago");
}

typedef struct waiter {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_region region;
    ebb_status got;
} waiter;

static ebb_status sleep_long(ebb_cx *cx, void *state) {
    waiter *w = state;
    return ebb_sleep(cx, &w->nap, 3600 * EBB_SECOND);
}

static ebb_status join_region(ebb_cx *cx, void *state) {
    waiter *w = state;
    EBB_BEGIN(w);
    (void)ebb_mask(cx);
    w->region = ebb_region_open(cx, NULL);
    (void)ebb_spawn_site(cx, w->region, stay, NULL, "inner.c:8");
    EBB_AWAIT(w, w->got, ebb_region_join(cx, w->region));
    EBB_END(w);
}

static void sleepers_and_joiners_and_what_is_masked_are_told_apart(void **state) {
    workflow_world *ww = *state;
    waiter *a = world_keep(ww->world, sizeof *a), *b = world_keep(ww->world, sizeof *b);
    ebb_workflow wf = open_patient(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    (void)ebb_spawn_site(ww->host, r, sleep_long, a, "sleeper.c:6");
    (void)ebb_spawn_site(ww->host, r, join_region, b, "joiner.c:7");
    (void)ebb_spawn_site(ww->host, r, stay, NULL, "parked.c:1");
    world_settle(ww->world);
    workflow_stop(ww, wf);
    const char *text = workflow_explained(ww, wf);
    workflow_says(line_with(ww, text, "sleeper.c:6"), "waits for ");
    workflow_says(line_with(ww, text, "joiner.c:7"), "masked");
    workflow_says(line_with(ww, text, "joiner.c:7"), "joins");
    (void)line_with(ww, text, "inner.c:8"); /* what is in regions below, too */
    workflow_says(line_with(ww, text, "parked.c:1"), ", parked");
    workflow_says(text, ", 4 in flight\n");
}

static void set_progress(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)cx;
    ebb_drain_progress(d, me->polls, 5);
}

static void handlers_are_named_with_their_progress_and_how_they_ended(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    drainer *slow = drainer_add(ww, wf, "revert participants", (drainer){.act = set_progress, .stays = true});
    (void)drainer_add(ww, wf, "release fences", (drainer){.returns = EBB_FAILED});
    workflow_stop(ww, wf);
    (void)ebb_task_wake(ww->host, slow->task);
    world_settle(ww->world);
    const char *text = workflow_explained(ww, wf);
    const char *line = line_with(ww, text, "revert participants");
    workflow_says(line, "  handler revert participants, added at tests/support/workflow_world.c:");
    workflow_says(line, ", 2 of 5 done");
    workflow_says(line_with(ww, text, "release fences"), "  handler release fences has ended: EBB_FAILED");
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
}

static void spawn_named(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    (void)ebb_spawn_site(cx, ebb_cx_region(cx), stay, me, "of-a-handler.c:3");
}

static void what_a_handler_has_spawned_is_named(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    (void)drainer_add(ww, wf, "spawns", (drainer){.act = spawn_named});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    workflow_says(line_with(ww, workflow_explained(ww, wf), "of-a-handler.c:3"), "  task ");
}

static void ignore_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    (void)arg;
}
static const ebb_operation stubborn = {"stubborn", ignore_cancel, NULL};

typedef struct asker {
    ebb_future *f;
    ebb_status got;
} asker;

static ebb_status ask(ebb_cx *cx, void *state) {
    asker *a = state;
    if (a->f == NULL) a->f = ebb_promise_new_site(cx, &stubborn, a, "operation.c:2");
    a->got = ebb_await(cx, a->f, NULL);
    return a->got;
}

static void an_operation_that_nobody_awaits_any_more_is_named(void **state) {
    workflow_world *ww = *state;
    asker a = {.f = NULL};
    ebb_workflow wf = open_patient(ww);
    (void)ebb_spawn_site(ww->host, ebb_workflow_region(ww->host, wf), ask, &a, "asker.c:1");
    world_settle(ww->world);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(a.got, EBB_CANCELLED); /* the reader is gone, the producer still drains */
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    workflow_says(line_with(ww, workflow_explained(ww, wf), "operation.c:2"), "stubborn");
    (void)ebb_promise_reject(a.f, EBB_CANCELLED);
}

static void the_handler_of_a_workflow_below_is_named_to_who_asks_above(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    ebb_workflow child = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel,
                                                               .no_force = true,
                                                               .parent = ebb_workflow_region(ww->host, wf)});
    (void)drainer_add(ww, child, "of the child", (drainer){.stays = true});
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2500));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    (void)line_with(ww, workflow_explained(ww, child), "of the child");
    (void)line_with(ww, workflow_explained(ww, wf), "of the child");
}

static void a_finalizer_that_holds_it_up_is_named(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer_site(ww->host, r, stay, NULL, "finalizer.c:5"), EBB_OK);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1500));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    (void)line_with(ww, workflow_explained(ww, wf), "finalizer.c:5");
}

static void one_that_has_ended_says_so_and_names_nobody(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_patient(ww);
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_OK);
    world_pass(ww->world, MS(1000));
    assert_string_equal(workflow_explained(ww, wf),
                        "publish_abort#1 v42 is LEAK_DETECTED, 0 of 2000 ms, USER: enough, 0 in flight\n");
}

static void long_names_do_not_run_lines_together(void **state) {
    static char name[600], site[600];
    workflow_world *ww = *state;
    memset(name, 'n', sizeof name - 1);
    memset(site, 's', sizeof site - 1);
    ebb_workflow wf = workflow_new(
        ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = name, .no_force = true});
    ebb_region r = ebb_workflow_region(ww->host, wf);
    (void)ebb_spawn_site(ww->host, r, stay, NULL, site);
    (void)ebb_region_reserve_site(ww->host, r, EBB_OBLIGATION_FENCE, NULL, NULL, site);
    drainer *d = world_keep(ww->world, sizeof *d);
    *d = (drainer){.world = ww->world, .stays = true};
    assert_int_equal(ebb_workflow_on_drain_site(ww->host, wf, site, drainer_run, d, site), EBB_OK);
    workflow_stop(ww, wf);
    const char *text = workflow_explained(ww, wf);
    workflow_says(text, "... is DRAINING"); /* the name is cut at EBB_MESSAGE_MAX */
    uint32_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) lines++;
    assert_int_equal(lines, 4); /* its own, a task, an obligation, a handler */
    char closed[32];
    assert_int_equal(ebb_region_closed_text(ww->host, r, closed, sizeof closed), 31);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(the_first_line_says_its_state_its_time_its_reason_and_what_is_in_flight),
        IN_WORKFLOWS(a_task_is_named_with_its_place_and_age_and_its_obligations_with_theirs),
        IN_WORKFLOWS(sleepers_and_joiners_and_what_is_masked_are_told_apart),
        IN_WORKFLOWS(handlers_are_named_with_their_progress_and_how_they_ended),
        IN_WORKFLOWS(what_a_handler_has_spawned_is_named),
        IN_WORKFLOWS(an_operation_that_nobody_awaits_any_more_is_named),
        IN_WORKFLOWS(the_handler_of_a_workflow_below_is_named_to_who_asks_above),
        IN_WORKFLOWS(a_finalizer_that_holds_it_up_is_named),
        IN_WORKFLOWS(one_that_has_ended_says_so_and_names_nobody),
        IN_WORKFLOWS(long_names_do_not_run_lines_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
