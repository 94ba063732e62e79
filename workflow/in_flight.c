/* What is in flight in a workflow: the outermost units of its region and below, and the tasks outside of units.
 * Cleanup scopes do not count, and so neither does the drain region. Lines of the log have that number.
 *
 * When nested workflows stop, each of them needs its number at the same time. So one walk stores the numbers of all
 * workflows inside, and is not repeated for each of them. */
#include "workflow/workflow.h"

#include <assert.h>

/* ---- the walk ------------------------------------------------------------------------------------------ */

/* The number stays valid only if the inner workflow is closed: then no work is added to it. */
static void enter(ebb__wf *wf, const ebb__region *r, ebb__wf *around) {
    bool stored = around != NULL && ebb__region_state(r) != EBB_REGION_OPEN;
    wf->count = (ebb__wf_count){.around = around, .stored = stored, .at = ebb__now(wf->rt)};
}

/* Returns the next outer workflow, whose number includes this one's. */
static ebb__wf *leave(ebb__wf *wf) {
    ebb__wf *around = wf->count.around;
    assert(wf->count.scope == NULL && around != wf);
    if (around != NULL && around->count.scope == NULL) around->count.n += wf->count.n;
    return around;
}

static void count_below(ebb__wf *top, ebb__region *from) {
    ebb_runtime *rt = top->rt;
    ebb__wf *wf = NULL; /* the innermost workflow of the walk's position */
    for (ebb__region *r = from, *next; r != NULL; r = next) {
        ebb__wf *own = ebb__wf_of_region(r);
        if (own != NULL) {
            enter(own, r, wf);
            wf = own;
        } else if (wf->count.scope == NULL) {
            bool unit = ebb__region_is(rt, r, EBB__REGION_UNIT);
            if (unit || ebb__region_is(rt, r, EBB__REGION_CLEANUP)) wf->count.scope = r;
            wf->count.n += unit;
        }
        if (wf->count.scope == NULL) wf->count.n += ebb__region_tasks(rt, r);
        next = ebb__region_next(rt, r, from, true);
        const ebb__region *inside = next == NULL ? NULL : ebb__region_parent(rt, next);
        /* Leaves the workflows that do not contain `next`. */
        for (ebb__region *up = r; wf != NULL && inside != up; up = ebb__region_parent(rt, up)) {
            if (wf->count.scope == up) wf->count.scope = NULL;
            if (ebb__wf_of_region(up) == wf) wf = leave(wf);
            if (up == from) break;
        }
    }
}

/* ---- queries -------------------------------------------------------------------------------------------- */

/* A step is due by the clock, and the supervisor has not made it yet. */
bool ebb__wf_is_due(const ebb__wf *wf) {
    uint64_t now = ebb__now(wf->rt);
    if (wf->state != EBB_WORKFLOW_DRAINING) return false;
    return (!wf->cancelled && now >= wf->cancel_at) || (!wf->overdue && now >= wf->end);
}

/* Whether the region has only its drain region. */
static bool is_empty(const ebb_runtime *rt, const ebb__region *r) {
    return ebb__region_state(r) == EBB_REGION_CLOSED || ebb__region_is(rt, r, EBB__REGION_ALONE);
}

uint64_t ebb__wf_in_flight(ebb__wf *wf) {
    ebb__region *r = ebb__wf_region(wf);
    if (r == NULL || is_empty(wf->rt, r)) return 0;
    count_below(wf, r);
    return wf->count.n;
}

uint64_t ebb__wf_in_flight_now(ebb__wf *wf) {
    ebb__region *r = ebb__wf_region(wf);
    ebb__wf *outermost = wf;
    if (r == NULL || is_empty(wf->rt, r)) {
        wf->count.stored = false; /* what was counted has ended since then, at the same time */
        return 0;
    }
    if (wf->count.stored && wf->count.at == ebb__now(wf->rt)) return wf->count.n;
    for (ebb__wf *p = ebb__wf_parent(wf); p != NULL && ebb__wf_is_due(p); p = ebb__wf_parent(p))
        outermost = p;
    count_below(outermost, ebb__wf_region(outermost));
    return wf->count.n;
}

/* ---- admission since the request -------------------------------------------------------------------------- */

/* Work in a cleanup scope is not in flight, so neither is work that units begin there. */
void ebb__wf_admission(ebb_runtime *rt, const ebb__region *r, bool refused) {
    bool cleanup = false;
    for (; r != NULL; r = ebb__region_parent(rt, r)) {
        ebb__wf *wf = ebb__wf_of_region(r);
        if (wf != NULL && wf->state != EBB_WORKFLOW_IDLE) {
            if (refused) wf->refused++;
            else if (!cleanup) wf->inside++;
        }
        cleanup |= ebb__region_is(rt, r, EBB__REGION_CLEANUP);
    }
}
