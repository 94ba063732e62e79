/* Checkpoints, masks and task joins; and ebb_task_info_of. */
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/task.h"
#include "kernel/wait.h"

ebb_status ebb__acknowledge(ebb_cx *cx) {
    ebb__task *t = ebb__task_of(cx);
    ebb_runtime *rt = t->rt;
    ebb_status st = ebb_cancelled(cx) ? EBB_CANCELLED : EBB_OK;
    if (st == EBB_CANCELLED && t->phase == EBB_TASK_CANCEL_REQUESTED && !(t->flags & F_RETURNED)) {
        ebb__phase_move(rt, t, EBB_TASK_CANCELLING);
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
    ebb_runtime *rt = t->rt;
    ebb_status st = EBB_OK;
    assert(t->mask <= EBB_MASK_MAX);
    if (t->index == 0) return EBB_ERR_NOT_TASK;
    if (ebb__rt_is_confined(rt)) return EBB_ERR_DURABLE_CONTEXT;
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
static void unkeep(ebb_runtime *rt, ebb__task *t) {
    assert(t->phase == EBB_TASK_COMPLETED);
    ebb__region *r = ebb__region_at(rt, t->region);
    if (t->kept_prev != 0) ebb__task_at(rt, t->kept_prev)->kept_next = t->kept_next;
    else ebb__cold_of(r)->kept = t->kept_next;
    if (t->kept_next != 0) ebb__task_at(rt, t->kept_next)->kept_prev = t->kept_prev;
}

static ebb_status task_join(ebb_runtime *rt, ebb_cx *cx, ebb_task task) {
    ebb__task *me = ebb__task_of(cx), *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st != EBB_OK) return st;
    if (!(t->flags & F_KEEP) || t == me) return EBB_ERR_INVALID;
    ebb__task *other = ebb__joiner(rt, t);
    if (other != NULL && other != me) return EBB_ERR_BUSY;
    if (ebb__task_is_overdue(me)) return ebb__acknowledge(cx);
    if (t->phase == EBB_TASK_COMPLETED) {
        st = (ebb_status)t->status;
        ebb__emit_task(rt, EBB_EV_TASK_JOINED, t, (uint32_t)st, ebb__task_id(me));
        if (t->flags & F_ABANDONED) { /* kept for the region's report */
            t->flags &= ~(uint32_t)F_KEEP;
        } else {
            unkeep(rt, t);
            ebb__task_release(rt, t);
        }
        return st;
    }
    if (me->index == 0) return EBB_PENDING;
    if (ebb__task_is_runner(rt, me)) return EBB_ERR_NOT_TASK;
    if (ebb__acknowledge(cx) != EBB_OK) {
        t->waiter = 0;
        return EBB_CANCELLED;
    }
    t->waiter = ebb__joiner_of(me);
    ebb__joins(me, t->index);
    return EBB_PENDING;
}

static ebb_status journaled_join(ebb_runtime *rt, ebb_cx *cx, ebb_task task) {
    ebb_status st = task_join(rt, cx, task);
    ebb__journal(rt, cx, (ebb_record){.type = J_TASK_JOIN, .task = task.id, .value = (uint32_t)st});
    return st;
}

ebb_status ebb_task_join(ebb_cx *cx, ebb_task task) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_status st;
    EBB__AWAIT(cx, st, journaled_join(rt, cx, task));
    return st;
}

ebb_status ebb_task_info_of(ebb_cx *cx, ebb_task task, ebb_task_info *out) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st != EBB_OK) return st;
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    const ebb__region *r = ebb__region_at(rt, t->region);
    *out = (ebb_task_info){
        .task = task,
        .region = {ebb__region_id(rt, r)},
        .phase = (ebb_task_phase)t->phase,
        .status = t->phase == EBB_TASK_COMPLETED ? (ebb_status)t->status : EBB_PENDING,
        .mask_depth = t->mask,
        .lane = t->queue & 3,
        .epoch = ebb__request_epoch(t->request),
        .forced = (t->flags & F_FORCED) != 0,
        .site = c->site,
    };
    if (t->request != 0) {
        bool own = t->flags & F_OWN_CANCEL && c->reason != 0;
        ebb_reason mine =
            own ? ((ebb__own_reason *)ebb__slab_at(&rt->reasons, c->reason))->reason : (ebb_reason){0};
        ebb_reason its = ebb__region_reason(rt, r);
        out->reason = ebb_reason_strengthen(&mine, &its);
        out->reason.kind = ebb__request_kind(t->request);
        out->reason.severity = ebb__request_severity(t->request);
    }
    out->budget = (ebb_budget){ebb__cleanup_deadline(rt, t),
                               t->phase == EBB_TASK_COMPLETED || t->flags & F_RETURNED ? 0 : t->polls_left,
                               c->priority};
    return EBB_OK;
}
