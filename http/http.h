/* Internals of the HTTP layer: connections, exchanges, and the interface of a protocol.
 *
 * A *connection* (conn.c) has a raw stream, optionally TLS, and a protocol that turns bytes into exchanges and back. A
 * server's connection is a region with one task of its own, the connection task (conn_task.c): it learns of a close or
 * a cancel and keeps the timers. A client's connection is a record of the client and runs by callbacks alone.
 *
 * An *exchange* (exchange.c) is what user code works with: the fields of both directions, a queue of received body
 * bytes, and one source of body bytes to send. A server's exchange has a region below that of its connection, in which
 * its handler runs (server_exchange.c).
 *
 * Data flows one way: raw stream -> (TLS) -> protocol -> exchange -> handler -> exchange -> protocol -> (TLS) -> raw
 * stream. User code runs in the pump. It only changes the exchange and marks the raw stream for a flush. The protocol
 * produces bytes when the raw stream is flushed after the pump, for all handlers at once.
 *
 * Invariants:
 *  - An exchange is in its connection's list, and takes one of its slots, from its creation until it is freed. It is
 *    freed when its stream is gone *and* its region (on a client: its user) is.
 *  - The protocol reports the end of every stream exactly once, by ebb__exchange_gone; the end of a connection does so
 *    for the streams that are still open. After that the protocol does not use the exchange, and no byte of the
 *    exchange is sent.
 *  - No callback of a protocol runs user code: user code runs in the pump. */
#ifndef EBB__HTTP_H
#define EBB__HTTP_H

#include <assert.h>

#include "http/address.h"
#include "http/block_pool.h"
#include "http/fields.h"
#include "http/progress.h"
#include "http/rate_limit.h"
#include "http/route.h"
#include "http/state.h"
#include "http/tls.h"
#include "loop/counters.h"
#include "loop/raw_stream.h"

typedef struct ebb__conn ebb__conn;
typedef struct ebb__proto ebb__proto;

/* ---- exchanges -------------------------------------------------------------------------------------------- */

/* Six state machines (state.h), each a byte: `in` and `out` are the two directions as user code sees them, `sent` what
 * the protocol has sent, `stream` the stream, `work` the handler, `place` the place among those of the address.
 * Invariants:
 *  - Only ebb__exchange_step changes these bytes.
 *  - `conn` is NULL exactly while the exchange is in no connection's list: on a client before the request is sent and
 *    after the stream has ended.
 *  - While `writer` is not NULL, `out` is OPEN, LAST, CUT or RESETS.
 *  - `starts` of the connection has the exchanges whose `work` is QUEUED, no others.
 *  - The region is open while `work` is RUNNING or RETURNED. conn->working counts exchanges that started and whose
 *    stream and handler have not both ended.
 *  - `place` is YOUNG or WAITING exactly while the exchange is in that list of its address. */
struct ebb_http {
    ebb_loop *loop;
    ebb__conn *conn;
    ebb_http *prev, *next; /* in the connection's list */
    ebb_http *waits;       /* the next exchange in conn->starts */
    int32_t stream;        /* of HTTP/2; 0 in HTTP/1 */
    uint8_t version;       /* 20, 11, 10 */
    bool client;
    uint8_t stream_state; /* ebb__stream_state */
    uint8_t work;         /* ebb__work; on a client NONE */
    uint8_t place;        /* ebb__place; on a client NONE */
    uint32_t number;      /* in a trace; 0: not recorded */

    /* Receiving. */
    uint8_t in;       /* ebb__in */
    bool head;        /* HEAD: the response has no body */
    uint8_t interims; /* on a client: informational responses so far */
    bool expects;     /* the peer waits for 100 Continue, which was not sent yet */
    bool wide;        /* HTTP/2: the stream's window was enlarged */
    bool too_large;   /* the head or the trailers exceed the limits */
    uint64_t excess;  /* size of the dropped fields: names, values and 32 bytes each */
    int16_t verdict;  /* the status if the handler was cancelled before it answered; 0: 503 */
    int16_t status;   /* of the response, in either direction */
    const char *method, *path, *query, *authority;
    uint32_t path_n; /* without the query */
    ebb__fields fields, trailers;
    uint64_t deadline; /* absolute, from ebb-deadline-ms; 0: none */
    uint64_t in_bytes; /* of the body, received so far */
    uint8_t *body;     /* a ring of the bytes that nobody has read yet */
    uint32_t body_at, body_n, body_room;
    ebb_status in_status; /* at IN_ENDED: EBB_ERR_EOF, or why the body is incomplete */
    ebb_future *reader;
    uint8_t *into;
    size_t into_n;
    ebb__pace in_pace; /* how long a reader has waited for the peer */

    /* Sending. */
    uint8_t out;    /* ebb__out */
    uint8_t sent;   /* ebb__sent */
    bool deferred;  /* HTTP/2: nghttp2 waits for ebb__h2_more */
    bool out_sized; /* the length of the body is known: out_size */
    bool bodyless;  /* HEAD, 204, 304: no body bytes are sent */
    uint64_t out_size;
    uint64_t written; /* bytes of the body that user code has written so far */
    ebb__fields out_fields, out_trailers;
    const uint8_t *from; /* what is sent next: the copy of a reply, the stage, or the writer's bytes */
    size_t from_n;
    uint8_t *stage;        /* bytes of writes that have ended; NULL: none */
    size_t stage_n;        /* capacity of the stage */
    const uint8_t *behind; /* the writer's bytes that follow the stage */
    size_t behind_n;
    ebb_future *writer;
    size_t writer_n;
    uint64_t out_bytes;  /* of the body, sent so far */
    uint64_t sent_since; /* the response was sent before its request was complete; 0: no */
    uint64_t dropped;    /* request bytes that were dropped since then */
    ebb__pace out_pace;  /* how long the peer has not taken bytes that were ready */
    ebb_http *fresh,
        **fresh_at; /* the next in conn->fresh, and the pointer to this one; NULL: not in that list */

    /* Server only. */
    ebb_region region;
    ebb_task task;                   /* of the handler */
    ebb__trace_context *trace;       /* in the arena; NULL: the request has no valid traceparent */
    ebb_http *held_prev, *held_next; /* in a list of its address */
    uint64_t started;                /* when its handler started */
    const ebb__handler *handler;
    ebb_future *answer; /* the future of a handler that returns one */
    ebb__param *params;
    uint32_t params_n;
    uint64_t began;
    ebb_status report; /* status of the region, once closed */
    const char *allow; /* methods for the allow header of a 405 */
    void *state;
    char *event; /* buffer for the text of an event */
    size_t event_n;

    /* The whole body, for ebb_http_body: body.c. */
    uint8_t *whole;
    size_t whole_n, whole_room;
    uint64_t whole_most;
    bool whole_reads; /* the pending read wants the whole body */
    ebb_http_bytes whole_bytes;

    /* Client only: http/client.h has the rest. */
    struct ebb__call *call;

    ebb__arena arena;
};

/* A new exchange in the connection's list. NULL: no memory. */
/* note.c: events of the trace. Call the first two only if ebb__is_recorded. */
void ebb__note_connection(ebb__conn *c, bool opened);
void ebb__note_exchange_begun(ebb_http *x);
void ebb__note_exchange_ended(ebb_http *x);

ebb_http *ebb__exchange_new(ebb__conn *c);
/* Zeroes everything but the arena. The next two add it to the connection's list and remove it. */
void ebb__exchange_init(ebb_http *x);
void ebb__exchange_link(ebb_http *x, ebb__conn *c);
void ebb__exchange_unlink(ebb_http *x);
void ebb__exchange_free(ebb_http *x);
/* There are bytes to send, or the body has ended. */
void ebb__exchange_more(ebb_http *x);
bool ebb__exchange_is_writable(const ebb_http *x);
/* The task of the handler has ended, but the handler never returned. */
bool ebb__exchange_is_abandoned(const ebb_http *x);
/* The pending write, unless it was cancelled or its handler was abandoned; NULL: none. */
ebb_future *ebb__exchange_writer(ebb_http *x);
/* Cancels the pending write: the body stays incomplete. */
void ebb__exchange_cut(ebb_http *x);
/* Resets the stream because the handler failed, after the bytes that it wrote before are sent. */
void ebb__exchange_reset(ebb_http *x);
/* The writer's bytes that are not sent yet. */
static inline const uint8_t *ebb__exchange_unsent(const ebb_http *x) {
    return x->stage != NULL ? x->behind : x->from;
}

/* The following functions are called by protocols. */

/* Adds one field to the head, or to the trailers if the head is complete. Fields count against the limits: past them
 * the exchange is too_large and keeps no more fields. Also without memory. A pseudo field (":path") is stored as what
 * it means. False: so far past the limits that the connection should end. */
bool ebb__exchange_field(ebb_http *x, const char *name, size_t name_n, const char *value, size_t value_n);
/* The head is complete. A server starts the handler once it has parsed all bytes that were received together: a reset
 * may be among them. `ended`: there is no body. */
void ebb__exchange_head(ebb_http *x, bool ended);
/* Bytes of the body were received. False: the stream must be reset, because there is no memory, the bytes exceed the
 * window, or (HTTP/1) they are more than is wanted. */
bool ebb__exchange_body(ebb_http *x, const void *bytes, size_t n);
/* The buffer of the handler that waits for bytes of the body, and its size in *n; NULL: nobody waits. Bytes that are
 * written there must be passed to ebb__exchange_body before anything else happens. */
uint8_t *ebb__exchange_place(const ebb_http *x, size_t *n);
/* No more bytes will be received: EBB_ERR_EOF, or why. */
void ebb__exchange_in_end(ebb_http *x, ebb_status st);
/* Ends the pending read and write with `st`; nothing more is read or written. */
void ebb__exchange_end_waits(ebb_http *x, ebb_status st);
/* Takes at most `room` bytes of the body to send. *ended: these were the last. 0 and not ended: there are none now,
 * and the protocol's `more` will be called. */
size_t ebb__exchange_take(ebb_http *x, uint8_t *to, size_t room, bool *ended);
/* How many bytes could be taken, and whether the body ends after them. */
size_t ebb__exchange_ready(ebb_http *x, bool *ended);
/* Takes received bytes of the body, and reports them to the protocol as consumed. */
size_t ebb__exchange_read(ebb_http *x, uint8_t *to, size_t room);
/* Adds received bytes to the whole body, unless they exceed its limit; and makes its value at the end. */
bool ebb__whole_add(ebb_http *x, const uint8_t *from, size_t n);
ebb_value ebb__whole_end(ebb_http *x);
/* A reader waits: if the peer waits for 100 Continue, sends that. */
void ebb__exchange_waits(ebb_http *x);
/* EBB_OK, or why a read can't begin: EBB_ERR_BUSY, EBB_ERR_CLOSED, or the status with which the body ended. */
ebb_status ebb__exchange_may_read(ebb_http *x);
/* The stream has ended. EBB_OK: both sides have sent everything. Otherwise `st` says why the stream was lost, and
 * `kind` and `message` are those of the cancel. A client's exchange whose call is to be sent again has no connection
 * after this. */
void ebb__exchange_gone(ebb_http *x, ebb_status st, ebb_cancel_kind kind, const char *message);

/* Answers with an error status, if there is no response yet. */
void ebb__exchange_refuse(ebb_http *x, int status);

/* ---- connections ------------------------------------------------------------------------------------------ */

/* The interface of a protocol. `head`, `more`, `consumed`, `go_on`, `reset`, `notice` and `drain` may be called in the
 * pump: they only take note and mark the raw stream for a flush, and no exchange ends before the next `feed` or
 * `fill`. The others are called outside of the pump. */
struct ebb__proto {
    int version; /* 20, 11 */
    /* Parses received plaintext. An error in it is reported by ebb__conn_fail. */
    void (*feed)(ebb__conn *c, const uint8_t *bytes, size_t n);
    /* The buffer in which the next plaintext bytes belong, and its size in *n; NULL: none. May be NULL. */
    uint8_t *(*place)(const ebb__conn *c, size_t *n);
    /* The peer sends no more bytes. */
    void (*eof)(ebb__conn *c);
    /* Produces at most `room` plaintext bytes (room >= 2 KiB). 0: none now. */
    size_t (*fill)(ebb__conn *c, uint8_t *to, size_t room);
    /* Sends the head: status, out_fields, out_sized. Body bytes are taken by ebb__exchange_take. */
    ebb_status (*head)(ebb_http *x);
    /* There are body bytes again, or the body has ended. */
    void (*more)(ebb_http *x);
    /* User code has read n bytes of the body, or will never read them: the peer may send as many more. */
    void (*consumed)(ebb_http *x, size_t n);
    /* The peer waits for 100 Continue, and a reader waits for the body. */
    void (*go_on)(ebb_http *x);
    /* Ends the stream because of an error on our side. Calls ebb__exchange_gone now or later. */
    void (*reset)(ebb_http *x, uint32_t code);
    /* Server only: asks the peer to send no new requests. Requests that are on their way are still taken. */
    void (*notice)(ebb__conn *c);
    /* Takes no new exchanges: GOAWAY. */
    void (*drain)(ebb__conn *c);
    /* Prepares the last bytes of the connection, which say why it ends if the protocol can express that. `fill`
     * produces them. */
    void (*terminate)(ebb__conn *c, uint32_t code);
    /* Since when the rest of a head has been missing; 0: none is missing. */
    uint64_t (*head_since)(const ebb__conn *c);
    /* Frees the session. Exchanges that are left belong to the caller. */
    void (*free)(ebb__conn *c);
    /* Client only: the socket takes no bytes now, and may never. Ends the streams that were reset. */
    void (*stuck)(ebb__conn *c);
};

/* Each makes the state of a protocol and sets c->proto and c->session. EBB_ERR_NOMEM. A client opens an exchange by
 * the protocol's `head`, which uses method, path (with its query), authority and out_fields; c->tls decides the
 * scheme. */
ebb_status ebb__h2_server_new(ebb__conn *c);
ebb_status ebb__h1_server_new(ebb__conn *c);
ebb_status ebb__h2_client_new(ebb__conn *c);
ebb_status ebb__h1_client_new(ebb__conn *c);

enum { EBB__BODY_WINDOW = 1 << 18 }; /* unread bytes of a body, once its handler reads it as it is received */

#define EBB__TRACEPARENT "traceparent"
enum { EBB__TRACEPARENT_N = sizeof EBB__TRACEPARENT - 1 };

enum { EBB__INTERIMS = 16 }; /* informational responses (103) before a response: more are an error */

enum {
    EBB__LATE_BODY_MS = 1000,   /* how long a client may go on sending a request that was answered */
    EBB__TLS_NEW_BYTES = 65536, /* what OpenSSL takes for a connection: during the handshake, and after it */
    EBB__TLS_BYTES = 24576,

    EBB__NOTICE_MS = 1000, /* how long a closing connection waits for requests that are on their way */

    EBB__EVICT = 16, /* stalled exchanges that are ended at a time if a resource runs short */

    EBB__RETRY_MS = 100 /* how often an exchange that waits to start is checked at least */
};

/* Three state machines (state.h), each a byte: `state` is the life of the connection, `reads` whether it is read,
 * `unit` its region and the connection task. Invariants:
 *  - Only ebb__conn_step changes these bytes.
 *  - From ENDING on there is no exchange in progress, and none begins.
 *  - libuv uses the connection from NEW to ENDED. A server's connection is freed when libuv does not use it and its
 *    region has closed; a client's is freed when it is RELEASED. */
struct ebb__conn {
    ebb__raw_stream raw;
    ebb_loop *loop;
    ebb_allocator allocator; /* counts against limits.memory_bytes */
    ebb_http_server *server; /* NULL: a client's connection */
    ebb_http_client *client; /* NULL: a server's connection */
    const ebb__proto *proto; /* NULL: not known yet */
    void *session;           /* state of the protocol */
    ebb__tls *tls;           /* NULL: plaintext */
    uint8_t state;           /* ebb__conn_state */
    uint8_t reads;           /* ebb__reads */
    uint8_t unit;            /* ebb__unit; on a client NONE */
    bool h2;                 /* client without TLS: it uses HTTP/2 */
    bool failed;             /* it ends because of what the peer did */
    bool delayed_address;    /* it has delayed new connections of its address */
    bool illegal;            /* a transition was refused: it ends with EBB_ERR_HTTP_STATE */
    bool overflow;           /* more than limits.connections: every request is 503 */
    uint32_t number;         /* in a trace; 0: not recorded */
    uint8_t greeting_n;      /* the first bytes, until they identify the protocol */
    uint8_t greeting[24];
    ebb_address peer;

    ebb_http *first;                 /* list of its exchanges */
    uint32_t slots;                  /* number of its exchanges */
    uint32_t open;                   /* of these, with a stream */
    uint32_t working;                /* of these, with a handler that runs, or ran and whose stream is open */
    uint32_t held;                   /* of these, counted by its address */
    uint32_t sending;                /* of these, with bytes ready that the peer has not taken */
    ebb_http *fresh, **fresh_last;   /* with bytes that became ready since the last flush, in that order */
    ebb__pace pace;                  /* how long the peer has taken none of these bytes, or too few */
    uint32_t requests;               /* received so far */
    uint64_t bodies;                 /* bytes of bodies received so far */
    ebb_http *starts, **starts_last; /* exchanges with a complete head that have not started */

    ebb_http *stager; /* the exchange with the large stage, of which a connection has one; NULL: none */

    char *rest; /* bytes that the system did not take; libuv writes them */
    size_t rest_n;
    uint64_t write_since; /* since when libuv has had them */
    uint8_t *tail;        /* bytes of the protocol that wait for the next flush, to be sent with its bytes */
    size_t tail_n;
    uint32_t settled; /* writes that have ended in this flush */
    uint64_t taken;   /* bytes that the system or libuv has taken so far */

    /* Server only. */
    ebb__conn *prev, *next;
    ebb_region region;
    ebb_task task;
    ebb_future *closing;
    ebb_timer timer;
    uint64_t timer_at; /* EBB_FOREVER: none */
    ebb__conn *idle_prev,
        *idle_next;      /* in the server's list of connections without an exchange, the longest idle first */
    bool idle;           /* it is in that list */
    uint64_t idle_since; /* since when it has had no exchange */
    uint64_t closing_since; /* since when it has been closing */
    uint32_t charged;       /* bytes that it is charged for OpenSSL */
    uint32_t handshake;     /* bytes of TLS received until the handshake was complete */
    uint64_t forgets;       /* bytes that the peer may still send while the connection ends */
    uint64_t linger_until;  /* 0: not lingering */
    uint64_t budget_end;    /* end of the cleanup budget, once cancelled */
    uint64_t stop_at;       /* when it stops to wait for its exchanges; 0: not set */
    uint64_t born;
    ebb__bucket resets, frames;
    ebb__rate_limit *address; /* budgets that all connections of the peer's address share */
    ebb__address *from;       /* places that these connections take */
    bool blocked;             /* it is in the list of connections that wait for a place there */
    ebb__conn *blocked_next, **blocked_at;
    uint64_t read_at; /* it is not read before, while DELAYED */
    bool excused;     /* it has had its one reset beyond the budget of its address */
    uint32_t earned;  /* complete answers, less the resets that they have paid for */

    /* Client only: http/client.h. */
    struct ebb__origin *origin;
};

/* Bytes that nobody has read have closed the window of the whole connection. */
bool ebb__h2_is_choked(const ebb__conn *c);
/* The windows let us send n bytes of this response now. */
bool ebb__h2_has_window(const ebb_http *x, size_t n);
/* How many more streams a client may open on this connection now. */
uint32_t ebb__h2_client_room(const ebb__conn *c);

/* There may be bytes to send: the raw stream is flushed after the pump. */
static inline void ebb__conn_touch(ebb__conn *c) {
    ebb__raw_stream_touch(&c->raw);
}
/* Limits for the fields and bodies of the exchanges of a connection. */
typedef struct ebb__bounds {
    uint32_t headers, header_bytes;
    uint64_t body_bytes;
} ebb__bounds;
const ebb__bounds *ebb__conn_bounds(const ebb__conn *c);

/* conn.c. Starts to use an open stream, and notes the peer's address. */
ebb_status ebb__conn_open(ebb__conn *c, ebb_cx *cx, ebb_stream s);
/* Ends the connection after an error of the peer or of ours, and sends `code` (of HTTP/2) if the protocol can. Ends
 * all exchanges with `st`, `kind` and `message`. */
void ebb__conn_fail(ebb__conn *c, uint32_t code, ebb_status st, ebb_cancel_kind kind, const char *message);
/* Ends the connection, which waits for no exchange any more: sends the bytes that are left. */
void ebb__conn_finish(ebb__conn *c);
/* Ends the connection at once and sends nothing more. Ends the exchanges like ebb__conn_fail. */
void ebb__conn_drop(ebb__conn *c, ebb_status st, ebb_cancel_kind kind, const char *message);
/* Server only: notifies the peer, takes the requests that are on their way, then drains. */
void ebb__conn_close(ebb__conn *c);
/* Takes no new exchanges; the connection ends with its last one. */
void ebb__conn_drain(ebb__conn *c);
/* An exchange was freed. */
void ebb__conn_freed(ebb__conn *c);
static inline bool ebb__conn_is_ending(const ebb__conn *c) {
    return c->state >= EBB__CONN_ENDING;
}
/* libuv uses it. */
static inline bool ebb__conn_is_attached(const ebb__conn *c) {
    return c->state >= EBB__CONN_NEW && c->state <= EBB__CONN_ENDED;
}
/* Its last bytes are being sent, or all are. */
static inline bool ebb__conn_has_last_bytes(const ebb__conn *c) {
    return c->state >= EBB__CONN_ENDING && c->state <= EBB__CONN_LINGERING;
}
/* Its region was cancelled, and has not closed. */
static inline bool ebb__conn_is_cancelled(const ebb__conn *c) {
    return c->unit == EBB__UNIT_CANCELLED || c->unit == EBB__UNIT_STOPPING;
}

/* ---- transitions ------------------------------------------------------------------------------------------ */

/* The trigger is not legal in this state: see state.h. Without asserts the caller goes on. `c` may be NULL. */
void ebb__conn_illegal(ebb__conn *c, ebb__machine_id id, unsigned state, unsigned trigger);

static inline void ebb__count_move(ebb__conn *c, ebb__count count) {
    if (c == NULL) return; /* a call that has no connection counts nowhere */
    switch (count) {
    case EBB__COUNT_NONE: break;
    case EBB__COUNT_QUEUED: c->from->queued++; break;
    case EBB__COUNT_SKIPPED: c->from->queued--; break;
    case EBB__COUNT_CLOSED: c->open--; break;
    case EBB__COUNT_STARTED:
        c->from->queued--;
        c->working++;
        break;
    }
}

/* The one place that changes the state of an exchange or of a connection. */
static inline void ebb__step(ebb__conn *c, uint8_t *state, const ebb__move *moves, ebb__machine_id machine,
                             unsigned trigger) {
    const ebb__move *m = &moves[trigger];
    bool legal = ebb__move_allows(m, *state);
    assert(legal);
    if (EBB__UNLIKELY(!legal)) {
        ebb__conn_illegal(c, machine, *state, trigger);
        return;
    }
    *state = m->to;
    ebb__count_move(c, (ebb__count)m->count);
}

static inline void ebb__in_step(ebb_http *x, ebb__in_trigger t) {
    ebb__step(x->conn, &x->in, ebb__in_moves, EBB__M_IN, t);
}
static inline void ebb__out_step(ebb_http *x, ebb__out_trigger t) {
    ebb__step(x->conn, &x->out, ebb__out_moves, EBB__M_OUT, t);
}
static inline void ebb__sent_step(ebb_http *x, ebb__sent_trigger t) {
    ebb__step(x->conn, &x->sent, ebb__sent_moves, EBB__M_SENT, t);
}
static inline void ebb__stream_step(ebb_http *x, ebb__stream_trigger t) {
    ebb__step(x->conn, &x->stream_state, ebb__stream_moves, EBB__M_STREAM, t);
}
static inline void ebb__work_step(ebb_http *x, ebb__work_trigger t) {
    ebb__step(x->conn, &x->work, ebb__work_moves, EBB__M_WORK, t);
}
static inline void ebb__place_step(ebb_http *x, ebb__place_trigger t) {
    ebb__step(x->conn, &x->place, ebb__place_moves, EBB__M_PLACE, t);
}
static inline void ebb__conn_step(ebb__conn *c, ebb__conn_trigger t) {
    ebb__step(c, &c->state, ebb__conn_moves, EBB__M_CONN, t);
}
static inline void ebb__reads_step(ebb__conn *c, ebb__reads_trigger t) {
    ebb__step(c, &c->reads, ebb__reads_moves, EBB__M_READS, t);
}
static inline void ebb__unit_step(ebb__conn *c, ebb__unit_trigger t) {
    ebb__step(c, &c->unit, ebb__unit_moves, EBB__M_UNIT, t);
}

/* The stream has ended: the protocol does not use the exchange any more. */
static inline bool ebb__exchange_is_gone(const ebb_http *x) {
    return x->stream_state >= EBB__STREAM_ENDED;
}
static inline bool ebb__exchange_is_lost(const ebb_http *x) {
    return x->stream_state == EBB__STREAM_LOST;
}
/* The protocol has the head, but not the end. */
static inline bool ebb__exchange_is_open(const ebb_http *x) {
    return x->out >= EBB__OUT_OPEN && x->out <= EBB__OUT_RESETS;
}
/* The body can't be completed. */
static inline bool ebb__exchange_is_cut(const ebb_http *x) {
    return x->out == EBB__OUT_CUT || x->out == EBB__OUT_RESETS;
}
/* It has a region, which is open. */
static inline bool ebb__exchange_has_region(const ebb_http *x) {
    return x->work == EBB__WORK_RUNNING || x->work == EBB__WORK_RETURNED;
}
/* A byte of the message was sent. */
static inline void ebb__exchange_sent(ebb_http *x) {
    if (x->sent == EBB__SENT_NOTHING) ebb__sent_step(x, EBB__SENT_A_BYTE);
}

/* ---- server only: server_exchange.c, conn_task.c, server.c ------------------------------------------------- */

/* A new exchange may begin. False: it must be refused (REFUSED_STREAM); the refusal was counted. */
bool ebb__server_admits(ebb__conn *c);
/* Another handler may run. False: the limit is reached. */
bool ebb__server_may_start(ebb__conn *c);
/* Routes an exchange with a complete head, and runs its handler. */
void ebb__serve(ebb_http *x);
/* The stream has ended: closes the region of its handler, or cancels it if the stream was lost. */
void ebb__serve_gone(ebb_http *x, ebb_cancel_kind kind, const char *message);
/* If the handler was abandoned, and its region is not cancelled: cancels it, so that the exchange is answered. */
void ebb__serve_abandoned(ebb_http *x);
/* Charges for a stream that the peer ended before its response was complete; `early`: before the first byte of the
 * response. ebb__server_frame charges for n frames that ask for nothing. False: the budget is used up, and the
 * connection must fail with ENHANCE_YOUR_CALM. */
bool ebb__server_reset(ebb__conn *c, bool early);
/* Charges the address for a stream that was lost with its connection. */
void ebb__server_lost(ebb__conn *c, bool early);
/* The connection ends because of what the peer did: new connections of its address are delayed. */
void ebb__server_delay_address(ebb__conn *c);
/* Delays the reads of a new connection if its address is delayed. */
void ebb__server_delay_reads(ebb__conn *c);
bool ebb__server_frame(ebb__conn *c, uint32_t n);
/* The budgets of the peer's address. */
ebb__rate_limit *ebb__server_rate_limit(ebb__conn *c);
/* The peer has stalled for too long: cancels the work with TIMEOUT and ends the stream. */
void ebb__conn_task_late(ebb_http *x, const char *message);
/* The peer can't send, because other bodies of the connection are unread. */
bool ebb__conn_task_is_choked(const ebb__conn *c);
/* Wakes the connection task at `due` at the latest: conn_task.c. */
void ebb__conn_task_at(ebb__conn *c, uint64_t due);
/* The last bytes were sent: the connection is closed a moment later. */
void ebb__conn_task_linger(ebb__conn *c);
/* Poll function of the connection task. */
ebb_status ebb__conn_task_poll(ebb_cx *cx, void *arg);
/* Wakes the connection task, because the connection has ended. */
void ebb__conn_task_wake(ebb__conn *c);

/* progress.c: called when bytes of an exchange move. All but the last two may change which exchange starts next. */
void ebb__pacing_ready(ebb_http *x);          /* bytes of the response are ready, or its end */
void ebb__pacing_flushed(ebb__conn *c);       /* those that are left wait for the peer */
void ebb__pacing_took(ebb_http *x, size_t n); /* the peer has taken n bytes */
void ebb__pacing_cut(ebb_http *x);            /* the bytes are not ready any more */
void ebb__pacing_reads(ebb_http *x);          /* a handler waits for the body */
void ebb__pacing_came(ebb_http *x, size_t n); /* n bytes of the body were received, or its end */
void ebb__pacing_end(ebb_http *x);            /* the exchange does not wait for its peer any more */
/* The exchange has waited for its peer for longer than the bytes that moved are worth. */
bool ebb__pacing_is_stalled(const ebb_http *x, uint64_t now);

/* address.c. A connection counts for its address from join to leave. EBB_ERR_NOMEM. */
ebb_status ebb__address_join(ebb__conn *c);
void ebb__address_leave(ebb__conn *c);
/* Another handler may start. False: the connection is woken when it may. */
bool ebb__address_has_room(ebb__conn *c);
/* Another request may wait for a place. */
bool ebb__address_may_queue(const ebb__conn *c);
void ebb__address_started(ebb_http *x); /* the handler is about to run */
void ebb__address_hold(ebb_http *x);    /* the exchange waits for its peer, or has made progress */
void ebb__address_let_go(ebb_http *x);  /* the exchange does not wait */
void ebb__address_late(ebb_http *x);    /* the exchange is ended because its peer stalled */
void ebb__address_left(ebb_http *x);    /* the handler has ended */
/* Ends at most `most` stalled exchanges, of any address. */
void ebb__address_evict_any(ebb_http_server *s, uint32_t most);

/* The connection has no exchange any more, or has one again. */
void ebb__server_idle(ebb__conn *c, bool idle);
/* Serves a connection. The acceptor calls it for each that it accepts. Closes `stream` if there is no memory. */
void ebb__server_add_connection(ebb_cx *acceptor, ebb_http_server *s, ebb_stream stream);
/* Frees a connection when its region has closed and libuv does not use it any more. */
void ebb__server_conn_free(ebb__conn *c);
/* The request has a header of the length of traceparent: takes it for the region, which was just opened. */
void ebb__exchange_take_trace(ebb_http *x);
/* Writes the line of an exchange to the access log. */
void ebb__access_line(const ebb_http *x);

/* ---- client only: client.c ---------------------------------------------------------------------------------- */

void ebb__client_ready(ebb__conn *c);    /* the protocol is known: it takes exchanges */
void ebb__client_room(ebb__conn *c);     /* it may take more exchanges than before */
void ebb__client_draining(ebb__conn *c); /* it takes no new exchanges */
void ebb__client_ended(ebb__conn *c,
                       ebb_status st);             /* it has ended with st; its exchanges have ended before */
void ebb__client_closed(ebb__conn *c);             /* libuv does not use it any more: it may be freed */
void ebb__client_answered(ebb_http *x);            /* the head of a response is complete */
void ebb__client_body(ebb_http *x);                /* bytes of the body were received, or its end */
void ebb__client_gone(ebb_http *x, ebb_status st); /* the stream has ended; x->conn is NULL */
/* A stream has ended with *st, and its user does not know yet. True: the call is sent again. False: *st may have
 * become EBB_ERR_HTTP_RETRY, because nothing of the request was sent. */
bool ebb__client_resends(ebb_http *x, ebb_status *st);
bool ebb__client_wants(const ebb_http *x); /* the call is not cancelled: its body may be read */
const ebb__bounds *ebb__client_bounds(const ebb__conn *c);

struct ebb_http_server {
    ebb_loop *loop;
    ebb__counters counters;  /* for whoever looks at the loop */
    ebb_allocator inner;     /* of the host */
    ebb_allocator allocator; /* `pool`, above an allocator that counts and fails past the limit */
    ebb__pool pool;
    uint64_t memory;      /* allocated for the server */
    uint64_t shared_base; /* what the runtime had when the server was made: see ebb__server_memory */
    ebb_http_limits limits;
    ebb__bounds bounds;
    ebb__tls_ctx *tls;
    ebb__routes *routes;
    ebb_region region;
    ebb_listener listener;
    ebb_address address;
    ebb_task acceptor; /* the task that accepts connections */
    ebb_future *accepting;
    ebb_future *closing; /* awaited by the acceptor while the server is full */
    ebb_sleeper nap;     /* of the acceptor, after a failed accept */
    bool napping;
    bool draining;    /* closed: the acceptor takes connections that were established before */
    uint64_t look_at; /* the acceptor waits for room, and a timer wakes it then */
    ebb_http_server_stats stats;
    void (*access)(void *ctx, const char *line, size_t n);
    void *ctx;
    uint64_t date_at; /* the second of `date` */
    char date[32];
    ebb__conn *conns;
    bool region_closed; /* the server is freed with its last connection */
    ebb__conn *idle_first, *idle_last;
    ebb_http *spare; /* exchanges for reuse */
    uint32_t spares;
    ebb__rate_limits rate_limits;
    ebb__address *addresses[EBB__RATE_LIMIT_SLOTS]; /* NULL: the address has no connection */
    ebb__address *address_first, *address_last;     /* list of all of these */
    uint32_t descriptors;                           /* the first descriptor of the reserve */
    uint32_t crowd;                                 /* the most exchanges since the last check */
    uint64_t trim_at;                               /* when the next check is; 0: none is due */
};
/* Bytes, as limits.memory_bytes counts them. */
uint64_t ebb__server_memory(const ebb_http_server *s);
/* The server has more memory than `eighths`/8 of its limit. */
bool ebb__server_is_short(const ebb_http_server *s, uint32_t eighths);
/* Frees the memory that is kept for reuse. */
void ebb__server_shed(ebb_http_server *s);
/* Counts one more exchange in progress. */
void ebb__server_crowd(ebb_http_server *s);
/* Charges a connection `bytes` for the memory of OpenSSL. False: that would exceed the limit. */
bool ebb__server_charge(ebb__conn *c, uint32_t bytes);
/* "Sun, 15 Nov 2026 18:00:00 GMT", of the current second. */
const char *ebb__server_date(ebb_http_server *s);

/* The error codes of RFC 9113 that we use. */
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
