/* HTTP/1, server side: one request at a time, in the order in which they are received.
 *
 * The next request is not parsed before the handler of the previous one has ended, so a client that pipelines has no
 * more than one handler. A client that shuts down its side of the connection counts as gone: its handler is cancelled,
 * unless the whole response is written. (A client that only has no more requests can't be distinguished.) The
 * connection ends after a response to an incomplete request, because the start of the next request is unknown. */
#define _POSIX_C_SOURCE 200809L
#include <http_parser.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "http/h1.h"
#include "http/url.h"

enum { LAST_TEXT_BYTES = 512 };

/* Invariant: `x` is the current request, from its complete head until the last byte of its response is written, and
 * NULL otherwise. `out.x` is the same once the response was begun. */
typedef struct session {
    ebb__h1_in in;
    ebb__h1_out out;
    ebb_http *x;
    bool keeps; /* the client wants to use the connection again */
    bool last;  /* the connection ends after this response */
    bool go_on; /* 100 Continue is to be sent */
    bool cut;   /* the response can't be completed: the connection ends */
    bool cuts;  /* bytes written before the cut are sent: the next fill ends it */
    char last_text[LAST_TEXT_BYTES];
} session;

static session *session_of(const ebb__conn *c) {
    return c->session;
}

/* ---- requests ----------------------------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_version(const char *at, size_t n) {
    return n == 8 && memcmp(at, "HTTP/", 5) == 0 && is_digit(at[5]) && at[6] == '.' && is_digit(at[7]);
}

static bool is_visible(const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (at[i] <= ' ' || at[i] > '~') return false;
    }
    return n > 0;
}

/* The third word of a request line is no version. A peer that uses another protocol, or a broken preface of HTTP/2,
 * gets no answer in HTTP/1: it could take the answer for anything (RFC 9113, section 3.4). */
static bool no_version(ebb__h1_in *in, const char *at, const char *end) {
    bool http = end - at >= 5 && ebb__same_name(at, 5, "HTTP/", 5);
    bool other = !http && is_visible(at, (size_t)(end - at));
    return ebb__h1_fault(in, other ? EBB__H1_NO_HTTP : 400, "not a request line");
}

/* "GET /path HTTP/1.1", with one space between words. */
static bool check_line(ebb__h1_in *in, const char *line, size_t n) {
    const char *method = memchr(line, ' ', n), *end = line + n;
    const char *target = method == NULL ? NULL : memchr(method + 1, ' ', (size_t)(end - method) - 1);
    if (target == NULL || !ebb__is_token(line, (size_t)(method - line)) ||
        !is_visible(method + 1, (size_t)(target - method) - 1)) {
        return ebb__h1_fault(in, 400, "not a request line");
    }
    if (!is_version(target + 1, (size_t)(end - target) - 1)) return no_version(in, target + 1, end);
    return target[6] == '1' || ebb__h1_fault(in, 505, "the version is not supported");
}

typedef struct target {
    const char *authority; /* NULL: the target has none */
    size_t authority_n;
    const char *path; /* with the query; of an absolute target it may be empty or start with the query */
    size_t path_n;
} target;

static bool split_absolute(const char *at, size_t n, target *out) {
    size_t scheme = n > 8 && ebb__same_name(at, 8, "https://", 8) ? 8 : 7;
    if (scheme == 7 && !(n > 7 && ebb__same_name(at, 7, "http://", 7))) return false;
    const char *from = at + scheme, *to = from, *end = at + n;
    while (to < end && *to != '/' && *to != '?') to++;
    *out = (target){from, (size_t)(to - from), to, (size_t)(end - to)};
    return to > from && ebb__is_authority(from, out->authority_n);
}

static bool split_target(const ebb__h1_head *h, target *out) {
    *out = (target){NULL, 0, h->target, h->target_n};
    if (h->target_n == 0 || memchr(h->target, '#', h->target_n) != NULL) return false;
    if (h->target[0] == '/') return true;
    if (h->target_n == 1 && h->target[0] == '*') return h->method == HTTP_OPTIONS;
    return split_absolute(h->target, h->target_n, out);
}

static bool check_request(ebb__h1_in *in, const ebb__h1_head *h, target *t) {
    if (h->method == HTTP_CONNECT) return ebb__h1_fault(in, 501, "this is not a proxy");
    if (h->hosts > 1 || (h->hosts == 0 && h->minor > 0))
        return ebb__h1_fault(in, 400, "not exactly one host");
    if (!ebb__is_authority(h->host, h->host_n)) return ebb__h1_fault(in, 400, "the host is not valid");
    return split_target(h, t) || ebb__h1_fault(in, 400, "the target is not a path");
}

/* "http://host?query" means the query of "/". */
static void set_path(ebb_http *x, const ebb__h1_head *h, const target *t) {
    const char *path = t->path_n > 0 ? t->path : h->method == HTTP_OPTIONS ? "*" : "/";
    size_t n = t->path_n > 0 ? t->path_n : 1;
    if (path[0] == '?') {
        char *with = ebb__arena_alloc(&x->arena, n + 1);
        x->too_large = with == NULL;
        if (with == NULL) return;
        with[0] = '/';
        memcpy(with + 1, path, n++);
        path = with;
    }
    (void)ebb__exchange_field(x, ":path", 5, path, n);
}

/* The fields are added last: if they are too large, the log and the answer have what they need. */
static void set_head(session *s, ebb_http *x, const ebb__h1_head *h, const target *t) {
    const char *method = http_method_str((enum http_method)h->method);
    x->version = h->minor > 0 ? 11 : 10;
    (void)ebb__exchange_field(x, ":method", 7, method, strlen(method));
    set_path(x, h, t);
    if (t->authority != NULL) (void)ebb__exchange_field(x, ":authority", 10, t->authority, t->authority_n);
    s->x = s->in.x = x;
}

static void set_body(ebb__h1_in *in, const ebb__h1_head *h) {
    bool none = !h->chunked && h->length == 0;
    in->state = none ? EBB__H1_WHOLE : h->chunked ? EBB__H1_SIZE : EBB__H1_SIZED;
    in->left = h->length;
    ebb__exchange_head(in->x, none);
    if (in->x->version == 10) in->x->expects = false; /* HTTP/1.0 has no 100 Continue */
}

static void take_head(ebb__h1_in *in, const char *text, size_t n) {
    session *s = session_of(in->c);
    ebb__h1_head h;
    target t = {0};
    if (!ebb__h1_parse(in, true, text, n, &h) || !check_request(in, &h, &t)) return;
    ebb_http *x = ebb__server_admits(in->c) ? ebb__exchange_new(in->c) : NULL;
    if (x == NULL) {
        (void)ebb__h1_fault(in, 503, "overloaded or shutting down");
        return;
    }
    in->c->requests++;
    set_head(s, x, &h, &t);
    s->keeps = ebb__h1_fields(x, text, n, h.minor);
    set_body(in, &h);
}

static const ebb__h1_side server_side = {check_line, take_head};

/* ---- receiving ---------------------------------------------------------------------------------------------- */

static uint32_t code_of(int status) {
    return status == 503 ? EBB__REFUSED_STREAM : EBB__PROTOCOL_ERROR;
}

/* Called after bytes were parsed. */
static void settle(ebb__conn *c) {
    const ebb__h1_in *in = &session_of(c)->in;
    if (in->fault == 0) {
        ebb__h1_steer(&session_of(c)->in);
        return;
    }
    ebb_status st = in->fault == 503 ? EBB_ERR_NOMEM : EBB_ERR_HTTP_PROTOCOL;
    ebb__conn_fail(c, code_of(in->fault), st, EBB_CANCEL_DISCONNECT, in->why);
}

static void feed(ebb__conn *c, const uint8_t *bytes, size_t n) {
    ebb__h1_take(&session_of(c)->in, bytes, n);
    settle(c);
}

/* Parses held bytes: there is room for more of a body, or the next request may start. */
static void read_on(ebb__conn *c) {
    session *s = session_of(c);
    bool next = s->in.state == EBB__H1_WHOLE && c->slots == 0 && c->state <= EBB__CONN_CLOSING;
    if (next) ebb__h1_next(&s->in);
    else ebb__h1_again(&s->in);
    settle(c);
}

static uint8_t *place(const ebb__conn *c, size_t *n) {
    return ebb__h1_place(&session_of(c)->in, n);
}

static void eof(ebb__conn *c) {
    session *s = session_of(c);
    s->in.closed = true;
    if (s->x == NULL) {
        ebb__conn_finish(c);
    } else if (s->x->out == EBB__OUT_ENDED && s->in.state == EBB__H1_WHOLE) {
        s->last = true;
        ebb__h1_shut(&s->in);
    } else {
        ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "the client has closed the connection");
    }
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

static const char *phrase(int status) {
    const char *text = http_status_str((enum http_status)status);
    return text[0] == '<' ? "" : text;
}

/* This head is the only place to announce the end of the connection. */
static bool is_last(const session *s, const ebb_http *x) {
    const ebb__conn *c = x->conn;
    return !s->keeps || c->overflow || c->state != EBB__CONN_OPEN ||
           c->requests >= c->server->limits.requests || ebb__h1_frame_of(x) == EBB__H1_BY_CLOSE ||
           (x->out == EBB__OUT_ENDED && s->in.state != EBB__H1_WHOLE);
}

static ebb_status respond(ebb_http *x) {
    session *s = session_of(x->conn);
    char first[128];
    bool last = is_last(s, x);
    const char *connection = last ? "connection: close\r\n" : "connection: keep-alive\r\n";
    ebb__text t = ebb__text_in(first, sizeof first);
    ebb__text_str(&t, "HTTP/1.1 ");
    ebb__text_u64(&t, (uint64_t)x->status);
    ebb__text_str(&t, " ");
    ebb__text_str(&t, phrase(x->status));
    ebb__text_str(&t, "\r\ndate: ");
    ebb__text_str(&t, ebb__server_date(x->conn->server));
    ebb__text_str(&t, "\r\n");
    ebb_status st = ebb__h1_begin(&s->out, x, first, last || x->version == 10 ? connection : "");
    if (st != EBB_OK) return st;
    s->last = last;
    s->go_on = false;
    return EBB_OK;
}

/* The whole response is written. */
static void answered(ebb__conn *c) {
    session *s = session_of(c);
    ebb_http *x = s->x;
    s->last = s->last || s->in.state != EBB__H1_WHOLE;
    s->x = s->in.x = NULL;
    s->out = (ebb__h1_out){0};
    if (s->last) ebb__h1_shut(&s->in);
    ebb__sent_step(x, EBB__SENT_THE_LAST);
    ebb__exchange_gone(x, EBB_OK, EBB_CANCEL_NONE, "");
}

static size_t put_continue(session *s, uint8_t *to) {
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!s->go_on) return 0;
    s->go_on = false;
    memcpy(to, text, sizeof text - 1);
    return sizeof text - 1;
}

/* Not in the turn in which bytes may have been written: they would be lost. */
static size_t cut(ebb__conn *c) {
    session *s = session_of(c);
    if (s->cuts) ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_RESOURCE, "the response was cut");
    else ebb__conn_touch(c);
    s->cuts = true;
    return 0;
}

static size_t fill(ebb__conn *c, uint8_t *to, size_t room) {
    session *s = session_of(c);
    bool done;
    if (!ebb__conn_is_ending(c) && s->cut) return cut(c);
    if (!ebb__conn_is_ending(c)) read_on(c);
    if (c->state >= EBB__CONN_ENDED) return 0;
    size_t n = put_continue(s, to);
    n += ebb__h1_put(&s->out, to + n, room - n, &done);
    if (done) answered(c);
    else if (s->out.failed) s->cut = true;
    else if (n == 0 && s->last && s->x == NULL) ebb__conn_finish(c);
    if (s->cut) ebb__conn_touch(c);
    return n;
}

/* ---- notifications ------------------------------------------------------------------------------------------ */

static void go_on(ebb_http *x) {
    session *s = session_of(x->conn);
    s->go_on = s->x == x && s->out.x == NULL;
    ebb__conn_touch(x->conn);
}

/* A response can't be withdrawn, and a missing one can't be skipped. */
static void reset(ebb_http *x, uint32_t code) {
    session *s = session_of(x->conn);
    (void)code;
    s->cut = true;
    ebb__conn_touch(x->conn);
}

static uint64_t head_since(const ebb__conn *c) {
    return session_of(c)->in.head_since;
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

/* The status for a client that waits for an answer, or has begun a request; 0: none is sent. */
static int status_of(const session *s, uint32_t code) {
    if (s->in.fault != 0) return s->in.fault == EBB__H1_NO_HTTP ? 0 : s->in.fault;
    if (s->x == NULL && s->in.head_since == 0) return 0;
    switch (code) {
    case EBB__NO_ERROR: return s->x != NULL ? 503 : 0;
    case EBB__ENHANCE_YOUR_CALM: return 408;
    case EBB__PROTOCOL_ERROR: return 400;
    case EBB__INTERNAL_ERROR: return 500;
    default: return 503;
    }
}

static void say(session *s, const ebb__conn *c, int status) {
    const char *why = s->in.fault != 0 ? s->in.why : phrase(status);
    int n = snprintf(s->last_text, sizeof s->last_text,
                     "HTTP/1.1 %d %s\r\ndate: %s\r\n%scontent-type: text/plain; charset=utf-8\r\n"
                     "content-length: %zu\r\nconnection: close\r\n\r\n%s\n",
                     status, phrase(status), ebb__server_date(c->server),
                     status == 503 ? "retry-after: 1\r\n" : "", strlen(why) + 1, why);
    s->out = (ebb__h1_out){.text = s->last_text, .text_n = (size_t)n};
}

static void terminate(ebb__conn *c, uint32_t code) {
    session *s = session_of(c);
    bool begun = s->out.x != NULL && s->out.x->sent != EBB__SENT_NOTHING;
    int status = begun ? 0 : status_of(s, code);
    s->out = (ebb__h1_out){0};
    s->x = NULL;
    s->go_on = false;
    ebb__h1_shut(&s->in);
    if (status != 0) say(s, c, status);
}

static void free_session(ebb__conn *c) {
    session *s = session_of(c);
    ebb__h1_in_free(&s->in);
    ebb__free(&c->allocator, s, sizeof *s);
}

static const ebb__proto proto = {.version = 11,
                                 .feed = feed,
                                 .place = place,
                                 .eof = eof,
                                 .fill = fill,
                                 .head = respond,
                                 .more = ebb__h1_more,
                                 .consumed = ebb__h1_consumed,
                                 .go_on = go_on,
                                 .reset = reset,
                                 .notice = ebb__h1_drain, /* the next response announces the end */
                                 .drain = ebb__h1_drain,
                                 .terminate = terminate,
                                 .head_since = head_since,
                                 .free = free_session};

ebb_status ebb__h1_server_new(ebb__conn *c) {
    session *s = ebb__alloc(&c->allocator, sizeof *s);
    if (s == NULL) return EBB_ERR_NOMEM;
    memset(s, 0, sizeof *s);
    ebb__h1_in_init(&s->in, c, &server_side, c->server->limits.block_bytes);
    c->session = s;
    c->proto = &proto;
    return EBB_OK;
}
