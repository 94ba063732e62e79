/* durable/sqlite_db.h - one connection: statements that are prepared once, parameters, and failures that stick.
 *
 * After a failure every ebb__sqlite_run of the connection does nothing and returns the code of that failure, until
 * ebb__sqlite_forgive. So a function of many statements checks once, at its end.
 *
 * Invariants: `failed` is 0 or an extended result code; a statement that is not at a row is reset. */
#ifndef EBB_DURABLE_SQLITE_DB_H
#define EBB_DURABLE_SQLITE_DB_H

#include <sqlite3.h>
#include <stdarg.h>

#include "durable/provider.h"

enum { EBB__SQLITE_BUSY_MS = 5000 }; /* how long a statement waits for another program's lock */

typedef enum ebb__sqlite_sql {
#define SQL(NAME, text) EBB__SQL_##NAME,
#include "durable/sqlite_sql.def"
#undef SQL
    EBB__SQL_COUNT
} ebb__sqlite_sql;

typedef struct ebb__sqlite_db {
    sqlite3 *at;
    sqlite3_stmt *cached[EBB__SQL_COUNT];
    uint64_t statements; /* that were run, but for begins, commits and savepoints */
    int failed, system;  /* the first failure, and errno of it */
    char text[200];      /* of that */
} ebb__sqlite_db;

/* What a failure means for a store. */
typedef enum ebb__sqlite_fault {
    EBB__SQLITE_FAULT_CALL = 0,    /* of one call: a constraint, a value too big. The others go on */
    EBB__SQLITE_FAULT_AGAIN = 1,   /* of the transaction: no memory, busy */
    EBB__SQLITE_FAULT_FULL = 2,    /* the disk is full */
    EBB__SQLITE_FAULT_IO = 3,      /* a read or write has failed: open the file again */
    EBB__SQLITE_FAULT_DAMAGED = 4, /* it looks damaged: open it again, and look */
    EBB__SQLITE_FAULT_SYNC = 5     /* a sync has failed: nobody knows what is on the disk */
} ebb__sqlite_fault;

/* Opens a connection; a reader's writes nothing. `vfs`: NULL, or its name. An extended result code; `text` is set. */
int ebb__sqlite_db_open(ebb__sqlite_db *db, const char *path, const char *vfs, bool reader);
void ebb__sqlite_db_close(ebb__sqlite_db *db);

/* The text of a statement. */
const char *ebb__sqlite_text(ebb__sqlite_sql sql);
/* Binds, and takes the first step: SQLITE_ROW (read it from ebb__sqlite_at, then next or end), SQLITE_DONE, or a failure.
 * `types` has a letter for each parameter: i uint64_t, n the same, UINT64_MAX: NULL, t const char *, b const ebb_blob *, k const ebb_provider_token *
 * (none: NULL), z nothing: NULL. What they point to must stay valid until the next step has been taken. */
int ebb__sqlite_run(ebb__sqlite_db *db, ebb__sqlite_sql sql, const char *types, ...);
int ebb__sqlite_next(ebb__sqlite_db *db, ebb__sqlite_sql sql);
void ebb__sqlite_end(ebb__sqlite_db *db, ebb__sqlite_sql sql);
static inline sqlite3_stmt *ebb__sqlite_at(const ebb__sqlite_db *db, ebb__sqlite_sql sql) {
    return db->cached[sql];
}
/* Runs statements that are used once. */
int ebb__sqlite_exec(ebb__sqlite_db *db, const char *sql);

/* The one number of a statement that is used once. -1: a failure. */
int64_t ebb__sqlite_number_of(ebb__sqlite_db *db, const char *sql);
/* Copies the log to the database: *log frames there are, *done of them are copied. */
int ebb__sqlite_wal(ebb__sqlite_db *db, int mode, int *log, int *done);
/* Reads the whole file. */
bool ebb__sqlite_is_sound(ebb__sqlite_db *db);

static inline uint64_t ebb__sqlite_u64(sqlite3_stmt *s, int column) {
    return (uint64_t)sqlite3_column_int64(s, column);
}
/* "" for NULL; valid until the next step. */
const char *ebb__sqlite_string(sqlite3_stmt *s, int column);
ebb_blob ebb__sqlite_blob(sqlite3_stmt *s, int column);
ebb_provider_token ebb__sqlite_token(sqlite3_stmt *s, int column);

void ebb__sqlite_forgive(ebb__sqlite_db *db);
ebb__sqlite_fault ebb__sqlite_fault_of(int code, int system);
/* The status with which a call ends after a failure; EBB_OK: there was none. */
ebb_status ebb__sqlite_status(const ebb__sqlite_db *db);

#endif
