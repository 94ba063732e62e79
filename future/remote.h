/* What crosses threads: a stack of letters that others push and the runtime's thread takes all at once, and
 * counted handles. EBB__INBOUND_CLOSED as head of the stack: the runtime is gone, nothing is pushed any more. */
#ifndef EBB__FUTURE_REMOTE_H
#define EBB__FUTURE_REMOTE_H

#include "future/future.h"

typedef struct ebb__message {
    struct ebb__message *next;
    void (*take)(ebb_runtime *rt, struct ebb__message *l); /* on the receiver's thread; rt NULL: it is gone */
} ebb__message;

struct ebb_remote {
    ebb__message letter; /* for the last release */
    ebb__message ended;  /* the future was ended by this handle: so there is one at most */
    ebb__message done;   /* the producer, who has lost to a cancel, has ended */
    atomic_flag is_done;
    _Atomic uint32_t refs;
    ebb_future *future;
    bool spared; /* it was shared or shielded when it was exported */
    ebb__heap *heap;
    struct ebb_remote *next, *prev; /* the heap's exports */
};

#define EBB__INBOUND_CLOSED ((ebb__message *)1)

/* Any thread. The caller has a reference to the heap, or is its thread. False: the runtime is gone. */
bool ebb__post(ebb__heap *h, ebb__message *l);

#endif
