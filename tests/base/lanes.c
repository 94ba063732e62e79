/* Run queues against a plain model: order, removal, holes, and that room once reserved is enough. */
#include "tests/support/world.h"

#include "base/run_queue.h"

enum { QUEUES = 5, MEMBERS = 400 };

/* The model: each queue as a list of members, in order. */
typedef struct model {
    ebb__run_queues lanes;
    ebb__queue queue[QUEUES];
    uint32_t list[QUEUES][MEMBERS];
    uint32_t n[QUEUES];
    uint32_t pos[MEMBERS + 1], where[MEMBERS + 1]; /* where: queue + 1; 0: in none */
    ebb_failing memory;
    ebb_allocator a;
    uint64_t seed, moves;
} model;

static void moved(void *ctx, uint32_t item, uint32_t pos) {
    model *m = ctx;
    m->pos[item] = pos;
    m->moves++;
}

static uint32_t below(model *m, uint32_t n) {
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (uint32_t)(m->seed >> 16) % n;
}

static void up(model *m, uint32_t members) {
    memset(m, 0, sizeof *m);
    m->memory.inner = ebb_libc_allocator();
    m->a = ebb_failing_allocator(&m->memory);
    m->seed = 0x1234567;
    ebb__run_queue_init(&m->lanes, m->queue, QUEUES, moved, m);
    assert_true(ebb__run_queue_reserve(&m->lanes, &m->a, members));
    m->memory.fail_at = m->memory.calls + 1; /* from here on there is no memory */
    m->memory.fail_after = true;
}

static void down(model *m) {
    assert_int_equal(m->memory.failures, 0);
    ebb__run_queue_fini(&m->lanes, &m->a);
    assert_int_equal(m->memory.live, 0);
}

static void push(model *m, uint32_t q, uint32_t item) {
    m->pos[item] = ebb__run_queue_push(&m->lanes, &m->queue[q], item);
    m->where[item] = q + 1;
    m->list[q][m->n[q]++] = item;
}

static void forget(model *m, uint32_t q, uint32_t at) {
    m->where[m->list[q][at]] = 0;
    memmove(&m->list[q][at], &m->list[q][at + 1], (--m->n[q] - at) * sizeof m->list[q][0]);
}

static void pop(model *m, uint32_t q) {
    uint32_t item = ebb__run_queue_pop(&m->lanes, &m->queue[q]);
    if (item != m->list[q][0]) fail_msg("popped %u, expected %u", item, m->list[q][0]);
    forget(m, q, 0);
}

static void take_out(model *m, uint32_t item) {
    uint32_t q = m->where[item] - 1, at = 0;
    while (m->list[q][at] != item) at++;
    ebb__run_queue_remove(&m->lanes, &m->queue[q], m->pos[item]);
    forget(m, q, at);
}

/* Every block is in a queue or spare, none twice, none lost. */
static void count_blocks(const model *m) {
    uint32_t blocks = 0;
    for (uint32_t b = m->lanes.spare; b != 0; b = ebb__run_queue_block(&m->lanes, b)->next) blocks++;
    for (uint32_t q = 0; q < QUEUES; q++) {
        for (uint32_t b = m->queue[q].head; b != 0; b = ebb__run_queue_block(&m->lanes, b)->next) blocks++;
        assert_int_equal(m->queue[q].count, m->n[q]);
    }
    assert_int_equal(blocks, m->lanes.total);
}

static void random_work(model *m, uint32_t members, uint32_t steps, uint32_t pushes, uint32_t removes) {
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t what = below(m, 100), item = 1 + below(m, members), q = below(m, QUEUES);
        if (what < pushes) {
            if (m->where[item] == 0) push(m, q, item);
        } else if (what < pushes + removes) {
            if (m->where[item] != 0) take_out(m, item);
        } else if (m->n[q] > 0) {
            pop(m, q);
        }
        if (i % 997 == 0) count_blocks(m);
    }
    count_blocks(m);
}

static void random_pushes_pops_and_removals_agree_with_a_plain_list(void **state) {
    (void)state;
    static const struct {
        uint32_t members, pushes, removes;
    } mixes[] = {{1, 50, 25},       {2, 60, 30},       {31, 50, 25},     {62, 50, 45},
                 {MEMBERS, 50, 25}, {MEMBERS, 55, 44}, {MEMBERS, 70, 29}};
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    uint64_t moves = 0;
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        up(m, mixes[i].members);
        random_work(m, mixes[i].members, 200000, mixes[i].pushes, mixes[i].removes);
        moves += m->moves;
        down(m);
    }
    assert_true(moves > 0); /* holes were closed */
    free(m);
}

static void removing_and_pushing_the_same_ones_for_ever_needs_no_more_room(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, MEMBERS);
    for (uint32_t i = 1; i <= MEMBERS; i++) push(m, i % QUEUES, i);
    for (uint32_t i = 0; i < 300000; i++) { /* always the youngest: the head never moves */
        uint32_t item = 1 + MEMBERS / 2 + i % (MEMBERS / 2);
        take_out(m, item);
        push(m, below(m, QUEUES), item);
        if (i % 9999 == 0) count_blocks(m);
    }
    for (uint32_t q = 0; q < QUEUES; q++) {
        while (m->n[q] > 0) pop(m, q);
    }
    count_blocks(m);
    down(m);
    free(m);
}

static void peeking_names_a_member_that_comes_later_or_nobody(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 100);
    for (uint32_t i = 1; i <= 100; i++) push(m, 0, i);
    for (uint32_t i = 1; i <= 100; i++) {
        uint32_t seen = ebb__run_queue_peek(&m->lanes, &m->queue[0], 12);
        assert_int_equal(seen, i + 12 <= 100 ? i + 12 : 0);
        pop(m, 0);
    }
    down(m);
    free(m);
}

static void reserving_without_memory_says_so_and_keeps_what_there_is(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 10);
    assert_true(ebb__run_queue_reserve(&m->lanes, &m->a, 10));
    assert_false(ebb__run_queue_reserve(&m->lanes, &m->a, 100000));
    assert_true(m->memory.failures > 0);
    m->memory.failures = 0;
    m->memory.fail_at = 0;
    assert_true(ebb__run_queue_reserve(&m->lanes, &m->a, MEMBERS));
    random_work(m, MEMBERS, 20000, 60, 30);
    down(m);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pushes_pops_and_removals_agree_with_a_plain_list),
        cmocka_unit_test(removing_and_pushing_the_same_ones_for_ever_needs_no_more_room),
        cmocka_unit_test(peeking_names_a_member_that_comes_later_or_nobody),
        cmocka_unit_test(reserving_without_memory_says_so_and_keeps_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
