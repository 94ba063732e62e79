#include "kernel/task.h"

#include <assert.h>

#include "kernel/lane.h"
#include "kernel/obligation.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/wait.h"
#include "kernel/watchdog.h"

/* ---- the table --------------------------------------------------------------------------------- */

bool ebb__phase_refused(ebb_runtime *rt, ebb__task *t, ebb_task_phase to) {
    rt->stats.illegal++;
    ebb__emit_task(rt, EBB_EV_ILLEGAL, t, (uint32_t)t->phase << 8 | (uint32_t)to, 0);
    return false;
}

void ebb__signal_update(ebb_runtime *rt, ebb__task *t) {
    (void)rt;
    /* A finalizer has the kept-back part of the budget, however the body has ended. */
    uint32_t over = t->flags & F_IN_FINALIZER ? F_FIN_FORCED : F_FORCED | F_FIN_FORCED;
    bool masked = t->mask > 0 && !(t->flags & over);
    if (EBB__MUTANT(rt, EBB_ORACLE_ACK_UNMASKED)) masked = false;
    if (t->request != 0 && !masked) {
        t->cx.signal |= EBB_CX_CANCEL;
    } else {
        t->cx.signal &= ~EBB_CX_CANCEL;
    }
}
/* ---- the end ----------------------------------------------------------------------------------- */

/* Lets go of what cold.* holds: timers, reason. */
static void cold_clear(ebb_runtime *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    assert(c->wait == NULL && c->scopes == 0 && c->owed == 0); /* it owes nobody anything */
    if (t->flags & (F_NODE | F_OWN_CANCEL)) {
        ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index));
    }
    if (c->reason != 0) ebb__slab_give(&rt->reasons, c->reason);
    c->reason = 0;
}

EBB__INLINE void give_back(ebb_runtime *rt, ebb__task *t) {
    assert(t->phase == EBB_TASK_COMPLETED && !(t->flags & F_POLLING));
    t->phase = 0;
    uint32_t retired = rt->tasks.retired;
    ebb__slab_give_record(&rt->tasks, t->index, t);
    if (EBB__LIKELY(rt->tasks.retired == retired)) rt->credit++;
}

void ebb__task_release(ebb_runtime *rt, ebb__task *t) {
    give_back(rt, t);
}

/* Its futures have ended: others who wait for them are woken. The region keeps them until it closes. */
static void runner_over(ebb_runtime *rt, ebb__region *r) {
    assert(r->callbacks != NULL);
    r->runner = 0;
    ebb__callbacks_call(rt, r, r->callbacks->ended);
}

/* It has ended with this status, and its region hears of it. */
static void tell_region(ebb_runtime *rt, ebb__region *r, ebb_status status, uint64_t task) {
    if (status == EBB_CANCELLED) {
        if (r->status == EBB_OK) r->status = EBB_CANCELLED;
    } else if (EBB__UNLIKELY(status != EBB_OK)) {
        ebb__region_failed(rt, r, status, task);
    }
    if (r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS)) ebb__region_advance(rt, r);
}

/* What a plain end has nothing of, all in F_LONG. */
static void end_cold(ebb_runtime *rt, ebb__region *r, ebb__task *t, ebb_status status) {
    assert(!(t->flags & F_TIMED) || rt->timed.members > 0);
    if (t->flags & F_TIMED) rt->timed.members--;
    if (!(t->flags & F_COLD)) return;
    if (rt->layers.call.task_ended != NULL) rt->layers.call.task_ended(&t->cx, status);
    cold_clear(rt, t);
    if (ebb__cold_of(r)->closer == t->index) ebb__cold_of(r)->closer = 0;
    if (r->runner == t->index) runner_over(rt, r);
    if (r->flags & R_SUPERVISED && ebb__cold_of(r)->supervisor == t->index) ebb__supervisor_over(rt, r);
    ebb__task *waits = ebb__joiner(rt, t);
    if (waits != NULL) ebb__wake(rt, waits);
}

/* Ends by the long way, or has a place in a lane's heap that is kept for it. */
enum { F_LONG = F_COLD | F_TIMED };

/* The one function that ends a task. `plain`: without F_LONG, and no trace is on. */
EBB__INLINE void task_end(ebb_runtime *rt, ebb__task *t, ebb_status status, bool plain) {
    ebb__region *r = ebb__region_at(rt, t->region);
    uint32_t generation = t->generation;
    bool finalized = t->phase == EBB_TASK_FINALIZING && status != EBB_FAULTED;
    assert(t->index != 0 && t->queue == EBB_LANE_NONE && status != EBB_PENDING);
    if (finalized) status = EBB_CANCELLED;
    ebb__phase_move(rt, t, EBB_TASK_COMPLETED);
    if (!plain) {
        ebb__emit_task(rt, finalized ? EBB_EV_FINALIZED : EBB_EV_COMPLETED, t, (uint32_t)status, 0);
    }
    rt->stats.ended++;
    uint32_t moved = ebb__u32s_remove(&r->tasks, t->pos);
    if (moved != 0) ebb__task_at(rt, moved)->pos = t->pos;
    if (!plain && t->flags & F_LONG) end_cold(rt, r, t, status);
    bool apart = t->waiter == EBB__APART;
    if (!plain && t->flags & (F_KEEP | F_ABANDONED)) {
        t->status = status;
        t->kept_prev = 0;
        ebb__region_cold *c = ebb__cold_of(r);
        t->kept_next = c->kept;
        if (c->kept != 0) ebb__task_at(rt, c->kept)->kept_prev = t->index;
        c->kept = t->index;
        r->flags |= R_MORE;
    } else {
        give_back(rt, t);
    }
    /* Whoever has its future hears of the rest. */
    if (EBB__UNLIKELY(apart) && status != EBB_FAULTED) status = EBB_OK;
    if (EBB__UNLIKELY(status != EBB_OK || r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS))) {
        tell_region(rt, r, status, ebb__id(rt, t->index, generation));
    }
}

void ebb__task_end_unpolled(ebb_runtime *rt, ebb__task *t) {
    ebb__dequeue(rt, t);
    task_end(rt, t, EBB_CANCELLED, false);
}

void ebb__task_rewoken(ebb_runtime *rt, ebb__task *t) {
    if (!(t->flags & F_REWAKE)) return;
    t->flags &= ~(uint32_t)F_REWAKE;
    if (t->queue == EBB_LANE_NONE) ebb__enqueue(rt, t);
}

static ebb_status call(ebb_runtime *rt, ebb__task *t);
static ebb_status watched_call(ebb_runtime *rt, ebb__task *t);

/* A callback runner has to end only when all that it serves has ended, forced or not; a supervisor when it sees fit. */
static bool runner_waits(const ebb_runtime *rt, const ebb__task *t) {
    if (!(t->flags & F_CLOSER)) return false;
    if (ebb__is_supervisor(rt, t)) return true;
    return ebb__task_is_runner(rt, t) && !ebb__runner_is_last(ebb__region_at(rt, t->region));
}

/* A callback runner has returned, but what callbacks have deferred may make futures: it is called for these.
 * Once its budget is over, and it has nothing else to do (`idle`), it is called as often as a finalizer. True
 * if some are not done. */
static bool serves_on(ebb_runtime *rt, ebb__task *t, bool idle) {
    if (!ebb__task_is_runner(rt, t) || t->flags & F_ABANDONED) return false;
    bool forced = idle && t->flags & F_FIN_FORCED && !runner_waits(rt, t);
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (forced && c->force_left > 0) c->force_left--;
    t->flags |= F_POLLING;
    rt->current = t;
    ebb_status st = rt->watched ? watched_call(rt, t) : call(rt, t);
    rt->current = NULL;
    t->flags &= ~(uint32_t)F_POLLING;
    if (st == EBB_PENDING && forced && !rt->short_pumps) t->flags |= F_REWAKE;
    return st == EBB_PENDING;
}

/* What is left to do for a task whose body is over: its waits, its regions, its finalizers, its
 * obligations, in this order. Called again (not `first`) whenever something of that has moved. */
__attribute__((noinline)) static void settle(ebb_runtime *rt, ebb__task *t, bool first) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (t->request != 0 && !(t->flags & F_FIN_FORCED) && rt->now >= ebb__cleanup_deadline(rt, t)) {
        t->flags |= F_FIN_FORCED;
        ebb__signal_update(rt, t);
        ebb__scopes_again(rt, t);
    }
    for (;; first = false) {
        /* Those of the body, or of a finalizer that is over; the one that runs keeps its own. */
        bool between = !(t->flags & F_IN_FINALIZER);
        while (between && c->wait != NULL) ebb__wait_drop(rt, c->wait);
        if (between && t->flags & F_SCOPE && !ebb__scopes_join(rt, t)) {
            if (!first) (void)serves_on(rt, t, false); /* others may wait for a future that has come since */
            ebb__task_rewoken(rt, t);
            return;
        }
        ebb__obligation *d = ebb__next_finalizer(rt, t);
        bool busy = !first && serves_on(rt, t, d == NULL);
        if (d != NULL) {
            if (!ebb__run_finalizer(rt, t, d)) return;
        } else if (busy) {
            ebb__task_rewoken(rt, t);
            return;
        } else if (t->flags & F_OWES && !EBB__MUTANT(rt, EBB_ORACLE_OBLIGATION_LEAK)) {
            ebb__leak_all(rt, t); /* its hooks may make futures too */
        } else {
            break;
        }
    }
    ebb__dequeue(rt, t); /* a hook, or a region that closed, may have woken it meanwhile */
    task_end(rt, t, (ebb_status)t->status, false);
}

/* The body is over, with this status. */
static void body_over(ebb_runtime *rt, ebb__task *t, ebb_status status) {
    if (EBB__UNLIKELY(status == EBB_FAULTED)) {
        ebb__emit_task(rt, EBB_EV_FAULTED, t, 0, 0);
    } else if (t->phase == EBB_TASK_CANCELLING && !(t->flags & F_ABANDONED)) {
        ebb__phase_move(rt, t, EBB_TASK_FINALIZING);
        ebb__emit_task(rt, EBB_EV_CLEANUP_DONE, t, 0, 0);
    }
    if (EBB__LIKELY(!(t->flags & F_COLD))) {
        task_end(rt, t, status, false);
        return;
    }
    t->flags = (t->flags | F_RETURNED) & ~(uint32_t)F_JOINING; /* it has left what its body had joined */
    t->status = status;
    settle(rt, t, true);
}

/* It did not return: it is never polled again, its state is never touched again. */
__attribute__((cold, noinline)) static void abandon(ebb_runtime *rt, ebb__task *t) {
    ebb__region *r = ebb__region_at(rt, t->region);
    t->flags |= F_ABANDONED;
    ebb__cold_of(r)->abandoned++;
    rt->stats.abandoned++;
    ebb__leak_report(rt, (ebb__leak){.what = EBB__LEAK_TASK,
                                     .region = r,
                                     .id = ebb__task_id(t),
                                     .site = ebb__cold_at(rt, t->index)->site});
    ebb__emit_task(rt, EBB_EV_ABANDONED, t, 0, 0);
    ebb__emit_text(rt, ebb__cold_at(rt, t->index)->site);
    body_over(rt, t, EBB_CANCELLED);
}

/* ---- one poll ---------------------------------------------------------------------------------- */

/* Counts a poll against the budget that it has. */
static void charge(ebb_runtime *rt, ebb__task *t) {
    if (runner_waits(rt, t)) return;
    if (t->flags & F_FORCED) {
        ebb__cold *c = ebb__cold_at(rt, t->index);
        if (c->force_left > 0) c->force_left--; /* a runner that had to wait may have used them up before */
    } else if (t->polls_left != EBB_POLLS_UNBOUNDED && (t->phase == EBB_TASK_CANCELLING || t->request == 0)) {
        if (t->polls_left > 0) {
            t->polls_left--;
        } else if (t->request != 0) {
            ebb__task_overdue(rt, t);
            ebb__cold_at(rt, t->index)->force_left--;
        } else {
            ebb__task_cancel_own(rt, t, EBB_CANCEL_BUDGET, 0, "its polls are used up");
        }
    }
}

static ebb_status journaled_call(ebb_runtime *rt, ebb__task *t) {
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_CALL, .value = EBB__CALL_POLL, .task = ebb__task_id(t)});
    ebb_status st = t->poll(&t->cx, t->state);
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_RETURN, .value = (uint32_t)st});
    return st;
}

static ebb_status call(ebb_runtime *rt, ebb__task *t) {
    if (EBB__UNLIKELY(rt->journal != NULL)) return journaled_call(rt, t);
    return t->poll(&t->cx, t->state);
}

static ebb_status watched_call(ebb_runtime *rt, ebb__task *t) {
    ebb__watch_begin(rt, ebb__task_id(t), ebb__cold_at(rt, t->index)->site);
    ebb_status st = call(rt, t);
    ebb__watch_end(rt);
    return st;
}

/* The body has been polled and is not over. */
static void parked(ebb_runtime *rt, ebb__task *t) {
    if (EBB__UNLIKELY(t->flags & F_FORCED) && !runner_waits(rt, t)) {
        if (ebb__cold_at(rt, t->index)->force_left == 0) {
            abandon(rt, t);
        } else {
            if (!rt->short_pumps) t->flags |= F_REWAKE;
            ebb__task_rewoken(rt, t);
        }
    } else if (t->flags & F_REWAKE) {
        ebb__task_rewoken(rt, t);
    }
}

/* What most polls lead to needs no call of another function. */
void ebb__task_polled(ebb_runtime *rt, ebb__task *t, ebb_status st) {
    if (st == EBB_PENDING) {
        parked(rt, t);
    } else if (EBB__UNLIKELY(rt->trace != NULL || t->flags & F_LONG)) {
        body_over(rt, t, st);
    } else {
        if (t->phase == EBB_TASK_CANCELLING && st != EBB_FAULTED) ebb__phase_move(rt, t, EBB_TASK_FINALIZING);
        task_end(rt, t, st, true);
    }
}

/* With everything that may be attached to a poll: recorders, a watchdog, a budget, an end in progress. */
void ebb__task_poll_slow(ebb_runtime *rt, ebb__task *t, ebb_lane lane, uint32_t waited) {
    ebb__emit_task(rt, EBB_EV_TASK_POLLED, t, (uint32_t)lane, waited);
    if (t->flags & F_RETURNED) {
        settle(rt, t, false);
        return;
    }
    t->flags |= F_POLLING; /* before the charge, which may cancel: that must not queue it now */
    if (t->polls_left != EBB_POLLS_UNBOUNDED || t->flags & F_FORCED) charge(rt, t);
    ebb__polling(rt, t);
    ebb_status st = rt->watched ? watched_call(rt, t) : call(rt, t);
    ebb__polled(rt, t);
    ebb__task_polled(rt, t, st);
}
