/* One step of a workflow: the state, the line in the log and the event in the trace change together here. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "workflow/workflow.h"

/* ---- lines --------------------------------------------------------------------------------------------- */

/* The chain of reasons: the workflow's own first. If its own reason is that its parent was cancelled, the parent's
 * reasons follow. The last one is the root cause as this workflow knows it: the parent may have received a stronger
 * reason since, or have ended. */
static uint32_t chain_of(const ebb__wf *wf, ebb_reason out[EBB_CHAIN_DEPTH]) {
    const ebb__wf *w = wf, *parent;
    ebb__region *r;
    uint32_t n = 0;
    if (wf->state == EBB_WORKFLOW_IDLE) return 0;
    out[n++] = wf->reason;
    if (wf->reason.kind != EBB_CANCEL_PARENT) return n;
    while (out[n - 1].kind == EBB_CANCEL_PARENT && n < EBB_CHAIN_DEPTH) {
        parent = ebb__wf_parent(w);
        if (parent == NULL || parent->state == EBB_WORKFLOW_IDLE) break;
        out[n++] = parent->reason;
        w = parent;
    }
    if (ebb__region_get(w->rt, w->region, &r) == EBB_OK && out[n - 1].kind == EBB_CANCEL_PARENT) {
        /* The root cause is a region that is not a workflow's. */
        while (r != NULL && n < EBB_CHAIN_DEPTH && ebb__region_reason(w->rt, r).kind == EBB_CANCEL_PARENT) {
            r = ebb__region_parent(w->rt, r);
            ebb_reason why = r == NULL ? (ebb_reason){0} : ebb__region_reason(w->rt, r);
            if (why.kind != EBB_CANCEL_NONE) out[n++] = why;
        }
    }
    if (n == 1) n++;
    assert(n >= 2 && n <= EBB_CHAIN_DEPTH);
    out[n - 1] = wf->root;
    return n;
}

/* The root cause of the enclosing workflow is stored, so nested workflows do not each climb to the top. */
ebb_reason ebb__wf_root_cause(const ebb__wf *wf, const ebb_reason *why) {
    ebb__region *r;
    const ebb__wf *parent = why->kind == EBB_CANCEL_PARENT ? ebb__wf_parent(wf) : NULL;
    if (parent != NULL && parent->state != EBB_WORKFLOW_IDLE) return parent->root;
    if (why->kind != EBB_CANCEL_PARENT || ebb__region_get(wf->rt, wf->region, &r) != EBB_OK) return *why;
    ebb_reason cause = ebb__region_reason(wf->rt, ebb__region_cause(wf->rt, r));
    return cause.kind == EBB_CANCEL_NONE ? *why : cause;
}

static void line(ebb__wf *wf, ebb__wf_event event, const char *code, ebb_workflow_state from,
                 const ebb__fact *facts, size_t n) {
    assert(n <= EBB__AUDIT_FACTS);
    if (wf->audit == NULL) return;
    ebb_reason chain[EBB_CHAIN_DEPTH];
    ebb__audit_entry e = {.event = event,
                          .code = code,
                          .type = wf->type->name,
                          .name = wf->name,
                          .number = wf->number,
                          .parent = wf->parent,
                          .from = from,
                          .to = wf->state,
                          .elapsed = ebb__wf_elapsed(wf),
                          .budget = ebb__wf_budget(wf),
                          .chain = chain,
                          .epoch = wf->epoch,
                          .in_flight = wf->in_flight,
                          .inside = wf->inside,
                          .refused = wf->refused};
    e.chain_n = chain_of(wf, chain);
    for (size_t i = 0; i < n && i < EBB__AUDIT_FACTS; i++) e.facts[i] = facts[i];
    ebb_status st = ebb__audit_write(wf->audit, &e);
    wf->number = e.number; /* assigned with its first line */
    if (event == EBB__WE_OPENED) wf->log_at = e.at;
    if (st != EBB_OK && wf->audit_status == EBB_OK) wf->audit_status = st;
}

void ebb__wf_remark(ebb__wf *wf, ebb__wf_event event, const ebb__fact *facts, size_t n) {
    assert(event == EBB__WE_EVIDENCE ||
           ebb__wf_legal(wf->state, event, wf->state)); /* evidence is the host's */
    line(wf, event, NULL, wf->state, facts, n);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

const char *ebb__wf_title(const ebb__wf *wf, char out[EBB__WF_TITLE]) {
    snprintf(out, EBB__WF_TITLE, "%.90s#%" PRIu64 "%s%s", wf->type->name, wf->number,
             wf->name[0] == 0 ? "" : " ", wf->name);
    return out;
}

/* As seeds and logs write it: without the prefix. */
const char *ebb__wf_error_name(ebb_status st) {
    return ebb_status_name(st) + strlen("EBB_");
}

ebb_status ebb__wf_refuse(ebb__wf *wf, ebb__trigger trigger, ebb_status st, const char *why) {
    char title[EBB__WF_TITLE];
    const char *name = ebb__trigger_name(trigger);
    snprintf(wf->refusal, sizeof wf->refusal, "%s: %s is not allowed in %s%s", ebb__wf_title(wf, title), name,
             ebb_workflow_state_name(wf->state), why);
    line(wf, EBB__WE_REFUSED, ebb__wf_error_name(st), wf->state, &(ebb__fact){"trigger", name, 0}, 1);
    return st;
}

ebb_status ebb__wf_do(ebb_cx *cx, ebb__wf *wf, ebb__trigger trigger, const ebb__fact *facts, size_t n) {
    const ebb__wf_move *move;
    ebb_status st = ebb__wf_step(wf->state, trigger, &move);
    if (st != EBB_OK) return ebb__wf_refuse(wf, trigger, st, "");
    ebb_workflow_state from = wf->state;
    assert(move->to == 0 || move->to > from); /* a workflow never goes back */
    if (move->to != 0) wf->state = (ebb_workflow_state)move->to;
    if (ebb__wf_is_final(wf->state)) wf->ended_at = ebb__now(wf->rt);
    wf->in_flight = ebb__wf_in_flight_now(wf);
    if (move->event == EBB__WE_NONE) return EBB_OK;
    assert(!wf->ended); /* the last line is written before that */
    ebb__note_event(ebb__rt_of(cx), EBB_EV_WORKFLOW,
                    .value = (uint32_t)move->event << 16 | (uint32_t)from << 8 | (uint32_t)wf->state,
                    .region = wf->region.id, .other = wf->number);
    line(wf, (ebb__wf_event)move->event, NULL, from, facts, n);
    if (from == wf->state || wf->on_state == NULL) return EBB_OK;
    ebb__watched outer = ebb__watch_enter(wf->rt, wf->region.id, wf->site);
    wf->on_state(wf->arg, ebb__wf_id(wf), from, wf->state);
    ebb__watch_leave(wf->rt, outer);
    return EBB_OK;
}
