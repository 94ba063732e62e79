/* A task's life: every row of its table, what may not happen, and what it is charged. */
#include "tests/support/world.h"

#include "kernel/task.h"

/* ---- the table ---------------------------------------------------------------------------------- */

static bool in_the_table(int from, int to) {
    static const char *const legal[] = {
        [EBB_TASK_CREATED] = "236",    [EBB_TASK_RUNNING] = "36",    [EBB_TASK_CANCEL_REQUESTED] = "346",
        [EBB_TASK_CANCELLING] = "456", [EBB_TASK_FINALIZING] = "56", [EBB_TASK_COMPLETED] = "",
    };
    return strchr(legal[from], '0' + to) != NULL;
}

static void only_the_transitions_of_the_table_are_made_and_others_are_named(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    uint32_t slot;
    assert_int_equal(ebb__lookup(w->rt, &w->rt->tasks, p->id.id, &slot), EBB_OK);
    ebb__task *t = ebb__task_at(w->rt, slot);
    uint32_t illegal = 0;
    for (int from = EBB_TASK_CREATED; from <= EBB_TASK_COMPLETED; from++) {
        for (int to = EBB_TASK_CREATED; to <= EBB_TASK_COMPLETED; to++) {
            t->phase = (uint8_t)from;
            assert_int_equal(ebb__phase_move(w->rt, t, (ebb_task_phase)to), in_the_table(from, to));
            assert_int_equal(t->phase, in_the_table(from, to) ? to : from);
            if (in_the_table(from, to)) continue;
            ebb_event ev;
            assert_true(find_event(w, EBB_EV_ILLEGAL, p->id.id, illegal, &ev));
            assert_int_equal(ev.value, from << 8 | to);
            assert_int_equal(stats_of(w).illegal, ++illegal);
        }
    }
    assert_int_equal(illegal, 36 - 13);
    t->phase = EBB_TASK_CREATED;
}

static void a_task_runs_from_its_first_poll_and_completes_with_what_it_returns(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_FAILED});
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CREATED);
    puppet *q = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    assert_int_equal(phase_of(w, q->id), EBB_TASK_RUNNING);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(info_of(w, p->id).status, EBB_FAILED);
    assert_int_equal((int32_t)event_of(w, EBB_EV_COMPLETED, p->id.id).value, EBB_FAILED);
}

static void a_created_task_that_is_cancelled_is_asked_before_its_first_poll(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, HEEDING);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, "early");
    ebb_task_info info = info_of(w, p->id);
    assert_int_equal(info.phase, EBB_TASK_CANCEL_REQUESTED);
    assert_int_equal(info.lane, EBB_LANE_CANCEL);
    assert_int_equal(info.epoch, 1);
    assert_string_equal(info.reason.message, "early");
    world_settle(w);
    assert_int_equal(p->polls, 1);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
}

static void a_cancelled_task_goes_through_every_phase_in_order(void **state) {
    world *w = *state;
    puppet *p =
        puppet_start(w, w->root, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING});
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCEL_REQUESTED);
    world_settle(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCELLING);
    p->heeds = false;
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED); /* though its cleanup returned EBB_OK */
    static const uint32_t order[] = {EBB_EV_TASK_SPAWNED, EBB_EV_CANCEL_REQUESTED, EBB_EV_CANCEL_ACKED,
                                     EBB_EV_CLEANUP_DONE, EBB_EV_FINALIZED};
    uint64_t last = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        ebb_event ev = event_of(w, order[i], p->id.id);
        assert_true(ev.decision_seq > last);
        last = ev.decision_seq;
        assert_int_equal(count_events(w, order[i], p->id.id), 1);
    }
    assert_int_equal(count_events(w, EBB_EV_COMPLETED, p->id.id), 0);
}

static void a_task_that_returns_before_it_acknowledges_keeps_its_result(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_OK});
    puppet *q = puppet_start(w, w->root, (puppet){.returns = (ebb_status)-1007});
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    ebb_task_cancel(w->host, q->id, EBB_CANCEL_SHUTDOWN, NULL);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, EBB_OK);
    assert_int_equal(info_of(w, q->id).status, -1007);
    assert_int_equal(count_events(w, EBB_EV_CANCEL_ACKED, 0), 0);
    assert_int_equal(count_events(w, EBB_EV_FINALIZED, 0), 0);
}

static void a_created_task_whose_deadline_passes_is_never_polled(void **state) {
    world *w = *state;
    puppet *p =
        puppet_start_with(w, w->root, HEEDING, (ebb_task_opts){.keep = true, .deadline = 10 * EBB_MS});
    ebb_runtime_advance(w->rt, 10 * EBB_MS);
    world_settle(w);
    assert_int_equal(p->polls, 0);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_int_equal(count_events(w, EBB_EV_CANCEL_REQUESTED, p->id.id), 0);
}

static ebb_status counts_calls(ebb_cx *cx, void *calls) {
    (void)cx;
    ++*(int *)calls;
    return EBB_OK;
}

static void a_created_task_that_owes_something_is_polled_when_its_deadline_passes(void **state) {
    world *w = *state;
    ebb__task *t = NULL;
    int calls = 0;
    puppet *p =
        puppet_start_with(w, w->root, HEEDING, (ebb_task_opts){.keep = true, .deadline = 10 * EBB_MS});
    assert_int_equal(ebb__find_task(w->rt, p->id, &t), EBB_OK);
    assert_int_equal(ebb_defer(&t->cx, counts_calls, &calls), EBB_OK);
    ebb_obligation lease = ebb_obligation_reserve(&t->cx, EBB_OBLIGATION_LEASE, NULL, NULL);
    ebb_region own = ebb_region_open(&t->cx, NULL);
    puppet *inside = puppet_start(w, own, HEEDING);
    ebb_runtime_advance(w->rt, 10 * EBB_MS);
    world_settle(w);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id).cancel_kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(calls, 1);
    assert_int_equal(count_events(w, EBB_EV_OBLIGATION_LEAKED, lease.id), 1);
    assert_int_equal(count_events(w, EBB_EV_CANCEL_REQUESTED, inside->id.id), 1);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    ebb_runtime_stats s;
    ebb_runtime_stats_of(w->rt, &s);
    assert_int_equal(s.obligations + s.illegal, 0);
}

static void a_running_task_whose_deadline_passes_is_cancelled_with_timeout(void **state) {
    world *w = *state;
    puppet *p =
        puppet_start_with(w, w->root, HEEDING, (ebb_task_opts){.keep = true, .deadline = 10 * EBB_MS});
    world_pass(w, 9 * EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_RUNNING);
    world_pass(w, EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id).cancel_kind, EBB_CANCEL_TIMEOUT);
}

/* Field by field: the padding of a struct is anything. */
static void assert_same_info(const ebb_task_info *a, const ebb_task_info *b) {
    assert_int_equal(a->task.id, b->task.id);
    assert_int_equal(a->region.id, b->region.id);
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->mask_depth, b->mask_depth);
    assert_int_equal(a->lane, b->lane);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->forced, b->forced);
    assert_int_equal(a->reason.kind, b->reason.kind);
    assert_int_equal(a->reason.severity, b->reason.severity);
    assert_int_equal(a->reason.runtime, b->reason.runtime);
    assert_int_equal(a->reason.origin, b->reason.origin);
    assert_int_equal(a->reason.sequence, b->reason.sequence);
    assert_string_equal(a->reason.message, b->reason.message);
    assert_int_equal(a->budget.deadline, b->budget.deadline);
    assert_int_equal(a->budget.polls, b->budget.polls);
    assert_int_equal(a->budget.priority, b->budget.priority);
    assert_ptr_equal(a->site, b->site);
}

static void a_completed_task_absorbs_everything_and_counts_it(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_FAILED});
    world_settle(w);
    ebb_task_info before = info_of(w, p->id);
    assert_int_equal(ebb_task_wake(w->host, p->id), EBB_ERR_STALE);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_SHUTDOWN, "too late");
    ebb_task_force(w->host, p->id);
    world_settle(w);
    ebb_task_info after = info_of(w, p->id);
    assert_same_info(&before, &after);
    assert_int_equal(p->polls, 1);
    assert_int_equal(stats_of(w).stale_wakes, 3);
    assert_int_equal(count_events(w, EBB_EV_STALE_WAKE, p->id.id), 3);
    assert_int_equal(ebb_task_join(w->host, p->id), EBB_FAILED);
    assert_int_equal(ebb_task_wake(w->host, p->id), EBB_ERR_STALE); /* and when its slot is free too */
    assert_int_equal(stats_of(w).stale_wakes, 4);
}

/* ---- strengthening ------------------------------------------------------------------------------ */

static puppet *cleaning_up(world *w, ebb_region r) {
    return puppet_start(w, r, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING});
}

static void the_epoch_rises_when_the_severity_does_and_only_then(void **state) {
    world *w = *state;
    puppet *p = cleaning_up(w, w->root);
    static const struct {
        ebb_cancel_kind says, is;
        uint8_t epoch, severity;
    } steps[] = {
        {EBB_CANCEL_DISCONNECT, EBB_CANCEL_DISCONNECT, 1, EBB_SEVERITY_POLITE},
        {EBB_CANCEL_USER, EBB_CANCEL_DISCONNECT, 1, EBB_SEVERITY_POLITE}, /* the first of a severity stands */
        {EBB_CANCEL_LEASE_LOST, EBB_CANCEL_LEASE_LOST, 2, EBB_SEVERITY_URGENT},
        {EBB_CANCEL_RACE_LOST, EBB_CANCEL_LEASE_LOST, 2, EBB_SEVERITY_URGENT},
        {EBB_CANCEL_TIMEOUT, EBB_CANCEL_LEASE_LOST, 2, EBB_SEVERITY_URGENT},
        {EBB_CANCEL_SHUTDOWN, EBB_CANCEL_SHUTDOWN, 3, EBB_SEVERITY_FORCED},
        {EBB_CANCEL_USER, EBB_CANCEL_SHUTDOWN, 3, EBB_SEVERITY_FORCED},
    };
    assert_int_equal(info_of(w, p->id).epoch, 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ebb_task_cancel(w->host, p->id, steps[i].says, ebb_cancel_kind_name(steps[i].says));
        ebb_task_info info = info_of(w, p->id);
        assert_int_equal(info.epoch, steps[i].epoch);
        assert_int_equal(info.reason.severity, steps[i].severity);
        assert_int_equal(info.reason.kind, steps[i].is);
        assert_string_equal(info.reason.message, ebb_cancel_kind_name(steps[i].is));
        world_settle(w);
    }
    assert_int_equal(count_events(w, EBB_EV_CANCEL_STRENGTHENED, p->id.id), 6);
    assert_int_equal(count_events(w, EBB_EV_CANCEL_REQUESTED, p->id.id), 1);
}

static void unwilling(ebb_cx *cx, puppet *p) {
    if (p->arg != NULL) (void)ebb_defer(cx, puppet_poll, p->arg);
    p->arg = NULL;
}

static void a_cancel_while_finalizing_strengthens_and_stays_there(void **state) {
    world *w = *state;
    puppet *last = puppet_new(w, IGNORING);
    puppet p0 = HEEDING;
    p0.act = unwilling;
    p0.arg = last;
    puppet *p = puppet_start(w, w->root, p0);
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_FINALIZING);
    uint64_t was = info_of(w, p->id).budget.deadline;
    for (int i = 0; i < 2; i++) { /* and then a weaker one, which changes nothing */
        ebb_task_cancel(w->host, p->id, i == 0 ? EBB_CANCEL_SHUTDOWN : EBB_CANCEL_DISCONNECT, NULL);
        world_settle(w);
        ebb_task_info info = info_of(w, p->id);
        assert_int_equal(info.phase, EBB_TASK_FINALIZING);
        assert_int_equal(info.epoch, 2);
        assert_int_equal(info.reason.kind, EBB_CANCEL_SHUTDOWN);
        assert_int_equal(info.reason.severity, EBB_SEVERITY_FORCED);
        assert_true(info.budget.deadline < was);
    }
    last->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
}

static void a_strengthened_budget_is_the_meet_of_both(void **state) {
    world *w = *state;
    puppet *p = cleaning_up(w, w->root);
    world_settle(w);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL); /* until 5000, forced at 4000 */
    world_pass(w, 3700 * EBB_MS);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_SHUTDOWN, NULL); /* until 4200, forced at 4100 */
    assert_int_equal(info_of(w, p->id).budget.deadline, 4200 * EBB_MS);
    assert_int_equal(info_of(w, p->id).budget.polls, 64);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    assert_int_equal(info_of(w, p->id).budget.deadline, 4200 * EBB_MS);
    assert_false(info_of(w, p->id).forced);
    world_pass(w, 301 * EBB_MS);
    assert_in_range(event_of(w, EBB_EV_TASK_FORCED, p->id.id).time, 4000 * EBB_MS, 4001 * EBB_MS);
}

/* ---- budgets ------------------------------------------------------------------------------------ */

static void the_deadline_is_fixed_at_the_request_and_a_fifth_is_kept_back(void **state) {
    world *w = *state;
    static const struct {
        ebb_cancel_kind kind;
        uint64_t ms;
        uint32_t polls;
    } table[] = {
        {EBB_CANCEL_USER, 5000, 1024}, {EBB_CANCEL_TIMEOUT, 2000, 256}, {EBB_CANCEL_SHUTDOWN, 500, 64}};
    for (size_t i = 0; i < 3; i++) {
        puppet *p = puppet_start(w, w->root, IGNORING);
        world_settle(w);
        uint64_t start = world_now(w);
        ebb_task_cancel(w->host, p->id, table[i].kind, NULL);
        ebb_event ev = event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id);
        assert_int_equal(ev.other, start + table[i].ms * EBB_MS);
        assert_int_equal(ev.value, table[i].polls);
        world_pass(w, table[i].ms * EBB_MS / 2);
        assert_int_equal(info_of(w, p->id).budget.deadline, start + table[i].ms * EBB_MS);
        world_pass(w, table[i].ms * EBB_MS);
        ev = event_of(w, EBB_EV_TASK_FORCED, p->id.id);
        assert_in_range(ev.time, start + table[i].ms * EBB_MS * 8 / 10,
                        start + table[i].ms * EBB_MS * 8 / 10 + EBB_MS);
    }
}

static void the_host_may_replace_the_table_of_budgets(void **state) {
    (void)state;
    ebb_runtime_opts o = {
        .size = sizeof o, .now = 7 * EBB_SECOND, .cleanup = {[EBB_SEVERITY_POLITE] = {100 * EBB_MS, 3}}};
    world *w = world_new(&o, true);
    puppet *p = puppet_start(w, w->root, IGNORING), *q = puppet_start(w, w->root, IGNORING);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
    ebb_task_cancel(w->host, q->id, EBB_CANCEL_BUDGET, NULL);
    assert_int_equal(info_of(w, p->id).budget.deadline, 7100 * EBB_MS);
    assert_int_equal(info_of(w, p->id).budget.polls, 3);
    assert_int_equal(info_of(w, q->id).budget.deadline, 9000 * EBB_MS);
    world_end(w);
}

static void polls_are_charged_only_once_the_cancel_is_acknowledged(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.returns = EBB_PENDING, .spins = true});
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_SHUTDOWN, NULL); /* 64 polls */
    assert_int_equal(ebb_runtime_pump(w->rt, 300), EBB_PENDING);
    assert_int_equal(info_of(w, p->id).budget.polls, 64);
    assert_false(info_of(w, p->id).forced);
    p->heeds = true;
    p->on_cancel = EBB_PENDING;
    (void)ebb_runtime_pump(w->rt, 1); /* acknowledges */
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCELLING);
    assert_int_equal(info_of(w, p->id).budget.polls, 64);
    for (uint32_t left = 64; left-- > 0;) {
        (void)ebb_task_wake(w->host, p->id);
        (void)ebb_runtime_pump(w->rt, 1);
        assert_int_equal(info_of(w, p->id).budget.polls, left);
        assert_false(info_of(w, p->id).forced);
    }
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w); /* the 65th is the first of the 8 that a forced task gets */
    assert_int_equal(p->polls, 300 + 1 + 64 + 8);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(count_events(w, EBB_EV_ABANDONED, p->id.id), 1);
}

static void a_task_with_a_limit_of_polls_is_cancelled_with_budget_after_them(void **state) {
    world *w = *state;
    puppet heeding = HEEDING;
    heeding.spins = true;
    puppet *p = puppet_start_with(w, w->root, heeding, (ebb_task_opts){.keep = true, .polls = 3});
    /* One that returns in the very poll in which its polls are used up. */
    puppet *q = puppet_start_with(w, w->root, heeding, (ebb_task_opts){.polls = 3});
    puppet *others[40];
    world_settle(w);
    assert_int_equal(p->polls, 4);
    assert_int_equal(q->polls, 4);
    assert_int_equal(event_of(w, EBB_EV_CANCEL_REQUESTED, p->id.id).cancel_kind, EBB_CANCEL_BUDGET);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    for (size_t i = 0; i < 40; i++) others[i] = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    for (size_t i = 0; i < 40; i++) assert_int_equal(others[i]->polls, 1);
    assert_int_equal(stats_of(w).runnable, 0);
}

static void the_polls_of_a_task_that_waits_out_its_limit_are_counted_once(void **state) {
    world *w = *state;
    puppet *p = puppet_start_with(w, w->root, (puppet){.returns = EBB_PENDING, .spins = true},
                                  (ebb_task_opts){.keep = true, .polls = 2});
    (void)ebb_runtime_pump(w->rt, 3);
    assert_int_equal(p->polls, 3);
    assert_int_equal(stats_of(w).runnable, 1);
    p->spins = false;
    world_settle(w);
    assert_int_equal(p->polls, 4);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_CANCEL_REQUESTED);
}

static void a_deadline_that_passes_during_cleanup_strengthens_and_does_not_force(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p =
        puppet_start_with(w, r, (puppet){.heeds = true, .on_cancel = EBB_PENDING, .returns = EBB_PENDING},
                          (ebb_task_opts){.keep = true, .deadline = 100 * EBB_MS});
    world_pass(w, 50 * EBB_MS);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_pass(w, 100 * EBB_MS);
    ebb_task_info info = info_of(w, p->id);
    assert_false(info.forced);
    assert_int_equal(info.reason.kind, EBB_CANCEL_TIMEOUT);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.budget.deadline, 2100 * EBB_MS);
}

/* ---- faults ------------------------------------------------------------------------------------- */

static void a_fault_in_any_phase_runs_the_finalizers_and_is_never_hidden(void **state) {
    world *w = *state;
    for (int phase = EBB_TASK_RUNNING; phase <= EBB_TASK_CANCELLING; phase++) {
        ebb_region r = open_region(w, w->root);
        puppet *fin = puppet_new(w, (puppet){.says = "finalizer"});
        puppet p0 = {.act = unwilling, .arg = fin, .on_cancel = EBB_PENDING, .returns = EBB_PENDING};
        p0.heeds = phase == EBB_TASK_CANCELLING;
        puppet *p = puppet_start(w, r, p0);
        world_settle(w);
        if (phase > EBB_TASK_RUNNING) ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(phase_of(w, p->id), phase);
        p->returns = p->on_cancel = EBB_FAULTED;
        (void)ebb_task_wake(w->host, p->id);
        world_settle(w);
        assert_int_equal(info_of(w, p->id).status, EBB_FAULTED);
        assert_int_equal(fin->polls, 1);
        ebb_event faulted = event_of(w, EBB_EV_FAULTED, p->id.id);
        ebb_event done = event_of(w, EBB_EV_FINALIZER_DONE, p->id.id);
        ebb_event completed = event_of(w, EBB_EV_COMPLETED, p->id.id);
        assert_true(faulted.decision_seq < done.decision_seq && done.decision_seq < completed.decision_seq);
        assert_int_equal((int32_t)completed.value, EBB_FAULTED);
        assert_int_equal(report_of(w, r).status, EBB_FAULTED);
        assert_int_equal(report_of(w, r).failed.id, p->id.id);
    }
}

/* ---- waiting for others ------------------------------------------------------------------------- */

typedef struct both {
    ebb_task a, b;
    ebb_status first, second;
} both;

static void joins_both(ebb_cx *cx, puppet *p) {
    both *o = p->arg;
    if (o->first == EBB_PENDING) o->first = ebb_task_join(cx, o->a);
    if (o->second == EBB_PENDING) o->second = ebb_task_join(cx, o->b);
    p->returns = o->first == EBB_PENDING || o->second == EBB_PENDING ? EBB_PENDING : EBB_OK;
}

static void a_task_may_wait_for_two_others_at_once(void **state) {
    world *w = *state;
    for (int slow = 0; slow < 2; slow++) {
        puppet *a = puppet_start(w, w->root, (puppet){.returns = slow == 0 ? EBB_PENDING : EBB_OK});
        puppet *b = puppet_start(w, w->root, (puppet){.returns = slow == 1 ? EBB_PENDING : EBB_FAILED});
        both *o = world_keep(w, sizeof *o);
        *o = (both){a->id, b->id, EBB_PENDING, EBB_PENDING};
        puppet *p = puppet_start(w, w->root, (puppet){.act = joins_both, .arg = o, .returns = EBB_PENDING});
        world_settle(w);
        puppet *late = slow == 0 ? a : b;
        late->returns = slow == 0 ? EBB_OK : EBB_FAILED;
        (void)ebb_task_wake(w->host, late->id);
        world_settle(w);
        assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
        assert_int_equal(o->first, EBB_OK);
        assert_int_equal(o->second, EBB_FAILED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(only_the_transitions_of_the_table_are_made_and_others_are_named),
        IN_WORLD(a_task_runs_from_its_first_poll_and_completes_with_what_it_returns),
        IN_WORLD(a_created_task_that_is_cancelled_is_asked_before_its_first_poll),
        IN_WORLD(a_cancelled_task_goes_through_every_phase_in_order),
        IN_WORLD(a_task_that_returns_before_it_acknowledges_keeps_its_result),
        IN_WORLD(a_created_task_whose_deadline_passes_is_never_polled),
        IN_WORLD(a_created_task_that_owes_something_is_polled_when_its_deadline_passes),
        IN_WORLD(a_running_task_whose_deadline_passes_is_cancelled_with_timeout),
        IN_WORLD(a_completed_task_absorbs_everything_and_counts_it),
        IN_WORLD(the_epoch_rises_when_the_severity_does_and_only_then),
        IN_WORLD(a_cancel_while_finalizing_strengthens_and_stays_there),
        IN_WORLD(a_strengthened_budget_is_the_meet_of_both),
        IN_WORLD(the_deadline_is_fixed_at_the_request_and_a_fifth_is_kept_back),
        cmocka_unit_test(the_host_may_replace_the_table_of_budgets),
        IN_WORLD(polls_are_charged_only_once_the_cancel_is_acknowledged),
        IN_WORLD(a_task_with_a_limit_of_polls_is_cancelled_with_budget_after_them),
        IN_WORLD(the_polls_of_a_task_that_waits_out_its_limit_are_counted_once),
        IN_WORLD(a_deadline_that_passes_during_cleanup_strengthens_and_does_not_force),
        IN_WORLD(a_fault_in_any_phase_runs_the_finalizers_and_is_never_hidden),
        IN_WORLD(a_task_may_wait_for_two_others_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
