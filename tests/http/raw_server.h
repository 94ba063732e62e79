/* A server that is the test itself, frame by frame: what our client talks to. */
#ifndef EBB_TESTS_RAW_SERVER_H
#define EBB_TESTS_RAW_SERVER_H

#include "tests/http/raw_peer.h"
#include "tests/support/http_client_world.h"

#include <poll.h>

LOOP_UNUSED const char settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};

typedef struct raw_server {
    loop_world *w;
    int fd;
    bool came;
    uv_poll_t poll;
} raw_server;

LOOP_UNUSED void on_caller(uv_poll_t *poll, int status, int events) {
    raw_server *s = poll->data;
    (void)status;
    (void)events;
    s->came = true;
}

LOOP_UNUSED void raw_listen(raw_server *s, http_world *h) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    *s = (raw_server){.w = h->w, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(fcntl(s->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(uv_poll_init(&h->w->uv, &s->poll, s->fd), 0);
    s->poll.data = s;
    uv_unref((uv_handle_t *)&s->poll);
    h->port = ntohs(at.sin_port);
}

LOOP_UNUSED peer *raw_accept(raw_server *s) {
    s->came = false;
    assert_int_equal(uv_poll_start(&s->poll, UV_READABLE, on_caller), 0);
    loop_until(s->w, is_true, &s->came);
    uv_poll_stop(&s->poll);
    int fd = accept(s->fd, NULL, NULL);
    assert_true(fd >= 0);
    return peer_of(s->w, fd);
}

LOOP_UNUSED void raw_end(raw_server *s) {
    uv_close((uv_handle_t *)&s->poll, NULL);
    loop_turns(s->w, 2);
    close(s->fd);
}

/* ---- peers that do not answer --------------------------------------------------------------------------------- */

/* Connections that nobody accepts: when a backlog is full of them, the system drops who comes next. */
typedef struct black_hole {
    int fds[64];
    int n;
} black_hole;

LOOP_UNUSED bool is_connected(int fd, int patience_ms) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, patience_ms) == 1;
}

LOOP_UNUSED void fill_backlog(black_hole *b, int listener) {
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    b->n = 0;
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
    do {
        assert_true(b->n < 64);
        b->fds[b->n] = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(b->fds[b->n] >= 0);
        (void)connect(b->fds[b->n], (struct sockaddr *)&at, n);
    } while (is_connected(b->fds[b->n++], 100));
}

LOOP_UNUSED void empty_backlog(black_hole *b) {
    while (b->n > 0) close(b->fds[--b->n]);
}

/* ---- HTTP/2 --------------------------------------------------------------------------------------------------- */

/* Waits until so many frames of a type have come; the last of them, with its head. */
LOOP_UNUSED const unsigned char *hears_frames(peer *p, int type, int n) {
    for (size_t at = 24;;) {
        assert_true(hears_bytes(p, at + 9));
        const unsigned char *f = (const unsigned char *)p->got + at;
        size_t length = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        assert_true(hears_bytes(p, at + 9 + length));
        n -= p->got[at + 3] == type;
        if (n == 0) return (const unsigned char *)p->got + at;
        at += 9 + length;
    }
}

enum { HEADERS = 1, RST_STREAM = 3 };

LOOP_UNUSED void hears_requests(peer *p, int n) {
    (void)hears_frames(p, HEADERS, n);
}

LOOP_UNUSED void rst(peer *p, int stream, int code) {
    const char frame[] = {0, 0, 4, 3, 0, 0, 0, 0, (char)stream, 0, 0, 0, (char)code};
    say_bytes(p, frame, sizeof frame);
}

LOOP_UNUSED void goaway(peer *p, int last, int code) {
    const char frame[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, (char)last, 0, 0, 0, (char)code};
    say_bytes(p, frame, sizeof frame);
}

LOOP_UNUSED void answer_204(peer *p, int stream) {
    const char frame[] = {0, 0, 1, 1, 5, 0, 0, 0, (char)stream, (char)0x89};
    say_bytes(p, frame, sizeof frame);
}

#endif
