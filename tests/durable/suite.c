/* The conformance suite holds the lab provider to its contract, and each planted bug of a provider is found by a case. */
#include "durable/lab_rows.h"
#include "tests/support/suite_run.h"

static void every_case_passes_in_memory(void **state) {
    world *w = *state;
    suite_run *r = world_keep(w, sizeof *r);
    r->url = "lab:";
    r->shows = true;
    run_suite(w, r);
    print_message("%u passed, %u failed\n", r->passed, r->failed);
    assert_int_equal(r->failed, 0);
    assert_int_equal(r->status, EBB_OK);
    assert_true(r->passed >= 200);
}

static void cases_have_names_of_their_own_and_say_what_they_hold(void **state) {
    const char *about, *name, *other;
    size_t n = 0;
    (void)state;
    for (; (name = ebb_provider_case_at(n, &about)) != NULL; n++) {
        assert_int_equal(strncmp(name, "test_", 5), 0);
        assert_true(strlen(about) > 0);
        for (size_t k = 0; k < n; k++) {
            other = ebb_provider_case_at(k, NULL);
            assert_string_not_equal(name, other);
        }
    }
    assert_true(n >= 200);
}

/* The cases that the contract names, one by one. */
static void passes(world *w, const char *name) {
    suite_run *r = world_keep(w, sizeof *r);
    r->url = "lab:";
    r->match = name;
    run_suite(w, r);
    assert_int_equal(r->passed, 1);
    assert_int_equal(r->failed, 0);
}

static void test_ack_work_item_none_deletes_without_enqueue(void **state) {
    passes(*state, __func__);
}
static void test_ack_orchestration_item_deletes_cancelled_activities(void **state) {
    passes(*state, __func__);
}
static void test_cancellation_of_locked_activity_causes_renewal_failure(void **state) {
    passes(*state, __func__);
}
static void test_cancellation_of_unlocked_activity_removes_from_queue(void **state) {
    passes(*state, __func__);
}
static void test_ack_work_item_fails_on_cancelled_row(void **state) {
    passes(*state, __func__);
}
static void test_ack_work_item_succeeds_if_row_exists(void **state) {
    passes(*state, __func__);
}
static void test_mass_cancellation_deletes_all_activities(void **state) {
    passes(*state, __func__);
}

/* The world's end looks at what was left. A run that has had too little memory says so, or some case fails. */
static void a_run_without_memory_leaves_nothing(void **state) {
    uint64_t whole = 0;
    (void)state;
    for (uint64_t n = 1; whole < 3; n++) {
        world *w = world_new(NULL, false);
        suite_run *r = world_keep(w, sizeof *r);
        assert_true(n < 2000);
        r->url = "lab:";
        r->match = "test_a_turn_commits_all_its_rows";
        w->memory.fail_at = w->memory.calls + n;
        run_suite(w, r);
        whole = w->memory.failures == 0 ? whole + 1 : 0; /* the run is over before the n-th allocation */
        if (whole > 0) assert_int_equal(r->passed, 1);
        w->memory.fail_at = 0;
        world_end(w);
    }
}

static void removed_cases_are_not_there(void **state) {
    static const char *const removed[] = {"_state_", "returns_running", "returns_terminal",
                                          "returns_missing"};
    const char *name;
    (void)state;
    for (size_t i = 0; (name = ebb_provider_case_at(i, NULL)) != NULL; i++)
        for (size_t k = 0; k < 4; k++) assert_null(strstr(name, removed[k]));
}

static void a_run_without_cases_is_an_error(void **state) {
    world *w = *state;
    suite_run *r = world_keep(w, sizeof *r);
    r->url = "lab:";
    r->match = "no such case";
    run_suite(w, r);
    assert_int_equal(r->status, EBB_ERR_INVALID);
    r->url = "mongo:x";
    run_suite(w, r);
    assert_int_equal(r->status, EBB_ERR_INVALID);
    assert_int_equal(ebb_provider_test(w->host, &(ebb_provider_test_opts){.url = "lab:"}, NULL, NULL),
                     EBB_ERR_INVALID); /* the host is no fiber */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(every_case_passes_in_memory),
        cmocka_unit_test(cases_have_names_of_their_own_and_say_what_they_hold),
        IN_UNTRACED_WORLD(test_ack_work_item_none_deletes_without_enqueue),
        IN_UNTRACED_WORLD(test_ack_orchestration_item_deletes_cancelled_activities),
        IN_UNTRACED_WORLD(test_cancellation_of_locked_activity_causes_renewal_failure),
        IN_UNTRACED_WORLD(test_cancellation_of_unlocked_activity_removes_from_queue),
        IN_UNTRACED_WORLD(test_ack_work_item_fails_on_cancelled_row),
        IN_UNTRACED_WORLD(test_ack_work_item_succeeds_if_row_exists),
        IN_UNTRACED_WORLD(test_mass_cancellation_deletes_all_activities),
        cmocka_unit_test(a_run_without_memory_leaves_nothing),
        cmocka_unit_test(removed_cases_are_not_there),
        IN_UNTRACED_WORLD(a_run_without_cases_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
