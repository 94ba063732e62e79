/* The model's regions: opening, the three verbs over a subtree, the way to Closed. */
#include "tests/kernel/model/model.h"

#include <stdlib.h>
#include <string.h>

typedef enum verb { CLOSE, CANCEL, FORCE, LATE } verb;

/* What the region that a verb was said to is told; those below are told of their parents. */
typedef struct verdict {
    m_told told;
    uint64_t deadline, force_at;
    uint32_t polls;
    uint8_t priority;
} verdict;

static int new_region(model *m) {
    if (m->regions + 1 == M_REGIONS) abort();
    int r = ++m->regions;
    m->region[r] = (m_region){.visible = true,
                              .state = EBB_REGION_OPEN,
                              .deadline = EBB_FOREVER,
                              .force_at = EBB_FOREVER,
                              .polls = EBB_POLLS_UNBOUNDED};
    m->stats.regions++;
    return r;
}

void model_init(model *m, uint64_t now) {
    memset(m, 0, sizeof *m);
    m->now = now;
    m->tick = now / EBB_MS;
    m->bucket_base = now >> 27;
    m->region[new_region(m)].policy = EBB_FAIL_COLLECT;
}

/* ---- admission ------------------------------------------------------------------------------------ */

/* The outermost unit around an open region that is still open when something further out is not; 0: nothing
 * around it is closed. What is around a cleanup scope does not matter to it. */
static int gate_of(const model *m, int region) {
    int gate = 0;
    for (int r = region;; r = m->region[r].parent) {
        if (m->region[r].state != EBB_REGION_OPEN) return gate;
        if (m->region[r].unit) gate = r;
        if (r == M_ROOT || m->region[r].cleanup) return 0;
    }
}

bool m_is_stopping(const model *m, int region) {
    return m->region[region].state == EBB_REGION_OPEN && gate_of(m, region) != 0;
}

static bool is_inside(const model *m, int who, int top) {
    int r = who == 0 ? 0 : m->task[who].region;
    while (r != 0 && r != top) r = m->region[r].parent;
    return r == top;
}

static ebb_status refusal(model *m, int who) {
    if (who == 0 || m->task[who].told.kind == 0) return EBB_ERR_CLOSED;
    (void)model_checkpoint(m, who);
    return EBB_CANCELLED;
}

ebb_status m_admit(model *m, int who, int region) {
    if (m->region[region].state != EBB_REGION_OPEN) return refusal(m, who);
    int gate = gate_of(m, region);
    return gate == 0 || is_inside(m, who, gate) ? EBB_OK : refusal(m, who);
}

ebb_status m_admit_own(model *m, int who) {
    if (who == 0) return m_admit(m, 0, M_ROOT);
    return model_checkpoint(m, who);
}

/* Nobody is left who may add to it. */
static bool ends_by_itself(const model *m, int region) {
    const m_region *r = &m->region[region];
    if (r->joining) return true;
    int gate = gate_of(m, region);
    return gate != 0 && (gate == region || r->owner == 0 || !is_inside(m, r->owner, gate));
}

/* ---- new work ------------------------------------------------------------------------------------- */

ebb_status model_spawn(model *m, int who, int region, const ebb_task_opts *o, int *task) {
    m_region *r = &m->region[region];
    *task = 0;
    if (!r->visible) return EBB_ERR_STALE;
    ebb_status st = m_admit(m, who, region);
    if (st != EBB_OK) return st;
    if (m->tasks + 1 == M_TASKS) abort();
    int t = *task = ++m->tasks;
    m->task[t] = (m_task){.visible = true,
                          .region = region,
                          .phase = EBB_TASK_CREATED,
                          .keep = o->keep,
                          .polls = o->polls != 0 && o->polls < r->polls ? o->polls : r->polls,
                          .priority = o->priority > r->priority ? o->priority : r->priority,
                          .stop = m_is_stopping(m, region),
                          .timed = r->deadline != EBB_FOREVER || o->deadline != 0};
    m_push(&r->tasks, t);
    if (o->deadline != 0) {
        m->task[t].has_due = true;
        m->task[t].due = o->deadline;
        m_arm(m, M_TASK, t, o->deadline);
    }
    m->stats.spawned++;
    m_enqueue(m, t);
    return EBB_OK;
}

static bool is_cleaning(const model *m, int who) {
    return who != 0 && (m->task[who].told.kind != 0 || m->task[who].in_finalizer);
}

static ebb_status may_open(model *m, int who, int parent, bool cleanup) {
    int home = who == 0 ? M_ROOT : m->task[who].region;
    const m_region *p = &m->region[parent];
    if (!p->visible) return EBB_ERR_STALE;
    if (cleanup && !is_cleaning(m, who)) return EBB_ERR_NOT_CLEANING;
    if (cleanup && parent == home && p->state != EBB_REGION_CLOSED) return EBB_OK;
    return m_admit(m, who, parent);
}

ebb_status model_open(model *m, int who, int parent, const ebb_region_opts *o, int *region) {
    *region = 0;
    if (parent == 0) parent = who == 0 ? M_ROOT : m->task[who].region;
    ebb_status st = may_open(m, who, parent, o->cleanup);
    if (st != EBB_OK) return st;
    const m_region *p = &m->region[parent];
    m_region *r = &m->region[ *region = new_region(m)];
    r->parent = parent;
    r->policy = o->policy;
    r->priority = o->priority > p->priority ? o->priority : p->priority;
    r->cleanup = o->cleanup;
    r->unit = o->unit;
    r->bounded = o->cleanup || p->bounded;
    r->has_note = o->on_closed != NULL;
    if (o->deadline != 0) r->deadline = o->deadline;
    uint64_t left = o->cleanup ? m_cleanup_deadline(m, who) : p->deadline;
    if (left < r->deadline) r->deadline = left;
    if (!o->cleanup) r->polls = p->polls;
    else if (m->task[who].told.kind != 0 && !m->task[who].returned) r->polls = m->task[who].polls;
    if (o->deadline != 0) m_arm(m, M_REGION, *region, r->deadline);
    m_push(&m->region[parent].children, *region);
    r->owner = who;
    if (who != 0) m_push(&m->task[who].scopes, *region);
    return EBB_OK;
}

/* ---- the way to Closed ---------------------------------------------------------------------------- */

void m_sweep_later(model *m, int r) {
    if (m->region[r].swept) return;
    m->region[r].swept = true;
    m_push(&m->sweep, r);
}

static void release(model *m, int r) {
    m_region *x = &m->region[r];
    for (int i = 0; i < x->kept.n; i++) m->task[x->kept.at[i]].visible = false;
    x->kept.n = 0;
    if (x->owner != 0) m_drop(&m->task[x->owner].scopes, r);
    x->owner = 0;
    x->visible = false;
}

static bool is_failure(ebb_status st) {
    return st != EBB_OK && st != EBB_CANCELLED;
}

/* A failure of what a task has left open is its own, if it has none. */
static void fail_owner(model *m, int r) {
    m_task *x = &m->task[m->region[r].owner];
    ebb_status st = m->region[r].status;
    if (x->status == EBB_OK && is_failure(st)) x->status = st == EBB_FAULTED ? EBB_FAILED : st;
}

static void became_closed(model *m, int r) {
    m_region *x = &m->region[r];
    bool failed = is_failure(x->status);
    for (int i = x->closed.n; i-- > 0;) {
        int c = x->closed.at[i];
        if (!failed && is_failure(m->region[c].status)) x->status = m->region[c].status;
        release(m, c);
    }
    x->closed.n = 0;
    x->state = EBB_REGION_CLOSED;
    m->stats.regions--;
    m_disarm(m, M_REGION, r);
    if (r == M_ROOT) return;
    if (x->left) fail_owner(m, r);
    if (x->owner != 0 && (m->task[x->owner].joining || m->task[x->owner].returned)) m_wake(m, x->owner);
    m_swap_remove(&m->region[x->parent].children, r);
    m_push(&m->region[x->parent].closed, r);
}

/* The region's finalizers run as a task of its own. */
static void start_closer(model *m, int r) {
    m_region *x = &m->region[r];
    m_push(&x->tasks, x->closer);
    m->stats.spawned++;
    if (x->told.kind != 0) {
        m_request(m, x->closer, x->told, x->polls, x->deadline);
    } else {
        m_enqueue(m, x->closer);
    }
}

static bool is_quiet(const m_region *r) {
    return r->tasks.n == 0 && r->children.n == 0;
}

/* What is reserved in it keeps it until that is resolved, or it is forced. */
static bool is_held(const m_region *r) {
    return r->owes.n > 0 && !r->forced;
}

/* As far as it goes by itself. True if it has closed now. */
static bool advance_one(model *m, int r) {
    m_region *x = &m->region[r];
    if (x->state == EBB_REGION_OPEN && is_quiet(x) && ends_by_itself(m, r)) x->state = EBB_REGION_CLOSING;
    if (x->state == EBB_REGION_CLOSING && !is_quiet(x)) x->state = EBB_REGION_DRAINING;
    if (x->state == EBB_REGION_OPEN || x->state == EBB_REGION_CLOSED || !is_quiet(x)) return false;
    x->state = EBB_REGION_FINALIZING;
    if (x->closer != 0) {
        start_closer(m, r);
    } else if (is_held(x)) {
        return false;
    } else if (x->owes.n != 0 || x->has_note) {
        m_sweep_later(m, r); /* they have leaked, and their hooks are for the pump */
    } else {
        became_closed(m, r);
        return true;
    }
    return false;
}

void m_region_advance(model *m, int r) {
    if (advance_one(m, r) && r != M_ROOT) m_region_advance(m, m->region[r].parent);
}

void m_sweep_one(model *m) {
    int r = m->sweep.at[0];
    m_region *x = &m->region[r];
    m_drop(&m->sweep, r);
    x->swept = false;
    if (!x->visible) return;
    if (x->state == EBB_REGION_FINALIZING && is_quiet(x) && x->closer == 0 && !is_held(x)) {
        while (x->owes.n > 0) m_leak(m, x->owes.at[x->owes.n - 1]);
        if (x->has_note) {
            became_closed(m, r);
            m_log(m, -r);
            m_drop(&m->region[x->parent].closed, r);
            release(m, r);
            m_region_advance(m, x->parent);
            return;
        }
    }
    m_region_advance(m, r);
}

void m_region_failed(model *m, int r, ebb_status st) {
    m_region *x = &m->region[r];
    if (st == EBB_CANCELLED) {
        if (x->status == EBB_OK) x->status = EBB_CANCELLED;
        return;
    }
    if (x->status != EBB_OK && x->status != EBB_CANCELLED) return;
    x->status = st;
    if (x->policy == EBB_FAIL_FAST && x->state != EBB_REGION_FINALIZING) {
        m_cancel_tree(m, r, EBB_CANCEL_SIBLING_FAILED, NULL);
    }
}

/* ---- joins ---------------------------------------------------------------------------------------- */

ebb_status model_region_join(model *m, int who, int region) {
    m_region *r = &m->region[region];
    if (!r->visible) return EBB_ERR_STALE;
    if (r->owner != who) return EBB_ERR_BUSY;
    if (r->has_note || region == M_ROOT) return EBB_ERR_INVALID;
    if (m_is_overdue(m, who)) return model_checkpoint(m, who);
    r->joining = true;
    bool closes = advance_one(m, region);
    if (r->state == EBB_REGION_CLOSED) {
        m_drop(&m->region[r->parent].closed, region);
        release(m, region);
        if (closes) m_region_advance(m, r->parent);
        return r->status;
    }
    if (who == 0) return EBB_PENDING;
    if (model_checkpoint(m, who) != EBB_OK) return EBB_CANCELLED;
    m_joins(m, who, 0);
    return EBB_PENDING;
}

/* What a task that has returned still has open is cancelled (forced if there is no time left) and
 * joined, the last opened first. True: nothing is left. */
bool m_scopes_join(model *m, int t) {
    m_task *x = &m->task[t];
    m_list mine = x->scopes;
    for (int i = mine.n; i-- > 0;) {
        int s = mine.at[i];
        m_region *r = &m->region[s];
        if (!r->visible || r->state == EBB_REGION_CLOSED) continue;
        r->left = true;
        if (x->abandoned || x->fin_forced) {
            if (!r->forced) m_force_tree(m, s);
        } else if (r->told.kind == 0) {
            m_cancel_tree(m, s, EBB_CANCEL_USER, NULL);
        }
    }
    bool all = true;
    mine = x->scopes;
    for (int i = 0; i < mine.n; i++) {
        m_region *r = &m->region[mine.at[i]];
        if (r->state != EBB_REGION_CLOSED) {
            all = false;
        } else {
            fail_owner(m, mine.at[i]);
            m_drop(&m->region[r->parent].closed, mine.at[i]);
            release(m, mine.at[i]);
        }
    }
    if (!all) return false;
    while (x->scopes.n > 0) m->region[x->scopes.at[--x->scopes.n]].owner = 0;
    return true;
}

/* ---- the verbs ------------------------------------------------------------------------------------ */

static void tell(m_region *r, const verdict *v) {
    bool first = r->told.kind == 0;
    if (v->told.severity > r->told.severity) {
        r->told = (m_told){v->told.kind, v->told.severity, (uint8_t)(r->told.epoch + 1)};
    }
    bool sets = first && !r->bounded; /* a cleanup scope has a budget from the start */
    if (sets || v->deadline < r->deadline) r->deadline = v->deadline;
    if (sets || v->force_at < r->force_at) r->force_at = v->force_at;
    if (sets || v->polls < r->polls) r->polls = v->polls;
    if (v->priority > r->priority) r->priority = v->priority;
}

static verdict passed_on(const m_region *parent) {
    return (verdict){{EBB_CANCEL_PARENT, parent->told.severity, 0},
                     parent->deadline,
                     parent->force_at,
                     parent->polls,
                     parent->priority};
}

static void force_region(model *m, m_region *r) {
    if (r->forced) return;
    uint64_t kept = r->deadline > r->force_at ? r->deadline - r->force_at : 0;
    r->forced = true;
    if (m->now < r->force_at) r->force_at = m->now;
    if (m->now + kept < r->deadline) r->deadline = m->now + kept;
}

/* The kernel asks the last of a region's tasks first. `again`: a close from above had left it open before. */
static void tell_tasks(model *m, int r, verb what, bool again) {
    m_list tasks = m->region[r].tasks;
    for (int i = tasks.n; i-- > 0;) {
        int t = tasks.at[i];
        m_region *x = &m->region[r];
        if (what == CLOSE && (!m->task[t].stop || again)) {
            m->task[t].stop = true;
            m_wake(m, t);
        }
        if (what == CANCEL || (what == FORCE && m->task[t].told.kind == 0)) {
            m_request(m, t, x->told, x->polls, x->deadline);
        }
        if (what == FORCE || what == LATE) m_overdue(m, t);
    }
}

static void set_timer(model *m, int r, uint64_t due) {
    m_disarm(m, M_REGION, r);
    if (due != EBB_FOREVER) m_arm(m, M_REGION, r, due);
}

static void visit(model *m, int at, verb what, const verdict *v, bool top, bool stopping) {
    m_region *r = &m->region[at];
    const m_region *parent = &m->region[r->parent];
    if (what == LATE && !r->forced) what = FORCE;             /* a cleanup scope that was opened since */
    bool shuts = top || what != CLOSE || gate_of(m, at) == 0; /* a unit stays open, and what is in it */
    if (what != LATE && r->state == EBB_REGION_OPEN && shuts) r->state = EBB_REGION_CLOSING;
    if (what == CANCEL || (what == FORCE && r->told.kind == 0)) {
        verdict of_parent = passed_on(parent);
        tell(r, top ? v : &of_parent);
    }
    if (what == FORCE) force_region(m, r);
    if (!top && (what == FORCE || what == LATE) && parent->deadline < r->deadline)
        r->deadline = parent->deadline;
    if (top && what == CANCEL) set_timer(m, at, r->forced ? r->deadline : r->force_at);
    if (what == FORCE && (top || m_is_armed(m, M_REGION, at))) set_timer(m, at, r->deadline);
    tell_tasks(m, at, what, stopping && r->state != EBB_REGION_OPEN);
    if (!is_quiet(r)) {
        if (r->state == EBB_REGION_CLOSING) r->state = EBB_REGION_DRAINING;
    } else if (top) {
        m_region_advance(m, at);
    } else {
        m_sweep_later(m, at);
    }
}

/* Parents before children, level by level. Cleanup scopes are only reached by force. */
static void walk(model *m, int top, verb what, const verdict *v) {
    m_list todo = {0};
    bool stopping[M_MEMBERS];
    m_push(&todo, top);
    for (int i = 0; i < todo.n; i++) {
        const m_list *children = &m->region[todo.at[i]].children;
        stopping[i] = m_is_stopping(m, todo.at[i]);
        for (int k = 0; k < children->n; k++) {
            if (m->region[children->at[k]].cleanup && (what == CLOSE || what == CANCEL)) continue;
            m_push(&todo, children->at[k]);
        }
    }
    for (int i = 0; i < todo.n; i++) visit(m, todo.at[i], what, v, i == 0, stopping[i]);
}

static verdict judge(const model *m, int r, ebb_cancel_kind kind, const ebb_budget *budget) {
    int severity = (int)ebb_cancel_kind_severity(kind), owner = m->region[r].owner;
    ebb_budget b = budget != NULL ? *budget
                                  : (ebb_budget){m_budget_end(m, severity), m_budget_polls(severity),
                                                 m->region[r].priority};
    /* It goes with its task, so it has no more than that one has left. */
    if (owner != 0 && m_cleanup_deadline(m, owner) < b.deadline) b.deadline = m_cleanup_deadline(m, owner);
    if (m->region[r].bounded && m->region[r].deadline < b.deadline) b.deadline = m->region[r].deadline;
    uint64_t force_at = m_force_at(m->now, b.deadline);
    if (m->region[r].told.kind == 0) m_cap(m, m->region[r].deadline, &b.deadline, &force_at);
    return (verdict){{(uint8_t)kind, (uint8_t)severity, 0}, b.deadline, force_at, b.polls, b.priority};
}

void m_cancel_tree(model *m, int r, ebb_cancel_kind kind, const ebb_budget *budget) {
    verdict v = judge(m, r, kind, budget);
    walk(m, r, CANCEL, &v);
}

void m_force_tree(model *m, int r) {
    verdict v = judge(m, r, EBB_CANCEL_BUDGET, NULL);
    walk(m, r, FORCE, &v);
}

/* Its own deadline; once told, the end of the tasks' part of the budget; then that of all of it. */
void m_region_due(model *m, int r) {
    m_region *x = &m->region[r];
    if (x->forced && m->now < x->deadline) {
        set_timer(m, r, x->deadline);
    } else if (x->forced) {
        walk(m, r, LATE, NULL);
    } else if (x->told.kind != 0 && m->now >= x->force_at) {
        m_force_tree(m, r);
    } else {
        m_cancel_tree(m, r, EBB_CANCEL_TIMEOUT, NULL);
    }
}

static bool reachable(model *m, int r) {
    if (m->region[r].visible && m->region[r].state != EBB_REGION_CLOSED) return true;
    m->stats.stale_wakes++;
    return false;
}

void model_close(model *m, int region) {
    if (reachable(m, region)) walk(m, region, CLOSE, NULL);
}

/* A deadline that has passed and was not acted on yet comes before any cancel: the outermost one. */
void m_pass_deadlines(model *m, int region) {
    int top = 0;
    if (m->region[region].told.kind != 0 || m->region[region].deadline > m->now) return;
    for (int r = region; r != 0; r = r == M_ROOT || m->region[r].cleanup ? 0 : m->region[r].parent) {
        const m_region *x = &m->region[r];
        if (x->told.kind == 0 && x->deadline <= m->now && m_is_armed(m, M_REGION, r)) top = r;
    }
    if (top != 0) m_region_due(m, top);
}

void model_cancel(model *m, int region, ebb_cancel_kind kind, const ebb_budget *budget) {
    if (!reachable(m, region)) return;
    m_pass_deadlines(m, region);
    if (reachable(m, region)) m_cancel_tree(m, region, kind, budget);
}

void model_force(model *m, int region) {
    if (reachable(m, region)) m_force_tree(m, region);
}
