#include "kernel/wait.h"

#include "kernel/watchdog.h"

void ebb__wait_record(ebb__task *t, ebb_wait *w) {
    ebb_runtime *rt = t->rt;
    if (rt->journal != NULL) {
        w->number = ++rt->waits;
        ebb__journal(rt, &t->cx, (ebb_record){.type = J_WAIT_BEGIN, .value = w->number});
        ebb__journal_text_slow(rt, w->kind->what);
    }
    if (rt->trace == NULL || w->kind->what == NULL) return;
    ebb__emit_plain_slow(rt, EBB_EV_WAITING, ebb__task_id(t), 0,
                         ebb__string_number(rt, w->kind->what) << EBB__WHAT_ABOVE, 0);
}

ebb_status ebb_wait_begin(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on) {
    if (ebb__is_confined(cx)) return EBB_ERR_DURABLE_CONTEXT;
    ebb_status st = ebb__wait_begin(cx, w, kind, on);
    return st == EBB_PENDING ? EBB_OK : st;
}

void ebb_wait_end(ebb_wait *w) {
    if (w->cx != NULL) ebb__wait_end(w);
}

void ebb__wake_waiter_slow(ebb__task *t) {
    ebb__journal(t->rt, &t->rt->host.cx, (ebb_record){.type = J_WAKE, .task = ebb__task_id(t)});
    ebb__wake(t->rt, t);
}

void ebb__wait_drop(ebb_runtime *rt, ebb_wait *w) {
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_CALL, .value = EBB__CALL_WAIT, .other = w->number});
    ebb__watched outer = ebb__watch_enter(rt, ebb_cx_task(w->cx).id, w->kind->what);
    w->kind->cancel(w);
    ebb__watch_leave(rt, outer);
    ebb_wait_end(w);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}
