/* Fingerprints: runs that differ only in the order of independent steps, in slab ids, turns or time
 * agree; every other difference shows. */
#include "tests/support/trace_build.h"

static bool equal(ebb_hash a, ebb_hash b) {
    return a.hi == b.hi && a.lo == b.lo;
}

/* Two tasks in two regions; a waits for the other to be told what the test wants to swap. */
#define LEFT  ID(3, 1)
#define RIGHT ID(4, 1)
#define A     ID(10, 1)
#define B     ID(11, 1)

static void two_regions(story *s) {
    begin_story(s);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = LEFT, .other = OUTER);
    SAY(s, EBB_EV_REGION_OPENED, EBB_REGION_OPEN, .region = RIGHT, .other = OUTER);
    spawn(s, A, LEFT, 0);
    spawn(s, B, RIGHT, 0);
}

static void completes(story *s, uint64_t task, uint64_t region, ebb_status st) {
    SAY(s, EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = task, .region = region, .value = STATUS(st));
}

static bool order_matters(const story *base, ebb_record x, ebb_record y) {
    story *one = malloc(sizeof *one), *two = malloc(sizeof *two);
    assert_non_null(one);
    assert_non_null(two);
    *one = *two = *base;
    say(one, x);
    say(one, y);
    say(two, y);
    say(two, x);
    bool same = equal(fingerprint_of(one), fingerprint_of(two));
    free(one);
    free(two);
    return !same;
}

static ebb_record masked(uint64_t task, uint64_t region, uint32_t depth) {
    return (ebb_record){EBB_EV_MASKED, EBB_TASK_RUNNING, .task = task, .region = region, .value = depth};
}

static ebb_record woken(uint64_t task, uint64_t region, uint64_t by) {
    return (ebb_record){EBB_EV_TASK_WOKEN, EBB_TASK_RUNNING, .task = task,
                        .region = region,  .value = 3,       .other = by};
}

static ebb_record reserved(uint64_t task, uint64_t region, uint64_t obligation) {
    return (ebb_record){EBB_EV_OBLIGATION_RESERVED, .task = task, .region = region, .other = obligation,
                        .value = 1};
}

static ebb_record cancelled(uint64_t region, uint8_t kind) {
    return (ebb_record){EBB_EV_REGION_CANCELLED, EBB_REGION_CLOSING, kind, CANCEL(1, 1), .region = region};
}

static void steps_of_two_tasks_are_independent(void **state) {
    (void)state;
    story s;
    two_regions(&s);
    assert_false(order_matters(&s, masked(A, LEFT, 1), masked(B, RIGHT, 1)));
    assert_false(order_matters(&s, woken(A, LEFT, 0), woken(B, RIGHT, 0)));
    assert_false(order_matters(&s, reserved(A, LEFT, ID(1, 1)), reserved(B, RIGHT, ID(2, 1))));
    assert_false(
        order_matters(&s, (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = A, .region = LEFT},
                      (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = B, .region = RIGHT}));
}

static void two_tasks_of_one_region_are_independent_until_they_end(void **state) {
    (void)state;
    story s;
    begin_story(&s);
    spawn(&s, A, OUTER, 0);
    spawn(&s, B, OUTER, 0);
    assert_false(order_matters(&s, masked(A, OUTER, 1), masked(B, OUTER, 1)));
    assert_false(order_matters(&s, reserved(A, OUTER, ID(1, 1)), reserved(B, OUTER, ID(2, 1))));
    assert_true(
        order_matters(&s, (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = A, .region = OUTER},
                      (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = B, .region = OUTER}));
}

static void steps_that_touch_one_object_are_dependent(void **state) {
    (void)state;
    story s;
    two_regions(&s);
    assert_true(order_matters(&s, masked(A, LEFT, 1), woken(A, LEFT, 0)));
    assert_true(order_matters(&s, woken(A, LEFT, B), masked(B, RIGHT, 1)));
    assert_true(order_matters(&s, reserved(A, LEFT, ID(1, 1)), masked(A, LEFT, 1)));
    assert_true(order_matters(
        &s,
        (ebb_record){EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = ID(20, 1), .region = LEFT, .value = KEEP},
        (ebb_record){EBB_EV_TASK_SPAWNED, EBB_TASK_CREATED, .task = ID(21, 1), .region = LEFT}));
    assert_true(order_matters(&s, (ebb_record){EBB_EV_REGION_CLOSING, EBB_REGION_CLOSING, .region = LEFT},
                              (ebb_record){EBB_EV_COMPLETED, EBB_TASK_COMPLETED, .task = A, .region = LEFT}));
    assert_true(order_matters(&s, (ebb_record){EBB_EV_REGION_CLOSED, EBB_REGION_CLOSED, .region = LEFT},
                              (ebb_record){EBB_EV_REGION_CLOSED, EBB_REGION_CLOSED, .region = RIGHT}));
}

static void cancels_have_an_ancestor_in_common(void **state) {
    (void)state;
    story s;
    two_regions(&s);
    assert_true(order_matters(&s, cancelled(LEFT, EBB_CANCEL_USER), cancelled(RIGHT, EBB_CANCEL_USER)));
    assert_true(order_matters(&s, cancelled(LEFT, EBB_CANCEL_PARENT), cancelled(RIGHT, EBB_CANCEL_PARENT)));
    assert_true(order_matters(&s, cancelled(OUTER, EBB_CANCEL_USER), cancelled(RIGHT, EBB_CANCEL_PARENT)));
    assert_true(order_matters(
        &s,
        (ebb_record){EBB_EV_CANCEL_REQUESTED, 3, EBB_CANCEL_USER, CANCEL(1, 1), .task = A, .region = LEFT},
        (ebb_record){EBB_EV_CANCEL_REQUESTED, 3, EBB_CANCEL_USER, CANCEL(1, 1), .task = B, .region = RIGHT}));
}

/* What a step does to one object reaches the others through a chain of wakes. */
static void an_early_difference_reaches_everything_that_follows_from_it(void **state) {
    (void)state;
    story one, two;
    two_regions(&one);
    two_regions(&two);
    say(&one, masked(A, LEFT, 1));
    say(&one, woken(B, RIGHT, A));
    say(&two, woken(B, RIGHT, A));
    say(&two, masked(A, LEFT, 1));
    assert_false(equal(fingerprint_of(&one), fingerprint_of(&two)));
}

static void what_the_host_alone_decides_does_not_count(void **state) {
    (void)state;
    story *s = good_story();
    ebb_hash before = fingerprint_of(s);
    for (size_t i = 0; i < s->n; i++) {
        ebb_record *r = &s->r[i];
        if (r->type == EBB_EV_TURN) r->task += 5;
        if (r->type == EBB_EV_TIME) r->other *= 3;
        if (r->type == EBB_EV_TASK_WOKEN) r->value = EBB_LANE_TIMED;
        if (r->type == EBB_EV_CANCEL_REQUESTED || r->type == EBB_EV_CANCEL_ACKED) r->other += 17, r->value++;
    }
    drop(s, EBB_EV_TASK_POLLED, 0);
    drop(s, EBB_EV_IDLE, 0);
    drop(s, EBB_EV_TEXT, 0);
    drop(s, EBB_EV_STALE_WAKE, 0);
    assert_true(equal(fingerprint_of(s), before));
    free(s);
}

static uint64_t renamed(uint64_t id) {
    return id == 0 ? 0 : id + ID(500, 7);
}

static void slab_ids_do_not_count(void **state) {
    (void)state;
    story *s = good_story();
    ebb_hash before = fingerprint_of(s);
    for (size_t i = 0; i < s->n; i++) {
        ebb_record *r = &s->r[i];
        if (r->type < EBB_EV_REGION_OPENED) continue;
        r->task = renamed(r->task);
        r->region = renamed(r->region);
        bool names = r->type == EBB_EV_REGION_OPENED || r->type == EBB_EV_TASK_WOKEN ||
                     r->type >= EBB_EV_OBLIGATION_RESERVED;
        if (names) r->other = renamed(r->other);
    }
    assert_true(equal(fingerprint_of(s), before));
    free(s);
}

/* Slots are used again; ended objects must count as before. */
static void a_slot_that_is_used_again_does_not_count(void **state) {
    (void)state;
    story one, two;
    begin_story(&one);
    begin_story(&two);
    for (uint32_t i = 1; i <= 50; i++) {
        uint64_t fresh = ID(100 + i, 1), reused = ID(100, i);
        spawn(&one, fresh, OUTER, 0);
        completes(&one, fresh, OUTER, i % 3 == 0 ? EBB_FAILED : EBB_OK);
        spawn(&two, reused, OUTER, 0);
        completes(&two, reused, OUTER, i % 3 == 0 ? EBB_FAILED : EBB_OK);
    }
    assert_true(equal(fingerprint_of(&one), fingerprint_of(&two)));
}

/* Each record whose meaning changes, one at a time, must change the sum. */
static void every_semantic_change_shows(void **state) {
    (void)state;
    story *s = good_story();
    ebb_hash before = fingerprint_of(s);
    for (size_t i = 0; i < s->n; i++) {
        ebb_record kept = s->r[i];
        uint8_t t = kept.type;
        if (t < EBB_EV_REGION_OPENED || t == EBB_EV_TASK_POLLED || t == EBB_EV_STALE_WAKE) continue;
        s->r[i].phase ^= 8;
        if (equal(fingerprint_of(s), before)) fail_msg("phase of %s (record %zu)", ebb_event_name(t), i);
        s->r[i] = kept;
        if (t == EBB_EV_COMPLETED || t == EBB_EV_FINALIZED || t == EBB_EV_REGION_CLOSED ||
            t == EBB_EV_MASKED) {
            s->r[i].value ^= 16;
            if (equal(fingerprint_of(s), before)) fail_msg("value of %s (record %zu)", ebb_event_name(t), i);
            s->r[i] = kept;
        }
        if (ebb_event_is_cancel(t)) {
            s->r[i].epoch ^= 0x20;
            if (equal(fingerprint_of(s), before))
                fail_msg("severity of %s (record %zu)", ebb_event_name(t), i);
            s->r[i] = kept;
        }
        drop_at(s, i);
        if (equal(fingerprint_of(s), before)) fail_msg("%s left out (record %zu)", ebb_event_name(t), i);
        insert_at(s, i, kept);
    }
    assert_true(equal(fingerprint_of(s), before));
    free(s);
}

/* Hosts agree on cancel, obligation, finalizer and end events, and on who is who; not on wakes, polls, masks. */
static void only_what_hosts_agree_on_counts_for_parity(void **state) {
    (void)state;
    story *s = good_story();
    ebb_hash before = parity_of(s);
    size_t counted = 0;
    assert_false(equal(before, fingerprint_of(s)));
    for (size_t i = 0; i < s->n; i++) {
        ebb_record kept = s->r[i];
        uint8_t t = kept.type;
        bool counts = ebb_event_is_cancel(t) || t == EBB_EV_COMPLETED || t == EBB_EV_REGION_CLOSED ||
                      t == EBB_EV_FAULTED ||
                      (t >= EBB_EV_OBLIGATION_RESERVED && t <= EBB_EV_FINALIZER_ABANDONED);
        s->r[i].phase ^= 8;
        if (equal(parity_of(s), before) == counts) fail_msg("phase of %s (record %zu)", ebb_event_name(t), i);
        s->r[i] = kept;
        counted += counts;
    }
    assert_true(counted > 10 && counted < s->n);
    free(s);
}

/* It stands in fixtures: a change of it is a change of the contract. */
static void the_good_story_has_this_fingerprint(void **state) {
    (void)state;
    story *s = good_story();
    ebb_hash h = fingerprint_of(s);
    assert_int_equal(h.hi, UINT64_C(0x827767dcaab59c1b));
    assert_int_equal(h.lo, UINT64_C(0x71bc25208704e708));
    free(s);
}

static void a_gap_leaves_no_fingerprint(void **state) {
    (void)state;
    ebb_fingerprint *f = ebb_fingerprint_new(libc_allocator());
    ebb_event gap = {.type = EBB_EV_GAP, .other = 1};
    ebb_hash h;
    ebb_fingerprint_event(f, &gap);
    assert_int_equal(ebb_fingerprint_end(f, &h), EBB_ERR_INVALID);
    ebb_fingerprint_free(f);
}

static void it_survives_each_allocation_that_fails(void **state) {
    (void)state;
    story *s = good_story();
    for (uint64_t n = 1;; n++) {
        ebb_failing failing = {.inner = libc_allocator(), .fail_at = n};
        ebb_fingerprint *f = ebb_fingerprint_new(ebb_failing_allocator(&failing));
        for (size_t i = 0; f != NULL && i < s->n; i++) {
            ebb_event ev = {.type = s->r[i].type,
                            .task_id = s->r[i].task,
                            .region_id = s->r[i].region,
                            .other = s->r[i].other};
            ebb_fingerprint_event(f, &ev);
        }
        ebb_hash h;
        if (f != NULL)
            assert_int_equal(ebb_fingerprint_end(f, &h), failing.failures == 0 ? EBB_OK : EBB_ERR_NOMEM);
        ebb_fingerprint_free(f);
        assert_int_equal(failing.live, 0);
        if (failing.failures == 0) break;
    }
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_two_tasks_are_independent),
        cmocka_unit_test(two_tasks_of_one_region_are_independent_until_they_end),
        cmocka_unit_test(steps_that_touch_one_object_are_dependent),
        cmocka_unit_test(cancels_have_an_ancestor_in_common),
        cmocka_unit_test(an_early_difference_reaches_everything_that_follows_from_it),
        cmocka_unit_test(what_the_host_alone_decides_does_not_count),
        cmocka_unit_test(slab_ids_do_not_count),
        cmocka_unit_test(a_slot_that_is_used_again_does_not_count),
        cmocka_unit_test(every_semantic_change_shows),
        cmocka_unit_test(only_what_hosts_agree_on_counts_for_parity),
        cmocka_unit_test(the_good_story_has_this_fingerprint),
        cmocka_unit_test(a_gap_leaves_no_fingerprint),
        cmocka_unit_test(it_survives_each_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
