/* What a trace calls the tasks of requests: by their routes, whatever has become of the server that had these. */
#include <stdio.h>

#include "tests/support/trace_build.h"
#include <ebb/http.h>
#include <ebb/trace.h>
#include <ebb/workflow.h>

enum { STRINGS = 1024, SERVERS = 3 };

static const char *const patterns[SERVERS] = {"/first", "/other", "/first"};

typedef struct recorded {
    char at[1 << 20];
    size_t n;
} recorded;

static void keep(void *ctx, const void *piece, size_t n) {
    recorded *b = ctx;
    assert_true(n <= sizeof b->at - b->n);
    memcpy(b->at + b->n, piece, n);
    b->n += n;
}

static ebb_status hello(ebb_cx *cx, ebb_http *x, void *arg) {
    (void)arg;
    return ebb_http_text(cx, x, 200, "hello");
}

/* A server with one route, and a call of it; both end with the region. */
static ebb_status serve_once(ebb_cx *cx, void *arg) {
    const char *const *pattern = arg;
    char url[64];
    ebb_http_server *server;
    ebb_http_client *client;
    ebb_http_server_opts opts = {.address = {"127.0.0.1", 0}};
    assert_int_equal(ebb_http_listen(cx, &opts, &server), EBB_OK);
    assert_int_equal(ebb_http_on(server, "GET", *pattern, hello, NULL), EBB_OK);
    assert_int_equal(ebb_http_server_address(cx, server, &opts.address), EBB_OK);
    assert_int_equal(ebb_http_client_new(cx, NULL, &client), EBB_OK);
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", opts.address.port, *pattern);
    assert_int_equal(ebb_await(cx, ebb_http_get(cx, client, url), NULL), EBB_OK);
    ebb_region_cancel(cx, ebb_cx_region(cx), EBB_CANCEL_USER, "enough");
    return EBB_OK;
}

static ebb_status one_after_the_other(ebb_cx *cx, void *arg) {
    (void)arg;
    for (int i = 0; i < SERVERS; i++) {
        ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        ebb_fiber_spawn(cx, r, serve_once, (void *)(uintptr_t)&patterns[i]);
        (void)ebb_region_join(cx, r);
    }
    return EBB_OK;
}

/* The text that belongs to the event before. */
static void text_of(ebb_trace_reader *r, char *out, size_t room) {
    ebb_trace_reader ahead = *r;
    ebb_event ev;
    size_t n = 0;
    while (ebb_trace_reader_next(&ahead, &ev) == EBB_OK && ev.type == EBB_EV_TEXT) {
        n += (size_t)snprintf(out + n, room - n, "%s", ev.text);
        *r = ahead;
    }
}

static void a_route_is_named_as_it_is_after_other_servers(void **state) {
    static recorded trace;
    static char strings[STRINGS][64];
    ebb_service_opts opts = {.loop.runtime.allocator = libc_allocator()};
    opts.loop.runtime.trace = (ebb_recording){.bytes = 1 << 20, .write = keep, .ctx = &trace};
    int served = 0;
    ebb_trace_reader r;
    ebb_event ev;
    (void)state;
    assert_int_equal(ebb_service_run(&opts, one_after_the_other, NULL), EBB_SERVICE_OK);
    assert_int_equal(ebb_trace_reader_open(&r, trace.at, trace.n), EBB_OK);
    while (ebb_trace_reader_next(&r, &ev) == EBB_OK) {
        if (ev.type == EBB_EV_STRING) text_of(&r, strings[ev.value], sizeof strings[0]);
        if (ev.type != EBB_EV_TASK_SPAWNED || strncmp(strings[ev.site], "GET ", 4) != 0) continue;
        assert_true(served < SERVERS);
        assert_string_equal(strings[ev.site] + 4, patterns[served++]);
    }
    assert_int_equal(served, SERVERS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_route_is_named_as_it_is_after_other_servers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
