/* HTTP/2, client side. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "http/h2.h"

/* ---- receiving ------------------------------------------------------------------------------------------------- */

/* Ends an exchange whose stream nghttp2 may still have. */
static void end(ebb_http *x, ebb_status st) {
    nghttp2_session *s = ebb__h2_of(x->conn)->session;
    ebb__h2_forget(ebb__h2_of(x->conn), x->stream);
    if (x->body_n > 0) (void)nghttp2_session_consume_connection(s, x->body_n);
    ebb__exchange_gone(x, st, EBB_CANCEL_DISCONNECT, "");
}

/* Informational responses are dropped, up to a limit. */
static void response_head(ebb_http *x, bool ended) {
    if (x->status >= 200) {
        ebb__exchange_head(x, ended);
        return;
    }
    x->status = 0;
    x->fields = (ebb__fields){0};
    if (++x->interims <= EBB__INTERIMS) return;
    ebb__h2_reset(x, EBB__PROTOCOL_ERROR);
    end(x, EBB_ERR_HTTP_PROTOCOL);
}

static void on_headers(ebb_http *x, const nghttp2_frame *frame) {
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (x->in == EBB__IN_HEAD) {
        response_head(x, ended);
    } else if (x->too_large && x->in != EBB__IN_ENDED) { /* because of its trailers */
        ebb__exchange_in_end(x, EBB_ERR_LIMIT);
        if (x->stream_state != EBB__STREAM_RESET) ebb__h2_reset(x, EBB__CANCEL);
    } else if (ended) {
        ebb__exchange_in_end(x, EBB_ERR_EOF);
    }
}

/* Without an error, streams up to the last id finish, and nghttp2 refuses the others. With an error all have ended. */
static void on_goaway(ebb__conn *c, const nghttp2_goaway *g) {
    ebb_http *next;
    if (c->state == EBB__CONN_OPEN) {
        ebb__conn_step(c, EBB__CONN_DRAINS);
        ebb__client_draining(c);
    }
    if (g->error_code == EBB__NO_ERROR) return;
    for (ebb_http *x = c->first; x != NULL; x = next) {
        next = x->next;
        end(x, x->stream > g->last_stream_id ? EBB_ERR_HTTP_RETRY : EBB_ERR_HTTP_RESET);
    }
    ebb__conn_fail(c, EBB__NO_ERROR, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "");
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    ebb__conn *c = ctx;
    (void)session;
    if (ebb__conn_is_ending(c)) return 0;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        on_goaway(c, &frame->goaway);
        return 0;
    }
    if (frame->hd.type == NGHTTP2_SETTINGS) ebb__client_room(c);
    ebb_http *x = ebb__h2_exchange(c, frame->hd.stream_id);
    if (x == NULL) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) on_headers(x, frame);
    else if (frame->hd.type == NGHTTP2_DATA && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        ebb__exchange_in_end(x, EBB_ERR_EOF);
    }
    return 0;
}

/* nghttp2 did not send a request: a GOAWAY was received before, or the stream ids are used up. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *ctx) {
    ebb_http *x = ebb__h2_exchange(ctx, frame->hd.stream_id);
    (void)session;
    (void)code;
    if (x != NULL && frame->hd.type == NGHTTP2_HEADERS) end(x, EBB_ERR_HTTP_RETRY);
    return 0;
}

uint32_t ebb__h2_client_room(const ebb__conn *c) {
    if (c->state != EBB__CONN_OPEN || c->session == NULL) return 0;
    nghttp2_session *s = ebb__h2_of(c)->session;
    uint32_t most = nghttp2_session_get_remote_settings(s, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (nghttp2_session_check_request_allowed(s) == 0) return 0;
    return most > c->slots ? most - c->slots : 0;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

enum { PSEUDO = 4 };

static ebb_status send_head(ebb_http *x) {
    ebb__conn *c = x->conn;
    size_t n;
    nghttp2_nv *nva = ebb__h2_fields(x, &x->out_fields, PSEUDO, 1, &n);
    char *size = ebb__arena_alloc(&x->arena, 24);
    if (nva == NULL || size == NULL) return EBB_ERR_NOMEM;
    nva[0] = ebb__h2_field(":method", 7, x->method, strlen(x->method));
    nva[1] = ebb__h2_field(":scheme", 7, c->tls != NULL ? "https" : "http", c->tls != NULL ? 5 : 4);
    nva[2] = ebb__h2_field(":authority", 10, x->authority, strlen(x->authority));
    nva[3] = ebb__h2_field(":path", 5, x->path, strlen(x->path));
    if (x->out_sized && x->out_size > 0) {
        int k = snprintf(size, 24, "%llu", (unsigned long long)x->out_size);
        nva[n++] = ebb__h2_field("content-length", 14, size, (size_t)k);
    }
    bool none = x->out == EBB__OUT_ENDED && x->from_n == 0 && x->out_trailers.n == 0;
    nghttp2_data_provider source = ebb__h2_source(x);
    int32_t id = nghttp2_submit_request(ebb__h2_of(c)->session, NULL, nva, n, none ? NULL : &source, x);
    if (id < 0) return id == NGHTTP2_ERR_NOMEM ? EBB_ERR_NOMEM : EBB_ERR_HTTP_RETRY;
    x->stream = id;
    x->version = 20;
    ebb__conn_touch(c);
    return EBB_OK;
}

static void go_on(ebb_http *x) {
    (void)x; /* only servers wait for 100 Continue */
}

static void drain(ebb__conn *c) {
    (void)c; /* a client accepts no pushed streams */
}

/* nghttp2 has the RST_STREAM of these streams. It sends that before anything else of theirs, and does not use their
 * exchanges any more. */
static void stuck(ebb__conn *c) {
    ebb_http *next;
    for (ebb_http *x = c->first; x != NULL; x = next) {
        next = x->next;
        if (x->stream_state == EBB__STREAM_RESET) end(x, EBB_ERR_HTTP_RESET);
    }
}

static uint64_t head_since(const ebb__conn *c) {
    (void)c;
    return 0;
}

static const ebb__proto proto = {.version = 20,
                                 .feed = ebb__h2_feed,
                                 .eof = ebb__h2_eof,
                                 .fill = ebb__h2_fill,
                                 .head = send_head,
                                 .more = ebb__h2_more,
                                 .consumed = ebb__h2_consumed,
                                 .go_on = go_on,
                                 .reset = ebb__h2_reset,
                                 .drain = drain,
                                 .terminate = ebb__h2_terminate,
                                 .head_since = head_since,
                                 .free = ebb__h2_free,
                                 .stuck = stuck};

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int session_new(ebb__conn *c, ebb__h2 *h) {
    nghttp2_session_callbacks *cb = ebb__h2_callbacks();
    nghttp2_option *o = ebb__h2_options();
    int code = cb == NULL || o == NULL ? NGHTTP2_ERR_NOMEM : 0;
    if (code == 0) {
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
        code = nghttp2_session_client_new3(&h->session, cb, c, o, &h->mem);
    }
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    return code;
}

static int greet(const ebb__conn *c, nghttp2_session *s) {
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, EBB__H2_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ebb__conn_bounds(c)->header_bytes}};
    int code = nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    if (code != 0) return code;
    return nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, EBB__H2_CONNECTION_WINDOW);
}

ebb_status ebb__h2_client_new(ebb__conn *c) {
    ebb__h2 *h = ebb__h2_new(c);
    if (h == NULL) return EBB_ERR_NOMEM;
    c->proto = &proto;
    int code = session_new(c, h);
    if (code == 0) code = greet(c, h->session);
    if (code == 0) {
        ebb__conn_touch(c);
        return EBB_OK;
    }
    ebb__h2_free(c);
    return EBB_ERR_NOMEM;
}
