/* Slabs: ids that can't dangle, records that never move. */
#include "tests/support/world.h"

#include "base/slab.h"

typedef struct rec {
    uint32_t link, generation;
    uint64_t value;
} rec;

typedef struct cellar {
    ebb_failing memory;
    ebb_allocator a;
    ebb__slab s;
} cellar;

static void up(cellar *c, uint32_t shift, uint32_t limit) {
    *c = (cellar){.memory.inner = ebb_libc_allocator()};
    c->a = ebb_failing_allocator(&c->memory);
    ebb__slab_init(&c->s, sizeof(rec), 16, shift, limit);
}

static void down(cellar *c) {
    ebb__slab_fini(&c->s, &c->a);
    assert_int_equal(c->memory.live, 0);
    assert_int_equal(c->memory.live_bytes, 0);
}

static uint32_t take(cellar *c) {
    assert_int_equal(ebb__slab_reserve(&c->s, &c->a), EBB_OK);
    return ebb__slab_take(&c->s);
}

static void records_are_aligned_apart_and_do_not_move(void **state) {
    (void)state;
    cellar c;
    up(&c, 3, 0);
    rec *at[100];
    for (uint32_t i = 1; i < 100; i++) {
        assert_int_equal(take(&c), i); /* 0 is never used */
        at[i] = ebb__slab_at(&c.s, i);
        at[i]->value = i;
        if (i % 8 == 0) assert_int_equal((uintptr_t)at[i] % 64, 0);
        assert_int_equal(at[i]->generation, 1);
    }
    for (uint32_t i = 1; i < 100; i++) {
        assert_ptr_equal(ebb__slab_at(&c.s, i), at[i]);
        assert_int_equal(at[i]->value, i);
    }
    down(&c);
}

static void a_freed_slot_is_reused_last_in_first_out_with_a_new_generation(void **state) {
    (void)state;
    cellar c;
    up(&c, 3, 0);
    for (int i = 0; i < 4; i++) (void)take(&c);
    ebb__slab_give(&c.s, 2);
    ebb__slab_give(&c.s, 4);
    assert_int_equal(c.s.live, 2);
    assert_int_equal(take(&c), 4);
    assert_int_equal(take(&c), 2);
    assert_int_equal(((rec *)ebb__slab_at(&c.s, 2))->generation, 2);
    assert_int_equal(((rec *)ebb__slab_at(&c.s, 1))->generation, 1);
    down(&c);
}

static void a_slot_whose_generations_are_used_up_is_retired(void **state) {
    (void)state;
    cellar c;
    up(&c, 3, 0);
    uint32_t i = take(&c);
    ((rec *)ebb__slab_at(&c.s, i))->generation = UINT32_MAX - 1;
    ebb__slab_give(&c.s, i);
    assert_int_equal(c.s.retired, 0);
    assert_int_equal(take(&c), i);
    assert_int_equal(((rec *)ebb__slab_at(&c.s, i))->generation, UINT32_MAX);
    ebb__slab_give(&c.s, i);
    assert_int_equal(c.s.retired, 1);
    for (int k = 0; k < 20; k++) assert_int_not_equal(take(&c), i);
    down(&c);
}

static void a_limit_is_kept_and_space_below_it_is_found_again(void **state) {
    (void)state;
    cellar c;
    up(&c, 3, 10);
    for (int i = 0; i < 10; i++) (void)take(&c);
    assert_int_equal(ebb__slab_reserve(&c.s, &c.a), EBB_ERR_LIMIT);
    assert_int_equal(ebb__slab_room(&c.s), 0);
    ebb__slab_give(&c.s, 3);
    assert_int_equal(ebb__slab_room(&c.s), 1);
    assert_int_equal(take(&c), 3);
    down(&c);
}

static void room_is_what_can_be_taken_without_asking(void **state) {
    (void)state;
    cellar c;
    up(&c, 3, 0);
    assert_int_equal(ebb__slab_room(&c.s), 0);
    for (uint32_t round = 0; round < 5; round++) {
        (void)take(&c);
        uint32_t room = ebb__slab_room(&c.s);
        c.memory.fail_at = c.memory.calls + 1;
        c.memory.fail_after = true;
        for (uint32_t i = 0; i < room; i++) {
            assert_true(ebb__slab_ready(&c.s));
            (void)take(&c);
        }
        assert_false(ebb__slab_ready(&c.s));
        c.memory.fail_at = 0;
    }
    down(&c);
}

static void without_memory_nothing_changes(void **state) {
    (void)state;
    cellar c;
    up(&c, 2, 0);
    for (uint64_t nth = 1; nth <= 40; nth++) {
        uint32_t live = c.s.live;
        c.memory.fail_at = c.memory.calls + 1;
        ebb_status st = ebb__slab_reserve(&c.s, &c.a);
        c.memory.fail_at = 0;
        assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
        assert_int_equal(c.s.live, live);
        if (st == EBB_ERR_NOMEM) assert_int_equal(ebb__slab_reserve(&c.s, &c.a), EBB_OK);
        (void)ebb__slab_take(&c.s);
    }
    assert_true(c.memory.failures > 5);
    down(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_aligned_apart_and_do_not_move),
        cmocka_unit_test(a_freed_slot_is_reused_last_in_first_out_with_a_new_generation),
        cmocka_unit_test(a_slot_whose_generations_are_used_up_is_retired),
        cmocka_unit_test(a_limit_is_kept_and_space_below_it_is_found_again),
        cmocka_unit_test(room_is_what_can_be_taken_without_asking),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
