/* The other end of a connection, byte by byte: what tests of HTTP/1 talk to our server with, and what our client
 * talks to.
 *
 * A peer is a TCP socket that never blocks and that the loop of the world looks after, so a test waits for what
 * it hears by running the loop. Responses are taken apart here a second time, by code that shares nothing with
 * what is tested. */
#ifndef EBB_TESTS_RAW_PEER_H
#define EBB_TESTS_RAW_PEER_H

#include "tests/support/loop_world.h"

#include <arpa/inet.h>
#include <ebb/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

typedef struct peer {
    loop_world *w;
    int fd;
    uv_poll_t poll;
    char *got; /* 0-terminated */
    size_t n, room;
    size_t wanted;
    bool ended; /* the other side has closed, in whatever way */
    bool reset; /* and not politely */
    bool gone;  /* libuv has let go of it */
} peer;

LOOP_UNUSED void peer_hears(uv_poll_t *poll, int status, int events) {
    peer *p = poll->data;
    (void)status;
    (void)events;
    if (p->room < p->n + 65536) {
        p->room = 2 * p->room + 65536;
        p->got = realloc(p->got, p->room + 1);
        assert_non_null(p->got);
    }
    ssize_t k = recv(p->fd, p->got + p->n, p->room - p->n, MSG_DONTWAIT);
    if (k < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (k > 0) p->n += (size_t)k;
    p->got[p->n] = 0;
    if (k > 0) return;
    p->ended = true;
    p->reset = k < 0;
    uv_poll_stop(&p->poll);
}

LOOP_UNUSED void peer_listens(peer *p, bool on) {
    if (on) assert_int_equal(uv_poll_start(&p->poll, UV_READABLE, peer_hears), 0);
    else uv_poll_stop(&p->poll);
}

LOOP_UNUSED peer *peer_of(loop_world *w, int fd) {
    int on = 1;
    peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->w = w;
    p->fd = fd;
    p->got = calloc(1, 1);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    assert_int_equal(uv_poll_init(&w->uv, &p->poll, fd), 0);
    p->poll.data = p;
    peer_listens(p, true);
    uv_unref((uv_handle_t *)&p->poll);
    return p;
}

LOOP_UNUSED peer *peer_open(loop_world *w, uint16_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0); /* the system accepts it */
    return peer_of(w, fd);
}

LOOP_UNUSED void peer_let_go(uv_handle_t *h) {
    peer *p = h->data;
    p->gone = true;
}

/* With a reset if what came was not read: as the system does. */
LOOP_UNUSED void peer_close(peer *p) {
    loop_world *w = p->w;
    uv_close((uv_handle_t *)&p->poll, peer_let_go);
    loop_until(w, is_true, &p->gone);
    close(p->fd);
    free(p->got);
    free(p);
}

/* Sends all; what the other side does not take yet waits in the loop. */
LOOP_UNUSED void say_bytes(peer *p, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t k = send(p->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN) return; /* it has closed: a test sees by what it hears */
        if (k > 0) bytes += k, n -= (size_t)k;
        else loop_turns(p->w, 1);
    }
}

LOOP_UNUSED void say(peer *p, const char *text) {
    say_bytes(p, text, strlen(text));
}

/* Each byte in a turn of its own. */
LOOP_UNUSED void say_slowly(peer *p, const char *bytes, size_t n) {
    for (size_t i = 0; i < n && !p->ended; i++) {
        say_bytes(p, bytes + i, 1);
        loop_turns(p->w, 2);
    }
}

LOOP_UNUSED bool peer_has(void *ctx) {
    const peer *p = ctx;
    return p->n >= p->wanted || p->ended;
}

/* Waits until so many bytes are there; false: they will never be. */
LOOP_UNUSED bool hears_bytes(peer *p, size_t n) {
    p->wanted = n;
    loop_until(p->w, peer_has, p);
    return p->n >= n;
}

/* Waits for the end of the connection. */
LOOP_UNUSED bool hears_the_end(peer *p) {
    return !hears_bytes(p, SIZE_MAX);
}

/* Waits for a text, and says where it ends; 0: it will never come. */
LOOP_UNUSED size_t hears_text(peer *p, const char *text, size_t from) {
    for (;;) {
        const char *at = p->n > from ? strstr(p->got + from, text) : NULL;
        if (at != NULL) return (size_t)(at - p->got) + strlen(text);
        if (!hears_bytes(p, p->n + 1)) return 0;
    }
}

LOOP_UNUSED void forget(peer *p, size_t n) {
    memmove(p->got, p->got + n, p->n - n + 1);
    p->n -= n;
}

/* ---- responses ---------------------------------------------------------------------------------------------- */

typedef struct heard {
    int status; /* 0: none came */
    bool whole; /* the body is as long as the head said */
    size_t body_n;
    char head[4096];
    char *body; /* free_heard */
    char trailers[512];
} heard;

LOOP_UNUSED void free_heard(heard *h) {
    free(h->body);
    h->body = NULL;
}

/* The value of a field; NULL: there is none. Valid until the next of these. */
LOOP_UNUSED const char *field_of(const heard *h, const char *name) {
    static char value[1024];
    char start[128];
    snprintf(start, sizeof start, "\r\n%s: ", name);
    const char *at = strstr(h->head, start);
    if (at == NULL) return NULL;
    at += strlen(start);
    size_t n = strcspn(at, "\r");
    assert_true(n < sizeof value);
    memcpy(value, at, n);
    value[n] = 0;
    return value;
}

LOOP_UNUSED void keep_body(heard *h, const char *from, size_t n) {
    h->body = realloc(h->body, h->body_n + n + 1);
    assert_non_null(h->body);
    memcpy(h->body + h->body_n, from, n);
    h->body_n += n;
    h->body[h->body_n] = 0;
}

LOOP_UNUSED bool hear_sized(peer *p, heard *h, size_t n) {
    bool all = hears_bytes(p, n);
    if (!all) n = p->n;
    keep_body(h, p->got, n);
    forget(p, n);
    return all;
}

LOOP_UNUSED bool hear_trailers(peer *p, heard *h) {
    for (;;) {
        size_t end = hears_text(p, "\r\n", 0);
        if (end == 0) return false;
        size_t n = strlen(h->trailers);
        if (end > 2) snprintf(h->trailers + n, sizeof h->trailers - n, "%.*s", (int)end, p->got);
        forget(p, end);
        if (end == 2) return true;
    }
}

LOOP_UNUSED bool hear_chunks(peer *p, heard *h) {
    for (;;) {
        char *stop;
        size_t end = hears_text(p, "\r\n", 0);
        if (end == 0) return false;
        size_t n = strtoul(p->got, &stop, 16);
        assert_true(stop == p->got + end - 2);
        forget(p, end);
        if (n == 0) return hear_trailers(p, h);
        if (!hear_sized(p, h, n) || !hears_bytes(p, 2)) return false;
        assert_memory_equal(p->got, "\r\n", 2);
        forget(p, 2);
    }
}

LOOP_UNUSED bool hear_body(peer *p, heard *h, bool to_head) {
    const char *length = field_of(h, "content-length");
    if (to_head || h->status == 204 || h->status == 304 || h->status < 200) return true;
    if (length != NULL) return hear_sized(p, h, strtoul(length, NULL, 10));
    if (field_of(h, "transfer-encoding") != NULL) return hear_chunks(p, h);
    (void)hears_the_end(p);
    return hear_sized(p, h, p->n);
}

/* Waits for a whole response, and takes it off. `to_head`: it answers HEAD. */
LOOP_UNUSED heard hear_to(peer *p, bool to_head) {
    heard h = {0};
    keep_body(&h, "", 0);
    size_t end = hears_text(p, "\r\n\r\n", 0);
    if (end == 0) return h;
    assert_true(end < sizeof h.head);
    memcpy(h.head, p->got, end);
    h.head[end] = 0;
    assert_int_equal(sscanf(h.head, "HTTP/1.1 %d ", &h.status), 1);
    forget(p, end);
    h.whole = hear_body(p, &h, to_head);
    return h;
}

LOOP_UNUSED heard hear(peer *p) {
    return hear_to(p, false);
}

/* A response of this status with this body (NULL: any); it is whole. */
LOOP_UNUSED void hears(peer *p, int status, const char *body) {
    heard h = hear(p);
    if (h.status != status) print_error("%s%s", h.head, h.body);
    assert_int_equal(h.status, status);
    assert_true(h.whole);
    if (body != NULL) assert_string_equal(h.body, body);
    free_heard(&h);
}

/* That, with "connection: close" and the end of the connection. */
LOOP_UNUSED void hears_last(peer *p, int status, const char *body) {
    heard h = hear(p);
    if (h.status != status) print_error("%s%s", h.head, h.body);
    assert_int_equal(h.status, status);
    assert_true(h.whole);
    if (body != NULL) assert_string_equal(h.body, body);
    assert_non_null(field_of(&h, "connection"));
    assert_string_equal(field_of(&h, "connection"), "close");
    assert_true(hears_the_end(p));
    assert_int_equal(p->n, 0);
    assert_false(p->reset);
    free_heard(&h);
}

#endif
