/* The log of a dispatch: what it has staged, in order. An operation from outside of a dispatch is a log of one entry,
 * or of one for each receiver, that commits at once. */
#include "machine/machine.h"

#include <assert.h>

/* ---- entering ------------------------------------------------------------------------------------------------ */

/* A unit of work may still send while the service around it closes. */
static bool is_in_unit(ebb_runtime *rt) {
    const ebb_cx *cx = ebb__current_cx(rt);
    for (const ebb__region *r = ebb__region_of(cx); r != NULL; r = ebb__region_parent(rt, r)) {
        if (ebb__region_is(rt, r, EBB__REGION_UNIT)) return true;
    }
    return false;
}

/* For the time after a close. A hook may still send: it works on what was admitted before. */
static bool is_admitted(const ebb_machines *ms, bool spawns) {
    if (ms->hooking) return !spawns;
    return !ms->stopping && is_in_unit(ms->rt);
}

ebb_status ebb__stage_enter(ebb_machines *ms, bool spawns) {
    if (EBB__UNLIKELY(ms->cx == NULL || ms->cancelled)) {
        if (ms->running == NULL || ms->cx == NULL || spawns) return EBB_ERR_CLOSED;
    }
    if (EBB__LIKELY(ms->running != NULL)) return spawns && ebb_stopping(ms->cx) ? EBB_ERR_CLOSED : EBB_OK;
    if (EBB__UNLIKELY(ebb_stopping(ms->cx)) && !is_admitted(ms, spawns)) return EBB_ERR_CLOSED;
    ms->self = 0;
    ms->staged_bytes = ms->effects = 0;
    ms->now_read = false;
    return EBB_OK;
}

void ebb__stage_leave(ebb_machines *ms) {
    if (EBB__LIKELY(ms->running != NULL)) return;
    if (ms->log != NULL) ebb__log_commit(ms);
    if (ebb__hooks_due(ms)) ebb__hooks_run(ms);
    /* A dispatcher that drains looks whether something is left that it waits for. */
    bool drains = ms->cx != NULL && ebb_stopping(ms->cx);
    if (ms->n_ready > 0 || ms->wheel.quiet_until < ms->timer_due || drains) ebb__dispatcher_wake(ms);
}

ebb_status ebb__refuse(ebb_machines *ms, ebb_machine to, uint16_t kind, ebb_status st) {
    ms->stats.refused++;
    ms->stats.full += st == EBB_ERR_MAILBOX_FULL;
    ebb__machine_note(ms, EBB_EV_MACHINE_REFUSED, to.id, ms->self, (uint32_t)st, kind);
    if (st == EBB_ERR_MAILBOX_FULL && ms->opts.overflow != NULL && ms->refusals < EBB__REFUSALS_KEPT)
        ms->refusal[ms->refusals++] = (ebb__refusal){to, kind};
    return st;
}

/* ---- committing ------------------------------------------------------------------------------------------------ */

static inline void deliver(ebb_machines *ms, ebb__cell *c) {
    ebb__machine *m = ebb__machine_at(ms, c->to);
    if (EBB__LIKELY(m->lifecycle <= EBB_MACHINE_RUNNING)) {
        ebb__mailbox_put(ms, c->to, m, c);
        return;
    }
    /* It was stopped by an effect before this one. */
    c->flags &= (uint8_t)~EBB__PLACE;
    ebb__cell_dead(ms, c, ebb__machine_id(ms, c->to),
                   m->lifecycle == EBB_MACHINE_STOPPED ? EBB_DEAD_STOPPED : EBB_DEAD_FAULTED);
}

static void commit_spawn(ebb_machines *ms, const ebb__cell *c) {
    ebb__machine *m = ebb__machine_at(ms, c->to);
    m->flags &= (uint8_t)~EBB__M_UNCOMMITTED;
    ebb__machine_note(ms, EBB_EV_MACHINE_SPAWNED, ebb__machine_id(ms, c->to), c->from, m->state,
                      m->type->number);
}

/* True if the cell stays in use. */
static bool commit_other(ebb_machines *ms, ebb__cell *c) {
    switch (c->what) {
    case EBB__REQUEST: ebb__pending_commit_request(ms, c); return true;
    case EBB__REPLY: ebb__pending_commit_reply(ms, c); return true;
    case EBB__ARM: ebb__alarm_commit(ms, c); return true;
    case EBB__SPAWN: commit_spawn(ms, c); return false;
    case EBB__START: ebb__machine_started(ms, c->to); return false;
    case EBB__STOP: ebb__machine_end(ms, c->to, EBB_MACHINE_STOPPED); return false;
    case EBB__FORGET: ebb__pending_commit_forget(ms, c); return false;
    case EBB__SUBSCRIBE: ebb__subscribe_commit(ms, c); return false;
    case EBB__UNSUBSCRIBE: ebb__unsubscribe_commit(ms, c); return false;
    case EBB__NOBODY: ebb__cell_dead(ms, c, 0, EBB_DEAD_NOBODY); return true;
    default: return false;
    }
}

void ebb__log_commit(ebb_machines *ms) {
    ebb__cell *c = ms->log;
    ms->log = NULL;
    ms->log_end = &ms->log;
    while (c != NULL) {
        ebb__cell *next = c->next;
        if (EBB__LIKELY(c->what == EBB__MESSAGE)) deliver(ms, c);
        else if (!commit_other(ms, c)) ebb__cell_free(ms, c);
        c = next;
    }
}

/* ---- undoing ----------------------------------------------------------------------------------------------------- */

static void undo(ebb_machines *ms, ebb__cell *c) {
    switch (c->what) {
    case EBB__MESSAGE: ebb__machine_at(ms, c->to)->places--; break;
    case EBB__REQUEST:
        ebb__machine_at(ms, c->to)->places--;
        ebb__pending_unstage(ms, c->ref); /* frees the cell */
        return;
    case EBB__REPLY: ebb__pending_rollback_reply(ms, c); return;
    case EBB__ARM: ebb__alarm_free(ms, c->ref); break;
    case EBB__HOLD: ebb__pending_unhold(ms, c->ref, false); break;
    case EBB__SUBSCRIBE: ebb__subscribe_rollback(ms, c); break;
    default: break;
    }
    ebb__cell_free(ms, c);
}

/* Spawns come last: what was sent to a new machine is taken back first. */
void ebb__log_undo(ebb_machines *ms, ebb__cell **from) {
    ebb__cell *c = *from, *spawns = NULL;
    *from = NULL;
    ms->log_end = from;
    while (c != NULL) {
        ebb__cell *next = c->next;
        if (c->what == EBB__SPAWN) {
            c->next = spawns;
            spawns = c;
        } else {
            undo(ms, c);
        }
        c = next;
    }
    for (; spawns != NULL; spawns = c) {
        c = spawns->next;
        ebb__machine_unspawn(ms, spawns->to);
        ebb__cell_free(ms, spawns);
    }
}

void ebb__log_rollback(ebb_machines *ms) {
    ebb__log_undo(ms, &ms->log);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static void count_dropped(const ebb_machines *ms, uint64_t to) {
    uint32_t i = (uint32_t)(to >> 32) & 0xffffff;
    if (i == 0 || i >= ms->machines.used || ebb__machine_at(ms, i)->generation != (uint32_t)to) return;
    ebb__machine_past *past = ebb__machine_past_at(ms, i);
    past->dropped += past->dropped < UINT32_MAX;
}

void ebb__dead_put(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_dead_reason why) {
    ms->stats.dead++;
    count_dropped(ms, to);
    c->number = to;
    c->to = (uint32_t)why;
    c->next = NULL;
    *ms->dead_end = c;
    ms->dead_end = &c->next;
}

void ebb__cell_dead(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_dead_reason why) {
    ebb__machine_note(ms, EBB_EV_MACHINE_DROPPED, to, c->from, (uint32_t)why, c->number);
    ebb__dead_put(ms, c, to, why);
}

static void bury(ebb_machines *ms, ebb__cell *c) {
    ebb_dead_letter letter = {.reason = (ebb_dead_reason)c->to,
                              .to = {c->number},
                              .from = {c->from},
                              .payload = ebb__cell_payload(c),
                              .size = c->size,
                              .kind = c->kind};
    if (ms->opts.dead_letter != NULL) ms->opts.dead_letter(ms->opts.arg, &letter);
    if (c->what == EBB__REQUEST) ebb__pending_unowe(ms, c->ref); /* frees the cell */
    else ebb__cell_free(ms, c);
}

/* The answer had arrived when a hook called ebb_machine_forget for this call. */
static void drop_answer(ebb_machines *ms, ebb__cell *c) {
    ebb__pending_unwant(ms, c->ref);
    if (c->what == EBB__REPLY) ebb__cell_dead(ms, c, 0, EBB_DEAD_LATE);
    else ebb__cell_free(ms, c);
}

static void answer(ebb_machines *ms, ebb__cell *c) {
    ebb__pending *p = ebb__pending_at(ms, c->ref);
    if (!(p->flags & EBB__CALL)) {
        drop_answer(ms, c);
        return;
    }
    p->flags &= (uint16_t)~EBB__CALL; /* from now on it can't be forgotten */
    ebb_message m = {.payload = ebb__cell_payload(c),
                     .origin = ebb__cell_payload(p->origin),
                     .from = {c->from},
                     .request = {ebb__pending_id(ms, c->ref)},
                     .size = c->size,
                     .origin_size = p->origin->size,
                     .kind = c->kind,
                     .origin_kind = p->origin->kind,
                     .failure = c->what == EBB__FAILED ? c->body.failure : 0};
    const ebb__pending_more *more = ebb__pending_more_at(ms, c->ref);
    more->answered(more->arg, &m);
    ebb__pending_unwant(ms, c->ref);
    ebb__cell_free(ms, c);
}

/* A hook may make further hooks due; the outermost call runs them all. */
void ebb__hooks_run(ebb_machines *ms) {
    if (ms->hooking) return;
    ms->hooking = true;
    while (ebb__hooks_due(ms)) {
        if (ms->faulted) {
            ms->faulted = false;
            if (ms->opts.fault != NULL)
                ms->opts.fault(ms->opts.arg, ms->faulted_machine, ms->faulted_kind, ms->faulted_status);
        }
        ebb__refusal refusal[EBB__REFUSALS_KEPT];
        uint32_t n = ms->refusals;
        memcpy(refusal, ms->refusal, n * sizeof *refusal);
        ms->refusals = 0;
        for (uint32_t i = 0; i < n; i++) ms->opts.overflow(ms->opts.arg, refusal[i].to, refusal[i].kind);
        ebb__cell *c = ms->dead;
        if (c != NULL) {
            ms->dead = c->next;
            if (ms->dead == NULL) ms->dead_end = &ms->dead;
            bury(ms, c);
        }
        if ((c = ms->answers) != NULL) {
            ms->answers = c->next;
            if (ms->answers == NULL) ms->answers_end = &ms->answers;
            answer(ms, c);
        }
    }
    ms->hooking = false;
}

/* ---- sending ------------------------------------------------------------------------------------------------------ */

ebb_status ebb_machine_send(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                            size_t size) {
    uint32_t i;
    ebb_status st = ebb__stage_enter(ms, false);
    if (EBB__UNLIKELY(st != EBB_OK)) return st;
    if (EBB__UNLIKELY(kind == EBB_MACHINE_REQUEST_FAILED)) return EBB_ERR_INVALID;
    st = ebb__machine_receiver(ms, to, &i);
    ebb__machine *m = EBB__LIKELY(st == EBB_OK) ? ebb__machine_at(ms, i) : NULL;
    if (EBB__LIKELY(m != NULL)) st = ebb__has_place(ms, m, kind, size);
    if (EBB__LIKELY(st == EBB_OK)) {
        ebb__cell *c = ebb__cell_new(ms, kind, payload, size, &st);
        if (EBB__LIKELY(c != NULL)) {
            m->places++;
            c->flags |= EBB__PLACE;
            ebb__stage(ms, c, EBB__MESSAGE, i);
        }
    } else {
        st = ebb__refuse(ms, to, kind, st);
    }
    ebb__stage_leave(ms);
    return st;
}
