/* Streams: reading, writing, closing, and what a cancel leaves of them. */
#include "tests/support/loop_world.h"

#include <sched.h>

/* ---- reading -------------------------------------------------------------------------------------------- */

static void a_read_gives_what_is_there(void **state) {
    loop_world *w = *state;
    int fd;
    char bytes[16] = "";
    ebb_value n;
    ebb_stream s = stream_pair(w, &fd);
    send_text(fd, "hello");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), &n), EBB_OK);
    assert_int_equal(n.as.u, 5);
    assert_memory_equal(bytes, "hello", 5);
    close(fd);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
}

static void a_read_waits_and_takes_no_more_than_its_room(void **state) {
    loop_world *w = *state;
    int fd;
    char bytes[4];
    ebb_value n;
    probe p;
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *f = ebb_stream_read(w->cx, s, bytes, sizeof bytes);
    probe_watch(&p, f);
    loop_turns(w, 3);
    assert_false(p.over);
    send_text(fd, "abcdefgh");
    loop_until(w, is_true, &p.over);
    ebb_future_drop(f);
    assert_int_equal(p.value.as.u, 4);
    loop_turns(w, 5); /* nobody reads: what is left stays where it is */
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), &n), EBB_OK);
    assert_int_equal(n.as.u, 4);
    assert_memory_equal(bytes, "efgh", 4);
    close(fd);
}

static void count_turn(uv_prepare_t *prepare) {
    ++*(int *)prepare->data;
}

static void bytes_that_nobody_reads_do_not_keep_the_loop_busy(void **state) {
    loop_world *w = *state;
    int fd, turns = 0;
    char bytes[4];
    uv_prepare_t prepare;
    ebb_stream s = stream_pair(w, &fd);
    send_text(fd, "abcdefgh");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), NULL), EBB_OK);
    uv_prepare_init(&w->uv, &prepare);
    prepare.data = &turns;
    uv_prepare_start(&prepare, count_turn);
    uv_unref((uv_handle_t *)&prepare);
    assert_int_equal(loop_await(w, ebb_after(ebb_loop_cx(w->loop), 50 * EBB_MS), NULL), EBB_OK);
    assert_in_range(turns, 1, 20);
    uv_close((uv_handle_t *)&prepare, NULL);
    loop_run(w);
    close(fd);
}

static void the_end_of_a_stream_has_a_name_and_stays(void **state) {
    loop_world *w = *state;
    int fd;
    char byte;
    ebb_stream s = stream_pair(w, &fd);
    send_text(fd, "x");
    close(fd);
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, &byte, 1), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, &byte, 1), NULL), EBB_ERR_EOF);
    assert_int_equal(status_now(ebb_stream_read(w->cx, s, &byte, 1)), EBB_ERR_EOF);
}

static void a_reset_is_the_systems_failure(void **state) {
    loop_world *w = *state;
    ebb_address at = {"127.0.0.1", 0};
    ebb_listener l = ebb_tcp_listen(w->cx, &at);
    assert_int_equal(ebb_listener_address(w->cx, l, &at), EBB_OK);
    ebb_value v;
    char byte;
    probe accepted;
    ebb_future *f = ebb_listener_accept(w->cx, l);
    probe_watch(&accepted, f);
    assert_int_equal(loop_await(w, ebb_tcp_connect(w->cx, &at), &v), EBB_OK);
    ebb_stream client = ebb_stream_of(v);
    loop_until(w, is_true, &accepted.over);
    ebb_future_drop(f);
    ebb_stream server = ebb_stream_of(accepted.value);
    /* Closing with bytes that nobody has read is a reset. */
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, client, "x", 1), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, server, "y", 1), NULL), EBB_OK);
    assert_int_equal(ebb_stream_close(w->cx, server), EBB_OK);
    ebb_status st;
    do st = loop_await(w, ebb_stream_read(w->cx, client, &byte, 1), NULL);
    while (st == EBB_OK);
    assert_int_equal(st, EBB_ERRNO(ECONNRESET));
    assert_string_equal(ebb_status_name(st), "ECONNRESET");
}

static void only_one_may_read_at_a_time(void **state) {
    loop_world *w = *state;
    int fd;
    char a, b;
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *f = ebb_stream_read(w->cx, s, &a, 1);
    assert_int_equal(status_now(ebb_stream_read(w->cx, s, &b, 1)), EBB_ERR_BUSY);
    /* A cancelled one is out of the way at once, before any pump. */
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future *g = ebb_stream_read(w->cx, s, &b, 1);
    send_text(fd, "z");
    assert_int_equal(loop_await(w, g, NULL), EBB_OK);
    assert_int_equal(b, 'z');
    assert_int_equal(status_now(f), EBB_CANCELLED);
    close(fd);
}

static void sizes_that_make_no_sense_are_refused(void **state) {
    loop_world *w = *state;
    int fd;
    char byte = 0;
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(status_now(ebb_stream_read(w->cx, s, &byte, 0)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_stream_read(w->cx, s, NULL, 1)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_stream_read(w->cx, s, &byte, (size_t)-1)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_stream_write(w->cx, s, NULL, 1)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_stream_write(w->cx, s, &byte, (size_t)-1)), EBB_ERR_INVALID);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, s, NULL, 0), NULL), EBB_OK);
    close(fd);
}

/* ---- cancelled reads -------------------------------------------------------------------------------------------- */

static void a_cancelled_read_takes_no_bytes_and_touches_no_memory(void **state) {
    loop_world *w = *state;
    int fd;
    ebb_value n;
    ebb_stream s = stream_pair(w, &fd);
    for (int round = 0; round < 50; round++) {
        char *gone = malloc(64), bytes[64];
        ebb_future *f = ebb_stream_read(w->cx, s, gone, 64);
        loop_turns(w, round % 3);
        send_text(fd, "kept");
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        free(gone); /* it has ended: its bytes are ours again, whether libuv has heard of it or not */
        loop_turns(w, round % 2);
        assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), &n), EBB_OK);
        assert_int_equal(n.as.u, 4);
        assert_memory_equal(bytes, "kept", 4);
        ebb_future_drop(f);
    }
    close(fd);
}

static ebb_status read_in_time(ebb_cx *cx, void *arg) {
    const ebb_stream *s = arg;
    char bytes[64]; /* on the fiber's stack, which is gone after the timeout */
    return ebb_await(cx, ebb_within(cx, ebb_stream_read(cx, *s, bytes, sizeof bytes), 2 * EBB_MS), NULL);
}

static void a_read_that_is_too_late_is_cancelled(void **state) {
    loop_world *w = *state;
    int fd;
    char bytes[8];
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(run_fiber(w, read_in_time, &s), EBB_TIMEOUT);
    send_text(fd, "late");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), NULL), EBB_OK);
    assert_memory_equal(bytes, "late", 4);
    close(fd);
}

static ebb_value as_it_is(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)arg;
    return *v;
}

typedef struct slow_reader {
    ebb_stream stream;
    char *bytes;
    bool over;
} slow_reader;

/* What it awaits is made of a read. When it is cancelled its memory goes, and nobody has told the read. */
static ebb_status read_by_a_map(ebb_cx *cx, void *arg) {
    slow_reader *r = arg;
    r->bytes = malloc(64);
    ebb_status st =
        ebb_await(cx, ebb_map(cx, ebb_stream_read(cx, r->stream, r->bytes, 64), as_it_is, NULL), NULL);
    free(r->bytes);
    r->over = true;
    return st;
}

static void memory_is_free_when_what_was_made_of_a_read_has_ended(void **state) {
    loop_world *w = *state;
    uv_loop_t uv;
    ebb_loop *l;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_loop_opts opts = {.runtime = {.allocator = ebb_failing_allocator(&memory), .runtime_id = 8},
                          .polls = 1};
    int fd[2];
    (void)w;
    assert_int_equal(uv_loop_init(&uv), 0);
    assert_int_equal(ebb_loop_attach(&uv, &opts, &l),
                     EBB_OK); /* one poll, then the sockets have their turn */
    ebb_cx *cx = ebb_loop_cx(l);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    slow_reader r = {.stream = ebb_stream_adopt(cx, fd[0])};
    ebb_task t = ebb_fiber_spawn(cx, ebb_runtime_root(ebb_loop_runtime(l)), read_by_a_map, &r);
    for (int i = 0; i < 10; i++) uv_run(&uv, UV_RUN_NOWAIT);
    ebb_task_cancel(ebb_loop_cx(l), t, EBB_CANCEL_USER, NULL);
    send_text(fd[1], "late");
    while (!r.over) uv_run(&uv, UV_RUN_NOWAIT);
    for (int i = 0; i < 10; i++) uv_run(&uv, UV_RUN_NOWAIT);
    char bytes[8];
    ebb_future *f = ebb_stream_read(ebb_loop_cx(l), r.stream, bytes, sizeof bytes); /* they are still there */
    while (ebb_future_status_of(f) == EBB_PENDING) uv_run(&uv, UV_RUN_ONCE);
    assert_int_equal(status_now(f), EBB_OK);
    assert_memory_equal(bytes, "late", 4);
    ebb_stream_close(ebb_loop_cx(l), r.stream);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(ebb_loop_close(l, NULL, 0, NULL), EBB_OK);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&uv), 0);
    assert_int_equal(memory.live, 0);
    close(fd[1]);
}

/* A thread that cancels reads while they complete, as fast as it can. */
typedef struct canceller {
    ebb_remote *_Atomic next;
    _Atomic bool stop;
} canceller;

/* Both threads spin, to meet. Whoever has waited for long lets the other have the core: there may be only one. */
static void wait_a_little(unsigned *spins) {
    if (++*spins % 20000 == 0) sched_yield();
}

static void cancel_all(void *arg) {
    canceller *c = arg;
    unsigned spins = 0;
    for (unsigned n = 0; !c->stop; n += 7) {
        ebb_remote *r = atomic_exchange(&c->next, NULL);
        if (r == NULL) {
            wait_a_little(&spins);
            continue;
        }
        for (volatile unsigned i = 0; i < n % 4096; i++) continue; /* at times early, at times late */
        (void)ebb_remote_cancel(r, EBB_CANCEL_USER);
        ebb_remote_release(r);
    }
}

/* On a busy machine the threads seldom run at the same time. */
enum { ROUNDS = 3000, ROUNDS_MOST = 20000, ENOUGH = 300 };

static void no_byte_is_lost_to_cancels_from_another_thread(void **state) {
    loop_world *w = *state;
    int fd;
    canceller c = {NULL, false};
    uv_thread_t thread;
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(uv_thread_create(&thread, cancel_all, &c), 0);
    uint8_t expected = 0;
    int lost = 0;
    unsigned spins = 0;
    for (int round = 0; round < ROUNDS || (lost < ENOUGH && round < ROUNDS_MOST); round++) {
        uint8_t byte = (uint8_t)round, got = 0;
        ebb_status st;
        int cancels = 0; /* on a busy machine the other thread may be first for ever */
        assert_int_equal(write(fd, &byte, 1), 1);
        do {
            ebb_remote *r = NULL;
            ebb_future *f = ebb_stream_read(w->cx, s, &got, 1);
            if (round % 4 != 3 && cancels < 8)
                (void)ebb_remote_new(f, &r); /* one that has ended already may be exported too */
            if (r != NULL) atomic_store(&c.next, r);
            st = loop_await(w, f, NULL);
            cancels += st == EBB_CANCELLED;
            while (atomic_load(&c.next) != NULL) wait_a_little(&spins);
        } while (st == EBB_CANCELLED);
        lost += cancels;
        assert_int_equal(st, EBB_OK);
        assert_int_equal(got, expected);
        expected++;
    }
    c.stop = true;
    uv_thread_join(&thread);
    print_message("%d of the reads were cancelled by the other thread\n", lost);
    loop_turns(w, 3);
    close(fd);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

enum { MUCH = 8 << 20 };

/* The other end, which reads in a thread of its own. */
typedef struct sink {
    int fd;
    size_t n;
    bool right;
} sink;

static void drain(void *arg) {
    sink *k = arg;
    unsigned char bytes[4096];
    ssize_t n;
    k->right = true;
    while ((n = read(k->fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] != (unsigned char)((k->n + (size_t)i) % 251)) k->right = false;
        }
        k->n += (size_t)n;
    }
}

static void much_arrives_whole_and_in_order(void **state) {
    loop_world *w = *state;
    sink k = {.n = 0};
    uv_thread_t thread;
    ebb_value n;
    probe p[4];
    ebb_future *f[4];
    unsigned char *all = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++) all[i] = (unsigned char)(i % 251);
    ebb_stream s = stream_pair(w, &k.fd);
    /* Four at once, the first larger than all buffers: the others wait their turn. */
    size_t part = MUCH / 4, at = 0;
    for (int i = 0; i < 4; i++, at += part) {
        f[i] = ebb_stream_write(w->cx, s, all + at, part);
        probe_watch(&p[i], f[i]);
    }
    loop_turns(w, 3);
    assert_false(p[0].over);
    assert_int_equal(uv_thread_create(&thread, drain, &k), 0);
    assert_int_equal(loop_await(w, ebb_stream_shutdown(w->cx, s), &n), EBB_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(p[i].over);
        assert_int_equal(p[i].status, EBB_OK);
        assert_int_equal(p[i].value.as.u, part);
        ebb_future_drop(f[i]);
    }
    uv_thread_join(&thread);
    assert_int_equal(k.n, MUCH);
    assert_true(k.right);
    close(k.fd);
    free(all);
}

static void a_cancelled_write_lets_go_of_its_bytes_at_once(void **state) {
    loop_world *w = *state;
    int fd;
    char *much = calloc(1, MUCH);
    probe first, second;
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *f = ebb_stream_write(w->cx, s, much, MUCH), *g = ebb_stream_write(w->cx, s, "!", 1);
    probe_watch(&first, f);
    probe_watch(&second, g);
    loop_turns(w, 2);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    free(much); /* nothing may read it any more */
    char *bytes = malloc(MUCH), last = 0;
    size_t n = 0;
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (!second.over || last != '!') {
        ssize_t got = read(fd, bytes, MUCH);
        if (got > 0) {
            n += (size_t)got;
            last = bytes[got - 1];
        }
        loop_turns(w, 1);
    }
    assert_int_equal(first.status, EBB_CANCELLED);
    assert_int_equal(second.status, EBB_OK);
    assert_in_range(n, 2, MUCH - 1);
    ebb_future_drop(f);
    ebb_future_drop(g);
    free(bytes);
    close(fd);
}

static void a_write_that_waits_can_be_taken_out_of_the_middle(void **state) {
    loop_world *w = *state;
    sink k = {.n = 0};
    uv_thread_t thread;
    unsigned char *all = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++) all[i] = (unsigned char)(i % 251);
    ebb_stream s = stream_pair(w, &k.fd);
    ebb_future *a = ebb_stream_write(w->cx, s, all, MUCH / 2);
    ebb_future *b = ebb_stream_write(w->cx, s, "never sent", 10);
    ebb_future *c = ebb_stream_write(w->cx, s, all + MUCH / 2, MUCH / 2);
    assert_true(ebb_future_cancel(b, EBB_CANCEL_USER));
    assert_int_equal(uv_thread_create(&thread, drain, &k), 0);
    assert_int_equal(loop_await(w, a, NULL), EBB_OK);
    assert_int_equal(loop_await(w, c, NULL), EBB_OK);
    ebb_future_drop(b);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    uv_thread_join(&thread);
    assert_int_equal(k.n, MUCH);
    assert_true(k.right);
    close(k.fd);
    free(all);
}

static void a_write_to_nobody_fails(void **state) {
    loop_world *w = *state;
    int fd;
    ebb_stream s = stream_pair(w, &fd);
    close(fd);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, s, "x", 1), NULL), EBB_ERRNO(EPIPE));
    assert_int_equal(loop_await(w, ebb_stream_shutdown(w->cx, s), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, s, "x", 1), NULL), EBB_ERRNO(EPIPE));
}

static void a_write_in_hand_fails_with_the_other_end(void **state) {
    loop_world *w = *state;
    int fd;
    char *much = calloc(1, MUCH);
    probe p, q;
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *f = ebb_stream_write(w->cx, s, much, MUCH), *g = ebb_stream_write(w->cx, s, "x", 1);
    probe_watch(&p, f);
    probe_watch(&q, g);
    loop_turns(w, 2);
    assert_false(p.over);
    close(fd);
    loop_until(w, is_true, &q.over);
    assert_int_equal(p.status, EBB_ERRNO(EPIPE));
    assert_int_equal(q.status, EBB_ERRNO(EPIPE));
    ebb_future_drop(f);
    ebb_future_drop(g);
    free(much);
}

static void a_shutdown_ends_the_other_ends_reading_and_not_ours(void **state) {
    loop_world *w = *state;
    int fd;
    char bytes[8];
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, s, "bye", 3), NULL), EBB_OK);
    assert_int_equal(loop_await(w, ebb_stream_shutdown(w->cx, s), NULL), EBB_OK);
    assert_int_equal(read(fd, bytes, sizeof bytes), 3);
    assert_int_equal(read(fd, bytes, sizeof bytes), 0);
    send_text(fd, "ok");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, bytes, sizeof bytes), NULL), EBB_OK);
    assert_memory_equal(bytes, "ok", 2);
    close(fd);
}

static void a_shutdown_can_be_cancelled_while_it_waits(void **state) {
    loop_world *w = *state;
    int fd;
    char *much = calloc(1, MUCH);
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *f = ebb_stream_write(w->cx, s, much, MUCH), *g = ebb_stream_shutdown(w->cx, s);
    assert_true(ebb_future_cancel(g, EBB_CANCEL_USER));
    loop_turns(w, 2);
    assert_int_equal(status_now(g), EBB_CANCELLED);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    assert_int_equal(loop_await(w, f, NULL), EBB_ERR_CLOSED);
    free(much);
    close(fd);
}

/* ---- closing -------------------------------------------------------------------------------------------------------- */

static void closing_ends_what_is_pending(void **state) {
    loop_world *w = *state;
    int fd;
    char byte, *much = calloc(1, MUCH);
    ebb_stream s = stream_pair(w, &fd);
    ebb_future *r = ebb_stream_read(w->cx, s, &byte, 1);
    ebb_future *a = ebb_stream_write(w->cx, s, much, MUCH), *b = ebb_stream_write(w->cx, s, much, 1);
    ebb_future *c = ebb_stream_shutdown(w->cx, s);
    loop_turns(w, 1);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    free(much);
    assert_int_equal(loop_await(w, r, NULL), EBB_ERR_CLOSED);
    assert_int_equal(loop_await(w, a, NULL), EBB_ERR_CLOSED);
    assert_int_equal(loop_await(w, b, NULL), EBB_ERR_CLOSED);
    assert_int_equal(loop_await(w, c, NULL), EBB_ERR_CLOSED);
    close(fd);
}

static void a_closed_stream_is_closed_for_everything(void **state) {
    loop_world *w = *state;
    int fd;
    char byte;
    ebb_address a;
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    for (int gone = 0; gone < 2; gone++) { /* while libuv closes it, and after */
        assert_int_equal(ebb_stream_close(w->cx, s), EBB_ERR_CLOSED);
        assert_int_equal(status_now(ebb_stream_read(w->cx, s, &byte, 1)), EBB_ERR_CLOSED);
        assert_int_equal(status_now(ebb_stream_write(w->cx, s, "x", 1)), EBB_ERR_CLOSED);
        assert_int_equal(status_now(ebb_stream_shutdown(w->cx, s)), EBB_ERR_CLOSED);
        assert_int_equal(ebb_stream_peer(w->cx, s, &a), EBB_ERR_CLOSED);
        assert_int_equal(ebb_stream_move(w->cx, s, w->region), EBB_ERR_CLOSED);
        loop_turns(w, 3);
    }
    int other;
    ebb_stream t = stream_pair(w, &other); /* takes its slot, and not its id */
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_ERR_CLOSED);
    assert_int_equal(ebb_stream_close(w->cx, t), EBB_OK);
    close(fd);
    close(other);
}

static void ids_that_are_none_are_told_apart(void **state) {
    loop_world *w = *state;
    char byte;
    ebb_signal watch = ebb_signal_open(w->cx, SIGUSR1);
    ebb_stream none = {0}, foreign = {watch.id ^ UINT64_C(1) << 60}, kind = {watch.id};
    assert_int_equal(status_now(ebb_stream_read(w->cx, none, &byte, 1)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_stream_read(w->cx, foreign, &byte, 1)), EBB_ERR_FOREIGN);
    assert_int_equal(status_now(ebb_stream_read(w->cx, kind, &byte, 1)), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_stream_adopt(w->cx, -1).id), EBB_ERR_INVALID);
    int file = open("/dev/null", O_RDONLY);
    assert_int_equal(ebb_id_status(ebb_stream_adopt(w->cx, file).id), EBB_ERR_INVALID);
    close(file);
    assert_int_equal(ebb_signal_close(w->cx, watch), EBB_OK);
}

/* ---- regions ---------------------------------------------------------------------------------------------------------- */

static ebb_status read_one(ebb_cx *cx, void *arg) {
    char byte;
    return ebb_await(cx, ebb_stream_read(cx, *(const ebb_stream *)arg, &byte, 1), NULL);
}

typedef struct opener {
    ebb_stream stream;
    int other;
    ebb_region region;
    ebb_status moved;
} opener;

static ebb_status open_and_forget(ebb_cx *cx, void *arg) {
    opener *o = arg;
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0) return EBB_FAILED;
    o->other = fd[1];
    o->stream = ebb_stream_adopt(cx, fd[0]);
    return ebb_id_status(o->stream.id);
}

static void a_stream_is_closed_with_its_region(void **state) {
    loop_world *w = *state;
    opener o = {.other = -1};
    char byte;
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, open_and_forget, &o);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_PENDING);
    loop_run(w);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_OK);
    assert_int_equal(ebb_stream_close(w->cx, o.stream), EBB_ERR_CLOSED);
    assert_int_equal(read(o.other, &byte, 1), 0);
    close(o.other);
}

static void cancelling_a_region_ends_its_reads_and_closes_its_streams(void **state) {
    loop_world *w = *state;
    opener o = {.other = -1};
    char byte;
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, open_and_forget, &o);
    loop_turns(w, 2);
    ebb_fiber_spawn(w->cx, r, read_one, &o.stream);
    loop_turns(w, 2);
    ebb_region_cancel(w->cx, r, EBB_CANCEL_USER, NULL);
    loop_run(w);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_CANCELLED);
    assert_int_equal(read(o.other, &byte, 1), 0);
    close(o.other);
}

static void a_forced_region_leaves_its_streams_to_libuv(void **state) {
    loop_world *w = *state;
    opener o = {.other = -1};
    char byte;
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, open_and_forget, &o);
    loop_turns(w, 2);
    ebb_fiber_spawn(w->cx, r, read_one, &o.stream);
    loop_turns(w, 2);
    ebb_region_force(w->cx, r);
    loop_run(w);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_CANCELLED);
    assert_int_equal(read(o.other, &byte, 1), 0);
    close(o.other);
}

/* What cleans up may still use the streams of its region. */
static ebb_status says_goodbye(ebb_cx *cx, void *arg) {
    const ebb_stream *s = arg;
    char byte;
    ebb_status st = ebb_await(cx, ebb_stream_read(cx, *s, &byte, 1), NULL);
    ebb_mask(cx);
    ebb_status sent = ebb_await(cx, ebb_stream_write(cx, *s, "bye", 3), NULL);
    ebb_unmask(cx);
    return sent == EBB_OK ? st : sent;
}

static void a_cleanup_may_use_the_streams_of_its_region(void **state) {
    loop_world *w = *state;
    opener o = {.other = -1};
    char bytes[8];
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, open_and_forget, &o);
    loop_turns(w, 2);
    ebb_fiber_spawn(w->cx, r, says_goodbye, &o.stream);
    loop_turns(w, 2);
    ebb_region_cancel(w->cx, r, EBB_CANCEL_USER, NULL);
    loop_run(w);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_CANCELLED);
    assert_int_equal(read(o.other, bytes, sizeof bytes), 3);
    assert_int_equal(read(o.other, bytes, sizeof bytes), 0);
    close(o.other);
}

static void a_stream_that_moved_is_closed_with_its_new_region(void **state) {
    loop_world *w = *state;
    opener o = {.other = -1};
    char byte;
    ebb_region a = ebb_region_open(w->cx, NULL), b = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, a, open_and_forget, &o);
    loop_turns(w, 2);
    assert_int_equal(ebb_stream_move(w->cx, o.stream, b), EBB_OK);
    ebb_region_close(w->cx, a);
    loop_turns(w, 5);
    assert_int_equal(ebb_region_join(w->cx, a), EBB_OK);
    assert_int_equal(loop_await(w, ebb_stream_write(w->cx, o.stream, "x", 1), NULL), EBB_OK);
    ebb_region_close(w->cx, b);
    loop_turns(w, 5);
    assert_int_equal(ebb_stream_move(w->cx, o.stream, a), EBB_ERR_CLOSED);
    assert_int_equal(ebb_region_join(w->cx, b), EBB_OK);
    assert_int_equal(read(o.other, &byte, 1), 1);
    assert_int_equal(read(o.other, &byte, 1), 0);
    close(o.other);
    int fd;
    ebb_stream s = stream_pair(w, &fd);
    assert_int_equal(ebb_stream_move(w->cx, s, b), EBB_ERR_CLOSED);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    close(fd);
}

static void a_read_may_belong_to_another_region_than_its_stream(void **state) {
    loop_world *w = *state;
    int fd;
    char byte;
    ebb_stream s = stream_pair(w, &fd); /* of the root */
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, read_one, &s);
    loop_turns(w, 2);
    ebb_region_cancel(w->cx, r, EBB_CANCEL_USER, NULL);
    loop_turns(w, 5);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_CANCELLED);
    send_text(fd, "x");
    assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, &byte, 1), NULL), EBB_OK);
    assert_int_equal(ebb_stream_close(w->cx, s), EBB_OK);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_read_gives_what_is_there),
        ON_A_LOOP(a_read_waits_and_takes_no_more_than_its_room),
        ON_A_LOOP(bytes_that_nobody_reads_do_not_keep_the_loop_busy),
        ON_A_LOOP(the_end_of_a_stream_has_a_name_and_stays),
        ON_A_LOOP(a_reset_is_the_systems_failure),
        ON_A_LOOP(only_one_may_read_at_a_time),
        ON_A_LOOP(sizes_that_make_no_sense_are_refused),
        ON_A_LOOP(a_cancelled_read_takes_no_bytes_and_touches_no_memory),
        ON_A_LOOP(a_read_that_is_too_late_is_cancelled),
        ON_A_LOOP(memory_is_free_when_what_was_made_of_a_read_has_ended),
        ON_A_LOOP(no_byte_is_lost_to_cancels_from_another_thread),
        ON_A_LOOP(much_arrives_whole_and_in_order),
        ON_A_LOOP(a_cancelled_write_lets_go_of_its_bytes_at_once),
        ON_A_LOOP(a_write_that_waits_can_be_taken_out_of_the_middle),
        ON_A_LOOP(a_write_to_nobody_fails),
        ON_A_LOOP(a_write_in_hand_fails_with_the_other_end),
        ON_A_LOOP(a_shutdown_ends_the_other_ends_reading_and_not_ours),
        ON_A_LOOP(a_shutdown_can_be_cancelled_while_it_waits),
        ON_A_LOOP(closing_ends_what_is_pending),
        ON_A_LOOP(a_closed_stream_is_closed_for_everything),
        ON_A_LOOP(ids_that_are_none_are_told_apart),
        ON_A_LOOP(a_stream_is_closed_with_its_region),
        ON_A_LOOP(cancelling_a_region_ends_its_reads_and_closes_its_streams),
        ON_A_LOOP(a_forced_region_leaves_its_streams_to_libuv),
        ON_A_LOOP(a_cleanup_may_use_the_streams_of_its_region),
        ON_A_LOOP(a_stream_that_moved_is_closed_with_its_new_region),
        ON_A_LOOP(a_read_may_belong_to_another_region_than_its_stream),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
