/* How a client's link gets its connection: the name is looked up, unless it is a number, and its addresses are
 * tried one after the other.
 *
 * No future stands behind this: those that wait are the calls, and a link serves whoever is the first of them
 * when it is ready. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

#include <netdb.h>

#include "base/alloc.h"
#include "loop/stream.h"

static const char site[] = "http client";

/* ---- life ----------------------------------------------------------------------------------------------------- */

static ebb__link *link_new(ebb__origin *o) {
    ebb_http_client *client = o->client;
    ebb__link *k = ebb__alloc(&client->allocator, sizeof *k);
    if (k == NULL) return NULL;
    memset(k, 0, sizeof *k);
    k->conn.loop = client->loop;
    k->conn.allocator = client->allocator;
    k->conn.client = client;
    k->conn.origin = o;
    k->conn.h2 = client->prior_knowledge;
    k->next = o->links;
    if (o->links != NULL) o->links->prev = k;
    o->links = k;
    o->usable++;
    o->coming++;
    return k;
}

/* What it has counted for in its origin was taken back before. */
void ebb__link_free(ebb__link *k) {
    ebb__origin *o = k->conn.origin;
    if (k->prev != NULL) k->prev->next = k->next;
    else o->links = k->next;
    if (k->next != NULL) k->next->prev = k->prev;
    uv_freeaddrinfo(k->found);
    ebb__free(&o->client->allocator, k, sizeof *k);
    ebb__origin_release(o);
}

static void fail(ebb__link *k, ebb_status st) {
    ebb__origin_lost(k, st);
    ebb__link_free(k);
}

/* ---- one address ---------------------------------------------------------------------------------------------- */

/* It has a wire, or is over. */
static void connected(ebb__link *k) {
    ebb__origin *o = k->conn.origin;
    ebb_cx *cx = ebb_loop_cx(k->conn.loop);
    ebb__handle *h = k->handle;
    ebb_status st = EBB_OK;
    k->handle = NULL;
    if (o->tls) k->conn.tls = ebb__tls_new(o->client->tls, o->host);
    if (o->tls && k->conn.tls == NULL) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) st = ebb__conn_open(&k->conn, cx, (ebb_stream){ebb__handle_id(h)});
    if (st == EBB_OK) return;
    if (k->conn.wire.handle != NULL) {
        ebb__conn_drop(&k->conn, st, EBB_CANCEL_RESOURCE, "it could not be opened");
        return;
    }
    ebb__handle_close(h);
    ebb__tls_free(k->conn.tls);
    fail(k, st);
}

static ebb_status try_rest(ebb__link *k, ebb_status st);

static void on_connect(uv_connect_t *uv, int code) {
    ebb__link *k = uv->data;
    if (k->state == EBB__LINK_OVER) { /* it was dropped, and its handle closed */
        ebb__link_free(k);
        return;
    }
    if (code == 0) {
        connected(k);
        return;
    }
    ebb__handle_close(k->handle);
    k->handle = NULL;
    ebb_status st = try_rest(k, code == UV_ECANCELED ? EBB_ERR_CLOSED : ebb__uv_status(code));
    if (st != EBB_OK) fail(k, st);
}

static ebb_status try_one(ebb__link *k, const struct sockaddr *to) {
    ebb_status st;
    ebb__handle *h = ebb__stream_new(k->conn.loop, k->conn.client->region, EBB__TCP, site, &st);
    if (h == NULL) return st;
    k->connect.data = k;
    int code = uv_tcp_connect(&k->connect, &h->uv.tcp, to, on_connect);
    if (code == 0) k->handle = h;
    else ebb__handle_close(h);
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

/* ---- several -------------------------------------------------------------------------------------------------- */

static void set_port(struct sockaddr *to, uint16_t port) {
    if (to->sa_family == AF_INET) ((struct sockaddr_in *)(void *)to)->sin_port = htons(port);
    else ((struct sockaddr_in6 *)(void *)to)->sin6_port = htons(port);
}

/* Those that are left. `st` is what the last one said, and the result if none can be tried. */
static ebb_status try_rest(ebb__link *k, ebb_status st) {
    while (k->next_found != NULL) {
        struct addrinfo *a = k->next_found;
        k->next_found = a->ai_next;
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        set_port(a->ai_addr, k->conn.origin->port);
        st = try_one(k, a->ai_addr);
        if (st == EBB_OK) return st;
    }
    return st;
}

/* ---- the name ------------------------------------------------------------------------------------------------- */

static const ebb_op lookup_op = {"resolve", NULL, NULL};

/* The request may outlive its link: libuv can't stop a lookup that has begun. */
static void on_found(uv_getaddrinfo_t *uv, int code, struct addrinfo *found) {
    ebb__request *r = uv->data;
    ebb__link *k = r->as.work.arg;
    (void)ebb_loop_cx(r->loop);
    r->loop->pending--;
    ebb__request_free(r);
    if (k == NULL) {
        uv_freeaddrinfo(found);
        return;
    }
    k->lookup = NULL;
    k->found = k->next_found = found;
    ebb_status st = try_rest(k, code == 0 ? EBB_UV(UV_EAI_NODATA) : ebb__uv_status(code));
    if (st != EBB_OK) fail(k, st);
}

static ebb_status look_up(ebb__link *k) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    ebb_loop *l = k->conn.loop;
    ebb_status st = ebb__request_reserve(l);
    if (st != EBB_OK) return st;
    ebb__request *r = ebb__request_take(ebb_host(l->rt), l, NULL, &lookup_op, site);
    r->region = k->conn.client->region;
    r->as.work.arg = k;
    int code = uv_getaddrinfo(l->uv, &r->uv.dns, on_found, k->conn.origin->host, NULL, &hints);
    if (code != 0) {
        ebb__request_free(r);
        return ebb__uv_status(code);
    }
    l->pending++;
    k->lookup = r;
    return EBB_OK;
}

static bool is_number(const ebb__origin *o, struct sockaddr_storage *to) {
    ebb_address a = {.port = o->port};
    if (o->host_n >= sizeof a.ip) return false;
    memcpy(a.ip, o->host, o->host_n + 1);
    return ebb__address_parse(&a, to) == EBB_OK;
}

ebb_status ebb__link_open(ebb__origin *o) {
    struct sockaddr_storage to;
    ebb__link *k = link_new(o);
    if (k == NULL) return EBB_ERR_NOMEM;
    ebb_status st = is_number(o, &to) ? try_one(k, (struct sockaddr *)&to) : look_up(k);
    if (st == EBB_OK) return st;
    o->usable--;
    o->coming--;
    ebb__link_free(k);
    return st;
}

/* ---- giving up ------------------------------------------------------------------------------------------------ */

void ebb__link_drop(ebb__link *k, ebb_status st) {
    if (k->lookup != NULL) {
        k->lookup->as.work.arg = NULL;
        (void)uv_cancel(&k->lookup->uv.any);
        fail(k, st);
    } else if (k->handle != NULL) {
        ebb__origin_lost(k, st);
        ebb__handle_close(k->handle); /* on_connect comes with it */
    } else {
        ebb__conn_drop(&k->conn, st, EBB_CANCEL_SHUTDOWN, "the client has dropped it");
    }
}
