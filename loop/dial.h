/* Dialling: one connection to whichever of several addresses answers first (RFC 8305, "Happy Eyeballs").
 *
 * The addresses of both families alternate. A new attempt starts when one fails, and 250 ms after the last one
 * started; the first that connects wins, and the others are closed. One timer serves the attempts and the time
 * limit of the whole, which goes on after the connection is there: its owner may have a handshake to finish.
 *
 * What holds: exactly one of `connected` and `failed` is called for the attempts, and `failed` may follow
 * `connected` if the time is over. Nothing is called after ebb__dial_end. The record is freed when libuv has let
 * go of its timer and of the last attempt, which may be after its owner is gone. */
#ifndef EBB__LOOP_DIAL_H
#define EBB__LOOP_DIAL_H

#include <netdb.h>

#include "loop/stream.h"

enum { EBB__DIAL_STEP_MS = 250 };

typedef struct ebb__dial ebb__dial;

typedef struct ebb__dial_ops {
    void (*connected)(void *ctx, ebb__handle *h); /* the handle is the owner's from now on */
    void (*failed)(void *ctx, ebb_status st); /* what the last attempt said; EBB_TIMEOUT: the time is over */
} ebb__dial_ops;

/* Starts the clock; the attempts wait for ebb__dial_start. Streams belong to `region`. NULL: no memory. */
ebb__dial *ebb__dial_new(ebb_loop *l, ebb_region region, uint64_t limit_ns, const ebb__dial_ops *ops,
                         void *ctx, const char *site);
/* Copies the addresses and begins the first attempt. A failure is final, and is not told by `failed`. */
ebb_status ebb__dial_start(ebb__dial *d, const struct addrinfo *found, uint16_t port);
/* Gives up what still goes on. NULL is allowed. */
void ebb__dial_end(ebb__dial *d);

#endif
