/* The PostgreSQL provider against a real server: an instance from its start to its end, batches and calls that spoil them, the
 * clock, durability, statements counted, and every allocation failing. The conformance suite is durable.postgres_suite. */
#include "tests/durable/postgres_world.h"

static void an_instance_runs_to_its_end(void **state) {
    assert_int_equal(run_fiber(*state, plain, server.url), EBB_OK);
    check_ended("plain");
}

static void the_host_is_looked_up_in_the_pool(void **state) {
    wipe();
    assert_int_equal(run_fiber(*state, plain, server.tcp_url), EBB_OK);
    check_ended("plain");
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
    wipe();
}

static ebb_status order_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb_future *f[MANY];
    uint8_t n[MANY];
    (void)arg;
    end_call(ask(cx, start_call(s, "order")), EBB_OK);
    for (int i = 0; i < MANY; i++) {
        ebb_provider_send_call *c = new_call(s, EBB_PROVIDER_SEND);
        n[i] = (uint8_t)i;
        c->id = "order";
        c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
        c->body = (ebb_blob){&n[i], 1};
        f[i] = ebb__call_begin(cx, &c->call, EBB_SITE);
    }
    for (int i = 0; i < MANY; i++) end_call(answer(cx, f[i]), EBB_OK);
    ebb_provider_fetch_turns_call *c = fetch(cx, s, node);
    assert_int_equal(c->items_n, 1);
    assert_int_equal(c->items[0].messages_n, 1 + MANY); /* after the start */
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(c->items[0].messages[1 + i].body.n, 1);
        assert_memory_equal(c->items[0].messages[1 + i].body.at, &n[i], 1);
    }
    end_call(c, EBB_OK);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void signals_of_one_batch_arrive_in_their_order(void **state) {
    assert_int_equal(run_fiber(*state, order_main, NULL), EBB_OK);
    wipe();
}

static void a_call_that_fails_leaves_the_others_of_its_batch_as_they_are(void **state) {
    int spoilt = 5;
    assert_int_equal(run_fiber(*state, batch_main, &spoilt), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE id LIKE 'batch-%'"), "60");
    wipe();
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
    (void)pg_ask(observer, "DROP TRIGGER refuse ON ebb.inst; DROP FUNCTION refuse");
    wipe();
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
    wipe();
    assert_int_equal(run_fiber(*state, unknown_main, NULL), EBB_OK);
    wipe();
}

static ebb_status durable_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    (void)start(cx, s, "durable");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, s, node);
    end_call(ask(cx, ack_call(s, node, &f->items[0])), EBB_OK);
    end_call(f, EBB_OK);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static ebb_status not_durable_main(ebb_cx *cx, void *arg) {
    assert_int_equal(ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = arg}), NULL), EBB_ERR_STORE);
    assert_non_null(strstr(ebb_durable_error(), "synchronous_commit"));
    return EBB_OK;
}

/* Triggers see what the transactions of a start and of a turn commit with. */
static void a_commit_is_synchronous_unless_the_url_says_otherwise(void **state) {
    char url[400];
    (void)pg_ask(observer,
                 "ALTER ROLE ebb SET synchronous_commit = off;"
                 "CREATE TABLE seen(v text);"
                 "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen"
                 " VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$;"
                 "CREATE CONSTRAINT TRIGGER see AFTER INSERT ON ebb.inst DEFERRABLE INITIALLY DEFERRED"
                 " FOR EACH ROW EXECUTE FUNCTION see();"
                 "CREATE CONSTRAINT TRIGGER see AFTER INSERT ON ebb.hist DEFERRABLE INITIALLY DEFERRED"
                 " FOR EACH ROW EXECUTE FUNCTION see()");
    assert_int_equal(run_fiber(*state, durable_main, server.url), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT string_agg(v, ',') FROM seen"), "on,on");
    (void)pg_ask(observer, "DELETE FROM seen; DELETE FROM ebb.inst");
    snprintf(url, sizeof url, "%s&synchronous_commit=off", server.url);
    assert_int_equal(run_fiber(*state, durable_main, url), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT string_agg(v, ',') FROM seen"), "off,off");
    (void)pg_ask(
        observer,
        "ALTER ROLE ebb RESET synchronous_commit; DROP TRIGGER see ON ebb.inst; DROP TRIGGER see ON ebb.hist;"
        "DROP FUNCTION see; DROP TABLE seen");
    snprintf(url, sizeof url, "%s&synchronous_commit=perhaps", server.url);
    assert_int_equal(run_fiber(*state, not_durable_main, url), EBB_OK);
    wipe();
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

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Every allocation fails once, in a store that is opened, used and closed; what failed for want of memory can be asked again. */
typedef struct short_of {
    loop_world *world;
    uint64_t nth;
    bool reached;
} short_of;

typedef struct step {
    ebb_store *store;
    ebb_provider_node node;
    const ebb_provider_turn_item *item;
    ebb_provider_token ack_id;
    bool unknown; /* a call's answer never came: what it has claimed is known to nobody */
} step;

/* Until it is done, or has failed for good. */
static void *ask_again(ebb_cx *cx, void *(*make)(void *of), step *of) {
    ebb_value v;
    for (;;) {
        ebb_provider_call *c = make(of);
        if (c == NULL) continue;
        const ebb_status st = ebb_await(cx, ebb__call_begin(cx, c, EBB_SITE), &v);
        if (st != EBB_OK) {
            assert_int_equal(st, EBB_ERR_NOMEM);
            of->unknown = true;
            continue;
        }
        c = ebb__call_of(&v);
        if (c->status == EBB_OK) return c;
        if (c->status != EBB_ERR_UNAVAILABLE) assert_int_equal(c->status, EBB_ERR_NOMEM);
        ebb__call_free(c);
        (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    }
}

static void *make_start(void *of) {
    ebb_provider_start_call *c = ebb__call_new(ebb__store_gate(((step *)of)->store), EBB_PROVIDER_START);
    if (c == NULL) return NULL;
    c->id = "short";
    c->name = "pay";
    c->message = ebb_blob_text("begin");
    return c;
}

static void *make_join(void *of) {
    ebb_provider_join_call *c = ebb__call_new(ebb__store_gate(((step *)of)->store), EBB_PROVIDER_JOIN);
    if (c == NULL) return NULL;
    c->name = "short";
    c->lease = 600 * EBB_SECOND;
    c->runs = runs;
    c->runs_n = 1;
    return c;
}

static void *make_fetch(void *of) {
    ebb_provider_fetch_turns_call *c =
        ebb__call_new(ebb__store_gate(((step *)of)->store), EBB_PROVIDER_FETCH_TURNS);
    if (c == NULL) return NULL;
    c->node = ((step *)of)->node;
    c->most = 4;
    c->messages = 100;
    return c;
}

static void *make_ack(void *of) {
    const step *k = of;
    ebb_provider_ack_turn_call *c = ebb__call_new(ebb__store_gate(k->store), EBB_PROVIDER_ACK_TURN);
    if (c == NULL) return NULL;
    c->node = k->node;
    c->token = k->item->token;
    c->ack_id = k->ack_id;
    c->key = k->item->key;
    c->execution = k->item->execution;
    c->turn = 1;
    c->acked = &k->item->messages[0].at;
    c->acked_n = 1;
    c->ends = EBB_INSTANCE_COMPLETED;
    return c;
}

static void *make_leave(void *of) {
    ebb_provider_leave_call *c = ebb__call_new(ebb__store_gate(((step *)of)->store), EBB_PROVIDER_LEAVE);
    if (c != NULL) c->node = ((step *)of)->node;
    return c;
}

static void short_join(ebb_cx *cx, step *k) {
    ebb_provider_join_call *c = ask_again(cx, make_join, k);
    k->node = c->node;
    k->unknown = false;
    ebb__call_free(&c->call);
}

/* A fetch for whose answer there is no memory gives back what it has claimed. If the answer did not even come, the node has
 * to leave, as workers do. */
static void short_run(ebb_cx *cx, ebb_store *s) {
    step k = {.store = s, .ack_id = {1, 1}};
    ebb__call_free(ask_again(cx, make_start, &k));
    short_join(cx, &k);
    ebb_provider_fetch_turns_call *f = ask_again(cx, make_fetch, &k);
    while (f->items_n == 0) {
        ebb__call_free(&f->call);
        if (k.unknown) {
            ebb__call_free(ask_again(cx, make_leave, &k));
            short_join(cx, &k);
        }
        f = ask_again(cx, make_fetch, &k);
    }
    assert_int_equal(f->items[0].attempts, 1);
    k.item = &f->items[0];
    ebb__call_free(ask_again(cx, make_ack, &k));
    ebb__call_free(&f->call);
    ebb__call_free(ask_again(cx, make_leave, &k));
}

static ebb_status short_main(ebb_cx *cx, void *arg) {
    short_of *k = arg;
    ebb_value v;
    ebb_failing *memory = &k->world->memory;
    memory->fail_at = memory->calls + k->nth;
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = server.url}), &v);
    if (st == EBB_OK) short_run(cx, ebb_store_of(&v));
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
        (void)pg_ask(observer, "DELETE FROM ebb.inst; DELETE FROM ebb.hist; DELETE FROM ebb.node");
    }
    print_message("%llu allocations\n", (unsigned long long)k.nth - 2);
    assert_true(k.nth > 10);
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static ebb_status count_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 60 * EBB_SECOND);
    ebb_provider_stats before, after;
    (void)arg;
    wait_ready(cx, s);
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
    wipe();
    assert_int_equal(run_fiber(*state, count_main, NULL), EBB_OK);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(an_instance_runs_to_its_end),
        ON_A_LOOP(the_host_is_looked_up_in_the_pool),
        ON_A_LOOP(calls_of_one_turn_of_the_loop_are_one_commit),
        ON_A_LOOP(signals_of_one_batch_arrive_in_their_order),
        ON_A_LOOP(a_call_that_fails_leaves_the_others_of_its_batch_as_they_are),
        ON_A_LOOP(a_batch_whose_commit_fails_is_halved_until_the_call_is_found),
        ON_A_LOOP(an_ack_asked_again_by_its_id_is_done_once),
        ON_A_LOOP(a_commit_is_synchronous_unless_the_url_says_otherwise),
        ON_A_LOOP(the_clock_of_the_store_never_goes_back_and_goes_on),
        cmocka_unit_test(any_allocation_may_fail),
        ON_A_LOOP(a_step_costs_at_most_six_statements),
    };
    return RUN_ON_POSTGRES(tests);
}
