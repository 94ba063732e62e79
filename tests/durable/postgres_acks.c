/* Turns that share a statement on PostgreSQL end as they would alone: the same random turns are committed by both functions of the
 * server, and every table is compared. So do ends of work. What fails in a shared statement is one call. */
#include "tests/durable/postgres_world.h"

enum { INSTANCES = 24, ROUNDS = 12 };

/* Instances come in pairs, "s-N" and "a-N": the turn of the first shares a statement, that of the second has its own, since
 * it cancels an activity that there never was. */
typedef struct pair {
    ebb_provider_token ack_id[2];
    ebb_status status[2];
    size_t gone_at[2];
} pair;

static uint64_t random_of(uint64_t *seed, uint64_t below) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % below;
}

static const ebb_provider_cancelled never = {.activity = 999999};

/* So that a later turn knows it. */
static ebb_provider_token token_of(const char *id, uint64_t activity) {
    return (ebb_provider_token){(uint64_t)id[0] << 32 | (uint64_t)atoi(id + 2), activity};
}

/* Work of the turn before, which was made as claimed, or was not, or has gone since. */
static void put_random_done(ebb_provider_ack_turn_call *c, const char *id, uint64_t *seed) {
    const size_t n = random_of(seed, 3) ? 0 : 1 + random_of(seed, 2);
    ebb_provider_work_done *done = ebb__call_room(&c->call, 2 * sizeof *done);
    for (size_t i = 0; i < n; i++) {
        const uint64_t activity = (c->turn - 1) * 10 + i;
        done[i] = (ebb_provider_work_done){c->execution, activity, token_of(id, activity)};
    }
    c->done = done;
    c->done_n = c->turn > 1 ? n : 0;
}

static void put_random_work(ebb_provider_ack_turn_call *c, const char *id, uint64_t *seed) {
    static const char *const queues[] = {"charge", "mail"};
    const size_t n = random_of(seed, 4);
    ebb_provider_work *work = ebb__call_room(&c->call, (n + 1) * sizeof *work);
    for (size_t i = 0; i < n; i++) {
        work[i] = charge;
        work[i].activity = c->turn * 10 + i;
        work[i].queue = queues[random_of(seed, 2)];
        work[i].session = random_of(seed, 2) ? "" : "one";
        work[i].attempt = (uint32_t)random_of(seed, 3) + 1;
        work[i].input = ebb_blob_text("input");
        if (random_of(seed, 2)) work[i].token = token_of(id, work[i].activity);
    }
    c->work = work;
    c->work_n = n;
    c->lease = 60 * EBB_SECOND;
}

static void put_random_timers(ebb_provider_ack_turn_call *c, uint64_t *seed) {
    const size_t n = random_of(seed, 3);
    ebb_provider_timer *timers = ebb__call_room(&c->call, (n + 1) * sizeof *timers);
    uint64_t *cancelled = ebb__call_room(&c->call, 2 * sizeof *cancelled);
    for (size_t i = 0; i < n; i++)
        timers[i] =
            (ebb_provider_timer){c->turn * 10 + i, random_of(seed, 2) ? 1 : UINT64_C(9000000000000000000)};
    for (size_t i = 0; i < 2; i++) cancelled[i] = (c->turn - random_of(seed, 2)) * 10 - 10 + i;
    c->timers = timers;
    c->timers_n = n;
    c->timers_cancelled = cancelled;
    c->timers_cancelled_n = random_of(seed, 3);
    if (c->turn == 1) c->timers_cancelled_n = 0;
}

static void put_random_end(ebb_provider_ack_turn_call *c, uint64_t *seed) {
    static const ebb_blob custom = {"custom", 6};
    c->keep = random_of(seed, 2);
    c->custom = random_of(seed, 3) ? NULL : &custom;
    c->unread = (uint32_t)random_of(seed, 5);
    c->semantics = (uint32_t)random_of(seed, 3) + 1;
    c->all_work = random_of(seed, 5) == 0;
    c->all_timers = random_of(seed, 5) == 0;
    c->cause = EBB_CANCEL_USER;
    if (random_of(seed, 8) != 0) return;
    c->ends = random_of(seed, 2) ? EBB_INSTANCE_COMPLETED : EBB_INSTANCE_FAILED;
    c->all_work = c->all_timers = true;
    c->result = ebb_blob_text("result");
    c->text = random_of(seed, 2) ? "why" : NULL;
}

static ebb_provider_ack_turn_call *random_ack(ebb_store *s, ebb_provider_node node,
                                              const ebb_provider_turn_item *item, uint64_t seed) {
    ebb_provider_ack_turn_call *c = ack_call(s, node, item);
    (void)random_of(&seed, 2);
    put_random_work(c, item->id, &seed);
    put_random_done(c, item->id, &seed);
    put_random_timers(c, &seed);
    put_random_end(c, &seed);
    if (random_of(&seed, 4) == 0) c->acked_n--; /* one stays */
    if (random_of(&seed, 12) == 0) c->turn++;   /* fenced */
    if (random_of(&seed, 12) == 0) c->execution++;
    if (random_of(&seed, 12) == 0) c->token = ebb__token_new(ebb__store_host(s)); /* its claim was lost */
    if (item->id[0] != 's') {
        c->cancelled = &never;
        c->cancelled_n = 1;
    }
    return c;
}

static void start_pairs(ebb_cx *cx, ebb_store *s) {
    char id[24];
    for (int i = 0; i < 2 * INSTANCES; i++) {
        snprintf(id, sizeof id, "%c-%d", i % 2 ? 'a' : 's', i / 2);
        ebb_provider_start_call *c = start_call(s, id);
        c->version = i % 4 < 2; /* half have no version yet */
        end_call(insist(cx, c), EBB_OK);
    }
}

/* For all that have not ended. */
static void signal_pairs(ebb_cx *cx, ebb_store *s) {
    char id[24];
    for (int i = 0; i < 2 * INSTANCES; i++) {
        ebb_provider_send_call *c = new_call(s, EBB_PROVIDER_SEND);
        snprintf(id, sizeof id, "%c-%d", i % 2 ? 'a' : 's', i / 2);
        c->id = ebb__call_text(&c->call, id);
        c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
        c->body = ebb_blob_text("signal");
        ebb__call_free(&((ebb_provider_send_call *)insist(cx, c))->call);
    }
}

static ebb_provider_fetch_turns_call *fetch_pairs(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *f = new_call(s, EBB_PROVIDER_FETCH_TURNS);
    f->node = node;
    f->most = 4 * INSTANCES;
    f->messages = 100;
    f = insist(cx, f);
    assert_int_equal(f->call.status, EBB_OK);
    return f;
}

static void let_go(ebb_cx *cx, ebb_store *s, ebb_provider_node node, const ebb_provider_token *token) {
    ebb_provider_abandon_turns_call *c = new_call(s, EBB_PROVIDER_ABANDON_TURNS);
    c->node = node;
    c->tokens = token;
    c->tokens_n = 1;
    end_call(insist(cx, c), EBB_OK);
}

/* Commits what was fetched, in one batch; `again`: asked once more, with the same id for every third. */
static void commit_items(ebb_cx *cx, ebb_store *s, const ebb_provider_fetch_turns_call *f, int round,
                         bool again, pair *p, unsigned n[2]) {
    ebb_future *asked[4 * INSTANCES];
    for (size_t i = 0; i < f->items_n; i++) {
        const ebb_provider_turn_item *item = &f->items[i];
        const int nth = atoi(item->id + 2);
        pair *of = &p[nth];
        ebb_provider_token *id = &of->ack_id[item->id[0] == 'a'];
        ebb_provider_ack_turn_call *c = random_ack(
            s, f->node, item, (uint64_t)(round * INSTANCES + nth + 1) * UINT64_C(0x9e3779b97f4a7c15));
        if (again && nth % 3 == 0) c->ack_id = *id;
        *id = c->ack_id;
        asked[i] = ebb__call_begin(cx, &c->call, EBB_SITE);
    }
    for (size_t i = 0; i < f->items_n; i++) {
        ebb_provider_call *c = answer(cx, asked[i]);
        pair *of = &p[atoi(f->items[i].id + 2)];
        const bool alone = f->items[i].id[0] == 'a';
        of->status[alone] = c->status;
        of->gone_at[alone] = c->status == EBB_ERR_GONE ? ((const ebb_provider_ack_turn_call *)c)->gone_at : 0;
        n[c->status == EBB_OK] += ((const ebb_provider_ack_turn_call *)c)->done_n > 0;
        if ((c->status == EBB_ERR_FENCED || c->status == EBB_ERR_GONE) && !again)
            let_go(cx, s, f->node, &f->items[i].token);
        ebb__call_free(c);
    }
}

/* Rows of the one kind without their twin of the other: keys, tokens, orders and times differ. */
#define ROWS(columns, table)                                                                                 \
    "SELECT count(*) FROM (SELECT substr(i.id, 3), " columns ", count(*) FILTER (WHERE i.id LIKE 's%')"      \
    " - count(*) FILTER (WHERE i.id LIKE 'a%') AS more FROM ebb.inst i " table " GROUP BY 1, " columns       \
    ") d WHERE more <> 0"

static const char *const comparisons[] = {
    ROWS(
        "i.name, i.version, i.semantics, i.execution, i.turn, i.state, i.attempts, i.unread, i.ready IS NULL,"
        " i.token IS NULL, i.node IS NULL, i.kept, i.ended = 0, i.why, i.result, i.custom",
        ""),
    ROWS("x.execution, x.turn, x.body", "JOIN ebb.hist x ON x.inst = i.key"),
    ROWS("x.execution, x.kind, x.step, x.body", "JOIN ebb.inbox x ON x.inst = i.key"),
    ROWS("x.execution, x.act, x.queue, x.session, x.name, x.attempt, x.attempts, x.token IS NULL, x.node IS "
         "NULL,"
         " x.until = 0, x.input",
         "JOIN ebb.work x ON x.inst = i.key"),
    ROWS("x.execution, x.step, x.due", "JOIN ebb.timer x ON x.inst = i.key"),
};

static void check_pairs(const pair *p) {
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
        if (strcmp(pg_ask(observer, comparisons[i]), "0") != 0) fail_msg("differs: %s", comparisons[i]);
    for (int i = 0; i < INSTANCES; i++) {
        assert_int_equal(p[i].status[0], p[i].status[1]);
        assert_int_equal(p[i].gone_at[0], p[i].gone_at[1]);
    }
}

static ebb_status pairs_main(ebb_cx *cx, void *arg) {
    pair p[INSTANCES] = {0};
    unsigned n[2] = {0, 0}; /* of those that would end work: not done, done */
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    (void)arg;
    start_pairs(cx, s);
    for (int round = 0; round < ROUNDS; round++) {
        ebb_provider_fetch_turns_call *f = fetch_pairs(cx, s, node);
        for (int again = 0; again < 2; again++) {
            commit_items(cx, s, f, round, again, p, n);
            check_pairs(p);
        }
        end_call(f, EBB_OK);
        signal_pairs(cx, s);
    }
    print_message("%s\n",
                  pg_ask(observer,
                         "SELECT count(*) || ' turns, ' || (SELECT count(*) FROM ebb.work) || ' of work, '"
                         " || (SELECT count(*) FROM ebb.inst WHERE ended <> 0) || ' ended' FROM ebb.hist"));
    assert_string_not_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE ended <> 0"), "0");
    print_message("%u turns have ended work, %u had none to end\n", n[1], n[0]);
    assert_true(n[0] > 0 && n[1] > 0);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void turns_that_share_a_statement_end_as_they_would_alone(void **state) {
    wipe();
    assert_int_equal(run_fiber(*state, pairs_main, NULL), EBB_OK);
    wipe();
}

/* ---- one of many ------------------------------------------------------------------------------------------------ */

enum { MANY = 40, BAD = 13 };

/* Acks of `MANY` instances in one turn of the loop: the BAD-th has a name that is no text, every fourth has a statement of its own. */
static ebb_status bad_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    ebb_future *f[MANY];
    char id[24];
    const bool *has_bad = arg;
    ebb_provider_stats before, after;
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "many-%d", i);
        (void)start(cx, s, id);
    }
    ebb_provider_fetch_turns_call *items = fetch_pairs(cx, s, node);
    assert_int_equal(items->items_n, MANY);
    ebb__store_stats(s, &before);
    for (int i = 0; i < MANY; i++) {
        ebb_provider_ack_turn_call *c = ack_call(s, node, &items->items[i]);
        if (*has_bad && i == BAD) c->name = "\xff";
        if (*has_bad && i % 4 == 0) c->cancelled = &never;
        c->cancelled_n = c->cancelled != NULL;
        f[i] = ebb__call_begin(cx, &c->call, EBB_SITE);
    }
    for (int i = 0; i < MANY; i++) end_call(answer(cx, f[i]), *has_bad && i == BAD ? EBB_ERR_STORE : EBB_OK);
    ebb__store_stats(s, &after);
    print_message("%d turns: %" PRIu64 " statements\n", MANY, after.statements - before.statements);
    if (!*has_bad) assert_in_range(after.statements - before.statements, 1, 4); /* with hints of the starts */
    end_call(items, EBB_OK);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void the_turns_of_a_batch_are_one_statement(void **state) {
    bool has_bad = false;
    assert_int_equal(run_fiber(*state, bad_main, &has_bad), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.hist"), "40");
    wipe();
}

static void one_that_fails_in_a_shared_statement_leaves_the_others_as_they_are(void **state) {
    bool has_bad = true;
    assert_int_equal(run_fiber(*state, bad_main, &has_bad), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.hist"), "39");
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE turn = 1"), "39");
    wipe();
}

/* ---- ends of work ----------------------------------------------------------------------------------------------- */

enum { OF_EACH = 4, HOLDERS = 8, WORKS = OF_EACH * HOLDERS };

/* Each of HOLDERS instances gets OF_EACH activities. */
static void make_works(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_work work[OF_EACH];
    char id[24];
    for (int i = 0; i < OF_EACH; i++) {
        work[i] = charge;
        work[i].activity = (uint64_t)i + 2;
    }
    for (int i = 0; i < HOLDERS; i++) {
        snprintf(id, sizeof id, "holder-%d", i);
        (void)start(cx, s, id);
    }
    ebb_provider_fetch_turns_call *f = fetch_pairs(cx, s, node);
    for (size_t i = 0; i < f->items_n; i++) {
        ebb_provider_ack_turn_call *c = ack_call(s, node, &f->items[i]);
        c->work = work;
        c->work_n = OF_EACH;
        end_call(ask(cx, c), EBB_OK);
    }
    end_call(f, EBB_OK);
}

static ebb_provider_fetch_work_call *fetch_works(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    static const ebb_provider_queue queue = {"charge", WORKS};
    ebb_provider_fetch_work_call *c = new_call(s, EBB_PROVIDER_FETCH_WORK);
    c->node = node;
    c->queues = &queue;
    c->queues_n = 1;
    c->most = WORKS;
    c->lease = 600 * EBB_SECOND;
    c = ask(cx, c);
    assert_int_equal(c->call.status, EBB_OK);
    assert_int_equal(c->items_n, WORKS);
    return c;
}

/* What has happened to an activity before its end is acknowledged. */
typedef enum fate { FINE, CANCELLED, LAPSED, STOLEN, SILENT, TWICE, FATES } fate;

static void meet_fate(const ebb_provider_work_item *item, fate f) {
    char sql[256];
    snprintf(sql, sizeof sql,
             f == CANCELLED ? "DELETE FROM ebb.work WHERE inst = %" PRIu64 " AND act = %" PRIu64
                            : "UPDATE ebb.work SET until = 1 WHERE inst = %" PRIu64 " AND act = %" PRIu64,
             item->key, item->activity);
    if (f == CANCELLED || f == LAPSED) (void)pg_ask(observer, sql);
}

static ebb_status works_main(ebb_cx *cx, void *arg) {
    static const ebb_blob message = {"charged", 7};
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    ebb_future *asked[WORKS], *again[WORKS] = {NULL};
    ebb_provider_stats before, after;
    (void)arg;
    make_works(cx, s, node);
    ebb_provider_fetch_work_call *w = fetch_works(cx, s, node);
    (void)pg_ask(observer, "UPDATE ebb.inst SET state = 'Failed', ended = 1 WHERE id = 'holder-2'");
    ebb__store_stats(s, &before);
    for (int i = 0; i < WORKS; i++) {
        const fate f = (fate)(i % FATES);
        meet_fate(&w->items[i], f);
        ebb_provider_ack_work_call *c = ack_work_call(s, node, &w->items[i], f == SILENT ? NULL : &message);
        if (f == STOLEN) c->token = ebb__token_new(ebb__store_host(s));
        if (f == TWICE) {
            ebb_provider_ack_work_call *d = ack_work_call(s, node, &w->items[i], &message);
            d->ack_id = c->ack_id;
            again[i] = ebb__call_begin(cx, &d->call, EBB_SITE);
        }
        asked[i] = ebb__call_begin(cx, &c->call, EBB_SITE);
    }
    for (int i = 0; i < WORKS; i++) {
        const fate f = (fate)(i % FATES);
        const bool ended = strcmp(w->items[i].id, "holder-2") == 0;
        const bool gone = f == CANCELLED || f == LAPSED || f == STOLEN;
        ebb_provider_ack_work_call *c = answer(cx, asked[i]);
        if (f != TWICE || !ended) { /* of two, the one that finds no message is gone */
            assert_int_equal(c->dropped, ended && f != SILENT && !gone);
            end_call(c, gone ? EBB_ERR_GONE : EBB_OK);
            if (again[i] != NULL) end_call(answer(cx, again[i]), EBB_OK);
            continue;
        }
        ebb_provider_ack_work_call *d = answer(cx, again[i]);
        assert_true(c->dropped != d->dropped);
        assert_int_equal(c->call.status + d->call.status, EBB_ERR_GONE);
        ebb__call_free(&c->call);
        ebb__call_free(&d->call);
    }
    ebb__store_stats(s, &after);
    print_message("%d ends of work: %" PRIu64 " statements\n", WORKS, after.statements - before.statements);
    assert_in_range(after.statements - before.statements, 1, 3);
    end_call(w, EBB_OK);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void ends_of_work_that_share_a_statement_have_each_their_own_answer(void **state) {
    assert_int_equal(run_fiber(*state, works_main, NULL), EBB_OK);
    /* Messages: of those that were fine or acknowledged twice, once each, and none of holder-2. */
    assert_string_equal(
        pg_ask(observer, "SELECT string_agg(substr(id, 8) || ':' || acts, ' ' ORDER BY id) FROM (SELECT i.id,"
                         " string_agg(b.step::text, ',' ORDER BY b.seq) AS acts FROM ebb.inbox b JOIN "
                         "ebb.inst i ON i.key = b.inst"
                         " AND i.ready = b.at GROUP BY i.id) x"),
        "0:2 1:3,4 3:2 4:3,4 5:5 6:2 7:3,4");
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.work"),
                        "10"); /* that have lapsed, or were stolen */
    wipe();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(turns_that_share_a_statement_end_as_they_would_alone),
        ON_A_LOOP(the_turns_of_a_batch_are_one_statement),
        ON_A_LOOP(one_that_fails_in_a_shared_statement_leaves_the_others_as_they_are),
        ON_A_LOOP(ends_of_work_that_share_a_statement_have_each_their_own_answer),
    };
    return RUN_ON_POSTGRES(tests);
}
