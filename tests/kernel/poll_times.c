/* How long polls take: measured only while somebody looks. */
#include "tests/support/world.h"

#include "kernel/layer.h"

static uint64_t now;

static uint64_t the_clock(void *ctx) {
    (void)ctx;
    return now;
}

static ebb_status takes(ebb_cx *cx, void *arg) {
    (void)cx;
    now += *(uint64_t *)arg;
    return EBB_PENDING;
}

static ebb_runtime *a_runtime(void) {
    ebb_runtime *rt;
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 1, .clock = the_clock, .now = now};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
    return rt;
}

static void poll_once(ebb_runtime *rt, ebb_task t) {
    assert_int_equal(ebb_task_wake(ebb_runtime_host(rt), t), EBB_OK);
    (void)ebb_runtime_pump(rt, 10);
}

static void the_end(ebb_runtime *rt) {
    ebb_region_force(ebb_runtime_host(rt), ebb_runtime_root(rt));
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) {}
    ebb_runtime_free(rt);
}

static void polls_are_measured_from_the_first_look_until_its_time_is_over(void **state) {
    (void)state;
    now = EBB_SECOND;
    uint64_t since, slow = 500, quick = 20;
    ebb_runtime *rt = a_runtime();
    ebb__poll_time all, longest, one;
    ebb_task a = ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), takes, &slow);
    ebb_task b = ebb_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), takes, &quick);
    (void)ebb_runtime_pump(rt, 10);
    assert_false(ebb__poll_times_of(rt, &since, &all, &longest));

    uint64_t begin = now;
    assert_int_equal(ebb__poll_times_on(rt, 2000), EBB_OK);
    poll_once(rt, a);
    poll_once(rt, b);
    poll_once(rt, b);
    assert_true(ebb__poll_times_of(rt, &since, &all, &longest));
    assert_int_equal(since, begin);
    assert_int_equal(all.polls, 3);
    assert_int_equal(all.total_ns, 540);
    assert_int_equal(longest.task, a.id);
    assert_int_equal(longest.max_ns, 500);
    assert_true(ebb__poll_time_of(rt, b.id, &one));
    assert_int_equal(one.polls, 2);
    ebb__poll_time most[2];
    assert_int_equal(ebb__poll_times_most(rt, most, 2), 2);
    assert_true(most[0].task == a.id && most[1].task == b.id);
    assert_int_equal(ebb__poll_times_most(rt, most, 1), 1);
    assert_true(most[0].task == a.id);
    assert_int_equal(one.total_ns, 40);

    now = begin + 2001;
    poll_once(rt, b); /* the last one that is measured */
    assert_false(ebb__poll_times_of(rt, &since, &all, &longest));
    assert_false(ebb__poll_time_of(rt, b.id, &one));
    poll_once(rt, a);
    the_end(rt);
}

static void of_two_tasks_with_one_place_the_slower_one_has_it(void **state) {
    (void)state;
    now = EBB_SECOND;
    uint64_t slow = 500, quick = 20;
    ebb_runtime *rt = a_runtime();
    ebb_region root = ebb_runtime_root(rt);
    ebb__poll_time one;
    ebb_task first = ebb_spawn(ebb_runtime_host(rt), root, takes, &slow), last = first;
    for (int i = 0; i < 1024; i++) last = ebb_spawn(ebb_runtime_host(rt), root, takes, &quick);
    while (ebb_runtime_pump(rt, 2000) == EBB_PENDING) {}
    assert_int_equal((first.id >> 32) % 1024, (last.id >> 32) % 1024);

    assert_int_equal(ebb__poll_times_on(rt, EBB_SECOND), EBB_OK);
    poll_once(rt, last);
    assert_true(ebb__poll_time_of(rt, last.id, &one));
    poll_once(rt, first);
    poll_once(rt, last);
    assert_true(ebb__poll_time_of(rt, first.id, &one));
    assert_int_equal(one.total_ns, 500);
    assert_false(ebb__poll_time_of(rt, last.id, &one));
    the_end(rt);
}

static void without_a_clock_there_is_nothing_to_measure(void **state) {
    (void)state;
    ebb_runtime *rt;
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 1};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
    assert_int_equal(ebb__poll_times_on(rt, EBB_SECOND), EBB_ERR_INVALID);
    the_end(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polls_are_measured_from_the_first_look_until_its_time_is_over),
        cmocka_unit_test(of_two_tasks_with_one_place_the_slower_one_has_it),
        cmocka_unit_test(without_a_clock_there_is_nothing_to_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
