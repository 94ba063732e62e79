/* What is done after a commit: claims, ready instances, hints. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "durable/sqlite.h"

ebb__sqlite_effect *ebb__sqlite_effect_add(ebb__sqlite_file *f, ebb__sqlite_effect_kind kind, uint64_t key) {
    static _Thread_local ebb__sqlite_effect nowhere;
    ebb__sqlite_effect *e = &nowhere;
    if (f->effects_n == f->effects_room) {
        const size_t room = f->effects_room != 0 ? 2 * f->effects_room : 256;
        ebb__sqlite_effect *more = realloc(f->effects, room * sizeof *more);
        if (more == NULL) {
            f->effects_lost = true;
        } else {
            f->effects = more;
            f->effects_room = room;
        }
    }
    if (f->effects_n < f->effects_room) e = &f->effects[f->effects_n++];
    memset(e, 0, sizeof *e);
    e->kind = (uint8_t)kind;
    e->key = key;
    return e;
}

/* The system's: the writer's thread may not ask the host. */
ebb_provider_token ebb__sqlite_token_new(ebb__sqlite_file *f) {
    ebb_provider_token t;
    do {
        if (f->random_left < sizeof t) {
            while (getrandom(f->random, sizeof f->random, 0) != (ssize_t)sizeof f->random) {}
            f->random_left = sizeof f->random;
        }
        f->random_left -= sizeof t;
        memcpy(&t, f->random + f->random_left, sizeof t);
    } while (ebb__token_is_none(t));
    return t;
}

ebb_status ebb__sqlite_say(ebb_provider_call *c, ebb_status st, const char *format, ...) {
    ebb__sqlite_member *m = c->mine;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(m->text, sizeof m->text, format, args);
    va_end(args);
    return st;
}

/* ---- rows that several calls insert -------------------------------------------------------------------------------- */

void ebb__sqlite_message(ebb__sqlite_file *f, uint64_t key, uint64_t seq, uint64_t execution,
                         ebb_provider_message_kind kind, uint64_t step, const ebb_blob *body) {
    if (seq == 0) seq = ebb__sqlite_number(f);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_INSERT, "iiiiizb", key, seq, execution, step, (uint64_t)kind,
                          body);
    ebb__sqlite_effect_add(f, EBB__EFFECT_MESSAGE, key)->at = seq;
}

void ebb__sqlite_timer(ebb__sqlite_file *f, uint64_t key, uint64_t execution, const ebb_provider_timer *t) {
    /* A time past the range of SQLite's integers would count as a negative one. */
    const uint64_t due = t->due < INT64_MAX ? t->due : INT64_MAX;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_TIMER_INSERT, "iiii", key, execution, t->step, due);
    ebb__sqlite_effect_add(f, EBB__EFFECT_TIMER, key)->at = due;
}

void ebb__sqlite_values(ebb__sqlite_file *f, uint64_t key, const ebb_provider_value *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (values[i].value.at == NULL)
            (void)ebb__sqlite_run(&f->db, EBB__SQL_VALUE_DELETE, "it", key, values[i].key);
        else (void)ebb__sqlite_run(&f->db, EBB__SQL_VALUE_SET, "itb", key, values[i].key, &values[i].value);
    }
}

typedef struct receiver {
    uint64_t key, execution; /* key 0: there is none */
    bool ended;
} receiver;

static receiver find(ebb__sqlite_file *f, const char *id) {
    receiver r = {0, 0, false};
    if (ebb__sqlite_run(&f->db, EBB__SQL_INST_BY_ID, "t", id) != SQLITE_ROW) return r;
    sqlite3_stmt *s = ebb__sqlite_at(&f->db, EBB__SQL_INST_BY_ID);
    ebb_instance_state state = EBB_INSTANCE_FAILED;
    (void)ebb__instance_state_of(ebb__sqlite_string(s, 3), &state);
    r.key = ebb__sqlite_u64(s, 0);
    r.execution = ebb__sqlite_u64(s, 2);
    r.ended = state != EBB_INSTANCE_RUNNING && state != EBB_INSTANCE_SUSPENDED;
    ebb__sqlite_end(&f->db, EBB__SQL_INST_BY_ID);
    return r;
}

static void start_child(ebb__sqlite_file *f, uint64_t own, uint64_t execution,
                        const ebb_provider_outgoing *o) {
    if (find(f, o->id).key != 0) {
        ebb__sqlite_message(f, own, 0, execution, EBB_PROVIDER_MESSAGE_CHILD, o->step, &o->exists);
        return;
    }
    if (ebb__sqlite_run(&f->db, EBB__SQL_INST_BY_KEY, "i", own) != SQLITE_ROW) return;
    const uint64_t key = ebb__sqlite_number(f);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_INSERT, "ittiti", key, o->id, o->name, (uint64_t)o->version,
                          ebb__sqlite_string(ebb__sqlite_at(&f->db, EBB__SQL_INST_BY_KEY), 0), f->now);
    ebb__sqlite_end(&f->db, EBB__SQL_INST_BY_KEY);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", key, (uint64_t)EBB__DATA_INPUT, &o->input);
    ebb__sqlite_message(f, key, 0, 1, EBB_PROVIDER_MESSAGE_START, 0, &o->body);
}

uint32_t ebb__sqlite_outgoing(ebb__sqlite_file *f, uint64_t own, uint64_t execution,
                              const ebb_provider_outgoing *out, size_t n) {
    uint32_t dropped = 0;
    for (size_t i = 0; i < n; i++) {
        const ebb_provider_outgoing *o = &out[i];
        if (o->kind == EBB_PROVIDER_MESSAGE_START) {
            start_child(f, own, execution, o);
            continue;
        }
        const receiver r = find(f, o->id);
        if (r.key == 0 || r.ended || (o->execution != 0 && o->execution != r.execution)) dropped++;
        else ebb__sqlite_message(f, r.key, 0, o->execution, o->kind, o->step, &o->body);
    }
    return dropped;
}

/* ---- applied -------------------------------------------------------------------------------------------------------- */

static void on_acked(ebb__sqlite_file *f, const ebb__sqlite_effect *e) {
    ebb__sqlite_entry *at = ebb__sqlite_entry_find(&f->ready, e->key);
    if (at == NULL) return;
    at->attempts = 0;
    at->unread = (uint32_t)e->activity;
    if (at->execution == e->execution && at->turn < e->node) at->turn = e->node;
    if (at->node == NULL || ebb__token_is_none(e->token) || !ebb__token_is(at->token, e->token)) return;
    at->again |= at->given > e->at;
    ebb__sqlite_lock_release(&f->claims, at->slot);
    at->slot = 0;
    ebb__sqlite_entry_release(&f->ready, at, e->charged);
}

static void on_ended(ebb__sqlite_file *f, uint64_t key) {
    ebb__sqlite_entry *at = ebb__sqlite_entry_find(&f->ready, key);
    if (at == NULL) return;
    ebb__sqlite_lock_release(&f->claims, at->slot);
    ebb__sqlite_entry_free(&f->ready, at);
}

static void on_freed(ebb__sqlite_file *f, uint64_t key) {
    ebb__sqlite_entry *at = ebb__sqlite_entry_find(&f->ready, key);
    if (at == NULL) return;
    at->attempts = 0;
    at->counted = false;
    at->again |= at->running;
    ebb__sqlite_lock_release(&f->claims, at->slot);
    at->slot = 0;
    ebb__sqlite_entry_release(&f->ready, at, false);
}

static void on_retyped(ebb__sqlite_file *f, uint64_t key) {
    ebb__sqlite_entry *at = ebb__sqlite_entry_find(&f->ready, key);
    if (at == NULL) return;
    ebb__sqlite_entry_type(&f->ready, at, NULL, 0);
}

static void on_timer(ebb__sqlite_file *f, const ebb__sqlite_effect *e) {
    if (e->at <= f->timer_seen) ebb__sqlite_entry_wake(&f->ready, e->key, f->now, true);
    else if (e->at < f->timer_next) f->timer_next = e->at;
}

static void hint(ebb__sqlite_file *f, const ebb__sqlite_effect *e) {
    static const uint8_t kinds[] = {
        [EBB__EFFECT_MESSAGE] = EBB_PROVIDER_HINT_TURNS, [EBB__EFFECT_FREED] = EBB_PROVIDER_HINT_TURNS,
        [EBB__EFFECT_LEFT] = EBB_PROVIDER_HINT_TURNS,    [EBB__EFFECT_WORK] = EBB_PROVIDER_HINT_WORK,
        [EBB__EFFECT_GONE] = EBB_PROVIDER_HINT_GONE,     [EBB__EFFECT_ENDED] = EBB_PROVIDER_HINT_ENDED};
    if (e->kind >= sizeof kinds || kinds[e->kind] == 0) return;
    ebb__sqlite_hint(f, &(ebb_provider_hint){.kind = kinds[e->kind],
                                             .cause = e->cause,
                                             .key = e->key,
                                             .execution = e->execution,
                                             .activity = e->activity,
                                             .queue = e->queue != NULL ? e->queue : "",
                                             .committed = f->committed});
}

static void apply(ebb__sqlite_file *f, const ebb__sqlite_effect *e) {
    switch ((ebb__sqlite_effect_kind)e->kind) {
    case EBB__EFFECT_MESSAGE: ebb__sqlite_entry_wake(&f->ready, e->key, e->at, e->charged); break;
    case EBB__EFFECT_TIMER: on_timer(f, e); break;
    case EBB__EFFECT_WORK: break;
    case EBB__EFFECT_HELD:
        (void)ebb__sqlite_held_put(f, e);
        break; /* lost: the row is free again at the next open */
    case EBB__EFFECT_UNHELD: ebb__sqlite_held_remove(f, e->token); break;
    case EBB__EFFECT_GONE: break;
    case EBB__EFFECT_ENDED: on_ended(f, e->key); break;
    case EBB__EFFECT_ACKED: on_acked(f, e); break;
    case EBB__EFFECT_RETYPED: on_retyped(f, e->key); break;
    case EBB__EFFECT_FREED: on_freed(f, e->key); break;
    case EBB__EFFECT_LEFT: ebb__sqlite_node_left(f, e->node); break;
    }
}

void ebb__sqlite_effects_apply(ebb__sqlite_file *f) {
    for (size_t i = 0; i < f->effects_n; i++) apply(f, &f->effects[i]);
    for (size_t i = 0; i < f->effects_n; i++) {
        const ebb__sqlite_effect *e = &f->effects[i];
        if (i > 0 && e->kind == EBB__EFFECT_MESSAGE && e[-1].kind == e->kind) continue;
        hint(f, e);
    }
    f->effects_n = 0;
}

/* ---- timers, and what is ready at an open ---------------------------------------------------------------------------- */

void ebb__sqlite_notice_timers(ebb__sqlite_file *f) {
    if (f->timer_next > f->now) return;
    int rc = ebb__sqlite_run(&f->db, EBB__SQL_TIMER_DUE, "ii", f->timer_seen, f->now);
    for (; rc == SQLITE_ROW; rc = ebb__sqlite_next(&f->db, EBB__SQL_TIMER_DUE))
        ebb__sqlite_entry_wake(&f->ready, ebb__sqlite_u64(ebb__sqlite_at(&f->db, EBB__SQL_TIMER_DUE), 0),
                               f->now, true);
    if (ebb__sqlite_run(&f->db, EBB__SQL_TIMER_NEXT, "i", f->now) == SQLITE_ROW) {
        sqlite3_stmt *s = ebb__sqlite_at(&f->db, EBB__SQL_TIMER_NEXT);
        f->timer_next = sqlite3_column_type(s, 0) != SQLITE_NULL ? ebb__sqlite_u64(s, 0) : UINT64_MAX;
        ebb__sqlite_end(&f->db, EBB__SQL_TIMER_NEXT);
    }
    if (f->db.failed == 0) f->timer_seen = f->now;
}

void ebb__sqlite_ready_load(ebb__sqlite_file *f) {
    f->ready.lost = false;
    f->timer_seen = f->timer_next = 0;
    int rc = ebb__sqlite_run(&f->db, EBB__SQL_INBOX_ALL, "");
    for (; rc == SQLITE_ROW; rc = ebb__sqlite_next(&f->db, EBB__SQL_INBOX_ALL)) {
        sqlite3_stmt *s = ebb__sqlite_at(&f->db, EBB__SQL_INBOX_ALL);
        ebb__sqlite_entry_wake(&f->ready, ebb__sqlite_u64(s, 0), ebb__sqlite_u64(s, 1), false);
        ebb__sqlite_entry *e = ebb__sqlite_entry_find(&f->ready, ebb__sqlite_u64(s, 0));
        if (e == NULL || e->node != NULL) continue;
        ebb__sqlite_entry_type(&f->ready, e, ebb__sqlite_string(s, 2), (uint32_t)ebb__sqlite_u64(s, 3));
        e->attempts = (uint32_t)ebb__sqlite_u64(s, 4);
        ebb__sqlite_entry_place(&f->ready, e);
    }
    if (f->db.failed != 0) f->ready.lost = true;
}
