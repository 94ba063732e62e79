/* One connection of the SQLite provider. */
#define _POSIX_C_SOURCE 200809L
#include "durable/sqlite_db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[EBB__SQL_COUNT] = {
#define SQL(NAME, text) [EBB__SQL_##NAME] = (text),
#include "durable/sqlite_sql.def"
#undef SQL
};

const char *ebb__sqlite_text(ebb__sqlite_sql sql) {
    return texts[sql];
}

/* ---- failures ------------------------------------------------------------------------------------------------- */

static int fail(ebb__sqlite_db *db, int code) {
    if (db->failed != 0) return db->failed;
    db->failed = code;
    db->system = db->at != NULL ? sqlite3_system_errno(db->at) : errno;
    (void)snprintf(db->text, sizeof db->text, "%s (SQLite's code %d)",
                   db->at != NULL ? sqlite3_errmsg(db->at) : sqlite3_errstr(code), code);
    return code;
}

void ebb__sqlite_forgive(ebb__sqlite_db *db) {
    db->failed = db->system = 0;
    db->text[0] = 0;
}

ebb__sqlite_fault ebb__sqlite_fault_of(int code, int system) {
    switch (code) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC: return EBB__SQLITE_FAULT_SYNC;
    case SQLITE_IOERR_NOMEM: return EBB__SQLITE_FAULT_AGAIN;
    case SQLITE_IOERR_CORRUPTFS: return EBB__SQLITE_FAULT_DAMAGED;
    default: break;
    }
    switch (code & 0xff) {
    case SQLITE_FULL: return EBB__SQLITE_FAULT_FULL;
    case SQLITE_NOMEM:
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return EBB__SQLITE_FAULT_AGAIN;
    case SQLITE_IOERR:
        return system == ENOSPC || system == EDQUOT ? EBB__SQLITE_FAULT_FULL : EBB__SQLITE_FAULT_IO;
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL: return EBB__SQLITE_FAULT_IO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return EBB__SQLITE_FAULT_DAMAGED;
    default: return EBB__SQLITE_FAULT_CALL;
    }
}

ebb_status ebb__sqlite_status(const ebb__sqlite_db *db) {
    if (db->failed == 0) return EBB_OK;
    if ((db->failed & 0xff) == SQLITE_NOMEM || db->failed == SQLITE_IOERR_NOMEM) return EBB_ERR_NOMEM;
    if ((db->failed & 0xff) == SQLITE_TOOBIG) return EBB_ERR_LIMIT;
    switch (ebb__sqlite_fault_of(db->failed, db->system)) {
    case EBB__SQLITE_FAULT_CALL:
    case EBB__SQLITE_FAULT_SYNC: return EBB_ERR_STORE;
    default: return EBB_ERR_UNAVAILABLE;
    }
}

/* ---- open and close ------------------------------------------------------------------------------------------- */

/* Pages that are cached are not read again, so that a disk that blinks is noticed late; SQLite's 2 MB are enough. */
static const char writer_pragmas[] = "PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA cache_size = -16000;"
                                     "PRAGMA temp_store = MEMORY;"
                                     "PRAGMA foreign_keys = OFF";
static const char reader_pragmas[] = "PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = 1";

int ebb__sqlite_db_open(ebb__sqlite_db *db, const char *path, const char *vfs, bool reader) {
    memset(db, 0, sizeof *db);
    int rc = sqlite3_open_v2(path, &db->at, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);
    if (rc != SQLITE_OK) return fail(db, rc);
    (void)sqlite3_extended_result_codes(db->at, 1);
    (void)sqlite3_busy_timeout(db->at, EBB__SQLITE_BUSY_MS);
    if (reader) (void)sqlite3_db_config(db->at, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return ebb__sqlite_exec(db, reader ? reader_pragmas : writer_pragmas);
}

void ebb__sqlite_db_close(ebb__sqlite_db *db) {
    for (int i = 0; i < EBB__SQL_COUNT; i++) (void)sqlite3_finalize(db->cached[i]);
    (void)sqlite3_close(db->at);
    memset(db->cached, 0, sizeof db->cached);
    db->at = NULL;
}

/* ---- statements ----------------------------------------------------------------------------------------------- */

static int step(ebb__sqlite_db *db, sqlite3_stmt *s) {
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) return rc;
    if (rc != SQLITE_DONE) rc = fail(db, rc);
    (void)sqlite3_reset(s);
    return rc;
}

static int bind(sqlite3_stmt *s, int at, char type, va_list *args) {
    switch (type) {
    case 'i': return sqlite3_bind_int64(s, at, (sqlite3_int64)va_arg(*args, uint64_t));
    case 'n': {
        const uint64_t n = va_arg(*args, uint64_t);
        return n != UINT64_MAX ? sqlite3_bind_int64(s, at, (sqlite3_int64)n) : sqlite3_bind_null(s, at);
    }
    case 't': return sqlite3_bind_text(s, at, va_arg(*args, const char *), -1, SQLITE_STATIC);
    case 'b': {
        const ebb_blob *b = va_arg(*args, const ebb_blob *);
        return sqlite3_bind_blob64(s, at, b->n != 0 ? b->at : "", b->n, SQLITE_STATIC);
    }
    case 'k': {
        const ebb_provider_token *k = va_arg(*args, const ebb_provider_token *);
        if (ebb__token_is_none(*k)) return sqlite3_bind_null(s, at);
        return sqlite3_bind_blob(s, at, k, sizeof *k, SQLITE_STATIC);
    }
    default: return sqlite3_bind_null(s, at);
    }
}

int ebb__sqlite_run(ebb__sqlite_db *db, ebb__sqlite_sql sql, const char *types, ...) {
    int rc = SQLITE_OK;
    if (db->failed != 0) return db->failed;
    if (db->cached[sql] == NULL)
        rc = sqlite3_prepare_v3(db->at, texts[sql], -1, SQLITE_PREPARE_PERSISTENT, &db->cached[sql], NULL);
    sqlite3_stmt *s = db->cached[sql];
    va_list args;
    va_start(args, types);
    for (int i = 0; rc == SQLITE_OK && types[i] != 0; i++) rc = bind(s, i + 1, types[i], &args);
    va_end(args);
    if (rc != SQLITE_OK) return fail(db, rc);
    if (sql > EBB__SQL_MEMBER_UNDO) db->statements++; /* those of transactions come first, and don't count */
    return step(db, s);
}

int ebb__sqlite_next(ebb__sqlite_db *db, ebb__sqlite_sql sql) {
    return step(db, db->cached[sql]);
}

void ebb__sqlite_end(ebb__sqlite_db *db, ebb__sqlite_sql sql) {
    (void)sqlite3_reset(db->cached[sql]);
}

int ebb__sqlite_exec(ebb__sqlite_db *db, const char *sql) {
    if (db->failed != 0) return db->failed;
    int rc = sqlite3_exec(db->at, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? rc : fail(db, rc);
}

int64_t ebb__sqlite_number_of(ebb__sqlite_db *db, const char *sql) {
    sqlite3_stmt *s = NULL;
    int64_t n = -1;
    if (db->failed != 0) return n;
    int rc = sqlite3_prepare_v2(db->at, sql, -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) n = sqlite3_column_int64(s, 0);
    else (void)fail(db, rc != SQLITE_DONE ? rc : SQLITE_CORRUPT);
    (void)sqlite3_finalize(s);
    return n;
}

int ebb__sqlite_wal(ebb__sqlite_db *db, int mode, int *log, int *done) {
    if (db->failed != 0) return db->failed;
    const int rc = sqlite3_wal_checkpoint_v2(db->at, NULL, mode, log, done);
    return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY ? rc : fail(db, rc);
}

bool ebb__sqlite_is_sound(ebb__sqlite_db *db) {
    sqlite3_stmt *s = NULL;
    bool sound = false;
    if (db->failed == 0 && sqlite3_prepare_v2(db->at, "PRAGMA quick_check(1)", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        sound = strcmp(ebb__sqlite_string(s, 0), "ok") == 0;
    (void)sqlite3_finalize(s);
    return sound;
}

/* ---- columns -------------------------------------------------------------------------------------------------- */

const char *ebb__sqlite_string(sqlite3_stmt *s, int column) {
    const unsigned char *text = sqlite3_column_text(s, column);
    return text != NULL ? (const char *)text : "";
}

ebb_blob ebb__sqlite_blob(sqlite3_stmt *s, int column) {
    ebb_blob b = {sqlite3_column_blob(s, column), (size_t)sqlite3_column_bytes(s, column)};
    return b;
}

ebb_provider_token ebb__sqlite_token(sqlite3_stmt *s, int column) {
    ebb_provider_token t = {0, 0};
    const void *at = sqlite3_column_blob(s, column);
    if (at != NULL && sqlite3_column_bytes(s, column) == (int)sizeof t) memcpy(&t, at, sizeof t);
    return t;
}
