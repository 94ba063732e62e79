/* Requests and replies. A pending joins the two sides of a request: the requester, who waits (EBB__WANTED), and the
 * responder, who owes a reply (EBB__OWED). It is freed when neither is left. Exactly one answer is delivered, in the
 * cell that was reserved for it: a reply, or a failure. */
#include "machine/machine.h"

#include <assert.h>

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static void link_made(ebb_machines *ms, ebb__machine_more *more, uint32_t i) {
    ebb__pending *p = ebb__pending_at(ms, i);
    p->made_prev = 0;
    p->made_next = more->made;
    if (more->made != 0) ebb__pending_at(ms, more->made)->made_prev = i;
    more->made = i;
    more->n_made++;
}

static void unlink_made(ebb_machines *ms, ebb__pending *p) {
    ebb__machine_more *more = ebb__machine_at(ms, p->requester)->more;
    if (p->made_prev != 0) ebb__pending_at(ms, p->made_prev)->made_next = p->made_next;
    else more->made = p->made_next;
    if (p->made_next != 0) ebb__pending_at(ms, p->made_next)->made_prev = p->made_prev;
    more->n_made--;
}

static void link_held(ebb_machines *ms, ebb__machine_more *more, uint32_t i) {
    ebb__pending_more *p = ebb__pending_more_at(ms, i);
    p->held_prev = 0;
    p->held_next = more->held;
    if (more->held != 0) ebb__pending_more_at(ms, more->held)->held_prev = i;
    more->held = i;
    more->n_held++;
}

static void unlink_held(ebb_machines *ms, uint32_t i) {
    ebb__machine_more *more = ebb__machine_at(ms, ebb__pending_at(ms, i)->responder)->more;
    const ebb__pending_more *p = ebb__pending_more_at(ms, i);
    if (p->held_prev != 0) ebb__pending_more_at(ms, p->held_prev)->held_next = p->held_next;
    else more->held = p->held_next;
    if (p->held_next != 0) ebb__pending_more_at(ms, p->held_next)->held_prev = p->held_prev;
    more->n_held--;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void free_pending(ebb_machines *ms, uint32_t i) {
    ebb__pending *p = ebb__pending_at(ms, i);
    if (p->node.links.next != 0) ebb__wheel_disarm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_PENDING, i));
    if (p->answer != NULL) ebb__cell_free(ms, p->answer);
    ebb__cell_free(ms, p->origin);
    p->flags = 0;
    if (EBB__LIKELY(!ebb__generation_is_last(p->generation))) {
        ebb__slab_give(&ms->pendings, i);
        return;
    }
    if (ms->set != NULL) ms->set->used_up = true;
    ebb__slab_retire(&ms->pendings, i);
}

static inline void maybe_free(ebb_machines *ms, uint32_t i) {
    if (!(ebb__pending_at(ms, i)->flags & (EBB__WANTED | EBB__OWED))) free_pending(ms, i);
}

static void note_end(const ebb_machines *ms, uint32_t i, uint32_t how) {
    const ebb__pending *p = ebb__pending_at(ms, i);
    uint64_t requester = p->requester == 0 ? 0 : ebb__machine_id(ms, p->requester);
    ebb__machine_note(ms, EBB_EV_MACHINE_REQUEST_ENDED, requester, 0, how, ebb__pending_id(ms, i));
}

void ebb__pending_unwant(ebb_machines *ms, uint32_t i) {
    ebb__pending *p = ebb__pending_at(ms, i);
    if (!(p->flags & EBB__WANTED)) return;
    if (!(p->flags & EBB__ENDED)) { /* nobody waits for the answer, which may still come */
        ebb__wheel_disarm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_PENDING, i));
        p->flags |= EBB__ENDED;
        if (p->flags & EBB__SENT) note_end(ms, i, EBB__REQUEST_UNWANTED);
    }
    if (p->requester != 0) unlink_made(ms, p);
    p->requester = 0;
    p->flags &= (uint16_t)~EBB__WANTED;
    maybe_free(ms, i);
}

void ebb__pending_unowe(ebb_machines *ms, uint32_t i) {
    ebb__pending *p = ebb__pending_at(ms, i);
    assert(p->flags & EBB__OWED && !(p->flags & EBB__HELD));
    p->flags &= (uint16_t) ~(EBB__OWED | EBB__STAGED);
    maybe_free(ms, i);
}

/* The one place where a request ends: `c` is its answer, for the requester. */
static void end_request(ebb_machines *ms, uint32_t i, ebb__cell *c, uint32_t how) {
    ebb__pending *p = ebb__pending_at(ms, i);
    assert(!(p->flags & EBB__ENDED) && p->flags & EBB__WANTED && c == p->answer);
    p->flags |= EBB__ENDED;
    p->answer = NULL;
    ebb__wheel_disarm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_PENDING, i));
    note_end(ms, i, how);
    c->to = p->requester;
    c->ref = i;
    if (p->requester != 0) {
        ebb__mailbox_put(ms, p->requester, ebb__machine_at(ms, p->requester), c);
        return;
    }
    c->next = NULL;
    *ms->answers_end = c;
    ms->answers_end = &c->next;
}

void ebb__pending_fail(ebb_machines *ms, uint32_t i, ebb_request_failure why) {
    ebb__pending *p = ebb__pending_at(ms, i);
    if (p->flags & EBB__ENDED) return;
    ebb__cell *c = p->answer;
    c->what = EBB__FAILED;
    c->kind = EBB_MACHINE_REQUEST_FAILED;
    c->flags = 0;
    c->body.failure = (uint8_t)why;
    c->size = sizeof c->body.failure;
    c->from = ebb__machine_id(ms, p->responder);
    end_request(ms, i, c, (uint32_t)why);
}

void ebb__calls_end(ebb_machines *ms) {
    for (uint32_t i = 1; i < ms->pendings.used; i++) {
        ebb__pending *p = ebb__pending_at(ms, i);
        if ((p->flags & (EBB__WANTED | EBB__CALL)) != (EBB__WANTED | EBB__CALL)) continue;
        ebb__pending_fail(ms, i, EBB_REQUEST_STOPPED);
    }
    ebb__hooks_run(ms);
}

void ebb__request_dead(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_request_failure failure,
                       ebb_dead_reason why) {
    ebb__pending_fail(ms, c->ref, failure);
    ebb__cell_dead(ms, c, to, why);
}

/* ---- holding ------------------------------------------------------------------------------------------------------ */

/* The dispatcher was abandoned; its machines get no more turns. */
static void on_abort(void *arg) {
    (void)arg;
}

void ebb__pending_unhold(ebb_machines *ms, uint32_t i, bool replied) {
    ebb__pending *p = ebb__pending_at(ms, i);
    if (!(p->flags & EBB__HELD)) return;
    p->flags &= (uint16_t)~EBB__HELD;
    unlink_held(ms, i);
    if (ms->cx == NULL) return;
    ebb_obligation owed = ebb__pending_more_at(ms, i)->obligation;
    if (replied) (void)ebb_obligation_commit(ms->cx, owed);
    else (void)ebb_obligation_abort(ms->cx, owed);
}

/* A reply that is staged behind the end of its machine is still delivered. */
void ebb__pending_lost(ebb_machines *ms, uint32_t i, ebb_request_failure why) {
    bool staged = ebb__pending_at(ms, i)->flags & EBB__STAGED;
    if (!staged) ebb__pending_fail(ms, i, why);
    ebb__pending_unhold(ms, i, staged);
    if (!staged) ebb__pending_unowe(ms, i);
}

static ebb_status hold(ebb_machines *ms, uint32_t i, const char *site) {
    ebb__pending *p = ebb__pending_at(ms, i);
    ebb_status st;
    if (p->flags & (EBB__STAGED | EBB__HELD)) return p->flags & EBB__HELD ? EBB_OK : EBB_ERR_REPLIED;
    ebb__machine_more *more = ebb__machine_more_of(ms, ms->running);
    if (more == NULL) return EBB_ERR_NOMEM;
    ebb__cell *c = ebb__cell_new(ms, 0, NULL, 0, &st);
    if (c == NULL) return st;
    ebb_obligation owed = ebb_obligation_reserve_site(ms->cx, EBB_OBLIGATION_ACK, on_abort, NULL, site);
    st = ebb_id_status(owed.id);
    if (st != EBB_OK) {
        ebb__cell_free(ms, c);
        return st;
    }
    p->flags |= EBB__HELD;
    ebb__pending_more_at(ms, i)->obligation = owed;
    link_held(ms, more, i);
    c->ref = i;
    ebb__stage(ms, c, EBB__HOLD, 0);
    return EBB_OK;
}

ebb_request ebb_machine_hold_site(ebb_machines *ms, const char *site) {
    bool handles = ms->running != NULL && ms->current != NULL && ms->current->what == EBB__REQUEST;
    ebb_status st = handles ? hold(ms, ms->current->ref, site) : EBB_ERR_INVALID;
    if (st != EBB_OK) return (ebb_request){(uint64_t)(uint32_t)-st << 32};
    return (ebb_request){ebb__pending_id(ms, ms->current->ref)};
}

/* ---- requesting --------------------------------------------------------------------------------------------------- */

/* Makes the pending, its two cells, and stages the request. `place`: it needs a place, which there is. */
static ebb_status make(ebb_machines *ms, uint32_t to, uint16_t kind, const void *payload, size_t size,
                       bool place, uint32_t *out) {
    ebb_status st = ebb__slab_reserve(&ms->pendings, &ms->allocator);
    if (st != EBB_OK) return st;
    uint32_t staged = ms->staged_bytes;
    ebb__cell *origin = ebb__cell_new(ms, kind, payload, size, &st);
    if (origin == NULL) return st;
    ebb__cell *answer = ebb__cell_new(ms, 0, NULL, 0, &st);
    if (answer == NULL) {
        origin->what = EBB__SPAWN; /* the payload's references stay the caller's */
        ebb__cell_free(ms, origin);
        ms->staged_bytes = staged;
        return st;
    }
    answer->what = EBB__FAILED;
    uint32_t i = *out = ebb__slab_take(&ms->pendings);
    ebb__pending *p = ebb__pending_at(ms, i);
    *p = (ebb__pending){.generation =
                            p->generation < ms->request_generation ? ms->request_generation : p->generation,
                        .responder = to,
                        .answer = answer,
                        .origin = origin,
                        .flags = EBB__WANTED | EBB__OWED};
    if (EBB__LIKELY(place)) {
        ebb__machine_at(ms, to)->places++;
        origin->flags |= EBB__PLACE;
    }
    origin->ref = i;
    ebb__stage(ms, origin, EBB__REQUEST, to);
    ms->stats.requests++;
    return EBB_OK;
}

static ebb_status request(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload, size_t size,
                          uint32_t *out) {
    uint32_t i;
    if (kind == EBB_MACHINE_REQUEST_FAILED) return EBB_ERR_INVALID;
    ebb_status st = ebb__machine_receiver(ms, to, &i);
    if (st != EBB_OK) return ebb__refuse(ms, to, kind, st);
    st = ebb__has_place(ms, ebb__machine_at(ms, i), kind, size);
    if (st != EBB_OK) return ebb__refuse(ms, to, kind, st);
    return make(ms, i, kind, payload, size, true, out);
}

ebb_status ebb__pending_call(ebb_machines *ms, uint32_t to, uint16_t kind, const void *payload, size_t size,
                             void (*answered)(void *arg, const ebb_message *m), void *arg) {
    uint32_t i;
    ebb_status st = make(ms, to, kind, payload, size, false, &i);
    if (st != EBB_OK) return st;
    ebb__pending_at(ms, i)->origin->flags |= EBB__PORTED;
    ebb__pending_more_at(ms, i)->answered = answered;
    ebb__pending_more_at(ms, i)->arg = arg;
    ebb__pending_at(ms, i)->flags |= EBB__CALL | EBB__OVER_PORT;
    return EBB_OK;
}

static void set_within(ebb_machines *ms, uint32_t i, uint64_t within) {
    ebb__pending_more_at(ms, i)->within = within;
    ebb__pending_at(ms, i)->flags |= EBB__TIMED;
}

static ebb_request id_of(const ebb_machines *ms, ebb_status st, uint32_t i) {
    if (st == EBB_OK) return (ebb_request){ebb__pending_id(ms, i)};
    return (ebb_request){(uint64_t)(uint32_t)-st << 32};
}

ebb_request ebb_machine_request(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                                size_t size, uint64_t within, uint32_t label) {
    uint32_t i = 0;
    if (ms->running == NULL) return id_of(ms, EBB_ERR_NOT_TASK, 0);
    ebb_status st = ebb__stage_enter(ms, false);
    ebb__machine_more *more = st == EBB_OK ? ebb__machine_more_of(ms, ms->running) : NULL;
    if (st == EBB_OK && more == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && more->n_made >= ms->opts.max_pending)
        st = ebb__refuse(ms, to, kind, EBB_ERR_PENDING_FULL);
    if (st == EBB_OK) st = request(ms, to, kind, payload, size, &i);
    if (st != EBB_OK) return id_of(ms, st, 0);
    ebb__pending *p = ebb__pending_at(ms, i);
    p->requester = ms->running_index;
    if (within != 0) set_within(ms, i, within);
    p->label = label;
    link_made(ms, more, i);
    return id_of(ms, EBB_OK, i);
}

ebb_request ebb_machine_call(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                             size_t size, uint64_t within, void (*answered)(void *arg, const ebb_message *m),
                             void *arg) {
    uint32_t i = 0;
    ebb_status st = ebb__stage_enter(ms, false);
    if (st == EBB_OK && ms->running != NULL) st = EBB_ERR_INVALID;
    if (st != EBB_OK) return id_of(ms, st, 0);
    st = answered == NULL ? EBB_ERR_INVALID : request(ms, to, kind, payload, size, &i);
    if (st == EBB_OK) {
        ebb__pending *p = ebb__pending_at(ms, i);
        ebb__pending_more *more = ebb__pending_more_at(ms, i);
        more->answered = answered;
        more->arg = arg;
        p->flags |= EBB__CALL;
        if (within != 0) set_within(ms, i, within);
    }
    ebb_request id = id_of(ms, st, i);
    ebb__stage_leave(ms);
    return id;
}

void ebb__pending_commit_request(ebb_machines *ms, ebb__cell *c) {
    ebb__pending *p = ebb__pending_at(ms, c->ref);
    ebb__machine *m = ebb__machine_at(ms, c->to);
    uint64_t to = ebb__machine_id(ms, c->to);
    ebb__machine_note(ms, EBB_EV_MACHINE_REQUESTED, c->from, to, c->kind, ebb__pending_id(ms, c->ref));
    p->flags |= EBB__SENT;
    if (p->flags & EBB__ENDED)
        note_end(ms, c->ref, EBB__REQUEST_UNWANTED); /* the requester was stopped first */
    if (m->lifecycle > EBB_MACHINE_RUNNING) {        /* it was stopped by an effect before this one */
        c->flags &= (uint8_t)~EBB__PLACE;
        bool faulted = m->lifecycle == EBB_MACHINE_FAULTED;
        ebb__request_dead(ms, c, to, faulted ? EBB_REQUEST_FAULTED : EBB_REQUEST_STOPPED,
                          faulted ? EBB_DEAD_FAULTED : EBB_DEAD_STOPPED);
        return;
    }
    if ((p->flags & (EBB__TIMED | EBB__ENDED)) == EBB__TIMED) ebb__timeout_arm(ms, c->ref);
    ebb__mailbox_put(ms, c->to, m, c);
}

void ebb__pending_unstage(ebb_machines *ms, uint32_t i) {
    ebb__pending *p = ebb__pending_at(ms, i);
    if (p->requester != 0) unlink_made(ms, p);
    ms->stats.requests--;
    free_pending(ms, i);
}

/* ---- replying ----------------------------------------------------------------------------------------------------- */

static ebb_status lookup(const ebb_machines *ms, ebb_request id, uint32_t *i) {
    if (ms->rt == NULL) return EBB_ERR_CLOSED;
    return ebb__lookup(ms->rt, &ms->pendings, id.id, i);
}

/* The pending that a reply is for. */
static ebb_status find_owed(const ebb_machines *ms, ebb_request id, uint32_t *i) {
    bool handles = ms->running != NULL && ms->current != NULL && ms->current->what == EBB__REQUEST;
    if (id.id == 0 && !handles) return EBB_ERR_INVALID;
    ebb_status st = EBB_OK;
    if (id.id == 0) *i = ms->current->ref;
    else st = lookup(ms, id, i);
    if (st != EBB_OK) return st == EBB_ERR_STALE ? EBB_ERR_REPLIED : st;
    const ebb__pending *p = ebb__pending_at(ms, *i);
    if (!(p->flags & EBB__OWED)) return EBB_ERR_REPLIED; /* its responder may have ended */
    if (ms->running != NULL && p->responder != ms->running_index) return EBB_ERR_INVALID;
    if (p->flags & EBB__STAGED) return EBB_ERR_REPLIED;
    if (!(p->flags & EBB__HELD) && !(handles && ms->current->ref == *i)) return EBB_ERR_INVALID;
    return EBB_OK;
}

/* A reply that goes over a link has to fit through it. */
static ebb_status fits(const ebb_machines *ms, uint32_t i, uint16_t kind, size_t size) {
    enum { BOTH = EBB__CALL | EBB__OVER_PORT };
    if (kind == EBB_MACHINE_REQUEST_FAILED) return EBB_ERR_INVALID;
    if (EBB__LIKELY((ebb__pending_at(ms, i)->flags & BOTH) != BOTH)) return EBB_OK;
    const ebb__port_call *call = ebb__pending_more_at(ms, i)->arg;
    return ebb__machine_crosses(ms, kind, size, call->most);
}

static ebb_status reply(ebb_machines *ms, uint32_t i, uint16_t kind, const void *payload, size_t size) {
    ebb__pending *p = ebb__pending_at(ms, i);
    ebb__cell *c = p->answer;
    ebb_status st = fits(ms, i, kind, size);
    if (st == EBB_OK && c == NULL) c = ebb__cell_new(ms, kind, payload, size, &st); /* too late */
    else if (st == EBB_OK) st = ebb__cell_fill(ms, c, kind, payload, size);
    if (st != EBB_OK) return st;
    c->ref = i;
    p->flags |= EBB__STAGED;
    ebb__stage(ms, c, EBB__REPLY, p->requester);
    if (ms->running == NULL) c->from = ebb__machine_id(ms, p->responder); /* the program replies for it */
    return EBB_OK;
}

ebb_status ebb_machine_reply(ebb_machines *ms, ebb_request id, uint16_t kind, const void *payload,
                             size_t size) {
    uint32_t i = 0;
    if (ms->cx == NULL) return EBB_ERR_CLOSED;
    if (ms->running == NULL) { /* a reply that is owed is admitted even after a close */
        ms->self = 0;
        ms->staged_bytes = ms->effects = 0;
    }
    ebb_status st = find_owed(ms, id, &i);
    if (st == EBB_OK) st = reply(ms, i, kind, payload, size);
    ebb__stage_leave(ms);
    return st;
}

void ebb__pending_commit_reply(ebb_machines *ms, ebb__cell *c) {
    uint32_t i = c->ref;
    ebb__pending *p = ebb__pending_at(ms, i);
    ebb__pending_unhold(ms, i, true);
    if (c == p->answer && !(p->flags & EBB__ENDED)) {
        end_request(ms, i, c, 0);
    } else {
        if (c == p->answer) p->answer = NULL;
        ebb__cell_dead(ms, c, p->requester == 0 ? 0 : ebb__machine_id(ms, p->requester), EBB_DEAD_LATE);
    }
    ebb__pending_unowe(ms, i);
}

void ebb__pending_rollback_reply(ebb_machines *ms, ebb__cell *c) {
    ebb__pending *p = ebb__pending_at(ms, c->ref);
    p->flags &= (uint16_t)~EBB__STAGED;
    if (c != p->answer) {
        ebb__cell_free(ms, c);
        return;
    }
    ebb__cell_empty(ms, c);
    c->what = EBB__FAILED;
}

void ebb__pending_commit_forget(ebb_machines *ms, const ebb__cell *c) {
    uint32_t i;
    if (ebb__lookup(ms->rt, &ms->pendings, c->body.key, &i) != EBB_OK) return;
    if (!(ebb__pending_at(ms, i)->flags & EBB__ENDED))
        ebb__pending_unwant(ms, i); /* otherwise the answer is in the mailbox */
}

ebb_status ebb_machine_forget(ebb_machines *ms, ebb_request id) {
    uint32_t i;
    ebb_status st = lookup(ms, id, &i);
    if (st != EBB_OK) return st;
    ebb__pending *p = ebb__pending_at(ms, i);
    if (p->requester != (ms->running != NULL ? ms->running_index : 0)) return EBB_ERR_INVALID;
    if (p->flags & EBB__ENDED) {
        if (!(p->flags & EBB__CALL)) return EBB_ERR_STALE;
        p->flags &=
            (uint16_t)~EBB__CALL; /* the answer has arrived, and waits until the present hook returns */
        return EBB_OK;
    }
    if (ms->running == NULL) {
        p->flags &= (uint16_t)~EBB__CALL;
        ebb__pending_unwant(ms, i);
        return EBB_OK;
    }
    ebb__cell *c = ebb__cell_new(ms, 0, NULL, 0, &st);
    if (c == NULL) return st;
    c->body.key = id.id;
    ebb__stage(ms, c, EBB__FORGET, 0);
    return EBB_OK;
}
