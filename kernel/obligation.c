#include "kernel/obligation.h"

#include <assert.h>

#include "kernel/admit.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"
#include "kernel/watchdog.h"

/* Each owner has one list: its finalizers, the last added first, then its obligations, the last reserved last. So
 * the next finalizer and the next leak are at the two ends. The head's `prev` is the last. */

/* ---- the lists ----------------------------------------------------------------------------------------- */

static uint32_t *head_of(ebb_runtime *rt, const ebb__obligation *d) {
    return d->task != 0 ? &ebb__cold_at(rt, d->task)->owed : &ebb__region_at(rt, d->region)->owed;
}

static void link_obligation(ebb_runtime *rt, ebb__obligation *d) {
    uint32_t *head = head_of(rt, d);
    if (*head == 0) {
        d->prev = *head = d->index;
        return;
    }
    ebb__obligation *first = ebb__obligation_at(rt, *head), *last = ebb__obligation_at(rt, first->prev);
    d->prev = last->index;
    first->prev = d->index;
    if (d->kind != 0) {
        last->next = d->index;
    } else {
        d->next = first->index;
        *head = d->index;
    }
}

ebb__obligation *ebb__obligation_new(ebb_runtime *rt, uint32_t task, uint32_t region, uint8_t kind, void *arg,
                                     const char *site) {
    assert(ebb__slab_ready(&rt->obligations));
    uint32_t i = ebb__slab_take(&rt->obligations);
    ebb__obligation *d = ebb__obligation_at(rt, i);
    uint32_t generation = d->generation;
    *d = (ebb__obligation){.generation = generation,
                           .index = i,
                           .task = task,
                           .region = region,
                           .kind = kind,
                           .state = OBLIGATION_OPEN,
                           .arg = arg,
                           .site = site,
                           .since = rt->now};
    link_obligation(rt, d);
    if (task != 0) ebb__task_at(rt, task)->flags |= F_OWES;
    else ebb__region_at(rt, region)->flags |= R_MORE;
    return d;
}

void ebb__obligation_unlink(ebb_runtime *rt, ebb__obligation *d) {
    uint32_t *head = head_of(rt, d);
    assert(*head != 0 && d->state == OBLIGATION_OPEN);
    if (*head == d->index) *head = d->next;
    else ebb__obligation_at(rt, d->prev)->next = d->next;
    uint32_t after = d->next != 0 ? d->next : *head; /* the record whose `prev` this was */
    if (after != 0) ebb__obligation_at(rt, after)->prev = d->prev;
    if (d->task != 0 && *head == 0) {
        ebb__task *t = ebb__task_at(rt, d->task);
        t->flags &= ~(uint32_t)F_OWES;
    }
}

static ebb__obligation *last_of(const ebb_runtime *rt, uint32_t head) {
    return ebb__obligation_at(rt, ebb__obligation_at(rt, head)->prev);
}

void ebb__obligation_free(ebb_runtime *rt, ebb__obligation *d) {
    assert(d->state != OBLIGATION_FREE);
    d->state = OBLIGATION_FREE;
    ebb__slab_give(&rt->obligations, d->index);
}

void ebb__obligation_emit_new(ebb_runtime *rt, uint8_t type, const ebb__obligation *d, uint32_t value) {
    uint64_t id = ebb__obligation_id(rt, d);
    if (d->task != 0) {
        ebb__emit_task_at(rt, type, ebb__task_at(rt, d->task), value, id, d->site);
    } else {
        ebb__emit_region_at(rt, type, ebb__region_at(rt, d->region), 0, value, id, d->site);
    }
}

void ebb__obligation_emit(ebb_runtime *rt, uint8_t type, const ebb__obligation *d, uint32_t value) {
    if (d->task != 0) {
        ebb__emit_task(rt, type, ebb__task_at(rt, d->task), value, ebb__obligation_id(rt, d));
    } else {
        ebb__emit_region(rt, type, ebb__region_at(rt, d->region), 0, value, ebb__obligation_id(rt, d));
    }
}

/* ---- obligations --------------------------------------------------------------------------------------- */

static ebb_obligation reserve(ebb_runtime *rt, ebb_cx *cx, uint32_t task, ebb__region *r,
                              ebb_obligation_kind kind, void (*on_abort)(void *), void *arg,
                              const char *site) {
    ebb_status st = EBB_OK;
    if (kind < EBB_OBLIGATION_PERMIT || kind > EBB_OBLIGATION_TRANSACTION) st = EBB_ERR_INVALID;
    else if (task != 0) st = ebb__admit_own(rt, ebb__task_at(rt, task));
    else st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK) st = ebb__slab_reserve(&rt->obligations, &rt->allocator);
    if (st != EBB_OK) {
        ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), ebb__region_id(rt, r),
                        (uint32_t)st, 0);
        return (ebb_obligation){ebb__id_error(rt, st)};
    }
    ebb__obligation *d = ebb__obligation_new(rt, task, r->index, (uint8_t)kind, arg, site);
    d->fn.on_abort = on_abort;
    ebb__cold_of(r)->obligations++;
    rt->stats.obligations++;
    ebb__obligation_emit_new(rt, EBB_EV_OBLIGATION_RESERVED, d, kind);
    return (ebb_obligation){ebb__obligation_id(rt, d)};
}

uint64_t ebb__journal_region(const ebb_runtime *rt, ebb_region region) {
    return region.id != 0 ? region.id : ebb__id_error(rt, EBB_ERR_INVALID);
}

static void journal_reserve(ebb_runtime *rt, ebb_cx *cx, uint64_t region, ebb_obligation_kind kind, bool hook,
                            const char *site, uint64_t id) {
    ebb__journal(
        rt, cx,
        (ebb_record){.type = J_RESERVE, .region = region, .kind = (uint8_t)kind, .value = hook, .other = id});
    ebb__journal_text(rt, site);
}

ebb_obligation ebb_obligation_reserve_site(ebb_cx *cx, ebb_obligation_kind kind, void (*on_abort)(void *arg),
                                           void *arg, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t = ebb__task_of(cx);
    if (ebb__rt_is_confined(rt)) return (ebb_obligation){ebb__id_error(rt, EBB_ERR_DURABLE_CONTEXT)};
    ebb_obligation id = reserve(rt, cx, t->index, ebb__region_at(rt, t->region), kind, on_abort, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_reserve(rt, cx, 0, kind, on_abort != NULL, site, id.id);
    return id;
}

ebb_obligation ebb_region_reserve_site(ebb_cx *cx, ebb_region region, ebb_obligation_kind kind,
                                       void (*on_abort)(void *arg), void *arg, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (ebb__rt_is_confined(rt)) return (ebb_obligation){ebb__id_error(rt, EBB_ERR_DURABLE_CONTEXT)};
    ebb_status st = ebb__find_region(rt, region, &r);
    ebb_obligation id = {ebb__id_error(rt, st)};
    if (st == EBB_OK) id = reserve(rt, cx, 0, r, kind, on_abort, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) {
        journal_reserve(rt, cx, ebb__journal_region(rt, region), kind, on_abort != NULL, site, id.id);
    }
    return id;
}

static void run_abort(ebb_runtime *rt, const ebb__obligation *d) {
    if (d->fn.on_abort == NULL) return;
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_CALL, .value = EBB__CALL_ABORT, .other = ebb__obligation_id(rt, d)});
    ebb__watched outer = ebb__watch_enter(rt, ebb__obligation_id(rt, d), d->site);
    d->fn.on_abort(d->arg);
    ebb__watch_leave(rt, outer);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}

static void resolved(ebb_runtime *rt, ebb__obligation *d) {
    assert(ebb__cold_of(ebb__region_at(rt, d->region))->obligations > 0 && rt->stats.obligations > 0);
    ebb__cold_of(ebb__region_at(rt, d->region))->obligations--;
    rt->stats.obligations--;
    ebb__obligation_unlink(rt, d);
}

/* When the last obligation of a region is resolved, the region may close; the pump advances it. */
static void let_close(ebb_runtime *rt, const ebb__obligation *d) {
    ebb__region *r = ebb__region_at(rt, d->region);
    if (d->task == 0 && r->owed == 0 && r->state == EBB_REGION_FINALIZING) ebb__sweep_later(rt, r);
}

/* Finds an obligation. One that was resolved before has an error of its own. */
static ebb_status find(ebb_runtime *rt, ebb_obligation id, ebb__obligation **out) {
    uint32_t i;
    ebb_status st = ebb__lookup(rt, &rt->obligations, id.id, &i);
    if (st == EBB_ERR_STALE) return EBB_ERR_RESOLVED;
    if (st != EBB_OK) return st;
    *out = ebb__obligation_at(rt, i);
    if ((*out)->state == OBLIGATION_LEAKED) return EBB_ERR_RESOLVED;
    return (*out)->kind == 0 || (*out)->state != OBLIGATION_OPEN ? EBB_ERR_INVALID : EBB_OK;
}

ebb_status ebb_obligation_commit(ebb_cx *cx, ebb_obligation obligation) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__obligation *d;
    ebb_status st = find(rt, obligation, &d);
    if (st == EBB_OK) {
        ebb__obligation_emit(rt, EBB_EV_OBLIGATION_COMMITTED, d, d->kind);
        resolved(rt, d);
        let_close(rt, d);
        ebb__obligation_free(rt, d);
    }
    ebb__journal(rt, cx, (ebb_record){.type = J_COMMIT, .other = obligation.id, .value = (uint32_t)st});
    return st;
}

/* The record is freed before the hook runs, since the hook may reserve again. */
static void abort_obligation(ebb_runtime *rt, ebb__obligation *d) {
    ebb__obligation_emit(rt, EBB_EV_OBLIGATION_ABORTED, d, d->kind);
    resolved(rt, d);
    let_close(rt, d);
    ebb__obligation copy = *d;
    ebb__obligation_free(rt, d);
    run_abort(rt, &copy);
}

ebb_status ebb_obligation_abort(ebb_cx *cx, ebb_obligation obligation) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__obligation *d;
    ebb_status st = find(rt, obligation, &d);
    ebb__journal(rt, cx, (ebb_record){.type = J_ABORT, .other = obligation.id, .value = (uint32_t)st});
    if (st == EBB_OK) abort_obligation(rt, d);
    return st;
}

void ebb__obligation_leaked(ebb_runtime *rt, ebb__leak_kind what, const ebb__obligation *d) {
    uint64_t owner = d->task != 0 ? ebb__task_id(ebb__task_at(rt, d->task)) : 0;
    ebb__leak_report(rt, (ebb__leak){.what = what,
                                     .kind = d->kind,
                                     .region = ebb__region_at(rt, d->region),
                                     .id = ebb__obligation_id(rt, d),
                                     .owner = owner,
                                     .site = d->site});
}

/* An obligation that is still reserved has leaked. The record stays in the region's list of leaks for the report;
 * the id counts as resolved. */
static void leak(ebb_runtime *rt, ebb__obligation *d) {
    ebb__region *r = ebb__region_at(rt, d->region);
    assert(d->kind != 0 && d->state == OBLIGATION_OPEN);
    ebb__obligation_emit(rt, EBB_EV_OBLIGATION_LEAKED, d, d->kind);
    ebb__emit_text(rt, d->site);
    ebb__obligation_emit(rt, EBB_EV_OBLIGATION_ABORTED, d, d->kind);
    resolved(rt, d);
    d->state = OBLIGATION_LEAKED;
    d->next = ebb__cold_of(r)->leaks;
    ebb__cold_of(r)->leaks = d->index;
    ebb__cold_of(r)->leaked++;
    r->flags |= R_MORE;
    rt->stats.leaks++;
    ebb__obligation_leaked(rt, EBB__LEAK_OBLIGATION, d);
    run_abort(rt, d);
}

/* An abandoned task could not resolve anything, so its obligations are not leaks of its own. */
void ebb__leak_all(ebb_runtime *rt, ebb__task *t) {
    while (t->flags & F_OWES) {
        ebb__obligation *d = last_of(rt, ebb__cold_at(rt, t->index)->owed);
        if (t->flags & F_ABANDONED) {
            ebb__obligation_leaked(rt, EBB__LEAK_ABORTED, d);
            abort_obligation(rt, d);
        } else {
            leak(rt, d);
        }
    }
}

void ebb__leak_region(ebb_runtime *rt, ebb__region *r) {
    uint32_t generation = r->generation; /* the hook of the last one may join the region */
    while (r->generation == generation && r->owed != 0) leak(rt, last_of(rt, r->owed));
}

/* It is in the list of leaks, without a kind. */
ebb_status ebb__operation_keep(ebb_runtime *rt, ebb__region *r, const char *site) {
    ebb_status st = ebb__slab_reserve(&rt->obligations, &rt->allocator);
    if (st != EBB_OK) return st;
    uint32_t i = ebb__slab_take(&rt->obligations);
    ebb__obligation *d = ebb__obligation_at(rt, i);
    uint32_t generation = d->generation;
    *d = (ebb__obligation){.generation = generation,
                           .index = i,
                           .next = ebb__cold_of(r)->leaks,
                           .region = r->index,
                           .state = OBLIGATION_LEAKED,
                           .site = site,
                           .since = rt->now};
    ebb__cold_of(r)->leaks = i;
    r->flags |= R_MORE;
    return EBB_OK;
}

void ebb__leaks_forget(ebb_runtime *rt, ebb__region *r) {
    ebb__region_cold *c = ebb__cold_of(r);
    while (c->leaks != 0) {
        ebb__obligation *d = ebb__obligation_at(rt, c->leaks);
        c->leaks = d->next;
        ebb__obligation_free(rt, d);
    }
}
