/* lang/parse_stmt.c - blocks, statements and patterns. */
#include "lang/parse.h"

static uint32_t parse_let(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_LET);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_pattern(p));
    if (ebb__parse_accept(p, EBB__T_COLON)) ebb__node_add(p, node, ebb__parse_type(p));
    if (ebb__parse_expect(p, EBB__T_EQ, " and a value")) {
        ebb__node_add(p, node, ebb__parse_expr(p));
        if (ebb__parse_accept(p, EBB__T_else)) ebb__node_add(p, node, ebb__parse_block(p));
    }
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

/* Without a value it is E0310 later, which says more than the grammar can. */
static uint32_t parse_var(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_VAR);
    ebb__parse_advance(p);
    uint32_t name = ebb__parse_name(p, "the name of the variable");
    ebb__syntax_at(p->s, node)->tok = name;
    if (ebb__parse_accept(p, EBB__T_COLON)) ebb__node_add(p, node, ebb__parse_type(p));
    if (ebb__parse_accept(p, EBB__T_EQ)) ebb__node_add(p, node, ebb__parse_expr(p));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_while(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_WHILE);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_head(p));
    ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_for(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_FOR);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_pattern(p));
    ebb__parse_expect(p, EBB__T_in, "");
    ebb__node_add(p, node, ebb__parse_head(p));
    if (ebb__parse_accept(p, EBB__T_DOTS)) ebb__node_add(p, node, ebb__parse_head(p));
    ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_return(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_RETURN);
    ebb__parse_advance(p);
    if (!ebb__is(p, EBB__T_SEMI) && !ebb__is(p, EBB__T_RBRACE)) ebb__node_add(p, node, ebb__parse_expr(p));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_jump(ebb__parser *p, ebb__kind kind) {
    uint32_t node = ebb__node_open(p, kind);
    ebb__parse_advance(p);
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

bool ebb__is_block_like(uint8_t kind) {
    return kind == EBB__S_BLOCK || kind == EBB__S_IF || kind == EBB__S_MATCH;
}

static bool is_assign(uint8_t kind) {
    return kind == EBB__T_EQ || kind == EBB__T_PLUSEQ || kind == EBB__T_MINUSEQ || kind == EBB__T_STAREQ;
}

/* An expression, an assignment, or at the end of a block its value. */
static uint32_t parse_expr_stmt(ebb__parser *p) {
    uint32_t expr = ebb__parse_expr(p);
    uint8_t kind = ebb__syntax_at(p->s, expr)->kind;
    if (p->panic) return expr;
    if (is_assign(ebb__peek(p, 0)->kind)) {
        uint32_t node = ebb__node_open(p, EBB__S_ASSIGN);
        ebb__syntax_at(p->s, node)->tok = p->at;
        ebb__parse_advance(p);
        ebb__node_add(p, node, expr);
        ebb__node_add(p, node, ebb__parse_expr(p));
        ebb__parse_expect(p, EBB__T_SEMI, "");
        return ebb__node_close(p, node);
    }
    if (ebb__is(p, EBB__T_SEMI)) {
        uint32_t node = ebb__node_open(p, EBB__S_EXPR_STMT);
        ebb__node_add(p, node, expr);
        ebb__parse_advance(p);
        return ebb__node_close(p, node);
    }
    bool hole = kind == EBB__S_HOLE;
    if (!ebb__is(p, EBB__T_RBRACE) && !ebb__is_block_like(kind) && !hole)
        ebb__parse_expect(p, EBB__T_SEMI, "");
    return expr;
}

static uint32_t parse_stmt(ebb__parser *p) {
    switch (ebb__peek(p, 0)->kind) {
    case EBB__T_let: return parse_let(p);
    case EBB__T_var: return parse_var(p);
    case EBB__T_while: return parse_while(p);
    case EBB__T_for: return parse_for(p);
    case EBB__T_return: return parse_return(p);
    case EBB__T_break: return parse_jump(p, EBB__S_BREAK);
    case EBB__T_continue: return parse_jump(p, EBB__S_CONTINUE);
    default: return parse_expr_stmt(p);
    }
}

static bool starts_item(uint8_t kind) {
    return kind == EBB__T_fn || kind == EBB__T_type || kind == EBB__T_typestate || kind == EBB__T_protocol ||
           kind == EBB__T_state || kind == EBB__T_role || kind == EBB__T_import || kind == EBB__T_pub ||
           kind == EBB__T_const;
}

static void parse_stmts(ebb__parser *p, uint32_t node) {
    while (!ebb__is(p, EBB__T_RBRACE) && !ebb__is(p, EBB__T_END) && !p->c->oom) {
        uint32_t before = p->at;
        if (starts_item(ebb__peek(p, 0)->kind)) break; /* the brace is missing */
        ebb__node_add(p, node, parse_stmt(p));
        if (p->panic) ebb__parse_sync(p, node);
        if (p->at == before) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_ERROR));
    }
}

uint32_t ebb__parse_block(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_BLOCK), open = p->at;
    uint8_t head = p->head;
    if (p->panic || !ebb__parse_expect(p, EBB__T_LBRACE, "")) return ebb__node_close(p, node);
    p->head = 0;
    if (ebb__parse_enter(p)) {
        parse_stmts(p, node);
        ebb__parse_close(p, EBB__T_RBRACE, open);
    }
    ebb__parse_leave(p);
    p->head = head;
    return ebb__node_close(p, node);
}

/* ---- patterns ---- */

static uint32_t parse_pattern_list(ebb__parser *p, uint32_t node) {
    uint32_t open = p->at;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RPAREN) && !p->panic) {
        ebb__node_add(p, node, ebb__parse_pattern(p));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RPAREN, open);
    return ebb__node_close(p, node);
}

static uint32_t parse_pattern_fields(ebb__parser *p, uint32_t node) {
    uint32_t open = p->at;
    ebb__syntax_at(p->s, node)->kind = EBB__S_PAT_RECORD;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RBRACE) && !p->panic) {
        uint32_t field = ebb__node_open(p, EBB__S_PAT_FIELD), name = ebb__parse_name(p, "a field");
        ebb__syntax_at(p->s, field)->tok = name;
        if (ebb__parse_accept(p, EBB__T_COLON)) ebb__node_add(p, field, ebb__parse_pattern(p));
        ebb__node_add(p, node, ebb__node_close(p, field));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RBRACE, open);
    return ebb__node_close(p, node);
}

static uint32_t parse_pattern_name(ebb__parser *p) {
    if (ebb__is_word(p, EBB__N__)) return ebb__node_leaf(p, EBB__S_PAT_WILD);
    uint32_t node = ebb__node_open(p, EBB__S_PAT_BIND), name = p->at;
    uint32_t path = ebb__parse_path(p);
    uint8_t next = ebb__peek(p, 0)->kind;
    if (next == EBB__T_LPAREN || next == EBB__T_LBRACE || p->at > name + 1) {
        ebb__syntax_at(p->s, node)->kind = EBB__S_PAT_PATH;
        ebb__node_add(p, node, path);
        if (next == EBB__T_LPAREN) return parse_pattern_list(p, node);
        if (next == EBB__T_LBRACE) return parse_pattern_fields(p, node);
        return ebb__node_close(p, node);
    }
    ebb__syntax_at(p->s, node)->tok = name;
    return ebb__node_close(p, node);
}

/* `name: type` stands in patterns of match only: in let and for the type follows the pattern. */
uint32_t ebb__parse_pattern(ebb__parser *p) {
    uint32_t node = 0;
    if (!ebb__parse_enter(p)) {
        ebb__parse_leave(p);
        return 0;
    }
    switch (ebb__peek(p, 0)->kind) {
    case EBB__T_IDENT: node = parse_pattern_name(p); break;
    case EBB__T_LPAREN: node = parse_pattern_list(p, ebb__node_open(p, EBB__S_PAT_TUPLE)); break;
    case EBB__T_INT:
    case EBB__T_DURATION:
    case EBB__T_STRING:
    case EBB__T_BYTES:
    case EBB__T_true:
    case EBB__T_false: node = ebb__node_leaf(p, EBB__S_PAT_LITERAL); break;
    default: ebb__parse_unexpected(p, "a pattern");
    }
    ebb__parse_leave(p);
    return node;
}
