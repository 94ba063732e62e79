/* Server-sent events: the tree and the instances come, end with the service, and nobody waits for a slow reader. */
#include "tests/support/serve_world.h"

#include "durable/store.h"

enum { ROOM = 1 << 20 };

/* A stream of events as a client reads it. */
typedef struct reader {
    serve_world *s;
    const char *path;
    char *text; /* all so far, 0-terminated */
    size_t n;
    const char *const *until; /* what has to come, in this order; NULL after the last */
    void (*on)(serve_world *s, size_t seen);
    ebb_status end;
} reader;

static bool has_all(const reader *r, size_t *seen) {
    const char *at = r->text;
    for (*seen = 0; r->until[*seen] != NULL; ++*seen) {
        at = strstr(at, r->until[*seen]);
        if (at == NULL) return false;
        at += strlen(r->until[*seen]);
    }
    return true;
}

static ebb_status open_stream(ebb_cx *cx, serve_world *s, const char *path, ebb_http **x) {
    char url[256];
    ebb_value v;
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", s->port, path);
    ebb_status st = ebb_await(cx, ebb_http_open(cx, s->client, &(ebb_http_call){.url = url}), &v);
    *x = st == EBB_OK ? ebb_http_of(cx, v) : NULL;
    return st;
}

static ebb_status read_events(ebb_cx *cx, void *arg) {
    reader *r = arg;
    ebb_http *x;
    ebb_value v;
    size_t seen = 0, before;
    ebb_status st = open_stream(cx, r->s, r->path, &x);
    while (st == EBB_OK && !has_all(r, &seen)) {
        before = seen;
        st = ebb_await(cx, ebb_http_read(cx, x, r->text + r->n, ROOM - r->n - 1), &v);
        if (st == EBB_OK) r->n += v.as.u;
        r->text[r->n] = 0;
        (void)has_all(r, &seen);
        if (r->on != NULL && seen > before) r->on(r->s, seen);
    }
    r->end = st;
    ebb_http_close(cx, x);
    return EBB_OK;
}

static reader reader_of(serve_world *s, const char *path, const char *const *wanted) {
    reader r = {.s = s, .path = path, .until = wanted, .text = calloc(1, ROOM)};
    assert_non_null(r.text);
    return r;
}

static ebb_status start_one(ebb_cx *cx, void *arg) {
    serve_world *s = arg;
    return ebb_await(cx, ebb_instance_start(cx, s->store, &(ebb_start_opts){.id = "one", .name = "order"}),
                     NULL);
}

static void start_when_listed(serve_world *s, size_t seen) {
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    if (seen == 5)
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, s->w->region, start_one, s).id), EBB_OK);
}

static void the_tree_comes_again_and_instances_when_they_change(void **state) {
    static const char *const wanted[] = {"event: live\ndata: {\"ebb_inspect\":1,",
                                         "\"http\":{\"connections\":",
                                         "\"worker\":{\"turns\":0,",
                                         "event: tree\ndata: {\"first\":true,\"nodes\":[{\"region\":",
                                         "event: instances\ndata: {\"instances\":[],\"next\":null}\n\n",
                                         "event: instances\ndata: {\"instances\":[{\"id\":\"one\"",
                                         "event: live\n",
                                         NULL};
    serve_world *s = *state;
    reader r = reader_of(s, "/api/v1/events?every_ms=500", wanted);
    r.on = start_when_listed;
    assert_int_equal(run_fiber(s->w, read_events, &r), EBB_OK);
    assert_int_equal(r.end, EBB_OK);
    free(r.text);
}

static void a_page_that_stays_the_same_is_sent_once(void **state) {
    static const char *const wanted[] = {"event: live\n", "event: live\n", "event: live\n", NULL};
    serve_world *s = *state;
    reader r = reader_of(s, "/api/v1/events?every_ms=500", wanted);
    assert_int_equal(run_fiber(s->w, read_events, &r), EBB_OK);
    char *first = strstr(r.text, "event: instances");
    assert_non_null(first);
    assert_null(strstr(first + 1, "event: instances"));
    free(r.text);
}

/* A store whose lists wait until they are let go. */
static struct {
    const ebb_provider *real;
    ebb_provider slow;
    ebb_provider_list_call *held;
    int lists;
} holder;

static void hold_list(void *self, ebb_provider_list_call *c) {
    (void)self;
    holder.held = c;
    holder.lists++;
}

static void hold_lists(serve_world *s) {
    ebb__call_gate *g = ebb__store_gate(s->store);
    holder.real = g->provider;
    holder.slow = *g->provider;
    holder.slow.list = hold_list;
    holder.lists = 0;
    g->provider = &holder.slow;
}

static void let_lists_go(serve_world *s) {
    ebb__call_gate *g = ebb__store_gate(s->store);
    g->provider = holder.real;
    g->provider->list(g->self, holder.held);
}

static void let_go_at_the_third(serve_world *s, size_t seen) {
    if (seen == 3) let_lists_go(s);
}

static void a_slow_store_is_asked_once_and_does_not_hold_the_tree_up(void **state) {
    static const char *const wanted[] = {"event: live\n", "event: live\n", "event: live\n",
                                         "event: instances\ndata: {\"instances\":[],\"next\":null}\n\n",
                                         NULL};
    serve_world *s = *state;
    reader r = reader_of(s, "/api/v1/events?every_ms=500", wanted);
    r.on = let_go_at_the_third;
    hold_lists(s);
    assert_int_equal(run_fiber(s->w, read_events, &r), EBB_OK);
    assert_int_equal(r.end, EBB_OK);
    assert_int_equal(holder.lists, 1);
    free(r.text);
}

static bool no_streams(void *world);

static void a_reader_may_leave_while_the_store_is_slow(void **state) {
    static const char *const wanted[] = {"event: live\n", "event: live\n", NULL};
    serve_world *s = *state;
    reader r = reader_of(s, "/api/v1/events?every_ms=500", wanted);
    hold_lists(s);
    assert_int_equal(run_fiber(s->w, read_events, &r), EBB_OK);
    loop_until(s->w, no_streams, s);
    let_lists_go(s);
    assert_int_equal(look(s, "/api/v1/instances"), 200);
    free(r.text);
}

static void the_head_of_a_stream_ends(void **state) {
    char *got = raw(*state, "HEAD /api/v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_int_equal(strncmp(got, "HTTP/1.1 200", 12), 0);
    assert_non_null(strstr(got, "content-type: text/event-stream\r\n"));
    assert_null(strstr(got, "event: "));
    free(got);
}

static void close_server(serve_world *s, size_t seen) {
    if (seen == 1) ebb_region_close(ebb_loop_cx(s->w->loop), ebb_http_server_region(s->server));
}

static void a_stream_ends_when_the_server_closes(void **state) {
    static const char *const wanted[] = {"event: live\n", "never", NULL};
    serve_world *s = *state;
    reader r = reader_of(s, "/api/v1/events?every_ms=60000", wanted);
    r.on = close_server;
    assert_int_equal(run_fiber(s->w, read_events, &r), EBB_OK);
    assert_int_equal(r.end, EBB_ERR_EOF); /* in order, and long before the next event */
    free(r.text);
}

/* ---- slow readers -------------------------------------------------------------------------------------------------- */

static ebb_status waits(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_await(cx, ebb_future_never(cx), NULL);
}

static double metric(serve_world *s, const char *name) {
    assert_int_equal(look(s, "/metrics"), 200);
    const char *at = strstr(s->text, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

static bool is_shed(void *world) {
    return metric(world, "\nebb_dashboard_shed_total ") == 1;
}

static ebb_status open_and_wait(ebb_cx *cx, void *arg) {
    ebb_http *x;
    ebb_status st = open_stream(cx, arg, "/api/v1/events?every_ms=500", &x);
    return st == EBB_OK ? waits(cx, NULL) : st;
}

static void a_reader_that_does_not_read_is_shed(void **state) {
    serve_world *s = *state;
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    for (int i = 0; i < 64 * 20; i++) { /* a tree that is larger than what may be on its way */
        static ebb_region r;
        if (i % 64 == 0) r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, r, waits, NULL).id), EBB_OK);
    }
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, s->w->region, open_and_wait, s).id), EBB_OK);
    loop_until(s->w, is_shed, s);
    assert_true(metric(s, "\nebb_dashboard_streams ") == 0);
}

static bool has_sixteen(void *world) {
    return metric(world, "\nebb_dashboard_streams ") == 16;
}

static bool no_streams(void *world) {
    return metric(world, "\nebb_dashboard_streams ") == 0;
}

static void one_reader_too_many_is_refused_until_one_goes(void **state) {
    serve_world *s = *state;
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    for (int i = 0; i < 16; i++)
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, r, open_and_wait, s).id), EBB_OK);
    loop_until(s->w, has_sixteen, s);
    assert_int_equal(look(s, "/api/v1/events"), 503);
    assert_string_equal(said(s, "error.message"), "16 readers have a stream of events already");
    ebb_region_cancel(ebb_loop_cx(s->w->loop), r, EBB_CANCEL_USER, "they leave");
    loop_until(s->w, no_streams, s);
    assert_int_equal(look(s, "/api/v1/events?every_ms=499"), 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        DURABLE(the_tree_comes_again_and_instances_when_they_change),
        DURABLE(a_page_that_stays_the_same_is_sent_once),
        DURABLE(a_slow_store_is_asked_once_and_does_not_hold_the_tree_up),
        DURABLE(a_reader_may_leave_while_the_store_is_slow),
        SERVED(the_head_of_a_stream_ends),
        SERVED(a_stream_ends_when_the_server_closes),
        SERVED(a_reader_that_does_not_read_is_shed),
        SERVED(one_reader_too_many_is_refused_until_one_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
