/* ebb/provider.h - what a store of durable orchestrations has to do: for those who write one.
 *
 * A *provider* is one ebb_provider: a struct of functions. Each function gets a *call*: a record with what is asked and
 * with room for what is answered. The function returns at once. The provider answers later, or within the function, by
 * one ebb_provider_done for each call, on any thread. Why records and not futures: a call has a `next`, so a provider
 * queues it without memory, hands it to a thread, or gathers hundreds of them to one commit or one round trip; its
 * answer is written in place; and the one layer above makes the futures, counts what is queued, repeats what failed for
 * a time, and lets tests fail the n-th call of any provider. The rules:
 *
 *  - *Ownership*: a call and all that it points to belong to the provider from the function until ebb_provider_done. The
 *    bytes of an answer are allocated by ebb_provider_alloc, on the thread that has the call at that time. Nothing that
 *    a call points to is the provider's after done: copy what has to stay.
 *  - *Threads*: a provider with threads of its own needs a runtime whose allocator is safe on all of them, as that of
 *    peers is (ebb/future.h). The functions are called on the thread of the loop that opened the store, never within each other. They
 *    may not block: no disk, no lock that is held across a write, no name lookup. `close` comes after the last done.
 *  - *Cancel*: a call can't be cancelled. A reader that gives up leaves the call to its end. So each call ends within a
 *    time that the provider bounds, also if its database is away: with EBB_ERR_UNAVAILABLE.
 *  - *Order*: two calls have an order only if the second came after the done of the first. Calls in between may be
 *    done together, in one transaction, but each succeeds or fails alone: one that fails leaves the others as they are.
 *  - *Durable*: a call that writes is done when its effects would survive what the store promises to survive (for SQLite
 *    with EBB_DURABILITY_FULL, a power cut), and are visible to every later call of every store on the same data. It has
 *    all its effects or none.
 *  - *Errors*: see ebb_provider_class. A text names the thing, the value and the limit; no password, no payload.
 *  - *Time*: `now`, `due`, `until` are in the store's clock: ns since 1970, never going back, also if somebody sets the
 *    clock of a machine. Leases are checked in it.
 *  - *Opaque*: bodies, inputs and outputs are bytes. The provider looks into none. Ids and names are compared byte by
 *    byte. Statuses and states are stored by name: "EBB_FAILED", "Running".
 *  - *No status decides a cancel*: the deletion of a row is the only signal. No call of an activity reads its instance's
 *    state, but for the ack's rule on ended instances.
 *
 * What is stored, and what holds of it:
 *
 *   instance   id (unique), key (a number that is never used again), name, version, current execution, state
 *   turn       (instance, execution, turn) -> time, ack id, body. *Safety*: this key is unique and is inserted once.
 *              Leases give liveness alone: two owners may waste a turn, but never commit two.
 *   message    (instance, seq): an inbox. seq rises in the order of commits as far as one sender can tell.
 *   timer      (instance, execution, step) -> due. A timer that is due is fetched as a message.
 *   work       (instance, execution, activity): a row is an activity that should run. A *claimed* row has a token of 128
 *              random bits, a node and a time until when.
 *   value      (instance, key)
 *   dedup      (instance, execution, dedup id) of signals; goes with the execution
 *   node       a worker: id, epoch, until. An epoch that was replaced can renew and claim nothing
 *
 * `ebb provider test URL` and ebb_provider_test hold a provider to all of this; docs/provider.md is a guide. */
#ifndef EBB_PROVIDER_H
#define EBB_PROVIDER_H

#include <ebb/durable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calls ------------------------------------------------------------------------------------------------- */

/* Which function a call is for, for those who queue calls of all kinds. The numbers are those of traces. */
typedef enum ebb_provider_op {
    EBB_PROVIDER_OPEN = 1,
    EBB_PROVIDER_CLOSE = 2,
    EBB_PROVIDER_JOIN = 3,
    EBB_PROVIDER_RENEW = 4,
    EBB_PROVIDER_LEAVE = 5,
    EBB_PROVIDER_FETCH_TURNS = 6,
    EBB_PROVIDER_ACK_TURN = 7,
    EBB_PROVIDER_ABANDON_TURNS = 8,
    EBB_PROVIDER_FETCH_WORK = 9,
    EBB_PROVIDER_ACK_WORK = 10,
    EBB_PROVIDER_ABANDON_WORK = 11,
    EBB_PROVIDER_START = 12,
    EBB_PROVIDER_SEND = 13,
    EBB_PROVIDER_HISTORY = 14,
    EBB_PROVIDER_INSTANCE = 15,
    EBB_PROVIDER_LIST = 16,
    EBB_PROVIDER_VALUE = 17,
    EBB_PROVIDER_OUTSTANDING = 18,
    EBB_PROVIDER_MARK = 19,
    EBB_PROVIDER_RESET = 20,
    EBB_PROVIDER_REMOVE = 21,
    EBB_PROVIDER_OPS = 22
} ebb_provider_op;

/* What a failed call means for its caller:
 *   OK         done; also: done before by the same ack id
 *   RETRYABLE  it may succeed later, and perhaps it has been done already: lost connection, busy, full disk, deadlock,
 *              failover. The caller repeats acks with the same ack id
 *   PERMANENT  it fails again whenever it is repeated: no such row, fenced, a constraint, a damaged file */
typedef enum ebb_provider_class {
    EBB_PROVIDER_OK = 0,
    EBB_PROVIDER_RETRYABLE = 1,
    EBB_PROVIDER_PERMANENT = 2
} ebb_provider_class;
/* The class of a status: EBB_ERR_UNAVAILABLE, EBB_ERR_NOMEM and EBB_ERR_BUSY are retryable; EBB_OK is OK. */
ebb_provider_class ebb_provider_class_of(ebb_status st);

/* The first field of each call. */
typedef struct ebb_provider_call {
    struct ebb_provider_call *next; /* the provider's until done: for a queue */
    void *mine;                     /* the provider's until done; NULL at first */
    ebb_provider_op op;
    uint32_t attempt;       /* from 1 on: how often the layer above has asked this */
    uint64_t bytes;         /* of what it points to: for the size of a batch */
    ebb_status status;      /* after done */
    const char *text;       /* after done: of a failure; else "" */
    struct ebb__call *host; /* of the layer above */
} ebb_provider_call;

/* Allocates n bytes for the answer of a call. They are freed with it. NULL: no memory; fail the call with EBB_ERR_NOMEM
 * and commit nothing that is not committed. */
void *ebb_provider_alloc(ebb_provider_call *c, size_t n);
/* The same with a copy of n bytes and a 0 behind them. */
void *ebb_provider_copy(ebb_provider_call *c, const void *from, size_t n);
/* Ends a call, on any thread. The call is not the provider's any more. `text` (may be NULL) is cut at 511 bytes. */
void ebb_provider_done(ebb_provider_call *c, ebb_status st, const char *text);

/* ---- the host's side ------------------------------------------------------------------------------------------ */

/* Something that has happened in the store; workers look sooner than they would have. A hint may be lost, doubled or
 * wrong: it is never needed for safety. But a provider says after each commit what it has made, in all stores on the
 * same data that it can reach, or workers wait for their next look (see `again`). */
typedef enum ebb_provider_hint_kind {
    EBB_PROVIDER_HINT_TURNS = 1, /* an instance has messages */
    EBB_PROVIDER_HINT_WORK = 2,  /* there is work in `queue` ("": some queue) */
    EBB_PROVIDER_HINT_GONE =
        3, /* the work (key, execution, activity) was deleted; `cause` is why, NONE: not known */
    EBB_PROVIDER_HINT_ENDED = 4, /* the instance `key` has ended or was suspended */
    EBB_PROVIDER_HINT_LOST =
        5 /* hints were lost since the last: look at everything. After a reconnect, for one */
} ebb_provider_hint_kind;
typedef struct ebb_provider_hint {
    ebb_provider_hint_kind kind;
    ebb_cancel_kind cause;
    uint64_t key, execution, activity;
    const char *queue;
    uint64_t committed; /* of GONE: when, by the boot clock of the host; 0: not known here */
} ebb_provider_hint;

/* What a provider is given by the layer above; valid from open to the end of close. */
typedef struct ebb_provider_host {
    ebb_allocator allocator; /* the runtime's: safe on all threads if the provider has threads of its own */
    ebb_runtime *runtime;
    ebb_region region; /* the store's: tasks, handles and futures of the provider live there */
    /* Delivers a hint, on any thread. Copies it. */
    void (*hint)(void *ctx, const ebb_provider_hint *h);
    /* The clock of this machine: ns since 1970; and one that only counts on, also in sleep (CLOCK_BOOTTIME). In a lab
     * they are virtual. Any thread. */
    uint64_t (*wall)(void *ctx);
    uint64_t (*boot)(void *ctx);
    /* n random bytes, of the system or, in a lab, of the chooser. The thread of the loop. */
    void (*random)(void *ctx, void *into, size_t n);
    void *ctx; /* the first argument of these */
} ebb_provider_host;

typedef struct ebb_provider_open_call {
    ebb_provider_call call;
    const ebb_provider_host *host;
    const ebb_store_opts *opts; /* of this library's size; `url` is not NULL */
    void *self; /* answer: the first argument of all other functions. After a failure: unused */
} ebb_provider_open_call;
typedef struct ebb_provider_close_call {
    ebb_provider_call call;
} ebb_provider_close_call;

/* ---- parts of calls ---------------------------------------------------------------------------------------------- */

/* The right to what was claimed: 128 random bits, never all 0. One that was guessed, used up or never given is gone. */
typedef struct ebb_provider_token {
    uint64_t hi, lo;
} ebb_provider_token;

/* A worker's membership. */
typedef struct ebb_provider_node {
    uint64_t id;    /* of the worker, for as long as it is open */
    uint64_t epoch; /* rises whenever the id was given up or taken over */
} ebb_provider_node;

/* What a message is. The number and the name stand in stores. */
typedef enum ebb_provider_message_kind {
    EBB_PROVIDER_MESSAGE_START = 1,    /* of an execution. body: the start event, or that of a reset */
    EBB_PROVIDER_MESSAGE_ACTIVITY = 2, /* the activity `step` has ended; body: how */
    EBB_PROVIDER_MESSAGE_TIMER = 3,    /* the timer `step` is due. No body */
    EBB_PROVIDER_MESSAGE_SIGNAL = 4,   /* body: name, dedup id and body */
    EBB_PROVIDER_MESSAGE_CHILD = 5,    /* the child of `step` has ended; body: how */
    EBB_PROVIDER_MESSAGE_CANCEL = 6    /* body: reason */
} ebb_provider_message_kind;

/* Where a message is, for its ack: as it was fetched. */
typedef struct ebb_provider_message_key {
    uint8_t
        kind; /* ebb_provider_message_kind; EBB_PROVIDER_MESSAGE_TIMER: a row of the timers, with `seq` its step */
    uint64_t seq;
} ebb_provider_message_key;

typedef struct ebb_provider_message {
    ebb_provider_message_key at;
    uint64_t execution; /* that it is for; 0: whichever runs */
    uint64_t step;      /* 0: none */
    ebb_blob body;
} ebb_provider_message;

/* A message for an inbox, in an ack. If the receiver does not exist, has ended or (execution not 0) is in another
 * execution, it is dropped and counted, and the ack succeeds. The end of a child has execution 0: the parent may have
 * been reset meanwhile, and knows its child by the id in the body. */
typedef struct ebb_provider_outgoing {
    const char *id; /* of the receiver */
    uint64_t execution;
    ebb_provider_message_kind kind;
    uint64_t step;
    ebb_blob body;
    /* START of a child only: makes the instance, with these. If the id exists, the message `exists` (kind CHILD, with
     * `step`) goes into the sender's own inbox instead. */
    const char *name;
    uint32_t version;
    ebb_blob input;
    ebb_blob exists;
} ebb_provider_outgoing;

/* An activity to run. */
typedef struct ebb_provider_work {
    uint64_t activity;   /* the event number of its attempt */
    const char *queue;   /* "NAME", or "NAME@TAG": who may fetch it */
    const char *session; /* "": none */
    const char *name;
    uint32_t attempt; /* of the call's policy */
    ebb_blob input;
    /* Not 0: the row is made as claimed by `node` of the ack, for its lease, so that it needs no fetch. This claim
     * charges no attempt. */
    ebb_provider_token token;
} ebb_provider_work;

/* Work that has ended in the node that also runs the turn: deleted in the ack, instead of an ack of its own. */
typedef struct ebb_provider_work_done {
    uint64_t execution, activity;
    ebb_provider_token token;
} ebb_provider_work_done;

/* An activity whose row goes, and why. */
typedef struct ebb_provider_cancelled {
    uint64_t activity;
    ebb_cancel_kind cause; /* for the hint GONE */
} ebb_provider_cancelled;

typedef struct ebb_provider_timer {
    uint64_t step, due;
} ebb_provider_timer;

typedef struct ebb_provider_value {
    const char *key;
    ebb_blob value; /* at NULL: remove the key */
} ebb_provider_value;

typedef struct ebb_provider_runs { /* an orchestration that a worker can run */
    const char *name;
    uint32_t version;
} ebb_provider_runs;

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

/* Makes a node, with a lease. What it claims is its own until it acks, abandons, leaves, or its lease lapses. Who may
 * work on which instance is the provider's choice (by a claim of each, or by shards that nodes own), as long as an
 * instance is given to one live node at a time. */
typedef struct ebb_provider_join_call {
    ebb_provider_call call;
    const char *name; /* for people */
    uint64_t lease;   /* ns */
    /* What it can run: orchestrations, for its fetches of turns and for `unserved`; and queues, for `unserved` alone, as
     * entries with version 0. */
    const ebb_provider_runs *runs;
    size_t runs_n;
    ebb_provider_node node; /* answer */
} ebb_provider_join_call;

/* Extends the lease of a node and of all work that it holds, by `lease` from now. `gone` are the tokens, in any order,
 * that hold nothing any more: the row was deleted, or was claimed by another. A row whose lease has lapsed but that
 * nobody has claimed is extended. `lost`: the node itself lapsed and its epoch was replaced; then all tokens are gone,
 * and it joins again. A failure says nothing about any token. */
typedef struct ebb_provider_renew_call {
    ebb_provider_call call;
    ebb_provider_node node;
    uint64_t lease;
    const ebb_provider_token *tokens;
    size_t tokens_n;
    ebb_provider_token *gone; /* answer */
    size_t gone_n;            /* answer */
    bool lost;                /* answer */
    uint64_t
        again; /* answer: renew again after so many ns even if the lease is longer, since hints do not come now; 0: they do */
} ebb_provider_renew_call;

/* Ends a node: its lease is over now, its work and instances are visible to others in the same commit, with no attempt
 * charged. A node that is not there: EBB_OK. */
typedef struct ebb_provider_leave_call {
    ebb_provider_call call;
    ebb_provider_node node;
} ebb_provider_leave_call;

/* ---- turns ---------------------------------------------------------------------------------------------------------- */

/* An instance with messages. */
typedef struct ebb_provider_turn_item {
    ebb_provider_token token; /* of this claim */
    uint64_t key;             /* of the instance */
    const char *id, *name;
    uint32_t version;   /* 0: not chosen yet */
    uint64_t execution; /* that runs, or is to run */
    uint64_t turn;      /* the last that is committed; 0: none */
    uint32_t attempts;  /* claims without ack or abandon, this one included: 1 */
    const ebb_provider_message
        *messages; /* inbox in the order of seq, then timers that are due by their time. At least one */
    size_t messages_n;
} ebb_provider_turn_item;

/* Claims instances that have messages or timers that are due, are Running, that the `runs` of the node's join list by
 * name and version (version 0 of an instance: by name), and that no live node holds. Not those that are suspended. Fair: the instance
 * whose oldest message waits longest comes first, and one instance's burst does not keep others away. A message that
 * came with or before the hint that led to this call is seen. What nobody can run stays, and delays nobody behind it.
 *
 * Poison: `attempts` counts claims that neither ack nor abandon has ended. A provider that writes no claims (shards)
 * charges one, when it takes over the instances of a node that lapsed, to each that had messages. An instance with 2 or
 * more charged is a *suspect*: it is given only if `suspects`, and then as the only item.
 *
 * The answer may be empty. It comes at once: the call does not wait for work. */
typedef struct ebb_provider_fetch_turns_call {
    ebb_provider_call call;
    ebb_provider_node node;
    const uint64_t *only; /* keys of instances: no others. NULL: any */
    size_t only_n;
    uint32_t most;     /* items */
    uint32_t messages; /* most of an item; the rest stays for the next turn */
    bool suspects;
    ebb_provider_turn_item *items; /* answer */
    size_t items_n;                /* answer */
    uint64_t now;                  /* answer: the store's clock */
    uint64_t again; /* answer: ask again after so many ns, if no hint comes: the next timer, lease or poll */
    bool suspects_wait; /* answer: there are suspects, which `suspects` would have given */
} ebb_provider_fetch_turns_call;

/* Commits a turn. In one transaction:
 *   1. inserts (key, execution, turn). It is there with the same ack_id: EBB_OK, and nothing is changed (but the claim
 *      ends). With another ack_id, or turn is not the last + 1, or execution is not the instance's, or the instance is
 *      gone or has ended: EBB_ERR_FENCED, and nothing is changed. The token plays no part in this.
 *   2. deletes each of `done`, by key, execution, activity, token and unexpired lease. If one is not there:
 *      EBB_ERR_GONE, `gone_at` is its index, and nothing is changed.
 *   3. deletes exactly the messages of `acked`, and no other, however their numbers lie. One that is not there: ignored.
 *   4. deletes the work in `cancelled`, claimed or not, of this instance and execution; with `all_work` all of it, also
 *      what this ack would insert. Likewise timers. One that is not there: ignored.
 *   5. inserts work, timers, outgoing messages; sets values, the custom status, `unread`.
 *   6. with `ends`: sets state and result. With `next`: the execution ends with state ContinuedAsNew, the next begins,
 *      with `next_version` and the start message `next` in the inbox before all others; messages of the ended execution
 *      (execution not 0) are dropped, others stay.
 *   7. ends the claim, if `token` still holds it; the attempts are 0 again. `keep`: the token goes on holding the
 *      instance, which is given to no other node while the lease lives, and to this one as soon as it has messages,
 *      with a new token. An abandon of the token lets it go.
 * A message that arrived between fetch and ack stays, and makes the instance visible again. */
typedef struct ebb_provider_ack_turn_call {
    ebb_provider_call call;
    ebb_provider_node node;    /* id 0: an operator's turn (terminate) */
    ebb_provider_token token;  /* 0: none */
    ebb_provider_token ack_id; /* random, the same in each repetition */
    uint64_t key, execution, turn;
    uint64_t at;      /* the time of the turn */
    ebb_blob body;    /* events: opaque */
    const char *name; /* turn 1 of an instance without a version: the one that is chosen now */
    uint32_t version;
    uint32_t semantics;
    const ebb_provider_message_key *acked;
    size_t acked_n;
    const ebb_provider_work_done *done;
    size_t done_n;
    const ebb_provider_cancelled *cancelled;
    size_t cancelled_n;
    const uint64_t *timers_cancelled; /* steps */
    size_t timers_cancelled_n;
    bool all_work, all_timers;
    ebb_cancel_kind cause; /* of `all_work` */
    const ebb_provider_work *work;
    size_t work_n;
    uint64_t lease; /* of work with a token */
    const ebb_provider_timer *timers;
    size_t timers_n;
    const ebb_provider_outgoing *outgoing;
    size_t outgoing_n;
    const ebb_provider_value *values;
    size_t values_n;
    const ebb_blob *custom;  /* NULL: as it is */
    uint32_t unread;         /* signals that it was given and has not taken, for the limit of a send */
    ebb_instance_state ends; /* 0: it goes on */
    ebb_blob result;         /* with `ends`: opaque */
    const char *text;        /* with `ends`: the reason; "": none */
    const ebb_blob *next;    /* NULL: no continue-as-new */
    uint32_t next_version;
    ebb_blob next_input;
    bool keep;
    size_t gone_at;   /* answer, with EBB_ERR_GONE */
    uint32_t dropped; /* answer: outgoing messages whose receiver had ended or was unknown */
} ebb_provider_ack_turn_call;

/* Ends claims without a turn: the instances are visible to others at once, the attempts of these claims are refunded.
 * Tokens that are gone are ignored. */
typedef struct ebb_provider_abandon_turns_call {
    ebb_provider_call call;
    ebb_provider_node node;
    const ebb_provider_token *tokens;
    size_t tokens_n;
} ebb_provider_abandon_turns_call;

/* ---- work --------------------------------------------------------------------------------------------------------------- */

typedef struct ebb_provider_work_item {
    ebb_provider_token token;
    uint64_t key;
    const char *id; /* of the instance */
    uint64_t execution, activity;
    const char *name;
    uint32_t attempt;  /* of the call's policy */
    uint32_t attempts; /* claims without ack or abandon, this one included: 1 */
    uint64_t waited;   /* ns since it became visible */
    ebb_blob input;
} ebb_provider_work_item;

typedef struct ebb_provider_queue {
    const char *name; /* "NAME" or "NAME@TAG" */
    uint32_t most;    /* items of this queue */
} ebb_provider_queue;

/* Claims work of these queues for `lease`, the oldest first, and fair between queues. Visible are rows without a live
 * claim. A row with a session goes to the node that has the session; a session that no live node has goes to the node
 * that fetches. Suspects as in a fetch of turns. No state of an instance is read. The answer comes at once. */
typedef struct ebb_provider_fetch_work_call {
    ebb_provider_call call;
    ebb_provider_node node;
    const ebb_provider_queue *queues;
    size_t queues_n;
    const uint64_t *only; /* as of a fetch of turns */
    size_t only_n;
    uint32_t most;
    uint64_t lease;
    bool suspects;
    ebb_provider_work_item *items; /* answer */
    size_t items_n;                /* answer */
    uint64_t now;                  /* answer */
    uint64_t again;                /* answer: as of a fetch of turns */
    bool suspects_wait;            /* answer */
} ebb_provider_fetch_work_call;

/* Ends an activity. In one transaction: deletes the row by key, execution, activity, live token and unexpired lease.
 * No row: EBB_ERR_GONE, permanent, and nothing is enqueued. Else, with `message` (not NULL), enqueues it to the
 * instance, as ACTIVITY with step = activity; if the instance has ended or is in another execution, it is `dropped`
 * and the ack succeeds. Without: the row is deleted alone. The same ack repeated after an unknown outcome: EBB_OK if a
 * message with this ack_id stands in the inbox, else EBB_ERR_GONE. */
typedef struct ebb_provider_ack_work_call {
    ebb_provider_call call;
    ebb_provider_node node;
    ebb_provider_token token, ack_id;
    uint64_t key, execution, activity;
    const ebb_blob *message;
    bool dropped; /* answer */
} ebb_provider_ack_work_call;

/* Gives work back: visible at once, or `delay` ns later; attempts of these claims are refunded. Tokens that are gone are
 * ignored. */
typedef struct ebb_provider_abandon_work_call {
    ebb_provider_call call;
    ebb_provider_node node;
    const ebb_provider_token *tokens;
    size_t tokens_n;
    uint64_t delay;
} ebb_provider_abandon_work_call;

/* ---- clients --------------------------------------------------------------------------------------------------------------- */

/* What is known of an instance. The texts are of the call's answer. */
typedef struct ebb_provider_instance_row {
    uint64_t key;
    const char *id, *name, *parent;
    uint32_t version, semantics;
    uint64_t execution, turn;
    ebb_instance_state state;
    uint64_t started, ended;
    ebb_blob input, result, custom; /* result: as the ack gave it */
    const char *text;
    /* It is Running, and no live node that joined lists what it needs: its name and version, if it has messages; or the
     * queue of one of its works that nobody has claimed. */
    bool unserved;
} ebb_provider_instance_row;

/* Makes an instance with its start message. The id exists: with the same name and input, EBB_OK and `existed`; else
 * EBB_ERR_EXISTS. With `reuse` and an ended instance: the next execution of it, in the same row, without the values,
 * the custom status and the messages of the last. */
typedef struct ebb_provider_start_call {
    ebb_provider_call call;
    const char *id, *name;
    uint32_t version; /* 0: the first worker chooses */
    ebb_blob input;
    ebb_blob message; /* body of the start message */
    bool reuse;
    ebb_provider_instance_row row; /* answer */
    bool existed;                  /* answer */
} ebb_provider_start_call;

/* Enqueues a signal or a cancel. No such instance, or it has ended: EBB_ERR_UNKNOWN_INSTANCE, and with `start` it is
 * started in the same transaction first. A signal whose `dedup` (not "") this execution has had: EBB_OK, nothing is
 * enqueued. Signals in the inbox and `unread` together past EBB_DURABLE_SIGNALS: EBB_ERR_LIMIT. A cancel has no limit;
 * a second one while one is in the inbox changes nothing. Signals of one name keep the order in which their calls were
 * done. A suspended instance takes both. */
typedef struct ebb_provider_send_call {
    ebb_provider_call call;
    const char *id;
    ebb_provider_message_kind kind; /* SIGNAL or CANCEL */
    const char *dedup;
    ebb_blob body;
    const ebb_provider_start_call *start; /* its inputs; NULL: none */
} ebb_provider_send_call;

typedef struct ebb_provider_turn_row {
    uint64_t execution, turn, at;
    ebb_blob body;
} ebb_provider_turn_row;
/* Reads turns of an execution (0: the current) with numbers above `after`, in order, up to `most` or about `bytes` of
 * bodies, at least one. Needs no claim. A row that the store knows to be damaged: EBB_ERR_CORRUPT. */
typedef struct ebb_provider_history_call {
    ebb_provider_call call;
    uint64_t key; /* 0: by id */
    const char *id;
    uint64_t execution, after;
    uint32_t most;
    uint64_t bytes;
    ebb_provider_turn_row *turns; /* answer */
    size_t turns_n;               /* answer */
    bool more;                    /* answer */
} ebb_provider_history_call;

/* Reads one instance. EBB_ERR_UNKNOWN_INSTANCE. */
typedef struct ebb_provider_instance_call {
    ebb_provider_call call;
    const char *id;
    ebb_provider_instance_row row; /* answer */
} ebb_provider_instance_call;

/* Reads a page of instances as ebb_instance_filter says. Without inputs and results. */
typedef struct ebb_provider_list_call {
    ebb_provider_call call;
    const ebb_instance_filter *filter; /* of this library's size */
    ebb_provider_instance_row *rows;   /* answer */
    size_t rows_n;                     /* answer */
} ebb_provider_list_call;

/* Reads a value; none: `value.at` is NULL. EBB_ERR_UNKNOWN_INSTANCE. */
typedef struct ebb_provider_value_call {
    ebb_provider_call call;
    const char *id, *key;
    ebb_blob value; /* answer */
} ebb_provider_value_call;

/* Counts what an instance has outstanding, for tests, tools and the verification of histories. It is one read: of one
 * moment. EBB_ERR_UNKNOWN_INSTANCE. */
typedef struct ebb_provider_outstanding_call {
    ebb_provider_call call;
    const char *id;
    uint64_t work, claimed, timers, messages; /* answer */
} ebb_provider_outstanding_call;

/* ---- operators ---------------------------------------------------------------------------------------------------------------- */

/* Suspends or resumes an instance without a turn, if `turn` is still its last one in `execution`; else EBB_ERR_FENCED.
 * state RUNNING or SUSPENDED. Resume sets its attempts to 0. It ends a claim of the instance. */
typedef struct ebb_provider_mark_call {
    ebb_provider_call call;
    uint64_t key, execution, turn;
    ebb_instance_state state;
    const char *text;
} ebb_provider_mark_call;

/* Begins execution + 1 with copies of the turns 1 to `keep`, if `execution` and `turn` are still the instance's last;
 * else EBB_ERR_FENCED. In one transaction all work and timers of the old one are deleted, messages for it are dropped,
 * work, timers and messages of the call are inserted for the new one, the state is Running and there is no result. The
 * custom status may stay or go: the next turn sets that of the last turn kept. */
typedef struct ebb_provider_reset_call {
    ebb_provider_call call;
    uint64_t key, execution, turn, keep;
    const ebb_provider_work *work;
    size_t work_n;
    const ebb_provider_timer *timers;
    size_t timers_n;
    const ebb_provider_message
        *messages; /* into its inbox, before those that are there; `at.seq` is ignored */
    size_t messages_n;
    const ebb_provider_value *values; /* all that there are from now on */
    size_t values_n;
    const ebb_provider_outgoing *outgoing; /* cancels of children */
    size_t outgoing_n;
} ebb_provider_reset_call;

/* Deletes instances and all rows of them. Without `force` those that have not ended stay, and are not counted. Deleting
 * costs a bounded time a transaction: a provider may use several. */
typedef struct ebb_provider_remove_call {
    ebb_provider_call call;
    const uint64_t *keys;
    size_t keys_n;
    bool force;
    uint64_t removed; /* answer */
} ebb_provider_remove_call;

/* ---- the provider ---------------------------------------------------------------------------------------------------------------- */

typedef struct ebb_provider_stats {
    uint64_t commits, members; /* transactions that wrote; calls in them */
    uint64_t statements;       /* sent to the database */
    uint64_t round_trips;      /* to a server; 0: there is none */
    uint64_t bytes;            /* of rows written */
    uint64_t dropped;          /* messages for instances that had ended */
} ebb_provider_stats;

typedef struct ebb_provider {
    uint32_t size;      /* sizeof(ebb_provider) */
    const char *scheme; /* of its URLs: "sqlite" */
    const char *about;  /* its database and version in one line: "SQLite 3.40.1", for tools */
    void (*open)(ebb_provider_open_call *c);
    void (*close)(void *self,
                  ebb_provider_close_call *c); /* after the last done; ends the last thread and connection */
    void (*join)(void *self, ebb_provider_join_call *c);
    void (*renew)(void *self, ebb_provider_renew_call *c);
    void (*leave)(void *self, ebb_provider_leave_call *c);
    void (*fetch_turns)(void *self, ebb_provider_fetch_turns_call *c);
    void (*ack_turn)(void *self, ebb_provider_ack_turn_call *c);
    void (*abandon_turns)(void *self, ebb_provider_abandon_turns_call *c);
    void (*fetch_work)(void *self, ebb_provider_fetch_work_call *c);
    void (*ack_work)(void *self, ebb_provider_ack_work_call *c);
    void (*abandon_work)(void *self, ebb_provider_abandon_work_call *c);
    void (*start)(void *self, ebb_provider_start_call *c);
    void (*send)(void *self, ebb_provider_send_call *c);
    void (*history)(void *self, ebb_provider_history_call *c);
    void (*instance)(void *self, ebb_provider_instance_call *c);
    void (*list)(void *self, ebb_provider_list_call *c);
    void (*value)(void *self, ebb_provider_value_call *c);
    void (*outstanding)(void *self, ebb_provider_outstanding_call *c);
    void (*mark)(void *self, ebb_provider_mark_call *c);
    void (*reset)(void *self, ebb_provider_reset_call *c);
    void (*remove)(void *self, ebb_provider_remove_call *c);
    void (*stats)(const void *self, ebb_provider_stats *out); /* at once; counters only */
} ebb_provider;

/* ---- the conformance suite ---------------------------------------------------------------------------------------------------------- */

typedef struct ebb_provider_test_opts {
    uint32_t size;                /* sizeof(ebb_provider_test_opts) of the caller; 0: this one */
    const char *url;              /* of a store that the suite may fill: it deletes all that it has made */
    const ebb_provider *provider; /* NULL: by URL */
    const char *match;            /* only cases whose name contains this. NULL: all */
    /* Called with each case: its name, EBB_OK or how it failed, and for a failure what was expected and found. */
    void (*result)(void *arg, const char *name, ebb_status st, const char *text);
    void *arg; /* of `result` */
} ebb_provider_test_opts;
/* Runs the suite; only a fiber can. *passed and *failed (may be NULL) count the cases. EBB_OK: none failed.
 * EBB_ERR_ORACLE: some did. EBB_ERR_INVALID: no case matches, or no fiber; the errors of ebb_store_open. A cancel stops
 * it after the current case. */
ebb_status ebb_provider_test(ebb_cx *cx, const ebb_provider_test_opts *opts, uint32_t *passed,
                             uint32_t *failed);
/* The i-th case: its name and what it holds, in one line. NULL: past the last. */
const char *ebb_provider_case_at(size_t i, const char **about);

#ifdef __cplusplus
}
#endif
#endif
