/* What a workflow waits for, and why its region refuses work, as text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "future/promise.h"
#include "kernel/names.h"
#include "loop/region_handles.h"
#include "workflow/workflow.h"

typedef struct sink {
    void (*write)(void *ctx, const char *text, size_t n);
    void *ctx;
} sink;

__attribute__((format(printf, 2, 3))) static void say(const sink *s, const char *format, ...) {
    char line[400];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n <= 0) return;
    bool cut = (size_t)n >= sizeof line;
    size_t length = cut ? sizeof line - 1 : (size_t)n;
    if (cut && format[strlen(format) - 1] == '\n') line[length - 1] = '\n';
    s->write(s->ctx, line, length);
}

static const char *id_in(char out[40], uint64_t id) {
    ebb__text t = ebb__text_in(out, 40);
    ebb__text_id(&t, id);
    return out;
}

static const char *site_of(const char *site) {
    return site == NULL ? "?" : site;
}

/* ---- what holds it up ---------------------------------------------------------------------------------- */

static void say_handle(void *ctx, const char *what, const char *name, const char *site) {
    say(ctx, "  %s%s%s, opened at %s\n", what, name[0] == 0 ? "" : " ", name, site_of(site));
}

typedef struct sayer {
    const sink *s;
    const ebb__wf *wf;
    bool finalizers;
} sayer;

/* Obligations or finalizers. Those that run hold a region up; the others wait for the region. */
static void say_obligation(void *ctx, const ebb__obligation_view *o) {
    const sayer *how = ctx;
    char id[40];
    uint64_t ms = (ebb__now(how->wf->rt) - o->since) / EBB_MS;
    if ((o->kind == 0) != how->finalizers) return;
    if (how->finalizers && ebb__region_handles_each(o, say_handle, (void *)(uintptr_t)how->s)) return;
    id_in(id, o->id);
    if (how->finalizers)
        say(how->s, "  finalizer %s, added at %s, %" PRIu64 " ms ago\n", id, site_of(o->site), ms);
    else
        say(how->s, "  obligation %s, %s, reserved at %s, %" PRIu64 " ms ago\n", id,
            ebb__obligation_kind_name(o->kind), site_of(o->site), ms);
}

static void say_obligations_of(const sayer *how, ebb_task task, bool finalizers) {
    sayer those = {how->s, how->wf, finalizers};
    ebb__task_obligations(how->wf->rt, task, say_obligation, &those);
}

/* The age is unknown for a task that was cancelled on its own. */
static void say_task(const sayer *how, const ebb__task_view *t) {
    char id[40];
    say(how->s, "  task %s, spawned at %s", id_in(id, t->id), site_of(t->site));
    if (t->age_ms != UINT64_MAX) say(how->s, ", %" PRIu64 " ms ago", t->age_ms);
    const char *what = t->doing, *site = NULL;
    bool begun = ebb__await_look(t->wait, &what, &site);
    say(how->s, ", %s%s, %s%s%s%s\n", ebb__phase_name(t->phase), t->masked ? ", masked" : "",
        t->waits ? "waits for " : "", what, begun ? " begun at " : "", begun ? site_of(site) : "");
    say_obligations_of(how, (ebb_task){t->id}, t->in_finalizer);
    if (t->in_finalizer) say_obligations_of(how, (ebb_task){t->id}, false);
}

/* Pending operations of the region's futures: a read, a file, a function in the pool. */
static void say_operations(const sink *s, const ebb__region_futures *futures) {
    for (uint32_t i = 0; futures != NULL && i < futures->members_n; i++) {
        const ebb_future *f = (const ebb_future *)(const void *)ebb__member_cell(futures->members[i]);
        if (!(f->cell.type->reserved & EBB__TYPE_FUTURE) || !(f->flags & EBB__F_WORK)) continue;
        say(s, "  operation %s, begun at %s\n", ebb__future_name(f), site_of(f->site));
    }
}

/* The handler that runs as this task; NULL: the task is not a handler. */
static const ebb_drain *handler_of(const ebb_runtime *rt, const ebb__task_view *t) {
    ebb__region *r;
    const ebb__wf *wf = ebb__region_get(rt, t->region, &r) == EBB_OK ? ebb__wf_around(rt, r) : NULL;
    const ebb_drain *d = wf == NULL ? NULL : wf->handlers;
    while (d != NULL && d->task.id != t->id) d = d->next;
    return d;
}

/* `of`: the workflow that is explained; handlers of others are shown with their workflow. A handler that waits for
 * the drain holds nothing up. */
static void say_handler(const sink *s, const ebb_drain *d, const ebb__wf *of) {
    const ebb__wf *wf = d->wf;
    if (wf->state == EBB_WORKFLOW_IDLE && wf != of) return;
    say(s, "  handler %s", d->name);
    if (wf != of) say(s, " of %s#%" PRIu64, wf->type->name, wf->number);
    say(s, ", added at %s, %" PRIu64 " of %" PRIu64 " done\n", site_of(d->site), d->done, d->total);
}

static void say_task_or_handler(void *ctx, const ebb__task_view *t) {
    const sayer *how = ctx;
    const ebb_drain *d = handler_of(how->wf->rt, t);
    if (d != NULL) say_handler(how->s, d, how->wf);
    else say_task(how, t);
}

/* What a layer knows of a region in which something lives. */
static void say_purpose(const sink *s, const ebb__wf *wf, ebb__region *r) {
    char text[300];
    bool (*described)(ebb_runtime *, const ebb__region *, char *, size_t) =
        ebb__face_of(wf->rt)->layers.call.described;
    if (described == NULL || ebb__region_tasks(wf->rt, r) == 0) return;
    if (described(wf->rt, r, text, sizeof text)) say(s, "  %s:\n", text);
}

static void say_region(const sink *s, const ebb__wf *wf, ebb__region *r) {
    sayer finalizers = {s, wf, true}, obligations = {s, wf, false};
    say_purpose(s, wf, r);
    ebb__tasks_each(wf->rt, r, say_task_or_handler, &obligations);
    say_operations(s, (const ebb__region_futures *)(const void *)ebb__region_callbacks(r));
    if (ebb__region_state(r) == EBB_REGION_FINALIZING)
        ebb__region_obligations(wf->rt, r, say_obligation, &finalizers);
    ebb__region_obligations(wf->rt, r, say_obligation, &obligations);
}

/* Everything that lives below the workflow's region, including the handlers in the drain region and what they
 * started. */
static void say_holders(const sink *s, const ebb__wf *wf) {
    ebb__region *top;
    if (ebb__region_get(wf->rt, wf->region, &top) != EBB_OK) return;
    bool holds = true;
    for (ebb__region *r = top; r != NULL; r = ebb__region_next(wf->rt, r, top, holds)) {
        holds = !ebb__region_is(wf->rt, r, EBB__REGION_APART);
        if (holds) say_region(s, wf, r);
    }
    for (const ebb_drain *d = wf->handlers; d != NULL; d = d->next) {
        if (d->ended) say(s, "  handler %s has ended: %s\n", d->name, ebb_status_name(d->status));
    }
}

ebb_status ebb_workflow_explain(ebb_cx *cx, ebb_workflow workflow,
                                void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    ebb__wf *wf = NULL;
    ebb_status st = ebb__wf_find(cx, workflow, &wf);
    if (st != EBB_OK) return st;
    sink s = {write, ctx};
    char title[EBB__WF_TITLE];
    say(&s, "%s is %s", ebb__wf_title(wf, title), ebb_workflow_state_name(wf->state));
    if (wf->state != EBB_WORKFLOW_IDLE) {
        say(&s, ", %" PRIu64 " of %" PRIu64 " ms, %s%s%s", ebb__wf_elapsed(wf) / EBB_MS,
            ebb__wf_budget(wf) / EBB_MS, ebb_cancel_kind_name((ebb_cancel_kind)wf->reason.kind),
            wf->reason.message[0] == 0 ? "" : ": ", wf->reason.message);
    }
    say(&s, "%s, %" PRIu64 " in flight\n",
        ebb__wf_is_overdue(wf) ? ", over its budget: extend or force it" : "", ebb__wf_in_flight(wf));
    say_holders(&s, wf);
    return EBB_OK;
}

/* ---- refusals ------------------------------------------------------------------------------------------ */

/* The workflow that was requested to stop: the outermost, since the inner ones follow it. */
static const ebb__wf *refusing_workflow(const ebb_runtime *rt, const ebb__region *r) {
    const ebb__wf *found = NULL;
    for (const ebb__wf *wf = ebb__wf_around(rt, r); wf != NULL; wf = ebb__wf_parent(wf)) {
        if (wf->state != EBB_WORKFLOW_IDLE) found = wf;
    }
    return found;
}

size_t ebb_region_closed_text(ebb_cx *cx, ebb_region region, char *out, size_t room) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (room == 0) return 0;
    out[0] = 0;
    if (ebb__region_get(rt, region, &r) != EBB_OK) return 0;
    ebb_region_state state = ebb__region_state(r);
    if (state == EBB_REGION_OPEN) return 0;
    const ebb__wf *wf = refusing_workflow(rt, r);
    char title[EBB__WF_TITLE];
    int n = wf == NULL ? snprintf(out, room, "the region is %s: no new work", ebb__region_state_name(state))
                       : snprintf(out, room, "%s is %s (%s%s%s): no new work", ebb__wf_title(wf, title),
                                  ebb_workflow_state_name(wf->state),
                                  ebb_cancel_kind_name((ebb_cancel_kind)wf->reason.kind),
                                  wf->reason.message[0] == 0 ? "" : ": ", wf->reason.message);
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}
