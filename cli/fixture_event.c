/* cli/fixture_event.c - events as text, with the names of the script in place of ids. */
#include "cli/fixture.h"

#include "kernel/names.h"
#include "lab/script.h"
#include "trace/event.h"

#include <inttypes.h>
#include <stdarg.h>

typedef struct text {
    char *out;
    size_t room, n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->out + t->n, t->room - t->n, format, args);
    va_end(args);
    if (n > 0) t->n += (size_t)n < t->room - t->n ? (size_t)n : t->room - t->n - 1;
}

/* ---- names ------------------------------------------------------------------------------------ */

static void add_id(text *t, const ebb__script *s, ebb__thing_kind kind, uint64_t id) {
    const char *name = ebb__script_name(s, kind, id);
    if (name != NULL) add(t, "%s", name);
    else add(t, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, id >> 56, id >> 32 & 0xffffff, id & 0xffffffff);
}

/* Only the tasks that run a region's finalizers have no name. */
static void add_task(text *t, const ebb__script *s, const ebb_event *ev) {
    bool closer = ebb__script_name(s, EBB__TASK, ev->task_id) == NULL && ev->region_id != 0;
    add_id(t, s, closer ? EBB__REGION : EBB__TASK, closer ? ev->region_id : ev->task_id);
    if (closer) add(t, ".closer");
}

void ebb__fixture_task_name(const ebb__script *s, const ebb_event *ev, char *out, size_t room) {
    text t = {out, room, 0};
    add_task(&t, s, ev);
}

static bool is_obligation(uint32_t type) {
    return type >= EBB_EV_OBLIGATION_RESERVED && type <= EBB_EV_OBLIGATION_LEAKED;
}

/* The subject of the event, in parentheses. */
static void add_subject(text *t, const ebb__script *s, const ebb_event *ev) {
    if (ev->type < EBB_EV_REGION_OPENED) return;
    add(t, "(");
    if (is_obligation(ev->type)) add_id(t, s, EBB__OBLIGATION, ev->other);
    else if (ebb__event_is_region(ev->type) || ev->type == EBB_EV_REFUSED || ev->task_id == 0) {
        add_id(t, s, EBB__REGION, ev->region_id);
    } else add_task(t, s, ev);
    add(t, ")");
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void add_value(text *t, const ebb_event *ev) {
    switch (ebb__event_value_of(ev->type)) {
    case EBB__VALUE_STATUS: add(t, " %s", ebb_status_name((ebb_status)(int32_t)ev->value)); break;
    case EBB__VALUE_LANE: add(t, " lane %s", ebb__lane_name(ev->value)); break;
    case EBB__VALUE_DEPTH: add(t, " depth %" PRIu32, ev->value); break;
    case EBB__VALUE_OBLIGATION: add(t, " %s", ebb__obligation_kind_name(ev->value)); break;
    case EBB__VALUE_NUMBER: add(t, " %" PRIu32, ev->value); break;
    default: break;
    }
}

static void add_request(text *t, const ebb_event *ev) {
    if (ev->cancel_kind == 0) return;
    add(t, " %s %s epoch %u", ebb_cancel_kind_name((ebb_cancel_kind)ev->cancel_kind),
        ebb__severity_name(ev->severity), ev->cancel_epoch);
}

static void add_time(text *t, uint64_t ns) {
    if (ns == EBB_FOREVER) add(t, "never");
    else if (ns % EBB_MS == 0) add(t, "%" PRIu64 "ms", ns / EBB_MS);
    else add(t, "%" PRIu64 "ns", ns);
}

static void add_budget(text *t, const ebb_event *ev) {
    if (ev->value == EBB_POLLS_UNBOUNDED) add(t, " polls unbounded");
    else add(t, " polls %" PRIu32, ev->value);
    if (ev->type == EBB_EV_TASK_FORCED) return;
    add(t, " deadline ");
    add_time(t, ev->other);
}

void ebb__fixture_event(const ebb__script *s, const ebb_event *ev, char *out, size_t room) {
    text t = {out, room, 0};
    add(&t, "%s", ebb_event_name(ev->type));
    add_subject(&t, s, ev);
    add_value(&t, ev);
    if (ebb_event_is_cancel(ev->type)) add_request(&t, ev);
    if (ebb__event_value_of(ev->type) == EBB__VALUE_POLLS) add_budget(&t, ev);
    if (ev->type == EBB_EV_REFUSED && ev->task_id != 0) {
        add(&t, " by ");
        add_id(&t, s, EBB__TASK, ev->task_id);
    }
    if (ev->type == EBB_EV_REGION_CLOSED && ev->other != 0) {
        add(&t, " abandoned %" PRIu64 " leaked %" PRIu64, ev->other >> 32, ev->other & 0xffffffff);
    }
}
