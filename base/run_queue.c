#include "base/run_queue.h"

#include <assert.h>

void ebb__run_queue_init(ebb__run_queues *l, ebb__queue *queue, uint32_t queues,
                         void (*moved)(void *ctx, uint32_t item, uint32_t pos), void *ctx) {
    *l = (ebb__run_queues){.queue = queue, .queues = queues, .moved = moved, .ctx = ctx};
    ebb__slab_init(&l->blocks, sizeof(ebb__block), 0, 6, 0);
    for (uint32_t i = 0; i < queues; i++) queue[i] = (ebb__queue){0};
    l->total = 2 * queues; /* the two blocks for each queue; the first reserve allocates them */
}

void ebb__run_queue_fini(ebb__run_queues *l, const ebb_allocator *a) {
    ebb__slab_fini(&l->blocks, a);
}

static uint32_t blocks_owned(const ebb__run_queues *l) {
    return l->blocks.used - 1;
}

static void release(ebb__run_queues *l, uint32_t b) {
    ebb__run_queue_block(l, b)->next = l->spare;
    l->spare = b;
}

bool ebb__run_queue_reserve_slow(ebb__run_queues *l, const ebb_allocator *a, uint32_t members) {
    uint64_t want = (2 * (uint64_t)members + EBB__BLOCK_ITEMS - 1) / EBB__BLOCK_ITEMS;
    want += 2 * (uint64_t)l->queues;
    while (blocks_owned(l) < want) {
        if (ebb__slab_reserve(&l->blocks, a) != EBB_OK) return false;
        release(l, ebb__slab_take(&l->blocks));
    }
    l->total = blocks_owned(l);
    return true;
}

static void set_head(ebb__run_queues *l, ebb__queue *q, uint32_t b) {
    q->head = b;
    q->take = ebb__run_queue_block(l, b)->item;
    q->take_end = q->take + EBB__BLOCK_ITEMS;
}

static void set_tail(ebb__run_queues *l, ebb__queue *q, uint32_t b, uint32_t off) {
    q->tail = b;
    q->put = ebb__run_queue_block(l, b)->item + off;
    q->put_end = ebb__run_queue_block(l, b)->item + EBB__BLOCK_ITEMS;
    q->put_pos = b * 32 + off;
}

/* Closes the holes of one queue in place: the read position is always ahead of the write position. */
static void compact(ebb__run_queues *l, ebb__queue *q) {
    if (q->head == 0) return;
    uint32_t rb = q->head, wb = q->head, wo = 0;
    uint32_t ro = (uint32_t)(q->take - ebb__run_queue_block(l, rb)->item);
    uint32_t end = (uint32_t)(q->put - ebb__run_queue_block(l, q->tail)->item);
    for (;;) {
        if (ro == EBB__BLOCK_ITEMS && rb != q->tail) {
            rb = ebb__run_queue_block(l, rb)->next;
            ro = 0;
        }
        if (rb == q->tail && ro == end) break;
        uint32_t item = ebb__run_queue_block(l, rb)->item[ro++];
        if (item == 0) continue;
        if (wo == EBB__BLOCK_ITEMS) {
            wb = ebb__run_queue_block(l, wb)->next;
            wo = 0;
        }
        ebb__run_queue_block(l, wb)->item[wo] = item;
        l->moved(l->ctx, item, wb * 32 + wo++);
    }
    uint32_t rest = wb == q->tail ? 0 : ebb__run_queue_block(l, wb)->next;
    set_head(l, q, q->head);
    set_tail(l, q, wb, wo);
    ebb__run_queue_block(l, wb)->next = 0;
    while (rest != 0) {
        uint32_t next = ebb__run_queue_block(l, rest)->next;
        release(l, rest);
        rest = next;
    }
}

void ebb__run_queue_next_block(ebb__run_queues *l, ebb__queue *q) {
    if (l->spare == 0) {
        for (uint32_t i = 0; i < l->queues; i++) compact(l, &l->queue[i]);
        if (q->put != q->put_end) return;
    }
    uint32_t b = l->spare;
    assert(b != 0 && "room is reserved before a member is queued");
    l->spare = ebb__run_queue_block(l, b)->next;
    ebb__run_queue_block(l, b)->next = 0;
    if (q->tail == 0) set_head(l, q, b);
    else ebb__run_queue_block(l, q->tail)->next = b;
    set_tail(l, q, b, 0);
}

uint32_t ebb__run_queue_pop_slow(ebb__run_queues *l, ebb__queue *q) {
    assert(q->count > 0);
    for (;;) {
        if (q->take == q->take_end) {
            uint32_t done = q->head;
            set_head(l, q, ebb__run_queue_block(l, done)->next);
            release(l, done);
        }
        uint32_t item = *q->take++;
        if (item == 0) continue;
        if (--q->count == 0 && q->take == q->put) {
            set_head(l, q, q->tail);
            set_tail(l, q, q->tail, 0);
        }
        return item;
    }
}
