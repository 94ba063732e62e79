/* Cancel requests to tasks: cancel and force for one task. */
#include "kernel/cascade.h"
#include "kernel/clock.h"
#include "kernel/lane.h"
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/task.h"

static uint32_t polls_of(const ebb__task *t) {
    return t->flags & F_RETURNED ? 0 : t->polls_left;
}

/* A queued task moves to the cancel lane; one that is being polled is polled once more. */
static void reroute(ebb_runtime *rt, ebb__task *t, uint64_t deadline) {
    if (t->flags & F_POLLING) {
        t->flags |= F_REWAKE;
    } else if ((t->queue & 3) != EBB_LANE_CANCEL || ebb__due_sooner(rt, t, deadline)) {
        ebb__dequeue(rt, t);
        ebb__enqueue_cancelled(rt, t, deadline);
    }
}

void ebb__task_request(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint8_t severity, uint32_t polls,
                       uint64_t deadline) {
    assert(t->index != 0 && severity >= EBB_SEVERITY_POLITE && severity <= EBB_SEVERITY_FORCED);
    if (t->phase <= EBB_TASK_RUNNING) {
        ebb__phase_move(rt, t, EBB_TASK_CANCEL_REQUESTED);
        t->request = ebb__request_pack(kind, severity, 1);
        bool bounded = ebb__region_at(rt, t->region)->flags & R_BOUNDED && t->polls_left < polls;
        if (!(t->flags & F_RETURNED) && !bounded && !ebb__task_is_runner(rt, t)) t->polls_left = polls;
        t->cx.signal |= EBB_CX_STOP;
        if (EBB__LIKELY(t->mask == 0)) {
            t->cx.signal |= EBB_CX_CANCEL;
        } else {
            ebb__signal_update(rt, t);
        }
        reroute(rt, t, deadline);
        ebb__emit_task(rt, EBB_EV_CANCEL_REQUESTED, t, polls_of(t), deadline);
        return;
    }
    if (t->phase == EBB_TASK_COMPLETED) return;
    if (severity > ebb__request_severity(t->request)) {
        uint8_t epoch = ebb__request_epoch(t->request);
        t->request = ebb__request_pack(kind, severity,
                                       (uint8_t)(epoch + (severity > ebb__request_severity(t->request))));
    }
    if (!(t->flags & F_RETURNED) && !ebb__task_is_runner(rt, t) && polls < t->polls_left)
        t->polls_left = polls;
    reroute(rt, t, deadline);
    ebb__emit_task(rt, EBB_EV_CANCEL_STRENGTHENED, t, polls_of(t), ebb__cleanup_deadline(rt, t));
}

void ebb__task_overdue(ebb_runtime *rt, ebb__task *t) {
    if (t->phase == EBB_TASK_COMPLETED) return;
    if (t->flags & F_RETURNED) { /* finalizers check the clock themselves */
        ebb__wake(rt, t);
        return;
    }
    if (t->flags & F_FORCED) return;
    t->flags |= F_FORCED;
    ebb__cold_at(rt, t->index)->force_left = EBB__FORCE_POLLS;
    ebb__signal_update(rt, t);
    ebb__emit_task(rt, EBB_EV_TASK_FORCED, t, EBB__FORCE_POLLS, 0);
    reroute(rt, t, ebb__cleanup_deadline(rt, t));
}

/* Keeps the stronger of two own reasons if there is a slot for it. */
static void own_reason(ebb_runtime *rt, ebb__cold *c, const ebb_reason *reason) {
    if (c->reason == 0) {
        rt->reasons_low = true; /* the pump refills the slots */
        if (!ebb__slab_ready(&rt->reasons)) return;
        c->reason = EBB__24(ebb__slab_take(&rt->reasons));
        ((ebb__own_reason *)ebb__slab_at(&rt->reasons, c->reason))->reason = *reason;
        return;
    }
    ebb__own_reason *own = ebb__slab_at(&rt->reasons, c->reason);
    own->reason = ebb_reason_strengthen(&own->reason, reason);
}

void ebb__task_cancel_own(ebb_runtime *rt, ebb__task *t, uint8_t kind, uint64_t origin, const char *message) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    ebb_reason reason = {.kind = kind,
                         .severity = (uint8_t)ebb_cancel_kind_severity(kind),
                         .runtime = rt->id,
                         .origin = origin,
                         .sequence = ++rt->sequence};
    ebb__message_copy(reason.message, message);
    ebb__clock_read_inside(rt);
    ebb_budget b = ebb__cleanup_budget(rt, reason.severity, c->priority);
    const ebb__region *r = ebb__region_at(rt, t->region);
    if (r->flags & R_BOUNDED && r->deadline < b.deadline) b.deadline = r->deadline;
    uint64_t force_at = ebb__force_at(rt->now, b.deadline);
    uint32_t ref = ebb__wheel_ref(EBB__W_TASK, t->index);
    own_reason(rt, c, &reason);
    bool had = (t->flags & F_OWN_CANCEL) != 0;
    if (!had && t->flags & F_NODE && c->node.links.next != 0) {
        ebb__cap_by_deadline(rt, c->node.due, &b.deadline, &force_at);
    }
    uint64_t old_end = had ? c->node.due + ebb__own_kept(c) : EBB_FOREVER;
    if (!had || force_at < c->node.due || b.deadline < old_end) {
        uint64_t end = b.deadline < old_end ? b.deadline : old_end;
        if (had && c->node.due < force_at) force_at = c->node.due;
        ebb__wheel_disarm(&rt->wheel, ref);
        c->kept = end > force_at ? (uint32_t)((end - force_at) / EBB__KEPT_UNIT) : 0;
        ebb__wheel_arm(&rt->wheel, ref, force_at);
    }
    t->flags |= F_OWN_CANCEL;
    ebb__task_request(rt, t, kind, reason.severity, b.polls, ebb__cleanup_deadline(rt, t));
}

void ebb__task_fired(ebb_runtime *rt, ebb__task *t) {
    if (t->flags & F_OWN_CANCEL) {
        ebb__cold *c = ebb__cold_at(rt, t->index);
        if (c->kept > 0) { /* the finalizers' part begins */
            uint64_t end = c->node.due + ebb__own_kept(c);
            ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), end);
            c->kept = 0;
        }
        ebb__task_overdue(rt, t);
    } else if (t->phase == EBB_TASK_CREATED && !(t->flags & (F_OWES | F_SCOPE))) {
        ebb__task_end_unpolled(rt, t); /* it has nothing to clean up */
    } else {
        ebb__task_cancel_own(rt, t, EBB_CANCEL_TIMEOUT, 0, "its deadline has passed");
    }
}

bool ebb__task_is_live(ebb_runtime *rt, ebb_task task, ebb__task **out) {
    ebb_status st = ebb__find_task(rt, task, out);
    if (st == EBB_OK && (*out)->phase != EBB_TASK_COMPLETED) return true;
    if (st == EBB_OK || st == EBB_ERR_STALE) {
        rt->stats.stale_wakes++;
        ebb__emit_plain(rt, EBB_EV_STALE_WAKE, task.id, 0, 0, 0);
    }
    return false;
}

/* The task's own deadline has passed and was not acted on yet. */
static bool deadline_passed(ebb_runtime *rt, const ebb__task *t) {
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    if ((t->flags & (F_NODE | F_OWN_CANCEL)) != F_NODE || c->node.links.next == 0) return false;
    ebb__clock_read_inside(rt);
    return c->node.due <= rt->now;
}

void ebb_task_cancel(ebb_cx *cx, ebb_task task, ebb_cancel_kind kind, const char *message) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    if (ebb_cancel_kind_severity(kind) == 0) kind = EBB_CANCEL_USER;
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_CANCEL, .task = task.id, .kind = (uint8_t)kind});
    ebb__journal_text(rt, message);
    if (!ebb__task_is_live(rt, task, &t)) return;
    ebb__pass_deadlines(rt, ebb__region_at(rt, t->region));
    if (!ebb__task_is_live(rt, task, &t)) return;
    if (deadline_passed(rt, t)) ebb__task_fired(rt, t);
    if (!ebb__task_is_live(rt, task, &t)) return;
    ebb__task_cancel_own(rt, t, (uint8_t)kind, ebb__task_id(ebb__task_of(cx)), message);
}

/* From now on the task has only the finalizers' part of its budget. */
static void end_own_budget(ebb_runtime *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    const ebb__region *r = ebb__region_at(rt, t->region);
    bool own = (t->flags & F_OWN_CANCEL) != 0;
    if (own && c->kept == 0) return; /* that part has begun before */
    uint64_t kept = own ? ebb__own_kept(c) : ebb__region_kept(r);
    uint64_t end = ebb__cleanup_deadline(rt, t);
    if (end > rt->now && end - rt->now > kept) end = rt->now + kept;
    ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index));
    ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), end);
    c->kept = 0;
    t->flags |= F_OWN_CANCEL;
}

void ebb_task_force(ebb_cx *cx, ebb_task task) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_FORCE, .task = task.id});
    if (!ebb__task_is_live(rt, task, &t)) return;
    if (t->request == 0)
        ebb__task_cancel_own(rt, t, EBB_CANCEL_BUDGET, ebb__task_id(ebb__task_of(cx)), "forced");
    else ebb__clock_read_inside(rt);
    end_own_budget(rt, t);
    ebb__task_overdue(rt, t);
}
