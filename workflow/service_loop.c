/* Loops of a service after the first. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "workflow/service.h"
#include "workflow/workflow.h"

/* How long the request waits for all loops to confirm that they are closed. A loop that does not answer in time
 * closes when it receives the request. */
enum { CONFIRM_MS = 1000, PATH_BYTES = 4096 };

/* Until the thread has ended, both threads use only `force` and `more`. Other fields that the first loop reads were
 * sent with a message. */
struct ebb__branch {
    EBB_TASK_STATE; /* of `carry` */
    ebb__service *service;
    uint32_t position;
    ebb_loop *loop; /* NULL: the branch has no thread */
    /* Used by the first loop. */
    ebb_wait go;
    bool held;    /* a task holds the far region */
    bool counted; /* among the branches that are ready */
    bool closed;  /* the far region has closed, with `status` */
    ebb_status status;
    ebb_future *far; /* NULL: not yet */
    ebb_task stand_in;
    ebb_future *closing; /* of the stand-in; NULL: it has seen the close */
    bool polled;         /* the stand-in was polled */
    bool asking;         /* for a snapshot: a task waits for the answer */
    ebb_future *asked;
    /* Used by the branch. */
    ebb_sem leave; /* never released */
    ebb_wait stay;
    ebb_future *ready, *closing_there;
    ebb_status failure; /* of the first fiber */
    ebb_task carrier;
    ebb_workflow workflow;
    ebb_workflow_report report; /* the last report */
    _Atomic bool force;         /* the shutdown was forced */
    _Atomic uint64_t more;      /* ns by which to extend the workflow */
};

/* ---- on its thread ---------------------------------------------------------------------------------------- */

/* The first task of the loop, which runs until it is cancelled. It must not fail, and needs no memory. */
static ebb_status wait_until_cancelled(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    return ebb_sem_acquire(cx, &b->leave, &b->stay);
}

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    ebb__branch *b = arg;
    ebb_cx *cx = ebb_runtime_host(ebb_loop_runtime(b->loop));
    (void)from;
    (void)ebb_workflow_report_of(cx, wf, &b->report);
    if (ebb__wf_is_final(to)) (void)ebb_task_wake(cx, b->carrier);
}

static void on_overdue(void *arg, ebb_workflow wf) {
    ebb__branch *b = arg;
    ebb__service_explain(b->service, ebb_runtime_host(ebb_loop_runtime(b->loop)), wf);
}

static ebb_status open_workflow(ebb_cx *cx, ebb__branch *b) {
    const ebb__service *s = b->service;
    ebb_workflow_opts wo = s->opts.shutdown;
    char name[EBB_MESSAGE_MAX + 1];
    snprintf(name, sizeof name, "%.24s%sloop %u", wo.name == NULL ? "" : wo.name, wo.name == NULL ? "" : " ",
             b->position);
    if (wo.type == NULL) wo.type = &ebb_workflow_lifecycle_shutdown;
    wo.name = name;
    wo.root = false;
    wo.parent = (ebb_region){0};
    wo.policy = EBB_FAIL_COLLECT;
    wo.on_state = on_state;
    wo.on_overdue = on_overdue;
    wo.arg = b;
    b->workflow = ebb__workflow_open_under(cx, &wo, s->number, EBB_SITE);
    return ebb_id_status(b->workflow.id);
}

/* Runs on the first loop. */
static ebb_status begin_together(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    b->service->ready += !b->counted;
    b->counted = true;
    return ebb_sem_acquire(cx, &b->service->go, &b->go);
}

/* Runs on the first loop too. */
static ebb_status stop_all(ebb_cx *cx, void *arg) {
    const ebb__branch *b = arg;
    ebb__service_request(b->service, cx, EBB_CANCEL_SIBLING_FAILED, ebb_status_name(b->failure));
    return EBB_OK;
}

static ebb_status first(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    ebb__service *s = b->service;
    ebb_status st = s->fn(cx, s->arg);
    if (!ebb__service_failed(st)) return st;
    b->failure = st;
    if (ebb_await(cx, ebb_peer_run(cx, ebb_loop_peer(s->loop), stop_all, b), NULL) == EBB_OK) return st;
    (void)ebb_workflow_request(cx, b->workflow, EBB_CANCEL_SIBLING_FAILED, ebb_status_name(st));
    return st;
}

/* A workflow that was stopped before has no region for the fiber: its outcome is the branch's. */
static ebb_status begin(ebb_cx *cx, ebb__branch *b) {
    static const char site[] = "the first fiber of a loop of the service";
    ebb_region r = ebb_workflow_region(cx, b->workflow);
    ebb_status st = ebb_id_status(ebb_fiber_spawn_site(cx, r, first, b, NULL, site).id);
    return st == EBB_ERR_CLOSED || st == EBB_ERR_STALE ? EBB_OK : st;
}

/* An overdue workflow is reported but not abandoned: its end wakes the task. */
static ebb_status join(ebb_cx *cx, ebb__branch *b) {
    ebb_status st = ebb_workflow_join(cx, b->workflow, &b->report);
    return st == EBB_ERR_CANCEL_DRAIN_TIMEOUT ? EBB_PENDING : st;
}

static void force_here(ebb_cx *cx, const ebb__branch *b) {
    ebb_workflow_report now;
    ebb_status st = ebb_workflow_report_of(cx, b->workflow, &now);
    /* After the drain, the remaining time is the finalizers'. */
    if (st == EBB_OK && now.state == EBB_WORKFLOW_DRAINING)
        (void)ebb_workflow_force(cx, b->workflow, "what is around it");
}

/* The far region is closed when the shutdown has drained or was forced. */
static ebb_status watch(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    if (b->closing_there == NULL) b->closing_there = ebb_closing(cx);
    ebb_status st = ebb_await(cx, b->closing_there, NULL);
    if (st == EBB_PENDING) return st;
    if (atomic_load_explicit(&b->force, memory_order_relaxed)) force_here(cx, b); /* as in on_forced */
    return EBB_OK;
}

/* The task of the far region that contains the workflow. Masked, so that it receives the workflow's outcome. */
static ebb_status carry(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    ebb_loop *l;
    ebb_status st = ebb__loop_of(cx, &l);
    EBB_BEGIN(b);
    if (st != EBB_OK) return st;
    (void)ebb_mask(cx);
    l->share = &b->service->share;
    l->position = b->position;
    b->carrier = ebb_cx_task(cx);
    st = open_workflow(cx, b);
    if (st == EBB_OK) st = ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), watch, b).id);
    if (st != EBB_OK) return st;
    b->ready = ebb_peer_run(cx, ebb_loop_peer(b->service->loop), begin_together, b);
    EBB_AWAIT(b, st, ebb_await(cx, b->ready, NULL));
    if (st == EBB_OK) st = begin(cx, b);
    if (st != EBB_OK && !ebb_stopping(cx)) return st;
    EBB_AWAIT(b, st, join(cx, b));
    return st == EBB_ERR_CANCEL_LEAK ? b->report.status : st;
    EBB_END(b);
}

/* ---- orders ----------------------------------------------------------------------------------------------- */

static ebb_status stop_here(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    (void)ebb_workflow_request(cx, b->workflow, b->service->kind, b->service->why);
    return EBB_OK;
}

static ebb_status explain_here(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    ebb__service_explain(b->service, cx, b->workflow);
    return EBB_OK;
}

static ebb_status extend_here(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    /* Relaxed: the message orders it. */
    uint64_t more = atomic_exchange_explicit(&b->more, 0, memory_order_relaxed);
    if (more > 0) (void)ebb_workflow_extend(cx, b->workflow, more);
    return EBB_OK;
}

/* The shutdown workflow is requested last: its line in the log means that all loops are closed. */
static ebb_status send_order(ebb_cx *cx, void *arg) {
    const ebb__order *o = arg;
    ebb__service *s = o->service;
    ebb_future *done[EBB__SERVICE_LOOPS];
    assert(s->n <= EBB__SERVICE_LOOPS);
    for (uint32_t i = 0; i < s->n; i++) {
        done[i] = ebb_peer_run(cx, ebb_loop_peer(s->branches[i].loop), o->body, &s->branches[i]);
    }
    ebb_future *all = ebb_all_settled(cx, s->n, done);
    if (o != &s->stop) return ebb_await(cx, all, NULL) == EBB_CANCELLED ? EBB_CANCELLED : EBB_OK;
    (void)ebb_await(cx, ebb_within(cx, all, CONFIRM_MS * EBB_MS), NULL);
    ebb__service_request(s, cx, s->kind, s->why);
    return EBB_OK;
}

bool ebb__branches_order(ebb__service *s, ebb_cx *cx, const ebb__order *o) {
    if (s->n == 0) return false;
    ebb_task t = ebb_fiber_spawn_site(cx, s->operators, send_order, (void *)(uintptr_t)o, NULL,
                                      "an order to all loops");
    return ebb_id_status(t.id) == EBB_OK;
}

static ebb_status inspect_here(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    ebb__inspect_answer(b->service->inspect, cx, b->workflow, b->position);
    return EBB_OK;
}

static ebb_status ask(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    if (b->asked == NULL) b->asked = ebb_peer_run(cx, ebb_loop_peer(b->loop), inspect_here, b);
    ebb_status st = ebb_await(cx, b->asked, NULL);
    if (st == EBB_PENDING) return st;
    b->asked = NULL;
    b->asking = false;
    return st == EBB_CANCELLED ? st : EBB_OK;
}

void ebb__branches_inspect(ebb__service *s, ebb_cx *cx) {
    for (uint32_t i = 0; i < s->n; i++) {
        ebb__branch *b = &s->branches[i];
        if (!b->asking)
            b->asking =
                ebb_id_status(ebb_spawn_site(cx, s->operators, ask, b, "a look at all loops").id) == EBB_OK;
    }
}

void ebb__branches_stop(ebb__service *s, ebb_cx *cx) {
    if (s->stop_sent || s->n == 0) return;
    s->stop_sent = true;
    if (ebb__branches_order(s, cx, &s->stop)) return;
    for (uint32_t i = 0; i < s->n; i++) { /* without memory for a message: a close needs none */
        if (s->branches[i].far != NULL) (void)ebb_future_cancel(s->branches[i].far, EBB_CANCEL_SHUTDOWN);
    }
    ebb__service_request(s, cx, s->kind, s->why);
}

/* The operators are closed next, and with them the far regions. `watch` reads the flag then. */
static void on_forced(void *arg) {
    ebb__service *s = arg;
    for (uint32_t i = 0; i < s->n; i++) {
        /* Relaxed: the message of the close orders it. */
        atomic_store_explicit(&s->branches[i].force, true, memory_order_relaxed);
    }
}

/* The shutdown workflow was extended: the branches' workflows are too. */
static void on_extended(void *arg, uint64_t more) {
    ebb__service *s = arg;
    for (uint32_t i = 0; i < s->n; i++) {
        /* Relaxed, as above. */
        (void)atomic_fetch_add_explicit(&s->branches[i].more, more, memory_order_relaxed);
    }
    (void)ebb__branches_order(s, ebb_runtime_host(ebb_loop_runtime(s->loop)), &s->extend);
}

/* ---- on the first loop ------------------------------------------------------------------------------------- */

/* Holds the far region. It is a task of the operators, so a force of the shutdown does not cancel it: it waits for
 * the end of the branch, which is forced by an order. */
static ebb_status hold(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    if (b->far == NULL) {
        (void)ebb_mask(cx);
        b->far = ebb_peer_run(cx, ebb_loop_peer(b->loop), carry, b);
    }
    ebb_status st = ebb_await(cx, b->far, NULL);
    if (st == EBB_PENDING) return st;
    assert(b->held && !b->closed);
    b->status = st;
    b->closed = true;
    (void)ebb_task_wake(cx, b->stand_in);
    return EBB_OK;
}

/* Represents the branch among the work that the shutdown drains. */
static ebb_status stand_in(ebb_cx *cx, void *arg) {
    ebb__branch *b = arg;
    if (!b->polled) {
        b->polled = true;
        (void)ebb_mask(cx);
    }
    /* A failed start is reported by wait_for_all. */
    if (b->closed && ebb__service_failed(b->status) && !b->service->starting)
        ebb__service_request(b->service, cx, EBB_CANCEL_SIBLING_FAILED, ebb_status_name(b->status));
    if (b->closed) return b->status;
    if (ebb__is_overdue(cx)) return EBB_CANCELLED;
    ebb_status st = b->closing == NULL ? EBB_PENDING : ebb_await(cx, b->closing, NULL);
    if (st == EBB_PENDING) return st;
    b->closing = NULL;
    ebb__branches_stop(b->service, cx);
    return EBB_PENDING;
}

/* ---- starting --------------------------------------------------------------------------------------------- */

static ebb_status set_up(ebb__service *s, ebb_cx *cx, uint32_t n) {
    const ebb_allocator *a = &s->opts.loop.runtime.allocator;
    assert(s->n == 0 && n > 0 && n < EBB__SERVICE_LOOPS); /* beside the first loop */
    ebb__wf *wf = NULL;
    ebb_status st = ebb__share_init(&s->share, *a, n + 1);
    if (st != EBB_OK) return st;
    if (uv_mutex_init(&s->log) != 0) {
        ebb__share_fini(&s->share);
        return EBB_ERR_NOMEM;
    }
    s->branches = ebb__alloc(a, n * sizeof *s->branches);
    if (s->branches == NULL) {
        uv_mutex_destroy(&s->log);
        ebb__share_fini(&s->share);
        return EBB_ERR_NOMEM;
    }
    memset(s->branches, 0, n * sizeof *s->branches);
    s->n = n;
    s->stop = (ebb__order){s, stop_here};
    s->explain = (ebb__order){s, explain_here};
    s->extend = (ebb__order){s, extend_here};
    s->operators = ebb_workflow_operator_region(cx, s->shutdown);
    st = ebb_id_status(s->operators.id);
    if (st == EBB_OK) st = ebb__wf_find(cx, s->shutdown, &wf);
    if (st != EBB_OK) return st;
    wf->on_extended = on_extended;
    wf->on_forced = on_forced;
    s->number = wf->audit != NULL ? wf->number : 0;
    return EBB_OK;
}

/* A name that is too long is not cut: it would be another loop's. The file is then refused as ENOENT. */
static const char *file_of(char out[PATH_BYTES], const char *name, uint32_t loop) {
    if (name == NULL) return NULL;
    int n = snprintf(out, PATH_BYTES, "%s.%u", name, loop);
    return n < PATH_BYTES ? out : "";
}

static ebb_status start_threads(ebb__service *s) {
    ebb_loop_opts opts = s->opts.loop;
    opts.runtime.runtime_id = 0;
    ebb_status st = EBB_OK;
    for (uint32_t i = 0; st == EBB_OK && i < s->n; i++) {
        char trace[PATH_BYTES], journal[PATH_BYTES]; /* opened before ebb_loop_new returns */
        opts.trace_file = file_of(trace, s->opts.loop.trace_file, i + 1);
        opts.journal_file = file_of(journal, s->opts.loop.journal_file, i + 1);
        ebb__branch *b = &s->branches[i];
        b->service = s;
        b->position = i + 1;
        st = ebb_loop_new(&opts, wait_until_cancelled, b, &b->loop);
    }
    return st;
}

/* Nothing else runs on the first loop yet: this only receives messages of the branches. If one could not be started,
 * the others are still awaited: the shutdown must not be requested while they open their workflows. */
static ebb_status wait_for_all(ebb__service *s) {
    ebb_status st = EBB_OK;
    for (uint32_t i = 0; i < s->n; i++) {
        const ebb__branch *b = &s->branches[i];
        while (b->held && !b->counted && !b->closed) (void)s->os->run(&s->uv, UV_RUN_ONCE);
        if (st == EBB_OK && b->closed) st = b->status == EBB_OK ? EBB_ERR_CLOSED : b->status;
    }
    return st;
}

static ebb_status start_branch(ebb__service *s, ebb_cx *cx, ebb__branch *b) {
    static const char site[] = "a loop of the service";
    b->closing = ebb_closing(cx); /* of the root: the stand-in needs it to wait for the close */
    ebb_status st = ebb_future_status_of(b->closing);
    if (st != EBB_PENDING) return st;
    b->stand_in = ebb_spawn_site(cx, ebb_runtime_root(ebb_loop_runtime(s->loop)), stand_in, b, site);
    st = ebb_id_status(b->stand_in.id);
    if (st != EBB_OK) return st;
    st = ebb_id_status(ebb_spawn_site(cx, s->operators, hold, b, site).id);
    b->held = st == EBB_OK;
    b->closed = !b->held; /* then the stand-in has nothing to wait for */
    b->status = st;
    return st;
}

ebb_status ebb__branches_start(ebb__service *s, ebb_cx *cx, uint32_t n) {
    ebb_status st = set_up(s, cx, n);
    if (st == EBB_OK) st = start_threads(s);
    if (st != EBB_OK) return st;
    s->loop->share = &s->share;
    for (uint32_t i = 0; st == EBB_OK && i < n; i++) st = start_branch(s, cx, &s->branches[i]);
    ebb_status waited = wait_for_all(s);
    return st == EBB_OK ? waited : st;
}

void ebb__branches_go(ebb__service *s, ebb_cx *cx) {
    for (uint32_t i = 0; i < s->n; i++) ebb_sem_release(cx, &s->go);
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

static void add(ebb_workflow_report *r, const ebb_workflow_report *b) {
    r->cancelled |= b->cancelled;
    r->drain_timed_out |= b->drain_timed_out;
    r->forced |= b->forced;
    r->leaks += b->leaks;
    r->unnamed += b->unnamed;
    if (r->audit == EBB_OK) r->audit = b->audit;
    if (b->state == EBB_WORKFLOW_LEAK_DETECTED) r->state = b->state;
}

bool ebb__branches_end(ebb__service *s, ebb_workflow_report *r) {
    const ebb_allocator *a = &s->opts.loop.runtime.allocator;
    bool all = true;
    if (s->n == 0) return true;
    for (uint32_t i = 0; i < s->n; i++) {
        ebb_status st = EBB_OK;
        if (s->branches[i].loop != NULL) all &= ebb__loop_leave(s->branches[i].loop, &st);
        add(r, &s->branches[i].report);
        bool named = ebb__service_failed(r->status) && r->status != EBB_ERR_CLOSED;
        /* The branch's loop failed: that was the cause. */
        if (ebb__service_failed(st) && !named) r->status = st;
    }
    if (!all) return false;
    uv_mutex_destroy(&s->log);
    ebb__share_fini(&s->share);
    ebb__free(a, s->branches, s->n * sizeof *s->branches);
    s->n = 0;
    return true;
}
