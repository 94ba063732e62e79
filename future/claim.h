/* Futures that wait in a queue of something else: a channel, a semaphore, a bridge, a broadcast.
 *
 * The future is a waiter of that queue (sched/waiters.h). Invariant: `wait.on` is not NULL while the waiter is in the
 * queue; then the future keeps what it waits for, and is pending or has yet to be finished. The end of the future, by
 * whatever way, takes it out of the queue without running code of the program. */
#ifndef EBB__FUTURE_CLAIM_H
#define EBB__FUTURE_CLAIM_H

#include "future/future.h"
#include "sched/waiters.h"

typedef struct ebb__claimer {
    ebb_future future;
    ebb_wait wait;
} ebb__claimer;

typedef struct ebb__claim_kind {
    ebb__kind kind; /* of the future */
    /* As sched/claim.h says. */
    ebb_status (*join)(void *on, ebb_wait *w);
    void (*leave)(void *on, ebb_wait *w);
    void (*keep)(void *on), (*release)(void *on); /* NULL: it needs no count */
    /* The value of the future: a word with this type, which keeps `on` as the future did; or, if that is NULL, what
     * `value` returns. */
    const ebb_type *claim;
    ebb_value (*value)(const void *on);
} ebb__claim_kind;

void ebb__claim_leave(ebb_future *f);
bool ebb__claim_cancelled(ebb__region_futures *s, ebb_future *f, uint32_t *work);

#define EBB__CLAIM_FUTURE(word)                                                                              \
    {                                                                                                        \
        .type = {word, sizeof(ebb__claimer), ebb__trace_future, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE},     \
        .cancelled = ebb__claim_cancelled, .leave = ebb__claim_leave,                                        \
    }

/* Joins the queue of `on`. */
ebb_future *ebb__claim_future(ebb_cx *cx, const ebb__claim_kind *kind, void *on, const char *site);
/* The object of a claim of this type; NULL: `v` is another value. Empties it: the caller uses the claim. */
void *ebb__claim_use(ebb_value *v, const ebb_type *type);

#endif
