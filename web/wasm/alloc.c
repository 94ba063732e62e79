#include "web/wasm/alloc.h"

#include "web/wasm/abi.h"

#include <string.h>

enum { LEAST = 4, ORDERS = 32, PAGE = 65536 };

typedef struct block {
    struct block *next;
} block;

extern unsigned char __heap_base; /* the linker's: where the heap may begin */

static block *lists[ORDERS];
static uintptr_t heap_end; /* of what was handed out; 0: nothing yet */

/* The order of blocks of 2^order bytes that has room for n. */
static uint32_t order_of(size_t n) {
    uint32_t order = LEAST;
    while (order < ORDERS - 1 && (size_t)1 << order < n) order++;
    return order;
}

static void *take_end(size_t n) {
    if (heap_end == 0) heap_end = ((uintptr_t)&__heap_base + 15) & ~(uintptr_t)15;
    size_t have = __builtin_wasm_memory_size(0) * (size_t)PAGE;
    if (n > SIZE_MAX - heap_end) return NULL;
    if (heap_end + n > have) {
        size_t pages = (heap_end + n - have + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return NULL;
    }
    uintptr_t at = heap_end;
    heap_end += n;
    return (void *)at;
}

static void *take(size_t n) {
    if (n > (size_t)1 << (ORDERS - 2)) return NULL;
    uint32_t order = order_of(n);
    block *b = lists[order];
    if (b == NULL) return take_end((size_t)1 << order);
    lists[order] = b->next;
    return b;
}

static void give(void *at, size_t n) {
    uint32_t order = order_of(n);
    block *b = at;
    b->next = lists[order];
    lists[order] = b;
}

static void *resize(void *ctx, void *at, size_t old_size, size_t new_size) {
    (void)ctx;
    if (at != NULL && new_size != 0 && order_of(old_size) == order_of(new_size)) return at;
    void *to = NULL;
    if (new_size != 0) {
        to = take(new_size);
        if (to == NULL) return NULL;
        if (at != NULL) memcpy(to, at, old_size < new_size ? old_size : new_size);
    }
    if (at != NULL) give(at, old_size);
    return to;
}

ebb_allocator web_allocator(void) {
    return (ebb_allocator){resize, NULL};
}

void *web_allocate(size_t n) {
    return n == 0 ? NULL : take(n);
}

void web_release(void *at, size_t n) {
    if (at != NULL && n != 0) give(at, n);
}
