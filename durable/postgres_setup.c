/* What a connection does before it takes calls: the schema is checked, and made if it is not there; or LISTEN. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <stdio.h>
#include <string.h>

#define LOCK "SELECT pg_advisory_xact_lock(x'4562622053434845'::bigint)"

static bool ask_for(ebb__postgres_lane *l, const char *sql) {
    l->setup_left++;
    l->store->stats.statements++;
    return PQsendQueryParams(l->conn.pg, sql, 0, NULL, NULL, NULL, NULL, 1) == 1;
}

static bool end_part(ebb__postgres_lane *l) {
    l->setup_left++;
    return PQpipelineSync(l->conn.pg) == 1;
}

static void sent(ebb__postgres_lane *l, ebb__postgres_setup setup, bool whole) {
    l->setup = setup;
    l->failed = EBB_OK;
    if (whole) ebb__postgres_conn_sent(&l->conn, l->setup_left);
    else ebb__postgres_conn_lose(&l->conn, PQerrorMessage(l->conn.pg));
}

/* Whether the server takes what the URL says; it holds for a transaction, so batches say it again. */
static bool try_durability(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    if (s->synchronous == NULL) return true;
    ebb__postgres_args_clear(&s->args);
    ebb__postgres_text(&s->args, s->synchronous);
    l->setup_left++;
    return ebb__postgres_args_send(&s->args, l->conn.pg, EBB__POSTGRES_SET_DURABILITY) && end_part(l);
}

static void check(ebb__postgres_lane *l) {
    l->setup_left = 0;
    l->schema = l->min_reader = 0;
    bool whole = try_durability(l);
    whole = whole && ask_for(l, "SELECT (SELECT v FROM ebb.meta WHERE k = 'schema') AS schema,"
                                " (SELECT v FROM ebb.meta WHERE k = 'min_reader')");
    sent(l, EBB__SETUP_CHECK, whole && end_part(l));
}

static bool ask_for_version(ebb__postgres_lane *l, uint32_t version) {
    const ebb__postgres_version *v = &l->store->schema->version[version - 1];
    char set[256];
    bool whole = true;
    for (const char *const *const *part = v->parts; *part != NULL; part++)
        for (const char *const *at = *part; *at != NULL && whole; at++) whole = ask_for(l, *at);
    (void)snprintf(set, sizeof set,
                   "INSERT INTO ebb.meta VALUES ('schema', %u), ('min_reader', %u)"
                   " ON CONFLICT (k) DO UPDATE SET v = greatest(meta.v, excluded.v)",
                   version, v->min_reader);
    return whole && ask_for(l, set);
}

/* What the schema lacks of the versions that this library knows, in the one transaction of the pipeline. */
static void make(ebb__postgres_lane *l) {
    l->setup_left = 0;
    bool whole = ask_for(l, LOCK);
    for (uint32_t i = (uint32_t)l->schema + 1; i <= l->store->schema->n && whole; i++)
        whole = ask_for_version(l, i);
    sent(l, EBB__SETUP_MAKE, whole && end_part(l));
}

void ebb__postgres_setup_begin(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    if (l != &s->listener) {
        check(l);
        return;
    }
    l->setup_left = 0;
    const bool whole = ask_for(l, "LISTEN ebb");
    sent(l, EBB__SETUP_LISTEN, end_part(l) && whole);
}

/* ---- what has come of it -------------------------------------------------------------------------------------- */

static void refuse(ebb__postgres_lane *l, ebb_status st, const char *text) {
    ebb__postgres *s = l->store;
    if (s->opening != NULL) ebb__postgres_open_failed(s, st, text);
    else if (ebb_provider_class_of(st) == EBB_PROVIDER_RETRYABLE) ebb__postgres_conn_lose(&l->conn, text);
    else {
        s->refused = st;
        (void)snprintf(s->text, sizeof s->text, "%s", text);
        ebb__postgres_lane_refuse(l, st, text);
        l->ready = true; /* for what ends claims */
        ebb__postgres_kick(s);
    }
}

static void ready(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    l->ready = true;
    if (l == &s->listener) {
        if (s->was_listening) ebb__postgres_hint_lost(s);
        s->was_listening = true;
    } else if (l == &s->writer && s->opening != NULL) ebb__postgres_opened(s);
    ebb__postgres_kick(s);
}

static void checked(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    char text[200];
    if (l->failed != EBB_OK) {
        refuse(l, l->failed, l->text);
    } else if (l->min_reader > s->schema->n) {
        (void)snprintf(
            text, sizeof text,
            "the schema has version %llu and is read from version %llu on; this library reads version %u",
            (unsigned long long)l->schema, (unsigned long long)l->min_reader, s->schema->n);
        refuse(l, EBB_ERR_SCHEMA, text);
    } else if (l->schema >= s->schema->n) {
        s->refused = EBB_OK;
        ready(l);
    } else if (s->no_create || s->read_only) {
        (void)snprintf(text, sizeof text,
                       "the database has version %llu of the schema, and %u may not be made",
                       (unsigned long long)l->schema, s->schema->n);
        refuse(l, EBB_ERR_SCHEMA,
               l->schema != 0 ? text : "the database has no schema of Ebb, and none may be made");
    } else make(l);
}

static void finished(ebb__postgres_lane *l) {
    const ebb__postgres_setup setup = l->setup;
    l->setup = EBB__SETUP_NONE;
    if (setup == EBB__SETUP_CHECK) checked(l);
    else if (l->failed != EBB_OK) refuse(l, l->failed, l->text);
    else if (setup == EBB__SETUP_MAKE) check(l);
    else ready(l);
}

static void failed(ebb__postgres_lane *l, const PGresult *r) {
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL) state = "";
    if (l->setup == EBB__SETUP_CHECK && (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0))
        return; /* there is no schema yet */
    if (l->failed != EBB_OK) return;
    l->failed = ebb__postgres_status_of(state);
    (void)snprintf(l->text, sizeof l->text, "PostgreSQL: %.*s (%s)", 150, text != NULL ? text : "", state);
}

void ebb__postgres_setup_result(ebb__postgres_lane *l, const PGresult *r) {
    const ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_FATAL_ERROR) failed(l, r);
    if (status == PGRES_TUPLES_OK && PQnfields(r) == 2 && strcmp(PQfname(r, 0), "schema") == 0) {
        l->schema = ebb__postgres_get_number(r, 0, 0);
        l->min_reader = ebb__postgres_get_number(r, 0, 1);
    }
    if (l->setup_left == 1 && status != PGRES_PIPELINE_SYNC) l->conn.expected++; /* its commit has failed */
    else if (--l->setup_left == 0) finished(l);
}
