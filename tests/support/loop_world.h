/* A world on a libuv loop: an allocator that counts, a runtime that is attached, a region for the test's own
 * work, and at the end nothing may be left: no memory, no handle of libuv's, no descriptor.
 *
 * Tests run in real time but wait for events only. Should one hang, the alarm says so. */
#ifndef EBB_TESTS_LOOP_WORLD_H
#define EBB_TESTS_LOOP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <ebb/ebb.h>
#include <ebb/loop.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#define LOOP_UNUSED __attribute__((unused)) static

enum { ALARM_S = 120 };

/* ThreadSanitizer keeps a signal back until the fiber that ran when it came calls into it again, which may be
 * never. So there libuv is made to look after its children again and again. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIGNALS_MAY_BE_LATE 1
#endif
#endif

typedef struct nudge {
    uv_timer_t timer;
} nudge;

LOOP_UNUSED void nudge_children(uv_timer_t *timer) {
    (void)timer;
    raise(SIGCHLD);
}

/* What a test waits for may come in a turn before libuv sleeps, and then nothing else might wake it. */
LOOP_UNUSED void nudge_nobody(uv_timer_t *timer) {
    (void)timer;
}

LOOP_UNUSED void nudge_start(nudge *n, uv_loop_t *uv) {
    uv_timer_init(uv, &n->timer);
    uv_unref((uv_handle_t *)&n->timer);
#ifdef SIGNALS_MAY_BE_LATE
    uv_timer_start(&n->timer, nudge_children, 20, 20);
#else
    uv_timer_start(&n->timer, nudge_nobody, 20, 20);
#endif
}

LOOP_UNUSED void nudge_end(nudge *n) {
    uv_close((uv_handle_t *)&n->timer, NULL);
}

typedef struct loop_world loop_world;
/* Of a test that has something to do with libuv's loop before the runtime joins it. */
LOOP_UNUSED void (*loop_before_attach)(loop_world *w);

struct loop_world {
    ebb_failing memory;
    uv_loop_t uv;
    ebb_loop *loop;
    ebb_runtime *rt;
    ebb_cx *cx; /* the host's */
    ebb_region region;
    int fds;       /* open at the start */
    char dir[64];  /* a directory of its own; "": not made yet */
    uint32_t told; /* of misuse */
    nudge nudge;
};

LOOP_UNUSED int open_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

LOOP_UNUSED void count_misuse(void *ctx, ebb_status st, const char *what, const char *site) {
    loop_world *w = ctx;
    (void)st;
    (void)what;
    (void)site;
    w->told++;
}

/* As the tests of futures: with EBB_TEST_GC=1 every allocation collects. */
LOOP_UNUSED ebb_heap_opts loop_heap(loop_world *w) {
    return (ebb_heap_opts){
        .every_time = getenv("EBB_TEST_GC") != NULL, .verify = true, .misuse = count_misuse, .ctx = w};
}

LOOP_UNUSED loop_world *loop_world_new(void) {
    loop_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    alarm(ALARM_S);
    w->memory.inner = ebb_libc_allocator();
    /* libuv opens what all loops share when it is first needed. */
    assert_int_equal(uv_loop_init(&w->uv), 0);
    assert_int_equal(uv_loop_close(&w->uv), 0);
    w->fds = open_descriptors();
    assert_int_equal(uv_loop_init(&w->uv), 0);
    nudge_start(&w->nudge, &w->uv);
    if (loop_before_attach != NULL) loop_before_attach(w);
    ebb_heap_opts heap = loop_heap(w);
    ebb_loop_opts opts = {.runtime = {.allocator = ebb_failing_allocator(&w->memory), .runtime_id = 7},
                          .heap = &heap};
    assert_int_equal(ebb_loop_attach(&w->uv, &opts, &w->loop), EBB_OK);
    w->rt = ebb_loop_runtime(w->loop);
    w->cx = ebb_loop_cx(w->loop);
    w->region = ebb_region_open(w->cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    return w;
}

/* Until nothing goes on. */
LOOP_UNUSED void loop_run(loop_world *w) {
    (void)ebb_loop_cx(w->loop);
    uv_run(&w->uv, UV_RUN_DEFAULT);
}

/* Until `done` says so; what is pending may stay. */
LOOP_UNUSED void loop_until(loop_world *w, bool (*done)(void *ctx), void *ctx) {
    while (!done(ctx)) {
        (void)ebb_loop_cx(w->loop); /* counts as something that goes on */
        uv_run(&w->uv, UV_RUN_ONCE);
    }
}

LOOP_UNUSED bool is_true(void *flag) {
    return *(bool *)flag;
}

/* A few turns that do not wait. */
LOOP_UNUSED void loop_turns(loop_world *w, int n) {
    while (n-- > 0) {
        (void)ebb_loop_cx(w->loop);
        uv_run(&w->uv, UV_RUN_NOWAIT);
    }
}

LOOP_UNUSED bool region_is_closed(loop_world *w, ebb_region r) {
    ebb_region_state state;
    return ebb_region_state_of(w->cx, r, &state) != EBB_OK || state == EBB_REGION_CLOSED;
}

LOOP_UNUSED bool root_is_closed(void *world) {
    loop_world *w = world;
    return region_is_closed(w, ebb_runtime_root(w->rt));
}

LOOP_UNUSED void loop_world_end(loop_world *w) {
    size_t n = 0;
    ebb_loop_leftover left[4];
    ebb_region_cancel(w->cx, ebb_runtime_root(w->rt), EBB_CANCEL_USER, "the test is over");
    loop_until(w, root_is_closed, w);
    loop_run(w); /* what was forced may take longer */
    ebb_status st = ebb_loop_close(w->loop, left, 4, &n);
    for (size_t i = 0; i < n && i < 4; i++) print_error("left: %s at %s\n", left[i].what, left[i].site);
    assert_int_equal(st, EBB_OK);
    nudge_end(&w->nudge);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->uv), 0);
    assert_int_equal(w->memory.live, 0);
    assert_int_equal(w->told, 0);
    if (w->dir[0] != 0) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", w->dir);
        assert_int_equal(system(command), 0);
    }
    assert_int_equal(open_descriptors(), w->fds);
    alarm(0);
    free(w);
}

LOOP_UNUSED int loop_world_up(void **state) {
    *state = loop_world_new();
    return 0;
}

LOOP_UNUSED int loop_world_down(void **state) {
    loop_world_end(*state);
    return 0;
}

#define ON_A_LOOP(test) cmocka_unit_test_setup_teardown(test, loop_world_up, loop_world_down)

/* A path in a directory that goes with the world. Valid until the next of these. */
LOOP_UNUSED const char *path_in(loop_world *w, const char *name) {
    static char path[128];
    if (w->dir[0] == 0) {
        snprintf(w->dir, sizeof w->dir, "/tmp/ebb-loop-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
    }
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    return path;
}

/* ---- fibers --------------------------------------------------------------------------------------------- */

/* Runs a fiber in the world's region to its end, and returns what it said. */
typedef struct fiber_run {
    ebb_fiber_fn fn;
    void *arg;
    ebb_status status;
    bool over;
} fiber_run;

LOOP_UNUSED ebb_status fiber_run_main(ebb_cx *cx, void *arg) {
    fiber_run *r = arg;
    r->status = r->fn(cx, r->arg);
    r->over = true;
    return EBB_OK;
}

LOOP_UNUSED ebb_status run_fiber(loop_world *w, ebb_fiber_fn fn, void *arg) {
    fiber_run r = {fn, arg, EBB_PENDING, false};
    ebb_task t = ebb_fiber_spawn(ebb_loop_cx(w->loop), w->region, fiber_run_main, &r);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    loop_until(w, is_true, &r.over);
    return r.status;
}

/* ---- what is heard of a future ------------------------------------------------------------------------------- */

typedef struct probe {
    bool over;
    ebb_status status;
    ebb_value value;
} probe;

LOOP_UNUSED void probe_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    probe *p = arg;
    p->over = true;
    p->status = st;
    p->value = ebb_value_take(cx, v);
}

LOOP_UNUSED void probe_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    probe *p = arg;
    (void)cx;
    (void)kind;
    p->over = true;
    p->status = EBB_CANCELLED;
}

/* Consumes it. One that has failed from the start is heard of at once. */
LOOP_UNUSED void probe_watch(probe *p, ebb_future *f) {
    *p = (probe){.status = EBB_PENDING};
    if (ebb_future_on_done(f, probe_done, p) == EBB_OK &&
        ebb_future_on_cancel(f, probe_cancelled, p) == EBB_OK)
        return;
    p->over = true;
    p->status = ebb_future_status_of(f);
}

/* Runs until it has ended, and consumes it. */
LOOP_UNUSED ebb_status loop_await(loop_world *w, ebb_future *f, ebb_value *v) {
    probe p;
    probe_watch(&p, f);
    loop_until(w, is_true, &p.over);
    ebb_future_drop(f);
    if (v != NULL) *v = p.value;
    else ebb_value_discard(w->cx, p.value);
    return p.status;
}

/* What a future that can't work says at once. */
LOOP_UNUSED ebb_status status_now(ebb_future *f) {
    ebb_status st = ebb_future_status_of(f);
    ebb_future_drop(f);
    return st;
}

/* ---- sockets -------------------------------------------------------------------------------------------------- */

/* A stream, and the other end as a descriptor that blocks. */
LOOP_UNUSED ebb_stream stream_pair(loop_world *w, int *other) {
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    ebb_stream s = ebb_stream_adopt(ebb_loop_cx(w->loop), fd[0]);
    assert_int_equal(ebb_id_status(s.id), EBB_OK);
    *other = fd[1];
    return s;
}

LOOP_UNUSED void send_text(int fd, const char *text) {
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* A client of a Unix socket, connected. */
LOOP_UNUSED int connect_to(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

#endif
