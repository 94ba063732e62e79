/* Witnesses: the valid order of observations of one task's cancellation. */
#include "kernel/task.h"

ebb_status ebb_task_witness(ebb_cx *cx, ebb_task task, ebb_witness *out) {
    ebb_task_info info;
    ebb_status st = ebb_task_info_of(cx, task, &info);
    if (st != EBB_OK) return st;
    *out = (ebb_witness){
        task,       info.region, info.epoch, (uint8_t)info.phase, info.reason.severity, info.reason.kind,
        info.budget};
    return EBB_OK;
}

ebb_status ebb_witness_check(const ebb_witness *earlier, const ebb_witness *later) {
    if (later->task.id != earlier->task.id) return EBB_ERR_WITNESS_TASK;
    if (later->region.id != earlier->region.id) return EBB_ERR_WITNESS_REGION;
    if (later->epoch < earlier->epoch) return EBB_ERR_WITNESS_EPOCH;
    if (later->phase < earlier->phase) return EBB_ERR_WITNESS_PHASE;
    if (later->severity < earlier->severity) return EBB_ERR_WITNESS_SEVERITY;
    if (earlier->epoch == 0) return EBB_OK; /* the first request sets the budget */
    if (later->budget.deadline > earlier->budget.deadline || later->budget.polls > earlier->budget.polls ||
        later->budget.priority < earlier->budget.priority) {
        return EBB_ERR_WITNESS_BUDGET;
    }
    return EBB_OK;
}
