/* Creating and freeing a runtime, and looking up ids in it. */
#include <assert.h>

#include "base/opts.h"
#include "kernel/clock.h"
#include "kernel/lane.h"
#include "kernel/obligation.h"
#include "kernel/poll_times.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/runtime.h"

static const ebb_cleanup_budget defaults[4] = {
    {0, 0},
    [EBB_SEVERITY_POLITE] = {5000 * EBB_MS, 1024},
    [EBB_SEVERITY_URGENT] = {2000 * EBB_MS, 256},
    [EBB_SEVERITY_FORCED] = {500 * EBB_MS, 64},
};

static void slabs_init(ebb_runtime *rt, const ebb_runtime_opts *o) {
    ebb__slab_init(&rt->tasks, sizeof(ebb__task), sizeof(ebb__cold), EBB__TASK_SHIFT, o->max_tasks);
    ebb__slab_init(&rt->regions, sizeof(ebb__region), sizeof(ebb__region_cold), EBB__REGION_SHIFT,
                   o->max_regions);
    ebb__slab_init(&rt->obligations, sizeof(ebb__obligation), 0, EBB__OBLIGATION_SHIFT, 0);
    ebb__slab_init(&rt->timers, sizeof(ebb__timer), sizeof(ebb__timer_cold), EBB__TIMER_SHIFT, 0);
    ebb__slab_init(&rt->reasons, sizeof(ebb__own_reason), 0, EBB__REASON_SHIFT, 0);
}

ebb_status ebb_runtime_new(const ebb_runtime_opts *given, ebb_runtime **out) {
    ebb_runtime_opts whole, *opts = &whole;
    *out = NULL;
    ebb_status st = EBB__OPTS_COPY(opts, given);
    if (st != EBB_OK) return st;
    if (opts->allocator.fn == NULL) return EBB_ERR_INVALID;
    ebb_runtime *rt = ebb__alloc(&opts->allocator, sizeof *rt);
    if (rt == NULL) return EBB_ERR_NOMEM;
    memset(rt, 0, sizeof *rt);
    rt->allocator = opts->allocator;
    rt->id = opts->runtime_id;
    rt->now = opts->now;
    rt->clock = opts->clock;
    rt->clock_ctx = opts->clock_ctx;
    rt->turn = rt->batch = 1;
    rt->host.rt = rt;
    rt->watched = rt->observed = opts->watched;
    for (int i = 1; i < 4; i++) {
        rt->cleanup[i].time_ns =
            opts->cleanup[i].time_ns != 0 ? opts->cleanup[i].time_ns : defaults[i].time_ns;
        rt->cleanup[i].polls = opts->cleanup[i].polls != 0 ? opts->cleanup[i].polls : defaults[i].polls;
    }
    rt->chain_depth = opts->chain_depth != 0 ? opts->chain_depth : EBB_CHAIN_DEPTH;
    rt->chain_bytes = opts->chain_bytes != 0 ? opts->chain_bytes : EBB_CHAIN_BYTES;
    slabs_init(rt, opts);
    ebb__lane_start(rt);
    ebb__wheel_init(&rt->wheel, rt->now);
    ebb__wheel_source_split(&rt->wheel, EBB__W_TIMER, &rt->timers, offsetof(ebb__timer, links),
                            offsetof(ebb__timer_cold, due));
    ebb__wheel_source(&rt->wheel, EBB__W_TASK, &rt->tasks, offsetof(ebb__cold, node), true);
    ebb__wheel_source(&rt->wheel, EBB__W_REGION, &rt->regions, offsetof(ebb__region_cold, node), true);
    st = ebb__root_open(rt);
    if (st == EBB_OK && !ebb__run_queue_reserve(&rt->run_queues, &rt->allocator, 1)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__slab_reserve(&rt->reasons, &rt->allocator);
    if (st == EBB_OK) st = ebb__record_by(rt, &opts->trace, &opts->journal);
    if (st != EBB_OK) {
        ebb_runtime_free(rt);
        return st;
    }
    *out = rt;
    return EBB_OK;
}

void ebb_runtime_free(ebb_runtime *rt) {
    if (rt == NULL) return;
    assert(!rt->pumping);
    ebb_allocator a = rt->allocator;
    if (rt->layers.call.freed != NULL)
        rt->layers.call.freed(rt); /* may run user code, so everything else must still be in place */
    ebb__record_rest(rt);
    for (uint32_t i = 1; i < rt->regions.used; i++) {
        ebb__region *r = ebb__region_at(rt, i);
        ebb__u32s_fini(&r->tasks, &a);
        ebb__u32s_fini(&r->children, &a);
    }
    ebb__recorder_free(rt, rt->trace);
    ebb__recorder_free(rt, rt->journal);
    ebb__poll_times_free(rt);
    ebb__lane_stop(rt);
    ebb__slab_fini(&rt->tasks, &a);
    ebb__slab_fini(&rt->regions, &a);
    ebb__slab_fini(&rt->obligations, &a);
    ebb__slab_fini(&rt->timers, &a);
    ebb__slab_fini(&rt->reasons, &a);
    ebb__free(&a, rt, sizeof *rt);
}

ebb_cx *ebb_runtime_host(ebb_runtime *rt) {
    return &rt->host.cx;
}

ebb_region ebb_runtime_root(const ebb_runtime *rt) {
    return (ebb_region){ebb__region_id(rt, ebb__region_at(rt, rt->root))};
}

ebb_runtime *ebb_cx_runtime(const ebb_cx *cx) {
    return ebb__task_of(cx)->rt;
}

ebb_task ebb_cx_task(const ebb_cx *cx) {
    return (ebb_task){ebb__task_id(ebb__task_of(cx))};
}

ebb_region ebb_cx_region(const ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    return (ebb_region){ebb__region_id(t->rt, ebb__region_at(t->rt, t->region))};
}

uint64_t ebb_now(const ebb_cx *cx) {
    ebb_runtime *rt = ebb__task_of(cx)->rt;
    ebb__clock_read(rt);
    return rt->now;
}

void ebb_runtime_stats_of(const ebb_runtime *rt, ebb_runtime_stats *out) {
    *out = rt->stats;
    out->tasks = (uint32_t)(rt->stats.spawned - rt->stats.ended);
    out->runnable = ebb__lane_count(rt, EBB_LANE_CANCEL) + ebb__lane_count(rt, EBB_LANE_TIMED) +
                    ebb__lane_count(rt, EBB_LANE_READY);
    out->timers = rt->timers.live;
    out->retired = rt->tasks.retired + rt->regions.retired + rt->obligations.retired + rt->timers.retired;
    for (int i = 0; i < 3; i++) out->worst_wait[i] = rt->worst_wait[i + 1];
}

ebb_status ebb_id_status(uint64_t id) {
    if ((uint32_t)id != 0) return EBB_OK;
    uint32_t index = (uint32_t)(id >> 32) & 0xffffff;
    return index == 0 ? EBB_ERR_INVALID : (ebb_status) - (int32_t)index;
}

ebb_status ebb__lookup_failed(const ebb_runtime *rt, uint64_t id) {
    if ((uint32_t)id == 0) return ebb_id_status(id);
    return id >> 56 != rt->id ? EBB_ERR_FOREIGN : EBB_ERR_STALE;
}

void ebb__reasons_refill(ebb_runtime *rt) {
    ebb__slab *s = &rt->reasons;
    rt->reasons_low = false;
    uint32_t room = (s->chunks << s->shift) - 1;
    if (room - s->live < EBB__REASONS_SPARE / 2) (void)ebb__slab_grow(s, &rt->allocator);
}
