/* Who gets what from PostgreSQL: hints and their loss, nodes that lapse, processes that share the work, and what a claim reads. */
#include "tests/durable/postgres_world.h"

/* ---- hints ----------------------------------------------------------------------------------------------------- */

typedef struct heard {
    ebb__hint_listener listener;
    uint32_t n[6];
    size_t queue; /* bytes of the name of the last one */
} heard;

static void hear(void *arg, const ebb_provider_hint *h) {
    ((heard *)arg)->n[h->kind]++;
    if (h->kind == EBB_PROVIDER_HINT_WORK) ((heard *)arg)->queue = strlen(h->queue);
}

static bool hears(ebb_cx *cx, const uint32_t *n, uint64_t most) {
    const uint64_t until = ebb_now(cx) + most;
    while (*n == 0 && ebb_now(cx) < until) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    return *n > 0;
}

/* Its connection that listens has a role of its own, which may not come back as long as the test says so. */
static ebb_store *open_with_ear(ebb_cx *cx) {
    ebb_value v;
    char url[256];
    snprintf(url, sizeof url, "postgres://ear@:%u/postgres?host=%s", server.port, server.dir);
    const ebb_store_opts opts = {.url = server.url, .listen_url = url};
    assert_int_equal(ebb_await(cx, ebb_store_open(cx, &opts), &v), EBB_OK);
    ebb_store *s = ebb_store_of(&v);
    wait_ready(cx, s);
    return s;
}

static uint64_t again_of(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
    const uint64_t again = f->again;
    end_call(f, EBB_OK);
    return again;
}

static void cut_ear(ebb_cx *cx, ebb_store *s) {
    assert_string_equal(pg_ask(observer, "ALTER ROLE ear NOLOGIN; SELECT count(pg_terminate_backend(pid))"
                                         " FROM pg_stat_activity WHERE usename = 'ear'"),
                        "1");
    while (provider_of(s)->listener.ready) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
}

static ebb_status hint_main(ebb_cx *cx, void *arg) {
    ebb_store *a = open_url(cx, server.url), *b = open_with_ear(cx);
    heard h = {.listener = {.hint = hear, .arg = &h}};
    const ebb_provider_node node = join(cx, b, 600 * EBB_SECOND);
    (void)arg;
    ebb__store_listen(b, &h.listener);
    (void)start(cx, a, "hint");
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_TURNS], 60 * EBB_SECOND));
    (void)pg_ask(observer, "SELECT pg_notify('ebb', E'another\\nw ' || repeat('q', 511) || E'\\n')");
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_WORK], 60 * EBB_SECOND));
    assert_int_equal(h.queue, 2 * EBB_DURABLE_ID + 1); /* NAME@TAG */
    /* Without LISTEN: its end is told, nothing is heard, workers look every 100 ms, and what was missed is told
     * afterwards. */
    cut_ear(cx, b);
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_LOST], 60 * EBB_SECOND));
    h.n[EBB_PROVIDER_HINT_LOST] = 0;
    assert_in_range(again_of(cx, b, node), 1, 100 * EBB_MS);
    (void)pg_ask(observer, "ALTER ROLE ear LOGIN");
    assert_true(hears(cx, &h.n[EBB_PROVIDER_HINT_LOST], 60 * EBB_SECOND));
    assert_in_range(again_of(cx, b, node), 100 * EBB_MS + 1, EBB_SECOND);
    ebb__store_unlisten(b, &h.listener);
    leave(cx, b, node);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void hints_reach_other_stores_and_their_loss_is_told(void **state) {
    (void)pg_ask(observer, "CREATE ROLE ear LOGIN");
    assert_int_equal(run_fiber(*state, hint_main, NULL), EBB_OK);
    wipe();
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static ebb_status takeover_main(ebb_cx *cx, void *arg) {
    ebb_store *a = open_url(cx, server.url), *b = open_url(cx, server.url);
    const ebb_provider_node lost = join(cx, a, 600 * EBB_SECOND), other = join(cx, b, 600 * EBB_SECOND);
    char sql[128];
    (void)arg;
    (void)start(cx, a, "takeover");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, lost), *g = fetch(cx, b, other);
    assert_int_equal(g->items_n, 0);
    end_call(g, EBB_OK);
    snprintf(sql, sizeof sql, "UPDATE ebb.node SET until = 1 WHERE id = %llu", (unsigned long long)lost.id);
    (void)pg_ask(observer, sql); /* the lease is over */
    g = fetch_some(cx, b, other);
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
    wipe();
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
    /* What is given back is found among all that a node has. */
    (void)pg_ask(c,
                 "UPDATE ebb.inst SET node = 1, token = gen_random_uuid(), kept = true WHERE key <= 20000");
    (void)pg_ask(c, "ANALYZE ebb.inst");
    *plans = 0;
    assert_string_equal(pg_ask(c, "SELECT o_status FROM ebb_v1.abandon_turns(1,"
                                  " (SELECT array_agg(gen_random_uuid()) FROM generate_series(1, 100)))"),
                        "0");
    if (strstr(plans, "Index Cond: ((node = ") == NULL) print_error("%s\n", plans);
    assert_non_null(strstr(plans, "using inst_node"));
    assert_non_null(strstr(plans, "AND (token = ANY"));
    assert_null(strstr(plans, "Filter: (token"));
    PQfinish(c);
}

/* ---- an old transaction ---------------------------------------------------------------------------------------- */

/* Rows that have come and gone while an old transaction is open: nothing of them can be removed from table or index. */
static void churn(unsigned rows) {
    char sql[1024];
    snprintf(sql, sizeof sql,
             "INSERT INTO ebb.inst(id, name, version, started, input, ready)"
             " SELECT 'gone-' || n || '-' || %u, 'pay', 1, 1, '', n FROM generate_series(1, %u) n",
             rows, rows);
    (void)pg_ask(observer, sql);
    (void)pg_ask(observer,
                 "UPDATE ebb.inst SET token = gen_random_uuid() WHERE id LIKE 'gone-%' AND ended = 0");
    (void)pg_ask(observer, "UPDATE ebb.inst SET ready = NULL, token = NULL, state = 'Completed', ended = 1"
                           " WHERE id LIKE 'gone-%' AND ended = 0");
    snprintf(sql, sizeof sql,
             "INSERT INTO ebb.work(inst, execution, act, queue, session, name, attempt, ord, visible, input)"
             " SELECT -nextval('ebb.number'), 1, 1, 'charge', '', 'x', 1, nextval('ebb.number'), 1, ''"
             " FROM generate_series(1, %u) n",
             rows);
    (void)pg_ask(observer, sql);
    (void)pg_ask(observer, "DELETE FROM ebb.work");
}

/* Something to claim. */
static void make_live(void) {
    (void)pg_ask(observer, "INSERT INTO ebb.inst(id, name, version, started, input, ready)"
                           " SELECT 'live-' || nextval('ebb.number'), 'pay', 1, 1, '', ebb_v1.clock()");
    (void)pg_ask(observer,
                 "INSERT INTO ebb.inbox(inst, seq, execution, kind, step, at, body)"
                 " SELECT max(key), nextval('ebb.number'), 1, 1, 0, ebb_v1.clock(), '' FROM ebb.inst");
    (void)pg_ask(
        observer,
        "INSERT INTO ebb.work(inst, execution, act, queue, session, name, attempt, ord, visible, input)"
        " SELECT max(key), 1, 1, 'charge', '', 'x', 1, nextval('ebb.number'), 1, '' FROM ebb.inst");
}

#define FETCH_TURNS                                                                                          \
    "ebb_v1.fetch_turns((SELECT max(id) FROM ebb.node), 1, NULL, 1, 100, false, %s, "                        \
    "ARRAY[gen_random_uuid()])"
#define FETCH_WORK                                                                                           \
    "ebb_v1.fetch_work((SELECT max(id) FROM ebb.node), 1, '{charge}', '{1}', NULL, 1, 1000000000, false, "   \
    "%s,"                                                                                                    \
    " ARRAY[gen_random_uuid()])"

/* Pages that a claim reads, from the beginning or from the floor that such a look gives. */
static unsigned pages_of(const char *fetch, bool floor) {
    static const char hit[] = "\"Shared Hit Blocks\": ", read[] = "\"Shared Read Blocks\": ";
    char call[512], sql[640], from[32] = "0";
    if (floor) {
        make_live();
        snprintf(call, sizeof call, fetch, "0");
        snprintf(sql, sizeof sql, "SELECT o_floor FROM %s LIMIT 1", call);
        snprintf(from, sizeof from, "%s", pg_ask(observer, sql));
    }
    make_live();
    snprintf(call, sizeof call, fetch, from);
    snprintf(sql, sizeof sql, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM %s", call);
    const char *plan = pg_ask(observer, sql);
    assert_non_null(strstr(plan, hit));
    assert_non_null(strstr(plan, "\"Actual Rows\": 2,")); /* the times, and what was claimed */
    return (unsigned)strtoul(strstr(plan, hit) + strlen(hit), NULL, 10) +
           (unsigned)strtoul(strstr(plan, read) + strlen(read), NULL, 10);
}

static void check_flat(const char *what, const unsigned before[2], const unsigned after[2]) {
    print_message(
        "%s: %u pages from the beginning and %u from the floor; with four times the rows %u and %u\n", what,
        before[0], before[1], after[0], after[1]);
    assert_true(after[0] > before[0] * 2); /* the rows are in the way indeed */
    assert_true(after[1] < before[1] + before[1] / 2);
}

static void a_claim_reads_no_more_after_many_rows_with_an_old_transaction_open(void **state) {
    const char *given = getenv("EBB_CLAIM_ROWS");
    const unsigned rows = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 24000;
    unsigned turns[2][2], work[2][2];
    (void)state;
    wipe();
    (void)pg_ask(observer, "INSERT INTO ebb.node(epoch, until, name, runs, versions)"
                           " VALUES (1, 9000000000000000000, 'n', '{pay}', '{1}')");
    PGconn *old = pg_open(&server);
    (void)pg_ask(old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    (void)pg_ask(old, "SELECT count(*) FROM ebb.inst");
    for (int i = 0; i < 2; i++) {
        churn(i == 0 ? rows / 4 : rows - rows / 4);
        for (int floor = 0; floor < 2; floor++) {
            turns[i][floor] = pages_of(FETCH_TURNS, floor);
            work[i][floor] = pages_of(FETCH_WORK, floor);
        }
    }
    check_flat("instances", turns[0], turns[1]);
    check_flat("work", work[0], work[1]);
    PQfinish(old);
    wipe();
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
    const ebb_provider_node x = join(cx, a, 600 * EBB_SECOND), y = join(cx, b, 600 * EBB_SECOND);
    (void)arg;
    wait_ready(cx, a);
    wait_ready(cx, b); /* without LISTEN there are no floors */
    (void)start(cx, a, "floor-1");
    (void)start(cx, a, "floor-2");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, x);
    assert_int_equal(f->items_n, 2);
    assert_int_equal(count_of(cx, b, y), 0); /* looks from the beginning, and knows the floor from here on */
    (void)pg_ask(observer, "UPDATE ebb.inst SET ready = 1, token = NULL, node = NULL WHERE id = 'floor-2';"
                           "UPDATE ebb.inst SET ready = 1 WHERE id = 'floor-1'");
    assert_int_equal(count_of(cx, b, y), 0); /* below it, and nobody has said so */
    const uint32_t floors = provider_of(b)->floors;
    ebb_provider_abandon_turns_call *c = new_call(a, EBB_PROVIDER_ABANDON_TURNS);
    c->node = x;
    c->tokens = &f->items[0].token;
    c->tokens_n = 1;
    end_call(ask(cx, c), EBB_OK);
    while (provider_of(b)->floors == floors) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    assert_int_equal(count_of(cx, b, y), 2);
    end_call(f, EBB_OK);
    leave(cx, a, x);
    leave(cx, b, y);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void a_row_below_the_floor_is_found_when_it_is_given_back(void **state) {
    wipe();
    assert_int_equal(run_fiber(*state, floor_main, NULL), EBB_OK);
    wipe();
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

enum { SHARED = 300, WORKERS = 3, CAP = 128 }; /* of three that end at most 128, each has some */

static void wait_for(ebb_cx *cx, PGconn *own, const char *sql, const char *what) {
    while (strcmp(pg_ask(own, sql), what) != 0) (void)ebb_await(cx, ebb_after(cx, 10 * EBB_MS), NULL);
}

#define ENDED "SELECT count(*) FROM ebb.inst WHERE state = 'Completed'"

/* What a process of its own does: it ends what it gets, until all has ended or it has had its part. */
static ebb_status drain_shared(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    PGconn *own = PQconnectdb(arg);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    int ended = 0;
    wait_for(cx, own, "SELECT count(*) FROM ebb.node", "3");
    while (ended + 16 <= CAP && strcmp(pg_ask(own, ENDED), "300") != 0) {
        ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
        for (size_t i = 0; i < f->items_n; i++, ended++) {
            ebb_provider_ack_turn_call *a = ack_call(s, node, &f->items[i]);
            a->ends = EBB_INSTANCE_COMPLETED;
            end_call(insist(cx, a), EBB_OK);
        }
        end_call(f, EBB_OK);
    }
    wait_for(cx, own, ENDED, "300"); /* a node that leaves early would be missed by those that count nodes */
    leave(cx, s, node);
    close_store(cx, s);
    PQfinish(own);
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
    wipe();
    assert_int_equal(run_fiber(*state, start_shared, NULL), EBB_OK);
    for (int i = 0; i < WORKERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            execl("/proc/self/exe", "durable.postgres_claims", server.url, (char *)NULL);
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
    wipe();
}

int main(int argc, char **argv) {
    if (argc == 2) return worker_main(argv[1]);
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(hints_reach_other_stores_and_their_loss_is_told),
        ON_A_LOOP(what_a_lost_node_had_is_taken_over_after_its_lease),
        cmocka_unit_test(claims_read_by_index),
        cmocka_unit_test(a_claim_reads_no_more_after_many_rows_with_an_old_transaction_open),
        ON_A_LOOP(a_row_below_the_floor_is_found_when_it_is_given_back),
        ON_A_LOOP(processes_share_the_work_and_double_none),
    };
    return RUN_ON_POSTGRES(tests);
}
