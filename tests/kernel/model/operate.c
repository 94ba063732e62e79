/* The operations: each is chosen at random, told to the model and to the kernel, and both answers must
 * agree. The model is told first, so that its number for what is new can go with it. */
#include "tests/kernel/model/driver.h"

#include <inttypes.h>

#include "kernel/rt.h"

typedef void (*operation)(driver *d, ebb_cx *cx, int who);

uint32_t driver_random(driver *d, uint32_t below) {
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (uint32_t)((d->random >> 20) % below);
}

bool driver_chance(driver *d, uint32_t percent) {
    return driver_random(d, 100) < percent;
}

static void agree(driver *d, const char *what, ebb_status kernel, ebb_status expected) {
    if (kernel == expected) return;
    driver_fail(d, "%s: %s, expected %s", what, ebb_status_name(kernel), ebb_status_name(expected));
}

/* ---- choosing ------------------------------------------------------------------------------------- */

/* A recent one more often than an old one, which has mostly ended. 0: there is none. */
static int recent(driver *d, int count) {
    if (count == 0) return 0;
    int span = driver_chance(d, 80) && count > 12 ? 12 : count;
    return count - (int)driver_random(d, (uint32_t)span);
}

/* Closers have no id that anybody knows. */
static int some_task(driver *d) {
    for (int tries = 0; tries < 8; tries++) {
        int t = recent(d, d->m->tasks);
        if (t != 0 && d->task[t].id != 0) return t;
    }
    return 0;
}

/* One that lives, if there is one not far back. */
static int some_region(driver *d) {
    for (int tries = 0; tries < 4; tries++) {
        int r = recent(d, d->m->regions);
        if (r != M_ROOT && d->m->region[r].state == EBB_REGION_OPEN) return r;
    }
    return driver_chance(d, 15) ? M_ROOT : recent(d, d->m->regions);
}

/* For the verbs: the end of the root is the end of the episode. */
static int some_victim(driver *d) {
    int r = recent(d, d->m->regions);
    return r == M_ROOT && !driver_chance(d, 2) ? 0 : r;
}

static int some_obligation(driver *d) {
    for (int tries = 0; tries < 8; tries++) {
        int i = recent(d, d->m->n_owed);
        if (i != 0 && !d->m->owed[i].finalizer) return i;
    }
    return 0;
}

static ebb_cancel_kind some_kind(driver *d) {
    return (ebb_cancel_kind)(EBB_CANCEL_USER + driver_random(d, EBB_CANCEL_SHUTDOWN));
}

static uint64_t some_time(driver *d) {
    static const uint32_t spans_ms[] = {3, 40, 400, 4000};
    return d->m->now + EBB_MS + driver_random(d, spans_ms[driver_random(d, 4)]) * EBB_MS +
           driver_random(d, (uint32_t)EBB_MS);
}

/* ---- new work ------------------------------------------------------------------------------------- */

static void spawn(driver *d, ebb_cx *cx, int who) {
    int r = who != 0 && driver_chance(d, 40) ? d->m->task[who].region : some_region(d), t;
    if (d->m->tasks + 2 >= M_TASKS || d->m->region[r].tasks.n > 40) return;
    ebb_task_opts o = {.keep = driver_chance(d, 20), .priority = (uint8_t)driver_random(d, 3)};
    if (driver_chance(d, 20)) o.deadline = some_time(d);
    if (driver_chance(d, 15)) o.polls = 1 + driver_random(d, 6);
    driver_note(d, "%d spawns in region %d: deadline %" PRIu64 ", polls %u, keep %d", who, r, o.deadline,
                o.polls, o.keep);
    ebb_status expected = model_spawn(d->m, who, r, &o, &t);
    ebb_task id = ebb_spawn(cx, d->region[r], model_puppet_poll, &d->task_puppet[t], &o);
    agree(d, "spawn", ebb_id_status(id.id), expected);
    if (expected != EBB_OK) return;
    d->task[t] = id;
    d->task_puppet[t] = (puppet){d, t};
}

/* The number of the new region, 0 if it was refused. */
static int open_in(driver *d, ebb_cx *cx, int who, int parent) {
    if (d->m->regions + 1 >= M_REGIONS) return 0;
    int r;
    ebb_region_opts o = {.policy = driver_chance(d, 60) ? EBB_FAIL_COLLECT : EBB_FAIL_FAST,
                         .priority = (uint8_t)driver_random(d, 3),
                         .cleanup = driver_chance(d, who != 0 && d->m->task[who].told.kind != 0 ? 60 : 8)};
    o.unit = !o.cleanup && driver_chance(d, 25);
    if (parent != 0) o.parent = d->region[parent];
    if (driver_chance(d, 15)) o.deadline = some_time(d);
    driver_note(d, "%d opens a region in %d: deadline %" PRIu64 ", cleanup %d, unit %d, policy %d", who,
                parent, o.deadline, o.cleanup, o.unit, (int)o.policy);
    if (driver_chance(d, 20)) o.on_closed = model_puppet_closed;
    ebb_status expected = model_open(d->m, who, parent, &o, &r);
    o.arg = &d->region_puppet[r];
    ebb_region id = ebb_region_open(cx, &o);
    agree(d, "open", ebb_id_status(id.id), expected);
    if (expected != EBB_OK) return 0;
    d->region[r] = id;
    d->region_puppet[r] = (puppet){d, r};
    return r;
}

static void open(driver *d, ebb_cx *cx, int who) {
    (void)open_in(d, cx, who, driver_chance(d, 50) ? 0 : some_region(d));
}

/* ---- the verbs ------------------------------------------------------------------------------------ */

static void close(driver *d, ebb_cx *cx, int who) {
    int r = some_victim(d);
    if (r == 0) return;
    driver_note(d, "%d closes region %d", who, r);
    model_close(d->m, r);
    ebb_region_close(cx, d->region[r]);
}

/* A region of the host's, with two in it that are another's: the one closed and not joined, the other
 * open and empty. Whoever ends last takes the rest along. */
static void scatter(driver *d, ebb_cx *cx, int who) {
    int around = open_in(d, ebb_runtime_host(d->rt), 0, M_ROOT);
    if (around == 0) return;
    int first = open_in(d, cx, who, around), second = open_in(d, cx, who, around);
    if (first == 0 || second == 0) return;
    driver_note(d, "%d closes region %d", who, first);
    model_close(d->m, first);
    ebb_region_close(cx, d->region[first]);
    driver_note(d, "0 joins region %d", around);
    ebb_status expected = model_region_join(d->m, 0, around);
    agree(d, "join of a region", ebb_region_join(ebb_runtime_host(d->rt), d->region[around]), expected);
}

static void cancel(driver *d, ebb_cx *cx, int who) {
    int r = some_victim(d);
    if (r == 0) return;
    ebb_cancel_kind kind = some_kind(d);
    driver_note(d, "%d cancels region %d: %s", who, r, ebb_cancel_kind_name(kind));
    model_cancel(d->m, r, kind, NULL);
    ebb_region_cancel(cx, d->region[r], kind, "model");
}

static void cancel_within(driver *d, ebb_cx *cx, int who) {
    int r = some_victim(d);
    if (r == 0) return;
    ebb_cancel_kind kind = some_kind(d);
    ebb_budget b = {some_time(d), 1 + driver_random(d, 40), (uint8_t)driver_random(d, 4)};
    driver_note(d, "%d cancels region %d: %s within %" PRIu64 ", %u polls", who, r,
                ebb_cancel_kind_name(kind), b.deadline, b.polls);
    model_cancel(d->m, r, kind, &b);
    ebb_region_cancel_within(cx, d->region[r], kind, "model", b);
}

static void force(driver *d, ebb_cx *cx, int who) {
    int r = some_victim(d);
    if (r == 0) return;
    driver_note(d, "%d forces region %d", who, r);
    model_force(d->m, r);
    ebb_region_force(cx, d->region[r]);
}

static void task_cancel(driver *d, ebb_cx *cx, int who) {
    int t = some_task(d);
    if (t == 0) return;
    ebb_cancel_kind kind = some_kind(d);
    driver_note(d, "%d cancels task %d: %s", who, t, ebb_cancel_kind_name(kind));
    model_task_cancel(d->m, t, kind);
    ebb_task_cancel(cx, d->task[t], kind, NULL);
}

static void task_force(driver *d, ebb_cx *cx, int who) {
    int t = some_task(d);
    if (t == 0) return;
    driver_note(d, "%d forces task %d", who, t);
    model_task_force(d->m, t);
    ebb_task_force(cx, d->task[t]);
}

static void discard(driver *d, ebb_cx *cx, int who) {
    int t = some_task(d);
    if (t == 0) return;
    driver_note(d, "%d discards task %d", who, t);
    ebb_status expected = model_discard(d->m, t);
    agree(d, "discard", ebb__task_discard(cx, d->task[t]), expected);
}

static void wake_task(driver *d, ebb_cx *cx, int who, int t) {
    if (t == 0) return;
    driver_note(d, "%d wakes task %d", who, t);
    agree(d, "wake", ebb_task_wake(cx, d->task[t]), model_wake(d->m, t));
}

static void wake(driver *d, ebb_cx *cx, int who) {
    wake_task(d, cx, who, some_task(d));
}

/* ---- obligations and finalizers ------------------------------------------------------------------- */

static void reserve(driver *d, ebb_cx *cx, int who) {
    if (d->m->n_owed + 1 >= M_OWED) return;
    int r = driver_chance(d, 70) ? 0 : some_region(d), o;
    driver_note(d, "%d reserves in region %d (0: its own)", who, r);
    ebb_status expected = model_reserve(d->m, who, r, &o);
    ebb_obligation id =
        r == 0
            ? ebb_obligation_reserve(cx, EBB_OBLIGATION_ACK, model_puppet_abort, &d->owed_puppet[o])
            : ebb_region_reserve(cx, d->region[r], EBB_OBLIGATION_IO, model_puppet_abort, &d->owed_puppet[o]);
    agree(d, "reserve", ebb_id_status(id.id), expected);
    if (expected != EBB_OK) return;
    d->owed[o] = id;
    d->owed_puppet[o] = (puppet){d, o};
}

static void resolve(driver *d, ebb_cx *cx, int who) {
    int o = some_obligation(d);
    if (o == 0) return;
    bool abort = driver_chance(d, 40);
    driver_note(d, "%d %s obligation %d", who, abort ? "aborts" : "commits", o);
    ebb_status expected = model_resolve(d->m, o, abort);
    agree(d, "resolve", abort ? ebb_obligation_abort(cx, d->owed[o]) : ebb_obligation_commit(cx, d->owed[o]),
          expected);
}

static void defer(driver *d, ebb_cx *cx, int who) {
    if (d->m->n_owed + 1 >= M_OWED || d->m->tasks + 2 >= M_TASKS) return;
    int r = who != 0 && driver_chance(d, 60) ? 0 : some_region(d), f;
    if (r == M_ROOT && !driver_chance(d, 10)) return;
    driver_note(d, "%d defers in region %d (0: its own)", who, r);
    ebb_status expected = model_defer(d->m, who, r, &f);
    d->owed_puppet[f] = (puppet){d, f};
    agree(d, "defer",
          r == 0 ? ebb_defer(cx, model_puppet_finalize, &d->owed_puppet[f])
                 : ebb_region_defer(cx, d->region[r], model_puppet_finalize, &d->owed_puppet[f]),
          expected);
}

/* ---- waiting -------------------------------------------------------------------------------------- */

/* Its own regions more often than those of others, which are refused. */
static int region_to_join(driver *d, int who) {
    const m_list *own = &d->m->task[who].scopes;
    if (who != 0 && own->n > 0 && driver_chance(d, 85)) return own->at[driver_random(d, (uint32_t)own->n)];
    for (int r = d->m->regions; who == 0 && r > M_ROOT; r--) {
        if (d->m->region[r].visible && d->m->region[r].owner == 0 && driver_chance(d, 40)) return r;
    }
    return recent(d, d->m->regions);
}

static void region_join(driver *d, ebb_cx *cx, int who) {
    int r = region_to_join(d, who);
    driver_note(d, "%d joins region %d", who, r);
    ebb_status expected = model_region_join(d->m, who, r);
    agree(d, "join of a region", ebb_region_join(cx, d->region[r]), expected);
}

static void task_join(driver *d, ebb_cx *cx, int who) {
    int t = some_task(d);
    if (t == 0) return;
    driver_note(d, "%d joins task %d", who, t);
    ebb_status expected = model_task_join(d->m, who, t);
    agree(d, "join of a task", ebb_task_join(cx, d->task[t]), expected);
}

static void arm(driver *d, ebb_cx *cx, int who) {
    int t = some_task(d), timer;
    if (t == 0 || d->m->timers + 1 >= M_TIMERS) return;
    uint64_t due = some_time(d);
    driver_note(d, "%d arms a timer of task %d for %" PRIu64, who, t, due);
    ebb_status expected = model_timer_arm(d->m, t, due, &timer);
    ebb_timer id = ebb_timer_arm(cx, d->task[t], due);
    agree(d, "arm", ebb_id_status(id.id), expected);
    if (expected == EBB_OK) d->timer[timer] = id;
}

static void disarm(driver *d, ebb_cx *cx, int who) {
    int timer = recent(d, d->m->timers);
    if (timer == 0) return;
    driver_note(d, "%d disarms timer %d", who, timer);
    ebb_status expected = model_timer_disarm(d->m, timer);
    agree(d, "disarm", ebb_timer_disarm(cx, d->timer[timer]), expected);
}

/* ---- what only a task does ------------------------------------------------------------------------ */

static void checkpoint(driver *d, ebb_cx *cx, int who) {
    driver_note(d, "%d is at a checkpoint", who);
    ebb_status expected = model_checkpoint(d->m, who);
    agree(d, "checkpoint", ebb_checkpoint(cx), expected);
}

static void mask(driver *d, ebb_cx *cx, int who) {
    int times = driver_chance(d, 3) ? EBB_MASK_MAX + 1 : 1;
    driver_note(d, "%d masks %d times", who, times);
    for (int i = 0; i < times; i++) agree(d, "mask", ebb_mask(cx), model_mask(d->m, who));
}

static void unmask(driver *d, ebb_cx *cx, int who) {
    int times = driver_chance(d, 10) ? EBB_MASK_MAX + 1 : 1;
    driver_note(d, "%d unmasks %d times", who, times);
    for (int i = 0; i < times; i++) agree(d, "unmask", ebb_unmask(cx), model_unmask(d->m, who));
}

/* ---- the table ------------------------------------------------------------------------------------ */

typedef struct weighted {
    operation does;
    uint32_t weight; /* by nature, and in a world where much goes wrong */
    uint32_t wild;
    bool task_only;
} weighted;

static const weighted table[] = {
    {spawn, 24, 20, false},      {open, 12, 12, false},        {close, 4, 6, false},
    {cancel, 2, 5, false},       {cancel_within, 1, 3, false}, {force, 1, 3, false},
    {task_cancel, 4, 8, false},  {task_force, 1, 4, false},    {wake, 14, 10, false},
    {reserve, 10, 10, false},    {resolve, 14, 8, false},      {defer, 6, 8, false},
    {region_join, 10, 8, false}, {task_join, 8, 8, false},     {arm, 8, 8, false},
    {disarm, 4, 4, false},       {checkpoint, 18, 12, true},   {mask, 5, 6, true},
    {unmask, 5, 5, true},        {scatter, 1, 2, true},        {discard, 2, 3, false},
};

/* What is being ended takes nothing new, so that it does end. */
static bool is_new_work(operation does) {
    return does == spawn || does == open || does == scatter || does == defer || does == arm ||
           does == reserve;
}

void driver_operate(driver *d, ebb_cx *cx, int who) {
    enum { N = sizeof table / sizeof table[0] };
    uint32_t total = 0, weight[N];
    for (size_t i = 0; i < N; i++) {
        weight[i] = d->profile == 0 ? table[i].weight : table[i].wild;
        if ((table[i].task_only && who == 0) || (d->draining && is_new_work(table[i].does))) weight[i] = 0;
        total += weight[i];
    }
    uint32_t at = driver_random(d, total);
    size_t i = 0;
    while (at >= weight[i]) at -= weight[i++];
    table[i].does(d, cx, who);
    driver_compare(d);
}
