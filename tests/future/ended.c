/* The ends of tasks, regions and workflows as futures: heard of once, by any number, whatever the end was; the outcome
 * stays where it is. */
#include "future/heap.h"
#include "tests/support/future_world.h"

static ebb_status st_of(future_world *fw, ebb_future *f) {
    future_settle(fw);
    return ebb_future_status_of(f);
}

static ebb_status nap(ebb_cx *cx, void *state) {
    return ebb_sleep(cx, state, EBB_MS);
}

static ebb_status fail_now(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_FAILED;
}

static ebb_status stay(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

static ebb_status stay_for_ever(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

static void the_end_of_a_task_is_heard_by_all_who_wait(void **state) {
    future_world *fw = *state;
    ebb_sleeper sleeper = {.due = 0};
    ebb_task t = ebb_spawn(fw->host, fw->root, nap, &sleeper, &(ebb_task_opts){.keep = true});
    ebb_future *f[3];
    for (int i = 0; i < 3; i++) f[i] = ebb_task_ended(fw->host, t);
    assert_int_equal(st_of(fw, f[0]), EBB_PENDING);
    (void)ebb_future_cancel(f[1], EBB_CANCEL_USER); /* changes nothing for the others */
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, f[0], NULL), EBB_OK);
    assert_int_equal(ebb_await(fw->host, f[1], NULL), EBB_CANCELLED);
    assert_int_equal(ebb_await(fw->host, f[2], NULL), EBB_OK);
    assert_int_equal(st_of(fw, ebb_task_ended(fw->host, t)), EBB_OK); /* kept, and over */
    assert_int_equal(ebb_task_join(fw->host, t), EBB_OK);
    assert_int_equal(st_of(fw, ebb_task_ended(fw->host, t)), EBB_OK); /* gone */
}

static void a_task_ends_in_whatever_way(void **state) {
    future_world *fw = *state;
    ebb_region region = ebb_region_open(fw->host, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    const ebb_poll_fn polls[] = {fail_now, stay, stay, stay_for_ever};
    ebb_task t[4];
    ebb_future *f[4];
    for (int i = 0; i < 4; i++) {
        t[i] = ebb_spawn(fw->host, region, polls[i], NULL);
        f[i] = ebb_task_ended(fw->host, t[i]);
    }
    ebb_task_cancel(fw->host, t[1], EBB_CANCEL_USER, NULL); /* before its first poll */
    assert_int_equal(st_of(fw, f[0]), EBB_OK);
    assert_int_equal(st_of(fw, f[1]), EBB_OK);
    assert_int_equal(st_of(fw, f[2]), EBB_PENDING);
    ebb_task_force(fw->host, t[2]);
    assert_int_equal(st_of(fw, f[2]), EBB_OK);
    ebb_task_force(fw->host, t[3]);
    for (int i = 0; i < 20; i++) (void)ebb_task_wake(fw->host, t[3]);
    future_pass(fw, EBB_SECOND);
    assert_int_equal(st_of(fw, f[3]), EBB_OK); /* abandoned */
    ebb_region_close(fw->host, region);
    future_settle(fw);
    assert_int_equal(ebb_region_join(fw->host, region), EBB_FAILED);
}

static ebb_status wait_for_itself(ebb_cx *cx, void *state) {
    ebb_status *st = state;
    st[0] = ebb_future_status_of(ebb_task_ended(cx, ebb_cx_task(cx)));
    st[1] = ebb_future_status_of(ebb_region_closed(cx, ebb_cx_region(cx)));
    st[2] = ebb_future_status_of(ebb_region_closed(cx, ebb_runtime_root(ebb_cx_runtime(cx))));
    return EBB_OK;
}

static void nobody_waits_for_its_own_end(void **state) {
    future_world *fw = *state;
    ebb_status st[3];
    ebb_region region = open_region(fw->world, fw->root);
    (void)ebb_spawn(fw->host, region, wait_for_itself, st);
    future_settle(fw);
    for (int i = 0; i < 3; i++) assert_int_equal(st[i], EBB_ERR_INVALID);
    assert_int_equal(st_of(fw, ebb_task_ended(fw->host, (ebb_task){0})), EBB_ERR_INVALID);
    ebb_region_cancel(fw->host, region, EBB_CANCEL_USER, NULL);
}

/* ---- regions ---------------------------------------------------------------------------------------------- */

static void a_region_of_its_waiter_closes_when_its_work_has_ended(void **state) {
    future_world *fw = *state;
    ebb_sleeper sleeper = {.due = 0};
    ebb_region region = open_region(fw->world, fw->root);
    (void)ebb_spawn(fw->host, region, nap, &sleeper);
    ebb_future *f = ebb_region_closed(fw->host, region);
    ebb_future *late = ebb_within(fw->host, ebb_region_closed(fw->host, region), EBB_US);
    assert_int_equal(st_of(fw, f), EBB_PENDING);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, late, NULL), EBB_TIMEOUT);
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
    assert_int_equal(state_of(fw->world, region), EBB_REGION_CLOSED);
    assert_int_equal(st_of(fw, ebb_region_closed(fw->host, region)), EBB_OK);
    assert_int_equal(ebb_region_join(fw->host, region), EBB_OK);
    assert_int_equal(st_of(fw, ebb_region_closed(fw->host, region)), EBB_OK);
}

static ebb_status watch_other(ebb_cx *cx, void *state) {
    ebb_future **f = state;
    if (f[0] == NULL) f[0] = ebb_region_closed(cx, *(ebb_region *)(void *)f[1]);
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

/* Watching a region of somebody else does not close it. */
static void a_region_of_another_closes_when_its_owner_lets_it(void **state) {
    future_world *fw = *state;
    ebb_region mine = open_region(fw->world, fw->root), other = open_region(fw->world, fw->root);
    void *pair[2] = {NULL, &mine};
    (void)ebb_spawn(fw->host, other, watch_other, pair);
    future_settle(fw);
    assert_int_equal(state_of(fw->world, mine), EBB_REGION_OPEN);
    assert_int_equal(ebb_future_status_of(pair[0]), EBB_PENDING);
    ebb_region_cancel(fw->host, mine, EBB_CANCEL_USER, NULL);
    assert_int_equal(st_of(fw, pair[0]), EBB_OK);
    ebb_region_cancel(fw->host, other, EBB_CANCEL_USER, NULL);
    future_settle(fw);
    assert_int_equal(state_of(fw->world, other), EBB_REGION_CLOSED);
}

/* Watchers that are gone, one way or the other, are not told. */
static void a_watcher_may_end_before_what_it_watches(void **state) {
    future_world *fw = *state;
    for (int how = 0; how < 4; how++) {
        ebb_region mine = open_region(fw->world, fw->root), other = open_region(fw->world, fw->root);
        void *pair[2] = {NULL, &mine};
        (void)ebb_spawn(fw->host, other, watch_other, pair);
        future_settle(fw);
        if (how == 0) ebb_region_close(fw->host, other);
        if (how <= 1) ebb_region_cancel(fw->host, other, EBB_CANCEL_USER, NULL);
        if (how == 2) ebb_region_force(fw->host, other);
        if (how == 3) ebb_future_drop(pair[0]);
        future_settle(fw);
        future_collect(fw);
        ebb_region_cancel(fw->host, mine, EBB_CANCEL_USER, NULL);
        ebb_region_cancel(fw->host, other, EBB_CANCEL_USER, NULL);
        future_settle(fw);
        assert_int_equal(state_of(fw->world, mine), EBB_REGION_CLOSED);
        assert_int_equal(state_of(fw->world, other), EBB_REGION_CLOSED);
    }
}

/* ---- together --------------------------------------------------------------------------------------------- */

static void a_select_over_a_crowd_of_ends_leaves_no_waiters(void **state) {
    future_world *fw = *state;
    enum { ROUNDS = 6 };
    const size_t n = future_crowd(10000, 100);
    ebb_region region = open_region(fw->world, fw->root);
    ebb_task *t = calloc(n, sizeof *t);
    ebb_future **f = calloc(n, sizeof(ebb_future *));
    int64_t blocks[ROUNDS];
    ebb_value v;
    for (size_t i = 0; i < n; i++) t[i] = ebb_spawn(fw->host, region, stay, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        ebb_sleeper sleeper = {.due = 0};
        ebb_task first = ebb_spawn(fw->host, region, nap, &sleeper);
        for (size_t i = 0; i < n; i++) f[i] = ebb_task_ended(fw->host, i == n / 2 ? first : t[i]);
        ebb_future *won = ebb_select(fw->host, n, f);
        future_pass(fw, 2 * EBB_MS);
        assert_int_equal(ebb_await(fw->host, won, &v), EBB_OK);
        assert_int_equal(ebb_selected_of(&v)->index, n / 2);
        ebb_value_discard(fw->host, v);
        assert_int_equal(ebb__heap_at(fw->rt)->ends.n, 0); /* not only with the next collection */
        future_collect(fw);
        blocks[round] = fw->memory->live;
    }
    assert_int_equal(blocks[1], blocks[ROUNDS - 1]);
    assert_int_equal(future_stats(fw).live, 0);
    ebb_region_cancel(fw->host, region, EBB_CANCEL_USER, NULL);
    future_settle(fw);
    assert_int_equal(state_of(fw->world, region), EBB_REGION_CLOSED);
    free(t);
    free((void *)f);
}

/* One of everything that can be waited for, none of which is there yet. */
enum { ITEM, PERMIT, VERSION, END, CLOSE, ENDS };

typedef struct things {
    ebb_chan *chan;
    ebb_sem sem;
    ebb_broadcast *broadcast;
    ebb_region region; /* of the task */
    ebb_region work;
    ebb_task task;
} things;

static void things_new(future_world *fw, things *t, ebb_future *f[ENDS]) {
    *t = (things){.region = open_region(fw->world, fw->root), .work = open_region(fw->world, fw->root)};
    assert_int_equal(ebb_chan_new(fw->rt, 1, sizeof(uint64_t), &t->chan), EBB_OK);
    assert_int_equal(ebb_broadcast_new(fw->rt, sizeof(uint64_t), &t->broadcast), EBB_OK);
    ebb_sem_init(&t->sem, 0);
    t->task = ebb_spawn(fw->host, t->region, stay, NULL);
    (void)ebb_spawn(fw->host, t->work, stay, NULL);
    f[ITEM] = ebb_chan_recv_future(fw->host, t->chan);
    f[PERMIT] = ebb_sem_acquire_future(fw->host, &t->sem);
    f[VERSION] = ebb_broadcast_next_future(fw->host, t->broadcast, 0);
    f[END] = ebb_task_ended(fw->host, t->task);
    f[CLOSE] = ebb_region_closed(fw->host, t->work);
}

static void thing_comes(future_world *fw, things *t, int which) {
    uint64_t item = 7;
    if (which == ITEM) assert_int_equal(ebb_chan_try_send(fw->host, t->chan, &item), EBB_OK);
    if (which == PERMIT) ebb_sem_release(fw->host, &t->sem);
    if (which == VERSION) assert_int_equal(ebb_broadcast_set(fw->host, t->broadcast, &item), EBB_OK);
    if (which == END) ebb_task_cancel(fw->host, t->task, EBB_CANCEL_USER, NULL);
    if (which == CLOSE) ebb_region_cancel(fw->host, t->work, EBB_CANCEL_USER, NULL);
    future_settle(fw);
}

/* Nobody waits any more: what comes now stays where it is. */
static void things_are_free(future_world *fw, things *t, bool has_item, bool has_permit) {
    uint64_t item = 0;
    if (!has_item) thing_comes(fw, t, ITEM);
    if (!has_permit) thing_comes(fw, t, PERMIT);
    assert_int_equal(ebb_chan_length(t->chan), 1);
    assert_int_equal(ebb_chan_try_recv(fw->host, t->chan, &item), EBB_OK);
    assert_int_equal(item, 7);
    assert_int_equal(t->sem.free, 1);
}

static void things_free(future_world *fw, things *t) {
    ebb_region_cancel(fw->host, t->region, EBB_CANCEL_USER, NULL);
    ebb_region_cancel(fw->host, t->work, EBB_CANCEL_USER, NULL);
    future_settle(fw);
    ebb_chan_free(t->chan);
    ebb_broadcast_free(t->broadcast);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

static void whichever_is_first_the_others_leave_no_waiter(void **state) {
    future_world *fw = *state;
    for (int which = 0; which < 3 * ENDS; which++) {
        things t;
        ebb_future *f[ENDS], *one;
        ebb_value v;
        things_new(fw, &t, f);
        one = which < ENDS       ? ebb_race(fw->host, ENDS, f)
              : which < 2 * ENDS ? ebb_any(fw->host, ENDS, f)
                                 : ebb_select(fw->host, ENDS, f);
        future_settle(fw);
        thing_comes(fw, &t, which % ENDS);
        assert_int_equal(ebb_await(fw->host, one, &v), EBB_OK);
        if (which >= 2 * ENDS) assert_int_equal(ebb_selected_of(&v)->index, which % ENDS);
        ebb_value_discard(fw->host, v); /* a claim goes back */
        future_settle(fw);
        things_are_free(fw, &t, which % ENDS == ITEM, which % ENDS == PERMIT);
        things_free(fw, &t);
    }
}

static void all_of_them_end_or_are_cancelled_together(void **state) {
    future_world *fw = *state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        things t;
        ebb_future *f[ENDS];
        ebb_value v;
        things_new(fw, &t, f);
        ebb_future *all = ebb_all(fw->host, ENDS, f);
        for (int which = 0; which < ENDS - cancelled; which++) {
            assert_int_equal(st_of(fw, all), EBB_PENDING);
            thing_comes(fw, &t, which);
        }
        if (cancelled) (void)ebb_future_cancel(all, EBB_CANCEL_USER);
        future_settle(fw);
        assert_int_equal(ebb_await(fw->host, all, &v), cancelled ? EBB_CANCELLED : EBB_OK);
        if (!cancelled) ebb_value_discard(fw->host, v);
        future_settle(fw);
        things_are_free(fw, &t, true, true);
        things_free(fw, &t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_select_over_a_crowd_of_ends_leaves_no_waiters),
        IN_FUTURES(whichever_is_first_the_others_leave_no_waiter),
        IN_FUTURES(all_of_them_end_or_are_cancelled_together),
        IN_FUTURES(the_end_of_a_task_is_heard_by_all_who_wait),
        IN_FUTURES(a_task_ends_in_whatever_way),
        IN_FUTURES(nobody_waits_for_its_own_end),
        IN_FUTURES(a_region_of_its_waiter_closes_when_its_work_has_ended),
        IN_FUTURES(a_region_of_another_closes_when_its_owner_lets_it),
        IN_FUTURES(a_watcher_may_end_before_what_it_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
