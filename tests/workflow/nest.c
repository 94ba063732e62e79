/* Stopping a nest of n workflows costs n times what stopping one does, not n squared: counted in regions that
 * somebody had to look at. */
#include "tests/support/workflow_world.h"

#include "kernel/rt.h"

enum { FEW = 100, MANY = 4 * FEW };

typedef struct way {
    const char *name;
    puppet work;        /* one in each */
    uint64_t cancel_at; /* of each; 0: 60 % */
    ebb_status (*stop)(ebb_cx *cx, ebb_workflow outermost, ebb_region around);
    bool again; /* asked again, with a stronger reason */
} way;

static ebb_status asks(ebb_cx *cx, ebb_workflow outermost, ebb_region around) {
    (void)around;
    return ebb_workflow_request(cx, outermost, EBB_CANCEL_USER, "enough");
}

static ebb_status cancels(ebb_cx *cx, ebb_workflow outermost, ebb_region around) {
    (void)outermost;
    ebb_region_cancel(cx, around, EBB_CANCEL_TIMEOUT, "late");
    return EBB_OK;
}

static ebb_status forces(ebb_cx *cx, ebb_workflow outermost, ebb_region around) {
    (void)outermost;
    ebb_region_force(cx, around);
    return EBB_OK;
}

static void stop_at_once(ebb_cx *cx, puppet *p) {
    if (ebb_stopping(cx)) p->returns = EBB_OK;
}

static bool asked_again;

static void return_at_last(ebb_cx *cx, puppet *p) {
    (void)cx;
    if (asked_again) p->returns = EBB_OK;
}

/* What a nest of n costs from the request to its end. */
static uint64_t cost_of(workflow_world *ww, const way *how, uint32_t n) {
    ebb_workflow first = {0}, wf = {0};
    ebb_region around = ebb_region_open(ww->host, NULL), in = around;
    for (uint32_t i = 0; i < n; i++) {
        wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort,
                                                   .parent = in,
                                                   .policy = EBB_FAIL_COLLECT,
                                                   .cancel_at = how->cancel_at});
        if (i == 0) first = wf;
        in = ebb_workflow_region(ww->host, wf);
        (void)puppet_start(ww->world, in, how->work);
    }
    world_settle(ww->world);
    uint64_t before = ww->rt->visits;
    assert_int_equal(how->stop(ww->host, first, around), EBB_OK);
    world_settle(ww->world);
    if (how->again) {
        world_pass(ww->world, MS(1900)); /* what ignores it was cancelled */
        asked_again = true;
        assert_int_equal(ebb_workflow_request(ww->host, first, EBB_CANCEL_SHUTDOWN, "now"), EBB_OK);
    }
    world_pass(ww->world, MS(2300));
    uint64_t cost = ww->rt->visits - before;
    asked_again = false;
    ebb_workflow_report report;
    (void)ebb_workflow_join(ww->host, first, &report);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.leaks, 0);
    return cost;
}

static void is_linear(workflow_world *ww, const way *how) {
    uint64_t few = cost_of(ww, how, FEW), many = cost_of(ww, how, MANY);
    if (many > few * MANY / FEW * 5 / 4 || few > 100 * FEW) {
        fail_msg("%s: %u cost %u, %u cost %u", how->name, (unsigned)FEW, (unsigned)few, (unsigned)MANY,
                 (unsigned)many);
    }
}

static void work_that_ends_when_it_is_asked(void **state) {
    is_linear(*state, &(way){.name = "ends",
                             .work = {.returns = EBB_PENDING, .act = stop_at_once},
                             .cancel_at = 0,
                             .stop = asks});
}

static void work_that_ends_at_cancel_at(void **state) {
    is_linear(*state, &(way){.name = "cancelled", .work = HEEDING, .cancel_at = 0, .stop = asks});
}

static void work_that_is_forced_at_the_end_of_the_budget(void **state) {
    is_linear(*state, &(way){.name = "forced", .work = HEEDING, .cancel_at = MS(2000), .stop = asks});
}

static void a_nest_that_is_asked_again_with_a_stronger_reason(void **state) {
    is_linear(*state, &(way){.name = "asked again",
                             .work = {.returns = EBB_PENDING, .act = return_at_last},
                             .cancel_at = 0,
                             .stop = asks,
                             .again = true});
}

static void a_nest_in_a_region_that_is_cancelled(void **state) {
    is_linear(*state,
              &(way){.name = "cancelled from around", .work = HEEDING, .cancel_at = 0, .stop = cancels});
}

static void a_nest_in_a_region_that_is_forced(void **state) {
    is_linear(*state, &(way){.name = "forced from around", .work = HEEDING, .cancel_at = 0, .stop = forces});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(work_that_ends_when_it_is_asked),
        IN_WORKFLOWS(work_that_ends_at_cancel_at),
        IN_WORKFLOWS(work_that_is_forced_at_the_end_of_the_budget),
        IN_WORKFLOWS(a_nest_that_is_asked_again_with_a_stronger_reason),
        IN_WORKFLOWS(a_nest_in_a_region_that_is_cancelled),
        IN_WORKFLOWS(a_nest_in_a_region_that_is_forced),
    };
    return cmocka_run_group_tests_name("workflow_nest", tests, NULL, NULL);
}
