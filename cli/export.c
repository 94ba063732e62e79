/* cli/export.c - JSON lines, one object for each event; and the Trace Event Format of Chrome and Perfetto, where
 * tasks and regions are async slices and all other events are instants. */
#include "cli/export.h"

#include "kernel/names.h"
#include "trace/event.h"

#include <inttypes.h>
#include <string.h>

/* ---- JSON lines ------------------------------------------------------------------------------- */

/* Ids and times are strings: a JSON number is often read as a double, which can't hold them. */
static void jsonl(FILE *out, uint8_t runtime_id, const ebb__line *line, bool first) {
    (void)first;
    if (line == NULL) return;
    const ebb_event *ev = &line->event;
    const char *name = ebb_event_name(ev->type);
    fprintf(out,
            "{\"type\":\"%s\",\"runtime\":%u,\"decision_seq\":%" PRIu64 ",\"host_turn_id\":%" PRIu64
            ",\"microtask_batch_id\":%" PRIu64 ",\"time_ns\":\"%" PRIu64 "\"",
            name == NULL ? "unknown" : name, runtime_id, ev->decision_seq, ev->host_turn_id,
            ev->microtask_batch_id, ev->time);
    fprintf(out, ",\"task_id\":\"0x%016" PRIx64 "\",\"region_id\":\"0x%016" PRIx64 "\"", ev->task_id,
            ev->region_id);
    const char *phase =
        ebb__event_is_region(ev->type) ? ebb__region_state_name(ev->phase) : ebb__phase_name(ev->phase);
    if (ev->phase == 0 || ev->type < EBB_EV_REGION_OPENED) {
        fputs(",\"cancel_phase\":null", out);
    } else {
        fprintf(out, ",\"cancel_phase\":\"%s\"", phase);
    }
    if (ev->cancel_kind == 0) {
        fputs(",\"cancel_kind\":null", out);
    } else {
        fprintf(out, ",\"cancel_kind\":\"%s\"", ebb_cancel_kind_name((ebb_cancel_kind)ev->cancel_kind));
    }
    fprintf(out, ",\"cancel_epoch\":%u,\"severity\":%u,\"value\":%" PRIu32 ",\"other\":\"0x%016" PRIx64 "\"",
            ev->cancel_epoch, ev->severity, ev->value, ev->other);
    if (ebb__event_value_of(ev->type) == EBB__VALUE_STATUS) {
        fprintf(out, ",\"status\":%" PRId32, (int32_t)ev->value);
    }
    if (line->text[0] != 0) {
        fputs(",\"text\":", out);
        ebb__print_json_string(out, line->text);
    }
    fputs("}\n", out);
}

/* ---- Chrome ----------------------------------------------------------------------------------- */

/* One entry up to its "args", which the caller closes. Times are microseconds with three decimals. */
static void chrome_head(FILE *out, const char *phase, const char *category, uint64_t id, uint8_t runtime_id,
                        const ebb_event *ev) {
    fprintf(out, ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":0,\"ts\":%" PRIu64 ".%03" PRIu64, phase,
            category, runtime_id, ev->time / 1000, ev->time % 1000);
    if (id != 0) {
        fprintf(out, ",\"id\":\"0x%016" PRIx64 "\",\"name\":\"%s ", id, category);
        ebb__print_id(out, id);
        fputc('"', out);
    }
}

static void chrome_slice(FILE *out, bool begin, bool task, uint8_t runtime_id, const ebb_event *ev) {
    uint64_t id = task ? ev->task_id : ev->region_id;
    chrome_head(out, begin ? "b" : "e", task ? "task" : "region", id, runtime_id, ev);
    fprintf(out, ",\"args\":{\"decision_seq\":%" PRIu64, ev->decision_seq);
    if (!begin) fprintf(out, ",\"status\":%" PRId32, (int32_t)ev->value);
    fputs("}}", out);
}

static void chrome_instant(FILE *out, uint8_t runtime_id, const ebb__line *line) {
    const ebb_event *ev = &line->event;
    const char *name = ebb_event_name(ev->type);
    chrome_head(out, "i", "event", 0, runtime_id, ev);
    fprintf(out, ",\"s\":\"t\",\"name\":\"%s\",\"args\":{\"decision_seq\":%" PRIu64 ",\"task\":\"",
            name == NULL ? "unknown" : name, ev->decision_seq);
    ebb__print_id(out, ev->task_id);
    fputs("\",\"region\":\"", out);
    ebb__print_id(out, ev->region_id);
    fputs("\",\"text\":", out);
    ebb__print_json_string(out, line->text);
    fputs("}}", out);
}

static void chrome(FILE *out, uint8_t runtime_id, const ebb__line *line, bool first) {
    if (line == NULL) {
        if (first) {
            fprintf(out,
                    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\","
                    "\"pid\":%u,\"args\":{\"name\":\"ebb runtime %u\"}}",
                    runtime_id, runtime_id);
        } else {
            fputs("\n]}\n", out);
        }
        return;
    }
    switch (line->event.type) {
    case EBB_EV_TIME:
    case EBB_EV_TURN: break;
    case EBB_EV_REGION_OPENED: chrome_slice(out, true, false, runtime_id, &line->event); break;
    case EBB_EV_REGION_CLOSED: chrome_slice(out, false, false, runtime_id, &line->event); break;
    case EBB_EV_TASK_SPAWNED: chrome_slice(out, true, true, runtime_id, &line->event); break;
    case EBB_EV_COMPLETED:
    case EBB_EV_FINALIZED: chrome_slice(out, false, true, runtime_id, &line->event); break;
    default: chrome_instant(out, runtime_id, line);
    }
}

ebb__export_fn *ebb__export_format(const char *name) {
    if (strcmp(name, "jsonl") == 0) return jsonl;
    if (strcmp(name, "chrome") == 0) return chrome;
    return NULL;
}
