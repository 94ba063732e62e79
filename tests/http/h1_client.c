/* HTTP/1.1 on the wire, our client's side: what it sends, what it takes for an answer, and when it uses a
 * connection again. The server is the test itself, byte by byte. */
#include "tests/http/raw_peer.h"

typedef struct site {
    loop_world *w;
    int fd; /* listens */
    char url[64];
    ebb_http_client *client;
} site;

static site at;

static void listen_and(loop_world *w, ebb_http_client_opts opts) {
    struct sockaddr_in to = {.sin_family = AF_INET};
    socklen_t n = sizeof to;
    at = (site){.w = w, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(at.fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(listen(at.fd, 16), 0);
    assert_int_equal(getsockname(at.fd, (struct sockaddr *)&to, &n), 0);
    assert_int_equal(fcntl(at.fd, F_SETFL, O_NONBLOCK), 0);
    snprintf(at.url, sizeof at.url, "http://127.0.0.1:%d/p?q", ntohs(to.sin_port));
    assert_int_equal(ebb_http_client_new(w->cx, &opts, &at.client), EBB_OK);
}

static void listen_to(loop_world *w) {
    listen_and(w, (ebb_http_client_opts){0});
}

static peer *try_accept(void) {
    int fd = accept(at.fd, NULL, NULL);
    return fd >= 0 ? peer_of(at.w, fd) : NULL;
}

static peer *accept_one(void) {
    peer *p;
    while ((p = try_accept()) == NULL) loop_turns(at.w, 1);
    return p;
}

/* Ends a connection that the client may think alive; when this returns it does not. */
static void part(peer *p) {
    (void)shutdown(p->fd, SHUT_WR);
    assert_true(hears_the_end(p));
    peer_close(p);
}

static void nobody_comes(void) {
    loop_turns(at.w, 20);
    assert_null(try_accept());
}

typedef struct asked {
    ebb_future *f;
    probe p;
} asked;

static void ask_for(asked *a, const ebb_http_call *call) {
    a->f = ebb_http_fetch(ebb_loop_cx(at.w->loop), at.client, call);
    probe_watch(&a->p, a->f);
}

static void ask(asked *a, const char *method) {
    ask_for(a, &(ebb_http_call){.method = method, .url = at.url});
}

/* Waits for the head of a request, and takes it off. Valid until the next of these. */
static const char *hears_request(peer *p) {
    static char head[4096];
    size_t n = hears_text(p, "\r\n\r\n", 0);
    assert_in_range(n, 1, sizeof head - 1);
    memcpy(head, p->got, n);
    head[n] = 0;
    forget(p, n);
    return head;
}

static ebb_status outcome(asked *a) {
    loop_until(at.w, is_true, &a->p.over);
    ebb_future_drop(a->f);
    return a->p.status;
}

static void fails(asked *a, ebb_status st) {
    ebb_status was = outcome(a);
    if (was != st) print_error("%s, not %s\n", ebb_status_name(was), ebb_status_name(st));
    assert_int_equal(was, st);
    ebb_value_discard(at.w->cx, a->p.value);
}

static void gets(asked *a, int status, const char *body) {
    ebb_status st = outcome(a);
    if (st != EBB_OK) print_error("%s\n", ebb_status_name(st));
    assert_int_equal(st, EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&a->p.value);
    assert_non_null(r);
    assert_int_equal(r->status, status);
    if (body != NULL) assert_string_equal(r->body, body);
    ebb_value_discard(at.w->cx, a->p.value);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void a_request_has_what_it_needs_and_no_more(void **state) {
    char expected[256];
    asked a;
    listen_to(*state);
    ebb_http_field field = {"x-more", "1"};
    ask_for(&a, &(ebb_http_call){.url = at.url, .headers = &field, .headers_n = 1});
    peer *p = accept_one();
    snprintf(expected, sizeof expected, "GET /p?q HTTP/1.1\r\nhost: %.*s\r\nx-more: 1\r\n\r\n",
             (int)strcspn(at.url + 7, "/"), at.url + 7);
    assert_string_equal(hears_request(p), expected);
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    gets(&a, 200, "hi");
    peer_close(p);
    close(at.fd);
}

static void a_body_goes_with_its_length(void **state) {
    enum { ALL = 1000000 };
    asked a;
    listen_to(*state);
    char *body = malloc(ALL);
    memset(body, 'b', ALL);
    ask_for(&a, &(ebb_http_call){.method = "POST", .url = at.url, .body = body, .body_n = ALL});
    peer *p = accept_one();
    assert_non_null(strstr(hears_request(p), "\r\ncontent-length: 1000000\r\n"));
    assert_true(hears_bytes(p, ALL));
    assert_int_equal(p->n, ALL);
    assert_memory_equal(p->got, body, ALL);
    say(p, "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n");
    gets(&a, 201, "");
    free(body);
    ask_for(&a, &(ebb_http_call){.method = "POST", .url = at.url});
    forget(p, ALL);
    assert_non_null(strstr(hears_request(p), "\r\ncontent-length: 0\r\n"));
    say(p, "HTTP/1.1 204 No Content\r\n\r\n");
    gets(&a, 204, "");
    peer_close(p);
    close(at.fd);
}

/* Writes a body piece by piece, and reads the answer. */
static ebb_status stream(ebb_cx *cx, void *arg) {
    char bytes[16];
    ebb_value v, n;
    size_t *read = arg;
    ebb_status st = ebb_await(
        cx, ebb_http_open(cx, at.client, &(ebb_http_call){.method = "PUT", .url = at.url, .streams = true}),
        &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    st = ebb_await(cx, ebb_http_write(cx, x, "abc", 3), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, "0123456789abcdef", 16), NULL);
    if (st == EBB_OK) st = ebb_http_set_trailer(x, "x-sum", "7");
    if (st == EBB_OK) st = ebb_http_end(cx, x);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_response_head(cx, x), NULL);
    if (st == EBB_OK && ebb_http_status(x) != 200) st = EBB_FAILED;
    while (st == EBB_OK && (st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &n)) == EBB_OK)
        *read += n.as.u;
    if (st == EBB_ERR_EOF && strcmp(ebb_http_trailer(x, "x-end"), "yes") != 0) st = EBB_FAILED;
    ebb_http_close(cx, x);
    return st;
}

static void a_body_that_is_written_piece_by_piece_is_chunked(void **state) {
    loop_world *w = *state;
    size_t read = 0;
    fiber_run r = {stream, &read, EBB_PENDING, false};
    listen_to(w);
    ebb_fiber_spawn(w->cx, w->region, fiber_run_main, &r);
    peer *p = accept_one();
    const char *head = hears_request(p);
    assert_non_null(strstr(head, "\r\ntransfer-encoding: chunked\r\n"));
    assert_null(strstr(head, "content-length"));
    static const char body[] = "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx-sum: 7\r\n\r\n";
    assert_true(hears_bytes(p, sizeof body - 1));
    assert_string_equal(p->got, body);
    forget(p, p->n);
    say(p, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nx-end: yes\r\n\r\n");
    loop_until(w, is_true, &r.over);
    assert_int_equal(r.status, EBB_ERR_EOF);
    assert_int_equal(read, 5);
    asked a; /* both sides have said all: the connection goes on */
    ask(&a, "GET");
    (void)hears_request(p);
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    gets(&a, 200, "hi");
    peer_close(p);
    close(at.fd);
}

/* ---- responses --------------------------------------------------------------------------------------------------- */

typedef struct spoken {
    const char *bytes;
    int status;
    const char *body;
    ebb_status error; /* EBB_OK: there is a response */
    bool closes;      /* the server does, after these */
} spoken;

static const spoken answers[] = {
    {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", EBB_OK, false},
    {"HTTP/1.1 200\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", EBB_OK, false},
    {"HTTP/1.1 200 \r\nContent-Length:3\r\n\r\nabc", 200, "abc", EBB_OK, false},
    {"HTTP/1.1 799 So it is\r\ncontent-length: 0\r\n\r\n", 799, "", EBB_OK, false},
    {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, "abcde",
     EBB_OK, false},
    {"HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", EBB_OK, true},
    {"HTTP/1.0 200 OK\r\n\r\n", 200, "", EBB_OK, true},
    {"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", EBB_OK, false},
    {"HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\n", 204, "", EBB_OK, false},
    {"HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n", 304, "", EBB_OK, false},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
     "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
     200, "hi", EBB_OK, false},
    {"\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, "hi", EBB_OK, false},

    {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", 0, NULL, EBB_ERR_HTTP_RESET, true},
    {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", 0, NULL, EBB_ERR_HTTP_RESET,
     true},
    {"HTTP/1.1 200 OK\r\ncontent-le", 0, NULL, EBB_ERR_HTTP_RESET, true},
    {"", 0, NULL, EBB_ERR_HTTP_RESET, true},
    {"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200OK\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 099 OK\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 O\x01K\r\ncontent-length: 0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\ncontent-length: 0\n\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 0, NULL,
     EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc", 0, NULL, EBB_ERR_HTTP_PROTOCOL,
     false},
    {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n", 0, NULL,
     EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\r\nx : y\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
    {"SSH-2.0-OpenSSH_9.2\r\n", 0, NULL, EBB_ERR_HTTP_PROTOCOL, false},
};

static void answers_are_taken_to_the_letter(void **state) {
    listen_to(*state);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        for (int slowly = 0; slowly < 2; slowly++) {
            asked a;
            const spoken *s = &answers[i];
            ask(&a, "GET");
            peer *p = accept_one();
            (void)hears_request(p);
            if (slowly) say_slowly(p, s->bytes, strlen(s->bytes));
            else say(p, s->bytes);
            if (s->closes) {
                loop_turns(at.w, 5);
                assert_false(a.p.over);
                peer_close(p);
            }
            if (s->error != EBB_OK) fails(&a, s->error);
            else gets(&a, s->status, s->body);
            if (!s->closes) part(p);
        }
    }
    close(at.fd);
}

static void an_answer_that_ends_with_the_connection_is_not_whole_if_that_breaks(void **state) {
    struct linger at_once = {1, 0};
    asked a;
    listen_to(*state);
    ask(&a, "GET");
    peer *p = accept_one();
    (void)hears_request(p);
    say(p, "HTTP/1.1 200 OK\r\n\r\nabc");
    loop_turns(at.w, 5);
    assert_int_equal(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    peer_close(p);
    fails(&a, EBB_ERR_HTTP_RESET);
    close(at.fd);
}

static void the_answer_to_head_has_no_body(void **state) {
    asked a;
    listen_to(*state);
    ask(&a, "HEAD");
    peer *p = accept_one();
    (void)hears_request(p);
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
    gets(&a, 200, "");
    ask(&a, "HEAD");
    (void)hears_request(p);
    say(p, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    gets(&a, 200, "");
    peer_close(p);
    close(at.fd);
}

static void say_interims(peer *p, int n) {
    for (int i = 0; i < n; i++) say(p, "HTTP/1.1 102 Processing\r\n\r\n");
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
}

static void interim_answers_are_bounded(void **state) {
    static const int n[] = {16, 16, 17}; /* each request counts its own */
    peer *p = NULL;
    listen_to(*state);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        asked a;
        ask(&a, "GET");
        if (p == NULL) p = accept_one();
        (void)hears_request(p);
        say_interims(p, n[i]);
        if (n[i] == 16) gets(&a, 200, "");
        else fails(&a, EBB_ERR_HTTP_PROTOCOL);
    }
    assert_true(hears_the_end(p));
    peer_close(p);
    close(at.fd);
}

static void say_many(peer *p, char c, size_t n) {
    char *bytes = malloc(n);
    memset(bytes, c, n);
    say_bytes(p, bytes, n);
    free(bytes);
}

static void a_head_is_bounded(void **state) {
    asked a;
    listen_and(*state, (ebb_http_client_opts){.headers = 3, .header_bytes = 1000});
    for (int over = 0; over < 2; over++) { /* their number: content-length is one */
        ask(&a, "GET");
        peer *p = accept_one();
        (void)hears_request(p);
        say(p, "HTTP/1.1 200 OK\r\na: 1\r\nb: 1\r\n");
        if (over) say(p, "c: 1\r\n");
        say(p, "content-length: 0\r\n\r\n");
        if (over) fails(&a, EBB_ERR_LIMIT);
        else gets(&a, 200, "");
        part(p);
    }
    for (int line = 0; line < 2; line++) { /* one that never ends, in its first line or after it */
        ask(&a, "GET");
        peer *p = accept_one();
        (void)hears_request(p);
        say(p, line == 0 ? "HTTP/1.1 200 " : "HTTP/1.1 200 OK\r\na: ");
        say_many(p, 'x', 20000);
        fails(&a, EBB_ERR_LIMIT);
        part(p);
    }
    close(at.fd);
}

static void a_body_is_bounded(void **state) {
    listen_and(*state, (ebb_http_client_opts){.body_bytes = 100000});
    for (size_t n = 100000; n <= 100001; n++) {
        char head[128];
        asked a;
        ask(&a, "GET");
        peer *p = accept_one();
        (void)hears_request(p);
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%zx\r\n", n);
        say(p, head);
        say_many(p, 'x', n);
        say(p, "\r\n0\r\n\r\n");
        if (n == 100000) gets(&a, 200, NULL);
        else fails(&a, EBB_ERR_LIMIT);
        part(p);
    }
    close(at.fd);
}

/* ---- connections that are used again --------------------------------------------------------------------------------- */

static void ask_and_answer(peer *p, const char *answer) {
    asked a;
    ask(&a, "GET");
    (void)hears_request(p);
    say(p, answer);
    gets(&a, 200, "hi");
}

static peer *first_answer(const char *answer) {
    asked a;
    ask(&a, "GET");
    peer *p = accept_one();
    (void)hears_request(p);
    say(p, answer);
    gets(&a, 200, "hi");
    return p;
}

#define HI "content-length: 2\r\n\r\nhi"

static void a_connection_is_used_again(void **state) {
    listen_to(*state);
    peer *p = first_answer("HTTP/1.1 200 OK\r\n" HI);
    for (int i = 0; i < 10; i++) ask_and_answer(p, "HTTP/1.1 200 OK\r\n" HI);
    ask_and_answer(p, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    ask_and_answer(p, "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" HI);
    ask_and_answer(p, "HTTP/1.1 200 OK\r\n" HI);
    nobody_comes();
    peer_close(p);
    close(at.fd);
}

static void a_connection_that_is_to_end_is_not_used_again(void **state) {
    static const char *const lasts[] = {
        "HTTP/1.1 200 OK\r\nconnection: close\r\n" HI,
        "HTTP/1.0 200 OK\r\n" HI,
        "HTTP/1.1 200 OK\r\n" HI "HTTP/1.1 200 OK\r\n" HI, /* an answer that nobody has asked for */
        "HTTP/1.1 200 OK\r\n" HI "x",
    };
    listen_to(*state);
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++) {
        peer *p = first_answer(lasts[i]);
        assert_true(hears_the_end(p));
        peer_close(p);
    }
    peer *p = first_answer("HTTP/1.1 200 OK\r\n" HI);
    say(p, "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"); /* while nothing is in flight */
    assert_true(hears_the_end(p));
    peer_close(p);
    p = first_answer("HTTP/1.1 200 OK\r\n" HI);
    peer_close(p);
    close(at.fd);
}

/* The server may have read the request before it closed: nobody knows, whatever the method is. */
static void a_request_that_was_sent_is_not_sent_again(void **state) {
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST"};
    listen_to(*state);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        asked a;
        peer *p = first_answer("HTTP/1.1 200 OK\r\n" HI);
        ask(&a, methods[i]);
        (void)hears_request(p);
        peer_close(p);
        fails(&a, EBB_ERR_HTTP_RESET);
        ask(&a, methods[i]);
        p = accept_one();
        (void)hears_request(p);
        peer_close(p);
        fails(&a, EBB_ERR_HTTP_RESET);
        nobody_comes();
    }
    asked a;
    peer *p = first_answer("HTTP/1.1 200 OK\r\n" HI);
    ask(&a, "GET");
    (void)hears_request(p);
    say(p, "H");
    loop_turns(at.w, 5);
    peer_close(p);
    fails(&a, EBB_ERR_HTTP_RESET);
    close(at.fd);
}

/* The server has closed an idle connection, and the loop has not looked at that yet. */
static void a_connection_that_was_closed_while_idle_is_not_used_again(void **state) {
    static const char *const methods[] = {"GET", "POST"};
    listen_to(*state);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        asked a;
        peer *p = first_answer("HTTP/1.1 200 OK\r\n" HI);
        (void)shutdown(p->fd, SHUT_RDWR);
        ask(&a, methods[i]);
        peer *q = accept_one();
        (void)hears_request(q);
        say(q, "HTTP/1.1 200 OK\r\nconnection: close\r\n" HI);
        gets(&a, 200, "hi");
        peer_close(p);
        peer_close(q);
    }
    close(at.fd);
}

static void an_answer_before_the_end_of_the_request_ends_the_connection(void **state) {
    enum { ALL = 16 << 20 };
    asked a;
    listen_to(*state);
    char *body = calloc(1, ALL);
    ask_for(&a, &(ebb_http_call){.method = "POST", .url = at.url, .body = body, .body_n = ALL});
    peer *p = accept_one();
    (void)hears_request(p);
    peer_listens(p, false);
    say(p, "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n");
    gets(&a, 413, "");
    free(body);
    peer_listens(p, true);
    assert_true(hears_the_end(p));
    assert_true(p->n < ALL);
    peer_close(p);
    close(at.fd);
}

/* The answer is whole before the body was: its writer hears of it, and lets go. */
static ebb_status write_in_vain(ebb_cx *cx, void *arg) {
    ebb_value v;
    ebb_http_call call = {.method = "PUT", .url = at.url, .streams = true};
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_http_open(cx, at.client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    st = ebb_await(cx, ebb_http_write(cx, x, "abc", 3), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_response_head(cx, x), NULL);
    ebb_http_close(cx, x);
    return st;
}

static void a_request_that_was_not_whole_leaves_no_connection_to_use_again(void **state) {
    loop_world *w = *state;
    fiber_run r = {write_in_vain, NULL, EBB_PENDING, false};
    listen_to(w);
    ebb_fiber_spawn(w->cx, w->region, fiber_run_main, &r);
    peer *p = accept_one();
    (void)hears_request(p);
    assert_true(hears_bytes(p, 8));
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    loop_until(w, is_true, &r.over);
    assert_int_equal(r.status, EBB_OK);
    assert_true(hears_the_end(p));
    assert_string_equal(p->got, "3\r\nabc\r\n");
    peer_close(p);
    peer_close(first_answer("HTTP/1.1 200 OK\r\n" HI));
    close(at.fd);
}

static void a_call_that_is_cancelled_closes_its_connection(void **state) {
    static const char *const begins[] = {"", "HTTP/1.1 200 OK\r\nconte",
                                         "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"};
    listen_to(*state);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        asked a;
        ask(&a, "GET");
        peer *p = accept_one();
        (void)hears_request(p);
        say(p, begins[i]);
        loop_turns(at.w, 5);
        assert_true(ebb_future_cancel(a.f, EBB_CANCEL_USER));
        fails(&a, EBB_CANCELLED);
        assert_true(hears_the_end(p));
        peer_close(p);
    }
    close(at.fd);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/* One that uses everything; false: it has failed. */
static bool call_once(void) {
    asked a;
    ebb_http_field field = {"x-more", "1"};
    ask_for(
        &a,
        &(ebb_http_call){
            .method = "PUT", .url = at.url, .headers = &field, .headers_n = 1, .body = "abc", .body_n = 3});
    peer *p = NULL;
    while (p == NULL && !a.p.over) {
        loop_turns(at.w, 1);
        p = try_accept();
    }
    if (p != NULL && hears_text(p, "\r\n\r\nabc", 0) != 0) {
        say_slowly(p, "HTTP/1.1 200 OK\r\nx", 18);
        say(p, ": y\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nhi\r\n0\r\nz: 1\r\n\r\n");
    }
    ebb_status st = outcome(&a);
    ebb_value_discard(at.w->cx, a.p.value);
    if (p != NULL) part(p);
    while ((p = try_accept()) != NULL) part(p); /* it was given up before it was met */
    return st == EBB_OK;
}

static void the_nth_allocation_may_fail(void **state) {
    loop_world *w = *state;
    listen_to(w);
    assert_true(call_once());
    for (uint64_t n = 1;; n++) {
        w->memory.fail_at = w->memory.calls + n;
        uint64_t failures = w->memory.failures;
        (void)call_once();
        w->memory.fail_at = 0;
        if (w->memory.failures == failures) break;
    }
    assert_true(call_once());
    close(at.fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_request_has_what_it_needs_and_no_more),
        ON_A_LOOP(a_body_goes_with_its_length),
        ON_A_LOOP(a_body_that_is_written_piece_by_piece_is_chunked),
        ON_A_LOOP(answers_are_taken_to_the_letter),
        ON_A_LOOP(an_answer_that_ends_with_the_connection_is_not_whole_if_that_breaks),
        ON_A_LOOP(the_answer_to_head_has_no_body),
        ON_A_LOOP(interim_answers_are_bounded),
        ON_A_LOOP(a_head_is_bounded),
        ON_A_LOOP(a_body_is_bounded),
        ON_A_LOOP(a_connection_is_used_again),
        ON_A_LOOP(a_connection_that_is_to_end_is_not_used_again),
        ON_A_LOOP(a_request_that_was_sent_is_not_sent_again),
        ON_A_LOOP(a_connection_that_was_closed_while_idle_is_not_used_again),
        ON_A_LOOP(an_answer_before_the_end_of_the_request_ends_the_connection),
        ON_A_LOOP(a_request_that_was_not_whole_leaves_no_connection_to_use_again),
        ON_A_LOOP(a_call_that_is_cancelled_closes_its_connection),
        ON_A_LOOP(the_nth_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
