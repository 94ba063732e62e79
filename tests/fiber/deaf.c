/* Fibers that do not listen: every await says EBB_CANCELLED at once, and they await again. */
#include "tests/support/world.h"

typedef struct deaf {
    uint32_t awaits;
    bool masked;
} deaf;

static ebb_status never_listens(ebb_cx *cx, void *arg) {
    deaf *d = arg;
    while (d != NULL) {
        ebb_sleeper nap = {.due = 0};
        d->awaits++;
        if (d->masked) (void)ebb_mask(cx);
        (void)ebb_sleep(cx, &nap, EBB_MS);
        if (d->masked) (void)ebb_unmask(cx);
    }
    return EBB_OK;
}

/* Cancelled at 10 ms with 100 ms and `polls` to clean up, beside one that only counts milliseconds. */
static void is_abandoned(world *w, deaf *d, uint32_t polls) {
    ebb_region r = open_region(w, w->root);
    ebb_task t = ebb_fiber_spawn(w->host, r, never_listens, d);
    assert_int_equal(ebb_id_status(t.id), EBB_OK);
    puppet *other = puppet_start(w, w->root, (puppet){.returns = EBB_PENDING, .spins = true});
    for (int i = 0; i < 10; i++) {
        ebb_runtime_advance(w->rt, world_now(w) + EBB_MS);
        (void)ebb_runtime_pump(w->rt, 20);
    }
    ebb_budget budget = {world_now(w) + 100 * EBB_MS, polls, 0};
    ebb_region_cancel_within(w->host, r, EBB_CANCEL_USER, "stop", budget);
    uint32_t before = other->polls;
    for (int i = 0; i < 120 && state_of(w, r) != EBB_REGION_CLOSED; i++) {
        ebb_runtime_advance(w->rt, world_now(w) + EBB_MS);
        (void)ebb_runtime_pump(w->rt, 20);
    }
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).abandoned, 1);
    assert_true(other->polls > before + 5); /* others have run meanwhile */
    other->returns = EBB_OK;
    other->spins = false;
    world_settle(w);
}

static void one_that_masks_runs_until_it_is_forced_and_is_abandoned(void **state) {
    deaf d = {.masked = true};
    is_abandoned(*state, &d, EBB_POLLS_UNBOUNDED);
    assert_in_range(d.awaits, 80, 90 + 8 * 64); /* a sleep a millisecond, then 8 polls of 64 refusals */
}

static void one_that_is_refused_at_once_lets_others_run_and_the_clock(void **state) {
    deaf d = {.masked = false};
    is_abandoned(*state, &d, EBB_POLLS_UNBOUNDED);
    assert_true(d.awaits > 8 * 64);
}

static void its_refusals_use_up_the_polls_that_it_has(void **state) {
    deaf d = {.masked = false};
    is_abandoned(*state, &d, 3);
    assert_in_range(d.awaits, 3 * 64, 10 + (3 + 8 + 2) * 64);
}

static ebb_status cleans_up_with_many_awaits(ebb_cx *cx, void *arg) {
    uint32_t *refused = arg;
    ebb_sleeper nap = {.due = 0};
    (void)ebb_sleep(cx, &nap, EBB_SECOND);
    for (int i = 0; i < 300; i++) *refused += ebb_sleep(cx, &nap, EBB_MS) == EBB_CANCELLED;
    return EBB_CANCELLED;
}

/* Each of what it lets go of may await: that is no reason to abandon it. */
static void one_that_is_forced_may_still_await_hundreds_of_times_and_return(void **state) {
    world *w = *state;
    uint32_t refused = 0;
    ebb_region r = open_region(w, w->root);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, r, cleans_up_with_many_awaits, &refused).id),
                     EBB_OK);
    world_settle(w);
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_int_equal(state_of(w, r), EBB_REGION_CLOSED);
    assert_int_equal(report_of(w, r).abandoned, 0);
    assert_int_equal(refused, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(one_that_masks_runs_until_it_is_forced_and_is_abandoned),
        IN_WORLD(one_that_is_refused_at_once_lets_others_run_and_the_clock),
        IN_WORLD(its_refusals_use_up_the_polls_that_it_has),
        IN_WORLD(one_that_is_forced_may_still_await_hundreds_of_times_and_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
