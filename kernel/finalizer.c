/* Finalizers: functions that a task or a region runs at its end, the last added first. They precede the
 * obligations in the same list (kernel/obligation.c). */
#include "kernel/admit.h"
#include "kernel/lane.h"
#include "kernel/obligation.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/task.h"
#include "kernel/watchdog.h"

static ebb_status defer(ebb_runtime *rt, uint32_t task, ebb__region *r, ebb_poll_fn fn, void *arg,
                        const char *site) {
    ebb_status st = ebb__slab_reserve(&rt->obligations, &rt->allocator);
    if (st != EBB_OK) return st;
    if (task == 0 && ebb__cold_of(r)->closer == 0) {
        st = ebb__closer_new(rt, r);
        if (st != EBB_OK) return st;
    }
    ebb__obligation *d = ebb__obligation_new(rt, task, r->index, 0, arg, site);
    d->fn.finalize = fn;
    ebb__obligation_emit_new(rt, EBB_EV_FINALIZER_ADDED, d, 0);
    return EBB_OK;
}

static void journal_defer(ebb_runtime *rt, ebb_cx *cx, uint64_t region, bool apart, const char *site,
                          ebb_status st) {
    ebb__journal(rt, cx,
                 (ebb_record){.type = J_DEFER, .region = region, .kind = apart, .value = (uint32_t)st});
    ebb__journal_text(rt, site);
}

ebb_status ebb_defer_site(ebb_cx *cx, ebb_poll_fn fn, void *arg, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t = ebb__task_of(cx);
    ebb__region *r = ebb__region_at(rt, t->region);
    if (ebb__rt_is_confined(rt)) return EBB_ERR_DURABLE_CONTEXT;
    ebb_status st = t->flags & F_RETURNED ? EBB_ERR_CLOSED : fn == NULL ? EBB_ERR_INVALID : EBB_OK;
    if (st == EBB_OK && t->index == 0) st = ebb__admit(rt, t, r);
    if (st == EBB_OK) st = defer(rt, t->index, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_defer(rt, cx, 0, false, site, st);
    return st;
}

ebb_status ebb_region_defer_site(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (ebb__rt_is_confined(rt)) return EBB_ERR_DURABLE_CONTEXT;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && fn == NULL) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK) st = defer(rt, 0, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL))
        journal_defer(rt, cx, ebb__journal_region(rt, region), false, site, st);
    return st;
}

ebb_status ebb__region_defer_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn fn, void *arg,
                                   const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && r->state > EBB_REGION_DRAINING) st = EBB_ERR_CLOSED;
    if (st == EBB_OK) st = defer(rt, 0, r, fn, arg, site);
    if (EBB__UNLIKELY(rt->journal != NULL))
        journal_defer(rt, cx, ebb__journal_region(rt, region), true, site, st);
    return st;
}

static ebb__obligation *first_finalizer(const ebb_runtime *rt, uint32_t head) {
    return head != 0 && ebb__obligation_at(rt, head)->kind == 0 ? ebb__obligation_at(rt, head) : NULL;
}

ebb__obligation *ebb__next_finalizer(ebb_runtime *rt, ebb__task *t) {
    const ebb__region *r = ebb__region_at(rt, t->region);
    if (t->flags & F_CLOSER && ebb__cold_of(r)->closer == t->index) return first_finalizer(rt, r->owed);
    return t->flags & F_OWES ? first_finalizer(rt, ebb__cold_at(rt, t->index)->owed) : NULL;
}

/* Ends a finalizer; `type` is the event. The next finalizer gets polls of its own. */
static void finalizer_ended(ebb_runtime *rt, ebb__task *t, ebb__obligation *d, uint8_t type, ebb_status st) {
    ebb__obligation_emit(rt, type, d, (uint32_t)st);
    if (type == EBB_EV_FINALIZER_ABANDONED) {
        ebb__emit_text(rt, d->site);
        ebb__cold_of(ebb__region_at(rt, t->region))->abandoned++;
        rt->stats.abandoned++;
        ebb__obligation_leaked(rt, EBB__LEAK_FINALIZER, d);
    } else if (st == EBB_FAULTED && t->status != EBB_FAULTED) {
        t->status = st;
        ebb__emit_task(rt, EBB_EV_FAULTED, t, 0, 0);
    } else if (st < 0 && st != EBB_CANCELLED && t->status == EBB_OK) {
        t->status = st;
    }
    t->flags &= ~(uint32_t)(F_IN_FINALIZER | F_JOINING); /* it has left what the finalizer had joined */
    ebb__cold_at(rt, t->index)->force_left = EBB__FORCE_POLLS;
    ebb__obligation_unlink(rt, d);
    ebb__obligation_free(rt, d);
}

static ebb_status call_finalizer(ebb_runtime *rt, ebb__task *t, const ebb__obligation *d) {
    t->flags = (t->flags | F_POLLING) & ~(uint32_t)F_JOINING;
    rt->current = t;
    ebb__journal(rt, &t->cx,
                 (ebb_record){.type = J_CALL,
                              .value = EBB__CALL_FINALIZER,
                              .task = ebb__task_id(t),
                              .other = ebb__obligation_id(rt, d)});
    if (EBB__UNLIKELY(rt->watched)) ebb__watch_begin(rt, ebb__task_id(t), d->site);
    ebb_status st = d->fn.finalize(&t->cx, d->arg);
    if (EBB__UNLIKELY(rt->watched)) ebb__watch_end(rt);
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_RETURN, .value = (uint32_t)st});
    rt->current = NULL;
    t->flags &= ~(uint32_t)F_POLLING;
    return st;
}

bool ebb__run_finalizer(ebb_runtime *rt, ebb__task *t, ebb__obligation *d) {
    if (!(t->flags & F_IN_FINALIZER)) {
        t->flags |= F_IN_FINALIZER;
        ebb__cold_at(rt, t->index)->force_left = EBB__FORCE_POLLS;
        if (t->mask == 0) {
            t->mask = 1;
            ebb__emit_task(rt, EBB_EV_MASKED, t, 1, 0);
        }
    }
    ebb__signal_update(rt, t);
    assert(t->flags & F_RETURNED && d->kind == 0);
    assert(!(t->flags & F_FIN_FORCED) || ebb__cold_at(rt, t->index)->force_left > 0);
    if (t->flags & F_FIN_FORCED) ebb__cold_at(rt, t->index)->force_left--;
    ebb_status st = call_finalizer(rt, t, d);
    if (st != EBB_PENDING) {
        finalizer_ended(rt, t, d, EBB_EV_FINALIZER_DONE, st);
        return true;
    }
    if (t->flags & F_FIN_FORCED && ebb__cold_at(rt, t->index)->force_left == 0) {
        finalizer_ended(rt, t, d, EBB_EV_FINALIZER_ABANDONED, EBB_CANCELLED);
        return true;
    }
    if (t->flags & F_FIN_FORCED && !rt->short_pumps) t->flags |= F_REWAKE;
    ebb__task_rewoken(rt, t);
    return false;
}
