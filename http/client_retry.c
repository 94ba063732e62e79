/* Calls that are sent again: because the server has not processed them, or because it redirects them
 * (client_redirect.c).
 *
 * Both happen when a stream has ended and before the user of the call knows. The exchange is reset to its state before
 * the stream, and waits for a connection of the same origin or of another.
 *
 * The client repeats only calls that are known not to be processed. The server says so (REFUSED_STREAM, the last
 * stream id of a GOAWAY), or no byte of the request was sent: the system has taken none since the call was given to
 * its connection. A connection that ends later may have carried the request, whatever the method is. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

enum { RETRIES = 3 };

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
    *st = o == NULL ? EBB_ERR_NOMEM : ebb__call_follow(c);
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
