/* Histories that are run again with other code, without a worker: what comes out, and the n-th allocation fails. */
#include "durable/rerun.h"

#include "tests/support/durable_world.h"

/* ---- code: "two" as it was, and by a later hand ---- */

static ebb_status two(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob first;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), &first);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), out) : st;
}

static ebb_status changed(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "hang", in, NULL), out) : st;
}

/* Its first turn asks for more than was recorded. */
static ebb_status longer(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[] = {ebb_orch_call(o, "echo", in, NULL), ebb_orch_timer(o, EBB_SECOND)};
    ebb_status st = ebb_orch_join(o, 2, all);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), out) : st;
}

/* ---- a world with an instance that waits, and one that has ended ---- */

static durable *world_of(world *w) {
    durable *d = durable_new(w, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "waits", "two", "7");
    durable_start(d, "ended", "two", "7");
    durable_signal(d, "ended", "go", "8");
    durable_start(d, "stopped", "two", "7");
    durable_pass(d, 3 * EBB_SECOND);
    ebb_future *f = ebb_instance_terminate(w->host, d->store, "stopped", "by hand");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(ebb_await(w->host, f, NULL), EBB_OK);
    assert_string_equal(durable_state(d, "waits"), "Running");
    assert_string_equal(durable_state(d, "ended"), "Completed 8");
    return d;
}

typedef struct asked {
    durable *d;
    const ebb_worker *with;
    const char *id;
    ebb_status status;
    bool done;
    char text[600];
    ebb__rerun out;
} asked;

static ebb_status body(ebb_cx *cx, void *arg) {
    asked *a = arg;
    a->status = ebb__rerun_instance(cx, a->d->store, a->with, a->id, &a->out);
    (void)snprintf(a->text, sizeof a->text, "%s", ebb_durable_error());
    a->done = true;
    return EBB_OK;
}

/* Another worker, which never begins, has the code. */
static asked *rerun(durable *d, const char *id, ebb_orch_fn fn) {
    asked *a = world_keep(d->world, sizeof *a);
    ebb_worker *with = durable_open(d, NULL);
    if (fn != NULL) assert_int_equal(ebb_worker_orch(with, "two", 1, fn), EBB_OK);
    *a = (asked){.d = d, .with = with, .id = id};
    const ebb_task t = ebb_fiber_spawn(d->world->host, ebb_cx_region(d->world->host), body, a);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_true(a->done);
    return a;
}

static void the_same_code_does_what_was_recorded(void **state) {
    durable *d = world_of(*state);
    const asked *a = rerun(d, "ended", two);
    assert_int_equal(a->status, EBB_OK);
    assert_int_equal(a->out.turns, 3);
    assert_int_equal(a->out.version, 1);
    assert_string_equal(a->out.name, "two");
    assert_int_equal(rerun(d, "waits", two)->out.turns, 2);
    assert_int_equal(rerun(d, "stopped", two)->status, EBB_OK); /* the turn of the operator has no code */
    assert_string_equal(durable_state(d, "waits"), "Running");
}

static void other_code_differs_and_both_sides_are_shown(void **state) {
    durable *d = world_of(*state);
    const asked *a = rerun(d, "waits", changed);
    assert_int_equal(a->status, EBB_ERR_NONDETERMINISM);
    assert_int_equal(a->out.turns, 1);
    assert_non_null(strstr(a->out.text, "turn 2 has event"));
    assert_non_null(strstr(a->out.text, "event_awaited"));
    assert_non_null(strstr(a->out.text, "hang"));
    a = rerun(d, "waits", longer);
    assert_int_equal(a->status, EBB_ERR_NONDETERMINISM);
    assert_int_equal(a->out.turns, 0);
    assert_non_null(strstr(a->out.text, "has no more events"));
    assert_string_equal(durable_state(d, "waits"), "Running"); /* nothing was suspended */
    assert_int_equal(d->errors, 0);
}

static void what_can_not_be_run_is_named(void **state) {
    durable *d = world_of(*state);
    assert_int_equal(rerun(d, "nobody", two)->status, EBB_ERR_UNKNOWN_INSTANCE);
    assert_int_equal(rerun(d, "", two)->status, EBB_ERR_INVALID);
    const asked *a = rerun(d, "waits", NULL);
    assert_int_equal(a->status, EBB_ERR_INVALID);
    assert_string_equal(a->text, "waits is of orchestration two, version 1, which is not registered");
}

/* False: no allocation has failed. */
static bool fails_at(uint64_t n) {
    world *w = world_new(NULL, false);
    durable *d = world_of(w);
    asked a = {.d = d, .with = d->worker, .id = "ended"};
    const ebb_task t = ebb_fiber_spawn(w->host, ebb_cx_region(w->host), body, &a);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    w->memory.fail_at = w->memory.calls + n;
    durable_pass(d, EBB_SECOND);
    const bool failed = w->memory.failures > 0;
    w->memory.fail_at = 0;
    assert_true(a.done);
    assert_true(a.status == EBB_OK || a.status == EBB_ERR_NOMEM);
    if (a.status == EBB_OK) assert_int_equal(a.out.turns, 3);
    assert_string_equal(durable_state(d, "ended"), "Completed 8");
    world_end(w);
    return failed;
}

static void the_nth_allocation_fails(void **state) {
    (void)state;
    uint64_t n = 1;
    while (fails_at(n)) assert_true(++n < 1000);
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_same_code_does_what_was_recorded),
        IN_WORLD(other_code_differs_and_both_sides_are_shown),
        IN_WORLD(what_can_not_be_run_is_named),
        cmocka_unit_test(the_nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
