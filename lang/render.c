/* lang/render.c - a diagnostic as people read it, and as JSON. */
#include <string.h>

#include "base/text.h"
#include "lang/diag.h"
#include "lang/literal.h"
#include "lang/source.h"

typedef struct writer {
    ebb_lang_write_fn *write;
    void *ctx;
} writer;

enum { PLACE_COLUMN = 56, LINE_WIDTH = 160, LINE_BEFORE = 60 }; /* of a line, in bytes */

#define CUT "..."

static void put(const writer *w, const char *s) {
    w->write(w->ctx, s, strlen(s));
}

static void put_n(const writer *w, const char *s, size_t n) {
    w->write(w->ctx, s, n);
}

static void put_number(const writer *w, uint64_t x) {
    char room[24];
    ebb__text t = ebb__text_in(room, sizeof room);
    ebb__text_u64(&t, x);
    put_n(w, room, t.n);
}

static void repeat(const writer *w, const char *s, size_t times) {
    while (times-- > 0) put(w, s);
}

static size_t digits(uint32_t x) {
    size_t n = 1;
    while (x >= 10) x /= 10, n++;
    return n;
}

/* ---- for people ---- */

static const ebb__source *source_of(const ebb_lang *c, const ebb_lang_label *l) {
    for (uint32_t i = 0; i < c->sources.n; i++) {
        if (ebb__source_at(c, i)->path == l->file) return ebb__source_at(c, i);
    }
    return ebb__source_at(c, 0);
}

static void put_place(const writer *w, const ebb_lang_label *l) {
    put(w, l->file);
    put(w, ":");
    put_number(w, l->line);
    put(w, ":");
    put_number(w, l->column);
}

static void put_head(const writer *w, const ebb_lang_diagnostic *d) {
    size_t n = strlen(d->code) + 1 + strlen(d->message);
    put(w, d->code);
    put(w, " ");
    put(w, d->message);
    repeat(w, " ", n + 2 < PLACE_COLUMN ? PLACE_COLUMN - n : 2);
    put_place(w, &d->labels[0]);
    put(w, "\n");
}

/* What is shown of a line: all of it, or if it is long, what stands around the label. */
typedef struct window {
    const char *text;
    uint32_t n, at; /* `at` is where the label begins */
    bool cut_before, cut_behind;
} window;

static bool is_inside(const char *text, uint32_t at) {
    return ((uint8_t)text[at] & 0xc0) == 0x80;
}

static window window_of(const ebb__source *s, const ebb_lang_label *l) {
    window v = {0};
    v.text = ebb__source_line(s, l->line, &v.n);
    v.at = l->column - 1 < v.n ? l->column - 1 : v.n;
    if (v.n <= LINE_WIDTH) return v;
    uint32_t from = v.at > LINE_BEFORE ? v.at - LINE_BEFORE : 0;
    if (v.n - from < LINE_WIDTH) from = v.n - LINE_WIDTH;
    uint32_t end = from + LINE_WIDTH;
    while (from < v.at && is_inside(v.text, from)) from++;
    while (end < v.n && end > v.at && is_inside(v.text, end)) end--;
    return (window){v.text + from, end - from, v.at - from, from > 0, end < v.n};
}

static void put_line(const writer *w, const window *v, uint32_t line, size_t margin) {
    repeat(w, " ", margin - digits(line));
    put_number(w, line);
    put(w, v->n > 0 ? " | " : " |");
    put(w, v->cut_before ? CUT : "");
    put_n(w, v->text, v->n);
    put(w, v->cut_behind ? CUT : "");
    put(w, "\n");
}

/* One column for a character; a tab stays a tab. */
static void put_blank(const writer *w, const char *text, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (text[i] == '\t') put(w, "\t");
        else if (!is_inside(text, i)) put(w, " ");
    }
}

static void put_marks(const writer *w, const window *v, const ebb_lang_label *l, size_t margin,
                      bool primary) {
    uint32_t marks = 0;
    for (uint32_t i = v->at; i < v->n && i - v->at < l->n; i++) marks += !is_inside(v->text, i);
    repeat(w, " ", margin);
    put(w, " | ");
    repeat(w, " ", v->cut_before ? strlen(CUT) : 0);
    put_blank(w, v->text, v->at);
    repeat(w, primary ? "^" : "-", marks == 0 ? 1 : marks);
    if (l->text[0] != 0) put(w, " ");
    put(w, l->text);
    put(w, "\n");
}

static bool comes_before(const ebb_lang_label *a, const ebb_lang_label *b, const char *first) {
    if (a->file != b->file) return a->file == first;
    return a->line < b->line;
}

/* The labels by file, the primary one's first, and line. */
static void sort_labels(const ebb_lang_diagnostic *d, const ebb_lang_label **out) {
    for (uint32_t i = 0; i < d->n_labels; i++) {
        uint32_t at = i;
        for (; at > 0 && comes_before(&d->labels[i], out[at - 1], d->labels[0].file); at--)
            out[at] = out[at - 1];
        out[at] = &d->labels[i];
    }
}

static void put_labels(const writer *w, const ebb_lang *c, const ebb_lang_diagnostic *d) {
    const ebb_lang_label *sorted[EBB_LANG_LABELS] = {0};
    size_t margin = 1;
    sort_labels(d, sorted);
    for (uint32_t i = 0; i < d->n_labels; i++)
        margin = digits(d->labels[i].line) > margin ? digits(d->labels[i].line) : margin;
    for (uint32_t i = 0; i < d->n_labels; i++) {
        const ebb_lang_label *l = sorted[i], *before = i > 0 ? sorted[i - 1] : NULL;
        bool file = before != NULL && before->file != l->file;
        if (file) {
            put(w, "in ");
            put_place(w, l);
            put(w, "\n");
        }
        window v = window_of(source_of(c, l), l);
        bool again = before == NULL || file || before->line != l->line || v.cut_before || v.cut_behind;
        if (again) put_line(w, &v, l->line, margin);
        put_marks(w, &v, l, margin, l == &d->labels[0]);
    }
}

static void put_help(const writer *w, const ebb_lang_diagnostic *d) {
    size_t n = strlen("help: ") + strlen(d->help);
    if (d->help[0] == 0) return;
    put(w, "help: ");
    put(w, d->help);
    if (d->n_edits > 0) {
        repeat(w, " ", n + 2 < PLACE_COLUMN ? PLACE_COLUMN - n : 2);
        put(w, "[fix]");
    }
    put(w, "\n");
}

void ebb_lang_render(const ebb_lang *c, const ebb_lang_diagnostic *d, ebb_lang_write_fn *write, void *ctx) {
    writer w = {write, ctx};
    put_head(&w, d);
    put_labels(&w, c, d);
    if (d->note[0] != 0) {
        put(&w, "note: ");
        put(&w, d->note);
        put(&w, "\n");
    }
    put_help(&w, d);
}

/* ---- JSON ---- */

/* The texts are passed on as they are; what has to be escaped is. A file's name may be no UTF-8. */
static void put_string(const writer *w, const char *s) {
    static const char hex[] = "0123456789abcdef";
    put(w, "\"");
    for (; *s != 0; s++) {
        uint8_t b = (uint8_t)*s;
        if (b == '"' || b == '\\') {
            put(w, "\\");
            put_n(w, s, 1);
        } else if (b < 0x20) {
            char escape[7] = {'\\', 'u', '0', '0', hex[b >> 4], hex[b & 15], 0};
            put(w, escape);
        } else {
            uint32_t n = ebb__utf8_length(s, 4); /* it stops at the end of the text */
            put_n(w, n == 0 ? "\xef\xbf\xbd" : s, n == 0 ? 3 : n);
            s += n == 0 ? 0 : n - 1;
        }
    }
    put(w, "\"");
}

static void put_key(const writer *w, const char *key, const char *value) {
    put(w, ",\"");
    put(w, key);
    put(w, "\":");
    put_string(w, value);
}

static void put_count(const writer *w, const char *key, uint32_t value) {
    put(w, ",\"");
    put(w, key);
    put(w, "\":");
    put_number(w, value);
}

void ebb_lang_render_json(const ebb_lang_diagnostic *d, ebb_lang_write_fn *write, void *ctx) {
    writer w = {write, ctx};
    put(&w, "{\"code\":");
    put_string(&w, d->code);
    put_key(&w, "severity", d->severity == EBB_LANG_ERROR ? "error" : "warning");
    put_key(&w, "message", d->message);
    put(&w, ",\"labels\":[");
    for (uint32_t i = 0; i < d->n_labels; i++) {
        const ebb_lang_label *l = &d->labels[i];
        put(&w, i == 0 ? "{\"file\":" : ",{\"file\":");
        put_string(&w, l->file);
        put_count(&w, "line", l->line);
        put_count(&w, "column", l->column);
        put_count(&w, "at", l->at);
        put_count(&w, "n", l->n);
        put_key(&w, "text", l->text);
        put(&w, "}");
    }
    put(&w, "]");
    if (d->note[0] != 0) put_key(&w, "note", d->note);
    if (d->help[0] != 0) put_key(&w, "help", d->help);
    put(&w, ",\"edits\":[");
    for (uint32_t i = 0; i < d->n_edits; i++) {
        put(&w, i == 0 ? "{\"at\":" : ",{\"at\":");
        put_number(&w, d->edits[i].at);
        put_count(&w, "n", d->edits[i].n);
        put_key(&w, "text", d->edits[i].text);
        put(&w, "}");
    }
    put(&w, "]}");
}

/* ---- explain ---- */

static const ebb_lang_code all_codes[] = {
#define EBB_DIAG(code, title, text) {#code, title, text},
#include "lang/diag.def"
#undef EBB_DIAG
};

const ebb_lang_code *ebb_lang_code_at(size_t i) {
    return i < sizeof all_codes / sizeof *all_codes ? &all_codes[i] : NULL;
}

const ebb_lang_code *ebb_lang_explain(const char *code) {
    for (size_t i = 0; i < sizeof all_codes / sizeof *all_codes; i++) {
        if (strcmp(all_codes[i].code, code) == 0) return &all_codes[i];
    }
    return NULL;
}
