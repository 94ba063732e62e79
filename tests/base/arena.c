/* An arena: allocating moves a pointer, and everything goes in one step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include <ebb/ebb.h>

static const size_t CHUNK = 1024;

typedef struct counted {
    ebb_failing failing;
    ebb__arena arena;
} counted;

static counted *start(counted *c) {
    *c = (counted){.failing = {.inner = ebb_libc_allocator()}};
    ebb__arena_init(&c->arena, ebb_failing_allocator(&c->failing), CHUNK);
    return c;
}

static void end(counted *c) {
    ebb__arena_free(&c->arena);
    assert_int_equal(c->failing.live, 0);
    assert_int_equal(c->failing.live_bytes, 0);
}

static void every_allocation_is_aligned_and_its_own(void **state) {
    (void)state;
    counted c;
    uint8_t *blocks[200];
    start(&c);
    for (size_t i = 0; i < 200; i++) {
        size_t n = i % 37;
        blocks[i] = ebb__arena_alloc(&c.arena, n);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(long double), 0);
        memset(blocks[i], (int)i, n);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t k = 0; k < i % 37; k++) assert_int_equal(blocks[i][k], (uint8_t)i);
        if (i > 0) assert_ptr_not_equal(blocks[i], blocks[i - 1]);
    }
    end(&c);
}

static void small_ones_share_a_chunk(void **state) {
    (void)state;
    counted c;
    start(&c);
    assert_int_equal(c.failing.live, 0);
    for (int i = 0; i < 20; i++) assert_non_null(ebb__arena_alloc(&c.arena, 16));
    assert_int_equal(c.failing.live, 1);
    end(&c);
}

static void a_big_one_gets_its_own_chunk_and_the_one_in_hand_stays(void **state) {
    (void)state;
    counted c;
    start(&c);
    uint8_t *a = ebb__arena_alloc(&c.arena, 16);
    uint8_t *big = ebb__arena_alloc(&c.arena, 10 * CHUNK);
    uint8_t *b = ebb__arena_alloc(&c.arena, 16);
    assert_int_equal(c.failing.live, 2);
    assert_ptr_equal(b, a + 16);
    memset(big, 1, 10 * CHUNK);
    end(&c);
    start(&c); /* also as the very first */
    assert_non_null(ebb__arena_alloc(&c.arena, 10 * CHUNK));
    assert_non_null(ebb__arena_alloc(&c.arena, 16));
    end(&c);
}

static void zeroed_memory_is_zero_also_after_a_reset(void **state) {
    (void)state;
    counted c;
    start(&c);
    memset(ebb__arena_alloc(&c.arena, 200), 0xff, 200);
    ebb__arena_reset(&c.arena);
    const uint8_t *p = ebb__arena_zero(&c.arena, 200);
    for (int i = 0; i < 200; i++) assert_int_equal(p[i], 0);
    end(&c);
}

static void a_reset_keeps_one_chunk_and_allocates_nothing_for_the_next_round(void **state) {
    (void)state;
    counted c;
    start(&c);
    for (int i = 0; i < 100; i++) assert_non_null(ebb__arena_alloc(&c.arena, 100));
    assert_non_null(ebb__arena_alloc(&c.arena, 3 * CHUNK));
    assert_true(c.failing.live > 2);
    ebb__arena_reset(&c.arena);
    assert_int_equal(c.failing.live, 1);
    uint64_t calls = c.failing.calls;
    for (int i = 0; i < 8; i++) assert_non_null(ebb__arena_alloc(&c.arena, 100));
    assert_int_equal(c.failing.calls, calls);
    end(&c);
}

static void a_reset_of_nothing_is_nothing(void **state) {
    (void)state;
    counted c;
    start(&c);
    ebb__arena_reset(&c.arena);
    assert_non_null(ebb__arena_alloc(&c.arena, 3 * CHUNK));
    ebb__arena_reset(&c.arena);
    assert_int_equal(c.failing.live, 0);
    assert_non_null(ebb__arena_alloc(&c.arena, 1));
    end(&c);
}

static void without_memory_it_says_so_and_stays_as_it_was(void **state) {
    (void)state;
    counted c;
    start(&c);
    uint8_t *a = ebb__arena_alloc(&c.arena, 16);
    c.failing.fail_at = c.failing.calls + 1;
    c.failing.fail_after = true;
    assert_null(ebb__arena_alloc(&c.arena, 10 * CHUNK));
    assert_null(ebb__arena_zero(&c.arena, 10 * CHUNK));
    assert_ptr_equal(ebb__arena_alloc(&c.arena, 16), a + 16);
    while (ebb__arena_alloc(&c.arena, 16) != NULL) {}
    assert_int_equal(c.failing.live, 1);
    end(&c);
}

static void a_size_that_can_not_be_is_refused(void **state) {
    (void)state;
    counted c;
    start(&c);
    assert_non_null(ebb__arena_alloc(&c.arena, 16));
    assert_null(ebb__arena_alloc(&c.arena, SIZE_MAX));
    assert_null(ebb__arena_alloc(&c.arena, SIZE_MAX - 16));
    end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_is_aligned_and_its_own),
        cmocka_unit_test(small_ones_share_a_chunk),
        cmocka_unit_test(a_big_one_gets_its_own_chunk_and_the_one_in_hand_stays),
        cmocka_unit_test(zeroed_memory_is_zero_also_after_a_reset),
        cmocka_unit_test(a_reset_keeps_one_chunk_and_allocates_nothing_for_the_next_round),
        cmocka_unit_test(a_reset_of_nothing_is_nothing),
        cmocka_unit_test(without_memory_it_says_so_and_stays_as_it_was),
        cmocka_unit_test(a_size_that_can_not_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
