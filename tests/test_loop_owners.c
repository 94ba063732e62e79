/* Operations whose future has callbacks or several owners: an await of it returns, and the caller's bytes are
 * let alone as soon as all that was made of the future has ended. */
#include "tests/loop_world.h"

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
    assert_int_equal(ebb_status_of(f), EBB_OK);
    assert_int_equal(ebb_on_cleanup(f, count_cleanup, &w->cleanups), EBB_OK);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_write_that_has_ended_can_have_a_cleanup_and_be_awaited),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
