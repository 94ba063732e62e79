/* A runtime of machines: opened in a region of its own, and freed. */
#include "machine/machine.h"

#include "base/alloc.h"
#include "base/opts.h"

#include <assert.h>

enum { RECORDS_SHIFT = 7, ARENA_CHUNK = 4096 };

void ebb__machine_note_slow(const ebb_machines *ms, uint8_t type, uint64_t task, uint64_t region,
                            uint32_t value, uint64_t other) {
    ebb__note_slow(
        ms->rt, &(ebb__note){.type = type, .value = value, .task = task, .region = region, .other = other});
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static void init(ebb_machines *ms, ebb_runtime *rt) {
    ms->rt = rt;
    ms->allocator = *ebb__rt_allocator(rt);
    ms->log_end = &ms->log;
    ms->dead_end = &ms->dead;
    ms->answers_end = &ms->answers;
    ms->timer_due = EBB_FOREVER;
    if (ms->opts.max_pending == 0) ms->opts.max_pending = EBB_MACHINE_PENDING;
    ebb__slab_init(&ms->machines, sizeof(ebb__machine), sizeof(ebb__machine_past), EBB__MACHINE_SHIFT,
                   ms->opts.max_machines);
    ebb__slab_init(&ms->pendings, EBB__PENDING_BYTES, sizeof(ebb__pending_more), RECORDS_SHIFT, 0);
    ebb__slab_init(&ms->alarms, sizeof(ebb__alarm), 0, RECORDS_SHIFT, 0);
    ebb__slab_init(&ms->topics, sizeof(ebb__topic), 0, RECORDS_SHIFT, 0);
    ebb__slab_init(&ms->subscriptions, sizeof(ebb__subscription), 0, RECORDS_SHIFT, 0);
    ebb__slab_init(&ms->ports, sizeof(ebb__port), 0, RECORDS_SHIFT, 0);
    ebb__cells_init(&ms->cells, sizeof(ebb__cell));
    ebb__cells_init(&ms->mores, sizeof(ebb__machine_more));
    ebb__map_init(&ms->topic_of, ms->allocator, sizeof(uint32_t));
    ebb__map_init(&ms->port_of, ms->allocator, sizeof(uint32_t));
    ebb__arena_init(&ms->arena, ms->allocator, ARENA_CHUNK);
    ebb__wheel_init(&ms->wheel, ebb__now(rt));
    ebb__wheel_source(&ms->wheel, EBB__WHEEL_PENDING, &ms->pendings, offsetof(ebb__pending, node), false);
    ebb__wheel_source(&ms->wheel, EBB__WHEEL_ALARM, &ms->alarms, offsetof(ebb__alarm, node), false);
}

/* Opens the region and spawns the dispatcher. */
static ebb_status begin(ebb_cx *cx, ebb_machines *ms, const char *site) {
    ms->region = ebb_region_open_site(cx, &(ebb_region_opts){.parent = ms->opts.parent}, site);
    ebb_status st = ebb_id_status(ms->region.id);
    if (st != EBB_OK) return st;
    ms->task = ebb_spawn_site(cx, ms->region, ebb__dispatcher_poll, ms, site);
    st = ebb_id_status(ms->task.id);
    if (st == EBB_OK) {
        ms->cx = ebb__task_cx(ms->rt, ms->task, &st);
        ebb__task_watch(ms->cx);
        return EBB_OK;
    }
    ebb_region_close(cx, ms->region);
    ebb__region_joining(cx, ms->region);
    return st;
}

static ebb_status open_with(ebb_cx *cx, const ebb_machines_opts *opts, ebb_machines **out, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__machine_set *set;
    ebb_status st = ebb__machine_set_of(rt, &set);
    if (st != EBB_OK) return st;
    ebb_machines *ms = ebb__alloc(ebb__rt_allocator(rt), sizeof *ms);
    if (ms == NULL) return EBB_ERR_NOMEM;
    memset(ms, 0, sizeof *ms);
    ms->opts = *opts;
    init(ms, rt);
    st = begin(cx, ms, site);
    if (st != EBB_OK) {
        ebb__free(&ms->allocator, ms, sizeof *ms);
        return st;
    }
    ms->set = set;
    ms->request_generation = set->request_generation;
    set->ms = *out = ms;
    return EBB_OK;
}

ebb_status ebb_machines_open_site(ebb_cx *cx, ebb_machines **out, const ebb_machines_opts *opts,
                                  const char *site) {
    ebb_machines_opts known;
    *out = NULL;
    ebb_status st = EBB__OPTS_COPY(&known, opts);
    if (st != EBB_OK) return st;
    if (known.n_kinds == 0 || known.n_kinds > UINT16_MAX + 1u) return EBB_ERR_INVALID;
    return open_with(cx, &known, out, site);
}

ebb_region ebb_machines_region(const ebb_machines *ms) {
    return ms->region;
}

const ebb_machine_kind *ebb_machines_kind(const ebb_machines *ms, uint16_t kind) {
    return ms->opts.kinds == NULL || kind >= ms->opts.n_kinds ? NULL : &ms->opts.kinds[kind];
}

/* ---- freeing -------------------------------------------------------------------------------------------------------- */

/* What is left if the dispatcher could not drain: the runtime was freed, or it was abandoned. */
static void free_mailbox(ebb_machines *ms, ebb__machine *m) {
    ebb__cell *c = m->last == NULL ? NULL : m->last->next;
    for (bool more = c != NULL; more;) {
        ebb__cell *next = c->next;
        more = c != m->last;
        if (c->what != EBB__REQUEST) ebb__cell_free(ms, c);
        c = next;
    }
    if (m->type->t.settle != NULL)
        m->type->t.settle(m->type->given, true, m->state, m->fields, m->state, NULL);
}

static void free_leftovers(ebb_machines *ms) {
    for (uint32_t i = 1; i < ms->machines.used; i++) {
        ebb__machine *m = ebb__machine_at(ms, i);
        if (m->type != NULL && m->lifecycle != EBB_MACHINE_STOPPED) free_mailbox(ms, m);
    }
    for (uint32_t i = 1; i < ms->alarms.used; i++) {
        ebb__alarm *a = ebb__alarm_at(ms, i);
        bool armed = a->cell != NULL && ebb__wheel_armed(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_ALARM, i));
        if (armed) ebb__cell_free(ms, a->cell);
    }
    for (uint32_t i = 1; i < ms->pendings.used; i++) {
        ebb__pending *p = ebb__pending_at(ms, i);
        if (!(p->flags & (EBB__WANTED | EBB__OWED))) continue;
        ebb__cell_free(ms, p->origin);
        if (p->answer != NULL) ebb__cell_free(ms, p->answer);
    }
}

ebb_status ebb_machines_free(ebb_machines *ms) {
    if (ms == NULL) return EBB_OK;
    if (ms->cx != NULL) return EBB_ERR_BUSY;
    if (ms->rt != NULL) ebb__calls_end(ms); /* of a dispatcher that was abandoned */
    free_leftovers(ms);
    assert(ms->cells.used == 0);
    if (ms->rt != NULL) ebb__machine_set_leave(ms);
    ebb_allocator a = ms->allocator;
    ebb__machine_types_free(ms);
    ebb__slab *slabs[] = {&ms->machines, &ms->pendings,      &ms->alarms,
                          &ms->topics,   &ms->subscriptions, &ms->ports};
    for (size_t i = 0; i < sizeof slabs / sizeof *slabs; i++) ebb__slab_fini(slabs[i], &a);
    ebb__cells_free(&ms->cells, &a);
    ebb__cells_free(&ms->mores, &a);
    ebb__map_free(&ms->topic_of);
    ebb__map_free(&ms->port_of);
    ebb__arena_free(&ms->arena);
    ebb__free(&a, ms->shadow, ms->shadow_size);
    ebb__free(&a, ms, sizeof *ms);
    return EBB_OK;
}

/* ---- asking ---------------------------------------------------------------------------------------------------------- */

void ebb_machines_stats_of(const ebb_machines *ms, ebb_machines_stats *out) {
    *out = ms->stats;
    out->machines = ms->n_machines;
    out->queued = ms->queued;
    out->pending = ms->pendings.live;
    out->timers = ms->alarms.live;
    out->subscriptions = ms->subscriptions.live;
    out->cells = ms->cells.used;
}

bool ebb_machines_is_idle(const ebb_machines *ms) {
    return ms->n_ready == 0 && ms->running == NULL;
}
