/* A process as a workflow: a loop, the shutdown workflow over its root region, three signals. */
#define _POSIX_C_SOURCE 200809L
#include "workflow/service.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/opts.h"

typedef ebb__service service;

/* ---- the log ------------------------------------------------------------------------------------------ */

static void to_stderr(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stderr);
}

void ebb__service_explain(service *s, ebb_cx *cx, ebb_workflow wf) {
    const ebb_service_opts *o = &s->opts;
    if (s->n > 0) uv_mutex_lock(&s->log);
    (void)ebb_workflow_explain(cx, wf, o->log != NULL ? o->log : to_stderr, o->log_ctx);
    if (s->n > 0) uv_mutex_unlock(&s->log);
}

/* The other loops get the same reason, whoever made the request. */
static void note_request(service *s) {
    ebb_workflow_report now;
    s->requested = true;
    if (s->stop_sent ||
        ebb_workflow_report_of(ebb_runtime_host(ebb_loop_runtime(s->loop)), s->shutdown, &now) != EBB_OK)
        return;
    s->kind = (ebb_cancel_kind)now.reason.kind;
    memcpy(s->why, now.reason.message, sizeof s->why);
}

/* The caller's hooks get the caller's argument. */
static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    const ebb_workflow_opts *o = &((service *)arg)->opts.shutdown;
    if (from == EBB_WORKFLOW_IDLE) note_request(arg);
    if (o->on_state != NULL) o->on_state(o->arg, wf, from, to);
}

static void on_overdue(void *arg, ebb_workflow wf) {
    service *s = arg;
    const ebb_workflow_opts *o = &s->opts.shutdown;
    ebb__service_explain(s, ebb_runtime_host(ebb_loop_runtime(s->loop)), wf);
    if (o->on_overdue != NULL) o->on_overdue(o->arg, wf);
}

/* ---- signals ------------------------------------------------------------------------------------------ */

void ebb__service_request(service *s, ebb_cx *cx, ebb_cancel_kind kind, const char *message) {
    if (!s->requested) (void)ebb_workflow_request(cx, s->shutdown, kind, message);
}

/* Only once: a third signal does not take the finalizers' time, which the second has granted. If the work has ended
 * by itself there is no workflow to force, but its region is forced. */
static void force(service *s, ebb_cx *cx, const char *message) {
    assert(s->signalled); /* by an earlier signal */
    if (s->forced) return;
    s->forced = true;
    if (s->n > 0)
        ebb__service_request(s, cx, s->kind, s->why); /* if the other loops have not confirmed yet */
    if (ebb_workflow_force(cx, s->shutdown, message) != EBB_OK)
        ebb_region_force(cx, ebb_runtime_root(ebb_loop_runtime(s->loop)));
}

static bool has_ended(const service *s) {
    ebb_runtime *rt = ebb_loop_runtime(s->loop);
    ebb_region_state state = EBB_REGION_OPEN;
    return ebb_region_state_of(ebb_runtime_host(rt), ebb_runtime_root(rt), &state) == EBB_OK &&
           state == EBB_REGION_CLOSED;
}

static const char *name_of(int signum) {
    return signum == SIGTERM ? "SIGTERM" : "SIGINT";
}

/* The loops after the first are requested to stop before the shutdown workflow is. */
static void request_stop(service *s, ebb_cx *cx, int signum) {
    s->signalled = true;
    if (s->requested || s->n == 0) {
        (void)ebb_workflow_request(cx, s->shutdown, EBB_CANCEL_USER, name_of(signum));
        return;
    }
    s->kind = EBB_CANCEL_USER;
    snprintf(s->why, sizeof s->why, "%s", name_of(signum));
    ebb__branches_stop(s, cx);
}

static void handle_signal(service *s, int signum) {
    ebb_cx *cx = ebb_loop_cx(s->loop);
    char again[32];
    snprintf(again, sizeof again, "a second signal, %s", name_of(signum));
    if (s->signalled) force(s, cx, again);
    else request_stop(s, cx, signum);
}

static void on_signal(uv_signal_t *uv, int signum) {
    service *s = uv->data;
    if (has_ended(s)) return;
    if (signum == SIGUSR1) {
        ebb_cx *cx = ebb_loop_cx(s->loop);
        ebb__service_explain(s, cx, s->shutdown);
        if (!s->starting) (void)ebb__branches_order(s, cx, &s->explain);
    } else if (s->starting) {
        s->early[s->early[0] != 0] = signum;
    } else {
        handle_signal(s, signum);
    }
}

static ebb_status listen_to(service *s, int i, int signum) {
    (void)s->os->signal_init(&s->uv, &s->signals[i]);
    s->signals[i].data = s;
    s->os->unref((uv_handle_t *)&s->signals[i]);
    int code = s->os->signal_start(&s->signals[i], on_signal, signum);
    return code == 0 ? EBB_OK : EBB_UV(code);
}

/* ---- one run ------------------------------------------------------------------------------------------- */

bool ebb__service_failed(ebb_status st) {
    return st != EBB_OK && st != EBB_CANCELLED && st != EBB_ERR_CANCEL_LEAK;
}

/* The first fiber. If it fails, the service stops. */
static ebb_status first(ebb_cx *cx, void *arg) {
    service *s = arg;
    ebb_status st = s->fn(cx, s->arg);
    if (!ebb__service_failed(st)) return st;
    (void)ebb_workflow_request(cx, s->shutdown, EBB_CANCEL_SIBLING_FAILED, ebb_status_name(st));
    return st;
}

static ebb_service_exit exit_of(const service *s, ebb_status st, const ebb_workflow_report *r) {
    if (s->forced) return EBB_SERVICE_FORCED;
    if (r->drain_timed_out) return EBB_SERVICE_TIMEOUT;
    if (ebb__service_failed(st) || ebb__service_failed(r->status)) return EBB_SERVICE_FAILED;
    return st == EBB_ERR_CANCEL_LEAK ? EBB_SERVICE_LEAK : EBB_SERVICE_OK;
}

/* Waits for a signal or a timer. libuv does not wait by itself if nothing keeps it alive: a region may wait for an
 * obligation when no task exists. */
static void wait_once(service *s) {
    uv_handle_t *any = (uv_handle_t *)&s->signals[0];
    if (any->data != NULL) s->os->ref(any);
    (void)s->os->run(&s->uv, UV_RUN_ONCE);
    if (any->data != NULL) s->os->unref(any);
}

/* Does not wait until libuv is idle: a function in the pool may still run after its region was forced. */
static void run_until_it_ends(service *s) {
    while (!has_ended(s)) {
        if (s->os->run(&s->uv, UV_RUN_ONCE) != 0) continue;
        (void)ebb_loop_cx(s->loop); /* a turn for requests made outside of one */
        (void)s->os->run(&s->uv, UV_RUN_NOWAIT);
        if (!has_ended(s)) wait_once(s);
    }
}

static ebb_status open_shutdown(service *s, ebb_cx *cx) {
    ebb_workflow_opts wo = s->opts.shutdown;
    if (wo.type == NULL) wo.type = &ebb_workflow_lifecycle_shutdown;
    wo.root = true;
    wo.parent = (ebb_region){0};
    wo.on_state = on_state;
    wo.on_overdue = on_overdue;
    wo.arg = s;
    s->shutdown = ebb_workflow_open(cx, &wo);
    return ebb_id_status(s->shutdown.id);
}

static uint32_t loops_of(const ebb_service_opts *o) {
    return o->loops == EBB_SERVICE_LOOPS_ALL ? ebb__platform_here()->available_parallelism() : o->loops;
}

/* If a loop can't start, the loops that did are stopped again. */
static ebb_status start(service *s) {
    ebb_cx *cx = ebb_loop_cx(s->loop);
    uint32_t n = loops_of(&s->opts);
    ebb_status st = open_shutdown(s, cx);
    s->starting = true;
    if (st == EBB_OK) st = listen_to(s, 0, SIGTERM);
    if (st == EBB_OK) st = listen_to(s, 1, SIGINT);
    if (st == EBB_OK) st = listen_to(s, 2, SIGUSR1);
    if (st == EBB_OK && n > 1) st = ebb__branches_start(s, cx, n - 1);
    if (st == EBB_OK) st = ebb__inspect_open(s, s->opts.inspect);
    cx = ebb_loop_cx(s->loop);
    if (st == EBB_OK)
        st = ebb_id_status(ebb_fiber_spawn_site(cx, ebb_runtime_root(ebb_loop_runtime(s->loop)), first, s,
                                                NULL, "the first fiber of the service")
                               .id);
    s->starting = false;
    if (st != EBB_OK && s->n > 0) ebb__service_request(s, cx, EBB_CANCEL_SIBLING_FAILED, ebb_status_name(st));
    ebb__branches_go(s, cx);
    for (int i = 0; st == EBB_OK && i < 2 && s->early[i] != 0; i++) handle_signal(s, s->early[i]);
    return st;
}

static ebb_service_exit run(service *s, const ebb_service_opts *opts) {
    ebb_workflow_report report = {0};
    ebb_status started = start(s);
    ebb_status st = ebb_workflow_join(ebb_loop_cx(s->loop), s->shutdown, &report);
    if (st == EBB_PENDING) {
        run_until_it_ends(s);
        st = ebb_workflow_join(ebb_loop_cx(s->loop), s->shutdown, &report);
    }
    bool stopped =
        started == EBB_ERR_CLOSED && ebb__service_failed(report.status); /* because of an earlier failure */
    if (started != EBB_OK && !stopped) report.status = started;
    s->abandoned = !ebb__branches_end(s, &report);
    if (report.leaks > 0) st = EBB_ERR_CANCEL_LEAK;
    if (opts->report != NULL) *opts->report = report;
    return exit_of(s, st, &report);
}

/* ---- around it ----------------------------------------------------------------------------------------- */

/* A pool thread that works for a forced region can't be stopped. Then the loop is not freed: the thread uses it
 * until the process ends. */
static bool leave(service *s) {
    ebb__inspect_close(s->inspect);
    for (int i = 0; i < EBB__SIGNALS; i++) {
        if (s->signals[i].data != NULL) s->os->close((uv_handle_t *)&s->signals[i], NULL);
    }
    (void)s->os->run(&s->uv, UV_RUN_NOWAIT);
    if (ebb_loop_close(s->loop, NULL, 0, NULL) != EBB_OK) {
        ebb__loop_record_end(s->loop);
        return false;
    }
    (void)s->os->run(&s->uv, UV_RUN_DEFAULT);
    if (!s->abandoned) ebb__inspect_free(s->inspect);
    return s->os->loop_close(&s->uv) == 0 && !s->abandoned;
}

/* EBB_OK: the loop is ready. Otherwise the reason why it can't start. */
static ebb_status set_up(service *s, const ebb_service_opts *opts) {
    s->os = ebb__platform_here();
    int code = s->os->loop_init(&s->uv);
    if (code != 0) return EBB_UV(code);
    ebb_status st = ebb_loop_attach(&s->uv, &opts->loop, &s->loop);
    if (st != EBB_OK) (void)s->os->loop_close(&s->uv);
    return st;
}

static ebb_status take_opts(ebb_service_opts *o, const ebb_service_opts *given, ebb_fiber_fn fn) {
    ebb_status st = EBB__OPTS_COPY(o, given);
    if (st == EBB_OK) st = EBB__OPTS_INNER(&o->loop);
    if (st == EBB_OK) st = EBB__OPTS_INNER(&o->loop.runtime);
    if (st == EBB_OK) st = EBB__OPTS_INNER(&o->shutdown);
    if (st != EBB_OK) return st;
    if (fn == NULL || o->loop.runtime.allocator.fn == NULL) return EBB_ERR_INVALID;
    return loops_of(o) > EBB__SERVICE_LOOPS ? EBB_ERR_LIMIT : EBB_OK;
}

uint32_t ebb_service_loop(ebb_cx *cx) {
    ebb_loop *l;
    return ebb__loop_of(cx, &l) == EBB_OK ? l->position : 0;
}

int ebb_service_run(const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg) {
    ebb_service_opts o;
    ebb_status st = take_opts(&o, opts, fn);
    const ebb_allocator *a = &o.loop.runtime.allocator;
    service *s = st == EBB_OK ? ebb__alloc(a, sizeof *s) : NULL;
    ebb_service_exit status = EBB_SERVICE_FAILED;
    bool gone = true;
    if (s != NULL) memset(s, 0, sizeof *s);
    if (st == EBB_OK) st = s == NULL ? EBB_ERR_NOMEM : set_up(s, &o);
    if (st == EBB_OK) {
        s->opts = o;
        s->fn = fn;
        s->arg = arg;
        status = run(s, &o);
        gone = leave(s);
    } else if (o.report != NULL) {
        *o.report = (ebb_workflow_report){.status = st};
    }
    if (gone && s != NULL) ebb__free(a, s, sizeof *s);
    return (int)status;
}
