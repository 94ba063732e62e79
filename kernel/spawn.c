/* New tasks: those that users spawn, and the closers, callback runners and supervisors of regions. */
#include "base/opts.h"
#include "kernel/admit.h"
#include "kernel/lane.h"
#include "kernel/record.h"
#include "kernel/region.h"
#include "kernel/task.h"

/* A new task record, zeroed except for the common fields. The caller has reserved memory. */
EBB__INLINE ebb__task *task_new(ebb_runtime *rt, uint32_t region, ebb_poll_fn poll, void *state,
                                uint8_t priority, const char *site) {
    assert(rt->credit > 0);
    uint32_t i = ebb__slab_take_as(&rt->tasks, EBB__TASK_SHIFT, sizeof(ebb__task));
    ebb__task *t = ebb__task_at(rt, i);
    uint32_t generation = t->generation;
    *t = (ebb__task){.generation = generation,
                     .poll = poll,
                     .state = state,
                     .rt = rt,
                     .index = i,
                     .region = region,
                     .phase = EBB_TASK_CREATED,
                     .polls_left = EBB_POLLS_UNBOUNDED};
    ebb__cold *c = ebb__cold_at(rt, i);
    *c = (ebb__cold){.site = site, .priority = priority, .born = (uint32_t)(rt->now >> EBB__BORN_SHIFT)};
    rt->credit--;
    return t;
}

/* Slots of tasks and their places in the lanes are reserved for many at a time. */
__attribute__((noinline)) static ebb_status more_credit(ebb_runtime *rt) {
    ebb_status st = ebb__slab_reserve(&rt->tasks, &rt->allocator);
    if (st != EBB_OK) return st;
    uint32_t room = ebb__slab_room(&rt->tasks);
    if (!ebb__run_queue_reserve(&rt->run_queues, &rt->allocator, rt->tasks.live + room)) return EBB_ERR_NOMEM;
    rt->credit = room;
    return EBB_OK;
}

static inline ebb_status room_for_task(ebb_runtime *rt) {
    return EBB__LIKELY(rt->credit > 0) ? EBB_OK : more_credit(rt);
}

__attribute__((cold, noinline)) static ebb_task refuse(ebb_runtime *rt, ebb_cx *cx, ebb_region region,
                                                       ebb_status st) {
    ebb__emit_plain(rt, EBB_EV_REFUSED, ebb__task_id(ebb__task_of(cx)), region.id, (uint32_t)st, 0);
    return (ebb_task){ebb__id_error(rt, st)};
}

/* Adds a task to a region that has room for it. The task is in no lane yet. */
EBB__INLINE ebb__task *task_add(ebb_runtime *rt, ebb__region *r, ebb_poll_fn poll, void *state,
                                const char *site) {
    ebb__task *t = task_new(rt, r->index, poll, state, r->priority, site);
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    t->polls_left = r->polls;
    rt->stats.spawned++;
    return t;
}

static ebb_task spawn(ebb_runtime *rt, ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                      const ebb_task_opts *opts, uint32_t waiter, const char *site) {
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (EBB__UNLIKELY(st != EBB_OK)) return refuse(rt, cx, region, st);
    if (EBB__UNLIKELY(poll == NULL)) return refuse(rt, cx, region, EBB_ERR_INVALID);
    st = ebb__admit(rt, ebb__task_of(cx), r);
    if (EBB__UNLIKELY(st != EBB_OK)) return refuse(rt, cx, region, st);
    bool timed = r->deadline != EBB_FOREVER || (opts != NULL && opts->deadline != 0);
    st = room_for_task(rt);
    if (EBB__UNLIKELY(timed) && st == EBB_OK && !ebb__timed_admit(rt)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK && !ebb__u32s_reserve(&r->tasks, &rt->allocator)) st = EBB_ERR_NOMEM;
    if (EBB__UNLIKELY(st != EBB_OK)) {
        ebb__region_failed(rt, r, st, 0);
        return refuse(rt, cx, region, st);
    }
    ebb__task *t = task_add(rt, r, poll, state, site);
    t->waiter = waiter;
    if (EBB__UNLIKELY(r->flags & R_STOPPING)) t->cx.signal = EBB_CX_STOP;
    if (timed) {
        t->flags |= F_TIMED;
        rt->timed.members++;
    }
    if (opts != NULL) {
        if (opts->keep && waiter != EBB__APART) t->flags |= F_KEEP; /* the end of those apart is a future's */
        if (opts->polls != 0 && opts->polls < t->polls_left) t->polls_left = opts->polls;
        ebb__cold *c = ebb__cold_at(rt, t->index);
        if (opts->priority > c->priority) c->priority = opts->priority;
        if (opts->deadline != 0) {
            t->flags |= F_NODE;
            ebb__wheel_arm(&rt->wheel, ebb__wheel_ref(EBB__W_TASK, t->index), opts->deadline);
        }
    }
    ebb__emit_task_at(rt, EBB_EV_TASK_SPAWNED, t,
                      (t->flags & F_KEEP ? 1u : 0u) | (waiter == EBB__APART ? 8u : 0u),
                      ebb__task_id(ebb__task_of(cx)), site);
    ebb__enqueue(rt, t);
    return (ebb_task){ebb__task_id(t)};
}

static void journal_spawn(ebb_runtime *rt, ebb_cx *cx, ebb_region region, const ebb_task_opts *o,
                          uint32_t flags, const char *site, uint64_t result) {
    flags |= (o != NULL && o->keep ? 1u : 0u) | (o != NULL ? 2u : 0u);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = result, .value = flags});
    if (o != NULL) {
        ebb__journal(
            rt, cx,
            (ebb_record){.type = J_ARGS, .task = o->deadline, .value = o->polls, .kind = o->priority});
    }
    ebb__journal_text(rt, site);
}

static ebb_task spawn_with(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                           const ebb_task_opts *opts, uint32_t waiter, uint32_t flags, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_task_opts room;
    ebb_status st = EBB_OK;
    if (ebb__rt_is_confined(rt)) return (ebb_task){ebb__id_error(rt, EBB_ERR_DURABLE_CONTEXT)};
    if (opts != NULL) opts = EBB__OPTS_SEE(opts, &room, &st);
    ebb_task id =
        st == EBB_OK ? spawn(rt, cx, region, poll, state, opts, waiter, site) : refuse(rt, cx, region, st);
    if (EBB__UNLIKELY(rt->journal != NULL)) journal_spawn(rt, cx, region, opts, flags, site, id.id);
    if (opts != NULL && opts->name != NULL && (uint32_t)id.id != 0) {
        ebb__note_event(rt, EBB_EV_NAMED, .task = id.id, .what = opts->name);
    }
    return id;
}

ebb_task ebb_spawn_opts_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                             const ebb_task_opts *opts, const char *site) {
    return spawn_with(cx, region, poll, state, opts, 0, 0, site);
}

/* True if the region admits a task without a deadline and has room for it. */
static inline bool takes_at_once(const ebb_runtime *rt, const ebb__region *r) {
    return r->state == EBB_REGION_OPEN && !(r->flags & R_STOPPING) && r->deadline == EBB_FOREVER &&
           r->tasks.n < r->tasks.cap && rt->credit > 0 && ebb__ready_has_room(rt);
}

/* The common case, without another call; ebb_spawn_opts_site covers all cases. */
ebb_task ebb_spawn_site(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r = NULL;
    if (!rt->observed && !ebb__rt_is_confined(rt))
        r = ebb__record_of(rt, &rt->regions, region.id, EBB__REGION_SHIFT, sizeof *r);
    if (EBB__UNLIKELY(r == NULL || poll == NULL || !takes_at_once(rt, r))) {
        return ebb_spawn_opts_site(cx, region, poll, state, NULL, site);
    }
    ebb__task *t = task_add(rt, r, poll, state, site);
    ebb__enqueue_ready(rt, t);
    return (ebb_task){ebb__id(rt, t->index, t->generation)};
}

ebb_task ebb__spawn_apart(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                          const ebb_task_opts *opts, const char *site) {
    return spawn_with(cx, region, poll, state, opts, EBB__APART, 16, site);
}

ebb_task ebb__spawn_refused(ebb_cx *cx, ebb_region region, ebb_status why, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st == EBB_OK) st = ebb__admit(rt, ebb__task_of(cx), r);
    if (st == EBB_OK) ebb__region_failed(rt, r, st = why, 0);
    ebb_task id = refuse(rt, cx, region, st);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = id.id, .value = 8});
    ebb__journal_text(rt, site);
    return id;
}

static ebb_status closer_poll(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK; /* settle() runs the region's finalizers; the body does nothing */
}

ebb_status ebb__closer_new(ebb_runtime *rt, ebb__region *r) {
    ebb_status st = room_for_task(rt);
    if (st != EBB_OK) return st;
    ebb__task *t = task_new(rt, r->index, closer_poll, NULL, 0, ebb__cold_of(r)->site);
    t->flags |= F_CLOSER;
    t->phase = 0; /* its id is not valid before it starts */
    ebb__cold_of(r)->closer = t->index;
    r->flags |= R_MORE;
    return EBB_OK;
}

/* The region is Finalizing and has no tasks, so the two inline places are free. */
void ebb__closer_start(ebb_runtime *rt, ebb__region *r) {
    ebb__task *t = ebb__task_at(rt, ebb__cold_of(r)->closer);
    assert(r->state == EBB_REGION_FINALIZING && r->tasks.n == 0 && t->phase == 0);
    t->phase = EBB_TASK_CREATED;
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    rt->stats.spawned++;
    ebb__emit_task_at(rt, EBB_EV_TASK_SPAWNED, t, 2, 0, ebb__cold_at(rt, t->index)->site);
    if (r->request != 0) {
        ebb__task_request(rt, t, ebb__request_kind(r->request), ebb__request_severity(r->request), r->polls,
                          r->cleanup_end);
    } else {
        ebb__enqueue(rt, t);
    }
}

static ebb_task runner_new(ebb_runtime *rt, ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                           ebb__callbacks *callbacks, const char *site) {
    ebb__region *r;
    ebb_status st = ebb__find_region(rt, region, &r);
    if (st != EBB_OK) return refuse(rt, cx, region, st);
    if (r->state > EBB_REGION_DRAINING) return refuse(rt, cx, region, EBB_ERR_CLOSED);
    if (r->runner != 0 || poll == NULL) return refuse(rt, cx, region, EBB_ERR_INVALID);
    st = room_for_task(rt);
    if (st == EBB_OK && !ebb__u32s_reserve(&r->tasks, &rt->allocator)) st = EBB_ERR_NOMEM;
    if (st != EBB_OK) return refuse(rt, cx, region, st);
    ebb__task *t = task_new(rt, r->index, poll, state, r->priority, site);
    t->flags |= F_CLOSER;
    t->pos = ebb__u32s_push(&r->tasks, t->index);
    r->runner = t->index;
    r->flags |= R_MORE;
    r->callbacks = callbacks;
    rt->stats.spawned++;
    ebb__emit_task_at(rt, EBB_EV_TASK_SPAWNED, t, 4, ebb__task_id(ebb__task_of(cx)), site);
    if (r->request != 0) {
        ebb__task_request(rt, t, ebb__request_kind(r->request), ebb__request_severity(r->request), r->polls,
                          r->cleanup_end);
        if (r->flags & R_FORCED) ebb__task_overdue(rt, t); /* the force reached only the tasks of that time */
    } else {
        ebb__enqueue(rt, t);
    }
    return (ebb_task){ebb__task_id(t)};
}

ebb_task ebb__runner_new(ebb_cx *cx, ebb_region region, ebb_poll_fn poll, void *state,
                         ebb__callbacks *callbacks, const char *site) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_task id = runner_new(rt, cx, region, poll, state, callbacks, site);
    ebb__journal(rt, cx, (ebb_record){.type = J_SPAWN, .region = region.id, .other = id.id, .value = 4});
    ebb__journal_text(rt, site);
    return id;
}

ebb_status ebb__task_room(ebb_runtime *rt) {
    return room_for_task(rt);
}

ebb_task ebb__supervisor_spawn(ebb_runtime *rt, ebb_cx *cx, ebb__region *drain, ebb_poll_fn poll, void *state,
                               const char *site) {
    ebb_task id = spawn(rt, cx, (ebb_region){ebb__region_id(rt, drain)}, poll, state, NULL, 0, site);
    ebb__task *t;
    if (ebb__find_task(rt, id, &t) != EBB_OK) return id;
    t->flags |= F_CLOSER | F_TIMED;
    rt->timed.members++;
    return id;
}
