/* Counters that a layer above shows to whoever looks at a running loop: `ebb top`. They are read on the loop's thread.
 * The record belongs to the layer, and is added for as long as the counters exist. */
#ifndef EBB__LOOP_COUNTERS_H
#define EBB__LOOP_COUNTERS_H

#include "loop/loop.h"

struct ebb__counters {
    const char *what; /* "http server" */
    /* Writes what tells it from others of its kind to `name`, and calls `put` for each counter. */
    void (*look)(const ebb__counters *c, char *name, size_t room,
                 void (*put)(void *ctx, const char *counter, uint64_t value), void *ctx);
    ebb__counters *next, **at;
};

static inline void ebb__counters_add(ebb_loop *l, ebb__counters *c) {
    c->next = l->counters;
    c->at = &l->counters;
    if (c->next != NULL) c->next->at = &c->next;
    l->counters = c;
}

/* Does nothing if it was not added. */
static inline void ebb__counters_remove(ebb__counters *c) {
    if (c->at == NULL) return;
    *c->at = c->next;
    if (c->next != NULL) c->next->at = c->at;
    c->at = NULL;
}

#endif
