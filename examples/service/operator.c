/* For whoever operates the service, over HTTP. It answers while all the rest stops, and is the last to go:
 *
 *   GET  /explain      what the shutdown waits for
 *   POST /extend/MS    gives it so much more time
 *   POST /force        ends it now
 *
 * Every answer is text: "ok", or why it is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

typedef struct text {
    char bytes[8192];
    size_t n;
} text;

static void add(void *ctx, const char *piece, size_t n) {
    text *t = ctx;
    if (n > sizeof t->bytes - t->n) n = sizeof t->bytes - t->n;
    memcpy(t->bytes + t->n, piece, n);
    t->n += n;
}

static ebb_status explain(ebb_cx *cx, ebb_http *x, void *arg) {
    const service *s = arg;
    text t = {.n = 0};
    ebb_status st = ebb_workflow_explain(cx, s->lifecycle, add, &t);
    return st == EBB_OK ? ebb_http_reply(cx, x, 200, "text/plain", t.bytes, t.n) : st;
}

static ebb_status answer(ebb_cx *cx, ebb_http *x, const service *s, ebb_status st) {
    char why[400];
    if (st == EBB_OK) return ebb_http_text(cx, x, 200, "ok\n");
    snprintf(why, sizeof why, "%s: %s\n", ebb_status_text(st), ebb_workflow_refusal(cx, s->lifecycle));
    return ebb_http_text(cx, x, 409, why);
}

static ebb_status extend(ebb_cx *cx, ebb_http *x, void *arg) {
    const service *s = arg;
    const char *ms = ebb_http_param(x, "ms");
    unsigned long more = ms == NULL ? 0 : strtoul(ms, NULL, 10);
    if (more == 0 || more > 3600000) return ebb_http_text(cx, x, 400, "expected 1 to 3600000 ms\n");
    return answer(cx, x, s, ebb_workflow_extend(cx, s->lifecycle, more * EBB_MS));
}

static ebb_status force(ebb_cx *cx, ebb_http *x, void *arg) {
    const service *s = arg;
    return answer(cx, x, s, ebb_workflow_force(cx, s->lifecycle, "the operator"));
}

/* In the operators' region: the server that it starts lives there too, and not in what is stopped. */
static ebb_status listen_here(ebb_cx *cx, void *arg) {
    operators *o = arg;
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", o->port}};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/explain", explain, o->service);
    if (st == EBB_OK) st = ebb_http_on(server, "POST", "/extend/:ms", extend, o->service);
    if (st == EBB_OK) st = ebb_http_on(server, "POST", "/force", force, o->service);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st == EBB_OK) printf("operators on 127.0.0.1 port %u\n", opts.address.port);
    else fprintf(stderr, "service: port %u: %s\n", o->port, ebb_status_text(st));
    return st;
}

ebb_status operators_open(ebb_cx *cx, operators *o) {
    ebb_region region = ebb_workflow_operator_region(cx, o->service->lifecycle);
    ebb_task task = ebb_fiber_spawn(cx, region, listen_here, o, &(ebb_task_opts){.keep = true});
    ebb_status st = ebb_id_status(task.id);
    return st == EBB_OK ? ebb_task_join(cx, task) : st;
}
