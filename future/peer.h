/* What runtimes have of each other: counted handles, and ties.
 *
 * A peer is the heap's own record: whoever has one may post letters to the runtime for as long as it likes,
 * and is told when that is gone. A tie is a record's place in the list of those who hear of the end of a
 * runtime; only that runtime's thread adds, removes and cuts ties. So what lies between two runtimes has a
 * tie to each, and needs nothing else to know that one of them was freed. */
#ifndef EBB__FUTURE_PEER_H
#define EBB__FUTURE_PEER_H

#include "future/remote.h"
#include "kernel/layer.h"

typedef struct ebb__tie {
    struct ebb__tie *next, **at;        /* `at` NULL: it is in no list */
    void (*gone)(struct ebb__tie *tie); /* on the thread that frees the runtime; the tie is cut by then */
} ebb__tie;

void ebb__tie_add(ebb__heap *h, ebb__tie *tie);
/* Does nothing to one that is in no list. */
void ebb__tie_remove(ebb__tie *tie);
/* The runtime is about to go: calls `gone` of all. Its letter box is still open. */
void ebb__ties_cut(ebb__heap *h);

/* One reference more, for a caller that has one or is the runtime's thread. */
static inline ebb__heap *ebb__heap_keep(ebb__heap *h) {
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed); /* the caller has one already */
    return h;
}

static inline ebb__heap *ebb__peer_heap(const ebb_peer *p) {
    return (ebb__heap *)(uintptr_t)p;
}

/* What a runtime writes on its letters: how many events its trace had then. What the receiver's trace has
 * after the letter came after all of them. 0: it has no trace. */
static inline uint64_t ebb__stamp(const ebb_runtime *rt) {
    return ebb__rt_events(rt);
}

#endif
