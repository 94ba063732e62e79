#include "kernel/duty.h"

#include <assert.h>

#include "kernel/admit.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/steward.h"
#include "kernel/task.h"
#include "kernel/watchdog.h"

/* One list an owner: its finalizers, the last added first, and behind them its obligations, the last
 * reserved last. So the next finalizer and the next leak are at the two ends, however many there are. The
 * head's `prev` is the last. */

/* ---- the lists ----------------------------------------------------------------------------------- */

static uint32_t *head_of(ebb_rt *rt, const ebb__duty *d) {
    return d->task != 0 ? &ebb__cold_at(rt, d->task)->duties : &ebb__region_at(rt, d->region)->duties;
}

static void link_duty(ebb_rt *rt, ebb__duty *d) {
    uint32_t *head = head_of(rt, d);
    if (*head == 0) {
        d->prev = *head = d->index;
        return;
    }
    ebb__duty *first = ebb__duty_at(rt, *head), *last = ebb__duty_at(rt, first->prev);
    d->prev = last->index;
    first->prev = d->index;
    if (d->kind != 0) {
        last->next = d->index;
    } else {
        d->next = first->index;
        *head = d->index;
    }
}

static ebb__duty *duty_new(ebb_rt *rt, uint32_t task, uint32_t region, uint8_t kind, void *arg,
                           const char *site) {
    uint32_t i = ebb__slab_take(&rt->duties);
    ebb__duty *d = ebb__duty_at(rt, i);
    uint32_t generation = d->generation;
    *d = (ebb__duty){.generation = generation,
                     .index = i,
                     .task = task,
                     .region = region,
                     .kind = kind,
                     .state = DUTY_OPEN,
                     .arg = arg,
                     .site = site,
                     .since = rt->now};
    link_duty(rt, d);
    if (task != 0) ebb__task_at(rt, task)->flags |= F_DUTY;
    return d;
}

static void unlink_duty(ebb_rt *rt, ebb__duty *d) {
    uint32_t *head = head_of(rt, d);
    if (*head == d->index) *head = d->next;
    else ebb__duty_at(rt, d->prev)->next = d->next;
    uint32_t after = d->next != 0 ? d->next : *head; /* whose predecessor it was */
    if (after != 0) ebb__duty_at(rt, after)->prev = d->prev;
    if (d->task != 0 && *head == 0) {
        ebb__task *t = ebb__task_at(rt, d->task);
        t->flags = (uint16_t)(t->flags & ~F_DUTY);
    }
}

static ebb__duty *last_of(const ebb_rt *rt, uint32_t head) {
    return ebb__duty_at(rt, ebb__duty_at(rt, head)->prev);
}

static void duty_free(ebb_rt *rt, ebb__duty *d) {
    d->state = DUTY_FREE;
    ebb__slab_give(&rt->duties, d->index);
}

static void emit(ebb_rt *rt, uint8_t type, const ebb__duty *d, uint32_t value) {
    if (d->task != 0) {
        ebb__emit_task(rt, type, ebb__task_at(rt, d->task), value, ebb__duty_id(rt, d));
    } else {
        ebb__emit_region(rt, type, ebb__region_at(rt, d->region), 0, value, ebb__duty_id(rt, d));
    }
}

/* ---- obligations ---------------------------------------------------------------------------------- */

static ebb_obligation reserve(ebb_rt *rt, ebb_cx *cx, uint32_t task, ebb__region *r, ebb_obligation_kind kind,
                              void (*on_abort)(void *), void *arg, const char *site) {
    ebb_status st = EBB_OK;
    if (kind < EBB_PERMIT || kind > EBB_TRANSACTION) st = EBB_ERR_INVALID;
    else if (task != 0) st = ebb__admit_own(rt, ebb__task_at(rt, task));
    else st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK) st = ebb__slab_reserve(&rt->duties, &rt->allocator);
    if (st != EBB_OK) {
        ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), ebb__region_id(rt, r),
                        (uint32_t)st, 0);
        return (ebb_obligation){ebb__id_error(rt, st)};
    }
    ebb__duty *d = duty_new(rt, task, r->index, (uint8_t)kind, arg, site);
    d->fn.on_abort = on_abort;
    r->obligations++;
    rt->stats.obligations++;
    emit(rt, EBB_EV_OBLIGATION_RESERVED, d, kind);
    return (ebb_obligation){ebb__duty_id(rt, d)};
}

/* In the journal, region 0 is the asker's own; an id of 0 that was named is written as any invalid one. */
static uint64_t named(const ebb_rt *rt, ebb_region region) {
    return region.id != 0 ? region.id : ebb__id_error(rt, EBB_ERR_INVALID);
}

static void journal_reserve(ebb_rt *rt, ebb_cx *cx, uint64_t region, ebb_obligation_kind kind, bool hook,
                            const char *site, uint64_t id) {
    ebb__journal(
        rt, cx,
        (ebb_record){.type = J_RESERVE, .region = region, .kind = (uint8_t)kind, .value = hook, .other = id});
    ebb__journal_text(rt, site);
}

ebb_obligation ebb_reserve_at(ebb_cx *cx, ebb_obligation_kind kind, void (*on_abort)(void *arg), void *arg,
                              const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__task *t = ebb__task_of(cx);
    ebb_obligation id = reserve(rt, cx, t->index, ebb__region_at(rt, t->region), kind, on_abort, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_reserve(rt, cx, 0, kind, on_abort != NULL, site, id.id);
    return id;
}

ebb_obligation ebb_reserve_in_at(ebb_cx *cx, ebb_region region, ebb_obligation_kind kind,
                                 void (*on_abort)(void *arg), void *arg, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    ebb_obligation id = {ebb__id_error(rt, st)};
    if (st == EBB_OK) id = reserve(rt, cx, 0, r, kind, on_abort, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) {
        journal_reserve(rt, cx, named(rt, region), kind, on_abort != NULL, site, id.id);
    }
    return id;
}

static void run_abort(ebb_rt *rt, const ebb__duty *d) {
    if (d->fn.on_abort == NULL) return;
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_CALL, .value = EBB__CALL_ABORT, .other = ebb__duty_id(rt, d)});
    ebb__watched outer = ebb__watch_enter(rt, ebb__duty_id(rt, d), d->site);
    d->fn.on_abort(d->arg);
    ebb__watch_leave(rt, outer);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}

static void resolved(ebb_rt *rt, ebb__duty *d) {
    ebb__region_at(rt, d->region)->obligations--;
    rt->stats.obligations--;
    unlink_duty(rt, d);
}

/* The last that held a region lets it close: the pump sees to that. */
static void let_go(ebb_rt *rt, const ebb__duty *d) {
    ebb__region *r = ebb__region_at(rt, d->region);
    if (d->task == 0 && r->duties == 0 && r->state == EBB_REGION_FINALIZING) ebb__sweep_later(rt, r);
}

/* An id of an obligation is looked up leniently: resolved twice has a name of its own. */
static ebb_status find(ebb_rt *rt, ebb_obligation id, ebb__duty **out) {
    uint32_t i;
    ebb_status st = ebb__lookup(rt, &rt->duties, id.id, &i);
    if (st == EBB_ERR_STALE) return EBB_ERR_RESOLVED;
    if (st != EBB_OK) return st;
    *out = ebb__duty_at(rt, i);
    if ((*out)->state == DUTY_LEAKED) return EBB_ERR_RESOLVED;
    return (*out)->kind == 0 || (*out)->state != DUTY_OPEN ? EBB_ERR_INVALID : EBB_OK;
}

ebb_status ebb_commit(ebb_cx *cx, ebb_obligation obligation) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__duty *d;
    ebb_status st = find(rt, obligation, &d);
    if (st == EBB_OK) {
        emit(rt, EBB_EV_OBLIGATION_COMMITTED, d, d->kind);
        resolved(rt, d);
        let_go(rt, d);
        duty_free(rt, d);
    }
    ebb__journal(rt, cx, (ebb_record){.type = J_COMMIT, .other = obligation.id, .value = (uint32_t)st});
    return st;
}

/* The record is gone before the hook runs: it may reserve again. */
static void abort_duty(ebb_rt *rt, ebb__duty *d) {
    emit(rt, EBB_EV_OBLIGATION_ABORTED, d, d->kind);
    resolved(rt, d);
    let_go(rt, d);
    ebb__duty copy = *d;
    duty_free(rt, d);
    run_abort(rt, &copy);
}

ebb_status ebb_abort(ebb_cx *cx, ebb_obligation obligation) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__duty *d;
    ebb_status st = find(rt, obligation, &d);
    ebb__journal(rt, cx, (ebb_record){.type = J_ABORT, .other = obligation.id, .value = (uint32_t)st});
    if (st == EBB_OK) abort_duty(rt, d);
    return st;
}

/* Tells whoever wants to know. */
static void blame(ebb_rt *rt, ebb__guilt what, const ebb__duty *d) {
    uint64_t owner = d->task != 0 ? ebb__task_id(ebb__task_at(rt, d->task)) : 0;
    ebb__blame(rt, (ebb__guilty){.what = what,
                                 .kind = d->kind,
                                 .region = d->region,
                                 .id = ebb__duty_id(rt, d),
                                 .owner = owner,
                                 .site = d->site});
}

/* What was still reserved has leaked. It stays in the region's list of leaks for its report; the id stays
 * resolved. */
static void leak(ebb_rt *rt, ebb__duty *d) {
    ebb__region *r = ebb__region_at(rt, d->region);
    emit(rt, EBB_EV_OBLIGATION_LEAKED, d, d->kind);
    ebb__emit_text(rt, d->site);
    emit(rt, EBB_EV_OBLIGATION_ABORTED, d, d->kind);
    resolved(rt, d);
    d->state = DUTY_LEAKED;
    d->next = r->leaks;
    r->leaks = d->index;
    r->leaked++;
    rt->stats.leaks++;
    blame(rt, EBB__G_LEAK, d);
    run_abort(rt, d);
}

/* A task that was abandoned could not resolve anything: that is no leak of its own. */
void ebb__leak_all(ebb_rt *rt, ebb__task *t) {
    while (t->flags & F_DUTY) {
        ebb__duty *d = last_of(rt, ebb__cold_at(rt, t->index)->duties);
        if (t->flags & F_ABANDONED) {
            blame(rt, EBB__G_ABORTED, d);
            abort_duty(rt, d);
        } else {
            leak(rt, d);
        }
    }
}

void ebb__leak_region(ebb_rt *rt, ebb__region *r) {
    uint32_t generation = r->generation; /* the hook of the last one may join the region */
    while (r->generation == generation && r->duties != 0) leak(rt, last_of(rt, r->duties));
}

/* Among the leaks, but without a kind. */
ebb_status ebb__operation_keep(ebb_rt *rt, ebb__region *r, const char *site) {
    ebb_status st = ebb__slab_reserve(&rt->duties, &rt->allocator);
    if (st != EBB_OK) return st;
    uint32_t i = ebb__slab_take(&rt->duties);
    ebb__duty *d = ebb__duty_at(rt, i);
    uint32_t generation = d->generation;
    *d = (ebb__duty){.generation = generation,
                     .index = i,
                     .next = r->leaks,
                     .region = r->index,
                     .state = DUTY_LEAKED,
                     .site = site,
                     .since = rt->now};
    r->leaks = i;
    return EBB_OK;
}

void ebb__leaks_forget(ebb_rt *rt, ebb__region *r) {
    while (r->leaks != 0) {
        ebb__duty *d = ebb__duty_at(rt, r->leaks);
        r->leaks = d->next;
        duty_free(rt, d);
    }
}

/* ---- finalizers ----------------------------------------------------------------------------------- */

static ebb_status defer(ebb_rt *rt, uint32_t task, ebb__region *r, ebb_poll_fn fn, void *arg,
                        const char *site) {
    ebb_status st = ebb__slab_reserve(&rt->duties, &rt->allocator);
    if (st != EBB_OK) return st;
    if (task == 0 && r->closer == 0) {
        st = ebb__closer_new(rt, r);
        if (st != EBB_OK) return st;
    }
    ebb__duty *d = duty_new(rt, task, r->index, 0, arg, site);
    d->fn.finalize = fn;
    emit(rt, EBB_EV_FINALIZER_ADDED, d, 0);
    return EBB_OK;
}

static void journal_defer(ebb_rt *rt, ebb_cx *cx, uint64_t region, bool apart, const char *site,
                          ebb_status st) {
    ebb__journal(rt, cx,
                 (ebb_record){.type = J_DEFER, .region = region, .kind = apart, .value = (uint32_t)st});
    ebb__journal_text(rt, site);
}

ebb_status ebb_defer_at(ebb_cx *cx, ebb_poll_fn fn, void *arg, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__task *t = ebb__task_of(cx);
    ebb__region *r = ebb__region_at(rt, t->region);
    ebb_status st = t->flags & F_RETURNED ? EBB_ERR_CLOSED : fn == NULL ? EBB_ERR_INVALID : EBB_OK;
    if (st == EBB_OK && t->index == 0) st = ebb__admit(rt, t, r);
    if (st == EBB_OK) st = defer(rt, t->index, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_defer(rt, cx, 0, false, site, st);
    return st;
}

ebb_status ebb_region_defer_at(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && fn == NULL) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK) st = defer(rt, 0, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_defer(rt, cx, named(rt, region), false, site, st);
    return st;
}

ebb_status ebb__region_defer_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg,
                                   const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && r->state > EBB_REGION_DRAINING) st = EBB_ERR_CLOSED;
    if (st == EBB_OK) st = defer(rt, 0, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_defer(rt, cx, named(rt, region), true, site, st);
    return st;
}

static ebb__duty *first_finalizer(const ebb_rt *rt, uint32_t head) {
    return head != 0 && ebb__duty_at(rt, head)->kind == 0 ? ebb__duty_at(rt, head) : NULL;
}

ebb__duty *ebb__next_finalizer(ebb_rt *rt, ebb__task *t) {
    if (ebb__region_at(rt, t->region)->closer == t->index)
        return first_finalizer(rt, ebb__region_at(rt, t->region)->duties);
    return t->flags & F_DUTY ? first_finalizer(rt, ebb__cold_at(rt, t->index)->duties) : NULL;
}

/* Over: `type` says how. The next one starts with polls of its own. */
static void finalizer_over(ebb_rt *rt, ebb__task *t, ebb__duty *d, uint8_t type, ebb_status st) {
    emit(rt, type, d, (uint32_t)st);
    if (type == EBB_EV_FINALIZER_ABANDONED) {
        ebb__emit_text(rt, d->site);
        ebb__region_at(rt, t->region)->abandoned++;
        rt->stats.abandoned++;
        blame(rt, EBB__G_FINALIZER, d);
    } else if (st == EBB_FAULTED && (int32_t)t->polls_left != EBB_FAULTED) {
        t->polls_left = (uint32_t)st;
        ebb__emit_task(rt, EBB_EV_FAULTED, t, 0, 0);
    } else if (st < 0 && st != EBB_CANCELLED && (int32_t)t->polls_left == EBB_OK) {
        t->polls_left = (uint32_t)st;
    }
    t->flags = (uint16_t)(t->flags & ~F_IN_FINALIZER);
    t->force_left = EBB__FORCE_POLLS;
    unlink_duty(rt, d);
    duty_free(rt, d);
}

static ebb_status call_finalizer(ebb_rt *rt, ebb__task *t, const ebb__duty *d) {
    t->flags = (uint16_t)((t->flags | F_POLLING) & ~F_JOINING);
    rt->current = t;
    ebb__journal(rt, &t->cx,
                 (ebb_record){.type = J_CALL,
                              .value = EBB__CALL_FINALIZER,
                              .task = ebb__task_id(t),
                              .other = ebb__duty_id(rt, d)});
    if (EBB__UNLIKELY(rt->watched)) ebb__watch_begin(rt, ebb__task_id(t), d->site);
    ebb_status st = d->fn.finalize(&t->cx, d->arg);
    if (EBB__UNLIKELY(rt->watched)) ebb__watch_end(rt);
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_RETURN, .value = (uint32_t)st});
    rt->current = NULL;
    t->flags = (uint16_t)(t->flags & ~F_POLLING);
    return st;
}

bool ebb__run_finalizer(ebb_rt *rt, ebb__task *t, ebb__duty *d) {
    if (!(t->flags & F_IN_FINALIZER)) {
        t->flags |= F_IN_FINALIZER;
        t->force_left = EBB__FORCE_POLLS;
        if (t->mask == 0) {
            t->mask = 1;
            ebb__emit_task(rt, EBB_EV_MASKED, t, 1, 0);
        }
    }
    ebb__signal_update(rt, t);
    if (t->flags & F_FIN_FORCED) t->force_left--;
    ebb_status st = call_finalizer(rt, t, d);
    if (EBB__MUTANT(rt, EBB_ORACLE_FINALIZERS_ONCE) && st != EBB_PENDING && d->next != 0) {
        emit(rt, EBB_EV_FINALIZER_DONE, d, (uint32_t)st);
    }
    if (st != EBB_PENDING) {
        finalizer_over(rt, t, d, EBB_EV_FINALIZER_DONE, st);
        return true;
    }
    if (t->flags & F_FIN_FORCED && t->force_left == 0) {
        finalizer_over(rt, t, d, EBB_EV_FINALIZER_ABANDONED, EBB_CANCELLED);
        return true;
    }
    if (t->flags & F_FIN_FORCED && !rt->patient) t->flags |= F_REWAKE;
    ebb__task_rewoken(rt, t);
    return false;
}
