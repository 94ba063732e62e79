/* Swap-remove arrays: against a set that knows where everybody stands. */
#include "tests/support/world.h"

#include "base/u32s.h"

static void two_stand_inline_and_more_move_out_together(void **state) {
    (void)state;
    ebb_failing f = {.inner = ebb_libc_allocator()};
    ebb_allocator a = ebb_failing_allocator(&f);
    ebb__u32s v;
    ebb__u32s_init(&v);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(ebb__u32s_reserve(&v, &a));
        assert_int_equal(ebb__u32s_push(&v, i + 1), i);
        assert_int_equal(f.live, i < 2 ? 0 : 1);
    }
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(ebb__u32s_data(&v)[i], i + 1);
    ebb__u32s_fini(&v, &a);
    assert_int_equal(f.live, 0);
    assert_int_equal(v.n, 0);
}

static void removing_moves_the_last_into_the_place_and_names_it(void **state) {
    (void)state;
    enum { ALL = 50 };
    ebb_allocator a = ebb_libc_allocator();
    ebb__u32s v;
    uint32_t pos[ALL + 1], seed = 7;
    ebb__u32s_init(&v);
    for (uint32_t i = 1; i <= ALL; i++) {
        assert_true(ebb__u32s_reserve(&v, &a));
        pos[i] = ebb__u32s_push(&v, i);
    }
    bool in[ALL + 1];
    memset(in, 1, sizeof in);
    for (uint32_t left = ALL; left > 0; left--) {
        uint32_t x;
        do {
            seed = seed * 1664525 + 1013904223;
            x = 1 + (seed >> 8) % ALL;
        } while (!in[x]);
        uint32_t moved = ebb__u32s_remove(&v, pos[x]);
        in[x] = false;
        if (moved != 0) pos[moved] = pos[x];
        assert_int_equal(v.n, left - 1);
        for (uint32_t i = 1; i <= ALL; i++) {
            if (in[i]) assert_int_equal(ebb__u32s_data(&v)[pos[i]], i);
        }
    }
    ebb__u32s_fini(&v, &a);
}

static void without_memory_it_stays_as_it_is(void **state) {
    (void)state;
    ebb_failing f = {.inner = ebb_libc_allocator()};
    ebb_allocator a = ebb_failing_allocator(&f);
    ebb__u32s v;
    ebb__u32s_init(&v);
    for (uint32_t i = 0; i < 40; i++) {
        f.fail_at = f.calls + 1;
        if (!ebb__u32s_reserve(&v, &a)) {
            for (uint32_t k = 0; k < v.n; k++) assert_int_equal(ebb__u32s_data(&v)[k], k + 1);
            f.fail_at = 0;
            assert_true(ebb__u32s_reserve(&v, &a));
        }
        (void)ebb__u32s_push(&v, i + 1);
    }
    assert_true(f.failures >= 3);
    ebb__u32s_fini(&v, &a);
    assert_int_equal(f.live, 0);
    assert_int_equal(f.live_bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stand_inline_and_more_move_out_together),
        cmocka_unit_test(removing_moves_the_last_into_the_place_and_names_it),
        cmocka_unit_test(without_memory_it_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
