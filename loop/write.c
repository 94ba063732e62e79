/* Writing. Writes are sent in order, at once if the system takes the bytes. Bytes that the system does not take are
 * copied in chunks, because libuv can't release bytes that it was given. So a cancelled write releases the caller's
 * bytes at once. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>

#include "base/alloc.h"
#include "loop/stream.h"

enum { CHUNK = 65536 };

static void send_queued(ebb__handle *h);

/* ---- the queue ------------------------------------------------------------------------------------------ */

static void push(ebb__handle *h, ebb__uv_request *r) {
    ebb__stream *s = &h->as.stream;
    assert(r->handle == h && (s->first == NULL) == (s->last == NULL));
    r->prev = s->last;
    r->next = NULL;
    if (s->last != NULL) s->last->next = r;
    else s->first = r;
    s->last = r;
}

static void take_out(ebb__handle *h, ebb__uv_request *r) {
    ebb__stream *s = &h->as.stream;
    assert(r->prev != NULL ? r->prev->next == r : s->first == r);
    if (r->prev != NULL) r->prev->next = r->next;
    else s->first = r->next;
    if (r->next != NULL) r->next->prev = r->prev;
    else s->last = r->prev;
}

static void end_write(ebb__handle *h, ebb__uv_request *r, ebb_status st) {
    take_out(h, r);
    if (st == EBB_OK) (void)ebb__request_settle(r, ebb_value_int((int64_t)r->as.write.all));
    else ebb__request_reject(r, st);
    ebb__request_free(r);
}

void ebb__writes_fail(ebb__handle *h, ebb_status st) {
    while (h->as.stream.first != NULL) end_write(h, h->as.stream.first, st);
}

/* ---- sending --------------------------------------------------------------------------------------------- */

static void sent(ebb__uv_request *r, size_t n) {
    assert(n <= r->as.write.n);
    r->as.write.from += n;
    r->as.write.n -= n;
}

static void chunk_free(ebb__handle *h) {
    ebb__free(&h->loop->allocator, h->as.stream.chunk, CHUNK);
    h->as.stream.chunk = NULL;
}

static void on_chunk(uv_write_t *uv, int code) {
    ebb__handle *h = uv->data;
    chunk_free(h);
    if (code == 0) send_queued(h);
    else ebb__writes_fail(h, ebb__uv_status(code)); /* if the stream was closed, the queue is empty */
}

/* The chunk counts as sent: a write ends when its last chunk does. */
static ebb_status send_chunk(ebb__handle *h, ebb__uv_request *r) {
    ebb__stream *s = &h->as.stream;
    assert(s->chunk == NULL && s->first == r);
    s->chunk = ebb__alloc(&h->loop->allocator, CHUNK);
    if (s->chunk == NULL) return EBB_ERR_NOMEM;
    s->chunk_n = r->as.write.n < CHUNK ? r->as.write.n : CHUNK;
    memcpy(s->chunk, r->as.write.from, s->chunk_n);
    sent(r, s->chunk_n);
    uv_buf_t buf = uv_buf_init(s->chunk, (unsigned)s->chunk_n);
    s->write.data = h;
    int code = h->loop->os->write(&s->write, &h->uv.stream, &buf, 1, on_chunk);
    if (code == 0) return EBB_OK;
    chunk_free(h);
    return ebb__uv_status(code);
}

static int try_to_send(ebb__handle *h, const char *from, size_t n) {
    uv_buf_t buf;
    buf.base = (char *)(uintptr_t)from; /* libuv only reads it */
    buf.len = n < INT32_MAX ? n : INT32_MAX;
    int code = h->loop->os->try_write(&h->uv.stream, &buf, 1);
    return code == UV_EAGAIN ? 0 : code;
}

/* EBB_PENDING: libuv has a chunk. EBB_OK: all is sent. */
static ebb_status send_more(ebb__handle *h, ebb__uv_request *r) {
    int n = r->as.write.n > 0 ? try_to_send(h, r->as.write.from, r->as.write.n) : 0;
    if (n < 0) return ebb__uv_status(n);
    sent(r, (size_t)n);
    if (r->as.write.n == 0) return EBB_OK;
    ebb_status st = send_chunk(h, r);
    return st == EBB_OK ? EBB_PENDING : st;
}

/* ---- shutdown ---------------------------------------------------------------------------------------------- */

static void on_shut(uv_shutdown_t *uv, int code) {
    ebb__uv_request *r = uv->data;
    if (code == 0) (void)ebb__request_settle(r, ebb_value_none());
    else ebb__request_reject(r, code == UV_ECANCELED ? EBB_ERR_CLOSED : ebb__uv_status(code));
    ebb__request_free(r);
}

/* The request leaves the queue: libuv has it. */
static void start_shutdown(ebb__handle *h, ebb__uv_request *r) {
    int code = h->loop->os->shutdown(&r->uv.shutdown, &h->uv.stream, on_shut);
    if (code != 0) {
        end_write(h, r, ebb__uv_status(code));
        return;
    }
    take_out(h, r);
    r->handle = NULL;
}

/* ---- sending in order ------------------------------------------------------------------------------------------ */

static void send_queued(ebb__handle *h) {
    ebb__stream *s = &h->as.stream;
    while (s->first != NULL && s->chunk == NULL && h->state == EBB__HANDLE_OPEN) {
        ebb__uv_request *r = s->first;
        if (!ebb__is_wanted(r->future)) {
            end_write(h, r, EBB_CANCELLED);
        } else if (r->as.write.shut) {
            start_shutdown(h, r);
        } else {
            ebb_status st = send_more(h, r);
            if (st == EBB_PENDING) return;
            end_write(h, r, st);
        }
    }
}

/* A shutdown that libuv has can't be cancelled. A chunk that libuv has belongs to the stream. */
static void write_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb__uv_request *r = arg;
    (void)cx;
    (void)f;
    if (r->handle != NULL) end_write(r->handle, r, EBB_CANCELLED);
    else ebb__request_reject(r, EBB_CANCELLED);
}

static const ebb_operation write_op = {"write", write_cancel, NULL},
                           shut_op = {"shutdown", write_cancel, NULL};

/* The rest of a write waits in the queue. */
static void queue_write(ebb_cx *cx, ebb__handle *h, ebb_future *f, const char *from, size_t n, size_t all,
                        const char *site) {
    ebb__uv_request *r = ebb__request_take(cx, h->loop, h, &write_op, site);
    r->future = f;
    r->as.write.from = from;
    r->as.write.n = n;
    r->as.write.all = all;
    ebb__end_later(h->loop, f, &write_op, r);
    push(h, r);
    send_queued(h);
}

ebb_future *ebb_stream_write_site(ebb_cx *cx, ebb_stream stream, const void *from, size_t n,
                                  const char *site) {
    ebb__handle *h;
    ebb_future *failed;
    ebb_status st = ebb__stream_find(cx, stream, &h);
    if (st == EBB_OK) st = ebb__admit_operation(cx);
    if (st == EBB_OK && ((from == NULL && n > 0) || n > INT64_MAX)) st = EBB_ERR_INVALID;
    if (st == EBB_OK) st = ebb__request_reserve(h->loop);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb_future *f = ebb__begin_now(cx, site, &failed);
    if (f == NULL) return failed;
    const ebb__stream *s = &h->as.stream;
    bool first = s->first == NULL && s->chunk == NULL;
    int now = first && n > 0 ? try_to_send(h, from, n) : 0;
    if (now < 0) return ebb__end_now(f, ebb__uv_status(now), ebb_value_none());
    if (first && (size_t)now == n) return ebb__end_now(f, EBB_OK, ebb_value_int((int64_t)n));
    queue_write(cx, h, f, (const char *)from + now, n - (size_t)now, n, site);
    return f;
}

ebb_future *ebb_stream_shutdown_site(ebb_cx *cx, ebb_stream stream, const char *site) {
    ebb__handle *h;
    ebb_future *f;
    ebb_status st = ebb__stream_find(cx, stream, &h);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = ebb__request_new(cx, h->loop, h, &shut_op, site, &f);
    if (r == NULL) return f;
    f = r->future;
    r->as.write.shut = true;
    push(h, r);
    send_queued(h);
    return f;
}
