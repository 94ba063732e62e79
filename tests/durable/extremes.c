/* Values at the ends of their ranges, and steps in numbers that nobody has tried. */
#include "tests/support/durable_world.h"

static ebb_status patient(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts never = {.timeout = EBB_FOREVER, .retry_timeouts = true, .attempts = UINT32_MAX};
    return ebb_orch_await(o, ebb_orch_call(o, "echo", in, &never), out);
}

static void a_timeout_for_ever_is_never_over(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "patient", 1, patient), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "patient", "7");
    durable_pass(d, 100 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    assert_int_equal(d->started, 1);
}

static ebb_status fails(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    (void)cx;
    (void)in;
    (void)out;
    d->started++;
    return EBB_FAILED;
}

static ebb_status hesitant(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts once = {.attempts = 2, .backoff = EBB_BACKOFF_FIXED, .pause = EBB_FOREVER};
    return ebb_orch_await(o, ebb_orch_call(o, "fails", in, &once), out);
}

static void a_pause_for_ever_is_never_over(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_activity(d->worker, "fails", fails, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "hesitant", 1, hesitant), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "hesitant", "7");
    durable_pass(d, 100 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Running");
    assert_int_equal(d->started, 1);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 1 messages 0");
}

enum { CHILDREN = 4000 };

static ebb_status waits(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "never"), out);
}

static ebb_status family(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_event(o, "go"), NULL);
    for (int i = 0; st == EBB_OK && i < CHILDREN; i++) (void)ebb_orch_child(o, "waits", in, NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "never"), out) : st;
}

static int64_t live, most;

static void *counting(void *ctx, void *p, size_t old, size_t n) {
    const ebb_allocator libc = ebb_libc_allocator();
    (void)ctx;
    live += (int64_t)n - (int64_t)old;
    if (live > most) most = live;
    return libc.fn(libc.ctx, p, old, n);
}

/* Each of them is cancelled: what that takes is as long as what it is about. */
static void a_reset_of_many_children_takes_no_more_memory_than_they_do(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "family", 1, family), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "waits", 1, waits), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "family", "7");
    durable_pass(d, EBB_SECOND);
    durable_signal(d, "a", "go", "");
    durable_settle(d);
    d->world->memory.inner = (ebb_allocator){counting, NULL};
    live = most = 0;
    assert_int_equal(durable_await(d, ebb_instance_reset(d->world->host, d->store, "a", 1)), EBB_OK);
    d->world->memory.inner = ebb_libc_allocator();
    print_message("%lld KiB\n", (long long)most / 1024);
    assert_true(most < (int64_t)CHILDREN * 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(a_timeout_for_ever_is_never_over),
        IN_UNTRACED_WORLD(a_pause_for_ever_is_never_over),
        IN_UNTRACED_WORLD(a_reset_of_many_children_takes_no_more_memory_than_they_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
