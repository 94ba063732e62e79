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

/* ---- the blocks of the source document ---- */

/* The names of the kinds, as lang/tree.h lists them: "TYPE_PATH". */
static void read_kinds(char names[EBB__KINDS][16]) {
    lang_text header = lang_read("lang/tree.h");
    const char *at = strstr(header.s, "typedef enum ebb__kind {");
    for (uint32_t i = 0; i < EBB__KINDS; i++) {
        at = strstr(at, "\n    EBB__S_");
        assert_non_null(at);
        at += strlen("\n    EBB__S_");
        size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        assert_true(n < sizeof names[i]);
        memcpy(names[i], at, n);
        names[i][n] = 0;
    }
    assert_string_equal(names[EBB__S_HOLE], "HOLE");
    free(header.s);
}

/* A node a line, its children below it: the kind, the name or operator that it has, and of a leaf its text. */
static void dump(const ebb__source *s, uint32_t node, int depth, char names[EBB__KINDS][16], lang_text *out) {
    const ebb__syntax *x = ebb__syntax_at(s, node);
    char line[64];
    lang_write(out, line, (size_t)snprintf(line, sizeof line, "%*s%s", 2 * depth, "", names[x->kind]));
    ebb__span at = x->tok == 0 ? ebb__node_span(s, node) : ebb__token_span(s, x->tok);
    if (x->child == 0 || x->tok != 0) {
        lang_write(out, " ", 1);
        lang_write(out, s->text + at.at, at.n);
    }
    lang_write(out, "\n", 1);
    for (uint32_t child = x->child; child != 0; child = ebb__syntax_at(s, child)->next)
        dump(s, child, depth + 1, names, out);
}

static size_t blocks;

static void has_its_tree(const char *path) {
    char names[EBB__KINDS][16], tree[128];
    lang_text text = lang_read(path), found = lang_empty();
    snprintf(tree, sizeof tree, "%.*s.tree", (int)(strlen(path) - strlen(".ebb")), path);
    lang_text wanted = lang_read(tree);
    ebb_lang *c = lang_new(NULL);
    const ebb__source *s = ebb__source_add(c, path, "", text.s, text.n);
    read_kinds(names);
    dump(s, s->root, 0, names, &found);
    assert_string_equal(found.s, wanted.s);
    blocks++;
    ebb_lang_free(c);
    free(text.s);
    free(found.s);
    free(wanted.s);
}

static void each_block_of_the_source_has_its_tree(void **state) {
    (void)state;
    blocks = 0;
    lang_each("fixtures/lang/blocks/*.ebb", has_its_tree);
    assert_int_equal(blocks, 8);
}

/* ---- formatting ---- */

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
        cmocka_unit_test(each_block_of_the_source_has_its_tree),
        cmocka_unit_test(formatting_keeps_tokens_comments_and_tree_and_is_idempotent),
        cmocka_unit_test(formatting_is_idempotent_whatever_the_lines_were),
        cmocka_unit_test(the_examples_are_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
