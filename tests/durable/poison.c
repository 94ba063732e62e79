/* What is claimed again and again without an end is poisoned, and harms no bystander; a message that comes between fetch
 * and ack survives. */
#include "tests/support/durable_world.h"

static ebb_status one(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    return st == EBB_ERR_POISONED ? ebb_orch_fail(o, ebb_orch_failure(o)) : st;
}

static ebb_provider_node join(durable *d) {
    const ebb_provider_runs runs = {"one", 1};
    ebb_provider_join_call *c = new_call(d->store, EBB_PROVIDER_JOIN);
    c->name = "crashes";
    c->lease = EBB_SECOND;
    c->runs = &runs;
    c->runs_n = 1;
    c = ask_store(d->world, c);
    const ebb_provider_node node = c->node;
    free_call(c);
    return node;
}

/* A worker that crashes with what it has claimed. */
static size_t crash_with_turns(durable *d) {
    ebb_provider_fetch_turns_call *c = new_call(d->store, EBB_PROVIDER_FETCH_TURNS);
    c->node = join(d);
    c->most = 1;
    c->messages = 10;
    c->suspects = true;
    c = ask_store(d->world, c);
    const size_t n = c->items_n;
    free_call(c);
    durable_pass(d, 2 * EBB_SECOND);
    return n;
}

static size_t crash_with_work(durable *d) {
    const ebb_provider_queue queue = {"echo", 1};
    ebb_provider_fetch_work_call *c = new_call(d->store, EBB_PROVIDER_FETCH_WORK);
    c->node = join(d);
    c->queues = &queue;
    c->queues_n = 1;
    c->most = 1;
    c->lease = EBB_SECOND;
    c->suspects = true;
    c = ask_store(d->world, c);
    const size_t n = c->items_n;
    free_call(c);
    durable_pass(d, 2 * EBB_SECOND);
    return n;
}

static durable *world_of(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "one", 1, one), EBB_OK);
    return d;
}

static void a_poisoned_instance_is_suspended_alone(void **state) {
    durable *d = world_of(state);
    durable_start(d, "bad", "one", "7");
    for (int i = 0; i < 10; i++) assert_int_equal(crash_with_turns(d), 1);
    for (int i = 0; i < 5; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "good%d", i);
        durable_start(d, id, "one", "7");
    }
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 10 * EBB_SECOND);
    assert_non_null(strstr(durable_state(d, "bad"), "Suspended poisoned: its turn 1 was claimed 11 times"));
    for (int i = 0; i < 5; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "good%d", i);
        assert_string_equal(durable_state(d, id), "Completed 7");
    }
    ebb_future *f = ebb_instance_resume(d->world->host, d->store, "bad");
    durable_pass(d, 5 * EBB_SECOND);
    assert_int_equal(ebb_await(d->world->host, f, NULL), EBB_OK);
    assert_string_equal(durable_state(d, "bad"), "Completed 7");
}

static void a_suspect_that_ends_well_is_none(void **state) {
    durable *d = world_of(state);
    durable_start(d, "bad", "one", "7");
    for (int i = 0; i < 9; i++) assert_int_equal(crash_with_turns(d), 1);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(d, "bad"), "Completed 7");
    assert_int_equal(d->errors, 0);
}

static void a_poisoned_activity_fails_for_good(void **state) {
    durable *d = world_of(state);
    ebb_worker *orchs = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(orchs, "one", 1, one), EBB_OK);
    assert_int_equal(ebb_worker_begin(orchs), EBB_OK);
    durable_start(d, "bad", "one", "7");
    durable_pass(d, EBB_SECOND);
    for (int i = 0; i < 10; i++) assert_int_equal(crash_with_work(d), 1);
    durable_start(d, "good", "one", "8");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_state(d, "bad"), "Failed EBB_ERR_POISONED");
    assert_string_equal(durable_state(d, "good"), "Completed 8");
    assert_int_equal(d->started, 1); /* the poisoned one never ran here */
}

/* ---- messages in between ----------------------------------------------------------------------------------------- */

static uint64_t slow_acks(void *arg, const ebb_provider_call *c) {
    (void)arg;
    return c->op == EBB_PROVIDER_ACK_TURN ? 10 * EBB_MS : 0;
}

static ebb_status three(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *text = ebb_orch_alloc(o, 8);
    (void)in;
    for (int i = 0; i < 3; i++) {
        ebb_blob one_of;
        ebb_status st = ebb_orch_await(o, ebb_orch_event(o, "go"), &one_of);
        if (st != EBB_OK) return st;
        text[i] = *(const char *)one_of.at;
    }
    *out = ebb_blob_text(text);
    return EBB_OK;
}

static void a_message_between_fetch_and_ack_survives(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    ebb__lab_world_use(w->rt, lab);
    durable *d = durable_new(w, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "three", 1, three), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    ebb__lab_world_set_delay(lab, slow_acks, NULL);
    durable_start(d, "a", "three", "");
    durable_pass(d, 5 * EBB_MS); /* the first turn has run, and its ack is on its way */
    durable_signal(d, "a", "go", "1");
    durable_pass(d, 7 * EBB_MS);
    durable_signal(d, "a", "go", "2");
    durable_pass(d, 3 * EBB_MS);
    durable_signal(d, "a", "go", "3");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 123");
    ebb_region_cancel(w->host, w->root, EBB_CANCEL_SHUTDOWN, "");
    durable_pass(d, EBB_SECOND);
    ebb__lab_world_free(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_poisoned_instance_is_suspended_alone),
        IN_WORLD(a_suspect_that_ends_well_is_none),
        IN_WORLD(a_poisoned_activity_fails_for_good),
        IN_WORLD(a_message_between_fetch_and_ack_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
