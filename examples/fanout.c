/* A fan-out: ask twelve shards, four at a time, each up to three times and none for longer than 250 ms.
 *
 *   build/release/examples/fanout
 *
 * The shards are played by a server in the same program, on a port of its own: shard 5 hangs up on the first
 * two who ask, shard 9 never answers. Read `ask` first, then `ask_once`; the rest is the server. What to look
 * at: nobody here keeps a list of what is under way. The result owns what it waits for, so whatever ends it,
 * a timeout, a failure or a cancel, goes down to the socket. */
#include <ebb/ebb.h>
#include <ebb/loop.h>
#include <stdio.h>

enum { SHARDS = 12, AT_ONCE = 4 };

typedef struct world {
    ebb_address server;
    int hung_up; /* how often shard 5 has */
} world;

typedef struct question {
    world *w;
    uint64_t shard;
} question;

/* One attempt, as a fiber: connect, send the number, read what comes back. */
static ebb_status ask_once(ebb_cx *cx, void *arg) {
    question q = *(question *)arg;
    uint64_t answer = 0;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_tcp_connect(cx, &q.w->server), &v);
    if (st != EBB_OK) return st;
    ebb_stream s = ebb_stream_of(v);
    st = ebb_await(cx, ebb_stream_write(cx, s, &q.shard, sizeof q.shard), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_stream_read(cx, s, &answer, sizeof answer), &v);
    ebb_stream_close(cx, s); /* cancelled or not: closed now, not when the region ends */
    if (st != EBB_OK) return st;
    printf("shard %2d says %d\n", (int)q.shard, (int)answer);
    return EBB_OK;
}

static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    question *q = arg;
    if (n > 0) printf("shard %2d, attempt %u\n", (int)q->shard, n + 1);
    return ebb_fiber_go(cx, ebb_cx_region(cx), ask_once, q);
}

/* All that one shard gets: three attempts, and 250 ms for all of them together. */
static ebb_future *ask(ebb_cx *cx, size_t i, void *arg) {
    question *q = (question *)arg + i;
    ebb_retry_opts thrice = {.attempts = 3, .pause = 10 * EBB_MS, .factor = 2};
    return ebb_within(cx, ebb_retry(cx, &thrice, attempt, q), 250 * EBB_MS);
}

/* A slow shard is no failure of the whole: it is noted, and the others go on. */
static ebb_future *or_note(ebb_cx *cx, ebb_status st, void *arg) {
    printf("shard %2d: %s\n", (int)((question *)arg)->shard, ebb_status_text(st));
    return ebb_future_ready(cx, ebb_value_none());
}

static ebb_future *ask_or_note(ebb_cx *cx, size_t i, void *arg) {
    return ebb_catch(cx, ask(cx, i, arg), or_note, (question *)arg + i);
}

/* ---- the shards ---------------------------------------------------------------------------------------- */

typedef struct visit {
    world *w;
    ebb_listener listener;
} visit;

/* Serves one connection after the other; a slow one does not hold the others up, since its answer is just not
 * sent. The streams are closed with the region. */
static ebb_status shards(ebb_cx *cx, void *arg) {
    visit *server = arg;
    for (;;) {
        uint64_t shard = 0;
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_listener_accept(cx, server->listener), &v);
        if (st != EBB_OK) return st == EBB_ERR_CLOSED ? EBB_OK : st;
        ebb_stream s = ebb_stream_of(v);
        st = ebb_await(cx, ebb_stream_read(cx, s, &shard, sizeof shard), NULL);
        if (st != EBB_OK || shard == 9) continue;
        if (shard == 5 && server->w->hung_up < 2) {
            server->w->hung_up++;
            ebb_stream_close(cx, s);
            continue;
        }
        shard *= 100;
        (void)ebb_await(cx, ebb_stream_write(cx, s, &shard, sizeof shard), NULL);
    }
}

static ebb_status run(ebb_cx *cx, void *arg) {
    world *w = arg;
    w->server = (ebb_address){"127.0.0.1", 0};
    visit server = {w, ebb_tcp_listen(cx, &w->server)};
    ebb_status st = ebb_listener_address(cx, server.listener, &w->server);
    if (st != EBB_OK) return st;
    ebb_region behind = ebb_region_open(cx, NULL);
    ebb_fiber_spawn(cx, behind, shards, &server);

    question questions[SHARDS];
    for (uint64_t i = 0; i < SHARDS; i++) questions[i] = (question){w, i};
    st = ebb_await(cx, ebb_traverse(cx, SHARDS, AT_ONCE, ask_or_note, questions), NULL);
    printf("asked: %s\n", ebb_status_text(st));

    ebb_region_cancel(cx, behind, EBB_CANCEL_USER, "all is asked");
    ebb_status ended = ebb_region_join(cx, behind);
    return st != EBB_OK || ended == EBB_CANCELLED ? st : ended;
}

int main(void) {
    world w = {.hung_up = 0};
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, &w, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    return st == EBB_OK && w.hung_up == 2 ? 0 : 1;
}
