/* Redirects: whether the client follows a response, and what becomes of the call for its next target. client_retry.c
 * sends it again once its stream has ended. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

enum { DROPPED_MOST = 64 * 1024 };

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

ebb_status ebb__call_follow(ebb__call *c) {
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
