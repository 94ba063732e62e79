/* Listeners when descriptors run out, and when they are drained. */
#define _GNU_SOURCE
#include "tests/support/loop_world.h"

#include "loop/listen_address.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Stands for that of libc. */
static uint32_t accept_calls, accepted_n;

int accept4(int fd, struct sockaddr *restrict at, socklen_t *restrict n, int flags) {
    int got = (int)syscall(SYS_accept4, fd, at, n, flags);
    accept_calls++;
    accepted_n += got >= 0;
    return got;
}

static bool refuses_filters;

int setsockopt(int fd, int level, int option, const void *value, socklen_t n) {
    if (refuses_filters && level == SOL_SOCKET && option == SO_ATTACH_FILTER) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, option, value, n);
}

enum { MANY = 100, FEW_FDS = 256 };

static ebb_listener listen_tcp(loop_world *w, uint16_t *port) {
    ebb_address at = {"127.0.0.1", 0};
    ebb_listener l = ebb_tcp_listen(w->cx, &at);
    assert_int_equal(ebb_listener_address(w->cx, l, &at), EBB_OK);
    *port = at.port;
    return l;
}

static struct sockaddr_in at_port(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connect_tcp(uint16_t port) {
    struct sockaddr_in to = at_port(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static ebb_status accept_one(loop_world *w, ebb_listener l, ebb_stream *s) {
    ebb_value v = {0};
    ebb_status st = loop_await(w, ebb_listener_accept(ebb_loop_cx(w->loop), l), &v);
    *s = ebb_stream_of(v);
    return st;
}

static void accept_and_close(loop_world *w, ebb_listener l) {
    ebb_stream s;
    assert_int_equal(accept_one(w, l, &s), EBB_OK);
    assert_int_equal(ebb_stream_close(ebb_loop_cx(w->loop), s), EBB_OK);
}

/* ---- no descriptors ---------------------------------------------------------------------------------------- */

typedef struct shortage {
    struct rlimit before;
    int taken[FEW_FDS];
    int n;
} shortage;

/* Takes all descriptors that the process may have. */
static void take_all(shortage *s) {
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &s->before), 0);
    struct rlimit few = {FEW_FDS, s->before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (s->n = 0; (s->taken[s->n] = dup(0)) >= 0; s->n++) assert_true(s->n < FEW_FDS - 1);
    assert_int_equal(errno, EMFILE);
}

static void give_one(shortage *s) {
    close(s->taken[--s->n]);
}

static void give_all(shortage *s) {
    while (s->n > 0) give_one(s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &s->before), 0);
}

/* An accept that finds no descriptor for the client that waits. */
typedef struct starving {
    ebb_listener listener;
    shortage shortage;
    int client;
    probe accepted;
    ebb_future *accept;
} starving;

static void starve(loop_world *w, starving *s) {
    uint16_t port;
    s->listener = listen_tcp(w, &port);
    s->client = connect_tcp(port);
    take_all(&s->shortage);
    s->accept = ebb_listener_accept(ebb_loop_cx(w->loop), s->listener);
    probe_watch(&s->accepted, s->accept);
    while (ebb_listener_trouble(w->cx, s->listener) == EBB_OK) loop_turns(w, 1);
    assert_int_equal(ebb_listener_trouble(w->cx, s->listener), EBB_ERRNO(EMFILE));
    assert_string_equal(ebb_status_name(EBB_ERRNO(EMFILE)), "EMFILE");
    assert_false(s->accepted.over);
}

static void is_served(loop_world *w, starving *s) {
    assert_int_equal(s->accepted.status, EBB_OK);
    assert_int_equal(ebb_listener_trouble(w->cx, s->listener), EBB_OK);
    ebb_future_drop(s->accept);
    assert_int_equal(ebb_stream_close(w->cx, ebb_stream_of(s->accepted.value)), EBB_OK);
    close(s->client);
}

static void count_turn(uv_prepare_t *uv) {
    ++*(uint32_t *)uv->data;
}

/* It tries at 10, 30, 70, 150, 310, 630 and 1270 ms, and then once a second. */
static void without_descriptors_a_listener_waits_and_costs_nothing(void **state) {
    loop_world *w = *state;
    uint32_t turns = 0;
    uv_prepare_t prepare = {.data = &turns};
    starving s;
    starve(w, &s);
    assert_int_equal(uv_prepare_init(&w->uv, &prepare), 0);
    assert_int_equal(uv_prepare_start(&prepare, count_turn), 0);
    uint32_t before = accept_calls;
    uint64_t began = uv_hrtime();
    assert_int_equal(loop_await(w, ebb_after(ebb_loop_cx(w->loop), EBB_SECOND), NULL), EBB_OK);
    uint32_t late_s =
        (uint32_t)((uv_hrtime() - began) / EBB_SECOND); /* on a busy machine it may be more than 1 */
    assert_in_range(accept_calls - before, 1, 6 + late_s);
    assert_in_range(turns, 1, 50 + 10 * late_s);
    uv_close((uv_handle_t *)&prepare, NULL);
    assert_false(s.accepted.over);
    give_one(&s.shortage); /* nobody tells the loop: its pause ends */
    loop_until(w, is_true, &s.accepted.over);
    is_served(w, &s);
    give_all(&s.shortage);
}

static void a_descriptor_that_the_loop_closes_ends_the_pause(void **state) {
    loop_world *w = *state;
    int other;
    ebb_stream own = stream_pair(w, &other);
    starving s;
    starve(w, &s);
    assert_int_equal(loop_await(w, ebb_after(ebb_loop_cx(w->loop), 350 * EBB_MS), NULL), EBB_OK);
    assert_false(s.accepted.over); /* it was tried at 10, 30, 70, 150 and 310 ms, and is again at 630 */
    assert_int_equal(ebb_stream_close(ebb_loop_cx(w->loop), own), EBB_OK);
    loop_turns(w, 4);
    assert_true(s.accepted.over);
    is_served(w, &s);
    give_all(&s.shortage);
    close(other);
}

static void an_accept_can_be_cancelled_in_a_pause(void **state) {
    loop_world *w = *state;
    starving s;
    starve(w, &s);
    ebb_future_cancel(s.accept, EBB_CANCEL_USER);
    loop_until(w, is_true, &s.accepted.over);
    assert_int_equal(s.accepted.status, EBB_CANCELLED);
    ebb_future_drop(s.accept);
    give_all(&s.shortage);
    accept_and_close(w, s.listener); /* the client is still there */
    close(s.client);
}

static void a_listener_can_be_closed_in_a_pause(void **state) {
    loop_world *w = *state;
    starving s;
    starve(w, &s);
    assert_int_equal(ebb_listener_close(ebb_loop_cx(w->loop), s.listener), EBB_OK);
    loop_until(w, is_true, &s.accepted.over);
    assert_int_equal(s.accepted.status, EBB_ERR_CLOSED);
    assert_int_equal(ebb_listener_trouble(w->cx, s.listener), EBB_ERR_CLOSED);
    ebb_future_drop(s.accept);
    give_all(&s.shortage);
    close(s.client);
}

/* ---- draining ----------------------------------------------------------------------------------------------- */

static void expect_drained(loop_world *w, ebb_listener l) {
    ebb_stream s;
    assert_int_equal(accept_one(w, l, &s), EBB_ERR_CLOSED);
    assert_int_equal(ebb_listener_close(w->cx, l), EBB_ERR_CLOSED);
}

/* More than are taken in one turn. */
static void a_drain_gives_all_connections_that_were_established(void **state) {
    loop_world *w = *state;
    uint16_t port;
    int fd[MANY];
    ebb_listener l = listen_tcp(w, &port);
    for (int i = 0; i < MANY; i++) fd[i] = connect_tcp(port);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    for (int i = 0; i < MANY; i++) accept_and_close(w, l);
    expect_drained(w, l);
    for (int i = 0; i < MANY; i++) close(fd[i]);
}

static void a_drain_lets_nobody_new_in(void **state) {
    loop_world *w = *state;
    uint16_t port;
    int error = 0;
    socklen_t n = sizeof error;
    ebb_listener l = listen_tcp(w, &port);
    struct sockaddr_in to = at_port(port);
    int early = connect_tcp(port), late = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    assert_int_equal(connect(late, (struct sockaddr *)&to, sizeof to), -1);
    accept_and_close(w, l);
    expect_drained(w, l);
    /* It was never connected: it asks again after a second, and is refused. */
    assert_int_equal(poll(&(struct pollfd){.fd = late, .events = POLLOUT}, 1, 60000), 1);
    assert_int_equal(getsockopt(late, SOL_SOCKET, SO_ERROR, &error, &n), 0);
    assert_int_equal(error, ECONNREFUSED);
    close(early);
    close(late);
}

/* The system does not keep new connections away, and they come as fast as the old ones are taken. */
static void a_drain_ends_where_new_connections_can_not_be_refused(void **state) {
    enum { BACKLOG = 511 };
    loop_world *w = *state;
    uint16_t port;
    ebb_stream s;
    uint32_t n = 0;
    ebb_status st = EBB_OK;
    ebb_listener l = listen_tcp(w, &port);
    close(connect_tcp(port));
    refuses_filters = true;
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    refuses_filters = false;
    for (; st == EBB_OK && n <= 2 * BACKLOG; n++) {
        close(connect_tcp(port));
        st = accept_one(w, l, &s);
        if (st == EBB_OK) assert_int_equal(ebb_stream_close(ebb_loop_cx(w->loop), s), EBB_OK);
    }
    assert_int_equal(st, EBB_ERR_CLOSED);
    assert_int_equal(n, BACKLOG + 2); /* as many as may have been in the queue, and the end */
}

static void a_drain_of_a_unix_socket_ends_with_its_queue(void **state) {
    loop_world *w = *state;
    const char *path = path_in(w, "socket");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    ebb_listener l = ebb_pipe_listen(w->cx, path);
    int one = connect_to(path), two = connect_to(path), late = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    memcpy(to.sun_path, path, strlen(path));
    assert_int_equal(connect(late, (struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(errno, ENOENT);
    accept_and_close(w, l);
    accept_and_close(w, l);
    expect_drained(w, l);
    close(one);
    close(two);
    close(late);
}

static void a_pending_accept_hears_that_a_drain_is_over(void **state) {
    loop_world *w = *state;
    uint16_t port;
    ebb_listener l = listen_tcp(w, &port);
    ebb_future *f = ebb_listener_accept(ebb_loop_cx(w->loop), l);
    loop_turns(w, 2);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    assert_int_equal(loop_await(w, f, NULL), EBB_ERR_CLOSED);
}

/* A server that is polite: when its region is closed it takes those who were there before. */
typedef struct polite {
    ebb_listener listener;
    uint32_t accepted;
    bool over;
} polite;

static ebb_status serve_politely(ebb_cx *cx, void *arg) {
    polite *p = arg;
    bool drains = false;
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_listener_accept(cx, p->listener), &v);
        if (st == EBB_OK) {
            p->accepted++;
            (void)ebb_stream_close(cx, ebb_stream_of(v));
        } else if (st == EBB_ERR_CLOSED && !drains) {
            drains = true;
            assert_int_equal(ebb_listener_drain(cx, p->listener), EBB_OK);
        } else break;
    }
    p->over = true;
    return EBB_OK;
}

static void a_task_whose_region_is_closed_may_drain(void **state) {
    loop_world *w = *state;
    uint16_t port;
    polite p = {.listener = listen_tcp(w, &port)};
    ebb_region r = ebb_region_open(w->cx, NULL);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(ebb_loop_cx(w->loop), r, serve_politely, &p).id), EBB_OK);
    loop_turns(w, 2);
    int one = connect_tcp(port), two = connect_tcp(port);
    ebb_region_close(ebb_loop_cx(w->loop), r);
    loop_until(w, is_true, &p.over);
    assert_int_equal(p.accepted, 2);
    close(one);
    close(two);
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

typedef struct starved {
    loop_world *w;
    ebb_listener listener;
    uint64_t failing;      /* the allocation that fails */
    ebb_status first;      /* of the accept that met it */
    uint32_t taken_before; /* connections that the system had given by then */
    char byte;
    bool over;
} starved;

/* In a region without handles: its first one needs memory after the connection was taken. */
static ebb_status accepts_without_memory(ebb_cx *cx, void *arg) {
    starved *s = arg;
    ebb_value v;
    s->w->memory.fail_at = s->w->memory.calls + s->failing;
    s->first = ebb_await(cx, ebb_listener_accept(cx, s->listener), &v);
    s->w->memory.fail_at = 0;
    s->taken_before = accepted_n;
    ebb_status st = s->first;
    if (st == EBB_ERR_NOMEM) st = ebb_await(cx, ebb_listener_accept(cx, s->listener), &v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, ebb_stream_of(v), &s->byte, 1), NULL);
    s->over = true;
    return st;
}

static void accept_without(starved *s, uint16_t port) {
    int fd = connect_tcp(port);
    assert_int_equal(write(fd, "x", 1), 1);
    accepted_n = 0;
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    ebb_region r = ebb_region_open(cx, NULL);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, r, accepts_without_memory, s).id), EBB_OK);
    loop_until(s->w, is_true, &s->over);
    assert_int_equal(s->byte, 'x');
    assert_int_equal(accepted_n, 1);
    ebb_region_close(ebb_loop_cx(s->w->loop), r);
    close(fd);
}

static void a_connection_for_which_there_was_no_memory_waits(void **state) {
    loop_world *w = *state;
    uint16_t port;
    uint32_t kept = 0;
    ebb_listener l = listen_tcp(w, &port);
    starved s = {.first = EBB_ERR_NOMEM};
    for (uint64_t n = 1; s.first != EBB_OK; n++) {
        s = (starved){.w = w, .listener = l, .failing = n};
        accept_without(&s, port);
        assert_true(s.first == EBB_OK || s.first == EBB_ERR_NOMEM);
        kept += s.first == EBB_ERR_NOMEM && s.taken_before == 1;
    }
    assert_true(kept > 0);
}

static ebb_status accepts_once_without_memory(ebb_cx *cx, void *arg) {
    starved *s = arg;
    ebb_value v;
    accepted_n = 0;
    s->w->memory.fail_at = s->w->memory.calls + s->failing;
    s->first = ebb_await(cx, ebb_listener_accept(cx, s->listener), &v);
    s->w->memory.fail_at = 0;
    s->taken_before = accepted_n;
    s->over = true;
    return s->first;
}

/* Until it is the memory for a connection that was taken which is missing. */
static void keep_one(loop_world *w, ebb_listener l, const char *path) {
    for (uint64_t n = 1; n < 100; n++) {
        starved s = {.w = w, .listener = l, .failing = n};
        int fd = connect_to(path);
        ebb_region r = ebb_region_open(ebb_loop_cx(w->loop), NULL);
        (void)ebb_fiber_spawn(ebb_loop_cx(w->loop), r, accepts_once_without_memory, &s);
        loop_until(w, is_true, &s.over);
        ebb_region_close(ebb_loop_cx(w->loop), r);
        if (s.first == EBB_ERR_NOMEM && s.taken_before == 0) accept_and_close(w, l);
        close(fd);
        if (s.first == EBB_ERR_NOMEM && s.taken_before == 1) return;
    }
    fail_msg("no connection was kept");
}

/* Two loops of a service share a Unix socket. One has taken a connection and had no memory for it; then it drains: the
 * queue is the other loop's, but the connection is its own. */
static void a_connection_that_waits_for_memory_outlives_the_drain_of_a_shared_socket(void **state) {
    loop_world *w = *state;
    const char *path = path_in(w, "socket");
    struct sockaddr_storage at = {.ss_family = AF_UNIX};
    ebb__share share;
    ebb__listen_address *address;
    int fd_of_other;
    assert_int_equal(ebb__share_init(&share, ebb_libc_allocator(), 2), EBB_OK);
    ebb_loop other = {.share = &share, .id = (uint8_t)(w->loop->id + 1)};
    w->loop->share = &share;
    ebb_listener l = ebb_pipe_listen(w->cx, path);
    memcpy(((struct sockaddr_un *)(void *)&at)->sun_path, path, strlen(path));
    assert_int_equal(ebb__listen_address_open(&other, &at, &fd_of_other, &address), EBB_OK);
    keep_one(w, l, path);
    assert_int_equal(ebb_listener_drain(w->cx, l), EBB_OK);
    accept_and_close(w, l);
    expect_drained(w, l);
    ebb__listen_address_close(&other, address, fd_of_other);
    w->loop->share = NULL;
    ebb__share_fini(&share);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(without_descriptors_a_listener_waits_and_costs_nothing),
        ON_A_LOOP(a_descriptor_that_the_loop_closes_ends_the_pause),
        ON_A_LOOP(an_accept_can_be_cancelled_in_a_pause),
        ON_A_LOOP(a_listener_can_be_closed_in_a_pause),
        ON_A_LOOP(a_drain_gives_all_connections_that_were_established),
        ON_A_LOOP(a_drain_lets_nobody_new_in),
        ON_A_LOOP(a_drain_ends_where_new_connections_can_not_be_refused),
        ON_A_LOOP(a_drain_of_a_unix_socket_ends_with_its_queue),
        ON_A_LOOP(a_pending_accept_hears_that_a_drain_is_over),
        ON_A_LOOP(a_task_whose_region_is_closed_may_drain),
        ON_A_LOOP(a_connection_for_which_there_was_no_memory_waits),
        ON_A_LOOP(a_connection_that_waits_for_memory_outlives_the_drain_of_a_shared_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
