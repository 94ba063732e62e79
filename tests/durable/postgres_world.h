/* What tests of the PostgreSQL provider share: one server for all tests of a program, calls asked one by one, and the steps of
 * an instance. A test that fails ends the program at once: the fiber in which it failed would keep its world from ending, and
 * what has failed would never be told. */
#ifndef EBB_TESTS_POSTGRES_WORLD_H
#define EBB_TESTS_POSTGRES_WORLD_H

#include "tests/durable/postgres_server.h"
#include "tests/support/loop_world.h"

#include "durable/postgres.h"
#include "durable/store.h"

static pg_server server;
static PGconn *observer; /* not of Ebb's */

/* ---- asking --------------------------------------------------------------------------------------------------- */

PG_UNUSED ebb_store *open_url(ebb_cx *cx, const char *url) {
    ebb_value v;
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = url}), &v);
    if (st != EBB_OK) print_error("open: %s: %s\n", ebb_status_text(st), ebb_durable_error());
    assert_int_equal(st, EBB_OK);
    return ebb_store_of(&v);
}

PG_UNUSED void close_store(ebb_cx *cx, ebb_store *s) {
    assert_int_equal(ebb_await(cx, ebb_store_close(cx, s), NULL), EBB_OK);
}

PG_UNUSED void *new_call(ebb_store *s, ebb_provider_op op) {
    void *c = ebb__call_new(ebb__store_gate(s), op);
    assert_non_null(c);
    return c;
}

PG_UNUSED void *answer(ebb_cx *cx, ebb_future *f) {
    ebb_value v;
    const ebb_status st = ebb_await(cx, f, &v);
    assert_int_equal(st, EBB_OK);
    return ebb__call_of(&v);
}

PG_UNUSED void *ask(ebb_cx *cx, void *call) {
    return answer(cx, ebb__call_begin(cx, call, EBB_SITE));
}

PG_UNUSED void *insist(ebb_cx *cx, void *call) {
    return answer(cx, ebb__call_insist(cx, call, EBB_FOREVER, EBB_SITE));
}

PG_UNUSED void end_call(void *call, ebb_status expected) {
    ebb_provider_call *c = call;
    if (c->status != expected) print_error("op %d: %s: %s\n", c->op, ebb_status_text(c->status), c->text);
    assert_int_equal(c->status, expected);
    ebb__call_free(c);
}

/* ---- a scenario ----------------------------------------------------------------------------------------------- */

PG_UNUSED const ebb_provider_runs runs[] = {{"pay", 1}};

PG_UNUSED ebb_provider_node join(ebb_cx *cx, ebb_store *s, uint64_t lease) {
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

PG_UNUSED void leave(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_leave_call *c = new_call(s, EBB_PROVIDER_LEAVE);
    c->node = node;
    end_call(insist(cx, c), EBB_OK);
}

PG_UNUSED ebb_provider_start_call *start_call(ebb_store *s, const char *id) {
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = ebb__call_text(&c->call, id);
    c->name = "pay";
    c->message = ebb_blob_text("begin");
    c->input = ebb_blob_text("{}");
    return c;
}

PG_UNUSED uint64_t start(ebb_cx *cx, ebb_store *s, const char *id) {
    ebb_provider_start_call *c = insist(cx, start_call(s, id));
    const uint64_t key = c->row.key;
    end_call(c, EBB_OK);
    return key;
}

PG_UNUSED ebb_provider_fetch_turns_call *fetch(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *c = new_call(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = node;
    c->most = 16;
    c->messages = 100;
    c->suspects = true;
    return ask(cx, c);
}

/* Asks until there is something, for 20 s. */
PG_UNUSED ebb_provider_fetch_turns_call *fetch_some(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    for (int i = 0;; i++) {
        ebb_provider_fetch_turns_call *c = fetch(cx, s, node);
        if (c->call.status == EBB_OK && c->items_n > 0) return c;
        if (c->call.status != EBB_OK) assert_int_equal(c->call.status, EBB_ERR_UNAVAILABLE);
        ebb__call_free(&c->call);
        assert_true(i < 1000);
        (void)ebb_await(cx, ebb_after(cx, 20 * EBB_MS), NULL);
    }
}

PG_UNUSED ebb_provider_fetch_work_call *fetch_work(ebb_cx *cx, ebb_store *s, ebb_provider_node node,
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

PG_UNUSED const ebb_provider_work charge = {
    .activity = 2, .queue = "charge", .session = "", .name = "charge", .attempt = 1};

PG_UNUSED ebb_provider_ack_turn_call *ack_call(ebb_store *s, ebb_provider_node node,
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

PG_UNUSED ebb_provider_ack_work_call *ack_work_call(ebb_store *s, ebb_provider_node node,
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
PG_UNUSED void run_once(ebb_cx *cx, ebb_store *s, ebb_provider_node node, const char *id) {
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
PG_UNUSED void check_ended(const char *id) {
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "SELECT format('%%s %%s %%s %%s', i.state, (SELECT string_agg(turn::text, ',' ORDER BY turn) FROM"
        " ebb.hist h WHERE h.inst = i.key), (SELECT count(*) FROM ebb.work w WHERE w.inst = i.key),"
        " (SELECT count(*) FROM ebb.inbox b WHERE b.inst = i.key)) FROM ebb.inst i WHERE i.id = '%s'",
        id);
    assert_string_equal(pg_ask(observer, sql), "Completed 1,2 0 0");
}

/* An instance with the id "plain" on the store of the URL `arg`. */
PG_UNUSED ebb_status plain(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    run_once(cx, s, node, "plain");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

PG_UNUSED ebb__postgres *provider_of(ebb_store *s) {
    return ebb__store_gate(s)->self;
}

/* Until all connections of the store are set up. */
PG_UNUSED void wait_ready(ebb_cx *cx, ebb_store *s) {
    const ebb__postgres *p = provider_of(s);
    while (!p->writer.ready || !p->reader.ready || !p->listener.ready)
        (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
}

/* Leaves the schema and no row. */
PG_UNUSED void wipe(void) {
    (void)pg_ask(observer, "TRUNCATE ebb.inst, ebb.inbox, ebb.work, ebb.timer, ebb.node, ebb.hist, ebb.value,"
                           " ebb.dedup, ebb.session");
}

PG_UNUSED ebb_status make_schema(ebb_cx *cx, void *arg) {
    close_store(cx, open_url(cx, arg));
    return EBB_OK;
}

PG_UNUSED bool observe(void) {
    observer = pg_open(&server);
    (void)pg_ask(observer, "SET client_min_messages = warning");
    return PQstatus(observer) == CONNECTION_OK;
}

PG_UNUSED int server_up(void **state) {
    (void)state;
    if (setenv("CMOCKA_TEST_ABORT", "1", 1) != 0 || !pg_server_begin(&server, false) || !observe()) return -1;
    loop_world *w = loop_world_new();
    const ebb_status st = run_fiber(w, make_schema, server.url);
    loop_world_end(w);
    return st == EBB_OK ? 0 : -1;
}

PG_UNUSED int server_down(void **state) {
    (void)state;
    PQfinish(observer);
    pg_server_end(&server);
    return 0;
}

/* EBB_TEST_CASE: the tests that match it, and no others. */
#define RUN_ON_POSTGRES(tests)                                                                               \
    (cmocka_set_test_filter(getenv("EBB_TEST_CASE")), cmocka_run_group_tests((tests), server_up, server_down))

#endif
