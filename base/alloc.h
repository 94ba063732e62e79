/* The three calls with which Ebb allocates, resizes and frees memory of the host. */
#ifndef EBB__ALLOC_H
#define EBB__ALLOC_H

#include <ebb/base.h>

static inline void *ebb__alloc(const ebb_allocator *a, size_t n) {
    return a->fn(a->ctx, NULL, 0, n);
}

static inline void *ebb__resize(const ebb_allocator *a, void *p, size_t old_n, size_t n) {
    return a->fn(a->ctx, p, old_n, n);
}

static inline void ebb__free(const ebb_allocator *a, void *p, size_t n) {
    if (p != NULL) (void)a->fn(a->ctx, p, n, 0);
}

#endif
