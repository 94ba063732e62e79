/* Blocking functions, in libuv's thread pool. */
#define _POSIX_C_SOURCE 200809L
#include "loop/uv_request.h"

/* Runs on a pool thread. libuv's queue orders it after the start and before the end. */
static void run(uv_work_t *uv) {
    ebb__uv_request *r = uv->data;
    r->as.work.status = r->as.work.fn(r->as.work.arg, &r->as.work.value);
}

static bool is_of_a_heap(const ebb_value *v) {
    return v->type != NULL && v->type->size != 0;
}

static void on_over(uv_work_t *uv, int code) {
    ebb__uv_request *r = uv->data;
    ebb_status st = code == 0 ? r->as.work.status : ebb__uv_status(code);
    if (st > EBB_OK || (st == EBB_OK && is_of_a_heap(&r->as.work.value))) st = EBB_ERR_INVALID;
    if (st == EBB_OK) (void)ebb__request_settle(r, r->as.work.value);
    else ebb__request_reject(r, st);
    ebb__request_free(r);
}

static const ebb_operation blocking_op = {"blocking", ebb__request_cancel, NULL};

ebb_future *ebb_pool_run_site(ebb_cx *cx, ebb_pool_fn fn, void *arg, const char *site) {
    ebb_future *f;
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK && fn == NULL) st = EBB_ERR_INVALID;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = ebb__request_new(cx, l, NULL, &blocking_op, site, &f);
    if (r == NULL) return f;
    f = r->future;
    r->as.work.fn = fn;
    r->as.work.arg = arg;
    int code = l->os->queue_work(l->uv, &r->uv.work, run, on_over);
    if (code != 0) on_over(&r->uv.work, code);
    return f;
}
