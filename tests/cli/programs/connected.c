/* A service that records its trace: connected TRACE [PORT]. GET /order starts a durable order, whose activity asks a
 * machine, and answers when the order has ended. GET /front asks the service at PORT for its /order. It prints its port,
 * and ends with SIGTERM. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, SUM, KINDS };

typedef struct shop {
    const char *port; /* of the other service; NULL: none */
    ebb_http_client *client;
    ebb_store *store;
    ebb_machines *machines;
    ebb_machine counter;
} shop;

/* ---- the machine ------------------------------------------------------------------------------------------- */

static ebb_status on_add(ebb_machines *ms, void *self, const ebb_message *m) {
    uint64_t *sum = self;
    *sum += *(const uint64_t *)m->payload;
    return ebb_machine_reply(ms, m->request, SUM, sum, sizeof *sum);
}

static const ebb_machine_rule table[KINDS] = {[ADD] = {on_add, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type type = {.name = "Counter",
                                      .states = &state,
                                      .table = table,
                                      .fields = sizeof(uint64_t),
                                      .n_states = 1,
                                      .columns = KINDS};

/* ---- the order --------------------------------------------------------------------------------------------- */

static ebb_status pack(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    shop *s = ebb_activity_arg(a);
    const uint64_t one = 1;
    (void)in;
    (void)out;
    return ebb_await(cx, ebb_machine_ask(cx, s->machines, s->counter, ADD, &one, sizeof one, 0), NULL);
}

static ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "pack", in, NULL), out);
}

static ebb_status on_order(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    const ebb_start_opts opts = {.id = "order-7", .name = "order"};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s->store, &opts), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s->store, "order-7"), NULL);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "packed\n") : st;
}

static ebb_status on_front(ebb_cx *cx, ebb_http *x, void *arg) {
    shop *s = arg;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%s/order", s->port != NULL ? s->port : "1");
    ebb_status st = ebb_await(cx, ebb_http_get(cx, s->client, url), NULL);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "done\n") : st;
}

/* ---- the service ------------------------------------------------------------------------------------------- */

static ebb_status open_durable(ebb_cx *cx, shop *s) {
    ebb_worker *w;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = "lab:"}), &v);
    if (st != EBB_OK) return st;
    s->store = ebb_store_of(&v);
    st = ebb_worker_open(cx, s->store, NULL, &w);
    if (st == EBB_OK) st = ebb_worker_activity(w, "pack", pack, s, NULL);
    if (st == EBB_OK) st = ebb_worker_orch(w, "order", 1, order);
    return st == EBB_OK ? ebb_worker_begin(w) : st;
}

static ebb_status open_machines(ebb_cx *cx, shop *s) {
    ebb_status st = ebb_machines_open(cx, &s->machines, &(ebb_machines_opts){.n_kinds = KINDS});
    if (st != EBB_OK) return st;
    s->counter = ebb_machine_spawn(s->machines, &type, 0, NULL);
    return ebb_machine_start(s->machines, s->counter);
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", 0}};
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_client_new(cx, NULL, &s->client);
    if (st == EBB_OK) st = open_machines(cx, s);
    if (st == EBB_OK) st = open_durable(cx, s);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/order", on_order, s);
    if (st == EBB_OK) st = ebb_http_on(server, "GET", "/front", on_front, s);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st != EBB_OK) return st;
    printf("%u\n", opts.address.port);
    fflush(stdout);
    return ebb_await(cx, ebb_closing(cx), NULL); /* the machines end with this task */
}

int main(int argc, char **argv) {
    shop s = {.port = argc > 2 ? argv[2] : NULL};
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(), .report = &report};
    if (argc < 2) return EXIT_FAILURE;
    opts.loop.trace_file = argv[1];
    int status = ebb_service_run(&opts, serve, &s);
    if (report.status != EBB_OK) fprintf(stderr, "connected: %s\n", ebb_status_text(report.status));
    if (s.machines != NULL) (void)ebb_machines_free(s.machines);
    return status;
}
