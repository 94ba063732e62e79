/* The rehearsal: everything at once, in virtual time, and each workflow in turn is stopped at every
 * suspension point, and disturbed in every state on its way. What is left has to be whole each time. */
#include <inttypes.h>
#include <stdio.h>

#include "service.h"

typedef struct stage {
    service service;
    operation *rollout, *publish, *epoch;
} stage;

/* Whoever waits for an operation leaves before its end only by force. A fault is what no cancel hides. */
static ebb_status wait_for(ebb_cx *cx, void *arg) {
    ebb_workflow_report report;
    ebb_task_info self;
    (void)operation_join(cx, arg, &report);
    if (report.workflow.id != 0) return EBB_OK;
    (void)ebb_task_info_of(cx, ebb_cx_task(cx), &self);
    return self.forced ? EBB_OK : EBB_FAULTED;
}

static ebb_status begin(ebb_cx *cx, service *s, const operation_kind *kind, operation **op) {
    ebb_status st = operation_begin(cx, s, kind, "v42", op);
    return st == EBB_OK ? ebb_id_status(ebb_fiber_spawn(cx, s->region, wait_for, *op).id) : st;
}

static ebb_status build(ebb_cx *cx, ebb_audit *audit, stage *g) {
    service *s = &g->service;
    ebb_workflow_opts opts = {
        .type = &ebb_workflow_lifecycle_shutdown, .name = "rehearsal", .root = true, .audit = audit};
    ebb_workflow lifecycle = ebb_workflow_open(cx, &opts);
    ebb_status st = ebb_id_status(lifecycle.id);
    if (st == EBB_OK) st = service_open(cx, s, lifecycle);
    if (st == EBB_OK) st = begin(cx, s, &rollout, &g->rollout);
    if (st == EBB_OK) st = begin(cx, s, &publish, &g->publish);
    if (st == EBB_OK) st = begin(cx, s, &epoch_transition, &g->epoch);
    return st;
}

/* ---- whom to stop ------------------------------------------------------------------------------------ */

static ebb_status stop_lifecycle(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    stage *g = state;
    ebb_status st = build(cx, audit, g);
    *target = g->service.lifecycle;
    return st;
}

static ebb_status stop_health(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    stage *g = state;
    ebb_status st = build(cx, audit, g);
    *target = g->service.health.workflow;
    return st;
}

static ebb_status stop_rollout(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    stage *g = state;
    ebb_status st = build(cx, audit, g);
    if (st == EBB_OK) *target = g->rollout->workflow;
    return st;
}

static ebb_status stop_publish(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    stage *g = state;
    ebb_status st = build(cx, audit, g);
    if (st == EBB_OK) *target = g->publish->workflow;
    return st;
}

static ebb_status stop_epoch(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    stage *g = state;
    ebb_status st = build(cx, audit, g);
    if (st == EBB_OK) *target = g->epoch->workflow;
    return st;
}

static ebb_status check(void *state, const ebb_workflow_report *report) {
    const stage *g = state;
    bool failed = report->status != EBB_OK && report->status != EBB_CANCELLED;
    return failed ? report->status : service_check(&g->service);
}

int rehearse(void) {
    const ebb_injection all[] = {{.name = "lifecycle_shutdown", .setup = stop_lifecycle},
                                 {.name = "health_check_cancel", .setup = stop_health},
                                 {.name = "rollout_cancel", .setup = stop_rollout},
                                 {.name = "publish_abort", .setup = stop_publish},
                                 {.name = "epoch_transition_cancel", .setup = stop_epoch}};
    int status = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ebb_injection what = all[i];
        ebb_injected out;
        what.check = check;
        what.state_size = sizeof(stage);
        ebb_status st = ebb_inject(ebb_libc_allocator(), &what, &out);
        if (st == EBB_OK) {
            printf("%s: %" PRIu64 " suspension points, %" PRIu64 " runs, %" PRIu64
                   " forced: all oracles hold\n",
                   what.name, out.points, out.runs, out.forced);
            continue;
        }
        fprintf(stderr, "service: %s: %s\n", ebb_status_text(st), out.text);
        status = 1;
    }
    return status;
}
