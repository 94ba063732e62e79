/* trace/check_region.c - rules of a region's states: Open, Closing, Draining, Finalizing, Closed. */
#include "trace/check.h"

#include "kernel/names.h"

#define IN(state) (1u << (state))

enum {
    ENDING = IN(EBB_REGION_CLOSING) | IN(EBB_REGION_DRAINING) | IN(EBB_REGION_FINALIZING),
    ANY = IN(EBB_REGION_OPEN) | ENDING | IN(EBB_REGION_CLOSED),
    OPEN_CLEANUP = 1,
    OPEN_UNIT = 4
};

typedef ebb__region_entry region;

static bool fail_count(ebb_checker *c, const region *r, const char *what, uint64_t found) {
    return ebb__check_fail_numbers(c, EBB_ORACLE_QUIESCENCE, "region", r->id, what, "", 0, found);
}

/* ---- admission ----------------------------------------------------------------------------------------- */

/* The outermost unit around `r` that is still open after the closes above it. NULL: none. */
static const region *gate_of(const ebb_checker *c, const region *r) {
    const region *gate = NULL;
    for (; r != NULL && r->state == EBB_REGION_OPEN; r = ebb__check_region(c, r->parent)) {
        if (r->unit) gate = r;
    }
    return gate;
}

bool ebb__check_admits(ebb_checker *c, const region *r, uint64_t asker, const char *what) {
    if (r->state != EBB_REGION_OPEN) {
        return ebb__check_fail_names(c, EBB_ORACLE_NO_NEW_WORK, "region", r->id, what,
                                     ebb__region_state_name(EBB_REGION_OPEN),
                                     ebb__region_state_name(r->state));
    }
    if (!r->stopping) return true;
    const region *gate = gate_of(c, r);
    const ebb__task_entry *t = ebb__check_task(c, asker);
    const region *at = t == NULL ? NULL : ebb__check_region(c, t->region);
    while (at != NULL && at != gate) at = ebb__check_region(c, at->parent);
    if (gate != NULL && at == gate) return true;
    return ebb__check_fail_id(c, EBB_ORACLE_NO_NEW_WORK, "region", r->id,
                              "is stopping and got work from outside its unit, from task", asker);
}

/* ---- open ---------------------------------------------------------------------------------------------- */

static bool is_live(const void *entry) {
    return ((const region *)entry)->state != EBB_REGION_CLOSED && !((const region *)entry)->adopted;
}

static bool admitted(ebb_checker *c, const ebb_event *ev, bool cleanup) {
    if (ev->other == 0) {
        if (c->root == 0) return true;
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "region", ev->region_id,
                                  "has no parent, and the root is", c->root);
    }
    const region *parent = ebb__check_known_region(c, ev->other);
    if (parent == NULL) return false;
    if (ev->task_id != 0) {
        const ebb__task_entry *owner = ebb__check_known_task(c, ev->task_id);
        if (owner == NULL) return false;
        if (owner->phase == EBB_TASK_COMPLETED) {
            return ebb__check_fail(c, EBB_ORACLE_FORMAT, "task", owner->id, "has ended and opens a region");
        }
    }
    if (!cleanup) return ebb__check_admits(c, parent, ev->task_id, "state when a region is opened in it");
    if (parent->state != EBB_REGION_CLOSED) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_NO_NEW_WORK, "region", parent->id,
                                 "state when a cleanup scope is opened in it", "not Closed",
                                 ebb__region_state_name(parent->state));
}

static bool opened(ebb_checker *c, const ebb_event *ev) {
    bool cleanup = (ev->value & OPEN_CLEANUP) != 0;
    if (!admitted(c, ev, cleanup)) return false;
    if (ev->phase != EBB_REGION_OPEN) {
        return ebb__check_fail_names(c, EBB_ORACLE_PHASE, "region", ev->region_id, "state of a new region",
                                     ebb__region_state_name(EBB_REGION_OPEN),
                                     ebb__region_state_name(ev->phase));
    }
    region *r = ebb__check_new_entry(c, &c->regions, "region", ev->region_id, is_live);
    if (r == NULL) return false;
    r->parent = ev->other;
    r->owner = ev->task_id;
    r->state = EBB_REGION_OPEN;
    r->cleanup = cleanup;
    r->unit = (ev->value & OPEN_UNIT) != 0;
    if (ev->other == 0) {
        c->root = ev->region_id;
        return true;
    }
    region *parent = ebb__check_region(c, ev->other);
    parent->children++;
    r->stopping = parent->stopping && !cleanup;
    return true;
}

/* ---- ending -------------------------------------------------------------------------------------------- */

/* A PARENT request comes from the region above, or from the task that opened this region. Only its owner or a
 * direct call cancels a cleanup scope. */
static bool parent_has_request(ebb_checker *c, const region *r, const ebb_event *ev) {
    if (ev->cancel_kind != EBB_CANCEL_PARENT || r->cleanup) return true;
    const region *parent = ebb__check_region(c, r->parent);
    const ebb__task_entry *owner = ebb__check_task(c, r->owner);
    if ((parent != NULL && parent->adopted) || (owner != NULL && owner->adopted)) return true;
    uint32_t severity = parent == NULL ? 0 : parent->request.severity;
    if (severity >= ev->severity) return true;
    if (owner != NULL && owner->request.severity >= ev->severity) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_PARENT_FIRST, "region", r->id,
                                 "severity requested of its parent before", ebb__severity_name(ev->severity),
                                 ebb__severity_name(severity));
}

static bool cancelled(ebb_checker *c, region *r, const ebb_event *ev) {
    if (!parent_has_request(c, r, ev)) return false;
    return r->request.kind == 0 ? ebb__check_request_first(c, "region", r->id, &r->request, ev)
                                : ebb__check_request_again(c, "region", r->id, &r->request, ev);
}

static bool draining(ebb_checker *c, region *r, const ebb_event *ev) {
    (void)ev;
    if (r->tasks > r->closers || r->children > 0) return true;
    return ebb__check_fail(c, EBB_ORACLE_QUIESCENCE, "region", r->id,
                           "drains, but neither a task nor a child lives");
}

static bool finalizing(ebb_checker *c, region *r, const ebb_event *ev) {
    (void)ev;
    if (r->tasks > r->closers) return fail_count(c, r, "live tasks when it finalizes", r->tasks);
    if (r->children > 0) return fail_count(c, r, "children when it finalizes", r->children);
    return true;
}

static bool resolved_all(ebb_checker *c, const region *r) {
    if (r->obligations == 0) return true;
    size_t at = 0;
    const ebb__obligation_entry *o = ebb__map_next(&c->obligations, &at);
    while (o != NULL && !(o->region == r->id && o->state <= EBB__LEAKED)) {
        o = ebb__map_next(&c->obligations, &at);
    }
    return ebb__check_fail_id(c, EBB_ORACLE_OBLIGATION_LEAK, "region", r->id,
                              "closed with the unresolved obligation", o == NULL ? 0 : o->id);
}

static bool counted(ebb_checker *c, const region *r, const char *what, uint64_t seen, uint64_t said) {
    return seen == said ||
           ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "region", r->id, what, "", seen, said);
}

static bool closed(ebb_checker *c, region *r, const ebb_event *ev) {
    if (r->tasks > 0) return fail_count(c, r, "live tasks when it closed", r->tasks);
    if (r->children > 0) return fail_count(c, r, "children when it closed", r->children);
    if (!resolved_all(c, r)) return false;
    if (r->finalizer != 0) {
        return ebb__check_fail_id(c, EBB_ORACLE_FINALIZERS_ONCE, "region", r->id,
                                  "closed without running finalizer", r->finalizer);
    }
    if (!counted(c, r, "leaked obligations in its report", r->leaked, ev->other & UINT32_MAX) ||
        !counted(c, r, "abandoned ones in its report", r->abandoned, ev->other >> 32) ||
        !ebb__check_closed_status(c, r, (int32_t)ev->value)) {
        return false;
    }
    r->status = (int32_t)ev->value;
    region *parent = ebb__check_region(c, r->parent);
    if (parent != NULL) parent->children--;
    return true;
}

/* A close from above has reached a unit, or a region in one. */
static bool stopping(ebb_checker *c, region *r, const ebb_event *ev) {
    (void)ev;
    if (r->stopping) return ebb__check_fail(c, EBB_ORACLE_PHASE, "region", r->id, "was stopping before");
    const region *parent = ebb__check_region(c, r->parent);
    if (parent != NULL &&
        (parent->adopted || parent->stopping || (r->unit && parent->state != EBB_REGION_OPEN))) {
        r->stopping = true;
        return true;
    }
    return ebb__check_fail(c, EBB_ORACLE_PARENT_FIRST, "region", r->id,
                           "is stopping, but what is around it was not closed");
}

static bool forced(ebb_checker *c, region *r, const ebb_event *ev) {
    (void)c;
    (void)ev;
    r->forced = true;
    return true;
}

bool ebb__check_operation(ebb_checker *c, const ebb_event *ev) {
    region *r = ebb__check_known_region(c, ev->region_id);
    if (r == NULL) return false;
    if (!r->forced || r->state == EBB_REGION_CLOSED) {
        return ebb__check_fail(c, EBB_ORACLE_PHASE, "region", r->id,
                               "left an operation behind, but was not forced");
    }
    r->abandoned++;
    return ev->other == 0 || ebb__check_future_event(c, ev);
}

static bool nothing_more(ebb_checker *c, region *r, const ebb_event *ev) {
    (void)c;
    (void)r;
    (void)ev;
    return true;
}

/* ---- join ---------------------------------------------------------------------------------------------- */

/* True if `top` is above the task and the task lost a race between itself and `top`. */
static bool is_loser_below(const ebb_checker *c, const ebb__task_entry *t, uint64_t top) {
    bool lost = t->request.kind == EBB_CANCEL_RACE_LOST;
    const region *r = ebb__check_region(c, t->region);
    for (; r != NULL; r = ebb__check_region(c, r->parent)) {
        lost |= r->request.kind == EBB_CANCEL_RACE_LOST;
        if (r->id == top) return lost;
    }
    return false;
}

static bool joined(ebb_checker *c, region *r, const ebb_event *ev) {
    size_t at = 0;
    for (const ebb__task_entry *t; r->state != EBB_REGION_CLOSED;) {
        t = ebb__map_next(&c->tasks, &at);
        if (t == NULL) break;
        if (t->phase == EBB_TASK_COMPLETED || !is_loser_below(c, t, r->id)) continue;
        return ebb__check_fail_id(c, EBB_ORACLE_LOSERS_DRAINED, "region", r->id,
                                  "was joined before the loser ended: task", t->id);
    }
    if (r->state != EBB_REGION_CLOSED) {
        return ebb__check_fail_phase(c, "region", r->id, "region_joined", IN(EBB_REGION_CLOSED), r->state,
                                     ebb__region_state_name);
    }
    if (r->joined) return ebb__check_fail(c, EBB_ORACLE_FORMAT, "region", r->id, "was joined twice");
    r->joined = true;
    return ebb__check_joined_status(c, "region", r->id, r->status, (int32_t)ev->value);
}

/* ---- transitions --------------------------------------------------------------------------------------- */

/* The states in which an event is legal, and the next state (0: the same). */
typedef struct region_rule {
    uint8_t from, to;
    bool (*check)(ebb_checker *c, region *r, const ebb_event *ev);
} region_rule;

static const region_rule rules[EBB_EV_MAX] = {
    [EBB_EV_REGION_CLOSING] = {IN(EBB_REGION_OPEN), EBB_REGION_CLOSING, nothing_more},
    [EBB_EV_REGION_CANCELLED] = {ENDING, 0, cancelled},
    [EBB_EV_REGION_STOPPING] = {IN(EBB_REGION_OPEN), 0, stopping},
    [EBB_EV_REGION_FORCED] = {ENDING, 0, forced},
    [EBB_EV_REGION_DRAINING] = {IN(EBB_REGION_CLOSING), EBB_REGION_DRAINING, draining},
    [EBB_EV_REGION_FINALIZING] = {IN(EBB_REGION_CLOSING) | IN(EBB_REGION_DRAINING), EBB_REGION_FINALIZING,
                                  finalizing},
    [EBB_EV_REGION_CLOSED] = {IN(EBB_REGION_FINALIZING), EBB_REGION_CLOSED, closed},
    [EBB_EV_REGION_JOINED] = {ANY, 0, joined},
    [EBB_EV_CHAIN_TRUNCATED] = {ANY, 0, nothing_more},
};

bool ebb__check_region_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_REGION_OPENED) return opened(c, ev);
    const region_rule *rule = &rules[ev->type];
    region *r = ebb__check_known_region(c, ev->region_id);
    if (r == NULL) return false;
    if ((rule->from >> r->state & 1) == 0) {
        return ebb__check_fail_phase(c, "region", r->id, ebb_event_name(ev->type), rule->from, r->state,
                                     ebb__region_state_name);
    }
    if (!rule->check(c, r, ev)) return false;
    if (rule->to != 0) r->state = rule->to;
    if (ev->phase == r->state) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_PHASE, "region", r->id, "state after the event",
                                 ebb__region_state_name(r->state), ebb__region_state_name(ev->phase));
}
