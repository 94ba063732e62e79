/* Timers of machines (`after`) and timeouts of requests (`within`) in one wheel. Those that are due at the same
 * millisecond expire in the order of arming; the wheel does not promise that, so they are sorted. */
#include "machine/machine.h"

#include <assert.h>

/* ---- alarms ----------------------------------------------------------------------------------------------------- */

static void link_alarm(ebb_machines *ms, ebb__machine_more *more, uint32_t i) {
    ebb__alarm *a = ebb__alarm_at(ms, i);
    a->prev = 0;
    a->next = more->alarms;
    if (more->alarms != 0) ebb__alarm_at(ms, more->alarms)->prev = i;
    more->alarms = i;
    more->n_alarms++;
}

void ebb__alarm_free(ebb_machines *ms, uint32_t i) {
    ebb__alarm *a = ebb__alarm_at(ms, i);
    ebb__machine_more *more = ebb__machine_at(ms, a->machine)->more;
    ebb__wheel_disarm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_ALARM, i));
    a->cell = NULL;
    if (a->prev != 0) ebb__alarm_at(ms, a->prev)->next = a->next;
    else more->alarms = a->next;
    if (a->next != 0) ebb__alarm_at(ms, a->next)->prev = a->prev;
    more->n_alarms--;
    ebb__slab_give(&ms->alarms, i);
}

static uint64_t later(uint64_t now, uint64_t span) {
    return span > EBB_FOREVER - now ? EBB_FOREVER : now + span;
}

/* Staged alarms are in the list of their machine, with order 0: a change of the state in the same dispatch spares
 * them. */
ebb_status ebb_machine_after(ebb_machines *ms, uint64_t span, uint16_t kind) {
    ebb_status st;
    if (ms->running == NULL) return EBB_ERR_NOT_TASK;
    if (kind == EBB_MACHINE_REQUEST_FAILED) return EBB_ERR_INVALID;
    ebb__machine_more *more = ebb__machine_more_of(ms, ms->running);
    if (more == NULL) return EBB_ERR_NOMEM;
    if (more->n_alarms >= EBB_MACHINE_TIMERS) return EBB_ERR_LIMIT;
    st = ebb__slab_reserve(&ms->alarms, &ms->allocator);
    ebb__cell *c = st == EBB_OK ? ebb__cell_new(ms, kind, NULL, 0, &st) : NULL;
    if (c == NULL) return st;
    uint32_t i = ebb__slab_take(&ms->alarms);
    ebb__alarm *a = ebb__alarm_at(ms, i);
    *a = (ebb__alarm){.generation = a->generation, .machine = ms->running_index, .cell = c};
    a->node.due = later(ebb_machine_now(ms), span);
    link_alarm(ms, more, i);
    c->ref = i;
    ebb__stage(ms, c, EBB__ARM, ms->running_index);
    return EBB_OK;
}

void ebb__alarm_commit(ebb_machines *ms, ebb__cell *c) {
    ebb__alarm *a = ebb__alarm_at(ms, c->ref);
    c->what = EBB__EXPIRY;
    if (ebb__machine_at(ms, a->machine)->lifecycle > EBB_MACHINE_RUNNING) { /* stopped by an effect before */
        a->cell = NULL;
        ebb__slab_give(&ms->alarms, c->ref);
        ebb__cell_free(ms, c);
        return;
    }
    a->order = ++ms->order;
    ebb__machine_note(ms, EBB_EV_MACHINE_TIMER_ARMED, ebb__machine_id(ms, a->machine), 0, c->kind,
                      a->node.due);
    ebb__wheel_arm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_ALARM, c->ref), a->node.due);
}

/* An expiry that is queued already is left there as a stale one. */
void ebb__alarms_end(ebb_machines *ms, ebb__machine *m) {
    for (uint32_t i = m->more->alarms, next; i != 0; i = next) {
        ebb__alarm *a = ebb__alarm_at(ms, i);
        next = a->next;
        if (a->order == 0) continue; /* staged: the state after the commit has it */
        if (!ebb__wheel_armed(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_ALARM, i))) a->cell->what = EBB__STALE;
        else ebb__cell_free(ms, a->cell);
        ebb__alarm_free(ms, i);
    }
}

/* ---- timeouts --------------------------------------------------------------------------------------------------- */

void ebb__timeout_arm(ebb_machines *ms, uint32_t pending) {
    ebb__pending_more *p = ebb__pending_more_at(ms, pending);
    p->order = ++ms->order;
    ebb__wheel_arm(&ms->wheel, ebb__wheel_ref(EBB__WHEEL_PENDING, pending),
                   later(ebb_machine_now(ms), p->within));
}

/* ---- firing ------------------------------------------------------------------------------------------------------ */

static uint32_t index_of(uint32_t ref) {
    return ref & EBB__SLAB_MAX_INDEX;
}

/* The first word of a record links those that are due. */
static uint32_t *link_of(const ebb_machines *ms, uint32_t ref) {
    return ref >> 30 == EBB__WHEEL_ALARM ? &ebb__alarm_at(ms, index_of(ref))->link
                                         : &ebb__pending_at(ms, index_of(ref))->link;
}

static uint64_t order_of(const ebb_machines *ms, uint32_t ref) {
    return ref >> 30 == EBB__WHEEL_ALARM ? ebb__alarm_at(ms, index_of(ref))->order
                                         : ebb__pending_more_at(ms, index_of(ref))->order;
}

static bool is_before(const ebb_machines *ms, uint32_t a, uint32_t b) {
    uint64_t x = ebb__wheel_tick(*ebb__wheel_due(&ms->wheel, a)),
             y = ebb__wheel_tick(*ebb__wheel_due(&ms->wheel, b));
    return x != y ? x < y : order_of(ms, a) < order_of(ms, b);
}

static uint32_t merge(const ebb_machines *ms, uint32_t a, uint32_t b) {
    uint32_t first = 0, *end = &first;
    while (a != 0 && b != 0) {
        uint32_t *from = is_before(ms, b, a) ? &b : &a;
        *end = *from;
        end = link_of(ms, *from);
        *from = *end;
    }
    *end = a != 0 ? a : b;
    return first;
}

/* Merges runs of 1, 2, 4, ... bottom up. */
static uint32_t sort(const ebb_machines *ms, uint32_t list) {
    uint32_t runs[32] = {0}, all = 0;
    while (list != 0) {
        uint32_t one = list, *link = link_of(ms, one), i = 0;
        list = *link;
        *link = 0;
        for (; i < 31 && runs[i] != 0; i++) {
            one = merge(ms, runs[i], one);
            runs[i] = 0;
        }
        runs[i] = one;
    }
    for (uint32_t i = 0; i < 32; i++) all = merge(ms, runs[i], all);
    return all;
}

static void expire(ebb_machines *ms, uint32_t ref) {
    uint32_t i = index_of(ref);
    if (ref >> 30 == EBB__WHEEL_PENDING) {
        ebb__pending_fail(ms, i, EBB_REQUEST_TIMEOUT);
        return;
    }
    const ebb__alarm *a = ebb__alarm_at(ms, i);
    a->cell->from = ebb__machine_id(ms, a->machine);
    a->cell->to = a->machine;
    ebb__mailbox_put(ms, a->machine, ebb__machine_at(ms, a->machine), a->cell);
}

void ebb__timers_fire(ebb_machines *ms, uint64_t now) {
    if (now < ms->wheel.quiet_until) return;
    uint32_t due = 0, *end = &due, work, ref;
    do {
        work = UINT32_MAX;
        while ((ref = ebb__wheel_turn(&ms->wheel, now, &work)) != 0) {
            *end = ref;
            end = link_of(ms, ref);
            *end = 0;
        }
    } while (work == 0);
    for (due = sort(ms, due); due != 0;) {
        ref = due;
        due = *link_of(ms, ref);
        expire(ms, ref);
    }
}

ebb_status ebb__timers_sleep(ebb_machines *ms) {
    uint64_t due = ms->wheel.quiet_until;
    if (due == ms->timer_due && due > ebb_now(ms->cx)) return EBB_OK; /* one that is due may have fired */
    if (ms->timer.id != 0) (void)ebb_timer_disarm(ms->cx, ms->timer);
    ms->timer = (ebb_timer){0};
    ms->timer_due = EBB_FOREVER;
    if (due == EBB_FOREVER) return EBB_OK;
    ms->timer = ebb_timer_arm(ms->cx, ms->task, due);
    ebb_status st = ebb_id_status(ms->timer.id);
    if (st == EBB_OK) ms->timer_due = due;
    else ms->timer = (ebb_timer){0};
    return st;
}
