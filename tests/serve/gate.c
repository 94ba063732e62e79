/* Who may ask: hosts, origins, tokens, rates; and what a mount refuses. */
#include "tests/support/serve_world.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int post(serve_world *s, const char *token) {
    return ask(s, "POST", "/api/v1/regions/1.1.1/cancel", (serve_ask){.token = token, .body = "{}"});
}

static void changes_need_the_token_and_reads_do_not(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/api/v1/live"), 200);
    assert_int_equal(post(s, NULL), 401);
    assert_string_equal(said(s, "error.code"), "no_token");
    static const char *const wrong[] = {"x", "0123456789abcdef-toke", (TOKEN "n"), ("x" TOKEN),
                                        "0123456789abcdef-Token"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(post(s, wrong[i]), 401);
        assert_string_equal(said(s, "error.code"), "wrong_token");
        assert_string_equal(said(s, "error.expected"), "Bearer TOKEN");
    }
    assert_int_equal(post(s, TOKEN), 404); /* the region, that is */
}

static void without_a_token_file_nothing_changes(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){0}), EBB_OK);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    assert_int_equal(post(s, TOKEN), 403);
    assert_string_equal(said(s, "error.code"), "read_only");
    assert_int_equal(post(s, "x"), 403);
    *state = s;
    (void)serve_down(state);
}

static void on_other_addresses_reads_need_the_token_too(void **state) {
    serve_world *s = serve_world_new("0.0.0.0");
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){0}), EBB_ERR_INVALID);
    assert_string_equal(
        ebb_dashboard_error(),
        "the server listens on 0.0.0.0, which is not a loopback address: it needs a token file");
    assert_int_equal(look(s, "/healthz"), 404);
    const char *path = file_with(s->w, "token", TOKEN "\n", 0600);
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = path}), EBB_OK);
    static const char *const open[] = {"/healthz", "/readyz", "/openapi.json"};
    static const char *const closed[] = {"/metrics", "/api/v1/live", "/api/v1/http", "/api/v1/workflows",
                                         "/api/v1/instances"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) assert_int_equal(look(s, open[i]), 200);
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        assert_int_equal(look(s, closed[i]), 401);
        assert_int_not_equal(ask(s, "GET", closed[i], (serve_ask){.token = TOKEN}), 401);
    }
    *state = s;
    (void)serve_down(state);
}

static void token_files_are_refused_by_name(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    char most[EBB_MESSAGE_MAX + 300];
    memset(most, 'x', sizeof most);
    most[256] = 0;
    const struct {
        const char *text, *error;
        mode_t mode;
    } bad[] = {{TOKEN, "has mode 0640: others may use it", 0640},
               {TOKEN, "has mode 0604: others may use it", 0604},
               {"0123456789abcde\nmore", "a token of 15 characters: 16 to 256 are allowed", 0600},
               {"", "a token of 0 characters", 0600},
               {"0123456789 abcdef", "a token with byte 32: printable ASCII is allowed", 0600},
               {"0123456789\xc3\xa4"
                "abcdef",
                "a token with byte 195", 0600}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = file_with(s->w, "bad", bad[i].text, bad[i].mode);
        assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = path}), EBB_ERR_INVALID);
        assert_non_null(strstr(ebb_dashboard_error(), path));
        assert_non_null(strstr(ebb_dashboard_error(), bad[i].error));
    }
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = "/nowhere/token"}), EBB_ERRNO(ENOENT));
    assert_non_null(strstr(ebb_dashboard_error(), "token file /nowhere/token: "));
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = "/tmp"}), EBB_ERR_INVALID);
    most[256] = 'x', most[257] = 0;
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = file_with(s->w, "long", most, 0600)}),
                     EBB_ERR_INVALID);
    most[256] = 0;
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = file_with(s->w, "most", most, 0600)}),
                     EBB_OK);
    assert_int_equal(post(s, most), 404);
    *state = s;
    (void)serve_down(state);
}

/* Only root can have it: others can't even read such a file. */
static void a_token_file_of_another_user_is_refused(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    const char *path = file_with(s->w, "token", TOKEN, 0600);
    *state = s;
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = path}), EBB_ERR_INVALID);
        assert_non_null(strstr(ebb_dashboard_error(), "is owned by user 12345, not by user 0"));
        assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    }
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.token_file = path}), EBB_OK);
    (void)serve_down(state);
}

static void other_options_are_refused_by_name(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    static const char *const prefixes[] = {
        "ops",   "/",     "/ops/",
        "/a//b", "/:a",   "/a*",
        "/a?b",  "/a%20", "/01234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.prefix = prefixes[i]}), EBB_ERR_INVALID);
        assert_non_null(strstr(ebb_dashboard_error(), "is not valid: at most 64 bytes"));
    }
    const char *const hosts[] = {"good.example", "bad.example:80", NULL};
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.hosts = hosts}), EBB_ERR_INVALID);
    assert_string_equal(ebb_dashboard_error(), "host 'bad.example:80' is not valid: a name without a port");
    const char *many[18] = {NULL};
    for (int i = 0; i < 17; i++) many[i] = "a.example";
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.hosts = many}), EBB_ERR_INVALID);
    assert_string_equal(ebb_dashboard_error(), "more than 16 hosts");
    assert_int_equal(ebb_dashboard_mount(ebb_loop_cx(s->w->loop), NULL, NULL), EBB_ERR_INVALID);
    many[16] = NULL;
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.hosts = many}), EBB_OK);
    *state = s;
    (void)serve_down(state);
}

/* ---- hosts and origins ----------------------------------------------------------------------------------------- */

static int status_with_host(serve_world *s, const char *host) {
    char request[400];
    snprintf(request, sizeof request, "GET /api/v1/http HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n\r\n",
             host);
    char *got = raw(s, request);
    int status = atoi(got + strlen("HTTP/1.1 "));
    free(got);
    return status;
}

static void a_name_that_is_not_ours_is_refused(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    const char *const hosts[] = {"ops.example", NULL};
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.prefix = "", .hosts = hosts}), EBB_OK);
    static const char *const good[] = {"127.0.0.1",   "127.0.0.1:8080", "localhost",
                                       "LOCALHOST:1", "[::1]:80",       "[::1]",
                                       "10.1.2.3:80", "ops.example",    "Ops.Example:443"};
    static const char *const bad[] = {"evil.example",
                                      "evil.example:80",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "ops.example.evil",
                                      "xops.example",
                                      "[::1",
                                      "127.0.0.1:x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(status_with_host(s, good[i]), 200);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int status = status_with_host(s, bad[i]);
        if (status != 400) assert_int_equal(status, 421); /* 400: not even a host */
    }
    assert_int_equal(status_with_host(s, "evil.example"), 421);
    *state = s;
    (void)serve_down(state);
}

static void a_page_of_another_origin_is_refused(void **state) {
    serve_world *s = *state;
    char own[64], other_port[64];
    snprintf(own, sizeof own, "http://127.0.0.1:%u", s->port);
    snprintf(other_port, sizeof other_port, "http://127.0.0.1:%u", s->port ^ 1);
    const char *const bad[] = {"http://evil.example", "null",    "",        other_port,
                               "http://127.0.0.1",    "file://", "https://"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.origin = bad[i]}), 403);
        assert_string_equal(said(s, "error.code"), "wrong_origin");
        assert_int_equal(ask(s, "POST", "/api/v1/cancel", (serve_ask){.origin = bad[i], .token = TOKEN}),
                         403);
    }
    assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.origin = own}), 200);
    snprintf(own, sizeof own, "https://127.0.0.1:%u", s->port); /* a proxy with TLS in front */
    assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.origin = own}), 200);
}

static void a_page_of_another_site_may_follow_links_only(void **state) {
    serve_world *s = *state;
    static const char *const bad[] = {"cross-site", "same-site", "", "Cross-Site", "same-origin-not"};
    static const char *const good[] = {"same-origin", "none"};
    char own[64];
    snprintf(own, sizeof own, "http://127.0.0.1:%u", s->port);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.site = bad[i]}), 403);
        assert_string_equal(said(s, "error.code"), "wrong_origin");
        assert_string_equal(said(s, "error.where"), "header 'sec-fetch-site'");
        assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.site = bad[i], .origin = own}), 403);
        assert_int_equal(ask(s, "GET", "/", (serve_ask){.site = bad[i]}), 200);
        assert_int_equal(ask(s, "GET", "/healthz", (serve_ask){.site = bad[i]}), 200);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(ask(s, "GET", "/api/v1/live", (serve_ask){.site = good[i], .origin = own}), 200);
}

/* ---- rates --------------------------------------------------------------------------------------------------------- */

static void reads_and_changes_have_rates_of_their_own(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    const char *path = file_with(s->w, "token", TOKEN, 0600);
    ebb_dashboard_opts opts = {.token_file = path, .reads_second = 1200, .changes_second = 3};
    assert_int_equal(serve_mount(s, opts), EBB_OK);
    int shed = 0, tries = 0;
    for (; shed == 0 && tries < 1000; tries++) shed += look(s, "/api/v1/live") == 429;
    assert_int_equal(shed, 1);
    assert_in_range(tries, 3, 999); /* two at once: each counts as 500 */
    assert_string_equal(said(s, "error.message"),
                        "more than 1200 reads a second, of which this one counts as 500");
    assert_int_equal(post(s, TOKEN), 404); /* changes have their own */
    for (shed = 0, tries = 0; shed == 0 && tries < 1000; tries++) shed += post(s, TOKEN) == 429;
    assert_int_equal(shed, 1);
    assert_int_equal(post(s, "wrong-wrong-wrong-wrong"), 401); /* a stranger takes nothing of it */
    *state = s;
    (void)serve_down(state);
}

static void strangers_take_nothing_of_the_reads(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.reads_second = 3}), EBB_OK);
    int shed = 0;
    for (int tries = 0; shed == 0 && tries < 2000; tries++) shed += look(s, "/healthz") == 429;
    assert_int_equal(shed, 1);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    *state = s;
    (void)serve_down(state);
}

static void a_rate_below_a_cost_lets_one_pass(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.reads_second = 1}), EBB_OK);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    *state = s;
    (void)serve_down(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(changes_need_the_token_and_reads_do_not),
        cmocka_unit_test(without_a_token_file_nothing_changes),
        cmocka_unit_test(on_other_addresses_reads_need_the_token_too),
        cmocka_unit_test(token_files_are_refused_by_name),
        cmocka_unit_test(a_token_file_of_another_user_is_refused),
        cmocka_unit_test(other_options_are_refused_by_name),
        cmocka_unit_test(a_name_that_is_not_ours_is_refused),
        SERVED(a_page_of_another_origin_is_refused),
        SERVED(a_page_of_another_site_may_follow_links_only),
        cmocka_unit_test(reads_and_changes_have_rates_of_their_own),
        cmocka_unit_test(strangers_take_nothing_of_the_reads),
        cmocka_unit_test(a_rate_below_a_cost_lets_one_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
