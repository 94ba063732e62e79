/* Where a workflow meets a limit: finalizers that never end, clocks near their end, no memory, names that
 * are missing, and very many of them. */
#include "tests/support/workflow_world.h"

#include <stdlib.h>
#include <time.h>

static ebb_status stay(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

/* A world with other options of its runtime. */
static int up_with(void **state, const ebb_runtime_opts *opts) {
    if (workflow_world_up(state) != 0) return -1;
    workflow_world *ww = *state;
    world_end(ww->world);
    ww->world = world_new(opts, true);
    ww->rt = ww->world->rt;
    ww->host = ww->world->host;
    return 0;
}

/* ---- finalizers that never end ----------------------------------------------------------------- */

/* Its work has ended, somebody waits, and a finalizer is all that is left. */
static ebb_workflow completing(workflow_world *ww, ebb_workflow_opts opts, ebb_poll_fn last, void *arg) {
    opts.type = &ebb_workflow_publish_abort;
    ebb_workflow wf = workflow_new(ww, &opts);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    assert_int_equal(ebb_region_defer_site(ww->host, r, last, arg, "last.c:1"), EBB_OK);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_pass(ww->world, MS(10000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    return wf;
}

static void a_request_bounds_the_finalizers_of_one_whose_work_has_ended(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = completing(ww, (ebb_workflow_opts){0}, stay, NULL);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "late"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_pass(ww->world, MS(2001));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_int_equal(report.leaks, 1);
    assert_string_equal(workflow_story(ww, 1), "opened refused left completed");
    workflow_says(workflow_line(ww, "left", 0), "last.c:1");
    workflow_says(workflow_line(ww, "completed", 0), "\"left\":1");
}

typedef struct sleeper {
    ebb_sleeper nap;
    ebb_status slept;
} sleeper;

static ebb_status sleep_long(ebb_cx *cx, void *arg) {
    sleeper *s = arg;
    s->slept = ebb_sleep(cx, &s->nap, MS(11000));
    return s->slept;
}

static void such_finalizers_that_end_in_time_leave_nothing(void **state) {
    workflow_world *ww = *state;
    sleeper s = {.slept = EBB_FAILED};
    ebb_workflow wf = completing(ww, (ebb_workflow_opts){0}, sleep_long, &s);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "late"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    world_pass(ww->world, MS(1000));
    assert_int_equal(s.slept, EBB_OK); /* all of it */
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void a_patient_one_bounds_them_too(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = completing(ww, (ebb_workflow_opts){.no_force = true}, stay, NULL);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "late"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    world_pass(ww->world, MS(10000));
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
}

/* However much time somebody else has given its region. */
static void the_budget_bounds_finalizers_also_after_a_cancel_from_outside(void **state) {
    static const char *const given[] = {"no deadline", "a deadline in an hour"};
    workflow_world *ww = *state;
    for (int i = 0; i < 2; i++) {
        uint64_t deadline = i == 0 ? EBB_FOREVER : world_now(ww->world) + 3600 * EBB_SECOND;
        ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
        ebb_region r = ebb_workflow_region(ww->host, wf);
        assert_int_equal(ebb_region_defer(ww->host, r, stay, NULL), EBB_OK);
        assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
        ebb_region_cancel_within(ww->host, r, EBB_CANCEL_SHUTDOWN, "later",
                                 (ebb_budget){deadline, EBB_POLLS_UNBOUNDED, 0});
        world_pass(ww->world, MS(10000));
        if (workflow_state(ww, wf) != EBB_WORKFLOW_LEAK_DETECTED) fail_msg("with %s it never ends", given[i]);
        assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
    }
}

/* ---- the root ---------------------------------------------------------------------------------- */

/* With a type that goes with the workflow: what still looks at it then looks at freed memory. */
static void a_root_whose_workflow_has_completed_and_was_joined_knows_of_none(void **state) {
    workflow_world *ww = *state;
    char text[160];
    ebb_workflow_type *type = malloc(sizeof *type);
    assert_non_null(type);
    *type = ebb_workflow_lifecycle_shutdown;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = type, .root = true});
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    free(type);
    assert_int_equal(ebb_workflow_of(ww->host).id, 0);
    assert_true(ebb_region_closed_text(ww->host, ww->world->root, text, sizeof text) > 0);
    assert_string_equal(text, "the region is Closed: no new work");
}

/* ---- the end of time --------------------------------------------------------------------------- */

#define LATE (EBB_FOREVER - (UINT64_C(1) << 61)) /* the longest budgets do not fit behind it */

static int up_late(void **state) {
    return up_with(state, &(ebb_runtime_opts){.now = LATE});
}

static void a_budget_beyond_the_end_of_time_is_cut_to_fit(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_opts o = {.type = &ebb_workflow_publish_abort, .budget = EBB_FOREVER / 4};
    ebb_workflow wf = workflow_new(ww, &o);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), HEEDING);
    workflow_stop(ww, wf);
    world_pass(ww->world, 3600 * EBB_SECOND);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    assert_int_equal(workflow_report(ww, wf).budget, (UINT64_C(1) << 61) - 1);
    assert_int_equal(phase_of(ww->world, p->id), EBB_TASK_RUNNING);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, EBB_SECOND), EBB_ERR_LIMIT);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, EBB_FOREVER), EBB_ERR_LIMIT);
    world_pass(ww->world, (UINT64_C(1) << 61) / 5 * 3); /* cancel_at */
    assert_int_equal(p->seen, EBB_CANCELLED);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void a_short_budget_near_the_end_of_time_is_what_it_is(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, EBB_SECOND), EBB_OK);
    world_pass(ww->world, MS(2999));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(500));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
}

/* ---- what is missing --------------------------------------------------------------------------- */

static void give_half_of_the_evidence(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)cx;
    (void)me;
    ebb_drain_evidence(d, NULL, "value");
    ebb_drain_evidence(d, "key", NULL);
    ebb_drain_evidence(d, NULL, NULL);
}

/* The log is verified when the world ends. */
static void evidence_without_a_key_or_a_value_is_an_empty_text(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    (void)drainer_add(ww, wf, "half", (drainer){.act = give_half_of_the_evidence});
    workflow_stop(ww, wf);
    workflow_says(workflow_line(ww, "evidence", 0), "\"key\":\"\",\"value\":\"value\"");
    workflow_says(workflow_line(ww, "evidence", 1), "\"key\":\"key\",\"value\":\"\"");
    workflow_says(workflow_line(ww, "evidence", 2), "\"key\":\"\",\"value\":\"\"");
}

/* ---- handlers that can't be added -------------------------------------------------------------- */

static ebb_status add(workflow_world *ww, ebb_workflow wf, drainer *d, bool fiber) {
    return fiber ? ebb_workflow_on_drain_fiber(ww->host, wf, "late", drainer_run, d)
                 : ebb_workflow_on_drain(ww->host, wf, "late", drainer_run, d);
}

/* It drains all the same, and says what was missing. */
static void expect_failure(workflow_world *ww, ebb_workflow wf, ebb_status st) {
    ebb_workflow_report report;
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), st);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.status, st);
}

static void a_handler_that_found_no_memory_is_the_failure_of_the_workflow(void **state) {
    workflow_world *ww = *state;
    ebb_failing *memory = &ww->world->memory;
    for (int fiber = 0; fiber < 2; fiber++) {
        uint64_t n = 1;
        for (;; n++) { /* its record first, then its task and what that needs */
            drainer d = {.world = ww->world};
            ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
            memory->fail_at = memory->calls + n;
            ebb_status st = add(ww, wf, &d, fiber);
            memory->fail_at = 0;
            expect_failure(ww, wf, st);
            assert_int_equal(d.polls, st == EBB_OK);
            if (st == EBB_OK) break;
            assert_int_equal(st, EBB_ERR_NOMEM);
        }
        assert_true(n > 1);
    }
}

static int up_small(void **state) {
    return up_with(state, &(ebb_runtime_opts){.max_tasks = 2});
}

static void a_handler_over_the_limit_is_the_failure_of_the_workflow(void **state) {
    workflow_world *ww = *state;
    for (int fiber = 0; fiber < 2; fiber++) {
        ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
        drainer *first = drainer_add(ww, wf, "first", (drainer){.says = "drained"});
        drainer second = {.world = ww->world};
        assert_int_equal(add(ww, wf, &second, fiber), EBB_ERR_LIMIT);
        expect_failure(ww, wf, EBB_ERR_LIMIT);
        assert_int_equal(first->polls, 1);
        assert_int_equal(second.polls, 0);
    }
}

/* ---- very many --------------------------------------------------------------------------------- */

/* The processor's time, in ns: what others do on this machine does not count. */
static uint64_t cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t time_to_open(uint32_t n) {
    world *w = world_new(NULL, false);
    uint64_t began = cpu_time();
    for (uint32_t i = 0; i < n; i++) {
        ebb_workflow wf =
            ebb_workflow_open(w->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
        assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    }
    uint64_t took = cpu_time() - began;
    world_end(w);
    return took;
}

static uint64_t best_time_to_open(uint32_t n) {
    uint64_t best = time_to_open(n);
    for (int i = 0; i < 2; i++) {
        uint64_t again = time_to_open(n);
        if (again < best) best = again;
    }
    return best;
}

/* Four times as many take four times as long, and not sixteen times. */
static void opening_one_costs_the_same_however_many_there_are(void **state) {
    (void)state;
    uint64_t few = best_time_to_open(5000), many = best_time_to_open(20000);
    if (many > 10 * few) {
        fail_msg("5,000 were opened in %llu us, 20,000 in %llu us", (unsigned long long)few / 1000,
                 (unsigned long long)many / 1000);
    }
}

/* Opens one in a region of its own, stops it, and closes that; nobody joins it. */
static void come_and_go(workflow_world *ww) {
    ebb_region around = open_region(ww->world, ww->world->root);
    ebb_workflow wf = ebb_workflow_open(
        ww->host, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = around});
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(ebb_region_join(ww->host, around), EBB_OK);
}

static void those_that_nobody_joins_do_not_pile_up(void **state) {
    workflow_world *ww = *state;
    for (int i = 0; i < 100; i++) come_and_go(ww);
    int64_t blocks = ww->world->memory.live, bytes = ww->world->memory.live_bytes;
    for (int i = 0; i < 2000; i++) come_and_go(ww);
    assert_int_equal(ww->world->memory.live, blocks);
    assert_int_equal(ww->world->memory.live_bytes, bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(a_request_bounds_the_finalizers_of_one_whose_work_has_ended),
        IN_WORKFLOWS(such_finalizers_that_end_in_time_leave_nothing),
        IN_WORKFLOWS(a_patient_one_bounds_them_too),
        IN_WORKFLOWS(the_budget_bounds_finalizers_also_after_a_cancel_from_outside),
        IN_WORKFLOWS(a_root_whose_workflow_has_completed_and_was_joined_knows_of_none),
        cmocka_unit_test_setup_teardown(a_budget_beyond_the_end_of_time_is_cut_to_fit, up_late,
                                        workflow_world_down),
        cmocka_unit_test_setup_teardown(a_short_budget_near_the_end_of_time_is_what_it_is, up_late,
                                        workflow_world_down),
        IN_WORKFLOWS(evidence_without_a_key_or_a_value_is_an_empty_text),
        IN_WORKFLOWS(a_handler_that_found_no_memory_is_the_failure_of_the_workflow),
        cmocka_unit_test_setup_teardown(a_handler_over_the_limit_is_the_failure_of_the_workflow, up_small,
                                        workflow_world_down),
        cmocka_unit_test(opening_one_costs_the_same_however_many_there_are),
        IN_WORKFLOWS(those_that_nobody_joins_do_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
