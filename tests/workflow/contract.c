/* The three-phase protocol, rule by rule: every phase, event, state, budget, invariant and error that it
 * names. The tests have the names of the rules. */
#include "tests/support/workflow_world.h"

/* What came when: states with the time since the request. */
typedef struct diary {
    workflow_world *ww;
    char text[256];
    uint64_t start;
} diary;

static void note(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    diary *d = arg;
    size_t n = strlen(d->text);
    (void)wf;
    (void)from;
    if (n == 0) d->start = world_now(d->ww->world);
    snprintf(d->text + n, sizeof d->text - n, "%s@%u ", ebb_workflow_state_name(to),
             (unsigned)((world_now(d->ww->world) - d->start) / EBB_MS));
}

static diary *diary_new(workflow_world *ww) {
    diary *d = world_keep(ww->world, sizeof *d);
    d->ww = ww;
    return d;
}

static ebb_workflow open_noted(workflow_world *ww, diary *d, bool no_force) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort,
                                                 .name = "v42",
                                                 .no_force = no_force,
                                                 .on_state = note,
                                                 .arg = d});
}

static ebb_workflow open_plain(workflow_world *ww) {
    return workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v42"});
}

/* ---- phases and events ----------------------------------------------------------------------- */

static void CAN_001_is_the_request_with_its_reason(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    const char *line = workflow_line(ww, "requested", 0);
    workflow_says(line, "\"code\":\"CAN-001\"");
    workflow_says(line, "\"workflow\":\"publish_abort\",\"name\":\"v42\"");
    workflow_says(line, "\"from\":\"IDLE\",\"to\":\"CANCEL_REQUESTED\"");
    workflow_says(line, "\"in_flight\":1");
    workflow_says(line, "\"reason\":[{\"kind\":\"USER\",\"severity\":1,\"message\":\"enough\"}]");
}

static void CAN_002_is_the_start_of_the_drain_right_after_the_request(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    ebb_workflow wf = open_noted(ww, d, false);
    (void)workflow_work(ww, wf, IGNORING);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "enough"), EBB_OK);
    assert_string_equal(d->text, "CANCEL_REQUESTED@0 DRAINING@0 "); /* without any pump */
    const char *line = workflow_line(ww, "drain_started", 0);
    workflow_says(line, "\"code\":\"CAN-002\"");
    workflow_says(line, "\"from\":\"CANCEL_REQUESTED\",\"to\":\"DRAINING\"");
    workflow_says(line, "\"budget_ms\":2000.000");
}

static void CAN_003_is_a_drain_that_has_completed_within_its_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(700));
    workflow_finish(ww, p);
    const char *line = workflow_line(ww, "drain_completed", 0);
    workflow_says(line, "\"code\":\"CAN-003\"");
    workflow_says(line, "\"from\":\"DRAINING\",\"to\":\"DRAIN_COMPLETE\"");
    workflow_says(line, "\"elapsed_ms\":700.000,\"budget_ms\":2000.000");
    workflow_says(line, "\"in_flight\":0");
    assert_int_equal(workflow_lines(ww, "drain_timeout"), 0);
}

static void CAN_004_is_a_drain_over_its_budget_with_the_time_and_the_budget(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    assert_int_equal(workflow_lines(ww, "drain_timeout"), 0);
    world_pass(ww->world, MS(201)); /* 10 % of the budget */
    const char *line = workflow_line(ww, "drain_timeout", 0);
    workflow_says(line, "\"code\":\"CAN-004\"");
    workflow_says(line, "\"from\":\"DRAINING\",\"to\":\"DRAIN_TIMEOUT\"");
    workflow_says(line, "\"elapsed_ms\":2000.000,\"budget_ms\":2000.000");
    assert_int_equal(workflow_lines(ww, "drain_completed"), 0);
}

static void CAN_005_is_an_end_without_leaks(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    workflow_stop(ww, wf);
    const char *line = workflow_line(ww, "finalized", 0);
    workflow_says(line, "\"code\":\"CAN-005\"");
    workflow_says(line, "\"from\":\"FINALIZING\",\"to\":\"FINALIZED\"");
    workflow_says(line, "\"left\":0");
    assert_int_equal(workflow_lines(ww, "leak_detected"), 0);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_OK);
}

static void CAN_006_is_an_end_with_a_leak(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    const char *line = workflow_line(ww, "leak_detected", 0);
    workflow_says(line, "\"code\":\"CAN-006\"");
    workflow_says(line, "\"from\":\"FINALIZING\",\"to\":\"LEAK_DETECTED\"");
    workflow_says(line, "\"left\":1,\"drain_timed_out\":1");
    workflow_says(line, "\"error\":\"ERR_CANCEL_LEAK\"");
    assert_int_equal(workflow_lines(ww, "finalized"), 0);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void IDLE_is_where_it_starts_and_where_one_that_nobody_stops_ends(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    puppet *p = workflow_work(ww, wf, IGNORING);
    world_pass(ww->world, MS(60000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_IDLE);
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_PENDING);
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_IDLE);
    assert_int_equal(report.elapsed, 0);
    assert_int_equal(report.epoch, 0);
    assert_int_equal(report.reason.kind, EBB_CANCEL_NONE);
}

static void a_drain_in_time_goes_through_every_state_to_FINALIZED(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    ebb_workflow wf = open_noted(ww, d, false);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(50));
    workflow_finish(ww, p);
    assert_string_equal(d->text,
                        "CANCEL_REQUESTED@0 DRAINING@0 DRAIN_COMPLETE@50 FINALIZING@50 FINALIZED@50 ");
}

static void a_drain_over_its_budget_goes_through_DRAIN_TIMEOUT_to_LEAK_DETECTED(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    ebb_workflow wf = open_noted(ww, d, false);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    assert_string_equal(
        d->text, "CANCEL_REQUESTED@0 DRAINING@0 DRAIN_TIMEOUT@2000 FINALIZING@2000 LEAK_DETECTED@2000 ");
}

static ebb_status hold(ebb_cx *cx, void *state) {
    (void)cx;
    return *(bool *)state ? EBB_OK : EBB_PENDING;
}

static void FINALIZING_lasts_until_the_finalizers_are_done(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    bool done = false;
    ebb_workflow wf = open_noted(ww, d, true);
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), hold, &done), EBB_OK);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(100));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
    done = true;
    ebb_region_cancel(ww->host, ww->world->root, EBB_CANCEL_USER, "look again");
    world_pass(ww->world, MS(1000));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* ---- budgets --------------------------------------------------------------------------------- */

static void has_budget(workflow_world *ww, const ebb_workflow_type *type, const char *name, unsigned ms) {
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = type});
    assert_string_equal(type->name, name);
    assert_int_equal(workflow_report(ww, wf).budget, MS(ms));
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(ms) * 6 / 10 - MS(1));
    assert_false(workflow_report(ww, wf).cancelled);
    world_pass(ww->world, MS(1)); /* 60 % are over */
    assert_true(workflow_report(ww, wf).cancelled);
    world_pass(ww->world, MS(ms) * 4 / 10 - MS(1));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_true(workflow_report(ww, wf).drain_timed_out);
    world_pass(ww->world, MS(ms) / 10);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(workflow_report(ww, wf).elapsed, MS(ms));
}

static void lifecycle_shutdown_has_5000_ms(void **state) {
    has_budget(*state, &ebb_workflow_lifecycle_shutdown, "lifecycle_shutdown", 5000);
}

static void rollout_cancel_has_3000_ms(void **state) {
    has_budget(*state, &ebb_workflow_rollout_cancel, "rollout_cancel", 3000);
}

static void publish_abort_has_2000_ms(void **state) {
    has_budget(*state, &ebb_workflow_publish_abort, "publish_abort", 2000);
}

static void health_check_cancel_has_1000_ms(void **state) {
    has_budget(*state, &ebb_workflow_health_check_cancel, "health_check_cancel", 1000);
}

static void epoch_transition_cancel_has_3000_ms(void **state) {
    has_budget(*state, &ebb_workflow_epoch_transition_cancel, "epoch_transition_cancel", 3000);
}

static void a_budget_and_a_type_of_your_own_are_kept_too(void **state) {
    static const ebb_workflow_type own = {"backup_cancel", 400 * EBB_MS, EBB_CANCEL_LEASE_LOST};
    workflow_world *ww = *state;
    has_budget(ww, &own, "backup_cancel", 400);
    ebb_workflow wf =
        workflow_new(ww, &(ebb_workflow_opts){.type = &own, .budget = MS(70), .cancel_at = MS(20)});
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(19));
    assert_false(workflow_report(ww, wf).cancelled);
    world_pass(ww->world, MS(1));
    assert_int_equal(info_of(ww->world, p->id).reason.kind, EBB_CANCEL_LEASE_LOST);
    world_pass(ww->world, MS(49));
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
    world_pass(ww->world, MS(1));
    assert_true(workflow_report(ww, wf).drain_timed_out);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static void INV_CANP_THREE_PHASE_holds_whoever_stops_it_and_how(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    for (int how = 0; how < 4; how++) {
        ebb_workflow wf = open_plain(ww);
        ebb_region r = ebb_workflow_region(w->host, wf);
        (void)workflow_work(ww, wf, HEEDING);
        if (how == 0) (void)ebb_workflow_request(w->host, wf, EBB_CANCEL_USER, "enough");
        if (how == 1) ebb_region_close(w->host, r);
        if (how == 2) ebb_region_cancel(w->host, r, EBB_CANCEL_TIMEOUT, "too slow");
        if (how == 3) ebb_region_force(w->host, r);
        world_pass(w, MS(2200));
        assert_true(workflow_state(ww, wf) >= EBB_WORKFLOW_FINALIZED);
        const char *story = workflow_story(ww, (uint64_t)how + 1);
        assert_memory_equal(story, "opened requested drain_started ", 31);
        workflow_says(story, " finalizing ");
    }
}

static void INV_CANP_NO_NEW_WORK_refuses_every_kind_of_it_and_says_by_whom(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = open_plain(ww);
    ebb_region r = ebb_workflow_region(w->host, wf), child = open_region(w, r);
    puppet *p = workflow_work(ww, wf, IGNORING);
    (void)puppet_start(w, child, IGNORING);
    workflow_stop(ww, wf);
    ebb_region where[] = {r, child};
    for (int i = 0; i < 2; i++) {
        char text[160];
        ebb_region_opts opts = {.parent = where[i]};
        ebb_workflow_opts inner = {.type = &ebb_workflow_health_check_cancel, .parent = where[i]};
        assert_int_equal(ebb_id_status(ebb_spawn(w->host, where[i], puppet_poll, p).id), EBB_ERR_CLOSED);
        assert_int_equal(ebb_id_status(ebb_region_open(w->host, &opts).id), EBB_ERR_CLOSED);
        assert_int_equal(
            ebb_id_status(ebb_region_reserve(w->host, where[i], EBB_OBLIGATION_FENCE, NULL, NULL).id),
            EBB_ERR_CLOSED);
        assert_int_equal(ebb_id_status(ebb_workflow_open(w->host, &inner).id), EBB_ERR_CLOSED);
        size_t n = ebb_region_closed_text(w->host, where[i], text, sizeof text);
        assert_int_equal(n, strlen(text));
        assert_string_equal(text, "publish_abort#1 v42 is DRAINING (USER: enough): no new work");
    }
    assert_int_equal(workflow_report(ww, wf).state, EBB_WORKFLOW_DRAINING);
}

static void INV_CANP_DRAIN_BOUNDED_ends_a_drain_that_nothing_else_ends(void **state) {
    static const unsigned budgets[] = {0, 70, 30000}; /* ms; 0: the type's, 2000 */
    workflow_world *ww = *state;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t budget = MS(budgets[i] == 0 ? 2000 : budgets[i]);
        ebb_workflow wf = workflow_new(
            ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .budget = MS(budgets[i])});
        (void)workflow_work(ww, wf, IGNORING);
        (void)drainer_add(ww, wf, "stuck", (drainer){.stays = true});
        workflow_stop(ww, wf);
        world_pass(ww->world, budget - 1);
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_DRAINING);
        assert_int_equal(workflow_lines(ww, "drain_timeout"), i);
        world_pass(ww->world, 1 + budget / 10);
        assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_LEAK_DETECTED);
        assert_int_equal(workflow_report(ww, wf).elapsed, budget);
        assert_int_equal(workflow_lines(ww, "drain_timeout"), i + 1);
        workflow_says(workflow_line(ww, "drain_timeout", i), "\"code\":\"CAN-004\"");
    }
}

static void INV_CANP_FINALIZE_CLEAN_leaves_nothing_reserved_in_either_end(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    for (int leaks = 0; leaks < 2; leaks++) {
        ebb_workflow wf = open_plain(ww);
        ebb_region r = ebb_workflow_region(w->host, wf);
        puppet *hook = puppet_new(w, (puppet){.says = "released"});
        ebb_obligation fence = ebb_region_reserve(w->host, r, EBB_OBLIGATION_FENCE, puppet_abort, hook);
        if (!leaks) assert_int_equal(ebb_obligation_commit(w->host, fence), EBB_OK);
        workflow_stop(ww, wf);
        if (leaks) assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZING);
        if (leaks) world_pass(w, MS(2200));
        assert_int_equal(workflow_state(ww, wf), leaks ? EBB_WORKFLOW_LEAK_DETECTED : EBB_WORKFLOW_FINALIZED);
        const char *line = workflow_line(ww, leaks ? "leak_detected" : "finalized", 0);
        workflow_says(line, leaks ? "\"code\":\"CAN-006\"" : "\"code\":\"CAN-005\"");
        assert_int_equal(w->aborts, leaks);
        assert_int_equal(stats_of(w).obligations, 0);
    }
}

/* Where a request comes again, and from whom. Hooks and the host ask as the host, the others by a cx of their
 * own. */
typedef enum asker { NOBODY, HOOK, HOST, WORK, HANDLER, FINALIZER } asker;

typedef struct place {
    ebb_workflow_state in;
    asker by;
    unsigned after, until; /* ms from the request: the host asks; the work ends. until 0: it never does */
    bool no_force;
} place;

static const place places[] = {
    {EBB_WORKFLOW_CANCEL_REQUESTED, HOOK, 0, 500, false},
    {EBB_WORKFLOW_DRAINING, HOOK, 0, 500, false},
    {EBB_WORKFLOW_DRAINING, WORK, 0, 500, false},
    {EBB_WORKFLOW_DRAINING, HANDLER, 0, 500, false},
    {EBB_WORKFLOW_DRAINING, HOST, 100, 500, false},
    {EBB_WORKFLOW_DRAINING, HOST, 1400, 1500, false}, /* after cancel_at */
    {EBB_WORKFLOW_DRAINING, HOST, 1400, 0, false},
    {EBB_WORKFLOW_DRAINING, HOST, 2500, 3000, true}, /* overdue */
    {EBB_WORKFLOW_DRAIN_COMPLETE, HOOK, 0, 500, false},
    {EBB_WORKFLOW_DRAIN_TIMEOUT, HOOK, 0, 0, false},
    {EBB_WORKFLOW_FINALIZING, HOOK, 0, 500, false},
    {EBB_WORKFLOW_FINALIZING, HOOK, 0, 0, false},
    {EBB_WORKFLOW_FINALIZING, FINALIZER, 0, 500, false},
    {EBB_WORKFLOW_FINALIZING, FINALIZER, 0, 0, false},
    {EBB_WORKFLOW_FINALIZING, HOST, 520, 500, false},
    {EBB_WORKFLOW_FINALIZING, HOST, 2020, 0, false},
};

/* One workflow that is stopped, and asked to stop again when it comes to its place. */
typedef struct stop_story {
    workflow_world *ww;
    diary *diary;
    const place *place;
    asker by; /* place->by, or NOBODY */
    ebb_workflow wf;
    bool asked;
    ebb_sleeper nap;
} stop_story;

static void ask_once_more(stop_story *s, ebb_cx *cx, ebb_cancel_kind kind, bool stronger) {
    ebb_workflow_report before = workflow_report(s->ww, s->wf), after;
    assert_int_equal(before.state, s->place->in);
    assert_int_equal(ebb_workflow_request(cx, s->wf, kind, "again"), EBB_OK);
    after = workflow_report(s->ww, s->wf);
    assert_int_equal(after.state, before.state);
    assert_int_equal(after.absorbed, before.absorbed + 1);
    assert_int_equal(after.epoch, before.epoch + (stronger ? 1 : 0));
    assert_int_equal(after.reason.kind, stronger ? kind : before.reason.kind);
    assert_string_equal(after.reason.message, stronger ? "again" : before.reason.message);
    assert_int_equal(after.budget, before.budget);
}

/* The first request was urgent. */
static void ask_again(stop_story *s, asker by, ebb_cx *cx) {
    if (by != s->by || s->asked || workflow_state(s->ww, s->wf) != s->place->in) return;
    s->asked = true;
    ask_once_more(s, cx, EBB_CANCEL_USER, false);
    ask_once_more(s, cx, EBB_CANCEL_LEASE_LOST, false);
    ask_once_more(s, cx, EBB_CANCEL_SHUTDOWN, true);
    ask_once_more(s, cx, EBB_CANCEL_SHUTDOWN, false);
}

static void story_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    stop_story *s = arg;
    note(s->diary, wf, from, to);
    ask_again(s, HOOK, s->ww->host);
}

static void story_work(ebb_cx *cx, puppet *p) {
    ask_again(p->arg, WORK, cx);
}

static void story_handler(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)d;
    ask_again(me->arg, HANDLER, cx);
}

static ebb_status story_finalizer(ebb_cx *cx, void *arg) {
    stop_story *s = arg;
    ask_again(s, FINALIZER, cx);
    return ebb_sleep(cx, &s->nap, MS(50));
}

/* Lets the time pass until so long after the request, which was at `start`. */
static void pass_until(workflow_world *ww, uint64_t start, unsigned ms) {
    uint64_t gone = world_now(ww->world) - start;
    if (MS(ms) > gone) world_pass(ww->world, MS(ms) - gone);
}

static void ask_as_host(stop_story *s, uint64_t start) {
    if (s->by != HOST) return;
    pass_until(s->ww, start, s->place->after);
    ask_again(s, HOST, s->ww->host);
    world_settle(s->ww->world);
}

/* The states that it went through, and when. */
static const char *run_stop_story(workflow_world *ww, const place *at, asker by) {
    stop_story *s = world_keep(ww->world, sizeof *s);
    *s = (stop_story){.ww = ww, .diary = diary_new(ww), .place = at, .by = by};
    s->wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort,
                                                  .name = "v42",
                                                  .no_force = at->no_force,
                                                  .on_state = story_state,
                                                  .arg = s});
    ebb_region r = ebb_workflow_region(ww->host, s->wf);
    assert_int_equal(ebb_region_defer(ww->host, r, story_finalizer, s), EBB_OK);
    (void)drainer_add(ww, s->wf, "handler", (drainer){.act = story_handler, .arg = s});
    puppet p = {.act = story_work, .arg = s, .returns = EBB_PENDING, .on_cancel = EBB_CANCELLED};
    p.heeds = at->until == 500; /* nothing may cancel it: that is before cancel_at */
    puppet *work = workflow_work(ww, s->wf, p);
    uint64_t start = world_now(ww->world);
    assert_int_equal(ebb_workflow_request(ww->host, s->wf, EBB_CANCEL_TIMEOUT, "too slow"), EBB_OK);
    world_settle(ww->world);
    if (at->in == EBB_WORKFLOW_DRAINING || at->until == 0) ask_as_host(s, start);
    if (at->until != 0) pass_until(ww, start, at->until);
    if (at->until != 0) workflow_finish(ww, work);
    if (at->in == EBB_WORKFLOW_FINALIZING) ask_as_host(s, start);
    pass_until(ww, start, 6000);
    assert_int_equal(s->asked, by != NOBODY);
    assert_int_equal(workflow_report(ww, s->wf).absorbed, by == NOBODY ? 0 : 4);
    assert_int_equal(ebb_workflow_join(ww->host, s->wf, NULL), at->until == 0 ? EBB_ERR_CANCEL_LEAK : EBB_OK);
    return s->diary->text;
}

static void verify_log(workflow_world *ww) {
    ebb_audit_verdict verdict;
    if (ebb_audit_verify(ebb_libc_allocator(), ww->log, ww->log_n, &verdict) != EBB_OK)
        fail_msg("line %u: %s: %s", (unsigned)verdict.line, verdict.invariant, verdict.text);
}

/* In IDLE a request is the first one. */
static void INV_CANP_IDEMPOTENT_absorbs_requests_in_every_state_before_the_end(void **state) {
    workflow_world *ww = *state;
    bool in[EBB_WORKFLOW_FINALIZED] = {[0] = true, [EBB_WORKFLOW_IDLE] = true};
    uint32_t n = sizeof places / sizeof places[0];
    for (uint32_t i = 0; i < n; i++) {
        const char *once = run_stop_story(ww, &places[i], NOBODY);
        const char *again = run_stop_story(ww, &places[i], places[i].by);
        assert_string_equal(again, once); /* the same states at the same times */
        assert_int_equal(workflow_lines(ww, "requested"), 2 * (i + 1));
        assert_int_equal(workflow_lines(ww, "drain_started"), 2 * (i + 1));
        assert_int_equal(workflow_lines(ww, "absorbed"), 4 * (i + 1));
        assert_int_equal(workflow_lines(ww, "refused"), 0);
        for (uint32_t k = 4 * i; k < 4 * i + 4; k++)
            workflow_says(workflow_line(ww, "absorbed", k), "\"code\":\"CAN-001\"");
        verify_log(ww);
        in[places[i].in] = true;
    }
    for (int s = 0; s < EBB_WORKFLOW_FINALIZED; s++) assert_true(in[s]);
}

static void a_stronger_request_strengthens_the_reason_and_a_weaker_one_does_not(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_SHUTDOWN, "power is off"), EBB_OK);
    ebb_workflow_report report = workflow_report(ww, wf);
    assert_int_equal(report.reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_string_equal(report.reason.message, "power is off");
    assert_int_equal(report.epoch, 2);
    assert_int_equal(ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "please"), EBB_OK);
    report = workflow_report(ww, wf);
    assert_int_equal(report.reason.kind, EBB_CANCEL_SHUTDOWN);
    assert_int_equal(report.epoch, 2);
    assert_int_equal(report.absorbed, 2);
    workflow_says(workflow_line(ww, "absorbed", 0), "\"kind\":\"SHUTDOWN\",\"message\":\"power is off\"}");
}

static void INV_CANP_AUDIT_COMPLETE_has_a_line_for_every_change_and_an_event_in_the_trace(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    ebb_workflow wf = open_noted(ww, d, false);
    ebb_region r = ebb_workflow_region(ww->host, wf);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    (void)ebb_workflow_request(ww->host, wf, EBB_CANCEL_USER, "again");
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(100)), EBB_OK);
    world_pass(ww->world, MS(2400));
    assert_string_equal(workflow_story(ww, 1),
                        "opened requested drain_started absorbed extended drain_cancelled "
                        "drain_timeout finalizing left leak_detected");
    assert_int_equal(count_events(ww->world, EBB_EV_WORKFLOW, 0), 8); /* not: opened, left */
    ebb_event ev = event_of(ww->world, EBB_EV_WORKFLOW, 0);
    assert_int_equal(ev.region_id, r.id);
    assert_int_equal(ev.other, 1);
    assert_int_equal(ev.value & 0xffff, EBB_WORKFLOW_IDLE << 8 | EBB_WORKFLOW_CANCEL_REQUESTED);
    ebb_workflow clean = open_plain(ww);
    puppet *p = workflow_work(ww, clean, IGNORING);
    workflow_stop(ww, clean);
    workflow_finish(ww, p);
    assert_string_equal(workflow_story(ww, 2),
                        "opened requested drain_started drain_completed finalizing finalized");
    assert_int_equal(count_events(ww->world, EBB_EV_WORKFLOW, 0), 8 + 5);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void ERR_CANCEL_INVALID_PHASE_names_the_state_and_the_trigger(void **state) {
    workflow_world *ww = *state;
    ebb_workflow wf = open_plain(ww);
    assert_int_equal(ebb_workflow_extend(ww->host, wf, MS(1)), EBB_ERR_CANCEL_INVALID_PHASE);
    assert_string_equal(ebb_workflow_refusal(ww->host, wf),
                        "publish_abort#1 v42: extend is not allowed in IDLE");
    assert_int_equal(ebb_workflow_force(ww->host, wf, NULL), EBB_ERR_CANCEL_INVALID_PHASE);
    assert_string_equal(ebb_workflow_refusal(ww->host, wf),
                        "publish_abort#1 v42: force is not allowed in IDLE");
    const char *line = workflow_line(ww, "refused", 0);
    workflow_says(line, "\"code\":\"ERR_CANCEL_INVALID_PHASE\"");
    workflow_says(line, "\"from\":\"IDLE\",\"to\":\"IDLE\"");
    workflow_says(line, "\"trigger\":\"extend\"");
    assert_string_equal(ebb_status_name(EBB_ERR_CANCEL_INVALID_PHASE), "EBB_ERR_CANCEL_INVALID_PHASE");
}

static void ERR_CANCEL_ALREADY_FINAL_is_what_a_request_after_the_end_gets(void **state) {
    workflow_world *ww = *state;
    ebb_workflow clean = open_plain(ww), leaky = open_plain(ww);
    (void)ebb_region_reserve(ww->host, ebb_workflow_region(ww->host, leaky), EBB_OBLIGATION_LEASE, NULL,
                             NULL);
    workflow_stop(ww, clean);
    workflow_stop(ww, leaky);
    world_pass(ww->world, MS(2200));
    assert_int_equal(ebb_workflow_request(ww->host, clean, EBB_CANCEL_SHUTDOWN, "x"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    assert_string_equal(ebb_workflow_refusal(ww->host, clean),
                        "publish_abort#1 v42: request is not allowed in FINALIZED");
    assert_int_equal(ebb_workflow_request(ww->host, leaky, EBB_CANCEL_SHUTDOWN, "x"),
                     EBB_ERR_CANCEL_ALREADY_FINAL);
    assert_int_equal(workflow_report(ww, clean).absorbed, 0);
    assert_int_equal(workflow_report(ww, clean).reason.kind, EBB_CANCEL_USER);
    workflow_says(workflow_line(ww, "refused", 0), "\"code\":\"ERR_CANCEL_ALREADY_FINAL\"");
}

static void ERR_CANCEL_DRAIN_TIMEOUT_is_what_join_says_and_it_stays_DRAINING(void **state) {
    workflow_world *ww = *state;
    diary *d = diary_new(ww);
    ebb_workflow_report report;
    ebb_workflow wf = open_noted(ww, d, true);
    puppet *p = workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(1999));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_PENDING);
    world_pass(ww->world, MS(60000));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_DRAIN_TIMEOUT);
    assert_int_equal(report.state, EBB_WORKFLOW_DRAINING);
    assert_true(report.drain_timed_out);
    assert_int_equal(report.elapsed, MS(61999));
    assert_int_equal(report.budget, MS(2000));
    assert_string_equal(d->text, "CANCEL_REQUESTED@0 DRAINING@0 ");
    const char *line = workflow_line(ww, "drain_timeout", 0);
    workflow_says(line, "\"code\":\"CAN-004\"");
    workflow_says(line, "\"from\":\"DRAINING\",\"to\":\"DRAINING\"");
    workflow_says(line, "\"error\":\"ERR_CANCEL_DRAIN_TIMEOUT\"");
    assert_int_equal(ebb_workflow_join(ww->host, wf, NULL), EBB_ERR_CANCEL_DRAIN_TIMEOUT); /* and again */
    workflow_finish(ww, p);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_OK);
    assert_int_equal(report.state, EBB_WORKFLOW_FINALIZED);
}

static void ERR_CANCEL_LEAK_is_what_join_says_of_LEAK_DETECTED(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)ebb_region_reserve(ww->host, ebb_workflow_region(ww->host, wf), EBB_OBLIGATION_LEASE, NULL, NULL);
    workflow_stop(ww, wf);
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_PENDING);
    world_pass(ww->world, MS(2200));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_int_equal(report.state, EBB_WORKFLOW_LEAK_DETECTED);
    assert_int_equal(report.leaks, 1);
    assert_int_equal(report.status, EBB_OK); /* nobody has failed */
}

/* ---- timeouts and cx ------------------------------------------------------------------------- */

static void force_on_timeout_is_the_default_and_sets_drain_timed_out(void **state) {
    workflow_world *ww = *state;
    ebb_workflow_report report;
    ebb_workflow wf = open_plain(ww);
    (void)workflow_work(ww, wf, HEEDING);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(ww->world, MS(2200));
    assert_int_equal(ebb_workflow_join(ww->host, wf, &report), EBB_ERR_CANCEL_LEAK);
    assert_true(report.drain_timed_out);
    assert_true(report.cancelled);
    assert_false(report.forced); /* nobody has said so: the time was over */
    assert_int_equal(report.leaks, 1);
}

static void force_finalize_releases_what_was_held(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = open_plain(ww);
    puppet *hook = puppet_new(w, (puppet){.says = "lease"});
    puppet *last = puppet_new(w, (puppet){.says = "finalizer"});
    ebb_region r = ebb_workflow_region(w->host, wf);
    (void)ebb_region_reserve(w->host, r, EBB_OBLIGATION_LEASE, puppet_abort, hook);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, last), EBB_OK);
    (void)workflow_work(ww, wf, IGNORING);
    workflow_stop(ww, wf);
    world_pass(w, MS(2200));
    assert_string_equal(w->log, "finalizer lease ");
    assert_int_equal(stats_of(w).obligations, 0);
    assert_int_equal(ebb_workflow_join(w->host, wf, NULL), EBB_ERR_CANCEL_LEAK);
}

static void look_at_signals(ebb_cx *cx, puppet *p) {
    p->number = (ebb_stopping(cx) ? 1u : 0u) | (ebb_cancelled(cx) ? 2u : 0u);
}

static void the_request_reaches_every_cx_below_as_stopping_and_cancel_at_as_cancelled(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = open_plain(ww);
    puppet looks = {.act = look_at_signals, .returns = EBB_PENDING};
    puppet *own = workflow_work(ww, wf, looks);
    puppet *deep = puppet_start(w, open_region(w, open_region(w, ebb_workflow_region(w->host, wf))), looks);
    world_settle(w);
    assert_int_equal(own->number | deep->number, 0);
    workflow_stop(ww, wf);
    assert_int_equal(own->number, 1);
    assert_int_equal(deep->number, 1);
    world_pass(w, MS(1200));
    assert_int_equal(own->number, 3);
    assert_int_equal(deep->number, 3);
}

static void look_around(ebb_cx *cx, ebb_drain *d, drainer *me) {
    uint64_t *left = me->arg;
    *left = ebb_drain_left(cx, d);
    assert_false(ebb_stopping(cx));
    assert_int_equal(ebb_drain_workflow(d).id, ebb_workflow_of(cx).id);
    ebb_drain_evidence(d, "participants", "3 reverted");
}

static void a_handler_has_a_cx_that_nothing_stops_the_time_left_and_evidence(void **state) {
    workflow_world *ww = *state;
    uint64_t left = 0;
    ebb_workflow wf = open_plain(ww);
    drainer *h =
        drainer_add(ww, wf, "revert", (drainer){.act = look_around, .arg = &left, .sleeps = MS(1500)});
    (void)workflow_work(ww, wf, HEEDING);
    workflow_stop(ww, wf);
    assert_int_equal(left, MS(2000));
    world_pass(ww->world, MS(1500)); /* past cancel_at, which is not for handlers */
    assert_int_equal(h->slept, EBB_OK);
    assert_int_equal(left, MS(500));
    const char *line = workflow_line(ww, "evidence", 0);
    workflow_says(line,
                  "\"evidence\":{\"handler\":\"revert\",\"key\":\"participants\",\"value\":\"3 reverted\"}");
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORKFLOWS(CAN_001_is_the_request_with_its_reason),
        IN_WORKFLOWS(CAN_002_is_the_start_of_the_drain_right_after_the_request),
        IN_WORKFLOWS(CAN_003_is_a_drain_that_has_completed_within_its_budget),
        IN_WORKFLOWS(CAN_004_is_a_drain_over_its_budget_with_the_time_and_the_budget),
        IN_WORKFLOWS(CAN_005_is_an_end_without_leaks),
        IN_WORKFLOWS(CAN_006_is_an_end_with_a_leak),
        IN_WORKFLOWS(IDLE_is_where_it_starts_and_where_one_that_nobody_stops_ends),
        IN_WORKFLOWS(a_drain_in_time_goes_through_every_state_to_FINALIZED),
        IN_WORKFLOWS(a_drain_over_its_budget_goes_through_DRAIN_TIMEOUT_to_LEAK_DETECTED),
        IN_WORKFLOWS(FINALIZING_lasts_until_the_finalizers_are_done),
        IN_WORKFLOWS(lifecycle_shutdown_has_5000_ms),
        IN_WORKFLOWS(rollout_cancel_has_3000_ms),
        IN_WORKFLOWS(publish_abort_has_2000_ms),
        IN_WORKFLOWS(health_check_cancel_has_1000_ms),
        IN_WORKFLOWS(epoch_transition_cancel_has_3000_ms),
        IN_WORKFLOWS(a_budget_and_a_type_of_your_own_are_kept_too),
        IN_WORKFLOWS(INV_CANP_THREE_PHASE_holds_whoever_stops_it_and_how),
        IN_WORKFLOWS(INV_CANP_NO_NEW_WORK_refuses_every_kind_of_it_and_says_by_whom),
        IN_WORKFLOWS(INV_CANP_DRAIN_BOUNDED_ends_a_drain_that_nothing_else_ends),
        IN_WORKFLOWS(INV_CANP_FINALIZE_CLEAN_leaves_nothing_reserved_in_either_end),
        IN_WORKFLOWS(INV_CANP_IDEMPOTENT_absorbs_requests_in_every_state_before_the_end),
        IN_WORKFLOWS(a_stronger_request_strengthens_the_reason_and_a_weaker_one_does_not),
        IN_WORKFLOWS(INV_CANP_AUDIT_COMPLETE_has_a_line_for_every_change_and_an_event_in_the_trace),
        IN_WORKFLOWS(ERR_CANCEL_INVALID_PHASE_names_the_state_and_the_trigger),
        IN_WORKFLOWS(ERR_CANCEL_ALREADY_FINAL_is_what_a_request_after_the_end_gets),
        IN_WORKFLOWS(ERR_CANCEL_DRAIN_TIMEOUT_is_what_join_says_and_it_stays_DRAINING),
        IN_WORKFLOWS(ERR_CANCEL_LEAK_is_what_join_says_of_LEAK_DETECTED),
        IN_WORKFLOWS(force_on_timeout_is_the_default_and_sets_drain_timed_out),
        IN_WORKFLOWS(force_finalize_releases_what_was_held),
        IN_WORKFLOWS(the_request_reaches_every_cx_below_as_stopping_and_cancel_at_as_cancelled),
        IN_WORKFLOWS(a_handler_has_a_cx_that_nothing_stops_the_time_left_and_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
