/* Blocks for reuse. nghttp2 allocates about ten small blocks for each stream, and bodies go through a few large ones,
 * which the system's allocator would return to the kernel between two turns.
 *
 * An allocator above another. Invariants: a block of at most EBB__POOL_LARGE bytes has the size of its class, which is
 * a multiple of EBB__POOL_STEP up to EBB__POOL_SMALL, and a power of two above. Free blocks are in a list of their
 * class: at most EBB__POOL_KEEP bytes of small ones, and EBB__POOL_KEEP_LARGE of the others. */
#ifndef EBB__HTTP_BLOCK_POOL_H
#define EBB__HTTP_BLOCK_POOL_H

#include <ebb/base.h>

enum { EBB__POOL_STEP = 32, EBB__POOL_SMALL = 512, EBB__POOL_KEEP = 1 << 20 };
enum { EBB__POOL_LARGE = 1 << 18, EBB__POOL_KEEP_LARGE = 1 << 21, EBB__POOL_DOUBLINGS = 9 };

typedef struct ebb__pool {
    ebb_allocator inner;
    void *free[EBB__POOL_SMALL / EBB__POOL_STEP + 1 + EBB__POOL_DOUBLINGS];
    size_t keep_large;       /* EBB__POOL_KEEP_LARGE, or the owner's value */
    size_t kept, kept_large; /* bytes in the lists of small blocks, and of the others */
} ebb__pool;

void ebb__pool_init(ebb__pool *p, ebb_allocator inner);
/* Its blocks must be free. */
void ebb__pool_fini(ebb__pool *p);
ebb_allocator ebb__pool_allocator(ebb__pool *p);

#endif
