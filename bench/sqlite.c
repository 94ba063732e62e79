/* Turns of hot instances on SQLite: the end of an activity, a turn, the next activity, in one commit. Beside it raw SQLite
 * with the same bytes, the same statements and the same batch, on this thread, without checks, fences or answers. Times are
 * those of a clock on the wall, since a sync costs no CPU time. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "durable/sqlite.h"
#include "durable/store.h"

enum { BATCH = 100, ALONE = 200, BATCHES = 20, BODY = 160, INPUT = 64 };

static uint64_t clock_ns(clockid_t id) {
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

typedef struct instance {
    ebb_provider_token token, work;
    uint64_t key, turn, activity;
} instance;

typedef struct target {
    char path[64];
    ebb_runtime *rt;
    ebb__call_gate gate;
    ebb_provider_host host;
    ebb_provider_node node;
    sem_t woken;
    uint64_t ids;
    instance instances[BATCH];
} target;

static uint64_t host_wall(void *ctx) {
    (void)ctx;
    return clock_ns(CLOCK_REALTIME);
}

static uint64_t host_boot(void *ctx) {
    (void)ctx;
    return clock_ns(CLOCK_MONOTONIC);
}

static void host_random(void *ctx, void *into, size_t n) {
    const uint64_t words[2] = {++((target *)ctx)->ids, 1};
    bench_must(n == sizeof words);
    memcpy(into, words, n);
}

static void host_hint(void *ctx, const ebb_provider_hint *h) {
    (void)ctx;
    (void)h;
}

static void on_wake(void *ctx) {
    (void)sem_post(ctx);
}

static void *call(target *t, ebb_provider_op op) {
    void *c = ebb__call_new(&t->gate, op);
    bench_must(c != NULL);
    return c;
}

static ebb_future *begin(target *t, void *c) {
    return ebb__call_begin(ebb_runtime_host(t->rt), c, EBB_SITE);
}

static void *end(target *t, ebb_future *f) {
    ebb_value v;
    while (ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        (void)sem_wait(&t->woken);
        ebb_inbox_receive(t->rt);
        bench_pump_all(t->rt);
    }
    bench_must(ebb_await(ebb_runtime_host(t->rt), f, &v) == EBB_OK);
    ebb_provider_call *c = ebb__call_of(&v);
    if (c->status != EBB_OK) fprintf(stderr, "ebb-bench: sqlite: %s\n", c->text);
    bench_must(c->status == EBB_OK);
    return c;
}

static ebb_provider_ack_turn_call *turn(target *t, instance *i) {
    static const char body[BODY] = "turn", input[INPUT] = "input";
    ebb_provider_ack_turn_call *c = call(t, EBB_PROVIDER_ACK_TURN);
    ebb_provider_work *w = ebb__call_room(&c->call, sizeof *w);
    ebb_provider_work_done *d = ebb__call_room(&c->call, sizeof *d);
    c->node = t->node;
    c->token = i->token;
    c->ack_id = ebb__token_new(&t->host);
    c->key = i->key;
    c->execution = 1;
    c->turn = ++i->turn;
    c->body = (ebb_blob){body, BODY};
    c->version = c->semantics = 1;
    c->lease = 3600 * EBB_SECOND;
    c->keep = true;
    c->done = d;
    c->done_n = i->activity != 0;
    *d = (ebb_provider_work_done){1, i->activity, i->work};
    i->work = ebb__token_new(&t->host);
    i->activity = 2 * i->turn;
    *w = (ebb_provider_work){.activity = i->activity,
                             .queue = "charge",
                             .session = "",
                             .name = "charge",
                             .attempt = 1,
                             .input = {input, INPUT},
                             .token = i->work};
    c->work = w;
    c->work_n = 1;
    return c;
}

static void turns(target *t, int n) {
    ebb_future *acks[BATCH];
    for (int i = 0; i < n; i++) acks[i] = begin(t, turn(t, &t->instances[i]));
    for (int i = 0; i < n; i++) ebb__call_free(end(t, acks[i]));
}

static void start_all(target *t) {
    static const ebb_provider_runs runs[] = {{"pay", 1}};
    ebb_provider_join_call *j = call(t, EBB_PROVIDER_JOIN);
    j->name = "bench";
    j->lease = 3600 * EBB_SECOND;
    j->runs = runs;
    j->runs_n = 1;
    j = end(t, begin(t, j));
    t->node = j->node;
    ebb__call_free(&j->call);
    for (int i = 0; i < BATCH; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "i%d", i);
        ebb_provider_start_call *c = call(t, EBB_PROVIDER_START);
        c->id = id;
        c->name = "pay";
        c->message = ebb_blob_text("begin");
        ebb__call_free(end(t, begin(t, c)));
    }
    ebb_provider_fetch_turns_call *f = call(t, EBB_PROVIDER_FETCH_TURNS);
    f->node = t->node;
    f->most = BATCH;
    f->messages = 10;
    f = end(t, begin(t, f));
    bench_must(f->items_n == BATCH);
    for (int i = 0; i < BATCH; i++)
        t->instances[i] = (instance){f->items[i].token, {0, 0}, f->items[i].key, 0, 0};
    ebb__call_free(&f->call);
    turns(t, BATCH);
}

static target *target_new(ebb_durability d) {
    target *t = calloc(1, sizeof *t);
    bench_must(t != NULL && sem_init(&t->woken, 0, 0) == 0);
    t->rt = bench_runtime();
    (void)ebb_future_failed(ebb_runtime_host(t->rt), EBB_FAILED);
    bench_must(ebb_inbox_on_wake(t->rt, on_wake, &t->woken) == EBB_OK);
    t->host = (ebb_provider_host){.allocator = ebb_libc_allocator(),
                                  .runtime = t->rt,
                                  .region = ebb_runtime_root(t->rt),
                                  .hint = host_hint,
                                  .wall = host_wall,
                                  .boot = host_boot,
                                  .random = host_random,
                                  .ctx = t};
    t->gate.provider = &ebb__provider_sqlite;
    t->gate.heap = ebb__heap_at(t->rt);
    t->gate.allocator = ebb_libc_allocator();
    t->gate.most = 4096;
    (void)snprintf(t->path, sizeof t->path, "sqlite:/tmp/ebb-bench-%d-%d.db", (int)getpid(), d);
    const ebb_store_opts opts = {.url = t->path, .durability = d};
    ebb_provider_open_call *o = call(t, EBB_PROVIDER_OPEN);
    o->host = &t->host;
    o->opts = &opts;
    o = end(t, begin(t, o));
    t->gate.self = o->self;
    ebb__call_free(&o->call);
    start_all(t);
    return t;
}

/* ---- the floor ----------------------------------------------------------------------------------------------------- */

typedef struct raw {
    char path[64];
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *turn, *end, *work;
    uint64_t turns[BATCH];
} raw;

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s = NULL;
    bench_must(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK);
    return s;
}

static void step(sqlite3_stmt *s) {
    bench_must(sqlite3_step(s) == SQLITE_DONE);
    (void)sqlite3_reset(s);
}

static raw *raw_new(ebb_durability d) {
    raw *r = calloc(1, sizeof *r);
    bench_must(r != NULL);
    (void)snprintf(r->path, sizeof r->path, "/tmp/ebb-bench-%d-%d.raw", (int)getpid(), d);
    bench_must(sqlite3_open(r->path, &r->db) == SQLITE_OK);
    bench_must(sqlite3_exec(r->db,
                            d == EBB_DURABILITY_FULL
                                ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
                                : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
                            NULL, NULL, NULL) == SQLITE_OK);
    bench_must(
        sqlite3_exec(
            r->db,
            "CREATE TABLE hist(inst INTEGER, exec INTEGER, turn INTEGER, at INTEGER, ack BLOB, body BLOB,"
            " PRIMARY KEY(inst, exec, turn)) WITHOUT ROWID;"
            "CREATE TABLE work(inst INTEGER, exec INTEGER, act INTEGER, place INTEGER, queue TEXT,"
            " owner INTEGER, ord INTEGER, attempts INTEGER, token BLOB, attempt INTEGER, session TEXT,"
            " name TEXT, input BLOB, PRIMARY KEY(inst, exec, act)) WITHOUT ROWID",
            NULL, NULL, NULL) == SQLITE_OK);
    r->begin = prepare(r->db, "BEGIN IMMEDIATE");
    r->commit = prepare(r->db, "COMMIT");
    r->turn = prepare(r->db, "INSERT INTO hist VALUES(?1, 1, ?2, ?3, zeroblob(16), zeroblob(160))");
    r->end = prepare(r->db, "DELETE FROM work WHERE inst = ?1 AND exec = 1 AND act = ?2");
    r->work = prepare(
        r->db, "INSERT INTO work VALUES(?1, 1, ?2, NULL, 'charge', 0, ?3, 0, zeroblob(16), 1, '', 'charge',"
               " zeroblob(64))");
    return r;
}

static void raw_turns(raw *r, int n) {
    step(r->begin);
    for (int i = 0; i < n; i++) {
        const sqlite3_int64 at = (sqlite3_int64)++r->turns[i], now = (sqlite3_int64)clock_ns(CLOCK_MONOTONIC);
        sqlite3_stmt *all[] = {r->turn, r->end, r->work};
        for (size_t k = 0; k < 3; k++) (void)sqlite3_bind_int64(all[k], 1, 1795102917903093604 + i);
        (void)sqlite3_bind_int64(r->turn, 2, at);
        (void)sqlite3_bind_int64(r->turn, 3, now);
        (void)sqlite3_bind_int64(r->end, 2, 2 * at - 2);
        (void)sqlite3_bind_int64(r->work, 2, 2 * at);
        (void)sqlite3_bind_int64(r->work, 3, now);
        for (size_t k = 0; k < 3; k++) step(all[k]);
    }
    step(r->commit);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static target *targets[2];
static raw *raws[2];

/* The files go with the process, whatever ends it, but for a crash. */
static void remove_files(void) {
    static const char *const ends[] = {"", "-wal", "-shm", ".lock", ".ballast"};
    char name[96];
    for (int d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            if (targets[d] != NULL) (void)snprintf(name, sizeof name, "%s%s", targets[d]->path + 7, ends[i]);
            if (targets[d] != NULL) (void)unlink(name);
            if (raws[d] != NULL) (void)snprintf(name, sizeof name, "%s%s", raws[d]->path, ends[i]);
            if (raws[d] != NULL) (void)unlink(name);
        }
    }
}

static double measure(ebb_durability d, bool ours, int batch, int times) {
    static bool registered;
    if (!registered) registered = atexit(remove_files) == 0;
    if (ours && targets[d] == NULL) targets[d] = target_new(d);
    if (!ours && raws[d] == NULL) raws[d] = raw_new(d);
    const uint64_t from = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < times; i++) {
        if (ours) turns(targets[d], batch);
        else raw_turns(raws[d], batch);
    }
    return (double)(clock_ns(CLOCK_MONOTONIC) - from) / times / batch;
}

#define MEASURE(name, durability, ours, batch, times)                                                        \
    static double name(void) {                                                                               \
        return measure(durability, ours, batch, times);                                                      \
    }
MEASURE(full_alone, EBB_DURABILITY_FULL, true, 1, ALONE)
MEASURE(full_alone_raw, EBB_DURABILITY_FULL, false, 1, ALONE)
MEASURE(full_10, EBB_DURABILITY_FULL, true, 10, BATCHES)
MEASURE(full_10_raw, EBB_DURABILITY_FULL, false, 10, BATCHES)
MEASURE(full_100, EBB_DURABILITY_FULL, true, BATCH, BATCHES)
MEASURE(full_100_raw, EBB_DURABILITY_FULL, false, BATCH, BATCHES)
MEASURE(normal_alone, EBB_DURABILITY_NORMAL, true, 1, 10 * ALONE)
MEASURE(normal_alone_raw, EBB_DURABILITY_NORMAL, false, 1, 10 * ALONE)
MEASURE(normal_100, EBB_DURABILITY_NORMAL, true, BATCH, 2 * BATCHES)
MEASURE(normal_100_raw, EBB_DURABILITY_NORMAL, false, BATCH, 2 * BATCHES)

/* At least half of what SQLite can do. Alone without a sync, two threads that wake each other are what is measured. */
const bench_row bench_sqlite_rows[] = {
    {"durable.sqlite.full_turn", "ns", full_alone, full_alone_raw, 2, 1},
    {"durable.sqlite.full_turn_of_10", "ns", full_10, full_10_raw, 2, 1},
    {"durable.sqlite.full_turn_of_100", "ns", full_100, full_100_raw, 2, 1},
    {"durable.sqlite.normal_turn", "ns", normal_alone, normal_alone_raw, 0, 0},
    {"durable.sqlite.normal_turn_of_100", "ns", normal_100, normal_100_raw, 2, 1},
};
const size_t bench_sqlite_count = sizeof bench_sqlite_rows / sizeof bench_sqlite_rows[0];
