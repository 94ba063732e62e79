/* A log that can't be written: the workflow goes on, its report says so, and the next line has what was
 * lost. */
#include "tests/support/workflow_world.h"

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
}

static void a_workflow_goes_on_without_its_log_and_says_so(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    drainer *h = drainer_add(ww, wf, "h", (drainer){.returns = EBB_OK});
    ww->sink_fails = EBB_ERR_LIMIT;
    ww->broken = true;
    workflow_stop(ww, wf);
    assert_int_equal(h->polls, 1);
    assert_int_equal(workflow_report(ww, wf).audit, EBB_ERR_LIMIT);
    ww->sink_fails = EBB_ERR_CLOSED;
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "x"), EBB_ERR_CANCEL_ALREADY_FINAL);
    ww->sink_fails = EBB_OK;
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
    assert_int_equal(report.audit, EBB_ERR_LIMIT); /* the first */
    assert_string_equal(workflow_story(ww, 1), "opened");
}

static void the_next_line_says_how_many_were_lost_and_the_chain_goes_on(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    ww->broken = true;
    ww->sink_fails = EBB_ERR_LIMIT;
    workflow_stop(ww, wf); /* requested, drain_started */
    ww->sink_fails = EBB_OK;
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "again"), EBB_OK);
    const char *line = workflow_line(ww, "absorbed", 0);
    workflow_says(line, "\"lost\":2,\"prev\":\"");
    workflow_says(line, "\"seq\":3,"); /* after started and opened */
    const char *before = workflow_line(ww, "opened", 0);
    const char *hash = strstr(before, "\"hash\":\"") + 8;
    char link[80];
    snprintf(link, sizeof link, "\"prev\":\"%.64s\"", hash);
    workflow_says(line, link);
    p->returns = EBB_OK;
    (void)ebb_task_wake(ww->host, p->id);
    world_settle(ww->world);
    assert_null(strstr(workflow_line(ww, "drain_completed", 0), "\"lost\""));
    assert_int_equal(workflow_report(ww, wf).audit, EBB_ERR_LIMIT);
}

static void a_log_that_lost_lines_does_not_verify_as_complete(void **state) {
    workflow_world *ww = *state;
    ebb_audit_verdict verdict;
    ebb_workflow wf = open_plain(ww);
    ww->broken = true;
    ww->sink_fails = EBB_ERR_LIMIT;
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    ww->sink_fails = EBB_OK;
    world_settle(ww->world);
    assert_int_equal(ebb_audit_verify(ebb_libc_allocator(), ww->log, ww->log_n, &verdict), EBB_ERR_ORACLE);
    assert_string_equal(verdict.invariant, "audit-complete");
}

static void only_the_workflows_that_lost_a_line_report_it(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww), other = open_plain(ww);
    ww->broken = true;
    ww->sink_fails = EBB_ERR_LIMIT;
    workflow_stop(ww, wf);
    ww->sink_fails = EBB_OK;
    workflow_stop(ww, other);
    assert_int_equal(workflow_report(ww, wf).audit, EBB_ERR_LIMIT);
    assert_int_equal(workflow_report(ww, other).audit, EBB_OK);
}

static ebb_status refuse(void *ctx, const char *line, size_t n) {
    uint32_t *refused = ctx;
    (void)line;
    (void)n;
    ++*refused;
    return EBB_ERR_LIMIT;
}

static void a_log_whose_first_line_fails_is_not_opened(void **state) {
    uint32_t refused = 0;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_allocator a = ebb_failing_allocator(&memory);
    ebb_audit *audit = NULL;
    (void)state;
    assert_int_equal(ebb_audit_new(a, NULL, &audit), EBB_ERR_INVALID);
    assert_int_equal(ebb_audit_new(a, &(ebb_audit_sink){NULL, NULL, NULL}, &audit), EBB_ERR_INVALID);
    assert_int_equal(ebb_audit_new(a, &(ebb_audit_sink){refuse, NULL, &refused}, &audit), EBB_ERR_LIMIT);
    assert_int_equal(refused, 1);
    assert_null(audit);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(a_workflow_goes_on_without_its_log_and_says_so),
        IN_WORKFLOWS(the_next_line_says_how_many_were_lost_and_the_chain_goes_on),
        IN_WORKFLOWS(a_log_that_lost_lines_does_not_verify_as_complete),
        IN_WORKFLOWS(only_the_workflows_that_lost_a_line_report_it),
        cmocka_unit_test(a_log_whose_first_line_fails_is_not_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
