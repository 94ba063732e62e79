/* A client and a server of our own on one loop, for tests of the client. Handlers note what happens to them. */
#ifndef EBB_TESTS_HTTP_CLIENT_WORLD_H
#define EBB_TESTS_HTTP_CLIENT_WORLD_H

#include "tests/support/loop_world.h"
#include <ebb/http.h>

typedef struct http_world {
    loop_world *w;
    ebb_http_server *server;
    ebb_http_client *client;
    uint16_t port;
    bool h2;
    char url[128];
    uint32_t began, cancelled; /* of /wait and /trickle */
    uint32_t wanted;           /* see many_began */
} http_world;

/* ---- handlers --------------------------------------------------------------------------------------------- */

LOOP_UNUSED ebb_status on_hello(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    ebb_status st = ebb_http_set_header(x, "x-method", ebb_http_method(x));
    if (st == EBB_OK) st = ebb_http_set_header(x, "x-query", ebb_http_query(x));
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "hello") : st;
}

/* Says what it hears, as it hears it. */
LOOP_UNUSED ebb_status on_echo(ebb_cx *cx, ebb_http *x, void *arg) {
    char bytes[4096];
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_http_start(cx, x, 200);
    while (st == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &v);
        if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, bytes, v.as.u), NULL);
    }
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

/* So many bytes. */
LOOP_UNUSED ebb_status on_bytes(ebb_cx *cx, ebb_http *x, void *arg) {
    static const char piece[4096];
    size_t left = (size_t)strtoull(ebb_http_param(x, "n"), NULL, 10);
    (void)arg;
    ebb_status st = ebb_http_start(cx, x, 200);
    while (st == EBB_OK && left > 0) {
        size_t n = left < sizeof piece ? left : sizeof piece;
        st = ebb_await(cx, ebb_http_write(cx, x, piece, n), NULL);
        left -= n;
    }
    return st;
}

static ebb_status until_cancelled(ebb_cx *cx, http_world *h) {
    h->began++;
    ebb_status st = ebb_await(cx, ebb_future_never(cx), NULL);
    h->cancelled += st == EBB_CANCELLED;
    return st;
}

LOOP_UNUSED ebb_status on_wait(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)x;
    return until_cancelled(cx, arg);
}

/* Begins to answer, and does not end. */
LOOP_UNUSED ebb_status on_trickle(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_status st = ebb_await(cx, ebb_http_write(cx, x, "drop", 4), NULL);
    return st == EBB_OK ? until_cancelled(cx, arg) : st;
}

/* Says that much will come. */
LOOP_UNUSED ebb_status on_announce(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_status st = ebb_http_set_header(x, "content-length", "1000000");
    return st == EBB_OK ? on_trickle(cx, x, arg) : st;
}

LOOP_UNUSED ebb_status on_deadline(ebb_cx *cx, ebb_http *x, void *arg) {
    const char *ms = ebb_http_header(x, "ebb-deadline-ms");
    (void)arg;
    return ebb_http_text(cx, x, 200, ms == NULL ? "none" : ms);
}

LOOP_UNUSED ebb_status on_heads(ebb_cx *cx, ebb_http *x, void *arg) {
    char name[16];
    ebb_status st = EBB_OK;
    (void)arg;
    for (int i = 0; i < 60 && st == EBB_OK; i++) {
        snprintf(name, sizeof name, "x-%d", i);
        st = ebb_http_set_header(x, name, "value");
    }
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "many") : st;
}

/* Answers and does not read what is sent. */
LOOP_UNUSED ebb_status on_early(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, "enough");
}

/* Redirects: the status is in the path, the location is the query. */
LOOP_UNUSED ebb_status on_go(ebb_cx *cx, ebb_http *x, void *arg) {
    static const char body[100000] = "elsewhere";
    size_t n = strcmp(ebb_http_param(x, "size"), "large") == 0 ? sizeof body : strlen(body);
    ebb_status st = EBB_OK;
    (void)arg;
    const char *to = strcmp(ebb_http_query(x), "%23") == 0 ? "#" : ebb_http_query(x);
    if (to[0] != 0) st = ebb_http_set_header(x, "location", to);
    int status = atoi(ebb_http_param(x, "status"));
    return st == EBB_OK ? ebb_http_reply(cx, x, status, "text/plain", body, n) : st;
}

/* Says what it was asked: the method, the path, some headers, and the body, which is taken as a whole. */
LOOP_UNUSED ebb_status on_show(ebb_cx *cx, ebb_http *x, void *arg) {
    static const char *const names[] = {"authorization", "cookie", "content-type", "x-own"};
    char text[1024];
    int n = snprintf(text, sizeof text, "%s %s?%s", ebb_http_method(x), ebb_http_path(x), ebb_http_query(x));
    ebb_value v;
    (void)arg;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = ebb_http_header(x, names[i]);
        if (value != NULL) n += snprintf(text + n, sizeof text - (size_t)n, " %s=%s", names[i], value);
    }
    ebb_status st = ebb_await(cx, ebb_http_body(cx, x, 500), &v);
    if (st != EBB_OK) return st;
    const ebb_http_bytes *body = ebb_http_body_of(&v);
    (void)snprintf(text + n, sizeof text - (size_t)n, " [%s]", body->at);
    return ebb_http_text(cx, x, 200, text);
}

/* Says what it hears when it has heard all. */
LOOP_UNUSED ebb_status on_whole(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_http_body(cx, x, 1 << 20), &v);
    if (st == EBB_ERR_LIMIT) return ebb_http_text(cx, x, 413, "too much");
    if (st != EBB_OK) return st;
    const ebb_http_bytes *body = ebb_http_body_of(&v);
    return ebb_http_reply(cx, x, 200, NULL, body->at, body->n);
}

/* ---- the world -------------------------------------------------------------------------------------------- */

LOOP_UNUSED ebb_status http_routes(ebb_http_server *s, http_world *h) {
    static const struct {
        const char *method, *pattern;
        ebb_http_handler_fn fn;
    } routes[] = {{"*", "/", on_hello},
                  {"*", "/hello", on_hello},
                  {"GET", "/bytes/:n", on_bytes},
                  {"POST", "/echo", on_echo},
                  {"*", "/wait", on_wait},
                  {"GET", "/trickle", on_trickle},
                  {"GET", "/heads", on_heads},
                  {"POST", "/early", on_early},
                  {"GET", "/deadline", on_deadline},
                  {"GET", "/announce", on_announce},
                  {"*", "/go/:size/:status", on_go},
                  {"*", "/show/*path", on_show},
                  {"POST", "/whole", on_whole}};
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < sizeof routes / sizeof *routes && st == EBB_OK; i++) {
        st = ebb_http_on(s, routes[i].method, routes[i].pattern, routes[i].fn, h);
    }
    return st;
}

LOOP_UNUSED void http_serve(http_world *h, const ebb_http_server_opts *opts) {
    ebb_http_server_opts o = opts != NULL ? *opts : (ebb_http_server_opts){0};
    ebb_address at;
    o.address = (ebb_address){"127.0.0.1", h->port};
    assert_int_equal(ebb_http_listen(ebb_loop_cx(h->w->loop), &o, &h->server), EBB_OK);
    assert_int_equal(http_routes(h->server, h), EBB_OK);
    assert_int_equal(ebb_http_server_address(h->w->cx, h->server, &at), EBB_OK);
    h->port = at.port;
}

LOOP_UNUSED ebb_http_client *http_client(http_world *h, ebb_http_client_opts opts) {
    ebb_http_client *c;
    opts.prior_knowledge = h->h2;
    assert_int_equal(ebb_http_client_new(ebb_loop_cx(h->w->loop), &opts, &c), EBB_OK);
    return c;
}

LOOP_UNUSED int http_up(void **state, bool h2) {
    http_world *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->w = loop_world_new();
    h->h2 = h2;
    http_serve(h, NULL);
    h->client = http_client(h, (ebb_http_client_opts){0});
    *state = h;
    return 0;
}

LOOP_UNUSED int http_up_1(void **state) {
    return http_up(state, false);
}

LOOP_UNUSED int http_up_2(void **state) {
    return http_up(state, true);
}

LOOP_UNUSED int http_down(void **state) {
    http_world *h = *state;
    loop_world_end(h->w);
    free(h);
    return 0;
}

#define OVER_1(test)                                                                                         \
    { #test " (HTTP/1)", test, http_up_1, http_down, NULL }
#define OVER_2(test)                                                                                         \
    { #test " (HTTP/2)", test, http_up_2, http_down, NULL }
#define OVER(test) OVER_1(test), OVER_2(test)

/* Valid until the next. */
LOOP_UNUSED const char *url(http_world *h, const char *path) {
    snprintf(h->url, sizeof h->url, "http://127.0.0.1:%u%s", h->port, path);
    return h->url;
}

LOOP_UNUSED ebb_cx *http_cx(http_world *h) {
    return ebb_loop_cx(h->w->loop);
}

LOOP_UNUSED ebb_future *get(http_world *h, const char *path) {
    return ebb_http_get(http_cx(h), h->client, url(h, path));
}

LOOP_UNUSED ebb_status get_status(http_world *h, const char *path) {
    return loop_await(h->w, get(h, path), NULL);
}

/* What a GET brings; it is to be discarded. */
LOOP_UNUSED ebb_value get_value(http_world *h, const char *path) {
    ebb_value v;
    assert_int_equal(loop_await(h->w, get(h, path), &v), EBB_OK);
    assert_non_null(ebb_http_response_of(&v));
    return v;
}

LOOP_UNUSED ebb_http_server_stats server_stats(http_world *h) {
    ebb_http_server_stats s;
    ebb_http_server_stats_of(h->server, &s);
    return s;
}

LOOP_UNUSED bool many_began(void *world) {
    const http_world *h = world;
    return h->began == h->wanted;
}

LOOP_UNUSED bool many_cancelled(void *world) {
    const http_world *h = world;
    return h->cancelled == h->wanted;
}

LOOP_UNUSED void until_began(http_world *h, uint32_t n) {
    h->wanted = n;
    loop_until(h->w, many_began, h);
}

LOOP_UNUSED void until_so_many_cancelled(http_world *h, uint32_t n) {
    h->wanted = n;
    loop_until(h->w, many_cancelled, h);
}

LOOP_UNUSED bool no_connections(void *world) {
    return server_stats(world).connections == 0;
}

#endif
