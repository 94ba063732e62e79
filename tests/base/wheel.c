/* The timer wheel against a plain model: what is due fires, in order, once, never early, and the work
 * of a turn is bounded. */
#include "tests/support/world.h"

#include "base/wheel.h"

enum { NODES = 300, DAY_S = 24 * 3600 };

typedef struct rec {
    uint32_t link, generation;
    ebb__node node;
} rec;

typedef struct model {
    ebb__slab slab;
    ebb__wheel wheel;
    ebb_allocator a;
    bool armed[NODES + 1];
    uint64_t due[NODES + 1];
    uint64_t now, seed, work;
    uint32_t fired;
} model;

static uint64_t random_u64(model *m) {
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return m->seed;
}

static uint64_t tick_up(uint64_t time) {
    return time / EBB__TICK + (time % EBB__TICK != 0);
}

static void up(model *m, uint64_t now) {
    memset(m, 0, sizeof *m);
    m->a = ebb_libc_allocator();
    m->seed = 0x9e3779b97f4a7c15;
    m->now = now;
    ebb__slab_init(&m->slab, sizeof(rec), 0, 5, 0);
    for (int i = 1; i <= NODES; i++) {
        assert_int_equal(ebb__slab_reserve(&m->slab, &m->a), EBB_OK);
        assert_int_equal(ebb__slab_take(&m->slab), i);
    }
    ebb__wheel_init(&m->wheel, now);
    ebb__wheel_source(&m->wheel, 0, &m->slab, offsetof(rec, node), false);
}

static void down(model *m) {
    ebb__slab_fini(&m->slab, &m->a);
}

static void arm(model *m, uint32_t i, uint64_t due) {
    ebb__wheel_arm(&m->wheel, ebb__wheel_ref(0, i), due);
    m->armed[i] = true;
    m->due[i] = due;
}

static void note_fired(model *m, uint32_t i) {
    if (!m->armed[i]) fail_msg("node %u fired and was not armed", i);
    if (m->due[i] > m->now) fail_msg("node %u fired early", i);
    m->armed[i] = false;
    m->fired++;
}

/* Turns to `now`, `at_once` nodes a call, and checks that all that is due fired, and nothing else. */
static void turn(model *m, uint64_t now, uint32_t at_once) {
    uint64_t order = 0;
    m->now = now;
    for (;;) {
        uint32_t work = at_once, ref = ebb__wheel_turn(&m->wheel, now, &work);
        m->work += at_once - work;
        if (ref == 0 && work > 0) break;
        if (ref == 0) continue;
        uint64_t tick = tick_up(m->due[ref]);
        if (tick < order) fail_msg("node %u fired after a later one", ref);
        order = tick;
        note_fired(m, ref);
        if (ebb__wheel_armed(&m->wheel, ref)) fail();
    }
    for (uint32_t i = 1; i <= NODES; i++) {
        assert_int_equal(ebb__wheel_armed(&m->wheel, ebb__wheel_ref(0, i)), m->armed[i]);
        if (m->armed[i] && tick_up(m->due[i]) <= now / EBB__TICK)
            fail_msg("node %u is due and did not fire", i);
    }
}

/* Spans of every magnitude, down to nothing. */
static uint64_t any_span(model *m, unsigned bits) {
    unsigned magnitude = (unsigned)(random_u64(m) % (bits + 1));
    return magnitude == 0 ? 0 : random_u64(m) >> (64 - magnitude);
}

static void random_work(model *m, uint32_t steps, unsigned arm_bits, unsigned step_bits, uint32_t at_once) {
    for (uint32_t s = 0; s < steps; s++) {
        uint32_t i = 1 + (uint32_t)(random_u64(m) % NODES);
        if (!m->armed[i]) {
            uint64_t span = any_span(m, arm_bits);
            arm(m, i, span > EBB_FOREVER - m->now ? EBB_FOREVER : m->now + span);
        } else if (random_u64(m) % 4 == 0) {
            ebb__wheel_disarm(&m->wheel, ebb__wheel_ref(0, i));
            m->armed[i] = false;
        }
        if (random_u64(m) % 3 == 0) turn(m, m->now + any_span(m, step_bits), at_once);
    }
}

static void random_arming_disarming_and_turning_agrees_with_a_plain_list(void **state) {
    (void)state;
    static const struct {
        uint64_t start;
        unsigned arm_bits, step_bits;
        uint32_t at_once;
    } runs[] = {
        {0, 24, 22, 100},                 /* milliseconds */
        {12345, 34, 30, 1},               /* seconds, one node a call */
        {999 * EBB_SECOND, 50, 44, 7},    /* days */
        {UINT64_C(1) << 60, 58, 50, 100}, /* years */
    };
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    for (size_t i = 0; i < 4; i++) {
        up(m, runs[i].start);
        random_work(m, 30000, runs[i].arm_bits, runs[i].step_bits, runs[i].at_once);
        assert_true(m->fired > 500);
        down(m);
    }
    free(m);
}

static void a_jump_of_days_fires_everything_in_order_with_little_work(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 0);
    for (uint32_t i = 1; i <= NODES; i++) arm(m, i, i * (DAY_S * EBB_SECOND / 10) + i);
    turn(m, 100 * (uint64_t)DAY_S * EBB_SECOND, 1000);
    assert_int_equal(m->fired, NODES);
    assert_true(m->work <= NODES * UINT64_C(8)); /* moved down at most seven times, and fired */
    assert_int_equal(ebb__wheel_next(&m->wheel), EBB_FOREVER);
    down(m);
    free(m);
}

static void the_far_future_has_its_slot_and_never_fires_early(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 5 * EBB_SECOND);
    arm(m, 1, EBB_FOREVER);
    arm(m, 2, EBB_FOREVER - EBB_MS);
    arm(m, 3, 0); /* long ago: due at once */
    turn(m, 5 * EBB_SECOND, 100);
    assert_false(m->armed[3]);
    for (unsigned bit = 33; bit < 64; bit++) turn(m, UINT64_C(1) << bit, 100);
    assert_true(m->armed[1] && m->armed[2]);
    assert_true(ebb__wheel_next(&m->wheel) <= EBB_FOREVER - EBB_MS + EBB_MS);
    turn(m, EBB_FOREVER - EBB_MS, 100);
    down(m);
    free(m);
}

static void a_turn_does_no_more_than_it_is_told_and_the_next_one_goes_on(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 0);
    for (uint32_t i = 1; i <= NODES; i++) arm(m, i, 100 * EBB_SECOND + i % 3);
    uint32_t calls = 0, fired = 0;
    m->now = 200 * EBB_SECOND;
    for (uint32_t work = 0; work == 0; calls++) {
        work = 10;
        for (uint32_t ref; (ref = ebb__wheel_turn(&m->wheel, m->now, &work)) != 0; fired++)
            note_fired(m, ref);
    }
    assert_int_equal(fired, NODES);
    assert_true(calls >= NODES / 10);
    assert_true(calls <= NODES * 8 / 10 + 1);
    down(m);
    free(m);
}

static void next_is_never_later_than_the_next_firing(void **state) {
    (void)state;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    up(m, 777);
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t i = 1 + (uint32_t)(random_u64(m) % NODES);
        if (!m->armed[i]) arm(m, i, m->now + any_span(m, 40));
        uint64_t first = EBB_FOREVER;
        for (uint32_t k = 1; k <= NODES; k++) {
            if (m->armed[k] && tick_up(m->due[k]) * EBB__TICK < first) first = tick_up(m->due[k]) * EBB__TICK;
        }
        uint64_t next = ebb__wheel_next(&m->wheel);
        if (next > first && next > m->now)
            fail_msg("next is %llu, a node fires at %llu", (unsigned long long)next,
                     (unsigned long long)first);
        turn(m, next > m->now ? next : m->now, 1000);
    }
    down(m);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_arming_disarming_and_turning_agrees_with_a_plain_list),
        cmocka_unit_test(a_jump_of_days_fires_everything_in_order_with_little_work),
        cmocka_unit_test(the_far_future_has_its_slot_and_never_fires_early),
        cmocka_unit_test(a_turn_does_no_more_than_it_is_told_and_the_next_one_goes_on),
        cmocka_unit_test(next_is_never_later_than_the_next_firing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
