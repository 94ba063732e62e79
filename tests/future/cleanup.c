/* Cleanup is protected: what a release or a finally has begun goes on to its end, whoever cancels what; only
 * force ends it. */
#include "tests/support/future_world.h"

enum { AT_ONCE, WHEN_CANCELLED, WAYS };

typedef struct scene {
    future_world *fw;
    ebb_region outer, region;
    ebb_future *result, *used, *cleanup;
    bool deep;            /* it returns a tree of futures, and no single one */
    ebb_future *needs;    /* and it waits for this too */
    uint64_t takes;       /* how long the cleanup takes */
    uint32_t begun, over; /* cleanups */
    probe probe;
    ebb_status awaited;
} scene;

static ebb_value note_over(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    ((scene *)arg)->over++;
    return ebb_value_none();
}

/* Some inputs of it end early, so that it is queued now and then. */
static ebb_future *tree(ebb_cx *cx, scene *s) {
    ebb_future *two[] = {ebb_after(cx, s->takes / 2), ebb_within(cx, ebb_after(cx, s->takes), EBB_FOREVER)};
    ebb_future *rest[] = {ebb_all(cx, 2, two), ebb_future_ready(cx, ebb_value_none()),
                          ebb_after(cx, s->takes)};
    return ebb_all_settled(cx, 3, rest);
}

static ebb_future *clean_up(ebb_cx *cx, void *arg) {
    scene *s = arg;
    s->begun++;
    ebb_future *f = s->deep ? tree(cx, s) : ebb_after(cx, s->takes);
    if (s->needs != NULL) {
        ebb_future *two[] = {f, s->needs};
        f = ebb_all(cx, 2, two);
    }
    f = probe_on(&s->probe, ebb_map(cx, f, note_over, s));
    s->cleanup = ebb_future_keep(f);
    return f;
}

static ebb_future *use(ebb_cx *cx, ebb_value *v, void *arg) {
    scene *s = arg;
    (void)v;
    return s->used = ebb_promise_new(cx, NULL, NULL);
}

static ebb_future *release(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return clean_up(cx, arg);
}

static ebb_status make_bracket(ebb_cx *cx, void *state) {
    scene *s = state;
    s->result = ebb_future_keep(ebb_bracket(cx, ebb_future_ready(cx, ebb_value_none()), use, release, s));
    return EBB_OK;
}

static ebb_status make_finally(ebb_cx *cx, void *state) {
    scene *s = state;
    s->used = ebb_promise_new(cx, NULL, NULL);
    s->result = ebb_future_keep(ebb_finally(cx, s->used, clean_up, s));
    return EBB_OK;
}

/* A region with a bracket, or a finally, whose cleanup has begun: because it was time, or because somebody has
 * cancelled it. */
static void scene_begin(scene *s, future_world *fw, ebb_poll_fn make, int way) {
    s->fw = fw;
    if (s->takes == 0) s->takes = 20 * EBB_MS;
    s->outer = ebb_region_open(fw->host, NULL);
    s->region = ebb_region_open(fw->host, &(ebb_region_opts){.parent = s->outer});
    ebb_spawn(fw->host, s->region, make, s);
    future_settle(fw);
    if (way == AT_ONCE) assert_int_equal(ebb_promise_settle(s->used, ebb_value_none()), EBB_OK);
    else assert_true(ebb_future_cancel(s->result, EBB_CANCEL_USER));
    future_settle(fw);
    assert_int_equal(s->begun, 1);
    probe_pending(&s->probe);
    future_pass(fw, EBB_MS);
}

static void scene_end(scene *s) {
    ebb_region_close(s->fw->host, s->outer);
    future_pass(s->fw, 20 * EBB_SECOND);
    assert_int_equal(state_of(s->fw->world, s->outer), EBB_REGION_CLOSED);
    assert_int_equal(s->begun, 1);
    future_collect(s->fw);
}

static void it_came_to_its_end(scene *s) {
    future_collect(s->fw);
    probe_pending(&s->probe);
    assert_int_not_equal(state_of(s->fw->world, s->region), EBB_REGION_CLOSED);
    future_pass(s->fw, s->takes);
    probe_completed(&s->probe, 0);
    assert_int_equal(s->over, 1);
}

typedef void (*cancel_fn)(scene *s);

static void cancel_region(scene *s) {
    ebb_region_cancel(s->fw->host, s->region, EBB_CANCEL_USER, "enough");
}

static void cancel_parent(scene *s) {
    ebb_region_cancel(s->fw->host, s->outer, EBB_CANCEL_USER, "enough");
}

static void cancel_again_and_again(scene *s) {
    cancel_region(s);
    future_settle(s->fw);
    ebb_region_cancel(s->fw->host, s->region, EBB_CANCEL_TIMEOUT, "late");
    future_settle(s->fw);
    ebb_region_cancel(s->fw->host, s->outer, EBB_CANCEL_SHUTDOWN, "the end");
}

static void cancel_result(scene *s) {
    (void)ebb_future_cancel(s->result, EBB_CANCEL_USER);
    future_settle(s->fw);
    cancel_region(s);
}

static void cancel_cleanup(scene *s) {
    assert_false(ebb_future_cancel(s->cleanup, EBB_CANCEL_USER));
    assert_int_equal(ebb_future_state_of(s->cleanup), EBB_FUTURE_PENDING);
    cancel_region(s);
}

static void close_then_cancel(scene *s) {
    ebb_region_close(s->fw->host, s->region);
    future_settle(s->fw);
    cancel_region(s);
}

static void a_cleanup_that_has_begun_survives_every_cancel(void **state) {
    future_world *fw = *state;
    const cancel_fn cancels[] = {cancel_region, cancel_parent,  cancel_again_and_again,
                                 cancel_result, cancel_cleanup, close_then_cancel};
    const ebb_poll_fn makes[] = {make_bracket, make_finally};
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < 8; k++) {
            scene s = {.deep = k & 1};
            scene_begin(&s, fw, makes[k >> 1 & 1], (int)(k >> 2));
            cancels[i](&s);
            future_settle(fw);
            assert_int_equal(ebb_future_status_of(s.result), EBB_CANCELLED); /* its readers are free */
            it_came_to_its_end(&s);
            scene_end(&s);
        }
    }
}

static void a_cleanup_is_waited_for_when_its_region_closes(void **state) {
    future_world *fw = *state;
    for (int way = 0; way < WAYS; way++) {
        scene s = {.deep = true};
        scene_begin(&s, fw, make_bracket, way);
        ebb_region_close(fw->host, s.region);
        future_settle(fw);
        it_came_to_its_end(&s);
        assert_int_equal(ebb_future_status_of(s.result), way == AT_ONCE ? EBB_OK : EBB_CANCELLED);
        scene_end(&s);
    }
}

static void force_ends_a_cleanup(void **state) {
    future_world *fw = *state;
    const ebb_poll_fn makes[] = {make_bracket, make_finally};
    for (size_t k = 0; k < 16; k++) {
        scene s = {.deep = k & 1, .takes = 60 * EBB_SECOND};
        scene_begin(&s, fw, makes[k >> 1 & 1], (int)(k >> 2 & 1));
        if (k & 8) ebb_region_force(fw->host, s.region);
        else cancel_region(&s); /* and its budget of 5 s passes */
        future_pass(fw, k & 8 ? EBB_MS : 4 * EBB_SECOND);
        if (!(k & 8)) probe_pending(&s.probe);
        future_pass(fw, 2 * EBB_SECOND);
        assert_int_equal(s.probe.cancels, 1);
        assert_int_equal(s.over, 0);
        assert_int_equal(state_of(fw->world, s.region), EBB_REGION_CLOSED);
        scene_end(&s);
    }
}

/* ---- beside a masked task ------------------------------------------------------------------------------------- */

typedef struct masked {
    EBB_TASK_STATE;
    ebb_future *f;
    uint64_t span;
    ebb_status st;
} masked;

static ebb_status await_masked(ebb_cx *cx, void *state) {
    masked *m = state;
    EBB_BEGIN(m);
    (void)ebb_mask(cx);
    m->f = ebb_future_keep(ebb_after(cx, m->span));
    EBB_AWAIT(m, m->st, ebb_await(cx, m->f, NULL));
    (void)ebb_unmask(cx);
    EBB_END(m);
}

/* When the task has ended nobody is masked any more; the cleanup still is. */
static void a_cleanup_outlives_a_masked_task(void **state) {
    future_world *fw = *state;
    scene s = {.deep = true};
    masked m = {.span = 5 * EBB_MS};
    scene_begin(&s, fw, make_bracket, AT_ONCE);
    ebb_spawn(fw->host, s.region, await_masked, &m);
    future_settle(fw);
    cancel_region(&s);
    future_pass(fw, 10 * EBB_MS);
    assert_int_equal(m.st, EBB_OK);
    it_came_to_its_end(&s);
    scene_end(&s);
}

/* A cleanup that begins after the cancel, and waits for what was spared for a masked task: which is abandoned
 * by that. */
static void what_was_spared_for_a_masked_task_is_kept_for_a_cleanup(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw, .takes = 20 * EBB_MS};
    masked m = {.span = 30 * EBB_MS};
    s.outer = ebb_region_open(fw->host, NULL);
    s.region = ebb_region_open(fw->host, &(ebb_region_opts){.parent = s.outer});
    ebb_spawn(fw->host, s.region, make_bracket, &s);
    ebb_task t = ebb_spawn(fw->host, s.region, await_masked, &m, &(ebb_task_opts){.keep = true});
    future_settle(fw);
    s.needs = m.f;
    (void)ebb_future_share(m.f);
    cancel_region(&s);
    future_settle(fw);
    assert_int_equal(s.begun, 1);
    ebb_task_force(fw->host, t);
    future_pass(fw, 10 * EBB_MS);
    it_came_to_its_end(&s);
    scene_end(&s);
}

/* ---- as a user writes it -------------------------------------------------------------------------------------- */

static ebb_status await_bracket(ebb_cx *cx, void *arg) {
    scene *s = arg;
    s->awaited =
        ebb_await(cx, ebb_bracket(cx, ebb_future_ready(cx, ebb_value_none()), use, release, s), NULL);
    return s->awaited;
}

static void a_fiber_that_is_cancelled_while_it_awaits_leaves_the_release_to_its_region(void **state) {
    future_world *fw = *state;
    scene s = {.fw = fw, .takes = 20 * EBB_MS, .awaited = EBB_PENDING};
    s.outer = s.region = ebb_region_open(fw->host, NULL);
    ebb_fiber_spawn(fw->host, s.region, await_bracket, &s);
    future_settle(fw);
    assert_int_equal(ebb_promise_settle(s.used, ebb_value_none()), EBB_OK);
    future_pass(fw, 5 * EBB_MS);
    cancel_region(&s);
    future_settle(fw);
    assert_int_equal(s.awaited, EBB_CANCELLED); /* it is free at once */
    it_came_to_its_end(&s);
    scene_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_cleanup_that_has_begun_survives_every_cancel),
        IN_FUTURES(a_cleanup_is_waited_for_when_its_region_closes),
        IN_FUTURES(force_ends_a_cleanup),
        IN_FUTURES(a_cleanup_outlives_a_masked_task),
        IN_FUTURES(what_was_spared_for_a_masked_task_is_kept_for_a_cleanup),
        IN_FUTURES(a_fiber_that_is_cancelled_while_it_awaits_leaves_the_release_to_its_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
