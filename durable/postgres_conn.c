/* One connection to a server, on the loop. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres_conn.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    CONNECT_MS = 10000,
    CONNECT_MOST_S = 3600,
    ANSWER_MS = 30000,
    PAUSE_FIRST_MS = 50,
    PAUSE_MOST_MS = 2000
};

/* A watcher of one socket. It is released after libuv has closed it; the connection may have another by then. */
struct ebb__postgres_poll {
    uv_poll_t uv;
    ebb__postgres_conn *conn;
};

static void try_next(ebb__postgres_conn *k);
static void step(ebb__postgres_conn *k);
static void read_results(ebb__postgres_conn *k);

/* ---- handles ------------------------------------------------------------------------------------------------- */

static void released(ebb__postgres_conn *k) {
    if (--k->handles == 0) k->events->closed(k->arg);
}

static void on_poll_closed(uv_handle_t *uv) {
    ebb__postgres_poll *p = uv->data;
    ebb__postgres_conn *k = p->conn;
    ebb__free(k->allocator, p, sizeof *p);
    released(k);
}

/* Before libpq may close the socket: libuv must not know a descriptor that is closed. */
static void unwatch(ebb__postgres_conn *k) {
    ebb__postgres_poll *p = k->poll;
    k->poll = NULL;
    if (p == NULL) return;
    (void)k->loop->os->poll_stop(&p->uv);
    k->loop->os->close((uv_handle_t *)&p->uv, on_poll_closed);
}

static void on_ready(uv_poll_t *uv, int status, int events) {
    ebb__postgres_conn *k = ((ebb__postgres_poll *)uv->data)->conn;
    (void)status; /* libpq finds the failure itself */
    (void)events;
    k->loop->entered = true;
    if (k->state == EBB__CONN_CONNECTING) step(k);
    else if (k->state == EBB__CONN_UP) read_results(k);
}

static void watch(ebb__postgres_conn *k, int events) {
    if (k->poll == NULL) {
        ebb__postgres_poll *p = ebb__alloc(k->allocator, sizeof *p);
        if (p == NULL || k->loop->os->poll_init(k->loop->uv, &p->uv, PQsocket(k->pg)) != 0) {
            ebb__free(k->allocator, p, sizeof *p);
            ebb__postgres_conn_lose(k, "the socket can't be watched");
            return;
        }
        p->conn = k;
        p->uv.data = p;
        k->loop->os->unref((uv_handle_t *)&p->uv);
        k->poll = p;
        k->handles++;
    }
    if (k->loop->os->poll_start(&k->poll->uv, events, on_ready) != 0)
        ebb__postgres_conn_lose(k, "the socket can't be watched");
}

/* For a lookup and for a connect. */
static uint32_t connect_ms(const ebb__postgres_conn *k) {
    const char *given = ebb__store_url_option(k->url, "connect_timeout");
    const unsigned long s = given != NULL ? strtoul(given, NULL, 10) : 0;
    return s > 0 && s <= CONNECT_MOST_S ? (uint32_t)s * 1000 : CONNECT_MS;
}

static void too_late(ebb__postgres_conn *k, const char *what) {
    char text[300];
    (void)snprintf(text, sizeof text, "%.250s within %u s", what, connect_ms(k) / 1000);
    ebb__postgres_conn_lose(k, text);
}

static void on_timer(uv_timer_t *uv) {
    ebb__postgres_conn *k = uv->data;
    char text[300];
    k->loop->entered = true;
    switch (k->state) {
    case EBB__CONN_DOWN: ebb__postgres_conn_begin(k); break;
    case EBB__CONN_RESOLVING:
        (void)snprintf(text, sizeof text, "the host '%.200s' was not found", k->url->host);
        too_late(k, text);
        break;
    case EBB__CONN_CONNECTING: too_late(k, "the server did not answer a connect"); break;
    case EBB__CONN_UP:
        if (k->expected > 0) ebb__postgres_conn_lose(k, "the server did not answer within 30 s");
        break;
    default: break;
    }
}

static void set_timer(ebb__postgres_conn *k, uint64_t ms) {
    (void)k->loop->os->timer_start(&k->timer, on_timer, ms, 0);
}

/* ---- lost ---------------------------------------------------------------------------------------------------- */

static void copy_text(ebb__postgres_conn *k, const char *text) {
    size_t n = strcspn(text, "\n");
    if (n >= sizeof k->text) n = sizeof k->text - 1;
    memmove(k->text, text, n);
    k->text[n] = 0;
}

/* A message of a server has its SQLSTATE, since it is asked to be verbose: "FATAL:  28P01: password...". */
static void state_of(const char *text, char state[6]) {
    state[0] = 0;
    for (const char *at = strstr(text, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || at[8] != ':') continue;
        memcpy(state, at + 3, 5);
        state[5] = 0;
        return;
    }
}

static void go_down(ebb__postgres_conn *k, const char *text) {
    char state[6];
    state_of(text, state);
    copy_text(k, text);
    unwatch(k);
    if (k->pg != NULL) PQfinish(k->pg);
    k->pg = NULL;
    k->expected = 0;
    if (k->state == EBB__CONN_CLOSED) return;
    k->state = EBB__CONN_DOWN;
    k->pause_ms = k->pause_ms == 0 ? PAUSE_FIRST_MS : k->pause_ms * 2;
    if (k->pause_ms > PAUSE_MOST_MS) k->pause_ms = PAUSE_MOST_MS;
    set_timer(k, k->pause_ms);
    k->events->down(k->arg, state, k->text);
}

void ebb__postgres_conn_lose(ebb__postgres_conn *k, const char *text) {
    if (k->state != EBB__CONN_CLOSED) go_down(k, text);
}

/* While it connects, the next address is tried first. */
static void lose_by_server(ebb__postgres_conn *k) {
    char text[1024];
    const bool asked = k->state == EBB__CONN_CONNECTING && PQconnectionNeedsPassword(k->pg) == 1;
    (void)snprintf(text, sizeof text, "%s%s", asked ? "FATAL:  28P01: " : "", PQerrorMessage(k->pg));
    if (*text == 0) (void)snprintf(text, sizeof text, "the connection was lost");
    if (k->state != EBB__CONN_CONNECTING || k->next == NULL) {
        go_down(k, text);
        return;
    }
    unwatch(k);
    PQfinish(k->pg);
    k->pg = NULL;
    try_next(k);
}

/* ---- found --------------------------------------------------------------------------------------------------- */

static void on_found(uv_getaddrinfo_t *uv, int code, struct addrinfo *found) {
    ebb__postgres_conn *k = uv->data;
    k->loop->entered = true;
    k->looking = false;
    if (k->state != EBB__CONN_RESOLVING) k->loop->os->freeaddrinfo(found);
    else {
        k->found = k->next = found;
        char text[300];
        (void)snprintf(text, sizeof text, "the host '%.200s' was not found: %s", k->url->host,
                       code != 0 ? uv_strerror(code) : "it has no address");
        if (code == 0 && found != NULL) try_next(k);
        else go_down(k, text);
    }
    released(k);
}

/* A lookup that took too long can't be stopped: the one that goes on is waited for again. */
static void resolve(ebb__postgres_conn *k) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    k->state = EBB__CONN_RESOLVING;
    set_timer(k, connect_ms(k));
    if (k->looking) return;
    if (k->found != NULL) k->loop->os->freeaddrinfo(k->found);
    k->found = k->next = NULL;
    k->lookup.data = k;
    k->looking = true;
    k->handles++;
    const int code = k->loop->os->getaddrinfo(k->loop->uv, &k->lookup, on_found, k->url->host, NULL, &hints);
    if (code != 0) on_found(&k->lookup, code, NULL);
}

static bool is_path(const ebb__store_url *u) {
    return *u->host == 0 || *u->host == '/';
}

void ebb__postgres_conn_begin(ebb__postgres_conn *k) {
    if (k->state == EBB__CONN_CLOSED) return;
    if (is_path(k->url)) try_next(k);
    else if (k->next != NULL) try_next(k);
    else resolve(k);
}

/* ---- connected ------------------------------------------------------------------------------------------------ */

typedef struct options {
    const char *name[40], *value[40];
    int n;
} options;

static void option(options *o, const char *name, const char *value) {
    if (value == NULL || *value == 0) return;
    o->name[o->n] = name;
    o->value[o->n++] = value;
}

/* The URL's options come last and win; libpq refuses what it does not know. */
static void options_of(const ebb__store_url *u, const char *address, const char *port, options *o) {
    o->n = 0;
    option(o, "host", u->host);
    option(o, "hostaddr", address);
    option(o, "port", u->port != 0 ? port : NULL);
    option(o, "user", u->user);
    option(o, "password", u->password);
    option(o, "dbname", *u->path == '/' ? u->path + 1 : u->path);
    option(o, "application_name", "ebb");
    option(o, "client_encoding", "UTF8");
    option(o, "gssencmode", "disable"); /* it would look for tickets in files */
    option(o, "keepalives_idle", "10");
    option(o, "keepalives_interval", "5");
    option(o, "keepalives_count", "3");
    option(o, "tcp_user_timeout", "30000");
    for (size_t i = 0; i < u->options; i++)
        if (strcmp(u->option[i].name, "synchronous_commit") != 0)
            option(o, u->option[i].name, u->option[i].value);
    o->name[o->n] = NULL;
    o->value[o->n] = NULL;
}

static void ignore_notice(void *arg, const PGresult *r) {
    (void)arg;
    (void)r;
}

static void try_next(ebb__postgres_conn *k) {
    char address[NI_MAXHOST] = "", port[8];
    options o;
    if (k->next != NULL) {
        (void)getnameinfo(k->next->ai_addr, k->next->ai_addrlen, address, sizeof address, NULL, 0,
                          NI_NUMERICHOST);
        k->next = k->next->ai_next;
    }
    (void)snprintf(port, sizeof port, "%u", k->url->port);
    options_of(k->url, address, port, &o);
    k->state = EBB__CONN_CONNECTING;
    k->pg = PQconnectStartParams(o.name, o.value, 0);
    if (k->pg == NULL) go_down(k, "no memory for a connection");
    else if (PQstatus(k->pg) == CONNECTION_BAD) lose_by_server(k);
    else {
        (void)PQsetErrorVerbosity(k->pg, PQERRORS_VERBOSE);
        (void)PQsetNoticeReceiver(k->pg, ignore_notice, NULL);
        set_timer(k, connect_ms(k));
        watch(k, UV_WRITABLE); /* libpq asks to be told so first */
    }
}

static void connected(ebb__postgres_conn *k) {
    if (PQsetnonblocking(k->pg, 1) != 0 || PQenterPipelineMode(k->pg) != 1) {
        lose_by_server(k);
        return;
    }
    k->state = EBB__CONN_UP;
    k->pause_ms = 0;
    k->expected = 0;
    (void)PQsetErrorVerbosity(k->pg, PQERRORS_DEFAULT);
    set_timer(k, ANSWER_MS);
    watch(k, UV_READABLE);
    if (k->state == EBB__CONN_UP) k->events->up(k->arg);
}

static void step(ebb__postgres_conn *k) {
    unwatch(k);
    switch (PQconnectPoll(k->pg)) {
    case PGRES_POLLING_READING: watch(k, UV_READABLE); break;
    case PGRES_POLLING_WRITING: watch(k, UV_WRITABLE); break;
    case PGRES_POLLING_OK: connected(k); break;
    default: lose_by_server(k); break;
    }
}

/* ---- up ------------------------------------------------------------------------------------------------------- */

static void flush(ebb__postgres_conn *k) {
    const int left = PQflush(k->pg);
    if (left < 0) lose_by_server(k);
    else watch(k, left > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

void ebb__postgres_conn_sent(ebb__postgres_conn *k, uint32_t results) {
    k->expected += results;
    set_timer(k, ANSWER_MS);
    flush(k);
}

/* The owner may send within `result`, but nothing is read there. */
static void take_results(ebb__postgres_conn *k) {
    uint32_t nothing = 0;
    while (k->state == EBB__CONN_UP && k->expected > 0 && nothing < 2 && !PQisBusy(k->pg)) {
        PGresult *r = PQgetResult(k->pg);
        nothing = r == NULL ? nothing + 1 : 0; /* one NULL ends a statement */
        if (r == NULL) continue;
        k->expected--;
        k->events->result(k->arg, r);
        PQclear(r);
    }
}

static void take_notifies(ebb__postgres_conn *k) {
    PGnotify *n;
    while (k->state == EBB__CONN_UP && (n = PQnotifies(k->pg)) != NULL) {
        if (k->events->notify != NULL) k->events->notify(k->arg, n);
        PQfreemem(n);
    }
}

static void read_results(ebb__postgres_conn *k) {
    if (k->reading) return;
    const bool alive = PQconsumeInput(k->pg) == 1;
    k->reading = true;
    take_results(k); /* what has come before the end of the connection counts */
    take_notifies(k);
    k->reading = false;
    if (k->state != EBB__CONN_UP) return;
    if (!alive || PQstatus(k->pg) == CONNECTION_BAD) lose_by_server(k);
    else flush(k);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *uv) {
    released(uv->data);
}

bool ebb__postgres_conn_init(ebb__postgres_conn *k) {
    if (k->loop->os->timer_init(k->loop->uv, &k->timer) != 0) return false;
    k->timer.data = k;
    k->loop->os->unref((uv_handle_t *)&k->timer);
    k->handles = 1;
    return true;
}

void ebb__postgres_conn_close(ebb__postgres_conn *k) {
    if (k->state == EBB__CONN_CLOSED) return;
    k->state = EBB__CONN_CLOSED;
    unwatch(k);
    if (k->pg != NULL) PQfinish(k->pg);
    k->pg = NULL;
    if (k->looking) (void)k->loop->os->cancel((uv_req_t *)&k->lookup);
    if (k->found != NULL) k->loop->os->freeaddrinfo(k->found);
    k->found = k->next = NULL;
    k->loop->os->close((uv_handle_t *)&k->timer, on_timer_closed);
}
