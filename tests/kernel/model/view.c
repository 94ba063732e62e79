/* Kernel and model side by side: every task, region and count that both know. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernel/rt.h"
#include "tests/kernel/model/driver.h"

/* One state, as numbers with names, so that a difference can be printed whatever it is. */
enum { FIELDS = 16 };
typedef struct view {
    int n;
    const char *name[FIELDS];
    uint64_t value[FIELDS];
} view;

static void put(view *v, const char *name, uint64_t value) {
    v->name[v->n] = name;
    v->value[v->n++] = value;
}

void driver_note(driver *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *line = d->history[d->ops++ % HISTORY];
    int n = snprintf(line, LINE, "%" PRIu64 ": ", d->ops);
    vsnprintf(line + n, (size_t)(LINE - n), format, args);
    va_end(args);
}

static void print_piece(void *ctx, const char *text, size_t n) {
    (void)ctx;
    print_error("%.*s", (int)n, text);
}

void driver_fail(driver *d, const char *format, ...) {
    char text[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("seed %" PRIu64 ", episode %" PRIu64 ", operation %" PRIu64 ": %s\nthe last operations:\n",
                d->seed, d->episode, d->ops, text);
    uint64_t first = d->ops < HISTORY ? 0 : d->ops - HISTORY;
    for (uint64_t i = first; i < d->ops; i++) print_error("  %s\n", d->history[i % HISTORY]);
    print_error("the kernel's tree:\n");
    ebb_runtime_dump(d->rt, print_piece, NULL);
    fail();
    abort(); /* fail() does not return, but does not say so */
}

static void print_view(const char *who, const view *v) {
    print_error("%s:", who);
    for (int i = 0; i < v->n; i++) print_error(" %s %" PRIu64, v->name[i], v->value[i]);
    print_error("\n");
}

static void compare(driver *d, const char *noun, int number, const view *kernel, const view *expected) {
    for (int i = 0; i < kernel->n; i++) {
        if (kernel->value[i] == expected->value[i]) continue;
        print_view("kernel", kernel);
        print_view("model ", expected);
        driver_fail(d, "%s %d: %s is %" PRIu64 ", expected %" PRIu64, noun, number, kernel->name[i],
                    kernel->value[i], expected->value[i]);
    }
}

/* ---- tasks ---------------------------------------------------------------------------------------- */

static view kernel_task(driver *d, int t) {
    view v = {0};
    ebb_task_info info;
    bool visible = ebb_task_info_of(ebb_runtime_host(d->rt), d->task[t], &info) == EBB_OK;
    put(&v, "visible", visible);
    if (!visible) return v;
    bool ended = info.phase == EBB_TASK_COMPLETED;
    put(&v, "phase", (uint64_t)info.phase);
    put(&v, "kind", info.reason.kind);
    put(&v, "severity", info.reason.severity);
    put(&v, "epoch", info.epoch);
    put(&v, "mask", info.mask_depth);
    put(&v, "lane", info.lane);
    put(&v, "forced", info.forced);
    put(&v, "deadline", ended ? 0 : info.budget.deadline);
    put(&v, "polls", info.budget.polls);
    put(&v, "status", ended ? (uint64_t)info.status : 0);
    return v;
}

static view expected_task(const driver *d, int t) {
    view v = {0};
    const m_task *x = &d->m->task[t];
    put(&v, "visible", x->visible);
    if (!x->visible) return v;
    bool ended = x->phase == EBB_TASK_COMPLETED;
    put(&v, "phase", (uint64_t)x->phase);
    put(&v, "kind", x->told.kind);
    put(&v, "severity", x->told.severity);
    put(&v, "epoch", x->told.epoch);
    put(&v, "mask", x->mask);
    put(&v, "lane", (uint64_t)x->lane);
    put(&v, "forced", x->forced);
    put(&v, "deadline", ended ? 0 : m_cleanup_deadline(d->m, t));
    put(&v, "polls", ended || x->returned ? 0 : x->polls);
    put(&v, "status", ended ? (uint64_t)x->status : 0);
    return v;
}

/* ---- regions -------------------------------------------------------------------------------------- */

static view kernel_region(driver *d, int i) {
    view v = {0};
    ebb__region *r;
    bool visible = ebb__find_region(d->rt, d->region[i], &r) == EBB_OK;
    put(&v, "visible", visible);
    if (!visible) return v;
    put(&v, "state", r->state);
    put(&v, "kind", ebb__request_kind(r->request));
    put(&v, "severity", ebb__request_severity(r->request));
    put(&v, "epoch", ebb__request_epoch(r->request));
    put(&v, "tasks", r->tasks.n);
    put(&v, "children", r->children.n);
    put(&v, "obligations", ebb__cold_of(r)->obligations);
    put(&v, "abandoned", ebb__cold_of(r)->abandoned);
    put(&v, "leaked", ebb__cold_of(r)->leaked);
    put(&v, "status", (uint64_t)r->status);
    put(&v, "deadline", r->deadline);
    put(&v, "polls", r->polls);
    put(&v, "forced", (r->flags & R_FORCED) != 0);
    return v;
}

static view expected_region(const driver *d, int i) {
    view v = {0};
    const m_region *r = &d->m->region[i];
    put(&v, "visible", r->visible);
    if (!r->visible) return v;
    put(&v, "state", (uint64_t)r->state);
    put(&v, "kind", r->told.kind);
    put(&v, "severity", r->told.severity);
    put(&v, "epoch", r->told.epoch);
    put(&v, "tasks", (uint64_t)r->tasks.n);
    put(&v, "children", (uint64_t)r->children.n);
    put(&v, "obligations", (uint64_t)r->obligations);
    put(&v, "abandoned", r->abandoned);
    put(&v, "leaked", r->leaked);
    put(&v, "status", (uint64_t)r->status);
    put(&v, "deadline", r->deadline);
    put(&v, "polls", r->polls);
    put(&v, "forced", r->forced);
    return v;
}

/* ---- counts --------------------------------------------------------------------------------------- */

static view counts_of(const ebb_runtime_stats *s) {
    view v = {0};
    put(&v, "polls", s->polls);
    put(&v, "spawned", s->spawned);
    put(&v, "ended", s->ended);
    put(&v, "stale wakes", s->stale_wakes);
    put(&v, "leaks", s->leaks);
    put(&v, "abandoned", s->abandoned);
    put(&v, "illegal", s->illegal);
    put(&v, "regions", s->regions);
    put(&v, "obligations", s->obligations);
    put(&v, "timers", s->timers);
    put(&v, "runnable", s->runnable);
    return v;
}

static void compare_logs(driver *d) {
    for (int i = 0; i < d->seen_n || i < d->m->log_n; i++) {
        int seen = i < d->seen_n ? d->seen[i] : 0, expected = i < d->m->log_n ? d->m->log[i] : 0;
        if (seen != expected) {
            driver_fail(d, "the %d. hook or note was %d, expected %d (regions are negative)", i + 1, seen,
                        expected);
        }
    }
    d->seen_n = d->m->log_n = 0;
}

void driver_compare(driver *d) {
    for (int t = 1; t <= d->m->tasks; t++) {
        if (d->task[t].id == 0 || d->task_gone[t]) continue; /* 0: a closer; nobody was given its id */
        view kernel = kernel_task(d, t), expected = expected_task(d, t);
        compare(d, "task", t, &kernel, &expected);
        d->task_gone[t] = !d->m->task[t].visible;
    }
    for (int r = 1; r <= d->m->regions; r++) {
        if (d->region_gone[r]) continue;
        view kernel = kernel_region(d, r), expected = expected_region(d, r);
        compare(d, "region", r, &kernel, &expected);
        d->region_gone[r] = !d->m->region[r].visible;
    }
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(d->rt, &stats);
    d->m->stats.runnable = (uint32_t)d->m->runnable.n;
    view kernel = counts_of(&stats), expected = counts_of(&d->m->stats);
    compare(d, "runtime", 0, &kernel, &expected);
    compare_logs(d);
}
