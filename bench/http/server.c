/* bench-http-server: our server as run.py measures it.
 *
 *   GET /            "ok", by a poll function
 *   GET /index.html  "ok", by a fiber: HPACK has both paths in its static table, so the requests have the same size
 *   GET /slow        a fiber that waits for a minute, and is cancelled before
 *   GET /slow/poll   the same as a poll function
 *   GET /count       how many of the slow ones were begun, and how many of these were cancelled
 *
 * and the routes of bodies.h.
 *
 * usage: bench-http-server [LOOPS | CERT KEY]
 *
 * It prints its port, and then, if it has a certificate, its port for TLS. It stops as every service does. */
#include <ebb/ebb.h>
#include <ebb/http.h>
#include <ebb/workflow.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"

static const uint64_t slow_ns = 60 * EBB_SECOND;
static uint64_t begun, cancelled;

static ebb_status say_ok(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, "ok");
}

/* The wait is over, or was cut short. */
static ebb_status slow_ends(ebb_cx *cx, ebb_http *x, ebb_status st) {
    if (st == EBB_CANCELLED) cancelled++;
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "ok") : st;
}

static ebb_status slow_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    begun++;
    return slow_ends(cx, x, ebb_await(cx, ebb_after(cx, slow_ns), NULL));
}

typedef struct slowness {
    ebb_future *wait;
} slowness;

static ebb_status slow_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    slowness *s = ebb_http_state(x, sizeof *s);
    (void)arg;
    if (s == NULL) return EBB_ERR_NOMEM;
    if (s->wait == NULL) {
        begun++;
        s->wait = ebb_after(cx, slow_ns);
    }
    ebb_status st = ebb_await(cx, s->wait, NULL);
    return st == EBB_PENDING ? st : slow_ends(cx, x, st);
}

static ebb_status say_count(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[48];
    (void)arg;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", begun, cancelled);
    return ebb_http_text(cx, x, 200, text);
}

static ebb_status routes(ebb_http_server *s) {
    ebb_status st = ebb_http_on_poll(s, "GET", "/", say_ok, NULL);
    if (st == EBB_OK) st = ebb_http_on(s, "GET", "/index.html", say_ok, NULL);
    if (st == EBB_OK) st = ebb_http_on(s, "GET", "/slow", slow_fiber, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/slow/poll", slow_poll, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/count", say_count, NULL);
    return st == EBB_OK ? bodies_routes(s) : st;
}

/* Resets are counted as ever, but the storm that is measured stays below the limit. */
static ebb_status listen_on(ebb_cx *cx, const ebb_tls_opts *tls) {
    ebb_http_server_opts opts = {
        .address = {"127.0.0.1", 0},
        .tls = tls,
        .limits = {.resets = 1u << 30, .resets_second = 1u << 30, .body_bytes = 1u << 30}};
    ebb_http_server *s;
    ebb_address at;
    ebb_status st = ebb_http_listen(cx, &opts, &s);
    if (st == EBB_OK) st = routes(s);
    if (st == EBB_OK) st = ebb_http_server_address(cx, s, &at);
    if (st == EBB_OK && ebb_service_loop(cx) == 0) printf("%u\n", at.port);
    return st;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    const ebb_tls_opts *tls = arg;
    ebb_status st = listen_on(cx, NULL);
    if (st == EBB_OK && tls->cert_file != NULL) st = listen_on(cx, tls);
    fflush(stdout);
    return st;
}

int main(int argc, char **argv) {
    ebb_tls_opts tls = {0};
    if (argc == 3) {
        tls.cert_file = argv[1];
        tls.key_file = argv[2];
    } else if (argc > 3) {
        fprintf(stderr, "usage: bench-http-server [LOOPS | CERT KEY]\n");
        return 2;
    }
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(),
                             .shutdown = {.name = "bench-http-server"},
                             .report = &report,
                             .loops = argc == 2 ? (uint32_t)atoi(argv[1]) : 1};
    int status = ebb_service_run(&opts, serve, &tls);
    if (status != EBB_SERVICE_OK) fprintf(stderr, "bench-http-server: %s\n", ebb_status_text(report.status));
    return status;
}
