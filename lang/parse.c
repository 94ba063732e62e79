/* lang/parse.c - tokens, nodes and recovery; paths and types. */
#include "lang/parse.h"

/* ---- tokens ---- */

bool ebb__parse_accept(ebb__parser *p, uint8_t kind) {
    if (!ebb__is(p, kind)) return false;
    ebb__parse_advance(p);
    return true;
}

bool ebb__accept_word(ebb__parser *p, ebb__name word) {
    if (!ebb__is_word(p, word)) return false;
    ebb__parse_advance(p);
    return true;
}

/* Where something is missing: behind the token before, if the next one is on another line. */
static ebb__span missing_at(const ebb__parser *p) {
    ebb__span here = ebb__token_span(p->s, p->at);
    if (p->at == 0) return here;
    ebb__span before = ebb__token_span(p->s, p->at - 1);
    for (uint32_t at = before.at + before.n; at < here.at; at++) {
        if (p->s->text[at] == '\n') return (ebb__span){here.source, before.at + before.n, 0};
    }
    return here;
}

/* What the parser finds behind a token that the lexer has reported is its consequence. */
static bool is_consequence(const ebb__parser *p) {
    if (p->panic || ebb__is(p, EBB__T_BAD)) return true;
    if (p->c->errors == 0 || p->at == 0) return false;
    ebb__span before = ebb__token_span(p->s, p->at - 1);
    return ebb__token_at(p->s, p->at - 1)->kind <= EBB__T_FSTRING_END && ebb__has_error_in(p->c, before);
}

void ebb__parse_unexpected(ebb__parser *p, const char *expected) {
    const ebb__token *t = ebb__peek(p, 0);
    if (!is_consequence(p)) {
        (void)ebb__diag_report(p->c, EBB__E0105, ebb__token_span(p->s, p->at), "expected %s, found %s",
                               expected, ebb__token_name(t->kind));
    }
    p->panic = true;
}

bool ebb__parse_expect(ebb__parser *p, uint8_t kind, const char *why) {
    if (ebb__parse_accept(p, kind)) return true;
    if (!is_consequence(p)) {
        ebb__span at = missing_at(p);
        ebb__diag *d = ebb__diag_report(p->c, EBB__E0105, at, "expected %s%s, found %s",
                                        ebb__token_name(kind), why, ebb__token_name(ebb__peek(p, 0)->kind));
        if (kind == EBB__T_SEMI && p->at > 0) {
            ebb__span before = ebb__token_span(p->s, p->at - 1);
            ebb__diag_help(p->c, d, "add a semicolon");
            ebb__diag_edit(p->c, d, (ebb__span){at.source, before.at + before.n, 0}, ";");
        }
    }
    p->panic = true;
    return false;
}

bool ebb__parse_close(ebb__parser *p, uint8_t kind, uint32_t open) {
    if (ebb__parse_accept(p, kind)) return true;
    if (!is_consequence(p)) {
        ebb__diag *d =
            ebb__diag_report(p->c, EBB__E0106, ebb__token_span(p->s, open), "this %s is never closed",
                             ebb__token_name(ebb__token_at(p->s, open)->kind));
        if (!ebb__is(p, EBB__T_END)) {
            ebb__diag_label(p->c, d, missing_at(p), "expected %s here", ebb__token_name(kind));
        }
    }
    p->panic = true;
    return false;
}

uint32_t ebb__parse_name(ebb__parser *p, const char *what) {
    if (ebb__is(p, EBB__T_IDENT)) {
        ebb__parse_advance(p);
        return p->at - 1;
    }
    ebb__parse_unexpected(p, what);
    return 0;
}

void ebb__parse_name_of(ebb__parser *p, uint32_t node, const char *what) {
    uint32_t tok = ebb__parse_name(p, what);
    ebb__syntax_at(p->s, node)->tok = tok;
}

uint32_t ebb__parse_name_node(ebb__parser *p, const char *what) {
    if (ebb__is(p, EBB__T_IDENT)) return ebb__node_leaf(p, EBB__S_NAME);
    ebb__parse_unexpected(p, what);
    return 0;
}

static bool starts_statement(uint8_t kind) {
    switch (kind) {
    case EBB__T_fn:
    case EBB__T_let:
    case EBB__T_var:
    case EBB__T_type:
    case EBB__T_const:
    case EBB__T_typestate:
    case EBB__T_protocol:
    case EBB__T_role:
    case EBB__T_state:
    case EBB__T_while:
    case EBB__T_return:
    case EBB__T_import:
    case EBB__T_pub: return true;
    default: return false;
    }
}

static bool is_member_word(const ebb__token *t) {
    switch (t->kind == EBB__T_IDENT ? t->name : 0) {
    case EBB__N_on:
    case EBB__N_msg:
    case EBB__N_req:
    case EBB__N_after:
    case EBB__N_entry:
    case EBB__N_exit: return true;
    default: return false;
    }
}

/* On a new line only: the words are names elsewhere. */
static bool starts_member(const ebb__parser *p) {
    const ebb__token *t = ebb__peek(p, 0);
    if (p->at == 0 || !is_member_word(t)) return false;
    const ebb__token *before = ebb__token_at(p->s, p->at - 1);
    for (uint32_t at = before->at + before->n; at < t->at; at++) {
        if (p->s->text[at] == '\n') return true;
    }
    return false;
}

void ebb__parse_sync(ebb__parser *p, uint32_t node) {
    uint32_t error = ebb__node_open(p, EBB__S_ERROR), depth = 0;
    while (!ebb__is(p, EBB__T_END)) {
        if (depth == 0 &&
            (ebb__is(p, EBB__T_RBRACE) || starts_statement(ebb__peek(p, 0)->kind) || starts_member(p)))
            break;
        bool semi = depth == 0 && ebb__is(p, EBB__T_SEMI);
        if (ebb__is(p, EBB__T_LBRACE)) depth++;
        bool ends = ebb__is(p, EBB__T_RBRACE) && --depth == 0;
        ebb__parse_advance(p);
        if (semi || ends) break;
    }
    p->panic = false;
    ebb__node_close(p, error);
    if (ebb__syntax_at(p->s, error)->end > ebb__syntax_at(p->s, error)->first) ebb__node_add(p, node, error);
}

/* ---- nodes ---- */

uint32_t ebb__node_open(ebb__parser *p, ebb__kind kind) {
    ebb__syntax *x = ebb__vec_push(p->c, &p->s->nodes);
    if (x == NULL) return 0;
    *x = (ebb__syntax){.kind = (uint8_t)kind, .first = p->at, .end = p->at};
    return p->s->nodes.n - 1;
}

void ebb__node_add(ebb__parser *p, uint32_t node, uint32_t child) {
    if (node == 0 || child == 0) return;
    ebb__syntax *x = ebb__syntax_at(p->s, node), *y = ebb__syntax_at(p->s, child);
    if (x->child == 0) x->child = child;
    else ebb__syntax_at(p->s, x->last)->next = child;
    x->last = child;
    if (y->depth >= x->depth) x->depth = (uint16_t)(y->depth + 1);
    if (y->first < x->first) x->first = y->first;
}

uint32_t ebb__node_close(ebb__parser *p, uint32_t node) {
    ebb__syntax_at(p->s, node)->end = p->at;
    return node;
}

uint32_t ebb__node_leaf(ebb__parser *p, ebb__kind kind) {
    uint32_t node = ebb__node_open(p, kind);
    ebb__syntax_at(p->s, node)->tok = p->at;
    ebb__parse_advance(p);
    return ebb__node_close(p, node);
}

bool ebb__parse_enter(ebb__parser *p) {
    p->depth++;
    if (p->depth <= EBB_LANG_MAX_DEPTH && !p->c->oom) return true;
    if (!p->panic) {
        (void)ebb__diag_report(p->c, EBB__E0109, ebb__token_span(p->s, p->at),
                               "this is nested more than %d deep", (int64_t)EBB_LANG_MAX_DEPTH);
    }
    p->panic = true;
    return false;
}

void ebb__parse_leave(ebb__parser *p) {
    p->depth--;
}

/* ---- paths and types ---- */

uint32_t ebb__parse_path(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_PATH);
    if (ebb__parse_name(p, "a name") != 0) {
        while (ebb__parse_accept(p, EBB__T_COLONS)) {
            if (ebb__parse_name(p, "a name") == 0) break;
        }
    }
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_choice(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_CHOICE);
    do ebb__node_add(p, node, ebb__parse_path(p));
    while (ebb__parse_accept(p, EBB__T_OR));
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_record(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_RECORD), open = p->at;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RBRACE) && !ebb__is(p, EBB__T_END) && !p->panic) {
        uint32_t field = ebb__node_open(p, EBB__S_FIELD), name = ebb__parse_name(p, "a field");
        ebb__syntax_at(p->s, field)->tok = name;
        ebb__parse_expect(p, EBB__T_COLON, " and the field's type");
        ebb__node_add(p, field, ebb__parse_type(p));
        ebb__node_add(p, node, ebb__node_close(p, field));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RBRACE, open);
    return ebb__node_close(p, node);
}

static uint32_t parse_type_tuple(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TYPE_TUPLE), open = p->at;
    ebb__parse_advance(p);
    while (!ebb__is(p, EBB__T_RPAREN) && !p->panic) {
        ebb__node_add(p, node, ebb__parse_type(p));
        if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
    }
    ebb__parse_close(p, EBB__T_RPAREN, open);
    return ebb__node_close(p, node);
}

static uint32_t parse_type_list(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TYPE_LIST), open = p->at;
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_type(p));
    if (ebb__parse_accept(p, EBB__T_COLON)) {
        ebb__syntax_at(p->s, node)->kind = EBB__S_TYPE_MAP;
        ebb__node_add(p, node, ebb__parse_type(p));
    }
    ebb__parse_close(p, EBB__T_RBRACK, open);
    return ebb__node_close(p, node);
}

static uint32_t parse_type_path(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TYPE_PATH);
    ebb__node_add(p, node, ebb__parse_path(p));
    if (ebb__is(p, EBB__T_LT)) {
        uint32_t open = p->at;
        ebb__parse_advance(p);
        do ebb__node_add(p, node, ebb__parse_type(p));
        while (ebb__parse_accept(p, EBB__T_COMMA));
        ebb__parse_close(p, EBB__T_GT, open);
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_type_atom(ebb__parser *p) {
    if (ebb__is(p, EBB__T_LPAREN)) return parse_type_tuple(p);
    if (ebb__is(p, EBB__T_LBRACK)) return parse_type_list(p);
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    if (ebb__is(p, EBB__T_IDENT)) return parse_type_path(p);
    ebb__parse_unexpected(p, "a type");
    return 0;
}

uint32_t ebb__parse_type(ebb__parser *p) {
    if (!ebb__parse_enter(p)) {
        ebb__parse_leave(p);
        return 0;
    }
    uint32_t node = parse_type_atom(p);
    if (ebb__is(p, EBB__T_OR)) {
        uint32_t all = ebb__node_open(p, EBB__S_TYPE_UNION);
        ebb__node_add(p, all, node);
        while (ebb__parse_accept(p, EBB__T_OR)) ebb__node_add(p, all, parse_type_atom(p));
        node = ebb__node_close(p, all);
    }
    ebb__parse_leave(p);
    return node;
}
