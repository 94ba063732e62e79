/* Futures: made in every way, combined, watched, cancelled, kept, dropped, settled. */
#include "tests/driver/program/driver.h"

/* ---- values ----------------------------------------------------------------------------------------------- */

typedef struct object {
    hub *hub;
    ebb_value v;
    struct object *next;
} object;

static void trace_object(void *p, ebb_gc_marker *t) {
    object *o = p;
    ebb_gc_mark_value(t, &o->v);
    ebb_gc_mark(t, o->next);
}

static void free_object(void *p) {
    object *o = p;
    if (o->hub == NULL) return; /* made, and never filled */
    if (atomic_fetch_sub(&o->hub->objects, 1) <= 0) failed(o->hub, "more objects were freed than made");
    o->hub = NULL;
}
const ebb_type object_type = {
    .name = "object", .size = sizeof(object), .trace = trace_object, .free = free_object};

static object *new_object(side *s, ebb_cx *cx) {
    object *o = ebb_gc_new(cx, &object_type);
    if (o == NULL) return NULL;
    o->hub = s->hub;
    atomic_fetch_add(&s->hub->objects, 1);
    return o;
}

static ebb_value some_object(side *s, ebb_cx *cx) {
    object *o = new_object(s, cx);
    if (o == NULL) return ebb_value_none();
    object *inner = one_in(s, 2) ? new_object(s, cx) : NULL;
    if (inner != NULL) {
        if (one_in(s, 2)) o->v = ebb_value_object(inner);
        else o->next = inner;
        ebb_value_discard(cx, ebb_value_object(inner)); /* the outer one holds it now */
    }
    return ebb_value_object(o);
}

static ebb_value some_value(side *s, ebb_cx *cx) {
    ebb_value v = ebb_value_none();
    void *at;
    switch (pick(s, 8)) {
    case 5: return ebb_value_pointer(s);
    case 0: return ebb_value_int(pick(s, 100));
    case 1:
    case 2: return some_word(s->hub);
    case 3: return some_object(s, cx);
    case 4:
        if (ebb_bytes_new(cx, 1 + pick(s, 100), &v, &at) == EBB_OK) *(char *)at = 'x';
        return v;
    default: return v;
    }
}

/* If it is a claim: uses it. */
static void use_claim(side *s, ebb_cx *cx, ebb_value *v) {
    uint64_t item = pick(s, 256);
    if (one_in(s, 3)) return;
    (void)ebb_chan_take(cx, v, &item);
    (void)ebb_chan_put(cx, v, &item);
    (void)ebb_bridge_take(cx, v, &item);
    (void)ebb_bridge_put(cx, v, &item);
}

void use_value(side *s, ebb_cx *cx, ebb_value v) {
    size_t n = 0;
    void *at;
    use_claim(s, cx, &v);
    ebb_outcome *o = ebb_outcomes_of(&v, &n);
    ebb_selected *chosen = ebb_selected_of(&v);
    for (size_t i = 0; o != NULL && i < n; i++) {
        if (one_in(s, 2)) ebb_value_discard(cx, ebb_value_take(cx, &o[i].value));
    }
    if (chosen != NULL) use_claim(s, cx, &chosen->value);
    if (chosen != NULL && one_in(s, 2)) ebb_value_discard(cx, ebb_value_take(cx, &chosen->value));
    (void)ebb_bytes_of(cx, &v, &at, &n);
    if (one_in(s, 3)) put_future(s, cx, ebb_future_ready(cx, v));
    else ebb_value_discard(cx, v);
}

/* ---- the pool --------------------------------------------------------------------------------------------- */

/* Whether the handles of a region are gone. */
static bool is_gone(side *s, ebb_region r) {
    ebb_region_state state;
    return ebb_region_state_of(ebb_runtime_host(s->rt), r, &state) != EBB_OK || state == EBB_REGION_CLOSED;
}

void put_handle(side *s, handle h) {
    TALK("put %p of %llx\n", (void *)h.f, (unsigned long long)h.region.id);
    for (uint32_t i = pick(s, HANDLES), k = 0; k < HANDLES / 2; k++, i = (i + 1) % HANDLES) {
        if (s->handles[i].f != NULL) continue;
        s->handles[i] = h;
        return;
    }
    ebb_future_drop(h.f);
}

void put_future(side *s, ebb_cx *cx, ebb_future *f) {
    put_handle(s, (handle){f, ebb_cx_region(cx)});
}

/* Lets go of those that are gone. */
void forget_closed(side *s) {
    for (uint32_t i = 0; i < HANDLES; i++) {
        if (s->handles[i].f != NULL && is_gone(s, s->handles[i].region)) s->handles[i].f = NULL;
    }
    for (uint32_t i = 0; i < PROMISES; i++) {
        pledge *p = &s->pledges[i];
        if (p->f != NULL && !p->op && is_gone(s, p->region)) p->f = NULL;
    }
}

/* A use out of the pool. It is held by a region that may be another than the caller's. False: there is none. */
static bool take_handle(side *s, handle *out) {
    for (uint32_t i = pick(s, HANDLES), k = 0; k < HANDLES; k++, i = (i + 1) % HANDLES) {
        handle h = s->handles[i];
        if (h.f == NULL) continue;
        if (is_gone(s, h.region)) continue;
        s->handles[i].f = NULL;
        *out = h;
        TALK("take %p\n", (void *)h.f);
        return true;
    }
    return false;
}

/* ---- promises --------------------------------------------------------------------------------------------- */

static pledge *pledge_of(side *s, const ebb_future *f) {
    forget_closed(s); /* one that is gone may have had the same address */
    for (uint32_t i = 0; i < PROMISES; i++) {
        if (s->pledges[i].f == f) return &s->pledges[i];
    }
    return NULL;
}

static void end_promise(side *s, ebb_cx *cx, ebb_future *f, bool nest) {
    handle inner;
    TALK("end %p\n", (void *)f);
    if (nest && take_handle(s, &inner)) (void)ebb_promise_settle(f, ebb_value_future(inner.f));
    else if (one_in(s, 3)) (void)ebb_promise_reject(f, one_in(s, 2) ? EBB_CANCELLED : EBB_FAILED);
    else (void)ebb_promise_settle(f, some_value(s, cx));
}

static void settle_pledge(side *s, pledge *p) {
    pledge was = *p;
    p->f = NULL;
    bool closed = is_gone(s, was.region);
    if (closed && (!was.op || was.exported)) return;
    bool nest = one_in(s, 6) && !closed;
    end_promise(s, ebb_runtime_host(s->rt), was.f, nest);
    if (was.exported) ebb_future_drop(was.f);
}

void settle_some(side *s, bool all) {
    uint32_t i = pick(s, PROMISES);
    for (uint32_t k = 0; k < PROMISES; k++, i = (i + 1) % PROMISES) {
        if (s->pledges[i].f == NULL) continue;
        settle_pledge(s, &s->pledges[i]);
        if (!all) return;
    }
}

static void asked_to_stop(ebb_cx *cx, ebb_future *f, void *arg) {
    side *s = arg;
    pledge *p = pledge_of(s, f);
    (void)cx;
    if (s->freed) failed(s->hub, "a producer was told to stop after its runtime was freed");
    if (p != NULL && (!one_in(s, 3) || !s->force)) settle_pledge(s, p);
}
static const ebb_operation operation = {"driven", asked_to_stop, NULL};
static const ebb_operation listener = {"listens", asked_to_stop, asked_to_stop};

static ebb_future *new_promise(side *s, ebb_cx *cx) {
    for (uint32_t i = 0; i < PROMISES; i++) {
        pledge *p = &s->pledges[i];
        if (p->f != NULL) continue;
        uint32_t how = pick(s, 4);
        ebb_future *f = ebb_promise_new(cx, how < 2 ? NULL : how == 2 ? &operation : &listener, s);
        TALK("promise %p\n", (void *)f);
        if (ebb_future_state_of(f) == EBB_FUTURE_PENDING)
            *p = (pledge){f, ebb_cx_region(cx), how >= 2, false};
        return f;
    }
    return ebb_future_never(cx);
}

/* ---- callbacks -------------------------------------------------------------------------------------------- */

static call *new_call(side *s) {
    call *c = fresh(s->hub, sizeof *c);
    c->s = s;
    c->next = s->calls;
    s->calls = c;
    return c;
}

static void in_callback(side *s, ebb_cx *cx) {
    if (s->freed) failed(s->hub, "a callback ran after its runtime was freed");
    if (s->depth > 2) return;
    s->depth++;
    for (uint32_t k = pick(s, 3); k > 0; k--) any_op(s, cx, NULL);
    if (one_in(s, 12)) (void)ebb_gc_collect(s->rt);
    s->depth--;
}

static void used_once(call *c) {
    if (c->uses++ > 0) failed(c->s->hub, "a callback ran twice");
}

/* Once the run is over nothing new is waited for. */
static ebb_future *answer(side *s, ebb_cx *cx) {
    in_callback(s, cx);
    if (one_in(s, 40)) return NULL;
    if (!busy(s)) return ebb_future_ready(cx, ebb_value_none());
    return some_future(s, cx);
}

static ebb_future *on_then(ebb_cx *cx, ebb_value *v, void *arg) {
    call *c = arg;
    used_once(c);
    use_claim(c->s, cx, v);
    if (one_in(c->s, 3)) ebb_value_discard(cx, ebb_value_take(cx, v));
    return answer(c->s, cx);
}

static ebb_value on_map(ebb_cx *cx, ebb_value *v, void *arg) {
    call *c = arg;
    used_once(c);
    in_callback(c->s, cx);
    return one_in(c->s, 2) ? *v : some_value(c->s, cx);
}

static ebb_future *on_catch(ebb_cx *cx, ebb_status st, void *arg) {
    call *c = arg;
    (void)st;
    used_once(c);
    return answer(c->s, cx);
}

static ebb_future *on_finally(ebb_cx *cx, void *arg) {
    call *c = arg;
    used_once(c);
    return one_in(c->s, 2) ? NULL : answer(c->s, cx);
}

static ebb_future *on_release(ebb_cx *cx, ebb_value *v, void *arg) {
    call *c = arg;
    (void)v;
    if (c->releases++ > 0) failed(c->s->hub, "a release ran twice");
    return one_in(c->s, 2) ? NULL : answer(c->s, cx);
}

static ebb_future *on_delay(ebb_cx *cx, void *arg) {
    call *c = arg;
    used_once(c);
    return answer(c->s, cx);
}

static ebb_future *on_repeat(ebb_cx *cx, uint64_t n, void *arg) {
    call *c = arg;
    if (n > 3 || !busy(c->s)) return ebb_future_ready(cx, ebb_value_int(1));
    return answer(c->s, cx);
}

static ebb_future *on_attempt(ebb_cx *cx, uint32_t n, void *arg) {
    call *c = arg;
    (void)n;
    return one_in(c->s, 2) ? ebb_future_failed(cx, EBB_FAILED) : answer(c->s, cx);
}

static ebb_future *on_each(ebb_cx *cx, size_t i, void *arg) {
    call *c = arg;
    (void)i;
    return answer(c->s, cx);
}

/* ---- watching --------------------------------------------------------------------------------------------- */

static void probe_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    probe *p = arg;
    TALK("done %p\n", (void *)p);
    if (st == EBB_PENDING) failed(p->s->hub, "a future that is pending says that it is done");
    if (p->done++ + p->cancels > 0) failed(p->s->hub, "a future ended twice");
    if (p->cleanups > 0) failed(p->s->hub, "a cleanup ran before the end was told");
    if (one_in(p->s, 6)) ebb_value_discard(cx, ebb_value_take(cx, v));
    in_callback(p->s, cx);
}

static void probe_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    probe *p = arg;
    TALK("cancel %p: %s\n", (void *)p, ebb_cancel_kind_name(kind));
    if (p->cancels++ + p->done > 0) failed(p->s->hub, "a future ended twice");
    if (p->cleanups > 0) failed(p->s->hub, "a cleanup ran before the end was told");
    in_callback(p->s, cx);
}

typedef struct cleanup {
    probe *p;
    uint32_t place; /* from 1 on */
    bool ran;
} cleanup;

static void probe_cleanup(ebb_cx *cx, void *arg) {
    cleanup *c = arg;
    probe *p = c->p;
    if (c->ran) failed(p->s->hub, "a cleanup ran twice");
    if (p->ordered && c->place != p->left) {
        failed(p->s->hub, "cleanup %u ran, and %u is the last that was added", c->place, p->left);
    }
    c->ran = true;
    p->left--;
    p->cleanups++;
    in_callback(p->s, cx);
}

static void watch(side *s, ebb_future *f) {
    bool pending = ebb_future_state_of(f) == EBB_FUTURE_PENDING;
    probe *p = fresh(s->hub, sizeof *p);
    p->s = s;
    p->next = s->probes;
    s->probes = p;
    TALK("probe %p on %p\n", (void *)p, (void *)f);
    p->heard = ebb_future_on_done(f, probe_done, p) == EBB_OK;
    p->heard &= ebb_future_on_cancel(f, probe_cancel, p) == EBB_OK;
    for (uint32_t k = pick(s, CLEANUPS); k > 0; k--) {
        cleanup *c = fresh(s->hub, sizeof *c);
        *c = (cleanup){p, p->attached + 1, false};
        p->left++;
        if (ebb_future_on_cleanup(f, probe_cleanup, c) == EBB_OK) p->attached++;
        else p->left--;
    }
    p->ordered = pending;
}

/* ---- making ----------------------------------------------------------------------------------------------- */

static ebb_future *go_some(side *s, ebb_cx *cx) {
    bool fiber = s->fibers && one_in(s, 2);
    node *n = new_node(s, fiber ? FIBER : TASK);
    ebb_region r = some_region(s);
    return fiber ? ebb_fiber_go(cx, r, fiber_node, n) : ebb_go(cx, r, poll_node, n);
}

/* Waits for something else: channels, the semaphore, bridges, the broadcast, ends. */
static ebb_future *waits(side *s, ebb_cx *cx) {
    uint32_t how = pick(s, 9);
    ebb_bridge *b = how == 2 || how == 3 ? some_bridge(s, how == 2) : NULL;
    TALK("wait for %u\n", how);
    switch (how) {
    case 0: return ebb_chan_send_future(cx, s->chan);
    case 1: return ebb_chan_recv_future(cx, s->chan);
    case 2: return ebb_bridge_send_future(cx, b);
    case 3: return ebb_bridge_recv_future(cx, b);
    case 4: return ebb_broadcast_next_future(cx, s->broadcast, pick(s, 6));
    case 5: return ebb_task_ended(cx, some_task(s));
    case 6: return ebb_region_closed(cx, some_region(s));
    case 7: return ebb_workflow_ended(cx, s->flow[pick(s, FLOWS)]);
    default: return ebb_sem_acquire_future(cx, &s->sem);
    }
}

static ebb_future *simple(side *s, ebb_cx *cx) {
    ebb_future *f;
    handle h;
    switch (pick(s, 15)) {
    case 12:
    case 13:
    case 14: return waits(s, cx);
    case 0:
    case 1:
    case 2:
    case 3: return new_promise(s, cx);
    case 4: return ebb_future_ready(cx, some_value(s, cx));
    case 5: return ebb_future_failed(cx, one_in(s, 3) ? EBB_CANCELLED : EBB_FAILED);
    case 6: return one_in(s, 2) ? ebb_future_never(cx) : ebb_closing(cx);
    case 7: return go_some(s, cx);
    case 8: return ebb_after(cx, some_span(s));
    case 9: return ebb_future_ready(cx, take_handle(s, &h) ? ebb_value_future(h.f) : ebb_value_none());
    default: f = remote_op(s, cx); return f != NULL ? f : new_promise(s, cx);
    }
}

handle some_handle(side *s, ebb_cx *cx) {
    handle h;
    if (!one_in(s, 3) && take_handle(s, &h)) return h;
    return (handle){simple(s, cx), ebb_cx_region(cx)};
}

ebb_future *some_future(side *s, ebb_cx *cx) {
    return some_handle(s, cx).f;
}

static ebb_future *several(side *s, ebb_cx *cx) {
    ebb_future *fs[4];
    size_t n = pick(s, 5);
    for (size_t i = 0; i < n; i++) fs[i] = some_future(s, cx);
    switch (pick(s, 5)) {
    case 0: return ebb_all(cx, n, fs);
    case 1: return ebb_all_settled(cx, n, fs);
    case 2: return ebb_race(cx, n, fs);
    case 3: return ebb_any(cx, n, fs);
    default: return ebb_select(cx, n, fs);
    }
}

static ebb_future *repeated(side *s, ebb_cx *cx) {
    ebb_retry_opts o = {.attempts = 1 + pick(s, 3), .pause = EBB_MS};
    o.factor = pick(s, 3);
    call *c = new_call(s);
    size_t n = pick(s, 5);
    uint64_t span = some_span(s);
    switch (pick(s, 4)) {
    case 0: return ebb_future_delay(cx, span, on_delay, c);
    case 1: return ebb_future_repeat(cx, span, on_repeat, c);
    case 2: return ebb_retry(cx, &o, on_attempt, c);
    default: return ebb_traverse(cx, n, 1 + pick(s, 3), on_each, c);
    }
}

static ebb_future *combined(side *s, ebb_cx *cx) {
    uint32_t how = pick(s, 10);
    TALK("combine %u\n", how);
    if (how < 3) return several(s, cx);
    if (how == 3) return repeated(s, cx);
    ebb_future *f = some_future(s, cx);
    call *c = new_call(s);
    switch (how) {
    case 4: return ebb_then(cx, f, on_then, c);
    case 5: return ebb_map(cx, f, on_map, c);
    case 6: return ebb_catch(cx, f, on_catch, c);
    case 7: f = ebb_finally(cx, f, on_finally, c); break;
    case 8: f = ebb_bracket(cx, f, on_then, on_release, c); break;
    default: return ebb_within(cx, f, some_span(s));
    }
    c->must = ebb_future_state_of(f) == EBB_FUTURE_PENDING;
    if (how == 7) c->releases = UINT32_MAX; /* it has none */
    return f;
}

static void make_some(side *s, ebb_cx *cx) {
    ebb_future *f = one_in(s, 3) ? simple(s, cx) : combined(s, cx);
    TALK("make %p\n", (void *)f);
    if (one_in(s, 2)) watch(s, f);
    if (one_in(s, 6)) f = one_in(s, 3) ? ebb_future_shield(f) : ebb_future_share(f);
    handle h = {f, ebb_cx_region(cx)};
    if (one_in(s, 6)) put_handle(s, (handle){ebb_future_keep(f), h.region});
    if (one_in(s, 10)) {
        object *o = new_object(s, cx);
        if (o != NULL) (void)ebb_future_hold(f, o);
        if (o != NULL) ebb_value_discard(cx, ebb_value_object(o));
    }
    put_handle(s, h);
}

static void export_some(side *s) {
    handle h;
    ebb_remote *r = NULL;
    if (!take_handle(s, &h)) return;
    TALK("export %p\n", (void *)h.f);
    if (ebb_remote_new(h.f, &r) == EBB_OK) {
        pledge *p = pledge_of(s, h.f);
        if (p != NULL && !p->exported) { /* somebody else may end it: the handle has to stay good */
            p->exported = true;
            (void)ebb_future_keep(h.f);
        }
        put_remote(s, r);
    }
    put_handle(s, h);
}

static void end_some(side *s) {
    handle h;
    if (!take_handle(s, &h)) return;
    TALK("look at %p\n", (void *)h.f);
    if (one_in(s, 2)) (void)ebb_future_cancel(h.f, one_in(s, 2) ? EBB_CANCEL_USER : EBB_CANCEL_TIMEOUT);
    (void)ebb_future_status_of(h.f);
    (void)ebb_future_cancel_kind_of(h.f);
    (void)ebb_future_is_cancelled(h.f);
    if (one_in(s, 2)) ebb_future_drop(h.f);
    else put_handle(s, h);
}

void future_op(side *s, ebb_cx *cx) {
    ebb_future *f;
    switch (pick(s, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: make_some(s, cx); break;
    case 5:
    case 6: settle_some(s, false); break;
    case 7:
    case 8: end_some(s); break;
    case 9: export_some(s); break;
    case 10:
        f = remote_op(s, cx);
        if (f != NULL) put_future(s, cx, f);
        break;
    default: (void)ebb_gc_collect(s->rt); break;
    }
}
