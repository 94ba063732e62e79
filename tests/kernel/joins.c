/* Who waits for a task in a join: one at a time, and nobody who has left. */
#include "tests/support/world.h"

static ebb_status for_ever(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

static ebb_status at_once(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_OK;
}

typedef struct joiner {
    ebb_task of[2];
    uint32_t at, polls;
    bool leaves; /* after its first poll: to the second, or, if there is none, for good */
    ebb_region region;
    ebb_status st;
} joiner;

static ebb_status join(ebb_cx *cx, void *state) {
    joiner *j = state;
    if (j->leaves && j->polls++ > 0) j->at = 1;
    if (j->of[j->at].id == 0) return EBB_OK;
    j->st = ebb_task_join(cx, j->of[j->at]);
    return j->st == EBB_PENDING ? EBB_PENDING : EBB_OK;
}

static ebb_status join_region(ebb_cx *cx, void *state) {
    joiner *j = state;
    if (j->polls++ == 0) {
        j->region = ebb_region_open(cx, NULL);
        (void)ebb_spawn(cx, j->region, for_ever, NULL);
    }
    j->st = ebb_region_join(cx, j->region);
    return j->st == EBB_PENDING || ebb_cancelled(cx) ? j->st : EBB_OK;
}

/* One that has joined and ended; its slot then has so many users that as much of its name as is remembered comes
 * again; the last of them waits for something else. */
static void a_joiner_that_has_ended_is_not_taken_for_another(void **state) {
    world *w = *state;
    for (int other = 0; other < 2; other++) {
        for (int reuses = 250; reuses < 260; reuses++) {
            ebb_task t = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
            ebb_task t2 = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
            joiner left = {.of = {t}, .leaves = true}, last = {.of = {t2}}, mine = {.of = {t}};
            ebb_task a = ebb_spawn(w->host, w->root, join, &left);
            world_settle(w);
            assert_int_equal(left.st, EBB_PENDING);
            assert_int_equal(ebb_task_wake(w->host, a), EBB_OK);
            world_settle(w);
            for (int i = 0; i < reuses; i++) {
                (void)ebb_spawn(w->host, w->root, at_once, NULL);
                world_settle(w);
            }
            ebb_task c = ebb_spawn(w->host, w->root, other ? join : join_region, &last);
            world_settle(w);
            ebb_task m = ebb_spawn(w->host, w->root, join, &mine);
            world_settle(w);
            assert_int_equal(mine.st, EBB_PENDING);
            ebb_task all[] = {t, t2, c, m};
            for (int i = 0; i < 4; i++) ebb_task_cancel(w->host, all[i], EBB_CANCEL_USER, "enough");
            world_settle(w);
        }
    }
}

static void a_joiner_that_has_gone_on_to_another_task_has_left_the_first(void **state) {
    world *w = *state;
    ebb_task t = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
    ebb_task t2 = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
    joiner left = {.of = {t, t2}, .leaves = true}, mine = {.of = {t}};
    ebb_task a = ebb_spawn(w->host, w->root, join, &left);
    world_settle(w);
    assert_int_equal(ebb_task_wake(w->host, a), EBB_OK);
    world_settle(w);
    assert_int_equal(left.at, 1);
    (void)ebb_spawn(w->host, w->root, join, &mine);
    world_settle(w);
    assert_int_equal(mine.st, EBB_PENDING);
    ebb_task_cancel(w->host, t, EBB_CANCEL_USER, "enough");
    ebb_task_cancel(w->host, t2, EBB_CANCEL_USER, "enough");
    world_settle(w);
    assert_int_equal(mine.st, EBB_CANCELLED);
    assert_int_equal(left.st, EBB_CANCELLED);
}

static void two_can_not_join_the_same(void **state) {
    world *w = *state;
    ebb_task t = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
    joiner first = {.of = {t}}, second = {.of = {t}};
    ebb_task a = ebb_spawn(w->host, w->root, join, &first);
    world_settle(w);
    (void)ebb_spawn(w->host, w->root, join, &second);
    world_settle(w);
    assert_int_equal(second.st, EBB_ERR_BUSY);
    assert_int_equal(ebb_task_wake(w->host, a), EBB_OK); /* woken for nothing, it still waits there */
    world_settle(w);
    assert_int_equal(first.st, EBB_PENDING);
    ebb_task_cancel(w->host, t, EBB_CANCEL_USER, "enough");
    world_settle(w);
    assert_int_equal(first.st, EBB_CANCELLED);
}

typedef struct leaver {
    ebb_task of, child;
    ebb_status st;
    bool done; /* its region may close */
} leaver;

static ebb_status ignore_cancel(ebb_cx *cx, void *state) {
    (void)cx;
    return ((const leaver *)state)->done ? EBB_OK : EBB_PENDING;
}

/* Returns without waiting for what it has joined, and leaves a region open. */
static ebb_status join_and_return(ebb_cx *cx, void *state) {
    leaver *l = state;
    l->st = ebb_task_join(cx, l->of);
    l->child = ebb_spawn(cx, ebb_region_open(cx, NULL), ignore_cancel, l);
    return EBB_OK;
}

static ebb_status join_in_finalizer(ebb_cx *cx, void *state) {
    return ebb_defer(cx, join_and_return, state);
}

static const ebb_poll_fn leavers[] = {join_and_return, join_in_finalizer};

/* Has joined `l->of` and returned, and now waits for its region. */
static ebb_task returned_joiner(world *w, ebb_poll_fn body, leaver *l) {
    l->of = ebb_spawn(w->host, w->root, for_ever, NULL, &(ebb_task_opts){.keep = true});
    world_settle(w);
    ebb_task a = ebb_spawn(w->host, w->root, body, l);
    world_settle(w);
    assert_int_equal(l->st, EBB_PENDING);
    return a;
}

static void let_it_end(world *w, ebb_task a, leaver *l) {
    ebb_task_info info;
    assert_int_equal(ebb_task_info_of(w->host, a, &info), EBB_OK);
    l->done = true;
    assert_int_equal(ebb_task_wake(w->host, l->child), EBB_OK);
    world_settle(w);
    assert_int_equal(ebb_task_info_of(w->host, a, &info), EBB_ERR_STALE);
}

static void a_joiner_that_has_returned_is_in_nobodys_way(void **state) {
    world *w = *state;
    for (int i = 0; i < 2; i++) {
        leaver left = {.done = false};
        ebb_task a = returned_joiner(w, leavers[i], &left);
        joiner mine = {.of = {left.of}};
        (void)ebb_spawn(w->host, w->root, join, &mine);
        world_settle(w);
        assert_int_equal(mine.st, EBB_PENDING);
        ebb_task_cancel(w->host, left.of, EBB_CANCEL_USER, "enough");
        world_settle(w);
        assert_int_equal(mine.st, EBB_CANCELLED);
        let_it_end(w, a, &left);
    }
}

static void a_joiner_that_has_returned_is_not_woken_when_the_other_ends(void **state) {
    world *w = *state;
    for (int i = 0; i < 2; i++) {
        leaver left = {.done = false};
        ebb_task a = returned_joiner(w, leavers[i], &left);
        uint64_t polls = stats_of(w).polls;
        ebb_task_cancel(w->host, left.of, EBB_CANCEL_USER, "enough");
        world_settle(w);
        assert_int_equal(stats_of(w).polls, polls + 1); /* of the one that ends */
        let_it_end(w, a, &left);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_joiner_that_has_ended_is_not_taken_for_another),
        IN_WORLD(a_joiner_that_has_gone_on_to_another_task_has_left_the_first),
        IN_WORLD(two_can_not_join_the_same),
        IN_WORLD(a_joiner_that_has_returned_is_in_nobodys_way),
        IN_WORLD(a_joiner_that_has_returned_is_not_woken_when_the_other_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
