/* trace/check_layers.c - rules of timers and of what layers above the kernel record: futures and operations, connections
 * and exchanges, processes. Each begins once, ends once, and ends after it began. */
#include "trace/check.h"

#include "kernel/format.h"

/* ---- strings and polls ------------------------------------------------------------------------------------ */

bool ebb__check_strings(ebb_checker *c, const ebb_event *ev) {
    uint32_t most = ev->site > ev->what ? ev->site : ev->what;
    if (most <= c->strings) return true;
    return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "number of a string", "at most ",
                                   c->strings, most);
}

bool ebb__check_string_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_NAMED) {
        if (ev->task_id != 0) return ebb__check_known_task(c, ev->task_id) != NULL;
        return ebb__check_known_region(c, ev->region_id) != NULL;
    }
    if (ev->value == c->strings + 1 && ev->value <= EBB__STRING_MASK) {
        c->strings = ev->value;
        return true;
    }
    return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, NULL, 0, "number of a new string", "",
                                   c->strings + 1, ev->value);
}

bool ebb__check_poll_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_WAITING) return ebb__check_known_task(c, ev->task_id) != NULL;
    if (ev->task_id != c->polled) {
        return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "task", ev->task_id,
                                  "ends a poll, but the last that was polled is", c->polled);
    }
    if (ev->other < c->poll_end) {
        return ebb__check_fail_numbers(c, EBB_ORACLE_FORMAT, "task", ev->task_id,
                                       "end of its poll, never back", "at least ", c->poll_end, ev->other);
    }
    c->poll_end = ev->other;
    return true;
}

/* ---- timers ----------------------------------------------------------------------------------------------- */

static bool is_armed(const void *entry) {
    return !((const ebb__timer_entry *)entry)->over;
}

static bool armed(ebb_checker *c, const ebb_event *ev) {
    const ebb__task_entry *owner = ebb__check_known_task(c, ev->task_id);
    if (owner == NULL) return false;
    ebb__timer_entry *t = ebb__check_new_entry(c, &c->timers, "timer", ev->other, is_armed);
    if (t == NULL) return false;
    t->task = ev->task_id;
    return true;
}

/* A timer may fire after its task has ended; it then has no task. */
static bool fired(ebb_checker *c, const ebb_event *ev, const ebb__timer_entry *t) {
    const ebb__task_entry *owner = ebb__check_task(c, t->task);
    bool lives = owner != NULL && owner->phase != EBB_TASK_COMPLETED;
    if (ev->task_id == (lives ? t->task : 0)) return true;
    return ebb__check_fail_id(c, EBB_ORACLE_FORMAT, "timer", t->id,
                              lives ? "did not fire for the task that it was armed for,"
                                    : "fired for a task that has ended,",
                              t->task);
}

bool ebb__check_timer_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_TIMER_ARMED) return armed(c, ev);
    ebb__timer_entry *t = ebb__check_find(&c->timers, ev->other);
    if (t == NULL) return ebb__check_fail_unknown(c, &c->timers, "timer", ev->other);
    if (t->over)
        return ebb__check_fail(c, EBB_ORACLE_FORMAT, "timer", t->id, "has fired or was disarmed before");
    t->over = true;
    return ev->type == EBB_EV_TIMER_DISARMED || fired(c, ev, t);
}

/* ---- futures and operations ------------------------------------------------------------------------------- */

enum { NEVER = 0, BEGUN, LEFT, ENDED }; /* an operation; LEFT: abandoned, its end may still come */

static bool fail_once(ebb_checker *c, const char *noun, uint64_t number, const char *what) {
    return ebb__check_fail(c, EBB_ORACLE_PHASE, noun, number, what);
}

static ebb__future_entry *known_future(ebb_checker *c, uint64_t number) {
    ebb__future_entry *f = ebb__map_find(&c->futures, number);
    if (f == NULL) ebb__check_fail(c, EBB_ORACLE_FORMAT, "future", number, "was never made");
    return f;
}

static bool made(ebb_checker *c, const ebb_event *ev) {
    if (ev->other == 0) return ebb__check_fail(c, EBB_ORACLE_FORMAT, "future", 0, "has no number");
    const ebb__future_entry *old = ebb__map_find(&c->futures, ev->other);
    if (old != NULL && old->operation != NEVER && old->operation != ENDED) {
        return fail_once(c, "future", ev->other, "is made where one is whose operation has not ended");
    }
    if (old != NULL && !old->ended) return fail_once(c, "future", ev->other, "is made where one is pending");
    ebb__future_entry *f = ebb__map_put(&c->futures, ev->other);
    if (f == NULL) {
        c->status = EBB_ERR_NOMEM;
        return false;
    }
    *f = (ebb__future_entry){.number = ev->other};
    return true;
}

static bool operation(ebb_checker *c, const ebb_event *ev, ebb__future_entry *f) {
    switch (ev->type) {
    case EBB_EV_OPERATION_BEGUN:
        if (f->operation != NEVER) return fail_once(c, "operation", ev->other, "begins twice");
        f->operation = BEGUN;
        return true;
    case EBB_EV_OPERATION_ENDED:
        if (f->operation == NEVER) return fail_once(c, "operation", ev->other, "ends, but never began");
        if (f->operation == ENDED) return fail_once(c, "operation", ev->other, "ends twice");
        f->operation = ENDED;
        return true;
    default:
        if (f->operation != BEGUN)
            return fail_once(c, "operation", ev->other, "is abandoned, but is not under way");
        f->operation = LEFT;
        return true;
    }
}

bool ebb__check_future_event(ebb_checker *c, const ebb_event *ev) {
    if (ev->type == EBB_EV_FUTURE_MADE) return made(c, ev);
    ebb__future_entry *f = known_future(c, ev->other);
    if (f == NULL) return false;
    switch (ev->type) {
    case EBB_EV_FUTURE_AWAITED: return ebb__check_known_task(c, ev->task_id) != NULL;
    case EBB_EV_RACE_WON:
        if (f->ended || f->won) return fail_once(c, "race", ev->other, "is won, but has ended");
        f->won = true;
        return true;
    case EBB_EV_FUTURE_SETTLED:
    case EBB_EV_FUTURE_CANCELLED:
    case EBB_EV_FUTURE_DROPPED:
        if (f->ended) return fail_once(c, "future", ev->other, "ends twice");
        f->ended = true;
        return true;
    default: return operation(c, ev, f);
    }
}

/* ---- connections, exchanges, processes -------------------------------------------------------------------- */

typedef ebb__span_entry span;

static bool begin(ebb_checker *c, ebb__map *map, const char *noun, uint64_t key, uint64_t inside) {
    const span *old = key == 0 ? NULL : ebb__map_find(map, key);
    if (key == 0) return ebb__check_fail(c, EBB_ORACLE_FORMAT, noun, key, "has no number");
    if (old != NULL) return fail_once(c, noun, key, "begins twice");
    span *s = ebb__map_put(map, key);
    if (s == NULL) {
        c->status = EBB_ERR_NOMEM;
        return false;
    }
    *s = (span){.key = key, .inside = inside};
    return true;
}

static bool finish(ebb_checker *c, ebb__map *map, const char *noun, uint64_t key) {
    const span *s = ebb__map_find(map, key);
    if (s == NULL) return fail_once(c, noun, key, "ends, but is not open");
    if (s->within > 0) return fail_once(c, noun, key, "ends before what is inside it");
    span *around = s->inside == 0 ? NULL : ebb__map_find(&c->connections, s->inside);
    if (around != NULL) around->within--;
    ebb__map_remove(map, key);
    return true;
}

bool ebb__check_span_event(ebb_checker *c, const ebb_event *ev) {
    uint64_t inside = ev->other & UINT32_MAX, exchange = ev->other >> 32;
    span *around;
    switch (ev->type) {
    case EBB_EV_CONNECTION_OPENED: return begin(c, &c->connections, "connection", ev->other, 0);
    case EBB_EV_CONNECTION_CLOSED: return finish(c, &c->connections, "connection", ev->other);
    case EBB_EV_EXCHANGE_BEGUN:
        around = inside == 0 ? NULL : ebb__map_find(&c->connections, inside);
        if (around == NULL) return fail_once(c, "exchange", exchange, "begins outside of an open connection");
        around->within++;
        return begin(c, &c->exchanges, "exchange", exchange, inside);
    case EBB_EV_EXCHANGE_ENDED: return finish(c, &c->exchanges, "exchange", exchange);
    case EBB_EV_PROCESS_STARTED: return begin(c, &c->processes, "process", ev->other, 0);
    default: return finish(c, &c->processes, "process", ev->other);
    }
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

static bool none_open(ebb_checker *c, const ebb__map *map, const char *noun) {
    size_t at = 0;
    const span *s = ebb__map_next(map, &at);
    if (s == NULL) return true;
    return ebb__check_fail(c, EBB_ORACLE_QUIESCENCE, noun, s->key, "is open at the end");
}

bool ebb__check_layers_end(ebb_checker *c) {
    size_t at = 0;
    for (const ebb__future_entry *f; (f = ebb__map_next(&c->futures, &at)) != NULL;) {
        if (f->operation != BEGUN) continue;
        return ebb__check_fail(c, EBB_ORACLE_QUIESCENCE, "operation", f->number,
                               "has neither ended nor was it abandoned at the end");
    }
    return none_open(c, &c->exchanges, "exchange") && none_open(c, &c->connections, "connection") &&
           none_open(c, &c->processes, "process");
}
