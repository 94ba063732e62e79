/* The allocator that fails on demand, and what the kernel promises about memory. */
#include "tests/support/world.h"

static void it_counts_what_is_asked_for_and_what_lives(void **state) {
    (void)state;
    ebb_failing f = {.inner = ebb_libc_allocator()};
    ebb_allocator a = ebb_failing_allocator(&f);
    char *p = a.fn(a.ctx, NULL, 0, 10), *q = a.fn(a.ctx, NULL, 0, 20);
    assert_int_equal(f.calls, 2);
    assert_int_equal(f.live, 2);
    assert_int_equal(f.live_bytes, 30);
    p = a.fn(a.ctx, p, 10, 100); /* grows: counts */
    assert_int_equal(f.calls, 3);
    assert_int_equal(f.live_bytes, 120);
    p = a.fn(a.ctx, p, 100, 50); /* shrinks: never fails, does not count */
    assert_int_equal(f.calls, 3);
    assert_null(a.fn(a.ctx, p, 50, 0));
    assert_null(a.fn(a.ctx, q, 20, 0));
    assert_int_equal(f.live, 0);
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.failures, 0);
}

static void it_fails_the_nth_and_only_that_or_all_that_follow(void **state) {
    (void)state;
    for (int after = 0; after < 2; after++) {
        ebb_failing f = {.inner = ebb_libc_allocator(), .fail_at = 3, .fail_after = after};
        ebb_allocator a = ebb_failing_allocator(&f);
        void *p[5];
        for (int i = 0; i < 5; i++) p[i] = a.fn(a.ctx, NULL, 0, 8);
        for (int i = 0; i < 5; i++) assert_int_equal(p[i] == NULL, i == 2 || (after && i > 2));
        assert_int_equal(f.failures, after ? 3 : 1);
        for (int i = 0; i < 5; i++) {
            if (p[i] != NULL) (void)a.fn(a.ctx, p[i], 8, 0);
        }
        assert_int_equal(f.live, 0);
    }
}

static void a_failed_growth_leaves_the_block_as_it_was(void **state) {
    (void)state;
    ebb_failing f = {.inner = ebb_libc_allocator(), .fail_at = 2};
    ebb_allocator a = ebb_failing_allocator(&f);
    char *p = a.fn(a.ctx, NULL, 0, 4);
    memcpy(p, "abc", 4);
    assert_null(a.fn(a.ctx, p, 4, 4000));
    assert_string_equal(p, "abc");
    assert_int_equal(f.live, 1);
    assert_int_equal(f.live_bytes, 4);
    (void)a.fn(a.ctx, p, 4, 0);
}

/* ---- the kernel --------------------------------------------------------------------------------- */

static void a_runtime_that_can_not_be_made_leaves_nothing_behind(void **state) {
    (void)state;
    ebb_runtime *rt = NULL;
    uint64_t nth = 1;
    for (;; nth++) {
        ebb_failing f = {.inner = ebb_libc_allocator(), .fail_at = nth};
        ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&f)};
        ebb_status st = ebb_runtime_new(&o, &rt);
        if (st == EBB_OK) {
            ebb_runtime_free(rt);
            assert_int_equal(f.live, 0);
            break;
        }
        assert_int_equal(st, EBB_ERR_NOMEM);
        assert_null(rt);
        assert_int_equal(f.live, 0);
    }
    assert_true(nth > 3);
}

static void once_spawned_nothing_that_happens_to_a_task_needs_memory(void **state) {
    world *w = *state;
    enum { CROWD = 500 };
    ebb_region r[5];
    puppet *p[CROWD];
    for (int i = 0; i < 5; i++) r[i] = open_region(w, i == 0 ? w->root : r[i - 1]);
    for (int i = 0; i < CROWD; i++) {
        p[i] = puppet_start_with(w, r[i % 5], HEEDING,
                                 (ebb_task_opts){.keep = true, .deadline = i % 3 == 0 ? EBB_SECOND : 0});
    }
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
    world_settle(w);
    for (int i = 0; i < CROWD; i++) assert_int_equal(ebb_task_wake(w->host, p[i]->id), EBB_OK);
    for (int i = 0; i < CROWD; i += 2) ebb_task_cancel(w->host, p[i]->id, EBB_CANCEL_USER, "odd");
    world_pass(w, 10 * EBB_MS);
    ebb_region_close(w->host, r[4]);
    ebb_region_cancel(w->host, r[2], EBB_CANCEL_TIMEOUT, "inner");
    ebb_region_force(w->host, r[3]);
    world_settle(w);
    ebb_region_cancel(w->host, r[0], EBB_CANCEL_SHUTDOWN, "outer");
    world_settle(w);
    assert_int_equal(state_of(w, r[0]), EBB_REGION_CLOSED);
    assert_int_equal(stats_of(w).tasks, 0);
    w->memory.fail_at = 0;
}

static void what_needs_memory_says_so_and_changes_nothing(void **state) {
    world *w = *state;
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
    uint32_t made = 0;
    ebb_status st;
    do { /* until the room that there is has been used up */
        ebb_region extra = ebb_region_open(w->host, &(ebb_region_opts){.parent = r});
        st = ebb_id_status(extra.id);
        made += st == EBB_OK;
    } while (st == EBB_OK && made < 100000);
    assert_int_equal(st, EBB_ERR_NOMEM);
    assert_int_equal(stats_of(w).regions, 2 + made);
    made = 0;
    do {
        st = ebb_id_status(ebb_region_reserve(w->host, r, EBB_OBLIGATION_ACK, NULL, NULL).id);
        made += st == EBB_OK;
    } while (st == EBB_OK && made < 100000);
    assert_int_equal(st, EBB_ERR_NOMEM);
    assert_int_equal(stats_of(w).obligations, made);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, p), EBB_ERR_NOMEM);
    assert_int_equal(ebb_id_status(ebb_timer_arm(w->host, p->id, EBB_SECOND).id), EBB_ERR_NOMEM);
    assert_int_equal(report_of(w, r).status, EBB_OK);
    made = 0;
    do {
        st = ebb_id_status(ebb_spawn(w->host, r, puppet_poll, p).id);
        made += st == EBB_OK;
    } while (st == EBB_OK && made < 1000000);
    assert_int_equal(st, EBB_ERR_NOMEM);
    assert_int_equal(stats_of(w).tasks, 1 + made);
    assert_int_equal(report_of(w, r).status, EBB_ERR_NOMEM); /* a spawn's failure is the region's */
    w->memory.fail_at = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_what_is_asked_for_and_what_lives),
        cmocka_unit_test(it_fails_the_nth_and_only_that_or_all_that_follow),
        cmocka_unit_test(a_failed_growth_leaves_the_block_as_it_was),
        cmocka_unit_test(a_runtime_that_can_not_be_made_leaves_nothing_behind),
        IN_WORLD(once_spawned_nothing_that_happens_to_a_task_needs_memory),
        IN_WORLD(what_needs_memory_says_so_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
