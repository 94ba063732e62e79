/* cli/export.c - JSON lines, one object for each event. cli/chrome.c has the other format. */
#include "cli/export.h"

#include "kernel/names.h"
#include "trace/event.h"

#include <inttypes.h>
#include <string.h>

/* ---- JSON lines ------------------------------------------------------------------------------- */

/* Ids and times are strings: a JSON number is often read as a double, which can't hold them. */
static void jsonl(FILE *out, ebb__story *s, const ebb__line *line, bool first) {
    (void)first;
    if (line == NULL) return;
    ebb__story_take(s, line);
    const ebb_event *ev = &line->event;
    const char *name = ebb_event_name(ev->type);
    fprintf(out,
            "{\"type\":\"%s\",\"runtime\":%u,\"decision_seq\":%" PRIu64 ",\"host_turn_id\":%" PRIu64
            ",\"microtask_batch_id\":%" PRIu64 ",\"time_ns\":\"%" PRIu64 "\"",
            name == NULL ? "unknown" : name, s->runtime_id, ev->decision_seq, ev->host_turn_id,
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
    if (ev->what != 0) {
        fputs(",\"name\":", out);
        ebb__print_json_string(out, ebb__story_string(s, ev->what));
    }
    if (ev->site != 0) {
        fputs(",\"site\":", out);
        ebb__print_json_string(out, ebb__story_string(s, ev->site));
    }
    if (line->text[0] != 0) {
        fputs(",\"text\":", out);
        ebb__print_json_string(out, line->text);
    }
    fputs("}\n", out);
}

ebb__export_fn *ebb__export_format(const char *name) {
    if (strcmp(name, "jsonl") == 0) return jsonl;
    if (strcmp(name, "chrome") == 0) return ebb__chrome;
    return NULL;
}
