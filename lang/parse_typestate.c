/* lang/parse_typestate.c - typestates and specs: their members, states, handlers. */
#include "lang/parse.h"

static uint32_t parse_tfield(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TFIELD);
    ebb__parse_name_of(p, node, "a field");
    ebb__parse_expect(p, EBB__T_COLON, " and the field's type");
    ebb__node_add(p, node, ebb__parse_type(p));
    if (ebb__accept_word(p, EBB__N_as)) ebb__node_add(p, node, ebb__parse_path(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_fields(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_FIELDS);
    ebb__parse_advance(p);
    uint32_t open = p->at;
    if (ebb__parse_expect(p, EBB__T_LBRACE, "")) {
        while (!ebb__is(p, EBB__T_RBRACE) && !p->panic) {
            ebb__node_add(p, node, parse_tfield(p));
            if (!ebb__parse_accept(p, EBB__T_COMMA)) break;
        }
        ebb__parse_close(p, EBB__T_RBRACE, open);
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_targets(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_TARGETS);
    ebb__parse_advance(p);
    do ebb__node_add(p, node, ebb__parse_path(p));
    while (ebb__parse_accept(p, EBB__T_OR));
    return ebb__node_close(p, node);
}

static uint32_t parse_origin(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_ORIGIN);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_path(p));
    if (ebb__parse_accept(p, EBB__T_COLON)) {
        if (ebb__is(p, EBB__T_IDENT)) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_LABEL));
        else ebb__parse_unexpected(p, "a label");
    }
    if (ebb__is(p, EBB__T_LPAREN)) {
        uint32_t open = p->at;
        ebb__parse_advance(p);
        ebb__node_add(p, node, ebb__parse_name_node(p, "a name for the request"));
        ebb__parse_close(p, EBB__T_RPAREN, open);
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_handler(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_HANDLER);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_path(p));
    if (ebb__is(p, EBB__T_LPAREN)) ebb__node_add(p, node, ebb__parse_params(p));
    if (ebb__is(p, EBB__T_for)) ebb__node_add(p, node, parse_origin(p));
    if (ebb__is(p, EBB__T_ARROW)) ebb__node_add(p, node, parse_targets(p));
    if (!p->panic) ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_after(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_AFTER);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_head(p));
    if (ebb__is(p, EBB__T_ARROW)) ebb__node_add(p, node, parse_targets(p));
    if (!p->panic) ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

static uint32_t parse_kinds(ebb__parser *p, ebb__kind kind) {
    uint32_t node = ebb__node_open(p, kind);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_choice(p));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_invariant(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_INVARIANT);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_expr(p));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_body(ebb__parser *p, ebb__kind kind) {
    uint32_t node = ebb__node_open(p, kind);
    ebb__parse_advance(p);
    ebb__node_add(p, node, ebb__parse_block(p));
    return ebb__node_close(p, node);
}

/* What a typestate and a state both have; 0: it begins neither, and nothing was read. */
static uint32_t parse_common(ebb__parser *p) {
    if (ebb__is(p, EBB__T_HOLE)) return ebb__node_leaf(p, EBB__S_HOLE);
    if (ebb__is(p, EBB__T_fn)) return ebb__parse_fn(p, ebb__node_open(p, EBB__S_FN));
    switch (ebb__is(p, EBB__T_IDENT) ? ebb__peek(p, 0)->name : 0) {
    case EBB__N_fields: return parse_fields(p);
    case EBB__N_on: return parse_handler(p);
    case EBB__N_defer: return parse_kinds(p, EBB__S_DEFER);
    case EBB__N_ignore: return parse_kinds(p, EBB__S_IGNORE);
    case EBB__N_invariant: return parse_invariant(p);
    default: return 0;
    }
}

static uint32_t parse_smember(ebb__parser *p) {
    uint32_t node = parse_common(p);
    if (node != 0) return node;
    if (ebb__is_word(p, EBB__N_after)) return parse_after(p);
    if (ebb__is_word(p, EBB__N_entry)) return parse_body(p, EBB__S_ENTRY);
    if (ebb__is_word(p, EBB__N_exit)) return parse_body(p, EBB__S_EXIT);
    ebb__parse_unexpected(
        p, "a member of the state: on, fn, fields, after, defer, ignore, entry, exit or invariant");
    return 0;
}

static uint32_t parse_state(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_STATE);
    while (ebb__is(p, EBB__T_AT)) ebb__node_add(p, node, ebb__parse_attr(p));
    if (ebb__accept_word(p, EBB__N_hot)) ebb__syntax_at(p->s, node)->flags |= EBB__FLAG_HOT;
    if (ebb__parse_expect(p, EBB__T_state, "")) {
        ebb__parse_name_of(p, node, "the name of the state");
        if (ebb__accept_word(p, EBB__N_as)) ebb__node_add(p, node, ebb__parse_path(p));
        if (ebb__is(p, EBB__T_LBRACE)) ebb__parse_braces(p, node, parse_smember);
        else ebb__parse_expect(p, EBB__T_SEMI, " or the state's members");
    }
    return ebb__node_close(p, node);
}

static uint32_t parse_fault(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_FAULT);
    ebb__parse_advance(p);
    ebb__parse_expect(p, EBB__T_ARROW, " and a state");
    ebb__node_add(p, node, ebb__parse_name_node(p, "a state"));
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_mailbox(ebb__parser *p) {
    uint32_t node = ebb__node_open(p, EBB__S_MAILBOX);
    ebb__parse_advance(p);
    if (ebb__is(p, EBB__T_INT)) ebb__node_add(p, node, ebb__node_leaf(p, EBB__S_LITERAL));
    else ebb__parse_unexpected(p, "the number of messages");
    ebb__parse_expect(p, EBB__T_SEMI, "");
    return ebb__node_close(p, node);
}

static uint32_t parse_member(ebb__parser *p) {
    uint32_t node = parse_common(p);
    if (node != 0) return node;
    if (ebb__is(p, EBB__T_AT) || ebb__is(p, EBB__T_state)) return parse_state(p);
    if (ebb__is_word(p, EBB__N_hot)) return parse_state(p);
    if (ebb__is_word(p, EBB__N_fault)) return parse_fault(p);
    if (ebb__is_word(p, EBB__N_mailbox)) return parse_mailbox(p);
    ebb__parse_unexpected(
        p, "a member of the typestate: state, fn, fields, on, defer, ignore, invariant, fault or mailbox");
    return 0;
}

uint32_t ebb__parse_typestate(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the typestate");
    if (ebb__parse_accept(p, EBB__T_COLON)) {
        do ebb__node_add(p, node, ebb__parse_path(p));
        while (ebb__parse_accept(p, EBB__T_COMMA));
    }
    ebb__parse_braces(p, node, parse_member);
    return ebb__node_close(p, node);
}

uint32_t ebb__parse_spec(ebb__parser *p, uint32_t node) {
    ebb__parse_advance(p);
    ebb__parse_name_of(p, node, "the name of the spec");
    if (ebb__accept_word(p, EBB__N_observes)) ebb__node_add(p, node, ebb__parse_choice(p));
    else ebb__parse_unexpected(p, "`observes` and the messages");
    ebb__parse_braces(p, node, parse_member);
    return ebb__node_close(p, node);
}
