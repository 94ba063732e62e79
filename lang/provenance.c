/* lang/provenance.c - which handler a message has, and which request a response came from.
 *
 * In a state, the handlers of a kind are disjoint: one, or several responses told apart by `for`. A response that more
 * than one request of the typestate can yield is told apart, and completely. Requests are the same if their message and
 * label are. */
#include "lang/check.h"

typedef struct site {
    ebb__type payload, responses;
    ebb__name label;
    ebb__span span;
} site;

static void add_site(ebb_lang *c, ebb__vec *sites, const ebb__sent *s) {
    const ebb__req *req = ebb__req_to(c, s->to, s->payload);
    const ebb__type_info *to = ebb__type_at(c, s->to);
    ebb__type responses = req != NULL ? req->responses
                          : to->kind == EBB__TY_MACHINE
                              ? ebb__explicit_responses(to->decl->typestate, s->payload)
                              : 0;
    for (uint32_t i = 0; i < sites->n; i++) {
        site *x = EBB__VEC_AT(sites, site, i);
        if (x->payload != s->payload || x->label != s->label) continue;
        x->responses = ebb__type_join(c, x->responses, responses);
        return;
    }
    site *x = ebb__vec_push(c, sites);
    if (x != NULL) *x = (site){s->payload, responses, s->label, s->span};
}

static void add_sites(ebb_lang *c, ebb__vec *sites, const ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        for (uint32_t k = 0; k < h->sent.n; k++) {
            const ebb__sent *s = EBB__VEC_AT(&h->sent, ebb__sent, k);
            if (s->request) add_site(c, sites, s);
        }
    }
}

static bool yields(ebb_lang *c, const site *x, ebb__type response) {
    return response == c->check->request_failed ||
           (x->responses != 0 && ebb__type_has(c, x->responses, response));
}

/* Whether the handler accepts a response of the request. */
static bool accepts(const ebb__handler *h, const site *x) {
    return h->origin == 0 || (h->origin == x->payload && (h->label == 0 || h->label == x->label));
}

/* ---- one handler ---- */

/* False: it was reported. */
static bool check_origin(ebb_lang *c, const ebb__typestate *ts, const ebb__vec *sites,
                         const ebb__handler *h) {
    bool made = false, yielded = false, response = h->selector == c->check->request_failed;
    if (h->origin == 0 || h->origin == EBB__TY_ERROR || h->selector == EBB__TY_ERROR) return true;
    for (uint32_t i = 0; i < sites->n; i++) {
        const site *x = EBB__VEC_AT(sites, site, i);
        response = response || yields(c, x, h->selector);
        if (!accepts(h, x)) continue;
        made = true;
        yielded = yielded || yields(c, x, h->selector);
    }
    for (uint32_t i = 0; i < ts->n_roles; i++) {
        const ebb__protocol *p = ts->roles[i].role->protocol;
        for (uint32_t k = 0; k < p->n_reqs; k++)
            response = response || ebb__type_has(c, p->reqs[k].responses, h->selector);
    }
    if (!made && ts->misplaced) return false;
    if (!response) {
        ebb__diag *d = ebb__diag_report(c, EBB__E0605, h->origin_span, "%t is no response", h->selector);
        uint32_t origin = ebb__child_of(ts->decl->source, h->node, EBB__S_ORIGIN);
        ebb__span at = ebb__node_span(ts->decl->source, origin);
        ebb__diag_help(c, d, "leave it out");
        if (ebb__child_of(ts->decl->source, origin, EBB__S_NAME) == 0) ebb__diag_edit(c, d, at, "");
    } else if (!yielded) {
        ebb__diag *d =
            ebb__diag_report(c, EBB__E0606, h->origin_span,
                             made ? "%t does not yield %t" : "%t is not requested here, so it yields no %t",
                             h->origin, h->selector);
        ebb__diag_label(c, d, h->span, "the response");
    }
    return response && yielded;
}

/* ---- the handlers of one kind ---- */

static bool overlap(const ebb__handler *a, const ebb__handler *b) {
    if (a->origin == 0 || b->origin == 0) return true;
    return a->origin == b->origin && (a->label == b->label || a->label == 0 || b->label == 0);
}

static const char *verb(const ebb__handler *h) {
    return h->kind == EBB__H_DEFER ? "deferred" : h->kind == EBB__H_IGNORE ? "ignored" : "handled";
}

static void check_pair(ebb_lang *c, const ebb__handler *a, const ebb__handler *b) {
    ebb__diag *d = NULL;
    if (a->kind != b->kind) {
        d = ebb__diag_report(c, EBB__E0607, b->span, "%t is %s here", b->selector, verb(b));
        ebb__diag_label(c, d, a->span, "and %s here", verb(a));
    } else if (a->kind != EBB__H_ON || (a->origin == 0 && b->origin == 0)) {
        d = ebb__diag_report(c, EBB__E0601, b->span, "%t is %s twice", b->selector, verb(b));
        ebb__diag_label(c, d, a->span, "first here");
    } else if (overlap(a, b)) {
        d = ebb__diag_report(c, EBB__E0602, b->span, "both accept a %t for %t", b->selector,
                             b->origin == 0 ? a->origin : b->origin);
        ebb__diag_label(c, d, a->span, "the other one");
    }
}

static void check_timers(ebb_lang *c, const ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        const ebb__handler *b = ebb__handler_at(handlers, i);
        for (uint32_t j = 0; j < i && b->kind == EBB__H_AFTER && b->time_ms != 0; j++) {
            const ebb__handler *a = ebb__handler_at(handlers, j);
            if (a->kind != EBB__H_AFTER || a->time_ms != b->time_ms) continue;
            ebb__diag *d = ebb__diag_report(c, EBB__E0609, b->span, "there is a timer of this time already");
            ebb__diag_label(c, d, a->span, "the other one");
        }
    }
}

/* ---- completeness ---- */

static void check_complete(ebb_lang *c, const ebb__typestate *ts, const ebb__vec *sites,
                           const ebb__vec *handlers, const ebb__handler *h) {
    const site *missing = NULL, *first = NULL, *second = NULL;
    for (uint32_t i = 0; i < sites->n; i++) {
        const site *x = EBB__VEC_AT(sites, site, i);
        if (!yields(c, x, h->selector)) continue;
        second = first != NULL && second == NULL ? x : second;
        first = first == NULL ? x : first;
        bool accepted = false;
        for (uint32_t k = 0; k < handlers->n; k++) {
            const ebb__handler *o = ebb__handler_at(handlers, k);
            accepted = accepted || (o->kind == EBB__H_ON && o->selector == h->selector && accepts(o, x));
        }
        if (!accepted && missing == NULL) missing = x;
    }
    if (h->selector == c->check->request_failed || ts->decl->broken) return;
    if (h->origin == 0 && second != NULL) {
        ebb__diag *d =
            ebb__diag_report(c, EBB__E0603, h->span, "%t may answer %t%s", h->selector, first->payload,
                             first->payload == second->payload ? ", which is requested under two labels"
                                                               : ebb__format(c, " or %t", second->payload));
        ebb__diag_label(c, d, first->span, "requested here");
        ebb__diag_label(c, d, second->span, "and here");
        ebb__diag_help(c, d, "say which one: for %t(request)", first->payload);
    } else if (h->origin != 0 && missing != NULL) {
        ebb__diag *d = ebb__diag_report(c, EBB__E0604, h->span, "a %t for %t is not handled here",
                                        h->selector, missing->payload);
        ebb__diag_label(c, d, missing->span, "requested here");
    }
}

/* The handlers of one kind of message, in the order of the source. */
static void check_group(ebb_lang *c, const ebb__typestate *ts, const ebb__vec *sites, const ebb__vec *group) {
    const ebb__handler *first = NULL;
    bool determined = true;
    for (uint32_t i = 0; i < group->n; i++) {
        const ebb__handler *h = ebb__handler_at(group, i);
        for (uint32_t j = 0; j < i; j++) check_pair(c, ebb__handler_at(group, j), h);
        if (h->kind != EBB__H_ON) continue;
        if (first == NULL) first = h;
        determined = check_origin(c, ts, sites, h) && determined;
    }
    if (first != NULL && determined) check_complete(c, ts, sites, group, first);
}

static bool takes_message(const ebb__handler *h) {
    return h->kind != EBB__H_AFTER && h->selector != EBB__TY_ERROR;
}

/* By kinds of message: `next` chains the handlers of each. */
static void check_list(ebb_lang *c, const ebb__typestate *ts, const ebb__vec *sites,
                       const ebb__vec *handlers) {
    uint32_t *next = ebb__lang_array(c, handlers->n + 1, sizeof *next);
    ebb__vec group = {.size = sizeof(ebb__handler *)};
    ebb__map first;
    ebb__map_init(&first, c->allocator, sizeof(uint32_t));
    check_timers(c, handlers);
    for (uint32_t i = next == NULL ? 0 : handlers->n; i-- > 0;) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        uint32_t *slot = takes_message(h) ? ebb__map_put(&first, h->selector) : NULL;
        next[i] = slot == NULL ? 0 : *slot;
        if (slot != NULL) *slot = i + 1;
        else c->oom = c->oom || takes_message(h);
    }
    for (uint32_t i = 0; next != NULL && i < handlers->n && !c->oom; i++) {
        const ebb__handler *h = ebb__handler_at(handlers, i);
        const uint32_t *slot = takes_message(h) ? ebb__map_find(&first, h->selector) : NULL;
        if (slot == NULL || *slot != i + 1) continue;
        group.n = 0;
        for (uint32_t k = *slot; k != 0; k = next[k - 1]) {
            ebb__handler **member = ebb__vec_push(c, &group);
            if (member != NULL) *member = ebb__handler_at(handlers, k - 1);
        }
        check_group(c, ts, sites, &group);
    }
    ebb__map_free(&first);
    ebb__vec_free(c, &group);
}

static bool handles_failure(const ebb_lang *c, const ebb__vec *handlers) {
    for (uint32_t i = 0; i < handlers->n; i++) {
        if (ebb__handler_at(handlers, i)->selector == c->check->request_failed) return true;
    }
    return false;
}

static void check_failure(ebb_lang *c, const ebb__typestate *ts) {
    if (ts->first_request.source == UINT32_MAX || ts->decl->broken) return;
    bool handled = handles_failure(c, &ts->handlers);
    for (uint32_t i = 0; i < ts->n_states && !handled; i++)
        handled = handles_failure(c, &ts->states[i]->handlers);
    if (handled) return;
    ebb__diag *d = ebb__diag_report(c, EBB__W0902, ts->first_request, "this may end without a response");
    ebb__diag_help(c, d, "handle it: on RequestFailed(failed) { ... }");
    const ebb__source *s = ts->decl->source;
    const ebb__syntax *x = ebb__syntax_at(s, ts->decl->node);
    ebb__span end = ebb__token_span(s, x->end - 1);
    ebb__diag_edit(c, d, (ebb__span){s->id, end.at, 0}, "    on RequestFailed {}\n");
}

void ebb__check_provenance(ebb_lang *c) {
    for (uint32_t i = 0; i < c->check->typestates.n && !c->oom; i++) {
        const ebb__typestate *ts = *EBB__VEC_AT(&c->check->typestates, ebb__typestate *, i);
        ebb__vec sites = {.size = sizeof(site)};
        add_sites(c, &sites, &ts->handlers);
        for (uint32_t k = 0; k < ts->n_states; k++) add_sites(c, &sites, &ts->states[k]->handlers);
        check_list(c, ts, &sites, &ts->handlers);
        for (uint32_t k = 0; k < ts->n_states; k++) check_list(c, ts, &sites, &ts->states[k]->handlers);
        check_failure(c, ts);
        ebb__vec_free(c, &sites);
    }
}
