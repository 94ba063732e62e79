/* Fibers: sequential code whose awaits wait in place, and which hears of a cancel where it waits. */
#include "tests/support/world.h"

#include <ebb/fiber.h>

static ebb_fiber_stats fibers_of(world *w) {
    ebb_fiber_stats s;
    ebb_fiber_stats_of(w->rt, &s);
    return s;
}

static ebb_task kept_fiber(world *w, ebb_region r, ebb_fiber_fn fn, void *arg) {
    return ebb_fiber_spawn(w->host, r, fn, arg, &(ebb_task_opts){.keep = true});
}

static ebb_status nap(ebb_cx *cx, uint64_t ms) {
    ebb_sleeper s = {.due = 0};
    return ebb_sleep(cx, &s, ms * EBB_MS);
}

/* ---- awaits wait in place -------------------------------------------------------------------------- */

static ebb_status sums_while_it_sleeps(ebb_cx *cx, void *arg) {
    uint64_t sum = 0, start = ebb_now(cx);
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(nap(cx, 10), EBB_OK);
        assert_int_equal(ebb_now(cx), start + i * 10 * EBB_MS);
        sum += i;
    }
    *(uint64_t *)arg = sum;
    return (ebb_status)-1234;
}

static void a_fiber_keeps_its_locals_across_awaits_and_its_return_is_the_outcome(void **state) {
    world *w = *state;
    uint64_t sum = 0;
    ebb_task t = kept_fiber(w, open_region(w, w->root), sums_while_it_sleeps, &sum);
    assert_int_equal(fibers_of(w).alive, 1);
    world_pass(w, 39 * EBB_MS);
    assert_int_equal(sum, 0);
    assert_int_equal(phase_of(w, t), EBB_TASK_RUNNING);
    world_pass(w, EBB_MS);
    assert_int_equal(sum, 10);
    assert_int_equal(ebb_task_join(w->host, t), -1234);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(fibers_of(w).pooled, 1);
}

typedef struct tree {
    world *w;
    uint32_t depth, leaves;
    ebb_status leaf;
} tree;

static ebb_status grows(ebb_cx *cx, void *arg) {
    tree *t = arg;
    if (t->depth == 0) {
        t->leaves = 1;
        ebb_status st = nap(cx, 5);
        return st != EBB_OK ? st : t->leaf;
    }
    tree child[3];
    ebb_region r = ebb_region_open(cx, NULL);
    for (int i = 0; i < 3; i++) {
        child[i] = (tree){t->w, t->depth - 1, 0, t->leaf};
        ebb_fiber_spawn(cx, r, grows, &child[i]);
    }
    ebb_status st = ebb_region_join(cx, r);
    for (int i = 0; i < 3; i++) t->leaves += child[i].leaves;
    return st;
}

static void fibers_open_regions_spawn_fibers_and_join_them(void **state) {
    world *w = *state;
    tree t = {w, 4, 0, EBB_OK};
    ebb_task root = kept_fiber(w, w->root, grows, &t);
    world_settle(w);
    assert_int_equal(fibers_of(w).alive, 121);
    world_pass(w, 5 * EBB_MS);
    assert_int_equal(ebb_task_join(w->host, root), EBB_OK);
    assert_int_equal(t.leaves, 81);
    assert_int_equal(fibers_of(w).peak, 121);
}

static void a_failure_below_is_what_the_join_in_a_fiber_returns(void **state) {
    world *w = *state;
    tree t = {w, 2, 0, EBB_FAILED};
    ebb_task root = kept_fiber(w, open_region(w, w->root), grows, &t);
    world_pass(w, 5 * EBB_MS);
    assert_int_equal(ebb_task_join(w->host, root), EBB_FAILED);
}

typedef struct pipe {
    ebb_chan *ch;
    int sent, sum;
    bool reserves;
} pipe;

static ebb_status sends_hundred(ebb_cx *cx, void *arg) {
    pipe *p = arg;
    ebb_wait wait = {.cx = NULL};
    for (int i = 1; i <= 100; i++) {
        ebb_obligation permit;
        if (p->reserves) {
            assert_int_equal(ebb_chan_reserve(cx, p->ch, &wait, &permit), EBB_OK);
            assert_int_equal(ebb_chan_send_reserved(cx, p->ch, permit, &i), EBB_OK);
        } else {
            assert_int_equal(ebb_chan_send(cx, p->ch, &wait, &i), EBB_OK);
        }
        p->sent = i;
    }
    ebb_chan_close(cx, p->ch);
    return EBB_OK;
}

static ebb_status receives_all(ebb_cx *cx, void *arg) {
    pipe *p = arg;
    ebb_wait wait = {.cx = NULL};
    int item, last = 0;
    ebb_status st;
    while ((st = ebb_chan_recv(cx, p->ch, &wait, &item)) == EBB_OK) {
        assert_int_equal(item, ++last);
        p->sum += item;
    }
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static void run_pipe(world *w, bool reserves) {
    pipe p = {.reserves = reserves};
    assert_int_equal(ebb_chan_new(w->rt, 2, sizeof(int), &p.ch), EBB_OK);
    ebb_task from = kept_fiber(w, w->root, sends_hundred, &p);
    world_settle(w);
    assert_int_equal(p.sent, 2);
    ebb_task to = kept_fiber(w, w->root, receives_all, &p);
    world_settle(w);
    assert_int_equal(p.sum, 5050);
    assert_int_equal(ebb_task_join(w->host, from), EBB_OK);
    assert_int_equal(ebb_task_join(w->host, to), EBB_OK);
    ebb_chan_free(p.ch);
}

static void fibers_send_and_receive_in_order_and_wait_for_each_other(void **state) {
    run_pipe(*state, false);
    run_pipe(*state, true);
}

typedef struct door {
    ebb_sem sem;
    int inside, most, passed;
} door;

static ebb_status goes_through(ebb_cx *cx, void *arg) {
    door *d = arg;
    ebb_wait wait = {.cx = NULL};
    ebb_status st = ebb_sem_acquire(cx, &d->sem, &wait);
    if (st != EBB_OK) return st;
    if (++d->inside > d->most) d->most = d->inside;
    st = nap(cx, 1);
    d->inside--;
    d->passed++;
    ebb_sem_release(cx, &d->sem);
    return st;
}

static void a_semaphore_holds_fibers_back(void **state) {
    world *w = *state;
    door *d = world_keep(w, sizeof *d);
    ebb_sem_init(&d->sem, 2);
    for (int i = 0; i < 10; i++) ebb_fiber_spawn(w->host, w->root, goes_through, d);
    world_pass(w, 5 * EBB_MS);
    assert_int_equal(d->passed, 10);
    assert_int_equal(d->most, 2);
}

static ebb_status joins_task(ebb_cx *cx, void *arg) {
    return ebb_task_join(cx, *(ebb_task *)arg);
}

static ebb_status naps_and_fails(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_status st = nap(cx, 3);
    return st != EBB_OK ? st : EBB_FAILED;
}

static void a_fiber_joins_a_task_and_gets_its_outcome(void **state) {
    world *w = *state;
    ebb_task first = kept_fiber(w, open_region(w, w->root), naps_and_fails, NULL);
    ebb_task second = kept_fiber(w, open_region(w, w->root), joins_task, &first);
    world_pass(w, 3 * EBB_MS);
    assert_int_equal(ebb_task_join(w->host, second), EBB_FAILED);
}

static ebb_status says_thrice(ebb_cx *cx, void *arg) {
    puppet *p = arg;
    for (int i = 0; i < 3; i++) {
        world_say(p->world, p->says);
        assert_int_equal(ebb_fiber_yield(cx), EBB_OK);
    }
    return EBB_OK;
}

static void a_yield_lets_others_run_first(void **state) {
    world *w = *state;
    ebb_fiber_spawn(w->host, w->root, says_thrice, puppet_new(w, (puppet){.says = "a"}));
    ebb_fiber_spawn(w->host, w->root, says_thrice, puppet_new(w, (puppet){.says = "b"}));
    world_settle(w);
    assert_string_equal(w->log, "a b a b a b ");
}

static ebb_status parks_until_ten(ebb_cx *cx, void *arg) {
    while (*(int *)arg < 10) assert_int_equal(ebb_fiber_park(cx), EBB_OK);
    return EBB_OK;
}

static void a_parked_fiber_goes_on_when_somebody_wakes_it(void **state) {
    world *w = *state;
    int n = 0;
    ebb_task t = kept_fiber(w, w->root, parks_until_ten, &n);
    for (; n < 10; n++) {
        world_settle(w);
        assert_int_equal(phase_of(w, t), EBB_TASK_RUNNING);
        assert_int_equal(ebb_task_wake(w->host, t), EBB_OK);
    }
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

/* ---- cancel ---------------------------------------------------------------------------------------- */

typedef struct stuck {
    world *w;
    ebb_chan *full, *empty;
    ebb_sem none;
    ebb_task other;
} stuck;

static ebb_status in_sleep(ebb_cx *cx, stuck *s) {
    (void)s;
    return nap(cx, 1000000);
}

static ebb_status in_send(ebb_cx *cx, stuck *s) {
    ebb_wait w = {.cx = NULL};
    return ebb_chan_send(cx, s->full, &w, &(int){7});
}

static ebb_status in_recv(ebb_cx *cx, stuck *s) {
    ebb_wait w = {.cx = NULL};
    int item;
    return ebb_chan_recv(cx, s->empty, &w, &item);
}

static ebb_status in_reserve(ebb_cx *cx, stuck *s) {
    ebb_wait w = {.cx = NULL};
    ebb_obligation permit;
    return ebb_chan_reserve(cx, s->full, &w, &permit);
}

static ebb_status in_acquire(ebb_cx *cx, stuck *s) {
    ebb_wait w = {.cx = NULL};
    return ebb_sem_acquire(cx, &s->none, &w);
}

static ebb_status in_task_join(ebb_cx *cx, stuck *s) {
    return ebb_task_join(cx, s->other);
}

static ebb_status in_region_join(ebb_cx *cx, stuck *s) {
    ebb_region r = ebb_region_open(cx, NULL);
    ebb_spawn(cx, r, puppet_poll, puppet_new(s->w, HEEDING));
    return ebb_region_join(cx, r);
}

static ebb_status in_yields(ebb_cx *cx, stuck *s) {
    (void)s;
    ebb_status st;
    while ((st = ebb_fiber_yield(cx)) == EBB_OK) {}
    return st;
}

typedef ebb_status (*await_fn)(ebb_cx *cx, stuck *s);
static await_fn const awaits[] = {in_sleep,   in_send,      in_recv,        in_reserve,
                                  in_acquire, in_task_join, in_region_join, in_yields};
enum { AWAITS = sizeof awaits / sizeof *awaits };

typedef struct awaiter {
    stuck *on;
    await_fn fn;
    ebb_status seen;
} awaiter;

static ebb_status awaits_one(ebb_cx *cx, void *arg) {
    awaiter *a = arg;
    a->seen = a->fn(cx, a->on);
    return a->seen;
}

static stuck *stuck_new(world *w) {
    stuck *s = world_keep(w, sizeof *s);
    s->w = w;
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &s->full), EBB_OK);
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(int), &s->empty), EBB_OK);
    ebb_wait none = {.cx = NULL};
    assert_int_equal(ebb_chan_send(w->host, s->full, &none, &(int){1}), EBB_OK);
    ebb_sem_init(&s->none, 0);
    return s;
}

static void stuck_free(stuck *s) {
    ebb_chan_free(s->full);
    ebb_chan_free(s->empty);
}

static void a_cancel_wakes_every_await_with_cancelled(void **state) {
    world *w = *state;
    for (int i = 0; i < AWAITS; i++) {
        stuck *s = stuck_new(w);
        ebb_region r = open_region(w, w->root);
        awaiter a = {s, awaits[i], EBB_OK};
        s->other = puppet_start(w, r, HEEDING)->id;
        ebb_task t = kept_fiber(w, r, awaits_one, &a);
        assert_int_equal(ebb_runtime_pump(w->rt, 50), awaits[i] == in_yields ? EBB_PENDING : EBB_OK);
        assert_int_equal(phase_of(w, t), EBB_TASK_RUNNING);
        ebb_task_cancel(w->host, t, EBB_CANCEL_USER, "enough");
        world_settle(w);
        assert_int_equal(a.seen, EBB_CANCELLED);
        assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
        assert_int_equal(ebb_chan_length(s->full), 1);
        assert_int_equal(stats_of(w).timers, 0);
        stuck_free(s);
    }
}

static void a_fiber_that_is_cancelled_before_it_starts_runs_and_hears_of_it(void **state) {
    world *w = *state;
    for (int i = 0; i < AWAITS; i++) {
        stuck *s = stuck_new(w);
        ebb_region r = open_region(w, w->root);
        awaiter a = {s, awaits[i], EBB_OK};
        s->other = puppet_start(w, r, HEEDING)->id;
        ebb_task t = kept_fiber(w, r, awaits_one, &a);
        ebb_task_cancel(w->host, t, EBB_CANCEL_USER, NULL);
        world_settle(w);
        assert_int_equal(a.seen, EBB_CANCELLED);
        assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
        stuck_free(s);
    }
    assert_int_equal(fibers_of(w).alive, 0);
}

static ebb_status cleans_up_masked(ebb_cx *cx, void *arg) {
    int *cleaned = arg;
    ebb_status st = nap(cx, 1000);
    assert_int_equal(st, EBB_CANCELLED);
    assert_int_equal(nap(cx, 1), EBB_CANCELLED);
    assert_int_equal(ebb_mask(cx), EBB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nap(cx, 2), EBB_OK);
        ++*cleaned;
    }
    assert_int_equal(ebb_unmask(cx), EBB_OK);
    assert_int_equal(ebb_checkpoint(cx), EBB_CANCELLED);
    return st;
}

static void a_cleanup_under_a_mask_may_await(void **state) {
    world *w = *state;
    int cleaned = 0;
    ebb_task t = kept_fiber(w, w->root, cleans_up_masked, &cleaned);
    world_settle(w);
    ebb_task_cancel(w->host, t, EBB_CANCEL_USER, NULL);
    world_pass(w, 5 * EBB_MS);
    assert_int_equal(cleaned, 2);
    world_pass(w, EBB_MS);
    assert_int_equal(cleaned, 3);
    assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
}

static ebb_status never_runs(ebb_cx *cx, void *arg) {
    (void)cx;
    *(bool *)arg = true;
    return EBB_OK;
}

static void a_deadline_before_the_first_poll_ends_it_without_running_it(void **state) {
    world *w = *state;
    bool ran = false;
    uint64_t deadline = world_now(w) + EBB_MS;
    ebb_task t = ebb_fiber_spawn(w->host, w->root, never_runs, &ran,
                                 &(ebb_task_opts){.keep = true, .deadline = deadline});
    ebb_runtime_advance(w->rt, deadline + EBB_MS);
    world_settle(w);
    assert_false(ran);
    assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(fibers_of(w).pooled, 1);
}

static void a_deadline_of_its_own_cancels_a_fiber(void **state) {
    world *w = *state;
    stuck *s = stuck_new(w);
    awaiter a = {s, in_recv, EBB_OK};
    ebb_task t = ebb_fiber_spawn(w->host, w->root, awaits_one, &a,
                                 &(ebb_task_opts){.keep = true, .deadline = world_now(w) + 5 * EBB_MS});
    world_pass(w, 6 * EBB_MS);
    assert_int_equal(a.seen, EBB_CANCELLED);
    assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
    stuck_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_fiber_keeps_its_locals_across_awaits_and_its_return_is_the_outcome),
        IN_WORLD(fibers_open_regions_spawn_fibers_and_join_them),
        IN_WORLD(a_failure_below_is_what_the_join_in_a_fiber_returns),
        IN_WORLD(fibers_send_and_receive_in_order_and_wait_for_each_other),
        IN_WORLD(a_semaphore_holds_fibers_back),
        IN_WORLD(a_fiber_joins_a_task_and_gets_its_outcome),
        IN_WORLD(a_yield_lets_others_run_first),
        IN_WORLD(a_parked_fiber_goes_on_when_somebody_wakes_it),
        IN_WORLD(a_cancel_wakes_every_await_with_cancelled),
        IN_WORLD(a_fiber_that_is_cancelled_before_it_starts_runs_and_hears_of_it),
        IN_WORLD(a_cleanup_under_a_mask_may_await),
        IN_WORLD(a_deadline_before_the_first_poll_ends_it_without_running_it),
        IN_WORLD(a_deadline_of_its_own_cancels_a_fiber),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
