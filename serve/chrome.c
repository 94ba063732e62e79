/* serve/chrome.c - the Trace Event Format of Chrome and Perfetto.
 *
 * A runtime is a process. A task is a thread, with its polls and the phases of its end as slices. Regions, operations,
 * connections, exchanges and processes are tracks of their own (async slices), with the states of a region as slices in
 * them. A wake-up, a cancel that goes down, and a message are flows, from the slice of the cause to that of the effect. */
#define _POSIX_C_SOURCE 200809L
#include "serve/chrome.h"

#include "kernel/names.h"
#include "trace/event.h"
#include "workflow/phase.h"

#include <inttypes.h>
#include <string.h>

/* A thread in the format has a number; a task that took the slot of another has another thread. */
uint64_t ebb__chrome_thread(uint64_t id) {
    return ((id >> 32 & 0xffffff) << 20 | (id & 0xfffff)) + 1;
}

void ebb__chrome_head(FILE *out, const ebb__story *s, const char *phase, const char *category,
                      uint64_t thread, uint64_t at) {
    fprintf(out,
            ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ".%03" PRIu64,
            phase, category, s->process, thread, at / 1000, at % 1000);
}

void ebb__chrome_name(FILE *out, const char *name) {
    fputs(",\"name\":", out);
    ebb__print_json_string(out, name);
}

void ebb__chrome_slice(FILE *out, const ebb__story *s, uint64_t thread, const char *category,
                       const char *name, uint64_t from, uint64_t to, const char *trace) {
    /* A nanosecond short: viewers add floats, and slices that touch would overlap. */
    uint64_t ns = to > from ? to - from - 1 : 0;
    ebb__chrome_head(out, s, "X", category, thread, from);
    fprintf(out, ",\"dur\":%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
    ebb__chrome_name(out, name);
    if (trace[0] != 0) fprintf(out, ",\"args\":{\"trace\":\"%.32s\"}", trace);
    fputc('}', out);
}

static void slice(FILE *out, const ebb__story *s, uint64_t thread, const char *category, const char *name,
                  uint64_t from, uint64_t to) {
    ebb__chrome_slice(out, s, thread, category, name, from, to, "");
}

void ebb__chrome_thread_name(FILE *out, const ebb__story *s, uint64_t thread, const char *name) {
    fprintf(out,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%" PRIu64 ",\"args\":{\"name\":",
            s->process, thread);
    ebb__print_json_string(out, name);
    fputs("}}", out);
}

/* An async slice begins or ends. */
static void span(FILE *out, const ebb__story *s, bool begin, const char *category, uint64_t id,
                 const char *name, uint64_t at, const ebb_event *ev) {
    ebb__chrome_head(out, s, begin ? "b" : "e", category, 0, at);
    fprintf(out, ",\"id\":\"%u:%" PRIx64 "\"", s->process, id);
    ebb__chrome_name(out, name);
    fprintf(out, ",\"args\":{\"decision_seq\":%" PRIu64 "}}", ev->decision_seq);
}

void ebb__chrome_arrow(FILE *out, const ebb__story *s, const char *phase, const char *category,
                       uint64_t thread, const char *id, uint64_t at) {
    ebb__chrome_head(out, s, phase, category, thread, at);
    fprintf(out, ",\"id\":\"%s\"", id);
    ebb__chrome_name(out, category);
    if (phase[0] == 'f') fputs(",\"bp\":\"e\"", out);
    fputc('}', out);
}

/* A flow joins slices. What the host does between polls has none of its own: it gets a short one. */
static void flow(FILE *out, const ebb__story *s, const char *phase, const char *category, uint64_t thread,
                 uint64_t id, uint64_t at) {
    enum { SHORT_NS = 500 };
    if (thread == 0) slice(out, s, 0, "host", category, at, at + SHORT_NS);
    char text[32];
    snprintf(text, sizeof text, "%u:%" PRIx64, s->process, id);
    ebb__chrome_arrow(out, s, phase, category, thread, text, at);
}

static void instant(FILE *out, const ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    const char *name = ebb_event_name(ev->type);
    ebb__chrome_head(out, s, "i", "event", ev->task_id == 0 ? 0 : ebb__chrome_thread(ev->task_id), at);
    ebb__chrome_name(out, name == NULL ? "unknown" : name);
    fprintf(out, ",\"s\":\"t\",\"args\":{\"decision_seq\":%" PRIu64 ",\"task\":\"", ev->decision_seq);
    ebb__print_id(out, ev->task_id);
    fputs("\",\"region\":\"", out);
    ebb__print_id(out, ev->region_id);
    fputs("\",\"text\":", out);
    ebb__print_json_string(out, line->text);
    fputs("}}", out);
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

/* The thread that is running: the effects of a poll come from its slice, those of the host from thread 0. */
uint64_t ebb__chrome_running(const ebb__story *s) {
    return s->polling == 0 ? 0 : ebb__chrome_thread(s->polling);
}

static void polled(FILE *out, ebb__story *s, const ebb_event *ev, uint64_t at) {
    ebb__thing *t = ebb__story_task(s, ev->task_id);
    if (t == NULL) return;
    char what[200];
    ebb__story_wait(s, t->waits_for, t->awaits, what, sizeof what);
    if (t->parked_at != 0 && at > t->parked_at)
        slice(out, s, ebb__chrome_thread(t->id), "wait", what, t->parked_at, at);
    ebb__picture_polled(out, s, t->id, at);
    if (t->woken_by != 0) flow(out, s, "f", "wake", ebb__chrome_thread(t->id), t->woken_by, at);
    t->woken_by = 0;
}

static void woken(FILE *out, ebb__story *s, const ebb_event *ev, uint64_t at) {
    ebb__thing *t = ebb__story_task(s, ev->task_id);
    if (t == NULL || t->woken_by != 0) return;
    t->woken_by = ev->decision_seq;
    flow(out, s, "s", "wake", ebb__chrome_running(s), ev->decision_seq, at);
}

/* The phase that ends now: those of a cancel only; the others are what a task does all its life. */
static void phase_ends(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    const ebb__thing *t = ebb__story_task(s, ev->task_id);
    if (ev->type < EBB_EV_TASK_SPAWNED || ev->type > EBB_EV_TASK_JOINED || t == NULL) return;
    if (ev->phase == 0 || ev->phase == t->phase || t->phase < EBB_TASK_CANCEL_REQUESTED) return;
    span(out, s, true, "phase", t->id << 8 | t->phase, ebb__phase_name(t->phase), t->phase_since, ev);
    span(out, s, false, "phase", t->id << 8 | t->phase, ebb__phase_name(t->phase), at, ev);
}

static void task_begins(FILE *out, const ebb__story *s, const ebb_event *ev) {
    const ebb__thing *t = ebb__story_task(s, ev->task_id);
    char title[256];
    if (t == NULL) return;
    ebb__story_title(s, t, title, sizeof title);
    ebb__chrome_thread_name(out, s, ebb__chrome_thread(t->id), title);
}

/* The cancel of a region reaches its tasks. */
static void cancelled(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    if (ev->type == EBB_EV_REGION_CANCELLED)
        flow(out, s, "s", "cancel", ebb__chrome_running(s), ev->region_id, at);
    else flow(out, s, "f", "cancel", ebb__chrome_thread(ev->task_id), ev->region_id, at);
}

/* ---- regions and spans ------------------------------------------------------------------------------------ */

static bool begins_region(const ebb_event *ev) {
    return ev->type == EBB_EV_REGION_OPENED || (ev->type == EBB_EV_PRESENT && ev->value == 1);
}

static void region_event(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    const ebb__thing *r = ebb__story_region(s, ev->region_id);
    char title[256];
    if (r == NULL) return;
    ebb__story_title(s, r, title, sizeof title);
    if (begins_region(ev)) span(out, s, true, "region", r->id, title, at, ev);
    if (ev->phase != 0 && ev->phase != r->phase && r->phase > EBB_REGION_OPEN) {
        span(out, s, true, "region", r->id, ebb__region_state_name(r->phase), r->phase_since, ev);
        span(out, s, false, "region", r->id, ebb__region_state_name(r->phase), at, ev);
    }
    if (ev->type == EBB_EV_REGION_CLOSED) span(out, s, false, "region", r->id, title, at, ev);
}

static void operation_event(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    const ebb__made *f = ebb__story_future(s, ev->other);
    char title[256];
    if (f == NULL) return;
    ebb__story_wait(s, 0, ev->other, title, sizeof title);
    span(out, s, ev->type == EBB_EV_OPERATION_BEGUN, "operation", ev->other, title, at, ev);
}

static void layer_event(FILE *out, const ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    char title[256];
    switch (ev->type) {
    case EBB_EV_CONNECTION_OPENED:
    case EBB_EV_CONNECTION_CLOSED:
        snprintf(title, sizeof title, "connection %" PRIu64 " %.200s", ev->other, line->text);
        span(out, s, ev->type == EBB_EV_CONNECTION_OPENED, "connection", ev->other & UINT32_MAX, title, at,
             ev);
        break;
    case EBB_EV_EXCHANGE_BEGUN: /* inside the track of its connection */
        span(out, s, true, "exchange", ev->other, line->text, at, ev);
        break;
    case EBB_EV_EXCHANGE_ENDED:
        snprintf(title, sizeof title, "%u%s", ev->value & 0xffff, ev->value >> 16 != 0 ? " lost" : "");
        span(out, s, false, "exchange", ev->other, title, at, ev);
        break;
    default:
        span(out, s, ev->type == EBB_EV_PROCESS_STARTED, "process", ev->other, line->text, at, ev);
        break;
    }
}

/* Instances, turns and activities are spans; the rest are instants. */
static void durable_event(FILE *out, const ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    switch (ev->type) {
    case EBB_EV_DURABLE_INSTANCE_STARTED:
    case EBB_EV_DURABLE_INSTANCE_ENDED:
        span(out, s, ev->type == EBB_EV_DURABLE_INSTANCE_STARTED, "instance", ev->other, line->text, at, ev);
        break;
    case EBB_EV_DURABLE_TURN_BEGUN:
    case EBB_EV_DURABLE_TURN_COMMITTED:
    case EBB_EV_DURABLE_TURN_FENCED:
        span(out, s, ev->type == EBB_EV_DURABLE_TURN_BEGUN, "turn", ev->other, line->text, at, ev);
        break;
    case EBB_EV_DURABLE_ACTIVITY_STARTED:
    case EBB_EV_DURABLE_ACTIVITY_ENDED:
        span(out, s, ev->type == EBB_EV_DURABLE_ACTIVITY_STARTED, "activity", ev->other, line->text, at, ev);
        break;
    default: instant(out, s, line, at); break;
    }
}

static void workflow_event(FILE *out, const ebb__story *s, const ebb_event *ev, uint64_t at) {
    ebb__chrome_head(out, s, "i", "workflow", 0, at);
    ebb__chrome_name(out, ebb_workflow_state_name((ebb_workflow_state)(ev->value & 0xff)));
    fprintf(out, ",\"s\":\"p\",\"args\":{\"decision_seq\":%" PRIu64 "}}", ev->decision_seq);
}

/* A message comes with a stamp: its sender, and the event of the sender's trace that follows. */
static void message(FILE *out, const ebb__story *s, const char *phase, uint64_t stamp, uint64_t at) {
    enum { SHORT_NS = 500 };
    slice(out, s, 0, "message", phase[0] == 's' ? "message sent" : "message received", at, at + SHORT_NS);
    ebb__chrome_head(out, s, phase, "message", 0, at);
    fprintf(out, ",\"id\":\"message:%" PRIx64 "\",\"name\":\"message\"%s}", stamp,
            phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

/* What an event shows, after the story has taken it. */
static void shown(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at) {
    const ebb_event *ev = &line->event;
    switch (ev->type) {
    case EBB_EV_TASK_SPAWNED: task_begins(out, s, ev); break;
    case EBB_EV_PRESENT:
    case EBB_EV_NAMED:
        if (ev->task_id != 0) task_begins(out, s, ev);
        break;
    case EBB_EV_TASK_WOKEN: woken(out, s, ev, at); break;
    case EBB_EV_REGION_CANCELLED:
    case EBB_EV_CANCEL_REQUESTED: cancelled(out, s, ev, at); break;
    case EBB_EV_OPERATION_BEGUN:
    case EBB_EV_OPERATION_ENDED: operation_event(out, s, ev, at); break;
    case EBB_EV_WORKFLOW: workflow_event(out, s, ev, at); break;
    case EBB_EV_RECEIVED:
        if (ev->other >> 56 != 0) message(out, s, "f", ev->other, at);
        else instant(out, s, line, at);
        break;
    default:
        if (ev->type >= EBB_EV_CONNECTION_OPENED && ev->type <= EBB_EV_PROCESS_EXITED)
            layer_event(out, s, line, at);
        else if (ebb__event_is_durable(ev->type)) durable_event(out, s, line, at);
        else if (ev->type == EBB_EV_DISCARDED) instant(out, s, line, at);
        else if (ev->type >= EBB_EV_CANCEL_STRENGTHENED && ev->type <= EBB_EV_ILLEGAL &&
                 ev->type != EBB_EV_COMPLETED && ev->type != EBB_EV_FINALIZED)
            instant(out, s, line, at);
    }
}

static void chrome_event(FILE *out, ebb__story *s, const ebb__line *line) {
    const ebb_event *ev = &line->event;
    uint64_t at = ebb__story_time(s, ev), from = s->poll_from;
    bool closes = ev->type > EBB_EV_REGION_OPENED && ev->type <= EBB_EV_REGION_STOPPING;
    phase_ends(out, s, ev, at);
    if (closes) region_event(out, s, ev, at);
    if (ev->type == EBB_EV_TASK_POLLED) polled(out, s, ev, at);
    if (ev->type == EBB_EV_POLL_ENDED)
        slice(out, s, ebb__chrome_thread(ev->task_id), "poll", "poll", from, at);
    ebb__story_take(s, line);
    if (begins_region(ev)) region_event(out, s, ev, at);
    shown(out, s, line, at);
    ebb__picture_take(out, s, line, at);
    uint64_t stamp = (uint64_t)s->runtime_id << 56 | (ev->decision_seq + 1);
    if (s->stamps != NULL && ebb__map_find(s->stamps, stamp) != NULL) message(out, s, "s", stamp, at);
}

void ebb__chrome(FILE *out, ebb__story *s, const ebb__line *line, bool first) {
    if (line != NULL) {
        chrome_event(out, s, line);
        return;
    }
    if (first) {
        fprintf(
            out,
            "%s%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"ebb runtime %u\"}}",
            s->first_file ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" : ",", "\n", s->process,
            s->runtime_id);
        ebb__chrome_thread_name(out, s, 0, "host");
        ebb__picture_begin(s);
        return;
    }
    ebb__picture_end(out, s);
    if (s->last_file) {
        fputs("\n]}\n", out);
    }
}
