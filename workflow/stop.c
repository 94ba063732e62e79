/* Requests to stop a workflow, extensions, and force. */
#include "workflow/workflow.h"

/* ---- request ------------------------------------------------------------------------------------------- */

/* When the kernel forces the region because of a cancel from outside; EBB_FOREVER: never. The workflow's own cancel
 * grants the rest of its budget and a little more, which is no earlier. */
static uint64_t forced_from_around(const ebb__wf *wf) {
    const ebb__region *r = ebb__wf_region(wf);
    if (r == NULL) return EBB_FOREVER;
    if (ebb__region_request(r) == 0 || ebb__region_is(wf->rt, r, EBB__REGION_FORCED)) return EBB_FOREVER;
    uint64_t at = ebb__region_force_at(r);
    return at < wf->end && wf->end - at > EBB_MS ? at : EBB_FOREVER;
}

void ebb__wf_meet(ebb__wf *wf) {
    const ebb__wf *parent = ebb__wf_parent(wf);
    uint64_t end = forced_from_around(wf);
    if (parent != NULL && parent->state != EBB_WORKFLOW_IDLE && parent->end < end) end = parent->end;
    if (end < ebb__now(wf->rt)) end = ebb__now(wf->rt); /* no budget is left there */
    if (end < wf->end) wf->end = end;
    uint64_t budget = wf->end - wf->requested_at;
    uint64_t after = wf->own_cancel_at == 0 ? budget / 5 * 3 : wf->own_cancel_at;
    wf->cancel_at = wf->requested_at + (after < budget ? after : budget);
    assert(wf->requested_at <= wf->cancel_at && wf->cancel_at <= wf->end);
}

/* The first reason stays, unless a later one is more severe. A workflow that has ended refuses the request. */
static ebb_status absorb(ebb_cx *cx, ebb__wf *wf, const ebb_reason *why) {
    bool final = ebb__wf_is_final(wf->state), rises = !final && why->severity > wf->reason.severity;
    if (!final) wf->absorbed++;
    if (rises) {
        wf->reason = *why;
        wf->root = ebb__wf_root_cause(wf, why);
        wf->epoch++;
        if (wf->cancelled && wf->state == EBB_WORKFLOW_DRAINING) ebb__wf_cancel(cx, wf);
    }
    ebb__fact facts[] = {{"kind", ebb_cancel_kind_name((ebb_cancel_kind)why->kind), 0},
                         {"message", why->message, 0}};
    return ebb__wf_do(cx, wf, EBB__T_REQUEST, facts, 2);
}

ebb_status ebb__wf_request(ebb_cx *cx, ebb__wf *wf, const ebb_reason *why) {
    const ebb__region *r = ebb__wf_region(wf);
    if (wf->state != EBB_WORKFLOW_IDLE) return absorb(cx, wf, why);
    assert(!wf->completing && !wf->ended && wf->epoch == 0);
    wf->requested_at = ebb__now(wf->rt);
    wf->end = ebb__wf_after(wf->requested_at, wf->own_budget);
    wf->reason = *why;
    wf->root = ebb__wf_root_cause(wf, why);
    wf->epoch = 1;
    ebb__wf_meet(wf);
    ebb__rt_standby(wf->rt, -1);
    /* Closed first, so that the count of this line is final. If the region was closed from outside, so was
     * everything in it. */
    if (r != NULL && ebb__region_state(r) == EBB_REGION_OPEN) ebb_region_close(cx, wf->region);
    (void)ebb__wf_do(cx, wf, EBB__T_REQUEST, NULL, 0);
    (void)ebb__wf_do(cx, wf, EBB__T_START_DRAIN, NULL, 0);
    ebb__wf_handlers_wake(cx, wf);
    ebb__region_joining(cx, wf->drain_region);
    (void)ebb_task_wake(cx, wf->supervisor);
    return EBB_OK;
}

/* The work has ended and the handlers were released: nothing is left to drain. From now on the finalizers have a
 * budget. */
static ebb_status too_late(ebb_cx *cx, ebb__wf *wf, ebb_cancel_kind kind, const char *message) {
    ebb_budget b = {ebb__wf_after(ebb__now(wf->rt), wf->own_budget), EBB_POLLS_UNBOUNDED, 0};
    if (!wf->ended) ebb_region_cancel_within(cx, wf->region, kind, message, b);
    return ebb__wf_refuse(wf, EBB__T_REQUEST, EBB_ERR_CANCEL_ALREADY_FINAL, ": its work has ended");
}

ebb_status ebb_workflow_request(ebb_cx *cx, ebb_workflow workflow, ebb_cancel_kind kind,
                                const char *message) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    ebb__clock_refresh(wf->rt);
    if (ebb_cancel_kind_severity(kind) == 0) kind = EBB_CANCEL_USER; /* as the kernel's verbs do */
    if (wf->completing) return too_late(cx, wf, kind, message);
    ebb__wf_catch_up(wf);
    ebb_reason why = {.kind = (uint8_t)kind,
                      .severity = (uint8_t)ebb_cancel_kind_severity(kind),
                      .runtime = ebb__rt_id(wf->rt),
                      .origin = ebb_cx_task(cx).id};
    ebb__message_copy(why.message, message);
    return ebb__wf_request(cx, wf, &why);
}

/* ---- operators ----------------------------------------------------------------------------------------- */

/* Moves the end, up to the longest budget. False: it is there already. */
static bool move_end(ebb__wf *wf, uint64_t more) {
    uint64_t old = wf->end, from = ebb__now(wf->rt) > old ? ebb__now(wf->rt) : old;
    uint64_t most = ebb__wf_after(wf->requested_at, EBB__WF_MOST), end = ebb__wf_after(from, more);
    wf->end = end < most ? end : most;
    ebb__wf_meet(wf);
    if (wf->end > old && wf->end > ebb__now(wf->rt)) return true;
    wf->end = old;
    ebb__wf_meet(wf);
    return false;
}

ebb_status ebb_workflow_extend(ebb_cx *cx, ebb_workflow workflow, uint64_t more) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    if (more == 0) return EBB_ERR_INVALID;
    ebb__clock_refresh(wf->rt);
    ebb__wf_catch_up(wf);
    bool fixed = wf->state == EBB_WORKFLOW_DRAINING && wf->cancelled && !wf->no_force;
    if (wf->state != EBB_WORKFLOW_DRAINING || fixed) {
        const char *why = fixed ? ": what was in flight has its cleanup budget already" : "";
        return ebb__wf_refuse(wf, EBB__T_EXTEND, EBB_ERR_CANCEL_INVALID_PHASE, why);
    }
    uint64_t old = wf->end;
    if (!move_end(wf, more))
        return ebb__wf_refuse(wf, EBB__T_EXTEND, EBB_ERR_LIMIT, ": there is no more time");
    wf->overdue = false;
    st = ebb__wf_do(cx, wf, EBB__T_EXTEND, &(ebb__fact){"by_ms", NULL, (wf->end - old) / EBB_MS}, 1);
    (void)ebb_task_wake(cx, wf->supervisor);
    if (wf->on_extended != NULL) wf->on_extended(wf->arg, wf->end - old);
    return st;
}

/* The time to clean up after a force: the part of a budget that the kernel keeps for it. */
static uint64_t kept_part(const ebb__wf *wf) {
    uint64_t least = (wf->end - wf->requested_at) / 10, kept = ebb__kept_beside(wf->end - wf->cancel_at);
    return kept > least ? kept : least;
}

/* The operators get half of the finalizers' time, because the finalizers run after them. */
void ebb__wf_release(ebb_cx *cx, ebb__wf *wf) {
    ebb__region *r;
    uint64_t grace = (wf->completing ? wf->own_budget / 10 : kept_part(wf)) / 2;
    assert(!wf->ended && (wf->completing || wf->state > EBB_WORKFLOW_DRAINING));
    if (wf->released) return;
    wf->released = true;
    if (ebb__region_get(wf->rt, wf->operators, &r) != EBB_OK) return;
    if (ebb__region_state(r) == EBB_REGION_CLOSED) return;
    ebb__operators_release(cx, wf->operators, ebb__wf_after(ebb__now(wf->rt), grace));
    ebb_region_close(cx, wf->operators);
}

/* The region already has a request that is as strong and as early. */
static bool is_covered(const ebb__region *r, ebb_cancel_kind kind, uint64_t deadline) {
    return ebb__region_request(r) != 0 &&
           ebb__region_severity(r) >= (uint8_t)ebb_cancel_kind_severity(kind) &&
           ebb__region_deadline(r) <= deadline;
}

/* Cancels what is in flight. Unless an operator decides at the end of the budget, the kernel forces the work then: a
 * little later than the supervisor, which logs the timeout. */
void ebb__wf_cancel(ebb_cx *cx, ebb__wf *wf) {
    assert(wf->cancelled && wf->state == EBB_WORKFLOW_DRAINING);
    const ebb__region *r = ebb__wf_region(wf);
    bool own = wf->type->cancel_as != EBB_CANCEL_NONE;
    ebb_cancel_kind kind = own ? wf->type->cancel_as : (ebb_cancel_kind)wf->root.kind;
    ebb_budget b = {EBB_FOREVER, EBB_POLLS_UNBOUNDED, 0};
    uint64_t now = ebb__now(wf->rt), end = ebb__wf_after(wf->end, 2 * EBB_MS);
    if (!wf->no_force)
        b.deadline = ebb__wf_after(now, end > now ? ebb__budget_keeping(ebb__kept_beside(end - now)) : 0);
    if (r != NULL && is_covered(r, kind, b.deadline)) return;
    ebb_region_cancel_within(cx, wf->region, kind, wf->root.message, b);
}

/* Nothing is in flight any more: this only bounds the finalizers. After an overdue drain their part starts now. */
void ebb__wf_bound(ebb_cx *cx, ebb__wf *wf) {
    assert(wf->state == EBB_WORKFLOW_FINALIZING && wf->released);
    const ebb__region *r = ebb__wf_region(wf);
    if (r == NULL) return;
    uint64_t from = wf->end > ebb__now(wf->rt) ? wf->end : ebb__now(wf->rt);
    ebb_budget b = {ebb__wf_after(from, kept_part(wf)), EBB_POLLS_UNBOUNDED, 0};
    if (ebb__region_request(r) != 0 && ebb__region_deadline(r) <= b.deadline)
        return; /* it is bounded already */
    ebb_region_cancel_within(cx, wf->region, (ebb_cancel_kind)wf->root.kind, wf->root.message, b);
}

static void force_region(ebb_cx *cx, ebb__wf *wf) {
    const ebb__region *r = ebb__wf_region(wf);
    if (r == NULL) return;
    if (ebb__region_is(wf->rt, r, EBB__REGION_FORCED)) return;
    if (ebb__region_request(r) == 0 || ebb__region_deadline(r) == EBB_FOREVER) {
        ebb_budget b = {ebb__wf_after(ebb__now(wf->rt), ebb__budget_keeping(kept_part(wf))),
                        EBB_POLLS_UNBOUNDED, 0};
        ebb_region_cancel_within(cx, wf->region, EBB_CANCEL_BUDGET, "forced", b);
    }
    ebb_region_force(cx, wf->region);
}

void ebb__wf_force(ebb_cx *cx, ebb__wf *wf, ebb__trigger trigger, const char *by) {
    assert(wf->state == EBB_WORKFLOW_DRAINING && !wf->released);
    wf->timed_out = true;
    wf->forced = trigger == EBB__T_FORCE;
    (void)ebb__wf_do(cx, wf, trigger, &(ebb__fact){"by", by, 0}, wf->forced ? 1 : 0);
    if (wf->forced && wf->on_forced != NULL) wf->on_forced(wf->arg);
    force_region(cx, wf);
    ebb__wf_release(cx, wf); /* not forced: an operator may still get an answer */
    (void)ebb__wf_do(cx, wf, EBB__T_FINALIZE, NULL, 0);
}

/* The finalizers' time ends now. */
static ebb_status force_finalizers(ebb_cx *cx, ebb__wf *wf, const char *by) {
    assert(wf->state == EBB_WORKFLOW_FINALIZING && !wf->ended);
    ebb_budget none = {ebb__now(wf->rt), EBB_POLLS_UNBOUNDED, 0};
    wf->forced = true;
    ebb_status st = ebb__wf_do(cx, wf, EBB__T_FORCE, &(ebb__fact){"by", by, 0}, 1);
    ebb_region_cancel_within(cx, wf->region, EBB_CANCEL_BUDGET, "forced", none);
    ebb_region_force(cx, wf->region);
    return st;
}

ebb_status ebb_workflow_force(ebb_cx *cx, ebb_workflow workflow, const char *message) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    ebb__clock_refresh(wf->rt);
    const char *by = message == NULL ? "operator" : message;
    ebb__wf_catch_up(wf);
    if (wf->state == EBB_WORKFLOW_FINALIZING) return force_finalizers(cx, wf, by);
    if (wf->state != EBB_WORKFLOW_DRAINING)
        return ebb__wf_refuse(wf, EBB__T_FORCE, EBB_ERR_CANCEL_INVALID_PHASE, "");
    ebb__wf_force(cx, wf, EBB__T_FORCE, by);
    return EBB_OK;
}
