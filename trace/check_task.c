/* trace/check_task.c - rules of a task's phases. */
#include "trace/check.h"

#include "kernel/names.h"

#define IN(phase) (1u << (phase))

enum {
    LIVE = IN(EBB_TASK_CREATED) | IN(EBB_TASK_RUNNING) | IN(EBB_TASK_CANCEL_REQUESTED) |
           IN(EBB_TASK_CANCELLING) | IN(EBB_TASK_FINALIZING),
    UNDER_REQUEST = IN(EBB_TASK_CANCEL_REQUESTED) | IN(EBB_TASK_CANCELLING) | IN(EBB_TASK_FINALIZING),
    SPAWN_KEEP = 1,
    SPAWN_CLOSER = 2,
    SPAWN_RUNNER = 4,
    SPAWN_APART = 8
};

typedef ebb__task_entry task;

static bool fail(ebb_checker *c, ebb_oracle o, const task *t, const char *what) {
    return ebb__check_fail(c, o, "task", t->id, what);
}

static bool under_request(const task *t) {
    return (UNDER_REQUEST >> t->phase & 1) != 0;
}

static void set_runnable(ebb_checker *c, task *t, bool runnable) {
    if (t->runnable == runnable) return;
    t->runnable = runnable;
    if (runnable) {
        c->runnable++;
    } else {
        c->runnable--;
    }
}

/* ---- scheduling ---------------------------------------------------------------------------------------- */

static bool lane_is_known(ebb_checker *c, const task *t, const ebb_event *ev) {
    if (ev->value >= EBB_LANE_CANCEL && ev->value <= EBB_LANE_READY) return true;
    return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "task", t->id, "lane", "1 to ", EBB_LANE_READY,
                                   ev->value);
}

static bool polled(ebb_checker *c, task *t, const ebb_event *ev) {
    static const uint64_t worst_wait[] = {[EBB_LANE_CANCEL] = 2, [EBB_LANE_TIMED] = 9, [EBB_LANE_READY] = 9};
    if (!lane_is_known(c, t, ev)) return false;
    if (ev->other > worst_wait[ev->value]) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FAIRNESS, "task", t->id,
                                       "polls of other lanes while its lane waited", "at most ",
                                       worst_wait[ev->value], ev->other);
    }
    if (t->phase == EBB_TASK_CREATED) t->phase = EBB_TASK_RUNNING;
    set_runnable(c, t, false);
    c->polled = t->id;
    return true;
}

static bool woken(ebb_checker *c, task *t, const ebb_event *ev) {
    if (!lane_is_known(c, t, ev)) return false;
    if (under_request(t) && ev->value != EBB_LANE_CANCEL) {
        return ebb__check_fail_names(c, EBB_ORACLE_FAIRNESS, "task", t->id,
                                     "lane of a task that is asked to stop", ebb__lane_name(EBB_LANE_CANCEL),
                                     ebb__lane_name(ev->value));
    }
    set_runnable(c, t, true);
    return true;
}

/* ---- the cancel protocol ------------------------------------------------------------------------------- */

/* A task gets a PARENT request only from its region. */
static bool region_has_request(ebb_checker *c, const task *t, const ebb_event *ev) {
    if (ev->cancel_kind != EBB_CANCEL_PARENT) return true;
    const ebb__region_entry *r = ebb__check_known_region(c, t->region);
    if (r == NULL) return false;
    if (r->adopted || r->request.severity >= ev->severity) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_PARENT_FIRST, "task", t->id,
                                 "severity requested of its region before", ebb__severity_name(ev->severity),
                                 ebb__severity_name(r->request.severity));
}

static bool requested(ebb_checker *c, task *t, const ebb_event *ev) {
    if (!ebb__check_request_first(c, "task", t->id, &t->request, ev)) return false;
    set_runnable(c, t, true);
    return region_has_request(c, t, ev);
}

static bool strengthened(ebb_checker *c, task *t, const ebb_event *ev) {
    return ebb__check_request_again(c, "task", t->id, &t->request, ev) && region_has_request(c, t, ev);
}

static bool as_requested(ebb_checker *c, task *t, const ebb_event *ev) {
    return ebb__check_request_same(c, "task", t->id, &t->request, ev);
}

static bool acked(ebb_checker *c, task *t, const ebb_event *ev) {
    if (t->depth > 0 && !t->forced) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_ACK_UNMASKED, "task", t->id,
                                       "mask depth when it acknowledged", "", 0, t->depth);
    }
    return as_requested(c, t, ev) && ebb__check_budget(c, "task", t->id, &t->request, ev);
}

static bool forced(ebb_checker *c, task *t, const ebb_event *ev) {
    if (t->forced) return fail(c, EBB_ORACLE_PHASE, t, "was forced twice");
    if (ev->value != 8) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_BUDGET, "task", t->id, "polls of a forced task", "", 8,
                                       ev->value);
    }
    t->forced = true;
    set_runnable(c, t, true);
    return as_requested(c, t, ev);
}

static bool faulted(ebb_checker *c, task *t, const ebb_event *ev) {
    (void)c;
    (void)ev;
    t->faulted = true;
    return true;
}

static bool abandoned(ebb_checker *c, task *t, const ebb_event *ev) {
    if (!t->forced) return fail(c, EBB_ORACLE_PHASE, t, "was abandoned, but never forced");
    if (t->abandoned) return fail(c, EBB_ORACLE_PHASE, t, "was abandoned twice");
    ebb__region_entry *r = ebb__check_known_region(c, t->region);
    if (r == NULL) return false;
    r->abandoned++;
    t->abandoned = true;
    return as_requested(c, t, ev);
}

static bool masked(ebb_checker *c, task *t, const ebb_event *ev) {
    if (ev->value > EBB_MASK_MAX || ev->value != t->depth + 1u) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "task", t->id, "mask depth, up to 32", "",
                                       t->depth + 1u, ev->value);
    }
    t->depth++;
    return true;
}

static bool unmasked(ebb_checker *c, task *t, const ebb_event *ev) {
    if (t->depth == 0) return fail(c, EBB_ORACLE_FORMAT, t, "was unmasked without a mask");
    if (ev->value != t->depth - 1u) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "task", t->id, "mask depth", "", t->depth - 1u,
                                       ev->value);
    }
    t->depth--;
    return true;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static bool holds_nothing(ebb_checker *c, const task *t) {
    if (t->held == 0) return true;
    size_t at = 0;
    const ebb__obligation_entry *o = ebb__map_next(&c->obligations, &at);
    while (o != NULL && !(o->task == t->id && o->state == EBB__RESERVED)) {
        o = ebb__map_next(&c->obligations, &at);
    }
    return ebb__check_fail_id(c, EBB_ORACLE_OBLIGATION_LEAK, "task", t->id,
                              "ended and still holds obligation", o == NULL ? 0 : o->id);
}

/* The one place where a task ends. */
static bool end(ebb_checker *c, task *t, const ebb_event *ev) {
    if (t->finalizer != 0) {
        return ebb__check_fail_id(c, EBB_ORACLE_FINALIZERS_ONCE, "task", t->id,
                                  "ended without running finalizer", t->finalizer);
    }
    if (!holds_nothing(c, t)) return false;
    ebb__region_entry *r = ebb__check_known_region(c, t->region);
    if (r == NULL) return false;
    r->tasks--;
    if (t->closer) r->closers--;
    t->status = (int32_t)ev->value;
    bool counts = ev->type != EBB_EV_DISCARDED && !t->apart;
    if (counts || t->status == EBB_FAULTED) ebb__check_ended(r, t->status);
    set_runnable(c, t, false);
    return true;
}

static bool has_status(ebb_checker *c, const task *t, const ebb_event *ev, ebb_status expected,
                       const char *what, const char *name) {
    if ((int32_t)ev->value == (int32_t)expected) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_PHASE, "task", t->id, what, name,
                                 ebb_status_name((ebb_status)(int32_t)ev->value));
}

static bool finalized(ebb_checker *c, task *t, const ebb_event *ev) {
    return as_requested(c, t, ev) &&
           has_status(c, t, ev, EBB_CANCELLED, "outcome of a finalized task", "EBB_CANCELLED") &&
           end(c, t, ev);
}

/* A task that has acknowledged ends with cleanup_done and finalized, unless it faults or is abandoned. A task that
 * was never polled completes at once. */
static bool completed(ebb_checker *c, task *t, const ebb_event *ev) {
    if ((int32_t)ev->value > 0) {
        return ebb__check_fail(c, EBB_ORACLE_FORMAT, "task", t->id, "completed with EBB_PENDING");
    }
    if (t->faulted) {
        if (!has_status(c, t, ev, EBB_FAULTED, "outcome of a faulted task", "EBB_FAULTED")) return false;
    } else if (t->abandoned) {
        if (!has_status(c, t, ev, EBB_CANCELLED, "outcome of an abandoned task", "EBB_CANCELLED")) {
            return false;
        }
    } else if (t->phase == EBB_TASK_CREATED) {
        if (!has_status(c, t, ev, EBB_CANCELLED, "outcome of a task that never ran", "EBB_CANCELLED")) {
            return false;
        }
    } else if (t->phase == EBB_TASK_CANCELLING || t->phase == EBB_TASK_FINALIZING) {
        return ebb__check_fail_phase(c, "task", t->id, "completed",
                                     LIVE & ~(IN(EBB_TASK_CANCELLING) | IN(EBB_TASK_FINALIZING)), t->phase,
                                     ebb__phase_name);
    }
    return end(c, t, ev);
}

/* Only a task that owes nothing and is in no poll or masked section. */
static bool discarded(ebb_checker *c, task *t, const ebb_event *ev) {
    if (t->faulted) return fail(c, EBB_ORACLE_PHASE, t, "was discarded after a fault");
    if (t->closer) return fail(c, EBB_ORACLE_PHASE, t, "was discarded, but runs its region's finalizers");
    if (t->depth > 0) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_PHASE, "task", t->id, "mask depth when it was discarded",
                                       "", 0, t->depth);
    }
    return has_status(c, t, ev, EBB_DISCARDED, "outcome of a discarded task", "EBB_DISCARDED") &&
           end(c, t, ev);
}

static bool joined(ebb_checker *c, task *t, const ebb_event *ev) {
    if (!t->keep) return fail(c, EBB_ORACLE_FORMAT, t, "was joined, but its outcome is not kept");
    if (t->joined) return fail(c, EBB_ORACLE_FORMAT, t, "was joined twice");
    t->joined = true;
    return ebb__check_joined_status(c, "task", t->id, t->status, (int32_t)ev->value);
}

/* ---- spawn --------------------------------------------------------------------------------------------- */

static bool is_live(const void *entry) {
    return ((const task *)entry)->phase != EBB_TASK_COMPLETED && !((const task *)entry)->adopted;
}

static bool spawned(ebb_checker *c, const ebb_event *ev) {
    ebb__region_entry *r = ebb__check_known_region(c, ev->region_id);
    if (r == NULL) return false;
    bool closer = (ev->value & SPAWN_CLOSER) != 0;
    bool runner = (ev->value & SPAWN_RUNNER) != 0; /* admitted as long as tasks live there */
    if (!closer && !runner && !ebb__check_admits(c, r, ev->other, "state at a spawn")) return false;
    bool fits = closer ? r->state == EBB_REGION_FINALIZING : r->state <= EBB_REGION_DRAINING;
    if (!fits && !r->adopted) {
        return ebb__check_fail_names(
            c, EBB_ORACLE_NO_NEW_WORK, "region", r->id,
            closer ? "state when its closer is spawned" : "state when its callback runner is spawned",
            ebb__region_state_name(closer ? EBB_REGION_FINALIZING : EBB_REGION_DRAINING),
            ebb__region_state_name(r->state));
    }
    if (ev->phase != EBB_TASK_CREATED) {
        return ebb__check_fail_names(c, EBB_ORACLE_PHASE, "task", ev->task_id, "phase of a new task",
                                     ebb__phase_name(EBB_TASK_CREATED), ebb__phase_name(ev->phase));
    }
    task *t = ebb__check_new_entry(c, &c->tasks, "task", ev->task_id, is_live);
    if (t == NULL) return false;
    t->region = ev->region_id;
    t->phase = EBB_TASK_CREATED;
    t->keep = (ev->value & SPAWN_KEEP) != 0;
    t->closer = closer;
    t->apart = (ev->value & SPAWN_APART) != 0;
    r->tasks++;
    if (closer) r->closers++;
    set_runnable(c, t, true);
    return true;
}

/* ---- transitions --------------------------------------------------------------------------------------- */

/* The phases in which an event is legal, and the next phase (0: the same). */
typedef struct task_rule {
    uint8_t from, to;
    bool (*check)(ebb_checker *c, task *t, const ebb_event *ev);
} task_rule;

static const task_rule rules[EBB_EV_MAX] = {
    [EBB_EV_TASK_POLLED] = {LIVE, 0, polled},
    [EBB_EV_TASK_WOKEN] = {LIVE, 0, woken},
    [EBB_EV_CANCEL_REQUESTED] = {IN(EBB_TASK_CREATED) | IN(EBB_TASK_RUNNING), EBB_TASK_CANCEL_REQUESTED,
                                 requested},
    [EBB_EV_CANCEL_STRENGTHENED] = {UNDER_REQUEST, 0, strengthened},
    [EBB_EV_CANCEL_ACKED] = {IN(EBB_TASK_CANCEL_REQUESTED), EBB_TASK_CANCELLING, acked},
    [EBB_EV_TASK_FORCED] = {UNDER_REQUEST, 0, forced},
    [EBB_EV_CLEANUP_DONE] = {IN(EBB_TASK_CANCELLING), EBB_TASK_FINALIZING, as_requested},
    [EBB_EV_FINALIZED] = {IN(EBB_TASK_FINALIZING), EBB_TASK_COMPLETED, finalized},
    [EBB_EV_COMPLETED] = {LIVE, EBB_TASK_COMPLETED, completed},
    [EBB_EV_DISCARDED] = {IN(EBB_TASK_CREATED) | IN(EBB_TASK_RUNNING), EBB_TASK_COMPLETED, discarded},
    [EBB_EV_FAULTED] = {LIVE, 0, faulted},
    [EBB_EV_ABANDONED] = {UNDER_REQUEST, 0, abandoned},
    [EBB_EV_MASKED] = {LIVE, 0, masked},
    [EBB_EV_UNMASKED] = {LIVE, 0, unmasked},
    [EBB_EV_TASK_JOINED] = {IN(EBB_TASK_COMPLETED), 0, joined},
};

bool ebb__check_task_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_TASK_SPAWNED) return spawned(c, ev);
    const task_rule *rule = &rules[ev->type];
    task *t = ebb__check_known_task(c, ev->task_id);
    if (t == NULL) return false;
    if (ev->region_id != 0 && ev->region_id != t->region) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "task", t->id, "is not in the region named, but in",
                                  t->region);
    }
    if ((rule->from >> t->phase & 1) == 0) {
        return ebb__check_fail_phase(c, "task", t->id, ebb_event_name(ev->type), rule->from, t->phase,
                                     ebb__phase_name);
    }
    if (!rule->check(c, t, ev)) return false;
    if (rule->to != 0) t->phase = rule->to;
    if (ev->phase == t->phase) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_PHASE, "task", t->id, "phase after the event",
                                 ebb__phase_name(t->phase), ebb__phase_name(ev->phase));
}
