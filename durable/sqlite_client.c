/* Starts and signals. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "durable/sqlite.h"

typedef struct found {
    uint64_t key, execution, unread; /* key 0: there is no such instance */
    bool ended, same;                /* same: of this name */
} found;

static found find(ebb__sqlite_file *f, const char *id, const char *name) {
    found r = {0, 0, 0, false, false};
    if (ebb__sqlite_run(&f->db, EBB__SQL_INST_BY_ID, "t", id) != SQLITE_ROW) return r;
    sqlite3_stmt *s = ebb__sqlite_at(&f->db, EBB__SQL_INST_BY_ID);
    ebb_instance_state state = EBB_INSTANCE_FAILED;
    (void)ebb__instance_state_of(ebb__sqlite_string(s, 3), &state);
    r.key = ebb__sqlite_u64(s, 0);
    r.same = name != NULL && strcmp(ebb__sqlite_string(s, 1), name) == 0;
    r.execution = ebb__sqlite_u64(s, 2);
    r.ended = state != EBB_INSTANCE_RUNNING && state != EBB_INSTANCE_SUSPENDED;
    r.unread = ebb__sqlite_u64(s, 4);
    ebb__sqlite_end(&f->db, EBB__SQL_INST_BY_ID);
    return r;
}

static bool same_input(ebb__sqlite_file *f, uint64_t key, ebb_blob input) {
    bool same = input.n == 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_DATA_GET, "ii", key, (uint64_t)EBB__DATA_INPUT) != SQLITE_ROW)
        return same;
    const ebb_blob b = ebb__sqlite_blob(ebb__sqlite_at(&f->db, EBB__SQL_DATA_GET), 0);
    same = b.n == input.n && (b.n == 0 || memcmp(b.at, input.at, b.n) == 0);
    ebb__sqlite_end(&f->db, EBB__SQL_DATA_GET);
    return same;
}

static void start_again(ebb__sqlite_file *f, const found *at, const ebb_provider_start_call *c) {
    ebb__sqlite_entry_unknow(&f->ready, at->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_AGAIN, "itii", at->key, c->name, (uint64_t)c->version,
                          f->now);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_DROP, "ii", at->key, (uint64_t)EBB__DATA_RESULT);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", at->key, (uint64_t)EBB__DATA_INPUT, &c->input);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_VALUE_DROP, "i", at->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_DROP, "i", at->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DEDUP_DROP, "i", at->key);
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_RETYPED, at->key);
    ebb__sqlite_message(f, at->key, 0, at->execution + 1, EBB_PROVIDER_MESSAGE_START, 0, &c->message);
}

static void start_new(ebb__sqlite_file *f, const ebb_provider_start_call *c) {
    const uint64_t key = ebb__sqlite_number(f);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_INSERT, "ittizi", key, c->id, c->name, (uint64_t)c->version,
                          f->now);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", key, (uint64_t)EBB__DATA_INPUT, &c->input);
    ebb__sqlite_message(f, key, 0, 1, EBB_PROVIDER_MESSAGE_START, 0, &c->message);
}

ebb_status ebb__sqlite_start(ebb__sqlite_file *f, ebb_provider_start_call *c) {
    const found at = find(f, c->id, c->name);
    c->existed = at.key != 0 && !(at.ended && c->reuse);
    if (c->existed && (!at.same || !same_input(f, at.key, c->input)))
        return ebb__sqlite_say(&c->call, EBB_ERR_EXISTS,
                               "the instance %.60s exists with another name or input", c->id);
    if (at.key == 0) start_new(f, c);
    else if (!c->existed) start_again(f, &at, c);
    if (ebb__sqlite_run(&f->db, EBB__SQL_ROW, "t", c->id) != SQLITE_ROW) return ebb__sqlite_status(&f->db);
    const ebb_status st = ebb__sqlite_row(f, &f->db, &c->call, ebb__sqlite_at(&f->db, EBB__SQL_ROW), true, &c->row);
    ebb__sqlite_end(&f->db, EBB__SQL_ROW);
    return st;
}

/* ---- signals -------------------------------------------------------------------------------------------------------- */

static bool has_row(ebb__sqlite_file *f, ebb__sqlite_sql sql, uint64_t key) {
    if (ebb__sqlite_run(&f->db, sql, "i", key) != SQLITE_ROW) return false;
    ebb__sqlite_end(&f->db, sql);
    return true;
}

static uint64_t count_signals(ebb__sqlite_file *f, uint64_t key) {
    uint64_t n = 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_INBOX_SIGNALS, "i", key) == SQLITE_ROW) {
        n = ebb__sqlite_u64(ebb__sqlite_at(&f->db, EBB__SQL_INBOX_SIGNALS), 0);
        ebb__sqlite_end(&f->db, EBB__SQL_INBOX_SIGNALS);
    }
    return n;
}

/* Whether one more signal fits. Rows are counted only when a bound of their number says that it may not: else the n-th
 * signal would cost n. Acks don't lower the bound, and members that are undone have raised it. */
static bool has_room(ebb__sqlite_file *f, const found *at) {
    ebb__sqlite_entry *e = ebb__sqlite_entry_find(&f->ready, at->key);
    if (e == NULL) return count_signals(f, at->key) + at->unread < EBB_DURABLE_SIGNALS;
    if (!e->counted || e->signals + at->unread >= EBB_DURABLE_SIGNALS) {
        e->signals = (uint32_t)count_signals(f, at->key);
        e->counted = f->db.failed == 0;
    }
    return e->signals++ + at->unread < EBB_DURABLE_SIGNALS;
}

static ebb_status signal_to(ebb__sqlite_file *f, ebb_provider_send_call *c, const found *at) {
    if (c->dedup != NULL && *c->dedup != 0) {
        (void)ebb__sqlite_run(&f->db, EBB__SQL_DEDUP, "iit", at->key, at->execution, c->dedup);
        if (f->db.failed == 0 && sqlite3_changes(f->db.at) == 0) return EBB_OK;
    }
    if (!has_room(f, at))
        return ebb__sqlite_say(&c->call, EBB_ERR_LIMIT,
                               "the instance %.60s has %d signals that it has not taken", c->id,
                               EBB_DURABLE_SIGNALS);
    ebb__sqlite_message(f, at->key, 0, 0, c->kind, 0, &c->body);
    return ebb__sqlite_status(&f->db);
}

ebb_status ebb__sqlite_send(ebb__sqlite_file *f, ebb_provider_send_call *c) {
    found at = find(f, c->id, NULL);
    if ((at.key == 0 || (at.ended && c->start != NULL && c->start->reuse)) && c->start != NULL &&
        f->db.failed == 0) {
        if (at.key == 0) start_new(f, c->start);
        else start_again(f, &at, c->start);
        at = find(f, c->id, NULL);
    }
    if (f->db.failed != 0) return ebb__sqlite_status(&f->db);
    if (at.key == 0 || at.ended)
        return ebb__sqlite_say(&c->call, EBB_ERR_UNKNOWN_INSTANCE,
                               "there is no instance %.60s, or it has ended", c->id);
    if (c->kind == EBB_PROVIDER_MESSAGE_SIGNAL) return signal_to(f, c, &at);
    if (!has_row(f, EBB__SQL_INBOX_CANCEL, at.key))
        ebb__sqlite_message(f, at.key, 0, 0, c->kind, 0, &c->body);
    return ebb__sqlite_status(&f->db);
}
