/* References between runtimes: counted handles, and ties.
 *
 * A peer is the heap record. A holder of a peer may post messages to the runtime at any time; a post fails after the
 * runtime was freed. A tie is an entry in the list of records to notify of a runtime's end. Only that runtime's
 * thread adds, removes and cuts ties. A record between two runtimes has a tie to each, and needs nothing else to
 * learn that one of them was freed. */
#ifndef EBB__FUTURE_PEER_H
#define EBB__FUTURE_PEER_H

#include "future/remote.h"
#include "kernel/layer.h"

typedef struct ebb__tie {
    struct ebb__tie *next, **at; /* `at` NULL: it is in no list */
    /* called on the thread that frees the runtime, after the tie is removed */
    void (*gone)(struct ebb__tie *tie);
} ebb__tie;

void ebb__tie_add(ebb__heap *h, ebb__tie *tie);
/* Does nothing if the tie is in no list. */
void ebb__tie_remove(ebb__tie *tie);
/* The runtime is about to be freed: removes all ties and calls their `gone`. The inbox is still open. */
void ebb__ties_cut(ebb__heap *h);

/* Adds a reference, for a caller that has one or is the runtime's thread. */
static inline ebb__heap *ebb__heap_keep(ebb__heap *h) {
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed); /* the caller has one already */
    return h;
}

static inline ebb__heap *ebb__peer_heap(const ebb_peer *p) {
    return (ebb__heap *)(uintptr_t)p;
}

/* Has `watch` called on the thread of a side after its bell was rung: the bridge has been closed or, since the last
 * ebb_bridge_try_recv that found nothing, an item was sent. The other side's thread may not call this. NULL: no more. */
void ebb__bridge_watch(ebb_bridge *b, bool receives, void (*watch)(void *arg), void *arg);
/* For the sending side: nothing may be sent any more. */
bool ebb__bridge_is_shut(ebb_bridge *b);

/* The stamp of a message: the sender's id, in the top 8 bits, and how many events its trace had. In the receiver's
 * trace, the events after the receipt came after all of them. 0: the sender has no trace. */
static inline uint64_t ebb__stamp(const ebb_runtime *rt) {
    uint64_t events = ebb__rt_events(rt);
    return events == 0 ? 0 : (uint64_t)ebb__rt_id(rt) << 56 | events;
}

#endif
