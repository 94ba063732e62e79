/* The runtimes of machines of one ebb_runtime: where they stand, and what keeps their ids apart. */
#include "machine/machine.h"

#include "base/alloc.h"

/* ---- the layer ---------------------------------------------------------------------------------------------------- */

static ebb__machine_layer *layer_of(const ebb_runtime *rt) {
    return ebb__layer_record(rt, EBB__MACHINE_SLOT);
}

static void detach(ebb_machines *ms) {
    ms->cx = NULL;
    ms->wait.cx = NULL;
    ebb__ports_gone(ms);
}

static void runtime_freed(ebb_runtime *rt) {
    ebb__machine_layer *layer = layer_of(rt);
    for (uint32_t i = 0; i < layer->n; i++) {
        ebb_machines *ms = layer->sets[i].ms;
        if (ms == NULL) continue;
        detach(ms);
        ebb__calls_end(ms);
        ms->rt = NULL;
        ms->set = NULL;
    }
    ebb_allocator a = layer->allocator;
    ebb__free(&a, layer, sizeof *layer);
}

/* A dispatcher may be abandoned. */
static void task_ended(ebb_cx *cx, ebb_status status) {
    const ebb__machine_layer *layer = layer_of(ebb__rt_of(cx));
    (void)status;
    for (uint32_t i = 0; i < layer->n; i++) {
        if (layer->sets[i].ms != NULL && layer->sets[i].ms->cx == cx) detach(layer->sets[i].ms);
    }
}

static void unit_closed(ebb_runtime *rt) {
    for (ebb_machines *ms = NULL; (ms = ebb__machines_next(rt, ms)) != NULL;) ebb__dispatcher_unit_closed(ms);
}

static void show(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    for (ebb_machines *ms = NULL; (ms = ebb__machines_next(rt, ms)) != NULL;)
        ebb_machines_dump(ms, write, ctx);
}

static const ebb__layer machine_layer = {
    .slot = EBB__MACHINE_SLOT,
    .hooks = {.freed = runtime_freed, .task_ended = task_ended, .unit_closed = unit_closed, .shown = show}};

static ebb_status add_layer(ebb_runtime *rt, ebb__machine_layer **out) {
    const ebb_allocator *a = ebb__rt_allocator(rt);
    ebb__machine_layer *layer = ebb__alloc(a, sizeof *layer);
    if (layer == NULL) return EBB_ERR_NOMEM;
    memset(layer, 0, sizeof *layer);
    layer->allocator = *a;
    ebb_status st = ebb__layer_add(rt, &machine_layer, layer);
    if (st != EBB_OK) ebb__free(a, layer, sizeof *layer);
    else *out = layer;
    return st;
}

/* ---- sets --------------------------------------------------------------------------------------------------------- */

ebb_machines *ebb__machines_next(const ebb_runtime *rt, const ebb_machines *after) {
    const ebb__machine_layer *layer = layer_of(rt);
    uint32_t i = after == NULL || layer == NULL ? 0 : (uint32_t)(after->set - layer->sets) + 1;
    for (; layer != NULL && i < layer->n; i++) {
        if (layer->sets[i].ms != NULL && layer->sets[i].ms->cx != NULL) return layer->sets[i].ms;
    }
    return NULL;
}

ebb_machines *ebb__machines_of(const ebb_runtime *rt, uint64_t id) {
    const ebb__machine_layer *layer = layer_of(rt);
    uint32_t i = (uint32_t)id >> EBB__SET_SHIFT;
    if (layer == NULL || i >= layer->n || id >> 56 != ebb__rt_id(rt)) return NULL;
    ebb_machines *ms = layer->sets[i].ms;
    return ms != NULL && ms->cx != NULL ? ms : NULL;
}

ebb_machines *ebb__machines_in(const ebb_runtime *rt, ebb_region region) {
    const ebb__machine_layer *layer = layer_of(rt);
    for (uint32_t i = 0; layer != NULL && i < layer->n; i++) {
        ebb_machines *ms = layer->sets[i].ms;
        if (ms != NULL && ms->region.id == region.id) return ms;
    }
    return NULL;
}

/* The first that is free: with one runtime of machines at a time, it is always the same. */
ebb_status ebb__machine_set_of(ebb_runtime *rt, ebb__machine_set **out) {
    ebb__machine_layer *layer = layer_of(rt);
    ebb_status st = layer == NULL ? add_layer(rt, &layer) : EBB_OK;
    uint32_t i = 0;
    if (st != EBB_OK) return st;
    while (i < layer->n && (layer->sets[i].ms != NULL || layer->sets[i].used_up)) i++;
    if (i == EBB_MACHINES_MAX) return EBB_ERR_LIMIT;
    *out = &layer->sets[i];
    if (i < layer->n) return EBB_OK;
    **out = (ebb__machine_set){.layer = layer,
                               .generation = (i << EBB__SET_SHIFT) + 1,
                               .request_generation = (i << EBB__SET_SHIFT) + 1};
    layer->n++;
    return EBB_OK;
}

static void add_counters(ebb_machines_stats *to, const ebb_machines_stats *s) {
    to->dispatched += s->dispatched;
    to->committed += s->committed;
    to->rolled_back += s->rolled_back;
    to->dead += s->dead;
    to->ignored += s->ignored;
    to->refused += s->refused;
    to->requests += s->requests;
    to->faults += s->faults;
    to->full += s->full;
}

void ebb__machines_total(const ebb_runtime *rt, ebb_machines_stats *out) {
    const ebb__machine_layer *layer = layer_of(rt);
    *out = (ebb_machines_stats){0};
    if (layer == NULL) return;
    *out = layer->gone;
    for (uint32_t i = 0; i < layer->n; i++) {
        ebb_machines_stats s;
        if (layer->sets[i].ms == NULL) continue;
        ebb_machines_stats_of(layer->sets[i].ms, &s);
        add_counters(out, &s);
        out->machines += s.machines;
        out->queued += s.queued;
        out->pending += s.pending;
        out->timers += s.timers;
    }
}

/* The next runtime of machines at this place begins with higher generations. */
static void raise(ebb__machine_set *set, uint32_t *first, uint32_t generation) {
    if (generation < *first) return;
    *first = generation + 1;
    set->used_up |= ebb__generation_is_last(generation);
}

void ebb__machine_set_leave(ebb_machines *ms) {
    ebb__machine_set *set = ms->set;
    for (uint32_t i = 1; i < ms->machines.used; i++)
        raise(set, &set->generation, ebb__machine_at(ms, i)->generation);
    for (uint32_t i = 1; i < ms->pendings.used; i++)
        raise(set, &set->request_generation, ebb__pending_at(ms, i)->generation);
    add_counters(&set->layer->gone, &ms->stats);
    set->ms = NULL;
}
