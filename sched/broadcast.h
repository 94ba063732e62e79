/* Waiting for a broadcast without a task, for futures. */
#ifndef EBB__BROADCAST_H
#define EBB__BROADCAST_H

#include "sched/waiters.h"

ebb_runtime *ebb__broadcast_runtime(const ebb_broadcast *b);
uint64_t ebb__broadcast_version(const ebb_broadcast *b);
/* It stays allocated while somebody keeps it. */
void ebb__broadcast_keep(void *p);
void ebb__broadcast_release(void *p);
/* Waits for the version after the latest. EBB_PENDING: `w`, whose kind is an ebb__waiter_kind, is in the queue.
 * EBB_ERR_CLOSED. */
ebb_status ebb__broadcast_join(void *p, ebb_wait *w);
void ebb__broadcast_leave(void *p, ebb_wait *w);

#endif
