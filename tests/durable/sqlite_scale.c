/* What a file costs that is large: every statement finds its rows by an index, claims cost the same with any number of rows
 * behind them, and the log stays bounded while others read. EBB_SCALE_ROWS: how many rows (a soak has a million). */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/support/sqlite_scene.h"

static const char *rows(void) {
    const char *n = getenv("EBB_SCALE_ROWS");
    return n != NULL ? n : "30000";
}

static sqlite3 *connect_to(scene *s, const char *name) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(scene_path(s, name), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return db;
}

/* Instances with a message and an activity each, as their owner would have left them. */
static void fill(scene *s, const char *name, const char *n) {
    char sql[1500];
    (void)snprintf(
        sql, sizeof sql,
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)"
        " INSERT INTO inst SELECT i, 'i' || i, 'pay', 1, 1, 1, 'Running', 0, 0, NULL, 1, 0, '' FROM n;"
        "INSERT INTO inbox SELECT key, key, 0, 0, 4, NULL, x'00' FROM inst;"
        "INSERT INTO hist SELECT key, 1, 1, 1, NULL, x'00' FROM inst;"
        "INSERT INTO timer SELECT key, 1, 9, 9000000000000000000 FROM inst;"
        "INSERT INTO work SELECT key, 1, 2, 0, 'charge', 0, key, 0, NULL, 1, '', 'charge', x'00' FROM inst;"
        "COMMIT;",
        n);
    sqlite3 *db = connect_to(s, name);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

static scene *filled(world *w, const char *n) {
    scene *s = scene_new(w);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    scene_close(s);
    fill(s, "a.db", n);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    return s;
}

/* ---- plans ------------------------------------------------------------------------------------------------------------ */

/* At an open, once; and what has no rows to scan, or lists them all for a person. */
static bool may_scan(ebb__sqlite_sql sql) {
    return sql == EBB__SQL_INBOX_ALL || sql == EBB__SQL_WORK_FREE_ALL || sql == EBB__SQL_WORK_DISOWN_ALL ||
           sql == EBB__SQL_TREE;
}

static void no_statement_scans_a_table(void **state) {
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    sqlite3 *db = connect_to(s, "a.db");
    for (int i = 0; i < EBB__SQL_COUNT; i++) {
        char sql[4000];
        sqlite3_stmt *at = NULL;
        if (may_scan((ebb__sqlite_sql)i)) continue;
        (void)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", ebb__sqlite_text((ebb__sqlite_sql)i));
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &at, NULL), SQLITE_OK);
        while (sqlite3_step(at) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(at, 3);
            if (strncmp(step, "SCAN ", 5) == 0 && strncmp(step, "SCAN CONSTANT", 13) != 0)
                fail_msg("%s: %s", ebb__sqlite_text((ebb__sqlite_sql)i), step);
            /* a list may sort what its index has not in order; a claim may not */
            if (strstr(step, "TEMP B-TREE") != NULL && i != EBB__SQL_WORK_NEXT_OF && i != EBB__SQL_TIMER_OF)
                fail_msg("%s: %s", ebb__sqlite_text((ebb__sqlite_sql)i), step);
        }
        (void)sqlite3_finalize(at);
    }
    (void)sqlite3_close(db);
    scene_end(s);
}

/* ---- claims ------------------------------------------------------------------------------------------------------------ */

static int steps_of_claim(scene *s) {
    sqlite3 *db = connect_to(s, "a.db");
    sqlite3_stmt *at = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, ebb__sqlite_text(EBB__SQL_WORK_NEXT), -1, &at, NULL), SQLITE_OK);
    (void)sqlite3_bind_text(at, 1, "charge", -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(at, 2, 0);
    (void)sqlite3_bind_int(at, 3, 0);
    (void)sqlite3_bind_int(at, 4, 10);
    int n = 0;
    while (sqlite3_step(at) == SQLITE_ROW) n++;
    assert_int_equal(n, 10);
    const int steps = sqlite3_stmt_status(at, SQLITE_STMTSTATUS_VM_STEP, 0);
    (void)sqlite3_finalize(at);
    (void)sqlite3_close(db);
    return steps;
}

static uint64_t statements(scene *s) {
    ebb_provider_stats st;
    ebb__provider_sqlite.stats(s->gate.self, &st);
    return st.statements;
}

/* Claims a few turns and activities, and ends them. How many statements that was. */
static uint64_t claim_some(scene *s) {
    const uint64_t before = statements(s);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 10);
    assert_int_equal(f->items_n, 10);
    assert_int_equal(w->items_n, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(scene_status(s, scene_ack(s, &f->items[i], "turn")), EBB_OK);
        assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[i], NULL)), EBB_OK);
    }
    ebb__call_free(&f->call);
    ebb__call_free(&w->call);
    return statements(s) - before;
}

static void claims_are_flat(void **state) {
    scene *few = filled(*state, "100"), *many = filled(*state, rows());
    const int few_steps = steps_of_claim(few), many_steps = steps_of_claim(many);
    assert_int_equal(scene_join(few), EBB_OK); /* its lease may have lapsed while the other file was filled */
    assert_int_equal(scene_join(many), EBB_OK);
    (void)claim_some(few);
    (void)claim_some(many);
    const uint64_t few_statements = claim_some(few), many_statements = claim_some(many);
    print_message("10 claims of 100 and of %s rows: %d and %d steps, %d and %d statements\n", rows(),
                  few_steps, many_steps, (int)few_statements, (int)many_statements);
    assert_in_range(many_steps, few_steps - 2, few_steps + 2);
    assert_in_range(many_statements, few_statements - 6, few_statements + 6); /* the clock, now and then */
    scene_end(few);
    scene_end(many);
}

/* What no node can run stays, and nobody waits for it. */
static void what_nobody_runs_delays_nobody(void **state) {
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    scene_close(s);
    fill(s, "a.db", rows());
    (void)scene_number(s, "a.db", "UPDATE inst SET name = 'other' WHERE key > 3");
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    assert_int_equal(scene_start(s, "late"), EBB_OK);
    const uint64_t before = statements(s);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 4);
    assert_string_equal(f->items[3].id, "late");
    ebb__call_free(&f->call);
    assert_int_equal(scene_start(s, "later"), EBB_OK); /* counts what the fetch has cost */
    assert_true(statements(s) - before < 40);
    ebb_provider_instance_call *c = scene_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "i10";
    c = scene_ask(s, c);
    assert_true(c->row.unserved);
    ebb__call_free(&c->call);
    scene_end(s);
}

/* ---- the log ------------------------------------------------------------------------------------------------------------ */

static int64_t log_bytes(scene *s) {
    struct stat at;
    return stat(scene_path(s, "a.db-wal"), &at) == 0 ? (int64_t)at.st_size : 0;
}

enum { LOG_MOST = 300, FRAME = 4096 + 24 };

static void the_log_is_bounded_while_others_read(void **state) {
    enum { READS = 16 };
    ebb_future *reads[READS];
    ebb__sqlite_use_log(50, LOG_MOST);
    scene *s = filled(*state, "2000");
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < READS; k++) {
            ebb_provider_list_call *c = scene_call(s, EBB_PROVIDER_LIST);
            ebb_instance_filter *by = ebb__call_room(&c->call, sizeof *by);
            memset(by, 0, sizeof *by);
            by->most = 200;
            c->filter = by;
            reads[k] = scene_begin(s, c);
        }
        char id[16];
        (void)snprintf(id, sizeof id, "n%d", i);
        assert_int_equal(scene_start(s, id), EBB_OK);
        for (int k = 0; k < READS; k++) {
            ebb_provider_list_call *c = scene_end_call(s, reads[k]);
            assert_int_equal(c->call.status, EBB_OK);
            assert_int_equal(c->rows_n, 200);
            ebb__call_free(&c->call);
        }
        assert_in_range(log_bytes(s), 0, (LOG_MOST + 64) * FRAME);
    }
    ebb__sqlite_use_log(0, 0);
    scene_end(s);
}

static void another_program_that_reads_blocks_nobody(void **state) {
    ebb__sqlite_use_log(50, LOG_MOST);
    scene *s = filled(*state, "100");
    sqlite3 *db = connect_to(s, "a.db");
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM inst", NULL, NULL, NULL), SQLITE_OK);
    char id[16];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(id, sizeof id, "n%d", i);
        assert_int_equal(scene_start(s, id), EBB_OK);
    }
    assert_true(log_bytes(s) > LOG_MOST * FRAME);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof id, "m%d", i);
        assert_int_equal(scene_start(s, id), EBB_OK);
    }
    assert_in_range(log_bytes(s), 0, (LOG_MOST + 64) * FRAME);
    ebb__sqlite_use_log(0, 0);
    scene_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(no_statement_scans_a_table),
        IN_UNTRACED_WORLD(claims_are_flat),
        IN_UNTRACED_WORLD(what_nobody_runs_delays_nobody),
        IN_UNTRACED_WORLD(the_log_is_bounded_while_others_read),
        IN_UNTRACED_WORLD(another_program_that_reads_blocks_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
