/* Run queues: FIFO queues of indices whose room is reserved beforehand, so that a push can't fail.
 *
 * All queues of a set share one pool of blocks. A member stands in at most one queue at a time and
 * remembers its position, so it can be taken out: its place becomes a hole (0), which pops skip.
 * `ebb__lanes_reserve(n)` keeps room for two places a member and two blocks a queue; when holes have
 * used that up a push closes them first, which costs as much as the pushes that made them. */
#ifndef EBB__RUN_QUEUE_H
#define EBB__RUN_QUEUE_H

#include "base/slab.h"

enum { EBB__BLOCK_ITEMS = 31 };

typedef struct ebb__block {
    uint32_t next;
    uint32_t item[EBB__BLOCK_ITEMS];
} ebb__block;

typedef struct ebb__queue {
    uint32_t *take, *take_end; /* the next place to pop, and the end of its block */
    uint32_t *put, *put_end;   /* the next place to push, likewise */
    uint32_t put_pos;          /* the position of `put`: its block * 32 + its place */
    uint32_t count;            /* members; holes do not count */
    uint32_t head, tail;       /* blocks; 0: none */
} ebb__queue;

typedef struct ebb__lanes {
    ebb__slab blocks; /* never given back one by one: freed blocks go to `spare` */
    uint32_t spare;
    uint32_t total;
    ebb__queue *queue;
    uint32_t queues;
    void (*moved)(void *ctx, uint32_t item, uint32_t pos);
    void *ctx;
} ebb__lanes;

void ebb__lanes_init(ebb__lanes *l, ebb__queue *queue, uint32_t queues,
                     void (*moved)(void *ctx, uint32_t item, uint32_t pos), void *ctx);
void ebb__lanes_fini(ebb__lanes *l, const ebb_allocator *a);
/* True if `members` members may be queued from now on. */
bool ebb__lanes_reserve_slow(ebb__lanes *l, const ebb_allocator *a, uint32_t members);
void ebb__lanes_next_block(ebb__lanes *l, ebb__queue *q);
uint32_t ebb__lanes_pop_slow(ebb__lanes *l, ebb__queue *q);

static inline ebb__block *ebb__lanes_block(const ebb__lanes *l, uint32_t b) {
    return (ebb__block *)(void *)(l->blocks.base[b >> 6] + (size_t)(b & 63) * sizeof(ebb__block));
}

static inline bool ebb__lanes_reserve(ebb__lanes *l, const ebb_allocator *a, uint32_t members) {
    if ((uint64_t)(l->total - 2 * l->queues) * EBB__BLOCK_ITEMS >= 2 * (uint64_t)members) return true;
    return ebb__lanes_reserve_slow(l, a, members);
}

/* The position, for ebb__lanes_remove. */
static inline uint32_t ebb__lanes_push(ebb__lanes *l, ebb__queue *q, uint32_t item) {
    if (q->put == q->put_end) ebb__lanes_next_block(l, q);
    *q->put++ = item;
    q->count++;
    return q->put_pos++;
}

static inline void ebb__lanes_remove(ebb__lanes *l, ebb__queue *q, uint32_t pos) {
    ebb__lanes_block(l, pos / 32)->item[pos % 32] = 0;
    q->count--;
}

/* The first member, which there must be. With the last one gone the block is used again from its
 * start: two tasks that take turns stay in one cache line. */
static inline uint32_t ebb__lanes_pop(ebb__lanes *l, ebb__queue *q) {
    if (q->take != q->take_end && *q->take != 0) {
        uint32_t item = *q->take++;
        if (--q->count == 0 && q->take == q->put) {
            q->take = q->put = q->put_end - EBB__BLOCK_ITEMS;
            q->put_pos = q->tail * 32;
        }
        return item;
    }
    return ebb__lanes_pop_slow(l, q);
}

/* The member `ahead` places behind the head, for prefetching; 0 if there is none near. */
static inline uint32_t ebb__lanes_peek(const ebb__lanes *l, const ebb__queue *q, uint32_t ahead) {
    if (q->count <= ahead) return 0;
    uint32_t left = (uint32_t)(q->take_end - q->take);
    if (ahead < left) return q->take[ahead];
    uint32_t next = ebb__lanes_block(l, q->head)->next;
    return next == 0 ? 0 : ebb__lanes_block(l, next)->item[ahead - left];
}

#endif
