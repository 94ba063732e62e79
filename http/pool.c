/* Small blocks that are used again. */
#include "http/pool.h"

#include <string.h>

#include "base/alloc.h"

static size_t class_of(size_t n) {
    return (n + EBB__POOL_STEP - 1) / EBB__POOL_STEP;
}

static void *take(ebb__pool *p, size_t n) {
    if (n > EBB__POOL_LARGEST) return ebb__alloc(&p->inner, n);
    size_t k = class_of(n);
    void **at = p->free[k];
    if (at == NULL) return ebb__alloc(&p->inner, k * EBB__POOL_STEP);
    p->free[k] = *at;
    p->kept -= k * EBB__POOL_STEP;
    return (void *)at;
}

static void give(ebb__pool *p, void *block, size_t n) {
    size_t k = class_of(n), bytes = k * EBB__POOL_STEP;
    if (n > EBB__POOL_LARGEST) {
        ebb__free(&p->inner, block, n);
    } else if (p->kept + bytes > EBB__POOL_KEEP) {
        ebb__free(&p->inner, block, bytes);
    } else {
        void **at = block;
        *at = p->free[k];
        p->free[k] = (void *)at;
        p->kept += bytes;
    }
}

static void *move(ebb__pool *p, void *block, size_t old_n, size_t n) {
    void *at = take(p, n);
    if (at == NULL) return NULL;
    memcpy(at, block, old_n < n ? old_n : n);
    give(p, block, old_n);
    return at;
}

static void *pool_fn(void *ctx, void *block, size_t old_n, size_t n) {
    ebb__pool *p = ctx;
    if (block == NULL) return n == 0 ? NULL : take(p, n);
    if (n == 0) {
        give(p, block, old_n);
        return NULL;
    }
    if (old_n > EBB__POOL_LARGEST && n > EBB__POOL_LARGEST) return ebb__resize(&p->inner, block, old_n, n);
    if (class_of(old_n) == class_of(n)) return block;
    return move(p, block, old_n, n);
}

ebb_allocator ebb__pool_allocator(ebb__pool *p) {
    return (ebb_allocator){pool_fn, p};
}

void ebb__pool_init(ebb__pool *p, ebb_allocator inner) {
    *p = (ebb__pool){.inner = inner};
}

void ebb__pool_fini(ebb__pool *p) {
    for (size_t k = 0; k < sizeof p->free / sizeof *p->free; k++) {
        while (p->free[k] != NULL) {
            void **at = p->free[k];
            p->free[k] = *at;
            ebb__free(&p->inner, (void *)at, k * EBB__POOL_STEP);
        }
    }
    p->kept = 0;
}
