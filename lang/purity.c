/* lang/purity.c - which functions do something, and whether pure code calls them. */
#include "lang/check.h"

static const ebb__call *call_at(const ebb_lang *c, uint32_t i) {
    return EBB__VEC_AT(&c->check->calls, ebb__call, i);
}

static void push(ebb__decl **first, ebb__decl *d) {
    d->next_effect = *first;
    *first = d;
}

/* A function that calls one with effects has effects. */
static void spread(ebb_lang *c) {
    ebb__decl *first = NULL;
    for (uint32_t i = 0; i < c->check->calls.n; i++) {
        ebb__decl *to = call_at(c, i)->to;
        if (to->effects && to->callers == i + 1) push(&first, to);
    }
    while (first != NULL) {
        uint32_t next = first->callers;
        first = first->next_effect;
        for (; next != 0; next = call_at(c, next - 1)->next) {
            ebb__decl *from = call_at(c, next - 1)->from;
            if (from == NULL || from->effects) continue;
            from->effects = true;
            push(&first, from);
        }
    }
}

void ebb__check_purity(ebb_lang *c) {
    spread(c);
    for (uint32_t i = 0; i < c->check->calls.n; i++) {
        const ebb__call *call = call_at(c, i);
        if (!call->pure || !call->to->effects) continue;
        ebb__diag *d = ebb__diag_report(c, EBB__E0413, call->span, "%n has effects, and this code is pure",
                                        call->to->name);
        ebb__diag_label(c, d, call->to->span, "declared here");
    }
}
