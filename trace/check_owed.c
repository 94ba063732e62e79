/* trace/check_owed.c - rules of obligations and finalizers: an obligation is resolved once, finalizers run once
 * and last first, all before their owner ends. */
#include "trace/check.h"

#include "kernel/names.h"

/* ---- obligations --------------------------------------------------------------------------------------- */

typedef ebb__obligation_entry obligation;

static bool is_unresolved(const void *entry) {
    return ((const obligation *)entry)->state <= EBB__LEAKED;
}

static bool reserved(ebb_checker *c, const ebb_event *ev) {
    ebb__region_entry *r = ebb__check_known_region(c, ev->region_id);
    if (r == NULL) return false;
    ebb__task_entry *holder = NULL;
    if (ev->task_id == 0 && r->state != EBB_REGION_OPEN) {
        return ebb__check_fail_names(
            c, EBB_ORACLE_NO_NEW_WORK, "region", r->id, "state when an obligation is reserved in it",
            ebb__region_state_name(EBB_REGION_OPEN), ebb__region_state_name(r->state));
    }
    if (ev->task_id != 0) {
        holder = ebb__check_known_task(c, ev->task_id);
        if (holder == NULL) return false;
        if (holder->phase == EBB_TASK_COMPLETED) {
            return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "task", holder->id,
                                      "has ended and reserves obligation", ev->other);
        }
        if (holder->request.kind != 0 && holder->depth == 0) {
            return ebb__check_fail_id(c, EBB_ORACLE_NO_NEW_WORK, "task", holder->id,
                                      "is under request, not masked, and reserves obligation", ev->other);
        }
    }
    obligation *o = ebb__check_new_entry(c, &c->obligations, "obligation", ev->other, is_unresolved);
    if (o == NULL) return false;
    o->task = ev->task_id;
    o->region = ev->region_id;
    o->kind = ev->value;
    o->state = EBB__RESERVED;
    r->obligations++;
    if (holder != NULL) holder->held++;
    return true;
}

/* The state of an obligation after an event. Every event is legal in RESERVED; in LEAKED only an abort. */
static uint8_t state_after(uint32_t type) {
    switch (type) {
    case EBB_EV_OBLIGATION_COMMITTED: return EBB__COMMITTED;
    case EBB_EV_OBLIGATION_ABORTED: return EBB__ABORTED;
    default: return EBB__LEAKED;
    }
}

static const char *state_name(uint32_t state) {
    static const char *const names[] = {"none", "reserved", "leaked", "committed", "aborted"};
    return names[state];
}

static bool same_obligation(ebb_checker *c, const obligation *o, const ebb_event *ev) {
    if (ev->task_id != o->task) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "obligation", o->id,
                                  "is not held by the task named, but by", o->task);
    }
    if (ev->region_id != o->region) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "obligation", o->id,
                                  "is not in the region named, but in", o->region);
    }
    if (ev->value != o->kind) {
        return ebb__check_fail_names(c, EBB_ORACLE_FORMAT, "obligation", o->id, "kind",
                                     ebb__obligation_kind_name(o->kind),
                                     ebb__obligation_kind_name(ev->value));
    }
    return true;
}

bool ebb__check_obligation_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_OBLIGATION_RESERVED) return reserved(c, ev);
    obligation *o = ebb__check_find(&c->obligations, ev->other);
    if (o == NULL) return ebb__check_fail_unknown(c, &c->obligations, "obligation", ev->other);
    uint8_t after = state_after(ev->type);
    if (o->state != EBB__RESERVED && !(o->state == EBB__LEAKED && after == EBB__ABORTED)) {
        return ebb__check_fail_names(
            c, EBB_ORACLE_PHASE, "obligation", o->id, "is resolved exactly once; before this event",
            after == EBB__ABORTED ? "reserved or leaked" : "reserved", state_name(o->state));
    }
    if (!same_obligation(c, o, ev)) return false;
    ebb__region_entry *r = ebb__check_known_region(c, o->region);
    if (r == NULL) return false;
    if (after == EBB__LEAKED && o->task == 0 && !r->forced) {
        return ebb__check_fail_id(c, EBB_ORACLE_OBLIGATION_LEAK, "obligation", o->id,
                                  "leaked before force has reached its region,", r->id);
    }
    ebb__task_entry *holder = ebb__check_task(c, o->task);
    if (o->state == EBB__RESERVED && holder != NULL) holder->held--;
    if (after == EBB__LEAKED) r->leaked++;
    if (after != EBB__LEAKED) r->obligations--;
    o->state = after;
    return true;
}

/* ---- finalizers ---------------------------------------------------------------------------------------- */

static bool fail_finalizer(ebb_checker *c, uint64_t id, const char *what) {
    return ebb__check_fail(c, EBB_ORACLE_FINALIZERS_ONCE, "finalizer", id, what);
}

/* The field of the owner that has its next finalizer; NULL after a failure. */
static uint64_t *next_of_owner(ebb_checker *c, const ebb_event *ev) {
    if (ev->task_id != 0) {
        ebb__task_entry *t = ebb__check_known_task(c, ev->task_id);
        if (t == NULL) return NULL;
        if (t->phase != EBB_TASK_COMPLETED) return &t->finalizer;
        ebb__check_fail_id(c, EBB_ORACLE_FINALIZERS_ONCE, "task", t->id, "has ended before finalizer",
                           ev->other);
        return NULL;
    }
    ebb__region_entry *r = ebb__check_known_region(c, ev->region_id);
    if (r == NULL) return NULL;
    if (r->state != EBB_REGION_CLOSED) return &r->finalizer;
    ebb__check_fail_id(c, EBB_ORACLE_FINALIZERS_ONCE, "region", r->id, "has closed before finalizer",
                       ev->other);
    return NULL;
}

static bool added(ebb_checker *c, const ebb_event *ev, uint64_t *next) {
    const ebb__task_entry *owner = ev->task_id == 0 ? NULL : ebb__check_task(c, ev->task_id);
    if (owner != NULL && owner->region != ev->region_id) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "task", owner->id,
                                  "is not in the region named, but in", owner->region);
    }
    if (ev->other == 0) return ebb__check_fail(c, EBB_ORACLE_FORMAT, "finalizer", 0, "is not an id");
    if (ebb__map_find(&c->finalizers, ev->other) != NULL) {
        return fail_finalizer(c, ev->other, "was added twice");
    }
    ebb__finalizer_entry *f = ebb__map_put(&c->finalizers, ev->other);
    if (f == NULL) {
        c->status = EBB_ERR_NOMEM;
        return false;
    }
    *f = (ebb__finalizer_entry){ev->task_id, ev->region_id, *next};
    *next = ev->other;
    return true;
}

bool ebb__check_finalizer_event(ebb_checker *c, const ebb_event *ev) {
    uint64_t *next = next_of_owner(c, ev);
    if (next == NULL) return false;
    if (ev->type == EBB_EV_FINALIZER_ADDED) return added(c, ev, next);
    const ebb__finalizer_entry *f = ebb__map_find(&c->finalizers, ev->other);
    if (f == NULL) return fail_finalizer(c, ev->other, "was never added, or has already run");
    if (f->task != ev->task_id || f->region != ev->region_id) {
        return fail_finalizer(c, ev->other, "has another owner");
    }
    if (*next != ev->other) {
        return ebb__check_fail_id(c, EBB_ORACLE_FINALIZERS_ONCE, "finalizer", ev->other,
                                  "runs too early, last added is", *next);
    }
    ebb__region_entry *r = ebb__check_known_region(c, f->region);
    if (r == NULL) return false;
    if (ev->type == EBB_EV_FINALIZER_ABANDONED) r->abandoned++;
    *next = f->below;
    ebb__map_remove(&c->finalizers, ev->other);
    return true;
}
