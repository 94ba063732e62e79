/* Regions: from Open to Closed, who is told, who joins, and what is admitted when. */
#include "tests/support/world.h"

#include "kernel/region.h"

/* ---- the states --------------------------------------------------------------------------------- */

static void a_region_goes_from_open_through_every_state_to_closed(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *fin = puppet_new(w, IGNORING);
    puppet *p = puppet_start(w, r, IGNORING);
    assert_int_equal(ebb_region_defer(w->host, r, puppet_poll, fin), EBB_OK);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_DRAINING);
    assert_int_equal(fin->polls, 0);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_FINALIZING);
    assert_int_equal(fin->polls, 1);
    ebb_event spawned = event_of(w, EBB_EV_REGION_FINALIZING, r.id), closer;
    assert_true(find_event(w, EBB_EV_TASK_SPAWNED, 0, 1, &closer));
    assert_true(spawned.decision_seq < closer.decision_seq);
    fin->returns = EBB_OK;
    (void)ebb_task_wake(w->host, (ebb_task){closer.task_id});
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    static const uint32_t order[] = {EBB_EV_REGION_OPENED, EBB_EV_REGION_CLOSING, EBB_EV_REGION_DRAINING,
                                     EBB_EV_REGION_FINALIZING, EBB_EV_REGION_CLOSED};
    for (size_t i = 1; i < 5; i++) {
        assert_true(event_of(w, order[i - 1], r.id).decision_seq < event_of(w, order[i], r.id).decision_seq);
    }
}

static void a_region_with_nothing_in_it_does_not_drain(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(count_events(w, EBB_EV_REGION_DRAINING, r.id), 0);
    assert_int_equal(ebb_region_join(w->host, r), EBB_OK);
    assert_int_equal(ebb_region_join(w->host, r), EBB_ERR_STALE);
}

static void a_region_does_not_close_before_its_children_have(void **state) {
    world *w = *state;
    ebb_region a = open_region(w, w->root), b = open_region(w, a), c = open_region(w, b);
    puppet *p = puppet_start(w, c, IGNORING);
    ebb_region_close(w->host, a);
    world_settle(w);
    assert_int_equal(state_of(w, a), EBB_REGION_DRAINING);
    assert_int_equal(state_of(w, b), EBB_REGION_DRAINING);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(state_of(w, a), EBB_REGION_CLOSED);
    uint64_t inner = event_of(w, EBB_EV_REGION_CLOSED, c.id).decision_seq;
    uint64_t middle = event_of(w, EBB_EV_REGION_CLOSED, b.id).decision_seq;
    assert_true(inner < middle && middle < event_of(w, EBB_EV_REGION_CLOSED, a.id).decision_seq);
}

static void an_obligation_of_a_region_that_nobody_resolves_is_a_leak_when_it_is_forced(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *hook = puppet_new(w, (puppet){.says = "hook"});
    ebb_obligation o = ebb_region_reserve(w->host, r, EBB_OBLIGATION_LEASE, puppet_abort, hook);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_FINALIZING);
    ebb_region_force(w->host, r);
    assert_int_equal(hook->polls, 0); /* a verb runs nobody's code */
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(hook->polls, 1);
    assert_int_equal(report_of(w, r).leaked, 1);
    assert_int_equal(ebb_obligation_commit(w->host, o), EBB_ERR_RESOLVED);
}

/* ---- close, cancel ------------------------------------------------------------------------------ */

static void looks(ebb_cx *cx, puppet *p) {
    p->number = (ebb_stopping(cx) ? 1u : 0u) | (ebb_cancelled(cx) ? 2u : 0u);
}

static void close_tells_tasks_to_stop_and_wakes_them_but_cancels_nothing(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), child = open_region(w, r);
    puppet *p = puppet_start(w, r, (puppet){.act = looks, .returns = EBB_PENDING, .heeds = true});
    puppet *q = puppet_start(w, child, (puppet){.act = looks, .returns = EBB_PENDING, .heeds = true});
    world_settle(w);
    assert_int_equal(p->number, 0);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(p->polls, 2);
    assert_int_equal(p->number, 1);
    assert_int_equal(q->number, 1);
    assert_int_equal(p->seen, EBB_OK);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_RUNNING);
    ebb_region_close(w->host, r); /* again: nothing new to tell */
    world_settle(w);
    assert_int_equal(p->polls, 2);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(p->number, 3);
    assert_int_equal(q->number, 3);
}

static void nothing_new_is_admitted_after_close_nor_after_cancel(void **state) {
    world *w = *state;
    for (int cancel = 0; cancel < 2; cancel++) {
        ebb_region r = open_region(w, w->root), child = open_region(w, r);
        puppet *p = puppet_start(w, r, IGNORING);
        puppet *c = puppet_start(w, child, IGNORING);
        world_settle(w);
        if (cancel) ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
        else ebb_region_close(w->host, r);
        ebb_region both[] = {r, child};
        for (int i = 0; i < 2; i++) {
            ebb_task t = ebb_spawn(w->host, both[i], puppet_poll, p);
            assert_int_equal(ebb_id_status(t.id), EBB_ERR_CLOSED);
            ebb_obligation o = ebb_region_reserve(w->host, both[i], EBB_OBLIGATION_ACK, NULL, NULL);
            assert_int_equal(ebb_id_status(o.id), EBB_ERR_CLOSED);
            ebb_region n = ebb_region_open(w->host, &(ebb_region_opts){.parent = both[i]});
            assert_int_equal(ebb_id_status(n.id), EBB_ERR_CLOSED);
        }
        assert_int_equal(stats_of(w).obligations, 0);
        assert_int_equal(count_events(w, EBB_EV_REFUSED, r.id), 3);
        ebb_region_force(w->host, r);
        world_finish(w);
        assert_int_equal(p->polls + c->polls, cancel ? 2 + 16 : 4 + 16 - 2);
        assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
        assert_int_equal(ebb_id_status(ebb_spawn(w->host, r, puppet_poll, p).id), EBB_ERR_CLOSED);
    }
}

static void a_cancel_tells_parents_before_children_and_children_why(void **state) {
    world *w = *state;
    enum { DEPTH = 6 };
    ebb_region r[DEPTH];
    puppet *p[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        r[i] = open_region(w, i == 0 ? w->root : r[i - 1]);
        p[i] = puppet_start(w, r[i], IGNORING);
        (void)open_region(w, r[i]); /* a sibling on each level */
    }
    world_settle(w);
    ebb_region_cancel(w->host, r[0], EBB_CANCEL_LEASE_LOST, "the lease is gone");
    uint64_t last = 0;
    for (int i = 0; i < DEPTH; i++) {
        ebb_event region = event_of(w, EBB_EV_REGION_CANCELLED, r[i].id);
        ebb_event task = event_of(w, EBB_EV_CANCEL_REQUESTED, p[i]->id.id);
        assert_true(last < region.decision_seq && region.decision_seq < task.decision_seq);
        last = task.decision_seq;
        ebb_cancel_kind kind = i == 0 ? EBB_CANCEL_LEASE_LOST : EBB_CANCEL_PARENT;
        assert_int_equal(region.cancel_kind, kind);
        assert_int_equal(region.severity, EBB_SEVERITY_URGENT);
        ebb_task_info info = info_of(w, p[i]->id);
        assert_int_equal(info.reason.kind, kind);
        assert_int_equal(info.reason.severity, EBB_SEVERITY_URGENT);
        assert_int_equal(info.reason.origin, i == 0 ? 0 : r[i - 1].id);
        assert_int_equal(info.budget.deadline, 2000 * EBB_MS);
    }
}

static void a_second_cancel_strengthens_the_whole_tree(void **state) {
    world *w = *state;
    ebb_region a = open_region(w, w->root), b = open_region(w, a);
    puppet *p = puppet_start(w, b, IGNORING);
    world_settle(w);
    ebb_region_cancel(w->host, b, EBB_CANCEL_USER, "own");
    ebb_region_cancel(w->host, a, EBB_CANCEL_USER, "outer"); /* not stronger: the first stands */
    ebb_task_info info = info_of(w, p->id);
    assert_int_equal(info.reason.kind, EBB_CANCEL_USER);
    assert_string_equal(info.reason.message, "own");
    ebb_region_cancel(w->host, a, EBB_CANCEL_SHUTDOWN, "outer");
    info = info_of(w, p->id);
    assert_int_equal(info.reason.kind, EBB_CANCEL_PARENT);
    assert_int_equal(info.reason.severity, EBB_SEVERITY_FORCED);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.budget.deadline, 500 * EBB_MS);
    assert_int_equal(info.budget.polls, 64);
}

static void a_cancel_with_a_budget_of_its_own_replaces_the_table(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, IGNORING);
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, NULL, (ebb_budget){100 * EBB_MS, 7, 9});
    ebb_task_info info = info_of(w, p->id);
    assert_int_equal(info.budget.deadline, 100 * EBB_MS);
    assert_int_equal(info.budget.polls, 7);
    world_pass(w, 79 * EBB_MS);
    assert_false(info_of(w, p->id).forced);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).abandoned, 1);
}

/* ---- join, failure ------------------------------------------------------------------------------ */

static void join_waits_for_all_and_returns_the_first_failure(void **state) {
    world *w = *state;
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    puppet *slow = puppet_start(w, r, IGNORING);
    puppet *bad = puppet_start(w, r, (puppet){.returns = EBB_FAILED});
    puppet *worse = puppet_start(w, r, (puppet){.returns = EBB_FAULTED});
    assert_int_equal(ebb_region_join(w->host, r), EBB_PENDING);
    world_settle(w);
    assert_int_equal(ebb_region_join(w->host, r), EBB_PENDING);
    assert_int_equal(state_of(w, r), EBB_REGION_OPEN); /* a join closes when nothing is left, not before */
    assert_int_equal(phase_of(w, slow->id), EBB_TASK_RUNNING); /* collect: the others go on */
    slow->returns = EBB_OK;
    (void)ebb_task_wake(w->host, slow->id);
    world_settle(w);
    ebb_region_report report = report_of(w, r);
    assert_int_equal(report.status, EBB_FAILED);
    assert_int_equal(report.failed.id, bad->id.id);
    assert_int_equal(worse->polls, 1);
    assert_int_equal(ebb_region_join(w->host, r), EBB_FAILED);
    assert_int_equal(state_of(w, r), 0);
}

static void fail_fast_cancels_the_siblings_and_their_regions(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), child = open_region(w, r);
    puppet *sibling = puppet_start(w, r, HEEDING), *nephew = puppet_start(w, child, HEEDING);
    puppet *bad = puppet_start(w, r, (puppet){.returns = (ebb_status)-1234});
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    ebb_event ev = event_of(w, EBB_EV_CANCEL_REQUESTED, sibling->id.id);
    assert_int_equal(ev.cancel_kind, EBB_CANCEL_SIBLING_FAILED);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, nephew->id.id).cancel_kind, EBB_CANCEL_PARENT);
    assert_int_equal(report_of(w, r).status, -1234);
    assert_int_equal(report_of(w, r).failed.id, bad->id.id);
    assert_int_equal(ebb_region_join(w->host, r), -1234);
}

static void a_cancelled_task_is_no_failure_but_join_says_it(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *a = puppet_start(w, r, HEEDING), *b = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_task_cancel(w->host, a->id, EBB_CANCEL_RACE_LOST, NULL);
    world_settle(w);
    assert_int_equal(phase_of(w, b->id), EBB_TASK_RUNNING);
    b->returns = EBB_OK;
    (void)ebb_task_wake(w->host, b->id);
    world_settle(w);
    (void)ebb_region_join(w->host, r);
    assert_int_equal(ebb_region_join(w->host, r), EBB_ERR_STALE);
    ebb_event joined = event_of(w, EBB_EV_REGION_JOINED, r.id);
    assert_int_equal((int32_t)joined.value, EBB_CANCELLED);
}

typedef struct nest {
    ebb_region inner, second;
    ebb_status joined, again;
    ebb_task task;
} nest;

static void opens_and_joins(ebb_cx *cx, puppet *p) {
    nest *n = p->arg;
    if (n->inner.id == 0) {
        n->inner = ebb_region_open(cx, NULL);
        n->second = ebb_region_open(cx, NULL);
        puppet *child = puppet_new(p->world, HEEDING);
        n->task = child->id = ebb_spawn(cx, n->inner, puppet_poll, child, &(ebb_task_opts){.keep = true});
    }
    if (n->again == EBB_PENDING) n->again = ebb_region_join(cx, n->second); /* empty: closes at once */
    n->joined = ebb_region_join(cx, n->inner);
    p->returns = n->joined;
}

static puppet *joiner(world *w, ebb_region r) {
    nest *n = world_keep(w, sizeof *n);
    n->again = EBB_PENDING;
    return puppet_start(w, r, (puppet){.act = opens_and_joins, .arg = n});
}

static void the_failure_of_a_region_that_nobody_joins_is_its_parents(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), inner[3];
    for (int i = 0; i < 3; i++) {
        inner[i] = open_region(w, r);
        (void)puppet_start(w, inner[i], (puppet){.returns = EBB_STATUS_USER - i});
        world_settle(w);
    }
    assert_int_equal(ebb_region_join(w->host, inner[1]), EBB_STATUS_USER - 1);
    ebb_region_close(w->host, r);
    world_settle(w);
    assert_int_equal(report_of(w, r).failed.id, event_of(w, EBB_EV_TASK_SPAWNED, 0).task_id);
    assert_int_equal(ebb_region_join(w->host, r), EBB_STATUS_USER); /* of 0, which closed before 2 */
}

static void opens_and_forgets(ebb_cx *cx, puppet *p) {
    ebb_region r = ebb_region_open(cx, NULL);
    puppet *child = puppet_new(p->world, (puppet){.returns = EBB_STATUS_USER - 7});
    (void)ebb_spawn(cx, r, puppet_poll, child);
}

static void the_failure_of_a_region_that_its_task_left_behind_is_the_tasks(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, (puppet){.act = opens_and_forgets, .returns = EBB_OK});
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, p->id), EBB_STATUS_USER - 7);
    assert_int_equal(ebb_region_join(w->host, r), EBB_STATUS_USER - 7);
}

static void a_task_that_joins_is_woken_when_the_region_has_closed(void **state) {
    world *w = *state;
    puppet *p = joiner(w, w->root);
    nest *n = p->arg;
    world_settle(w);
    assert_int_equal(n->joined, EBB_PENDING);
    assert_int_equal(n->again, EBB_OK);
    ebb_region_cancel(w->host, n->inner, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(n->joined, EBB_CANCELLED);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
}

static void a_cancelled_join_leaves_the_region_to_go_with_its_task(void **state) {
    world *w = *state;
    puppet *p = joiner(w, w->root);
    nest *n = p->arg;
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(n->joined, EBB_CANCELLED);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(count_events(w, EBB_EV_REGION_JOINED, n->inner.id), 0);
    assert_int_equal(event_of(w, EBB_EV_FINALIZED, n->task.id).cancel_kind, EBB_CANCEL_USER);
    assert_true(event_of(w, EBB_EV_REGION_CLOSED, n->inner.id).decision_seq <
                event_of(w, EBB_EV_FINALIZED, p->id.id).decision_seq);
}

static void opens_two_and_returns(ebb_cx *cx, puppet *p) {
    nest *n = p->arg;
    n->inner = ebb_region_open(cx, NULL);
    n->second = ebb_region_open(cx, NULL); /* stays empty */
    puppet *child = puppet_new(p->world, HEEDING);
    n->task = child->id = ebb_spawn(cx, n->inner, puppet_poll, child, &(ebb_task_opts){.keep = true});
}

static void the_regions_of_a_task_that_returns_are_cancelled_and_joined(void **state) {
    world *w = *state;
    for (int round = 0; round < 3; round++) {
        nest *n = world_keep(w, sizeof *n);
        puppet *p = puppet_start(w, w->root, (puppet){.act = opens_two_and_returns, .arg = n});
        world_settle(w);
        assert_int_equal(info_of(w, p->id).status, EBB_OK);
        assert_int_equal(event_of(w, EBB_EV_FINALIZED, n->task.id).cancel_kind, EBB_CANCEL_USER);
        assert_int_equal(state_of(w, n->inner), 0);
        assert_int_equal(state_of(w, n->second), 0);
        assert_true(event_of(w, EBB_EV_REGION_CLOSED, n->inner.id).decision_seq <
                    event_of(w, EBB_EV_COMPLETED, p->id.id).decision_seq);
    }
    assert_int_equal(stats_of(w).runnable, 0);
}

static void opens_an_empty_one(ebb_cx *cx, puppet *p) {
    (void)p;
    (void)ebb_region_open(cx, NULL);
}

static void a_task_that_returns_with_only_an_empty_region_ends_once(void **state) {
    world *w = *state;
    for (int i = 0; i < 5; i++) {
        puppet *p = puppet_new(w, (puppet){.act = opens_an_empty_one});
        ebb_task t = ebb_spawn(w->host, w->root, puppet_poll, p);
        world_settle(w);
        assert_int_equal(p->polls, 1);
        assert_int_equal(phase_of(w, t), 0);
        assert_int_equal(stats_of(w).runnable, 0);
    }
}

typedef struct closing {
    ebb_region_report report;
    int calls;
} closing;

static void note_closed(void *arg, const ebb_region_report *report) {
    closing *c = arg;
    c->report = *report;
    c->calls++;
}

static void on_closed_is_called_once_from_the_pump_with_the_report(void **state) {
    world *w = *state;
    closing *c = world_keep(w, sizeof *c);
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.on_closed = note_closed, .arg = c});
    puppet *p = puppet_start(w, r, (puppet){.returns = EBB_FAILED});
    assert_int_equal(ebb_region_join(w->host, r), EBB_ERR_INVALID);
    (void)ebb_runtime_pump(w->rt, 1);
    world_settle(w);
    assert_int_equal(c->calls, 1);
    assert_int_equal(c->report.region.id, r.id);
    assert_int_equal(c->report.status, EBB_FAILED);
    assert_int_equal(c->report.failed.id, p->id.id);
    assert_int_equal(state_of(w, r), 0); /* freed without a join */
    ebb_region empty = ebb_region_open(w->host, &(ebb_region_opts){.on_closed = note_closed, .arg = c});
    ebb_region_cancel(w->host, empty, EBB_CANCEL_USER, NULL);
    assert_int_equal(c->calls, 1); /* a verb runs nobody's code */
    (void)ebb_runtime_pump(w->rt, 0);
    assert_int_equal(c->calls, 2);
}

/* ---- deadlines ---------------------------------------------------------------------------------- */

static void a_region_whose_deadline_passes_is_cancelled_with_timeout(void **state) {
    world *w = *state;
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.deadline = 30 * EBB_MS});
    ebb_region child = open_region(w, r);
    puppet *p = puppet_start(w, r, HEEDING), *q = puppet_start(w, child, HEEDING);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).lane, EBB_LANE_NONE);
    (void)ebb_task_wake(w->host, q->id);
    assert_int_equal(info_of(w, q->id).lane, EBB_LANE_TIMED); /* a child inherits the deadline */
    world_pass(w, 29 * EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_RUNNING);
    world_pass(w, EBB_MS);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(event_of(w, EBB_EV_REGION_CANCELLED, r.id).cancel_kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id).cancel_kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, q->id.id).cancel_kind, EBB_CANCEL_PARENT);
    assert_int_equal(ebb_region_join(w->host, r), EBB_CANCELLED);
}

static void a_deadline_of_a_region_that_already_cleans_up_does_not_force_it(void **state) {
    world *w = *state;
    ebb_region a = open_region(w, w->root);
    ebb_region b = ebb_region_open(w->host, &(ebb_region_opts){.parent = a, .deadline = 100 * EBB_MS});
    puppet *p = puppet_start(w, b, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING});
    world_pass(w, 50 * EBB_MS);
    ebb_region_cancel(w->host, a, EBB_CANCEL_USER, NULL); /* cleanup until 5050 */
    world_pass(w, 100 * EBB_MS);
    ebb_task_info info = info_of(w, p->id);
    assert_false(info.forced);
    assert_int_equal(info.reason.severity, EBB_SEVERITY_URGENT);
    assert_int_equal(info.reason.kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(info.budget.deadline, 2100 * EBB_MS);
}

/* ---- the cause chain ----------------------------------------------------------------------------- */

static void the_cause_chain_is_read_through_the_parents_to_the_root_cause(void **state) {
    world *w = *state;
    ebb_region a = open_region(w, w->root), b = open_region(w, a), c = open_region(w, b);
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    assert_int_equal(ebb_region_causes(w->host, c, chain, EBB_CHAIN_DEPTH, &n, &cut), EBB_OK);
    assert_int_equal(n, 0); /* not cancelled */
    (void)puppet_start(w, c, IGNORING);
    ebb_region_cancel(w->host, a, EBB_CANCEL_DISCONNECT, "the client is gone");
    assert_int_equal(ebb_region_causes(w->host, c, chain, EBB_CHAIN_DEPTH, &n, &cut), EBB_OK);
    assert_int_equal(n, 3);
    assert_false(cut);
    assert_int_equal(chain[0].region.id, c.id);
    assert_int_equal(chain[0].reason.kind, EBB_CANCEL_PARENT);
    assert_int_equal(chain[1].region.id, b.id);
    assert_int_equal(chain[2].region.id, a.id);
    assert_int_equal(chain[2].reason.kind, EBB_CANCEL_DISCONNECT);
    assert_string_equal(chain[2].reason.message, "the client is gone");
    assert_int_equal(count_events(w, EBB_EV_CHAIN_TRUNCATED, 0), 0);
}

static void a_cause_chain_longer_than_24_links_is_cut_and_says_so(void **state) {
    world *w = *state;
    enum { DEPTH = 30 };
    ebb_region r[DEPTH];
    ebb_region_cause chain[DEPTH];
    uint32_t n;
    bool cut;
    for (int i = 0; i < DEPTH; i++) r[i] = open_region(w, i == 0 ? w->root : r[i - 1]);
    (void)puppet_start(w, r[DEPTH - 1], IGNORING);
    ebb_region_cancel(w->host, r[0], EBB_CANCEL_USER, "why");
    for (uint32_t depth = 1; depth <= DEPTH; depth++) {
        assert_int_equal(ebb_region_causes(w->host, r[depth - 1], chain, DEPTH, &n, &cut), EBB_OK);
        assert_int_equal(n, depth <= EBB_CHAIN_DEPTH ? depth : EBB_CHAIN_DEPTH);
        assert_int_equal(cut, depth > EBB_CHAIN_DEPTH);
        assert_int_equal(chain[n - 1].region.id, r[0].id); /* the root cause is never what is cut */
        assert_string_equal(chain[n - 1].reason.message, "why");
        for (uint32_t i = 0; i + 1 < n; i++) assert_int_equal(chain[i].region.id, r[depth - 1 - i].id);
    }
    assert_int_equal(count_events(w, EBB_EV_CHAIN_TRUNCATED, 0), DEPTH - EBB_CHAIN_DEPTH);
    assert_int_equal(event_of(w, EBB_EV_CHAIN_TRUNCATED, r[DEPTH - 1].id).value, EBB_CHAIN_DEPTH);
    /* Less room is a cut too. */
    assert_int_equal(ebb_region_causes(w->host, r[9], chain, 4, &n, &cut), EBB_OK);
    assert_int_equal(n, 4);
    assert_true(cut);
    assert_int_equal(chain[3].region.id, r[0].id);
}

static void only_the_transitions_of_the_table_are_made_by_a_region(void **state) {
    world *w = *state;
    static const char *const legal[] = {
        [EBB_REGION_OPEN] = "2",       [EBB_REGION_CLOSING] = "34", [EBB_REGION_DRAINING] = "4",
        [EBB_REGION_FINALIZING] = "5", [EBB_REGION_CLOSED] = "",
    };
    ebb__region *r = NULL;
    assert_int_equal(ebb__find_region(w->rt, open_region(w, w->root), &r), EBB_OK);
    uint64_t illegal = 0;
    for (int from = EBB_REGION_OPEN; from <= EBB_REGION_CLOSED; from++) {
        for (int to = EBB_REGION_OPEN; to <= EBB_REGION_CLOSED; to++) {
            bool may = strchr(legal[from], '0' + to) != NULL;
            r->state = (uint8_t)from;
            assert_int_equal(ebb__region_move(w->rt, r, (ebb_region_state)to), may);
            assert_int_equal(r->state, may ? to : from);
            if (!may) illegal++;
            assert_int_equal(stats_of(w).illegal, illegal);
        }
    }
    assert_int_equal(illegal, 25 - 5);
    r->state = EBB_REGION_OPEN;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(only_the_transitions_of_the_table_are_made_by_a_region),
        IN_WORLD(a_region_goes_from_open_through_every_state_to_closed),
        IN_WORLD(a_region_with_nothing_in_it_does_not_drain),
        IN_WORLD(a_region_does_not_close_before_its_children_have),
        IN_WORLD(an_obligation_of_a_region_that_nobody_resolves_is_a_leak_when_it_is_forced),
        IN_WORLD(close_tells_tasks_to_stop_and_wakes_them_but_cancels_nothing),
        IN_WORLD(nothing_new_is_admitted_after_close_nor_after_cancel),
        IN_WORLD(a_cancel_tells_parents_before_children_and_children_why),
        IN_WORLD(a_second_cancel_strengthens_the_whole_tree),
        IN_WORLD(a_cancel_with_a_budget_of_its_own_replaces_the_table),
        IN_WORLD(join_waits_for_all_and_returns_the_first_failure),
        IN_WORLD(fail_fast_cancels_the_siblings_and_their_regions),
        IN_WORLD(a_cancelled_task_is_no_failure_but_join_says_it),
        IN_WORLD(the_failure_of_a_region_that_nobody_joins_is_its_parents),
        IN_WORLD(the_failure_of_a_region_that_its_task_left_behind_is_the_tasks),
        IN_WORLD(a_task_that_joins_is_woken_when_the_region_has_closed),
        IN_WORLD(a_cancelled_join_leaves_the_region_to_go_with_its_task),
        IN_WORLD(the_regions_of_a_task_that_returns_are_cancelled_and_joined),
        IN_WORLD(a_task_that_returns_with_only_an_empty_region_ends_once),
        IN_WORLD(on_closed_is_called_once_from_the_pump_with_the_report),
        IN_WORLD(a_region_whose_deadline_passes_is_cancelled_with_timeout),
        IN_WORLD(a_deadline_of_a_region_that_already_cleans_up_does_not_force_it),
        IN_WORLD(the_cause_chain_is_read_through_the_parents_to_the_root_cause),
        IN_WORLD(a_cause_chain_longer_than_24_links_is_cut_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
