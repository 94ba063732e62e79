#include "workflow/workflow.h"

#include <assert.h>

#include "base/opts.h"

enum { SHIFT = 4 };

const ebb_workflow_type ebb_workflow_lifecycle_shutdown = {"lifecycle_shutdown", 5000 * EBB_MS,
                                                           EBB_CANCEL_SHUTDOWN};
const ebb_workflow_type ebb_workflow_rollout_cancel = {"rollout_cancel", 3000 * EBB_MS, EBB_CANCEL_NONE};
const ebb_workflow_type ebb_workflow_publish_abort = {"publish_abort", 2000 * EBB_MS, EBB_CANCEL_NONE};
const ebb_workflow_type ebb_workflow_health_check_cancel = {"health_check_cancel", 1000 * EBB_MS,
                                                            EBB_CANCEL_NONE};
const ebb_workflow_type ebb_workflow_epoch_transition_cancel = {"epoch_transition_cancel", 3000 * EBB_MS,
                                                                EBB_CANCEL_NONE};

/* ---- records ------------------------------------------------------------------------------------------ */

static ebb__workflows *workflows_at(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__WORKFLOW_SLOT);
}

static ebb__wf *at(const ebb__workflows *w, uint32_t i) {
    return ebb__slab_at(&w->slab, i);
}

ebb_workflow ebb__wf_id(const ebb__wf *wf) {
    return (ebb_workflow){ebb__id(wf->rt, wf->index, wf->generation)};
}

ebb_status ebb__wf_find(ebb_cx *cx, ebb_workflow id, ebb__wf **out) {
    ebb_runtime *rt = ebb__rt_of(cx);
    uint32_t i = 0;
    const ebb__workflows *w = workflows_at(rt);
    ebb_status st = w == NULL ? ebb__lookup_failed(rt, id.id) : ebb__lookup(rt, &w->slab, id.id, &i);
    if (st != EBB_OK) return st;
    assert(w != NULL); /* otherwise the lookup has failed */
    *out = at(w, i);
    return (*out)->index == 0 ? EBB_ERR_STALE : EBB_OK;
}

void ebb__wf_each(const ebb_runtime *rt, bool (*each)(void *ctx, ebb__wf *wf), void *ctx) {
    const ebb__workflows *w = workflows_at(rt);
    for (uint32_t i = 1; w != NULL && i < w->slab.used; i++) {
        if (at(w, i)->index != 0 && !each(ctx, at(w, i))) return;
    }
}

void ebb__wf_free(ebb__wf *wf) {
    ebb_runtime *rt = wf->rt;
    assert(wf->index != 0 && wf->leaks_n <= wf->leak_count);
    ebb__wf_handlers_free(wf);
    ebb__free(ebb__rt_allocator(rt), wf->leaks, wf->leaks_room * sizeof *wf->leaks);
    uint32_t i = wf->index;
    wf->index = 0;
    ebb__slab_give(&workflows_at(rt)->slab, i);
}

static void workflows_free(ebb_runtime *rt);
static const ebb__layer layer = {
    .slot = EBB__WORKFLOW_SLOT,
    .hooks = {.leaked = ebb__wf_leaked, .admission = ebb__wf_admission, .freed = workflows_free}};

static void workflows_free(ebb_runtime *rt) {
    ebb__workflows *w = workflows_at(rt);
    const ebb_allocator *a = ebb__rt_allocator(rt);
    for (uint32_t i = 1; i < w->slab.used; i++) {
        if (at(w, i)->index != 0) ebb__wf_free(at(w, i));
    }
    ebb__slab_fini(&w->slab, a);
    ebb__layer_remove(rt, &layer);
    ebb__free(a, w, sizeof *w);
}

static ebb_status workflows_of(ebb_runtime *rt) {
    ebb__workflows *w = workflows_at(rt);
    if (w == NULL) {
        w = ebb__alloc(ebb__rt_allocator(rt), sizeof *w);
        if (w == NULL) return EBB_ERR_NOMEM;
        *w = (ebb__workflows){.rt = rt};
        ebb__slab_init(&w->slab, sizeof(ebb__wf), 0, SHIFT, EBB__SLAB_MAX_INDEX);
        ebb_status st = ebb__layer_add(rt, &layer, w);
        assert(st == EBB_OK);
        (void)st;
    }
    return ebb__slab_reserve(&w->slab, ebb__rt_allocator(rt));
}

static bool is_gone(const ebb_runtime *rt, ebb_region region) {
    ebb__region *r;
    return ebb__region_get(rt, region, &r) != EBB_OK || ebb__region_state(r) == EBB_REGION_CLOSED;
}

/* Frees records of ended workflows that can't be joined any more. Each call looks at two records in turn, so records
 * are freed as fast as they are added. */
static void sweep(ebb_runtime *rt) {
    ebb__workflows *w = workflows_at(rt);
    for (uint32_t n = 0; n < 2 && w->slab.used > 1; n++) {
        w->swept = w->swept + 1 < w->slab.used ? w->swept + 1 : 1;
        ebb__wf *wf = at(w, w->swept);
        bool unused = wf->index != 0 && wf->ended && wf->joiner.cx == NULL;
        if (unused && !wf->is_root && is_gone(rt, wf->around)) ebb__wf_free(wf);
    }
}

/* ---- nesting ------------------------------------------------------------------------------------------- */

ebb__wf *ebb__wf_around(const ebb_runtime *rt, const ebb__region *r) {
    ebb__wf *wf = NULL;
    for (; wf == NULL && r != NULL; r = ebb__region_parent(rt, r)) wf = ebb__wf_of_region(r);
    return wf;
}

ebb__wf *ebb__wf_parent(const ebb__wf *wf) {
    ebb__region *r;
    if (wf->is_root) return NULL;
    if (!wf->ended) r = ebb__region_parent(wf->rt, wf->region_record);
    else if (ebb__region_get(wf->rt, wf->around, &r) != EBB_OK) return NULL;
    return ebb__wf_around(wf->rt, r);
}

ebb_workflow ebb_workflow_of(ebb_cx *cx) {
    const ebb__wf *wf = ebb__wf_around(ebb__rt_of(cx), ebb__region_of(cx));
    return wf == NULL ? (ebb_workflow){0} : ebb__wf_id(wf);
}

ebb_region ebb_workflow_region(ebb_cx *cx, ebb_workflow workflow) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    return st == EBB_OK ? wf->region : (ebb_region){ebb__id_error(ebb__rt_of(cx), st)};
}

static bool takes_operators(const ebb__wf *wf) {
    bool before = wf->state == EBB_WORKFLOW_IDLE && !wf->completing;
    return before || (wf->state == EBB_WORKFLOW_DRAINING && !wf->released);
}

ebb_region ebb_workflow_operator_region(ebb_cx *cx, ebb_workflow workflow) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st == EBB_OK && wf->operators.id != 0) return wf->operators;
    if (st == EBB_OK && !takes_operators(wf)) st = EBB_ERR_CLOSED;
    if (st != EBB_OK) return (ebb_region){ebb__id_error(ebb__rt_of(cx), st)};
    ebb_region r = ebb__operators_open(cx, wf->drain_region, wf->site);
    if (ebb_id_status(r.id) == EBB_OK) wf->operators = r;
    return r;
}

/* ---- open ---------------------------------------------------------------------------------------------- */

static ebb_status opts_check(const ebb_workflow_opts *o) {
    if (o->type == NULL || o->type->name == NULL || o->type->name[0] == 0) return EBB_ERR_INVALID;
    uint64_t budget = o->budget != 0 ? o->budget : o->type->budget;
    if (budget == 0 || budget > EBB__WF_MOST || o->cancel_at > budget) return EBB_ERR_INVALID;
    if (o->type->cancel_as != EBB_CANCEL_NONE && ebb_cancel_kind_severity(o->type->cancel_as) == 0)
        return EBB_ERR_INVALID;
    return o->root && o->parent.id != 0 ? EBB_ERR_INVALID : EBB_OK;
}

static ebb__wf *record_new(ebb_runtime *rt, const ebb_workflow_opts *o, const char *site) {
    uint32_t i = ebb__slab_take(&workflows_at(rt)->slab);
    ebb__wf *wf = at(workflows_at(rt), i);
    uint32_t generation = wf->generation;
    *wf = (ebb__wf){.generation = generation,
                    .index = i,
                    .rt = rt,
                    .type = o->type,
                    .site = site,
                    .state = EBB_WORKFLOW_IDLE,
                    .own_budget = o->budget != 0 ? o->budget : o->type->budget,
                    .own_cancel_at = o->cancel_at,
                    .no_force = o->no_force,
                    .is_root = o->root,
                    .audit = o->audit,
                    .on_state = o->on_state,
                    .on_overdue = o->on_overdue,
                    .arg = o->arg};
    wf->handlers_end = &wf->handlers;
    if (o->name != NULL) ebb__message_copy(wf->name, o->name);
    return wf;
}

/* Opens the region with its supervisor. On failure only an empty, closed region remains. */
static ebb_status open_region(ebb_cx *cx, ebb__wf *wf, const ebb_workflow_opts *o) {
    ebb_runtime *rt = wf->rt;
    ebb_region_opts ro = {.parent = o->parent, .policy = o->policy, .on_closed = ebb__wf_closed, .arg = wf};
    wf->around = o->parent.id != 0 ? o->parent : ebb_cx_region(cx);
    wf->region = o->root ? ebb_runtime_root(rt) : ebb_region_open_site(cx, &ro, wf->site);
    ebb_status st = ebb__region_get(rt, wf->region, &wf->region_record);
    if (st != EBB_OK) return st;
    ebb__supervisor s =
        ebb__supervisor_new(cx, wf->region, ebb__wf_supervise, wf, o->root ? ebb__wf_closed : NULL, wf->site);
    st = ebb_id_status(s.task.id);
    if (st == EBB_OK) {
        wf->supervisor = s.task;
        wf->drain_region = s.region;
        ebb__rt_standby(rt, 1);
    }
    return st;
}

/* Whether the workflow is in a unit of the parent's work. */
static bool is_in_unit(const ebb__wf *wf, const ebb__wf *parent) {
    ebb__region *r;
    if (ebb__region_get(wf->rt, wf->around, &r) != EBB_OK) return false;
    for (; ebb__region_name(wf->rt, r).id != parent->region.id; r = ebb__region_parent(wf->rt, r)) {
        if (ebb__region_is(wf->rt, r, EBB__REGION_UNIT)) return true;
    }
    return false;
}

/* The number of the workflow whose work this is. A workflow in a cleanup scope is not work of the enclosing one. */
static uint64_t work_of(const ebb__wf *wf) {
    ebb__region *r;
    const ebb__wf *parent = ebb__wf_parent(wf);
    if (parent == NULL || parent->audit != wf->audit || ebb__region_get(wf->rt, wf->around, &r) != EBB_OK)
        return 0;
    for (; ebb__region_name(wf->rt, r).id != parent->region.id; r = ebb__region_parent(wf->rt, r)) {
        if (ebb__region_is(wf->rt, r, EBB__REGION_CLEANUP)) return 0;
    }
    return parent->number;
}

ebb_workflow ebb_workflow_open_site(ebb_cx *cx, const ebb_workflow_opts *opts, const char *site) {
    return ebb__workflow_open_under(cx, opts, 0, site);
}

ebb_workflow ebb__workflow_open_under(ebb_cx *cx, const ebb_workflow_opts *given, uint64_t number,
                                      const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_workflow_opts room;
    ebb_status st = given != NULL ? EBB_OK : EBB_ERR_INVALID;
    const ebb_workflow_opts *opts = given;
    if (st == EBB_OK) opts = EBB__OPTS_SEE(given, &room, &st);
    if (st == EBB_OK) st = opts_check(opts);
    if (st == EBB_OK) st = workflows_of(rt);
    if (st != EBB_OK) return (ebb_workflow){ebb__id_error(rt, st)};
    sweep(rt);
    ebb__wf *wf = record_new(rt, opts, site);
    st = open_region(cx, wf, opts);
    if (st != EBB_OK) {
        wf->ended = true; /* if there is a region, its hook still has to run */
        bool opened = !opts->root && ebb_id_status(wf->region.id) == EBB_OK;
        if (opened) ebb_region_close(cx, wf->region);
        else ebb__wf_free(wf);
        return (ebb_workflow){ebb__id_error(rt, st)};
    }
    ebb__wf *parent = ebb__wf_parent(wf);
    if (wf->audit == NULL && parent != NULL) wf->audit = parent->audit;
    if (wf->audit == NULL) wf->number = ++workflows_at(rt)->number;
    wf->parent = number != 0 ? number : work_of(wf);
    bool inside = wf->parent != 0 && parent != NULL && is_in_unit(wf, parent);
    ebb__fact facts[] = {{"site", site, 0}, {"in_unit", NULL, 1}};
    ebb__wf_remark(wf, EBB__WE_OPENED, facts, inside ? 2 : 1);
    return ebb__wf_id(wf);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

void ebb__wf_wake_joiner(ebb__wf *wf) {
    if (wf->joiner.cx != NULL) ebb__waiter_wake(&wf->joiner);
}

static void report_of(const ebb__wf *wf, ebb_workflow_report *out) {
    *out = (ebb_workflow_report){.workflow = ebb__wf_id(wf),
                                 .state = wf->state,
                                 .status = wf->status,
                                 .elapsed = ebb__wf_elapsed(wf),
                                 .budget = ebb__wf_budget(wf),
                                 .cancelled = wf->cancelled,
                                 .drain_timed_out = wf->timed_out,
                                 .forced = wf->forced,
                                 .absorbed = wf->absorbed,
                                 .leaks = wf->leak_count,
                                 .unnamed = wf->leak_count - wf->leaks_n,
                                 .epoch = wf->epoch,
                                 .reason = wf->reason,
                                 .audit = wf->audit_status};
}

ebb_status ebb_workflow_report_of(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st == EBB_OK) report_of(wf, out);
    return st;
}

const char *ebb_workflow_refusal(ebb_cx *cx, ebb_workflow workflow) {
    ebb__wf *wf = NULL;
    return ebb__wf_find(cx, workflow, &wf) == EBB_OK ? wf->refusal : "";
}

/* ---- join ---------------------------------------------------------------------------------------------- */

static void leave_join(ebb_wait *w) {
    (void)w; /* the kernel ends the wait; there is no queue */
}
static const ebb_wait_kind joining = {"workflow", leave_join};

static ebb_status outcome(const ebb__wf *wf) {
    return wf->leak_count > 0 ? EBB_ERR_CANCEL_LEAK : wf->status;
}

/* A task inside the workflow that joins it would wait for itself. */
static bool is_inside(const ebb_cx *cx, const ebb__wf *wf) {
    const ebb_runtime *rt = ebb__rt_of(cx);
    const ebb__region *r = ebb__region_of(cx);
    ebb__region *top;
    if (ebb__is_host(cx) || ebb__region_get(rt, wf->region, &top) != EBB_OK) return false;
    while (r != NULL && r != top) r = ebb__region_parent(rt, r);
    return r == top;
}

/* Without a request it ends when its work has ended, now that somebody waits for that. */
static void end_when_idle(ebb_cx *cx, ebb__wf *wf) {
    if (wf->state != EBB_WORKFLOW_IDLE || wf->completing) return;
    ebb__region_joining(cx, wf->region);
    (void)ebb_task_wake(cx, wf->supervisor);
}

static ebb_status join(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    if (wf->joiner.cx != NULL && wf->joiner.cx != cx) return EBB_ERR_BUSY;
    if (is_inside(cx, wf)) return EBB_ERR_INVALID;
    if (wf->joiner.cx != NULL) ebb_wait_end(&wf->joiner);
    if (wf->ended || ebb__wf_is_overdue(wf)) {
        if (out != NULL) report_of(wf, out);
        if (!wf->ended) return EBB_ERR_CANCEL_DRAIN_TIMEOUT;
        st = outcome(wf);
        ebb__wf_free(wf);
        return st;
    }
    end_when_idle(cx, wf);
    if (cx == ebb_runtime_host(wf->rt)) return EBB_PENDING;
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    assert(wf->joiner.cx == NULL && !wf->ended);
    ebb_status began = ebb_wait_begin(cx, &wf->joiner, &joining, wf);
    return began == EBB_OK ? EBB_PENDING : began;
}

ebb_status ebb_workflow_join(ebb_cx *cx, ebb_workflow workflow, ebb_workflow_report *out) {
    ebb_status st;
    EBB__AWAIT(cx, st, join(cx, workflow, out));
    return st;
}

ebb_future *ebb_workflow_ended_site(ebb_cx *cx, ebb_workflow workflow, const char *site) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st == EBB_ERR_STALE || (st == EBB_OK && wf->ended))
        return ebb_future_ready_site(cx, ebb_value_none(), site);
    if (st == EBB_OK && is_inside(cx, wf)) st = EBB_ERR_INVALID;
    if (st != EBB_OK) return ebb_future_failed_site(cx, st, site);
    ebb_future *f = ebb_region_closed_site(cx, wf->region, site);
    if (ebb_future_status_of(f) == EBB_PENDING) end_when_idle(cx, wf);
    return f;
}
