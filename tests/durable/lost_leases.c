/* Workers that are stopped past their lease, told to end, or cut off from their database: real processes and servers. What
 * another has taken over meanwhile is recorded once, and nothing is cancelled before its lease has really lapsed. */
#define _DEFAULT_SOURCE
#include "tests/durable/postgres_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/durable_stage.h"

/* Within this a worker's work has begun elsewhere: milliseconds on a quiet machine. Its lease is six times as long. */
#define HANDED_WITHIN (10 * EBB_SECOND)

static pg_server server;

static stage *stage_on_postgres(void) {
    PGconn *o = pg_open(&server);
    pg_ask(o, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS ebb CASCADE;"
              " DROP SCHEMA IF EXISTS ebb_v1 CASCADE");
    PQfinish(o);
    stage *s = stage_new(server.url);
    assert_non_null(s);
    return s;
}

static uint64_t boot_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

/* When the lease of a worker lapses that is joined, or joins soon. */
static uint64_t lapses_at(stage_actor *a) {
    while (atomic_load(&a->until) == 0) crowd_pause(5 * EBB_MS);
    return atomic_load(&a->until);
}

/* It was done once, by this process, and called once. */
static void assert_bought(stage *s, pid_t client, const char *by) {
    assert_true(stage_ended_well(client));
    assert_string_equal(s->output, by);
    assert_int_equal(atomic_load(&s->completions), 1);
    assert_int_equal(atomic_load(&s->ordered), 1);
}

static void end_stage(stage *s, pid_t first, pid_t second) {
    atomic_store(&s->over, true);
    assert_true(stage_ended_well(first));
    if (second != 0) assert_true(stage_ended_well(second));
    stage_free(s);
}

/* ---- stopped -------------------------------------------------------------------------------------------------- */

/* The activity itself stops the process, so its ack is the first thing that is done afterwards. */
static void a_late_ack_is_refused(void **state) {
    (void)state;
    stage *s = stage_on_postgres();
    stage_actor *a = &s->actors[0], *b = &s->actors[1];
    atomic_store(&a->stops, true);
    atomic_store(&b->go, true);
    const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
    assert_true(stage_has_stopped(first));
    const pid_t second = stage_actor_fork(b);
    assert_bought(s, client, "b");
    assert_int_equal(kill(first, SIGCONT), 0);
    stage_until(&a->late_acks, 1);
    assert_int_equal(atomic_load(&a->returned), 1);
    assert_int_equal(atomic_load(&a->cancelled), 0);
    end_stage(s, first, second);
}

/* Its process is stopped anywhere, and hears of the loss when it goes on. */
static void an_activity_whose_lease_was_lost_is_cancelled(void **state) {
    (void)state;
    stage *s = stage_on_postgres();
    stage_actor *a = &s->actors[0], *b = &s->actors[1];
    atomic_store(&b->go, true);
    const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
    stage_until(&a->begun, 1);
    assert_int_equal(kill(first, SIGSTOP), 0);
    assert_true(stage_has_stopped(first));
    const pid_t second = stage_actor_fork(b);
    assert_bought(s, client, "b");
    assert_int_equal(kill(first, SIGCONT), 0);
    stage_until(&a->lease_lost, 1);
    stage_until(&a->cancelled, 1);
    assert_int_equal(atomic_load(&a->begun), 1);
    end_stage(s, first, second);
}

/* The file is this process's alone, so nobody takes the work over: it runs again. */
static void a_late_ack_is_refused_on_sqlite_too(void **state) {
    (void)state;
    char dir[] = "/tmp/ebb-leases-XXXXXX", url[64], command[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "sqlite:%s/a.db", dir);
    stage *s = stage_new(url);
    stage_actor *a = &s->actors[0];
    atomic_store(&a->stops, true);
    atomic_store(&a->go, true);
    const pid_t first = fork();
    if (first == 0) { /* worker and client in one process */
        ebb_loop *loops[2];
        const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
        ebb_status st = ebb_loop_new(&opts, stage_work, a, &loops[0]);
        if (st == EBB_OK) st = ebb_loop_new(&opts, stage_buy, s, &loops[1]);
        if (st == EBB_OK) st = ebb_loop_join(loops[1]);
        if (st == EBB_OK) stage_until(&a->late_acks, 1);
        atomic_store(&s->over, true);
        if (st == EBB_OK) st = ebb_loop_join(loops[0]);
        _exit(st == EBB_OK ? 0 : 1);
    }
    assert_true(stage_has_stopped(first));
    crowd_pause(a->lease + EBB_SECOND / 2);
    assert_int_equal(kill(first, SIGCONT), 0);
    assert_bought(s, first, "a");
    assert_int_equal(atomic_load(&a->begun), 2);
    stage_free(s);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- told to end ------------------------------------------------------------------------------------------------ */

/* Returns ns until another process has begun with it. */
static uint64_t hand_over(bool at_the_close) {
    stage *s = stage_on_postgres();
    stage_actor *a = &s->actors[0], *b = &s->actors[1];
    a->serves = true;
    a->handover = at_the_close;
    a->lease = b->lease = 6 * HANDED_WITHIN;
    atomic_store(&b->go, true);
    const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
    stage_until(&a->begun, 1);
    const pid_t second = stage_actor_fork(b);
    (void)lapses_at(b);
    const uint64_t told = crowd_now();
    assert_int_equal(kill(first, SIGTERM), 0);
    assert_bought(s, client, "b");
    const uint64_t from = at_the_close ? told : atomic_load(&a->cancelled_at),
                   span = atomic_load(&b->begun_at) - from;
    print_message("begun elsewhere %.1f ms after %s\n", (double)span / EBB_MS,
                  at_the_close ? "SIGTERM" : "its cancel");
    stage_until(&a->cancelled, 1);
    assert_int_equal(atomic_load(&a->cancelled), 1);
    assert_true(atomic_load(&b->begun_at) >= from);
    assert_true(span < HANDED_WITHIN);
    end_stage(s, first, second);
    return span;
}

/* Others hear of it and need not look, which they do a second after they have begun, and that was a moment ago. Once is
 * enough: the machine may be busy. */
static void hand_over_at_once(bool at_the_close) {
    for (int i = 0; i < 8; i++)
        if (hand_over(at_the_close) < EBB_SECOND / 4) return;
    fail_msg("nobody hears of work that is given back");
}

static void sigterm_hands_work_over_after_its_cancel(void **state) {
    (void)state;
    hand_over_at_once(false);
}

static void sigterm_hands_work_over_at_the_close(void **state) {
    (void)state;
    hand_over_at_once(true);
}

/* ---- a database that is away ------------------------------------------------------------------------------------ */

/* Away until a renewal has failed, which a lease survives twice. False: the machine was too slow for that to be sure. */
static bool be_away_shortly(stage_actor *a) {
    const uint64_t until = lapses_at(a), third = a->lease / 3;
    assert_true(pg_server_crash(&server));
    while (boot_now() < until - a->lease + third + EBB_SECOND / 4) crowd_pause(20 * EBB_MS);
    const bool renewed = atomic_load(&a->until) != until; /* in the moment of the crash */
    assert_true(pg_server_up(&server));
    return !renewed && boot_now() < until - third;
}

static void be_away_for_less_than_a_lease(uint64_t least) {
    for (int i = 1; i <= 5; i++) {
        stage *s = stage_on_postgres();
        stage_actor *a = &s->actors[0];
        a->lease = (uint64_t)i * least;
        const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
        stage_until(&a->begun, 1);
        const bool sure = be_away_shortly(a);
        const uint64_t before = atomic_load(&a->until);
        while (sure && atomic_load(&a->until) == before) crowd_pause(10 * EBB_MS);
        atomic_store(&a->go, true);
        assert_true(stage_ended_well(client));
        if (sure) {
            assert_int_equal(atomic_load(&a->begun), 1);
            assert_int_equal(atomic_load(&a->cancelled), 0);
            assert_int_equal(atomic_load(&a->lease_lost), 0);
            assert_int_equal(atomic_load(&s->completions), 1);
        }
        end_stage(s, first, 0);
        if (sure) return;
    }
    fail_msg("the server takes longer to start than a third of a lease");
}

static void a_database_away_for_less_than_a_lease_cancels_nothing(void **state) {
    (void)state;
    be_away_for_less_than_a_lease(9 * EBB_SECOND / 2);
}

static void a_database_away_for_ten_seconds_cancels_nothing_with_a_lease_of_thirty(void **state) {
    (void)state;
    be_away_for_less_than_a_lease(30 * EBB_SECOND);
}

static void a_database_away_for_longer_cancels(void **state) {
    (void)state;
    stage *s = stage_on_postgres();
    stage_actor *a = &s->actors[0];
    const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
    stage_until(&a->begun, 1);
    assert_true(pg_server_crash(&server));
    const uint64_t until = lapses_at(a);
    stage_until(&a->cancelled, 1);
    assert_true(boot_now() >= until);
    assert_true(pg_server_up(&server));
    atomic_store(&a->go, true);
    assert_bought(s, client, "a");
    assert_int_equal(atomic_load(&a->begun), 2);
    assert_int_equal(atomic_load(&a->cancelled), 1);
    end_stage(s, first, 0);
}

/* Its connections stay, and a renewal waits for an answer: the lease lapses all the same. */
static void a_database_that_hangs_for_longer_cancels(void **state) {
    (void)state;
    stage *s = stage_on_postgres();
    stage_actor *a = &s->actors[0];
    const pid_t first = stage_actor_fork(a), client = stage_fork(stage_buy, s, false);
    stage_until(&a->begun, 1);
    assert_true(pg_server_freeze(&server, true));
    const uint64_t until = lapses_at(a);
    stage_until(&a->cancelled, 1);
    const uint64_t now = boot_now();
    assert_true(pg_server_freeze(&server, false));
    print_message("cancelled %.0f ms after the lease has lapsed\n", ((double)now - (double)until) / EBB_MS);
    assert_true(now >= until);
    assert_true(now < until + HANDED_WITHIN);
    atomic_store(&a->go, true);
    assert_bought(s, client, "a");
    assert_int_equal(atomic_load(&a->begun), 2);
    end_stage(s, first, 0);
}

static int server_up(void **state) {
    (void)state;
    alarm(250);
    return pg_server_begin(&server, false) ? 0 : -1;
}

static int server_down(void **state) {
    (void)state;
    pg_server_end(&server);
    return 0;
}

/* EBB_LEASES_ALL: those that take longer, too. */
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_ack_is_refused),
        cmocka_unit_test(sigterm_hands_work_over_at_the_close),
        cmocka_unit_test(a_database_away_for_less_than_a_lease_cancels_nothing),
        cmocka_unit_test(a_database_that_hangs_for_longer_cancels),
    };
    const struct CMUnitTest longer[] = {
        cmocka_unit_test(an_activity_whose_lease_was_lost_is_cancelled),
        cmocka_unit_test(a_late_ack_is_refused_on_sqlite_too),
        cmocka_unit_test(sigterm_hands_work_over_after_its_cancel),
        cmocka_unit_test(a_database_away_for_longer_cancels),
        cmocka_unit_test(a_database_away_for_ten_seconds_cancels_nothing_with_a_lease_of_thirty),
    };
    cmocka_set_test_filter(getenv("EBB_TEST_CASE"));
    const int failed = cmocka_run_group_tests(tests, server_up, server_down);
    if (failed != 0 || getenv("EBB_LEASES_ALL") == NULL) return failed;
    return cmocka_run_group_tests(longer, server_up, server_down);
}
