/* The schema of the SQLite provider, and what it is checked against.
 *
 * meta.schema is the version of the tables, meta.min_reader the oldest version that may use them. A change expands first
 * (a new table or column, min_reader stays), and contracts in a later version, which raises min_reader. */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable/sqlite.h"

/* Entry i makes version i + 1 of version i. Entries are never changed once they were released. `place` of work: 0, 1 of a
 * suspect, NULL while it is claimed, so that claimed rows stand in no index. */
static const char *const steps[EBB__SQLITE_SCHEMA] = {
    "CREATE TABLE meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;"
    "CREATE TABLE inst(key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, ver INTEGER NOT "
    "NULL,"
    " sem INTEGER NOT NULL, exec INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL,"
    " unread INTEGER NOT NULL, parent TEXT, started INTEGER NOT NULL, ended INTEGER NOT NULL, text TEXT NOT "
    "NULL);"
    "CREATE INDEX inst_parent ON inst(parent, id) WHERE parent IS NOT NULL;"
    "CREATE TABLE data(inst INTEGER, what INTEGER, body BLOB, PRIMARY KEY(inst, what)) WITHOUT ROWID;"
    "CREATE TABLE hist(inst INTEGER, exec INTEGER, turn INTEGER, at INTEGER NOT NULL, ack BLOB, body BLOB,"
    " PRIMARY KEY(inst, exec, turn)) WITHOUT ROWID;"
    "CREATE TABLE inbox(inst INTEGER, seq INTEGER, exec INTEGER NOT NULL, step INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, ack BLOB, body BLOB, PRIMARY KEY(inst, seq)) WITHOUT ROWID;"
    "CREATE TABLE work(inst INTEGER, exec INTEGER, act INTEGER, place INTEGER, queue TEXT NOT NULL,"
    " owner INTEGER NOT NULL, ord INTEGER NOT NULL, attempts INTEGER NOT NULL, token BLOB, attempt INTEGER "
    "NOT NULL,"
    " session TEXT NOT NULL, name TEXT NOT NULL, input BLOB, PRIMARY KEY(inst, exec, act)) WITHOUT ROWID;"
    "CREATE INDEX work_next ON work(queue, owner, place, ord) WHERE place IS NOT NULL;"
    "CREATE INDEX work_session ON work(session) WHERE session <> '';"
    "CREATE INDEX work_owner ON work(owner) WHERE owner <> 0;"
    "CREATE TABLE timer(inst INTEGER, exec INTEGER, step INTEGER, due INTEGER NOT NULL,"
    " PRIMARY KEY(inst, exec, step)) WITHOUT ROWID;"
    "CREATE INDEX timer_due ON timer(due, inst);"
    "CREATE TABLE kv(inst INTEGER, k TEXT, v BLOB, PRIMARY KEY(inst, k)) WITHOUT ROWID;"
    "CREATE TABLE dedup(inst INTEGER, exec INTEGER, id TEXT, PRIMARY KEY(inst, exec, id)) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('schema', 1), ('min_reader', 1), ('clock', 0), ('open', 0);"
    "PRAGMA application_id = 0x45626273;"};

static const char *const *_Atomic later_steps;
static _Atomic int later_n;

void ebb__sqlite_use_schema(const char *const *later, int n) {
    atomic_store(&later_steps, later);
    atomic_store(&later_n, n);
}

static int newest(void) {
    return EBB__SQLITE_SCHEMA + atomic_load(&later_n);
}

static const char *step(int64_t from) {
    return from < EBB__SQLITE_SCHEMA ? steps[from] : atomic_load(&later_steps)[from - EBB__SQLITE_SCHEMA];
}

static ebb_status upgrade(ebb__sqlite_db *db, int64_t from, const char *path, char *text, size_t room) {
    char set[64];
    (void)ebb__sqlite_exec(db,
                           "PRAGMA journal_mode = WAL"); /* not before it is known that the file is ours */
    if (from == newest()) return ebb__sqlite_status(db);
    (void)ebb__sqlite_exec(db, "BEGIN IMMEDIATE");
    for (int64_t i = from; i < newest(); i++) (void)ebb__sqlite_exec(db, step(i));
    (void)snprintf(set, sizeof set, "UPDATE meta SET v = %d WHERE k = 'schema'", newest());
    (void)ebb__sqlite_exec(db, set);
    (void)ebb__sqlite_exec(db, "COMMIT");
    if (db->failed == 0) return EBB_OK;
    (void)snprintf(text, room, "the schema of %.120s can't be made: %.160s", path, db->text);
    return ebb__sqlite_status(db);
}

static ebb_status unreadable(ebb__sqlite_db *db, const char *path, char *text, size_t room) {
    const ebb__sqlite_fault fault = ebb__sqlite_fault_of(db->failed, db->system);
    if ((db->failed & 0xff) == SQLITE_NOTADB)
        (void)snprintf(text, room, "%.120s is no SQLite database", path);
    else (void)snprintf(text, room, "%.120s can't be read: %.160s", path, db->text);
    return fault == EBB__SQLITE_FAULT_DAMAGED ? EBB_ERR_STORE : ebb__sqlite_status(db);
}

ebb_status ebb__sqlite_schema(ebb__sqlite_db *db, const char *path, bool may_make, char *text, size_t room) {
    const int64_t tables = ebb__sqlite_number_of(db, "SELECT count(*) FROM sqlite_schema");
    const int64_t application = ebb__sqlite_number_of(db, "PRAGMA application_id");
    if (db->failed != 0) return unreadable(db, path, text, room);
    if (tables == 0) {
        if (may_make) return upgrade(db, 0, path, text, room);
        (void)snprintf(text, room, "%.120s has no schema of Ebb", path);
        return EBB_ERR_SCHEMA;
    }
    if (application != EBB__SQLITE_APPLICATION) {
        (void)snprintf(text, room, "%.120s is a database of another program (application_id %lld, not %d)",
                       path, (long long)application, EBB__SQLITE_APPLICATION);
        return EBB_ERR_STORE;
    }
    const int64_t schema = ebb__sqlite_number_of(db, "SELECT v FROM meta WHERE k = 'schema'");
    const int64_t reader = ebb__sqlite_number_of(db, "SELECT v FROM meta WHERE k = 'min_reader'");
    if (db->failed != 0) return unreadable(db, path, text, room);
    if (reader > newest() || schema < 1) {
        (void)snprintf(text, room,
                       "%.120s has schema %lld, which needs a reader of schema %lld; this one reads %d", path,
                       (long long)schema, (long long)reader, newest());
        return EBB_ERR_SCHEMA;
    }
    if (schema >= newest()) return upgrade(db, newest(), path, text, room);
    if (may_make) return upgrade(db, schema, path, text, room);
    (void)snprintf(text, room, "%.120s has schema %lld, and may not be upgraded to %d", path,
                   (long long)schema, newest());
    return EBB_ERR_SCHEMA;
}
