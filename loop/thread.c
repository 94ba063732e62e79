/* Loops on their own threads. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "loop/loop.h"

/* What the two threads share besides the loop's inbox. `lock` guards `ended`: after it is set, `async` must not be
 * used. The loop's thread posts `ready` twice: when it has started, and when its root has closed. It writes
 * `started` before the first, `status` and `busy` before the second. */
struct ebb__owner {
    uv_thread_t thread;
    uv_sem_t ready;
    uv_mutex_t lock;
    bool ended;
    _Atomic bool stop;   /* requested */
    bool root_cancelled; /* the root was cancelled because of `stop` */
    ebb_loop_opts opts;
    ebb_fiber_fn fn;
    void *arg;
    uv_loop_t uv;
    ebb_region first; /* 0: not open yet */
    ebb_status started, status;
    bool busy; /* the root has closed, but libuv still uses memory of the loop */
};

/* ---- on the loop's thread ------------------------------------------------------------------------------ */

static const char site[] = "ebb_loop_new";

static bool is_closed(const ebb_runtime *rt) {
    ebb__region *r;
    return ebb__region_get(rt, ebb_runtime_root(rt), &r) == EBB_OK &&
           ebb__region_state(r) == EBB_REGION_CLOSED;
}

static ebb_status first_open(ebb_cx *cx, ebb__owner *o) {
    ebb_status st = ebb_fiber_setup(ebb_cx_runtime(cx), &(ebb_fiber_opts){.size = 0});
    bool fibers = st != EBB_ERR_LIMIT; /* EBB_ERR_LIMIT: this machine has no fibers */
    if (st != EBB_OK && fibers) return st;
    o->first = ebb_region_open_site(cx, NULL, site);
    ebb_task task = fibers ? ebb_fiber_spawn_site(cx, o->first, o->fn, o->arg, NULL, site)
                           : ebb_spawn_site(cx, o->first, o->fn, o->arg, site);
    return ebb_id_status(task.id);
}

/* Masked, so that it receives the region's outcome even after a cancel. */
static ebb_status join_first(ebb_cx *cx, void *arg) {
    ebb__owner *o = arg;
    if (o->first.id == 0) {
        (void)ebb_mask(cx);
        o->started = first_open(cx, o);
        if (o->started != EBB_OK) return EBB_OK;
    }
    ebb_status st = ebb_region_join(cx, o->first);
    if (st == EBB_PENDING) return st;
    o->status = st;
    ebb_region_close(cx, ebb_cx_region(cx));
    return EBB_OK;
}

/* Polls join_first only: the first task runs with the loop. */
static ebb_status first_task(ebb_loop *l) {
    ebb_cx *host = ebb_loop_cx(l);
    ebb_status st =
        ebb_id_status(ebb_spawn_site(host, ebb_runtime_root(l->rt), join_first, l->owner, site).id);
    if (st != EBB_OK) return st;
    (void)ebb_runtime_pump(l->rt, 1);
    return l->owner->started;
}

void ebb__owner_turn(ebb_loop *l) {
    ebb__owner *o = l->owner;
    /* Acquire: pairs with the release in request_stop. */
    if (!o->root_cancelled && atomic_load_explicit(&o->stop, memory_order_acquire)) {
        o->root_cancelled = true;
        ebb_region_cancel(ebb_runtime_host(l->rt), ebb_runtime_root(l->rt), EBB_CANCEL_SHUTDOWN,
                          "the loop was stopped");
    }
    if (is_closed(l->rt)) l->os->stop(l->uv);
}

static void internal_closed(uv_handle_t *uv) {
    ebb_loop *l = uv->data;
    l->internals--;
}

/* Waits for operations that libuv can't stop: they use memory of the loop. */
static void wind_up(ebb_loop *l) {
    ebb__owner *o = l->owner;
    while (l->handles.live > 0 || l->requests.live > 0) (void)uv_run(&o->uv, UV_RUN_ONCE);
    uv_mutex_lock(&o->lock);
    o->ended = true;
    uv_mutex_unlock(&o->lock);
    ebb__loop_fini(l, internal_closed);
    while (l->internals > 0) (void)uv_run(&o->uv, UV_RUN_ONCE);
    (void)uv_loop_close(&o->uv);
}

/* EBB_OK: the loop and its first task have started. */
static ebb_status begin(ebb_loop *l) {
    ebb__owner *o = l->owner;
    int code = uv_loop_init(&o->uv);
    if (code != 0) return ebb__uv_status(code);
    ebb_status st = ebb__loop_init(l, &o->uv, &o->opts);
    if (st != EBB_OK) {
        (void)uv_loop_close(&o->uv);
        return st;
    }
    st = first_task(l);
    if (st != EBB_OK) wind_up(l);
    return st;
}

static void thread_main(void *arg) {
    ebb_loop *l = arg;
    ebb__owner *o = l->owner;
    o->started = begin(l);
    bool runs = o->started == EBB_OK;
    uv_sem_post(&o->ready);
    if (!runs) return;
    while (!is_closed(l->rt)) (void)uv_run(&o->uv, UV_RUN_DEFAULT);
    (void)uv_run(&o->uv, UV_RUN_NOWAIT); /* libuv releases closed handles after a turn */
    o->busy = l->handles.live > 0 || l->requests.live > 0;
    uv_sem_post(&o->ready);
    wind_up(l);
}

/* ---- on the thread that makes it -------------------------------------------------------------------------- */

static void owner_free(ebb_loop *l) {
    ebb__owner *o = l->owner;
    ebb_allocator a = o->opts.runtime.allocator;
    ebb_peer_release(l->peer);
    uv_mutex_destroy(&o->lock);
    uv_sem_destroy(&o->ready);
    ebb__free(&a, o, sizeof *o);
    ebb__free(&a, l, sizeof *l);
}

static ebb_loop *owner_new(const ebb_loop_opts *opts, ebb_fiber_fn fn, void *arg) {
    const ebb_allocator *a = &opts->runtime.allocator;
    ebb_loop *l = ebb__alloc(a, sizeof *l);
    ebb__owner *o = l == NULL ? NULL : ebb__alloc(a, sizeof *o);
    if (o == NULL || uv_sem_init(&o->ready, 0) != 0) goto no_memory;
    if (uv_mutex_init(&o->lock) != 0) goto no_lock;
    memset(l, 0, sizeof *l);
    o->ended = o->root_cancelled = false;
    atomic_init(&o->stop, false);
    o->opts = *opts;
    o->fn = fn;
    o->arg = arg;
    o->first.id = 0;
    o->started = EBB_OK;
    o->status = EBB_CANCELLED; /* if the region is forced before its end */
    l->owner = o;
    return l;
no_lock:
    uv_sem_destroy(&o->ready);
no_memory:
    ebb__free(a, o, sizeof *o);
    ebb__free(a, l, sizeof *l);
    return NULL;
}

ebb_status ebb_loop_new(const ebb_loop_opts *opts, ebb_fiber_fn fn, void *arg, ebb_loop **out) {
    ebb_loop_opts whole;
    *out = NULL;
    ebb_status st = fn == NULL ? EBB_ERR_INVALID : ebb__loop_take_opts(&whole, opts);
    if (st != EBB_OK) return st;
    ebb_loop *l = owner_new(&whole, fn, arg);
    if (l == NULL) return EBB_ERR_NOMEM;
    ebb__owner *o = l->owner;
    int code = ebb__platform_here()->thread_create(&o->thread, thread_main, l);
    if (code != 0) {
        owner_free(l);
        return ebb__uv_status(code);
    }
    uv_sem_wait(&o->ready);
    st = o->started;
    if (st == EBB_OK) {
        *out = l;
        return EBB_OK;
    }
    uv_thread_join(&o->thread);
    owner_free(l);
    return st;
}

ebb_status ebb_loop_join(ebb_loop *l) {
    if (l == NULL || l->owner == NULL) return EBB_ERR_INVALID;
    if (l->thread == ebb__this_thread()) return EBB_ERR_THREAD;
    uv_thread_join(&l->owner->thread);
    ebb_status st = l->owner->status;
    owner_free(l);
    return st;
}

static void request_stop(ebb_loop *l) {
    /* Release: the loop's thread sees everything this thread did before. */
    atomic_store_explicit(&l->owner->stop, true, memory_order_release);
    uv_mutex_lock(&l->owner->lock);
    if (!l->owner->ended) (void)l->os->async_send(&l->async);
    uv_mutex_unlock(&l->owner->lock);
}

ebb_status ebb_loop_stop(ebb_loop *l) {
    if (l == NULL || l->owner == NULL) return EBB_ERR_INVALID;
    if (l->thread == ebb__this_thread()) return EBB_ERR_THREAD;
    request_stop(l);
    return ebb_loop_join(l);
}

bool ebb__loop_leave(ebb_loop *l, ebb_status *st) {
    request_stop(l);
    uv_sem_wait(&l->owner->ready);
    if (l->owner->busy) return false;
    *st = ebb_loop_join(l);
    return true;
}
