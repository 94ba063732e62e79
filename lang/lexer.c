/* lang/lexer.c - text to tokens: what a token is, and where it ends. */
#include "lang/lexer.h"

#include <string.h>

#include "lang/diag.h"
#include "lang/literal.h"

enum { FSTRING_DEPTH = 8 };

/* `open` counts, for each f-string that the lexer is in a hole of, the braces opened in the hole. */
typedef struct lexer {
    ebb_lang *c;
    ebb__source *s;
    const char *text;
    uint32_t at, n;
    uint32_t holes, open[FSTRING_DEPTH], begin[FSTRING_DEPTH];
} lexer;

void ebb__names_init(ebb_lang *c) {
#define EBB_KEYWORD(word) (void)ebb__name_str(c, #word);
#define EBB_KNOWN(word)   (void)ebb__name_str(c, #word);
#include "lang/names.def"
#undef EBB_KEYWORD
#undef EBB_KNOWN
}

const char *ebb__token_name(uint8_t kind) {
    static const char *const names[] = {
        "the end of the file", "this",        "a name",      "a number",    "a duration", "a string", "bytes",
        "an f-string",         "an f-string", "an f-string", "an f-string",
#define EBB_TOKEN(name, text) "`" text "`",
#include "lang/token.def"
#undef EBB_TOKEN
#define EBB_KEYWORD(word) "`" #word "`",
#define EBB_KNOWN(word)
#include "lang/names.def"
#undef EBB_KEYWORD
#undef EBB_KNOWN
    };
    return names[kind];
}

static ebb__span span_of(const lexer *l, uint32_t from, uint32_t to) {
    return (ebb__span){l->s->id, from, to - from};
}

static uint8_t byte_at(const lexer *l, uint32_t at) {
    return at < l->n ? (uint8_t)l->text[at] : 0;
}

enum { LETTER = 1, DIGIT = 2, BLANK = 4 };

static unsigned class_of(uint8_t b) {
    if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_') return LETTER;
    if (b >= '0' && b <= '9') return DIGIT;
    return b == ' ' || b == '\n' || b == '\t' || b == '\r' ? BLANK : 0;
}

/* Skips a block comment; they nest. */
static void skip_comment(lexer *l) {
    uint32_t from = l->at, depth = 0;
    do {
        if (l->text[l->at] == '/' && byte_at(l, l->at + 1) == '*') depth++, l->at += 2;
        else if (l->text[l->at] == '*' && byte_at(l, l->at + 1) == '/') depth--, l->at += 2;
        else l->at++;
    } while (depth > 0 && l->at < l->n);
    if (l->at > l->n) l->at = l->n;
    if (depth == 0) return;
    ebb__diag *d =
        ebb__diag_report(l->c, EBB__E0101, span_of(l, from, from + 2), "this comment is never closed");
    ebb__diag_help(l->c, d, "close it with */");
    ebb__diag_edit(l->c, d, span_of(l, l->n, l->n), "*/\n");
}

/* UTF-8 in comments is checked here; in strings with the escapes. */
static void check_utf8(lexer *l, uint32_t from, uint32_t to) {
    for (uint32_t at = from; at < to;) {
        uint32_t n = (uint8_t)l->text[at] < 0x80 ? 1 : ebb__utf8_length(l->text + at, to - at);
        if (n == 0) {
            (void)ebb__diag_report(l->c, EBB__E0102, span_of(l, at, at + 1), "this byte is not UTF-8");
            return;
        }
        at += n;
    }
}

static void skip_trivia(lexer *l) {
    for (;;) {
        while (l->at < l->n && class_of((uint8_t)l->text[l->at]) == BLANK) l->at++;
        if (byte_at(l, l->at) != '/') return;
        uint32_t from = l->at;
        if (byte_at(l, l->at + 1) == '/') {
            while (l->at < l->n && l->text[l->at] != '\n') l->at++;
        } else if (byte_at(l, l->at + 1) == '*') {
            skip_comment(l);
        } else {
            return;
        }
        check_utf8(l, from, l->at);
    }
}

static ebb__token *token_add(lexer *l, uint8_t kind, uint32_t from) {
    ebb__token *t = ebb__vec_push(l->c, &l->s->tokens);
    if (t != NULL) *t = (ebb__token){.at = from, .n = l->at - from, .kind = kind};
    return t;
}

static void lex_name(lexer *l) {
    uint32_t from = l->at;
    while ((class_of(byte_at(l, l->at)) & (LETTER | DIGIT)) != 0) l->at++;
    ebb__name name = ebb__name_of(l->c, l->text + from, l->at - from);
    ebb__token *t = token_add(l, EBB__T_IDENT, from);
    if (t == NULL) return;
    t->name = name;
    if (name > 0 && name < EBB__N__) t->kind = (uint8_t)(EBB__T_fn + name - 1);
}

static void lex_number(lexer *l) {
    uint32_t from = l->at;
    while ((class_of(byte_at(l, l->at)) & (LETTER | DIGIT)) != 0) l->at++;
    ebb__token *t = token_add(l, EBB__T_INT, from);
    if (t == NULL) return;
    ebb__number number = ebb__number_read(l->text + from, l->at - from);
    if (number.is_duration) t->kind = EBB__T_DURATION;
    if (number.error == EBB__NUMBER_RANGE) {
        (void)ebb__diag_report(l->c, number.is_duration ? EBB__E0104 : EBB__E0103, span_of(l, from, l->at),
                               number.is_duration ? "more than 9223372036854775807 ms"
                                                  : "does not fit in 64 bits");
    } else if (number.error == EBB__NUMBER_FORM) {
        (void)ebb__diag_report(l->c, EBB__E0105, span_of(l, from, l->at),
                               "not a number: 12, 0xff, 0b11, 12u64, or a duration as 5s, 10ms, 2min, 1h");
    }
}

/* One part of a string, from l->at to a quote, or in an f-string a hole. Says what ended it: '"', '{', or 0 for the end
 * of the line. */
static char scan_string(lexer *l, bool holes) {
    while (l->at < l->n && l->text[l->at] != '\n') {
        char b = l->text[l->at++];
        if (b == '"' || (holes && b == '{')) return b;
        bool escape = b == '\\' && l->at < l->n && l->text[l->at] != '\n';
        bool unicode = escape && l->text[l->at] == 'u' && byte_at(l, l->at + 1) == '{';
        if (escape) l->at += unicode ? 2 : 1; /* \u{..} begins no hole */
    }
    return 0;
}

/* The fix leaves outside what closes the call and the statement. */
static void string_unterminated(lexer *l, uint32_t from) {
    uint32_t at = l->at;
    while (at > from + 2 && (l->text[at - 1] == ')' || l->text[at - 1] == ';' || l->text[at - 1] == ',' ||
                             l->text[at - 1] == ' '))
        at--;
    ebb__diag *d =
        ebb__diag_report(l->c, EBB__E0101, span_of(l, from, l->at), "this string does not end on its line");
    ebb__diag_help(l->c, d, "end it with \"");
    ebb__diag_edit(l->c, d, span_of(l, at, at), "\"");
}

static void check_string(lexer *l, uint32_t from, uint32_t to, bool bytes) {
    uint32_t at = from, n = 0;
    while (at < to) {
        const char *why = ebb__escape_check(l->text + at, to - at, bytes, &n);
        if (why != NULL) (void)ebb__diag_report(l->c, EBB__E0102, span_of(l, at, at + n), "%s", why);
        at += n;
    }
}

static void lex_string(lexer *l, uint32_t prefix, uint8_t kind) {
    uint32_t from = l->at;
    l->at += prefix + 1;
    char end = scan_string(l, kind == EBB__T_FSTRING);
    check_string(l, from + prefix + 1, end == 0 ? l->at : l->at - 1, kind == EBB__T_BYTES);
    if (end == 0) string_unterminated(l, from);
    if (end == '{' && l->holes < FSTRING_DEPTH) {
        l->begin[l->holes] = from;
        l->open[l->holes++] = 0;
        kind = EBB__T_FSTRING_BEGIN;
    } else if (end == '{') {
        (void)ebb__diag_report(l->c, EBB__E0109, span_of(l, from, l->at),
                               "f-strings are nested 8 deep at most");
        while (scan_string(l, false) == '\\') {}
    }
    (void)token_add(l, kind, from);
}

/* From the brace that ends a hole on. */
static void lex_fstring_rest(lexer *l) {
    uint32_t from = l->at++;
    char end = scan_string(l, true);
    check_string(l, from + 1, end == 0 ? l->at : l->at - 1, false);
    if (end == 0) string_unterminated(l, from);
    if (end != '{') l->holes--;
    (void)token_add(l, end == '{' ? EBB__T_FSTRING_MID : EBB__T_FSTRING_END, from);
}

/* A hole does not go on behind the end of its line: a forgotten } would swallow the file. */
static void end_holes(lexer *l, uint32_t from) {
    uint32_t at = from;
    while (l->holes > 0 && at < l->at && l->text[at] != '\n') at++;
    if (l->holes == 0 || at == l->at) return;
    (void)ebb__diag_report(l->c, EBB__E0101, span_of(l, l->begin[0], at),
                           "a hole of this f-string is not closed on its line");
    l->holes = 0;
}

static uint8_t punctuation(const lexer *l, uint32_t *n) {
    static const struct {
        char text[4];
        uint8_t kind;
    } table[] = {
#define EBB_TOKEN(name, text) {text, EBB__T_##name},
#include "lang/token.def"
#undef EBB_TOKEN
    };
    uint8_t kind = EBB__T_BAD, first = byte_at(l, l->at);
    *n = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if ((uint8_t)table[i].text[0] != first) continue;
        uint32_t length = (uint32_t)strlen(table[i].text);
        if (length > *n && l->n - l->at >= length && memcmp(l->text + l->at, table[i].text, length) == 0) {
            *n = length;
            kind = table[i].kind;
        }
    }
    return kind;
}

static void lex_bad(lexer *l) {
    uint32_t from = l->at, n = ebb__utf8_length(l->text + l->at, l->n - l->at);
    bool utf8 = n > 0;
    l->at += utf8 ? n : 1;
    (void)token_add(l, EBB__T_BAD, from);
    bool ascii = (uint8_t)l->text[from] < 0x80;
    (void)ebb__diag_report(l->c, ascii ? EBB__E0105 : EBB__E0102, span_of(l, from, l->at),
                           ascii  ? "no token begins with this"
                           : utf8 ? "only ASCII is allowed here"
                                  : "this byte is not UTF-8");
}

static void lex_punctuation(lexer *l) {
    uint32_t n, from = l->at;
    uint8_t kind = punctuation(l, &n);
    if (l->holes > 0 && kind == EBB__T_LBRACE) l->open[l->holes - 1]++;
    if (l->holes > 0 && kind == EBB__T_RBRACE) {
        if (l->open[l->holes - 1] == 0) {
            lex_fstring_rest(l);
            return;
        }
        l->open[l->holes - 1]--;
    }
    if (kind == EBB__T_BAD) {
        lex_bad(l);
        return;
    }
    l->at += n;
    (void)token_add(l, kind, from);
}

static void lex_token(lexer *l) {
    uint8_t b = (uint8_t)l->text[l->at];
    unsigned class = class_of(b);
    if ((b == 'f' || b == 'b') && byte_at(l, l->at + 1) == '"') {
        lex_string(l, 1, b == 'f' ? EBB__T_FSTRING : EBB__T_BYTES);
    } else if (class == LETTER) {
        lex_name(l);
    } else if (class == DIGIT) {
        lex_number(l);
    } else if (b == '"') {
        lex_string(l, 0, EBB__T_STRING);
    } else {
        lex_punctuation(l);
    }
}

void ebb__lex(ebb_lang *c, ebb__source *s) {
    lexer l = {.c = c, .s = s, .text = s->text, .n = s->n};
    while (!c->oom) {
        uint32_t from = l.at;
        skip_trivia(&l);
        end_holes(&l, from);
        if (l.at >= l.n) break;
        lex_token(&l);
    }
    if (l.holes > 0) {
        (void)ebb__diag_report(c, EBB__E0101, span_of(&l, l.begin[0], l.n),
                               "a hole of this f-string is not closed");
    }
    (void)token_add(&l, EBB__T_END, l.at);
}
