/* lang/parse_item.c - files, items and protocols. */
#include "lang/parse.h"

uint32_t ebb__parse_attr(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_ATTR);
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of an attribute");
    if (ebb__is(p, EBB__T_LPAREN)) ebb__parse_args(p, node);
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_params(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_PARAMS), open = p->at;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RPAREN) && !p->panic) {
        uint32_t param = ebb__node_open(p, EBB__S_PARAM);
        ebb__parse_name_of(p, param, "a parameter");
        if (ebb__parse_accept(p, EBB__T_COLON)) ebb__node_add(p, param, ebb__parse_type(p));
        ebb__node_add(p, node, ebb__node_close(p, param));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RPAREN, open);
    return ebb__node_close(p, node);
}

/* Behind the attributes, which are in `node` already. */
uint32_t ebb__parse_fn(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the function");
    if (ebb__is(p, EBB__T_LPAREN)) ebb__node_add(p, node, ebb__parse_params(p));
    else ebb__parse_expect(p, EBB__T_LPAREN, " and the parameters");
    if (ebb__parse_accept(p, EBB__T_ARROW)) ebb__node_add(p, node, ebb__parse_type(p));
    ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_typedecl(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the type");
    ebb__parse_expect(p, EBB__T_EQ, "");
    ebb__node_add(p, node, ebb__is(p, EBB__T_LBRACE) ? ebb__parse_record(p) : ebb__parse_type(p));
    (void)ebb__parse_accept(p, EBB__T_SEMI);
    return ebb__node_close(p, node);
}

static uint32_t parse_const(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the constant");
    ebb__parse_expect(p, EBB__T_COLON, " and the constant's type");
    ebb__node_add(p, node, ebb__parse_type(p));
    ebb__parse_expect(p, EBB__T_EQ, "");
    ebb__node_add(p, node, ebb__parse_expr(p));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_import(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_IMPORT);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_path(p));
    if (ebb__accept_word(p, EBB__N_as)) {
        if (ebb__is(p, EBB__T_IDENT)) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_NAME));
        else ebb__parse_unexpected(p, "a name");
    }
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

/* ---- protocols ---- */

static uint32_t parse_msg(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_MSG);
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the message");
    if (ebb__parse_accept(p, EBB__T_EQ)) {
        if (ebb__is(p, EBB__T_LBRACE)) ebb__node_add(p, node, ebb__parse_record(p));
        else ebb__parse_expect(p, EBB__T_LBRACE, " and the fields");
    }
    (void)ebb__parse_accept(p, EBB__T_SEMI);
    return ebb__node_close(p, node);
}

static uint32_t parse_req(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_REQ);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_name_node(p, "the role that asks"));
    ebb__parse_expect(p, EBB__T_ARROW, " and the role that is asked");
    ebb__node_add(p, node, ebb__parse_name_node(p, "the role that is asked"));
    ebb__parse_expect(p, EBB__T_COLON, " and the request's message");
    ebb__node_add(p, node, ebb__parse_path(p));
    ebb__parse_expect(p, EBB__T_FATARROW, " and the responses");
    ebb__node_add(p, node, ebb__parse_choice(p));
    if (ebb__accept_word(p, EBB__N_within)) {
        if (ebb__is(p, EBB__T_DURATION)) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_LITERAL));
        else ebb__parse_unexpected(p, "a duration");
    }
    (void)ebb__parse_accept(p, EBB__T_SEMI);
    return ebb__node_close(p, node);
}

static uint32_t parse_effect(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_EFFECT);
    bool reply = ebb__is_word(p, EBB__N_reply) && ebb__peek(p, 1)->kind == EBB__T_IDENT;
    if (reply) ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_choice(p));
    if (!reply) {
        ebb__parse_expect(p, EBB__T_EFFECT, " and a role");
        ebb__node_add(p, node, ebb__parse_name_node(p, "a role"));
    }
    return ebb__node_close(p, node);
}

static void parse_effects(ebb__parser *p, uint32_t node) {
    uint32_t open = p->at;
    ebb__parse_advance(p);
    if (!ebb__accept_word(p, EBB__N_effects)) ebb__parse_unexpected(p, "`effects: [ ... ]`");
    ebb__parse_expect(p, EBB__T_COLON, "");
    uint32_t list = p->at;
    if (ebb__parse_expect(p, EBB__T_LBRACK, "")) {
        while (!ebb__is(p, EBB__T_RBRACK) && !p->panic) {
            ebb__node_add(p, node, parse_effect(p));
            if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
        }
        ebb__parse_close(p, EBB__T_RBRACK, list);
    }
    (void)ebb__parse_accept(p, EBB__T_COMMA);
    ebb__parse_close(p, EBB__T_RBRACE, open);
}

static uint32_t parse_rtrans(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_RTRANS);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_path(p));
    if (ebb__parse_accept(p, EBB__T_AT)) ebb__node_add(p, node, ebb__parse_name_node(p, "a role"));
    if (ebb__parse_accept(p, EBB__T_ARROW)) ebb__node_add(p, node, ebb__parse_choice(p));
    if (ebb__is(p, EBB__T_LBRACE)) parse_effects(p, node);
    else ebb__parse_expect(p, EBB__T_SEMI, " or effects");
    return ebb__node_close(p, node);
}

/* What begins an item and never a member. */
static bool starts_item(uint8_t kind) {
    return kind == EBB__T_type || kind == EBB__T_typestate || kind == EBB__T_protocol ||
           kind == EBB__T_const || kind == EBB__T_import || kind == EBB__T_pub;
}

void ebb__parse_braces(ebb__parser *p, uint32_t node, uint32_t (*member)(ebb__parser *)) {
    uint32_t open = p->at;
    if (!ebb__parse_expect(p, EBB__T_LBRACE, "")) return;
    while (!ebb__is(p, EBB__T_RBRACE) && !ebb__is(p, EBB__T_END) && !p->c->oom) {
        uint32_t before = p->at;
        if (starts_item(ebb__peek(p, 0)->kind)) break; /* the brace is missing */
        ebb__node_add(p, node, member(p));
        if (!p->panic) continue;
        ebb__parse_sync(p, node);
        if (p->at == before) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_ERROR));
    }
    ebb__parse_close(p, EBB__T_RBRACE, open);
}

static uint32_t parse_rstate_member(ebb__parser *p) {
    if (ebb__is_word(p, EBB__N_on)) return parse_rtrans(p);
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    ebb__parse_unexpected(p, "`on`");
    return 0;
}

static uint32_t parse_rstate(ebb__parser *p) {
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    uint32_t node = ebb__node_open(p, EBB__S_RSTATE);
    while (ebb__is(p, EBB__T_AT)) ebb__node_add(p, node, ebb__parse_attr(p));
    if (ebb__parse_expect(p, EBB__T_state, "")) {
        ebb__parse_name_of(p, node, "the name of the state");
        if (ebb__is(p, EBB__T_LBRACE)) ebb__parse_braces(p, node, parse_rstate_member);
        else ebb__parse_expect(p, EBB__T_SEMI, " or the state's transitions");
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_role(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_ROLE);
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the role");
    if (ebb__is(p, EBB__T_LBRACE)) ebb__parse_braces(p, node, parse_rstate);
    else ebb__parse_expect(p, EBB__T_SEMI, " or the role's states");
    return ebb__node_close(p, node);
}

static uint32_t parse_protocol_member(ebb__parser *p) {
    if (ebb__is_word(p, EBB__N_msg)) return parse_msg(p);
    if (ebb__is_word(p, EBB__N_req)) return parse_req(p);
    if (ebb__is(p, EBB__T_role)) return parse_role(p);
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    ebb__parse_unexpected(p, "`msg`, `req` or `role`");
    return 0;
}

uint32_t ebb__parse_protocol(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the protocol");
    ebb__parse_braces(p, node, parse_protocol_member);
    return ebb__node_close(p, node);
}

/* ---- items ---- */

static uint32_t parse_plain_item(ebb__parser *p, uint32_t node) {
    ebb__syntax *x = ebb__syntax_at(p->s, node);
    switch (ebb__peek(p, 0)->kind) {
    case EBB__T_type: x->kind = EBB__S_TYPEDECL; return parse_typedecl(p, node);
    case EBB__T_const: x->kind = EBB__S_CONST; return parse_const(p, node);
    case EBB__T_fn: x->kind = EBB__S_FN; return ebb__parse_fn(p, node);
    case EBB__T_typestate: x->kind = EBB__S_TYPESTATE; return ebb__parse_typestate(p, node);
    case EBB__T_protocol: x->kind = EBB__S_PROTOCOL; return ebb__parse_protocol(p, node);
    default: break;
    }
    if (ebb__is_word(p, EBB__N_spec)) {
        x->kind = EBB__S_SPEC;
        return ebb__parse_spec(p, node);
    }
    ebb__parse_unexpected(p, "type, const, fn, typestate, protocol or spec");
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_item(ebb__parser *p) {
    if (ebb__is(p, EBB__T_import)) return parse_import(p);
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    uint32_t node = ebb__node_open(p, EBB__S_ERROR);
    while (ebb__is(p, EBB__T_AT)) ebb__node_add(p, node, ebb__parse_attr(p));
    if (ebb__parse_accept(p, EBB__T_pub)) ebb__syntax_at(p->s, node)->flags |= EBB__FLAG_PUB;
    return parse_plain_item(p, node);
}

/* What the checker says about an item with a syntax error would mostly be its consequence. */
static void mark_broken(ebb_lang *c, ebb__source *s) {
    s->broken = ebb__has_error_in(c, (ebb__span){s->id, 0, s->n});
    if (!s->broken) return;
    for (uint32_t item = ebb__syntax_at(s, s->root)->child; item != 0; item = ebb__syntax_at(s, item)->next) {
        if (ebb__has_error_in(c, ebb__node_span(s, item))) ebb__syntax_at(s, item)->flags |= EBB__FLAG_BROKEN;
    }
}

void ebb__parse(ebb_lang *c, ebb__source *s) {
    ebb__parser p = {.c = c, .s = s};
    (void)ebb__vec_push(c, &s->nodes); /* 0 is none */
    if (s->nodes.n == 0 || s->tokens.n == 0) return;
    uint32_t file = ebb__node_open(&p, EBB__S_FILE);
    while (!ebb__is(&p, EBB__T_END) && !c->oom) {
        uint32_t before = p.at;
        ebb__node_add(&p, file, ebb__parse_item(&p));
        if (!p.panic) continue;
        ebb__parse_sync(&p, file);
        if (p.at == before || ebb__is(&p, EBB__T_RBRACE))
            ebb__node_add(&p, file, ebb__node_leaf(&p, EBB__S_ERROR));
    }
    p.at = s->tokens.n; /* with the end, so that the last comment belongs to the tree */
    s->root = ebb__node_close(&p, file);
    mark_broken(c, s);
}
