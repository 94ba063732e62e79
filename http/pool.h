/* Small blocks that are used again: nghttp2 asks for about ten of them for each stream.
 *
 * An allocator over another. What holds: a block of at most EBB__POOL_LARGEST bytes has the size of its class;
 * those that are free stand in a list of their class, EBB__POOL_KEEP bytes of them in all at most. */
#ifndef EBB__HTTP_POOL_H
#define EBB__HTTP_POOL_H

#include <ebb/base.h>

enum { EBB__POOL_STEP = 32, EBB__POOL_LARGEST = 512, EBB__POOL_KEEP = 1 << 20 };

typedef struct ebb__pool {
    ebb_allocator inner;
    void *free[EBB__POOL_LARGEST / EBB__POOL_STEP + 1];
    size_t kept; /* bytes in the lists */
} ebb__pool;

void ebb__pool_init(ebb__pool *p, ebb_allocator inner);
/* Its blocks must be free. */
void ebb__pool_fini(ebb__pool *p);
ebb_allocator ebb__pool_allocator(ebb__pool *p);

#endif
