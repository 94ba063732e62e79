/* Broadcasts: a watcher gets the latest value that it has not seen, and never misses the last. */
#include "tests/support/world.h"

static ebb_broadcast *broadcast_of(world *w) {
    ebb_broadcast *b = NULL;
    assert_int_equal(ebb_broadcast_new(w->rt, sizeof(uint64_t), &b), EBB_OK);
    return b;
}

static void set(world *w, ebb_broadcast *b, uint64_t value) {
    assert_int_equal(ebb_broadcast_set(w->host, b, &value), EBB_OK);
}

/* Watches until an await fails; notes what it gets. */
typedef struct watcher {
    EBB_TASK_STATE;
    ebb_broadcast *b;
    ebb_wait wait;
    uint64_t seen, item, sum;
    uint32_t got;
    ebb_status st;
    ebb_task id;
} watcher;

static ebb_status watch(ebb_cx *cx, void *state) {
    watcher *w = state;
    EBB_BEGIN(w);
    for (;;) {
        EBB_AWAIT(w, w->st, ebb_broadcast_next(cx, w->b, &w->wait, &w->seen, &w->item));
        if (w->st != EBB_OK) return w->st == EBB_ERR_CLOSED ? EBB_OK : w->st;
        w->got++;
        w->sum += w->item;
    }
    EBB_END(w);
}

static watcher *watcher_of(world *w, ebb_broadcast *b) {
    watcher *x = world_keep(w, sizeof *x);
    x->b = b;
    x->id = ebb_spawn(w->host, w->root, watch, x, &(ebb_task_opts){.keep = true});
    return x;
}

static void all_watchers_get_each_value_that_they_are_quick_enough_for(void **state) {
    world *w = *state;
    ebb_broadcast *b = broadcast_of(w);
    watcher *x[3];
    for (int i = 0; i < 3; i++) x[i] = watcher_of(w, b);
    world_settle(w);
    for (uint64_t v = 1; v <= 4; v++) {
        set(w, b, v);
        world_settle(w);
    }
    set(w, b, 5); /* and these two come at once */
    set(w, b, 6);
    world_settle(w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(x[i]->got, 5);
        assert_int_equal(x[i]->sum, 1 + 2 + 3 + 4 + 6);
        assert_int_equal(x[i]->seen, 6);
    }
    ebb_broadcast_close(w->host, b);
    world_settle(w);
    assert_int_equal(x[0]->st, EBB_ERR_CLOSED);
    ebb_broadcast_free(b);
}

static void one_that_comes_late_gets_the_latest_at_once(void **state) {
    world *w = *state;
    ebb_broadcast *b = broadcast_of(w);
    uint64_t item = 9, seen = 0;
    ebb_wait wait = {0};
    assert_int_equal(ebb_broadcast_get(b, &item), 0);
    assert_int_equal(item, 9);
    assert_int_equal(ebb_broadcast_next(w->host, b, &wait, &seen, &item), EBB_ERR_NOT_TASK);
    set(w, b, 1);
    set(w, b, 2);
    watcher *x = watcher_of(w, b);
    world_settle(w);
    assert_true(x->got == 1 && x->item == 2);
    assert_int_equal(ebb_broadcast_next(w->host, b, &wait, &seen, &item), EBB_OK);
    assert_true(item == 2 && seen == 2);
    seen = 3;
    assert_int_equal(ebb_broadcast_next(w->host, b, &wait, &seen, &item), EBB_ERR_INVALID);
    ebb_broadcast_close(w->host, b);
    seen = 1; /* what was set before the close is still there */
    assert_int_equal(ebb_broadcast_next(w->host, b, &wait, &seen, &item), EBB_OK);
    assert_int_equal(ebb_broadcast_next(w->host, b, &wait, &seen, &item), EBB_ERR_CLOSED);
    assert_int_equal(ebb_broadcast_set(w->host, b, &item), EBB_ERR_CLOSED);
    world_settle(w);
    ebb_broadcast_free(b);
}

static void a_watcher_that_is_cancelled_leaves_before_or_after_the_value(void **state) {
    world *w = *state;
    ebb_broadcast *b = broadcast_of(w);
    watcher *x[3];
    for (int i = 0; i < 3; i++) x[i] = watcher_of(w, b);
    world_settle(w);
    ebb_task_cancel(w->host, x[1]->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    set(w, b, 4);
    ebb_task_cancel(w->host, x[0]->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_true(x[0]->st == EBB_CANCELLED && x[0]->seen == 0);
    assert_true(x[1]->st == EBB_CANCELLED && x[1]->seen == 0);
    assert_true(x[2]->got == 1 && x[2]->item == 4);
    ebb_broadcast_close(w->host, b);
    world_settle(w);
    ebb_broadcast_free(b);
}

static void one_without_bytes_only_counts(void **state) {
    world *w = *state;
    ebb_broadcast *b = NULL;
    assert_int_equal(ebb_broadcast_new(w->rt, UINT32_MAX, &b), EBB_ERR_INVALID);
    assert_int_equal(ebb_broadcast_new(w->rt, 0, &b), EBB_OK);
    assert_int_equal(ebb_broadcast_set(w->host, b, NULL), EBB_OK);
    assert_int_equal(ebb_broadcast_get(b, NULL), 1);
    ebb_broadcast_free(b);
    ebb_broadcast_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(all_watchers_get_each_value_that_they_are_quick_enough_for),
        IN_WORLD(one_that_comes_late_gets_the_latest_at_once),
        IN_WORLD(a_watcher_that_is_cancelled_leaves_before_or_after_the_value),
        IN_WORLD(one_without_bytes_only_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
