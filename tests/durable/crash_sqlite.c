/* A process with three loops on one SQLite file, killed at random and begun again. Every instance ends once and as it
 * should, and its history can have come about. EBB_CRASH_SECONDS: how long (a soak has ten minutes). */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/durable_crowd.h"

static void play(void) {
    char dir[] = "/tmp/ebb-crash-XXXXXX", url[64], command[64];
    int status = 0;
    unsigned kills = 0;
    uint64_t seed = crowd_seed();
    assert_non_null(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "sqlite:%s/a.db", dir);
    crowd *c = crowd_new(url);
    print_message("seed %llu\n", (unsigned long long)seed);
    const uint64_t end = crowd_now() + crowd_span();
    pid_t pid = crowd_fork(c, 3, true);
    while (crowd_now() < end) {
        crowd_pause((50 + crowd_random(&seed, 900)) * EBB_MS);
        assert_true(crowd_kill(pid));
        kills++;
        pid = crowd_fork(c, 3, true);
    }
    atomic_store(&c->last, true);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    print_message("%u kills, %u rounds, %u instances as they should be\n", kills, atomic_load(&c->rounds),
                  atomic_load(&c->ended));
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&c->ended), atomic_load(&c->rounds) * MIX_STARTED);
    assert_true(kills > 0);
    crowd_free(c);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static void instances_outlive_processes_that_are_killed(void **state) {
    (void)state;
    alarm((unsigned)(crowd_span() / EBB_SECOND) + 200);
    play();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(instances_outlive_processes_that_are_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
