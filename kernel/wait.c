#include "kernel/wait.h"

ebb_status ebb_wait_begin(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on) {
    ebb_status st = ebb__wait_begin(cx, w, kind, on);
    return st == EBB_PENDING ? EBB_OK : st;
}

void ebb_wait_end(ebb_wait *w) {
    if (w->cx != NULL) ebb__wait_end(w);
}

void ebb__wait_drop(ebb_rt *rt, ebb_wait *w) {
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_CALL, .value = EBB__CALL_WAIT, .other = w->number});
    w->kind->cancel(w);
    ebb_wait_end(w);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}
