/* Captures: a trace that begins in the middle of a run, keeps every rule of the checker, and has its bounds. */
#include "tests/support/serve_world.h"

#include "kernel/layer.h"
#include <ebb/trace.h>

#define HEADER "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

typedef struct file {
    char *bytes;
    size_t n;
} file;

/* What a capture has; fails if it breaks a rule. */
typedef struct tally {
    size_t of[EBB_EV_MAX], events;
} tally;

static int get_file(serve_world *s, const char *token, file *out) {
    char url[128], bearer[64];
    ebb_http_field header = {"authorization", bearer};
    ebb_http_call call = {.url = url, .headers = &header, .headers_n = token != NULL};
    ebb_value v;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/api/v1/trace", s->port);
    snprintf(bearer, sizeof bearer, "Bearer %s", token != NULL ? token : "");
    assert_int_equal(loop_await(s->w, ebb_http_fetch(ebb_loop_cx(s->w->loop), s->client, &call), &v), EBB_OK);
    const ebb_http_response *r = ebb_http_response_of(&v);
    const int status = r->status;
    *out = (file){malloc(r->body_n + 1), r->body_n};
    assert_non_null(out->bytes);
    memcpy(out->bytes, r->body, r->body_n);
    ebb_value_discard(ebb_loop_cx(s->w->loop), v);
    return status;
}

static tally check(const file *f) {
    tally t = {.events = 0};
    ebb_trace_reader r;
    ebb_event ev;
    ebb_status st;
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&r, f->bytes, f->n), EBB_OK);
    while ((st = ebb_trace_reader_next(&r, &ev)) == EBB_OK) {
        t.of[ev.type]++;
        t.events++;
        if (ebb_checker_event(c, &ev) == EBB_OK) continue;
        fail_msg("%s: %s, event %llu", ebb_oracle_name(ebb_checker_violation(c)->oracle),
                 ebb_checker_violation(c)->text, (unsigned long long)ev.decision_seq);
    }
    assert_int_equal(st, EBB_PENDING);
    assert_int_equal(ebb_checker_end(c, false), EBB_OK);
    ebb_checker_free(c);
    return t;
}

static tally stop_and_check(serve_world *s) {
    file f;
    assert_int_equal(change(s, "/api/v1/trace/stop", NULL), 200);
    assert_int_equal(get_file(s, TOKEN, &f), 200);
    tally t = check(&f);
    assert_int_equal(t.events, said_number(s, "events"));
    assert_int_equal(f.n, said_number(s, "bytes"));
    free(f.bytes);
    return t;
}

static void get_with_trace(serve_world *s) {
    char url[64];
    ebb_http_field header = {"traceparent", HEADER};
    ebb_http_call call = {.url = url, .headers = &header, .headers_n = 1};
    snprintf(url, sizeof url, "http://127.0.0.1:%u/healthz", s->port);
    assert_int_equal(loop_await(s->w, ebb_http_fetch(ebb_loop_cx(s->w->loop), s->client, &call), NULL),
                     EBB_OK);
}

/* ---- what it has --------------------------------------------------------------------------------------------------- */

static void a_capture_has_what_was_there_and_what_happens(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/healthz"), 200); /* the connection is open before */
    assert_int_equal(change(s, "/api/v1/trace/start", "{\"seconds\": 60}"), 202);
    assert_int_equal(said_number(s, "seconds"), 60);
    get_with_trace(s);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    tally t = stop_and_check(s);
    assert_true(t.of[EBB_EV_PRESENT] >= 3);
    assert_int_equal(t.of[EBB_EV_TRACE_TAKEN], 1);
    assert_true(t.of[EBB_EV_EXCHANGE_BEGUN] >= 2); /* of the server and of the client */
    assert_true(t.of[EBB_EV_POLL_ENDED] > 0);
    assert_int_equal(t.of[EBB_EV_GAP], 0);
    assert_false(said_true(s, "full"));
}

/* A second one begins among connections and strings that the first has numbered. */
static void captures_follow_one_another(void **state) {
    serve_world *s = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(change(s, "/api/v1/trace/start", NULL), 202);
        assert_int_equal(change(s, "/api/v1/trace/start", NULL), 409);
        assert_string_equal(said(s, "error.code"), "is_recording");
        get_with_trace(s);
        tally t = stop_and_check(s);
        assert_int_equal(t.of[EBB_EV_TRACE_TAKEN], 1);
    }
    assert_int_equal(change(s, "/api/v1/trace/stop", NULL), 200); /* it has ended: that is said again */
}

/* Instances, activities and timers are under way when it begins, and end in it. */
static void a_capture_of_a_busy_worker_keeps_every_rule(void **state) {
    serve_world *s = *state;
    char path[64], body[64];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++) {
            snprintf(body, sizeof body, "{\"name\":\"%s\",\"id\":\"a%d-%d\"}", i % 2 ? "order" : "row", round,
                     i);
            assert_int_equal(change(s, "/api/v1/instances", body), 201);
        }
        assert_int_equal(change(s, "/api/v1/trace/start", NULL), 202);
        for (int i = 0; i < 8; i++) {
            snprintf(path, sizeof path, "/api/v1/instances/a%d-%d/%s", round, i,
                     i % 4 ? "cancel" : "terminate");
            assert_int_equal(change(s, path, NULL), 202);
        }
        get_with_trace(s);
        tally t = stop_and_check(s);
        assert_true(t.of[EBB_EV_TASK_SPAWNED] > 0);
    }
}

/* ---- bounds -------------------------------------------------------------------------------------------------------- */

static void a_full_capture_ends_without_a_gap(void **state) {
    serve_world *s = *state;
    assert_int_equal(change(s, "/api/v1/trace/start", "{\"events\": 1000}"), 202);
    for (int i = 0; i < 60; i++) get_with_trace(s);
    tally t = stop_and_check(s);
    assert_true(said_true(s, "full"));
    assert_int_equal(t.of[EBB_EV_GAP], 0);
    assert_in_range(t.events, 1000, 1000 + 2 * 127);
}

static bool is_over(void *world) {
    bool full;
    return ebb__capture_events(ebb_loop_runtime(((serve_world *)world)->w->loop), &full) == 0;
}

static void a_capture_ends_when_its_time_is_over(void **state) {
    serve_world *s = *state;
    assert_int_equal(change(s, "/api/v1/trace/start", "{\"seconds\": 1}"), 202);
    loop_until(s->w, is_over, s);
    file f;
    assert_int_equal(get_file(s, TOKEN, &f), 200);
    tally t = check(&f);
    assert_true(t.events > 0);
    free(f.bytes);
    assert_int_equal(change(s, "/api/v1/trace/start", NULL), 202);
    stop_and_check(s);
}

static void limits_are_checked(void **state) {
    static const char *const bad[] = {"{\"seconds\": 0}",     "{\"seconds\": 601}",  "{\"events\": 999}",
                                      "{\"events\": 500001}", "{\"journal\": true}", "[]"};
    serve_world *s = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(change(s, "/api/v1/trace/start", bad[i]), 400);
    assert_int_equal(change(s, "/api/v1/trace/start", "{\"seconds\": 600, \"events\": 500000}"), 202);
    assert_int_equal(change(s, "/api/v1/trace/stop", NULL), 200);
}

/* ---- who may ------------------------------------------------------------------------------------------------------- */

static void all_of_it_needs_the_token(void **state) {
    serve_world *s = *state;
    file f;
    assert_int_equal(ask(s, "POST", "/api/v1/trace/start", (serve_ask){0}), 401);
    assert_int_equal(change(s, "/api/v1/trace/stop", NULL), 404);
    assert_int_equal(ask(s, "GET", "/api/v1/trace", (serve_ask){.token = TOKEN}), 404);
    assert_string_equal(said(s, "error.code"), "no_trace");
    assert_int_equal(change(s, "/api/v1/trace/start", NULL), 202);
    assert_int_equal(ask(s, "POST", "/api/v1/trace/stop", (serve_ask){0}), 401);
    assert_int_equal(ask(s, "GET", "/api/v1/trace", (serve_ask){.token = TOKEN}), 409);
    assert_int_equal(change(s, "/api/v1/trace/stop", NULL), 200);
    assert_int_equal(get_file(s, NULL, &f), 401);
    free(f.bytes);
}

/* A capture that nobody ends, at the end of the service: the world checks that all memory is freed. */
static void one_that_runs_ends_with_the_service(void **state) {
    serve_world *s = *state;
    assert_int_equal(change(s, "/api/v1/trace/start", "{\"seconds\": 600}"), 202);
    get_with_trace(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(a_capture_has_what_was_there_and_what_happens),
        SERVED(captures_follow_one_another),
        DURABLE(a_capture_of_a_busy_worker_keeps_every_rule),
        SERVED(a_full_capture_ends_without_a_gap),
        SERVED(a_capture_ends_when_its_time_is_over),
        SERVED(limits_are_checked),
        SERVED(all_of_it_needs_the_token),
        SERVED(one_that_runs_ends_with_the_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
