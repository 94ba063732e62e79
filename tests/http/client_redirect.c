/* Redirects: where a call goes, what it takes along, and when it stops. */
#include "tests/http/tls_certificates.h"
#include "tests/support/http_client_world.h"

/* A fetch that follows `most`; what its last server said, or its status. Valid until the next. */
static char said[1024];

static ebb_status send_call(http_world *h, const ebb_http_call *call) {
    ebb_value v;
    ebb_status st = loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, call), &v);
    snprintf(said, sizeof said, "%s", ebb_status_name(st));
    if (st != EBB_OK) return st;
    const ebb_http_response *r = ebb_http_response_of(&v);
    snprintf(said, sizeof said, "%d %s", r->status, r->body);
    ebb_value_discard(h->w->cx, v);
    return st;
}

static const char *fetch_from(http_world *h, const char *method, const char *path, uint32_t most) {
    static const ebb_http_field fields[] = {
        {"authorization", "secret"}, {"cookie", "a=b"}, {"content-type", "text/x"}, {"x-own", "1"}};
    ebb_http_call call = {
        .method = method, .url = url(h, path), .headers = fields, .headers_n = 4, .redirects = most};
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) call.body = "body", call.body_n = 4;
    (void)send_call(h, &call);
    return said;
}

#define SAME " authorization=secret cookie=a=b"
#define OWN  " x-own=1"
#define TYPE " content-type=text/x"

static void the_method_and_the_body_follow_the_status(void **state) {
    static const struct {
        const char *method, *status, *expected;
    } cases[] = {
        {"GET", "301", "200 GET /show/a?" SAME TYPE OWN " []"},
        {"GET", "308", "200 GET /show/a?" SAME TYPE OWN " []"},
        {"POST", "301", "200 GET /show/a?" SAME OWN " []"},
        {"POST", "302", "200 GET /show/a?" SAME OWN " []"},
        {"POST", "303", "200 GET /show/a?" SAME OWN " []"},
        {"POST", "307", "200 POST /show/a?" SAME TYPE OWN " [body]"},
        {"POST", "308", "200 POST /show/a?" SAME TYPE OWN " [body]"},
        {"PUT", "301", "200 PUT /show/a?" SAME TYPE OWN " [body]"},
        {"PUT", "302", "200 PUT /show/a?" SAME TYPE OWN " [body]"},
        {"PUT", "303", "200 GET /show/a?" SAME OWN " []"},
        {"PUT", "307", "200 PUT /show/a?" SAME TYPE OWN " [body]"},
        {"HEAD", "303", "200 "},
        {"GET", "304", "304 "},
        {"GET", "300", "300 elsewhere"},
        {"GET", "201", "201 elsewhere"},
    };
    char path[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "/go/small/%s?/show/a", cases[i].status);
        assert_string_equal(fetch_from(*state, cases[i].method, path, 1), cases[i].expected);
    }
}

static void none_is_followed_unless_the_call_says_so(void **state) {
    http_world *h = *state;
    assert_string_equal(fetch_from(h, "GET", "/go/small/302?/show/a", 0), "302 elsewhere");
    assert_string_equal(fetch_from(h, "GET", "/go/small/302", 5), "302 elsewhere"); /* no location */
}

static void a_location_may_be_relative(void **state) {
    static const char *const cases[][2] = {
        {"/go/small/302?../../show/x", "200 GET /show/x?"},
        {"/go/small/302?/show/a/./b/../c?d=e#f", "200 GET /show/a/c?d=e"},
        {"/go/small/302?//", "EBB_ERR_HTTP_REDIRECT"},
        {"/go/small/302?ftp://127.0.0.1/", "EBB_ERR_HTTP_REDIRECT"},
        {"/go/small/302?http://user@127.0.0.1/", "EBB_ERR_HTTP_REDIRECT"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *was = fetch_from(*state, "GET", cases[i][0], 1);
        if (strncmp(was, cases[i][1], strlen(cases[i][1])) != 0) fail_msg("%s: %s", cases[i][0], was);
    }
}

static void there_may_be_so_many(void **state) {
    http_world *h = *state;
    static const char path[] = "/go/small/302?/go/small/307?/go/small/301?/show/a";
    assert_string_equal(fetch_from(h, "GET", path, 3), "200 GET /show/a?" SAME TYPE OWN " []");
    assert_string_equal(fetch_from(h, "GET", path, 2), "EBB_ERR_HTTP_REDIRECT");
}

/* on_go decodes "%23": "#" stands for the page itself, with its query. */
static void a_loop_ends(void **state) {
    http_world *h = *state;
    uint64_t before = server_stats(h).requests;
    assert_string_equal(fetch_from(h, "GET", "/go/small/307?%23", 10), "EBB_ERR_HTTP_REDIRECT");
    assert_int_equal(server_stats(h).requests - before, 11);
}

/* Another port is another origin, and so is another scheme. */
static void secrets_stay_with_their_origin(void **state) {
    http_world *h = *state, other = {.w = h->w, .h2 = h->h2};
    char path[128];
    http_serve(&other, NULL);
    snprintf(path, sizeof path, "/go/small/307?http://127.0.0.1:%u/show/a", other.port);
    assert_string_equal(fetch_from(h, "POST", path, 1), "200 POST /show/a?" TYPE OWN " [body]");
    snprintf(path, sizeof path, "/go/small/302?http://localhost:%u/show/a", h->port);
    assert_string_equal(fetch_from(h, "GET", path, 1), "200 GET /show/a?" TYPE OWN " []");
}

static void from_tls_to_plain_text_without_secrets(void **state) {
    http_world *h = *state, secure = {.w = h->w};
    char from[128];
    ebb_tls_opts tls = {.cert_file = file("leaf.pem"), .key_file = file("leaf.key")};
    ebb_http_field field = {"cookie", "a=b"};
    http_serve(&secure, &(ebb_http_server_opts){.tls = &tls});
    h->client = http_client(h, (ebb_http_client_opts){.tls.ca_file = file("ca.pem")});
    snprintf(from, sizeof from, "https://localhost:%u/go/small/302?http://127.0.0.1:%u/show/a", secure.port,
             h->port);
    ebb_http_call call = {.url = from, .headers = &field, .headers_n = 1, .redirects = 1};
    assert_int_equal(send_call(h, &call), EBB_OK);
    assert_string_equal(said, "200 GET /show/a? []");
    snprintf(from, sizeof from, "https://localhost:%u/go/small/302?/show/a", secure.port);
    assert_int_equal(send_call(h, &call), EBB_OK);
    assert_string_equal(said, "200 GET /show/a? cookie=a=b []");
}

/* The body of a redirect is dropped; a small one leaves the connection in use, a large one is not waited for. */
static void the_body_of_a_redirect_is_nobodys(void **state) {
    http_world *h = *state;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(fetch_from(h, "GET", "/go/small/302?/show/a", 1),
                            "200 GET /show/a?" SAME TYPE OWN " []");
    }
    assert_int_equal(server_stats(h).accepted, 1);
    assert_string_equal(fetch_from(h, "GET", "/go/large/302?/show/a", 1),
                        "200 GET /show/a?" SAME TYPE OWN " []");
}

static ebb_status open_and_read(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    ebb_http_call call = {.method = "POST",
                          .url = url(h, "/go/small/307?/show/a"),
                          .body = "body",
                          .body_n = 4,
                          .redirects = 1};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    assert_int_equal(ebb_http_status(x), 200);
    st = ebb_await(cx, ebb_http_body(cx, x, 100), &v);
    if (st == EBB_OK) assert_string_equal(ebb_http_body_of(&v)->at, "POST /show/a? [body]");
    ebb_http_close(cx, x);
    return st;
}

static void an_open_follows_too(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, open_and_read, h), EBB_OK);
}

/* What its user writes may be gone: the redirect is the answer. */
static ebb_status stream_and_see(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    ebb_http_call call = {
        .method = "POST", .url = url(h, "/go/small/307?/show/a"), .streams = true, .redirects = 9};
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    (void)ebb_http_end(cx, x);
    st = ebb_await(cx, ebb_http_response_head(cx, x), NULL);
    assert_int_equal(ebb_http_status(x), 307);
    ebb_http_close(cx, x);
    return st;
}

static void a_streamed_body_is_not_redirected(void **state) {
    http_world *h = *state;
    assert_int_equal(run_fiber(h->w, stream_and_see, h), EBB_OK);
}

static void a_redirected_call_can_be_cancelled(void **state) {
    http_world *h = *state;
    ebb_http_call call = {.url = url(h, "/go/small/302?/wait"), .redirects = 1};
    ebb_future *f = ebb_http_fetch(http_cx(h), h->client, &call);
    until_began(h, 1);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 1);
    assert_int_equal(loop_await(h->w, f, NULL), EBB_CANCELLED);
    for (int turns = 0; turns < 20; turns++) {
        f = ebb_http_fetch(http_cx(h), h->client, &call);
        loop_turns(h->w, turns);
        ebb_future_cancel(f, EBB_CANCEL_USER);
        ebb_future_drop(f);
        loop_turns(h->w, 3);
    }
    assert_int_equal(get_status(h, "/hello"), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER(the_method_and_the_body_follow_the_status),
        OVER(none_is_followed_unless_the_call_says_so),
        OVER(a_location_may_be_relative),
        OVER(there_may_be_so_many),
        OVER(a_loop_ends),
        OVER(secrets_stay_with_their_origin),
        OVER_1(from_tls_to_plain_text_without_secrets),
        OVER(the_body_of_a_redirect_is_nobodys),
        OVER(an_open_follows_too),
        OVER(a_streamed_body_is_not_redirected),
        OVER(a_redirected_call_can_be_cancelled),
    };
    return cmocka_run_group_tests_name("http_client_redirect", tests, make_certificates, remove_certificates);
}
