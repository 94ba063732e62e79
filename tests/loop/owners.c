/* Operations whose future has callbacks or several owners: an await of it returns, and the caller's bytes are
 * let alone as soon as all that was made of the future has ended. */
#include "tests/support/loop_world.h"

/* ---- callbacks, then an await ------------------------------------------------------------------------------- */

typedef struct writer {
    ebb_stream stream;
    uint32_t cleanups;
} writer;

static void count_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ++*(uint32_t *)arg;
}

/* What the system takes at once has ended when the call returns. */
static ebb_status write_and_clean_up(ebb_cx *cx, void *arg) {
    writer *w = arg;
    ebb_value n;
    ebb_future *f = ebb_stream_write(cx, w->stream, "hi", 2);
    assert_int_equal(ebb_future_status_of(f), EBB_OK);
    assert_int_equal(ebb_future_on_cleanup(f, count_cleanup, &w->cleanups), EBB_OK);
    ebb_status st = ebb_await(cx, f, &n);
    assert_int_equal(w->cleanups, 1);
    assert_int_equal(n.as.u, 2);
    return st;
}

static void a_write_that_has_ended_can_have_a_cleanup_and_be_awaited(void **state) {
    loop_world *w = *state;
    int fd;
    writer writes = {.stream = stream_pair(w, &fd)};
    assert_int_equal(run_fiber(w, write_and_clean_up, &writes), EBB_OK);
    close(fd);
}

/* ---- several owners --------------------------------------------------------------------------------------------- */

/* Futures that own what is tested, and the bytes of that. The host's own socket is served by libuv in the same
 * poll phase, before the stream or the file under test: there the owners are cancelled, and the bytes are not
 * ours any more. */
typedef struct scene {
    loop_world *w;
    uv_pipe_t host;
    int nudge; /* the other end of `host` */
    ebb_future *owners[200];
    size_t n;     /* of these */
    size_t spare; /* how many of them are not cancelled */
    char *bytes;
    size_t size;
    bool ran;
} scene;

static void host_alloc(uv_handle_t *uv, size_t suggested, uv_buf_t *buf) {
    static char into[16];
    (void)uv;
    (void)suggested;
    *buf = uv_buf_init(into, sizeof into);
}

static void host_read(uv_stream_t *uv, ssize_t n, const uv_buf_t *buf) {
    scene *s = uv->data;
    (void)buf;
    if (n <= 0) return;
    s->ran = true;
    for (size_t i = 0; i < s->n - s->spare; i++)
        assert_true(ebb_future_cancel(s->owners[i], EBB_CANCEL_USER));
    if (s->spare == 0) memset(s->bytes, 'x', s->size);
}

static void scene_begin(scene *s, loop_world *w, size_t size) {
    int fd[2];
    *s = (scene){.w = w, .size = size, .bytes = malloc(size)};
    assert_non_null(s->bytes);
    memset(s->bytes, 'a', size);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_int_equal(uv_pipe_init(&w->uv, &s->host, 0), 0);
    assert_int_equal(uv_pipe_open(&s->host, fd[0]), 0);
    s->host.data = s;
    assert_int_equal(uv_read_start((uv_stream_t *)&s->host, host_alloc, host_read), 0);
    s->nudge = fd[1];
}

/* libuv looks at what became ready first. */
static void scene_run(scene *s) {
    while (!s->ran) uv_run(&s->w->uv, UV_RUN_ONCE);
    loop_turns(s->w, 5);
}

static void scene_end(scene *s) {
    for (size_t i = 0; i < s->n; i++) ebb_future_drop(s->owners[i]);
    uv_close((uv_handle_t *)&s->host, NULL);
    loop_turns(s->w, 3);
    close(s->nudge);
    free(s->bytes);
}

static bool untouched(const scene *s) {
    for (size_t i = 0; i < s->size; i++) {
        if (s->bytes[i] != 'x') return false;
    }
    return true;
}

static void add_race(scene *s, ebb_future *f) {
    ebb_future *both[] = {f, ebb_future_never(s->w->cx)};
    s->owners[s->n++] = ebb_race(s->w->cx, 2, both);
}

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return *v;
}

/* f in so many races; `deep`: shared, and with a map between. Consumes it. */
static void add_races(scene *s, ebb_future *f, size_t n, bool deep) {
    if (deep) (void)ebb_future_share(f);
    for (size_t i = 1; i < n; i++) (void)ebb_future_keep(f);
    for (size_t i = 0; i < n; i++) add_race(s, deep ? ebb_map(s->w->cx, f, same, NULL) : f);
}

static void a_read_whose_owners_are_all_cancelled_writes_nothing(void **state) {
    loop_world *w = *state;
    const size_t counts[] = {1, 2, 3, 200};
    for (size_t i = 0; i < 8; i++) {
        scene s;
        int fd;
        ebb_value n;
        scene_begin(&s, w, 64);
        ebb_stream stream = stream_pair(w, &fd);
        add_races(&s, ebb_stream_read(w->cx, stream, s.bytes, s.size), counts[i % 4], i >= 4);
        loop_turns(w, 5);
        send_text(s.nudge, "!");
        send_text(fd, "secret");
        scene_run(&s);
        assert_true(untouched(&s));
        /* No byte is lost either: the next read has them. */
        assert_int_equal(loop_await(w, ebb_stream_read(w->cx, stream, s.bytes, s.size), &n), EBB_OK);
        assert_int_equal(n.as.u, 6);
        assert_memory_equal(s.bytes, "secret", 6);
        assert_int_equal(ebb_stream_close(w->cx, stream), EBB_OK);
        close(fd);
        scene_end(&s);
    }
}

static void a_shared_read_goes_on_for_the_owner_that_is_left(void **state) {
    loop_world *w = *state;
    for (size_t n = 1; n <= 3; n++) {
        scene s;
        int fd;
        scene_begin(&s, w, 64);
        ebb_stream stream = stream_pair(w, &fd);
        add_races(&s, ebb_stream_read(w->cx, stream, s.bytes, s.size), n, true);
        s.spare = 1;
        loop_turns(w, 5);
        send_text(s.nudge, "!");
        send_text(fd, "secret");
        scene_run(&s);
        assert_int_equal(ebb_future_status_of(s.owners[n - 1]), EBB_OK);
        assert_memory_equal(s.bytes, "secret", 6);
        assert_int_equal(ebb_stream_close(w->cx, stream), EBB_OK);
        close(fd);
        scene_end(&s);
    }
}

/* Owners that wait for each other in a circle are nobody's fault but the caller's; the read comes to its end. */
static void a_circle_of_owners_does_not_hang_the_loop(void **state) {
    loop_world *w = *state;
    int fd;
    char bytes[8];
    ebb_stream stream = stream_pair(w, &fd);
    ebb_future *p = ebb_promise_new(w->cx, NULL, NULL);
    (void)ebb_future_keep(p);
    ebb_future *two[] = {ebb_stream_read(w->cx, stream, bytes, sizeof bytes), ebb_map(w->cx, p, same, NULL)};
    assert_int_equal(ebb_promise_settle(p, ebb_value_future(ebb_all_settled(w->cx, 2, two))), EBB_OK);
    ebb_future_drop(p); /* the region ends it */
    loop_turns(w, 3);
    send_text(fd, "round");
    loop_turns(w, 3);
    assert_memory_equal(bytes, "round", 5);
    assert_int_equal(ebb_stream_close(w->cx, stream), EBB_OK);
    close(fd);
}

/* Reads what is there; `x` is not. */
static size_t drain(int fd) {
    static char bytes[65536];
    size_t all = 0;
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        assert_null(memchr(bytes, 'x', (size_t)n));
        all += (size_t)n;
    }
    return all;
}

static void a_write_whose_owners_are_all_cancelled_reads_nothing(void **state) {
    loop_world *w = *state;
    for (size_t i = 0; i < 6; i++) {
        scene s;
        int fd;
        scene_begin(&s, w, 4u << 20); /* more than a socket takes */
        ebb_stream stream = stream_pair(w, &fd);
        add_races(&s, ebb_stream_write(w->cx, stream, s.bytes, s.size), 1 + i % 3, i >= 3);
        loop_turns(w, 5);
        send_text(s.nudge, "!");
        assert_true(drain(fd) > 0); /* now it takes more */
        scene_run(&s);
        (void)drain(fd);
        assert_int_equal(ebb_stream_close(w->cx, stream), EBB_OK);
        loop_turns(w, 3);
        (void)drain(fd);
        close(fd);
        scene_end(&s);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* The pool has one thread: when this runs, what was begun before is done. */
static void pool_reached(uv_work_t *work) {
    atomic_store((_Atomic bool *)work->data, true);
}

static void pool_left(uv_work_t *work, int code) {
    (void)work;
    (void)code;
}

static void wait_for_pool(loop_world *w, uv_work_t *work) {
    static _Atomic bool reached;
    atomic_store(&reached, false);
    work->data = (void *)(uintptr_t)&reached;
    assert_int_equal(uv_queue_work(&w->uv, work, pool_reached, pool_left), 0);
    while (!atomic_load(&reached)) uv_sleep(1);
}

static ebb_file file_with(loop_world *w, const char *path, size_t n, char c) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) fputc(c, out);
    assert_int_equal(fclose(out), 0);
    ebb_value v;
    assert_int_equal(loop_await(w, ebb_file_open(w->cx, path, O_RDWR, 0), &v), EBB_OK);
    return ebb_file_of(v);
}

static void a_read_of_a_file_whose_owners_are_all_cancelled_writes_nothing(void **state) {
    loop_world *w = *state;
    for (size_t i = 0; i < 6; i++) {
        scene s;
        uv_work_t work;
        scene_begin(&s, w, 64);
        ebb_file file = file_with(w, path_in(w, "read"), 64, 'f');
        loop_turns(w, 3);
        send_text(s.nudge, "!");
        add_races(&s, ebb_file_read(w->cx, file, s.bytes, s.size, 0), 1 + i % 3, i >= 3);
        wait_for_pool(w, &work);
        scene_run(&s);
        assert_true(untouched(&s));
        for (size_t k = 0; k < s.n; k++) assert_int_equal(ebb_future_status_of(s.owners[k]), EBB_CANCELLED);
        assert_int_equal(loop_await(w, ebb_file_close(w->cx, file), NULL), EBB_OK);
        scene_end(&s);
    }
}

static void a_write_of_a_file_whose_owners_are_all_cancelled_reads_nothing(void **state) {
    loop_world *w = *state;
    for (size_t i = 0; i < 6; i++) {
        scene s;
        uv_work_t work;
        scene_begin(&s, w, 2 * EBB_FILE_PIECE);
        ebb_file file = file_with(w, path_in(w, "written"), 0, 'f');
        loop_turns(w, 3);
        send_text(s.nudge, "!");
        add_races(&s, ebb_file_write(w->cx, file, s.bytes, s.size, 0), 1 + i % 3, i >= 3);
        wait_for_pool(w, &work);
        scene_run(&s);
        assert_int_equal(loop_await(w, ebb_file_close(w->cx, file), NULL), EBB_OK);
        FILE *in = fopen(path_in(w, "written"), "r");
        assert_non_null(in);
        for (int c; (c = fgetc(in)) != EOF;) assert_int_equal(c, 'a');
        assert_int_equal(fclose(in), 0);
        scene_end(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_write_that_has_ended_can_have_a_cleanup_and_be_awaited),
        ON_A_LOOP(a_read_whose_owners_are_all_cancelled_writes_nothing),
        ON_A_LOOP(a_shared_read_goes_on_for_the_owner_that_is_left),
        ON_A_LOOP(a_circle_of_owners_does_not_hang_the_loop),
        ON_A_LOOP(a_write_whose_owners_are_all_cancelled_reads_nothing),
        ON_A_LOOP(a_read_of_a_file_whose_owners_are_all_cancelled_writes_nothing),
        ON_A_LOOP(a_write_of_a_file_whose_owners_are_all_cancelled_reads_nothing),
    };
    signal(SIGPIPE, SIG_IGN);
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
