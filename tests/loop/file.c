/* Files, names and blocking work: what runs in libuv's threads and can't be stopped there. */
#include "tests/support/loop_world.h"

static ebb_file open_file(loop_world *w, const char *name, int flags) {
    ebb_value v;
    assert_int_equal(loop_await(w, ebb_file_open(w->cx, path_in(w, name), flags, 0600), &v), EBB_OK);
    return ebb_file_of(v);
}

static ebb_status nothing(void *arg, ebb_value *v) {
    (void)arg;
    (void)v;
    return EBB_OK;
}

/* libuv's threads take what there is in order: when this is over, what came before has begun. */
static void what_was_asked_for_has_begun(loop_world *w) {
    assert_int_equal(loop_await(w, ebb_pool_run(w->cx, nothing, NULL), NULL), EBB_OK);
}

/* ---- files ------------------------------------------------------------------------------------------------ */

static ebb_status write_and_read(ebb_cx *cx, void *arg) {
    const char *path = arg;
    ebb_value v;
    char bytes[16];
    ebb_status st = ebb_await(cx, ebb_file_open(cx, path, O_RDWR | O_CREAT, 0600), &v);
    ebb_file f = ebb_file_of(v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "hello world", 11, EBB_FILE_HERE), &v);
    if (st == EBB_OK && v.as.u != 11) st = EBB_FAILED;
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_write(cx, f, "W", 1, 6), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_sync(cx, f), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_file_read(cx, f, bytes, sizeof bytes, 0), &v);
    if (st == EBB_OK && (v.as.u != 11 || memcmp(bytes, "hello World", 11) != 0)) st = EBB_FAILED;
    if (st != EBB_OK) return st;
    st = ebb_await(cx, ebb_file_read(cx, f, bytes, sizeof bytes, 11), NULL);
    if (st != EBB_ERR_EOF) return EBB_FAILED;
    return ebb_await(cx, ebb_file_close(cx, f), NULL);
}

static void what_was_written_is_read(void **state) {
    loop_world *w = *state;
    char path[128];
    snprintf(path, sizeof path, "%s", path_in(w, "file"));
    assert_int_equal(run_fiber(w, write_and_read, path), EBB_OK);
}

static void much_is_written_piece_by_piece(void **state) {
    loop_world *w = *state;
    enum { MUCH = 3 * EBB_FILE_PIECE + 1000 };
    unsigned char *out = malloc(MUCH), *in = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++) out[i] = (unsigned char)(i % 251);
    ebb_file f = open_file(w, "file", O_RDWR | O_CREAT);
    ebb_value v;
    assert_int_equal(loop_await(w, ebb_file_write(w->cx, f, out, MUCH, 7), &v), EBB_OK);
    assert_int_equal(v.as.u, MUCH);
    size_t at = 0;
    while (at < MUCH) {
        assert_int_equal(loop_await(w, ebb_file_read(w->cx, f, in + at, MUCH - at, 7 + at), &v), EBB_OK);
        assert_in_range(v.as.u, 1, EBB_FILE_PIECE);
        at += v.as.u;
    }
    assert_memory_equal(in, out, MUCH);
    free(in);
    free(out);
}

static void rename_stat_and_unlink_do_what_they_say(void **state) {
    loop_world *w = *state;
    char from[128], to[128];
    ebb_value v;
    snprintf(from, sizeof from, "%s", path_in(w, "from"));
    snprintf(to, sizeof to, "%s", path_in(w, "to"));
    ebb_file f = open_file(w, "from", O_WRONLY | O_CREAT);
    assert_int_equal(loop_await(w, ebb_file_write(w->cx, f, "12345", 5, EBB_FILE_HERE), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_file_rename(w->cx, from, to), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_file_stat(w->cx, from), &v), EBB_ERRNO(ENOENT));
    assert_null(ebb_file_info_of(&v));
    assert_int_equal(loop_await(w, ebb_file_stat(w->cx, to), &v), EBB_OK);
    assert_int_equal(ebb_file_info_of(&v)->size, 5);
    assert_int_equal(ebb_file_info_of(&v)->mode & 0777, 0600);
    assert_true(ebb_file_info_of(&v)->modified > 1600000000 * EBB_SECOND);
    ebb_value_discard(w->cx, v);
    assert_int_equal(loop_await(w, ebb_file_unlink(w->cx, to), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_file_unlink(w->cx, to), NULL), EBB_ERRNO(ENOENT));
    assert_int_equal(loop_await(w, ebb_file_stat(w->cx, to), NULL), EBB_ERRNO(ENOENT));
}

static void what_can_not_be_is_named(void **state) {
    loop_world *w = *state;
    char byte = 0;
    ebb_cx *cx = w->cx;
    assert_int_equal(loop_await(w, ebb_file_open(cx, "/nowhere/at/all", O_RDONLY, 0), NULL),
                     EBB_ERRNO(ENOENT));
    assert_int_equal(status_now(ebb_file_open(cx, NULL, O_RDONLY, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_unlink(cx, NULL)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_stat(cx, NULL)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_rename(cx, NULL, "x")), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_rename(cx, "x", NULL)), EBB_ERR_INVALID);
    ebb_file f = open_file(w, "file", O_WRONLY | O_CREAT);
    assert_int_equal(loop_await(w, ebb_file_read(cx, f, &byte, 1, 0), NULL), EBB_ERRNO(EBADF));
    assert_int_equal(status_now(ebb_file_read(cx, f, NULL, 1, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_read(cx, f, &byte, 0, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_read(cx, f, &byte, (size_t)-1, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_read(cx, f, &byte, 1, (uint64_t)-2)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_write(cx, f, NULL, 1, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_write(cx, f, &byte, 0, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_file_write(cx, f, &byte, (size_t)-1, 0)), EBB_ERR_INVALID);
    ebb_future *close_it = ebb_file_close(cx, f);
    assert_int_equal(status_now(ebb_file_close(cx, f)), EBB_ERR_CLOSED);
    assert_int_equal(status_now(ebb_file_read(cx, f, &byte, 1, 0)), EBB_ERR_CLOSED);
    assert_int_equal(loop_await(w, close_it, NULL), EBB_OK);
    assert_int_equal(status_now(ebb_file_sync(cx, f)), EBB_ERR_CLOSED);
    assert_int_equal(
        status_now(ebb_stream_read(cx, (ebb_stream){open_file(w, "file", O_RDONLY).id}, &byte, 1)),
        EBB_ERR_INVALID);
}

static void a_file_is_closed_after_what_is_pending_on_it(void **state) {
    loop_world *w = *state;
    ebb_file f = open_file(w, "file", O_RDWR | O_CREAT);
    ebb_future *write = ebb_file_write(w->cx, f, "x", 1, 0), *shut = ebb_file_close(w->cx, f);
    assert_int_equal(loop_await(w, shut, NULL), EBB_OK);
    assert_int_equal(status_now(write), EBB_OK);
}

/* A fifo that nobody writes to keeps a thread of libuv's in its open. */
static const char *fifo_in(loop_world *w) {
    const char *path = path_in(w, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    return path;
}

static void a_file_that_was_opened_too_late_is_closed(void **state) {
    loop_world *w = *state;
    const char *path = fifo_in(w);
    int fds = open_descriptors();
    ebb_future *f = ebb_file_open(w->cx, path, O_RDONLY, 0);
    what_was_asked_for_has_begun(w);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    loop_turns(w, 2);
    assert_int_equal(status_now(f), EBB_CANCELLED); /* at once */
    assert_true(uv_loop_alive(&w->uv));             /* but owned */
    int fd = open(path, O_WRONLY);
    loop_run(w);
    close(fd);
    assert_int_equal(open_descriptors(), fds);
}

/* A thread of libuv's that reads a pipe waits there until we write. */
static ebb_file open_pipe(loop_world *w, int *other) {
    const char *path = fifo_in(w);
    ebb_value v;
    ebb_future *f = ebb_file_open(w->cx, path, O_RDONLY, 0);
    *other = open(path, O_WRONLY);
    assert_int_equal(loop_await(w, f, &v), EBB_OK);
    return ebb_file_of(v);
}

static void a_cancelled_read_of_a_file_never_writes_to_its_buffer(void **state) {
    loop_world *w = *state;
    int other;
    ebb_file f = open_pipe(w, &other);
    char *gone = malloc(64);
    ebb_future *r = ebb_file_read(w->cx, f, gone, 64, EBB_FILE_HERE);
    what_was_asked_for_has_begun(w);
    assert_true(ebb_future_cancel(r, EBB_CANCEL_USER));
    free(gone); /* the thread that reads has memory of ours */
    loop_turns(w, 2);
    send_text(other, "late");
    loop_run(w);
    assert_int_equal(status_now(r), EBB_CANCELLED);
    close(other);
}

static void a_cancelled_write_of_a_file_lets_go_of_its_bytes(void **state) {
    loop_world *w = *state;
    enum { MUCH = 8 << 20 };
    const char *path = fifo_in(w);
    ebb_value v;
    ebb_future *f = ebb_file_open(w->cx, path, O_WRONLY, 0);
    int other = open(path, O_RDONLY);
    assert_int_equal(loop_await(w, f, &v), EBB_OK);
    char *much = calloc(1, MUCH), bytes[4096];
    ebb_future *write = ebb_file_write(w->cx, ebb_file_of(v), much, MUCH, EBB_FILE_HERE);
    what_was_asked_for_has_begun(w);
    assert_true(ebb_future_cancel(write, EBB_CANCEL_USER));
    free(much);
    size_t n = 0;
    assert_int_equal(fcntl(other, F_SETFL, O_NONBLOCK), 0);
    while (uv_loop_alive(&w->uv)) {
        ssize_t got = read(other, bytes, sizeof bytes);
        if (got > 0) n += (size_t)got;
        uv_run(&w->uv, UV_RUN_NOWAIT);
    }
    assert_in_range(n, 0, EBB_FILE_PIECE); /* the piece in hand, and no more */
    assert_int_equal(status_now(write), EBB_CANCELLED);
    close(other);
}

typedef struct reading {
    loop_world *world;
    ebb_region region;
    ebb_file file;
    const char *path;
    char bytes[64];
} reading;

static ebb_status open_and_read(ebb_cx *cx, void *arg) {
    reading *r = arg;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, r->path, O_RDONLY, 0), &v);
    if (st != EBB_OK) return st;
    r->file = ebb_file_of(v);
    return ebb_await(cx, ebb_file_read(cx, r->file, r->bytes, sizeof r->bytes, EBB_FILE_HERE), NULL);
}

static bool file_is_open(void *arg) {
    return ((reading *)arg)->file.id != 0;
}

static bool its_region_is_closed(void *arg) {
    reading *r = arg;
    return region_is_closed(r->world, r->region);
}

static void a_region_waits_for_a_read_that_can_not_be_stopped(void **state) {
    loop_world *w = *state;
    reading r = {.path = fifo_in(w)};
    ebb_region region = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, region, open_and_read, &r);
    loop_turns(w, 2);
    int other = open(r.path, O_WRONLY);
    loop_until(w, file_is_open, &r);
    what_was_asked_for_has_begun(w);
    ebb_region_cancel(w->cx, region, EBB_CANCEL_USER, NULL);
    loop_turns(w, 5);
    assert_false(region_is_closed(w, region)); /* its task has ended, its read has not */
    send_text(other, "at last");
    loop_run(w);
    assert_int_equal(ebb_region_join(w->cx, region), EBB_CANCELLED);
    close(other);
}

static void when_its_budget_is_over_a_region_does_not_wait_and_the_file_is_closed_later(void **state) {
    loop_world *w = *state;
    reading r = {.path = fifo_in(w)};
    int fds = open_descriptors();
    ebb_region region = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, region, open_and_read, &r);
    loop_turns(w, 2);
    int other = open(r.path, O_WRONLY);
    loop_until(w, file_is_open, &r);
    what_was_asked_for_has_begun(w);
    ebb_budget budget = {ebb_now(ebb_loop_cx(w->loop)) + 50 * EBB_MS, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(w->cx, region, EBB_CANCEL_USER, NULL, budget);
    r.region = region;
    r.world = w;
    loop_until(w, its_region_is_closed, &r);
    assert_int_equal(ebb_region_join(w->cx, region), EBB_CANCELLED);
    ebb_loop_leftover left[2];
    size_t n;
    assert_int_equal(ebb_loop_close(w->loop, left, 2, &n), EBB_ERR_BUSY); /* abandoned, but owned */
    assert_int_equal(n, 2);
    assert_string_equal(left[0].what, "file");
    assert_string_equal(left[1].what, "file read");
    send_text(other, "at last");
    close(other);
    loop_run(w);
    assert_int_equal(open_descriptors(), fds);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static void names_are_looked_up(void **state) {
    loop_world *w = *state;
    ebb_value v;
    size_t n;
    assert_int_equal(loop_await(w, ebb_dns_resolve(w->cx, "127.0.0.1", 80), &v), EBB_OK);
    const ebb_address *a = ebb_dns_addresses_of(&v, &n);
    assert_int_equal(n, 1);
    assert_string_equal(a->ip, "127.0.0.1");
    assert_int_equal(a->port, 80);
    ebb_value_discard(w->cx, v);
    assert_int_equal(loop_await(w, ebb_dns_resolve(w->cx, "localhost", 1), &v), EBB_OK);
    assert_non_null(ebb_dns_addresses_of(&v, &n));
    assert_true(n > 0);
    ebb_value_discard(w->cx, v);
    v = ebb_value_none();
    assert_null(ebb_dns_addresses_of(&v, &n));
}

static void names_that_are_none_fail(void **state) {
    loop_world *w = *state;
    assert_int_equal(status_now(ebb_dns_resolve(w->cx, NULL, 1)), EBB_ERR_INVALID);
    assert_int_not_equal(loop_await(w, ebb_dns_resolve(w->cx, "no such name", 1), NULL), EBB_OK);
    char name[600];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    ebb_status st = loop_await(w, ebb_dns_resolve(w->cx, name, 1), NULL);
    assert_true(st < EBB_STATUS_USER);
    assert_string_not_equal(ebb_status_name(st), "EBB_USER");
}

/* ---- blocking work -------------------------------------------------------------------------------------------------- */

static _Atomic int runs, freed;

static void count_free(void *word) {
    (void)word;
    freed++;
}

static const ebb_type counted = {"counted", 0, NULL, count_free, 0};

static ebb_status compute(void *arg, ebb_value *v) {
    runs++;
    *v = ebb_value_int(*(int *)arg + 21);
    return EBB_OK;
}

static ebb_status fails(void *arg, ebb_value *v) {
    (void)v;
    return *(ebb_status *)arg;
}

static ebb_status waits(void *arg, ebb_value *v) {
    uv_sem_wait(arg);
    *v = ebb_value_owned(&counted, arg);
    return EBB_OK;
}

static void blocking_work_gives_its_value_or_its_failure(void **state) {
    loop_world *w = *state;
    int n = 21;
    ebb_status st = (ebb_status)-1234, pending = EBB_PENDING;
    ebb_value v;
    assert_int_equal(loop_await(w, ebb_pool_run(w->cx, compute, &n), &v), EBB_OK);
    assert_int_equal(v.as.i, 42);
    assert_int_equal(loop_await(w, ebb_pool_run(w->cx, fails, &st), NULL), st);
    assert_int_equal(loop_await(w, ebb_pool_run(w->cx, fails, &pending), NULL), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_pool_run(w->cx, NULL, NULL)), EBB_ERR_INVALID);
}

static ebb_status gives_an_object(void *arg, ebb_value *v) {
    static const ebb_type boxed = {"boxed", 8, NULL, NULL, 0};
    *v = ebb_value_owned(&boxed, arg);
    return EBB_OK;
}

static void blocking_work_may_not_give_objects_of_a_heap(void **state) {
    loop_world *w = *state;
    int n = 0;
    assert_int_equal(loop_await(w, ebb_pool_run(w->cx, gives_an_object, &n), NULL), EBB_ERR_INVALID);
}

static void blocking_work_that_comes_too_late_is_disposed_of(void **state) {
    loop_world *w = *state;
    uv_sem_t sem;
    uv_sem_init(&sem, 0);
    freed = 0;
    ebb_future *f = ebb_pool_run(w->cx, waits, &sem);
    what_was_asked_for_has_begun(w);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    loop_turns(w, 3);
    assert_int_equal(freed, 0);
    uv_sem_post(&sem);
    loop_run(w);
    assert_int_equal(status_now(f), EBB_CANCELLED);
    assert_int_equal(freed, 1);
    uv_sem_destroy(&sem);
}

static void work_that_has_not_begun_never_does(void **state) {
    loop_world *w = *state;
    enum { THREADS = 4, MANY = 20 }; /* libuv has four threads, if nobody says otherwise */
    uv_sem_t sem;
    ebb_future *busy[THREADS], *idle[MANY];
    int n = 1;
    uv_sem_init(&sem, 0);
    runs = 0;
    for (int i = 0; i < THREADS; i++) busy[i] = ebb_pool_run(w->cx, waits, &sem);
    for (int i = 0; i < MANY; i++) idle[i] = ebb_pool_run(w->cx, compute, &n);
    for (int i = 0; i < MANY; i++) assert_true(ebb_future_cancel(idle[i], EBB_CANCEL_USER));
    loop_turns(w, 3);
    for (int i = 0; i < THREADS; i++) uv_sem_post(&sem);
    for (int i = 0; i < THREADS; i++) assert_int_equal(loop_await(w, busy[i], NULL), EBB_OK);
    loop_run(w);
    assert_int_equal(runs, 0);
    for (int i = 0; i < MANY; i++) assert_int_equal(status_now(idle[i]), EBB_CANCELLED);
    uv_sem_destroy(&sem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(what_was_written_is_read),
        ON_A_LOOP(much_is_written_piece_by_piece),
        ON_A_LOOP(rename_stat_and_unlink_do_what_they_say),
        ON_A_LOOP(what_can_not_be_is_named),
        ON_A_LOOP(a_file_is_closed_after_what_is_pending_on_it),
        ON_A_LOOP(a_file_that_was_opened_too_late_is_closed),
        ON_A_LOOP(a_cancelled_read_of_a_file_never_writes_to_its_buffer),
        ON_A_LOOP(a_cancelled_write_of_a_file_lets_go_of_its_bytes),
        ON_A_LOOP(a_region_waits_for_a_read_that_can_not_be_stopped),
        ON_A_LOOP(when_its_budget_is_over_a_region_does_not_wait_and_the_file_is_closed_later),
        ON_A_LOOP(names_are_looked_up),
        ON_A_LOOP(names_that_are_none_fail),
        ON_A_LOOP(blocking_work_gives_its_value_or_its_failure),
        ON_A_LOOP(blocking_work_may_not_give_objects_of_a_heap),
        ON_A_LOOP(blocking_work_that_comes_too_late_is_disposed_of),
        ON_A_LOOP(work_that_has_not_begun_never_does),
    };
    signal(SIGPIPE, SIG_IGN);
    setenv("UV_THREADPOOL_SIZE", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
