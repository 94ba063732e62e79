/* An operation is a workflow with one task in it, which makes the steps, and one drain handler, which
 * takes them back. Both are fibers, and they never run at the same time: the handler first waits for the
 * task. */
#include <stdio.h>
#include <string.h>

#include "service.h"

/* ---- forward ----------------------------------------------------------------------------------------- */

/* From the moment in which it begins a step may have an effect. */
static ebb_status make_step(ebb_cx *cx, operation *op) {
    ebb_sleeper nap = {0};
    uint32_t step = op->begun++;
    ebb_status st = ebb_sleep(cx, &nap, op->kind->step_ns);
    if (st == EBB_OK) op->kind->apply(op, step);
    return st;
}

static ebb_status make_steps(ebb_cx *cx, void *arg) {
    operation *op = arg;
    resource *r = &op->service->resources[op->kind->resource];
    ebb_status st = fence_take(cx, &op->fence, r, ebb_cx_region(cx));
    /* The step that it is at is made to its end, if there is time; then it looks. */
    while (st == EBB_OK && op->begun < op->kind->steps)
        st = ebb_stopping(cx) ? EBB_CANCELLED : make_step(cx, op);
    if (st == EBB_ERR_CLOSED) st = EBB_CANCELLED; /* it was stopped before it had its token: no failure */
    if (st != EBB_OK) return st;                  /* the handler does the rest */
    op->kind->commit(op);
    op->committed = true;
    op->begun = 0;
    fence_give_back(cx, &op->fence, true);
    return EBB_OK;
}

/* ---- and back ---------------------------------------------------------------------------------------- */

static ebb_status take_back_one(ebb_cx *cx, operation *op) {
    ebb_sleeper nap = {0};
    ebb_status st = ebb_sleep(cx, &nap, op->kind->undo_ns);
    if (st == EBB_OK) op->kind->undo(op, --op->begun);
    return st;
}

/* An await that says EBB_CANCELLED means that the time is over: a handler hears nothing else. What is
 * not taken back by then stays, and the evidence says so. */
static ebb_status take_back(ebb_cx *cx, ebb_drain *d, void *arg) {
    operation *op = arg;
    char text[80];
    if (op->fence.token == 0) ebb_task_cancel(cx, op->worker, EBB_CANCEL_USER, "it only waits for its turn");
    (void)ebb_task_join(cx, op->worker);
    uint32_t steps = op->begun;
    while (op->begun > 0 && take_back_one(cx, op) == EBB_OK) ebb_drain_progress(d, steps - op->begun, steps);
    fence_give_back(cx, &op->fence, false);
    operation_state(op, text, sizeof text);
    ebb_drain_evidence(d, op->kind->evidence, text);
    return EBB_OK;
}

void operation_state(const operation *op, char *out, size_t room) {
    if (op->committed) snprintf(out, room, "done");
    else if (op->begun == 0) snprintf(out, room, "taken back");
    else snprintf(out, room, "stopped at step %u of %u", op->begun, op->kind->steps);
}

/* ---- its life ---------------------------------------------------------------------------------------- */

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    operation *op = arg;
    (void)wf;
    (void)from;
    if (to == EBB_WORKFLOW_DRAIN_TIMEOUT) op->forced = true;
}

static operation *free_slot(service *s) {
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        if (!s->operations[i].used) return &s->operations[i];
    }
    return NULL;
}

operation *operation_find(service *s, const char *name) {
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        operation *op = &s->operations[i];
        if (op->used && strcmp(op->name, name) == 0) return op;
    }
    return NULL;
}

static ebb_status start(ebb_cx *cx, operation *op) {
    ebb_status st = ebb_workflow_on_drain_fiber(cx, op->workflow, "take back", take_back, op);
    if (st != EBB_OK) return st;
    ebb_region region = ebb_workflow_region(cx, op->workflow);
    op->worker = ebb_fiber_spawn(cx, region, make_steps, op, &(ebb_task_opts){.keep = true});
    return ebb_id_status(op->worker.id);
}

ebb_status operation_begin(ebb_cx *cx, service *s, const operation_kind *kind, const char *name,
                           operation **out) {
    operation *op = free_slot(s);
    if (op == NULL) return EBB_ERR_LIMIT;
    *op = (operation){.used = true, .service = s, .kind = kind};
    snprintf(op->name, sizeof op->name, "%s", name);
    ebb_workflow_opts opts = {
        .type = kind->type, .name = op->name, .parent = s->region, .on_state = on_state, .arg = op};
    op->workflow = ebb_workflow_open(cx, &opts);
    ebb_status st = ebb_id_status(op->workflow.id);
    if (st != EBB_OK) {
        op->used = false;
        return st;
    }
    op->start = start(cx, op);
    if (op->start != EBB_OK)
        (void)ebb_workflow_request(cx, op->workflow, EBB_CANCEL_RESOURCE, "it could not start");
    *out = op;
    return EBB_OK;
}

ebb_status operation_join(ebb_cx *cx, operation *op, ebb_workflow_report *report) {
    *report = (ebb_workflow_report){0};
    (void)ebb_mask(cx); /* its work uses the slot, so the slot has to wait for it */
    ebb_status st = ebb_workflow_join(cx, op->workflow, report);
    (void)ebb_unmask(cx);
    if (report->workflow.id == 0) return st; /* we were forced to leave before: the slot stays taken */
    if (op->start != EBB_OK) st = op->start;
    else if (st == EBB_OK && !op->committed) st = EBB_CANCELLED;
    op->used = false;
    return st;
}
