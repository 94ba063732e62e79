/* workflow/inspect_drains.c - the workflows of one loop as JSON.
 *
 * At most WORKFLOWS are written, and HANDLERS of each; what is left out is counted. What is in flight is counted by a
 * walk of all regions below, so only for workflows that stop. */
#include <inttypes.h>

#include "base/text.h"
#include "workflow/inspect.h"
#include "workflow/workflow.h"

enum { WORKFLOWS = 64, HANDLERS = 32, ID_ROOM = 40 };

static const char *id_in(char out[ID_ROOM], uint64_t id) {
    ebb__text t = ebb__text_in(out, ID_ROOM);
    ebb__text_id(&t, id);
    return out;
}

static const char *truth(bool is) {
    return is ? "true" : "false";
}

static void say_handlers(ebb__inspect_text *t, const ebb__wf *wf) {
    uint32_t n = 0, left_out = 0;
    ebb__inspect_say(t, ",\"handlers\":[");
    for (const ebb_drain *d = wf->handlers; d != NULL; d = d->next) {
        if (n == HANDLERS) {
            left_out++;
            continue;
        }
        ebb__inspect_say(t, "%s{\"name\":", n++ == 0 ? "" : ",");
        ebb__inspect_string(t, d->name);
        ebb__inspect_say(t, ",\"site\":");
        ebb__inspect_string(t, d->site);
        ebb__inspect_say(t, ",\"done\":%" PRIu64 ",\"total\":%" PRIu64 ",\"ended\":%s}", d->done, d->total,
                         truth(d->ended));
    }
    ebb__inspect_say(t, "],\"handlers_left_out\":%" PRIu32, left_out);
}

static void say_request(ebb__inspect_text *t, ebb__wf *wf) {
    ebb__inspect_say(
        t, ",\"request\":\"%s\",\"message\":", ebb_cancel_kind_name((ebb_cancel_kind)wf->reason.kind));
    ebb__inspect_string(t, wf->reason.message);
    ebb__inspect_say(t,
                     ",\"elapsed_ms\":%" PRIu64 ",\"in_flight\":%" PRIu64 ",\"leaks\":%" PRIu32
                     ",\"cancelled\":%s,\"overdue\":%s,\"timed_out\":%s,\"forced\":%s",
                     ebb__wf_elapsed(wf) / EBB_MS, ebb__wf_in_flight(wf), wf->leak_count,
                     truth(wf->cancelled), truth(ebb__wf_is_overdue(wf)), truth(wf->timed_out),
                     truth(wf->forced));
}

void ebb__inspect_workflow(ebb__inspect_text *t, ebb__wf *wf) {
    char id[ID_ROOM];
    ebb__inspect_say(t, "{\"workflow\":\"%s\",\"number\":%" PRIu64 ",\"type\":", id_in(id, ebb__wf_id(wf).id),
                     wf->number);
    ebb__inspect_string(t, wf->type->name);
    ebb__inspect_say(t, ",\"name\":");
    ebb__inspect_string(t, wf->name);
    ebb__inspect_say(t, ",\"state\":\"%s\",\"region\":\"%s\"", ebb_workflow_state_name(wf->state),
                     id_in(id, wf->region.id));
    ebb__inspect_say(t, ",\"budget_ms\":%" PRIu64, ebb__wf_budget(wf) / EBB_MS);
    if (wf->state != EBB_WORKFLOW_IDLE) say_request(t, wf);
    say_handlers(t, wf);
    ebb__inspect_say(t, "}");
}

typedef struct drains {
    ebb__inspect_text *t;
    uint32_t n, left_out;
} drains;

static bool say_one(void *ctx, ebb__wf *wf) {
    drains *d = ctx;
    if (d->n == WORKFLOWS) {
        d->left_out++;
        return true;
    }
    if (d->n++ > 0) ebb__inspect_say(d->t, ",");
    ebb__inspect_workflow(d->t, wf);
    return true;
}

void ebb__inspect_workflows(ebb__inspect_text *t, const ebb_runtime *rt) {
    drains d = {.t = t};
    ebb__inspect_say(t, ",\"workflows\":[");
    ebb__wf_each(rt, say_one, &d);
    ebb__inspect_say(t, "],\"workflows_left_out\":%" PRIu32, d.left_out);
}
