/* A worker that is closing, and units of work that need it; and a store that does not answer. */
#include "durable/worker.h"
#include "tests/support/durable_world.h"

enum { WAITS_MOST = 4, UNITS = 3, SEEDS = 200 };

static ebb_status calls_twice(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out) : st;
}

/* Starts instances and waits for each, with a pause before it. */
typedef struct unit {
    durable *d;
    ebb_region region;
    uint32_t number, waits, done;
    uint64_t pauses[WAITS_MOST];
    uint64_t over; /* when it was; 0: it goes on */
} unit;

static ebb_status in_unit(ebb_cx *cx, void *arg) {
    unit *u = arg;
    for (uint32_t i = 0; i < u->waits; i++) {
        char id[32];
        ebb_sleeper nap = {0};
        (void)snprintf(id, sizeof id, "%u-%u", u->number, i);
        ebb_status st = ebb_sleep(cx, &nap, u->pauses[i]);
        const ebb_start_opts o = {.id = id, .name = "twice", .input = ebb_blob_text("7")};
        if (st == EBB_OK) st = ebb_await(cx, ebb_instance_start(cx, u->d->store, &o), NULL);
        if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, u->d->store, id), NULL);
        if (st != EBB_OK) return st;
        u->done++;
    }
    u->over = ebb_now(cx);
    return EBB_OK;
}

static void begin_unit(unit *u) {
    ebb_cx *host = u->d->world->host;
    u->region = ebb_region_open(host, &(ebb_region_opts){.unit = true});
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(host, u->region, in_unit, u).id), EBB_OK);
}

static durable *begun(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "twice", 1, calls_twice), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    return d;
}

static bool is_open(durable *d, ebb_region of) {
    ebb_region_state s;
    return ebb_region_state_of(d->world->host, of, &s) == EBB_OK && s != EBB_REGION_CLOSED;
}

static void a_unit_that_waits_again_finds_the_worker(void **state) {
    durable *d = begun(state);
    const ebb_region of = ebb_worker_region(d->worker);
    unit u = {.d = d, .waits = 2, .pauses = {0, 10 * EBB_SECOND}};
    begin_unit(&u);
    durable_pass(d, EBB_SECOND);
    ebb_region_close(d->world->host, of);
    durable_pass(d, 9 * EBB_SECOND);
    assert_int_equal(u.done, 1); /* it waits for nothing now */
    assert_true(is_open(d, of));
    for (int i = 0; i < 300 && u.done < 2; i++) durable_pass(d, 100 * EBB_MS);
    assert_int_equal(u.done, 2);
    durable_pass(d, 100 * EBB_MS);
    assert_false(is_open(d, of));
}

static void a_worker_whose_units_have_ended_ends(void **state) {
    durable *d = begun(state);
    const ebb_region of = ebb_worker_region(d->worker);
    unit u = {.d = d, .waits = 1};
    begin_unit(&u);
    durable_pass(d, 10 * EBB_SECOND);
    assert_int_equal(u.done, 1);
    ebb_region_close(d->world->host, of);
    durable_pass(d, 100 * EBB_MS);
    assert_false(is_open(d, of));
}

/* An activity that has waited is in the unit of its worker, which would wait for itself. */
static ebb_status waits_for_another(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    *out = in;
    return ebb_await(cx, ebb_instance_wait(cx, d->store, "other"), NULL);
}

static ebb_status calls_waiter(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "waits", in, NULL), out);
}

static void a_worker_does_not_wait_for_its_own_unit(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "twice", 1, calls_twice), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "waiter", 1, calls_waiter), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "waits", waits_for_another, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "other", "twice", "7");
    durable_start(d, "a", "waiter", "7");
    durable_pass(d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, 100 * EBB_MS);
    assert_false(is_open(d, ebb_worker_region(d->worker)));
}

static uint64_t random_of(uint64_t *seed, uint64_t most) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % most;
}

/* Units begin and pause at any time, and the close comes at any time after each has waited once. */
static void units_end_well_whenever_the_close_comes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world *w = world_new(NULL, false);
        durable *d = begun((void **)&w);
        const ebb_region of = ebb_worker_region(d->worker);
        uint64_t random = seed, last = 0;
        unit all[UNITS];
        for (uint32_t i = 0; i < UNITS; i++) {
            all[i] = (unit){.d = d, .number = i, .waits = 1 + (uint32_t)random_of(&random, WAITS_MOST)};
            for (uint32_t k = 1; k < all[i].waits; k++)
                all[i].pauses[k] = random_of(&random, 3) * random_of(&random, EBB_SECOND);
            begin_unit(&all[i]);
        }
        durable_pass(d, 1 + random_of(&random, 4 * EBB_SECOND));
        ebb_region_close(w->host, of);
        durable_pass(d, 60 * EBB_SECOND);
        for (uint32_t i = 0; i < UNITS; i++) {
            if (all[i].done != all[i].waits) print_error("seed %d, unit %u\n", (int)seed, i);
            assert_int_equal(all[i].done, all[i].waits);
            if (all[i].over > last) last = all[i].over;
        }
        assert_false(is_open(d, of));
        world_end(w);
    }
}

/* ---- what holds it up ------------------------------------------------------------------------------------------- */

static ebb_status opens_a_worker(ebb_cx *cx, void *arg) {
    durable *d = arg;
    ebb_worker *w;
    ebb_status st = ebb_worker_open(cx, d->store, &(ebb_worker_opts){.log = durable_log, .arg = d}, &w);
    if (st == EBB_OK) st = ebb_worker_orch(w, "waits", 1, calls_waiter);
    if (st == EBB_OK) st = ebb_worker_activity(w, "waits", durable_hang, d, NULL);
    return st == EBB_OK ? ebb_worker_begin(w) : st;
}

static void add_text(void *ctx, const char *text, size_t n) {
    (void)strncat(ctx, text, n);
}

static void a_drain_names_the_activity_and_its_instance(void **state) {
    durable *d = world_keep(*state, sizeof *d);
    char text[4096] = "";
    d->world = *state;
    d->store = open_store(d->world, "lab:");
    ebb_cx *host = d->world->host;
    const ebb_workflow wf =
        ebb_workflow_open(host, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown});
    assert_int_equal(
        ebb_id_status(ebb_fiber_spawn(host, ebb_workflow_region(host, wf), opens_a_worker, d).id), EBB_OK);
    durable_pass(d, EBB_MS);
    durable_start(d, "order-7", "waits", "7");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(ebb_workflow_request(host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_workflow_explain(host, wf, add_text, text), EBB_OK);
    if (strstr(text, "  activity waits #2 of order-7:\n  task ") == NULL) print_error("%s", text);
    assert_non_null(strstr(text, "  activity waits #2 of order-7:\n  task "));
}

/* ---- a join that nobody answers --------------------------------------------------------------------------------- */

static ebb_provider mute;
static const ebb_provider *lab;
static bool is_mute;
static ebb_provider_join_call *held[64];
static size_t held_n;

static void hold_join(void *self, ebb_provider_join_call *c) {
    if (!is_mute || c->runs[0].version == 0) lab->join(self, c);
    else held[held_n++] = c;
}

static ebb__store_fault lost_fetch(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)arg;
    (void)n;
    return is_mute && held_n == 0 && c->op == EBB_PROVIDER_FETCH_TURNS ? EBB__FAULT_LOST_REPLY
                                                                       : EBB__FAULT_NONE;
}

/* The answer of a fetch is lost, so that the worker joins for instances again: its activity must not lose its lease. */
static void a_join_that_is_not_answered_delays_no_renewal(void **state) {
    world *w = *state;
    durable *d = world_keep(w, sizeof *d);
    ebb_value v;
    const ebb__store_faults faults = {.at = lost_fetch};
    lab = ebb__provider_of("lab:");
    mute = *lab;
    mute.join = hold_join;
    is_mute = false;
    held_n = 0;
    d->world = w;
    ebb_future *f = ebb_store_open(w->host, &(ebb_store_opts){.url = "lab:", .provider = &mute});
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    d->store = ebb_store_of(&v);
    d->worker = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "waits", 1, calls_waiter), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "waits", durable_hang, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "waits", "7");
    durable_pass(d, EBB_SECOND);
    ebb__store_set_faults(d->store, &faults);
    is_mute = true;
    durable_start(d, "b", "waits", "7"); /* makes it fetch */
    durable_pass(d, 100 * EBB_SECOND);
    assert_in_range(held_n, 2, 60);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 0 messages 0");
    assert_int_equal(durable_stats(d).lease_lost, 0);
    assert_int_equal(d->cancelled, 0);
    is_mute = false;
    ebb__store_set_faults(d->store, NULL);
    for (size_t i = 0; i < held_n; i++) lab->join(ebb__store_gate(d->store)->self, held[i]);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "b"), "work 1 claimed 1 timers 0 messages 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_unit_that_waits_again_finds_the_worker),
        IN_WORLD(a_worker_whose_units_have_ended_ends),
        IN_WORLD(a_worker_does_not_wait_for_its_own_unit),
        cmocka_unit_test(units_end_well_whenever_the_close_comes),
        IN_WORLD(a_drain_names_the_activity_and_its_instance),
        IN_WORLD(a_join_that_is_not_answered_delays_no_renewal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
