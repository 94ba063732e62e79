/* Hierarchical timer wheel: eight levels of 64 slots, ticks of one millisecond: every
 * time there is has its slot.
 *
 * A node lives in a record of somebody's slab; the wheel names it by a reference: two bits say which
 * slab, 24 which record. So arming allocates nothing, and links cost eight bytes. A node fires at
 * the first tick that is not before its due time: never early, at most 1 ms late. Turning the wheel
 * is bounded: a node is moved down at most seven times, and one call moves or fires at most as many
 * nodes as it is told to; `now` may run ahead of the wheel, and the next call goes on. */
#ifndef EBB__WHEEL_H
#define EBB__WHEEL_H

#include "base/slab.h"

#define EBB__TICK EBB_MS

enum { EBB__WHEEL_LEVELS = 8, EBB__WHEEL_SLOTS = 64, EBB__WHEEL_SOURCES = 3 };

typedef struct ebb__node {
    uint32_t next, prev; /* references; 0: not armed */
    uint64_t due;        /* a time */
} ebb__node;

typedef struct ebb__wheel {
    struct {
        char *const *const *base; /* the slab's chunks; they may move */
        uint32_t shift, mask;
        size_t offset, stride; /* of nodes, from a chunk's base */
    } source[EBB__WHEEL_SOURCES];
    uint64_t tick;                       /* everything due before it has fired */
    uint64_t pending[EBB__WHEEL_LEVELS]; /* a bit a slot that is not empty */
    uint32_t armed;
    uint64_t quiet_until; /* a time before which no turn finds anything to do */
    ebb__node head[EBB__WHEEL_LEVELS * EBB__WHEEL_SLOTS];
} ebb__wheel;

void ebb__wheel_init(ebb__wheel *w, uint64_t now);
/* Nodes of source `k` stand at `offset` in the hot records of `slab`, or in its cold ones. */
void ebb__wheel_source(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t offset, bool cold);

static inline uint32_t ebb__wheel_ref(unsigned k, uint32_t index) {
    return (uint32_t)k << 30 | index;
}

/* `due` is a time. The node must not be armed. */
void ebb__wheel_arm(ebb__wheel *w, uint32_t ref, uint64_t due);
void ebb__wheel_disarm(ebb__wheel *w, uint32_t ref);
bool ebb__wheel_armed(const ebb__wheel *w, uint32_t ref);

/* Turns towards `now`: returns a node that is due, disarmed, or 0. `*work` counts down for every
 * node moved or fired; 0 with *work > 0 means that nothing more is due. */
uint32_t ebb__wheel_turn(ebb__wheel *w, uint64_t now, uint32_t *work);

/* When the next node fires, or may have to be moved: not later than the next firing. */
uint64_t ebb__wheel_next(const ebb__wheel *w);

#endif
