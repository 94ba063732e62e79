/* durable/postgres_conn.h - one connection to a server, on the loop: found, opened, lost, opened again.
 *
 *     DOWN -> RESOLVING -> CONNECTING -> UP -> DOWN ...        CLOSED: for good, from any of them
 *
 * Nothing blocks: names are looked up in libuv's pool, libpq is given addresses and does not wait. Neither a lookup nor a connect
 * takes longer than 10 s, or than `connect_timeout` of the URL says. If an address is refused the next is tried at once. The connection does not
 * use ebb_fd_ready: its futures would keep the store's region from closing, which waits for its futures before it closes
 * the store. It has libuv's handles from the loop's platform instead, released before `closed` is called.
 *
 * Invariants: `pg` is NULL but in CONNECTING and UP; `poll` is NULL when nobody waits for the socket; in UP libpq is in
 * pipeline mode and non-blocking. After `down` the connection tries again by itself after a pause that doubles up to 2 s. */
#ifndef EBB_DURABLE_POSTGRES_CONN_H
#define EBB_DURABLE_POSTGRES_CONN_H

#include "loop/loop.h"

#include "durable/postgres_args.h"

typedef struct ebb__postgres_conn ebb__postgres_conn;
typedef struct ebb__postgres_poll ebb__postgres_poll;

/* What its owner hears, on the loop's thread, never within a function of this header but ebb__postgres_conn_begin. */
typedef struct ebb__postgres_conn_events {
    void (*up)(void *arg);
    /* It is lost, or could not be made. `state`: SQLSTATE, "" if no server has answered. */
    void (*down)(void *arg, const char *state, const char *text);
    void (*result)(void *arg,
                   PGresult *r); /* each result of a statement or sync; cleared by the connection */
    void (*notify)(void *arg, const PGnotify *n); /* NULL: not wanted */
    void (*closed)(void *arg);
} ebb__postgres_conn_events;

typedef enum ebb__postgres_conn_state {
    EBB__CONN_DOWN = 0,
    EBB__CONN_RESOLVING = 1,
    EBB__CONN_CONNECTING = 2,
    EBB__CONN_UP = 3,
    EBB__CONN_CLOSED = 4
} ebb__postgres_conn_state;

struct ebb__postgres_conn {
    ebb_loop *loop;
    const ebb_allocator *allocator;
    const ebb__postgres_conn_events *events;
    void *arg;
    const ebb__store_url *url;
    ebb__postgres_conn_state state;
    PGconn *pg;
    ebb__postgres_poll *poll;
    uv_timer_t timer; /* of a pause, a connect, an answer */
    uv_getaddrinfo_t lookup;
    struct addrinfo *found, *next; /* addresses of the host; the one to try next */
    uint32_t handles;              /* of libuv, that are not released yet: timer, polls, lookup */
    bool looking;                  /* the lookup goes on, whatever the state is */
    uint32_t pause_ms;
    uint32_t expected; /* results that are still to come */
    bool reading;      /* in the loop that reads results */
    char text[256];    /* why it is down */
};

/* False: no memory. The rest is zero. */
bool ebb__postgres_conn_init(ebb__postgres_conn *k);
/* Connects. */
void ebb__postgres_conn_begin(ebb__postgres_conn *k);
/* Sends what was queued by libpq; `results` more are expected, within 30 s. */
void ebb__postgres_conn_sent(ebb__postgres_conn *k, uint32_t results);
/* Gives the connection up, as if the server had: `down` is called by the next turn of the loop at the latest. */
void ebb__postgres_conn_lose(ebb__postgres_conn *k, const char *text);
/* For good: `closed` comes when the last handle is released. */
void ebb__postgres_conn_close(ebb__postgres_conn *k);

#endif
