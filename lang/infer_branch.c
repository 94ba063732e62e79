/* lang/infer_branch.c - if and match: one type of all branches, and what the states of locals are behind them. */
#include "lang/body.h"

static ebb__span span_of(const ebb__body *b, uint32_t node) {
    return ebb__node_span(b->s, node);
}

static const ebb__syntax *at(const ebb__body *b, uint32_t node) {
    return ebb__syntax_at(b->s, node);
}

/* The type of branches without an expected one: the same, or a union of records and states. */
static ebb__type join(ebb__body *b, ebb__type all, const ebb__ir *x) {
    if (all == x->type || all == EBB__TY_ERROR || x->type == EBB__TY_ERROR)
        return all == EBB__TY_ERROR ? all : x->type;
    if (all == EBB__TY_NEVER || x->type == EBB__TY_NEVER) return all == EBB__TY_NEVER ? x->type : all;
    uint8_t k = ebb__type_kind_of(b->c, all), l = ebb__type_kind_of(b->c, x->type);
    bool named = (k == EBB__TY_RECORD || k == EBB__TY_STATE || k == EBB__TY_UNION) &&
                 (l == EBB__TY_RECORD || l == EBB__TY_STATE || l == EBB__TY_UNION);
    if (named) return ebb__type_join(b->c, all, x->type);
    (void)ebb__diag_report(b->c, EBB__E0301, x->span, "the branches before this give %t, this one %t", all,
                           x->type);
    return EBB__TY_ERROR;
}

static void widen_branches(ebb__body *b, ebb__ir *x, uint32_t first, uint32_t step) {
    for (uint32_t i = first; i < x->n; i += step) x->args[i] = ebb__coerce(b, x->args[i], x->type);
}

ebb__ir *ebb__infer_if(ebb__body *b, uint32_t node, ebb__type expected, bool tail) {
    uint32_t n = 0, i = 0;
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) n++;
    ebb__ir *all = ebb__ir_new(b, EBB__OP_IF, EBB__TY_NEVER, span_of(b, node), n);
    bool otherwise = n % 2 == 1;
    if (!otherwise && !tail) expected = EBB__TY_UNIT;
    ebb__flow *out = NULL;
    for (uint32_t x = at(b, node)->child; x != 0 && i < all->n; x = at(b, x)->next, i++) {
        bool condition = i % 2 == 0 && at(b, x)->next != 0;
        if (condition) {
            all->args[i] = ebb__infer_as(b, x, EBB__TY_BOOL);
            continue;
        }
        ebb__flow *before = ebb__flow_save(b);
        all->args[i] = tail ? ebb__infer_tail(b, x) : ebb__infer_block(b, x, expected, false);
        all->type = join(b, all->type, all->args[i]);
        if (out != NULL) ebb__flow_merge(b, out, ebb__end_of(b, x));
        out = ebb__flow_save(b);
        if (i % 2 == 1) ebb__flow_load(b, before);
    }
    if (!otherwise) {
        ebb__ir *off = tail ? ebb__infer_fall_off(b, ebb__end_of(b, node)) : NULL;
        if (off != NULL) {
            all->type = EBB__TY_UNIT;
            all = ebb__ir_2(b, EBB__OP_BLOCK, EBB__TY_NEVER, all->span, all, off);
        } else if (!tail) {
            all->type = EBB__TY_UNIT;
        }
        if (out != NULL) ebb__flow_merge(b, out, ebb__end_of(b, node));
        return all;
    }
    if (out != NULL) ebb__flow_load(b, out);
    if (all->type != EBB__TY_ERROR) {
        widen_branches(b, all, 1, 2);
        if (all->n > 0) all->args[all->n - 1] = ebb__coerce(b, all->args[all->n - 1], all->type);
    }
    return all;
}

typedef struct arms {
    ebb__ir_pattern **patterns;
    bool *guarded;
    uint32_t n;
} arms;

static ebb__ir *infer_arm_body(ebb__body *b, uint32_t node, ebb__type expected, bool tail) {
    if (tail) return ebb__infer_tail(b, node);
    ebb__ir *x = ebb__infer(b, node, expected);
    return expected == 0 ? x : ebb__coerce(b, x, expected);
}

/* One arm, with one ARM for each of its alternatives; they share the body. */
static ebb__type infer_arm(ebb__body *b, uint32_t node, ebb__ir *match, arms *a, ebb__type t,
                           ebb__type expected, bool tail) {
    uint32_t mark = b->locals.n, first = a->n, patterns = 0;
    ebb__ir *guard = NULL, *body = NULL;
    for (uint32_t x = at(b, node)->child; x != 0; x = at(b, x)->next) {
        uint8_t kind = at(b, x)->kind;
        if (ebb__is_pattern(kind) && a->n + 1 < match->n) {
            uint32_t before = b->locals.n;
            a->patterns[a->n++] = ebb__infer_pattern(b, x, t);
            if (++patterns > 1 && b->locals.n > before)
                (void)ebb__diag_report(b->c, EBB__E0301, span_of(b, x),
                                       "alternatives of an arm bind no names");
        } else if (kind == EBB__S_GUARD) {
            guard = ebb__infer_as(b, at(b, x)->child, EBB__TY_BOOL);
        } else if (ebb__is_expr(kind)) {
            if (patterns > 1 && b->locals.n > mark)
                (void)ebb__diag_report(b->c, EBB__E0301, span_of(b, node),
                                       "alternatives of an arm bind no names");
            body = infer_arm_body(b, x, expected, tail);
        }
    }
    if (body == NULL) body = ebb__ir_invalid(b, span_of(b, node));
    ebb__scope_end(b, mark, ebb__end_of(b, node));
    for (uint32_t i = first; i < a->n; i++) {
        a->guarded[i] = guard != NULL;
        ebb__ir *arm = ebb__ir_new(b, EBB__OP_ARM, body->type, span_of(b, node), guard != NULL ? 2 : 1);
        arm->pattern = a->patterns[i];
        if (arm->n > 0) arm->args[0] = body;
        if (arm->n > 1) arm->args[1] = guard;
        match->args[i + 1] = arm;
    }
    return body->type;
}

ebb__ir *ebb__infer_match(ebb__body *b, uint32_t node, ebb__type expected, bool tail) {
    uint32_t head = at(b, node)->child, n = 1;
    ebb__span span = span_of(b, node);
    if (head == 0) return ebb__ir_invalid(b, span);
    for (uint32_t arm = at(b, head)->next; arm != 0; arm = at(b, arm)->next) {
        for (uint32_t x = at(b, arm)->child; x != 0; x = at(b, x)->next) n += ebb__is_pattern(at(b, x)->kind);
    }
    ebb__ir *value = ebb__infer(b, head, 0), *match = ebb__ir_new(b, EBB__OP_MATCH, EBB__TY_NEVER, span, n);
    arms a = {ebb__lang_array(b->c, n, sizeof *a.patterns), ebb__lang_array(b->c, n, 1), 0};
    if (a.patterns == NULL || a.guarded == NULL || match->n == 0) return ebb__ir_invalid(b, span);
    match->a = ebb__slot_new(b, value->type);
    match->args[0] = value;
    ebb__flow *out = NULL, *before = ebb__flow_save(b);
    for (uint32_t arm = at(b, head)->next; arm != 0 && !b->c->oom; arm = at(b, arm)->next) {
        if (at(b, arm)->kind != EBB__S_ARM) continue;
        ebb__flow_load(b, before);
        ebb__ir probe = {.type = infer_arm(b, arm, match, &a, value->type, expected, tail),
                         .span = span_of(b, arm)};
        if (a.n > 0 && match->args[a.n]->n > 0) probe.span = match->args[a.n]->args[0]->span;
        match->type = join(b, match->type, &probe);
        if (out != NULL) ebb__flow_merge(b, out, ebb__end_of(b, arm));
        out = ebb__flow_save(b);
    }
    match->n = a.n + 1;
    if (out != NULL) ebb__flow_load(b, out);
    else b->dead = true;
    if (value->type != EBB__TY_ERROR)
        ebb__check_arms(b, value->type, a.patterns, a.guarded, a.n, value->span, ebb__end_of(b, node));
    for (uint32_t i = 1; i < match->n && match->type != EBB__TY_ERROR; i++) {
        ebb__ir *arm = match->args[i];
        if (arm->n > 0) arm->args[0] = ebb__coerce(b, arm->args[0], match->type);
    }
    return match;
}
