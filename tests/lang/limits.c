/* Limits have names, and memory that ends is a status. */
#include "tests/support/lang_world.h"

#include "lang/check.h"

static ebb_status compile(const lang_text *text, ebb_lang_opts opts, char first[8], size_t *n) {
    ebb_lang *c;
    opts.allocator = ebb_libc_allocator();
    assert_int_equal(ebb_lang_new(&opts, &c), EBB_OK);
    ebb_status st = ebb_lang_compile(c, "limit.ebb", text->s, text->n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, n);
    lang_check_places(c, text->s, text->n);
    first[0] = 0;
    if (*n > 0) snprintf(first, 8, "%s", all[*n - 1]->code);
    assert_int_equal(ebb_lang_compile(c, "again", "", 0), EBB_ERR_RESOLVED);
    ebb_lang_free(c);
    return st;
}

static void repeat(lang_text *t, const char *s, size_t times) {
    while (times-- > 0) lang_write(t, s, strlen(s));
}

static void a_file_that_is_too_large_is_refused(void **state) {
    (void)state;
    lang_text t = {calloc(1, EBB_LANG_MAX_BYTES + 2), EBB_LANG_MAX_BYTES + 1, EBB_LANG_MAX_BYTES + 2};
    char last[8];
    size_t n;
    memset(t.s, ' ', t.n);
    assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), EBB_FAILED);
    assert_string_equal(last, "E0110");
    t.n--;
    assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), EBB_OK);
    free(t.s);
}

static void errors_behind_the_limit_are_counted_and_not_shown(void **state) {
    (void)state;
    lang_text t = lang_empty();
    char last[8];
    size_t n;
    for (int i = 0; i < 500; i++) repeat(&t, "fn f() -> i64 { true }\n", 1);
    assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), EBB_FAILED);
    assert_int_equal(n, EBB_LANG_MAX_ERRORS + 1);
    assert_int_equal(compile(&t, (ebb_lang_opts){.max_errors = 7}, last, &n), EBB_FAILED);
    assert_int_equal(n, 8);
    free(t.s);
}

/* Marks stand below what they mark, and a label that is far from another one has its own piece of the line. */
static void of_a_long_line_the_part_around_the_mistake_is_shown(void **state) {
    (void)state;
    lang_text t = lang_empty(), said = lang_empty();
    lang_modules m = {0};
    size_t n;
    repeat(&t, "fn f() -> i64 { 1 } ", 1);
    repeat(&t, "/*\xc3\xa9*/ ", 200000);
    repeat(&t, "fn f() -> bool { true } ", 1);
    repeat(&t, "/*x*/ ", 200000);
    ebb_lang *c = lang_new(&m);
    assert_int_equal(ebb_lang_compile(c, "long.ebb", t.s, t.n), EBB_FAILED);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) ebb_lang_render(c, all[i], lang_write, &said);
    assert_true(said.n < 1000);
    assert_non_null(strstr(said.s, "1 | fn f() -> i64 { 1 } /*\xc3\xa9*/ "));
    assert_non_null(strstr(said.s, "...\n  |    - first here\n"));
    const char *again = strstr(said.s, "\n1 | ...");
    assert_non_null(again);
    const char *name = strstr(again, "f() -> bool"), *mark = strchr(strchr(again + 1, '\n'), '^');
    assert_non_null(name);
    size_t column = 0, marked = 0;
    for (const char *s = again + 1; s < name; s++) column += ((uint8_t)*s & 0xc0) != 0x80;
    while (mark[-1 - (ptrdiff_t)marked] != '\n') marked++;
    assert_int_equal(column, marked);
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(said.s);
    free(t.s);
}

static void whatever_nests_has_a_depth(void **state) {
    (void)state;
    static const struct {
        const char *before, *open, *middle, *close, *after;
    } shapes[] = {
        {"const X: i64 = ", "(", "1", ")", ";"},
        {"const X: i64 = ", "-", "1", "", ";"},
        {"const X: i64 = ", "1+", "1", "", ";"},
        {"const X: i64 = f", "(", "", ")", ";"},
        {"const X: i64 = a", ".b", "", "", ";"},
        {"type X = ", "[", "i64", "]", ""},
        {"type X = ", "Pending<", "i64", ">", ""},
        {"fn f() { ", "{", "", "}", "}"},
        {"fn f() { ", "if a {", "", "}", "}"},
        {"fn f() { match x { ", "(", "a", ")", " => 1, } }"},
        {"const X: [i64] = ", "[", "1", "]", ";"},
        {"fn f() { f\"", "{f\"", "", "\"}", "\"; }"},
        {"fn f() { ", "while true {", "", "}", "}"},
        {"fn f() { x", "[0]", "", "", "; }"},
        {"fn f() { x", "?", "", "", "; }"},
        {"/*", "/*", "", "*/", "*/"},
        {"const X: i64 = ", "match 1 { _ => ", "1", "}", ";"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        lang_text t = lang_empty();
        char last[8];
        size_t n;
        repeat(&t, shapes[i].before, 1);
        repeat(&t, shapes[i].open, 20000);
        repeat(&t, shapes[i].middle, 1);
        repeat(&t, shapes[i].close, 20000);
        repeat(&t, shapes[i].after, 1);
        ebb_status st = compile(&t, (ebb_lang_opts){0}, last, &n);
        assert_true(st == EBB_OK || st == EBB_FAILED);
        free(t.s);
    }
}

static void long_chains_of_declarations_do_not_recurse(void **state) {
    (void)state;
    lang_text t = lang_empty();
    char last[8], line[128];
    size_t n;
    for (int i = 0; i < 3000; i++) {
        snprintf(line, sizeof line, "type A%d = A%d\ntype R%d = { r: R%d }\nconst C%d: i64 = C%d + 1;\n", i,
                 i + 1, i, i + 1, i, i + 1);
        repeat(&t, line, 1);
    }
    repeat(&t, "type A3000 = i64\ntype R3000 = {}\nconst C3000: i64 = 0;\n", 1);
    assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), EBB_FAILED);
    free(t.s);
}

/* Arms are compared with those before them: that takes time, and no memory for those that differ. */
static void a_match_of_thousands_of_arms_takes_memory_for_each_once(void **state) {
    (void)state;
    ebb_failing f = {.inner = ebb_libc_allocator()};
    ebb_lang_opts opts = {.allocator = ebb_failing_allocator(&f)};
    lang_text t = lang_empty();
    char line[64];
    size_t n;
    ebb_lang *c;
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "type R%d = {}\n", i);
        repeat(&t, line, 1);
    }
    repeat(&t, "type U = R0", 1);
    for (int i = 1; i < 1000; i++) {
        snprintf(line, sizeof line, " | R%d", i);
        repeat(&t, line, 1);
    }
    repeat(&t, "\npub fn f(u: U, n: i64) -> i64 { let x = match n { ", 1);
    for (int i = 0; i < 3000; i++) {
        snprintf(line, sizeof line, "%d => 1, ", i);
        repeat(&t, line, 1);
    }
    repeat(&t, "_ => 0 }; match u { ", 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "R%d => x, ", i);
        repeat(&t, line, 1);
    }
    repeat(&t, "} }\n", 1);
    assert_int_equal(ebb_lang_new(&opts, &c), EBB_OK);
    assert_int_equal(ebb_lang_compile(c, "x.ebb", t.s, t.n), EBB_OK);
    (void)ebb_lang_diagnostics(c, &n);
    assert_int_equal(n, 0);
    assert_in_range(f.live_bytes, 1 << 20, 12 << 20);
    ebb_lang_free(c);
    free(t.s);
}

/* `n` parts of `one`, which has a number in it. */
static void numbered(lang_text *t, const char *one, int n) {
    char part[64];
    for (int i = 0; i < n; i++) {
        snprintf(part, sizeof part, one, i);
        repeat(t, part, 1);
    }
}

static void parts_have_limits(void **state) {
    (void)state;
    static const struct {
        const char *before, *one, *after;
    } shapes[] = {
        {"type R = { ", "a%d: i64, ", "}"},
        {"fn f(", "_a%d: i64, ", ") {}"},
        {"fn f() { let _t = (", "%d, ", "); }"},
        {"type T = (", "[i64], ", ")"},
        {"typestate M { fields { a: i64 } fn new(m: M::S) -> S { m } state S { fields { ", "a%d: i64, ",
         "} } }"},
        {"typestate M { fn new(m: M::S) -> S { m } fields { ", "a%d: i64, ", "} state S; }"},
        {"protocol P { msg M = { ", "a%d: i64, ", "} }"},
        {"fn f() { ", "let _a%d = 1; ", "}"},
        {"typestate M { fn new(m: M::S0) -> S0 { m } ", "state S%d; ", "}"},
    };
    static const int most[] = {200, 200, 200, 200,  199,
                               200, 200, 500, 16384}; /* 199: one is the typestate's */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int n = most[i]; n <= most[i] + 1; n++) {
            lang_text t = lang_empty();
            char last[8];
            size_t count;
            repeat(&t, shapes[i].before, 1);
            numbered(&t, shapes[i].one, n);
            repeat(&t, shapes[i].after, 1);
            (void)compile(&t, (ebb_lang_opts){0}, last, &count);
            bool refused = strcmp(last, "E0209") == 0;
            if (refused != (n > most[i])) fail_msg("%zu: %d: %s", i, n, last);
            free(t.s);
        }
    }
}

/* Of 5,000 states, the one behind each is declared before it; the last of them is final. */
static void a_path_through_thousands_of_states_is_followed_in_any_order(void **state) {
    (void)state;
    for (int forward = 0; forward < 2; forward++) {
        lang_text t = lang_empty();
        char last[8], line[96];
        size_t n;
        repeat(&t, "typestate T { fn new() -> S4999 { S4999 } @final state S0;\n", 1);
        for (int k = 1; k < 5000; k++) {
            int i = forward ? k : 5000 - k;
            snprintf(line, sizeof line, "state S%d { after 1s -> S%d { S%d } }\n", i, i - 1, i - 1);
            repeat(&t, line, 1);
        }
        repeat(&t, "state Lost; }", 1);
        assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), EBB_OK);
        assert_int_equal(n, 1);
        assert_string_equal(last, "W0903");
        free(t.s);
    }
}

static void a_mailbox_has_a_limit(void **state) {
    (void)state;
    static const char *const places[] = {"1", "65535", "0", "65536", "99999999999"};
    for (size_t i = 0; i < 5; i++) {
        lang_text t = lang_empty();
        char last[8];
        size_t n;
        repeat(&t, "typestate M { fn new() -> A { A } state A; mailbox ", 1);
        repeat(&t, places[i], 1);
        repeat(&t, "; }\n", 1);
        assert_int_equal(compile(&t, (ebb_lang_opts){0}, last, &n), i < 2 ? EBB_OK : EBB_FAILED);
        assert_string_equal(last, i < 2 ? "" : "E0103");
        free(t.s);
    }
}

/* The n-th allocation fails, for every n. */
static void exhaust(const char *path) {
    lang_text text = lang_read(path);
    for (uint64_t fail_at = 1;; fail_at++) {
        ebb_failing f = {.inner = ebb_libc_allocator(), .fail_at = fail_at, .fail_after = fail_at % 2 == 0};
        ebb_lang_opts opts = {.allocator = ebb_failing_allocator(&f)};
        ebb_lang *c;
        ebb_status st = ebb_lang_new(&opts, &c);
        if (st == EBB_OK) {
            st = ebb_lang_compile(c, path, text.s, text.n);
            lang_check_places(c, text.s, text.n);
            ebb_lang_free(c);
        }
        assert_int_equal(f.live, 0);
        if (f.failures == 0) break;
        assert_int_equal(st, EBB_ERR_NOMEM);
    }
    free(text.s);
}

static void memory_that_ends_is_a_status_and_nothing_leaks(void **state) {
    (void)state;
    lang_each("examples/lang/*.ebb", exhaust);
    exhaust("fixtures/lang/blocks/004_08_inter_machine.ebb");
}

static void options_are_checked(void **state) {
    (void)state;
    ebb_lang *c;
    ebb_lang_opts opts = {0};
    assert_int_equal(ebb_lang_new(&opts, &c), EBB_ERR_INVALID);
    opts = (ebb_lang_opts){.size = 1 << 20, .allocator = ebb_libc_allocator()};
    assert_int_equal(ebb_lang_new(&opts, &c), EBB_ERR_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
        cmocka_unit_test(errors_behind_the_limit_are_counted_and_not_shown),
        cmocka_unit_test(of_a_long_line_the_part_around_the_mistake_is_shown),
        cmocka_unit_test(whatever_nests_has_a_depth),
        cmocka_unit_test(a_match_of_thousands_of_arms_takes_memory_for_each_once),
        cmocka_unit_test(parts_have_limits),
        cmocka_unit_test(a_path_through_thousands_of_states_is_followed_in_any_order),
        cmocka_unit_test(a_mailbox_has_a_limit),
        cmocka_unit_test(long_chains_of_declarations_do_not_recurse),
        cmocka_unit_test(memory_that_ends_is_a_status_and_nothing_leaks),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
