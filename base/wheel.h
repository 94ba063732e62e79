/* Hierarchical timer wheel: eight levels of 64 slots with ticks of one millisecond, which covers all times.
 *
 * A node lives in a record of some slab; the wheel names it by a reference: two bits for the slab, 24 for the
 * record. So arming allocates nothing, and links take eight bytes. A node fires at the first tick that is not
 * before its due time: never early, at most 1 ms late. The work of a turn is bounded: a node is moved down at most
 * seven times, and one call moves or fires no more nodes than its limit. `now` may be ahead of the wheel; the next
 * call continues. */
#ifndef EBB__WHEEL_H
#define EBB__WHEEL_H

#include <assert.h>

#include "base/slab.h"

#define EBB__TICK EBB_MS

enum { EBB__WHEEL_LEVELS = 8, EBB__WHEEL_SLOTS = 64, EBB__WHEEL_SOURCES = 3 };

typedef struct ebb__links {
    uint32_t next, prev; /* references; next 0: not armed */
} ebb__links;

typedef struct ebb__node {
    ebb__links links;
    uint64_t due; /* a time */
} ebb__node;

typedef struct ebb__wheel {
    struct {
        char *const *const *base; /* the slab's chunks; they may move */
        uint32_t shift, mask;
        uint32_t offset, stride;         /* of the links, from the start of a chunk */
        uint32_t due_offset, due_stride; /* of the times */
    } source[EBB__WHEEL_SOURCES];
    uint64_t tick;                       /* everything due before this tick has fired */
    uint64_t pending[EBB__WHEEL_LEVELS]; /* one bit for each slot that is not empty */
    uint64_t quiet_until;                /* a turn before this time has nothing to do */
    ebb__links head[EBB__WHEEL_LEVELS * EBB__WHEEL_SLOTS];
} ebb__wheel;

void ebb__wheel_init(ebb__wheel *w, uint64_t now);
/* Nodes of source `k` are at `offset` in the hot records of `slab`, or in its cold ones. */
void ebb__wheel_source(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t offset, bool cold);
/* Links are in the hot records, times in the cold ones: disarming a node touches its neighbours too, but needs no
 * times. */
void ebb__wheel_source_split(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t links, size_t due);

static inline uint32_t ebb__wheel_ref(unsigned k, uint32_t index) {
    return (uint32_t)k << 30 | index;
}

/* References with the top source number name the list heads of the slots. */
enum { EBB__WHEEL_HEADS = EBB__WHEEL_SOURCES };
static inline ebb__links *ebb__wheel_links(const ebb__wheel *w, uint32_t ref) {
    uint32_t k = ref >> 30, i = ref & ((UINT32_C(1) << 30) - 1);
    if (k == EBB__WHEEL_HEADS) return (ebb__links *)(uintptr_t)&w->head[i];
    char *chunk = (*w->source[k].base)[i >> w->source[k].shift];
    return (ebb__links *)(void *)(chunk + w->source[k].offset +
                                  (size_t)(i & w->source[k].mask) * w->source[k].stride);
}

static inline uint64_t *ebb__wheel_due(const ebb__wheel *w, uint32_t ref) {
    uint32_t k = ref >> 30, i = ref & ((UINT32_C(1) << 30) - 1);
    char *chunk = (*w->source[k].base)[i >> w->source[k].shift];
    return (uint64_t *)(void *)(chunk + w->source[k].due_offset +
                                (size_t)(i & w->source[k].mask) * w->source[k].due_stride);
}

static inline uint64_t ebb__wheel_tick(uint64_t due) {
    return due / EBB__TICK + (due % EBB__TICK != 0);
}

/* The level is that of the highest digit in which the tick differs from the wheel's, so that a slot
 * of level l is opened when the wheel's own digit l reaches it. */
static inline void ebb__wheel_link(ebb__wheel *w, uint32_t ref, ebb__links *n, uint64_t due) {
    uint64_t at = ebb__wheel_tick(due);
    if (at < w->tick) at = w->tick;
    uint64_t differs = (at ^ w->tick) | 1;
    unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / 6;
    unsigned slot = (unsigned)(at >> (6 * level)) & 63;
    uint32_t h = ebb__wheel_ref(EBB__WHEEL_HEADS, level * EBB__WHEEL_SLOTS + slot);
    ebb__links *head = &w->head[level * EBB__WHEEL_SLOTS + slot];
    n->next = h;
    n->prev = head->prev;
    if (head->prev == h) w->pending[level] |= UINT64_C(1) << slot;
    ebb__wheel_links(w, head->prev)->next = ref;
    head->prev = ref;
}

/* The caller marks the node as not armed if that is tested later. */
static inline void ebb__wheel_unlink(ebb__wheel *w, ebb__links *n) {
    ebb__wheel_links(w, n->prev)->next = n->next;
    ebb__wheel_links(w, n->next)->prev = n->prev;
    if (n->next == n->prev && n->next >> 30 == EBB__WHEEL_HEADS) {
        uint32_t i = n->next & ((UINT32_C(1) << 30) - 1);
        w->pending[i / EBB__WHEEL_SLOTS] &= ~(UINT64_C(1) << i % EBB__WHEEL_SLOTS);
    }
}

/* `due` is a time. The node must not be armed. Inline, since a timer is armed and disarmed for every wait. The
 * `_links` form is for callers that have the links and have stored the time. */
static inline void ebb__wheel_arm_links(ebb__wheel *w, uint32_t ref, ebb__links *n, uint64_t due) {
    ebb__wheel_link(w, ref, n, due);
    if (due < w->quiet_until) w->quiet_until = due;
}

static inline void ebb__wheel_arm(ebb__wheel *w, uint32_t ref, uint64_t due) {
    ebb__links *n = ebb__wheel_links(w, ref);
    assert(n->next == 0);
    *ebb__wheel_due(w, ref) = due;
    ebb__wheel_arm_links(w, ref, n, due);
}

static inline void ebb__wheel_disarm(ebb__wheel *w, uint32_t ref) {
    ebb__links *n = ebb__wheel_links(w, ref);
    if (n->next == 0) return;
    ebb__wheel_unlink(w, n);
    n->next = 0;
}

static inline bool ebb__wheel_armed(const ebb__wheel *w, uint32_t ref) {
    return ebb__wheel_links(w, ref)->next != 0;
}

/* Turns towards `now`: returns a node that is due, disarmed, or 0. `*work` is decremented for every node moved or
 * fired; 0 with *work > 0 means that nothing more is due. */
uint32_t ebb__wheel_turn(ebb__wheel *w, uint64_t now, uint32_t *work);

/* When the next node fires or has to be moved: not later than the next firing. */
uint64_t ebb__wheel_next(const ebb__wheel *w);

#endif
