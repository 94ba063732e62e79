/* lang/parse.h - the parser's state and the parts it is made of. Grammar: docs/language.md.
 *
 * The parser never fails. Where the text is not of the grammar it reports once, sets `panic`, and is silent until
 * ebb__parse_sync has found the next statement, member or item. Each loop over the tokens moves on or leaves. */
#ifndef EBB_LANG_PARSE_H
#define EBB_LANG_PARSE_H

#include "lang/diag.h"
#include "lang/lexer.h"
#include "lang/tree.h"

typedef struct ebb__parser {
    ebb_lang *c;
    ebb__source *s;
    uint32_t at;    /* token */
    uint32_t depth; /* of the recursion */
    bool panic;     /* a mistake was reported, and the next place to go on is not yet found */
    uint8_t head;   /* in the head of if, while, for (HEAD) or match: no record literal at the top level */
} ebb__parser;

enum { EBB__HEAD = 1, EBB__HEAD_MATCH = 2 };

/* Parses a file into `s->nodes` and `s->root`. */
void ebb__parse(ebb_lang *c, ebb__source *s);

/* ---- tokens ---- */

static inline const ebb__token *ebb__peek(const ebb__parser *p, uint32_t ahead) {
    uint32_t at = p->at + ahead, last = p->s->tokens.n - 1;
    return ebb__token_at(p->s, at < last ? at : last);
}

static inline bool ebb__is(const ebb__parser *p, uint8_t kind) {
    return ebb__token_at(p->s, p->at)->kind == kind;
}

/* A word that is a name elsewhere. */
static inline bool ebb__is_word(const ebb__parser *p, ebb__name word) {
    const ebb__token *t = ebb__token_at(p->s, p->at);
    return t->kind == EBB__T_IDENT && t->name == word;
}

static inline void ebb__parse_advance(ebb__parser *p) {
    if (!ebb__is(p, EBB__T_END)) p->at++;
}

bool ebb__parse_accept(ebb__parser *p, uint8_t kind);
bool ebb__accept_word(ebb__parser *p, ebb__name word);

/* Reports E0105 if the token is another one. `why` ends the sentence "expected X ...", or is "". */
bool ebb__parse_expect(ebb__parser *p, uint8_t kind, const char *why);

/* The partner of `open`, which is a token. */
bool ebb__parse_close(ebb__parser *p, uint8_t kind, uint32_t open);

/* A name: its token, 0 if there is none. */
uint32_t ebb__parse_name(ebb__parser *p, const char *what);
/* The same as the token of a node, and as a node of its own (0: there is none). */
void ebb__parse_name_of(ebb__parser *p, uint32_t node, const char *what);
uint32_t ebb__parse_name_node(ebb__parser *p, const char *what);

void ebb__parse_unexpected(ebb__parser *p, const char *expected);

/* Skips to where the next statement or member may begin. `node` gets what was skipped. */
void ebb__parse_sync(ebb__parser *p, uint32_t node);

/* ---- nodes ---- */

uint32_t ebb__node_open(ebb__parser *p, ebb__kind kind);
void ebb__node_add(ebb__parser *p, uint32_t node, uint32_t child);
uint32_t ebb__node_close(ebb__parser *p, uint32_t node);

/* A node of one token. */
uint32_t ebb__node_leaf(ebb__parser *p, ebb__kind kind);

/* Whether the parser may go a level deeper; if not, E0109 was reported. Ends with ebb__parse_leave. */
bool ebb__parse_enter(ebb__parser *p);
void ebb__parse_leave(ebb__parser *p);

/* ---- the grammar ---- */

uint32_t ebb__parse_item(ebb__parser *p);
uint32_t ebb__parse_fn(ebb__parser *p, uint32_t node);
uint32_t ebb__parse_params(ebb__parser *p);
uint32_t ebb__parse_attr(ebb__parser *p);

/* Parses the members between braces: calls `member` until the closing brace. `member` moves on, or sets panic. */
void ebb__parse_braces(ebb__parser *p, uint32_t node, uint32_t (*member)(ebb__parser *));
uint32_t ebb__parse_typestate(ebb__parser *p, uint32_t node);
uint32_t ebb__parse_protocol(ebb__parser *p, uint32_t node);
uint32_t ebb__parse_spec(ebb__parser *p, uint32_t node);
uint32_t ebb__parse_path(ebb__parser *p);
uint32_t ebb__parse_choice(ebb__parser *p);
uint32_t ebb__parse_type(ebb__parser *p);
uint32_t ebb__parse_record(ebb__parser *p);
uint32_t ebb__parse_block(ebb__parser *p);
uint32_t ebb__parse_expr(ebb__parser *p);
uint32_t ebb__parse_head(ebb__parser *p);
uint32_t ebb__parse_pattern(ebb__parser *p);
void ebb__parse_args(ebb__parser *p, uint32_t node);
bool ebb__is_block_like(uint8_t kind);

#endif
