/* A body as a whole, on both sides and from every kind of handler; and events of which the length is told. */
#include "tests/http/raw_server.h"

enum { MOST = 1000 };

/* ---- handlers: each answers with what it has heard ------------------------------------------------------------ */

static ebb_status say_bytes_of(ebb_cx *cx, ebb_http *x, ebb_status st, ebb_value v) {
    if (st == EBB_ERR_LIMIT) return ebb_http_text(cx, x, 413, "limit");
    if (st != EBB_OK) return st;
    const ebb_http_bytes *b = ebb_http_body_of(&v);
    assert_int_equal(b->at[b->n], 0);
    return ebb_http_reply(cx, x, 200, NULL, b->at, b->n);
}

static ebb_status by_fiber(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_value v;
    (void)arg;
    ebb_status st = ebb_await(cx, ebb_http_body(cx, x, MOST), &v);
    return say_bytes_of(cx, x, st, v);
}

typedef struct job {
    EBB_TASK_STATE;
    ebb_future *wait;
    ebb_value v;
} job;

static ebb_status by_poll(ebb_cx *cx, ebb_http *x, void *arg) {
    job *j = ebb_http_state(x, sizeof *j);
    ebb_status st;
    (void)arg;
    if (j == NULL) return EBB_ERR_NOMEM;
    EBB_BEGIN(j);
    j->wait = ebb_http_body(cx, x, MOST);
    EBB_AWAIT(j, st, ebb_await(cx, j->wait, &j->v));
    return say_bytes_of(cx, x, st, j->v);
    EBB_END(j);
}

static ebb_future *then_say(ebb_cx *cx, ebb_value *v, void *arg) {
    ebb_status st = say_bytes_of(cx, arg, EBB_OK, *v);
    return st == EBB_OK ? ebb_future_ready(cx, ebb_value_none()) : ebb_future_failed(cx, st);
}

static ebb_future *else_say(ebb_cx *cx, ebb_status failure, void *arg) {
    ebb_status st = say_bytes_of(cx, arg, failure, ebb_value_none());
    return st == EBB_OK ? ebb_future_ready(cx, ebb_value_none()) : ebb_future_failed(cx, st);
}

static ebb_future *by_future(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_catch(cx, ebb_then(cx, ebb_http_body(cx, x, MOST), then_say, x), else_say, x);
}

static ebb_future *begin_body(ebb_cx *cx, ebb_http *x, size_t most) {
    return ebb_http_body(cx, x, most);
}

/* Asks twice at once, cancels the first, and asks again: what came before is not lost. Then once more. */
static ebb_status by_steps(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    ebb_value v, again;
    char byte;
    ebb_future *one = begin_body(cx, x, MOST);
    h->began++;
    assert_int_equal(ebb_future_status_of(one), EBB_PENDING);
    assert_int_equal(status_now(begin_body(cx, x, 1)), EBB_ERR_BUSY);
    assert_int_equal(status_now(ebb_http_read(cx, x, &byte, 1)), EBB_ERR_BUSY);
    (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL); /* some of it may come */
    ebb_future_cancel(one, EBB_CANCEL_USER);
    ebb_future_drop(one);
    ebb_status st = ebb_await(cx, begin_body(cx, x, MOST), &v);
    if (st != EBB_OK) return st;
    st = ebb_await(cx, begin_body(cx, x, MOST), &again);
    if (st != EBB_OK) return st;
    assert_ptr_equal(ebb_http_body_of(&v), ebb_http_body_of(&again));
    assert_int_equal(status_now(ebb_http_read(cx, x, &byte, 1)), EBB_ERR_EOF);
    return say_bytes_of(cx, x, st, again);
}

/* At most 4, then the rest piece by piece. */
static ebb_status by_limit(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_value v;
    (void)arg;
    if (ebb_await(cx, ebb_http_body(cx, x, 4), &v) != EBB_ERR_LIMIT) return EBB_FAILED;
    return by_fiber(cx, x, NULL);
}

/* It has what it wants of its body, or does not want it any more, and waits for something else: until another request
 * has come, for longer than a peer may stall. */
static ebb_status then_works(ebb_cx *cx, ebb_http *x, http_world *h) {
    ebb_status st = ebb_await(cx, ebb_after(cx, 600 * EBB_MS), NULL);
    h->began++;
    while (st == EBB_OK && h->cancelled == 0) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, "done") : st;
}

static ebb_status works_past_limit(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    ebb_future *f = ebb_http_body(cx, x, 4);
    h->wanted = ebb_future_status_of(f) == EBB_PENDING;
    if (ebb_await(cx, f, NULL) != EBB_ERR_LIMIT) return EBB_FAILED;
    return then_works(cx, x, h);
}

static ebb_status works_past_cancel(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    ebb_future *f = ebb_http_body(cx, x, MOST);
    h->wanted = ebb_future_status_of(f) == EBB_PENDING;
    ebb_future_cancel(f, EBB_CANCEL_USER);
    ebb_future_drop(f);
    return then_works(cx, x, h);
}

static ebb_status lets_it_end(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    h->cancelled++;
    return ebb_http_text(cx, x, 200, "go on");
}

static int up(void **state, bool h2) {
    http_world *h;
    (void)http_up(state, h2);
    h = *state;
    assert_int_equal(ebb_http_on(h->server, "POST", "/fiber", by_fiber, h), EBB_OK);
    assert_int_equal(ebb_http_on_poll(h->server, "POST", "/poll", by_poll, h), EBB_OK);
    assert_int_equal(ebb_http_on_future(h->server, "POST", "/future", by_future, h), EBB_OK);
    assert_int_equal(ebb_http_on(h->server, "POST", "/steps", by_steps, h), EBB_OK);
    assert_int_equal(ebb_http_on(h->server, "POST", "/limit", by_limit, h), EBB_OK);
    return 0;
}

static int up_1(void **state) {
    return up(state, false);
}

static int up_2(void **state) {
    return up(state, true);
}

#define BY_1(test)                                                                                           \
    { #test " (HTTP/1)", test, up_1, http_down, NULL }
#define BY_2(test)                                                                                           \
    { #test " (HTTP/2)", test, up_2, http_down, NULL }
#define BY(test)      BY_1(test), BY_2(test)
#define CROWDED(test) cmocka_unit_test_setup_teardown(test, up_crowded, http_down)

/* ---- on a server ---------------------------------------------------------------------------------------------- */

static void posts(http_world *h, const char *path, size_t n, int status) {
    char body[4 * MOST];
    ebb_value v;
    for (size_t i = 0; i < n; i++) body[i] = (char)('a' + i % 26);
    ebb_http_call call = {.method = "POST", .url = url(h, path), .body = body, .body_n = n};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_int_equal(r->status, status);
    if (status == 200) assert_int_equal(r->body_n, n);
    if (status == 200) assert_memory_equal(r->body, body, n);
    ebb_value_discard(h->w->cx, v);
}

static void every_kind_of_handler_gets_it(void **state) {
    static const char *const paths[] = {"/fiber", "/poll", "/future"};
    for (size_t i = 0; i < 3; i++) {
        posts(*state, paths[i], 0, 200);
        posts(*state, paths[i], 1, 200);
        posts(*state, paths[i], MOST, 200);
        posts(*state, paths[i], MOST + 1, 413);
        posts(*state, paths[i], 4 * MOST, 413);
    }
}

/* In pieces, so that it comes after the handler has asked. */
static ebb_status post_slowly(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    static const char *const paths[] = {"/fiber", "/poll", "/future", "/steps", "/limit"};
    for (size_t i = 0; i < 5; i++) {
        ebb_http_call call = {.method = "POST", .url = url(h, paths[i]), .streams = true};
        ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
        ebb_http *x = st == EBB_OK ? ebb_http_of(cx, v) : NULL;
        for (int k = 0; k < 10 && st == EBB_OK; k++) {
            st = ebb_await(cx, ebb_http_write(cx, x, "0123456789", 10), NULL);
            if (st == EBB_OK) st = ebb_await(cx, ebb_after(cx, 3 * EBB_MS), NULL);
        }
        if (st == EBB_OK) st = ebb_http_end(cx, x);
        if (st == EBB_OK) st = ebb_await(cx, ebb_http_body(cx, x, MOST), &v);
        if (st != EBB_OK) return st;
        const ebb_http_bytes *b = ebb_http_body_of(&v);
        assert_int_equal(ebb_http_status(x), 200);
        assert_int_equal(b->n, 100);
        assert_memory_equal(b->at + 90, "0123456789", 11);
        ebb_http_close(cx, x);
    }
    return EBB_OK;
}

static void it_may_come_in_pieces(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, post_slowly, h), EBB_OK);
}

/* The whole is longer than all windows together. */
static void a_long_one_opens_the_windows(void **state) {
    http_world *h = *state;
    static char body[1 << 20];
    ebb_value v;
    memset(body, 'x', sizeof body);
    ebb_http_call call = {.method = "POST", .url = url(h, "/whole"), .body = body, .body_n = sizeof body};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_int_equal(r->body_n, sizeof body);
    assert_memory_equal(r->body, body, sizeof body);
    ebb_value_discard(h->w->cx, v);
}

/* At its budget of one, its address makes room for a request by ending an exchange that waits for its peer. One that
 * does not wait is no such. */
static int up_crowded(void **state) {
    http_world *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->w = loop_world_new();
    h->h2 = true;
    http_serve(h, &(ebb_http_server_opts){.limits = {.stalled = 1}});
    h->client = http_client(h, (ebb_http_client_opts){0});
    assert_int_equal(ebb_http_on(h->server, "POST", "/limit", works_past_limit, h), EBB_OK);
    assert_int_equal(ebb_http_on(h->server, "POST", "/cancel", works_past_cancel, h), EBB_OK);
    assert_int_equal(ebb_http_on(h->server, "GET", "/end", lets_it_end, h), EBB_OK);
    *state = h;
    return 0;
}

typedef struct part {
    http_world *h;
    const char *path;
    size_t bytes;
    int status;
} part;

static ebb_status post_a_part(ebb_cx *cx, void *arg) {
    part *p = arg;
    http_world *h = p->h;
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(h, p->path), .streams = true};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    while (st == EBB_OK && h->wanted == 0) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    if (st == EBB_OK && p->bytes > 0) st = ebb_await(cx, ebb_http_write(cx, x, "01234", p->bytes), NULL);
    while (st == EBB_OK && h->began == 0) st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_get(cx, h->client, url(h, "/end")), &v);
    if (st == EBB_OK) ebb_value_discard(cx, v);
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_body(cx, x, MOST), NULL);
    p->status = ebb_http_status(x);
    ebb_http_close(cx, x);
    return st;
}

static void works_on(http_world *h, const char *path, size_t bytes) {
    part p = {h, path, bytes, 0};
    assert_int_equal(run_fiber(h->w, post_a_part, &p), EBB_OK);
    assert_int_equal(p.status, 200);
    assert_int_equal(server_stats(h).evicted, 0);
}

static void a_limit_ends_the_wait_for_the_peer(void **state) {
    works_on(*state, "/limit", 5);
}

static void a_cancel_ends_the_wait_for_the_peer(void **state) {
    works_on(*state, "/cancel", 0);
}

/* ---- on a client ---------------------------------------------------------------------------------------------- */

static ebb_status take_answers(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    ebb_status st =
        ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/bytes/300000")}), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    assert_null(ebb_http_body_of(&v));
    st = ebb_await(cx, ebb_http_body(cx, x, 299999), NULL);
    assert_int_equal(st, EBB_ERR_LIMIT);
    st = ebb_await(cx, ebb_http_body(cx, x, 300000), &v); /* nothing is lost by that */
    if (st == EBB_OK) assert_int_equal(ebb_http_body_of(&v)->n, 300000);
    ebb_http_close(cx, x);
    if (st != EBB_OK) return st;
    st = ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/announce")}), &v);
    if (st != EBB_OK) return st;
    x = ebb_http_of(cx, v);
    st = ebb_await(cx, ebb_http_body(cx, x, 999999), NULL); /* it says before that it has 1,000,000 */
    assert_int_equal(st, EBB_ERR_LIMIT);
    ebb_http_close(cx, x);
    return EBB_OK;
}

static void a_client_gets_it_too(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, take_answers, h), EBB_OK);
}

/* The server breaks off: so does the future. */
static void a_body_that_breaks_off_is_a_failure(void **state) {
    http_world *h = *state;
    raw_server s;
    ebb_value v;
    raw_listen(&s, h);
    ebb_future *f = ebb_http_open(http_cx(h), h->client, &(ebb_http_call){.url = url(h, "/")});
    peer *p = raw_accept(&s);
    assert_true(hears_text(p, "\r\n\r\n", 0) > 0);
    say(p, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    assert_int_equal(loop_await(h->w, f, &v), EBB_OK);
    ebb_http *x = ebb_http_of(http_cx(h), v);
    f = ebb_http_body(http_cx(h), x, MOST);
    loop_turns(h->w, 5);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    peer_close(p);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_ERR_HTTP_RESET);
    assert_int_equal(status_now(ebb_http_body(http_cx(h), x, MOST)), EBB_ERR_CLOSED);
    ebb_http_close(http_cx(h), x);
    raw_end(&s);
}

/* ---- events --------------------------------------------------------------------------------------------------- */

static ebb_status send_events(ebb_cx *cx, ebb_http *x, void *arg) {
    static const ebb_http_event events[] = {
        {.data = "one, two", .data_n = 3}, {.data = "a\r\nb\rc\nd", .data_n = 7, .event = "lines", .id = "1"},
        {.data = "cr\r\n", .data_n = 3},   {.data = "all"},
        {.data = "", .retry_ms = 5},
    };
    ebb_status st = EBB_OK;
    (void)arg;
    for (size_t i = 0; i < sizeof events / sizeof *events && st == EBB_OK; i++) {
        st = ebb_await(cx, ebb_http_send_event(cx, x, &events[i]), NULL);
    }
    assert_int_equal(status_now(ebb_http_send_event(cx, x, &(ebb_http_event){.data_n = 1})), EBB_ERR_INVALID);
    return st;
}

static void an_event_may_have_a_length(void **state) {
    http_world *h = *state;
    assert_int_equal(ebb_http_on(h->server, "GET", "/events", send_events, h), EBB_OK);
    ebb_value v = get_value(h, "/events");
    assert_string_equal(ebb_http_response_of(&v)->body,
                        "data: one\n\n"
                        "event: lines\nid: 1\ndata: a\ndata: b\ndata: c\ndata: \n\n"
                        "data: cr\ndata: \n\n"
                        "data: all\n\n"
                        "retry: 5\ndata: \n\n");
    ebb_value_discard(h->w->cx, v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BY(every_kind_of_handler_gets_it),
        BY(it_may_come_in_pieces),
        BY(a_long_one_opens_the_windows),
        BY(a_client_gets_it_too),
        BY_1(a_body_that_breaks_off_is_a_failure),
        BY(an_event_may_have_a_length),
        CROWDED(a_limit_ends_the_wait_for_the_peer),
        CROWDED(a_cancel_ends_the_wait_for_the_peer),
    };
    return cmocka_run_group_tests_name("http_body", tests, NULL, NULL);
}
