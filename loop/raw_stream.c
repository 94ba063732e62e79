/* Raw streams. */
#define _POSIX_C_SOURCE 200809L
#include "loop/raw_stream.h"

#include <assert.h>

#include "base/alloc.h"
#include "loop/stream.h"

/* ---- dirty raw streams ---------------------------------------------------------------------------------- */

void ebb__raw_stream_touch(ebb__raw_stream *w) {
    if (w->where != NULL || w->handle == NULL) return;
    ebb_loop *l = w->handle->loop;
    /* `dirty_last` may point into a list that is being flushed. */
    if (l->dirty == NULL) l->dirty_last = &l->dirty;
    w->next = NULL;
    w->where = l->dirty_last;
    *l->dirty_last = w;
    l->dirty_last = &w->next;
}

static void clean(ebb_loop *l, ebb__raw_stream *w) {
    if (w->where == NULL) return;
    assert(*w->where == w);
    *w->where = w->next;
    if (w->next != NULL) w->next->where = w->where;
    else if (l->dirty_last == &w->next) l->dirty_last = w->where;
    w->where = NULL;
}

/* A flush that has let a task of its layer write more is repeated before the next raw stream has its turn: so a body is
 * sent in bulk, while its bytes and its socket are in the caches. */
static void flush_one(ebb_loop *l, ebb__raw_stream *w) {
    for (int i = 0; i < EBB__RAW_STREAM_ROUNDS && w->where != NULL; i++) {
        clean(l, w);
        if (!w->ops->flush(w->ctx) || !ebb__loop_pump_again(l)) return;
    }
}

/* Raw streams that become dirty during the flush are flushed in the next turn. The old list has its own head, so
 * that a raw stream which is closed meanwhile can be removed from it. */
void ebb__raw_streams_flush(ebb_loop *l) {
    ebb__raw_stream *old = l->dirty;
    old->where = &old;
    l->dirty = NULL;
    while (old != NULL) {
        ebb__raw_stream *w = old;
        flush_one(l, w);
    }
}

void ebb__raw_streams_fini(ebb_loop *l) {
    ebb__free(&l->allocator, l->raw_buffer, EBB__RAW_STREAM_BULK);
    l->raw_buffer = NULL;
}

/* ---- life --------------------------------------------------------------------------------------------------- */

ebb_status ebb__raw_stream_init(ebb__raw_stream *w, ebb_cx *cx, ebb_stream s, const ebb__raw_stream_ops *ops,
                                void *ctx) {
    ebb__handle *h;
    ebb_status st = ebb__stream_find(cx, s, &h);
    if (st != EBB_OK) return st;
    const ebb__stream *at = &h->as.stream;
    if (at->reader != NULL || at->first != NULL || at->chunk != NULL || at->raw != NULL) return EBB_ERR_BUSY;
    if (h->loop->raw_buffer == NULL) {
        h->loop->raw_buffer = ebb__alloc(&h->loop->allocator, EBB__RAW_STREAM_BULK);
        if (h->loop->raw_buffer == NULL) return EBB_ERR_NOMEM;
    }
    *w = (ebb__raw_stream){.handle = h, .ops = ops, .ctx = ctx};
    h->as.stream.raw = w;
    return EBB_OK;
}

static void raw_closed(uv_handle_t *uv) {
    ebb__handle *h = uv->data;
    ebb__raw_stream *w = h->as.stream.raw;
    assert(w->handle == NULL && w->where == NULL && !w->reading);
    ebb__handle_free(h);
    w->ops->closed(w->ctx);
}

void ebb__raw_stream_stopped(ebb__raw_stream *w) {
    ebb__handle *h = w->handle;
    clean(h->loop, w);
    w->handle = NULL;
    w->reading = false;
    h->state = EBB__HANDLE_CLOSING;
    h->loop->os->close(&h->uv.any, raw_closed);
    w->ops->stopped(w->ctx);
}

void ebb__raw_stream_close(ebb__raw_stream *w) {
    if (w->handle != NULL) ebb__handle_close(w->handle);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* A read that fills its buffer makes libuv read again at once. This delays that read to the next turn. */
static void on_alloc(uv_handle_t *uv, size_t suggested, uv_buf_t *buf) {
    const ebb__handle *h = uv->data;
    ebb__raw_stream *w = h->as.stream.raw;
    (void)suggested;
    bool wanted = !w->filled, bulk = w->bulk && h->loop->raw_reads_last <= EBB__RAW_STREAM_CROWD;
    size_t most = bulk ? EBB__RAW_STREAM_BULK : EBB__RAW_STREAM_PIECE, n = 0;
    w->filled = false;
    char *place = wanted && w->ops->place != NULL ? w->ops->place(w->ctx, &n) : NULL;
    buf->base = place != NULL ? place : wanted ? h->loop->raw_buffer : NULL;
    buf->len = !wanted ? 0 : place != NULL && n < most ? n : most;
}

static void on_read(uv_stream_t *uv, ssize_t n, const uv_buf_t *buf) {
    const ebb__handle *h = uv->data;
    ebb__raw_stream *w = h->as.stream.raw;
    if (n == 0 || n == UV_ENOBUFS || w->handle == NULL) return;
    (void)ebb_loop_cx(h->loop); /* updates the time, and makes a turn look at the results */
    if (n > 0) {
        h->loop->raw_reads++;
        w->filled = (size_t)n == buf->len;
        w->ops->bytes(w->ctx, buf->base, (size_t)n);
        ebb__loop_pump_early(h->loop);
        return;
    }
    (void)ebb__raw_stream_read(w, false);
    w->ops->ended(w->ctx, ebb__uv_status((int)n));
}

ebb_status ebb__raw_stream_read(ebb__raw_stream *w, bool on) {
    if (w->handle == NULL || w->reading == on) return EBB_OK;
    const ebb__platform *os = w->handle->loop->os;
    uv_stream_t *uv = &w->handle->uv.stream;
    int code = on ? os->read_start(uv, on_alloc, on_read) : os->read_stop(uv);
    if (code == 0) w->reading = on;
    w->filled = false;
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

ebb_status ebb__raw_stream_try(ebb__raw_stream *w, const char *from, size_t n, size_t *sent) {
    *sent = 0;
    if (w->handle == NULL) return EBB_ERR_CLOSED;
    assert(!w->writing);
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)from, (unsigned)n); /* libuv only reads it */
    int code = w->handle->loop->os->try_write(&w->handle->uv.stream, &buf, 1);
    if (code < 0 && code != UV_EAGAIN) return ebb__uv_status(code);
    *sent = code < 0 ? 0 : (size_t)code;
    return EBB_OK;
}

static void on_written(uv_write_t *uv, int code) {
    ebb__raw_stream *w = uv->data;
    w->writing = false;
    if (w->handle != NULL) (void)ebb_loop_cx(w->handle->loop);
    w->ops->written(w->ctx, code == 0 ? EBB_OK : ebb__uv_status(code));
}

ebb_status ebb__raw_stream_write(ebb__raw_stream *w, char *rest, size_t n) {
    if (w->handle == NULL) return EBB_ERR_CLOSED;
    assert(!w->writing);
    uv_buf_t buf = uv_buf_init(rest, (unsigned)n);
    w->write.data = w;
    int code = w->handle->loop->os->write(&w->write, &w->handle->uv.stream, &buf, 1, on_written);
    w->writing = code == 0;
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}
