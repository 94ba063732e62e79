/* What lives: the tree, workflows and their drains by an operator's calls, counters, health. */
#include "tests/support/serve_world.h"

static void health_and_readiness_are_answered(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/healthz"), 200);
    assert_string_equal(said(s, "status"), "ok");
    assert_string_equal(said(s, "version"), ebb_version());
    assert_int_equal(look(s, "/readyz"), 200);
    assert_string_equal(said(s, "status"), "ready");
}

static bool has_the_end(void *ctx) {
    const peer *p = ctx;
    return strstr(p->got, "}}") != NULL;
}

/* A request that was on its way when the stop was requested is answered, and hears that it is one. */
static void a_service_that_stops_is_not_ready(void **state) {
    serve_world *s = *state;
    ebb_workflow_opts opts = {.type = &ebb_workflow_lifecycle_shutdown, .root = true};
    ebb_workflow wf = ebb_workflow_open(ebb_loop_cx(s->w->loop), &opts);
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    assert_int_equal(look(s, "/readyz"), 200);
    peer *p = peer_open(s->w, s->port);
    say(p, "GET /readyz HTTP/1.1\r\nhost: localhost\r\n");
    loop_turns(s->w, 5);
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(ebb_workflow_request(cx, wf, EBB_CANCEL_SHUTDOWN, "over"), EBB_OK);
    say(p, "\r\n");
    loop_until(s->w, has_the_end, p);
    assert_int_equal(strncmp(p->got, "HTTP/1.1 503", 12), 0);
    assert_non_null(strstr(p->got, "the service is stopping"));
    assert_non_null(strstr(p->got, "retry-after: 1\r\n"));
    peer_close(p);
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

static ebb_status waits(ebb_cx *cx, void *arg) {
    bool *cancelled = arg;
    ebb_status st = ebb_await(cx, ebb_future_never(cx), NULL);
    if (cancelled != NULL) *cancelled = st == EBB_CANCELLED;
    return st;
}

static ebb_region region_with_task(serve_world *s, bool *cancelled) {
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, r, waits, cancelled).id), EBB_OK);
    return r;
}

static const json_t *node_at(const serve_world *s, const char *kind, const char *site) {
    const json_t *tree = member(s->said, "loops.0.tree"), *node;
    size_t i;
    json_array_foreach(tree, i, node) {
        const char *at = json_string_value(json_object_get(node, "site"));
        if (json_object_get(node, kind) != NULL && at != NULL && strstr(at, site) != NULL) return node;
    }
    return NULL;
}

static void the_tree_has_regions_and_what_tasks_wait_for(void **state) {
    serve_world *s = *state;
    (void)region_with_task(s, NULL);
    loop_turns(s->w, 2);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    const json_t *task = node_at(s, "task", "tests/serve/live.c"),
                 *region = node_at(s, "region", "tests/serve/live.c");
    assert_non_null(task);
    assert_non_null(region);
    assert_string_equal(json_string_value(json_object_get(task, "phase")), "Running");
    assert_true(json_is_true(json_object_get(task, "waits")));
    assert_true(json_is_integer(json_object_get(task, "age_ms")));
    assert_non_null(strstr(json_string_value(json_object_get(task, "begun_at")), "tests/serve/live.c"));
    assert_string_equal(json_string_value(json_object_get(region, "state")), "Open");
    assert_int_equal(said_number(s, "loops.0.left_out.tasks"), 0);
}

static void a_region_is_cancelled_and_its_task_learns_of_it(void **state) {
    serve_world *s = *state;
    char path[128];
    bool cancelled = false;
    (void)region_with_task(s, &cancelled);
    loop_turns(s->w, 2);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    const json_t *region = node_at(s, "region", "tests/serve/live.c");
    snprintf(path, sizeof path, "/api/v1/regions/%s/cancel",
             json_string_value(json_object_get(region, "region")));
    assert_int_equal(change(s, path, "{\"message\":\"not needed\"}"), 202);
    assert_true(said_true(s, "accepted"));
    loop_until(s->w, is_true, &cancelled);
    assert_int_equal(change(s, path, NULL), 404);
    assert_string_equal(said(s, "error.code"), "gone");
}

static ebb_status drains_never(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)arg;
    ebb_drain_progress(d, 3, 7);
    return EBB_PENDING;
}

static ebb_workflow rollout(serve_world *s) {
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    ebb_workflow_opts opts = {
        .type = &ebb_workflow_rollout_cancel, .name = "v42", .budget = 3600 * EBB_SECOND};
    ebb_workflow wf = ebb_workflow_open(cx, &opts);
    assert_int_equal(ebb_id_status(wf.id), EBB_OK);
    return wf;
}

/* All regions of a service, one after the other: those that the service needs are refused, and it goes on. */
static void regions_that_the_service_needs_are_not_cancelled(void **state) {
    serve_world *s = *state;
    char path[128];
    ebb_workflow wf = rollout(s);
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(ebb_workflow_on_drain(cx, wf, "undo", drains_never, NULL), EBB_OK);
    assert_int_equal(look(s, "/api/v1/live"), 200);
    json_t *tree = json_deep_copy(member(s->said, "loops.0.tree")), *node;
    int refused[2] = {0, 0};
    char own[40];
    size_t i;
    const uint64_t of = ebb_workflow_region(cx, wf).id;
    snprintf(own, sizeof own, "%u.%u.%u", (unsigned)(of >> 56), (unsigned)(of >> 32 & 0xffffff),
             (unsigned)of);
    json_array_foreach(tree, i, node) {
        const char *id = json_string_value(json_object_get(node, "region"));
        const char *site = json_string_value(json_object_get(node, "site"));
        if (id == NULL || strstr(site, "http/server.c:1") != NULL)
            continue; /* a connection: its own, perhaps */
        if (strstr(site, "loop_world.h") != NULL || strcmp(id, own) == 0) continue; /* the test's */
        snprintf(path, sizeof path, "/api/v1/regions/%s/cancel", id);
        const int status = change(s, path, NULL);
        refused[0] += status == 409 && strcmp(said(s, "error.code"), "has_this_server") == 0;
        refused[1] += status == 409 && strcmp(said(s, "error.code"), "is_of_a_drain") == 0;
    }
    json_decref(tree);
    assert_int_equal(refused[0], 3); /* the root, the server, the acceptor */
    assert_int_equal(refused[1], 1);
    assert_int_equal(look(s, "/api/v1/workflows"), 200);
    assert_string_equal(said(s, "workflows.0.state"), "IDLE");
    free(raw(s,
             "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")); /* a new connection */
    assert_int_equal(ebb_workflow_force(ebb_loop_cx(s->w->loop), wf, NULL), EBB_ERR_CANCEL_INVALID_PHASE);
    assert_int_equal(ebb_workflow_request(ebb_loop_cx(s->w->loop), wf, EBB_CANCEL_USER, NULL), EBB_OK);
    assert_int_equal(ebb_workflow_force(ebb_loop_cx(s->w->loop), wf, NULL), EBB_OK);
}

static void the_region_of_the_server_is_not_cancelled(void **state) {
    serve_world *s = *state;
    char path[128];
    assert_int_equal(look(s, "/api/v1/live"), 200);
    snprintf(path, sizeof path, "/api/v1/regions/%s/cancel", said(s, "loops.0.tree.0.region"));
    assert_int_equal(change(s, path, NULL), 409);
    assert_string_equal(said(s, "error.code"), "has_this_server");
    static const char *const bad[] = {"x",       "1",     "1.2",          "1.2.3.4",        "1.2.x",
                                      "256.1.1", "1..2",  "1.16777216.1", "1.1.4294967296", "1.1.0",
                                      "0.0.0",   "1.50.0"}; /* in C, ids that end in 0 carry a status */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(path, sizeof path, "/api/v1/regions/%s/cancel", bad[i]);
        assert_int_equal(change(s, path, NULL), 400);
        assert_string_equal(said(s, "error.where"), "region");
    }
}

/* ---- workflows ------------------------------------------------------------------------------------------------- */

static void path_of(char out[160], ebb_workflow wf, const char *verb) {
    snprintf(out, 160, "/api/v1/workflows/%u.%u.%u%s", (unsigned)(wf.id >> 56),
             (unsigned)(wf.id >> 32 & 0xffffff), (unsigned)wf.id, verb);
}

static void a_drain_is_shown_explained_extended_and_forced(void **state) {
    serve_world *s = *state;
    char one[160], request[160], extend[160], force[160];
    ebb_workflow wf = rollout(s);
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    assert_int_equal(ebb_workflow_on_drain(cx, wf, "undo", drains_never, NULL), EBB_OK);
    path_of(one, wf, "");
    path_of(request, wf, "/request");
    path_of(extend, wf, "/extend");
    path_of(force, wf, "/force");

    assert_int_equal(look(s, "/api/v1/workflows"), 200);
    assert_string_equal(said(s, "workflows.0.type"), "rollout_cancel");
    assert_string_equal(said(s, "workflows.0.name"), "v42");
    assert_string_equal(said(s, "workflows.0.state"), "IDLE");
    assert_int_equal(change(s, extend, "{\"ms\":1000}"), 409);
    assert_string_equal(said(s, "error.code"), "wrong_state");
    assert_non_null(strstr(said(s, "error.message"), "extend is not allowed in IDLE"));

    assert_int_equal(change(s, request, "{\"message\":\"wrong tag\"}"), 202);
    loop_turns(s->w, 2);
    assert_int_equal(look(s, one), 200);
    assert_string_equal(said(s, "workflow.state"), "DRAINING");
    assert_string_equal(said(s, "workflow.request"), "USER");
    assert_string_equal(said(s, "workflow.message"), "wrong tag");
    assert_string_equal(said(s, "workflow.handlers.0.name"), "undo");
    assert_int_equal(said_number(s, "workflow.handlers.0.done"), 3);
    assert_int_equal(said_number(s, "workflow.handlers.0.total"), 7);
    assert_non_null(strstr(said(s, "explain.0"), "rollout_cancel#1 v42 is DRAINING"));
    assert_non_null(strstr(said(s, "explain.1"), "handler undo"));
    assert_false(said_true(s, "explain_cut"));

    const json_int_t budget = said_number(s, "workflow.budget_ms");
    assert_int_equal(change(s, extend, "{\"ms\":5000}"), 202);
    assert_int_equal(look(s, one), 200);
    assert_int_equal(said_number(s, "workflow.budget_ms"), budget + 5000);
    assert_int_equal(change(s, force, "{}"), 202);
    loop_turns(s->w, 5);
    assert_int_equal(change(s, force, "{}"), 409);
    assert_string_equal(said(s, "error.code"), "wrong_state");
    assert_int_equal(change(s, request, "{}"), 409);
    assert_string_equal(said(s, "error.code"), "has_ended");
}

static void an_explanation_has_at_most_so_many_bytes(void **state) {
    serve_world *s = *state;
    char one[160];
    ebb_workflow wf = rollout(s);
    ebb_cx *cx = ebb_loop_cx(s->w->loop);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, ebb_workflow_region(cx, wf), waits, NULL).id),
                         EBB_OK);
    }
    path_of(one, wf, "");
    assert_int_equal(look(s, one), 200);
    assert_true(said_true(s, "explain_cut"));
    assert_in_range(json_array_size(member(s->said, "explain")), 100, 1500);
    assert_in_range(strlen(s->text), 65536, 70000);
}

static void without_a_log_in_a_file_there_are_no_lines(void **state) {
    serve_world *s = *state;
    char path[160];
    path_of(path, rollout(s), "/audit");
    assert_int_equal(look(s, path), 404);
    assert_string_equal(said(s, "error.code"), "no_log");
}

static void a_workflow_that_is_gone_is_not_found(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/api/v1/workflows/7.9.9"), 404);
    assert_int_equal(look(s, "/api/v1/workflows/8.1.1"), 404); /* of another runtime */
    assert_int_equal(look(s, "/api/v1/workflows/none"), 400);
}

/* ---- the server ------------------------------------------------------------------------------------------------- */

static void the_counters_of_the_server_count(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/nowhere"), 404);
    assert_int_equal(look(s, "/api/v1/http"), 200);
    assert_int_equal(said_number(s, "requests"), 2);
    assert_int_equal(said_number(s, "answered_4xx"), 1);
    assert_int_equal(said_number(s, "connections"), 1);
    assert_int_equal(look(s, "/api/v1/http"), 200);
    assert_int_equal(said_number(s, "answered_2xx"), 1);
}

static void paths_begin_with_the_prefix(void **state) {
    serve_world *s = serve_world_new("127.0.0.1");
    assert_int_equal(serve_mount(s, (ebb_dashboard_opts){.prefix = "/ops/ebb"}), EBB_OK);
    assert_int_equal(look(s, "/ops/ebb/healthz"), 200);
    assert_int_equal(look(s, "/healthz"), 404);
    assert_int_equal(ebb_dashboard_mount(ebb_loop_cx(s->w->loop), s->server, NULL), EBB_OK);
    assert_int_equal(look(s, "/ebb/healthz"), 200);
    assert_int_equal(ebb_dashboard_mount(ebb_loop_cx(s->w->loop), s->server, NULL), EBB_ERR_BUSY);
    assert_string_equal(ebb_dashboard_error(), "the server has a handler for GET /ebb/ already");
    *state = s;
    (void)serve_down(state);
}

/* ---- times --------------------------------------------------------------------------------------------------------- */

static bool three_are_timed(void *world) {
    ebb_http_server_stats now;
    uint64_t n = 0;
    ebb_http_server_stats_of(((serve_world *)world)->server, &now);
    for (size_t i = 0; i < sizeof now.latency / sizeof *now.latency; i++) n += now.latency[i];
    return n == 3 && now.answered[2] == 2 && now.answered[4] == 1 && now.latency[0] == 0;
}

static void each_whole_response_is_timed(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/healthz"), 200);
    assert_int_equal(look(s, "/healthz"), 200);
    assert_int_equal(look(s, "/api/v1/instances"), 404);
    loop_until(s->w, three_are_timed, s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(health_and_readiness_are_answered),
        SERVED(a_service_that_stops_is_not_ready),
        SERVED(the_tree_has_regions_and_what_tasks_wait_for),
        SERVED(a_region_is_cancelled_and_its_task_learns_of_it),
        SERVED(regions_that_the_service_needs_are_not_cancelled),
        SERVED(the_region_of_the_server_is_not_cancelled),
        SERVED(a_drain_is_shown_explained_extended_and_forced),
        SERVED(an_explanation_has_at_most_so_many_bytes),
        SERVED(without_a_log_in_a_file_there_are_no_lines),
        SERVED(a_workflow_that_is_gone_is_not_found),
        SERVED(the_counters_of_the_server_count),
        cmocka_unit_test(paths_begin_with_the_prefix),
        SERVED(each_whole_response_is_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
