/* A client: its origins, and which call gets which connection. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

#include "base/alloc.h"
#include "base/opts.h"

enum { CONNECTIONS = 8, HEADERS = 100, HEADER_BYTES = 16 * 1024, BODY_BYTES = 16 * 1024 * 1024 };
#define IDLE_NS    (60 * EBB_SECOND)
#define CONNECT_NS (10 * EBB_SECOND)

static ebb__client_conn *client_conn_of(ebb__conn *c) {
    return (ebb__client_conn *)(void *)c;
}

/* ---- idle connections ----------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *uv);

/* libuv's clock is that of the start of its turn: a timer that expires too early is set again. */
static void set_timer(ebb_http_client *c) {
    uint64_t now = ebb__now(c->loop->rt), spent = now - c->oldest->idle_since;
    uint64_t left = spent < c->idle_ns ? c->idle_ns - spent : 0;
    (void)c->loop->os->timer_start(&c->timer, on_timer, left / EBB_MS + (left % EBB_MS != 0), 0);
}

/* A timer that is set expires in time for this connection too: it became idle last. */
static void idle_add(ebb_http_client *c, ebb__client_conn *k) {
    k->idle = true;
    k->idle_since = ebb__now(c->loop->rt);
    k->newer = NULL;
    k->older = c->newest;
    if (c->newest != NULL) c->newest->newer = k;
    else c->oldest = k;
    c->newest = k;
    if (!c->loop->os->is_active((uv_handle_t *)&c->timer)) set_timer(c);
}

static void idle_remove(ebb_http_client *c, ebb__client_conn *k) {
    if (!k->idle) return;
    k->idle = false;
    if (k->older != NULL) k->older->newer = k->newer;
    else c->oldest = k->newer;
    if (k->newer != NULL) k->newer->older = k->older;
    else c->newest = k->older;
}

static void client_conn_end(ebb__client_conn *k) {
    ebb__origin *o = k->conn.origin;
    idle_remove(o->client, k);
    if (k->state == EBB__CLIENT_CONN_ENDED) return;
    o->usable--;
    if (!k->known) o->coming--;
    k->state = EBB__CLIENT_CONN_ENDED;
}

/* Closes the connections whose idle time has passed. */
static void sweep(ebb_http_client *c) {
    uint64_t now = ebb__now(c->loop->rt);
    while (c->oldest != NULL && now - c->oldest->idle_since >= c->idle_ns) {
        ebb__client_conn *k = c->oldest;
        client_conn_end(k);
        ebb__conn_drain(&k->conn);
    }
}

static void on_timer(uv_timer_t *uv) {
    ebb_http_client *c = uv->data;
    (void)ebb_loop_cx(c->loop);
    sweep(c);
    if (c->oldest != NULL) set_timer(c);
}

/* ---- which call gets which connection ------------------------------------------------------------------------- */

/* An HTTP/2 connection takes one call until its peer has sent its limit: more could be refused. */
static bool has_room(const ebb__client_conn *k) {
    const ebb__conn *c = &k->conn;
    if (k->state != EBB__CLIENT_CONN_READY || c->state != EBB__CONN_OPEN) return false;
    return k->known && c->proto->version >= 20 ? ebb__h2_client_room(c) > 0 : c->slots == 0;
}

/* The peer has closed an idle connection, and libuv has not reported that yet: a request would be lost. Or it is
 * HTTP/1, and unrequested bytes were received: they would be taken for the answer. */
static bool is_stale(const ebb__client_conn *k) {
    if (!k->idle) return false;
    const ebb__handle *h = k->conn.raw.handle;
    int n = h->loop->os->peek(&h->uv.stream);
    if (n > 0) return k->conn.proto->version < 20;
    return n != UV_EAGAIN && n != UV_EINTR && n != UV_EBADF;
}

static ebb__client_conn *find_room(const ebb__origin *o) {
    for (ebb__client_conn *k = o->conns; k != NULL; k = k->next) {
        if (!has_room(k)) continue;
        if (!is_stale(k)) return k;
        client_conn_end(k);
        ebb__conn_drain(&k->conn);
    }
    return NULL;
}

/* One HTTP/2 connection is enough until it is full, so only one is opened at a time. */
static bool wants_connection(const ebb__origin *o) {
    uint32_t enough = o->h1 ? o->waiting : o->waiting > 0;
    if (o->tls && !o->client->has_tls) return false;
    return !o->client->stopped && o->coming < enough && o->usable < o->client->connections;
}

static void queue_remove(ebb__call *call) {
    ebb__origin *o = call->origin;
    *call->where = call->next;
    if (call->next != NULL) call->next->where = call->where;
    else o->last = call->where;
    call->where = NULL;
    o->waiting--;
}

static void fail_waiting(ebb__origin *o, ebb_status st) {
    o->pins++;
    while (o->first != NULL) ebb__call_fail(o->first, st);
    o->pins--;
}

static void start_first(ebb__origin *o, ebb__client_conn *k) {
    ebb__call *call = o->first;
    queue_remove(call);
    idle_remove(o->client, k);
    k->served = true;
    ebb__call_start(call, k);
}

/* Assigns waiting calls to connections that have room, and opens more connections if needed. */
static void hand_out(ebb__origin *o) {
    ebb__client_conn *k;
    ebb_status st = EBB_OK;
    o->pins++;
    while (o->first != NULL && (k = find_room(o)) != NULL) start_first(o, k);
    if (o->tls && o->first != NULL && !o->client->stopped) st = ebb__client_read_tls(o->client);
    while (st == EBB_OK && wants_connection(o)) st = ebb__client_conn_open(o);
    if (st != EBB_OK && o->usable == 0) fail_waiting(o, st);
    o->pins--;
}

static void rest(ebb__client_conn *k) {
    if (k->state == EBB__CLIENT_CONN_READY && k->conn.slots == 0 && !k->idle) idle_add(k->conn.client, k);
}

void ebb__origin_add(ebb__origin *o, ebb__call *call) {
    sweep(o->client);
    call->next = NULL;
    call->where = o->last;
    *o->last = call;
    o->last = &call->next;
    o->waiting++;
    hand_out(o);
    ebb__origin_release(o);
}

/* A connection that is not ready is given up when no call waits for it any more. */
void ebb__origin_remove(ebb__call *call) {
    ebb__origin *o = call->origin;
    ebb__client_conn *next;
    queue_remove(call);
    if (o->first != NULL) return;
    o->pins++;
    for (ebb__client_conn *k = o->conns; k != NULL; k = next) {
        next = k->next;
        if (k->state == EBB__CLIENT_CONN_NEW) ebb__client_conn_drop(k, EBB_CANCELLED);
    }
    o->pins--;
    ebb__origin_release(o);
}

void ebb__origin_left(ebb__origin *o, ebb__client_conn *k) {
    hand_out(o);
    rest(k);
}

/* If the connection never had a call, another attempt would fail as well: there is none before the next call. If the
 * origin has no other connection, the waiting calls fail. */
void ebb__origin_lost(ebb__client_conn *k, ebb_status st) {
    ebb__origin *o = k->conn.origin;
    if (k->state == EBB__CLIENT_CONN_ENDED) return;
    client_conn_end(k);
    if (k->served) hand_out(o);
    else if (o->usable == 0) fail_waiting(o, st);
}

/* ---- events of connections ------------------------------------------------------------------------------------ */

static void is_known(ebb__client_conn *k) {
    if (k->known || k->state == EBB__CLIENT_CONN_ENDED) return;
    k->known = true;
    k->conn.origin->coming--;
}

void ebb__client_ready(ebb__conn *c) {
    ebb__client_conn *k = client_conn_of(c);
    ebb__origin *o = c->origin;
    k->state = EBB__CLIENT_CONN_READY;
    ebb__client_conn_ready(k);
    o->h1 = c->proto->version < 20;
    if (o->h1) is_known(k);
    hand_out(o);
    rest(k);
}

void ebb__client_room(ebb__conn *c) {
    is_known(client_conn_of(c));
    hand_out(c->origin);
}

void ebb__client_draining(ebb__conn *c) {
    ebb__origin_lost(client_conn_of(c), EBB_ERR_HTTP_RETRY);
}

/* An orderly end before the connection was ready is still a failure for the waiting calls. */
void ebb__client_ended(ebb__conn *c, ebb_status st) {
    ebb__origin_lost(client_conn_of(c), st == EBB_ERR_CLOSED ? EBB_ERR_HTTP_RESET : st);
}

void ebb__client_closed(ebb__conn *c) {
    ebb__client_conn_free(client_conn_of(c));
}

const ebb__bounds *ebb__client_bounds(const ebb__conn *c) {
    return &c->client->bounds;
}

/* ---- origins -------------------------------------------------------------------------------------------------- */

/* FNV-1a. A collision costs time only. */
static ebb__origin **bucket_of(ebb_http_client *c, const char *host, size_t n, uint16_t port) {
    uint32_t h = 2166136261u ^ port;
    for (size_t i = 0; i < n; i++) h = (h ^ ((uint8_t)host[i] | 0x20u)) * 16777619u;
    return &c->origins[h % EBB__ORIGIN_BUCKETS];
}

static bool is_of(const ebb__origin *o, const ebb__url *u) {
    return o->tls == u->tls && o->port == u->port && ebb__same_name(o->host, o->host_n, u->host, u->host_n);
}

static ebb__origin *origin_new(ebb_http_client *c, const ebb__url *u) {
    ebb__origin *o = ebb__alloc(&c->allocator, sizeof *o + u->host_n + 1);
    if (o == NULL) return NULL;
    *o = (ebb__origin){.client = c, .tls = u->tls, .port = u->port, .host_n = u->host_n};
    o->h1 = !u->tls && !c->prior_knowledge;
    o->last = &o->first;
    memcpy(o->host, u->host, u->host_n);
    o->host[u->host_n] = 0;
    return o;
}

ebb__origin *ebb__origin_of(ebb_http_client *c, const ebb__url *u) {
    ebb__origin **at = bucket_of(c, u->host, u->host_n, u->port);
    for (ebb__origin *o = *at; o != NULL; o = o->next) {
        if (is_of(o, u)) return o;
    }
    ebb__origin *o = origin_new(c, u);
    if (o == NULL) return NULL;
    o->next = *at;
    *at = o;
    c->origins_n++;
    return o;
}

static void client_free(ebb_http_client *c) {
    ebb_allocator a = c->allocator;
    ebb__tls_ctx_free(c->tls);
    if (c->handle != NULL) ebb__handle_free(c->handle);
    ebb__free(&a, c, sizeof *c);
}

static void origin_free(ebb__origin *o) {
    ebb_http_client *c = o->client;
    ebb__origin **at = bucket_of(c, o->host, o->host_n, o->port);
    while (*at != o) at = &(*at)->next;
    *at = o->next;
    c->origins_n--;
    ebb__free(&c->allocator, o, sizeof *o + o->host_n + 1);
}

void ebb__origin_release(ebb__origin *o) {
    ebb_http_client *c = o->client;
    if (o->conns != NULL || o->first != NULL || o->pins > 0) return;
    origin_free(o);
    if (c->stopped && c->origins_n == 0) client_free(c);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void origin_stop(ebb__origin *o) {
    ebb__client_conn *next;
    fail_waiting(o, EBB_ERR_CLOSED);
    for (ebb__client_conn *k = o->conns; k != NULL; k = next) {
        next = k->next;
        ebb__client_conn_drop(k, EBB_ERR_CLOSED);
    }
}

static void on_timer_closed(uv_handle_t *uv) {
    ebb_http_client *c = uv->data;
    if (--c->origins_n == 0) client_free(c);
}

/* Waiting calls and calls in flight fail. The last handle that libuv closes frees the client. */
static void client_stop(void *ctx) {
    ebb_http_client *c = ctx;
    ebb__origin *next;
    c->stopped = true;
    c->origins_n++; /* until its timer is closed */
    c->loop->os->close((uv_handle_t *)&c->timer, on_timer_closed);
    ebb__client_stop_reading(c);
    for (size_t i = 0; i < EBB__ORIGIN_BUCKETS; i++) {
        for (ebb__origin *o = c->origins[i]; o != NULL; o = next) {
            next = o->next;
            o->pins++;
            origin_stop(o);
            o->pins--;
            ebb__origin_release(o);
        }
    }
}

/* A job that runs in the thread pool can't be stopped. */
static bool reads_on(const void *ctx) {
    return ((const ebb_http_client *)ctx)->reading != NULL;
}

/* Calls that waited for the certificates go on, or fail. */
void ebb__client_has_read(ebb_http_client *c, ebb_status st) {
    ebb__origin *next;
    for (size_t i = 0; i < EBB__ORIGIN_BUCKETS; i++) {
        for (ebb__origin *o = c->origins[i]; o != NULL; o = next) {
            next = o->next;
            if (!o->tls) continue;
            if (st == EBB_OK) hand_out(o);
            else fail_waiting(o, st);
            ebb__origin_release(o);
        }
    }
    if (--c->origins_n == 0 && c->stopped) client_free(c);
}

static uint64_t or_else(uint64_t n, uint64_t otherwise) {
    return n != 0 ? n : otherwise;
}

static void client_fill(ebb_http_client *c, const ebb_http_client_opts *o) {
    c->prior_knowledge = o->prior_knowledge;
    c->connections = (uint32_t)or_else(o->connections, CONNECTIONS);
    c->bounds.headers = (uint32_t)or_else(o->headers, HEADERS);
    c->bounds.header_bytes = (uint32_t)or_else(o->header_bytes, HEADER_BYTES);
    c->bounds.body_bytes = UINT64_MAX; /* a fetch has a limit of its own */
    c->body_bytes = or_else(o->body_bytes, BODY_BYTES);
    c->idle_ns = or_else(o->idle_ns, IDLE_NS);
    c->connect_ns = or_else(o->connect_ns, CONNECT_NS);
}

/* Files that the caller names are read now, so that an error is returned to the caller. */
static ebb_status open_tls(ebb_http_client *c, const ebb_tls_opts *tls) {
    if (tls->cert_file == NULL && tls->key_file == NULL && tls->ca_file == NULL) return EBB_OK;
    ebb_status st = ebb__tls_ctx_new(c->allocator, tls, false, &c->tls);
    c->has_tls = st == EBB_OK;
    return st;
}

static ebb_status client_open(ebb_http_client *c, const ebb_tls_opts *tls) {
    ebb_status st = open_tls(c, tls);
    if (st != EBB_OK) return st;
    c->handle = ebb__handle_new(c->loop, c->region, EBB__HANDLE_OP, "ebb_http_client_new", &st);
    if (c->handle == NULL) return st;
    c->handle->as.op = (ebb__handle_op){"http client", client_stop, c, reads_on};
    (void)c->loop->os->timer_init(c->loop->uv, &c->timer); /* can't fail */
    c->timer.data = c;
    c->loop->os->unref((uv_handle_t *)&c->timer);
    return EBB_OK;
}

ebb_status ebb_http_client_new(ebb_cx *cx, const ebb_http_client_opts *opts, ebb_http_client **out) {
    ebb_http_client_opts o;
    ebb_loop *l;
    *out = NULL;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK) st = EBB__OPTS_INNER(&o.tls);
    if (st == EBB_OK) st = ebb__loop_of(cx, &l);
    if (st != EBB_OK) return st;
    ebb_http_client *c = ebb__alloc(&l->allocator, sizeof *c);
    if (c == NULL) return EBB_ERR_NOMEM;
    *c = (ebb_http_client){.loop = l, .allocator = l->allocator, .region = ebb_cx_region(cx)};
    client_fill(c, &o);
    st = client_open(c, &o.tls);
    if (st == EBB_OK) *out = c;
    else client_free(c);
    return st;
}
