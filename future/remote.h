/* What crosses threads: a stack of futures and letters that others push and the runtime's thread takes all
 * at once, and counted handles.
 *
 * A word of the stack is the address of a future, linked by remote_next, or of a letter with its low bit
 * set. INBOUND_CLOSED as head: the runtime is gone, nothing is pushed any more. */
#ifndef EBB__FUTURE_REMOTE_H
#define EBB__FUTURE_REMOTE_H

#include "future/future.h"

typedef struct ebb__letter {
    uintptr_t next;
    void (*take)(ebb_rt *rt, struct ebb__letter *l); /* on the receiver's thread; rt NULL: it is gone */
} ebb__letter;

struct ebb_remote {
    ebb__letter letter; /* for the last release */
    ebb__letter done;   /* the producer, who has lost to a cancel, has ended */
    atomic_flag is_done;
    _Atomic uint32_t refs;
    ebb_future *future;
    bool spared; /* it was shared or shielded when it was exported */
    ebb__heap *heap;
    struct ebb_remote *next, *prev; /* the heap's exports */
};

enum { EBB__INBOUND_CLOSED = 2 };

/* Any thread. The caller has a reference to the heap, or is its thread. False: the runtime is gone. */
bool ebb__post(ebb__heap *h, ebb__letter *l);
bool ebb__post_future(ebb__heap *h, ebb_future *f);

#endif
