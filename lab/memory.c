/* Memory of the lab: blocks that live for a round or a run, and what runtimes leave for those of the next run. */
#include "lab/lab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

struct ebb__lab_block {
    ebb__lab_block *next;
    size_t size;
    uint64_t align;
    unsigned char bytes[];
};

/* ---- blocks -------------------------------------------------------------------------------------------- */

bool ebb__lab_grow(ebb_lab *lab, void **items, size_t *room, size_t n, size_t size) {
    if (n <= *room) return true;
    size_t wanted = *room == 0 ? 64 : *room;
    while (wanted < n) wanted *= 2;
    void *p = ebb__resize(&lab->allocator, *items, *room * size, wanted * size);
    if (p == NULL) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
        return false;
    }
    *items = p;
    *room = wanted;
    return true;
}

static void *add_block(ebb_lab *lab, ebb__lab_block **blocks, size_t n) {
    ebb__lab_block *b = ebb__alloc(&lab->allocator, sizeof *b + n);
    if (b == NULL) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
        return NULL;
    }
    memset(b, 0, sizeof *b + n);
    b->next = *blocks;
    b->size = n;
    *blocks = b;
    return b->bytes;
}

void *ebb_lab_alloc(ebb_lab *lab, size_t n) {
    return add_block(lab, &lab->blocks, n);
}

const char *ebb__lab_string(ebb_lab *lab, const char *text) {
    for (ebb__lab_block *b = lab->strings; b != NULL; b = b->next) {
        if (strcmp((const char *)b->bytes, text) == 0) return (const char *)b->bytes;
    }
    size_t n = strlen(text) + 1;
    char *copy = add_block(lab, &lab->strings, n);
    return copy == NULL ? NULL : memcpy(copy, text, n);
}

void ebb__lab_blocks_free(ebb_lab *lab, ebb__lab_block **blocks) {
    while (*blocks != NULL) {
        ebb__lab_block *b = *blocks;
        *blocks = b->next;
        ebb__free(&lab->allocator, b, sizeof *b + b->size);
    }
}

/* ---- kept between runs --------------------------------------------------------------------------------- */

/* Each runtime has a few blocks of a megabyte: the ring of its trace, the pages of its heap. malloc gives them back to
 * the system at the end of each run, and all the small blocks beside them; to get zeroed pages again for the next run
 * takes several times as long as the run. So they are kept, in a list. A block of the size of a kept one is that one.
 * There are at most MOST, because sizes that never come again would fill the memory.
 *
 * Memory of a runtime may outlive it and the lab: a program's machines are freed after both. So the pool lives until
 * the lab is freed and the last block was given back; without a lab it keeps nothing. */
enum { BIG = 64 * 1024, MOST = 4 * EBB_LAB_RUNTIMES };

typedef struct kept { /* at the beginning of the block */
    struct kept *next;
    size_t size;
} kept;

struct ebb__lab_pool {
    ebb_allocator inner;
    kept *first;
    uint32_t n;    /* in the list */
    bool alone;    /* the lab was freed */
    uint64_t live; /* blocks that runtimes have */
};

ebb__lab_pool *ebb__lab_pool_new(ebb_allocator a) {
    ebb__lab_pool *p = ebb__alloc(&a, sizeof *p);
    if (p != NULL) *p = (ebb__lab_pool){.inner = a};
    return p;
}

static void pool_free(ebb__lab_pool *p) {
    ebb_allocator a = p->inner;
    assert(p->n == 0 && p->first == NULL);
    ebb__free(&a, p, sizeof *p);
}

void ebb__lab_pool_leave(ebb__lab_pool *p) {
    for (kept *b; (b = p->first) != NULL; p->n--) {
        p->first = b->next;
        ebb__free(&p->inner, b, b->size);
    }
    p->alone = true;
    if (p->live == 0) pool_free(p);
}

static void *take(ebb__lab_pool *p, size_t size) {
    kept **at = &p->first;
    while (*at != NULL && (*at)->size != size) at = &(*at)->next;
    kept *b = *at;
    if (b == NULL) return NULL;
    *at = b->next;
    p->n--;
    return b;
}

static void give(ebb__lab_pool *p, void *block, size_t size) {
    if (size >= BIG && p->n < MOST && !p->alone) {
        kept *b = block;
        *b = (kept){p->first, size};
        p->first = b;
        p->n++;
    } else {
        ebb__free(&p->inner, block, size);
    }
    assert(p->live > 0);
    if (--p->live == 0 && p->alone) pool_free(p);
}

static void *allocate(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ebb__lab_pool *p = ctx;
    if (new_size == 0) {
        if (ptr != NULL) give(p, ptr, old_size);
        return NULL;
    }
    void *got = ptr == NULL && new_size >= BIG ? take(p, new_size) : NULL;
    if (got == NULL) got = p->inner.fn(p->inner.ctx, ptr, old_size, new_size);
    if (got != NULL && ptr == NULL) p->live++;
    return got;
}

ebb_allocator ebb__lab_pool_allocator(ebb__lab_pool *p) {
    return (ebb_allocator){allocate, p};
}
