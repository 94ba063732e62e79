/* Programs with a token deleted, doubled or swapped: the compiler never crashes, never hangs, and points inside of the file;
 * the tree still prints it; what has no error still formats. A seed gives the same programs. */
#include "tests/support/lang_world.h"
#include "tests/support/share.h"

#include "lang/check.h"
#include "lang/source.h"

enum { MUTANTS = 20000 / SHARE(10, 5) };

static char *paths[512];
static size_t n_paths;

static void remember(const char *path) {
    if (n_paths < 512) paths[n_paths++] = strdup(path);
}

static uint64_t next(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* The text with one to three tokens changed. */
static lang_text mutate(const lang_text *text, uint64_t *seed) {
    lang_text out = lang_empty();
    ebb_lang *c = lang_new(NULL);
    ebb__source *s = ebb__source_add(c, "x", "", text->s, text->n);
    uint32_t n = s->tokens.n - 1, at = 0, chosen[3], with = (uint32_t)(next(seed) % (n + 1));
    for (size_t i = 0; i < 3; i++) chosen[i] = (uint32_t)(next(seed) % (n + 1));
    uint64_t how = next(seed) % 3, times = next(seed) % 3;
    for (uint32_t i = 0; i < n; i++) {
        const ebb__token *t = ebb__token_at(s, i), *other = ebb__token_at(s, with);
        bool change = false;
        for (size_t k = 0; k <= times; k++) change = change || chosen[k] == i;
        lang_write(&out, text->s + at, t->at - at);
        if (!change || how == 1) lang_write(&out, text->s + t->at, t->n);
        if (change && how == 1) lang_write(&out, " ", 1), lang_write(&out, text->s + t->at, t->n);
        if (change && how == 2) lang_write(&out, text->s + other->at, other->n);
        at = t->at + t->n;
    }
    ebb_lang_free(c);
    return out;
}

static void compile(const lang_text *text) {
    lang_modules m = {0};
    lang_text said = lang_empty(), printed = lang_empty();
    ebb_lang *c = lang_new(&m);
    size_t n;
    ebb_status st = ebb_lang_compile(c, "mutant.ebb", text->s, text->n);
    assert_true(st == EBB_OK || st == EBB_FAILED);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    assert_true(st == EBB_OK || n > 0);
    lang_check_places(c, text->s, text->n);
    for (size_t i = 0; i < n; i++) ebb_lang_render(c, all[i], lang_write, &said);
    const ebb__source *s = ebb__source_at(c, 0);
    ebb__tree_print(s, s->root, lang_write, &printed);
    assert_int_equal(printed.n, text->n);
    assert_memory_equal(printed.s, text->s, text->n);
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(said.s);
    free(printed.s);
}

static void mutated_programs_neither_crash_nor_hang_nor_point_outside(void **state) {
    (void)state;
    uint64_t seed = 0x9e3779b97f4a7c15;
    lang_each("examples/lang/*.ebb", remember);
    lang_each("fixtures/lang/*/*.ebb", remember);
    for (size_t i = 0; i < MUTANTS; i++) {
        lang_text text = lang_read(paths[i % n_paths]);
        if (text.n < 16384) {
            lang_text mutant = mutate(&text, &seed);
            compile(&mutant);
            free(mutant.s);
        }
        free(text.s);
    }
    while (n_paths > 0) free(paths[--n_paths]);
}

static void files_cut_off_anywhere_are_compiled(void **state) {
    (void)state;
    lang_text text = lang_read("fixtures/lang/blocks/004_08_inter_machine.ebb");
    for (size_t n = 0; n <= text.n; n += 3) {
        lang_text cut = {text.s, n, 0};
        compile(&cut);
    }
    free(text.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutated_programs_neither_crash_nor_hang_nor_point_outside),
        cmocka_unit_test(files_cut_off_anywhere_are_compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
