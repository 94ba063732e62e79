/* ebb/sched.h - the scheduler: the pump, timers, stackless tasks, channels, broadcasts, semaphores, and messages
 * between runtimes.
 *
 * The rules at the head of ebb/kernel.h apply. */
#ifndef EBB_SCHED_H
#define EBB_SCHED_H

#include <ebb/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pump --------------------------------------------------------------------------------------- */

/* Sets the time. An earlier time is ignored: time never goes back. Timers fire in the next pump. */
void ebb_runtime_advance(ebb_runtime *rt, uint64_t now);

/* Fires the timers that are due and polls at most `max_polls` tasks from three lanes: cancel (by cleanup deadline),
 * timed (by deadline), ready (first come, first served). When all lanes have work the cycle is 8 : 1 : 1, so the head
 * of a lane waits for at most 2, 9 and 9 polls of the other lanes. EBB_PENDING: there is more to do at this time.
 * EBB_OK: nothing to do until a wake-up, a cancel or an advance of the time. EBB_ERR_REENTERED: called inside a pump;
 * nothing was done, and the outer pump does the work. May allocate, but does not fail without memory. */
ebb_status ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls);

/* Returns when the pump has something to do if nothing else happens: now, a later time, or EBB_FOREVER. */
uint64_t ebb_runtime_next_due(const ebb_runtime *rt);

/* ---- timers ------------------------------------------------------------------------------------- */

typedef struct ebb_timer {
    uint64_t id;
} ebb_timer;

/* Arms a timer that wakes `task` once, at the first millisecond that is not before `due`. Returns its id, or an id that
 * carries EBB_ERR_NOMEM, EBB_ERR_STALE (the task has ended) or EBB_ERR_FOREIGN. The id is stale once the timer has
 * fired. A timer outlives its task: it fires without effect, unless it is disarmed. */
ebb_timer ebb_timer_arm(ebb_cx *cx, ebb_task task, uint64_t due);
/* Disarms a timer. EBB_ERR_STALE: it has fired or was disarmed. */
ebb_status ebb_timer_disarm(ebb_cx *cx, ebb_timer timer);

/* The state of an ebb_sleep. Zero it before the first use; after that it can be used again. */
typedef struct ebb_sleeper {
    ebb_wait wait;
    ebb_timer timer;
    uint64_t due; /* when the sleep ends */
} ebb_sleeper;

/* Waits for `span` nanoseconds. A poll operation and a checkpoint. EBB_ERR_NOT_TASK: the host. EBB_ERR_NOMEM: no memory
 * for the timer. */
ebb_status ebb_sleep(ebb_cx *cx, ebb_sleeper *s, uint64_t span);

/* ---- stackless tasks ------------------------------------------------------------------------------ */

/* A poll function written as if it could wait:
 *
 *     typedef struct { EBB_TASK_STATE; ebb_sleeper nap; int n; } hello;
 *     static ebb_status hello_poll(ebb_cx *cx, void *state) {
 *         hello *h = state;
 *         ebb_status st;
 *         EBB_BEGIN(h);
 *         for (h->n = 0; h->n < 3; h->n++) {
 *             EBB_AWAIT(h, st, ebb_sleep(cx, &h->nap, 10 * EBB_MS));
 *             if (st != EBB_OK) return st;
 *         }
 *         EBB_END(h);
 *     }
 *
 * Variables that must survive an EBB_AWAIT belong in the state: locals do not survive. EBB_AWAIT must not be inside a
 * switch of your own. EBB_YIELD lets other tasks run first. EBB_END returns EBB_OK. */
#define EBB_TASK_STATE unsigned ebb_line
#define EBB_BEGIN(s)                                                                                         \
    switch ((s)->ebb_line) {                                                                                 \
    case 0:
#define EBB_AWAIT(s, st, operation)                                                                          \
    do {                                                                                                     \
        (s)->ebb_line = __LINE__;                                                                            \
        EBB_FALLTHROUGH;                                                                                     \
    case __LINE__:                                                                                           \
        if (((st) = (operation)) == EBB_PENDING) return EBB_PENDING;                                         \
    } while (0)
#define EBB_YIELD(cx, s)                                                                                     \
    do {                                                                                                     \
        (s)->ebb_line = __LINE__;                                                                            \
        (void)ebb_task_wake((cx), ebb_cx_task(cx));                                                          \
        return EBB_PENDING;                                                                                  \
    case __LINE__:;                                                                                          \
    } while (0)
#define EBB_END(s)                                                                                           \
    }                                                                                                        \
    (s)->ebb_line = 0;                                                                                       \
    return EBB_OK
#if defined(__GNUC__)
#define EBB_FALLTHROUGH __attribute__((fallthrough))
#else
#define EBB_FALLTHROUGH (void)0
#endif

/* ---- channel -------------------------------------------------------------------------------------- */

/* A bounded queue of items of one size between tasks of one runtime, with backpressure. Sending has two phases: reserve
 * a place, then send into it. An item that could not be sent stays with the sender. Receiving is cancel-safe: an item
 * is either delivered or still in the queue. Waiters are served first come, first served. The host may send and receive
 * too, but cannot wait: it gets EBB_ERR_NOT_TASK instead of EBB_PENDING. */
typedef struct ebb_chan ebb_chan;

/* Make and free a channel. EBB_ERR_NOMEM; EBB_ERR_INVALID: capacity 0, or 2 GiB of items or more. Free it after the
 * region of the tasks that use it has closed, before or after ebb_runtime_free. Futures of the channel
 * (ebb_chan_recv_future) may still exist: a pending one fails with EBB_ERR_CLOSED. NULL is allowed. */
ebb_status ebb_chan_new(ebb_runtime *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out);
void ebb_chan_free(ebb_chan *ch);

/* Waits for a place and sends a copy of `item`. A poll operation and a checkpoint. EBB_ERR_CLOSED: the channel is
 * closed. After EBB_ERR_CLOSED or EBB_CANCELLED the item was not sent. */
ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item);
/* Waits for an item and receives it into `item`. A poll operation and a checkpoint. EBB_ERR_CLOSED: the channel is
 * closed and empty. */
ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item);

/* Send and receive without waiting, in any context. They are no checkpoints. EBB_PENDING: the channel is full, or has
 * no item that is not granted to a waiter; nothing was sent or received. EBB_ERR_CLOSED: it is closed, and to receive
 * from also empty. */
ebb_status ebb_chan_try_send(ebb_cx *cx, ebb_chan *ch, const void *item);
ebb_status ebb_chan_try_recv(ebb_cx *cx, ebb_chan *ch, void *item);

/* Sending in two phases. ebb_chan_reserve waits for a place; a poll operation and a checkpoint, with the errors of
 * ebb_chan_send and ebb_obligation_reserve. The reserved place is an obligation of the task (EBB_OBLIGATION_PERMIT):
 * send with it, or abort it. If the task ends first, the obligation leaks and the place is free again. Do not commit it
 * with ebb_obligation_commit: that resolves it without sending, and the place is lost. ebb_chan_send_reserved does not
 * wait. EBB_ERR_CLOSED: the channel is closed; the item was not sent, and the permit is aborted. EBB_ERR_RESOLVED: the
 * permit was used or aborted before. EBB_ERR_INVALID: `permit` is not one of this channel. */
ebb_status ebb_chan_reserve(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, ebb_obligation *permit);
ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item);

/* Closes the channel for sending and wakes all waiters. Items in the channel can still be received. Idempotent. */
void ebb_chan_close(ebb_cx *cx, ebb_chan *ch);
/* Returns the number of items in the channel. */
uint32_t ebb_chan_length(const ebb_chan *ch);

/* ---- broadcast ------------------------------------------------------------------------------------ */

/* The latest value of something, with a version, for any number of watchers in one runtime: a configuration, a state, a
 * list of members. A watcher names the last version that it has seen and gets the latest value, as soon as that is
 * newer. A watcher that is fast enough sees every value; a slow one misses values in between, never the last. */
typedef struct ebb_broadcast ebb_broadcast;

/* Make and free a broadcast of values of `item_size` bytes. It has no value yet, and the version 0. EBB_ERR_NOMEM;
 * EBB_ERR_INVALID: 2 GiB or more. Free it after the region of the tasks that use it has closed, before or after
 * ebb_runtime_free. Futures that wait for it may still exist: they fail with EBB_ERR_CLOSED. NULL is allowed. */
ebb_status ebb_broadcast_new(ebb_runtime *rt, uint32_t item_size, ebb_broadcast **out);
void ebb_broadcast_free(ebb_broadcast *b);

/* Sets the value, a copy of `item`, and wakes all watchers. Never waits. EBB_ERR_CLOSED: nothing was set. */
ebb_status ebb_broadcast_set(ebb_cx *cx, ebb_broadcast *b, const void *item);
/* Copies the latest value to `item` and returns its version, 1 for the first. 0: there is none, and `item` is
 * unchanged. */
uint64_t ebb_broadcast_get(const ebb_broadcast *b, void *item);
/* Waits for a version after `*seen`, copies the latest value to `item` and stores its version in `*seen`. A poll
 * operation and a checkpoint; after EBB_CANCELLED `*seen` is unchanged. EBB_ERR_CLOSED: closed, and nothing newer.
 * EBB_ERR_INVALID: `*seen` is no version of it yet. EBB_ERR_NOT_TASK: the host would have to wait. */
ebb_status ebb_broadcast_next(ebb_cx *cx, ebb_broadcast *b, ebb_wait *w, uint64_t *seen, void *item);
/* No more values will come. Watchers still get a value that they have not seen. Idempotent. */
void ebb_broadcast_close(ebb_cx *cx, ebb_broadcast *b);

/* ---- semaphore ------------------------------------------------------------------------------------ */

/* Counted permits. Waiters are served first come, first served. If a waiter is cancelled after it was granted a permit,
 * the permit goes to the next waiter. A semaphore allocates nothing and needs no free. It must stay
 * valid as long as a task or future waits for it, or a claim of it (ebb_sem_acquire_future) exists. */
typedef struct ebb_sem {
    uint32_t free;          /* permits that nobody has */
    ebb_wait *first, *last; /* the waiters */
} ebb_sem;

void ebb_sem_init(ebb_sem *s, uint32_t permits);
/* Waits for a permit and takes it. A poll operation and a checkpoint; after EBB_CANCELLED no permit was taken.
 * EBB_ERR_NOT_TASK: the host would have to wait. */
ebb_status ebb_sem_acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w);
/* Gives a permit back: to the first waiter, if there is one. Any task or the host may call it. */
void ebb_sem_release(ebb_cx *cx, ebb_sem *s);

/* ---- messages between runtimes --------------------------------------------------------------------- */

/* What a message does in the runtime that receives it. The host carries messages from one runtime to another: the lab
 * and loops do. A message takes effect in ebb_msg_deliver, which also writes it to the receiver's journal. */
typedef enum ebb_msg_verb {
    EBB_MSG_WAKE = 1,
    EBB_MSG_CANCEL = 2,
    EBB_MSG_CLOSE = 3,
    EBB_MSG_FORCE = 4,
    EBB_MSG_WORD = 5
} ebb_msg_verb;

typedef struct ebb_msg {
    ebb_msg_verb verb;
    ebb_cancel_kind kind; /* of EBB_MSG_CANCEL */
    uint64_t target;      /* a task (all but close) or region (all but wake) of the receiver */
    bool to_region;       /* `target` is a region */
    uint64_t word;        /* data for the receiver; written to its trace and journal */
    uint64_t left;  /* cancel of a region: ns to clean up. EBB_FOREVER: no bound. 0: the default budget */
    uint32_t polls; /* with `left`: polls of each of the region's tasks */
    char message[EBB_MESSAGE_MAX + 1]; /* of EBB_MSG_CANCEL */
} ebb_msg;

/* Applies a message to `rt`. A message of EBB_MSG_WORD wakes its task; to a region it is only recorded.
 * EBB_ERR_FOREIGN: the target belongs to another runtime. EBB_ERR_INVALID: an unknown verb, a wake-up of a region, a
 * close of a task, or a target that carries an error. A stale target is counted as a stale wake-up; the result is
 * EBB_OK. */
ebb_status ebb_msg_deliver(ebb_runtime *rt, const ebb_msg *msg);

#ifdef __cplusplus
}
#endif
#endif
