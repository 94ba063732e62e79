/* Who holds a future, who owns it, and what becomes of it when they let go: keep, drop, share, shield, a
 * future in two races, and futures that nobody can reach. */
#include "tests/support/future_world.h"

static ebb_value same(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)arg;
    return ebb_value_take(cx, v);
}

static ebb_future *mapped(future_world *fw, ebb_future *f) {
    return ebb_map(fw->host, f, same, NULL);
}

/* ---- keep and drop ------------------------------------------------------------------------------------- */

static void each_keep_is_one_more_use(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    for (int i = 0; i < 3; i++) assert_ptr_equal(ebb_future_keep(f), f);
    ebb_future *maps[3];
    for (int i = 0; i < 3; i++) maps[i] = mapped(fw, f);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(4)), EBB_OK);
    future_settle(fw);
    for (int i = 0; i < 3; i++) {
        ebb_value v;
        assert_int_equal(ebb_await(fw->host, maps[i], &v), EBB_OK);
        assert_int_equal(v.as.i, i == 0 ? 4 : 0); /* the first has taken it */
    }
    assert_int_equal(ebb_await(fw->host, f, NULL), EBB_OK);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

static void a_pending_future_on_the_floor_is_cancelled_as_dropped_once(void **state) {
    future_world *fw = *state;
    probe p, last;
    ebb_future *f = probe_on(&p, ebb_future_never(fw->host));
    ebb_future_drop(probe_on(&last, mapped(fw, mapped(fw, f))));
    future_settle(fw);
    if (!future_test_gc()) probe_pending(&p);
    future_collect(fw);
    probe_cancelled(&last, EBB_CANCEL_DROPPED);
    assert_int_equal(p.cancels, 1); /* dropped too, or cancelled by its owner: whichever is found first */
    assert_int_equal(p.cleanups, 1);
    future_collect(fw);
    assert_int_equal(last.cleanups, 1);
    assert_int_equal(p.cleanups, 1);
    assert_true(future_stats(fw).dropped >= 1);
    assert_int_equal(future_stats(fw).live, 0);
}

typedef struct producer {
    ebb_future *f;
    uint32_t cancels;
    ebb_cancel_kind kind;
} producer;

static void asked_to_stop(ebb_cx *cx, ebb_future *f, void *arg) {
    producer *p = arg;
    (void)cx;
    p->cancels++;
    p->kind = ebb_future_cancel_kind_of(f);
}

static const ebb_operation work = {"work", asked_to_stop, NULL};

static void a_promise_stays_good_for_its_producer_until_that_has_settled_it(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future_drop(f);
    future_collect(fw);
    probe_cancelled(&p, EBB_CANCEL_DROPPED);
    future_collect(fw);
    assert_int_equal(ebb_promise_settle(f, future_fd(fw, 1)), EBB_CANCELLED);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
}

static void a_dropped_operation_is_asked_to_stop_and_stays_until_it_has(void **state) {
    future_world *fw = *state;
    producer w = {NULL, 0, EBB_CANCEL_NONE};
    probe p;
    w.f = probe_on(&p, ebb_promise_new(fw->host, &work, &w));
    ebb_future_drop(w.f);
    future_collect(fw);
    probe_cancelled(&p, EBB_CANCEL_DROPPED);
    assert_int_equal(w.cancels, 1);
    assert_int_equal(w.kind, EBB_CANCEL_DROPPED);
    future_collect(fw);
    assert_int_equal(ebb_promise_settle(w.f, future_fd(fw, 1)), EBB_CANCELLED);
    assert_int_equal(future_fd_freed(fw, 1), 1);
    future_collect(fw);
    assert_int_equal(future_stats(fw).live, 0);
    assert_int_equal(w.cancels, 1);
}

static void what_ended_and_was_consumed_is_freed_without_a_collection(void **state) {
    future_world *fw = *state;
    if (future_test_gc()) skip();
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL), *two[2];
    two[0] = mapped(fw, f);
    two[1] = ebb_future_never(fw->host);
    ebb_future *race = ebb_race(fw->host, 2, two);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(1)), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, race, NULL), EBB_OK);
    assert_int_equal(future_stats(fw).live, 0);
    assert_int_equal(future_stats(fw).collections, 0);
}

/* A loop of callbacks: each round waits for a promise, and returns a future with the next round. */
typedef struct rounds {
    ebb_future *waits; /* of this round, or NULL once the loop has ended */
    uint32_t left;
    probe *last;
} rounds;

static ebb_future *next_round(ebb_cx *cx, ebb_value *v, void *arg) {
    rounds *r = arg;
    (void)v;
    r->waits = NULL;
    if (r->left-- == 0) return ebb_future_ready(cx, ebb_value_int(7));
    r->waits = ebb_promise_new(cx, NULL, NULL);
    if (r->last != NULL) r->waits = probe_on(r->last, r->waits);
    return ebb_then(cx, r->waits, next_round, r);
}

static void a_loop_of_callbacks_takes_the_memory_of_one_round(void **state) {
    future_world *fw = *state;
    if (future_test_gc()) skip();
    rounds r = {.left = 1000};
    ebb_future *loop = next_round(fw->host, NULL, &r);
    size_t most = 0;
    while (r.waits != NULL) {
        assert_int_equal(ebb_promise_settle(r.waits, ebb_value_none()), EBB_OK);
        future_settle(fw);
        if (future_stats(fw).live > most) most = future_stats(fw).live;
    }
    ebb_value v;
    assert_int_equal(ebb_await(fw->host, loop, &v), EBB_OK);
    assert_int_equal(v.as.i, 7);
    assert_int_equal(future_stats(fw).live, 0);
    if (most > 4) fail_msg("%zu objects", most);
}

static void cancelling_a_loop_of_callbacks_cancels_its_last_round(void **state) {
    future_world *fw = *state;
    probe last = {0};
    rounds r = {.left = 10, .last = &last};
    ebb_future *loop = next_round(fw->host, NULL, &r);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ebb_promise_settle(r.waits, ebb_value_none()), EBB_OK);
        future_settle(fw);
        probe_pending(&last);
    }
    assert_true(ebb_future_cancel(loop, EBB_CANCEL_DISCONNECT));
    future_settle(fw);
    probe_cancelled(&last, EBB_CANCEL_DISCONNECT);
    ebb_future_drop(loop);
}

/* ---- share --------------------------------------------------------------------------------------------- */

static void a_shared_source_lives_until_its_last_owner(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = ebb_future_share(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)));
    ebb_future *a = mapped(fw, ebb_future_keep(f)), *b = mapped(fw, ebb_future_keep(f)), *c = mapped(fw, f);
    ebb_future *owners[] = {b, a, c};
    for (int i = 0; i < 3; i++) {
        future_settle(fw);
        probe_pending(&p);
        assert_true(ebb_future_cancel(owners[i], EBB_CANCEL_DISCONNECT));
    }
    future_settle(fw);
    probe_cancelled(&p, EBB_CANCEL_DISCONNECT);
    for (int i = 0; i < 3; i++) ebb_future_drop(owners[i]);
}

static void a_holder_of_a_shared_future_counts_as_one_more(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = ebb_future_share(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)));
    ebb_future *a = mapped(fw, ebb_future_keep(f));
    assert_true(ebb_future_cancel(a, EBB_CANCEL_USER));
    future_settle(fw);
    probe_pending(&p);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(3)), EBB_OK);
    future_settle(fw);
    probe_completed(&p, 3);
    ebb_future_drop(a);
    ebb_future_drop(f);
}

static void without_share_the_first_owner_takes_it_along(void **state) {
    future_world *fw = *state;
    probe p, other;
    ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future *a = mapped(fw, ebb_future_keep(f)), *b = probe_on(&other, mapped(fw, f));
    assert_true(ebb_future_cancel(a, EBB_CANCEL_USER));
    future_settle(fw);
    probe_cancelled(&p, EBB_CANCEL_USER);
    probe_cancelled(&other, EBB_CANCEL_USER);
    ebb_future_drop(a);
    ebb_future_drop(b);
}

/* ---- shield -------------------------------------------------------------------------------------------- */

static void no_owner_cancels_a_shielded_future(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = ebb_future_shield(ebb_future_keep(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL))));
    ebb_future *two[] = {f, ebb_future_ready(fw->host, ebb_value_int(1))};
    ebb_future *race = ebb_race(fw->host, 2, two);
    future_settle(fw);
    assert_int_equal(ebb_await(fw->host, race, NULL), EBB_OK);
    probe_pending(&p);
    ebb_future *late = ebb_within(fw->host, ebb_future_keep(f), EBB_MS);
    future_pass(fw, 2 * EBB_MS);
    assert_int_equal(ebb_await(fw->host, late, NULL), EBB_TIMEOUT);
    probe_pending(&p);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(8)), EBB_OK);
    future_settle(fw);
    probe_completed(&p, 8);
    ebb_future_drop(f);
}

static void its_region_cancels_a_shielded_future(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future_drop(
        probe_on(&p, mapped(fw, ebb_future_shield(ebb_future_keep(ebb_promise_new(fw->host, NULL, NULL))))));
    ebb_region_cancel(fw->host, fw->root, EBB_CANCEL_DISCONNECT, "all");
    future_settle(fw);
    assert_int_equal(p.cancels, 1);
    assert_int_equal(p.cleanups, 1);
}

static void a_shielded_future_that_nobody_can_reach_is_dropped_all_the_same(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = ebb_future_shield(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)));
    ebb_future *m = mapped(fw, f);
    assert_true(ebb_future_cancel(m, EBB_CANCEL_USER));
    future_settle(fw);
    if (!future_test_gc()) probe_pending(&p);
    future_collect(fw);
    probe_cancelled(&p, EBB_CANCEL_DROPPED);
    ebb_future_drop(m);
}

/* ---- in two races ---------------------------------------------------------------------------------------- */

static void a_shared_future_in_two_races_can_win_the_second(void **state) {
    future_world *fw = *state;
    probe p, won, again;
    ebb_future *f = ebb_future_share(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL)));
    ebb_future *first[] = {ebb_future_keep(f), ebb_promise_new(fw->host, NULL, NULL)};
    ebb_future *second[] = {f, ebb_promise_new(fw->host, NULL, NULL)};
    ebb_future *one = probe_on(&won, ebb_race(fw->host, 2, first));
    ebb_future *two = probe_on(&again, ebb_race(fw->host, 2, second));
    assert_int_equal(ebb_promise_settle(first[1], ebb_value_int(1)), EBB_OK);
    future_settle(fw);
    probe_completed(&won, 1);
    probe_pending(&p);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(2)), EBB_OK);
    future_settle(fw);
    probe_completed(&again, 2);
    ebb_future_drop(one);
    ebb_future_drop(two);
}

static void a_shared_future_that_lost_its_last_race_is_cancelled(void **state) {
    future_world *fw = *state;
    probe p;
    ebb_future *f = ebb_future_share(probe_on(&p, ebb_promise_new(fw->host, NULL, NULL))), *race[2],
               *rival[2];
    for (int i = 0; i < 2; i++) {
        ebb_future *two[] = {i == 0 ? ebb_future_keep(f) : f,
                             rival[i] = ebb_promise_new(fw->host, NULL, NULL)};
        race[i] = ebb_race(fw->host, 2, two);
    }
    for (int i = 0; i < 2; i++) {
        probe_pending(&p);
        assert_int_equal(ebb_promise_settle(rival[i], ebb_value_none()), EBB_OK);
        future_settle(fw);
    }
    probe_cancelled(&p, EBB_CANCEL_RACE_LOST);
    for (int i = 0; i < 2; i++) ebb_future_drop(race[i]);
}

static void an_unshared_future_that_lost_one_race_is_skipped_by_the_other(void **state) {
    future_world *fw = *state;
    probe p, again;
    ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future *first[] = {ebb_future_keep(f), ebb_promise_new(fw->host, NULL, NULL)};
    ebb_future *second[] = {f, ebb_promise_new(fw->host, NULL, NULL)};
    ebb_future *one = ebb_race(fw->host, 2, first);
    ebb_future *two = probe_on(&again, ebb_race(fw->host, 2, second));
    assert_int_equal(ebb_promise_settle(first[1], ebb_value_int(1)), EBB_OK);
    future_settle(fw);
    probe_cancelled(&p, EBB_CANCEL_RACE_LOST);
    probe_pending(&again);
    assert_int_equal(ebb_promise_settle(second[1], ebb_value_int(5)), EBB_OK);
    future_settle(fw);
    probe_completed(&again, 5);
    ebb_future_drop(one);
    ebb_future_drop(two);
}

static void a_future_that_wins_two_races_wins_both(void **state) {
    future_world *fw = *state;
    ebb_future *f = ebb_promise_new(fw->host, NULL, NULL);
    ebb_future *race[2];
    for (int i = 0; i < 2; i++) {
        ebb_future *two[] = {ebb_future_keep(f), ebb_future_never(fw->host)};
        race[i] = ebb_race(fw->host, 2, two);
    }
    ebb_future_drop(f);
    assert_int_equal(ebb_promise_settle(f, ebb_value_int(6)), EBB_OK);
    future_settle(fw);
    for (int i = 0; i < 2; i++) {
        ebb_value v;
        assert_int_equal(ebb_await(fw->host, race[i], &v), EBB_OK);
        assert_int_equal(v.as.i, 6);
    }
}

static void the_same_future_twice_in_one_list_needs_two_uses(void **state) {
    future_world *fw = *state;
    probe p, result;
    ebb_future *f = probe_on(&p, ebb_promise_new(fw->host, NULL, NULL));
    ebb_future *twice[] = {f, ebb_future_keep(f)};
    ebb_future *all = probe_on(&result, ebb_all(fw->host, 2, twice));
    assert_int_equal(ebb_promise_settle(f, future_fd(fw, 1)), EBB_OK);
    future_settle(fw);
    assert_int_equal(result.status, EBB_OK);
    ebb_future_drop(all);
    future_collect(fw);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

static void a_million_races_against_one_that_lives_long_leave_nothing_behind(void **state) {
    future_world *fw = *state;
    size_t n = future_crowd(1000000, 200);
    ebb_future *shutdown = ebb_future_share(ebb_promise_new(fw->host, NULL, NULL));
    ebb_heap_stats before = {0};
    for (size_t i = 0; i < n; i++) {
        ebb_future *two[] = {ebb_promise_new(fw->host, NULL, NULL), ebb_future_keep(shutdown)};
        ebb_future *p = two[0], *race = ebb_race(fw->host, 2, two);
        assert_int_equal(ebb_promise_settle(p, ebb_value_none()), EBB_OK);
        (void)ebb_runtime_pump(fw->rt, 8);
        assert_int_equal(ebb_await(fw->host, race, NULL), EBB_OK);
        if (i == 100) before = future_stats(fw);
    }
    ebb_heap_stats after = future_stats(fw);
    assert_int_equal(after.bytes, before.bytes);
    if (!future_test_gc()) assert_int_equal(after.live, before.live);
    assert_int_equal(ebb_promise_settle(shutdown, ebb_value_none()), EBB_OK);
    future_settle(fw);
    ebb_future_drop(shutdown);
}

/* ---- the floor ------------------------------------------------------------------------------------------- */

static ebb_future *never_again(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    (void)arg;
    return ebb_future_never(cx);
}
static ebb_future *never_caught(ebb_cx *cx, ebb_status st, void *arg) {
    (void)st;
    (void)arg;
    return ebb_future_never(cx);
}
static ebb_future *no_more(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return NULL;
}
static ebb_future *release_it(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    (void)arg;
    return NULL;
}
static ebb_future *make(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_future_never(cx);
}
static ebb_future *repeat(ebb_cx *cx, uint64_t n, void *arg) {
    (void)n;
    return make(cx, arg);
}
static ebb_future *attempt(ebb_cx *cx, uint32_t n, void *arg) {
    (void)n;
    return make(cx, arg);
}
static ebb_future *each(ebb_cx *cx, size_t i, void *arg) {
    (void)i;
    return make(cx, arg);
}

static ebb_future *one_of_each(ebb_cx *cx, int which) {
    const ebb_retry_opts opts = {.attempts = 3};
    ebb_future *fs[] = {ebb_future_never(cx), ebb_future_never(cx)}, *f = fs[0];
    if (which < 6) ebb_future_drop(fs[1]);
    switch (which) {
    case 0: return ebb_then(cx, f, never_again, NULL);
    case 1: return ebb_map(cx, f, same, NULL);
    case 2: return ebb_catch(cx, f, never_caught, NULL);
    case 3: return ebb_finally(cx, f, no_more, NULL);
    case 4: return ebb_within(cx, f, EBB_SECOND);
    case 5: return ebb_bracket(cx, f, never_again, release_it, NULL);
    case 6: return ebb_all(cx, 2, fs);
    case 7: return ebb_all_settled(cx, 2, fs);
    case 8: return ebb_race(cx, 2, fs);
    case 9: return ebb_any(cx, 2, fs);
    case 10: return ebb_select(cx, 2, fs);
    default: break;
    }
    ebb_future_drop(f);
    ebb_future_drop(fs[1]);
    switch (which) {
    case 11: return ebb_retry(cx, &opts, attempt, NULL);
    case 12: return ebb_traverse(cx, 5, 2, each, NULL);
    case 13: return ebb_future_delay(cx, EBB_MS, make, NULL);
    case 14: return ebb_future_repeat(cx, EBB_MS, repeat, NULL);
    case 15: return ebb_after(cx, EBB_SECOND);
    default: return NULL;
    }
}

static void every_kind_of_future_can_be_left_on_the_floor(void **state) {
    future_world *fw = *state;
    ebb_future *f;
    for (int which = 0; (f = one_of_each(fw->host, which)) != NULL; which++) {
        probe p;
        (void)probe_on(&p, f);
        future_settle(fw);
        ebb_future_drop(f);
        future_collect(fw);
        probe_cancelled(&p, EBB_CANCEL_DROPPED);
        future_collect(fw);
        assert_int_equal(p.cleanups, 1);
        if (future_stats(fw).live != 0) fail_msg("%d left by %d", (int)future_stats(fw).live, which);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(each_keep_is_one_more_use),
        IN_FUTURES(a_pending_future_on_the_floor_is_cancelled_as_dropped_once),
        IN_FUTURES(every_kind_of_future_can_be_left_on_the_floor),
        IN_FUTURES(a_promise_stays_good_for_its_producer_until_that_has_settled_it),
        IN_FUTURES(a_dropped_operation_is_asked_to_stop_and_stays_until_it_has),
        IN_FUTURES(what_ended_and_was_consumed_is_freed_without_a_collection),
        IN_FUTURES(a_loop_of_callbacks_takes_the_memory_of_one_round),
        IN_FUTURES(cancelling_a_loop_of_callbacks_cancels_its_last_round),
        IN_FUTURES(a_shared_source_lives_until_its_last_owner),
        IN_FUTURES(a_holder_of_a_shared_future_counts_as_one_more),
        IN_FUTURES(without_share_the_first_owner_takes_it_along),
        IN_FUTURES(no_owner_cancels_a_shielded_future),
        IN_FUTURES(its_region_cancels_a_shielded_future),
        IN_FUTURES(a_shielded_future_that_nobody_can_reach_is_dropped_all_the_same),
        IN_FUTURES(a_shared_future_in_two_races_can_win_the_second),
        IN_FUTURES(a_shared_future_that_lost_its_last_race_is_cancelled),
        IN_FUTURES(an_unshared_future_that_lost_one_race_is_skipped_by_the_other),
        IN_FUTURES(a_future_that_wins_two_races_wins_both),
        IN_FUTURES(the_same_future_twice_in_one_list_needs_two_uses),
        IN_UNTRACED_FUTURES(a_million_races_against_one_that_lives_long_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
