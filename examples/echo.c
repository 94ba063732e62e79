/* A TCP echo server: what you send it comes back. SIGTERM (or Ctrl-C) makes it drain and end.
 *
 *   build/release/examples/echo 7000
 *   echo hello | nc -N 127.0.0.1 7000
 *
 * Each connection is a fiber: plain sequential code in which every ebb_await waits in place, while the one
 * thread serves the others. How it ends is worth a look. There is no list of connections, no flag that says
 * "we are stopping", no count of who is still there: the fibers live in a region, the region is asked to
 * stop, and joining it waits until the last of them is gone. */
#include <ebb/ebb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRACE_S = 5 };

/* One connection. The id of its stream is a word, so it can be the argument itself. */
static ebb_status echo(ebb_cx *cx, void *arg) {
    ebb_stream s = {(uintptr_t)arg};
    char bytes[16384];
    ebb_value n;
    ebb_status st;
    /* The await of the read says EBB_CANCELLED when the server stops. Under a mask a cancel waits, so what was
     * read is written back first, as long as there is time. */
    while ((st = ebb_await(cx, ebb_stream_read(cx, s, bytes, sizeof bytes), &n)) == EBB_OK) {
        (void)ebb_mask(cx);
        st = ebb_await(cx, ebb_stream_write(cx, s, bytes, n.as.u), NULL);
        (void)ebb_unmask(cx);
        if (st != EBB_OK) break;
    }
    /* If we forgot this, or were forced to end, the stream would be closed with its region. */
    ebb_stream_close(cx, s);
    if (st == EBB_ERR_EOF || st == EBB_CANCELLED) return EBB_OK;
    fprintf(stderr, "echo: a connection failed: %s\n", ebb_status_text(st));
    return EBB_OK; /* a client that breaks off is no failure of the server */
}

/* Accepts until the listener is closed. */
static ebb_status accept_all(ebb_cx *cx, void *arg) {
    ebb_listener listener = {(uintptr_t)arg};
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_listener_accept(cx, listener), &v);
        if (st == EBB_ERR_CLOSED || st == EBB_CANCELLED) return EBB_OK;
        if (st == EBB_OK) {
            ebb_task t = ebb_fiber_spawn(cx, ebb_cx_region(cx), echo, v.as.p);
            if (ebb_id_status(t.id) != EBB_OK) ebb_stream_close(cx, ebb_stream_of(v)); /* too many */
            continue;
        }
        fprintf(stderr, "echo: can't accept: %s\n", ebb_status_text(st));
        st = ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL); /* out of memory, perhaps: let some go */
        if (st != EBB_OK) return EBB_OK;
    }
}

/* The first fiber: opens, waits for the signal, closes. */
static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb_address at = {"127.0.0.1", *(const uint16_t *)arg};
    ebb_listener listener = ebb_tcp_listen(cx, &at);
    ebb_status st = ebb_listener_address(cx, listener, &at); /* an error of listening sticks to its id */
    if (st != EBB_OK) {
        fprintf(stderr, "echo: can't listen on %s port %u: %s\n", at.ip, at.port, ebb_status_text(st));
        return st;
    }
    printf("listening on %s port %u\n", at.ip, at.port);
    fflush(stdout);

    /* EBB_FAIL_COLLECT: should one connection fail, the others go on. */
    ebb_region clients = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    ebb_fiber_spawn(cx, clients, accept_all, (void *)(uintptr_t)listener.id);

    /* Whichever comes first; the other one is cancelled, and its handler goes. */
    ebb_future *either[] = {ebb_signal_wait(cx, SIGTERM), ebb_signal_wait(cx, SIGINT)};
    st = ebb_await(cx, ebb_race(cx, 2, either), NULL);
    if (st != EBB_OK) return st;

    /* No new connections; those that are there finish what they are doing, for at most GRACE_S. A second
     * signal finds no handler and ends the process at once. */
    ebb_listener_close(cx, listener);
    ebb_budget budget = {ebb_now(cx) + GRACE_S * EBB_SECOND, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(cx, clients, EBB_CANCEL_SHUTDOWN, "a signal", budget);
    st = ebb_region_join(cx, clients);
    printf("drained\n");
    return st == EBB_CANCELLED ? EBB_OK : st;
}

int main(int argc, char **argv) {
    uint16_t port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0);
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, serve, &port, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "echo: %s\n", ebb_status_text(st));
    return st == EBB_OK ? 0 : 1;
}
