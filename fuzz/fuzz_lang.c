/* fuzz/fuzz_lang.c - any bytes as a program: the compiler ends, points inside of the file, and what it formats it formats
 * again to the same text. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

#include "lang/check.h"
#include "lang/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { INPUT_MAX = 16384, OUTPUT_MAX = 1 << 22 };

typedef struct buffer {
    size_t n;
    char bytes[OUTPUT_MAX];
} buffer;

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void append(void *ctx, const char *s, size_t n) {
    buffer *b = ctx;
    if (n > sizeof b->bytes - b->n) n = sizeof b->bytes - b->n;
    memcpy(b->bytes + b->n, s, n);
    b->n += n;
}

static ebb_lang *begin(void) {
    ebb_lang *c;
    ebb_lang_opts opts = {.allocator = ebb_libc_allocator()};
    require(ebb_lang_new(&opts, &c) == EBB_OK, "no memory");
    return c;
}

static void compile(const char *text, size_t n) {
    static buffer said, printed;
    size_t count;
    said.n = printed.n = 0;
    ebb_lang *c = begin();
    ebb_status st = ebb_lang_compile(c, "fuzz.ebb", text, n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &count);
    require(st == EBB_OK || (st == EBB_FAILED && count > 0), "status");
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < all[i]->n_labels; k++)
            require(all[i]->labels[k].at <= n && all[i]->labels[k].n <= n - all[i]->labels[k].at,
                    "a place outside of the file");
        ebb_lang_render(c, all[i], append, &said);
        ebb_lang_render_json(all[i], append, &said);
    }
    const ebb__source *s = ebb__source_at(c, 0);
    ebb__tree_print(s, s->root, append, &printed);
    require(printed.n == n && memcmp(printed.bytes, text, n) == 0, "the tree is not the file");
    ebb_lang_free(c);
}

static void format(const char *text, size_t n) {
    static buffer once, twice;
    once.n = twice.n = 0;
    ebb_lang *c = begin();
    bool ok = ebb_lang_format(c, "fuzz.ebb", text, n, append, &once) == EBB_OK;
    ebb_lang_free(c);
    if (!ok || once.n == sizeof once.bytes) return;
    c = begin();
    require(ebb_lang_format(c, "fuzz.ebb", once.bytes, once.n, append, &twice) == EBB_OK,
            "what was formatted is no program");
    require(once.n == twice.n && memcmp(once.bytes, twice.bytes, once.n) == 0,
            "formatting is not idempotent");
    ebb_lang_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n > INPUT_MAX) return 0;
    compile((const char *)data, n);
    format((const char *)data, n);
    return 0;
}
