/* Versions of the schema of SQLite's provider: libraries of two versions take turns on one file, as while they are rolled
 * out, with processes that are killed. A file that needs a newer library is refused by name. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "durable/sqlite.h"
#include "tests/support/durable_crowd.h"

/* What a release may add while the one before runs beside it: columns to every table, tables, indices. */
#define EXPAND                                                                                               \
    "ALTER TABLE inst ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                         \
    "ALTER TABLE data ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                         \
    "ALTER TABLE hist ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                         \
    "ALTER TABLE inbox ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                        \
    "ALTER TABLE work ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                         \
    "ALTER TABLE timer ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                        \
    "ALTER TABLE kv ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                           \
    "ALTER TABLE dedup ADD COLUMN zone TEXT NOT NULL DEFAULT 'here';"                                        \
    "CREATE TABLE zones(name TEXT PRIMARY KEY) WITHOUT ROWID;"                                               \
    "CREATE INDEX inst_zone ON inst(zone);"
/* What the release after that may do: nobody reads as the first one did any more. */
#define CONTRACT "UPDATE meta SET v = 3 WHERE k = 'min_reader'; DROP TABLE zones;"

static const char *const later[] = {EXPAND, CONTRACT};

/* The library of processes that begin now. */
static void be_version(int version) {
    ebb__sqlite_use_schema(later, version - EBB__SQLITE_SCHEMA);
}

typedef struct files {
    char dir[40], path[64], url[80];
} files;

static files *files_new(void) {
    static files f;
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/ebb-schema-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    (void)snprintf(f.path, sizeof f.path, "%s/a.db", f.dir);
    (void)snprintf(f.url, sizeof f.url, "sqlite:%s", f.path);
    return &f;
}

static void files_free(const files *f) {
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
}

/* -1: it has no such thing. */
static int number(const files *f, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    int n = -1;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* the writer does that */
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int(s, 0);
    (void)sqlite3_finalize(s);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

static int schema_of(const files *f) {
    return number(f, "SELECT v FROM meta WHERE k = 'schema'");
}

/* ---- opens ------------------------------------------------------------------------------------------------------ */

typedef struct attempt {
    ebb_store_opts opts;
    char text[512];
} attempt;

static ebb_status try_open(ebb_cx *cx, void *arg) {
    attempt *a = arg;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &a->opts), NULL);
    if (st != EBB_OK) (void)snprintf(a->text, sizeof a->text, "%s", ebb_durable_error());
    return st;
}

static ebb_status opens(attempt *a) {
    ebb_loop *loop;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    assert_int_equal(ebb_loop_new(&opts, try_open, a, &loop), EBB_OK);
    return ebb_loop_join(loop);
}

static void refuses(const files *f, bool no_create, const char *why) {
    attempt a = {.opts = {.url = f->url, .no_create = no_create}};
    assert_int_equal(opens(&a), EBB_ERR_SCHEMA);
    if (strstr(a.text, why) == NULL) fail_msg("%s", a.text);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Rounds of all kinds of orchestrations, whose processes are killed and begun again with the other version. */
static void versions_take_turns_on_instances(void **state) {
    enum { GENERATIONS = 6 };
    (void)state;
    const files *f = files_new();
    crowd *c = crowd_new(f->url);
    uint64_t seed = crowd_seed();
    int status = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    pid_t pid = 0;
    for (int i = 0; i < GENERATIONS; i++) {
        be_version(1 + i % 2);
        pid = crowd_fork(c, 2, true);
        if (i == GENERATIONS - 1) break;
        while (i == 0 && schema_of(f) != 1) crowd_pause(5 * EBB_MS);
        while (i == 1 && schema_of(f) != 2) crowd_pause(5 * EBB_MS);
        crowd_pause((100 + crowd_random(&seed, 300)) * EBB_MS);
        assert_true(crowd_kill(pid));
        assert_int_equal(schema_of(f), i == 0 ? 1 : 2);
    }
    atomic_store(&c->last, true);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&c->ended), atomic_load(&c->rounds) * MIX_STARTED);
    print_message("%u rounds, %u instances as they should be\n", atomic_load(&c->rounds),
                  atomic_load(&c->ended));
    assert_int_equal(number(f, "SELECT v FROM meta WHERE k = 'min_reader'"), 1);
    assert_true(number(f, "SELECT count(*) FROM inst WHERE zone = 'here'") >= MIX_STARTED);
    crowd_free(c);
    files_free(f);
    be_version(1);
}

static void a_contracted_schema_is_refused_by_name(void **state) {
    (void)state;
    const files *f = files_new();
    attempt a = {.opts = {.url = f->url}};
    be_version(2);
    assert_int_equal(opens(&a), EBB_OK);
    be_version(3);
    assert_int_equal(opens(&a), EBB_OK);
    assert_int_equal(schema_of(f), 3);
    be_version(1);
    refuses(f, false, "a.db has schema 3, which needs a reader of schema 3; this one reads 1");
    be_version(2);
    refuses(f, true, "a.db has schema 3, which needs a reader of schema 3; this one reads 2");
    be_version(3);
    assert_int_equal(opens(&a), EBB_OK);
    files_free(f);
    be_version(1);
}

static void a_tool_upgrades_nothing(void **state) {
    (void)state;
    const files *f = files_new();
    attempt a = {.opts = {.url = f->url}};
    assert_int_equal(opens(&a), EBB_OK);
    be_version(2);
    refuses(f, true, "a.db has schema 1, and may not be upgraded to 2");
    assert_int_equal(schema_of(f), 1);
    files_free(f);
    be_version(1);
}

/* It is one transaction with the number of the version. */
static void an_upgrade_that_fails_changes_nothing(void **state) {
    static const char *const bad[] = {EXPAND "CREATE TABLE inst(key);"};
    (void)state;
    const files *f = files_new();
    attempt a = {.opts = {.url = f->url}};
    assert_int_equal(opens(&a), EBB_OK);
    ebb__sqlite_use_schema(bad, 1);
    assert_int_equal(opens(&a), EBB_ERR_STORE);
    if (strstr(a.text, "table inst already exists") == NULL) fail_msg("%s", a.text);
    be_version(1);
    assert_int_equal(schema_of(f), 1);
    assert_int_equal(number(f, "SELECT count(zone) FROM inst"), -1);
    assert_int_equal(opens(&a), EBB_OK);
    be_version(2);
    assert_int_equal(opens(&a), EBB_OK);
    assert_int_equal(schema_of(f), 2);
    files_free(f);
    be_version(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_take_turns_on_instances),
        cmocka_unit_test(a_contracted_schema_is_refused_by_name),
        cmocka_unit_test(a_tool_upgrades_nothing),
        cmocka_unit_test(an_upgrade_that_fails_changes_nothing),
    };
    alarm(250);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
