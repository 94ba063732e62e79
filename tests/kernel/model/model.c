/* The model's tasks: how one is asked, polled, forced and ended; obligations and finalizers. */
#include "tests/kernel/model/model.h"

#include <stdlib.h>
#include <string.h>

enum { FORCE_POLLS = 8, GRAIN_NS = 1024 };

/* ---- reasons and budgets -------------------------------------------------------------------------- */

uint64_t m_budget_end(const model *m, int severity) {
    static const uint64_t ms[] = {0, 5000, 2000, 500};
    return m->now + ms[severity] * EBB_MS;
}

uint32_t m_budget_polls(int severity) {
    static const uint32_t polls[] = {0, 1024, 256, 64};
    return polls[severity];
}

/* A fifth is kept back for finalizers. The kernel keeps that in units of 1024 ns. */
uint64_t m_force_at(uint64_t now, uint64_t deadline) {
    if (deadline <= now) return deadline;
    return deadline - (deadline - now) / 5 / GRAIN_NS * GRAIN_NS;
}

void m_cap(const model *m, uint64_t own, uint64_t *end, uint64_t *force_at) {
    if (own == EBB_FOREVER || own < m->now) return;
    uint64_t own_end = own + m_budget_end(m, EBB_SEVERITY_URGENT) - m->now;
    if (own_end < *end) *end = own_end;
    if (m_force_at(own, own_end) < *force_at) *force_at = m_force_at(own, own_end);
}

/* ---- asking --------------------------------------------------------------------------------------- */

static void reroute(model *m, int t, uint64_t deadline) {
    m_task *x = &m->task[t];
    if (x->polling) {
        x->rewake = true;
    } else if (x->lane != EBB_LANE_CANCEL || m_due_sooner(m, t, deadline)) {
        m_dequeue(m, t);
        m_enqueue_cancelled(m, t, deadline);
    }
}

/* The first reason stands, a more severe one replaces it; the epoch rises with the severity. */
void m_request(model *m, int t, m_told told, uint32_t polls, uint64_t deadline) {
    m_task *x = &m->task[t];
    if (x->phase == EBB_TASK_COMPLETED) return;
    bool first = x->phase <= EBB_TASK_RUNNING;
    if (first) {
        x->phase = EBB_TASK_CANCEL_REQUESTED;
        x->stop = true;
    }
    if (told.severity > x->told.severity) {
        x->told = (m_told){told.kind, told.severity, (uint8_t)(x->told.epoch + 1)};
    }
    bool sets = first && !m->region[x->region].bounded;
    if (!x->returned && (sets || polls < x->polls)) x->polls = polls;
    reroute(m, t, deadline);
}

void m_overdue(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->phase == EBB_TASK_COMPLETED) return;
    if (x->returned) {
        m_wake(m, t);
    } else if (!x->forced) {
        x->forced = true;
        x->force_left = FORCE_POLLS;
        reroute(m, t, m_cleanup_deadline(m, t));
    }
}

void m_cancel_one(model *m, int t, ebb_cancel_kind kind) {
    m_task *x = &m->task[t];
    int severity = (int)ebb_cancel_kind_severity(kind);
    const m_region *r = &m->region[x->region];
    uint64_t end = m_budget_end(m, severity);
    if (r->bounded && r->deadline < end) end = r->deadline;
    uint64_t force_at = m_force_at(m->now, end);
    if (!x->own && m_is_armed(m, M_TASK, t)) m_cap(m, x->due, &end, &force_at);
    uint64_t old_end = x->own ? x->due + x->kept : EBB_FOREVER;
    if (!x->own || force_at < x->due || end < old_end) {
        if (old_end < end) end = old_end;
        if (x->own && x->due < force_at) force_at = x->due;
        m_disarm(m, M_TASK, t);
        x->due = force_at;
        x->kept = end > force_at ? (end - force_at) / GRAIN_NS * GRAIN_NS : 0;
        m_arm(m, M_TASK, t, force_at);
    }
    x->own = true;
    m_request(m, t, (m_told){(uint8_t)kind, (uint8_t)severity, 0}, m_budget_polls(severity),
              m_cleanup_deadline(m, t));
}

/* Its own deadline, or once it is cancelled by itself the end of a part of its budget. */
void m_task_due(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->own) {
        if (x->kept > 0) {
            x->due += x->kept;
            x->kept = 0;
            m_arm(m, M_TASK, t, x->due);
        }
        m_overdue(m, t);
    } else if (x->phase == EBB_TASK_CREATED) {
        m_dequeue(m, t);
        m_task_end(m, t, EBB_CANCELLED);
    } else {
        m_cancel_one(m, t, EBB_CANCEL_TIMEOUT);
    }
}

static bool cancellable(model *m, int t) {
    if (m->task[t].visible && m->task[t].phase != EBB_TASK_COMPLETED) return true;
    m->stats.stale_wakes++;
    return false;
}

void model_task_cancel(model *m, int task, ebb_cancel_kind kind) {
    if (!cancellable(m, task)) return;
    m_pass_deadlines(m, m->task[task].region);
    if (!cancellable(m, task)) return;
    const m_task *x = &m->task[task];
    if (!x->own && m_is_armed(m, M_TASK, task) && x->due <= m->now) m_task_due(m, task);
    if (cancellable(m, task)) m_cancel_one(m, task, kind);
}

/* From now on only the finalizers' part is left. */
static void end_own_budget(model *m, int t) {
    m_task *x = &m->task[t];
    const m_region *r = &m->region[x->region];
    if (x->own && x->kept == 0) return;
    uint64_t kept = x->own ? x->kept : r->deadline > r->force_at ? r->deadline - r->force_at : 0;
    uint64_t end = m_cleanup_deadline(m, t);
    if (end > m->now && end - m->now > kept) end = m->now + kept;
    m_disarm(m, M_TASK, t);
    m_arm(m, M_TASK, t, end);
    x->due = end;
    x->kept = 0;
    x->own = true;
}

void model_task_force(model *m, int task) {
    if (!cancellable(m, task)) return;
    if (m->task[task].told.kind == 0) m_cancel_one(m, task, EBB_CANCEL_BUDGET);
    end_own_budget(m, task);
    m_overdue(m, task);
}

ebb_status model_wake(model *m, int task) {
    if (!cancellable(m, task)) return EBB_ERR_STALE;
    m_wake(m, task);
    return EBB_OK;
}

/* ---- what a task asks ----------------------------------------------------------------------------- */

static bool is_cancelled(const m_task *x) {
    bool over = x->fin_forced || (x->forced && !x->in_finalizer);
    return x->told.kind != 0 && (x->mask == 0 || over);
}

bool m_is_overdue(const model *m, int who) {
    const m_task *x = &m->task[who];
    return who != 0 && (x->forced || x->fin_forced) && is_cancelled(x);
}

ebb_status model_checkpoint(model *m, int who) {
    m_task *x = &m->task[who];
    if (who == 0 || !is_cancelled(x)) return EBB_OK;
    if (x->phase == EBB_TASK_CANCEL_REQUESTED && !x->returned) x->phase = EBB_TASK_CANCELLING;
    return EBB_CANCELLED;
}

ebb_status model_mask(model *m, int who) {
    if (who == 0) return EBB_ERR_NOT_TASK;
    if (m->task[who].mask == EBB_MASK_MAX) return EBB_ERR_MASK_DEPTH;
    m->task[who].mask++;
    return EBB_OK;
}

ebb_status model_unmask(model *m, int who) {
    if (who == 0) return EBB_ERR_NOT_TASK;
    if (m->task[who].mask <= (m->task[who].in_finalizer ? 1 : 0)) return EBB_ERR_MASK_UNDERFLOW;
    m->task[who].mask--;
    return EBB_OK;
}

/* The task that waits in a join for this one; 0: none, or it has ended or left meanwhile. One that is in a lane,
 * or has joined several, may have left. */
static int joiner_of(const model *m, int task) {
    int t = m->task[task].waiter;
    const m_task *x = &m->task[t];
    if (t == 0 || !x->visible || x->phase == EBB_TASK_COMPLETED || !x->joining) return 0;
    bool knows = x->lane == EBB_LANE_NONE && x->joins != M_SEVERAL;
    return knows && x->joins != task ? 0 : t;
}

void m_joins(model *m, int who, int what) {
    m_task *x = &m->task[who];
    bool several = x->joining && x->joins != what;
    if (x->lane == EBB_LANE_NONE) x->joins = several ? M_SEVERAL : what;
    x->joining = true;
}

ebb_status model_task_join(model *m, int who, int task) {
    m_task *x = &m->task[task];
    if (!x->visible) return EBB_ERR_STALE;
    if (!x->keep || task == who) return EBB_ERR_INVALID;
    if (x->waiter != who && joiner_of(m, task) != 0) return EBB_ERR_BUSY;
    if (m_is_overdue(m, who)) return model_checkpoint(m, who);
    if (x->phase == EBB_TASK_COMPLETED) {
        if (x->abandoned) { /* stays for the region's report */
            x->keep = false;
        } else {
            m_drop(&m->region[x->region].kept, task);
            x->visible = false;
        }
        return x->status;
    }
    if (who == 0) return EBB_PENDING;
    if (model_checkpoint(m, who) != EBB_OK) {
        x->waiter = 0;
        return EBB_CANCELLED;
    }
    x->waiter = who;
    m_joins(m, who, task);
    return EBB_PENDING;
}

/* ---- obligations and finalizers ------------------------------------------------------------------- */

void m_log(model *m, int what) {
    if (m->log_n == M_LOG) abort();
    m->log[m->log_n++] = what;
}

static m_list *owes_of(model *m, const m_owed *d) {
    return d->task != 0 ? &m->task[d->task].owes : &m->region[d->region].owes;
}

static int new_owed(model *m, int task, int region, bool finalizer) {
    if (m->n_owed + 1 == M_OWED) abort();
    int d = ++m->n_owed;
    m->owed[d] = (m_owed){task, region, finalizer, true};
    m_push(owes_of(m, &m->owed[d]), d);
    return d;
}

static void owed_is_over(model *m, int d) {
    m->owed[d].open = false;
    m_drop(owes_of(m, &m->owed[d]), d);
    if (m->owed[d].finalizer) return;
    m->region[m->owed[d].region].obligations--;
    m->stats.obligations--;
}

ebb_status model_reserve(model *m, int who, int region, int *owed) {
    int task = region == 0 ? who : 0;
    *owed = 0;
    if (region == 0) region = who == 0 ? M_ROOT : m->task[who].region;
    if (!m->region[region].visible) return EBB_ERR_STALE;
    ebb_status st = task != 0 ? m_admit_own(m, who) : m_admit(m, who, region);
    if (st != EBB_OK) return st;
    *owed = new_owed(m, task, region, false);
    m->region[region].obligations++;
    m->stats.obligations++;
    return EBB_OK;
}

ebb_status model_resolve(model *m, int owed, bool abort) {
    if (!m->owed[owed].open) return EBB_ERR_RESOLVED;
    owed_is_over(m, owed);
    const m_owed *d = &m->owed[owed];
    const m_region *r = &m->region[d->region];
    if (d->task == 0 && r->owes.n == 0 && r->state == EBB_REGION_FINALIZING) m_sweep_later(m, d->region);
    if (abort) m_log(m, owed);
    return EBB_OK;
}

void m_leak(model *m, int owed) {
    m->region[m->owed[owed].region].leaked++;
    m->stats.leaks++;
    owed_is_over(m, owed);
    m_log(m, owed);
}

/* The task that will run a region's finalizers is made with the first of them. */
static int new_closer(model *m, int region) {
    int t = ++m->tasks;
    m->task[t] = (m_task){.visible = true,
                          .region = region,
                          .phase = EBB_TASK_CREATED,
                          .closer = true,
                          .polls = EBB_POLLS_UNBOUNDED};
    return t;
}

ebb_status model_defer(model *m, int who, int region, int *owed) {
    int task = region == 0 ? who : 0;
    *owed = 0;
    if (task != 0 && m->task[task].returned) return EBB_ERR_CLOSED;
    if (region == 0) region = who == 0 ? M_ROOT : m->task[who].region;
    m_region *r = &m->region[region];
    if (!r->visible) return EBB_ERR_STALE;
    ebb_status st = task == 0 ? m_admit(m, who, region) : EBB_OK;
    if (st != EBB_OK) return st;
    if (task == 0 && r->closer == 0) r->closer = new_closer(m, region);
    *owed = new_owed(m, task, region, true);
    return EBB_OK;
}

/* Last added first. */
int m_next_finalizer(const model *m, int t) {
    const m_list *l = m->task[t].closer ? &m->region[m->task[t].region].owes : &m->task[t].owes;
    for (int i = l->n; i-- > 0;) {
        if (m->owed[l->at[i]].finalizer) return l->at[i];
    }
    return 0;
}

/* ---- the end -------------------------------------------------------------------------------------- */

/* `told`: what its region hears. */
static void end(model *m, int t, ebb_status st, ebb_status told) {
    m_task *x = &m->task[t];
    m_region *r = &m->region[x->region];
    x->phase = EBB_TASK_COMPLETED;
    x->status = st;
    m->stats.ended++;
    m_swap_remove(&r->tasks, t);
    m_disarm(m, M_TASK, t);
    if (x->closer) r->closer = 0;
    if (joiner_of(m, t) != 0) m_wake(m, joiner_of(m, t));
    if (x->keep || x->abandoned) {
        m_push(&r->kept, t);
    } else {
        x->visible = false;
    }
    if (told != EBB_OK) m_region_failed(m, x->region, told);
    m_region_advance(m, x->region);
}

void m_task_end(model *m, int t, ebb_status st) {
    if (m->task[t].phase == EBB_TASK_FINALIZING && st != EBB_FAULTED) st = EBB_CANCELLED;
    end(m, t, st, st);
}

/* Only one that owes nothing, and is in no poll, mask or cancel. */
static ebb_status may_discard(const m_task *x) {
    if (x->told.kind != 0) return EBB_CANCELLED;
    if (x->returned || x->owes.n > 0 || x->scopes.n > 0) return EBB_ERR_OWES;
    return x->polling || x->mask > 0 ? EBB_ERR_BUSY : EBB_OK;
}

ebb_status model_discard(model *m, int task) {
    if (!cancellable(m, task)) return EBB_ERR_STALE;
    ebb_status st = may_discard(&m->task[task]);
    if (st != EBB_OK) return st;
    m_dequeue(m, task);
    end(m, task, EBB_DISCARDED, EBB_OK);
    return EBB_OK;
}

static void start_finalizer(model *m, int t, int owed) {
    m_task *x = &m->task[t];
    if (!x->in_finalizer) {
        x->in_finalizer = true;
        x->force_left = FORCE_POLLS;
        if (x->mask == 0) x->mask = 1;
    }
    if (x->fin_forced) x->force_left--;
    x->polling = true;
    x->joining = false;
    m->call = (m_call){M_FINALIZER, t, owed};
}

/* Regions, then finalizers one by one, then obligations. Stops where user code has to run. */
static void settle_on(model *m, int t) {
    m_task *x = &m->task[t];
    if (!x->in_finalizer && x->scopes.n > 0 && !m_scopes_join(m, t)) {
        m_rewoken(m, t);
        return;
    }
    int owed = m_next_finalizer(m, t);
    if (owed != 0) {
        start_finalizer(m, t, owed);
        return;
    }
    while (x->owes.n > 0) {
        int last = x->owes.at[x->owes.n - 1];
        if (x->abandoned) (void)model_resolve(m, last, true);
        else m_leak(m, last);
    }
    m_dequeue(m, t);
    m_task_end(m, t, x->status);
}

static void settle(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->told.kind != 0 && m->now >= m_cleanup_deadline(m, t)) x->fin_forced = true;
    settle_on(m, t);
}

static void finalizer_over(model *m, int t, int owed) {
    m->task[t].in_finalizer = false;
    m->task[t].joining = false;
    m->task[t].force_left = FORCE_POLLS;
    owed_is_over(m, owed);
    settle_on(m, t);
}

static void finalizer_returned(model *m, int t, int owed, ebb_status st) {
    m_task *x = &m->task[t];
    if (st != EBB_PENDING) {
        bool fails = st != EBB_OK && st != EBB_CANCELLED;
        if (st == EBB_FAULTED || (fails && x->status == EBB_OK)) x->status = st;
        finalizer_over(m, t, owed);
    } else if (x->fin_forced && x->force_left == 0) {
        m->region[x->region].abandoned++;
        m->stats.abandoned++;
        finalizer_over(m, t, owed);
    } else {
        if (x->fin_forced) x->rewake = true;
        m_rewoken(m, t);
    }
}

static void body_over(model *m, int t, ebb_status st) {
    m_task *x = &m->task[t];
    if (st != EBB_FAULTED && x->phase == EBB_TASK_CANCELLING && !x->abandoned) x->phase = EBB_TASK_FINALIZING;
    x->returned = true;
    x->joining = false;
    x->status = st;
    settle(m, t);
}

static void abandon(model *m, int t) {
    m->task[t].abandoned = true;
    m->region[m->task[t].region].abandoned++;
    m->stats.abandoned++;
    body_over(m, t, EBB_CANCELLED);
}

/* ---- one poll ------------------------------------------------------------------------------------- */

static void charge(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->forced) {
        x->force_left--;
        return;
    }
    bool counts = x->phase == EBB_TASK_CANCELLING || x->told.kind == 0;
    if (x->polls == EBB_POLLS_UNBOUNDED || !counts) return;
    if (x->polls > 0) {
        x->polls--;
    } else if (x->told.kind != 0) {
        m_overdue(m, t);
        x->force_left--;
    } else {
        m_cancel_one(m, t, EBB_CANCEL_BUDGET);
    }
}

void m_poll(model *m, int t) {
    m_task *x = &m->task[t];
    if (x->phase == EBB_TASK_CREATED) x->phase = EBB_TASK_RUNNING;
    if (x->closer && !x->returned) { /* its body is nothing, its finalizers are the region's */
        body_over(m, t, EBB_OK);
        return;
    }
    if (x->returned) {
        settle(m, t);
        return;
    }
    x->polling = true;
    x->joining = false;
    charge(m, t);
    m->call = (m_call){M_POLL, t, 0};
}

static void parked(model *m, int t) {
    m_task *x = &m->task[t];
    if (!x->forced) {
        m_rewoken(m, t);
    } else if (x->force_left == 0) {
        abandon(m, t);
    } else {
        x->rewake = false;
        m_enqueue(m, t);
    }
}

void model_returned(model *m, ebb_status st) {
    m_call c = m->call;
    m->call = (m_call){0};
    m->task[c.task].polling = false;
    if (c.what == M_FINALIZER) {
        finalizer_returned(m, c.task, c.owed, st);
    } else if (st == EBB_PENDING) {
        parked(m, c.task);
    } else {
        body_over(m, c.task, st);
    }
    while (m->call.what == M_NOTHING && m->sweep.n > 0) m_sweep_one(m);
}
