/* The HTTP layer from inside: connections, exchanges, and what a protocol has to do for them.
 *
 * A *connection* (conn.c) has a wire, perhaps TLS, and a protocol that turns bytes into exchanges and back. A
 * server's is a region with one task, the keeper (keeper.c), which hears of close and cancel and keeps the
 * time; a client's is a record of the client and runs by callbacks alone.
 * An *exchange* (exchange.c) is what user code has in hand: fields that came and go, a queue of body bytes in,
 * and one source of body bytes out. On a server it has a region below its connection's, in which its handler
 * runs (serve.c).
 *
 * Data flows one way: wire -> (TLS) -> protocol -> exchange -> handler -> exchange -> protocol -> (TLS) ->
 * wire. User code, in the pump, only changes the exchange and touches the wire; the protocol produces bytes
 * when the wire is flushed, at the end of the turn, for all that the handlers have done at once.
 *
 * What holds:
 *  - An exchange is in its connection's list from its begin to its free, and takes a slot of it so long. It is
 *    freed when its stream is gone *and* its region (of a client: its user) is.
 *  - The protocol reports the end of every stream exactly once, by ebb__exchange_gone, live ones at the end
 *    of the connection included. After that it knows nothing of the exchange, and no byte leaves for it.
 *  - No callback of a protocol runs user code: that runs in the pump. */
#ifndef EBB__HTTP_H
#define EBB__HTTP_H

#include "http/address.h"
#include "http/block_pool.h"
#include "http/fields.h"
#include "http/progress.h"
#include "http/rate_limit.h"
#include "http/route.h"
#include "http/tls.h"
#include "loop/raw_stream.h"

typedef struct ebb__conn ebb__conn;
typedef struct ebb__proto ebb__proto;

/* ---- exchanges -------------------------------------------------------------------------------------------- */

typedef enum ebb__out {
    EBB__OUT_NONE = 0, /* nothing to send yet */
    EBB__OUT_OPEN,     /* the head is the protocol's; body bytes may follow */
    EBB__OUT_ENDED     /* no more will follow; some may still be on their way */
} ebb__out;

typedef enum ebb__in {
    EBB__IN_HEAD = 0, /* the head is not whole yet */
    EBB__IN_BODY,     /* more of the body may come */
    EBB__IN_ENDED     /* all came, or nothing more will: in_status */
} ebb__in;

struct ebb_http {
    ebb_loop *loop;
    ebb__conn *conn;       /* a client's: NULL before it has one, and once its stream is gone */
    ebb_http *prev, *next; /* in the connection's list */
    ebb_http *waits;       /* in a list of those that wait to start */
    int32_t stream;        /* of HTTP/2; 0 in HTTP/1 */
    uint8_t version;       /* 20, 11, 10 */
    bool client;
    bool gone;     /* the stream is over: the protocol has let go */
    bool lost;     /* and not because all was said */
    bool listed;   /* it is in the connection's list */
    bool starting; /* it is among the connection's starts, which frees it then */
    bool region_closed;     /* of a server: the region has closed, or there never was one */
    bool handled;  /* of a server: its handler has returned */
    bool working;  /* of a server: it takes one of the connection's slots for work */

    /* What came. */
    uint8_t in;       /* ebb__in */
    bool head;        /* HEAD: the response has no body */
    uint8_t interims; /* of a client: informational responses so far */
    bool expects;     /* 100-continue, and it was not sent yet */
    bool wide;        /* of HTTP/2: its window has grown */
    bool too_large;   /* the head is over its limits */
    uint64_t excess;  /* by how much: names, values and 32 each that were dropped */
    int16_t
        verdict;    /* what we answer if the handler ends without an answer because we cancelled it; 0: 503 */
    int16_t status; /* of the response: that came, or that goes */
    const char *method, *path, *query, *authority;
    uint32_t path_n; /* without the query */
    ebb__fields fields, trailers;
    uint64_t deadline; /* absolute, from ebb-deadline-ms; 0: none */
    uint64_t in_bytes; /* of the body, so far */
    uint8_t *body;     /* a ring of those that nobody has read yet */
    uint32_t body_at, body_n, body_room;
    ebb_status in_status; /* once IN_ENDED: EBB_ERR_EOF, or why not all came */
    ebb_future *reader;
    uint8_t *into;
    size_t into_n;
    ebb__pace in_pace; /* how long a reader has waited for it */

    /* What goes. */
    uint8_t out;    /* ebb__out */
    bool out_first; /* a byte of it has left: a reset is not early any more */
    bool out_sent;  /* its last byte has left */
    bool ours;      /* we have reset it */
    bool deferred;  /* of HTTP/2: nghttp2 waits to be told of more */
    bool out_cut;   /* a write was cancelled: what was written is not whole */
    bool out_sized; /* its length is known: out_size */
    bool resets;    /* the stream is to be reset once the stage is empty: the handler has failed */
    bool out_last;  /* the handler has returned: the end follows the write that is pending */
    bool bodyless;  /* HEAD, 204, 304: nothing of the body is sent */
    uint64_t out_size;
    uint64_t written; /* of that: what user code has written so far */
    ebb__fields out_fields, out_trailers;
    const uint8_t *from; /* what is to be sent now: a reply's copy, the stage, or the writer's bytes */
    size_t from_n;
    uint8_t *stage;        /* bytes of writes that have ended; NULL: there are none */
    size_t stage_n;        /* how many it has room for */
    const uint8_t *behind; /* of the writer, if there is a stage: what follows that */
    size_t behind_n;
    ebb_future *writer;
    size_t writer_n;
    uint64_t out_bytes;  /* of the body, so far */
    uint64_t sent_since; /* all of a response is sent, and the rest of its request not here; 0: no */
    uint64_t dropped;    /* of that, bytes that came since */
    ebb__pace out_pace;  /* how long bytes of it have been ready and were not taken */

    /* Of a server. */
    ebb_region region;
    ebb_http *held_prev, *held_next; /* in a list of its address */
    bool waiting;                    /* it is in that of those that wait for their peer */
    bool young;                      /* it is in that of those that have just started */
    bool late;                       /* it was ended for its peer's delay: it is in none any more */
    bool leaving;                    /* and its work has not ended */
    uint64_t started;                /* when its handler was */
    const ebb__handler *handler;
    ebb_future *answer; /* of a handler that returns one */
    ebb__param *params;
    uint32_t params_n;
    uint64_t began;
    ebb_status report; /* of the region, once over */
    const char *allow; /* for a 405 */
    void *state;
    char *event; /* room for the text of an event */
    size_t event_n;

    /* The whole body, for ebb_http_body: body.c. */
    uint8_t *whole;
    size_t whole_n, whole_room;
    uint64_t whole_most;
    bool whole_reads; /* it is the reader */
    ebb_http_bytes whole_bytes;

    /* Of a client: http/client.h has the rest. */
    struct ebb__call *call;

    ebb__arena arena;
};

/* Of a connection, and linked there. NULL: no memory. */
ebb_http *ebb__exchange_new(ebb__conn *c);
/* Zeroes all but the arena; and links it, and unlinks it. */
void ebb__exchange_init(ebb_http *x);
void ebb__exchange_link(ebb_http *x, ebb__conn *c);
void ebb__exchange_unlink(ebb_http *x);
void ebb__exchange_free(ebb_http *x);
/* Bytes to send are there, or the end. */
void ebb__exchange_more(ebb_http *x);
bool ebb__exchange_is_writable(const ebb_http *x);
/* The write that is pending and still wanted; NULL: none. */
ebb_future *ebb__exchange_writer(ebb_http *x);
/* Cancels it: the body is not whole. */
void ebb__exchange_cut(ebb_http *x);
/* Resets the stream for a failure of its handler, once what it has written before has left. */
void ebb__exchange_reset(ebb_http *x);
/* The bytes of the writer that are not sent yet. */
static inline const uint8_t *ebb__exchange_unsent(const ebb_http *x) {
    return x->stage != NULL ? x->behind : x->from;
}

/* For protocols. */

/* One field of the head, or of the trailers if the head is whole. Counts against the limits: past them the
 * exchange is too_large, and nothing is kept any more. False: so much past them that the connection should
 * end. A pseudo field (":path") goes where it belongs. No memory is too_large. */
bool ebb__exchange_field(ebb_http *x, const char *name, size_t name_n, const char *value, size_t value_n);
/* The head is whole: on a server the exchange will start when ebb__conn_start_all is called. `ended`: there
 * is no body. */
void ebb__exchange_head(ebb_http *x, bool ended);
/* Bytes of the body. False: no memory, or more than the window, and in HTTP/1 more than is wanted: the
 * stream is to be reset. */
bool ebb__exchange_body(ebb_http *x, const void *bytes, size_t n);
/* Where the handler that waits for bytes of the body wants them, and how many at most; NULL: nobody waits. Bytes that
 * are put there are told of by ebb__exchange_body before anything else happens. */
uint8_t *ebb__exchange_place(const ebb_http *x, size_t *n);
/* Nothing more comes: EBB_ERR_EOF, or why. */
void ebb__exchange_in_end(ebb_http *x, ebb_status st);
/* The read and the write that are pending end with st, and nothing more is read or written. */
void ebb__exchange_end_waits(ebb_http *x, ebb_status st);
/* Takes at most `room` bytes of the body to send. *ended: these were the last. 0 and not ended: nothing now;
 * the protocol's `more` will be called. */
size_t ebb__exchange_take(ebb_http *x, uint8_t *to, size_t room, bool *ended);
/* How many it would get; and whether the end follows these. */
size_t ebb__exchange_ready(ebb_http *x, bool *ended);
/* Takes bytes of the body that came, and tells the protocol so. */
size_t ebb__exchange_read(ebb_http *x, uint8_t *to, size_t room);
/* The whole body is collected: bytes that came go there, unless they are too many, and its value at the end. */
bool ebb__whole_add(ebb_http *x, const uint8_t *from, size_t n);
ebb_value ebb__whole_end(ebb_http *x);
/* A reader waits from now on, so a peer that waits for "100 Continue" gets that. */
void ebb__exchange_waits(ebb_http *x);
/* Why a read can't begin: EBB_ERR_BUSY, EBB_ERR_CLOSED, or what ended the body. */
ebb_status ebb__exchange_may_read(ebb_http *x);
/* The stream is over. A client's exchange that waits to be sent again has no connection. EBB_OK: both sides have said all. Otherwise why it was lost, the kind of the cancel, and
 * a message. */
void ebb__exchange_gone(ebb_http *x, ebb_status st, ebb_cancel_kind kind, const char *message);

/* A response by ourselves, if there was none: an error. */
void ebb__exchange_refuse(ebb_http *x, int status);

/* ---- connections ------------------------------------------------------------------------------------------ */

/* What a protocol does. `head`, `more`, `consumed`, `go_on`, `reset`, `notice` and `drain` may be called inside the pump:
 * they only take note, and touch the wire; nothing ends before the next `feed` or `fill`. The others are
 * called outside. */
struct ebb__proto {
    int version; /* 20, 11 */
    /* Plain bytes that came. What is wrong with them ends in ebb__conn_fail. */
    void (*feed)(ebb__conn *c, const uint8_t *bytes, size_t n);
    /* Where plain bytes that come next belong, and how many of them at most; NULL: nowhere yet. May be NULL. */
    uint8_t *(*place)(const ebb__conn *c, size_t *n);
    /* Nothing more comes. */
    void (*eof)(ebb__conn *c);
    /* Produces at most `room` plain bytes (room >= 2 KiB). 0: nothing now. */
    size_t (*fill)(ebb__conn *c, uint8_t *to, size_t room);
    /* The head is to be sent: status, out_fields, out_sized. Body bytes are taken by ebb__exchange_take. */
    ebb_status (*head)(ebb_http *x);
    /* There are body bytes again, or the end. */
    void (*more)(ebb_http *x);
    /* User code has read n bytes of the body (or nobody ever will): the peer may send as many. */
    void (*consumed)(ebb_http *x, size_t n);
    /* The peer waits for 100 Continue, and somebody reads. */
    void (*go_on)(ebb_http *x);
    /* Ends the stream for an error of ours. Ends in ebb__exchange_gone, now or later. */
    void (*reset)(ebb_http *x, uint32_t code);
    /* Of a server: tells the peer to send no new requests. Those on their way are still taken. */
    void (*notice)(ebb__conn *c);
    /* Takes no new exchanges: GOAWAY. */
    void (*drain)(ebb__conn *c);
    /* Says why the connection ends, if it can: its last bytes are filled after this. */
    void (*terminate)(ebb__conn *c, uint32_t code);
    /* The time since which the peer owes us the rest of a head; 0: it does not. */
    uint64_t (*head_since)(const ebb__conn *c);
    /* Lets go of everything. Exchanges that are left are the caller's. */
    void (*free)(ebb__conn *c);
    /* Of a client: the wire takes nothing now, and may not for ever; what was reset is gone all the same. */
    void (*stuck)(ebb__conn *c);
};

/* A protocol with its state: sets c->proto and c->session. EBB_ERR_NOMEM. A client's opens an exchange by the
 * exchange's `head`: method, path (with its query), authority, out_fields; c->tls says which scheme. */
ebb_status ebb__h2_server_new(ebb__conn *c);
ebb_status ebb__h1_server_new(ebb__conn *c);
ebb_status ebb__h2_client_new(ebb__conn *c);
ebb_status ebb__h1_client_new(ebb__conn *c);

typedef enum ebb__conn_state {
    EBB__CONN_NEW = 0, /* the protocol is not known yet: TLS shakes hands, or the first bytes are missing */
    EBB__CONN_OPEN,
    EBB__CONN_CLOSING,  /* a server's: takes the requests that are on their way, for EBB__NOTICE_MS at most */
    EBB__CONN_DRAINING, /* takes nothing new, and ends with its last exchange */
    EBB__CONN_ENDING,   /* its last bytes are on their way */
    EBB__CONN_ENDED     /* the wire is closed */
} ebb__conn_state;

enum {
    EBB__BODY_WINDOW = 1 << 18
}; /* of a body that its handler reads as it comes: the most that waits for it */

enum { EBB__INTERIMS = 16 }; /* responses like 103 before the response: more are no HTTP */

enum {
    EBB__LATE_BODY_MS = 1000,   /* a client may still send so long what nobody waits for any more */
    EBB__TLS_NEW_BYTES = 65536, /* what OpenSSL takes for a connection, as it shakes hands, and then */
    EBB__TLS_BYTES = 24576,

    EBB__NOTICE_MS = 1000, /* how long a connection that closes waits for requests that are on their way */

    EBB__EVICT = 16, /* exchanges that are ended at once if the server is short of something */

    EBB__RETRY_MS = 100 /* how often an exchange that waits to start is looked at, if nothing else is */
};

struct ebb__conn {
    ebb__raw_stream raw;
    ebb_loop *loop;
    ebb_allocator allocator; /* which counts */
    ebb_http_server *server; /* NULL: a client's */
    ebb_http_client *client; /* NULL: a server's */
    const ebb__proto *proto; /* NULL: not known yet */
    void *session;           /* the protocol's */
    ebb__tls *tls;           /* NULL: plain */
    uint8_t state;           /* ebb__conn_state */
    bool h2;                 /* a client's in plain text: it speaks HTTP/2 */
    bool broken;             /* the wire failed, or TLS was cut: that is no end of a message */
    bool tls_ended;          /* the peer has said that it sends no more, in TLS */
    bool held_back;          /* nothing is read, because too much is still to be freed */
    bool tls_closed;           /* close_notify was said */
    bool failed;             /* the peer is why it is over */
    bool delayed_address;           /* and its address has to wait for it */
    bool lingers;            /* all is sent: what still comes is forgotten, until linger_until */
    bool listens;            /* the keeper hears of a close */
    bool cancelled;          /* and was cancelled */
    bool stopping;           /* and does not wait for its exchanges any longer */
    bool attached;              /* libuv has a part of it */
    bool region_closed;               /* its region has closed */
    bool overflow;           /* more than limits.connections: every request is 503 */
    uint8_t greeting_n;      /* the first bytes, until they say which protocol it is */
    uint8_t greeting[24];
    ebb_address peer;

    ebb_http *first;   /* exchanges */
    uint32_t slots;    /* how many */
    uint32_t open;     /* of these, how many have a stream */
    uint32_t working;  /* of these, how many have a handler that runs, or ran and has its stream */
    uint32_t held;     /* of these, how many its address counts */
    uint32_t sending;  /* and of how many bytes are ready that the peer has not taken */
    ebb__pace pace;    /* how long it has taken none of them, or too few */
    uint32_t requests; /* so far */
    uint64_t bodies;   /* bytes of bodies that came so far */
    ebb_http *starts, **starts_last; /* those whose head is whole, until bytes are no longer looked at */

    ebb_http *stager; /* the exchange that has the large stage: one for all of a connection; NULL: none */

    char *rest; /* bytes that the system did not take; libuv has them */
    size_t rest_n;
    uint64_t write_since; /* it has them since then */
    uint64_t taken;       /* bytes that the system or libuv has taken, so far */

    /* Of a server. */
    ebb__conn *prev, *next;
    ebb_region region;
    ebb_task task;
    ebb_future *closing;
    ebb_timer timer;
    uint64_t timer_at;                /* EBB_FOREVER: none */
    ebb__conn *idle_prev, *idle_next; /* among those without an exchange; who is idle longest comes first */
    bool idle;
    uint64_t idle_since;    /* there is no exchange since then */
    uint64_t closing_since; /* it is to close since then */
    uint32_t charged;       /* what it counts for OpenSSL */
    uint32_t handshake;     /* bytes of TLS that came, until that is ready */
    uint64_t forgets;       /* bytes that it may still send once it is over */
    uint64_t linger_until;  /* 0: it does not */
    uint64_t budget_end;    /* once cancelled: of its cleanup; and when it stops to wait for its exchanges */
    uint64_t stop_at;       /* 0: it does not */
    uint64_t born;
    ebb__bucket resets, frames;
    ebb__rate_limit *address; /* shared by all connections of the peer's address */
    ebb__address *from;       /* and what these hold */
    bool blocked;             /* it waits for room there */
    ebb__conn *blocked_next, **blocked_at;
    uint64_t read_at; /* nothing is read before that, for what the address did; 0: it is read */
    bool excused;     /* it has had a reset that its address could not pay */
    uint32_t earned;  /* whole answers that it got, less resets that it could not have had else */

    /* Of a client: http/client.h. */
    struct ebb__origin *origin;
};

/* The window of the whole connection is closed by what nobody has read. */
bool ebb__h2_is_choked(const ebb__conn *c);
/* The peer takes so many bytes of this response now. */
bool ebb__h2_has_window(const ebb_http *x, size_t n);
/* How many more streams a client may open there now. */
uint32_t ebb__h2_client_room(const ebb__conn *c);

/* Bytes have changed hands, or will: the wire is flushed at the end of the turn. */
static inline void ebb__conn_touch(ebb__conn *c) {
    ebb__raw_stream_touch(&c->raw);
}
/* Limits by which fields and bodies of its exchanges are held. */
typedef struct ebb__bounds {
    uint32_t headers, header_bytes;
    uint64_t body_bytes;
} ebb__bounds;
const ebb__bounds *ebb__conn_bounds(const ebb__conn *c);

/* conn.c. Takes an open stream. The peer's address is asked for here. */
ebb_status ebb__conn_open(ebb__conn *c, ebb_cx *cx, ebb_stream s);
/* The peer broke the rules, or we can't go on: says `code` (of HTTP/2) if it can, and ends. All exchanges are
 * gone with this, with `st`, `kind` and `message`. */
void ebb__conn_fail(ebb__conn *c, uint32_t code, ebb_status st, ebb_cancel_kind kind, const char *message);
/* No exchange is left that it would have to wait for: sends what is left to send, and ends. */
void ebb__conn_finish(ebb__conn *c);
/* Ends it now; nothing more is sent. Exchanges as above. */
void ebb__conn_drop(ebb__conn *c, ebb_status st, ebb_cancel_kind kind, const char *message);
/* Of a server: tells the peer, takes the requests that are on their way, then drains. */
void ebb__conn_close(ebb__conn *c);
/* Takes nothing new; ends with the last exchange. */
void ebb__conn_drain(ebb__conn *c);
/* An exchange was freed. */
void ebb__conn_freed(ebb__conn *c);
static inline bool ebb__conn_is_ending(const ebb__conn *c) {
    return c->state >= EBB__CONN_ENDING;
}

/* ---- a server's part: serve.c, keeper.c, server.c ---------------------------------------------------------- */

/* A new exchange may begin here. False: it is to be refused (REFUSED_STREAM), and was counted. */
bool ebb__server_admits(ebb__conn *c);
/* And its handler may run. False: as many run as may. */
bool ebb__server_may_start(ebb__conn *c);
/* The head is whole, and bytes are no longer looked at: routes it, and runs its handler. */
void ebb__serve(ebb_http *x);
/* The stream is gone: so is the reason for its work. */
void ebb__serve_gone(ebb_http *x, ebb_cancel_kind kind, const char *message);
/* The peer ended a stream before its response was whole; `early`: before the first byte of it. Or a frame asked for
 * nothing. False: once too often; the connection is to fail with ENHANCE_YOUR_CALM. */
bool ebb__server_reset(ebb__conn *c, bool early);
/* A stream was lost with its connection: its address pays. */
void ebb__server_lost(ebb__conn *c, bool early);
/* The connection is ended for what the peer did: new ones of its address have to wait. */
void ebb__server_delay_address(ebb__conn *c);
/* A new connection waits if its address has to. */
void ebb__server_delay_reads(ebb__conn *c);
bool ebb__server_frame(ebb__conn *c, uint32_t n);
/* What its peer's address has used up. */
ebb__rate_limit *ebb__server_rate_limit(ebb__conn *c);
/* The peer has kept it waiting for too long: it is cancelled with TIMEOUT, and its stream is ended. */
void ebb__conn_task_late(ebb_http *x, const char *message);
/* The peer may not send, because others of its bodies are not read. */
bool ebb__conn_task_is_choked(const ebb__conn *c);
/* The connection has something to wait for until then: keeper.c. */
void ebb__conn_task_at(ebb__conn *c, uint64_t due);
/* It has sent its last bytes: it is closed a moment later. */
void ebb__conn_task_linger(ebb__conn *c);
/* The keeper's poll function. */
ebb_status ebb__conn_task_poll(ebb_cx *cx, void *arg);
/* It has ended: the keeper looks at it. */
void ebb__conn_task_wake(ebb__conn *c);

/* progress.c: what the exchange tells of its bytes. All but the last two may change who starts next. */
void ebb__pacing_ready(ebb_http *x);          /* bytes of the response are ready, or its end */
void ebb__pacing_took(ebb_http *x, size_t n); /* the peer has taken so many */
void ebb__pacing_cut(ebb_http *x);            /* they are not ready any more */
void ebb__pacing_reads(ebb_http *x);          /* a handler waits for the body */
void ebb__pacing_came(ebb_http *x, size_t n); /* so much of it came, or its end */
void ebb__pacing_end(ebb_http *x);            /* nobody waits for the peer any more */
/* It waits for its peer for longer than what has passed is worth. */
bool ebb__pacing_is_stalled(const ebb_http *x, uint64_t now);

/* address.c. A connection counts for its address from the first to the second. EBB_ERR_NOMEM. */
ebb_status ebb__address_join(ebb__conn *c);
void ebb__address_leave(ebb__conn *c);
/* One more handler may start. False: the connection is woken when it may. */
bool ebb__address_has_room(ebb__conn *c);
/* One more request may wait for that. */
bool ebb__address_may_queue(const ebb__conn *c);
void ebb__address_started(ebb_http *x); /* its handler is about to run */
void ebb__address_hold(ebb_http *x);    /* it waits for its peer, or has made progress */
void ebb__address_let_go(ebb_http *x);  /* it does not wait */
void ebb__address_left(ebb_http *x);    /* its work has ended */
/* Ends at most so many exchanges that have stalled, of whatever address. */
void ebb__address_evict_any(ebb_http_server *s, uint32_t most);

/* It has no exchange any more, or has one. */
void ebb__server_idle(ebb__conn *c, bool idle);
/* Frees a connection: when its region has closed and libuv has let go of it. */
void ebb__server_conn_free(ebb__conn *c);
/* Tells the access log of it. */
void ebb__access_line(const ebb_http *x);

/* ---- a client's part: client.c ------------------------------------------------------------------------------ */

void ebb__client_ready(ebb__conn *c);                /* the protocol is known: it takes exchanges */
void ebb__client_room(ebb__conn *c);                 /* it may take more than before */
void ebb__client_draining(ebb__conn *c);             /* it takes no more */
void ebb__client_ended(ebb__conn *c, ebb_status st); /* and why it has ended; those in flight were told */
void ebb__client_closed(ebb__conn *c);               /* libuv has let go of its wire: it may be freed */
void ebb__client_answered(ebb_http *x);              /* the head of a response is whole */
void ebb__client_body(ebb_http *x);                  /* bytes of its body came, or its end */
void ebb__client_gone(ebb_http *x, ebb_status st);   /* its stream is over; conn is NULL from now on */
/* Its stream is over, with *st, and nobody was told: true if its call is sent again instead. Else *st may have become
 * EBB_ERR_HTTP_RETRY, because nothing of the request was sent. */
bool ebb__client_resends(ebb_http *x, ebb_status *st);
bool ebb__client_wants(const ebb_http *x); /* its call is not cancelled: its body may be read */
const ebb__bounds *ebb__client_bounds(const ebb__conn *c);

struct ebb_http_server {
    ebb_loop *loop;
    ebb_allocator inner;     /* the host's */
    ebb_allocator allocator; /* over `pool`, which is over one that counts, and fails past the limit */
    ebb__pool pool;
    uint64_t memory;      /* that was allocated for it */
    uint64_t shared_base; /* what the runtime had when it was made: see ebb__server_memory */
    ebb_http_limits limits;
    ebb__bounds bounds;
    ebb__tls_ctx *tls;
    ebb__routes *routes;
    ebb_region region;
    ebb_listener listener;
    ebb_address address;
    ebb_task acceptor; /* accepts */
    ebb_future *accepting;
    ebb_future *closing; /* of the door, when there is no room */
    ebb_sleeper nap;     /* the door's, when an accept failed */
    bool napping;
    bool
        draining; /* the server was closed, and the door takes the connections that were established before */
    uint64_t look_at; /* the door is full, and a timer has it look again then */
    ebb_http_server_stats stats;
    void (*access)(void *ctx, const char *line, size_t n);
    void *ctx;
    uint64_t date_at; /* the second of `date` */
    char date[32];
    ebb__conn *conns;
    bool region_closed; /* its region has closed: it goes with its last connection */
    ebb__conn *idle_first, *idle_last;
    ebb_http *spare; /* exchanges to use again */
    uint32_t spares;
    ebb__rate_limits rate_limits;
    ebb__address *addresses[EBB__RATE_LIMIT_SLOTS];   /* NULL: no connection has it */
    ebb__address *address_first, *address_last; /* of these, all that there are */
    uint32_t descriptors;                       /* the first that is of the reserve */
    uint32_t crowd;                             /* the most exchanges since it was last looked at */
    uint64_t trim_at;                           /* when that is next; 0: there was no crowd */
};
/* Bytes, as limits.memory_bytes counts them. */
uint64_t ebb__server_memory(const ebb_http_server *s);
/* It has more memory than so many eighths of its limit. */
bool ebb__server_is_short(const ebb_http_server *s, uint32_t eighths);
/* Frees what is kept to be used again. */
void ebb__server_shed(ebb_http_server *s);
/* One more exchange is in progress. */
void ebb__server_crowd(ebb_http_server *s);
/* Counts so many bytes for what a connection has of OpenSSL's. False: that is more than there may be. */
bool ebb__server_charge(ebb__conn *c, uint32_t bytes);
/* "Sun, 15 Nov 2026 18:00:00 GMT", of this second. */
const char *ebb__server_date(ebb_http_server *s);

/* The codes of RFC 9113 that we use. */
enum {
    EBB__NO_ERROR = 0,
    EBB__PROTOCOL_ERROR = 1,
    EBB__INTERNAL_ERROR = 2,
    EBB__STREAM_CLOSED = 5,
    EBB__REFUSED_STREAM = 7,
    EBB__CANCEL = 8,
    EBB__ENHANCE_YOUR_CALM = 11
};

#endif
