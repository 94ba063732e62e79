/* The header traceparent: taken from a request, known to all below its exchange, and passed on by the client. */
#include "tests/support/http_client_world.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SPAN   "b7ad6b7169203331"
#define HEADER "00-" TRACE "-" SPAN "-01"

static const char *text_of(const ebb_traceparent *t, char out[EBB_TRACEPARENT_TEXT + 1]) {
    if (t == NULL) return "none";
    ebb_traceparent_text(t, out);
    return out;
}

/* Says the context of the request. */
static ebb_status on_seen(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[EBB_TRACEPARENT_TEXT + 1];
    (void)arg;
    return ebb_http_text(cx, x, 200, text_of(ebb_http_trace(x), text));
}

/* Says the context of a task in a region below. */
static ebb_status look(ebb_cx *cx, void *out) {
    ebb_traceparent t;
    if (ebb_cx_traceparent(cx, &t)) ebb_traceparent_text(&t, out);
    return EBB_OK;
}

static ebb_status on_below(ebb_cx *cx, ebb_http *x, void *arg) {
    char text[EBB_TRACEPARENT_TEXT + 1] = "none";
    (void)arg;
    ebb_region r = ebb_region_open(cx, NULL);
    (void)ebb_spawn(cx, r, look, text);
    ebb_status st = ebb_region_join(cx, r);
    return st == EBB_OK ? ebb_http_text(cx, x, 200, text) : st;
}

/* Asks another path, and says what that has seen. Twice, with a blank between. */
static ebb_status on_asks(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    char to[96], text[200];
    size_t n = 0;
    ebb_status st = EBB_OK;
    snprintf(to, sizeof to, "http://127.0.0.1:%u/seen", h->port);
    for (int i = 0; i < 2 && st == EBB_OK; i++) {
        ebb_value v;
        st = ebb_await(cx, ebb_http_get(cx, h->client, to), &v);
        if (st != EBB_OK) return st;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " " : "",
                              ebb_http_response_of(&v)->body);
        ebb_value_discard(cx, v);
    }
    return ebb_http_text(cx, x, 200, text);
}

/* The call has a header of its own. */
static ebb_status on_sets(ebb_cx *cx, ebb_http *x, void *arg) {
    http_world *h = arg;
    char to[96];
    ebb_http_field own = {"Traceparent", "00-" TRACE "-aaaaaaaaaaaaaaaa-00"};
    ebb_http_call call = {.url = to, .headers = &own, .headers_n = 1};
    ebb_value v;
    snprintf(to, sizeof to, "http://127.0.0.1:%u/seen", h->port);
    ebb_status st = ebb_await(cx, ebb_http_fetch(cx, h->client, &call), &v);
    if (st != EBB_OK) return st;
    st = ebb_http_text(cx, x, 200, ebb_http_response_of(&v)->body);
    ebb_value_discard(cx, v);
    return st;
}

static int up(void **state, bool h2) {
    static const struct {
        const char *path;
        ebb_http_handler_fn fn;
    } routes[] = {{"/seen", on_seen}, {"/below", on_below}, {"/asks", on_asks}, {"/sets", on_sets}};
    int failed = http_up(state, h2);
    http_world *h = *state;
    for (size_t i = 0; failed == 0 && i < sizeof routes / sizeof *routes; i++) {
        assert_int_equal(ebb_http_on(h->server, "GET", routes[i].path, routes[i].fn, h), EBB_OK);
    }
    return failed;
}
static int up_1(void **state) {
    return up(state, false);
}
static int up_2(void **state) {
    return up(state, true);
}

/* Asks with these headers; the body goes to `out`. */
static void ask(http_world *h, const char *path, const char *const *headers, size_t n, char out[200]) {
    ebb_http_field fields[4];
    ebb_value v;
    for (size_t i = 0; i < n; i++) fields[i] = (ebb_http_field){"traceparent", headers[i]};
    ebb_http_call call = {.url = url(h, path), .headers = fields, .headers_n = n};
    assert_int_equal(loop_await(h->w, ebb_http_fetch(http_cx(h), h->client, &call), &v), EBB_OK);
    assert_int_equal(ebb_http_response_of(&v)->status, 200);
    snprintf(out, 200, "%s", ebb_http_response_of(&v)->body);
    ebb_value_discard(h->w->cx, v);
}

static void a_request_brings_its_context(void **state) {
    const char *header = HEADER;
    char text[200];
    ask(*state, "/seen", &header, 1, text);
    assert_string_equal(text, HEADER);
    ask(*state, "/below", &header, 1, text);
    assert_string_equal(text, HEADER);
    assert_int_equal(server_stats(*state).bad_traces, 0);
}

static void one_without_has_none(void **state) {
    char text[200];
    ask(*state, "/seen", NULL, 0, text);
    assert_string_equal(text, "none");
    ask(*state, "/below", NULL, 0, text);
    assert_string_equal(text, "none");
    ask(*state, "/asks", NULL, 0, text);
    assert_string_equal(text, "none none");
    assert_int_equal(server_stats(*state).bad_traces, 0);
}

static void one_that_is_not_valid_is_ignored_and_counted(void **state) {
    const char *bad = "00-" TRACE "-" SPAN "-01-more", *two[] = {HEADER, HEADER};
    char text[200];
    ask(*state, "/seen", &bad, 1, text);
    assert_string_equal(text, "none");
    assert_int_equal(server_stats(*state).bad_traces, 1);
    ask(*state, "/asks", two, 2, text);
    assert_string_equal(text, "none none");
    assert_int_equal(server_stats(*state).bad_traces, 2);
}

static void each_call_of_a_handler_has_a_span_of_its_own(void **state) {
    const char *header = HEADER;
    char text[200];
    ebb_traceparent first, second;
    ask(*state, "/asks", &header, 1, text);
    assert_int_equal(strlen(text), 2 * EBB_TRACEPARENT_TEXT + 1);
    assert_int_equal(ebb_traceparent_parse(text, EBB_TRACEPARENT_TEXT, &first), EBB_OK);
    assert_int_equal(ebb_traceparent_parse(text + EBB_TRACEPARENT_TEXT + 1, EBB_TRACEPARENT_TEXT, &second),
                     EBB_OK);
    assert_memory_equal(text, "00-" TRACE "-", 36);
    assert_memory_equal(second.trace, first.trace, sizeof first.trace);
    assert_memory_not_equal(second.span, first.span, sizeof first.span);
    assert_null(strstr(text, SPAN));
    assert_int_equal(first.flags, 1);
}

static void the_callers_own_header_stays(void **state) {
    const char *header = HEADER;
    char text[200];
    ask(*state, "/sets", &header, 1, text);
    assert_string_equal(text, "00-" TRACE "-aaaaaaaaaaaaaaaa-00");
}

#define EACH(test)                                                                                           \
    {#test " (HTTP/1)", test, up_1, http_down, NULL}, {                                                      \
#test " (HTTP/2)", test, up_2, http_down, NULL                                                       \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(a_request_brings_its_context),
        EACH(one_without_has_none),
        EACH(one_that_is_not_valid_is_ignored_and_counted),
        EACH(each_call_of_a_handler_has_a_span_of_its_own),
        EACH(the_callers_own_header_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
