/* Guide: an HTTP handler that streams, and a call with a timeout. */
#include <ebb/ebb.h>
#include <stdio.h>

/* A write waits while the client does not read. If the client goes away the next await says so. */
static ebb_status count(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    ebb_status st = ebb_http_start(cx, x, 200);
    for (int i = 1; i <= 3 && st == EBB_OK; i++) {
        char line[16];
        int n = snprintf(line, sizeof line, "%d\n", i);
        st = ebb_await(cx, ebb_http_write(cx, x, line, (size_t)n), NULL);
        if (st == EBB_OK) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    }
    return st; /* EBB_OK ends the response */
}

static ebb_status hang(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)x;
    (void)arg;
    return ebb_await(cx, ebb_after(cx, 60 * EBB_SECOND), NULL); /* cancelled with its client */
}

/* Prints the body, or why there is none. */
static ebb_status fetch(ebb_cx *cx, ebb_http_client *client, const char *url, uint64_t span) {
    ebb_http_call call = {.url = url, .deadline = ebb_now(cx) + span};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_http_fetch(cx, client, &call), &v);
    if (st != EBB_OK) return st; /* EBB_TIMEOUT: the stream was reset */
    const ebb_http_response *r = ebb_http_response_of(&v);
    const char *type = ebb_http_response_header(r, "content-type");
    printf("%d: %zu bytes of %s\n", r->status, r->body_n, type == NULL ? "any type" : type);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

/* Only the beginning of the body; the rest is not sent any more. */
static ebb_status peek(ebb_cx *cx, ebb_http_client *client, const char *url) {
    ebb_value v;
    char bytes[2];
    ebb_status st = ebb_await(cx, ebb_http_open(cx, client, &(ebb_http_call){.url = url}), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &v);
    if (st == EBB_OK) printf("begins with %.*s", (int)v.as.u, bytes);
    ebb_http_close(cx, x);
    return st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    ebb_http_server *server;
    ebb_http_client *client;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", 0}};
    char url[64];
    (void)arg;
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/count", count, NULL);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/hang", hang, NULL);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st == EBB_OK) st = ebb_http_client_new(cx, NULL, &client);
    if (st != EBB_OK) return st;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/count", opts.address.port);
    printf("count: %s\n", ebb_status_name(fetch(cx, client, url, 30 * EBB_SECOND)));
    printf("peek: %s\n", ebb_status_name(peek(cx, client, url)));
    snprintf(url, sizeof url, "http://127.0.0.1:%u/hang", opts.address.port);
    printf("hang: %s\n", ebb_status_name(fetch(cx, client, url, 100 * EBB_MS)));
    ebb_region_cancel(cx, ebb_http_server_region(server), EBB_CANCEL_USER, "done");
    return EBB_OK;
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, NULL, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK || st == EBB_CANCELLED ? 0 : 1;
}
