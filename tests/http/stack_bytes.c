/* A fiber that returns while bytes of its stack are being written: none of them is read once the stack is gone, however
 * the fiber has ended, and whatever is flushed before its region has ended the write.
 *
 * The handler cancels a crowd of tasks, which are polled before the callback runner of its region: a shutdown has the
 * shorter budget. The first of them unmaps the stacks of fibers that have ended. Then the loop flushes the connection,
 * since a turn has few polls. */
#include "fiber/fiber.h"
#include "loop/loop.h"
#include "tests/http/raw_peer.h"

enum {
    WRITE_MOST = 17408,
    FIRST = 4000,
    HERE = 20000,
    POLLS = 8,
    CHECK_MS = 200, /* how often the server looks for abandoned handlers */
    CROWD = 4 * POLLS,
    DATA = 0,
    RST_STREAM = 3
};

/* How the handler ends. */
typedef struct way {
    const char *path;
    ebb_status status;
    bool cancels; /* the region of its exchange */
    bool staged;  /* bytes of an earlier write are still unsent */
} way;

static const way ways[] = {
    {"/0", EBB_CANCELLED, true, false}, {"/1", EBB_CANCELLED, true, true}, {"/2", EBB_OK, true, false},
    {"/3", EBB_OK, true, true},         {"/4", EBB_FAILED, true, false},   {"/5", EBB_FAILED, true, true},
    {"/6", EBB_FAILED, false, false},   {"/7", EBB_FAILED, false, true},   {"/8", EBB_OK, false, false},
    {"/9", EBB_OK, false, true},
};
enum { WAYS = sizeof ways / sizeof *ways };

static loop_world *world;
static ebb_region crowd;
static uint32_t trims;

static ebb_status trim_when_cancelled(ebb_cx *cx, void *arg) {
    (void)arg;
    if (ebb_checkpoint(cx) == EBB_OK) return EBB_PENDING;
    ebb__fibers_trim(world->rt);
    trims++;
    return EBB_CANCELLED;
}

static void write_and_leave(ebb_cx *cx, ebb_http *x, const void *from, size_t n, ebb_status st) {
    ebb_future *f = ebb_http_write(cx, x, from, n);
    assert_int_equal(ebb_future_status_of(f), st);
    ebb_future_drop(f);
}

static ebb_status leaves(ebb_cx *cx, ebb_http *x, void *arg) {
    static char first[FIRST];
    const way *how = arg;
    volatile size_t n = HERE; /* with it, AddressSanitizer keeps these bytes on the stack itself */
    char *here = __builtin_alloca(n);
    memset(first, 'Q', sizeof first);
    memset(here, 'Z', n);
    if (how->staged) write_and_leave(cx, x, first, sizeof first, EBB_OK);
    write_and_leave(cx, x, here, n, EBB_PENDING);
    ebb_region_cancel(cx, crowd, EBB_CANCEL_SHUTDOWN, "the stacks go");
    if (how->cancels) ebb_region_cancel(cx, ebb_cx_region(cx), EBB_CANCEL_USER, "by itself");
    return how->status;
}

/* A handler that never returns: its task is cancelled, and its region is not. It goes on until its budget is used up and it is abandoned. */
static ebb_status stays(ebb_cx *cx, ebb_http *x, void *arg) {
    char here[HERE];
    (void)arg;
    memset(here, 'Z', sizeof here);
    write_and_leave(cx, x, here, sizeof here, EBB_PENDING);
    ebb_task_cancel(cx, ebb_cx_task(cx), EBB_CANCEL_SHUTDOWN, "alone");
    for (;;) (void)ebb_await(cx, ebb_future_never(cx), NULL);
    return EBB_OK;
}

static uint16_t serve(loop_world *w) {
    ebb_http_server_opts o = {.address = {"127.0.0.1", 0},
                              .limits = {.write_bytes = WRITE_MOST, .header_ns = CHECK_MS * EBB_MS}};
    ebb_http_server *server;
    ebb_address at;
    world = w;
    assert_int_equal(ebb_http_listen(w->cx, &o, &server), EBB_OK);
    for (int i = 0; i < WAYS; i++) {
        void *how = (void *)(uintptr_t)&ways[i];
        assert_int_equal(ebb_http_on(server, "GET", ways[i].path, leaves, how), EBB_OK);
    }
    assert_int_equal(ebb_http_on(server, "GET", "/s", stays, NULL), EBB_OK);
    assert_int_equal(ebb_http_server_address(w->cx, server, &at), EBB_OK);
    return at.port;
}

static void gather(loop_world *w) {
    crowd = ebb_region_open(w->cx, &(ebb_region_opts){.parent = w->region});
    for (int i = 0; i < CROWD; i++) (void)ebb_spawn(w->cx, crowd, trim_when_cancelled, NULL);
    loop_turns(w, CROWD);
    w->loop->polls = POLLS;
    trims = 0;
}

static size_t count(const char *at, size_t n, char byte) {
    size_t all = 0;
    for (size_t i = 0; i < n; i++) all += at[i] == byte;
    return all;
}

/* Of the body that was sent: the first write, and of the second what was copied to the stage. */
static void judge(const way *how, size_t first, size_t here) {
    assert_int_equal(first, how->staged ? FIRST : 0);
    assert_in_range(here, how->staged ? 1 : 0, how->staged ? WRITE_MOST - FIRST : 0);
}

static void by_http1(void **state) {
    loop_world *w = *state;
    uint16_t port = serve(w);
    for (int i = 0; i < WAYS; i++) {
        char text[64];
        gather(w);
        peer *p = peer_open(w, port);
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nhost: a\r\n\r\n", ways[i].path);
        say(p, text);
        assert_true(hears_the_end(p));
        const char *end = strstr(p->got, "\r\n\r\n");
        size_t head = end == NULL ? 0 : (size_t)(end - p->got);
        assert_null(strstr(p->got + head, "\r\n0\r\n"));
        judge(&ways[i], count(p->got + head, p->n - head, 'Q'), count(p->got + head, p->n - head, 'Z'));
        loop_turns(w, CROWD);
        assert_int_equal(trims, CROWD);
        peer_close(p);
    }
}

static void ask_by_http2(peer *p, const char *path) {
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    const char head[] = {0,          0,          9, 1, 5,       0,       0, 0, 1,
                         (char)0x82, (char)0x86, 4, 2, path[0], path[1], 1, 1, 'a'};
    say_bytes(p, start, sizeof start - 1);
    say_bytes(p, head, sizeof head);
}

static void by_http2(void **state) {
    loop_world *w = *state;
    uint16_t port = serve(w);
    for (int i = 0; i < WAYS; i++) {
        size_t first = 0, here = 0, at = 0;
        gather(w);
        peer *p = peer_open(w, port);
        ask_by_http2(p, ways[i].path);
        for (int type = DATA; type != RST_STREAM;) {
            assert_true(hears_bytes(p, at + 9));
            const unsigned char *f = (const unsigned char *)p->got + at;
            size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
            type = f[3];
            assert_true(hears_bytes(p, at + 9 + n));
            if (type == DATA) first += count(p->got + at + 9, n, 'Q');
            if (type == DATA) here += count(p->got + at + 9, n, 'Z');
            at += 9 + n;
        }
        judge(&ways[i], first, here);
        loop_turns(w, CROWD);
        assert_int_equal(trims, CROWD);
        peer_close(p);
    }
}

/* ---- a handler that never returns ------------------------------------------------------------------------------- */

static bool has_abandoned(void *rt) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(rt, &s);
    return s.abandoned > 0;
}

/* The peer opens the window of its stream when the stack is gone. */
static void an_abandoned_handler_sends_no_more(void **state) {
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\6\4\0\0\0\0\0\0\4\0\0\0\0"; /* INITIAL_WINDOW_SIZE 0 */
    static const char window[] = "\0\0\4\x8\0\0\0\0\1\0\0\x7f\xff";
    static const char ask[] = "\0\0\x9\1\5\0\0\0\1\x82\x86\4\2/s\1\1a";
    loop_world *w = *state;
    peer *p = peer_open(w, serve(w));
    say_bytes(p, start, sizeof start - 1);
    say_bytes(p, ask, sizeof ask - 1);
    loop_until(w, has_abandoned, w->rt);
    ebb__fibers_trim(w->rt);
    say_bytes(p, window, sizeof window - 1);
    assert_true(hears_bytes(p, 9));
    for (size_t at = 0; p->got[at + 3] != RST_STREAM;) {
        const unsigned char *f = (const unsigned char *)p->got + at;
        at += 9 + ((size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2]);
        assert_true(hears_bytes(p, at + 9));
        assert_int_not_equal(p->got[at + 3], DATA);
    }
    peer_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(by_http1), ON_A_LOOP(by_http2),
                                       ON_A_LOOP(an_abandoned_handler_sends_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
