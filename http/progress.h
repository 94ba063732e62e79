/* Progress: for how long a peer has kept an exchange waiting, less what the bytes that did pass are worth.
 *
 * A pace is a clock that runs while we wait for the peer: while a handler reads a body, or bytes of a response
 * are ready. Each byte that passes sets it back by 1/rate of a second, at most to zero. So a peer that passes
 * `rate` bytes a second is never late, and one byte now and then is worth no more than a byte. */
#ifndef EBB__HTTP_PROGRESS_H
#define EBB__HTTP_PROGRESS_H

#include <ebb/http.h>

typedef struct ebb__pace {
    uint64_t since; /* while we wait: now less what the clock shows; 0: we do not wait */
    uint64_t shown; /* while we do not: what the clock shows, ns */
} ebb__pace;

/* We wait from now on, if we did not. */
void ebb__pace_wait(ebb__pace *p, uint64_t now);
/* We wait no longer. */
void ebb__pace_rest(ebb__pace *p, uint64_t now);
/* n bytes have passed. True: the clock shows zero. EBB_HTTP_NO_RATE: any byte sets it to zero. */
bool ebb__pace_bytes(ebb__pace *p, uint64_t now, uint64_t n, uint32_t rate);
/* What the clock shows; 0 if we do not wait. */
static inline uint64_t ebb__pace_late(const ebb__pace *p, uint64_t now) {
    return p->since != 0 && now > p->since ? now - p->since : 0;
}

#endif
