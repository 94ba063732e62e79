/* What an audit log proves: logs of real workflows verify, and every way to doctor one is refused at the
 * line that is wrong, with the invariant that it breaks. Most logs are sealed again after they were
 * doctored, so that it is the protocol's rule that refuses them and not the chain.
 *
 * `workflow.audit --log NAME` prints the log of a scenario, for tests of the command. */
#include <inttypes.h>
#include <unistd.h>

#include "tests/workflow/audit_doctor.h"
#include "tests/workflow/audit_scenarios.h"

/* ---- doctored logs -------------------------------------------------------------------------------- */

enum { STEPS = 6 };

typedef struct doctored {
    const char *name;
    void (*run)(workflow_world *ww);
    bool raw; /* not sealed again */
    step steps[STEPS];
    /* Where it is refused, and how. event NULL: it is not. */
    const char *event;
    uint32_t nth;
    const char *invariant, *text;
} doctored;

#define EDIT(event, nth, old, new)                                                                           \
    { EDITED, event, nth, old, new }
#define DROP(event, nth)                                                                                     \
    { DROPPED, event, nth, NULL, NULL }
#define SWAP_WITH_NEXT(event, nth)                                                                           \
    { SWAPPED, event, nth, NULL, NULL }
#define DOUBLE(event, nth, old, new)                                                                         \
    { DOUBLED, event, nth, old, new }
#define COPY_TO_END(event, nth, old, new)                                                                    \
    { COPIED, event, nth, old, new }
#define AT(event, nth) event, nth
#define SEALED(name, scenario, where, invariant, text, ...)                                                  \
    { #name, scenario, false, {__VA_ARGS__ }, where, invariant, text }
#define FINE(name, scenario, ...)                                                                            \
    { #name, scenario, false, {__VA_ARGS__ }, NULL, 0, NULL, NULL }
#define RAW(name, scenario, where, invariant, text, ...)                                                     \
    { #name, scenario, true, {__VA_ARGS__ }, where, invariant, text }

/* What happened, as the next process would find it and go on with it. */
static void restart(workflow_world *ww, char **log) {
    char path[] = "/tmp/ebb-audit-XXXXXX";
    int fd = mkstemp(path);
    ebb_audit *audit;
    assert_true(fd >= 0 && write(fd, ww->log, ww->log_n) == (ssize_t)ww->log_n);
    assert_int_equal(ebb_audit_open(ebb_libc_allocator(), path, &audit), EBB_OK);
    ebb_audit_close(audit);
    *log = calloc(1, LINES * ROOM);
    assert_true(*log != NULL && pread(fd, *log, LINES * ROOM - 1, 0) > (ssize_t)ww->log_n);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
}

static ebb_status verify(const char *log, size_t n, ebb_audit_verdict *v) {
    return ebb_audit_verify(ebb_libc_allocator(), log, n, v);
}

/* The log of a scenario; free it. One that is not finished is found by the next process. */
static char *log_of(void (*run)(workflow_world *ww), void **state) {
    workflow_world *ww = *state;
    char *log;
    run(ww);
    if (run == unfinished) restart(ww, &log);
    else log = strdup(ww->log);
    assert_non_null(log);
    return log;
}

/* The scenario's log, doctored; free it. Sealing alone changes nothing, and it verifies before. */
static char *doctor(const doctored *d, void **world_state, lines *l) {
    ebb_audit_verdict v;
    char *log = log_of(d->run, world_state);
    split(l, log);
    seal(l);
    char *again = join(l);
    assert_string_equal(log, again);
    assert_int_equal(verify(log, strlen(log), &v), EBB_OK);
    free(again);
    free(log);
    for (size_t i = 0; i < STEPS && d->steps[i].how != AS_IT_IS; i++) apply(l, &d->steps[i]);
    if (!d->raw) seal(l);
    return join(l);
}

static void is_as_expected(const doctored *d, const lines *l, const char *log) {
    ebb_audit_verdict v;
    ebb_status st = verify(log, strlen(log), &v);
    if (d->event == NULL) {
        if (st != EBB_OK)
            fail_msg("refused at line %" PRIu64 ": %s: %s\n%s", v.line, v.invariant, v.text, log);
        return;
    }
    if (st != EBB_ERR_ORACLE) fail_msg("not refused:\n%s", log);
    size_t line = find(l, d->event, d->nth) + 1;
    if (v.line == line && strcmp(v.invariant, d->invariant) == 0 && strstr(v.text, d->text) != NULL) return;
    fail_msg("expected line %zu: %s: %s\nfound line %" PRIu64 ": %s: %s\n%s", line, d->invariant, d->text,
             v.line, v.invariant, v.text, log);
}

static void gets_its_verdict(void **state) {
    const doctored *d = *state;
    void *up;
    lines *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_int_equal(workflow_world_up(&up), 0);
    char *log = doctor(d, &up, l);
    is_as_expected(d, l, log);
    free(log);
    free(l);
    assert_int_equal(workflow_world_down(&up), 0);
}

#define THREE_PHASE    "three-phase"
#define NO_NEW_WORK    "no-new-work"
#define DRAIN_BOUNDED  "drain-bounded"
#define FINALIZE_CLEAN "finalize-clean"
#define IDEMPOTENT     "idempotent"
#define AUDIT_COMPLETE "audit-complete"

static const doctored logs[] = {
    /* The bytes: not sealed again. */
    RAW(an_edited_line, clean, AT("requested", 0), AUDIT_COMPLETE, "its hash",
        EDIT("requested", 0, "enough", "enouhg")),
    RAW(an_edited_last_line, clean, AT("finalized", 0), AUDIT_COMPLETE, "its hash",
        EDIT("finalized", 0, "\"left\":0", "\"left\":1")),
    RAW(an_edited_first_line, clean, AT("started", 0), AUDIT_COMPLETE, "its hash",
        EDIT("started", 0, "v2", "v9")),
    RAW(an_edited_hash, clean, AT("requested", 0), AUDIT_COMPLETE, "hex digits",
        EDIT("requested", 0, "\"hash\":\"", "\"hash\":\"x")),
    RAW(a_removed_line, clean, AT("handler_done", 0), AUDIT_COMPLETE, "\"seq\" should be 5, found 6",
        DROP("evidence", 0)),
    RAW(a_removed_first_line, clean, AT("opened", 0), AUDIT_COMPLETE, "\"seq\" should be 1, found 2",
        DROP("started", 0)),
    RAW(swapped_lines, clean, AT("handler_done", 0), AUDIT_COMPLETE, "\"seq\" should be 5, found 6",
        SWAP_WITH_NEXT("evidence", 0)),
    RAW(a_doubled_line, clean, AT("evidence", 1), AUDIT_COMPLETE, "\"seq\" should be 6, found 5",
        DOUBLE("evidence", 0, NULL, NULL)),
    RAW(an_inserted_line, clean, AT("requested", 1), AUDIT_COMPLETE, "\"seq\" should be 10, found 3",
        COPY_TO_END("requested", 0, NULL, NULL)),
    RAW(a_line_cut_in_the_middle, clean, AT("requested", 0), AUDIT_COMPLETE, "hex digits",
        EDIT("requested", 0, ",\"parent\":0", "\n,\"parent\":0")),
    RAW(an_empty_line, clean, AT("requested", 0), AUDIT_COMPLETE, "of 0 bytes",
        EDIT("requested", 0, "{\"seq\"", "\n{\"seq\"")),

    /* The form of a line. */
    SEALED(a_missing_field, clean, AT("requested", 0), AUDIT_COMPLETE, "\"parent\" is missing",
           EDIT("requested", 0, ",\"parent\":0", "")),
    SEALED(an_unknown_field, clean, AT("requested", 0), AUDIT_COMPLETE, "has no \"mood\"",
           EDIT("requested", 0, ",\"parent\":0", ",\"parent\":0,\"mood\":1")),
    SEALED(a_field_twice, clean, AT("requested", 0), AUDIT_COMPLETE, "duplicate",
           EDIT("requested", 0, ",\"parent\":0", ",\"parent\":0,\"parent\":0")),
    SEALED(a_text_for_a_number, clean, AT("requested", 0), AUDIT_COMPLETE, "\"parent\" is not",
           EDIT("requested", 0, "\"parent\":0", "\"parent\":\"0\"")),
    SEALED(a_number_below_zero, clean, AT("requested", 0), AUDIT_COMPLETE, "\"in_flight\" is not",
           EDIT("requested", 0, "\"in_flight\":1", "\"in_flight\":-1")),
    SEALED(a_time_that_is_no_time, clean, AT("requested", 0), AUDIT_COMPLETE, "\"elapsed_ms\" is not",
           EDIT("requested", 0, "\"elapsed_ms\":0.000", "\"elapsed_ms\":0")),
    SEALED(a_time_below_zero, clean, AT("drain_completed", 0), AUDIT_COMPLETE, "\"elapsed_ms\" is not",
           EDIT("drain_completed", 0, "\"elapsed_ms\":10", "\"elapsed_ms\":-10")),
    SEALED(a_date_that_is_none, clean, AT("requested", 0), AUDIT_COMPLETE, "\"at\" is not",
           EDIT("requested", 0, "\"at\":\"1970", "\"at\":\"197o")),
    SEALED(an_unknown_event, clean, AT("finalising", 0), AUDIT_COMPLETE, "\"event\" is not",
           EDIT("finalizing", 0, "\"finalizing\"", "\"finalising\"")),
    SEALED(an_unknown_state, clean, AT("finalizing", 0), AUDIT_COMPLETE, "\"to\" is not",
           EDIT("finalizing", 0, "\"FINALIZING\"", "\"FINALISING\"")),
    SEALED(an_unknown_kind_of_reason, clean, AT("requested", 0), AUDIT_COMPLETE, "\"reason\" is not",
           EDIT("requested", 0, "\"USER\"", "\"BOSS\"")),
    SEALED(an_impossible_severity, clean, AT("requested", 0), AUDIT_COMPLETE, "\"reason\" is not",
           EDIT("requested", 0, "\"severity\":1", "\"severity\":4")),
    SEALED(evidence_that_is_no_object, clean, AT("requested", 0), AUDIT_COMPLETE, "\"evidence\" is not",
           EDIT("requested", 0, "\"evidence\":{}", "\"evidence\":[]")),
    SEALED(evidence_that_is_nested, clean, AT("requested", 0), AUDIT_COMPLETE, "\"evidence\" is not",
           EDIT("requested", 0, "\"evidence\":{}", "\"evidence\":{\"a\":{}}")),
    SEALED(no_json, clean, AT("requested", 0), AUDIT_COMPLETE, "JSON",
           EDIT("requested", 0, "\"parent\":0", "\"parent\":,")),
    SEALED(another_code, clean, AT("finalized", 0), AUDIT_COMPLETE,
           "the code of finalized is CAN-005, found CAN-006", EDIT("finalized", 0, "CAN-005", "CAN-006")),
    SEALED(no_code, clean, AT("drain_started", 0), AUDIT_COMPLETE, "is CAN-002, found null",
           EDIT("drain_started", 0, "\"CAN-002\"", "null")),
    SEALED(a_code_where_there_is_none, clean, AT("finalizing", 0), AUDIT_COMPLETE, "is null, found CAN-005",
           EDIT("finalizing", 0, "\"code\":null", "\"code\":\"CAN-005\"")),
    SEALED(a_refusal_with_another_code, refused, AT("refused", 0), AUDIT_COMPLETE, "found CAN-001",
           EDIT("refused", 0, "ERR_CANCEL_INVALID_PHASE", "CAN-001")),
    SEALED(missing_evidence, forced, AT("drain_forced", 0), AUDIT_COMPLETE, "a text \"by\", found none",
           EDIT("drain_forced", 0, "\"by\":\"the operator\"", "")),
    SEALED(evidence_of_another_kind, clean, AT("finalized", 0), AUDIT_COMPLETE,
           "a number \"left\", found another", EDIT("finalized", 0, "\"left\":0", "\"left\":\"0\"")),
    SEALED(a_lost_line, clean, AT("finalizing", 0), AUDIT_COMPLETE, "2 could not be written",
           EDIT("finalizing", 0, "\"evidence\":{}", "\"evidence\":{},\"lost\":2")),
    SEALED(an_unknown_version, clean, AT("started", 0), AUDIT_COMPLETE,
           "expected a log of version ebb-audit-v2, found ebb-audit-v9",
           EDIT("started", 0, "ebb-audit-v2", "ebb-audit-v9")),
    SEALED(a_log_without_a_start, clean, AT("opened", 0), AUDIT_COMPLETE,
           "expected started as the first line, found opened", DROP("started", 0)),
    SEALED(a_workflow_that_was_never_opened, clean, AT("requested", 0), AUDIT_COMPLETE, "was never opened",
           DROP("opened", 0)),
    SEALED(one_opened_twice, clean, AT("opened", 1), AUDIT_COMPLETE, "expected id 2",
           DOUBLE("opened", 0, NULL, NULL)),
    SEALED(a_number_left_out, nested, AT("opened", 1), AUDIT_COMPLETE, "expected id 2",
           EDIT("opened", 1, "\"id\":2", "\"id\":3")),
    SEALED(the_number_0, clean, AT("requested", 0), AUDIT_COMPLETE, "\"id\" is not a number from 1 on",
           EDIT("requested", 0, "\"id\":1", "\"id\":0")),
    SEALED(another_parent_after_the_end, nested, AT("refused", 0), AUDIT_COMPLETE,
           "its parent was 1, found 2",
           COPY_TO_END("finalized", 0, "\"finalized\",\"code\":\"CAN-005\"",
                       "\"refused\",\"code\":\"ERR_CANCEL_ALREADY_FINAL\""),
           EDIT("refused", 0, "\"parent\":1", "\"parent\":2"),
           EDIT("refused", 0, "\"from\":\"FINALIZING\"", "\"from\":\"FINALIZED\""),
           EDIT("refused", 0, "\"evidence\":{", "\"evidence\":{\"trigger\":\"request\",")),
    SEALED(another_name, clean, AT("finalizing", 0), AUDIT_COMPLETE, "another workflow or name",
           EDIT("finalizing", 0, "v42", "v43")),
    SEALED(another_type, clean, AT("finalizing", 0), AUDIT_COMPLETE, "opened as a rollout_cancel",
           EDIT("finalizing", 0, "rollout_cancel", "publish_abort")),
    SEALED(another_parent, nested, AT("requested", 1), AUDIT_COMPLETE, "its parent was 1, found 0",
           EDIT("requested", 1, "\"parent\":1", "\"parent\":0")),
    SEALED(no_reason, clean, AT("finalizing", 0), AUDIT_COMPLETE, "expected a reason in FINALIZING, found 0",
           EDIT("finalizing", 0, "[{\"kind\":\"USER\",\"severity\":1,\"message\":\"enough\"}]", "[]")),
    SEALED(a_reason_before_the_request, clean, AT("opened", 0), AUDIT_COMPLETE,
           "expected no reason in IDLE, found 1",
           EDIT("opened", 0, "\"reason\":[]",
                "\"reason\":[{\"kind\":\"USER\",\"severity\":1,\"message\":\"\"}]")),

    /* Three phases, in order. */
    SEALED(a_missing_request, clean, AT("drain_started", 0), THREE_PHASE,
           "workflow 1 (rollout_cancel): drain_started needs CANCEL_REQUESTED, found IDLE",
           DROP("requested", 0)),
    SEALED(a_missing_drain_start, clean, AT("evidence", 0), THREE_PHASE,
           "evidence needs DRAINING, found CANCEL_REQUESTED", DROP("drain_started", 0)),
    SEALED(a_missing_drain_end, clean, AT("finalizing", 0), THREE_PHASE,
           "finalizing needs DRAIN_COMPLETE, found DRAINING", DROP("drain_completed", 0)),
    SEALED(a_missing_finalizing, clean, AT("finalized", 0), THREE_PHASE,
           "finalized needs FINALIZING, found DRAIN_COMPLETE", DROP("finalizing", 0)),
    SEALED(a_missing_timeout, timed_out, AT("finalizing", 0), THREE_PHASE,
           "finalizing needs DRAIN_TIMEOUT, found DRAINING", DROP("drain_timeout", 0)),
    SEALED(a_skipped_drain, clean, AT("finalizing", 0), THREE_PHASE,
           "finalizing does not lead from DRAINING to FINALIZING", DROP("drain_completed", 0),
           EDIT("finalizing", 0, "DRAIN_COMPLETE", "DRAINING")),
    SEALED(a_request_that_finalizes, clean, AT("requested", 0), THREE_PHASE,
           "requested does not lead from IDLE to FINALIZING",
           EDIT("requested", 0, "CANCEL_REQUESTED", "FINALIZING")),
    SEALED(phases_in_another_order, clean, AT("finalizing", 0), THREE_PHASE,
           "finalizing needs DRAIN_COMPLETE, found DRAINING", SWAP_WITH_NEXT("drain_completed", 0)),
    SEALED(an_end_before_its_drain, clean, AT("finalized", 0), THREE_PHASE,
           "finalized needs FINALIZING, found DRAIN_COMPLETE", SWAP_WITH_NEXT("finalizing", 0)),
    SEALED(a_second_drain, clean, AT("drain_started", 1), THREE_PHASE,
           "after finalized expected nothing but refused, found drain_started",
           COPY_TO_END("drain_started", 0, NULL, NULL)),
    SEALED(a_second_end, clean, AT("finalized", 1), THREE_PHASE,
           "after finalized expected nothing but refused", DOUBLE("finalized", 0, NULL, NULL)),
    SEALED(a_line_after_completed, completed, AT("completed", 1), THREE_PHASE,
           "after completed expected nothing but refused", DOUBLE("completed", 0, NULL, NULL)),
    SEALED(something_in_flight_when_the_drain_is_complete, clean, AT("drain_completed", 0), THREE_PHASE,
           "drain_completed needs 0 in flight, found 1",
           EDIT("drain_completed", 0, "\"in_flight\":0", "\"in_flight\":1")),
    SEALED(something_in_flight_when_it_has_completed, completed, AT("completed", 0), THREE_PHASE,
           "completed needs 0 in flight, found 1",
           EDIT("completed", 0, "\"in_flight\":0", "\"in_flight\":1")),
    SEALED(a_second_cancel, cancelled, AT("drain_cancelled", 1), THREE_PHASE, "a second drain_cancelled",
           DOUBLE("drain_cancelled", 0, NULL, NULL)),

    /* No new work. */
    SEALED(more_in_flight_than_at_the_request, clean, AT("drain_started", 0), NO_NEW_WORK,
           "at most 1 may be in flight, found 2",
           EDIT("drain_started", 0, "\"in_flight\":1", "\"in_flight\":2")),
    SEALED(more_in_flight_than_before, clean, AT("evidence", 0), NO_NEW_WORK,
           "at most 0 may be in flight, found 1",
           EDIT("drain_started", 0, "\"in_flight\":1", "\"in_flight\":0")),
    SEALED(
        a_workflow_in_one_that_was_asked_to_stop, nested, AT("opened", 2), NO_NEW_WORK,
        "opened in workflow 1 (lifecycle_shutdown), which takes no new work: expected IDLE, found FINALIZING",
        COPY_TO_END("opened", 1, "\"id\":2", "\"id\":3"), DROP("finalized", 1)),
    SEALED(a_workflow_in_one_that_has_ended, nested, AT("opened", 2), NO_NEW_WORK, "found FINALIZED, ended",
           COPY_TO_END("opened", 1, "\"id\":2", "\"id\":3")),
    SEALED(a_workflow_in_one_that_never_was, nested, AT("opened", 1), AUDIT_COMPLETE,
           "its parent 7 was never opened", EDIT("opened", 1, "\"parent\":1", "\"parent\":7")),

    /* A drain has an end. */
    SEALED(a_drain_longer_than_its_budget, clean, AT("drain_completed", 0), DRAIN_BOUNDED,
           "drain_completed at 3000.001 ms, after the budget of 3000.000 ms, without CAN-004",
           EDIT("drain_completed", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.001"),
           EDIT("finalizing", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.001"),
           EDIT("finalized", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.001")),
    SEALED(a_timeout_that_nobody_told, overdue, AT("drain_completed", 0), DRAIN_BOUNDED, "without CAN-004",
           DROP("drain_timeout", 0), DROP("absorbed", 0)),
    SEALED(a_drain_that_goes_on_after_its_budget, overdue, AT("absorbed", 0), DRAIN_BOUNDED,
           "still drains at 2600.000 ms, after the budget of 2000.000 ms", DROP("drain_timeout", 0)),
    SEALED(a_timeout_before_its_time, timed_out, AT("drain_timeout", 0), DRAIN_BOUNDED,
           "drain_timeout at 999.999 ms, before the budget of 1000.000 ms was over",
           EDIT("drain_timeout", 0, "\"elapsed_ms\":1000.000", "\"elapsed_ms\":999.999")),
    SEALED(a_timeout_without_force_that_says_no_error, overdue, AT("drain_timeout", 0), DRAIN_BOUNDED,
           "says ERR_CANCEL_DRAIN_TIMEOUT, found \"fine\"",
           EDIT("drain_timeout", 0, "ERR_CANCEL_DRAIN_TIMEOUT", "fine")),
    SEALED(a_budget_that_rises, clean, AT("drain_completed", 0), DRAIN_BOUNDED,
           "only extended gives more: the budget was 3000.000 ms, drain_completed has 3001.000 ms",
           EDIT("drain_completed", 0, "\"budget_ms\":3000", "\"budget_ms\":3001")),
    SEALED(a_budget_that_rises_with_the_request, clean, AT("requested", 0), DRAIN_BOUNDED,
           "only extended gives more", EDIT("requested", 0, "\"budget_ms\":3000", "\"budget_ms\":9000")),
    SEALED(an_extension_that_nobody_told, extended, AT("drain_completed", 0), DRAIN_BOUNDED,
           "only extended gives more", DROP("extended", 0)),
    SEALED(an_extension_into_the_past, extended, AT("extended", 0), DRAIN_BOUNDED,
           "extended to 2400.000 ms, which is over already at 2500.000 ms",
           EDIT("extended", 0, "\"budget_ms\":3500", "\"budget_ms\":2400")),
    SEALED(an_extension_that_was_too_short, extended, AT("drain_completed", 0), DRAIN_BOUNDED,
           "without CAN-004", EDIT("extended", 0, "\"budget_ms\":3500", "\"budget_ms\":2600"),
           EDIT("drain_completed", 0, "\"budget_ms\":3500", "\"budget_ms\":2600")),
    SEALED(time_that_goes_back, clean, AT("finalizing", 0), DRAIN_BOUNDED,
           "time went back from 10.000 ms to 9.000 ms",
           EDIT("finalizing", 0, "\"elapsed_ms\":10", "\"elapsed_ms\":9")),
    SEALED(time_before_the_request, clean, AT("opened", 0), DRAIN_BOUNDED,
           "expected 0 at opened, found 1.000 ms", EDIT("opened", 0, "\"elapsed_ms\":0", "\"elapsed_ms\":1")),
    SEALED(a_request_that_is_late_from_the_start, clean, AT("requested", 0), DRAIN_BOUNDED,
           "expected 0 at requested, found 1.000 ms",
           EDIT("requested", 0, "\"elapsed_ms\":0", "\"elapsed_ms\":1")),
    SEALED(a_timeout_hidden_in_the_end, timed_out, AT("leak_detected", 0), DRAIN_BOUNDED,
           "\"drain_timed_out\":0, the lines before it say 1",
           EDIT("leak_detected", 0, "\"drain_timed_out\":1", "\"drain_timed_out\":0")),
    SEALED(a_timeout_without_force_hidden_in_the_end, overdue, AT("finalized", 0), DRAIN_BOUNDED,
           "\"drain_timed_out\":0, the lines before it say 1",
           EDIT("finalized", 0, "\"drain_timed_out\":1", "\"drain_timed_out\":0")),
    SEALED(a_timeout_made_up_in_the_end, clean, AT("finalized", 0), DRAIN_BOUNDED,
           "\"drain_timed_out\":1, the lines before it say 0",
           EDIT("finalized", 0, "\"drain_timed_out\":0", "\"drain_timed_out\":1")),

    /* Nothing is left, or it is named. */
    SEALED(a_clean_end_with_a_leak, timed_out, AT("finalized", 0), FINALIZE_CLEAN,
           "finalized (CAN-005) with 2 leaks: expected leak_detected (CAN-006)",
           EDIT("leak_detected", 0, "\"leak_detected\",\"code\":\"CAN-006\"",
                "\"finalized\",\"code\":\"CAN-005\""),
           EDIT("finalized", 0, "LEAK_DETECTED", "FINALIZED"),
           EDIT("finalized", 0, "\"left\":2", "\"left\":0")),
    SEALED(a_clean_end_that_says_it_left_something, clean, AT("finalized", 0), FINALIZE_CLEAN,
           "\"left\":1, the lines before it say 0", EDIT("finalized", 0, "\"left\":0", "\"left\":1")),
    SEALED(a_leak_without_its_names, timed_out, AT("leak_detected", 0), FINALIZE_CLEAN,
           "no line names a leak", DROP("left", 0), DROP("left", 0)),
    SEALED(a_leak_with_one_name_missing, timed_out, AT("leak_detected", 0), FINALIZE_CLEAN,
           "\"left\":2, the lines before it say 1", DROP("left", 1)),
    SEALED(a_leak_with_a_name_too_many, timed_out, AT("leak_detected", 0), FINALIZE_CLEAN,
           "\"left\":2, the lines before it say 3", DOUBLE("left", 0, NULL, NULL)),
    SEALED(an_end_with_something_in_flight, forced, AT("finalized", 0), FINALIZE_CLEAN,
           "finalized needs 0 in flight, found 1",
           EDIT("finalized", 0, "\"in_flight\":0", "\"in_flight\":1")),
    SEALED(one_that_is_complete_before_what_is_in_it, nested, AT("drain_completed", 0), THREE_PHASE,
           "workflow 1 (lifecycle_shutdown): drain_completed, but 1 workflow in it has not ended",
           DROP("drain_completed", 0), DROP("finalizing", 0), DROP("finalized", 0)),
    SEALED(one_that_ends_before_what_is_in_it, nested_and_forced, AT("leak_detected", 0), FINALIZE_CLEAN,
           "workflow 1 (lifecycle_shutdown): leak_detected, but 1 workflow in it has not ended",
           DROP("leak_detected", 0)),
    SEALED(a_leak_with_something_in_flight, timed_out, AT("leak_detected", 0), FINALIZE_CLEAN,
           "leak_detected needs 0 in flight, found 1",
           EDIT("leak_detected", 0, "\"in_flight\":0", "\"in_flight\":1")),

    /* A second request changes nothing, or strengthens. */
    SEALED(a_second_request, clean, AT("requested", 1), IDEMPOTENT,
           "expected absorbed, found a second requested", DOUBLE("requested", 0, NULL, NULL)),
    SEALED(a_second_request_after_the_end, clean, AT("requested", 1), IDEMPOTENT, "a second requested",
           COPY_TO_END("requested", 0, NULL, NULL)),
    SEALED(an_absorbed_request_that_moves_on, absorbed, AT("absorbed", 0), THREE_PHASE,
           "absorbed does not lead from DRAINING to FINALIZING",
           EDIT("absorbed", 0, "\"to\":\"DRAINING\"", "\"to\":\"FINALIZING\"")),
    SEALED(an_absorbed_request_that_weakens, absorbed, AT("absorbed", 1), IDEMPOTENT,
           "absorbed weakens the severity of the reason from 2 to 1",
           EDIT("absorbed", 1, "\"severity\":2", "\"severity\":1")),
    SEALED(an_epoch_that_does_not_rise, absorbed, AT("absorbed", 0), IDEMPOTENT,
           "absorbed: expected epoch 2, found 1", EDIT("absorbed", 0, "\"epoch\":2", "\"epoch\":1")),
    SEALED(an_epoch_that_rises_without_severity, absorbed, AT("absorbed", 1), IDEMPOTENT,
           "absorbed: expected epoch 2, found 3", EDIT("absorbed", 1, "\"epoch\":2", "\"epoch\":3")),
    SEALED(an_epoch_that_rises_by_itself, clean, AT("finalizing", 0), IDEMPOTENT,
           "finalizing: expected epoch 1, found 2", EDIT("finalizing", 0, "\"epoch\":1", "\"epoch\":2")),
    SEALED(a_request_in_epoch_0, clean, AT("requested", 0), IDEMPOTENT,
           "requested: expected epoch 1, found 0", EDIT("requested", 0, "\"epoch\":1", "\"epoch\":0")),
    SEALED(a_reason_that_gets_stronger_by_itself, clean, AT("finalizing", 0), IDEMPOTENT,
           "only a stronger request changes the reason",
           EDIT("finalizing", 0, "\"severity\":1", "\"severity\":3")),
    SEALED(a_reason_that_changes_by_itself, clean, AT("finalizing", 0), IDEMPOTENT,
           "expected USER of severity 1, found RACE_LOST of 1",
           EDIT("finalizing", 0, "\"USER\"", "\"RACE_LOST\"")),
    SEALED(a_second_request_that_was_refused, absorbed, AT("refused", 0), IDEMPOTENT,
           "a request in DRAINING is absorbed, found refused",
           EDIT("absorbed", 1, "\"absorbed\",\"code\":\"CAN-001\"",
                "\"refused\",\"code\":\"ERR_CANCEL_INVALID_PHASE\""),
           EDIT("refused", 0, "\"evidence\":{", "\"evidence\":{\"trigger\":\"request\",")),
    SEALED(a_request_that_was_not_counted, absorbed, AT("finalized", 0), IDEMPOTENT,
           "\"absorbed\":1, the lines before it say 2",
           EDIT("finalized", 0, "\"absorbed\":2", "\"absorbed\":1")),
    SEALED(an_absorbed_request_without_its_line, absorbed, AT("finalized", 0), IDEMPOTENT,
           "\"absorbed\":2, the lines before it say 1", DROP("absorbed", 1)),
    SEALED(a_cancel_without_its_line, cancelled, AT("finalized", 0), AUDIT_COMPLETE,
           "\"cancelled\":1, the lines before it say 0", DROP("drain_cancelled", 0)),
    SEALED(a_cancel_hidden_in_the_end, cancelled, AT("finalized", 0), AUDIT_COMPLETE,
           "\"cancelled\":0, the lines before it say 1",
           EDIT("finalized", 0, "\"cancelled\":1", "\"cancelled\":0")),

    /* What the process before has not finished. */
    SEALED(an_interrupted_one_without_its_line, unfinished, AT("opened", 2), AUDIT_COMPLETE,
           "1 of the process before is unfinished", DROP("interrupted", 0),
           COPY_TO_END("opened", 0, "\"id\":1", "\"id\":3")),
    SEALED(one_that_goes_on_after_its_process, unfinished, AT("requested", 1), AUDIT_COMPLETE,
           "2 of the process before are unfinished: expected interrupted for each after started, found "
           "requested",
           DROP("interrupted", 1), DROP("interrupted", 0), COPY_TO_END("requested", 0, NULL, NULL)),
    SEALED(an_interruption_without_a_new_process, unfinished, AT("interrupted", 0), AUDIT_COMPLETE,
           "its process has not ended", DROP("started", 1)),
    SEALED(an_interruption_of_another_line, unfinished, AT("interrupted", 1), AUDIT_COMPLETE,
           "interrupted after line 4, but its last is 5", EDIT("interrupted", 1, "\"line\":5", "\"line\":4")),
    SEALED(an_interruption_of_another_state, unfinished, AT("interrupted", 1), THREE_PHASE,
           "interrupted needs FINALIZING, found DRAINING",
           EDIT("interrupted", 1, "\"from\":\"DRAINING\",\"to\":\"DRAINING\"",
                "\"from\":\"FINALIZING\",\"to\":\"FINALIZING\"")),
    SEALED(a_second_interruption, unfinished, AT("interrupted", 2), THREE_PHASE,
           "after interrupted expected nothing, found interrupted",
           COPY_TO_END("interrupted", 0, NULL, NULL)),
    SEALED(a_refusal_after_an_interruption, unfinished, AT("refused", 0), THREE_PHASE,
           "after interrupted expected nothing, found refused",
           COPY_TO_END("interrupted", 0, "\"interrupted\",\"code\":null",
                       "\"refused\",\"code\":\"ERR_CANCEL_INVALID_PHASE\""),
           EDIT("refused", 0, "\"evidence\":{", "\"evidence\":{\"trigger\":\"extend\",")),

    /* What looks odd and is allowed. */
    FINE(a_drain_that_is_as_long_as_its_budget, clean,
         EDIT("drain_completed", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.000"),
         EDIT("finalizing", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.000"),
         EDIT("finalized", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":3000.000")),
    FINE(a_finalizer_that_takes_longer_than_the_budget, clean,
         EDIT("finalized", 0, "\"elapsed_ms\":10.000", "\"elapsed_ms\":9000.000")),
    FINE(a_budget_that_shrinks, clean, EDIT("finalizing", 0, "\"budget_ms\":3000", "\"budget_ms\":2000"),
         EDIT("finalized", 0, "\"budget_ms\":3000", "\"budget_ms\":2000")),
    FINE(two_processes_that_died_at_once, unfinished, DROP("interrupted", 1),
         COPY_TO_END("started", 1, NULL, NULL)),
    FINE(evidence_that_nobody_knows, clean,
         EDIT("finalizing", 0, "\"evidence\":{", "\"evidence\":{\"weather\":\"fine\"")),
};
enum { LOGS = sizeof logs / sizeof *logs };

/* ---- logs as they are ----------------------------------------------------------------------------- */

static void each_scenario_verifies_and_its_log_tells_its_story(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENARIOS; i++) {
        void *up;
        ebb_audit_verdict v;
        assert_int_equal(workflow_world_up(&up), 0);
        workflow_world *ww = up;
        scenarios[i].run(ww);
        uint64_t last = workflow_lines(ww, "opened");
        assert_string_equal(workflow_story(ww, last), scenarios[i].story);
        if (verify(ww->log, ww->log_n, &v) != EBB_OK)
            fail_msg("%s: line %" PRIu64 ": %s: %s\n%s", scenarios[i].name, v.line, v.invariant, v.text,
                     ww->log);
        assert_int_equal(v.unfinished, scenarios[i].run == unfinished ? 2 : 0);
        assert_int_equal(v.stopped, workflow_lines(ww, "requested"));
        assert_int_equal(v.line, 0);
        assert_string_equal(v.invariant, "");
        assert_int_equal(workflow_world_down(&up), 0);
    }
}

static void all_scenarios_in_one_log_verify(void **state) {
    workflow_world *ww = *state;
    for (size_t i = 0; i < SCENARIOS; i++) scenarios[i].run(ww);
    ebb_audit_verdict v;
    assert_int_equal(verify(ww->log, ww->log_n, &v), EBB_OK);
    assert_int_equal(v.unfinished, 2);
    assert_int_equal(v.stopped, workflow_lines(ww, "requested"));
}

/* A prefix that ends with a line is a log that a process left; one that ends inside a line is cut. */
static void a_log_may_end_anywhere_and_what_is_whole_of_it_is_verified(void **state) {
    workflow_world *ww = *state;
    absorbed(ww);
    timed_out(ww);
    uint64_t whole = 0;
    for (size_t n = 0; n <= ww->log_n; n++) {
        ebb_audit_verdict v;
        if (n > 0 && ww->log[n - 1] == '\n') whole++;
        assert_int_equal(verify(ww->log, n, &v), EBB_OK);
        assert_int_equal(v.lines, whole);
        assert_int_equal(v.cut, n > 0 && ww->log[n - 1] != '\n');
    }
}

static void an_edited_byte_anywhere_is_refused_in_its_line(void **state) {
    workflow_world *ww = *state;
    clean(ww);
    uint64_t line = 1;
    for (size_t i = 0; i < ww->log_n; i++) {
        ebb_audit_verdict v;
        char c = ww->log[i];
        ww->log[i] = (char)(c ^ 1);
        assert_int_equal(verify(ww->log, ww->log_n, &v), i + 1 == ww->log_n ? EBB_OK : EBB_ERR_ORACLE);
        if (i + 1 == ww->log_n) assert_true(v.cut);
        else assert_int_equal(v.line, line);
        if (i + 1 < ww->log_n) assert_string_equal(v.invariant, AUDIT_COMPLETE);
        ww->log[i] = c;
        line += c == '\n';
    }
}

static void a_lost_line_shows_in_the_next_one(void **state) {
    workflow_world *ww = *state;
    ebb_audit_verdict v;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    ww->sink_fails = EBB_ERRNO(28);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1)), EBB_ERR_CANCEL_INVALID_PHASE);
    ww->sink_fails = EBB_OK;
    ww->broken = true;
    workflow_stop(ww, wf);
    assert_int_equal(verify(ww->log, ww->log_n, &v), EBB_ERR_ORACLE);
    assert_int_equal(v.line, 3);
    assert_string_equal(v.invariant, AUDIT_COMPLETE);
    assert_string_equal(
        v.text,
        "workflow 1 (publish_abort): expected no line to be lost; 1 could not be written before this one");
}

static void no_bytes_are_a_log_of_no_lines(void **state) {
    ebb_audit_verdict v;
    (void)state;
    assert_int_equal(verify(NULL, 0, &v), EBB_OK);
    assert_int_equal(v.lines, 0);
    assert_false(v.cut);
}

static void bytes_of_another_kind_are_refused_at_once(void **state) {
    static const char *const files[] = {"\n", "hello\n", "{}\n", "[1,2]\n", "\177ELF\n", "\xff\xfe\n"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ebb_audit_verdict v;
        assert_int_equal(verify(files[i], strlen(files[i]), &v), EBB_ERR_ORACLE);
        assert_int_equal(v.line, 1);
        assert_string_equal(v.invariant, AUDIT_COMPLETE);
    }
}

/* Whoever can hash one line has to do it for all that follow. */
static void an_edited_line_with_its_own_hash_is_refused_at_the_next(void **state) {
    workflow_world *ww = *state;
    lines *l = calloc(1, sizeof *l), *edited = calloc(1, sizeof *l);
    ebb_audit_verdict v;
    assert_true(l != NULL && edited != NULL);
    clean(ww);
    split(l, ww->log);
    *edited = *l;
    replace(edited, 2, "enough", "enouhg");
    seal(edited);
    memcpy(l->text[2], edited->text[2], ROOM);
    char *log = join(l);
    assert_int_equal(verify(log, strlen(log), &v), EBB_ERR_ORACLE);
    assert_int_equal(v.line, 4);
    assert_string_equal(v.invariant, AUDIT_COMPLETE);
    assert_non_null(strstr(v.text, "\"prev\" is not the hash of the line before"));
    free(log);
    free(edited);
    free(l);
}

/* Its hash is right, its JSON is good, and it is longer than the longest that there can be. */
static void a_line_that_is_padded_beyond_all_bounds_is_refused(void **state) {
    workflow_world *ww = *state;
    enum { PADDING = 33000 };
    const char *end = strstr(ww->log, ",\"hash\":");
    char *line = calloc(1, PADDING + ROOM);
    unsigned char hash[32];
    char text[65];
    ebb_audit_verdict v;
    assert_non_null(line);
    for (size_t padding = 0; padding <= PADDING; padding += PADDING) {
        int n = sprintf(line, "{%*s%.*s", (int)padding, "", (int)(end - ww->log - 1), ww->log + 1);
        assert_int_equal(EVP_Digest(line, (size_t)n, hash, NULL, EVP_sha256(), NULL), 1);
        hex(hash, text);
        n += sprintf(line + n, ",\"hash\":\"%s\"}\n", text);
        assert_int_equal(verify(line, (size_t)n, &v), padding == 0 ? EBB_OK : EBB_ERR_ORACLE);
    }
    assert_int_equal(v.line, 1);
    free(line);
}

static void a_line_longer_than_any_is_refused(void **state) {
    char *bytes = malloc(100000);
    ebb_audit_verdict v;
    (void)state;
    assert_non_null(bytes);
    memset(bytes, '[', 99999);
    bytes[99999] = '\n';
    assert_int_equal(verify(bytes, 100000, &v), EBB_ERR_ORACLE);
    assert_int_equal(v.line, 1);
    free(bytes);
}

/* What is in a name goes to people's terminals by way of the verdict. */
static void the_verdict_has_no_control_characters(void **state) {
    static const ebb_workflow_type type = {"red\x1b[31m\nline", 1000 * EBB_MS, EBB_CANCEL_NONE};
    workflow_world *ww = *state;
    lines *l = calloc(1, sizeof *l);
    ebb_audit_verdict v;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &type, .name = "\xff\x7f"});
    workflow_stop(ww, wf);
    world_finish(ww->world);
    split(l, ww->log);
    drop(l, find(l, "drain_started", 0));
    seal(l);
    char *log = join(l);
    assert_int_equal(verify(log, strlen(log), &v), EBB_ERR_ORACLE);
    assert_string_equal(v.text,
                        "workflow 1 (red?[31m?line): drain_completed needs DRAINING, found CANCEL_REQUESTED");
    free(log);
    free(l);
}

static void the_longest_texts_still_make_lines_that_verify(void **state) {
    static char type_name[4000], site[4000], message[4000];
    ebb_workflow_type type = {type_name, 1000 * EBB_MS, EBB_CANCEL_NONE};
    workflow_world *ww = *state;
    ebb_audit_verdict v;
    memset(type_name, 1, sizeof type_name - 1);
    memset(site, '"', sizeof site - 1);
    memset(message, 0xff, sizeof message - 1);
    ebb_workflow wf = ebb_workflow_open_site(
        ww->host, &(ebb_workflow_opts){.type = &type, .name = message, .audit = ww->audit}, site);
    (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, message), EBB_OK);
    world_settle(ww->world);
    assert_int_equal(ebb_workflow_force(ww->host, wf, message), EBB_OK);
    world_finish(ww->world);
    if (verify(ww->log, ww->log_n, &v) != EBB_OK)
        fail_msg("line %" PRIu64 ": %s\n%s", v.line, v.text, ww->log);
    assert_int_equal(v.unfinished, 0);
    (void)ebb_workflow_join(ww->host, wf, NULL); /* its type goes with this test */
}

static void more_workflows_than_fit_at_first_verify(void **state) {
    workflow_world *ww = *state;
    ebb_audit_verdict v;
    for (int i = 0; i < 100; i++) completed(ww);
    assert_int_equal(verify(ww->log, ww->log_n, &v), EBB_OK);
    assert_int_equal(v.lines, 201);
    assert_int_equal(v.stopped, 0);
}

static void one_that_outlives_many_others_is_still_known(void **state) {
    workflow_world *ww = *state;
    ebb_audit_verdict v;
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel, .name = "the first"});
    for (int i = 0; i < 40; i++) completed(ww);
    workflow_stop(ww, wf);
    world_finish(ww->world);
    assert_int_equal(verify(ww->log, ww->log_n, &v), EBB_OK);
    assert_int_equal(v.stopped, 1);
    assert_int_equal(v.unfinished, 0);
}

static void no_memory_is_no_verdict(void **state) {
    workflow_world *ww = *state;
    for (int i = 0; i < 40; i++) completed(ww);
    uint64_t n = 0;
    ebb_status st = EBB_ERR_NOMEM;
    while (st == EBB_ERR_NOMEM) {
        ebb_failing memory = {.inner = ebb_libc_allocator(), .fail_at = ++n};
        ebb_audit_verdict v;
        st = ebb_audit_verify(ebb_failing_allocator(&memory), ww->log, ww->log_n, &v);
        assert_int_equal(memory.live, 0);
        if (st == EBB_ERR_NOMEM) assert_int_equal(v.line, 0);
    }
    assert_int_equal(st, EBB_OK);
    assert_true(n > 2);
}

/* ---- */

static int print_log(const char *name) {
    for (size_t i = 0; i < SCENARIOS; i++) {
        void *up;
        if (strcmp(scenarios[i].name, name) != 0) continue;
        (void)workflow_world_up(&up);
        scenarios[i].run(up);
        fputs(((workflow_world *)up)->log, stdout);
        return workflow_world_down(&up);
    }
    fprintf(stderr, "there is no scenario %s\n", name);
    return 2;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--log") == 0) return print_log(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_scenario_verifies_and_its_log_tells_its_story),
        IN_WORKFLOWS(all_scenarios_in_one_log_verify),
        IN_WORKFLOWS(a_log_may_end_anywhere_and_what_is_whole_of_it_is_verified),
        IN_WORKFLOWS(an_edited_byte_anywhere_is_refused_in_its_line),
        IN_WORKFLOWS(a_lost_line_shows_in_the_next_one),
        cmocka_unit_test(no_bytes_are_a_log_of_no_lines),
        cmocka_unit_test(bytes_of_another_kind_are_refused_at_once),
        IN_WORKFLOWS(an_edited_line_with_its_own_hash_is_refused_at_the_next),
        IN_WORKFLOWS(a_line_that_is_padded_beyond_all_bounds_is_refused),
        cmocka_unit_test(a_line_longer_than_any_is_refused),
        IN_WORKFLOWS(the_verdict_has_no_control_characters),
        IN_WORKFLOWS(the_longest_texts_still_make_lines_that_verify),
        IN_WORKFLOWS(more_workflows_than_fit_at_first_verify),
        IN_WORKFLOWS(one_that_outlives_many_others_is_still_known),
        IN_WORKFLOWS(no_memory_is_no_verdict),
    };
    struct CMUnitTest refusals[LOGS];
    for (size_t i = 0; i < LOGS; i++) {
        refusals[i] = (struct CMUnitTest){.name = logs[i].name,
                                          .test_func = gets_its_verdict,
                                          .initial_state = (void *)(uintptr_t)&logs[i]};
    }
    int failed = cmocka_run_group_tests_name("logs as they are", tests, NULL, NULL);
    return failed + _cmocka_run_group_tests("doctored logs", refusals, LOGS, NULL, NULL);
}
