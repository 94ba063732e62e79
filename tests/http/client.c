/* A client's calls: what is sent, what comes back, and what is said when it does not. */
#include "tests/support/http_client_world.h"

/* ---- fetch --------------------------------------------------------------------------------------------- */

static void a_get_brings_status_headers_and_body(void **state) {
    http_world *h = *state;
    ebb_value v = get_value(h, "/hello?a=b#not-sent");
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_int_equal(r->status, 200);
    assert_string_equal(r->body, "hello");
    assert_int_equal(r->body_n, 5);
    assert_string_equal(ebb_http_response_header(r, "X-Method"), "GET");
    assert_string_equal(ebb_http_response_header(r, "x-query"), "a=b");
    assert_null(ebb_http_response_header(r, "x-none"));
    ebb_value_discard(h->w->cx, v);
}

/* RFC 9110, 4.2.3: an empty path is "/". */
static void a_url_may_have_a_query_without_a_path(void **state) {
    http_world *h = *state;
    ebb_value v = get_value(h, "?a=b#not-sent");
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_int_equal(r->status, 200);
    assert_string_equal(ebb_http_response_header(r, "x-query"), "a=b");
    ebb_value_discard(h->w->cx, v);
}

static void only_the_value_of_a_fetch_is_a_response(void **state) {
    (void)state;
    assert_null(ebb_http_response_of(&(ebb_value){NULL, {.i = 1}}));
}

static void a_post_sends_its_body(void **state) {
    http_world *h = *state;
    enum { MUCH = 300000 };
    char *much = malloc(MUCH);
    assert_non_null(much);
    for (size_t i = 0; i < MUCH; i++) much[i] = (char)(i * 7 % 251);
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(h, "/echo"), .body = much, .body_n = MUCH};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_int_equal(r->body_n, MUCH);
    assert_memory_equal(r->body, much, MUCH);
    ebb_value_discard(h->w->cx, v);
    free(much);
}

static void an_empty_post_ends(void **state) {
    http_world *h = *state;
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(h, "/echo")};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    assert_int_equal(ebb_http_response_of(&v)->body_n, 0);
    ebb_value_discard(h->w->cx, v);
}

static void a_head_has_headers_and_no_body(void **state) {
    http_world *h = *state;
    ebb_value v;
    ebb_http_call call = {.method = "HEAD", .url = url(h, "/hello")};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    assert_string_equal(ebb_http_response_header(r, "x-method"), "HEAD");
    assert_string_equal(ebb_http_response_header(r, "content-length"), "5");
    assert_int_equal(r->body_n, 0);
    assert_string_equal(r->body, "");
    ebb_value_discard(h->w->cx, v);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void headers_are_sent(void **state) {
    http_world *h = *state;
    ebb_value v;
    ebb_http_field fields[] = {{"EBB-Deadline-MS", "123"}};
    ebb_http_call call = {.url = url(h, "/deadline"), .headers = fields, .headers_n = 1};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    assert_string_equal(ebb_http_response_of(&v)->body, "123");
    ebb_value_discard(h->w->cx, v);
}

static void a_response_before_the_end_of_the_request_is_one(void **state) {
    http_world *h = *state;
    enum { MUCH = 4 << 20 };
    char *much = calloc(1, MUCH);
    assert_non_null(much);
    ebb_value v;
    ebb_http_call call = {.method = "POST", .url = url(h, "/early"), .body = much, .body_n = MUCH};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    assert_string_equal(ebb_http_response_of(&v)->body, "enough");
    free(much); /* nothing of it is read any more */
    ebb_value_discard(h->w->cx, v);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void localhost_is_looked_up(void **state) {
    http_world *h = *state;
    char text[64];
    ebb_value v;
    snprintf(text, sizeof text, "http://LocalHost:%u/hello", h->port);
    assert_int_equal(loop_await(h->w, ebb_http_get(http_cx(h), h->client, text), &v), EBB_OK);
    ebb_value_discard(h->w->cx, v);
    snprintf(text, sizeof text, "http://localhost:%u/hello", h->port);
    assert_int_equal(loop_await(h->w, ebb_http_get(http_cx(h), h->client, text), NULL), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1); /* the same origin */
}

/* ---- connections --------------------------------------------------------------------------------------- */

static void a_connection_is_used_again(void **state) {
    http_world *h = *state;
    for (int i = 0; i < 5; i++) assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

static void get_many(http_world *h, const char *path, size_t n) {
    ebb_future *all[64];
    ebb_value v;
    size_t ended;
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) all[i] = get(h, path);
    assert_int_equal(loop_await(h->w, ebb_all(http_cx(h), n, all), &v), EBB_OK);
    const ebb_outcome *o = ebb_outcomes_of(&v, &ended);
    assert_int_equal(ended, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(ebb_http_response_of(&o[i].value)->status, 200);
    ebb_value_discard(h->w->cx, v);
}

static void many_calls_share_few_connections(void **state) {
    http_world *h = *state;
    get_many(h, "/bytes/10000", 50);
    assert_int_equal(server_stats(h).accepted, h->h2 ? 1 : 8);
}

static void at_most_so_many_connections_go_to_an_origin(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.connections = 3});
    get_many(h, "/hello", 50);
    assert_int_equal(server_stats(h).accepted, 3);
}

/* Calls past what the peer allows at once wait, and are not refused. */
static void the_peers_limit_of_streams_is_kept(void **state) {
    http_world *h = *state;
    h->port = 0;
    http_serve(h, &(ebb_http_server_opts){.limits.streams = 2});
    h->client = http_client(h, (ebb_http_client_opts){.connections = 1});
    get_many(h, "/hello", 50);
    ebb_http_server_stats s = server_stats(h);
    assert_int_equal(s.accepted, 1);
    assert_int_equal(s.refused, 0);
}

static void a_full_connection_is_joined_by_another(void **state) {
    http_world *h = *state;
    ebb_future *waits[2];
    h->port = 0;
    http_serve(h, &(ebb_http_server_opts){.limits.streams = 2});
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    for (int i = 0; i < 2; i++) waits[i] = get(h, "/wait");
    until_began(h, 2);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 2);
    for (int i = 0; i < 2; i++) ebb_future_cancel(waits[i], EBB_CANCEL_USER);
    until_so_many_cancelled(h, 2);
}

static void one_that_was_idle_for_too_long_is_not_used_again(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.idle_ns = 1});
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 2);
}

/* No call follows that could find out. The server would keep the connections for a minute. */
static void idle_connections_are_closed_when_their_time_is_over(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.idle_ns = 20 * EBB_MS});
    for (int round = 0; round < 2; round++) { /* the second finds the timer as the first has left it */
        ebb_future *both[] = {get(h, "/hello"), get(h, "/hello")};
        assert_int_equal(loop_await(h->w, ebb_all(http_cx(h), 2, both), NULL), EBB_OK);
        assert_true(server_stats(h).connections > 0);
        loop_until(h->w, no_connections, h);
    }
}

/* It is the idle time of a connection, not its age. */
static void a_connection_in_use_is_not_idle(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.idle_ns = 20 * EBB_MS});
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    ebb_future *waits = get(h, "/wait");
    until_began(h, 1);
    assert_int_equal(loop_await(h->w, ebb_after(http_cx(h), 100 * EBB_MS), NULL), EBB_OK);
    assert_int_equal(h->cancelled, 0);
    assert_true(server_stats(h).connections > 0);
    ebb_future_cancel(waits, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 1);
}

/* A server that has closed is found out about, and the next call goes to its successor. */
static void a_closed_connection_is_replaced(void **state) {
    http_world *h = *state;
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    ebb_region old = ebb_http_server_region(h->server);
    ebb_region_close(http_cx(h), old);
    while (!region_is_closed(h->w, old)) loop_turns(h->w, 1);
    http_serve(h, NULL);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

/* ---- what fails ---------------------------------------------------------------------------------------- */

static void what_is_no_call_is_refused_at_once(void **state) {
    http_world *h = *state;
    static const char *const urls[] = {"",
                                       "hello",
                                       "ftp://a/",
                                       "http://",
                                       "http://a b/",
                                       "http://a:0/",
                                       "http://u@host/",
                                       "http://a:99999/",
                                       "//host/",
                                       "http://[::1/"};
    static const ebb_http_field fields[] = {
        {"host", "a"}, {"content-length", "1"}, {":path", "/"}, {"a b", "c"}, {"a", "b\nc"},
        {NULL, "c"},   {"connection", "x"},     {"a", NULL}};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(status_now(ebb_http_get(http_cx(h), h->client, urls[i])), EBB_ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        ebb_http_call call = {.url = url(h, "/hello"), .headers = &fields[i], .headers_n = 1};
        assert_int_equal(status_now(ebb_http_fetch(http_cx(h), h->client, &call)), EBB_ERR_INVALID);
    }
    ebb_http_call bad[] = {{.url = NULL},
                           {.url = url(h, "/"), .method = "GET /"},
                           {.url = url(h, "/"), .method = ""},
                           {.url = url(h, "/"), .body_n = 1},
                           {.url = url(h, "/"), .headers_n = 1},
                           {.url = url(h, "/"), .streams = true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(status_now(ebb_http_fetch(http_cx(h), h->client, &bad[i])), EBB_ERR_INVALID);
    }
    ebb_http_call newer = {.size = sizeof newer + 1, .url = url(h, "/")};
    assert_int_equal(status_now(ebb_http_fetch(http_cx(h), h->client, &newer)), EBB_ERR_VERSION);
    assert_int_equal(status_now(ebb_http_fetch(http_cx(h), h->client, NULL)), EBB_ERR_INVALID);
    assert_int_equal(status_now(ebb_http_get(http_cx(h), NULL, url(h, "/"))), EBB_ERR_INVALID);
    assert_int_equal(server_stats(h).accepted, 0);
}

static void a_client_of_another_version_is_refused(void **state) {
    http_world *h = *state;
    ebb_http_client *c;
    ebb_http_client_opts opts = {.size = sizeof opts + 1};
    assert_int_equal(ebb_http_client_new(http_cx(h), &opts, &c), EBB_ERR_VERSION);
    assert_null(c);
    opts = (ebb_http_client_opts){.tls.ca_file = "/nowhere/ca.pem"};
    assert_int_equal(ebb_http_client_new(http_cx(h), &opts, &c), EBB_ERR_TLS);
    assert_non_null(strstr(ebb_http_error(), "/nowhere/ca.pem"));
    assert_null(c);
}

static uint16_t nobodys_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void all_that_wait_hear_that_nobody_is_there(void **state) {
    http_world *h = *state;
    ebb_future *all[20];
    h->port = nobodys_port();
    for (size_t i = 0; i < 20; i++) all[i] = get(h, "/hello");
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(loop_await(h->w, all[i], NULL), EBB_ERRNO(ECONNREFUSED));
    }
}

static void a_name_that_is_none_is_said_so(void **state) {
    http_world *h = *state;
    ebb_status st = loop_await(h->w, ebb_http_get(http_cx(h), h->client, "http://no.such.invalid/"), NULL);
    assert_true(st == EBB_UV(UV_EAI_NONAME) || st == EBB_UV(UV_EAI_AGAIN));
}

static void a_body_over_the_limit_is_not_taken(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.body_bytes = 10000});
    ebb_value_discard(h->w->cx, get_value(h, "/bytes/10000"));
    assert_int_equal(get_status(h, "/bytes/10001"), EBB_ERR_LIMIT);
    assert_int_equal(get_status(h, "/bytes/10000000"), EBB_ERR_LIMIT);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

/* It is known beforehand: nobody waits for what comes of it. */
static void a_body_that_says_that_it_is_too_long_is_not_taken(void **state) {
    http_world *h = *state;
    h->client = http_client(h, (ebb_http_client_opts){.body_bytes = 999999});
    assert_int_equal(get_status(h, "/announce"), EBB_ERR_LIMIT);
    until_so_many_cancelled(h, 1);
}

static void a_head_over_the_limit_is_not_taken(void **state) {
    http_world *h = *state;
    ebb_http_client_opts few = {.headers = 50}, small = {.header_bytes = 1000};
    ebb_value_discard(h->w->cx, get_value(h, "/heads"));
    h->client = http_client(h, few);
    assert_int_equal(get_status(h, "/heads"), EBB_ERR_LIMIT);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
    h->client = http_client(h, small);
    assert_int_equal(get_status(h, "/heads"), EBB_ERR_LIMIT);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void calls_in_flight_hear_that_the_server_is_lost(void **state) {
    http_world *h = *state;
    ebb_future *waits[3];
    for (int i = 0; i < 3; i++) waits[i] = get(h, "/trickle");
    until_began(h, 3);
    ebb_region_cancel(http_cx(h), ebb_http_server_region(h->server), EBB_CANCEL_USER, "test");
    for (int i = 0; i < 3; i++) assert_int_equal(loop_await(h->w, waits[i], NULL), EBB_ERR_HTTP_RESET);
}

/* ---- deadlines ----------------------------------------------------------------------------------------- */

static void a_call_fails_at_its_deadline(void **state) {
    http_world *h = *state;
    ebb_cx *cx = http_cx(h);
    ebb_http_call call = {.url = url(h, "/wait"), .deadline = ebb_now(cx) + 30 * EBB_MS};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(cx, h->client, &call), NULL), EBB_TIMEOUT);
    until_so_many_cancelled(h, h->began);
}

static void a_deadline_that_has_passed_sends_nothing(void **state) {
    http_world *h = *state;
    ebb_http_call call = {.url = url(h, "/hello"), .deadline = 1};
    assert_int_equal(status_now(ebb_http_fetch(http_cx(h), h->client, &call)), EBB_TIMEOUT);
    call.deadline = EBB_FOREVER;
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), NULL), EBB_OK);
    assert_int_equal(server_stats(h).requests, 1);
}

static int told_deadline(const ebb_value *v) {
    const ebb_http_response *r = ebb_http_response_of(v);
    assert_non_null(r);
    return strcmp(r->body, "none") == 0 ? -1 : atoi(r->body);
}

static void the_deadline_of_a_call_travels(void **state) {
    http_world *h = *state;
    ebb_value v;
    ebb_http_field own = {"ebb-deadline-ms", "77"};
    ebb_http_call call = {.url = url(h, "/deadline"), .headers = &own, .headers_n = 1};
    call.deadline = ebb_now(http_cx(h)) + 20 * EBB_SECOND;
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    assert_in_range(told_deadline(&v), 10000, 20000);
    ebb_value_discard(h->w->cx, v);
    v = get_value(h, "/deadline");
    assert_int_equal(told_deadline(&v), -1);
    ebb_value_discard(h->w->cx, v);
}

typedef struct in_region {
    http_world *h;
    uint64_t deadline;
    int told;
} in_region;

static ebb_status ask(ebb_cx *cx, void *arg) {
    in_region *r = arg;
    ebb_value v;
    ebb_http_call call = {.url = url(r->h, "/deadline"), .deadline = r->deadline};
    ebb_status st = ebb_await(cx, ebb_http_fetch(cx, r->h->client, &call), &v);
    if (st != EBB_OK) return st;
    r->told = told_deadline(&v);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status ask_in_region(ebb_cx *cx, void *arg) {
    ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.deadline = ebb_now(cx) + 50 * EBB_SECOND});
    (void)ebb_fiber_spawn(cx, r, ask, arg);
    return ebb_region_join(cx, r);
}

static void the_earlier_of_the_regions_deadline_and_the_calls_travels(void **state) {
    http_world *h = *state;
    in_region r = {h, 0, 0};
    assert_int_equal(run_fiber(h->w, ask_in_region, &r), EBB_OK);
    assert_in_range(r.told, 40000, 50000);
    r.deadline = ebb_now(http_cx(h)) + 20 * EBB_SECOND;
    assert_int_equal(run_fiber(h->w, ask_in_region, &r), EBB_OK);
    assert_in_range(r.told, 10000, 20000);
    r.deadline = ebb_now(http_cx(h)) + 100 * EBB_SECOND;
    assert_int_equal(run_fiber(h->w, ask_in_region, &r), EBB_OK);
    assert_in_range(r.told, 40000, 50000);
}

/* ---- open ---------------------------------------------------------------------------------------------- */

static ebb_status read_all(ebb_cx *cx, ebb_http *x, size_t *n) {
    char bytes[1000];
    ebb_value v;
    ebb_status st;
    for (*n = 0; (st = ebb_await(cx, ebb_http_read(cx, x, bytes, sizeof bytes), &v)) == EBB_OK;) *n += v.as.u;
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

static ebb_status open_and_read(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    size_t n;
    ebb_status st =
        ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/bytes/500000")}), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    assert_non_null(x);
    assert_int_equal(ebb_http_status(x), 200);
    assert_int_equal(ebb_http_version(x), h->h2 ? 20 : 11);
    assert_int_equal(ebb_http_peer(x)->port, h->port);
    assert_int_equal(status_now(ebb_http_response_head(cx, x)), EBB_OK);
    assert_int_equal(ebb_http_set_header(x, "a", "b"), EBB_ERR_BUSY);
    st = read_all(cx, x, &n);
    assert_int_equal(n, 500000);
    assert_int_equal(ebb_future_status_of(ebb_http_read(cx, x, &n, 1)), EBB_ERR_EOF);
    ebb_http_close(cx, x);
    assert_null(ebb_http_of(cx, v));
    return st;
}

static void a_body_is_read_piece_by_piece(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, open_and_read, h), EBB_OK);
    assert_int_equal(run_fiber(h->w, open_and_read, h), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

/* A question, its answer, and the next question. */
static ebb_status converse(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_http_call call = {.method = "POST", .url = url(h, "/echo"), .streams = true};
    char heard[16];
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    ebb_future *head = ebb_http_response_head(cx, x);
    assert_int_equal(status_now(ebb_http_response_head(cx, x)),
                     ebb_http_status(x) == 0 ? EBB_ERR_BUSY : EBB_OK);
    assert_int_equal(ebb_await(cx, head, NULL), EBB_OK);
    assert_int_equal(ebb_http_status(x), 200);
    for (int i = 0; i < 20; i++) {
        char word[16];
        int n = snprintf(word, sizeof word, "word %d", i);
        assert_int_equal(ebb_await(cx, ebb_http_write(cx, x, word, (size_t)n), NULL), EBB_OK);
        assert_int_equal(ebb_await(cx, ebb_http_read(cx, x, heard, sizeof heard), &v), EBB_OK);
        assert_int_equal(v.as.u, n);
        assert_memory_equal(heard, word, (size_t)n);
    }
    assert_int_equal(ebb_http_end(cx, x), EBB_OK);
    assert_int_equal(ebb_await(cx, ebb_http_read(cx, x, heard, sizeof heard), &v), EBB_ERR_EOF);
    ebb_http_close(cx, x);
    return EBB_OK;
}

static void a_call_that_streams_speaks_both_ways(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, converse, h), EBB_OK);
    assert_int_equal(run_fiber(h->w, converse, h), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

/* Its length may be said beforehand; then it is kept to. */
static ebb_status send_sized(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_http_field length = {"Content-Length", "8"};
    ebb_http_call call = {
        .method = "POST", .url = url(h, "/echo"), .headers = &length, .headers_n = 1, .streams = true};
    ebb_value v;
    size_t n;
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    assert_int_equal(ebb_await(cx, ebb_http_write(cx, x, "four", 4), NULL), EBB_OK);
    assert_int_equal(ebb_await(cx, ebb_http_write(cx, x, "five!", 5), NULL), EBB_ERR_LIMIT);
    assert_int_equal(ebb_await(cx, ebb_http_write(cx, x, "more", 4), NULL), EBB_OK);
    assert_int_equal(ebb_http_end(cx, x), EBB_OK);
    st = read_all(cx, x, &n);
    assert_int_equal(n, 8);
    ebb_http_close(cx, x);
    length.value = "eight";
    assert_int_equal(ebb_future_status_of(ebb_http_open(cx, h->client, &call)), EBB_ERR_INVALID);
    length.value = "8";
    call.streams = false;
    assert_int_equal(ebb_future_status_of(ebb_http_open(cx, h->client, &call)), EBB_ERR_INVALID);
    return st;
}

static void a_call_that_streams_may_say_how_long_it_is(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, send_sized, h), EBB_OK);
}

/* The head is there long before all of the body is sent; what the caller gave may go then. */
static ebb_status open_with_body(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    enum { MUCH = 1 << 20 };
    char *much = malloc(MUCH);
    size_t n;
    ebb_value v;
    assert_non_null(much);
    memset(much, 'm', MUCH);
    ebb_http_call call = {.method = "POST", .url = url(h, "/echo"), .body = much, .body_n = MUCH};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    memset(much, 'x', MUCH);
    free(much);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    st = read_all(cx, x, &n);
    assert_int_equal(n, MUCH);
    ebb_http_close(cx, x);
    return st;
}

static void the_body_of_an_open_is_sent_to_its_end(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, open_with_body, h), EBB_OK);
}

static ebb_status open_wait(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    char c;
    ebb_status st =
        ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/trickle")}), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    ebb_future *f = NULL;
    while (f == NULL || ebb_future_status_of(f) != EBB_PENDING) {
        if (f != NULL) ebb_future_drop(f);
        f = ebb_http_read(cx, x, &c, 1);
    }
    ebb_http_close(cx, x);
    st = ebb_future_status_of(f); /* it has ended at once */
    ebb_future_drop(f);
    return st;
}

/* Nothing is answered, and the server reads nothing: all three wait. */
static ebb_status open_silent(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    enum { MUCH = 32 << 20 }; /* more than the system takes */
    ebb_http_call call = {.method = "POST", .url = url(h, "/wait"), .streams = true};
    char *much = calloc(1, MUCH), c;
    ebb_value v;
    assert_non_null(much);
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st == EBB_OK) {
        ebb_http *x = ebb_http_of(cx, v);
        ebb_future *waits[] = {ebb_http_response_head(cx, x), ebb_http_read(cx, x, &c, 1),
                               ebb_http_write(cx, x, much, MUCH)};
        while (h->began == 0) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
        for (int i = 0; i < 3; i++) st = ebb_future_status_of(waits[i]) == EBB_PENDING ? st : EBB_ERR_BUSY;
        ebb_http_close(cx, x);
        for (int i = 0; i < 3; i++) {
            if (ebb_future_status_of(waits[i]) != EBB_ERR_CLOSED) st = ebb_future_status_of(waits[i]);
            ebb_future_drop(waits[i]);
        }
    }
    free(much);
    return st;
}

static void closing_an_exchange_ends_all_that_waits_for_it_at_once(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, open_silent, h), EBB_OK);
}

static void closing_an_exchange_ends_what_waits_for_it_and_cancels_the_handler(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, open_wait, h), EBB_ERR_CLOSED);
    until_so_many_cancelled(h, 1);
}

static void an_exchange_that_nobody_takes_is_closed(void **state) {
    http_world *h = *state;
    ebb_value v;
    ebb_cx *cx = http_cx(h);
    assert_int_equal(
        loop_await(h->w, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/trickle")}), &v),
        EBB_OK);
    assert_non_null(ebb_http_of(h->w->cx, v));
    ebb_value_discard(http_cx(h), v);
    assert_null(ebb_http_of(h->w->cx, v));
    until_so_many_cancelled(h, 1);
}

static ebb_status open_and_leave(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    return ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = url(h, "/trickle")}), &v);
}

static ebb_status leave_in_region(ebb_cx *cx, void *arg) {
    ebb_region r = ebb_region_open(cx, NULL);
    (void)ebb_fiber_spawn(cx, r, open_and_leave, arg);
    return ebb_region_join(cx, r);
}

static void an_exchange_ends_with_its_region(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, leave_in_region, h), EBB_OK);
    until_so_many_cancelled(h, 1);
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

static void only_an_exchange_is_one(void **state) {
    http_world *h = *state;
    ebb_listener l = ebb_tcp_listen(http_cx(h), &(ebb_address){"127.0.0.1", 0});
    assert_null(ebb_http_of(h->w->cx, (ebb_value){NULL, {.u = l.id}}));
    assert_null(ebb_http_of(h->w->cx, ebb_value_none()));
    assert_null(ebb_http_of(h->w->cx, ebb_value_int(-1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER(a_get_brings_status_headers_and_body),
        OVER(a_url_may_have_a_query_without_a_path),
        cmocka_unit_test(only_the_value_of_a_fetch_is_a_response),
        OVER(a_post_sends_its_body),
        OVER(an_empty_post_ends),
        OVER(a_head_has_headers_and_no_body),
        OVER(headers_are_sent),
        OVER(a_response_before_the_end_of_the_request_is_one),
        OVER(localhost_is_looked_up),
        OVER(a_connection_is_used_again),
        OVER(many_calls_share_few_connections),
        OVER_1(at_most_so_many_connections_go_to_an_origin),
        OVER_2(the_peers_limit_of_streams_is_kept),
        OVER_2(a_full_connection_is_joined_by_another),
        OVER(one_that_was_idle_for_too_long_is_not_used_again),
        OVER(idle_connections_are_closed_when_their_time_is_over),
        OVER(a_connection_in_use_is_not_idle),
        OVER(a_closed_connection_is_replaced),
        OVER_1(what_is_no_call_is_refused_at_once),
        OVER_1(a_client_of_another_version_is_refused),
        OVER(all_that_wait_hear_that_nobody_is_there),
        OVER_1(a_name_that_is_none_is_said_so),
        OVER(a_body_over_the_limit_is_not_taken),
        OVER(a_body_that_says_that_it_is_too_long_is_not_taken),
        OVER(a_head_over_the_limit_is_not_taken),
        OVER(calls_in_flight_hear_that_the_server_is_lost),
        OVER(a_call_fails_at_its_deadline),
        OVER(a_deadline_that_has_passed_sends_nothing),
        OVER(the_deadline_of_a_call_travels),
        OVER(the_earlier_of_the_regions_deadline_and_the_calls_travels),
        OVER(a_body_is_read_piece_by_piece),
        OVER(a_call_that_streams_speaks_both_ways),
        OVER(a_call_that_streams_may_say_how_long_it_is),
        OVER(the_body_of_an_open_is_sent_to_its_end),
        OVER(closing_an_exchange_ends_what_waits_for_it_and_cancels_the_handler),
        OVER(closing_an_exchange_ends_all_that_waits_for_it_at_once),
        OVER(an_exchange_that_nobody_takes_is_closed),
        OVER(an_exchange_ends_with_its_region),
        OVER_1(only_an_exchange_is_one),
    };
    return cmocka_run_group_tests_name("http_client", tests, NULL, NULL);
}
