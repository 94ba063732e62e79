/* What a turn commits: cancel sets, the end of an execution, and the ack. */
#include "durable/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void ebb__turn_open(ebb_orch *r) {
    const ebb__list none = {NULL, 0, 0};
    ebb__value *values = r->values.at;
    ebb__arena_reset(&r->scratch);
    r->wants = r->consequences = r->dropped = r->untimed = r->ended_children = none;
    r->writer = (ebb__event_writer){.arena = &r->scratch, .first = r->first};
    r->actions = 0;
    r->custom = NULL;
    for (size_t i = 0; i < r->values.n; i++) values[i].set = false;
}

/* ---- cancel sets ---------------------------------------------------------------------------------------------------- */

static void mark(ebb_orch *r, uint64_t number, unsigned cause) {
    const ebb__event e = {.kind = EBB__EVENT_STEP_CANCELLED, .step = number, .cause = cause};
    (void)ebb__run_emit(r, &e, NULL);
}

/* True if this turn has asked for it: then it stands in the history alone. */
static bool unwant(ebb_orch *r, uint64_t number) {
    ebb__want *wants = r->wants.at;
    size_t low = 0, high = r->wants.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (wants[middle].number < number) low = middle + 1;
        else high = middle;
    }
    if (low == r->wants.n || wants[low].number != number) return false;
    wants[low].gone = true;
    return true;
}

void ebb__turn_drop(ebb_orch *r, uint64_t attempt, ebb_cancel_kind cause) {
    mark(r, attempt, cause);
    if (r->replaying || unwant(r, attempt) || r->all_work) return;
    ebb_provider_cancelled *c = ebb__run_add(r, &r->scratch, &r->dropped, sizeof *c);
    if (c != NULL) *c = (ebb_provider_cancelled){attempt, cause};
}

void ebb__turn_untime(ebb_orch *r, uint64_t timer) {
    mark(r, timer, EBB_CANCEL_NONE);
    if (r->replaying || unwant(r, timer)) return;
    uint64_t *t = ebb__run_add(r, &r->scratch, &r->untimed, sizeof *t);
    if (t != NULL) *t = timer;
}

static void cancel_child(ebb_orch *r, ebb__step *s, ebb_cancel_kind cause) {
    mark(r, s->id, cause);
    if (r->replaying || unwant(r, s->id)) return;
    ebb__step **c = ebb__run_add(r, &r->scratch, &r->ended_children, sizeof *c);
    if (c != NULL) *c = s;
}

void ebb__turn_cancel(ebb_orch *r, ebb__step *s, ebb_cancel_kind cause) {
    switch (s->kind) {
    case EBB__STEP_CALL:
        if (s->running != 0) ebb__turn_drop(r, s->running, cause);
        if (s->deadline != 0) ebb__turn_untime(r, s->deadline);
        if (s->pause != 0) ebb__turn_untime(r, s->pause);
        s->running = s->deadline = s->pause = 0;
        break;
    case EBB__STEP_TIMER: ebb__turn_untime(r, s->id); break;
    case EBB__STEP_EVENT: mark(r, s->id, cause); break;
    case EBB__STEP_CHILD: cancel_child(r, s, cause); break;
    }
}

/* ---- ends -------------------------------------------------------------------------------------------------------------- */

static ebb_cancel_kind cause_of(ebb__event_kind end) {
    if (end == EBB__EVENT_CANCELLED || end == EBB__EVENT_TERMINATED) return EBB_CANCEL_USER;
    return end == EBB__EVENT_FAILED ? EBB_CANCEL_SIBLING_FAILED : EBB_CANCEL_RACE_LOST;
}

static bool runs_on(const ebb__step *s) {
    return s->shielded && ((s->kind == EBB__STEP_CALL && s->running != 0) || s->kind == EBB__STEP_CHILD);
}

static void cancel_outstanding(ebb_orch *r, ebb_cancel_kind cause) {
    r->all_work = true;
    r->cause = cause;
    for (ebb__step *s = r->outstanding; s != NULL; s = s->next)
        r->all_work &= !(runs_on(s) && s->kind == EBB__STEP_CALL);
    for (ebb__step *s = r->outstanding, *next; s != NULL; s = next) {
        next = s->next;
        const bool on = runs_on(s);
        if (on && s->deadline != 0) ebb__turn_untime(r, s->deadline);
        ebb__step_end(r, s, r->event, EBB_CANCELLED, NULL);
        if (!on) ebb__turn_cancel(r, s, cause);
        else mark(r, s->kind == EBB__STEP_CALL ? s->running : s->id, EBB__CAUSE_SHIELDED);
    }
    if (r->cleanup_timer != 0) ebb__turn_untime(r, r->cleanup_timer);
}

static ebb_instance_state state_of(ebb__event_kind end) {
    switch (end) {
    case EBB__EVENT_COMPLETED: return EBB_INSTANCE_COMPLETED;
    case EBB__EVENT_FAILED: return EBB_INSTANCE_FAILED;
    case EBB__EVENT_CANCELLED: return EBB_INSTANCE_CANCELLED;
    case EBB__EVENT_TERMINATED: return EBB_INSTANCE_TERMINATED;
    default: return (ebb_instance_state)0;
    }
}

static void end_with(ebb_orch *r, const ebb__event *e) {
    cancel_outstanding(r, cause_of(e->kind));
    if (r->outcome != EBB_OK || ebb__run_emit(r, e, NULL) == 0) return;
    r->end = *e;
    r->continues = e->kind == EBB__EVENT_CONTINUED_AS_NEW;
    r->ends = state_of(e->kind);
}

static ebb__event failed_end(ebb_orch *r, ebb_status st) {
    ebb__event e = {.kind = EBB__EVENT_FAILED, .status = st};
    const ebb_failure *why = r->own_set && st == EBB_FAILED ? &r->own : &r->failure;
    if (st != EBB_FAILED) return e;
    if (why->code != NULL) e.code = ebb__text_of(why->code);
    if (why->message != NULL) e.text = ebb__text_of(why->message);
    e.details = why->details;
    return e;
}

void ebb__turn_end(ebb_orch *r, ebb_status st, ebb_blob out) {
    ebb__event e = {.kind = EBB__EVENT_COMPLETED};
    if (r->outcome != EBB_OK) return;
    if (st == EBB_OK && !r->continued && out.n > EBB_DURABLE_PAYLOAD) st = EBB_ERR_LIMIT;
    if (st == EBB_PENDING) st = EBB_ERR_INVALID;
    if (st == EBB_OK && r->continued) {
        e.kind = EBB__EVENT_CONTINUED_AS_NEW;
        e.body = r->next_input;
        e.version = r->next_version;
    } else if (st == EBB_OK) {
        e.body = ebb__run_copy(r, out);
    } else if (st == EBB_CANCELLED && r->cancelled) {
        e.kind = EBB__EVENT_CANCELLED;
        e.text = ebb__text_of(r->cancel_reason);
    } else {
        e = failed_end(r, st);
    }
    end_with(r, &e);
}

static void terminate(ebb_orch *r) {
    r->cleanup_timer = 0; /* it has fired */
    const ebb__event e = {.kind = EBB__EVENT_TERMINATED,
                          .text = ebb__text_of("the cleanup after its cancel was not over in 24 h")};
    end_with(r, &e);
}

/* ---- consequences --------------------------------------------------------------------------------------------------------- */

static void begin_cleanup(ebb_orch *r) {
    const ebb__event e = {.kind = EBB__EVENT_TIMER_CREATED, .due = r->cleanup_by, .flags = EBB__FLAG_CLEANUP};
    r->cleanup_timer = ebb__run_emit(r, &e, NULL);
    if (r->cleanup_timer != 0) (void)ebb__run_want(r, EBB__WANT_TIMER, NULL, r->cleanup_timer, r->cleanup_by);
}

void ebb__turn_consequences(ebb_orch *r) {
    const ebb__consequence *all = r->consequences.at;
    bool ends = false;
    for (size_t i = 0; i < r->consequences.n && r->outcome == EBB_OK; i++) {
        const ebb__consequence *c = &all[i];
        switch (c->kind) {
        case EBB__THEN_RETRY: ebb__call_again(r, c->step); break;
        case EBB__THEN_NEXT:
            if (c->step->state == EBB__STEP_OUTSTANDING) ebb__call_attempt(r, c->step);
            break;
        case EBB__THEN_DROP: ebb__turn_drop(r, c->number, EBB_CANCEL_TIMEOUT); break;
        case EBB__THEN_UNTIME: ebb__turn_untime(r, c->number); break;
        case EBB__THEN_CANCEL: begin_cleanup(r); break;
        case EBB__THEN_LOSE: ebb__turn_cancel(r, c->step, EBB_CANCEL_USER); break;
        case EBB__THEN_TERMINATE: ends = true; break;
        }
    }
    if (ends && r->outcome == EBB_OK) terminate(r);
}

/* ---- traces ---------------------------------------------------------------------------------------------------------------------- */

ebb__event_text ebb__run_give_trace(ebb_orch *r, ebb__trace_party party, uint64_t number, ebb_traceparent *t,
                                    char text[EBB_TRACEPARENT_TEXT + 1]) {
    if (!r->traced) return (ebb__event_text){NULL, 0};
    *t = ebb__trace_child(&r->trace, number);
    ebb_traceparent_text(t, text);
    if (!r->replaying && !r->opts.exact)
        ebb__note_trace(r->rt, true, party, 0, r->opts.region, ebb__instance_name(r->opts.key, r->turn), t);
    return (ebb__event_text){text, EBB_TRACEPARENT_TEXT};
}

/* ---- the ack ------------------------------------------------------------------------------------------------------------------ */

static void *room(ebb_orch *r, size_t n, size_t size) {
    void *at = n != 0 ? ebb__arena_zero(&r->scratch, n * size) : NULL;
    if (n != 0 && at == NULL) r->outcome = EBB_ERR_NOMEM;
    return at;
}

static const char *queue_of(ebb_orch *r, const ebb__step *s) {
    if (s->policy.tag == NULL) return s->name.at;
    const size_t tag = strlen(s->policy.tag);
    char *queue = room(r, s->name.n + tag + 2, 1);
    if (queue == NULL) return "";
    memcpy(queue, s->name.at, s->name.n);
    queue[s->name.n] = '@';
    memcpy(queue + s->name.n + 1, s->policy.tag, tag);
    return queue;
}

static ebb_provider_work work_of(ebb_orch *r, const ebb__want *w) {
    const ebb__step *s = w->step;
    char text[EBB_TRACEPARENT_TEXT + 1];
    ebb_traceparent t;
    const bool traced = ebb__run_give_trace(r, EBB__TRACE_ACTIVITY, w->number, &t, text).n != 0;
    const ebb_blob input = ebb__context_wrap(&r->scratch, traced ? &t : NULL, s->input);
    if (input.n != 0 && input.at == NULL) r->outcome = EBB_ERR_NOMEM;
    return (ebb_provider_work){.activity = w->number,
                               .queue = queue_of(r, s),
                               .session = s->policy.session != NULL ? s->policy.session : "",
                               .name = s->name.at,
                               .attempt = s->attempt,
                               .input = input};
}

static size_t wanted(const ebb_orch *r, ebb__want_kind kind) {
    const ebb__want *wants = r->wants.at;
    size_t n = 0;
    for (size_t i = 0; i < r->wants.n; i++) n += wants[i].kind == kind && !wants[i].gone;
    return n;
}

static void put_wants(ebb_orch *r, ebb_provider_ack_turn_call *ack, ebb_provider_outgoing *outgoing) {
    const ebb__want *wants = r->wants.at;
    ebb_provider_work *work = room(r, wanted(r, EBB__WANT_WORK), sizeof *work);
    ebb_provider_timer *timers = room(r, wanted(r, EBB__WANT_TIMER), sizeof *timers);
    for (size_t i = 0; i < r->wants.n && r->outcome == EBB_OK; i++) {
        const ebb__want *w = &wants[i];
        if (w->gone) continue;
        switch (w->kind) {
        case EBB__WANT_WORK: work[ack->work_n++] = work_of(r, w); break;
        case EBB__WANT_TIMER: timers[ack->timers_n++] = (ebb_provider_timer){w->number, w->due}; break;
        case EBB__WANT_CHILD: outgoing[ack->outgoing_n++] = w->start; break;
        }
    }
    ack->work = work;
    ack->timers = timers;
}

static void put_child_cancels(ebb_orch *r, ebb_provider_ack_turn_call *ack, ebb_provider_outgoing *outgoing) {
    ebb__step *const *children = r->ended_children.at;
    char text[EBB_DURABLE_ID + 64];
    if (r->ended_children.n == 0) return;
    (void)snprintf(text, sizeof text, "%s has cancelled it", r->opts.id);
    const ebb__event e = {.kind = EBB__EVENT_CANCEL_REQUESTED, .text = ebb__text_of(text)};
    const ebb_blob body = ebb__event_encode(&r->scratch, &e);
    if (body.at == NULL) r->outcome = EBB_ERR_NOMEM;
    for (size_t i = 0; i < r->ended_children.n; i++)
        outgoing[ack->outgoing_n++] = (ebb_provider_outgoing){
            .id = children[i]->child, .kind = EBB_PROVIDER_MESSAGE_CANCEL, .body = body};
}

static void put_parent(ebb_orch *r, ebb_provider_ack_turn_call *ack, ebb_provider_outgoing *outgoing) {
    ebb__event e = r->end;
    if (r->ends == 0 || *r->parent == 0 || r->started.step == 0) return;
    e.kind = r->ends == EBB_INSTANCE_COMPLETED ? EBB__EVENT_CHILD_COMPLETED : EBB__EVENT_CHILD_FAILED;
    if (r->ends == EBB_INSTANCE_CANCELLED || r->ends == EBB_INSTANCE_TERMINATED) e.status = EBB_CANCELLED;
    e.step = r->started.step;
    e.id = ebb__text_of(r->opts.id);
    const ebb_blob body = ebb__event_encode(&r->scratch, &e);
    if (body.at == NULL) r->outcome = EBB_ERR_NOMEM;
    outgoing[ack->outgoing_n++] = (ebb_provider_outgoing){
        .id = r->parent, .kind = EBB_PROVIDER_MESSAGE_CHILD, .step = r->started.step, .body = body};
}

static void put_values(ebb_orch *r, ebb_provider_ack_turn_call *ack) {
    const ebb__value *all = r->values.at;
    ebb_provider_value *values = room(r, r->values.n, sizeof *values);
    if (values == NULL) return;
    for (size_t i = 0; i < r->values.n; i++) {
        if (all[i].set) values[ack->values_n++] = (ebb_provider_value){all[i].key, all[i].value};
    }
    ack->values = values;
}

static ebb_blob values_over(ebb_orch *r) {
    ebb__event_writer w = {.arena = &r->scratch};
    const ebb__value *all = r->values.at;
    for (size_t i = 0; i < r->values.n; i++) {
        if (all[i].value.at == NULL) continue;
        const ebb__event e = {
            .kind = EBB__EVENT_VALUE_SET, .key = ebb__text_of(all[i].key), .body = all[i].value};
        (void)ebb__event_write(&w, &e);
    }
    if (w.status != EBB_OK) r->outcome = w.status;
    return (ebb_blob){w.at, w.n};
}

static ebb_blob signals_over(ebb_orch *r) {
    ebb__event_writer w = {.arena = &r->scratch};
    for (const ebb__signal *g = r->signals; g != NULL; g = g->next) (void)ebb__event_write(&w, &g->event);
    if (w.status != EBB_OK) r->outcome = w.status;
    return (ebb_blob){w.at, w.n};
}

static void put_next(ebb_orch *r, ebb_provider_ack_turn_call *ack) {
    char text[EBB_TRACEPARENT_TEXT + 1];
    ebb_traceparent t;
    ebb__event e = r->started;
    ebb_blob *next = room(r, 1, sizeof *next);
    if (next == NULL) return;
    e.trace =
        ebb__run_give_trace(r, EBB__TRACE_INSTANCE, 0, &t, text); /* its events have the same numbers again */
    e.version = r->next_version;
    e.body = r->next_input;
    e.seed = ebb__run_seed(r, 0);
    e.values = values_over(r);
    e.carried = signals_over(r);
    *next = ebb__event_encode(&r->scratch, &e);
    if (next->at == NULL) r->outcome = EBB_ERR_NOMEM;
    ack->next = next;
    ack->next_version = r->next_version;
    ack->next_input = r->next_input;
}

static void put_end(ebb_orch *r, ebb_provider_ack_turn_call *ack) {
    ack->all_work = r->all_work;
    ack->all_timers = true;
    ack->cause = r->cause;
    if (r->continues) {
        put_next(r, ack);
        return;
    }
    ack->ends = r->ends;
    ack->result = ebb__event_encode(&r->scratch, &r->end);
    if (ack->result.at == NULL) r->outcome = EBB_ERR_NOMEM;
    if (r->ends != EBB_INSTANCE_FAILED && r->end.text.n != 0)
        ack->text = ebb__run_text(r, r->end.text.at, r->end.text.n);
}

ebb_status ebb__orch_run_commit(ebb__orch_run *r, ebb_provider_ack_turn_call *ack) {
    assert(!r->fed && !r->replaying && r->outcome == EBB_OK);
    ack->key = r->opts.key;
    ack->execution = r->opts.execution;
    ack->turn = r->turn;
    ack->at = r->now;
    ack->name = r->started.name.n != 0 ? ebb__run_text(r, r->started.name.at, r->started.name.n) : "";
    ack->version = r->version;
    ack->semantics = EBB__SEMANTICS;
    ack->text = "";
    ack->body = ebb__event_turn(&r->writer, EBB__SEMANTICS);
    ack->cancelled = r->dropped.at;
    ack->cancelled_n = r->dropped.n;
    ack->timers_cancelled = r->untimed.at;
    ack->timers_cancelled_n = r->untimed.n;
    ebb_provider_outgoing *outgoing = room(r, r->wants.n + r->ended_children.n + 1, sizeof *outgoing);
    if (outgoing != NULL) {
        put_wants(r, ack, outgoing);
        put_child_cancels(r, ack, outgoing);
        put_parent(r, ack, outgoing);
    }
    ack->outgoing = outgoing;
    put_values(r, ack);
    ack->custom = r->custom;
    ack->unread = r->signals_n;
    if (r->ends != 0 || r->continues) put_end(r, ack);
    if (r->outcome == EBB_OK && ack->body.at == NULL) r->outcome = r->writer.status;
    if (r->outcome == EBB_ERR_LIMIT && r->writer.n > EBB_DURABLE_TURN)
        (void)ebb__durable_say(EBB_ERR_LIMIT, "turn %llu: %zu bytes of events (%d)",
                               (unsigned long long)r->turn, r->writer.n, EBB_DURABLE_TURN);
    return r->outcome;
}
