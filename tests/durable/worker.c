/* A worker over the lab store: from a start to the end, by way of activities, timers, signals and children. */
#include "durable/worker.h"
#include "tests/support/durable_world.h"

static ebb_status two(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob first;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), &first);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, 10 * EBB_SECOND), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "echo", first, NULL), out) : st;
}

static void an_instance_runs_to_its_end(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "two", "42");
    assert_string_equal(durable_state(d, "a"), "Running");
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 1 messages 0");
    assert_int_equal(durable_stats(d).hot, 1);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 42");
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(d->started, 2);
    const ebb_worker_stats s = durable_stats(d);
    assert_int_equal(s.completed, 2);
    assert_int_equal(s.turns, 4);
    assert_int_equal(s.replays, 0);
    assert_int_equal(s.hot, 0);
    assert_string_equal(d->log, "");
}

/* ---- hot and cold ------------------------------------------------------------------------------------------------ */

static ebb_status busy(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char id[37], *text = ebb_orch_alloc(o, 64);
    const ebb_call_opts thrice = {
        .attempts = 3, .backoff = EBB_BACKOFF_LINEAR, .timeout = EBB_SECOND / 2, .retry_timeouts = true};
    ebb_step all[3] = {ebb_orch_call(o, "echo", in, NULL), ebb_orch_event(o, "go"),
                       ebb_orch_call(o, "hang", in, &thrice)};
    size_t won;
    if (ebb_orch_select(o, 3, all, &won) != EBB_OK) return EBB_FAILED;
    ebb_orch_new_id(o, id);
    ebb_status st = ebb_orch_await(o, ebb_orch_child(o, "two", ebb_blob_text("c"), NULL), out);
    if (st != EBB_OK) return st;
    (void)snprintf(text, 64, "%d %s %.*s", (int)won, id, (int)out->n, (const char *)out->at);
    *out = ebb_blob_text(text);
    return EBB_OK;
}

/* All turns of an instance, one after the other. */
static size_t history(durable *d, const char *id, uint8_t *into, size_t room) {
    ebb_provider_history_call *c = new_call(d->store, EBB_PROVIDER_HISTORY);
    size_t n = 0;
    c->id = id;
    c->most = 1000;
    c->bytes = 1 << 20;
    c = ask_store(d->world, c);
    assert_int_equal(c->call.status, EBB_OK);
    for (size_t i = 0; i < c->turns_n; i++) {
        assert_true(n + c->turns[i].body.n + 8 <= room);
        memcpy(into + n, &c->turns[i].at, 8);
        memcpy(into + n + 8, c->turns[i].body.at, c->turns[i].body.n);
        n += 8 + c->turns[i].body.n;
    }
    free_call(c);
    return n;
}

static durable *run_busy(world *w, uint32_t cache, uint8_t *into, size_t room, size_t *n) {
    durable *d = durable_new(w, &(ebb_worker_opts){.cache = cache});
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "busy", 1, busy), EBB_OK);
    durable_start(d, "a", "busy", "7");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 60 * EBB_SECOND);
    assert_non_null(strstr(durable_state(d, "a"), "Completed 0 "));
    *n = history(d, "a", into, room);
    return d;
}

static void a_cache_of_no_size_and_of_any_size_give_the_same_history(void **state) {
    static uint8_t cold[1 << 16], hot[1 << 16];
    size_t cold_n, hot_n;
    world *w = world_new(NULL, true);
    durable *d = run_busy(w, EBB_WORKER_NO_CACHE, cold, sizeof cold, &cold_n);
    assert_true(durable_stats(d).replays > 5);
    assert_int_equal(durable_stats(d).hot, 0);
    world_end(w);
    d = run_busy(*state, 0, hot, sizeof hot, &hot_n);
    assert_int_equal(durable_stats(d).replays, 0);
    assert_int_equal(cold_n, hot_n);
    assert_memory_equal(cold, hot, hot_n);
}

static void those_used_longest_ago_are_evicted_and_go_on(void **state) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.cache = 3});
    char id[24];
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof id, "i%d", i);
        durable_start(d, id, "two", "7");
    }
    durable_pass(d, 5 * EBB_SECOND);
    ebb_fiber_stats fibers;
    ebb_fiber_stats_of(d->world->rt, &fibers);
    assert_int_equal(durable_stats(d).hot, 3);
    assert_true(durable_stats(d).evictions >= 7);
    durable_pass(d, 30 * EBB_SECOND);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof id, "i%d", i);
        assert_string_equal(durable_state(d, id), "Completed 7");
    }
    assert_true(fibers.alive <= 3 * 2 + 3); /* each with its shadow, and the worker's own */
    assert_string_equal(d->log, "");
}

/* ---- children and signals ---------------------------------------------------------------------------------------- */

static ebb_status approval(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_event(o, "approved"), out);
}

static void a_signal_wakes_it_and_may_start_it(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "approval", 1, approval), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "approval", "");
    durable_pass(d, 1000 * EBB_SECOND);
    durable_signal(d, "a", "other", "no");
    durable_signal(d, "a", "approved", "yes");
    durable_pass(d, EBB_MS);
    assert_string_equal(durable_state(d, "a"), "Completed yes");
    const ebb_start_opts start = {.name = "approval"};
    const ebb_signal_opts both = {
        .id = "b", .name = "approved", .body = ebb_blob_text("at once"), .start = &start};
    assert_int_equal(durable_await(d, ebb_instance_signal(d->world->host, d->store, &both)), EBB_OK);
    durable_pass(d, EBB_MS);
    assert_string_equal(durable_state(d, "b"), "Completed at once");
    const ebb_signal_opts late = {.id = "b", .name = "approved"};
    assert_int_equal(durable_await(d, ebb_instance_signal(d->world->host, d->store, &late)),
                     EBB_ERR_UNKNOWN_INSTANCE);
}

static void a_wait_ends_with_the_instance(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_value v;
    assert_int_equal(ebb_worker_orch(d->worker, "approval", 1, approval), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "approval", "");
    ebb_future *f = ebb_instance_wait(d->world->host, d->store, "a");
    ebb_future *given_up = ebb_instance_wait(d->world->host, d->store, "a");
    durable_pass(d, 100 * EBB_SECOND);
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    assert_true(ebb_future_cancel(given_up, EBB_CANCEL_USER));
    durable_signal(d, "a", "approved", "yes");
    const uint64_t then = ebb_now(d->world->host);
    store_settle(d->world);
    store_settle(d->world);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK); /* by the hint, and not by the next look */
    assert_int_equal(ebb_now(d->world->host), then);
    assert_int_equal(ebb_instance_info_of(&v)->state, EBB_INSTANCE_COMPLETED);
    ebb_value_discard(d->world->host, v);
    assert_int_equal(durable_await(d, ebb_instance_wait(d->world->host, d->store, "a")), EBB_OK);
    assert_int_equal(durable_await(d, ebb_instance_wait(d->world->host, d->store, "nobody")),
                     EBB_ERR_UNKNOWN_INSTANCE);
}

/* ---- bad code and bad rows ------------------------------------------------------------------------------------------- */

static int counter;

static ebb_status static_state(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char text[16];
    (void)in;
    (void)snprintf(text, sizeof text, "%d", counter++);
    return ebb_orch_await(o, ebb_orch_call(o, "echo", ebb_blob_text(text), NULL), out);
}

static void the_double_run_suspends_before_the_commit(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "bad", 1, static_state), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "bad", "bad", "");
    durable_start(d, "good", "two", "7");
    durable_pass(d, 30 * EBB_SECOND);
    const char *said = durable_state(d, "bad");
    assert_non_null(strstr(said, "Suspended a second run differs"));
    assert_non_null(strstr(said, "durable/worker.c:"));
    assert_string_equal(durable_rows(d, "bad"), "work 0 claimed 0 timers 0 messages 1");
    assert_int_equal(durable_await(d, ebb_instance_wait(d->world->host, d->store, "bad")), EBB_ERR_SUSPENDED);
    assert_int_equal(durable_stats(d).suspended, 1);
    assert_string_equal(durable_state(d, "good"), "Completed 7");
}

static void what_nobody_can_run_waits_and_delays_nobody(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "of another program", "");
    durable_start(d, "b", "two", "7");
    durable_pass(d, 30 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Running");
    assert_string_equal(durable_state(d, "b"), "Completed 7");
}

static void options_and_registrations_are_checked(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_worker *other;
    const char *const bad_tags[] = {"", NULL};
    assert_int_equal(ebb_worker_open(d->world->host, d->store, &(ebb_worker_opts){.lease = 1}, &other),
                     EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_open(d->world->host, d->store, &(ebb_worker_opts){.tags = bad_tags}, &other),
                     EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_open(d->world->host, NULL, NULL, &other), EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 0, two), EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_orch(d->worker, "", 1, two), EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_ERR_EXISTS);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 2, two), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "echo", durable_echo, d, NULL), EBB_ERR_EXISTS);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_ERR_BUSY);
    assert_int_equal(ebb_worker_orch(d->worker, "three", 1, two), EBB_ERR_BUSY);
    assert_int_equal(durable_await(d, ebb_store_close(d->world->host, d->store)), EBB_ERR_BUSY);
    const ebb_start_opts unnamed = {.id = "x"};
    assert_int_equal(durable_await(d, ebb_instance_start(d->world->host, d->store, &unnamed)),
                     EBB_ERR_INVALID);
    durable_start(d, "a", "two", "7");
    durable_start(d, "a", "two", "7"); /* the same again */
    const ebb_start_opts differs = {.id = "a", .name = "two", .input = ebb_blob_text("8")};
    assert_int_equal(durable_await(d, ebb_instance_start(d->world->host, d->store, &differs)),
                     EBB_ERR_EXISTS);
}

/* ---- its end ---------------------------------------------------------------------------------------------------------- */

static void a_close_lets_activities_finish_and_another_worker_goes_on(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "two", "7");
    durable_pass(d, EBB_SECOND / 2);
    assert_int_equal(d->started, 1);
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->ended, 1);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 1");
    d->worker = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "echo", durable_echo, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 12 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    assert_string_equal(d->log, "");
}

typedef struct unit {
    durable *d;
    const char *id;
    ebb_status status;
    uint64_t over; /* when its wait was */
} unit;

static ebb_status wait_in_unit(ebb_cx *cx, void *arg) {
    unit *u = arg;
    u->status = ebb_await(cx, ebb_instance_wait(cx, u->d->store, u->id), NULL);
    u->over = ebb_now(cx);
    return EBB_OK;
}

/* A fiber that waits for an instance, in a unit of work or in a region that is none. */
static unit *begin_wait(durable *d, const char *id, bool in_unit) {
    ebb_cx *host = d->world->host;
    unit *u = world_keep(d->world, sizeof *u); /* the last ones end with the world */
    const ebb_region r = ebb_region_open(host, &(ebb_region_opts){.unit = in_unit});
    *u = (unit){.d = d, .id = id, .status = EBB_PENDING};
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(host, r, wait_in_unit, u).id), EBB_OK);
    return u;
}

static bool worker_is_open(durable *d, ebb_region of) {
    ebb_region_state s;
    return ebb_region_state_of(d->world->host, of, &s) == EBB_OK && s != EBB_REGION_CLOSED;
}

static void a_closing_worker_goes_on_with_what_a_unit_of_work_waits_for(void **state) {
    durable *d = durable_new(*state, NULL);
    unit *waits[3];
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "two", "7");
    durable_start(d, "b", "two", "7");
    for (int i = 0; i < 2; i++) waits[i] = begin_wait(d, "a", true);
    waits[2] = begin_wait(d, "b", false);
    durable_pass(d, EBB_SECOND / 2);
    const ebb_region of = ebb_worker_region(d->worker);
    const uint64_t closed = ebb_now(d->world->host);
    ebb_region_close(d->world->host, of);
    durable_pass(d, 5 * EBB_SECOND);
    durable_start(d, "c", "two", "7");
    const unit *late = begin_wait(d, "c", true);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    assert_string_equal(durable_state(d, "b"), "Running"); /* after its activity, nobody went on with it */
    assert_string_equal(durable_rows(d, "b"), "work 0 claimed 0 timers 0 messages 1");
    assert_string_equal(durable_state(d, "c"), "Completed 7");
    assert_int_equal(waits[0]->status, EBB_OK);
    assert_int_equal(waits[1]->status, EBB_OK);
    assert_int_equal(late->status, EBB_OK);
    assert_true(waits[0]->over > closed);
    assert_false(worker_is_open(d, of));
    assert_int_equal(waits[2]->status, EBB_PENDING);
    assert_int_equal(d->errors + d->warnings, 0);
}

static void a_close_gives_instances_back_before_its_activities_have_ended(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    ebb_worker *other = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(other, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "7");
    durable_pass(d, EBB_SECOND / 2);
    assert_int_equal(durable_stats(d).hot, 1);
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    assert_int_equal(ebb_worker_begin(other), EBB_OK);
    durable_pass(d, EBB_MS);
    assert_true(worker_is_open(d, ebb_worker_region(d->worker)));
    assert_int_equal(durable_stats(d).hot, 0); /* its activity still runs */
    durable_pass(d, EBB_SECOND);
    ebb_worker_stats s;
    ebb_worker_stats_of(other, &s);
    assert_int_equal(s.turns, 1);
}

static ebb_status one(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "hang", in, NULL), out);
}

enum { CROWD = 2500 };

static ebb__store_fault count_abandons(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)n;
    *(uint32_t *)arg += c->op == EBB_PROVIDER_ABANDON_TURNS;
    return EBB__FAULT_NONE;
}

/* Else its renewals would wait behind as many calls. */
static void a_close_gives_many_instances_back_with_few_calls(void **state) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.double_run = UINT32_MAX}); /* no turn twice */
    uint32_t abandons = 0;
    char id[24];
    const ebb__store_faults faults = {.at = count_abandons, .arg = &abandons};
    assert_int_equal(ebb_worker_orch(d->worker, "approval", 1, approval), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "one", 1, one), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    ebb_worker *other = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(other, "approval", 1, approval), EBB_OK);
    durable_start(d, "hangs", "one", "");
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(id, sizeof id, "i%d", i);
        durable_start(d, id, "approval", "");
    }
    durable_pass(d, EBB_SECOND);
    assert_int_equal(durable_stats(d).hot, CROWD + 1);
    ebb__store_set_faults(d->store, &faults);
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, EBB_MS);
    assert_int_equal(durable_stats(d).hot, 0);
    assert_int_equal(abandons, 3);
    ebb__store_set_faults(d->store, NULL);
    assert_int_equal(ebb_worker_begin(other), EBB_OK);
    for (int i = 0; i < CROWD; i += CROWD - 1) { /* the first and the last */
        (void)snprintf(id, sizeof id, "i%d", i);
        durable_signal(d, id, "approved", "yes");
        durable_pass(d, EBB_MS);
        assert_string_equal(durable_state(d, id), "Completed yes");
    }
}

static void a_wait_ends_with_the_store(void **state) {
    durable *d = durable_new(*state, NULL);
    durable_start(d, "a", "two", "7");
    const unit *u = begin_wait(d, "a", true);
    durable_pass(d, EBB_SECOND / 2);
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, EBB_MS);
    assert_int_equal(durable_await(d, ebb_store_close(d->world->host, d->store)), EBB_OK);
    durable_pass(d, 2 * EBB_SECOND);
    assert_int_equal(u->status, EBB_ERR_CLOSED);
}

static ebb_status instead(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    durable *d = ebb_activity_arg(a);
    (void)cx;
    d->started++;
    *out = in;
    return EBB_OK;
}

static void after_a_cancel_another_worker_has_its_work_at_once(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "one", 1, one), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "one", "7");
    durable_pass(d, EBB_SECOND);
    ebb_worker *other = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(other, "one", 1, one), EBB_OK);
    assert_int_equal(ebb_worker_activity(other, "hang", instead, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(other), EBB_OK);
    durable_pass(d, 10 * EBB_SECOND);
    assert_int_equal(d->started, 1);
    ebb_region_cancel(d->world->host, ebb_worker_region(d->worker), EBB_CANCEL_SHUTDOWN, "");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_SHUTDOWN); /* of the region above */
    assert_int_equal(d->started, 2);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
}

static ebb_status polls(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "poll", in, NULL), out);
}

static void handover_is_cancelled_by_the_close(void **state) {
    durable *d = durable_new(*state, NULL);
    const ebb_activity_opts opts = {.handover = true};
    assert_int_equal(ebb_worker_activity(d->worker, "poll", durable_hang, d, &opts), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "polls", 1, polls), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "polls", "");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 0 messages 0");
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_SHUTDOWN);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 0 timers 0 messages 0");
    assert_int_equal(durable_await(d, ebb_store_close(d->world->host, d->store)),
                     EBB_OK); /* nobody holds it */
}

static ebb_status races(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    size_t won;
    (void)out;
    ebb_step race[] = {ebb_orch_call(o, "hang", in, NULL), ebb_orch_timer(o, 2 * EBB_SECOND)};
    ebb_status st = ebb_orch_select(o, 2, race, &won);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), NULL) : st;
}

/* The worker of the activity hears nothing of the other's commits: the next renewal, after a third of the lease. */
static void without_hints_a_renewal_tells_that_a_row_is_gone(void **state) {
    durable *d = durable_new(*state, NULL);
    ebb_worker *other = durable_open(d, NULL);
    assert_int_equal(ebb_worker_orch(other, "races", 1, races), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    assert_int_equal(ebb_worker_begin(other), EBB_OK);
    durable_start(d, "a", "races", "7");
    durable_pass(d, EBB_SECOND);
    assert_int_equal(d->started, 1);
    ebb__store_unlisten(d->store, &d->worker->listener);
    durable_pass(d, 4 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(d->cancelled, 0);
    durable_pass(d, 10 * EBB_SECOND);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_LEASE_LOST); /* absence is all that is known */
    assert_int_equal(d->ended, 1);
    assert_int_equal(durable_stats(d).late_acks, 1);
    assert_non_null(strstr(d->log, "ended after its cancel"));
    assert_int_equal(d->warnings + d->errors, 0);
    assert_string_equal(durable_state(d, "a"), "Running");
}

/* ---- faults of the store ------------------------------------------------------------------------------------------------ */

typedef struct faulty {
    ebb__store_fault kind;
    uint64_t at;
} faulty;

static ebb__store_fault fault(void *arg, uint64_t n, const ebb_provider_call *c) {
    const faulty *f = arg;
    (void)c;
    return n == f->at ? f->kind : EBB__FAULT_NONE;
}

static void a_call_that_fails_or_whose_answer_is_lost_changes_nothing(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t n = 0; n < 60; n++) {
            world *w = world_new(NULL, true);
            durable *d = durable_new(w, NULL);
            faulty f = {kind == 0 ? EBB__FAULT_BEFORE : EBB__FAULT_LOST_REPLY, n + 2};
            const ebb__store_faults faults = {.at = fault, .arg = &f};
            assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
            durable_start(d, "a", "two", "42");
            ebb__store_set_faults(d->store, &faults);
            assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
            durable_pass(d, 100 * EBB_SECOND);
            ebb__store_set_faults(d->store, NULL);
            if (strcmp(durable_state(d, "a"), "Completed 42") != 0)
                print_error("call %d, fault %d\n", (int)n, kind);
            assert_string_equal(durable_state(d, "a"), "Completed 42");
            assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
            world_end(w);
        }
    }
}

static bool is_away;

static ebb__store_fault away(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)arg;
    (void)n;
    (void)c;
    return is_away ? EBB__FAULT_BEFORE : EBB__FAULT_NONE;
}

static void a_store_that_is_away_for_less_than_the_lease_cancels_nothing(void **state) {
    durable *d = durable_new(*state, NULL);
    const ebb__store_faults faults = {.at = away};
    assert_int_equal(ebb_worker_orch(d->worker, "one", 1, one), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "one", "7");
    durable_pass(d, 15 * EBB_SECOND);
    ebb__store_set_faults(d->store, &faults);
    is_away = true;
    durable_pass(d, 18 * EBB_SECOND);
    assert_int_equal(d->cancelled, 0);
    is_away = false;
    durable_pass(d, 60 * EBB_SECOND);
    assert_int_equal(d->cancelled, 0);
    assert_int_equal(d->started, 1);
    is_away = true;
    durable_pass(d, 45 * EBB_SECOND);
    assert_int_equal(d->cancelled, 1);
    assert_int_equal(d->kind, EBB_CANCEL_LEASE_LOST);
    is_away = false;
    durable_pass(d, 45 * EBB_SECOND);
    assert_int_equal(d->started, 2); /* it has joined again, and claimed it again */
    assert_int_equal(durable_stats(d).lease_lost, 1);
    ebb__store_set_faults(d->store, NULL);
}

/* The first ack of a turn takes long, and renewals fail meanwhile. */
typedef struct slow_ack {
    uint32_t acks, fetches, lost;
    bool renews;
} slow_ack;

/* So many lost in a row take longer, with their pauses, than a call insists for which nobody waits. */
enum { FETCHES_MOST = 200, ABANDONS_LOST = 12 };

static uint64_t delay_first_ack(void *arg, const ebb_provider_call *c) {
    slow_ack *s = arg;
    return c->op == EBB_PROVIDER_ACK_TURN && s->acks++ == 0 ? 20 * EBB_SECOND : 0;
}

static ebb__store_fault no_renewal(void *arg, uint64_t n, const ebb_provider_call *c) {
    slow_ack *s = arg;
    (void)n;
    if (c->op == EBB_PROVIDER_RENEW && !s->renews) return EBB__FAULT_BEFORE;
    if (c->op == EBB_PROVIDER_ABANDON_TURNS && s->lost > 0) {
        s->lost--;
        return EBB__FAULT_BEFORE;
    }
    if (c->op != EBB_PROVIDER_FETCH_TURNS || ++s->fetches < FETCHES_MOST) return EBB__FAULT_NONE;
    return EBB__FAULT_BEFORE; /* so that a worker that asks for ever is found */
}

/* Nothing is renewed for so long; meanwhile the instance is claimed again. */
static void come_back(world *w, slow_ack *s, uint64_t span) {
    const ebb__store_faults faults = {.at = no_renewal, .arg = s};
    ebb__lab_world *lab;
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, lab), EBB_OK);
    ebb__lab_world_set_delay(lab, delay_first_ack, s);
    durable *d = durable_new(w, &(ebb_worker_opts){.lease = 2 * EBB_SECOND});
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "7");
    ebb__store_set_faults(d->store, &faults);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, span);
    s->renews = true;
    durable_pass(d, 60 * EBB_SECOND - span);
    assert_true(s->fetches < FETCHES_MOST);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    ebb_region_close(d->world->host, ebb_worker_region(d->worker));
    durable_pass(d, EBB_SECOND);
    close_store(w, d->store);
    assert_int_equal(ebb__lab_world_use(w->rt, NULL), EBB_OK);
    ebb__lab_world_free(lab);
}

static void an_instance_that_comes_back_while_its_turn_is_in_flight_waits_for_it(void **state) {
    come_back(*state, &(slow_ack){0}, 10 * EBB_SECOND); /* its lease is lost twice */
}

/* The node that has claimed it again lives on. */
static void an_instance_that_has_come_back_is_given_back_however_long_that_takes(void **state) {
    slow_ack s = {.lost = ABANDONS_LOST};
    come_back(*state, &s, 3 * EBB_SECOND);
    assert_int_equal(s.lost, 0);
}

static ebb__store_fault no_join_for_work(void *arg, uint64_t n, const ebb_provider_call *c) {
    uint32_t *joins = arg;
    (void)n;
    if (c->op != EBB_PROVIDER_JOIN || ((const ebb_provider_join_call *)c)->runs[0].version != 0)
        return EBB__FAULT_NONE;
    return (*joins)++ < 4 ? EBB__FAULT_BEFORE : EBB__FAULT_NONE;
}

static void before_its_node_for_work_has_joined_nothing_is_claimed_for_it(void **state) {
    durable *d = durable_new(*state, NULL);
    uint32_t joins = 0;
    const ebb__store_faults faults = {.at = no_join_for_work, .arg = &joins};
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "7");
    ebb__store_set_faults(d->store, &faults);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, EBB_SECOND / 2);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 0 timers 0 messages 0");
    durable_pass(d, 60 * EBB_SECOND);
    ebb__store_set_faults(d->store, NULL);
    assert_in_range(joins, 5, 100);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
    assert_int_equal(d->started, 2);
    assert_int_equal(durable_stats(d).lease_lost, 0);
}

static bool is_unserved(durable *d, const char *id) {
    ebb_value v;
    ebb_future *f = ebb_instance_status(d->world->host, d->store, id);
    store_settle(d->world);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK);
    const bool unserved = ebb_instance_info_of(&v)->unserved;
    ebb_value_discard(d->world->host, v);
    return unserved;
}

static ebb_status calls_what_is_missing(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "missing", in, &(ebb_call_opts){.tag = "gpu"}), out);
}

static void an_activity_that_no_worker_has_is_shown(void **state) {
    static const char *const tags[] = {"gpu", NULL};
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "missing", 1, calls_what_is_missing), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "missing", "7");
    durable_pass(d, EBB_SECOND);
    assert_true(is_unserved(d, "a"));
    ebb_worker *other = durable_open(d, &(ebb_worker_opts){.tags = tags});
    assert_int_equal(ebb_worker_activity(other, "missing", durable_echo, d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(other), EBB_OK);
    durable_pass(d, EBB_SECOND / 2);
    assert_false(is_unserved(d, "a"));
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
}

static ebb__store_fault no_fetch(void *arg, uint64_t n, const ebb_provider_call *c) {
    uint32_t *fetches = arg;
    (void)n;
    if (c->op != EBB_PROVIDER_FETCH_TURNS || *fetches >= 5 * FETCHES_MOST) return EBB__FAULT_NONE;
    ++*fetches;
    return EBB__FAULT_BEFORE;
}

/* Its node is replaced after each, since the fetch may have claimed something. */
static void fetches_that_fail_are_repeated_with_a_pause(void **state) {
    durable *d = durable_new(*state, NULL);
    uint32_t fetches = 0;
    const ebb__store_faults faults = {.at = no_fetch, .arg = &fetches};
    assert_int_equal(ebb_worker_orch(d->worker, "two", 1, two), EBB_OK);
    durable_start(d, "a", "two", "7");
    ebb__store_set_faults(d->store, &faults);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, 10 * EBB_SECOND);
    assert_in_range(fetches, 10, FETCHES_MOST);
    ebb__store_set_faults(d->store, NULL);
    durable_pass(d, 20 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 7");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(fetches_that_fail_are_repeated_with_a_pause),
        IN_WORLD(an_instance_that_comes_back_while_its_turn_is_in_flight_waits_for_it),
        IN_WORLD(before_its_node_for_work_has_joined_nothing_is_claimed_for_it),
        IN_WORLD(an_instance_that_has_come_back_is_given_back_however_long_that_takes),
        IN_WORLD(an_instance_runs_to_its_end),
        IN_WORLD(a_cache_of_no_size_and_of_any_size_give_the_same_history),
        IN_WORLD(those_used_longest_ago_are_evicted_and_go_on),
        IN_WORLD(a_signal_wakes_it_and_may_start_it),
        IN_WORLD(a_wait_ends_with_the_instance),
        IN_WORLD(the_double_run_suspends_before_the_commit),
        IN_WORLD(what_nobody_can_run_waits_and_delays_nobody),
        IN_WORLD(an_activity_that_no_worker_has_is_shown),
        IN_WORLD(options_and_registrations_are_checked),
        IN_WORLD(a_close_lets_activities_finish_and_another_worker_goes_on),
        IN_WORLD(after_a_cancel_another_worker_has_its_work_at_once),
        IN_WORLD(a_closing_worker_goes_on_with_what_a_unit_of_work_waits_for),
        IN_WORLD(a_close_gives_instances_back_before_its_activities_have_ended),
        IN_WORLD(a_close_gives_many_instances_back_with_few_calls),
        IN_WORLD(a_wait_ends_with_the_store),
        IN_WORLD(without_hints_a_renewal_tells_that_a_row_is_gone),
        IN_WORLD(handover_is_cancelled_by_the_close),
        cmocka_unit_test(a_call_that_fails_or_whose_answer_is_lost_changes_nothing),
        IN_WORLD(a_store_that_is_away_for_less_than_the_lease_cancels_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
