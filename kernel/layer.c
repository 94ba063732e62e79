/* Functions of kernel/layer.h that belong to no other file of the kernel: registering layers, and accessors. */
#include "kernel/admit.h"
#include "kernel/clock.h"
#include "kernel/lane.h"
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"
#include "kernel/wait.h"

/* ---- hooks of several layers --------------------------------------------------------------------------- */

#define FOR_EACH(rt, hook)                                                                                   \
    for (unsigned i = 0; i < EBB__LAYERS; i++)                                                               \
        if ((rt)->layers.layer[i] != NULL && (rt)->layers.layer[i]->hooks.hook != NULL)                      \
    (rt)->layers.layer[i]->hooks.hook

static bool park_each(ebb_cx *cx) {
    const ebb__layers *l = &ebb__task_of(cx)->rt->layers;
    for (unsigned i = 0; i < EBB__LAYERS; i++) {
        if (l->layer[i] != NULL && l->layer[i]->hooks.park != NULL && l->layer[i]->hooks.park(cx))
            return true;
    }
    return false;
}

static void await_refused_each(ebb_cx *cx) {
    FOR_EACH(ebb__task_of(cx)->rt, await_refused)(cx);
}

static void task_ended_each(ebb_cx *cx, ebb_status status) {
    FOR_EACH(ebb__task_of(cx)->rt, task_ended)(cx, status);
}

static void leaked_each(ebb_runtime *rt, const ebb__leak *leak) {
    FOR_EACH(rt, leaked)(rt, leak);
}

static void admission_each(ebb_runtime *rt, const ebb__region *r, bool refused) {
    FOR_EACH(rt, admission)(rt, r, refused);
}

static void ended_each(ebb_runtime *rt, ebb_task task, ebb_region region) {
    FOR_EACH(rt, ended)(rt, task, region);
}

static void unit_closed_each(ebb_runtime *rt) {
    FOR_EACH(rt, unit_closed)(rt);
}

static bool described_each(ebb_runtime *rt, const ebb__region *r, char *out, size_t room) {
    const ebb__layers *l = &rt->layers;
    for (unsigned i = 0; i < EBB__LAYERS; i++) {
        if (l->layer[i] != NULL && l->layer[i]->hooks.described != NULL &&
            l->layer[i]->hooks.described(rt, r, out, room))
            return true;
    }
    return false;
}

static void shown_each(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    FOR_EACH(rt, shown)(rt, write, ctx);
}

static void freed_each(ebb_runtime *rt) {
    FOR_EACH(rt, freed)(rt);
}

/* A hook of a single layer is called directly. */
#define COMBINE(l, hook, each)                                                                               \
    if ((l)->hooks.hook != NULL) call->hook = call->hook == NULL ? (l)->hooks.hook : (each)

static void combine(ebb_runtime *rt) {
    ebb__hooks *call = &rt->layers.call;
    *call = (ebb__hooks){0};
    for (unsigned i = 0; i < EBB__LAYERS; i++) {
        const ebb__layer *l = rt->layers.layer[i];
        if (l == NULL) continue;
        COMBINE(l, park, park_each);
        COMBINE(l, await_refused, await_refused_each);
        COMBINE(l, task_ended, task_ended_each);
        COMBINE(l, leaked, leaked_each);
        COMBINE(l, admission, admission_each);
        COMBINE(l, ended, ended_each);
        COMBINE(l, unit_closed, unit_closed_each);
        COMBINE(l, described, described_each);
        COMBINE(l, shown, shown_each);
        COMBINE(l, freed, freed_each);
    }
}

ebb_status ebb__layer_add(ebb_runtime *rt, const ebb__layer *layer, void *record) {
    if (layer->slot >= EBB__LAYERS || record == NULL) return EBB_ERR_INVALID;
    if (rt->layers.layer[layer->slot] != NULL) return EBB_ERR_BUSY;
    rt->layers.layer[layer->slot] = layer;
    rt->layers.record[layer->slot] = record;
    combine(rt);
    return EBB_OK;
}

void ebb__layer_remove(ebb_runtime *rt, const ebb__layer *layer) {
    assert(rt->layers.layer[layer->slot] == layer);
    rt->layers.layer[layer->slot] = NULL;
    rt->layers.record[layer->slot] = NULL;
    combine(rt);
}

/* ---- a runtime ----------------------------------------------------------------------------------------- */

const ebb_allocator *ebb__rt_allocator(const ebb_runtime *rt) {
    return &rt->allocator;
}

bool ebb__rt_is_pumping(const ebb_runtime *rt) {
    return rt->pumping;
}

uint32_t ebb__rt_lane(const ebb_runtime *rt, ebb_lane lane) {
    return ebb__lane_count(rt, lane);
}

uint64_t ebb__rt_polls(const ebb_runtime *rt) {
    return rt->stats.polls;
}

uint64_t ebb__rt_tasks(const ebb_runtime *rt) {
    return rt->stats.spawned - rt->stats.ended - rt->standby;
}

void ebb__rt_standby(ebb_runtime *rt, int by) {
    assert(by > 0 || rt->standby >= (uint32_t)-by);
    rt->standby += (uint32_t)by;
}

uint64_t ebb__rt_due(const ebb_runtime *rt) {
    bool runs = (ebb__ready_count(rt) | rt->cancel_count | rt->timed.n | rt->sweep_head) != 0;
    return runs ? rt->now : rt->wheel.quiet_until;
}

bool ebb__task_unwatch(ebb_cx *cx) {
    ebb__task *t = ebb__task_of(cx);
    if ((t->flags & F_COLD) != F_WAIT || ebb__cold_at(t->rt, t->index)->wait != NULL) return false;
    t->flags &= ~(uint32_t)F_WAIT;
    return true;
}

uint64_t ebb__rt_bytes(const ebb_runtime *rt) {
    return ebb__slab_bytes(&rt->tasks) + ebb__slab_bytes(&rt->regions) + ebb__slab_bytes(&rt->obligations) +
           ebb__slab_bytes(&rt->timers) + ebb__slab_bytes(&rt->reasons);
}

uint64_t ebb__rt_events(const ebb_runtime *rt) {
    return rt->trace != NULL ? rt->trace->seq : 0;
}

bool ebb__rt_is_traced(const ebb_runtime *rt) {
    return rt->trace != NULL;
}

ebb_cx *ebb__current_cx(ebb_runtime *rt) {
    return rt->current != NULL ? &rt->current->cx : &rt->host.cx;
}

uint32_t ebb__rt_choose(ebb_runtime *rt, uint32_t n) {
    uint32_t nth = rt->choose == NULL ? 0 : rt->choose(rt->choose_ctx, n);
    return nth < n ? nth : 0;
}

void ebb__rt_set_stepped(ebb_runtime *rt, bool on) {
    rt->stepped = on;
}

bool ebb__rt_is_stepped(const ebb_runtime *rt) {
    return rt->stepped;
}

void ebb__rt_set_short_pumps(ebb_runtime *rt, bool on) {
    rt->short_pumps = on;
}

void ebb__rt_confine(ebb_runtime *rt, bool on) {
    rt->confined = on;
}

ebb_status ebb__rt_reserve_obligation(ebb_runtime *rt) {
    return ebb__slab_reserve(&rt->obligations, &rt->allocator);
}

void ebb__clock_refresh(ebb_runtime *rt) {
    ebb__clock_read(rt);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

ebb_cx *ebb__task_cx(const ebb_runtime *rt, ebb_task id, ebb_status *st) {
    ebb__task *t;
    ebb_status found = ebb__find_task(rt, id, &t);
    if (found == EBB_OK && t->phase == EBB_TASK_COMPLETED) found = EBB_ERR_STALE;
    if (st != NULL) *st = found;
    return found == EBB_OK ? &t->cx : NULL;
}

bool ebb__is_overdue(const ebb_cx *cx) {
    return ebb__task_is_overdue(ebb__task_of(cx));
}

bool ebb__is_masked(const ebb_cx *cx) {
    return ebb__task_of(cx)->mask > 0;
}

bool ebb__has_returned(const ebb_cx *cx) {
    return (ebb__task_of(cx)->flags & F_RETURNED) != 0;
}

uint8_t ebb__task_severity(const ebb_cx *cx) {
    return ebb__request_severity(ebb__task_of(cx)->request);
}

static const char *doing(const ebb__task *t, const ebb_wait *w) {
    if (t->queue != EBB_LANE_NONE) return "about to be polled";
    if (t->flags & F_IN_FINALIZER) return "in a finalizer";
    if (t->flags & F_RETURNED) return "waits for its regions";
    if (t->flags & F_JOINING) return "joins";
    return w != NULL ? w->kind->what : "parked";
}

static ebb__task_view task_view(const ebb_runtime *rt, const ebb__task *t) {
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    uint32_t ticks = (uint32_t)(rt->now >> EBB__BORN_SHIFT) - c->born;
    uint64_t age = ((uint64_t)ticks << EBB__BORN_SHIFT) / EBB_MS;
    bool waits = t->queue == EBB_LANE_NONE && c->wait != NULL && !(t->flags & (F_RETURNED | F_JOINING));
    return (ebb__task_view){.id = ebb__task_id(t),
                            .region = {ebb__region_id(rt, ebb__region_at(rt, t->region))},
                            .site = c->site,
                            .phase = (ebb_task_phase)t->phase,
                            .age_ms = t->flags & F_OWN_CANCEL ? UINT64_MAX : age,
                            .masked = t->mask > 0,
                            .in_finalizer = (t->flags & F_IN_FINALIZER) != 0,
                            .doing = doing(t, c->wait),
                            .waits = waits,
                            .wait = waits ? c->wait : NULL};
}

static bool see_task(const ebb_runtime *rt, uint32_t i, void (*each)(void *, const ebb__task_view *),
                     void *ctx) {
    const ebb__task *t = ebb__task_at(rt, i);
    if (t->phase == 0 || t->phase == EBB_TASK_COMPLETED || t->flags & F_CLOSER) return false;
    ebb__task_view view = task_view(rt, t);
    each(ctx, &view);
    return true;
}

void ebb__tasks_each(const ebb_runtime *rt, ebb__region *r, void (*each)(void *ctx, const ebb__task_view *t),
                     void *ctx) {
    const uint32_t *tasks = r == NULL ? NULL : ebb__u32s_data(&r->tasks);
    for (uint32_t i = 0; r != NULL && i < r->tasks.n; i++) (void)see_task(rt, tasks[i], each, ctx);
    for (uint32_t i = 1; r == NULL && i < rt->tasks.used; i++) (void)see_task(rt, i, each, ctx);
}

uint32_t ebb__tasks_some(const ebb_runtime *rt, ebb__region *r, uint32_t most,
                         void (*each)(void *ctx, const ebb__task_view *t), void *ctx) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    uint32_t n = r->tasks.n < most ? r->tasks.n : most;
    for (uint32_t i = 0; i < n; i++) (void)see_task(rt, tasks[i], each, ctx);
    return n;
}

bool ebb__task_look(const ebb_runtime *rt, ebb_task id, void (*each)(void *ctx, const ebb__task_view *t),
                    void *ctx) {
    ebb__task *t;
    return ebb__find_task(rt, id, &t) == EBB_OK && see_task(rt, t->index, each, ctx);
}

void ebb__waiter_wake(const ebb_wait *w) {
    ebb__wake_waiter(w);
}

/* ---- callback runners ---------------------------------------------------------------------------------- */

bool ebb__is_runner_slow(const ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    return ebb__task_is_runner(t->rt, t);
}

ebb__runner_view ebb__runner_look(const ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    const ebb__region *r = ebb__region_at(t->rt, t->region);
    bool overdue = ebb__task_is_overdue(t);
    return (ebb__runner_view){.request = ebb__request_kind(t->request),
                              .overdue = overdue,
                              .masked = t->mask > 0,
                              .closing = ebb__is_closing(r),
                              .last = ebb__runner_is_last(r),
                              .last_poll = overdue && ebb__cold_at(t->rt, t->index)->force_left == 0};
}

/* ---- regions ------------------------------------------------------------------------------------------- */

ebb_status ebb__region_get(const ebb_runtime *rt, ebb_region id, ebb__region **out) {
    return ebb__find_region(rt, id, out);
}

bool ebb__region_is_owned(const ebb_cx *cx, const ebb__region *r) {
    return r->owner == ebb__task_face_of(cx)->index && !(r->flags & (R_HOOK | R_ROOT));
}

ebb__region *ebb__region_of(const ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    return ebb__region_at(t->rt, t->region);
}

ebb_region_state ebb__region_state(const ebb__region *r) {
    return (ebb_region_state)r->state;
}

ebb_region ebb__region_name(const ebb_runtime *rt, const ebb__region *r) {
    return (ebb_region){ebb__region_id(rt, r)};
}

ebb__region *ebb__region_parent(const ebb_runtime *rt, const ebb__region *r) {
    return r->flags & R_ROOT ? NULL : ebb__region_at(rt, r->parent);
}

ebb__region *ebb__region_next(ebb_runtime *rt, const ebb__region *r, const ebb__region *top, bool into) {
    rt->visits++;
    return ebb__region_after(rt, ebb__region_at(rt, r->index), top, into);
}

void *ebb__region_hook_arg(const ebb__region *r,
                           void (*on_closed)(void *arg, const ebb_region_report *report)) {
    return r->flags & R_HOOK && ebb__cold_of(r)->on_closed == on_closed ? ebb__cold_of(r)->arg : NULL;
}

ebb__callbacks *ebb__region_callbacks(const ebb__region *r) {
    return r->callbacks;
}

uint32_t ebb__region_tasks(const ebb_runtime *rt, ebb__region *r) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->tasks.n; i++) n += !(ebb__task_at(rt, tasks[i])->flags & F_CLOSER);
    return n;
}

bool ebb__region_is(const ebb_runtime *rt, const ebb__region *r, ebb__region_trait trait) {
    switch (trait) {
    case EBB__REGION_ROOT: return r->flags & R_ROOT;
    case EBB__REGION_UNIT: return r->flags & R_UNIT;
    case EBB__REGION_CLEANUP: return r->flags & R_CLEANUP;
    case EBB__REGION_FORCED: return r->flags & R_FORCED;
    case EBB__REGION_CLOSING: return ebb__is_closing(r);
    case EBB__REGION_ENDS: return r->flags & (R_JOINING | R_ENDS);
    case EBB__REGION_APART: return r->flags & R_OPERATOR && ebb__region_at(rt, r->parent)->flags & R_APART;
    case EBB__REGION_ALONE: return ebb__supervisor_is_last(r);
    }
    return false;
}

bool ebb__region_is_cancelled(ebb_runtime *rt, ebb_region region) {
    ebb__region *r;
    return ebb__region_get(rt, region, &r) != EBB_OK || r->request != 0;
}

uint8_t ebb__region_request(const ebb__region *r) {
    return ebb__request_kind(r->request);
}

uint8_t ebb__region_severity(const ebb__region *r) {
    return ebb__request_severity(r->request);
}

uint64_t ebb__region_deadline(const ebb__region *r) {
    return r->deadline;
}

uint64_t ebb__region_force_at(const ebb__region *r) {
    return r->force_at;
}

const char *ebb__region_message(const ebb__region *r) {
    return ebb__cold_of(r)->message;
}

const char *ebb__region_site(const ebb__region *r) {
    return ebb__cold_of(r)->site;
}

ebb__region_view ebb__region_look(const ebb__region *r) {
    const ebb__region_cold *c = ebb__cold_of(r);
    return (ebb__region_view){.state = (ebb_region_state)r->state,
                              .request = ebb__request_kind(r->request),
                              .severity = ebb__request_severity(r->request),
                              .epoch = ebb__request_epoch(r->request),
                              .status = r->status,
                              .depth = c->depth,
                              .tasks = r->tasks.n,
                              .children = r->children.n,
                              .obligations = c->obligations,
                              .abandoned = c->abandoned,
                              .leaked = c->leaked,
                              .failed = c->failed,
                              .deadline = r->deadline,
                              .message = c->message};
}

const ebb__region *ebb__region_cause(const ebb_runtime *rt, const ebb__region *r) {
    while (ebb__request_kind(r->request) == EBB_CANCEL_PARENT && r->parent != 0) {
        r = ebb__region_at(rt, r->parent);
    }
    return r;
}

/* ---- obligations --------------------------------------------------------------------------------------- */

static void see_obligations(const ebb_runtime *rt, uint32_t i,
                            void (*each)(void *, const ebb__obligation_view *), void *ctx) {
    for (; i != 0; i = ebb__obligation_at(rt, i)->next) {
        const ebb__obligation *d = ebb__obligation_at(rt, i);
        ebb__obligation_view view = {.id = ebb__obligation_id(rt, d),
                                     .kind = d->kind,
                                     .finalize = d->kind == 0 ? d->fn.finalize : NULL,
                                     .arg = d->arg,
                                     .site = d->site,
                                     .since = d->since};
        each(ctx, &view);
    }
}

void ebb__task_obligations(const ebb_runtime *rt, ebb_task task,
                           void (*each)(void *ctx, const ebb__obligation_view *o), void *ctx) {
    ebb__task *t;
    if (ebb__find_task(rt, task, &t) != EBB_OK || !(t->flags & F_OWES)) return;
    see_obligations(rt, ebb__cold_at(rt, t->index)->owed, each, ctx);
}

void ebb__region_obligations(const ebb_runtime *rt, const ebb__region *r,
                             void (*each)(void *ctx, const ebb__obligation_view *o), void *ctx) {
    see_obligations(rt, r->owed, each, ctx);
}
