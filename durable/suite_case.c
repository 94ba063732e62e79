/* The verbs of the conformance suite. */
#include "durable/suite_case.h"

#include <stdarg.h>
#include <stdio.h>

ebb_status ebb__t_fail(ebb__suite *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(s->text, sizeof s->text, format, args);
    va_end(args);
    return EBB_ERR_ORACLE;
}

ebb_status ebb__t_same(ebb__suite *s, const char *what, uint64_t found, uint64_t expected, const char *site) {
    if (found == expected) return EBB_OK;
    return ebb__t_fail(s, "%s is %lld, not %lld (%s)", what, (long long)found, (long long)expected, site);
}

ebb_status ebb__t_blob(ebb__suite *s, ebb_blob found, ebb_blob expected, const char *site) {
    if (found.n == expected.n && (found.n == 0 || memcmp(found.at, expected.at, found.n) == 0)) return EBB_OK;
    return ebb__t_fail(s, "%zu bytes \"%.*s\", not %zu bytes \"%.*s\" (%s)", found.n,
                       found.n < 40 ? (int)found.n : 40, found.n != 0 ? (const char *)found.at : "",
                       expected.n, expected.n < 40 ? (int)expected.n : 40,
                       expected.n != 0 ? (const char *)expected.at : "", site);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static void *new_call(ebb__suite *s, ebb_store *store, ebb_provider_op op) {
    void *c = ebb__call_new(ebb__store_gate(store), op);
    if (c != NULL) return c;
    memset(&s->spare, 0, sizeof s->spare);
    return &s->spare;
}

void *ebb__t_room(ebb__suite *s, void *call, size_t n) {
    return call != (void *)&s->spare ? ebb__call_room(call, n) : ebb__arena_alloc(&s->arena, n);
}

void *ebb__t_new(ebb__suite *s, ebb_provider_op op) {
    return new_call(s, s->store, op);
}

void *ebb__t_new_other(ebb__suite *s, ebb_provider_op op) {
    return new_call(s, s->other, op);
}

static ebb_status wait_for(ebb__suite *s, ebb_future *f, ebb_provider_call **out, const char *site) {
    ebb_value v;
    const ebb_status st = ebb_await(s->cx, f, &v);
    if (st != EBB_OK) return ebb__t_fail(s, "not asked: %s (%s)", ebb_status_text(st), site);
    ebb_provider_call *c = *out = ebb__call_of(&v);
    c->next = s->kept;
    s->kept = c;
    return EBB_OK;
}

static ebb_status compare(ebb__suite *s, const ebb_provider_call *c, ebb_status expected, const char *site) {
    if (c->status == expected) return EBB_OK;
    return ebb__t_fail(s, "%s ended with %s (%s), not with %s (%s)", ebb__call_types[c->op].name,
                       ebb_status_name(c->status), c->text, ebb_status_name(expected), site);
}

ebb_status ebb__t_ask(ebb__suite *s, void *call, ebb_status expected, const char *site) {
    ebb_provider_call *c;
    if (call == (void *)&s->spare) return ebb__t_fail(s, "no memory for a call (%s)", site);
    TRY(wait_for(s, ebb__call_begin(s->cx, call, site), &c, site));
    return compare(s, c, expected, site);
}

ebb_status ebb__t_ask_each(ebb__suite *s, ebb_provider_call *const *calls, size_t n) {
    ebb_status first = EBB_OK;
    ebb_provider_call *c;
    ebb_future **f = ebb__arena_alloc(&s->arena, n * sizeof(void *));
    if (f == NULL) return ebb__t_fail(s, "no memory for %zu calls", n);
    for (size_t i = 0; i < n; i++)
        if (calls[i] == &s->spare.call) return ebb__t_fail(s, "no memory for a call");
    for (size_t i = 0; i < n; i++) f[i] = ebb__call_begin(s->cx, calls[i], EBB_SITE);
    for (size_t i = 0; i < n; i++) {
        const ebb_status st = wait_for(s, f[i], &c, EBB_SITE);
        if (first == EBB_OK) first = st;
    }
    return first;
}

ebb_status ebb__t_ask_all(ebb__suite *s, ebb_provider_call *const *calls, size_t n, ebb_status expected,
                          const char *site) {
    TRY(ebb__t_ask_each(s, calls, n));
    for (size_t i = 0; i < n; i++) TRY(compare(s, calls[i], expected, site));
    return EBB_OK;
}

const char *ebb__t_id(ebb__suite *s, const char *what) {
    char text[EBB_DURABLE_ID + 1];
    (void)snprintf(text, sizeof text, "%s-%llx-%s", s->now->name, (unsigned long long)s->run, what);
    char *copy = ebb__arena_alloc(&s->arena, strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : "no memory";
}

ebb_blob ebb__t_bytes(ebb__suite *s, size_t n) {
    uint8_t *at = ebb__arena_alloc(&s->arena, n + 1);
    if (at == NULL) return (ebb_blob){NULL, 0};
    for (size_t i = 0; i < n; i++) at[i] = (uint8_t)(i ^ i >> 8);
    return (ebb_blob){at, n};
}

ebb_provider_token ebb__t_token(ebb__suite *s) {
    return ebb__token_new(ebb__store_host(s->store));
}

void ebb__t_wait(ebb__suite *s, uint64_t ns) {
    (void)ebb_await(s->cx, ebb_after(s->cx, ns), NULL);
}

void ebb__t_lapse(ebb__suite *s) {
    ebb__t_wait(s, EBB__T_LEASE + EBB__T_LEASE / 2);
}

ebb_status ebb__t_hear(ebb__suite *s, const uint32_t *count, const char *what) {
    for (int i = 0; i < 100 && *count == 0 && s->heard.lost == 0; i++) ebb__t_wait(s, 10 * EBB_MS);
    if (*count != 0 || s->heard.lost != 0) return EBB_OK;
    return ebb__t_fail(s, "no hint %s has come within a second", what);
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

ebb_status ebb__t_join_runs(ebb__suite *s, uint64_t lease, const ebb_provider_runs *runs, size_t n,
                            size_t *which) {
    ebb_provider_join_call *c = ebb__t_new(s, EBB_PROVIDER_JOIN);
    c->name = "suite";
    c->lease = lease;
    c->runs = runs;
    c->runs_n = n;
    ASK(s, c, EBB_OK);
    *which = s->nodes++;
    s->node[*which] = c->node;
    return EBB_OK;
}

ebb_status ebb__t_join(ebb__suite *s, uint64_t lease, size_t *which) {
    const ebb_provider_runs runs[] = {{s->name, 1}, {s->name, 2}, {s->name, 3}};
    return ebb__t_join_runs(s, lease, runs, 3, which);
}

ebb_status ebb__t_leave(ebb__suite *s, size_t which) {
    ebb_provider_leave_call *c = ebb__t_new(s, EBB_PROVIDER_LEAVE);
    c->node = s->node[which];
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}

ebb_status ebb__t_go_away(ebb__suite *s) {
    s->away = true;
    TRY(ebb__t_leave(s, 0));
    return ebb__t_leave(s, 1);
}

ebb_status ebb__t_come_back(ebb__suite *s) {
    const size_t nodes = s->nodes;
    size_t which;
    if (!s->away) return EBB_OK;
    for (s->nodes = 0; s->nodes < 2;) {
        const ebb_status st = ebb__t_join(s, EBB__T_LONG, &which);
        if (st != EBB_OK) {
            s->nodes = nodes;
            return st;
        }
    }
    s->nodes = nodes;
    s->away = false;
    return EBB_OK;
}

ebb_provider_renew_call *ebb__t_renew(ebb__suite *s, size_t which, const ebb_provider_token *tokens, size_t n,
                                      uint64_t lease) {
    ebb_provider_renew_call *c = ebb__t_new(s, EBB_PROVIDER_RENEW);
    c->node = s->node[which];
    c->lease = lease;
    c->tokens = tokens;
    c->tokens_n = n;
    return c;
}

/* ---- instances ------------------------------------------------------------------------------------------------------ */

ebb_provider_start_call *ebb__t_start_call(ebb__suite *s, const char *what) {
    ebb_provider_start_call *c = ebb__t_new(s, EBB_PROVIDER_START);
    c->id = ebb__t_id(s, what);
    c->name = s->name;
    c->version = 1;
    c->input = ebb_blob_text("{}");
    c->message = ebb_blob_text("start");
    return c;
}

ebb_status ebb__t_start(ebb__suite *s, const char *what, ebb__t_instance *x) {
    ebb_provider_start_call *c = ebb__t_start_call(s, what);
    memset(x, 0, sizeof *x);
    ASK(s, c, EBB_OK);
    SAME(s, c->existed, false);
    x->id = c->id;
    x->key = c->row.key;
    x->execution = 1;
    return EBB_OK;
}

ebb_provider_send_call *ebb__t_send_call(ebb__suite *s, const char *id, const char *body) {
    ebb_provider_send_call *c = ebb__t_new(s, EBB_PROVIDER_SEND);
    c->id = id;
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    c->dedup = "";
    c->body = ebb_blob_text(body);
    return c;
}

ebb_status ebb__t_send(ebb__suite *s, const ebb__t_instance *x, const char *body) {
    return ebb__t_ask(s, ebb__t_send_call(s, x->id, body), EBB_OK, EBB_SITE);
}

ebb_status ebb__t_row(ebb__suite *s, const ebb__t_instance *x, const ebb_provider_instance_row **out) {
    ebb_provider_instance_call *c = ebb__t_new(s, EBB_PROVIDER_INSTANCE);
    c->id = x->id;
    ASK(s, c, EBB_OK);
    *out = &c->row;
    return EBB_OK;
}

ebb_status ebb__t_left(ebb__suite *s, const ebb__t_instance *x, ebb_provider_outstanding_call **out) {
    ebb_provider_outstanding_call *c = *out = ebb__t_new(s, EBB_PROVIDER_OUTSTANDING);
    c->id = x->id;
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}

ebb_status ebb__t_has(ebb__suite *s, const ebb__t_instance *x, uint64_t work, uint64_t timers,
                      uint64_t messages) {
    ebb_provider_outstanding_call *c;
    TRY(ebb__t_left(s, x, &c));
    if (c->work == work && c->timers == timers && c->messages == messages) return EBB_OK;
    return ebb__t_fail(
        s, "%s has %llu work, %llu timers and %llu messages outstanding, not %llu, %llu and %llu", x->id,
        (unsigned long long)c->work, (unsigned long long)c->timers, (unsigned long long)c->messages,
        (unsigned long long)work, (unsigned long long)timers, (unsigned long long)messages);
}

/* ---- turns ------------------------------------------------------------------------------------------------------------ */

ebb_provider_fetch_turns_call *ebb__t_fetch_call(ebb__suite *s, size_t node, const ebb__t_instance *x) {
    ebb_provider_fetch_turns_call *c = ebb__t_new(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = s->node[node];
    c->only = &x->key;
    c->only_n = 1;
    c->most = 8;
    c->messages = EBB_DURABLE_BATCH;
    return c;
}

static ebb_status try_take(ebb__suite *s, ebb__t_instance *x, size_t node) {
    ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, node, x);
    ASK(s, c, EBB_OK);
    if (c->items_n == 0) return EBB_OK;
    SAME(s, c->items_n, 1);
    SAME(s, c->items[0].key, x->key);
    CHECK(s, c->items[0].messages_n > 0);
    CHECK(s, !ebb__token_is_none(c->items[0].token));
    x->item = &c->items[0];
    x->execution = x->item->execution;
    x->turn = x->item->turn;
    x->node = node;
    return EBB_OK;
}

ebb_status ebb__t_take(ebb__suite *s, ebb__t_instance *x) {
    x->item = NULL;
    for (int i = 0; i < 50; i++) {
        for (size_t node = 0; node < s->nodes && x->item == NULL; node++) TRY(try_take(s, x, node));
        if (x->item != NULL) return EBB_OK;
        ebb__t_wait(s, 20 * EBB_MS);
    }
    return ebb__t_fail(s, "no node is given %s, which has messages", x->id);
}

ebb_status ebb__t_take_by(ebb__suite *s, size_t node, ebb__t_instance *x) {
    char what[16];
    for (int i = 0; i < 32; i++) {
        (void)snprintf(what, sizeof what, "by%zu-%d", node, i);
        TRY(ebb__t_start(s, what, x));
        for (int n = 0; n < 3 && x->item == NULL; n++) {
            TRY(try_take(s, x, node));
            if (x->item == NULL) ebb__t_wait(s, 10 * EBB_MS);
        }
        if (x->item != NULL) return EBB_OK;
    }
    return ebb__t_fail(s, "of 32 instances node %zu is given none", node);
}

ebb_status ebb__t_take_suspect(ebb__suite *s, ebb__t_instance *x) {
    for (int i = 0; i < 50; i++) {
        for (size_t node = 0; node < s->nodes; node++) {
            ebb_provider_fetch_turns_call *c = ebb__t_fetch_call(s, node, x);
            c->suspects = true;
            ASK(s, c, EBB_OK);
            if (c->items_n == 0) continue;
            x->item = &c->items[0];
            x->node = node;
            return EBB_OK;
        }
        ebb__t_wait(s, 20 * EBB_MS);
    }
    return ebb__t_fail(s, "no node is given the suspect %s", x->id);
}

ebb_status ebb__t_idle(ebb__suite *s, const ebb__t_instance *x) {
    ebb__t_instance copy = *x;
    copy.item = NULL;
    for (size_t node = 0; node < s->nodes && copy.item == NULL; node++) TRY(try_take(s, &copy, node));
    if (copy.item == NULL) return EBB_OK;
    return ebb__t_fail(s, "node %zu is given %s, turn %llu with %zu messages", copy.node, x->id,
                       (unsigned long long)copy.turn, copy.item->messages_n);
}

ebb_provider_ack_turn_call *ebb__t_turn(ebb__suite *s, const ebb__t_instance *x) {
    ebb_provider_ack_turn_call *c = ebb__t_new(s, EBB_PROVIDER_ACK_TURN);
    const size_t n = x->item != NULL ? x->item->messages_n : 0;
    ebb_provider_message_key *acked = ebb__t_room(s, c, (n + 1) * sizeof *acked);
    for (size_t i = 0; i < n && acked != NULL; i++) acked[i] = x->item->messages[i].at;
    c->acked = acked;
    c->acked_n = acked != NULL ? n : 0;
    c->node = s->node[x->node];
    if (x->item != NULL) c->token = x->item->token;
    c->ack_id = ebb__t_token(s);
    c->key = x->key;
    c->execution = x->execution;
    c->turn = x->turn + 1;
    c->at = 1000 + x->turn;
    c->body = ebb_blob_text("turn");
    c->semantics = 1;
    return c;
}

ebb_status ebb__t_commit(ebb__suite *s, ebb__t_instance *x, ebb_provider_ack_turn_call *c) {
    ASK(s, c, EBB_OK);
    x->turn = c->turn;
    x->item = NULL;
    if (c->next != NULL) {
        x->execution++;
        x->turn = 0;
    }
    return EBB_OK;
}

const ebb_provider_work *ebb__t_work(ebb__suite *s, uint64_t first, size_t n) {
    ebb_provider_work *w = ebb__arena_zero(&s->arena, (n + 1) * sizeof *w);
    for (size_t i = 0; i < n && w != NULL; i++) {
        w[i].activity = first + i;
        w[i].queue = s->queue;
        w[i].session = "";
        w[i].name = "charge";
        w[i].attempt = 1;
        w[i].input = ebb_blob_text("{\"amount\":7}");
    }
    return w;
}

ebb_status ebb__t_begin(ebb__suite *s, const char *what, size_t work, ebb__t_instance *x) {
    TRY(ebb__t_start(s, what, x));
    TRY(ebb__t_take(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->work = ebb__t_work(s, 1, work);
    c->work_n = work;
    return ebb__t_commit(s, x, c);
}

ebb_status ebb__t_poke(ebb__suite *s, ebb__t_instance *x) {
    TRY(ebb__t_send(s, x, "poke"));
    return ebb__t_take(s, x);
}

ebb_status ebb__t_end(ebb__suite *s, ebb__t_instance *x, ebb_instance_state state) {
    if (x->item == NULL) TRY(ebb__t_poke(s, x));
    ebb_provider_ack_turn_call *c = ebb__t_turn(s, x);
    c->ends = state;
    c->result = ebb_blob_text("result");
    c->text = "";
    return ebb__t_commit(s, x, c);
}

/* ---- work ---------------------------------------------------------------------------------------------------------------- */

ebb_provider_fetch_work_call *ebb__t_work_call(ebb__suite *s, size_t node, uint64_t lease, uint32_t most) {
    ebb_provider_fetch_work_call *c = ebb__t_new(s, EBB_PROVIDER_FETCH_WORK);
    ebb_provider_queue *q = ebb__t_room(s, c, sizeof *q);
    if (q != NULL) *q = (ebb_provider_queue){s->queue, most};
    c->node = s->node[node];
    c->queues = q;
    c->queues_n = q != NULL;
    c->most = most;
    c->lease = lease;
    return c;
}

ebb_status ebb__t_claim(ebb__suite *s, size_t node, uint64_t lease, size_t expected,
                        ebb_provider_work_item **out) {
    ebb_provider_fetch_work_call *c = ebb__t_work_call(s, node, lease, 1000);
    ASK(s, c, EBB_OK);
    *out = c->items;
    return ebb__t_same(s, "work that is given", c->items_n, expected, EBB_SITE);
}

ebb_provider_ack_work_call *ebb__t_done(ebb__suite *s, size_t node, const ebb_provider_work_item *item,
                                        const char *message) {
    ebb_provider_ack_work_call *c = ebb__t_new(s, EBB_PROVIDER_ACK_WORK);
    ebb_blob *body = ebb__t_room(s, c, sizeof *body);
    if (body != NULL && message != NULL) *body = ebb_blob_text(message);
    c->node = s->node[node];
    c->token = item->token;
    c->ack_id = ebb__t_token(s);
    c->key = item->key;
    c->execution = item->execution;
    c->activity = item->activity;
    c->message = message != NULL ? body : NULL;
    return c;
}

ebb_status ebb__t_abandon(ebb__suite *s, size_t node, ebb_provider_token token, uint64_t delay) {
    ebb_provider_abandon_work_call *c = ebb__t_new(s, EBB_PROVIDER_ABANDON_WORK);
    c->node = s->node[node];
    c->tokens = &token;
    c->tokens_n = 1;
    c->delay = delay;
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}

ebb_status ebb__t_abandon_turn(ebb__suite *s, size_t node, ebb_provider_token token) {
    ebb_provider_abandon_turns_call *c = ebb__t_new(s, EBB_PROVIDER_ABANDON_TURNS);
    c->node = s->node[node];
    c->tokens = &token;
    c->tokens_n = 1;
    return ebb__t_ask(s, c, EBB_OK, EBB_SITE);
}
