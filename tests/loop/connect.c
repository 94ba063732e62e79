/* Listening, accepting, connecting; and connections that come too late for whoever wanted them. */
#include "tests/support/loop_world.h"

static ebb_listener listen_tcp(loop_world *w, ebb_address *at) {
    *at = (ebb_address){"127.0.0.1", 0};
    ebb_listener l = ebb_tcp_listen(w->cx, at);
    assert_int_equal(ebb_listener_address(w->cx, l, at), EBB_OK);
    assert_int_not_equal(at->port, 0);
    return l;
}

static ebb_listener listen_unix(loop_world *w, const char **path) {
    *path = path_in(w, "socket");
    ebb_listener l = ebb_pipe_listen(w->cx, *path);
    assert_int_equal(ebb_id_status(l.id), EBB_OK);
    return l;
}

/* ---- both ends ---------------------------------------------------------------------------------------- */

typedef struct both {
    ebb_address at;
    const char *path;
    ebb_listener listener;
    ebb_address seen;
} both;

static ebb_status hello(ebb_cx *cx, ebb_stream a, ebb_stream b) {
    char bytes[8];
    ebb_value n;
    ebb_status st = ebb_await(cx, ebb_stream_write(cx, a, "hello", 5), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, b, bytes, sizeof bytes), &n);
    if (st == EBB_OK && (n.as.u != 5 || memcmp(bytes, "hello", 5) != 0)) st = EBB_FAILED;
    return st;
}

static ebb_status connect_and_greet(ebb_cx *cx, void *arg) {
    both *b = arg;
    ebb_value client, server;
    ebb_future *accepted = ebb_listener_accept(cx, b->listener);
    ebb_status st =
        ebb_await(cx, b->path != NULL ? ebb_pipe_connect(cx, b->path) : ebb_tcp_connect(cx, &b->at), &client);
    if (st == EBB_OK) st = ebb_await(cx, accepted, &server);
    if (st == EBB_OK) st = hello(cx, ebb_stream_of(client), ebb_stream_of(server));
    if (st == EBB_OK) st = hello(cx, ebb_stream_of(server), ebb_stream_of(client));
    if (b->path != NULL) return st;
    if (st == EBB_OK) st = ebb_stream_nodelay(cx, ebb_stream_of(client), true);
    if (st == EBB_OK) st = ebb_stream_peer(cx, ebb_stream_of(client), &b->seen);
    return st;
}

static void two_ends_of_tcp_talk(void **state) {
    loop_world *w = *state;
    both b = {.path = NULL};
    b.listener = listen_tcp(w, &b.at);
    assert_int_equal(run_fiber(w, connect_and_greet, &b), EBB_OK);
    assert_string_equal(b.seen.ip, "127.0.0.1");
    assert_int_equal(b.seen.port, b.at.port);
}

static void two_ends_of_a_unix_socket_talk(void **state) {
    loop_world *w = *state;
    both b = {.path = NULL};
    b.listener = listen_unix(w, &b.path);
    assert_int_equal(run_fiber(w, connect_and_greet, &b), EBB_OK);
    ebb_address a;
    assert_int_equal(ebb_listener_address(w->cx, b.listener, &a), EBB_ERR_INVALID);
    assert_int_equal(ebb_listener_close(w->cx, b.listener), EBB_OK);
    loop_turns(w, 2);
    assert_int_equal(access(b.path, F_OK), -1); /* the path goes with it */
}

static void the_other_family_of_addresses_works_too(void **state) {
    loop_world *w = *state;
    both b = {.at = {"::1", 0}};
    b.listener = ebb_tcp_listen(w->cx, &b.at);
    ebb_status st = ebb_listener_address(w->cx, b.listener, &b.at);
    if (st == EBB_ERRNO(EADDRNOTAVAIL) || st == EBB_ERRNO(EAFNOSUPPORT)) skip(); /* no IPv6 here */
    assert_int_equal(st, EBB_OK);
    assert_int_equal(run_fiber(w, connect_and_greet, &b), EBB_OK);
    assert_string_equal(b.seen.ip, "::1");
}

/* ---- what can't be ----------------------------------------------------------------------------------------- */

static void bad_addresses_are_refused(void **state) {
    loop_world *w = *state;
    const char *bad[] = {"", "localhost", "127.0.0", "1.2.3.4.5", "::g", "256.1.1.1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ebb_address a = {.port = 1};
        snprintf(a.ip, sizeof a.ip, "%s", bad[i]);
        assert_int_equal(ebb_id_status(ebb_tcp_listen(w->cx, &a).id), EBB_ERR_INVALID);
        assert_int_equal(status_now(ebb_tcp_connect(w->cx, &a)), EBB_ERR_INVALID);
    }
    ebb_address endless;
    memset(endless.ip, '1', sizeof endless.ip);
    assert_int_equal(status_now(ebb_tcp_connect(w->cx, &endless)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_tcp_connect(w->cx, NULL)), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_tcp_listen(w->cx, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_pipe_listen(w->cx, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_pipe_listen(w->cx, "").id), EBB_ERR_INVALID);
    char path[200];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(ebb_id_status(ebb_pipe_listen(w->cx, path).id), EBB_ERRNO(ENAMETOOLONG));
    assert_int_equal(status_now(ebb_pipe_connect(w->cx, path)), EBB_ERRNO(ENAMETOOLONG));
    assert_int_equal(status_now(ebb_pipe_connect(w->cx, NULL)), EBB_ERR_INVALID);
}

static void a_port_in_use_is_named_and_sticks_to_the_id(void **state) {
    loop_world *w = *state;
    ebb_address at;
    listen_tcp(w, &at);
    ebb_listener l = ebb_tcp_listen(w->cx, &at);
    assert_int_equal(ebb_id_status(l.id), EBB_ERRNO(EADDRINUSE));
    assert_int_equal(status_now(ebb_listener_accept(w->cx, l)), EBB_ERRNO(EADDRINUSE));
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_ERRNO(EADDRINUSE));
    assert_int_equal(ebb_listener_address(w->cx, l, &at), EBB_ERRNO(EADDRINUSE));
    const char *path;
    listen_unix(w, &path);
    assert_int_equal(ebb_id_status(ebb_pipe_listen(w->cx, path).id), EBB_ERRNO(EADDRINUSE));
    assert_int_equal(ebb_id_status(ebb_pipe_listen(w->cx, "/nowhere/at/all").id), EBB_ERRNO(EACCES));
}

static void nobody_listens_there(void **state) {
    loop_world *w = *state;
    ebb_address at;
    ebb_listener l = listen_tcp(w, &at);
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_OK);
    loop_turns(w, 2);
    assert_int_equal(loop_await(w, ebb_tcp_connect(w->cx, &at), NULL), EBB_ERRNO(ECONNREFUSED));
    assert_int_equal(loop_await(w, ebb_pipe_connect(w->cx, path_in(w, "none")), NULL), EBB_ERRNO(ENOENT));
}

/* ---- cancels ------------------------------------------------------------------------------------------------- */

/* Somebody outside who listens, and accepts nothing: not even `backlog` and a few more. */
static int listen_outside(ebb_address *at, int backlog) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t n = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &n), 0);
    *at = (ebb_address){"127.0.0.1", ntohs(in.sin_port)};
    return fd;
}

static void a_connect_that_is_cancelled_gives_its_socket_up(void **state) {
    loop_world *w = *state;
    ebb_address at;
    int outside = listen_outside(&at, 8), fds = 0;
    for (int turns = 0; turns < 4; turns++) {
        ebb_future *f = ebb_tcp_connect(w->cx, &at);
        assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
        loop_turns(w, turns);
        assert_int_equal(status_now(f), EBB_CANCELLED);
        loop_run(w);
        if (turns == 0) fds = open_descriptors(); /* libuv keeps one for itself from its first socket on */
        assert_int_equal(open_descriptors(), fds);
    }
    close(outside);
}

static void a_connect_that_takes_for_ever_can_be_cancelled(void **state) {
    loop_world *w = *state;
    enum { FULL = 8 };
    ebb_address at;
    ebb_future *f[FULL];
    int outside = listen_outside(&at, 0), pending = 0;
    for (int i = 0; i < FULL; i++) f[i] = ebb_tcp_connect(w->cx, &at); /* two or so find room in its queue */
    loop_turns(w, 20);
    for (int i = 0; i < FULL; i++) pending += ebb_future_status_of(f[i]) == EBB_PENDING;
    assert_in_range(pending, 1, FULL);
    for (int i = 0; i < FULL; i++) ebb_future_cancel(f[i], EBB_CANCEL_USER);
    loop_run(w); /* does not wait for what the system does not answer */
    for (int i = 0; i < FULL; i++) ebb_future_drop(f[i]);
    close(outside);
}

static void only_one_accepts_at_a_time(void **state) {
    loop_world *w = *state;
    const char *path;
    ebb_listener l = listen_unix(w, &path);
    ebb_future *f = ebb_listener_accept(w->cx, l);
    assert_int_equal(status_now(ebb_listener_accept(w->cx, l)), EBB_ERR_BUSY);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    ebb_future *g = ebb_listener_accept(w->cx, l);
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_OK);
    assert_int_equal(loop_await(w, g, NULL), EBB_ERR_CLOSED);
    assert_int_equal(status_now(f), EBB_CANCELLED);
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_ERR_CLOSED);
    assert_int_equal(status_now(ebb_listener_accept(w->cx, l)), EBB_ERR_CLOSED);
}

static void a_cancelled_accept_leaves_the_connection_to_the_next(void **state) {
    loop_world *w = *state;
    const char *path;
    ebb_value v;
    char byte;
    ebb_listener l = listen_unix(w, &path);
    ebb_future *f = ebb_listener_accept(w->cx, l);
    int fd = connect_to(path);
    send_text(fd, "1");
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    loop_turns(w, 5);
    assert_int_equal(status_now(f), EBB_CANCELLED);
    int second = connect_to(path);
    send_text(second, "2");
    for (int c = '1'; c <= '2'; c++) {
        assert_int_equal(loop_await(w, ebb_listener_accept(w->cx, l), &v), EBB_OK);
        ebb_stream s = ebb_stream_of(v);
        assert_int_equal(loop_await(w, ebb_stream_read(w->cx, s, &byte, 1), NULL), EBB_OK);
        assert_int_equal(byte, c);
    }
    close(fd);
    close(second);
}

static void many_that_connect_at_once_are_all_accepted(void **state) {
    loop_world *w = *state;
    enum { MANY = 40 };
    const char *path;
    int fd[MANY];
    ebb_listener l = listen_unix(w, &path);
    for (int i = 0; i < MANY; i++) fd[i] = connect_to(path);
    loop_turns(w, 3);
    for (int i = 0; i < MANY; i++) {
        ebb_value v;
        assert_int_equal(loop_await(w, ebb_listener_accept(w->cx, l), &v), EBB_OK);
        ebb_value_discard(w->cx, v); /* closes it */
    }
    loop_turns(w, 2);
    char byte;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(read(fd[i], &byte, 1), 0);
        close(fd[i]);
    }
}

static ebb_status accept_one(ebb_cx *cx, void *arg) {
    return ebb_await(cx, ebb_listener_accept(cx, *(const ebb_listener *)arg), NULL);
}

static void an_accept_of_a_region_that_was_forced_takes_nothing(void **state) {
    loop_world *w = *state;
    const char *path;
    ebb_value v;
    ebb_listener l = listen_unix(w, &path);
    ebb_region r = ebb_region_open(w->cx, NULL);
    ebb_fiber_spawn(w->cx, r, accept_one, &l);
    loop_turns(w, 2);
    ebb_region_force(w->cx, r);
    int fd = connect_to(path);
    loop_turns(w, 3);
    assert_int_equal(ebb_region_join(w->cx, r), EBB_CANCELLED);
    assert_int_equal(loop_await(w, ebb_listener_accept(w->cx, l), &v), EBB_OK);
    close(fd);
}

/* ---- lost accepts ----------------------------------------------------------------------------------------------- */

/* A check handle of ours runs between libuv's callbacks and the pump: there the accept has its connection,
 * and nobody has heard of it yet. */
typedef struct thief {
    uv_check_t check;
    ebb_future *wanted; /* cancelled there, once its accept is done */
    ebb_future *accept;
    uint32_t lost;
} thief;

static void steal(uv_check_t *check) {
    thief *t = check->data;
    if (t->wanted == NULL || ebb_future_status_of(t->accept) != EBB_OK) return;
    if (ebb_future_cancel(t->wanted, EBB_CANCEL_USER)) t->lost++;
    t->wanted = NULL;
}

static ebb_value pass_on(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static void the_count_of_descriptors_stays_flat_over_lost_accepts(void **state) {
    loop_world *w = *state;
    const uint32_t rounds = getenv("EBB_TEST_GC") != NULL ? 1000 : 100000;
    const char *path;
    ebb_listener l = listen_unix(w, &path);
    thief t = {.lost = 0};
    uv_check_init(&w->uv, &t.check);
    t.check.data = &t;
    uv_check_start(&t.check, steal);
    uv_unref((uv_handle_t *)&t.check);
    int fds = 0;
    char byte;
    for (uint32_t i = 0; i < rounds; i++) {
        t.accept = ebb_listener_accept(w->cx, l);
        ebb_future *f = t.wanted = ebb_map(w->cx, t.accept, pass_on, NULL);
        int fd = connect_to(path);
        while (t.wanted != NULL) loop_turns(w, 1);
        assert_int_equal(status_now(f), EBB_CANCELLED);
        assert_int_equal(read(fd, &byte, 1), 0); /* closed, not only forgotten */
        close(fd);
        if (i % 1000 != 10) continue;
        loop_run(w);
        if (fds == 0) fds = open_descriptors();
        assert_int_equal(open_descriptors(), fds);
    }
    assert_int_equal(t.lost, rounds);
    uv_close((uv_handle_t *)&t.check, NULL);
    loop_run(w);
}

/* The same with a thread that cancels whenever it likes. */
typedef struct canceller {
    ebb_remote *_Atomic next;
    _Atomic bool stop;
} canceller;

static void cancel_all(void *arg) {
    canceller *c = arg;
    for (unsigned n = 0; !c->stop; n += 7) {
        ebb_remote *r = atomic_exchange(&c->next, NULL);
        if (r == NULL) continue;
        for (volatile unsigned i = 0; i < n % 8192; i++) continue;
        (void)ebb_remote_cancel(r, EBB_CANCEL_USER);
        ebb_remote_release(r);
    }
}

static void no_connection_leaks_if_another_thread_cancels(void **state) {
    loop_world *w = *state;
    const char *path;
    ebb_listener l = listen_unix(w, &path);
    canceller c = {NULL, false};
    uv_thread_t thread;
    assert_int_equal(uv_thread_create(&thread, cancel_all, &c), 0);
    int accepted = 0, lost = 0, waiting = 0;
    char byte;
    for (int i = 0; i < 2000; i++) {
        ebb_remote *r;
        ebb_value v;
        ebb_future *f = ebb_listener_accept(w->cx, l);
        assert_int_equal(ebb_remote_new(f, &r), EBB_OK);
        atomic_store(&c.next, r);
        int fd = connect_to(path);
        ebb_status st = loop_await(w, f, &v);
        while (atomic_load(&c.next) != NULL) continue;
        loop_turns(w, 2);
        if (st == EBB_OK) {
            accepted++;
            ebb_value_discard(w->cx, v);
        } else if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) { /* accepted, and closed since it was too late */
            lost++;
        } else {
            waiting++;
            assert_int_equal(loop_await(w, ebb_listener_accept(w->cx, l), NULL), EBB_OK);
        }
        close(fd);
    }
    c.stop = true;
    uv_thread_join(&thread);
    print_message("%d accepted, %d lost, %d not accepted yet\n", accepted, lost, waiting);
    loop_turns(w, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(two_ends_of_tcp_talk),
        ON_A_LOOP(two_ends_of_a_unix_socket_talk),
        ON_A_LOOP(the_other_family_of_addresses_works_too),
        ON_A_LOOP(bad_addresses_are_refused),
        ON_A_LOOP(a_port_in_use_is_named_and_sticks_to_the_id),
        ON_A_LOOP(nobody_listens_there),
        ON_A_LOOP(a_connect_that_is_cancelled_gives_its_socket_up),
        ON_A_LOOP(a_connect_that_takes_for_ever_can_be_cancelled),
        ON_A_LOOP(only_one_accepts_at_a_time),
        ON_A_LOOP(a_cancelled_accept_leaves_the_connection_to_the_next),
        ON_A_LOOP(many_that_connect_at_once_are_all_accepted),
        ON_A_LOOP(an_accept_of_a_region_that_was_forced_takes_nothing),
        ON_A_LOOP(the_count_of_descriptors_stays_flat_over_lost_accepts),
        ON_A_LOOP(no_connection_leaks_if_another_thread_cancels),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
