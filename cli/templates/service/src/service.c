/* service.c - the service: who asks is greeted. */
#include "service.h"

#include <stdio.h>

static ebb_status greet(ebb_cx *cx, ebb_http *x, void *arg) {
    const char *name = ebb_http_param(x, "name");
    char text[80];
    (void)arg;
    snprintf(text, sizeof text, "hello, %s\n", name != NULL ? name : "world");
    return ebb_http_text(cx, x, 200, text);
}

ebb_status service_begin(ebb_cx *cx, void *arg) {
    ebb_http_server *server;
    const ebb_http_server_opts opts = {.address = *(const ebb_address *)arg};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/", greet, NULL);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/:name", greet, NULL);
    return st;
}
