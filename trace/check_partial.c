/* trace/check_partial.c - captures: traces that begin in the middle of a run.
 *
 * What began before the capture is *adopted* when an event first names it: nothing is known of its past, so its own events
 * are skipped, and it never breaks a rule of what it owns. What began in the capture has all of its events there, and is
 * checked by every rule. */
#include "trace/check.h"

#include "trace/event.h"

#include <string.h>

/* The index of an id, as check.c has it. */
static uint64_t slot_of(uint64_t id) {
    return (id >> 32) + 1;
}

/* A zeroed entry with this id, in place of what its slot had. NULL: no memory. */
static void *adopt(ebb_checker *c, ebb__map *map, uint64_t id) {
    uint64_t *entry = ebb__map_put(map, slot_of(id));
    if (entry == NULL) {
        c->status = EBB_ERR_NOMEM;
        return NULL;
    }
    memset(entry, 0, map->slot_size - sizeof(uint64_t));
    *entry = id;
    return entry;
}

/* Whether the task began before the capture. 0 is the host, which did not. */
static bool is_foreign_task(ebb_checker *c, uint64_t id) {
    ebb__task_entry *t = id == 0 ? NULL : ebb__check_task(c, id);
    if (id == 0) return false;
    if (t != NULL) return t->adopted;
    t = adopt(c, &c->tasks, id);
    if (t == NULL) return true;
    t->phase = EBB_TASK_RUNNING;
    t->adopted = true;
    return true;
}

static bool is_foreign_region(ebb_checker *c, uint64_t id) {
    ebb__region_entry *r = id == 0 ? NULL : ebb__check_region(c, id);
    if (id == 0) return false;
    if (r != NULL) return r->adopted;
    r = adopt(c, &c->regions, id);
    if (r == NULL) return true;
    r->state = EBB_REGION_OPEN;
    r->adopted = true;
    return true;
}

bool ebb__check_present(ebb_checker *c, const ebb_event *ev) {
    if (c->begun) {
        return ebb__check_fail(c, EBB_ORACLE_FORMAT, NULL, 0,
                               "what is present comes before all other events");
    }
    c->partial = true;
    if (ev->value == 1) (void)is_foreign_region(c, ev->region_id);
    else (void)is_foreign_task(c, ev->task_id);
    return c->status == EBB_OK;
}

/* A timer of a task that began before may fire after that has ended, and names no task then. */
static bool skips_timer(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_TIMER_ARMED) return is_foreign_task(c, ev->task_id);
    const ebb__timer_entry *t = ebb__check_find(&c->timers, ev->other);
    return t == NULL;
}

static bool skips_future(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_FUTURE_AWAITED) (void)is_foreign_task(c, ev->task_id);
    return ev->type != EBB_EV_FUTURE_MADE && ebb__map_find(&c->futures, ev->other) == NULL;
}

static bool skips_machine(ebb_checker *c, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_MACHINE_SPAWNED:
    case EBB_EV_MACHINE_REQUESTED:
    case EBB_EV_MACHINE_REFUSED: return false;
    case EBB_EV_MACHINE_REQUEST_ENDED: return ebb__check_find(&c->pendings, ev->other) == NULL;
    default: return ev->task_id != 0 && ebb__check_find(&c->machines, ev->task_id) == NULL;
    }
}

/* An exchange may begin on a connection that was open before. */
static bool skips_span(ebb_checker *c, const ebb_event *ev) {
    const uint64_t connection = ev->other & UINT32_MAX;
    ebb__span_entry *s;
    switch (ev->type) {
    case EBB_EV_CONNECTION_CLOSED: return ebb__map_find(&c->connections, ev->other) == NULL;
    case EBB_EV_EXCHANGE_ENDED: return ebb__map_find(&c->exchanges, ev->other >> 32) == NULL;
    case EBB_EV_PROCESS_EXITED: return ebb__map_find(&c->processes, ev->other) == NULL;
    case EBB_EV_EXCHANGE_BEGUN:
        if (connection == 0 || ebb__map_find(&c->connections, connection) != NULL) return false;
        s = ebb__map_put(&c->connections, connection);
        if (s == NULL) c->status = EBB_ERR_NOMEM;
        else *s = (ebb__span_entry){.key = connection};
        return false;
    default: return false;
    }
}

static bool skips_of_kernel(ebb_checker *c, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_NAMED:
    case EBB_EV_REGION_OPENED: /* the parent, and the owner */
        (void)is_foreign_task(c, ev->task_id);
        (void)is_foreign_region(c, ev->type == EBB_EV_NAMED ? ev->region_id : ev->other);
        return false;
    case EBB_EV_TASK_SPAWNED: (void)is_foreign_region(c, ev->region_id); return false;
    case EBB_EV_STALE_WAKE:
    case EBB_EV_REFUSED:
    case EBB_EV_ILLEGAL: return false; /* the ids are arguments and may be wrong */
    default: break;
    }
    if (ebb__event_is_region(ev->type)) return is_foreign_region(c, ev->region_id);
    if (ev->type < EBB_EV_OBLIGATION_RESERVED) return is_foreign_task(c, ev->task_id);
    const bool task = is_foreign_task(c, ev->task_id), region = is_foreign_region(c, ev->region_id);
    return task || region;
}

bool ebb__check_skips(ebb_checker *c, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_TIME:
    case EBB_EV_TURN:
    case EBB_EV_GAP:
    case EBB_EV_TEXT:
    case EBB_EV_STRING:
    case EBB_EV_PRESENT: return false;
    default: break;
    }
    if (ebb__event_is_machine(ev->type)) return skips_machine(c, ev);
    if (ev->type >= EBB_EV_CONNECTION_OPENED) return skips_span(c, ev);
    switch (ev->type) {
    case EBB_EV_IDLE:
    case EBB_EV_RECEIVED:
    case EBB_EV_WORKFLOW: return false;
    case EBB_EV_TIMER_ARMED:
    case EBB_EV_TIMER_FIRED:
    case EBB_EV_TIMER_DISARMED: return skips_timer(c, ev);
    case EBB_EV_OPERATION_ABANDONED: return is_foreign_region(c, ev->region_id);
    default: break;
    }
    if (ev->type >= EBB_EV_OPERATION_BEGUN) return skips_future(c, ev);
    return skips_of_kernel(c, ev);
}
