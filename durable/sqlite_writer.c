/* The threads of a file: the writer with its group commits, and the readers.
 *
 * A batch: begin, each member in a savepoint, commit (with EBB_DURABILITY_FULL, this is the sync), effects, answers, then
 * the calls that write nothing. Nothing is answered before the commit. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "durable/sqlite.h"

/* ---- queue ---------------------------------------------------------------------------------------------------------- */

static bool is_read(ebb_provider_op op) {
    return op >= EBB_PROVIDER_HISTORY && op <= EBB_PROVIDER_VALUE;
}

void ebb__sqlite_queue(ebb__sqlite_store *s, ebb_provider_call *c) {
    ebb__sqlite_file *f = s->file;
    ebb__sqlite_member *m = ebb_provider_alloc(c, sizeof *m);
    if (m == NULL) {
        ebb_provider_done(c, EBB_ERR_NOMEM, NULL);
        return;
    }
    memset(m, 0, sizeof *m);
    m->store = s;
    c->mine = m;
    (void)pthread_mutex_lock(&f->lock);
    ebb__call_queue_push(is_read(c->op) ? &f->reads : &f->writes, c);
    (void)pthread_cond_signal(is_read(c->op) ? &f->asked : &f->written);
    (void)pthread_mutex_unlock(&f->lock);
}

static void answer(ebb__sqlite_db *db, ebb_provider_call *c, ebb_status st) {
    const ebb__sqlite_member *m = c->mine;
    const char *text = st == EBB_OK ? NULL : m->text[0] != 0 ? m->text : db != NULL ? db->text : NULL;
    ebb_provider_done(c, st, text);
}

/* ---- members --------------------------------------------------------------------------------------------------------- */

/* Calls that write nothing: they are done after the commit of the batch, and see it. */
static bool is_later(ebb_provider_op op) {
    return op == EBB_PROVIDER_JOIN || op == EBB_PROVIDER_RENEW || op == EBB_PROVIDER_FETCH_TURNS ||
           op == EBB_PROVIDER_ABANDON_TURNS || op == EBB_PROVIDER_OUTSTANDING;
}

/* What makes a file larger, and can wait. */
static bool grows(const ebb_provider_call *c) {
    return c->op == EBB_PROVIDER_START ||
           (c->op == EBB_PROVIDER_SEND &&
            ((const ebb_provider_send_call *)c)->kind == EBB_PROVIDER_MESSAGE_SIGNAL);
}

static ebb_status run(ebb__sqlite_file *f, ebb_provider_call *c) {
    switch (c->op) {
    case EBB_PROVIDER_JOIN: return ebb__sqlite_join(f, (ebb_provider_join_call *)c);
    case EBB_PROVIDER_RENEW: return ebb__sqlite_renew(f, (ebb_provider_renew_call *)c);
    case EBB_PROVIDER_LEAVE: return ebb__sqlite_leave(f, (ebb_provider_leave_call *)c);
    case EBB_PROVIDER_FETCH_TURNS: return ebb__sqlite_fetch_turns(f, (ebb_provider_fetch_turns_call *)c);
    case EBB_PROVIDER_ACK_TURN: return ebb__sqlite_ack_turn(f, (ebb_provider_ack_turn_call *)c);
    case EBB_PROVIDER_ABANDON_TURNS:
        return ebb__sqlite_abandon_turns(f, (ebb_provider_abandon_turns_call *)c);
    case EBB_PROVIDER_FETCH_WORK: return ebb__sqlite_fetch_work(f, (ebb_provider_fetch_work_call *)c);
    case EBB_PROVIDER_ACK_WORK: return ebb__sqlite_ack_work(f, (ebb_provider_ack_work_call *)c);
    case EBB_PROVIDER_ABANDON_WORK: return ebb__sqlite_abandon_work(f, (ebb_provider_abandon_work_call *)c);
    case EBB_PROVIDER_OUTSTANDING: return ebb__sqlite_outstanding(f, (ebb_provider_outstanding_call *)c);
    case EBB_PROVIDER_START: return ebb__sqlite_start(f, (ebb_provider_start_call *)c);
    case EBB_PROVIDER_SEND: return ebb__sqlite_send(f, (ebb_provider_send_call *)c);
    case EBB_PROVIDER_MARK: return ebb__sqlite_mark(f, (ebb_provider_mark_call *)c);
    case EBB_PROVIDER_RESET: return ebb__sqlite_reset(f, (ebb_provider_reset_call *)c);
    case EBB_PROVIDER_REMOVE: return ebb__sqlite_remove(f, (ebb_provider_remove_call *)c);
    default: return EBB_ERR_INVALID;
    }
}

static ebb_status refused(ebb__sqlite_file *f, ebb_provider_call *c) {
    const ebb__sqlite_member *m = c->mine;
    if (f->fatal[0] != 0) return ebb__sqlite_say(c, EBB_ERR_STORE, "%s", f->fatal);
    if (m->store->read_only && !is_later(c->op))
        return ebb__sqlite_say(c, EBB_ERR_CLOSED, "the store is open for reading only");
    if (f->full && grows(c))
        return ebb__sqlite_say(c, EBB_ERR_UNAVAILABLE, "the disk of %.120s is full", f->path);
    return EBB_OK;
}

/* Whether the transaction is lost with this failure, and not only the member. */
static bool is_lost(const ebb__sqlite_file *f) {
    return f->db.failed != 0 && (ebb__sqlite_fault_of(f->db.failed, f->db.system) != EBB__SQLITE_FAULT_CALL ||
                                 sqlite3_get_autocommit(f->db.at) != 0);
}

static void undo_member(ebb__sqlite_file *f) {
    const int failed = f->db.failed;
    f->db.failed = 0;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_MEMBER_UNDO, "");
    (void)ebb__sqlite_run(&f->db, EBB__SQL_MEMBER_KEEP, "");
    if (failed != 0 && f->db.failed == 0) ebb__sqlite_forgive(&f->db);
}

static ebb_status run_member(ebb__sqlite_file *f, ebb_provider_call *c) {
    const size_t effects = f->effects_n;
    ebb__sqlite_member *m = c->mine;
    ebb_status st = refused(f, c);
    if (st != EBB_OK) return st;
    f->effects_lost = false;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_MEMBER, "");
    st = f->db.failed == 0 ? run(f, c) : ebb__sqlite_status(&f->db);
    if (st == EBB_OK && f->effects_lost) st = EBB_ERR_NOMEM;
    if (is_lost(f)) return st != EBB_OK ? st : ebb__sqlite_status(&f->db);
    if (st == EBB_OK && f->db.failed == 0) {
        (void)ebb__sqlite_run(&f->db, EBB__SQL_MEMBER_KEEP, "");
        f->stats.bytes += c->bytes;
        return EBB_OK;
    }
    if (st == EBB_OK) st = ebb__sqlite_status(&f->db);
    if (m->text[0] == 0) (void)ebb__sqlite_say(c, st, "%s", f->db.text);
    undo_member(f);
    f->effects_n = effects;
    return st;
}

/* ---- failures of the whole ------------------------------------------------------------------------------------------- */

static void die(ebb__sqlite_file *f, const char *why) {
    char text[sizeof f->fatal];
    (void)snprintf(text, sizeof text, "%.100s can't be used any more: %.120s", f->path, why);
    (void)pthread_mutex_lock(&f->lock);
    memcpy(f->fatal, text, sizeof text);
    (void)pthread_mutex_unlock(&f->lock);
}

/* A sync that has failed is the end: the kernel may have dropped what was not written, and says so once. Damage may be
 * that of a read that has failed: what the file has is read again first. */
static void recover(ebb__sqlite_file *f) {
    const ebb__sqlite_fault fault = ebb__sqlite_fault_of(f->db.failed, f->db.system);
    char why[sizeof f->db.text];
    memcpy(why, f->db.text, sizeof why);
    f->db.failed = 0;
    if (f->db.at != NULL && sqlite3_get_autocommit(f->db.at) == 0)
        (void)ebb__sqlite_run(&f->db, EBB__SQL_ROLLBACK, "");
    ebb__sqlite_forgive(&f->db);
    switch (fault) {
    case EBB__SQLITE_FAULT_SYNC: die(f, why); break;
    case EBB__SQLITE_FAULT_FULL:
        f->full = true;
        ebb__sqlite_ballast_use(f->path, f->vfs);
        break;
    case EBB__SQLITE_FAULT_IO: (void)ebb__sqlite_reopen(f, false); break;
    case EBB__SQLITE_FAULT_DAMAGED:
        if (f->damaged++ >= 2 || ebb__sqlite_reopen(f, true) == EBB_ERR_STORE) die(f, why);
        break;
    default: break;
    }
}

/* ---- a batch ---------------------------------------------------------------------------------------------------------- */

static void reserve_clock(ebb__sqlite_file *f) {
    if (f->reserved > f->now + EBB_SECOND / 2) return;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_CLOCK_SET, "i", f->now + EBB_SECOND);
}

static void follow_durability(ebb__sqlite_file *f) {
    (void)pthread_mutex_lock(&f->lock);
    const bool full = f->full_sync;
    f->now = ebb__sqlite_clock(f);
    (void)pthread_mutex_unlock(&f->lock);
    if (full == f->syncs || f->db.at == NULL) return;
    if (ebb__sqlite_exec(&f->db, full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL") ==
        SQLITE_OK)
        f->syncs = full;
}

/* Without a connection it is opened again, so that a store goes on when its disk does. */
static bool can_write(ebb__sqlite_file *f) {
    if (f->fatal[0] == 0 && f->db.at == NULL) (void)ebb__sqlite_reopen(f, false);
    if (f->fatal[0] == 0 && f->full && ebb__sqlite_space(f)) f->full = false;
    if (f->fatal[0] == 0) follow_durability(f);
    return f->fatal[0] == 0 && f->db.at != NULL;
}

typedef struct batch {
    ebb__call_queue writes, later;
    ebb_status status[EBB__SQLITE_BATCH];
} batch;

static uint64_t boot_now(ebb__sqlite_file *f) {
    (void)pthread_mutex_lock(&f->lock);
    const ebb_provider_host *h = f->stores != NULL ? f->stores->host : NULL;
    const uint64_t now = h != NULL ? h->boot(h->ctx) : 0;
    (void)pthread_mutex_unlock(&f->lock);
    return now;
}

static void commit(ebb__sqlite_file *f, batch *b) {
    uint32_t i = 0, ok = 0;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_BEGIN, "");
    reserve_clock(f);
    for (ebb_provider_call *c = b->writes.first; c != NULL; c = c->next, i++) {
        if (is_lost(f)) break;
        b->status[i] = run_member(f, c);
        ok += b->status[i] == EBB_OK;
    }
    (void)ebb__sqlite_run(&f->db, EBB__SQL_COMMIT, "");
    if (f->db.failed == 0) {
        f->committed = boot_now(f);
        if (f->reserved <= f->now + EBB_SECOND / 2) f->reserved = f->now + EBB_SECOND;
        f->damaged = 0;
        f->stats.commits += ok != 0;
        f->stats.members += ok;
        ebb__sqlite_effects_apply(f);
        return;
    }
    /* Nothing of the batch is there, but after a sync that has failed nobody knows. */
    const ebb_status st = ebb__sqlite_status(&f->db);
    char why[sizeof f->db.text];
    memcpy(why, f->db.text, sizeof why);
    f->effects_n = 0;
    recover(f);
    i = 0;
    for (ebb_provider_call *c = b->writes.first; c != NULL; c = c->next, i++) {
        (void)ebb__sqlite_say(c, st, "%s", f->fatal[0] != 0 ? f->fatal : why);
        b->status[i] = st;
    }
}

static void refuse_all(ebb__sqlite_file *f, batch *b) {
    uint32_t i = 0;
    for (ebb_provider_call *c = b->writes.first; c != NULL; c = c->next, i++) {
        b->status[i] = refused(f, c);
        if (b->status[i] == EBB_OK)
            b->status[i] = ebb__sqlite_say(c, EBB_ERR_UNAVAILABLE, "%.120s can't be opened now", f->path);
    }
}

static void again(ebb__sqlite_file *f, ebb_provider_call *c) {
    ((ebb__sqlite_member *)c->mine)->more = false;
    (void)pthread_mutex_lock(&f->lock);
    ebb__call_queue_push(&f->writes, c);
    (void)pthread_mutex_unlock(&f->lock);
}

static void answer_all(ebb__sqlite_file *f, batch *b) {
    for (uint32_t i = 0; b->writes.first != NULL; i++) {
        ebb_provider_call *c = ebb__call_queue_pop(&b->writes);
        if (b->status[i] == EBB_OK && ((ebb__sqlite_member *)c->mine)->more) again(f, c);
        else answer(NULL, c, b->status[i]);
    }
}

static void do_later(ebb__sqlite_file *f, batch *b, bool can) {
    while (b->later.first != NULL) {
        ebb_provider_call *c = ebb__call_queue_pop(&b->later);
        ebb_status st = refused(f, c);
        if (st == EBB_OK && !can)
            st = ebb__sqlite_say(c, EBB_ERR_UNAVAILABLE, "%.120s can't be opened now", f->path);
        if (st == EBB_OK) st = run(f, c);
        ebb__sqlite_db *db = &f->db;
        answer(db, c, st);
        if (f->db.failed != 0) recover(f);
    }
}

static void sort(ebb__call_queue *from, batch *b) {
    memset(b, 0, sizeof b->writes + sizeof b->later);
    while (from->first != NULL) {
        ebb_provider_call *c = ebb__call_queue_pop(from);
        ebb__call_queue_push(is_later(c->op) ? &b->later : &b->writes, c);
    }
}

void ebb__sqlite_count(ebb__sqlite_file *f) {
    f->stats.statements = f->db.statements;
    (void)pthread_mutex_lock(&f->lock);
    f->shown = f->stats;
    (void)pthread_mutex_unlock(&f->lock);
}

static void run_batch(ebb__sqlite_file *f, ebb__call_queue *taken) {
    batch b;
    sort(taken, &b);
    bool can = can_write(f);
    if (b.writes.first != NULL) {
        if (can) commit(f, &b);
        else refuse_all(f, &b);
        ebb__sqlite_count(f);
        answer_all(f, &b);
    }
    can = can && f->fatal[0] == 0 && f->db.at != NULL;
    do_later(f, &b, can);
    ebb__arena_reset(&f->arena);
    if (f->fatal[0] == 0 && f->db.at != NULL) {
        ebb__sqlite_checkpoint(f);
        if (f->db.failed != 0) recover(f);
    }
}

/* ---- the writer ------------------------------------------------------------------------------------------------------- */

/* What becomes visible without a call: timers that are due, work that was given back with a delay, leases that lapse. */
static void hint_time(ebb__sqlite_file *f) {
    (void)pthread_mutex_lock(&f->lock);
    f->now = ebb__sqlite_clock(f);
    (void)pthread_mutex_unlock(&f->lock);
    if (f->timer_next <= f->now)
        ebb__sqlite_hint(f, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_TURNS, .queue = ""});
    if (f->held_next <= f->now)
        ebb__sqlite_hint(f, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_WORK, .queue = ""});
}

/* Waits for a call, or until something is due. Called and returns with the lock. True: something is due. */
static bool wait_for_calls(ebb__sqlite_file *f, uint64_t hinted) {
    const uint64_t now = f->stores != NULL ? ebb__sqlite_clock(f) : 0;
    uint64_t due = UINT64_MAX; /* after a hint nobody may have come for what was due */
    if (f->timer_next > hinted) due = f->timer_next;
    if (f->held_next > hinted && f->held_next < due) due = f->held_next;
    if (due <= now) return true;
    uint64_t span = due - now < EBB_SECOND ? due - now : EBB_SECOND;
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    span += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(span / EBB_SECOND);
    at.tv_nsec = (long)(span % EBB_SECOND);
    (void)pthread_cond_timedwait(&f->written, &f->lock, &at);
    return false;
}

void *ebb__sqlite_writer(void *file) {
    ebb__sqlite_file *f = file;
    uint64_t hinted = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (;;) {
        ebb__call_queue taken = {NULL, NULL, 0, 0};
        const bool due = f->writes.first == NULL && !f->stopping && wait_for_calls(f, hinted);
        if (f->stopping && f->writes.first == NULL) break;
        if (f->writes.first != NULL)
            ebb__call_queue_take(&f->writes, &taken, EBB__SQLITE_BATCH, EBB__SQLITE_BATCH_BYTES);
        (void)pthread_mutex_unlock(&f->lock);
        if (due) hint_time(f);
        if (due) hinted = f->now;
        if (taken.first != NULL) run_batch(f, &taken);
        (void)pthread_mutex_lock(&f->lock);
    }
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- readers ---------------------------------------------------------------------------------------------------------- */

static ebb_status read_one(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c) {
    char fatal[sizeof f->fatal];
    (void)pthread_mutex_lock(&f->lock);
    memcpy(fatal, f->fatal, sizeof fatal);
    (void)pthread_mutex_unlock(&f->lock);
    if (fatal[0] != 0) return ebb__sqlite_say(c, EBB_ERR_STORE, "%s", fatal);
    if (db->at == NULL) (void)ebb__sqlite_db_open(db, f->path, f->vfs, true);
    const ebb_status st = ebb__sqlite_read(f, db, c);
    if (db->failed == 0 || ebb__sqlite_fault_of(db->failed, db->system) != EBB__SQLITE_FAULT_DAMAGED)
        return st;
    char why[sizeof db->text];
    memcpy(why, db->text, sizeof why);
    ebb__sqlite_db_close(db); /* perhaps a read has failed: what is on the disk is read again */
    (void)ebb__sqlite_db_open(db, f->path, f->vfs, true);
    const bool sound = ebb__sqlite_is_sound(db);
    return ebb__sqlite_say(c, sound ? EBB_ERR_UNAVAILABLE : EBB_ERR_CORRUPT, "%.100s: %.90s", f->path, why);
}

void *ebb__sqlite_reader(void *file) {
    ebb__sqlite_file *f = file;
    ebb__sqlite_db db;
    memset(&db, 0, sizeof db);
    (void)pthread_mutex_lock(&f->lock);
    while (!f->stopping || f->reads.first != NULL) {
        if (f->reads.first == NULL || f->held_back) {
            (void)pthread_cond_wait(&f->asked, &f->lock);
            continue;
        }
        ebb_provider_call *c = ebb__call_queue_pop(&f->reads);
        f->reading++;
        (void)pthread_mutex_unlock(&f->lock);
        const ebb_status st = ebb__call_is_wanted(c) ? read_one(f, &db, c) : EBB_CANCELLED;
        answer(&db, c, st);
        if (db.failed != 0) ebb__sqlite_db_close(&db); /* the next read opens it again */
        ebb__sqlite_forgive(&db);
        (void)pthread_mutex_lock(&f->lock);
        if (--f->reading == 0) (void)pthread_cond_signal(&f->idle);
    }
    (void)pthread_mutex_unlock(&f->lock);
    ebb__sqlite_db_close(&db);
    return NULL;
}
