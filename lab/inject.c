/* Cancellation injection: runs the same program many times, each time in a runtime of its own and in virtual time,
 * and stops it at another place.
 *
 * The first run counts the polls. It ends when the program has nothing more to do by itself, when its target has
 * ended, or, for an endless program, after HORIZON. Then, for each point n (0: before the first poll), the target is
 *   - requested to stop, cancelled, and forced from around it, right after the n-th poll;
 *   - requested to stop there, and disturbed in one of three ways when it enters a state, for each state that it
 *     entered undisturbed;
 *   - requested to stop there, and forced after each later poll, so that handlers are interrupted at each of theirs.
 * Once the target has ended the root is closed, which must end everything else. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ebb/lab.h>

#include "base/alloc.h"
#include "workflow/workflow.h"

#define HORIZON (10 * EBB_SECOND) /* twice the longest budget of the workflow types that come with Ebb */
enum { MAX_POLLS = 100000, TRACE_BYTES = 64 * 1024, RUNTIME_ID = 1 };

typedef enum action { NOTHING, REQUEST, CANCEL, FORCE } action;

/* What is injected in a run: `state` is an ebb_workflow_state, `action` one of those above. IDLE and no `later`: the
 * action happens at the point. Otherwise the point has a stop request, and the action follows when the workflow enters
 * the state, or after that poll. */
typedef ebb_injection_run plan;

typedef struct bytes {
    void *p;
    size_t n, room;
} bytes;

/* A block of the caller's memory that the program's runtime has. All blocks are in a list, so that blocks which
 * the program leaks are freed too. */
typedef struct block {
    _Alignas(max_align_t) struct block *next;
    struct block **owner;
    size_t size;
} block;

typedef struct ledger {
    ebb_allocator inner;
    block *first;
    uint64_t live, refused;
} ledger;

typedef struct rig {
    const ebb_injection *what;
    ebb_injected *out;
    ebb_allocator allocator;
    uint64_t max_polls;
    void *state;
    bytes trace, log; /* of the run; the next run reuses the memory */
    bool no_memory;

    /* State of the current run. */
    plan plan;
    ledger ledger;
    ebb_runtime *rt;
    ebb_audit *audit;
    ebb_workflow target;
    void (*on_state)(void *arg, ebb_workflow wf, ebb_workflow_state from,
                     ebb_workflow_state to); /* the program's own on_state */
    void *program_arg;
    uint64_t turns;
    bool acted, disturbed;
    uint64_t acted_at; /* time of the action */
    uint64_t polls;    /* polls until the target ended */
    uint32_t seen;     /* one bit for each state that was entered */
    ebb_workflow_report report;
} rig;

/* ---- memory -------------------------------------------------------------------------------------------- */

static void enter(ledger *l, block *b) {
    b->next = l->first;
    b->owner = &l->first;
    if (b->next != NULL) b->next->owner = &b->next;
    l->first = b;
    l->live++;
}

static void strike_out(ledger *l, block *b) {
    assert(*b->owner == b && l->live > 0);
    *b->owner = b->next;
    if (b->next != NULL) b->next->owner = b->owner;
    l->live--;
}

static void *ledger_fn(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ledger *l = ctx;
    block *old = ptr == NULL ? NULL : (block *)ptr - 1;
    (void)old_size;
    if (old != NULL) strike_out(l, old);
    size_t size = new_size == 0 ? 0 : sizeof(block) + new_size;
    block *b = l->inner.fn(l->inner.ctx, old, old == NULL ? 0 : old->size, size);
    if (size == 0) return NULL;
    if (b != NULL) b->size = size;
    else l->refused++;
    if (b != NULL || old != NULL) enter(l, b != NULL ? b : old);
    return b == NULL ? NULL : b + 1;
}

static void ledger_close(ledger *l) {
    while (l->first != NULL) (void)ledger_fn(l, l->first + 1, 0, 0);
    assert(l->live == 0);
}

static bool bytes_add(rig *g, bytes *b, const void *from, size_t n) {
    if (n > b->room - b->n) {
        size_t room = 2 * (b->n + n);
        void *p = ebb__resize(&g->allocator, b->p, b->room, room);
        if (p == NULL) {
            g->no_memory = true;
            return false;
        }
        b->p = p;
        b->room = room;
    }
    memcpy((char *)b->p + b->n, from, n);
    b->n += n;
    return true;
}

static void keep_trace(void *ctx, const void *piece, size_t n) {
    rig *g = ctx;
    (void)bytes_add(g, &g->trace, piece, n);
}

static ebb_status keep_line(void *ctx, const char *line, size_t n) {
    rig *g = ctx;
    return bytes_add(g, &g->log, line, n) ? EBB_OK : EBB_ERR_NOMEM;
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const char *const action_names[] = {
    [NOTHING] = "nothing", [REQUEST] = "a request", [CANCEL] = "a cancel from around it", [FORCE] = "force"};

static int describe(const rig *g, char *out, size_t room) {
    const plan *p = &g->plan;
    const char *name = g->what->name == NULL ? "program" : g->what->name;
    if (p->action == NOTHING) return snprintf(out, room, "%s, stopped by nobody: ", name);
    bool twice = p->state != EBB_WORKFLOW_IDLE || p->later != 0;
    int n = snprintf(out, room, "%s, point %" PRIu64 " of %" PRIu64 ", at %" PRIu64 " ms, %s", name, p->point,
                     g->out->points, g->acted_at / EBB_MS, action_names[twice ? REQUEST : p->action]);
    if (n < 0 || (size_t)n >= room) return n;
    if (!twice) return n + snprintf(out + n, room - (size_t)n, ": ");
    if (p->later != 0)
        return n + snprintf(out + n, room - (size_t)n,
                            ", then %s %" PRIu64 " polls later: ", action_names[p->action],
                            p->later - p->point);
    return n + snprintf(out + n, room - (size_t)n, ", then %s in %s: ", action_names[p->action],
                        ebb_workflow_state_name((ebb_workflow_state)p->state));
}

/* The one function that fails a run. */
__attribute__((format(printf, 2, 3))) static ebb_status fail(rig *g, const char *format, ...) {
    char *text = g->out->text;
    size_t room = sizeof g->out->text;
    int n = describe(g, text, room);
    if (n < 0 || (size_t)n >= room) return EBB_ERR_ORACLE;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + n, room - (size_t)n, format, args);
    va_end(args);
    return EBB_ERR_ORACLE;
}

/* ---- stopping the target ------------------------------------------------------------------------------- */

static ebb__wf *target_of(const rig *g) {
    ebb__wf *wf;
    return ebb__wf_find(ebb_runtime_host(g->rt), g->target, &wf) == EBB_OK ? wf : NULL;
}

static ebb_region around(const rig *g) {
    const ebb__wf *wf = target_of(g);
    return wf == NULL || wf->is_root ? ebb_runtime_root(g->rt) : wf->around;
}

static void request(rig *g, ebb_cancel_kind kind) {
    (void)ebb_workflow_request(ebb_runtime_host(g->rt), g->target, kind, "injected");
}

/* An operator can force only a drain. At other times, force the region around the target. */
static void force(rig *g) {
    ebb_cx *host = ebb_runtime_host(g->rt);
    const ebb__wf *wf = target_of(g);
    if (wf != NULL && wf->state == EBB_WORKFLOW_DRAINING)
        (void)ebb_workflow_force(host, g->target, "injected");
    else ebb_region_force(host, around(g));
}

static void act(rig *g, action d, ebb_cancel_kind requested_as) {
    if (d == REQUEST) request(g, requested_as);
    else if (d == CANCEL)
        ebb_region_cancel(ebb_runtime_host(g->rt), around(g), EBB_CANCEL_TIMEOUT, "injected");
    else if (d == FORCE) force(g);
}

static void act_at_point(rig *g) {
    const plan *p = &g->plan;
    if (p->later != 0 && g->acted && !g->disturbed && ebb__rt_polls(g->rt) >= p->later) {
        g->disturbed = true;
        act(g, (action)p->action, EBB_CANCEL_SHUTDOWN);
    }
    if (g->acted || p->action == NOTHING || ebb__rt_polls(g->rt) < p->point) return;
    g->acted = true;
    g->acted_at = ebb__now(g->rt);
    act(g, p->state == EBB_WORKFLOW_IDLE && p->later == 0 ? (action)p->action : REQUEST, EBB_CANCEL_USER);
}

/* Replaces the program's own on_state, and calls it first. */
static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    rig *g = arg;
    if (g->on_state != NULL) g->on_state(g->program_arg, wf, from, to);
    g->seen |= 1u << to;
    if (ebb__wf_is_final(to)) (void)ebb_workflow_report_of(ebb_runtime_host(g->rt), wf, &g->report);
    if (to != g->plan.state || g->plan.later != 0 || g->disturbed || !g->acted) return;
    g->disturbed = true;
    act(g, (action)g->plan.action, EBB_CANCEL_SHUTDOWN);
}

/* ---- one run ------------------------------------------------------------------------------------------- */

static ebb_status watch(rig *g) {
    ebb__wf *wf;
    ebb_status st = ebb__wf_find(ebb_runtime_host(g->rt), g->target, &wf);
    if (st != EBB_OK) return g->target.id == 0 ? EBB_ERR_INVALID : st;
    g->on_state = wf->on_state;
    g->program_arg = wf->arg;
    wf->on_state = on_state;
    wf->arg = g;
    return EBB_OK;
}

static ebb_status begin(rig *g) {
    ebb_audit_sink sink = {keep_line, NULL, g};
    ebb_allocator a = {ledger_fn, &g->ledger};
    if (g->state != NULL) memset(g->state, 0, g->what->state_size);
    ebb_status st = ebb_runtime_new(&(ebb_runtime_opts){.allocator = a, .runtime_id = RUNTIME_ID}, &g->rt);
    if (st == EBB_OK) ebb__rt_set_stepped(g->rt, true);
    if (st == EBB_OK) st = ebb_trace_start(g->rt, TRACE_BYTES);
    if (st == EBB_OK) st = ebb_audit_new(a, &sink, &g->audit);
    if (st == EBB_OK) st = g->what->setup(ebb_runtime_host(g->rt), g->audit, g->state, &g->target);
    return st == EBB_OK ? watch(g) : st;
}

/* One poll, or an advance of the clock to the next due time. EBB_PENDING: nothing is due any more. */
static ebb_status turn(rig *g) {
    uint64_t polls = ebb__rt_polls(g->rt);
    ebb_status st = ebb_runtime_pump(g->rt, 1);
    ebb_trace_take(g->rt, false, keep_trace, g);
    if (ebb__rt_polls(g->rt) > polls) act_at_point(g);
    (void)ebb_workflow_report_of(ebb_runtime_host(g->rt), g->target, &g->report);
    if (ebb__rt_polls(g->rt) > g->max_polls || ++g->turns > 4 * g->max_polls)
        return fail(g, "livelock: expected that it ends, found that it still runs after %" PRIu64 " polls",
                    ebb__rt_polls(g->rt));
    if (st == EBB_PENDING) return EBB_OK;
    uint64_t due = ebb_runtime_next_due(g->rt);
    if (due != EBB_FOREVER) ebb_runtime_advance(g->rt, due);
    return due == EBB_FOREVER ? EBB_PENDING : EBB_OK;
}

/* True if the target has ended or waits for an operator, or an undisturbed program has run until HORIZON. */
static bool has_ended(const rig *g) {
    const ebb__wf *wf = target_of(g);
    return wf == NULL || wf->ended || wf->overdue ||
           (g->plan.action == NOTHING && ebb__now(g->rt) >= HORIZON);
}

static ebb_status play(rig *g) {
    ebb_status st = EBB_OK;
    act_at_point(g);
    while (st == EBB_OK && !has_ended(g)) st = turn(g);
    g->polls = ebb__rt_polls(g->rt);
    if (g->plan.action == NOTHING) g->out->points = g->polls;
    return st == EBB_PENDING ? EBB_OK : st;
}

static bool is_closed(const rig *g) {
    ebb_region_state state;
    return ebb_region_state_of(ebb_runtime_host(g->rt), ebb_runtime_root(g->rt), &state) == EBB_OK &&
           state == EBB_REGION_CLOSED;
}

typedef struct excerpt {
    char text[160];
    size_t n;
} excerpt;

static void excerpt_add(void *ctx, const char *text, size_t n) {
    excerpt *e = ctx;
    if (n > sizeof e->text - 1 - e->n) n = sizeof e->text - 1 - e->n;
    memcpy(e->text + e->n, text, n);
    e->n += n;
}

static ebb_status stuck(rig *g) {
    excerpt e = {.n = 0};
    ebb_runtime_stats s;
    ebb_runtime_stats_of(g->rt, &s);
    ebb_runtime_dump(g->rt, excerpt_add, &e);
    return fail(g,
                "expected that everything ends when the root is closed, found %u tasks and %u regions:\n%s",
                s.tasks, s.regions, e.text);
}

/* Acts as the operator of a workflow that waits for one. */
static bool operate(rig *g) {
    const ebb__wf *wf = target_of(g);
    return wf != NULL && wf->overdue &&
           ebb_workflow_force(ebb_runtime_host(g->rt), g->target, "injected") == EBB_OK;
}

static ebb_status wind_down(rig *g) {
    ebb_region_close(ebb_runtime_host(g->rt), ebb_runtime_root(g->rt));
    while (!is_closed(g)) {
        ebb_status st = turn(g);
        if (st == EBB_PENDING && !is_closed(g) && !operate(g)) return stuck(g);
        if (st < 0) return st;
    }
    ebb_trace_take(g->rt, true, keep_trace, g);
    return EBB_OK;
}

/* ---- checking a run ------------------------------------------------------------------------------------ */

static bool is_left(const ebb_event *ev) {
    return ev->type == EBB_EV_OBLIGATION_LEAKED || ev->type == EBB_EV_ABANDONED ||
           ev->type == EBB_EV_FINALIZER_ABANDONED;
}

/* The first leak or abandonment in the trace, and its site: the texts that follow the event. */
static const char *first_left(const rig *g, excerpt *site) {
    ebb_trace_reader r;
    ebb_event ev;
    const char *what = NULL;
    if (ebb_trace_reader_open(&r, g->trace.p, g->trace.n) != EBB_OK) return "?";
    while (ebb_trace_reader_next(&r, &ev) == EBB_OK && (what == NULL || ev.type == EBB_EV_TEXT)) {
        if (what != NULL) excerpt_add(site, ev.text, strlen(ev.text));
        else if (is_left(&ev)) what = ebb_event_name(ev.type);
    }
    return what == NULL ? "?" : what;
}

static ebb_status left(rig *g) {
    excerpt site = {.n = 0};
    ebb_runtime_stats s;
    ebb_runtime_stats_of(g->rt, &s);
    if (g->what->expect_leaks || s.leaks + s.abandoned == 0) return EBB_OK;
    const char *what = first_left(g, &site);
    return fail(g,
                "expected that nothing is left, found %" PRIu64
                " obligations that nobody resolved and %" PRIu64
                " tasks and finalizers that did not return; the first: %s, from %s",
                s.leaks, s.abandoned, what, site.text);
}

static ebb_status alive(rig *g) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(g->rt, &s);
    if (s.tasks + s.regions + s.obligations == 0) return EBB_OK;
    return fail(g, "expected nothing alive, found %u tasks, %u regions and %u obligations", s.tasks,
                s.regions, s.obligations);
}

static ebb_status recorded(rig *g) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(g->rt, &s);
    if (s.trace_lost > 0)
        return fail(g, "expected at most %d bytes of trace a poll, found more", TRACE_BYTES);
    if (s.illegal > 0)
        return fail(g, "expected legal transitions, found %" PRIu64 " that are not", s.illegal);
    return EBB_OK;
}

/* After a stop request the target must reach the end of the protocol, unless it had ended before. */
static ebb_status finished(rig *g) {
    bool asked = g->seen >> EBB_WORKFLOW_CANCEL_REQUESTED & 1;
    if (asked && !ebb__wf_is_final(g->report.state))
        return fail(g, "expected FINALIZED, found %s", ebb_workflow_state_name(g->report.state));
    if (g->report.state == EBB_WORKFLOW_LEAK_DETECTED && !g->what->expect_leaks)
        return fail(g, "expected FINALIZED, found LEAK_DETECTED");
    if (g->report.audit != EBB_OK)
        return fail(g, "expected a whole audit log, found %s", ebb_status_name(g->report.audit));
    return EBB_OK;
}

static ebb_status oracles(rig *g) {
    ebb_trace_reader r;
    ebb_event ev;
    ebb_checker *c = ebb_checker_new(g->allocator);
    if (c == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_trace_reader_open(&r, g->trace.p, g->trace.n), read = EBB_OK;
    while (st == EBB_OK && (read = ebb_trace_reader_next(&r, &ev)) == EBB_OK) st = ebb_checker_event(c, &ev);
    if (st == EBB_OK) st = ebb_checker_end(c, true);
    const ebb_violation *v = ebb_checker_violation(c);
    if (v != NULL)
        st = fail(g, "%s at event %" PRIu64 ": %s", ebb_oracle_name(v->oracle), v->event.decision_seq,
                  v->text);
    else if (read < 0)
        st = fail(g, "expected a whole trace, found that at byte %zu %s", r.error_offset, r.error);
    ebb_checker_free(c);
    return st;
}

static ebb_status audit(rig *g) {
    ebb_audit_verdict v;
    ebb_status st = ebb_audit_verify(g->allocator, g->log.p, g->log.n, &v);
    if (st != EBB_ERR_ORACLE) return st;
    return fail(g, "audit log, line %" PRIu64 ", %s: %s", v.line, v.invariant, v.text);
}

static ebb_status checked(rig *g) {
    ebb_status st = g->what->check == NULL ? EBB_OK : g->what->check(g->state, &g->report);
    return st == EBB_OK ? st
                        : fail(g, "expected that the check agrees, found %s; the workflow is %s, %s",
                               ebb_status_name(st), ebb_workflow_state_name(g->report.state),
                               ebb_status_name(g->report.status));
}

static ebb_status check_run(rig *g) {
    static ebb_status (*const judges[])(rig * g) = {recorded, oracles, alive, left, finished, audit, checked};
    ebb_status st = EBB_OK;
    for (size_t i = 0; st == EBB_OK && i < sizeof judges / sizeof *judges; i++) st = judges[i](g);
    return st;
}

/* ---- all runs ------------------------------------------------------------------------------------------ */

static ebb_status end(rig *g, ebb_status st) {
    ebb_runtime_free(g->rt);
    ebb_audit_close(g->audit);
    if (st == EBB_OK && g->ledger.live != 0)
        st = fail(g, "expected that all memory is given back, found %" PRIu64 " blocks that are not",
                  g->ledger.live);
    ledger_close(&g->ledger);
    if (g->ledger.refused == 0 && !g->no_memory) return st;
    g->out->text[0] = 0; /* the lack of memory caused the failure */
    return EBB_ERR_NOMEM;
}

static void count(rig *g) {
    g->out->runs++;
    g->out->leaks += g->report.state == EBB_WORKFLOW_LEAK_DETECTED;
    g->out->forced += g->seen >> EBB_WORKFLOW_DRAIN_TIMEOUT & 1;
}

static ebb_status run(rig *g, plan p) {
    g->plan = g->out->run = p;
    g->ledger = (ledger){.inner = g->allocator};
    g->rt = NULL;
    g->audit = NULL;
    g->target = (ebb_workflow){0};
    g->turns = 0;
    g->acted = g->disturbed = false;
    g->acted_at = g->polls = 0;
    g->seen = 0;
    g->report = (ebb_workflow_report){.state = EBB_WORKFLOW_IDLE};
    g->trace.n = g->log.n = 0;
    ebb_status st = begin(g);
    if (st == EBB_OK) st = play(g);
    if (st == EBB_OK) st = wind_down(g);
    if (st == EBB_OK) st = check_run(g);
    count(g);
    return end(g, st);
}

/* Runs everything that can be injected at a point. The stop request comes first: it shows the states for the
 * others. */
static ebb_status run_point(rig *g, uint64_t point) {
    ebb_status st = run(g, (plan){point, EBB_WORKFLOW_IDLE, REQUEST, 0});
    uint32_t seen = g->seen;
    uint64_t polls = g->polls;
    if (st == EBB_OK) st = run(g, (plan){point, EBB_WORKFLOW_IDLE, CANCEL, 0});
    if (st == EBB_OK) st = run(g, (plan){point, EBB_WORKFLOW_IDLE, FORCE, 0});
    for (unsigned s = EBB_WORKFLOW_CANCEL_REQUESTED; s < EBB__WF_STATES; s++) {
        if (!(seen >> s & 1)) continue;
        for (action d = REQUEST; st == EBB_OK && d <= FORCE; d++)
            st = run(g, (plan){point, (ebb_workflow_state)s, d, 0});
    }
    for (uint64_t later = point + 1; st == EBB_OK && later < polls; later++)
        st = run(g, (plan){point, EBB_WORKFLOW_IDLE, FORCE, later});
    return st;
}

static ebb_status run_all(rig *g) {
    ebb_status st = run(g, (plan){0, EBB_WORKFLOW_IDLE, NOTHING, 0});
    if (st == EBB_OK && g->what->only != NULL) return run(g, *g->what->only);
    for (uint64_t n = 0; st == EBB_OK && n <= g->out->points; n++) st = run_point(g, n);
    return st;
}

ebb_status ebb_inject(ebb_allocator a, const ebb_injection *what, ebb_injected *out) {
    if (what == NULL || what->setup == NULL || out == NULL) return EBB_ERR_INVALID;
    *out = (ebb_injected){0};
    rig *g = ebb__alloc(&a, sizeof *g);
    if (g == NULL) return EBB_ERR_NOMEM;
    *g = (rig){.what = what, .out = out, .allocator = a, .max_polls = what->max_polls};
    if (g->max_polls == 0) g->max_polls = MAX_POLLS;
    if (what->state_size > 0) g->state = ebb__alloc(&a, what->state_size);
    ebb_status st = what->state_size > 0 && g->state == NULL ? EBB_ERR_NOMEM : run_all(g);
    ebb__free(&a, g->log.p, g->log.room);
    ebb__free(&a, g->trace.p, g->trace.room);
    ebb__free(&a, g->state, what->state_size);
    ebb__free(&a, g, sizeof *g);
    return st;
}
