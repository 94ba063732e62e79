/* A chat: each line that a client sends goes to all others.
 *
 *   build/release/examples/chat 7000        and then, in several terminals: nc 127.0.0.1 7000
 *
 * A guest has a region with two fibers: one reads its lines, the other writes what the others say. Between them and the
 * others is a channel of a few lines: a guest that reads too slowly loses lines and learns how many, and nobody waits
 * for it. When reading ends, whatever the reason, the region is cancelled, and its finalizer removes the guest. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 256, BEHIND = 16 };

typedef struct line {
    size_t n;
    char text[LINE];
} line;

typedef struct guest {
    struct guest *next, **where; /* in the list of all, and the pointer to it there */
    ebb_stream stream;
    ebb_chan *lines; /* for this guest */
    unsigned lost;
} guest;

static guest *guests;

static void tell_others(ebb_cx *cx, const guest *from, const line *l) {
    for (guest *g = guests; g != NULL; g = g->next)
        if (g != from && ebb_chan_try_send(cx, g->lines, l) != EBB_OK) g->lost++;
}

static ebb_status write_lines(ebb_cx *cx, void *arg) {
    guest *g = arg;
    line l;
    ebb_status st = EBB_OK;
    while (st == EBB_OK) {
        ebb_wait w = {0};
        st = ebb_chan_recv(cx, g->lines, &w, &l);
        if (st == EBB_OK) st = ebb_await(cx, ebb_stream_write(cx, g->stream, l.text, l.n), NULL);
        if (st != EBB_OK || g->lost == 0) continue;
        l.n = (size_t)snprintf(l.text, LINE, "(%u lines are lost)\n", g->lost);
        g->lost = 0;
        st = ebb_await(cx, ebb_stream_write(cx, g->stream, l.text, l.n), NULL);
    }
    return st == EBB_CANCELLED ? st : EBB_OK; /* a guest that breaks off is no failure */
}

static ebb_status read_lines(ebb_cx *cx, void *arg) {
    guest *g = arg;
    char bytes[LINE];
    line l = {.n = 0};
    ebb_value n;
    while (ebb_await(cx, ebb_stream_read(cx, g->stream, bytes, sizeof bytes), &n) == EBB_OK) {
        for (uint64_t i = 0; i < n.as.u; i++) {
            if (l.n < LINE - 1 || bytes[i] == '\n') l.text[l.n++] = bytes[i]; /* else the line is cut */
            if (bytes[i] != '\n') continue;
            tell_others(cx, g, &l);
            l.n = 0;
        }
    }
    ebb_region_cancel(cx, ebb_cx_region(cx), EBB_CANCEL_USER, "the guest has left");
    return EBB_OK;
}

static ebb_status leave(ebb_cx *cx, void *arg) {
    guest *g = arg; /* the finalizer of its region */
    (void)cx;
    *g->where = g->next;
    if (g->next != NULL) g->next->where = g->where;
    ebb_chan_free(g->lines);
    free(g);
    return EBB_OK;
}

static guest *guest_new(ebb_cx *cx, ebb_stream stream) {
    guest *g = calloc(1, sizeof *g);
    if (g == NULL || ebb_chan_new(ebb_cx_runtime(cx), BEHIND, sizeof(line), &g->lines) != EBB_OK) {
        free(g);
        return NULL;
    }
    g->stream = stream;
    g->where = &guests;
    g->next = guests;
    if (guests != NULL) guests->where = &g->next;
    return guests = g;
}

/* The region has the guest from now on, and ends with it. Without memory the stream is closed with the region. */
static void welcome(ebb_cx *cx, ebb_stream stream) {
    ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    ebb_status st = ebb_stream_move(cx, stream, r);
    if (st != EBB_OK) (void)ebb_stream_close(cx, stream);
    guest *g = st == EBB_OK ? guest_new(cx, stream) : NULL;
    st = g == NULL ? EBB_ERR_NOMEM : ebb_region_defer(cx, r, leave, g);
    if (st != EBB_OK && g != NULL) (void)leave(cx, g);
    if (st == EBB_OK) st = ebb_id_status(ebb_fiber_spawn(cx, r, write_lines, g).id);
    if (st == EBB_OK) st = ebb_id_status(ebb_fiber_spawn(cx, r, read_lines, g).id);
    if (st == EBB_OK) ebb_region_close(cx, r);
    else ebb_region_cancel(cx, r, EBB_CANCEL_RESOURCE, "no room for a guest");
}

static ebb_status serve(ebb_cx *cx, void *port) {
    ebb_address at = {"127.0.0.1", *(uint16_t *)port};
    ebb_listener l = ebb_tcp_listen(cx, &at);
    ebb_status st = ebb_listener_address(cx, l, &at); /* an error of listening sticks to its id */
    ebb_value v;
    if (st == EBB_OK) fprintf(stderr, "listening on %s port %u\n", at.ip, at.port);
    else fprintf(stderr, "chat: port %u: %s\n", at.port, ebb_status_text(st));
    while (st == EBB_OK && (st = ebb_await(cx, ebb_listener_accept(cx, l), &v)) == EBB_OK)
        welcome(cx, ebb_stream_of(v));
    return st == EBB_ERR_CLOSED ? EBB_OK : st; /* closed: the service stops */
}

int main(int argc, char **argv) {
    uint16_t port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 7000);
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    return ebb_service_run(&opts, serve, &port);
}
