/* Work in the PostgreSQL provider. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include "base/hash.h"

typedef ebb__postgres_args args;

/* Even, and not that of a node. */
static uint64_t queues_id(const ebb_provider_fetch_work_call *c) {
    uint64_t id = 1;
    for (size_t i = 0; i < c->queues_n; i++)
        for (const char *at = c->queues[i].name; at == c->queues[i].name || at[-1] != 0; at++)
            id = ebb__hash_word(id ^ (uint8_t)*at);
    return (id | 2) & ~UINT64_C(1);
}

static void put_fetch(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_fetch_work_call *c = (const ebb_provider_fetch_work_call *)m->call;
    const uint32_t most = c->most < EBB__POSTGRES_CLAIMS ? c->most : EBB__POSTGRES_CLAIMS;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_number(a, c->node.epoch);
    ebb__postgres_array(a, EBB__OID_TEXT, c->queues_n);
    for (size_t i = 0; i < c->queues_n; i++) ebb__postgres_text(a, c->queues[i].name);
    ebb__postgres_array(a, EBB__OID_INT8, c->queues_n);
    for (size_t i = 0; i < c->queues_n; i++) ebb__postgres_number(a, c->queues[i].most);
    ebb__postgres_keys(a, c->only, c->only_n);
    ebb__postgres_number(a, most);
    ebb__postgres_span(a, c->lease);
    ebb__postgres_bool(a, c->suspects);
    ebb__postgres_put_floor(s, m, a, queues_id(c), c->only == NULL);
    ebb__postgres_claim_new(s, m, a, c->node.id, most);
}

static bool get_item(ebb_provider_call *c, const PGresult *r, int row, ebb_provider_work_item *to) {
    bool whole = true;
    *to = (ebb_provider_work_item){.token = ebb__postgres_get_token(r, row, 3),
                                   .key = ebb__postgres_get_number(r, row, 4),
                                   .id = ebb__postgres_get_text(c, r, row, 5, &whole),
                                   .execution = ebb__postgres_get_number(r, row, 6),
                                   .activity = ebb__postgres_get_number(r, row, 7),
                                   .name = ebb__postgres_get_text(c, r, row, 8, &whole),
                                   .attempt = (uint32_t)ebb__postgres_get_number(r, row, 9),
                                   .attempts = (uint32_t)ebb__postgres_get_number(r, row, 10),
                                   .waited = ebb__postgres_get_number(r, row, 11),
                                   .input = ebb__postgres_get_blob(c, r, row, 12, &whole)};
    return whole;
}

static void get_fetch(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_fetch_work_call *c = (ebb_provider_fetch_work_call *)m->call;
    const int rows = PQntuples(r);
    ebb__postgres_times(s, r, &c->now, &c->again, &c->suspects_wait);
    ebb__postgres_get_floor(s, m, r, 13, queues_id(c));
    c->items_n = 0;
    c->items = ebb_provider_alloc(m->call, (size_t)rows * sizeof *c->items);
    bool whole = c->items != NULL;
    for (int row = 1; row < rows && whole; row++) whole = get_item(m->call, r, row, &c->items[c->items_n++]);
    if (!whole) ebb__postgres_nomem(m);
}

void ebb__postgres_say_gone(ebb__postgres_member *m) {
    const ebb_provider_ack_work_call *c = (const ebb_provider_ack_work_call *)m->call;
    ebb__postgres_say(m, EBB_ERR_GONE, "activity %llu of execution %llu of instance %llu is not held",
                      (unsigned long long)c->activity, (unsigned long long)c->execution,
                      (unsigned long long)c->key);
}

static void put_abandon(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_abandon_work_call *c = (const ebb_provider_abandon_work_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->node.id);
    ebb__postgres_tokens(a, c->tokens, c->tokens_n);
    ebb__postgres_span(a, c->delay);
}

static void get_abandon(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    (void)ebb__postgres_outcome(s, m, r);
}

const ebb__postgres_op ebb__postgres_work_ops[] = {
    [EBB_PROVIDER_FETCH_WORK] = {"fetch_work", true, 14, 1, put_fetch, get_fetch},
    [EBB_PROVIDER_ACK_WORK] = {"ack_works", true, 3, 1, NULL, NULL}, /* always shared */
    [EBB_PROVIDER_ABANDON_WORK] = {"abandon_work", true, 2, 0, put_abandon, get_abandon},
};
