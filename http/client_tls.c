/* A client's certificates. OpenSSL takes a tenth of a second to read those of the system. So a client without files of
 * its own reads them in libuv's thread pool, when its first call needs TLS. Calls wait for that as they wait for a
 * connection. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

static const ebb_operation read_op = {"http certificates", NULL, NULL};

/* Runs on a thread of the pool, which owns the context until it has finished. */
static void read_now(uv_work_t *uv) {
    ebb__uv_request *r = uv->data;
    const ebb_http_client *c = r->as.work.arg;
    r->as.work.status = ebb__tls_ctx_fill(c->tls, &(ebb_tls_opts){0});
}

static void on_read(uv_work_t *uv, int code) {
    ebb__uv_request *r = uv->data;
    ebb_http_client *c = r->as.work.arg;
    ebb_status st = code == 0 ? r->as.work.status : ebb__uv_status(code);
    (void)ebb_loop_cx(r->loop);
    r->loop->pending--;
    ebb__request_free(r);
    c->reading = NULL;
    if (st == EBB_OK) c->has_tls = true;
    else ebb__tls_ctx_set_error(c->tls); /* errors are kept for each thread */
    if (st != EBB_OK) {
        ebb__tls_ctx_free(c->tls);
        c->tls = NULL;
    }
    ebb__client_has_read(c, st);
}

ebb_status ebb__client_read_tls(ebb_http_client *c) {
    if (c->has_tls || c->reading != NULL) return EBB_OK;
    ebb_status st = ebb__request_reserve(c->loop);
    if (st != EBB_OK) return st;
    c->tls = ebb__tls_ctx_empty(c->allocator, false);
    if (c->tls == NULL) return EBB_ERR_NOMEM;
    ebb__uv_request *r =
        ebb__request_take(ebb_runtime_host(c->loop->rt), c->loop, NULL, &read_op, "http client");
    r->region = c->region;
    r->as.work.arg = c;
    int code = c->loop->os->queue_work(c->loop->uv, &r->uv.work, read_now, on_read);
    if (code == 0) {
        c->reading = r;
        c->loop->pending++;
        c->origins_n++; /* the client stays until then */
        return EBB_OK;
    }
    ebb__request_free(r);
    ebb__tls_ctx_free(c->tls);
    c->tls = NULL;
    return ebb__uv_status(code);
}

void ebb__client_stop_reading(const ebb_http_client *c) {
    if (c->reading != NULL) (void)c->loop->os->cancel(&c->reading->uv.any);
}
