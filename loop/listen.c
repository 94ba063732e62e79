/* Listeners. A listener watches its socket while an accept waits. A connection that no accept waits for stays in the
 * system's queue: that is the backpressure.
 *
 * When the process has no free descriptors, the listener pauses: it watches nothing until its pause ends or the loop
 * has closed a descriptor. A pause is twice as long as the one before.
 *
 * A listener that drains takes no new connections, but connections that were established before can be accepted. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <errno.h>
#include <sys/un.h>

#include "loop/listen_address.h"
#include "loop/stream.h"

enum {
    BURST = 2, /* connections accepted in a turn: the acceptor sees their cost before it takes more */
    PAUSE_LEAST_MS = 10,
    PAUSE_MOST_MS = 1000,
    NOTICE_MS = 100, /* how long a drain waits for half-open connections */
};

/* ---- time ------------------------------------------------------------------------------------------------ */

/* Makes the loop look at the listener again at that time. */
static void look_at(ebb__handle *h, uint64_t due) {
    ebb__listening *a = &h->as.listening;
    ebb_loop *l = h->loop;
    if (a->look_at == EBB_FOREVER) {
        a->next = l->listeners;
        l->listeners = h;
    }
    a->look_at = due;
    if (due < l->listen_at) l->listen_at = due;
}

static void look_cancel(ebb__handle *h) {
    ebb__handle **at = &h->loop->listeners;
    if (h->as.listening.look_at == EBB_FOREVER) return;
    while (*at != h) {
        assert(*at != NULL); /* it has a time, so it is in the list */
        at = &(*at)->as.listening.next;
    }
    *at = h->as.listening.next;
    h->as.listening.look_at = EBB_FOREVER;
}

/* ---- watching -------------------------------------------------------------------------------------------- */

static void acceptor_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.listening.acceptor;
    h->as.listening.acceptor = NULL;
    if (f != NULL) ebb__reject(h->loop, f, st);
}

/* The accept that waits, if it is not cancelled. */
static ebb_future *acceptor_of(ebb__handle *h) {
    ebb_future *f = h->as.listening.acceptor;
    if (f != NULL && !ebb__is_wanted(f)) acceptor_ends(h, EBB_CANCELLED);
    return h->as.listening.acceptor;
}

static void unwatch(ebb__handle *h) {
    if (h->as.listening.watched) (void)h->loop->os->poll_stop(&h->uv.poll);
    h->as.listening.watched = false;
}

static void take(ebb__handle *h);

/* Watching stays on between two accepts, since switching it costs more. It is switched off when a connection arrives
 * that no accept waits for. */
static void on_readable(uv_poll_t *uv, int code, int events) {
    ebb__handle *h = uv->data;
    (void)code; /* accept reports the error */
    (void)events;
    h->as.listening.burst = BURST;
    if (acceptor_of(h) == NULL) unwatch(h);
    else take(h);
}

static void watch(ebb__handle *h) {
    if (h->as.listening.watched) return;
    int code = h->loop->os->poll_start(&h->uv.poll, UV_READABLE, on_readable);
    if (code == 0) h->as.listening.watched = true;
    else acceptor_ends(h, ebb__uv_status(code));
}

/* ---- accepting ------------------------------------------------------------------------------------------- */

/* Waits for free descriptors, or for memory of the system. */
static void pause_for(ebb__handle *h, ebb_status why) {
    ebb__listening *a = &h->as.listening;
    a->pause_ms = a->pause_ms == 0 ? PAUSE_LEAST_MS : 2 * a->pause_ms;
    if (a->pause_ms > PAUSE_MOST_MS) a->pause_ms = PAUSE_MOST_MS;
    a->trouble = why;
    a->burst = 0;
    unwatch(h);
    look_at(h, ebb__loop_now(h->loop) + a->pause_ms * EBB_MS);
}

static void wait_for_more(ebb__handle *h) {
    watch(h);
    if (h->as.listening.draining) look_at(h, h->as.listening.drain_until);
}

/* There is no connection to accept. */
static void on_queue_empty(ebb__handle *h) {
    ebb__listening *a = &h->as.listening;
    a->burst = 0;
    a->pause_ms = 0;
    a->trouble = EBB_OK;
    if (a->draining && ebb__loop_now(h->loop) >= a->drain_until)
        ebb__handle_close(h); /* this ends the accept */
    else wait_for_more(h);
}

static bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Errors of a connection that has ended meanwhile. Linux reports them by accept. */
static bool is_connection_error(int error) {
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
    }
}

/* A descriptor, or -1 if there is none now. */
static int accept_one(ebb__handle *h) {
    ebb__listening *a = &h->as.listening;
    int fd = a->kept;
    a->kept = -1;
    while (fd < 0 && a->burst > 0) {
        if (a->draining && a->drain_left == 0) {
            ebb__handle_close(h); /* this ends the accept */
            return -1;
        }
        a->burst--;
        fd = h->loop->os->accept(a->fd);
        if (fd >= 0 && a->draining && a->drain_left != UINT32_MAX) a->drain_left--;
        if (fd >= 0 || is_connection_error(-fd)) continue;
        if (is_shortage(-fd)) pause_for(h, ebb__uv_status(fd));
        else if (fd == -EAGAIN || a->draining) on_queue_empty(h);
        else acceptor_ends(h, ebb__uv_status(fd));
        return -1;
    }
    if (fd < 0) wait_for_more(h);
    return fd;
}

/* Without memory for a stream the descriptor is kept for the next accept. */
static ebb_status stream_of(ebb__handle *h, int fd, ebb__handle **out) {
    ebb__listening *a = &h->as.listening;
    assert(fd >= 0 && a->kept < 0);
    ebb__handle_kind kind = h->kind == EBB__TCP_LISTENER ? EBB__TCP : EBB__PIPE;
    ebb_status st;
    *out = ebb__stream_new(h->loop, a->region, kind, a->site, &st);
    if (*out == NULL) {
        a->kept = fd;
        return st;
    }
    int code = kind == EBB__TCP ? h->loop->os->tcp_open(&(*out)->uv.tcp, fd)
                                : h->loop->os->pipe_open(&(*out)->uv.pipe, fd);
    if (code == 0) return EBB_OK;
    h->loop->os->close_descriptor(fd);
    ebb__handle_close(*out);
    return ebb__uv_status(code);
}

/* An accept waits, and there may be a connection. */
static void take(ebb__handle *h) {
    ebb__listening *a = &h->as.listening;
    assert(a->acceptor != NULL && h->state == EBB__HANDLE_OPEN);
    ebb__handle *stream;
    int fd = accept_one(h);
    if (fd < 0) return;
    a->pause_ms = 0;
    a->trouble = EBB_OK;
    ebb_status st = stream_of(h, fd, &stream);
    if (st != EBB_OK) {
        acceptor_ends(h, st);
        return;
    }
    ebb_future *f = a->acceptor;
    a->acceptor = NULL;
    (void)ebb__settle(h->loop, f, ebb__handle_value(stream));
}

static void look_again(ebb__handle *h) {
    h->as.listening.burst = BURST;
    if (acceptor_of(h) != NULL) take(h);
}

void ebb__listeners_look(ebb_loop *l) {
    ebb__handle *h = l->listeners, *next;
    bool freed = l->descriptor_freed;
    l->listeners = NULL;
    l->listen_at = EBB_FOREVER;
    l->descriptor_freed = false;
    for (; h != NULL; h = next) {
        ebb__listening *a = &h->as.listening;
        uint64_t due = a->look_at;
        bool now = due <= ebb__now(l->rt) || (freed && a->trouble != EBB_OK);
        next = a->next;
        a->look_at = EBB_FOREVER;
        if (freed) a->pause_ms = 0;
        if (now) look_again(h);
        else look_at(h, due);
    }
}

static void accept_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__handle *h = arg;
    (void)cx;
    assert(h->as.listening.acceptor == f);
    (void)f;
    (void)acceptor_of(h);
}

/* A new connection is new work. One that was established before the close is not. */
static void accept_closing(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__handle *h = arg;
    (void)cx;
    (void)f;
    if (!h->as.listening.draining) acceptor_ends(h, EBB_ERR_CLOSED);
}

static const ebb_operation accept_op = {"accept", accept_cancel, accept_closing};

static bool admits(const ebb_runtime *rt, ebb_region region) {
    ebb__region *r;
    return ebb__region_get(rt, region, &r) == EBB_OK && !ebb__region_is(rt, r, EBB__REGION_CLOSING);
}

/* An accept waits already. One in a closed region is about to be rejected, so it is rejected here. */
static bool is_taken(ebb__handle *h) {
    if (acceptor_of(h) == NULL) return false;
    if (h->as.listening.draining || admits(h->loop->rt, h->as.listening.region)) return true;
    acceptor_ends(h, EBB_ERR_CLOSED);
    return false;
}

static ebb_status listener_find(const ebb_cx *cx, ebb_listener l, ebb__handle **out) {
    return ebb__handle_find(cx, l.id, EBB__TCP_LISTENER, EBB__PIPE_LISTENER, out);
}

ebb_future *ebb_listener_accept_site(ebb_cx *cx, ebb_listener listener, const char *site) {
    ebb__handle *h;
    ebb_future *f;
    ebb_status st = listener_find(cx, listener, &h);
    if (st == EBB_OK) st = h->as.listening.draining ? ebb__admit_operation(cx) : ebb__admit_inbound(cx);
    if (st == EBB_OK && is_taken(h)) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__listening *a = &h->as.listening;
    a->acceptor = ebb__begin(h->loop, cx, &accept_op, h, site, &f);
    if (a->acceptor == NULL) return f;
    f = a->acceptor;
    a->region = ebb_cx_region(cx);
    a->site = site;
    if (a->kept >= 0 || a->burst > 0) take(h);
    else if (a->trouble == EBB_OK) wait_for_more(h);
    return f;
}

ebb_status ebb_listener_trouble(ebb_cx *cx, ebb_listener listener) {
    ebb__handle *h;
    ebb_status st = listener_find(cx, listener, &h);
    return st == EBB_OK ? h->as.listening.trouble : st;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

void ebb__listening_stop(ebb__handle *h) {
    ebb__listening *a = &h->as.listening;
    look_cancel(h);
    unwatch(h);
    if (a->kept >= 0) h->loop->os->close_descriptor(a->kept);
    if (a->address != NULL) h->loop->os->listen_close(h->loop, a->address, a->fd);
    acceptor_ends(h, EBB_ERR_CLOSED);
    ebb__handle_let_go(h);
}

ebb_status ebb_listener_close(ebb_cx *cx, ebb_listener listener) {
    ebb__handle *h;
    ebb_status st = listener_find(cx, listener, &h);
    if (st == EBB_OK) ebb__handle_close(h);
    return st;
}

ebb_status ebb_listener_drain(ebb_cx *cx, ebb_listener listener) {
    ebb__handle *h;
    bool notice;
    ebb_status st = listener_find(cx, listener, &h);
    if (st != EBB_OK || h->as.listening.draining) return st;
    ebb__listening *a = &h->as.listening;
    a->drain_left = h->loop->os->listen_drain(a->address, a->fd, &notice);
    if (a->drain_left == 0 && a->kept < 0) {
        ebb__handle_close(h);
        return EBB_OK;
    }
    a->draining = true;
    a->drain_until = ebb__loop_now(h->loop) + (notice ? NOTICE_MS * EBB_MS : 0);
    if (a->trouble == EBB_OK) look_again(h);
    return EBB_OK;
}

ebb_status ebb_listener_address(ebb_cx *cx, ebb_listener listener, ebb_address *out) {
    struct sockaddr_storage address;
    ebb__handle *h;
    ebb_status st = ebb__handle_find(cx, listener.id, EBB__TCP_LISTENER, EBB__TCP_LISTENER, &h);
    if (st != EBB_OK) return st;
    int code = h->loop->os->listen_name(h->as.listening.fd, &address);
    return code == 0 ? ebb__address_format((struct sockaddr *)&address, out) : ebb__uv_status(code);
}

static ebb_status listen_at(ebb__handle *h, const struct sockaddr_storage *at) {
    ebb__listening *a = &h->as.listening;
    *a = (ebb__listening){.fd = -1, .kept = -1, .look_at = EBB_FOREVER};
    ebb_status st = h->loop->os->listen_open(h->loop, at, &a->fd, &a->address);
    if (st != EBB_OK) return st;
    int code = h->loop->os->poll_init(h->loop->uv, &h->uv.poll, a->fd);
    if (code == 0) return EBB_OK;
    h->loop->os->listen_close(h->loop, a->address, a->fd);
    return ebb__uv_status(code);
}

static ebb_listener listen_for(ebb_cx *cx, ebb__handle_kind kind, const struct sockaddr_storage *at,
                               ebb_status st, const char *site) {
    ebb_loop *l;
    if (st == EBB_OK) st = ebb__loop_of(cx, &l);
    if (st == EBB_OK) st = ebb__admit_inbound(cx);
    ebb__handle *h = st == EBB_OK ? ebb__handle_new(l, ebb_cx_region(cx), kind, site, &st) : NULL;
    if (h == NULL) return (ebb_listener){ebb__handle_error(cx, st)};
    st = listen_at(h, at);
    if (st == EBB_OK) {
        ebb__handle_ready(h);
        return (ebb_listener){ebb__handle_id(h)};
    }
    ebb__handle_free(h);
    return (ebb_listener){ebb__handle_error(cx, st)};
}

ebb_listener ebb_tcp_listen_site(ebb_cx *cx, const ebb_address *address, const char *site) {
    struct sockaddr_storage at;
    ebb_status st = ebb__address_parse(address, &at);
    return listen_for(cx, EBB__TCP_LISTENER, &at, st, site);
}

ebb_listener ebb_pipe_listen_site(ebb_cx *cx, const char *path, const char *site) {
    struct sockaddr_storage at = {.ss_family = AF_UNIX};
    ebb_status st = ebb__path_check(path);
    if (st == EBB_OK) memcpy(((struct sockaddr_un *)(void *)&at)->sun_path, path, strlen(path));
    return listen_for(cx, EBB__PIPE_LISTENER, &at, st, site);
}
