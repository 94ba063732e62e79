/* Readiness of descriptors that are not the loop's; and the wall clock. */
#include "tests/support/loop_world.h"

#include <time.h>

static void make_pair(int fd[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
}

static void close_pair(const int fd[2]) {
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static int64_t events_of(loop_world *w, ebb_future *f) {
    ebb_value v;
    assert_int_equal(loop_await(w, f, &v), EBB_OK);
    return v.as.i;
}

static void a_descriptor_is_waited_for(void **state) {
    loop_world *w = *state;
    int fd[2];
    char byte = 'x';
    make_pair(fd);
    assert_int_equal(events_of(w, ebb_fd_ready(w->cx, fd[0], EBB_FD_WRITABLE)), EBB_FD_WRITABLE);
    ebb_future *f = ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE);
    loop_turns(w, 3);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    assert_int_equal(write(fd[1], &byte, 1), 1);
    assert_int_equal(events_of(w, f), EBB_FD_READABLE);
    f = ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE | EBB_FD_WRITABLE); /* it is still there */
    assert_int_equal(events_of(w, f), EBB_FD_READABLE | EBB_FD_WRITABLE);
    assert_int_equal(read(fd[0], &byte, 1), 1);
    f = ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE);
    loop_turns(w, 1);
    (void)close(fd[1]);
    assert_int_equal(events_of(w, f), EBB_FD_READABLE); /* the end can be read */
    assert_int_equal(read(fd[0], &byte, 1), 0);
    (void)close(fd[0]);
}

static void one_wait_at_a_time(void **state) {
    loop_world *w = *state;
    int fd[2];
    make_pair(fd);
    ebb_future *f = ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, fd[0], EBB_FD_WRITABLE), NULL), EBB_ERR_BUSY);
    assert_int_equal(loop_await(w, ebb_within(ebb_loop_cx(w->loop), f, EBB_MS), NULL), EBB_TIMEOUT);
    loop_turns(w, 1); /* the first is cancelled, and the descriptor free again */
    assert_int_equal(events_of(w, ebb_fd_ready(w->cx, fd[0], EBB_FD_WRITABLE)), EBB_FD_WRITABLE);
    assert_true(fcntl(fd[0], F_GETFD) >= 0); /* it stays the caller's */
    close_pair(fd);
}

static void what_can_not_be_waited_for_is_refused(void **state) {
    loop_world *w = *state;
    int fd[2];
    FILE *file = tmpfile();
    assert_non_null(file);
    make_pair(fd);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, fileno(file), EBB_FD_READABLE), NULL),
                     EBB_ERRNO(EPERM));
    (void)fclose(file);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, -1, EBB_FD_READABLE), NULL), EBB_ERR_INVALID);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, fd[0], 0), NULL), EBB_ERR_INVALID);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, fd[0], 4), NULL), EBB_ERR_INVALID);
    close_pair(fd);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE), NULL), EBB_ERRNO(EBADF));
}

typedef struct guard {
    int fd;
    bool waits;
} guard;

static ebb_status wait_there(ebb_cx *cx, void *arg) {
    guard *g = arg;
    ebb_future *f = ebb_fd_ready(cx, g->fd, EBB_FD_READABLE);
    g->waits = true;
    return ebb_await(cx, f, NULL);
}

static bool region_closed(void *arg) {
    void **pair = arg;
    return region_is_closed(pair[0], *(ebb_region *)pair[1]);
}

static void whatever_way_its_region_ends_the_descriptor_is_left_alone(void **state) {
    loop_world *w = *state;
    for (int how = 0; how < 3; how++) {
        guard g = {.waits = false};
        int fd[2];
        make_pair(fd);
        g.fd = fd[0];
        ebb_region region = ebb_region_open(w->cx, NULL);
        ebb_fiber_spawn(w->cx, region, wait_there, &g);
        loop_until(w, is_true, &g.waits);
        if (how == 0) { /* a close lets it wait */
            ebb_region_close(w->cx, region);
            loop_turns(w, 3);
            assert_false(region_is_closed(w, region));
            assert_int_equal(write(fd[1], "x", 1), 1);
        }
        if (how == 1) ebb_region_cancel(w->cx, region, EBB_CANCEL_USER, NULL);
        if (how == 2) ebb_region_force(w->cx, region);
        void *pair[] = {w, &region};
        loop_until(w, region_closed, pair);
        assert_int_equal(ebb_region_join(w->cx, region), how == 0 ? EBB_OK : EBB_CANCELLED);
        loop_turns(w, 2);
        assert_int_equal(events_of(w, ebb_fd_ready(w->cx, fd[0], EBB_FD_WRITABLE)), EBB_FD_WRITABLE);
        close_pair(fd);
    }
}

/* Against the rules. The wait never hears of it, can be ended, and what gets the number next is not in its way. */
static void a_descriptor_that_is_closed_under_a_wait_harms_nobody_else(void **state) {
    loop_world *w = *state;
    int fd[2], next[2];
    char byte = 'x';
    make_pair(fd);
    ebb_future *f = ebb_fd_ready(w->cx, fd[0], EBB_FD_READABLE);
    ebb_future *bounded = ebb_within(ebb_loop_cx(w->loop), f, 20 * EBB_MS);
    loop_turns(w, 1);
    close_pair(fd);
    make_pair(next);
    assert_int_equal(next[0], fd[0]);
    assert_int_equal(loop_await(w, ebb_fd_ready(w->cx, next[0], EBB_FD_WRITABLE), NULL), EBB_ERR_BUSY);
    assert_int_equal(loop_await(w, bounded, NULL), EBB_TIMEOUT);
    loop_turns(w, 2);
    f = ebb_fd_ready(w->cx, next[0], EBB_FD_READABLE);
    assert_int_equal(write(next[1], &byte, 1), 1);
    assert_int_equal(events_of(w, f), EBB_FD_READABLE);
    close_pair(next);
}

static void the_wall_clock_is_the_systems(void **state) {
    loop_world *w = *state;
    uint64_t before = (uint64_t)time(NULL) * EBB_SECOND, now = ebb_wall_now(w->cx);
    assert_true(now + EBB_SECOND >= before && now <= ((uint64_t)time(NULL) + 2) * EBB_SECOND);
    ebb_runtime *rt = NULL;
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 200};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
    assert_int_equal(ebb_wall_now(ebb_runtime_host(rt)), 0); /* it has no loop */
    ebb_runtime_free(rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_descriptor_is_waited_for),
        ON_A_LOOP(one_wait_at_a_time),
        ON_A_LOOP(what_can_not_be_waited_for_is_refused),
        ON_A_LOOP(whatever_way_its_region_ends_the_descriptor_is_left_alone),
        ON_A_LOOP(a_descriptor_that_is_closed_under_a_wait_harms_nobody_else),
        ON_A_LOOP(the_wall_clock_is_the_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
