/* HTTP/1, client side: one call at a time on a connection, which is used again if both sides allow that. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "http/h1.h"

enum { REQUEST_LINE_EXTRA = 32 };

/* Invariant: `x` is the current call, from its head until its response is complete, and NULL otherwise. While it is
 * NULL the reader is between two messages, and no byte may be received. */
typedef struct session {
    ebb__h1_in in;
    ebb__h1_out out;
    ebb_http *x;
    bool sent;         /* the whole request is written */
    bool keeps;        /* the server allows another call after this response */
    bool cut;          /* the call is given up, and its connection with it */
    uint32_t interims; /* informational responses so far */
} session;

static session *session_of(const ebb__conn *c) {
    return c->session;
}

/* ---- responses ---------------------------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_text(const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

/* "HTTP/1.1 200 OK". Some servers omit the space before an empty phrase. */
static bool check_line(ebb__h1_in *in, const char *line, size_t n) {
    bool right = n >= 12 && memcmp(line, "HTTP/1.", 7) == 0 && is_digit(line[7]) && line[8] == ' ' &&
                 line[9] >= '1' && line[9] <= '9' && is_digit(line[10]) && is_digit(line[11]) &&
                 is_text(line + 12, n - 12);
    return right || ebb__h1_fault(in, 400, "not a status line");
}

static ebb__h1_state body_of(const ebb_http *x, const ebb__h1_head *h) {
    if (strcmp(x->method, "HEAD") == 0 || h->status == 204 || h->status == 304) return EBB__H1_WHOLE;
    if (h->chunked) return EBB__H1_SIZE;
    if (!h->sized) return EBB__H1_ENDLESS;
    return h->length > 0 ? EBB__H1_SIZED : EBB__H1_WHOLE;
}

/* True: informational, another response follows. We request no upgrade, so 101 is an error. */
static bool is_interim(ebb__h1_in *in, int status) {
    if (status >= 200) return false;
    if (status == 101 || ++session_of(in->c)->interims > EBB__INTERIMS)
        (void)ebb__h1_fault(in, 400, "an unexpected informational response");
    return true;
}

/* ebb__exchange_head may reset the call: the state must be set before. */
static void take_head(ebb__h1_in *in, const char *text, size_t n) {
    session *s = session_of(in->c);
    ebb_http *x = s->x;
    ebb__h1_head h;
    if (!ebb__h1_parse(in, false, text, n, &h) || is_interim(in, h.status)) return;
    x->version = h.minor > 0 ? 11 : 10;
    (void)ebb__exchange_field(x, ":status", 7, text + 9, 3);
    s->keeps = ebb__h1_fields(x, text, n, h.minor);
    in->x = x;
    in->state = (uint8_t)body_of(x, &h);
    in->left = in->state == EBB__H1_ENDLESS ? UINT64_MAX : h.chunked ? 0 : h.length;
    ebb__exchange_head(x, in->state == EBB__H1_WHOLE);
}

static const ebb__h1_side client_side = {check_line, take_head};

/* ---- receiving ---------------------------------------------------------------------------------------------- */

static void fail(ebb__conn *c) {
    const ebb__h1_in *in = &session_of(c)->in;
    ebb_status st = EBB_ERR_HTTP_PROTOCOL;
    if (in->fault == 414 || in->fault == 431) st = EBB_ERR_LIMIT;
    if (in->fault == 503) st = EBB_ERR_NOMEM;
    ebb__conn_drop(c, st, EBB_CANCEL_DISCONNECT, in->why);
}

/* The response is complete. The next call may start inside of this. */
static void answered(ebb__conn *c) {
    session *s = session_of(c);
    ebb_http *x = s->x;
    /* Unrequested bytes would be taken for the next answer. */
    bool goes_on = s->keeps && s->sent && s->in.held_n == 0 && !s->in.closed && c->state == EBB__CONN_OPEN;
    s->x = s->in.x = NULL;
    s->out = (ebb__h1_out){0};
    if (!goes_on) {
        ebb__h1_shut(&s->in);
        if (c->state == EBB__CONN_OPEN) ebb__conn_step(c, EBB__CONN_DRAINS);
        ebb__client_draining(c);
    }
    ebb__exchange_gone(x, EBB_OK, EBB_CANCEL_NONE, "");
    ebb__conn_touch(c);
}

/* No more bytes will be received, and all were taken. */
static void lost(ebb__conn *c) {
    session *s = session_of(c);
    if (s->x == NULL) {
        ebb__conn_finish(c);
    } else if (s->in.state == EBB__H1_ENDLESS && c->reads != EBB__READS_BROKEN) {
        ebb__h1_closed(&s->in);
        answered(c);
    } else {
        ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_DISCONNECT, "the server has closed the connection");
    }
}

static void settle(ebb__conn *c) {
    session *s = session_of(c);
    if (s->in.fault != 0) fail(c);
    else if (s->in.state == EBB__H1_WHOLE && s->x != NULL) answered(c);
    else if (s->in.closed && !ebb__h1_is_full(&s->in)) lost(c);
    else ebb__h1_steer(&s->in);
}

static void feed(ebb__conn *c, const uint8_t *bytes, size_t n) {
    session *s = session_of(c);
    if (s->x == NULL) {
        ebb__conn_finish(c);
        return;
    }
    ebb__h1_take(&s->in, bytes, n);
    settle(c);
}

static uint8_t *place(const ebb__conn *c, size_t *n) {
    return ebb__h1_place(&session_of(c)->in, n);
}

static void eof(ebb__conn *c) {
    session_of(c)->in.closed = true;
    settle(c);
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

static char *put(char *to, const char *text) {
    while (*text != 0) *to++ = *text++;
    return to;
}

static ebb_status request(ebb_http *x) {
    session *s = session_of(x->conn);
    assert(s->x == NULL && s->in.state == EBB__H1_WHOLE);
    size_t n = strlen(x->method) + strlen(x->path) + strlen(x->authority) + REQUEST_LINE_EXTRA;
    char *first = ebb__arena_alloc(&x->arena, n);
    if (first == NULL) return EBB_ERR_NOMEM;
    char *to = put(put(first, x->method), " ");
    to = put(put(to, x->path), " HTTP/1.1\r\nhost: ");
    *put(put(to, x->authority), "\r\n") = 0;
    ebb_status st = ebb__h1_begin(&s->out, x, first, "");
    if (st != EBB_OK) return st;
    s->x = x;
    s->sent = s->keeps = false;
    s->interims = 0;
    ebb__h1_next(&s->in);
    ebb__conn_touch(x->conn);
    return EBB_OK;
}

static void cut(ebb__conn *c) {
    ebb__conn_drop(c, EBB_ERR_HTTP_RESET, EBB_CANCEL_USER, "the call was given up");
}

static size_t fill(ebb__conn *c, uint8_t *to, size_t room) {
    session *s = session_of(c);
    bool done;
    if (!ebb__conn_is_ending(c) && s->cut) cut(c);
    if (ebb__conn_is_ending(c)) return 0;
    ebb__h1_again(&s->in); /* there may be room for more of a body */
    settle(c);
    if (ebb__conn_is_ending(c)) return 0;
    size_t n = ebb__h1_put(&s->out, to, room, &done);
    if (done) {
        s->sent = true;
        s->out = (ebb__h1_out){0};
    }
    if (s->out.failed) s->cut = true;
    if (s->cut) ebb__conn_touch(c);
    return n;
}

/* ---- notifications ------------------------------------------------------------------------------------------ */

static void reset(ebb_http *x, uint32_t code) {
    session *s = session_of(x->conn);
    (void)code;
    s->cut = true;
    ebb__h1_shut(&s->in);
    ebb__conn_touch(x->conn);
}

/* The call was given up: its bytes need not be sent. */
static void stuck(ebb__conn *c) {
    if (session_of(c)->cut) cut(c);
}

/* HTTP/1 has no way to tell a server why. */
static void terminate(ebb__conn *c, uint32_t code) {
    session *s = session_of(c);
    (void)code;
    s->out = (ebb__h1_out){0};
    s->x = NULL;
    ebb__h1_shut(&s->in);
}

static uint64_t head_since(const ebb__conn *c) {
    return session_of(c)->in.head_since;
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
                                 .head = request,
                                 .more = ebb__h1_more,
                                 .consumed = ebb__h1_consumed,
                                 .go_on = ebb__h1_more,
                                 .reset = reset,
                                 .drain = ebb__h1_drain,
                                 .terminate = terminate,
                                 .head_since = head_since,
                                 .free = free_session,
                                 .stuck = stuck};

/* A field is shorter in a message than the bounds count it. */
ebb_status ebb__h1_client_new(ebb__conn *c) {
    session *s = ebb__alloc(&c->allocator, sizeof *s);
    if (s == NULL) return EBB_ERR_NOMEM;
    memset(s, 0, sizeof *s);
    ebb__h1_in_init(&s->in, c, &client_side, (size_t)ebb__conn_bounds(c)->header_bytes + EBB__H1_LINE_BYTES);
    s->in.state = EBB__H1_WHOLE;
    c->session = s;
    c->proto = &proto;
    return EBB_OK;
}
