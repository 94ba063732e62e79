/* HTTP/1: how messages are read. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <http_parser.h>
#include <string.h>

#include "base/alloc.h"
#include "http/h1.h"

enum { HELD_LEAST = 1024 };

void ebb__h1_in_init(ebb__h1_in *in, ebb__conn *c, const ebb__h1_side *side, size_t head_bytes) {
    *in = (ebb__h1_in){.c = c, .side = side, .head_bytes = head_bytes};
}

bool ebb__h1_fault(ebb__h1_in *in, int status, const char *why) {
    in->fault = (uint16_t)status;
    in->why = why;
    return false;
}

/* ---- held bytes --------------------------------------------------------------------------------------------- */

static void let_go(ebb__h1_in *in) {
    ebb__free(&in->c->allocator, in->held, in->held_room);
    in->held = NULL;
    in->held_at = in->held_n = in->held_room = 0;
}

void ebb__h1_in_free(ebb__h1_in *in) {
    let_go(in);
}

static bool held_grow(ebb__h1_in *in, size_t need) {
    size_t room = in->held_room == 0 ? HELD_LEAST : in->held_room;
    while (room < need) room *= 2;
    if (room == in->held_room) return true;
    uint8_t *at = ebb__resize(&in->c->allocator, in->held, in->held_room, room);
    if (at == NULL) return false;
    in->held = at;
    in->held_room = room;
    return true;
}

static bool hold(ebb__h1_in *in, const uint8_t *bytes, size_t n) {
    if (n == 0) return true;
    if (in->held_at > 0) memmove(in->held, in->held + in->held_at, in->held_n);
    in->held_at = 0;
    if (!held_grow(in, in->held_n + n)) return ebb__h1_fault(in, 503, "no memory");
    memcpy(in->held + in->held_n, bytes, n);
    in->held_n += n;
    return true;
}

/* ---- lines -------------------------------------------------------------------------------------------------- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Splits "name: value". False: the line has another form. A space before the colon, or at the start of a folded line,
 * is no part of a token. */
static bool split(const char *line, size_t n, ebb__field *out) {
    const char *colon = memchr(line, ':', n);
    if (colon == NULL || !ebb__is_token(line, (size_t)(colon - line))) return false;
    const char *from = colon + 1, *to = line + n;
    while (from < to && is_blank(*from)) from++;
    while (to > from && is_blank(to[-1])) to--;
    *out = (ebb__field){line, from, (uint32_t)(colon - line), (uint32_t)(to - from)};
    return ebb__is_field_value(from, out->value_n);
}

/* The current line is a request line or a status line. */
static bool is_first(const ebb__h1_in *in) {
    return in->state == EBB__H1_HEAD && in->line == 0;
}

static bool line_too_long(ebb__h1_in *in) {
    return ebb__h1_fault(in, 414, "the first line is too long");
}

static bool check_line(ebb__h1_in *in, const char *line, size_t n) {
    ebb__field f;
    if (is_first(in) && n > EBB__H1_LINE_BYTES) return line_too_long(in);
    if (is_first(in)) return in->side->line(in, line, n);
    return split(line, n, &f) || ebb__h1_fault(in, 400, "a line of the header is not a field");
}

/* Checks the complete lines. Returns the number of bytes up to and including the empty line; 0: that is missing, or
 * there is a fault. Each byte is examined once, however the bytes are received. */
static size_t look_for_end(ebb__h1_in *in, const char *at, size_t n) {
    const char *lf;
    while ((lf = memchr(at + in->seen, '\n', n - in->seen)) != NULL) {
        size_t stop = (size_t)(lf - at);
        if (stop == in->line || lf[-1] != '\r') {
            (void)ebb__h1_fault(in, 400, "a line does not end in CRLF");
            return 0;
        }
        if (stop - 1 == in->line) return stop + 1;
        if (!check_line(in, at + in->line, stop - 1 - in->line)) return 0;
        in->line = in->seen = stop + 1;
    }
    in->seen = n;
    return 0;
}

/* The lines of a head or of trailers, if they are complete. */
static size_t lines(ebb__h1_in *in, const char *at, size_t n) {
    size_t end = look_for_end(in, at, n);
    bool large = end > in->head_bytes || (end == 0 && n >= in->head_bytes);
    if (in->fault != 0) return 0;
    if (end == 0 && is_first(in) && (large || n > EBB__H1_LINE_BYTES + 1)) (void)line_too_long(in);
    else if (large) (void)ebb__h1_fault(in, 431, "the header is too large");
    return in->fault == 0 ? end : 0;
}

static void lines_done(ebb__h1_in *in) {
    in->line = in->seen = 0;
    in->head_since = 0;
}

/* ---- heads -------------------------------------------------------------------------------------------------- */

typedef struct parsing {
    ebb__h1_head *head;
    const char *name;
    size_t name_n;
    uint32_t lengths, encodings;
    bool whole;
} parsing;

static int on_target(http_parser *p, const char *at, size_t n) {
    parsing *s = p->data;
    s->head->target = at;
    s->head->target_n = n;
    return 0;
}

static int on_name(http_parser *p, const char *at, size_t n) {
    parsing *s = p->data;
    s->name = at;
    s->name_n = n;
    return 0;
}

static bool is_named(const parsing *s, const char *name) {
    return ebb__same_name(s->name, s->name_n, name, strlen(name));
}

/* Parses the fields that frame the message. A value is in one piece, because the head is. */
static int on_value(http_parser *p, const char *at, size_t n) {
    parsing *s = p->data;
    ebb__h1_head *h = s->head;
    while (n > 0 && is_blank(at[n - 1])) n--;
    if (is_named(s, "host")) {
        h->hosts++;
        h->host = at;
        h->host_n = n;
    } else if (is_named(s, "content-length")) {
        s->lengths++;
        h->sized = ebb__parse_u64(at, n, &h->length);
    } else if (is_named(s, "transfer-encoding")) {
        s->encodings++;
        h->chunked = ebb__same_name(at, n, "chunked", 7);
    }
    return 0;
}

/* 1: the parser expects no body, which we parse ourselves. */
static int on_whole(http_parser *p) {
    parsing *s = p->data;
    s->whole = true;
    return 1;
}

static bool parse_fails(ebb__h1_in *in, enum http_errno code) {
    switch (code) {
    case HPE_INVALID_METHOD: return ebb__h1_fault(in, 501, "the method is not known");
    case HPE_INVALID_VERSION: return ebb__h1_fault(in, 505, "the version is not supported");
    case HPE_HEADER_OVERFLOW: return ebb__h1_fault(in, 431, "the header is too large");
    case HPE_INVALID_CONTENT_LENGTH: return ebb__h1_fault(in, 400, "content-length is not a number");
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return ebb__h1_fault(in, 400, "content-length twice, or with transfer-encoding");
    default: return ebb__h1_fault(in, 400, "the head is not HTTP");
    }
}

/* RFC 9112, section 6.3, without the repairs that it allows a recipient. */
static bool check_framing(ebb__h1_in *in, const parsing *s) {
    const ebb__h1_head *h = s->head;
    if (s->lengths > 0 && !h->sized) return ebb__h1_fault(in, 400, "content-length is not a number");
    if (s->encodings > 1) return ebb__h1_fault(in, 400, "more than one transfer-encoding");
    if (s->encodings == 0) return true;
    if (h->minor == 0) return ebb__h1_fault(in, 400, "transfer-encoding in HTTP/1.0");
    return h->chunked || ebb__h1_fault(in, 501, "the transfer encoding is not known");
}

bool ebb__h1_parse(ebb__h1_in *in, bool request, const char *text, size_t n, ebb__h1_head *out) {
    static const http_parser_settings settings = {.on_url = on_target,
                                                  .on_header_field = on_name,
                                                  .on_header_value = on_value,
                                                  .on_headers_complete = on_whole};
    parsing s = {.head = out};
    http_parser p;
    *out = (ebb__h1_head){0};
    http_parser_init(&p, request ? HTTP_REQUEST : HTTP_RESPONSE);
    p.data = &s;
    (void)http_parser_execute(&p, &settings, text, n);
    out->method = p.method;
    out->status = (int)p.status_code;
    out->minor = p.http_minor;
    return s.whole ? check_framing(in, &s) : parse_fails(in, HTTP_PARSER_ERRNO(&p));
}

bool ebb__h1_fields(ebb_http *x, const char *text, size_t n, int minor) {
    const char *line = (const char *)memchr(text, '\n', n) + 1, *lf;
    bool keeps = minor > 0, fits = true;
    ebb__field f;
    for (; fits && line[0] != '\r'; line = lf + 1) {
        lf = memchr(line, '\n', n - (size_t)(line - text));
        if (!split(line, (size_t)(lf - line) - 1, &f)) return false;
        fits = ebb__exchange_field(x, f.name, f.name_n, f.value, f.value_n);
    }
    for (uint32_t i = 0; i < x->fields.n; i++) {
        const ebb__field *of = &x->fields.at[i];
        if (!ebb__same_name(of->name, of->name_n, "connection", 10)) continue;
        if (ebb__has_token(of->value, "close")) return false;
        if (minor == 0 && ebb__has_token(of->value, "keep-alive")) keeps = true;
    }
    return keeps && !x->too_large; /* the field that forbids it may be among those that were dropped */
}

/* One empty line before a head is skipped: some old clients send it after a body. */
static size_t skip_blank(ebb__h1_in *in) {
    if (in->blank) {
        (void)ebb__h1_fault(in, 400, "empty lines before the head");
        return 0;
    }
    in->blank = true;
    lines_done(in);
    return 2;
}

static void is_waiting(ebb__h1_in *in, size_t n) {
    ebb__conn *c = in->c;
    if (n == 0 || in->head_since != 0) return;
    in->head_since = ebb__now(c->loop->rt);
    if (c->server != NULL) ebb__conn_task_at(c, in->head_since + c->server->limits.header_ns);
}

static size_t take_head(ebb__h1_in *in, const char *at, size_t n) {
    size_t end = lines(in, at, n);
    if (end == 2) return skip_blank(in);
    if (end == 0) {
        is_waiting(in, n);
        return 0;
    }
    lines_done(in);
    in->blank = false;
    in->extra = 0;
    in->side->head(in, at, end);
    return end;
}

/* ---- bodies ------------------------------------------------------------------------------------------------- */

static void is_whole(ebb__h1_in *in) {
    in->state = EBB__H1_WHOLE;
    ebb__exchange_in_end(in->x, EBB_ERR_EOF);
}

/* Unread bytes are bounded. */
static size_t body_room(const ebb_http *x) {
    return x->body_n < EBB__H1_WINDOW_BYTES ? EBB__H1_WINDOW_BYTES - x->body_n : 0;
}

/* The exchange may be reset by these bytes: then the state is SHUT. */
static size_t take_body(ebb__h1_in *in, const uint8_t *at, size_t n, uint8_t then) {
    size_t k = body_room(in->x);
    if (k > n) k = n;
    if (k > in->left) k = (size_t)in->left;
    if (k == 0) return 0;
    if (!ebb__exchange_body(in->x, at, k)) {
        (void)ebb__h1_fault(in, 503, "no memory");
        return 0;
    }
    if (in->state == EBB__H1_SHUT || in->state == EBB__H1_ENDLESS) return k;
    in->left -= k;
    if (in->left > 0) return k;
    if (then == EBB__H1_WHOLE) is_whole(in);
    else in->state = then;
    return k;
}

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Extensions are ignored, but each must start with a semicolon, after spaces at most. */
static bool take_extra(ebb__h1_in *in, uint8_t c) {
    char text = (char)c;
    if (c != '\r' && ++in->extra > EBB__H1_CHUNK_EXTRA_BYTES)
        return ebb__h1_fault(in, 400, "the extensions of the chunks are too long");
    if (c == ';') in->named = true;
    if (is_blank(text) || (in->named && ebb__is_field_value(&text, 1))) return true;
    if (c != '\r' || !in->named) return ebb__h1_fault(in, 400, "the extension of a chunk is not valid");
    in->state = EBB__H1_SIZE_LF;
    in->named = false;
    return true;
}

static bool take_size(ebb__h1_in *in, uint8_t c) {
    int digit = digit_of(c);
    if (digit >= 0) {
        if (in->left >> 60 != 0) return ebb__h1_fault(in, 400, "the size of a chunk is too large");
        in->left = in->left << 4 | (uint64_t)digit;
        in->digits = true;
        return true;
    }
    if (!in->digits) return ebb__h1_fault(in, 400, "a chunk has no size");
    if (c == '\r') in->state = EBB__H1_SIZE_LF;
    else if (c == ';' || is_blank((char)c)) in->state = EBB__H1_EXTRA;
    else return ebb__h1_fault(in, 400, "the size of a chunk is not a number");
    in->digits = false;
    return in->state == EBB__H1_SIZE_LF || take_extra(in, c);
}

static bool take_lf(ebb__h1_in *in, uint8_t c) {
    if (c != '\n') return ebb__h1_fault(in, 400, "a line of a chunk does not end in CRLF");
    bool of_data = in->state == EBB__H1_DATA_LF;
    in->state = of_data ? EBB__H1_SIZE : in->left == 0 ? EBB__H1_TRAILERS : EBB__H1_DATA;
    return true;
}

static bool take_cr(ebb__h1_in *in, uint8_t c) {
    if (c != '\r') return ebb__h1_fault(in, 400, "a chunk is longer than its size");
    in->state = EBB__H1_DATA_LF;
    return true;
}

/* Fields that are not allowed in trailers are dropped: RFC 9110, section 6.5.1. */
static void add_trailer(ebb_http *x, const char *line, size_t n) {
    ebb__field f;
    if (split(line, n, &f) && !ebb__field_is_ours(f.name, f.name_n))
        (void)ebb__exchange_field(x, f.name, f.name_n, f.value, f.value_n);
}

static size_t take_trailers(ebb__h1_in *in, const char *at, size_t n) {
    size_t end = lines(in, at, n);
    if (end == 0) return 0;
    for (const char *line = at, *lf; line[0] != '\r'; line = lf + 1) {
        lf = memchr(line, '\n', end - (size_t)(line - at));
        add_trailer(in->x, line, (size_t)(lf - line) - 1);
    }
    lines_done(in);
    is_whole(in);
    return end;
}

/* ---- taking bytes ------------------------------------------------------------------------------------------- */

/* Returns how many of n > 0 bytes were taken; 0: none can be taken now, or there is a fault. */
static size_t step(ebb__h1_in *in, const uint8_t *at, size_t n) {
    switch ((ebb__h1_state)in->state) {
    case EBB__H1_HEAD: return take_head(in, (const char *)at, n);
    case EBB__H1_SIZED:
    case EBB__H1_ENDLESS: return take_body(in, at, n, EBB__H1_WHOLE);
    case EBB__H1_SIZE: return take_size(in, *at);
    case EBB__H1_EXTRA: return take_extra(in, *at);
    case EBB__H1_SIZE_LF:
    case EBB__H1_DATA_LF: return take_lf(in, *at);
    case EBB__H1_DATA: return take_body(in, at, n, EBB__H1_DATA_CR);
    case EBB__H1_DATA_CR: return take_cr(in, *at);
    case EBB__H1_TRAILERS: return take_trailers(in, (const char *)at, n);
    case EBB__H1_WHOLE: return 0;
    case EBB__H1_SHUT: return n;
    }
    return 0;
}

static size_t run(ebb__h1_in *in, const uint8_t *at, size_t n) {
    size_t all = 0;
    while (all < n && in->fault == 0) {
        size_t k = step(in, at + all, n - all);
        if (k == 0) break;
        all += k;
    }
    return all;
}

void ebb__h1_again(ebb__h1_in *in) {
    if (in->held_n == 0 || in->fault != 0) return;
    size_t k = run(in, in->held + in->held_at, in->held_n);
    in->held_at += k;
    in->held_n -= k;
    if (in->held_n == 0) let_go(in);
}

void ebb__h1_take(ebb__h1_in *in, const uint8_t *bytes, size_t n) {
    if (in->fault != 0) return;
    if (in->held_n > 0) {
        if (hold(in, bytes, n)) ebb__h1_again(in);
        return;
    }
    size_t k = run(in, bytes, n);
    if (in->fault == 0) (void)hold(in, bytes + k, n - k);
}

uint8_t *ebb__h1_place(const ebb__h1_in *in, size_t *n) {
    bool plain = in->state == EBB__H1_SIZED || in->state == EBB__H1_ENDLESS || in->state == EBB__H1_DATA;
    if (!plain || in->x == NULL || in->held_n > 0 || in->fault != 0) return NULL;
    uint8_t *to = ebb__exchange_place(in->x, n);
    if (to != NULL && *n > in->left) *n = (size_t)in->left;
    return to != NULL && *n >= EBB__RAW_STREAM_PIECE ? to : NULL;
}

void ebb__h1_closed(ebb__h1_in *in) {
    assert(in->state == EBB__H1_ENDLESS);
    is_whole(in);
}

void ebb__h1_next(ebb__h1_in *in) {
    assert(in->state == EBB__H1_WHOLE);
    in->x = NULL;
    in->state = EBB__H1_HEAD;
    ebb__h1_again(in);
}

void ebb__h1_shut(ebb__h1_in *in) {
    in->x = NULL;
    in->state = EBB__H1_SHUT;
    in->head_since = 0;
}

static bool is_in_body(const ebb__h1_in *in) {
    return in->x != NULL && in->state != EBB__H1_TRAILERS && in->state != EBB__H1_WHOLE;
}

bool ebb__h1_is_full(const ebb__h1_in *in) {
    return in->held_n > 0 && is_in_body(in);
}

/* Stops reading when the peer has sent more than we take. The loss of such a connection is noticed late. */
void ebb__h1_steer(ebb__h1_in *in) {
    bool on = true;
    if (in->closed) return;
    if (in->state == EBB__H1_WHOLE) on = in->held_n < EBB__H1_HELD_BYTES;
    else if (is_in_body(in)) on = in->held_n == 0 && body_room(in->x) > 0;
    (void)ebb__raw_stream_read(&in->c->raw, on);
}
