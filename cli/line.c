/* cli/line.c - events as lines of text. */
#include "cli/line.h"

#include "kernel/names.h"
#include "lang/literal.h"
#include "trace/event.h"
#include "workflow/phase.h"

#include <inttypes.h>
#include <string.h>

ebb_status ebb__line_next(ebb_trace_reader *r, ebb__line *out) {
    ebb_status st = ebb_trace_reader_next(r, &out->event);
    if (st != EBB_OK) return st;
    size_t n = 0;
    out->text[0] = 0;
    out->records = 1;
    if (out->event.type == EBB_EV_TEXT) {
        memcpy(out->text, out->event.text, sizeof out->event.text);
        return EBB_OK;
    }
    for (;;) {
        ebb_trace_reader ahead = *r;
        ebb_event ev;
        if (ebb_trace_reader_next(&ahead, &ev) != EBB_OK || ev.type != EBB_EV_TEXT) return EBB_OK;
        *r = ahead;
        out->records++;
        size_t more = strlen(ev.text);
        if (more > EBB__LINE_TEXT_MAX - n) more = EBB__LINE_TEXT_MAX - n;
        memcpy(out->text + n, ev.text, more);
        n += more;
        out->text[n] = 0;
    }
}

/* The length of a character that may stand as it is: printable ASCII, or UTF-8 that is no control. 0: it may not. */
static uint32_t plain(const char *s, size_t left) {
    unsigned char c = (unsigned char)*s;
    if (c < 0x80) return c >= ' ' && c != 0x7f;
    if (c == 0xc2 && (unsigned char)s[1] < 0xa0) return 0; /* a control of ISO 6429 */
    return ebb__utf8_length(s, left < 4 ? (uint32_t)left : 4);
}

void ebb__print_json_string(FILE *out, const char *s) {
    size_t left = strlen(s);
    fputc('"', out);
    for (uint32_t n; left > 0; s += n, left -= n) {
        n = plain(s, left);
        if (*s == '"' || *s == '\\') fputc('\\', out);
        if (n > 0) (void)fwrite(s, 1, n, out);
        else fprintf(out, "\\u%04x", (unsigned char)*s);
        n += n == 0;
    }
    fputc('"', out);
}

void ebb__make_plain(char *s) {
    char *to = s;
    size_t left = strlen(s);
    for (uint32_t n; left > 0; s += n, left -= n) {
        n = plain(s, left);
        if (n == 0) *to++ = '?';
        for (uint32_t i = 0; i < n; i++) *to++ = s[i];
        n += n == 0;
    }
    *to = 0;
}

void ebb__print_id(FILE *out, uint64_t id) {
    fprintf(out, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, id >> 56, id >> 32 & 0xffffff, id & 0xffffffff);
}

static void print_named_id(FILE *out, const char *name, uint64_t id) {
    if (id == 0) return;
    fprintf(out, "  %s ", name);
    ebb__print_id(out, id);
}

static void print_time(FILE *out, uint64_t ns) {
    if (ns == EBB_FOREVER) {
        fputs("never", out);
    } else {
        fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / EBB_SECOND, ns % EBB_SECOND);
    }
}

static void print_flags(FILE *out, const ebb_event *ev) {
    static const char *const of_region[] = {"cleanup", "collect", "unit"}, *const of_task[] = {"keep",
                                                                                               "closer"};
    bool region = ev->type == EBB_EV_REGION_OPENED;
    uint32_t named = region ? 3 : 2;
    for (uint32_t bit = 0; bit < named; bit++) {
        if (ev->value >> bit & 1) fprintf(out, "  %s", region ? of_region[bit] : of_task[bit]);
    }
    if (ev->value >> named != 0) fprintf(out, "  flags 0x%" PRIx32, ev->value >> named << named);
}

static void print_step(FILE *out, const ebb_event *ev) {
    uint32_t event = ev->value >> 16;
    fprintf(out, "  %" PRIu64 "  %s  %s -> %s", ev->other,
            event < EBB__WF_EVENTS ? ebb__wf_events[event].name : "?",
            ebb_workflow_state_name((ebb_workflow_state)(ev->value >> 8 & 0xff)),
            ebb_workflow_state_name((ebb_workflow_state)(ev->value & 0xff)));
}

static void print_value(FILE *out, const ebb_event *ev) {
    if (ev->type == EBB_EV_WORKFLOW) {
        print_step(out, ev);
        return;
    }
    switch (ebb__event_value_of(ev->type)) {
    case EBB__VALUE_NONE: break;
    case EBB__VALUE_STATUS: {
        ebb_status st = (ebb_status)(int32_t)ev->value;
        fprintf(out, "  status %s", ebb_status_name(st));
        if ((int32_t)ev->value < EBB_STATUS_USER) fprintf(out, "(%" PRId32 ")", (int32_t)ev->value);
        break;
    }
    case EBB__VALUE_LANE: fprintf(out, "  lane %s", ebb__lane_name(ev->value)); break;
    case EBB__VALUE_POLLS:
        if (ev->value != EBB_POLLS_UNBOUNDED) fprintf(out, "  polls %" PRIu32, ev->value);
        break;
    case EBB__VALUE_DEPTH: fprintf(out, "  depth %" PRIu32, ev->value); break;
    case EBB__VALUE_OBLIGATION: fprintf(out, "  %s", ebb__obligation_kind_name(ev->value)); break;
    case EBB__VALUE_FLAGS: print_flags(out, ev); break;
    case EBB__VALUE_NUMBER: fprintf(out, "  value %" PRIu32, ev->value); break;
    case EBB__VALUE_KIND: fprintf(out, "  %s", ebb_cancel_kind_name((ebb_cancel_kind)ev->value)); break;
    }
}

static void print_durable(FILE *out, const ebb_event *ev) {
    if (ev->type == EBB_EV_DURABLE_LEASE_RENEWED) {
        fprintf(out, "  gone %" PRIu64, ev->other);
        return;
    }
    bool activity =
        ev->type >= EBB_EV_DURABLE_ACTIVITY_CLAIMED && ev->type <= EBB_EV_DURABLE_ACTIVITY_LATE_ACK;
    uint64_t upper = ev->other >> 32, instance = ev->other & UINT32_MAX;
    if (instance != 0) fprintf(out, "  instance %" PRIu64, instance);
    if (upper != 0) fprintf(out, "  %s %" PRIu64, activity ? "activity" : "turn", upper);
}

static void print_other(FILE *out, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_GAP: fprintf(out, "  %" PRIu64 " events lost", ev->other); break;
    case EBB_EV_PRESENT:
    case EBB_EV_REGION_OPENED: print_named_id(out, "parent", ev->other); break;
    case EBB_EV_REGION_CANCELLED:
    case EBB_EV_CANCEL_REQUESTED:
    case EBB_EV_CANCEL_STRENGTHENED:
    case EBB_EV_CANCEL_ACKED:
        fputs("  deadline ", out);
        print_time(out, ev->other);
        break;
    case EBB_EV_REGION_CLOSED:
        if (ev->other != 0) {
            fprintf(out, "  abandoned %" PRIu64 "  leaked %" PRIu64, ev->other >> 32, ev->other & 0xffffffff);
        }
        break;
    case EBB_EV_TASK_POLLED: fprintf(out, "  waited %" PRIu64, ev->other); break;
    case EBB_EV_TASK_SPAWNED:
    case EBB_EV_TASK_WOKEN:
    case EBB_EV_TASK_JOINED: print_named_id(out, "by", ev->other); break;
    case EBB_EV_TIMER_ARMED:
    case EBB_EV_TIMER_FIRED: print_named_id(out, "timer", ev->other); break;
    case EBB_EV_RECEIVED: fprintf(out, "  word 0x%" PRIx64, ev->other); break;
    default:
        if (ev->type >= EBB_EV_OBLIGATION_RESERVED && ev->type <= EBB_EV_OBLIGATION_LEAKED) {
            print_named_id(out, "obligation", ev->other);
        }
        if (ev->type >= EBB_EV_FINALIZER_ADDED && ev->type <= EBB_EV_FINALIZER_ABANDONED) {
            print_named_id(out, "finalizer", ev->other);
        }
        if (ebb__event_is_durable(ev->type)) print_durable(out, ev);
    }
}

void ebb__line_print(FILE *out, const ebb__line *line) {
    const ebb_event *ev = &line->event;
    const char *name = ebb_event_name(ev->type);
    fprintf(out, "%8" PRIu64 "  ", ev->decision_seq);
    print_time(out, ev->time);
    fprintf(out, "  %" PRIu64 "/%" PRIu64 "  %s", ev->host_turn_id, ev->microtask_batch_id,
            name == NULL ? "unknown" : name);
    if (name == NULL) fprintf(out, "(%" PRIu32 ")", ev->type);
    if (ev->type >= EBB_EV_PRESENT) {
        print_named_id(out, "task", ev->task_id);
        print_named_id(out, "region", ev->region_id);
        if (ev->phase != 0) {
            fprintf(out, "  %s",
                    ebb__event_is_region(ev->type) || (ev->type == EBB_EV_PRESENT && ev->value == 1)
                        ? ebb__region_state_name(ev->phase)
                        : ebb__phase_name(ev->phase));
        }
        if (ev->cancel_kind != 0) {
            fprintf(out, "  %s %s epoch %u", ebb_cancel_kind_name((ebb_cancel_kind)ev->cancel_kind),
                    ebb__severity_name(ev->severity), ev->cancel_epoch);
        }
    }
    print_value(out, ev);
    print_other(out, ev);
    if (line->text[0] != 0) {
        fputs("  ", out);
        ebb__print_json_string(out, line->text);
    }
}
