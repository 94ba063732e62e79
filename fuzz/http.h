/* What the fuzz targets of HTTP share: one server in this process, and a connection to it for each input.
 *
 * The first byte of an input decides how it is cut into pieces, since a frame may come in any number of them;
 * the rest is what the client sends. Then the client goes, and nothing of it may be left. */
#ifndef FUZZ_HTTP_H
#define FUZZ_HTTP_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http.h"
#include <ebb/ebb.h>

enum { FUZZ_TURNS = 64 };

typedef struct fuzz_server {
    uv_loop_t uv;
    ebb_loop *loop;
    ebb_http_server *http;
} fuzz_server;

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static ebb_status fuzz_hello(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, ebb_http_param(x, "name") != NULL ? ebb_http_param(x, "name") : "hello");
}

static ebb_status fuzz_echo(ebb_cx *cx, ebb_http *x, void *arg) {
    char bytes[512];
    ebb_value n;
    ebb_status st;
    (void)arg;
    while ((st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &n)) == EBB_OK) {
        st = ebb_await(cx, ebb_http_write(cx, x, bytes, n.as.u), NULL);
        if (st != EBB_OK) return st;
    }
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status fuzz_hang(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)x;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_future_never(cx), NULL);
    require(ebb_http_text(cx, x, 200, "late") == EBB_ERR_CLOSED, "a cancelled handler could answer");
    return st;
}

static fuzz_server *fuzz_server_get(void) {
    static fuzz_server s;
    if (s.http != NULL) return &s;
    ebb_http_server_opts opts = {
        .address = {"127.0.0.1", 0},
        .limits = {.streams = 8, .headers = 16, .header_bytes = 2048, .body_bytes = 4096}};
    require(uv_loop_init(&s.uv) == 0, "no loop");
    ebb_loop_opts loop = {.runtime.allocator = ebb_libc_allocator()};
    require(ebb_loop_attach(&s.uv, &loop, &s.loop) == EBB_OK, "not attached");
    require(ebb_http_listen(ebb_loop_cx(s.loop), &opts, &s.http) == EBB_OK, "not listening");
    require(ebb_http_on_poll(s.http, "GET", "/", fuzz_hello, NULL) == EBB_OK, "no route");
    require(ebb_http_on(s.http, "*", "/hello/:name", fuzz_hello, NULL) == EBB_OK, "no route");
    require(ebb_http_on(s.http, "*", "/echo", fuzz_echo, NULL) == EBB_OK, "no route");
    require(ebb_http_on(s.http, "*", "/hang/*rest", fuzz_hang, NULL) == EBB_OK, "no route");
    return &s;
}

static void fuzz_turn(fuzz_server *s, int client) {
    char bytes[4096];
    (void)uv_run(&s->uv, UV_RUN_NOWAIT);
    while (read(client, bytes, sizeof bytes) > 0) continue;
}

static void fuzz_connection(const uint8_t *data, size_t n, size_t piece) {
    fuzz_server *s = fuzz_server_get();
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ebb_stream stream = ebb_stream_adopt(ebb_loop_cx(s->loop), ends[1]);
    require(ebb_id_status(stream.id) == EBB_OK, "not adopted");
    ebb__server_add_connection(ebb_loop_cx(s->loop), s->http, stream);
    for (size_t at = 0; at < n;) {
        size_t k = n - at < piece ? n - at : piece;
        ssize_t sent = send(ends[0], data + at, k, MSG_NOSIGNAL);
        fuzz_turn(s, ends[0]);
        if (sent <= 0) break;
        at += (size_t)sent;
    }
    for (int i = 0; i < 4; i++) fuzz_turn(s, ends[0]);
    close(ends[0]);
    uint64_t began = uv_hrtime(); /* most need some turns, a few a timer of milliseconds */
    for (int i = 0; s->http->conns != NULL && (i < FUZZ_TURNS || uv_hrtime() - began < 3 * EBB_SECOND); i++)
        (void)uv_run(&s->uv, UV_RUN_NOWAIT);
    require(s->http->conns == NULL && s->http->stats.exchanges == 0, "a connection is left");
}

#endif
