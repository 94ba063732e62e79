/* trace/check_machine.c - rules of machines: a mailbox is first in, first out, but for what is deferred; a message is
 * committed, rolled back or dropped, once; a request ends once; a machine that has stopped or faulted does nothing. */
#include "trace/check.h"

typedef ebb__machine_entry machine;

/* The numbers that files have, as in ebb/machine.h, which stands above this folder. */
enum { LIFE_CREATED = 1, LIFE_RUNNING, LIFE_FAULTED, LIFE_STOPPED };
enum { DEAD_STOPPED = 2, DEAD_FAULTED = 3 };
enum { LAST_FAILURE = 4, UNWANTED = 8 };

static bool is_alive(const void *entry) {
    return ((const machine *)entry)->lifecycle != LIFE_STOPPED;
}

static bool is_pending(const void *entry) {
    return !((const ebb__pending_entry *)entry)->ended;
}

static machine *known_machine(ebb_checker *c, uint64_t id) {
    machine *m = ebb__check_find(&c->machines, id);
    if (m == NULL) ebb__check_fail_unknown(c, &c->machines, "machine", id);
    return m;
}

/* `needs` has a bit for each lifecycle in which the event may be. */
static bool in_lifecycle(ebb_checker *c, const machine *m, const char *event, uint32_t needs) {
    if (needs >> m->lifecycle & 1) return true;
    bool over = m->lifecycle >= LIFE_FAULTED;
    static const char *const names[] = {"?", "Created", "Running", "Faulted", "Stopped"};
    return ebb__check_fail_names(c, over ? EBB_ORACLE_STOPPED : EBB_ORACLE_PHASE, "machine", m->id, event,
                                 needs & 1u << LIFE_CREATED ? "Created or Running" : "Running",
                                 names[m->lifecycle]);
}

enum { CREATED = 1u << LIFE_CREATED, RUNNING = 1u << LIFE_RUNNING, FAULTED = 1u << LIFE_FAULTED };

/* ---- mailboxes -------------------------------------------------------------------------------------------------- */

static bool queued(ebb_checker *c, machine *m, const ebb_event *ev) {
    if (!in_lifecycle(c, m, "a message queued", CREATED | RUNNING)) return false;
    if (ev->other <= c->message)
        return ebb__check_fail_numbers(c, EBB_ORACLE_MAILBOX_FIFO, "machine", m->id, "number of a message",
                                       "more than ", c->message, ev->other);
    c->message = ev->other;
    ebb__message_entry *e = ebb__map_put(&c->messages, ev->other);
    if (e == NULL) {
        c->status = EBB_ERR_NOMEM;
        return false;
    }
    *e = (ebb__message_entry){.machine = m->id, .prev = m->last};
    if (m->last != 0) ((ebb__message_entry *)ebb__map_find(&c->messages, m->last))->next = ev->other;
    else m->first = ev->other;
    m->last = ev->other;
    if (m->next == 0) m->next = ev->other;
    return true;
}

static void unlink(ebb_checker *c, machine *m, uint64_t number) {
    ebb__message_entry e = *(ebb__message_entry *)ebb__map_find(&c->messages, number);
    if (e.prev != 0) ((ebb__message_entry *)ebb__map_find(&c->messages, e.prev))->next = e.next;
    else m->first = e.next;
    if (e.next != 0) ((ebb__message_entry *)ebb__map_find(&c->messages, e.next))->prev = e.prev;
    else m->last = e.prev;
    if (m->next == number) m->next = e.next;
    ebb__map_remove(&c->messages, number);
}

/* A message leaves its mailbox: the first that is not deferred, unless `any`. */
static bool leaves(ebb_checker *c, machine *m, uint64_t number, bool any) {
    const ebb__message_entry *e = ebb__map_find(&c->messages, number);
    if (e == NULL)
        return ebb__check_fail_numbers(c, EBB_ORACLE_TRANSACTION, "machine", m->id,
                                       "a message that has not ended", "one in its mailbox, ", m->next,
                                       number);
    if (e->machine != m->id)
        return ebb__check_fail_id(c, EBB_ORACLE_MAILBOX_FIFO, "machine", m->id,
                                  "has a message from the mailbox of", e->machine);
    if (!any && m->next != number)
        return ebb__check_fail_numbers(c, EBB_ORACLE_MAILBOX_FIFO, "machine", m->id, "next message", "",
                                       m->next, number);
    unlink(c, m, number);
    return true;
}

static bool deferred(ebb_checker *c, machine *m, const ebb_event *ev) {
    const ebb__message_entry *e = ebb__map_find(&c->messages, ev->other);
    if (!in_lifecycle(c, m, "a message deferred", RUNNING)) return false;
    if (e == NULL || m->next != ev->other)
        return ebb__check_fail_numbers(c, EBB_ORACLE_MAILBOX_FIFO, "machine", m->id, "next message", "",
                                       m->next, ev->other);
    m->next = e->next;
    return true;
}

static bool dropped(ebb_checker *c, machine *m, const ebb_event *ev) {
    if (ev->other == 0) return true; /* it was in no mailbox */
    bool ends = ev->value == DEAD_STOPPED || ev->value == DEAD_FAULTED;
    if (!in_lifecycle(c, m, "a message dropped", CREATED | RUNNING)) return false;
    return leaves(c, m, ev->other, ends);
}

/* ---- dispatches ---------------------------------------------------------------------------------------------------- */

static bool changes(ebb_checker *c, machine *m, uint32_t from, uint32_t to) {
    if (from != m->state)
        return ebb__check_fail_numbers(c, EBB_ORACLE_TRANSACTION, "machine", m->id, "state before", "",
                                       m->state, from);
    if (from != to) m->next = m->first; /* what was deferred is recalled */
    m->state = to;
    return true;
}

static bool dispatched(ebb_checker *c, machine *m, const ebb_event *ev) {
    if (!in_lifecycle(c, m, ebb_event_name(ev->type), RUNNING)) return false;
    if (ev->other != 0 && !leaves(c, m, ev->other, false)) return false;
    if (ev->type == EBB_EV_MACHINE_ROLLED_BACK) return true;
    return changes(c, m, ev->value >> 16, ev->value & 0xffff);
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static bool requested(ebb_checker *c, const ebb_event *ev) {
    return ebb__check_new_entry(c, &c->pendings, "request", ev->other, is_pending) != NULL;
}

static bool request_ended(ebb_checker *c, const ebb_event *ev) {
    ebb__pending_entry *p = ebb__check_find(&c->pendings, ev->other);
    if (p == NULL) return ebb__check_fail_unknown(c, &c->pendings, "request", ev->other);
    if (p->ended) return ebb__check_fail(c, EBB_ORACLE_REQUEST_END, "request", p->id, "has ended already");
    if (ev->value > LAST_FAILURE && ev->value != UNWANTED)
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "request", p->id, "how it ended", "at most ",
                                       LAST_FAILURE, ev->value);
    p->ended = true;
    return true;
}

/* ---- lifecycle --------------------------------------------------------------------------------------------------------- */

static bool spawned(ebb_checker *c, const ebb_event *ev) {
    machine *m = ebb__check_new_entry(c, &c->machines, "machine", ev->task_id, is_alive);
    if (m == NULL) return false;
    m->lifecycle = LIFE_CREATED;
    m->state = ev->value;
    return true;
}

static bool ends(ebb_checker *c, machine *m, bool faulted) {
    if (!in_lifecycle(c, m, faulted ? "machine_faulted" : "machine_stopped",
                      faulted ? RUNNING : CREATED | RUNNING | FAULTED))
        return false;
    if (m->first != 0)
        return ebb__check_fail_numbers(c, EBB_ORACLE_STOPPED, "machine", m->id,
                                       "message in its mailbox at its end", "", 0, m->first);
    m->lifecycle = faulted ? LIFE_FAULTED : LIFE_STOPPED;
    return true;
}

bool ebb__check_machine_event(ebb_checker *c, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_MACHINE_SPAWNED: return spawned(c, ev);
    case EBB_EV_MACHINE_REQUESTED: return requested(c, ev);
    case EBB_EV_MACHINE_REQUEST_ENDED: return request_ended(c, ev);
    case EBB_EV_MACHINE_REFUSED: return true; /* the id is an argument and may be wrong */
    default: break;
    }
    if (ev->task_id == 0 && ev->type == EBB_EV_MACHINE_DROPPED) return true;
    machine *m = known_machine(c, ev->task_id);
    if (m == NULL) return false;
    switch (ev->type) {
    case EBB_EV_MACHINE_STARTED:
        if (!in_lifecycle(c, m, "machine_started", CREATED)) return false;
        m->lifecycle = LIFE_RUNNING;
        return true;
    case EBB_EV_MACHINE_QUEUED: return queued(c, m, ev);
    case EBB_EV_MACHINE_COMMITTED:
    case EBB_EV_MACHINE_ROLLED_BACK: return dispatched(c, m, ev);
    case EBB_EV_MACHINE_RECOVERED:
        return in_lifecycle(c, m, "machine_recovered", RUNNING) &&
               changes(c, m, ev->value >> 16, ev->value & 0xffff);
    case EBB_EV_MACHINE_DEFERRED: return deferred(c, m, ev);
    case EBB_EV_MACHINE_DROPPED: return dropped(c, m, ev);
    case EBB_EV_MACHINE_FAULTED: return ends(c, m, true);
    case EBB_EV_MACHINE_STOPPED: return ends(c, m, false);
    default:
        return in_lifecycle(c, m, ebb_event_name(ev->type), CREATED | RUNNING); /* timers, subscriptions */
    }
}

bool ebb__check_machines_end(ebb_checker *c) {
    size_t at = 0;
    for (const ebb__pending_entry *p; (p = ebb__map_next(&c->pendings, &at)) != NULL;) {
        if (!p->ended) return ebb__check_fail(c, EBB_ORACLE_REQUEST_END, "request", p->id, "has not ended");
    }
    at = 0;
    for (const machine *m; (m = ebb__map_next(&c->machines, &at)) != NULL;) {
        if (m->lifecycle != LIFE_STOPPED)
            return ebb__check_fail(c, EBB_ORACLE_STOPPED, "machine", m->id, "has not stopped at the end");
    }
    return true;
}
