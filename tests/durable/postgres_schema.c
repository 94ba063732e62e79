/* How a PostgreSQL store is opened: for reading only, in vain, and on schemas of other versions. */
#include "tests/durable/postgres_world.h"

/* ---- reading only ---------------------------------------------------------------------------------------------- */

static ebb_status read_only_main(ebb_cx *cx, void *arg) {
    ebb_value v;
    (void)arg;
    close_store(cx, open_url(cx, server.url)); /* there is a schema */
    ebb_future *f = ebb_store_open(cx, &(ebb_store_opts){.url = server.url, .read_only = true});
    assert_int_equal(ebb_await(cx, f, &v), EBB_OK);
    ebb_store *s = ebb_store_of(&v);
    end_call(ask(cx, start_call(s, "read-only")), EBB_ERR_CLOSED);
    ebb_provider_instance_call *c = new_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "read-only";
    for (;;) { /* the connection that reads comes after the store is open */
        c = ask(cx, c);
        if (c->call.status != EBB_ERR_UNAVAILABLE) break;
        ebb__call_free(&c->call);
        (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
        c = new_call(s, EBB_PROVIDER_INSTANCE);
        c->id = "read-only";
    }
    end_call(c, EBB_ERR_UNKNOWN_INSTANCE);
    close_store(cx, s);
    return EBB_OK;
}

static void a_store_for_reading_only_refuses_to_write(void **state) {
    assert_int_equal(run_fiber(*state, read_only_main, NULL), EBB_OK);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

typedef struct attempt {
    ebb_store_opts opts;
    ebb_status expected;
    const char *text;
} attempt;

static ebb_status refused_main(ebb_cx *cx, void *arg) {
    const attempt *a = arg;
    assert_int_equal(ebb_await(cx, ebb_store_open(cx, &a->opts), NULL), a->expected);
    if (strstr(ebb_durable_error(), a->text) == NULL) print_error("said: %s\n", ebb_durable_error());
    assert_non_null(strstr(ebb_durable_error(), a->text));
    assert_null(strstr(ebb_durable_error(), "secret"));
    return EBB_OK;
}

static void refused(void **state, const char *url, bool no_create, ebb_status expected, const char *text) {
    attempt a = {{.url = url, .no_create = no_create}, expected, text};
    assert_int_equal(run_fiber(*state, refused_main, &a), EBB_OK);
}

static void an_open_that_fails_says_why(void **state) {
    char url[300];
    snprintf(url, sizeof url, "postgres://ebb:secret@localhost:%u/postgres", pg_free_port());
    refused(state, url, false, EBB_ERR_UNAVAILABLE, "refused");
    snprintf(url, sizeof url, "postgres://ebb:secret@no-such-host.invalid/postgres");
    refused(state, url, false, EBB_ERR_UNAVAILABLE, "no-such-host.invalid");
    snprintf(url, sizeof url, "postgres://ebb:secret@localhost:%u/elsewhere", server.port);
    refused(state, url, false, EBB_ERR_STORE, "elsewhere");
    snprintf(url, sizeof url, "postgres://nobody:secret@localhost:%u/postgres", server.port);
    refused(state, url, false, EBB_ERR_STORE, "nobody");
    snprintf(url, sizeof url, "postgres://ebb:secret@localhost:%u/postgres?colour=red", server.port);
    refused(state, url, false, EBB_ERR_INVALID, "'colour'");
    (void)pg_ask(observer, "CREATE DATABASE empty");
    snprintf(url, sizeof url, "postgres://ebb@localhost:%u/empty", server.port);
    refused(state, url, true, EBB_ERR_SCHEMA, "no schema");
}

static void a_newer_schema_is_refused_by_name_and_one_that_it_can_read_is_not(void **state) {
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 7 WHERE k = 'schema'");
    assert_int_equal(run_fiber(*state, plain, server.url), EBB_OK);
    check_ended("plain");
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 5 WHERE k = 'min_reader'");
    refused(state, server.url, false, EBB_ERR_SCHEMA, "version 7");
    assert_string_equal(pg_ask(observer, "SELECT v FROM ebb.meta WHERE k = 'schema'"), "7");
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 1");
    wipe();
}

static ebb_status drain_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb_provider_renew_call *r = new_call(s, EBB_PROVIDER_RENEW);
    (void)arg;
    wait_ready(cx, s); /* its connections have looked at the schema */
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 2 WHERE k = 'min_reader'");
    r->node = node;
    r->lease = EBB_SECOND;
    r = ask(cx, r);
    if (strstr(r->call.text, "version 2") == NULL) print_error("said: %s\n", r->call.text);
    assert_non_null(strstr(r->call.text, "version 2"));
    end_call(r, EBB_ERR_SCHEMA);
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 1");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void a_worker_below_the_version_that_may_read_is_told_by_its_renewal(void **state) {
    assert_int_equal(run_fiber(*state, drain_main, NULL), EBB_OK);
}

static ebb_status open_two(ebb_cx *cx, void *arg) {
    ebb_value v[4];
    ebb_future *f[4];
    for (int i = 0; i < 4; i++) f[i] = ebb_store_open(cx, &(ebb_store_opts){.url = arg});
    for (int i = 0; i < 4; i++) assert_int_equal(ebb_await(cx, f[i], &v[i]), EBB_OK);
    for (int i = 0; i < 4; i++) close_store(cx, ebb_store_of(&v[i]));
    return EBB_OK;
}

static void stores_that_make_the_schema_at_the_same_time_all_open(void **state) {
    (void)pg_ask(observer, "DROP SCHEMA ebb CASCADE; DROP SCHEMA ebb_v1 CASCADE");
    assert_int_equal(run_fiber(*state, open_two, server.url), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.clock"), "1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_store_for_reading_only_refuses_to_write),
        ON_A_LOOP(an_open_that_fails_says_why),
        ON_A_LOOP(a_newer_schema_is_refused_by_name_and_one_that_it_can_read_is_not),
        ON_A_LOOP(a_worker_below_the_version_that_may_read_is_told_by_its_renewal),
        ON_A_LOOP(stores_that_make_the_schema_at_the_same_time_all_open),
    };
    return RUN_ON_POSTGRES(tests);
}
