/* A reverse proxy: it asks another server whatever is asked of it. Both bodies stream through it, with their trailers.
 *
 *   build/release/examples/proxy 8081 http://127.0.0.1:8080
 *
 * The call to the other server belongs to the region of the request: a client that leaves cancels it, and so does a
 * deadline, which travels on. The client sends a request again that the other server has not processed. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PIECE = 16384, FIELDS = 128, URL_BYTES = 8192, CONNECTIONS = 256 };
static const uint64_t patience = 30 * EBB_SECOND; /* for the head of an answer */
static ebb_http_client *client;                   /* with the connections that it keeps */

typedef struct relay {
    ebb_http *down, *up;
} relay;

/* Whether a list has a name: "close, X-Once". */
static bool has(const char *list, const char *name) {
    size_t n = 0;
    do n = strcspn(list += n + strspn(list + n, " ,"), " ,");
    while (n > 0 && (n != strlen(name) || strncasecmp(list, name, n) != 0));
    return n > 0;
}

/* A field that is about a connection and not about what it carries: these, and those that it names. */
static bool stays(const ebb_http *x, const char *name) {
    ebb_http_field f = {"connection", "connection keep-alive proxy-connection te trailer transfer-encoding "
                                      "upgrade host expect date"};
    for (size_t i = 0; strcmp(f.name, "connection") != 0 || !has(f.value, name); i++)
        if (!ebb_http_header_at(x, i, &f)) return false;
    return true;
}

/* Passes a body and its trailers on. How reading ended; *wrote says why the other side takes no more. */
static ebb_status pour(ebb_cx *cx, ebb_http *from, ebb_http *to, ebb_status *wrote) {
    char bytes[PIECE];
    ebb_http_field f;
    ebb_value n;
    ebb_status st = *wrote = EBB_OK;
    while (st == EBB_OK && *wrote == EBB_OK) {
        st = ebb_await(cx, ebb_http_read(cx, from, bytes, sizeof bytes), &n);
        if (st == EBB_OK) *wrote = ebb_await(cx, ebb_http_write(cx, to, bytes, n.as.u), NULL);
    }
    if (st != EBB_ERR_EOF) return st;
    for (size_t i = 0; ebb_http_trailer_at(from, i, &f); i++) (void)ebb_http_set_trailer(to, f.name, f.value);
    return EBB_OK;
}

/* A task of its own, beside the answer. If the client breaks off, the request has failed, and all of its region. */
static ebb_status send_up(ebb_cx *cx, void *arg) {
    const relay *r = arg;
    ebb_status wrote, st = pour(cx, r->down, r->up, &wrote); /* wrote: the answer may say why */
    if (st == EBB_OK && wrote == EBB_OK) (void)ebb_http_end(cx, r->up);
    return st;
}

static ebb_status send_down(ebb_cx *cx, relay *r) {
    ebb_http_field f;
    for (size_t i = 0; ebb_http_header_at(r->up, i, &f); i++)
        if (!stays(r->up, f.name) && ebb_http_add_header(r->down, f.name, f.value) != EBB_OK)
            (void)ebb_http_set_header(r->down, f.name, f.value); /* content-length: there is only one */
    ebb_status wrote = ebb_http_start(cx, r->down, ebb_http_status(r->up));
    ebb_status st = wrote == EBB_OK ? pour(cx, r->up, r->down, &wrote) : wrote;
    return st == EBB_OK ? wrote : st;
}

/* Asks, and waits for the head of the answer. */
static ebb_status ask(ebb_cx *cx, relay *r, const char *upstream) {
    const char *query = ebb_http_query(r->down), *mark = query[0] != 0 ? "?" : "";
    char url[URL_BYTES];
    ebb_http_field fields[FIELDS];
    ebb_value v;
    size_t n = 0;
    if (snprintf(url, URL_BYTES, "%s%s%s%s", upstream, ebb_http_path(r->down), mark, query) >= URL_BYTES)
        return EBB_ERR_INVALID;
    for (size_t i = 0; n < FIELDS && ebb_http_header_at(r->down, i, &fields[n]); i++)
        if (!stays(r->down, fields[n].name)) n++;
    ebb_http_call call = {.method = ebb_http_method(r->down), .url = url, .headers = fields, .headers_n = n};
    call.streams = ebb_http_has_body(r->down);
    ebb_status st = ebb_await(cx, ebb_within(cx, ebb_http_open(cx, client, &call), patience), &v);
    if (st == EBB_OK) r->up = ebb_http_of(cx, v);
    if (st != EBB_OK || !call.streams) return st;
    st = ebb_id_status(ebb_fiber_spawn(cx, ebb_cx_region(cx), send_up, r).id); /* no: the service stops */
    if (st != EBB_OK) return st;
    return ebb_await(cx, ebb_within(cx, ebb_http_response_head(cx, r->up), patience), NULL);
}

static ebb_status pass_on(ebb_cx *cx, ebb_http *x, void *arg) {
    relay *r = ebb_http_state(x, sizeof *r); /* as old as the exchange: send_up may outlive this handler */
    if (r == NULL) return EBB_ERR_NOMEM;
    r->down = x;
    ebb_status st = ask(cx, r, arg);
    if (st == EBB_OK) return send_down(cx, r);
    int status = st == EBB_TIMEOUT ? 504 : st == EBB_ERR_CLOSED ? 503 : st == EBB_ERR_INVALID ? 400 : 502;
    return ebb_http_text(cx, x, status, "the other server does not answer\n");
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    char **argv = arg;
    ebb_http_server *server;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", (uint16_t)atoi(argv[1])}};
    ebb_status st = ebb_http_client_new(cx, &(ebb_http_client_opts){.connections = CONNECTIONS}, &client);
    if (st == EBB_OK) st = ebb_http_listen(cx, &opts, &server);
    if (st == EBB_OK) st = ebb_http_on(server, "*", "/*path", pass_on, argv[2]);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, &opts.address);
    if (st == EBB_OK) fprintf(stderr, "listening on 127.0.0.1 port %u\n", opts.address.port);
    else fprintf(stderr, "proxy: port %s: %s\n", argv[1], ebb_status_text(st));
    return st;
}

int main(int argc, char **argv) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    if (argc == 3) return ebb_service_run(&opts, serve, argv);
    return fprintf(stderr, "usage: proxy PORT UPSTREAM\n"), 2;
}
