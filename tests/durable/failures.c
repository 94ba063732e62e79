/* Texts of failures: each future brings its own, whatever fails beside it. */
#include "future/future.h"
#include "tests/support/durable_world.h"

enum { CLIENTS = 3, MANY = 2000 };

typedef struct client {
    durable *of;
    const char *id;
    char said[CLIENTS][512];
} client;

static void note(client *c, int i, ebb_status st, ebb_status expected) {
    assert_int_equal(st, expected);
    (void)snprintf(c->said[i], sizeof c->said[i], "%s", ebb_durable_error());
}

/* One call of the store, several on a fiber, and a wait; plain, bounded, and after a cleanup. */
static ebb_future *cleaned(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return NULL;
}

static ebb_status fails_thrice(ebb_cx *cx, void *arg) {
    client *c = arg;
    ebb_store *s = c->of->store;
    ebb_sleeper nap = {0};
    (void)ebb_sleep(cx, &nap, EBB_SECOND); /* all at once */
    note(c, 0, ebb_await(cx, ebb_within(cx, ebb_instance_status(cx, s, c->id), EBB_SECOND), NULL),
         EBB_ERR_UNKNOWN_INSTANCE);
    ebb_future *f = ebb_instance_terminate(cx, s, c->id, "by hand");
    note(c, 1, ebb_await(cx, ebb_finally(cx, f, cleaned, NULL), NULL), EBB_ERR_UNKNOWN_INSTANCE);
    f = ebb_instance_wait(cx, s, c->id);
    note(c, 2, ebb_await(cx, ebb_race(cx, 1, &f), NULL), EBB_ERR_UNKNOWN_INSTANCE);
    return EBB_OK;
}

static void clients_at_the_same_time_learn_each_their_own(void **state) {
    static const char *const ids[CLIENTS] = {"one", "two", "three"};
    durable *d = durable_new(*state, NULL);
    client all[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        all[i] = (client){.of = d, .id = ids[i]};
        (void)ebb_fiber_spawn(d->world->host, d->world->root, fails_thrice, &all[i]);
    }
    durable_pass(d, 3 * EBB_SECOND);
    for (int i = 0; i < CLIENTS; i++) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "'%s'", ids[i]);
        for (int k = 0; k < CLIENTS; k++) assert_non_null(strstr(all[i].said[k], quoted));
    }
}

/* Both have failed before the first is read. */
static void the_text_is_that_of_the_future_and_not_the_last(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_cx *cx = d->world->host;
    ebb_future *a = ebb_instance_status(cx, d->store, "first");
    ebb_future *b = ebb_instance_resume(cx, d->store, "second");
    ebb_future *bad = ebb_instance_cancel(cx, d->store, "", NULL);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(cx, a, NULL), EBB_ERR_UNKNOWN_INSTANCE);
    assert_non_null(strstr(ebb_durable_error(), "'first'"));
    assert_int_equal(ebb_await(cx, bad, NULL), EBB_ERR_INVALID);
    assert_string_equal(ebb_durable_error(), "no valid id of an instance");
    assert_int_equal(ebb_await(cx, b, NULL), EBB_ERR_UNKNOWN_INSTANCE);
    assert_non_null(strstr(ebb_durable_error(), "'second'"));
}

static void a_failure_without_a_text_leaves_none_of_another(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_cx *cx = d->world->host;
    assert_int_equal(durable_await(d, ebb_instance_cancel(cx, d->store, "", NULL)), EBB_ERR_INVALID);
    assert_int_equal(ebb_await(cx, ebb_future_failed(cx, EBB_TIMEOUT), NULL), EBB_TIMEOUT);
    assert_string_equal(ebb_durable_error(), "");
}

/* Nobody reads it, the region's unread values are let go, and the heap is collected. */
static void a_failure_outlives_what_the_heap_clears(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_cx *cx = d->world->host;
    ebb_future *f = ebb_instance_status(cx, d->store, "first");
    ebb_future *again = ebb_future_keep(f);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(cx, f, NULL), EBB_ERR_UNKNOWN_INSTANCE);
    (void)ebb_gc_collect(d->world->rt);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_future_status_of(again), EBB_ERR_UNKNOWN_INSTANCE);
    (void)ebb_instance_cancel(cx, d->store, "", NULL);
    assert_int_equal(ebb_await(cx, again, NULL), EBB_ERR_UNKNOWN_INSTANCE);
    assert_non_null(strstr(ebb_durable_error(), "'first'"));
}

/* The heap has room for some, and gets no more. */
static void without_memory_the_failure_stays(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_cx *cx = d->world->host;
    ebb_failing *memory = &d->world->memory;
    static ebb_future *all[MANY];
    int lost = 0;
    for (int i = 0; i < MANY; i++) all[i] = ebb_promise_new(cx, NULL, NULL);
    memory->fail_at = memory->calls + 1;
    memory->fail_after = true;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ebb__promise_reject_because(all[i], EBB_ERR_STORE, "why"), EBB_OK);
    memory->fail_at = 0;
    memory->fail_after = false;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ebb_await(cx, all[i], NULL), EBB_ERR_STORE);
        lost += *ebb_durable_error() == 0;
    }
    assert_true(lost > 0);
}

static void a_long_text_is_cut(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_cx *cx = d->world->host;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    assert_int_equal(ebb_await(cx, ebb__future_failed_because(cx, EBB_FAILED, text, EBB_SITE), NULL),
                     EBB_FAILED);
    assert_int_equal(strlen(ebb_durable_error()), 511);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(clients_at_the_same_time_learn_each_their_own),
        IN_WORLD(the_text_is_that_of_the_future_and_not_the_last),
        IN_WORLD(a_failure_without_a_text_leaves_none_of_another),
        IN_WORLD(a_failure_outlives_what_the_heap_clears),
        IN_WORLD(without_memory_the_failure_stays),
        IN_WORLD(a_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
