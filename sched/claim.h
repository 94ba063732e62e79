/* Claims: the right to one item or place of a channel, or to one permit of a semaphore. A task takes what it is granted
 * in the await that waits for it. A future can't: it may lose a race after it was granted. So its value is a claim,
 * which its reader uses once, and which is given back if there is no reader.
 *
 * join: EBB_OK: the caller has a claim. EBB_PENDING: `w`, whose kind is an ebb__waiter_kind, is in the queue; its
 * `notify` gets the claim. EBB_ERR_CLOSED. leave: takes `w` out of the queue. give_back: the claim goes to the next
 * waiter. A channel stays allocated while somebody keeps it. */
#ifndef EBB__CLAIM_H
#define EBB__CLAIM_H

#include "sched/waiters.h"

ebb_runtime *ebb__chan_runtime(const ebb_chan *ch);
void ebb__chan_keep(void *p);
void ebb__chan_release(void *p);

ebb_status ebb__item_join(void *p, ebb_wait *w);
void ebb__item_leave(void *p, ebb_wait *w);
void ebb__item_give_back(void *p);
/* Uses the claim. */
void ebb__item_take(ebb_chan *ch, void *item);

ebb_status ebb__place_join(void *p, ebb_wait *w);
void ebb__place_leave(void *p, ebb_wait *w);
void ebb__place_give_back(void *p);
/* Uses the claim. EBB_ERR_CLOSED: it is given back. */
ebb_status ebb__place_put(ebb_chan *ch, const void *item);

ebb_status ebb__permit_join(void *sem, ebb_wait *w);
void ebb__permit_leave(void *sem, ebb_wait *w);
void ebb__permit_give_back(void *sem);

#endif
