/* Internals of a client: its origins, their connections, and the calls that wait for one.
 *
 * An *origin* is a scheme, a host and a port. It has *client connections*, each from the lookup of its name to its
 * end, and a queue of *calls* that wait for one. A call contains its exchange.
 *
 * Invariants:
 *  - A call waits (`where`), or is in flight (`x.conn`), or neither: then its stream is gone, or it never had one. By
 *    then it is freed, unless it was opened: the handle that its user has keeps it.
 *  - The future of a call ends once, before the call is freed.
 *  - A client connection is in its origin's list until it is freed. One with a raw stream is freed when libuv does not
 *    use that any more. An origin is freed when it has no connections, no call waits, and no function has pinned it.
 *  - A client that was stopped takes no calls, and is freed with its last origin. */
#ifndef EBB__HTTP_CLIENT_H
#define EBB__HTTP_CLIENT_H

#include "http/http.h"
#include "http/url.h"
#include "loop/dial.h"

typedef struct ebb__call ebb__call;
typedef struct ebb__client_conn ebb__client_conn;
typedef struct ebb__origin ebb__origin;

enum { EBB__ORIGIN_BUCKETS = 256 };

struct ebb_http_client {
    ebb_loop *loop;
    ebb_allocator allocator;
    ebb__handle *handle;
    ebb_region region;
    ebb__tls_ctx *tls;
    bool has_tls;             /* the certificates are read */
    ebb__uv_request *reading; /* reads the certificates in the thread pool; NULL: none */
    ebb__bounds bounds;
    uint64_t body_bytes, idle_ns, connect_ns;
    uint32_t connections;
    bool prior_knowledge;
    bool stopped;
    uint32_t origins_n; /* origins, and one for each pending operation that needs the client */
    ebb__origin *origins[EBB__ORIGIN_BUCKETS];
    ebb__client_conn *oldest, *newest; /* the idle connections, the longest idle first */
    uv_timer_t timer;                  /* expires when the idle time of the oldest ends, or earlier */
};

struct ebb__origin {
    ebb_http_client *client;
    ebb__origin *next; /* in the bucket */
    uint32_t pins;     /* functions that use it now: it is not freed */
    ebb__client_conn *conns;
    uint32_t usable;          /* connections that take calls, or will */
    uint32_t coming;          /* of these, connections whose number of calls is not known yet */
    ebb__call *first, **last; /* calls that wait */
    uint32_t waiting;
    bool h1; /* as far as is known, a connection takes one call at a time */
    bool tls;
    uint16_t port;
    size_t host_n;
    char host[]; /* 0-terminated, without brackets */
};

typedef enum ebb__client_conn_state {
    EBB__CLIENT_CONN_NEW = 0, /* not ready: it looks up the name, connects, or negotiates the protocol */
    EBB__CLIENT_CONN_READY,
    EBB__CLIENT_CONN_ENDED /* takes no calls any more */
} ebb__client_conn_state;

struct ebb__client_conn {
    ebb__conn conn;
    ebb__client_conn *prev, *next;   /* in the origin's list */
    ebb__client_conn *older, *newer; /* in the client's list of idle connections */
    uint64_t idle_since;
    uint8_t state; /* ebb__client_conn_state */
    bool known;    /* the number of calls that it takes is known */
    bool idle;
    bool served; /* it has had a call */

    /* Until it is ready: client_connect.c. */
    ebb__uv_request *lookup; /* NULL: none */
    ebb__dial *dial;
};

struct ebb__call {
    ebb_http x;
    ebb__origin *origin;           /* while the call waits or is in flight */
    ebb__client_conn *client_conn; /* that carries it, while it is in flight */
    ebb__call *next, **where;
    ebb_future *future;   /* of the fetch or open; NULL: it has ended */
    ebb_future *answered; /* awaits the head of the response; NULL: nobody does */
    ebb__handle *handle;  /* of an open; NULL: a fetch */
    bool streams;
    uint64_t deadline; /* of the call or its region, whichever is earlier; EBB_FOREVER: none */
    uint64_t limit;    /* of the call; EBB_FOREVER: none */

    /* For sending it again: client_retry.c. */
    const void *body; /* belongs to the caller until the future has ended */
    size_t body_size;
    uint64_t taken;     /* conn->taken when the call was given to the connection */
    uint32_t retries;   /* so far */
    uint32_t redirects; /* how many it may still follow */
    bool redirected;    /* the response is a redirect: the call goes to `target` when its stream has ended */
    bool let_go;        /* the stream of the redirect was reset */
    bool follows;       /* the caller allows redirects */
    ebb__url target;

    /* Of a fetch: the block that becomes its value, with the head and then the body. */
    char *answer;
    size_t head_n, body_n, body_room;
    uint64_t body_most;
};

/* ---- client.c: origins ----------------------------------------------------------------------------------------- */

/* The origin of a URL, made if there is none. NULL: no memory. An origin without a call or a connection must be
 * released. */
ebb__origin *ebb__origin_of(ebb_http_client *c, const ebb__url *u);
/* The call waits for a connection. When this returns, the call may be in flight, or have failed. */
void ebb__origin_add(ebb__origin *o, ebb__call *call);
/* The call does not wait any longer. */
void ebb__origin_remove(ebb__call *call);
/* Frees the origin if nothing needs it. */
void ebb__origin_release(ebb__origin *o);
/* A call of the connection has ended. */
void ebb__origin_left(ebb__origin *o, ebb__client_conn *k);
/* The connection takes no calls any more. `st` is for the waiting calls, if the connection never had a call. */
void ebb__origin_lost(ebb__client_conn *k, ebb_status st);

/* The certificates were read, or could not be. */
void ebb__client_has_read(ebb_http_client *c, ebb_status st);

/* ---- client_tls.c ---------------------------------------------------------------------------------------------- */

/* Starts to read the certificates, unless they are there or being read. */
ebb_status ebb__client_read_tls(ebb_http_client *c);
/* The client stops: cancels the read if it has not begun. ebb__client_has_read is called in any case. */
void ebb__client_stop_reading(const ebb_http_client *c);

/* ---- client_connect.c ------------------------------------------------------------------------------------------ */

/* A new connection of the origin starts to connect. A failure leaves nothing behind. */
ebb_status ebb__client_conn_open(ebb__origin *o);
/* Gives up a connection in any state: it is freed now, or when libuv does not use it any more. */
void ebb__client_conn_drop(ebb__client_conn *k, ebb_status st);
void ebb__client_conn_free(ebb__client_conn *k);
/* The protocol is known: ends the connect timeout. */
void ebb__client_conn_ready(ebb__client_conn *k);

/* ---- client_redirect.c ----------------------------------------------------------------------------------------- */

/* The head of a response is complete. If it is a redirect to follow, sets `redirected`, and the body is to be dropped.
 * EBB_ERR_HTTP_REDIRECT, EBB_ERR_NOMEM. */
ebb_status ebb__call_redirect(ebb__call *call);
/* Drops the body of a redirect; a large one resets the stream. */
void ebb__call_drop_body(ebb__call *call);
/* Makes the call one for the target of the redirect. EBB_ERR_NOMEM. */
ebb_status ebb__call_follow(ebb__call *call);

/* ---- client_call.c --------------------------------------------------------------------------------------------- */

/* Sends the call on a connection that has room; fails the call if that is impossible. */
void ebb__call_start(ebb__call *call, ebb__client_conn *k);
/* The user has the exchange. */
bool ebb__call_is_given(const ebb__call *call);
/* Adds traceparent, if the work of cx has a trace context: trace.c. EBB_ERR_NOMEM. */
ebb_status ebb__call_give_trace(ebb__call *call, ebb_cx *cx);
/* Makes the body of the call the next bytes to send, from its start. */
void ebb__call_set_body(ebb__call *call);
/* A copy in the call's arena. NULL: no memory. */
const char *ebb__call_copy(ebb_http *x, const char *from, size_t n);
/* Fails the call. It is freed now or with the end of its stream; a call whose exchange the user has is freed when the
 * user closes that. */
void ebb__call_fail(ebb__call *call, ebb_status st);

#endif
