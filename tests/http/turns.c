/* How much of a turn of the loop one connection gets: its handler goes on while the system takes its bytes, up to a bound,
 * and then the next connection has its turn. And how large its writes are. */
#include "tests/http/raw_peer.h"

/* A flush hands at most 64 KiB to the system, eight times in a row; and a turn of libuv has up to three flushes: where bytes
 * are received, in its check phase and before it sleeps. */
enum { PIECE = 10000, FLUSH = 65536, ROUNDS = 8, FLUSHES = 3, PEERS = 3 };
enum { STREAMS = 16, ENOUGH = 8000000, SEGMENT_LEAST = 40000 }; /* bytes, on average */

static size_t written[PEERS]; /* by the handler of /0, /1 ... */

typedef struct job {
    EBB_TASK_STATE;
    size_t *written;
    ebb_future *wait;
} job;

static ebb_status writes_for_ever(ebb_cx *cx, ebb_http *x, void *arg) {
    static const char piece[PIECE];
    job *j = ebb_http_state(x, sizeof *j);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->written = &written[ebb_http_path(x)[1] - '0'];
    for (st = EBB_OK; st == EBB_OK; *j->written += PIECE) {
        j->wait = ebb_http_write(cx, x, piece, PIECE);
        EBB_AWAIT(j, st, ebb_await(cx, j->wait, NULL));
    }
    return st;
    EBB_END(j);
}

static uint16_t serve(loop_world *w) {
    ebb_http_server_opts o = {.address = {"127.0.0.1", 0}};
    ebb_http_server *server;
    ebb_address at;
    assert_int_equal(ebb_http_listen(w->cx, &o, &server), EBB_OK);
    assert_int_equal(ebb_http_on_poll(server, "GET", "/:n", writes_for_ever, NULL), EBB_OK);
    assert_int_equal(ebb_http_server_address(w->cx, server, &at), EBB_OK);
    return at.port;
}

/* Peers that ask, and do not read. */
static void ask(loop_world *w, uint16_t port, peer **peers) {
    char text[64];
    for (int i = 0; i < PEERS; i++) {
        peers[i] = peer_open(w, port);
        peer_listens(peers[i], false);
        snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nhost: a\r\n\r\n", i);
        say(peers[i], text);
    }
}

/* Runs turns until nobody takes any more bytes. The most that one connection got in one turn. */
static size_t most_of_a_turn(loop_world *w) {
    size_t most = 0, all = 1, before = 0;
    for (int quiet = 0; quiet < 100; quiet = all == before ? quiet + 1 : 0) {
        size_t last[PEERS];
        memcpy(last, written, sizeof last);
        before = all;
        loop_turns(w, 1);
        all = 0;
        for (int i = 0; i < PEERS; i++) {
            all += written[i];
            if (written[i] - last[i] > most) most = written[i] - last[i];
        }
    }
    return most;
}

static void a_connection_goes_on_up_to_a_bound(void **state) {
    loop_world *w = *state;
    peer *peers[PEERS];
    ask(w, serve(w), peers);
    size_t most = most_of_a_turn(w);
    print_message("most of a turn: %zu bytes\n", most);
    for (int i = 0; i < PEERS; i++) assert_true(written[i] > 0);
    assert_true(most > FLUSHES * FLUSH); /* more than a flush each */
    assert_true(most <= FLUSHES * ROUNDS * FLUSH);
    for (int i = 0; i < PEERS; i++) peer_close(peers[i]);
}

/* ---- segments --------------------------------------------------------------------------------------------------- */

/* By HTTP/2, with windows that no body fills: a request on each of sixteen streams, "GET http://a/0" and so on. */
static void ask_for_streams(peer *p) {
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff" /* SETTINGS: INITIAL_WINDOW_SIZE */
                                "\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0";       /* WINDOW_UPDATE */
    say_bytes(p, start, sizeof start - 1);
    for (char i = 0; i < STREAMS; i++) {
        const char head[] = {0,          0,          9, 1, 5,   0,   0, 0, (char)(2 * i + 1),
                             (char)0x82, (char)0x86, 4, 2, '/', '0', 1, 1, 'a'};
        say_bytes(p, head, sizeof head);
    }
}

/* tcpi_data_segs_in, which the C library's struct tcp_info lacks. */
static uint32_t segments_of(const peer *p) {
    uint32_t info[40] = {0};
    socklen_t n = sizeof info;
    assert_int_equal(getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, info, &n), 0);
    return info[38];
}

/* The system would send a write of 64 KiB as a large segment and a tiny one. */
static void no_write_leaves_a_tiny_segment(void **state) {
    loop_world *w = *state;
    peer *p = peer_open(w, serve(w));
    ask_for_streams(p);
    assert_true(hears_bytes(p, ENOUGH));
    print_message("%zu bytes in %u segments\n", p->n, segments_of(p));
    assert_true(p->n / segments_of(p) > SEGMENT_LEAST);
    peer_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(a_connection_goes_on_up_to_a_bound),
                                       ON_A_LOOP(no_write_leaves_a_tiny_segment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
