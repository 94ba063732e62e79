/* Status codes: one table, no value twice, a name and a text for each. */
#include "tests/support/world.h"

static const struct {
    ebb_status value;
    const char *name, *text;
} all[] = {
#define EBB_STATUS(name, value, text) {name, #name, text},
#include <ebb/status.def>
#undef EBB_STATUS
};
enum { STATUSES = sizeof all / sizeof *all };

static void every_value_is_unique_and_above_those_of_the_user(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        assert_true((int)all[i].value > (int)EBB_STATUS_USER);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(all[i].value, all[k].value);
            assert_string_not_equal(all[i].name, all[k].name);
            assert_string_not_equal(all[i].text, all[k].text);
        }
    }
}

static void only_ok_and_pending_are_not_negative(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        bool good = all[i].value == EBB_OK || all[i].value == EBB_PENDING;
        assert_int_equal((int)all[i].value >= 0, good);
    }
    assert_int_equal(EBB_OK, 0);
}

static void each_has_its_name_and_text(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        assert_string_equal(ebb_status_name(all[i].value), all[i].name);
        assert_string_equal(ebb_status_text(all[i].value), all[i].text);
        assert_true(strlen(all[i].text) > 1);
    }
}

static void what_is_not_ours_is_the_users(void **state) {
    (void)state;
    static const int others[] = {-1000, -1001, -99999, 2, 7777, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_string_equal(ebb_status_name((ebb_status)others[i]), "EBB_USER");
        assert_non_null(ebb_status_text((ebb_status)others[i]));
    }
}

static void an_error_fits_into_an_id(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        if ((int)all[i].value >= 0) continue;
        assert_int_equal(ebb_id_status((uint64_t) - (int64_t)all[i].value << 32), all[i].value);
    }
    assert_int_equal(ebb_id_status(0), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(UINT64_C(1) << 32 | 1), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_unique_and_above_those_of_the_user),
        cmocka_unit_test(only_ok_and_pending_are_not_negative),
        cmocka_unit_test(each_has_its_name_and_text),
        cmocka_unit_test(what_is_not_ours_is_the_users),
        cmocka_unit_test(an_error_fits_into_an_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
