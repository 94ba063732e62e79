/* A server with a dashboard and a client on one loop. The store is in memory, and a worker runs its instances. */
#ifndef EBB_TESTS_SERVE_WORLD_H
#define EBB_TESTS_SERVE_WORLD_H

#include "tests/http/raw_peer.h"
#include "tests/support/loop_world.h"

#include <ebb/dashboard.h>
#include <jansson.h>

#define TOKEN "0123456789abcdef-token"

typedef struct serve_world {
    loop_world *w;
    ebb_http_server *server;
    ebb_http_client *client;
    ebb_store *store;
    ebb_worker *worker;
    uint16_t port;
    int status;   /* of the last answer */
    char *text;   /* its body */
    json_t *said; /* as JSON; NULL: it is none */
} serve_world;

/* ---- what runs there ----------------------------------------------------------------------------------------------- */

/* Waits for a signal "go", and returns its body. */
LOOP_UNUSED ebb_status orch_order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    (void)ebb_orch_set_status(o, ebb_blob_text("\"waits\""));
    return ebb_orch_await(o, ebb_orch_event(o, "go"), out);
}

LOOP_UNUSED ebb_status orch_row(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step two[] = {ebb_orch_child(o, "order", in, NULL), ebb_orch_child(o, "order", in, NULL)};
    (void)out;
    return ebb_orch_join(o, 2, two);
}

LOOP_UNUSED void serve_log(void *arg, ebb_durable_level level, const char *instance, const char *text) {
    (void)arg;
    (void)level;
    (void)instance;
    (void)text;
}

LOOP_UNUSED void serve_open_store(serve_world *s) {
    ebb_value v;
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(loop_await(s->w, ebb_store_open(cx, &(ebb_store_opts){.url = "lab:"}), &v), EBB_OK);
    s->store = ebb_store_of(&v);
    cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(ebb_worker_open(cx, s->store, &(ebb_worker_opts){.log = serve_log}, &s->worker), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->worker, "order", 1, orch_order), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->worker, "row", 1, orch_row), EBB_OK);
    assert_int_equal(ebb_worker_begin(s->worker), EBB_OK);
}

/* ---- the world ----------------------------------------------------------------------------------------------------- */

/* The path of a file with a text and a mode. */
LOOP_UNUSED const char *file_with(loop_world *w, const char *name, const char *text, mode_t mode) {
    const char *path = path_in(w, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

LOOP_UNUSED void serve_listen(serve_world *s, const char *ip) {
    ebb_address at;
    ebb_http_server_opts opts = {0};
    snprintf(opts.address.ip, sizeof opts.address.ip, "%s", ip);
    assert_int_equal(ebb_http_listen(ebb_loop_cx(s->w->loop), &opts, &s->server), EBB_OK);
    assert_int_equal(ebb_http_server_address(s->w->cx, s->server, &at), EBB_OK);
    s->port = at.port;
}

LOOP_UNUSED serve_world *serve_world_new(const char *ip) {
    serve_world *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->w = loop_world_new();
    serve_listen(s, ip);
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(ebb_http_client_new(cx, &(ebb_http_client_opts){.prior_knowledge = true}, &s->client),
                     EBB_OK);
    return s;
}

LOOP_UNUSED ebb_status serve_mount(serve_world *s, ebb_dashboard_opts opts) {
    if (opts.prefix == NULL) opts.prefix = "";
    return ebb_dashboard_mount(ebb_loop_cx(s->w->loop), s->server, &opts);
}

enum { NO_RATE = 1000000000 };

/* With a token and without a store. */
LOOP_UNUSED int serve_up(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    ebb_dashboard_opts opts = {.token_file = file_with(s->w, "token", TOKEN "\n", 0600),
                               .reads_second = NO_RATE,
                               .changes_second = NO_RATE};
    assert_int_equal(serve_mount(s, opts), EBB_OK);
    *state = s;
    return 0;
}

LOOP_UNUSED int serve_up_durable(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    serve_open_store(s);
    ebb_dashboard_opts opts = {.token_file = file_with(s->w, "token", TOKEN "\n", 0600),
                               .store = s->store,
                               .worker = s->worker,
                               .reads_second = NO_RATE,
                               .changes_second = NO_RATE};
    assert_int_equal(serve_mount(s, opts), EBB_OK);
    *state = s;
    return 0;
}

LOOP_UNUSED void serve_forget(serve_world *s) {
    json_decref(s->said);
    free(s->text);
    s->said = NULL;
    s->text = NULL;
}

LOOP_UNUSED int serve_down(void **state) {
    serve_world *s = *state;
    serve_forget(s);
    loop_world_end(s->w);
    free(s);
    return 0;
}

#define SERVED(test)  cmocka_unit_test_setup_teardown(test, serve_up, serve_down)
#define DURABLE(test) cmocka_unit_test_setup_teardown(test, serve_up_durable, serve_down)

/* ---- requests ------------------------------------------------------------------------------------------------------ */

typedef struct serve_ask {
    const char *token; /* NULL: none */
    const char *body;
    size_t body_n;      /* 0: up to its 0 */
    const char *type;   /* of the body. NULL: JSON */
    const char *origin; /* NULL: none */
    const char *site;   /* sec-fetch-site. NULL: none */
} serve_ask;

/* Sends it, and keeps the answer. Returns its status. */
LOOP_UNUSED int ask(serve_world *s, const char *method, const char *path, serve_ask how) {
    char url[1024], bearer[400];
    ebb_http_field headers[4];
    ebb_value v;
    ebb_http_call call = {.method = method, .url = url, .headers = headers};
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", s->port, path);
    if (how.token != NULL) {
        snprintf(bearer, sizeof bearer, "Bearer %s", how.token);
        headers[call.headers_n++] = (ebb_http_field){"authorization", bearer};
    }
    if (how.origin != NULL) headers[call.headers_n++] = (ebb_http_field){"origin", how.origin};
    if (how.site != NULL) headers[call.headers_n++] = (ebb_http_field){"sec-fetch-site", how.site};
    if (how.body != NULL) {
        headers[call.headers_n++] =
            (ebb_http_field){"content-type", how.type != NULL ? how.type : "application/json"};
        call.body = how.body;
        call.body_n = how.body_n != 0 ? how.body_n : strlen(how.body);
    }
    serve_forget(s);
    assert_int_equal(loop_await(s->w, ebb_http_fetch(ebb_loop_cx(s->w->loop), s->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    s->status = r->status;
    s->text = strdup(r->body);
    s->said = json_loadb(r->body, r->body_n, JSON_DECODE_ANY, NULL);
    ebb_value_discard(ebb_loop_cx(s->w->loop), v);
    return s->status;
}

LOOP_UNUSED int look(serve_world *s, const char *path) {
    return ask(s, "GET", path, (serve_ask){0});
}

LOOP_UNUSED int change(serve_world *s, const char *path, const char *body) {
    return ask(s, "POST", path, (serve_ask){.token = TOKEN, .body = body});
}

/* A member of the last answer: "error.code". "": it is not there, or no string. */
LOOP_UNUSED const json_t *member(const json_t *j, const char *path) {
    char name[64];
    while (j != NULL && *path != 0) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(name)) : json_object_get(j, name);
        path += n + (path[n] == '.');
    }
    return j;
}

LOOP_UNUSED const char *said(const serve_world *s, const char *path) {
    const char *text = json_string_value(member(s->said, path));
    return text != NULL ? text : "";
}

LOOP_UNUSED json_int_t said_number(const serve_world *s, const char *path) {
    const json_t *j = member(s->said, path);
    assert_true(json_is_integer(j));
    return json_integer_value(j);
}

LOOP_UNUSED bool said_true(const serve_world *s, const char *path) {
    return json_is_true(member(s->said, path));
}

/* Sends bytes, and returns all that comes until the server closes; free it. */
LOOP_UNUSED char *raw(serve_world *s, const char *bytes) {
    peer *p = peer_open(s->w, s->port);
    say(p, bytes);
    p->wanted = SIZE_MAX;
    loop_until(s->w, peer_has, p);
    char *got = strdup(p->got);
    peer_close(p);
    return got;
}

#endif
