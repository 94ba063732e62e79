/* Discard: a parked task that owes nothing ends without running again, and without the protocol of a cancel.
 *
 * Its waits leave their queues through their own cancel hooks, as at every end. The hooks run as after the body: they
 * may neither wait, nor reserve, nor defer in the task's name. */
#include "kernel/record.h"
#include "kernel/task.h"
#include "kernel/wait.h"

static ebb_status may_discard(const ebb_runtime *rt, const ebb__task *t) {
    if (t->flags & F_CLOSER) return EBB_ERR_INVALID;
    if (t->phase > EBB_TASK_RUNNING) return EBB_CANCELLED;
    if (t->flags & (F_OWES | F_RETURNED) || ebb__cold_at(rt, t->index)->scopes != 0) return EBB_ERR_OWES;
    return t->flags & F_POLLING || t->mask > 0 ? EBB_ERR_BUSY : EBB_OK;
}

static ebb_status find(ebb_runtime *rt, ebb_task id, ebb__task **out) {
    if (ebb__task_is_live(rt, id, out)) return may_discard(rt, *out);
    ebb_status st = ebb__find_task(rt, id, out);
    *out = NULL;
    return st == EBB_OK ? EBB_ERR_STALE : st;
}

static void discard(ebb_runtime *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    t->flags = (t->flags | F_RETURNED) & ~(uint32_t)F_JOINING;
    t->status = EBB_DISCARDED;
    while (c->wait != NULL) ebb__wait_drop(rt, c->wait);
    if (t->phase <= EBB_TASK_RUNNING) ebb__task_end_discarded(rt, t);
    else t->status = EBB_CANCELLED; /* a hook has cancelled it, so it ends in its next poll */
}

static void refused(ebb_runtime *rt, const ebb_cx *cx, const ebb__task *t, ebb_status st) {
    uint64_t region = ebb__region_id(rt, ebb__region_at(rt, t->region));
    ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), region, (uint32_t)st, 0);
}

ebb_status ebb__task_discard(ebb_cx *cx, ebb_task task) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb_status st = find(rt, task, &t);
    ebb__journal(rt, cx, (ebb_record){.type = J_DISCARD, .task = task.id, .value = (uint32_t)st});
    if (st == EBB_OK) discard(rt, t);
    else if (t != NULL) refused(rt, cx, t, st);
    return st;
}
