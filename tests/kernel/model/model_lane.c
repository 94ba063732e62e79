/* The model's clock and order: timers, lanes, the cycle, one turn of the pump. */
#include "tests/kernel/model/model.h"

#include <stdlib.h>

enum { BUCKET_SHIFT = 27, BUCKETS = 64 };

/* ---- lists ---------------------------------------------------------------------------------------- */

void m_push(m_list *l, int x) {
    if (l->n == M_MEMBERS) abort();
    l->at[l->n++] = x;
}

static int place_of(const m_list *l, int x) {
    for (int i = 0; i < l->n; i++) {
        if (l->at[i] == x) return i;
    }
    abort();
}

void m_drop(m_list *l, int x) {
    for (int i = place_of(l, x); i + 1 < l->n; i++) l->at[i] = l->at[i + 1];
    l->n--;
}

void m_swap_remove(m_list *l, int x) {
    l->at[place_of(l, x)] = l->at[l->n - 1];
    l->n--;
}

/* ---- timers --------------------------------------------------------------------------------------- */

static int armed_at(const model *m, m_source source, int number) {
    for (int i = 0; i < m->armed_n; i++) {
        if (m->armed[i].source == source && m->armed[i].number == number) return i;
    }
    return -1;
}

bool m_is_armed(const model *m, m_source source, int number) {
    return armed_at(m, source, number) >= 0;
}

void m_disarm(model *m, m_source source, int number) {
    int i = armed_at(m, source, number);
    if (i < 0) return;
    m->armed[i] = m->armed[--m->armed_n];
}

/* Timers of one millisecond fire as they were armed, with one exception: the kernel's wheel has slots of
 * 64, 4096, ... ticks, and opens one when its first tick comes. What is armed then for a tick of that
 * slot, by a timer out of it, comes before those behind that one. */
static bool opens_slot_of(uint64_t now_tick, uint64_t tick) {
    uint64_t span = 1;
    while (now_tick % (span * 64) == 0) span *= 64;
    return span > 1 && tick - now_tick < span;
}

/* A millisecond is the grain: the first one that is not before `due`, and none that has passed. */
void m_arm(model *m, m_source source, int number, uint64_t due) {
    if (m->armed_n == M_TIMERS) abort();
    uint64_t tick = due / EBB_MS + (due % EBB_MS != 0);
    if (tick < m->tick) tick = m->tick;
    m_armed a = {source, number, tick, ++m->order, 0};
    if (m->firing != 0 && opens_slot_of(m->tick, tick)) {
        a.suborder = a.order;
        a.order = m->firing;
    }
    m->armed[m->armed_n++] = a;
}

static bool fires_before(const m_armed *a, const m_armed *b) {
    if (a->tick != b->tick) return a->tick < b->tick;
    if (a->order != b->order) return a->order < b->order;
    return a->suborder < b->suborder;
}

static int earliest(const model *m) {
    int best = -1;
    for (int i = 0; i < m->armed_n; i++) {
        if (best < 0 || fires_before(&m->armed[i], &m->armed[best])) best = i;
    }
    return best;
}

static bool is_due(const model *m) {
    int i = earliest(m);
    return i >= 0 && m->armed[i].tick <= m->now / EBB_MS;
}

static void fire_what_is_due(model *m) {
    while (is_due(m)) {
        int i = earliest(m);
        m_armed a = m->armed[i];
        m->armed[i] = m->armed[--m->armed_n];
        m->tick = a.tick;
        m->firing = a.order;
        m_fired(m, &a);
    }
    m->firing = 0;
    m->tick = m->now / EBB_MS;
}

static void timer_fired(model *m, int timer) {
    m_task *t = &m->task[m->timer[timer].task];
    m->timer[timer].armed = false;
    m->stats.timers--;
    if (t->visible && t->phase != EBB_TASK_COMPLETED) m_wake(m, m->timer[timer].task);
}

void m_fired(model *m, const m_armed *a) {
    switch (a->source) {
    case M_TIMER: timer_fired(m, a->number); break;
    case M_TASK: m_task_due(m, a->number); break;
    case M_REGION: m_region_due(m, a->number); break;
    }
}

ebb_status model_timer_arm(model *m, int task, uint64_t due, int *timer) {
    *timer = 0;
    if (!m->task[task].visible || m->task[task].phase == EBB_TASK_COMPLETED) return EBB_ERR_STALE;
    *timer = ++m->timers;
    m->timer[*timer] = (m_timer){task, true};
    m->stats.timers++;
    m_arm(m, M_TIMER, *timer, due);
    return EBB_OK;
}

ebb_status model_timer_disarm(model *m, int timer) {
    if (!m->timer[timer].armed) return EBB_ERR_STALE;
    m->timer[timer].armed = false;
    m->stats.timers--;
    m_disarm(m, M_TIMER, timer);
    return EBB_OK;
}

/* ---- lanes ---------------------------------------------------------------------------------------- */

uint64_t m_cleanup_deadline(const model *m, int t) {
    const m_task *x = &m->task[t];
    const m_region *r = &m->region[x->region];
    uint64_t end = r->told.kind != 0 ? r->deadline : EBB_FOREVER;
    if (x->own && x->due + x->kept < end) end = x->due + x->kept;
    return end;
}

static bool lane_has_work(const model *m, ebb_lane lane) {
    for (int i = 0; i < m->runnable.n; i++) {
        if (m->task[m->runnable.at[i]].lane == lane) return true;
    }
    return false;
}

/* The base follows the clock but never passes a member. */
static void move_base(model *m) {
    uint64_t to = m->now >> BUCKET_SHIFT;
    if (m->bucket_base >= to) return;
    for (int i = 0; i < m->runnable.n; i++) {
        const m_task *x = &m->task[m->runnable.at[i]];
        if (x->lane == EBB_LANE_CANCEL && x->bucket < to) to = x->bucket;
    }
    m->bucket_base = to;
}

static uint64_t bucket_of(model *m, uint64_t deadline) {
    move_base(m);
    uint64_t b = deadline >> BUCKET_SHIFT;
    if (b < m->bucket_base) return m->bucket_base;
    return b > m->bucket_base + BUCKETS - 1 ? m->bucket_base + BUCKETS - 1 : b;
}

void m_enqueue_cancelled(model *m, int t, uint64_t deadline) {
    m_task *x = &m->task[t];
    x->bucket = bucket_of(m, deadline);
    x->lane = EBB_LANE_CANCEL;
    x->arrival = ++m->order;
    m_push(&m->runnable, t);
}

bool m_due_sooner(model *m, int t, uint64_t deadline) {
    return bucket_of(m, deadline) < m->task[t].bucket;
}

void m_enqueue(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->told.kind != 0) {
        m_enqueue_cancelled(m, t, m_cleanup_deadline(m, t));
        return;
    }
    x->arrival = ++m->order;
    x->lane = x->timed ? EBB_LANE_TIMED : EBB_LANE_READY;
    x->key = m->region[x->region].deadline;
    if (x->has_due && x->due < x->key) x->key = x->due;
    m_push(&m->runnable, t);
}

void m_dequeue(model *m, int t) {
    if (m->task[t].lane == EBB_LANE_NONE) return;
    m->task[t].lane = EBB_LANE_NONE;
    m_drop(&m->runnable, t);
}

/* Deduplicated; during the task's own poll it asks for one more. */
void m_wake(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->polling) {
        x->rewake = true;
    } else if (x->lane == EBB_LANE_NONE) {
        m_enqueue(m, t);
    }
}

void m_rewoken(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->rewake && x->lane == EBB_LANE_NONE) m_enqueue(m, t);
    x->rewake = false;
}

static bool comes_before(const m_task *a, const m_task *b) {
    if (a->lane == EBB_LANE_CANCEL && a->bucket != b->bucket) return a->bucket < b->bucket;
    if (a->lane == EBB_LANE_TIMED && a->key != b->key) return a->key < b->key;
    if (a->lane == EBB_LANE_TIMED && a->priority != b->priority) return a->priority > b->priority;
    return a->arrival < b->arrival;
}

static int first_of(const model *m, ebb_lane lane) {
    int best = 0;
    for (int i = 0; i < m->runnable.n; i++) {
        int t = m->runnable.at[i];
        if (m->task[t].lane != lane) continue;
        if (best == 0 || comes_before(&m->task[t], &m->task[best])) best = t;
    }
    return best;
}

/* ---- the pump ------------------------------------------------------------------------------------- */

/* 8 : 1 : 1 where all have work; a lane without work is passed over. Alone, a lane moves no cycle. */
static ebb_lane whose_turn(model *m) {
    static const char cycle[] = "CCCCTCCCCR";
    bool c = lane_has_work(m, EBB_LANE_CANCEL), t = lane_has_work(m, EBB_LANE_TIMED),
         r = lane_has_work(m, EBB_LANE_READY);
    if (c + t + r == 0) return EBB_LANE_NONE;
    if (c + t + r == 1) return c ? EBB_LANE_CANCEL : t ? EBB_LANE_TIMED : EBB_LANE_READY;
    for (;;) {
        char turn = cycle[m->cycle];
        m->cycle = (m->cycle + 1) % 10;
        if (turn == 'C' && c) return EBB_LANE_CANCEL;
        if (turn == 'T' && t) return EBB_LANE_TIMED;
        if (turn == 'R' && r) return EBB_LANE_READY;
    }
}

static void sweep_all(model *m) {
    while (m->sweep.n > 0) m_sweep_one(m);
}

void model_pump(model *m, bool wheel_turns) {
    m->call = (m_call){0};
    if (wheel_turns) fire_what_is_due(m);
    sweep_all(m);
    ebb_lane lane = whose_turn(m);
    if (lane == EBB_LANE_NONE) return;
    int t = first_of(m, lane);
    m_dequeue(m, t);
    m->stats.polls++;
    m_poll(m, t);
    if (m->call.what == M_NOTHING) sweep_all(m);
}

void model_pump_end(model *m) {
    while (model_pump_status(m) == EBB_OK && is_due(m)) {
        fire_what_is_due(m);
        sweep_all(m);
    }
}

ebb_status model_pump_status(const model *m) {
    return lane_has_work(m, EBB_LANE_CANCEL) || lane_has_work(m, EBB_LANE_TIMED) ||
                   lane_has_work(m, EBB_LANE_READY)
               ? EBB_PENDING
               : EBB_OK;
}

void model_advance(model *m, uint64_t now) {
    if (now > m->now) m->now = now;
}
