/* A handler whose task alone is cancelled, while its region is not, answers nothing: the exchange is answered all the
 * same, whether the handler returns then or is abandoned. */
#include "tests/http/raw_peer.h"

enum { CHECK_MS = 100, DATA = 0, HEADERS = 1, RST_STREAM = 3, CANCEL = 8 };

/* How far its response is, how the handler ends, and its status in HTTP/1; 0: the response was begun. */
typedef struct way {
    const char *path;
    bool begins, writes, polls, stays;
    int status;
} way;

static const way ways[] = {
    {"/0", false, false, false, false, 503}, {"/1", true, false, false, false, 0},
    {"/2", true, true, false, false, 0},     {"/3", false, false, true, false, 503},
    {"/4", true, false, true, false, 0},     {"/5", false, false, false, true, 500},
    {"/6", true, false, false, true, 0},     {"/7", true, true, false, true, 0},
};
enum { WAYS = sizeof ways / sizeof *ways };

static ebb_status handler(ebb_cx *cx, ebb_http *x, void *arg) {
    const way *how = arg;
    if (how->begins) assert_int_equal(ebb_http_start(cx, x, 200), EBB_OK);
    if (how->writes) assert_int_equal(ebb_await(cx, ebb_http_write(cx, x, "abc", 3), NULL), EBB_OK);
    ebb_task_cancel(cx, ebb_cx_task(cx), EBB_CANCEL_SHUTDOWN, "alone");
    while (how->stays) (void)ebb_await(cx, ebb_future_never(cx), NULL);
    return ebb_checkpoint(cx);
}

static ebb_status work_on(ebb_cx *cx, void *ended) {
    *(ebb_status *)ended = ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    return EBB_OK;
}

static ebb_status complete(ebb_cx *cx, ebb_http *x, void *ended) {
    ebb_task other = ebb_fiber_spawn(cx, ebb_cx_region(cx), work_on, ended);
    assert_int_equal(ebb_id_status(other.id), EBB_OK);
    assert_int_equal(ebb_http_text(cx, x, 200, "whole"), EBB_OK);
    ebb_task_cancel(cx, ebb_cx_task(cx), EBB_CANCEL_SHUTDOWN, "alone");
    return ebb_checkpoint(cx);
}

static ebb_status other_ended;

static uint16_t serve(loop_world *w, ebb_http_server **server) {
    ebb_http_server_opts o = {.address = {"127.0.0.1", 0}, .limits.header_ns = CHECK_MS * EBB_MS};
    ebb_address at;
    assert_int_equal(ebb_http_listen(w->cx, &o, server), EBB_OK);
    for (int i = 0; i < WAYS; i++) {
        void *how = (void *)(uintptr_t)&ways[i];
        ebb_status st = ways[i].polls ? ebb_http_on_poll(*server, "GET", ways[i].path, handler, how)
                                      : ebb_http_on(*server, "GET", ways[i].path, handler, how);
        assert_int_equal(st, EBB_OK);
    }
    assert_int_equal(ebb_http_on(*server, "GET", "/w", complete, &other_ended), EBB_OK);
    assert_int_equal(ebb_http_server_address(w->cx, *server, &at), EBB_OK);
    return at.port;
}

static bool has_no_exchange(void *server) {
    ebb_http_server_stats s;
    ebb_http_server_stats_of(server, &s);
    return s.exchanges == 0;
}

static void ask(peer *p, const char *path) {
    char text[64];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", path);
    say(p, text);
}

static void over_http1_it_is_answered_or_cut(void **state) {
    loop_world *w = *state;
    ebb_http_server *server;
    uint16_t port = serve(w, &server);
    for (int i = 0; i < WAYS; i++) {
        char first[32];
        peer *p = peer_open(w, port);
        ask(p, ways[i].path);
        assert_true(hears_the_end(p));
        snprintf(first, sizeof first, "HTTP/1.1 %d ", ways[i].status);
        if (ways[i].status != 0) assert_memory_equal(p->got, first, strlen(first));
        else assert_null(strstr(p->got, "\r\n0\r\n")); /* the last chunk */
        loop_until(w, has_no_exchange, server);
        peer_close(p);
    }
}

/* Waits for the next frame, whose place is returned. */
static const unsigned char *next_frame(peer *p, size_t *at) {
    assert_true(hears_bytes(p, *at + 9));
    const unsigned char *f = (const unsigned char *)p->got + *at;
    size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
    assert_true(hears_bytes(p, *at + 9 + n));
    f = (const unsigned char *)p->got + *at;
    *at += 9 + n;
    return f;
}

static void over_http2_it_is_answered_or_reset(void **state) {
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    loop_world *w = *state;
    ebb_http_server *server;
    uint16_t port = serve(w, &server);
    for (int i = 0; i < WAYS; i++) {
        const char *path = ways[i].path;
        const char head[] = {0,          0,          9, 1, 5,       0,       0, 0, 1,
                             (char)0x82, (char)0x86, 4, 2, path[0], path[1], 1, 1, 'a'};
        size_t at = 0;
        peer *p = peer_open(w, port);
        say_bytes(p, start, sizeof start - 1);
        say_bytes(p, head, sizeof head);
        const unsigned char *f;
        do f = next_frame(p, &at);
        while (f[3] != RST_STREAM && !((f[3] == DATA || f[3] == HEADERS) && (f[4] & 1)));
        assert_int_equal(f[3] == RST_STREAM, ways[i].status == 0);
        if (f[3] == RST_STREAM) assert_int_equal(f[12], CANCEL);
        loop_until(w, has_no_exchange, server);
        peer_close(p);
    }
}

static void a_complete_response_is_sent_and_other_work_goes_on(void **state) {
    loop_world *w = *state;
    ebb_http_server *server;
    other_ended = EBB_PENDING;
    peer *p = peer_open(w, serve(w, &server));
    ask(p, "/w");
    assert_true(hears_the_end(p));
    assert_memory_equal(p->got, "HTTP/1.1 200 ", 13);
    assert_string_equal(p->got + p->n - 5, "whole");
    loop_until(w, has_no_exchange, server);
    assert_int_equal(other_ended, EBB_OK);
    peer_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(over_http1_it_is_answered_or_cut),
                                       ON_A_LOOP(over_http2_it_is_answered_or_reset),
                                       ON_A_LOOP(a_complete_response_is_sent_and_other_work_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
