/* Three worker processes on one PostgreSQL, killed at random and begun again, and a server that crashes beside. Every
 * instance ends once and as it should, and its history can have come about. EBB_CRASH_SECONDS: how long (a soak has ten
 * minutes). */
#define _DEFAULT_SOURCE
#include "tests/durable/postgres_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/durable_crowd.h"

enum { WORKERS = 3 };

static pg_server server;

/* Nothing of what has ended is left in a queue. A message that came with its end may be. */
static void check_rows(void) {
    PGconn *o = pg_open(&server);
    const char *left =
        pg_ask(o, "SELECT string_agg(x, '; ') FROM ("
                  " SELECT 'work ' || i.id || ' ' || i.state || ' ' || w.act || ' ' || w.name x"
                  "  FROM ebb.work w LEFT JOIN ebb.inst i ON i.key = w.inst"
                  " UNION ALL SELECT 'timer ' || i.id || ' ' || i.state || ' ' || t.step"
                  "  FROM ebb.timer t LEFT JOIN ebb.inst i ON i.key = t.inst"
                  " ) l");
    assert_string_equal(left, "");
    PQfinish(o);
}

static void play(void) {
    int status = 0;
    unsigned kills = 0, crashes = 0;
    pid_t worker[WORKERS];
    uint64_t seed = crowd_seed();
    crowd *c = crowd_new(server.url);
    print_message("seed %llu\n", (unsigned long long)seed);
    const uint64_t end = crowd_now() + crowd_span();
    for (int i = 0; i < WORKERS; i++) worker[i] = crowd_fork(c, 1, false);
    const pid_t client = crowd_fork(c, 0, true);
    while (crowd_now() < end) {
        const uint64_t victim = kills == 0 ? 0 : crowd_random(&seed, WORKERS + 1);
        crowd_pause((50 + crowd_random(&seed, 700)) * EBB_MS);
        if (victim == WORKERS) {
            assert_true(pg_server_crash(&server));
            assert_true(pg_server_up(&server));
            crashes++;
        } else {
            assert_true(crowd_kill(worker[victim]));
            worker[victim] = crowd_fork(c, 1, false);
            kills++;
        }
    }
    atomic_store(&c->last, true);
    assert_int_equal(waitpid(client, &status, 0), client);
    print_message("%u kills, %u crashes of the server, %u rounds, %u instances as they should be\n", kills,
                  crashes, atomic_load(&c->rounds), atomic_load(&c->ended));
    assert_int_equal(status, 0);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(waitpid(worker[i], &status, 0), worker[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&c->ended), atomic_load(&c->rounds) * MIX_STARTED);
    assert_true(kills > 0);
    check_rows();
    crowd_free(c);
}

static void instances_outlive_workers_and_servers_that_are_killed(void **state) {
    (void)state;
    alarm((unsigned)(crowd_span() / EBB_SECOND) + 200);
    play();
}

static int server_up(void **state) {
    (void)state;
    return pg_server_begin(&server, true) ? 0 : -1;
}

static int server_down(void **state) {
    (void)state;
    pg_server_end(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_outlive_workers_and_servers_that_are_killed)};
    return cmocka_run_group_tests(tests, server_up, server_down);
}
