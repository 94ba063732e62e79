/* The pump: which lane polls next. kernel/lane.c has the lanes and their order; this file has the cycle. */
#include "sched/pump.h"

#include <ebb/sched.h>

#include "kernel/cascade.h"
#include "kernel/clock.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/runtime.h"
#include "kernel/task.h"

enum {
    WHEEL_WORK = 4096,  /* timers moved or fired in one turn of the wheel */
    SWEEP_WORK = 65536, /* regions advanced in one pump, besides those that polls advance */
    SWEEP_LITTLE = 64,  /* the same with short pumps */
    CHOICES = 8         /* the lab may choose among this many tasks at the head */
};

/* The cycle when all lanes have work. The turn of an empty lane goes to the next lane that has work. */
static const uint8_t cycle[10] = {
    EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_TIMED,
    EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_CANCEL, EBB_LANE_READY,
};

void ebb_runtime_advance(ebb_runtime *rt, uint64_t now) {
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_ADVANCE, .other = now});
    ebb__clock_set(rt, now);
}

/* True if the limit stopped it. */
static bool turn_wheel(ebb_runtime *rt, uint64_t now) {
    uint32_t work = WHEEL_WORK, ref;
    if (now < rt->wheel.quiet_until) return false;
    while ((ref = ebb__wheel_turn(&rt->wheel, now, &work)) != 0) ebb__fired(rt, ref);
    return work == 0;
}

static inline uint32_t lanes_with_work(const ebb_runtime *rt) {
    return (rt->cancel_count > 0 ? 1u << EBB_LANE_CANCEL : 0u) |
           (rt->timed.n > 0 ? 1u << EBB_LANE_TIMED : 0u) |
           (ebb__ready_count(rt) > 0 ? 1u << EBB_LANE_READY : 0u);
}

static inline bool only_ready(const ebb_runtime *rt) {
    return EBB__LIKELY((rt->cancel_count | rt->timed.n | rt->contended | rt->sweep_head) == 0) &&
           EBB__LIKELY(rt->choose == NULL);
}

static inline bool only_cancelled(const ebb_runtime *rt) {
    return (ebb__ready_count(rt) | rt->timed.n | rt->contended | rt->sweep_head) == 0 && rt->choose == NULL;
}

static inline ebb_lane next_lane(ebb_runtime *rt, uint32_t work) {
    if (EBB__LIKELY((work & (work - 1)) == 0)) return (ebb_lane)__builtin_ctz(work);
    for (;;) {
        uint8_t lane = cycle[rt->cycle];
        rt->cycle = (uint8_t)(rt->cycle == 9 ? 0 : rt->cycle + 1);
        if (work & 1u << lane) return (ebb_lane)lane;
    }
}

/* Counts how long each lane's head has waited for other lanes. */
static uint32_t count_wait(ebb_runtime *rt, uint32_t work, ebb_lane lane) {
    uint32_t waited = rt->wait[lane];
    if (waited > rt->worst_wait[lane]) rt->worst_wait[lane] = waited;
    rt->contended = (work & (work - 1)) != 0;
    for (uint32_t l = EBB_LANE_CANCEL; l <= EBB_LANE_READY; l++) {
        rt->wait[l] = l != (uint32_t)lane && work & 1u << l ? rt->wait[l] + 1 : 0;
    }
    return waited;
}

static uint32_t choose(ebb_runtime *rt, ebb_lane lane) {
    uint32_t n = ebb__lane_count(rt, lane);
    if (lane == EBB_LANE_TIMED || n < 2) return 0;
    if (n > CHOICES) n = CHOICES;
    uint32_t nth = rt->choose(rt->choose_ctx, n);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_CHOICE, .value = nth, .other = n});
    return nth < n ? nth : 0;
}

static inline void poll_one(ebb_runtime *rt, uint32_t work) {
    bool contended = rt->contended || (work & (work - 1)) != 0;
    assert(work != 0);
    ebb_lane lane = next_lane(rt, work);
    uint32_t waited = EBB__UNLIKELY(contended) ? count_wait(rt, work, lane) : 0;
    ebb__task *t = EBB__UNLIKELY(rt->choose != NULL) ? ebb__lane_pick(rt, lane, choose(rt, lane))
                                                     : ebb__lane_pop(rt, lane);
    ebb__task_poll(rt, t, lane, waited);
}

/* False if the limit stopped it: hooks may queue new regions without end. */
static bool sweep(ebb_runtime *rt, uint32_t *work) {
    for (; rt->sweep_head != 0 && *work > 0; --*work) ebb__sweep_one(rt);
    return rt->sweep_head == 0;
}

/* Polls until no task is runnable or `max_polls` is used up. True if work is left. */
static bool poll_some(ebb_runtime *rt, uint32_t *max_polls, uint32_t *sweeps) {
    for (;;) {
        uint32_t work;
        if (only_ready(rt)) { /* the common case: no other lane has work */
            if (*max_polls == 0) return ebb__ready_count(rt) > 0;
            ebb__task *t = ebb__ready_pop(rt);
            if (t == NULL) return false;
            --*max_polls;
            ebb__task_poll(rt, t, EBB_LANE_READY, 0);
            continue;
        }
        if (only_cancelled(rt)) { /* a cancel of many tasks */
            work = rt->cancel_count;
            if (work == 0 || *max_polls == 0) return work != 0;
            --*max_polls;
            ebb__task_poll(rt, ebb__lane_pop(rt, EBB_LANE_CANCEL), EBB_LANE_CANCEL, 0);
            continue;
        }
        bool swept = sweep(rt, sweeps);
        work = lanes_with_work(rt);
        if (work == 0 || *max_polls == 0) return work != 0 || !swept;
        --*max_polls;
        poll_one(rt, work);
    }
}

ebb_status ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls) {
    if (rt->pumping) return EBB_ERR_REENTERED;
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_PUMP, .value = max_polls});
    rt->pumping = true;
    if (EBB__UNLIKELY(rt->reasons_low)) ebb__reasons_refill(rt);
    uint32_t sweeps = rt->short_pumps ? SWEEP_LITTLE : SWEEP_WORK;
    uint64_t now = rt->now; /* later nodes wait for the next pump, so that this one ends */
    bool more;
    do { /* repeats if a task armed a timer that is already due */
        more = turn_wheel(rt, now);
        if (poll_some(rt, &max_polls, &sweeps)) more = true;
    } while (!more && now >= rt->wheel.quiet_until && rt->wheel.quiet_until != EBB_FOREVER);
    rt->pumping = false;
    if (more) return EBB_PENDING;
    if (EBB__UNLIKELY(rt->trace != NULL) && rt->trace->last != EBB_EV_IDLE) {
        ebb__emit_plain(rt, EBB_EV_IDLE, 0, 0, 0, 0);
    }
    return EBB_OK;
}

uint64_t ebb_runtime_next_due(const ebb_runtime *rt) {
    if (lanes_with_work(rt) != 0 || rt->sweep_head != 0) return rt->now;
    /* A slot may start before its first node is due; the pump opens it no earlier than that. */
    uint64_t at = ebb__wheel_next(&rt->wheel);
    if (at < rt->wheel.quiet_until) at = rt->wheel.quiet_until;
    return at < rt->now ? rt->now : at;
}

void ebb__set_chooser(ebb_runtime *rt, uint32_t (*fn)(void *ctx, uint32_t n), void *ctx) {
    rt->choose = fn;
    rt->choose_ctx = ctx;
}
