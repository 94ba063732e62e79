/* The steps of a workflow. The supervisor's poll looks at the region, the drain region and the clock, and makes every
 * step that is due, one after the other. Then it waits for the next wake-up. The last step is made when the region has
 * closed. */
#include <assert.h>

#include "workflow/workflow.h"

typedef struct view {
    ebb__region *region, *drain;
} view;

static view look(const ebb__wf *wf) {
    view v = {ebb__wf_region(wf), NULL};
    (void)ebb__region_get(wf->rt, wf->drain_region, &v.drain);
    assert(v.region != NULL && v.drain != NULL); /* the supervisor lives in the drain region */
    return v;
}

/* ---- IDLE ---------------------------------------------------------------------------------------------- */

/* The reason of the enclosing workflow, as inner ones see it; kind NONE: it has none. */
static ebb_reason reason_around(const ebb__wf *wf) {
    const ebb__wf *parent = ebb__wf_parent(wf);
    if (parent == NULL || parent->state == EBB_WORKFLOW_IDLE) return (ebb_reason){0};
    return (ebb_reason){.kind = EBB_CANCEL_PARENT,
                        .severity = parent->reason.severity,
                        .runtime = ebb__rt_id(wf->rt),
                        .origin = parent->region.id};
}

/* The region was closed, cancelled or forced by a caller outside of the workflow. */
static void request_from_outside(ebb_cx *cx, ebb__wf *wf, const view *v) {
    bool requested = ebb__region_request(v->region) != 0;
    ebb_reason why = requested ? ebb__region_reason(wf->rt, v->region) : reason_around(wf);
    if (why.kind == EBB_CANCEL_NONE) {
        why = (ebb_reason){
            .kind = EBB_CANCEL_USER, .severity = EBB_SEVERITY_POLITE, .runtime = ebb__rt_id(wf->rt)};
        ebb__message_copy(why.message, "its region was closed");
    }
    (void)ebb__wf_request(cx, wf, &why);
}

/* No stop was requested, a joiner waits for the end, and no work is left. */
static bool completes(ebb_cx *cx, ebb__wf *wf, const view *v) {
    if (!ebb__region_is(wf->rt, v->region, EBB__REGION_ENDS)) return false;
    if (!ebb__region_is(wf->rt, v->region, EBB__REGION_ALONE)) return false;
    wf->completing = true;
    ebb__rt_standby(wf->rt, -1);
    ebb_region_close(cx, wf->region);
    ebb__wf_handlers_wake(cx, wf);
    ebb__region_joining(cx, wf->drain_region);
    ebb__wf_release(cx, wf);
    return true;
}

/* ---- DRAINING ------------------------------------------------------------------------------------------ */

/* The region's reason if it came from outside; kind NONE: it has none, or this workflow's own. */
static ebb_reason requested_by_others(const ebb__wf *wf, const ebb__region *r) {
    bool own = wf->cancelled && wf->type->cancel_as != EBB_CANCEL_NONE &&
               ebb__region_severity(r) == (uint8_t)ebb_cancel_kind_severity(wf->type->cancel_as);
    return ebb__region_request(r) == 0 || own ? (ebb_reason){0} : ebb__region_reason(wf->rt, r);
}

/* A stronger reason from outside is treated like a request. */
static void absorb_from_outside(ebb_cx *cx, ebb__wf *wf, const view *v) {
    ebb_reason others = requested_by_others(wf, v->region), around = reason_around(wf);
    const ebb_reason *why = others.severity >= around.severity ? &others : &around;
    if (why->severity > wf->reason.severity) (void)ebb__wf_request(cx, wf, why);
}

static void cancel(ebb_cx *cx, ebb__wf *wf, bool by_others) {
    wf->cancelled = true;
    (void)ebb__wf_do(cx, wf, EBB__T_CANCEL_AT, NULL, 0);
    if (!by_others && wf->state == EBB_WORKFLOW_DRAINING) ebb__wf_cancel(cx, wf);
}

/* The hook may extend or force the workflow. */
static void call_on_overdue(ebb__wf *wf) {
    wf->overdue_call_at = ebb__wf_after(ebb__now(wf->rt), EBB_WORKFLOW_OVERDUE_AGAIN);
    if (wf->on_overdue == NULL) return;
    ebb__watched outer = ebb__watch_enter(wf->rt, wf->region.id, wf->site);
    wf->on_overdue(wf->arg, ebb__wf_id(wf));
    ebb__watch_leave(wf->rt, outer);
}

static void time_out(ebb_cx *cx, ebb__wf *wf) {
    if (!wf->no_force) {
        ebb__wf_force(cx, wf, EBB__T_TIMEOUT, NULL);
        return;
    }
    wf->overdue = wf->timed_out = true;
    (void)ebb__wf_do(cx, wf, EBB__T_OVERDUE,
                     &(ebb__fact){"error", ebb__wf_error_name(EBB_ERR_CANCEL_DRAIN_TIMEOUT), 0}, 1);
    ebb__wf_wake_joiner(wf);
    call_on_overdue(wf);
}

void ebb__wf_catch_up(ebb__wf *wf) {
    if (wf->state == EBB_WORKFLOW_DRAINING && ebb__now(wf->rt) > wf->end && !wf->overdue)
        time_out(ebb_runtime_host(wf->rt), wf);
}

/* Two nested workflows may have a step at the same time, and the step of the outer one may serve both. Then the
 * outer one goes first. Its step wakes the inner one, or the inner one's alarm does. Otherwise each of the nested
 * workflows would walk over everything inside it. A workflow whose drain region is forced has no alarm, and the
 * outer one's steps after the kernel's force do not wake it: it does not wait. */
static bool outer_goes_first(const ebb__wf *wf, const ebb__region *drain) {
    bool waits = ebb__wf_is_due(wf) && !ebb__region_is(wf->rt, drain, EBB__REGION_FORCED);
    const ebb__wf *parent = waits ? ebb__wf_parent(wf) : NULL;
    return parent != NULL && ebb__wf_is_due(parent);
}

/* Makes one step, if one is due. The hook of an overdue drain may change the regions: that is for the next step. */
static bool drain(ebb_cx *cx, ebb__wf *wf, const view *v) {
    uint64_t now = ebb__now(wf->rt);
    assert(wf->state == EBB_WORKFLOW_DRAINING && !wf->released);
    ebb__wf_meet(wf);
    if (outer_goes_first(wf, v->drain)) return false;
    bool requested = ebb__region_request(v->region) != 0;
    bool forced = ebb__region_is(wf->rt, v->region, EBB__REGION_FORCED);
    bool drain_forced = ebb__region_is(wf->rt, v->drain, EBB__REGION_FORCED);
    bool alone = ebb__region_is(wf->rt, v->region, EBB__REGION_ALONE) &&
                 ebb__region_is(wf->rt, v->drain, EBB__REGION_ALONE);
    ebb__wf_catch_up(wf);
    if (wf->state == EBB_WORKFLOW_DRAINING) absorb_from_outside(cx, wf, v);
    if (wf->state != EBB_WORKFLOW_DRAINING) return true;
    if ((forced || drain_forced) && (now < wf->end || wf->overdue)) {
        ebb__wf_force(cx, wf, EBB__T_FORCE, forced ? "what is around it" : "a handler");
    } else if (alone) {
        (void)ebb__wf_do(cx, wf, EBB__T_DRAINED, NULL, 0);
    } else if (now >= wf->end && !wf->overdue) {
        time_out(cx, wf);
    } else if (!wf->cancelled && (requested || now >= wf->cancel_at)) {
        cancel(cx, wf, requested);
    } else if (wf->overdue && now >= wf->overdue_call_at) {
        call_on_overdue(wf);
    } else {
        return false;
    }
    return true;
}

static void set_alarm(ebb_cx *cx, const ebb__wf *wf) {
    uint64_t at = !wf->overdue ? wf->end : wf->on_overdue != NULL ? wf->overdue_call_at : EBB_FOREVER;
    if (!wf->cancelled && wf->cancel_at < at) at = wf->cancel_at;
    ebb__supervisor_alarm(cx, wf->supervisor, at);
}

/* ---- FINALIZING ------------------------------------------------------------------------------------------- */

/* The finalizers have run, and the region has closed. */
void ebb__wf_closed(void *arg, const ebb_region_report *report) {
    ebb__wf *wf = arg;
    ebb_cx *cx = ebb_runtime_host(wf->rt);
    if (wf->ended) { /* it was never opened */
        ebb__wf_free(wf);
        return;
    }
    assert(wf->completing ? wf->state == EBB_WORKFLOW_IDLE : wf->state == EBB_WORKFLOW_FINALIZING);
    wf->status = report->status;
    if (wf->completing) {
        ebb__fact facts[] = {{"left", NULL, wf->leak_count}, {"status", ebb_status_name(report->status), 0}};
        (void)ebb__wf_do(cx, wf, EBB__T_COMPLETE, facts, 2);
    } else {
        ebb__fact facts[] = {{"left", NULL, wf->leak_count},
                             {"drain_timed_out", NULL, wf->timed_out},
                             {"cancelled", NULL, wf->cancelled},
                             {"absorbed", NULL, wf->absorbed},
                             {"status", ebb_status_name(report->status), 0},
                             {"error", ebb__wf_error_name(EBB_ERR_CANCEL_LEAK), 0}};
        bool leak = wf->leak_count > 0;
        (void)ebb__wf_do(cx, wf, leak ? EBB__T_LEAK : EBB__T_FINISH, facts, leak ? 6 : 5);
    }
    wf->ended = true;
    ebb__wf_wake_joiner(wf);
}

/* ---- the poll ------------------------------------------------------------------------------------------ */

ebb_status ebb__wf_supervise(ebb_cx *cx, void *state) {
    ebb__wf *wf = state;
    assert(!wf->ended); /* it keeps the region open */
    ebb__clock_refresh(wf->rt);
    for (;;) {
        view v;
        switch (wf->state) {
        case EBB_WORKFLOW_IDLE:
            v = look(wf);
            if (ebb__region_state(v.region) != EBB_REGION_OPEN ||
                ebb__region_state(v.drain) != EBB_REGION_OPEN) {
                request_from_outside(cx, wf, &v);
                break;
            }
            return completes(cx, wf, &v) ? EBB_OK : EBB_PENDING;
        case EBB_WORKFLOW_DRAINING:
            v = look(wf);
            if (drain(cx, wf, &v)) break;
            set_alarm(cx, wf);
            return EBB_PENDING;
        case EBB_WORKFLOW_DRAIN_COMPLETE:
            (void)ebb__wf_do(cx, wf, EBB__T_FINALIZE, NULL, 0);
            ebb__wf_release(cx, wf); /* the finalizers wait for the operators */
            ebb__wf_bound(cx, wf);
            return EBB_OK;
        case EBB_WORKFLOW_FINALIZING: return EBB_OK; /* it was forced */
        default: return EBB_FAULTED;                 /* the supervisor runs in no other state */
        }
    }
}
