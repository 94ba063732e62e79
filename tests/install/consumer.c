/* A program of a user: a service with an HTTP server and a client that fetches from it. All layers are linked. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

static ebb_status answer(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, "ebb");
}

static ebb_status fetch(ebb_cx *cx, const ebb_address *from, int *status) {
    ebb_http_client *client;
    ebb_value v = ebb_value_none();
    char url[80];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", from->port);
    ebb_status st =
        ebb_http_client_new(cx, &(ebb_http_client_opts){.size = sizeof(ebb_http_client_opts)}, &client);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_get(cx, client, url), &v);
    if (st != EBB_OK) return st;
    *status = ebb_http_response_of(&v)->status;
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb_http_server *server;
    ebb_address address;
    ebb_status st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = {"127.0.0.1", 0}}, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/", answer, NULL);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &address);
    if (st == EBB_OK) st = fetch(cx, &address, arg);
    (void)ebb_workflow_request(cx, ebb_workflow_of(cx), EBB_CANCEL_USER, "the work is done");
    return st;
}

int main(void) {
    int status = 0;
    char version[32];
    ebb_service_opts opts = {.size = sizeof opts, .loop.runtime.allocator = ebb_libc_allocator()};
    snprintf(version, sizeof version, "%d.%d.%d", EBB_VERSION_MAJOR, EBB_VERSION_MINOR, EBB_VERSION_PATCH);
    if (strcmp(version, ebb_version()) != 0) return 10;
    int code = ebb_service_run(&opts, serve, &status);
    printf("ebb %s exit %d http %d\n", ebb_version(), code, status);
    return code;
}
