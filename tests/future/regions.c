/* Futures and regions: cancel, close and force, what producers hold, what cleanup code may make, edges from
 * one region to another, and tasks as futures. */
#include "tests/support/future_world.h"

/* ---- people ------------------------------------------------------------------------------------------------ */

/* An operation that is settled from outside. */
typedef struct operation {
    ebb_future *f;
    uint32_t asked;
    ebb_cancel_kind kind;
    probe p;
} operation;

static void ask(ebb_cx *cx, ebb_future *f, void *arg) {
    operation *o = arg;
    (void)cx;
    o->asked++;
    o->kind = ebb_future_cancel_kind_of(f);
}

static const ebb_operation op = {"work", ask, NULL};

static ebb_future *begin(ebb_cx *cx, operation *o) {
    *o = (operation){.f = ebb_promise_new(cx, &op, o)};
    return probe_on(&o->p, o->f);
}

/* A task that makes futures in its region and then waits to be told to end. */
typedef struct maker {
    void (*make)(ebb_cx *cx, struct maker *m);
    ebb_future *f[4];
    operation o[2];
    probe p[4];
    bool made, over;
    ebb_task id, slow;
} maker;

static ebb_status maker_poll(ebb_cx *cx, void *state) {
    maker *m = state;
    if (!m->made) m->make(cx, m);
    m->made = true;
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    return m->over ? EBB_OK : EBB_PENDING;
}

/* Lives as long as the world: futures of it may. */
static maker *start(future_world *fw, ebb_region r, void (*make)(ebb_cx *cx, maker *m)) {
    maker *m = world_keep(fw->world, sizeof *m);
    m->make = make;
    m->id = ebb_spawn(fw->host, r, maker_poll, m);
    assert_int_equal(ebb_id_status(m->id.id), EBB_OK);
    future_settle(fw);
    assert_true(m->made);
    return m;
}

static void finish(future_world *fw, maker *m) {
    m->over = true;
    (void)ebb_task_wake(fw->host, m->id);
    future_settle(fw);
}

static ebb_region_state state_in(future_world *fw, ebb_region r) {
    return state_of(fw->world, r);
}

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

/* ---- cancel -------------------------------------------------------------------------------------------------- */

static void makes_a_few(ebb_cx *cx, maker *m) {
    m->f[0] = probe_on(&m->p[0], ebb_promise_new(cx, NULL, NULL));
    m->f[1] = probe_on(&m->p[1], ebb_map(cx, ebb_promise_new(cx, NULL, NULL), same, NULL));
    m->f[2] = probe_on(&m->p[2], ebb_after(cx, EBB_SECOND));
    m->f[3] = probe_on(&m->p[3], ebb_future_shield(ebb_promise_new(cx, NULL, NULL)));
}

static void cancelling_a_region_cancels_its_futures_and_no_others(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root), child = open_region(fw->world, r);
    maker *in = start(fw, r, makes_a_few), *below = start(fw, child, makes_a_few);
    maker *beside = start(fw, fw->root, makes_a_few);
    ebb_region_cancel(fw->host, r, EBB_CANCEL_DISCONNECT, "gone");
    future_settle(fw);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(in->p[i].cancels, 1);
        assert_int_equal(in->p[i].kind, EBB_CANCEL_DISCONNECT);
        assert_int_equal(in->p[i].cleanups, 1);
        assert_int_equal(below->p[i].cancels, 1);
        assert_int_equal(below->p[i].kind, EBB_CANCEL_PARENT);
        probe_pending(&beside->p[i]);
    }
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(ebb_region_join(fw->host, r), EBB_CANCELLED);
    finish(fw, beside);
}

static void makes_an_operation(ebb_cx *cx, maker *m) {
    m->f[0] = begin(cx, &m->o[0]);
}

static void a_cancelled_region_waits_for_its_producers(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_an_operation);
    ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "stop");
    future_settle(fw);
    probe_cancelled(&m->o[0].p, EBB_CANCEL_USER); /* its readers are free */
    assert_int_equal(m->o[0].asked, 1);
    assert_int_equal(m->o[0].kind, EBB_CANCEL_USER);
    assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
    future_collect(fw);
    assert_int_equal(ebb_promise_settle(m->o[0].f, future_fd(fw, 1)), EBB_CANCELLED);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    future_settle(fw);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(m->o[0].asked, 1);
}

/* ---- close ----------------------------------------------------------------------------------------------------- */

static void makes_one_with_and_one_without_a_producer(ebb_cx *cx, maker *m) {
    m->f[0] = ebb_map(cx, begin(cx, &m->o[0]), same, NULL);
    (void)probe_on(&m->p[0], m->f[0]);
    m->f[1] = probe_on(&m->p[1], ebb_promise_new(cx, NULL, NULL));
    m->f[2] = probe_on(&m->p[2], ebb_after(cx, 20 * EBB_MS));
}

static void a_region_that_closes_waits_for_producers_and_cancels_the_rest(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_one_with_and_one_without_a_producer);
    ebb_region_close(fw->host, r);
    finish(fw, m);
    assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
    probe_pending(&m->p[0]);
    probe_pending(&m->p[1]);
    assert_int_equal(ebb_promise_settle(m->o[0].f, ebb_value_int(9)), EBB_OK);
    future_settle(fw);
    probe_completed(&m->p[0], 9);
    probe_pending(&m->p[1]); /* the sleep is still produced */
    assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
    future_pass(fw, 20 * EBB_MS);
    probe_completed(&m->p[2], 0);
    probe_cancelled(&m->p[1], EBB_CANCEL_PARENT);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(m->o[0].asked, 0);
}

static void a_region_without_futures_of_its_own_closes_at_once(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    ebb_future_drop(ebb_promise_new(fw->host, NULL, NULL)); /* the root's */
    ebb_region_close(fw->host, r);
    future_settle(fw);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
}

/* ---- until it is closed -------------------------------------------------------------------------------------- */

typedef struct last_look {
    maker *m;
    future_world *fw;
    bool looked;
} last_look;

static void makes_a_word_and_a_promise(ebb_cx *cx, maker *m) {
    m->f[0] = ebb_promise_new(cx, NULL, NULL);
    m->f[1] = probe_on(&m->p[1], ebb_promise_new(cx, NULL, NULL));
    m->f[2] = ebb_future_keep(m->f[1]);
}

static void never_runs(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    fail();
}

/* A finalizer of the region: nothing else lives there any more. */
static ebb_status looks(ebb_cx *cx, void *state) {
    last_look *l = state;
    ebb_value v = ebb_value_none();
    (void)cx;
    l->looked = true;
    assert_int_equal(ebb_future_status_of(l->m->f[0]), EBB_OK);
    assert_int_equal(future_fd_freed(l->fw, 3), 0);
    assert_int_equal(ebb_await(ebb_runtime_host(l->fw->rt), l->m->f[1], &v), EBB_CANCELLED);
    assert_int_equal(ebb_future_status_of(l->m->f[2]), EBB_CANCELLED);
    assert_int_equal(ebb_future_on_cleanup(l->m->f[2], never_runs, NULL), EBB_ERR_CLOSED);
    ebb_future_drop(l->m->f[2]);
    return EBB_OK;
}

static void a_region_holds_its_futures_until_it_is_closed(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_a_word_and_a_promise);
    last_look l = {.m = m, .fw = fw};
    assert_int_equal(ebb_promise_settle(m->f[0], future_fd(fw, 3)), EBB_OK);
    assert_int_equal(ebb_region_defer(fw->host, r, looks, &l), EBB_OK);
    ebb_region_close(fw->host, r);
    finish(fw, m);
    assert_true(l.looked);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(future_fd_freed(fw, 3), 1); /* nobody has read it, and nobody can */
    probe_cancelled(&m->p[1], EBB_CANCEL_PARENT);
    future_verify(fw);
}

static ebb_future *tries_for_long(ebb_cx *cx, uint32_t n, void *arg) {
    maker *m = arg;
    m->o[0].asked = n + 1;
    return n < 3 ? ebb_future_failed(cx, EBB_FAILED) : ebb_future_ready(cx, ebb_value_int(n));
}

static void makes_a_retry(ebb_cx *cx, maker *m) {
    const ebb_retry_opts o = {.attempts = 9, .pause = 10 * EBB_MS};
    m->f[0] = probe_on(&m->p[0], ebb_retry(cx, &o, tries_for_long, m));
}

static void a_region_that_closes_waits_for_a_retry_that_pauses(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_a_retry);
    ebb_region_close(fw->host, r);
    finish(fw, m);
    future_pass(fw, 29 * EBB_MS);
    assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
    future_pass(fw, 2 * EBB_MS);
    probe_completed(&m->p[0], 3);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
}

/* ---- other threads' ends ------------------------------------------------------------------------------------------ */

static void an_operation_that_a_remote_ends_holds_its_region_no_longer(void **state) {
    future_world *fw = *state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        ebb_region r = open_region(fw->world, fw->root);
        ebb_remote *remote;
        maker *m = start(fw, r, makes_an_operation);
        assert_int_equal(ebb_remote_new(m->o[0].f, &remote), EBB_OK);
        if (cancelled) assert_true(ebb_future_cancel(m->o[0].f, EBB_CANCEL_USER));
        ebb_region_close(fw->host, r);
        finish(fw, m);
        assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
        assert_int_equal(ebb_remote_settle(remote, ebb_value_int(4)), cancelled ? EBB_CANCELLED : EBB_OK);
        ebb_remote_release(remote);
        future_settle(fw);
        if (cancelled) probe_cancelled(&m->o[0].p, EBB_CANCEL_USER);
        else probe_completed(&m->o[0].p, 4);
        assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    }
}

/* ---- cleanup and force ----------------------------------------------------------------------------------------------- */

typedef struct cleaner {
    EBB_TASK_STATE;
    ebb_future *f;
    ebb_status st, cleanup;
    ebb_value v;
} cleaner;

static ebb_future *then_later(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_map(cx, ebb_after(cx, 3 * EBB_MS), same, NULL);
}

static ebb_status cleans_up(ebb_cx *cx, void *state) {
    cleaner *c = state;
    EBB_BEGIN(c);
    c->f = ebb_future_never(cx);
    EBB_AWAIT(c, c->st, ebb_await(cx, c->f, NULL));
    if (ebb_mask(cx) != EBB_OK) return EBB_FAULTED;
    ebb_future *two[] = {ebb_after(cx, 5 * EBB_MS),
                         ebb_then(cx, ebb_after(cx, 2 * EBB_MS), then_later, NULL)};
    c->f = ebb_all(cx, 2, two);
    EBB_AWAIT(c, c->cleanup, ebb_await(cx, c->f, &c->v));
    ebb_value_discard(cx, c->v);
    (void)ebb_unmask(cx);
    return EBB_CANCELLED;
    EBB_END(c);
}

static void futures_that_cleanup_code_makes_in_a_cancelled_region_work(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    cleaner c = {.st = EBB_PENDING, .cleanup = EBB_PENDING};
    (void)ebb_spawn(fw->host, r, cleans_up, &c);
    future_settle(fw);
    ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "stop");
    future_pass(fw, 4 * EBB_MS);
    assert_int_equal(c.st, EBB_CANCELLED);
    assert_int_equal(c.cleanup, EBB_PENDING);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(c.cleanup, EBB_OK);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
}

static void a_cleanup_that_awaits_too_long_is_forced(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    cleaner c = {.st = EBB_PENDING, .cleanup = EBB_PENDING};
    (void)ebb_spawn(fw->host, r, cleans_up, &c);
    future_settle(fw);
    ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "stop");
    future_pass(fw, EBB_MS);
    ebb_region_force(fw->host, r);
    future_settle(fw);
    assert_int_equal(c.cleanup, EBB_CANCELLED);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
}

static void force_abandons_a_producer_and_frees_it_when_it_ends_after_all(void **state) {
    future_world *fw = *state;
    for (int holding = 0; holding < 2; holding++) {
        ebb_region r = open_region(fw->world, fw->root);
        maker *m = start(fw, r, makes_an_operation);
        if (!holding) ebb_future_drop(m->f[0]);
        ebb_region_force(fw->host, r);
        future_pass(fw, EBB_SECOND);
        assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
        assert_int_equal(m->o[0].p.cancels, 1);
        assert_int_equal(m->o[0].p.cleanups, 1);
        assert_int_equal(m->o[0].asked, 1);
        assert_int_equal(report_of(fw->world, r).abandoned, 1);
        future_collect(fw); /* abandoned, but owned */
        assert_true(future_stats(fw).live >= 1);
        assert_int_equal(ebb_promise_settle(m->o[0].f, future_fd(fw, (uint32_t)holding)), EBB_CANCELLED);
        assert_int_equal(future_fd_freed(fw, (uint32_t)holding), 1);
        future_collect(fw);
        assert_int_equal(future_stats(fw).live, 0);
    }
}

/* ---- from one region to another ------------------------------------------------------------------------------------------ */

typedef struct lender {
    ebb_future *lent;
} lender;

static void makes_a_lent_one(ebb_cx *cx, maker *m) {
    m->f[0] = probe_on(&m->p[0], ebb_promise_new(cx, NULL, NULL));
}

static void a_result_hears_of_the_end_of_an_input_in_another_region(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < 3; how++) {
        ebb_region r = open_region(fw->world, fw->root);
        probe one, list, race;
        maker *m = start(fw, r, makes_a_lent_one);
        ebb_future *f = m->f[0];
        ebb_future *a[] = {ebb_future_keep(f), ebb_future_ready(fw->host, ebb_value_none())};
        ebb_future *b[] = {f, ebb_future_never(fw->host)};
        ebb_future *map = probe_on(&one, ebb_map(fw->host, ebb_future_keep(f), same, NULL));
        ebb_future *all = probe_on(&list, ebb_all_settled(fw->host, 2, a));
        ebb_future *first = probe_on(&race, ebb_race(fw->host, 2, b));
        future_settle(fw);
        probe_pending(&list);
        if (how == 0) assert_int_equal(ebb_promise_settle(f, ebb_value_int(3)), EBB_OK);
        if (how == 1) assert_int_equal(ebb_promise_reject(f, EBB_TIMEOUT), EBB_OK);
        if (how == 2) { /* its region is closed under it */
            ebb_region_close(fw->host, r);
            finish(fw, m);
            assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
        }
        future_settle(fw);
        assert_int_equal(list.status, EBB_OK);
        if (how == 0) {
            probe_completed(&one, 3);
            assert_int_equal(race.status, EBB_OK);
        } else if (how == 1) {
            probe_failed(&one, EBB_TIMEOUT);
            probe_failed(&race, EBB_TIMEOUT);
        } else {
            probe_cancelled(&one, EBB_CANCEL_PARENT);
            probe_pending(&race);
        }
        future_collect(fw);
        ebb_future_drop(map);
        ebb_future_drop(all);
        ebb_future_drop(first);
        if (!m->over) finish(fw, m);
        future_collect(fw);
    }
}

static lender loan;

static void makes_a_race_over_the_loan(ebb_cx *cx, maker *m) {
    ebb_future *two[] = {loan.lent, ebb_future_never(cx)};
    m->f[0] = probe_on(&m->p[0], ebb_race(cx, 2, two));
    m->f[1] = probe_on(&m->p[1], ebb_map(cx, ebb_future_keep(loan.lent), same, NULL));
}

static void a_region_that_goes_leaves_no_trace_in_what_it_waited_for(void **state) {
    future_world *fw = *state;
    probe p;
    loan.lent = ebb_future_share(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)));
    for (int i = 0; i < 3; i++) {
        ebb_region r = open_region(fw->world, fw->root);
        (void)ebb_future_keep(loan.lent);
        (void)ebb_future_keep(loan.lent);
        maker *m = start(fw, r, makes_a_race_over_the_loan);
        if (i == 0) ebb_region_close(fw->host, r);
        if (i == 1) ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "stop");
        if (i == 2) ebb_region_force(fw->host, r);
        finish(fw, m);
        future_pass(fw, EBB_MS);
        assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
        assert_int_equal(m->p[0].cancels, 1);
        assert_int_equal(m->p[1].cancels, 1);
        probe_pending(&p);
        ebb_future_drop(loan.lent); /* the map has kept it once more */
        future_collect(fw);
    }
    assert_int_equal(ebb_promise_settle(loan.lent, ebb_value_int(1)), EBB_OK);
    future_settle(fw);
    probe_completed(&p, 1);
    ebb_future_drop(loan.lent);
}

static void a_loser_in_another_region_drains_there(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_an_operation);
    ebb_future *two[] = {m->f[0], ebb_future_ready(fw->host, ebb_value_int(1))};
    ebb_future *race = ebb_race(fw->host, 2, two);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, race, NULL), EBB_OK); /* which does not wait for it */
    probe_cancelled(&m->o[0].p, EBB_CANCEL_RACE_LOST);
    assert_int_equal(m->o[0].asked, 1);
    ebb_region_close(fw->host, r);
    finish(fw, m);
    assert_int_not_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(ebb_promise_reject(m->o[0].f, EBB_FAILED), EBB_CANCELLED);
    future_settle(fw);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
}

/* ---- tasks as futures ------------------------------------------------------------------------------------------------------ */

typedef struct job {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_status ends;
    bool deaf;
    uint32_t polls;
} job;

static ebb_status works(ebb_cx *cx, void *state) {
    job *j = state;
    ebb_status st;
    j->polls++;
    if (j->deaf) return EBB_PENDING;
    EBB_BEGIN(j);
    EBB_AWAIT(j, st, ebb_sleep(cx, &j->nap, 5 * EBB_MS));
    if (st != EBB_OK) return st;
    return j->ends;
    EBB_END(j);
}

static void a_task_ends_its_future_as_it_ends(void **state) {
    future_world *fw = *state;
    const ebb_status ends[] = {EBB_OK, EBB_FAILED, EBB_STATUS_USER - 3, EBB_CANCELLED};
    for (int i = 0; i < 4; i++) {
        job j = {.ends = ends[i]};
        probe p;
        ebb_region r = ebb_region_open(fw->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        ebb_future *f = probe_on(&p, ebb_go(fw->host, r, works, &j));
        future_pass(fw, 4 * EBB_MS);
        probe_pending(&p);
        future_pass(fw, 2 * EBB_MS);
        if (i == 0) probe_completed(&p, 0);
        else if (i == 3) probe_cancelled(&p, EBB_CANCEL_USER);
        else probe_failed(&p, ends[i]);
        assert_int_equal(ebb_await(fw->host, f, NULL), ends[i]);
        ebb_region_close(fw->host, r);
        future_settle(fw);
        (void)ebb_region_join(fw->host, r);
    }
}

static void cancelling_the_future_asks_the_task_to_cancel(void **state) {
    future_world *fw = *state;
    job j = {.ends = EBB_OK};
    probe p;
    ebb_region r = open_region(fw->world, fw->root);
    ebb_future *f = probe_on(&p, ebb_within(fw->host, ebb_go(fw->host, r, works, &j), 2 * EBB_MS));
    future_pass(fw, 3 * EBB_MS);
    probe_failed(&p, EBB_TIMEOUT);
    ebb_future_drop(f);
    ebb_region_close(fw->host, r);
    future_settle(fw);
    assert_int_equal(j.ends, EBB_OK);
    assert_int_equal(ebb_region_join(fw->host, r), EBB_OK); /* it ended for whoever had the future */
}

static void a_task_that_is_cancelled_with_its_region_cancels_its_future(void **state) {
    future_world *fw = *state;
    job j = {.ends = EBB_OK};
    probe p;
    ebb_region r = open_region(fw->world, fw->root);
    ebb_future *f = probe_on(&p, ebb_go(fw->host, r, works, &j));
    future_settle(fw);
    ebb_region_cancel(fw->host, r, EBB_CANCEL_USER, "stop");
    future_settle(fw);
    assert_int_equal(p.cancels, 1);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_CANCELLED);
}

static ebb_status takes_its_time(ebb_cx *cx, void *state) {
    *(ebb_task *)state = ebb_cx_task(cx);
    return EBB_PENDING;
}

static void makes_a_slow_task(ebb_cx *cx, maker *m) {
    m->f[0] = probe_on(&m->p[0], ebb_go(cx, ebb_cx_region(cx), takes_its_time, &m->slow));
}

/* Its future is cancelled with the region too: that is no second request with a budget of its own. */
static void a_task_that_is_cancelled_with_its_region_keeps_the_budget_of_that(void **state) {
    future_world *fw = *state;
    ebb_region r = open_region(fw->world, fw->root);
    maker *m = start(fw, r, makes_a_slow_task);
    ebb_budget budget = {world_now(fw->world) + 60 * EBB_SECOND, EBB_POLLS_UNBOUNDED, 0};
    ebb_region_cancel_within(fw->host, r, EBB_CANCEL_SHUTDOWN, "enough", budget);
    future_settle(fw);
    probe_cancelled(&m->p[0], EBB_CANCEL_SHUTDOWN);
    assert_int_equal(info_of(fw->world, m->slow).budget.deadline, budget.deadline);
    ebb_region_force(fw->host, r);
    future_settle(fw);
}

static void a_task_that_is_abandoned_cancels_its_future(void **state) {
    future_world *fw = *state;
    job j = {.deaf = true};
    probe p;
    ebb_region r = open_region(fw->world, fw->root);
    ebb_future *f = probe_on(&p, ebb_go(fw->host, r, works, &j));
    future_settle(fw);
    ebb_region_force(fw->host, r);
    future_pass(fw, EBB_SECOND);
    assert_int_equal(state_in(fw, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(fw->world, r).abandoned, 1);
    assert_int_equal(p.cancels, 1);
    assert_int_equal(p.cleanups, 1);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_CANCELLED);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

static void a_task_in_a_region_that_is_closed_is_a_failed_future(void **state) {
    future_world *fw = *state;
    job j = {.ends = EBB_OK};
    ebb_region r = open_region(fw->world, fw->root);
    ebb_region_close(fw->host, r);
    future_settle(fw);
    ebb_future *f = ebb_go(fw->host, r, works, &j);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_ERR_CLOSED);
    assert_int_equal(j.polls, 0);
}

static ebb_status awaits_the_loan(ebb_cx *cx, void *state) {
    cleaner *c = state;
    c->st = ebb_await(cx, c->f, &c->v);
    return c->st;
}

static void a_task_that_is_cancelled_takes_what_it_awaits_along(void **state) {
    future_world *fw = *state;
    for (int shared = 0; shared < 2; shared++) {
        ebb_region r = open_region(fw->world, fw->root);
        probe p;
        cleaner c = {.f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)), .st = EBB_PENDING};
        if (shared) (void)ebb_future_share(ebb_future_keep(c.f));
        ebb_task t = ebb_spawn(fw->host, r, awaits_the_loan, &c);
        future_settle(fw);
        ebb_task_cancel(fw->host, t, EBB_CANCEL_USER, "stop");
        future_settle(fw);
        assert_int_equal(c.st, EBB_CANCELLED);
        if (!shared) {
            assert_int_equal(p.cancels, 1);
        } else {
            probe_pending(&p);
            ebb_future_drop(c.f);
        }
        future_collect(fw);
        ebb_region_close(fw->host, r);
        future_settle(fw);
        (void)ebb_region_join(fw->host, r);
    }
}

/* ---- the dump ------------------------------------------------------------------------------------------------- */

static void add_text(void *ctx, const char *text, size_t n) {
    strncat(ctx, text, n);
}

static void an_operation_without_a_name_is_dumped_all_the_same(void **state) {
    static const ebb_operation unnamed = {NULL, NULL, NULL};
    future_world *fw = *state;
    char text[1000] = "";
    ebb_future *f = ebb_promise_new_site(fw->host, &unnamed, NULL, "unnamed.c:1");
    ebb_future_dump(ebb_cx_runtime(fw->host), add_text, text);
    assert_non_null(strstr(text, "operation, pending, at unnamed.c:1"));
    assert_int_equal(ebb_promise_settle(f, ebb_value_none()), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(cancelling_a_region_cancels_its_futures_and_no_others),
        IN_FUTURES(an_operation_without_a_name_is_dumped_all_the_same),
        IN_FUTURES(a_cancelled_region_waits_for_its_producers),
        IN_FUTURES(a_region_that_closes_waits_for_producers_and_cancels_the_rest),
        IN_FUTURES(a_region_without_futures_of_its_own_closes_at_once),
        IN_FUTURES(a_region_holds_its_futures_until_it_is_closed),
        IN_FUTURES(a_region_that_closes_waits_for_a_retry_that_pauses),
        IN_FUTURES(an_operation_that_a_remote_ends_holds_its_region_no_longer),
        IN_FUTURES(futures_that_cleanup_code_makes_in_a_cancelled_region_work),
        IN_FUTURES(a_cleanup_that_awaits_too_long_is_forced),
        IN_FUTURES(force_abandons_a_producer_and_frees_it_when_it_ends_after_all),
        IN_FUTURES(a_result_hears_of_the_end_of_an_input_in_another_region),
        IN_FUTURES(a_region_that_goes_leaves_no_trace_in_what_it_waited_for),
        IN_FUTURES(a_loser_in_another_region_drains_there),
        IN_FUTURES(a_task_ends_its_future_as_it_ends),
        IN_FUTURES(cancelling_the_future_asks_the_task_to_cancel),
        IN_FUTURES(a_task_that_is_cancelled_with_its_region_cancels_its_future),
        IN_FUTURES(a_task_that_is_cancelled_with_its_region_keeps_the_budget_of_that),
        IN_FUTURES(a_task_that_is_abandoned_cancels_its_future),
        IN_FUTURES(a_task_in_a_region_that_is_closed_is_a_failed_future),
        IN_FUTURES(a_task_that_is_cancelled_takes_what_it_awaits_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
