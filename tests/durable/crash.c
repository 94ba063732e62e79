/* Two workers on one store, and the first crashes at its n-th call, before or after the store has done it, for each n: the
 * instance ends once, with the right result, and its history is sound. */
#include "tests/support/durable_world.h"

static int ended_times;

static ebb_status count_ends(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper nap = {0};
    (void)a;
    ebb_status st = ebb_sleep(cx, &nap, EBB_SECOND);
    ended_times += st == EBB_OK;
    *out = in;
    return st;
}

static ebb_status busy(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step both[] = {ebb_orch_call(o, "count", in, NULL), ebb_orch_timer(o, 600 * EBB_SECOND)};
    size_t won;
    ebb_blob first;
    ebb_status st = ebb_orch_select(o, 2, both, &won);
    if (st != EBB_OK || won != 0) return EBB_FAILED;
    st = ebb_orch_await(o, both[0], &first);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_child(o, "kid", first, NULL), out);
    return st;
}

static ebb_status kid(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "count", in, NULL), out);
}

typedef struct crasher {
    durable *d;
    ebb_worker *first;
    ebb__store_fault kind;
    uint64_t at;
    bool crashed;
} crasher;

static ebb__store_fault fault(void *arg, uint64_t n, const ebb_provider_call *c) {
    const crasher *k = arg;
    (void)c;
    return n == k->at ? k->kind : EBB__FAULT_NONE;
}

static void crash(void *arg) {
    crasher *k = arg;
    k->crashed = true;
    ebb_region_force(k->d->world->host, ebb_worker_region(k->first));
}

static ebb_store *open_also(durable *d) {
    return open_store(d->world, "lab:");
}

static ebb_worker *worker_on(durable *d, ebb_store *s, const ebb_worker_opts *opts) {
    ebb_worker *w;
    ebb_worker_opts o = *opts;
    o.log = durable_log;
    o.arg = d;
    assert_int_equal(ebb_worker_open(d->world->host, s, &o, &w), EBB_OK);
    assert_int_equal(ebb_worker_orch(w, "busy", 1, busy), EBB_OK);
    assert_int_equal(ebb_worker_orch(w, "kid", 1, kid), EBB_OK);
    assert_int_equal(ebb_worker_activity(w, "count", count_ends, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(w), EBB_OK);
    return w;
}

static ebb_status verified(durable *d, const char *id) {
    ebb_future *f = ebb_instance_history(d->world->host, d->store, id, &(ebb_history_opts){.verify = true});
    durable_pass(d, EBB_MS);
    return ebb_await(d->world->host, f, NULL);
}

static bool crash_at(ebb__store_fault kind, uint64_t n) {
    world *w = world_new(NULL, false);
    durable *d = world_keep(w, sizeof *d);
    crasher k = {.d = d, .kind = kind, .at = n};
    const ebb__store_faults faults = {fault, crash, &k};
    d->world = w;
    d->store = open_store(w, "lab:");
    ebb_store *other = open_also(d);
    durable_start(d, "a", "busy", "42");
    ebb__store_set_faults(other, &faults);
    k.first = worker_on(d, other, &(ebb_worker_opts){.lease = 5 * EBB_SECOND});
    durable_pass(d, EBB_MS);
    (void)worker_on(d, d->store, &(ebb_worker_opts){.lease = 5 * EBB_SECOND});
    durable_pass(d, 60 * EBB_SECOND);
    if (strcmp(durable_state(d, "a"), "Completed 42") != 0)
        print_error("crash %d at call %d\n%s", kind, (int)n, d->log);
    assert_string_equal(durable_state(d, "a"), "Completed 42");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(verified(d, "a"), EBB_OK);
    const bool crashed = k.crashed;
    ebb_region_cancel(w->host, w->root, EBB_CANCEL_SHUTDOWN, "");
    durable_pass(d, EBB_SECOND);
    world_end(w);
    return crashed;
}

static void a_crash_before_any_call(void **state) {
    int crashes = 0;
    (void)state;
    for (uint64_t n = 0; n < 30; n++) crashes += crash_at(EBB__FAULT_CRASH_BEFORE, n);
    assert_true(crashes >= 10);
}

static void a_crash_after_any_call(void **state) {
    int crashes = 0;
    (void)state;
    for (uint64_t n = 0; n < 30; n++) crashes += crash_at(EBB__FAULT_CRASH_AFTER, n);
    assert_true(crashes >= 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_before_any_call),
        cmocka_unit_test(a_crash_after_any_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
