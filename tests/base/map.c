/* The hash map and the text builder of base/. */
#include "tests/support/trace_build.h"

#include "base/map.h"
#include "base/text.h"

enum { KEYS = 997 };

/* The map does what an array does, over many puts and removes. */
static void a_map_agrees_with_an_array(void **state) {
    (void)state;
    ebb__map m;
    uint64_t model[KEYS + 1] = {0};
    uint64_t random = 88172645463325252u;
    size_t n = 0;
    ebb__map_init(&m, libc_allocator(), sizeof(uint64_t));
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint64_t key = 1 + random % KEYS, what = random >> 32 & 3;
        uint64_t *found = ebb__map_find(&m, key);
        assert_true((found != NULL) == (model[key] != 0));
        if (found != NULL) assert_int_equal(*found, model[key]);
        if (what == 0 || (i / 20000 % 2 == 1 && what < 3)) {
            n -= model[key] != 0;
            model[key] = 0;
            ebb__map_remove(&m, key);
        } else {
            uint64_t *value = ebb__map_put(&m, key);
            assert_int_equal(*value, model[key]);
            n += model[key] == 0;
            *value = model[key] = random | 1;
        }
        assert_int_equal(m.n, n);
    }
    size_t at = 0, seen = 0;
    while (ebb__map_next(&m, &at) != NULL) seen++;
    assert_int_equal(seen, n);
    ebb__map_free(&m);
}

static void a_map_without_memory_stays_as_it_was(void **state) {
    (void)state;
    ebb_failing failing = {.inner = libc_allocator(), .fail_at = 2, .fail_after = true};
    ebb__map m;
    uint64_t n = 0;
    ebb__map_init(&m, ebb_failing_allocator(&failing), sizeof(uint64_t));
    assert_null(ebb__map_find(&m, 1));
    for (uint64_t *v; (v = ebb__map_put(&m, n + 1)) != NULL; n++) *v = n;
    assert_int_equal(n, 12);
    for (uint64_t i = 0; i < n; i++) assert_int_equal(*(uint64_t *)ebb__map_find(&m, i + 1), i);
    assert_non_null(ebb__map_put(&m, 3));
    ebb__map_free(&m);
    assert_int_equal(failing.live, 0);
}

static void numbers_and_ids_are_written_out(void **state) {
    (void)state;
    char out[200];
    ebb__text t = ebb__text_in(out, sizeof out);
    ebb__text_u64(&t, 0);
    ebb__text_str(&t, " ");
    ebb__text_u64(&t, UINT64_MAX);
    ebb__text_str(&t, " ");
    ebb__text_i64(&t, INT64_MIN);
    ebb__text_str(&t, " ");
    ebb__text_i64(&t, 42);
    ebb__text_str(&t, " ");
    ebb__text_hex(&t, 0xbeef, 8);
    ebb__text_str(&t, " ");
    ebb__text_hex(&t, UINT64_MAX, 99);
    ebb__text_str(&t, " ");
    ebb__text_id(&t, UINT64_C(255) << 56 | ID(12, 3));
    assert_string_equal(out,
                        "0 18446744073709551615 -9223372036854775808 42 0000beef ffffffffffffffff 255.12.3");
    assert_int_equal(t.n, strlen(out));
}

static void a_text_that_does_not_fit_ends_in_dots(void **state) {
    (void)state;
    for (size_t room = 4; room < 12; room++) {
        char out[12];
        memset(out, 'x', sizeof out);
        ebb__text t = ebb__text_in(out, room);
        ebb__text_str(&t, "abc");
        ebb__text_str(&t, "defgh");
        ebb__text_str(&t, "");
        if (room > 8) {
            assert_string_equal(out, "abcdefgh");
        } else {
            assert_int_equal(strlen(out), room - 1);
            assert_string_equal(out + room - 4, "...");
        }
        ebb__text_str(&t, "more than there is room");
        assert_string_equal(out + room - 4, "...");
        if (room < 12) assert_int_equal(out[room], 'x');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_agrees_with_an_array),
        cmocka_unit_test(a_map_without_memory_stays_as_it_was),
        cmocka_unit_test(numbers_and_ids_are_written_out),
        cmocka_unit_test(a_text_that_does_not_fit_ends_in_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
