/* ebb/machine.h - managed machines: objects with states that run only to handle messages.
 *
 * A *machine* has a state, fields, and a mailbox. Its *type* is a table: for each state and each kind of message, what
 * to do with it: handle, defer, ignore. A *handler* runs to its end; machines never run at the same time. One task of
 * the runtime, the *dispatcher*, takes the messages in order.
 *
 * A dispatch is a *transaction*. The handler works on a copy of the fields, and what it asks for is *staged*: sends,
 * requests, replies, spawns, starts, stops, timers, subscriptions, the next state. If the handler returns EBB_OK, all
 * of it is committed, in the order in which it was staged. Any other status is a *fault*: nothing of it happens.
 *
 *     static ebb_status on_ping(ebb_machines *ms, void *self, const ebb_message *m) {
 *         counter *c = self;
 *         c->pings++;
 *         return ebb_machine_send(ms, m->from, PONG, &c->pings, sizeof c->pings);
 *     }
 *
 * The rules at the head of ebb/kernel.h apply, and these:
 *  - The functions below may be called by handlers, by tasks and by the host. In a handler they stage; elsewhere they
 *    act at once. All belong to the thread of the runtime.
 *  - A send *reserves* its place in the mailbox of the receiver when it is staged. So it is refused right there, and a
 *    commit can't fail.
 *  - Every request ends exactly once: with a reply, or with the message EBB_MACHINE_REQUEST_FAILED.
 *  - A mailbox is in the order of commits. Nothing is promised about messages of different senders.
 *  - Payloads are copied. They are bytes; see `keep` and `drop` of ebb_machine_kind for more. */
#ifndef EBB_MACHINE_H
#define EBB_MACHINE_H

#include <ebb/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- limits -------------------------------------------------------------------------------------------- */

#define EBB_MACHINE_MESSAGE_MAX  (64u << 10)   /* bytes of a payload */
#define EBB_MACHINE_FIELDS_MAX   (64u << 10)   /* bytes of a machine's fields */
#define EBB_MACHINE_DISPATCH_MAX (1024u << 10) /* bytes that one dispatch may stage and allocate */
#define EBB_MACHINE_MAILBOX      64u           /* messages in a mailbox, unless the type says otherwise */
#define EBB_MACHINE_MAILBOX_MAX  65535u
#define EBB_MACHINE_PENDING                                                                                  \
    1024u                      /* requests of one machine that are not answered, unless the options say so */
#define EBB_MACHINE_TIMERS 64u /* timers of one machine */
#define EBB_MACHINE_BATCH  64u /* messages in one poll of the dispatcher */
#define EBB_MACHINES_MAX   64u /* runtimes of machines of one ebb_runtime at a time */

/* ---- types --------------------------------------------------------------------------------------------- */

typedef struct ebb_machines ebb_machines; /* a runtime of machines; an ebb_runtime may have several */

/* Ids, as those of ebb/kernel.h. A machine's id is never used again. */
typedef struct ebb_machine {
    uint64_t id;
} ebb_machine;
typedef struct ebb_request {
    uint64_t id; /* of a request; its receiver has the capability to reply by the same type */
} ebb_request;

/* Kinds of messages are numbers of the program, from 1. Kind 0 is the runtime's: */
enum { EBB_MACHINE_REQUEST_FAILED = 0 };

/* Why a request has no reply: the payload of EBB_MACHINE_REQUEST_FAILED. */
typedef enum ebb_request_failure {
    EBB_REQUEST_TIMEOUT = 1,   /* the time given with `within` has passed */
    EBB_REQUEST_STOPPED = 2,   /* the machine has stopped */
    EBB_REQUEST_FAULTED = 3,   /* its handler faulted */
    EBB_REQUEST_UNHANDLED = 4, /* it does not handle this kind in its state */
} ebb_request_failure;

/* A message, as its handler gets it. The pointers are valid until the handler returns. */
typedef struct ebb_message {
    const void *payload;
    const void *origin; /* of a reply or a failure: the payload of the request; else NULL */
    const void *arg;    /* of the rule */
    ebb_machine self;   /* the machine that handles it */
    ebb_machine from;   /* the sender; id 0: the host */
    ebb_request
        request;   /* of a request, the capability to reply; of a reply or a failure, which request; else 0 */
    uint32_t size; /* bytes of the payload */
    uint32_t origin_size; /* bytes of `origin` */
    uint32_t label;       /* of a reply or a failure: what the request was made with */
    uint16_t kind;        /* of an entry: 0 */
    uint16_t origin_kind; /* the kind of the request */
    uint8_t failure;      /* ebb_request_failure, of EBB_MACHINE_REQUEST_FAILED; else 0 */
} ebb_message;

/* A handler. `self` is a copy of the fields; changes count if the dispatch commits. EBB_OK commits. A negative status
 * is a fault; so is EBB_PENDING: a handler can't wait. */
typedef ebb_status (*ebb_machine_fn)(ebb_machines *ms, void *self, const ebb_message *m);

typedef enum ebb_machine_what {
    EBB_MACHINE_NONE = 0,   /* not handled: a dead letter, and a request fails as UNHANDLED */
    EBB_MACHINE_HANDLE = 1, /* call `fn` */
    EBB_MACHINE_DEFER = 2,  /* keep it until the state changes */
    EBB_MACHINE_IGNORE = 3  /* drop it; not for requests, which fail as UNHANDLED */
} ebb_machine_what;

typedef struct ebb_machine_rule {
    ebb_machine_fn fn;
    const void *arg; /* `arg` of the message */
    uint8_t what;    /* ebb_machine_what */
} ebb_machine_rule;

/* What the runtime must know of a state. Each function may be NULL. They are part of the dispatch that changes the
 * state: body, exit of the old state, the new fields, entry of the new state, invariant. Exit and entry may stage, but
 * may not change the state again. An invariant returns EBB_OK if it holds. */
typedef struct ebb_machine_state {
    const char *name;
    ebb_machine_fn entry; /* also called when a machine that was spawned in this state is started */
    ebb_machine_fn exit;
    ebb_machine_fn invariant;
    const void *arg; /* `arg` of the message in these calls */
    bool final;      /* a machine that enters it stops after its effects; also if a fault leads there */
} ebb_machine_state;

/* A type of machines. It must outlive the runtime of machines. */
typedef struct ebb_machine_type {
    uint32_t size; /* sizeof(ebb_machine_type) of the caller; 0: this one */
    const char *name;
    const ebb_machine_state *states;
    /* table[state * columns + column]. The column of a kind is `column[kind]` - 1, and 0 there means that no state
     * handles it. `column` has an entry for each of the `kinds` of the runtime. NULL: the column is the kind. */
    const ebb_machine_rule *table;
    const uint16_t *column;
    uint32_t fields;      /* bytes of the fields, at most EBB_MACHINE_FIELDS_MAX */
    uint16_t n_states;    /* at least 1 */
    uint16_t columns;     /* of the table */
    uint16_t mailbox;     /* messages in the mailbox; 0: EBB_MACHINE_MAILBOX */
    uint16_t fault_state; /* 1 + the state that a fault leads to; 0: a fault is the machine's end */
    /* Called when a dispatch has committed or was rolled back, and when the machine ends (`now` is NULL then). It
     * releases what only one version of the fields refers to. After a rollback `now` is the copy, which is dropped. A
     * machine whose spawn is rolled back ends with `committed` false. The function may not call functions of this
     * header. NULL: fields are bytes. */
    void (*settle)(const struct ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                   uint32_t now_state, void *now);
} ebb_machine_type;

/* A kind of message. The functions given here may not call functions of this header. */
typedef struct ebb_machine_kind {
    const char *name; /* for dumps; NULL: its number */
    /* Called when a payload was copied for another receiver of a publish, or for the value of an ebb_machine_ask. NULL:
     * payloads are bytes. */
    void (*keep)(void *payload);
    void (*drop)(void *payload); /* called before a payload is freed. NULL: payloads are bytes */
} ebb_machine_kind;

/* ---- a runtime of machines ------------------------------------------------------------------------------- */

/* Why a message was not handled. */
typedef enum ebb_dead_reason {
    EBB_DEAD_UNHANDLED = 1, /* the receiver has no rule for it in its state */
    EBB_DEAD_STOPPED = 2,   /* the receiver has stopped */
    EBB_DEAD_FAULTED = 3,   /* the receiver has faulted, with this message or before it */
    EBB_DEAD_LATE = 4,      /* a reply that nobody waits for any more */
    EBB_DEAD_NOBODY = 5     /* published, and nobody has subscribed */
} ebb_dead_reason;

typedef struct ebb_dead_letter {
    ebb_dead_reason reason;
    ebb_machine to, from; /* id 0: nobody; the host */
    const void *payload;
    uint32_t size;
    uint16_t kind;
} ebb_dead_letter;

typedef struct ebb_machines_opts {
    uint32_t size;     /* sizeof(ebb_machines_opts) of the caller; 0: this one */
    ebb_region parent; /* where its region is opened. 0: the region of cx */
    const ebb_machine_kind
        *kinds;            /* by kind, `n_kinds` of them; must outlive the runtime of machines. May be NULL */
    uint32_t n_kinds;      /* every kind is below it; at most 65536 */
    uint32_t max_machines; /* alive at a time; 0: 2^24 - 1 */
    uint32_t max_pending;  /* requests of one machine without a reply; 0: EBB_MACHINE_PENDING */
    /* Hooks: called after the commit or the rollback. They may call the functions of this header that act at once; after
     * a close they may still send, but not spawn. Each may be NULL. */
    void (*dead_letter)(void *arg, const ebb_dead_letter *dead);
    /* A send found the mailbox full. Called for the first 8 of a dispatch. */
    void (*overflow)(void *arg, ebb_machine to, uint16_t kind);
    /* A handler has faulted. */
    void (*fault)(void *arg, ebb_machine machine, uint16_t kind, ebb_status status);
    void *arg; /* the first argument of the hooks */
    /* The dispatcher is about to wait: no machine has anything to do until a timer expires or a message is sent. Not
     * called while it drains. */
    void (*idle)(void *arg);
    const char *name; /* for who looks at them; must outlive the runtime of machines. NULL: none */
} ebb_machines_opts;

/* Opens a runtime of machines: a region, and in it the dispatcher. To end it, close or cancel the region:
 *   close   spawns, and sends from outside, are refused with EBB_ERR_CLOSED, except to callers inside a unit of work.
 *           When no message and no request is left, and no unit that could send one, the machines stop, the youngest
 *           first. Timers do not delay this.
 *   cancel  All mailboxes become dead letters and requests fail as STOPPED. Each machine may handle one such failure;
 *           then it stops.
 * A machine that has faulted does not end the runtime. EBB_ERR_LIMIT: this ebb_runtime has EBB_MACHINES_MAX already.
 * EBB_ERR_INVALID: n_kinds. EBB_ERR_NOMEM, EBB_ERR_VERSION, and the errors of ebb_region_open: nothing was opened; `*out` is NULL. */
#define ebb_machines_open(cx, out, ...) ebb_machines_open_site((cx), (out), (__VA_ARGS__), EBB_SITE)
ebb_status ebb_machines_open_site(ebb_cx *cx, ebb_machines **out, const ebb_machines_opts *opts,
                                  const char *site);
ebb_region ebb_machines_region(const ebb_machines *ms);
/* The entry of `kinds` for a kind; NULL: there is none. For code that copies a payload in a hook. */
const ebb_machine_kind *ebb_machines_kind(const ebb_machines *ms, uint16_t kind);
/* Frees a runtime of machines, after its region has closed, or after ebb_runtime_free. EBB_ERR_BUSY: the dispatcher
 * still lives. NULL is allowed. */
ebb_status ebb_machines_free(ebb_machines *ms);

typedef struct ebb_machines_stats {
    uint64_t dispatched; /* messages taken from mailboxes */
    uint64_t committed, rolled_back;
    uint64_t dead;     /* dead letters */
    uint64_t ignored;  /* messages dropped by a rule */
    uint64_t refused;  /* sends and requests that found no room, or no machine that runs */
    uint64_t requests; /* made so far */
    uint64_t faults;   /* machines that ended by a fault */
    uint32_t machines; /* alive: not stopped */
    uint32_t queued;   /* messages in mailboxes, deferred ones included */
    uint32_t pending;  /* requests that have not ended on both sides */
    uint32_t timers;   /* armed, or expired and not handled */
    uint32_t subscriptions;
    uint32_t cells; /* message cells in use: queued, staged, reserved for replies, kept as origins */
    uint64_t full;  /* of those refused, the ones that found a mailbox full */
} ebb_machines_stats;
void ebb_machines_stats_of(const ebb_machines *ms, ebb_machines_stats *out);

/* True if no machine has anything to do: no message is queued that a machine could take, and none is being handled. */
bool ebb_machines_is_idle(const ebb_machines *ms);

/* ---- machines ------------------------------------------------------------------------------------------ */

typedef enum ebb_machine_lifecycle {
    EBB_MACHINE_CREATED = 1, /* has a mailbox, but is not dispatched */
    EBB_MACHINE_RUNNING = 2,
    EBB_MACHINE_FAULTED =
        3, /* its handler has faulted: nothing reaches it any more, and it can only be stopped */
    EBB_MACHINE_STOPPED = 4 /* gone; only its id is left */
} ebb_machine_lifecycle;

/* Spawns a machine with a copy of `fields` (NULL: zeroes). It is Created until ebb_machine_start. In a handler it can
 * be sent to at once, and a rollback takes it back. Returns its id, or an id that carries EBB_ERR_CLOSED,
 * EBB_ERR_NOMEM, EBB_ERR_LIMIT, EBB_ERR_VERSION, or EBB_ERR_INVALID (the type, or the state). */
ebb_machine ebb_machine_spawn(ebb_machines *ms, const ebb_machine_type *type, uint32_t state,
                              const void *fields);
/* Starts a machine that is Created; what it was sent is dispatched then. EBB_ERR_NOT_RUNNING: it has ended.
 * EBB_ERR_INVALID: it was started before. EBB_ERR_UNKNOWN_MACHINE, EBB_ERR_NOMEM. */
ebb_status ebb_machine_start(ebb_machines *ms, ebb_machine machine);
/* Stops a machine. The messages in its mailbox become dead letters. Requests fail as STOPPED if they wait there or if
 * the machine holds their capability. Replies to it are dead letters. In a handler a stop is staged, also that of its
 * own machine. Errors as ebb_machine_start. */
ebb_status ebb_machine_stop(ebb_machines *ms, ebb_machine machine);

typedef struct ebb_machine_info {
    const ebb_machine_type *type;    /* NULL: stopped */
    const void *fields;              /* valid until the next call of this header */
    ebb_machine_lifecycle lifecycle; /* STOPPED: it is gone */
    uint32_t state;
    uint32_t queued;   /* messages in its mailbox, deferred ones included */
    uint32_t deferred; /* of these, deferred */
    uint32_t reserved; /* places of its mailbox in use or reserved */
    uint32_t pending;  /* its requests whose answer it has not handled yet */
    uint32_t held;     /* capabilities that it holds */
    uint32_t timers, subscriptions;
    uint64_t spawned_at; /* as of ebb_now */
    uint32_t faults;     /* handlers that were rolled back */
    uint32_t dropped;    /* dead letters that were sent to it */
    uint32_t mailbox;    /* places */
} ebb_machine_info;
/* EBB_ERR_UNKNOWN_MACHINE: there never was one with this id. */
ebb_status ebb_machine_info_of(const ebb_machines *ms, ebb_machine machine, ebb_machine_info *out);

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Sends a copy of `size` bytes. After an error nothing was sent or staged:
 *   EBB_ERR_MAILBOX_FULL      the receiver's mailbox has no free place
 *   EBB_ERR_NOT_RUNNING       it has faulted or stopped
 *   EBB_ERR_UNKNOWN_MACHINE   there never was such a machine
 *   EBB_ERR_CLOSED            from outside: the runtime of machines is closed
 *   EBB_ERR_LIMIT             the payload, or all of the dispatch, is too large
 *   EBB_ERR_NOMEM, EBB_ERR_INVALID (the kind) */
ebb_status ebb_machine_send(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                            size_t size);

/* Publishes to all who have subscribed to this kind and key, in the order of their subscriptions. A machine that
 * subscribes in the same dispatch does not get the message. If one mailbox is full, nothing is sent to anybody. Without
 * a subscriber the message is a dead letter. Errors as ebb_machine_send. */
ebb_status ebb_machine_publish(ebb_machines *ms, uint16_t kind, uint64_t key, const void *payload,
                               size_t size);
/* For handlers: adds or removes a subscription of this machine. A second one for the same kind and key changes nothing.
 * EBB_ERR_NOMEM; EBB_ERR_INVALID (the kind); EBB_ERR_NOT_TASK: not in a handler. */
ebb_status ebb_machine_subscribe(ebb_machines *ms, uint16_t kind, uint64_t key);
ebb_status ebb_machine_unsubscribe(ebb_machines *ms, uint16_t kind, uint64_t key);

/* Makes a request, for handlers. The reply comes as a message of its own kind, or as EBB_MACHINE_REQUEST_FAILED; both
 * have `label`, and the payload of the request as `origin`. `within` is the time it may take, 0: any. Returns the id of
 * the request, or an id that carries an error as of ebb_machine_send, or EBB_ERR_PENDING_FULL: this machine has
 * max_pending requests without a reply. */
ebb_request ebb_machine_request(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                                size_t size, uint64_t within, uint32_t label);
/* Gives a request up. In a handler, it is one of this machine, and its reply will be a dead letter. Outside of handlers
 * it is one of ebb_machine_call, whose `answered` is then not called. EBB_ERR_STALE: the request has ended.
 * EBB_ERR_INVALID: the request of another machine. EBB_ERR_NOMEM. */
ebb_status ebb_machine_forget(ebb_machines *ms, ebb_request request);

/* Replies to a request: to the one that is being handled (id 0, or its id), or to one whose capability was held. A reply
 * always finds room. A handler of a request must reply or hold; if it commits without either, that is a fault,
 * EBB_ERR_NO_REPLY. EBB_ERR_REPLIED: there was a reply before. EBB_ERR_INVALID: the capability of another machine, or
 * no request is being handled. EBB_ERR_NOMEM, EBB_ERR_LIMIT. Outside of handlers, where the program holds
 * the capability, the reply is sent at once. */
ebb_status ebb_machine_reply(ebb_machines *ms, ebb_request request, uint16_t kind, const void *payload,
                             size_t size);
/* Holds the capability of the request that is being handled, for a reply in a later dispatch or by the program. An
 * obligation (EBB_OBLIGATION_ACK) of the dispatcher stands for it: without a reply it is a leak, with `site`.
 * Returns `m->request`, or an id that carries EBB_ERR_INVALID (no request), EBB_ERR_REPLIED, EBB_ERR_NOMEM. */
#define ebb_machine_hold(ms) ebb_machine_hold_site((ms), EBB_SITE)
ebb_request ebb_machine_hold_site(ebb_machines *ms, const char *site);

/* A request from outside of machines. `answered` is called once, as a hook, with the reply or the failure; `m` is valid
 * until it returns, and m->self is 0. If the runtime of machines ends first, the failure is STOPPED. `within`: 0, any
 * time. Returns the id of the request or an id that carries an error. ebb_machine_ask of ebb/future.h makes a future
 * of it. */
ebb_request ebb_machine_call(ebb_machines *ms, ebb_machine to, uint16_t kind, const void *payload,
                             size_t size, uint64_t within, void (*answered)(void *arg, const ebb_message *m),
                             void *arg);

/* ---- for handlers -------------------------------------------------------------------------------------- */

/* Stages the next state. `fields` (NULL: `self` as it is then) replace the fields after the exit of the old state; they
 * must stay valid until the dispatch has ended, as memory of ebb_machine_alloc does. The same state again is no change:
 * no exit, no entry, and timers run on. EBB_ERR_INVALID: no such state, or called in an entry or exit.
 * EBB_ERR_NOT_TASK: not in a handler. */
ebb_status ebb_machine_become(ebb_machines *ms, uint32_t state, void *fields);
/* Sends a message of `kind` without a payload to this machine in `span` ns, unless the state changes first: a timer
 * belongs to the state that the dispatch ends in. It needs no place in the mailbox. Timers that are due at the same
 * millisecond expire in the order in which they were armed. EBB_ERR_LIMIT: EBB_MACHINE_TIMERS. EBB_ERR_NOMEM,
 * EBB_ERR_INVALID (the kind), EBB_ERR_NOT_TASK. */
ebb_status ebb_machine_after(ebb_machines *ms, uint64_t span, uint16_t kind);
/* Memory until the end of the dispatch, aligned for any type. NULL: no memory, or EBB_MACHINE_DISPATCH_MAX. */
void *ebb_machine_alloc(ebb_machines *ms, size_t n);
/* The time. It does not change during a dispatch. */
uint64_t ebb_machine_now(const ebb_machines *ms);

/* ---- dump ------------------------------------------------------------------------------------------------ */

/* Prints every machine, one a line, and what a machine waits for. ebb_runtime_dump prints the machines too. The text
 * passed to `write` is not 0-terminated. EBB_ERR_UNKNOWN_MACHINE. */
void ebb_machines_dump(const ebb_machines *ms, void (*write)(void *ctx, const char *text, size_t n),
                       void *ctx);
ebb_status ebb_machine_explain(const ebb_machines *ms, ebb_machine machine,
                               void (*write)(void *ctx, const char *text, size_t n), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
