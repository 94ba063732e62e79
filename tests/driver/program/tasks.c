/* What tasks, fibers, finalizers, hooks and drain handlers do when they have their turn. */
#include "tests/driver/program/driver.h"

node *new_node(side *s, node_kind kind) {
    node *n = fresh(s->hub, sizeof *n);
    n->s = s;
    n->kind = kind;
    n->stubborn = s->force && one_in(s, 25);
    pthread_mutex_lock(&s->hub->lock);
    n->next = s->nodes;
    s->nodes = n;
    pthread_mutex_unlock(&s->hub->lock);
    return n;
}

/* ---- waiting ---------------------------------------------------------------------------------------------- */

static void stop_waiting(ebb_wait *w) {
    node *n = w->on;
    for (uint32_t i = 0; i < WAITERS; i++) {
        if (n->s->waiter[i] == n) n->s->waiter[i] = NULL;
    }
}
static const ebb_wait_kind driven_wait = {"driven", stop_waiting};

static ebb_status begin_wait(ebb_cx *cx, node *n) {
    node **place = &n->s->waiter[pick(n->s, WAITERS)];
    if (*place != NULL) return EBB_ERR_BUSY;
    ebb_status st = ebb_wait_begin(cx, &n->wait, &driven_wait, n);
    if (st == EBB_OK) *place = n;
    return st;
}

/* An await as users may write one. */
static ebb_status wait_for_grant(ebb_cx *cx, node *n) {
    ebb_status st = n->wait.cx == NULL ? begin_wait(cx, n) : EBB_OK;
    while (st == EBB_OK && n->wait.granted == 0) {
        st = ebb_checkpoint(cx);
        if (st == EBB_OK && n->kind != FIBER) return EBB_PENDING;
        if (st == EBB_OK) st = ebb_fiber_park(cx);
    }
    if (n->wait.cx != NULL) {
        stop_waiting(&n->wait);
        ebb_wait_end(&n->wait);
    }
    return st;
}

static void grant_some(side *s, ebb_cx *cx) {
    uint32_t i = pick(s, WAITERS);
    node *n = s->waiter[i];
    if (n == NULL) return;
    s->waiter[i] = NULL;
    n->wait.granted = 1;
    (void)ebb_task_wake(cx, ebb_cx_task(n->wait.cx));
}

static ebb_status go_on_waiting(ebb_cx *cx, node *n, ebb_value *v) {
    side *s = n->s;
    switch (n->await) {
    case SLEEP: return ebb_sleep(cx, &n->nap, n->span);
    case SEND: return ebb_chan_send(cx, s->chan, &n->wait, &n->item);
    case RECV: return ebb_chan_recv(cx, s->chan, &n->wait, &n->item);
    case ACQUIRE: return ebb_sem_acquire(cx, &s->sem, &n->wait);
    case PLACE: return ebb_chan_reserve(cx, s->chan, &n->wait, &n->permit);
    case JOIN_REGION: return ebb_region_join(cx, n->region);
    case JOIN_TASK: return ebb_task_join(cx, n->task);
    case FUTURE: return ebb_await(cx, n->future.f, v);
    case JOIN_FLOW: return ebb_workflow_join(cx, n->flow, NULL);
    case BRIDGE_SEND: return ebb_bridge_send(cx, n->bridge, &n->wait, &n->item);
    case BRIDGE_RECV: return ebb_bridge_recv(cx, n->bridge, &n->wait, &n->item);
    case WATCH: return ebb_broadcast_next(cx, s->broadcast, &n->wait, &n->seen, &n->item);
    case GRANT: return wait_for_grant(cx, n);
    case PARK: return n->kind == FIBER ? ebb_fiber_yield(cx) : EBB_OK;
    default: return EBB_OK;
    }
}

static void choose_await(ebb_cx *cx, node *n) {
    side *s = n->s;
    n->await = (await_kind)pick(s, AWAITS);
    if (one_in(s, 3)) n->await = FUTURE;
    n->item = pick(s, 256);
    n->span = some_span(s);
    n->nap = (ebb_sleeper){.due = 0};
    n->wait = (ebb_wait){.cx = NULL};
    n->region = some_region(s);
    n->task = some_task(s);
    n->flow = s->flow[pick(s, FLOWS)];
    bool channel = n->await == SEND || n->await == RECV || n->await == PLACE;
    if (channel && s->chan == NULL) n->await = SLEEP;
    if (n->await == WATCH && s->broadcast == NULL) n->await = SLEEP;
    n->seen = n->await == WATCH && one_in(s, 2) ? ebb_broadcast_get(s->broadcast, &n->item) : pick(s, 9);
    if (n->await == BRIDGE_SEND || n->await == BRIDGE_RECV) {
        n->bridge = some_bridge(s, n->await == BRIDGE_SEND);
        if (n->bridge == NULL) n->await = FUTURE;
    }
    if (n->await == FUTURE) n->future = some_handle(s, cx);
    if (n->await == FUTURE)
        TALK("%s %llx awaits %p\n", n->kind == FIBER ? "fiber" : "task",
             (unsigned long long)ebb_cx_task(cx).id, (void *)n->future.f);
}

/* What it waited for has come, or never will. */
static void waited(ebb_cx *cx, node *n, ebb_status st, ebb_value v) {
    side *s = n->s;
    await_kind what = n->await;
    n->await = NOTHING;
    n->waits = false;
    if (what == ACQUIRE && st == EBB_OK && !one_in(s, 4)) ebb_sem_release(cx, &s->sem);
    if (what == FUTURE && st == EBB_OK) use_value(s, cx, v);
    if (what != PLACE || st != EBB_OK) return;
    uint32_t k = pick(s, 4);
    if (k == 0) (void)ebb_obligation_abort(cx, n->permit);
    else if (k > 1) (void)ebb_chan_send_reserved(cx, s->chan, n->permit, &n->item);
}

/* ---- a turn ----------------------------------------------------------------------------------------------- */

static void check_turn(ebb_cx *cx, node *n) {
    if (n->ends > 0) failed(n->s->hub, "a node was polled after its end");
    if (n->s->freed) failed(n->s->hub, "a node was polled after its runtime was freed");
    if (n->kind == TASK || n->kind == FIBER) n->self = ebb_cx_task(cx);
}

static void some_ops(ebb_cx *cx, node *n) {
    for (uint32_t k = pick(n->s, 4); k > 0; k--) any_op(n->s, cx, n);
}

static bool patient(node *n) {
    return n->polls < 40 && busy(n->s);
}

/* EBB_PENDING while it still waits and is to do so. */
static ebb_status resume(ebb_cx *cx, node *n) {
    ebb_value v = ebb_value_none();
    if (n->await == NOTHING) return EBB_OK;
    ebb_status st = go_on_waiting(cx, n, &v);
    n->waits = st == EBB_PENDING;
    if (st != EBB_PENDING) waited(cx, n, st, v);
    else if (patient(n) && !one_in(n->s, 20)) return EBB_PENDING;
    n->waits = false;
    return st == EBB_PENDING ? EBB_FAILED : EBB_OK; /* it leaves with its wait in use */
}

static ebb_status turn(ebb_cx *cx, node *n) {
    side *s = n->s;
    n->polls++;
    if (n->stubborn && n->await == NOTHING && n->polls > 3) return EBB_PENDING;
    ebb_status st = resume(cx, n);
    if (st == EBB_PENDING) return st;
    if (st == EBB_FAILED) return some_end(s);
    some_ops(cx, n);
    if (patient(n) && !one_in(s, 3)) {
        choose_await(cx, n);
        if (n->await == PARK) {
            n->await = NOTHING;
            return EBB_PENDING;
        }
        if (resume(cx, n) == EBB_PENDING) return EBB_PENDING;
    }
    if (n->await != NOTHING) return some_end(s);
    if (ebb_checkpoint(cx) == EBB_CANCELLED && !n->stubborn && !one_in(s, 3)) return EBB_CANCELLED;
    if (!patient(n) || one_in(s, 3)) return some_end(s);
    if (!one_in(s, 4)) (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void begin_finalizer(node *n) {
    if (n->begun++ > 0 || n->stack == NULL) return;
    if (n->place != n->stack->left) {
        failed(n->s->hub, "finalizer %u runs, and %u is the last that was added", n->place, n->stack->left);
    }
    n->stack->left--;
}

ebb_status poll_node(ebb_cx *cx, void *state) {
    node *n = state;
    check_turn(cx, n);
    if (n->kind == FINALIZER) begin_finalizer(n);
    ebb_status st = turn(cx, n);
    n->ends += st != EBB_PENDING;
    return st;
}

ebb_status drain_node(ebb_cx *cx, ebb_drain *d, void *arg) {
    node *n = arg;
    if (one_in(n->s, 3)) ebb_drain_progress(d, n->polls, 40);
    if (one_in(n->s, 4)) ebb_drain_evidence(d, "polls", "some");
    (void)ebb_drain_left(cx, d);
    return poll_node(cx, arg);
}

ebb_status drain_fiber(ebb_cx *cx, ebb_drain *d, void *arg) {
    node *n = arg;
    if (ebb_id_status(ebb_drain_workflow(d).id) != EBB_OK) failed(n->s->hub, "a drain has no workflow");
    return fiber_node(cx, arg);
}

ebb_status fiber_node(ebb_cx *cx, void *arg) {
    node *n = arg;
    side *s = n->s;
    check_turn(cx, n);
    ebb_status st = EBB_OK;
    while (patient(n)) {
        n->polls++;
        some_ops(cx, n);
        choose_await(cx, n);
        ebb_value v = ebb_value_none();
        n->waits = true;
        st = go_on_waiting(cx, n, &v);
        if (st == EBB_PENDING) failed(s->hub, "an await in a fiber said EBB_PENDING");
        waited(cx, n, st, v);
        if (ebb_checkpoint(cx) == EBB_CANCELLED && !n->stubborn && !one_in(s, 3)) break;
        if (one_in(s, 6)) break;
    }
    while (n->stubborn && !one_in(s, 40)) (void)ebb_fiber_yield(cx);
    n->ends++;
    return some_end(s);
}

/* ---- making ----------------------------------------------------------------------------------------------- */

static ebb_task_opts some_task_opts(side *s) {
    ebb_task_opts o = {.keep = one_in(s, 2)};
    o.priority = (uint8_t)pick(s, 3);
    if (one_in(s, 4)) o.deadline = s->now + some_span(s);
    if (one_in(s, 5)) o.polls = 1 + pick(s, 9);
    if (one_in(s, 60)) o.size = 3;
    return o;
}

void spawn_some(side *s, ebb_cx *cx) {
    bool fiber = s->fibers && one_in(s, 3);
    node *n = new_node(s, fiber ? FIBER : TASK);
    ebb_region r = some_region(s);
    ebb_task_opts o = some_task_opts(s);
    ebb_task t;
    if (fiber && one_in(s, 2)) t = ebb_fiber_spawn(cx, r, fiber_node, n);
    else if (fiber) t = ebb_fiber_spawn(cx, r, fiber_node, n, &o);
    else if (one_in(s, 4)) t = ebb_spawn(cx, r, poll_node, n, &(ebb_task_opts){.keep = true});
    else if (one_in(s, 2)) t = ebb_spawn(cx, r, one_in(s, 40) ? NULL : poll_node, n);
    else t = ebb_spawn(cx, r, poll_node, n, &o);
    remember(s, s->task, &s->tasks, t.id);
}

static void on_closed(void *arg, const ebb_region_report *report) {
    node *n = arg;
    side *s = n->s;
    (void)report;
    if (n->ends++ > 0) failed(s->hub, "a region was closed twice");
    if (s->depth > 2 || !one_in(s, 2)) return;
    s->depth++;
    any_op(s, ebb_runtime_host(s->rt), NULL);
    s->depth--;
}

void open_some(side *s, ebb_cx *cx) {
    ebb_region_opts o = {.policy = one_in(s, 2) ? EBB_FAIL_COLLECT : EBB_FAIL_FAST};
    o.priority = (uint8_t)pick(s, 4);
    if (one_in(s, 2)) o.parent = some_region(s);
    if (one_in(s, 4)) o.deadline = s->now + some_span(s);
    if (one_in(s, 4)) o.cleanup = ebb_cancelled(cx) || one_in(s, 4);
    o.unit = one_in(s, o.cleanup ? 30 : 3);
    if (one_in(s, 60)) o.size = 3;
    if (one_in(s, 4)) {
        o.on_closed = on_closed;
        o.arg = new_node(s, HOOK);
    }
    ebb_region r = ebb_region_open(cx, one_in(s, 5) ? NULL : &o);
    remember(s, s->region, &s->regions, r.id);
}

static void on_abort(void *arg) {
    node *n = arg;
    side *s = n->s;
    if (atomic_fetch_add(&n->aborts, 1) > 0) failed(s->hub, "an obligation was aborted twice");
    if (n->committed) failed(s->hub, "an obligation was committed and aborted");
    if (s->freed) failed(s->hub, "a hook ran after its runtime was freed");
    if (s->depth > 2 || one_in(s, 2)) return;
    s->depth++;
    any_op(s, ebb_runtime_host(s->rt), NULL);
    s->depth--;
}

void reserve_some(side *s, ebb_cx *cx) {
    node *n = new_node(s, HOOK);
    ebb_obligation_kind kind = (ebb_obligation_kind)(1 + pick(s, 6));
    if (one_in(s, 30)) kind = (ebb_obligation_kind)9;
    void (*hook)(void *) = one_in(s, 4) ? NULL : on_abort;
    bool own = one_in(s, 2);
    n->permit = own ? ebb_obligation_reserve(cx, kind, hook, n)
                    : ebb_region_reserve(cx, some_region(s), kind, hook, n);
    n->counts = hook != NULL && ebb_id_status(n->permit.id) == EBB_OK;
    remember(s, s->obligation, &s->obligations, n->permit.id);
}

static void commit_some(side *s, ebb_cx *cx) {
    uint64_t id = some_id(s, s->obligation, s->obligations);
    if (ebb_obligation_commit(cx, (ebb_obligation){id}) != EBB_OK) return;
    for (node *n = s->nodes; n != NULL; n = n->next) {
        if (n->kind == HOOK && n->counts && n->permit.id == id) n->committed = true;
    }
}

void defer_some(side *s, ebb_cx *cx, node *owner) {
    node *n = new_node(s, FINALIZER);
    if (one_in(s, 3)) {
        (void)ebb_region_defer(cx, some_region(s), poll_node, n);
        return;
    }
    if (owner != NULL && (owner->kind == TASK || owner->kind == FIBER)) n->stack = &owner->own;
    if (owner != NULL && owner->kind == FINALIZER) n->stack = owner->stack;
    if (ebb_defer(cx, poll_node, n) != EBB_OK || n->stack == NULL) return;
    n->place = ++n->stack->left;
}

/* ---- every operation -------------------------------------------------------------------------------------- */

static const char *some_text(side *s) {
    static const char *const texts[] = {NULL, "", "short", "exactly twenty-four byte",
                                        "a message that is longer than the forty-seven bytes of a reason"};
    return texts[pick(s, 5)];
}

static void cancel_some(side *s, ebb_cx *cx) {
    ebb_cancel_kind kind = some_kind(s);
    ebb_region r = some_target(s);
    ebb_budget b = {.deadline = s->now + some_span(s)};
    b.polls = 1 + pick(s, 9);
    b.priority = (uint8_t)pick(s, 4);
    const char *text = some_text(s);
    ebb_task t = some_task(s);
    switch (pick(s, 9)) {
    case 0:
    case 1: ebb_region_close(cx, r); break;
    case 2:
    case 3: ebb_region_cancel(cx, r, kind, text); break;
    case 4: ebb_region_cancel_within(cx, r, kind, text, b); break;
    case 5:
        if (s->force) ebb_region_force(cx, r);
        break;
    case 6:
        if (s->force) ebb_task_force(cx, t);
        break;
    default: ebb_task_cancel(cx, t, kind, text); break;
    }
}

static void receive_some(side *s) {
    ebb_msg m = {.verb = (ebb_msg_verb)pick(s, 7), .message = "from afar"};
    m.kind = some_kind(s);
    m.word = pick(s, 256);
    m.to_region = one_in(s, 2);
    if (one_in(s, 3)) m.left = one_in(s, 6) ? EBB_FOREVER : some_span(s);
    m.polls = pick(s, 20);
    m.target = m.to_region ? some_target(s).id : some_task(s).id;
    if (m.verb == EBB_MSG_FORCE && !s->force) m.verb = EBB_MSG_WAKE;
    (void)ebb_msg_deliver(s->rt, &m);
}

static void ignore_text(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

/* What is known of a task only goes on. */
static void compare_witness(side *s, const ebb_witness *w) {
    ebb_witness *old = &s->witness[(w->task.id >> 32) % IDS];
    ebb_status st = old->task.id == w->task.id ? ebb_witness_check(old, w) : EBB_OK;
    if (st != EBB_OK) failed(s->hub, "side %u: two witnesses: %s", s->number, ebb_status_name(st));
    *old = *w;
}

static void look(side *s, ebb_cx *cx) {
    ebb_region_cause chain[4];
    uint32_t n;
    bool cut;
    ebb_task_info info;
    ebb_witness witness;
    ebb_region_report report;
    ebb_work work;
    ebb_region r = some_region(s);
    ebb_task t = some_task(s);
    (void)ebb_region_causes(cx, r, chain, 1 + pick(s, 4), &n, &cut);
    (void)ebb_task_info_of(cx, t, &info);
    if (ebb_task_witness(cx, t, &witness) == EBB_OK) compare_witness(s, &witness);
    (void)ebb_region_report_of(cx, r, &report);
    (void)ebb_region_abandoned_at(cx, r, pick(s, 2), &work);
    (void)ebb_region_leaked_at(cx, r, pick(s, 2), &work);
    if (ebb_now(cx) < s->advanced) failed(s->hub, "side %u: its time goes back", s->number);
    if (ebb_cx_runtime(cx) != s->rt) failed(s->hub, "a context of another runtime");
    if (s->watched && ebb_watchdog_check(s->rt, &s->dog, s->now, &work) == EBB_TIMEOUT) (void)work;
    if (one_in(s, 4)) ebb_runtime_dump(s->rt, ignore_text, NULL);
    if (one_in(s, 4)) ebb_future_dump(s->rt, ignore_text, NULL);
}

static void join_some(side *s, ebb_cx *cx) {
    if (cx != ebb_runtime_host(s->rt)) {
        (void)ebb_runtime_pump(s->rt, 3); /* is refused */
        return;
    }
    (void)ebb_region_join(cx, some_region(s));
    (void)ebb_task_join(cx, some_task(s));
}

static void channel_some(side *s, ebb_cx *cx) {
    uint64_t item = pick(s, 256);
    ebb_wait w = {.cx = NULL};
    if (one_in(s, 3)) ebb_sem_release(cx, &s->sem);
    if (s->broadcast != NULL && one_in(s, 2)) (void)ebb_broadcast_set(cx, s->broadcast, &item);
    if (s->broadcast != NULL && one_in(s, 60)) ebb_broadcast_close(cx, s->broadcast);
    if (s->chan == NULL) return;
    if (one_in(s, 3)) (void)ebb_chan_try_send(cx, s->chan, &item);
    if (one_in(s, 3)) (void)ebb_chan_try_recv(cx, s->chan, &item);
    if (one_in(s, 30)) ebb_chan_close(cx, s->chan);
    if (cx != ebb_runtime_host(s->rt)) return;
    (void)(one_in(s, 2) ? ebb_chan_send(cx, s->chan, &w, &item) : ebb_chan_recv(cx, s->chan, &w, &item));
}

static void time_some(side *s, ebb_cx *cx) {
    ebb_task t = some_task(s);
    if (one_in(s, 2)) remember(s, s->timer, &s->timers, ebb_timer_arm(cx, t, s->now + some_span(s)).id);
    else (void)ebb_timer_disarm(cx, (ebb_timer){some_id(s, s->timer, s->timers)});
}

void any_op(side *s, ebb_cx *cx, node *owner) {
    if (!busy(s)) return;
    s->ops++;
    switch (pick(s, 40)) {
    case 0:
    case 1:
    case 2: open_some(s, cx); break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7: spawn_some(s, cx); break;
    case 8:
    case 9: reserve_some(s, cx); break;
    case 10: commit_some(s, cx); break;
    case 11:
        (void)ebb_obligation_abort(cx, (ebb_obligation){some_id(s, s->obligation, s->obligations)});
        break;
    case 12:
    case 13: defer_some(s, cx, owner); break;
    case 14:
    case 15: cancel_some(s, cx); break;
    case 16:
        if (one_in(s, 2)) (void)ebb_task_wake(cx, some_task(s));
        else grant_some(s, cx);
        break;
    case 17: time_some(s, cx); break;
    case 18:
        if (owner != NULL && owner->kind != FINALIZER) (void)(one_in(s, 2) ? ebb_mask(cx) : ebb_unmask(cx));
        break;
    case 19: receive_some(s); break;
    case 20: look(s, cx); break;
    case 21: ebb_runtime_set_turn(s->rt, 1 + pick(s, 5), 1); break;
    case 22: channel_some(s, cx); break;
    case 23: join_some(s, cx); break;
    case 24:
    case 25: flow_op(s, cx); break;
    default: future_op(s, cx); break;
    }
}
