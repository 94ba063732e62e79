/* The PostgreSQL provider when something is lost: connections that are cut at every statement, and a server that is away or
 * crashes between two batches. */
#include "tests/durable/postgres_world.h"

/* ---- cut connections ------------------------------------------------------------------------------------------ */

/* Cuts all connections of Ebb by the n-th call, at once or so many half milliseconds later, wherever its statement is by then.
 * LOSE_ANSWER: after it is committed, and before the answer is read. */
enum { LOSE_ANSWER = -1 };
typedef struct cutter {
    uint64_t at;
    bool cut;
    int wait_ms;
    ebb__postgres *store;
} cutter;

static ebb__store_fault cut_at(void *arg, uint64_t n, const ebb_provider_call *c) {
    cutter *k = arg;
    (void)c;
    if (n == k->at) k->cut = true;
    return EBB__FAULT_NONE;
}

/* The server commits while this process sleeps. */
static void lose_answer(ebb_cx *cx, cutter *k) {
    for (int i = 0; i < 100 && k->store->writer.n == 0; i++) (void)ebb_await(cx, ebb_after(cx, 0), NULL);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    ebb__postgres_conn_lose(&k->store->writer.conn, "cut by the test");
}

static ebb_status cut_loop(ebb_cx *cx, void *arg) {
    cutter *k = arg;
    while (!k->cut && ebb_await(cx, ebb_after(cx, 0), NULL) == EBB_OK) {}
    for (int i = 0; i < k->wait_ms; i++) (void)ebb_await(cx, ebb_after(cx, EBB_MS / 2), NULL);
    if (k->wait_ms == LOSE_ANSWER) lose_answer(cx, k);
    else
        (void)pg_ask(observer, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                               " WHERE application_name = 'ebb'");
    return EBB_OK;
}

static ebb_status cut_main(ebb_cx *cx, void *arg) {
    cutter *k = arg;
    char id[64];
    snprintf(id, sizeof id, "cut-%llu-%d", (unsigned long long)k->at, k->wait_ms);
    ebb_store *s = open_url(cx, server.url);
    const ebb__store_faults faults = {.at = cut_at, .arg = k};
    k->store = ebb__store_gate(s)->self;
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb__store_set_faults(s, &faults);
    ebb_future *cut = ebb_fiber_go(cx, ebb_cx_region(cx), cut_loop, k);
    run_once(cx, s, node, id);
    ebb__store_set_faults(s, NULL);
    k->cut = true;
    (void)ebb_await(cx, cut, NULL);
    leave(cx, s, node);
    close_store(cx, s);
    check_ended(id);
    return EBB_OK;
}

static void a_connection_cut_at_any_statement_loses_and_doubles_nothing(void **state) {
    int runs_n = 0;
    for (int wait = LOSE_ANSWER; wait < 3; wait++) {
        for (uint64_t at = 1; at < 10; at++, runs_n++) {
            cutter k = {.at = at, .wait_ms = wait};
            assert_int_equal(run_fiber(*state, cut_main, &k), EBB_OK);
        }
    }
    print_message("%d runs, each cut once\n", runs_n);
}

/* ---- the server away ------------------------------------------------------------------------------------------- */

enum { CROWD = 24, CRASHES = 3 };

typedef struct crowd {
    ebb_store *store;
    ebb_provider_node node;
    uint32_t started, ended, restarts;
    bool over;
} crowd;

/* Starts instances without an end, and remembers how many starts were acknowledged. */
static ebb_status crowd_starts(ebb_cx *cx, void *arg) {
    crowd *k = arg;
    char id[64];
    while (!k->over) {
        ebb_future *f[CROWD];
        const uint32_t from = k->started;
        for (uint32_t i = 0; i < CROWD; i++) {
            snprintf(id, sizeof id, "crowd-%u", from + i);
            f[i] = ebb__call_insist(cx, &start_call(k->store, id)->call, EBB_FOREVER, EBB_SITE);
        }
        for (uint32_t i = 0; i < CROWD; i++) end_call(answer(cx, f[i]), EBB_OK);
        k->started += CROWD;
    }
    return EBB_OK;
}

/* Ends what there is, until all that was started has ended. */
static ebb_status crowd_ends(ebb_cx *cx, void *arg) {
    crowd *k = arg;
    while (!k->over || k->ended < k->started) {
        ebb_future *f[16];
        ebb_provider_fetch_turns_call *c = fetch_some(cx, k->store, k->node);
        const size_t n = c->items_n;
        for (size_t i = 0; i < n; i++) {
            ebb_provider_ack_turn_call *a = ack_call(k->store, k->node, &c->items[i]);
            a->ends = EBB_INSTANCE_COMPLETED;
            f[i] = ebb__call_insist(cx, &a->call, EBB_FOREVER, EBB_SITE);
        }
        for (size_t i = 0; i < n; i++) end_call(answer(cx, f[i]), EBB_OK);
        end_call(c, EBB_OK);
        k->ended += (uint32_t)n;
    }
    return EBB_OK;
}

static ebb_status crash_main(ebb_cx *cx, void *arg) {
    crowd k = {.store = open_url(cx, arg)};
    pg_server *of = &server;
    k.node = join(cx, k.store, 600 * EBB_SECOND);
    ebb_future *starts = ebb_fiber_go(cx, ebb_cx_region(cx), crowd_starts, &k);
    ebb_future *ends = ebb_fiber_go(cx, ebb_cx_region(cx), crowd_ends, &k);
    for (int i = 0; i < CRASHES; i++) {
        (void)ebb_await(cx, ebb_after(cx, 300 * EBB_MS), NULL);
        assert_true(pg_server_crash(of));
        (void)ebb_await(cx, ebb_after(cx, 200 * EBB_MS), NULL);
        assert_true(pg_server_up(of));
    }
    (void)ebb_await(cx, ebb_after(cx, 300 * EBB_MS), NULL);
    k.over = true;
    assert_int_equal(ebb_await(cx, starts, NULL), EBB_OK);
    assert_int_equal(ebb_await(cx, ends, NULL), EBB_OK);
    print_message("%u instances over %d crashes of the server\n", k.started, CRASHES);
    assert_int_equal(k.started, k.ended);
    leave(cx, k.store, k.node);
    close_store(cx, k.store);
    return EBB_OK;
}

/* With fsync, as in production: what was acknowledged is there after the crash. */
static void a_server_that_crashes_between_batches_loses_nothing(void **state) {
    pg_server_end(&server);
    PQfinish(observer);
    assert_true(pg_server_begin(&server, true));
    assert_int_equal(run_fiber(*state, crash_main, server.url), EBB_OK);
    observer = pg_open(&server);
    assert_string_equal(
        pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE state <> 'Completed' OR turn <> 1"), "0");
    assert_string_equal(
        pg_ask(observer, "SELECT (SELECT count(*) FROM ebb.hist) - (SELECT count(*) FROM ebb.inst)"), "0");
}

static ebb_status away_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    (void)arg;
    assert_true(pg_server_crash(&server));
    (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL); /* the time that the crash took is over */
    const uint64_t before = ebb_now(cx);
    for (int i = 0; i < 5; i++) { /* refused at once, or when the connection is found to be lost */
        ebb_provider_start_call *c = ask(cx, start_call(s, "away"));
        assert_int_equal(ebb_provider_class_of(c->call.status), EBB_PROVIDER_RETRYABLE);
        end_call(c, EBB_ERR_UNAVAILABLE);
    }
    assert_true(ebb_now(cx) - before < 20 * EBB_SECOND); /* less than an answer may take */
    ebb_future *f = ebb__call_insist(cx, &start_call(s, "away")->call, EBB_FOREVER, EBB_SITE);
    assert_true(pg_server_up(&server));
    end_call(answer(cx, f), EBB_OK);
    close_store(cx, s);
    return EBB_OK;
}

static void calls_end_while_the_server_is_away_and_succeed_when_it_is_back(void **state) {
    (void)pg_ask(
        observer,
        "CHECKPOINT"); /* else the server would take as long to recover as the tests before have written */
    PQfinish(observer);
    assert_int_equal(run_fiber(*state, away_main, NULL), EBB_OK);
    observer = pg_open(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_connection_cut_at_any_statement_loses_and_doubles_nothing),
        ON_A_LOOP(calls_end_while_the_server_is_away_and_succeed_when_it_is_back),
        ON_A_LOOP(a_server_that_crashes_between_batches_loses_nothing),
    };
    return RUN_ON_POSTGRES(tests);
}
