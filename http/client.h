/* A client from inside: the origins that it knows, their connections, and the calls that wait for one.
 *
 * An *origin* is a scheme, a host and a port. It has *links*, each a connection from the lookup of its name to
 * its end, and a queue of *calls* that wait for one. A call has its exchange in it.
 *
 * What holds:
 *  - A call waits (`where`), or flies (`x.conn`), or neither: then its stream is gone, or it never had one.
 *    By then it is freed, unless it was opened: the handle that its user has keeps it.
 *  - Its future ends once, before it is freed.
 *  - A link is in its origin's list from its begin until it is freed, which for one with a wire is when libuv
 *    has let go of that. An origin is freed when it has no links, nobody waits, and nobody works on it.
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
    bool has_tls;             /* and it may be used */
    ebb__uv_request *reading; /* what reads it, in the pool; NULL: nothing does */
    ebb__bounds bounds;
    uint64_t body_bytes, idle_ns, connect_ns;
    uint32_t connections;
    bool prior_knowledge;
    bool stopped;
    uint32_t origins_n; /* and whatever else it has to stay for */
    ebb__origin *origins[EBB__ORIGIN_BUCKETS];
    ebb__client_conn *oldest, *newest; /* the idle links, by when they became so */
    uv_timer_t timer;                  /* rings when the idle time of the oldest is over, or earlier */
};

struct ebb__origin {
    ebb_http_client *client;
    ebb__origin *next; /* in the bucket */
    uint32_t pins;     /* those who work on it */
    ebb__client_conn *conns;
    uint32_t usable;          /* links that take calls, or will */
    uint32_t coming;          /* of these, the ones of which it is not known yet how many */
    ebb__call *first, **last; /* calls that wait */
    uint32_t waiting;
    bool h1; /* a connection takes one call at a time, as far as is known */
    bool tls;
    uint16_t port;
    size_t host_n;
    char host[]; /* 0-terminated, without brackets */
};

typedef enum ebb__client_conn_state {
    EBB__CLIENT_CONN_NEW = 0, /* not ready: its name is looked up, it connects, it learns which protocol it has */
    EBB__CLIENT_CONN_READY,
    EBB__CLIENT_CONN_ENDED /* takes no calls any more */
} ebb__client_conn_state;

struct ebb__client_conn {
    ebb__conn conn;
    ebb__client_conn *prev, *next;   /* of the origin */
    ebb__client_conn *older, *newer; /* among the idle */
    uint64_t idle_since;
    uint8_t state; /* ebb__client_conn_state */
    bool known;    /* how many calls it takes */
    bool idle;
    bool served; /* it has had a call */

    /* Until it is ready: link.c. */
    ebb__uv_request *lookup; /* NULL: there is none */
    ebb__dial *dial;
};

struct ebb__call {
    ebb_http x;
    ebb__origin *origin;    /* while it waits or flies */
    ebb__client_conn *client_conn; /* with which it flies */
    ebb__call *next, **where;
    ebb_future *future;   /* of the fetch or open; NULL: it has ended */
    ebb_future *answered; /* somebody waits for the head */
    ebb__handle *handle;  /* of an open; NULL: a fetch */
    bool streams;
    uint64_t deadline; /* EBB_FOREVER: none */

    /* To be sent again: resend.c. */
    const void *body; /* the caller's, until the future has ended */
    size_t body_size;
    uint64_t taken;     /* by the connection, before it was sent there */
    uint32_t retries;   /* so far */
    uint32_t redirects; /* that it may still follow */
    bool redirected;    /* its response is a redirect: `target` is where it goes when its stream is over */
    bool let_go;        /* and that was reset */
    bool follows;       /* the call said that it wants to */
    ebb__url target;

    /* Of a fetch: the block that will be its value, with room for the head and then the body. */
    char *answer;
    size_t head_n, body_n, body_room;
    uint64_t body_most;
};

/* ---- client.c: origins ----------------------------------------------------------------------------------------- */

/* Made if there is none. NULL: no memory. Without a call or a link it is to be released. */
ebb__origin *ebb__origin_of(ebb_http_client *c, const ebb__url *u);
/* The call waits for a connection; when this returns it may have one, or have failed. */
void ebb__origin_add(ebb__origin *o, ebb__call *call);
/* It does not wait any longer. */
void ebb__origin_remove(ebb__call *call);
/* Frees it if nobody needs it. */
void ebb__origin_release(ebb__origin *o);
/* One call less flies with the link. */
void ebb__origin_left(ebb__origin *o, ebb__client_conn *k);
/* The link takes no calls any more; why, if it never had one. */
void ebb__origin_lost(ebb__client_conn *k, ebb_status st);

/* Its certificates are read, or could not be. */
void ebb__client_has_read(ebb_http_client *c, ebb_status st);

/* ---- client_tls.c ---------------------------------------------------------------------------------------------- */

/* Starts to read the certificates, if they are not there and nobody does. */
ebb_status ebb__client_read_tls(ebb_http_client *c);
/* The client stops: what has not begun need not. It ends by ebb__client_has_read in any case. */
void ebb__client_stop_reading(const ebb_http_client *c);

/* ---- link.c: connecting ---------------------------------------------------------------------------------------- */

/* A new link of the origin starts to connect. A failure leaves nothing behind. */
ebb_status ebb__client_conn_open(ebb__origin *o);
/* Gives up a link whatever it does: it is freed now, or when libuv is done with it. */
void ebb__client_conn_drop(ebb__client_conn *k, ebb_status st);
void ebb__client_conn_free(ebb__client_conn *k);
/* Its protocol is known: its connect timeout is over. */
void ebb__client_conn_ready(ebb__client_conn *k);

/* ---- resend.c -------------------------------------------------------------------------------------------------- */

/* The head of a response is there. If it is a redirect that is to be followed, the call is `redirected` from now on,
 * and its body is to be dropped. EBB_ERR_HTTP_REDIRECT, EBB_ERR_NOMEM. */
ebb_status ebb__call_redirect(ebb__call *call);
/* Drops the body of a redirect; a large one resets the stream. */
void ebb__call_drop_body(ebb__call *call);

/* ---- call.c ---------------------------------------------------------------------------------------------------- */

/* Sends it by a link that has room; if that can't be, it fails. */
void ebb__call_start(ebb__call *call, ebb__client_conn *k);
/* Its user has the exchange, and may have it for long. */
bool ebb__call_is_given(const ebb__call *call);
/* Has the body of the call sent, from its start. */
void ebb__call_set_body(ebb__call *call);
/* A text of the call's own. NULL: no memory. */
const char *ebb__call_copy(ebb_http *x, const char *from, size_t n);
/* It fails, and is freed by this or by the end of its stream; one that was given stays until its user closes it. */
void ebb__call_fail(ebb__call *call, ebb_status st);

#endif
