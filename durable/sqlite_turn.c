/* Turns: fetched and claimed in memory, acknowledged in one transaction. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "durable/sqlite.h"

/* ---- ack ------------------------------------------------------------------------------------------------------ */

static void acked(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c, bool keep) {
    ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_ACKED, c->key);
    e->token = c->token;
    e->charged = keep;
    e->at = c->acked_n;
    e->activity = c->unread;
    e->execution = c->execution;
    e->node = c->turn;
}

/* Nothing was inserted: the same ack has done it before, or another one has. */
static ebb_status fenced(ebb__sqlite_file *f, ebb_provider_ack_turn_call *c) {
    bool same = false;
    if (ebb__sqlite_run(&f->db, EBB__SQL_TURN_ACK, "iii", c->key, c->execution, c->turn) == SQLITE_ROW) {
        same = ebb__token_is(ebb__sqlite_token(ebb__sqlite_at(&f->db, EBB__SQL_TURN_ACK), 0), c->ack_id);
        ebb__sqlite_end(&f->db, EBB__SQL_TURN_ACK);
    }
    if (f->db.failed != 0) return ebb__sqlite_status(&f->db);
    if (!same)
        return ebb__sqlite_say(&c->call, EBB_ERR_FENCED,
                               "turn %llu of execution %llu is not the next of this instance",
                               (unsigned long long)c->turn, (unsigned long long)c->execution);
    acked(f, c, false);
    return EBB_OK;
}

/* Whether it was inserted. The claim mostly knows the last turn, so that the key alone decides; otherwise the row does. */
static bool insert_turn(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    const ebb__sqlite_entry *e = ebb__sqlite_entry_find(&f->ready, c->key);
    const bool next = e != NULL && e->known && e->execution == c->execution && e->turn + 1 == c->turn;
    (void)ebb__sqlite_run(&f->db, next ? EBB__SQL_TURN_PUT : EBB__SQL_TURN_INSERT, "iiiikb", c->key,
                          c->execution, c->turn, c->at, &c->ack_id, &c->body);
    if (c->ends != 0 || c->next != NULL) ebb__sqlite_entry_unknow(&f->ready, c->key);
    return f->db.failed == 0 && sqlite3_changes(f->db.at) != 0;
}

static bool work_is_done(ebb__sqlite_file *f, uint64_t key, const ebb_provider_work_done *d) {
    const ebb__sqlite_held *h = ebb__sqlite_held_find(f, d->token);
    if (h == NULL) return false;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_END, "iiik", key, d->execution, d->activity, &d->token);
    if (f->db.failed != 0 || sqlite3_changes(f->db.at) == 0) return false;
    ebb__sqlite_effect_add(f, EBB__EFFECT_UNHELD, key)->token = d->token;
    return true;
}

static void delete_messages(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    for (size_t i = 0; i < c->acked_n; i++) {
        const ebb_provider_message_key *k = &c->acked[i];
        if (k->kind == EBB_PROVIDER_MESSAGE_TIMER)
            (void)ebb__sqlite_run(&f->db, EBB__SQL_TIMER_DELETE, "iii", c->key, c->execution, k->seq);
        else (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_DELETE, "ii", c->key, k->seq);
    }
}

static void cancel_work(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c, size_t i) {
    const ebb_provider_cancelled *w = &c->cancelled[i];
    int rc = ebb__sqlite_run(&f->db, EBB__SQL_WORK_CANCEL, "iii", c->key, c->execution, w->activity);
    while (rc == SQLITE_ROW) {
        ebb__sqlite_effect_add(f, EBB__EFFECT_UNHELD, c->key)->token =
            ebb__sqlite_token(ebb__sqlite_at(&f->db, EBB__SQL_WORK_CANCEL), 0);
        ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_GONE, c->key);
        e->execution = c->execution;
        e->activity = w->activity;
        e->cause = w->cause;
        rc = ebb__sqlite_next(&f->db, EBB__SQL_WORK_CANCEL);
    }
}

static void cancel_all(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    for (size_t i = 0; i < c->cancelled_n; i++) cancel_work(f, c, i);
    if (c->all_work) ebb__sqlite_work_drop(f, EBB__SQL_WORK_DROP_EXEC, c->key, c->execution, c->cause);
    for (size_t i = 0; i < c->timers_cancelled_n; i++)
        (void)ebb__sqlite_run(&f->db, EBB__SQL_TIMER_DELETE, "iii", c->key, c->execution,
                              c->timers_cancelled[i]);
    if (c->all_timers) (void)ebb__sqlite_run(&f->db, EBB__SQL_TIMER_DROP_EXEC, "ii", c->key, c->execution);
}

static void insert_all(ebb__sqlite_file *f, ebb_provider_ack_turn_call *c) {
    for (size_t i = 0; i < c->work_n && !c->all_work; i++)
        ebb__sqlite_work(f, c->key, c->execution, &c->work[i], c->node.id, c->lease);
    for (size_t i = 0; i < c->timers_n && !c->all_timers; i++)
        ebb__sqlite_timer(f, c->key, c->execution, &c->timers[i]);
    c->dropped = ebb__sqlite_outgoing(f, c->key, c->execution, c->outgoing, c->outgoing_n);
    ebb__sqlite_values(f, c->key, c->values, c->values_n);
    if (c->custom != NULL)
        (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", c->key, (uint64_t)EBB__DATA_CUSTOM,
                              c->custom);
}

/* The row of the instance changes only if something of it does: what a claim knows needs no statement. */
static void update_instance(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    const ebb__sqlite_entry *e = ebb__sqlite_entry_find(&f->ready, c->key);
    const bool known = e != NULL && e->node != NULL && ebb__token_is(e->token, c->token);
    if (c->turn == 1) {
        (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_VERSION, "iii", c->key, (uint64_t)c->version,
                              (uint64_t)c->semantics);
        (void)ebb__sqlite_effect_add(f, EBB__EFFECT_RETYPED, c->key);
    }
    if (c->ends != 0 || c->next != NULL) return;
    if (known && e->attempts == 0 && e->unread == c->unread) return;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_UNREAD, "ii", c->key, (uint64_t)c->unread);
}

static void end_instance(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_END, "itti", c->key, ebb_instance_state_name(c->ends),
                          c->text != NULL ? c->text : "", f->now);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", c->key, (uint64_t)EBB__DATA_RESULT, &c->result);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_DROP, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DEDUP_DROP, "i", c->key);
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_ENDED, c->key);
}

static void begin_next(ebb__sqlite_file *f, const ebb_provider_ack_turn_call *c) {
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INST_NEXT, "iii", c->key, (uint64_t)c->next_version,
                          (uint64_t)c->unread);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DATA_SET, "iib", c->key, (uint64_t)EBB__DATA_INPUT,
                          &c->next_input);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_DROP_EXEC, "i", c->key);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_DEDUP_DROP, "i", c->key);
    uint64_t first = 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_INBOX_FIRST, "i", c->key) == SQLITE_ROW) {
        first = ebb__sqlite_u64(ebb__sqlite_at(&f->db, EBB__SQL_INBOX_FIRST), 0);
        ebb__sqlite_end(&f->db, EBB__SQL_INBOX_FIRST);
    }
    ebb__sqlite_message(f, c->key, first != 0 ? first - 1 : 0, c->execution + 1, EBB_PROVIDER_MESSAGE_START,
                        0, c->next);
    (void)ebb__sqlite_effect_add(f, EBB__EFFECT_RETYPED, c->key);
}

ebb_status ebb__sqlite_ack_turn(ebb__sqlite_file *f, ebb_provider_ack_turn_call *c) {
    const bool inserted = insert_turn(f, c);
    if (f->db.failed == 0 && !inserted) return fenced(f, c);
    for (size_t i = 0; i < c->done_n && f->db.failed == 0; i++) {
        if (work_is_done(f, c->key, &c->done[i]) || f->db.failed != 0) continue;
        c->gone_at = i;
        return ebb__sqlite_say(&c->call, EBB_ERR_GONE,
                               "activity %llu, which this turn has the end of, is gone",
                               (unsigned long long)c->done[i].activity);
    }
    delete_messages(f, c);
    cancel_all(f, c);
    insert_all(f, c);
    update_instance(f, c);
    if (c->ends != 0) end_instance(f, c);
    else if (c->next != NULL) begin_next(f, c);
    acked(f, c, c->keep && c->ends == 0);
    f->stats.dropped += c->dropped;
    return ebb__sqlite_status(&f->db);
}

/* ---- fetch ---------------------------------------------------------------------------------------------------- */

enum { ITEM_BYTES = 8 << 20, LOOKS = 1000 };

typedef struct fetch {
    ebb__sqlite_file *file;
    ebb_provider_fetch_turns_call *call;
    ebb__sqlite_node *node;
    ebb_provider_message *messages; /* room for the most of an item */
    uint32_t looks;
} fetch;

static bool read_message(fetch *q, sqlite3_stmt *s, ebb_provider_message *m) {
    ebb_blob body = ebb__sqlite_blob(s, 11);
    memset(m, 0, sizeof *m);
    m->at.seq = ebb__sqlite_u64(s, 7);
    m->at.kind = (uint8_t)sqlite3_column_int(s, 8);
    m->execution = ebb__sqlite_u64(s, 9);
    m->step = ebb__sqlite_u64(s, 10);
    m->body.n = body.n;
    m->body.at = ebb_provider_copy(&q->call->call, body.at, body.n);
    return m->body.at != NULL;
}

static bool read_head(fetch *q, sqlite3_stmt *s, ebb__sqlite_entry *e, ebb_provider_turn_item *item) {
    const char *id = ebb__sqlite_string(s, 0), *name = ebb__sqlite_string(s, 1);
    item->key = e->key;
    item->id = ebb_provider_copy(&q->call->call, id, strlen(id));
    item->name = ebb_provider_copy(&q->call->call, name, strlen(name));
    item->version = (uint32_t)ebb__sqlite_u64(s, 2);
    item->execution = ebb__sqlite_u64(s, 3);
    e->attempts = (uint32_t)ebb__sqlite_u64(s, 4);
    item->attempts = e->attempts + 1;
    e->unread = (uint32_t)ebb__sqlite_u64(s, 5);
    item->turn = ebb__sqlite_u64(s, 6);
    e->execution = item->execution;
    e->turn = item->turn;
    e->known = true;
    ebb__sqlite_entry_type(&q->file->ready, e, name, item->version);
    return item->id != NULL && item->name != NULL;
}

/* Messages of the inbox. False: no memory. */
static bool read_inbox(fetch *q, ebb__sqlite_entry *e, ebb_provider_turn_item *item, bool *more) {
    ebb__sqlite_db *db = &q->file->db;
    const uint32_t most = q->call->messages;
    uint64_t bytes = 0;
    bool fits = true;
    memset(item, 0, sizeof *item);
    *more = false;
    int rc = ebb__sqlite_run(db, EBB__SQL_FETCH, "ii", e->key, (uint64_t)most + 1);
    while (rc == SQLITE_ROW && fits && !*more) {
        sqlite3_stmt *s = ebb__sqlite_at(db, EBB__SQL_FETCH);
        if (item->key == 0) fits = read_head(q, s, e, item);
        if (sqlite3_column_type(s, 7) != SQLITE_NULL) {
            *more = item->messages_n == most || bytes > ITEM_BYTES;
            bytes += (uint64_t)sqlite3_column_bytes(s, 11);
            if (fits && !*more) fits = read_message(q, s, &q->messages[item->messages_n++]);
        }
        rc = ebb__sqlite_next(db, EBB__SQL_FETCH);
    }
    if (rc == SQLITE_ROW) ebb__sqlite_end(db, EBB__SQL_FETCH);
    return fits;
}

/* False: no timer is due. */
static bool read_timers(fetch *q, ebb__sqlite_entry *e, ebb_provider_turn_item *item, bool *more) {
    ebb__sqlite_db *db = &q->file->db;
    const uint32_t left = q->call->messages - (uint32_t)item->messages_n;
    uint32_t n = 0;
    int rc = ebb__sqlite_run(db, EBB__SQL_TIMER_OF, "iiii", e->key, item->execution, q->file->now,
                             (uint64_t)left + 1);
    for (; rc == SQLITE_ROW; rc = ebb__sqlite_next(db, EBB__SQL_TIMER_OF)) {
        if (n++ == left) {
            *more = true;
            continue;
        }
        ebb_provider_message *m = &q->messages[item->messages_n++];
        memset(m, 0, sizeof *m);
        m->at.kind = EBB_PROVIDER_MESSAGE_TIMER;
        m->at.seq = m->step = ebb__sqlite_u64(ebb__sqlite_at(db, EBB__SQL_TIMER_OF), 0);
        m->execution = item->execution;
    }
    return n != 0;
}

static void claim(fetch *q, ebb__sqlite_entry *e, ebb_provider_turn_item *item, bool more) {
    ebb__sqlite_entry_claim(e, q->node, ebb__sqlite_token_new(q->file));
    if (e->slot == 0) e->slot = ebb__sqlite_lock_claim(&q->file->claims, e->key);
    e->again = more;
    e->given = (uint32_t)item->messages_n;
    item->token = e->token;
    q->call->items_n++;
}

/* Looks at a ready instance: gives it, files it where it belongs, or forgets it. */
static ebb_status look(fetch *q, ebb__sqlite_entry *e, bool suspects) {
    ebb__sqlite_ready *r = &q->file->ready;
    ebb_provider_turn_item *item = &q->call->items[q->call->items_n];
    bool more;
    q->looks++;
    if (!read_inbox(q, e, item, &more)) return EBB_ERR_NOMEM;
    if (item->key != 0 && e->due) e->due = read_timers(q, e, item, &more);
    if (q->file->db.failed != 0) return ebb__sqlite_status(&q->file->db);
    if (item->key == 0 || item->messages_n == 0) {
        e->due = false;
        ebb__sqlite_entry_take(e);
        if (e->node == NULL || item->key == 0) ebb__sqlite_entry_free(r, e);
        return EBB_OK;
    }
    const bool runs = ebb__sqlite_node_runs(q->node, item->name, item->version);
    if (!runs || (e->attempts >= EBB__SQLITE_SUSPECT && !suspects)) {
        if (e->node == NULL) ebb__sqlite_entry_place(r, e);
        else ebb__sqlite_entry_release(r, e, false);
        return EBB_OK;
    }
    ebb_provider_message *copy = ebb_provider_alloc(&q->call->call, item->messages_n * sizeof *copy);
    if (copy == NULL) return EBB_ERR_NOMEM;
    item->messages = memcpy(copy, q->messages, item->messages_n * sizeof *copy);
    claim(q, e, item, more);
    return EBB_OK;
}

static int by_seq(const void *a, const void *b) {
    const ebb__sqlite_entry *x = *(ebb__sqlite_entry *const *)a, *y = *(ebb__sqlite_entry *const *)b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static ebb_status fetch_only(fetch *q) {
    ebb_status st = EBB_OK;
    size_t n = 0;
    ebb__sqlite_entry **ready = ebb__arena_alloc(&q->file->arena, (q->call->only_n + 1) * sizeof *ready);
    if (ready == NULL) return EBB_ERR_NOMEM;
    for (size_t i = 0; i < q->call->only_n; i++) {
        ebb__sqlite_entry *e = ebb__sqlite_entry_find(&q->file->ready, q->call->only[i]);
        if (e == NULL || e->running || e->in == NULL) continue;
        if (e->node == NULL || e->node == q->node) ready[n++] = e;
    }
    qsort(ready, n, sizeof *ready, by_seq);
    for (size_t i = 0; i < n && st == EBB_OK && q->call->items_n < q->call->most; i++)
        if (i == 0 || ready[i] != ready[i - 1]) st = look(q, ready[i], q->call->suspects);
    return st;
}

static ebb_status fetch_any(fetch *q) {
    ebb_status st = EBB_OK;
    ebb__sqlite_entry *e = q->call->suspects ? ebb__sqlite_ready_suspect(&q->file->ready, q->node) : NULL;
    if (e != NULL) st = look(q, e, true);
    if (q->call->items_n != 0) return st;
    while (st == EBB_OK && q->call->items_n < q->call->most && q->looks < LOOKS) {
        e = ebb__sqlite_ready_first(&q->file->ready, q->node);
        if (e == NULL) break;
        st = look(q, e, false);
    }
    return st;
}

/* Gives back what was claimed for a fetch that has failed. */
static void unclaim(fetch *q) {
    for (size_t i = 0; i < q->call->items_n; i++) {
        ebb__sqlite_entry *e = ebb__sqlite_entry_find(&q->file->ready, q->call->items[i].key);
        e->again = true;
        ebb__sqlite_lock_release(&q->file->claims, e->slot);
        e->slot = 0;
        ebb__sqlite_entry_release(&q->file->ready, e, false);
    }
    q->call->items_n = 0;
}

/* When something happens without a hint: a timer, or the end of a node. */
static uint64_t again_after(const ebb__sqlite_file *f) {
    uint64_t at = f->timer_next;
    for (const ebb__sqlite_node *n = f->ready.nodes; n != NULL; n = n->next)
        if (n->held != NULL && n->until < at) at = n->until;
    return at <= f->now ? 0 : at - f->now < 60 * EBB_SECOND ? at - f->now : 60 * EBB_SECOND;
}

ebb_status ebb__sqlite_fetch_turns(ebb__sqlite_file *f, ebb_provider_fetch_turns_call *c) {
    fetch q = {f, c, ebb__sqlite_node_alive(f, c->node), NULL, 0};
    c->now = f->now;
    if (q.node == NULL) { /* a node learns by its renewal that it is lost */
        c->again = again_after(f);
        return EBB_OK;
    }
    ebb__sqlite_lapse_nodes(f);
    if (f->ready.lost) ebb__sqlite_ready_load(f);
    ebb__sqlite_notice_timers(f);
    c->items = ebb_provider_alloc(&c->call, ((size_t)c->most + 1) * sizeof *c->items);
    q.messages = ebb__arena_alloc(&f->arena, ((size_t)c->messages + 1) * sizeof *q.messages);
    if (c->items == NULL || q.messages == NULL) return EBB_ERR_NOMEM;
    ebb_status st = c->most == 0 || c->messages == 0 ? EBB_OK
                    : c->only != NULL                ? fetch_only(&q)
                                                     : fetch_any(&q);
    if (st != EBB_OK) unclaim(&q);
    c->suspects_wait = ebb__sqlite_ready_suspect(&f->ready, q.node) != NULL;
    c->again = q.looks >= LOOKS ? 0 : again_after(f);
    return st;
}

static int by_token(const void *a, const void *b) {
    const ebb_provider_token *x = a, *y = b;
    if (x->hi != y->hi) return x->hi < y->hi ? -1 : 1;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* A worker that closes gives thousands back, of as many that it holds. */
ebb_status ebb__sqlite_abandon_turns(ebb__sqlite_file *f, ebb_provider_abandon_turns_call *c) {
    ebb__sqlite_node *n = ebb__sqlite_node_find(&f->ready, c->node);
    ebb_provider_token *sorted = ebb_provider_copy(&c->call, c->tokens, c->tokens_n * sizeof *sorted);
    if (sorted == NULL) return EBB_ERR_NOMEM;
    qsort(sorted, c->tokens_n, sizeof *sorted, by_token);
    for (ebb__sqlite_entry *e = n != NULL ? n->held : NULL, *next; e != NULL; e = next) {
        next = e->held_next;
        if (bsearch(&e->token, sorted, c->tokens_n, sizeof *sorted, by_token) == NULL) continue;
        e->again |= e->running;
        ebb__sqlite_lock_release(&f->claims, e->slot);
        e->slot = 0;
        ebb__sqlite_entry_release(&f->ready, e, false);
    }
    ebb__sqlite_hint(f, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_TURNS, .queue = ""});
    return EBB_OK;
}
