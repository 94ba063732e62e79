/* Chunked slabs: records of one size that never move, named by a 24-bit index and a generation.
 *
 * A chunk holds 2^shift hot records, aligned to a cache line, and then as many cold ones. Every wake-up touches
 * the hot record; only dumps and errors read the cold one. Index 0 is never used, so that 0 can mean "none". Every
 * hot record starts with two words: the first is the free list's link while the slot is free, the second is the
 * generation, which rises when the slot is freed. A slot whose generations are used up is retired. Freed slots are
 * reused last in, first out: the same operations give the same ids, which replay relies on. */
#ifndef EBB__SLAB_H
#define EBB__SLAB_H

#include <assert.h>

#include "base/alloc.h"

#define EBB__SLAB_MAX_INDEX ((UINT32_C(1) << 24) - 1)

typedef struct ebb__slab {
    char **base; /* chunks, aligned */
    char **raw;  /* the same, as allocated */
    uint32_t chunks, room;
    uint32_t hot, cold; /* record sizes */
    uint32_t shift;
    uint32_t used;      /* slots used so far, including the unused 0 */
    uint32_t free_head; /* 0: none */
    uint32_t live, retired, limit;
} ebb__slab;

typedef struct ebb__slot {
    uint32_t link, generation;
} ebb__slot;

void ebb__slab_init(ebb__slab *s, uint32_t hot, uint32_t cold, uint32_t shift, uint32_t limit);
void ebb__slab_fini(ebb__slab *s, const ebb_allocator *a);
/* EBB_OK if the next ebb__slab_take can't fail; EBB_ERR_NOMEM; EBB_ERR_LIMIT. */
ebb_status ebb__slab_reserve(ebb__slab *s, const ebb_allocator *a);
/* Adds a chunk. EBB_ERR_NOMEM. */
ebb_status ebb__slab_grow(ebb__slab *s, const ebb_allocator *a);

/* The `_as` forms are for callers that know the slab's layout at compile time. */
static inline void *ebb__slab_at_as(const ebb__slab *s, uint32_t i, uint32_t shift, size_t hot) {
    return s->base[i >> shift] + (size_t)(i & ((UINT32_C(1) << shift) - 1)) * hot;
}

static inline void *ebb__slab_at(const ebb__slab *s, uint32_t i) {
    return ebb__slab_at_as(s, i, s->shift, s->hot);
}

/* Takes a slot; a reserve must come first. The record has the bytes of its last use, or zeroes; its generation is
 * set. */
static inline uint32_t ebb__slab_take_as(ebb__slab *s, uint32_t shift, size_t hot) {
    uint32_t i = s->free_head;
    assert(s->live < s->limit && (i != 0 || s->used < s->chunks << s->shift));
    s->live++;
    if (i != 0) {
        s->free_head = ((ebb__slot *)ebb__slab_at_as(s, i, shift, hot))->link;
        return i;
    }
    i = s->used++;
    ((ebb__slot *)ebb__slab_at_as(s, i, shift, hot))->generation = 1;
    return i;
}

static inline uint32_t ebb__slab_take(ebb__slab *s) {
    return ebb__slab_take_as(s, s->shift, s->hot);
}

/* `record` must be the record of that index. */
static inline void ebb__slab_give_record(ebb__slab *s, uint32_t i, void *record) {
    ebb__slot *slot = record;
    assert(i != 0 && i < s->used && s->live > 0);
    s->live--;
    if (++slot->generation == 0) {
        s->retired++;
        return;
    }
    slot->link = s->free_head;
    s->free_head = i;
}

/* The same, and the slot is not used again. */
static inline void ebb__slab_retire(ebb__slab *s, uint32_t i) {
    assert(i != 0 && i < s->used && s->live > 0);
    ((ebb__slot *)ebb__slab_at(s, i))->generation++;
    s->live--;
    s->retired++;
}

static inline void ebb__slab_give_as(ebb__slab *s, uint32_t i, uint32_t shift, size_t hot) {
    ebb__slab_give_record(s, i, ebb__slab_at_as(s, i, shift, hot));
}

static inline void ebb__slab_give(ebb__slab *s, uint32_t i) {
    ebb__slab_give_record(s, i, ebb__slab_at(s, i));
}

/* Slots that can be taken without a reserve. */
static inline uint32_t ebb__slab_room(const ebb__slab *s) {
    uint32_t room = (s->chunks << s->shift) - (s->chunks > 0) - s->live - s->retired;
    return room < s->limit - s->live ? room : s->limit - s->live;
}

/* The bytes of all slots in use. */
static inline uint64_t ebb__slab_bytes(const ebb__slab *s) {
    return s->live * (uint64_t)(s->hot + s->cold);
}

static inline bool ebb__slab_ready(const ebb__slab *s) {
    return (s->free_head != 0 || s->used < s->chunks << s->shift) && s->live < s->limit;
}

#endif
