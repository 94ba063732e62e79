/* The dispatcher: the task that gives machines their turns. A poll handles 64 messages, fires what is due, and drains
 * when its region is closed or cancelled. When its budget counts polls, it does more in each. */
#include "machine/machine.h"

#include <assert.h>

enum { CHOICES = 8 }; /* the lab may choose among this many machines at the head of the ready queue */

/* ---- sleeping --------------------------------------------------------------------------------------------------- */

static void leave(ebb_wait *w) {
    (void)w;
}

static const ebb_wait_kind waiting = {"messages of machines", leave};

void ebb__dispatcher_wake(ebb_machines *ms) {
    if (ms->wait.cx != NULL) ebb__waiter_wake(&ms->wait);
}

/* Comes back for more turns. The lab may let time move on before: it has to see when the next timer is due. */
static ebb_status go_on(ebb_cx *cx, ebb_machines *ms) {
    if (ebb__rt_is_stepped(ms->rt)) (void)ebb__timers_sleep(ms);
    (void)ebb_task_wake(cx, ms->task);
    return EBB_PENDING;
}

static ebb_status sleep_until_needed(ebb_cx *cx, ebb_machines *ms) {
    /* Without memory for the timer it looks at the clock in every turn. */
    if (ebb__timers_sleep(ms) != EBB_OK) (void)ebb_task_wake(cx, ms->task);
    else (void)ebb_wait_begin(cx, &ms->wait, &waiting, ms);
    return EBB_PENDING;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* The work of one poll: enough to be done when half of the polls of a cleanup budget are used. */
static uint32_t batch_of(ebb_cx *cx, ebb_machines *ms) {
    ebb_task_info info;
    uint32_t least = ebb__rt_is_stepped(ms->rt) ? 1 : EBB_MACHINE_BATCH;
    if (!ms->cancelled || ebb_task_info_of(cx, ms->task, &info) != EBB_OK) return least;
    if (info.budget.polls == EBB_POLLS_UNBOUNDED) return least;
    return least + ms->n_machines / (info.budget.polls / 2 + 1);
}

static void take_turns(ebb_machines *ms, uint32_t n) {
    while (n-- > 0 && ms->n_ready > 0) {
        uint32_t choices = ms->n_ready < CHOICES ? ms->n_ready : CHOICES;
        uint32_t nth = choices < 2 ? 0 : ebb__rt_choose(ms->rt, choices);
        ebb__turn(ms, ebb__ready_pop(ms, nth));
    }
}

/* ---- draining ---------------------------------------------------------------------------------------------------- */

static bool is_around(const ebb_runtime *rt, const ebb__region *r, const ebb__region *inner) {
    for (; inner != NULL; inner = ebb__region_parent(rt, inner))
        if (inner == r) return true;
    return false;
}

/* Units of the closed service may still send until the last of them has closed. Those of operators stay until all else
 * has ended, so nothing waits for them. */
bool ebb__dispatcher_waits_for_units(const ebb_machines *ms) {
    ebb__region *own = ebb__region_of(ms->cx), *top = own;
    for (ebb__region *r = own; r != NULL; r = ebb__region_parent(ms->rt, r))
        if (ebb__region_is(ms->rt, r, EBB__REGION_CLOSING)) top = r;
    bool deeper = true;
    for (ebb__region *r = top; r != NULL; r = ebb__region_next(ms->rt, r, top, deeper)) {
        bool unit = ebb__region_is(ms->rt, r, EBB__REGION_UNIT);
        deeper = !ebb__region_is(ms->rt, r, EBB__REGION_APART);
        if (!deeper) continue;
        if (unit && ebb__region_state(r) != EBB_REGION_CLOSED && !is_around(ms->rt, r, own)) return true;
    }
    return false;
}

void ebb__dispatcher_unit_closed(ebb_machines *ms) {
    if (ebb_stopping(ms->cx)) ebb__dispatcher_wake(ms);
}

/* Turns the mailbox into dead letters, but for answers, and ends the machine's own requests. */
static void call_off(ebb_machines *ms, uint32_t index, ebb__machine *m) {
    uint64_t id = ebb__machine_id(ms, index);
    ebb__cell *last = m->last, *c = last == NULL ? NULL : last->next;
    ebb__cell *mark = m->mark, *kept = NULL; /* of the deferred ones */
    bool deferred = mark != NULL;
    m->mark = NULL;
    for (bool more = c != NULL; more;) {
        ebb__cell *next = c->next;
        more = c != last;
        bool last_deferred = c == mark;
        if (c->what == EBB__REPLY || c->what == EBB__FAILED) {
            m->mark = c; /* so that the next one can be taken */
            if (deferred) kept = c;
        } else {
            ebb__mailbox_take(ms, m, c);
            ebb__cell_called_off(ms, c, id, false);
        }
        deferred = deferred && !last_deferred;
        c = next;
    }
    m->mark = kept;
    for (uint32_t p = m->more == NULL ? 0 : m->more->made, next; p != 0; p = next) {
        next = ebb__pending_at(ms, p)->made_next;
        ebb__pending_fail(ms, p, EBB_REQUEST_STOPPED);
    }
}

/* A machine of a cancelled runtime gets one last dispatch, if it waited for an answer. */
static void cancel_machine(ebb_machines *ms, uint32_t index, bool last_turn) {
    ebb__machine *m = ebb__machine_at(ms, index);
    if (m->lifecycle == EBB_MACHINE_RUNNING && last_turn) {
        m->flags &= (uint8_t)~EBB__M_ENTER;
        call_off(ms, index, m);
        if (ebb__mailbox_next(m) != NULL) ebb__turn(ms, index);
    }
    if (m->lifecycle != EBB_MACHINE_STOPPED) ebb__machine_end(ms, index, EBB_MACHINE_STOPPED);
    if (ebb__hooks_due(ms)) ebb__hooks_run(ms);
}

static ebb_status ended(ebb_machines *ms, ebb_status st) {
    take_turns(ms, UINT32_MAX); /* retires what has stopped in the ready queue */
    ebb__ports_gone(ms);        /* if it is forced: what is under way to them is lost */
    assert(ms->machines.live == 0 && ms->pendings.live == 0 && ms->log == NULL && ms->cells.used == 0);
    assert(ms->alarms.live == 0 && ms->subscriptions.live == 0 && ms->topics.live == 0);
    if (ms->timer.id != 0) (void)ebb_timer_disarm(ms->cx, ms->timer);
    ms->timer = (ebb_timer){0};
    ms->cx = NULL;
    return st;
}

static ebb_status drain_cancelled(ebb_cx *cx, ebb_machines *ms) {
    bool overdue = ebb__is_overdue(cx);
    uint32_t n = overdue ? UINT32_MAX : batch_of(cx, ms);
    while (n-- > 0 && ms->youngest != 0) cancel_machine(ms, ms->youngest, !overdue);
    if (ms->youngest == 0 && !overdue && ebb__ports_drain(ms)) return sleep_until_needed(cx, ms);
    if (ms->youngest == 0) return ended(ms, EBB_CANCELLED);
    (void)ebb_task_wake(cx, ms->task);
    return EBB_PENDING;
}

static ebb_status drain_closed(ebb_cx *cx, ebb_machines *ms) {
    if (!ms->stopping) {
        if (ebb__ports_drain(ms) || ms->queued > 0 || ms->pendings.live > 0 ||
            ebb__dispatcher_waits_for_units(ms))
            return sleep_until_needed(cx, ms);
        ms->stopping = true;
    }
    for (uint32_t n = batch_of(cx, ms); n > 0 && ms->youngest != 0; n--) {
        ebb__machine_end(ms, ms->youngest, EBB_MACHINE_STOPPED);
        if (ebb__hooks_due(ms))
            ebb__hooks_run(ms); /* timers and hooks go on until the last one has stopped */
    }
    if (ms->youngest == 0) return ended(ms, EBB_OK);
    (void)ebb_task_wake(cx, ms->task);
    return EBB_PENDING;
}

/* The hook may send. */
static void tell_idle(ebb_machines *ms) {
    ms->hooking = true;
    ms->opts.idle(ms->opts.arg);
    ms->hooking = false;
    if (ebb__hooks_due(ms)) ebb__hooks_run(ms);
}

/* ---- the task ------------------------------------------------------------------------------------------------------ */

ebb_status ebb__dispatcher_poll(ebb_cx *cx, void *state) {
    ebb_machines *ms = state;
    ebb_wait_end(&ms->wait);
    if (ebb_cancelled(cx) && ebb_checkpoint(cx) != EBB_OK) ms->cancelled = true;
    if (ms->cancelled) return drain_cancelled(cx, ms);
    ebb__timers_fire(ms, ebb_now(cx));
    if (ebb__hooks_due(ms)) ebb__hooks_run(ms);
    take_turns(ms, batch_of(cx, ms));
    if (ms->n_ready > 0) return go_on(cx, ms);
    if (ebb_stopping(cx)) return drain_closed(cx, ms);
    if (ms->opts.idle != NULL) tell_idle(ms);
    return ms->n_ready == 0 ? sleep_until_needed(cx, ms) : go_on(cx, ms);
}
