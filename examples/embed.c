/* Ebb in a program that has a libuv loop already, and callbacks of its own.
 *
 * The host below ticks by a uv_timer_t, as programs do. Ebb joins its loop: same thread, same uv_run, nothing
 * to poll, no second loop. On a tick the host starts two jobs; each asks a child process something and is told
 * the answer in a callback. One of them takes too long: its future fails with EBB_TIMEOUT, and what that was
 * made of is cancelled, so reading stops and the process gets SIGTERM. The host need not know of any of it. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <uv.h>

enum { TICK_MS = 100, TICKS = 8, JOBS = 2 };

typedef struct job {
    const char *const *args;
    char answer[64];
    ebb_future *result;
} job;

typedef struct host { /* what this program had before */
    uv_timer_t timer;
    int ticks;
    ebb_loop *loop; /* what is new */
    job jobs[JOBS];
} host;

/* ---- the part that is Ebb's --------------------------------------------------------------------------- */

/* However it ended, unless it was cancelled. */
static void over(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    job *j = arg;
    size_t n;
    const ebb_outcome *both = ebb_outcomes_of(v, &n); /* what was read, and how the process ended */
    (void)cx;
    if (st != EBB_OK) {
        printf("  %s: %s\n", j->args[0], ebb_status_text(st));
    } else {
        int length = (int)both[0].value.as.u, code = ebb_process_exit_code(both[1].value);
        printf("  %s ends with %d and says %.*s", j->args[0], code, length, j->answer);
    }
    ebb_future_drop(j->result);
}

static void ask(ebb_cx *cx, job *j) {
    ebb_process_opts opts = {.file = j->args[0], .args = j->args, .stdio = {[1] = EBB_PROCESS_STDIO_PIPE}};
    ebb_stream io[3];
    ebb_process p = ebb_process_spawn(cx, io, &opts); /* an error sticks to the ids, and comes out below */
    ebb_future *both[] = {ebb_stream_read(cx, io[1], j->answer, sizeof j->answer), ebb_process_wait(cx, p)};
    j->result = ebb_within(cx, ebb_all(cx, 2, both), 500 * EBB_MS);
    if (ebb_future_on_done(j->result, over, j) != EBB_OK) puts("  no memory");
}

/* ---- the host's own ------------------------------------------------------------------------------------ */

static void on_tick(uv_timer_t *timer) {
    static const char *const quick[] = {"date", "+%Y", NULL}, *const slow[] = {"sleep", "60", NULL};
    host *h = timer->data;
    printf("tick %d\n", ++h->ticks);
    if (h->ticks == 2) {
        /* From a callback of libuv's: the context comes with the time brought up to date. */
        ebb_cx *cx = ebb_loop_cx(h->loop);
        h->jobs[0].args = quick;
        h->jobs[1].args = slow;
        for (int i = 0; i < JOBS; i++) ask(cx, &h->jobs[i]);
    }
    if (h->ticks == TICKS) uv_timer_stop(timer);
}

int main(void) {
    uv_loop_t uv;
    host h = {.ticks = 0};
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    if (uv_loop_init(&uv) != 0 || ebb_loop_attach(&uv, &opts, &h.loop) != EBB_OK) return 1;
    uv_timer_init(&uv, &h.timer);
    h.timer.data = &h;
    uv_timer_start(&h.timer, on_tick, TICK_MS, TICK_MS);

    /* Returns when the host's timer has stopped and Ebb has nothing to do: it keeps nobody waiting. */
    uv_run(&uv, UV_RUN_DEFAULT);

    /* The pipes belong to the root region. Asking that to end closes them; without this, ebb_loop_close would
     * name them and the lines where they were opened. */
    ebb_region_cancel(ebb_loop_cx(h.loop), ebb_runtime_root(ebb_loop_runtime(h.loop)), EBB_CANCEL_SHUTDOWN,
                      "done");
    uv_run(&uv, UV_RUN_DEFAULT);
    ebb_loop_leftover left;
    size_t n;
    if (ebb_loop_close(h.loop, &left, 1, &n) != EBB_OK) {
        if (n > 0) fprintf(stderr, "still open: %s of %s\n", left.what, left.site);
        return 1;
    }
    uv_close((uv_handle_t *)&h.timer, NULL);
    uv_run(&uv, UV_RUN_DEFAULT); /* libuv lets go of what was closed */
    return uv_loop_close(&uv) == 0 ? 0 : 1;
}
