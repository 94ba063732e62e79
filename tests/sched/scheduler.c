/* What runs next: lanes, the cycle, wakes, the pump, and timers. */
#include "tests/support/world.h"

/* ---- lanes -------------------------------------------------------------------------------------- */

static ebb_lane lane_of(world *w, const puppet *p) {
    return (ebb_lane)info_of(w, p->id).lane;
}

static void a_wake_routes_by_the_state_of_the_task_at_that_moment(void **state) {
    world *w = *state;
    puppet *ready = puppet_start(w, w->root, IGNORING);
    puppet *timed =
        puppet_start_with(w, w->root, IGNORING, (ebb_task_opts){.keep = true, .deadline = EBB_SECOND});
    puppet *cancelled = puppet_start(w, w->root, IGNORING);
    assert_int_equal(lane_of(w, ready), EBB_LANE_READY);
    assert_int_equal(lane_of(w, timed), EBB_LANE_TIMED);
    world_settle(w);
    ebb_task_cancel(w->host, cancelled->id, EBB_CANCEL_USER, NULL);
    assert_int_equal(lane_of(w, cancelled), EBB_LANE_CANCEL);
    world_settle(w);
    puppet *all[] = {ready, timed, cancelled};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lane_of(w, all[i]), EBB_LANE_NONE);
        assert_int_equal(ebb_task_wake(w->host, all[i]->id), EBB_OK);
    }
    assert_int_equal(lane_of(w, ready), EBB_LANE_READY);
    assert_int_equal(lane_of(w, timed), EBB_LANE_TIMED);
    assert_int_equal(lane_of(w, cancelled), EBB_LANE_CANCEL);
    assert_int_equal(event_of(w, EBB_EV_TASK_WOKEN, timed->id.id).value, EBB_LANE_TIMED);
    ebb_task_cancel(w->host, ready->id, EBB_CANCEL_USER, NULL); /* queued: it moves */
    ebb_task_cancel(w->host, timed->id, EBB_CANCEL_USER, NULL);
    assert_int_equal(lane_of(w, ready), EBB_LANE_CANCEL);
    assert_int_equal(lane_of(w, timed), EBB_LANE_CANCEL);
    assert_int_equal(stats_of(w).runnable, 3);
    uint64_t polls = stats_of(w).polls;
    world_settle(w);
    assert_int_equal(stats_of(w).polls, polls + 3);
}

static void wakes_are_deduplicated(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    for (int i = 0; i < 5; i++) assert_int_equal(ebb_task_wake(w->host, p->id), EBB_OK);
    world_settle(w);
    assert_int_equal(p->polls, 2);
    assert_int_equal(count_events(w, EBB_EV_TASK_WOKEN, p->id.id), 1);
}

static void wakes_itself_thrice(ebb_cx *cx, puppet *p) {
    for (int i = 0; i < 3 && p->polls < 5; i++) (void)ebb_task_wake(cx, ebb_cx_task(cx));
}

static void a_wake_during_the_poll_reschedules_once(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, (puppet){.act = wakes_itself_thrice, .returns = EBB_PENDING});
    world_settle(w);
    assert_int_equal(p->polls, 5);
}

static void the_ready_lane_is_first_come_first_served(void **state) {
    world *w = *state;
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) puppet_start(w, w->root, (puppet){.says = names[i]});
    world_settle(w);
    assert_string_equal(w->log, "a b c d ");
}

/* The first that comes into an empty lane stands apart from those that follow. */
static void who_leaves_the_ready_lane_leaves_the_order_of_the_rest(void **state) {
    world *w = *state;
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int leaves = 0; leaves < 4; leaves++) {
        puppet *p[4];
        w->log[0] = 0;
        for (int i = 0; i < 4; i++) p[i] = puppet_start(w, w->root, (puppet){.says = names[i]});
        ebb_task_cancel(w->host, p[leaves]->id, EBB_CANCEL_USER, NULL); /* into the cancel lane */
        assert_int_equal(stats_of(w).runnable, 4);
        char expected[16] = "";
        (void)snprintf(expected, sizeof expected, "%s ", names[leaves]);
        for (int i = 0; i < 4; i++) {
            if (i == leaves) continue;
            size_t n = strlen(expected);
            (void)snprintf(expected + n, sizeof expected - n, "%s ", names[i]);
        }
        world_settle(w);
        assert_string_equal(w->log, expected);
    }
    puppet *alone = puppet_start(w, w->root, (puppet){.says = "alone"});
    ebb_task_cancel(w->host, alone->id, EBB_CANCEL_USER, NULL);
    (void)puppet_start(w, w->root, (puppet){.says = "next"});
    assert_int_equal(stats_of(w).runnable, 2);
    w->log[0] = 0;
    world_settle(w);
    assert_string_equal(w->log, "alone next ");
}

static void the_timed_lane_goes_by_deadline_then_priority_then_order(void **state) {
    world *w = *state;
    static const struct {
        const char *name;
        uint64_t ms;
        uint8_t priority;
    } plan[] = {{"late", 900, 200},
                {"soon-low", 100, 1},
                {"soon-high", 100, 9},
                {"soon-low2", 100, 1},
                {"middle", 500, 0}};
    for (int i = 0; i < 5; i++) {
        puppet_start_with(
            w, w->root, (puppet){.says = plan[i].name},
            (ebb_task_opts){.deadline = plan[i].ms * EBB_MS, .priority = plan[i].priority, .keep = true});
    }
    world_settle(w);
    assert_string_equal(w->log, "soon-high soon-low soon-low2 middle late ");
}

static void the_cancel_lane_goes_by_cleanup_deadline(void **state) {
    world *w = *state;
    static const struct {
        const char *name;
        ebb_cancel_kind kind;
    } plan[] = {{"polite", EBB_CANCEL_USER},
                {"urgent", EBB_CANCEL_TIMEOUT},
                {"forced", EBB_CANCEL_SHUTDOWN},
                {"polite2", EBB_CANCEL_USER}};
    puppet *p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = puppet_start(w, w->root, (puppet){.says = plan[i].name});
        ebb_task_cancel(w->host, p[i]->id, plan[i].kind, NULL);
    }
    world_settle(w);
    assert_string_equal(w->log, "forced urgent polite polite2 ");
}

static void a_deadline_far_ahead_comes_after_all_that_are_near(void **state) {
    world *w = *state;
    static const struct {
        const char *name;
        uint64_t s;
    } plan[] = {{"20", 20}, {"5", 5}, {"60", 60}, {"1", 1}, {"8", 8}};
    for (int i = 0; i < 5; i++) {
        ebb_region r = open_region(w, w->root);
        puppet_start(w, r, (puppet){.says = plan[i].name});
        ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, NULL,
                                 (ebb_budget){plan[i].s * EBB_SECOND, 9, 0});
    }
    world_settle(w);
    assert_string_equal(w->log, "1 5 8 20 60 "); /* 20 and 60 share the last bucket: in order of asking */
}

static void a_queued_task_that_is_told_more_urgently_moves_forward(void **state) {
    world *w = *state;
    puppet *a = puppet_start(w, w->root, (puppet){.says = "first"});
    puppet *b = puppet_start(w, w->root, (puppet){.says = "second"});
    ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, NULL);
    ebb_task_cancel(w->host, b->id, EBB_CANCEL_USER, NULL);
    ebb_task_cancel(w->host, b->id, EBB_CANCEL_SHUTDOWN, NULL);
    world_settle(w);
    assert_string_equal(w->log, "second first ");
}

/* ---- the cycle ---------------------------------------------------------------------------------- */

static void spin(world *w, uint32_t n, puppet *out[]) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = puppet_start(w, w->root, (puppet){.returns = EBB_PENDING, .spins = true});
    }
}

static void when_all_lanes_have_work_the_cycle_is_8_to_1_to_1_and_the_waits_are_bounded(void **state) {
    world *w = *state;
    enum { EACH = 7, CYCLES = 200 };
    puppet *ready[EACH], *timed[EACH], *cancelled[EACH];
    spin(w, EACH, ready);
    spin(w, EACH, cancelled);
    for (int i = 0; i < EACH; i++) {
        ebb_task_cancel(w->host, cancelled[i]->id, EBB_CANCEL_USER, NULL);
        timed[i] = puppet_start_with(w, w->root, (puppet){.returns = EBB_PENDING, .spins = true},
                                     (ebb_task_opts){.deadline = EBB_SECOND, .keep = true});
    }
    assert_int_equal(ebb_runtime_pump(w->rt, CYCLES * 10), EBB_PENDING);
    uint32_t polls[3] = {0};
    for (int i = 0; i < EACH; i++) {
        polls[0] += cancelled[i]->polls;
        polls[1] += timed[i]->polls;
        polls[2] += ready[i]->polls;
    }
    assert_int_equal(polls[0], 8 * CYCLES);
    assert_int_equal(polls[1], CYCLES);
    assert_int_equal(polls[2], CYCLES);
    for (int i = 0; i < EACH; i++)
        assert_in_range(cancelled[i]->polls, 8 * CYCLES / EACH, 8 * CYCLES / EACH + 1);
    ebb_runtime_stats s = stats_of(w);
    assert_int_equal(s.worst_wait[0], 1); /* in a steady load; 2 is the bound */
    assert_int_equal(s.worst_wait[1], 9);
    assert_int_equal(s.worst_wait[2], 9);
    for (int i = 0; i < EACH; i++) ready[i]->spins = timed[i]->spins = cancelled[i]->spins = false;
}

static void no_lane_ever_waits_longer_than_2_9_and_9_polls_of_the_others(void **state) {
    world *w = *state;
    enum { EACH = 3 };
    puppet *p[3][EACH];
    uint32_t rnd = 12345;
    for (int i = 0; i < EACH; i++) {
        p[0][i] = puppet_start(w, w->root, IGNORING);
        p[1][i] = puppet_start_with(w, w->root, IGNORING,
                                    (ebb_task_opts){.deadline = 9 * EBB_SECOND, .keep = true});
        p[2][i] = puppet_start(w, w->root, IGNORING);
        ebb_task_cancel(w->host, p[0][i]->id, EBB_CANCEL_USER, NULL);
    }
    for (int step = 0; step < 50000; step++) { /* work that comes and goes in every lane */
        rnd = rnd * 1664525 + 1013904223;
        if (rnd >> 30 != 0)
            (void)ebb_task_wake(w->host, p[rnd >> 16 & 3 ? (rnd >> 18) % 3 : 0][(rnd >> 24) % EACH]->id);
        if (rnd >> 8 & 1) (void)ebb_runtime_pump(w->rt, 1 + (rnd >> 12) % 3);
        if (step % 1000 == 0) world_settle(w);
    }
    world_settle(w); /* the trace is checked for it, event by event, at the end */
    ebb_runtime_stats s = stats_of(w);
    assert_true(s.worst_wait[0] <= 2 && s.worst_wait[1] <= 9 && s.worst_wait[2] <= 9);
}

/* ---- the pump ----------------------------------------------------------------------------------- */

typedef struct nested {
    ebb_status pumped;
    puppet *other;
} nested;

static void pumps(ebb_cx *cx, puppet *p) {
    nested *n = p->arg;
    (void)ebb_task_wake(cx, n->other->id);
    n->pumped = ebb_runtime_pump(ebb_cx_runtime(cx), 100);
    p->number = n->other->polls;
}

static void a_nested_pump_does_nothing_and_the_work_waits(void **state) {
    world *w = *state;
    nested *n = world_keep(w, sizeof *n);
    n->other = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    puppet *p = puppet_start(w, w->root, (puppet){.act = pumps, .arg = n});
    world_settle(w);
    assert_int_equal(n->pumped, EBB_ERR_REENTERED);
    assert_int_equal(p->number, 1); /* not polled inside */
    assert_int_equal(n->other->polls, 2);
}

static void the_pump_polls_at_most_as_many_as_it_is_told(void **state) {
    world *w = *state;
    puppet *p[5];
    for (int i = 0; i < 5; i++) p[i] = puppet_start(w, w->root, IGNORING);
    assert_int_equal(ebb_runtime_pump(w->rt, 0), EBB_PENDING);
    assert_int_equal(stats_of(w).polls, 0);
    assert_int_equal(ebb_runtime_pump(w->rt, 3), EBB_PENDING);
    assert_int_equal(stats_of(w).polls, 3);
    assert_int_equal(p[3]->polls, 0);
    assert_int_equal(ebb_runtime_pump(w->rt, 2), EBB_OK);
    assert_int_equal(ebb_runtime_pump(w->rt, 100), EBB_OK);
    assert_int_equal(stats_of(w).polls, 5);
}

static void naps(ebb_cx *cx, puppet *p) {
    p->returns = ebb_sleep(cx, &p->nap, p->number);
}

static void next_due_is_now_or_the_next_timer_or_never(void **state) {
    world *w = *state;
    ebb_runtime_advance(w->rt, 10 * EBB_MS);
    assert_int_equal(ebb_runtime_next_due(w->rt), EBB_FOREVER);
    puppet *p = puppet_start(w, w->root, (puppet){.act = naps, .number = 300 * EBB_MS});
    assert_int_equal(ebb_runtime_next_due(w->rt), 10 * EBB_MS);
    world_settle(w);
    uint64_t due = ebb_runtime_next_due(w->rt);
    assert_in_range(due, 10 * EBB_MS + 1, 310 * EBB_MS); /* not later than the firing */
    world_pass(w, 300 * EBB_MS);
    assert_int_equal(phase_of(w, p->id), EBB_TASK_COMPLETED);
    assert_int_equal(ebb_runtime_next_due(w->rt), EBB_FOREVER);
}

static void time_never_goes_back(void **state) {
    world *w = *state;
    ebb_runtime_advance(w->rt, 50 * EBB_MS);
    ebb_runtime_advance(w->rt, 49 * EBB_MS);
    assert_int_equal(ebb_now(w->host), 50 * EBB_MS);
    ebb_runtime_advance(w->rt, 0);
    assert_int_equal(ebb_now(w->host), 50 * EBB_MS);
}

/* ---- timers ------------------------------------------------------------------------------------- */

static void notes_time(ebb_cx *cx, puppet *p) {
    p->number = ebb_now(cx);
}

static void a_timer_fires_never_early_and_at_most_a_millisecond_late(void **state) {
    world *w = *state;
    static const uint64_t dues[] = {0,
                                    1,
                                    EBB_MS - 1,
                                    EBB_MS,
                                    EBB_MS + 1,
                                    63 * EBB_MS,
                                    64 * EBB_MS,
                                    65 * EBB_MS + 7,
                                    4095 * EBB_MS,
                                    4096 * EBB_MS + 1,
                                    3600 * EBB_SECOND + 12345};
    for (size_t i = 0; i < sizeof dues / sizeof *dues; i++) {
        uint64_t due = world_now(w) + dues[i];
        puppet *p = puppet_start(w, w->root, (puppet){.act = notes_time, .returns = EBB_PENDING});
        world_settle(w);
        assert_int_equal(ebb_id_status(ebb_timer_arm(w->host, p->id, due).id), EBB_OK);
        world_finish(w);
        assert_int_equal(p->polls, 2);
        assert_true(p->number >= due && p->number <= due + EBB_MS);
        assert_int_equal(stats_of(w).timers, 0);
    }
}

static void timers_fire_in_the_order_of_their_times(void **state) {
    world *w = *state;
    static const char *const names[] = {"1", "2", "3", "4"};
    static const uint64_t ms[] = {4000, 3, 70, 69};
    puppet *p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = puppet_start(w, w->root, IGNORING);
    }
    world_settle(w);
    for (int i = 0; i < 4; i++) {
        p[i]->says = names[i];
        (void)ebb_timer_arm(w->host, p[i]->id, ms[i] * EBB_MS);
    }
    ebb_runtime_advance(w->rt, 10 * EBB_SECOND); /* all are due at once */
    world_settle(w);
    assert_string_equal(w->log, "2 4 3 1 ");
}

static void a_disarmed_timer_does_not_fire_and_is_spent(void **state) {
    world *w = *state;
    puppet *p = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    ebb_timer a = ebb_timer_arm(w->host, p->id, 5 * EBB_MS), b = ebb_timer_arm(w->host, p->id, 6 * EBB_MS);
    assert_int_equal(stats_of(w).timers, 2);
    assert_int_equal(ebb_timer_disarm(w->host, a), EBB_OK);
    assert_int_equal(ebb_timer_disarm(w->host, a), EBB_ERR_STALE);
    world_pass(w, 5 * EBB_MS);
    assert_int_equal(p->polls, 1);
    world_pass(w, 1 * EBB_MS);
    assert_int_equal(p->polls, 2);
    assert_int_equal(ebb_timer_disarm(w->host, b), EBB_ERR_STALE);
    assert_int_equal(count_events(w, EBB_EV_TIMER_FIRED, 0), 1);
}

static void a_timer_of_a_task_that_has_ended_wakes_nobody(void **state) {
    world *w = *state;
    puppet *p = puppet_new(w, IGNORING);
    p->id = ebb_spawn(w->host, w->root, puppet_poll, p);
    world_settle(w);
    (void)ebb_timer_arm(w->host, p->id, 5 * EBB_MS);
    p->returns = EBB_OK;
    (void)ebb_task_wake(w->host, p->id);
    world_settle(w);
    puppet *heir = puppet_start(w, w->root, IGNORING); /* takes the slot */
    world_settle(w);
    assert_int_equal(heir->id.id >> 32, p->id.id >> 32);
    world_pass(w, 10 * EBB_MS);
    assert_int_equal(heir->polls, 1);
}

static void a_turn_of_the_wheel_moves_or_fires_at_most_4096_timers(void **state) {
    world *w = *state;
    enum { TIMERS = 10000 };
    puppet *p = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    for (int i = 0; i < TIMERS; i++) (void)ebb_timer_arm(w->host, p->id, 10 * EBB_MS);
    ebb_runtime_advance(w->rt, 10 * EBB_MS);
    uint32_t left = TIMERS;
    while (left > 4096) {
        assert_int_equal(ebb_runtime_pump(w->rt, 0), EBB_PENDING);
        uint32_t now = stats_of(w).timers;
        assert_in_range(left - now, 1, 4096);
        left = now;
    }
    world_settle(w);
    assert_int_equal(stats_of(w).timers, 0);
}

static void a_million_timers_are_armed_half_are_disarmed_and_the_rest_fire_in_time(void **state) {
    world *w = *state;
    enum { TIMERS = 1000 * 1000 };
    puppet *p = puppet_start(w, w->root, IGNORING);
    world_settle(w);
    ebb_timer *t = world_keep(w, TIMERS * sizeof *t);
    uint64_t rnd = 88172645463325252u;
    for (uint32_t i = 0; i < TIMERS; i++) {
        rnd ^= rnd << 13, rnd ^= rnd >> 7, rnd ^= rnd << 17;
        t[i] = ebb_timer_arm(w->host, p->id, 1 + rnd % (3600 * EBB_SECOND));
        if (ebb_id_status(t[i].id) != EBB_OK) fail();
    }
    assert_int_equal(stats_of(w).timers, TIMERS);
    for (uint32_t i = 0; i < TIMERS; i += 2) {
        if (ebb_timer_disarm(w->host, t[i]) != EBB_OK) fail();
    }
    assert_int_equal(stats_of(w).timers, TIMERS / 2);
    for (uint32_t minute = 1; minute <= 60; minute++) {
        ebb_runtime_advance(w->rt, minute * (60 * EBB_SECOND));
        world_settle(w);
        uint32_t left = stats_of(w).timers, expected = TIMERS / 2 - TIMERS / 2 / 60 * minute;
        assert_in_range(left, expected > 5000 ? expected - 5000 : 0, expected + 5000);
    }
    world_pass(w, EBB_MS);
    assert_int_equal(stats_of(w).timers, 0);
}

static void a_sleep_is_cut_short_by_a_cancel_and_leaves_no_timer(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    puppet *p = puppet_start(w, r, (puppet){.act = naps, .number = EBB_SECOND});
    puppet *forever = puppet_start(w, r, (puppet){.act = naps, .number = EBB_FOREVER});
    world_pass(w, 10 * EBB_MS);
    (void)ebb_task_wake(w->host, p->id); /* for nothing: it goes on sleeping */
    world_settle(w);
    assert_int_equal(stats_of(w).timers, 2);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(info_of(w, p->id).status, EBB_CANCELLED);
    assert_int_equal(info_of(w, forever->id).status, EBB_CANCELLED);
    assert_int_equal(stats_of(w).timers, 0);
}

static void naps_once(ebb_cx *cx, puppet *p) {
    if (p->polls == 1) (void)ebb_sleep(cx, &p->nap, EBB_SECOND);
}

static void a_task_that_ends_while_it_sleeps_leaves_no_timer(void **state) {
    world *w = *state;
    puppet *returns = puppet_start(w, w->root, (puppet){.act = naps_once, .returns = EBB_PENDING});
    puppet *abandoned = puppet_start(w, w->root, (puppet){.act = naps_once, .returns = EBB_PENDING});
    world_settle(w);
    assert_int_equal(stats_of(w).timers, 2);
    returns->returns = EBB_OK;
    (void)ebb_task_wake(w->host, returns->id);
    ebb_task_force(w->host, abandoned->id);
    world_settle(w);
    assert_int_equal(phase_of(w, returns->id), EBB_TASK_COMPLETED);
    assert_int_equal(phase_of(w, abandoned->id), EBB_TASK_COMPLETED);
    assert_int_equal(stats_of(w).timers, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_wake_routes_by_the_state_of_the_task_at_that_moment),
        IN_WORLD(wakes_are_deduplicated),
        IN_WORLD(a_wake_during_the_poll_reschedules_once),
        IN_WORLD(the_ready_lane_is_first_come_first_served),
        IN_UNTRACED_WORLD(the_ready_lane_is_first_come_first_served),
        IN_UNTRACED_WORLD(a_wake_during_the_poll_reschedules_once),
        IN_WORLD(who_leaves_the_ready_lane_leaves_the_order_of_the_rest),
        IN_UNTRACED_WORLD(who_leaves_the_ready_lane_leaves_the_order_of_the_rest),
        IN_WORLD(the_timed_lane_goes_by_deadline_then_priority_then_order),
        IN_WORLD(the_cancel_lane_goes_by_cleanup_deadline),
        IN_WORLD(a_deadline_far_ahead_comes_after_all_that_are_near),
        IN_WORLD(a_queued_task_that_is_told_more_urgently_moves_forward),
        IN_WORLD(when_all_lanes_have_work_the_cycle_is_8_to_1_to_1_and_the_waits_are_bounded),
        IN_WORLD(no_lane_ever_waits_longer_than_2_9_and_9_polls_of_the_others),
        IN_WORLD(a_nested_pump_does_nothing_and_the_work_waits),
        IN_WORLD(the_pump_polls_at_most_as_many_as_it_is_told),
        IN_WORLD(next_due_is_now_or_the_next_timer_or_never),
        IN_WORLD(time_never_goes_back),
        IN_WORLD(a_timer_fires_never_early_and_at_most_a_millisecond_late),
        IN_WORLD(timers_fire_in_the_order_of_their_times),
        IN_WORLD(a_disarmed_timer_does_not_fire_and_is_spent),
        IN_WORLD(a_timer_of_a_task_that_has_ended_wakes_nobody),
        IN_WORLD(a_turn_of_the_wheel_moves_or_fires_at_most_4096_timers),
        IN_UNTRACED_WORLD(a_million_timers_are_armed_half_are_disarmed_and_the_rest_fire_in_time),
        IN_WORLD(a_task_that_ends_while_it_sleeps_leaves_no_timer),
        IN_WORLD(a_sleep_is_cut_short_by_a_cancel_and_leaves_no_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
