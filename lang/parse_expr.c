/* lang/parse_expr.c - expressions. */
#include "lang/parse.h"

void ebb__parse_args(ebb__parser *p, uint32_t node) {
    uint32_t open = p->at;
    uint8_t head = p->head;
    p->head = 0;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RPAREN) && !p->panic) {
        uint32_t arg = ebb__node_open(p, EBB__S_ARG);
        if (ebb__is(p, EBB__T_IDENT) && ebb__peek(p, 1)->kind == EBB__T_COLON) {
            ebb__syntax_at(p->s, arg)->tok = p->at;
            p->at += 2;
        }
        ebb__node_add(p, arg, ebb__parse_expr(p));
        ebb__node_add(p, node, ebb__node_close(p, arg));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RPAREN, open);
    p->head = head;
}

static uint32_t parse_parens(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TUPLE), open = p->at, n = 0;
    uint8_t head = p->head;
    bool comma = false;
    p->head = 0;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RPAREN) && !p->panic) {
        ebb__node_add(p, node, ebb__parse_expr(p));
        n++;
        if (!(comma = ebb__parse_accept(p, EBB__T_COMMA))) break;
    }
    if (n == 1 && !comma) ebb__syntax_at(p->s, node)->kind = EBB__S_PAREN;
    ebb__parse_close(p, EBB__T_RPAREN, open);
    p->head = head;
    return ebb__node_close(p, node);
}

static uint32_t parse_element(ebb__parser *p, uint32_t list) {
    uint32_t expr = ebb__parse_expr(p);
    if (!ebb__parse_accept(p, EBB__T_COLON)) return expr;
    ebb__syntax_at(p->s, list)->kind = EBB__S_MAP;
    uint32_t entry = ebb__node_open(p, EBB__S_ENTRY_KV);
    ebb__node_add(p, entry, expr);
    ebb__node_add(p, entry, ebb__parse_expr(p));
    return ebb__node_close(p, entry);
}

static uint32_t parse_list(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_LIST), open = p->at;
    uint8_t head = p->head;
    p->head = 0;
    ebb__parse_advance(p);
    if (ebb__is(p, EBB__T_COLON)) {
        ebb__syntax_at(p->s, node)->kind = EBB__S_MAP;
        ebb__parse_advance(p);
    }
    while (!ebb__is(p, EBB__T_RBRACK) && !p->panic) {
        ebb__node_add(p, node, parse_element(p, node));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RBRACK, open);
    p->head = head;
    return ebb__node_close(p, node);
}

static uint32_t parse_fstring(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_FSTRING);
    uint8_t head = p->head;
    p->head = 0;
    ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_LITERAL));
    while (!p->panic) {
        ebb__node_add(p, node, ebb__parse_expr(p));
        bool more = ebb__is(p, EBB__T_FSTRING_MID);
        if (!more && !ebb__is(p, EBB__T_FSTRING_END)) {
            ebb__parse_unexpected(p, "the end of the hole");
            break;
        }
        ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_LITERAL));
        if (!more) break;
    }
    p->head = head;
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_head(ebb__parser *p) {
    uint8_t head = p->head;
    p->head = EBB__HEAD;
    uint32_t node = ebb__parse_expr(p);
    p->head = head;
    return node;
}

static uint32_t parse_if(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_IF);
    do {
        ebb__parse_advance(p);
        ebb__node_add(p, node, ebb__parse_head(p));
        ebb__node_add(p, node, ebb__parse_block(p));
        if (p->panic || !ebb__parse_accept(p, EBB__T_else)) return ebb__node_close(p, node);
    } while (ebb__is(p, EBB__T_if));
    ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_arm_pattern(ebb__parser *p) {
    uint32_t pattern = ebb__parse_pattern(p);
    uint8_t kind = ebb__syntax_at(p->s, pattern)->kind;
    if ((kind == EBB__S_PAT_BIND || kind == EBB__S_PAT_WILD) && ebb__parse_accept(p, EBB__T_COLON)) {
        ebb__syntax_at(p->s, pattern)->kind = EBB__S_PAT_BIND;
        ebb__node_add(p, pattern, ebb__parse_type(p));
        ebb__node_close(p, pattern);
    }
    return pattern;
}

/* A jump is a statement: as the body of an arm it stands in a block. */
static bool skip_jump(ebb__parser *p) {
    if (!ebb__is(p, EBB__T_return) && !ebb__is(p, EBB__T_break) && !ebb__is(p, EBB__T_continue)) return false;
    ebb__parse_unexpected(p, "an expression, or a block as { return; }");
    while (!ebb__is(p, EBB__T_COMMA) && !ebb__is(p, EBB__T_RBRACE) && !ebb__is(p, EBB__T_END))
        ebb__parse_advance(p);
    p->panic = false;
    (void)ebb__parse_accept(p, EBB__T_COMMA);
    return true;
}

static uint32_t parse_arm(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_ARM);
    do ebb__node_add(p, node, parse_arm_pattern(p));
    while (ebb__parse_accept(p, EBB__T_OR));
    if (ebb__is(p, EBB__T_if)) {
        uint32_t guard = ebb__node_open(p, EBB__S_GUARD);
        ebb__parse_advance(p);
        ebb__node_add(p, guard, ebb__parse_expr(p));
        ebb__node_add(p, node, ebb__node_close(p, guard));
    }
    if (ebb__parse_expect(p, EBB__T_FATARROW, "") && !skip_jump(p)) {
        uint32_t body = ebb__parse_expr(p);
        bool block = ebb__is_block_like(ebb__syntax_at(p->s, body)->kind);
        ebb__node_add(p, node, body);
        if (!ebb__parse_accept(p, EBB__T_COMMA) && !block && !ebb__is(p, EBB__T_RBRACE)) {
            ebb__parse_expect(p, EBB__T_COMMA, "");
        }
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_match(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_MATCH);
    uint8_t head = p->head;
    ebb__parse_advance(p);
    p->head = EBB__HEAD_MATCH;
    ebb__node_add(p, node, ebb__parse_expr(p));
    p->head = 0;
    if (!p->panic) ebb__parse_braces(p, node, parse_arm);
    p->head = head;
    return ebb__node_close(p, node);
}

/* Behind the path: `{` begins a record literal, but in a head it begins the block, unless `{ name:` shows that a literal
 * is meant: no statement begins like that. */
static bool is_record(ebb__parser *p, uint32_t path) {
    if (!ebb__is(p, EBB__T_LBRACE)) return false;
    if (p->head == 0) return true;
    if (p->head == EBB__HEAD_MATCH) return false; /* `{ name: type =>` begins the arms */
    if (ebb__peek(p, 1)->kind != EBB__T_IDENT || ebb__peek(p, 2)->kind != EBB__T_COLON) return false;
    ebb__span at = ebb__node_span(p->s, path);
    ebb__diag *d = ebb__diag_report(p->c, EBB__E0108, at, "the brace behind this begins the block");
    ebb__diag_help(p->c, d, "put the literal in parentheses");
    uint32_t depth = 0, tok = p->at;
    for (; tok < p->s->tokens.n - 1; tok++) {
        uint8_t kind = ebb__token_at(p->s, tok)->kind;
        if (kind == EBB__T_LBRACE) depth++;
        if (kind == EBB__T_RBRACE && --depth == 0) break;
    }
    ebb__span end = ebb__token_span(p->s, tok);
    ebb__diag_edit(p->c, d, (ebb__span){at.source, at.at, 0}, "(");
    ebb__diag_edit(p->c, d, (ebb__span){at.source, end.at + end.n, 0}, ")");
    return true;
}

static uint32_t parse_record_lit(ebb__parser *p, uint32_t node) {
    uint32_t open = p->at;
    ebb__syntax_at(p->s, node)->kind = EBB__S_RECORD_LIT;
    uint8_t head = p->head;
    p->head = 0;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RBRACE) && !p->panic) {
        uint32_t init = ebb__node_open(p, EBB__S_INIT), name = ebb__parse_name(p, "a field");
        ebb__syntax_at(p->s, init)->tok = name;
        if (ebb__parse_accept(p, EBB__T_COLON)) ebb__node_add(p, init, ebb__parse_expr(p));
        ebb__node_add(p, node, ebb__node_close(p, init));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RBRACE, open);
    p->head = head;
    return ebb__node_close(p, node);
}

static uint32_t parse_named(ebb__parser *p) {
    uint8_t next = ebb__peek(p, 1)->kind;
    const ebb__token *after = ebb__peek(p, 2);
    if (ebb__is_word(p, EBB__N_emit) && next == EBB__T_IDENT) {
        uint32_t node = ebb__node_open(p, EBB__S_EMIT);
        ebb__parse_advance(p);
        ebb__syntax_at(p->s, node)->tok = p->at;
        bool known = ebb__is_word(p, EBB__N_Send) || ebb__is_word(p, EBB__N_Request);
        if (!known) ebb__parse_unexpected(p, "`Send` or `Request`");
        ebb__parse_advance(p);
        if (ebb__is(p, EBB__T_LPAREN)) ebb__parse_args(p, node);
        else ebb__parse_expect(p, EBB__T_LPAREN, "");
        return ebb__node_close(p, node);
    }
    if (ebb__is_word(p, EBB__N_request) && next == EBB__T_COLON && after->kind == EBB__T_IDENT) {
        uint32_t node = ebb__node_open(p, EBB__S_REQUEST);
        ebb__syntax_at(p->s, node)->tok = p->at + 2;
        p->at += 3;
        if (ebb__is(p, EBB__T_LPAREN)) ebb__parse_args(p, node);
        else ebb__parse_expect(p, EBB__T_LPAREN, "");
        return ebb__node_close(p, node);
    }
    uint32_t node = ebb__node_open(p, EBB__S_PATH_EXPR), path = ebb__parse_path(p);
    ebb__node_add(p, node, path);
    return is_record(p, path) ? parse_record_lit(p, node) : ebb__node_close(p, node);
}

static uint32_t parse_primary(ebb__parser *p) {
    switch (ebb__peek(p, 0)->kind) {
    case EBB__T_INT:
    case EBB__T_DURATION:
    case EBB__T_STRING:
    case EBB__T_BYTES:
    case EBB__T_FSTRING:
    case EBB__T_true:
    case EBB__T_false: return ebb__node_leaf(p, EBB__S_LITERAL);
    case EBB__T_FSTRING_BEGIN: return parse_fstring(p);
    case EBB__T_self: return ebb__node_leaf(p, EBB__S_SELF);
    case EBB__T_HOLE: return ebb__node_leaf(p, EBB__S_HOLE);
    case EBB__T_LPAREN: return parse_parens(p);
    case EBB__T_LBRACK: return parse_list(p);
    case EBB__T_LBRACE: return ebb__parse_block(p);
    case EBB__T_if: return parse_if(p);
    case EBB__T_match: return parse_match(p);
    case EBB__T_IDENT: return parse_named(p);
    default: ebb__parse_unexpected(p, "an expression"); return 0;
    }
}

/* A chain is as deep as it is long. */
static bool too_deep(ebb__parser *p, uint32_t node) {
    if (ebb__syntax_at(p->s, node)->depth <= EBB_LANG_MAX_DEPTH) return false;
    if (!p->panic) {
        (void)ebb__diag_report(p->c, EBB__E0109, ebb__node_span(p->s, node),
                               "this has more than %d operators in a chain", (int64_t)EBB_LANG_MAX_DEPTH);
    }
    p->panic = true;
    return true;
}

static uint32_t wrap(ebb__parser *p, ebb__kind kind, uint32_t inner) {
    uint32_t node = ebb__node_open(p, kind);
    ebb__node_add(p, node, inner);
    return node;
}

static uint32_t parse_member_of(ebb__parser *p, uint32_t inner) {
    uint32_t node = wrap(p, EBB__S_FIELD_OF, inner);
    ebb__parse_advance(p);
    uint32_t name = ebb__parse_name(p, "a field or method");
    ebb__syntax_at(p->s, node)->tok = name;
    return ebb__node_close(p, node);
}

static uint32_t parse_index(ebb__parser *p, uint32_t inner) {
    uint32_t node = wrap(p, EBB__S_INDEX, inner), open = p->at;
    uint8_t head = p->head;
    p->head = 0;
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_expr(p));
    ebb__parse_close(p, EBB__T_RBRACK, open);
    p->head = head;
    return ebb__node_close(p, node);
}

static uint32_t parse_postfix(ebb__parser *p) {
    uint32_t node = parse_primary(p);
    while (!p->panic && !p->c->oom) {
        bool statement = ebb__is_block_like(ebb__syntax_at(p->s, node)->kind);
        if (ebb__is(p, EBB__T_DOT)) {
            node = parse_member_of(p, node);
        } else if (ebb__is(p, EBB__T_LPAREN) && !statement) {
            node = wrap(p, EBB__S_CALL, node);
            ebb__parse_args(p, node);
            ebb__node_close(p, node);
        } else if (ebb__is(p, EBB__T_LBRACK) && !statement) {
            node = parse_index(p, node);
        } else if (ebb__is(p, EBB__T_QUESTION)) {
            node = wrap(p, EBB__S_TRY, node);
            ebb__parse_advance(p);
            ebb__node_close(p, node);
        } else {
            break;
        }
        if (too_deep(p, node)) break;
    }
    return node;
}

static uint32_t parse_unary(ebb__parser *p) {
    if (!ebb__is(p, EBB__T_MINUS) && !ebb__is(p, EBB__T_BANG) && !ebb__is(p, EBB__T_TILDE))
        return parse_postfix(p);
    uint32_t node = ebb__node_open(p, EBB__S_UNARY);
    ebb__syntax_at(p->s, node)->tok = p->at;
    ebb__parse_advance(p);
    if (ebb__parse_enter(p)) ebb__node_add(p, node, parse_unary(p));
    ebb__parse_leave(p);
    return ebb__node_close(p, node);
}

enum { LEVEL_CMP = 3, LEVEL_SHIFT = 7 };

/* How tightly the operator at the front binds, from 1; 0: it is none. << and >> are two tokens without a blank. */
static unsigned level_of(const ebb__parser *p, uint32_t *tokens) {
    const ebb__token *t = ebb__peek(p, 0), *next = ebb__peek(p, 1);
    *tokens = 1;
    switch (t->kind) {
    case EBB__T_OROR: return 1;
    case EBB__T_ANDAND: return 2;
    case EBB__T_LT:
    case EBB__T_GT:
        if (next->kind != t->kind || next->at != t->at + 1) return LEVEL_CMP;
        *tokens = 2;
        return LEVEL_SHIFT;
    case EBB__T_EQEQ:
    case EBB__T_NE:
    case EBB__T_LE:
    case EBB__T_GE: return LEVEL_CMP;
    case EBB__T_OR: return 4;
    case EBB__T_XOR: return 5;
    case EBB__T_AND: return 6;
    case EBB__T_PLUS:
    case EBB__T_MINUS: return 8;
    case EBB__T_STAR:
    case EBB__T_SLASH:
    case EBB__T_PERCENT: return 9;
    default: return 0;
    }
}

static uint32_t parse_binary(ebb__parser *p, unsigned least) {
    uint32_t node = parse_unary(p), tokens;
    unsigned level;
    bool compared = false;
    while (!p->panic && !p->c->oom && (level = level_of(p, &tokens)) >= least && level > 0) {
        if (level == LEVEL_CMP && compared) {
            ebb__parse_unexpected(p, "no second comparison: a < b < c is not allowed");
            break;
        }
        compared = level == LEVEL_CMP;
        node = wrap(p, EBB__S_BINARY, node);
        ebb__syntax_at(p->s, node)->tok = p->at;
        if (tokens == 2) ebb__syntax_at(p->s, node)->flags |= EBB__FLAG_SHIFT;
        p->at += tokens;
        ebb__node_add(p, node, parse_binary(p, level + 1));
        ebb__node_close(p, node);
        if (too_deep(p, node)) break;
    }
    return node;
}

uint32_t ebb__parse_expr(ebb__parser *p) {
    uint32_t node = ebb__parse_enter(p) ? parse_binary(p, 1) : 0;
    ebb__parse_leave(p);
    return node;
}
