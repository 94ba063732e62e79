/* Ends of activities on a worker where their instance is hot: which calls they cost, and what becomes of them when their turn
 * is not committed. */
#include "durable/worker.h"
#include "tests/support/durable_world.h"

enum { LEASE_SECONDS = 30 };

typedef struct seen {
    ebb__lab_world *lab;
    durable *d;
    int turns, with_ends, ends,
        acks;  /* commits of turns, those that end work, what they end, and ends of their own */
    bool slow; /* turns that end work take half a second */
} seen;

static void committed(void *arg, const ebb_provider_call *c) {
    seen *s = arg;
    const ebb_provider_ack_turn_call *a = (const ebb_provider_ack_turn_call *)c;
    s->acks += c->op == EBB_PROVIDER_ACK_WORK;
    if (c->op != EBB_PROVIDER_ACK_TURN) return;
    s->turns++;
    s->with_ends += a->done_n > 0;
    s->ends += (int)a->done_n;
}

static uint64_t delay(void *arg, const ebb_provider_call *c) {
    const seen *s = arg;
    if (!s->slow || c->op != EBB_PROVIDER_ACK_TURN) return 0;
    return ((const ebb_provider_ack_turn_call *)c)->done_n > 0 ? EBB_SECOND / 2 : 0;
}

static ebb_status three(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = EBB_OK;
    *out = in;
    for (int i = 0; i < 3 && st == EBB_OK; i++)
        st = ebb_orch_await(o, ebb_orch_call(o, "echo", *out, NULL), out);
    return st;
}

static ebb_status at_once(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[3];
    for (int i = 0; i < 3; i++) all[i] = ebb_orch_call(o, "echo", in, NULL);
    *out = in;
    return ebb_orch_join(o, 3, all);
}

static ebb_status late(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_sleeper nap = {0};
    (void)a;
    *out = in;
    return ebb_sleep(cx, &nap, EBB_SECOND + EBB_SECOND / 4);
}

static ebb_status one_late(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[2] = {ebb_orch_call(o, "echo", in, NULL), ebb_orch_call(o, "late", in, NULL)};
    *out = in;
    return ebb_orch_join(o, 2, all);
}

static ebb_status first_then_echo(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[2] = {ebb_orch_call(o, "echo", in, NULL), ebb_orch_call(o, "late", in, NULL)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, all, &won);
    if (st == EBB_OK) st = ebb_orch_await(o, all[won], out);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out) : st;
}

static ebb_status echo_then_signal(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_event(o, "go"), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out) : st;
}

static ebb_status one_handed(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[2] = {ebb_orch_call(o, "echo", in, NULL), ebb_orch_call(o, "handed", in, NULL)};
    *out = in;
    return ebb_orch_join(o, 2, all);
}

static seen *begin(world *w, uint32_t cache, bool slow) {
    seen *s = world_keep(w, sizeof *s);
    *s = (seen){.slow = slow};
    assert_int_equal(ebb__lab_world_new(w->allocator, &s->lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, s->lab), EBB_OK);
    ebb__lab_world_set_committed(s->lab, committed, s);
    ebb__lab_world_set_delay(s->lab, delay, s);
    s->d = durable_new(w, &(ebb_worker_opts){.cache = cache, .lease = LEASE_SECONDS * EBB_SECOND});
    assert_int_equal(ebb_worker_activity(s->d->worker, "late", late, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "three", 1, three), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "at_once", 1, at_once), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "one_late", 1, one_late), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "first_then_echo", 1, first_then_echo), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "echo_then_signal", 1, echo_then_signal), EBB_OK);
    const ebb_activity_opts handover = {.handover = true};
    assert_int_equal(ebb_worker_activity(s->d->worker, "handed", late, NULL, &handover), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "one_handed", 1, one_handed), EBB_OK);
    assert_int_equal(ebb_worker_begin(s->d->worker), EBB_OK);
    return s;
}

static void end(seen *s) {
    ebb_region_cancel(s->d->world->host, s->d->world->root, EBB_CANCEL_SHUTDOWN, "");
    durable_pass(s->d, 2 * EBB_SECOND);
    ebb__lab_world_free(s->lab);
}

static void an_end_goes_with_the_turn_of_a_hot_instance(void **state) {
    seen *s = begin(*state, 0, false);
    durable_start(s->d, "a", "three", "7");
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(s->turns, 4);
    assert_int_equal(s->with_ends, 3);
    assert_int_equal(s->acks, 0);
    assert_int_equal(durable_stats(s->d).completed, 3);
    assert_int_equal(durable_stats(s->d).late_acks + durable_stats(s->d).lease_lost, 0);
    end(s);
}

static void the_end_of_a_cold_instances_activity_is_acked(void **state) {
    seen *s = begin(*state, EBB_WORKER_NO_CACHE, false);
    durable_start(s->d, "a", "three", "7");
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(s->turns, 4);
    assert_int_equal(s->with_ends, 0);
    assert_int_equal(s->acks, 3);
    end(s);
}

static void ends_of_one_moment_share_a_turn(void **state) {
    seen *s = begin(*state, 0, false);
    durable_start(s->d, "a", "at_once", "7");
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(s->turns, 2);
    assert_int_equal(s->ends, 3);
    assert_int_equal(s->acks, 0);
    end(s);
}

static void an_end_that_comes_while_a_turn_is_in_flight_has_the_next(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "one_late", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND * 3 / 8);
    assert_int_equal(s->turns, 1);
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(s->with_ends, 2);
    assert_int_equal(s->acks, 0);
    end(s);
}

/* The turn is fenced, and so nothing of it has happened; its work has gone with the end of the instance. */
static void an_end_whose_turn_is_fenced_is_acked_and_late(void **state) {
    seen *s = begin(*state, 0, true);
    ebb_cx *cx = s->d->world->host;
    durable_start(s->d, "a", "three", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND / 4);
    assert_int_equal(durable_await(s->d, ebb_instance_terminate(cx, s->d->store, "a", "enough")), EBB_OK);
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Terminated enough");
    assert_int_equal(s->with_ends, 0);
    assert_int_equal(durable_stats(s->d).fenced, 1);
    assert_int_equal(durable_stats(s->d).completed, 0);
    assert_int_equal(durable_stats(s->d).late_acks, 1);
    assert_int_equal(s->d->errors, 0);
    end(s);
}

/* Its lease has lapsed before the commit: the turn ends work that nobody holds. The activity runs once more, and the
 * instance has one end of it. */
static void an_end_whose_lease_has_lapsed_is_not_taken(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "three", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND / 4);
    ebb__lab_world_advance(s->lab, (LEASE_SECONDS + 1) * EBB_SECOND);
    durable_pass(s->d, EBB_SECOND);
    assert_int_equal(s->with_ends, 0);
    assert_int_equal(durable_stats(s->d).late_acks, 1);
    durable_pass(s->d, 100 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(s->d->started, 4);
    assert_int_equal(s->ends + s->acks, 3);
    end(s);
}

/* Its row went with the turn that was in flight: a turn that took its end would be refused, and its run discarded. */
static void an_end_of_a_loser_is_no_turn(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "first_then_echo", "7");
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(durable_stats(s->d).fenced, 0);
    assert_int_equal(durable_stats(s->d).replays, 0);
    assert_int_equal(durable_stats(s->d).late_acks, 1);
    assert_int_equal(s->with_ends, 2);
    assert_int_equal(s->acks, 0);
    end(s);
}

/* The store gives the instance away once more while its own turn is in flight. */
static void a_message_that_comes_while_an_end_is_committed_costs_no_replay(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "echo_then_signal", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND / 4);
    durable_signal(s->d, "a", "go", "");
    durable_pass(s->d, 10 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    assert_int_equal(durable_stats(s->d).fenced, 0);
    assert_int_equal(durable_stats(s->d).replays, 0);
    assert_int_equal(s->turns, 4);
    end(s);
}

/* It has returned before the close: to run it once more elsewhere would be of no use. */
static void an_end_that_waits_for_a_turn_is_not_handed_over(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "one_handed", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND * 3 / 8); /* the end waits for a turn in flight */
    (void)ebb_region_close(s->d->world->host, ebb_worker_region(s->d->worker));
    durable_pass(s->d, 2 * EBB_SECOND);
    assert_int_equal(s->with_ends, 1);
    assert_int_equal(s->acks, 1);
    assert_string_equal(durable_rows(s->d, "a"), "work 0 claimed 0 timers 0 messages 1");
    end(s);
}

/* By force nobody gets to wait for anybody. */
static void a_force_of_the_worker_ends_the_wait_for_the_turn(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "one_late", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND * 3 / 8);
    ebb_cx *cx = s->d->world->host;
    const ebb_region region = ebb_worker_region(s->d->worker);
    ebb_region_cancel_within(cx, region, EBB_CANCEL_SHUTDOWN, "", (ebb_budget){ebb_now(cx), 0, 0});
    durable_pass(s->d, EBB_SECOND);
    ebb_region_state is;
    assert_int_equal(ebb_region_state_of(cx, region, &is), EBB_ERR_STALE);
    end(s);
}

/* Nobody waits for the commit any more, and nobody for the end. */
static void a_cancel_of_the_worker_ends_the_wait_for_the_turn(void **state) {
    seen *s = begin(*state, 0, true);
    durable_start(s->d, "a", "one_late", "7");
    durable_pass(s->d, EBB_SECOND + EBB_SECOND * 3 / 8); /* an end is in a turn, another one waits for it */
    const ebb_region region = ebb_worker_region(s->d->worker);
    ebb_region_cancel(s->d->world->host, region, EBB_CANCEL_SHUTDOWN, "");
    durable_pass(s->d, EBB_SECOND);
    ebb_region_state is;
    assert_int_equal(ebb_region_state_of(s->d->world->host, region, &is), EBB_ERR_STALE); /* it has closed */
    s->slow = false;
    s->d->worker = durable_open(s->d, NULL);
    assert_int_equal(ebb_worker_activity(s->d->worker, "late", late, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_worker_activity(s->d->worker, "echo", durable_echo, s->d, NULL), EBB_OK);
    assert_int_equal(ebb_worker_orch(s->d->worker, "one_late", 1, one_late), EBB_OK);
    assert_int_equal(ebb_worker_begin(s->d->worker), EBB_OK);
    durable_pass(s->d, 100 * EBB_SECOND);
    assert_string_equal(durable_state(s->d, "a"), "Completed 7");
    end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(an_end_goes_with_the_turn_of_a_hot_instance),
        IN_WORLD(the_end_of_a_cold_instances_activity_is_acked),
        IN_WORLD(ends_of_one_moment_share_a_turn),
        IN_WORLD(an_end_that_comes_while_a_turn_is_in_flight_has_the_next),
        IN_WORLD(an_end_whose_turn_is_fenced_is_acked_and_late),
        IN_WORLD(an_end_whose_lease_has_lapsed_is_not_taken),
        IN_WORLD(an_end_of_a_loser_is_no_turn),
        IN_WORLD(a_message_that_comes_while_an_end_is_committed_costs_no_replay),
        IN_WORLD(an_end_that_waits_for_a_turn_is_not_handed_over),
        IN_WORLD(a_force_of_the_worker_ends_the_wait_for_the_turn),
        IN_WORLD(a_cancel_of_the_worker_ends_the_wait_for_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
