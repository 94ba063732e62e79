/* durable/store.h - the one layer between the callers of a store (workers, clients, the suite) and its provider.
 *
 * Here are: the handle, calls as futures, the limit of what is queued and the reserve of acks, the repetition of acks whose
 * outcome is unknown, the hints, and the points where a test fails the n-th call. Providers have none of this.
 *
 * A call as a future:
 *
 *     ebb_provider_send_call *c = ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_SEND);
 *     c->id = ebb__call_text(&c->call, id);
 *     st = ebb_await(cx, ebb__call_begin(cx, &c->call, EBB_SITE), &v);
 *     c = ebb__call_of(&v);                        // NULL unless st is EBB_OK
 *     if (c->call.status != EBB_OK) ...            // how the provider ended it, with call.text
 *     ebb_value_discard(cx, v);                    // frees the call
 *
 * The future completes whenever the provider has answered, whatever the answer: call.status has it. It fails if the
 * provider was not asked: EBB_ERR_BUSY, EBB_ERR_CLOSED, EBB_ERR_NOMEM. If it is cancelled, the call goes on to its end,
 * and the store's region waits for that.
 *
 * Invariants: a call is made, begun, done and freed, in this order, each once. `begun` counts the calls between begin and
 * done; it is 0 when the provider is closed. A call past `queued` of the class that gives way is never begun. */
#ifndef EBB_DURABLE_STORE_H
#define EBB_DURABLE_STORE_H

#include <pthread.h>

#include <ebb/provider.h>

#include "base/arena.h"
#include "durable/provider.h"
#include "future/remote.h"

/* Who gives way when the queue is full: starts, signals, reads and fetches are refused; acks, abandons, renewals,
 * cancels, marks and leaves have the reserve, and wait when even that is used. */
typedef enum ebb__call_class { EBB__CALL_YIELDS = 0, EBB__CALL_RESERVED = 1 } ebb__call_class;

/* A row for each ebb_provider_op: its name in texts and traces, the bytes of its struct, its class, whether it may be
 * repeated as it is when its outcome is unknown, and who passes it to the provider. */
typedef struct ebb__call_type {
    const char *name;
    size_t bytes;
    ebb__call_class of;
    bool repeatable;
    void (*ask)(const ebb_provider *p, void *self, ebb_provider_call *c);
} ebb__call_type;
extern const ebb__call_type ebb__call_types[EBB_PROVIDER_OPS];

/* ---- faults, for tests and the lab ---------------------------------------------------------------------------- */

typedef enum ebb__store_fault {
    EBB__FAULT_NONE = 0,
    EBB__FAULT_BEFORE = 1,     /* the provider is not asked: EBB_ERR_UNAVAILABLE */
    EBB__FAULT_LOST_REPLY = 2, /* the provider is asked, and its answer is lost: EBB_ERR_UNAVAILABLE */
    EBB__FAULT_CRASH_BEFORE =
        3, /* not asked; `crash` is called, and no call of this store is answered any more */
    EBB__FAULT_CRASH_AFTER = 4 /* asked; the same after the answer */
} ebb__store_fault;
/* Asked for every call, counted from 0. NULL: no faults. */
typedef struct ebb__store_faults {
    ebb__store_fault (*at)(void *arg, uint64_t n, const ebb_provider_call *c);
    void (*crash)(void *arg);
    void *arg;
} ebb__store_faults;

/* ---- calls -------------------------------------------------------------------------------------------------- */

/* What a call needs of its store. A store has one, and is not freed before `begun` is 0. Invariants: `begun` is at most
 * `most` + `reserve`; calls wait only while `begun` has reached that; all of it is the loop's thread's. */
typedef struct ebb__call_gate {
    const ebb_provider *provider;
    void *self;      /* the provider's */
    ebb__heap *heap; /* of the runtime; the store has a reference */
    ebb_runtime *runtime;
    ebb_allocator allocator;
    uint32_t most, reserve, begun;
    uint32_t sleeping;         /* calls in a pause before they are asked again; they are not in `begun` */
    bool closed;               /* no call is begun but the store's own */
    ebb_provider_call *asleep; /* these, by `next` */
    ebb__call_queue waiting;   /* for `begun` to fall */
    ebb__call_queue dead;      /* that a crash left without an answer */
    bool admitting;
    uint32_t inside;                 /* answers that are being handed over: the gate is not freed meanwhile */
    const ebb__store_faults *faults; /* NULL: none */
    uint64_t calls;                  /* begun so far, for `faults` */
    bool crashed;                    /* by a fault: calls are not answered any more */
    /* Called last when `begun` and `sleeping` have fallen to 0, and may free the gate. NULL: not called */
    void (*idle)(struct ebb__call_gate *g);
} ebb__call_gate;

/* A zeroed call with `op` set, of ebb__call_types[op].bytes, with an arena of its own. NULL: no memory. */
void *ebb__call_new(ebb__call_gate *g, ebb_provider_op op);
/* Memory of the call, for what it asks. NULL: no memory; begin then fails with EBB_ERR_NOMEM, so that callers check once. */
void *ebb__call_room(ebb_provider_call *c, size_t n);
void ebb__call_nomem(ebb_provider_call *c);                         /* as if there had been none */
const char *ebb__call_text(ebb_provider_call *c, const char *text); /* a copy; NULL is "" */
ebb_blob ebb__call_blob(ebb_provider_call *c, ebb_blob b);          /* a copy */
/* Ends the pauses: `closed` is set, and these calls end as they last did. */
void ebb__call_gate_wake(ebb__call_gate *g);
/* Calls `idle` if nothing is begun; the gate may be gone afterwards. */
void ebb__call_gate_rest(ebb__call_gate *g);
/* Frees what a crash has left. No call is begun. */
void ebb__call_gate_fini(ebb__call_gate *g);
/* Asks the provider, and consumes the call, whatever happens. */
ebb_future *ebb__call_begin(ebb_cx *cx, ebb_provider_call *c, const char *site);
/* The same, and asks again with the same call after a retryable failure: after 10 ms, twice as long each time up to 1 s,
 * until it is done, fails for good, or `until` (ebb_now; EBB_FOREVER) has passed. For repeatable calls. */
ebb_future *ebb__call_insist(ebb_cx *cx, ebb_provider_call *c, uint64_t until, const char *site);
/* For the store's own open and close: asks at once, past every limit and fault. `ended` is called on the loop's thread; the
 * call is freed after it. */
void ebb__call_ask(ebb_provider_call *c, void (*ended)(void *arg, ebb_provider_call *c), void *arg);
/* The call in the value of its future. NULL: another value. Freed with the value. */
void *ebb__call_of(const ebb_value *v);
/* Frees a call that was not begun. */
void ebb__call_free(ebb_provider_call *c);

/* Who wants to hear hints: a worker, a wait for an end. Called on the loop's thread, by ebb_inbox_receive: a runtime
 * without a loop has to call that. A listener may unlisten itself or others. */
typedef struct ebb__hint_listener {
    struct ebb__hint_listener *next, *prev,
        **list; /* `list`: the first of those that it is one of; NULL: it does not listen */
    void (*hint)(void *arg, const ebb_provider_hint *h);
    void (*awaited)(void *arg); /* other instances are waited for than before. NULL: not called */
    void (*closed)(void *arg);  /* the store is being closed: it listens no more. NULL: not called */
    void *arg;
} ebb__hint_listener;
void ebb__store_listen(ebb_store *s, ebb__hint_listener *l);
/* For the end of one instance alone: ENDED of `key`, and LOST. With key 0 it is not known yet; then ends are to be counted
 * by ebb__store_ends. Called again, it listens for another key. */
void ebb__store_listen_for(ebb_store *s, ebb__hint_listener *l, uint64_t key);
uint64_t ebb__store_ends(const ebb_store *s); /* hints of ends that listeners were told so far */
void ebb__store_unlisten(ebb_store *s, ebb__hint_listener *l);

/* An instance that a unit of work waits for: a worker that is closing goes on with it. */
typedef struct ebb__awaited {
    struct ebb__awaited *next, *prev;
    uint64_t key; /* 0: not known yet */
} ebb__awaited;
void ebb__store_await(ebb_store *s, ebb__awaited *a);
void ebb__store_await_key(ebb_store *s, ebb__awaited *a, uint64_t key);
void ebb__store_unawait(ebb_store *s, ebb__awaited *a);
bool ebb__store_is_awaited(const ebb_store *s);           /* any instance is */
bool ebb__store_knows_awaited(const ebb_store *s);        /* and its key is known */
bool ebb__store_awaits(const ebb_store *s, uint64_t key); /* this one is */
/* The keys that are known, each once, in memory of the call; 0: there are none, or no memory. */
size_t ebb__store_awaited(const ebb_store *s, ebb_provider_call *c, const uint64_t **keys);

ebb__call_gate *ebb__store_gate(ebb_store *s);
/* What its provider was given: its clocks and its random numbers, for tokens (ebb__token_new). */
const ebb_provider_host *ebb__store_host(const ebb_store *s);
/* Hints between providers' threads and listeners. They wait in one buffer, as records with their text behind them. Past
 * EBB__HINT_BYTES, or without memory, they are dropped, and listeners get LOST instead. */
#define EBB__HINT_BYTES (4u << 20)
#define EBB__HINT_LISTS 256
typedef struct ebb__hint_buffer {
    uint8_t *at;
    size_t n, room;
} ebb__hint_buffer;
typedef struct ebb__hints {
    ebb__message posted; /* to the loop's thread, while `waits` */
    pthread_mutex_t lock;
    ebb_allocator allocator;
    ebb__heap *heap;
    ebb__hint_buffer buffer; /* guarded by `lock`, as the two below */
    bool waits, lost;
    bool dead; /* the store is gone: `freed` is called when no message waits. The loop's thread's */
    ebb__hint_listener *listeners, *next;        /* `next`: that is told after this one */
    ebb__hint_listener *of_key[EBB__HINT_LISTS]; /* those for the end of one instance, by a hash of its key */
    uint64_t ends;
    void (*freed)(struct ebb__hints *h);
} ebb__hints;
ebb_status ebb__hints_init(ebb__hints *h, ebb_allocator a, ebb__heap *heap, void (*freed)(ebb__hints *h));
/* Any thread. */
void ebb__hints_add(ebb__hints *h, const ebb_provider_hint *hint);
/* Calls `freed`, now or when the last message was received. */
void ebb__hints_end(ebb__hints *h);
void ebb__hints_listen(ebb__hints *h, ebb__hint_listener *l);
void ebb__hints_listen_for(ebb__hints *h, ebb__hint_listener *l, uint64_t key);
void ebb__hints_unlisten(ebb__hints *h, ebb__hint_listener *l);
/* Other instances are awaited; and: the store is being closed, and has no listeners from now on. */
void ebb__hints_tell_awaited(ebb__hints *h);
void ebb__hints_tell_closed(ebb__hints *h);

ebb_region ebb__store_region(const ebb_store *s);
const ebb_provider *ebb__store_provider(const ebb_store *s);
const ebb_store_opts *ebb__store_opts_of(const ebb_store *s);
void ebb__store_stats(const ebb_store *s, ebb_provider_stats *out);
/* An open worker keeps the store from being closed by ebb_store_close. */
void ebb__store_hold(ebb_store *s);
void ebb__store_unhold(ebb_store *s);

/* ebb_durable_error: sets the text of the last failure on this thread, and returns the status. */
ebb_status ebb__durable_say(ebb_status st, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Copies options; a version that this library does not know is said. */
#define EBB__DURABLE_OPTS(to, from) ebb__durable_options(EBB__OPTS_COPY(to, from))
ebb_status ebb__durable_options(ebb_status st);
/* That text for the future of the operation, if it was said of this status; else "". EBB_ERR_NOMEM has none. */
const char *ebb__durable_said(ebb_status st);
/* A failed future with it. */
ebb_future *ebb__durable_future_failed(ebb_cx *cx, ebb_status st, const char *site);

/* `f` (NULL: none) must stay valid as long as it is set. */
void ebb__store_set_faults(ebb_store *s, const ebb__store_faults *f);

#endif
