/* A client's calls over TLS: HTTP/2 is chosen by ALPN, and a server that is not the one we wanted gets nothing. */
#include "tests/http/tls_certificates.h"
#include "tests/support/http_client_world.h"

#define ON_TLS(test) cmocka_unit_test_setup_teardown(test, http_up_1, http_down)

static char text[128];

static ebb_future *get_from(http_world *h, const char *host, const char *path) {
    snprintf(text, sizeof text, "https://%s:%u%s", host, h->port, path);
    return ebb_http_get(http_cx(h), h->client, text);
}

static void serve_with(http_world *h, const char *cert, const char *key, const char *ca) {
    ebb_tls_opts tls = {.cert_file = file(cert), .key_file = file(key), .ca_file = ca ? file(ca) : NULL};
    h->port = 0;
    http_serve(h, &(ebb_http_server_opts){.tls = &tls});
}

static void trust(http_world *h, const char *ca) {
    h->client = http_client(h, (ebb_http_client_opts){.tls.ca_file = file(ca)});
}

static void many_calls_share_a_connection_by_alpn(void **state) {
    http_world *h = *state;
    ebb_future *all[20];
    ebb_value v;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    trust(h, "ca.pem");
    for (int i = 0; i < 20; i++) all[i] = get_from(h, "localhost", i % 2 ? "/hello" : "/bytes/100000");
    assert_int_equal(loop_await(h->w, ebb_all(http_cx(h), 20, all), &v), EBB_OK);
    ebb_value_discard(h->w->cx, v);
    assert_int_equal(server_stats(h).accepted, 1);
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 2);
}

static ebb_status see_version(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_value v;
    snprintf(text, sizeof text, "https://localhost:%u/hello", h->port);
    ebb_status st = ebb_await(cx, ebb_http_open(cx, h->client, &(ebb_http_call){.url = text}), &v);
    if (st != EBB_OK) return st;
    assert_int_equal(ebb_http_version(ebb_http_of(cx, v)), 20);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static void it_is_http_2(void **state) {
    http_world *h = *state;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    trust(h, "ca.pem");
    assert_int_equal(run_fiber(h->w, see_version, h), EBB_OK);
}

static void cancelling_resets_the_stream(void **state) {
    http_world *h = *state;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    trust(h, "ca.pem");
    ebb_future *f = get_from(h, "localhost", "/wait");
    until_began(h, 1);
    ebb_future_cancel(f, EBB_CANCEL_USER);
    until_so_many_cancelled(h, 1);
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

/* After each turn: while it connects, in the middle of the handshake, and after it. */
static void a_handshake_that_nobody_waits_for_is_given_up(void **state) {
    http_world *h = *state;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    trust(h, "ca.pem");
    for (int turns = 0; turns < 30; turns++) {
        ebb_future *f = get_from(h, "127.0.0.1", "/wait");
        loop_turns(h->w, turns);
        ebb_future_cancel(f, EBB_CANCEL_USER);
        ebb_future_drop(f);
        loop_turns(h->w, 10);
    }
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_OK);
}

static void whoever_is_not_the_one_we_wanted_gets_nothing(void **state) {
    http_world *h = *state;
    static const char *const bad[][3] = {{"expired.pem", "expired.key", "ca.pem"},
                                         {"foreign.pem", "foreign.key", "ca.pem"},
                                         {"localhost.pem", "localhost.key", "ca.pem"},
                                         {"leaf.pem", "leaf.key", "other-ca.pem"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        serve_with(h, bad[i][0], bad[i][1], NULL);
        trust(h, bad[i][2]);
        ebb_future *two[] = {get_from(h, "localhost", "/hello"), get_from(h, "localhost", "/wait")};
        assert_int_equal(loop_await(h->w, two[0], NULL), EBB_ERR_TLS);
        assert_non_null(strstr(ebb_http_error(), "localhost"));
        assert_int_equal(loop_await(h->w, two[1], NULL), EBB_ERR_TLS);
        assert_int_equal(server_stats(h).requests, 0);
    }
    serve_with(h, "foreign.pem", "foreign.key", NULL); /* by its name only, not by its number */
    trust(h, "other-ca.pem");
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_ERR_TLS);
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
}

static void a_server_may_ask_who_we_are(void **state) {
    http_world *h = *state;
    serve_with(h, "leaf.pem", "leaf.key", "ca.pem");
    trust(h, "ca.pem");
    assert_true(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL) != EBB_OK);
    assert_int_equal(server_stats(h).requests, 0);
    ebb_tls_opts tls = {
        .cert_file = file("someone.pem"), .key_file = file("someone.key"), .ca_file = file("ca.pem")};
    h->client = http_client(h, (ebb_http_client_opts){.tls = tls});
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
}

static void a_server_without_tls_is_said_so(void **state) {
    http_world *h = *state;
    trust(h, "ca.pem");
    ebb_status st = loop_await(h->w, get_from(h, "localhost", "/hello"), NULL);
    assert_true(st == EBB_ERR_TLS || st == EBB_ERR_HTTP_RESET);
}

static void http_and_https_are_two_origins(void **state) {
    http_world *h = *state;
    char plain[64];
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    trust(h, "ca.pem");
    snprintf(plain, sizeof plain, "http://localhost:%u/hello", h->port);
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
    assert_true(loop_await(h->w, ebb_http_get(http_cx(h), h->client, plain), NULL) != EBB_OK);
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
    assert_int_equal(server_stats(h).requests, 2);
}

/* ---- the system's certificates ---------------------------------------------------------------------------- */

enum { POOL = 16 }; /* more threads than libuv has by default */

typedef struct crowd {
    uv_sem_t go;
    ebb_future *busy[POOL];
} crowd;

static ebb_status stands(void *arg, ebb_value *v) {
    crowd *c = arg;
    (void)v;
    uv_sem_wait(&c->go);
    return EBB_OK;
}

/* No thread of the pool is left for anything else. */
static void fill_the_pool(http_world *h, crowd *c) {
    assert_int_equal(uv_sem_init(&c->go, 0), 0);
    for (int i = 0; i < POOL; i++) c->busy[i] = ebb_pool_run(http_cx(h), stands, c);
    loop_turns(h->w, 2);
}

static void leave_the_pool(http_world *h, crowd *c) {
    for (int i = 0; i < POOL; i++) uv_sem_post(&c->go);
    for (int i = 0; i < POOL; i++) assert_int_equal(loop_await(h->w, c->busy[i], NULL), EBB_OK);
    uv_sem_destroy(&c->go);
}

static void use_system(http_world *h, const char *store) {
    setenv("SSL_CERT_FILE", file(store), 1);
    setenv("SSL_CERT_DIR", "/nonexistent", 1);
    h->client = http_client(h, (ebb_http_client_opts){0});
}

static void the_loop_turns_while_the_systems_certificates_are_read(void **state) {
    http_world *h = *state;
    crowd c;
    probe first, second;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    fill_the_pool(h, &c);
    use_system(h, "ca.pem");
    ebb_future *f = get_from(h, "127.0.0.1", "/hello"), *g = get_from(h, "127.0.0.1", "/hello");
    probe_watch(&first, f);
    probe_watch(&second, g);
    loop_turns(h->w, 50);
    assert_false(first.over || second.over);
    assert_int_equal(server_stats(h).accepted, 0); /* they wait for the pool, and the loop does not */
    leave_the_pool(h, &c);
    loop_until(h->w, is_true, &first.over);
    loop_until(h->w, is_true, &second.over);
    assert_int_equal(first.status, EBB_OK);
    assert_int_equal(second.status, EBB_OK);
    ebb_value_discard(h->w->cx, first.value);
    ebb_value_discard(h->w->cx, second.value);
    ebb_future_drop(f);
    ebb_future_drop(g);
    assert_int_equal(loop_await(h->w, get_from(h, "localhost", "/hello"), NULL), EBB_OK);
}

static void strangers_are_not_trusted_by_default(void **state) {
    http_world *h = *state;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    use_system(h, "other-ca.pem");
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_ERR_TLS);
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_ERR_TLS);
}

static void a_call_may_be_given_up_while_they_are_read(void **state) {
    http_world *h = *state;
    crowd c;
    serve_with(h, "leaf.pem", "leaf.key", NULL);
    fill_the_pool(h, &c);
    use_system(h, "ca.pem");
    ebb_future *f = get_from(h, "127.0.0.1", "/hello");
    loop_turns(h->w, 2);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    ebb_future_drop(f);
    loop_turns(h->w, 2);
    leave_the_pool(h, &c);
    assert_int_equal(loop_await(h->w, get_from(h, "127.0.0.1", "/hello"), NULL), EBB_OK);
}

static ebb_status calls_from_a_region(ebb_cx *cx, void *arg) {
    http_world *h = arg;
    ebb_http_client *c;
    assert_int_equal(ebb_http_client_new(cx, NULL, &c), EBB_OK);
    snprintf(text, sizeof text, "https://127.0.0.1:%u/hello", h->port);
    return ebb_await(cx, ebb_http_get(cx, c, text), NULL);
}

static void a_client_may_end_while_they_are_read(void **state) {
    http_world *h = *state;
    for (int begun = 0; begun < 2; begun++) {
        crowd c;
        serve_with(h, "leaf.pem", "leaf.key", NULL);
        if (!begun) fill_the_pool(h, &c);
        ebb_region r = ebb_region_open(http_cx(h), NULL);
        (void)ebb_fiber_spawn(http_cx(h), r, calls_from_a_region, h);
        loop_turns(h->w, 2);
        ebb_region_cancel(http_cx(h), r, EBB_CANCEL_USER, "enough");
        while (!region_is_closed(h->w, r)) loop_turns(h->w, 1);
        assert_int_equal(ebb_region_join(h->w->cx, r), EBB_CANCELLED);
        if (!begun) leave_the_pool(h, &c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_TLS(many_calls_share_a_connection_by_alpn),
        ON_TLS(it_is_http_2),
        ON_TLS(cancelling_resets_the_stream),
        ON_TLS(a_handshake_that_nobody_waits_for_is_given_up),
        ON_TLS(whoever_is_not_the_one_we_wanted_gets_nothing),
        ON_TLS(a_server_may_ask_who_we_are),
        ON_TLS(a_server_without_tls_is_said_so),
        ON_TLS(http_and_https_are_two_origins),
        ON_TLS(the_loop_turns_while_the_systems_certificates_are_read),
        ON_TLS(strangers_are_not_trusted_by_default),
        ON_TLS(a_call_may_be_given_up_while_they_are_read),
        ON_TLS(a_client_may_end_while_they_are_read),
    };
    return cmocka_run_group_tests_name("http_client_tls", tests, make_certificates, remove_certificates);
}
