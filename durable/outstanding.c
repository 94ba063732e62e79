/* What a history has outstanding, read from its events alone; and whether it could have come about. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "durable/run.h"

__attribute__((format(printf, 3, 4))) static ebb_status wrong(ebb__outstanding *o, ebb_status st,
                                                              const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(o->text, sizeof o->text, format, args);
    va_end(args);
    return st;
}

static ebb_blob copy(ebb__outstanding *o, ebb_blob b, bool *failed) {
    void *to = b.n != 0 ? ebb__arena_alloc(o->arena, b.n) : NULL;
    if (b.n != 0 && to == NULL) *failed = true;
    if (to == NULL) return (ebb_blob){NULL, 0};
    memcpy(to, b.at, b.n);
    return (ebb_blob){to, b.n};
}

static ebb__event_text copy_text(ebb__outstanding *o, ebb__event_text t, bool *failed) {
    const ebb_blob b = copy(o, (ebb_blob){t.at, t.n}, failed);
    return (ebb__event_text){b.at, b.n};
}

static ebb_status add(ebb__outstanding *o, const ebb__event *e) {
    bool failed = false;
    if (o->n == o->room) {
        const size_t room = o->room != 0 ? 2 * o->room : 16;
        ebb__event *at = ebb__arena_alloc(o->arena, room * sizeof *at);
        if (at == NULL) return EBB_ERR_NOMEM;
        if (o->n != 0) memcpy(at, o->steps, o->n * sizeof *at);
        o->steps = at;
        o->room = room;
    }
    ebb__event kept = *e;
    kept.name = copy_text(o, e->name, &failed);
    kept.id = copy_text(o, e->id, &failed);
    kept.tag = copy_text(o, e->tag, &failed);
    kept.session = copy_text(o, e->session, &failed);
    kept.body = copy(o, e->body, &failed);
    o->steps[o->n++] = kept;
    return failed ? EBB_ERR_NOMEM : EBB_OK;
}

static ebb_status take(ebb__outstanding *o, const ebb__event *by, size_t i) {
    if (i == o->n)
        return wrong(o, EBB_ERR_ORACLE, "event %llu, %s: step %llu is not outstanding",
                     (unsigned long long)by->number, ebb__event_name(by->kind), (unsigned long long)by->step);
    o->steps[i].kind = (ebb__event_kind)0; /* removed at the end of the turn */
    return EBB_OK;
}

static void remove_taken(ebb__outstanding *o) {
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++) {
        if (o->steps[i].kind != 0) o->steps[n++] = o->steps[i];
    }
    o->n = n;
}

/* kind 0: any. o->n: there is none. */
static size_t find(const ebb__outstanding *o, uint64_t number, int kind) {
    size_t low = 0, high = o->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (o->steps[middle].number < number) low = middle + 1;
        else high = middle;
    }
    if (low == o->n || o->steps[low].number != number || o->steps[low].kind == 0) return o->n;
    return kind == 0 || (int)o->steps[low].kind == kind ? low : o->n;
}

static size_t find_child(const ebb__outstanding *o, ebb__event_text id) {
    size_t i = 0;
    while (i < o->n && (o->steps[i].kind != EBB__EVENT_CHILD_STARTED || !ebb__same_text(o->steps[i].id, id)))
        i++;
    return i;
}

static ebb_status event(ebb__outstanding *o, const ebb__event *e) {
    switch (e->kind) {
    case EBB__EVENT_STARTED: return e->number == 1 ? EBB_OK : wrong(o, EBB_ERR_ORACLE, "a second start");
    case EBB__EVENT_ACTIVITY_COMPLETED:
    case EBB__EVENT_ACTIVITY_FAILED: return take(o, e, find(o, e->step, EBB__EVENT_ACTIVITY_SCHEDULED));
    case EBB__EVENT_TIMER_FIRED: return take(o, e, find(o, e->step, EBB__EVENT_TIMER_CREATED));
    case EBB__EVENT_CHILD_COMPLETED:
    case EBB__EVENT_CHILD_FAILED: return take(o, e, find_child(o, e->id));
    case EBB__EVENT_STEP_CANCELLED: return take(o, e, find(o, e->step, 0));
    case EBB__EVENT_CHILD_STARTED: return e->flags & EBB__FLAG_DETACHED ? EBB_OK : add(o, e);
    case EBB__EVENT_ACTIVITY_SCHEDULED:
    case EBB__EVENT_TIMER_CREATED:
    case EBB__EVENT_EVENT_AWAITED: return add(o, e);
    default: return EBB_OK;
    }
}

ebb_status ebb__outstanding_add(ebb__outstanding *o, const ebb_provider_turn_row *row) {
    ebb__event_reader r;
    ebb__event e;
    bool acted = false;
    if (row->turn != o->turn + 1)
        return wrong(o, EBB_ERR_ORACLE, "turn %llu follows turn %llu", (unsigned long long)row->turn,
                     (unsigned long long)o->turn);
    ebb_status st = ebb__event_reader_open(&r, row->body);
    if (st != EBB_OK) return wrong(o, st, "turn %llu: %s", (unsigned long long)row->turn, r.text);
    if (r.next != o->event + 1)
        return wrong(o, EBB_ERR_ORACLE, "turn %llu begins with event %llu, after event %llu",
                     (unsigned long long)row->turn, (unsigned long long)r.next, (unsigned long long)o->event);
    while ((st = ebb__event_read(&r, &e)) == EBB_OK) {
        const ebb__event_class of = ebb__event_class_of(e.kind);
        if (o->ended)
            return wrong(o, EBB_ERR_ORACLE, "event %llu is after the end", (unsigned long long)e.number);
        if (o->event == 0 && e.kind != EBB__EVENT_STARTED && e.kind != EBB__EVENT_TERMINATED)
            return wrong(o, EBB_ERR_ORACLE, "the first event is no start");
        if (of == EBB__CLASS_INPUT && acted)
            return wrong(o, EBB_ERR_ORACLE, "event %llu, an input, is after an action",
                         (unsigned long long)e.number);
        acted |= of != EBB__CLASS_INPUT;
        o->ended = of == EBB__CLASS_END;
        st = event(o, &e);
        if (st != EBB_OK) return st;
        o->event = e.number;
    }
    if (st != EBB_ERR_EOF) return wrong(o, st, "turn %llu: %s", (unsigned long long)row->turn, r.text);
    remove_taken(o);
    o->turn = row->turn;
    o->at = row->at;
    return EBB_OK;
}

ebb_status ebb__outstanding_check_end(ebb__outstanding *o) {
    for (size_t i = 0; o->ended && i < o->n; i++) {
        if (o->steps[i].kind == EBB__EVENT_EVENT_AWAITED) continue;
        return wrong(o, EBB_ERR_ORACLE,
                     "the execution has ended, and %s #%llu is neither ended nor cancelled",
                     ebb__event_name(o->steps[i].kind), (unsigned long long)o->steps[i].number);
    }
    return EBB_OK;
}
