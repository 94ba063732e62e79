#include "kernel/region.h"

#include <assert.h>

#include "base/opts.h"
#include "kernel/admit.h"
#include "kernel/cascade.h"
#include "kernel/lane.h"
#include "kernel/obligation.h"
#include "kernel/observe.h"
#include "kernel/reason.h"
#include "kernel/record.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"
#include "kernel/wait.h"
#include "kernel/watchdog.h"

/* ---- open ---------------------------------------------------------------------------------------------- */

EBB__INLINE ebb__region *region_new(ebb_runtime *rt, const char *site) {
    assert(ebb__slab_ready(&rt->regions));
    uint32_t i = ebb__slab_take_as(&rt->regions, EBB__REGION_SHIFT, sizeof(ebb__region));
    ebb__region *r = ebb__region_at(rt, i);
    *r = (ebb__region){.generation = r->generation,
                       .index = i,
                       .state = EBB_REGION_OPEN,
                       .deadline = EBB_FOREVER,
                       .force_at = EBB_FOREVER,
                       .polls = EBB_POLLS_UNBOUNDED};
    ebb__u32s_init(&r->tasks);
    ebb__u32s_init(&r->children);
    ebb__region_cold *c = ebb__cold_of(r);
    memset(c, 0, offsetof(ebb__region_cold, message) + 1); /* later fields are valid only with their flag */
    c->site = site;
    return r;
}

ebb_status ebb__root_open(ebb_runtime *rt) {
    ebb_status st = ebb__slab_reserve(&rt->regions, &rt->allocator);
    if (st != EBB_OK) return st;
    ebb__region *r = region_new(rt, "root");
    r->flags = R_ROOT;
    r->policy = EBB_FAIL_COLLECT;
    rt->root = r->index;
    rt->host.region = r->index;
    rt->stats.regions = 1;
    return EBB_OK;
}

static ebb__region_cold *cold_at(const ebb_runtime *rt, uint32_t i) {
    return ebb__cold_of(ebb__region_at(rt, i));
}

static void own(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    assert(r->owner == 0 && t->index != 0);
    r->owner = t->index;
    r->flags |= R_MORE;
    ebb__cold_of(r)->owner_next = c->scopes;
    if (c->scopes != 0) cold_at(rt, c->scopes)->owner_prev = r->index;
    c->scopes = EBB__24(r->index);
    t->flags |= F_SCOPE;
}

static void disown(ebb_runtime *rt, ebb__region *r) {
    assert(r->owner != 0);
    ebb__task *t = ebb__task_at(rt, r->owner);
    ebb__cold *c = ebb__cold_at(rt, r->owner);
    uint32_t next = ebb__cold_of(r)->owner_next, prev = ebb__cold_of(r)->owner_prev;
    if (prev != 0) cold_at(rt, prev)->owner_next = next;
    else c->scopes = EBB__24(next);
    if (next != 0) cold_at(rt, next)->owner_prev = prev;
    if (c->scopes == 0) t->flags &= ~(uint32_t)F_SCOPE;
    r->owner = 0;
}

/* Moves the region to the front of its owner's list. */
static void own_first(ebb_runtime *rt, ebb__region *r) {
    ebb__cold *c = ebb__cold_at(rt, r->owner);
    uint32_t next = ebb__cold_of(r)->owner_next, prev = ebb__cold_of(r)->owner_prev;
    if (c->scopes == r->index) return;
    cold_at(rt, prev)->owner_next = next;
    if (next != 0) cold_at(rt, next)->owner_prev = prev;
    cold_at(rt, c->scopes)->owner_prev = r->index;
    ebb__cold_of(r)->owner_prev = 0;
    ebb__cold_of(r)->owner_next = c->scopes;
    c->scopes = EBB__24(r->index);
}

/* True if the task may open a cleanup scope. */
static bool cleaning(const ebb__task *t) {
    return t->index != 0 && (t->request != 0 || t->flags & F_IN_FINALIZER);
}

/* Checks that the region may be opened, finds its parent and reserves memory. */
EBB__INLINE ebb_status may_open(ebb_runtime *rt, ebb__task *t, const ebb_region_opts *o, bool drain,
                                ebb__region **parent) {
    if (o->parent.id == 0) {
        *parent = ebb__region_at(rt, t->region);
    } else {
        ebb_status st = ebb__find_region(rt, o->parent, parent);
        if (st != EBB_OK) return st;
    }
    if (ebb__is_finalized(t)) return EBB_ERR_CLOSED;
    bool in_place = false;
    if (o->cleanup) {
        if (!drain && !cleaning(t)) return EBB_ERR_NOT_CLEANING;
        if (o->unit) return EBB_ERR_INVALID;
        in_place = (*parent)->index == t->region && (*parent)->state != EBB_REGION_CLOSED;
    }
    if (!in_place) {
        ebb_status st = ebb__admit(rt, t, *parent);
        if (st != EBB_OK) return st;
    }
    if (o->policy != EBB_FAIL_FAST && o->policy != EBB_FAIL_COLLECT) return EBB_ERR_INVALID;
    if (!ebb__slab_ready(&rt->regions)) {
        ebb_status st = ebb__slab_reserve(&rt->regions, &rt->allocator);
        if (st != EBB_OK) return st;
    }
    return ebb__u32s_reserve(&(*parent)->children, &rt->allocator) ? EBB_OK : EBB_ERR_NOMEM;
}

__attribute__((cold, noinline)) static ebb_region refuse(ebb_runtime *rt, const ebb__task *t,
                                                         const ebb__region *parent, const ebb_region_opts *o,
                                                         ebb_status st) {
    uint64_t named = parent == NULL ? o->parent.id : ebb__region_id(rt, parent);
    ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(t), named, (uint32_t)st, 0);
    return (ebb_region){ebb__id_error(rt, st)};
}

/* `drain`: for a supervisor; no owner and no bounds. `apart`: no owner. */
EBB__INLINE ebb_region region_open(ebb_runtime *rt, ebb_cx *cx, const ebb_region_opts *o, bool drain,
                                   bool apart, const char *site) {
    static const ebb_region_opts none;
    if (o == NULL) o = &none;
    ebb__task *t = ebb__task_of(cx);
    ebb__region *parent = NULL;
    ebb_status st = may_open(rt, t, o, drain, &parent);
    if (EBB__UNLIKELY(st != EBB_OK)) return refuse(rt, t, parent, o, st);
    ebb__region *r = region_new(rt, site);
    r->parent = parent->index;
    ebb__cold_of(r)->depth = ebb__cold_of(parent)->depth + 1;
    r->pos = ebb__u32s_push(&parent->children, r->index);
    r->policy = (uint8_t)o->policy;
    r->priority = o->priority > parent->priority ? o->priority : parent->priority;
    r->flags = (o->cleanup ? R_CLEANUP : 0u) | (o->on_closed != NULL ? R_HOOK : 0u) |
               (o->unit ? R_UNIT : 0u) | (parent->flags & R_BOUNDED);
    if (EBB__UNLIKELY(parent->flags & R_TRACED)) {
        r->flags |= R_TRACED;
        ebb__cold_of(r)->trace = ebb__cold_of(parent)->trace;
    }
    if (o->on_closed != NULL) {
        ebb__cold_of(r)->on_closed = o->on_closed;
        ebb__cold_of(r)->arg = o->arg;
    }
    if (o->deadline != 0) r->deadline = o->deadline;
    if (o->cleanup && !drain) {
        uint64_t left = ebb__cleanup_deadline(rt, t);
        if (left < r->deadline) r->deadline = left;
        r->flags |= R_BOUNDED;
        if (t->request != 0 && !(t->flags & F_RETURNED)) r->polls = t->polls_left;
    } else if (!drain) {
        if (parent->deadline < r->deadline) r->deadline = parent->deadline;
        r->polls = parent->polls;
    }
    if (o->deadline != 0) ebb__region_arm(rt, r, r->deadline);
    if (t->index != 0 && !drain && !apart) own(rt, t, r);
    if (EBB__UNLIKELY(parent->flags & R_STOPPING) && !o->cleanup) ebb__region_stop_new(rt, r);
    rt->stats.regions++;
    ebb__emit_region_at(rt, EBB_EV_REGION_OPENED, r, drain ? 0 : ebb__task_id(t),
                        (o->cleanup ? 1u : 0u) | (o->policy == EBB_FAIL_COLLECT ? 2u : 0u) |
                            (o->unit ? 4u : 0u),
                        ebb__region_id(rt, parent), ebb__cold_of(r)->site);
    return (ebb_region){ebb__region_id(rt, r)};
}

static void journal_open(ebb_runtime *rt, ebb_cx *cx, const ebb_region_opts *o, bool apart, const char *site,
                         uint64_t id) {
    uint32_t flags = 0;
    if (o != NULL) {
        flags = (apart ? 32u : 0u) | 1u | (o->cleanup ? 2u : 0u) | (o->policy == EBB_FAIL_COLLECT ? 4u : 0u) |
                (o->on_closed != NULL ? 8u : 0u) | (o->unit ? 16u : 0u);
    }
    ebb__journal(
        rt, cx,
        (ebb_record){.type = J_OPEN, .region = o == NULL ? 0 : o->parent.id, .other = id, .value = flags});
    if (o != NULL) {
        ebb__journal(rt, cx, (ebb_record){.type = J_ARGS, .task = o->deadline, .kind = o->priority});
    }
    ebb__journal_text(rt, site);
}

ebb_region ebb_region_open_site(ebb_cx *cx, const ebb_region_opts *opts, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_region_opts room;
    ebb_status st = EBB_OK;
    if (ebb__rt_is_confined(rt)) return (ebb_region){ebb__id_error(rt, EBB_ERR_DURABLE_CONTEXT)};
    if (opts != NULL) opts = EBB__OPTS_SEE(opts, &room, &st);
    ebb_region id = st == EBB_OK ? region_open(rt, cx, opts, false, false, site)
                                 : refuse(rt, ebb__task_of(cx), NULL, opts, st);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_open(rt, cx, opts, false, site, id.id);
    if (opts != NULL && opts->name != NULL && (uint32_t)id.id != 0) {
        ebb__note_event(rt, EBB_EV_NAMED, .region = id.id, .what = opts->name);
    }
    return id;
}

ebb_region ebb__region_open_apart(ebb_cx *cx, const ebb_region_opts *opts, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    if (ebb__rt_is_confined(rt)) return (ebb_region){ebb__id_error(rt, EBB_ERR_DURABLE_CONTEXT)};
    ebb_region id = region_open(rt, cx, opts, false, true, site);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_open(rt, cx, opts, true, site, id.id);
    return id;
}

ebb_region ebb__drain_region_open(ebb_cx *cx, ebb_region parent, const char *site) {
    return region_open(ebb__rt_of(cx), cx,
                       &(ebb_region_opts){.parent = parent, .policy = EBB_FAIL_COLLECT, .cleanup = true},
                       true, true, site);
}

/* ---- transitions --------------------------------------------------------------------------------------- */

bool ebb__region_refused(ebb_runtime *rt, ebb__region *r, ebb_region_state to) {
    rt->stats.illegal++;
    ebb__emit_region(rt, EBB_EV_ILLEGAL, r, 0, (uint32_t)r->state << 8 | (uint32_t)to, 0);
    return false;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

void ebb__sweep_later(ebb_runtime *rt, ebb__region *r) {
    if (r->flags & R_SWEEP) return;
    r->flags |= R_SWEEP;
    ebb__cold_of(r)->sweep_next = 0;
    if (rt->sweep_head == 0) rt->sweep_head = r->index;
    else cold_at(rt, rt->sweep_tail)->sweep_next = r->index;
    rt->sweep_tail = r->index;
}

static inline void region_free(ebb_runtime *rt, ebb__region *r) {
    assert(r->state == 0 && !(r->flags & (R_ROOT | R_SWEEP)));
    ebb__u32s_fini(&r->tasks, &rt->allocator);
    ebb__u32s_fini(&r->children, &rt->allocator);
    ebb__slab_give_record(&rt->regions, r->index, r);
}

__attribute__((noinline)) static void release_more(ebb_runtime *rt, ebb__region *r) {
    ebb__region_cold *c = ebb__cold_of(r);
    while (c->kept != 0) {
        ebb__task *t = ebb__task_at(rt, c->kept);
        c->kept = t->kept_next;
        ebb__task_release(rt, t);
    }
    if (c->leaks != 0) ebb__leaks_forget(rt, r);
    if (r->owner != 0) disown(rt, r);
}

/* Frees a closed region, with the outcomes and leaks that it kept. A region in the sweep queue stays there as an
 * empty record until the pump reaches it. */
static inline void release(ebb_runtime *rt, ebb__region *r) {
    assert(r->state == EBB_REGION_CLOSED && r->closed == 0);
    if (r->flags & R_MORE) release_more(rt, r);
    r->state = 0;
    if (!(r->flags & R_SWEEP)) region_free(rt, r);
}

static inline void closed_push(ebb_runtime *rt, ebb__region *parent, ebb__region *r) {
    assert(parent->state != EBB_REGION_CLOSED && r->state == EBB_REGION_CLOSED);
    r->closed_next = parent->closed;
    r->closed_prev = 0;
    if (parent->closed != 0) ebb__region_at(rt, parent->closed)->closed_prev = r->index;
    parent->closed = r->index;
}

static inline void closed_remove(ebb_runtime *rt, ebb__region *r) {
    ebb__region *parent = ebb__region_at(rt, r->parent);
    if (r->closed_prev != 0) ebb__region_at(rt, r->closed_prev)->closed_next = r->closed_next;
    else parent->closed = r->closed_next;
    if (r->closed_next != 0) ebb__region_at(rt, r->closed_next)->closed_prev = r->closed_prev;
}

static inline void leave_parent(ebb_runtime *rt, ebb__region *parent, const ebb__region *r) {
    assert(r->pos < parent->children.n && ebb__u32s_data(&parent->children)[r->pos] == r->index);
    uint32_t moved = ebb__u32s_remove(&parent->children, r->pos);
    if (moved != 0) ebb__region_at(rt, moved)->pos = r->pos;
}

static bool is_failure(int32_t status) {
    return status != EBB_OK && status != EBB_CANCELLED;
}

/* Frees the children that were not joined. If the region has no failure, it takes that of the failed child that
 * closed first. */
EBB__INLINE void release_children(ebb_runtime *rt, ebb__region *r) {
    bool failed = is_failure(r->status);
    for (uint32_t i = r->closed; i != 0;) { /* the list starts with the child that closed last */
        ebb__region *c = ebb__region_at(rt, i);
        if (EBB__UNLIKELY(is_failure(c->status)) && !failed) {
            r->status = c->status;
            ebb__cold_of(r)->failed = ebb__cold_of(c)->failed;
        }
        assert(c->parent == r->index);
        i = c->closed_next;
        release(rt, c);
    }
    r->closed = 0;
}

/* A failure of a region that the task left open becomes the task's, if it has none. */
static void fail_owner(ebb__task *t, const ebb__region *r) {
    if (is_failure(r->status)) t->status = r->status == EBB_FAULTED ? EBB_FAILED : r->status;
}

__attribute__((noinline)) static void notify_owner(ebb_runtime *rt, ebb__region *r) {
    ebb__task *t = ebb__task_at(rt, r->owner);
    if (r->flags & R_LEFT) {
        own_first(rt, r); /* ebb__scopes_join takes closed regions from the front */
        if (t->status == EBB_OK) fail_owner(t, r);
    }
    if (t->flags & (F_JOINING | F_RETURNED)) ebb__wake(rt, t);
}

/* Finalizing -> Closed. Outcomes and leaks stay until the region is joined. Returns the parent; NULL for the root. */
EBB__INLINE ebb__region *region_close(ebb_runtime *rt, ebb__region *r) {
    uint32_t flags = r->flags;
    assert(r->tasks.n == 0 && r->children.n == 0 && ebb__cold_of(r)->closer == 0);
    assert(r->owed == 0 && r->runner == 0 && r->callbacks == NULL);
    if (r->closed != 0) release_children(rt, r);
    (void)ebb__region_move(rt, r, EBB_REGION_CLOSED);
    rt->stats.regions--;
    if (flags & R_NODE) ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_REGION, r->index));
    ebb__emit_region(rt, EBB_EV_REGION_CLOSED, r, 0, (uint32_t)r->status,
                     (uint64_t)ebb__cold_of(r)->abandoned << 32 | ebb__cold_of(r)->leaked);
    if (EBB__UNLIKELY(flags & (R_ROOT | R_OBSERVED))) {
        if (flags & R_OBSERVED) ebb__observed_region_ended(rt, ebb__region_id(rt, r));
        if (flags & R_ROOT) return NULL;
    }
    if (EBB__UNLIKELY(flags & R_UNIT) && rt->layers.call.unit_closed != NULL) rt->layers.call.unit_closed(rt);
    if (flags & R_MORE && r->owner != 0) notify_owner(rt, r);
    ebb__region *parent = ebb__region_at(rt, r->parent);
    leave_parent(rt, parent, r);
    if (EBB__UNLIKELY(flags & R_OPERATOR)) parent->flags &= ~(uint32_t)R_APART;
    closed_push(rt, parent, r);
    return parent;
}

static bool quiet(const ebb__region *r) {
    return r->tasks.n == 0 && r->children.n == 0;
}

/* The region's own obligations keep it in Finalizing until they are resolved or it is forced. */
static bool is_held(const ebb__region *r) {
    return !(r->flags & R_FORCED) && r->owed != 0;
}

/* Wakes the internal tasks that must end when nothing else lives in the region. */
static void wake_last(ebb_runtime *rt, ebb__region *r) {
    if (ebb__runner_is_last(r)) ebb__wake(rt, ebb__task_at(rt, r->runner));
    if (ebb__supervisor_is_last(r)) ebb__wake(rt, ebb__task_at(rt, ebb__cold_of(r)->supervisor));
}

/* True if a quiet region with R_MORE, R_HOOK or R_OBSERVED has nothing to do before it closes. */
__attribute__((noinline)) static bool can_close_now(ebb_runtime *rt, ebb__region *r) {
    if (ebb__cold_of(r)->closer != 0) {
        ebb__closer_start(rt, r);
        return false;
    }
    if (is_held(r)) return false;
    if (r->owed == 0 && r->callbacks == NULL && !(r->flags & (R_HOOK | R_OBSERVED))) return true;
    ebb__sweep_later(rt, r); /* obligations still reserved have leaked; the pump runs user code and hooks */
    return false;
}

/* Advances the region as far as possible without user code. Returns the parent if the region closed, since the
 * parent may advance then; otherwise NULL. */
EBB__INLINE ebb__region *advance_one(ebb_runtime *rt, ebb__region *r) {
    if (EBB__UNLIKELY(r->index == rt->hook_parent))
        return NULL; /* a child's hook is running; the region advances after it */
    if (EBB__UNLIKELY(r->flags & (R_MORE | R_SUPERVISED))) wake_last(rt, r);
    if (!quiet(r)) {
        if (r->state == EBB_REGION_CLOSING) ebb__region_drain(rt, r);
        return NULL;
    }
    switch (r->state) {
    case EBB_REGION_OPEN:
        if (!(r->flags & (R_JOINING | R_ENDS))) return NULL;
        ebb__region_shut(rt, r);
        /* fall through */
    case EBB_REGION_CLOSING:
    case EBB_REGION_DRAINING:
        if (!ebb__region_move(rt, r, EBB_REGION_FINALIZING)) return NULL;
        ebb__emit_region(rt, EBB_EV_REGION_FINALIZING, r, 0, 0, 0);
        /* fall through */
    case EBB_REGION_FINALIZING:
        if (r->flags & (R_MORE | R_HOOK | R_OBSERVED) && !can_close_now(rt, r)) return NULL;
        return region_close(rt, r);
    default: return NULL;
    }
}

void ebb__region_advance_slow(ebb_runtime *rt, ebb__region *r) {
    while (r != NULL) {
        ebb__prefetch_region(rt, r->index - EBB__REGIONS_AHEAD, false);
        r = advance_one(rt, r);
    }
}

/* Closes a region that has a hook. Its parent can't close before the hook has returned. */
static void close_with_hook(ebb_runtime *rt, ebb__region *r) {
    ebb_region_report report;
    assert(rt->hook_parent == 0);
    region_close(rt, r);
    ebb__report_of(rt, r, &report);
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_CALL, .value = EBB__CALL_CLOSED, .region = report.region.id});
    rt->hook_parent = r->parent;
    ebb__watched outer = ebb__watch_enter(rt, report.region.id, ebb__cold_of(r)->site);
    ebb__cold_of(r)->on_closed(ebb__cold_of(r)->arg, &report);
    ebb__watch_leave(rt, outer);
    rt->hook_parent = 0;
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
    if (r->flags & R_ROOT) { /* the root is never freed; its hook runs once */
        r->flags &= ~(uint32_t)R_HOOK;
        return;
    }
    ebb__region *parent = ebb__region_at(rt, r->parent);
    closed_remove(rt, r);
    release(rt, r);
    ebb__region_advance(rt, parent);
}

static bool can_close(const ebb__region *r) {
    return r->state == EBB_REGION_FINALIZING && quiet(r) && ebb__cold_of(r)->closer == 0 && !is_held(r);
}

void ebb__callbacks_call(ebb_runtime *rt, const ebb__region *r,
                         void (*fn)(ebb_runtime *rt, ebb__callbacks *c)) {
    if (fn == NULL) return;
    ebb__journal(rt, &rt->host.cx,
                 (ebb_record){.type = J_CALL, .value = EBB__CALL_FUTURES, .region = ebb__region_id(rt, r)});
    fn(rt, r->callbacks);
    ebb__journal(rt, &rt->host.cx, (ebb_record){.type = J_RETURN});
}

/* A closing region releases its callbacks; no layer can add one to it any more. */
static void release_callbacks(ebb_runtime *rt, ebb__region *r) {
    ebb__watched outer = ebb__watch_enter(rt, ebb__region_id(rt, r), ebb__cold_of(r)->site);
    ebb__callbacks_call(rt, r, r->callbacks->released);
    ebb__watch_leave(rt, outer);
    r->callbacks = NULL;
}

bool ebb__sweep_one(ebb_runtime *rt) {
    if (rt->sweep_head == 0) return false;
    ebb__region *r = ebb__region_at(rt, rt->sweep_head);
    rt->sweep_head = ebb__cold_of(r)->sweep_next;
    r->flags &= ~(uint32_t)R_SWEEP;
    if (r->state == 0) {
        region_free(rt, r);
        return true;
    }
    uint32_t generation = r->generation;
    if (can_close(r)) ebb__leak_region(rt, r);
    if (r->generation != generation) return true; /* a hook has joined and freed it */
    if (r->callbacks != NULL && can_close(r)) release_callbacks(rt, r);
    if (r->flags & R_HOOK && can_close(r)) close_with_hook(rt, r);
    else if (r->flags & R_OBSERVED && can_close(r)) ebb__region_advance(rt, region_close(rt, r));
    else ebb__region_advance(rt, r);
    return true;
}

/* ---- failure ------------------------------------------------------------------------------------------- */

void ebb__region_failed(ebb_runtime *rt, ebb__region *r, ebb_status status, uint64_t task) {
    if (r->status != EBB_OK && r->status != EBB_CANCELLED) return;
    r->status = status;
    ebb__cold_of(r)->failed = task;
    if (r->policy != EBB_FAIL_FAST || r->state == EBB_REGION_FINALIZING) return;
    ebb__cancel_tree(rt, r, EBB_CANCEL_SIBLING_FAILED, task, ebb_status_name(status), NULL);
}

/* ---- join ---------------------------------------------------------------------------------------------- */

static void leave_one(ebb_runtime *rt, ebb__task *t, ebb__region *r) {
    r->flags |= R_LEFT;
    if (t->flags & (F_ABANDONED | F_FIN_FORCED)) {
        if (!(r->flags & R_FORCED)) ebb__force_tree(rt, r, ebb__task_id(t));
    } else if (r->request == 0) {
        ebb__cancel_tree(rt, r, EBB_CANCEL_USER, ebb__task_id(t), "its task has returned", NULL);
    }
}

/* Cancels each region that the task has left open, once. Of the regions closed before, the failure of the one
 * opened first counts. */
static void leave_scopes(ebb_runtime *rt, ebb__task *t, ebb__cold *c) {
    bool failed = t->status != EBB_OK;
    uint32_t next;
    for (uint32_t i = c->scopes; i != 0; i = next) {
        ebb__region *r = ebb__region_at(rt, i);
        rt->visits++;
        next = ebb__cold_of(r)->owner_next;
        if (r->flags & R_LEFT) {
            /* done already, perhaps in the round before */
        } else if (r->state != EBB_REGION_CLOSED) {
            leave_one(rt, t, r);
        } else {
            r->flags |= R_LEFT;
            own_first(rt, r);
            if (!failed) fail_owner(t, r);
        }
        /* That may have closed a region around both and freed the next: start again. R_LEFT marks the regions that
         * are done. */
        if (next != 0 && ebb__region_at(rt, next)->owner != t->index) next = c->scopes;
    }
}

bool ebb__scopes_join(ebb_runtime *rt, ebb__task *t) {
    ebb__cold *c = ebb__cold_at(rt, t->index);
    if (c->scopes != 0 && !(ebb__region_at(rt, c->scopes)->flags & R_LEFT)) leave_scopes(rt, t, c);
    while (c->scopes != 0) { /* closed regions come first */
        ebb__region *r = ebb__region_at(rt, c->scopes);
        rt->visits++;
        if (r->state != EBB_REGION_CLOSED) return false;
        closed_remove(rt, r);
        release(rt, r);
    }
    return true;
}

void ebb__scopes_again(ebb_runtime *rt, ebb__task *t) {
    ebb__region *r;
    for (uint32_t i = ebb__cold_at(rt, t->index)->scopes; i != 0; i = ebb__cold_of(r)->owner_next) {
        r = ebb__region_at(rt, i);
        r->flags &= ~(uint32_t)R_LEFT;
    }
}

static ebb_status region_join(ebb_runtime *rt, ebb_cx *cx, ebb_region region) {
    ebb__task *t = ebb__task_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st != EBB_OK) return st;
    if (r->owner != t->index) return EBB_ERR_BUSY;
    if (r->flags & (R_HOOK | R_ROOT)) return EBB_ERR_INVALID;
    if (ebb__task_is_runner(rt, t) && r->state != EBB_REGION_CLOSED) return EBB_ERR_NOT_TASK;
    if (ebb__task_is_overdue(t)) return ebb__acknowledge(cx);
    r->flags |= R_JOINING;
    ebb__region *parent = NULL; /* the parent advances last: its close would free this region */
    if (r->state != EBB_REGION_CLOSED) parent = advance_one(rt, r);
    if (r->state == EBB_REGION_CLOSED) {
        st = (ebb_status)r->status;
        ebb__emit_region(rt, EBB_EV_REGION_JOINED, r, ebb__task_id(t), (uint32_t)st, 0);
        closed_remove(rt, r);
        release(rt, r);
        if (parent != NULL) ebb__region_advance(rt, parent);
        return st;
    }
    if (t->index == 0) return EBB_PENDING;
    if (ebb__acknowledge(cx) != EBB_OK) return EBB_CANCELLED;
    ebb__joins(t, 0);
    return EBB_PENDING;
}

static ebb_status journaled_join(ebb_runtime *rt, ebb_cx *cx, ebb_region region) {
    ebb_status st = region_join(rt, cx, region);
    ebb__journal(rt, cx, (ebb_record){.type = J_REGION_JOIN, .region = region.id, .value = (uint32_t)st});
    return st;
}

ebb_status ebb_region_join(ebb_cx *cx, ebb_region region) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_status st;
    EBB__AWAIT(cx, st, journaled_join(rt, cx, region));
    return st;
}

/* ---- state and report ---------------------------------------------------------------------------------- */

ebb_status ebb_region_state_of(ebb_cx *cx, ebb_region region, ebb_region_state *out) {
    ebb__region *r;
    ebb_status st = ebb__find_region(ebb__rt_of(cx), region, &r);
    if (st == EBB_OK) *out = (ebb_region_state)r->state;
    return st;
}

void ebb__report_of(const ebb_runtime *rt, const ebb__region *r, ebb_region_report *out) {
    const ebb__region_cold *c = ebb__cold_of(r);
    *out = (ebb_region_report){
        {ebb__region_id(rt, r)}, (ebb_status)r->status, {c->failed}, c->abandoned, c->leaked};
}

ebb_status ebb_region_report_of(ebb_cx *cx, ebb_region region, ebb_region_report *out) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK) ebb__report_of(rt, r, out);
    return st;
}

ebb_status ebb_region_abandoned_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st != EBB_OK) return st;
    for (uint32_t k = ebb__cold_of(r)->kept; k != 0; k = ebb__task_at(rt, k)->kept_next) {
        const ebb__task *t = ebb__task_at(rt, k);
        if (!(t->flags & F_ABANDONED) || i-- > 0) continue;
        *out = (ebb_work){ebb__task_id(t), ebb__cold_at(rt, k)->site};
        return EBB_OK;
    }
    for (uint32_t k = ebb__cold_of(r)->leaks; k != 0; k = ebb__obligation_at(rt, k)->next) {
        const ebb__obligation *d = ebb__obligation_at(rt, k);
        if (d->kind != 0 || i-- > 0) continue;
        *out = (ebb_work){0, d->site};
        return EBB_OK;
    }
    return EBB_ERR_INVALID;
}

ebb_status ebb_region_leaked_at(ebb_cx *cx, ebb_region region, uint32_t i, ebb_work *out) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st != EBB_OK) return st;
    for (uint32_t k = ebb__cold_of(r)->leaks; k != 0; k = ebb__obligation_at(rt, k)->next) {
        const ebb__obligation *d = ebb__obligation_at(rt, k);
        if (d->kind == 0 || i-- > 0) continue; /* an abandoned operation has no kind */
        *out = (ebb_work){ebb__obligation_id(rt, d), d->site};
        return EBB_OK;
    }
    return EBB_ERR_INVALID;
}
