#include "kernel/record.h"
#include "kernel/rt.h"
#include "kernel/wait.h"
#include <ebb/sched.h>

static uint64_t arm(ebb_rt *rt, ebb_task task, uint64_t due) {
    ebb__task *t;
    ebb_status st = ebb__find_task(rt, task, &t);
    if (st == EBB_OK && t->phase == EBB_COMPLETED) st = EBB_ERR_STALE;
    if (st == EBB_OK && !ebb__slab_ready(&rt->timers)) st = ebb__slab_reserve(&rt->timers, &rt->allocator);
    if (st != EBB_OK) return ebb__id_error(rt, st);
    uint32_t i = ebb__slab_take_as(&rt->timers, EBB__TIMER_SHIFT, sizeof(ebb__timer));
    ebb__timer *tm = ebb__slab_at_as(&rt->timers, i, EBB__TIMER_SHIFT, sizeof(ebb__timer));
    tm->task = t->index;
    tm->task_generation = t->generation;
    tm->node.next = 0;
    ebb__wheel_arm_node(&rt->wheel, ebb__wheel_ref(EBB__W_TIMER, i), &tm->node, due);
    uint64_t id = ebb__id(rt, i, tm->generation);
    ebb__emit_task(rt, EBB_EV_TIMER_ARMED, t, 0, id);
    return id;
}

ebb_timer ebb_timer_arm(ebb_cx *cx, ebb_task task, uint64_t due) {
    ebb_rt *rt = ebb__rt_of(cx);
    uint64_t id = arm(rt, task, due);
    ebb__journal(rt, cx, (ebb_record){.type = J_TIMER_ARM, .task = task.id, .region = due, .other = id});
    return (ebb_timer){id};
}

ebb_status ebb_timer_disarm(ebb_cx *cx, ebb_timer timer) {
    ebb_rt *rt = ebb__rt_of(cx);
    uint32_t i;
    ebb_status st = ebb__lookup_as(rt, &rt->timers, timer.id, &i, EBB__TIMER_SHIFT, sizeof(ebb__timer));
    if (st == EBB_OK) {
        ebb__timer *tm = ebb__slab_at_as(&rt->timers, i, EBB__TIMER_SHIFT, sizeof(ebb__timer));
        ebb__wheel_disarm_node(&rt->wheel, &tm->node);
        ebb__slab_give_record(&rt->timers, i, tm);
    }
    ebb__journal(rt, cx, (ebb_record){.type = J_TIMER_DISARM, .other = timer.id, .value = (uint32_t)st});
    return st;
}

static void sleep_cancel(ebb_wait *w) {
    ebb_sleeper *s = (ebb_sleeper *)(void *)w; /* its first member */
    (void)ebb_timer_disarm(w->cx, s->timer);
}

static const ebb_wait_kind sleeping = {"sleep", sleep_cancel};

static ebb_status sleep_poll(ebb_cx *cx, ebb_sleeper *s, uint64_t span) {
    if (s->wait.cx == NULL) {
        if (ebb_self(cx).id == 0) return EBB_ERR_NOT_TASK;
        if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
        uint64_t now = ebb_now(cx);
        s->due = span > EBB_FOREVER - now ? EBB_FOREVER : now + span;
        s->timer = ebb_timer_arm(cx, ebb_self(cx), s->due);
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
