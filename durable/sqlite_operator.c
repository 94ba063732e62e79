/* What operators do: suspend and resume, reset, delete. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "durable/sqlite.h"

static ebb_status fenced(ebb_provider_call *c, uint64_t execution, uint64_t turn) {
    return ebb__sqlite_say(c, EBB_ERR_FENCED, "turn %llu of execution %llu is not the last of this instance",
                           (unsigned long long)turn, (unsigned long long)execution);
}

ebb_status ebb__sqlite_mark(ebb__sqlite_file *f, ebb_provider_mark_call *c) {
    ebb__sqlite_entry_unknow(&f->ready, c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_MARK, "iiitt", c->key, c->execution, c->turn,
                          ebb_instance_state_name(c->state), c->text != NULL ? c->text : "");
    if (f->db.failed != 0) return ebb__sqlite_status(&f->db);
    if (sqlite3_changes(f->db.at) == 0) return fenced(&c->call, c->execution, c->turn);
    if (c->state == EBB_INSTANCE_SUSPENDED) {
        (void)ebb__sqlite_effect_add(f, EBB__EFFECT_ENDED, c->key);
        return EBB_OK;
    }
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_FREED, c->key);
    ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_MESSAGE, c->key);
    e->at = f->now;
    e->charged = true; /* a timer may have become due meanwhile */
    return EBB_OK;
}

/* ---- reset ------------------------------------------------------------------------------------------------------------ */

/* Numbers for n messages before those that are there. */
static uint64_t before_all(ebb__sqlite_file *f, uint64_t key, size_t n) {
    uint64_t first = 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_INBOX_FIRST, "i", key) == SQLITE_ROW) {
        first = ebb__sqlite_u64(ebb__sqlite_at(&f->db, EBB__SQL_INBOX_FIRST), 0);
        ebb__sqlite_end(&f->db, EBB__SQL_INBOX_FIRST);
    }
    return (first != 0 ? first : ebb__sqlite_number(f)) - n;
}

ebb_status ebb__sqlite_reset(ebb__sqlite_file *f, ebb_provider_reset_call *c) {
    const uint64_t next = c->execution + 1;
    ebb__sqlite_entry_unknow(&f->ready, c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_RESET, "iii", c->key, c->execution, c->turn);
    if (f->db.failed != 0) return ebb__sqlite_status(&f->db);
    if (sqlite3_changes(f->db.at) == 0) return fenced(&c->call, c->execution, c->turn);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_TURN_COPY, "iii", c->key, c->execution, c->keep);
    ebb__sqlite_work_drop(f, EBB__SQL_WORK_DROP, c->key, 0, EBB_CANCEL_NONE);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_TIMER_DROP, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_DROP_EXEC, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DEDUP_DROP, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_VALUE_DROP, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_DROP, "ii", c->key, (uint64_t)EBB__DATA_RESULT);
    for (size_t i = 0; i < c->work_n; i++) ebb__sqlite_work(f, c->key, next, &c->work[i], 0, 0);
    for (size_t i = 0; i < c->timers_n; i++) ebb__sqlite_timer(f, c->key, next, &c->timers[i]);
    const uint64_t first = before_all(f, c->key, c->messages_n);
    for (size_t i = 0; i < c->messages_n; i++) {
        const ebb_provider_message *m = &c->messages[i];
        ebb__sqlite_message(f, c->key, first + i, m->execution, (ebb_provider_message_kind)m->at.kind,
                            m->step, &m->body);
    }
    ebb__sqlite_values(f, c->key, c->values, c->values_n);
    (void)ebb__sqlite_outgoing(f, c->key, next, c->outgoing, c->outgoing_n);
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_FREED, c->key);
    return ebb__sqlite_status(&f->db);
}

/* ---- remove ------------------------------------------------------------------------------------------------------------ */

enum { AT_ONCE = 16 }; /* instances a commit, so that others wait for no more */

static bool may_remove(ebb__sqlite_file *f, uint64_t key, bool force) {
    ebb_instance_state state = EBB_INSTANCE_FAILED;
    if (ebb__sqlite_run(&f->db, EBB__SQL_INST_BY_KEY, "i", key) != SQLITE_ROW) return false;
    (void)ebb__instance_state_of(ebb__sqlite_string(ebb__sqlite_at(&f->db, EBB__SQL_INST_BY_KEY), 4), &state);
    ebb__sqlite_end(&f->db, EBB__SQL_INST_BY_KEY);
    return force || (state != EBB_INSTANCE_RUNNING && state != EBB_INSTANCE_SUSPENDED);
}

static void remove_one(ebb__sqlite_file *f, uint64_t key) {
    static const ebb__sqlite_sql tables[] = {EBB__SQL_TURN_DELETE, EBB__SQL_INBOX_DROP, EBB__SQL_DEDUP_DROP,
                                             EBB__SQL_TIMER_DROP,  EBB__SQL_VALUE_DROP, EBB__SQL_INST_DELETE};
    ebb__sqlite_entry_unknow(&f->ready, key);
    ebb__sqlite_work_drop(f, EBB__SQL_WORK_DROP, key, 0, EBB_CANCEL_NONE);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_DROP, "ii", key, (uint64_t)0);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        (void)ebb__sqlite_run(&f->db, tables[i], "i", key);
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_ENDED, key);
}

ebb_status ebb__sqlite_remove(ebb__sqlite_file *f, ebb_provider_remove_call *c) {
    ebb__sqlite_member *m = c->call.mine;
    uint64_t at = m->cursor, removed = 0;
    for (uint32_t n = 0; at < c->keys_n && n < AT_ONCE; at++, n++) {
        if (!may_remove(f, c->keys[at], c->force)) continue;
        remove_one(f, c->keys[at]);
        removed++;
    }
    if (f->db.failed != 0) return ebb__sqlite_status(&f->db);
    m->more = at < c->keys_n;
    m->cursor = at;
    c->removed += removed;
    return EBB_OK;
}
