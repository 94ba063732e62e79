/* Servers: creation and end, the acceptor, memory and counters. */
#define _POSIX_C_SOURCE 200809L
#include "http/http.h"

#include "base/alloc.h"
#include "base/opts.h"
#include "fiber/fiber.h"
#include "http/capacity.h"
#include "loop/listen_address.h"
#include "loop/stream.h"

enum {
    IDLE_LEAST_MS = 1000,
    LOOK_MS = 100,
    WRITE_LEAST = 17408,
    WRITE_MOST = 65536,
    MEMORY_LEAST = 1 << 20,
    EVICT = 16,
    CROWD = 1024,
    CROWD_MS = 1000
};

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* Counts allocations, and fails past the limit. Freeing and shrinking always work. */
static void *counted(void *ctx, void *p, size_t old_n, size_t n) {
    ebb_http_server *s = ctx;
    if (n > old_n && ebb__server_memory(s) + (n - old_n) > s->limits.memory_bytes) return NULL;
    void *at = s->inner.fn(s->inner.ctx, p, old_n, n);
    if (at != NULL || n == 0) s->memory = s->memory + n - old_n;
    return at;
}

/* Stacks, kernel records and futures belong to the loop. Memory that these have gained since the server was made
 * counts as the server's. */
uint64_t ebb__server_memory(const ebb_http_server *s) {
    uint64_t shared = ebb__runtime_bytes(s->loop->rt);
    return s->memory + (shared > s->shared_base ? shared - s->shared_base : 0);
}

bool ebb__server_is_short(const ebb_http_server *s, uint32_t eighths) {
    return ebb__server_memory(s) > s->limits.memory_bytes / 8 * eighths;
}

/* OpenSSL's memory can't be counted: a connection is charged what it usually takes. */
bool ebb__server_charge(ebb__conn *c, uint32_t bytes) {
    ebb_http_server *s = c->server;
    if (bytes > c->charged && ebb__server_memory(s) + (bytes - c->charged) > s->limits.memory_bytes)
        return false;
    s->memory = s->memory + bytes - c->charged;
    c->charged = bytes;
    return true;
}

static void free_spares(ebb_http_server *s) {
    while (s->spare != NULL) {
        ebb_http *x = s->spare;
        s->spare = x->next;
        ebb__arena_free(&x->arena);
        ebb__free(&s->allocator, x, sizeof *x);
    }
    s->spares = 0;
}

void ebb__server_shed(ebb_http_server *s) {
    free_spares(s);
    ebb__pool_fini(&s->pool);
    ebb__fibers_trim(s->loop->rt);
}

/* ---- connections -------------------------------------------------------------------------------------------- */

void ebb__server_idle(ebb__conn *c, bool idle) {
    ebb_http_server *s = c->server;
    if (idle) {
        c->idle_since = ebb__now(c->loop->rt);
        bool closing = c->state == EBB__CONN_CLOSING;
        ebb__conn_task_at(c, c->idle_since + (closing ? EBB__NOTICE_MS * EBB_MS : s->limits.idle_ns));
    }
    if (idle == c->idle) return;
    c->idle = idle;
    ebb__conn *prev = idle ? s->idle_last : c->idle_prev, *next = idle ? NULL : c->idle_next;
    c->idle_prev = prev;
    c->idle_next = next;
    if (prev != NULL) prev->idle_next = idle ? c : next;
    else s->idle_first = idle ? c : next;
    if (next != NULL) next->idle_prev = prev;
    else s->idle_last = idle ? c : prev;
}

static void server_free(ebb_http_server *s);

void ebb__server_conn_free(ebb__conn *c) {
    ebb_http_server *s = c->server;
    ebb__note_connection(c, false);
    ebb__server_idle(c, false);
    if (c->prev != NULL) c->prev->next = c->next;
    else s->conns = c->next;
    if (c->next != NULL) c->next->prev = c->prev;
    s->stats.connections--;
    ebb__address_leave(c);
    (void)ebb__server_charge(c, 0);
    ebb__free(&s->allocator, c, sizeof *c);
    if (!s->region_closed)
        (void)ebb_task_wake(ebb_runtime_host(s->loop->rt), s->acceptor); /* there may be room for one more */
    else if (s->conns == NULL) server_free(s);
}

/* Closes at most `most` connections that were idle for more than a moment, the longest idle first. Returns how many. */
static uint32_t make_room(ebb_http_server *s, uint32_t most) {
    uint64_t now = ebb__now(s->loop->rt);
    uint32_t n = 0;
    for (ebb__conn *c = s->idle_first, *next; c != NULL && n < most; c = next, n++) {
        next = c->idle_next;
        if (now - c->idle_since < IDLE_LEAST_MS * EBB_MS) break;
        ebb__server_idle(c, false);
        ebb__conn_drain(c);
    }
    return n;
}

static void conn_region_closed(void *arg, const ebb_region_report *report) {
    ebb__conn *c = arg;
    (void)report;
    ebb__unit_step(c, EBB__UNIT_CLOSES);
    if (!ebb__conn_is_attached(c)) ebb__server_conn_free(c); /* else it was forced, and libuv still uses it */
}

static ebb__conn *conn_new(ebb_http_server *s) {
    ebb__conn *c = ebb__alloc(&s->allocator, sizeof *c);
    if (c == NULL) return NULL;
    memset(c, 0, sizeof *c);
    c->loop = s->loop;
    c->allocator = s->allocator;
    c->server = s;
    c->timer_at = EBB_FOREVER;
    c->overflow = s->stats.connections >= s->limits.connections && make_room(s, 1) == 0;
    c->next = s->conns;
    if (s->conns != NULL) s->conns->prev = c;
    s->conns = c;
    s->stats.connections++;
    ebb__server_idle(c, true);
    return c;
}

/* From here on the region owns the connection. A connection that was established before the server was closed is a
 * part of the acceptor's unit of work, which still admits it. */
static ebb_status conn_region(ebb_cx *acceptor, ebb__conn *c) {
    const ebb_http_server *s = c->server;
    ebb_region_opts opts = {.parent = ebb_stopping(acceptor) ? ebb_cx_region(acceptor) : s->region,
                            .policy = EBB_FAIL_COLLECT,
                            .unit = true,
                            .on_closed = conn_region_closed,
                            .arg = c};
    c->region = ebb__region_open_apart(acceptor, &opts, EBB_SITE);
    if (ebb_id_status(c->region.id) == EBB_OK) ebb__unit_step(c, EBB__UNIT_OPENS);
    return ebb_id_status(c->region.id);
}

static ebb_status conn_begin(ebb_cx *acceptor, ebb__conn *c, ebb_stream stream) {
    ebb_cx *host = ebb_runtime_host(c->loop->rt);
    ebb_http_server *s = c->server;
    ebb_status st = ebb_stream_move(host, stream, c->region);
    if (st == EBB_OK && s->tls != NULL && !ebb__server_charge(c, EBB__TLS_NEW_BYTES)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && s->tls != NULL && (c->tls = ebb__tls_new(s->tls, NULL)) == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__conn_open(c, host, stream);
    if (st == EBB_OK) st = ebb__address_join(c);
    if (st == EBB_OK) c->task = ebb_spawn(acceptor, c->region, ebb__conn_task_poll, c);
    if (st == EBB_OK) st = ebb_id_status(c->task.id);
    if (st == EBB_OK) ebb__conn_task_at(c, c->born + s->limits.header_ns);
    if (st == EBB_OK) ebb__conn_task_at(c, c->born + s->limits.idle_ns);
    if (st == EBB_OK) ebb__server_delay_reads(c);
    return st;
}

/* The system gives the lowest free descriptor: a high one means that most are in use. */
static void make_descriptors(const ebb__conn *c) {
    uv_os_fd_t fd;
    ebb_http_server *s = c->server;
    if (s->loop->os->fileno(&c->raw.handle->uv.any, &fd) != 0 || (uint32_t)fd < s->descriptors) return;
    ebb__address_evict_any(s, EBB__EVICT);
    (void)make_room(s, 1);
}

/* Closes the connection if there is no memory for it. */
void ebb__server_add_connection(ebb_cx *acceptor, ebb_http_server *s, ebb_stream stream) {
    ebb_cx *host = ebb_runtime_host(s->loop->rt);
    ebb__conn *c = conn_new(s);
    s->stats.accepted++;
    if (c == NULL || conn_region(acceptor, c) != EBB_OK) {
        (void)ebb_stream_close(host, stream);
        if (c != NULL) ebb__server_conn_free(c);
        return;
    }
    if (conn_begin(acceptor, c, stream) == EBB_OK) {
        make_descriptors(c);
        return;
    }
    if (c->raw.handle != NULL) {
        ebb__raw_stream_close(&c->raw);
        return;
    }
    ebb__tls_free(c->tls);
    c->tls = NULL;
    (void)ebb_stream_close(host, stream);
    ebb_region_close(host, c->region);
}

/* ---- the acceptor --------------------------------------------------------------------------------------------- */

static bool is_full(const ebb_http_server *s) {
    return s->stats.connections >= (uint64_t)s->limits.connections + s->limits.connections / 8 + 1;
}

/* Waits until a connection is freed, which wakes the acceptor, or the server is closed. */
static ebb_status wait_for_room(ebb_cx *cx, ebb_http_server *s) {
    (void)make_room(s, s->limits.connections / 64 + 1);
    ebb__address_evict_any(s, s->limits.connections / 64 + 1);
    if (ebb_now(cx) >= s->look_at) {
        s->look_at = ebb_now(cx) + LOOK_MS * EBB_MS;
        (void)ebb_timer_arm(cx, s->acceptor, s->look_at);
    }
    if (s->closing == NULL) s->closing = ebb_closing(cx);
    ebb_status st = ebb_await(cx, s->closing, NULL);
    if (st != EBB_PENDING) s->closing = NULL;
    return st == EBB_OK ? EBB_ERR_CLOSED : st;
}

/* Counts an exchange. After a crowd the acceptor checks once a second whether it has gone. */
void ebb__server_crowd(ebb_http_server *s) {
    if (++s->stats.exchanges <= s->crowd) return;
    s->crowd = s->stats.exchanges;
    if (s->crowd < CROWD || s->trim_at != 0) return;
    s->trim_at = ebb__now(s->loop->rt) + CROWD_MS * EBB_MS;
    (void)ebb_timer_arm(ebb_runtime_host(s->loop->rt), s->acceptor, s->trim_at);
}

/* Frees the memory that was kept for a crowd once a second has passed without one. */
static void give_back(ebb_cx *cx, ebb_http_server *s) {
    if (s->trim_at == 0 || ebb_now(cx) < s->trim_at) return;
    bool crowded = s->crowd >= CROWD;
    s->crowd = s->stats.exchanges;
    s->trim_at = crowded ? ebb_now(cx) + CROWD_MS * EBB_MS : 0;
    if (crowded) {
        (void)ebb_timer_arm(cx, s->acceptor, s->trim_at);
        return;
    }
    ebb__server_shed(s);
    ebb__room_give_back();
}

/* The accept failed, most likely for lack of memory, which others may free. Without memory for a timer, retries in the
 * next turn. */
static ebb_status pause_acceptor(ebb_cx *cx, ebb_http_server *s) {
    ebb_status st = ebb_sleep(cx, &s->nap, 100 * EBB_MS);
    if (st == EBB_ERR_NOMEM) {
        (void)ebb_task_wake(ebb_runtime_host(s->loop->rt), s->acceptor);
        return EBB_PENDING;
    }
    if (st != EBB_PENDING) s->napping = false;
    return st;
}

/* Waits for room, and then for a connection. */
static ebb_status next_connection(ebb_cx *cx, ebb_http_server *s, ebb_value *v) {
    if (s->accepting == NULL && !s->draining) {
        if (ebb__server_is_short(s, 6)) {
            ebb__server_shed(s);
            (void)make_room(s, 1);
        }
        /* Without a connection, no memory of the server would be freed. */
        bool wait = is_full(s) || (ebb__server_is_short(s, 7) && s->conns != NULL);
        if (wait && wait_for_room(cx, s) == EBB_PENDING) return EBB_PENDING;
    }
    if (s->accepting == NULL) s->accepting = ebb_listener_accept(cx, s->listener);
    ebb_status st = ebb_await(cx, s->accepting, v);
    if (st != EBB_PENDING) s->accepting = NULL;
    return st;
}

/* After a close, connections that clients have established before are still served. */
static ebb_status acceptor_poll(ebb_cx *cx, void *arg) {
    ebb_http_server *s = arg;
    give_back(cx, s);
    for (;;) {
        ebb_value v;
        ebb_status st = s->napping ? pause_acceptor(cx, s) : EBB_OK;
        if (st != EBB_PENDING) st = next_connection(cx, s, &v);
        if (st == EBB_PENDING) return st;
        if (st == EBB_OK) ebb__server_add_connection(cx, s, ebb_stream_of(v));
        else if (st == EBB_CANCELLED || (st == EBB_ERR_CLOSED && s->draining)) break;
        else if (st == EBB_ERR_CLOSED) s->draining = ebb_listener_drain(cx, s->listener) == EBB_OK;
        else s->napping = true;
        if (s->napping) ebb__address_evict_any(s, EBB__EVICT);
        if (st == EBB_ERR_CLOSED && !s->draining) break;
    }
    (void)ebb_listener_close(cx, s->listener);
    return EBB_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void server_free(ebb_http_server *s) {
    ebb_allocator a = s->inner;
    ebb__counters_remove(&s->counters);
    free_spares(s);
    ebb__routes_free(s->routes);
    ebb__tls_ctx_free(s->tls);
    ebb__pool_fini(&s->pool);
    ebb__free(&a, s, sizeof *s);
}

static void server_closed(void *arg, const ebb_region_report *report) {
    ebb_http_server *s = arg;
    (void)report;
    s->region_closed = true;
    if (s->conns == NULL) server_free(s);
}

#define DEFAULT(field, value)                                                                                \
    if (l->field == 0) l->field = (value)

/* So that no sum with a time overflows. */
static void cap(uint64_t *span) {
    if (*span > EBB_FOREVER / 4) *span = EBB_FOREVER / 4;
}

static void set_defaults(ebb_http_limits *l, uint32_t descriptors) {
    ebb__room_for_descriptors(l, descriptors);
    DEFAULT(streams, 100);
    DEFAULT(requests, 1u << 30);
    DEFAULT(headers, 100);
    DEFAULT(header_bytes, 16384);
    DEFAULT(block_bytes, 32768);
    DEFAULT(body_bytes, 16u << 20);
    DEFAULT(write_bytes, WRITE_MOST);
    if (l->write_bytes < WRITE_LEAST) l->write_bytes = WRITE_LEAST;
    if (l->write_bytes > WRITE_MOST) l->write_bytes = WRITE_MOST;
    DEFAULT(memory_bytes, 512u << 20);
    DEFAULT(idle_ns, 60 * EBB_SECOND);
    DEFAULT(header_ns, 10 * EBB_SECOND);
    DEFAULT(body_ns, 30 * EBB_SECOND);
    DEFAULT(write_ns, 30 * EBB_SECOND);
    DEFAULT(body_rate, 500);
    DEFAULT(write_rate, 500);
    cap(&l->idle_ns);
    cap(&l->header_ns);
    cap(&l->body_ns);
    cap(&l->write_ns);
    DEFAULT(resets, 200);
    DEFAULT(resets_second, 50);
    DEFAULT(frames, 250);
    DEFAULT(frames_second, 200);
}

static void look(const ebb__counters *c, char *name, size_t room,
                 void (*put)(void *ctx, const char *counter, uint64_t value), void *ctx) {
    const ebb_http_server *s =
        (const ebb_http_server *)(const void *)((const char *)c - offsetof(ebb_http_server, counters));
    ebb_http_server_stats now;
    ebb_http_server_stats_of(s, &now);
    snprintf(name, room, strchr(s->address.ip, ':') != NULL ? "[%s]:%u" : "%s:%u", s->address.ip,
             s->address.port);
    put(ctx, "connections", now.connections);
    put(ctx, "exchanges", now.exchanges);
    put(ctx, "memory", now.memory);
    put(ctx, "accepted", now.accepted);
    put(ctx, "requests", now.requests);
    put(ctx, "answered_2xx", now.answered[2]);
    put(ctx, "answered_4xx", now.answered[4]);
    put(ctx, "answered_5xx", now.answered[5]);
    put(ctx, "unanswered", now.answered[0]);
    put(ctx, "cancelled", now.cancelled);
    put(ctx, "refused", now.refused);
    put(ctx, "rate_limited", now.rate_limited);
    put(ctx, "timed_out", now.timed_out);
    put(ctx, "evicted", now.evicted);
    put(ctx, "bytes_in", now.bytes_in);
    put(ctx, "bytes_out", now.bytes_out);
    put(ctx, "bad_traces", now.bad_traces);
}

static ebb_http_server *server_new(ebb_loop *l, const ebb_http_server_opts *opts) {
    ebb_http_server *s = ebb__alloc(&l->allocator, sizeof *s);
    if (s == NULL) return NULL;
    memset(s, 0, sizeof *s);
    s->loop = l;
    s->counters = (ebb__counters){.what = "http server", .look = look};
    s->inner = l->allocator;
    ebb__pool_init(&s->pool, (ebb_allocator){counted, s});
    s->allocator = ebb__pool_allocator(&s->pool);
    s->limits = opts->limits;
    s->descriptors = ebb__room_descriptors(l->os->descriptors());
    set_defaults(&s->limits, s->descriptors / (l->share != NULL ? l->share->loops : 1));
    if (s->limits.memory_bytes / 16 < s->pool.keep_large) s->pool.keep_large = s->limits.memory_bytes / 16;
    s->shared_base = ebb__runtime_bytes(l->rt);
    s->bounds = (ebb__bounds){s->limits.headers, s->limits.header_bytes, s->limits.body_bytes};
    s->access = opts->access;
    s->ctx = opts->ctx;
    l->os->random(s->rate_limits.key, sizeof s->rate_limits.key);
    return s;
}

/* The server's region closes the listener. */
static ebb_status listen_in(ebb_cx *cx, ebb_http_server *s, const ebb_address *address) {
    ebb__handle *h;
    s->listener = ebb_tcp_listen(cx, address);
    ebb_status st = ebb_listener_address(cx, s->listener, &s->address);
    if (st != EBB_OK) return st;
    st = ebb__handle_find(cx, s->listener.id, EBB__TCP_LISTENER, EBB__TCP_LISTENER, &h);
    if (st == EBB_OK) st = ebb__handle_move(h, s->region);
    if (st != EBB_OK) (void)ebb_listener_close(cx, s->listener);
    return st;
}

/* From here on the region frees the server. */
static ebb_status open_region(ebb_cx *cx, ebb_http_server *s) {
    ebb_region_opts opts = {
        .parent = ebb_cx_region(cx), .policy = EBB_FAIL_COLLECT, .on_closed = server_closed, .arg = s};
    s->region = ebb__region_open_apart(cx, &opts, EBB_SITE);
    return ebb_id_status(s->region.id);
}

static ebb_status open_acceptor(ebb_cx *cx, ebb_http_server *s, const ebb_address *address) {
    ebb_status st = listen_in(cx, s, address);
    if (st != EBB_OK) return st;
    ebb_cx *host = ebb_runtime_host(s->loop->rt);
    ebb_region_opts unit = {.parent = s->region, .policy = EBB_FAIL_COLLECT, .unit = true};
    ebb_region r = ebb_region_open(host, &unit);
    if (ebb_id_status(r.id) != EBB_OK) return ebb_id_status(r.id);
    s->acceptor = ebb_spawn(host, r, acceptor_poll, s);
    return ebb_id_status(s->acceptor.id);
}

static ebb_status check_limits(const ebb_http_limits *l) {
    if (l->memory_bytes == 0 || l->memory_bytes >= MEMORY_LEAST) return EBB_OK;
    ebb__http_say("limits.memory_bytes is %llu, which is less than %d", (unsigned long long)l->memory_bytes,
                  MEMORY_LEAST);
    return EBB_ERR_INVALID;
}

ebb_status ebb_http_listen(ebb_cx *cx, const ebb_http_server_opts *opts, ebb_http_server **out) {
    ebb_http_server_opts o;
    ebb_loop *l;
    *out = NULL;
    if (opts == NULL) return EBB_ERR_INVALID;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK) st = ebb__loop_of(cx, &l);
    if (st == EBB_OK) st = ebb__admit_inbound(cx);
    if (st == EBB_OK) st = check_limits(&o.limits);
    if (st != EBB_OK) return st;
    ebb_http_server *s = server_new(l, &o);
    if (s == NULL) return EBB_ERR_NOMEM;
    s->routes = ebb__routes_new(s->allocator);
    if (s->routes == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && o.tls != NULL) st = ebb__tls_ctx_new(s->inner, o.tls, true, &s->tls);
    if (st == EBB_OK) st = open_region(cx, s);
    if (st != EBB_OK) {
        server_free(s);
        return st;
    }
    st = open_acceptor(cx, s, &o.address);
    if (st == EBB_OK) ebb__counters_add(l, &s->counters);
    if (st == EBB_OK) *out = s;
    else ebb_region_cancel(cx, s->region, EBB_CANCEL_USER, "the server could not listen");
    return st;
}

ebb_region ebb_http_server_region(const ebb_http_server *s) {
    return s->region;
}

ebb_status ebb_http_server_address(ebb_cx *cx, const ebb_http_server *s, ebb_address *out) {
    (void)cx;
    *out = s->address;
    return EBB_OK;
}

void ebb_http_server_stats_of(const ebb_http_server *s, ebb_http_server_stats *out) {
    *out = s->stats;
    out->memory = ebb__server_memory(s);
}

void ebb_http_server_limits_of(const ebb_http_server *s, ebb_http_limits *out) {
    *out = s->limits;
}

/* ---- handlers --------------------------------------------------------------------------------------------------- */

/* A trace names tasks by it, also after the server has gone. */
static const char *site_of(const ebb_http_server *s, const char *method, const char *pattern) {
    size_t n = strlen(method) + strlen(pattern) + 2;
    char *text = ebb__alloc(&s->inner, n);
    if (text == NULL) return NULL;
    snprintf(text, n, "%s %s", method, pattern);
    const char *site = ebb__loop_text(s->loop, text);
    ebb__free(&s->inner, text, n);
    return site;
}

static ebb_status on(ebb_http_server *s, const char *method, const char *pattern, ebb__handler h) {
    if (s == NULL || method == NULL || pattern == NULL || h.as.fn == NULL) return EBB_ERR_INVALID;
    h.site = site_of(s, method, pattern);
    if (h.site == NULL) return EBB_ERR_NOMEM;
    return ebb__routes_add(s->routes, method, pattern, h);
}

ebb_status ebb_http_on(ebb_http_server *s, const char *method, const char *pattern, ebb_http_handler_fn fn,
                       void *arg) {
    return on(s, method, pattern, (ebb__handler){.kind = EBB__FIBER, .as.fn = fn, .arg = arg});
}

ebb_status ebb_http_on_poll(ebb_http_server *s, const char *method, const char *pattern,
                            ebb_http_handler_fn fn, void *arg) {
    return on(s, method, pattern, (ebb__handler){.kind = EBB__POLL, .as.fn = fn, .arg = arg});
}

ebb_status ebb_http_on_future(ebb_http_server *s, const char *method, const char *pattern,
                              ebb_http_future_fn fn, void *arg) {
    return on(s, method, pattern, (ebb__handler){.kind = EBB__FUTURE, .as.future = fn, .arg = arg});
}
