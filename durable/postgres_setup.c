/* What a connection does before it takes calls: the schema is checked, and made if it is not there; or LISTEN. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <stdio.h>
#include <string.h>

#include "durable/postgres_sql.h"

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

/* Acknowledged is durable: a default of the server that says otherwise holds only if the URL repeats it. */
static bool send_durability(ebb__postgres_lane *l) {
    ebb__postgres *s = l->store;
    if (s->synchronous == NULL)
        return ask_for(l, "SELECT set_config('synchronous_commit', 'on', false)"
                          " WHERE current_setting('synchronous_commit') = 'off'");
    ebb__postgres_args_clear(&s->args);
    ebb__postgres_text(&s->args, s->synchronous);
    l->setup_left++;
    return ebb__postgres_args_send(&s->args, l->conn.pg,
                                   "SELECT set_config('synchronous_commit', $1::text, false)");
}

static void check(ebb__postgres_lane *l) {
    l->setup_left = 0;
    l->schema = l->min_reader = 0;
    l->absent = false;
    bool whole = send_durability(l) && end_part(l);
    whole = whole && ask_for(l, "SELECT (SELECT v FROM ebb.meta WHERE k = 'schema'),"
                                " (SELECT v FROM ebb.meta WHERE k = 'min_reader')");
    sent(l, EBB__SETUP_CHECK, whole && end_part(l));
}

static const char *const *const parts[] = {ebb__postgres_sql_tables, ebb__postgres_sql_turns,
                                           ebb__postgres_sql_work, ebb__postgres_sql_clients};

static void make(ebb__postgres_lane *l) {
    l->setup_left = 0;
    bool whole = ask_for(l, "BEGIN") && ask_for(l, LOCK);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const char *const *at = parts[i]; *at != NULL && whole; at++) whole = ask_for(l, *at);
    whole = whole && ask_for(l, "COMMIT");
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
    if (s->opening != NULL) {
        ebb__postgres_open_failed(s, st, text);
        return;
    }
    s->refused = st;
    (void)snprintf(s->text, sizeof s->text, "%s", text);
    ebb__postgres_lane_fail(l, st, text);
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
    } else if (l->min_reader > EBB__POSTGRES_SCHEMA) {
        (void)snprintf(
            text, sizeof text,
            "the schema has version %llu and is read from version %llu on; this library reads version %d",
            (unsigned long long)l->schema, (unsigned long long)l->min_reader, EBB__POSTGRES_SCHEMA);
        refuse(l, EBB_ERR_SCHEMA, text);
    } else if (l->schema >= EBB__POSTGRES_SCHEMA) {
        s->refused = EBB_OK;
        ready(l);
    } else if (s->no_create || s->read_only) {
        refuse(l, EBB_ERR_SCHEMA, "the database has no schema of Ebb, and none may be made");
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
    if (l->setup == EBB__SETUP_CHECK && (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0)) {
        l->absent = true;
        return;
    }
    if (l->failed != EBB_OK) return;
    l->failed = ebb__postgres_status_of(state);
    (void)snprintf(l->text, sizeof l->text, "PostgreSQL: %.*s (%s)", 150, text != NULL ? text : "", state);
}

void ebb__postgres_setup_result(ebb__postgres_lane *l, const PGresult *r) {
    const ExecStatusType status = PQresultStatus(r);
    if (status == PGRES_FATAL_ERROR) failed(l, r);
    if (status == PGRES_TUPLES_OK && PQnfields(r) == 2 && PQntuples(r) == 1) {
        l->schema = ebb__postgres_get_number(r, 0, 0);
        l->min_reader = ebb__postgres_get_number(r, 0, 1);
    }
    if (--l->setup_left == 0) finished(l);
}
