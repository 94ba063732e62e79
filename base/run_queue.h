/* Run queues: FIFO queues of indices whose memory is reserved beforehand, so that a push can't fail.
 *
 * All queues of a set share one pool of blocks. A member is in at most one queue at a time and stores its
 * position, so it can be removed: its place becomes a hole (0), which pops skip. `ebb__run_queue_reserve(n)`
 * reserves two places for each member and two blocks for each queue. When holes have used these up, a push first
 * closes the holes, which costs as much as the pushes that made them. */
#ifndef EBB__RUN_QUEUE_H
#define EBB__RUN_QUEUE_H

#include <assert.h>

#include "base/slab.h"

enum { EBB__BLOCK_ITEMS = 31 };

typedef struct ebb__block {
    uint32_t next;
    uint32_t item[EBB__BLOCK_ITEMS];
} ebb__block;

typedef struct ebb__queue {
    uint32_t *take, *take_end; /* the next place to pop, and the end of its block */
    uint32_t *put, *put_end;   /* the next place to push, and the end of its block */
    uint32_t put_pos;          /* the position of `put`: block * 32 + place in the block */
    uint32_t count;            /* members; holes do not count */
    uint32_t head, tail;       /* blocks; 0: none */
} ebb__queue;

typedef struct ebb__run_queues {
    ebb__slab blocks; /* freed one by one only to `spare` */
    uint32_t spare;
    uint32_t total;
    ebb__queue *queue;
    uint32_t queues;
    void (*moved)(void *ctx, uint32_t item, uint32_t pos);
    void *ctx;
} ebb__run_queues;

void ebb__run_queue_init(ebb__run_queues *l, ebb__queue *queue, uint32_t queues,
                         void (*moved)(void *ctx, uint32_t item, uint32_t pos), void *ctx);
void ebb__run_queue_fini(ebb__run_queues *l, const ebb_allocator *a);
/* True if up to `members` members can be queued from now on. */
bool ebb__run_queue_reserve_slow(ebb__run_queues *l, const ebb_allocator *a, uint32_t members);
void ebb__run_queue_next_block(ebb__run_queues *l, ebb__queue *q);
uint32_t ebb__run_queue_pop_slow(ebb__run_queues *l, ebb__queue *q);

static inline ebb__block *ebb__run_queue_block(const ebb__run_queues *l, uint32_t b) {
    return (ebb__block *)(void *)(l->blocks.base[b >> 6] + (size_t)(b & 63) * sizeof(ebb__block));
}

static inline bool ebb__run_queue_reserve(ebb__run_queues *l, const ebb_allocator *a, uint32_t members) {
    if ((uint64_t)(l->total - 2 * l->queues) * EBB__BLOCK_ITEMS >= 2 * (uint64_t)members) return true;
    return ebb__run_queue_reserve_slow(l, a, members);
}

/* Returns the position, for ebb__run_queue_remove. */
static inline uint32_t ebb__run_queue_push(ebb__run_queues *l, ebb__queue *q, uint32_t item) {
    if (q->put == q->put_end) ebb__run_queue_next_block(l, q);
    *q->put++ = item;
    q->count++;
    return q->put_pos++;
}

static inline void ebb__run_queue_remove(ebb__run_queues *l, ebb__queue *q, uint32_t pos) {
    assert(q->count > 0 && ebb__run_queue_block(l, pos / 32)->item[pos % 32] != 0);
    ebb__run_queue_block(l, pos / 32)->item[pos % 32] = 0;
    q->count--;
}

/* Pops the first member; there must be one. After the last one the block is used again from its start, so that two
 * tasks that take turns stay in one cache line. */
static inline uint32_t ebb__run_queue_pop(ebb__run_queues *l, ebb__queue *q) {
    if (q->take != q->take_end && *q->take != 0) {
        uint32_t item = *q->take++;
        if (--q->count == 0 && q->take == q->put) {
            q->take = q->put = q->put_end - EBB__BLOCK_ITEMS;
            q->put_pos = q->tail * 32;
        }
        return item;
    }
    return ebb__run_queue_pop_slow(l, q);
}

/* The member `ahead` places behind the head, for prefetching; 0 if it is not in this block or the next. */
static inline uint32_t ebb__run_queue_peek(const ebb__run_queues *l, const ebb__queue *q, uint32_t ahead) {
    if (q->count <= ahead) return 0;
    uint32_t left = (uint32_t)(q->take_end - q->take);
    if (ahead < left) return q->take[ahead];
    uint32_t next = ebb__run_queue_block(l, q->head)->next;
    return next == 0 ? 0 : ebb__run_queue_block(l, next)->item[ahead - left];
}

#endif
