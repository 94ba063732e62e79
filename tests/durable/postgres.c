/* The PostgreSQL provider against a real server: what no other provider has. Connections that are cut at every statement, a
 * server that crashes between two batches, calls that spoil a batch, hints and their loss, schemas of other versions, the
 * clock, and the plans of claims. The conformance suite is durable.postgres_suite. */
#include "tests/durable/postgres_server.h"
#include "tests/support/loop_world.h"

#include "durable/postgres.h"
#include "durable/store.h"

static pg_server server;
static PGconn *observer; /* not of Ebb's */

static int server_up(void **state) {
    (void)state;
    if (!pg_server_begin(&server, false)) return -1;
    observer = pg_open(&server);
    (void)pg_ask(observer, "SET client_min_messages = warning");
    return PQstatus(observer) == CONNECTION_OK ? 0 : -1;
}

static int server_down(void **state) {
    (void)state;
    PQfinish(observer);
    pg_server_end(&server);
    return 0;
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static ebb_store *open_url(ebb_cx *cx, const char *url) {
    ebb_value v;
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) print_error("open: %s: %s\n", ebb_status_text(st), ebb_durable_error());
    assert_int_equal(st, EBB_OK);
    return ebb_store_of(&v);
}

static void close_store(ebb_cx *cx, ebb_store *s) {
    assert_int_equal(ebb_await(cx, ebb_store_close(cx, s), NULL), EBB_OK);
}

static void *new_call(ebb_store *s, ebb_provider_op op) {
    void *c = ebb__call_new(ebb__store_gate(s), op);
    assert_non_null(c);
    return c;
}

static void *answer(ebb_cx *cx, ebb_future *f) {
    ebb_value v;
    const ebb_status st = ebb_await(cx, f, &v);
    assert_int_equal(st, EBB_OK);
    return ebb__call_of(&v);
}

static void *ask(ebb_cx *cx, void *call) {
    return answer(cx, ebb__call_begin(cx, call, EBB_SITE));
}

static void *insist(ebb_cx *cx, void *call) {
    return answer(cx, ebb__call_insist(cx, call, EBB_FOREVER, EBB_SITE));
}

static void end_call(void *call, ebb_status expected) {
    ebb_provider_call *c = call;
    if (c->status != expected) print_error("op %d: %s: %s\n", c->op, ebb_status_text(c->status), c->text);
    assert_int_equal(c->status, expected);
    ebb__call_free(c);
}

/* ---- a scenario ----------------------------------------------------------------------------------------------- */

static const ebb_provider_runs runs[] = {{"pay", 1}};

static ebb_provider_node join(ebb_cx *cx, ebb_store *s, uint64_t lease) {
    ebb_provider_join_call *c = new_call(s, EBB_PROVIDER_JOIN);
    c->name = "test";
    c->lease = lease;
    c->runs = runs;
    c->runs_n = 1;
    c = insist(cx, c);
    const ebb_provider_node node = c->node;
    end_call(c, EBB_OK);
    return node;
}

static void leave(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_leave_call *c = new_call(s, EBB_PROVIDER_LEAVE);
    c->node = node;
    end_call(insist(cx, c), EBB_OK);
}

static ebb_provider_start_call *start_call(ebb_store *s, const char *id) {
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = ebb__call_text(&c->call, id);
    c->name = "pay";
    c->message = ebb_blob_text("begin");
    c->input = ebb_blob_text("{}");
    return c;
}

static uint64_t start(ebb_cx *cx, ebb_store *s, const char *id) {
    ebb_provider_start_call *c = insist(cx, start_call(s, id));
    const uint64_t key = c->row.key;
    end_call(c, EBB_OK);
    return key;
}

static ebb_provider_fetch_turns_call *fetch(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *c = new_call(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = node;
    c->most = 16;
    c->messages = 100;
    c->suspects = true;
    return ask(cx, c);
}

/* Asks until there is something, for 20 s. */
static ebb_provider_fetch_turns_call *fetch_some(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    for (int i = 0;; i++) {
        ebb_provider_fetch_turns_call *c = fetch(cx, s, node);
        if (c->call.status == EBB_OK && c->items_n > 0) return c;
        if (c->call.status != EBB_OK) assert_int_equal(c->call.status, EBB_ERR_UNAVAILABLE);
        ebb__call_free(&c->call);
        assert_true(i < 1000);
        (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    }
}

static ebb_provider_fetch_work_call *fetch_work(ebb_cx *cx, ebb_store *s, ebb_provider_node node,
                                                uint64_t lease) {
    static const ebb_provider_queue queue = {"charge", 16};
    for (int i = 0;; i++) {
        ebb_provider_fetch_work_call *c = new_call(s, EBB_PROVIDER_FETCH_WORK);
        c->node = node;
        c->queues = &queue;
        c->queues_n = 1;
        c->most = 16;
        c->lease = lease;
        c->suspects = true;
        c = ask(cx, c);
        if (c->call.status == EBB_OK && c->items_n > 0) return c;
        if (c->call.status != EBB_OK) assert_int_equal(c->call.status, EBB_ERR_UNAVAILABLE);
        ebb__call_free(&c->call);
        assert_true(i < 1000);
        (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    }
}

static const ebb_provider_work charge = {
    .activity = 2, .queue = "charge", .session = "", .name = "charge", .attempt = 1};

static ebb_provider_ack_turn_call *ack_call(ebb_store *s, ebb_provider_node node,
                                            const ebb_provider_turn_item *item) {
    ebb_provider_ack_turn_call *c = new_call(s, EBB_PROVIDER_ACK_TURN);
    ebb_provider_message_key *acked = ebb__call_room(&c->call, item->messages_n * sizeof *acked);
    for (size_t i = 0; i < item->messages_n; i++) acked[i] = item->messages[i].at;
    c->node = node;
    c->token = item->token;
    c->ack_id = ebb__token_new(ebb__store_host(s));
    c->key = item->key;
    c->execution = item->execution;
    c->turn = item->turn + 1;
    c->body = ebb_blob_text("turn");
    c->name = "pay";
    c->version = 1;
    c->acked = acked;
    c->acked_n = item->messages_n;
    return c;
}

static ebb_provider_ack_work_call *ack_work_call(ebb_store *s, ebb_provider_node node,
                                                 const ebb_provider_work_item *item,
                                                 const ebb_blob *message) {
    ebb_provider_ack_work_call *c = new_call(s, EBB_PROVIDER_ACK_WORK);
    c->node = node;
    c->token = item->token;
    c->ack_id = ebb__token_new(ebb__store_host(s));
    c->key = item->key;
    c->execution = item->execution;
    c->activity = item->activity;
    c->message = message;
    return c;
}

/* From a start to an end: two turns with an activity in between. Each step is repeated until it is known to be done. */
static void run_once(ebb_cx *cx, ebb_store *s, ebb_provider_node node, const char *id) {
    const ebb_blob message = ebb_blob_text("charged");
    (void)start(cx, s, id);
    ebb_provider_fetch_turns_call *f = fetch_some(cx, s, node);
    ebb_provider_ack_turn_call *a = ack_call(s, node, &f->items[0]);
    a->work = &charge;
    a->work_n = 1;
    end_call(insist(cx, a), EBB_OK);
    end_call(f, EBB_OK);
    ebb_provider_fetch_work_call *w = fetch_work(cx, s, node, 60 * EBB_SECOND);
    end_call(insist(cx, ack_work_call(s, node, &w->items[0], &message)), EBB_OK);
    end_call(w, EBB_OK);
    f = fetch_some(cx, s, node);
    assert_int_equal(f->items[0].messages_n, 1);
    assert_int_equal(f->items[0].messages[0].at.kind, EBB_PROVIDER_MESSAGE_ACTIVITY);
    a = ack_call(s, node, &f->items[0]);
    a->ends = EBB_INSTANCE_COMPLETED;
    a->result = ebb_blob_text("done");
    end_call(insist(cx, a), EBB_OK);
    end_call(f, EBB_OK);
}

/* What stands in the database in the end, whatever has happened on the way. */
static void check_ended(const char *id) {
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "SELECT format('%%s %%s %%s %%s', i.state, (SELECT string_agg(turn::text, ',' ORDER BY turn) FROM"
        " ebb.hist h WHERE h.inst = i.key), (SELECT count(*) FROM ebb.work w WHERE w.inst = i.key),"
        " (SELECT count(*) FROM ebb.inbox b WHERE b.inst = i.key)) FROM ebb.inst i WHERE i.id = '%s'",
        id);
    assert_string_equal(pg_ask(observer, sql), "Completed 1,2 0 0");
}

static ebb_status plain(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    run_once(cx, s, node, "plain");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void an_instance_runs_to_its_end(void **state) {
    assert_int_equal(run_fiber(*state, plain, server.url), EBB_OK);
    check_ended("plain");
}

static void the_host_is_looked_up_in_the_pool(void **state) {
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.hist");
    assert_int_equal(run_fiber(*state, plain, server.tcp_url), EBB_OK);
    check_ended("plain");
}

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

/* ---- batches -------------------------------------------------------------------------------------------------- */

enum { MANY = 64 };

static ebb_status batch_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const int *spoilt = arg;
    ebb_provider_stats before, after;
    ebb_future *f[MANY];
    char id[64];
    int stored = 0;
    ebb__store_stats(s, &before);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, i % 16 == *spoilt ? "batch-%d-\xff" : "batch-%d-", i); /* no UTF-8 */
        f[i] = ebb__call_begin(cx, &start_call(s, id)->call, EBB_SITE);
    }
    for (int i = 0; i < MANY; i++) {
        ebb_provider_call *c = answer(cx, f[i]);
        if (c->status == EBB_ERR_STORE) {
            stored++;
            assert_non_null(strstr(c->text, "22021"));
            assert_null(strstr(c->text, "begin"));
        }
        end_call(c, i % 16 == *spoilt ? EBB_ERR_STORE : EBB_OK);
    }
    ebb__store_stats(s, &after);
    print_message("%d calls, %d bad: %llu statements, %llu round trips, %llu commits\n", MANY, stored,
                  (unsigned long long)(after.statements - before.statements),
                  (unsigned long long)(after.round_trips - before.round_trips),
                  (unsigned long long)(after.commits - before.commits));
    if (*spoilt < 0) {
        assert_int_equal(after.commits - before.commits, 1);
        assert_int_equal(after.members - before.members, MANY);
    }
    close_store(cx, s);
    return EBB_OK;
}

static void calls_of_one_turn_of_the_loop_are_one_commit(void **state) {
    int spoilt = -1;
    assert_int_equal(run_fiber(*state, batch_main, &spoilt), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE id LIKE 'batch-%'"), "64");
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox");
}

static void a_call_that_fails_leaves_the_others_of_its_batch_as_they_are(void **state) {
    int spoilt = 5;
    assert_int_equal(run_fiber(*state, batch_main, &spoilt), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE id LIKE 'batch-%'"), "60");
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox");
}

static ebb_status bisect_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    ebb_future *f[MANY];
    char id[64];
    (void)arg;
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "bisect-%d", i);
        f[i] = ebb__call_begin(cx, &start_call(s, id)->call, EBB_SITE);
    }
    for (int i = 0; i < MANY; i++) end_call(answer(cx, f[i]), i == 17 ? EBB_ERR_STORE : EBB_OK);
    close_store(cx, s);
    return EBB_OK;
}

/* A failure of the commit itself names no statement. */
static void a_batch_whose_commit_fails_is_halved_until_the_call_is_found(void **state) {
    (void)pg_ask(
        observer,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
        " IF NEW.id = 'bisect-17' THEN RAISE 'no 17' USING ERRCODE = '23514'; END IF; RETURN NEW; END$$;"
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON ebb.inst DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION refuse()");
    assert_int_equal(run_fiber(*state, bisect_main, NULL), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE id LIKE 'bisect-%'"), "63");
    (void)pg_ask(observer, "DROP TRIGGER refuse ON ebb.inst; DROP FUNCTION refuse; DELETE FROM ebb.inst;"
                           "DELETE FROM ebb.inbox");
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

/* ---- an outcome that is not known ------------------------------------------------------------------------------ */

static ebb_status unknown_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    (void)arg;
    (void)start(cx, s, "unknown");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, s, node);
    ebb_provider_ack_turn_call *a = ack_call(s, node, &f->items[0]), *b = ack_call(s, node, &f->items[0]);
    ebb_provider_ack_turn_call *other = ack_call(s, node, &f->items[0]);
    a->work = b->work = &charge;
    a->work_n = b->work_n = 1;
    b->ack_id = a->ack_id; /* the same ack, asked again */
    end_call(ask(cx, a), EBB_OK);
    end_call(ask(cx, b), EBB_OK);
    end_call(ask(cx, other), EBB_ERR_FENCED);
    end_call(f, EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.work"), "1");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void an_ack_asked_again_by_its_id_is_done_once(void **state) {
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox; DELETE FROM ebb.work");
    assert_int_equal(run_fiber(*state, unknown_main, NULL), EBB_OK);
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox; DELETE FROM ebb.work");
}

/* ---- hints ----------------------------------------------------------------------------------------------------- */

typedef struct heard {
    ebb__hint_listener listener;
    uint32_t n[6];
} heard;

static void hear(void *arg, const ebb_provider_hint *h) {
    ((heard *)arg)->n[h->kind]++;
}

static bool hears(ebb_cx *cx, const uint32_t *n, uint64_t most) {
    const uint64_t until = ebb_now(cx) + most;
    while (*n == 0 && ebb_now(cx) < until) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    return *n > 0;
}

static ebb_status hint_main(ebb_cx *cx, void *arg) {
    ebb_store *a = open_url(cx, server.url), *b = open_url(cx, server.url);
    heard h = {.listener = {.hint = hear, .arg = &h}};
    const ebb_provider_node node = join(cx, b, 60 * EBB_SECOND);
    (void)arg;
    ebb__store_listen(b, &h.listener);
    (void)ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL); /* LISTEN has begun */
    memset(h.n, 0, sizeof h.n);
    (void)start(cx, a, "hint");
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_TURNS], 5 * EBB_SECOND));
    /* Without LISTEN: its end is told, nothing is heard, workers look every 100 ms, and what was missed is told
     * afterwards. */
    assert_string_equal(pg_ask(observer, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                         " WHERE application_name = 'ebb' AND query LIKE 'LISTEN%'"),
                        "2");
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_LOST], 5 * EBB_SECOND));
    memset(h.n, 0, sizeof h.n);
    ebb_provider_fetch_turns_call *f = fetch(cx, b, node);
    assert_int_equal(f->items_n, 1);
    assert_in_range(f->again, 1, 100 * EBB_MS);
    end_call(f, EBB_OK);
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_LOST], 5 * EBB_SECOND));
    f = fetch(cx, b, node);
    assert_in_range(f->again, 100 * EBB_MS + 1, EBB_SECOND);
    end_call(f, EBB_OK);
    ebb__store_unlisten(b, &h.listener);
    leave(cx, b, node);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void hints_reach_other_stores_and_their_loss_is_told(void **state) {
    assert_int_equal(run_fiber(*state, hint_main, NULL), EBB_OK);
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox");
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static ebb_status takeover_main(ebb_cx *cx, void *arg) {
    ebb_store *a = open_url(cx, server.url), *b = open_url(cx, server.url);
    const ebb_provider_node lost = join(cx, a, EBB_SECOND), other = join(cx, b, 60 * EBB_SECOND);
    (void)arg;
    (void)start(cx, a, "takeover");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, lost), *g = fetch(cx, b, other);
    assert_int_equal(g->items_n, 0);
    end_call(g, EBB_OK);
    g = fetch_some(cx, b, other); /* after the lease */
    assert_string_equal(g->items[0].id, "takeover");
    assert_int_equal(g->items[0].attempts, 2);
    end_call(ask(cx, ack_call(b, other, &g->items[0])), EBB_OK);
    end_call(ask(cx, ack_call(a, lost, &f->items[0])), EBB_ERR_FENCED);
    end_call(f, EBB_OK);
    end_call(g, EBB_OK);
    ebb_provider_renew_call *r = new_call(a, EBB_PROVIDER_RENEW);
    r->node = lost;
    r->lease = EBB_SECOND;
    r = ask(cx, r);
    assert_true(r->lost);
    end_call(r, EBB_OK);
    leave(cx, b, other);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void what_a_lost_node_had_is_taken_over_after_its_lease(void **state) {
    assert_int_equal(run_fiber(*state, takeover_main, NULL), EBB_OK);
    (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.inbox");
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
    (void)pg_ask(observer, "UPDATE ebb.meta SET v = 1; DELETE FROM ebb.inst; DELETE FROM ebb.hist");
}

static ebb_status drain_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb_provider_renew_call *r = new_call(s, EBB_PROVIDER_RENEW);
    (void)arg;
    (void)ebb_await(cx, ebb_after(cx, 500 * EBB_MS),
                    NULL); /* the other connections have looked at the schema */
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

static ebb_status durable_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    (void)start(cx, s, "durable");
    close_store(cx, s);
    return EBB_OK;
}

/* A trigger sees what the transaction of a start runs with. */
static void a_commit_is_synchronous_unless_the_url_says_otherwise(void **state) {
    char url[400];
    (void)pg_ask(observer,
                 "ALTER ROLE ebb SET synchronous_commit = off;"
                 "CREATE TABLE seen(v text);"
                 "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen"
                 " VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$;"
                 "CREATE TRIGGER see AFTER INSERT ON ebb.inst FOR EACH ROW EXECUTE FUNCTION see()");
    assert_int_equal(run_fiber(*state, durable_main, server.url), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT string_agg(v, ',') FROM seen"), "on");
    (void)pg_ask(observer, "DELETE FROM seen; DELETE FROM ebb.inst");
    snprintf(url, sizeof url, "%s&synchronous_commit=off", server.url);
    assert_int_equal(run_fiber(*state, durable_main, url), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT string_agg(v, ',') FROM seen"), "off");
    (void)pg_ask(observer, "ALTER ROLE ebb RESET synchronous_commit; DROP TRIGGER see ON ebb.inst;"
                           "DROP FUNCTION see; DROP TABLE seen; DELETE FROM ebb.inst; DELETE FROM ebb.inbox");
}

/* ---- the store's clock ----------------------------------------------------------------------------------------- */

static ebb_status clock_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    uint64_t at[3];
    (void)arg;
    for (int i = 0; i < 3; i++) {
        ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
        at[i] = f->now;
        end_call(f, EBB_OK);
        /* As if the machine's clock was set back by an hour. */
        if (i == 0) (void)pg_ask(observer, "UPDATE ebb.clock SET added = added - 3600000000000");
        (void)ebb_await(cx, ebb_after(cx, 100 * EBB_MS), NULL);
    }
    assert_true(at[1] >= at[0] && at[1] - at[0] < 10 * EBB_SECOND);
    assert_true(at[2] - at[1] >= 50 * EBB_MS); /* it goes on */
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void the_clock_of_the_store_never_goes_back_and_goes_on(void **state) {
    assert_int_equal(run_fiber(*state, clock_main, NULL), EBB_OK);
}

/* ---- plans ----------------------------------------------------------------------------------------------------- */

static char plans[1 << 16];

static void keep_plan(void *arg, const char *text) {
    (void)arg;
    strncat(plans, text, sizeof plans - strlen(plans) - 1);
}

/* Plans are those that the server makes within the functions. */
static void claims_read_by_index(void **state) {
    PGconn *c = pg_open(&server);
    (void)state;
    (void)pg_ask(
        c, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist RESTART IDENTITY;"
           "INSERT INTO ebb.inst(id, name, version, started, input, ready)"
           " SELECT 'i' || n, CASE WHEN n % 10 = 0 THEN 'pay' ELSE 'none' END, 1, 1, '',"
           "  CASE WHEN n % 3 = 0 THEN n END FROM generate_series(1, 60000) n;"
           "INSERT INTO ebb.inbox(inst, seq, execution, kind, step, at, body)"
           " SELECT key, key, 1, 1, 0, ready, '' FROM ebb.inst WHERE ready IS NOT NULL;"
           "INSERT INTO ebb.work(inst, execution, act, queue, session, name, attempt, ord, visible, input)"
           " SELECT n, 1, 1, 'q' || n % 7, '', 'x', 1, n, 1, '' FROM generate_series(1, 60000) n;"
           "ANALYZE; INSERT INTO ebb.node(epoch, until, name, runs, versions)"
           " VALUES (1, 9000000000000000000, 'n', '{pay}', '{1}')");
    (void)pg_ask(c, "LOAD 'auto_explain'");
    (void)pg_ask(c, "SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;"
                    "SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off;"
                    "SET client_min_messages = log");
    (void)PQsetNoticeProcessor(c, keep_plan, NULL);
    assert_string_equal(
        pg_ask(c, "SELECT count(*) FROM ebb_v1.fetch_turns((SELECT max(id) FROM ebb.node), 1, NULL, 10, 100,"
                  " false, 0, (SELECT array_agg(gen_random_uuid()) FROM generate_series(1, 10)))"),
        "11");
    assert_string_equal(
        pg_ask(
            c,
            "SELECT count(*) FROM ebb_v1.fetch_work((SELECT max(id) FROM ebb.node), 1, '{q1,q2}', '{5,5}',"
            " NULL, 10, 1000000000, false, 0, (SELECT array_agg(gen_random_uuid()) FROM generate_series(1, "
            "10)))"),
        "11");
    if (strstr(plans, "Seq Scan on inst") != NULL || strstr(plans, "Seq Scan on work") != NULL)
        print_error("%s\n", plans);
    assert_non_null(strstr(plans, "using inst_ready"));
    assert_non_null(strstr(plans, "using work_idle"));
    assert_null(strstr(plans, "Seq Scan on inst"));
    assert_null(strstr(plans, "Seq Scan on work"));
    PQfinish(c);
}

/* ---- floors ---------------------------------------------------------------------------------------------------- */

static size_t count_of(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
    const size_t n = f->items_n;
    end_call(f, EBB_OK);
    return n;
}

static ebb_status floor_main(ebb_cx *cx, void *arg) {
    ebb_store *a = open_url(cx, server.url), *b = open_url(cx, server.url);
    const ebb_provider_node x = join(cx, a, 60 * EBB_SECOND), y = join(cx, b, 60 * EBB_SECOND);
    (void)arg;
    (void)start(cx, a, "floor-1");
    (void)start(cx, a, "floor-2");
    (void)ebb_await(cx, ebb_after(cx, 200 * EBB_MS), NULL);
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, x);
    assert_int_equal(f->items_n, 2);
    assert_int_equal(count_of(cx, b, y), 0); /* looks from the beginning, and knows the floor from here on */
    (void)pg_ask(observer, "UPDATE ebb.inst SET ready = 1, token = NULL, node = NULL WHERE id = 'floor-2';"
                           "UPDATE ebb.inst SET ready = 1 WHERE id = 'floor-1'");
    assert_int_equal(count_of(cx, b, y), 0); /* below it, and nobody has said so */
    ebb_provider_abandon_turns_call *c = new_call(a, EBB_PROVIDER_ABANDON_TURNS);
    c->node = x;
    c->tokens = &f->items[0].token;
    c->tokens_n = 1;
    end_call(ask(cx, c), EBB_OK);
    (void)ebb_await(cx, ebb_after(cx, 300 * EBB_MS), NULL);
    assert_int_equal(count_of(cx, b, y), 2);
    end_call(f, EBB_OK);
    leave(cx, a, x);
    leave(cx, b, y);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void a_row_below_the_floor_is_found_when_it_is_given_back(void **state) {
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist");
    assert_int_equal(run_fiber(*state, floor_main, NULL), EBB_OK);
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist");
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Every allocation fails once, in a store that is opened, used and closed; what failed for want of memory can be asked again. */
typedef struct short_of {
    loop_world *world;
    uint64_t nth;
    bool reached;
} short_of;

static ebb_status short_main(ebb_cx *cx, void *arg) {
    short_of *k = arg;
    ebb_value v;
    ebb_failing *memory = &k->world->memory;
    memory->fail_at = memory->calls + k->nth;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = server.url}), &v);
    for (int i = 0; st == EBB_OK && i < 2; i++) {
        ebb_provider_start_call *c = ebb__call_new(ebb__store_gate(ebb_store_of(&v)), EBB_PROVIDER_START);
        ebb_value answered;
        if (c == NULL) continue;
        c->id = "short";
        c->name = "pay";
        c->message = ebb_blob_text("begin");
        const ebb_status asked = ebb_await(cx, ebb__call_begin(cx, &c->call, EBB_SITE), &answered);
        if (asked == EBB_OK) ebb_value_discard(cx, answered);
        else assert_int_equal(asked, EBB_ERR_NOMEM);
    }
    k->reached = memory->calls >= memory->fail_at;
    memory->fail_at = 0;
    if (st != EBB_OK) assert_true(st == EBB_ERR_NOMEM || st == EBB_ERR_UNAVAILABLE);
    else close_store(cx, ebb_store_of(&v));
    return EBB_OK;
}

/* A new world for each, so that what is allocated once in a world fails too. */
static void any_allocation_may_fail(void **state) {
    short_of k = {.nth = 1, .reached = true};
    (void)state;
    for (; k.reached; k.nth++) {
        k.world = loop_world_new();
        assert_int_equal(run_fiber(k.world, short_main, &k), EBB_OK);
        loop_world_end(k.world);
    }
    print_message("%llu allocations\n", (unsigned long long)k.nth - 2);
    assert_true(k.nth > 10);
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

enum { SHARED = 300, WORKERS = 3 };

/* What a process of its own does: it ends what it gets, until nothing has come for a second. It fails if it had none. */
static ebb_status drain_shared(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    int ended = 0;
    for (uint64_t last = ebb_now(cx); ebb_now(cx) - last < EBB_SECOND;) {
        ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
        for (size_t i = 0; i < f->items_n; i++) {
            ebb_provider_ack_turn_call *a = ack_call(s, node, &f->items[i]);
            a->ends = EBB_INSTANCE_COMPLETED;
            end_call(insist(cx, a), EBB_OK);
            ended++;
            last = ebb_now(cx);
        }
        end_call(f, EBB_OK);
    }
    leave(cx, s, node);
    close_store(cx, s);
    return ended > 0 ? EBB_OK : EBB_FAILED;
}

static int worker_main(char *url) {
    loop_world *w = loop_world_new();
    const ebb_status st = run_fiber(w, drain_shared, url);
    loop_world_end(w);
    return st != EBB_OK;
}

static ebb_status start_shared(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    char id[64];
    (void)arg;
    for (int i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "shared-%d", i);
        (void)start(cx, s, id);
    }
    close_store(cx, s);
    return EBB_OK;
}

static void processes_share_the_work_and_double_none(void **state) {
    pid_t pid[WORKERS];
    int status;
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist");
    assert_int_equal(run_fiber(*state, start_shared, NULL), EBB_OK);
    for (int i = 0; i < WORKERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            execl("/proc/self/exe", "durable.postgres", server.url, (char *)NULL);
            _exit(127);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0); /* each has had some */
    }
    assert_string_equal(
        pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE state = 'Completed' AND turn = 1"), "300");
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.hist"), "300");
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist");
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static ebb_status count_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb_provider_stats before, after;
    (void)arg;
    (void)ebb_await(cx, ebb_after(cx, 300 * EBB_MS), NULL); /* the other connections are set up */
    ebb__store_stats(s, &before);
    run_once(cx, s, node, "count");
    ebb__store_stats(s, &after);
    /* A start, two fetches, two turns and an activity that is fetched and acknowledged: two steps. Hints are counted. */
    print_message("%llu statements for two turns and an activity\n",
                  (unsigned long long)(after.statements - before.statements));
    assert_in_range(after.statements - before.statements, 7, 12);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void a_step_costs_at_most_six_statements(void **state) {
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.node, ebb.hist");
    assert_int_equal(run_fiber(*state, count_main, NULL), EBB_OK);
}

int main(int argc, char **argv) {
    if (argc == 2) return worker_main(argv[1]);
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(an_instance_runs_to_its_end),
        ON_A_LOOP(the_host_is_looked_up_in_the_pool),
        ON_A_LOOP(calls_of_one_turn_of_the_loop_are_one_commit),
        ON_A_LOOP(a_call_that_fails_leaves_the_others_of_its_batch_as_they_are),
        ON_A_LOOP(a_batch_whose_commit_fails_is_halved_until_the_call_is_found),
        ON_A_LOOP(a_connection_cut_at_any_statement_loses_and_doubles_nothing),
        ON_A_LOOP(an_ack_asked_again_by_its_id_is_done_once),
        ON_A_LOOP(hints_reach_other_stores_and_their_loss_is_told),
        ON_A_LOOP(what_a_lost_node_had_is_taken_over_after_its_lease),
        ON_A_LOOP(a_store_for_reading_only_refuses_to_write),
        ON_A_LOOP(an_open_that_fails_says_why),
        ON_A_LOOP(a_newer_schema_is_refused_by_name_and_one_that_it_can_read_is_not),
        ON_A_LOOP(a_worker_below_the_version_that_may_read_is_told_by_its_renewal),
        ON_A_LOOP(stores_that_make_the_schema_at_the_same_time_all_open),
        ON_A_LOOP(a_commit_is_synchronous_unless_the_url_says_otherwise),
        ON_A_LOOP(the_clock_of_the_store_never_goes_back_and_goes_on),
        cmocka_unit_test(claims_read_by_index),
        ON_A_LOOP(a_row_below_the_floor_is_found_when_it_is_given_back),
        cmocka_unit_test(any_allocation_may_fail),
        ON_A_LOOP(processes_share_the_work_and_double_none),
        ON_A_LOOP(a_step_costs_at_most_six_statements),
        ON_A_LOOP(calls_end_while_the_server_is_away_and_succeed_when_it_is_back),
        ON_A_LOOP(a_server_that_crashes_between_batches_loses_nothing),
    };
    cmocka_set_test_filter(getenv("EBB_TEST_CASE"));
    return cmocka_run_group_tests(tests, server_up, server_down);
}
