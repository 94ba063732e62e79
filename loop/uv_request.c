/* Requests: their slab, and the end of their futures. */
#define _POSIX_C_SOURCE 200809L
#include "loop/uv_request.h"

#include <assert.h>

ebb_status ebb__request_reserve(ebb_loop *l) {
    return ebb__slab_ready(&l->requests) ? EBB_OK : ebb__slab_reserve(&l->requests, &l->allocator);
}

ebb__uv_request *ebb__request_take(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                   const char *site) {
    uint32_t i = ebb__slab_take(&l->requests);
    ebb__uv_request *r = ebb__slab_at(&l->requests, i);
    assert(r->index == 0);
    r->index = i;
    r->loop = l;
    r->future = NULL;
    r->handle = h;
    r->what = op->name;
    r->site = site;
    r->region = ebb_cx_region(cx);
    r->uv.any.data = r;
    memset(&r->as, 0, sizeof r->as);
    return r;
}

ebb__uv_request *ebb__request_new(ebb_cx *cx, ebb_loop *l, ebb__handle *h, const ebb_operation *op,
                                  const char *site, ebb_future **failed) {
    ebb_status st = ebb__request_reserve(l);
    if (st != EBB_OK) {
        *failed = ebb__failed(st);
        return NULL;
    }
    ebb__uv_request *r = ebb__request_take(cx, l, h, op, site);
    r->future = ebb__begin(l, cx, op, r, site, failed);
    if (r->future != NULL) return r;
    ebb__request_free(r);
    return NULL;
}

void ebb__request_free(ebb__uv_request *r) {
    uint32_t i = r->index;
    assert(i != 0 && r->future == NULL); /* its future has ended, or the loop would count it for ever */
    r->index = 0;
    ebb__slab_give(&r->loop->requests, i);
}

ebb_status ebb__request_settle(ebb__uv_request *r, ebb_value v) {
    ebb_future *f = r->future;
    r->future = NULL;
    return f == NULL ? EBB_CANCELLED : ebb__settle(r->loop, f, v);
}

void ebb__request_reject(ebb__uv_request *r, ebb_status st) {
    ebb_future *f = r->future;
    r->future = NULL;
    if (f != NULL) ebb__reject(r->loop, f, st);
}

void ebb__request_cancel(ebb_cx *cx, ebb_future *f, void *request) {
    ebb__uv_request *r = request;
    (void)cx;
    (void)f;
    (void)r->loop->os->cancel(&r->uv.any);
}
