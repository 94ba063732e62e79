/* What a request gives: every refusal says what, where and what was expected. */
#include "tests/support/serve_world.h"

static char *nested(size_t depth) {
    char *text = malloc(2 * depth + 32);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "{\"name\":\"order\",\"input\":");
    memset(text + n, '[', depth);
    memset(text + n + depth, ']', depth);
    memcpy(text + n + 2 * depth, "}", 2);
    return text;
}

static void a_body_that_is_no_json_is_refused_with_its_place(void **state) {
    serve_world *s = *state;
    static const struct {
        const char *body;
        int line, column;
    } bad[] = {{"{", 1, 1},
               {"{\"name\" \"order\"}", 1, 15},
               {"{\"name\":\"order\",\n \"id\":}", 2, 7},
               {"{\"name\":\"order\"} x", 1, 18},
               {"{\"name\":\"order\",\"name\":\"row\"}", 1, 22},
               {"{\"name\":\"\xff\"}", 1, 9},
               {"{\"name\":99999999999999999999}", 1, 28},
               {"nope", 1, 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(change(s, "/api/v1/instances", bad[i].body), 400);
        assert_string_equal(said(s, "error.code"), "malformed_body");
        assert_string_equal(said(s, "error.expected"), "a JSON object");
        assert_int_equal(said_number(s, "error.line"), bad[i].line);
        assert_int_equal(said_number(s, "error.column"), bad[i].column);
    }
    static const char *const others[] = {"[]", "\"text\"", "7", "null", "true", "1.5"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(change(s, "/api/v1/instances", others[i]), 400);
        assert_string_equal(said(s, "error.expected"), "a JSON object");
        assert_null(member(s->said, "error.line"));
    }
}

static void a_member_that_is_wrong_is_named_with_what_was_expected(void **state) {
    serve_world *s = *state;
    static const struct {
        const char *body, *where, *expected, *message;
    } bad[] = {
        {"{}", "/name", "a string of 1 to 255 bytes", "'name' is missing"},
        {"{\"name\":7}", "/name", "a string of 1 to 255 bytes", "'name' is a number"},
        {"{\"name\":\"\"}", "/name", "a string of 1 to 255 bytes", "'name' is a string of 0 bytes"},
        {"{\"name\":\"a\\u0000b\"}", "/name", "a string of 1 to 255 bytes", "'name' is a string with a NUL"},
        {"{\"name\":\"a\",\"version\":\"1\"}", "/version", "a whole number from 1 to 4294967295",
         "'version' is a string"},
        {"{\"name\":\"a\",\"version\":1.5}", "/version", "a whole number from 1 to 4294967295",
         "'version' is a number with a fraction"},
        {"{\"name\":\"a\",\"version\":0}", "/version", "a whole number from 1 to 4294967295",
         "'version' is 0"},
        {"{\"name\":\"a\",\"version\":-1}", "/version", "a whole number from 1 to 4294967295",
         "'version' is less than 0"},
        {"{\"name\":\"a\",\"version\":4294967296}", "/version", "a whole number from 1 to 4294967295",
         "'version' is 4294967296"},
        {"{\"name\":\"a\",\"reuse\":\"true\"}", "/reuse", "true or false", "'reuse' is a string"},
        {"{\"name\":\"a\",\"nmae\":1}", "/nmae", "name, id, version, input, reuse",
         "'nmae' is not known here"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(change(s, "/api/v1/instances", bad[i].body), 400);
        assert_string_equal(said(s, "error.where"), bad[i].where);
        assert_string_equal(said(s, "error.expected"), bad[i].expected);
        assert_string_equal(said(s, "error.message"), bad[i].message);
    }
    assert_int_equal(change(s, "/api/v1/cancel", "{\"state\":\"Running,Dead\"}"), 400);
    assert_string_equal(said(s, "error.message"), "'state' is Running,Dead");
    assert_int_equal(change(s, "/api/v1/instances/x/resume", "{\"a\":1}"), 400);
    assert_string_equal(said(s, "error.expected"), "nothing");
}

static void a_parameter_that_is_wrong_is_named_with_what_was_expected(void **state) {
    serve_world *s = *state;
    static const struct {
        const char *query, *where, *expected, *message;
    } bad[] = {
        {"most=0", "query parameter 'most'", "a whole number from 1 to 200", "'most' is 0"},
        {"most=201", "query parameter 'most'", "a whole number from 1 to 200", "'most' is 201"},
        {"most=", "query parameter 'most'", "a whole number from 1 to 200", "'most' is "},
        {"most=5x", "query parameter 'most'", "a whole number from 1 to 200", "'most' is 5x"},
        {"most=-1", "query parameter 'most'", "a whole number from 1 to 200", "'most' is -1"},
        {"most=99999999999999999999", "query parameter 'most'", "a whole number from 1 to 200",
         "'most' is 99999999999999999999"},
        {"started_after=9223372036854775808", "query parameter 'started_after'",
         "a whole number from 0 to 9223372036854775807", "'started_after' is 9223372036854775808"},
        {"most=1&most=2", "query parameter 'most'", "a whole number from 1 to 200", "'most' is given twice"},
        {"state=running,", "query parameter 'state'",
         "Running, Suspended, Completed, Failed, Cancelled or Terminated, separated by commas",
         "'state' is running,"},
        {"name=", "query parameter 'name'", "a string of 1 to 255 bytes", "'name' is a string of 0 bytes"},
        {"x=1", "query parameter 'x'",
         "name, prefix, parent, state, started_after, ended_before, after, most", "'x' is not known here"},
        {"name=%zz", "query", "two hexadecimal digits after each %, not 00",
         "the query has a % that escapes nothing"},
        {"name=a%00", "query", "two hexadecimal digits after each %, not 00",
         "the query has a % that escapes nothing"},
        {"name=%4", "query", "two hexadecimal digits after each %, not 00",
         "the query has a % that escapes nothing"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[256];
        snprintf(path, sizeof path, "/api/v1/instances?%s", bad[i].query);
        assert_int_equal(look(s, path), 400);
        assert_string_equal(said(s, "error.where"), bad[i].where);
        assert_string_equal(said(s, "error.expected"), bad[i].expected);
        assert_string_equal(said(s, "error.message"), bad[i].message);
    }
    assert_int_equal(look(s, "/healthz?a=1"), 400);
    assert_string_equal(said(s, "error.expected"), "nothing");
    assert_int_equal(look(s, "/healthz?&&"), 200);
    assert_int_equal(look(s, "/api/v1/instances?most=200&&n%61me=a+b%20c&state=running,FAILED"), 404);
    assert_string_equal(said(s, "error.code"), "no_store");
}

static void deep_and_large_bodies_are_refused(void **state) {
    serve_world *s = *state;
    char *deep = nested(63);
    assert_int_equal(change(s, "/api/v1/instances", deep), 404); /* all is well but for the store */
    free(deep);
    for (size_t depth = 64; depth < 3000000; depth *= 30) {
        deep = nested(depth);
        assert_int_equal(change(s, "/api/v1/instances", deep), depth < 1000000 ? 400 : 413);
        assert_int_equal(strncmp(said(s, "error.message"),
                                 depth < 1000000 ? "the body is nested deeper than 64 levels"
                                                 : "the body has more than 2162688 bytes",
                                 36),
                         0);
        free(deep);
    }
    const size_t most = 2162688;
    char *large = malloc(most + 2);
    assert_non_null(large);
    memset(large, ' ', most + 1);
    memcpy(large, "{\"name\":\"a\"}", 12);
    large[most] = 0;
    assert_int_equal(change(s, "/api/v1/instances", large), 404);
    large[most] = ' ', large[most + 1] = 0;
    assert_int_equal(change(s, "/api/v1/instances", large), 413);
    assert_string_equal(said(s, "error.code"), "body_too_large");
    free(large);
}

static void a_body_is_of_json_or_there_is_none(void **state) {
    serve_world *s = *state;
    static const char *const types[] = {"text/plain", "application/x-www-form-urlencoded",
                                        "application/jsonx", "multipart/form-data; boundary=x"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        serve_ask how = {.token = TOKEN, .body = "{}", .type = types[i]};
        assert_int_equal(ask(s, "POST", "/api/v1/cancel", how), 415);
        assert_string_equal(said(s, "error.expected"), "application/json");
    }
    serve_ask how = {.token = TOKEN, .body = "{\"name\":\"a\"}", .type = "Application/JSON; charset=utf-8"};
    assert_int_equal(ask(s, "POST", "/api/v1/instances", how), 404);
    assert_int_equal(change(s, "/api/v1/instances", NULL), 400);
    assert_string_equal(said(s, "error.message"), "'name' is missing");
    assert_int_equal(change(s, "/api/v1/cancel?dry_run=true", "{\"all\":true}"), 400);
    assert_string_equal(said(s, "error.code"), "unknown_name");
    assert_string_equal(said(s, "error.where"), "query");
    assert_string_equal(said(s, "error.message"), "'dry_run=true' is not known here");
}

static void paths_lead_to_no_file(void **state) {
    serve_world *s = *state;
    static const char *const paths[] = {"/../etc/passwd",
                                        "/..%2f..%2fetc%2fpasswd",
                                        "/api/v1/../../../etc/passwd",
                                        "/openapi.json/..",
                                        "//etc/passwd",
                                        "/%2e%2e/%2e%2e/etc/passwd",
                                        "/\\..\\etc",
                                        "/api/v1/instances/..%2f..%2fetc",
                                        "/healthz%00"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char request[400];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
                 paths[i]);
        char *got = raw(s, request);
        const int status = atoi(got + strlen("HTTP/1.1 "));
        assert_true(status == 404 || status == 400);
        assert_null(strstr(got, "root:"));
        free(got);
    }
}

static void the_page_and_its_files_come_from_memory(void **state) {
    serve_world *s = *state;
    char *got = raw(s, "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_non_null(strstr(got, "content-type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(got, "content-security-policy: default-src 'none'; script-src 'self'; "));
    assert_non_null(strstr(got, "</html>"));
    for (char *at = got; (at = strstr(at, "=\"assets/")) != NULL;
         at++) { /* each file that it names is there */
        char path[100];
        snprintf(path, sizeof path, "/%.*s", (int)strcspn(at + 2, "\""), at + 2);
        assert_int_equal(look(s, path), 200);
    }
    assert_int_equal(look(s, "/assets/main.js"), 200);
    for (char *at = s->text; (at = strstr(at, "from './")) != NULL; at++) {
        char path[100];
        snprintf(path, sizeof path, "/assets/%.*s", (int)strcspn(at + 8, "'"), at + 8);
        char *text = strdup(s->text);
        const size_t offset = (size_t)(at - s->text);
        assert_int_equal(look(s, path), 200);
        free(s->text);
        s->text = text;
        at = text + offset;
    }
    assert_int_equal(look(s, "/assets/passwd"), 404);
    assert_string_equal(said(s, "error.code"), "no_such_file");
    free(got);
}

static void answers_are_not_stored_sniffed_or_framed(void **state) {
    serve_world *s = *state;
    char *got = raw(s, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_non_null(strstr(got, "cache-control: no-store\r\n"));
    assert_non_null(strstr(got, "x-content-type-options: nosniff\r\n"));
    assert_non_null(strstr(got, "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n"));
    assert_non_null(strstr(got, "content-type: application/json\r\n"));
    free(got);
    got = raw(s, "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_int_equal(strncmp(got, "HTTP/1.1 200", 12), 0);
    assert_null(strchr(got, '{'));
    free(got);
    got =
        raw(s, "PUT /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    assert_int_equal(strncmp(got, "HTTP/1.1 405", 12), 0);
    free(got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(a_body_that_is_no_json_is_refused_with_its_place),
        SERVED(a_member_that_is_wrong_is_named_with_what_was_expected),
        SERVED(a_parameter_that_is_wrong_is_named_with_what_was_expected),
        SERVED(deep_and_large_bodies_are_refused),
        SERVED(a_body_is_of_json_or_there_is_none),
        SERVED(paths_lead_to_no_file),
        SERVED(the_page_and_its_files_come_from_memory),
        SERVED(answers_are_not_stored_sniffed_or_framed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
