/* Lanes: what waits is sent as one transaction, and what comes back ends calls. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- failures ------------------------------------------------------------------------------------------------- */

/* Classes of SQLSTATE, or whole ones. All others fail again whenever they are repeated. */
static const char *const retryable[] = {
    "08",    /* connection */
    "40",    /* transaction rollback: deadlock, serialization */
    "53",    /* resources: disk, memory, connections */
    "57",    /* operator: shutdown, crash, cancelled statement */
    "58",    /* system: I/O */
    "55P03", /* lock not available */
    "25006", /* read-only transaction: a server that was demoted */
};

ebb_status ebb__postgres_status_of(const char *sqlstate) {
    for (size_t i = 0; i < sizeof retryable / sizeof retryable[0]; i++)
        if (strncmp(sqlstate, retryable[i], strlen(retryable[i])) == 0) return EBB_ERR_UNAVAILABLE;
    if (strcmp(sqlstate, "EBB01") == 0) return EBB_ERR_SCHEMA; /* of ebb_v1.renew */
    return *sqlstate != 0 ? EBB_ERR_STORE : EBB_ERR_UNAVAILABLE;
}

static const char *field(const PGresult *r, int code) {
    const char *text = PQresultErrorField(r, code);
    return text != NULL ? text : "";
}

static void say(char *to, size_t room, const PGresult *r) {
    const char *text = field(r, PG_DIAG_MESSAGE_PRIMARY); /* details would show keys and values */
    (void)snprintf(to, room, "PostgreSQL: %.*s (%s)", 150, *text != 0 ? text : "the connection was lost",
                   field(r, PG_DIAG_SQLSTATE));
}

static void claim_free(ebb__postgres *s, ebb__postgres_claim *c) {
    if (c != NULL) ebb__free(&s->allocator, c, sizeof *c + c->n * sizeof c->token[0]);
}

static void claims_free(ebb__postgres *s, ebb__postgres_claim **list) {
    ebb__postgres_claim *next;
    for (ebb__postgres_claim *c = *list; c != NULL; c = next) {
        next = c->next;
        claim_free(s, c);
    }
    *list = NULL;
}

/* `lost`: nobody knows whether it was committed. */
static void member_end(ebb__postgres_lane *l, ebb__postgres_member *m, bool lost) {
    ebb__postgres *s = l->store;
    ebb_provider_call *c = m->call;
    if (m->claim != NULL && lost) {
        m->claim->next = s->lost;
        s->lost = m->claim;
    } else claim_free(s, m->claim);
    m->claim = NULL;
    m->call = NULL;
    c->mine = NULL;
    ebb_provider_done(c, m->status, m->text);
}

void ebb__postgres_lane_fail(ebb__postgres_lane *l, ebb_status st, const char *text) {
    char copy[300];
    ebb__call_queue queue = l->queue;
    const uint32_t n = l->n;
    (void)snprintf(copy, sizeof copy, "%s", text);
    memset(&l->queue, 0, sizeof l->queue);
    for (uint32_t i = 0; i < n; i++) {
        ebb__postgres_member *m = &l->batch[i];
        m->status = st;
        (void)snprintf(m->text, sizeof m->text, "%.*s", (int)sizeof m->text - 1, copy);
        member_end(l, m, true);
    }
    l->n = 0;
    while (queue.calls > 0) {
        ebb_provider_call *c = ebb__call_queue_pop(&queue);
        c->mine = NULL;
        ebb_provider_done(c, st, copy);
    }
}

void ebb__postgres_lane_refuse(ebb__postgres_lane *l, ebb_status st, const char *text) {
    ebb__call_queue queue = l->queue;
    memset(&l->queue, 0, sizeof l->queue);
    while (queue.calls > 0) {
        ebb_provider_call *c = ebb__call_queue_pop(&queue);
        if (ebb__postgres_ends_claims(c->op)) {
            ebb__call_queue_push(&l->queue, c);
            continue;
        }
        c->mine = NULL;
        ebb_provider_done(c, st, text);
    }
}

/* ---- sent ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const ebb_provider_call *c) {
    switch (c->op) {
    case EBB_PROVIDER_ACK_TURN: return ((const ebb_provider_ack_turn_call *)c)->key;
    case EBB_PROVIDER_ACK_WORK: return ((const ebb_provider_ack_work_call *)c)->key;
    case EBB_PROVIDER_MARK: return ((const ebb_provider_mark_call *)c)->key;
    case EBB_PROVIDER_RESET: return ((const ebb_provider_reset_call *)c)->key;
    default: return UINT64_MAX;
    }
}

enum { ALONE = 9 };

static int place_of(const ebb_provider_call *c) {
    const ebb__postgres_shared *shared = ebb__postgres_shared_of(c);
    return shared != NULL ? shared->place : ALONE;
}

static int compare(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

/* Those that share a statement first: the first of these locks the instances of all. Then by the instance and the work whose
 * rows are locked, so that two batches rarely wait for each other. All else, as signals, in the order in which it came. */
static int by_place(const void *a, const void *b) {
    const ebb_provider_call *x = ((const ebb__postgres_member *)a)->call;
    const ebb_provider_call *y = ((const ebb__postgres_member *)b)->call;
    int order = place_of(x) - place_of(y);
    if (order == 0) order = compare(key_of(x), key_of(y));
    if (order == 0 && x->op == EBB_PROVIDER_ACK_WORK && y->op == EBB_PROVIDER_ACK_WORK) {
        const ebb_provider_ack_work_call *v = (const ebb_provider_ack_work_call *)x;
        const ebb_provider_ack_work_call *w = (const ebb_provider_ack_work_call *)y;
        order = compare(v->execution, w->execution);
        if (order == 0) order = compare(v->activity, w->activity);
    }
    if (order != 0) return order;
    return compare(((const ebb__postgres_member *)a)->at, ((const ebb__postgres_member *)b)->at);
}

static void take_batch(ebb__postgres_lane *l) {
    ebb__call_queue taken = {0};
    if (l->queue.calls == 0) return;
    ebb__call_queue_take(&l->queue, &taken, l->most, EBB__POSTGRES_BATCH_BYTES);
    while (taken.calls > 0) {
        ebb__postgres_member *m = &l->batch[l->n++];
        memset(m, 0, sizeof *m);
        m->at = l->n;
        m->call = ebb__call_queue_pop(&taken);
    }
    qsort(l->batch, l->n, sizeof *l->batch, by_place);
}

/* The function of the server with the parameters that the store has put together. */
static bool send_call(const ebb__postgres_lane *l, const char *function) {
    ebb__postgres *s = l->store;
    char sql[512];
    size_t n = (size_t)snprintf(sql, sizeof sql, "SELECT * FROM %s.%s(", s->schema->functions, function);
    for (int i = 1; i <= s->args.params; i++)
        n += (size_t)snprintf(sql + n, sizeof sql - n, i == 1 ? "$%d" : ",$%d", i);
    (void)snprintf(sql + n, sizeof sql - n, ")");
    return ebb__postgres_args_send(&s->args, l->conn.pg, sql);
}

/* The keys of the batch, without those that are not known. */
static size_t keys_of(const ebb__postgres_lane *l, uint64_t *keys) {
    size_t n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (key_of(l->batch[i].call) != UINT64_MAX) keys[n++] = key_of(l->batch[i].call);
    return n;
}

/* How many members from `m` on have one statement. */
static uint32_t sharing(const ebb__postgres_member *m, uint32_t n) {
    const ebb__postgres_shared *shared = ebb__postgres_shared_of(m->call);
    uint32_t shares = 1;
    while (shared != NULL && shares < n && ebb__postgres_shared_of(m[shares].call) == shared &&
           shared->together(m[shares - 1].call, m[shares].call))
        shares++;
    return shares;
}

/* The statement of the first `shares` members. False: the connection has failed. */
static bool send_statement(ebb__postgres_lane *l, ebb__postgres_member *m, const uint64_t *keys,
                           size_t keys_n) {
    ebb__postgres *s = l->store;
    const ebb__postgres_op *op = ebb__postgres_op_of(m->call->op);
    const ebb__postgres_shared *shared = ebb__postgres_shared_of(m->call);
    ebb__postgres_args_clear(&s->args);
    if (shared != NULL) shared->encode(m, m->shares, keys, keys_n, &s->args);
    else op->encode(s, m, &s->args);
    if (s->args.failed) return true;
    s->stats.statements++;
    if (l->writes) s->stats.bytes += s->args.n;
    return send_call(l, shared != NULL ? shared->name : op->name);
}

/* Calls for whose parameters there is no memory end at once. */
static bool send_batch(ebb__postgres_lane *l, bool sent) {
    const uint32_t n = l->n;
    uint32_t kept = 0;
    uint64_t keys[EBB__POSTGRES_BATCH];
    const size_t keys_n = keys_of(l, keys);
    for (uint32_t i = 0, shares; i < n; i += shares) {
        ebb__postgres_member *m = &l->batch[i];
        m->shares = shares = sharing(m, n - i);
        l->store->args.failed = false;
        sent = sent && send_statement(l, m, keys, l->statements == 0 ? keys_n : 0);
        const bool nomem = l->store->args.failed;
        for (uint32_t k = 0; k < shares; k++) {
            if (nomem) {
                ebb__postgres_nomem(&m[k]);
                member_end(l, &m[k], false);
            } else l->batch[kept++] = m[k];
        }
        l->statements += !nomem;
    }
    l->n = kept;
    return sent;
}

/* Those for which there is no memory wait for the next time. */
static uint32_t send_claims_back(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    ebb__postgres_claim *c;
    uint32_t n = 0;
    while ((c = s->lost) != NULL) {
        const bool turns = c->op == EBB_PROVIDER_FETCH_TURNS;
        ebb__postgres_args_clear(&s->args);
        ebb__postgres_number(&s->args, c->node);
        ebb__postgres_tokens(&s->args, c->token, c->n);
        if (!turns) ebb__postgres_number(&s->args, 0);
        if (s->args.failed || !send_call(l, turns ? "abandon_turns" : "abandon_work")) break;
        s->lost = c->next;
        c->next = s->returning;
        s->returning = c;
        n++;
    }
    return n;
}

/* They were not given back: they are lost again. */
static void keep_claims(ebb__postgres *s) {
    while (s->returning != NULL) {
        ebb__postgres_claim *c = s->returning;
        s->returning = c->next;
        c->next = s->lost;
        s->lost = c;
    }
}

/* What goes before the batch, in a transaction of its own. False: the connection has failed. */
static bool send_before(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    l->before = EBB_OK;
    if (l != &s->writer) return true;
    uint32_t n = ebb__postgres_notify(s, l->conn.pg);
    n += send_claims_back(l);
    if (n == 0) return true;
    s->stats.statements += n;
    l->skip = n + 1;
    return PQpipelineSync(l->conn.pg) == 1;
}

/* For the transaction of the batch, since behind a pooler a session is nobody's. */
static bool send_durability(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    l->head = l == &s->writer && s->synchronous != NULL;
    if (!l->head) return true;
    ebb__postgres_args_clear(&s->args);
    ebb__postgres_text(&s->args, s->synchronous);
    s->stats.statements++;
    return !s->args.failed && ebb__postgres_args_send(&s->args, l->conn.pg, EBB__POSTGRES_SET_DURABILITY);
}

void ebb__postgres_lane_kick(ebb__postgres_lane *l) {
    if (!l->ready || l->n > 0 || l->skip > 0 || l->sending) return;
    l->sending = true;
    bool sent = send_before(l);
    take_batch(l);
    l->at = l->statements = 0;
    l->head = l->broken = false;
    l->commit = EBB_OK;
    if (l->n > 0) sent = sent && send_durability(l);
    if (l->n > 0) sent = send_batch(l, sent);
    const uint32_t statements = l->head + l->statements; /* none, if there was no memory for any */
    if (statements > 0) sent = sent && PQpipelineSync(l->conn.pg) == 1;
    const uint32_t results = l->skip + (statements > 0 ? statements + 1 : 0);
    l->sending = false;
    if (results == 0) return;
    l->store->stats.round_trips++;
    if (sent) ebb__postgres_conn_sent(&l->conn, results);
    else ebb__postgres_conn_lose(&l->conn, PQerrorMessage(l->conn.pg));
}

/* The server reads it before the end of the connection. Nobody waits for an answer: a hint may be lost. */
void ebb__postgres_lane_farewell(ebb__postgres_lane *l) {
    if (l->ready && !l->sending && send_before(l) > 0) (void)PQflush(l->conn.pg);
}

/* ---- answered ------------------------------------------------------------------------------------------------- */

/* A failure that is no member's. */
static void fail_batch(ebb__postgres_lane *l, const PGresult *r) {
    l->broken = true;
    l->commit = ebb__postgres_status_of(field(r, PG_DIAG_SQLSTATE));
    say(l->text, sizeof l->text, r);
}

static void fail_statement(ebb__postgres_lane *l, ebb__postgres_member *m, const PGresult *r) {
    const char *state = field(r, PG_DIAG_SQLSTATE);
    const uintptr_t tried = (uintptr_t)m->call->mine;
    l->broken = true;
    if (m->shares > 1) { /* which of them it was is found by halves */
        fail_batch(l, r);
        return;
    }
    m->status = ebb__postgres_status_of(state);
    say(m->text, sizeof m->text, r);
    if (strncmp(state, "40", 2) == 0 && tried < EBB__POSTGRES_RETRIES) {
        m->again = true;
        m->call->mine = (void *)(tried + 1);
    }
}

/* What the functions of the database answer with is theirs: somebody may have changed them. */
static bool has_shape(ebb__postgres_lane *l, ebb__postgres_member *m, const PGresult *r, const char *name,
                      int columns, int rows) {
    if (PQnfields(r) == columns && PQntuples(r) >= rows) return true;
    for (uint32_t i = 0; i < m->shares; i++)
        ebb__postgres_say(&m[i], EBB_ERR_STORE,
                          "%s.%s of the database answers with %d rows of %d columns, not with %d of %d",
                          l->store->schema->functions, name, PQntuples(r), PQnfields(r), rows, columns);
    l->broken = true;
    return false;
}

static void take_answer(ebb__postgres_lane *l, ebb__postgres_member *m, const PGresult *r) {
    const ebb__postgres_op *op = ebb__postgres_op_of(m->call->op);
    const ebb__postgres_shared *shared = ebb__postgres_shared_of(m->call);
    if (shared == NULL) {
        if (has_shape(l, m, r, op->name, op->columns, op->rows)) op->decode(l->store, m, r);
    } else if (has_shape(l, m, r, shared->name, shared->columns, (int)m->shares))
        shared->decode(l->store, m, m->shares, r);
}

static void take_result(ebb__postgres_lane *l, const PGresult *r) {
    ebb__postgres_member *m = &l->batch[l->at];
    const ExecStatusType status = PQresultStatus(r);
    l->at += m->shares;
    if (status == PGRES_TUPLES_OK) take_answer(l, m, r);
    else if (status == PGRES_PIPELINE_ABORTED) {
        l->broken = true;
        for (uint32_t i = 0; i < m->shares; i++) m[i].again = true;
    } else fail_statement(l, m, r);
}

static void count(ebb__postgres_lane *l) {
    ebb_provider_stats *st = &l->store->stats;
    uint32_t members = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const ebb_provider_op op = l->batch[i].call->op;
        members += op != EBB_PROVIDER_FETCH_TURNS && op != EBB_PROVIDER_FETCH_WORK;
    }
    if (l != &l->store->writer || members == 0) return;
    st->commits++;
    st->members += members;
}

/* The batch is committed. */
static void end_batch(ebb__postgres_lane *l) {
    const uint32_t n = l->n;
    count(l);
    l->most = EBB__POSTGRES_BATCH;
    for (uint32_t i = 0; i < n; i++)
        if (l->batch[i].hints != NULL) ebb__postgres_hint(l->store, l->batch[i].hints);
    for (uint32_t i = 0; i < n; i++) member_end(l, &l->batch[i], l->batch[i].status == EBB_ERR_NOMEM);
}

/* The batch is rolled back: those that failed end, the others are sent again, before what has come since. */
static void undo_batch(ebb__postgres_lane *l) {
    const uint32_t n = l->n;
    ebb__call_queue queue = {0}, later = l->queue;
    if (l->commit != EBB_OK) l->most = n > 1 ? n / 2 : 1;
    for (uint32_t i = 0; i < n; i++) {
        ebb__postgres_member *m = &l->batch[i];
        if (l->commit != EBB_OK && n > 1) m->again = true;
        if (l->commit != EBB_OK && n == 1) {
            m->status = l->commit;
            (void)snprintf(m->text, sizeof m->text, "%s", l->text);
        } else if (m->status == EBB_OK || l->commit != EBB_OK) m->again = true;
        if (!m->again) continue;
        ebb__call_queue_push(&queue, m->call);
        claim_free(l->store, m->claim);
        m->call = NULL;
    }
    while (later.calls > 0) ebb__call_queue_push(&queue, ebb__call_queue_pop(&later));
    l->queue = queue;
    for (uint32_t i = 0; i < n; i++)
        if (l->batch[i].call != NULL) member_end(l, &l->batch[i], false);
}

/* A result of what goes before the batch, at last a sync; what comes instead of that is the failure of its commit, with one
 * result more than was expected. What fails for a time is sent before the next batch again; hints are not. */
static void take_before(ebb__postgres_lane *l, const PGresult *r) {
    if (PQresultStatus(r) == PGRES_FATAL_ERROR)
        l->before = ebb__postgres_status_of(field(r, PG_DIAG_SQLSTATE));
    if (l->skip == 1 && PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
        l->conn.expected++;
        return;
    }
    if (--l->skip > 0) return;
    if (ebb_provider_class_of(l->before) == EBB_PROVIDER_RETRYABLE) keep_claims(l->store);
    claims_free(l->store, &l->store->returning);
    if (l->n == 0 && (l->before == EBB_OK || l->queue.calls > 0)) ebb__postgres_kick(l->store);
}

static void end_or_undo(ebb__postgres_lane *l) {
    if (l->broken) undo_batch(l);
    else end_batch(l);
    l->n = 0;
    ebb__postgres_kick(l->store);
}

static void on_result(void *arg, PGresult *r) {
    ebb__postgres_lane *l = arg;
    const ExecStatusType status = PQresultStatus(r);
    if (l->setup != EBB__SETUP_NONE) ebb__postgres_setup_result(l, r);
    else if (l->skip > 0) take_before(l, r);
    else if (l->head) {
        l->head = false;
        if (status != PGRES_TUPLES_OK) fail_batch(l, r);
    } else if (l->at < l->n) take_result(l, r);
    else if (status == PGRES_PIPELINE_SYNC) end_or_undo(l);
    else { /* of the commit, with one result more than was expected */ fail_batch(l, r);
        l->conn.expected++;
    }
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void on_up(void *arg) {
    ebb__postgres_setup_begin(arg);
}

static void on_down(void *arg, const char *state, const char *text) {
    ebb__postgres_lane *l = arg;
    ebb__postgres *s = l->store;
    const bool writer = l == &s->writer, heard = l->ready || !s->was_listening;
    l->ready = false;
    l->setup = EBB__SETUP_NONE;
    l->skip = 0;
    l->most = EBB__POSTGRES_BATCH;
    if (writer) keep_claims(s);
    if (l == &s->listener && heard)
        ebb__postgres_hint_lost(s); /* from here on nothing is heard: look more often */
    if (l == &s->listener) return;
    const ebb_status st =
        strncmp(state, "28", 2) == 0 || strcmp(state, "3D000") == 0 ? EBB_ERR_STORE : EBB_ERR_UNAVAILABLE;
    if (s->opening != NULL && writer) ebb__postgres_open_failed(s, st, text);
    else ebb__postgres_lane_fail(l, EBB_ERR_UNAVAILABLE, text);
}

static void on_notify(void *arg, const PGnotify *n) {
    ebb__postgres_heard(((ebb__postgres_lane *)arg)->store, n);
}

static void on_closed(void *arg) {
    ebb__postgres_released(((ebb__postgres_lane *)arg)->store);
}

static const ebb__postgres_conn_events events = {on_up, on_down, on_result, on_notify, on_closed};

/* ---- life ----------------------------------------------------------------------------------------------------- */

bool ebb__postgres_lane_init(ebb__postgres *s, ebb__postgres_lane *l, const ebb__store_url *url) {
    const bool calls = l != &s->listener;
    l->store = s;
    l->most = EBB__POSTGRES_BATCH;
    l->conn.loop = s->loop;
    l->conn.allocator = &s->allocator;
    l->conn.events = &events;
    l->conn.arg = l;
    l->conn.url = url;
    if (calls) l->batch = ebb__alloc(&s->allocator, EBB__POSTGRES_BATCH * sizeof *l->batch);
    if ((calls && l->batch == NULL) || !ebb__postgres_conn_init(&l->conn)) return false;
    s->open++;
    return true;
}

void ebb__postgres_lane_fini(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    if (s == NULL) return;
    if (l->batch != NULL) ebb__free(&s->allocator, l->batch, EBB__POSTGRES_BATCH * sizeof *l->batch);
    if (l == &s->writer) {
        claims_free(s, &s->lost);
        claims_free(s, &s->returning);
    }
}
