/* Random programs with workflows: opened, nested, asked, extended, forced, joined, closed and cancelled from
 * anywhere, with work that stops, fails, sleeps or does not listen, and a clock that jumps. Whatever
 * happens, everything ends, the trace keeps every rule, the log verifies, the journal replays, and all
 * memory is given back. */
#include "tests/support/replay_run.h"

#include <ebb/ebb.h>
#include <stdio.h>

enum { ACTORS = 400, WORKFLOWS = 40, STEPS = 60, SEEDS = 1500, LOG = 1 << 22 };

typedef struct chaos chaos;

typedef struct actor {
    chaos *c;
    ebb_task task;
    ebb_sleeper nap;
    ebb_workflow own;
    ebb_region scope;
    ebb_future *f;
    uint64_t span;
    uint32_t polls, kind;
    ebb_status st;
} actor;

struct chaos {
    run r;
    ebb_failing memory;
    uint64_t seed, random;
    ebb_audit *audit;
    char *log;
    size_t log_n;
    bool talks; /* the log is printed if it is wrong */
    ebb_workflow wf[WORKFLOWS];
    uint32_t wfs;
    actor actor[ACTORS];
    uint32_t actors;
};

/* ---- chance ---------------------------------------------------------------------------------- */

static uint32_t any(chaos *c, uint32_t below) {
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(c->random >> 33) % below;
}

static bool one_in(chaos *c, uint32_t n) {
    return any(c, n) == 0;
}

static uint64_t any_span(chaos *c) {
    static const uint64_t spans[] = {0, 1, 5, 40, 200, 700, 1500, 4000};
    return spans[any(c, 8)] * EBB_MS + (one_in(c, 4) ? any(c, 1000) * EBB_US : 0);
}

static ebb_workflow any_workflow(chaos *c) {
    return c->wfs == 0 ? (ebb_workflow){0} : c->wf[any(c, c->wfs)];
}

static ebb_region any_region(chaos *c, ebb_cx *cx) {
    if (one_in(c, 4)) return ebb_cx_region(cx);
    if (one_in(c, 8)) return ebb_workflow_operator_region(cx, any_workflow(c));
    return ebb_workflow_region(cx, any_workflow(c));
}

static ebb_cancel_kind any_kind(chaos *c) {
    return (ebb_cancel_kind)(EBB_CANCEL_USER + any(c, EBB_CANCEL_PARENT));
}

/* ---- who acts -------------------------------------------------------------------------------- */

static void do_something(chaos *c, ebb_cx *cx);
static void stop_something(chaos *c, ebb_cx *cx, ebb_workflow wf);
static void on_overdue(void *arg, ebb_workflow wf) {
    chaos *c = arg;
    if (one_in(c, 3)) stop_something(c, c->r.host, wf);
}

static ebb_workflow open_something(chaos *c, ebb_cx *cx, ebb_region parent);
static void spawn_something(chaos *c, ebb_cx *cx, ebb_region r);

enum {
    HEEDS,
    IGNORES,
    SLEEPS,
    FAILS,
    JOINS,
    LEAVES,
    OWES,
    FORGETS,
    MEDDLES,
    MASKED,
    ENDS,
    LOOKS_FORWARD,
    PRODUCES,
    CLEANS,
    KINDS
};

static ebb_status acts_first(ebb_cx *cx, actor *a) {
    chaos *c = a->c;
    if (a->kind == MASKED) (void)ebb_mask(cx);
    if (a->kind == OWES || a->kind == FORGETS)
        (void)ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, NULL, NULL);
    if (a->kind == JOINS || a->kind == LEAVES) a->own = open_something(c, cx, (ebb_region){0});
    if (a->kind == JOINS && one_in(c, 2)) stop_something(c, cx, a->own);
    return a->kind == LEAVES ? EBB_OK : EBB_PENDING;
}

/* Every other producer stops when it is asked to. */
static void ask_producer(ebb_cx *cx, ebb_future *f, void *arg) {
    const actor *a = arg;
    (void)cx;
    if (a->span % (2 * EBB_MS) == 0) (void)ebb_promise_reject(f, EBB_CANCELLED);
}
static const ebb_operation production = {"production", ask_producer, NULL};

static ebb_status awaits(ebb_cx *cx, actor *a) {
    if (a->f == NULL)
        a->f = a->kind == LOOKS_FORWARD ? ebb_after(cx, a->span) : ebb_promise_new(cx, &production, a);
    a->st = ebb_await(cx, a->f, NULL);
    return a->st;
}

static void open_scope(ebb_cx *cx, actor *a) {
    (void)ebb_mask(cx);
    a->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
    spawn_something(a->c, cx, a->scope);
    if (one_in(a->c, 2)) (void)open_something(a->c, cx, a->scope);
}

/* Waits to be told to stop, and then for what it does because of that. */
static ebb_status cleans(ebb_cx *cx, actor *a) {
    if (a->scope.id == 0 && ebb_checkpoint(cx) == EBB_OK) return EBB_PENDING;
    if (a->scope.id == 0) open_scope(cx, a);
    if (ebb_id_status(a->scope.id) != EBB_OK) return EBB_CANCELLED;
    return ebb_region_join(cx, a->scope) == EBB_PENDING ? EBB_PENDING : EBB_CANCELLED;
}

static ebb_status acts(ebb_cx *cx, void *state) {
    actor *a = state;
    if (a->polls++ == 0 && acts_first(cx, a) == EBB_OK) return EBB_OK;
    switch (a->kind) {
    case HEEDS: return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
    case IGNORES: return EBB_PENDING;
    case LOOKS_FORWARD:
    case PRODUCES: return awaits(cx, a);
    case CLEANS: return cleans(cx, a);
    case JOINS:
        if (ebb_id_status(a->own.id) != EBB_OK) return EBB_OK;
        a->st = ebb_workflow_join(cx, a->own, NULL);
        return a->st;
    default: break;
    }
    a->st = ebb_sleep(cx, &a->nap, a->span);
    if (a->st == EBB_PENDING) return a->st;
    if (a->kind == MEDDLES) do_something(a->c, cx);
    if (a->kind == MASKED) (void)ebb_unmask(cx);
    return a->kind == FAILS ? EBB_FAILED : a->st;
}

/* The same as a fiber: what would be pending waits in place. */
static ebb_status acts_in_fiber(ebb_cx *cx, void *state) {
    ebb_status st;
    while ((st = acts(cx, state)) == EBB_PENDING) (void)ebb_fiber_park(cx);
    return st;
}

static ebb_status drains(ebb_cx *cx, ebb_drain *d, void *state) {
    actor *a = state;
    ebb_drain_progress(d, a->polls, 9);
    if (a->polls == 0) ebb_drain_evidence(d, "first", "poll");
    (void)ebb_drain_left(cx, d);
    return acts(cx, state);
}

static ebb_status drains_in_fiber(ebb_cx *cx, ebb_drain *d, void *state) {
    ebb_drain_evidence(d, "in", "a fiber");
    return acts_in_fiber(cx, state);
}

static actor *actor_new(chaos *c) {
    if (c->actors == ACTORS) return NULL;
    actor *a = &c->actor[c->actors++];
    *a = (actor){.c = c, .span = any_span(c), .kind = any(c, KINDS)};
    return a;
}

/* ---- what can be done ------------------------------------------------------------------------ */

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    chaos *c = arg;
    if (to <= from) fail_msg("seed %u: from %d to %d", (unsigned)c->seed, from, to);
    if (one_in(c, 6)) stop_something(c, c->r.host, one_in(c, 2) ? wf : any_workflow(c));
}

static ebb_workflow open_something(chaos *c, ebb_cx *cx, ebb_region parent) {
    static const ebb_workflow_type *const types[] = {
        &ebb_workflow_lifecycle_shutdown, &ebb_workflow_rollout_cancel, &ebb_workflow_publish_abort,
        &ebb_workflow_health_check_cancel};
    if (c->wfs == WORKFLOWS) return (ebb_workflow){0};
    ebb_workflow_opts opts = {.type = types[any(c, 4)],
                              .name = one_in(c, 2) ? "x" : NULL,
                              .no_force = one_in(c, 4),
                              .parent = parent,
                              .policy = one_in(c, 2) ? EBB_FAIL_COLLECT : EBB_FAIL_FAST,
                              .audit = c->audit,
                              .on_state = on_state,
                              .on_overdue = on_overdue,
                              .arg = c};
    if (one_in(c, 4)) opts.budget = any_span(c) + 1;
    if (one_in(c, 4)) opts.cancel_at = any(c, 900) * EBB_MS;
    if (one_in(c, 30) && parent.id == 0) opts.root = true;
    ebb_workflow wf = ebb_workflow_open(cx, &opts);
    if (ebb_id_status(wf.id) == EBB_OK) c->wf[c->wfs++] = wf;
    return wf;
}

static void spawn_something(chaos *c, ebb_cx *cx, ebb_region r) {
    actor *a = actor_new(c);
    if (a == NULL) return;
    a->task = one_in(c, 3) ? ebb_fiber_spawn(cx, r, acts_in_fiber, a) : ebb_spawn(cx, r, acts, a);
}

static void add_something(chaos *c, ebb_cx *cx, ebb_workflow wf) {
    actor *a = actor_new(c);
    if (a == NULL) return;
    if (one_in(c, 3)) (void)ebb_workflow_on_drain_fiber(cx, wf, "fiber", drains_in_fiber, a);
    else (void)ebb_workflow_on_drain(cx, wf, "poll", drains, a);
}

static void stop_something(chaos *c, ebb_cx *cx, ebb_workflow wf) {
    switch (any(c, 4)) {
    case 0: (void)ebb_workflow_extend(cx, wf, any_span(c)); break;
    case 1: (void)ebb_workflow_force(cx, wf, one_in(c, 2) ? "chance" : NULL); break;
    default: (void)ebb_workflow_request(cx, wf, any_kind(c), "chance"); break;
    }
}

static void ignore_text(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

static void look_at_something(chaos *c, ebb_cx *cx, ebb_workflow wf) {
    char text[64];
    ebb_workflow_report report;
    ebb_workflow_leak leak;
    (void)ebb_workflow_explain(cx, wf, ignore_text, NULL);
    (void)ebb_workflow_report_of(cx, wf, &report);
    (void)ebb_workflow_leak_at(cx, wf, any(c, 3), &leak);
    (void)ebb_region_closed_text(cx, ebb_workflow_region(cx, wf), text, sizeof text);
    (void)ebb_workflow_refusal(cx, wf);
}

static void turn_on_region(chaos *c, ebb_cx *cx, ebb_region r) {
    if (r.id == ebb_runtime_root(c->r.rt).id) return; /* the last thing that is done */
    switch (any(c, 5)) {
    case 0: ebb_region_force(cx, r); break;
    case 1:
    case 2: ebb_region_cancel(cx, r, any_kind(c), "from outside"); break;
    default: ebb_region_close(cx, r); break;
    }
}

static void do_something(chaos *c, ebb_cx *cx) {
    ebb_workflow wf = any_workflow(c);
    ebb_region r = any_region(c, cx);
    actor *a;
    switch (any(c, 16)) {
    case 0:
    case 1: (void)open_something(c, cx, one_in(c, 2) ? r : (ebb_region){0}); break;
    case 2:
    case 3:
    case 4:
    case 5: spawn_something(c, cx, r); break;
    case 6:
    case 7: add_something(c, cx, wf); break;
    case 8:
    case 9: stop_something(c, cx, wf); break;
    case 10: turn_on_region(c, cx, r); break;
    case 11:
        if (r.id != ebb_runtime_root(c->r.rt).id)
            (void)ebb_region_reserve(cx, r, EBB_OBLIGATION_FENCE, NULL, NULL);
        break;
    case 12:
        a = actor_new(c);
        if (a != NULL && a->kind != JOINS) (void)ebb_region_defer(cx, r, acts, a);
        break;
    case 13: look_at_something(c, cx, wf); break;
    case 14:
        if (cx == c->r.host) (void)ebb_workflow_join(cx, wf, NULL);
        break;
    default:
        if (c->actors > 0) (void)ebb_task_wake(cx, c->actor[any(c, c->actors)].task);
        break;
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static ebb_status append(void *ctx, const char *line, size_t n) {
    chaos *c = ctx;
    if (c->log_n + n > LOG) return EBB_ERR_LIMIT;
    memcpy(c->log + c->log_n, line, n);
    c->log_n += n;
    return EBB_OK;
}

/* At a time at which nothing is left to do, no drain is over its budget, to the millisecond, without having
 * said so. */
static void no_drain_is_late(chaos *c) {
    for (uint32_t i = 0; i < c->wfs; i++) {
        ebb_workflow_report r;
        if (ebb_workflow_report_of(c->r.host, c->wf[i], &r) != EBB_OK || r.state != EBB_WORKFLOW_DRAINING)
            continue;
        if (r.elapsed < r.budget + EBB_MS || r.drain_timed_out) continue;
        fail_msg("seed %u: #%u drains for %u of %u ms", (unsigned)c->seed, (unsigned)i,
                 (unsigned)(r.elapsed / EBB_MS), (unsigned)(r.budget / EBB_MS));
    }
}

static void pump_to(chaos *c, uint64_t now, bool jump) {
    ebb_runtime *rt = c->r.rt;
    while (!jump && ebb_runtime_next_due(rt) < now) at_pump(&c->r, ebb_runtime_next_due(rt));
    at_pump(&c->r, now);
}

static void end_everything(chaos *c) {
    ebb_region_state state;
    ebb_region_cancel(c->r.host, ebb_runtime_root(c->r.rt), EBB_CANCEL_SHUTDOWN, "over");
    pump_to(c, ebb_now(c->r.host) + 550 * EBB_MS, false);
    assert_int_equal(ebb_region_state_of(c->r.host, ebb_runtime_root(c->r.rt), &state), EBB_OK);
    if (state != EBB_REGION_CLOSED) fail_msg("seed %u: it does not end", (unsigned)c->seed);
    for (uint32_t i = 0; i < c->wfs; i++) {
        ebb_workflow_report r;
        if (ebb_workflow_report_of(c->r.host, c->wf[i], &r) != EBB_OK) continue;
        if (r.state == EBB_WORKFLOW_IDLE && r.elapsed == 0) continue; /* it has completed */
        if (r.state < EBB_WORKFLOW_FINALIZED)
            fail_msg("seed %u: #%u is in state %d", (unsigned)c->seed, i, r.state);
    }
    if (c->r.rt->standby != 0) fail_msg("seed %u: %u stand by", (unsigned)c->seed, c->r.rt->standby);
}

static void check_log(chaos *c) {
    ebb_audit_verdict verdict;
    ebb_status st = ebb_audit_verify(ebb_libc_allocator(), c->log, c->log_n, &verdict);
    if (st == EBB_OK) return;
    if (c->talks) (void)fwrite(c->log, 1, c->log_n, stdout);
    fail_msg("seed %u: line %u: %s: %s", (unsigned)c->seed, (unsigned)verdict.line, verdict.invariant,
             verdict.text);
}

static void check_trace(chaos *c) {
    ebb_trace_reader in;
    ebb_event ev;
    ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&in, c->r.trace.p, c->r.trace.n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK) {
        if (ebb_checker_event(check, &ev) != EBB_OK) break;
    }
    if (ebb_checker_violation(check) == NULL) (void)ebb_checker_end(check, true);
    const ebb_violation *v = ebb_checker_violation(check);
    if (v != NULL) fail_msg("seed %u: %s: %s", (unsigned)c->seed, ebb_oracle_name(v->oracle), v->text);
    ebb_checker_free(check);
}

static void run_seed(chaos *c, uint64_t seed) {
    char *log = c->log;
    bool talks = c->talks;
    memset(c, 0, sizeof *c);
    c->log = log;
    c->talks = talks;
    c->seed = c->random = seed;
    c->memory.inner = ebb_libc_allocator();
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&c->memory)};
    ebb_audit_sink sink = {.append = append, .ctx = c};
    assert_int_equal(ebb_audit_new(ebb_libc_allocator(), &sink, &c->audit), EBB_OK);
    c->r = record(&opts);
    bool poor = one_in(c, 4); /* some allocations fail */
    for (uint32_t i = 0; i < STEPS; i++) {
        if (poor && one_in(c, 3)) c->memory.fail_at = c->memory.calls + 1 + any(c, 8);
        for (uint32_t n = any(c, 5); n > 0; n--) do_something(c, c->r.host);
        if (one_in(c, 3)) (void)ebb_runtime_pump(c->r.rt, any(c, 4));
        if (one_in(c, 3)) continue;
        pump_to(c, ebb_now(c->r.host) + any_span(c), one_in(c, 4));
        no_drain_is_late(c);
    }
    end_everything(c);
    stop(&c->r);
    check_trace(c);
    check_log(c);
    if (c->memory.failures == 0) assert_replays(&c->r.journal, &c->r.trace); /* else it has more memory */
    forget(&c->r);
    ebb_audit_close(c->audit);
    if (c->memory.live != 0) fail_msg("seed %u: %d blocks are left", (unsigned)seed, (int)c->memory.live);
}

/* Those of the arguments; with one only, its log is printed too. */
static uint64_t first_seed = 1, last_seed = SEEDS;

static void random_programs_end_verify_and_replay(void **state) {
    static chaos c; /* too large for a stack */
    (void)state;
    c.talks = first_seed == last_seed;
    c.log = malloc(LOG);
    assert_non_null(c.log);
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) run_seed(&c, seed);
    free(c.log);
}

int main(int argc, char **argv) {
    if (argc > 1) first_seed = last_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) last_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_end_verify_and_replay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
