#include "base/wheel.h"

#include <stddef.h>

_Static_assert(UINT64_MAX / EBB__TICK < UINT64_C(1) << (6 * EBB__WHEEL_LEVELS), "every tick has a slot");

void ebb__wheel_init(ebb__wheel *w, uint64_t now) {
    w->tick = now / EBB__TICK;
    w->quiet_until = EBB_FOREVER;
    for (unsigned l = 0; l < EBB__WHEEL_LEVELS; l++) w->pending[l] = 0;
    for (uint32_t i = 0; i < EBB__WHEEL_LEVELS * EBB__WHEEL_SLOTS; i++) {
        w->head[i].next = w->head[i].prev = ebb__wheel_ref(EBB__WHEEL_HEADS, i);
    }
}

void ebb__wheel_source(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t offset, bool cold) {
    size_t start = offset + (cold ? (size_t)slab->hot << slab->shift : 0);
    w->source[k].base = (char *const *const *)&slab->base;
    w->source[k].shift = slab->shift;
    w->source[k].mask = (UINT32_C(1) << slab->shift) - 1;
    w->source[k].offset = (uint32_t)(start + offsetof(ebb__node, links));
    w->source[k].due_offset = (uint32_t)(start + offsetof(ebb__node, due));
    w->source[k].stride = w->source[k].due_stride = cold ? slab->cold : slab->hot;
}

void ebb__wheel_source_split(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t links, size_t due) {
    ebb__wheel_source(w, k, slab, links, false);
    w->source[k].due_offset = (uint32_t)(due + ((size_t)slab->hot << slab->shift));
    w->source[k].due_stride = slab->cold;
}

/* The slot to open next: the one that starts first, and of two with the same start the one of the higher level,
 * since its nodes may be due before those of the lower. False if the wheel is empty. */
static bool next_slot(const ebb__wheel *w, unsigned *level, unsigned *slot, uint64_t *start) {
    bool found = false;
    *level = *slot = 0;
    *start = 0;
    for (unsigned l = 0; l < EBB__WHEEL_LEVELS; l++) {
        if (w->pending[l] == 0) continue;
        unsigned digit = (unsigned)(w->tick >> (6 * l)) & 63;
        uint64_t ahead = w->pending[l] >> digit;
        if (ahead == 0) continue;
        unsigned s = digit + (unsigned)__builtin_ctzll(ahead);
        uint64_t span = UINT64_C(1) << (6 * l);
        uint64_t at = (w->tick & ~(span * 64 - 1)) + s * span;
        if (at < w->tick) at = w->tick;
        if (!found || at <= *start) {
            found = true;
            *level = l;
            *slot = s;
            *start = at;
        }
    }
    return found;
}

uint32_t ebb__wheel_turn(ebb__wheel *w, uint64_t now, uint32_t *work) {
    uint64_t now_tick = now / EBB__TICK;
    while (*work > 0) {
        unsigned level, slot;
        uint64_t start;
        if (!next_slot(w, &level, &slot, &start) || start > now_tick) {
            if (w->tick < now_tick) w->tick = now_tick;
            w->quiet_until = ebb__wheel_next(w);
            return 0;
        }
        w->tick = start;
        uint32_t ref = w->head[level * EBB__WHEEL_SLOTS + slot].next;
        ebb__links *n = ebb__wheel_links(w, ref);
        uint64_t due = *ebb__wheel_due(w, ref);
        ebb__wheel_unlink(w, n);
        --*work;
        if (ebb__wheel_tick(due) <= w->tick) {
            n->next = 0;
            return ref;
        }
        ebb__wheel_link(w, ref, n, due);
    }
    return 0;
}

uint64_t ebb__wheel_next(const ebb__wheel *w) {
    unsigned level, slot;
    uint64_t start;
    if (!next_slot(w, &level, &slot, &start)) return EBB_FOREVER;
    return start > EBB_FOREVER / EBB__TICK ? EBB_FOREVER : start * EBB__TICK;
}
