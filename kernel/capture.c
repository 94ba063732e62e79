/* Captures: traces that begin in the middle of a run. Regions and tasks that are there already are recorded as present,
 * parents first, so that a reader knows their places; the checker checks what begins later. */
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/rt.h"

static void present_tasks(ebb_runtime *rt, ebb__region *r) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    for (uint32_t i = 0; i < r->tasks.n; i++) {
        const ebb__task *t = ebb__task_at(rt, tasks[i]);
        ebb__emit_task_at(rt, EBB_EV_PRESENT, t, 0, 0, ebb__cold_at(rt, t->index)->site);
    }
}

ebb_status ebb__capture_start(ebb_runtime *rt, size_t bytes) {
    if (rt->trace != NULL) return EBB_ERR_BUSY;
    if (bytes == 0) return EBB_ERR_INVALID;
    ebb_status st = ebb__recorder_start(rt, &rt->trace, false, bytes);
    if (st != EBB_OK) return st;
    ebb__region *root = ebb__region_at(rt, rt->root);
    for (ebb__region *r = root; r != NULL; r = ebb__region_after(rt, r, root, true)) {
        uint64_t parent = r == root ? 0 : ebb__region_id(rt, ebb__region_at(rt, r->parent));
        ebb__emit_region_at(rt, EBB_EV_PRESENT, r, 0, 1, parent, ebb__cold_of(r)->site);
        present_tasks(rt, r);
    }
    return EBB_OK;
}

uint64_t ebb__capture_events(const ebb_runtime *rt, bool *full) {
    const ebb__recorder *rec = rt->trace;
    *full = rec != NULL && rec->lost > 0;
    return rec != NULL ? rec->seq - 1 : 0;
}

void ebb__capture_end(ebb_runtime *rt, ebb_write_fn write, void *ctx) {
    if (rt->trace == NULL) return;
    rt->trace->lost = 0; /* the file ends where the buffer did */
    if (write != NULL) ebb_trace_take(rt, true, write, ctx);
    (void)ebb__recorder_start(rt, &rt->trace, false, 0);
}
