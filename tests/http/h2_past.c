/* Closed streams of HTTP/2: what is remembered of them. */
#include "http/h2_closed.h"
#include "tests/support/trace_build.h"

static void ids_past_the_last_are_idle(void **state) {
    ebb__h2_past p = {0};
    (void)state;
    assert_int_equal(ebb__h2_past_of(&p, 1), EBB__H2_WAS_IDLE);
    ebb__h2_past_open(&p, 5);
    assert_int_equal(ebb__h2_past_of(&p, 7), EBB__H2_WAS_IDLE);
    assert_int_equal(ebb__h2_past_of(&p, INT32_MAX), EBB__H2_WAS_IDLE);
    ebb__h2_past_end(&p, 7);
    ebb__h2_past_open(&p, 7);
    assert_int_equal(ebb__h2_past_of(&p, 7), EBB__H2_WAS_OPENED);
}

static void a_stream_is_opened_and_then_ended(void **state) {
    ebb__h2_past p = {0};
    (void)state;
    for (int32_t id = 1; id < 100; id += 2) {
        ebb__h2_past_open(&p, id);
        assert_int_equal(ebb__h2_past_of(&p, id), EBB__H2_WAS_OPENED);
        if (id % 3 == 0) ebb__h2_past_end(&p, id);
    }
    for (int32_t id = 1; id < 100; id += 2)
        assert_int_equal(ebb__h2_past_of(&p, id), id % 3 == 0 ? EBB__H2_WAS_ENDED : EBB__H2_WAS_OPENED);
}

static void ids_only_rise(void **state) {
    ebb__h2_past p = {0};
    (void)state;
    ebb__h2_past_open(&p, 1);
    ebb__h2_past_open(&p, 9);
    for (int32_t id = 3; id < 9; id += 2) {
        assert_int_equal(ebb__h2_past_of(&p, id), EBB__H2_WAS_SKIPPED);
        ebb__h2_past_open(&p, id);
        ebb__h2_past_end(&p, id);
        assert_int_equal(ebb__h2_past_of(&p, id), EBB__H2_WAS_SKIPPED);
    }
    assert_int_equal(ebb__h2_past_of(&p, 1), EBB__H2_WAS_OPENED);
}

static void the_last_512_are_remembered(void **state) {
    ebb__h2_past p = {0};
    (void)state;
    for (int32_t id = 1; id < 10001; id += 2) {
        ebb__h2_past_open(&p, id);
        ebb__h2_past_end(&p, id);
    }
    int32_t oldest = p.last - 2 * (EBB__H2_PAST - 1);
    assert_int_equal(p.last, 9999);
    for (int32_t id = 1; id <= p.last; id += 2)
        assert_int_equal(ebb__h2_past_of(&p, id), id < oldest ? EBB__H2_WAS_FORGOTTEN : EBB__H2_WAS_ENDED);
}

/* A slot is that of another id after a jump, whatever it was before. */
static void a_jump_leaves_nothing_behind(void **state) {
    static const int32_t jumps[] = {2, 4, 510, 1022, 1024, 1026, 5000, 1 << 30};
    (void)state;
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        ebb__h2_past p = {0};
        for (int32_t id = 1; id < 2001; id += 2) {
            ebb__h2_past_open(&p, id);
            ebb__h2_past_end(&p, id);
        }
        int32_t before = p.last, last = before + jumps[i];
        ebb__h2_past_open(&p, last);
        for (int32_t id = last - 2; id > before && last - id < 2 * EBB__H2_PAST; id -= 2)
            assert_int_equal(ebb__h2_past_of(&p, id), EBB__H2_WAS_SKIPPED);
        assert_int_equal(ebb__h2_past_of(&p, last), EBB__H2_WAS_OPENED);
        bool far = jumps[i] >= 2 * EBB__H2_PAST;
        assert_int_equal(ebb__h2_past_of(&p, before), far ? EBB__H2_WAS_FORGOTTEN : EBB__H2_WAS_ENDED);
    }
}

static void the_largest_id_is_one_as_others(void **state) {
    ebb__h2_past p = {0};
    (void)state;
    ebb__h2_past_open(&p, 1);
    ebb__h2_past_open(&p, INT32_MAX);
    assert_int_equal(ebb__h2_past_of(&p, INT32_MAX), EBB__H2_WAS_OPENED);
    assert_int_equal(ebb__h2_past_of(&p, INT32_MAX - 2), EBB__H2_WAS_SKIPPED);
    assert_int_equal(ebb__h2_past_of(&p, 1), EBB__H2_WAS_FORGOTTEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_past_the_last_are_idle),
        cmocka_unit_test(a_stream_is_opened_and_then_ended),
        cmocka_unit_test(ids_only_rise),
        cmocka_unit_test(the_last_512_are_remembered),
        cmocka_unit_test(a_jump_leaves_nothing_behind),
        cmocka_unit_test(the_largest_id_is_one_as_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
