#include "kernel/task.h"

#include <assert.h>

#include "kernel/cascade.h"
#include "kernel/duty.h"
#include "kernel/lane.h"
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/steward.h"
#include "kernel/wait.h"
#include "kernel/watchdog.h"

/* ---- the table --------------------------------------------------------------------------------- */

#define TO(phase) (1u << (phase))
/* Nothing follows Completed. */
const uint8_t ebb__phase_legal[EBB_COMPLETED + 1] = {
    [EBB_CREATED] = TO(EBB_RUNNING) | TO(EBB_CANCEL_REQUESTED) | TO(EBB_COMPLETED),
    [EBB_RUNNING] = TO(EBB_CANCEL_REQUESTED) | TO(EBB_COMPLETED),
    [EBB_CANCEL_REQUESTED] = TO(EBB_CANCEL_REQUESTED) | TO(EBB_CANCELLING) | TO(EBB_COMPLETED),
    [EBB_CANCELLING] = TO(EBB_CANCELLING) | TO(EBB_FINALIZING) | TO(EBB_COMPLETED),
    [EBB_FINALIZING] = TO(EBB_FINALIZING) | TO(EBB_COMPLETED),
    [EBB_COMPLETED] = 0,
};

bool ebb__phase_refused(ebb_rt *rt, ebb__task *t, ebb_phase to) {
    rt->stats.illegal++;
    ebb__emit_task(rt, EBB_EV_ILLEGAL, t, (uint32_t)t->phase << 8 | (uint32_t)to, 0);
    return false;
}

void ebb__signal_update(ebb_rt *rt, ebb__task *t) {
    (void)rt;
    /* A finalizer has the kept-back part of the budget, however the body has ended. */
    uint32_t over = t->flags & F_IN_FINALIZER ? F_FIN_FORCED : F_FORCED | F_FIN_FORCED;
    bool masked = t->mask > 0 && !(t->flags & over);
    if (EBB__MUTANT(rt, EBB_ORACLE_ACK_UNMASKED)) masked = false;
    if (t->told != 0 && !masked) {
        t->cx.signal |= EBB_SIGNAL_CANCEL;
    } else {
        t->cx.signal &= ~EBB_SIGNAL_CANCEL;
    }
}

/* ---- spawn ------------------------------------------------------------------------------------- */

/* A record for a task, zeroed but for what is the same for all. The caller has reserved room. */
EBB__INLINE ebb__task *task_new(ebb_rt *rt, uint32_t region, ebb_poll_fn poll, void *state,
                                const char *site) {
    uint32_t i = ebb__slab_take_as(&rt->tasks, EBB__TASK_SHIFT, sizeof(ebb__task));
    ebb__task *t = ebb__task_at(rt, i);
    uint32_t generation = t->generation;
    *t = (ebb__task){.generation = generation,
                     .poll = poll,
                     .state = state,
                     .rt = rt,
                     .index = i,
                     .region = region,
                     .phase = EBB_CREATED,
                     .polls_left = EBB_POLLS_UNBOUNDED};
    ebb__cold *c = ebb__cold_at(rt, i);
    *c = (ebb__cold){.site = site, .born = (uint32_t)(rt->now >> EBB__BORN_SHIFT)};
    rt->credit--;
    return t;
}

/* A task's slot and its places in the lanes are reserved for many at a time. */
__attribute__((noinline)) static ebb_status more_credit(ebb_rt *rt) {
    ebb_status st = ebb__slab_reserve(&rt->tasks, &rt->allocator);
    if (st != EBB_OK) return st;
    uint32_t room = ebb__slab_room(&rt->tasks);
    if (!ebb__lanes_reserve(&rt->lanes, &rt->allocator, rt->tasks.live + room)) return EBB_ERR_NOMEM;
    rt->credit = room;
    return EBB_OK;
}

static inline ebb_status room_for_task(ebb_rt *rt) {
    return EBB__LIKELY(rt->credit > 0) ? EBB_OK : more_credit(rt);
}

__attribute__((cold, noinline)) static ebb_task refuse(ebb_rt *rt, ebb_cx *cx, ebb_region region,
                                                       ebb_status st) {
    ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), region.id, (uint32_t)st, 0);
    return (ebb_task){ebb__id_error(rt, st)};
}

EBB__INLINE ebb_task spawn(ebb_rt *rt, ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                           const ebb_task_opts *opts, uint32_t waiter, const char *site) {
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (EBB__UNLIKELY(st != EBB_OK)) return refuse(rt, cx, region, st);
    if (EBB__UNLIKELY(poll == NULL)) return refuse(rt, cx, region, EBB_ERR_INVALID);
    if (EBB__UNLIKELY(r->state != EBB_REGION_OPEN) &&
        !(EBB__MUTANT(rt, EBB_ORACLE_NO_NEW_WORK) && r->state == EBB_REGION_DRAINING)) {
        return refuse(rt, cx, region, EBB_ERR_CLOSED);
    }
    bool timed = r->deadline != EBB_FOREVER || (opts != NULL && opts->deadline != 0);
    st = room_for_task(rt);
    if (EBB__UNLIKELY(timed) && st == EBB_OK && !ebb__timed_admit(rt)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && !ebb__u32s_reserve(&r->tasks, &rt->allocator)) st = EBB_ERR_NOMEM;
    if (EBB__UNLIKELY(st != EBB_OK)) {
        ebb__region_failed(rt, r, st, 0);
        return refuse(rt, cx, region, st);
    }
    ebb__task *t = task_new(rt, r->index, poll, state, site);
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    t->priority = r->priority;
    t->polls_left = r->polls;
    t->waiter = waiter;
    if (timed) {
        t->flags |= F_TIMED;
        rt->timed.members++;
    }
    if (opts != NULL) {
        if (opts->keep) t->flags |= F_KEEP;
        if (opts->polls != 0 && opts->polls < t->polls_left) t->polls_left = opts->polls;
        if (opts->priority > t->priority) t->priority = opts->priority;
        if (opts->deadline != 0) {
            t->flags |= F_NODE;
            ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), opts->deadline);
        }
    }
    rt->stats.spawned++;
    ebb__emit_task(rt, EBB_EV_TASK_SPAWNED, t,
                   (t->flags & F_KEEP ? 1u : 0u) | (waiter == EBB__A_FUTURE ? 8u : 0u),
                   ebb__task_id(ebb__task_of(cx)));
    ebb__enqueue(rt, t);
    return (ebb_task){ebb__task_id(t)};
}

static void journal_spawn(ebb_rt *rt, ebb_cx *cx, ebb_region region, const ebb_task_opts *o, const char *site,
                          uint64_t result) {
    uint32_t flags = (o != NULL && o->keep ? 1u : 0u) | (o != NULL ? 2u : 0u);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = result, .value = flags});
    if (o != NULL) {
        ebb__journal(
            rt, cx,
            (ebb_record){.type = J_ARGS, .task = o->deadline, .value = o->polls, .kind = o->priority});
    }
    ebb__journal_text(rt, site);
}

ebb_task ebb_spawn_opts_at(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                           const ebb_task_opts *opts, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb_task id;
    if (opts != NULL && opts->size != 0 && opts->size != sizeof *opts) {
        id = refuse(rt, cx, region, EBB_ERR_VERSION);
    } else {
        id = spawn(rt, cx, region, poll, state, opts, 0, site);
    }
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_spawn(rt, cx, region, opts, site, id.id);
    return id;
}

ebb_task ebb_spawn_at(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb_task id = spawn(rt, cx, region, poll, state, NULL, 0, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_spawn(rt, cx, region, NULL, site, id.id);
    return id;
}

ebb_task ebb__spawn_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb_task id = spawn(rt, cx, region, poll, state, NULL, EBB__A_FUTURE, site);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = id.id, .value = 16});
    ebb__journal_text(rt, site);
    return id;
}

ebb_task ebb__spawn_refused(ebb_cx *cx, ebb_region region, ebb_status why, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && r->state != EBB_REGION_OPEN) st = EBB_ERR_CLOSED;
    if (st == EBB_OK) ebb__region_failed(rt, r, st = why, 0);
    ebb_task id = refuse(rt, cx, region, st);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = id.id, .value = 8});
    ebb__journal_text(rt, site);
    return id;
}

static ebb_status closer_poll(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK; /* what it does are the region's finalizers, in settle() */
}

ebb_status ebb__closer_new(ebb_rt *rt, ebb__region *r) {
    ebb_status st = room_for_task(rt);
    if (st != EBB_OK) return st;
    ebb__task *t = task_new(rt, r->index, closer_poll, NULL, r->site);
    t->flags |= F_CLOSER;
    t->phase = 0; /* nobody can name it before it starts */
    r->closer = t->index;
    return EBB_OK;
}

/* The region is Finalizing and has no tasks, so the two inline places are free. */
void ebb__closer_start(ebb_rt *rt, ebb__region *r) {
    ebb__task *t = ebb__task_at(rt, r->closer);
    t->phase = EBB_CREATED;
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    rt->stats.spawned++;
    ebb__emit_task(rt, EBB_EV_TASK_SPAWNED, t, 2, 0);
    if (r->told != 0) {
        ebb__task_request(rt, t, ebb__told_kind(r->told), ebb__told_severity(r->told), r->polls, r->deadline);
    } else {
        ebb__enqueue(rt, t);
    }
}

static ebb_task servant_new(ebb_rt *rt, ebb_cx *cx, ebb_poll_fn poll, struct ebb__scope *scope,
                            const char *site) {
    ebb__region *r = ebb__region_at(rt, ebb__task_of(cx)->region);
    ebb_region region = {ebb__region_id(rt, r)};
    if (r->state > EBB_REGION_DRAINING) return refuse(rt, cx, region, EBB_ERR_CLOSED);
    if (r->servant != 0 || poll == NULL) return refuse(rt, cx, region, EBB_ERR_INVALID);
    ebb_status st = room_for_task(rt);
    if (st == EBB_OK && !ebb__u32s_reserve(&r->tasks, &rt->allocator)) st = EBB_ERR_NOMEM;
    if (st != EBB_OK) return refuse(rt, cx, region, st);
    ebb__task *t = task_new(rt, r->index, poll, scope, site);
    t->flags |= F_CLOSER;
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    t->priority = r->priority;
    r->servant = t->index;
    r->scope = scope;
    rt->stats.spawned++;
    ebb__emit_task(rt, EBB_EV_TASK_SPAWNED, t, 4, ebb__task_id(ebb__task_of(cx)));
    if (r->told != 0) {
        ebb__task_request(rt, t, ebb__told_kind(r->told), ebb__told_severity(r->told), r->polls, r->deadline);
    } else {
        ebb__enqueue(rt, t);
    }
    return (ebb_task){ebb__task_id(t)};
}

ebb_task ebb__servant_new(ebb_cx *cx, ebb_poll_fn poll, struct ebb__scope *scope, const char *site) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb_task id = servant_new(rt, cx, poll, scope, site);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .other = id.id, .value = 4});
    ebb__journal_text(rt, site);
    return id;
}

ebb_status ebb__task_room(ebb_rt *rt) {
    return room_for_task(rt);
}

ebb_task ebb__steward_spawn(ebb_rt *rt, ebb_cx *cx, ebb__region *annex, ebb_poll_fn poll, void *state,
                            const char *site) {
    ebb_task id = spawn(rt, cx, (ebb_region){ebb__region_id(rt, annex)}, poll, state, NULL, 0, site);
    ebb__task *t;
    if (ebb__find_task(rt, id, &t) != EBB_OK) return id;
    t->flags |= F_CLOSER | F_TIMED;
    rt->timed.members++;
    return id;
}

static void cancel_one(ebb_rt *rt, ebb__task *t, uint8_t kind, uint64_t origin, const char *message);

/* ---- the end ----------------------------------------------------------------------------------- */

/* Lets go of what cold.* holds: timers, reason. */
static void cold_clear(ebb_rt *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (t->flags & (F_NODE | F_OWN_CANCEL)) {
        ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index));
    }
    if (c->reason != 0) ebb__slab_give(&rt->reasons, c->reason);
    c->reason = 0;
}

EBB__INLINE void give_back(ebb_rt *rt, ebb__task *t) {
    t->phase = 0;
    uint32_t retired = rt->tasks.retired;
    ebb__slab_give_as(&rt->tasks, t->index, EBB__TASK_SHIFT, sizeof(ebb__task));
    if (EBB__LIKELY(rt->tasks.retired == retired)) rt->credit++;
}

void ebb__task_release(ebb_rt *rt, ebb__task *t) {
    give_back(rt, t);
}

/* How a task is remembered while it waits in a join: its index, and as much of its generation as there
 * is room for. */
static uint32_t joiner_of(const ebb__task *t) {
    return t->index | t->generation << 24;
}

/* The task that was remembered so, if it still waits in a join. If its slot has had 256 users since and
 * joins again, that one is woken for nothing, which every poll must bear. */
static ebb__task *joiner(const ebb_rt *rt, uint32_t waiter) {
    if ((waiter & 0xffffff) == 0) return NULL;
    ebb__task *t = ebb__task_at(rt, waiter & 0xffffff);
    bool waits = t->phase != 0 && t->phase != EBB_COMPLETED && t->flags & F_JOINING;
    return waits && joiner_of(t) == waiter ? t : NULL;
}

static void servant_over(ebb_rt *rt, ebb__region *r) {
    struct ebb__scope *scope = r->scope;
    r->servant = 0;
    r->scope = NULL;
    if (rt->scope_over != NULL) rt->scope_over(rt, scope);
}

/* The one function that ends a task. */
EBB__INLINE void task_end(ebb_rt *rt, ebb__task *t, ebb_status status) {
    ebb__region *r = ebb__region_at(rt, t->region);
    uint64_t id = ebb__task_id(t);
    bool finalized = t->phase == EBB_FINALIZING && status != EBB_FAULTED;
    if (finalized) status = EBB_CANCELLED;
    ebb__phase_move(rt, t, EBB_COMPLETED);
    ebb__emit_task(rt, finalized ? EBB_EV_FINALIZED : EBB_EV_COMPLETED, t, (uint32_t)status, 0);
    rt->stats.ended++;
    uint32_t moved = ebb__u32s_remove(&r->tasks, t->pos);
    if (moved != 0) ebb__task_at(rt, moved)->pos = t->pos;
    if (t->flags & F_TIMED) rt->timed.members--;
    if (EBB__UNLIKELY(t->flags & F_COLD)) {
        cold_clear(rt, t);
        if (r->closer == t->index) r->closer = 0;
        if (r->servant == t->index) servant_over(rt, r);
        if (r->flags & R_STEWARD && r->steward == t->index) ebb__steward_over(rt, r);
        ebb__task *waits = joiner(rt, t->waiter);
        if (waits != NULL) ebb__wake(rt, waits);
        if (rt->task_over != NULL) rt->task_over(t);
    }
    bool apart = t->waiter == EBB__A_FUTURE;
    if (t->flags & (F_KEEP | F_ABANDONED)) {
        t->polls_left = (uint32_t)status;
        t->pos = 0;
        t->qpos = r->kept;
        if (r->kept != 0) ebb__task_at(rt, r->kept)->pos = t->index;
        r->kept = t->index;
    } else {
        give_back(rt, t);
    }
    if (EBB__UNLIKELY(apart) && status != EBB_FAULTED) {
        /* whoever has its future hears of it */
    } else if (status == EBB_CANCELLED) {
        if (r->status == EBB_OK) r->status = EBB_CANCELLED;
    } else if (EBB__UNLIKELY(status != EBB_OK)) {
        ebb__region_failed(rt, r, status, id);
    }
    if (EBB__UNLIKELY(r->state != EBB_REGION_OPEN || r->flags & R_JOINING)) ebb__region_advance(rt, r);
}

void ebb__task_rewoken(ebb_rt *rt, ebb__task *t) {
    if (!(t->flags & F_REWAKE)) return;
    t->flags = (uint16_t)(t->flags & ~F_REWAKE);
    if (t->queue == EBB_LANE_NONE) ebb__enqueue(rt, t);
}

/* What is left to do for a task whose body is over: its waits, its regions, its finalizers, its
 * obligations, in this order. Called again whenever something of that has moved. */
__attribute__((noinline)) static void settle(ebb_rt *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (t->told != 0 && rt->now >= ebb__cleanup_deadline(rt, t)) t->flags |= F_FIN_FORCED;
    for (;;) {
        /* Those of the body, or of a finalizer that is over; the one that runs keeps its own. */
        bool between = !(t->flags & F_IN_FINALIZER);
        while (between && c->wait != NULL) ebb__wait_drop(rt, c->wait);
        if (between && t->flags & F_SCOPE && !ebb__scopes_join(rt, t)) {
            ebb__task_rewoken(rt, t);
            return;
        }
        ebb__duty *d = ebb__next_finalizer(rt, t);
        if (d == NULL) break;
        if (!ebb__run_finalizer(rt, t, d)) return;
    }
    if (t->flags & F_DUTY && !EBB__MUTANT(rt, EBB_ORACLE_OBLIGATION_LEAK)) ebb__leak_all(rt, t);
    ebb__dequeue(rt, t); /* a hook, or a region that closed, may have woken it meanwhile */
    task_end(rt, t, (ebb_status)(int32_t)t->polls_left);
}

/* The body is over, with this status. */
EBB__INLINE void body_over(ebb_rt *rt, ebb__task *t, ebb_status status) {
    if (EBB__UNLIKELY(status == EBB_FAULTED)) {
        ebb__emit_task(rt, EBB_EV_FAULTED, t, 0, 0);
    } else if (t->phase == EBB_CANCELLING && !(t->flags & F_ABANDONED)) {
        ebb__phase_move(rt, t, EBB_FINALIZING);
        ebb__emit_task(rt, EBB_EV_CLEANUP_DONE, t, 0, 0);
    }
    if (EBB__LIKELY(!(t->flags & F_COLD))) {
        task_end(rt, t, status);
        return;
    }
    t->flags |= F_RETURNED;
    t->polls_left = (uint32_t)status;
    settle(rt, t);
}

/* It did not return: it is never polled again, its state is never touched again. */
__attribute__((cold, noinline)) static void abandon(ebb_rt *rt, ebb__task *t) {
    ebb__region *r = ebb__region_at(rt, t->region);
    t->flags |= F_ABANDONED;
    r->abandoned++;
    rt->stats.abandoned++;
    ebb__blame(rt,
               (ebb__guilty){EBB__G_TASK, 0, r->index, ebb__task_id(t), 0, ebb__cold_at(rt, t->index)->site});
    ebb__emit_task(rt, EBB_EV_ABANDONED, t, 0, 0);
    ebb__emit_text(rt, ebb__cold_at(rt, t->index)->site);
    body_over(rt, t, EBB_CANCELLED);
}

/* ---- one poll ---------------------------------------------------------------------------------- */

/* A servant has to end only when all that it serves has ended, forced or not; a steward when it sees fit. */
static bool servant_waits(const ebb_rt *rt, const ebb__task *t) {
    if (!(t->flags & F_CLOSER)) return false;
    if (ebb__is_steward(rt, t)) return true;
    return ebb__is_servant(rt, t) && !ebb__servant_is_last(ebb__region_at(rt, t->region));
}

/* Counts a poll against the budget that it has. */
static void charge(ebb_rt *rt, ebb__task *t) {
    if (servant_waits(rt, t)) return;
    if (t->flags & F_FORCED) {
        t->force_left--;
    } else if (t->polls_left != EBB_POLLS_UNBOUNDED && (t->phase == EBB_CANCELLING || t->told == 0)) {
        if (t->polls_left > 0) {
            t->polls_left--;
        } else if (t->told != 0) {
            ebb__task_overdue(rt, t);
            t->force_left--;
        } else {
            cancel_one(rt, t, EBB_CANCEL_BUDGET, 0, "its polls are used up");
        }
    }
}

static ebb_status journaled_call(ebb_rt *rt, ebb__task *t) {
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_CALL, .value = EBB__CALL_POLL, .task = ebb__task_id(t)});
    ebb_status st = t->poll(&t->cx, t->state);
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_RETURN, .value = (uint32_t)st});
    return st;
}

static inline ebb_status call(ebb_rt *rt, ebb__task *t) {
    if (EBB__UNLIKELY(rt->journal != NULL)) return journaled_call(rt, t);
    return t->poll(&t->cx, t->state);
}

static ebb_status watched_call(ebb_rt *rt, ebb__task *t) {
    ebb__watch_begin(rt, ebb__task_id(t), ebb__cold_at(rt, t->index)->site);
    ebb_status st = call(rt, t);
    ebb__watch_end(rt);
    return st;
}

/* The body has been polled and is not over. */
EBB__INLINE void parked(ebb_rt *rt, ebb__task *t) {
    if (EBB__UNLIKELY(t->flags & F_FORCED) && !servant_waits(rt, t)) {
        if (t->force_left == 0) {
            abandon(rt, t);
        } else {
            t->flags = (uint16_t)(t->flags & ~F_REWAKE);
            ebb__enqueue(rt, t);
        }
    } else if (t->flags & F_REWAKE) {
        ebb__task_rewoken(rt, t);
    }
}

EBB__INLINE void poll_body(ebb_rt *rt, ebb__task *t, bool observed) {
    t->flags = (uint16_t)((t->flags | F_POLLING) & ~F_JOINING);
    rt->current = t;
    ebb_status st = observed && rt->watched ? watched_call(rt, t)
                    : observed              ? call(rt, t)
                                            : t->poll(&t->cx, t->state);
    rt->current = NULL;
    t->flags = (uint16_t)(t->flags & ~F_POLLING);
    if (st == EBB_PENDING) parked(rt, t);
    else body_over(rt, t, st);
}

/* With everything that may be attached to a poll: recorders, a watchdog, a budget, an end in progress. */
__attribute__((noinline)) static void poll_observed(ebb_rt *rt, ebb__task *t, ebb_lane lane,
                                                    uint32_t waited) {
    ebb__emit_task(rt, EBB_EV_TASK_POLLED, t, (uint32_t)lane, waited);
    if (t->flags & F_RETURNED) {
        settle(rt, t);
        return;
    }
    t->flags |= F_POLLING; /* before the charge, which may cancel: that must not queue it now */
    if (t->polls_left != EBB_POLLS_UNBOUNDED || t->flags & F_FORCED) charge(rt, t);
    poll_body(rt, t, true);
}

void ebb__task_poll(ebb_rt *rt, ebb__task *t, ebb_lane lane, uint32_t waited) {
    rt->stats.polls++;
    if (t->phase == EBB_CREATED) ebb__phase_move(rt, t, EBB_RUNNING);
    bool metered = t->polls_left != EBB_POLLS_UNBOUNDED && t->phase != EBB_CANCEL_REQUESTED;
    if (EBB__UNLIKELY(rt->observed || metered || t->flags & (F_RETURNED | F_FORCED))) {
        poll_observed(rt, t, lane, waited);
    } else {
        poll_body(rt, t, false);
    }
}

/* ---- cancel and force, for one task -------------------------------------------------------------- */

static uint32_t polls_of(const ebb__task *t) {
    return t->flags & F_RETURNED ? 0 : t->polls_left;
}

/* A queued task moves to the cancel lane; one that is being polled is polled once more. */
static void reroute(ebb_rt *rt, ebb__task *t, uint64_t deadline) {
    if (t->flags & F_POLLING) {
        t->flags |= F_REWAKE;
    } else if ((t->queue & 3) != EBB_LANE_CANCEL || ebb__due_sooner(rt, t, deadline)) {
        ebb__dequeue(rt, t);
        ebb__enqueue_cancelled(rt, t, deadline);
    }
}

void ebb__task_request(ebb_rt *rt, ebb__task *t, uint8_t kind, uint8_t severity, uint32_t polls,
                       uint64_t deadline) {
    if (t->phase <= EBB_RUNNING) {
        ebb__phase_move(rt, t, EBB_CANCEL_REQUESTED);
        t->told = ebb__told(kind, severity, 1);
        if (!(t->flags & F_RETURNED) && !ebb__is_servant(rt, t)) t->polls_left = polls;
        t->cx.signal |= EBB_SIGNAL_STOP;
        if (EBB__LIKELY(t->mask == 0)) {
            t->cx.signal |= EBB_SIGNAL_CANCEL;
        } else {
            ebb__signal_update(rt, t);
        }
        reroute(rt, t, deadline);
        ebb__emit_task(rt, EBB_EV_CANCEL_REQUESTED, t, polls_of(t), deadline);
        return;
    }
    if (t->phase == EBB_COMPLETED) return;
    if (severity > ebb__told_severity(t->told) || EBB__MUTANT(rt, EBB_ORACLE_SEVERITY)) {
        uint8_t epoch = ebb__told_epoch(t->told);
        t->told = ebb__told(kind, severity, (uint8_t)(epoch + (severity > ebb__told_severity(t->told))));
    }
    if (EBB__MUTANT(rt, EBB_ORACLE_PHASE) && t->phase == EBB_CANCELLING) t->phase = EBB_CANCEL_REQUESTED;
    if (!(t->flags & F_RETURNED) && !ebb__is_servant(rt, t) &&
        (polls < t->polls_left || EBB__MUTANT(rt, EBB_ORACLE_BUDGET))) {
        t->polls_left = polls;
    }
    reroute(rt, t, deadline);
    ebb__emit_task(rt, EBB_EV_CANCEL_STRENGTHENED, t, polls_of(t), ebb__cleanup_deadline(rt, t));
}

enum { AHEAD = 16 };

/* What most tasks are when their region is cancelled: nothing to be said about them but that. */
EBB__INLINE bool plainly_parked(const ebb__task *t) {
    return t->queue == EBB_LANE_NONE && t->phase == EBB_RUNNING && t->mask == 0 &&
           !(t->flags & (F_POLLING | F_RETURNED | F_CLOSER));
}

void ebb__tasks_request(ebb_rt *rt, ebb__region *r) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    uint8_t kind = ebb__told_kind(r->told), severity = ebb__told_severity(r->told);
    uint8_t bucket = ebb__bucket_of(rt, r->deadline);
    uint32_t parked = 0;
    for (uint32_t i = r->tasks.n; i-- > 0;) {
        if (i >= AHEAD) __builtin_prefetch(ebb__task_at(rt, tasks[i - AHEAD]), 1);
        ebb__task *t = ebb__task_at(rt, tasks[i]);
        if (EBB__MUTANT(rt, EBB_ORACLE_TASK_LEAK) && t->told == 0 && t->mask > 0) continue;
        if (r->priority > t->priority) t->priority = r->priority;
        if (EBB__UNLIKELY(!plainly_parked(t))) {
            ebb__task_request(rt, t, kind, severity, r->polls, r->deadline);
            continue;
        }
        t->phase = EBB_CANCEL_REQUESTED;
        t->told = ebb__told(kind, severity, 1);
        t->polls_left = r->polls;
        t->cx.signal = EBB_SIGNAL_STOP | EBB_SIGNAL_CANCEL;
        t->queue = (uint8_t)(EBB_LANE_CANCEL | bucket << 2);
        t->qpos = ebb__lanes_push(&rt->lanes, &rt->queue[bucket], t->index);
        parked++;
        ebb__emit_task(rt, EBB_EV_CANCEL_REQUESTED, t, r->polls, r->deadline);
    }
    if (parked == 0) return;
    rt->cancel_count += parked;
    rt->cancel_buckets |= UINT64_C(1) << bucket;
}

void ebb__task_overdue(ebb_rt *rt, ebb__task *t) {
    if (t->phase == EBB_COMPLETED) return;
    if (t->flags & F_RETURNED) { /* in its finalizers: they look at the clock themselves */
        ebb__wake(rt, t);
        return;
    }
    if (t->flags & F_FORCED) return;
    t->flags |= F_FORCED;
    t->force_left = EBB__FORCE_POLLS;
    ebb__signal_update(rt, t);
    ebb__emit_task(rt, EBB_EV_TASK_FORCED, t, EBB__FORCE_POLLS, 0);
    reroute(rt, t, ebb__cleanup_deadline(rt, t));
}

/* Keeps the stronger of two own reasons, if there is a slot for it. */
static void own_reason(ebb_rt *rt, ebb__cold *c, const ebb_reason *reason) {
    if (c->reason == 0) {
        rt->reasons_low = true; /* the pump looks how many are left */
        if (!ebb__slab_ready(&rt->reasons)) return;
        c->reason = ebb__slab_take(&rt->reasons);
        ((ebb__own_reason *)ebb__slab_at(&rt->reasons, c->reason))->reason = *reason;
        return;
    }
    ebb__own_reason *own = ebb__slab_at(&rt->reasons, c->reason);
    own->reason = ebb_reason_strengthen(&own->reason, reason);
}

static void cancel_one(ebb_rt *rt, ebb__task *t, uint8_t kind, uint64_t origin, const char *message) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    ebb_reason reason = {.kind = kind,
                         .severity = (uint8_t)ebb_cancel_severity(kind),
                         .runtime = rt->id,
                         .origin = origin,
                         .sequence = ++rt->sequence};
    ebb__message_copy(reason.message, message);
    ebb_budget b = ebb__cleanup_budget(rt, reason.severity, t->priority);
    uint64_t force_at = ebb__force_at(rt->now, b.deadline);
    uint32_t ref = ebb__wheel_ref(EBB__W_TASK, t->index);
    own_reason(rt, c, &reason);
    bool had = (t->flags & F_OWN_CANCEL) != 0;
    if (!had && t->flags & F_NODE && c->node.next != 0) {
        ebb__cap_by_deadline(rt, c->node.due, &b.deadline, &force_at);
    }
    uint64_t old_end = had ? c->node.due + (uint64_t)c->kept * 1024 : EBB_FOREVER;
    if (!had || force_at < c->node.due || b.deadline < old_end) {
        uint64_t end = b.deadline < old_end ? b.deadline : old_end;
        if (had && c->node.due < force_at) force_at = c->node.due;
        ebb__wheel_disarm(&rt->wheel, ref);
        c->kept = end > force_at ? (uint32_t)((end - force_at) / 1024) : 0;
        ebb__wheel_arm(&rt->wheel, ref, force_at);
    }
    t->flags |= F_OWN_CANCEL;
    ebb__task_request(rt, t, kind, reason.severity, b.polls, ebb__cleanup_deadline(rt, t));
}

void ebb__task_fired(ebb_rt *rt, ebb__task *t) {
    if (t->flags & F_OWN_CANCEL) {
        ebb__cold *c = ebb__cold_at(rt, t->index);
        if (c->kept > 0) { /* the finalizers' part comes next */
            uint64_t end = c->node.due + (uint64_t)c->kept * 1024;
            ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), end);
            c->kept = 0;
        }
        ebb__task_overdue(rt, t);
    } else if (t->phase == EBB_CREATED) {
        ebb__dequeue(rt, t);
        task_end(rt, t, EBB_CANCELLED);
    } else {
        cancel_one(rt, t, EBB_CANCEL_TIMEOUT, 0, "its deadline has passed");
    }
}

/* EBB_OK and a task that has not ended; a stale one is counted. */
static bool cancellable(ebb_rt *rt, ebb_task task, ebb__task **out) {
    ebb_status st = ebb__find_task(rt, task, out);
    if (st == EBB_OK && (*out)->phase != EBB_COMPLETED) return true;
    if (st == EBB_OK || st == EBB_ERR_STALE) {
        rt->stats.stale_wakes++;
        ebb__emit_plain(rt, EBB_EV_STALE_WAKE, task.id, 0, 0, 0);
    }
    return false;
}

void ebb_task_cancel(ebb_cx *cx, ebb_task task, ebb_cancel_kind kind, const char *message) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__task *t;
    if (ebb_cancel_severity(kind) == 0) kind = EBB_CANCEL_USER;
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_CANCEL, .task = task.id, .kind = (uint8_t)kind});
    ebb__journal_text(rt, message);
    if (!cancellable(rt, task, &t)) return;
    cancel_one(rt, t, (uint8_t)kind, ebb__task_id(ebb__task_of(cx)), message);
}

/* What is left is the finalizers' part, from now on. */
static void end_own_budget(ebb_rt *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    const ebb__region *r = ebb__region_at(rt, t->region);
    bool own = (t->flags & F_OWN_CANCEL) != 0;
    if (own && c->kept == 0) return; /* it has begun before */
    uint64_t kept = own                         ? (uint64_t)c->kept * 1024
                    : r->deadline > r->force_at ? r->deadline - r->force_at
                                                : 0;
    uint64_t end = ebb__cleanup_deadline(rt, t);
    if (end > rt->now && end - rt->now > kept) end = rt->now + kept;
    ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index));
    ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), end);
    c->kept = 0;
    t->flags |= F_OWN_CANCEL;
}

void ebb_task_force(ebb_cx *cx, ebb_task task) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_FORCE, .task = task.id});
    if (!cancellable(rt, task, &t)) return;
    if (t->told == 0) cancel_one(rt, t, EBB_CANCEL_BUDGET, ebb__task_id(ebb__task_of(cx)), "forced");
    end_own_budget(rt, t);
    ebb__task_overdue(rt, t);
}

/* ---- what a task asks ---------------------------------------------------------------------------- */

ebb_status ebb__acknowledge(ebb_cx *cx) {
    ebb__task *t = ebb__task_of(cx);
    ebb_rt *rt = t->rt;
    ebb_status st = ebb_cancelled(cx) ? EBB_CANCELLED : EBB_OK;
    if (st == EBB_CANCELLED && t->phase == EBB_CANCEL_REQUESTED && !(t->flags & F_RETURNED)) {
        ebb__phase_move(rt, t, EBB_CANCELLING);
        ebb__emit_task(rt, EBB_EV_CANCEL_ACKED, t, t->polls_left, ebb__cleanup_deadline(rt, t));
    }
    return st;
}

ebb_status ebb_checkpoint_slow(ebb_cx *cx) {
    ebb_status st = ebb__acknowledge(cx);
    ebb__journal(ebb__rt_of(cx), cx, (ebb_record){.type = J_CHECKPOINT, .value = (uint32_t)st});
    return st;
}

static ebb_status set_mask(ebb_cx *cx, int by) {
    ebb__task *t = ebb__task_of(cx);
    ebb_rt *rt = t->rt;
    ebb_status st = EBB_OK;
    if (t->index == 0) return EBB_ERR_NOT_TASK;
    if (by > 0 && t->mask == EBB_MASK_MAX) {
        st = EBB_ERR_MASK_DEPTH;
    } else if (by < 0 && t->mask <= (t->flags & F_IN_FINALIZER ? 1 : 0)) {
        st = EBB_ERR_MASK_UNDERFLOW;
    } else {
        t->mask = (uint8_t)(t->mask + by);
        ebb__signal_update(rt, t);
        ebb__emit_task(rt, by > 0 ? EBB_EV_MASKED : EBB_EV_UNMASKED, t, t->mask, 0);
    }
    ebb__journal(rt, cx, (ebb_record){.type = by > 0 ? J_MASK : J_UNMASK, .value = (uint32_t)st});
    return st;
}

ebb_status ebb_mask(ebb_cx *cx) {
    return set_mask(cx, 1);
}

ebb_status ebb_unmask(ebb_cx *cx) {
    return set_mask(cx, -1);
}

/* Takes a kept task out of its region's list. */
static void unkeep(ebb_rt *rt, ebb__task *t) {
    ebb__region *r = ebb__region_at(rt, t->region);
    if (t->pos != 0) ebb__task_at(rt, t->pos)->qpos = t->qpos;
    else r->kept = t->qpos;
    if (t->qpos != 0) ebb__task_at(rt, t->qpos)->pos = t->pos;
}

static ebb_status task_join(ebb_rt *rt, ebb_cx *cx, ebb_task task) {
    ebb__task *me = ebb__task_of(cx), *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st != EBB_OK) return st;
    if (!(t->flags & F_KEEP) || t == me) return EBB_ERR_INVALID;
    ebb__task *other = joiner(rt, t->waiter);
    if (other != NULL && other != me) return EBB_ERR_BUSY;
    if (ebb__is_overdue(me)) return ebb__acknowledge(cx);
    if (t->phase == EBB_COMPLETED) {
        st = (ebb_status)(int32_t)t->polls_left;
        ebb__emit_task(rt, EBB_EV_TASK_JOINED, t, (uint32_t)st, ebb__task_id(me));
        if (t->flags & F_ABANDONED) { /* stays for the region's report */
            t->flags = (uint16_t)(t->flags & ~F_KEEP);
        } else {
            unkeep(rt, t);
            ebb__task_release(rt, t);
        }
        return st;
    }
    if (me->index == 0) return EBB_PENDING;
    if (ebb__is_servant(rt, me)) return EBB_ERR_NOT_TASK;
    if (ebb__acknowledge(cx) != EBB_OK) {
        t->waiter = 0;
        return EBB_CANCELLED;
    }
    t->waiter = joiner_of(me);
    me->flags |= F_JOINING;
    return EBB_PENDING;
}

static ebb_status journaled_join(ebb_rt *rt, ebb_cx *cx, ebb_task task) {
    ebb_status st = task_join(rt, cx, task);
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_JOIN, .task = task.id, .value = (uint32_t)st});
    return st;
}

ebb_status ebb_task_join(ebb_cx *cx, ebb_task task) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb_status st;
    EBB__AWAIT(cx, st, journaled_join(rt, cx, task));
    return st;
}

ebb_status ebb_task_info_of(ebb_cx *cx, ebb_task task, ebb_task_info *out) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st != EBB_OK) return st;
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    const ebb__region *r = ebb__region_at(rt, t->region);
    *out = (ebb_task_info){
        .task = task,
        .region = {ebb__region_id(rt, r)},
        .phase = (ebb_phase)t->phase,
        .status = t->phase == EBB_COMPLETED ? (ebb_status)(int32_t)t->polls_left : EBB_PENDING,
        .mask_depth = t->mask,
        .lane = t->queue & 3,
        .epoch = ebb__told_epoch(t->told),
        .forced = (t->flags & F_FORCED) != 0,
        .site = c->site,
    };
    if (t->told != 0) {
        bool own = t->flags & F_OWN_CANCEL && c->reason != 0;
        ebb_reason mine =
            own ? ((ebb__own_reason *)ebb__slab_at(&rt->reasons, c->reason))->reason : (ebb_reason){0};
        ebb_reason its = ebb__region_reason(rt, r);
        out->reason = ebb_reason_strengthen(&mine, &its);
        out->reason.kind = ebb__told_kind(t->told);
        out->reason.severity = ebb__told_severity(t->told);
    }
    out->budget =
        (ebb_budget){ebb__cleanup_deadline(rt, t),
                     t->phase == EBB_COMPLETED || t->flags & F_RETURNED ? 0 : t->polls_left, t->priority};
    return EBB_OK;
}
