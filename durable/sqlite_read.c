/* Reads: on a reader's thread, with its connection, in one snapshot a call. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable/sqlite.h"

/* ---- rows of instances ---------------------------------------------------------------------------------------------- */

static const char *text_of(ebb_provider_call *c, sqlite3_stmt *s, int column, bool *fits) {
    const char *from = ebb__sqlite_string(s, column);
    const char *to = ebb_provider_copy(c, from, strlen(from));
    *fits &= to != NULL;
    return to;
}

static ebb_blob blob_of(ebb_provider_call *c, sqlite3_stmt *s, int column, bool *fits) {
    ebb_blob b = {NULL, 0};
    if (sqlite3_column_type(s, column) == SQLITE_NULL) return b;
    const ebb_blob from = ebb__sqlite_blob(s, column);
    b.at = ebb_provider_copy(c, from.at, from.n);
    b.n = from.n;
    *fits &= b.at != NULL;
    return b;
}

/* `waits`: it has messages. */
static bool is_unserved(ebb__sqlite_file *f, ebb__sqlite_db *db, const ebb_provider_instance_row *row,
                        bool waits) {
    (void)pthread_mutex_lock(&f->lock);
    const uint64_t now = ebb__sqlite_clock(f);
    (void)pthread_mutex_unlock(&f->lock);
    bool unserved = waits && !ebb__sqlite_served(&f->ready, row->name, row->version, now);
    if (unserved) return true;
    int rc = ebb__sqlite_run(db, EBB__SQL_ROW_QUEUES, "i", row->key);
    for (; rc == SQLITE_ROW && !unserved; rc = ebb__sqlite_next(db, EBB__SQL_ROW_QUEUES))
        unserved = !ebb__sqlite_fetched(&f->ready,
                                        ebb__sqlite_string(ebb__sqlite_at(db, EBB__SQL_ROW_QUEUES), 0), now);
    if (rc == SQLITE_ROW) ebb__sqlite_end(db, EBB__SQL_ROW_QUEUES);
    return unserved;
}

ebb_status ebb__sqlite_row(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c, sqlite3_stmt *s,
                           bool whole, ebb_provider_instance_row *out) {
    bool fits = true;
    memset(out, 0, sizeof *out);
    if (ebb__instance_state_of(ebb__sqlite_string(s, 8), &out->state) != EBB_OK)
        return ebb__sqlite_say(c, EBB_ERR_CORRUPT, "the row of the instance %.60s has the state \"%.20s\"",
                               ebb__sqlite_string(s, 1), ebb__sqlite_string(s, 8));
    out->key = ebb__sqlite_u64(s, 0);
    out->id = text_of(c, s, 1, &fits);
    out->name = text_of(c, s, 2, &fits);
    out->parent = text_of(c, s, 3, &fits);
    out->version = (uint32_t)ebb__sqlite_u64(s, 4);
    out->semantics = (uint32_t)ebb__sqlite_u64(s, 5);
    out->execution = ebb__sqlite_u64(s, 6);
    out->turn = ebb__sqlite_u64(s, 7);
    out->started = ebb__sqlite_u64(s, 9);
    out->ended = ebb__sqlite_u64(s, 10);
    out->text = text_of(c, s, 11, &fits);
    out->custom = blob_of(c, s, 12, &fits);
    if (whole) out->input = blob_of(c, s, 14, &fits);
    if (whole) out->result = blob_of(c, s, 15, &fits);
    if (!fits) return EBB_ERR_NOMEM;
    out->unserved =
        out->state == EBB_INSTANCE_RUNNING && is_unserved(f, db, out, sqlite3_column_int(s, 13) != 0);
    return EBB_OK;
}

static ebb_status unknown(ebb__sqlite_db *db, ebb_provider_call *c, const char *id) {
    if (db->failed != 0) return ebb__sqlite_status(db);
    return ebb__sqlite_say(c, EBB_ERR_UNKNOWN_INSTANCE, "there is no instance %.100s", id);
}

static ebb_status instance(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_instance_call *c) {
    if (ebb__sqlite_run(db, EBB__SQL_ROW, "t", c->id) != SQLITE_ROW) return unknown(db, &c->call, c->id);
    const ebb_status st = ebb__sqlite_row(f, db, &c->call, ebb__sqlite_at(db, EBB__SQL_ROW), true, &c->row);
    ebb__sqlite_end(db, EBB__SQL_ROW);
    return st;
}

/* ---- lists ------------------------------------------------------------------------------------------------------------ */

static void states_of(uint32_t mask, char *out, size_t room) {
    size_t n = 0;
    out[0] = 0;
    for (unsigned s = EBB_INSTANCE_RUNNING; s <= EBB_INSTANCE_TERMINATED; s++)
        if ((mask >> s & 1) != 0)
            n += (size_t)snprintf(out + n, room - n, "<%s>", ebb_instance_state_name((ebb_instance_state)s));
}

static const char *or_empty(const char *text) {
    return text != NULL ? text : "";
}

static ebb_status list(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_list_call *c) {
    const ebb_instance_filter *by = c->filter;
    const uint32_t asked = by->most != 0 ? by->most : 100, most = asked < 1000 ? asked : 1000;
    const char *prefix = or_empty(by->prefix), *parent = or_empty(by->parent);
    const ebb__sqlite_sql sql = *parent == 0 ? EBB__SQL_LIST : by->tree ? EBB__SQL_TREE : EBB__SQL_LIST_OF;
    char states[128];
    ebb_status st = EBB_OK;
    states_of(by->states, states, sizeof states);
    c->rows = ebb_provider_alloc(&c->call, most * sizeof *c->rows);
    if (c->rows == NULL) return EBB_ERR_NOMEM;
    const uint64_t before = by->ended_before < INT64_MAX ? by->ended_before : INT64_MAX;
    int rc =
        ebb__sqlite_run(db, sql, sql == EBB__SQL_LIST ? "tttitii" : "tttitiit", or_empty(by->after), prefix,
                        or_empty(by->name), (uint64_t)by->states, states, by->started_after, before, parent);
    for (; rc == SQLITE_ROW && st == EBB_OK && c->rows_n < most; rc = ebb__sqlite_next(db, sql)) {
        sqlite3_stmt *s = ebb__sqlite_at(db, sql);
        const bool matches = strncmp(ebb__sqlite_string(s, 1), prefix, strlen(prefix)) == 0;
        if (!matches && sql == EBB__SQL_TREE) continue;
        if (!matches) break; /* the ids are in order */
        st = ebb__sqlite_row(f, db, &c->call, s, false, &c->rows[c->rows_n]);
        if (st == EBB_OK) c->rows_n++;
    }
    if (rc == SQLITE_ROW) ebb__sqlite_end(db, sql);
    return st == EBB_OK ? ebb__sqlite_status(db) : st;
}

/* ---- histories, values, counts ---------------------------------------------------------------------------------------- */

/* The key and execution of an instance. */
static bool resolve(ebb__sqlite_db *db, const char *id, uint64_t *key, uint64_t *execution) {
    const ebb__sqlite_sql sql = *key != 0 ? EBB__SQL_INST_BY_KEY : EBB__SQL_INST_BY_ID;
    const int rc = *key != 0 ? ebb__sqlite_run(db, sql, "i", *key) : ebb__sqlite_run(db, sql, "t", id);
    if (rc != SQLITE_ROW) return false;
    sqlite3_stmt *s = ebb__sqlite_at(db, sql);
    if (*execution == 0) *execution = ebb__sqlite_u64(s, sql == EBB__SQL_INST_BY_KEY ? 3 : 2);
    if (*key == 0) *key = ebb__sqlite_u64(s, 0);
    ebb__sqlite_end(db, sql);
    return true;
}

static ebb_status turn(ebb_provider_history_call *c, sqlite3_stmt *s, uint64_t execution) {
    ebb_provider_turn_row *t = &c->turns[c->turns_n];
    bool fits = true;
    t->execution = execution;
    t->turn = ebb__sqlite_u64(s, 0);
    t->at = ebb__sqlite_u64(s, 1);
    if (sqlite3_column_type(s, 2) != SQLITE_BLOB)
        return ebb__sqlite_say(&c->call, EBB_ERR_CORRUPT, "turn %llu of execution %llu has no body",
                               (unsigned long long)t->turn, (unsigned long long)execution);
    t->body = blob_of(&c->call, s, 2, &fits);
    c->turns_n++;
    return fits ? EBB_OK : EBB_ERR_NOMEM;
}

static ebb_status history(ebb__sqlite_db *db, ebb_provider_history_call *c) {
    uint64_t key = c->key, execution = c->execution, bytes = 0;
    const uint32_t most = c->most != 0 && c->most < 10000 ? c->most : 10000;
    ebb_status st = EBB_OK;
    if (!resolve(db, c->id, &key, &execution)) return unknown(db, &c->call, or_empty(c->id));
    c->turns = ebb_provider_alloc(&c->call, most * sizeof *c->turns);
    if (c->turns == NULL) return EBB_ERR_NOMEM;
    int rc = ebb__sqlite_run(db, EBB__SQL_HISTORY, "iiii", key, execution, c->after, (uint64_t)most + 1);
    for (; rc == SQLITE_ROW && st == EBB_OK; rc = ebb__sqlite_next(db, EBB__SQL_HISTORY)) {
        sqlite3_stmt *s = ebb__sqlite_at(db, EBB__SQL_HISTORY);
        c->more = c->turns_n == most || (c->turns_n != 0 && c->bytes != 0 && bytes >= c->bytes);
        if (c->more) break;
        bytes += (uint64_t)sqlite3_column_bytes(s, 2);
        st = turn(c, s, execution);
    }
    if (rc == SQLITE_ROW) ebb__sqlite_end(db, EBB__SQL_HISTORY);
    return st == EBB_OK ? ebb__sqlite_status(db) : st;
}

static ebb_status value(ebb__sqlite_db *db, ebb_provider_value_call *c) {
    uint64_t key = 0, execution = 0;
    bool fits = true;
    if (!resolve(db, c->id, &key, &execution)) return unknown(db, &c->call, c->id);
    if (ebb__sqlite_run(db, EBB__SQL_VALUE_GET, "it", key, c->key) == SQLITE_ROW) {
        c->value = blob_of(&c->call, ebb__sqlite_at(db, EBB__SQL_VALUE_GET), 0, &fits);
        ebb__sqlite_end(db, EBB__SQL_VALUE_GET);
    }
    return fits ? ebb__sqlite_status(db) : EBB_ERR_NOMEM;
}

/* On the writer's thread, which knows which claims are live. */
ebb_status ebb__sqlite_outstanding(ebb__sqlite_file *f, ebb_provider_outstanding_call *c) {
    ebb__sqlite_db *db = &f->db;
    size_t at = 0;
    if (ebb__sqlite_run(db, EBB__SQL_OUTSTANDING, "t", c->id) != SQLITE_ROW)
        return unknown(db, &c->call, c->id);
    sqlite3_stmt *s = ebb__sqlite_at(db, EBB__SQL_OUTSTANDING);
    const uint64_t key = ebb__sqlite_u64(s, 0);
    c->work = ebb__sqlite_u64(s, 1);
    c->timers = ebb__sqlite_u64(s, 2);
    c->messages = ebb__sqlite_u64(s, 3);
    ebb__sqlite_end(db, EBB__SQL_OUTSTANDING);
    for (const ebb__sqlite_held *h; (h = ebb__map_next(&f->held, &at)) != NULL;)
        c->claimed += h->key == key && h->node != 0 && h->until > f->now;
    return EBB_OK;
}

static ebb_status read_one(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c) {
    switch (c->op) {
    case EBB_PROVIDER_HISTORY: return history(db, (ebb_provider_history_call *)c);
    case EBB_PROVIDER_INSTANCE: return instance(f, db, (ebb_provider_instance_call *)c);
    case EBB_PROVIDER_LIST: return list(f, db, (ebb_provider_list_call *)c);
    default: return value(db, (ebb_provider_value_call *)c);
    }
}

ebb_status ebb__sqlite_read(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c) {
    (void)ebb__sqlite_run(db, EBB__SQL_BEGIN_READ, "");
    const ebb_status st = db->failed == 0 ? read_one(f, db, c) : ebb__sqlite_status(db);
    const int failed = db->failed;
    db->failed = 0; /* the snapshot is given back in any case */
    (void)ebb__sqlite_run(db, EBB__SQL_COMMIT, "");
    db->failed = failed;
    return st;
}
