#include "kernel/record.h"
#include "kernel/rt.h"
#include "kernel/wait.h"
#include <ebb/sched.h>

EBB__INLINE uint64_t arm_for(ebb_runtime *rt, ebb_task task, uint64_t due) {
    uint32_t i = ebb__slab_take_as(&rt->timers, EBB__TIMER_SHIFT, sizeof(ebb__timer));
    ebb__timer *tm = ebb__slab_at_as(&rt->timers, i, EBB__TIMER_SHIFT, sizeof(ebb__timer));
    *ebb__timer_cold_at(rt, i) = (ebb__timer_cold){due, task};
    ebb__wheel_arm_links(&rt->wheel, ebb__wheel_ref(EBB__W_TIMER, i), &tm->links, due);
    return ebb__id(rt, i, tm->generation);
}

static inline bool can_arm(const ebb__task *t) {
    return t->phase != 0 && t->phase != EBB_TASK_COMPLETED;
}

__attribute__((noinline)) static ebb_timer arm_slow(ebb_runtime *rt, ebb_cx *cx, ebb_task task,
                                                    uint64_t due) {
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st == EBB_OK && !can_arm(t)) st = EBB_ERR_STALE;
    if (st == EBB_OK) st = ebb__slab_reserve(&rt->timers, &rt->allocator);
    uint64_t id = st == EBB_OK ? arm_for(rt, task, due) : ebb__id_error(rt, st);
    if (st == EBB_OK) ebb__emit_task(rt, EBB_EV_TIMER_ARMED, t, 0, id);
    ebb__journal(rt, cx, (ebb_record){.type = J_TIMER_ARM, .task = task.id, .region = due, .other = id});
    return (ebb_timer){id};
}

/* The common case, without another call; arm_slow covers all cases. */
ebb_timer ebb_timer_arm(ebb_cx *cx, ebb_task task, uint64_t due) {
    ebb_runtime *rt = ebb__rt_of(cx);
    const ebb__task *t = ebb__record_of(rt, &rt->tasks, task.id, EBB__TASK_SHIFT, sizeof *t);
    bool plain = t != NULL && can_arm(t) && !rt->observed && ebb__slab_ready(&rt->timers);
    if (EBB__UNLIKELY(!plain)) return arm_slow(rt, cx, task, due);
    return (ebb_timer){arm_for(rt, task, due)};
}

EBB__INLINE void disarm(ebb_runtime *rt, ebb__timer *tm, ebb_timer timer) {
    ebb__wheel_unlink(&rt->wheel, &tm->links);
    ebb__slab_give_record(&rt->timers, (uint32_t)(timer.id >> 32) & 0xffffff, tm);
}

__attribute__((noinline)) static ebb_status disarm_slow(ebb_runtime *rt, ebb_cx *cx, ebb__timer *tm,
                                                        ebb_timer timer) {
    ebb_status st = tm != NULL ? EBB_OK : ebb__lookup_failed(rt, timer.id);
    if (tm != NULL) {
        disarm(rt, tm, timer);
        ebb__emit_plain(rt, EBB_EV_TIMER_DISARMED, 0, 0, 0, timer.id);
    }
    ebb__journal(rt, cx, (ebb_record){.type = J_TIMER_DISARM, .other = timer.id, .value = (uint32_t)st});
    return st;
}

ebb_status ebb_timer_disarm(ebb_cx *cx, ebb_timer timer) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__timer *tm = ebb__record_of(rt, &rt->timers, timer.id, EBB__TIMER_SHIFT, sizeof *tm);
    if (EBB__UNLIKELY(tm == NULL || rt->observed)) return disarm_slow(rt, cx, tm, timer);
    disarm(rt, tm, timer);
    return EBB_OK;
}

static void sleep_cancel(ebb_wait *w) {
    ebb_sleeper *s = (ebb_sleeper *)(void *)w; /* `w` is its first member */
    (void)ebb_timer_disarm(w->cx, s->timer);
}

static const ebb_wait_kind sleeping = {"sleep", sleep_cancel};

static ebb_status sleep_poll(ebb_cx *cx, ebb_sleeper *s, uint64_t span) {
    if (s->wait.cx == NULL) {
        if (ebb_cx_task(cx).id == 0) return EBB_ERR_NOT_TASK;
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        uint64_t now = ebb_now(cx);
        s->due = span > EBB_FOREVER - now ? EBB_FOREVER : now + span;
        s->timer = ebb_timer_arm(cx, ebb_cx_task(cx), s->due);
        ebb_status st = ebb_id_status(s->timer.id);
        if (st != EBB_OK) return st;
        st = ebb_wait_begin(cx, &s->wait, &sleeping, NULL);
        if (st == EBB_OK) return EBB_PENDING;
        (void)ebb_timer_disarm(cx, s->timer);
        return st;
    }
    ebb_status st = ebb_checkpoint(cx);
    if (st == EBB_OK && ebb_now(cx) < s->due) return EBB_PENDING;
    (void)ebb_timer_disarm(cx, s->timer);
    ebb_wait_end(&s->wait);
    return st;
}

ebb_status ebb_sleep(ebb_cx *cx, ebb_sleeper *s, uint64_t span) {
    ebb_status st;
    EBB__AWAIT(cx, st, sleep_poll(cx, s, span));
    return st;
}
