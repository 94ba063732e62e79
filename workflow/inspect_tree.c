/* workflow/inspect_tree.c - one loop of a service as JSON.
 *
 * The walk visits at most REGIONS regions, parents first, TASKS tasks, and REGION_TASKS tasks of one region: a
 * million tasks cost no more than these. What it leaves out is counted, not visited. The tasks whose polls take the most
 * time are named beside the tree, wherever they are. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "fiber/fiber.h"
#include "future/future.h"
#include "kernel/names.h"
#include "loop/counters.h"
#include "workflow/inspect.h"
#include "workflow/workflow.h"

enum { REGIONS = 512, TASKS = 1024, REGION_TASKS = 64, SERVERS = 64, BUSIEST = 32 };
#define MEASURED_NS (10 * EBB_SECOND)

/* ---- text ---------------------------------------------------------------------------------------------- */

static bool grow(ebb__inspect_text *t, size_t more) {
    size_t room = t->room == 0 ? 16384 : t->room;
    while (room - t->n < more) room *= 2;
    if (t->failed || room == t->room) return !t->failed;
    char *at = ebb__resize(t->allocator, t->at, t->room, room);
    if (at == NULL) {
        t->failed = true;
        return false;
    }
    t->at = at;
    t->room = room;
    return true;
}

void ebb__inspect_say(ebb__inspect_text *t, const char *format, ...) {
    char piece[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof piece) t->failed = true;
    else ebb__inspect_add(t, piece, (size_t)n);
}

void ebb__inspect_add(ebb__inspect_text *t, const char *at, size_t n) {
    if (!grow(t, n + 1)) return;
    memcpy(t->at + t->n, at, n);
    t->n += n;
}

/* Bytes that are not printable ASCII become question marks. */
void ebb__inspect_string(ebb__inspect_text *t, const char *s) {
    size_t n = s == NULL ? 0 : strlen(s);
    if (s == NULL || !grow(t, 2 * n + 2)) {
        ebb__inspect_say(t, "null");
        return;
    }
    t->at[t->n++] = '"';
    for (; *s != 0; s++) {
        if (*s == '"' || *s == '\\') t->at[t->n++] = '\\';
        t->at[t->n++] = *s >= ' ' && *s <= '~' ? *s : '?';
    }
    t->at[t->n++] = '"';
}

void ebb__inspect_text_free(ebb__inspect_text *t) {
    ebb__free(t->allocator, t->at, t->room);
    *t = (ebb__inspect_text){.allocator = t->allocator};
}

/* Up to the last that is not 0. */
void ebb__inspect_times(ebb__inspect_text *t, const uint64_t times[EBB__TIMES]) {
    size_t n = EBB__TIMES;
    while (n > 0 && times[n - 1] == 0) n--;
    ebb__inspect_say(t, "[");
    for (size_t i = 0; i < n; i++) ebb__inspect_say(t, "%s%" PRIu64, i == 0 ? "" : ",", times[i]);
    ebb__inspect_say(t, "]");
}

static const char *id_in(char out[40], uint64_t id) {
    ebb__text t = ebb__text_in(out, 40);
    ebb__text_id(&t, id);
    return out;
}

/* ---- numbers of a loop --------------------------------------------------------------------------------- */

static void say_numbers(ebb__inspect_text *t, const ebb_runtime *rt) {
    ebb_runtime_stats s;
    ebb_fiber_stats f;
    ebb_heap_stats h;
    ebb_runtime_stats_of(rt, &s);
    ebb_fiber_stats_of(rt, &f);
    ebb_heap_stats_of(rt, &h);
    ebb__inspect_say(t,
                     ",\"tasks\":%" PRIu32 ",\"regions\":%" PRIu32 ",\"obligations\":%" PRIu32
                     ",\"timers\":%" PRIu32 ",\"spawned\":%" PRIu64 ",\"ended\":%" PRIu64
                     ",\"polls\":%" PRIu64 ",\"leaks\":%" PRIu64 ",\"abandoned\":%" PRIu64,
                     s.tasks, s.regions, s.obligations, s.timers, s.spawned, s.ended, s.polls, s.leaks,
                     s.abandoned);
    ebb__inspect_say(t, ",\"lanes\":{\"cancel\":%" PRIu32 ",\"timed\":%" PRIu32 ",\"ready\":%" PRIu32 "}",
                     ebb__rt_lane(rt, EBB_LANE_CANCEL), ebb__rt_lane(rt, EBB_LANE_TIMED),
                     ebb__rt_lane(rt, EBB_LANE_READY));
    ebb__inspect_say(t,
                     ",\"fibers\":{\"alive\":%" PRIu32 ",\"peak\":%" PRIu32 ",\"pooled\":%" PRIu32
                     ",\"bytes\":%" PRIu64 "}",
                     f.alive, f.peak, f.pooled, f.bytes);
    ebb__inspect_say(
        t, ",\"heap\":{\"live\":%zu,\"bytes\":%zu,\"collections\":%" PRIu64 ",\"pause_max_ns\":%" PRIu64 "}",
        h.live, h.bytes, h.collections, h.pause_max);
}

static void say_polls(ebb__inspect_text *t, ebb_runtime *rt) {
    char id[40];
    uint64_t since;
    ebb__poll_time all, longest;
    if (!ebb__poll_times_of(rt, &since, &all, &longest)) return;
    ebb__inspect_say(t,
                     ",\"measured\":{\"since_ns\":%" PRIu64 ",\"polls\":%" PRIu64 ",\"total_ns\":%" PRIu64
                     ",\"longest_ns\":%" PRIu64,
                     since, all.polls, all.total_ns, longest.max_ns);
    if (longest.task != 0) {
        ebb__inspect_say(t, ",\"longest_task\":\"%s\",\"longest_site\":", id_in(id, longest.task));
        ebb__inspect_string(t, longest.site);
    }
    ebb__inspect_say(t, ",\"times\":");
    ebb__inspect_times(t, ebb__poll_times_by_length(rt));
    ebb__inspect_say(t, "}");
}

static void say_counter(void *ctx, const char *counter, uint64_t value) {
    ebb__inspect_say(ctx, ",\"%s\":%" PRIu64, counter, value);
}

static void say_counters(ebb__inspect_text *t, const ebb_loop *l) {
    char name[80];
    uint32_t n = 0, left_out = 0;
    ebb__inspect_text numbers = {.allocator = t->allocator};
    ebb__inspect_say(t, ",\"counters\":[");
    for (const ebb__counters *c = l->counters; c != NULL; c = c->next) {
        if (n == SERVERS) {
            left_out++;
            continue;
        }
        numbers.n = 0;
        c->look(c, name, sizeof name, say_counter, &numbers);
        ebb__inspect_say(t, "%s{\"what\":", n++ == 0 ? "" : ",");
        ebb__inspect_string(t, c->what);
        ebb__inspect_say(t, ",\"name\":");
        ebb__inspect_string(t, name);
        for (size_t at = 0; at < numbers.n; at += 256) {
            ebb__inspect_say(t, "%.*s", (int)(numbers.n - at < 256 ? numbers.n - at : 256), numbers.at + at);
        }
        t->failed |= numbers.failed;
        ebb__inspect_say(t, "}");
    }
    ebb__inspect_say(t, "],\"counters_left_out\":%" PRIu32, left_out);
    ebb__inspect_text_free(&numbers);
}

/* ---- the tree ------------------------------------------------------------------------------------------ */

typedef struct walk {
    ebb__inspect_text *t;
    ebb_runtime *rt;
    const char *before;      /* what separates a task from what stands before it */
    uint32_t depth;          /* of the region whose tasks are written */
    uint32_t regions, tasks; /* visited */
} walk;

void ebb__inspect_task(ebb__inspect_text *t, const ebb_runtime *rt, const ebb__task_view *v, uint32_t depth) {
    char id[40];
    ebb__poll_time p;
    ebb__inspect_say(t, "{\"task\":\"%s\",", id_in(id, v->id));
    ebb__inspect_say(t, "\"in\":\"%s\",\"depth\":%" PRIu32 ",\"phase\":\"%s\",\"site\":",
                     id_in(id, v->region.id), depth, ebb__phase_name(v->phase));
    ebb__inspect_string(t, v->site);
    const char *doing = v->doing, *begun = NULL;
    bool awaits = ebb__await_look(v->wait, &doing, &begun);
    ebb__inspect_say(t, ",\"doing\":");
    ebb__inspect_string(t, doing);
    if (awaits) {
        ebb__inspect_say(t, ",\"begun_at\":");
        ebb__inspect_string(t, begun);
    }
    ebb__inspect_say(t, ",\"waits\":%s,\"masked\":%s", v->waits ? "true" : "false",
                     v->masked ? "true" : "false");
    if (v->age_ms != UINT64_MAX) ebb__inspect_say(t, ",\"age_ms\":%" PRIu64, v->age_ms);
    if (ebb__poll_time_of(rt, v->id, &p))
        ebb__inspect_say(t, ",\"polls\":%" PRIu64 ",\"poll_total_ns\":%" PRIu64 ",\"poll_max_ns\":%" PRIu64,
                         p.polls, p.total_ns, p.max_ns);
    ebb__inspect_say(t, "}");
}

static void say_task(void *ctx, const ebb__task_view *v) {
    walk *w = ctx;
    ebb__inspect_say(w->t, "%s", w->before);
    w->before = ",";
    ebb__inspect_task(w->t, w->rt, v, w->depth + 1);
}

void ebb__inspect_region(ebb__inspect_text *t, const ebb_runtime *rt, const ebb__region *r) {
    char id[40];
    ebb__region_view v = ebb__region_look(r);
    const ebb__region *parent = ebb__region_parent(rt, r);
    ebb__inspect_say(t, "{\"region\":\"%s\",", id_in(id, ebb__region_name(rt, r).id));
    if (parent != NULL) ebb__inspect_say(t, "\"in\":\"%s\",", id_in(id, ebb__region_name(rt, parent).id));
    ebb__inspect_say(t, "\"depth\":%" PRIu32 ",\"state\":\"%s\",\"site\":", v.depth,
                     ebb__region_state_name(v.state));
    ebb__inspect_string(t, ebb__region_site(r));
    ebb__inspect_say(
        t, ",\"tasks\":%" PRIu32 ",\"children\":%" PRIu32 ",\"obligations\":%" PRIu32 ",\"closing\":%s",
        v.tasks, v.children, v.obligations, ebb__region_is(rt, r, EBB__REGION_CLOSING) ? "true" : "false");
    if (v.request != 0) {
        ebb__inspect_say(
            t, ",\"request\":\"%s\",\"message\":", ebb_cancel_kind_name((ebb_cancel_kind)v.request));
        ebb__inspect_string(t, v.message);
    }
    if (v.deadline != EBB_FOREVER)
        ebb__inspect_say(t, ",\"left_ms\":%" PRId64, (int64_t)(v.deadline - ebb__now(rt)) / (int64_t)EBB_MS);
    ebb__inspect_say(t, "}");
}

static void say_region(walk *w, const ebb__region *r) {
    w->depth = ebb__region_look(r).depth;
    ebb__inspect_say(w->t, "%s", w->regions == 0 ? "" : ",");
    ebb__inspect_region(w->t, w->rt, r);
}

static void say_tree(walk *w) {
    ebb_runtime_stats all;
    ebb__region *root = NULL;
    ebb_runtime_stats_of(w->rt, &all);
    ebb__inspect_say(w->t, ",\"tree\":[");
    w->before = ",";
    if (ebb__region_get(w->rt, ebb_runtime_root(w->rt), &root) != EBB_OK) root = NULL;
    for (ebb__region *r = root; r != NULL && w->regions < REGIONS; w->regions++) {
        say_region(w, r);
        uint32_t most = TASKS - w->tasks < REGION_TASKS ? TASKS - w->tasks : REGION_TASKS;
        w->tasks += ebb__tasks_some(w->rt, r, most, say_task, w);
        r = ebb__region_next(w->rt, r, root, true);
    }
    ebb__inspect_say(w->t, "],\"left_out\":{\"regions\":%" PRIu32 ",\"tasks\":%" PRIu32 "}",
                     all.regions > w->regions ? all.regions - w->regions : 0,
                     all.tasks > w->tasks ? all.tasks - w->tasks : 0);
}

static void say_busiest(walk *w) {
    ebb__poll_time most[BUSIEST];
    uint32_t n = ebb__poll_times_most(w->rt, most, BUSIEST);
    ebb__inspect_say(w->t, ",\"busiest\":[");
    w->before = "";
    w->depth = 0;
    for (uint32_t i = 0; i < n; i++) (void)ebb__task_look(w->rt, (ebb_task){most[i].task}, say_task, w);
    ebb__inspect_say(w->t, "]");
}

void ebb__inspect_numbers(ebb__inspect_text *t, ebb_cx *cx, ebb_workflow wf, uint32_t position) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb_loop *l;
    ebb_workflow_report report;
    (void)ebb__poll_times_on(rt, MEASURED_NS);
    ebb__inspect_say(t, "\"loop\":%" PRIu32 ",\"now_ns\":%" PRIu64, position, ebb__now(rt));
    if (ebb_workflow_report_of(cx, wf, &report) == EBB_OK)
        ebb__inspect_say(t, ",\"state\":\"%s\",\"elapsed_ms\":%" PRIu64 ",\"budget_ms\":%" PRIu64,
                         ebb_workflow_state_name(report.state), report.elapsed / EBB_MS,
                         report.budget / EBB_MS);
    say_numbers(t, rt);
    say_polls(t, rt);
    if (ebb__loop_of(cx, &l) == EBB_OK) say_counters(t, l);
    ebb__inspect_workflows(t, rt);
}

void ebb__inspect_loop(ebb__inspect_text *t, ebb_cx *cx, ebb_workflow wf, uint32_t position) {
    walk w = {.t = t, .rt = ebb__rt_of(cx)};
    ebb__inspect_say(t, "{");
    ebb__inspect_numbers(t, cx, wf, position);
    say_tree(&w);
    say_busiest(&w);
    ebb__inspect_say(t, "}");
}
