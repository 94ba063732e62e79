/* What clients ask of the PostgreSQL provider. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <string.h>

typedef ebb__postgres_args args;

static void say_unknown(ebb__postgres_member *m, const char *id) {
    ebb__postgres_say(m, EBB_ERR_UNKNOWN_INSTANCE, "instance '%s' is not there, or has ended",
                      id != NULL ? id : "");
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

/* The columns of rows_of, from column k on. */
static void get_row(ebb__postgres_member *m, const PGresult *r, int row, int k,
                    ebb_provider_instance_row *to) {
    bool whole = true;
    ebb_provider_call *c = m->call;
    const char *state = ebb__postgres_get_text(c, r, row, k + 8, &whole);
    *to = (ebb_provider_instance_row){.key = ebb__postgres_get_number(r, row, k),
                                      .id = ebb__postgres_get_text(c, r, row, k + 1, &whole),
                                      .name = ebb__postgres_get_text(c, r, row, k + 2, &whole),
                                      .parent = ebb__postgres_get_text(c, r, row, k + 3, &whole),
                                      .version = (uint32_t)ebb__postgres_get_number(r, row, k + 4),
                                      .semantics = (uint32_t)ebb__postgres_get_number(r, row, k + 5),
                                      .execution = ebb__postgres_get_number(r, row, k + 6),
                                      .turn = ebb__postgres_get_number(r, row, k + 7),
                                      .started = ebb__postgres_get_number(r, row, k + 9),
                                      .ended = ebb__postgres_get_number(r, row, k + 10),
                                      .unserved = ebb__postgres_get_bool(r, row, k + 11),
                                      .text = ebb__postgres_get_text(c, r, row, k + 12, &whole),
                                      .custom = ebb__postgres_get_blob(c, r, row, k + 13, &whole),
                                      .input = ebb__postgres_get_blob(c, r, row, k + 14, &whole),
                                      .result = ebb__postgres_get_blob(c, r, row, k + 15, &whole)};
    if (!whole) ebb__postgres_nomem(m);
    else if (ebb__instance_state_of(state, &to->state) != EBB_OK)
        ebb__postgres_say(m, EBB_ERR_CORRUPT, "instance '%s' has the state '%s', which there is not", to->id,
                          state);
}

/* ---- start, send ---------------------------------------------------------------------------------------------- */

static void put_start_of(args *a, const ebb_provider_start_call *c) {
    ebb__postgres_text(a, c->id);
    ebb__postgres_text(a, c->name);
    ebb__postgres_number(a, c->version);
    ebb__postgres_bytes(a, c->input);
    ebb__postgres_bytes(a, c->message);
    ebb__postgres_bool(a, c->reuse);
}

static void put_start(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    (void)s;
    put_start_of(a, (const ebb_provider_start_call *)m->call);
}

static void get_start(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_start_call *c = (ebb_provider_start_call *)m->call;
    if (ebb__postgres_outcome(s, m, r)) {
        c->existed = ebb__postgres_get_bool(r, 0, 2);
        get_row(m, r, 0, 3, &c->row);
    } else if (m->status == EBB_ERR_EXISTS)
        ebb__postgres_say(m, m->status, "instance '%s' exists with another name or input", c->id);
}

static void put_send(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_send_call *c = (const ebb_provider_send_call *)m->call;
    (void)s;
    ebb__postgres_text(a, c->id);
    ebb__postgres_number(a, c->kind);
    ebb__postgres_bytes(a, ebb_blob_text(c->dedup != NULL ? c->dedup : ""));
    ebb__postgres_bytes(a, c->body);
    ebb__postgres_number(a, EBB_DURABLE_SIGNALS);
    if (c->start != NULL) put_start_of(a, c->start);
    else
        for (int i = 0; i < 6; i++) ebb__postgres_null(a);
}

static void get_send(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    const ebb_provider_send_call *c = (const ebb_provider_send_call *)m->call;
    if (ebb__postgres_outcome(s, m, r)) return;
    if (m->status == EBB_ERR_UNKNOWN_INSTANCE) say_unknown(m, c->id);
    else if (m->status == EBB_ERR_LIMIT)
        ebb__postgres_say(m, m->status, "instance '%s' has %d signals that it has not taken (%d)", c->id,
                          EBB_DURABLE_SIGNALS, EBB_DURABLE_SIGNALS);
    else if (m->status == EBB_ERR_EXISTS)
        ebb__postgres_say(m, m->status, "instance '%s' exists with another name or input", c->id);
}

/* ---- reads ---------------------------------------------------------------------------------------------------- */

enum { HISTORY_MOST = 100000 }; /* turns of an answer: more than an execution may have events */

static void put_history(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_history_call *c = (const ebb_provider_history_call *)m->call;
    (void)s;
    ebb__postgres_number(a, c->key);
    ebb__postgres_text(a, c->id);
    ebb__postgres_number(a, c->execution);
    ebb__postgres_number(a, c->after);
    ebb__postgres_number(a, c->most != 0 ? c->most : HISTORY_MOST);
    ebb__postgres_number(a, c->bytes != 0 ? c->bytes : UINT64_MAX);
}

static void get_history(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_history_call *c = (ebb_provider_history_call *)m->call;
    const int rows = PQntuples(r);
    bool whole = true;
    c->turns_n = 0;
    c->more = false;
    if (!ebb__postgres_outcome(s, m, r)) {
        m->hints = NULL;
        say_unknown(m, c->id);
        return;
    }
    m->hints = NULL;
    c->more = ebb__postgres_get_bool(r, 0, 5);
    c->turns = ebb_provider_alloc(m->call, (size_t)rows * sizeof *c->turns);
    whole = c->turns != NULL;
    for (int row = 1; row < rows && whole; row++)
        c->turns[c->turns_n++] = (ebb_provider_turn_row){
            ebb__postgres_get_number(r, row, 1), ebb__postgres_get_number(r, row, 2),
            ebb__postgres_get_number(r, row, 3), ebb__postgres_get_blob(m->call, r, row, 4, &whole)};
    if (!whole) ebb__postgres_nomem(m);
}

static void put_instance(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    (void)s;
    ebb__postgres_text(a, ((const ebb_provider_instance_call *)m->call)->id);
}

static void get_instance(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_instance_call *c = (ebb_provider_instance_call *)m->call;
    (void)s;
    if (PQntuples(r) == 0) say_unknown(m, c->id);
    else get_row(m, r, 0, 0, &c->row);
}

enum { LIST_DEFAULT = 100, LIST_MOST = 1000 };

static void put_list(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_instance_filter *f = ((const ebb_provider_list_call *)m->call)->filter;
    const uint32_t most = f->most == 0 ? LIST_DEFAULT : f->most < LIST_MOST ? f->most : LIST_MOST;
    size_t states = 0;
    (void)s;
    for (uint32_t i = EBB_INSTANCE_RUNNING; i <= EBB_INSTANCE_TERMINATED; i++) states += (f->states >> i) & 1;
    ebb__postgres_text(a, f->name);
    ebb__postgres_text(a, f->prefix != NULL ? f->prefix : "");
    ebb__postgres_text(a, f->parent);
    ebb__postgres_bool(a, f->tree && f->parent != NULL);
    ebb__postgres_array(a, EBB__OID_TEXT, states);
    for (uint32_t i = EBB_INSTANCE_RUNNING; i <= EBB_INSTANCE_TERMINATED; i++)
        if ((f->states >> i) & 1) ebb__postgres_text(a, ebb_instance_state_name((ebb_instance_state)i));
    ebb__postgres_number(a, f->started_after);
    ebb__postgres_number(a, f->ended_before);
    ebb__postgres_text(a, f->after != NULL ? f->after : "");
    ebb__postgres_number(a, most);
}

static void get_list(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_list_call *c = (ebb_provider_list_call *)m->call;
    const int rows = PQntuples(r);
    (void)s;
    c->rows_n = 0;
    c->rows = ebb_provider_alloc(m->call, ((size_t)rows + 1) * sizeof *c->rows);
    if (c->rows == NULL) ebb__postgres_nomem(m);
    for (int row = 0; row < rows && m->status == EBB_OK; row++) get_row(m, r, row, 0, &c->rows[c->rows_n++]);
}

static void put_value(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    const ebb_provider_value_call *c = (const ebb_provider_value_call *)m->call;
    (void)s;
    ebb__postgres_text(a, c->id);
    ebb__postgres_bytes(a, ebb_blob_text(c->key));
}

static void get_value(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_value_call *c = (ebb_provider_value_call *)m->call;
    bool whole = true;
    (void)s;
    c->value = (ebb_blob){NULL, 0};
    if (PQntuples(r) == 0) say_unknown(m, c->id);
    else c->value = ebb__postgres_get_blob(m->call, r, 0, 0, &whole);
    if (!whole) ebb__postgres_nomem(m);
}

static void put_outstanding(ebb__postgres *s, ebb__postgres_member *m, args *a) {
    (void)s;
    ebb__postgres_text(a, ((const ebb_provider_outstanding_call *)m->call)->id);
}

static void get_outstanding(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r) {
    ebb_provider_outstanding_call *c = (ebb_provider_outstanding_call *)m->call;
    (void)s;
    if (PQntuples(r) == 0) {
        say_unknown(m, c->id);
        return;
    }
    c->work = ebb__postgres_get_number(r, 0, 0);
    c->claimed = ebb__postgres_get_number(r, 0, 1);
    c->timers = ebb__postgres_get_number(r, 0, 2);
    c->messages = ebb__postgres_get_number(r, 0, 3);
}

const ebb__postgres_op ebb__postgres_client_ops[] = {
    [EBB_PROVIDER_START] = {"start", true, 19, 0, put_start, get_start},
    [EBB_PROVIDER_SEND] = {"send", true, 2, 0, put_send, get_send},
    [EBB_PROVIDER_HISTORY] = {"history", false, 6, 0, put_history, get_history},
    [EBB_PROVIDER_INSTANCE] = {"rows_of", false, 16, 0, put_instance, get_instance},
    [EBB_PROVIDER_LIST] = {"list", false, 16, 0, put_list, get_list},
    [EBB_PROVIDER_VALUE] = {"value_of", false, 1, 0, put_value, get_value},
    [EBB_PROVIDER_OUTSTANDING] = {"outstanding", false, 4, 0, put_outstanding, get_outstanding},
};
