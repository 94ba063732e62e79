/* PostgreSQL behind PgBouncer in transaction mode: each batch may come to another session of the server. Skipped where there is
 * no pgbouncer: at EBB_PGBOUNCER, where scripts/deps puts it, or where its package does. */
#define _GNU_SOURCE
#include "tests/durable/postgres_world.h"

#include <sys/prctl.h>

enum { INSTANCES = 12 };

static uint16_t pool_port;

static const char *pgbouncer(void) {
    static const char *const places[] = {"/usr/local/lib/ebb-tests/pgbouncer", "/usr/sbin/pgbouncer"};
    const char *given = getenv("EBB_PGBOUNCER");
    if (given != NULL) return given;
    for (size_t i = 0; i < 2; i++)
        if (access(places[i], X_OK) == 0) return places[i];
    return NULL;
}

static void write_settings(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(
        f,
        "[databases]\npostgres = host=%s port=%u dbname=postgres user=ebb\n[pgbouncer]\nlisten_port = %u\n"
        "unix_socket_dir = %s\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
        server.dir, server.port, pool_port, server.dir);
    assert_int_equal(fclose(f), 0);
}

static pid_t pooler_begin(void) {
    char path[128], conninfo[256];
    snprintf(path, sizeof path, "%s/pooler.ini", server.dir);
    pool_port = pg_free_port();
    write_settings(path);
    const pid_t pid = fork();
    if (pid == 0) {
        pg_drop_root();
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails */
        snprintf(conninfo, sizeof conninfo, "%s/log", server.dir);
        pg_silence(conninfo);
        execl(pgbouncer(), "pgbouncer", path, (char *)NULL);
        _exit(127);
    }
    snprintf(conninfo, sizeof conninfo, "host=%s port=%u user=ebb dbname=postgres", server.dir, pool_port);
    for (int i = 0; i < 600 && PQping(conninfo) != PQPING_OK; i++)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return pid;
}

static ebb_store *open_pooled(ebb_cx *cx) {
    ebb_value v;
    char url[256];
    snprintf(url, sizeof url, "postgres://ebb@:%u/postgres?host=%s", pool_port, server.dir);
    const ebb_store_opts opts = {.url = url, .listen_url = server.url};
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &opts), &v);
    if (st != EBB_OK) print_error("open: %s\n", ebb_durable_error());
    assert_int_equal(st, EBB_OK);
    wait_ready(cx, ebb_store_of(&v));
    return ebb_store_of(&v);
}

typedef struct part {
    ebb_store *store;
    ebb_provider_node node;
    uint32_t ended;
} part;

/* Ends what it gets, until all have ended. */
static ebb_status end_all(ebb_cx *cx, void *arg) {
    part *p = arg;
    while (strcmp(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE state = 'Completed'"), "12") != 0) {
        ebb_provider_fetch_turns_call *f = fetch(cx, p->store, p->node);
        for (size_t i = 0; i < f->items_n; i++, p->ended++) {
            ebb_provider_ack_turn_call *a = ack_call(p->store, p->node, &f->items[i]);
            a->ends = EBB_INSTANCE_COMPLETED;
            end_call(insist(cx, a), EBB_OK);
        }
        end_call(f, EBB_OK);
    }
    return EBB_OK;
}

static ebb_status pooled_main(ebb_cx *cx, void *arg) {
    part p[2] = {{.store = open_pooled(cx)}, {.store = open_pooled(cx)}};
    ebb_future *f[2];
    char id[24];
    (void)arg;
    for (int i = 0; i < 2; i++) p[i].node = join(cx, p[i].store, 600 * EBB_SECOND);
    for (int i = 0; i < INSTANCES; i++) {
        snprintf(id, sizeof id, "pooled-%d", i);
        (void)start(cx, p[i % 2].store, id);
    }
    for (int i = 0; i < 2; i++) f[i] = ebb_fiber_go(cx, ebb_cx_region(cx), end_all, &p[i]);
    for (int i = 0; i < 2; i++) assert_int_equal(ebb_await(cx, f[i], NULL), EBB_OK);
    assert_int_equal(p[0].ended + p[1].ended, INSTANCES);
    wipe();
    for (int i = 0; i < 2; i++) p[i].node = join(cx, p[i].store, 600 * EBB_SECOND);
    run_once(cx, p[0].store, p[0].node, "pooled");
    for (int i = 0; i < 2; i++) leave(cx, p[i].store, p[i].node);
    for (int i = 0; i < 2; i++) close_store(cx, p[i].store);
    return EBB_OK;
}

/* What a batch needs it sets for itself: the sessions are as they were, and commits are synchronous all the same. */
static void batches_come_to_sessions_of_a_pooler(void **state) {
    char conninfo[256];
    if (pgbouncer() == NULL) skip();
    (void)pg_ask(observer,
                 "ALTER ROLE ebb SET synchronous_commit = off;"
                 "CREATE TABLE seen(v text);"
                 "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen"
                 " VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$;"
                 "CREATE CONSTRAINT TRIGGER see AFTER INSERT ON ebb.hist DEFERRABLE INITIALLY DEFERRED"
                 " FOR EACH ROW EXECUTE FUNCTION see()");
    const pid_t pooler = pooler_begin();
    assert_int_equal(run_fiber(*state, pooled_main, NULL), EBB_OK);
    check_ended("pooled");
    assert_string_equal(pg_ask(observer, "SELECT string_agg(DISTINCT v, ',') || count(*) FROM seen"), "on14");
    snprintf(conninfo, sizeof conninfo, "host=%s port=%u user=ebb dbname=postgres", server.dir, pool_port);
    PGconn *c = PQconnectdb(conninfo);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(pg_ask(c, "SHOW synchronous_commit"), "off");
        assert_string_equal(pg_ask(c, "SHOW lock_timeout"), "0");
        assert_string_equal(pg_ask(c, "SHOW enable_seqscan"), "on");
    }
    PQfinish(c);
    assert_int_equal(kill(pooler, SIGTERM), 0);
    assert_int_equal(waitpid(pooler, NULL, 0), pooler);
    (void)pg_ask(observer, "ALTER ROLE ebb RESET synchronous_commit; DROP TRIGGER see ON ebb.hist; DROP "
                           "FUNCTION see; DROP TABLE seen");
    wipe();
}

int main(void) {
    const struct CMUnitTest tests[] = {ON_A_LOOP(batches_come_to_sessions_of_a_pooler)};
    return RUN_ON_POSTGRES(tests);
}
