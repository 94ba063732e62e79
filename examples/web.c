/* A web server: HTTP/2 and HTTP/1.1 on port 8080. Ctrl-C stops it when the last request is answered. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>

static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
    const char *name = ebb_http_param(x, "name");
    char text[80];
    (void)arg;
    snprintf(text, sizeof text, "hello, %s\n", name != NULL ? name : "world");
    return ebb_http_text(cx, x, 200, text);
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", *(uint16_t *)arg}};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/", hello, NULL);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/:name", hello, NULL);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st == EBB_OK && ebb_service_loop(cx) == 0)
        fprintf(stderr, "listening on 127.0.0.1 port %u\n", opts.address.port);
    return st;
}

int main(int argc, char **argv) {
    uint16_t port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 8080);
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(), .report = &report};
    opts.loops = EBB_SERVICE_LOOPS_ALL; /* serve runs once on each core, each time on a thread of its own */
    int status = ebb_service_run(&opts, serve, &port);
    if (status == EBB_SERVICE_FAILED)
        fprintf(stderr, "web: port %u: %s\n", port, ebb_status_text(report.status));
    return status;
}
