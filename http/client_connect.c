/* How a client connects: looks up the name, unless it is an address, and dials its addresses (loop/dial.h). The time
 * limit of the dial covers the lookup, TCP and TLS.
 *
 * There is no future for this. Calls wait for a connection, and a connection serves the first waiting call when it is
 * ready. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

#include "base/alloc.h"

static const char site[] = "http client";

/* ---- life ----------------------------------------------------------------------------------------------------- */

static ebb__client_conn *client_conn_new(ebb__origin *o) {
    ebb_http_client *client = o->client;
    ebb__client_conn *k = ebb__alloc(&client->allocator, sizeof *k);
    if (k == NULL) return NULL;
    memset(k, 0, sizeof *k);
    k->conn.loop = client->loop;
    k->conn.allocator = client->allocator;
    k->conn.client = client;
    k->conn.origin = o;
    k->conn.h2 = client->prior_knowledge;
    k->next = o->conns;
    if (o->conns != NULL) o->conns->prev = k;
    o->conns = k;
    o->usable++;
    o->coming++;
    return k;
}

/* The counters of its origin were lowered before. */
void ebb__client_conn_free(ebb__client_conn *k) {
    ebb__origin *o = k->conn.origin;
    ebb__note_connection(&k->conn, false);
    if (k->prev != NULL) k->prev->next = k->next;
    else o->conns = k->next;
    if (k->next != NULL) k->next->prev = k->prev;
    ebb__dial_end(k->dial);
    ebb__free(&o->client->allocator, k, sizeof *k);
    ebb__origin_release(o);
}

static void fail(ebb__client_conn *k, ebb_status st) {
    ebb__origin_lost(k, st);
    ebb__client_conn_free(k);
}

/* ---- the connection ------------------------------------------------------------------------------------------- */

/* The connection gets its raw stream, or ends. */
static void on_connected(void *ctx, ebb__handle *h) {
    ebb__client_conn *k = ctx;
    ebb__origin *o = k->conn.origin;
    ebb_cx *cx = ebb_loop_cx(k->conn.loop);
    ebb_status st = EBB_OK;
    if (o->tls) k->conn.tls = ebb__tls_new(o->client->tls, o->host);
    if (o->tls && k->conn.tls == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__conn_open(&k->conn, cx, (ebb_stream){ebb__handle_id(h)});
    if (st == EBB_OK) return;
    if (k->conn.raw.handle != NULL) {
        ebb__conn_drop(&k->conn, st, EBB_CANCEL_RESOURCE, "the connection could not be opened");
        return;
    }
    ebb__handle_close(h);
    ebb__tls_free(k->conn.tls);
    fail(k, st);
}

static void on_failed(void *ctx, ebb_status st) {
    ebb__client_conn_drop(ctx, st == EBB_TIMEOUT ? EBB_ERR_HTTP_CONNECT : st);
}

static const ebb__dial_ops dial_ops = {on_connected, on_failed};

/* ---- the name ------------------------------------------------------------------------------------------------- */

static const ebb_operation lookup_op = {"resolve", NULL, NULL};

/* The lookup may outlive its connection: libuv can't stop a lookup that has begun. */
static void on_found(uv_getaddrinfo_t *uv, int code, struct addrinfo *found) {
    ebb__uv_request *r = uv->data;
    ebb__client_conn *k = r->as.work.arg;
    (void)ebb_loop_cx(r->loop);
    r->loop->pending--;
    ebb__request_free(r);
    if (k == NULL) {
        r->loop->os->freeaddrinfo(found);
        return;
    }
    k->lookup = NULL;
    ebb_status st = code == 0 ? ebb__dial_start(k->dial, found, k->conn.origin->port) : ebb__uv_status(code);
    r->loop->os->freeaddrinfo(found);
    if (st != EBB_OK) fail(k, st);
}

static ebb_status look_up(ebb__client_conn *k) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    ebb_loop *l = k->conn.loop;
    ebb_status st = ebb__request_reserve(l);
    if (st != EBB_OK) return st;
    ebb__uv_request *r = ebb__request_take(ebb_runtime_host(l->rt), l, NULL, &lookup_op, site);
    r->region = k->conn.client->region;
    r->as.work.arg = k;
    int code = l->os->getaddrinfo(l->uv, &r->uv.dns, on_found, k->conn.origin->host, NULL, &hints);
    if (code != 0) {
        ebb__request_free(r);
        return ebb__uv_status(code);
    }
    l->pending++;
    k->lookup = r;
    return EBB_OK;
}

/* A host that is an address needs no lookup. */
static bool is_number(const ebb__origin *o, struct sockaddr_storage *to) {
    ebb_address a = {.port = o->port};
    if (o->host_n >= sizeof a.ip) return false;
    memcpy(a.ip, o->host, o->host_n + 1);
    return ebb__address_parse(&a, to) == EBB_OK;
}

static ebb_status dial(ebb__client_conn *k) {
    const ebb_http_client *c = k->conn.client;
    struct sockaddr_storage to;
    k->dial = ebb__dial_new(k->conn.loop, c->region, c->connect_ns, &dial_ops, k, site);
    if (k->dial == NULL) return EBB_ERR_NOMEM;
    if (!is_number(k->conn.origin, &to)) return look_up(k);
    struct addrinfo one = {
        .ai_family = to.ss_family, .ai_addr = (struct sockaddr *)&to, .ai_addrlen = sizeof to};
    return ebb__dial_start(k->dial, &one, k->conn.origin->port);
}

ebb_status ebb__client_conn_open(ebb__origin *o) {
    ebb__client_conn *k = client_conn_new(o);
    if (k == NULL) return EBB_ERR_NOMEM;
    ebb_status st = dial(k);
    if (st == EBB_OK) return st;
    o->usable--;
    o->coming--;
    ebb__client_conn_free(k);
    return st;
}

void ebb__client_conn_ready(ebb__client_conn *k) {
    ebb__dial_end(k->dial);
    k->dial = NULL;
}

/* ---- giving up ------------------------------------------------------------------------------------------------ */

void ebb__client_conn_drop(ebb__client_conn *k, ebb_status st) {
    if (ebb__conn_is_attached(&k->conn)) {
        ebb__conn_drop(&k->conn, st, EBB_CANCEL_SHUTDOWN, "the client has dropped the connection");
        return;
    }
    if (k->lookup != NULL) {
        k->lookup->as.work.arg = NULL;
        (void)k->lookup->loop->os->cancel(&k->lookup->uv.any);
    }
    fail(k, st);
}
