/* Progress: how long a peer has kept an exchange waiting, less the time that its bytes are worth.
 *
 * A pace is a clock that runs while we wait for the peer: while a handler reads a body, or bytes of a response are
 * ready. Each byte that passes sets the clock back by 1/rate of a second, at most to zero. So a peer that passes
 * `rate` bytes a second is never late, and a byte now and then is worth no more than a byte. */
#ifndef EBB__HTTP_PROGRESS_H
#define EBB__HTTP_PROGRESS_H

#include <ebb/http.h>

typedef struct ebb__pace {
    uint64_t since; /* while the clock runs: now less its value; 0: it does not run */
    uint64_t shown; /* while the clock does not run: its value, ns */
} ebb__pace;

/* Starts the clock, if it does not run. */
void ebb__pace_wait(ebb__pace *p, uint64_t now);
/* Stops the clock. */
void ebb__pace_rest(ebb__pace *p, uint64_t now);
/* n bytes have passed. True: the clock shows zero. EBB_HTTP_NO_RATE: any byte sets it to zero. */
bool ebb__pace_bytes(ebb__pace *p, uint64_t now, uint64_t n, uint32_t rate);
/* The value of the clock; 0 if it does not run. */
static inline uint64_t ebb__pace_late(const ebb__pace *p, uint64_t now) {
    return p->since != 0 && now > p->since ? now - p->since : 0;
}

#endif
