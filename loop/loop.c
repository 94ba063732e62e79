/* How a runtime joins a libuv loop, takes turns with it, and leaves. */
#define _POSIX_C_SOURCE 200809L
#include "loop/loop.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "loop/handle.h"
#include "loop/process.h"
#include "loop/recording.h"
#include "loop/uv_request.h"

enum { POLLS_A_TURN = 1024, CLOSING_TURNS = 64, REQUEST_SHIFT = 4 };

/* The loops of this thread. Disposing of a handle's value finds its loop here by the id. */
static _Thread_local ebb_loop *here;

/* ---- finding a loop --------------------------------------------------------------------------------- */

void ebb__loop_wake(void *loop) {
    ebb_loop *l = loop;
    (void)l->os->async_send(&l->async);
}

ebb_loop *ebb__loop_here(uint8_t runtime_id) {
    ebb_loop *l = here;
    while (l != NULL && ebb__rt_id(l->rt) != runtime_id) l = l->next_here;
    return l;
}

/* ---- pending work -------------------------------------------------------------------------------------- */

/* Callback runners are tasks, but no work of the program. */
static uint32_t runners(const ebb__heap *h, uint64_t *producers) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < h->regions_n; i++) {
        const ebb__region_futures *s = ebb__region_futures_at(h, i);
        if (s == NULL) continue;
        n += s->cx != NULL;
        *producers += s->producers;
    }
    return n;
}

bool ebb__loop_is_busy(const ebb_loop *l) {
    const ebb__heap *h = ebb__heap_at(l->rt);
    uint64_t tasks = ebb__rt_tasks(l->rt), producers = 0;
    if (l->pending > 0 || (tasks > 0 && tasks >= h->regions_n)) return true;
    uint32_t serving = runners(h, &producers);
    return producers > 0 || tasks > serving;
}

static void set_alive(ebb_loop *l, bool alive) {
    if (alive == l->alive) return;
    l->alive = alive;
    if (alive) l->os->ref((uv_handle_t *)&l->async);
    else l->os->unref((uv_handle_t *)&l->async);
}

/* ---- turns ----------------------------------------------------------------------------------------------- */

static void on_async(uv_async_t *uv) {
    (void)uv; /* waking libuv is enough: the pump runs in the check phase */
}

static void on_idle(uv_idle_t *uv) {
    (void)uv; /* being active is enough: libuv does not sleep */
}

static void on_timer(uv_timer_t *uv) {
    ebb_loop *l = uv->data;
    l->armed_ms = EBB_FOREVER;
}

/* By libuv's clock, which has the same zero and counts milliseconds. A timer that expires earlier is left as it is. */
static void set_timer(ebb_loop *l, uint64_t due) {
    if (l->kill_at < due) due = l->kill_at;
    if (l->listen_at < due) due = l->listen_at;
    if (l->recording != NULL && ebb__recording_due(l->recording) < due)
        due = ebb__recording_due(l->recording);
    if (due == EBB_FOREVER) return;
    uint64_t ms = due / EBB_MS + (due % EBB_MS != 0), now_ms = l->os->now(l->uv);
    if (ms >= l->armed_ms) return;
    l->armed_ms = ms;
    (void)l->os->timer_start(&l->timer, on_timer, ms > now_ms ? ms - now_ms : 0, 0);
}

static void set_idle(ebb_loop *l, bool more) {
    if (more == l->idling) return;
    l->idling = more;
    if (more) (void)l->os->idle_start(&l->idle, on_idle);
    else (void)l->os->idle_stop(&l->idle);
}

bool ebb__loop_pump_again(ebb_loop *l) {
    if (!l->backlog) l->backlog = ebb_runtime_pump(l->rt, l->polls) == EBB_PENDING;
    return !l->backlog;
}

static void pump_and_flush(ebb_loop *l) {
    l->backlog = ebb_runtime_pump(l->rt, l->polls) == EBB_PENDING;
    if (l->dirty == NULL) return;
    ebb__clock_refresh(l->rt); /* for the timeouts that a flush starts */
    ebb__raw_streams_flush(l);
}

void ebb__loop_pump_early(ebb_loop *l) {
    if (!l->backlog) pump_and_flush(l);
}

static void turn(ebb_loop *l) {
    ebb_runtime_advance(l->rt, l->os->hrtime());
    if (EBB__UNLIKELY(l->kill_at <= ebb__now(l->rt))) ebb__processes_kill(l);
    if (EBB__UNLIKELY(l->listen_at <= ebb__now(l->rt))) ebb__listeners_look(l);
    ebb_inbox_receive(l->rt);
    if (l->raw_reads > 0) l->raw_reads_last = l->raw_reads;
    l->raw_reads = 0;
    pump_and_flush(l);
    l->turns++;
    l->entered = false;
    set_idle(l, l->backlog || l->dirty != NULL);
    set_alive(l, l->backlog || l->owner != NULL || ebb__loop_is_busy(l));
    if (EBB__UNLIKELY(l->recording != NULL)) ebb__recording_turn(l->recording, l->rt);
    if (l->owner != NULL) ebb__owner_turn(l);
}

static void on_check(uv_check_t *uv) {
    turn(uv->data);
}

/* One turn at most, so that sockets are not delayed. Work that is due after the turn, because a flush has woken a
 * task or a timer has expired, does not wait for libuv's timer, which can't expire before the next millisecond. */
static void on_prepare(uv_prepare_t *uv) {
    ebb_loop *l = uv->data;
    uint64_t due = ebb__rt_due(l->rt);
    if ((!l->idling && due != EBB_FOREVER && due <= l->os->hrtime()) || l->entered) {
        turn(l);
        due = ebb__rt_due(l->rt);
    }
    if (due <= ebb__now(l->rt)) set_idle(l, true);
    else set_timer(l, due);
}

/* ---- life -------------------------------------------------------------------------------------------------- */

ebb_status ebb__loop_take_opts(ebb_loop_opts *o, const ebb_loop_opts *given) {
    ebb_status st = EBB__OPTS_COPY(o, given);
    if (st == EBB_OK) st = EBB__OPTS_INNER(&o->runtime);
    return st == EBB_OK && o->runtime.allocator.fn == NULL ? EBB_ERR_INVALID : st;
}

static uint64_t read_clock(void *loop) {
    return ((const ebb_loop *)loop)->os->hrtime();
}

/* The argument is the host's. */
static uint64_t read_heap_clock(void *ctx) {
    (void)ctx;
    return ebb__platform_here()->hrtime();
}

/* The ids of loops are those of their runtimes: a bit each, for the whole process. */
static _Atomic uint64_t ids[4];

static bool id_claim(uint8_t id) {
    uint64_t bit = UINT64_C(1) << (id % 64);
    /* Relaxed: the ids have to be distinct, and order nothing else. */
    return !(atomic_fetch_or_explicit(&ids[id / 64], bit, memory_order_relaxed) & bit);
}

static void id_release(uint8_t id) {
    atomic_fetch_and_explicit(&ids[id / 64], ~(UINT64_C(1) << (id % 64)), memory_order_relaxed);
}

/* EBB_ERR_BUSY: another loop has the id. EBB_ERR_LIMIT: no id is free. */
static ebb_status id_choose(uint8_t *id) {
    if (*id != 0) return id_claim(*id) ? EBB_OK : EBB_ERR_BUSY;
    for (uint8_t i = 1; i != 0; i++) {
        if (!id_claim(i)) continue;
        *id = i;
        return EBB_OK;
    }
    return EBB_ERR_LIMIT;
}

static ebb_status runtime_new(ebb_loop *l, const ebb_loop_opts *opts) {
    ebb_runtime_opts rt = opts->runtime;
    ebb_heap_opts heap;
    ebb_status st = EBB__OPTS_COPY(&heap, opts->heap);
    rt.now = l->os->hrtime();
    rt.runtime_id = l->id;
    rt.clock = read_clock;
    rt.clock_ctx = l;
    if (heap.clock == NULL) heap.clock = read_heap_clock;
    if (st == EBB_OK) st = ebb__recording_new(opts, &rt, &l->recording);
    if (st == EBB_OK) st = ebb_runtime_new(&rt, &l->rt);
    if (st == EBB_OK) st = ebb_heap_setup(l->rt, &heap);
    if (st == EBB_OK && opts->fibers != NULL) st = ebb_fiber_setup(l->rt, opts->fibers);
    if (st == EBB_OK) st = ebb_runtime_adopt(l->rt);
    if (st == EBB_OK) st = ebb_inbox_on_wake(l->rt, ebb__loop_wake, l);
    if (st == EBB_OK) st = ebb_peer_of(l->rt, &l->peer);
    return st;
}

static void internal(ebb_loop *l, uv_handle_t *h) {
    h->data = l;
    l->os->unref(h);
    l->internals++;
}

/* Only the first of these can fail. */
static ebb_status internals_new(ebb_loop *l) {
    int code = l->os->async_init(l->uv, &l->async, on_async);
    if (code != 0) return ebb__uv_status(code);
    (void)l->os->timer_init(l->uv, &l->timer);
    (void)l->os->prepare_init(l->uv, &l->prepare);
    (void)l->os->check_init(l->uv, &l->check);
    (void)l->os->idle_init(l->uv, &l->idle);
    internal(l, (uv_handle_t *)&l->async);
    internal(l, (uv_handle_t *)&l->timer);
    internal(l, (uv_handle_t *)&l->prepare);
    internal(l, (uv_handle_t *)&l->check);
    internal(l, (uv_handle_t *)&l->idle);
    (void)l->os->prepare_start(&l->prepare, on_prepare);
    (void)l->os->check_start(&l->check, on_check);
    return EBB_OK;
}

/* Without this, a write to a closed connection would end the process. */
static void block_sigpipe(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

ebb_status ebb__loop_init(ebb_loop *l, uv_loop_t *uv, const ebb_loop_opts *opts) {
    assert(l->rt == NULL && l->internals == 0 && l->next_here == NULL);
    l->id = opts->runtime.runtime_id;
    ebb_status st = id_choose(&l->id);
    if (st != EBB_OK) return st;
    block_sigpipe();
    l->uv = uv;
    l->os = ebb__platform_here();
    l->allocator = opts->runtime.allocator;
    l->polls = opts->polls != 0 ? opts->polls : POLLS_A_TURN;
    l->thread = ebb__this_thread();
    l->armed_ms = l->kill_at = l->listen_at = EBB_FOREVER;
    ebb__slab_init(&l->handles, sizeof(ebb__handle), 0, EBB__HANDLE_SHIFT, 0);
    ebb__slab_init(&l->requests, sizeof(ebb__uv_request), 0, REQUEST_SHIFT, 0);
    ebb__map_init(&l->by_region, l->allocator, sizeof(ebb__region_handles *));
    st = runtime_new(l, opts);
    if (st == EBB_OK) st = internals_new(l);
    if (st != EBB_OK) {
        ebb__loop_record_end(l);
        ebb_runtime_free(l->rt);
        ebb_peer_release(l->peer);
        l->peer = NULL;
        id_release(l->id);
        return st;
    }
    l->next_here = here;
    here = l;
    if (l->os->attached != NULL) l->os->attached(l);
    return EBB_OK;
}

void ebb__loop_record_end(ebb_loop *l) {
    ebb__recording_end(l->recording, l->rt);
    l->recording = NULL;
}

void ebb__loop_fini(ebb_loop *l, uv_close_cb closed) {
    if (l->os->detaching != NULL) l->os->detaching(l);
    ebb__loop_record_end(l);
    ebb_runtime_free(l->rt); /* from here on no thread wakes the loop */
    ebb__loop_texts_free(l);
    id_release(l->id);
    ebb_loop **at = &here;
    while (*at != l) {
        assert(*at != NULL); /* it is a loop of this thread */
        at = &(*at)->next_here;
    }
    *at = l->next_here;
    ebb__slab_fini(&l->handles, &l->allocator);
    ebb__slab_fini(&l->requests, &l->allocator);
    ebb__map_free(&l->by_region);
    ebb__raw_streams_fini(l);
    l->os->close((uv_handle_t *)&l->async, closed);
    l->os->close((uv_handle_t *)&l->timer, closed);
    l->os->close((uv_handle_t *)&l->prepare, closed);
    l->os->close((uv_handle_t *)&l->check, closed);
    l->os->close((uv_handle_t *)&l->idle, closed);
}

ebb_status ebb_loop_attach(struct uv_loop_s *uv, const ebb_loop_opts *opts, ebb_loop **out) {
    ebb_loop_opts o;
    *out = NULL;
    ebb_status st = uv == NULL ? EBB_ERR_INVALID : ebb__loop_take_opts(&o, opts);
    if (st != EBB_OK) return st;
    ebb_loop *l = ebb__alloc(&o.runtime.allocator, sizeof *l);
    if (l == NULL) return EBB_ERR_NOMEM;
    memset(l, 0, sizeof *l);
    st = ebb__loop_init(l, uv, &o);
    if (st == EBB_OK) *out = l;
    else ebb__free(&o.runtime.allocator, l, sizeof *l);
    return st;
}

/* The caller is about to add work: a turn must look at it. */
ebb_cx *ebb_loop_cx(ebb_loop *l) {
    if (l->thread != ebb__this_thread()) return NULL;
    if (!ebb__rt_is_pumping(l->rt)) ebb_runtime_advance(l->rt, l->os->hrtime());
    l->entered = true;
    set_alive(l, true);
    return ebb_runtime_host(l->rt);
}

ebb_runtime *ebb_loop_runtime(const ebb_loop *l) {
    return l->rt;
}

ebb_peer *ebb_loop_peer(const ebb_loop *l) {
    return l->peer;
}

/* ---- closing ------------------------------------------------------------------------------------------------ */

typedef struct list {
    ebb_loop_leftover *at;
    size_t room, n;
} list;

static void note(list *all, ebb_loop_leftover one) {
    if (all->n < all->room) all->at[all->n] = one;
    all->n++;
}

static void note_handles(const ebb_loop *l, list *all) {
    for (uint32_t i = 1; i < l->handles.used; i++) {
        const ebb__handle *h = ebb__slab_at(&l->handles, i);
        if (h->state == EBB__HANDLE_FREE) continue;
        note(all, (ebb_loop_leftover){ebb__handle_what(h), h->site, ebb__handle_id(h), h->list->region});
    }
}

static void note_requests(const ebb_loop *l, list *all) {
    for (uint32_t i = 1; i < l->requests.used; i++) {
        const ebb__uv_request *r = ebb__slab_at(&l->requests, i);
        if (r->index != 0 && r->what != NULL) note(all, (ebb_loop_leftover){r->what, r->site, 0, r->region});
    }
}

static void note_task(void *all, const ebb__task_view *t) {
    note(all, (ebb_loop_leftover){"task", t->site, t->id, t->region});
}

/* Pending operations that are not the loop's own. The loop's own were listed before. */
static void note_futures(const ebb_loop *l, list *all) {
    const ebb__heap *h = ebb__heap_at(l->rt);
    for (uint32_t i = 1; i < h->regions_n; i++) {
        const ebb__region_futures *s = ebb__region_futures_at(h, i);
        for (uint32_t k = 0; s != NULL && k < s->members_n; k++) {
            const ebb_future *f = (const ebb_future *)(const void *)ebb__member_cell(s->members[k]);
            if (!(f->cell.type->reserved & EBB__TYPE_FUTURE) || !(f->flags & EBB__F_WORK)) continue;
            note(all, (ebb_loop_leftover){"operation", f->site, 0, s->region});
        }
    }
}

/* Only empty regions are open: they close without the program's help. */
static bool root_closes(ebb_loop *l) {
    ebb_cx *host = ebb_runtime_host(l->rt);
    ebb_region_state state = EBB_REGION_OPEN;
    ebb_region_close(host, ebb_runtime_root(l->rt));
    for (int i = 0; i < CLOSING_TURNS && ebb_runtime_pump(l->rt, l->polls) == EBB_PENDING; i++) continue;
    (void)ebb_region_state_of(host, ebb_runtime_root(l->rt), &state);
    return state == EBB_REGION_CLOSED;
}

static void internal_closed(uv_handle_t *uv) {
    ebb_loop *l = uv->data;
    ebb_allocator a = l->allocator;
    assert(l->internals > 0);
    if (--l->internals > 0) return;
    ebb_peer_release(l->peer);
    ebb__free(&a, l, sizeof *l);
}

ebb_status ebb_loop_close(ebb_loop *l, ebb_loop_leftover *open, size_t room, size_t *n) {
    list all = {open, open == NULL ? 0 : room, 0};
    if (n != NULL) *n = 0;
    if (l == NULL || l->owner != NULL) return EBB_ERR_INVALID;
    if (l->thread != ebb__this_thread()) return EBB_ERR_THREAD;
    if (ebb__rt_is_pumping(l->rt)) return EBB_ERR_REENTERED;
    note_handles(l, &all);
    note_requests(l, &all);
    ebb__tasks_each(l->rt, NULL, note_task, &all);
    if (all.n == 0) note_futures(l, &all);
    if (n != NULL) *n = all.n;
    if (all.n > 0 || !root_closes(l)) return EBB_ERR_BUSY;
    ebb__loop_fini(l, internal_closed);
    return EBB_OK;
}
