/* cli/doctor_postgres.c - what `ebb doctor` asks a PostgreSQL server. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "durable/provider.h"

enum { PARAMETERS = 32, TIMEOUT_S = 5 };

typedef struct parameters {
    const char *name[PARAMETERS], *value[PARAMETERS];
    size_t n;
} parameters;

static void add(parameters *p, const char *name, const char *value) {
    if (value[0] == 0 || p->n + 1 >= PARAMETERS) return;
    p->name[p->n] = name;
    p->value[p->n++] = value;
}

/* The options of a URL that are Ebb's own are nothing to libpq. */
static void add_options(parameters *p, const ebb__store_url *u) {
    PQconninfoOption *all = PQconndefaults();
    for (size_t i = 0; i < u->options; i++) {
        for (const PQconninfoOption *o = all; o != NULL && o->keyword != NULL; o++) {
            if (strcmp(o->keyword, u->option[i].name) == 0) add(p, u->option[i].name, u->option[i].value);
        }
    }
    PQconninfoFree(all);
}

static PGconn *connect_to(const ebb__store_url *u) {
    parameters p = {.n = 0};
    char port[8] = "", timeout[8];
    if (u->port != 0) (void)snprintf(port, sizeof port, "%u", u->port);
    (void)snprintf(timeout, sizeof timeout, "%d", TIMEOUT_S);
    add(&p, "connect_timeout", timeout); /* the URL's own comes later, and holds */
    add(&p, "host", u->host);
    add(&p, "port", port);
    add(&p, "user", u->user);
    add(&p, "password", u->password);
    add(&p, "dbname", *u->path == '/' ? u->path + 1 : u->path);
    add(&p, "application_name", "ebb doctor");
    add_options(&p, u);
    return PQconnectdbParams(p.name, p.value, 0);
}

/* The first line of a message. */
static void say_refused(ebb__doctor *d, const char *check, const char *advice, const PGconn *c) {
    const char *text = PQerrorMessage(c);
    ebb__doctor_say(d, EBB__DOCTOR_FAIL, check, advice, "%.*s", (int)strcspn(text, "\n"), text);
}

static void check_version(ebb__doctor *d, const PGconn *c) {
    enum { TESTED = 150000 };
    const int version = PQserverVersion(c);
    ebb__doctor_say(d, version < TESTED ? EBB__DOCTOR_WARN : EBB__DOCTOR_OK, "store",
                    "Ebb is tested with PostgreSQL 15; an older one may refuse its statements.",
                    "PostgreSQL %d.%d at %s", version / 10000, version % 10000, PQhost(c));
}

/* Behind a pooler of transactions a session is nobody's, and nothing that is listened to arrives. */
static void check_listen(ebb__doctor *d, PGconn *c) {
    static const char advice[] =
        "A pooler between here and the server may be the reason: give the server's own "
        "address for notifications (docs/durable.md). Without them work begins later.";
    char command[96];
    (void)snprintf(command, sizeof command, "LISTEN ebb_doctor_%d", PQbackendPID(c));
    PGresult *r = PQexec(c, command);
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    (void)snprintf(command, sizeof command, "NOTIFY ebb_doctor_%d", PQbackendPID(c));
    r = ok ? PQexec(c, command) : NULL;
    ok = ok && PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    PGnotify *n = ok && PQconsumeInput(c) == 1 ? PQnotifies(c) : NULL;
    ebb__doctor_say(d, n != NULL ? EBB__DOCTOR_OK : EBB__DOCTOR_WARN, "listen", advice, "%s",
                    n != NULL ? "a notification has arrived" : "a notification has not arrived");
    PQfreemem(n);
}

static double now_s(void) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The server's time lies between that before the question and that after the answer. */
static void check_clocks(ebb__doctor *d, PGconn *c) {
    static const char advice[] =
        "Timers and times in lists are off by it. Let both machines keep time by NTP.";
    const double before = now_s();
    PGresult *r = PQexec(c, "SELECT extract(epoch FROM clock_timestamp())");
    const double after = now_s();
    if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1) {
        const double at = strtod(PQgetvalue(r, 0, 0), NULL);
        const double apart = at > after ? at - after : at < before ? before - at : 0;
        ebb__doctor_say(d, apart > 1 ? EBB__DOCTOR_WARN : EBB__DOCTOR_OK, "clocks", advice,
                        "the server's clock differs by %.3f s", apart);
    } else {
        say_refused(d, "clocks", advice, c);
    }
    PQclear(r);
}

static void check_server(ebb__doctor *d, const ebb__store_url *u) {
    static const char advice[] =
        "Is the server running, is the address right, and does pg_hba.conf let this user in?";
    PGconn *c = connect_to(u);
    if (PQstatus(c) == CONNECTION_OK) {
        check_version(d, c);
        check_listen(d, c);
        check_clocks(d, c);
    } else {
        say_refused(d, "store", advice, c);
    }
    PQfinish(c);
}

void ebb__doctor_postgres(ebb__doctor *d) {
    ebb__arena arena;
    ebb__store_url u;
    char text[300] = "";
    ebb__arena_init(&arena, ebb__cli_allocator(), 1024);
    if (ebb__store_url_parse(&arena, d->daemon.url, &u, text, sizeof text) == EBB_OK) check_server(d, &u);
    else
        ebb__doctor_say(d, EBB__DOCTOR_FAIL, "store", "Give postgres://USER@HOST:PORT/DATABASE.", "%s", text);
    ebb__arena_free(&arena);
}
