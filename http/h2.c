/* HTTP/2, both sides: an nghttp2 session, its input and its output. */
#define _POSIX_C_SOURCE 200809L
#include "http/h2.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"

/* ---- nghttp2's memory: each block starts with its size, which nghttp2 does not pass to free ------------------- */

enum { SIZE_ROOM = 16, FRAME_HEAD = 9, FRAME_LEAST = 1024 };

static void *with_size(char *p, size_t all) {
    if (p == NULL) return NULL;
    memcpy(p, &all, sizeof all);
    return p + SIZE_ROOM;
}

static void *mem_malloc(size_t n, void *ctx) {
    return n > SIZE_MAX - SIZE_ROOM ? NULL : with_size(ebb__alloc(ctx, n + SIZE_ROOM), n + SIZE_ROOM);
}

static void *mem_realloc(void *at, size_t n, void *ctx) {
    size_t old_n;
    if (at == NULL) return mem_malloc(n, ctx);
    if (n > SIZE_MAX - SIZE_ROOM) return NULL;
    char *old = (char *)at - SIZE_ROOM;
    memcpy(&old_n, old, sizeof old_n);
    return with_size(ebb__resize(ctx, old, old_n, n + SIZE_ROOM), n + SIZE_ROOM);
}

static void mem_free(void *at, void *ctx) {
    if (at == NULL) return;
    char *p = (char *)at - SIZE_ROOM;
    size_t n;
    memcpy(&n, p, sizeof n);
    ebb__free(ctx, p, n);
}

static void *mem_calloc(size_t count, size_t n, void *ctx) {
    if (n != 0 && count > SIZE_MAX / n) return NULL;
    void *at = mem_malloc(count * n, ctx);
    return at == NULL ? NULL : memset(at, 0, count * n);
}

/* ---- creation and end ------------------------------------------------------------------------------------------ */

ebb__h2 *ebb__h2_new(ebb__conn *c) {
    ebb__h2 *h = ebb__alloc(&c->allocator, sizeof *h);
    if (h == NULL) return NULL;
    *h = (ebb__h2){.mem = {&c->allocator, mem_malloc, mem_free, mem_calloc, mem_realloc}};
    c->session = h;
    return h;
}

void ebb__h2_free(ebb__conn *c) {
    ebb__h2 *h = c->session;
    if (h == NULL) return;
    c->session = NULL;
    nghttp2_session_del(h->session);
    ebb__free(&c->allocator, h, sizeof *h);
}

/* We open windows ourselves, as user code reads. We count resets ourselves too: nghttp2's limit would end honest
 * clients. */
nghttp2_option *ebb__h2_options(void) {
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0) return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_stream_reset_rate_limit(o, UINT64_MAX / 2, UINT64_MAX / 2);
    return o;
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

static void broken(ebb__conn *c, int code) {
    ebb__h2 *h = c->session;
    bool ours = code == NGHTTP2_ERR_NOMEM;
    bool flood = code == NGHTTP2_ERR_FLOODED || code == NGHTTP2_ERR_TOO_MANY_SETTINGS;
    if (ebb__conn_is_ending(c)) return; /* a callback has ended it */
    h->broken = true;
    if (flood && c->server != NULL) c->server->stats.rate_limited++;
    ebb__conn_fail(c,
                   ours    ? EBB__INTERNAL_ERROR
                   : flood ? EBB__ENHANCE_YOUR_CALM
                           : EBB__PROTOCOL_ERROR,
                   ours ? EBB_ERR_NOMEM : EBB_ERR_HTTP_PROTOCOL,
                   ours ? EBB_CANCEL_RESOURCE : EBB_CANCEL_DISCONNECT, nghttp2_strerror(code));
}

/* nghttp2 has ended the session by a GOAWAY of its own, which is sent. INTERNAL_ERROR is never the peer's fault. */
static void ended_by_nghttp2(ebb__conn *c) {
    if (ebb__h2_of(c)->our_error)
        ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_NOMEM, EBB_CANCEL_RESOURCE, "no memory for a header block");
    else
        ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_HTTP_PROTOCOL, EBB_CANCEL_DISCONNECT,
                       "the peer broke the protocol");
}

/* nghttp2 answers a protocol error by a GOAWAY of its own, and does not want to read any more. While a connection
 * drains, it does not want to read after the last stream either. `finished` distinguishes these cases, once nghttp2
 * has sent its frames and refused the requests that were too late. */
void ebb__h2_feed(ebb__conn *c, const uint8_t *bytes, size_t n) {
    ebb__h2 *h = c->session;
    ssize_t took = nghttp2_session_mem_recv(h->session, bytes, n);
    if (took < 0) broken(c, (int)took);
    else if (!ebb__conn_is_ending(c) && nghttp2_session_want_read(h->session) == 0) {
        ebb__conn_touch(c);
        if (c->state == EBB__CONN_DRAINING) return;
        ended_by_nghttp2(c);
    }
}

void ebb__h2_eof(ebb__conn *c) {
    ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "connection lost");
}

/* The callbacks of one frame look up the same stream several times, so the last exchange is cached. An exchange leaves
 * the cache by ebb__h2_forget before it ends. Only the end of a connection ends exchanges without that, and an ending
 * connection looks up none. */
ebb_http *ebb__h2_exchange(const ebb__conn *c, int32_t stream) {
    if (ebb__conn_is_ending(c)) return NULL;
    ebb__h2 *h = ebb__h2_of(c);
    assert(h->last == NULL || (h->last->conn == c && !ebb__exchange_is_gone(h->last)));
    if (h->last == NULL || h->last->stream != stream)
        h->last = nghttp2_session_get_stream_user_data(h->session, stream);
    return h->last;
}

void ebb__h2_forget(ebb__h2 *h, int32_t stream) {
    (void)nghttp2_session_set_stream_user_data(h->session, stream, NULL);
    h->last = NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    (void)flags;
    if (ebb__conn_is_ending(c)) return NGHTTP2_ERR_CALLBACK_FAILURE; /* the rest is not decoded */
    ebb_http *x = ebb__h2_exchange(c, frame->hd.stream_id);
    if (x == NULL || (x->client && x->in == EBB__IN_ENDED)) return 0;
    if (ebb__exchange_field(x, (const char *)name, name_n, (const char *)value, value_n)) return 0;
    if (c->server != NULL) c->server->stats.rate_limited++;
    ebb__conn_fail(c, EBB__ENHANCE_YOUR_CALM, EBB_ERR_HTTP_PROTOCOL, EBB_CANCEL_DISCONNECT,
                   "a header list far past its limit");
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t n,
                   void *ctx) {
    ebb__conn *c = ctx;
    ebb_http *x = ebb__h2_exchange(c, stream);
    (void)flags;
    if (ebb__conn_is_ending(c)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (x == NULL) (void)nghttp2_session_consume_connection(session, n);
    else if (!ebb__exchange_body(x, bytes, n))
        ebb__h2_reset(x, x->sent == EBB__SENT_ALL ? EBB__NO_ERROR : EBB__INTERNAL_ERROR);
    return 0;
}

const char *ebb__h2_code_name(uint32_t code) {
    return nghttp2_http2_strerror(code);
}

/* A server has sent the whole response, or a client has received it. */
static bool all_said(const ebb_http *x) {
    return x->client ? x->in == EBB__IN_ENDED && x->in_status == EBB_ERR_EOF : x->sent == EBB__SENT_ALL;
}

/* The status of a stream that closed with an error code. Unless it is EBB_OK, `message` says why. */
static ebb_status end_of(const ebb_http *x, uint32_t code, char *message, size_t room) {
    if (all_said(x)) return EBB_OK;
    snprintf(message, room, "RST_STREAM %s (%u)", ebb__h2_code_name(code), code);
    return code == EBB__REFUSED_STREAM ? EBB_ERR_HTTP_RETRY : EBB_ERR_HTTP_RESET;
}

/* The end of every stream, also by a reset of ours. Streams that are open when the connection ends are ended by conn.c
 * instead. Unread bytes are returned to the connection's window. */
static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *ctx) {
    ebb__conn *c = ctx;
    ebb_http *x = ebb__h2_exchange(c, stream);
    char message[EBB_MESSAGE_MAX + 1];
    if (x == NULL) return 0;
    ebb__h2_of(c)->last = NULL; /* nghttp2 forgets the stream itself, after this call */
    if (x->body_n > 0) (void)nghttp2_session_consume_connection(session, x->body_n);
    ebb_status st = end_of(x, code, message, sizeof message);
    bool early = x->sent == EBB__SENT_NOTHING;
    bool charged = c->server != NULL && st != EBB_OK && x->stream_state != EBB__STREAM_RESET;
    ebb__exchange_gone(x, st, EBB_CANCEL_DISCONNECT, message);
    if (!charged || ebb__server_reset(c, early)) return 0;
    c->server->stats.rate_limited++;
    ebb__conn_fail(c, EBB__ENHANCE_YOUR_CALM, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "too many resets");
    return 0;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *ctx);

nghttp2_session_callbacks *ebb__h2_callbacks(void) {
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) != 0) return NULL;
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
    return cb;
}

void ebb__h2_consumed(ebb_http *x, size_t n) {
    nghttp2_session *s = ebb__h2_of(x->conn)->session;
    (void)nghttp2_session_consume(s, x->stream, n);
    ebb__conn_touch(x->conn);
}

bool ebb__h2_is_choked(const ebb__conn *c) {
    return nghttp2_session_get_local_window_size(ebb__h2_of(c)->session) <= 0;
}

bool ebb__h2_has_window(const ebb_http *x, size_t n) {
    return nghttp2_session_get_stream_remote_window_size(ebb__h2_of(x->conn)->session, x->stream) >=
           (int32_t)n;
}

uint64_t ebb__h2_head_since(const ebb__conn *c) {
    return ebb__h2_of(c)->block_since;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

/* nghttp2 has sent all of its frames and will not go on. After a GOAWAY without an error the last stream was the end:
 * the peer did nothing wrong, and the calls that a client has left were never sent. */
static void finished(ebb__conn *c) {
    const ebb__h2 *h = ebb__h2_of(c);
    nghttp2_session *s = h->session;
    if (ebb__conn_is_ending(c) || nghttp2_session_want_read(s) != 0 || nghttp2_session_want_write(s) != 0)
        return;
    if (c->state == EBB__CONN_DRAINING && !h->peer_error && !h->our_error) {
        ebb__conn_fail(c, EBB__NO_ERROR, c->client != NULL ? EBB_ERR_HTTP_RETRY : EBB_ERR_CLOSED,
                       EBB_CANCEL_SHUTDOWN, "connection closed");
        return;
    }
    ended_by_nghttp2(c);
}

/* Gets the next frames of nghttp2. on_source and on_send_data write DATA frames to the buffer before nghttp2 returns
 * others. False: there is nothing more, or no room for it. */
static bool next_frames(ebb__conn *c, ebb__h2 *h) {
    ssize_t n = nghttp2_session_mem_send(h->session, &h->left);
    if (n < 0) {
        broken(c, (int)n);
        h->stopped = true;
    }
    h->left_n = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Fills the buffer. The bytes that nghttp2 returns are valid until the next call of it. */
size_t ebb__h2_fill(ebb__conn *c, uint8_t *to, size_t room) {
    ebb__h2 *h = c->session;
    if (h == NULL || h->stopped) return 0;
    if (h->reset_failed) {
        ebb__conn_fail(c, EBB__INTERNAL_ERROR, EBB_ERR_NOMEM, EBB_CANCEL_RESOURCE, "no memory");
        h->reset_failed = false;
    }
    h->to = to;
    h->to_room = room;
    h->to_n = 0;
    while (h->to_n < room && (h->left_n > 0 || next_frames(c, h))) {
        size_t n = h->left_n < room - h->to_n ? h->left_n : room - h->to_n;
        memcpy(to + h->to_n, h->left, n);
        h->left += n;
        h->left_n -= n;
        h->to_n += n;
    }
    if (h->to_n == 0 && !h->stopped) finished(c);
    return h->to_n;
}

static int send_trailers(nghttp2_session *session, ebb_http *x, uint32_t *flags) {
    size_t n;
    nghttp2_nv *nva = ebb__h2_fields(x, &x->out_trailers, 0, 0, &n);
    if (nva == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (nghttp2_submit_trailer(session, x->stream, nva, n) == 0) *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return 0;
}

/* Body bytes are written after the place for the head of their frame, which on_send_data fills in next. */
static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx) {
    ebb_http *x = source->ptr;
    ebb__conn *c = ctx;
    ebb__h2 *h = c->session;
    bool ended;
    (void)stream;
    (void)to;
    if (ebb__conn_is_ending(c)) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t left = h->to_room - h->to_n, ready = ebb__exchange_ready(x, &ended);
    if (left < FRAME_HEAD + (ready < FRAME_LEAST ? ready : FRAME_LEAST)) return NGHTTP2_ERR_PAUSE;
    if (room > left - FRAME_HEAD) room = left - FRAME_HEAD;
    size_t n = ebb__exchange_take(x, h->to + h->to_n + FRAME_HEAD, room, &ended);
    ebb__exchange_sent(x);
    h->last = x; /* on_frame_send is next */
    x->deferred = n == 0 && !ended;
    if (x->deferred) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (!ended) return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    ebb__sent_step(x, EBB__SENT_THE_LAST);
    if (x->out_trailers.n > 0 && send_trailers(session, x, flags) != 0) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *ctx) {
    const ebb__conn *c = ctx;
    ebb__h2 *h = c->session;
    (void)session;
    (void)frame; /* it has no padding: no callback chooses any */
    (void)source;
    memcpy(h->to + h->to_n, head, FRAME_HEAD);
    h->to_n += FRAME_HEAD + n;
    return 0;
}

nghttp2_data_provider ebb__h2_source(ebb_http *x) {
    return (nghttp2_data_provider){.source.ptr = x, .read_callback = on_source};
}

void ebb__h2_more(ebb_http *x) {
    if (!x->deferred) return;
    x->deferred = false;
    (void)nghttp2_session_resume_data(ebb__h2_of(x->conn)->session, x->stream);
}

void ebb__h2_submit_reset(ebb__h2 *h, int32_t stream, uint32_t code) {
    if (nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, stream, code) != 0) h->reset_failed = true;
}

void ebb__h2_reset(ebb_http *x, uint32_t code) {
    ebb__stream_step(x, EBB__STREAM_RESETS);
    ebb__h2 *h = ebb__h2_of(x->conn);
    ebb__h2_expect_late(h);
    ebb__h2_submit_reset(h, x->stream, code);
    ebb__conn_touch(x->conn);
}

/* If nghttp2 has sent an error code already, that one stays. */
void ebb__h2_terminate(ebb__conn *c, uint32_t code) {
    ebb__h2 *h = c->session;
    if (nghttp2_session_want_read(h->session) == 0 && !h->broken) return;
    h->stopped = nghttp2_session_terminate_session(h->session, code) != 0;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

nghttp2_nv ebb__h2_field(const char *name, size_t name_n, const char *value, size_t value_n) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_n, value_n,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

nghttp2_nv *ebb__h2_fields(ebb_http *x, const ebb__fields *f, size_t first, size_t more, size_t *n) {
    nghttp2_nv *at = ebb__arena_alloc(&x->arena, (first + f->n + more) * sizeof *at);
    if (at == NULL) return NULL;
    for (uint32_t i = 0; i < f->n; i++) {
        at[first + i] = ebb__h2_field(f->at[i].name, f->at[i].name_n, f->at[i].value, f->at[i].value_n);
    }
    *n = first + f->n;
    return at;
}
