/* The resources that a server may use. */
#define _DEFAULT_SOURCE /* malloc_trim */
#include "http/capacity.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "fiber/fiber.h"
#include "future/heap.h"

enum {
    MOST = 1 << 20,
    RESERVE_LEAST = 16,
    RESERVE_MOST = 512,
    RESERVE_PART = 8,
    CONNECTIONS = 10000,
    STALLED = 2048
};

uint32_t ebb__room_descriptors(uint32_t limit) {
    uint32_t all = limit < MOST ? limit : MOST;
    uint32_t reserve = all / RESERVE_PART;
    if (reserve < RESERVE_LEAST) reserve = RESERVE_LEAST;
    if (reserve > RESERVE_MOST) reserve = RESERVE_MOST;
    return all > reserve ? all - reserve : 1;
}

static uint32_t at_least_one(uint32_t n) {
    return n == 0 ? 1 : n;
}

/* By default half of the descriptors are for connections, and half for what handlers open; an address gets half of
 * that. An eighth more connections than the limit are accepted, to answer their requests with 503. */
void ebb__room_for_descriptors(ebb_http_limits *l, uint32_t descriptors) {
    uint32_t half = descriptors / 2, most = descriptors > 0 ? (descriptors - 1) / 9 * 8 : 0;
    if (l->connections == 0) l->connections = half < CONNECTIONS ? half : CONNECTIONS;
    if (l->connections > most) l->connections = most;
    l->connections = at_least_one(l->connections);
    if (l->stalled == 0) l->stalled = at_least_one(half / 2 < STALLED ? half / 2 : STALLED);
}

/* Without the memory that the heap keeps while nothing is allocated: garbage up to its trigger, and free pages of up
 * to two chunks. A server short of memory would wait for these in vain. */
static uint64_t heap_bytes(const ebb__heap *h) {
    const uint64_t chunks = UINT64_C(2) * (EBB__CHUNK_PAGES + 1) * EBB__PAGE_SIZE;
    return h == NULL || h->stats.bytes < h->trigger + chunks ? 0 : h->stats.bytes - h->trigger - chunks;
}

uint64_t ebb__runtime_bytes(const ebb_runtime *rt) {
    const ebb__fibers *f = ebb__fibers_at(rt);
    uint64_t stacks = f == NULL ? 0 : f->touched + f->alive * (uint64_t)sizeof(ebb__fiber);
    return ebb__rt_bytes(rt) + stacks + heap_bytes(ebb__heap_at(rt));
}

void ebb__room_give_back(void) {
#ifdef __GLIBC__
    (void)malloc_trim(0); /* free pages between those in use */
#endif
}
