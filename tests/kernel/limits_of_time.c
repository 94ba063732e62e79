/* Time at its edges: deadlines against budgets, spans of nothing, the last moment that there is, counters
 * that wrap, and those who have no time left. */
#include "tests/support/world.h"

#include "kernel/rt.h"

/* ---- own deadlines ------------------------------------------------------------------------------- */

typedef enum asked {
    NOTHING,
    POLITELY,
    WITHOUT_END, /* with a budget that never ends */
    PARENT_POLITELY,
    PARENT_WITHOUT_END,
    TASK_POLITELY,
    ASKED
} asked;

static void ask(world *w, asked how, ebb_region parent, ebb_region r, ebb_task t) {
    static const ebb_budget endless = {EBB_FOREVER, EBB_POLLS_UNBOUNDED, 0};
    switch (how) {
    case POLITELY: ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "bye"); break;
    case WITHOUT_END: ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, "bye", endless); break;
    case PARENT_POLITELY: ebb_region_cancel(w->host, parent, EBB_CANCEL_USER, "bye"); break;
    case PARENT_WITHOUT_END:
        ebb_region_cancel_within(w->host, parent, EBB_CANCEL_USER, "bye", endless);
        break;
    case TASK_POLITELY: ebb_task_cancel(w->host, t, EBB_CANCEL_USER, "bye"); break;
    default: break;
    }
}

static void masks_once(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) assert_int_equal(ebb_mask(cx), EBB_OK);
}

/* How long a task that heeds nothing lives, if its region or itself has a deadline in a second. */
static uint64_t life(world *w, asked how, bool own, bool masked) {
    uint64_t start = world_now(w), deadline = start + EBB_SECOND;
    ebb_region parent = open_region(w, w->root);
    ebb_region r =
        ebb_region_open(w->host, &(ebb_region_opts){.parent = parent, .deadline = own ? 0 : deadline});
    puppet *p = puppet_start_with(w, r, (puppet){.act = masked ? masks_once : NULL, .returns = EBB_PENDING},
                                  (ebb_task_opts){.keep = true, .deadline = own ? deadline : 0});
    world_settle(w);
    ask(w, how, parent, r, p->id);
    uint64_t end = start + 60 * EBB_SECOND;
    while (world_now(w) < end && phase_of(w, p->id) != EBB_TASK_COMPLETED) {
        if (phase_of(w, p->id) == 0) break; /* freed with its region, when the parent has closed */
        world_pass(w, EBB_MS);
    }
    uint64_t lived = world_now(w) - start;
    ebb_region_force(w->host, parent);
    world_pass(w, 10 * EBB_SECOND);
    return lived;
}

static void no_cancel_wins_time_over_a_deadline_of_ones_own(void **state) {
    world *w = *state;
    for (int own = 0; own < 2; own++) {
        for (int masked = 0; masked < 2; masked++) {
            uint64_t alone = life(w, NOTHING, own, masked);
            assert_in_range(alone, EBB_SECOND, 5 * EBB_SECOND);
            for (asked how = POLITELY; how < ASKED; how++) {
                uint64_t lived = life(w, how, own, masked);
                if (lived > alone) {
                    fail_msg("way %d, own %d, masked %d: %llu ms, not %llu", (int)how, own, masked,
                             (unsigned long long)(lived / EBB_MS), (unsigned long long)(alone / EBB_MS));
                }
            }
        }
    }
}

static void a_cancel_with_an_early_end_still_ends_early(void **state) {
    world *w = *state;
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.deadline = world_now(w) + 100 * EBB_SECOND});
    puppet *p = puppet_start(w, r, IGNORING);
    world_settle(w);
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, "soon",
                             (ebb_budget){world_now(w) + EBB_SECOND, EBB_POLLS_UNBOUNDED, 0});
    world_pass(w, EBB_SECOND);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
}

/* ---- a span of nothing --------------------------------------------------------------------------- */

static void sleeps(ebb_cx *cx, puppet *p) {
    p->returns = ebb_sleep(cx, &p->nap, p->number);
}

static void a_sleep_of_nothing_is_over_when_the_pump_says_that_it_is_idle(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = sleeps});
    assert_int_equal(ebb_runtime_pump(w->rt, 100), EBB_OK);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(p->returns, EBB_OK);
    assert_true(ebb_runtime_next_due(w->rt) == EBB_FOREVER);
}

static void sleeps_again(ebb_cx *cx, puppet *p) {
    while ((p->returns = ebb_sleep(cx, &p->nap, 0)) == EBB_OK) p->number++;
}

static void sleeps_of_nothing_without_end_do_not_keep_the_pump_from_returning(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = sleeps_again});
    assert_int_equal(ebb_runtime_pump(w->rt, 100), EBB_PENDING);
    assert_int_equal(p->polls, 100);
    ebb_task_cancel(w->host, p->id, EBB_CANCEL_USER, "enough");
    world_settle(w);
    assert_int_equal(p->returns, EBB_CANCELLED);
}

/* ---- no time left -------------------------------------------------------------------------------- */

static void a_forced_task_is_cancelled_even_if_its_sleep_is_over(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = sleeps, .number = 10 * EBB_MS});
    world_settle(w);
    assert_int_equal(p->returns, EBB_PENDING);
    ebb_runtime_advance(w->rt, world_now(w) + 20 * EBB_MS);
    ebb_task_force(w->host, p->id);
    world_settle(w);
    assert_int_equal(p->polls, 2);
    assert_int_equal(p->returns, EBB_CANCELLED);
}

static void joins_task(ebb_cx *cx, puppet *p) {
    const ebb_task *t = p->arg;
    p->returns = ebb_task_join(cx, *t);
}

static void a_forced_task_is_cancelled_even_if_the_task_that_it_joins_has_ended(void **state) {
    world *w = *state;
    puppet *joined = puppet_start(w, w->root, IGNORING);
    puppet *p = puppet_start(w, w->root, (puppet){.act = joins_task, .arg = &joined->id});
    world_settle(w);
    assert_int_equal(p->returns, EBB_PENDING);
    joined->returns = EBB_OK;
    (void)ebb_task_wake(w->host, joined->id);
    (void)ebb_runtime_pump(w->rt, 1);
    assert_int_equal(phase_of(w, joined->id), EBB_TASK_COMPLETED);
    ebb_task_force(w->host, p->id);
    world_settle(w);
    assert_int_equal(p->returns, EBB_CANCELLED);
    assert_int_equal(ebb_task_join(w->host, p->id), EBB_CANCELLED);
    assert_int_equal(ebb_task_join(w->host, joined->id), EBB_OK); /* which is still there to be joined */
}

typedef struct scope {
    ebb_region region;
    puppet *inside;
} scope;

static void joins_a_region(ebb_cx *cx, puppet *p) {
    scope *s = p->arg;
    if (s->region.id == 0) {
        s->region = ebb_region_open(cx, NULL);
        s->inside = puppet_new(p->world, IGNORING);
        s->inside->id = ebb_spawn(cx, s->region, puppet_poll, s->inside);
    }
    p->returns = ebb_region_join(cx, s->region);
}

static void a_forced_task_is_cancelled_even_if_the_region_that_it_joins_has_closed(void **state) {
    world *w = *state;
    scope *s = world_keep(w, sizeof *s);
    puppet *p = puppet_start(w, w->root, (puppet){.act = joins_a_region, .arg = s});
    world_settle(w);
    assert_int_equal(p->returns, EBB_PENDING);
    s->inside->returns = EBB_OK;
    (void)ebb_task_wake(w->host, s->inside->id);
    (void)ebb_runtime_pump(w->rt, 1);
    assert_int_equal(state_of(w, s->region), EBB_REGION_CLOSED);
    ebb_task_force(w->host, p->id);
    world_settle(w);
    assert_int_equal(p->returns, EBB_CANCELLED);
    assert_int_equal(state_of(w, s->region), 0); /* it went with the task */
}

/* ---- the last moment ----------------------------------------------------------------------------- */

typedef struct late {
    ebb_runtime *rt;
    ebb_region region;
    ebb_task task;
} late;

static ebb_status ignores(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

/* Not a world: nothing can be shut down in good order when time can't go on. */
static late late_new(uint64_t now) {
    late l;
    assert_int_equal(
        ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator(), .now = now}, &l.rt), EBB_OK);
    ebb_cx *host = ebb_runtime_host(l.rt);
    l.region = ebb_region_open(host, NULL);
    l.task = ebb_spawn(host, l.region, ignores, NULL, &(ebb_task_opts){.keep = true});
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    return l;
}

static ebb_region_state late_state(const late *l) {
    ebb_region_state s;
    assert_int_equal(ebb_region_state_of(ebb_runtime_host(l->rt), l->region, &s), EBB_OK);
    return s;
}

static uint64_t late_deadline(const late *l) {
    ebb_task_info info;
    assert_int_equal(ebb_task_info_of(ebb_runtime_host(l->rt), l->task, &info), EBB_OK);
    return info.budget.deadline;
}

static void a_budget_that_would_end_after_all_time_does_not_wrap(void **state) {
    (void)state;
    late l = late_new(EBB_FOREVER - EBB_SECOND);
    ebb_region_cancel(ebb_runtime_host(l.rt), l.region, EBB_CANCEL_USER, "late");
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    assert_true(late_deadline(&l) == EBB_FOREVER);
    assert_int_equal(late_state(&l), EBB_REGION_DRAINING); /* it was not overdue at once */
    ebb_runtime_advance(l.rt, EBB_FOREVER - 1);
    ebb_region_force(ebb_runtime_host(l.rt), l.region);
    assert_true(late_deadline(&l) >= EBB_FOREVER - 1);
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    assert_int_equal(late_state(&l), EBB_REGION_CLOSED);
    ebb_runtime_free(l.rt);
}

static void a_deadline_just_before_the_end_of_time_gives_a_budget_up_to_there(void **state) {
    (void)state;
    late l = late_new(EBB_FOREVER - 10 * EBB_SECOND);
    ebb_cx *host = ebb_runtime_host(l.rt);
    ebb_region r = ebb_region_open(host, &(ebb_region_opts){.deadline = EBB_FOREVER - EBB_MS});
    ebb_task t = ebb_spawn(host, r, ignores, NULL, &(ebb_task_opts){.keep = true});
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    ebb_region_cancel(host, r, EBB_CANCEL_USER, "early enough");
    ebb_task_info info;
    assert_int_equal(ebb_task_info_of(host, t, &info), EBB_OK);
    assert_true(info.budget.deadline == EBB_FOREVER - 5 * EBB_SECOND);
    assert_false(info.forced);
    ebb_runtime_free(l.rt);
}

static void at_the_end_of_time_the_pump_still_returns_and_a_force_still_ends_things(void **state) {
    (void)state;
    late l = late_new(EBB_FOREVER - 10 * EBB_SECOND);
    ebb_runtime_advance(l.rt, EBB_FOREVER);
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    ebb_region_cancel(ebb_runtime_host(l.rt), l.region, EBB_CANCEL_USER, "too late");
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    ebb_region_force(ebb_runtime_host(l.rt), l.region);
    assert_int_equal(ebb_runtime_pump(l.rt, 100), EBB_OK);
    assert_int_equal(late_state(&l), EBB_REGION_CLOSED);
    ebb_runtime_free(l.rt);
}

/* ---- what wraps, and what is used again ---------------------------------------------------------- */

typedef struct turns {
    const puppet *last;
    uint32_t row, worst;
} turns;

static void takes_a_turn(ebb_cx *cx, puppet *p) {
    turns *t = p->arg;
    (void)cx;
    t->row = t->last == p ? t->row + 1 : 1;
    t->last = p;
    if (t->row > t->worst) t->worst = t->row;
}

static void the_timed_lane_stays_fair_when_its_count_of_arrivals_wraps(void **state) {
    world *w = *state;
    static const uint32_t wraps[] = {UINT32_C(0xffffff), UINT32_C(0x7fffff), UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        turns *t = world_keep(w, sizeof *t);
        ebb_region r =
            ebb_region_open(w->host, &(ebb_region_opts){.deadline = world_now(w) + 10 * EBB_SECOND});
        w->rt->timed.arrivals = wraps[i] - 40;
        puppet spinner = {.act = takes_a_turn,
                          .arg = t,
                          .spins = true,
                          .heeds = true,
                          .on_cancel = EBB_CANCELLED,
                          .returns = EBB_PENDING};
        puppet *a = puppet_start(w, r, spinner), *b = puppet_start(w, r, spinner);
        assert_int_equal(ebb_runtime_pump(w->rt, 200), EBB_PENDING);
        assert_int_equal(info_of(w, a->id).lane, EBB_LANE_TIMED);
        assert_int_equal(t->worst, 1);
        assert_int_equal(a->polls, b->polls);
        ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "enough");
        world_settle(w);
    }
}

static void joins_unless_cancelled(ebb_cx *cx, puppet *p) {
    if (!ebb_cancelled(cx)) joins_task(cx, p);
}

/* The one that follows in its slot waits in a join too, but for something else. */
static void who_joined_and_was_cancelled_is_no_longer_in_the_way_of_others(void **state) {
    world *w = *state;
    puppet *joined = puppet_start(w, w->root, IGNORING);
    puppet *a = puppet_start_with(
        w, w->root,
        (puppet){
            .act = joins_unless_cancelled, .arg = &joined->id, .heeds = true, .on_cancel = EBB_CANCELLED},
        (ebb_task_opts){0});
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, joined->id), EBB_ERR_BUSY);
    ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, "bye");
    world_settle(w);
    assert_int_equal(phase_of(w, a->id), 0);
    scope *s = world_keep(w, sizeof *s);
    puppet *b = puppet_start_with(w, w->root, (puppet){.act = joins_a_region, .arg = s}, (ebb_task_opts){0});
    world_settle(w);
    assert_int_equal(a->id.id >> 32, b->id.id >> 32);
    assert_int_equal(b->returns, EBB_PENDING);
    assert_int_equal(ebb_task_join(w->host, joined->id), EBB_PENDING);
    puppet *c = puppet_start(w, w->root, (puppet){.act = joins_task, .arg = &joined->id});
    world_settle(w);
    assert_int_equal(c->returns, EBB_PENDING);
    joined->returns = EBB_OK;
    (void)ebb_task_wake(w->host, joined->id);
    world_settle(w);
    assert_int_equal(c->returns, EBB_OK);
    assert_int_equal(phase_of(w, c->id), EBB_TASK_COMPLETED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(no_cancel_wins_time_over_a_deadline_of_ones_own),
        IN_WORLD(a_cancel_with_an_early_end_still_ends_early),
        IN_WORLD(a_sleep_of_nothing_is_over_when_the_pump_says_that_it_is_idle),
        IN_WORLD(sleeps_of_nothing_without_end_do_not_keep_the_pump_from_returning),
        IN_WORLD(a_forced_task_is_cancelled_even_if_its_sleep_is_over),
        IN_WORLD(a_forced_task_is_cancelled_even_if_the_task_that_it_joins_has_ended),
        IN_WORLD(a_forced_task_is_cancelled_even_if_the_region_that_it_joins_has_closed),
        cmocka_unit_test(a_budget_that_would_end_after_all_time_does_not_wrap),
        cmocka_unit_test(a_deadline_just_before_the_end_of_time_gives_a_budget_up_to_there),
        cmocka_unit_test(at_the_end_of_time_the_pump_still_returns_and_a_force_still_ends_things),
        IN_WORLD(the_timed_lane_stays_fair_when_its_count_of_arrivals_wraps),
        IN_WORLD(who_joined_and_was_cancelled_is_no_longer_in_the_way_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
