/* A line protocol over TCP. Each connection is a fiber; so is the one that accepts them. When the
 * service stops, that one ends, and so do those that are idle; a drain handler waits until the last has
 * left, and then closes the door. Until then whoever comes is told why there is no new work; who is still in
 * the queue of the system when the door closes is reset. */
#include <stdio.h>
#include <string.h>

#include "service.h"

enum { SEATS = 256 };

typedef struct server server;

typedef struct connection {
    bool used;
    server *server;
    ebb_stream stream;
    char line[LINE_BYTES]; /* what was read and not answered yet */
    size_t n;
} connection;

struct server {
    service service;
    ebb_listener listener;
    ebb_sem free_seats; /* a seat is a connection: who has taken all of them knows that nobody is left */
    connection seats[SEATS];
    operators operators;
};

/* ---- connections ------------------------------------------------------------------------------------- */

/* Reads more, unless the service stops first: then EBB_ERR_CLOSED. */
static ebb_status read_more(ebb_cx *cx, connection *c) {
    ebb_value v;
    ebb_future *either[] = {ebb_stream_read(cx, c->stream, c->line + c->n, sizeof c->line - c->n),
                            ebb_closing(cx)};
    ebb_status st = ebb_await(cx, ebb_select(cx, 2, either), &v);
    if (st != EBB_OK) return st;
    const ebb_selected *first = ebb_selected_of(&v);
    if (first->index == 0) c->n += first->value.as.u;
    st = first->index == 0 ? EBB_OK : EBB_ERR_CLOSED;
    ebb_value_discard(cx, v);
    return st;
}

/* Takes a line out of what was read. False: there is no whole one. */
static bool take_line(connection *c, char out[LINE_BYTES]) {
    char *end = memchr(c->line, '\n', c->n);
    if (end == NULL) return false;
    size_t n = (size_t)(end - c->line);
    memcpy(out, c->line, n);
    if (n > 0 && out[n - 1] == '\r') n--;
    out[n] = 0;
    c->n -= (size_t)(end - c->line) + 1;
    memmove(c->line, end + 1, c->n);
    return true;
}

static ebb_status converse(ebb_cx *cx, connection *c) {
    char line[LINE_BYTES];
    ebb_status st = EBB_OK;
    while (st == EBB_OK) {
        if (ebb_stopping(cx)) st = EBB_ERR_CLOSED;
        else if (take_line(c, line)) st = request_answer(cx, &c->server->service, c->stream, line);
        else if (c->n < sizeof c->line) st = read_more(cx, c);
        else return say(cx, c->stream, "error: expected a line of less than %d bytes", LINE_BYTES);
    }
    return st == EBB_ERR_CLOSED ? say_closed(cx, &c->server->service, c->stream) : st;
}

static ebb_status serve_one(ebb_cx *cx, void *arg) {
    connection *c = arg;
    (void)converse(cx, c); /* a client that breaks off is no failure of the service */
    (void)ebb_stream_close(cx, c->stream);
    c->used = false;
    ebb_sem_release(cx, &c->server->free_seats);
    return EBB_OK;
}

/* ---- the door ---------------------------------------------------------------------------------------- */

static void refuse(ebb_cx *cx, server *s, ebb_stream stream, ebb_status why) {
    if (why == EBB_ERR_CLOSED) (void)say_closed(cx, &s->service, stream);
    else (void)say(cx, stream, "error: %s", ebb_status_text(why));
    (void)ebb_stream_close(cx, stream);
}

/* There is a seat for it. */
static void admit(ebb_cx *cx, server *s, ebb_stream stream) {
    connection *c = s->seats;
    while (c->used) c++;
    *c = (connection){.used = true, .server = s, .stream = stream};
    ebb_status st = ebb_id_status(ebb_fiber_spawn(cx, ebb_cx_region(cx), serve_one, c).id);
    if (st == EBB_OK) return;
    c->used = false;
    ebb_sem_release(cx, &s->free_seats);
    refuse(cx, s, stream, st);
}

/* The next one who comes. A failure is not the end: out of memory, perhaps, and soon there is some
 * again. */
static ebb_status next(ebb_cx *cx, server *s, ebb_stream *out) {
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_listener_accept(cx, s->listener), &v);
        if (st == EBB_OK) *out = ebb_stream_of(v);
        if (st == EBB_OK || st == EBB_ERR_CLOSED || st == EBB_CANCELLED) return st;
        fprintf(stderr, "service: can't accept: %s\n", ebb_status_text(st));
        st = ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL);
        if (st != EBB_OK) return st;
    }
}

/* Until the service stops: then the next says EBB_ERR_CLOSED. Whoever waits for a seat waits in the queue
 * of the system. */
static ebb_status accept_all(ebb_cx *cx, server *s) {
    ebb_stream stream;
    for (;;) {
        ebb_wait wait = {0};
        ebb_status st = next(cx, s, &stream);
        if (st == EBB_OK) st = ebb_sem_acquire(cx, &s->free_seats, &wait);
        if (st != EBB_OK) return st == EBB_ERR_CLOSED || st == EBB_CANCELLED ? EBB_OK : st;
        admit(cx, s, stream);
    }
}

/* While it drains, in the region of the drain: that one admits work. */
static ebb_status turn_away(ebb_cx *cx, void *arg) {
    server *s = arg;
    ebb_stream stream;
    while (next(cx, s, &stream) == EBB_OK) refuse(cx, s, stream, EBB_ERR_CLOSED);
    return EBB_OK; /* the door is closed, or the time is over */
}

/* Takes one seat after the other; those that are taken come back when their connections end. */
static ebb_status close_door(ebb_cx *cx, ebb_drain *d, void *arg) {
    server *s = arg;
    uint32_t empty = s->free_seats.free, ended = 0;
    char text[40];
    (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), turn_away, s);
    for (uint32_t i = 0; i < SEATS; i++) {
        ebb_wait wait = {0};
        if (ebb_sem_acquire(cx, &s->free_seats, &wait) != EBB_OK) break; /* the time is over */
        ended = i < empty ? 0 : i + 1 - empty;
        ebb_drain_progress(d, ended, SEATS - empty);
    }
    (void)ebb_listener_close(cx, s->listener);
    snprintf(text, sizeof text, "%u of %u", ended, SEATS - empty);
    ebb_drain_evidence(d, "connections_ended", text);
    return EBB_OK;
}

static ebb_status open_door(ebb_cx *cx, server *s, uint16_t port) {
    ebb_address at = {"127.0.0.1", port};
    s->listener = ebb_tcp_listen(cx, &at);
    ebb_status st = ebb_listener_address(cx, s->listener, &at);
    if (st != EBB_OK) {
        fprintf(stderr, "service: can't listen on %s port %u: %s\n", at.ip, at.port, ebb_status_text(st));
        return st;
    }
    ebb_sem_init(&s->free_seats, SEATS);
    st = ebb_workflow_on_drain_fiber(cx, ebb_workflow_of(cx), "door", close_door, s);
    printf("listening on %s port %u\n", at.ip, at.port);
    fflush(stdout);
    return st;
}

ebb_status server_run(ebb_cx *cx, void *arg) {
    static server s; /* one a process; it outlives the loop */
    const server_opts *opts = arg;
    ebb_status st = service_open(cx, &s.service, ebb_workflow_of(cx));
    s.operators = (operators){.service = &s.service, .port = opts->operator_port};
    if (st == EBB_OK && opts->operated) st = operators_open(cx, &s.operators);
    if (st == EBB_OK) st = open_door(cx, &s, opts->port);
    return st == EBB_OK ? accept_all(cx, &s) : st;
}
