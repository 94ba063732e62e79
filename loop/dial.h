/* Dialling: one connection to whichever of several addresses answers first (RFC 8305, "Happy Eyeballs").
 *
 * The addresses of both families alternate. A new attempt starts when one fails, and 250 ms after the last one
 * started. The first attempt that connects wins; the others are closed. One timer serves the attempts and the time
 * limit of the whole. The limit still applies after the connection is established, because its owner may have a
 * handshake to finish.
 *
 * Invariants: exactly one of `connected` and `failed` is called for the attempts; `failed` may follow `connected` if
 * the time limit expires. Nothing is called after ebb__dial_end. The record is freed when libuv has released its
 * timer and the last attempt, which may be after its owner has ended. */
#ifndef EBB__LOOP_DIAL_H
#define EBB__LOOP_DIAL_H

#include <netdb.h>

#include "loop/stream.h"

enum { EBB__DIAL_STEP_MS = 250 };

typedef struct ebb__dial ebb__dial;

typedef struct ebb__dial_ops {
    void (*connected)(void *ctx, ebb__handle *h); /* the owner closes the handle from now on */
    /* The status of the last attempt; EBB_TIMEOUT: the time limit expired. */
    void (*failed)(void *ctx, ebb_status st);
} ebb__dial_ops;

/* Starts the time limit; the attempts wait for ebb__dial_start. Streams belong to `region`. NULL: no memory. */
ebb__dial *ebb__dial_new(ebb_loop *l, ebb_region region, uint64_t limit_ns, const ebb__dial_ops *ops,
                         void *ctx, const char *site);
/* Copies the addresses and begins the first attempt. If this returns a failure, `failed` is not called. */
ebb_status ebb__dial_start(ebb__dial *d, const struct addrinfo *found, uint16_t port);
/* Closes the attempts that are still under way. NULL is allowed. */
void ebb__dial_end(ebb__dial *d);

#endif
