/* Listeners. A connection that nobody wants yet waits in libuv, which then accepts no more: the system's
 * queue fills, and that is the backpressure. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>

#include "loop/stream.h"

enum { BACKLOG = 511 };

/* ---- accepting ------------------------------------------------------------------------------------------ */

static void acceptor_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.listening.acceptor;
    h->as.listening.acceptor = NULL;
    if (f != NULL) ebb__reject(h->loop, f, st);
}

/* The one who waits, if it is still wanted. */
static ebb_future *acceptor_of(ebb__handle *h) {
    ebb_future *f = h->as.listening.acceptor;
    if (f != NULL && !ebb__is_wanted(f)) acceptor_ends(h, EBB_CANCELLED);
    return h->as.listening.acceptor;
}

/* Takes the connection that libuv has. If there is no memory for it, it stays there. */
static ebb_status take(ebb__handle *h, ebb__handle **out) {
    ebb__listening *a = &h->as.listening;
    ebb__handle_kind kind = h->kind == EBB__TCP_LISTENER ? EBB__TCP : EBB__PIPE;
    ebb_status st;
    *out = ebb__stream_new(h->loop, a->region, kind, a->site, &st);
    if (*out == NULL) return st;
    a->waiting = false;
    int code = uv_accept(&h->uv.stream, &(*out)->uv.stream);
    if (code == 0) return EBB_OK;
    ebb__handle_close(*out);
    return ebb__uv_status(code);
}

/* Somebody waits, and libuv has a connection. */
static void give(ebb__handle *h) {
    ebb__handle *stream;
    ebb_status st = take(h, &stream);
    if (st != EBB_OK) {
        acceptor_ends(h, st);
        return;
    }
    ebb_future *f = h->as.listening.acceptor;
    h->as.listening.acceptor = NULL;
    (void)ebb__settle(h->loop, f, ebb__handle_value(stream));
}

static void on_connection(uv_stream_t *uv, int code) {
    ebb__handle *h = uv->data;
    if (code < 0) {
        if (acceptor_of(h) != NULL) acceptor_ends(h, ebb__uv_status(code));
        return;
    }
    h->as.listening.waiting = true;
    if (acceptor_of(h) != NULL) give(h);
}

static void accept_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__handle *h = arg;
    (void)cx;
    assert(h->as.listening.acceptor == f);
    (void)f;
    (void)acceptor_of(h);
}

/* A connection is new work. */
static void accept_closing(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    acceptor_ends(arg, EBB_ERR_CLOSED);
}

static const ebb_op accept_op = {"accept", accept_cancel, accept_closing};

static bool admits(const ebb_rt *rt, ebb_region region) {
    ebb__region *r;
    return ebb__find_region(rt, region, &r) == EBB_OK && !ebb__is_closing(r);
}

/* Somebody waits already. If that is in a region that is closed, it is only about to hear so. */
static bool is_taken(ebb__handle *h) {
    if (acceptor_of(h) == NULL) return false;
    if (admits(h->loop->rt, h->as.listening.region)) return true;
    acceptor_ends(h, EBB_ERR_CLOSED);
    return false;
}

static ebb_status listener_find(const ebb_cx *cx, ebb_listener l, ebb__handle **out) {
    return ebb__handle_find(cx, l.id, EBB__TCP_LISTENER, EBB__PIPE_LISTENER, out);
}

ebb_future *ebb_listener_accept_at(ebb_cx *cx, ebb_listener listener, const char *site) {
    ebb__handle *h;
    ebb_future *f;
    ebb_status st = listener_find(cx, listener, &h);
    if (st == EBB_OK) st = ebb__admit_inbound(cx);
    if (st == EBB_OK && is_taken(h)) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__listening *a = &h->as.listening;
    a->acceptor = ebb__begin(h->loop, cx, &accept_op, h, site, &f);
    if (a->acceptor == NULL) return f;
    f = a->acceptor;
    a->region = ebb_self_region(cx);
    a->site = site;
    if (a->waiting) give(h);
    return f;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

void ebb__listening_stop(ebb__handle *h) {
    acceptor_ends(h, EBB_ERR_CLOSED);
    ebb__handle_let_go(h);
}

ebb_status ebb_listener_close(ebb_cx *cx, ebb_listener listener) {
    ebb__handle *h;
    ebb_status st = listener_find(cx, listener, &h);
    if (st == EBB_OK) ebb__handle_close(h);
    return st;
}

ebb_status ebb_listener_address(ebb_cx *cx, ebb_listener listener, ebb_address *out) {
    struct sockaddr_storage address;
    int n = sizeof address;
    ebb__handle *h;
    ebb_status st = ebb__handle_find(cx, listener.id, EBB__TCP_LISTENER, EBB__TCP_LISTENER, &h);
    if (st != EBB_OK) return st;
    int code = uv_tcp_getsockname(&h->uv.tcp, (struct sockaddr *)&address, &n);
    return code == 0 ? ebb__address_format((struct sockaddr *)&address, out) : ebb__uv_status(code);
}

/* `code` is what binding it said. */
static ebb_listener listen_on(const ebb_cx *cx, ebb__handle *h, int code) {
    if (code == 0) code = uv_listen(&h->uv.stream, BACKLOG, on_connection);
    if (code == 0) return (ebb_listener){ebb__handle_id(h)};
    ebb__handle_close(h);
    return (ebb_listener){ebb__handle_error(cx, ebb__uv_status(code))};
}

ebb_listener ebb_tcp_listen_at(ebb_cx *cx, const ebb_address *address, const char *site) {
    struct sockaddr_storage at;
    ebb_loop *l;
    ebb_status st = ebb__loop_of(cx, &l);
    if (st == EBB_OK) st = ebb__admit_inbound(cx);
    if (st == EBB_OK) st = ebb__address_parse(address, &at);
    ebb__handle *h =
        st == EBB_OK ? ebb__stream_new(l, ebb_self_region(cx), EBB__TCP_LISTENER, site, &st) : NULL;
    if (h == NULL) return (ebb_listener){ebb__handle_error(cx, st)};
    return listen_on(cx, h, uv_tcp_bind(&h->uv.tcp, (struct sockaddr *)&at, 0));
}

ebb_listener ebb_pipe_listen_at(ebb_cx *cx, const char *path, const char *site) {
    ebb_loop *l;
    ebb_status st = ebb__loop_of(cx, &l);
    if (st == EBB_OK) st = ebb__admit_inbound(cx);
    if (st == EBB_OK) st = ebb__path_check(path);
    ebb__handle *h =
        st == EBB_OK ? ebb__stream_new(l, ebb_self_region(cx), EBB__PIPE_LISTENER, site, &st) : NULL;
    if (h == NULL) return (ebb_listener){ebb__handle_error(cx, st)};
    return listen_on(cx, h, uv_pipe_bind(&h->uv.pipe, path));
}
