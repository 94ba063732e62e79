/* SQLite on this thread, without savepoints, reads, checks, fences or answers. */
#include <sqlite3.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/durable.h"

typedef enum sql { BEGIN, COMMIT, INST, DATA, INBOX, HIST, TAKE, WORK, DONE, FIRST, END, STATEMENTS } sql;

#define WORK_INSERT                                                                                          \
    "INSERT INTO work VALUES(?1, 1, ?2, NULL, 'echo', 0, ?1, 0, zeroblob(16), 1, '', 'echo', zeroblob(64))"

static const char *const texts[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INST] = "INSERT INTO inst VALUES(?1, 'r' || ?1, 'sequence', 0, 0, 1, 'Running', 0, 0, NULL, ?1, 0, '')",
    [DATA] = "INSERT INTO data VALUES(?1, ?2, zeroblob(64))",
    [INBOX] = "INSERT INTO inbox VALUES(?1, ?2, 1, ?2, 2, zeroblob(16), zeroblob(80))",
    [HIST] = "INSERT INTO hist VALUES(?1, 1, ?2, ?1, zeroblob(16), zeroblob(?3))",
    [TAKE] = "DELETE FROM inbox WHERE inst = ?1 AND seq = ?2",
    [WORK] = WORK_INSERT,
    [DONE] = "DELETE FROM work WHERE inst = ?1 AND exec = 1 AND act = ?2",
    [FIRST] = "UPDATE inst SET ver = 1, sem = 1 WHERE key = ?1",
    [END] = "UPDATE inst SET state = 'Completed', ended = 1 WHERE key = ?1",
};

typedef struct raw {
    sqlite3 *db;
    sqlite3_stmt *of[STATEMENTS];
    size_t body;
} raw;

static void step(raw *r, sql which, uint64_t key, uint64_t n, uint64_t m) {
    sqlite3_stmt *s = r->of[which];
    const int params = sqlite3_bind_parameter_count(s);
    if (params >= 1) (void)sqlite3_bind_int64(s, 1, (sqlite3_int64)key);
    if (params >= 2) (void)sqlite3_bind_int64(s, 2, (sqlite3_int64)n);
    if (params >= 3) (void)sqlite3_bind_int64(s, 3, (sqlite3_int64)m);
    bench_must(sqlite3_step(s) == SQLITE_DONE);
    (void)sqlite3_reset(s);
}

static void begin(void *self) {
    step(self, BEGIN, 0, 0, 0);
}

static void commit(void *self) {
    step(self, COMMIT, 0, 0, 0);
}

static void start(void *self, uint64_t lo, uint64_t hi) {
    for (uint64_t k = lo; k < hi; k++) {
        step(self, INST, k, 0, 0);
        step(self, DATA, k, 1, 0);
        step(self, INBOX, k, 0, 0);
    }
}

static void turn(void *self, uint64_t lo, uint64_t hi, unsigned number, unsigned call, unsigned calls) {
    raw *r = self;
    for (uint64_t k = lo; k < hi; k++) {
        step(r, HIST, k, number, r->body);
        if (number == 1) step(r, TAKE, k, 0, 0);
        for (unsigned c = call; c < call + calls; c++) step(r, WORK, k, c, 0);
        if (number == 1) step(r, FIRST, k, 0, 0);
    }
}

static void done(void *self, uint64_t lo, uint64_t hi, unsigned call) {
    for (uint64_t k = lo; k < hi; k++) step(self, DONE, k, call, 0);
}

static void end(void *self, uint64_t lo, uint64_t hi) {
    for (uint64_t k = lo; k < hi; k++) {
        step(self, END, k, 0, 0);
        step(self, DATA, k, 2, 0);
    }
}

static const floor_store store = {begin, start, turn, done, end, commit};

double floor_durable_sqlite(const char *path, ebb_durability d, const durable_shape *shape) {
    raw r = {.body = shape->body};
    bench_must(sqlite3_open_v2(path, &r.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK);
    bench_must(
        sqlite3_exec(r.db,
                     d == EBB_DURABILITY_FULL ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                     NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < STATEMENTS; i++)
        bench_must(sqlite3_prepare_v2(r.db, texts[i], -1, &r.of[i], NULL) == SQLITE_OK);
    const double ns = floor_durable(&store, &r, shape);
    for (int i = 0; i < STATEMENTS; i++) (void)sqlite3_finalize(r.of[i]);
    (void)sqlite3_close(r.db);
    return ns;
}
