/* Fibers and futures: a fiber awaits in place, and a fiber can be the task behind a future. */
#include "tests/support/world.h"

#include <ebb/fiber.h>
#include <ebb/future.h>

#include "fiber/fiber.h"

static uint32_t alive(world *w) {
    ebb_fiber_stats s;
    ebb_fiber_stats_of(w->rt, &s);
    return s.alive;
}

typedef struct reader {
    ebb_future *from;
    ebb_status seen;
    int64_t value;
} reader;

static ebb_status reads(ebb_cx *cx, void *arg) {
    reader *r = arg;
    ebb_value v;
    r->from = ebb_promise_new(cx, NULL, NULL);
    r->seen = ebb_await(cx, ebb_future_keep(r->from), &v);
    ebb_future_drop(r->from);
    if (r->seen == EBB_OK) r->value = v.as.i;
    return r->seen;
}

static void an_await_in_a_fiber_waits_in_place(void **state) {
    world *w = *state;
    reader r = {.seen = EBB_PENDING};
    ebb_fiber_spawn(w->host, open_region(w, w->root), reads, &r);
    world_settle(w);
    assert_int_equal(r.seen, EBB_PENDING);
    assert_int_equal(ebb_promise_settle(r.from, ebb_value_int(42)), EBB_OK);
    world_settle(w);
    assert_int_equal(r.seen, EBB_OK);
    assert_int_equal(r.value, 42);
    assert_int_equal(alive(w), 0);
}

static void a_cancel_of_the_fiber_or_of_the_future_ends_the_await(void **state) {
    world *w = *state;
    reader r = {.seen = EBB_PENDING};
    ebb_region region = open_region(w, w->root);
    ebb_task t = ebb_fiber_spawn(w->host, region, reads, &r);
    world_settle(w);
    ebb_task_cancel(w->host, t, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(r.seen, EBB_CANCELLED);
    r.seen = EBB_PENDING;
    ebb_fiber_spawn(w->host, region, reads, &r);
    world_settle(w);
    assert_true(ebb_future_cancel(r.from, EBB_CANCEL_USER));
    world_settle(w);
    assert_int_equal(r.seen, EBB_CANCELLED);
    assert_int_equal(alive(w), 0);
}

/* ---- a fiber under another poll function ------------------------------------------------------------ */

typedef struct errand {
    ebb_future *done;
    ebb_status fiber_returns, seen;
    bool obeys, over;
} errand;

static ebb_status runs(ebb_cx *cx, void *arg) {
    errand *e = arg;
    ebb_sleeper nap = {.due = 0};
    ebb_status st = ebb_sleep(cx, &nap, EBB_MS);
    while (st == EBB_CANCELLED && !e->obeys) (void)ebb_fiber_park(cx);
    e->over = true;
    return st == EBB_OK ? e->fiber_returns : st;
}

/* Sends somebody on the errand and waits for the future of it. */
static ebb_status sends(ebb_cx *cx, void *arg) {
    errand *e = arg;
    e->done = ebb_fiber_go(cx, ebb_cx_region(cx), runs, e);
    e->seen = ebb_await(cx, ebb_future_keep(e->done), NULL);
    ebb_future_drop(e->done);
    return e->seen;
}

static void a_fiber_can_be_a_future(void **state) {
    world *w = *state;
    ebb_status ends[] = {EBB_OK, EBB_FAILED};
    for (int i = 0; i < 2; i++) {
        errand e = {.fiber_returns = ends[i], .seen = EBB_PENDING};
        ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
        ebb_fiber_spawn(w->host, r, sends, &e);
        world_settle(w);
        assert_int_equal(alive(w), 2);
        world_pass(w, EBB_MS);
        assert_int_equal(e.seen, ends[i]);
        assert_true(e.over);
        assert_int_equal(alive(w), 0);
    }
}

static void cancelling_that_future_cancels_the_fiber(void **state) {
    world *w = *state;
    errand e = {.obeys = true, .seen = EBB_PENDING};
    ebb_fiber_spawn(w->host, open_region(w, w->root), sends, &e);
    world_settle(w);
    assert_true(ebb_future_cancel(e.done, EBB_CANCEL_USER));
    world_settle(w);
    assert_int_equal(e.seen, EBB_CANCELLED);
    assert_true(e.over);
    assert_int_equal(alive(w), 0);
}

static void a_fiber_of_a_future_that_is_abandoned_gives_its_stack_back(void **state) {
    world *w = *state;
    errand e = {.seen = EBB_PENDING};
    ebb_region r = open_region(w, w->root);
    ebb_fiber_spawn(w->host, r, sends, &e);
    world_settle(w);
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_int_equal(e.seen, EBB_CANCELLED);
    assert_false(e.over);
    assert_int_equal(report_of(w, r).abandoned, 1);
    assert_int_equal(alive(w), 0);
}

static ebb_status naps_long(ebb_cx *cx, void *arg) {
    ebb_sleeper nap = {.due = 0};
    (void)arg;
    return ebb_sleep(cx, &nap, EBB_SECOND);
}

static ebb_status polls_a_fiber(ebb_cx *cx, void *state) {
    return ebb__fiber_poll(cx, state);
}

static ebb_task spawn_guest(world *w) {
    ebb__fiber *f;
    assert_int_equal(ebb__fiber_new(w->rt, naps_long, NULL, EBB_SITE, &f), EBB_OK);
    return ebb_spawn(w->host, w->root, polls_a_fiber, f);
}

/* Takes the stack that was given back last, and leaves nothing as it was. */
static ebb_status scribbles(ebb_cx *cx, void *arg) {
    char all[4096];
    memset(all, 0xa5, sizeof all);
    (void)cx;
    return all[*(int *)arg] != 0 ? EBB_OK : EBB_FAILED;
}

/* The tasks lie so that many guests share a chain, and chains are made more while they are in use. */
static void each_task_that_ends_takes_its_own_fiber_along(void **state) {
    world *w = *state;
    enum { N = 300 };
    int zero = 0;
    ebb_task *t = world_keep(w, N * sizeof *t);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 63; k++) (void)puppet_start(w, w->root, HEEDING);
        t[i] = i % 5 == 0 ? ebb_fiber_spawn(w->host, w->root, naps_long, NULL) : spawn_guest(w);
        if (i % 7 == 0) world_settle(w);
    }
    world_settle(w);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t which = i * 7 % N;
        ebb_task_cancel(w->host, t[which], EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(alive(w), N - 1 - i);
        assert_int_equal(phase_of(w, t[which]), 0);
        ebb_fiber_spawn(w->host, w->root, scribbles, &zero);
        world_settle(w);
    }
    assert_int_equal(stats_of(w).timers, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(an_await_in_a_fiber_waits_in_place),
        IN_WORLD(a_cancel_of_the_fiber_or_of_the_future_ends_the_await),
        IN_WORLD(a_fiber_can_be_a_future),
        IN_WORLD(cancelling_that_future_cancels_the_fiber),
        IN_WORLD(a_fiber_of_a_future_that_is_abandoned_gives_its_stack_back),
        IN_UNTRACED_WORLD(each_task_that_ends_takes_its_own_fiber_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
