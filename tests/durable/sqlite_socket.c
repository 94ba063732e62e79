/* The socket of SQLite's owner takes frames of any process of its user: what they hold, and how slowly they come, harms
 * nobody else. */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "durable/sqlite_codec.h"
#include "tests/support/sqlite_scene.h"

static void nap(uint64_t ns) {
    (void)nanosleep(&(struct timespec){0, (long)ns}, NULL);
}

static int connected(scene *s) {
    struct sockaddr_un at;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(ebb__sqlite_socket_name(scene_path(s, "a.db"), &at));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void send_head(int fd, uint32_t n, ebb_provider_op op) {
    const uint16_t rest[2] = {EBB__SQLITE_CODEC, (uint16_t)op};
    uint8_t head[EBB__SQLITE_FRAME];
    memcpy(head, &n, 4);
    memcpy(head + 4, rest, 4);
    assert_int_equal(send(fd, head, sizeof head, MSG_NOSIGNAL), sizeof head);
}

static uint64_t now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

/* The owner's patience with a frame is 5 s; a close takes milliseconds, and ends all connections. */
static void close_at_once(scene *s) {
    const uint64_t before = now();
    alarm(100);
    scene_close(s);
    alarm(0);
    assert_in_range(now() - before, 0, 4 * EBB_SECOND);
}

/* ---- slow peers ---------------------------------------------------------------------------------------------------- */

/* A byte now and then, for as long as somebody takes them. */
static void *trickle(void *arg) {
    const int fd = *(const int *)arg;
    while (send(fd, "", 1, MSG_NOSIGNAL) == 1) nap(20 * EBB_MS);
    return NULL;
}

static void a_peer_that_sends_bit_by_bit_holds_up_no_close(void **state) {
    scene *s = scene_new(*state);
    pthread_t peer;
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    int fd = connected(s);
    send_head(fd, 1 << 20, EBB_PROVIDER_INSTANCE);
    assert_int_equal(pthread_create(&peer, NULL, trickle, &fd), 0);
    nap(100 * EBB_MS); /* the frame is being read now */
    close_at_once(s);
    (void)pthread_join(peer, NULL);
    (void)close(fd);
    scene_end(s);
}

static void a_peer_that_never_reads_holds_up_no_close(void **state) {
    enum { BIG = 1 << 20, ASKED = 8 };
    scene *s = scene_new(*state);
    uint64_t ask[2] = {1, 1};
    char *input = world_keep(*state, BIG);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    ebb_provider_start_call *c = scene_call(s, EBB_PROVIDER_START);
    c->id = "a";
    c->name = "pay";
    c->input = (ebb_blob){input, BIG};
    c->message = ebb_blob_text("start");
    assert_int_equal(scene_status(s, c), EBB_OK);
    const int fd = connected(s);
    for (int i = 0; i < ASKED; i++) {
        send_head(fd, sizeof ask + 1, EBB_PROVIDER_INSTANCE);
        assert_int_equal(send(fd, ask, sizeof ask, MSG_NOSIGNAL), sizeof ask);
        assert_int_equal(send(fd, "a", 1, MSG_NOSIGNAL), 1);
    }
    nap(100 * EBB_MS);
    close_at_once(s);
    (void)close(fd);
    scene_end(s);
}

/* ---- frames -------------------------------------------------------------------------------------------------------- */

static void a_list_takes_no_more_memory_than_a_few_times_its_frame(void **state) {
    enum { FRAME = 1 << 20 };
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    uint64_t *frame = world_keep(*state, FRAME);
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    const ebb_allocator of_scene = s->gate.allocator;
    s->gate.allocator = ebb_failing_allocator(&memory);
    for (uint64_t n = FRAME; n > 1000; n /= 2) { /* elements; each of zeros */
        ebb_provider_call *into = scene_call(s, EBB_PROVIDER_RESET);
        ebb__sqlite_codec k = {.at = (uint8_t *)frame, .n = FRAME, .into = into};
        frame[4] = n; /* of work, behind four numbers */
        ebb__sqlite_codec_ask(&k, into);
        assert_true(k.failed);
        assert_in_range(memory.live_bytes, 1, 4 * FRAME);
        ebb__call_free(into);
        assert_int_equal(memory.live, 0);
    }
    s->gate.allocator = of_scene;
    scene_end(s);
}

static void the_cause_of_a_cancel_is_one_that_there_is(void **state) {
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    for (int cause = 0; cause <= EBB_CANCEL_DROPPED; cause++) {
        const ebb_provider_cancelled one = {1, (ebb_cancel_kind)cause};
        ebb_provider_ack_turn_call *of = scene_call(s, EBB_PROVIDER_ACK_TURN),
                                   *into = scene_call(s, EBB_PROVIDER_ACK_TURN);
        ebb__sqlite_codec k = {.writes = true};
        of->cancelled = &one;
        of->cancelled_n = 1;
        ebb__sqlite_codec_ask(&k, &of->call);
        ebb__sqlite_codec read = {.at = k.at, .n = k.n, .into = &into->call};
        ebb__sqlite_codec_ask(&read, &into->call);
        assert_int_equal(read.failed, cause > EBB_CANCEL_SHUTDOWN);
        free(k.at);
        ebb__call_free(&of->call);
        ebb__call_free(&into->call);
    }
    scene_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(a_peer_that_sends_bit_by_bit_holds_up_no_close),
        IN_UNTRACED_WORLD(a_peer_that_never_reads_holds_up_no_close),
        IN_UNTRACED_WORLD(a_list_takes_no_more_memory_than_a_few_times_its_frame),
        IN_UNTRACED_WORLD(the_cause_of_a_cancel_is_one_that_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
