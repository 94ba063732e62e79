/* HTTP/1.1 on the wire: what our server takes, what it refuses, and how it answers, byte by byte. */
#include "tests/http/raw_peer.h"

/* ---- a server with a few things to ask for -------------------------------------------------------------------- */

typedef struct site {
    loop_world *w;
    ebb_http_server *server;
    uint16_t port;
    int waiting; /* handlers that wait for the test to open */
    bool open;
    size_t read; /* by the last reader */
    char trailer[64];
    ebb_reason why; /* of the last handler that was cancelled */
    int cancelled;
} site;

static site at; /* one a test: handlers find it here */

static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, "hello");
}

static ebb_status show(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[512];
    (void)arg;
    snprintf(text, sizeof text, "%s|%s|%s|%s|%d", ebb_http_method(x), ebb_http_path(x), ebb_http_query(x),
             ebb_http_authority(x), ebb_http_version(x));
    return ebb_http_text(cx, x, 200, text);
}

/* Says what came, when all of it has. */
static ebb_status count(ebb_cx *cx, ebb_http *x, void *arg) {
    char bytes[1000], text[64];
    ebb_value n;
    ebb_status st;
    (void)arg;
    at.read = 0;
    while ((st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &n)) == EBB_OK) at.read += n.as.u;
    if (st != EBB_ERR_EOF) return st;
    const char *trailer = ebb_http_trailer(x, "x-sum");
    snprintf(at.trailer, sizeof at.trailer, "%s%s", trailer == NULL ? "none" : trailer,
             ebb_http_trailer(x, "content-length") != NULL ? " and a length" : "");
    snprintf(text, sizeof text, "%zu", at.read);
    return ebb_http_text(cx, x, 200, text);
}

/* Sends back what comes, as it comes. */
static ebb_status echo(ebb_cx *cx, ebb_http *x, void *arg) {
    char bytes[4000];
    ebb_value n;
    ebb_status st;
    (void)arg;
    while ((st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &n)) == EBB_OK) {
        st = ebb_await(cx, ebb_http_write(cx, x, bytes, n.as.u), NULL);
        if (st != EBB_OK) return st;
    }
    return st == EBB_ERR_EOF ? ebb_http_set_trailer(x, "x-end", "yes") : st;
}

static ebb_status reply_and_trailer(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_status st = ebb_http_set_trailer(x, "x-end", "yes");
    return st == EBB_OK ? hello(cx, x, arg) : st;
}

static ebb_status status_only(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_reply(cx, x, atoi(ebb_http_param(x, "status")), NULL, NULL, 0);
}

static ebb_status pass_gate(ebb_cx *cx) {
    ebb_task_info me;
    ebb_status st = EBB_OK;
    at.waiting++;
    while (!at.open && st == EBB_OK) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    at.waiting--;
    if (st == EBB_OK) return st;
    assert_int_equal(ebb_task_info_of(cx, ebb_cx_task(cx), &me), EBB_OK);
    at.why = me.reason;
    at.cancelled++;
    return st;
}

/* Waits for the test. */
static ebb_status wait(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    ebb_status st = pass_gate(cx);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "at last") : st;
}

static ebb_status wait_and_count(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_status st = pass_gate(cx);
    return st == EBB_OK ? count(cx, x, arg) : st;
}

/* Begins an answer and waits for the test. */
static ebb_status begin_and_wait(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_http_write(cx, x, "begun", 5), NULL);
    if (st == EBB_OK) st = pass_gate(cx);
    return st;
}

static ebb_status begin_and_fail(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    (void)ebb_await(cx, ebb_http_write(cx, x, "begun", 5), NULL);
    return EBB_FAILED;
}

/* Says that it has 10 bytes, and writes those, or as many as the query says. */
static ebb_status sized(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    size_t n = ebb_http_query(x)[0] == 0 ? 10 : strtoul(ebb_http_query(x), NULL, 10);
    ebb_status st = ebb_http_set_header(x, "content-length", "10");
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_write(cx, x, "0123", 4), NULL);
    return st == EBB_OK ? ebb_await(cx, ebb_http_write(cx, x, "456789", n - 4), NULL) : st;
}

/* A head that is larger than any piece of what is written. */
static ebb_status large_head(ebb_cx *cx, ebb_http *x, void *arg) {
    static char value[100001];
    (void)arg;
    memset(value, 'v', sizeof value - 1);
    ebb_status st = ebb_http_set_header(x, "x-large", value);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "hello") : st;
}

/* More than the system takes for who does not read. */
enum { LARGE = 16 << 20 };

static ebb_status large_body(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    char *bytes = malloc(LARGE);
    memset(bytes, 'b', LARGE);
    ebb_status st = ebb_http_reply(cx, x, 200, NULL, bytes, LARGE);
    free(bytes);
    return st;
}

static void on(const char *method, const char *path, ebb_http_handler_fn fn) {
    assert_int_equal(ebb_http_on(at.server, method, path, fn, NULL), EBB_OK);
}

static void serve(loop_world *w, ebb_http_limits limits) {
    ebb_address address;
    at = (site){.w = w};
    ebb_http_server_opts opts = {.address = {"127.0.0.1", 0}, .limits = limits};
    assert_int_equal(ebb_http_listen(w->cx, &opts, &at.server), EBB_OK);
    assert_int_equal(ebb_http_server_address(w->cx, at.server, &address), EBB_OK);
    at.port = address.port;
    on("GET", "/", hello);
    on("*", "/show", show);
    on("*", "/rest/*rest", hello);
    on("POST", "/count", count);
    on("POST", "/echo", echo);
    on("GET", "/reply-and-trailer", reply_and_trailer);
    on("GET", "/status/:status", status_only);
    on("*", "/wait", wait);
    on("POST", "/wait-and-count", wait_and_count);
    on("*", "/begin-and-wait", begin_and_wait);
    on("GET", "/begin-and-fail", begin_and_fail);
    on("GET", "/sized", sized);
    on("GET", "/large-head", large_head);
    on("*", "/large-body", large_body);
}

static peer *visit(void) {
    return peer_open(at.w, at.port);
}

static void until_somebody_waits(void) {
    while (at.waiting == 0) loop_turns(at.w, 1);
}

static bool is_empty(void) {
    ebb_http_server_stats stats;
    ebb_http_server_stats_of(at.server, &stats);
    return stats.connections == 0 && stats.exchanges == 0;
}

/* What the last connection does at its end wakes nobody: a turn must not wait. */
static void until_empty(void) {
    while (!is_empty()) loop_turns(at.w, 1);
}

#define GET "GET / HTTP/1.1\r\nhost: h\r\n\r\n"

/* ---- requests ------------------------------------------------------------------------------------------------- */

static void a_request_is_answered_and_the_connection_goes_on(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    for (int i = 0; i < 3; i++) {
        say(p, GET);
        heard h = hear(p);
        assert_int_equal(h.status, 200);
        assert_string_equal(h.body, "hello");
        assert_string_equal(field_of(&h, "content-length"), "5");
        assert_string_equal(field_of(&h, "content-type"), "text/plain; charset=utf-8");
        assert_int_equal(strlen(field_of(&h, "date")), 29);
        assert_null(field_of(&h, "connection"));
        free_heard(&h);
    }
    assert_int_equal(p->n, 0);
    peer_close(p);
    until_empty();
}

typedef struct spoken {
    const char *bytes;
    int status;
    const char *body; /* NULL: any */
} spoken;

static const spoken bad_heads[] = {
    /* the first line */
    {"\r\n\r\n" GET, 400, NULL},
    {"\n" GET, 400, NULL},
    {"GET / HTTP/1.1\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\n\n", 400, NULL},
    {"GET /\r\n\r\n", 400, NULL},
    {"GET  / HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET /  HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET\t/ HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1 \r\nhost: h\r\n\r\n", 400, NULL},
    {" GET / HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / http/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.11\r\nhost: h\r\n\r\n", 400, NULL},
    {"G(T / HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET /\x01 HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET /\xc3\xa9 HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\r\nhost: h\r\n\r\n", 400, NULL},
    {"get / HTTP/1.1\r\nhost: h\r\n\r\n", 501, NULL},
    {"FROB / HTTP/1.1\r\nhost: h\r\n\r\n", 501, NULL},
    {"CONNECT h:80 HTTP/1.1\r\nhost: h\r\n\r\n", 501, NULL},
    {"GET / HTTP/2.0\r\nhost: h\r\n\r\n", 505, NULL},
    {"GET / HTTP/0.9\r\nhost: h\r\n\r\n", 505, NULL},
    /* the target */
    {"GET x HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET * HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET h:80 HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET /#f HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET ftp://h/ HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET http:///x HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET http://u@h/ HTTP/1.1\r\nhost: h\r\n\r\n", 400, NULL},
    /* the host */
    {"GET / HTTP/1.1\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.0\r\nhost: h\r\nhost: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h/x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: u@h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: a b\r\n\r\n", 400, NULL},
    /* fields */
    {"GET / HTTP/1.1\r\nhost : h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx\t: 1\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx: 1\r\n 2\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx: 1\r\n\t2\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\n host: h\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx: a\rb\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx: a\x01\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx: a\x7f\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\n: x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx(y): x\r\n\r\n", 400, NULL},
    {"GET / HTTP/1.1\r\nhost: h\r\nx\xc3: x\r\n\r\n", 400, NULL},
    /* how long the body is */
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 1, 2\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: +1\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 0x1\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 1 1\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length:\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 18446744073709551616\r\n\r\n", 400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip\r\n\r\n", 501, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n", 501, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked, chunked\r\n\r\n", 501, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: xchunked\r\n\r\n", 501, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: \x0b"
     "chunked\r\n\r\n",
     400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding:\r\n\r\n", 501, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
     400, NULL},
    {"POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n",
     400, NULL},
    {"POST /count HTTP/1.0\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n", 400, NULL},
};

/* Nothing that follows a bad head is looked at: not even if it looks like a request. */
static void bad_heads_are_refused_by_name_and_end_the_connection(void **state) {
    serve(*state, (ebb_http_limits){0});
    for (size_t i = 0; i < sizeof bad_heads / sizeof *bad_heads; i++) {
        for (int slowly = 0; slowly < 2; slowly++) {
            peer *p = visit();
            if (slowly) say_slowly(p, bad_heads[i].bytes, strlen(bad_heads[i].bytes));
            else say(p, bad_heads[i].bytes), say(p, GET);
            heard h = hear(p);
            if (h.status != bad_heads[i].status) print_error("%d for %s\n", h.status, bad_heads[i].bytes);
            assert_int_equal(h.status, bad_heads[i].status);
            assert_true(h.whole && h.body_n > 1);
            assert_string_equal(field_of(&h, "connection"), "close");
            assert_true(hears_the_end(p));
            assert_int_equal(p->n, 0);
            free_heard(&h);
            peer_close(p);
        }
    }
    peer *p = visit();
    say(p, GET);
    hears(p, 200, "hello");
    peer_close(p);
}

static void a_zero_byte_in_a_head_is_refused(void **state) {
    static const char in_value[] = "GET / HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n";
    static const char in_target[] = "GET /\0 HTTP/1.1\r\nhost: h\r\n\r\n";
    static const char in_name[] = "GET / HTTP/1.1\r\nhost: h\r\nx\0: b\r\n\r\n";
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say_bytes(p, in_value, sizeof in_value - 1);
    hears_last(p, 400, NULL);
    peer_close(p);
    p = visit();
    say_bytes(p, in_target, sizeof in_target - 1);
    hears_last(p, 400, NULL);
    peer_close(p);
    p = visit();
    say_bytes(p, in_name, sizeof in_name - 1);
    hears_last(p, 400, NULL);
    peer_close(p);
}

static const spoken good_heads[] = {
    {"GET /show HTTP/1.1\r\nhost: h\r\n\r\n", 200, "GET|/show||h|11"},
    {"\r\nGET /show HTTP/1.1\r\nhost: h\r\n\r\n", 200, "GET|/show||h|11"},
    {"GET /show?a=1&b=/? HTTP/1.1\r\nHOST:h:8080\r\n\r\n", 200, "GET|/show|a=1&b=/?|h:8080|11"},
    {"GET /show HTTP/1.1\r\nhost: \t [::1]:80 \t\r\n\r\n", 200, "GET|/show||[::1]:80|11"},
    {"GET /show HTTP/1.1\r\nhost:\r\n\r\n", 200, "GET|/show|||11"},
    {"GET http://there:81/show?q HTTP/1.1\r\nhost: h\r\n\r\n", 200, "GET|/show|q|there:81|11"},
    {"GET HTTPS://there/show HTTP/1.1\r\nhost: h\r\n\r\n", 200, "GET|/show||there|11"},
    {"GET http://there HTTP/1.1\r\nhost: h\r\n\r\n", 200, "hello"},
    {"GET http://there?x HTTP/1.1\r\nhost: h\r\n\r\n", 200, "hello"},
    {"OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n", 404, NULL},
    {"OPTIONS /show HTTP/1.1\r\nhost: h\r\n\r\n", 200, "OPTIONS|/show||h|11"},
    {"DELETE /show HTTP/1.1\r\nhost: h\r\n\r\n", 200, "DELETE|/show||h|11"},
    {"GET /show HTTP/1.2\r\nhost: h\r\n\r\n", 200, "GET|/show||h|11"},
    {"GET /show HTTP/1.1\r\nhost: h\r\nx:\r\ny: a b\t c \xe4\r\n\r\n", 200, "GET|/show||h|11"},
    {"GET /show HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 200,
     "GET|/show||h|11"},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n", 200, "0"},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 003\r\n\r\nabc", 200, "3"},
    {"POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: \t 3  \r\n\r\nabc", 200, "3"},
    {"POST /count HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, "3"},
    {"POST /count HTTP/1.1\r\nhost: h\r\n\r\n", 200, "0"},
    {"GET /nowhere HTTP/1.1\r\nhost: h\r\n\r\n", 404, NULL},
    {"PUT /count HTTP/1.1\r\nhost: h\r\n\r\n", 405, NULL},
};

static void good_heads_are_taken_whole_and_byte_by_byte(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    for (size_t i = 0; i < sizeof good_heads / sizeof *good_heads; i++) {
        say(p, good_heads[i].bytes);
        hears(p, good_heads[i].status, good_heads[i].body);
        say_slowly(p, good_heads[i].bytes, strlen(good_heads[i].bytes));
        hears(p, good_heads[i].status, good_heads[i].body);
    }
    assert_int_equal(p->n, 0);
    peer_close(p);
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

static char *repeat(char c, size_t n) {
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, c, n);
    text[n] = 0;
    return text;
}

/* A request whose first line has n bytes. */
static void say_line(peer *p, size_t n) {
    char *path = repeat('p', n - strlen("GET /rest/ HTTP/1.1"));
    say(p, "GET /rest/");
    say(p, path);
    say(p, " HTTP/1.1\r\nhost: h\r\n\r\n");
    free(path);
}

static void a_request_line_of_8_kib_is_the_longest(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say_line(p, 8192);
    hears(p, 200, "hello");
    say_line(p, 8193);
    hears_last(p, 414, NULL);
    peer_close(p);
    p = visit(); /* one that never ends */
    char *path = repeat('p', 9000);
    say(p, "GET /");
    say(p, path);
    hears_last(p, 414, NULL);
    free(path);
    peer_close(p);
}

/* A request whose head has n bytes. */
static void say_head(peer *p, size_t n) {
    char *value = repeat('v', n - strlen("GET / HTTP/1.1\r\nhost: h\r\nx: \r\n\r\n"));
    say(p, "GET / HTTP/1.1\r\nhost: h\r\nx: ");
    say(p, value);
    say(p, "\r\n\r\n");
    free(value);
}

static void a_head_may_have_block_bytes(void **state) {
    serve(*state, (ebb_http_limits){.block_bytes = 3000});
    peer *p = visit();
    say_head(p, 3000);
    hears(p, 200, "hello");
    say_head(p, 3001);
    hears_last(p, 431, NULL);
    peer_close(p);
    p = visit();
    char *value = repeat('v', 3000); /* one that never ends */
    say(p, "GET / HTTP/1.1\r\nhost: h\r\nx: ");
    say(p, value);
    hears_last(p, 431, NULL);
    free(value);
    peer_close(p);
}

static void fields_are_counted(void **state) {
    serve(*state, (ebb_http_limits){.headers = 4});
    peer *p = visit();
    say(p, "GET / HTTP/1.1\r\nhost: h\r\na: 1\r\nb: 2\r\nc: 3\r\n\r\n");
    hears(p, 200, "hello");
    say(p, "GET / HTTP/1.1\r\nhost: h\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n\r\n");
    hears_last(p, 431, NULL);
    peer_close(p);
}

/* As HTTP/2 counts them: 32 bytes each besides name and value, and the pseudo fields with them. */
static void the_bytes_of_fields_are_counted(void **state) {
    size_t pseudo = 32 + 7 + 3 + 32 + 5 + 1, host = 32 + 4 + 1;
    serve(*state, (ebb_http_limits){.header_bytes = 1000});
    peer *p = visit();
    size_t rest = 1000 - pseudo - host - 32 - 1;
    size_t around = strlen("GET / HTTP/1.1\r\nhost: h\r\nx: \r\n\r\n");
    say_head(p, around + rest);
    hears(p, 200, "hello");
    say_head(p, around + rest + 1);
    hears_last(p, 431, NULL);
    peer_close(p);
}

static void after_the_last_request_the_connection_ends(void **state) {
    serve(*state, (ebb_http_limits){.requests = 3});
    peer *p = visit();
    say(p, GET GET GET GET);
    hears(p, 200, "hello");
    hears(p, 200, "hello");
    hears_last(p, 200, "hello");
    peer_close(p);
}

static void a_body_may_have_body_bytes(void **state) {
    serve(*state, (ebb_http_limits){.body_bytes = 10});
    peer *p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n0123456789");
    hears(p, 200, "10");
    say(p,
        "POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n");
    hears(p, 200, "10");
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\n");
    hears_last(p, 413, NULL);
    peer_close(p);
    p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nb\r\n0123456789a\r\n");
    hears_last(p, 413, NULL);
    peer_close(p);
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

#define CHUNKED "POST /count HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"

static const spoken chunks[] = {
    {"0\r\n\r\n", 200, "0"},
    {"3\r\nabc\r\n0\r\n\r\n", 200, "3"},
    {"003\r\nabc\r\n000\r\n\r\n", 200, "3"},
    {"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", 200, "20"},
    {"3;x=y\r\nabc\r\n0;last\r\n\r\n", 200, "3"},
    {"3 ; x=\"y z\"\r\nabc\r\n0\r\n\r\n", 200, "3"},
    {"2\r\n\r\n\r\n0\r\n\r\n", 200, "2"},
    {"0\r\nx-sum: 1\r\n\r\n", 200, "0"},
    {"\r\n", 400, NULL},
    {"g\r\n", 400, NULL},
    {"-1\r\n", 400, NULL},
    {"0x3\r\n", 400, NULL},
    {"3\nabc\r\n", 400, NULL},
    {"3\rabc\r\n", 400, NULL},
    {"3 \r\nabc\r\n", 400, NULL},
    {" 3\r\nabc\r\n", 400, NULL},
    {"3 x\r\nabc\r\n", 400, NULL},
    {"3 x;y\r\nabc\r\n", 400, NULL},
    {"3;x\r\nabc\r\n1 \r\nd\r\n0\r\n\r\n", 400, NULL},
    {"3;x\nabc\r\n", 400, NULL},
    {"3;x\x01\r\nabc\r\n", 400, NULL},
    {"3;\rx\r\nabc\r\n", 400, NULL},
    {"3\r\nabcd\r\n", 400, NULL},
    {"3\r\nabcd\n0\r\n\r\n", 400, NULL},
    {"3\r\nabc\n0\r\n\r\n", 400, NULL},
    {"3\r\nabc\rx0\r\n\r\n", 400, NULL},
    {"3\r\nabcxx0\r\n\r\n", 400, NULL},
    {"10000000000000000\r\n", 400, NULL},
    {"0\r\nx-sum : 1\r\n\r\n", 400, NULL},
    {"0\r\nx-sum: 1\r\n 2\r\n\r\n", 400, NULL},
    {"0\r\nx-sum: 1\n\r\n", 400, NULL},
    {"0\r\nGET / HTTP/1.1\r\n\r\n", 400, NULL},
};

static void chunks_are_taken_to_the_letter(void **state) {
    serve(*state, (ebb_http_limits){0});
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        for (int slowly = 0; slowly < 2; slowly++) {
            peer *p = visit();
            say(p, CHUNKED);
            if (slowly) say_slowly(p, chunks[i].bytes, strlen(chunks[i].bytes));
            else say(p, chunks[i].bytes);
            heard h = hear(p);
            if (h.status != chunks[i].status) print_error("%d for %s\n", h.status, chunks[i].bytes);
            assert_int_equal(h.status, chunks[i].status);
            if (chunks[i].body != NULL) assert_string_equal(h.body, chunks[i].body);
            free_heard(&h);
            if (chunks[i].status == 200) { /* the next request starts where this one ends */
                say(p, GET);
                hears(p, 200, "hello");
            } else assert_true(hears_the_end(p));
            assert_int_equal(p->n, 0);
            peer_close(p);
        }
    }
}

static void extensions_of_all_chunks_have_4_kib(void **state) {
    serve(*state, (ebb_http_limits){0});
    char *half = repeat('e', 2047);
    peer *p = visit();
    for (int over = 0; over < 3; over++) { /* the second is at the limit too: they count anew */
        say(p, CHUNKED "1;");
        say(p, half);
        say(p, "\r\na\r\n1;");
        say(p, half);
        say(p, over == 2 ? "e\r\na\r\n0\r\n\r\n" : "\r\na\r\n0\r\n\r\n");
        if (over == 2) hears_last(p, 400, NULL);
        else hears(p, 200, "2");
    }
    peer_close(p);
    free(half);
}

static void trailers_come_after_the_body(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, CHUNKED "1\r\na\r\n0\r\nX-Sum:  7 \r\ncontent-length: 5\r\n\r\n");
    hears(p, 200, "1");
    assert_string_equal(at.trailer, "7");
    say(p, CHUNKED "1\r\na\r\n0\r\n\r\n");
    hears(p, 200, "1");
    assert_string_equal(at.trailer, "none");
    peer_close(p);
}

static void trailers_are_bounded_as_heads_are(void **state) {
    serve(*state, (ebb_http_limits){.block_bytes = 1000});
    char *value = repeat('v', 1000);
    peer *p = visit();
    say(p, CHUNKED "0\r\nx: ");
    say(p, value);
    hears_last(p, 431, NULL);
    free(value);
    peer_close(p);
}

/* ---- one after the other ------------------------------------------------------------------------------------------ */

static void a_hundred_requests_in_one_write_are_answered_in_order(void **state) {
    char text[100 * 64] = "", expected[64];
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    for (int i = 0; i < 100; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "GET /show?%d HTTP/1.1\r\nhost: h\r\n\r\n", i);
    }
    say(p, text);
    for (int i = 0; i < 100; i++) {
        snprintf(expected, sizeof expected, "GET|/show|%d|h|11", i);
        hears(p, 200, expected);
    }
    assert_int_equal(p->n, 0);
    peer_close(p);
}

static void requests_may_be_cut_anywhere(void **state) {
    static const char all[] = GET "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc" GET;
    serve(*state, (ebb_http_limits){0});
    for (size_t cut = 1; cut < sizeof all - 1; cut++) {
        peer *p = visit();
        say_bytes(p, all, cut);
        loop_turns(at.w, 10);
        say(p, all + cut);
        hears(p, 200, "hello");
        hears(p, 200, "3");
        hears(p, 200, "hello");
        peer_close(p);
    }
}

static void bodies_may_stand_between_requests(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nGET" GET CHUNKED
           "3\r\nGET\r\n0\r\n\r\n\r\n" GET);
    hears(p, 200, "3");
    hears(p, 200, "hello");
    hears(p, 200, "3");
    hears(p, 200, "hello");
    peer_close(p);
}

static void what_waits_behind_a_request_is_bounded(void **state) {
    enum { MANY = 5000 };
    ebb_http_server_stats before, during;
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n");
    until_somebody_waits();
    ebb_http_server_stats_of(at.server, &before);
    size_t sent = 0;
    for (int idle = 0; idle < 200;) { /* as much as the system takes */
        ssize_t k = send(p->fd, GET, strlen(GET), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k == (ssize_t)strlen(GET)) sent++, idle = 0;
        else if (k > 0) assert_true(false);
        else idle++;
        if (k <= 0 || sent % 64 == 0) loop_turns(at.w, 1);
        if (sent == MANY) break;
    }
    ebb_http_server_stats_of(at.server, &during);
    assert_in_range(during.bytes_in - before.bytes_in, 16384, 3 * 16384);
    assert_in_range(during.memory - before.memory, 1, 65536);
    at.open = true;
    hears(p, 200, "at last");
    for (size_t i = 0; i < sent; i++) hears(p, 200, "hello");
    peer_close(p);
}

static void the_next_request_waits_for_the_work_of_the_one_before(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\nGET /wait HTTP/1.1\r\nhost: h\r\n\r\n");
    until_somebody_waits();
    loop_turns(at.w, 20);
    assert_int_equal(at.waiting, 1);
    at.open = true;
    hears(p, 200, "at last");
    hears(p, 200, "at last");
    peer_close(p);
}

/* ---- how connections go on, or not ---------------------------------------------------------------------------------- */

static void close_is_honoured(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET / HTTP/1.1\r\nhost: h\r\nconnection: foo, Close\r\n\r\n" GET);
    hears_last(p, 200, "hello");
    peer_close(p);
    p = visit();
    say(p, "GET / HTTP/1.1\r\nhost: h\r\nconnection: x\r\nconnection: close\r\n\r\n" GET);
    hears_last(p, 200, "hello");
    peer_close(p);
}

static void http_1_0_ends_unless_it_is_asked_to_go_on(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /show HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    heard h = hear(p);
    assert_string_equal(h.body, "GET|/show|||10");
    assert_string_equal(field_of(&h, "connection"), "keep-alive");
    free_heard(&h);
    say(p, "GET / HTTP/1.0\r\n\r\n" GET);
    hears_last(p, 200, "hello");
    peer_close(p);
}

static void a_body_of_unknown_length_ends_with_the_connection_in_http_1_0(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /echo HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nabcde");
    heard h = hear(p);
    assert_int_equal(h.status, 200);
    assert_string_equal(h.body, "abcde");
    assert_null(field_of(&h, "transfer-encoding"));
    assert_null(field_of(&h, "content-length"));
    assert_string_equal(field_of(&h, "connection"), "close");
    assert_true(p->ended && !p->reset);
    free_heard(&h);
    peer_close(p);
}

static void a_body_of_unknown_length_is_chunked(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    char *text = repeat('t', 300000);
    char head[128];
    snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n", 300000);
    say(p, head);
    say(p, text);
    heard h = hear(p);
    assert_true(h.whole);
    assert_string_equal(field_of(&h, "transfer-encoding"), "chunked");
    assert_null(field_of(&h, "content-length"));
    assert_null(field_of(&h, "connection"));
    assert_int_equal(h.body_n, 300000);
    assert_memory_equal(h.body, text, 300000);
    assert_string_equal(h.trailers, "x-end: yes\r\n");
    free_heard(&h);
    say(p, GET);
    hears(p, 200, "hello");
    free(text);
    peer_close(p);
}

static void trailers_have_their_place_after_chunks_alone(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /reply-and-trailer HTTP/1.1\r\nhost: h\r\n\r\n");
    heard h = hear(p);
    assert_string_equal(h.body, "hello");
    assert_string_equal(h.trailers, "x-end: yes\r\n");
    assert_null(field_of(&h, "content-length"));
    free_heard(&h);
    say(p, "GET /reply-and-trailer HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    h = hear(p);
    assert_string_equal(h.body, "hello");
    assert_string_equal(field_of(&h, "content-length"), "5");
    free_heard(&h);
    peer_close(p);
}

static void a_length_that_the_handler_knows_is_sent_and_kept(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /sized HTTP/1.1\r\nhost: h\r\n\r\n");
    heard h = hear(p);
    assert_string_equal(field_of(&h, "content-length"), "10");
    assert_null(field_of(&h, "transfer-encoding"));
    assert_string_equal(h.body, "0123456789");
    free_heard(&h);
    say(p, "HEAD /sized HTTP/1.1\r\nhost: h\r\n\r\n");
    h = hear_to(p, true);
    assert_string_equal(field_of(&h, "content-length"), "10");
    free_heard(&h);
    say(p, "GET /sized HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    hears(p, 200, "0123456789");
    say(p, "GET /sized?9 HTTP/1.1\r\nhost: h\r\n\r\n"); /* one byte is missing */
    h = hear(p);
    assert_false(h.whole);
    assert_true(hears_the_end(p));
    free_heard(&h);
    peer_close(p);
}

static void answers_without_a_body_have_none(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "HEAD / HTTP/1.1\r\nhost: h\r\n\r\n");
    heard h = hear_to(p, true);
    assert_int_equal(h.status, 200);
    assert_string_equal(field_of(&h, "content-length"), "5");
    free_heard(&h);
    say(p, "HEAD /nowhere HTTP/1.1\r\nhost: h\r\n\r\n");
    h = hear_to(p, true);
    assert_int_equal(h.status, 404);
    free_heard(&h);
    say(p, "HEAD /begin-and-wait HTTP/1.1\r\nhost: h\r\n\r\n");
    at.open = true;
    h = hear_to(p, true);
    assert_null(field_of(&h, "transfer-encoding"));
    free_heard(&h);
    say(p, "GET /status/204 HTTP/1.1\r\nhost: h\r\n\r\nGET /status/304 HTTP/1.1\r\nhost: h\r\n\r\n");
    for (int i = 0; i < 2; i++) {
        h = hear(p);
        assert_int_equal(h.status, i == 0 ? 204 : 304);
        assert_null(field_of(&h, "content-length"));
        assert_null(field_of(&h, "transfer-encoding"));
        free_heard(&h);
    }
    say(p, "GET /status/205 HTTP/1.1\r\nhost: h\r\n\r\n" GET);
    hears(p, 205, "");
    hears(p, 200, "hello");
    assert_int_equal(p->n, 0);
    peer_close(p);
}

static void a_status_without_a_name_is_sent(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /status/799 HTTP/1.1\r\nhost: h\r\n\r\n");
    heard h = hear(p);
    assert_int_equal(strncmp(h.head, "HTTP/1.1 799 \r\n", 15), 0);
    free_heard(&h);
    peer_close(p);
}

static void a_body_that_nobody_read_ends_the_connection(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /show HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nabc");
    hears_last(p, 200, "POST|/show||h|11");
    peer_close(p);
    p = visit(); /* but one that came with its head has come as a whole */
    say(p, "POST /show HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc" GET);
    hears(p, 200, "POST|/show||h|11");
    hears(p, 200, "hello");
    peer_close(p);
}

static void a_body_that_ends_after_its_answer_ends_the_connection(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /begin-and-wait HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nabc");
    until_somebody_waits();
    at.open = true;
    heard h = hear(p);
    assert_true(h.whole);
    assert_string_equal(h.body, "begun");
    assert_null(field_of(&h, "connection")); /* nobody knew then */
    free_heard(&h);
    assert_true(hears_the_end(p) && !p->reset);
    assert_int_equal(p->n, 0);
    peer_close(p);
}

static void a_body_that_goes_on_while_its_answer_does_is_not_looked_at(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    peer_listens(p, false);
    say(p, "POST /large-body HTTP/1.1\r\nhost: h\r\ncontent-length: 10000000\r\n\r\n");
    loop_turns(at.w, 50);
    peer_listens(p, true);
    while (!p->ended) {
        say(p, GET);
        loop_turns(at.w, 1);
    }
    heard h = hear(p);
    assert_true(h.whole);
    assert_int_equal(h.body_n, LARGE);
    assert_int_equal(p->n, 0);
    free_heard(&h);
    peer_close(p);
}

/* ---- large things ----------------------------------------------------------------------------------------------------- */

static void a_large_head_goes_in_pieces(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /large-head HTTP/1.1\r\nhost: h\r\n\r\n");
    size_t end = hears_text(p, "\r\n\r\nhello", 0);
    assert_in_range(end, 100000, 100400);
    peer_close(p);
}

static void a_large_body_waits_for_whoever_reads_it(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    peer_listens(p, false);
    say(p, "GET /large-body HTTP/1.1\r\nhost: h\r\n\r\n" GET);
    loop_turns(at.w, 50);
    peer_listens(p, true);
    heard h = hear(p);
    assert_true(h.whole);
    assert_int_equal(h.body_n, LARGE);
    free_heard(&h);
    hears(p, 200, "hello");
    peer_close(p);
}

static void a_body_that_nobody_reads_yet_stays_with_the_sender(void **state) {
    enum { ALL = 16 << 20 };
    char head[128];
    ebb_http_server_stats stats;
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    snprintf(head, sizeof head, "POST /wait-and-count HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n",
             ALL);
    say(p, head);
    until_somebody_waits();
    char *bytes = repeat('b', ALL);
    size_t sent = 0;
    for (int idle = 0; idle < 100;) {
        ssize_t k = send(p->fd, bytes + sent, ALL - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) sent += (size_t)k, idle = 0;
        else idle++;
        loop_turns(at.w, 1);
    }
    assert_true(sent < ALL);
    ebb_http_server_stats_of(at.server, &stats);
    assert_in_range(stats.bytes_in, 65536, 65536 + 2 * 16384 + strlen(head));
    at.open = true;
    say_bytes(p, bytes + sent, ALL - sent);
    hears(p, 200, "16777216");
    say(p, GET);
    hears(p, 200, "hello");
    free(bytes);
    peer_close(p);
}

/* ---- 100 Continue ------------------------------------------------------------------------------------------------------ */

static void who_expects_100_continue_gets_it_when_somebody_reads(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /wait-and-count HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    until_somebody_waits();
    loop_turns(at.w, 10);
    assert_int_equal(p->n, 0);
    at.open = true;
    heard h = hear(p);
    assert_int_equal(h.status, 100);
    assert_string_equal(h.head, "HTTP/1.1 100 Continue\r\n\r\n");
    free_heard(&h);
    say(p, "abc");
    hears(p, 200, "3");
    peer_close(p);
}

static void who_expects_and_is_not_read_gets_the_answer_alone(void **state) {
    serve(*state, (ebb_http_limits){.body_bytes = 10});
    peer *p = visit();
    say(p, "POST /show HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    hears_last(p, 200, "POST|/show||h|11");
    peer_close(p);
    p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\nexpect: 100-continue\r\n\r\n");
    hears_last(p, 413, NULL);
    peer_close(p);
    p = visit(); /* HTTP/1.0 does not know of it */
    say(p, "POST /count HTTP/1.0\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    loop_turns(at.w, 10);
    assert_int_equal(p->n, 0);
    say(p, "abc");
    hears_last(p, 200, "3");
    peer_close(p);
}

/* ---- how exchanges end each other ---------------------------------------------------------------------------------------- */

static void a_client_that_leaves_cancels_its_handler(void **state) {
    static const char *const asks[] = {
        "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n",
        "GET /begin-and-wait HTTP/1.1\r\nhost: h\r\n\r\n",
        "POST /wait-and-count HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc",
        ("GET /wait HTTP/1.1\r\nhost: h\r\n\r\n" GET),
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        if (i == 0) serve(*state, (ebb_http_limits){0});
        at.cancelled = 0;
        peer *p = visit();
        say(p, asks[i]);
        until_somebody_waits();
        peer_close(p);
        while (at.cancelled == 0) loop_turns(at.w, 1);
        assert_int_equal(at.why.kind, EBB_CANCEL_DISCONNECT);
        until_empty();
    }
}

static void a_client_that_leaves_while_it_is_read_cancels_its_handler(void **state) {
    ebb_http_server_stats stats;
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc");
    while (at.read < 3) loop_turns(at.w, 1);
    peer_close(p);
    until_empty();
    ebb_http_server_stats_of(at.server, &stats);
    assert_int_equal(stats.cancelled, 1);
}

static void a_client_that_has_only_said_all_gets_what_is_there(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    peer_listens(p, false);
    say(p, "GET /large-body HTTP/1.1\r\nhost: h\r\n\r\n");
    loop_turns(at.w, 50);
    assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
    loop_turns(at.w, 50);
    peer_listens(p, true);
    heard h = hear(p);
    assert_true(h.whole);
    assert_int_equal(h.body_n, LARGE);
    assert_true(hears_the_end(p) && !p->reset);
    free_heard(&h);
    peer_close(p);
}

static void a_client_that_leaves_between_requests_ends_its_connection(void **state) {
    static const char *const asks[] = {"", "\r", "G", "GET / HTTP/1.1\r\nhost: h\r\n", GET "GET"};
    serve(*state, (ebb_http_limits){0});
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        peer *p = visit();
        say(p, asks[i]);
        if (i == 4) hears(p, 200, "hello");
        loop_turns(at.w, 10);
        peer_close(p);
        until_empty();
    }
}

static void an_answer_that_fails_half_way_is_cut(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /begin-and-fail HTTP/1.1\r\nhost: h\r\n\r\n");
    heard h = hear(p);
    assert_false(h.whole);
    assert_true(hears_the_end(p));
    free_heard(&h);
    peer_close(p);
    until_empty();
}

static void what_is_wrong_with_a_request_is_not_said_in_the_middle_of_its_answer(void **state) {
    serve(*state, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "POST /begin-and-wait HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\n");
    until_somebody_waits();
    assert_true(hears_text(p, "begun\r\n", 0) > 0);
    forget(p, p->n);
    say(p, "abcdef");
    assert_true(hears_the_end(p));
    assert_int_equal(p->n, 0);
    peer_close(p);
    until_empty();
}

static void a_server_that_closes_finishes_what_is_in_hand(void **state) {
    loop_world *w = *state;
    serve(w, (ebb_http_limits){0});
    peer *p = visit(), *idle = visit(), *half = visit();
    say(p, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n" GET);
    say(idle, GET);
    hears(idle, 200, "hello");
    say(half, "GET / HT");
    until_somebody_waits();
    loop_turns(w, 10);
    ebb_region_close(w->cx, ebb_http_server_region(at.server));
    assert_true(hears_the_end(idle));
    assert_int_equal(idle->n, 0);
    say(half, "TP/1.1\r\nhost: h\r\n\r\n");
    hears_last(half, 200, "hello");
    at.open = true;
    hears_last(p, 200, "at last");
    peer_close(p);
    peer_close(idle);
    peer_close(half);
}

/* It could not say so in the head, which was gone by then. */
static void a_server_that_closes_during_an_answer_takes_one_request_after_it(void **state) {
    loop_world *w = *state;
    serve(w, (ebb_http_limits){0});
    peer *p = visit();
    say(p, "GET /begin-and-wait HTTP/1.1\r\nhost: h\r\n\r\n" GET GET);
    until_somebody_waits();
    ebb_region_close(w->cx, ebb_http_server_region(at.server));
    loop_turns(w, 10);
    at.open = true;
    hears(p, 200, "begun");
    hears_last(p, 200, "hello");
    assert_int_equal(p->n, 0);
    peer_close(p);
}

static void a_server_that_is_cancelled_answers_503_to_who_waits(void **state) {
    loop_world *w = *state;
    serve(w, (ebb_http_limits){0});
    peer *p = visit(), *begun = visit();
    say(p, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n");
    say(begun, "GET /begin-and-wait HTTP/1.1\r\nhost: h\r\n\r\n");
    while (at.waiting < 2) loop_turns(w, 1);
    ebb_region_cancel(w->cx, ebb_http_server_region(at.server), EBB_CANCEL_SHUTDOWN, "enough");
    hears_last(p, 503, NULL);
    heard h = hear(begun);
    assert_int_equal(h.status, 200);
    assert_false(h.whole);
    free_heard(&h);
    peer_close(p);
    peer_close(begun);
}

/* ---- time ---------------------------------------------------------------------------------------------------------------- */

static void a_head_that_takes_too_long_is_408(void **state) {
    serve(*state, (ebb_http_limits){.header_ns = 50 * EBB_MS});
    peer *p = visit();
    say(p, "GET / HT");
    hears_last(p, 408, NULL);
    peer_close(p);
    p = visit(); /* also the second one, after a while, and byte by byte */
    say(p, GET);
    hears(p, 200, "hello");
    assert_int_equal(loop_await(at.w, ebb_after(ebb_loop_cx(at.w->loop), 120 * EBB_MS), NULL), EBB_OK);
    for (int i = 0; !p->ended && p->n == 0; i++) {
        say(p, i < 5 ? "x" : "");
        loop_turns(at.w, 1);
    }
    hears_last(p, 408, NULL);
    peer_close(p);
}

static void a_connection_that_is_idle_ends_without_a_word(void **state) {
    serve(*state, (ebb_http_limits){.idle_ns = 50 * EBB_MS});
    peer *p = visit();
    say(p, GET);
    hears(p, 200, "hello");
    assert_true(hears_the_end(p));
    assert_int_equal(p->n, 0);
    peer_close(p);
}

static void a_body_that_takes_too_long_is_408(void **state) {
    serve(*state, (ebb_http_limits){.body_ns = 50 * EBB_MS});
    peer *p = visit();
    say(p, "POST /count HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc");
    hears_last(p, 408, NULL);
    peer_close(p);
}

static void a_client_that_does_not_read_is_dropped(void **state) {
    serve(*state, (ebb_http_limits){.write_ns = 50 * EBB_MS});
    peer *p = visit();
    peer_listens(p, false);
    say(p, "GET /large-body HTTP/1.1\r\nhost: h\r\n\r\n");
    uint64_t since = uv_hrtime();
    for (bool begun = false; !begun || !is_empty();) {
        ebb_http_server_stats stats;
        loop_turns(at.w, 1);
        ebb_http_server_stats_of(at.server, &stats);
        begun = begun || stats.requests > 0;
    }
    assert_true(uv_hrtime() - since < 30 * EBB_SECOND); /* not when it has been idle for a minute */
    peer_close(p);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

/* A visit that uses everything, as far as it comes. */
static void visit_all(void) {
    peer *p = visit();
    say_slowly(p, "POST /count HTTP/1.1\r\nhost: h\r\nx: y\r\n", 38);
    say(p, "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n");
    say(p, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 6\r\nexpect: 100-continue\r\n\r\nabcdef");
    say(p, "GET http://h?q HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    assert_true(hears_the_end(p));
    peer_close(p);
}

static void the_nth_allocation_may_fail(void **state) {
    loop_world *w = *state;
    serve(w, (ebb_http_limits){0});
    visit_all();
    until_empty();
    for (uint64_t n = 1;; n++) {
        w->memory.fail_at = w->memory.calls + n;
        uint64_t failures = w->memory.failures;
        visit_all();
        until_empty();
        w->memory.fail_at = 0;
        if (w->memory.failures == failures) break;
    }
    peer *p = visit();
    say(p, GET);
    hears(p, 200, "hello");
    peer_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_request_is_answered_and_the_connection_goes_on),
        ON_A_LOOP(bad_heads_are_refused_by_name_and_end_the_connection),
        ON_A_LOOP(a_zero_byte_in_a_head_is_refused),
        ON_A_LOOP(good_heads_are_taken_whole_and_byte_by_byte),
        ON_A_LOOP(a_request_line_of_8_kib_is_the_longest),
        ON_A_LOOP(a_head_may_have_block_bytes),
        ON_A_LOOP(fields_are_counted),
        ON_A_LOOP(the_bytes_of_fields_are_counted),
        ON_A_LOOP(after_the_last_request_the_connection_ends),
        ON_A_LOOP(a_body_may_have_body_bytes),
        ON_A_LOOP(chunks_are_taken_to_the_letter),
        ON_A_LOOP(extensions_of_all_chunks_have_4_kib),
        ON_A_LOOP(trailers_come_after_the_body),
        ON_A_LOOP(trailers_are_bounded_as_heads_are),
        ON_A_LOOP(a_hundred_requests_in_one_write_are_answered_in_order),
        ON_A_LOOP(requests_may_be_cut_anywhere),
        ON_A_LOOP(bodies_may_stand_between_requests),
        ON_A_LOOP(what_waits_behind_a_request_is_bounded),
        ON_A_LOOP(the_next_request_waits_for_the_work_of_the_one_before),
        ON_A_LOOP(close_is_honoured),
        ON_A_LOOP(http_1_0_ends_unless_it_is_asked_to_go_on),
        ON_A_LOOP(a_body_of_unknown_length_ends_with_the_connection_in_http_1_0),
        ON_A_LOOP(a_body_of_unknown_length_is_chunked),
        ON_A_LOOP(trailers_have_their_place_after_chunks_alone),
        ON_A_LOOP(a_length_that_the_handler_knows_is_sent_and_kept),
        ON_A_LOOP(answers_without_a_body_have_none),
        ON_A_LOOP(a_status_without_a_name_is_sent),
        ON_A_LOOP(a_body_that_nobody_read_ends_the_connection),
        ON_A_LOOP(a_body_that_ends_after_its_answer_ends_the_connection),
        ON_A_LOOP(a_body_that_goes_on_while_its_answer_does_is_not_looked_at),
        ON_A_LOOP(a_large_head_goes_in_pieces),
        ON_A_LOOP(a_large_body_waits_for_whoever_reads_it),
        ON_A_LOOP(a_body_that_nobody_reads_yet_stays_with_the_sender),
        ON_A_LOOP(who_expects_100_continue_gets_it_when_somebody_reads),
        ON_A_LOOP(who_expects_and_is_not_read_gets_the_answer_alone),
        ON_A_LOOP(a_client_that_leaves_cancels_its_handler),
        ON_A_LOOP(a_client_that_leaves_while_it_is_read_cancels_its_handler),
        ON_A_LOOP(a_client_that_has_only_said_all_gets_what_is_there),
        ON_A_LOOP(a_client_that_leaves_between_requests_ends_its_connection),
        ON_A_LOOP(an_answer_that_fails_half_way_is_cut),
        ON_A_LOOP(what_is_wrong_with_a_request_is_not_said_in_the_middle_of_its_answer),
        ON_A_LOOP(a_server_that_closes_finishes_what_is_in_hand),
        ON_A_LOOP(a_server_that_closes_during_an_answer_takes_one_request_after_it),
        ON_A_LOOP(a_server_that_is_cancelled_answers_503_to_who_waits),
        ON_A_LOOP(a_head_that_takes_too_long_is_408),
        ON_A_LOOP(a_connection_that_is_idle_ends_without_a_word),
        ON_A_LOOP(a_body_that_takes_too_long_is_408),
        ON_A_LOOP(a_client_that_does_not_read_is_dropped),
        ON_A_LOOP(the_nth_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
