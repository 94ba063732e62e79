/* What operators ask of the PostgreSQL provider. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

typedef ebb__postgres_args args;

static void say_fenced(ebb__postgres_member *m, uint64_t key, uint64_t execution, uint64_t turn) {
    ebb__postgres_say(m, EBB_ERR_FENCED, "turn %llu of execution %llu is not the last of instance %llu",
                      (unsigned long long)turn, (unsigned long long)execution, (unsigned long long)key);
}

static void put_mark(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_mark_call *c = (const ebb_provider_mark_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->key);
    ebb__postgres_number(a, c->execution);
    ebb__postgres_number(a, c->turn);
    ebb__postgres_text(a, ebb_instance_state_name(c->state));
    ebb__postgres_bytes(a, ebb_blob_text(c->text != NULL ? c->text : ""));
}

static void get_mark(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    const ebb_provider_mark_call *c = (const ebb_provider_mark_call *)m->call;
    if (!ebb__postgres_outcome(s, m, r)) say_fenced(m, c->key, c->execution, c->turn);
}

static void put_messages(args *a, const ebb_provider_message *messages, size_t n) {
    ebb__postgres_array(a, EBB__OID_INT8, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_number(a, messages[i].at.kind);
    ebb__postgres_array(a, EBB__OID_INT8, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_number(a, messages[i].execution);
    ebb__postgres_array(a, EBB__OID_INT8, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_number(a, messages[i].step);
    ebb__postgres_array(a, EBB__OID_BYTEA, n);
    for (size_t i = 0; i < n; i++) ebb__postgres_bytes(a, messages[i].body);
}

static void put_reset(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_reset_call *c = (const ebb_provider_reset_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->key);
    ebb__postgres_number(a, c->execution);
    ebb__postgres_number(a, c->turn);
    ebb__postgres_number(a, c->keep);
    ebb__postgres_put_work(a, c->work, c->work_n);
    ebb__postgres_put_timers(a, c->timers, c->timers_n);
    put_messages(a, c->messages, c->messages_n);
    ebb__postgres_put_values(a, c->values, c->values_n);
    ebb__postgres_put_outgoing(a, c->outgoing, c->outgoing_n);
}

static void get_reset(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    const ebb_provider_reset_call *c = (const ebb_provider_reset_call *)m->call;
    if (!ebb__postgres_outcome(s, m, r)) say_fenced(m, c->key, c->execution, c->turn);
}

static void put_remove(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_remove_call *c = (const ebb_provider_remove_call *)m->call;
    (void)s;
    ebb__postgres_array(a, EBB__OID_INT8, c->keys_n);
    for (size_t i = 0; i < c->keys_n; i++) ebb__postgres_number(a, c->keys[i]);
    ebb__postgres_bool(a, c->force);
}

static void get_remove(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_remove_call *c = (ebb_provider_remove_call *)m->call;
    if (ebb__postgres_outcome(s, m, r)) c->removed = ebb__postgres_get_number(r, 0, 2);
}

const ebb__postgres_op ebb__postgres_operator_ops[] = {
    [EBB_PROVIDER_MARK] = {"mark", true, 2, 0, put_mark, get_mark},
    [EBB_PROVIDER_RESET] = {"reset", true, 2, 0, put_reset, get_reset},
    [EBB_PROVIDER_REMOVE] = {"remove", true, 3, 0, put_remove, get_remove},
};
