/* The wall clock is moved by an hour, forward and back, under processes that run rounds of all kinds of orchestrations, and
 * under the server of PostgreSQL: every instance ends, once and as it should, and its history can have come about.
 * EBB_CLOCK_MOVES: how often. */
#define _DEFAULT_SOURCE
#include "tests/durable/postgres_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/syscall.h>

#include "tests/durable/shifted_clock.h"
#include "tests/support/durable_crowd.h"

static const int hours[] = {1, -1, 0, 1, 0, -1};
enum { HOUR_S = 3600, HOURS = sizeof hours / sizeof *hours };

static char dir[40];

static int moves(void) {
    const char *text = getenv("EBB_CLOCK_MOVES");
    return text != NULL ? atoi(text) : 3;
}

/* The difference from now on, in seconds. */
static int move(int i) {
    const int hour = hours[i % HOURS];
    shifted_clock_set((int64_t)hour * HOUR_S * (int64_t)EBB_SECOND);
    return hour * HOUR_S;
}

/* Of the machine: seconds since 1970. */
static int64_t real_now(void) {
    struct timespec t;
    (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    return t.tv_sec;
}

/* All rounds have ended well, in the process that waited for them. */
static void assert_ended(crowd *c, pid_t client) {
    int status = -1;
    atomic_store(&c->last, true);
    assert_int_equal(waitpid(client, &status, 0), client);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&c->ended), atomic_load(&c->rounds) * MIX_STARTED);
    print_message("%u rounds, %u instances as they should be\n", atomic_load(&c->rounds),
                  atomic_load(&c->ended));
}

/* ---- SQLite: looks at the wall clock when it opens a file ------------------------------------------------------- */

static int64_t stored_clock(const char *file) {
    sqlite3 *db;
    sqlite3_stmt *s = NULL;
    int64_t ns = -1;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_prepare_v2(db, "SELECT v FROM meta WHERE k = 'clock'", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        ns = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return ns / (int64_t)EBB_SECOND;
}

static void an_hour_harms_nothing_on_sqlite(void **state) {
    char file[64], url[80];
    (void)state;
    (void)snprintf(file, sizeof file, "%s/a.db", dir);
    (void)snprintf(url, sizeof url, "sqlite:%s", file);
    crowd *c = crowd_new(url);
    uint64_t seed = crowd_seed();
    pid_t pid = crowd_fork(c, 2, true);
    int64_t last = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < moves(); i++) {
        crowd_pause((200 + crowd_random(&seed, 200)) * EBB_MS);
        (void)move(i); /* under the running process, and before the next */
        crowd_pause((100 + crowd_random(&seed, 100)) * EBB_MS);
        assert_true(crowd_kill(pid));
        const int64_t now = stored_clock(file);
        assert_true(now >= last);
        last = now;
        pid = crowd_fork(c, 2, true);
    }
    assert_ended(c, pid);
    assert_true(stored_clock(file) - real_now() > HOUR_S / 2); /* it did see the hour, and never goes back */
    crowd_free(c);
}

/* ---- PostgreSQL: its time is the server's ------------------------------------------------------------------------ */

static pg_server server;

static int64_t server_now(PGconn *o) {
    return strtoll(pg_ask(o, "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"), NULL, 10);
}

static void an_hour_harms_nothing_on_postgres(void **state) {
    enum { WORKERS = 2 };
    pid_t worker[WORKERS];
    (void)state;
    crowd *c = crowd_new(server.url);
    PGconn *o = pg_open(&server);
    uint64_t seed = crowd_seed();
    for (int i = 0; i < WORKERS; i++) worker[i] = crowd_fork(c, 1, false);
    const pid_t client = crowd_fork(c, 0, true);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < moves(); i++) {
        crowd_pause((300 + crowd_random(&seed, 400)) * EBB_MS);
        const int by = move(i);
        const int64_t moved = server_now(o) - real_now() - by;
        assert_true(moved > -HOUR_S / 2 && moved < HOUR_S / 2);
    }
    assert_ended(c, client);
    for (int i = 0; i < WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(worker[i], &status, 0), worker[i]);
        assert_int_equal(status, 0);
    }
    PQfinish(o);
    crowd_free(c);
}

/* ---- all ------------------------------------------------------------------------------------------------------------ */

/* Where a server that runs as another user can read it. */
static bool make_files(void) {
    char command[1200], library[64], clock[64];
    (void)snprintf(dir, sizeof dir, "/tmp/ebb-clock-XXXXXX");
    if (mkdtemp(dir) == NULL || chmod(dir, 0755) != 0) return false;
    (void)snprintf(library, sizeof library, "%s/clock.so", dir);
    (void)snprintf(clock, sizeof clock, "%s/shift", dir);
    (void)snprintf(command, sizeof command, "cp '%s' %s && chmod 755 %s", EBB_SHIFTED_CLOCK_SO, library,
                   library);
    if (system(command) != 0 || !shifted_clock_make(clock)) return false;
    return setenv("EBB_PG_PRELOAD", library, 1) == 0 && setenv(SHIFTED_CLOCK_FILE, clock, 1) == 0;
}

static int set_up(void **state) {
    (void)state;
    alarm(250);
    return make_files() && pg_server_begin(&server, false) ? 0 : -1;
}

static int tear_down(void **state) {
    char command[64];
    (void)state;
    pg_server_end(&server);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_harms_nothing_on_sqlite),
        cmocka_unit_test(an_hour_harms_nothing_on_postgres),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
