/* Workflows: opened, given handlers, asked to stop, extended, forced, explained. */
#include "tests/driver/program/driver.h"

static void ignore_text(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

/* What a hook may do, and no more. */
static void in_hook(side *s, ebb_workflow w) {
    ebb_cx *host = ebb_runtime_host(s->rt);
    ebb_workflow_report report;
    ebb_workflow_leak leak;
    if (!busy(s)) return;
    switch (pick(s, 8)) {
    case 0: (void)ebb_workflow_request(host, w, some_kind(s), "by a hook"); break;
    case 1: (void)ebb_workflow_extend(host, w, some_span(s)); break;
    case 2:
        if (s->force) (void)ebb_workflow_force(host, w, "a hook");
        break;
    case 3: (void)ebb_workflow_explain(host, w, ignore_text, NULL); break;
    case 4: (void)ebb_workflow_report_of(host, w, &report); break;
    case 5: (void)ebb_workflow_leak_at(host, w, pick(s, 2), &leak); break;
    default: (void)ebb_workflow_refusal(host, w); break;
    }
}

static void on_state(void *arg, ebb_workflow w, ebb_workflow_state from, ebb_workflow_state to) {
    side *s = arg;
    if (s->freed) failed(s->hub, "a workflow has changed after its runtime was freed");
    if (from == to) failed(s->hub, "a workflow went from %s to itself", ebb_workflow_state_name(to));
    in_hook(s, w);
}

/* It would be told again for ever. */
static void on_overdue(void *arg, ebb_workflow w) {
    side *s = arg;
    if (busy(s)) in_hook(s, w);
    else (void)ebb_workflow_force(ebb_runtime_host(s->rt), w, "the driver");
}

static void open_flow(side *s, ebb_cx *cx) {
    static const ebb_workflow_type *const types[] = {
        &ebb_workflow_lifecycle_shutdown, &ebb_workflow_rollout_cancel, &ebb_workflow_publish_abort,
        &ebb_workflow_health_check_cancel, &ebb_workflow_epoch_transition_cancel};
    ebb_workflow_opts o = {.type = types[pick(s, 5)], .name = "driven"};
    if (one_in(s, 2)) o.budget = EBB_MS + some_span(s);
    if (one_in(s, 4)) o.cancel_at = some_span(s);
    o.no_force = one_in(s, 6);
    o.root = one_in(s, 12);
    if (!o.root && one_in(s, 2)) o.parent = some_region(s);
    o.policy = one_in(s, 2) ? EBB_FAIL_COLLECT : EBB_FAIL_FAST;
    if (!one_in(s, 6)) o.audit = s->audit;
    if (one_in(s, 2)) o.on_state = on_state;
    if (one_in(s, 2)) o.on_overdue = on_overdue;
    o.arg = s;
    ebb_workflow w = ebb_workflow_open(cx, &o);
    if (ebb_id_status(w.id) != EBB_OK) return;
    s->flow[s->flows++ % FLOWS] = w;
    ebb_region r = ebb_workflow_region(cx, w);
    remember(s, s->region, &s->regions, r.id);
}

static void handle_flow(side *s, ebb_cx *cx, ebb_workflow w) {
    bool fiber = s->fibers && one_in(s, 3);
    node *n = new_node(s, fiber ? FIBER : DRAIN);
    if (fiber) (void)ebb_workflow_on_drain_fiber(cx, w, "fiber", drain_fiber, n);
    else (void)ebb_workflow_on_drain(cx, w, "handler", drain_node, n);
}

static void operate_flow(side *s, ebb_cx *cx, ebb_workflow w) {
    ebb_region r = ebb_workflow_operator_region(cx, w);
    if (ebb_id_status(r.id) != EBB_OK) return;
    remember(s, s->region, &s->regions, r.id);
}

static void look_at_flow(side *s, ebb_cx *cx, ebb_workflow w) {
    char text[80];
    ebb_workflow_report report;
    ebb_workflow_leak leak;
    (void)ebb_workflow_report_of(cx, w, &report);
    (void)ebb_workflow_leak_at(cx, w, pick(s, 2), &leak);
    (void)ebb_workflow_refusal(cx, w);
    (void)ebb_workflow_explain(cx, w, ignore_text, NULL);
    (void)ebb_region_closed_text(cx, some_region(s), text, pick(s, sizeof text + 1));
    (void)ebb_workflow_of(cx);
}

void flow_op(side *s, ebb_cx *cx) {
    ebb_workflow w = s->flow[pick(s, FLOWS)];
    switch (pick(s, 9)) {
    case 0:
    case 1: open_flow(s, cx); break;
    case 2:
    case 3: handle_flow(s, cx, w); break;
    case 4: (void)ebb_workflow_request(cx, w, some_kind(s), "driven"); break;
    case 5:
        if (one_in(s, 2)) (void)ebb_workflow_extend(cx, w, some_span(s));
        else if (s->force) (void)ebb_workflow_force(cx, w, NULL);
        break;
    case 7: operate_flow(s, cx, w); break;
    case 6:
        if (cx == ebb_runtime_host(s->rt)) (void)ebb_workflow_join(cx, w, NULL);
        break;
    default: look_at_flow(s, cx, w); break;
    }
}

/* Nobody is there to extend or force those that wait for an operator. */
void flows_end(side *s) {
    ebb_cx *host = ebb_runtime_host(s->rt);
    for (uint32_t i = 0; i < FLOWS; i++) {
        (void)ebb_workflow_request(host, s->flow[i], EBB_CANCEL_SHUTDOWN, "the end");
        if (ebb_workflow_join(host, s->flow[i], NULL) == EBB_ERR_CANCEL_DRAIN_TIMEOUT) {
            (void)ebb_workflow_force(host, s->flow[i], "the driver");
        }
    }
}
