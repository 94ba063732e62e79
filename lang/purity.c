/* lang/purity.c - which functions do something, and whether pure code calls them. */
#include "lang/check.h"

/* A function that calls one with effects has effects. */
static void spread(ebb_lang *c) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = c->check->calls.n; i-- > 0;) {
            ebb__call *call = EBB__VEC_AT(&c->check->calls, ebb__call, i);
            if (call->from == NULL || call->from->effects || !call->to->effects) continue;
            call->from->effects = changed = true;
        }
    }
}

void ebb__check_purity(ebb_lang *c) {
    spread(c);
    for (uint32_t i = 0; i < c->check->calls.n; i++) {
        const ebb__call *call = EBB__VEC_AT(&c->check->calls, ebb__call, i);
        if (call->from != NULL || !call->to->effects) continue;
        ebb__diag *d = ebb__diag_report(c, EBB__E0413, call->span, "%n has effects, and this code is pure",
                                        call->to->name);
        ebb__diag_label(c, d, call->to->span, "declared here");
    }
}
