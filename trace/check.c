/* trace/check.c - the checker: decides every rule of a run from its events alone.
 *
 * This file has what all rules share: the order of events, the fields they must have, and the text of a violation.
 * The rules are in check_task.c, check_region.c, check_owed.c and check_layers.c, as tables of legal transitions. The first
 * violation ends the check, because later events may make no sense. */
#include "trace/check.h"

#include "base/text.h"
#include "kernel/names.h"
#include "trace/event.h"

#include <assert.h>
#include <string.h>

/* ---- failing ------------------------------------------------------------------------------------------- */

static ebb__text begin_text(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what) {
    assert(c->status == EBB_OK);
    c->status = EBB_ERR_ORACLE;
    c->violation.oracle = o;
    if (c->at != NULL) c->violation.event = *c->at;
    ebb__text t = ebb__text_in(c->violation.text, sizeof c->violation.text);
    if (noun != NULL) {
        ebb__text_str(&t, noun);
        ebb__text_str(&t, " ");
        ebb__text_id(&t, id);
        ebb__text_str(&t, ": ");
    }
    ebb__text_str(&t, what);
    return t;
}

bool ebb__check_fail(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what) {
    begin_text(c, o, noun, id, what);
    return false;
}

bool ebb__check_fail_id(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                        uint64_t other) {
    ebb__text t = begin_text(c, o, noun, id, what);
    ebb__text_str(&t, " ");
    ebb__text_id(&t, other);
    return false;
}

bool ebb__check_fail_names(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                           const char *expected, const char *found) {
    ebb__text t = begin_text(c, o, noun, id, what);
    ebb__text_str(&t, ": expected ");
    ebb__text_str(&t, expected);
    ebb__text_str(&t, ", found ");
    ebb__text_str(&t, found);
    return false;
}

bool ebb__check_fail_numbers(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                             const char *relation, uint64_t expected, uint64_t found) {
    ebb__text t = begin_text(c, o, noun, id, what);
    ebb__text_str(&t, ": expected ");
    ebb__text_str(&t, relation);
    ebb__text_u64(&t, expected);
    ebb__text_str(&t, ", found ");
    ebb__text_u64(&t, found);
    return false;
}

/* `legal` has a bit for each phase in which the event is legal. */
bool ebb__check_fail_phase(ebb_checker *c, const char *noun, uint64_t id, const char *event, uint32_t legal,
                           uint32_t found, const char *(*name)(uint32_t)) {
    ebb__text t = begin_text(c, EBB_ORACLE_PHASE, noun, id, event);
    const char *before = " needs phase ";
    for (uint32_t phase = 1; phase < 8; phase++) {
        if ((legal >> phase & 1) == 0) continue;
        ebb__text_str(&t, before);
        ebb__text_str(&t, name(phase));
        before = " or ";
    }
    ebb__text_str(&t, ", found ");
    ebb__text_str(&t, name(found));
    return false;
}

/* ---- entries ------------------------------------------------------------------------------------------- */

enum { SET_SHIFT = 26 }; /* as in machine/machine.h, which stands above this folder */

/* An index may be 0 in a broken trace, but the map has no key 0. Machines of several runtimes of machines have slots of
 * the same index; the upper bits of the generation tell them apart. */
static uint64_t slot_of(uint64_t id) {
    return ((id >> 32) + 1) | (uint64_t)((uint32_t)id >> SET_SHIFT) << 40;
}

static uint32_t generation_of(uint64_t id) {
    return (uint32_t)id;
}

void *ebb__check_find(const ebb__map *map, uint64_t id) {
    uint64_t *entry = ebb__map_find(map, slot_of(id));
    return entry != NULL && *entry == id ? entry : NULL;
}

ebb__task_entry *ebb__check_task(const ebb_checker *c, uint64_t id) {
    return ebb__check_find(&c->tasks, id);
}

ebb__region_entry *ebb__check_region(const ebb_checker *c, uint64_t id) {
    return ebb__check_find(&c->regions, id);
}

bool ebb__check_fail_unknown(ebb_checker *c, const ebb__map *map, const char *noun, uint64_t id) {
    const uint64_t *entry = ebb__map_find(map, slot_of(id));
    if (entry != NULL && generation_of(*entry) > generation_of(id)) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, noun, id, "has ended long ago, its slot belongs to",
                                  *entry);
    }
    return ebb__check_fail(c, EBB_ORACLE_FORMAT, noun, id, "was never created");
}

ebb__task_entry *ebb__check_known_task(ebb_checker *c, uint64_t id) {
    ebb__task_entry *t = ebb__check_task(c, id);
    if (t == NULL) ebb__check_fail_unknown(c, &c->tasks, "task", id);
    return t;
}

ebb__region_entry *ebb__check_known_region(ebb_checker *c, uint64_t id) {
    ebb__region_entry *r = ebb__check_region(c, id);
    if (r == NULL) ebb__check_fail_unknown(c, &c->regions, "region", id);
    return r;
}

void *ebb__check_new_entry(ebb_checker *c, ebb__map *map, const char *noun, uint64_t id,
                           bool (*live)(const void *entry)) {
    if (generation_of(id) == 0) {
        ebb__check_fail(c, EBB_ORACLE_FORMAT, noun, id, "is not an id: its generation is 0");
        return NULL;
    }
    const uint64_t *old = ebb__map_find(map, slot_of(id));
    if (old != NULL && live(old)) {
        ebb__check_fail_id(c, EBB_ORACLE_FORMAT, noun, id, "is new in a slot that still has", *old);
        return NULL;
    }
    if (old != NULL && generation_of(*old) >= generation_of(id)) {
        ebb__check_fail_id(c, EBB_ORACLE_FORMAT, noun, id, "is new, its generation is not above", *old);
        return NULL;
    }
    uint64_t *entry = ebb__map_put(map, slot_of(id));
    if (entry == NULL) {
        c->status = EBB_ERR_NOMEM;
        return NULL;
    }
    memset(entry, 0, map->slot_size - sizeof(uint64_t));
    *entry = id;
    return entry;
}

/* ---- cancel requests ----------------------------------------------------------------------------------- */

static bool severity_of_kind(ebb_checker *c, const char *noun, uint64_t id, const ebb_event *ev) {
    uint32_t own = (uint32_t)ebb_cancel_kind_severity((ebb_cancel_kind)ev->cancel_kind);
    if (own == 0 || own == ev->severity) return true;
    return ebb__check_fail_names(c, EBB_ORACLE_SEVERITY, noun, id, "severity of the kind",
                                 ebb__severity_name(own), ebb__severity_name(ev->severity));
}

static void set_request(ebb__request_entry *request, const ebb_event *ev) {
    *request = (ebb__request_entry){ev->other, ev->value, ev->cancel_kind, ev->severity, ev->cancel_epoch};
}

bool ebb__check_request_first(ebb_checker *c, const char *noun, uint64_t id, ebb__request_entry *request,
                              const ebb_event *ev) {
    if (ev->cancel_epoch != 1) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_SEVERITY, noun, id, "epoch of the first request", "", 1,
                                       ev->cancel_epoch);
    }
    if (!severity_of_kind(c, noun, id, ev)) return false;
    set_request(request, ev);
    return true;
}

bool ebb__check_budget(ebb_checker *c, const char *noun, uint64_t id, const ebb__request_entry *request,
                       const ebb_event *ev) {
    if (ev->other > request->deadline) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_BUDGET, noun, id, "cleanup deadline", "at most ",
                                       request->deadline, ev->other);
    }
    if (ev->value > request->polls) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_BUDGET, noun, id, "cleanup polls", "at most ",
                                       request->polls, ev->value);
    }
    return true;
}

bool ebb__check_request_again(ebb_checker *c, const char *noun, uint64_t id, ebb__request_entry *request,
                              const ebb_event *ev) {
    if (ev->severity < request->severity) {
        return ebb__check_fail_names(c, EBB_ORACLE_SEVERITY, noun, id, "severity, never weaker",
                                     ebb__severity_name(request->severity), ebb__severity_name(ev->severity));
    }
    uint32_t epoch = request->epoch + (ev->severity > request->severity ? 1u : 0u);
    if (ev->cancel_epoch != epoch) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_SEVERITY, noun, id,
                                       "epoch, one up when the severity rises", "", epoch, ev->cancel_epoch);
    }
    if (!severity_of_kind(c, noun, id, ev) || !ebb__check_budget(c, noun, id, request, ev)) return false;
    set_request(request, ev);
    return true;
}

bool ebb__check_request_same(ebb_checker *c, const char *noun, uint64_t id, const ebb__request_entry *request,
                             const ebb_event *ev) {
    if (ev->severity != request->severity) {
        return ebb__check_fail_names(c, EBB_ORACLE_SEVERITY, noun, id, "severity as requested",
                                     ebb__severity_name(request->severity), ebb__severity_name(ev->severity));
    }
    if (ev->cancel_epoch != request->epoch) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_SEVERITY, noun, id, "epoch as requested", "",
                                       request->epoch, ev->cancel_epoch);
    }
    if (ev->cancel_kind != request->kind) {
        return ebb__check_fail_names(c, EBB_ORACLE_FORMAT, noun, id, "kind as requested",
                                     ebb_cancel_kind_name((ebb_cancel_kind)request->kind),
                                     ebb_cancel_kind_name((ebb_cancel_kind)ev->cancel_kind));
    }
    return true;
}

/* ---- events -------------------------------------------------------------------------------------------- */

static bool missing(ebb_checker *c, const ebb_event *ev, const char *field) {
    ebb__text t = begin_text(c, EBB_ORACLE_FIELDS, NULL, 0, ebb_event_name(ev->type));
    ebb__text_str(&t, " lacks ");
    ebb__text_str(&t, field);
    return false;
}

/* A region is cancelled by a task or by the host, which has no task id. */
static bool has_required_fields(ebb_checker *c, const ebb_event *ev) {
    bool region = ebb__event_is_region(ev->type);
    if (ev->task_id == 0 && !region) return missing(c, ev, "task_id");
    if (ev->region_id == 0) return missing(c, ev, "region_id");
    if (ev->cancel_epoch == 0) return missing(c, ev, "cancel_epoch");
    if (ev->phase < 1 || ev->phase > (region ? EBB_REGION_CLOSED : EBB_TASK_COMPLETED)) {
        return missing(c, ev, "cancel_phase");
    }
    if (ev->cancel_kind < 1 || ev->cancel_kind >= EBB_CANCEL_KINDS) return missing(c, ev, "cancel_kind");
    if (ev->severity < EBB_SEVERITY_POLITE || ev->severity > EBB_SEVERITY_FORCED)
        return missing(c, ev, "severity");
    if (ev->decision_seq == 0) return missing(c, ev, "decision_seq");
    if (ev->host_turn_id == 0) return missing(c, ev, "host_turn_id");
    if (ev->microtask_batch_id == 0) return missing(c, ev, "microtask_batch_id");
    return true;
}

static bool in_order(ebb_checker *c, const ebb_event *ev) {
    if (c->events == 1 && ev->type != EBB_EV_TURN) {
        return ebb__check_fail(c, EBB_ORACLE_FORMAT, NULL, 0, "a trace starts with its turn");
    }
    if (ev->decision_seq <= c->seq) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "decision_seq", "more than ", c->seq,
                                       ev->decision_seq);
    }
    if (ev->time < c->time) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "time, never back", "at least ",
                                       c->time, ev->time);
    }
    c->seq = ev->decision_seq;
    c->time = ev->time;
    return true;
}

static bool check_gap(ebb_checker *c, const ebb_event *ev) {
    ebb__text t = begin_text(c, EBB_ORACLE_FORMAT, NULL, 0, "gap of ");
    ebb__text_u64(&t, ev->other);
    ebb__text_str(&t, " events: later events can't be checked");
    return false;
}

static bool check_text(ebb_checker *c, const ebb_event *ev) {
    if (ev->value >= 1 && ev->value <= 24) return true;
    return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "bytes in a text record", "1 to ", 24,
                                   ev->value);
}

static bool check_idle(ebb_checker *c, const ebb_event *ev) {
    (void)ev;
    if (!ebb__check_refusals_traced(c)) return false;
    if (c->runnable == 0) return true;
    size_t at = 0;
    const ebb__task_entry *t = ebb__map_next(&c->tasks, &at);
    while (t != NULL && !t->runnable) t = ebb__map_next(&c->tasks, &at);
    assert(t != NULL);
    return ebb__check_fail(c, EBB_ORACLE_LOST_WAKE, "task", t->id,
                           "was made runnable and not polled before the runtime went idle");
}

static bool never_back(ebb_checker *c, const char *what, uint64_t *last, uint64_t now) {
    if (now == 0 && *last != 0) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, what, "more than ", 0, now);
    }
    *last = now;
    return true;
}

/* The host chooses the numbers of turn and batch; 0 means that it has none. */
static bool check_turn(ebb_checker *c, const ebb_event *ev) {
    return never_back(c, "host_turn_id, never back to none", &c->turn, ev->host_turn_id) &&
           never_back(c, "microtask_batch_id, never back to none", &c->batch, ev->microtask_batch_id);
}

static bool no_rule(ebb_checker *c, const ebb_event *ev) {
    (void)c;
    (void)ev;
    return true;
}

typedef bool rule_fn(ebb_checker *c, const ebb_event *ev);

static rule_fn *rule_of(uint32_t type) {
    switch (type) {
    case EBB_EV_GAP: return check_gap;
    case EBB_EV_TEXT: return check_text;
    case EBB_EV_IDLE: return check_idle;
    case EBB_EV_TURN: return check_turn;
    case EBB_EV_TIMER_ARMED:
    case EBB_EV_TIMER_FIRED:
    case EBB_EV_TIMER_DISARMED: return ebb__check_timer_event;
    case EBB_EV_PRESENT: return ebb__check_present;
    case EBB_EV_STRING:
    case EBB_EV_NAMED: return ebb__check_string_event;
    case EBB_EV_POLL_ENDED:
    case EBB_EV_WAITING: return ebb__check_poll_event;
    case EBB_EV_OPERATION_BEGUN:
    case EBB_EV_OPERATION_ENDED: return ebb__check_future_event;
    case EBB_EV_REFUSED: return ebb__check_refused;
    case EBB_EV_OPERATION_ABANDONED: return ebb__check_operation;
    case EBB_EV_TIME:
    case EBB_EV_TRACE_TAKEN:
    case EBB_EV_TRACE_GIVEN:
    case EBB_EV_STALE_WAKE: /* the id in these is an argument and may be wrong */
    case EBB_EV_ILLEGAL:
    case EBB_EV_RECEIVED:
    case EBB_EV_WORKFLOW: return no_rule;
    default: break;
    }
    if (ebb_event_name(type) == NULL) return NULL;
    if (ebb__event_is_machine(type)) return ebb__check_machine_event;
    if (ebb__event_is_durable(type)) return no_rule;
    if (type >= EBB_EV_CONNECTION_OPENED) return ebb__check_span_event;
    if (type >= EBB_EV_FUTURE_MADE) return ebb__check_future_event;
    if (ebb__event_is_region(type)) return ebb__check_region_event;
    if (type < EBB_EV_OBLIGATION_RESERVED) return ebb__check_task_event;
    return type < EBB_EV_FINALIZER_ADDED ? ebb__check_obligation_event : ebb__check_finalizer_event;
}

ebb_status ebb_checker_event(ebb_checker *c, const ebb_event *ev) {
    if (c->status != EBB_OK) return c->status;
    c->events++;
    c->at = ev;
    rule_fn *rule = rule_of(ev->type);
    if (rule == NULL) {
        ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "event type", "one below ", EBB_EV_MAX,
                                ev->type);
    } else if (!ebb_event_is_cancel(ev->type) || has_required_fields(c, ev)) {
        bool rules = in_order(c, ev) && ebb__check_strings(c, ev);
        bool skips = rules && c->partial && ebb__check_skips(c, ev);
        c->begun |= ev->type >= EBB_EV_REGION_OPENED || ev->type == EBB_EV_IDLE;
        if (rules && !skips && c->status == EBB_OK) rule(c, ev);
    }
    c->at = NULL;
    return c->status;
}

ebb_status ebb_checker_end(ebb_checker *c, bool quiescent) {
    if (c->status != EBB_OK || !ebb__check_refusals_traced(c) || !quiescent) return c->status;
    size_t at = 0;
    for (const ebb__task_entry *t; (t = ebb__map_next(&c->tasks, &at)) != NULL;) {
        if (t->phase == EBB_TASK_COMPLETED || t->adopted) continue;
        ebb__check_fail_names(c, EBB_ORACLE_TASK_LEAK, "task", t->id, "phase at the end",
                              ebb__phase_name(EBB_TASK_COMPLETED), ebb__phase_name(t->phase));
        return c->status;
    }
    at = 0;
    for (const ebb__region_entry *r; (r = ebb__map_next(&c->regions, &at)) != NULL;) {
        if (r->state == EBB_REGION_CLOSED || r->id == c->root || r->adopted) continue;
        ebb__check_fail_names(c, EBB_ORACLE_REGION_LEAK, "region", r->id, "state at the end",
                              ebb__region_state_name(EBB_REGION_CLOSED), ebb__region_state_name(r->state));
        return c->status;
    }
    if (ebb__check_layers_end(c)) (void)ebb__check_machines_end(c);
    return c->status;
}

/* ---- creating and freeing ------------------------------------------------------------------------------ */

ebb_checker *ebb_checker_new(ebb_allocator a) {
    ebb_checker *c = a.fn(a.ctx, NULL, 0, sizeof *c);
    if (c == NULL) return NULL;
    memset(c, 0, sizeof *c);
    c->allocator = a;
    ebb__map_init(&c->tasks, a, sizeof(ebb__task_entry));
    ebb__map_init(&c->regions, a, sizeof(ebb__region_entry));
    ebb__map_init(&c->obligations, a, sizeof(ebb__obligation_entry));
    ebb__map_init(&c->timers, a, sizeof(ebb__timer_entry));
    ebb__map_init(&c->finalizers, a, sizeof(ebb__finalizer_entry));
    ebb__map_init(&c->futures, a, sizeof(ebb__future_entry));
    ebb__map_init(&c->connections, a, sizeof(ebb__span_entry));
    ebb__map_init(&c->exchanges, a, sizeof(ebb__span_entry));
    ebb__map_init(&c->processes, a, sizeof(ebb__span_entry));
    ebb__map_init(&c->machines, a, sizeof(ebb__machine_entry));
    ebb__map_init(&c->pendings, a, sizeof(ebb__pending_entry));
    ebb__map_init(&c->messages, a, sizeof(ebb__message_entry));
    return c;
}

void ebb_checker_free(ebb_checker *c) {
    if (c == NULL) return;
    ebb__map_free(&c->messages);
    ebb__map_free(&c->pendings);
    ebb__map_free(&c->machines);
    ebb__map_free(&c->processes);
    ebb__map_free(&c->exchanges);
    ebb__map_free(&c->connections);
    ebb__map_free(&c->futures);
    ebb__map_free(&c->finalizers);
    ebb__map_free(&c->timers);
    ebb__map_free(&c->obligations);
    ebb__map_free(&c->regions);
    ebb__map_free(&c->tasks);
    c->allocator.fn(c->allocator.ctx, c, sizeof *c, 0);
}

const ebb_violation *ebb_checker_violation(const ebb_checker *c) {
    return c->status == EBB_ERR_ORACLE ? &c->violation : NULL;
}

uint64_t ebb_checker_events(const ebb_checker *c) {
    return c->events;
}
