/* Drain handlers: tasks in the drain region that wait for the drain to start. They exist from the beginning, so that
 * the start needs no memory. */
#include "workflow/workflow.h"

/* ---- running ------------------------------------------------------------------------------------------- */

static bool may_run(const ebb__wf *wf) {
    return wf->state != EBB_WORKFLOW_IDLE || wf->completing;
}

static ebb_status finish(ebb_drain *d, ebb_status st) {
    ebb__fact facts[] = {{"handler", d->name, 0},
                         {"status", ebb_status_name(st), 0},
                         {"done", NULL, d->done},
                         {"total", NULL, d->total}};
    assert(!d->ended && !d->wf->ended); /* a workflow ends after its handlers */
    d->ended = true;
    d->status = st;
    ebb__wf_catch_up(d->wf);
    ebb__wf_remark(d->wf, EBB__WE_HANDLER_DONE, facts, 4);
    return st;
}

static ebb_status poll(ebb_cx *cx, void *state) {
    ebb_drain *d = state;
    if (!may_run(d->wf)) return EBB_PENDING;
    if (d->wf->completing) return EBB_OK;
    ebb_status st = d->fn(cx, d, d->arg);
    return st == EBB_PENDING ? st : finish(d, st);
}

static ebb_status run(ebb_cx *cx, void *state) {
    ebb_drain *d = state;
    while (!may_run(d->wf)) (void)ebb_fiber_park(cx);
    if (d->wf->completing) return EBB_OK;
    return finish(d, d->fn(cx, d, d->arg));
}

void ebb__wf_handlers_wake(ebb_cx *cx, ebb__wf *wf) {
    assert(may_run(wf));
    for (ebb_drain *d = wf->handlers; d != NULL; d = d->next) {
        ebb__rt_standby(wf->rt, -1);
        (void)ebb_task_wake(cx, d->task);
    }
}

void ebb__wf_handlers_free(ebb__wf *wf) {
    while (wf->handlers != NULL) {
        ebb_drain *d = wf->handlers;
        wf->handlers = d->next;
        ebb__free(ebb__rt_allocator(wf->rt), d, sizeof *d);
    }
}

/* ---- adding -------------------------------------------------------------------------------------------- */

static ebb_status add(ebb_cx *cx, ebb_workflow workflow, const ebb_drain *model, bool fiber) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    if (model->fn == NULL || model->name == NULL) return EBB_ERR_INVALID;
    ebb__wf_catch_up(wf);
    st = ebb__wf_do(cx, wf, EBB__T_ADD_HANDLER, NULL, 0);
    if (st != EBB_OK) return st;
    if (wf->completing) return EBB_ERR_CLOSED;
    ebb_drain *d = ebb__alloc(ebb__rt_allocator(wf->rt), sizeof *d);
    if (d == NULL)
        return ebb_id_status(ebb__spawn_refused(cx, wf->drain_region, EBB_ERR_NOMEM, model->site).id);
    *d = *model;
    d->wf = wf;
    d->task = fiber ? ebb_fiber_spawn_site(cx, wf->drain_region, run, d, NULL, d->site)
                    : ebb_spawn_site(cx, wf->drain_region, poll, d, d->site);
    st = ebb_id_status(d->task.id);
    if (st != EBB_OK) {
        ebb__free(ebb__rt_allocator(wf->rt), d, sizeof *d);
        return st;
    }
    *wf->handlers_end = d;
    wf->handlers_end = &d->next;
    ebb__rt_standby(wf->rt, 1);
    return EBB_OK;
}

ebb_status ebb_workflow_on_drain_site(ebb_cx *cx, ebb_workflow workflow, const char *name, ebb_drain_fn fn,
                                      void *arg, const char *site) {
    return add(cx, workflow, &(ebb_drain){.fn = fn, .arg = arg, .name = name, .site = site}, false);
}

ebb_status ebb_workflow_on_drain_fiber_site(ebb_cx *cx, ebb_workflow workflow, const char *name,
                                            ebb_drain_fn fn, void *arg, const char *site) {
    return add(cx, workflow, &(ebb_drain){.fn = fn, .arg = arg, .name = name, .site = site}, true);
}

/* ---- for handlers -------------------------------------------------------------------------------------- */

uint64_t ebb_drain_left(ebb_cx *cx, const ebb_drain *d) {
    uint64_t now = ebb_now(cx);
    return d->wf->end > now ? d->wf->end - now : 0;
}

void ebb_drain_progress(ebb_drain *d, uint64_t done, uint64_t total) {
    d->done = done;
    d->total = total;
}

void ebb_drain_evidence(ebb_drain *d, const char *key, const char *value) {
    ebb__fact facts[] = {{"handler", d->name, 0},
                         {"key", key == NULL ? "" : key, 0},
                         {"value", value == NULL ? "" : value, 0}};
    ebb__wf_catch_up(d->wf);
    ebb__wf_remark(d->wf, EBB__WE_EVIDENCE, facts, 3);
}

ebb_workflow ebb_drain_workflow(const ebb_drain *d) {
    return ebb__wf_id(d->wf);
}
