/* A task that returns and leaves its regions behind: they are cancelled and waited for, in as many steps as there
 * are regions, and the first of them that fails is its failure. */
#include "tests/support/world.h"

#include "kernel/rt.h"

enum { FEW = 200, MANY = 4 * FEW };

typedef struct owner {
    uint32_t n;
    ebb_region *regions;
    puppet **work; /* one in each */
    world *world;
    ebb_task task;
    ebb_status outcome;
    bool joined;
} owner;

/* Opens its regions, with work in each, and returns. */
static ebb_status leaves_them(ebb_cx *cx, void *state) {
    owner *o = state;
    for (uint32_t i = 0; i < o->n; i++) {
        o->regions[i] = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        o->work[i] = puppet_new(o->world, IGNORING);
        o->work[i]->id = ebb_spawn(cx, o->regions[i], puppet_poll, o->work[i]);
    }
    return EBB_OK;
}

static ebb_status joins(ebb_cx *cx, void *state) {
    owner *o = state;
    ebb_status st = ebb_task_join(cx, o->task);
    if (st == EBB_PENDING) return st;
    o->outcome = st;
    o->joined = true;
    return EBB_OK;
}

static owner *owner_new(world *w, uint32_t n) {
    owner *o = world_keep(w, sizeof *o);
    o->n = n;
    o->world = w;
    o->regions = world_keep(w, n * sizeof *o->regions);
    o->work = world_keep(w, n * sizeof *o->work);
    o->task = ebb_spawn(w->host, w->root, leaves_them, o, &(ebb_task_opts){.keep = true});
    (void)ebb_spawn(w->host, w->root, joins, o);
    world_settle(w);
    return o;
}

static void end_one(owner *o, uint32_t i, ebb_status st) {
    o->work[i]->returns = st;
    (void)ebb_task_wake(o->world->host, o->work[i]->id);
    world_settle(o->world);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static uint32_t first_first(uint32_t i, uint32_t n) {
    (void)n;
    return i;
}

static uint32_t last_first(uint32_t i, uint32_t n) {
    return n - 1 - i;
}

static uint32_t from_the_middle(uint32_t i, uint32_t n) {
    return (i * 7 + n / 2) % n; /* 7 divides no n of these tests */
}

static uint64_t cost_of(world *w, uint32_t n, uint32_t (*which)(uint32_t i, uint32_t n)) {
    uint64_t before = w->rt->visits;
    owner *o = owner_new(w, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_false(o->joined);
        end_one(o, which(i, n), EBB_OK);
    }
    assert_true(o->joined);
    assert_int_equal(o->outcome, EBB_OK);
    return w->rt->visits - before;
}

static void regions_that_end_one_after_the_other_are_waited_for_in_so_many_steps(void **state) {
    static uint32_t (*const orders[])(uint32_t, uint32_t) = {first_first, last_first, from_the_middle};
    world *w = *state;
    for (size_t k = 0; k < 3; k++) {
        uint64_t few = cost_of(w, FEW, orders[k]), many = cost_of(w, MANY, orders[k]);
        if (many > few * MANY / FEW * 5 / 4 || few > 10 * FEW)
            fail_msg("order %u: %u cost %u, %u cost %u", (unsigned)k, (unsigned)FEW, (unsigned)few,
                     (unsigned)MANY, (unsigned)many);
    }
}

/* ---- failures ---------------------------------------------------------------------------------- */

static void the_first_that_fails_is_the_failure_of_the_task(void **state) {
    world *w = *state;
    static const uint32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t k = 0; k < 6; k++) {
        owner *o = owner_new(w, 3);
        for (uint32_t i = 0; i < 3; i++) end_one(o, orders[k][i], i == 0 ? EBB_OK : EBB_FAILED - (int)i);
        assert_true(o->joined);
        assert_int_equal(o->outcome, EBB_FAILED - 1);
    }
}

typedef struct finalized {
    owner *of;
    ebb_region own;
    ebb_status seen;
} finalized;

static ebb_status fails_now(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_FAILED;
}

/* A finalizer that joins the region that it has opened has seen to its failure. */
static ebb_status opens_and_joins(ebb_cx *cx, void *state) {
    finalized *f = state;
    if (f->own.id == 0) {
        f->own = ebb_region_open(cx, &(ebb_region_opts){.cleanup = true, .policy = EBB_FAIL_COLLECT});
        (void)ebb_spawn(cx, f->own, fails_now, NULL);
    }
    ebb_status st = ebb_region_join(cx, f->own);
    if (st == EBB_PENDING) return st;
    f->seen = st;
    return EBB_OK;
}

static ebb_status defers(ebb_cx *cx, void *state) {
    return ebb_defer(cx, opens_and_joins, state);
}

static void a_failure_that_a_finalizer_has_joined_is_not_that_of_the_task(void **state) {
    world *w = *state;
    finalized f = {.seen = EBB_PENDING};
    ebb_task t = ebb_spawn(w->host, w->root, defers, &f, &(ebb_task_opts){.keep = true});
    world_settle(w);
    assert_int_equal(f.seen, EBB_FAILED);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

/* ---- the end of the budget ----------------------------------------------------------------------- */

static void what_is_left_is_forced_when_the_budget_of_the_task_is_over(void **state) {
    world *w = *state;
    owner *o = owner_new(w, 3);
    end_one(o, 1, EBB_OK);
    ebb_task_cancel(w->host, o->task, EBB_CANCEL_SHUTDOWN, "now");
    world_pass(w, 60 * EBB_SECOND);
    assert_true(o->joined);
    for (uint32_t i = 0; i < 3; i += 2) assert_true(o->work[i]->polls >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(regions_that_end_one_after_the_other_are_waited_for_in_so_many_steps),
        IN_WORLD(the_first_that_fails_is_the_failure_of_the_task),
        IN_WORLD(a_failure_that_a_finalizer_has_joined_is_not_that_of_the_task),
        IN_WORLD(what_is_left_is_forced_when_the_budget_of_the_task_is_over),
    };
    return cmocka_run_group_tests_name("region_owner", tests, NULL, NULL);
}
