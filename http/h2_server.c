/* HTTP/2, server side. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "http/h2.h"
#include "http/url.h"

static void exceeded(ebb__conn *c, const char *message) {
    c->server->stats.rate_limited++;
    ebb__conn_fail(c, EBB__ENHANCE_YOUR_CALM, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, message);
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

/* A refused stream counts as a reset of the peer. It counts as a frame if it is not the peer's fault: the stream
 * crossed our GOAWAY, there was no memory, or other connections of its address have left no room. */
static void refuse(ebb__conn *c, int32_t stream) {
    bool one_too_many = c->open >= c->server->limits.streams;
    bool crossed = c->state == EBB__CONN_DRAINING || !ebb__address_may_queue(c);
    ebb__h2_submit_reset(ebb__h2_of(c), stream, EBB__REFUSED_STREAM);
    ebb__h2_expect_late(ebb__h2_of(c));
    if (!(one_too_many && !crossed ? ebb__server_reset(c, true) : ebb__server_frame(c, 1)))
        exceeded(c, "too many streams");
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    ebb__conn *c = ctx;
    if (ebb__conn_is_ending(c) || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    ebb_http *x = ebb__server_admits(c) ? ebb__exchange_new(c) : NULL;
    if (x == NULL) {
        refuse(c, frame->hd.stream_id);
        return 0;
    }
    x->stream = frame->hd.stream_id;
    (void)nghttp2_session_set_stream_user_data(session, x->stream, x);
    ebb__h2_of(c)->last = x;
    if (++c->requests >= c->server->limits.requests) ebb__conn_drain(c);
    return 0;
}

static void on_goaway(ebb__conn *c, uint32_t code) {
    char message[EBB_MESSAGE_MAX + 1];
    if (code == EBB__NO_ERROR) {
        ebb__conn_drain(c);
        return;
    }
    snprintf(message, sizeof message, "GOAWAY %s (%u)", ebb__h2_code_name(code), code);
    ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, message);
}

/* A DATA frame of padding only carries nothing. */
static bool is_padding(const nghttp2_frame *frame) {
    return frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0 && frame->data.padlen == frame->hd.length &&
           !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
}

/* We send no other PING. */
static bool is_answer_to_notice(const ebb__conn *c, const nghttp2_frame_hd *hd) {
    return c->state == EBB__CONN_CLOSING && hd->type == NGHTTP2_PING && (hd->flags & NGHTTP2_FLAG_ACK);
}

/* The cost of decoding fields that are then dropped. */
static uint32_t excess_cost(ebb_http *x) {
    uint32_t cost = 1 + (uint32_t)(x->excess / 1024);
    x->excess = 0;
    return cost;
}

/* Requests of a connection mostly have the same authority: a valid one is checked once. */
static bool is_authority(ebb__h2 *h, const char *at) {
    size_t n = strlen(at);
    if (n == h->authority_n && memcmp(at, h->authority, n) == 0) return true;
    if (!ebb__is_authority(at, n)) return false;
    h->authority_n = n <= sizeof h->authority ? (uint8_t)n : 0;
    memcpy(h->authority, at, h->authority_n);
    return true;
}

/* A malformed request is reset, as nghttp2 does with the errors that it detects (RFC 9113, section 8.1.1). That counts
 * as a reset of the peer. If the field list was too long, the host may be missing. */
static void take_head(ebb_http *x, bool ended) {
    ebb__h2 *h = ebb__h2_of(x->conn);
    const ebb__field *host = ebb__fields_find(&x->fields, "host", 4);
    bool right = is_authority(h, x->authority);
    if (host != NULL && right) {
        right =
            ebb__is_authority(host->value, host->value_n) &&
            (x->authority[0] == 0 || ebb__same_authority(x->authority, host->value, x->conn->tls != NULL));
    }
    if (!right) {
        ebb__h2_submit_reset(h, x->stream, EBB__PROTOCOL_ERROR);
        return;
    }
    if (ebb__fields_join(&x->fields, &x->arena, "cookie", 6, "; ") != EBB_OK) x->too_large = true;
    ebb__exchange_head(x, ended);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    if (ebb__conn_is_ending(c)) return 0;
    if (is_padding(frame) && !ebb__server_frame(c, 1)) {
        exceeded(c, "too many frames that ask for nothing");
        return 0;
    }
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    ebb_http *x = ebb__h2_exchange(c, frame->hd.stream_id);
    if (is_answer_to_notice(c, &frame->hd)) ebb__conn_drain(c);
    if (frame->hd.type == NGHTTP2_GOAWAY) on_goaway(c, frame->goaway.error_code);
    if (frame->hd.type == NGHTTP2_HEADERS) ebb__h2_of(c)->block_cost = 0;
    if (x == NULL) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && x->excess > 0 && !ebb__server_frame(c, excess_cost(x))) {
        exceeded(c, "header lists are too long");
        return 0;
    }
    if (frame->hd.type == NGHTTP2_HEADERS && x->in == EBB__IN_HEAD) take_head(x, ended);
    else if (ended && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
        ebb__exchange_in_end(x, EBB_ERR_EOF);
    }
    return 0;
}

static bool answers_data(ebb__h2 *h) {
    if (h->updates == 0) return false;
    h->updates--;
    return true;
}

/* What a frame that asks for nothing costs; 0: the frame is useful. Includes frames that nghttp2 ignores because their
 * stream is closed. The reset of an open stream is counted when the stream ends. */
static uint32_t cost_of(ebb__conn *c, const nghttp2_frame_hd *hd) {
    switch (hd->type) {
    case NGHTTP2_DATA: return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM) ? 1 : 0;
    case NGHTTP2_RST_STREAM: return ebb__h2_exchange(c, hd->stream_id) == NULL ? 1 : 0;
    case NGHTTP2_SETTINGS: return 8 + (uint32_t)hd->length / 256;
    case NGHTTP2_PING: return is_answer_to_notice(c, hd) ? 0 : 1;
    case NGHTTP2_WINDOW_UPDATE: return answers_data(ebb__h2_of(c)) ? 0 : 1;
    default: return 1 + (uint32_t)hd->length / 4096;
    }
}

/* A header block is bounded before it is decoded. Many small fragments cost us more than the peer. */
static void begin_block(ebb__conn *c, const nghttp2_frame_hd *hd) {
    ebb__h2 *h = ebb__h2_of(c);
    bool small = hd->type == NGHTTP2_CONTINUATION && hd->length < 64;
    if (hd->type == NGHTTP2_HEADERS) h->block_bytes = 0;
    h->block_bytes += (uint32_t)hd->length + 9;
    h->block_cost += 1 + (uint32_t)hd->length / 1024;
    if (h->block_bytes > c->server->limits.block_bytes || (small && !ebb__server_frame(c, 8))) {
        exceeded(c, "a header block is too long");
    }
}

/* nghttp2 has decoded a block without calling us, because its stream is closed: the block asked for nothing. */
static bool block_was_for_nothing(ebb__conn *c) {
    ebb__h2 *h = ebb__h2_of(c);
    uint32_t cost = h->block_cost;
    h->block_cost = 0;
    return cost > 0 && !ebb__server_frame(c, cost);
}

/* nghttp2 processes the frame: its stream is open. */
static void begin_data(ebb__h2 *h, size_t n) {
    h->ignored--;
    h->ignored_bytes -= (uint32_t)n;
}

/* Once the connection is ending, the rest of the bytes is not parsed. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    if (ebb__conn_is_ending(c)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (hd->type == NGHTTP2_DATA) begin_data(ebb__h2_of(c), hd->length);
    bool nothing = hd->type != NGHTTP2_CONTINUATION && block_was_for_nothing(c);
    if (hd->type == NGHTTP2_HEADERS || hd->type == NGHTTP2_CONTINUATION) begin_block(c, hd);
    else nothing = nothing || !ebb__server_frame(c, cost_of(c, hd));
    if (nothing) exceeded(c, "too many frames that ask for nothing");
    return 0;
}

/* The peer sent a frame that the state of its stream does not allow, and nghttp2 resets the stream. The work of the
 * stream was for nothing, as with a reset by the peer. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    (void)frame;
    (void)code;
    if (!ebb__conn_is_ending(c) && !ebb__server_frame(c, 2)) exceeded(c, "too many invalid frames");
    return 0;
}

/* The last byte of a response was sent. If the request is incomplete, the rest of it is not wanted. A reset at once
 * would make some clients discard the response, so the request has a moment to end by itself. */
static void response_sent(ebb_http *x) {
    ebb__sent_step(x, EBB__SENT_THE_LAST);
    if (x->in == EBB__IN_ENDED && x->in_status == EBB_ERR_EOF) return;
    ebb__exchange_in_end(x, EBB_ERR_CLOSED);
    x->sent_since = ebb__now(x->loop->rt);
    ebb__conn_task_at(x->conn, x->sent_since + EBB__LATE_BODY_MS * EBB_MS);
}

/* The frames that we send allow the peer the frames that answer them. For DATA these are two window updates, which may
 * be sent much later and all at once by a peer with a large window. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != EBB__NO_ERROR) {
        ebb__h2 *h = ebb__h2_of(c);
        *(frame->goaway.error_code == EBB__INTERNAL_ERROR ? &h->our_error : &h->peer_error) = true;
    }
    if (ebb__conn_is_ending(c) || frame->hd.type > NGHTTP2_HEADERS) return 0;
    ebb__bucket_give(&c->frames, 2);
    if (frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0) ebb__h2_of(c)->updates += 2;
    ebb_http *x = ebb__h2_exchange(c, frame->hd.stream_id);
    if (x == NULL) return 0;
    ebb__exchange_sent(x);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) response_sent(x);
    return 0;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

enum { PSEUDO = 1, OURS = 2, FIRST_UNKNOWN = 10 };

static const char *decimal(char *end, uint64_t n) {
    *end = 0;
    do *--end = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return end;
}

static ebb_status send_head(ebb_http *x) {
    ebb__conn *c = x->conn;
    size_t n;
    nghttp2_nv *nva = ebb__h2_fields(x, &x->out_fields, PSEUDO, OURS, &n);
    char *text = ebb__arena_alloc(&x->arena, 64);
    if (nva == NULL || text == NULL) return EBB_ERR_NOMEM;
    nva[0] = ebb__h2_field(":status", 7, decimal(text + 3, (uint64_t)x->status), 3);
    const char *date = memcpy(text + 32, ebb__server_date(c->server), 30);
    nva[n++] = ebb__h2_field("date", 4, date, 29);
    if (x->out_sized && x->status != 204 && x->status != 304) {
        const char *size = decimal(text + 31, x->out_size);
        nva[n++] = ebb__h2_field("content-length", 14, size, (size_t)(text + 31 - size));
    }
    x->deferred = false;
    bool none = x->bodyless || (x->out == EBB__OUT_ENDED && x->from_n == 0 && x->out_trailers.n == 0);
    nghttp2_data_provider source = ebb__h2_source(x);
    int code = nghttp2_submit_response(ebb__h2_of(c)->session, x->stream, nva, n, none ? NULL : &source);
    if (code == NGHTTP2_ERR_NOMEM) return EBB_ERR_NOMEM;
    if (none) x->from_n = 0;
    return code == 0 ? EBB_OK : EBB_ERR_CLOSED;
}

/* nghttp2 waits for a window before it sends the end of a body, which needs none. So the end is sent as trailers
 * without fields. */
static void more(ebb_http *x) {
    nghttp2_session *s = ebb__h2_of(x->conn)->session;
    bool only_end = x->out == EBB__OUT_ENDED && x->from_n == 0 && x->out_bytes > 0 && x->out_trailers.n == 0;
    if (only_end && nghttp2_session_get_stream_remote_window_size(s, x->stream) <= 0) {
        (void)nghttp2_submit_headers(s, NGHTTP2_FLAG_END_STREAM, x->stream, NULL, NULL, 0, NULL);
    } else {
        ebb__h2_more(x);
    }
}

static void go_on(ebb_http *x) {
    static const char status[] = "100";
    nghttp2_nv nv = ebb__h2_field(":status", 7, status, 3);
    (void)nghttp2_submit_headers(ebb__h2_of(x->conn)->session, NGHTTP2_FLAG_NONE, x->stream, NULL, &nv, 1,
                                 NULL);
    ebb__conn_touch(x->conn);
}

/* The peer's answer to the PING follows everything that the peer sent before it read the GOAWAY. */
static void notice(ebb__conn *c) {
    nghttp2_session *s = ebb__h2_of(c)->session;
    if (nghttp2_submit_shutdown_notice(s) != 0 || nghttp2_submit_ping(s, NGHTTP2_FLAG_NONE, NULL) != 0)
        ebb__conn_drain(c);
}

/* The last stream that was begun is the last that will be served. */
static void drain(ebb__conn *c) {
    nghttp2_session *s = ebb__h2_of(c)->session;
    (void)nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s),
                                EBB__NO_ERROR, NULL, 0);
}

/* ---- frames as they are received -------------------------------------------------------------------------------- */

/* We parse the head of each frame too: nghttp2 does not report the frames that it ignores. */
static nghttp2_frame_hd head_of(const uint8_t *at) {
    return (nghttp2_frame_hd){.length = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2],
                              .type = at[3],
                              .flags = at[4],
                              .stream_id = (int32_t)((uint32_t)(at[5] & 0x7f) << 24 | (uint32_t)at[6] << 16 |
                                                     (uint32_t)at[7] << 8 | at[8])};
}

/* A part of a message on a stream that can't have one any more. A peer knows which streams it has ended (RFC 9113,
 * section 5.1), and ids only rise (5.1.1); nghttp2 would ignore the frame. Returns the error code; 0: no error. */
static uint32_t stray(const ebb__h2 *h, const nghttp2_frame_hd *hd) {
    bool head = hd->type == NGHTTP2_HEADERS;
    if ((hd->type != NGHTTP2_DATA && !head) || hd->stream_id % 2 == 0) return 0;
    switch (ebb__h2_past_of(&h->past, hd->stream_id)) {
    case EBB__H2_WAS_SKIPPED: return head ? EBB__PROTOCOL_ERROR : EBB__STREAM_CLOSED;
    case EBB__H2_WAS_ENDED: return EBB__STREAM_CLOSED;
    case EBB__H2_WAS_FORGOTTEN: /* an open stream may be as old */
        return head && nghttp2_session_find_stream(h->session, hd->stream_id) == NULL ? EBB__STREAM_CLOSED
                                                                                      : 0;
    default: return 0;
    }
}

/* nghttp2 refuses streams with even ids. */
static void remember(ebb__h2_past *past, const nghttp2_frame_hd *hd) {
    bool message = hd->type == NGHTTP2_DATA || hd->type == NGHTTP2_HEADERS;
    if (hd->stream_id % 2 == 0) return;
    if (hd->type == NGHTTP2_HEADERS) ebb__h2_past_open(past, hd->stream_id);
    if (hd->type == NGHTTP2_RST_STREAM || (message && (hd->flags & NGHTTP2_FLAG_END_STREAM)))
        ebb__h2_past_end(past, hd->stream_id);
}

/* Returns the error code, as above. */
static uint32_t see_frame(ebb__h2 *h) {
    nghttp2_frame_hd hd = head_of(h->head);
    h->payload_left = (uint32_t)hd.length;
    h->head_n = 0;
    uint32_t code = stray(h, &hd);
    if (code != 0) return code;
    remember(&h->past, &hd);
    if (hd.type == NGHTTP2_DATA) {
        h->ignored++;
        h->ignored_bytes += (uint32_t)hd.length;
    }
    if (hd.type == NGHTTP2_HEADERS || hd.type == NGHTTP2_CONTINUATION) {
        h->block_open = !(hd.flags & NGHTTP2_FLAG_END_HEADERS);
        h->block_frame = true;
    }
    return 0;
}

/* How many bytes precede a stray frame; n if there is none. */
static size_t see(ebb__h2 *h, const uint8_t *bytes, size_t n, uint32_t *code) {
    size_t at = 0;
    while (at < n) {
        size_t k = h->payload_left > 0 ? h->payload_left : sizeof h->head - h->head_n;
        if (k > n - at) k = n - at;
        if (h->payload_left > 0) {
            h->payload_left -= (uint32_t)k;
        } else {
            memcpy(h->head + h->head_n, bytes + at, k);
            h->head_n += (uint8_t)k;
            if (h->head_n == sizeof h->head && (*code = see_frame(h)) != 0) return at;
        }
        if (h->payload_left == 0 && h->head_n == 0) {
            h->block_frame = false;
            if (!h->block_open) h->block_since = 0;
        }
        at += k;
    }
    return n;
}

/* DATA that nghttp2 has ignored belongs to streams that we have reset or refused. It is free as long as the peer may
 * not know of that. */
static void charge_ignored(ebb__conn *c) {
    ebb__h2 *h = ebb__h2_of(c);
    uint32_t frames = h->ignored, bytes = h->ignored_bytes, n = bytes + 256 * frames;
    h->ignored = h->ignored_bytes = 0;
    if (n <= h->late) h->late -= n;
    else if (!ebb__server_frame(c, frames + bytes / 1024)) exceeded(c, "too much DATA of closed streams");
}

static void feed(ebb__conn *c, const uint8_t *bytes, size_t n) {
    ebb__h2 *h = ebb__h2_of(c);
    uint32_t code = 0;
    n = see(h, bytes, n, &code);
    if ((h->block_open || h->block_frame) && h->block_since == 0) {
        h->block_since = ebb__now(c->loop->rt);
        ebb__conn_task_at(c, h->block_since + c->server->limits.header_ns);
    }
    ebb__h2_feed(c, bytes, n);
    if (!ebb__conn_is_ending(c) && h->ignored > 0) charge_ignored(c);
    if (code != 0)
        ebb__conn_fail(c, code, EBB_ERR_HTTP_PROTOCOL, EBB_CANCEL_DISCONNECT, "a frame of a closed stream");
}

/* A connection starts with a small window for all of its bodies, and gets a large one when handlers read them. */
static void consumed(ebb_http *x, size_t n) {
    ebb__h2 *h = ebb__h2_of(x->conn);
    ebb__h2_consumed(x, n);
    if (!x->wide && x->in == EBB__IN_BODY && x->in_bytes > EBB__H2_WINDOW) {
        x->wide = true; /* its handler has read one window, and will likely read the next */
        (void)nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, x->stream,
                                                    EBB__BODY_WINDOW);
    }
    if (h->read > EBB__H2_WINDOW / 2) return;
    h->read += n;
    if (h->read <= EBB__H2_WINDOW / 2) return;
    (void)nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, EBB__H2_CONNECTION_WINDOW);
}

/* For one stream too many, nghttp2 would end the connection, where RFC 9113 has the stream reset. So nghttp2 gets no
 * limit, and we enforce it. The peer must read the real limit: it is written to the first entry of the first SETTINGS.
 *  */
static void put_streams_limit(const ebb__conn *c, uint8_t *frame) {
    enum { HEAD = 9, ID = 2 };
    uint32_t streams = c->server->limits.streams;
    for (int i = 0; i < 4; i++) frame[HEAD + ID + i] = (uint8_t)(streams >> (24 - 8 * i));
}

static size_t fill(ebb__conn *c, uint8_t *to, size_t room) {
    ebb__h2 *h = ebb__h2_of(c);
    size_t n = ebb__h2_fill(c, to, room);
    if (h != NULL && !h->greeted && n > 0) {
        h->greeted = true;
        put_streams_limit(c, to);
    }
    return n;
}

static const ebb__proto proto = {.version = 20,
                                 .feed = feed,
                                 .eof = ebb__h2_eof,
                                 .fill = fill,
                                 .head = send_head,
                                 .more = more,
                                 .consumed = consumed,
                                 .go_on = go_on,
                                 .reset = ebb__h2_reset,
                                 .notice = notice,
                                 .drain = drain,
                                 .terminate = ebb__h2_terminate,
                                 .head_since = ebb__h2_head_since,
                                 .free = ebb__h2_free};

/* Frames of unknown types count like others. nghttp2 reports only types that it believes we handle. */
static int on_unknown(nghttp2_session *session, const nghttp2_frame_hd *hd, const uint8_t *bytes, size_t n,
                      void *ctx) {
    (void)session;
    (void)hd;
    (void)bytes;
    (void)n;
    return ebb__conn_is_ending(ctx) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_unpack(nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *ctx) {
    (void)session;
    (void)payload;
    (void)hd;
    (void)ctx;
    return NGHTTP2_ERR_CANCEL;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int session_new(ebb__conn *c, ebb__h2 *h) {
    nghttp2_session_callbacks *cb = ebb__h2_callbacks();
    nghttp2_option *o = ebb__h2_options();
    int code = cb == NULL || o == NULL ? NGHTTP2_ERR_NOMEM : 0;
    if (code == 0) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
        nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
        nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
        nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(cb, on_unknown);
        nghttp2_session_callbacks_set_unpack_extension_callback(cb, on_unpack);
        for (int type = FIRST_UNKNOWN; type <= UINT8_MAX; type++) {
            nghttp2_option_set_user_recv_extension_type(o, (uint8_t)type);
        }
        nghttp2_option_set_max_continuations(o, SIZE_MAX); /* block_bytes is the limit */
        code = nghttp2_session_server_new3(&h->session, cb, c, o, &h->mem);
    }
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    return code;
}

static int greet(const ebb__conn *c, nghttp2_session *s) {
    const ebb_http_limits *l = &c->server->limits;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, UINT32_MAX},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, EBB__H2_WINDOW},
                                         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, l->header_bytes}};
    int code = nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    if (code != 0) return code;
    return nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, EBB__H2_FIRST_CONNECTION_WINDOW);
}

ebb_status ebb__h2_server_new(ebb__conn *c) {
    ebb__h2 *h = ebb__h2_new(c);
    if (h == NULL) return EBB_ERR_NOMEM;
    c->proto = &proto;
    h->payload_left = sizeof c->greeting; /* the preface is no frame */
    int code = session_new(c, h);
    if (code == 0) code = greet(c, h->session);
    if (code == 0) return EBB_OK;
    ebb__h2_free(c);
    return EBB_ERR_NOMEM;
}
