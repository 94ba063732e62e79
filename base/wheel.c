#include "base/wheel.h"

#include <assert.h>

/* References with the top source number name the slots' own heads. */
enum { HEADS = 3 };
_Static_assert(UINT64_MAX / EBB__TICK < UINT64_C(1) << (6 * EBB__WHEEL_LEVELS), "every tick has a slot");

static inline ebb__node *node_at(const ebb__wheel *w, uint32_t ref) {
    uint32_t k = ref >> 30, i = ref & ((UINT32_C(1) << 30) - 1);
    if (k == HEADS) return (ebb__node *)(uintptr_t)&w->head[i];
    char *chunk = (*w->source[k].base)[i >> w->source[k].shift];
    return (ebb__node *)(void *)(chunk + w->source[k].offset +
                                 (size_t)(i & w->source[k].mask) * w->source[k].stride);
}

void ebb__wheel_init(ebb__wheel *w, uint64_t now) {
    w->tick = now / EBB__TICK;
    w->armed = 0;
    w->quiet_until = EBB_FOREVER;
    for (unsigned l = 0; l < EBB__WHEEL_LEVELS; l++) w->pending[l] = 0;
    for (uint32_t i = 0; i < EBB__WHEEL_LEVELS * EBB__WHEEL_SLOTS; i++) {
        w->head[i].next = w->head[i].prev = ebb__wheel_ref(HEADS, i);
    }
}

void ebb__wheel_source(ebb__wheel *w, unsigned k, ebb__slab *slab, size_t offset, bool cold) {
    w->source[k].base = (char *const *const *)&slab->base;
    w->source[k].shift = slab->shift;
    w->source[k].mask = (UINT32_C(1) << slab->shift) - 1;
    w->source[k].offset = offset + (cold ? (size_t)slab->hot << slab->shift : 0);
    w->source[k].stride = cold ? slab->cold : slab->hot;
}

static uint64_t tick_of(uint64_t due) {
    return due / EBB__TICK + (due % EBB__TICK != 0);
}

/* The level is that of the highest digit in which the tick differs from the wheel's, so that a slot
 * of level l is opened when the wheel's own digit l reaches it. */
static inline void link_in(ebb__wheel *w, uint32_t ref, ebb__node *n) {
    uint64_t at = tick_of(n->due);
    if (at < w->tick) at = w->tick;
    uint64_t differs = (at ^ w->tick) | 1;
    unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / 6;
    unsigned slot = (unsigned)(at >> (6 * level)) & 63;
    uint32_t h = ebb__wheel_ref(HEADS, level * EBB__WHEEL_SLOTS + slot);
    ebb__node *head = &w->head[level * EBB__WHEEL_SLOTS + slot];
    n->next = h;
    n->prev = head->prev;
    node_at(w, head->prev)->next = ref;
    head->prev = ref;
    w->pending[level] |= UINT64_C(1) << slot;
}

static inline void unlink(ebb__wheel *w, ebb__node *n) {
    node_at(w, n->prev)->next = n->next;
    node_at(w, n->next)->prev = n->prev;
    if (n->next == n->prev && n->next >> 30 == HEADS) {
        uint32_t i = n->next & ((UINT32_C(1) << 30) - 1);
        w->pending[i / EBB__WHEEL_SLOTS] &= ~(UINT64_C(1) << i % EBB__WHEEL_SLOTS);
    }
    n->next = n->prev = 0;
}

void ebb__wheel_arm(ebb__wheel *w, uint32_t ref, uint64_t due) {
    ebb__node *n = node_at(w, ref);
    assert(n->next == 0);
    n->due = due;
    link_in(w, ref, n);
    w->armed++;
    if (due < w->quiet_until) w->quiet_until = due;
}

void ebb__wheel_disarm(ebb__wheel *w, uint32_t ref) {
    ebb__node *n = node_at(w, ref);
    if (n->next == 0) return;
    unlink(w, n);
    w->armed--;
}

bool ebb__wheel_armed(const ebb__wheel *w, uint32_t ref) {
    return node_at(w, ref)->next != 0;
}

/* The slot to open next: the earliest start, of a higher level if two start together (what is in it
 * may be due before what is in the lower). False if the wheel is empty. */
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
        ebb__node *head = &w->head[level * EBB__WHEEL_SLOTS + slot];
        uint32_t ref = head->next;
        ebb__node *n = node_at(w, ref);
        unlink(w, n);
        --*work;
        if (tick_of(n->due) <= w->tick) {
            w->armed--;
            return ref;
        }
        link_in(w, ref, n);
    }
    return 0;
}

uint64_t ebb__wheel_next(const ebb__wheel *w) {
    unsigned level, slot;
    uint64_t start;
    if (!next_slot(w, &level, &slot, &start)) return EBB_FOREVER;
    return start > EBB_FOREVER / EBB__TICK ? EBB_FOREVER : start * EBB__TICK;
}
