/* What is in flight in a workflow: the outermost units of its region and below, and the tasks outside of units;
 * but not what is in cleanup scopes, and so not what is in the annex. Lines of the log have that number.
 *
 * When a nest of workflows stops, each of them needs it at the same time. So whoever counts tells those inside
 * what it has found for them: the walk is done once, not once for each. */
#include "kernel/region.h"
#include "workflow/workflow.h"

static uint64_t tasks_in(const ebb_rt *rt, ebb__region *r) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->tasks.n; i++) n += !(ebb__task_at(rt, tasks[i])->flags & F_CLOSER);
    return n;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

/* Only of one that is closed nobody adds to what is told here. */
static void enter(ebb__wf *wf, const ebb__region *r, ebb__wf *around) {
    bool told = around != NULL && r->state != EBB_REGION_OPEN;
    wf->count = (ebb__wf_count){.around = around, .told = told, .at = wf->rt->now};
}

/* Returns the one around it, to which what was found belongs as well. */
static ebb__wf *leave(ebb__wf *wf) {
    ebb__wf *around = wf->count.around;
    if (around != NULL && around->count.scope == NULL) around->count.n += wf->count.n;
    return around;
}

static void count_below(ebb__wf *top, ebb__region *from) {
    ebb_rt *rt = top->rt;
    ebb__wf *wf = NULL; /* the innermost that the walk is in */
    for (ebb__region *r = from, *next; r != NULL; r = next) {
        ebb__wf *own = ebb__wf_of_region(r);
        rt->visits++;
        if (own != NULL) {
            enter(own, r, wf);
            wf = own;
        } else if (r->flags & (R_CLEANUP | R_UNIT) && wf->count.scope == NULL) {
            wf->count.scope = r;
            wf->count.n += (r->flags & R_UNIT) != 0;
        }
        if (wf->count.scope == NULL) wf->count.n += tasks_in(rt, r);
        next = ebb__region_after(rt, r, from, true);
        /* Leaves everything that `next` is not in. */
        for (ebb__region *up = r; wf != NULL && (next == NULL || next->parent != up->index);
             up = ebb__region_at(rt, up->parent)) {
            if (wf->count.scope == up) wf->count.scope = NULL;
            if (ebb__wf_of_region(up) == wf) wf = leave(wf);
            if (up == from) break;
        }
    }
}

/* ---- asking --------------------------------------------------------------------------------------------- */

/* The clock has a step for it now, and its steward has not made it yet. */
bool ebb__wf_is_due(const ebb__wf *wf) {
    uint64_t now = wf->rt->now;
    if (wf->state != EBB_WF_DRAINING) return false;
    return (!wf->cancelled && now >= wf->cancel_at) || (!wf->overdue && now >= wf->end);
}

/* Nothing but its annex. */
static bool is_empty(const ebb__region *r) {
    return r->state == EBB_REGION_CLOSED || ebb__steward_is_last(r);
}

uint64_t ebb__wf_in_flight(ebb__wf *wf) {
    ebb__region *r;
    if (ebb__find_region(wf->rt, wf->region, &r) != EBB_OK || is_empty(r)) return 0;
    count_below(wf, r);
    return wf->count.n;
}

uint64_t ebb__wf_in_flight_now(ebb__wf *wf) {
    ebb__region *r;
    ebb__wf *outermost = wf;
    if (ebb__find_region(wf->rt, wf->region, &r) != EBB_OK || is_empty(r)) return 0;
    if (wf->count.told && wf->count.at == wf->rt->now) return wf->count.n;
    for (ebb__wf *p = ebb__wf_parent(wf); p != NULL && ebb__wf_is_due(p); p = ebb__wf_parent(p))
        outermost = p;
    if (ebb__find_region(wf->rt, outermost->region, &r) != EBB_OK) return 0;
    count_below(outermost, r);
    return wf->count.n;
}

/* ---- what is asked for since ------------------------------------------------------------------------------ */

/* A cleanup scope is no work of what is around it: what is begun there does not count, as its tasks do not. */
void ebb__wf_asked(ebb_rt *rt, const ebb__region *r, bool refused) {
    for (;; r = ebb__region_at(rt, r->parent)) {
        ebb__wf *wf = ebb__wf_of_region(r);
        if (wf != NULL && wf->state != EBB_WF_IDLE) {
            if (refused) wf->refused++;
            else wf->inside++;
        }
        if (r->flags & R_ROOT || (r->flags & R_CLEANUP && !refused)) return;
    }
}
