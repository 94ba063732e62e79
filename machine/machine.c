/* Records of machines and their lifecycle: Created, Running, Faulted, Stopped. */
#include "machine/machine.h"

#include "base/alloc.h"

#include <assert.h>

/* ---- ids ------------------------------------------------------------------------------------------------------ */

/* A stopped machine's slot may be free already, under the next generation. */
uint64_t ebb__machine_id(const ebb_machines *ms, uint32_t i) {
    const ebb__machine *m = ebb__machine_at(ms, i);
    return ebb__id(ms->rt, i,
                   m->lifecycle == EBB_MACHINE_STOPPED && m->type == NULL ? m->generation - 1
                                                                          : m->generation);
}

/* The record of a machine that has not stopped; NULL and *st: what became of it. */
static ebb__machine *find(const ebb_machines *ms, ebb_machine id, ebb_status *st) {
    uint32_t i = (uint32_t)(id.id >> 32) & 0xffffff, generation = (uint32_t)id.id;
    *st = EBB_ERR_UNKNOWN_MACHINE;
    if (ms->rt == NULL || generation == 0 || id.id >> 56 != ebb__rt_id(ms->rt) ||
        i - 1 >= ms->machines.used - 1)
        return NULL;
    ebb__machine *m = ebb__machine_at(ms, i);
    if (generation > m->generation || (generation ^ m->generation) >> EBB__SET_SHIFT != 0) return NULL;
    bool gone = generation < m->generation || m->type == NULL || m->lifecycle == EBB_MACHINE_STOPPED;
    *st = gone ? EBB_ERR_NOT_RUNNING : EBB_OK;
    return *st == EBB_OK ? m : NULL;
}

ebb_status ebb__machine_receiver_slow(const ebb_machines *ms, ebb_machine id) {
    ebb_status st;
    (void)find(ms, id, &st);
    return st == EBB_OK ? EBB_ERR_NOT_RUNNING : st;
}

ebb__machine_more *ebb__machine_more_of(ebb_machines *ms, ebb__machine *m) {
    if (m->more != NULL) return m->more;
    m->more = ebb__cells_take(&ms->mores, &ms->allocator);
    if (m->more != NULL) *m->more = (ebb__machine_more){0};
    return m->more;
}

/* ---- spawning --------------------------------------------------------------------------------------------------- */

static void link_youngest(ebb_machines *ms, uint32_t i, ebb__machine *m) {
    m->older = ms->youngest;
    m->newer = 0;
    if (ms->youngest != 0) ebb__machine_at(ms, ms->youngest)->newer = i;
    ms->youngest = i;
}

static void unlink_age(ebb_machines *ms, uint32_t i, const ebb__machine *m) {
    if (m->newer != 0) ebb__machine_at(ms, m->newer)->older = m->older;
    else {
        assert(ms->youngest == i);
        ms->youngest = m->older;
    }
    if (m->older != 0) ebb__machine_at(ms, m->older)->newer = m->newer;
    (void)i;
}

/* The slots of other runtimes of machines have other ids. */
static void renew(ebb_machines *ms, ebb__machine *m, uint32_t index) {
    if (m->generation == 1) m->generation = ms->set->generation;
    *ebb__machine_past_at(ms, index) = (ebb__machine_past){.spawned_at = ebb__now(ms->rt)};
}

static void *new_fields(ebb_machines *ms, ebb__machine_type *type, const void *fields) {
    void *p = ebb__cells_take(&type->fields, &ms->allocator);
    if (p == NULL) return NULL;
    if (fields != NULL) memcpy(p, fields, type->t.fields);
    else memset(p, 0, type->t.fields);
    return p;
}

static ebb_status make(ebb_machines *ms, ebb__machine_type *type, uint32_t state, const void *fields,
                       uint32_t *index) {
    if (state >= type->t.n_states) return EBB_ERR_INVALID;
    ebb_status st = ebb__slab_reserve(&ms->machines, &ms->allocator);
    if (st != EBB_OK) return st;
    void *block = NULL;
    if (type->t.fields > 0 && (block = new_fields(ms, type, fields)) == NULL) return EBB_ERR_NOMEM;
    ebb_status made;
    ebb__cell *c = ebb__cell_new(ms, 0, NULL, 0, &made);
    if (c == NULL) {
        if (block != NULL) ebb__cells_give(&type->fields, block);
        return made;
    }
    uint32_t i = *index = ebb__slab_take_as(&ms->machines, EBB__MACHINE_SHIFT, sizeof(ebb__machine));
    ebb__machine *m = ebb__machine_at(ms, i);
    renew(ms, m, i);
    *m = (ebb__machine){.generation = m->generation,
                        .type = type,
                        .fields = block,
                        .state = (uint16_t)state,
                        .lifecycle = EBB_MACHINE_CREATED,
                        .flags = EBB__M_UNCOMMITTED,
                        .mailbox = type->t.mailbox};
    link_youngest(ms, i, m);
    ms->n_machines++;
    ebb__stage(ms, c, EBB__SPAWN, i);
    return EBB_OK;
}

ebb_machine ebb_machine_spawn(ebb_machines *ms, const ebb_machine_type *type, uint32_t state,
                              const void *fields) {
    uint32_t i = 0;
    uint64_t id;
    ebb_status st = ebb__stage_enter(ms, true);
    if (st != EBB_OK)
        return (ebb_machine){ms->rt == NULL ? (uint64_t)(uint32_t)-st << 32 : ebb__id_error(ms->rt, st)};
    ebb__machine_type *mt = ebb__machine_type_of(ms, type, &st);
    if (mt != NULL) st = make(ms, mt, state, fields, &i);
    id = st == EBB_OK ? ebb__machine_id(ms, i) : ebb__id_error(ms->rt, st);
    ebb__stage_leave(ms);
    return (ebb_machine){id};
}

void ebb__machine_retire(ebb_machines *ms, uint32_t index) {
    ebb__machine *m = ebb__machine_at(ms, index);
    assert(m->lifecycle == EBB_MACHINE_STOPPED && !(m->flags & EBB__M_READY));
    m->type = NULL;
    if (EBB__UNLIKELY(ebb__generation_is_last(m->generation))) {
        ms->set->used_up = true;
        ebb__slab_retire(&ms->machines, index);
        return;
    }
    ebb__slab_give_as(&ms->machines, index, EBB__MACHINE_SHIFT, sizeof *m);
    if (m->generation > ms->set->generation) ms->set->generation = m->generation;
}

static void free_fields(ebb__machine *m, bool committed) {
    ebb__machine_type *type = m->type;
    if (type->t.settle != NULL) type->t.settle(type->given, committed, m->state, m->fields, m->state, NULL);
    if (m->fields != NULL) ebb__cells_give(&type->fields, m->fields);
    m->fields = NULL;
}

void ebb__machine_unspawn(ebb_machines *ms, uint32_t index) {
    ebb__machine *m = ebb__machine_at(ms, index);
    assert(m->flags & EBB__M_UNCOMMITTED && m->last == NULL && m->more == NULL && m->places == 0);
    unlink_age(ms, index, m);
    ms->n_machines--;
    free_fields(m, false);
    m->lifecycle = EBB_MACHINE_STOPPED;
    ebb__machine_retire(ms, index);
}

/* ---- starting and ending ------------------------------------------------------------------------------------------ */

/* Stages a start or a stop. */
static ebb_status stage_verb(ebb_machines *ms, ebb_machine machine, ebb__what what) {
    ebb_status st = ebb__stage_enter(ms, false);
    if (st != EBB_OK) return st;
    const ebb__machine *m = find(ms, machine, &st);
    if (m != NULL && what == EBB__START && m->lifecycle != EBB_MACHINE_CREATED)
        st = m->lifecycle == EBB_MACHINE_RUNNING ? EBB_ERR_INVALID : EBB_ERR_NOT_RUNNING;
    ebb__cell *c = st == EBB_OK ? ebb__cell_new(ms, 0, NULL, 0, &st) : NULL;
    if (c != NULL) ebb__stage(ms, c, what, (uint32_t)(machine.id >> 32) & 0xffffff);
    ebb__stage_leave(ms);
    return st;
}

ebb_status ebb_machine_start(ebb_machines *ms, ebb_machine machine) {
    return stage_verb(ms, machine, EBB__START);
}

ebb_status ebb_machine_stop(ebb_machines *ms, ebb_machine machine) {
    return stage_verb(ms, machine, EBB__STOP);
}

void ebb__machine_started(ebb_machines *ms, uint32_t index) {
    ebb__machine *m = ebb__machine_at(ms, index);
    if (m->lifecycle != EBB_MACHINE_CREATED) return; /* staged twice, or stopped since */
    const ebb_machine_state *s = &m->type->t.states[m->state];
    m->lifecycle = EBB_MACHINE_RUNNING;
    if (s->entry != NULL || s->invariant != NULL || s->final) m->flags |= EBB__M_ENTER;
    ebb__machine_note(ms, EBB_EV_MACHINE_STARTED, ebb__machine_id(ms, index), 0, m->state, 0);
    if (m->flags & EBB__M_ENTER || ebb__mailbox_next(m) != NULL) ebb__ready_push(ms, index, m);
}

/* A message that will not be handled because its receiver ends. */
void ebb__cell_called_off(ebb_machines *ms, ebb__cell *c, uint64_t id, bool faulted) {
    ebb_dead_reason why = faulted ? EBB_DEAD_FAULTED : EBB_DEAD_STOPPED;
    if (c->what == EBB__REQUEST) {
        ebb__request_dead(ms, c, id, faulted ? EBB_REQUEST_FAULTED : EBB_REQUEST_STOPPED, why);
    } else if (c->what == EBB__EXPIRY || c->what == EBB__STALE) {
        if (c->what == EBB__EXPIRY) ebb__alarm_free(ms, c->ref);
        ebb__machine_note(ms, EBB_EV_MACHINE_DROPPED, id, c->from, (uint32_t)why, c->number);
        ebb__cell_free(ms, c);
    } else {
        if (c->what == EBB__REPLY || c->what == EBB__FAILED) ebb__pending_unwant(ms, c->ref);
        ebb__cell_dead(ms, c, id, why);
    }
}

static void empty_mailbox(ebb_machines *ms, ebb__machine *m, uint64_t id, bool faulted) {
    m->mark = NULL;
    for (ebb__cell *c; (c = ebb__mailbox_next(m)) != NULL;) {
        ebb__mailbox_take(ms, m, c);
        ebb__cell_called_off(ms, c, id, faulted);
    }
}

static void end_more(ebb_machines *ms, ebb__machine *m, bool faulted) {
    ebb__machine_more *more = m->more;
    if (more == NULL) return;
    ebb__alarms_end(ms, m);
    while (more->held != 0) {
        ebb__pending_lost(ms, more->held, faulted ? EBB_REQUEST_FAULTED : EBB_REQUEST_STOPPED);
    }
    ebb__subscriptions_end(ms, m);
    m->more = NULL;
    ebb__cells_give(&ms->mores, more);
}

void ebb__machine_end(ebb_machines *ms, uint32_t index, ebb_machine_lifecycle how) {
    ebb__machine *m = ebb__machine_at(ms, index);
    bool faulted = how == EBB_MACHINE_FAULTED;
    uint64_t id = ebb__machine_id(ms, index);
    assert(how > EBB_MACHINE_RUNNING);
    if (m->lifecycle == EBB_MACHINE_STOPPED) return;
    if (m->lifecycle <= EBB_MACHINE_RUNNING) { /* a faulted one has nothing left of these */
        m->lifecycle = (uint8_t)how;
        m->flags &= (uint8_t)~EBB__M_ENTER;
        /* First, so that a request to itself is not answered into the mailbox that is emptied. */
        while (m->more != NULL && m->more->made != 0) ebb__pending_unwant(ms, m->more->made);
        empty_mailbox(ms, m, id, faulted);
        end_more(ms, m, faulted);
        if (m->flags & EBB__M_PORTED) ebb__ports_ended(ms, index, faulted);
    }
    ms->stats.faults += faulted;
    ebb__machine_note(ms, faulted ? EBB_EV_MACHINE_FAULTED : EBB_EV_MACHINE_STOPPED, id, 0, m->state, 0);
    if (faulted) return;
    m->lifecycle = EBB_MACHINE_STOPPED;
    unlink_age(ms, index, m);
    ms->n_machines--;
    free_fields(m, true);
    /* Who takes it out of the ready queue, or dispatches it, retires it then. */
    if (!(m->flags & EBB__M_READY) && m != ms->running) ebb__machine_retire(ms, index);
}

/* ---- asking -------------------------------------------------------------------------------------------------------- */

static uint32_t count_cells(const ebb__cell *first, const ebb__cell *last) {
    uint32_t n = 1;
    for (; first != last; first = first->next) n++;
    return n;
}

ebb_status ebb_machine_info_of(const ebb_machines *ms, ebb_machine machine, ebb_machine_info *out) {
    ebb_status st;
    ebb__machine *m = find(ms, machine, &st);
    *out = (ebb_machine_info){.lifecycle = EBB_MACHINE_STOPPED};
    if (m == NULL) return st == EBB_ERR_UNKNOWN_MACHINE ? st : EBB_OK;
    if (m->flags & EBB__M_PROXY) (void)ebb__proxy_looks_again(m);
    out->type = m->type->given;
    out->fields = m->fields;
    out->lifecycle = (ebb_machine_lifecycle)m->lifecycle;
    out->state = m->state;
    out->queued = m->last == NULL ? 0 : count_cells(m->last->next, m->last);
    out->deferred = m->mark == NULL ? 0 : count_cells(m->last->next, m->mark);
    out->reserved = m->places;
    out->mailbox = m->mailbox;
    const ebb__machine_past *past = ebb__machine_past_at(ms, (uint32_t)(machine.id >> 32) & 0xffffff);
    out->spawned_at = past->spawned_at;
    out->faults = past->faults;
    out->dropped = past->dropped;
    if (m->more == NULL) return EBB_OK;
    out->pending = m->more->n_made;
    out->held = m->more->n_held;
    out->timers = m->more->n_alarms;
    out->subscriptions = m->more->n_subscriptions;
    return EBB_OK;
}
