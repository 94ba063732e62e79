/* Blocks: memory that records its allocator and its size. */
#define _POSIX_C_SOURCE 200809L
#include <stdalign.h>

#include "base/alloc.h"
#include "loop/loop.h"

typedef struct block {
    ebb_allocator allocator;
    size_t bytes;
    alignas(max_align_t) char at[];
} block;

void *ebb__block_new(const ebb_allocator *a, size_t n) {
    block *b = ebb__alloc(a, sizeof *b + n);
    if (b == NULL) return NULL;
    b->allocator = *a;
    b->bytes = sizeof *b + n;
    return b->at;
}

void ebb__block_free(void *at) {
    block *b = (block *)(void *)((char *)at - offsetof(block, at));
    ebb_allocator a = b->allocator;
    ebb__free(&a, b, b->bytes);
}
