/* How much of a turn of the loop one connection gets: its handler goes on while the system takes its bytes, up to a bound,
 * and then the next connection has its turn. */
#include "tests/http/raw_peer.h"

/* A flush hands at most 64 KiB to the system, eight times in a row; and a turn of libuv has up to three flushes: where bytes
 * are received, in its check phase and before it sleeps. */
enum { PIECE = 10000, FLUSH = 65536, ROUNDS = 8, FLUSHES = 3, PEERS = 3 };

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

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(a_connection_goes_on_up_to_a_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
