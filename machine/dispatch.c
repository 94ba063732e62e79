/* One dispatch: a message, the rule for it in the present state, and what comes of it: a commit or a rollback. */
#include "machine/machine.h"

#include "base/alloc.h"

#include <assert.h>

/* ---- the transaction ------------------------------------------------------------------------------------------- */

/* Returns the copy of the fields. */
static inline void *begin(ebb_machines *ms, uint32_t index, ebb__machine *m, ebb__cell *c) {
    assert(ms->log == NULL && ms->running == NULL);
    ms->running = m;
    ms->running_index = index;
    ms->self = ebb__id(ms->rt, index, m->generation);
    ms->current = c;
    ms->next_state = m->state;
    ms->next_fields = NULL;
    ms->staged_bytes = ms->effects = 0;
    ms->now_read = false;
    if (EBB__LIKELY(m->type->t.fields > 0)) memcpy(ms->shadow, m->fields, m->type->t.fields);
    return ms->shadow;
}

static inline ebb_message *describe(ebb_machines *ms, ebb__cell *c, const void *arg) {
    ebb_message *msg = &ms->message;
    *msg = (ebb_message){.arg = arg, .self = {ms->self}};
    if (c == NULL) return msg;
    msg->payload = ebb__cell_payload(c);
    msg->from.id = c->from;
    msg->size = c->size;
    msg->kind = c->kind;
    if (EBB__LIKELY(c->what == EBB__MESSAGE || c->what == EBB__EXPIRY)) return msg;
    ebb__pending *p = ebb__pending_at(ms, c->ref);
    __builtin_prefetch(c->what == EBB__REQUEST ? p->answer : p->origin, 1);
    msg->request.id = ebb__id(ms->rt, c->ref, p->generation);
    if (c->what == EBB__REQUEST) return msg;
    msg->origin = ebb__cell_payload(p->origin);
    msg->origin_size = p->origin->size;
    msg->origin_kind = p->origin->kind;
    msg->label = p->label;
    if (c->what == EBB__FAILED) msg->failure = c->body.failure;
    return msg;
}

static ebb_status call(ebb_machines *ms, ebb__part part, ebb_machine_fn fn, const void *arg, void *self) {
    if (fn == NULL) return EBB_OK;
    ms->part = part;
    ms->message.arg = arg;
    return fn(ms, self, &ms->message);
}

/* After the body: exit, fields, entry, invariant. */
static ebb_status change_state(ebb_machines *ms, const ebb__machine *m, void *self, bool entering) {
    const ebb_machine_type *t = &m->type->t;
    const ebb_machine_state *from = &t->states[m->state], *to = &t->states[ms->next_state];
    bool changes = ms->next_state != m->state;
    ebb_status st = changes ? call(ms, EBB__EXIT, from->exit, from->arg, self) : EBB_OK;
    if (st == EBB_OK && ms->next_fields != NULL) memcpy(self, ms->next_fields, t->fields);
    if (st == EBB_OK && (changes || entering)) st = call(ms, EBB__ENTRY, to->entry, to->arg, self);
    if (st == EBB_OK) st = call(ms, EBB__ENTRY, to->invariant, to->arg, self);
    return st;
}

static bool owes_reply(const ebb_machines *ms, const ebb__cell *c) {
    return c != NULL && c->what == EBB__REQUEST &&
           !(ebb__pending_at(ms, c->ref)->flags & (EBB__STAGED | EBB__HELD));
}

static void enter_state(ebb_machines *ms, ebb__machine *m, uint32_t state) {
    m->state = (uint16_t)state;
    m->mark = NULL;
    if (m->more != NULL) ebb__alarms_end(ms, m);
}

static inline void commit(ebb_machines *ms, ebb__machine *m, void *self, uint64_t number, bool entering) {
    const ebb__machine_type *type = m->type;
    uint32_t from = m->state, to = ms->next_state;
    ebb__machine_note(ms, EBB_EV_MACHINE_COMMITTED, ms->self, ms->effects, from << 16 | to, number);
    if (EBB__UNLIKELY(type->t.settle != NULL)) type->t.settle(type->given, true, from, m->fields, to, self);
    if (EBB__LIKELY(type->t.fields > 0)) memcpy(m->fields, self, type->t.fields);
    if (to != from) enter_state(ms, m, to);
    ms->stats.committed++;
    ebb__log_commit(ms);
    if (EBB__UNLIKELY(to != from || entering) && type->t.states[to].final &&
        m->lifecycle == EBB_MACHINE_RUNNING)
        ebb__machine_end(ms, ms->running_index, EBB_MACHINE_STOPPED);
}

/* Enters the fault state of the type, without calling its entry. If the type has none, the machine ends. A proxy goes
 * on: a message that it could not forward is no fault of the machine that it stands for. */
static void recover_or_end(ebb_machines *ms, ebb__machine *m) {
    uint32_t to = m->type->t.fault_state;
    if (m->flags & EBB__M_PROXY) {
        ebb__machine_note(ms, EBB_EV_MACHINE_RECOVERED, ms->self, 0, (uint32_t)m->state << 16 | m->state, 0);
        return;
    }
    if (to == 0 || m->state == to - 1) {
        ebb__machine_end(ms, ms->running_index, EBB_MACHINE_FAULTED);
        return;
    }
    ebb__machine_note(ms, EBB_EV_MACHINE_RECOVERED, ms->self, 0, (uint32_t)m->state << 16 | (to - 1), 0);
    enter_state(ms, m, to - 1);
    while (m->more != NULL && m->more->held != 0) ebb__pending_lost(ms, m->more->held, EBB_REQUEST_FAULTED);
    if (m->type->t.states[to - 1].final) ebb__machine_end(ms, ms->running_index, EBB_MACHINE_STOPPED);
}

static void roll_back(ebb_machines *ms, ebb__machine *m, void *self, uint64_t number, ebb_status st) {
    const ebb__machine_type *type = m->type;
    ebb__log_rollback(ms);
    ebb__machine_note(ms, EBB_EV_MACHINE_ROLLED_BACK, ms->self, 0, (uint32_t)st, number);
    if (type->t.settle != NULL) type->t.settle(type->given, false, m->state, m->fields, m->state, self);
    ebb__machine_past *past = ebb__machine_past_at(ms, ms->running_index);
    past->faults += past->faults < UINT32_MAX;
    ms->stats.rolled_back++;
    ms->faulted = true;
    ms->faulted_machine.id = ms->self;
    ms->faulted_kind = ms->current == NULL ? 0 : ms->current->kind;
    ms->faulted_status = st;
}

/* The message after its dispatch. A request belongs to its pending, which the reply may have freed. */
static void finish(ebb_machines *ms, ebb__cell *c, ebb__what what, bool committed) {
    if (what == EBB__REPLY || what == EBB__FAILED) ebb__pending_unwant(ms, c->ref);
    if (committed) {
        if (what != EBB__REQUEST) ebb__cell_free(ms, c);
        return;
    }
    if (what == EBB__REQUEST) ebb__pending_fail(ms, c->ref, EBB_REQUEST_FAULTED);
    ebb__dead_put(ms, c, ms->self, EBB_DEAD_FAULTED);
}

static inline void end_dispatch(ebb_machines *ms) {
    ms->running = NULL;
    ms->part = EBB__OUTSIDE;
    if (EBB__UNLIKELY(ms->arena.chunks != NULL)) ebb__arena_reset(&ms->arena);
    if (EBB__LIKELY(ms->shadow_old == NULL)) return;
    ebb__free(&ms->allocator, ms->shadow_old, ms->shadow_old_size);
    ms->shadow_old = NULL;
}

static inline void dispatch(ebb_machines *ms, uint32_t index, ebb__machine *m, ebb__cell *c,
                            ebb_machine_fn fn, const void *arg) {
    void *self = begin(ms, index, m, c);
    uint64_t number = c == NULL ? 0 : c->number;
    ebb__what what = c == NULL ? 0 : (ebb__what)c->what;
    const ebb_message *msg = describe(ms, c, arg);
    ms->part = EBB__BODY;
    ebb_status st = c == NULL ? EBB_OK : fn(ms, self, msg);
    if (st == EBB_OK && (!m->type->plain || ms->next_fields != NULL))
        st = change_state(ms, m, self, c == NULL);
    if (EBB__UNLIKELY(st == EBB_OK && owes_reply(ms, c))) st = EBB_ERR_NO_REPLY;
    if (EBB__LIKELY(st == EBB_OK)) {
        commit(ms, m, self, number, c == NULL);
        if (c != NULL) finish(ms, c, what, true);
    } else {
        roll_back(ms, m, self, number, st);
        if (c != NULL) finish(ms, c, what, false);
        recover_or_end(ms, m);
    }
    end_dispatch(ms);
}

/* ---- one turn --------------------------------------------------------------------------------------------------- */

static const ebb_machine_rule no_rule = {NULL, NULL, EBB_MACHINE_NONE};

static inline const ebb_machine_rule *rule_of(const ebb__machine *m, uint16_t kind) {
    const ebb_machine_type *t = &m->type->t;
    uint32_t column = kind;
    if (t->column != NULL) {
        if (t->column[kind] == 0) return &no_rule;
        column = t->column[kind] - 1u;
    } else if (column >= t->columns) {
        return m->flags & EBB__M_PROXY ? &ebb__proxy_rule : &no_rule;
    }
    return &t->table[(size_t)m->state * t->columns + column];
}

/* A message that no handler gets. */
static void drop(ebb_machines *ms, uint64_t self, ebb__cell *c, bool ignored) {
    if (c->what == EBB__REQUEST) {
        ebb__request_dead(ms, c, self, EBB_REQUEST_UNHANDLED, EBB_DEAD_UNHANDLED);
        return;
    }
    if (c->what == EBB__REPLY || c->what == EBB__FAILED) ebb__pending_unwant(ms, c->ref);
    if (!ignored && c->what != EBB__STALE) {
        ebb__cell_dead(ms, c, self, EBB_DEAD_UNHANDLED);
        return;
    }
    ms->stats.ignored += ignored;
    ebb__machine_note(ms, EBB_EV_MACHINE_DROPPED, self, c->from, 0, c->number);
    ebb__cell_free(ms, c);
}

static inline bool has_pending(const ebb__cell *c) {
    return c->what != EBB__MESSAGE && c->what <= EBB__FAILED;
}

/* If many requests are pending, their records are not in the cache, and each record points to the next one: a cell, its
 * pending, the other cell of that pending. Between two messages of a machine all other machines have a turn. So each
 * turn prefetches one step of the chain for each of the next three messages; what it reads here was prefetched in the
 * turns before. */
static inline void prefetch_next(const ebb_machines *ms, const ebb__cell *c) {
    const ebb__cell *next = c->next, *after = next->next;
    if (next == c) return;
    if (has_pending(next)) {
        const ebb__pending *p = ebb__pending_at(ms, next->ref);
        __builtin_prefetch(next->what == EBB__REQUEST ? p->answer : p->origin, 1);
    }
    __builtin_prefetch(after->next, 1);
    if (has_pending(after)) __builtin_prefetch(ebb__pending_at(ms, after->ref), 1);
}

static inline void take_turn(ebb_machines *ms, uint32_t index, ebb__machine *m) {
    ebb__cell *c = ebb__mailbox_next(m);
    const ebb_machine_rule *rule = &no_rule;
    if (c == NULL) return;
    if (EBB__LIKELY(c->what != EBB__STALE)) rule = rule_of(m, c->kind);
    if (rule->what == EBB_MACHINE_DEFER) {
        m->mark = c;
        ebb__machine_note(ms, EBB_EV_MACHINE_DEFERRED, ebb__id(ms->rt, index, m->generation), 0, m->state,
                          c->number);
        return;
    }
    prefetch_next(ms, c);
    ebb__mailbox_take(ms, m, c);
    ms->stats.dispatched++;
    if (c->what == EBB__EXPIRY) ebb__alarm_free(ms, c->ref);
    if (EBB__LIKELY(rule->what == EBB_MACHINE_HANDLE)) dispatch(ms, index, m, c, rule->fn, rule->arg);
    else drop(ms, ebb__id(ms->rt, index, m->generation), c, rule->what == EBB_MACHINE_IGNORE);
}

void ebb__turn(ebb_machines *ms, uint32_t index) {
    ebb__machine *m = ebb__machine_at(ms, index);
    if (EBB__LIKELY(m->lifecycle == EBB_MACHINE_RUNNING)) {
        if (EBB__UNLIKELY(m->flags & EBB__M_ENTER)) {
            m->flags &= (uint8_t)~EBB__M_ENTER;
            dispatch(ms, index, m, NULL, NULL, NULL);
        } else {
            take_turn(ms, index, m);
        }
    }
    if (EBB__LIKELY(m->lifecycle == EBB_MACHINE_RUNNING)) {
        if (!(m->flags & EBB__M_READY) && ebb__mailbox_next(m) != NULL) ebb__ready_push(ms, index, m);
    } else if (m->lifecycle == EBB_MACHINE_STOPPED && !(m->flags & EBB__M_READY)) {
        ebb__machine_retire(ms, index);
    }
    if (EBB__UNLIKELY(ebb__hooks_due(ms))) ebb__hooks_run(ms);
}

/* ---- for handlers ------------------------------------------------------------------------------------------------ */

ebb_status ebb_machine_become(ebb_machines *ms, uint32_t state, void *fields) {
    if (ms->running == NULL) return EBB_ERR_NOT_TASK;
    if (ms->part != EBB__BODY || state >= ms->running->type->t.n_states) return EBB_ERR_INVALID;
    ms->next_state = state;
    ms->next_fields = ms->running->type->t.fields > 0 ? fields : NULL;
    return EBB_OK;
}

void *ebb_machine_alloc(ebb_machines *ms, size_t n) {
    if (ms->running == NULL || n > EBB_MACHINE_DISPATCH_MAX - ms->staged_bytes) return NULL;
    void *p = ebb__arena_alloc(&ms->arena, n);
    if (p != NULL) ms->staged_bytes += (uint32_t)n;
    return p;
}

uint64_t ebb_machine_now(const ebb_machines *ms) {
    ebb_machines *known =
        (ebb_machines *)(uintptr_t)ms; /* the reading is kept for the rest of the dispatch */
    if (ms->rt == NULL) return 0;
    if (ms->running == NULL) return ebb_now(ebb_runtime_host(ms->rt));
    if (!ms->now_read) known->now = ebb_now(ebb_runtime_host(ms->rt));
    known->now_read = true;
    return known->now;
}
