/* Guide: sockets, a child process, blocking code, a second thread. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The server's side of one connection: sends back what it reads. */
static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb_listener listener = {*(uint64_t *)arg};
    char bytes[64];
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_listener_accept(cx, listener), &v);
    if (st != EBB_OK) return st;
    ebb_stream s = ebb_stream_of(v);
    st = ebb_await(cx, ebb_stream_read(cx, s, bytes, sizeof bytes), &v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_write(cx, s, bytes, v.as.u), NULL);
    (void)ebb_stream_close(cx, s);
    return st;
}

static ebb_status talk(ebb_cx *cx, const ebb_address *server) {
    char back[64];
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, server), &v);
    if (st != EBB_OK) return st;
    ebb_stream s = ebb_stream_of(v);
    st = ebb_await(cx, ebb_stream_write(cx, s, "ping", 4), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, s, back, sizeof back), &v);
    if (st == EBB_OK) printf("socket: %.*s\n", (int)v.as.u, back);
    (void)ebb_stream_close(cx, s);
    return st;
}

static ebb_status sockets(ebb_cx *cx) {
    ebb_address at = {"127.0.0.1", 0};
    ebb_listener listener = ebb_tcp_listen(cx, &at);
    ebb_status st = ebb_listener_address(cx, listener, &at); /* the port; or why it does not listen */
    if (st != EBB_OK) return st;
    ebb_region region = ebb_region_open(cx, NULL);
    ebb_fiber_spawn(cx, region, serve, &listener.id);
    (void)ebb_mask(cx); /* serve uses `listener`, which is on this stack */
    st = talk(cx, &at);
    ebb_status served = ebb_region_join(cx, region);
    (void)ebb_unmask(cx);
    return st == EBB_OK ? served : st;
}

static ebb_status child(ebb_cx *cx) {
    const char *const args[] = {"echo", "hello", NULL};
    ebb_process_opts opts = {.file = "echo", .args = args, .stdio = {[1] = EBB_PROCESS_STDIO_PIPE}};
    ebb_stream pipes[3];
    char text[64];
    ebb_value v;
    ebb_process p = ebb_process_spawn(cx, pipes, &opts);
    ebb_status st = ebb_id_status(p.id);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, pipes[1], text, sizeof text), &v);
    if (st == EBB_OK) printf("child: %.*s", (int)v.as.u, text);
    if (st == EBB_OK) st = ebb_await(cx, ebb_process_wait(cx, p), &v);
    if (st == EBB_OK) printf("exit code %d\n", ebb_process_exit_code(v));
    return st;
}

/* Runs on a thread of the pool. */
static ebb_status host_name(void *arg, ebb_value *v) {
    if (gethostname(arg, 64) != 0) return EBB_FAILED;
    *v = ebb_value_int((int64_t)strnlen(arg, 64));
    return EBB_OK;
}

static ebb_status blocking(ebb_cx *cx) {
    static char name[64]; /* static: a call that runs can't be stopped, and may outlast a cancel */
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_pool_run(cx, host_name, name), &v);
    if (st == EBB_OK) printf("blocking call: %s\n", v.as.i > 0 ? "a name" : "no name");
    return st;
}

/* Runs on the thread of the second loop. */
static ebb_status far_away(ebb_cx *cx, void *arg) {
    (void)cx;
    *(long *)arg = 42;
    return EBB_OK;
}

static ebb_status on_the_second_thread(ebb_cx *cx, ebb_peer *second) {
    static long result; /* static: a body that is cut off here may still run there */
    ebb_status st = ebb_await(cx, ebb_peer_run(cx, second, far_away, &result), NULL);
    if (st == EBB_OK) printf("second thread: %ld\n", result);
    return st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    ebb_status st = sockets(cx);
    if (st == EBB_OK) st = child(cx);
    if (st == EBB_OK) st = blocking(cx);
    return st == EBB_OK ? on_the_second_thread(cx, arg) : st;
}

static ebb_status wait_for_the_end(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ebb_closing(cx), NULL);
}

int main(void) {
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *first, *second;
    ebb_status st = ebb_loop_new(&opts, wait_for_the_end, NULL, &second);
    if (st != EBB_OK) return 1;
    st = ebb_loop_new(&opts, run, ebb_loop_peer(second), &first);
    if (st == EBB_OK) st = ebb_loop_join(first);
    (void)ebb_loop_stop(second); /* cancels its root, and waits until all has ended */
    return st == EBB_OK ? 0 : 1;
}
