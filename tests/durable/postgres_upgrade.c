/* Workers of two versions on one PostgreSQL: a version 2 that expands the schema under workers of version 1, and a version 3 that
 * needs version 2. Both are made from the first: their functions are in a namespace of their own and know a column more. */
#include "tests/durable/postgres_world.h"

enum { STATEMENTS = 64 };

/* The statements of a part, with ebb_v1 as ebb_v2, and what follows from that. */
static const char *replaced(const char *sql) {
    static const struct {
        const char *was, *is;
    } change[] = {
        {"ebb_v1", "ebb_v2"},
        {"least_version > 1 ", "least_version > 2 "},
        {"reads version 1'", "reads version 2'"},
        {"started, input)\n    VALUES (p_id, p_name, p_version, t, t, p_input)",
         "started, input, note)\n    VALUES (p_id, p_name, p_version, t, t, p_input, 'of 2')"},
    };
    char *to = calloc(1, strlen(sql) * 2 + 64), *end = to;
    assert_non_null(to);
    while (*sql != 0) {
        size_t i = 0;
        while (i < 4 && strncmp(sql, change[i].was, strlen(change[i].was)) != 0) i++;
        if (i == 4) *end++ = *sql++;
        else {
            end = stpcpy(end, change[i].is);
            sql += strlen(change[i].was);
        }
    }
    return to;
}

static const char *const *part_of_2(const char *const *of_1, const char *at[STATEMENTS]) {
    size_t n = 0;
    for (; of_1[n] != NULL; n++) at[n] = replaced(of_1[n]);
    assert_in_range(n, 1, STATEMENTS - 1);
    return at;
}

static const char *const expand[] = {"ALTER TABLE ebb.inst ADD COLUMN IF NOT EXISTS note text DEFAULT 'of 1'",
                                     NULL};
static const char *const contract[] = {"ALTER TABLE ebb.inst ALTER COLUMN note DROP DEFAULT",
                                       "ALTER TABLE ebb.inst ALTER COLUMN note SET NOT NULL", NULL};
static const char *statements[4][STATEMENTS];
static const char *const *second[] = {expand, NULL, NULL, NULL, NULL, NULL};
static const char *const *const third[] = {contract, NULL};
static ebb__postgres_version versions[3];
static const ebb__postgres_schema schemas[] = {
    {versions, 1, "ebb_v1"}, {versions, 2, "ebb_v2"}, {versions, 3, "ebb_v2"}};

static void make_versions(void) {
    versions[0] = ebb__postgres_schema_own.version[0];
    second[1] = part_of_2(ebb__postgres_sql_turns, statements[0]);
    second[2] = part_of_2(ebb__postgres_sql_work, statements[1]);
    second[3] = part_of_2(ebb__postgres_sql_clients, statements[2]);
    second[4] = part_of_2(ebb__postgres_sql_acks, statements[3]);
    versions[1] = (ebb__postgres_version){second, 1};
    versions[2] = (ebb__postgres_version){third, 2};
}

static void open_1(ebb_provider_open_call *c) {
    ebb__postgres_open(c, &schemas[0]);
}
static void open_2(ebb_provider_open_call *c) {
    ebb__postgres_open(c, &schemas[1]);
}
static void open_3(ebb_provider_open_call *c) {
    ebb__postgres_open(c, &schemas[2]);
}

static ebb_future *begin_open(ebb_cx *cx, const char *url, int version, ebb_provider *p) {
    *p = *ebb__provider_of(url);
    p->open = version == 1 ? open_1 : version == 2 ? open_2 : open_3;
    return ebb_store_open(cx, &(ebb_store_opts){.url = url, .provider = p});
}

static ebb_store *open_version(ebb_cx *cx, const char *url, int version, ebb_provider *p) {
    ebb_value v;
    assert_int_equal(ebb_await(cx, begin_open(cx, url, version, p), &v), EBB_OK);
    return ebb_store_of(&v);
}

/* Back to a database of version 1. */
static void first_version(loop_world *w) {
    (void)pg_ask(observer,
                 "DROP SCHEMA ebb CASCADE; DROP SCHEMA ebb_v1 CASCADE; DROP SCHEMA IF EXISTS ebb_v2 CASCADE");
    assert_int_equal(run_fiber(w, make_schema, server.url), EBB_OK);
}

#define VERSIONS "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM ebb.meta"

/* ---- side by side ---------------------------------------------------------------------------------------------- */

/* An instance that version 1 has begun, under its own claim, is gone on with by 2 after 1 has let it go; and the other way
 * round. Nobody notices the other's version. */
static ebb_status side_main(ebb_cx *cx, void *arg) {
    ebb_provider p1, p2;
    const ebb_blob charged = ebb_blob_text("charged");
    ebb_store *a = open_version(cx, server.url, 1, &p1);
    const ebb_provider_node one = join(cx, a, 600 * EBB_SECOND);
    (void)arg;
    (void)start(cx, a, "begun-by-1");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, one);
    ebb_store *b = open_version(cx, server.url, 2, &p2); /* while 1 has a claim and a node */
    assert_string_equal(pg_ask(observer, VERSIONS), "min_reader 1, schema 2");
    const ebb_provider_node two = join(cx, b, 600 * EBB_SECOND);
    (void)start(cx, b, "begun-by-2");
    ebb_provider_fetch_turns_call *g = fetch_some(cx, b, two);
    assert_string_equal(g->items[0].id, "begun-by-2");
    ebb_provider_ack_turn_call *x = ack_call(a, one, &f->items[0]), *y = ack_call(b, two, &g->items[0]);
    x->work = y->work = &charge;
    x->work_n = y->work_n = 1;
    end_call(ask(cx, x), EBB_OK);
    end_call(ask(cx, y), EBB_OK);
    end_call(f, EBB_OK);
    end_call(g, EBB_OK);
    ebb_provider_fetch_work_call *w = fetch_work(cx, b, two, 60 * EBB_SECOND); /* of both */
    assert_int_equal(w->items_n, 2);
    for (size_t i = 0; i < 2; i++) end_call(ask(cx, ack_work_call(b, two, &w->items[i], &charged)), EBB_OK);
    end_call(w, EBB_OK);
    f = fetch_some(cx, a, one); /* both */
    assert_int_equal(f->items_n, 2);
    for (size_t i = 0; i < 2; i++) {
        ebb_provider_ack_turn_call *end = ack_call(a, one, &f->items[i]);
        end->ends = EBB_INSTANCE_COMPLETED;
        end_call(ask(cx, end), EBB_OK);
    }
    end_call(f, EBB_OK);
    leave(cx, a, one);
    leave(cx, b, two);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void workers_of_two_versions_share_instances_and_work(void **state) {
    first_version(*state);
    assert_int_equal(run_fiber(*state, side_main, NULL), EBB_OK);
    check_ended("begun-by-1");
    check_ended("begun-by-2");
    assert_string_equal(pg_ask(observer, "SELECT string_agg(note, ', ' ORDER BY id) FROM ebb.inst"),
                        "of 1, of 2");
}

static ebb_status together_main(ebb_cx *cx, void *arg) {
    ebb_provider p[6];
    ebb_future *f[6];
    ebb_value v[6];
    (void)arg;
    for (int i = 0; i < 6; i++) f[i] = begin_open(cx, server.url, i % 3 + 1, &p[i]);
    for (int i = 0; i < 6; i++) {
        const ebb_status st = ebb_await(cx, f[i], &v[i]);
        if (i % 3 == 0 && st != EBB_OK) assert_int_equal(st, EBB_ERR_SCHEMA); /* after a 3 */
        else assert_int_equal(st, EBB_OK);
        if (st == EBB_OK) close_store(cx, ebb_store_of(&v[i]));
    }
    return EBB_OK;
}

static void stores_of_all_versions_that_make_the_schema_at_the_same_time_leave_the_newest(void **state) {
    (void)pg_ask(observer, "DROP SCHEMA ebb CASCADE; DROP SCHEMA ebb_v1 CASCADE; DROP SCHEMA ebb_v2 CASCADE");
    assert_int_equal(run_fiber(*state, together_main, NULL), EBB_OK);
    assert_string_equal(pg_ask(observer, VERSIONS), "min_reader 2, schema 3");
}

/* ---- drained ---------------------------------------------------------------------------------------------------- */

static void is_refused(ebb_cx *cx, void *call) {
    ebb_provider_call *c = ask(cx, call);
    assert_non_null(strstr(c->text, "version 2"));
    end_call(c, EBB_ERR_SCHEMA);
}

static ebb_provider_renew_call *renew_call(ebb_store *s, ebb_provider_node node) {
    ebb_provider_renew_call *r = new_call(s, EBB_PROVIDER_RENEW);
    r->node = node;
    r->lease = EBB_SECOND;
    return r;
}

static ebb_provider_join_call *join_call(ebb_store *s) {
    ebb_provider_join_call *c = new_call(s, EBB_PROVIDER_JOIN);
    c->name = "late";
    c->lease = EBB_SECOND;
    return c;
}

/* `arg`: the connections of version 1 are lost once more, and come back to a schema that they may not use. */
static ebb_status drain_main(ebb_cx *cx, void *arg) {
    ebb_provider p1, p3;
    ebb_store *a = open_version(cx, server.url, 1, &p1);
    const ebb_provider_node one = join(cx, a, 600 * EBB_SECOND);
    const ebb_provider_node other = join(cx, a, 600 * EBB_SECOND);
    wait_ready(cx, a);
    (void)start(cx, a, "drained");
    ebb_provider_fetch_turns_call *f = fetch_some(cx, a, one);
    ebb_store *b = open_version(cx, server.url, 3, &p3);
    const ebb_provider_node three = join(cx, b, 600 * EBB_SECOND);
    if (*(bool *)arg) {
        (void)pg_ask(
            observer,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ebb'");
        while (provider_of(a)->refused == EBB_OK) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
        is_refused(cx, start_call(a, "never"));
    }
    is_refused(cx, renew_call(a, one));
    is_refused(cx, join_call(a));
    assert_int_equal(ebb_await(cx, begin_open(cx, server.url, 1, &p1), NULL), EBB_ERR_SCHEMA);
    ebb_provider_abandon_turns_call *c = new_call(a, EBB_PROVIDER_ABANDON_TURNS);
    c->node = one;
    c->tokens = &f->items[0].token;
    c->tokens_n = 1;
    end_call(insist(cx, c), EBB_OK);
    leave(cx, a, other);
    end_call(f, EBB_OK);
    f = fetch_some(cx, b, three); /* at once, and with no attempt charged */
    assert_string_equal(f->items[0].id, "drained");
    assert_int_equal(f->items[0].attempts, 1);
    end_call(f, EBB_OK);
    leave(cx, a, one);
    leave(cx, b, three);
    close_store(cx, a);
    close_store(cx, b);
    return EBB_OK;
}

static void a_worker_that_is_too_old_gives_back_what_it_has_and_claims_nothing(void **state) {
    bool lost = false;
    first_version(*state);
    assert_int_equal(run_fiber(*state, drain_main, &lost), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.node"), "0");
}

static void so_does_one_that_has_lost_its_connections_meanwhile(void **state) {
    bool lost = true;
    first_version(*state);
    assert_int_equal(run_fiber(*state, drain_main, &lost), EBB_OK);
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.node"), "0");
}

/* ---- rolling ---------------------------------------------------------------------------------------------------- */

enum { ROLLING = 240 };

/* A process of its own, of the version `argv[2]`: it starts instances and ends what it gets, until its parent closes the pipe.
 * A message of each instance comes from the other version as often as not. */
typedef struct roller {
    const char *url;
    int version, first;
} roller;

static ebb_status roll(ebb_cx *cx, void *arg) {
    const roller *r = arg;
    ebb_provider p;
    ebb_store *s = open_version(cx, r->url, r->version, &p);
    PGconn *own = PQconnectdb(r->url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    char id[64];
    for (int i = 0; i < ROLLING / 4; i++) {
        snprintf(id, sizeof id, "rolling-%d", r->first + i);
        end_call(insist(cx, start_call(s, id)), EBB_OK);
    }
    while (strcmp(pg_ask(own, "SELECT count(*) FROM ebb.inst WHERE state = 'Completed'"), "240") != 0) {
        ebb_provider_fetch_turns_call *f = fetch(cx, s, node);
        for (size_t i = 0; f->call.status == EBB_OK && i < f->items_n; i++) {
            ebb_provider_ack_turn_call *a = ack_call(s, node, &f->items[i]);
            const ebb_provider_timer now = {.step = 2, .due = 1}; /* the next turn is whoever's */
            if (f->items[i].turn == 0) {
                a->timers = &now;
                a->timers_n = 1;
            } else a->ends = EBB_INSTANCE_COMPLETED;
            end_call(insist(cx, a), EBB_OK);
        }
        if (f->call.status != EBB_OK) assert_int_equal(f->call.status, EBB_ERR_UNAVAILABLE);
        ebb__call_free(&f->call);
    }
    leave(cx, s, node);
    close_store(cx, s);
    PQfinish(own);
    return EBB_OK;
}

static int roller_main(char **argv) {
    loop_world *w = loop_world_new();
    roller r = {argv[1], atoi(argv[2]), atoi(argv[3])};
    make_versions();
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
    const ebb_status st = run_fiber(w, roll, &r);
    loop_world_end(w);
    return st != EBB_OK;
}

static pid_t roller_begin(const char *version, int first) {
    char number[16];
    snprintf(number, sizeof number, "%d", first);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    execl("/proc/self/exe", "durable.postgres_upgrade", server.url, version, number, (char *)NULL);
    _exit(127);
}

/* Two of version 1 are at work when the first of version 2 comes. */
static void a_rolling_upgrade_loses_and_doubles_nothing(void **state) {
    pid_t pid[4];
    int status;
    first_version(*state);
    pid[0] = roller_begin("1", 0);
    pid[1] = roller_begin("1", 60);
    while (strcmp(pg_ask(observer, "SELECT count(*) > 0 FROM ebb.hist"), "t") != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pid[2] = roller_begin("2", 120);
    pid[3] = roller_begin("2", 180);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_string_equal(pg_ask(observer, VERSIONS), "min_reader 1, schema 2");
    assert_string_equal(
        pg_ask(observer, "SELECT string_agg(n, ', ' ORDER BY n) FROM (SELECT note || ': ' || count(*) AS n"
                         " FROM ebb.inst WHERE state = 'Completed' AND turn = 2 GROUP BY note) x"),
        "of 1: 120, of 2: 120");
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.hist"), "480");
    assert_string_equal(pg_ask(observer, "SELECT count(*) FROM ebb.timer"), "0");
}

int main(int argc, char **argv) {
    if (argc == 4) return roller_main(argv);
    make_versions();
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(workers_of_two_versions_share_instances_and_work),
        ON_A_LOOP(stores_of_all_versions_that_make_the_schema_at_the_same_time_leave_the_newest),
        ON_A_LOOP(a_worker_that_is_too_old_gives_back_what_it_has_and_claims_nothing),
        ON_A_LOOP(so_does_one_that_has_lost_its_connections_meanwhile),
        ON_A_LOOP(a_rolling_upgrade_loses_and_doubles_nothing),
    };
    return RUN_ON_POSTGRES(tests);
}
