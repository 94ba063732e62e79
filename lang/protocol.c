/* lang/protocol.c - protocols by themselves, and whether typestates keep to the roles they implement: shape, no more. */
#include "lang/check.h"

/* ---- effects of a protocol ---- */

static const ebb__req *req_for(const ebb__role *to, ebb__type payload) {
    const ebb__protocol *p = to->protocol;
    for (uint32_t i = 0; i < p->n_reqs; i++) {
        if (p->reqs[i].to == to && p->reqs[i].payload == payload) return &p->reqs[i];
    }
    return NULL;
}

static bool is_response(const ebb_lang *c, const ebb__protocol *p, ebb__type message) {
    for (uint32_t i = 0; i < p->n_reqs; i++) {
        if (ebb__type_has(c, p->reqs[i].responses, message)) return true;
    }
    return false;
}

/* A reply, written as `reply X` or as `X ~> REQUESTER`, is a response of the request that is handled. */
static void check_effect(ebb_lang *c, const ebb__role *r, const ebb__rtrans *t, const ebb__effect *e) {
    const ebb__req *req = req_for(r, t->trigger);
    const ebb__type *of;
    uint32_t n = ebb__type_members(c, &e->payload, &of);
    for (uint32_t i = 0; i < n && e->payload != EBB__TY_ERROR; i++) {
        bool reply =
            e->to == NULL || (is_response(c, r->protocol, of[i]) && req != NULL && e->to == req->from);
        if (!reply) continue;
        if (req == NULL) {
            (void)ebb__diag_report(c, EBB__E0706, e->span, "%t is no request, so nothing is replied",
                                   t->trigger);
        } else if (!ebb__type_has(c, req->responses, of[i])) {
            ebb__diag *d =
                ebb__diag_report(c, EBB__E0706, e->span, "%t is no response of %t", of[i], t->trigger);
            ebb__diag_label(c, d, req->span, "allows %t", req->responses);
        }
    }
}

static void check_protocol(ebb_lang *c, const ebb__protocol *p) {
    if (p->decl->broken) return;
    for (uint32_t i = 0; i < p->n_roles; i++) {
        const ebb__role *r = p->roles[i];
        for (uint32_t j = 0; j < r->n_states; j++) {
            for (uint32_t k = 0; k < r->states[j].n_trans; k++) {
                const ebb__rtrans *t = &r->states[j].trans[k];
                for (uint32_t e = 0; e < t->n_effects; e++) check_effect(c, r, t, &t->effects[e]);
            }
        }
    }
}

/* ---- handlers ---- */

static bool hides(const ebb__vec *handlers, ebb__type selector) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        if (h->kind != EBB__H_AFTER && h->selector == selector) return true;
    }
    return false;
}

/* Frozen Invariant 4: the state's own handlers, else the defaults. */
static const ebb__vec *handlers_for(const ebb__typestate *ts, const ebb__state *st, ebb__type selector) {
    return hides(&st->handlers, selector) ? &st->handlers : &ts->handlers;
}

static const ebb__rstate *role_state_of(const ebb__role *r, const ebb__state *st) {
    for (uint32_t i = 0; i < r->n_states; i++) {
        if (r->states[i].name == st->role_state) return &r->states[i];
    }
    return NULL;
}

static bool leads_to(const ebb__rstate *from, const ebb__rtrans *t, const ebb__rstate *to) {
    if (t->n_targets == 0) return to == from;
    for (uint32_t i = 0; i < t->n_targets; i++) {
        if (t->targets[i] == to) return true;
    }
    return false;
}

static void report_target(ebb_lang *c, const ebb__handler *h, const ebb__rtrans *t, const ebb__state *to,
                          const ebb__rstate *from) {
    ebb__diag *d = ebb__diag_report(c, EBB__E0704, h->span, "may go from %n to %n", from->name, to->name);
    ebb__diag_label(c, d, t->span,
                    t->n_targets == 0 ? "the role stays in %n here" : "the role goes elsewhere here",
                    from->name);
}

static void check_targets(ebb_lang *c, const ebb__role *r, const ebb__rstate *rs, const ebb__rtrans *t,
                          const ebb__state *st, const ebb__handler *h) {
    for (uint32_t i = 0; i < h->n_targets; i++) {
        if (!leads_to(rs, t, role_state_of(r, h->targets[i]))) report_target(c, h, t, h->targets[i], rs);
    }
    if (h->stays && h->kind == EBB__H_ON && !leads_to(rs, t, rs)) report_target(c, h, t, st, rs);
}

static bool is_message_of(const ebb_lang *c, const ebb__protocol *p, ebb__type t) {
    for (uint32_t i = 0; i < p->n_msgs; i++) {
        if (p->msgs[i]->type == t) return true;
    }
    (void)c;
    return false;
}

/* Whether the receiver of a message is known to play a role. */
static bool plays(ebb_lang *c, const ebb__sent *s, const ebb__role *r) {
    if (s->bound != NULL) return s->bound == r;
    ebb__type role = ebb__type_decl(c, EBB__TY_ROLE, r->protocol->decl, r->index);
    return ebb__type_fit(c, s->to, role) != EBB__FIT_NOT;
}

static bool plays_any(ebb_lang *c, const ebb__sent *s, const ebb__protocol *p) {
    for (uint32_t i = 0; i < p->n_roles; i++) {
        if (plays(c, s, p->roles[i])) return true;
    }
    return false;
}

static void check_sent(ebb_lang *c, const ebb__role *r, const ebb__rtrans *t, const ebb__sent *s) {
    const ebb__role *wanted = NULL;
    if (!is_message_of(c, r->protocol, s->payload)) return;
    for (uint32_t i = 0; i < t->n_effects; i++) {
        const ebb__effect *e = &t->effects[i];
        if (e->to == NULL || !ebb__type_has(c, e->payload, s->payload)) continue;
        if (plays(c, s, e->to)) return;
        wanted = e->to;
    }
    ebb__diag *d;
    if (wanted != NULL && !plays_any(c, s, r->protocol)) {
        d = ebb__diag_report(c, EBB__E0708, s->span, "%t goes to %n, and this receiver is not bound to it",
                             s->payload, wanted->name);
        ebb__diag_help(c, d, "bind the field: as %n", wanted->name);
    } else if (wanted != NULL) {
        d = ebb__diag_report(c, EBB__E0709, s->span, "%t goes to %n, which this receiver does not play",
                             s->payload, wanted->name);
    } else {
        d = ebb__diag_report(c, EBB__E0705, s->span, "%n does not send %t here", r->name, s->payload);
    }
    ebb__diag_label(c, d, t->span, "the transition of the role");
}

/* What a handler of another message sends is some effect of the role. */
static bool role_sends(const ebb_lang *c, const ebb__role *r, ebb__type payload) {
    for (uint32_t i = 0; i < r->n_states; i++) {
        for (uint32_t j = 0; j < r->states[i].n_trans; j++) {
            const ebb__rtrans *t = &r->states[i].trans[j];
            for (uint32_t e = 0; e < t->n_effects; e++) {
                if (ebb__type_has(c, t->effects[e].payload, payload)) return true;
            }
        }
    }
    return false;
}

static void check_trans(ebb_lang *c, const ebb__typestate *ts, const ebb__role *r, const ebb__rstate *rs,
                        const ebb__rtrans *t, const ebb__state *st) {
    const ebb__vec *handlers = handlers_for(ts, st, t->trigger);
    bool found = false;
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        if (h->kind == EBB__H_AFTER || h->selector != t->trigger) continue;
        found = found || h->kind != EBB__H_IGNORE || req_for(r, t->trigger) != NULL;
        check_targets(c, r, rs, t, st, h);
        for (uint32_t k = 0; k < h->sent.n; k++) check_sent(c, r, t, EBB__VEC_AT(&h->sent, ebb__sent, k));
    }
    if (found) return;
    ebb__diag *d =
        ebb__diag_report(c, EBB__E0703, st->span, "%n needs a handler for %t", st->name, t->trigger);
    ebb__diag_label(c, d, t->span, "%n has this transition in %n", r->name, rs->name);
    const ebb__source *s = ts->decl->source;
    const ebb__syntax *x = ebb__syntax_at(s, st->node);
    if (ebb__token_at(s, x->end - 1)->kind != EBB__T_RBRACE || t->n_targets > 0) return;
    ebb__span end = ebb__token_span(s, x->end - 1);
    ebb__diag_help(c, d, req_for(r, t->trigger) == NULL ? "add one: on %t {}" : "add one: on %t { ... }",
                   t->trigger);
    if (req_for(r, t->trigger) == NULL)
        ebb__diag_edit(c, d, (ebb__span){s->id, end.at, 0}, "    on %t {}\n    ", t->trigger);
}

static bool is_trigger(const ebb__rstate *rs, ebb__type t) {
    for (uint32_t i = 0; rs != NULL && i < rs->n_trans; i++) {
        if (rs->trans[i].trigger == t) return true;
    }
    return false;
}

static void check_others(ebb_lang *c, const ebb__role *r, const ebb__rstate *rs, const ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        if (h->kind != EBB__H_AFTER && is_trigger(rs, h->selector)) continue;
        for (uint32_t k = 0; k < h->sent.n; k++) {
            const ebb__sent *s = EBB__VEC_AT(&h->sent, ebb__sent, k);
            if (!is_message_of(c, r->protocol, s->payload) || role_sends(c, r, s->payload) ||
                !plays_any(c, s, r->protocol))
                continue;
            ebb__diag *d = ebb__diag_report(c, EBB__E0705, s->span, "%n never sends %t", r->name, s->payload);
            ebb__diag_label(c, d, r->span, "the role");
        }
    }
}

static void check_role(ebb_lang *c, const ebb__typestate *ts, const ebb__implements *im) {
    const ebb__role *r = im->role;
    for (uint32_t i = 0; i < r->n_states; i++) {
        const ebb__rstate *rs = &r->states[i];
        bool there = false;
        for (uint32_t j = 0; j < ts->n_states; j++) {
            const ebb__state *st = ts->states[j];
            if (st->role_state != rs->name) continue;
            there = true;
            for (uint32_t k = 0; k < rs->n_trans; k++) check_trans(c, ts, r, rs, &rs->trans[k], st);
        }
        if (there || rs->n_trans == 0) continue;
        ebb__diag *d =
            ebb__diag_report(c, EBB__E0703, im->span, "%n has no state %n, where the role has transitions",
                             ts->decl->name, rs->name);
        ebb__diag_label(c, d, rs->span, "the role's state");
        ebb__diag_help(c, d, "call the state %n, or declare it `as %n`", rs->name, rs->name);
    }
    for (uint32_t j = 0; j < ts->n_states; j++)
        check_others(c, r, role_state_of(r, ts->states[j]), &ts->states[j]->handlers);
}

void ebb__check_protocols(ebb_lang *c) {
    for (uint32_t i = 0; i < c->check->protocols.n && !c->oom; i++)
        check_protocol(c, *EBB__VEC_AT(&c->check->protocols, ebb__protocol *, i));
    for (uint32_t i = 0; i < c->check->typestates.n && !c->oom; i++) {
        const ebb__typestate *ts = *EBB__VEC_AT(&c->check->typestates, ebb__typestate *, i);
        for (uint32_t j = 0; j < ts->n_roles && !ts->decl->broken; j++) {
            if (!ts->roles[j].role->protocol->decl->broken) check_role(c, ts, &ts->roles[j]);
        }
    }
}
