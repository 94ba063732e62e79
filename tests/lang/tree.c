/* The tree of a file has every byte of it, and formatting changes only what stands between the tokens. */
#include "tests/support/lang_world.h"

#include "lang/check.h"
#include "lang/source.h"

static void prints_back(const char *path) {
    lang_text text = lang_read(path), printed = lang_empty();
    ebb_lang *c = lang_new(NULL);
    ebb__source *s = ebb__source_add(c, path, "", text.s, text.n);
    assert_non_null(s);
    ebb__tree_print(s, s->root, lang_write, &printed);
    assert_int_equal(printed.n, text.n);
    assert_memory_equal(printed.s, text.s, text.n);
    ebb_lang_free(c);
    free(text.s);
    free(printed.s);
}

/* The tokens and the comments, each in a line; blanks in comments' ends do not count. */
static lang_text essence(const lang_text *text) {
    lang_text out = lang_empty();
    ebb_lang *c = lang_new(NULL);
    ebb__source *s = ebb__source_add(c, "x", "", text->s, text->n);
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->tokens.n; i++) {
        const ebb__token *t = ebb__token_at(s, i);
        for (; at < t->at; at++) {
            if (strchr(" \t\r\n", text->s[at]) == NULL) lang_write(&out, text->s + at, 1);
        }
        lang_write(&out, "\n", 1);
        lang_write(&out, text->s + t->at, t->n);
        at = t->at + t->n;
    }
    for (uint32_t i = 1; i < s->nodes.n; i++) {
        char kind[16];
        lang_write(&out, kind,
                   (size_t)snprintf(kind, sizeof kind, "%d ", EBB__VEC_AT(&s->nodes, ebb__syntax, i)->kind));
    }
    ebb_lang_free(c);
    return out;
}

static ebb_status format(const lang_text *text, lang_text *out) {
    ebb_lang *c = lang_new(NULL);
    *out = lang_empty();
    ebb_status st = ebb_lang_format(c, "x", text->s, text->n, lang_write, out);
    ebb_lang_free(c);
    return st;
}

static size_t formatted;

static void formats(const char *path) {
    lang_text text = lang_read(path), once, twice;
    if (format(&text, &once) == EBB_OK) {
        lang_text a = essence(&text), b = essence(&once);
        assert_string_equal(a.s, b.s);
        assert_int_equal(format(&once, &twice), EBB_OK);
        assert_string_equal(once.s, twice.s);
        free(a.s);
        free(b.s);
        free(twice.s);
        formatted++;
    }
    free(text.s);
    free(once.s);
}

static void is_formatted(const char *path) {
    lang_text text = lang_read(path), once;
    assert_int_equal(format(&text, &once), EBB_OK);
    assert_string_equal(text.s, once.s);
    free(text.s);
    free(once.s);
}

/* A seeded way to put each token on a line of its own, or all on one: both come to the same end. */
static void spread(const char *path) {
    lang_text text = lang_read(path), wide = lang_empty(), once, twice;
    ebb_lang *c = lang_new(NULL);
    ebb__source *s = ebb__source_add(c, "x", "", text.s, text.n);
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->tokens.n; i++) {
        const ebb__token *t = ebb__token_at(s, i);
        lang_write(&wide, text.s + at, t->at - at);
        bool inside = t->kind == EBB__T_FSTRING_MID || t->kind == EBB__T_FSTRING_END;
        bool hole = i > 0 && (ebb__token_at(s, i - 1)->kind == EBB__T_FSTRING_BEGIN || inside);
        bool shift = i > 0 && t->at == at && (t->kind == EBB__T_GT || t->kind == EBB__T_LT);
        if (i % 3 == 0 && !inside && !hole && !shift && memchr(text.s + at, '/', t->at - at) == NULL &&
            memchr(text.s + at, '"', t->at - at) == NULL)
            lang_write(&wide, "\n\n\n", i % 2 == 0 ? 1 : 3);
        lang_write(&wide, text.s + t->at, t->n);
        at = t->at + t->n;
    }
    ebb_lang_free(c);
    if (strchr(text.s, '"') == NULL || strstr(text.s, "f\"") == NULL) {
        assert_int_equal(format(&wide, &once), EBB_OK);
        assert_int_equal(format(&once, &twice), EBB_OK);
        assert_string_equal(once.s, twice.s);
        free(once.s);
        free(twice.s);
    }
    free(text.s);
    free(wide.s);
}

static void a_tree_prints_its_file_byte_for_byte(void **state) {
    (void)state;
    lang_each("examples/lang/*.ebb", prints_back);
    lang_each("fixtures/lang/*/*.ebb", prints_back);
}

static void formatting_keeps_tokens_comments_and_tree_and_is_idempotent(void **state) {
    (void)state;
    formatted = 0;
    lang_each("examples/lang/*.ebb", formats);
    lang_each("fixtures/lang/*/*.ebb", formats);
    assert_true(formatted > 100);
}

static void formatting_is_idempotent_whatever_the_lines_were(void **state) {
    (void)state;
    lang_each("examples/lang/*.ebb", spread);
}

static void the_examples_are_formatted(void **state) {
    (void)state;
    lang_each("examples/lang/*.ebb", is_formatted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_prints_its_file_byte_for_byte),
        cmocka_unit_test(formatting_keeps_tokens_comments_and_tree_and_is_idempotent),
        cmocka_unit_test(formatting_is_idempotent_whatever_the_lines_were),
        cmocka_unit_test(the_examples_are_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
