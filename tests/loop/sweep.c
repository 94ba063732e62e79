/* Every operation there is, again and again: with the n-th allocation failing, and cancelled after the n-th
 * turn, for each n. Nothing may be left, and whatever fails says why. */
#include "tests/support/loop_world.h"

/* What a run does to the scenario. */
typedef struct sweep {
    uv_loop_t uv;
    ebb_failing memory;
    ebb_loop *loop;
    ebb_runtime *rt;
    ebb_cx *cx;
    ebb_region region;
    bool over;
    uint32_t turns, cancel_at; /* 0: never */
    char dir[32], socket[64], file[64], other[64];
    bool odd; /* a status that nothing explains */
    nudge nudge;
} sweep;

/* ---- the scenario ----------------------------------------------------------------------------------------- */

static bool explained(const sweep *s, ebb_status st) {
    if (st == EBB_OK || st == EBB_ERR_EOF || st == EBB_TIMEOUT) return true;
    if (st == EBB_ERR_NOMEM) return s->memory.failures > 0;
    if (st == EBB_CANCELLED || st == EBB_ERR_CLOSED) return s->cancel_at != 0;
    /* What follows from what did not happen: no file, no listener, nobody at the other end. */
    return st < EBB_STATUS_USER && (s->memory.failures > 0 || s->cancel_at != 0);
}

static ebb_status note(sweep *s, ebb_status st, const char *what) {
    if (explained(s, st)) return st;
    s->odd = true;
    print_error("%s: %s\n", what, ebb_status_text(st));
    return st;
}

#define TRY(s, cx, f, v) note((s), ebb_await((cx), (f), (v)), #f)

static ebb_status serve_one(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_value v;
    char bytes[64];
    ebb_listener l = ebb_pipe_listen(cx, s->socket);
    /* If the other one was not even spawned, nobody comes. */
    if (TRY(s, cx, ebb_within(cx, ebb_listener_accept(cx, l), 300 * EBB_MS), &v) != EBB_OK) return EBB_OK;
    ebb_stream stream = ebb_stream_of(v);
    while (TRY(s, cx, ebb_stream_read(cx, stream, bytes, sizeof bytes), &v) == EBB_OK) {
        if (TRY(s, cx, ebb_stream_write(cx, stream, bytes, v.as.u), NULL) != EBB_OK) break;
    }
    (void)ebb_listener_close(cx, l);
    return EBB_OK; /* leaves the stream to the region */
}

static ebb_status ask_one(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_value v;
    char bytes[64];
    if (TRY(s, cx, ebb_pipe_connect(cx, s->socket), &v) != EBB_OK) return EBB_OK;
    ebb_stream stream = ebb_stream_of(v);
    (void)TRY(s, cx, ebb_stream_write(cx, stream, "question", 8), NULL);
    (void)TRY(s, cx, ebb_within(cx, ebb_stream_read(cx, stream, bytes, sizeof bytes), EBB_SECOND), NULL);
    (void)TRY(s, cx, ebb_stream_shutdown(cx, stream), NULL);
    (void)ebb_stream_close(cx, stream);
    return EBB_OK;
}

/* More than the buffers take, to somebody who reads slowly. */
static ebb_status pour(ebb_cx *cx, void *arg) {
    enum { MUCH = 1 << 20 };
    int fd[2];
    (void)arg;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0) return EBB_FAILED;
    char *much = calloc(2, MUCH);
    ebb_stream a = ebb_stream_adopt(cx, fd[0]), b = ebb_stream_adopt(cx, fd[1]);
    if (ebb_id_status(a.id) != EBB_OK) close(fd[0]);
    if (ebb_id_status(b.id) != EBB_OK) close(fd[1]);
    ebb_future *w = ebb_stream_write(cx, a, much, MUCH), *x = ebb_stream_write(cx, a, much, 1);
    size_t n = 0;
    ebb_value v;
    while (n <= MUCH && (ebb_future_status_of(x) == EBB_PENDING || ebb_future_status_of(x) == EBB_OK)) {
        ebb_future *r = ebb_stream_read(cx, b, much + MUCH, MUCH);
        if (ebb_await(cx, ebb_within(cx, r, 100 * EBB_MS), &v) != EBB_OK) break; /* one of them has failed */
        n += v.as.u;
    }
    (void)ebb_stream_close(cx, a); /* ends what is left of the writes */
    ebb_future_cancel(w, EBB_CANCEL_USER);
    ebb_future_cancel(x, EBB_CANCEL_USER);
    ebb_future_drop(w);
    ebb_future_drop(x);
    free(much); /* both have ended */
    return EBB_OK;
}

static ebb_status use_files(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_value v;
    char bytes[16];
    if (TRY(s, cx, ebb_file_open(cx, s->file, O_RDWR | O_CREAT, 0600), &v) != EBB_OK) return EBB_OK;
    ebb_file f = ebb_file_of(v);
    (void)TRY(s, cx, ebb_file_write(cx, f, "bytes", 5, 0), NULL);
    (void)TRY(s, cx, ebb_file_sync(cx, f), NULL);
    (void)TRY(s, cx, ebb_file_read(cx, f, bytes, sizeof bytes, 0), NULL);
    if (TRY(s, cx, ebb_file_stat(cx, s->file), &v) == EBB_OK) ebb_value_discard(cx, v);
    (void)TRY(s, cx, ebb_file_rename(cx, s->file, s->other), NULL);
    (void)TRY(s, cx, ebb_file_unlink(cx, s->other), NULL);
    (void)TRY(s, cx, ebb_file_close(cx, f), NULL);
    return EBB_OK;
}

static ebb_status compute(void *arg, ebb_value *v) {
    (void)arg;
    *v = ebb_value_int(1);
    return EBB_OK;
}

static ebb_status use_threads(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_value v;
    (void)TRY(s, cx, ebb_pool_run(cx, compute, NULL), NULL);
    if (TRY(s, cx, ebb_dns_resolve(cx, "127.0.0.1", 1), &v) == EBB_OK) ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status use_a_process(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_stream io[3];
    char byte;
    ebb_process_opts opts = {.file = "/bin/true", .stdio = {[1] = EBB_PROCESS_STDIO_PIPE}};
    ebb_process p = ebb_process_spawn(cx, io, &opts);
    (void)note(s, ebb_id_status(p.id), "spawn");
    (void)TRY(s, cx, ebb_stream_read(cx, io[1], &byte, 1), NULL);
    (void)TRY(s, cx, ebb_process_wait(cx, p), NULL);
    return EBB_OK;
}

static ebb_status use_signals(ebb_cx *cx, void *arg) {
    sweep *s = arg;
    ebb_signal all = ebb_signal_open(cx, SIGUSR1);
    ebb_future *f = ebb_signal_wait(cx, SIGUSR1);
    if (ebb_id_status(all.id) == EBB_OK || ebb_future_status_of(f) == EBB_PENDING) raise(SIGUSR1);
    if (note(s, ebb_id_status(all.id), "watch") == EBB_OK) {
        (void)TRY(s, cx, ebb_signal_next(cx, all), NULL);
        (void)ebb_signal_close(cx, all);
    }
    (void)TRY(s, cx, f, NULL);
    return EBB_OK;
}

static const ebb_fiber_fn parts[] = {serve_one,   ask_one,       pour,       use_files,
                                     use_threads, use_a_process, use_signals};

/* ---- one run ------------------------------------------------------------------------------------------------- */

static void take_turns(sweep *s) {
    ebb_region_state state = EBB_REGION_OPEN;
    while (state != EBB_REGION_CLOSED) {
        (void)ebb_loop_cx(s->loop);
        uv_run(&s->uv, UV_RUN_ONCE);
        if (++s->turns == s->cancel_at) ebb_region_cancel(s->cx, s->region, EBB_CANCEL_USER, NULL);
        if (ebb_region_join(s->cx, s->region) != EBB_PENDING) return;
    }
}

static ebb_status run(sweep *s) {
    ebb_heap_opts heap = {.every_time = getenv("EBB_TEST_GC") != NULL, .verify = true};
    ebb_loop_opts opts = {.runtime = {.allocator = ebb_failing_allocator(&s->memory)}, .heap = &heap};
    s->memory.inner = ebb_libc_allocator();
    ebb_status st = ebb_loop_attach(&s->uv, &opts, &s->loop);
    if (st != EBB_OK) return st;
    s->rt = ebb_loop_runtime(s->loop);
    s->cx = ebb_loop_cx(s->loop);
    s->region = ebb_region_open(s->cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) ebb_fiber_spawn(s->cx, s->region, parts[i], s);
    if (ebb_id_status(s->region.id) == EBB_OK) take_turns(s);
    uv_run(&s->uv, UV_RUN_DEFAULT);
    size_t n = 0;
    ebb_loop_leftover left[1] = {{.what = ""}};
    st = ebb_loop_close(s->loop, left, 1, &n);
    if (st != EBB_OK) fail_msg("%zu left, %s of %s", n, left[0].what, left[0].site);
    return st;
}

static void run_once(sweep *s, uint64_t fail_at, uint32_t cancel_at) {
    memset(s, 0, sizeof *s);
    alarm(ALARM_S);
    s->memory.fail_at = fail_at;
    s->cancel_at = cancel_at;
    snprintf(s->dir, sizeof s->dir, "/tmp/ebb-sweep-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->socket, sizeof s->socket, "%s/socket", s->dir);
    snprintf(s->file, sizeof s->file, "%s/file", s->dir);
    snprintf(s->other, sizeof s->other, "%s/other", s->dir);
    assert_int_equal(uv_loop_init(&s->uv), 0);
    assert_int_equal(uv_loop_close(&s->uv), 0);
    int fds = open_descriptors();
    assert_int_equal(uv_loop_init(&s->uv), 0);
    nudge_start(&s->nudge, &s->uv);
    ebb_status st = run(s);
    assert_true(st == EBB_OK || (st == EBB_ERR_NOMEM && s->memory.failures > 0));
    nudge_end(&s->nudge);
    uv_run(&s->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->uv), 0);
    assert_int_equal(s->memory.live, 0);
    assert_int_equal(open_descriptors(), fds);
    assert_false(s->odd);
    (void)unlink(s->socket);
    (void)unlink(s->file);
    (void)unlink(s->other);
    assert_int_equal(rmdir(s->dir), 0);
}

static void all_goes_well_if_nothing_fails(void **state) {
    (void)state;
    sweep s;
    run_once(&s, 0, 0);
    assert_int_equal(s.memory.failures, 0);
}

static void the_nth_allocation_fails(void **state) {
    (void)state;
    sweep s;
    uint64_t n = 0;
    do run_once(&s, ++n, 0);
    while (s.memory.failures > 0);
    print_message("%" PRIu64 " runs\n", n);
    assert_true(n > 30);
}

static void everything_is_cancelled_after_the_nth_turn(void **state) {
    (void)state;
    sweep s;
    uint32_t n = 0;
    do run_once(&s, 0, ++n);
    while (s.turns >= n && n < 200);
    print_message("%" PRIu32 " runs\n", n);
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_goes_well_if_nothing_fails),
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(everything_is_cancelled_after_the_nth_turn),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
