/* Admission: who may add what, where and when. The first half is a matrix: every kind of work, asked for by
 * everybody who can ask, in every place, after every verb. What has to come of it is computed from the rules
 * alone (docs/kernel.md, "Admission"), in the section "the rules". Every cell is a run of its own: its trace
 * is checked by the oracles, and its journal has to replay to the same trace. */
#include "tests/support/replay_run.h"

#include <stdio.h>

/* ---- the rules -------------------------------------------------------------------------------------- */

/* root > SERVICE > UNIT > { INNER, NESTED }; SCOPE is the cleanup scope of a task, in that task's region. */
typedef enum place { ROOT, SERVICE, UNIT, INNER, NESTED, SCOPE, PLACES } place;

/* In whose name it is asked. IN_SCOPE: by a task in a cleanup scope, which a finalizer has opened. */
typedef enum guise { PLAIN, MASKED, FINALIZER, IN_SCOPE, CALLBACK, GUISES } guise;

typedef enum what {
    SPAWN,
    REGION,
    A_UNIT,
    REGION_FINALIZER,
    REGION_OBLIGATION,
    WORKFLOW, /* the last that names a region */
    FAR,
    OWN_OBLIGATION,
    OWN_FINALIZER,
    OWN_TIMER,
    CLEANUP_SCOPE,
    OWN_FUTURE,
    WHATS
} what;

typedef enum happened { STILL_OPEN, CLOSED, CANCELLED, FORCED, TOLD, CLOSED_AND_TOLD } happened;

typedef struct situation {
    const char *name;
    happened verb;
    place at;
} situation;

static const situation situations[] = {
    {"open", STILL_OPEN, ROOT},
    {"the root is closed", CLOSED, ROOT},
    {"the service is closed", CLOSED, SERVICE},
    {"the unit is closed", CLOSED, UNIT},
    {"the inner region is closed", CLOSED, INNER},
    {"the nested unit is closed", CLOSED, NESTED},
    {"the service is cancelled", CANCELLED, SERVICE},
    {"the unit is cancelled", CANCELLED, UNIT},
    {"the inner region is cancelled", CANCELLED, INNER},
    {"the service is forced", FORCED, SERVICE},
    {"the unit is forced", FORCED, UNIT},
    {"the asker is told", TOLD, ROOT},
    {"the service is closed, and the asker told", CLOSED_AND_TOLD, SERVICE},
};

typedef struct cell {
    bool host; /* asks; else a task or callback with its home at `home` */
    place home;
    guise guise;
    what what;
    place target;
    const situation *now;
} cell;

static place parent_of(const cell *c, place p) {
    static const place parents[] = {ROOT, ROOT, SERVICE, UNIT, UNIT, ROOT};
    return p == SCOPE ? c->home : parents[p];
}

static bool is_below(const cell *c, place p, place top) {
    while (p != top && p != ROOT) p = parent_of(c, p);
    return p == top;
}

/* Close and cancel do not reach into a cleanup scope; force does. */
static bool reaches(const cell *c, place p) {
    happened verb = c->now->verb;
    if (verb == STILL_OPEN || verb == TOLD) return false;
    if (p == SCOPE && verb != FORCED) return false;
    return is_below(c, p, c->now->at);
}

static bool is_closed(happened verb) {
    return verb == CLOSED || verb == CLOSED_AND_TOLD;
}

/* Where the asker is. */
static place stands(const cell *c) {
    return c->host ? ROOT : c->guise == IN_SCOPE ? SCOPE : c->home;
}

static bool is_told(const cell *c) {
    if (c->host) return false;
    if (c->now->verb == TOLD || c->now->verb == CLOSED_AND_TOLD) return true;
    return !is_closed(c->now->verb) && reaches(c, stands(c));
}

/* A mask holds until force; a finalizer, which is masked, has a part of the budget after that. The callbacks that run
 * after a cancel are cleanup, and masked too. */
static bool is_masked(const cell *c) {
    return c->guise == FINALIZER || (c->guise != PLAIN && c->guise != IN_SCOPE && c->now->verb != FORCED);
}

static ebb_status refusal(const cell *c) {
    return is_told(c) ? EBB_CANCELLED : EBB_ERR_CLOSED;
}

/* The outermost unit between the region that was closed, which is shut itself, and this one. */
static bool unit_below_the_close(const cell *c, place p, place *unit) {
    bool found = false;
    for (; p != c->now->at; p = parent_of(c, p)) {
        if (p == UNIT || p == NESTED) {
            found = true;
            *unit = p;
        }
    }
    return found;
}

static ebb_status into(const cell *c, place target) {
    place unit = ROOT;
    if (!reaches(c, target)) return EBB_OK;
    if (!is_closed(c->now->verb) || !unit_below_the_close(c, target, &unit)) return refusal(c);
    return !c->host && is_below(c, stands(c), unit) ? EBB_OK : refusal(c);
}

static ebb_status expected(const cell *c) {
    switch (c->what) {
    case FAR: return into(c, stands(c));
    case OWN_OBLIGATION:
        if (c->host) return into(c, ROOT);
        return is_told(c) && !is_masked(c) ? EBB_CANCELLED : EBB_OK;
    case OWN_FINALIZER:
        if (c->host) return into(c, ROOT);
        return c->guise == FINALIZER ? EBB_ERR_CLOSED : EBB_OK; /* the task has returned */
    case OWN_TIMER:
    case OWN_FUTURE: return EBB_OK;
    case CLEANUP_SCOPE: return is_told(c) || c->guise == FINALIZER ? EBB_OK : EBB_ERR_NOT_CLEANING;
    default: return into(c, c->target);
    }
}

/* Does it make sense to ask? */
static bool is_a_case(const cell *c) {
    bool told = c->now->verb == TOLD || c->now->verb == CLOSED_AND_TOLD;
    if (told && (c->host || c->guise == CALLBACK)) return false; /* nobody can name them */
    if (c->target == SCOPE && (c->host || c->guise != IN_SCOPE)) return false;
    if (c->what == OWN_TIMER && c->host) return false;
    return c->what <= WORKFLOW || c->target == SERVICE; /* once for those that name no region */
}

/* ---- a run ------------------------------------------------------------------------------------------ */

typedef struct stage {
    const cell *c;
    run run, other; /* the second for a far region */
    ebb_peer *peer;
    ebb_region at[PLACES];
    ebb_task asker;
    ebb_future *future; /* its callbacks ask */
    bool ready, over, asked;
    ebb_status got;
    bool stopping;
    ebb_task_phase before, after;
} stage;

static run recorded(uint8_t id) {
    enum { BYTES = 1 << 17 };
    run r = {.rt = NULL};
    ebb_runtime_opts o = {.runtime_id = id, .allocator = ebb_libc_allocator()};
    assert_int_equal(ebb_runtime_new(&o, &r.rt), EBB_OK);
    assert_int_equal(ebb_trace_start(r.rt, BYTES), EBB_OK);
    assert_int_equal(ebb_journal_start(r.rt, BYTES), EBB_OK);
    r.host = ebb_runtime_host(r.rt);
    return r;
}

static ebb_status stays(ebb_cx *cx, void *state) {
    const stage *s = state;
    (void)cx;
    return s->over ? EBB_OK : EBB_PENDING;
}

static ebb_status far_status(stage *s, ebb_cx *cx) {
    ebb_future *f = ebb_peer_run(cx, s->peer, ends_at_once, NULL);
    ebb_status st = ebb_future_status_of(f);
    ebb_future_drop(f);
    return st == EBB_PENDING ? EBB_OK : st;
}

static void nothing_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)st;
    (void)v;
    (void)arg;
}

static ebb_status future_status(ebb_cx *cx) {
    ebb_future *f = ebb_future_ready(cx, ebb_value_int(7));
    ebb_status st = ebb_future_on_done(f, nothing_done, NULL);
    if (st == EBB_OK) st = ebb_future_status_of(f);
    ebb_future_drop(f);
    return st;
}

static ebb_status reserved(ebb_cx *cx, ebb_obligation o) {
    ebb_status st = ebb_id_status(o.id);
    if (st == EBB_OK) st = ebb_obligation_commit(cx, o);
    return st;
}

static ebb_status ask_for(stage *s, ebb_cx *cx) {
    ebb_region r = s->at[s->c->target];
    ebb_workflow_opts wo = {.type = &ebb_workflow_rollout_cancel, .parent = r};
    switch (s->c->what) {
    case SPAWN: return ebb_id_status(ebb_spawn(cx, r, ends_at_once, NULL).id);
    case REGION: return ebb_id_status(ebb_region_open(cx, &(ebb_region_opts){.parent = r}).id);
    case A_UNIT: return ebb_id_status(ebb_region_open(cx, &(ebb_region_opts){.parent = r, .unit = true}).id);
    case REGION_FINALIZER: return ebb_region_defer(cx, r, ends_at_once, NULL);
    case REGION_OBLIGATION: return reserved(cx, ebb_region_reserve(cx, r, EBB_OBLIGATION_LEASE, NULL, NULL));
    case WORKFLOW: return ebb_id_status(ebb_workflow_open(cx, &wo).id);
    case FAR: return far_status(s, cx);
    case OWN_OBLIGATION: return reserved(cx, ebb_obligation_reserve(cx, EBB_OBLIGATION_PERMIT, NULL, NULL));
    case OWN_FINALIZER: return ebb_defer(cx, ends_at_once, NULL);
    case OWN_TIMER: return ebb_id_status(ebb_timer_arm(cx, ebb_cx_task(cx), EBB_SECOND).id);
    case CLEANUP_SCOPE: return ebb_id_status(ebb_region_open(cx, &(ebb_region_opts){.cleanup = true}).id);
    default: return future_status(cx);
    }
}

static ebb_task_phase phase_now(ebb_cx *cx) {
    ebb_task_info info;
    return ebb_task_info_of(cx, ebb_cx_task(cx), &info) == EBB_OK ? info.phase : (ebb_task_phase)0;
}

static void ask(stage *s, ebb_cx *cx) {
    if (!s->ready || s->asked) return;
    s->asked = true;
    s->stopping = ebb_stopping(cx);
    s->before = phase_now(cx);
    s->got = ask_for(s, cx);
    s->after = phase_now(cx);
}

/* ---- the askers ------------------------------------------------------------------------------------- */

static ebb_status asks(ebb_cx *cx, void *state) {
    stage *s = state;
    if (s->c->guise == MASKED && s->asker.id == 0) (void)ebb_mask(cx);
    s->asker = ebb_cx_task(cx);
    ask(s, cx);
    return stays(cx, s);
}

static ebb_status opens_a_scope(ebb_cx *cx, void *state) {
    stage *s = state;
    if (s->at[SCOPE].id == 0) {
        s->at[SCOPE] = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
        assert_int_equal(ebb_id_status(ebb_spawn(cx, s->at[SCOPE], asks, s).id), EBB_OK);
    }
    return stays(cx, s);
}

static ebb_status leaves_a_finalizer(ebb_cx *cx, void *state) {
    stage *s = state;
    assert_int_equal(ebb_defer(cx, s->c->guise == IN_SCOPE ? opens_a_scope : asks, s), EBB_OK);
    return EBB_OK;
}

static void asks_when_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    ask(arg, cx);
}

static void asks_when_cancelled(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)kind;
    ask(arg, cx);
}

static ebb_status has_a_future(ebb_cx *cx, void *state) {
    stage *s = state;
    if (s->future == NULL) {
        s->future = ebb_promise_new(cx, NULL, NULL);
        assert_int_equal(ebb_future_on_done(s->future, asks_when_done, s), EBB_OK);
        assert_int_equal(ebb_future_on_cancel(s->future, asks_when_cancelled, s), EBB_OK);
    }
    return stays(cx, s);
}

static ebb_region place_in(stage *s, place parent, bool unit) {
    ebb_region r = ebb_region_open(
        s->run.host, &(ebb_region_opts){.parent = s->at[parent], .policy = EBB_FAIL_COLLECT, .unit = unit});
    assert_int_equal(ebb_id_status(ebb_spawn(s->run.host, r, stays, s).id), EBB_OK);
    return r;
}

static void settle(stage *s) {
    for (int i = 0; i < 3; i++) {
        if (s->other.rt != NULL) {
            ebb_inbox_receive(s->other.rt);
            at_pump(&s->other, ebb_now(s->other.host));
        }
        ebb_inbox_receive(s->run.rt);
        at_pump(&s->run, ebb_now(s->run.host));
    }
}

static void build(stage *s) {
    static const ebb_poll_fn bodies[] = {asks, asks, leaves_a_finalizer, leaves_a_finalizer, has_a_future};
    s->run = recorded(3);
    if (s->c->what == FAR) {
        s->other = recorded(4);
        assert_int_equal(ebb_peer_of(s->other.rt, &s->peer), EBB_OK);
    }
    s->at[ROOT] = ebb_runtime_root(s->run.rt);
    s->at[SERVICE] = place_in(s, ROOT, false);
    s->at[UNIT] = place_in(s, SERVICE, true);
    s->at[INNER] = place_in(s, UNIT, false);
    s->at[NESTED] = place_in(s, UNIT, true);
    if (!s->c->host) (void)ebb_spawn(s->run.host, s->at[s->c->home], bodies[s->c->guise], s);
    settle(s);
}

static void happen(stage *s) {
    const situation *now = s->c->now;
    ebb_cx *host = s->run.host;
    if (is_closed(now->verb)) ebb_region_close(host, s->at[now->at]);
    if (now->verb == CANCELLED) ebb_region_cancel(host, s->at[now->at], EBB_CANCEL_USER, "enough");
    if (now->verb == FORCED) ebb_region_force(host, s->at[now->at]);
    if (now->verb == TOLD || now->verb == CLOSED_AND_TOLD)
        ebb_task_cancel(host, s->asker, EBB_CANCEL_USER, "you");
}

static void check_trace(const bytes *trace) {
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    ebb_trace_reader in;
    ebb_event ev;
    assert_int_equal(ebb_trace_reader_open(&in, trace->p, trace->n), EBB_OK);
    while (ebb_trace_reader_next(&in, &ev) == EBB_OK && ebb_checker_event(c, &ev) == EBB_OK) {}
    if (ebb_checker_violation(c) == NULL) (void)ebb_checker_end(c, true);
    if (ebb_checker_violation(c) != NULL) fail_msg("%s", ebb_checker_violation(c)->text);
    ebb_checker_free(c);
}

static void end_run(run *r) {
    ebb_region_state state;
    ebb_region_cancel(r->host, ebb_runtime_root(r->rt), EBB_CANCEL_SHUTDOWN, "over");
    for (uint64_t i = 0; i < 12; i++) {
        ebb_inbox_receive(r->rt);
        at_pump(r, ebb_now(r->host) + 100 * EBB_MS);
    }
    assert_int_equal(ebb_region_state_of(r->host, ebb_runtime_root(r->rt), &state), EBB_OK);
    assert_int_equal(state, EBB_REGION_CLOSED);
    stop(r);
    check_trace(&r->trace);
    assert_replays(&r->journal, &r->trace);
    forget(r);
}

static void wrong(const cell *c, const stage *s, const char *how) {
    static const char *const places[] = {"root", "service", "unit", "inner region", "nested unit", "scope"};
    static const char *const guises[] = {"task", "masked task", "finalizer", "task in a scope", "callback"};
    static const char *const whats[] = {"spawn",
                                        "region",
                                        "unit",
                                        "finalizer of the region",
                                        "obligation of the region",
                                        "workflow",
                                        "far region",
                                        "own obligation",
                                        "own finalizer",
                                        "own timer",
                                        "cleanup scope",
                                        "future of its own"};
    fail_msg("%s: %s asks, from the %s, for a %s in the %s: %s: %s (phase %d, before %d), not %s",
             c->now->name, c->host ? "the host" : guises[c->guise], places[stands(c)], whats[c->what],
             places[c->target], how, ebb_status_name(s->got), (int)s->after, (int)s->before,
             ebb_status_name(expected(c)));
}

static void judge(const cell *c, const stage *s) {
    bool acks = s->got == EBB_CANCELLED && !is_masked(c);
    if (!s->asked) wrong(c, s, "was not asked");
    if (s->got != expected(c)) wrong(c, s, "status");
    if (acks && s->after < EBB_TASK_CANCELLING) wrong(c, s, "is not acknowledged");
    if (!acks && s->after != s->before) wrong(c, s, "acknowledges");
    if (!c->host && c->now->verb == CLOSED && s->stopping != reaches(c, stands(c)))
        wrong(c, s, "ebb_stopping");
}

static void play_cell(const cell *c) {
    stage s = {.c = c};
    build(&s);
    s.ready = true;
    happen(&s);
    if (c->host) ask(&s, s.run.host);
    if (s.asker.id != 0) (void)ebb_task_wake(s.run.host, s.asker);
    if (s.future != NULL) (void)ebb_promise_settle(s.future, ebb_value_none());
    settle(&s);
    judge(c, &s);
    s.over = true;
    end_run(&s.run);
    if (s.other.rt != NULL) end_run(&s.other);
    if (s.peer != NULL) ebb_peer_release(s.peer);
}

/* Everything that this asker can ask for. */
static void play_all_of(cell c) {
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        for (int w = 0; w < WHATS; w++) {
            for (int p = SERVICE; p < PLACES; p++) {
                c.now = &situations[i];
                c.what = (what)w;
                c.target = (place)p;
                if (is_a_case(&c)) play_cell(&c);
            }
        }
    }
}

static void play_from_all(guise g) {
    for (int home = SERVICE; home < SCOPE; home++) play_all_of((cell){.home = (place)home, .guise = g});
}

static void what_the_host_asks_for(void **state) {
    (void)state;
    play_all_of((cell){.host = true});
}

static void what_a_task_asks_for(void **state) {
    (void)state;
    play_from_all(PLAIN);
}

static void what_a_masked_task_asks_for(void **state) {
    (void)state;
    play_from_all(MASKED);
}

static void what_a_finalizer_asks_for(void **state) {
    (void)state;
    play_from_all(FINALIZER);
}

static void what_a_task_in_a_cleanup_scope_asks_for(void **state) {
    (void)state;
    play_from_all(IN_SCOPE);
}

static void what_a_callback_asks_for(void **state) {
    (void)state;
    play_from_all(CALLBACK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_asks_for),
        cmocka_unit_test(what_a_task_asks_for),
        cmocka_unit_test(what_a_masked_task_asks_for),
        cmocka_unit_test(what_a_finalizer_asks_for),
        cmocka_unit_test(what_a_task_in_a_cleanup_scope_asks_for),
        cmocka_unit_test(what_a_callback_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
