/* lang/diag.c - the list of diagnostics, and which are left out. */
#include "lang/diag.h"

#include <stdarg.h>
#include <string.h>

#include "lang/format.h"
#include "lang/source.h"

static const char *const codes[] = {
#define EBB_DIAG(code, title, text) #code,
#include "lang/diag.def"
#undef EBB_DIAG
};
static const char *const titles[] = {
#define EBB_DIAG(code, title, text) title,
#include "lang/diag.def"
#undef EBB_DIAG
};

static ebb__diag *diag_at(const ebb_lang *c, uint32_t i) {
    return *EBB__VEC_AT(&c->diagnostics, ebb__diag *, i);
}

static void place(ebb_lang *c, ebb_lang_label *label, ebb__span at, const char *text) {
    const ebb__source *s = ebb__source_at(c, at.source);
    if (at.at > s->n) at.at = s->n;
    if (at.n > s->n - at.at) at.n = s->n - at.at;
    *label = (ebb_lang_label){.file = s->path, .at = at.at, .n = at.n, .text = text};
    ebb__source_place(s, at.at, &label->line, &label->column);
}

/* One mistake is one diagnostic: the first at a place is it. Warnings beside an error say nothing new. */
static bool is_repeated(const ebb_lang *c, ebb__code code, ebb__span at) {
    for (uint32_t i = c->diagnostics.n; i-- > 0;) {
        const ebb__diag *d = diag_at(c, i);
        const ebb_lang_label *l = &d->out.labels[0];
        if (d->source != at.source || l->at != at.at) continue;
        if (d->code == code || l->n == at.n) return true;
    }
    return false;
}

bool ebb__has_error_in(const ebb_lang *c, ebb__span at) {
    for (uint32_t i = 0; i < c->diagnostics.n; i++) {
        const ebb__diag *d = diag_at(c, i);
        uint32_t where = d->out.labels[0].at;
        if (d->out.severity == EBB_LANG_ERROR && d->source == at.source && where >= at.at &&
            where <= at.at + at.n)
            return true;
    }
    return false;
}

static uint32_t limit_of(const ebb_lang *c) {
    return c->opts.max_errors == 0 ? EBB_LANG_MAX_ERRORS : c->opts.max_errors;
}

/* The limit counts errors. The last place says that there are more. */
static bool over_limit(ebb_lang *c, ebb__span at) {
    uint32_t most = limit_of(c);
    if (c->muted) return true;
    if (c->errors < most) return false;
    (void)ebb__diag_report(c, EBB__E0111, at, "the %d errors before this one are the limit", (int64_t)most);
    c->muted = true;
    return true;
}

static bool is_left_out(ebb_lang *c, ebb__code code, ebb__span at) {
    bool error = codes[code][0] == 'E';
    if (c->oom || c->muted || is_repeated(c, code, at)) return true;
    if (code == EBB__E0111) return false;
    if (!error) return c->diagnostics.n >= limit_of(c); /* of warnings there are no more than of errors */
    return over_limit(c, at);
}

ebb__diag *ebb__diag_report(ebb_lang *c, ebb__code code, ebb__span at, const char *format, ...) {
    ebb__diag *d = c->scratch;
    if (!is_left_out(c, code, at)) {
        ebb__diag **slot = ebb__vec_push(c, &c->diagnostics);
        if (slot != NULL) *slot = d = EBB__NEW(c, ebb__diag);
        if (slot != NULL && codes[code][0] == 'E') c->errors++;
    }
    memset(d, 0, sizeof *d);
    d->code = code;
    d->source = at.source;
    d->out = (ebb_lang_diagnostic){
        .code = codes[code], .message = titles[code], .n_labels = 1, .note = "", .help = ""};
    d->out.severity = codes[code][0] == 'E' ? EBB_LANG_ERROR : EBB_LANG_WARNING;
    va_list args;
    va_start(args, format);
    place(c, &d->out.labels[0], at, d == c->scratch ? "" : ebb__vformat(c, format, &args));
    va_end(args);
    return d;
}

#define TEXT_OF(c, format)                                                                                   \
    va_list args;                                                                                            \
    va_start(args, format);                                                                                  \
    const char *text = d == (c)->scratch ? "" : ebb__vformat((c), format, &args);                            \
    va_end(args)

void ebb__diag_message(ebb_lang *c, ebb__diag *d, const char *format, ...) {
    TEXT_OF(c, format);
    d->out.message = text;
}

void ebb__diag_label(ebb_lang *c, ebb__diag *d, ebb__span at, const char *format, ...) {
    TEXT_OF(c, format);
    if (d->out.n_labels == EBB_LANG_LABELS) return;
    place(c, &d->out.labels[d->out.n_labels++], at, text);
}

void ebb__diag_note(ebb_lang *c, ebb__diag *d, const char *format, ...) {
    TEXT_OF(c, format);
    d->out.note = text;
}

void ebb__diag_help(ebb_lang *c, ebb__diag *d, const char *format, ...) {
    TEXT_OF(c, format);
    d->out.help = text;
}

void ebb__diag_edit(ebb_lang *c, ebb__diag *d, ebb__span at, const char *format, ...) {
    TEXT_OF(c, format);
    if (d->out.n_edits == EBB_LANG_EDITS || at.source != d->source) return;
    uint32_t i = d->out.n_edits++;
    for (; i > 0 && d->out.edits[i - 1].at > at.at; i--) d->out.edits[i] = d->out.edits[i - 1];
    d->out.edits[i] = (ebb_lang_edit){at.at, at.n, text};
}

static bool before(const ebb__diag *a, const ebb__diag *b) {
    if (a->source != b->source) return a->source < b->source;
    return a->out.labels[0].at < b->out.labels[0].at;
}

void ebb__diag_sort(ebb_lang *c) {
    ebb__diag **v = c->diagnostics.at;
    for (uint32_t i = 1; i < c->diagnostics.n; i++) { /* nearly sorted, and few */
        ebb__diag *d = v[i];
        uint32_t at = i;
        for (; at > 0 && before(d, v[at - 1]); at--) v[at] = v[at - 1];
        v[at] = d;
    }
}

const ebb_lang_diagnostic *const *ebb_lang_diagnostics(const ebb_lang *c, size_t *n) {
    *n = c->diagnostics.n;
    return c->diagnostics.at;
}
