/* Constant expressions are computed as the machine would, and what always traps is an error. */
#include "tests/support/lang_world.h"

#include "lang/check.h"

/* The diagnostic's code, or "" and the value of `const X: TYPE = EXPR;`. */
static const char *evaluate(const char *type, const char *expr, int64_t *out) {
    static char code[8];
    char text[256];
    size_t n;
    snprintf(text, sizeof text, "pub const X: %s = %s;\n", type, expr);
    ebb_lang *c = lang_new(NULL);
    (void)ebb_lang_compile(c, "x.ebb", text, strlen(text));
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    snprintf(code, sizeof code, "%s", n > 0 ? all[0]->code : "");
    for (uint32_t i = 0; i < c->check->decls.n; i++) {
        const ebb__decl *d = ebb__decl_at(&c->check->decls, i);
        if (n == 0 && d->kind == EBB__D_CONST) *out = d->value->i;
    }
    ebb_lang_free(c);
    return code;
}

static void constants_have_the_values_and_traps_of_the_machine(void **state) {
    (void)state;
    static const struct {
        const char *type, *expr, *code;
        int64_t value;
    } rows[] = {
        {"i64", "1 + 2 * 3", "", 7},
        {"i64", "-7 / 2", "", -3},
        {"i64", "-7 % 2", "", -1},
        {"i64", "-8 >> 1", "", -4},
        {"i64", "1 << 63", "", INT64_MIN},
        {"i64", "~0", "", -1},
        {"i64", "6 & 3 | 8 ^ 1", "", 11},
        {"i64", "-9223372036854775808", "", INT64_MIN},
        {"i64", "9223372036854775807 + 1", "E0312", 0},
        {"i64", "-9223372036854775808 - 1", "E0312", 0},
        {"i64", "-9223372036854775808 / -1", "E0312", 0},
        {"i64", "-9223372036854775808 * -1", "E0312", 0},
        {"i64", "4611686018427387904 * 2", "E0312", 0},
        {"i64", "4611686018427387904 * -2", "", INT64_MIN},
        {"i64", "3037000500 * 3037000500", "E0312", 0},
        {"i64", "3037000499 * 3037000499", "", INT64_C(9223372030926249001)},
        {"i64", "1 / 0", "E0312", 0},
        {"i64", "1 % 0", "E0312", 0},
        {"i64", "1 << 64", "E0312", 0},
        {"u64", "18446744073709551615", "", -1},
        {"u64", "18446744073709551615 + 1", "E0312", 0},
        {"u64", "4294967296 * 4294967296", "E0312", 0},
        {"u64", "4294967295 * 4294967297", "", -1},
        {"u64", "0 - 1", "E0312", 0},
        {"u64", "-1", "E0103", 0},
        {"i64", "9223372036854775808", "E0103", 0},
        {"i64", "0xff + 0b11 + 1_000", "", 1258},
        {"duration", "2min + 500ms", "", 120500},
        {"duration", "2s * 3", "", 6000},
        {"i64", "12q", "E0105", 0},
        {"i64", "0x", "E0105", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = 0;
        const char *code = evaluate(rows[i].type, rows[i].expr, &value);
        if (strcmp(code, rows[i].code) != 0 || value != rows[i].value)
            fail_msg("%s: %s %lld", rows[i].expr, code, (long long)value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(constants_have_the_values_and_traps_of_the_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
