/* Header fields, and the grammar that they are made of. */
#include <stdio.h>

#include "http/fields.h"
#include "tests/support/trace_build.h"

#define TEXT(text) (text), strlen(text)

typedef struct list {
    ebb_failing memory;
    ebb__arena arena;
    ebb__fields fields;
} list;

static void list_init(list *l) {
    *l = (list){.memory = {.inner = libc_allocator()}};
    ebb__arena_init(&l->arena, ebb_failing_allocator(&l->memory), 1024);
}

static void list_free(list *l) {
    ebb__arena_free(&l->arena);
    assert_int_equal(l->memory.live, 0);
}

static ebb_status add(list *l, const char *name, const char *value) {
    return ebb__fields_add(&l->fields, &l->arena, TEXT(name), TEXT(value));
}

/* "a=1 b=2", and their bytes are what RFC 9113 counts. */
static void assert_fields(const ebb__fields *f, const char *expected) {
    char text[1024] = "";
    size_t count = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const ebb__field *x = &f->at[i];
        assert_int_equal(x->name_n, strlen(x->name));
        assert_int_equal(x->value_n, strlen(x->value));
        count += 32 + strlen(x->name) + strlen(x->value);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s=%s", n > 0 ? " " : "", x->name, x->value);
    }
    assert_string_equal(text, expected);
    assert_int_equal(f->bytes, count);
}

/* ---- the list ------------------------------------------------------------------------------------------ */

static void fields_stay_in_order_with_names_in_lower_case(void **state) {
    list l;
    (void)state;
    list_init(&l);
    assert_fields(&l.fields, "");
    assert_int_equal(add(&l, "Content-TYPE", "Text/Plain"), EBB_OK);
    assert_int_equal(add(&l, "x", ""), EBB_OK);
    assert_int_equal(add(&l, "set-cookie", "a"), EBB_OK);
    assert_int_equal(add(&l, "Set-Cookie", "B"), EBB_OK);
    assert_fields(&l.fields, "content-type=Text/Plain x= set-cookie=a set-cookie=B");
    list_free(&l);
}

static void a_field_is_a_copy(void **state) {
    list l;
    char name[] = "name", value[] = "value";
    (void)state;
    list_init(&l);
    assert_int_equal(ebb__fields_add(&l.fields, &l.arena, name, 2, value, 3), EBB_OK);
    memset(name, 'x', sizeof name);
    memset(value, 'x', sizeof value);
    assert_fields(&l.fields, "na=val");
    list_free(&l);
}

static void the_first_of_a_name_is_found_whatever_its_case(void **state) {
    list l;
    (void)state;
    list_init(&l);
    assert_null(ebb__fields_find(&l.fields, TEXT("a")));
    assert_int_equal(add(&l, "accept", "1"), EBB_OK);
    assert_int_equal(add(&l, "accept-encoding", "2"), EBB_OK);
    assert_int_equal(add(&l, "accept", "3"), EBB_OK);
    assert_string_equal(ebb__fields_find(&l.fields, TEXT("ACCEPT"))->value, "1");
    assert_string_equal(ebb__fields_find(&l.fields, TEXT("Accept-Encoding"))->value, "2");
    assert_null(ebb__fields_find(&l.fields, TEXT("accep")));
    assert_null(ebb__fields_find(&l.fields, TEXT("")));
    list_free(&l);
}

static void all_of_a_name_are_taken_out(void **state) {
    list l;
    (void)state;
    list_init(&l);
    ebb__fields_remove(&l.fields, TEXT("a"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(add(&l, "a", "1"), EBB_OK);
        assert_int_equal(add(&l, "b", "2"), EBB_OK);
        assert_int_equal(add(&l, "aa", "3"), EBB_OK);
    }
    ebb__fields_remove(&l.fields, TEXT("a"));
    assert_fields(&l.fields, "b=2 aa=3 b=2 aa=3");
    ebb__fields_remove(&l.fields, TEXT("c"));
    ebb__fields_remove(&l.fields, TEXT("aa"));
    assert_fields(&l.fields, "b=2 b=2");
    ebb__fields_remove(&l.fields, TEXT("b"));
    assert_fields(&l.fields, "");
    list_free(&l);
}

static void a_list_grows(void **state) {
    enum { MANY = 5000 };
    list l;
    char name[16], value[16];
    (void)state;
    list_init(&l);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        snprintf(value, sizeof value, "v%d", i);
        assert_int_equal(add(&l, name, value), EBB_OK);
    }
    assert_int_equal(l.fields.n, MANY);
    for (int i = 0; i < MANY; i += 97) {
        snprintf(name, sizeof name, "N%d", i);
        snprintf(value, sizeof value, "v%d", i);
        assert_string_equal(ebb__fields_find(&l.fields, TEXT(name))->value, value);
    }
    list_free(&l);
}

/* The n-th allocation fails, for each n, and what was there is still there. */
static void a_field_without_memory_is_not_added(void **state) {
    uint64_t fails = 1;
    (void)state;
    for (;; fails++) {
        list l;
        uint32_t added = 0;
        ebb_status st = EBB_OK;
        list_init(&l);
        l.memory.fail_at = fails;
        while (added < 100 && (st = add(&l, "a-name", "a value that is not so short")) == EBB_OK) added++;
        assert_int_equal(l.fields.n, added);
        assert_int_equal(l.fields.bytes, added * (32 + 6 + 28));
        if (st != EBB_OK) assert_int_equal(st, EBB_ERR_NOMEM);
        if (st != EBB_OK) assert_int_equal(add(&l, "again", "1"), EBB_OK);
        list_free(&l);
        if (st == EBB_OK) break;
    }
    assert_in_range(fails, 5, 50);
}

static void a_list_that_can_not_be_counted_is_refused(void **state) {
    list l;
    (void)state;
    list_init(&l);
    assert_int_equal(add(&l, "a", "1"), EBB_OK);
    l.fields.bytes = UINT32_MAX - 32 - 4;
    assert_int_equal(add(&l, "abc", "12"), EBB_ERR_NOMEM);
    assert_int_equal(add(&l, "abcde", ""), EBB_ERR_NOMEM);
    assert_int_equal(ebb__fields_add(&l.fields, &l.arena, "a", SIZE_MAX, "b", SIZE_MAX), EBB_ERR_NOMEM);
    assert_int_equal(ebb__fields_add(&l.fields, &l.arena, "a", 1, "b", SIZE_MAX), EBB_ERR_NOMEM);
    assert_int_equal(add(&l, "abc", "1"), EBB_OK);
    assert_int_equal(l.fields.bytes, UINT32_MAX);
    assert_int_equal(add(&l, "", ""), EBB_ERR_NOMEM);
    assert_int_equal(l.fields.n, 2);
    list_free(&l);
}

/* ---- characters ---------------------------------------------------------------------------------------- */

static void a_token_is_made_of_the_characters_of_rfc_9110(void **state) {
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'b'};
        bool is = c != 0 && strchr(allowed, c) != NULL;
        assert_true(ebb__is_token(text, 3) == is);
        assert_true(ebb__is_token(text + 1, 1) == is);
    }
    assert_false(ebb__is_token("", 0));
    assert_true(ebb__is_token("a b", 1));
}

static void a_value_has_no_control_characters_and_no_blanks_around_it(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'b'};
        assert_true(ebb__is_field_value(text, 3) == ((c >= 32 && c != 127) || c == '\t'));
        assert_true(ebb__is_field_value(text + 1, 1) == (c > 32 && c != 127));
    }
    assert_true(ebb__is_field_value("", 0));
    assert_true(ebb__is_field_value(TEXT("a  b\tc")));
    assert_false(ebb__is_field_value(TEXT(" a")));
    assert_false(ebb__is_field_value(TEXT("a\t")));
    assert_false(ebb__is_field_value(TEXT("a\r\nx: y")));
}

/* Long values are looked at in pieces of eight characters. */
static void a_long_value_is_checked_at_every_place(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        for (size_t at = 1; at < 22; at++) {
            char text[24];
            memset(text, at % 2 ? 'a' : (char)0xe4, sizeof text - 1);
            text[0] = text[22] = '~';
            text[at] = (char)c;
            assert_true(ebb__is_field_value(text, 23) == ((c >= 32 && c != 127) || c == '\t'));
        }
    }
}

static void some_fields_are_not_for_users(void **state) {
    static const char *const ours[] = {
        "content-length",
        "Connection",
        "TRANSFER-ENCODING",
        "upgrade",
        "Keep-Alive",
        "proxy-connection",
        "TE",
        "trailer",
        "Host",
        "date",
        ":path",
        ":anything",
    };
    static const char *const theirs[] = {"content-type", "tea", "t", "dat", "server", "x-host", "", "expect"};
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) assert_true(ebb__field_is_ours(TEXT(ours[i])));
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        assert_false(ebb__field_is_ours(TEXT(theirs[i])));
    }
}

static void a_list_has_a_token_only_as_a_whole(void **state) {
    (void)state;
    assert_true(ebb__has_token("close", "close"));
    assert_true(ebb__has_token("Close, TE", "close"));
    assert_true(ebb__has_token("TE,close", "CLOSE"));
    assert_true(ebb__has_token(" ,, \tte\t ,x", "te"));
    assert_true(ebb__has_token("a, b, keep-alive  ", "keep-alive"));
    assert_false(ebb__has_token("", "close"));
    assert_false(ebb__has_token(" , ,", "close"));
    assert_false(ebb__has_token("closed", "close"));
    assert_false(ebb__has_token("not close", "close"));
    assert_false(ebb__has_token("clos,e", "close"));
    assert_false(ebb__has_token("a,,b", ""));
}

static void a_number_is_digits_only_and_fits(void **state) {
    static const struct {
        const char *text;
        uint64_t value;
    } right[] = {{"0", 0},
                 {"00", 0},
                 {"007", 7},
                 {"18446744073709551615", UINT64_MAX},
                 {"018446744073709551615", UINT64_MAX},
                 {"18446744073709551609", UINT64_MAX - 6},
                 {"9999999999999999999", UINT64_C(9999999999999999999)}};
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1,1",
                                        "0x1",
                                        "1e",
                                        "1.0",
                                        "١",
                                        "18446744073709551616",
                                        "99999999999999999999",
                                        "184467440737095516150"};
    uint64_t x;
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(ebb__parse_u64(TEXT(right[i].text), &x));
        assert_true(x == right[i].value);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(ebb__parse_u64(TEXT(wrong[i]), &x));
    }
    assert_true(ebb__parse_u64("12345", 3, &x));
    assert_int_equal(x, 123);
}

static void names_are_compared_without_regard_to_case(void **state) {
    (void)state;
    assert_true(ebb__same_name(TEXT("Abc-Z"), TEXT("aBC-z")));
    assert_true(ebb__same_name("", 0, "", 0));
    assert_false(ebb__same_name(TEXT("abc"), TEXT("abcd")));
    assert_false(ebb__same_name(TEXT("abc"), TEXT("abd")));
    assert_false(ebb__same_name("@", 1, "`", 1)); /* what stands beside the letters */
    assert_false(ebb__same_name("[", 1, "{", 1));
}

static void several_of_a_name_become_one(void **state) {
    list l;
    (void)state;
    list_init(&l);
    assert_int_equal(ebb__fields_join(&l.fields, &l.arena, TEXT("cookie"), "; "), EBB_OK);
    assert_int_equal(add(&l, "Cookie", "a=1"), EBB_OK);
    assert_int_equal(add(&l, "x", "y"), EBB_OK);
    assert_int_equal(add(&l, "cookie", ""), EBB_OK);
    assert_int_equal(add(&l, "cookies", "z"), EBB_OK);
    assert_int_equal(add(&l, "cookie", "b=2"), EBB_OK);
    uint32_t counted = l.fields.bytes;
    assert_int_equal(ebb__fields_join(&l.fields, &l.arena, TEXT("x"), "; "), EBB_OK);
    assert_int_equal(l.fields.n, 5);
    assert_int_equal(ebb__fields_join(&l.fields, &l.arena, TEXT("cookie"), "; "), EBB_OK);
    assert_int_equal(l.fields.n, 3);
    assert_string_equal(l.fields.at[0].value, "a=1; ; b=2");
    assert_int_equal(l.fields.at[0].value_n, 10);
    assert_string_equal(l.fields.at[1].value, "y");
    assert_string_equal(l.fields.at[2].name, "cookies");
    assert_int_equal(l.fields.bytes, counted); /* so much came */
    list_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_stay_in_order_with_names_in_lower_case),
        cmocka_unit_test(a_field_is_a_copy),
        cmocka_unit_test(the_first_of_a_name_is_found_whatever_its_case),
        cmocka_unit_test(all_of_a_name_are_taken_out),
        cmocka_unit_test(a_list_grows),
        cmocka_unit_test(a_field_without_memory_is_not_added),
        cmocka_unit_test(a_list_that_can_not_be_counted_is_refused),
        cmocka_unit_test(a_token_is_made_of_the_characters_of_rfc_9110),
        cmocka_unit_test(a_value_has_no_control_characters_and_no_blanks_around_it),
        cmocka_unit_test(a_long_value_is_checked_at_every_place),
        cmocka_unit_test(some_fields_are_not_for_users),
        cmocka_unit_test(a_list_has_a_token_only_as_a_whole),
        cmocka_unit_test(a_number_is_digits_only_and_fits),
        cmocka_unit_test(names_are_compared_without_regard_to_case),
        cmocka_unit_test(several_of_a_name_become_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
