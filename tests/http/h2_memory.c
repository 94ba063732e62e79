/* HTTP/2 on the wire, with the n-th allocation of the server failing, and with all from the n-th on, for each n: every
 * request that is not taken is reset, or its connection ends. No peer waits in vain. */
#include "tests/http/raw_peer.h"

enum {
    DATA = 0,
    HEADERS = 1,
    RST_STREAM = 3,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    END_STREAM = 1,
    ACK = 1,
    END_HEADERS = 4
};
/* Streams. There are more of both kinds than the server has blocks that it could use again. */
enum {
    WAITS = 1,
    MALFORMED = 3,
    WAITS_TOO = MALFORMED + 2 * 20,
    TOO_MANY = WAITS_TOO + 2,
    PAST = TOO_MANY + 2 * 20
};

typedef struct site {
    loop_world *w;
    ebb_http_server *server;
    peer *p;
    uint32_t began, cancelled;
    ebb_cancel_kind kind; /* of the last cancel */
    size_t acks;          /* of PING, wanted */
} site;

static ebb_status wait_for_ever(ebb_cx *cx, ebb_http *x, void *arg) {
    site *s = arg;
    ebb_task_info me;
    (void)x;
    s->began++;
    ebb_status st = ebb_await(cx, ebb_future_never(cx), NULL);
    assert_int_equal(ebb_task_info_of(cx, ebb_cx_task(cx), &me), EBB_OK);
    s->kind = me.reason.kind;
    s->cancelled++;
    return st;
}

/* In three pieces, each of which the protocol has to be told of, and with an end of its own. */
static ebb_status talk(ebb_cx *cx, ebb_http *x, void *arg) {
    ebb_status st = EBB_OK;
    (void)arg;
    for (int i = 0; i < 3 && st == EBB_OK; i++) {
        st = ebb_await(cx, ebb_http_write(cx, x, "piece", 5), NULL);
        for (int k = 0; k < 3 && st == EBB_OK; k++) st = ebb_fiber_yield(cx);
    }
    return st;
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

static void say_frame(peer *p, uint8_t type, uint8_t flags, uint32_t stream, const char *bytes, size_t n) {
    char frame[256] = {0, 0, (char)n, (char)type, (char)flags, 0, 0, 0, (char)stream};
    assert_true(n <= 127);
    if (n > 0) memcpy(frame + 9, bytes, n);
    say_bytes(p, frame, 9 + n);
}

static size_t put_field(char *to, const char *name, const char *value) {
    return (size_t)sprintf(to, "%c%c%s%c%s", 0, (int)strlen(name), name, (int)strlen(value), value);
}

/* Literals without indexing. */
static void ask(peer *p, uint32_t stream, const char *path, const char *authority) {
    char block[128];
    size_t n = put_field(block, ":method", "GET");
    n += put_field(block + n, ":scheme", "http");
    n += put_field(block + n, ":path", path);
    n += put_field(block + n, ":authority", authority);
    say_frame(p, HEADERS, END_HEADERS | END_STREAM, stream, block, n);
}

/* How many frames of this kind came for this stream. */
static size_t count(const peer *p, uint8_t type, uint8_t flags, uint32_t stream) {
    size_t n = 0, length;
    for (size_t at = 0; at + 9 <= p->n; at += 9 + length) {
        const uint8_t *f = (const uint8_t *)p->got + at;
        length = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        n += f[3] == type && (f[4] & flags) == flags && f[8] == stream && at + 9 + length <= p->n;
    }
    return n;
}

static bool has_ended(const site *s) {
    return s->p->ended || count(s->p, GOAWAY, 0, 0) > 0;
}

static bool has_acks(void *arg) {
    const site *s = arg;
    return has_ended(s) || count(s->p, PING, ACK, 0) >= s->acks;
}

/* All that the server had to say before is here then. */
static void ping(site *s) {
    say_frame(s->p, PING, 0, 0, "12345678", 8);
    s->acks++;
    loop_until(s->w, has_acks, s);
}

static bool has_begun(void *arg) {
    const site *s = arg;
    return s->began > 0;
}

static bool all_are_cancelled(void *arg) {
    const site *s = arg;
    return s->cancelled == s->began;
}

/* It is not the fault of the peer: its address is not charged. */
static void was_ended_by_us(site *s) {
    if (!has_ended(s)) return;
    loop_until(s->w, all_are_cancelled, s);
    assert_int_equal(s->kind, EBB_CANCEL_RESOURCE);
}

/* ---- the sweep ------------------------------------------------------------------------------------------------ */

static void start_site(site *s, uint32_t streams, ebb_address *at) {
    ebb_http_server_opts o = {.address = {"127.0.0.1", 0}, .limits = {.streams = streams}};
    *s = (site){.w = loop_world_new()};
    assert_int_equal(ebb_http_listen(ebb_loop_cx(s->w->loop), &o, &s->server), EBB_OK);
    assert_int_equal(ebb_http_on(s->server, "GET", "/wait", wait_for_ever, s), EBB_OK);
    assert_int_equal(ebb_http_on(s->server, "GET", "/talk", talk, s), EBB_OK);
    assert_int_equal(ebb_http_server_address(s->w->cx, s->server, at), EBB_OK);
}

static void open_site(site *s, uint32_t streams) {
    ebb_address at;
    start_site(s, streams, &at);
    s->p = peer_open(s->w, at.port);
    say(s->p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    say_frame(s->p, SETTINGS, 0, 0, NULL, 0);
    ask(s->p, WAITS, "/wait", "a");
    loop_until(s->w, has_begun, s);
    ping(s);
}

static void fail_from_now(site *s, uint64_t n, bool and_all_after) {
    s->w->memory.fail_after = and_all_after;
    s->w->memory.fail_at = s->w->memory.calls + n;
}

/* How many allocations failed. */
static uint64_t close_site(site *s) {
    uint64_t failures = s->w->memory.failures;
    s->w->memory.fail_at = 0;
    s->w->memory.fail_after = false;
    peer_close(s->p);
    loop_world_end(s->w);
    return failures;
}

static uint64_t refuse_all(uint64_t n, bool and_all_after) {
    site s;
    open_site(&s, 2);
    fail_from_now(&s, n, and_all_after);
    for (uint32_t i = MALFORMED; i < PAST; i += 2) ask(s.p, i, "/wait", i < WAITS_TOO ? "a b" : "a");
    ping(&s);
    ping(&s);
    for (uint32_t i = MALFORMED; i < PAST && !has_ended(&s); i += 2) {
        if (i != WAITS_TOO) assert_int_equal(count(s.p, RST_STREAM, 0, i), 1);
    }
    was_ended_by_us(&s);
    return close_site(&s);
}

static bool has_ended_at_all(void *arg) {
    return has_ended(arg);
}

static bool is_answered(void *arg) {
    const site *s = arg;
    return has_ended(s) || count(s->p, DATA, END_STREAM, 1) > 0;
}

static bool all_are_over(void *arg) {
    const site *s = arg;
    if (has_ended(s)) return true;
    for (uint32_t i = MALFORMED; i < PAST; i += 2) {
        if (count(s->p, DATA, END_STREAM, i) + count(s->p, HEADERS, END_STREAM, i) +
                count(s->p, RST_STREAM, 0, i) ==
            0)
            return false;
    }
    return true;
}

static uint64_t answer_all(uint64_t n, bool and_all_after) {
    site s;
    open_site(&s, 100);
    fail_from_now(&s, n, and_all_after);
    for (uint32_t i = MALFORMED; i < PAST; i += 2) ask(s.p, i, "/talk", "a");
    loop_until(s.w, all_are_over, &s);
    was_ended_by_us(&s);
    return close_site(&s);
}

/* A connection is opened; the server is closed when it has memory again, and the connection hears of it: its only
 * request is answered, so nothing else would end it for a minute. */
static uint64_t close_politely(uint64_t n, bool and_all_after) {
    site s;
    ebb_address at;
    start_site(&s, 2, &at);
    fail_from_now(&s, n, and_all_after);
    s.p = peer_open(s.w, at.port);
    say(s.p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    say_frame(s.p, SETTINGS, 0, 0, NULL, 0);
    loop_turns(s.w, 4);
    s.w->memory.fail_at = 0;
    s.w->memory.fail_after = false;
    ask(s.p, 1, "/talk", "a");
    loop_until(s.w, is_answered, &s);
    ebb_region_close(ebb_loop_cx(s.w->loop), ebb_http_server_region(s.server));
    loop_until(s.w, has_ended_at_all, &s);
    return close_site(&s);
}

static void for_each_n(uint64_t (*run)(uint64_t n, bool and_all_after)) {
    for (uint64_t n = 1; run(n, false) > 0; n++) assert_true(n < 1000);
    for (uint64_t n = 1; run(n, true) > 0; n++) assert_true(n < 1000);
}

static void a_request_that_is_not_taken_is_reset(void **state) {
    (void)state;
    for_each_n(refuse_all);
}

static void a_response_ends(void **state) {
    (void)state;
    for_each_n(answer_all);
}

static void a_connection_hears_of_a_close(void **state) {
    (void)state;
    for_each_n(close_politely);
}

static void a_server_has_a_least_memory(void **state) {
    loop_world *w = loop_world_new();
    ebb_http_server_opts o = {.address = {"127.0.0.1", 0}, .limits = {.memory_bytes = (1 << 20) - 1}};
    ebb_http_server *server;
    (void)state;
    assert_int_equal(ebb_http_listen(ebb_loop_cx(w->loop), &o, &server), EBB_ERR_INVALID);
    assert_string_equal(ebb_http_error(), "limits.memory_bytes is 1048575, which is less than 1048576");
    o.limits.memory_bytes++;
    assert_int_equal(ebb_http_listen(ebb_loop_cx(w->loop), &o, &server), EBB_OK);
    loop_world_end(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_is_not_taken_is_reset),
        cmocka_unit_test(a_response_ends),
        cmocka_unit_test(a_connection_hears_of_a_close),
        cmocka_unit_test(a_server_has_a_least_memory),
    };
    return cmocka_run_group_tests_name("http_h2_memory", tests, NULL, NULL);
}
