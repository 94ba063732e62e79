/* Guide: a future for a callback of another library, something every second, and how a future ended. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <uv.h>

/* libuv's random bytes stand for any library that calls back. */
typedef struct draw {
    uv_random_t request;
    unsigned char bytes[8];
    ebb_loop *loop;
    ebb_future *drawn;
} draw;

/* The library's callback: settles the promise once, cancelled or not. */
static void on_drawn(uv_random_t *request, int code, void *bytes, size_t n) {
    draw *d = request->data;
    (void)n;
    (void)ebb_loop_cx(d->loop); /* so that a turn of the loop follows */
    if (code == 0) (void)ebb_promise_settle(d->drawn, ebb_value_pointer(bytes));
    else (void)ebb_promise_reject(d->drawn, EBB_UV(code));
}

static void stop_drawing(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    (void)uv_cancel((uv_req_t *)&((draw *)arg)->request);
}

static const ebb_operation drawing = {"random bytes", stop_drawing, NULL};

/* `d` must stay valid until the future has ended and the library has called back: the region waits for that. */
static ebb_future *random_bytes(ebb_cx *cx, uv_loop_t *uv, draw *d) {
    ebb_future *f = ebb_promise_new(cx, &drawing, d);
    if (ebb_future_status_of(f) != EBB_PENDING) return f; /* it could not be made */
    d->drawn = f;
    d->request.data = d;
    int code = uv_random(uv, &d->request, d->bytes, sizeof d->bytes, 0, on_drawn);
    if (code != 0) (void)ebb_promise_reject(f, EBB_UV(code));
    return f;
}

/* A value ends it, and so does a failure. */
static ebb_future *tick(ebb_cx *cx, uint64_t n, void *arg) {
    (void)arg;
    printf("tick %d\n", (int)n + 1);
    return ebb_future_ready(cx, n < 2 ? ebb_value_none() : ebb_value_int(1));
}

static ebb_future *later(ebb_cx *cx, void *arg) {
    return ebb_future_repeat(cx, EBB_MS, tick, arg);
}

static void say_why(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    printf("%s: %s\n", (const char *)arg, ebb_cancel_kind_name(kind));
}

static void put_away(ebb_cx *cx, void *arg) {
    (void)cx;
    printf("%s: put away\n", (const char *)arg);
}

/* Callbacks need no task. The cleanups run last, however the future ends. */
static ebb_status watch(ebb_cx *cx) {
    static char name[] = "a wait";
    ebb_future *f = ebb_future_never(cx);
    ebb_status st = ebb_future_on_cleanup(f, put_away, name);
    if (st == EBB_OK) st = ebb_future_on_cancel(f, say_why, name);
    if (st != EBB_OK) return st;
    (void)ebb_future_cancel(f, EBB_CANCEL_TIMEOUT);
    bool cancelled =
        ebb_future_state_of(f) == EBB_FUTURE_CANCELLED; /* at once; the callbacks come in the pump */
    if (!cancelled || ebb_future_cancel_kind_of(f) != EBB_CANCEL_TIMEOUT) return EBB_FAILED;
    st = ebb_await(cx, f, NULL);
    return st == EBB_CANCELLED ? EBB_OK : st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    draw *d = arg;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_within(cx, random_bytes(cx, d->request.loop, d), EBB_SECOND), &v);
    if (st == EBB_OK) printf("drawn: %s\n", v.as.p == d->bytes ? "8 bytes" : "something else");
    if (st == EBB_OK) st = ebb_await(cx, ebb_future_delay(cx, EBB_MS, later, NULL), NULL);
    return st == EBB_OK ? watch(cx) : st;
}

int main(void) {
    uv_loop_t uv;
    draw d = {.request.loop = &uv};
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    if (uv_loop_init(&uv) != 0 || ebb_loop_attach(&uv, &opts, &d.loop) != EBB_OK) return 1;
    ebb_cx *cx = ebb_loop_cx(d.loop);
    (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), run, &d);
    (void)uv_run(&uv, UV_RUN_DEFAULT);
    ebb_status st = ebb_loop_close(d.loop, NULL, 0, NULL);
    (void)uv_run(&uv, UV_RUN_DEFAULT); /* libuv closes what the loop had */
    return st == EBB_OK && uv_loop_close(&uv) == 0 ? 0 : 1;
}
