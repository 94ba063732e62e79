/* durable/postgres.h - the PostgreSQL provider inside: a store, its lanes, and what its functions share.
 *
 * Who has what:
 *  - A *store* has three connections: one that writes, one that reads, one that listens. All is the loop's thread's.
 *  - A *lane* is a connection with calls that wait for it. What waits while a batch is on its way is the next batch: one
 *    transaction, one round trip, one statement a call but for turns that stay within their instance, which share one. A call
 *    whose own statement fails leaves the batch, and the others are sent again without it. If a shared statement or the
 *    commit fails, the batch is halved until the call is found.
 *  - A *claim* are the tokens that a fetch has been given in advance. If its answer is lost, the store gives them back.
 *  - *Hints* are sent to other stores by NOTIFY, in a transaction of its own before the next batch.
 *
 * Invariants: a call is in one queue, or in one batch, or done. `n` of a lane is 0 if nothing is on its way. */
#ifndef EBB_DURABLE_POSTGRES_H
#define EBB_DURABLE_POSTGRES_H

#include "durable/postgres_conn.h"
#include "durable/postgres_sql.h"
#include "loop/handle.h"

enum {
    EBB__POSTGRES_BATCH = 256,           /* calls of a batch */
    EBB__POSTGRES_BATCH_BYTES = 1 << 20, /* of them */
    EBB__POSTGRES_FLOORS = 16,
    EBB__POSTGRES_CLAIMS = 1024, /* rows that a fetch claims at most */
    EBB__POSTGRES_RETRIES = 5    /* of a call after a deadlock or a serialization failure */
};

typedef struct ebb__postgres ebb__postgres;
typedef struct ebb__postgres_lane ebb__postgres_lane;

typedef struct ebb__postgres_claim {
    struct ebb__postgres_claim *next;
    uint64_t node;
    ebb_provider_op op; /* EBB_PROVIDER_FETCH_TURNS or _WORK */
    uint32_t n;
    ebb_provider_token token[];
} ebb__postgres_claim;

/* A call on its way. */
typedef struct ebb__postgres_member {
    ebb_provider_call *call;
    ebb__postgres_claim *claim; /* NULL: none */
    ebb_status status;
    uint32_t at;     /* its place in the queue */
    uint32_t shares; /* members whose statement this is: this one and those behind it */
    uint32_t
        floors; /* of a fetch that looks everywhere: `floors` of the store when it was sent; 0: it does not */
    bool again; /* its statement was not run, or is to be run again */
    char text[200];
    const char *hints; /* of the call; NULL: none */
} ebb__postgres_member;

/* Where claims begin to look in an index. Rows that were claimed leave their entries there as long as an old transaction is
 * open; what is below the floor is only such entries, as far as the last look from the beginning has shown. Whoever makes
 * an old row visible again says so by a hint, which resets the floors. A look from the beginning comes every 5 s at the
 * latest, and always without LISTEN. */
typedef struct ebb__postgres_floor {
    uint64_t id;       /* of the node, or of the queues; 0: free */
    uint64_t at, seen; /* seen: CLOCK_BOOTTIME of the last look */
} ebb__postgres_floor;

typedef enum ebb__postgres_setup {
    EBB__SETUP_NONE = 0,
    EBB__SETUP_CHECK = 1, /* reads the versions of the schema */
    EBB__SETUP_MAKE = 2,  /* makes the schema, and checks again */
    EBB__SETUP_LISTEN = 3
} ebb__postgres_setup;

struct ebb__postgres_lane {
    ebb__postgres *store;
    ebb__postgres_conn conn;
    ebb__call_queue queue;
    ebb__postgres_member *batch; /* EBB__POSTGRES_BATCH; NULL: the lane that listens */
    uint32_t n, at;              /* members; those whose result has come */
    uint32_t statements;         /* of the batch */
    uint32_t skip;     /* results before those of the batch: of hints and claims that are given back */
    ebb_status before; /* of these */
    bool head;         /* the result of the batch's durability is to come */
    uint32_t most;     /* members of the next batch: less after a commit that has failed */
    bool ready, sending, writes;
    bool broken;       /* the batch is rolled back */
    ebb_status commit; /* EBB_OK; why the commit failed */
    char text[200];    /* of that */
    ebb__postgres_setup setup;
    uint32_t setup_left; /* results of the setup that are to come */
    uint64_t schema, min_reader;
    ebb_status failed; /* of the setup */
};

struct ebb__postgres {
    ebb_loop *loop;
    const ebb_provider_host *host;
    ebb_allocator allocator;
    ebb__arena arena; /* of the URLs */
    ebb__store_url url, listen_url;
    const ebb__postgres_schema *schema; /* that this library knows */
    const char *synchronous; /* of the URL; NULL: at least the server's own default, and never off */
    bool read_only, no_create;
    ebb__postgres_lane writer, reader, listener;
    ebb__postgres_args args;
    uv_timer_t kick; /* sends what a turn of the loop has queued */
    bool kicked;
    uint32_t open;                   /* connections and timers that are not released */
    ebb__handle *op;                 /* in the store's region */
    ebb_provider_open_call *opening; /* NULL: it is open */
    ebb_provider_call *closing;      /* to be done when all is released; after a failed open that call */
    ebb_status closing_status;
    bool closed;
    char text[512];                 /* of the closing, or why calls are refused */
    ebb_status refused;             /* EBB_ERR_SCHEMA: the schema became too new, and only claims are ended */
    ebb__postgres_claim *lost;      /* claims whose answer was lost */
    ebb__postgres_claim *returning; /* of these, on their way */
    char *notify;                   /* hints for other stores, as lines */
    size_t notify_n, notify_room;
    bool notify_lost; /* there were too many */
    ebb__postgres_floor floor[EBB__POSTGRES_FLOORS];
    uint32_t floors; /* how often they were reset, from 1 on */
    char sender[20]; /* this store, in notifications */
    uint64_t seen;   /* the highest time of the store that was given */
    bool was_listening;
    ebb_provider_stats stats;
};

/* ---- calls ---------------------------------------------------------------------------------------------------- */

/* How a call is sent and answered. `decode` fills in the answer, and status and text of the member. */
typedef struct ebb__postgres_op {
    const char *name;  /* of the function in the database */
    bool writes;       /* goes by the lane that writes */
    int columns, rows; /* of its answer: exactly, at least */
    void (*encode)(ebb__postgres *s, ebb__postgres_member *m, ebb__postgres_args *a);
    void (*decode)(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r);
} ebb__postgres_op;
extern const ebb__postgres_op ebb__postgres_node_ops[], ebb__postgres_turn_ops[], ebb__postgres_work_ops[],
    ebb__postgres_client_ops[], ebb__postgres_operator_ops[]; /* by op; ops of other files are zero */
const ebb__postgres_op *ebb__postgres_op_of(ebb_provider_op op);

/* The first two columns of what writes: a code and hints. Sets status and text. True: EBB_OK. */
bool ebb__postgres_outcome(ebb__postgres *s, ebb__postgres_member *m, const PGresult *r);
void ebb__postgres_say(ebb__postgres_member *m, ebb_status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ebb__postgres_nomem(ebb__postgres_member *m);
/* Tokens for a fetch, as a parameter. */
void ebb__postgres_claim_new(ebb__postgres *s, ebb__postgres_member *m, ebb__postgres_args *a, uint64_t node,
                             uint32_t most);
/* Time and delay of a fetch, from its first three columns. */
void ebb__postgres_times(ebb__postgres *s, const PGresult *r, uint64_t *now, uint64_t *again, bool *suspects);
/* The floor of a fetch as a parameter, and what a look from the beginning has found: column `column` of the first row. */
void ebb__postgres_put_floor(ebb__postgres *s, ebb__postgres_member *m, ebb__postgres_args *a, uint64_t id,
                             bool any);
void ebb__postgres_get_floor(ebb__postgres *s, const ebb__postgres_member *m, const PGresult *r, int column,
                             uint64_t id);
void ebb__postgres_floors_reset(ebb__postgres *s);
/* How calls of a batch share a statement: turns that touch their own instance alone and lose no work, and ends of work. */
typedef struct ebb__postgres_shared {
    const char *name;
    int columns, place; /* place: in a batch, the lower first */
    /* Of n members. `lock`: the instances of the whole batch, if it is the first that is shared. */
    void (*encode)(const ebb__postgres_member *m, uint32_t n, const uint64_t *lock, size_t lock_n,
                   ebb__postgres_args *a);
    void (*decode)(ebb__postgres *s, ebb__postgres_member *m, uint32_t n, const PGresult *r);
    bool (*together)(const ebb_provider_call *a, const ebb_provider_call *b);
} ebb__postgres_shared;
const ebb__postgres_shared *ebb__postgres_shared_of(const ebb_provider_call *c); /* NULL: it has its own */
void ebb__postgres_say_gone(ebb__postgres_member *m);                            /* of an ack of work */
void ebb__postgres_say_fenced(ebb__postgres_member *m);                          /* of an ack of a turn */
void ebb__postgres_say_lacking(ebb__postgres_member *m, uint64_t at);            /* of one that ends work */
void ebb__postgres_tokens(ebb__postgres_args *a, const ebb_provider_token *tokens, size_t n);
void ebb__postgres_keys(ebb__postgres_args *a, const uint64_t *keys, size_t n); /* keys NULL: NULL */
void ebb__postgres_put_work(ebb__postgres_args *a, const ebb_provider_work *work, size_t n);
void ebb__postgres_put_timers(ebb__postgres_args *a, const ebb_provider_timer *timers, size_t n);
void ebb__postgres_put_outgoing(ebb__postgres_args *a, const ebb_provider_outgoing *out, size_t n);
void ebb__postgres_put_values(ebb__postgres_args *a, const ebb_provider_value *values, size_t n);

/* ---- lanes ---------------------------------------------------------------------------------------------------- */

bool ebb__postgres_lane_init(ebb__postgres *s, ebb__postgres_lane *l, const ebb__store_url *url);
void ebb__postgres_lane_fini(ebb__postgres_lane *l);
void ebb__postgres_lane_kick(ebb__postgres_lane *l);
/* Sends what others are still to be told. Its connection is closed next. */
void ebb__postgres_lane_farewell(ebb__postgres_lane *l);
/* Ends all calls of the lane. */
void ebb__postgres_lane_fail(ebb__postgres_lane *l, ebb_status st, const char *text);
/* Ends the calls that wait, but for those that end claims. */
void ebb__postgres_lane_refuse(ebb__postgres_lane *l, ebb_status st, const char *text);
/* What a statement's failure means. Retryable: EBB_ERR_UNAVAILABLE. */
ebb_status ebb__postgres_status_of(const char *sqlstate);

/* Of $1, for this transaction; told to ebb_v1.clock, which would not have it off. */
#define EBB__POSTGRES_SET_DURABILITY                                                                         \
    "SELECT set_config('synchronous_commit', $1::text, true), set_config('ebb.synchronous', $1::text, true)"

/* ---- schema --------------------------------------------------------------------------------------------------- */

void ebb__postgres_setup_begin(ebb__postgres_lane *l);
void ebb__postgres_setup_result(ebb__postgres_lane *l, const PGresult *r);

/* ---- hints ---------------------------------------------------------------------------------------------------- */

/* Hints of a commit: told here, and kept for the next notification. */
void ebb__postgres_hint(ebb__postgres *s, const char *lines);
/* Sends what is kept; returns the number of statements. */
uint32_t ebb__postgres_notify(ebb__postgres *s, PGconn *pg);
void ebb__postgres_heard(ebb__postgres *s, const PGnotify *n);
void ebb__postgres_hint_lost(ebb__postgres *s); /* to this store alone */

/* ---- the store ------------------------------------------------------------------------------------------------ */

/* An open by a library that knows other versions of the schema: ebb_provider's `open` of tests. */
void ebb__postgres_open(ebb_provider_open_call *c, const ebb__postgres_schema *schema);
/* Leaves and abandons: also a library that is too old for the schema gives back what it has. */
bool ebb__postgres_ends_claims(ebb_provider_op op);
void ebb__postgres_opened(ebb__postgres *s); /* the schema is checked */
/* A connection could not be made, or its setup has failed, before the store was open. */
void ebb__postgres_open_failed(ebb__postgres *s, ebb_status st, const char *text);
void ebb__postgres_released(ebb__postgres *s); /* one of `open` */
void ebb__postgres_kick(ebb__postgres *s);

#endif
