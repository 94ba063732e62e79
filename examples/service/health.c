/* Health checks, for ever: an evaluation asks each probe in turn, then it rests. Stopped, the evaluation
 * that it is at is completed, and the last one that was good is left as evidence. */
#include <inttypes.h>
#include <stdio.h>

#include "service.h"

#define PROBE_NS  (20 * EBB_MS)
#define PERIOD_NS (1000 * EBB_MS)

static ebb_status evaluate(ebb_cx *cx, health *h) {
    h->evaluation++;
    for (uint32_t i = 0; i < PROBES; i++) {
        ebb_sleeper nap = {0};
        ebb_status st = ebb_sleep(cx, &nap, PROBE_NS);
        if (st != EBB_OK) return st;
    }
    h->last_good = h->evaluation;
    h->last_good_at = ebb_now(cx);
    return EBB_OK;
}

static ebb_status watch(ebb_cx *cx, void *arg) {
    health *h = arg;
    ebb_status st = EBB_OK;
    while (st == EBB_OK && !ebb_stopping(cx)) {
        ebb_sleeper nap = {0};
        st = evaluate(cx, h);
        if (st != EBB_OK || ebb_stopping(cx)) break;
        h->resting = true;
        st = ebb_sleep(cx, &nap, PERIOD_NS);
        h->resting = false;
    }
    return st;
}

void health_last_known_good(const health *h, char *out, size_t room) {
    if (h->last_good == 0) snprintf(out, room, "none yet");
    else
        snprintf(out, room, "evaluation %" PRIu64 ", %" PRIu64 " ms after the start", h->last_good,
                 (h->last_good_at - h->since) / EBB_MS);
}

static ebb_status quiesce(ebb_cx *cx, ebb_drain *d, void *arg) {
    health *h = arg;
    char text[80];
    if (h->resting) ebb_task_cancel(cx, h->worker, EBB_CANCEL_USER, "no need to rest");
    (void)ebb_task_join(cx, h->worker);
    ebb_drain_progress(d, 1, 1);
    health_last_known_good(h, text, sizeof text);
    ebb_drain_evidence(d, "last_known_good", text);
    h->told = true;
    return EBB_OK;
}

ebb_status health_open(ebb_cx *cx, service *s) {
    health *h = &s->health;
    h->since = ebb_now(cx);
    h->workflow = ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel,
                                                             .name = "probes",
                                                             .parent = s->region});
    ebb_status st = ebb_id_status(h->workflow.id);
    if (st == EBB_OK) st = ebb_workflow_on_drain_fiber(cx, h->workflow, "quiesce", quiesce, h);
    if (st != EBB_OK) return st;
    ebb_region region = ebb_workflow_region(cx, h->workflow);
    h->worker = ebb_fiber_spawn(cx, region, watch, h, &(ebb_task_opts){.keep = true});
    return ebb_id_status(h->worker.id);
}
