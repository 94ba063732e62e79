/* Close, cancel and force: each walks the subtree once, breadth first, parents before children. The regions still
 * to visit are chained through their own records, so the walk needs neither a stack nor memory. No user code runs
 * here: it is queued for the pump. */
#include "kernel/cascade.h"

#include "kernel/admit.h"
#include "kernel/clock.h"
#include "kernel/lane.h"
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"

typedef enum verb { CLOSE, CANCEL, FORCE, LATE } verb;

/* A cancel request to a region: its reason and its budget. */
typedef struct request {
    uint8_t kind, severity;
    uint64_t origin, sequence;
    const char *message;
    uint64_t deadline, force_at;
    uint32_t polls;
    uint8_t priority;
} request;

void ebb__region_arm(ebb_runtime *rt, ebb__region *r, uint64_t at) {
    uint32_t ref = ebb__wheel_ref(EBB__W_REGION, r->index);
    assert(r->state != EBB_REGION_CLOSED);
    ebb__wheel_disarm(&rt->wheel, ref);
    if (at == EBB_FOREVER) return;
    ebb__wheel_arm(&rt->wheel, ref, at);
    r->flags |= R_NODE;
}

/* The first reason stays unless a stronger one replaces it. The budget is the tightest of all requests. `asker`:
 * the task that called the verb; 0: the host or the clock. */
static void request_region(ebb_runtime *rt, ebb__region *r, const request *req, uint64_t asker) {
    assert(req->severity >= EBB_SEVERITY_POLITE && req->severity <= EBB_SEVERITY_FORCED);
    uint8_t severity = ebb__request_severity(r->request), epoch = ebb__request_epoch(r->request);
    bool first = r->request == 0;
    if (first || req->severity > severity) {
        r->request =
            ebb__request_pack(req->kind, req->severity, (uint8_t)(epoch + (req->severity > severity)));
        r->origin = req->origin;
        r->sequence = req->sequence;
        if (req->message != NULL || !first) ebb__message_copy(ebb__cold_of(r)->message, req->message);
    }
    bool sets = first && !(r->flags & R_BOUNDED);
    uint64_t end = first ? r->deadline : r->cleanup_end;
    if (sets || req->deadline < end) r->cleanup_end = req->deadline;
    if (sets || req->force_at < r->force_at) r->force_at = req->force_at;
    if (sets || req->polls < r->polls) r->polls = req->polls;
    if (req->priority > r->priority) r->priority = req->priority;
    bool parent = req->kind == EBB_CANCEL_PARENT;
    ebb__emit_region(rt, EBB_EV_REGION_CANCELLED, r, asker, r->polls, r->cleanup_end);
    if (!parent) ebb__emit_text(rt, ebb__cold_of(r)->message);
}

/* The request that a child gets when its parent is cancelled. */
static request request_of_parent(const ebb_runtime *rt, const ebb__region *parent) {
    return (request){.kind = EBB_CANCEL_PARENT,
                     .severity = ebb__request_severity(parent->request),
                     .origin = ebb__region_id(rt, parent),
                     .sequence = parent->sequence,
                     .deadline = parent->cleanup_end,
                     .force_at = parent->force_at,
                     .polls = parent->polls,
                     .priority = parent->priority};
}

/* The common case: the child has no request yet. */
EBB__INLINE void request_child(ebb_runtime *rt, ebb__region *r, const ebb__region *parent, uint64_t asker) {
    assert(r->request == 0 && parent->request != 0);
    r->request = ebb__request_pack(EBB_CANCEL_PARENT, ebb__request_severity(parent->request), 1);
    r->origin = ebb__region_id(rt, parent);
    r->sequence = parent->sequence;
    r->cleanup_end = parent->cleanup_end;
    r->force_at = parent->force_at;
    r->polls = parent->polls;
    if (parent->priority > r->priority) r->priority = parent->priority;
    ebb__emit_region(rt, EBB_EV_REGION_CANCELLED, r, asker, r->polls, r->cleanup_end);
}

static void overdue_region(ebb_runtime *rt, ebb__region *r) {
    if (r->flags & R_FORCED) return;
    uint64_t kept = ebb__region_kept(r);
    r->flags |= R_FORCED;
    if (rt->now < r->force_at) r->force_at = rt->now;
    if (kept < r->cleanup_end - rt->now && r->cleanup_end > rt->now) r->cleanup_end = rt->now + kept;
    ebb__emit_region(rt, EBB_EV_REGION_FORCED, r, 0, 0, 0);
}

/* Nothing in a forced region has more time than the region, not even a cleanup scope with a budget of its own. */
static void end_with_parent(const ebb_runtime *rt, ebb__region *r) {
    uint64_t end = ebb__region_at(rt, r->parent)->cleanup_end;
    if (end < r->cleanup_end) r->cleanup_end = end;
}

/* `again`: the region had been stopping and still open inside its unit; it is closed now. */
static void stop_task(ebb_runtime *rt, ebb__task *t, bool again) {
    if (t->cx.signal & EBB_CX_STOP && !again) return;
    t->cx.signal |= EBB_CX_STOP;
    ebb__wake(rt, t);
}

/* Most tasks are in this state when their region is cancelled, and need no further checks. */
EBB__INLINE bool plainly_parked(const ebb__task *t) {
    return t->queue == EBB_LANE_NONE && t->phase == EBB_TASK_RUNNING && t->mask == 0 &&
           !(t->flags & (F_POLLING | F_RETURNED | F_CLOSER));
}

/* A task in any other state. */
__attribute__((noinline)) static void request_other(ebb_runtime *rt, const ebb__region *r, ebb__task *t) {
    ebb__task_request(rt, t, ebb__request_kind(r->request), ebb__request_severity(r->request), r->polls,
                      r->cleanup_end);
}

enum { AHEAD = 16 };

/* Tasks run with at least the priority of their region. */
__attribute__((noinline)) static void raise_priorities(ebb_runtime *rt, ebb__region *r) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    for (uint32_t i = 0; i < r->tasks.n; i++) {
        ebb__cold *c = ebb__cold_at(rt, tasks[i]);
        if (r->priority > c->priority) c->priority = r->priority;
    }
}

/* Requests all tasks of a cancelled region to stop, the last first. They are polled and end in that order, so the
 * task that ends is always the last in the region's array and no other has to move into its place. */
EBB__INLINE void request_tasks(ebb_runtime *rt, ebb__region *r, bool bounded) {
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    assert(r->request != 0);
    uint32_t bucket = ebb__bucket_of(rt, r->cleanup_end);
    ebb__queue *q = &rt->queue[bucket];
    if (r->priority > 0) raise_priorities(rt, r);
    for (uint32_t i = r->tasks.n; i-- > 0;) {
        if (i >= AHEAD) __builtin_prefetch(ebb__task_at(rt, tasks[i - AHEAD]), 1);
        ebb__task *t = ebb__task_at(rt, tasks[i]);
        if (EBB__UNLIKELY(bounded || !plainly_parked(t))) {
            request_other(rt, r, t);
            continue;
        }
        rt->cancel_count++;
        rt->cancel_buckets |= UINT64_C(1) << bucket;
        t->polls_left = r->polls;
        t->cx.signal = EBB_CX_STOP | EBB_CX_CANCEL;
        t->qpos = ebb__run_queue_push(&rt->run_queues, q, t->index);
        t->phase = EBB_TASK_CANCEL_REQUESTED;
        t->request = (uint8_t)((r->request & ~3u) | 1);
        t->queue = (uint8_t)(EBB_LANE_CANCEL | bucket << 2);
        ebb__emit_task(rt, EBB_EV_CANCEL_REQUESTED, t, r->polls, r->cleanup_end);
    }
}

/* The last first, as in request_tasks. */
static void visit_tasks(ebb_runtime *rt, ebb__region *r, verb what, bool again) {
    uint32_t *tasks = ebb__u32s_data(&r->tasks);
    uint8_t kind = ebb__request_kind(r->request), severity = ebb__request_severity(r->request);
    if (what == CANCEL) {
        request_tasks(rt, r, (r->flags & R_BOUNDED) != 0);
        return;
    }
    for (uint32_t i = r->tasks.n; i-- > 0;) {
        ebb__task *t = ebb__task_at(rt, tasks[i]);
        switch (what) {
        case CLOSE: stop_task(rt, t, again); break;
        case CANCEL: break;
        case FORCE:
            if (t->request == 0) ebb__task_request(rt, t, kind, severity, r->polls, r->cleanup_end);
            ebb__task_overdue(rt, t);
            break;
        case LATE: ebb__task_overdue(rt, t); break;
        }
    }
}

/* `top`: the region that the verb was called for. It gets the request `req`, and its timer covers all regions below.
 * The others get the request of their parent. */
__attribute__((noinline)) static void visit(ebb_runtime *rt, ebb__region *r, verb what, const request *req,
                                            bool top) {
    if (what == LATE && !(r->flags & R_FORCED)) what = FORCE; /* a cleanup scope, opened after the force */
    bool stopping = r->state == EBB_REGION_OPEN && r->flags & R_STOPPING;
    if (r->state == EBB_REGION_OPEN && what != LATE) {
        if (what == CLOSE && !top) ebb__region_stop(rt, r);
        else ebb__region_shut(rt, r);
    }
    if (what == CANCEL || (what == FORCE && r->request == 0)) {
        uint64_t asker = req == NULL ? 0 : req->origin;
        if (top) {
            request_region(rt, r, req, asker);
        } else if (r->request == 0 && !(r->flags & R_BOUNDED)) {
            request_child(rt, r, ebb__region_at(rt, r->parent), asker);
        } else {
            request of_parent = request_of_parent(rt, ebb__region_at(rt, r->parent));
            request_region(rt, r, &of_parent, asker);
        }
    }
    if (what == FORCE) overdue_region(rt, r);
    if (!top && (what == FORCE || what == LATE)) end_with_parent(rt, r);
    if (top && what == CANCEL) ebb__region_arm(rt, r, r->flags & R_FORCED ? r->cleanup_end : r->force_at);
    if (what == FORCE && (top || ebb__wheel_armed(&rt->wheel, ebb__wheel_ref(EBB__W_REGION, r->index)))) {
        ebb__region_arm(rt, r, r->cleanup_end); /* a region below that was cancelled before has a timer too */
    }
    visit_tasks(rt, r, what, stopping && r->state != EBB_REGION_OPEN);
    if (EBB__UNLIKELY(r->flags & R_SUPERVISED)) ebb__wake(rt, ebb__task_at(rt, ebb__cold_of(r)->supervisor));
    if (r->tasks.n > 0 || r->children.n > 0) {
        if (r->state == EBB_REGION_CLOSING) ebb__region_drain(rt, r);
    } else if (top) {
        ebb__region_advance(rt, r);
    } else {
        ebb__sweep_later(rt, r); /* not now: a closed region is freed, and the walk still needs the record */
    }
}

/* Most regions are in this state when one around them is cancelled: open and without a request. */
EBB__INLINE bool is_fresh(const ebb__region *r) {
    return r->state == EBB_REGION_OPEN && r->request == 0 && !(r->flags & (R_BOUNDED | R_SUPERVISED));
}

EBB__INLINE void cancel_fresh(ebb_runtime *rt, ebb__region *r, uint64_t asker) {
    ebb__region_shut(rt, r);
    request_child(rt, r, ebb__region_at(rt, r->parent), asker);
    if (r->tasks.n > 0) request_tasks(rt, r, false);
    if (r->tasks.n > 0 || r->children.n > 0) ebb__region_drain(rt, r);
    else ebb__sweep_later(rt, r);
}

static void walk(ebb_runtime *rt, ebb__region *root, verb what, const request *req) {
    ebb__region *tail = root;
    assert(root->state != 0 && root->state != EBB_REGION_CLOSED);
    root->walk_next = 0;
    for (uint32_t at = root->index; at != 0;) {
        ebb__region *r = ebb__region_at(rt, at);
        const uint32_t *children = ebb__u32s_data(&r->children);
        rt->visits++;
        ebb__prefetch_region(rt, at + EBB__REGIONS_AHEAD, true);
        for (uint32_t i = 0; i < r->children.n; i++) {
            ebb__region *c = ebb__region_at(rt, children[i]);
            if (c->flags & R_CLEANUP && what != FORCE && what != LATE) continue;
            if (EBB__UNLIKELY(c->flags & R_OPERATOR && r->flags & R_APART && what == FORCE)) continue;
            c->walk_next = 0;
            tail->walk_next = c->index;
            tail = c;
        }
        at = r->walk_next;
        if (what == CANCEL && r != root && is_fresh(r)) cancel_fresh(rt, r, req->origin);
        else visit(rt, r, what, req, r == root);
    }
}

/* ---- cancel -------------------------------------------------------------------------------------------- */

static request new_request(ebb_runtime *rt, const ebb__region *r, uint8_t kind, uint64_t origin,
                           const char *message, const ebb_budget *budget) {
    uint8_t severity = (uint8_t)ebb_cancel_kind_severity(kind);
    ebb__clock_read_inside(rt);
    ebb_budget b = budget != NULL ? *budget : ebb__cleanup_budget(rt, severity, r->priority);
    if (r->owner != 0) { /* it ends with its owner, so its budget is bounded by the owner's */
        uint64_t left = ebb__cleanup_deadline(rt, ebb__task_at(rt, r->owner));
        if (left < b.deadline) b.deadline = left;
    }
    if (r->flags & R_BOUNDED && r->deadline < b.deadline) b.deadline = r->deadline;
    uint64_t force_at = ebb__force_at(rt->now, b.deadline);
    if (r->request == 0) ebb__cap_by_deadline(rt, r->deadline, &b.deadline, &force_at);
    return (request){.kind = kind,
                     .severity = severity,
                     .origin = origin,
                     .sequence = ++rt->sequence,
                     .message = message,
                     .deadline = b.deadline,
                     .force_at = force_at,
                     .polls = b.polls,
                     .priority = b.priority};
}

void ebb__cancel_tree(ebb_runtime *rt, ebb__region *r, uint8_t kind, uint64_t origin, const char *message,
                      const ebb_budget *budget) {
    request req = new_request(rt, r, kind, origin, message, budget);
    walk(rt, r, CANCEL, &req);
}

void ebb__force_tree(ebb_runtime *rt, ebb__region *r, uint64_t origin) {
    /* For regions without a request. */
    request req = new_request(rt, r, EBB_CANCEL_BUDGET, origin, "forced", NULL);
    walk(rt, r, FORCE, &req);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static void region_fired(ebb_runtime *rt, ebb__region *r) {
    if (r->flags & R_FORCED) {
        walk(rt, r, LATE, NULL);
    } else if (ebb__is_drain_region(r)) { /* the alarm of the supervisor */
        ebb__wake(rt, ebb__task_at(rt, ebb__cold_of(r)->supervisor));
    } else if (r->request != 0 && rt->now >= r->force_at) {
        ebb__force_tree(rt, r, 0);
    } else { /* its own deadline; its parent may have been cancelled before */
        ebb__cancel_tree(rt, r, EBB_CANCEL_TIMEOUT, 0, "its deadline has passed", NULL);
    }
}

void ebb__pass_deadlines(ebb_runtime *rt, ebb__region *r) {
    ebb__region *top = NULL;
    if (r->request != 0 || r->deadline == EBB_FOREVER) return;
    ebb__clock_read_inside(rt);
    if (r->deadline > rt->now) return;
    for (;; r = ebb__region_at(rt, r->parent)) {
        bool armed =
            r->flags & R_NODE && ebb__wheel_armed(&rt->wheel, ebb__wheel_ref(EBB__W_REGION, r->index));
        if (armed && r->request == 0 && r->deadline <= rt->now) top = r;
        if (r->flags & (R_ROOT | R_CLEANUP)) break;
    }
    if (top != NULL && !ebb__is_drain_region(top)) region_fired(rt, top);
}

static void timer_fired(ebb_runtime *rt, uint32_t i) {
    const ebb__timer *tm = ebb__slab_at(&rt->timers, i);
    uint64_t id = ebb__id(rt, i, tm->generation);
    ebb_task task = ebb__timer_cold_at(rt, i)->task;
    ebb__task *t = ebb__record_of(rt, &rt->tasks, task.id, EBB__TASK_SHIFT, sizeof *t);
    bool alive = t != NULL && t->phase != 0 && t->phase != EBB_TASK_COMPLETED;
    ebb__slab_give(&rt->timers, i);
    ebb__emit_plain(rt, EBB_EV_TIMER_FIRED, alive ? task.id : 0, 0, 0, id);
    if (alive) ebb__wake(rt, t);
}

void ebb__fired(ebb_runtime *rt, uint32_t ref) {
    uint32_t i = ref & ((UINT32_C(1) << 30) - 1);
    switch (ref >> 30) {
    case EBB__W_TIMER: timer_fired(rt, i); break;
    case EBB__W_TASK: ebb__task_fired(rt, ebb__task_at(rt, i)); break;
    default: region_fired(rt, ebb__region_at(rt, i)); break;
    }
}

/* ---- close, cancel, force ------------------------------------------------------------------------------ */

static bool reachable(ebb_runtime *rt, ebb_region region, ebb__region **out) {
    ebb_status st = ebb__find_region(rt, region, out);
    assert(st != EBB_OK || *out != NULL);
    if (st == EBB_OK && (*out)->state != EBB_REGION_CLOSED) return true;
    if (st == EBB_OK || st == EBB_ERR_STALE) {
        rt->stats.stale_wakes++;
        ebb__emit_plain(rt, EBB_EV_STALE_WAKE, 0, region.id, 0, 0);
    }
    return false;
}

void ebb_region_close(ebb_cx *cx, ebb_region region) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb__journal(rt, cx, (ebb_record){.type = J_CLOSE, .region = region.id});
    if (!reachable(rt, region, &r)) return;
    if (r->state == EBB_REGION_OPEN && r->tasks.n + r->children.n == 0) { /* no task or child to reach */
        rt->visits++;
        ebb__region_shut(rt, r);
        ebb__region_advance(rt, r);
    } else {
        walk(rt, r, CLOSE, NULL);
    }
}

/* As reachable(), after every passed deadline has been acted on: those come before a cancel. */
static bool cancellable(ebb_runtime *rt, ebb_region region, ebb__region **out) {
    if (!reachable(rt, region, out)) return false;
    ebb__pass_deadlines(rt, *out);
    return reachable(rt, region, out);
}

static uint64_t asker(ebb_cx *cx) {
    return ebb__task_id(ebb__task_of(cx));
}

void ebb_region_cancel(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (ebb_cancel_kind_severity(kind) == 0) kind = EBB_CANCEL_USER;
    ebb__journal(rt, cx, (ebb_record){.type = J_CANCEL, .region = region.id, .kind = (uint8_t)kind});
    ebb__journal_text(rt, message);
    if (cancellable(rt, region, &r)) ebb__cancel_tree(rt, r, (uint8_t)kind, asker(cx), message, NULL);
}

void ebb_region_cancel_within(ebb_cx *cx, ebb_region region, ebb_cancel_kind kind, const char *message,
                              ebb_budget budget) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (ebb_cancel_kind_severity(kind) == 0) kind = EBB_CANCEL_USER;
    ebb__journal(rt, cx, (ebb_record){.type = J_CANCEL_WITHIN, .region = region.id, .kind = (uint8_t)kind});
    ebb__journal(
        rt, cx,
        (ebb_record){
            .type = J_ARGS, .task = budget.deadline, .value = budget.polls, .kind = budget.priority});
    ebb__journal_text(rt, message);
    if (cancellable(rt, region, &r)) ebb__cancel_tree(rt, r, (uint8_t)kind, asker(cx), message, &budget);
}

void ebb_region_force(ebb_cx *cx, ebb_region region) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb__journal(rt, cx, (ebb_record){.type = J_FORCE, .region = region.id});
    if (reachable(rt, region, &r)) ebb__force_tree(rt, r, asker(cx));
}
