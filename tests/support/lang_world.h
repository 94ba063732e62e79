/* What the tests of the compiler share: files, compilations, and diagnostics as text. Paths are below the root. */
#ifndef EBB_TESTS_LANG_WORLD_H
#define EBB_TESTS_LANG_WORLD_H

#include <ebb/ebb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

typedef struct lang_text {
    char *s;
    size_t n, room;
} lang_text;

static inline void lang_write(void *ctx, const char *s, size_t n) {
    lang_text *t = ctx;
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->s = realloc(t->s, t->room);
        assert_non_null(t->s);
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static inline lang_text lang_empty(void) {
    lang_text t = {calloc(1, 1), 0, 1};
    return t;
}

static inline bool lang_try_read(const char *path, lang_text *out) {
    char room[4096];
    size_t n;
    FILE *in = fopen(path, "rb");
    if (in == NULL) return false;
    *out = lang_empty();
    while ((n = fread(room, 1, sizeof room, in)) > 0) lang_write(out, room, n);
    fclose(in);
    return true;
}

static inline lang_text lang_read(const char *path) {
    lang_text t;
    if (!lang_try_read(path, &t)) fail_msg("can't read %s", path);
    return t;
}

/* Modules stand beside the programs of fixtures/lang/codes. */
typedef struct lang_modules {
    lang_text read[8];
    size_t n;
} lang_modules;

static inline ebb_status lang_load(void *ctx, const char *module, const char **text, size_t *n) {
    lang_modules *m = ctx;
    char path[256];
    snprintf(path, sizeof path, "fixtures/lang/codes/%s.ebb", module);
    if (m->n == 8 || !lang_try_read(path, &m->read[m->n])) return EBB_ERR_INVALID;
    *text = m->read[m->n].s;
    *n = m->read[m->n++].n;
    return EBB_OK;
}

static inline void lang_modules_free(lang_modules *m) {
    while (m->n > 0) free(m->read[--m->n].s);
}

static inline ebb_lang *lang_new(lang_modules *m) {
    ebb_lang *c;
    ebb_lang_opts opts = {.allocator = ebb_libc_allocator(), .load = lang_load, .load_ctx = m};
    assert_int_equal(ebb_lang_new(&opts, &c), EBB_OK);
    return c;
}

/* Every diagnostic points inside its file. */
static inline void lang_check_places(const ebb_lang *c, const char *text, size_t n) {
    size_t count;
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &count);
    (void)text;
    for (size_t i = 0; i < count; i++) {
        assert_in_range(all[i]->n_labels, 1, EBB_LANG_LABELS);
        for (size_t k = 0; k < all[i]->n_labels; k++) {
            const ebb_lang_label *l = &all[i]->labels[k];
            assert_true(l->line >= 1 && l->column >= 1);
            if (l->file == all[0]->labels[0].file) assert_true(l->at <= n && l->n <= n - l->at);
        }
        for (size_t k = 0; k < all[i]->n_edits; k++) {
            assert_true(all[i]->edits[k].at <= n && all[i]->edits[k].n <= n - all[i]->edits[k].at);
        }
    }
}

/* The text with the edits of a diagnostic. */
static inline lang_text lang_apply(const char *text, size_t n, const ebb_lang_diagnostic *d) {
    lang_text out = lang_empty();
    size_t at = 0;
    for (size_t i = 0; i < d->n_edits; i++) {
        assert_true(d->edits[i].at >= at);
        lang_write(&out, text + at, d->edits[i].at - at);
        lang_write(&out, d->edits[i].text, strlen(d->edits[i].text));
        at = d->edits[i].at + d->edits[i].n;
    }
    lang_write(&out, text + at, n - at);
    return out;
}

/* Calls `fn` for each file that matches; there has to be one. */
static inline void lang_each(const char *pattern, void (*fn)(const char *path)) {
    glob_t g;
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) fn(g.gl_pathv[i]);
    globfree(&g);
}

#endif
