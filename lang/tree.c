/* lang/tree.c - the syntax tree: places, and printing it. */
#include "lang/tree.h"

ebb__span ebb__token_span(const ebb__source *s, uint32_t tok) {
    const ebb__token *t = ebb__token_at(s, tok);
    return (ebb__span){s->id, t->at, t->n};
}

ebb__span ebb__node_span(const ebb__source *s, uint32_t node) {
    const ebb__syntax *x = ebb__syntax_at(s, node);
    const ebb__token *first = ebb__token_at(s, x->first);
    if (x->end <= x->first) return (ebb__span){s->id, first->at, 0};
    const ebb__token *last = ebb__token_at(s, x->end - 1);
    return (ebb__span){s->id, first->at, last->at + last->n - first->at};
}

uint32_t ebb__child_of(const ebb__source *s, uint32_t node, ebb__kind kind) {
    uint32_t child = ebb__syntax_at(s, node)->child;
    while (child != 0 && ebb__syntax_at(s, child)->kind != kind) child = ebb__syntax_at(s, child)->next;
    return child;
}

uint32_t ebb__children_of(const ebb__source *s, uint32_t node, ebb__kind kind) {
    uint32_t n = 0;
    for (uint32_t x = ebb__syntax_at(s, node)->child; x != 0; x = ebb__syntax_at(s, x)->next)
        n += ebb__syntax_at(s, x)->kind == kind;
    return n;
}

ebb__name ebb__node_name(const ebb__source *s, uint32_t node) {
    uint32_t tok = node == 0 ? 0 : ebb__syntax_at(s, node)->tok;
    return tok == 0 ? 0 : ebb__token_at(s, tok)->name;
}

ebb__span ebb__name_span(const ebb__source *s, uint32_t node) {
    uint32_t tok = ebb__syntax_at(s, node)->tok;
    return tok == 0 ? ebb__node_span(s, node) : ebb__token_span(s, tok);
}

static void print_tokens(const ebb__source *s, uint32_t from, uint32_t to, uint32_t *at,
                         ebb_lang_write_fn *write, void *ctx) {
    for (; from < to; from++) {
        const ebb__token *t = ebb__token_at(s, from);
        write(ctx, s->text + *at, t->at + t->n - *at);
        *at = t->at + t->n;
    }
}

static void print_node(const ebb__source *s, uint32_t node, uint32_t *at, ebb_lang_write_fn *write,
                       void *ctx) {
    const ebb__syntax *x = ebb__syntax_at(s, node);
    uint32_t tok = x->first;
    for (uint32_t child = x->child; child != 0; child = ebb__syntax_at(s, child)->next) {
        print_tokens(s, tok, ebb__syntax_at(s, child)->first, at, write, ctx);
        print_node(s, child, at, write, ctx);
        tok = ebb__syntax_at(s, child)->end;
    }
    print_tokens(s, tok, x->end, at, write, ctx);
}

void ebb__tree_print(const ebb__source *s, uint32_t node, ebb_lang_write_fn *write, void *ctx) {
    uint32_t first = ebb__syntax_at(s, node)->first;
    uint32_t at = node == s->root || first == 0 ? 0 : ebb__token_at(s, first)->at;
    print_node(s, node, &at, write, ctx);
}
