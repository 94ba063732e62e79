/* Work: rows with a token are claimed. Until when is in memory, since all claims end with the process that owns the file. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "durable/sqlite.h"

/* ---- claims ----------------------------------------------------------------------------------------------------- */

static uint64_t held_key(ebb_provider_token t) {
    const uint64_t key = ebb__hash_word(t.lo) ^ t.hi;
    return key != 0 ? key : 1;
}

ebb__sqlite_held *ebb__sqlite_held_any(ebb__sqlite_file *f, ebb_provider_token token) {
    ebb__sqlite_held *h = ebb__map_find(&f->held, held_key(token));
    return h != NULL && ebb__token_is(h->token, token) ? h : NULL;
}

ebb__sqlite_held *ebb__sqlite_held_find(ebb__sqlite_file *f, ebb_provider_token token) {
    ebb__sqlite_held *h = ebb__sqlite_held_any(f, token);
    return h != NULL && h->node != 0 && h->until > f->now ? h : NULL;
}

bool ebb__sqlite_held_put(ebb__sqlite_file *f, const ebb__sqlite_effect *e) {
    ebb__sqlite_held *h = ebb__map_put(&f->held, held_key(e->token));
    if (h == NULL) return false;
    *h = (ebb__sqlite_held){e->token, e->key, e->execution, e->activity, e->node, e->at, e->charged};
    if (e->at < f->held_next) f->held_next = e->at;
    return true;
}

void ebb__sqlite_held_remove(ebb__sqlite_file *f, ebb_provider_token token) {
    if (ebb__sqlite_held_any(f, token) != NULL) ebb__map_remove(&f->held, held_key(token));
}

/* Gives a claimed row back. The claim ends with the commit. */
static void free_row(ebb__sqlite_file *f, const ebb__sqlite_held *h, bool refund) {
    const uint64_t less = refund && h->charged ? 1 : 0;
    if (ebb__sqlite_run(&f->db, EBB__SQL_WORK_FREE, "iiiki", h->key, h->execution, h->activity, &h->token,
                        less) == SQLITE_ROW) {
        const char *queue = ebb__sqlite_string(ebb__sqlite_at(&f->db, EBB__SQL_WORK_FREE), 0);
        char *copy = ebb__arena_alloc(&f->arena, strlen(queue) + 1);
        if (copy != NULL) (void)strcpy(copy, queue);
        ebb__sqlite_effect_add(f, EBB__EFFECT_WORK, h->key)->queue = copy != NULL ? copy : "";
        (void)ebb__sqlite_next(&f->db, EBB__SQL_WORK_FREE);
    }
    ebb__sqlite_effect_add(f, EBB__EFFECT_UNHELD, h->key)->token = h->token;
}

void ebb__sqlite_held_free(ebb__sqlite_file *f, const ebb__sqlite_held *h) {
    free_row(f, h, true);
}

void ebb__sqlite_lapse_work(ebb__sqlite_file *f) {
    if (f->held_next > f->now) return;
    size_t at = 0;
    uint64_t next = UINT64_MAX;
    for (const ebb__sqlite_held *h; (h = ebb__map_next(&f->held, &at)) != NULL;) {
        if (h->until <= f->now) free_row(f, h, false);
        else if (h->until < next) next = h->until;
    }
    f->held_next = f->db.failed == 0 ? next : 0;
}

/* ---- insert, delete ----------------------------------------------------------------------------------------------- */

static uint64_t session_key(const char *session) {
    uint64_t h = 0; /* two sessions of one hash have the same node, which is allowed */
    for (; *session != 0; session++) h = ebb__hash_word(h ^ (uint8_t)*session);
    return h != 0 ? h : 1;
}

/* The live node that has the session; 0: none. */
static uint64_t session_owner(const ebb__sqlite_file *f, const char *session) {
    if (*session == 0) return 0;
    const uint64_t *id = ebb__map_find(&f->sessions, session_key(session));
    for (const ebb__sqlite_node *n = id != NULL ? f->ready.nodes : NULL; n != NULL; n = n->next)
        if (n->id == *id) return n->until > f->now ? n->id : 0;
    return 0;
}

void ebb__sqlite_work(ebb__sqlite_file *f, uint64_t key, uint64_t execution, const ebb_provider_work *w,
                      uint64_t node, uint64_t lease) {
    const bool claimed = !ebb__token_is_none(w->token);
    const char *session = w->session != NULL ? w->session : "";
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_INSERT, "iiintiikittb", key, execution, w->activity,
                          claimed ? UINT64_MAX : 0, w->queue, session_owner(f, session),
                          ebb__sqlite_number(f), &w->token, (uint64_t)w->attempt, session, w->name,
                          &w->input);
    if (!claimed) {
        ebb__sqlite_effect_add(f, EBB__EFFECT_WORK, key)->queue = w->queue;
        return;
    }
    ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_HELD, key);
    e->execution = execution;
    e->activity = w->activity;
    e->token = w->token;
    e->node = node;
    e->at = f->now + lease;
}

void ebb__sqlite_work_drop(ebb__sqlite_file *f, ebb__sqlite_sql sql, uint64_t key, uint64_t execution,
                           ebb_cancel_kind cause) {
    int rc = ebb__sqlite_run(&f->db, sql, sql == EBB__SQL_WORK_DROP ? "i" : "ii", key, execution);
    while (rc == SQLITE_ROW) {
        sqlite3_stmt *s = ebb__sqlite_at(&f->db, sql);
        ebb__sqlite_effect_add(f, EBB__EFFECT_UNHELD, key)->token = ebb__sqlite_token(s, 2);
        ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_GONE, key);
        e->execution = ebb__sqlite_u64(s, 0);
        e->activity = ebb__sqlite_u64(s, 1);
        e->cause = cause;
        rc = ebb__sqlite_next(&f->db, sql);
    }
}

/* ---- fetch --------------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    uint64_t key, execution, activity, order;
} candidate;

typedef struct pick {
    candidate *at; /* of one queue, the oldest first */
    uint32_t n, next;
} pick;

typedef struct fetch {
    ebb__sqlite_file *file;
    ebb_provider_fetch_work_call *call;
    const ebb__sqlite_node *node;
    uint64_t place;
    uint32_t most;
} fetch;

static void add(pick *p, sqlite3_stmt *s, uint32_t most) {
    const candidate c = {ebb__sqlite_u64(s, 0), ebb__sqlite_u64(s, 1), ebb__sqlite_u64(s, 2),
                         ebb__sqlite_u64(s, 3)};
    uint32_t at =
        p->n < most ? p->n++ : p->n; /* sorted: two sorted halves are merged, and the last falls off */
    if (at == most) {
        if (p->at[most - 1].order <= c.order) return;
        at = most - 1;
    }
    for (; at > 0 && p->at[at - 1].order > c.order; at--) p->at[at] = p->at[at - 1];
    p->at[at] = c;
}

static void rows_of(ebb__sqlite_file *f, ebb__sqlite_sql sql, int rc, pick *p, uint32_t most) {
    for (; rc == SQLITE_ROW; rc = ebb__sqlite_next(&f->db, sql)) add(p, ebb__sqlite_at(&f->db, sql), most);
}

/* The oldest rows of a queue, without a session or of this node's sessions. False: no memory. */
static bool look(fetch *q, const ebb_provider_queue *queue, uint32_t most, pick *p) {
    ebb__sqlite_file *f = q->file;
    const uint64_t owners[2] = {0, q->node->id};
    memset(p, 0, sizeof *p);
    if (most == 0) return true;
    p->at = ebb__arena_alloc(&f->arena, most * sizeof *p->at);
    if (p->at == NULL) return false;
    for (size_t i = 0; q->call->only == NULL && i < 2; i++)
        rows_of(f, EBB__SQL_WORK_NEXT,
                ebb__sqlite_run(&f->db, EBB__SQL_WORK_NEXT, "tiii", queue->name, owners[i], q->place,
                                (uint64_t)most),
                p, most);
    for (size_t i = 0; q->call->only != NULL && i < q->call->only_n; i++)
        rows_of(f, EBB__SQL_WORK_NEXT_OF,
                ebb__sqlite_run(&f->db, EBB__SQL_WORK_NEXT_OF, "itiii", q->call->only[i], queue->name,
                                q->node->id, q->place, (uint64_t)most),
                p, most);
    return true;
}

static ebb_status own_session(fetch *q, const char *session) {
    ebb__sqlite_file *f = q->file;
    if (*session == 0 || session_owner(f, session) != 0) return EBB_OK;
    uint64_t *id = ebb__map_put(&f->sessions, session_key(session));
    if (id == NULL) return EBB_ERR_NOMEM;
    *id = q->node->id;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_OWN, "ti", session, q->node->id);
    return EBB_OK;
}

static void hold(fetch *q, const candidate *c, ebb_provider_token token) {
    ebb__sqlite_effect *e = ebb__sqlite_effect_add(q->file, EBB__EFFECT_HELD, c->key);
    e->execution = c->execution;
    e->activity = c->activity;
    e->token = token;
    e->node = q->node->id;
    e->at = q->file->now + q->call->lease;
    e->charged = true;
}

static ebb_status claim(fetch *q, const candidate *c) {
    ebb__sqlite_file *f = q->file;
    ebb_provider_call *call = &q->call->call;
    ebb_provider_work_item *item = &q->call->items[q->call->items_n];
    memset(item, 0, sizeof *item);
    item->token = ebb__sqlite_token_new(f);
    if (ebb__sqlite_run(&f->db, EBB__SQL_WORK_CLAIM, "iiik", c->key, c->execution, c->activity,
                        &item->token) != SQLITE_ROW)
        return ebb__sqlite_status(&f->db);
    sqlite3_stmt *s = ebb__sqlite_at(&f->db, EBB__SQL_WORK_CLAIM);
    const char *id = ebb__sqlite_string(s, 0), *name = ebb__sqlite_string(s, 1);
    const ebb_blob input = ebb__sqlite_blob(s, 5);
    item->key = c->key;
    item->execution = c->execution;
    item->activity = c->activity;
    item->id = ebb_provider_copy(call, id, strlen(id));
    item->name = ebb_provider_copy(call, name, strlen(name));
    item->attempt = (uint32_t)ebb__sqlite_u64(s, 2);
    item->attempts = (uint32_t)ebb__sqlite_u64(s, 3);
    item->waited = f->now > c->order ? f->now - c->order : 0;
    item->input.n = input.n;
    item->input.at = ebb_provider_copy(call, input.at, input.n);
    const bool fits = item->id != NULL && item->name != NULL && item->input.at != NULL;
    const ebb_status st = fits ? own_session(q, ebb__sqlite_string(s, 6)) : EBB_ERR_NOMEM;
    while (ebb__sqlite_next(&f->db, EBB__SQL_WORK_CLAIM) == SQLITE_ROW) {}
    if (st != EBB_OK) return st;
    hold(q, c, item->token);
    q->call->items_n++;
    return ebb__sqlite_status(&f->db);
}

/* One of each queue in turn, so that no queue waits for another. */
static ebb_status claim_in_turn(fetch *q, pick *picks) {
    bool some = true;
    ebb_status st = EBB_OK;
    while (some && st == EBB_OK) {
        some = false;
        for (size_t i = 0; i < q->call->queues_n && st == EBB_OK && q->call->items_n < q->most; i++) {
            if (picks[i].next == picks[i].n) continue;
            st = claim(q, &picks[i].at[picks[i].next++]);
            some = q->call->items_n < q->most;
        }
    }
    return st;
}

static ebb_status fetch_place(fetch *q, uint64_t place, uint32_t most, bool *any) {
    ebb_provider_fetch_work_call *c = q->call;
    pick *picks = ebb__arena_alloc(&q->file->arena, (c->queues_n + 1) * sizeof *picks);
    if (picks == NULL) return EBB_ERR_NOMEM;
    q->place = place;
    q->most = most;
    for (size_t i = 0; i < c->queues_n; i++) {
        uint32_t n = c->queues[i].most < c->most ? c->queues[i].most : c->most;
        if (any != NULL && n > 1) n = 1;
        if (!look(q, &c->queues[i], n, &picks[i])) return EBB_ERR_NOMEM;
        if (any != NULL && picks[i].n != 0) *any = true;
    }
    return claim_in_turn(q, picks);
}

static uint64_t again_after(const ebb__sqlite_file *f) {
    const uint64_t at = f->held_next;
    return at <= f->now ? 0 : at - f->now < 60 * EBB_SECOND ? at - f->now : 60 * EBB_SECOND;
}

ebb_status ebb__sqlite_fetch_work(ebb__sqlite_file *f, ebb_provider_fetch_work_call *c) {
    fetch q = {f, c, ebb__sqlite_node_alive(f, c->node), 0, 0};
    bool suspects = false;
    c->now = f->now;
    if (q.node == NULL) { /* a node learns by its renewal that it is lost */
        c->again = again_after(f);
        return EBB_OK;
    }
    ebb__sqlite_lapse_work(f);
    ebb__sqlite_disown_lapsed(f);
    c->items = ebb_provider_alloc(&c->call, ((size_t)c->most + 1) * sizeof *c->items);
    if (c->items == NULL) return EBB_ERR_NOMEM;
    ebb_status st = EBB_OK;
    if (c->most != 0) st = fetch_place(&q, 1, c->suspects ? 1 : 0, &suspects);
    if (st == EBB_OK && c->items_n == 0 && c->most != 0) st = fetch_place(&q, 0, c->most, NULL);
    c->suspects_wait = suspects && !(c->suspects && c->items_n == 1);
    c->again = again_after(f);
    return st == EBB_OK ? ebb__sqlite_status(&f->db) : st;
}

/* ---- ack, abandon --------------------------------------------------------------------------------------------------- */

static ebb_status ack_gone(ebb__sqlite_file *f, ebb_provider_ack_work_call *c) {
    bool before = false;
    if (c->message != NULL &&
        ebb__sqlite_run(&f->db, EBB__SQL_INBOX_ACKED, "ik", c->key, &c->ack_id) == SQLITE_ROW) {
        before = true;
        ebb__sqlite_end(&f->db, EBB__SQL_INBOX_ACKED);
    }
    if (before || f->db.failed != 0) return ebb__sqlite_status(&f->db);
    return ebb__sqlite_say(&c->call, EBB_ERR_GONE,
                           "the row of activity %llu is gone: it was cancelled, or its lease is lost",
                           (unsigned long long)c->activity);
}

ebb_status ebb__sqlite_ack_work(ebb__sqlite_file *f, ebb_provider_ack_work_call *c) {
    if (ebb__sqlite_held_find(f, c->token) == NULL) return ack_gone(f, c);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_END, "iiik", c->key, c->execution, c->activity, &c->token);
    if (f->db.failed == 0 && sqlite3_changes(f->db.at) == 0) return ack_gone(f, c);
    ebb__sqlite_effect_add(f, EBB__EFFECT_UNHELD, c->key)->token = c->token;
    if (c->message == NULL) return ebb__sqlite_status(&f->db);
    const uint64_t seq = ebb__sqlite_number(f);
    (void)ebb__sqlite_run(&f->db, EBB__SQL_INBOX_REPLY, "iiiiikb", c->key, seq, c->execution, c->activity,
                          (uint64_t)EBB_PROVIDER_MESSAGE_ACTIVITY, &c->ack_id, c->message);
    c->dropped = f->db.failed == 0 && sqlite3_changes(f->db.at) == 0;
    if (c->dropped) f->stats.dropped++;
    else ebb__sqlite_effect_add(f, EBB__EFFECT_MESSAGE, c->key)->at = seq;
    return ebb__sqlite_status(&f->db);
}

/* With a delay the row stays claimed, by nobody, until then. */
static void put_off(ebb__sqlite_file *f, const ebb__sqlite_held *h, uint64_t delay) {
    const uint64_t less = h->charged ? 1 : 0;
    (void)ebb__sqlite_run(&f->db, EBB__SQL_WORK_REFUND, "iiiki", h->key, h->execution, h->activity, &h->token,
                          less);
    ebb__sqlite_effect *e = ebb__sqlite_effect_add(f, EBB__EFFECT_HELD, h->key);
    e->execution = h->execution;
    e->activity = h->activity;
    e->token = h->token;
    e->at = f->now + delay;
}

ebb_status ebb__sqlite_abandon_work(ebb__sqlite_file *f, ebb_provider_abandon_work_call *c) {
    for (size_t i = 0; i < c->tokens_n; i++) {
        const ebb__sqlite_held *h = ebb__sqlite_held_find(f, c->tokens[i]);
        if (h == NULL) continue;
        if (c->delay == 0) free_row(f, h, true);
        else put_off(f, h, c->delay);
    }
    return ebb__sqlite_status(&f->db);
}
