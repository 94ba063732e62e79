/* Streams: their life, and reading. Writing is in write.c. */
#define _POSIX_C_SOURCE 200809L
#include "loop/stream.h"
#include "loop/raw_stream.h"

#include <assert.h>

#include "base/alloc.h"

/* ---- life --------------------------------------------------------------------------------------------- */

ebb__handle *ebb__stream_new(ebb_loop *l, ebb_region region, ebb__handle_kind kind, const char *site,
                             ebb_status *st) {
    ebb__handle *h = ebb__handle_new(l, region, kind, site, st);
    if (h == NULL) return NULL;
    int code =
        kind == EBB__TCP ? l->os->tcp_init(l->uv, &h->uv.tcp) : l->os->pipe_init(l->uv, &h->uv.pipe, 0);
    if (code != 0) {
        *st = ebb__uv_status(code);
        ebb__handle_free(h);
        return NULL;
    }
    ebb__handle_ready(h);
    return h;
}

ebb_status ebb__stream_find(const ebb_cx *cx, ebb_stream s, ebb__handle **out) {
    return ebb__handle_find(cx, s.id, EBB__TCP, EBB__PIPE, out);
}

/* The reader, if it is not cancelled. A cancelled reader gets nothing, whether its hook has run or not. */
static ebb_future *reader_of(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    ebb_future *f = s->reader;
    if (f == NULL || ebb__is_wanted(f)) return f;
    s->reader = NULL;
    ebb__reject(h->loop, f, EBB_CANCELLED);
    return NULL;
}

static void reader_ends(ebb__handle *h, ebb_status st) {
    ebb_future *f = h->as.stream.reader;
    h->as.stream.reader = NULL;
    if (f != NULL) ebb__reject(h->loop, f, st);
}

static void kept_free(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    ebb__free(&h->loop->allocator, s->kept, s->kept_room);
    s->kept = NULL;
    s->kept_n = s->kept_at = 0;
}

void ebb__stream_stop(ebb__handle *h) {
    if (h->as.stream.raw != NULL) {
        ebb__raw_stream_stopped(h->as.stream.raw);
        return;
    }
    reader_ends(h, EBB_ERR_CLOSED);
    ebb__writes_fail(h, EBB_ERR_CLOSED);
    kept_free(h);
    ebb__handle_let_go(h);
}

ebb_status ebb_stream_close(ebb_cx *cx, ebb_stream s) {
    ebb__handle *h;
    ebb_status st = ebb__stream_find(cx, s, &h);
    if (st == EBB_OK) ebb__handle_close(h);
    return st;
}

ebb_status ebb_stream_move(ebb_cx *cx, ebb_stream s, ebb_region region) {
    ebb__handle *h;
    ebb_status st = ebb__stream_find(cx, s, &h);
    return st == EBB_OK ? ebb__handle_move(h, region) : st;
}

/* ---- adopting a descriptor --------------------------------------------------------------------------------- */

/* On failure the caller keeps the descriptor; its flags may have changed. */
static ebb_status adopt(ebb__handle *h, int fd) {
    int code =
        h->kind == EBB__TCP ? h->loop->os->tcp_open(&h->uv.tcp, fd) : h->loop->os->pipe_open(&h->uv.pipe, fd);
    if (code == 0) return EBB_OK;
    ebb__handle_close(h);
    return ebb__uv_status(code);
}

ebb_stream ebb_stream_adopt_site(ebb_cx *cx, int fd, const char *site) {
    ebb_loop *l;
    ebb_status st = ebb__loop_of(cx, &l);
    uv_handle_type type = st == EBB_OK && fd >= 0 ? l->os->guess_handle(fd) : UV_UNKNOWN_HANDLE;
    if (st == EBB_OK && type != UV_TCP && type != UV_NAMED_PIPE) st = EBB_ERR_INVALID;
    ebb__handle *h = NULL;
    if (st == EBB_OK) {
        h = ebb__stream_new(l, ebb_cx_region(cx), type == UV_TCP ? EBB__TCP : EBB__PIPE, site, &st);
    }
    if (h != NULL) st = adopt(h, fd);
    return (ebb_stream){st == EBB_OK ? ebb__handle_id(h) : ebb__handle_error(cx, st)};
}

/* ---- properties ---------------------------------------------------------------------------------------------- */

static ebb_status tcp_find(const ebb_cx *cx, ebb_stream s, ebb__handle **out) {
    return ebb__handle_find(cx, s.id, EBB__TCP, EBB__TCP, out);
}

ebb_status ebb_stream_peer(ebb_cx *cx, ebb_stream s, ebb_address *out) {
    struct sockaddr_storage address;
    int n = sizeof address;
    ebb__handle *h;
    ebb_status st = tcp_find(cx, s, &h);
    if (st != EBB_OK) return st;
    int code = h->loop->os->tcp_getpeername(&h->uv.tcp, (struct sockaddr *)&address, &n);
    return code == 0 ? ebb__address_format((struct sockaddr *)&address, out) : ebb__uv_status(code);
}

ebb_status ebb_stream_nodelay(ebb_cx *cx, ebb_stream s, bool on) {
    ebb__handle *h;
    ebb_status st = tcp_find(cx, s, &h);
    if (st != EBB_OK) return st;
    int code = h->loop->os->tcp_nodelay(&h->uv.tcp, on);
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *uv, size_t suggested, uv_buf_t *buf) {
    ebb__handle *h = uv->data;
    (void)suggested;
    bool wanted = reader_of(h) != NULL;
    buf->base = wanted ? h->as.stream.into : NULL;
    buf->len = wanted ? h->as.stream.room : 0;
}

/* Nothing more can be read. */
static void reading_ended(ebb__handle *h, ebb_status st) {
    h->as.stream.ended = st;
    h->as.stream.reading = false;
    (void)h->loop->os->read_stop(&h->uv.stream);
    reader_ends(h, st);
}

/* Another thread has cancelled the read while the bytes arrived: they are kept for the next read. */
static void keep(ebb__handle *h, const char *from, size_t n) {
    ebb__stream *s = &h->as.stream;
    assert(s->kept == NULL && s->kept_at == s->kept_n);
    s->kept = ebb__alloc(&h->loop->allocator, n);
    if (s->kept == NULL) {
        reading_ended(h, EBB_ERR_NOMEM);
        return;
    }
    memcpy(s->kept, from, n);
    s->kept_n = s->kept_room = n;
    s->kept_at = 0;
}

static void took(ebb__handle *h, size_t n) {
    ebb__stream *s = &h->as.stream;
    ebb_future *f = s->reader;
    assert(f != NULL && n <= s->room); /* libuv had a buffer, so a reader waits */
    s->reader = NULL;
    s->filled = n == s->room;
    if (ebb__settle(h->loop, f, ebb_value_int((int64_t)n)) != EBB_OK) keep(h, s->into, n);
}

/* Bytes have arrived that no reader waits for. */
static void on_unread_bytes(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    if (s->filled) {
        s->filled = false;
        return;
    }
    s->reading = false;
    (void)h->loop->os->read_stop(&h->uv.stream);
}

static void on_read(uv_stream_t *uv, ssize_t n, const uv_buf_t *buf) {
    ebb__handle *h = uv->data;
    (void)buf;
    if (n > 0) took(h, (size_t)n);
    else if (n == UV_ENOBUFS) on_unread_bytes(h);
    else if (n < 0) reading_ended(h, ebb__uv_status((int)n));
}

static void read_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__handle *h = arg;
    (void)cx;
    assert(h->as.stream.reader == f);
    (void)f;
    (void)reader_of(h);
}

static const ebb_operation read_op = {"read", read_cancel, NULL};

static void read_start(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    if (EBB__LIKELY(s->reading)) return;
    int code = h->loop->os->read_start(&h->uv.stream, on_alloc, on_read);
    if (code == 0) s->reading = true;
    else reader_ends(h, ebb__uv_status(code));
}

static void read_kept(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    assert(s->reader != NULL && s->kept_at < s->kept_n);
    size_t left = s->kept_n - s->kept_at, n = s->room < left ? s->room : left;
    memcpy(s->into, s->kept + s->kept_at, n);
    s->kept_at += n;
    if (n == left) kept_free(h);
    ebb_future *f = s->reader;
    s->reader = NULL;
    (void)ebb__settle(h->loop, f, ebb_value_int((int64_t)n));
}

ebb_future *ebb_stream_read_site(ebb_cx *cx, ebb_stream stream, void *into, size_t n, const char *site) {
    ebb__handle *h;
    ebb_future *f;
    ebb_status st = ebb__stream_find(cx, stream, &h);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st == EBB_OK && (into == NULL || n == 0 || n > INT64_MAX)) st = EBB_ERR_INVALID;
    if (st == EBB_OK && reader_of(h) != NULL) st = EBB_ERR_BUSY;
    if (st == EBB_OK && h->as.stream.kept == NULL) st = h->as.stream.ended;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__stream *s = &h->as.stream;
    s->reader = ebb__begin(h->loop, cx, &read_op, h, site, &f);
    if (s->reader == NULL) return f;
    f = s->reader;
    s->into = into;
    s->room = n;
    if (EBB__UNLIKELY(s->kept != NULL)) read_kept(h);
    else read_start(h);
    return f;
}
