#include "base/lanes.h"

#include <assert.h>

void ebb__lanes_init(ebb__lanes *l, ebb__queue *queue, uint32_t queues,
                     void (*moved)(void *ctx, uint32_t item, uint32_t pos), void *ctx) {
    *l = (ebb__lanes){.queue = queue, .queues = queues, .moved = moved, .ctx = ctx};
    ebb__slab_init(&l->blocks, sizeof(ebb__block), 0, 6, 0);
    for (uint32_t i = 0; i < queues; i++) queue[i] = (ebb__queue){0};
    l->total = 2 * queues; /* a debt that the first reserve pays */
}

void ebb__lanes_fini(ebb__lanes *l, const ebb_allocator *a) {
    ebb__slab_fini(&l->blocks, a);
}

static uint32_t blocks_owned(const ebb__lanes *l) {
    return l->blocks.used - 1;
}

static void release(ebb__lanes *l, uint32_t b) {
    ebb__lanes_block(l, b)->next = l->spare;
    l->spare = b;
}

bool ebb__lanes_reserve_slow(ebb__lanes *l, const ebb_allocator *a, uint32_t members) {
    uint64_t want = (2 * (uint64_t)members + EBB__BLOCK_ITEMS - 1) / EBB__BLOCK_ITEMS + 2 * l->queues;
    while (blocks_owned(l) < want) {
        if (ebb__slab_reserve(&l->blocks, a) != EBB_OK) return false;
        release(l, ebb__slab_take(&l->blocks));
    }
    l->total = blocks_owned(l);
    return true;
}

/* Closes the holes of one queue: reads ahead of where it writes, in the same blocks. */
static void compact(ebb__lanes *l, ebb__queue *q) {
    uint32_t rb = q->head, ro = q->head_off, wb = q->head, wo = 0;
    if (rb == 0) return;
    for (;;) {
        if (ro == EBB__BLOCK_ITEMS && rb != q->tail) {
            rb = ebb__lanes_block(l, rb)->next;
            ro = 0;
        }
        if (rb == q->tail && ro == q->tail_off) break;
        uint32_t item = ebb__lanes_block(l, rb)->item[ro++];
        if (item == 0) continue;
        if (wo == EBB__BLOCK_ITEMS) {
            wb = ebb__lanes_block(l, wb)->next;
            wo = 0;
        }
        ebb__lanes_block(l, wb)->item[wo] = item;
        l->moved(l->ctx, item, wb * 32 + wo++);
    }
    uint32_t rest = wb == q->tail ? 0 : ebb__lanes_block(l, wb)->next;
    uint32_t last = q->tail;
    q->head_off = 0;
    q->tail = wb;
    q->tail_off = wo;
    ebb__lanes_block(l, wb)->next = 0;
    while (rest != 0) {
        uint32_t next = rest == last ? 0 : ebb__lanes_block(l, rest)->next;
        release(l, rest);
        rest = next;
    }
}

void ebb__lanes_next_block(ebb__lanes *l, ebb__queue *q) {
    if (l->spare == 0) {
        for (uint32_t i = 0; i < l->queues; i++) compact(l, &l->queue[i]);
        if (q->tail != 0 && q->tail_off < EBB__BLOCK_ITEMS) return;
    }
    uint32_t b = l->spare;
    assert(b != 0 && "room is reserved before a member is queued");
    l->spare = ebb__lanes_block(l, b)->next;
    ebb__lanes_block(l, b)->next = 0;
    if (q->tail == 0) {
        q->head = b;
        q->head_off = 0;
    } else {
        ebb__lanes_block(l, q->tail)->next = b;
    }
    q->tail = b;
    q->tail_off = 0;
}

uint32_t ebb__lanes_pop_slow(ebb__lanes *l, ebb__queue *q) {
    assert(q->count > 0);
    for (;;) {
        if (q->head_off == EBB__BLOCK_ITEMS) {
            uint32_t done = q->head;
            q->head = ebb__lanes_block(l, done)->next;
            q->head_off = 0;
            release(l, done);
        }
        uint32_t item = ebb__lanes_block(l, q->head)->item[q->head_off++];
        if (item == 0) continue;
        q->count--;
        if (q->count == 0 && q->head == q->tail) q->head_off = q->tail_off = 0;
        return item;
    }
}
