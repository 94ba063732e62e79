/* The protocol's table: every state with every trigger, and every public call in every state. */
#include "tests/support/workflow_world.h"

#include "workflow/phase.h"

enum { SAME = 0, NO = -1, FINAL = -2 }; /* refused as INVALID_PHASE, as ALREADY_FINAL */

#define S(state) EBB_WORKFLOW_##state

/* ---- the table ------------------------------------------------------------------------------- */

/* Written out by hand from the contract: where each trigger leads from each state. The columns are no state,
 * IDLE, CANCEL_REQUESTED, DRAINING, DRAIN_COMPLETE, DRAIN_TIMEOUT, FINALIZING, FINALIZED, LEAK_DETECTED. */
static const int table[EBB__TRIGGERS][EBB__WF_STATES] = {
    [EBB__T_ADD_HANDLER] = {0, SAME, NO, NO, NO, NO, NO, NO, NO},
    [EBB__T_REQUEST] = {0, S(CANCEL_REQUESTED), SAME, SAME, SAME, SAME, SAME, FINAL, FINAL},
    [EBB__T_START_DRAIN] = {0, NO, S(DRAINING), NO, NO, NO, NO, NO, NO},
    [EBB__T_CANCEL_AT] = {0, NO, NO, SAME, NO, NO, NO, NO, NO},
    [EBB__T_DRAINED] = {0, NO, NO, S(DRAIN_COMPLETE), NO, NO, NO, NO, NO},
    [EBB__T_TIMEOUT] = {0, NO, NO, S(DRAIN_TIMEOUT), NO, NO, NO, NO, NO},
    [EBB__T_OVERDUE] = {0, NO, NO, SAME, NO, NO, NO, NO, NO},
    [EBB__T_EXTEND] = {0, NO, NO, SAME, NO, NO, NO, NO, NO},
    [EBB__T_FORCE] = {0, NO, NO, S(DRAIN_TIMEOUT), NO, NO, SAME, NO, NO},
    [EBB__T_FINALIZE] = {0, NO, NO, NO, S(FINALIZING), S(FINALIZING), NO, NO, NO},
    [EBB__T_FINISH] = {0, NO, NO, NO, NO, NO, S(FINALIZED), NO, NO},
    [EBB__T_LEAK] = {0, NO, NO, NO, NO, NO, S(LEAK_DETECTED), NO, NO},
    [EBB__T_COMPLETE] = {0, SAME, NO, NO, NO, NO, NO, NO, NO},
};

static int found_at(ebb_workflow_state from, ebb__trigger trigger) {
    const ebb__wf_move *move = NULL;
    ebb_status st = ebb__wf_step(from, trigger, &move);
    if (st == EBB_OK) return move->to;
    if (st == EBB_ERR_CANCEL_ALREADY_FINAL) return FINAL;
    assert_int_equal(st, EBB_ERR_CANCEL_INVALID_PHASE);
    return NO;
}

static void every_trigger_leads_where_the_contract_says_from_every_state(void **state) {
    (void)state;
    for (int t = EBB__T_ADD_HANDLER; t < EBB__TRIGGERS; t++) {
        for (int s = EBB_WORKFLOW_IDLE; s < EBB__WF_STATES; s++) {
            int found = found_at((ebb_workflow_state)s, (ebb__trigger)t);
            if (found == table[t][s]) continue;
            fail_msg("%s in %s: %d, expected %d", ebb__trigger_name((ebb__trigger)t),
                     ebb_workflow_state_name((ebb_workflow_state)s), found, table[t][s]);
        }
    }
}

static const char *code_of(ebb_workflow_state from, ebb__trigger trigger) {
    const ebb__wf_move *move = NULL;
    assert_int_equal(ebb__wf_step(from, trigger, &move), EBB_OK);
    return ebb__wf_events[move->event].code;
}

static void each_step_has_the_code_of_the_contract(void **state) {
    (void)state;
    assert_string_equal(code_of(EBB_WORKFLOW_IDLE, EBB__T_REQUEST), "CAN-001");
    for (int s = EBB_WORKFLOW_CANCEL_REQUESTED; s < EBB_WORKFLOW_FINALIZED; s++) {
        assert_string_equal(code_of((ebb_workflow_state)s, EBB__T_REQUEST), "CAN-001");
    }
    assert_string_equal(code_of(EBB_WORKFLOW_CANCEL_REQUESTED, EBB__T_START_DRAIN), "CAN-002");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAINING, EBB__T_DRAINED), "CAN-003");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAINING, EBB__T_TIMEOUT), "CAN-004");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAINING, EBB__T_OVERDUE), "CAN-004");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAINING, EBB__T_FORCE), "CAN-004");
    assert_string_equal(code_of(EBB_WORKFLOW_FINALIZING, EBB__T_FINISH), "CAN-005");
    assert_string_equal(code_of(EBB_WORKFLOW_FINALIZING, EBB__T_LEAK), "CAN-006");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAINING, EBB__T_CANCEL_AT), "");
    assert_string_equal(code_of(EBB_WORKFLOW_DRAIN_COMPLETE, EBB__T_FINALIZE), "");
}

/* A line of an event that changes nothing by itself: these are the remarks of the log. */
static bool is_remark(int event) {
    return event == EBB__WE_OPENED || event == EBB__WE_EVIDENCE || event == EBB__WE_HANDLER_DONE ||
           event == EBB__WE_LEAK || event == EBB__WE_REFUSED || event == EBB__WE_INTERRUPTED;
}

/* Whether some trigger makes that step, by that event. */
static bool is_step(int from, int event, int to) {
    for (int t = EBB__T_ADD_HANDLER; t < EBB__TRIGGERS; t++) {
        const ebb__wf_move *move = NULL;
        if (ebb__wf_step((ebb_workflow_state)from, (ebb__trigger)t, &move) != EBB_OK) continue;
        int leads_to = move->to == 0 ? from : move->to;
        if (move->event == event && event != EBB__WE_NONE && leads_to == to) return true;
    }
    return false;
}

static void the_log_may_go_where_a_step_leads_and_nowhere_else(void **state) {
    (void)state;
    for (int event = EBB__WE_OPENED; event < EBB__WF_EVENTS; event++) {
        for (int from = EBB_WORKFLOW_IDLE; from < EBB__WF_STATES; from++) {
            for (int to = EBB_WORKFLOW_IDLE; to < EBB__WF_STATES; to++) {
                bool legal =
                    ebb__wf_legal((ebb_workflow_state)from, (ebb__wf_event)event, (ebb_workflow_state)to);
                if (is_remark(event) ? legal && from != to : legal != is_step(from, event, to)) {
                    fail_msg("%s from %d to %d is %d", ebb__wf_events[event].name, from, to, legal);
                }
            }
        }
    }
}

static void every_state_has_the_name_of_the_contract_and_no_other_has_one(void **state) {
    static const char *const names[] = {"?",          "IDLE",           "CANCEL_REQUESTED",
                                        "DRAINING",   "DRAIN_COMPLETE", "DRAIN_TIMEOUT",
                                        "FINALIZING", "FINALIZED",      "LEAK_DETECTED"};
    (void)state;
    for (int s = 0; s < EBB__WF_STATES; s++) {
        assert_string_equal(ebb_workflow_state_name((ebb_workflow_state)s), names[s]);
    }
    assert_string_equal(ebb_workflow_state_name((ebb_workflow_state)EBB__WF_STATES), "?");
    assert_string_equal(ebb_workflow_state_name((ebb_workflow_state)-1), "?");
}

/* ---- every call in every state --------------------------------------------------------------- */

typedef enum call { REQUEST, EXTEND, FORCE, ADD, CALLS } call;

static ebb_status handle(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)d;
    (void)arg;
    return EBB_OK;
}

static ebb_status make(ebb_cx *cx, ebb_workflow wf, call what) {
    switch (what) {
    case REQUEST: return ebb_workflow_request(cx, wf, EBB_CANCEL_USER, "again");
    case EXTEND: return ebb_workflow_extend(cx, wf, MS(10));
    case FORCE: return ebb_workflow_force(cx, wf, "now");
    default: return ebb_workflow_on_drain(cx, wf, "late", handle, NULL);
    }
}

/* What request, extend, force and adding a handler say. */
#define OK    EBB_OK
#define PHASE EBB_ERR_CANCEL_INVALID_PHASE
#define OVER  EBB_ERR_CANCEL_ALREADY_FINAL
static const ebb_status answers[EBB__WF_STATES][CALLS] = {
    [S(IDLE)] = {OK, PHASE, PHASE, OK},
    [S(CANCEL_REQUESTED)] = {OK, PHASE, PHASE, PHASE},
    [S(DRAINING)] = {OK, OK, OK, PHASE},
    [S(DRAIN_COMPLETE)] = {OK, PHASE, PHASE, PHASE},
    [S(DRAIN_TIMEOUT)] = {OK, PHASE, PHASE, PHASE},
    [S(FINALIZING)] = {OK, PHASE, OK, PHASE},
    [S(FINALIZED)] = {OVER, PHASE, PHASE, PHASE},
    [S(LEAK_DETECTED)] = {OVER, PHASE, PHASE, PHASE},
};

/* Makes one call when the workflow comes into one state. */
typedef struct caller {
    workflow_world *ww;
    ebb_workflow_state in;
    call what;
    bool called;
    ebb_status got;
    char refusal[192];
} caller;

static void call_now(caller *c, ebb_workflow wf) {
    c->called = true;
    c->got = make(c->ww->host, wf, c->what);
    snprintf(c->refusal, sizeof c->refusal, "%s", ebb_workflow_refusal(c->ww->host, wf));
}

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    caller *c = arg;
    assert_true(from < to);
    assert_int_equal(workflow_state(c->ww, wf), to);
    if (to == c->in) call_now(c, wf);
}

/* A workflow that comes through that state: `ends` says whether its work does so in time, and clean. */
static ebb_workflow run_through(caller *c, bool ends) {
    workflow_world *ww = c->ww;
    ebb_workflow wf = workflow_new(
        ww, &(ebb_workflow_opts){
                .type = &ebb_workflow_publish_abort, .name = "v42", .on_state = on_state, .arg = c});
    if (!ends) (void)puppet_start(ww->world, ebb_workflow_region(ww->host, wf), IGNORING);
    world_settle(ww->world);
    if (c->in == EBB_WORKFLOW_IDLE) call_now(c, wf);
    (void)ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough");
    world_finish(ww->world);
    return wf;
}

static void expect_refusal(const caller *c, ebb_workflow_state in) {
    static const char *const names[] = {"request", "extend", "force", "add a drain handler"};
    char text[192];
    snprintf(text, sizeof text, ": %s is not allowed in %s", names[c->what], ebb_workflow_state_name(in));
    workflow_says(c->refusal, text);
    workflow_says(c->refusal, "publish_abort#");
    workflow_says(c->refusal, " v42");
}

static void every_call_answers_in_every_state_as_the_contract_says(void **state) {
    workflow_world *ww = *state;
    for (int s = EBB_WORKFLOW_IDLE; s < EBB__WF_STATES; s++) {
        for (int what = REQUEST; what < CALLS; what++) {
            caller c = {.ww = ww, .in = (ebb_workflow_state)s, .what = (call)what};
            bool ends = s != EBB_WORKFLOW_DRAIN_TIMEOUT && s != EBB_WORKFLOW_LEAK_DETECTED;
            ebb_workflow wf = run_through(&c, ends);
            assert_true(c.called);
            if (c.got != answers[s][what]) {
                fail_msg("call %d in %s: %s", what, ebb_workflow_state_name(c.in), ebb_status_name(c.got));
            }
            if (c.got == EBB_OK) assert_string_equal(c.refusal, "");
            else expect_refusal(&c, c.in);
            assert_true(workflow_state(ww, wf) >= EBB_WORKFLOW_FINALIZED);
            assert_int_not_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
        }
    }
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void expect_everywhere(workflow_world *ww, ebb_workflow wf, ebb_status st) {
    ebb_workflow_report report;
    ebb_workflow_leak leak;
    for (int what = REQUEST; what < CALLS; what++) assert_int_equal(make(ww->host, wf, (call)what), st);
    assert_int_equal(ebb_workflow_report_of(ww->host, wf, &report), st);
    assert_int_equal(ebb_workflow_leak_at(ww->host, wf, 0, &leak), st);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), st);
    assert_int_equal(ebb_workflow_explain(ww->host, wf, NULL, NULL), st);
    assert_int_equal(ebb_id_status(ebb_workflow_region(ww->host, wf).id), st);
    assert_string_equal(ebb_workflow_refusal(ww->host, wf), "");
}

static void a_workflow_that_was_joined_is_stale_for_every_call(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
    expect_everywhere(ww, wf, EBB_ERR_STALE);
    ebb_workflow next = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    assert_int_not_equal(next.id, wf.id); /* the slot is the same, the id is not */
    expect_everywhere(ww, wf, EBB_ERR_STALE);
}

static void a_workflow_of_another_runtime_is_foreign_for_every_call(void **state) {
    workflow_world *ww = *state;
    ebb_runtime *other;
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator(), .runtime_id = 7};
    assert_int_equal(ebb_runtime_new(&opts, &other), EBB_OK);
    ebb_workflow wf =
        ebb_workflow_open(ebb_runtime_host(other), &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    expect_everywhere(ww, wf, EBB_ERR_FOREIGN); /* this runtime has no workflows at all */
    (void)workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort});
    expect_everywhere(ww, wf, EBB_ERR_FOREIGN);
    ebb_runtime_free(other);
}

static void an_id_that_carries_an_error_says_it_in_every_call(void **state) {
    workflow_world *ww = *state;
    expect_everywhere(ww, ebb_workflow_open(ww->host, NULL), EBB_ERR_INVALID);
    assert_int_not_equal(ebb_workflow_join(ww->host, (ebb_workflow){0}, NULL), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trigger_leads_where_the_contract_says_from_every_state),
        cmocka_unit_test(each_step_has_the_code_of_the_contract),
        cmocka_unit_test(the_log_may_go_where_a_step_leads_and_nowhere_else),
        cmocka_unit_test(every_state_has_the_name_of_the_contract_and_no_other_has_one),
        IN_WORKFLOWS(every_call_answers_in_every_state_as_the_contract_says),
        IN_WORKFLOWS(a_workflow_that_was_joined_is_stale_for_every_call),
        IN_WORKFLOWS(a_workflow_of_another_runtime_is_foreign_for_every_call),
        IN_WORKFLOWS(an_id_that_carries_an_error_says_it_in_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
