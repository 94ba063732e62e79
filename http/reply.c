/* Functions for user code: reading a request or response, and answering. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "base/alloc.h"
#include "http/http.h"

/* ---- received fields ---------------------------------------------------------------------------------------- */

const char *ebb_http_method(const ebb_http *x) {
    return x->method;
}
const char *ebb_http_path(const ebb_http *x) {
    return x->path;
}
const char *ebb_http_query(const ebb_http *x) {
    return x->query;
}
const char *ebb_http_authority(const ebb_http *x) {
    return x->authority;
}
int ebb_http_status(const ebb_http *x) {
    return x->status;
}
int ebb_http_version(const ebb_http *x) {
    return x->version;
}
const ebb_address *ebb_http_peer(const ebb_http *x) {
    static const ebb_address nobody;
    return x->conn != NULL ? &x->conn->peer : &nobody;
}

static const char *value_of(const ebb__fields *f, const char *name) {
    const ebb__field *found = name == NULL ? NULL : ebb__fields_find(f, name, strlen(name));
    return found != NULL ? found->value : NULL;
}

const char *ebb_http_header(const ebb_http *x, const char *name) {
    return value_of(&x->fields, name);
}
const char *ebb_http_trailer(const ebb_http *x, const char *name) {
    return x->in == EBB__IN_ENDED ? value_of(&x->trailers, name) : NULL;
}

static bool field_at(const ebb__fields *f, size_t i, ebb_http_field *out) {
    if (i >= f->n) return false;
    *out = (ebb_http_field){f->at[i].name, f->at[i].value};
    return true;
}
bool ebb_http_header_at(const ebb_http *x, size_t i, ebb_http_field *out) {
    return field_at(&x->fields, i, out);
}
bool ebb_http_trailer_at(const ebb_http *x, size_t i, ebb_http_field *out) {
    return x->in == EBB__IN_ENDED && field_at(&x->trailers, i, out);
}
bool ebb_http_has_body(const ebb_http *x) {
    return x->in == EBB__IN_BODY || x->in_bytes > 0;
}

/* An invalid escape is returned as it was sent. */
static const char *decoded(const ebb_http *x, const ebb__param *p) {
    ebb__arena *arena = (ebb__arena *)(uintptr_t)&x->arena; /* the decoded text is cached there */
    char *text = ebb__arena_alloc(arena, p->value_n + 1);
    if (text == NULL) return NULL;
    if (ebb__percent_decode(text, p->value, p->value_n) != SIZE_MAX) return text;
    memcpy(text, p->value, p->value_n);
    text[p->value_n] = 0;
    return text;
}
const char *ebb_http_param(const ebb_http *x, const char *name) {
    for (uint32_t i = 0; name != NULL && i < x->params_n; i++) {
        ebb__param *p = &x->params[i];
        if (strcmp(p->name, name) != 0) continue;
        if (p->text == NULL) p->text = decoded(x, p);
        return p->text;
    }
    return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

void *ebb_http_alloc(ebb_http *x, size_t n) {
    return ebb__arena_alloc(&x->arena, n);
}

void *ebb_http_state(ebb_http *x, size_t n) {
    if (x->state == NULL) x->state = ebb__arena_zero(&x->arena, n);
    return x->state;
}

/* ---- fields to send ----------------------------------------------------------------------------------------- */

static ebb_status add(ebb_http *x, ebb__fields *f, const char *name, const char *value) {
    return ebb__fields_add(f, &x->arena, name, strlen(name), value, strlen(value));
}

static ebb_status check_field(const char *name, const char *value) {
    size_t n = name == NULL ? 0 : strlen(name);
    if (value == NULL || !ebb__is_token(name, n) || !ebb__is_field_value(value, strlen(value))) {
        return EBB_ERR_INVALID;
    }
    return ebb__field_is_ours(name, n) ? EBB_ERR_INVALID : EBB_OK;
}

/* The length of a streamed body. */
static ebb_status set_length(ebb_http *x, const char *value) {
    uint64_t n;
    if (value == NULL || !ebb__parse_u64(value, strlen(value), &n)) return EBB_ERR_INVALID;
    x->out_sized = true;
    x->out_size = n;
    return EBB_OK;
}

ebb_status ebb_http_add_header(ebb_http *x, const char *name, const char *value) {
    ebb_status st = check_field(name, value);
    if (st != EBB_OK) return st;
    return x->client || x->out != EBB__OUT_NONE ? EBB_ERR_BUSY : add(x, &x->out_fields, name, value);
}

ebb_status ebb_http_set_header(ebb_http *x, const char *name, const char *value) {
    size_t n = name == NULL ? 0 : strlen(name);
    bool length = ebb__same_name(name, n, "content-length", 14);
    ebb_status st = length ? EBB_OK : check_field(name, value);
    if (st != EBB_OK) return st;
    if (x->client || x->out != EBB__OUT_NONE) return EBB_ERR_BUSY;
    if (length) return set_length(x, value);
    ebb__fields_remove(&x->out_fields, name, n);
    return add(x, &x->out_fields, name, value);
}

ebb_status ebb_http_set_trailer(ebb_http *x, const char *name, const char *value) {
    ebb_status st = check_field(name, value);
    if (st != EBB_OK) return st;
    if (x->out == EBB__OUT_ENDED) return EBB_ERR_BUSY;
    ebb__fields_remove(&x->out_trailers, name, strlen(name));
    return add(x, &x->out_trailers, name, value);
}

/* ---- responses ---------------------------------------------------------------------------------------------- */

static ebb_status may_answer(const ebb_http *x, int status) {
    if (x->client || status < 200 || status > 999) return EBB_ERR_INVALID;
    if (!ebb__exchange_is_writable(x)) return EBB_ERR_CLOSED;
    return x->out == EBB__OUT_NONE ? EBB_OK : EBB_ERR_BUSY;
}

/* From now on the head belongs to the protocol. */
static ebb_status send_head(ebb_http *x, int status, ebb__out_trigger then) {
    x->status = (int16_t)status;
    x->bodyless = x->head || status == 204 || status == 304;
    ebb__out_step(x, then);
    ebb_status st = x->conn->proto->head(x);
    if (st != EBB_OK) {
        ebb__out_step(x, EBB__OUT_FAILS);
        x->status = 0;
        return st;
    }
    ebb__exchange_more(x);
    return EBB_OK;
}

static ebb_status copy_body(ebb_http *x, const void *body, size_t n) {
    x->out_sized = true;
    x->out_size = n;
    if (n == 0 || x->head) return EBB_OK;
    void *at = ebb__arena_alloc(&x->arena, n);
    if (at == NULL) return EBB_ERR_NOMEM;
    memcpy(at, body, n);
    x->from = at;
    x->from_n = n;
    return EBB_OK;
}

/* Responses of this layer, and of ebb_http_text. */
static const char plain[] = "text/plain; charset=utf-8";

static ebb_status set_type(ebb_http *x, const char *type) {
    ebb__fields *f = &x->out_fields;
    ebb__fields_remove(f, "content-type", 12);
    if (type == plain)
        return ebb__fields_add_constant(f, &x->arena, "content-type", 12, plain, sizeof plain - 1);
    return ebb__fields_add(f, &x->arena, "content-type", 12, type, strlen(type));
}

static ebb_status reply(ebb_http *x, int status, const char *type, const void *body, size_t n) {
    ebb_status st = type != NULL ? set_type(x, type) : EBB_OK;
    if (st == EBB_OK) st = copy_body(x, body, status == 204 || status == 304 ? 0 : n);
    if (st == EBB_OK) st = send_head(x, status, EBB__OUT_ENDS);
    if (st == EBB_OK) return st;
    x->from_n = 0;
    x->out_sized = false;
    return st;
}

ebb_status ebb_http_reply(ebb_cx *cx, ebb_http *x, int status, const char *type, const void *body, size_t n) {
    (void)cx;
    ebb_status st = may_answer(x, status);
    if (st == EBB_OK &&
        ((body == NULL && n > 0) || (type != NULL && !ebb__is_field_value(type, strlen(type))))) {
        st = EBB_ERR_INVALID;
    }
    return st == EBB_OK ? reply(x, status, type, body, n) : st;
}

ebb_status ebb_http_text(ebb_cx *cx, ebb_http *x, int status, const char *text) {
    (void)cx;
    ebb_status st = may_answer(x, status);
    if (st != EBB_OK) return st;
    return reply(x, status, plain, text, text == NULL ? 0 : strlen(text));
}

ebb_status ebb_http_start(ebb_cx *cx, ebb_http *x, int status) {
    (void)cx;
    ebb_status st = may_answer(x, status);
    return st == EBB_OK ? send_head(x, status, EBB__OUT_STARTS) : st;
}

/* Responses that the layer makes itself. */
static const char *phrase(int status) {
    switch (status) {
    case 404: return "not found\n";
    case 405: return "method not allowed\n";
    case 408: return "the request took too long\n";
    case 413: return "the body is too large\n";
    case 431: return "the header is too large\n";
    case 503: return "overloaded or shutting down\n";
    case 504: return "the deadline has passed\n";
    default: return "internal error\n";
    }
}

void ebb__exchange_refuse(ebb_http *x, int status) {
    if (ebb__exchange_is_gone(x) || x->out != EBB__OUT_NONE) return;
    x->out_fields.n = 0;
    x->out_trailers.n = 0;
    const char *text = phrase(status);
    if (x->version == 20 && !ebb__h2_has_window(x, strlen(text)))
        text = ""; /* the client should not wait for long */
    ebb_status st = EBB_OK;
    if (status == 503) st = add(x, &x->out_fields, "retry-after", "1");
    if (status == 405 && x->allow != NULL) st = add(x, &x->out_fields, "allow", x->allow);
    if (st == EBB_OK) st = reply(x, status, plain, text, strlen(text));
    if (st != EBB_OK)
        x->conn->proto->reset(x, EBB__INTERNAL_ERROR); /* no memory even for the error response */
}

/* ---- server-sent events ------------------------------------------------------------------------------------- */

static size_t put(char *to, size_t at, const char *text, size_t n) {
    if (to != NULL) memcpy(to + at, text, n);
    return at + n;
}

static size_t line_n(const char *text, const char *end) {
    size_t n = 0;
    while (text + n < end && text[n] != '\r' && text[n] != '\n') n++;
    return n;
}

/* Puts the name before each line of a text. CR, LF and CRLF end a line. Returns the length; with `to` NULL nothing is
 * written. */
static size_t put_lines(char *to, const char *name, const char *text, size_t text_n) {
    const char *end = text + text_n;
    size_t all = 0;
    for (;;) {
        size_t n = line_n(text, end);
        all = put(to, all, name, strlen(name));
        all = put(to, all, text, n);
        all = put(to, all, "\n", 1);
        text += n;
        if (text == end) return all;
        text += end - text > 1 && text[0] == '\r' && text[1] == '\n' ? 2 : 1;
    }
}

static size_t put_line(char *to, size_t at, const char *name, const char *text) {
    return at + put_lines(to == NULL ? to : to + at, name, text, strlen(text));
}

static size_t put_event(char *to, const ebb_http_event *e) {
    char retry[16];
    size_t n = 0;
    snprintf(retry, sizeof retry, "%u", e->retry_ms);
    if (e->event != NULL) n = put_line(to, n, "event: ", e->event);
    if (e->id != NULL) n = put_line(to, n, "id: ", e->id);
    if (e->retry_ms != 0) n = put_line(to, n, "retry: ", retry);
    if (e->data != NULL) {
        size_t data_n = e->data_n != 0 ? e->data_n : strlen(e->data);
        n += put_lines(to == NULL ? to : to + n, "data: ", e->data, data_n);
    }
    if (to != NULL) to[n] = '\n';
    return n + 1;
}

static bool is_one_line(const char *text) {
    return text == NULL || text[strcspn(text, "\r\n")] == 0;
}

static ebb_status start_events(ebb_cx *cx, ebb_http *x) {
    ebb_status st = ebb_http_set_header(x, "content-type", "text/event-stream");
    if (st == EBB_OK) st = ebb_http_set_header(x, "cache-control", "no-store");
    return st == EBB_OK ? ebb_http_start(cx, x, 200) : st;
}

/* The buffer is reused by the next event if it is large enough: there may be many events. */
static char *event_room(ebb_http *x, size_t n) {
    if (x->event_n >= n) return x->event;
    size_t room = n < 256 ? 256 : n * 2;
    char *at = ebb__arena_alloc(&x->arena, room);
    if (at == NULL) return NULL;
    x->event = at;
    x->event_n = room;
    return at;
}

ebb_future *ebb_http_send_event_site(ebb_cx *cx, ebb_http *x, const ebb_http_event *e, const char *site) {
    bool right =
        e != NULL && is_one_line(e->event) && is_one_line(e->id) && (e->data != NULL || e->data_n == 0);
    ebb_status st = right ? EBB_OK : EBB_ERR_INVALID;
    if (st == EBB_OK && x->writer != NULL) st = EBB_ERR_BUSY;
    if (st == EBB_OK && x->out == EBB__OUT_NONE) st = start_events(cx, x);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    size_t n = put_event(NULL, e);
    char *at = event_room(x, n);
    if (at == NULL) return ebb__loop_failed(cx, EBB_ERR_NOMEM, site);
    (void)put_event(at, e);
    return ebb_http_write_site(cx, x, at, n, site);
}
