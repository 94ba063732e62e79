/* What a turn is given: which inputs concern a run, and what they change. Actions that follow from them come later, as
 * consequences: a history has all inputs of a turn first. */
#include "durable/run.h"

#include <string.h>

static void then(ebb_orch *r, ebb__consequence_kind kind, ebb__step *s, uint64_t number) {
    ebb__consequence *c = ebb__run_add(r, &r->scratch, &r->consequences, sizeof *c);
    if (c != NULL) *c = (ebb__consequence){kind, s, number};
}

/* ---- signals ------------------------------------------------------------------------------------------------------ */

ebb__signal *ebb__run_signal(const ebb_orch *r, ebb__event_text name) {
    ebb__signal *g = r->signals;
    while (g != NULL && (g->taken != NULL || !ebb__same_text(g->event.name, name))) g = g->next;
    return g;
}

void ebb__run_use_signal(ebb_orch *r, ebb__signal *g) {
    ebb__signal **at = &r->signals, *before = NULL;
    while (*at != g) {
        before = *at;
        at = &before->next;
    }
    *at = g->next;
    if (r->signals_last == g) r->signals_last = before;
    r->signals_n--;
}

static ebb__step *oldest_wait(const ebb_orch *r, ebb__event_text name) {
    if (r->waits == 0) return NULL;
    for (ebb__step *s = r->outstanding; s != NULL; s = s->next) {
        if (s->kind == EBB__STEP_EVENT && ebb__same_text(s->name, name)) return s;
    }
    return NULL;
}

void ebb__run_serve(ebb_orch *r, ebb__event_text name) {
    ebb__step *s = oldest_wait(r, name);
    ebb__signal *g = s != NULL ? ebb__run_signal(r, name) : NULL;
    if (g == NULL) return;
    g->taken = s;
    ebb__step_end(r, s, g->number, EBB_OK, &g->event);
}

static void take_signal(ebb_orch *r, const ebb__event *e) {
    ebb__signal *g = ebb__run_new(r, sizeof *g);
    if (g == NULL) return;
    *g = (ebb__signal){.number = e->number, .event = *e};
    if (r->signals_last != NULL) r->signals_last->next = g;
    else r->signals = g;
    r->signals_last = g;
    r->signals_n++;
    ebb__run_serve(r, e->name);
}

/* ---- cancel ---------------------------------------------------------------------------------------------------------- */

static void take_cancel(ebb_orch *r, const ebb__event *e) {
    r->cancelled = true;
    r->cancel_untold = !r->begun;
    r->cancel_reason = ebb__run_text(r, e->text.at, e->text.n);
    r->cleanup_by = r->now + EBB__CLEANUP_SPAN;
    then(r, EBB__THEN_CANCEL, NULL, 0);
    for (ebb__step *s = r->outstanding, *next; s != NULL; s = next) {
        next = s->next;
        if (s->shielded) continue;
        ebb__step_end(r, s, e->number, EBB_CANCELLED, NULL);
        s->cancelled = true;
        then(r, EBB__THEN_LOSE, s, 0);
    }
}

/* ---- start ------------------------------------------------------------------------------------------------------------ */

static void take_values(ebb_orch *r, ebb_blob list) {
    ebb__event_reader reader;
    ebb__event e;
    ebb__event_reader_list(&reader, list);
    while (ebb__event_read(&reader, &e) == EBB_OK) {
        ebb__value *v = ebb__run_add(r, &r->memory, &r->values, sizeof *v);
        if (v == NULL) return;
        *v = (ebb__value){ebb__run_text(r, e.key.at, e.key.n), e.body, false};
        r->values_bytes += e.key.n + e.body.n;
    }
}

static void take_carried(ebb_orch *r, ebb_blob list, uint64_t number) {
    ebb__event_reader reader;
    ebb__event e;
    ebb__event_reader_list(&reader, list);
    while (ebb__event_read(&reader, &e) == EBB_OK) {
        e.number = number;
        if (ebb__run_concerns(r, &e)) ebb__run_take(r, &e);
    }
}

static void take_seed(ebb_orch *r, const ebb__event *e) {
    r->seed = e->seed;
    ebb__seed_words(&e->seed, r->random);
}

static void take_start(ebb_orch *r, const ebb__event *e) {
    r->started = *e;
    r->parent = ebb__run_text(r, e->id.at, e->id.n);
    if (r->version == 0) r->version = (uint32_t)e->version;
    take_seed(r, e);
    take_values(r, e->values);
    take_carried(r, e->carried, e->number);
}

/* ---- calls, timers, children -------------------------------------------------------------------------------------------- */

static void attempt_over(ebb_orch *r, ebb__step *s) {
    s->running = 0;
    if (s->deadline != 0) then(r, EBB__THEN_UNTIME, s, s->deadline);
    s->deadline = 0;
}

static void take_failed(ebb_orch *r, const ebb__event *e) {
    ebb__step *s = ebb__run_step(r, e->step);
    attempt_over(r, s);
    if (ebb__call_may_retry(s, (e->flags & EBB__FLAG_FINAL) != 0)) then(r, EBB__THEN_RETRY, s, e->step);
    else ebb__step_end(r, s, e->number, e->status, e);
}

static void take_completed(ebb_orch *r, const ebb__event *e) {
    ebb__step *s = ebb__run_step(r, e->step);
    attempt_over(r, s);
    ebb__step_end(r, s, e->number, EBB_OK, e);
}

static void attempt_timed_out(ebb_orch *r, ebb__step *s, uint64_t at) {
    then(r, EBB__THEN_DROP, s, s->running);
    s->running = s->deadline = 0;
    if (s->policy.retry_timeouts && ebb__call_may_retry(s, false)) then(r, EBB__THEN_RETRY, s, 0);
    else ebb__step_end(r, s, at, EBB_TIMEOUT, NULL);
}

static void take_timer(ebb_orch *r, const ebb__event *e) {
    ebb__step *s = ebb__run_step(r, e->step);
    if (s == NULL) {
        then(r, EBB__THEN_TERMINATE, NULL, e->step);
    } else if (s->kind == EBB__STEP_TIMER) {
        ebb__step_end(r, s, e->number, EBB_OK, NULL);
    } else if (s->pause == e->step) {
        s->pause = 0;
        then(r, EBB__THEN_NEXT, s, 0);
    } else {
        attempt_timed_out(r, s, e->number);
    }
}

/* After a reset the parent's numbers are others: a child is known by its id. */
static ebb__step *child_of(const ebb_orch *r, const ebb__event *e) {
    for (ebb__step *s = r->outstanding; s != NULL; s = s->next) {
        if (s->kind == EBB__STEP_CHILD && ebb__same_text(ebb__text_of(s->child), e->id)) return s;
    }
    return NULL;
}

static bool timer_concerns(const ebb_orch *r, uint64_t number) {
    const ebb__step *s = ebb__run_step(r, number);
    if (s == NULL) return number != 0 && number == r->cleanup_timer;
    if (s->state != EBB__STEP_OUTSTANDING) return false;
    return s->kind == EBB__STEP_TIMER || s->pause == number || s->deadline == number;
}

/* The store has the status of a turn that is undone, or none. */
static void take_reset(ebb_orch *r, const ebb__event *e) {
    static const ebb_blob none = {"", 0};
    take_seed(r, e);
    r->custom = r->status != NULL ? r->status : &none;
}

static bool attempt_concerns(const ebb_orch *r, uint64_t number) {
    const ebb__step *s = ebb__run_step(r, number);
    return s != NULL && s->state == EBB__STEP_OUTSTANDING && s->running == number;
}

bool ebb__run_concerns(ebb_orch *r, const ebb__event *e) {
    switch (e->kind) {
    case EBB__EVENT_STARTED: return r->started.kind == 0;
    case EBB__EVENT_ACTIVITY_COMPLETED:
    case EBB__EVENT_ACTIVITY_FAILED: return attempt_concerns(r, e->step);
    case EBB__EVENT_TIMER_FIRED: return timer_concerns(r, e->step);
    case EBB__EVENT_SIGNALLED:
    case EBB__EVENT_RESET: return true;
    case EBB__EVENT_CHILD_COMPLETED:
    case EBB__EVENT_CHILD_FAILED: return child_of(r, e) != NULL;
    case EBB__EVENT_CANCEL_REQUESTED: return !r->cancelled;
    default: return false;
    }
}

void ebb__run_take(ebb_orch *r, const ebb__event *e) {
    switch (e->kind) {
    case EBB__EVENT_STARTED: take_start(r, e); break;
    case EBB__EVENT_ACTIVITY_COMPLETED: take_completed(r, e); break;
    case EBB__EVENT_ACTIVITY_FAILED: take_failed(r, e); break;
    case EBB__EVENT_TIMER_FIRED: take_timer(r, e); break;
    case EBB__EVENT_SIGNALLED: take_signal(r, e); break;
    case EBB__EVENT_CHILD_COMPLETED: ebb__step_end(r, child_of(r, e), e->number, EBB_OK, e); break;
    case EBB__EVENT_CHILD_FAILED: ebb__step_end(r, child_of(r, e), e->number, e->status, e); break;
    case EBB__EVENT_CANCEL_REQUESTED: take_cancel(r, e); break;
    case EBB__EVENT_RESET: take_reset(r, e); break;
    default: break;
    }
}
