/* Durable instances by the API: started, listed, shown, signalled, cancelled, terminated, reset, resumed. */
#include "tests/support/serve_world.h"

#include "durable/store.h"

typedef struct awaited {
    serve_world *s;
    const char *path, *member, *value;
} awaited;

static bool has_come(void *arg) {
    const awaited *a = arg;
    return look(a->s, a->path) == 200 && strcmp(said(a->s, a->member), a->value) == 0;
}

static void until(serve_world *s, const char *path, const char *name, const char *value) {
    loop_until(s->w, has_come, &(awaited){s, path, name, value});
}

static void start(serve_world *s, const char *name, const char *id) {
    char body[200];
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"id\":\"%s\",\"input\":{\"seat\":4}}", name, id);
    assert_int_equal(change(s, "/api/v1/instances", body), 201);
}

static void an_order_from_its_start_to_its_end(void **state) {
    serve_world *s = *state;
    start(s, "order", "order-7");
    assert_string_equal(said(s, "id"), "order-7");
    assert_int_equal(said_number(s, "input.seat"), 4);
    until(s, "/api/v1/instances/order-7", "custom", "waits");
    assert_string_equal(said(s, "state"), "Running");
    assert_int_equal(
        change(s, "/api/v1/instances/order-7/signal", "{\"name\":\"go\",\"body\":{\"paid\":true}}"), 202);
    until(s, "/api/v1/instances/order-7", "state", "Completed");
    assert_true(said_true(s, "output.paid"));
    static const char *const changes[] = {"signal", "cancel", "terminate", "resume"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char path[64];
        snprintf(path, sizeof path, "/api/v1/instances/order-7/%s", changes[i]);
        assert_int_equal(change(s, path, i == 0 ? "{\"name\":\"go\"}" : NULL), 409);
        assert_string_equal(said(s, "error.code"), "has_ended");
        assert_string_equal(said(s, "error.message"), "order-7 has ended: Completed");
    }
}

static void a_start_is_idempotent_and_conflicts_are_named(void **state) {
    serve_world *s = *state;
    start(s, "order", "one");
    start(s, "order", "one");
    assert_int_equal(change(s, "/api/v1/instances", "{\"name\":\"order\",\"id\":\"one\",\"input\":1}"), 409);
    assert_string_equal(said(s, "error.code"), "exists");
    assert_int_equal(change(s, "/api/v1/instances", "{\"name\":\"order\"}"), 201);
    assert_int_equal(strlen(said(s, "id")), 36);
    assert_int_equal(look(s, "/api/v1/instances/none"), 404);
}

static void lists_are_filtered_and_paged(void **state) {
    serve_world *s = *state;
    char id[16], path[128];
    for (int i = 0; i < 7; i++) {
        snprintf(id, sizeof id, "a-%d", i);
        start(s, "order", id);
    }
    start(s, "nobody", "b");
    assert_int_equal(look(s, "/api/v1/instances?prefix=a-&most=3"), 200);
    assert_int_equal(json_array_size(member(s->said, "instances")), 3);
    assert_string_equal(said(s, "instances.0.id"), "a-0");
    assert_string_equal(said(s, "next"), "a-2");
    assert_null(member(s->said, "instances.0.input"));
    snprintf(path, sizeof path, "/api/v1/instances?prefix=a-&most=5&after=%s", said(s, "next"));
    assert_int_equal(look(s, path), 200);
    assert_int_equal(json_array_size(member(s->said, "instances")), 4);
    assert_true(json_is_null(member(s->said, "next")));
    assert_int_equal(look(s, "/api/v1/instances?name=nobody"), 200);
    assert_int_equal(json_array_size(member(s->said, "instances")), 1);
    assert_int_equal(change(s, "/api/v1/instances/b/terminate", "{\"reason\":\"unknown\"}"), 202);
    assert_int_equal(look(s, "/api/v1/instances?state=Terminated,Failed"), 200);
    assert_int_equal(json_array_size(member(s->said, "instances")), 1);
    assert_string_equal(said(s, "instances.0.text"), "unknown");
}

/* ---- failures ------------------------------------------------------------------------------------------------------ */

enum { STRANGERS = 32, ROUNDS = 8 };

/* One of many clients, each of which asks for an instance of its own that is not there. */
typedef struct stranger {
    serve_world *s;
    size_t number, mine; /* answers that name its instance, and no other */
    bool done;
} stranger;

static ebb_status asks_for_its_own(ebb_cx *cx, void *arg) {
    static const char *const paths[] = {"", "/history", "/cancel", "/terminate"};
    stranger *t = arg;
    const ebb_http_field token = {"authorization", "Bearer " TOKEN};
    for (size_t i = 0; i < ROUNDS; i++) {
        char url[128], id[32];
        ebb_value v;
        const size_t path = (t->number + i) % 4;
        snprintf(id, sizeof id, "nobody-%zu.", t->number);
        snprintf(url, sizeof url, "http://127.0.0.1:%u/api/v1/instances/%s%s", t->s->port, id, paths[path]);
        const ebb_http_call call = {
            .method = path < 2 ? "GET" : "POST", .url = url, .headers = &token, .headers_n = 1};
        const ebb_status st = ebb_await(cx, ebb_http_fetch(cx, t->s->client, &call), &v);
        if (st != EBB_OK) return st;
        const ebb_http_response *r = ebb_http_response_of(&v);
        const char *at = strstr(r->body, "nobody-");
        t->mine += r->status == 404 && strstr(r->body, "instance") != NULL && at != NULL &&
                   strncmp(at, id, strlen(id) - 1) == 0 && strchr("0123456789", at[strlen(id) - 1]) == NULL &&
                   strstr(at + 1, "nobody-") == NULL;
        ebb_value_discard(cx, v);
    }
    t->done = true;
    return EBB_OK;
}

static bool all_done(void *all) {
    size_t n = 0;
    for (size_t i = 0; i < STRANGERS; i++) n += ((stranger *)all)[i].done;
    return n == STRANGERS;
}

static void a_failure_names_the_instance_of_its_own_request(void **state) {
    serve_world *s = *state;
    stranger all[STRANGERS];
    for (size_t i = 0; i < STRANGERS; i++) {
        ebb_cx *cx = ebb_loop_cx(s->w->loop);
        all[i] = (stranger){.s = s, .number = i};
        assert_int_equal(ebb_id_status(ebb_fiber_spawn(cx, s->w->region, asks_for_its_own, &all[i]).id),
                         EBB_OK);
    }
    loop_until(s->w, all_done, all);
    for (size_t i = 0; i < STRANGERS; i++) assert_int_equal(all[i].mine, ROUNDS);
    assert_int_equal(look(s, "/api/v1/instances/a%01"), 400);
    assert_string_equal(said(s, "error.message"), "no valid id of an instance");
}

/* A client resolves them in a path, and so asks for something else. */
static void names_that_no_path_can_have_are_refused(void **state) {
    serve_world *s = *state;
    static const char *const refused[] = {".", ".."}, *const taken[] = {"...", "a..", "../a"};
    char body[80];
    for (size_t i = 0; i < 2; i++) {
        snprintf(body, sizeof body, "{\"name\":\"order\",\"id\":\"%s\"}", refused[i]);
        assert_int_equal(change(s, "/api/v1/instances", body), 400);
        assert_string_equal(said(s, "error.message"), "no valid id of an instance");
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(body, sizeof body, "{\"name\":\"order\",\"id\":\"%s\"}", taken[i]);
        assert_int_equal(change(s, "/api/v1/instances", body), 201);
    }
    assert_int_equal(look(s, "/api/v1/instances/..%2Fa"), 200);
}

static bool has_two(void *world) {
    serve_world *s = world;
    return look(s, "/api/v1/instances/row/children") == 200 &&
           json_array_size(member(s->said, "instances")) == 2;
}

static void children_are_found_whatever_their_names(void **state) {
    serve_world *s = *state;
    char path[200], *slash;
    start(s, "row", "row");
    loop_until(s->w, has_two, s);
    snprintf(path, sizeof path, "/api/v1/instances/%s", said(s, "instances.0.id"));
    assert_int_equal(strncmp(path, "/api/v1/instances/row/", 22), 0);
    assert_int_equal(look(s, path), 404); /* a slash of a name is escaped */
    char escaped[300] = "/api/v1/instances/";
    for (slash = path + 18; *slash != 0; slash++) {
        size_t n = strlen(escaped);
        snprintf(escaped + n, sizeof escaped - n, *slash == '/' ? "%%2F" : "%c", *slash);
    }
    assert_int_equal(look(s, escaped), 200);
    assert_string_equal(said(s, "parent"), "row");
    assert_int_equal(look(s, "/api/v1/instances/row/children?tree=true"), 200);
    assert_int_equal(json_array_size(member(s->said, "instances")), 3);
    assert_string_equal(said(s, "instances.0.id"), "row");
}

static void a_history_is_paged_by_turns(void **state) {
    serve_world *s = *state;
    start(s, "order", "one");
    until(s, "/api/v1/instances/one", "custom", "waits");
    assert_int_equal(change(s, "/api/v1/instances/one/signal", "{\"name\":\"go\"}"), 202);
    until(s, "/api/v1/instances/one", "state", "Completed");
    assert_int_equal(look(s, "/api/v1/instances/one/history"), 200);
    const size_t all = json_array_size(member(s->said, "events"));
    assert_true(all >= 3);
    assert_true(json_is_null(member(s->said, "next")));
    assert_int_equal(said_number(s, "events.0.number"), 1);
    assert_non_null(member(s->said, "events.0.event"));
    assert_int_equal(look(s, "/api/v1/instances/one/history?most=1"), 200);
    const size_t first = json_array_size(member(s->said, "events"));
    assert_int_equal(said_number(s, "next"), 1);
    assert_int_equal(look(s, "/api/v1/instances/one/history?after=1"), 200);
    assert_int_equal(first + json_array_size(member(s->said, "events")), all);
    assert_int_equal(look(s, "/api/v1/instances/none/history"), 404);
}

static void assert_input_is(serve_world *s, const char *body, const char *input) {
    ebb_value v;
    assert_int_equal(change(s, "/api/v1/instances", body), 201);
    char *id = strdup(said(s, "id"));
    assert_int_equal(loop_await(s->w, ebb_instance_status(ebb_loop_cx(s->w->loop), s->store, id), &v),
                     EBB_OK);
    const ebb_blob is = ebb_instance_info_of(&v)->input;
    if (is.n != strlen(input) || memcmp(is.at, input, is.n) != 0)
        fail_msg("%s: '%.*s' is not '%s'", body, (int)is.n, (const char *)is.at, input);
    ebb_value_discard(ebb_loop_cx(s->w->loop), v);
    free(id);
}

static void an_input_is_stored_as_it_was_sent(void **state) {
    static const char *const inputs[] = {"0.1",
                                         "-1.50e+03",
                                         "1.0",
                                         "12345678901234567",
                                         "\"\"",
                                         "\"caf\\u00e9 \\\"}\\\\\"",
                                         "[ 0.1 , [ ] ]",
                                         "null",
                                         "{\"input\" : {\"id\":\"}\", \"a\":[1,\"]\\\"\"]}}",
                                         "{}"};
    static const char *const bodies[] = {"{\"name\":\"order\",\"input\":%s}",
                                         "{\"input\":%s,\"name\":\"order\"}",
                                         " { \"name\" :\t\"order\"\r\n, \"input\"  : %s  } "};
    serve_world *s = *state;
    char body[300];
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
            snprintf(body, sizeof body, bodies[k], inputs[i]);
            assert_input_is(s, body, inputs[i]);
        }
    }
    assert_input_is(s, "{\"name\":\"order\",\"inp\\u0075t\":[ 1 ]}", "[1]"); /* a name with an escape */
    assert_input_is(s, "{\"name\":\"order\"}", "");
}

enum { LARGE = 1 << 20, LARGES = 6, HISTORY_MOST = 4 << 20 };

typedef struct turned {
    serve_world *s;
    json_int_t turn;
} turned;

static bool has_turned(void *arg) {
    const turned *t = arg;
    return look(t->s, "/api/v1/instances/one") == 200 && said_number(t->s, "turn") > t->turn;
}

/* Signals that nobody waits for, each of a turn of its own. */
static void send_larges(serve_world *s) {
    static const char head[] = "{\"name\":\"other\",\"body\":\"";
    char *body = malloc(LARGE + 100);
    assert_non_null(body);
    const int n = sprintf(body, "%s", head);
    memset(body + n, 'x', LARGE);
    memcpy(body + n + LARGE, "\"}", 3);
    for (int i = 0; i < LARGES; i++) {
        assert_int_equal(look(s, "/api/v1/instances/one"), 200);
        turned t = {s, said_number(s, "turn")};
        assert_int_equal(change(s, "/api/v1/instances/one/signal", body), 202);
        loop_until(s->w, has_turned, &t);
    }
    free(body);
}

static void a_page_of_a_history_ends_when_it_is_large(void **state) {
    serve_world *s = *state;
    char path[80] = "/api/v1/instances/one/history";
    size_t pages = 0, larges = 0, last = 0;
    start(s, "order", "one");
    until(s, "/api/v1/instances/one", "custom", "waits");
    send_larges(s);
    do {
        assert_int_equal(look(s, path), 200);
        const json_t *events = member(s->said, "events");
        assert_in_range(strlen(s->text), 0, HISTORY_MOST + LARGE + 65536);
        for (size_t i = 0; i < json_array_size(events); i++) {
            const json_t *e = json_array_get(events, i);
            assert_int_equal(json_integer_value(json_object_get(e, "number")), ++last);
            larges += json_string_length(member(e, "event.body")) == LARGE;
        }
        if (!json_is_null(member(s->said, "next")))
            snprintf(path, sizeof path, "/api/v1/instances/one/history?after=%d",
                     (int)said_number(s, "next"));
        pages++;
    } while (!json_is_null(member(s->said, "next")));
    assert_int_equal(larges, LARGES);
    assert_int_equal(pages, 2);
}

static void cancels_resets_and_resumes_say_what_they_refuse(void **state) {
    serve_world *s = *state;
    start(s, "order", "one");
    until(s, "/api/v1/instances/one", "custom", "waits");
    assert_int_equal(change(s, "/api/v1/instances/one/resume", NULL), 400);
    assert_non_null(strstr(said(s, "error.message"), "one"));
    assert_int_equal(change(s, "/api/v1/instances/one/cancel", "{\"reason\":\"sold out\"}"), 202);
    until(s, "/api/v1/instances/one", "state", "Cancelled");
    assert_string_equal(said(s, "text"), "sold out");
    assert_int_equal(change(s, "/api/v1/instances/one/cancel", NULL), 409);
    assert_int_equal(change(s, "/api/v1/instances/one/reset", "{\"event\":99}"), 400);
    assert_string_equal(said(s, "error.message"), "one has no event 99");
    assert_int_equal(change(s, "/api/v1/instances/one/reset", "{\"event\":1}"), 202);
    until(s, "/api/v1/instances/one", "state", "Running");
    assert_int_equal(said_number(s, "execution"), 2);
}

static void many_are_cancelled_by_a_filter_and_never_for_lack_of_one(void **state) {
    serve_world *s = *state;
    char id[16];
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "a-%d", i);
        start(s, "order", id);
    }
    start(s, "order", "b");
    assert_int_equal(change(s, "/api/v1/cancel", "{\"reason\":\"all\"}"), 400);
    assert_string_equal(said(s, "error.code"), "no_filter");
    assert_int_equal(change(s, "/api/v1/cancel", "{\"all\":false}"), 400);
    assert_int_equal(change(s, "/api/v1/cancel", "{\"started_after\":0,\"dry_run\":true}"), 400);
    assert_int_equal(change(s, "/api/v1/cancel", "{\"ended_before\":0,\"dry_run\":true}"), 400);
    assert_string_equal(said(s, "error.code"), "no_filter");
    assert_int_equal(change(s, "/api/v1/cancel", "{\"started_after\":1,\"dry_run\":true}"), 200);
    assert_int_equal(said_number(s, "cancelled"), 6);
    assert_int_equal(change(s, "/api/v1/cancel", "{\"prefix\":\"a-\",\"dry_run\":true}"), 200);
    assert_int_equal(said_number(s, "cancelled"), 5);
    assert_true(said_true(s, "dry_run"));
    assert_int_equal(change(s, "/api/v1/cancel", "{\"prefix\":\"a-\"}"), 200);
    assert_int_equal(said_number(s, "cancelled"), 5);
    until(s, "/api/v1/instances/a-4", "state", "Cancelled");
    until(s, "/api/v1/instances/b", "state", "Running");
    assert_int_equal(change(s, "/api/v1/cancel", "{\"all\":true}"), 200);
    until(s, "/api/v1/instances/b", "state", "Cancelled");
}

static void what_is_nested_is_kept_and_lists_say_how_large_a_status_is(void **state) {
    serve_world *s = *state;
    char *body = malloc(20000);
    assert_non_null(body);
    size_t n = (size_t)sprintf(body, "{\"name\":\"order\",\"id\":\"deep\",\"input\":");
    memset(body + n, '[', 60);
    memset(body + n + 60, ']', 60);
    memcpy(body + n + 120, "}", 2);
    assert_int_equal(change(s, "/api/v1/instances", body), 201);
    free(body);
    assert_int_equal(look(s, "/api/v1/instances/deep"), 200);
    assert_true(json_is_array(member(s->said, "input")));
    until(s, "/api/v1/instances/deep", "custom", "waits");
    assert_int_equal(look(s, "/api/v1/instances"), 200);
    assert_int_equal(said_number(s, "instances.0.custom_bytes"), strlen("\"waits\""));
}

static ebb__store_fault always(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)arg;
    (void)n;
    (void)c;
    return EBB__FAULT_BEFORE;
}

static bool is_ready(void *s) {
    return look(s, "/readyz") == 200;
}

static bool is_not_ready(void *s) {
    return look(s, "/readyz") == 503;
}

static void a_store_that_does_not_answer_is_named(void **state) {
    static const ebb__store_faults faults = {.at = always};
    serve_world *s = *state;
    assert_true(is_ready(s));
    ebb__store_set_faults(s->store, &faults);
    loop_until(s->w, is_not_ready, s);
    assert_string_equal(said(s, "error.code"), "store_unavailable");
    assert_int_equal(look(s, "/healthz"), 200);
    assert_int_equal(look(s, "/api/v1/instances"), 503);
    assert_string_equal(said(s, "error.code"), "store_unavailable");
    assert_int_equal(change(s, "/api/v1/instances", "{\"name\":\"order\"}"), 503);
    ebb__store_set_faults(s->store, NULL);
    loop_until(s->w, is_ready, s);
}

static ebb__store_fault count_lists(void *lists, uint64_t n, const ebb_provider_call *c) {
    (void)n;
    *(uint64_t *)lists += c->op == EBB_PROVIDER_LIST;
    return EBB__FAULT_NONE;
}

static void whether_it_is_ready_is_asked_once_a_second(void **state) {
    serve_world *s = *state;
    uint64_t lists = 0;
    const ebb__store_faults faults = {.at = count_lists, .arg = &lists};
    ebb__store_set_faults(s->store, &faults);
    const uint64_t begun = ebb_now(ebb_loop_cx(s->w->loop));
    for (int i = 0; i < 100; i++) assert_true(is_ready(s));
    assert_in_range(lists, 1, 1 + (ebb_now(ebb_loop_cx(s->w->loop)) - begun) / EBB_SECOND);
    while (lists < 2) assert_true(is_ready(s));
    ebb__store_set_faults(s->store, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        DURABLE(an_order_from_its_start_to_its_end),
        DURABLE(a_start_is_idempotent_and_conflicts_are_named),
        DURABLE(lists_are_filtered_and_paged),
        DURABLE(whether_it_is_ready_is_asked_once_a_second),
        DURABLE(names_that_no_path_can_have_are_refused),
        DURABLE(a_failure_names_the_instance_of_its_own_request),
        DURABLE(children_are_found_whatever_their_names),
        DURABLE(an_input_is_stored_as_it_was_sent),
        DURABLE(a_history_is_paged_by_turns),
        DURABLE(a_page_of_a_history_ends_when_it_is_large),
        DURABLE(cancels_resets_and_resumes_say_what_they_refuse),
        DURABLE(many_are_cancelled_by_a_filter_and_never_for_lack_of_one),
        DURABLE(a_store_that_does_not_answer_is_named),
        DURABLE(what_is_nested_is_kept_and_lists_say_how_large_a_status_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
