/* Which streams a client has opened and ended, within a bound. */
#include "http/h2_closed.h"

#include <string.h>

static uint32_t slot_of(int32_t id) {
    return (uint32_t)id / 2 % EBB__H2_PAST;
}

static bool has(const uint64_t *bits, uint32_t slot) {
    return bits[slot / 64] >> slot % 64 & 1;
}

static void set(uint64_t *bits, uint32_t slot, bool on) {
    uint64_t bit = UINT64_C(1) << slot % 64;
    bits[slot / 64] = on ? bits[slot / 64] | bit : bits[slot / 64] & ~bit;
}

/* The slots of the ids from `last` to `id` belonged to ids that are forgotten now. */
static void forget(ebb__h2_past *p, int32_t id) {
    if ((id - p->last) / 2 >= EBB__H2_PAST) {
        memset(p->opened, 0, sizeof p->opened);
        memset(p->ended, 0, sizeof p->ended);
        return;
    }
    for (int32_t at = id; at > p->last; at -= 2) {
        set(p->opened, slot_of(at), false);
        set(p->ended, slot_of(at), false);
    }
}

void ebb__h2_past_open(ebb__h2_past *p, int32_t id) {
    if (id <= p->last) return;
    forget(p, id);
    p->last = id;
    set(p->opened, slot_of(id), true);
}

void ebb__h2_past_end(ebb__h2_past *p, int32_t id) {
    if (ebb__h2_past_of(p, id) == EBB__H2_WAS_OPENED) set(p->ended, slot_of(id), true);
}

ebb__h2_was ebb__h2_past_of(const ebb__h2_past *p, int32_t id) {
    if (id > p->last) return EBB__H2_WAS_IDLE;
    if ((p->last - id) / 2 >= EBB__H2_PAST) return EBB__H2_WAS_FORGOTTEN;
    if (!has(p->opened, slot_of(id))) return EBB__H2_WAS_SKIPPED;
    return has(p->ended, slot_of(id)) ? EBB__H2_WAS_ENDED : EBB__H2_WAS_OPENED;
}
