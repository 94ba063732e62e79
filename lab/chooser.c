/* The chooser: every decision of a run is taken here, from the seed or from the choices of a case, and is kept, so that
 * the run can be repeated. */
#include "lab/lab.h"

#include <assert.h>

uint64_t ebb__random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool room_for_choice(ebb_lab *lab) {
    ebb__chooser *ch = &lab->chooser;
    size_t room = ch->room;
    return ebb__lab_grow(lab, (void **)(void *)&ch->of, &room, ch->n + 1, sizeof *ch->of) &&
           ebb__lab_grow(lab, (void **)(void *)&ch->taken, &ch->room, ch->n + 1, sizeof *ch->taken);
}

static void record(ebb__chooser *ch, uint16_t taken, uint16_t of) {
    assert(ch->n < ch->room && taken < of);
    if (ch->shown != NULL && ch->n < ch->shown_room) {
        ch->shown->at[ch->n].taken = taken;
        ch->shown->at[ch->n].of = of;
        ch->shown->n = ch->n + 1;
    }
    ch->taken[ch->n] = taken;
    ch->of[ch->n++] = of;
}

uint32_t ebb__choose(ebb_lab *lab, uint32_t n) {
    ebb__chooser *ch = &lab->chooser;
    if (n < 2 || n > UINT16_MAX || lab->winding_down || !room_for_choice(lab)) return 0;
    uint32_t which;
    if (!ch->recorded) which = (uint32_t)((ebb__random(&ch->random) >> 32) * n >> 32);
    else which = ch->n < ch->n_given ? ch->given[ch->n] % n : 0;
    record(ch, (uint16_t)which, (uint16_t)n);
    return which;
}

void ebb__chosen(ebb_lab *lab, uint16_t taken, uint16_t of) {
    if (room_for_choice(lab)) record(&lab->chooser, taken, of);
}

uint32_t ebb_lab_choose(ebb_lab *lab, uint32_t n) {
    return ebb__choose(lab, n);
}
