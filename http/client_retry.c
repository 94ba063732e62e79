/* Calls that are sent again: because the server has not processed them, or because it redirects them.
 *
 * Both happen when a stream has ended and before the user of the call knows. The exchange is reset to its state before
 * the stream, and waits for a connection of the same origin or of another.
 *
 * The client repeats only calls that are known not to be processed. The server says so (REFUSED_STREAM, the last
 * stream id of a GOAWAY), or no byte of the request was sent: the system has taken none since the call was given to
 * its connection. A connection that ends later may have carried the request, whatever the method is. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

enum { RETRIES = 3, DROPPED_MOST = 64 * 1024 };

/* ---- which calls are repeated --------------------------------------------------------------------------------- */

static bool is_unsent(const ebb__call *c) {
    return c->x.conn->taken == c->taken;
}

static bool is_wanted(const ebb__call *c) {
    return c->future != NULL ? ebb__is_wanted(c->future) : ebb__call_is_given(c);
}

/* A streamed body can be sent again as long as none of its bytes were taken. */
static bool may_retry(const ebb__call *c) {
    const ebb_http *x = &c->x;
    bool whole = !c->streams || (x->out_bytes == 0 && !ebb__exchange_is_cut(x));
    return c->retries < RETRIES && x->in == EBB__IN_HEAD && whole && c->deadline > ebb__loop_now(x->loop);
}

/* ---- redirects ------------------------------------------------------------------------------------------------ */

static bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static bool is_origin(const ebb__origin *o, const ebb__url *u) {
    return o->tls == u->tls && o->port == u->port && ebb__same_name(o->host, o->host_n, u->host, u->host_n);
}

static void forget_fields(ebb_http *x, const char *const *names) {
    for (; *names != NULL; names++) ebb__fields_remove(&x->out_fields, *names, strlen(*names));
}

/* 303 asks for the result by GET. For 301 and 302, clients commonly do that with POST. */
static bool becomes_get(const char *method, int status) {
    if (status == 303) return strcmp(method, "HEAD") != 0;
    return (status == 301 || status == 302) && strcmp(method, "POST") == 0;
}

static void become_get(ebb__call *c) {
    static const char *const of_body[] = {"content-type",     "content-encoding", "content-language",
                                          "content-location", "expect",           NULL};
    c->x.method = "GET";
    c->body = NULL;
    c->body_size = 0;
    forget_fields(&c->x, of_body);
}

/* Fields that were meant for one origin are not sent to another. */
static void change_origin(ebb_http *x) {
    static const char *const secrets[] = {"authorization", "cookie", "proxy-authorization", NULL};
    forget_fields(x, secrets);
}

/* The strings are copied to the arena: the fields of the response are dropped when the call is sent again. */
static ebb_status resolve(ebb__call *c, const char *location) {
    ebb_http *x = &c->x;
    const ebb__url base = {.tls = c->origin->tls,
                           .authority = x->authority,
                           .authority_n = strlen(x->authority),
                           .path = x->path,
                           .path_n = x->path_n};
    char *text = ebb__arena_alloc(&x->arena, EBB__URL_BYTES + 1);
    if (text == NULL) return EBB_ERR_NOMEM;
    if (!ebb__url_resolve(&base, location, text) || !ebb__url_parse(text, &c->target))
        return EBB_ERR_HTTP_REDIRECT;
    return EBB_OK;
}

ebb_status ebb__call_redirect(ebb__call *c) {
    const ebb__field *f = c->follows ? ebb__fields_find(&c->x.fields, "location", 8) : NULL;
    if (f == NULL || c->future == NULL || !is_redirect(c->x.status)) return EBB_OK;
    if (c->redirects == 0) return EBB_ERR_HTTP_REDIRECT;
    ebb_status st = resolve(c, f->value);
    c->redirected = st == EBB_OK;
    return st;
}

/* Reads a short body, so that the connection can be used again. A long one, or an unsent rest of the request, resets
 * the stream. */
void ebb__call_drop_body(ebb__call *c) {
    ebb_http *x = &c->x;
    uint8_t bytes[4096];
    while (x->body_n > 0) c->body_n += ebb__exchange_read(x, bytes, sizeof bytes);
    bool unsent = x->in == EBB__IN_ENDED && (x->out != EBB__OUT_ENDED || x->from_n > 0);
    if (ebb__exchange_is_gone(x) || c->let_go || (c->body_n <= DROPPED_MOST && !unsent)) return;
    c->let_go = true;
    x->from_n = 0;
    x->conn->proto->reset(x, EBB__CANCEL);
}

static ebb_status follow(ebb__call *c) {
    ebb_http *x = &c->x;
    const ebb__url *u = &c->target;
    const char *path = ebb__call_copy(x, u->path, u->path_n),
               *authority = ebb__call_copy(x, u->authority, u->authority_n);
    if (path == NULL || authority == NULL) return EBB_ERR_NOMEM;
    if (becomes_get(x->method, x->status)) become_get(c);
    if (!is_origin(c->origin, u)) change_origin(x);
    x->path = path;
    x->path_n = (uint32_t)u->path_n;
    x->authority = authority;
    c->redirected = c->let_go = false;
    c->redirects--;
    c->retries = 0;
    c->body_n = 0;
    return EBB_OK;
}

/* ---- sending again -------------------------------------------------------------------------------------------- */

/* Resets the exchange to its state before it was first sent. Bytes that the user has written, and the pending write,
 * are kept. */
static void renew(ebb__call *c) {
    ebb_http *x = &c->x;
    x->stream = 0;
    ebb__in_step(x, EBB__IN_RENEWS);
    ebb__sent_step(x, EBB__SENT_RENEWS);
    ebb__stream_step(x, EBB__STREAM_RENEWS);
    x->in_status = EBB_OK;
    x->in_bytes = 0;
    x->status = 0;
    x->interims = 0;
    x->too_large = false;
    x->excess = 0;
    x->fields = x->trailers = (ebb__fields){0};
    x->deferred = false;
    x->out_bytes = 0;
    c->client_conn = NULL;
    if (!c->streams) ebb__call_set_body(c);
}

static ebb__origin *next_origin(ebb__call *c, ebb_status *st) {
    if (!c->redirected) {
        c->retries++;
        return c->origin;
    }
    ebb__origin *o = ebb__origin_of(c->origin->client, &c->target);
    *st = o == NULL ? EBB_ERR_NOMEM : follow(c);
    if (o != NULL && *st != EBB_OK) ebb__origin_release(o);
    return *st == EBB_OK ? o : NULL;
}

bool ebb__client_resends(ebb_http *x, ebb_status *st) {
    ebb__call *c = x->call;
    ebb__origin *from = c->origin;
    ebb__client_conn *k = c->client_conn;
    ebb__conn *conn = x->conn;
    if (*st == EBB_ERR_HTTP_RESET && !c->redirected && is_unsent(c)) *st = EBB_ERR_HTTP_RETRY;
    if (from->client->stopped || !is_wanted(c)) return false;
    if (!c->redirected && (*st != EBB_ERR_HTTP_RETRY || !may_retry(c))) return false;
    ebb__origin *to = next_origin(c, st);
    if (to == NULL) return false;
    ebb__exchange_unlink(x);
    renew(c);
    c->origin = to;
    ebb__origin_add(to, c); /* it may have ended when this returns */
    ebb__origin_left(from, k);
    ebb__conn_freed(conn);
    return true;
}
