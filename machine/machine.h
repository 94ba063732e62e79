/* machine/machine.h - the records of machines, and how the files of this folder work together.
 *
 *   machines.c       the runtime of machines: open, free, statistics
 *   registry.c       the runtimes of machines of one ebb_runtime
 *   dispatcher.c     its task: turns, timers, how it sleeps, how it drains
 *   dispatch.c       one dispatch: look the rule up, call it, commit or roll back; faults
 *   effect.c         the log: staging, applying, undoing
 *   machine.c        records and lifecycle: spawn, start, stop
 *   mailbox.c        queues: mailboxes and the ready queue
 *   cell.c           message cells and payloads
 *   pending.c        requests and replies
 *   timer.c          timers and timeouts
 *   subscription.c   subscribe and publish
 *   port.c           the ends of links to other runtimes: proxies and ports
 *   type.c           types as they are used: checked, copied
 *   dump.c           texts
 *
 * What must hold:
 *  - Outside of a dispatch and of an operation from outside, the log is empty.
 *  - machine.places = cells with EBB__PLACE in its mailbox, plus those for it in the log, plus what its ports reserve.
 *    Of a proxy: plus the credits that have not come back. So places <= mailbox.
 *  - A mailbox is a ring in the order of message numbers; `mark` is the last deferred cell, and those before it are
 *    deferred too. The next message is behind `mark`. Recalling is mark = NULL.
 *  - A machine is in the ready queue (EBB__M_READY) if it is Running, not being dispatched, and has a next message or
 *    an entry to do. It is there once.
 *  - Every pending has its answer cell from the start, so that a reply or a failure never lacks one. A request's cell
 *    belongs to its pending, also while it is in a mailbox: the reply's handler gets it as the origin.
 *  - A pending lives while the requester waits for it (EBB__WANTED) or the responder owes a reply (EBB__OWED).
 *  - Nothing in a commit or a rollback allocates or fails.
 *
 * For other callers of machines (a virtual machine, emitted code): a rule's `fn` gets the dispatch as `ms`.
 * ebb_machine_alloc is a bump arena that is empty again after the dispatch, for values that are not staged. What is
 * staged is copied by the call, so a value that has pointers is made a counted object first; `keep` and `drop` of its
 * kind count it, and `settle` of the type counts those of the fields: it gets the old and the new version of the
 * fields when the dispatch is decided. `self` is the copy. To trap, a handler returns a negative status: nothing else
 * has to be undone.
 * ebb_machine_become takes the fields of the next state separately, for languages in which exit still sees the old
 * ones. The runtime of machines counts no steps of a handler: the caller may. */
#ifndef EBB_MACHINE_MACHINE_H
#define EBB_MACHINE_MACHINE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/slab.h"
#include "base/wheel.h"
#include "kernel/layer.h"
#include "machine/port.h"
#include <ebb/machine.h>

/* ---- pools ------------------------------------------------------------------------------------------------ */

/* Records of one size without numbers, for cells and fields. */
typedef struct ebb__cells {
    void *free;       /* the first word of a free record is the next one */
    void *chunks;     /* the first word of a chunk is the next one */
    uint32_t size;    /* of a record, a multiple of 16 */
    uint32_t a_chunk; /* records in a chunk */
    uint32_t used;
} ebb__cells;

void ebb__cells_init(ebb__cells *p, size_t size);
void ebb__cells_free(ebb__cells *p, const ebb_allocator *a);
void *ebb__cells_grow(ebb__cells *p, const ebb_allocator *a); /* NULL: no memory */

static inline void *ebb__cells_take(ebb__cells *p, const ebb_allocator *a) {
    void *r = p->free;
    if (EBB__UNLIKELY(r == NULL) && (r = ebb__cells_grow(p, a)) == NULL) return NULL;
    memcpy(&p->free, r, sizeof p->free);
    p->used++;
    return r;
}

static inline void ebb__cells_give(ebb__cells *p, void *r) {
    memcpy(r, &p->free, sizeof p->free);
    p->free = r;
    p->used--;
}

/* ---- cells ------------------------------------------------------------------------------------------------ */

/* What a cell is: the first are messages, the others only effects of a log. */
typedef enum ebb__what {
    EBB__MESSAGE = 1,
    EBB__REQUEST, /* ref: the pending */
    EBB__REPLY,   /* ref: the pending */
    EBB__NOBODY,  /* published without a subscriber */
    EBB__FAILED,  /* ref: the pending */
    EBB__EXPIRY,  /* ref: the alarm */
    EBB__STALE,   /* an expiry whose state is gone */
    EBB__SPAWN,   /* to */
    EBB__START,   /* to */
    EBB__STOP,    /* to */
    EBB__ARM,     /* ref: the alarm; the cell becomes its expiry */
    EBB__HOLD,    /* ref: the pending */
    EBB__FORGET,  /* ref: the pending */
    EBB__SUBSCRIBE,
    EBB__UNSUBSCRIBE
} ebb__what;

/* Flags of a cell: it has a place in the mailbox; it has a block; it came through a port, which has its place (of a
 * message `ref`, of a request that of its call). */
enum { EBB__PLACE = 1, EBB__BLOCK = 2, EBB__PORTED = 4 };
enum { EBB__CELL_BYTES = 24 }; /* bytes of a payload in the cell itself */

typedef struct ebb__cell ebb__cell;
struct ebb__cell {
    ebb__cell *next;
    uint64_t from;   /* id of the sender; 0: the host */
    uint64_t number; /* in a mailbox: its number. Of a dead letter: the id of the receiver */
    uint32_t to;     /* index of the receiver; of a dead letter the reason */
    uint32_t ref;
    uint32_t size;
    uint16_t kind;
    uint8_t what;  /* ebb__what */
    uint8_t flags; /* EBB__PLACE, EBB__BLOCK, EBB__PORTED */
    union {
        unsigned char bytes[EBB__CELL_BYTES];
        void *block;
        uint64_t key; /* of a subscription */
        uint8_t failure;
    } body;
};
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__cell) == 64, "one cache line");

static inline void *ebb__cell_payload(ebb__cell *c) {
    return c->flags & EBB__BLOCK ? c->body.block : c->body.bytes;
}

/* ---- machines ----------------------------------------------------------------------------------------------- */

/* A type in use. */
typedef struct ebb__machine_type {
    ebb_machine_type t; /* a copy, of this version */
    const ebb_machine_type *given;
    ebb__cells fields;
    struct ebb__machine_type *next;
    uint32_t number; /* in the order of first use, from 1 */
    bool plain;      /* no state has an exit, entry or invariant, and there is no settle */
} ebb__machine_type;

/* The part of a record that few machines need. */
typedef struct ebb__machine_more {
    uint32_t made, n_made;     /* its requests that it waits for */
    uint32_t held, n_held;     /* pendings whose capability it holds */
    uint32_t alarms, n_alarms; /* its timers, armed or expired and not handled */
    uint32_t subscriptions, n_subscriptions;
} ebb__machine_more;

/* Flags of a machine. */
enum {
    EBB__M_READY = 1,
    EBB__M_ENTER = 2,
    EBB__M_UNCOMMITTED = 4,
    EBB__M_PROXY = 8,  /* it stands for a machine of another runtime */
    EBB__M_SHUT = 16,  /* a proxy that is sent nothing any more: all its places are in use */
    EBB__M_PORTED = 32 /* it has a port */
};

typedef struct ebb__machine {
    uint32_t older; /* in the order of spawning; link of the free list */
    uint32_t generation;
    ebb__machine_type *type;
    void *fields;
    ebb__cell *last; /* of the mailbox: a ring, last->next is the first. NULL: empty */
    ebb__cell *mark; /* the last deferred cell; NULL: none is deferred */
    ebb__machine_more *more;
    uint32_t ready_next;
    uint16_t state;
    uint8_t lifecycle; /* ebb_machine_lifecycle */
    uint8_t flags;
    uint16_t places, mailbox; /* places in use or reserved, and how many there are */
    uint32_t newer;
} ebb__machine;
_Static_assert(sizeof(void *) != 8 || sizeof(ebb__machine) == 64, "one cache line");

enum { EBB__MACHINE_SHIFT = 12 };

/* What only those who look at a machine read. */
typedef struct ebb__machine_past {
    uint64_t spawned_at;
    uint32_t faults;  /* handlers that were rolled back; at most UINT32_MAX */
    uint32_t dropped; /* dead letters that were sent to it; at most UINT32_MAX */
} ebb__machine_past;

/* ---- pendings, alarms, subscriptions -------------------------------------------------------------------------- */

enum {
    EBB__WANTED = 1,     /* somebody waits for the answer, or has it in the mailbox */
    EBB__OWED = 2,       /* the responder owes a reply: the request is queued, handled or held */
    EBB__ENDED = 4,      /* the answer was delivered */
    EBB__STAGED = 8,     /* a reply is in the log */
    EBB__HELD = 16,      /* the responder holds the capability */
    EBB__SENT = 32,      /* the request was committed */
    EBB__TIMED = 64,     /* the answer may take `within` at most */
    EBB__CALL = 128,     /* from outside: `answered` is to be called with the answer */
    EBB__OVER_PORT = 256 /* a call that came over a link: `arg` is its ebb__port_call */
};
enum { EBB__REQUEST_UNWANTED = 8 }; /* how a request ended, beside ebb_request_failure and 0 for a reply */

/* One cache line: all that a request of a machine touches which has no timeout and is not held. */
typedef struct ebb__pending {
    uint32_t link, generation;
    uint32_t requester, responder; /* indices; requester 0: outside, or nobody any more */
    uint32_t made_next, made_prev;
    ebb__cell *answer; /* reserved for the answer; NULL once it was delivered */
    ebb__cell *origin; /* the request */
    ebb__node node;    /* armed: it has a timeout */
    uint32_t label;
    uint16_t flags;
} ebb__pending;
enum { EBB__PENDING_BYTES = 64 };
_Static_assert(sizeof(ebb__pending) <= EBB__PENDING_BYTES, "one cache line");

/* The rest of it. A field has a value only with the flag. */
typedef struct ebb__pending_more {
    uint32_t held_next, held_prev;                     /* EBB__HELD */
    ebb_obligation obligation;                         /* EBB__HELD */
    void (*answered)(void *arg, const ebb_message *m); /* EBB__CALL */
    void *arg;                                         /* EBB__CALL */
    uint64_t within;                                   /* EBB__TIMED */
    uint64_t order;                                    /* EBB__TIMED: of arming */
} ebb__pending_more;

typedef struct ebb__alarm {
    uint32_t link, generation;
    uint32_t machine;
    uint32_t next, prev; /* of the machine */
    ebb__node node;
    ebb__cell *cell; /* its expiry */
    uint64_t order;
} ebb__alarm;

/* A kind and key that somebody has subscribed to, or is about to. */
typedef struct ebb__topic {
    uint32_t link, generation;
    uint32_t next; /* with the same hash */
    uint32_t first, last;
    uint32_t staged; /* subscriptions in the log */
    uint64_t key;
    uint16_t kind;
} ebb__topic;

typedef struct ebb__subscription {
    uint32_t link, generation;
    uint32_t machine, topic;
    uint32_t next, prev;         /* of the topic */
    uint32_t own_next, own_prev; /* of the machine */
} ebb__subscription;

typedef struct ebb__port {
    uint32_t link, generation;
    uint32_t machine;    /* 0: it has ended */
    uint32_t next, prev; /* of the machine */
    uint16_t places;
    uint16_t queued;          /* messages in the mailbox that came through it */
    bool shut;                /* `shut` was called */
    bool gone;                /* `gone` was called */
    bool faulted;             /* how its machine has ended */
    const ebb__port_ops *ops; /* NULL: it is closed */
    void *arg;
    uint64_t id; /* of the machine */
} ebb__port;

/* ---- the runtime of machines ------------------------------------------------------------------------------------ */

enum { EBB__MACHINE_SLOT = 4 };  /* of ebb__layer */
enum { EBB__REFUSALS_KEPT = 8 }; /* refused sends that are kept for the hook in one dispatch */

typedef struct ebb__refusal {
    ebb_machine to;
    uint16_t kind;
} ebb__refusal;

/* Which part of a dispatch is running. */
typedef enum ebb__part { EBB__OUTSIDE = 0, EBB__BODY, EBB__EXIT, EBB__ENTRY } ebb__part;

struct ebb_machines {
    ebb_runtime *rt; /* NULL: the runtime was freed */
    ebb_cx *cx;      /* the dispatcher's; NULL: it has ended */

    /* the dispatch */
    ebb__machine *running; /* NULL: none */
    uint64_t self;         /* its id */
    ebb__cell *current;    /* the message; NULL: an entry at the start */
    ebb__cell *log, **log_end;
    unsigned char *shadow; /* the copy of the fields */
    void *next_fields;
    uint32_t running_index;
    uint32_t next_state;
    uint32_t staged_bytes, effects;
    ebb__part part;
    bool now_read;
    uint64_t now;
    ebb_message message;

    /* queues */
    uint32_t ready_first, ready_last, n_ready;
    uint32_t youngest; /* the machine that was spawned last */
    uint32_t n_machines;
    uint32_t open_ports;
    struct ebb__machine_set *set; /* its place in the ebb_runtime; NULL: that was freed */
    ebb__slab machines;
    ebb__cells cells, mores;
    ebb__slab pendings, alarms, topics, subscriptions, ports;
    ebb__map topic_of; /* hash of kind and key: the first topic */
    ebb__map port_of;  /* index of a machine: its first port */
    ebb__wheel wheel;
    uint64_t order; /* of the last timer */

    /* for hooks */
    ebb__cell *dead, **dead_end;       /* dead letters */
    ebb__cell *answers, **answers_end; /* answers to calls from outside */
    ebb__refusal refusal[EBB__REFUSALS_KEPT];
    uint32_t refusals;
    bool hooking; /* hooks are being called */
    bool faulted; /* for the hook of the dispatch */
    ebb_machine faulted_machine;
    ebb_status faulted_status;
    uint16_t faulted_kind;

    ebb_machines_opts opts;
    ebb_allocator allocator;
    ebb__arena arena;
    size_t shadow_size, shadow_old_size;
    unsigned char *
        shadow_old; /* the copy with which the running dispatch began, if `shadow` was enlarged since; else NULL */
    ebb__machine_type *types;
    uint32_t n_types;
    ebb_region region;
    ebb_task task;
    ebb_wait wait;
    ebb_timer timer; /* that wakes the dispatcher */
    uint64_t timer_due;
    uint64_t batch_polls;
    bool cancelled; /* drains by a cancel */
    bool stopping;  /* stops the machines, after a close */
    uint32_t queued;
    uint32_t request_generation; /* the first: requests of earlier runtimes of machines had lower ones */
    ebb_machines_stats stats;
};

/* A place for a runtime of machines. Its number is the upper bits of the generations of its machines and requests, so
 * that no two machines or requests of an ebb_runtime have the same id. It outlives its runtimes of machines, so that ids
 * are not used again. */
typedef struct ebb__machine_set {
    struct ebb__machine_layer *layer;
    ebb_machines *ms;                        /* NULL: free */
    uint32_t generation, request_generation; /* above those of all earlier machines, and requests */
    bool used_up;                            /* there are no generations left */
} ebb__machine_set;

/* Of one ebb_runtime. */
typedef struct ebb__machine_layer {
    uint64_t number;         /* of the last message: those of all its machines are in one order */
    uint32_t n;              /* places that were used */
    ebb_machines_stats gone; /* the counters of those that were freed */
    ebb_allocator allocator;
    ebb__machine_set sets[EBB_MACHINES_MAX];
} ebb__machine_layer;

enum { EBB__SET_SHIFT = 26 };
_Static_assert(EBB_MACHINES_MAX == 1u << (32 - EBB__SET_SHIFT), "the places that a generation can name");

/* The next generation is that of another place, so its slot is used no more. */
static inline bool ebb__generation_is_last(uint32_t generation) {
    return (generation + 1) << (32 - EBB__SET_SHIFT) == 0;
}

/* ---- registry.c ------------------------------------------------------------------------------------------------- */

/* A place for one more. EBB_ERR_LIMIT, EBB_ERR_NOMEM. */
ebb_status ebb__machine_set_of(ebb_runtime *rt, ebb__machine_set **out);
void ebb__machine_set_leave(ebb_machines *ms);
/* The runtimes of machines whose dispatcher lives, in the order of their places; NULL: the first. Returns NULL after the
 * last. */
ebb_machines *ebb__machines_next(const ebb_runtime *rt, const ebb_machines *after);
/* The sum of all, those that were freed included. */
void ebb__machines_total(const ebb_runtime *rt, ebb_machines_stats *out);
/* The one to which the id of a machine or request belongs; NULL: none that lives. */
ebb_machines *ebb__machines_of(const ebb_runtime *rt, uint64_t id);
/* The runtime of machines of a region, until it is freed: also one that has ended. NULL: there is none. */
ebb_machines *ebb__machines_in(const ebb_runtime *rt, ebb_region region);

/* ---- trace ------------------------------------------------------------------------------------------------------ */

void ebb__machine_note_slow(const ebb_machines *ms, uint8_t type, uint64_t task, uint64_t region,
                            uint32_t value, uint64_t other);
static inline void ebb__machine_note(const ebb_machines *ms, uint8_t type, uint64_t task, uint64_t region,
                                     uint32_t value, uint64_t other) {
    if (EBB__UNLIKELY(ms->rt != NULL && ebb__is_recorded(ms->rt)))
        ebb__machine_note_slow(ms, type, task, region, value, other);
}

/* ---- machine.c, type.c -------------------------------------------------------------------------------------------- */

static inline ebb__machine *ebb__machine_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at_as(&ms->machines, i, EBB__MACHINE_SHIFT, sizeof(ebb__machine));
}
static inline ebb__machine_past *ebb__machine_past_at(const ebb_machines *ms, uint32_t i) {
    char *rest = ms->machines.base[i >> EBB__MACHINE_SHIFT] + (sizeof(ebb__machine) << EBB__MACHINE_SHIFT);
    return (ebb__machine_past *)(void *)rest + (i & ((UINT32_C(1) << EBB__MACHINE_SHIFT) - 1));
}
/* Its id, also right after it has stopped. */
uint64_t ebb__machine_id(const ebb_machines *ms, uint32_t i);
/* The index of a machine that can be sent to, or an error. */
ebb_status ebb__machine_receiver_slow(const ebb_machines *ms, ebb_machine id);
static inline ebb_status ebb__machine_receiver(const ebb_machines *ms, ebb_machine id, uint32_t *index) {
    uint32_t i = *index = (uint32_t)(id.id >> 32) & 0xffffff;
    if (EBB__LIKELY(i - 1 < ms->machines.used - 1 && id.id >> 56 == ebb__rt_id(ms->rt))) {
        const ebb__machine *m = ebb__machine_at(ms, i);
        if (EBB__LIKELY(m->generation == (uint32_t)id.id && m->lifecycle <= EBB_MACHINE_RUNNING))
            return EBB_OK;
    }
    return ebb__machine_receiver_slow(ms, id);
}
/* NULL: no memory. */
ebb__machine_more *ebb__machine_more_of(ebb_machines *ms, ebb__machine *m);
void ebb__machine_started(ebb_machines *ms, uint32_t index);
/* The one place where a machine ends: by a stop or a fault. */
void ebb__machine_end(ebb_machines *ms, uint32_t index, ebb_machine_lifecycle how);
/* A machine that was spawned in a dispatch that is rolled back. */
void ebb__machine_unspawn(ebb_machines *ms, uint32_t index);
/* A message that will not be handled because its receiver ends; it was taken out of the mailbox. */
void ebb__cell_called_off(ebb_machines *ms, ebb__cell *c, uint64_t id, bool faulted);
/* Gives the slot of a stopped machine back; it is in no queue. */
void ebb__machine_retire(ebb_machines *ms, uint32_t index);
/* The type as it is used; NULL and *st: EBB_ERR_INVALID, EBB_ERR_VERSION, EBB_ERR_NOMEM. */
ebb__machine_type *ebb__machine_type_of(ebb_machines *ms, const ebb_machine_type *type, ebb_status *st);
void ebb__machine_types_free(ebb_machines *ms);

/* ---- cell.c ------------------------------------------------------------------------------------------------------- */

/* A cell with a copy of the payload. NULL and *st: EBB_ERR_LIMIT, EBB_ERR_INVALID, EBB_ERR_NOMEM. */
ebb__cell *ebb__cell_new(ebb_machines *ms, uint16_t kind, const void *payload, size_t size, ebb_status *st);
/* Puts a payload into a cell that has none. Errors as above. */
ebb_status ebb__cell_fill(ebb_machines *ms, ebb__cell *c, uint16_t kind, const void *payload, size_t size);
void ebb__cell_empty(ebb_machines *ms, ebb__cell *c); /* drops the payload */
void ebb__cell_free_slow(ebb_machines *ms, ebb__cell *c);
static inline void ebb__cell_free(ebb_machines *ms, ebb__cell *c) {
    if (EBB__UNLIKELY(c->flags & EBB__BLOCK || ms->opts.kinds != NULL)) ebb__cell_free_slow(ms, c);
    else ebb__cells_give(&ms->cells, c);
}
/* Makes a message a dead letter; `c` belongs to the list of dead letters from now on. The second form records nothing:
 * the trace has the rollback. */
void ebb__cell_dead(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_dead_reason why);
void ebb__dead_put(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_dead_reason why);

/* ---- mailbox.c ---------------------------------------------------------------------------------------------------- */

static inline ebb__cell *ebb__mailbox_next(const ebb__machine *m) {
    if (m->last == NULL || m->mark == m->last) return NULL;
    return m->mark != NULL ? m->mark->next : m->last->next;
}
/* Appends a message, and queues the machine. */
void ebb__mailbox_put(ebb_machines *ms, uint32_t index, ebb__machine *m, ebb__cell *c);
/* Takes the next message out. */
void ebb__mailbox_take(ebb_machines *ms, ebb__machine *m, ebb__cell *c);
void ebb__ready_push(ebb_machines *ms, uint32_t index, ebb__machine *m);
uint32_t ebb__ready_pop(ebb_machines *ms, uint32_t nth);

/* ---- effect.c ------------------------------------------------------------------------------------------------------ */

/* Each operation that stages an effect calls `enter` first and `leave` last. Outside of a dispatch `enter` checks that
 * the caller is admitted (`spawns`: for a spawn), and `leave` commits at once. */
ebb_status ebb__stage_enter(ebb_machines *ms, bool spawns);
void ebb__stage_leave(ebb_machines *ms);
static inline void ebb__stage(ebb_machines *ms, ebb__cell *c, ebb__what what, uint32_t to) {
    c->what = (uint8_t)what;
    c->to = to;
    c->from = ms->self;
    c->number = 0;
    c->next = NULL;
    *ms->log_end = c;
    ms->log_end = &c->next;
    ms->effects++;
}
void ebb__log_commit(ebb_machines *ms);
void ebb__log_rollback(ebb_machines *ms);
/* Undoes what was staged after `*from`. */
void ebb__log_undo(ebb_machines *ms, ebb__cell **from);
/* Calls the hooks for what has happened. */
void ebb__hooks_run(ebb_machines *ms);
static inline bool ebb__hooks_due(const ebb_machines *ms) {
    return ms->dead != NULL || ms->answers != NULL || ms->refusals > 0 || ms->faulted;
}
/* Returns `st` after it has counted and traced the refusal. */
ebb_status ebb__refuse(ebb_machines *ms, ebb_machine to, uint16_t kind, ebb_status st);

/* ---- pending.c ----------------------------------------------------------------------------------------------------- */

static inline ebb__pending_more *ebb__pending_more_at(const ebb_machines *ms, uint32_t i) {
    const ebb__slab *s = &ms->pendings;
    char *rest = s->base[i >> s->shift] + ((size_t)EBB__PENDING_BYTES << s->shift);
    return (ebb__pending_more *)(void *)rest + (i & ((UINT32_C(1) << s->shift) - 1));
}
static inline ebb__pending *ebb__pending_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at(&ms->pendings, i);
}
static inline uint64_t ebb__pending_id(const ebb_machines *ms, uint32_t i) {
    return ebb__id(ms->rt, i, ebb__pending_at(ms, i)->generation);
}
void ebb__pending_fail(ebb_machines *ms, uint32_t i, ebb_request_failure why); /* ends the wait for a reply */
void ebb__pending_unwant(ebb_machines *ms, uint32_t i);  /* the requester has its answer, or waits no more */
void ebb__pending_unowe(ebb_machines *ms, uint32_t i);   /* the responder owes nothing any more */
void ebb__pending_unstage(ebb_machines *ms, uint32_t i); /* a request that is rolled back */
void ebb__pending_unhold(ebb_machines *ms, uint32_t i, bool replied);
/* A capability is lost with its machine, or with the state that held it. */
void ebb__pending_lost(ebb_machines *ms, uint32_t i, ebb_request_failure why);
/* A call whose place the caller has. EBB_OK: `answered` will be called. */
ebb_status ebb__pending_call(ebb_machines *ms, uint32_t to, uint16_t kind, const void *payload, size_t size,
                             void (*answered)(void *arg, const ebb_message *m), void *arg);
void ebb__pending_commit_request(ebb_machines *ms, ebb__cell *c);
void ebb__pending_commit_forget(ebb_machines *ms, const ebb__cell *c);
void ebb__pending_commit_reply(ebb_machines *ms, ebb__cell *c);
void ebb__pending_rollback_reply(ebb_machines *ms, ebb__cell *c);
/* The runtime is being freed: calls from outside that were not answered end as STOPPED. */
void ebb__calls_end(ebb_machines *ms);
/* A request that will not be handled: fails, and becomes a dead letter. */
void ebb__request_dead(ebb_machines *ms, ebb__cell *c, uint64_t to, ebb_request_failure failure,
                       ebb_dead_reason why);

/* ---- port.c -------------------------------------------------------------------------------------------------------- */

extern const ebb_machine_rule ebb__proxy_rule;
/* Whether a proxy takes this message; and after it has found no place free, whether one is now. */
ebb_status ebb__proxy_admits(const ebb_machines *ms, const ebb__machine *m, uint16_t kind, size_t size);
ebb_status ebb__proxy_looks_again(ebb__machine *m);
/* EBB_OK: a message of this kind may be sent to this machine. */
static inline ebb_status ebb__has_place(const ebb_machines *ms, ebb__machine *m, uint16_t kind, size_t size) {
    if (EBB__UNLIKELY(m->flags & EBB__M_PROXY)) {
        ebb_status st = ebb__proxy_admits(ms, m, kind, size);
        if (st != EBB_OK) return st;
    }
    if (EBB__LIKELY(m->places < m->mailbox)) return EBB_OK;
    return m->flags & EBB__M_PROXY ? ebb__proxy_looks_again(m) : EBB_ERR_MAILBOX_FULL;
}
/* A cell with EBB__PORTED has left its mailbox. */
void ebb__port_taken(ebb_machines *ms, const ebb__cell *c);
/* The machine has ended. */
void ebb__ports_ended(ebb_machines *ms, uint32_t machine, bool faulted);
/* The machines drain: true while a port is open. */
bool ebb__ports_drain(ebb_machines *ms);
/* The machines end without waiting for ports. */
void ebb__ports_gone(ebb_machines *ms);

/* ---- timer.c -------------------------------------------------------------------------------------------------------- */

enum { EBB__WHEEL_PENDING = 0, EBB__WHEEL_ALARM = 1 };

static inline ebb__alarm *ebb__alarm_at(const ebb_machines *ms, uint32_t i) {
    return ebb__slab_at(&ms->alarms, i);
}
void ebb__alarm_commit(ebb_machines *ms, ebb__cell *c);
void ebb__alarm_free(ebb_machines *ms, uint32_t i);      /* its record; the cell is the caller's */
void ebb__alarms_end(ebb_machines *ms, ebb__machine *m); /* the state has changed */
void ebb__timeout_arm(ebb_machines *ms, uint32_t pending);
void ebb__timers_fire(ebb_machines *ms, uint64_t now);
/* Makes sure that the dispatcher is woken at the next expiry. EBB_ERR_NOMEM. */
ebb_status ebb__timers_sleep(ebb_machines *ms);

/* ---- subscription.c --------------------------------------------------------------------------------------------------- */

void ebb__subscribe_commit(ebb_machines *ms, ebb__cell *c);
void ebb__subscribe_rollback(ebb_machines *ms, ebb__cell *c);
void ebb__unsubscribe_commit(ebb_machines *ms, const ebb__cell *c);
void ebb__subscriptions_end(ebb_machines *ms, ebb__machine *m);

/* ---- dispatch.c, dispatcher.c -------------------------------------------------------------------------------------------- */

/* One turn of a machine: one message, or its entry. */
void ebb__turn(ebb_machines *ms, uint32_t index);
ebb_status ebb__dispatcher_poll(ebb_cx *cx, void *state);
void ebb__dispatcher_wake(ebb_machines *ms);
/* A unit of work has closed, for which a drain may wait. */
void ebb__dispatcher_unit_closed(ebb_machines *ms);
bool ebb__dispatcher_waits_for_units(const ebb_machines *ms);

#endif
