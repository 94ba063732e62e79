/* Units of work over their whole life: how they end after a close from above, what they begin inside
 * themselves meanwhile, and what the audit log has of that. tests/kernel/admission.c has the single answers. */
#include <stdlib.h>

#include "tests/support/two_worlds.h"
#include "tests/support/workflow_world.h"

static ebb_region unit_in(world *w, ebb_region parent) {
    ebb_region_opts o = {.parent = parent, .policy = EBB_FAIL_COLLECT, .unit = true};
    ebb_region r = ebb_region_open(w->host, &o);
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    return r;
}

static void finish(world *w, puppet *p) {
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
}

static void tell(world *w, puppet *p, void (*act)(ebb_cx *cx, puppet *p)) {
    p->act = act;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    p->act = NULL;
}

static void close_region(world *w, ebb_region r) {
    ebb_region_close(w->host, r);
    world_settle(w);
}

/* ---- how a unit ends -------------------------------------------------------------------------------- */

static void a_unit_closes_by_itself_when_it_is_empty_and_what_is_around_it_was_closed(void **state) {
    world *w = *state;
    ebb_region service = open_region(w, w->root);
    ebb_region empty = unit_in(w, service), busy = unit_in(w, service);
    puppet *p = puppet_start(w, busy, IGNORING);
    world_settle(w);
    assert_int_equal(state_of(w, empty), EBB_REGION_OPEN);
    close_region(w, service);
    assert_int_equal(state_of(w, empty), EBB_REGION_CLOSED);
    assert_int_equal(state_of(w, busy), EBB_REGION_OPEN);
    assert_int_equal(state_of(w, service), EBB_REGION_DRAINING);
    finish(w, p);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, service).status, EBB_OK);
}

static void a_unit_that_empties_before_any_close_stays_open(void **state) {
    world *w = *state;
    ebb_region unit = unit_in(w, open_region(w, w->root));
    finish(w, puppet_start(w, unit, IGNORING));
    assert_int_equal(state_of(w, unit), EBB_REGION_OPEN);
    assert_int_equal(ebb_id_status(ebb_spawn(w->host, unit, puppet_poll, puppet_new(w, IGNORING)).id),
                     EBB_OK);
}

static void a_unit_runs_its_finalizers_and_waits_for_its_obligations_when_it_ends_so(void **state) {
    world *w = *state;
    ebb_region service = open_region(w, w->root), unit = unit_in(w, service);
    ebb_obligation owed = ebb_region_reserve(w->host, unit, EBB_OBLIGATION_LEASE, NULL, NULL);
    puppet *fin = puppet_new(w, (puppet){.says = "finalized"});
    assert_int_equal(ebb_region_defer(w->host, unit, puppet_poll, fin), EBB_OK);
    close_region(w, service);
    assert_string_equal(w->log, "finalized ");
    assert_int_equal(state_of(w, unit), EBB_REGION_FINALIZING);
    assert_int_equal(ebb_obligation_commit(w->host, owed), EBB_OK);
    world_settle(w);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
}

static void opens_both(ebb_cx *cx, puppet *p) {
    p->seen = ebb_id_status(ebb_region_open(cx, &(ebb_region_opts){.cleanup = true, .unit = true}).id);
}

static void a_cleanup_scope_is_no_unit(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    tell(w, p, opens_both);
    assert_int_equal(p->seen, EBB_ERR_INVALID);
    finish(w, p);
}

/* ---- regions inside ---------------------------------------------------------------------------------- */

typedef struct fan {
    ebb_region region;
    ebb_status opened, spawned, joined;
    puppet *child;
    bool heeds; /* its child does, a cancel */
} fan;

static void opens(ebb_cx *cx, puppet *p) {
    fan *f = p->arg;
    f->region = ebb_region_open(cx, NULL);
    f->opened = ebb_id_status(f->region.id);
    f->joined = EBB_PENDING;
}

static void spawns(ebb_cx *cx, puppet *p) {
    fan *f = p->arg;
    f->child = puppet_new(p->world, f->heeds ? HEEDING : IGNORING);
    f->child->id = ebb_spawn(cx, f->region, puppet_poll, f->child);
    f->spawned = ebb_id_status(f->child->id.id);
}

static void joins(ebb_cx *cx, puppet *p) {
    fan *f = p->arg;
    f->joined = ebb_region_join(cx, f->region);
}

static void a_region_that_is_opened_after_the_close_admits_until_its_task_joins_it(void **state) {
    world *w = *state;
    fan f = {.spawned = EBB_PENDING};
    ebb_region service = open_region(w, w->root), unit = unit_in(w, service);
    puppet *p = puppet_start(w, unit, (puppet){.returns = EBB_PENDING, .arg = &f});
    world_settle(w);
    close_region(w, service);
    tell(w, p, opens);
    assert_int_equal(f.opened, EBB_OK);
    for (int i = 0; i < 3; i++) { /* empty in between, and not closed by that */
        tell(w, p, spawns);
        assert_int_equal(f.spawned, EBB_OK);
        finish(w, f.child);
        assert_int_equal(state_of(w, f.region), EBB_REGION_OPEN);
    }
    tell(w, p, spawns);
    tell(w, p, joins);
    assert_int_equal(f.joined, EBB_PENDING);
    finish(w, f.child);
    tell(w, p, joins);
    assert_int_equal(f.joined, EBB_OK);
    finish(w, p);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
}

static void a_region_that_is_opened_after_the_close_is_cancelled_when_its_task_returns(void **state) {
    world *w = *state;
    fan f = {.spawned = EBB_PENDING};
    ebb_region service = open_region(w, w->root), unit = unit_in(w, service);
    puppet *p = puppet_start(w, unit, (puppet){.returns = EBB_PENDING, .arg = &f});
    world_settle(w);
    close_region(w, service);
    tell(w, p, opens);
    tell(w, p, spawns);
    finish(w, p);
    assert_int_equal(info_of(w, f.child->id).phase, EBB_TASK_CANCEL_REQUESTED);
    finish(w, f.child);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
}

static void a_region_of_the_host_in_a_unit_ends_with_its_last_task_after_the_close(void **state) {
    world *w = *state;
    ebb_region service = open_region(w, w->root), unit = unit_in(w, service), mine = open_region(w, unit);
    puppet *p = puppet_start(w, mine, IGNORING);
    world_settle(w);
    close_region(w, service);
    assert_int_equal(state_of(w, mine), EBB_REGION_OPEN);
    finish(w, p);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
}

/* Takes jobs from a queue, and spawns each into the region that it is in: that is new work. */
static void a_supervisor_outside_of_units_starts_nothing_after_the_close_and_its_jobs_fan_out(void **state) {
    world *w = *state;
    ebb_region service = open_region(w, w->root), job = unit_in(w, service);
    fan supervises = {.region = service}, works = {.region = job};
    puppet *supervisor = puppet_start(w, service, (puppet){.returns = EBB_PENDING, .arg = &supervises});
    puppet *worker = puppet_start(w, job, (puppet){.returns = EBB_PENDING, .arg = &works});
    close_region(w, service);
    tell(w, supervisor, spawns);
    tell(w, worker, spawns);
    assert_int_equal(supervises.spawned, EBB_ERR_CLOSED);
    assert_int_equal(works.spawned, EBB_OK);
    supervises.region = job; /* nor into a job that is there */
    tell(w, supervisor, spawns);
    assert_int_equal(supervises.spawned, EBB_ERR_CLOSED);
    finish(w, supervisor);
    finish(w, works.child);
    finish(w, worker);
    assert_int_equal(state_of(w, service), EBB_REGION_CLOSED);
}

/* ---- the finalizer of a region ------------------------------------------------------------------------- */

typedef struct last_words {
    ebb_region region, scope;
    ebb_status spawned, reserved, opened, spawned_there, joined;
    puppet *helper;
} last_words;

static ebb_status says_last_words(ebb_cx *cx, void *state) {
    last_words *l = state;
    if (l->scope.id == 0) {
        l->spawned = ebb_id_status(ebb_spawn(cx, l->region, puppet_poll, l->helper).id);
        ebb_obligation o = ebb_obligation_reserve(cx, EBB_OBLIGATION_FENCE, NULL, NULL);
        l->reserved = ebb_id_status(o.id);
        (void)ebb_obligation_commit(cx, o);
        l->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
        l->opened = ebb_id_status(l->scope.id);
        l->spawned_there = ebb_id_status(ebb_spawn(cx, l->scope, puppet_poll, l->helper).id);
    }
    l->joined = ebb_region_join(cx, l->scope);
    return l->joined;
}

static void finalizer_of_a_region(world *w, bool cancelled) {
    last_words *l = world_keep(w, sizeof *l);
    l->region = open_region(w, w->root);
    l->helper = puppet_new(w, (puppet){.returns = EBB_OK});
    assert_int_equal(ebb_region_defer(w->host, l->region, says_last_words, l), EBB_OK);
    if (cancelled) ebb_region_cancel(w->host, l->region, EBB_CANCEL_USER, NULL);
    else ebb_region_close(w->host, l->region);
    world_settle(w);
    assert_int_equal(l->spawned, cancelled ? EBB_CANCELLED : EBB_ERR_CLOSED);
    assert_int_equal(l->reserved, EBB_OK);
    assert_int_equal(l->opened, EBB_OK);
    assert_int_equal(l->spawned_there, EBB_OK);
    assert_int_equal(l->joined, EBB_OK);
    assert_int_equal(l->helper->polls, 1);
    assert_int_equal(state_of(w, l->region), EBB_REGION_CLOSED);
}

static void the_finalizer_of_a_region_works_in_a_cleanup_scope_only(void **state) {
    finalizer_of_a_region(*state, false);
    finalizer_of_a_region(*state, true);
}

/* ---- the log -------------------------------------------------------------------------------------------- */

static uint64_t number_in(const char *line, const char *key) {
    const char *at = strstr(line, key);
    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

static void keeps_notes(ebb_cx *cx, ebb_drain *d, drainer *me) {
    (void)cx;
    (void)me;
    ebb_drain_evidence(d, "seen", "now");
}

static void in_flight_never_rises_while_units_begin_work_inside_themselves(void **state) {
    enum { UNITS = 3, ROUNDS = 4 };
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    ebb_region service = ebb_workflow_region(ww->host, wf);
    drainer *notes = drainer_add(ww, wf, "notes", (drainer){.act = keeps_notes, .stays = true});
    fan fans[UNITS] = {{.heeds = true}, {.heeds = true}, {.heeds = true}}, outside = {.region = service};
    puppet *workers[UNITS], *plain = workflow_work(ww, wf, (puppet){.returns = EBB_PENDING, .arg = &outside});
    for (int i = 0; i < UNITS; i++) {
        workers[i] = puppet_start(w, unit_in(w, service), (puppet){.returns = EBB_PENDING, .arg = &fans[i]});
    }
    world_settle(w);
    workflow_stop(ww, wf);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < UNITS; i++) {
            tell(w, workers[i], opens);
            tell(w, workers[i], spawns);
            assert_int_equal(fans[i].spawned, EBB_OK);
            tell(w, plain, spawns);
            assert_int_equal(outside.spawned, EBB_ERR_CLOSED);
        }
        (void)ebb_task_wake(ww->host, notes->task);
        world_settle(w);
    }
    for (int i = 0; i < UNITS; i++) finish(w, workers[i]);
    finish(w, plain);
    notes->stays = false;
    (void)ebb_task_wake(ww->host, notes->task);
    world_settle(w);
    uint64_t in_flight = UNITS + 1, inside = 0, refused = 0;
    uint32_t seen = 0;
    const char *line;
    for (; (line = workflow_line(ww, "evidence", seen)) != NULL; seen++) {
        assert_true(number_in(line, "\"in_flight\":") <= in_flight);
        assert_true(number_in(line, "\"inside\":") >= inside);
        in_flight = number_in(line, "\"in_flight\":");
        inside = number_in(line, "\"inside\":");
        refused = number_in(line, "\"refused\":");
    }
    assert_true(seen >= ROUNDS);
    assert_int_equal(inside, 2 * UNITS * ROUNDS);
    assert_int_equal(refused, UNITS * ROUNDS);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

static void opens_a_workflow(ebb_cx *cx, puppet *p) {
    ebb_workflow *wf = p->arg;
    *wf = ebb_workflow_open(
        cx, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .policy = EBB_FAIL_COLLECT});
}

static void a_workflow_that_a_unit_opens_after_the_request_is_in_the_log_as_the_units(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel}), own = {0},
                 not = {0};
    ebb_region service = ebb_workflow_region(ww->host, wf), unit = unit_in(w, service);
    puppet *worker = puppet_start(w, unit, (puppet){.returns = EBB_PENDING, .arg = &own});
    puppet *plain = puppet_start(w, service, (puppet){.returns = EBB_PENDING, .arg = &not });
    world_settle(w);
    workflow_stop(ww, wf);
    tell(w, worker, opens_a_workflow);
    tell(w, plain, opens_a_workflow);
    assert_int_equal(ebb_id_status(own.id), EBB_OK);
    assert_int_equal(ebb_id_status(not .id), EBB_ERR_CLOSED);
    workflow_says(workflow_line(ww, "opened", 1), "\"in_unit\":1");
    assert_int_equal(workflow_state(ww, own), EBB_WORKFLOW_IDLE);
    finish(w, plain);
    finish(w, worker); /* and with it, its workflow */
    world_settle(w);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
}

/* A finalizer with a unit in its cleanup scope: what that begins inside itself is cleanup, as all the rest. */
typedef struct tidy {
    world *world;
    ebb_region scope;
    fan fan;
} tidy;

static ebb_status tidies(ebb_cx *cx, void *state) {
    tidy *t = state;
    if (t->scope.id == 0) {
        t->scope = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true});
        t->fan.region = ebb_region_open(cx, &(ebb_region_opts){.parent = t->scope, .unit = true});
        puppet *p = puppet_new(t->world, (puppet){.act = spawns, .arg = &t->fan});
        (void)ebb_spawn(cx, t->fan.region, puppet_poll, p);
        ebb_region_close(cx, t->scope);
    }
    if (t->fan.child != NULL) {
        t->fan.child->returns = EBB_OK;
        (void)ebb_task_wake(cx, t->fan.child->id);
    }
    return ebb_region_join(cx, t->scope);
}

static void what_a_unit_in_a_cleanup_scope_begins_is_not_in_the_log(void **state) {
    workflow_world *ww = *state;
    world *w = ww->world;
    tidy t = {.world = w, .fan.spawned = EBB_PENDING};
    ebb_workflow wf = workflow_new(ww, &(ebb_workflow_opts){.type = &ebb_workflow_rollout_cancel});
    assert_int_equal(ebb_region_defer(ww->host, ebb_workflow_region(ww->host, wf), tidies, &t), EBB_OK);
    workflow_stop(ww, wf);
    world_pass(w, EBB_SECOND);
    assert_int_equal(t.fan.spawned, EBB_OK);
    world_pass(w, 10 * EBB_SECOND);
    assert_int_equal(workflow_state(ww, wf), EBB_WORKFLOW_FINALIZED);
    assert_int_equal(number_in(workflow_line(ww, "finalized", 0), "\"inside\":"), 0);
}

/* ---- far regions ---------------------------------------------------------------------------------------- */

typedef struct away {
    ebb_peer *peer;
    ebb_future *future;
    puppet *body; /* on the other runtime */
    fan fan;
    ebb_status st;
} away;

static ebb_status goes_away(ebb_cx *cx, void *state) {
    away *a = state;
    if (a->future == NULL) a->future = ebb_peer_run(cx, a->peer, puppet_poll, a->body);
    a->st = ebb_await(cx, a->future, NULL);
    return a->st;
}

static void spawns_beside_itself(ebb_cx *cx, puppet *p) {
    ((fan *)p->arg)->region = ebb_cx_region(cx);
    p->id = ebb_cx_task(cx);
    if (ebb_stopping(cx)) spawns(cx, p);
}

static away *far_from(two *t, ebb_region home) {
    away *a = world_keep(t->a, sizeof *a);
    a->peer = t->to_b;
    a->fan.spawned = EBB_PENDING;
    a->body = puppet_new(t->b, (puppet){.act = spawns_beside_itself, .returns = EBB_PENDING, .arg = &a->fan});
    assert_int_equal(ebb_id_status(ebb_spawn(t->a->host, home, goes_away, a).id), EBB_OK);
    meet(t);
    return a;
}

static void what_a_unit_runs_far_away_fans_out_after_the_close_too(void **state) {
    two *t = *state;
    ebb_region service = open_region(t->a, t->a->root), unit = unit_in(t->a, service);
    away *in_unit = far_from(t, unit), *plain = far_from(t, service);
    ebb_region_close(t->a->host, service);
    meet(t);
    assert_int_equal(plain->fan.spawned, EBB_ERR_CLOSED);
    assert_int_equal(in_unit->fan.spawned, EBB_OK);
    in_unit->body->act = plain->body->act = NULL;
    finish(t->b, plain->body);
    finish(t->b, in_unit->body);
    meet(t);
    assert_int_equal(in_unit->st, EBB_PENDING); /* waits for what its body has spawned */
    finish(t->b, in_unit->fan.child);
    meet(t);
    assert_int_equal(in_unit->st, EBB_OK);
    assert_int_equal(state_of(t->a, service), EBB_REGION_CLOSED);
}

static void what_a_unit_runs_far_away_ends_with_its_status(void **state) {
    two *t = *state;
    ebb_region unit = unit_in(t->a, t->a->root);
    away *fails = far_from(t, unit), *cancelled = far_from(t, unit);
    fails->body->returns = EBB_ERR_LIMIT;
    (void)ebb_task_wake(t->b->host, fails->body->id);
    meet(t);
    assert_int_equal(fails->st, EBB_ERR_LIMIT);
    cancelled->body->heeds = true;
    cancelled->body->on_cancel = EBB_CANCELLED;
    ebb_region_cancel(t->a->host, unit, EBB_CANCEL_USER, "enough");
    meet(t);
    assert_int_equal(cancelled->st, EBB_CANCELLED);
    assert_int_equal(cancelled->body->seen, EBB_CANCELLED);
    assert_int_equal(state_of(t->a, unit), EBB_REGION_CLOSED);
}

static void closing_the_unit_itself_shuts_what_it_runs_far_away(void **state) {
    two *t = *state;
    ebb_region unit = unit_in(t->a, t->a->root);
    away *a = far_from(t, unit);
    ebb_region_close(t->a->host, unit);
    meet(t);
    assert_int_equal(a->fan.spawned, EBB_ERR_CLOSED);
    a->body->act = NULL;
    finish(t->b, a->body);
    meet(t);
    assert_int_equal(state_of(t->a, unit), EBB_REGION_CLOSED);
}

/* A close from above has left the unit open; its own close then says more than that. */
static void closing_the_unit_after_what_is_around_it_shuts_what_it_runs_far_away(void **state) {
    two *t = *state;
    ebb_region service = open_region(t->a, t->a->root), unit = unit_in(t->a, service);
    away *a = far_from(t, unit);
    ebb_region_close(t->a->host, service);
    meet(t);
    assert_int_equal(a->fan.spawned, EBB_OK);
    puppet *child = a->fan.child;
    ebb_region_close(t->a->host, unit);
    meet(t);
    (void)ebb_task_wake(t->b->host, a->body->id);
    meet(t);
    assert_int_equal(a->fan.spawned, EBB_ERR_CLOSED);
    a->body->act = NULL;
    finish(t->b, child);
    finish(t->b, a->body);
    meet(t);
    assert_int_equal(state_of(t->a, service), EBB_REGION_CLOSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_unit_closes_by_itself_when_it_is_empty_and_what_is_around_it_was_closed),
        IN_WORLD(a_unit_that_empties_before_any_close_stays_open),
        IN_WORLD(a_unit_runs_its_finalizers_and_waits_for_its_obligations_when_it_ends_so),
        IN_WORLD(a_cleanup_scope_is_no_unit),
        IN_WORLD(a_region_that_is_opened_after_the_close_admits_until_its_task_joins_it),
        IN_WORLD(a_region_that_is_opened_after_the_close_is_cancelled_when_its_task_returns),
        IN_WORLD(a_region_of_the_host_in_a_unit_ends_with_its_last_task_after_the_close),
        IN_WORLD(a_supervisor_outside_of_units_starts_nothing_after_the_close_and_its_jobs_fan_out),
        IN_WORLD(the_finalizer_of_a_region_works_in_a_cleanup_scope_only),
        IN_WORKFLOWS(in_flight_never_rises_while_units_begin_work_inside_themselves),
        IN_WORKFLOWS(a_workflow_that_a_unit_opens_after_the_request_is_in_the_log_as_the_units),
        IN_WORKFLOWS(what_a_unit_in_a_cleanup_scope_begins_is_not_in_the_log),
        IN_TWO_WORLDS(what_a_unit_runs_far_away_fans_out_after_the_close_too),
        IN_TWO_WORLDS(what_a_unit_runs_far_away_ends_with_its_status),
        IN_TWO_WORLDS(closing_the_unit_itself_shuts_what_it_runs_far_away),
        IN_TWO_WORLDS(closing_the_unit_after_what_is_around_it_shuts_what_it_runs_far_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
