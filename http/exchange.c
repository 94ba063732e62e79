/* Exchanges: receiving, sending, and when they are freed. */
#define _POSIX_C_SOURCE 200809L
#include "http/http.h"

#include <assert.h>

#include "base/alloc.h"

enum { STAGE_FRAMES = 128, STAGE_EIGHTHS = 4, LAST_MOST = 12288 };
enum {
    CHUNK = 2048,
    BODY_LEAST = 4096,
    BODY_MOST = EBB__BODY_WINDOW,
    DROPPED_MOST = 65536,
    EXCESS = 8,
    SPARES = 1024
};

/* ---- creation and end ------------------------------------------------------------------------------------- */

/* A server keeps some exchanges for reuse, each with a chunk of its arena. */
static ebb_http *take_spare(ebb_http_server *s) {
    ebb_http *x = s != NULL ? s->spare : NULL;
    if (x == NULL) return NULL;
    s->spare = x->next;
    s->spares--;
    return x;
}

static void release(ebb_http *x, ebb_http_server *s, const ebb_allocator *a) {
    ebb__free(a, x->body, x->body_room);
    ebb__free(a, x->whole, x->whole_room);
    x->body = x->whole = NULL;
    if (s == NULL || s->spares >= SPARES) {
        ebb__arena_free(&x->arena);
        ebb__free(a, x, sizeof *x);
        return;
    }
    ebb__arena_reset(&x->arena);
    x->next = s->spare;
    s->spare = x;
    s->spares++;
}

void ebb__exchange_init(ebb_http *x) {
    ebb__arena arena = x->arena;
    memset(x, 0, sizeof *x);
    x->arena = arena;
    x->method = x->path = x->query = x->authority = "";
}

ebb_http *ebb__exchange_new(ebb__conn *c) {
    ebb_http *x = take_spare(c->server);
    if (x == NULL) {
        x = ebb__alloc(&c->allocator, sizeof *x);
        if (x == NULL) return NULL;
        ebb__arena_init(&x->arena, c->allocator, CHUNK);
    }
    ebb__exchange_init(x);
    x->loop = c->loop;
    x->version = (uint8_t)c->proto->version;
    x->began = ebb__now(c->loop->rt);
    ebb__exchange_link(x, c);
    return x;
}

void ebb__exchange_link(ebb_http *x, ebb__conn *c) {
    x->conn = c;
    x->prev = NULL;
    x->next = c->first;
    if (c->first != NULL) c->first->prev = x;
    c->first = x;
    c->open++;
    if (x->client && ebb__is_recorded(c->loop->rt)) ebb__note_exchange_begun(x);
    if (c->slots++ == 0 && c->server != NULL) ebb__server_idle(c, false);
}

void ebb__exchange_unlink(ebb_http *x) {
    ebb__conn *c = x->conn;
    if (c == NULL) return;
    if (x->number != 0) ebb__note_exchange_ended(x);
    x->conn = NULL;
    if (x->prev != NULL) x->prev->next = x->next;
    else c->first = x->next;
    if (x->next != NULL) x->next->prev = x->prev;
    c->slots--;
    if (!ebb__exchange_is_gone(x)) c->open--;
}

void ebb__exchange_free(ebb_http *x) {
    ebb__conn *c = x->conn;
    assert(x->fresh_at == NULL);
    ebb__exchange_unlink(x);
    release(x, c->server, &c->allocator);
    ebb__conn_freed(c);
}

/* ---- the head ----------------------------------------------------------------------------------------------- */

static const char *copy(ebb_http *x, const char *from, size_t n) {
    char *at = ebb__arena_alloc(&x->arena, n + 1);
    if (at == NULL) {
        x->too_large = true;
        return "";
    }
    memcpy(at, from, n);
    at[n] = 0;
    return at;
}

static void set_path(ebb_http *x, const char *value, size_t n) {
    char *at = (char *)(uintptr_t)copy(x, value, n); /* ours, and not shared yet */
    x->path = at;
    x->path_n = (uint32_t)(x->too_large ? 0 : n);
    char *mark = memchr(at, '?', x->path_n);
    if (mark == NULL) return;
    *mark = 0;
    x->query = mark + 1;
    x->path_n = (uint32_t)(mark - at);
}

static void pseudo_field(ebb_http *x, const char *name, size_t name_n, const char *value, size_t value_n) {
    uint64_t status;
    if (name_n == 7 && name[1] == 'm')
        x->method = value_n == 3 && memcmp(value, "GET", 3) == 0 ? "GET" : copy(x, value, value_n);
    else if (name_n == 5) set_path(x, value, value_n);
    else if (name_n == 10) x->authority = copy(x, value, value_n);
    else if (name_n == 7 && name[1] == 's' && name[2] == 't' && ebb__parse_u64(value, value_n, &status))
        x->status = (int16_t)(status < 1000 ? status : 0);
}

bool ebb__exchange_field(ebb_http *x, const char *name, size_t name_n, const char *value, size_t value_n) {
    const ebb__bounds *bounds = ebb__conn_bounds(x->conn);
    ebb__fields *f = x->in == EBB__IN_HEAD ? &x->fields : &x->trailers;
    uint64_t bytes = (uint64_t)x->fields.bytes + x->trailers.bytes + name_n + value_n + EBB__FIELD_EXTRA;
    bool pseudo = name_n > 0 && name[0] == ':';
    bool fits =
        bytes <= bounds->header_bytes && x->fields.n + x->trailers.n + (pseudo ? 0u : 1u) <= bounds->headers;
    x->excess += fits ? 0 : bytes - x->fields.bytes - x->trailers.bytes;
    if (!fits) x->too_large = true;
    if (x->too_large) return x->excess <= (uint64_t)EXCESS * bounds->header_bytes;
    if (pseudo) {
        f->bytes += (uint32_t)(name_n + value_n + EBB__FIELD_EXTRA);
        pseudo_field(x, name, name_n, value, value_n);
    } else if (ebb__fields_add(f, &x->arena, name, name_n, value, value_n) != EBB_OK) {
        x->too_large = true;
    }
    return true;
}

/* Reads the fields that have a meaning for this layer. */
static void look_at_head(ebb_http *x) {
    uint64_t ms;
    const ebb__field *f = ebb__fields_find(&x->fields, "ebb-deadline-ms", 15);
    if (f != NULL && ebb__parse_u64(f->value, f->value_n, &ms) && ms < EBB_FOREVER / EBB_MS / 2) {
        x->deadline = x->began + ms * EBB_MS;
        if (x->deadline == 0) x->deadline = 1;
    }
    f = ebb__fields_find(&x->fields, "expect", 6);
    x->expects = f != NULL && ebb__same_name(f->value, f->value_n, "100-continue", 12);
    if (x->authority[0] == 0 && (f = ebb__fields_find(&x->fields, "host", 4)) != NULL)
        x->authority = f->value;
}

void ebb__exchange_head(ebb_http *x, bool ended) {
    ebb__conn *c = x->conn;
    ebb__in_step(x, EBB__IN_GETS_HEAD);
    if (x->client) {
        ebb__client_answered(x);
    } else {
        look_at_head(x);
        x->head = strcmp(x->method, "HEAD") == 0;
        ebb__work_step(x, EBB__WORK_QUEUES);
        x->waits = NULL;
        *c->starts_last = x;
        c->starts_last = &x->waits;
    }
    if (ended) ebb__exchange_in_end(x, EBB_ERR_EOF);
}

/* ---- receiving a body --------------------------------------------------------------------------------------- */

/* Rejects a future as cancelled: no callback for success or failure runs. */
static void abandon(ebb_http *x, ebb_future **f) {
    ebb_future *of = *f;
    *f = NULL;
    if (of != NULL) ebb__reject(x->loop, of, EBB_CANCELLED);
}

static void reader_gets(ebb_http *x, size_t n) {
    ebb_future *f = x->reader;
    x->reader = NULL;
    ebb__pacing_came(x, 0);
    (void)ebb__settle(x->loop, f, ebb_value_int((int64_t)n));
}

static void consumed(ebb_http *x, size_t n) {
    if (!ebb__exchange_is_gone(x) && n > 0) x->conn->proto->consumed(x, n);
}

/* The future of the reader or the writer, unless it was cancelled. Then its buffer must not be used any more, whether
 * its cancel hook has run or not. */
static ebb_future *wanted(ebb_http *x, ebb_future **f) {
    ebb_future *of = *f;
    if (of == NULL || ebb__is_wanted(of)) return of;
    *f = NULL;
    ebb__reject(x->loop, of, EBB_CANCELLED);
    return NULL;
}

/* Takes bytes out of the ring. */
static size_t ring_take(ebb_http *x, uint8_t *to, size_t room) {
    size_t all = 0;
    while (room > 0 && x->body_n > 0) {
        size_t n = x->body_room - x->body_at;
        if (n > x->body_n) n = x->body_n;
        if (n > room) n = room;
        memcpy(to + all, x->body + x->body_at, n);
        x->body_at = (uint32_t)((x->body_at + n) % x->body_room);
        x->body_n -= (uint32_t)n;
        room -= n;
        all += n;
    }
    return all;
}

static bool ring_grow(ebb_http *x, size_t need) {
    size_t room = x->body_room == 0 ? BODY_LEAST : x->body_room;
    while (room < need) room *= 2;
    if (room > BODY_MOST) return false;
    if (room == x->body_room) return true;
    uint8_t *at = ebb__alloc(&x->arena.allocator, room);
    if (at == NULL) return false;
    uint32_t n = x->body_n;
    (void)ring_take(x, at, n);
    ebb__free(&x->arena.allocator, x->body, x->body_room);
    x->body = at;
    x->body_at = 0;
    x->body_n = n;
    x->body_room = (uint32_t)room;
    return true;
}

static bool ring_put(ebb_http *x, const uint8_t *from, size_t n) {
    if (!ring_grow(x, x->body_n + n)) return false;
    while (n > 0) {
        uint32_t at = (x->body_at + x->body_n) % x->body_room;
        size_t k = x->body_room - at < n ? x->body_room - at : n;
        memcpy(x->body + at, from, k);
        x->body_n += (uint32_t)k;
        from += k;
        n -= k;
    }
    return true;
}

/* Bytes go to the reader first; the others are kept in the ring. */
bool ebb__exchange_body(ebb_http *x, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    if (x->in != EBB__IN_BODY) { /* nobody will read it */
        consumed(x, n);
        x->dropped += x->sent == EBB__SENT_ALL ? n : 0;
        return x->dropped <= DROPPED_MOST;
    }
    x->in_bytes += n;
    x->conn->bodies += n;
    bool read = wanted(x, &x->reader) != NULL; /* the clock stands still if nobody reads */
    ebb__pacing_came(x, n);
    if (!x->client && x->in_bytes > ebb__conn_bounds(x->conn)->body_bytes) {
        ebb__exchange_in_end(x, EBB_ERR_LIMIT);
        ebb__exchange_refuse(x, 413);
        consumed(x, n);
        return true;
    }
    if (read && x->whole_reads) {
        if (ebb__whole_add(x, from, n)) {
            consumed(x, n);
            n = 0;
        }
    } else if (read && x->body_n == 0) {
        size_t k = n < x->into_n ? n : x->into_n;
        if (from != x->into) memcpy(x->into, from, k);
        reader_gets(x, k);
        consumed(x, k);
        from += k;
        n -= k;
    }
    if (n > 0 && !ring_put(x, from, n)) {
        consumed(x, n);
        return false;
    }
    if (x->client) ebb__client_body(x);
    return true;
}

uint8_t *ebb__exchange_place(const ebb_http *x, size_t *n) {
    if (x->in != EBB__IN_BODY || x->body_n > 0 || x->reader == NULL || x->whole_reads) return NULL;
    if (!ebb__is_wanted(x->reader)) return NULL;
    *n = x->into_n;
    return x->into;
}

void ebb__exchange_in_end(ebb_http *x, ebb_status st) {
    if (x->in == EBB__IN_ENDED) return;
    ebb__in_step(x, EBB__IN_ENDS);
    if (st == EBB_ERR_EOF && x->too_large && !x->client) { /* because of its trailers, if not before */
        st = EBB_ERR_LIMIT;
        ebb__exchange_refuse(x, 431);
    }
    x->in_status = st;
    if (x->reader != NULL && x->body_n == 0) {
        ebb_future *f = x->reader;
        x->reader = NULL;
        ebb__pacing_came(x, 0);
        if (x->whole_reads && st == EBB_ERR_EOF) (void)ebb__settle(x->loop, f, ebb__whole_end(x));
        else ebb__reject(x->loop, f, st);
    }
    if (x->client) ebb__client_body(x);
}

static void read_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb_http *x = arg;
    (void)cx;
    assert(x->reader == f);
    (void)f;
    (void)wanted(x, &x->reader);
    ebb__pacing_came(x, 0);
}

static const ebb_operation read_op = {"http read", read_cancel, NULL};

/* The first read asks the peer for a body that it holds back. */
void ebb__exchange_waits(ebb_http *x) {
    ebb__pacing_reads(x);
    if (!x->expects) return;
    x->expects = false;
    x->conn->proto->go_on(x);
}

ebb_status ebb__exchange_may_read(ebb_http *x) {
    if (wanted(x, &x->reader) != NULL) return EBB_ERR_BUSY;
    if (ebb__exchange_is_lost(x)) return EBB_ERR_CLOSED;
    if (x->body_n == 0 && x->in == EBB__IN_ENDED) return x->in_status;
    return EBB_OK;
}

size_t ebb__exchange_read(ebb_http *x, uint8_t *to, size_t room) {
    size_t n = ring_take(x, to, room);
    consumed(x, n);
    return n;
}

ebb_future *ebb_http_read_site(ebb_cx *cx, ebb_http *x, void *into, size_t n, const char *site) {
    ebb_future *f;
    ebb_status st = into == NULL || n == 0 || n > INT64_MAX ? EBB_ERR_INVALID : ebb__exchange_may_read(x);
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    if (x->body_n > 0) {
        f = ebb__begin_now(cx, site, &f);
        if (f == NULL) return ebb__loop_failed(cx, EBB_ERR_NOMEM, site);
        size_t k = ebb__exchange_read(x, into, n);
        return ebb__end_now(f, EBB_OK, ebb_value_int((int64_t)k));
    }
    x->reader = ebb__begin(x->loop, cx, &read_op, x, site, &f);
    if (x->reader == NULL) return f;
    f = x->reader;
    x->whole_reads = false;
    x->into = into;
    x->into_n = n;
    ebb__exchange_waits(x);
    return f;
}

/* ---- sending a body ----------------------------------------------------------------------------------------- */

/* A write that fits on the stage ends at once, and its handler continues in the same turn. So a body that is written
 * in small pieces is sent in large ones, and a piece costs no turn of the loop. A connection has one stage, of at most
 * 3/4 of limits.write_bytes: a full stage fits into one write to the socket, with its frames.
 *
 * The write that completes a body of known length may fill the stage up to 15/16. If another exchange has the stage,
 * it gets a small one of its own. So the handler returns in the same turn, and the end of the stream is sent with the
 * last bytes. Otherwise the end would cost a frame, a turn and a write to the socket. */
static size_t stage_room(const ebb_http *x, bool last) {
    size_t most = x->conn->server->limits.write_bytes;
    return (last ? most / 16 * 15 : most / 4 * 3) - STAGE_FRAMES;
}

static void stage_new(ebb_http *x, size_t room, bool shared) {
    x->stage = ebb__alloc(&x->conn->allocator, room);
    if (x->stage == NULL) return;
    x->stage_n = room;
    if (shared) x->conn->stager = x;
    x->from = x->stage;
}

static void stage_free(ebb_http *x) {
    if (x->stage == NULL) return;
    ebb__free(&x->conn->allocator, x->stage, x->stage_n);
    x->stage = NULL;
    if (x->conn->stager == x) x->conn->stager = NULL;
}

/* Large writes are sent from the caller's buffer. */
static bool may_stage(const ebb_http *x, size_t n, bool small) {
    if (x->client || x->conn == NULL || (x->from_n > 0 && x->stage == NULL)) return false;
    const ebb__conn *c = x->conn;
    if (x->stage != NULL) return true;
    return (small || (c->stager == NULL && n < stage_room(x, false))) &&
           !ebb__server_is_short(c->server, STAGE_EIGHTHS);
}

/* Returns how many of the n bytes are on the stage now. */
static size_t stage_put(ebb_http *x, const void *from, size_t n) {
    bool last = x->out_sized && n == x->out_size - x->written, small = last && n <= LAST_MOST;
    if (!may_stage(x, n, small)) return 0;
    if (x->stage == NULL) stage_new(x, small ? n : stage_room(x, true), !small);
    if (x->stage == NULL) return 0;
    uint8_t *to = x->stage + (x->from - x->stage) + x->from_n;
    size_t used = (size_t)(to - x->stage), most = small ? x->stage_n : stage_room(x, false);
    size_t left = used < most ? most - used : 0;
    if (n > left) n = left;
    memcpy(to, from, n);
    x->from_n += n;
    return n;
}

/* The unsent bytes of a cancelled write are dropped: the body is cut. */
static void drop_write(ebb_http *x) {
    x->behind_n = 0;
    if (x->out != EBB__OUT_RESETS) ebb__out_step(x, EBB__OUT_IS_CUT);
    if (x->stage != NULL) return;
    x->from_n = 0;
    ebb__pacing_cut(x);
}

bool ebb__exchange_is_abandoned(const ebb_http *x) {
    return x->work == EBB__WORK_RUNNING && ebb__task_cx(x->loop->rt, x->task, NULL) == NULL;
}

ebb_future *ebb__exchange_writer(ebb_http *x) {
    bool there = x->writer != NULL, abandoned = there && ebb__exchange_is_abandoned(x);
    bool last = x->out == EBB__OUT_LAST || abandoned;
    if (abandoned) abandon(x, &x->writer); /* its bytes may have been on the stack */
    if (wanted(x, &x->writer) != NULL || !there) return x->writer;
    drop_write(x);
    if (last && !ebb__exchange_is_gone(x)) x->conn->proto->reset(x, EBB__INTERNAL_ERROR);
    return NULL;
}

void ebb__exchange_cut(ebb_http *x) {
    ebb_future *f = ebb__exchange_writer(x);
    if (f == NULL) return;
    x->writer = NULL;
    drop_write(x);
    ebb__reject(x->loop, f, EBB_CANCELLED);
}

size_t ebb__exchange_ready(ebb_http *x, bool *ended) {
    *ended = false;
    if (x->client && x->writer == NULL && !ebb__client_wants(x)) return 0;
    (void)ebb__exchange_writer(x);
    *ended = x->out == EBB__OUT_ENDED;
    return x->from_n;
}

static void writer_done(ebb_http *x) {
    ebb_future *f = x->writer;
    if (f == NULL || x->from_n > 0) return;
    x->writer = NULL;
    x->conn->settled++;
    (void)ebb__settle(x->loop, f, ebb_value_int((int64_t)x->writer_n));
}

void ebb__exchange_reset(ebb_http *x) {
    ebb__out_step(x, x->stage != NULL ? EBB__OUT_RESETS_LATER : EBB__OUT_IS_CUT);
    if (x->stage == NULL) x->conn->proto->reset(x, EBB__INTERNAL_ERROR);
}

/* The writer's bytes follow the stage. */
static void stage_ends(ebb_http *x) {
    if (x->stage == NULL || x->from_n > 0) return;
    stage_free(x);
    if (x->out == EBB__OUT_RESETS) {
        ebb__out_step(x, EBB__OUT_IS_STAGED);
        x->conn->proto->reset(x, EBB__INTERNAL_ERROR);
    }
    x->from = x->behind;
    x->from_n = x->behind_n;
    x->behind_n = 0;
}

static size_t take_bytes(ebb_http *x, uint8_t *to, size_t room) {
    size_t all = 0;
    while (room > all && x->from_n > 0) {
        size_t n = x->from_n < room - all ? x->from_n : room - all;
        memcpy(to + all, x->from, n);
        x->from += n;
        x->from_n -= n;
        all += n;
        stage_ends(x);
    }
    return all;
}

size_t ebb__exchange_take(ebb_http *x, uint8_t *to, size_t room, bool *ended) {
    (void)ebb__exchange_ready(x, ended);
    if (x->client && x->writer == NULL && !ebb__client_wants(x)) return 0;
    size_t n = take_bytes(x, to, room);
    x->out_bytes += n;
    if (x->from_n == 0 && x->out == EBB__OUT_LAST) ebb__out_step(x, EBB__OUT_ENDS);
    *ended = x->from_n == 0 && x->out == EBB__OUT_ENDED;
    ebb__pacing_took(x, n);
    writer_done(x);
    return n;
}

/* There are bytes to send, or the end: the clock for the peer starts. */
void ebb__exchange_more(ebb_http *x) {
    ebb__pacing_ready(x);
    x->conn->proto->more(x);
    ebb__conn_touch(x->conn);
}

/* A client's exchange that waits for a connection has no protocol yet. */
static void send_more(ebb_http *x) {
    if (x->conn != NULL) ebb__exchange_more(x);
}

static void write_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    ebb_http *x = arg;
    (void)cx;
    assert(x->writer == f);
    (void)f;
    (void)ebb__exchange_writer(x);
}

static const ebb_operation write_op = {"http write", write_cancel, NULL};

/* A handler may not write any more once the region of its exchange is cancelled. */
static bool is_taken_away(const ebb_http *x) {
    return ebb__exchange_has_region(x) && ebb__region_is_cancelled(x->loop->rt, x->region);
}

bool ebb__exchange_is_writable(const ebb_http *x) {
    return !ebb__exchange_is_gone(x) && !is_taken_away(x);
}

/* A response without a body may end before its handler does. */
static bool has_ended_early(const ebb_http *x) {
    return x->stream_state == EBB__STREAM_ENDED && x->bodyless && !is_taken_away(x);
}

static bool may_write(const ebb_http *x) {
    if (x->out != EBB__OUT_OPEN && x->out != EBB__OUT_LAST) return false;
    return ebb__exchange_is_writable(x) || has_ended_early(x);
}

/* The future is made first: without memory for it nothing is written. */
static ebb_future *write_bytes(ebb_cx *cx, ebb_http *x, const uint8_t *from, size_t n, const char *site) {
    ebb_future *failed, *f = ebb__begin_now(cx, site, &failed);
    if (f == NULL) return failed;
    size_t staged = stage_put(x, from, n);
    x->written += n;
    if (staged < n) {
        ebb__end_later(x->loop, f, &write_op, x);
        x->writer = f;
        x->writer_n = n;
        *(x->stage != NULL ? &x->behind : &x->from) = from + staged;
        *(x->stage != NULL ? &x->behind_n : &x->from_n) = n - staged;
    }
    send_more(x);
    return staged == n ? ebb__end_now(f, EBB_OK, ebb_value_int((int64_t)n)) : f;
}

ebb_future *ebb_http_write_site(ebb_cx *cx, ebb_http *x, const void *from, size_t n, const char *site) {
    ebb_future *f;
    ebb_status st = (from == NULL && n > 0) || n > INT64_MAX ? EBB_ERR_INVALID : EBB_OK;
    if (st == EBB_OK && ebb__exchange_writer(x) != NULL) st = EBB_ERR_BUSY;
    if (st == EBB_OK && ebb__exchange_is_writable(x)) st = ebb__admit_operation(cx);
    if (st == EBB_OK && !x->client && x->out == EBB__OUT_NONE) st = ebb_http_start(cx, x, 200);
    if (st == EBB_OK && !may_write(x)) st = EBB_ERR_CLOSED;
    if (st == EBB_OK && x->out_sized && n > x->out_size - x->written) st = EBB_ERR_LIMIT;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    if (n == 0 || x->bodyless) { /* no byte of it is ever sent */
        f = ebb__begin_now(cx, site, &f);
        return f == NULL ? ebb__loop_failed(cx, EBB_ERR_NOMEM, site)
                         : ebb__end_now(f, EBB_OK, ebb_value_int((int64_t)n));
    }
    return write_bytes(cx, x, from, n, site);
}

ebb_status ebb_http_end(ebb_cx *cx, ebb_http *x) {
    (void)cx;
    if (has_ended_early(x)) return EBB_OK;
    if (!ebb__exchange_is_writable(x)) return EBB_ERR_CLOSED;
    if (x->out == EBB__OUT_NONE) return EBB_ERR_INVALID;
    if (x->out == EBB__OUT_ENDED || ebb__exchange_writer(x) != NULL) return EBB_ERR_BUSY;
    bool cut = ebb__exchange_is_cut(x) || (x->out_sized && !x->bodyless && x->written < x->out_size);
    if (cut && x->conn != NULL) ebb__exchange_reset(x);
    else if (cut) ebb__out_step(x, EBB__OUT_IS_CUT);
    if (cut) return EBB_ERR_CLOSED;
    ebb__out_step(x, EBB__OUT_ENDS);
    send_more(x);
    return EBB_OK;
}

static void writer_fails(ebb_http *x, ebb_status st) {
    ebb_future *f = x->writer;
    x->from_n = x->behind_n = 0;
    x->writer = NULL;
    if (f != NULL) ebb__reject(x->loop, f, st);
}

void ebb__exchange_end_waits(ebb_http *x, ebb_status st) {
    ebb__exchange_in_end(x, st);
    writer_fails(x, st);
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

void ebb__exchange_gone(ebb_http *x, ebb_status st, ebb_cancel_kind kind, const char *message) {
    ebb__conn *c = x->conn;
    if (x->client && c != NULL && ebb__client_resends(x, &st)) return;
    ebb__stream_step(x, st == EBB_OK ? EBB__STREAM_ENDS : EBB__STREAM_BREAKS);
    if (c != NULL && c->open == 0) c->raw.bulk = false; /* the next bytes are a head */
    ebb__pacing_end(x);
    if (!x->client && st != EBB_OK) { /* the handler is cancelled, and with it its reads and writes */
        abandon(x, &x->reader);
        abandon(x, &x->writer);
    }
    ebb__exchange_in_end(x, st == EBB_OK ? EBB_ERR_CLOSED : st);
    stage_free(x);
    writer_fails(x, st == EBB_OK ? EBB_ERR_CLOSED : st);
    if (x->client) {
        ebb__exchange_unlink(x);
        ebb__client_gone(x, st);
        if (c != NULL) ebb__conn_freed(c);
    } else {
        ebb__serve_gone(x, kind, message);
    }
}
