/* Without memory: a mount leaves nothing behind, and a request is refused or lost, and no more than that. */
#include "tests/support/serve_world.h"

/* ---- the n-th allocation of a mount ---------------------------------------------------------------------------------- */

static bool mounts_without(uint64_t n) {
    serve_world *s = serve_world_new("127.0.0.1");
    void *state = s;
    const char *const hosts[] = {"a.example", "b.example", NULL};
    const char *token = file_with(s->w, "token", TOKEN, 0600);
    s->w->memory.fail_at = s->w->memory.calls + n;
    const ebb_status st = serve_mount(s, (ebb_dashboard_opts){.token_file = token, .hosts = hosts});
    s->w->memory.fail_at = 0;
    assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
    if (st == EBB_OK) assert_int_equal(look(s, "/healthz"), 200);
    (void)serve_down(&state);
    return st == EBB_OK;
}

static void a_mount_without_memory_leaves_nothing(void **state) {
    uint64_t n = 1;
    (void)state;
    while (!mounts_without(n)) n++;
    assert_in_range(n, 4, 1000);
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static uint64_t calls, fail_at; /* of jansson, while a request is answered */
static bool counts;

static void *json_alloc(size_t n) {
    return counts && ++calls == fail_at ? NULL : malloc(n);
}

/* As ask(), whatever the outcome. The status; 0: there was no answer. */
static int try(serve_world *s, const char *method, const char *path, const char *body) {
    char url[256];
    const ebb_http_field headers[] = {{"authorization", "Bearer " TOKEN},
                                      {"content-type", "application/json"}};
    ebb_value v;
    ebb_http_call call = {.method = method, .url = url, .headers = headers, .headers_n = 2};
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", s->port, path);
    call.body = body;
    call.body_n = body != NULL ? strlen(body) : 0;
    ebb_status st = loop_await(s->w, ebb_http_fetch(ebb_loop_cx(s->w->loop), s->client, &call), &v);
    if (st != EBB_OK) return 0;
    const int status = ebb_http_response_of(&v)->status;
    ebb_value_discard(ebb_loop_cx(s->w->loop), v);
    return status;
}

static const struct {
    const char *method, *path, *body;
} requests[] = {
    {"GET", "/healthz", NULL},
    {"GET", "/metrics", NULL},
    {"GET", "/api/v1/live", NULL},
    {"GET", "/api/v1/http", NULL},
    {"GET", "/api/v1/workflows", NULL},
    {"GET", "/api/v1/instances?prefix=o&state=Running", NULL},
    {"GET", "/api/v1/instances/one", NULL},
    {"GET", "/api/v1/instances/one/history", NULL},
    {"POST", "/api/v1/instances", "{\"name\":\"order\",\"id\":\"one\",\"input\":[1,2,{\"a\":\"b\"}]}"},
    {"POST", "/api/v1/cancel", "{\"prefix\":\"nobody\"}"},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static void fill(serve_world *s) {
    assert_int_equal(change(s, "/api/v1/instances", requests[8].body), 201);
}

static void json_without_memory_is_an_answer(void **state) {
    serve_world *s = *state;
    fill(s);
    json_set_alloc_funcs(json_alloc, free);
    for (size_t i = 0; i < REQUESTS; i++) {
        int status = 0;
        fail_at = 0;
        do {
            fail_at++;
            calls = 0;
            counts = true;
            status = try(s, requests[i].method, requests[i].path, requests[i].body);
            counts = false;
            /* 400: jansson can't tell the parse that ran out of memory from one that found nothing */
            if (status != 200 && status != 201 && status != 503 && status != 400)
                fail_msg("%s, allocation %llu: %d", requests[i].path, (unsigned long long)fail_at, status);
        } while (calls >= fail_at);
        assert_in_range(status, 200, 201);
    }
    json_set_alloc_funcs(malloc, free);
}

static void a_request_without_memory_harms_nobody(void **state) {
    serve_world *s = *state;
    fill(s);
    for (size_t i = 0; i < REQUESTS; i++) {
        for (uint64_t n = 1; n < 60; n++) {
            s->w->memory.fail_at = s->w->memory.calls + n;
            (void)try(s, requests[i].method, requests[i].path, requests[i].body);
            s->w->memory.fail_at = 0;
        }
        assert_in_range(try(s, requests[i].method, requests[i].path, requests[i].body), 200, 201);
    }
}

/* Begun, or read, without the n-th allocation: after that the next capture is as good as any. */
static void a_capture_without_memory_harms_nobody(void **state) {
    static const char *const reads[] = {"/api/v1/trace", "/api/v1/trace/chrome"};
    serve_world *s = *state;
    for (uint64_t n = 1; n < 60; n++) {
        s->w->memory.fail_at = s->w->memory.calls + n;
        (void)try(s, "POST", "/api/v1/trace/start", "{}");
        s->w->memory.fail_at = 0;
        const int status = try(s, "POST", "/api/v1/trace/stop", "{}");
        assert_true(status == 200 || status == 404);
    }
    assert_int_equal(try(s, "POST", "/api/v1/trace/start", "{}"), 202);
    assert_int_equal(try(s, "POST", "/api/v1/trace/stop", "{}"), 200);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        for (uint64_t n = 1; n < 80; n++) {
            s->w->memory.fail_at = s->w->memory.calls + n;
            (void)try(s, "GET", reads[i], NULL);
            s->w->memory.fail_at = 0;
        }
        assert_int_equal(try(s, "GET", reads[i], NULL), 200);
    }
    assert_int_equal(try(s, "POST", "/api/v1/trace/start", "{}"), 202); /* nobody reads any more */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mount_without_memory_leaves_nothing),
        DURABLE(json_without_memory_is_an_answer),
        DURABLE(a_request_without_memory_harms_nobody),
        SERVED(a_capture_without_memory_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
