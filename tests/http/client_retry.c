/* Requests that were not processed are sent again by the client itself, and no others. The server is the test. */
#include "tests/http/raw_server.h"

enum { DATA = 0, TRIES = 4 };
enum { INTERNAL_ERROR = 2, REFUSED_STREAM = 7 };

static peer *greeted(raw_server *s) {
    peer *p = raw_accept(s);
    say_bytes(p, settings, sizeof settings);
    return p;
}

static int requests_of(const peer *p) {
    int n = 0;
    for (size_t at = 24; at + 9 <= p->n;) {
        const unsigned char *f = (const unsigned char *)p->got + at;
        n += f[3] == HEADERS;
        at += 9 + ((size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2]);
    }
    return n;
}

static void hears_data(peer *p, int n, const char *text) {
    const unsigned char *f = hears_frames(p, DATA, n);
    assert_int_equal(f[2], strlen(text));
    assert_memory_equal(f + 9, text, strlen(text));
}

/* ---- what the server says ------------------------------------------------------------------------------------- */

static void a_refused_stream_is_sent_again(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_future *one = get(h, "/"), *two = get(h, "/");
    peer *p = greeted(&s);
    hears_requests(p, 2);
    rst(p, 1, REFUSED_STREAM);
    rst(p, 3, INTERNAL_ERROR); /* that one may have been processed */
    assert_int_equal(loop_await(h->w, two, NULL), EBB_ERR_HTTP_RESET);
    hears_requests(p, 3); /* by the same connection */
    answer_204(p, 5);
    assert_int_equal(loop_await(h->w, one, NULL), EBB_OK);
    loop_turns(h->w, 20);
    assert_int_equal(requests_of(p), 3);
    peer_close(p);
    raw_end(&s);
}

static void a_stream_that_is_always_refused_fails_in_the_end(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_future *f = get(h, "/");
    peer *p = greeted(&s);
    for (int i = 1; i <= TRIES; i++) {
        hears_requests(p, i);
        rst(p, 2 * i - 1, REFUSED_STREAM);
    }
    assert_int_equal(loop_await(h->w, f, NULL), EBB_ERR_HTTP_RETRY);
    loop_turns(h->w, 20);
    assert_int_equal(requests_of(p), TRIES);
    peer_close(p);
    raw_end(&s);
}

/* What it has taken it finishes; what came after goes elsewhere. */
static void goaway_has_what_was_not_taken_sent_elsewhere(void **state) {
    http_world *h = *state;
    raw_server s;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    raw_listen(&s, h);
    ebb_future *one = get(h, "/"), *two = get(h, "/");
    peer *p = greeted(&s);
    hears_requests(p, 2);
    goaway(p, 1, 0);
    peer *q = greeted(&s);
    hears_requests(q, 1);
    answer_204(q, 1);
    assert_int_equal(loop_await(h->w, two, NULL), EBB_OK);
    assert_int_equal(ebb_future_status_of(one), EBB_PENDING);
    answer_204(p, 1);
    assert_int_equal(loop_await(h->w, one, NULL), EBB_OK);
    assert_true(hears_the_end(p));
    peer_close(p);
    peer_close(q);
    raw_end(&s);
}

/* The answer makes room for the next call, and GOAWAY comes by the same bytes: that call was never sent. */
static void goaway_behind_an_answer_has_the_next_call_sent_elsewhere(void **state) {
    static const char one_stream[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1};
    static const char last[] = {0, 0, 1, 1, 5, 0, 0, 0, 1, (char)0x89, /* 204 */
                                0, 0, 8, 7, 0, 0, 0, 0, 0, 0,          0, 0, 1, 0, 0, 0, 0};
    http_world *h = *state;
    raw_server s;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    raw_listen(&s, h);
    ebb_future *one = get(h, "/");
    peer *p = raw_accept(&s);
    say_bytes(p, one_stream, sizeof one_stream);
    hears_requests(p, 1);
    loop_turns(h->w, 20); /* the client has its SETTINGS */
    ebb_future *two = get(h, "/");
    loop_turns(h->w, 20);
    say_bytes(p, last, sizeof last);
    assert_int_equal(loop_await(h->w, one, NULL), EBB_OK);
    peer *q = greeted(&s);
    hears_requests(q, 1);
    answer_204(q, 1);
    assert_int_equal(loop_await(h->w, two, NULL), EBB_OK);
    peer_close(p);
    peer_close(q);
    raw_end(&s);
}

static void goaway_with_an_error_ends_what_was_taken(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_future *one = get(h, "/"), *two = get(h, "/");
    peer *p = greeted(&s);
    hears_requests(p, 2);
    goaway(p, 1, INTERNAL_ERROR);
    assert_int_equal(loop_await(h->w, one, NULL), EBB_ERR_HTTP_RESET);
    peer *q = greeted(&s);
    hears_requests(q, 1);
    answer_204(q, 1);
    assert_int_equal(loop_await(h->w, two, NULL), EBB_OK);
    peer_close(p);
    peer_close(q);
    raw_end(&s);
}

static void a_503_is_an_answer(void **state) {
    http_world *h = *state;
    raw_server s;
    ebb_value v;
    raw_listen(&s, h);
    ebb_future *f = get(h, "/");
    peer *p = raw_accept(&s);
    assert_true(hears_text(p, "\r\n\r\n", 0) > 0);
    say(p, "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    assert_int_equal(loop_await(h->w, f, &v), EBB_OK);
    assert_int_equal(ebb_http_response_of(&v)->status, 503);
    ebb_value_discard(h->w->cx, v);
    peer_close(p);
    raw_end(&s);
}

/* ---- what was never sent -------------------------------------------------------------------------------------- */

/* The connection is gone, and the system takes no byte of a request that comes now: nobody can have processed it. The
 * one that was sent before may have been. */
static void a_request_of_which_nothing_was_sent_goes_elsewhere(void **state) {
    http_world *h = *state;
    raw_server s;
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    raw_listen(&s, h);
    ebb_future *one = get(h, "/");
    peer *p = greeted(&s);
    hears_requests(p, 1);
    loop_turns(h->w, 10); /* its settings are known */
    uv_poll_stop(&p->poll);
    assert_int_equal(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    int nowhere = open("/dev/null", O_RDONLY);
    assert_int_equal(dup2(nowhere, p->fd), p->fd); /* closes it with a reset, and keeps the number */
    close(nowhere);
    ebb_future *two = get(h, "/");
    assert_int_equal(loop_await(h->w, one, NULL), EBB_ERR_HTTP_RESET);
    peer *q = greeted(&s);
    hears_requests(q, 1);
    answer_204(q, 1);
    assert_int_equal(loop_await(h->w, two, NULL), EBB_OK);
    peer_close(p);
    peer_close(q);
    raw_end(&s);
}

/* ---- bodies --------------------------------------------------------------------------------------------------- */

static void the_body_of_a_call_is_sent_again(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_http_call call = {.method = "POST", .url = url(h, "/"), .body = "all of it", .body_n = 9};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    peer *p = greeted(&s);
    hears_data(p, 1, "all of it");
    rst(p, 1, REFUSED_STREAM);
    hears_data(p, 2, "all of it");
    answer_204(p, 3);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_OK);
    peer_close(p);
    raw_end(&s);
}

/* An exchange that its user writes to. */
typedef struct talk {
    http_world *h;
    raw_server s;
    peer *p;
    ebb_http *x;
} talk;

static ebb_status open_streaming(ebb_cx *cx, void *arg) {
    talk *t = arg;
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(t->h, "/"), .streams = true};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, t->h->client, &call), &v);
    if (st == EBB_OK) t->x = ebb_http_of(cx, v);
    return st;
}

/* Opened, and its head is with the peer. */
static void talk_to(talk *t, http_world *h) {
    *t = (talk){.h = h};
    raw_listen(&t->s, h);
    fiber_run r = {open_streaming, t, EBB_PENDING, false};
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(http_cx(h), h->w->region, fiber_run_main, &r).id), EBB_OK);
    t->p = greeted(&t->s);
    loop_until(h->w, is_true, &r.over);
    assert_int_equal(r.status, EBB_OK);
    hears_requests(t->p, 1);
}

static void talk_ends(talk *t) {
    ebb_http_close(http_cx(t->h), t->x);
    peer_close(t->p);
    raw_end(&t->s);
}

static void a_streamed_body_goes_with_the_next_attempt_before_its_first_byte(void **state) {
    talk t;
    talk_to(&t, *state);
    ebb_future *head = ebb_http_response_head(http_cx(t.h), t.x);
    rst(t.p, 1, REFUSED_STREAM);
    hears_requests(t.p, 2);
    ebb_future *f = ebb_http_write(http_cx(t.h), t.x, "word", 4);
    hears_data(t.p, 1, "word");
    assert_int_equal(loop_await(t.h->w, f, NULL), EBB_OK);
    assert_int_equal(ebb_http_end(http_cx(t.h), t.x), EBB_OK);
    answer_204(t.p, 3);
    assert_int_equal(loop_await(t.h->w, head, NULL), EBB_OK);
    assert_int_equal(ebb_http_status(t.x), 204);
    talk_ends(&t);
}

static void a_streamed_body_is_not_sent_again_after_its_first_byte(void **state) {
    talk t;
    talk_to(&t, *state);
    ebb_future *head = ebb_http_response_head(http_cx(t.h), t.x);
    assert_int_equal(loop_await(t.h->w, ebb_http_write(http_cx(t.h), t.x, "word", 4), NULL), EBB_OK);
    hears_data(t.p, 1, "word");
    rst(t.p, 1, REFUSED_STREAM);
    assert_int_equal(loop_await(t.h->w, head, NULL), EBB_ERR_HTTP_RETRY);
    loop_turns(t.h->w, 20);
    assert_int_equal(requests_of(t.p), 1);
    assert_int_equal(status_now(ebb_http_write(http_cx(t.h), t.x, "more", 4)), EBB_ERR_CLOSED);
    talk_ends(&t);
}

/* It waits for a connection that never comes: the exchange stays its user's all the same. */
static void an_exchange_that_can_not_be_sent_again_stays_until_it_is_closed(void **state) {
    talk t;
    char byte;
    talk_to(&t, *state);
    ebb_future *head = ebb_http_response_head(http_cx(t.h), t.x);
    ebb_future *read = ebb_http_read(http_cx(t.h), t.x, &byte, 1);
    close(t.s.fd);
    t.s.fd = open("/dev/null", O_RDONLY); /* nobody listens any more */
    goaway(t.p, 0, 0);
    assert_int_equal(loop_await(t.h->w, head, NULL), EBB_ERRNO(ECONNREFUSED));
    assert_int_equal(loop_await(t.h->w, read, NULL), EBB_ERRNO(ECONNREFUSED));
    assert_int_equal(ebb_http_status(t.x), 0);
    assert_int_equal(status_now(ebb_http_write(http_cx(t.h), t.x, "word", 4)), EBB_ERR_CLOSED);
    assert_int_equal(status_now(ebb_http_response_head(http_cx(t.h), t.x)), EBB_ERR_CLOSED);
    talk_ends(&t);
}

/* Its write waits with it, and both may end then. */
static void an_exchange_may_be_closed_while_it_waits_to_be_sent_again(void **state) {
    talk t;
    char byte;
    black_hole hole;
    talk_to(&t, *state);
    fill_backlog(&hole, t.s.fd);
    goaway(t.p, 0, 0);
    assert_true(hears_the_end(t.p));
    ebb_future *f = ebb_http_write(http_cx(t.h), t.x, "word", 4);
    loop_turns(t.h->w, 20);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    assert_int_equal(loop_await(t.h->w, f, NULL), EBB_CANCELLED);
    ebb_future *read = ebb_http_read(http_cx(t.h), t.x, &byte, 1);
    ebb_future *head = ebb_http_response_head(http_cx(t.h), t.x);
    talk_ends(&t);
    assert_int_equal(loop_await(t.h->w, read, NULL), EBB_ERR_CLOSED);
    assert_int_equal(loop_await(t.h->w, head, NULL), EBB_ERR_CLOSED);
    empty_backlog(&hole);
}

/* ---- cancelled ------------------------------------------------------------------------------------------------ */

static void what_is_cancelled_is_not_sent_again(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_future *f = get(h, "/");
    peer *p = greeted(&s);
    hears_requests(p, 1);
    rst(p, 1, REFUSED_STREAM);
    ebb_future_cancel(f, EBB_CANCEL_USER); /* both are heard of in the same turn */
    assert_int_equal(loop_await(h->w, f, NULL), EBB_CANCELLED);
    loop_turns(h->w, 20);
    assert_int_equal(requests_of(p), 1);
    peer_close(p);
    raw_end(&s);
}

/* The deadline is that of the call, and of all its attempts. */
static void what_is_late_is_not_sent_again(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_http_call call = {.url = url(h, "/"), .deadline = ebb_now(http_cx(h)) + 3 * EBB_SECOND};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    peer *p = greeted(&s);
    hears_requests(p, 1);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_TIMEOUT);
    rst(p, 1, REFUSED_STREAM);
    loop_turns(h->w, 20);
    assert_int_equal(requests_of(p), 1);
    peer_close(p);
    raw_end(&s);
}

/* A server that gives up waiting says 408 to nobody. The loop has not read it when the next call comes. */
static void bytes_on_an_idle_connection_are_no_answer(void **state) {
    http_world *h = *state;
    raw_server s;
    ebb_value v;
    raw_listen(&s, h);
    ebb_future *f = get(h, "/");
    peer *one = raw_accept(&s);
    (void)hears_text(one, "\r\n\r\n", 0);
    say(one, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_int_equal(loop_await(h->w, f, NULL), EBB_OK);
    say(one, "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n");
    f = get(h, "/");
    peer *two = raw_accept(&s);
    (void)hears_text(two, "\r\n\r\n", 0);
    say(two, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_int_equal(loop_await(h->w, f, &v), EBB_OK);
    assert_int_equal(ebb_http_response_of(&v)->status, 200);
    ebb_value_discard(http_cx(h), v);
    peer_close(one);
    peer_close(two);
    raw_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_2(a_refused_stream_is_sent_again),
        OVER_2(a_stream_that_is_always_refused_fails_in_the_end),
        OVER_2(goaway_has_what_was_not_taken_sent_elsewhere),
        OVER_2(goaway_behind_an_answer_has_the_next_call_sent_elsewhere),
        OVER_2(goaway_with_an_error_ends_what_was_taken),
        OVER_1(a_503_is_an_answer),
        OVER_1(bytes_on_an_idle_connection_are_no_answer),
        OVER_2(a_request_of_which_nothing_was_sent_goes_elsewhere),
        OVER_2(the_body_of_a_call_is_sent_again),
        OVER_2(a_streamed_body_goes_with_the_next_attempt_before_its_first_byte),
        OVER_2(a_streamed_body_is_not_sent_again_after_its_first_byte),
        OVER_2(an_exchange_that_can_not_be_sent_again_stays_until_it_is_closed),
        OVER_2(an_exchange_may_be_closed_while_it_waits_to_be_sent_again),
        OVER_2(what_is_cancelled_is_not_sent_again),
        OVER_2(what_is_late_is_not_sent_again),
    };
    return cmocka_run_group_tests_name("http_client_retry", tests, NULL, NULL);
}
