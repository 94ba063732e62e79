/* Durable orchestrations: runs a second, how long one takes at half of that, and what it costs its store, beside bare statements
 * that write the same rows with as many calls in a commit. Times are those of a clock on the wall: a sync costs no CPU. A
 * server of PostgreSQL is started in a directory of its own and stopped with the process. */
#define _DEFAULT_SOURCE
#include "tests/durable/postgres_server.h"

#include "bench/bench.h"
#include "bench/durable.h"
#include "tests/support/durable_latency.h"

typedef enum kind { STORE_FULL, STORE_NORMAL, STORE_POSTGRES, KINDS } kind;

enum { AT_ONCE = 200, HALF_LOAD_SECONDS = 1, CANCELS = 100, REPLAYS = 3 };

static const unsigned runs_of[KINDS] = {800, 1600, 600};

static char dir[] = "/tmp/ebb-bench-XXXXXX";
static pg_server server;
static PGconn *observer;
static unsigned files; /* made so far, and runs on the server */

/* What the last round of a load has shown. */
static durable_outcome outcomes[KINDS][2];
static size_t bodies[KINDS][2];
static double p99s[KINDS][2][BENCH_ROUNDS + 1];
static unsigned p99s_n[KINDS][2];

/* ---- stores -------------------------------------------------------------------------------------------------------- */

static void clean_up(void) {
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    bench_must(system(command) == 0);
    if (server.guardian != 0) pg_server_end(&server);
}

static void set_up(void) {
    static bool is_set_up;
    if (is_set_up) return;
    is_set_up = true;
    bench_must(mkdtemp(dir) != NULL && atexit(clean_up) == 0);
}

static void set_up_server(void) {
    if (server.guardian != 0) return;
    bench_must(pg_server_begin(&server, true));
    observer = pg_open(&server);
    (void)pg_ask(observer, "SET client_min_messages = warning");
}

/* A store with nothing in it. Valid until the next. */
static const char *new_store(kind k) {
    static char url[400];
    set_up();
    if (k == STORE_POSTGRES) set_up_server();
    if (k == STORE_POSTGRES)
        (void)pg_ask(observer, "DROP SCHEMA IF EXISTS ebb CASCADE; DROP SCHEMA IF EXISTS ebb_v1 CASCADE");
    (void)snprintf(url, sizeof url, k == STORE_POSTGRES ? "%s" : "sqlite:%s/%u.db",
                   k == STORE_POSTGRES ? server.url : dir, files++);
    return url;
}

static ebb_durability durability_of(kind k) {
    return k == STORE_NORMAL ? EBB_DURABILITY_NORMAL : EBB_DURABILITY_FULL;
}

static size_t body_of(kind k, const char *url) {
    static const char sql[] = "SELECT round(avg(length(body))) FROM ";
    char text[128];
    (void)snprintf(text, sizeof text, "%s%s", sql, k == STORE_POSTGRES ? "ebb.hist" : "hist");
    if (k == STORE_POSTGRES) return (size_t)strtoull(pg_ask(observer, text), NULL, 10);
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    bench_must(sqlite3_open(url + 7, &db) == SQLITE_OK &&
               sqlite3_prepare_v2(db, text, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW);
    const size_t n = (size_t)sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    (void)sqlite3_close(db);
    return n;
}

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

/* ns a run. */
static double runs(kind k, bool parallel) {
    const durable_load load = {.url = new_store(k),
                               .durability = durability_of(k),
                               .parallel = parallel,
                               .runs = runs_of[k],
                               .at_once = AT_ONCE};
    durable_outcome *o = &outcomes[k][parallel];
    durable_run(&load, o);
    bodies[k][parallel] = body_of(k, load.url);
    return o->seconds * 1e9 / load.runs;
}

static const durable_outcome *outcome(kind k, bool parallel) {
    if (outcomes[k][parallel].seconds == 0) (void)runs(k, parallel);
    return &outcomes[k][parallel];
}

/* As many members in a commit, and turns in a run, as ours had. */
static double floor_runs(kind k, bool parallel) {
    const durable_outcome *o = outcome(k, parallel);
    const durable_shape shape = {.runs = runs_of[k],
                                 .members = (unsigned)(o->members + 0.5),
                                 .turns = (unsigned)(o->turns + 0.5),
                                 .calls = (unsigned)o->calls,
                                 .parallel = parallel,
                                 .body = bodies[k][parallel]};
    durable_outcome made;
    const durable_load none = {.url = new_store(k), .durability = durability_of(k), .at_once = 1};
    char conninfo[256];
    durable_run(&none, &made);
    if (k != STORE_POSTGRES) return floor_durable_sqlite(none.url + 7, none.durability, &shape);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s port=%u user=ebb dbname=postgres", server.dir,
                   server.port);
    return floor_durable_postgres(conninfo, &shape);
}

/* At half of what the last round could do. */
static double half_load(kind k, bool parallel) {
    const double rate = runs_of[k] / outcome(k, parallel)->seconds / 2, n = rate * HALF_LOAD_SECONDS;
    const durable_load load = {.url = new_store(k),
                               .durability = durability_of(k),
                               .parallel = parallel,
                               .runs = n < 20                ? 20
                                       : n < DURABLE_SAMPLES ? (unsigned)n
                                                             : DURABLE_SAMPLES,
                               .at_once = AT_ONCE,
                               .rate = rate};
    durable_outcome o;
    durable_run(&load, &o);
    const unsigned at = p99s_n[k][parallel]++ % (BENCH_ROUNDS + 1);
    p99s[k][parallel][at] = (double)o.latency[load.runs * 99 / 100];
    return (double)o.latency[load.runs / 2];
}

/* Those of the rounds that the row before had. */
static double half_load_p99(kind k, bool parallel) {
    static unsigned next;
    if (p99s_n[k][parallel] <= BENCH_ROUNDS) (void)half_load(k, parallel);
    return p99s[k][parallel][next++ % (BENCH_ROUNDS + 1)];
}

/* ---- one instance -------------------------------------------------------------------------------------------------- */

static double replay(kind k, bool cold) {
    return durable_replay(new_store(k), cold);
}

static double hot_bytes(void) {
    return durable_hot_bytes(new_store(STORE_NORMAL));
}

/* ---- cancels ------------------------------------------------------------------------------------------------------- */

static double bare_p99;

static double p99_of(latency *l) {
    bare_p99 = (double)latency_quantile(l->bare, l->n, 99, 100);
    const double ours = (double)latency_quantile(l->ours, l->n, 99, 100);
    latency_free(l);
    return ours;
}

static double cancel_latency(void) {
    latency *l = latency_new(new_store(STORE_FULL), CANCELS);
    latency_bare bare;
    latency_bare_begin(&bare, l);
    bench_must(latency_threads(l) == EBB_OK);
    latency_bare_end(&bare);
    return p99_of(l);
}

static double cancel_latency_bare(void) {
    return bare_p99;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

#define LOAD(store, KIND, name, parallel)                                                                    \
    static double store##_##name(void) {                                                                     \
        return runs(KIND, parallel);                                                                         \
    }                                                                                                        \
    static double store##_##name##_floor(void) {                                                             \
        return floor_runs(KIND, parallel);                                                                   \
    }                                                                                                        \
    static double store##_##name##_p50(void) {                                                               \
        return half_load(KIND, parallel);                                                                    \
    }                                                                                                        \
    static double store##_##name##_p99(void) {                                                               \
        return half_load_p99(KIND, parallel);                                                                \
    }                                                                                                        \
    static double store##_##name##_statements(void) {                                                        \
        return outcome(KIND, parallel)->statements;                                                          \
    }                                                                                                        \
    static double store##_##name##_members(void) {                                                           \
        return outcome(KIND, parallel)->members;                                                             \
    }
#define STORE(store, KIND)                                                                                   \
    LOAD(store, KIND, parallel_5, true)                                                                      \
    LOAD(store, KIND, sequence_10, false)                                                                    \
    static double store##_replay(void) {                                                                     \
        return replay(KIND, true);                                                                           \
    }                                                                                                        \
    static double store##_no_replay(void) {                                                                  \
        return replay(KIND, false);                                                                          \
    }
STORE(full, STORE_FULL)
STORE(normal, STORE_NORMAL)
STORE(postgres, STORE_POSTGRES)

/* A run takes at most twice as long as its rows; its statements are at most six a step. */
#define LOAD_ROWS(title, store, name)                                                                        \
    {"durable." title "." #name, "ns", store##_##name, store##_##name##_floor, 2, 1},                        \
        {"durable." title "." #name ".p50", "ns", store##_##name##_p50, NULL, 0, 0},                         \
        {"durable." title "." #name ".p99", "ns", store##_##name##_p99, NULL, 0, 0},                         \
        {"durable." title "." #name ".sql", "a step", store##_##name##_statements, NULL, 6, 0}, {            \
        "durable." title "." #name ".batch", "calls", store##_##name##_members, NULL, 0, 0                   \
    }
#define STORE_ROWS(title, store)                                                                             \
    LOAD_ROWS(title, store, parallel_5), LOAD_ROWS(title, store, sequence_10), {                             \
        "durable." title ".replay_1000", "ns", store##_replay, store##_no_replay, 0, 0                       \
    }

const bench_row bench_durable_rows[] = {
    STORE_ROWS("sqlite.full", full),
    STORE_ROWS("sqlite.normal", normal),
    STORE_ROWS("postgres", postgres),
    {"durable.hot_instance", "bytes", hot_bytes, NULL, 0, 0},
    {"durable.cancel_p99", "ns", cancel_latency, cancel_latency_bare, 5, 1},
};
const size_t bench_durable_count = sizeof bench_durable_rows / sizeof bench_durable_rows[0];
