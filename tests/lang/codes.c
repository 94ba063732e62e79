/* Every code has a program that raises it, and it alone, and one like it that is accepted. What is said about the first
 * is in CODE.txt. A fix, applied, gives a program without errors. */
#include "tests/support/lang_world.h"

static const char *const limits[] = {"E0110", "E0111"}; /* tests/lang/limits.c */

static bool is_limit(const char *code) {
    return strcmp(code, limits[0]) == 0 || strcmp(code, limits[1]) == 0;
}

static lang_text file_of(const char *code, const char *suffix, char *path, size_t room) {
    snprintf(path, room, "fixtures/lang/codes/%s%s", code, suffix);
    return lang_read(path);
}

static void each_code(void (*fn)(const char *code)) {
    const ebb_lang_code *code;
    size_t n = 0;
    for (size_t i = 0; (code = ebb_lang_code_at(i)) != NULL; i++) {
        if (is_limit(code->code)) continue;
        fn(code->code);
        n++;
    }
    assert_true(n >= 80);
}

static void raises(const char *code) {
    char path[128], wanted_path[128];
    lang_text bad = file_of(code, ".bad.ebb", path, sizeof path), said = lang_empty();
    lang_text wanted = file_of(code, ".txt", wanted_path, sizeof wanted_path);
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    size_t n;
    ebb_status st = ebb_lang_compile(c, strrchr(path, '/') + 1, bad.s, bad.n);
    assert_int_equal(st, code[0] == 'E' ? EBB_FAILED : EBB_OK);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(all[i]->code, code); /* no consequences */
        ebb_lang_render(c, all[i], lang_write, &said);
    }
    lang_check_places(c, bad.s, bad.n);
    assert_string_equal(said.s, wanted.s);
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(bad.s);
    free(wanted.s);
    free(said.s);
}

static void accepts(const char *code) {
    char path[128];
    lang_text ok = file_of(code, ".ok.ebb", path, sizeof path);
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    size_t n;
    ebb_status st = ebb_lang_compile(c, path, ok.s, ok.n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    if (st != EBB_OK || n > 0) fail_msg("%s: %s", path, all[0]->code);
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(ok.s);
}

/* Other diagnostics of the program stay; the one that is fixed is gone and no error has come. */
static size_t fixes_in(const char *path, const lang_text *bad, size_t *fixed) {
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    size_t n;
    (void)ebb_lang_compile(c, path, bad->s, bad->n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (all[i]->n_edits == 0) continue;
        lang_text text = lang_apply(bad->s, bad->n, all[i]);
        lang_modules again = {0};
        ebb_lang *d = lang_new(&again);
        size_t left, errors = 0;
        (void)ebb_lang_compile(d, path, text.s, text.n);
        const ebb_lang_diagnostic *const *rest = ebb_lang_diagnostics(d, &left);
        for (size_t k = 0; k < left; k++) errors += rest[k]->severity == EBB_LANG_ERROR;
        size_t others = 0;
        for (size_t k = 0; k < n; k++) others += k != i && all[k]->severity == EBB_LANG_ERROR;
        if (errors > others)
            fail_msg("the fix of %s in %s leaves %s:\n%s", all[i]->code, path, rest[0]->code, text.s);
        ++*fixed;
        ebb_lang_free(d);
        lang_modules_free(&again);
        free(text.s);
    }
    ebb_lang_free(c);
    lang_modules_free(&m);
    return n;
}

static size_t fixed;

static void fixes(const char *code) {
    char path[128];
    lang_text bad = file_of(code, ".bad.ebb", path, sizeof path);
    (void)fixes_in(path, &bad, &fixed);
    free(bad.s);
}

static void each_code_has_a_program_that_raises_it_alone(void **state) {
    (void)state;
    each_code(raises);
}

static void each_code_has_a_near_miss_that_is_accepted(void **state) {
    (void)state;
    each_code(accepts);
}

static void every_fix_applied_compiles(void **state) {
    (void)state;
    fixed = 0;
    each_code(fixes);
    assert_true(fixed >= 24);
}

/* `where` the send stands; `fixed`: what the fix makes of it, or NULL: there is none. */
static void an_error_is_declared_where_it_may_be(void **state) {
    (void)state;
    static const struct {
        const char *code, *before, *fixed;
    } rows[] = {
        {"E0307", "on Go { send(self, Go)?; }", "on Go -> stay | MachineError { send(self, Go)?; }"},
        {"E0307", "on Go -> S { send(self, Go)?; S }", "on Go -> S | MachineError { send(self, Go)?; S }"},
        {"E0307", "after 1s { send(self, Go)?; }", "after 1s -> stay | MachineError { send(self, Go)?; }"},
        {"E0307", "entry { send(self, Go)?; }", NULL},
        {"W0901", "on Go { send(self, Go); }", "on Go -> stay | MachineError { send(self, Go)?; }"},
        {"W0901", "on Go -> stay | MachineError { send(self, Go); }",
         "on Go -> stay | MachineError { send(self, Go)?; }"},
        {"W0901", "exit { send(self, Go); }", NULL},
        {"W0901",
         "on Go {} } } fn main() { send(T::spawn(), Go); } typestate V { fn new() -> V { V } state V {",
         "on Go {} } } fn main() -> () | MachineError { send(T::spawn(), Go)?; } "
         "typestate V { fn new() -> V { V } state V {"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        bool takes = strstr(rows[i].before, "on Go") != NULL;
        int head = snprintf(text, sizeof text, "type Go = {}\ntypestate T { fn new() -> S { S } %sstate S { ",
                            takes ? "" : "on Go {} ");
        snprintf(text + head, sizeof text - (size_t)head, "%s } }\n", rows[i].before);
        ebb_lang *c = lang_new(NULL);
        size_t n;
        (void)ebb_lang_compile(c, "x.ebb", text, strlen(text));
        const ebb_lang_diagnostic *d = NULL, *const *all = ebb_lang_diagnostics(c, &n);
        for (size_t k = 0; k < n; k++) d = strcmp(all[k]->code, rows[i].code) == 0 ? all[k] : d;
        if (d == NULL) fail_msg("row %zu: no %s", i, rows[i].code);
        assert_int_equal(d->n_edits > 0, rows[i].fixed != NULL);
        if (rows[i].fixed == NULL) assert_non_null(strstr(d->help, "match on the result"));
        if (rows[i].fixed != NULL) {
            lang_text fixed_text = lang_apply(text, strlen(text), d);
            size_t fixed_n = strlen(rows[i].fixed);
            if (fixed_text.n < (size_t)head + fixed_n ||
                memcmp(fixed_text.s + head, rows[i].fixed, fixed_n) != 0)
                fail_msg("row %zu: %s", i, fixed_text.s + head);
            free(fixed_text.s);
        }
        ebb_lang_free(c);
    }
}

static void each_code_is_explained_and_has_a_title_of_its_own(void **state) {
    (void)state;
    const ebb_lang_code *code;
    for (size_t i = 0; (code = ebb_lang_code_at(i)) != NULL; i++) {
        assert_true(strlen(code->title) > 3 && strlen(code->text) > 20);
        assert_ptr_equal(ebb_lang_explain(code->code), code);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(ebb_lang_code_at(k)->title, code->title);
    }
    assert_null(ebb_lang_explain("E9999"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_a_program_that_raises_it_alone),
        cmocka_unit_test(each_code_has_a_near_miss_that_is_accepted),
        cmocka_unit_test(every_fix_applied_compiles),
        cmocka_unit_test(an_error_is_declared_where_it_may_be),
        cmocka_unit_test(each_code_is_explained_and_has_a_title_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
