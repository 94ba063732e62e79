/* Turns and ends of work that are committed many at once: which they are, what is sent, and what comes back. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

typedef ebb__postgres_args args;

static const ebb_provider_ack_turn_call *ack_of(const ebb__postgres_member *m) {
    return (const ebb_provider_ack_turn_call *)m->call;
}

static bool is_plain(const ebb_provider_ack_turn_call *a) {
    return a->node.id != 0 && a->cancelled_n == 0 && a->outgoing_n == 0 && a->values_n == 0 &&
           a->next == NULL;
}

/* Of one node, and of different instances. */
static bool turns_together(const ebb_provider_call *x, const ebb_provider_call *y) {
    const ebb_provider_ack_turn_call *a = (const ebb_provider_ack_turn_call *)x;
    const ebb_provider_ack_turn_call *b = (const ebb_provider_ack_turn_call *)y;
    return a->key != b->key && a->node.id == b->node.id && a->node.epoch == b->node.epoch;
}

static bool works_together(const ebb_provider_call *a, const ebb_provider_call *b) {
    (void)a;
    (void)b;
    return true;
}

/* ---- sent ----------------------------------------------------------------------------------------------------- */

/* A column of the members: each is `c` in turn. */
#define EACH(a, type, m, n, PUT, value)                                                                      \
    do {                                                                                                     \
        ebb__postgres_array((a), (type), (n));                                                               \
        for (uint32_t i = 0; i < (n); i++) {                                                                 \
            const ebb_provider_ack_turn_call *c = ack_of(&(m)[i]);                                           \
            PUT((a), (value));                                                                               \
        }                                                                                                    \
    } while (0)

/* A column of what members have many of: `n_of` rows of each; `c` is the member, `i` its place, `k` the row. */
#define EACH_OF(a, type, m, n, n_of, PUT, value)                                                             \
    do {                                                                                                     \
        size_t rows = 0;                                                                                     \
        for (uint32_t i = 0; i < (n); i++) {                                                                 \
            const ebb_provider_ack_turn_call *c = ack_of(&(m)[i]);                                           \
            rows += (n_of);                                                                                  \
        }                                                                                                    \
        ebb__postgres_array((a), (type), rows);                                                              \
        for (uint32_t i = 0; i < (n); i++) {                                                                 \
            const ebb_provider_ack_turn_call *c = ack_of(&(m)[i]);                                           \
            for (size_t k = 0; k < (n_of); k++) PUT((a), (value));                                           \
        }                                                                                                    \
    } while (0)

static void put_members(args *a, const ebb__postgres_member *m, uint32_t n) {
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->key);
    EACH(a, EBB__OID_UUID, m, n, ebb__postgres_token, c->token);
    EACH(a, EBB__OID_UUID, m, n, ebb__postgres_token, c->ack_id);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->execution);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->turn);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->at);
    EACH(a, EBB__OID_BYTEA, m, n, ebb__postgres_bytes, c->body);
    EACH(a, EBB__OID_TEXT, m, n, ebb__postgres_text, c->name);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->version);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->semantics);
    EACH(a, EBB__OID_BYTEA, m, n, ebb__postgres_blob, c->custom);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->unread);
}

static const ebb_blob *result_of(const ebb_provider_ack_turn_call *c) {
    return c->ends != 0 ? &c->result : NULL;
}

static void put_why(args *a, const ebb_provider_ack_turn_call *c) {
    if (c->ends == 0) ebb__postgres_null(a);
    else ebb__postgres_bytes(a, ebb_blob_text(c->text != NULL ? c->text : ""));
}

static void put_ends(args *a, const ebb__postgres_member *m, uint32_t n) {
    EACH(a, EBB__OID_TEXT, m, n, ebb__postgres_text, c->ends != 0 ? ebb_instance_state_name(c->ends) : NULL);
    EACH(a, EBB__OID_BYTEA, m, n, ebb__postgres_blob, result_of(c));
    EACH(a, EBB__OID_BYTEA, m, n, put_why, c);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->keep);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->all_work);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->all_timers);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_number, c->cause);
    EACH(a, EBB__OID_INT8, m, n, ebb__postgres_span, c->lease);
}

static bool is_timer(const ebb_provider_message_key *at) {
    return at->kind == EBB_PROVIDER_MESSAGE_TIMER;
}

/* What goes with the turn: timers are acked like messages, but are rows of their own, as those that are cancelled. */
static size_t gone_of(const ebb_provider_ack_turn_call *c, bool timers) {
    size_t n = timers ? c->timers_cancelled_n : 0;
    for (size_t i = 0; i < c->acked_n; i++) n += is_timer(&c->acked[i]) == timers;
    return n;
}

/* The places of the members, or what they ack. */
static void put_gone_column(args *a, const ebb__postgres_member *m, uint32_t n, bool timers, bool places) {
    size_t rows = 0;
    for (uint32_t i = 0; i < n; i++) rows += gone_of(ack_of(&m[i]), timers);
    ebb__postgres_array(a, EBB__OID_INT8, rows);
    for (uint32_t i = 0; i < n; i++) {
        const ebb_provider_ack_turn_call *c = ack_of(&m[i]);
        for (size_t k = 0; k < c->acked_n; k++)
            if (is_timer(&c->acked[k]) == timers) ebb__postgres_signed(a, places ? i + 1 : c->acked[k].seq);
        for (size_t k = 0; timers && k < c->timers_cancelled_n; k++)
            ebb__postgres_signed(a, places ? i + 1 : c->timers_cancelled[k]);
    }
}

static void put_gone(args *a, const ebb__postgres_member *m, uint32_t n, bool timers) {
    put_gone_column(a, m, n, timers, true);
    put_gone_column(a, m, n, timers, false);
}

/* A turn that removes all of them makes none. */
static size_t timers_of(const ebb_provider_ack_turn_call *c) {
    return c->all_timers ? 0 : c->timers_n;
}

static size_t work_of(const ebb_provider_ack_turn_call *c) {
    return c->all_work ? 0 : c->work_n;
}

static void put_timers(args *a, const ebb__postgres_member *m, uint32_t n) {
    EACH_OF(a, EBB__OID_INT8, m, n, timers_of(c), ebb__postgres_number, i + 1);
    EACH_OF(a, EBB__OID_INT8, m, n, timers_of(c), ebb__postgres_number, c->timers[k].step);
    EACH_OF(a, EBB__OID_INT8, m, n, timers_of(c), ebb__postgres_number, c->timers[k].due);
}

static void put_session(args *a, const char *session) {
    ebb__postgres_text(a, session != NULL ? session : "");
}

static void put_work(args *a, const ebb__postgres_member *m, uint32_t n) {
    EACH_OF(a, EBB__OID_INT8, m, n, work_of(c), ebb__postgres_number, i + 1);
    EACH_OF(a, EBB__OID_INT8, m, n, work_of(c), ebb__postgres_number, c->work[k].activity);
    EACH_OF(a, EBB__OID_TEXT, m, n, work_of(c), ebb__postgres_text, c->work[k].queue);
    EACH_OF(a, EBB__OID_TEXT, m, n, work_of(c), put_session, c->work[k].session);
    EACH_OF(a, EBB__OID_TEXT, m, n, work_of(c), ebb__postgres_text, c->work[k].name);
    EACH_OF(a, EBB__OID_INT8, m, n, work_of(c), ebb__postgres_number, c->work[k].attempt);
    EACH_OF(a, EBB__OID_BYTEA, m, n, work_of(c), ebb__postgres_bytes, c->work[k].input);
    EACH_OF(a, EBB__OID_UUID, m, n, work_of(c), ebb__postgres_token, c->work[k].token);
}

static void put_done(args *a, const ebb__postgres_member *m, uint32_t n) {
    EACH_OF(a, EBB__OID_INT8, m, n, c->done_n, ebb__postgres_number, i + 1);
    EACH_OF(a, EBB__OID_INT8, m, n, c->done_n, ebb__postgres_number, c->done[k].execution);
    EACH_OF(a, EBB__OID_INT8, m, n, c->done_n, ebb__postgres_number, c->done[k].activity);
    EACH_OF(a, EBB__OID_UUID, m, n, c->done_n, ebb__postgres_token, c->done[k].token);
}

static void put_turns(const ebb__postgres_member *m, uint32_t n, const uint64_t *lock, size_t lock_n,
                      args *a) {
    ebb__postgres_number(a, ack_of(m)->node.id);
    ebb__postgres_number(a, ack_of(m)->node.epoch);
    ebb__postgres_keys(a, lock, lock_n);
    put_members(a, m, n);
    put_ends(a, m, n);
    put_gone(a, m, n, false);
    put_gone(a, m, n, true);
    put_timers(a, m, n);
    put_work(a, m, n);
    put_done(a, m, n);
}

static const ebb_provider_ack_work_call *end_of(const ebb__postgres_member *m) {
    return (const ebb_provider_ack_work_call *)m->call;
}

#define EACH_END(a, type, m, n, PUT, value)                                                                  \
    do {                                                                                                     \
        ebb__postgres_array((a), (type), (n));                                                               \
        for (uint32_t i = 0; i < (n); i++) PUT((a), end_of(&(m)[i])->value);                                 \
    } while (0)

static void put_works(const ebb__postgres_member *m, uint32_t n, const uint64_t *lock, size_t lock_n,
                      args *a) {
    ebb__postgres_keys(a, lock, lock_n);
    EACH_END(a, EBB__OID_INT8, m, n, ebb__postgres_number, key);
    EACH_END(a, EBB__OID_INT8, m, n, ebb__postgres_number, execution);
    EACH_END(a, EBB__OID_INT8, m, n, ebb__postgres_number, activity);
    EACH_END(a, EBB__OID_UUID, m, n, ebb__postgres_token, token);
    EACH_END(a, EBB__OID_UUID, m, n, ebb__postgres_token, ack_id);
    EACH_END(a, EBB__OID_BYTEA, m, n, ebb__postgres_blob, message);
}

/* ---- answered: a row a member, in their order; the hints are in the first ------------------------------------- */

enum { OUTCOME_GONE = 2 };

static void get_hints(ebb__postgres_member *m, const PGresult *r) {
    bool whole = true;
    m->hints = ebb__postgres_get_text(m->call, r, 0, 1, &whole);
    if (!whole) m->hints = "l\n";
}

static void get_turns(ebb__postgres *s, ebb__postgres_member *m, uint32_t n, const PGresult *r) {
    (void)s;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t code = ebb__postgres_get_number(r, (int)i, 0);
        if (code == OUTCOME_GONE) ebb__postgres_say_lacking(&m[i], ebb__postgres_get_number(r, (int)i, 2));
        else if (code != 0) ebb__postgres_say_fenced(&m[i]);
    }
    get_hints(m, r);
}

static void get_works(ebb__postgres *s, ebb__postgres_member *m, uint32_t n, const PGresult *r) {
    for (uint32_t i = 0; i < n; i++) {
        ebb_provider_ack_work_call *c = (ebb_provider_ack_work_call *)m[i].call;
        if (ebb__postgres_get_number(r, (int)i, 0) != 0) ebb__postgres_say_gone(&m[i]);
        c->dropped = ebb__postgres_get_bool(r, (int)i, 2);
        s->stats.dropped += c->dropped;
    }
    get_hints(m, r);
}

const ebb__postgres_shared *ebb__postgres_shared_of(const ebb_provider_call *c) {
    static const ebb__postgres_shared turns = {"ack_turns", 3, 0, put_turns, get_turns, turns_together};
    static const ebb__postgres_shared works = {"ack_works", 3, 1, put_works, get_works, works_together};
    if (c->op == EBB_PROVIDER_ACK_WORK) return &works;
    if (c->op != EBB_PROVIDER_ACK_TURN) return NULL;
    return is_plain((const ebb_provider_ack_turn_call *)c) ? &turns : NULL;
}
