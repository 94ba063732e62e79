#include "kernel/observe.h"

#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/task.h"

ebb_status ebb__task_observe(ebb_cx *cx, ebb_task task) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st == EBB_OK && t->phase == EBB_TASK_COMPLETED) st = EBB_ERR_STALE;
    if (st != EBB_OK) return st;
    t->flags |= F_OBSERVED;
    ebb__journal(rt, cx, (ebb_record){.type = J_OBSERVE, .task = task.id});
    return EBB_OK;
}

ebb_status ebb__region_observe(ebb_cx *cx, ebb_region region) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK && r->flags & R_ROOT) st = EBB_ERR_INVALID; /* no layer outlives it */
    if (st == EBB_OK && r->state == EBB_REGION_CLOSED) st = EBB_ERR_STALE;
    if (st != EBB_OK) return st;
    r->flags |= R_OBSERVED;
    ebb__journal(rt, cx, (ebb_record){.type = J_OBSERVE, .region = region.id});
    return EBB_OK;
}

static void ended(ebb_runtime *rt, ebb_task task, ebb_region region) {
    if (rt->layers.call.ended == NULL) return;
    ebb__journal(
        rt, &rt->host.cx,
        (ebb_record){.type = J_CALL, .value = EBB__CALL_OBSERVED, .task = task.id, .region = region.id});
    rt->layers.call.ended(rt, task, region);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}

void ebb__observed_task_ended(ebb_runtime *rt, uint64_t task) {
    ended(rt, (ebb_task){task}, (ebb_region){0});
}

void ebb__observed_region_ended(ebb_runtime *rt, uint64_t region) {
    ended(rt, (ebb_task){0}, (ebb_region){region});
}
