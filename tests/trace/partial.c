/* Captures: a trace that begins anywhere in a run that keeps every rule passes, and what begins in it is still checked. */
#include "tests/support/trace_build.h"

typedef struct verdict {
    ebb_status status;
    ebb_violation violation;
} verdict;

static verdict judge(const story *s, bool quiescent) {
    verdict v = {.status = EBB_OK};
    bytes b = file_of(s->r, s->n, false);
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_checker *c = ebb_checker_new(libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&reader, b.p, b.n), EBB_OK);
    while (v.status == EBB_OK && ebb_trace_reader_next(&reader, &ev) == EBB_OK)
        v.status = ebb_checker_event(c, &ev);
    if (v.status == EBB_OK) v.status = ebb_checker_end(c, quiescent);
    if (ebb_checker_violation(c) != NULL) v.violation = *ebb_checker_violation(c);
    ebb_checker_free(c);
    free(b.p);
    return v;
}

/* The story from record `from` on, as a capture has it. */
static story *cut(const story *whole, size_t from) {
    story *s = calloc(1, sizeof *s);
    assert_non_null(s);
    SAY(s, EBB_EV_TURN, .task = 1, .region = 1);
    SAY(s, EBB_EV_PRESENT, EBB_REGION_OPEN, .region = ROOT, .value = 1);
    for (size_t i = from; i < whole->n; i++) {
        if (i == from && whole->r[i].type == EBB_EV_TEXT) continue; /* of the event before */
        say(s, whole->r[i]);
    }
    return s;
}

static void a_capture_may_begin_anywhere_in_a_good_run(void **state) {
    story *whole = good_story();
    (void)state;
    for (size_t from = where(whole, EBB_EV_REGION_OPENED, 0) + 1; from <= whole->n; from++) {
        story *s = cut(whole, from);
        verdict v = judge(s, true);
        if (v.status != EBB_OK)
            fail_msg("cut before record %zu: %s, event %llu", from, v.violation.text,
                     (unsigned long long)v.violation.event.decision_seq);
        free(s);
    }
    free(whole);
}

/* ---- what begins in it is checked ------------------------------------------------------------------------ */

static void ends_twice(story *s) {
    size_t at = where(s, EBB_EV_COMPLETED, 0);
    insert_at(s, at, s->r[at]);
}
static void loses_a_finalizer(story *s) {
    drop(s, EBB_EV_FINALIZER_DONE, 0);
}
static void is_not_polled(story *s) {
    insert_at(s, where(s, EBB_EV_IDLE, 0),
              (ebb_record){.type = EBB_EV_TASK_WOKEN,
                           .phase = EBB_TASK_RUNNING,
                           .value = EBB_LANE_READY,
                           .task = POLITE,
                           .region = OUTER});
}
static void parent_was_not_asked(story *s) {
    drop(s, EBB_EV_REGION_CANCELLED, 0);
}
static void holds_at_its_end(story *s) {
    drop(s, EBB_EV_OBLIGATION_ABORTED, 0);
}
static void closes_with_a_task(story *s) {
    move(s, where(s, EBB_EV_COMPLETED, 0), s->n - 1);
}
static void is_unknown_afterwards(story *s) {
    SAY(s, EBB_EV_PRESENT, .region = ID(9, 9), .value = 1);
}

static void what_begins_in_a_capture_is_checked(void **state) {
    static const struct {
        void (*doctor)(story *s);
        ebb_oracle oracle;
    } cases[] = {
        {ends_twice, EBB_ORACLE_PHASE},
        {loses_a_finalizer, EBB_ORACLE_FINALIZERS_ONCE},
        {is_not_polled, EBB_ORACLE_LOST_WAKE},
        {parent_was_not_asked, EBB_ORACLE_PARENT_FIRST},
        {holds_at_its_end, EBB_ORACLE_OBLIGATION_LEAK},
        {closes_with_a_task, EBB_ORACLE_QUIESCENCE},
        {is_unknown_afterwards, EBB_ORACLE_FORMAT},
    };
    story *whole = good_story();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        story *s = cut(whole, where(whole, EBB_EV_REGION_OPENED, 0) + 1);
        cases[i].doctor(s);
        verdict v = judge(s, false);
        if (v.status != EBB_ERR_ORACLE || v.violation.oracle != cases[i].oracle)
            fail_msg("case %zu: found %s: %s", i, ebb_oracle_name(v.violation.oracle), v.violation.text);
        free(s);
    }
    free(whole);
}

/* Without `present` an unknown id is what it always was. */
static void a_trace_that_is_no_capture_knows_all_it_names(void **state) {
    story *whole = good_story(), *s = cut(whole, where(whole, EBB_EV_REGION_OPENED, 1) + 1);
    (void)state;
    drop(s, EBB_EV_PRESENT, 0);
    assert_int_equal(judge(s, false).violation.oracle, EBB_ORACLE_FORMAT);
    free(s);
    free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_may_begin_anywhere_in_a_good_run),
        cmocka_unit_test(what_begins_in_a_capture_is_checked),
        cmocka_unit_test(a_trace_that_is_no_capture_knows_all_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
