/* What a workflow waits for, and why its region refuses, in words for people. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "future/promise.h"
#include "kernel/names.h"
#include "kernel/region.h"
#include "loop/nest.h"
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

/* ---- who holds it up ----------------------------------------------------------------------------------- */

static void say_handle(void *ctx, const char *what, const char *name, const char *site) {
    say(ctx, "  %s%s%s, opened at %s\n", what, name[0] == 0 ? "" : " ", name, site_of(site));
}

/* Obligations, or finalizers: those that run hold a region up, the others wait for it. */
static void say_duties(const sink *s, const ebb_rt *rt, uint32_t i, bool finalizers) {
    char id[40];
    for (; i != 0; i = ebb__duty_at(rt, i)->next) {
        const ebb__duty *d = ebb__duty_at(rt, i);
        uint64_t ms = (rt->now - d->since) / EBB_MS;
        if ((d->kind == 0) != finalizers) continue;
        if (finalizers && ebb__nest_each(d, say_handle, (void *)(uintptr_t)s)) continue;
        id_in(id, ebb__duty_id(rt, d));
        if (finalizers) say(s, "  finalizer %s, added at %s, %" PRIu64 " ms ago\n", id, site_of(d->site), ms);
        else
            say(s, "  obligation %s, %s, reserved at %s, %" PRIu64 " ms ago\n", id,
                ebb__obligation_kind_name(d->kind), site_of(d->site), ms);
    }
}

/* How long it has lived, in ms; of one that was cancelled by itself nobody knows. */
static void say_age(const sink *s, const ebb_rt *rt, const ebb__task *t) {
    uint32_t ticks = (uint32_t)(rt->now >> EBB__BORN_SHIFT) - ebb__cold_at(rt, t->index)->born;
    if (t->flags & F_OWN_CANCEL) return;
    say(s, ", %" PRIu64 " ms ago", ((uint64_t)ticks << EBB__BORN_SHIFT) / EBB_MS);
}

static const char *waiting(const ebb_rt *rt, const ebb__task *t) {
    const ebb_wait *w = ebb__cold_at(rt, t->index)->wait;
    if (t->queue != EBB_LANE_NONE) return "about to be polled";
    if (t->flags & F_IN_FINALIZER) return "in a finalizer";
    if (t->flags & F_RETURNED) return "waits for its regions";
    if (t->flags & F_JOINING) return "joins";
    return w != NULL ? w->kind->what : "parked";
}

static void say_task(const sink *s, const ebb_rt *rt, const ebb__task *t) {
    char id[40];
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    say(s, "  task %s, spawned at %s", id_in(id, ebb__task_id(t)), site_of(c->site));
    say_age(s, rt, t);
    say(s, ", %s", ebb__phase_name(t->phase));
    if (t->mask > 0) say(s, ", masked");
    say(s, ", %s%s\n",
        t->queue == EBB_LANE_NONE && c->wait != NULL && !(t->flags & F_RETURNED) ? "waits for " : "",
        waiting(rt, t));
    say_duties(s, rt, c->duties, (t->flags & F_IN_FINALIZER) != 0);
    if (t->flags & F_IN_FINALIZER) say_duties(s, rt, c->duties, false);
}

/* What somebody still produces for the region's futures: a read, a file, a function in the pool. */
static void say_operations(const sink *s, const ebb__scope *scope) {
    for (uint32_t i = 0; scope != NULL && i < scope->members_n; i++) {
        const ebb_future *f = (const ebb_future *)(const void *)ebb__member_cell(scope->members[i]);
        if (!(f->cell.type->reserved & EBB__TYPE_FUTURE) || !(f->flags & EBB__F_WORK)) continue;
        say(s, "  operation %s, begun at %s\n", ebb__future_name(f), site_of(f->site));
    }
}

/* The handler that a task is; NULL: it is none. */
static const ebb_drain *handler_of(const ebb_rt *rt, const ebb__task *t) {
    const ebb__wf *wf = ebb__wf_around(rt, ebb__region_at(rt, t->region));
    const ebb_drain *d = wf == NULL ? NULL : wf->handlers;
    while (d != NULL && d->task.id != ebb__task_id(t)) d = d->next;
    return d;
}

/* `of`: whose handlers need not be told apart. One that stands by holds nothing up. */
static void say_handler(const sink *s, const ebb_drain *d, const ebb__wf *of) {
    const ebb__wf *wf = d->wf;
    if (wf->state == EBB_WF_IDLE && wf != of) return;
    say(s, "  handler %s", d->name);
    if (wf != of) say(s, " of %s#%" PRIu64, wf->type->name, wf->number);
    say(s, ", added at %s, %" PRIu64 " of %" PRIu64 " done\n", site_of(d->site), d->done, d->total);
}

static void say_region(const sink *s, const ebb__wf *wf, ebb__region *r) {
    const ebb_rt *rt = wf->rt;
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    for (uint32_t i = 0; i < r->tasks.n; i++) {
        const ebb__task *t = ebb__task_at(rt, tasks[i]);
        const ebb_drain *d = handler_of(rt, t);
        if (d != NULL) say_handler(s, d, wf);
        else if (!(t->flags & F_CLOSER)) say_task(s, rt, t);
    }
    say_operations(s, r->scope);
    if (r->state == EBB_REGION_FINALIZING) say_duties(s, rt, r->duties, true);
    say_duties(s, rt, r->duties, false);
}

/* Operators who are not released: nobody waits for them. */
static bool is_apart(const ebb_rt *rt, const ebb__region *r) {
    return r->flags & R_OPERATOR && ebb__region_at(rt, r->parent)->flags & R_APART;
}

/* Everything that lives below its region, the handlers in the annex and what they made too. */
static void say_holders(const sink *s, const ebb__wf *wf) {
    ebb__region *top;
    if (ebb__find_region(wf->rt, wf->region, &top) != EBB_OK) return;
    bool holds = true;
    for (ebb__region *r = top; r != NULL; r = ebb__region_after(wf->rt, r, top, holds)) {
        holds = !is_apart(wf->rt, r);
        if (holds) say_region(s, wf, r);
    }
    for (const ebb_drain *d = wf->handlers; d != NULL; d = d->next) {
        if (d->over) say(s, "  handler %s has ended: %s\n", d->name, ebb_loop_status_name(d->status));
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
    if (wf->state != EBB_WF_IDLE) {
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

/* The one that was asked to stop: the outermost, as the others only follow it. */
static const ebb__wf *who_refuses(const ebb_rt *rt, const ebb__region *r) {
    const ebb__wf *found = NULL;
    for (const ebb__wf *wf = ebb__wf_around(rt, r); wf != NULL; wf = ebb__wf_parent(wf)) {
        if (wf->state != EBB_WF_IDLE) found = wf;
    }
    return found;
}

size_t ebb_closed_text(ebb_cx *cx, ebb_region region, char *out, size_t room) {
    ebb_rt *rt = ebb__rt_of(cx);
    ebb__region *r;
    if (room == 0) return 0;
    out[0] = 0;
    if (ebb__find_region(rt, region, &r) != EBB_OK || r->state == EBB_REGION_OPEN) return 0;
    const ebb__wf *wf = who_refuses(rt, r);
    char title[EBB__WF_TITLE];
    int n = wf == NULL
                ? snprintf(out, room, "the region is %s: no new work", ebb__region_state_name(r->state))
                : snprintf(out, room, "%s is %s (%s%s%s): no new work", ebb__wf_title(wf, title),
                           ebb_workflow_state_name(wf->state),
                           ebb_cancel_kind_name((ebb_cancel_kind)wf->reason.kind),
                           wf->reason.message[0] == 0 ? "" : ": ", wf->reason.message);
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}
