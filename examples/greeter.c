/* A TCP service that stops in good order: you send it your name, and it greets you.
 *
 *   build/release/examples/greeter 7000 greeter.audit
 *   echo Ada | nc -N 127.0.0.1 7000
 *   build/release/ebb audit verify greeter.audit      # after SIGTERM, or Ctrl-C
 *
 * Asked to stop, it closes its root region and all that is below. No part is told by hand: the accept fails
 * with EBB_ERR_CLOSED, who waits for a line hears it by ebb_closing, and who is being greeted is greeted to
 * the end. The drain handler runs beside all that and waits for the last to leave. */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct greeter { /* one a process, and in main: it outlives every task */
    uint16_t port;
    ebb_listener listener;
    ebb_task acceptor; /* accepts; it has ended when its last connection has */
} greeter;

static uint64_t greeted; /* names; a connection's argument is its stream alone */

/* Reads more, unless the service stops first: then EBB_ERR_CLOSED. */
static ebb_status read_more(ebb_cx *cx, ebb_stream s, char line[64], size_t *have) {
    ebb_value v;
    ebb_future *either[] = {ebb_stream_read(cx, s, line + *have, 64 - *have), ebb_closing(cx)};
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, either), &v);
    if (st != EBB_OK) return st;
    const ebb_selected *first = ebb_selected_of(&v);
    if (first->index == 0) *have += first->value.as.u;
    else st = EBB_ERR_CLOSED;
    ebb_value_discard(cx, v);
    return st;
}

/* Takes the name out of the line and answers. */
static ebb_status answer(ebb_cx *cx, ebb_stream s, char line[64], size_t *have, size_t length) {
    char text[80];
    int n = snprintf(text, sizeof text, "hello, %.*s\n", (int)length, line);
    size_t used = length < *have ? length + 1 : length; /* with its newline */
    *have -= used;
    memmove(line, line + used, *have);
    greeted++;
    return ebb_await(cx, ebb_stream_write(cx, s, text, (size_t)n), NULL);
}

/* One connection. A name that does not fit is greeted in pieces. */
static ebb_status greet(ebb_cx *cx, void *arg) {
    ebb_stream s = {(uintptr_t)arg};
    char line[64];
    size_t have = 0;
    ebb_status st = EBB_OK;
    while (st == EBB_OK) {
        const char *end = memchr(line, '\n', have);
        if (end == NULL && have < sizeof line) st = read_more(cx, s, line, &have);
        else st = answer(cx, s, line, &have, end == NULL ? have : (size_t)(end - line));
    }
    (void)ebb_stream_close(cx, s);
    return EBB_OK; /* a client that breaks off is no failure of the service */
}

/* Accepts until the service stops, and then waits for its connections: if it returned before, they would be
 * cancelled. */
static ebb_status accept_all(ebb_cx *cx, void *arg) {
    const greeter *g = arg;
    ebb_region guests = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_listener_accept(cx, g->listener), &v);
        if (st == EBB_ERR_CLOSED || st == EBB_CANCELLED) return ebb_region_join(cx, guests);
        if (st != EBB_OK) (void)ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL); /* no memory, perhaps */
        else if (ebb_id_status(ebb_fiber_spawn(cx, guests, greet, v.as.p).id) != EBB_OK)
            (void)ebb_stream_close(cx, ebb_stream_of(v)); /* too many */
    }
}

/* The drain handler. */
static ebb_status farewell(ebb_cx *cx, ebb_drain *d, void *arg) {
    const greeter *g = arg;
    char names[24];
    ebb_status st = ebb_task_join(cx, g->acceptor);
    snprintf(names, sizeof names, "%" PRIu64, greeted);
    ebb_drain_evidence(d, "greeted", names);
    return st;
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    greeter *g = arg;
    ebb_address at = {"127.0.0.1", g->port};
    g->listener = ebb_tcp_listen(cx, &at);
    ebb_status st = ebb_listener_address(cx, g->listener, &at); /* an error of listening sticks to its id */
    if (st == EBB_OK) st = ebb_workflow_on_drain_fiber(cx, ebb_workflow_of(cx), "farewell", farewell, g);
    if (st != EBB_OK) return st;
    printf("listening on %s port %u\n", at.ip, at.port);
    fflush(stdout);
    g->acceptor = ebb_fiber_spawn(cx, ebb_cx_region(cx), accept_all, g, &(ebb_task_opts){.keep = true});
    return ebb_id_status(g->acceptor.id);
}

int main(int argc, char **argv) {
    greeter g = {.port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0)};
    ebb_audit *audit = NULL;
    ebb_workflow_report report = {0};
    ebb_status st = argc > 2 ? ebb_audit_open(ebb_libc_allocator(), argv[2], &audit) : EBB_OK;
    if (st != EBB_OK) fprintf(stderr, "greeter: %s: %s\n", argv[2], ebb_status_text(st));
    if (st != EBB_OK) return EBB_SERVICE_FAILED;
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator(),
                             .shutdown = {.name = "greeter", .audit = audit},
                             .report = &report};
    int status = ebb_service_run(&opts, serve, &g);
    if (status == EBB_SERVICE_FAILED)
        fprintf(stderr, "greeter: port %u: %s\n", g.port, ebb_status_text(report.status));
    if (report.audit != EBB_OK) fprintf(stderr, "greeter: the audit log is not whole\n");
    printf("greeted %" PRIu64 ", stopped in %" PRIu64 " ms\n", greeted, report.elapsed / EBB_MS);
    ebb_audit_close(audit);
    return status;
}
