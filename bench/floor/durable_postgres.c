/* PostgreSQL by one connection: sets of rows, one statement for each table, one round trip for each commit. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/durable.h"

/* $1 and $2: the first run and the last. */
#define RUNS " FROM generate_series($1::bigint, $2::bigint) g"
#define ZERO "'00000000-0000-0000-0000-000000000000'::uuid"

typedef enum sql { INST, INBOX, HIST, TAKE, WORK, DONE, FIRST, END, STATEMENTS } sql;

static const char *const texts[STATEMENTS] = {
    [INST] = "INSERT INTO ebb.inst(key, id, name, version, started, input) OVERRIDING SYSTEM VALUE"
             " SELECT 1000000000 + g, 'r' || g, 'sequence', 0, g, decode(repeat('00', 64), 'hex')" RUNS,
    [INBOX] = "INSERT INTO ebb.inbox SELECT 1000000000 + g, m, 1, 2, m, g, " ZERO ","
              " decode(repeat('00', 80), 'hex')" RUNS ", generate_series($3::bigint, $3::bigint) m",
    [HIST] = "INSERT INTO ebb.hist SELECT 1000000000 + g, 1, $3::bigint, g, " ZERO
             ", decode(repeat('00', $4::int), 'hex')" RUNS,
    [TAKE] = "DELETE FROM ebb.inbox WHERE inst BETWEEN 1000000000 + $1::bigint AND 1000000000 + $2::bigint"
             " AND seq = $3::bigint",
    [WORK] =
        "INSERT INTO ebb.work(inst, execution, act, queue, session, name, attempt, ord, visible, token, node,"
        " until, input) SELECT 1000000000 + g, 1, c, 'echo', '', 'echo', 1, g, g, gen_random_uuid(), 1, 1,"
        " decode(repeat('00', 64), 'hex')" RUNS ", generate_series($3::bigint, $4::bigint - 1) c",
    [DONE] = "DELETE FROM ebb.work WHERE inst BETWEEN 1000000000 + $1::bigint AND 1000000000 + $2::bigint"
             " AND execution = 1 AND act = $3::bigint",
    [FIRST] = "UPDATE ebb.inst SET version = 1, semantics = 1 WHERE key BETWEEN 1000000000 + $1::bigint"
              " AND 1000000000 + $2::bigint",
    [END] = "UPDATE ebb.inst SET state = 'Completed', result = decode(repeat('00', 64), 'hex')"
            " WHERE key BETWEEN 1000000000 + $1::bigint AND 1000000000 + $2::bigint",
};
static const int params[STATEMENTS] = {2, 3, 4, 3, 4, 3, 2, 2};

typedef struct raw {
    PGconn *pg;
    size_t body;
} raw;

static void check(PGresult *r) {
    const ExecStatusType st = PQresultStatus(r);
    if (st == PGRES_COMMAND_OK || st == PGRES_PIPELINE_SYNC || st == PGRES_TUPLES_OK) return;
    fprintf(stderr, "ebb-bench: postgres: %s\n", PQresultErrorMessage(r));
    bench_must(0);
}

static void send(raw *r, sql which, uint64_t lo, uint64_t hi, uint64_t n, uint64_t m) {
    char name[8], text[4][24];
    const char *values[4] = {text[0], text[1], text[2], text[3]};
    const uint64_t numbers[4] = {lo, hi - 1, n, m};
    (void)snprintf(name, sizeof name, "s%d", which);
    for (int i = 0; i < 4; i++)
        (void)snprintf(text[i], sizeof text[i], "%llu", (unsigned long long)numbers[i]);
    bench_must(PQsendQueryPrepared(r->pg, name, params[which], values, NULL, NULL, 0) == 1);
}

static void begin(void *self) {
    (void)self; /* what is before a sync is one transaction */
}

static void commit(void *self) {
    raw *r = self;
    bench_must(PQpipelineSync(r->pg) == 1);
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(r->pg);
        if (result == NULL) continue;
        check(result);
        synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        PQclear(result);
    }
}

static void start(void *self, uint64_t lo, uint64_t hi) {
    send(self, INST, lo, hi, 0, 0);
    send(self, INBOX, lo, hi, 0, 0);
}

static void turn(void *self, uint64_t lo, uint64_t hi, unsigned number, unsigned call, unsigned calls) {
    raw *r = self;
    send(r, HIST, lo, hi, number, r->body);
    if (number == 1) send(r, TAKE, lo, hi, 0, 0);
    if (calls > 0) send(r, WORK, lo, hi, call, call + calls);
    if (number == 1) send(r, FIRST, lo, hi, 0, 0);
}

static void done(void *self, uint64_t lo, uint64_t hi, unsigned call) {
    send(self, DONE, lo, hi, call, 0);
}

static void end(void *self, uint64_t lo, uint64_t hi) {
    send(self, END, lo, hi, 0, 0);
}

static const floor_store store = {begin, start, turn, done, end, commit};

double floor_durable_postgres(const char *conninfo, const durable_shape *shape) {
    raw r = {.pg = PQconnectdb(conninfo), .body = shape->body};
    char name[16];
    bench_must(PQstatus(r.pg) == CONNECTION_OK);
    for (int i = 0; i < STATEMENTS; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        PGresult *result = PQprepare(r.pg, name, texts[i], 0, NULL);
        check(result);
        PQclear(result);
    }
    bench_must(PQenterPipelineMode(r.pg) == 1);
    const double ns = floor_durable(&store, &r, shape);
    PQfinish(r.pg);
    return ns;
}
