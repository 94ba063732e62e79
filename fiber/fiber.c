/* A fiber is a task whose poll function switches to a stack of its own. An await on that stack parks: parking
 * switches back, and the poll function returns EBB_PENDING. */
#include "fiber/fiber.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "fiber/overflow.h"
#include "fiber/stack.h"
#include "fiber/switch.h"

enum {
    REFUSALS_A_POLL = 64,
    SPARE = 256,            /* pooled stacks beyond the recent peak */
    RECENT_PEAK_MAX = 1024, /* the most that the recent peak adds to the pool */
    DECAY_ENDS = 512,       /* the recent peak decays once in so many ends ... */
    DECAY_PART = 64,        /* ... by this part of its distance to the fibers alive */
    POOL_BYTES = 8 << 20,
    CHAINS_MIN = 64,
    DEFAULT_MAX = EBB__SWITCHES ? EBB_FIBER_MAX : 0
};

/* Only the resuming side writes this variable: the resumed side may run on another thread after a switch. */
static _Thread_local struct {
    ebb__fiber *running;
    bool watched;
} here;

const ebb__fiber *ebb__fiber_here(void) {
    return here.running;
}

static void fiber_end(ebb__fiber *f);

/* ---- the two sides of a switch --------------------------------------------------------------------- */

static void resume(ebb__fiber *f) {
    ebb__fiber *around = here.running; /* a fiber may pump another runtime */
    if (EBB__UNLIKELY(!here.watched)) {
        ebb__overflow_watch();
        here.watched = true;
    }
    here.running = f;
    if (f->confined) ebb__rt_confine(f->all->rt, true);
    ebb__note_resume(&f->notes, f->base, f->all->stack_bytes);
    ebb__switch(&f->caller, f->sp);
    ebb__note_back(&f->notes);
    if (f->confined) ebb__rt_confine(f->all->rt, false);
    here.running = around;
}

static void suspend(ebb__fiber *f) {
    ebb__note_leaves(&f->notes, false);
    ebb__switch(&f->sp, f->caller);
    ebb__note_runs(&f->notes);
}

static void fiber_main(void *fiber) {
    ebb__fiber *f = fiber;
    ebb__note_runs(&f->notes);
    ebb_status st = f->fn(f->cx, f->arg);
    f->status = st == EBB_PENDING ? EBB_ERR_INVALID : st;
    ebb__note_leaves(&f->notes, true);
    ebb__switch(&f->sp, f->caller);
}

/* The task has another poll function, which calls ebb__fiber_poll. So the fiber is not the task's state and is found
 * through `wrapped`. */
static bool is_wrapped(const ebb__fiber *f) {
    return f->cx != NULL && !ebb__task_runs(f->cx, ebb__fiber_poll);
}

static ebb__fiber **chain_of(const ebb__fibers *all, const ebb_cx *cx) {
    return &all->wrapped[ebb__task_number(cx) & (all->room - 1)];
}

static void chain_add(ebb__fibers *all, ebb__fiber *f) {
    ebb__fiber **chain = chain_of(all, f->cx);
    f->chain = *chain;
    *chain = f;
}

/* The stack that was used last is the warmest in the caches. Many fibers that never wait then run on this one stack
 * rather than on one each. The record in the pool gets the colder stack. */
static void swap_stacks(ebb__fiber *f) {
    ebb__fiber *pooled = f->all->pool;
    if (pooled == NULL) return;
    char *base = pooled->base;
    size_t touched = pooled->touched;
    f->all->pooled_touched += f->touched - touched;
    pooled->base = f->base;
    pooled->touched = f->touched;
    f->base = base;
    f->touched = touched;
}

static void fill(ebb__fiber *f) {
    size_t bytes = f->all->stack_bytes;
    memset(f->base, f->paint, bytes);
    f->all->touched += bytes - f->touched;
    f->touched = bytes;
}

static void start(ebb__fiber *f, ebb_cx *cx) {
    swap_stacks(f);
    if (f->paint != EBB__UNPAINTED) fill(f);
    f->cx = cx;
    f->task = ebb_cx_task(cx).id;
    f->refusals = 0;
    f->sp = ebb__switch_start(f->base + f->all->stack_bytes, fiber_main, f);
    ebb__task_watch(cx);
    if (is_wrapped(f)) chain_add(f->all, f);
}

/* Asks the system only for a new stack, for one that is deeper than measured before, or if `always` is set. */
static void measure(ebb__fiber *f, bool always) {
    ebb__fibers *all = f->all;
    size_t depth = (size_t)(f->base + all->stack_bytes - (char *)f->sp);
    if (EBB__LIKELY(depth <= f->touched && !always)) return;
    all->touched -= f->touched;
    f->touched = ebb__stack_touched(f->base, all->stack_bytes, depth);
    all->touched += f->touched;
}

ebb_status ebb__fiber_poll(ebb_cx *cx, void *fiber) {
    ebb__fiber *f = fiber;
    assert(f->status == EBB_PENDING);
    if (f->confined && ebb__task_severity(cx) != 0) {
        ebb__task_watch(cx);
        return EBB_CANCELLED;
    }
    if (f->sp == NULL) start(f, cx);
    resume(f);
    measure(f, false);
    ebb_status st = f->status;
    /* Most fibers leave nothing that needs their stack: they end here, and their tasks as those of poll functions. */
    if (st != EBB_PENDING && !is_wrapped(f) && ebb__task_unwatch(cx)) fiber_end(f);
    return st;
}

static bool park(ebb_cx *cx) {
    ebb__fiber *f = here.running;
    if (f == NULL || f->cx != cx) return false;
    suspend(f);
    return true;
}

/* A fiber that ignores EBB_CANCELLED would never suspend, so no other task would run and the clock would not move.
 * So REFUSALS_A_POLL refused awaits count as one poll: first of the cleanup budget, then of the polls left after it. */
static void refused(ebb_cx *cx) {
    ebb__fiber *f = here.running;
    if (f == NULL || f->cx != cx || ++f->refusals % REFUSALS_A_POLL != 0) return;
    if (!ebb__is_overdue(cx)) (void)ebb_task_wake(cx, ebb_cx_task(cx));
    (void)park(cx);
}

ebb_status ebb__fiber_wait(ebb_cx *cx, ebb_wait *w, const ebb_wait_kind *kind, void *on) {
    ebb__fiber *f = here.running;
    if (f == NULL || f->cx != cx) return EBB_ERR_INVALID;
    ebb__rt_confine(f->all->rt, false);
    ebb_status st = ebb_wait_begin(cx, w, kind, on);
    ebb__rt_confine(f->all->rt, f->confined);
    if (st != EBB_OK) return st;
    suspend(f);
    ebb_wait_end(w);
    return EBB_OK;
}

ebb_status ebb_fiber_park(ebb_cx *cx) {
    if (ebb__is_confined(cx)) return EBB_ERR_DURABLE_CONTEXT;
    return park(cx) ? EBB_OK : EBB_ERR_INVALID;
}

ebb_status ebb_fiber_yield(ebb_cx *cx) {
    if (here.running == NULL || here.running->cx != cx) return EBB_ERR_INVALID;
    if (ebb__is_confined(cx)) return EBB_ERR_DURABLE_CONTEXT;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    (void)park(cx);
    return ebb_checkpoint(cx);
}

/* ---- the pool -------------------------------------------------------------------------------------- */

static void unmap(ebb__fibers *all, ebb__fiber *f) {
    all->touched -= f->touched;
    ebb__stack_unmap(f->base, all->stack_bytes);
    ebb__free(ebb__rt_allocator(all->rt), f, sizeof *f);
}

static ebb__fiber *unpool(ebb__fibers *all) {
    ebb__fiber *f = all->pool;
    all->pool = f->next;
    all->pooled--;
    all->pooled_touched -= f->touched;
    return f;
}

static void trim(ebb__fibers *all, uint32_t most) {
    while (all->pooled > most) unmap(all, unpool(all));
}

/* The pool keeps as many stacks as there are fibers alive, or as there were recently if that is at most
 * RECENT_PEAK_MAX, and SPARE more. A load that returns finds its stacks; the peak of a load that does not return
 * decays as other fibers end. The memory of pooled stacks is bounded too, because a deep stack costs more to keep
 * than it saves. */
static void trim_pool(ebb__fibers *all) {
    if (all->ends % DECAY_ENDS == 0)
        all->recent_peak -= (all->recent_peak - all->alive + DECAY_PART - 1) / DECAY_PART;
    while (all->pooled_touched > POOL_BYTES) unmap(all, unpool(all));
    uint32_t recent_peak = all->recent_peak < RECENT_PEAK_MAX ? all->recent_peak : RECENT_PEAK_MAX;
    trim(all, (recent_peak > all->alive ? recent_peak : all->alive) + SPARE);
}

/* Doubles the chains, so that there are at least as many as fibers. */
static bool grow_chains(ebb__fibers *all) {
    uint32_t room = all->room == 0 ? CHAINS_MIN : 2 * all->room;
    ebb__fiber **wide = ebb__alloc(ebb__rt_allocator(all->rt), room * sizeof(void *));
    if (wide == NULL) return false;
    memset((void *)wide, 0, room * sizeof(void *));
    ebb__free(ebb__rt_allocator(all->rt), (void *)all->wrapped, all->room * sizeof(void *));
    all->wrapped = wide;
    all->room = room;
    for (ebb__fiber *f = all->first; f != NULL; f = f->next) {
        if (is_wrapped(f)) chain_add(all, f);
    }
    return true;
}

static ebb__fiber *make(ebb__fibers *all) {
    if (all->alive + all->pooled == all->room && !grow_chains(all)) return NULL;
    ebb__fiber *f = ebb__alloc(ebb__rt_allocator(all->rt), sizeof *f);
    if (f == NULL) return NULL;
    char *base = ebb__stack_map(all->stack_bytes);
    if (base == NULL) {
        ebb__free(ebb__rt_allocator(all->rt), f, sizeof *f);
        return NULL;
    }
    *f = (ebb__fiber){.base = base};
    return f;
}

static void link_alive(ebb__fibers *all, ebb__fiber *f) {
    f->next = all->first;
    f->prev = NULL;
    if (all->first != NULL) all->first->prev = f;
    all->first = f;
    if (++all->alive > all->peak) all->peak = all->alive;
    if (all->alive > all->recent_peak) all->recent_peak = all->alive;
}

static void unlink_alive(ebb__fibers *all, ebb__fiber *f) {
    if (f->prev != NULL) f->prev->next = f->next;
    else all->first = f->next;
    if (f->next != NULL) f->next->prev = f->prev;
    all->alive--;
}

/* Also for a fiber that is still suspended: its task was abandoned, and it is never resumed. */
static void fiber_end(ebb__fiber *f) {
    ebb__fibers *all = f->all;
    assert(f != here.running);
    ebb__note_ends(&f->notes, f->base, all->stack_bytes);
    unlink_alive(all, f);
    if (++all->ends % DECAY_ENDS == 0 && f->sp != NULL)
        measure(f, true); /* the stack may have been deeper between two waits */
    f->next = all->pool;
    all->pool = f;
    all->pooled++;
    all->pooled_touched += f->touched;
    trim_pool(all);
}

void ebb__fiber_drop(ebb__fiber *f) {
    assert(f->cx == NULL);
    fiber_end(f);
}

/* ---- a runtime's fibers ---------------------------------------------------------------------------- */

static void wrapped_ended(ebb__fibers *all, const ebb_cx *cx) {
    ebb__fiber **at = chain_of(all, cx), *f;
    while ((f = *at) != NULL && f->cx != cx) at = &f->chain;
    if (f == NULL) return;
    *at = f->chain;
    fiber_end(f);
}

static void task_ended(ebb_cx *cx, ebb_status status) {
    ebb__fiber *own = ebb__task_state(cx, ebb__fiber_poll);
    (void)status;
    if (own != NULL) fiber_end(own);
    else wrapped_ended(ebb__fibers_at(ebb__rt_of(cx)), cx);
}

static void fibers_free(ebb_runtime *rt);
static const ebb__layer layer = {
    .slot = EBB__FIBER_SLOT,
    .hooks = {.park = park, .await_refused = refused, .task_ended = task_ended, .freed = fibers_free}};

static void fibers_free(ebb_runtime *rt) {
    const ebb_allocator *a = ebb__rt_allocator(rt);
    ebb__fibers *all = ebb__fibers_at(rt);
    while (all->first != NULL) fiber_end(all->first);
    trim(all, 0);
    ebb__free(a, (void *)all->wrapped, all->room * sizeof(void *));
    ebb__free(a, all, sizeof *all);
    ebb__layer_remove(rt, &layer);
}

/* NULL: no memory. */
static ebb__fibers *fibers_of(ebb_runtime *rt) {
    ebb__fibers *all = ebb__fibers_at(rt);
    if (EBB__LIKELY(all != NULL)) return all;
    const ebb_allocator *a = ebb__rt_allocator(rt);
    all = ebb__alloc(a, sizeof *all);
    if (all == NULL) return NULL;
    *all =
        (ebb__fibers){.rt = rt, .stack_bytes = ebb__stack_round(EBB_FIBER_STACK_BYTES), .max = DEFAULT_MAX};
    if (!grow_chains(all)) {
        ebb__free(a, all, sizeof *all);
        return NULL;
    }
    ebb_status st = ebb__layer_add(rt, &layer, all);
    assert(st == EBB_OK);
    (void)st;
    return all;
}

ebb_status ebb_fiber_setup(ebb_runtime *rt, const ebb_fiber_opts *opts) {
    ebb_fiber_opts o;
    if (opts == NULL) return EBB_ERR_INVALID;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st != EBB_OK) return st;
    uint32_t bytes = o.stack_bytes != 0 ? o.stack_bytes : EBB_FIBER_STACK_BYTES;
    if (bytes < EBB_FIBER_STACK_LEAST || bytes > EBB_FIBER_STACK_MOST) return EBB_ERR_INVALID;
    if (DEFAULT_MAX == 0) return EBB_ERR_LIMIT;
    ebb__fibers *all = fibers_of(rt);
    if (all == NULL) return EBB_ERR_NOMEM;
    if (all->alive > 0) return EBB_ERR_INVALID;
    trim(all, 0);
    all->stack_bytes = ebb__stack_round(bytes);
    all->max = o.max != 0 ? o.max : DEFAULT_MAX;
    return EBB_OK;
}

void ebb_fiber_stats_of(const ebb_runtime *rt, ebb_fiber_stats *out) {
    const ebb__fibers *all = ebb__fibers_at(rt);
    *out = all == NULL ? (ebb_fiber_stats){0}
                       : (ebb_fiber_stats){all->alive, all->peak, all->pooled, all->touched};
}

void ebb__fibers_trim(ebb_runtime *rt) {
    ebb__fibers *all = ebb__fibers_at(rt);
    if (all == NULL) return;
    all->recent_peak = all->alive;
    trim(all, 0);
}

/* ---- spawn ----------------------------------------------------------------------------------------- */

ebb_status ebb__fiber_new(ebb_runtime *rt, ebb_fiber_fn fn, void *arg, const char *site, ebb__fiber **out) {
    ebb__fibers *all = fibers_of(rt);
    if (all == NULL) return EBB_ERR_NOMEM;
    if (all->alive >= all->max) return EBB_ERR_LIMIT;
    ebb__fiber *f = all->pool != NULL ? unpool(all) : make(all);
    if (f == NULL) return EBB_ERR_NOMEM;
    f->sp = NULL; /* start() and link_alive() set the others */
    f->cx = NULL;
    f->status = EBB_PENDING;
    f->confined = false;
    f->paint = EBB__UNPAINTED;
    f->fn = fn;
    f->arg = arg;
    f->all = all;
    f->site = site;
    f->notes = (ebb__notes){0};
    link_alive(all, f);
    *out = f;
    return EBB_OK;
}

static ebb_task spawn(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg, bool confined, int paint,
                      const ebb_task_opts *opts, const char *site) {
    ebb__fiber *f;
    if (fn == NULL || ebb__is_confined(cx)) /* the kernel refuses it */
        return ebb_spawn_opts_site(cx, region, NULL, NULL, opts, site);
    ebb_status st = ebb__fiber_new(ebb__rt_of(cx), fn, arg, site, &f);
    if (st != EBB_OK) return ebb__spawn_refused(cx, region, st, site);
    f->confined = confined;
    f->paint = (int16_t)paint;
    ebb_task id = opts == NULL ? ebb_spawn_site(cx, region, ebb__fiber_poll, f, site)
                               : ebb_spawn_opts_site(cx, region, ebb__fiber_poll, f, opts, site);
    if (ebb_id_status(id.id) != EBB_OK) ebb__fiber_drop(f);
    return id;
}

ebb_task ebb_fiber_spawn_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site) {
    return spawn(cx, region, fn, arg, false, EBB__UNPAINTED, opts, site);
}

ebb_task ebb__fiber_spawn_confined(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg, int paint,
                                   const ebb_task_opts *opts, const char *site) {
    assert(paint >= EBB__UNPAINTED && paint <= UINT8_MAX);
    return spawn(cx, region, fn, arg, true, paint, opts, site);
}

ebb_future *ebb_fiber_go_site(ebb_cx *cx, ebb_region region, ebb_fiber_fn fn, void *arg,
                              const ebb_task_opts *opts, const char *site) {
    ebb__fiber *f = NULL;
    ebb_status st = fn == NULL ? EBB_ERR_INVALID : ebb__fiber_new(ebb__rt_of(cx), fn, arg, site, &f);
    if (st != EBB_OK) return ebb_future_failed_site(cx, st, site);
    ebb_future *future = ebb_go_site(cx, region, ebb__fiber_poll, f, opts, site);
    if (ebb_future_status_of(future) != EBB_PENDING) ebb__fiber_drop(f); /* the task was not spawned */
    return future;
}
