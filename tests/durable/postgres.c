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

/* Cuts all connections of Ebb by the n-th call, either while its statement is on its way or after it has been executed and
 * before its transaction has been committed, which nobody can tell from the other side. */
typedef struct cutter {
    uint64_t at;
    bool cut;
    int wait_ms;
} cutter;

static ebb__store_fault cut_at(void *arg, uint64_t n, const ebb_provider_call *c) {
    cutter *k = arg;
    (void)c;
    if (n == k->at) k->cut = true;
    return EBB__FAULT_NONE;
}

static ebb_status cut_loop(ebb_cx *cx, void *arg) {
    cutter *k = arg;
    while (!k->cut && ebb_await(cx, ebb_after(cx, 0), NULL) == EBB_OK) {}
    for (int i = 0; i < k->wait_ms; i++) (void)ebb_await(cx, ebb_after(cx, EBB_MS / 2), NULL);
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
    for (int wait = 0; wait < 4; wait++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(an_instance_runs_to_its_end),
        ON_A_LOOP(the_host_is_looked_up_in_the_pool),
        ON_A_LOOP(calls_of_one_turn_of_the_loop_are_one_commit),
        ON_A_LOOP(a_call_that_fails_leaves_the_others_of_its_batch_as_they_are),
        ON_A_LOOP(a_batch_whose_commit_fails_is_halved_until_the_call_is_found),
        ON_A_LOOP(a_connection_cut_at_any_statement_loses_and_doubles_nothing),
    };
    return cmocka_run_group_tests(tests, server_up, server_down);
}
