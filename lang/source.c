/* lang/source.c - files and the lines in them. */
#include "lang/source.h"

#include <string.h>

#include "lang/diag.h"
#include "lang/lexer.h"
#include "lang/parse.h"
#include "lang/tree.h"

static bool find_lines(ebb_lang *c, ebb__source *s) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->n; i++) n += s->text[i] == '\n';
    s->lines = ebb__lang_array(c, n, sizeof *s->lines);
    if (s->lines == NULL) return false;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->text[i] == '\n') s->lines[++s->n_lines] = i + 1;
    }
    s->n_lines = n;
    return true;
}

ebb__source *ebb__source_add(ebb_lang *c, const char *path, const char *module, const char *text, size_t n) {
    ebb__source **slot = ebb__vec_push(c, &c->sources);
    if (slot == NULL) return NULL;
    ebb__source *s = EBB__NEW(c, ebb__source);
    *slot = s;
    *s = (ebb__source){.path = path, .module = module, .text = text, .id = c->sources.n - 1};
    s->tokens.size = sizeof(ebb__token);
    s->nodes.size = sizeof(ebb__syntax);
    bool large = n > EBB_LANG_MAX_BYTES;
    if (!large) s->n = (uint32_t)n;
    if (!find_lines(c, s)) {
        s->n = 0;
        return NULL;
    }
    if (large) {
        (void)ebb__diag_report(c, EBB__E0110, (ebb__span){s->id, 0, 0}, "this file has more than %d bytes",
                               (int64_t)EBB_LANG_MAX_BYTES);
    }
    ebb__lex(c, s);
    ebb__parse(c, s);
    return c->oom ? NULL : s;
}

ebb__source *ebb__source_at(const ebb_lang *c, uint32_t id) {
    return *EBB__VEC_AT(&c->sources, ebb__source *, id);
}

void ebb__source_place(const ebb__source *s, uint32_t at, uint32_t *line, uint32_t *column) {
    uint32_t low = 0, high = s->n_lines;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (s->lines[mid] <= at) low = mid;
        else high = mid;
    }
    *line = low + 1;
    *column = s->n_lines == 0 ? 1 : at - s->lines[low] + 1;
}

const char *ebb__source_line(const ebb__source *s, uint32_t line, uint32_t *n) {
    if (line == 0 || line > s->n_lines) {
        *n = 0;
        return "";
    }
    uint32_t from = s->lines[line - 1], to = line < s->n_lines ? s->lines[line] : s->n;
    while (to > from && (s->text[to - 1] == '\n' || s->text[to - 1] == '\r')) to--;
    *n = to - from;
    return s->text + from;
}

void ebb__source_free(ebb_lang *c, ebb__source *s) {
    ebb__vec_free(c, &s->tokens);
    ebb__vec_free(c, &s->nodes);
}
