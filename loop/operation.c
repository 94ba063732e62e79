/* Futures of operations: how this layer makes and ends them. */
#define _POSIX_C_SOURCE 200809L
#include "future/promise.h"

#include <assert.h>

#include "loop/loop.h"

ebb_future *ebb__loop_failed(ebb_cx *cx, ebb_status st, const char *site) {
    return st > EBB_STATUS_USER ? ebb__failed(st) : ebb_future_failed_site(cx, st, site);
}

ebb_future *ebb__begin(ebb_loop *l, ebb_cx *cx, const ebb_operation *op, void *arg, const char *site,
                       ebb_future **failed) {
    ebb_future *f = ebb_promise_new_site(cx, op, arg, site);
    if (EBB__UNLIKELY(ebb__is_static(f))) {
        *failed = f;
        return NULL;
    }
    l->pending++;
    return f;
}

ebb_status ebb__settle(ebb_loop *l, ebb_future *f, ebb_value v) {
    assert(f != NULL && l->pending > 0);
    l->pending--;
    return ebb_promise_settle(f, v);
}

void ebb__reject(ebb_loop *l, ebb_future *f, ebb_status st) {
    assert(f != NULL && l->pending > 0 && st != EBB_OK);
    l->pending--;
    (void)ebb_promise_reject(f, st);
}

ebb_future *ebb__begin_now(ebb_cx *cx, const char *site, ebb_future **failed) {
    ebb_status st = EBB_OK;
    ebb_future *f = ebb__promise_new(cx, &ebb__promise_kind, NULL, NULL, site, &st);
    if (EBB__UNLIKELY(f == NULL)) *failed = ebb__failed(st);
    return f;
}

ebb_future *ebb__end_now(ebb_future *f, ebb_status st, ebb_value v) {
    assert(!(f->flags & (EBB__F_SETTLED | EBB__F_FINISHED)));
    f->flags = EBB__F_SETTLED | EBB__F_FINISHED;
    f->value = st == EBB_OK ? v : ebb_value_int(st);
    /* Release: as for every end of a future. */
    atomic_store_explicit(&f->state, st == EBB_OK ? EBB_FUTURE_COMPLETED : EBB_FUTURE_FAILED,
                          memory_order_release);
    if (ebb__is_recorded(ebb__heap_of(f)->rt)) ebb__note_future_ended(f);
    return f;
}

void ebb__end_later(ebb_loop *l, ebb_future *f, const ebb_operation *op, void *arg) {
    ebb__promise *p = (ebb__promise *)(void *)f;
    assert(p->op == NULL && !(f->flags & EBB__F_SETTLED));
    p->op = op;
    p->arg = arg;
    ebb__count_as_work(f);
    l->pending++;
}
