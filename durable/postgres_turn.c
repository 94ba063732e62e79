/* Nodes and turns in the PostgreSQL provider: what is sent, and what comes back. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

typedef ebb__postgres_args args;

/* ---- lists ---------------------------------------------------------------------------------------------------- */

void ebb__postgres_tokens(args *a, const ebb_provider_token *tokens, size_t n) {
    ebb__postgres_array(a, EBB__OID_UUID, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_token(a, tokens[i]);
}

void ebb__postgres_keys(args *a, const uint64_t *keys, size_t n) {
    if (keys == NULL) {
        ebb__postgres_null(a);
        return;
    }
    ebb__postgres_array(a, EBB__OID_INT8, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_number(a, keys[i]);
}

/* A column of an array of structs, as an array: its elements are counted by `i`. */
#define COLUMN(a, TYPE, n, PUT, value)                                                                       \
    do {                                                                                                     \
        ebb__postgres_array((a), (TYPE), (n));                                                               \
        for (size_t i = 0; i < (n); i++) PUT((a), (value));                                                  \
    } while (0)
#define NUMBERS(a, n, value) COLUMN(a, EBB__OID_INT8, n, ebb__postgres_number, value)
#define TEXTS(a, n, value)   COLUMN(a, EBB__OID_TEXT, n, ebb__postgres_text, value)
#define BLOBS(a, n, value)   COLUMN(a, EBB__OID_BYTEA, n, ebb__postgres_bytes, value)
#define TOKENS(a, n, value)  COLUMN(a, EBB__OID_UUID, n, ebb__postgres_token, value)

static const char *text_or_empty(const char *text) {
    return text != NULL ? text : "";
}

void ebb__postgres_put_work(args *a, const ebb_provider_work *work, size_t n) {
    NUMBERS(a, n, work[i].activity);
    TEXTS(a, n, work[i].queue);
    TEXTS(a, n, text_or_empty(work[i].session));
    TEXTS(a, n, work[i].name);
    NUMBERS(a, n, work[i].attempt);
    BLOBS(a, n, work[i].input);
    TOKENS(a, n, work[i].token);
}

void ebb__postgres_put_timers(args *a, const ebb_provider_timer *timers, size_t n) {
    NUMBERS(a, n, timers[i].step);
    NUMBERS(a, n, timers[i].due);
}

void ebb__postgres_put_outgoing(args *a, const ebb_provider_outgoing *out, size_t n) {
    TEXTS(a, n, out[i].id);
    NUMBERS(a, n, out[i].execution);
    NUMBERS(a, n, out[i].kind);
    NUMBERS(a, n, out[i].step);
    BLOBS(a, n, out[i].body);
    TEXTS(a, n, text_or_empty(out[i].name));
    NUMBERS(a, n, out[i].version);
    BLOBS(a, n, out[i].input);
    BLOBS(a, n, out[i].exists);
}

static void put_value(args *a, ebb_blob v) {
    ebb__postgres_blob(a, v.at != NULL ? &v : NULL);
}

void ebb__postgres_put_values(args *a, const ebb_provider_value *values, size_t n) {
    BLOBS(a, n, ebb_blob_text(values[i].key));
    COLUMN(a, EBB__OID_BYTEA, n, put_value, values[i].value);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static void put_join(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_join_call *c = (const ebb_provider_join_call *)m->call;
    (void)s;
    ebb__postgres_text(a, text_or_empty(c->name));
    ebb__postgres_span(a, c->lease);
    TEXTS(a, c->runs_n, c->runs[i].name);
    NUMBERS(a, c->runs_n, c->runs[i].version);
}

static void get_join(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_join_call *c = (ebb_provider_join_call *)m->call;
    (void)s;
    c->node.id = ebb__postgres_get_number(r, 0, 0);
    c->node.epoch = ebb__postgres_get_number(r, 0, 1);
}

static void put_renew(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_renew_call *c = (const ebb_provider_renew_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_number(a, c->node.epoch);
    ebb__postgres_span(a, c->lease);
    ebb__postgres_tokens(a, c->tokens, c->tokens_n);
}

static void get_renew(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_renew_call *c = (ebb_provider_renew_call *)m->call;
    const int n = PQntuples(r) - 1;
    c->again = s->listener.ready ? 0 : EBB_SECOND;
    c->gone = ebb_provider_alloc(m->call, ((size_t)n + 1) * sizeof *c->gone);
    if (c->gone == NULL) {
        ebb__postgres_nomem(m);
        return;
    }
    c->lost = ebb__postgres_get_bool(r, 0, 0);
    c->gone_n = (size_t)n;
    for (int i = 0; i < n; i++) c->gone[i] = ebb__postgres_get_token(r, i + 1, 1);
}

static void put_leave(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_leave_call *c = (const ebb_provider_leave_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_number(a, c->node.epoch);
}

static void get_outcome(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    (void)ebb__postgres_outcome(s, m, r);
}

const ebb__postgres_op ebb__postgres_node_ops[] = {
    [EBB_PROVIDER_JOIN] = {"join_node", true, 2, 1, put_join, get_join},
    [EBB_PROVIDER_RENEW] = {"renew", true, 2, 1, put_renew, get_renew},
    [EBB_PROVIDER_LEAVE] = {"leave", true, 2, 0, put_leave, get_outcome},
};

/* ---- fetched -------------------------------------------------------------------------------------------------- */

static void put_fetch(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_fetch_turns_call *c = (const ebb_provider_fetch_turns_call *)m->call;
    const uint32_t most = c->most < EBB__POSTGRES_CLAIMS ? c->most : EBB__POSTGRES_CLAIMS;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_number(a, c->node.epoch);
    ebb__postgres_keys(a, c->only, c->only_n);
    ebb__postgres_number(a, most);
    ebb__postgres_number(a, c->messages != 0 ? c->messages : EBB_DURABLE_BATCH);
    ebb__postgres_bool(a, c->suspects);
    ebb__postgres_put_floor(s, m, a, c->node.id << 1 | 1, c->only == NULL);
    ebb__postgres_claim_new(s, m, a, c->node.id, most);
}

enum {
    FETCH_TOKEN = 3,
    FETCH_KEY,
    FETCH_ID,
    FETCH_NAME,
    FETCH_VERSION,
    FETCH_EXECUTION,
    FETCH_TURN,
    FETCH_ATTEMPTS,
    FETCH_KIND,
    FETCH_SEQ,
    FETCH_FOR,
    FETCH_STEP,
    FETCH_BODY,
    FETCH_FLOOR
};

static int item_rows(const PGresult *r, int from) {
    int n = 1;
    const uint64_t key = ebb__postgres_get_number(r, from, FETCH_KEY);
    while (from + n < PQntuples(r) && ebb__postgres_get_number(r, from + n, FETCH_KEY) == key) n++;
    return n;
}

static bool get_message(ebb_provider_call *c, const PGresult *r, int row, ebb_provider_message *to) {
    bool whole = true;
    to->at.kind = (uint8_t)ebb__postgres_get_number(r, row, FETCH_KIND);
    to->at.seq = ebb__postgres_get_number(r, row, FETCH_SEQ);
    to->execution = ebb__postgres_get_number(r, row, FETCH_FOR);
    to->step = ebb__postgres_get_number(r, row, FETCH_STEP);
    to->body = ebb__postgres_get_blob(c, r, row, FETCH_BODY, &whole);
    return whole;
}

static bool get_item(ebb_provider_call *c, const PGresult *r, int row, int n, ebb_provider_turn_item *to) {
    bool whole = true;
    ebb_provider_message *messages = ebb_provider_alloc(c, (size_t)n * sizeof *messages);
    if (messages == NULL) return false;
    *to = (ebb_provider_turn_item){.token = ebb__postgres_get_token(r, row, FETCH_TOKEN),
                                   .key = ebb__postgres_get_number(r, row, FETCH_KEY),
                                   .id = ebb__postgres_get_text(c, r, row, FETCH_ID, &whole),
                                   .name = ebb__postgres_get_text(c, r, row, FETCH_NAME, &whole),
                                   .version = (uint32_t)ebb__postgres_get_number(r, row, FETCH_VERSION),
                                   .execution = ebb__postgres_get_number(r, row, FETCH_EXECUTION),
                                   .turn = ebb__postgres_get_number(r, row, FETCH_TURN),
                                   .attempts = (uint32_t)ebb__postgres_get_number(r, row, FETCH_ATTEMPTS),
                                   .messages = messages,
                                   .messages_n = (size_t)n};
    for (int i = 0; i < n && whole; i++) whole = get_message(c, r, row + i, &messages[i]);
    return whole;
}

static void get_fetch(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_fetch_turns_call *c = (ebb_provider_fetch_turns_call *)m->call;
    const int rows = PQntuples(r);
    size_t items = 0;
    ebb__postgres_times(s, r, &c->now, &c->again, &c->suspects_wait);
    ebb__postgres_get_floor(s, m, r, FETCH_FLOOR, c->node.id << 1 | 1);
    for (int row = 1; row < rows; row += item_rows(r, row)) items++;
    c->items_n = 0;
    c->items = ebb_provider_alloc(m->call, (items + 1) * sizeof *c->items);
    bool whole = c->items != NULL;
    for (int row = 1, n; row < rows && whole; row += n) {
        n = item_rows(r, row);
        whole = get_item(m->call, r, row, n, &c->items[c->items_n++]);
    }
    if (!whole) ebb__postgres_nomem(m);
}

/* ---- committed ------------------------------------------------------------------------------------------------ */

static bool is_timer(const ebb_provider_message_key *at) {
    return at->kind == EBB_PROVIDER_MESSAGE_TIMER;
}

/* Timers and messages apart. */
static void put_acked(args *a, const ebb_provider_message_key *acked, size_t n, bool timers) {
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++) chosen += is_timer(&acked[i]) == timers;
    ebb__postgres_array(a, EBB__OID_INT8, chosen);
    for (size_t i = 0; i < n; i++)
        if (is_timer(&acked[i]) == timers) ebb__postgres_signed(a, acked[i].seq);
}

static void put_removed(args *a, const ebb_provider_ack_turn_call *c) {
    put_acked(a, c->acked, c->acked_n, false);
    put_acked(a, c->acked, c->acked_n, true);
    NUMBERS(a, c->done_n, c->done[i].execution);
    NUMBERS(a, c->done_n, c->done[i].activity);
    TOKENS(a, c->done_n, c->done[i].token);
    NUMBERS(a, c->cancelled_n, c->cancelled[i].activity);
    NUMBERS(a, c->cancelled_n, c->cancelled[i].cause);
    NUMBERS(a, c->timers_cancelled_n, c->timers_cancelled[i]);
    ebb__postgres_bool(a, c->all_work);
    ebb__postgres_bool(a, c->all_timers);
    ebb__postgres_number(a, c->cause);
}

static void put_state(args *a, const ebb_provider_ack_turn_call *c) {
    const bool ends = c->ends != 0;
    const ebb_blob why = ebb_blob_text(text_or_empty(c->text));
    ebb__postgres_blob(a, c->custom);
    ebb__postgres_number(a, c->unread);
    ebb__postgres_text(a, ends ? ebb_instance_state_name(c->ends) : NULL);
    ebb__postgres_blob(a, ends ? &c->result : NULL);
    ebb__postgres_blob(a, ends ? &why : NULL);
    ebb__postgres_blob(a, c->next);
    ebb__postgres_number(a, c->next_version);
    ebb__postgres_blob(a, c->next != NULL ? &c->next_input : NULL);
    ebb__postgres_bool(a, c->keep);
}

static void put_ack(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_ack_turn_call *c = (const ebb_provider_ack_turn_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_number(a, c->node.epoch);
    ebb__postgres_token(a, c->token);
    ebb__postgres_token(a, c->ack_id);
    ebb__postgres_number(a, c->key);
    ebb__postgres_number(a, c->execution);
    ebb__postgres_number(a, c->turn);
    ebb__postgres_number(a, c->at);
    ebb__postgres_bytes(a, c->body);
    ebb__postgres_text(a, c->name);
    ebb__postgres_number(a, c->version);
    ebb__postgres_number(a, c->semantics);
    put_removed(a, c);
    ebb__postgres_put_work(a, c->work, c->work_n);
    ebb__postgres_span(a, c->lease);
    ebb__postgres_put_timers(a, c->timers, c->timers_n);
    ebb__postgres_put_outgoing(a, c->outgoing, c->outgoing_n);
    ebb__postgres_put_values(a, c->values, c->values_n);
    put_state(a, c);
}

void ebb__postgres_say_fenced(ebb__postgres_member *m) {
    const ebb_provider_ack_turn_call *c = (const ebb_provider_ack_turn_call *)m->call;
    ebb__postgres_say(
        m, EBB_ERR_FENCED, "turn %llu of execution %llu of instance %llu can't be committed any more",
        (unsigned long long)c->turn, (unsigned long long)c->execution, (unsigned long long)c->key);
}

void ebb__postgres_say_lacking(ebb__postgres_member *m, uint64_t at) {
    ebb_provider_ack_turn_call *c = (ebb_provider_ack_turn_call *)m->call;
    c->gone_at = at;
    ebb__postgres_say(m, EBB_ERR_GONE, "work %zu of %zu that the turn would end is not held any more",
                      c->gone_at, c->done_n);
}

static void get_ack(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_ack_turn_call *c = (ebb_provider_ack_turn_call *)m->call;
    if (ebb__postgres_outcome(s, m, r)) {
        c->dropped = (uint32_t)ebb__postgres_get_number(r, 0, 3);
        s->stats.dropped += c->dropped;
    } else if (m->status == EBB_ERR_GONE) ebb__postgres_say_lacking(m, ebb__postgres_get_number(r, 0, 2));
    else if (m->status == EBB_ERR_FENCED) ebb__postgres_say_fenced(m);
}

static void put_abandon(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_abandon_turns_call *c = (const ebb_provider_abandon_turns_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_tokens(a, c->tokens, c->tokens_n);
}

const ebb__postgres_op ebb__postgres_turn_ops[] = {
    [EBB_PROVIDER_FETCH_TURNS] = {"fetch_turns", true, 17, 1, put_fetch, get_fetch},
    [EBB_PROVIDER_ACK_TURN] = {"ack_turn", true, 4, 0, put_ack, get_ack},
    [EBB_PROVIDER_ABANDON_TURNS] = {"abandon_turns", true, 2, 0, put_abandon, get_outcome},
};
