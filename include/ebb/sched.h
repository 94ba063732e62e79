/* ebb/sched.h - what runs next: the pump, timers, stackless tasks, channels, semaphores, and messages
 * between runtimes.
 *
 * The rules at the head of ebb/kernel.h hold here too. */
#ifndef EBB_SCHED_H
#define EBB_SCHED_H

#include <ebb/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pump --------------------------------------------------------------------------------------- */

/* Sets the time; it never goes back (an earlier one is ignored). Timers fire in the next pump. */
void ebb_runtime_advance(ebb_runtime *rt, uint64_t now);

/* Fires timers that are due and polls at most `max_polls` tasks, in three lanes: cancel (by cleanup
 * deadline), timed (by deadline), ready (first come, first served). When all have work the cycle is
 * 8 : 1 : 1, so the head of a lane waits for at most 2, 9 and 9 polls of the other lanes.
 * EBB_PENDING: there is more to do at this time; EBB_OK: nothing until somebody wakes, cancels or
 * advances. EBB_ERR_REENTERED from inside a poll: nothing was done, the work waits for the pump that
 * runs. May allocate, but does not fail without memory. */
ebb_status ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls);

/* When the pump has something to do if nothing else happens: now, a time, or EBB_FOREVER. */
uint64_t ebb_runtime_next_due(const ebb_runtime *rt);

/* ---- timers ------------------------------------------------------------------------------------- */

/* Wakes `task` once, at the first millisecond that is not before `due`. The id is spent when it has
 * fired. A timer does not end with its task: it fires and wakes nobody, unless it is disarmed.
 * EBB_ERR_NOMEM, EBB_ERR_STALE, EBB_ERR_FOREIGN as an id that carries the error. */
typedef struct ebb_timer {
    uint64_t id;
} ebb_timer;
ebb_timer ebb_timer_arm(ebb_cx *cx, ebb_task task, uint64_t due);
/* EBB_ERR_STALE if it has fired or was disarmed. */
ebb_status ebb_timer_disarm(ebb_cx *cx, ebb_timer timer);

/* Waits for a time span. A poll operation and a checkpoint; `s` is zeroed before and reusable after. */
typedef struct ebb_sleeper {
    ebb_wait wait;
    ebb_timer timer;
    uint64_t due;
} ebb_sleeper;
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
 * What must live across an EBB_AWAIT stands in the state, not in locals. No EBB_AWAIT inside a switch
 * of your own. EBB_YIELD lets others run first. EBB_END returns EBB_OK. */
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

/* A bounded queue of items of one size between tasks of one runtime. Sending has two phases: reserve
 * a place, then send into it; what could not be sent is still yours. Receiving is cancel-safe: an
 * item is delivered or still in the queue. Waiters are served first come, first served. The host may
 * send and receive too, but can't wait: EBB_ERR_NOT_TASK instead of EBB_PENDING. */
typedef struct ebb_chan ebb_chan;

/* EBB_ERR_NOMEM, EBB_ERR_INVALID (capacity 0, or more than 2 GiB of items). Free it when no task can touch
 * it any more: after the region of the tasks that do has closed, before or after ebb_runtime_free. */
ebb_status ebb_chan_new(ebb_runtime *rt, uint32_t capacity, uint32_t item_size, ebb_chan **out);
void ebb_chan_free(ebb_chan *ch);

/* Sends a copy of an item, waiting for a place. A poll operation and a checkpoint. EBB_ERR_CLOSED
 * once the channel is closed; the item was not sent then, nor if EBB_CANCELLED. */
ebb_status ebb_chan_send(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, const void *item);
/* Receives into `item`. EBB_ERR_CLOSED once it is closed and empty. */
ebb_status ebb_chan_recv(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, void *item);

/* The two phases by themselves. A reserved place is an obligation of the task (EBB_OBLIGATION_PERMIT): send with
 * it, or abort it; a task that ends with one has leaked it, and the place is free again. (ebb_obligation_commit
 * would resolve it without sending: the place would be lost.) */
ebb_status ebb_chan_reserve(ebb_cx *cx, ebb_chan *ch, ebb_wait *w, ebb_obligation *permit);
ebb_status ebb_chan_send_reserved(ebb_cx *cx, ebb_chan *ch, ebb_obligation permit, const void *item);

/* No more sending; what is in it can still be received. Wakes everybody. */
void ebb_chan_close(ebb_cx *cx, ebb_chan *ch);
uint32_t ebb_chan_length(const ebb_chan *ch);

/* ---- semaphore ------------------------------------------------------------------------------------ */

/* Counted permits. First come, first served; a permit that was granted to a waiter which is then
 * cancelled goes to the next. */
typedef struct ebb_sem {
    uint32_t free;
    ebb_wait *first, *last;
} ebb_sem;

void ebb_sem_init(ebb_sem *s, uint32_t permits);
/* A poll operation and a checkpoint. EBB_ERR_NOT_TASK if the host would have to wait. */
ebb_status ebb_sem_acquire(ebb_cx *cx, ebb_sem *s, ebb_wait *w);
void ebb_sem_release(ebb_cx *cx, ebb_sem *s);

/* ---- messages between runtimes --------------------------------------------------------------------- */

/* What one runtime may ask of another. Carrying it there is the host's business (the lab's, a
 * loop's); it takes effect when the receiver takes it in, and stands in the receiver's journal. */
typedef enum ebb_msg_verb {
    EBB_MSG_WAKE = 1,
    EBB_MSG_CANCEL = 2,
    EBB_MSG_CLOSE = 3,
    EBB_MSG_FORCE = 4,
    EBB_MSG_WORD = 5
} ebb_msg_verb;

typedef struct ebb_msg {
    ebb_msg_verb verb;
    ebb_cancel_kind kind;
    uint64_t target; /* a task (wake, cancel, force) or region (all but wake) of the receiver */
    bool to_region;
    uint64_t word;  /* for whoever is woken */
    uint64_t left;  /* of a cancelled region: ns to clean up, EBB_FOREVER: no bound. 0: the table's budget */
    uint32_t polls; /* with that: of each of its tasks */
    char message[EBB_MESSAGE_MAX + 1];
} ebb_msg;

/* Takes a message in. EBB_ERR_FOREIGN if it is for somebody else; EBB_ERR_INVALID; stale targets are
 * counted, like any late wake. */
ebb_status ebb_msg_deliver(ebb_runtime *rt, const ebb_msg *msg);

#ifdef __cplusplus
}
#endif
#endif
