/* lang/fmt.c - formatting: the same tokens and comments, other blanks.
 *
 * A walk over the tree decides for each token how it is set apart from the one before: on a line of its own at some
 * indentation (LINE), or on the same line with a blank or without one (GLUE). Line breaks that the author made elsewhere
 * are kept, with one more level of indentation, unless the token has to stay with the one before (JOIN). A block is on
 * one line if it was; a list has each element on a line if its first was on a new one; a hole of an f-string stays on its
 * line (HOLE), whatever is in it. So a second run finds what the
 * first has decided, and changes nothing. */
#include <string.h>

#include "lang/lexer.h"
#include "lang/source.h"
#include "lang/tree.h"

enum { LINE = 1, GLUE = 2, JOIN = 4, FLUSH = 8, HOLE = 16 };
enum { INDENT = 4 };

typedef struct layout {
    uint8_t flags;
    uint16_t indent;
} layout;

typedef struct formatter {
    const ebb__source *s;
    layout *tokens;
    ebb_lang_write_fn *write;
    void *ctx;
    bool started; /* something was written */
} formatter;

static const ebb__syntax *node_at(const formatter *f, uint32_t node) {
    return ebb__syntax_at(f->s, node);
}

static uint8_t kind_at(const formatter *f, uint32_t tok) {
    return ebb__token_at(f->s, tok)->kind;
}

static void mark(formatter *f, uint32_t tok, uint8_t flags) {
    f->tokens[tok].flags |= flags;
}

/* The token and its line begin at `indent`, and so do the tokens of its node. */
static void begin_line(formatter *f, uint32_t first, uint32_t end, uint16_t indent) {
    mark(f, first, LINE);
    for (uint32_t i = first; i < end; i++) f->tokens[i].indent = indent;
}

static bool has_newline(const formatter *f, uint32_t from, uint32_t to) {
    uint32_t at = ebb__token_at(f->s, from)->at, end = ebb__token_at(f->s, to)->at;
    for (; at < end; at++) {
        if (f->s->text[at] == '\n') return true;
    }
    return false;
}

/* ---- what each token is by itself ---- */

static void mark_tokens(formatter *f) {
    for (uint32_t i = 0; i < f->s->tokens.n; i++) {
        uint8_t kind = kind_at(f, i), before = i > 0 ? kind_at(f, i - 1) : (uint8_t)EBB__T_END;
        switch (kind) {
        case EBB__T_SEMI:
        case EBB__T_COMMA:
        case EBB__T_COLON:
        case EBB__T_COLONS:
        case EBB__T_QUESTION: mark(f, i, GLUE | JOIN); break;
        case EBB__T_RPAREN:
        case EBB__T_RBRACK:
        case EBB__T_DOT:
        case EBB__T_FSTRING_MID:
        case EBB__T_FSTRING_END: mark(f, i, GLUE); break;
        case EBB__T_DOTS: mark(f, i, GLUE); break;
        case EBB__T_RBRACE:
            if (before == EBB__T_LBRACE) mark(f, i, GLUE);
            break;
        case EBB__T_LBRACE:
        case EBB__T_else: mark(f, i, JOIN); break;
        default: break;
        }
        switch (before) {
        case EBB__T_LPAREN:
        case EBB__T_LBRACK:
        case EBB__T_DOT:
        case EBB__T_DOTS:
        case EBB__T_COLONS:
        case EBB__T_AT:
        case EBB__T_BANG:
        case EBB__T_TILDE:
        case EBB__T_FSTRING_BEGIN:
        case EBB__T_FSTRING_MID: mark(f, i, GLUE); break;
        default: break;
        }
    }
}

/* ---- what the tree says ---- */

static uint32_t own_token(const formatter *f, uint32_t node, uint8_t kind) {
    const ebb__syntax *x = node_at(f, node);
    uint32_t tok = x->first;
    for (uint32_t child = x->child;; child = node_at(f, child)->next) {
        uint32_t stop = child == 0 ? x->end : node_at(f, child)->first;
        for (; tok < stop; tok++) {
            if (kind_at(f, tok) == kind) return tok;
        }
        if (child == 0) return 0;
        tok = node_at(f, child)->end;
    }
}

/* Statements or members between braces: on one line only if they were. */
static bool lay_braces(formatter *f, uint32_t node, uint32_t open, uint16_t indent) {
    uint32_t close = node_at(f, node)->end - 1, inside = 0;
    if (open == 0 && kind_at(f, 0) != EBB__T_LBRACE) return false;
    for (uint32_t x = node_at(f, node)->child; x != 0; x = node_at(f, x)->next)
        inside += node_at(f, x)->first > open;
    if (kind_at(f, close) != EBB__T_RBRACE || (inside < 2 && !has_newline(f, open, close)) ||
        close == open + 1)
        return false;
    for (uint32_t x = node_at(f, node)->child; x != 0; x = node_at(f, x)->next) {
        if (node_at(f, x)->first > open)
            begin_line(f, node_at(f, x)->first, node_at(f, x)->end, (uint16_t)(indent + 1));
    }
    begin_line(f, close, close + 1, indent);
    return true;
}

/* Elements between brackets: each on a line if the first was on a new one. */
static bool lay_list(formatter *f, uint32_t node, uint32_t open, uint16_t indent) {
    uint32_t close = node_at(f, node)->end - 1;
    if (close <= open + 1 || !has_newline(f, open, open + 1)) return false;
    for (uint32_t x = node_at(f, node)->child; x != 0; x = node_at(f, x)->next) {
        if (node_at(f, x)->first > open)
            begin_line(f, node_at(f, x)->first, node_at(f, x)->end, (uint16_t)(indent + 1));
    }
    begin_line(f, close, close + 1, indent);
    return true;
}

static void lay_effects(formatter *f, uint32_t node, uint16_t indent) {
    uint32_t open = own_token(f, node, EBB__T_LBRACE), close = node_at(f, node)->end - 1;
    if (open == 0 || kind_at(f, close) != EBB__T_RBRACE || !has_newline(f, open, close)) return;
    begin_line(f, open + 1, close, (uint16_t)(indent + 1));
    begin_line(f, close, close + 1, indent);
}

static void glue_own(formatter *f, uint32_t node, uint8_t kind, bool behind) {
    uint32_t tok = own_token(f, node, kind);
    if (tok == 0) return;
    mark(f, tok, GLUE | JOIN);
    if (behind) mark(f, tok + 1, GLUE | JOIN);
}

static void lay_types(formatter *f, uint32_t node) {
    uint32_t open = own_token(f, node, EBB__T_LT);
    if (open == 0) return;
    mark(f, open, GLUE | JOIN);
    mark(f, open + 1, GLUE);
    mark(f, node_at(f, node)->end - 1, GLUE | JOIN);
}

static void lay_node(formatter *f, uint32_t node, uint16_t indent) {
    const ebb__syntax *x = node_at(f, node);
    switch (x->kind) {
    case EBB__S_BLOCK: (void)lay_braces(f, node, x->first, indent); break;
    case EBB__S_TYPESTATE:
        if (own_token(f, node, EBB__T_COLON) != 0) f->tokens[own_token(f, node, EBB__T_COLON)].flags = 0;
        /* fallthrough */
    case EBB__S_PROTOCOL:
    case EBB__S_SPEC:
    case EBB__S_ROLE:
    case EBB__S_RSTATE:
    case EBB__S_STATE:
    case EBB__S_MATCH: {
        uint32_t open = own_token(f, node, EBB__T_LBRACE);
        if (open != 0) (void)lay_braces(f, node, open, indent);
        break;
    }
    case EBB__S_RECORD:
    case EBB__S_RECORD_LIT:
    case EBB__S_FIELDS:
    case EBB__S_PAT_RECORD: (void)lay_list(f, node, own_token(f, node, EBB__T_LBRACE), indent); break;
    case EBB__S_LIST:
    case EBB__S_MAP:
    case EBB__S_TYPE_LIST:
    case EBB__S_TYPE_MAP: (void)lay_list(f, node, x->first, indent); break;
    case EBB__S_TUPLE:
    case EBB__S_PAREN: (void)lay_list(f, node, x->first, indent); break;
    case EBB__S_PARAMS:
        mark(f, x->first, GLUE | JOIN);
        (void)lay_list(f, node, x->first, indent);
        break;
    case EBB__S_CALL:
    case EBB__S_EMIT:
    case EBB__S_PAT_PATH:
    case EBB__S_ATTR: {
        uint32_t open = own_token(f, node, EBB__T_LPAREN);
        glue_own(f, node, EBB__T_LPAREN, false);
        if (open != 0) (void)lay_list(f, node, open, indent);
        break;
    }
    case EBB__S_REQUEST:
        glue_own(f, node, EBB__T_COLON, true);
        glue_own(f, node, EBB__T_LPAREN, false);
        break;
    case EBB__S_ORIGIN:
        glue_own(f, node, EBB__T_COLON, true);
        glue_own(f, node, EBB__T_LPAREN, false);
        break;
    case EBB__S_INDEX: glue_own(f, node, EBB__T_LBRACK, false); break;
    case EBB__S_TYPE_PATH: lay_types(f, node); break;
    case EBB__S_RTRANS:
        glue_own(f, node, EBB__T_AT, true);
        lay_effects(f, node, indent);
        break;
    case EBB__S_UNARY: mark(f, x->first + 1, GLUE | JOIN); break;
    case EBB__S_BINARY:
        if ((x->flags & EBB__FLAG_SHIFT) != 0) mark(f, x->tok + 1, GLUE | JOIN);
        break;
    default: break;
    }
}

static void lay(formatter *f, uint32_t node) {
    lay_node(f, node, f->tokens[node_at(f, node)->first].indent);
    for (uint32_t x = node_at(f, node)->child; x != 0; x = node_at(f, x)->next) {
        const ebb__syntax *y = node_at(f, x);
        if (y->end == y->first) continue;
        if (y->kind == EBB__S_ATTR && y->end < f->s->tokens.n) mark(f, y->end, FLUSH);
        lay(f, x);
    }
}

/* What stands in the holes of f-strings. */
static void mark_holes(formatter *f) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < f->s->tokens.n; i++) {
        depth -= kind_at(f, i) == EBB__T_FSTRING_END;
        if (depth > 0) mark(f, i, HOLE);
        depth += kind_at(f, i) == EBB__T_FSTRING_BEGIN;
    }
}

/* A `{` on the line of its node's head begins at the indentation of that line, also if the head went on in between. */
static void lay_file(formatter *f) {
    mark_tokens(f);
    for (uint32_t x = node_at(f, f->s->root)->child; x != 0; x = node_at(f, x)->next) {
        begin_line(f, node_at(f, x)->first, node_at(f, x)->end, 0);
    }
    lay(f, f->s->root);
    mark_holes(f);
}

/* ---- writing ---- */

static void put(formatter *f, const char *s, size_t n) {
    f->write(f->ctx, s, n);
    f->started = true;
}

static void new_line(formatter *f, bool blank, uint32_t indent) {
    if (!f->started) return;
    put(f, "\n\n", blank ? 2 : 1);
    for (uint32_t i = 0; i < indent; i++) put(f, "    ", INDENT);
}

static uint32_t comment_end(const ebb__source *s, uint32_t at) {
    uint32_t depth = 0;
    if (s->text[at + 1] == '/') {
        while (at < s->n && s->text[at] != '\n') at++;
        return at;
    }
    do {
        if (s->text[at] == '/' && s->text[at + 1] == '*') depth++, at += 2;
        else if (s->text[at] == '*' && s->text[at + 1] == '/') depth--, at += 2;
        else at++;
    } while (depth > 0 && at < s->n);
    return at;
}

static uint32_t without_blanks(const ebb__source *s, uint32_t from, uint32_t to) {
    while (to > from && (s->text[to - 1] == ' ' || s->text[to - 1] == '\t' || s->text[to - 1] == '\r')) to--;
    return to;
}

/* What stands before a token: comments, and whether a new line is due. */
typedef struct gap {
    uint32_t lines; /* line breaks behind the last comment, or in all */
    bool forced, comments;
} gap;

static gap write_comments(formatter *f, uint32_t tok, uint32_t from, uint32_t to, uint32_t indent,
                          bool opened) {
    const ebb__source *s = f->s;
    gap g = {0};
    (void)tok;
    for (uint32_t at = from; at < to;) {
        if (s->text[at] != '/') {
            g.lines += s->text[at] == '\n';
            at++;
            continue;
        }
        uint32_t end = comment_end(s, at);
        if (g.lines > 0 || g.forced) new_line(f, g.lines > 1 && !(opened && !g.comments), indent);
        else if (f->started) put(f, " ", 1);
        put(f, s->text + at, without_blanks(s, at, end) - at);
        g = (gap){.forced = s->text[at + 1] == '/', .comments = true};
        at = end;
    }
    return g;
}

static void write_token(formatter *f, uint32_t tok, uint32_t from) {
    const ebb__source *s = f->s;
    const ebb__token *t = ebb__token_at(s, tok);
    const layout *l = &f->tokens[tok];
    bool hole = (l->flags & HOLE) != 0, line = (l->flags & LINE) != 0 && !hole, end = t->kind == EBB__T_END,
         closes = t->kind == EBB__T_RBRACE;
    bool opened = tok > 0 && kind_at(f, tok - 1) == EBB__T_LBRACE;
    uint32_t indent = l->indent + (uint32_t)(line || (l->flags & FLUSH) != 0 || end ? 0 : 1);
    bool inner = closes && (line || opened) && !hole;
    uint32_t comments = inner ? l->indent + 1u : indent;
    gap g = write_comments(f, tok, from, t->at, comments, opened);
    if (end) return;
    if (inner && g.comments) line = true;
    bool breaks =
        line || g.forced ||
        (g.lines > 0 && (l->flags & JOIN) == 0 && !(t->kind == EBB__T_RPAREN || t->kind == EBB__T_RBRACK));
    if (inner && g.comments) indent = l->indent;
    if (breaks) new_line(f, g.lines > 1 && !closes && (!opened || g.comments), indent);
    else if (f->started && ((l->flags & GLUE) == 0 || g.comments)) put(f, " ", 1);
    put(f, s->text + t->at, t->n);
}

ebb_status ebb_lang_format(ebb_lang *c, const char *path, const char *text, size_t n,
                           ebb_lang_write_fn *write, void *ctx) {
    if (c->used) return EBB_ERR_RESOLVED;
    c->used = true;
    ebb__source *s = ebb__source_add(c, path, "", text, n);
    formatter f = {.s = s, .write = write, .ctx = ctx};
    if (s != NULL) f.tokens = ebb__lang_array(c, s->tokens.n + 1, sizeof *f.tokens);
    if (f.tokens == NULL || c->oom) return EBB_ERR_NOMEM;
    if (c->errors > 0) return EBB_FAILED;
    uint32_t at = 0;
    lay_file(&f);
    for (uint32_t tok = 0; tok < s->tokens.n; tok++) {
        write_token(&f, tok, at);
        at = ebb__token_at(s, tok)->at + ebb__token_at(s, tok)->n;
    }
    if (f.started) put(&f, "\n", 1);
    return EBB_OK;
}
