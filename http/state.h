/* The state machines of exchanges and connections, as tables.
 *
 * A machine is a byte of its record, and a table with a row for each trigger: the states in which the trigger may
 * happen, the next state, and the counters that change with it. ebb__exchange_step and ebb__conn_step are the only
 * places that change such a byte. The machines of a record are orthogonal; what depends on two of them is a predicate
 * (ebb__exchange_is_free).
 *
 * A trigger that the state does not allow is a bug of this layer: an assert. Without asserts it changes nothing,
 * ebb_http_error says what was refused, and the connection ends with EBB_ERR_HTTP_STATE at its next flush.
 *
 * The tables are in the header so that the compiler reduces a step with a constant trigger to a test and a store. */
#ifndef EBB__HTTP_STATE_H
#define EBB__HTTP_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- exchanges -------------------------------------------------------------------------------------------- */

/* Receiving a message. */
typedef enum ebb__in {
    EBB__IN_HEAD = 0, /* the head is incomplete */
    EBB__IN_BODY,     /* more of the body may come */
    EBB__IN_ENDED,    /* everything was received, or nothing more will be: see in_status */
    EBB__IN_STATES
} ebb__in;

typedef enum ebb__in_trigger {
    EBB__IN_GETS_HEAD,
    EBB__IN_ENDS,
    EBB__IN_RENEWS, /* client: the call is sent again */
    EBB__IN_TRIGGERS
} ebb__in_trigger;

/* Writing a message: what user code has written. EBB__OUT_OPEN to EBB__OUT_RESETS: the protocol has the head, but not
 * the end. */
typedef enum ebb__out {
    EBB__OUT_NONE = 0, /* nothing to send yet */
    EBB__OUT_OPEN,     /* body bytes may follow */
    EBB__OUT_LAST,     /* the handler has returned: the body ends after the pending write */
    EBB__OUT_CUT,      /* the body is incomplete, and can't be completed */
    EBB__OUT_RESETS,   /* the same, and the stream is reset once the stage is empty */
    EBB__OUT_ENDED,    /* no more bytes will follow; some may still be unsent */
    EBB__OUT_STATES
} ebb__out;

typedef enum ebb__out_trigger {
    EBB__OUT_STARTS,  /* the head, with a body to be written */
    EBB__OUT_ENDS,    /* the end, with the head or after it */
    EBB__OUT_FAILS,   /* the protocol could not take the head */
    EBB__OUT_RETURNS, /* the handler has returned while a write is pending */
    EBB__OUT_IS_CUT,  /* a write was cancelled, or the handler has failed */
    EBB__OUT_RESETS_LATER,
    EBB__OUT_IS_STAGED, /* the stage is empty: the reset is due */
    EBB__OUT_TRIGGERS
} ebb__out_trigger;

/* Sending a message: what the protocol has sent of it. */
typedef enum ebb__sent {
    EBB__SENT_NOTHING = 0,
    EBB__SENT_SOME, /* a byte: a reset does not count as early any more */
    EBB__SENT_ALL,  /* the last byte */
    EBB__SENT_STATES
} ebb__sent;

typedef enum ebb__sent_trigger {
    EBB__SENT_A_BYTE,
    EBB__SENT_THE_LAST,
    EBB__SENT_RENEWS,
    EBB__SENT_TRIGGERS
} ebb__sent_trigger;

/* The stream. */
typedef enum ebb__stream_state {
    EBB__STREAM_OPEN = 0, /* or not opened yet */
    EBB__STREAM_RESET,    /* HTTP/2: we have reset it */
    EBB__STREAM_ENDED, /* both sides have sent everything. The protocol does not use the exchange any more */
    EBB__STREAM_LOST,  /* it ended before the exchange was complete. The same */
    EBB__STREAM_STATES
} ebb__stream_state;

typedef enum ebb__stream_trigger {
    EBB__STREAM_RESETS,
    EBB__STREAM_ENDS,
    EBB__STREAM_BREAKS,
    EBB__STREAM_RENEWS,
    EBB__STREAM_TRIGGERS
} ebb__stream_trigger;

/* The handler of a server's exchange. RUNNING and RETURNED: the exchange has a region. */
typedef enum ebb__work {
    EBB__WORK_NONE = 0, /* the head is incomplete, or a client's exchange */
    EBB__WORK_QUEUED,   /* in conn->starts, which frees it if its stream has ended */
    EBB__WORK_RUNNING,
    EBB__WORK_RETURNED, /* the handler has returned, its region is still open */
    EBB__WORK_CLOSED,   /* the region has closed */
    EBB__WORK_SKIPPED,  /* refused, or reset before it started: no handler runs */
    EBB__WORK_STATES
} ebb__work;

typedef enum ebb__work_trigger {
    EBB__WORK_QUEUES,
    EBB__WORK_STARTS, /* its region is open */
    EBB__WORK_IS_SKIPPED,
    EBB__WORK_RETURNS,
    EBB__WORK_CLOSES,
    EBB__WORK_TRIGGERS
} ebb__work_trigger;

/* The place of a server's exchange among those of its address: address.h. */
typedef enum ebb__place {
    EBB__PLACE_NONE = 0,
    EBB__PLACE_YOUNG,   /* in the list of exchanges that have just started */
    EBB__PLACE_WAITING, /* in the list of exchanges that wait for their peer */
    EBB__PLACE_LATE,    /* its peer stalled, and it was ended: it gets no place again */
    EBB__PLACE_LEAVING, /* the same, for others, and its handler still runs */
    EBB__PLACE_STATES
} ebb__place;

typedef enum ebb__place_trigger {
    EBB__PLACE_STARTS,
    EBB__PLACE_WAITS,
    EBB__PLACE_RESTS, /* it does not wait, or not for its peer */
    EBB__PLACE_TOO_LATE,
    EBB__PLACE_EVICTS,
    EBB__PLACE_IS_LEFT, /* the region of the handler has closed */
    EBB__PLACE_TRIGGERS
} ebb__place_trigger;

/* ---- connections ------------------------------------------------------------------------------------------ */

/* The life of a connection. */
typedef enum ebb__conn_state {
    EBB__CONN_MADE = 0, /* no raw stream yet */
    EBB__CONN_NEW,      /* protocol unknown: TLS handshake, or the first bytes are missing */
    EBB__CONN_OPEN,
    EBB__CONN_CLOSING,   /* server: takes requests that are on their way, for EBB__NOTICE_MS at most */
    EBB__CONN_DRAINING,  /* takes no new exchanges, and ends with its last one */
    EBB__CONN_ENDING,    /* its last bytes are being sent */
    EBB__CONN_NOTIFIED,  /* TLS: the same, and close_notify is the last of them */
    EBB__CONN_LINGERING, /* server: all is sent, and received bytes are dropped until linger_until */
    EBB__CONN_ENDED,     /* the raw stream is closed */
    EBB__CONN_RELEASED,  /* libuv does not use it any more */
    EBB__CONN_STATES
} ebb__conn_state;

typedef enum ebb__conn_trigger {
    EBB__CONN_ATTACHES, /* it has a raw stream */
    EBB__CONN_OPENS,    /* the protocol is known */
    EBB__CONN_CLOSES,
    EBB__CONN_DRAINS,
    EBB__CONN_ENDS,
    EBB__CONN_NOTIFIES,
    EBB__CONN_LINGERS,
    EBB__CONN_DROPS,
    EBB__CONN_IS_RELEASED,
    EBB__CONN_TRIGGERS
} ebb__conn_trigger;

/* Whether the connection is read. */
typedef enum ebb__reads {
    EBB__READS_FREELY = 0, /* as the protocol wants */
    EBB__READS_HELD,       /* not now: too many closed streams still have a handler */
    EBB__READS_DELAYED,    /* not before read_at: its address is delayed */
    EBB__READS_NOTIFIED,   /* TLS: the peer has sent close_notify, and the end was reported */
    EBB__READS_BROKEN,     /* the socket failed, or TLS was truncated: not the end of a message */
    EBB__READS_STATES
} ebb__reads;

typedef enum ebb__reads_trigger {
    EBB__READS_ARE_HELD,
    EBB__READS_ARE_DELAYED,
    EBB__READS_GO_ON,
    EBB__READS_END,
    EBB__READS_BREAK,
    EBB__READS_TRIGGERS
} ebb__reads_trigger;

/* The unit of work of a server's connection: its region and the connection task. */
typedef enum ebb__unit {
    EBB__UNIT_NONE = 0, /* no region yet, or a client's connection */
    EBB__UNIT_RUNS,
    EBB__UNIT_CANCELLED, /* waits for its exchanges until stop_at */
    EBB__UNIT_STOPPING,  /* does not wait for them any longer */
    EBB__UNIT_CLOSED,    /* the region has closed */
    EBB__UNIT_STATES
} ebb__unit;

typedef enum ebb__unit_trigger {
    EBB__UNIT_OPENS,
    EBB__UNIT_IS_CANCELLED,
    EBB__UNIT_STOPS,
    EBB__UNIT_CLOSES,
    EBB__UNIT_TRIGGERS
} ebb__unit_trigger;

/* ---- the tables ------------------------------------------------------------------------------------------- */

typedef enum ebb__machine_id {
    EBB__M_IN,
    EBB__M_OUT,
    EBB__M_SENT,
    EBB__M_STREAM,
    EBB__M_WORK,
    EBB__M_PLACE,
    EBB__M_CONN,
    EBB__M_READS,
    EBB__M_UNIT,
    EBB__MACHINES
} ebb__machine_id;

/* Counters that change with a transition. */
typedef enum ebb__count {
    EBB__COUNT_NONE = 0,
    EBB__COUNT_QUEUED,  /* one more exchange of the address is queued */
    EBB__COUNT_STARTED, /* one less, and one more of the connection has a handler */
    EBB__COUNT_SKIPPED, /* one less */
    EBB__COUNT_CLOSED   /* one open stream of the connection less */
} ebb__count;

/* One row of a table. */
typedef struct ebb__move {
    uint16_t from; /* a bit for each state */
    uint8_t to;
    uint8_t count; /* ebb__count */
} ebb__move;

#define EBB__IN(state)     (1u << EBB__IN_##state)
#define EBB__OUT(state)    (1u << EBB__OUT_##state)
#define EBB__SENT(state)   (1u << EBB__SENT_##state)
#define EBB__STREAM(state) (1u << EBB__STREAM_##state)
#define EBB__WORK(state)   (1u << EBB__WORK_##state)
#define EBB__PLACE(state)  (1u << EBB__PLACE_##state)
#define EBB__CONN(state)   (1u << EBB__CONN_##state)
#define EBB__READS(state)  (1u << EBB__READS_##state)
#define EBB__UNIT(state)   (1u << EBB__UNIT_##state)

static const ebb__move ebb__in_moves[EBB__IN_TRIGGERS] = {
    [EBB__IN_GETS_HEAD] = {EBB__IN(HEAD), EBB__IN_BODY, 0},
    [EBB__IN_ENDS] = {EBB__IN(HEAD) | EBB__IN(BODY), EBB__IN_ENDED, 0},
    [EBB__IN_RENEWS] = {EBB__IN(HEAD) | EBB__IN(BODY) | EBB__IN(ENDED), EBB__IN_HEAD, 0},
};

static const ebb__move ebb__out_moves[EBB__OUT_TRIGGERS] = {
    [EBB__OUT_STARTS] = {EBB__OUT(NONE), EBB__OUT_OPEN, 0},
    [EBB__OUT_ENDS] = {EBB__OUT(NONE) | EBB__OUT(OPEN) | EBB__OUT(LAST), EBB__OUT_ENDED, 0},
    [EBB__OUT_FAILS] = {EBB__OUT(OPEN) | EBB__OUT(ENDED), EBB__OUT_NONE, 0},
    [EBB__OUT_RETURNS] = {EBB__OUT(OPEN), EBB__OUT_LAST, 0},
    [EBB__OUT_IS_CUT] = {EBB__OUT(OPEN) | EBB__OUT(LAST) | EBB__OUT(CUT), EBB__OUT_CUT, 0},
    [EBB__OUT_RESETS_LATER] = {EBB__OUT(OPEN) | EBB__OUT(LAST) | EBB__OUT(CUT) | EBB__OUT(RESETS),
                               EBB__OUT_RESETS, 0},
    [EBB__OUT_IS_STAGED] = {EBB__OUT(RESETS), EBB__OUT_CUT, 0},
};

static const ebb__move ebb__sent_moves[EBB__SENT_TRIGGERS] = {
    [EBB__SENT_A_BYTE] = {EBB__SENT(NOTHING), EBB__SENT_SOME, 0},
    [EBB__SENT_THE_LAST] = {EBB__SENT(SOME) | EBB__SENT(ALL), EBB__SENT_ALL, 0},
    [EBB__SENT_RENEWS] = {EBB__SENT(NOTHING) | EBB__SENT(SOME) | EBB__SENT(ALL), EBB__SENT_NOTHING, 0},
};

static const ebb__move ebb__stream_moves[EBB__STREAM_TRIGGERS] = {
    [EBB__STREAM_RESETS] = {EBB__STREAM(OPEN) | EBB__STREAM(RESET), EBB__STREAM_RESET, 0},
    [EBB__STREAM_ENDS] = {EBB__STREAM(OPEN) | EBB__STREAM(RESET), EBB__STREAM_ENDED, EBB__COUNT_CLOSED},
    [EBB__STREAM_BREAKS] = {EBB__STREAM(OPEN) | EBB__STREAM(RESET), EBB__STREAM_LOST, EBB__COUNT_CLOSED},
    [EBB__STREAM_RENEWS] = {EBB__STREAM(OPEN) | EBB__STREAM(RESET), EBB__STREAM_OPEN, 0},
};

static const ebb__move ebb__work_moves[EBB__WORK_TRIGGERS] = {
    [EBB__WORK_QUEUES] = {EBB__WORK(NONE), EBB__WORK_QUEUED, EBB__COUNT_QUEUED},
    [EBB__WORK_STARTS] = {EBB__WORK(QUEUED), EBB__WORK_RUNNING, EBB__COUNT_STARTED},
    [EBB__WORK_IS_SKIPPED] = {EBB__WORK(QUEUED), EBB__WORK_SKIPPED, EBB__COUNT_SKIPPED},
    [EBB__WORK_RETURNS] = {EBB__WORK(RUNNING), EBB__WORK_RETURNED, 0},
    [EBB__WORK_CLOSES] = {EBB__WORK(RUNNING) | EBB__WORK(RETURNED), EBB__WORK_CLOSED, 0},
};

static const ebb__move ebb__place_moves[EBB__PLACE_TRIGGERS] = {
    [EBB__PLACE_STARTS] = {EBB__PLACE(NONE), EBB__PLACE_YOUNG, 0},
    [EBB__PLACE_WAITS] = {EBB__PLACE(NONE) | EBB__PLACE(YOUNG) | EBB__PLACE(WAITING), EBB__PLACE_WAITING, 0},
    [EBB__PLACE_RESTS] = {EBB__PLACE(YOUNG) | EBB__PLACE(WAITING), EBB__PLACE_NONE, 0},
    [EBB__PLACE_TOO_LATE] = {EBB__PLACE(NONE) | EBB__PLACE(YOUNG) | EBB__PLACE(WAITING), EBB__PLACE_LATE, 0},
    [EBB__PLACE_EVICTS] = {EBB__PLACE(WAITING), EBB__PLACE_LEAVING, 0},
    [EBB__PLACE_IS_LEFT] = {EBB__PLACE(LEAVING), EBB__PLACE_LATE, 0},
};

static const ebb__move ebb__conn_moves[EBB__CONN_TRIGGERS] = {
    [EBB__CONN_ATTACHES] = {EBB__CONN(MADE), EBB__CONN_NEW, 0},
    [EBB__CONN_OPENS] = {EBB__CONN(NEW), EBB__CONN_OPEN, 0},
    [EBB__CONN_CLOSES] = {EBB__CONN(NEW) | EBB__CONN(OPEN), EBB__CONN_CLOSING, 0},
    [EBB__CONN_DRAINS] = {EBB__CONN(NEW) | EBB__CONN(OPEN) | EBB__CONN(CLOSING), EBB__CONN_DRAINING, 0},
    [EBB__CONN_ENDS] = {EBB__CONN(NEW) | EBB__CONN(OPEN) | EBB__CONN(CLOSING) | EBB__CONN(DRAINING),
                        EBB__CONN_ENDING, 0},
    [EBB__CONN_NOTIFIES] = {EBB__CONN(ENDING), EBB__CONN_NOTIFIED, 0},
    [EBB__CONN_LINGERS] = {EBB__CONN(ENDING) | EBB__CONN(NOTIFIED), EBB__CONN_LINGERING, 0},
    [EBB__CONN_DROPS] = {EBB__CONN(NEW) | EBB__CONN(OPEN) | EBB__CONN(CLOSING) | EBB__CONN(DRAINING) |
                             EBB__CONN(ENDING) | EBB__CONN(NOTIFIED) | EBB__CONN(LINGERING),
                         EBB__CONN_ENDED, 0},
    [EBB__CONN_IS_RELEASED] = {EBB__CONN(ENDED), EBB__CONN_RELEASED, 0},
};

static const ebb__move ebb__reads_moves[EBB__READS_TRIGGERS] = {
    [EBB__READS_ARE_HELD] = {EBB__READS(FREELY), EBB__READS_HELD, 0},
    [EBB__READS_ARE_DELAYED] = {EBB__READS(FREELY), EBB__READS_DELAYED, 0},
    [EBB__READS_GO_ON] = {EBB__READS(HELD) | EBB__READS(DELAYED), EBB__READS_FREELY, 0},
    [EBB__READS_END] = {EBB__READS(FREELY) | EBB__READS(NOTIFIED), EBB__READS_NOTIFIED, 0},
    [EBB__READS_BREAK] = {(1u << EBB__READS_STATES) - 1, EBB__READS_BROKEN, 0},
};

static const ebb__move ebb__unit_moves[EBB__UNIT_TRIGGERS] = {
    [EBB__UNIT_OPENS] = {EBB__UNIT(NONE), EBB__UNIT_RUNS, 0},
    [EBB__UNIT_IS_CANCELLED] = {EBB__UNIT(RUNS), EBB__UNIT_CANCELLED, 0},
    [EBB__UNIT_STOPS] = {EBB__UNIT(CANCELLED), EBB__UNIT_STOPPING, 0},
    [EBB__UNIT_CLOSES] = {EBB__UNIT(RUNS) | EBB__UNIT(CANCELLED) | EBB__UNIT(STOPPING), EBB__UNIT_CLOSED, 0},
};

static inline bool ebb__move_allows(const ebb__move *m, unsigned state) {
    return m->from >> state & 1;
}

/* The same tables, by machine, with the names of what is in them. */
typedef struct ebb__machine {
    const char *name;
    const ebb__move *moves;
    const char *const *states, *const *triggers;
    uint8_t states_n, triggers_n;
} ebb__machine;
extern const ebb__machine ebb__machines[EBB__MACHINES];

#endif
