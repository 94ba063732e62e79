/* A process as a workflow: a loop, the shutdown workflow over its root region, three signals. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include <ebb/workflow.h>

enum { SIGNALS = 3 }; /* SIGTERM, SIGINT, SIGUSR1 */

typedef struct service {
    uv_loop_t uv;
    uv_signal_t signals[SIGNALS];
    const ebb_service_opts *opts;
    ebb_loop *loop;
    ebb_workflow shutdown;
    bool asked, forced;
    ebb_fiber_fn fn;
    void *arg;
} service;

/* ---- the log ------------------------------------------------------------------------------------------ */

static void to_stderr(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stderr);
}

static void explain(service *s, ebb_workflow wf) {
    ebb_cx *cx = ebb_host(ebb_loop_runtime(s->loop));
    const ebb_service_opts *o = s->opts;
    (void)ebb_workflow_explain(cx, wf, o->log != NULL ? o->log : to_stderr, o->log_ctx);
}

/* The hooks of the caller have the argument of the caller. */
static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    const ebb_workflow_opts *o = &((service *)arg)->opts->shutdown;
    if (o->on_state != NULL) o->on_state(o->arg, wf, from, to);
}

static void on_overdue(void *arg, ebb_workflow wf) {
    service *s = arg;
    const ebb_workflow_opts *o = &s->opts->shutdown;
    explain(s, wf);
    if (o->on_overdue != NULL) o->on_overdue(o->arg, wf);
}

/* ---- signals ------------------------------------------------------------------------------------------ */

/* Once: a third signal does not cut the finalizers short that the second has left their time. Of a service
 * whose work has ended by itself there is no workflow to force, but its region still is. */
static void force(service *s, ebb_cx *cx, const char *message) {
    if (s->forced) return;
    s->forced = true;
    if (ebb_workflow_force(cx, s->shutdown, message) != EBB_OK)
        ebb_region_force(cx, ebb_root(ebb_loop_runtime(s->loop)));
}

static bool has_ended(const service *s) {
    ebb_rt *rt = ebb_loop_runtime(s->loop);
    ebb_region_state state = EBB_REGION_OPEN;
    return ebb_region_state_of(ebb_host(rt), ebb_root(rt), &state) == EBB_OK && state == EBB_REGION_CLOSED;
}

static void on_signal(uv_signal_t *uv, int signum) {
    service *s = uv->data;
    if (has_ended(s)) return;
    ebb_cx *cx = ebb_loop_cx(s->loop);
    if (signum == SIGUSR1) {
        explain(s, s->shutdown);
        return;
    }
    const char *name = signum == SIGTERM ? "SIGTERM" : "SIGINT";
    char again[32];
    snprintf(again, sizeof again, "a second signal, %s", name);
    if (s->asked) force(s, cx, again);
    else (void)ebb_workflow_request(cx, s->shutdown, EBB_CANCEL_USER, name);
    s->asked = true;
}

static ebb_status listen_to(service *s, int i, int signum) {
    (void)uv_signal_init(&s->uv, &s->signals[i]);
    s->signals[i].data = s;
    uv_unref((uv_handle_t *)&s->signals[i]);
    int code = uv_signal_start(&s->signals[i], on_signal, signum);
    return code == 0 ? EBB_OK : EBB_UV(code);
}

/* ---- one run ------------------------------------------------------------------------------------------- */

static bool has_failed(ebb_status st) {
    return st != EBB_OK && st != EBB_CANCELLED && st != EBB_ERR_CANCEL_LEAK;
}

/* The first fiber. A service without it is none. */
static ebb_status first(ebb_cx *cx, void *arg) {
    service *s = arg;
    ebb_status st = s->fn(cx, s->arg);
    const char *why = ebb_loop_status_name(st);
    if (has_failed(st)) (void)ebb_workflow_request(cx, s->shutdown, EBB_CANCEL_SIBLING_FAILED, why);
    return st;
}

static ebb_exit exit_of(const service *s, ebb_status st, const ebb_workflow_report *r) {
    if (s->forced) return EBB_EXIT_FORCED;
    if (r->drain_timed_out) return EBB_EXIT_TIMEOUT;
    if (has_failed(st) || has_failed(r->status)) return EBB_EXIT_FAILED;
    return st == EBB_ERR_CANCEL_LEAK ? EBB_EXIT_LEAK : EBB_EXIT_OK;
}

/* Not until libuv has nothing left: a function in the pool may go on after the region that it was for was
 * forced. */
static void run_until_it_ends(service *s) {
    while (!has_ended(s)) {
        if (uv_run(&s->uv, UV_RUN_ONCE) == 0)
            (void)ebb_loop_cx(s->loop); /* a turn for what was said outside of one */
    }
}

static ebb_exit run(service *s, const ebb_service_opts *opts) {
    ebb_cx *cx = ebb_loop_cx(s->loop);
    ebb_workflow_opts wo = opts->shutdown;
    ebb_workflow_report report = {0};
    if (wo.type == NULL) wo.type = &ebb_lifecycle_shutdown;
    wo.root = true;
    wo.parent = (ebb_region){0};
    wo.on_state = on_state;
    wo.on_overdue = on_overdue;
    wo.arg = s;
    s->shutdown = ebb_workflow_open(cx, &wo);
    ebb_status st = ebb_id_status(s->shutdown.id);
    if (st == EBB_OK) st = listen_to(s, 0, SIGTERM);
    if (st == EBB_OK) st = listen_to(s, 1, SIGINT);
    if (st == EBB_OK) st = listen_to(s, 2, SIGUSR1);
    if (st == EBB_OK)
        st = ebb_id_status(ebb_fiber_spawn_at(cx, ebb_root(ebb_loop_runtime(s->loop)), first, s, NULL,
                                              "the first fiber of the service")
                               .id);
    ebb_status started = st;
    st = ebb_workflow_join(cx, s->shutdown, &report);
    if (st == EBB_PENDING) {
        run_until_it_ends(s);
        st = ebb_workflow_join(ebb_loop_cx(s->loop), s->shutdown, &report);
    }
    if (started != EBB_OK) report.status = started;
    if (opts->report != NULL) *opts->report = report;
    return exit_of(s, st, &report);
}

/* ---- around it ----------------------------------------------------------------------------------------- */

/* What a thread of the pool still does for a region that was forced can't be stopped: the loop is left to
 * it then, and to the end of the process. */
static bool leave(service *s) {
    for (int i = 0; i < SIGNALS; i++) {
        if (s->signals[i].data != NULL) uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
    (void)uv_run(&s->uv, UV_RUN_NOWAIT);
    if (ebb_loop_close(s->loop, NULL, 0, NULL) != EBB_OK) return false;
    (void)uv_run(&s->uv, UV_RUN_DEFAULT);
    return uv_loop_close(&s->uv) == 0;
}

/* Why it can't start; EBB_OK: the loop is there. */
static ebb_status set_up(service *s, const ebb_service_opts *opts) {
    int code = uv_loop_init(&s->uv);
    if (code != 0) return EBB_UV(code);
    ebb_status st = ebb_attach(&s->uv, &opts->loop, &s->loop);
    if (st != EBB_OK) (void)uv_loop_close(&s->uv);
    return st;
}

static ebb_status check(const ebb_service_opts *opts, ebb_fiber_fn fn) {
    if (opts->size != 0 && opts->size != sizeof *opts) return EBB_ERR_VERSION;
    return fn == NULL || opts->loop.runtime.allocator.fn == NULL ? EBB_ERR_INVALID : EBB_OK;
}

int ebb_service_run(const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg) {
    if (opts == NULL) return EBB_EXIT_FAILED;
    const ebb_allocator *a = &opts->loop.runtime.allocator;
    ebb_status st = check(opts, fn);
    service *s = st == EBB_OK ? ebb__alloc(a, sizeof *s) : NULL;
    ebb_exit status = EBB_EXIT_FAILED;
    bool gone = true;
    if (s != NULL) memset(s, 0, sizeof *s);
    if (st == EBB_OK) st = s == NULL ? EBB_ERR_NOMEM : set_up(s, opts);
    if (st == EBB_OK) {
        s->opts = opts;
        s->fn = fn;
        s->arg = arg;
        status = run(s, opts);
        gone = leave(s);
    } else if (st != EBB_ERR_VERSION && opts->report != NULL) {
        *opts->report = (ebb_workflow_report){.status = st};
    }
    if (gone && s != NULL) ebb__free(a, s, sizeof *s);
    return (int)status;
}
