/* Connecting. An attempt is cancelled by closing its socket. */
#define _POSIX_C_SOURCE 200809L
#include "loop/stream.h"

static void on_connect(uv_connect_t *uv, int code) {
    ebb__uv_request *r = uv->data;
    if (code == 0) {
        (void)ebb__request_settle(r, ebb__handle_value(r->handle));
    } else {
        ebb__handle_close(r->handle);
        ebb__request_reject(r, ebb__uv_status(code));
    }
    ebb__request_free(r);
}

/* on_connect is called when the socket closes. */
static void connect_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__uv_request *r = arg;
    (void)cx;
    (void)f;
    ebb__handle_close(r->handle);
}

static const ebb_operation connect_op = {"connect", connect_cancel, NULL};

static ebb__uv_request *connect_begin(ebb_cx *cx, ebb_loop *l, ebb__handle_kind kind, const char *site,
                                      ebb_future **failed) {
    ebb_status st;
    ebb__handle *h = ebb__stream_new(l, ebb_cx_region(cx), kind, site, &st);
    if (h == NULL) {
        *failed = ebb__loop_failed(cx, st, site);
        return NULL;
    }
    ebb__uv_request *r = ebb__request_new(cx, l, h, &connect_op, site, failed);
    if (r == NULL) ebb__handle_close(h);
    return r;
}

ebb_future *ebb_tcp_connect_site(ebb_cx *cx, const ebb_address *address, const char *site) {
    struct sockaddr_storage to;
    ebb_future *f;
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK) st = ebb__address_parse(address, &to);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = connect_begin(cx, l, EBB__TCP, site, &f);
    if (r == NULL) return f;
    f = r->future;
    int code = l->os->tcp_connect(&r->uv.connect, &r->handle->uv.tcp, (struct sockaddr *)&to, on_connect);
    if (code != 0) on_connect(&r->uv.connect, code);
    return f;
}

ebb_future *ebb_pipe_connect_site(ebb_cx *cx, const char *path, const char *site) {
    ebb_future *f;
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK) st = ebb__path_check(path);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = connect_begin(cx, l, EBB__PIPE, site, &f);
    if (r == NULL) return f;
    f = r->future;
    l->os->pipe_connect(&r->uv.connect, &r->handle->uv.pipe, path, on_connect);
    return f;
}
