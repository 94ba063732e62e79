/* base/arena.h - memory that is freed in one step: for objects that live as long as a script or a request.
 *
 * An arena is a list of chunks from the host's allocator; allocating moves a pointer. A block larger than a
 * quarter of a chunk gets a chunk of its own, so that it wastes nothing of the current one. Invariant: the current
 * chunk is the head of `chunks`, [at, end) is free in it, and both are NULL if there is none. */
#ifndef EBB_BASE_ARENA_H
#define EBB_BASE_ARENA_H

#include <ebb/base.h>

typedef struct ebb__arena_chunk ebb__arena_chunk;

typedef struct ebb__arena {
    ebb_allocator allocator;
    ebb__arena_chunk *chunks;
    uint8_t *at, *end;
    size_t chunk_bytes; /* of an ordinary chunk */
} ebb__arena;

/* Allocates nothing yet. */
void ebb__arena_init(ebb__arena *a, ebb_allocator allocator, size_t chunk_bytes);

/* max_align_t is not in every libc's C11; this union replaces it. */
typedef union ebb__widest {
    long long integer;
    long double real;
    void *pointer;
    void (*function)(void);
} ebb__widest;

/* ebb__arena_alloc where the current chunk has no room. */
void *ebb__arena_more(ebb__arena *a, size_t n);

/* `n` bytes, aligned for any type, not cleared. NULL: no memory, and nothing has changed. */
static inline void *ebb__arena_alloc(ebb__arena *a, size_t n) {
    const size_t align = _Alignof(ebb__widest);
    uint8_t *p = a->at;
    if (n == 0 || n > (size_t)(a->end - p) / align * align) return ebb__arena_more(a, n);
    a->at = p + (n + align - 1) / align * align;
    return p;
}

/* The same, zeroed. */
void *ebb__arena_zero(ebb__arena *a, size_t n);

/* Frees everything that was allocated, but keeps one chunk for later use. */
void ebb__arena_reset(ebb__arena *a);

/* Frees all memory; the arena is as after init. */
void ebb__arena_free(ebb__arena *a);

#endif
