/* The callback runner of a region's futures: its life, the members, the timers, the close. */
#include "future/region_futures.h"

#include "base/alloc.h"
#include "future/ended.h"
#include "future/promise.h"
#include "kernel/layer.h"

enum {
    WORK_A_POLL = 4096,
    POSTPONED = 1024,
    /* polls of the runtime between two steps of a collection, because there may be many callback runners */
    POLLS_A_STEP = 256,
    ARENA_CHUNK = 16384
};

/* ---- members ---------------------------------------------------------------------------------------------- */

static bool members_grow(ebb__region_futures *s) {
    const ebb_allocator *a = &s->heap->allocator;
    uint32_t room = s->members_room == 0 ? 16 : s->members_room * 2;
    uintptr_t *m = ebb__resize(a, s->members, s->members_room * sizeof *m, room * sizeof *m);
    if (m == NULL) return false;
    s->members = m;
    s->members_room = s->room = room;
    return true;
}

void ebb__member_remove(ebb__region_futures *s, ebb__cell *c) {
    ebb__shade(s->heap, c);
    uintptr_t last = s->members[--s->members_n];
    s->members[c->member - 1] = last;
    ebb__member_cell(last)->member = c->member;
    c->member = 0;
}

/* ---- timers ----------------------------------------------------------------------------------------------- */

static bool sooner(const ebb__due *a, const ebb__due *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void due_put(ebb__region_futures *s, uint32_t i, ebb__due d) {
    s->dues[i] = d;
    d.future->spare = i + 1;
}

static void due_up(ebb__region_futures *s, uint32_t i, ebb__due d) {
    while (i > 0 && sooner(&d, &s->dues[(i - 1) / 2])) {
        due_put(s, i, s->dues[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    due_put(s, i, d);
}

static void due_down(ebb__region_futures *s, uint32_t i, ebb__due d) {
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= s->dues_n) break;
        if (child + 1 < s->dues_n && sooner(&s->dues[child + 1], &s->dues[child])) child++;
        if (!sooner(&s->dues[child], &d)) break;
        due_put(s, i, s->dues[child]);
        i = child;
    }
    due_put(s, i, d);
}

/* Arms the runtime's timer for the first of `dues`; disarms it if there is none. */
static ebb_status retime(ebb__region_futures *s) {
    uint64_t at = s->dues_n == 0 || s->cx == NULL ? EBB_FOREVER : s->dues[0].at;
    if (at == s->timer_at) return EBB_OK;
    ebb_cx *host = ebb_runtime_host(s->heap->rt);
    if (s->timer.id != 0) (void)ebb_timer_disarm(host, s->timer);
    s->timer.id = 0;
    s->timer_at = EBB_FOREVER;
    if (at == EBB_FOREVER) return EBB_OK;
    ebb_timer timer = ebb_timer_arm(host, s->runner, at);
    ebb_status st = ebb_id_status(timer.id);
    if (st != EBB_OK) return st;
    s->timer = timer;
    s->timer_at = at;
    return EBB_OK;
}

ebb_status ebb__due_add(ebb__region_futures *s, ebb_future *f, uint64_t at) {
    if (s->dues_n == s->dues_room) {
        uint32_t room = s->dues_room == 0 ? 8 : s->dues_room * 2;
        ebb__due *d = ebb__resize(&s->heap->allocator, s->dues, s->dues_room * sizeof *d, room * sizeof *d);
        if (d == NULL) return EBB_ERR_NOMEM;
        s->dues = d;
        s->dues_room = room;
    }
    s->dues_n++;
    due_up(s, s->dues_n - 1, (ebb__due){at, s->due_order++, f});
    ebb_status st = s->dues[0].at < s->timer_at ? retime(s) : EBB_OK;
    if (st != EBB_OK) ebb__due_remove(s, f);
    return st;
}

void ebb__due_remove(ebb__region_futures *s, ebb_future *f) {
    if (f->spare == 0) return;
    uint32_t i = f->spare - 1;
    f->spare = 0;
    ebb__due last = s->dues[--s->dues_n];
    if (i == s->dues_n) return;
    if (i > 0 && sooner(&last, &s->dues[(i - 1) / 2])) due_up(s, i, last);
    else due_down(s, i, last);
}

static bool fire_timers(ebb__region_futures *s, uint32_t *work) {
    uint64_t now = ebb__now(s->heap->rt);
    if (now >= s->timer_at) { /* it has fired, or the timer wheel is about to fire it */
        (void)ebb_timer_disarm(ebb_runtime_host(s->heap->rt), s->timer);
        s->timer.id = 0;
        s->timer_at = EBB_FOREVER;
    }
    while (s->dues_n > 0 && s->dues[0].at <= now) {
        if (*work == 0) return false;
        --*work;
        ebb_future *f = s->dues[0].future;
        ebb__due_remove(s, f);
        ebb__watch_callback(s, f);
        if (!ebb__has_ended(f)) ebb__kind_of(f)->fired(s, f);
    }
    return true;
}

/* ---- the close -------------------------------------------------------------------------------------------- */

static const ebb__kind closing_kind = {
    .type = {"closing", sizeof(ebb_future), ebb__trace_future, NULL, EBB__TYPE_OWN | EBB__TYPE_FUTURE},
};

ebb_future *ebb_closing_site(ebb_cx *cx, const char *site) {
    ebb_status st = EBB_OK;
    if (ebb__region_is(ebb__rt_of(cx), ebb__region_of(cx), EBB__REGION_CLOSING)) {
        return ebb_future_ready_site(cx, ebb_value_none(), site);
    }
    ebb_future *f = ebb__future_new(cx, &closing_kind, site, &st);
    if (f == NULL) return ebb__failed(st);
    ebb__region_futures_of(f)->listens = true;
    return f;
}

static void notify_of_close(ebb__region_futures *s, ebb_future *f) {
    if (ebb__kind_of(f) == &closing_kind) {
        (void)ebb__complete(f, ebb_value_none());
    } else if (ebb__is_promise(f) && f->flags & EBB__F_WORK && !ebb__has_ended(f)) {
        const ebb__promise *p = (const ebb__promise *)(const void *)f;
        if (p->op->closing != NULL) p->op->closing(s->cx, f, p->arg);
    }
}

/* Notifies the members that want to know of the region's close, once. User code may remove members, and so move a
 * notified one to an index that is yet to be visited. */
static void follow_close(ebb__region_futures *s, bool closing) {
    if (s->closed || !closing) return;
    s->closed = true;
    for (uint32_t i = s->listens ? s->members_n : 0; i > 0; i--) {
        ebb_future *f = (ebb_future *)(void *)ebb__member_cell(s->members[i - 1]);
        bool notified = (s->members[i - 1] & 2) != 0;
        s->members[i - 1] |= 2;
        if (!notified && f->cell.type->reserved & EBB__TYPE_FUTURE) notify_of_close(s, f);
        if (i > s->members_n) i = s->members_n + 1;
    }
}

/* ---- the callback runner ---------------------------------------------------------------------------------- */

void ebb__region_futures_wake(ebb__region_futures *s) {
    if (s->cx != NULL && !s->ending) (void)ebb_task_wake(ebb_runtime_host(s->heap->rt), s->runner);
}

/* A cancel of the region spares the futures that its masked tasks await, the futures that a release or a finally has
 * returned, and the inputs of both. They are marked by EBB__F_SPARED. While inputs are traversed, the futures to
 * visit are linked by local_next, which only queued futures use; spared futures in the queue are found there. */
static ebb_future *spare_one(ebb__region_futures *s, ebb_future *f, ebb_future *list) {
    const uint32_t out = EBB__F_STATIC | EBB__F_SPARED;
    if (f == NULL || f->flags & out || f->cell.region != s->index || ebb__has_ended(f)) return list;
    f->flags |= EBB__F_SPARED;
    s->spared = true;
    if (f->flags & EBB__F_QUEUED) {
        s->spared_queued = true;
        return list;
    }
    f->local_next = list;
    return f;
}

static ebb_future *spare_inputs(ebb__region_futures *s, ebb_future *f, ebb_future *list) {
    uint32_t kind = f->cell.type->reserved;
    if (kind & EBB__TYPE_SINGLE) {
        list = spare_one(s, ebb__edge_input(&((ebb__single *)(void *)f)->edge), list);
    } else if (kind & EBB__TYPE_MANY) {
        for (ebb__edges *p = ((ebb__many *)(void *)f)->edges; p != NULL; p = p->next) {
            for (uint32_t i = 0; i < p->n; i++) list = spare_one(s, ebb__edge_input(&p->item[i].edge), list);
        }
    }
    return list;
}

static void spare_all(ebb__region_futures *s, ebb_future *list) {
    do {
        while (list != NULL) {
            ebb_future *f = list;
            list = f->local_next;
            f->local_next = NULL;
            list = spare_inputs(s, f, list);
        }
        if (!s->spared_queued) return;
        s->spared_queued = false;
        for (ebb_future *f = s->first; f != NULL; f = f->local_next) {
            if (f->flags & EBB__F_SPARED && !ebb__has_ended(f)) list = spare_inputs(s, f, list);
        }
    } while (true);
}

static void spare_needed(ebb__region_futures *s) {
    ebb_future *list = NULL;
    for (uint32_t i = 0; i < s->members_n; i++) {
        ebb__cell *c = ebb__member_cell(s->members[i]);
        list = spare_one(s, ebb__awaited_masked(c), list);
        if (!(c->type->reserved & EBB__TYPE_FUTURE)) continue;
        ebb_future *f = (ebb_future *)(void *)c;
        if (f->flags & EBB__F_CLEANUP) list = spare_one(s, f, list);
    }
    spare_all(s, list);
}

/* Cancels the members; with `all` also the spared ones. A member that another thread has ended is queued before its
 * message comes. False if another thread is ending one just now. No user code runs, so the members do not change
 * meanwhile. */
static bool cancel_members(ebb__region_futures *s, ebb_cancel_kind kind, bool all) {
    bool all_here = true;
    for (uint32_t i = s->members_n; i > 0; i--) {
        ebb__cell *c = ebb__member_cell(s->members[i - 1]);
        if (!(c->type->reserved & EBB__TYPE_FUTURE)) continue;
        ebb_future *f = (ebb_future *)(void *)c;
        if (f->flags & EBB__F_SPARED && !all) continue;
        if (f->flags & EBB__F_FINISHED || ebb__cancel_as(f, kind)) continue;
        if (ebb__has_ended(f)) ebb__enqueue_future(f);
        else all_here = false;
    }
    return all_here;
}

static void cancel_all(ebb__region_futures *s, ebb_cx *cx, const ebb__runner_view *v) {
    (void)ebb_checkpoint(cx);
    if (!v->overdue) spare_needed(s);
    (void)cancel_members(s, (ebb_cancel_kind)v->request, v->overdue);
    s->cancel_seen = true;
}

/* Applies the region's cancel to the futures, once; a force also to futures that callbacks make after it. */
static void follow_region(ebb__region_futures *s, ebb_cx *cx, const ebb__runner_view *v) {
    if (v->request == 0) return;
    if (!s->cancel_seen || v->overdue) cancel_all(s, cx, v);
    /* Callbacks that run from now on are cleanup, and may start work. */
    if (!v->masked) (void)ebb_mask(cx);
}

/* No masked task is left in the region: cancels the futures that were spared for one, unless a cleanup waits for
 * them. */
static void cancel_spared(ebb__region_futures *s) {
    const uintptr_t was_spared = 4;
    for (uint32_t i = 0; i < s->members_n; i++) {
        ebb_future *f = (ebb_future *)(void *)ebb__member_cell(s->members[i]);
        if (!(f->cell.type->reserved & EBB__TYPE_FUTURE) || !(f->flags & EBB__F_SPARED)) continue;
        f->flags = (uint16_t)(f->flags & ~EBB__F_SPARED);
        s->members[i] |= was_spared;
    }
    spare_needed(s);
    for (uint32_t i = s->members_n; i > 0; i--) {
        ebb_future *f = (ebb_future *)(void *)ebb__member_cell(s->members[i - 1]);
        bool spared = s->members[i - 1] & was_spared;
        s->members[i - 1] &= ~was_spared;
        if (spared && !(f->flags & EBB__F_SPARED)) (void)ebb__cancel_as(f, EBB_CANCEL_PARENT);
    }
    s->spared = false;
}

/* When a closing region has no other tasks, futures without a producer are cancelled. The callback runner may end
 * when everything that follows from this is done. */
static bool may_end(ebb__region_futures *s, const ebb__runner_view *v, bool idle) {
    if (!v->last) return false;
    if (s->spared) cancel_spared(s);
    if (s->producers > 0 || !idle) return false;
    return cancel_members(s, EBB_CANCEL_PARENT, true) && s->first == NULL;
}

/* True if the collection has ended. A collection does not begin while the queue has work, which may leave it less to
 * mark, but waits for POSTPONED polls at most. */
static bool collect(ebb__region_futures *s, ebb__heap *h) {
    bool begins = h->phase == EBB__GC_IDLE;
    if (begins && s->first != NULL && ++h->postponed < POSTPONED) return false;
    if (!begins && ebb__rt_polls(h->rt) - h->step_at < POLLS_A_STEP) return false;
    h->postponed = 0;
    h->step_at = ebb__rt_polls(h->rt);
    return ebb__collect_step(h);
}

/* Disposes of words that have no reader any more, so that a descriptor, for example, is not kept until a collection. */
static void dispose_unread(ebb__region_futures *s) {
    for (uint32_t i = s->members_n; i > 0; i--) {
        ebb_future *f = (ebb_future *)(void *)ebb__member_cell(s->members[i - 1]);
        if (!(f->cell.type->reserved & EBB__TYPE_FUTURE) || f->flags & EBB__F_EXPORTED || f->owners > 0)
            continue;
        if (!(f->flags & EBB__F_FINISHED) || f->value.type == NULL || ebb__state_of(f) == EBB_FUTURE_FAILED)
            continue;
        ebb_value v = f->value;
        ebb__shade_value(s->heap, &v);
        f->value = ebb_value_none();
        ebb__dispose(v);
        if (i > s->members_n) i = s->members_n + 1; /* user code may have removed other members */
    }
}

/* Forced, and this is the runner's last poll: operations that have not ended go on without the region. */
static bool gives_up(const ebb__runner_view *v) {
    return v->last_poll && v->last;
}

static ebb_status runner_poll(ebb_cx *cx, void *state) {
    ebb__region_futures *s = state;
    ebb__heap *h = s->heap;
    ebb__runner_view v = ebb__runner_look(cx);
    uint32_t work = v.overdue ? UINT32_MAX : WORK_A_POLL;
    s->running = true;
    s->shut = gives_up(&v);
    bool collecting = ebb__wants_step(h) && !collect(s, h);
    if (h->dying != NULL) ebb__bury(h);
    follow_region(s, cx, &v);
    follow_close(s, v.closing);
    bool idle = fire_timers(s, &work);
    if (!ebb__run_queue(s, &work)) idle = false;
    if (retime(s) != EBB_OK) idle = false;
    s->running = false;
    v = ebb__runner_look(cx);
    bool ends = may_end(s, &v, idle) || gives_up(&v);
    s->shut = false; /* a finalizer may follow and make futures */
    if (ends) return s->cancel_seen ? EBB_CANCELLED : EBB_OK;
    if (!idle || collecting || s->first != NULL) (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

/* Free slots form a list: an entry holds the next index, and a bit that no address has. */
static void slot_give(ebb__heap *h, uint32_t i) {
    h->regions[i] = (ebb__region_futures *)((uintptr_t)h->regions_free << 1 | 1);
    h->regions_free = i;
}

static uint32_t slot_take(ebb__heap *h) {
    uint32_t i = h->regions_free;
    if (i != 0) {
        h->regions_free = (uint32_t)((uintptr_t)h->regions[i] >> 1);
        return i;
    }
    if (h->regions_n < h->regions_room) return h->regions_n++;
    uint32_t room = h->regions_room == 0 ? 8 : h->regions_room * 2;
    const size_t each = sizeof(void *);
    ebb__region_futures **v =
        ebb__resize(&h->allocator, (void *)h->regions, h->regions_room * each, room * each);
    if (v == NULL) return 0;
    memset((void *)(v + h->regions_room), 0, (room - h->regions_room) * each);
    h->regions = v;
    h->regions_room = room;
    if (h->regions_n == 0) h->regions_n = 1;
    return h->regions_n++;
}

ebb_status ebb__region_futures_ensure_runner(ebb_cx *cx, ebb__region_futures *s) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (s->cx != NULL) return EBB_OK;
    ebb_status st = s->let_go ? EBB_ERR_CLOSED : ebb__region_get(rt, s->region, &r);
    if (st != EBB_OK) return st;
    ebb_task runner = ebb__runner_new(cx, s->region, runner_poll, s, &s->callbacks, ebb__region_site(r));
    st = ebb_id_status(runner.id);
    if (st != EBB_OK) return st;
    s->runner = runner;
    s->cx = ebb__task_cx(rt, runner, NULL);
    s->room = s->members_room;
    s->cancel_seen = ebb__region_request(r) != 0; /* futures made from now on belong to cleanup */
    s->closed = false;
    return EBB_OK;
}

static void runner_ended(ebb_runtime *rt, ebb__callbacks *self);
static void region_closed(ebb_runtime *rt, ebb__callbacks *self);

static ebb__region_futures *region_futures_new(ebb_cx *cx, ebb_status *st) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__heap *h = ebb__heap_get(rt);
    uint32_t index = h == NULL ? 0 : slot_take(h);
    ebb__region_futures *s = index == 0 ? NULL : ebb__alloc(&h->allocator, sizeof *s);
    *st = EBB_ERR_NOMEM;
    if (s == NULL) {
        if (index != 0) slot_give(h, index);
        return NULL;
    }
    h->regions[index] = s;
    *s = (ebb__region_futures){.callbacks = {runner_ended, region_closed},
                               .heap = h,
                               .index = index,
                               .region = ebb_cx_region(cx),
                               .timer_at = EBB_FOREVER};
    ebb__arena_init(&s->arena, h->allocator, ARENA_CHUNK);
    if (members_grow(s)) *st = ebb__region_futures_ensure_runner(cx, s);
    if (*st == EBB_OK) return s;
    ebb__free(&h->allocator, s->members, s->members_room * sizeof *s->members);
    ebb__free(&h->allocator, s, sizeof *s);
    slot_give(h, index);
    return NULL;
}

ebb__region_futures *ebb__region_futures_slow(ebb_cx *cx, ebb_status *st) {
    ebb__region_futures *s = ebb__region_futures_here(cx);
    ebb__heap *h = ebb__heap_at(ebb__rt_of(cx));
    if (h != NULL && h->thread != ebb__this_thread()) {
        ebb__misuse(h, EBB_ERR_THREAD, "a runtime was used on another thread than its own", NULL);
        *st = EBB_ERR_THREAD;
        return NULL;
    }
    if (s == NULL && (s = region_futures_new(cx, st)) == NULL) return NULL;
    *st = ebb__region_futures_ensure_runner(cx, s);
    if (*st != EBB_OK) return NULL;
    if (s->members_n < s->members_room || members_grow(s)) return s;
    *st = EBB_ERR_NOMEM;
    return NULL;
}

void ebb__region_futures_free(ebb__region_futures *s) {
    ebb__heap *h = s->heap;
    const ebb_allocator *a = &h->allocator;
    while (s->members_n > 0) ebb__member_cell(s->members[--s->members_n])->member = 0;
    slot_give(h, s->index);
    ebb__arena_free(&s->arena);
    ebb__free(a, s->members, s->members_room * sizeof *s->members);
    ebb__free(a, s->dues, s->dues_room * sizeof *s->dues);
    ebb__free(a, s, sizeof *s);
}

void ebb__region_futures_maybe_free(ebb__region_futures *s) {
    if (s->let_go && !s->ending && s->producers == 0 && s->expected == 0) ebb__region_futures_free(s);
}

/* The callback runner has ended: cancels what is pending. A future that another thread has ended is finished when its
 * message comes. */
static void runner_ended(ebb_runtime *rt, ebb__callbacks *self) {
    ebb__region_futures *s = (ebb__region_futures *)(void *)self;
    (void)rt;
    s->ending = true;
    s->dues_n = 0;
    (void)retime(s);
    do {
        (void)cancel_members(s, EBB_CANCEL_PARENT, true);
        ebb__abandon_queue(s);
    } while (s->first != NULL);
    s->ending = false;
    s->cx = NULL;
    s->room = 0;
    s->expected = 0;
    for (uint32_t i = s->members_n; i > 0; i--) {
        const ebb_future *f = (const ebb_future *)(const void *)ebb__member_cell(s->members[i - 1]);
        if (f->cell.type->reserved & EBB__TYPE_FUTURE && !(f->flags & EBB__F_FINISHED)) s->expected++;
    }
}

/* The region closes and holds nothing any more. Members whose operation has not ended stay until it ends, also if it
 * was abandoned. */
static void region_closed(ebb_runtime *rt, ebb__callbacks *self) {
    ebb__region_futures *s = (ebb__region_futures *)(void *)self;
    s->ending = true;
    dispose_unread(s);
    s->ending = false;
    s->let_go = true;
    for (uint32_t i = s->members_n; i > 0; i--) {
        ebb__cell *c = ebb__member_cell(s->members[i - 1]);
        ebb_future *f = (ebb_future *)(void *)c;
        ebb__shade(s->heap, c);
        if (c->type->reserved & EBB__TYPE_FUTURE) {
            f->holds = 0;
            f->flags |= EBB__F_LOOSE;
            s->members[i - 1] &= ~(uintptr_t)1;
            if (ebb__is_left_behind(f)) {
                ebb__operation_abandoned(ebb_runtime_host(rt), s->region, ebb__future_name(f), NULL, f->site,
                                         ebb__future_number(f));
            }
            if (f->flags & EBB__F_WORK || !(f->flags & EBB__F_FINISHED)) continue;
        }
        ebb__member_remove(s, c);
    }
    ebb__arena_free(&s->arena);
    ebb__region_futures_maybe_free(s);
}

const ebb__layer ebb__future_layer = {.slot = EBB__FUTURE_SLOT,
                                      .hooks = {.ended = ebb__observed_ended, .freed = ebb__futures_free}};
