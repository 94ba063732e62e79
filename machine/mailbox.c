/* Queues: a mailbox is a ring of cells, the ready queue a list of machines through their records. */
#include "machine/machine.h"

#include <assert.h>

enum { CLASS_SHIFT = 16, DEPTH_SHIFT = 20, DEPTH_MAX = 4095 }; /* in the value of machine_queued */

void ebb__ready_push(ebb_machines *ms, uint32_t index, ebb__machine *m) {
    assert(m->lifecycle == EBB_MACHINE_RUNNING && !(m->flags & EBB__M_READY));
    m->flags |= EBB__M_READY;
    m->ready_next = 0;
    if (ms->n_ready++ == 0) ms->ready_first = index;
    else ebb__machine_at(ms, ms->ready_last)->ready_next = index;
    ms->ready_last = index;
}

/* Stopped machines may still be in the queue. */
uint32_t ebb__ready_pop(ebb_machines *ms, uint32_t nth) {
    uint32_t before = 0, i = ms->ready_first;
    assert(nth < ms->n_ready);
    while (nth-- > 0) {
        before = i;
        i = ebb__machine_at(ms, i)->ready_next;
    }
    ebb__machine *m = ebb__machine_at(ms, i);
    if (before == 0) ms->ready_first = m->ready_next;
    else ebb__machine_at(ms, before)->ready_next = m->ready_next;
    if (ms->ready_last == i) ms->ready_last = before;
    ms->n_ready--;
    m->flags &= (uint8_t)~EBB__M_READY;
    return i;
}

static void note_put(ebb_machines *ms, uint32_t index, const ebb__machine *m, const ebb__cell *c) {
    uint32_t depth = m->places > DEPTH_MAX ? DEPTH_MAX : m->places;
    ebb__machine_note_slow(ms, EBB_EV_MACHINE_QUEUED, ebb__machine_id(ms, index), c->from,
                           c->kind | (uint32_t)c->what << CLASS_SHIFT | depth << DEPTH_SHIFT, c->number);
}

void ebb__mailbox_put(ebb_machines *ms, uint32_t index, ebb__machine *m, ebb__cell *c) {
    assert(m->lifecycle <= EBB_MACHINE_RUNNING);
    c->number = ++ms->set->layer->number;
    ms->queued++;
    if (m->last == NULL) {
        c->next = c;
    } else {
        c->next = m->last->next;
        m->last->next = c;
    }
    m->last = c;
    if (ebb__is_recorded(ms->rt)) note_put(ms, index, m, c);
    if (!(m->flags & EBB__M_READY) && m->lifecycle == EBB_MACHINE_RUNNING && m != ms->running)
        ebb__ready_push(ms, index, m);
}

void ebb__mailbox_take(ebb_machines *ms, ebb__machine *m, ebb__cell *c) {
    ebb__cell *before = m->mark != NULL ? m->mark : m->last;
    assert(before->next == c);
    ms->queued--;
    if (before == c) {
        m->last = NULL;
    } else {
        before->next = c->next;
        if (m->last == c) m->last = before;
    }
    if (c->flags & EBB__PLACE) {
        m->places--;
        c->flags &= (uint8_t)~EBB__PLACE;
    } else if (EBB__UNLIKELY(c->flags & EBB__PORTED)) {
        c->flags &= (uint8_t)~EBB__PORTED;
        ebb__port_taken(ms, c);
    }
}
