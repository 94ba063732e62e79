#include "kernel/task.h"

#include <assert.h>

#include "kernel/lane.h"
#include "kernel/obligation.h"
#include "kernel/observe.h"
#include "kernel/poll_times.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/wait.h"
#include "kernel/watchdog.h"

/* ---- transitions --------------------------------------------------------------------------------------- */

bool ebb__phase_refused(ebb_runtime *rt, ebb__task *t, ebb_task_phase to) {
    rt->stats.illegal++;
    ebb__emit_task(rt, EBB_EV_ILLEGAL, t, (uint32_t)t->phase << 8 | (uint32_t)to, 0);
    return false;
}

void ebb__signal_update(ebb_runtime *rt, ebb__task *t) {
    (void)rt;
    /* A finalizer runs on the finalizers' part of the budget, even if the body was forced. */
    uint32_t over = t->flags & F_IN_FINALIZER ? F_FIN_FORCED : F_FORCED | F_FIN_FORCED;
    bool masked = t->mask > 0 && !(t->flags & over);
    if (t->request != 0 && !masked) {
        t->cx.signal |= EBB_CX_CANCEL;
    } else {
        t->cx.signal &= ~EBB_CX_CANCEL;
    }
}
/* ---- the end ------------------------------------------------------------------------------------------- */

/* Releases what the cold record holds: timer and reason. */
static void cold_clear(ebb_runtime *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    assert(c->wait == NULL && c->scopes == 0 && c->owed == 0); /* all of it has been settled */
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

/* The layer ends the runner's futures and wakes the tasks that wait for them. The region keeps the callbacks until
 * it closes. */
static void runner_ended(ebb_runtime *rt, ebb__region *r) {
    assert(r->callbacks != NULL);
    r->runner = 0;
    ebb__callbacks_call(rt, r, r->callbacks->ended);
}

/* Reports the end of a task to its region. */
static void notify_region(ebb_runtime *rt, ebb__region *r, ebb_status status, uint64_t task) {
    if (status == EBB_CANCELLED) {
        if (r->status == EBB_OK) r->status = EBB_CANCELLED;
    } else if (EBB__UNLIKELY(status != EBB_OK)) {
        ebb__region_failed(rt, r, status, task);
    }
    if (r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS)) ebb__region_advance(rt, r);
}

/* The rest of the end of a task with a flag of F_LONG. */
static void end_cold(ebb_runtime *rt, ebb__region *r, ebb__task *t, ebb_status status) {
    assert(!(t->flags & F_TIMED) || rt->timed.members > 0);
    if (t->flags & F_TIMED) rt->timed.members--;
    if (!(t->flags & F_COLD)) return;
    if (rt->layers.call.task_ended != NULL) rt->layers.call.task_ended(&t->cx, status);
    cold_clear(rt, t);
    if (ebb__cold_of(r)->closer == t->index) ebb__cold_of(r)->closer = 0;
    if (r->runner == t->index) runner_ended(rt, r);
    if (r->flags & R_SUPERVISED && ebb__cold_of(r)->supervisor == t->index) ebb__supervisor_ended(rt, r);
    ebb__task *waits = ebb__joiner(rt, t);
    if (waits != NULL) ebb__wake(rt, waits);
    if (t->flags & F_OBSERVED) ebb__observed_task_ended(rt, ebb__task_id(t));
}

/* Ends in end_cold, or has a reserved place in the timed lane. */
enum { F_LONG = F_COLD | F_TIMED };

/* The one function that ends a task. `plain`: no flag of F_LONG, and no trace is on. */
EBB__INLINE void task_end(ebb_runtime *rt, ebb__task *t, ebb_status status, bool plain) {
    ebb__region *r = ebb__region_at(rt, t->region);
    uint32_t generation = t->generation;
    bool finalized = t->phase == EBB_TASK_FINALIZING && status != EBB_FAULTED;
    assert(t->index != 0 && t->queue == EBB_LANE_NONE && status != EBB_PENDING);
    if (finalized) status = EBB_CANCELLED;
    ebb__phase_move(rt, t, EBB_TASK_COMPLETED);
    bool discarded = !plain && t->flags & F_DISCARDED;
    if (!plain) {
        uint8_t type = finalized ? EBB_EV_FINALIZED : discarded ? EBB_EV_DISCARDED : EBB_EV_COMPLETED;
        ebb__emit_task(rt, type, t, (uint32_t)status, 0);
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
    /* The task's future gets any other status. A discard is nobody's failure. */
    if (EBB__UNLIKELY((apart && status != EBB_FAULTED) || discarded)) status = EBB_OK;
    if (EBB__UNLIKELY(status != EBB_OK || r->state != EBB_REGION_OPEN || r->flags & (R_JOINING | R_ENDS))) {
        notify_region(rt, r, status, ebb__id(rt, t->index, generation));
    }
}

void ebb__task_end_unpolled(ebb_runtime *rt, ebb__task *t) {
    ebb__dequeue(rt, t);
    task_end(rt, t, EBB_CANCELLED, false);
}

/* Layers hear of its end even if it was never polled. */
void ebb__task_end_discarded(ebb_runtime *rt, ebb__task *t) {
    assert(t->phase <= EBB_TASK_RUNNING && t->mask == 0 && !(t->flags & (F_OWES | F_CLOSER | F_POLLING)));
    t->flags |= F_DISCARDED | F_WAIT;
    ebb__dequeue(rt, t);
    task_end(rt, t, EBB_DISCARDED, false);
}

void ebb__task_rewoken(ebb_runtime *rt, ebb__task *t) {
    if (!(t->flags & F_REWAKE)) return;
    t->flags &= ~(uint32_t)F_REWAKE;
    if (t->queue == EBB_LANE_NONE) ebb__enqueue(rt, t);
}

static ebb_status call(ebb_runtime *rt, ebb__task *t);
static ebb_status watched_call(ebb_runtime *rt, ebb__task *t);

/* A callback runner must not end before everything it serves has ended, even if it is forced. A supervisor decides
 * itself when it ends. */
static bool runner_waits(const ebb_runtime *rt, const ebb__task *t) {
    if (!(t->flags & F_CLOSER)) return false;
    if (ebb__is_supervisor(rt, t)) return true;
    return ebb__task_is_runner(rt, t) && !ebb__runner_is_last(ebb__region_at(rt, t->region));
}

/* A callback runner has returned, but functions that callbacks deferred may make new futures: it is polled again
 * for these. If its budget has run out and it has nothing else to do (`idle`), it gets as many polls as a
 * finalizer. True if it has more to do. */
static bool runner_serves(ebb_runtime *rt, ebb__task *t, bool idle) {
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

/* Ends a task whose body has returned: drops its waits, joins its regions, runs its finalizers, resolves its
 * obligations, in this order. Called again (not `first`) after each change. */
__attribute__((noinline)) static void settle(ebb_runtime *rt, ebb__task *t, bool first) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (t->request != 0 && !(t->flags & F_FIN_FORCED) && rt->now >= ebb__cleanup_deadline(rt, t)) {
        t->flags |= F_FIN_FORCED;
        ebb__signal_update(rt, t);
        ebb__scopes_again(rt, t);
    }
    for (;; first = false) {
        /* Waits of the body, or of a finalizer that has ended; a running finalizer keeps its own. */
        bool between = !(t->flags & F_IN_FINALIZER);
        while (between && c->wait != NULL) ebb__wait_drop(rt, c->wait);
        if (between && t->flags & F_SCOPE && !ebb__scopes_join(rt, t)) {
            if (!first) (void)runner_serves(rt, t, false); /* others may wait for a newer future */
            ebb__task_rewoken(rt, t);
            return;
        }
        ebb__obligation *d = ebb__next_finalizer(rt, t);
        bool busy = !first && runner_serves(rt, t, d == NULL);
        if (d != NULL) {
            if (!ebb__run_finalizer(rt, t, d)) return;
        } else if (busy) {
            ebb__task_rewoken(rt, t);
            return;
        } else if (t->flags & F_OWES) {
            ebb__leak_all(rt, t); /* abort hooks may make futures too */
        } else {
            break;
        }
    }
    ebb__dequeue(rt, t); /* a hook or a closed region may have woken it meanwhile */
    task_end(rt, t, (ebb_status)t->status, false);
}

/* The body has returned, or was abandoned. */
static void body_ended(ebb_runtime *rt, ebb__task *t, ebb_status status) {
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

/* The task did not end within its budget: it is never polled again, and its state is never touched again. */
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
    body_ended(rt, t, EBB_CANCELLED);
}

/* ---- one poll ------------------------------------------------------------------------------------------ */

/* Charges a poll to the budget. */
static void charge(ebb_runtime *rt, ebb__task *t) {
    if (runner_waits(rt, t)) return;
    if (t->flags & F_FORCED) {
        ebb__cold *c = ebb__cold_at(rt, t->index);
        if (c->force_left > 0) c->force_left--; /* a waiting runner may have used them up */
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

/* When a poll ends is no input of the kernel, and its time does not change. So it is noted as an event of a layer is:
 * a replay, which has no clock, takes it from the journal. */
static ebb_status recorded_call(ebb_runtime *rt, ebb__task *t) {
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_CALL, .value = EBB__CALL_POLL, .task = ebb__task_id(t)});
    ebb_status st = t->poll(&t->cx, t->state);
    if (rt->trace != NULL && rt->clock != NULL) {
        ebb__note_event(rt, EBB_EV_POLL_ENDED, .value = (uint32_t)st, .task = ebb__task_id(t),
                        .other = rt->clock(rt->clock_ctx));
    }
    ebb__journal(rt, &t->cx, (ebb_record){.type = J_RETURN, .value = (uint32_t)st});
    return st;
}

static ebb_status call(ebb_runtime *rt, ebb__task *t) {
    if (EBB__UNLIKELY(rt->recorded)) return recorded_call(rt, t);
    return t->poll(&t->cx, t->state);
}

static ebb_status watched_call(ebb_runtime *rt, ebb__task *t) {
    uint64_t id = ebb__task_id(t);
    const char *site = ebb__cold_at(rt, t->index)->site;
    uint64_t began = rt->poll_times != NULL ? rt->clock(rt->clock_ctx) : 0;
    ebb__watch_begin(rt, id, site);
    ebb_status st = call(rt, t);
    ebb__watch_end(rt);
    if (began != 0) ebb__poll_took(rt, id, site, began);
    return st;
}

/* The body was polled and is pending. */
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

/* Kept small: most polls end here without another call. */
void ebb__task_polled(ebb_runtime *rt, ebb__task *t, ebb_status st) {
    if (st == EBB_PENDING) {
        parked(rt, t);
    } else if (EBB__UNLIKELY(rt->trace != NULL || t->flags & F_LONG)) {
        body_ended(rt, t, st);
    } else {
        if (t->phase == EBB_TASK_CANCELLING && st != EBB_FAULTED) ebb__phase_move(rt, t, EBB_TASK_FINALIZING);
        task_end(rt, t, st, true);
    }
}

/* A poll with a recorder, a watchdog, a budget, or an end in progress. */
void ebb__task_poll_slow(ebb_runtime *rt, ebb__task *t, ebb_lane lane, uint32_t waited) {
    ebb__emit_task(rt, EBB_EV_TASK_POLLED, t, (uint32_t)lane, waited);
    if (t->flags & F_RETURNED) {
        settle(rt, t, false);
        return;
    }
    t->flags |= F_POLLING; /* before charge(): a cancel in there must not enqueue the task now */
    if (t->polls_left != EBB_POLLS_UNBOUNDED || t->flags & F_FORCED) charge(rt, t);
    ebb__polling(rt, t);
    ebb_status st = rt->watched ? watched_call(rt, t) : call(rt, t);
    ebb__polled(rt, t);
    ebb__task_polled(rt, t, st);
}
