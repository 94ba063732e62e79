/* Blocks that are used again. */
#include "http/block_pool.h"

#include <string.h>

#include "base/alloc.h"

enum { SMALLS = EBB__POOL_SMALL / EBB__POOL_STEP };
_Static_assert(EBB__POOL_SMALL << EBB__POOL_DOUBLINGS == EBB__POOL_LARGE, "each has a class");

static inline size_t class_of_small(size_t n) {
    return (n + EBB__POOL_STEP - 1) / EBB__POOL_STEP;
}

static size_t class_of(size_t n) {
    if (n <= EBB__POOL_SMALL) return class_of_small(n);
    size_t k = SMALLS + 1;
    for (size_t size = EBB__POOL_SMALL * 2; size < n; size *= 2) k++;
    return k;
}

static size_t size_of(size_t class) {
    return class <= SMALLS ? class * EBB__POOL_STEP : (size_t)EBB__POOL_SMALL << (class - SMALLS);
}

static size_t *kept_in(ebb__pool *p, size_t class) {
    return class <= SMALLS ? &p->kept : &p->kept_large;
}

static void *take(ebb__pool *p, size_t n) {
    if (n > EBB__POOL_LARGE) return ebb__alloc(&p->inner, n);
    size_t k = class_of(n);
    void **at = p->free[k];
    if (at == NULL) return ebb__alloc(&p->inner, size_of(k));
    p->free[k] = *at;
    *kept_in(p, k) -= size_of(k);
    return (void *)at;
}

static void give(ebb__pool *p, void *block, size_t n) {
    if (n > EBB__POOL_LARGE) {
        ebb__free(&p->inner, block, n);
        return;
    }
    size_t k = class_of(n), bytes = size_of(k), *kept = kept_in(p, k);
    if (*kept + bytes > (k <= SMALLS ? EBB__POOL_KEEP : p->keep_large)) {
        ebb__free(&p->inner, block, bytes);
        return;
    }
    void **at = block;
    *at = p->free[k];
    p->free[k] = (void *)at;
    *kept += bytes;
}

static void *move(ebb__pool *p, void *block, size_t old_n, size_t n) {
    void *at = take(p, n);
    if (at == NULL) return NULL;
    memcpy(at, block, old_n < n ? old_n : n);
    give(p, block, old_n);
    return at;
}

__attribute__((noinline)) static void *any(ebb__pool *p, void *block, size_t old_n, size_t n) {
    if (block == NULL) return n == 0 ? NULL : take(p, n);
    if (n == 0) {
        give(p, block, old_n);
        return NULL;
    }
    if (old_n > EBB__POOL_LARGE && n > EBB__POOL_LARGE) return ebb__resize(&p->inner, block, old_n, n);
    if (old_n <= EBB__POOL_LARGE && n <= EBB__POOL_LARGE && class_of(old_n) == class_of(n)) return block;
    return move(p, block, old_n, n);
}

/* nghttp2 allocates and frees small blocks several times a request: these cases need no further call. */
static void *pool_fn(void *ctx, void *block, size_t old_n, size_t n) {
    ebb__pool *p = ctx;
    if (block == NULL && n > 0 && n <= EBB__POOL_SMALL) {
        size_t k = class_of_small(n);
        void **at = p->free[k];
        if (at == NULL) return any(p, block, old_n, n);
        p->free[k] = *at;
        p->kept -= k * EBB__POOL_STEP;
        return (void *)at;
    }
    if (block != NULL && n == 0 && old_n <= EBB__POOL_SMALL) {
        size_t k = class_of_small(old_n), kept = p->kept + k * EBB__POOL_STEP;
        void **at = block;
        if (kept > EBB__POOL_KEEP) return any(p, block, old_n, n);
        *at = p->free[k];
        p->free[k] = (void *)at;
        p->kept = kept;
        return NULL;
    }
    return any(p, block, old_n, n);
}

ebb_allocator ebb__pool_allocator(ebb__pool *p) {
    return (ebb_allocator){pool_fn, p};
}

void ebb__pool_init(ebb__pool *p, ebb_allocator inner) {
    *p = (ebb__pool){.inner = inner, .keep_large = EBB__POOL_KEEP_LARGE};
}

void ebb__pool_fini(ebb__pool *p) {
    for (size_t k = 0; k < sizeof p->free / sizeof *p->free; k++) {
        while (p->free[k] != NULL) {
            void **at = p->free[k];
            p->free[k] = *at;
            ebb__free(&p->inner, (void *)at, size_of(k));
        }
    }
    p->kept = p->kept_large = 0;
}
