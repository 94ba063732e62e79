/* The whole body of an exchange in one piece: ebb_http_body.
 *
 * It is the reader of the exchange and takes bytes as they are received, so that the peer's window stays open.
 * Collected bytes stay with the exchange: a call that was cancelled or exceeded its limit loses nothing, and the next
 * call continues. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "http/http.h"

enum { LEAST = 4096, TRUSTED = 1024 * 1024 };

static const ebb_type bytes_type = {"http body", 0, NULL, NULL, 0};

const ebb_http_bytes *ebb_http_body_of(const ebb_value *v) {
    return v->type == &bytes_type ? v->as.p : NULL;
}

/* With room for a 0 at the end. */
static ebb_status make_room(ebb_http *x, size_t n) {
    size_t room = x->whole_room == 0 ? LEAST : x->whole_room;
    while (room <= n) room *= 2;
    if (room == x->whole_room) return EBB_OK;
    uint8_t *at = ebb__resize(&x->arena.allocator, x->whole, x->whole_room, room);
    if (at == NULL) return EBB_ERR_NOMEM;
    x->whole = at;
    x->whole_room = room;
    return EBB_OK;
}

static ebb_status fits(const ebb_http *x, uint64_t n) {
    return x->whole_n > x->whole_most || n > x->whole_most - x->whole_n ? EBB_ERR_LIMIT : EBB_OK;
}

bool ebb__whole_add(ebb_http *x, const uint8_t *from, size_t n) {
    ebb_status st = fits(x, n);
    if (st == EBB_OK) st = make_room(x, x->whole_n + n);
    if (st == EBB_OK) {
        memcpy(x->whole + x->whole_n, from, n);
        x->whole_n += n;
        return true;
    }
    ebb_future *f = x->reader;
    x->reader = NULL;
    ebb__pacing_came(x, 0);
    ebb__reject(x->loop, f, st);
    return false;
}

ebb_value ebb__whole_end(ebb_http *x) {
    x->whole[x->whole_n] = 0;
    x->whole_bytes = (ebb_http_bytes){(const char *)x->whole, x->whole_n};
    return (ebb_value){&bytes_type, {&x->whole_bytes}};
}

/* Bytes that were received before the call. */
static ebb_status take_ready(ebb_http *x) {
    ebb_status st = fits(x, x->body_n);
    if (st == EBB_OK) st = make_room(x, x->whole_n + x->body_n);
    if (st == EBB_OK && x->body_n > 0) x->whole_n += ebb__exchange_read(x, x->whole + x->whole_n, x->body_n);
    return st;
}

/* An announced length is trusted up to a bound, and refused now if it exceeds the limit. */
static ebb_status trust_length(ebb_http *x) {
    uint64_t n;
    const ebb__field *f = ebb__fields_find(&x->fields, "content-length", 14);
    if (f == NULL || (x->client && x->head) || !ebb__parse_u64(f->value, f->value_n, &n)) return EBB_OK;
    if (n > x->whole_most) return EBB_ERR_LIMIT;
    return make_room(x, n < TRUSTED ? (size_t)n : TRUSTED);
}

static void body_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb_http *x = arg;
    (void)cx;
    if (x->reader != f) return;
    x->reader = NULL;
    ebb__pacing_came(x, 0);
    ebb__reject(x->loop, f, EBB_CANCELLED);
}

static const ebb_operation body_op = {"http body", body_cancel, NULL};

ebb_future *ebb_http_body_site(ebb_cx *cx, ebb_http *x, size_t most, const char *site) {
    ebb_future *f;
    ebb_status st = ebb__exchange_may_read(x);
    if (st == EBB_OK || st == EBB_ERR_EOF) {
        x->whole_most = most;
        ebb_status room = trust_length(x);
        if (room == EBB_OK) room = take_ready(x);
        if (room != EBB_OK) st = room;
    }
    bool all = x->in == EBB__IN_ENDED && x->in_status == EBB_ERR_EOF;
    if (st == EBB_ERR_EOF || (st == EBB_OK && all)) return ebb_future_ready_site(cx, ebb__whole_end(x), site);
    if (st == EBB_OK && x->in == EBB__IN_ENDED) st = x->in_status;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    x->reader = ebb__begin(x->loop, cx, &body_op, x, site, &f);
    if (x->reader == NULL) return f;
    f = x->reader;
    x->whole_reads = true;
    ebb__exchange_waits(x);
    return f;
}
