/* http_loops_server: an HTTP server on several loops, for tests.
 *
 *   GET /where    the number of the loop that answers
 *   GET /p/slow   answers after ?ms=N, by a poll function
 *   GET /hang     answers after an hour, unless it is cancelled
 *   GET /fail     has the loop that answers fail
 *   GET /room     the connections that the loop has room for
 *
 * It prints "port N" when all loops listen, and stops as every service does. */
#include <ebb/ebb.h>
#include <ebb/http.h>
#include <ebb/workflow.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOPS_MOST = 16 };

typedef struct setup {
    uint32_t loops;
    ebb_address address;
    ebb_audit *audit;
    const char *trace, *journal;
    uint64_t budget_ns;
    const char *fail_on; /* the loop whose function fails; NULL: none */
    _Atomic uint32_t listening;
} setup;

static bool fails[LOOPS_MOST]; /* each of its own loop */

static ebb_status where(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[16];
    (void)arg;
    snprintf(text, sizeof text, "%u", ebb_service_loop(cx));
    return ebb_http_text(cx, x, 200, text);
}

typedef struct slowness {
    ebb_future *wait;
} slowness;

static ebb_status slow(ebb_cx *cx, ebb_http *x, void *arg) {
    slowness *s = ebb_http_state(x, sizeof *s);
    const char *query = strstr(ebb_http_query(x), "ms=");
    uint64_t ms = arg != NULL ? 3600000 : query == NULL ? 1 : strtoull(query + 3, NULL, 10);
    if (s == NULL) return EBB_ERR_NOMEM;
    if (s->wait == NULL) s->wait = ebb_after(cx, ms * EBB_MS);
    ebb_status st = ebb_await(cx, s->wait, NULL);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "ok") : st;
}

static ebb_status fail(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    fails[ebb_service_loop(cx)] = true;
    return ebb_http_text(cx, x, 200, "failed");
}

static ebb_status room(ebb_cx *cx, ebb_http *x, void *server) {
    ebb_http_limits limits;
    char text[16];
    ebb_http_server_limits_of(server, &limits);
    snprintf(text, sizeof text, "%u", limits.connections);
    return ebb_http_text(cx, x, 200, text);
}

static ebb_status routes(ebb_http_server *s) {
    static char hang;
    ebb_status st = ebb_http_on_poll(s, "GET", "/where", where, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/p/slow", slow, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/hang", slow, &hang);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/fail", fail, NULL);
    if (st == EBB_OK) st = ebb_http_on_poll(s, "GET", "/room", room, s);
    return st;
}

static void tell_port(const ebb_address *at) {
    printf("port %u\n", at->port);
    fflush(stdout);
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    setup *s = arg;
    ebb_http_server_opts opts = {.address = s->address};
    ebb_http_server *server;
    uint32_t loop = ebb_service_loop(cx);
    ebb_status st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = routes(server);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st != EBB_OK) return st;
    if (atomic_fetch_add(&s->listening, 1) + 1 == s->loops) tell_port(&opts.address);
    if (s->fail_on == NULL || (uint32_t)atoi(s->fail_on) != loop) return EBB_OK;
    while (!fails[loop]) {
        st = ebb_await(cx, ebb_after(cx, 5 * EBB_MS), NULL);
        if (st != EBB_OK) return st;
    }
    return EBB_FAILED;
}

static int wrong(const char *what) {
    fprintf(stderr, "http_loops_server: %s\n", what);
    return 2;
}

int main(int argc, char **argv) {
    setup s = {.loops = 1, .address = {"127.0.0.1", 0}};
    ebb_workflow_report report = {0};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *what = argv[i], *value = argv[i + 1];
        if (strcmp(what, "--loops") == 0) s.loops = (uint32_t)atoi(value);
        else if (strcmp(what, "--port") == 0) s.address.port = (uint16_t)atoi(value);
        else if (strcmp(what, "--budget-ms") == 0) s.budget_ns = strtoull(value, NULL, 10) * EBB_MS;
        else if (strcmp(what, "--fail-on") == 0) s.fail_on = value;
        else if (strcmp(what, "--trace") == 0) s.trace = value;
        else if (strcmp(what, "--journal") == 0) s.journal = value;
        else if (strcmp(what, "--audit") != 0) return wrong(what);
        else if (ebb_audit_open(ebb_libc_allocator(), value, &s.audit) != EBB_OK) return wrong(value);
    }
    if (s.loops == 0 || s.loops > LOOPS_MOST) return wrong("--loops");
    ebb_status recording = EBB_OK;
    ebb_service_opts opts = {.loop = {.runtime.allocator = ebb_libc_allocator(),
                                      .trace_file = s.trace,
                                      .journal_file = s.journal,
                                      .recording = &recording},
                             .shutdown = {.name = "loops", .budget = s.budget_ns, .audit = s.audit},
                             .report = &report,
                             .loops = s.loops};
    int status = ebb_service_run(&opts, serve, &s);
    ebb_audit_close(s.audit);
    if (recording != EBB_OK) fprintf(stderr, "recording: %s\n", ebb_status_name(recording));
    if (status == EBB_SERVICE_FAILED) return fprintf(stderr, "%s\n", ebb_status_name(report.status)), status;
    return status;
}
