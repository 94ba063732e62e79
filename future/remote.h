/* What crosses threads: counted handles, and a stack of messages. Other threads push, and the runtime's thread takes
 * all of them at once. EBB__INBOUND_CLOSED as the head: the runtime was freed, and pushes fail. */
#ifndef EBB__FUTURE_REMOTE_H
#define EBB__FUTURE_REMOTE_H

#include "future/future.h"

typedef struct ebb__message {
    struct ebb__message *next;
    /* runs on the receiver's thread; rt NULL: the runtime is being freed */
    void (*take)(ebb_runtime *rt, struct ebb__message *m);
} ebb__message;

struct ebb_remote {
    ebb__message released; /* posted by the last release */
    ebb__message ended;    /* the future was ended through this handle, which happens once */
    ebb__message done;     /* the producer has lost to a cancel, and has ended */
    atomic_flag is_done;
    _Atomic uint32_t refs;
    ebb_future *future;
    bool spared; /* the future was shared or shielded when it was exported */
    ebb__heap *heap;
    struct ebb_remote *next, *prev; /* in the heap's exports */
};

#define EBB__INBOUND_CLOSED ((ebb__message *)1)

/* Posts a message. Any thread. The caller has a reference to the heap, or is its thread. False: the runtime was
 * freed. */
bool ebb__post(ebb__heap *h, ebb__message *m);

#endif
