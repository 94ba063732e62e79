#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

struct ebb__arena_chunk {
    ebb__arena_chunk *next;
    size_t bytes; /* including the header */
};

#define ALIGN       _Alignof(ebb__widest)
#define ROUND_UP(n) (((n) + ALIGN - 1) / ALIGN * ALIGN)
#define HEADER      ROUND_UP(sizeof(ebb__arena_chunk))

void ebb__arena_init(ebb__arena *a, ebb_allocator allocator, size_t chunk_bytes) {
    size_t least = 4 * HEADER;
    *a = (ebb__arena){.allocator = allocator,
                      .chunk_bytes = chunk_bytes < least ? least : ROUND_UP(chunk_bytes)};
}

static uint8_t *start_of(ebb__arena_chunk *c) {
    return (uint8_t *)c + HEADER;
}

static ebb__arena_chunk *chunk_new(ebb__arena *a, size_t bytes) {
    ebb__arena_chunk *c = ebb__alloc(&a->allocator, bytes);
    if (c != NULL) *c = (ebb__arena_chunk){NULL, bytes};
    return c;
}

/* Allocates a chunk for this block alone and links it behind the current chunk, which stays current. */
static void *alloc_big(ebb__arena *a, size_t n) {
    if (n > SIZE_MAX - HEADER) return NULL;
    ebb__arena_chunk *c = chunk_new(a, HEADER + n);
    if (c == NULL) return NULL;
    if (a->chunks == NULL) {
        a->chunks = c;
        a->at = a->end = start_of(c) + n;
    } else {
        c->next = a->chunks->next;
        a->chunks->next = c;
    }
    return start_of(c);
}

static void take_in_hand(ebb__arena *a, ebb__arena_chunk *c) {
    a->at = start_of(c);
    a->end = (uint8_t *)c + c->bytes;
}

void *ebb__arena_more(ebb__arena *a, size_t n) {
    if (n > SIZE_MAX - ALIGN) return NULL;
    n = n == 0 ? ALIGN : ROUND_UP(n);
    if (n > (size_t)(a->end - a->at)) {
        if (n > a->chunk_bytes / 4) return alloc_big(a, n);
        ebb__arena_chunk *c = chunk_new(a, a->chunk_bytes);
        if (c == NULL) return NULL;
        c->next = a->chunks;
        a->chunks = c;
        take_in_hand(a, c);
    }
    void *p = a->at;
    a->at += n;
    return p;
}

void *ebb__arena_zero(ebb__arena *a, size_t n) {
    void *p = ebb__arena_alloc(a, n);
    if (p != NULL) memset(p, 0, n);
    return p;
}

void ebb__arena_reset(ebb__arena *a) {
    ebb__arena_chunk *kept = NULL, *next;
    for (ebb__arena_chunk *c = a->chunks; c != NULL; c = next) {
        next = c->next;
        if (kept == NULL && c->bytes == a->chunk_bytes) kept = c;
        else ebb__free(&a->allocator, c, c->bytes);
    }
    a->chunks = kept;
    a->at = a->end = NULL;
    if (kept == NULL) return;
    kept->next = NULL;
    take_in_hand(a, kept);
}

void ebb__arena_free(ebb__arena *a) {
    ebb__arena_chunk *next;
    for (ebb__arena_chunk *c = a->chunks; c != NULL; c = next) {
        next = c->next;
        ebb__free(&a->allocator, c, c->bytes);
    }
    a->chunks = NULL;
    a->at = a->end = NULL;
}
