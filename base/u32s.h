/* Swap-remove arrays of indices: a region's tasks and children.
 *
 * Up to two members are stored inline, so that the common small region allocates nothing. Each member stores its
 * position. A removal moves the last member into the gap, and the caller updates that member's position. Growing
 * doubles the array; it never shrinks, so a removal can't fail. */
#ifndef EBB__U32S_H
#define EBB__U32S_H

#include <assert.h>

#include "base/alloc.h"

typedef struct ebb__u32s {
    uint32_t n, cap; /* cap <= 2: inline */
    union {
        uint32_t inl[2];
        uint32_t *heap;
    } at;
} ebb__u32s;

static inline uint32_t *ebb__u32s_data(ebb__u32s *v) {
    return v->cap <= 2 ? v->at.inl : v->at.heap;
}

static inline void ebb__u32s_init(ebb__u32s *v) {
    v->n = 0;
    v->cap = 2;
}

static inline void ebb__u32s_fini(ebb__u32s *v, const ebb_allocator *a) {
    if (v->cap <= 2) return;
    ebb__free(a, v->at.heap, v->cap * sizeof(uint32_t));
    ebb__u32s_init(v);
}

bool ebb__u32s_grow(ebb__u32s *v, const ebb_allocator *a);

/* True if the next push can't fail. */
static inline bool ebb__u32s_reserve(ebb__u32s *v, const ebb_allocator *a) {
    return v->n < v->cap || ebb__u32s_grow(v, a);
}

static inline uint32_t ebb__u32s_push(ebb__u32s *v, uint32_t x) {
    assert(v->n < v->cap);
    ebb__u32s_data(v)[v->n] = x;
    return v->n++;
}

/* Returns the member that is now at `pos`; 0 if there is none. */
static inline uint32_t ebb__u32s_remove(ebb__u32s *v, uint32_t pos) {
    uint32_t *d = ebb__u32s_data(v);
    assert(pos < v->n);
    uint32_t last = d[--v->n];
    if (pos == v->n) return 0;
    d[pos] = last;
    return last;
}

#endif
