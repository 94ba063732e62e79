/* How calls end before they are answered: cancelled, with their region, with their client, or by their peer. */
#include "loop/loop.h"
#include "tests/http/raw_server.h"
#include "tests/support/http_client_world.h"

/* ---- cancelled -------------------------------------------------------------------------------------------- */

static void cancelling_a_fetch_cancels_its_handler_and_no_other(void **state) {
    http_world *h = *state;
    ebb_future *one = get(h, "/wait"), *other = get(h, "/wait");
    until_began(h, 2);
    ebb_future_cancel(one, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 1);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(ebb_future_status_of(other), EBB_PENDING);
    assert_int_equal(h->cancelled, 1);
    ebb_future_cancel(other, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 2);
    if (h->h2) assert_int_equal(server_stats(h).accepted, 1);
}

static void cancelling_in_the_middle_of_a_body_cancels_the_handler(void **state) {
    http_world *h = *state;
    ebb_future *f = get(h, "/trickle");
    until_began(h, 1);
    loop_turns(h->w, 5); /* a part of it is here */
    ebb_future_cancel(f, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 1);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

/* The bytes may go as soon as the future reads as cancelled: before its operation has heard of it. */
static void the_body_of_a_cancelled_call_is_not_touched(void **state) {
    http_world *h = *state;
    enum { MUCH = 1 << 20 };
    char *much = calloc(1, MUCH);
    assert_non_null(much);
    ebb_http_call call = {.method = "POST", .url = url(h, "/wait"), .body = much, .body_n = MUCH};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    until_began(h, 1);
    loop_turns(h->w, 5);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    free(much);
    loop_turns(h->w, 20);
    if (h->h2) until_so_many_cancelled(h, 1); /* a server of HTTP/1 reads no more, and so hears nothing */
}

/* Answers HEAD, waits, and tries to write when it is cancelled. */
typedef struct late_writer {
    bool began, over;
    ebb_status write, end;
} late_writer;

static ebb_status on_late(ebb_cx *cx, ebb_http *x, void *arg) {
    late_writer *l = arg;
    ebb_status st = ebb_http_start(cx, x, 200);
    l->began = true;
    if (st == EBB_OK) st = ebb_await(cx, ebb_future_never(cx), NULL);
    ebb_future *f = ebb_http_write(cx, x, "late", 4);
    l->write = ebb_future_status_of(f);
    ebb_future_drop(f);
    l->end = ebb_http_end(cx, x);
    l->over = true;
    return st;
}

static void a_handler_of_head_that_is_cancelled_can_not_write(void **state) {
    http_world *h = *state;
    late_writer l = {0};
    assert_int_equal(ebb_http_on(h->server, "GET", "/late", on_late, &l), EBB_OK);
    ebb_http_call call = {.method = "HEAD", .url = url(h, "/late")};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    loop_until(h->w, is_true, &l.began);
    loop_turns(h->w, 20); /* the stream is over, if nothing waits for the handler's return */
    ebb_region_cancel(http_cx(h), ebb_http_server_region(h->server), EBB_CANCEL_SHUTDOWN, NULL);
    loop_until(h->w, is_true, &l.over);
    assert_int_equal(l.write, EBB_ERR_CLOSED);
    assert_int_equal(l.end, EBB_ERR_CLOSED);
    ebb_future_drop(f);
}

static void a_connection_that_nobody_waits_for_is_given_up(void **state) {
    http_world *h = *state;
    ebb_future *f = get(h, "/hello");
    ebb_future_cancel(f, EBB_CANCEL_USER);
    loop_turns(h->w, 20);
    assert_int_equal(server_stats(h).requests, 0);
    loop_until(h->w, no_connections, h);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void a_connection_that_others_wait_for_is_theirs(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    ebb_future *one = get(h, "/wait"), *other = get(h, "/hello");
    ebb_future_cancel(one, EBB_CANCEL_USER);
    assert_int_equal(loop_await(h->w, other, NULL), EBB_OK);
    assert_int_equal(h->began, 0);
    assert_int_equal(server_stats(h).accepted, 1);
}

static void a_call_that_waits_for_its_turn_is_taken_out(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    ebb_future *one = get(h, "/wait");
    until_began(h, 1);
    ebb_future *two = get(h, "/wait"), *three = get(h, "/hello");
    ebb_future_cancel(two, EBB_CANCEL_USER);
    loop_turns(h->w, 5);
    ebb_future_cancel(one, EBB_CANCEL_USER);
    assert_int_equal(loop_await(h->w, three, NULL), EBB_OK);
    assert_int_equal(h->began, 1);
}

static void a_lookup_that_nobody_waits_for_is_let_be(void **state) {
    http_world *h = *state;
    ebb_future *f = ebb_http_get(http_cx(h), h->client, "http://localhost/");
    ebb_future_cancel(f, EBB_CANCEL_USER);
    loop_turns(h->w, 5);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void the_loser_of_a_race_is_cancelled(void **state) {
    http_world *h = *state;
    ebb_future *two[2] = {get(h, "/wait"), NULL};
    until_began(h, 1);
    two[1] = get(h, "/hello");
    assert_int_equal(loop_await(h->w, ebb_race(http_cx(h), 2, two), NULL), EBB_OK);
    until_so_many_cancelled(h, 1);
}

static ebb_status wait_long(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    return ebb_await(cx, ebb_http_get(cx, h->client, url(h, "/wait")), NULL);
}

static void a_region_that_is_cancelled_resets_its_calls(void **state) {
    http_world *h = *state;
    ebb_region r = ebb_region_open(http_cx(h), &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    for (int i = 0; i < 3; i++) (void)ebb_fiber_spawn(http_cx(h), r, wait_long, h);
    until_began(h, 3);
    ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "test");
    while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    until_so_many_cancelled(h, 3);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

/* ---- clients that end ------------------------------------------------------------------------------------- */

typedef struct owner {
    http_world *h;
    bool made, closing, asked;
    ebb_status st, last;
} owner;

/* Keeps the client until its region is closed; then it still has something to ask. */
static ebb_status own_client(ebb_cx *cx, void *arg) {
    owner *o = arg;
    ebb_http_client_opts opts = {.prior_knowledge = o->h->h2, .connections = 2};
    ebb_status st = ebb_http_client_new(cx, &opts, &o->h->client);
    if (st != EBB_OK) return st;
    o->made = true;
    st = ebb_await(cx, ebb_closing(cx), NULL);
    o->closing = true;
    if (st == EBB_OK) st = ebb_await(cx, ebb_http_get(cx, o->h->client, url(o->h, "/hello")), NULL);
    o->st = st;
    o->asked = true;
    return st;
}

static ebb_region client_in_region(owner *o, http_world *h) {
    ebb_region r = ebb_region_open(http_cx(h), &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    *o = (owner){.h = h};
    (void)ebb_fiber_spawn(http_cx(h), r, own_client, o);
    loop_until(h->w, is_true, &o->made);
    return r;
}

static void a_client_serves_while_its_region_drains(void **state) {
    http_world *h = *state;
    owner o;
    ebb_region r = client_in_region(&o, h);
    ebb_region_close(http_cx(h), r);
    loop_until(h->w, is_true, &o.asked);
    assert_int_equal(o.st, EBB_OK);
    while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    loop_until(h->w, no_connections, h);
}

/* Calls of other regions: those that fly, and those that wait. */
static void a_client_that_ends_fails_its_calls(void **state) {
    http_world *h = *state;
    owner o;
    ebb_region r = client_in_region(&o, h);
    ebb_future *calls[6];
    for (int i = 0; i < 6; i++) calls[i] = get(h, "/wait");
    until_began(h, h->h2 ? 6 : 2);
    ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "test");
    for (int i = 0; i < 6; i++) {
        ebb_status st = loop_await(h->w, calls[i], NULL);
        assert_true(st == EBB_ERR_CLOSED || st == EBB_ERR_HTTP_RESET);
    }
    while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    until_so_many_cancelled(h, h->began);
}

/* In whatever it does to connect. */
static void a_client_may_end_while_it_connects(void **state) {
    http_world *h = *state;
    for (int turns = 0; turns < 4; turns++) {
        owner o;
        ebb_region r = client_in_region(&o, h);
        ebb_future *number = get(h, "/hello"), *name;
        name = ebb_http_get(http_cx(h), h->client, "http://localhost:1/");
        loop_turns(h->w, turns);
        ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "test");
        (void)loop_await(h->w, number, NULL);
        assert_true(loop_await(h->w, name, NULL) != EBB_OK);
        while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    }
}

static ebb_status keep_exchange(ebb_cx *cx, void *arg) {
    owner *o = arg;
    ebb_value v;
    char c;
    ebb_http_call call = {.url = url(o->h, "/trickle")};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, o->h->client, &call), &v);
    if (st != EBB_OK) return st;
    o->asked = true;
    ebb_http *x = ebb_http_of(cx, v);
    while (st == EBB_OK) st = ebb_await(cx, ebb_http_read(cx, x, &c, 1), NULL);
    o->st = st;
    assert_int_equal(ebb_await(cx, ebb_http_read(cx, x, &c, 1), NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_http_status(x), 200);
    ebb_http_close(cx, x);
    o->closing = true;
    return EBB_OK;
}

static void an_exchange_may_outlive_its_client(void **state) {
    http_world *h = *state;
    owner o, reader;
    ebb_region r = client_in_region(&o, h);
    reader = (owner){.h = h};
    (void)ebb_fiber_spawn(http_cx(h), h->w->region, keep_exchange, &reader);
    loop_until(h->w, is_true, &reader.asked);
    ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "test");
    loop_until(h->w, is_true, &reader.closing);
    assert_true(reader.st == EBB_ERR_CLOSED || reader.st == EBB_ERR_HTTP_RESET);
}

static ebb_status write_cancelled(ebb_cx *cx, void *arg) {
    owner *o = arg;
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(o->h, "/echo"), .streams = true};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, o->h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    ebb_task_cancel(cx, ebb_cx_task(cx), EBB_CANCEL_USER, "enough");
    ebb_future *f = ebb_http_write(cx, x, "late", 4);
    o->st = ebb_future_status_of(f);
    ebb_future_drop(f);
    assert_int_equal(ebb_mask(cx), EBB_OK);
    if (o->st == EBB_CANCELLED) o->last = ebb_await(cx, ebb_http_write(cx, x, "last", 4), NULL);
    ebb_unmask(cx);
    ebb_http_close(cx, x);
    o->closing = true;
    return EBB_CANCELLED;
}

static void a_cancelled_task_writes_no_more_of_its_call_unless_it_is_masked(void **state) {
    owner o = {.h = *state, .st = EBB_PENDING};
    (void)ebb_fiber_spawn(http_cx(o.h), ebb_region_open(http_cx(o.h), NULL), write_cancelled, &o);
    loop_until(o.h->w, is_true, &o.closing);
    assert_int_equal(o.st, EBB_CANCELLED);
    assert_int_equal(o.last, EBB_OK);
}

/* Its connections only have to be closed: nothing goes on without the region. */
static void an_idle_client_is_not_left_behind_by_a_force(void **state) {
    http_world *h = *state;
    owner o;
    ebb_region_report report;
    ebb_region r = client_in_region(&o, h);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    ebb_budget none = {ebb_now(http_cx(h)), EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(http_cx(h), r, EBB_CANCEL_BUDGET, "forced", none);
    ebb_region_force(http_cx(h), r);
    while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    assert_int_equal(ebb_region_report_of(http_cx(h), r, &report), EBB_OK);
    assert_int_equal(report.abandoned, 0);
}

/* ---- peers that say no ------------------------------------------------------------------------------------ */

static void the_rest_of_a_request_that_was_answered_is_not_sent(void **state) {
    http_world *h = *state;
    raw_server s;
    char body[200000] = "body";
    raw_listen(&s, h);
    ebb_http_call call = {.method = "POST", .url = url(h, "/"), .body = body, .body_n = sizeof body};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    peer *p = raw_accept(&s);
    say_bytes(p, settings, sizeof settings);
    hears_requests(p, 1);
    answer_204(p, 1);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_OK);
    const unsigned char *reset = hears_frames(p, RST_STREAM, 1);
    assert_int_equal(reset[8], 1);
    assert_int_equal(reset[12], 8); /* CANCEL */
    peer_close(p);
    raw_end(&s);
}

/* The loop reads the answer before it looks at its timers. */
static void an_answer_behind_the_deadline_is_none(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_http_call call = {.url = url(h, "/"), .deadline = ebb_now(http_cx(h)) + 200 * EBB_MS};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    peer *p = raw_accept(&s);
    say_bytes(p, settings, sizeof settings);
    hears_requests(p, 1);
    answer_204(p, 1);
    while (uv_hrtime() < call.deadline) continue; /* a loop that is busy with something else */
    assert_int_equal(loop_await(h->w, f, NULL), EBB_TIMEOUT);
    peer_close(p);
    raw_end(&s);
}

/* A peer that takes no streams now, and then does. */
static void calls_wait_until_the_peer_has_room(void **state) {
    http_world *h = *state;
    static const char none[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1};
    static const char more[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2};
    raw_server s;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    raw_listen(&s, h);
    ebb_future *one = get(h, "/");
    peer *p = raw_accept(&s);
    say_bytes(p, none, sizeof none);
    hears_requests(p, 1);
    loop_turns(h->w, 10); /* its settings are here */
    ebb_future *two = get(h, "/");
    loop_turns(h->w, 10);
    say_bytes(p, more, sizeof more);
    hears_requests(p, 2);
    answer_204(p, 3);
    assert_int_equal(loop_await(h->w, two, NULL), EBB_OK);
    answer_204(p, 1);
    assert_int_equal(loop_await(h->w, one, NULL), EBB_OK);
    peer_close(p);
    raw_end(&s);
}

static char much[32 << 20];

/* The largest windows that there are. */
static const char wide_open[] = {0,  0, 6, 4, 0, 0, 0, 0, 0, 0, 4,   127, -1, -1,
                                 -1, 0, 0, 4, 8, 0, 0, 0, 0, 0, 127, -1,  0,  0};

static ebb_status send_much(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_http_call call = {.method = "POST", .url = url(h, "/"), .body = much, .body_n = sizeof much};
    return ebb_await(cx, ebb_http_fetch(cx, h->client, &call), NULL);
}

/* Its windows are open, but it does not read: not even a reset can be sent. */
static void a_call_ends_although_the_peer_does_not_read(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_region r = ebb_region_open(http_cx(h), &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    (void)ebb_fiber_spawn(http_cx(h), r, send_much, h);
    peer *p = raw_accept(&s);
    if (h->h2) say_bytes(p, wide_open, sizeof wide_open);
    assert_true(hears_bytes(p, 100000));
    peer_listens(p, false);
    loop_turns(h->w, 300); /* what the system takes is full by now */
    ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "test");
    while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
    peer_close(p);
    raw_end(&s);
}

static ebb_status spin(ebb_cx *cx, void *arg) {
    uint32_t *left = arg;
    if (--*left == 0) return EBB_OK;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

/* The future reads as cancelled, and the wire is flushed, before the operation hears of it: with one poll a turn,
 * and others whose turn it is. From then on the bytes may be anything. */
static void nothing_is_sent_of_a_body_whose_call_is_cancelled(void **state) {
    http_world *h = *state;
    uint32_t left[100];
    raw_server s;
    raw_listen(&s, h);
    memset(much, 'e', sizeof much);
    ebb_http_call call = {.method = "POST", .url = url(h, "/"), .body = much, .body_n = sizeof much};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    peer *p = raw_accept(&s);
    if (h->h2) say_bytes(p, wide_open, sizeof wide_open);
    assert_true(hears_bytes(p, 100000));
    h->w->loop->polls = 1;
    for (int i = 0; i < 100; i++) {
        left[i] = 3;
        (void)ebb_spawn(http_cx(h), h->w->region, spin, &left[i]);
    }
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    memset(much, '#', sizeof much);
    loop_turns(h->w, 200);
    h->w->loop->polls = 1024;
    loop_turns(h->w, 20);
    for (size_t i = 3; i < p->n; i++) assert_memory_not_equal(p->got + i - 3, "####", 4);
    peer_close(p);
    raw_end(&s);
}

/* Calls that wait for it are not tried again and again. */
static void a_peer_that_only_hangs_up_is_not_called_for_ever(void **state) {
    http_world *h = *state;
    raw_server s;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    raw_listen(&s, h);
    ebb_future *calls[4];
    uint32_t accepted = 0;
    for (int i = 0; i < 4; i++) calls[i] = get(h, "/");
    for (int i = 0; i < 4; i++) {
        probe p;
        probe_watch(&p, calls[i]);
        while (!p.over) {
            int fd = accept(s.fd, NULL, NULL);
            if (fd >= 0) accepted++;
            if (fd >= 0) close(fd);
            loop_turns(h->w, 1);
        }
        assert_true(p.status == EBB_ERR_HTTP_RESET || p.status == EBB_ERR_HTTP_RETRY);
    }
    assert_true(accepted <= 4);
    raw_end(&s);
}

static void what_is_not_http_is_said_so(void **state) {
    http_world *h = *state;
    raw_server s;
    raw_listen(&s, h);
    ebb_future *f = get(h, "/");
    peer *p = raw_accept(&s);
    say(p, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    assert_int_equal(loop_await(h->w, f, NULL), EBB_ERR_HTTP_PROTOCOL);
    peer_close(p);
    raw_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER(cancelling_a_fetch_cancels_its_handler_and_no_other),
        OVER(cancelling_in_the_middle_of_a_body_cancels_the_handler),
        OVER(the_body_of_a_cancelled_call_is_not_touched),
        OVER(a_handler_of_head_that_is_cancelled_can_not_write),
        OVER(a_connection_that_nobody_waits_for_is_given_up),
        OVER(a_connection_that_others_wait_for_is_theirs),
        OVER_1(a_call_that_waits_for_its_turn_is_taken_out),
        OVER_1(a_lookup_that_nobody_waits_for_is_let_be),
        OVER(the_loser_of_a_race_is_cancelled),
        OVER(a_region_that_is_cancelled_resets_its_calls),
        OVER(a_client_serves_while_its_region_drains),
        OVER(a_client_that_ends_fails_its_calls),
        OVER(a_client_may_end_while_it_connects),
        OVER(an_exchange_may_outlive_its_client),
        OVER(an_idle_client_is_not_left_behind_by_a_force),
        OVER(a_cancelled_task_writes_no_more_of_its_call_unless_it_is_masked),
        OVER_2(the_rest_of_a_request_that_was_answered_is_not_sent),
        OVER_2(an_answer_behind_the_deadline_is_none),
        OVER_2(calls_wait_until_the_peer_has_room),
        OVER(a_call_ends_although_the_peer_does_not_read),
        OVER(nothing_is_sent_of_a_body_whose_call_is_cancelled),
        OVER(a_peer_that_only_hangs_up_is_not_called_for_ever),
        OVER(what_is_not_http_is_said_so),
    };
    return cmocka_run_group_tests_name("http_client_end", tests, NULL, NULL);
}
