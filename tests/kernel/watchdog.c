/* The watchdog: a poll that does not return is reported from another thread, by that thread's clock. */
#include "tests/support/world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <ebb/future.h>

/* The runtime's thread polls a task that spins until it is released; the test is the watcher. */
typedef struct loop {
    ebb_runtime *rt;
    _Atomic int spinning; /* how many polls have begun to spin */
    _Atomic int release;  /* how many may go on */
    ebb_task task;
} loop;

static ebb_status spins(ebb_cx *cx, void *state) {
    loop *l = state;
    (void)cx;
    int mine = atomic_fetch_add(&l->spinning, 1) + 1;
    while (atomic_load(&l->release) < mine) (void)sched_yield();
    return mine < 2 ? EBB_PENDING : EBB_OK;
}

static void *run_loop(void *arg) {
    loop *l = arg;
    (void)ebb_runtime_pump(l->rt, 100);
    (void)ebb_task_wake(ebb_runtime_host(l->rt), l->task);
    (void)ebb_runtime_pump(l->rt, 100);
    return NULL;
}

static void wait_for(_Atomic int *what, int value) {
    while (atomic_load(what) < value) (void)sched_yield();
}

/* A runtime of its own: the world's teardown belongs to the main thread, after the other has gone. */
static world *watched_world(loop *l) {
    ebb_runtime_opts o = {.watched = true};
    world *w = world_new(&o, true);
    l->rt = w->rt;
    l->task = ebb_spawn_site(w->host, w->root, spins, l, "the one that spins");
    return w;
}

static void a_poll_that_does_not_return_is_reported_after_1_s_and_then_every_10(void **state) {
    (void)state;
    loop l = {0};
    world *w = watched_world(&l);
    ebb_watchdog dog = {0};
    ebb_work who = {0};
    pthread_t thread;
    uint64_t t0 = 77 * EBB_SECOND; /* the watcher's clock has nothing to do with the runtime's */
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t0, &who), EBB_OK);
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t0 + 60 * EBB_SECOND, &who), EBB_OK); /* idle is fine */
    assert_int_equal(pthread_create(&thread, NULL, run_loop, &l), 0);
    wait_for(&l.spinning, 1);
    static const struct {
        uint64_t ms;
        bool reported;
    } looks[] = {{0, false},     {500, false},  {999, false},   {1000, true},   {1001, false},
                 {10999, false}, {11000, true}, {11001, false}, {20999, false}, {21000, true},
                 {30999, false}, {31500, true}, {41499, false}, {41500, true}};
    int reports = 0;
    t0 += 100 * EBB_SECOND;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        who = (ebb_work){0, NULL};
        ebb_status st = ebb_watchdog_check(w->rt, &dog, t0 + looks[i].ms * EBB_MS, &who);
        assert_int_equal(st, looks[i].reported ? EBB_TIMEOUT : EBB_OK);
        if (!looks[i].reported) continue;
        reports++;
        assert_int_equal(who.id, l.task.id);
        assert_string_equal(who.site, "the one that spins");
    }
    assert_int_equal(reports, 5);
    atomic_store(&l.release, 1);
    wait_for(&l.spinning, 2); /* a new poll has a clock of its own */
    uint64_t t1 = t0 + 50 * EBB_SECOND;
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t1, &who), EBB_OK);
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t1 + 999 * EBB_MS, &who), EBB_OK);
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t1 + 1000 * EBB_MS, &who), EBB_TIMEOUT);
    atomic_store(&l.release, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t1 + 99 * EBB_SECOND, &who), EBB_OK);
    assert_int_equal(ebb_watchdog_check(w->rt, &dog, t1 + 999 * EBB_SECOND, &who), EBB_OK);
    world_end(w);
}

static ebb_status many(ebb_cx *cx, void *state) {
    uint32_t *n = state;
    if (++*n == 200000) return EBB_OK;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static void *run_many(void *arg) {
    world *w = arg;
    while (ebb_runtime_pump(w->rt, 1000) == EBB_PENDING) {}
    return NULL;
}

static void short_polls_are_never_reported_however_many_there_are(void **state) {
    (void)state;
    ebb_runtime_opts o = {.watched = true};
    world *w = world_new(&o, false);
    uint32_t *n = world_keep(w, sizeof *n);
    (void)ebb_spawn(w->host, w->root, many, n);
    pthread_t thread;
    ebb_watchdog dog = {0};
    ebb_work who;
    assert_int_equal(pthread_create(&thread, NULL, run_many, w), 0);
    /* A clock that hardly moves: what is reported would have to be one poll seen for a second. */
    for (uint64_t i = 0; i < 20000; i++) {
        assert_int_equal(ebb_watchdog_check(w->rt, &dog, i * EBB_US, &who), EBB_OK);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(*n, 200000);
    world_end(w);
}

/* ---- hooks ------------------------------------------------------------------------------------------------ */

typedef struct stuck {
    world *w;
    void (*make)(struct stuck *s);
    _Atomic int spinning, release;
    uint64_t id; /* what is expected */
} stuck;

static void hangs(stuck *s) {
    atomic_store(&s->spinning, 1);
    while (atomic_load(&s->release) == 0) (void)sched_yield();
}

static void abort_hangs(void *arg) {
    hangs(arg);
}

static ebb_status aborts(ebb_cx *cx, void *state) {
    stuck *s = state;
    ebb_obligation o = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, abort_hangs, s, "what hangs");
    s->id = o.id;
    return ebb_obligation_abort(cx, o);
}

static ebb_status leaks(ebb_cx *cx, void *state) {
    stuck *s = state;
    s->id = ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, abort_hangs, s, "what hangs").id;
    return EBB_OK;
}

static void an_abort_hook_in_a_poll(stuck *s) {
    (void)ebb_spawn_site(s->w->host, s->w->root, aborts, s, "its task");
}

static void an_abort_hook_of_a_leak(stuck *s) {
    (void)ebb_spawn_site(s->w->host, s->w->root, leaks, s, "its task");
}

static void closed_hangs(void *arg, const ebb_region_report *report) {
    (void)report;
    hangs(arg);
}

static void an_end_of_a_region(stuck *s) {
    ebb_region r = ebb_region_open_site(s->w->host, &(ebb_region_opts){.on_closed = closed_hangs, .arg = s},
                                        "what hangs");
    s->id = r.id;
    ebb_region_close(s->w->host, r);
}

static ebb_value map_hangs(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)cx;
    (void)v;
    hangs(arg);
    return ebb_value_none();
}

static void a_callback(stuck *s) {
    ebb_future *f = ebb_future_ready(s->w->host, ebb_value_int(1));
    (void)ebb_map_site(s->w->host, f, map_hangs, s, "what hangs");
}

static void after_hangs(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)cx;
    (void)st;
    (void)v;
    hangs(arg);
}

static void an_end_of_a_future(stuck *s) {
    ebb_future *f = ebb_after_site(s->w->host, 0, "what hangs");
    (void)ebb_future_on_done(f, after_hangs, s);
}

static ebb_status makes_one_that_hangs(ebb_cx *cx, void *arg) {
    (void)ebb_map_site(cx, ebb_future_ready(cx, ebb_value_int(1)), map_hangs, arg, "what hangs");
    return EBB_OK;
}

static void after_defers(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    (void)st;
    (void)v;
    assert_int_equal(ebb_defer(cx, makes_one_that_hangs, arg), EBB_OK);
}

/* It runs when the poll of the callback runner is over. */
static void a_callback_of_a_finalizer_of_a_callback(stuck *s) {
    (void)ebb_future_on_done(ebb_after(s->w->host, 0), after_defers, s);
    while (ebb_runtime_pump(s->w->rt, 100) == EBB_PENDING) {}
    ebb_region_close(s->w->host, s->w->root);
}

static void *pump_stuck(void *arg) {
    stuck *s = arg;
    s->make(s);
    while (ebb_runtime_pump(s->w->rt, 100) == EBB_PENDING) {}
    return NULL;
}

static void the_hook_that_does_not_return_is_named(void **state) {
    static void (*const hooks[])(stuck *) = {
        an_abort_hook_in_a_poll, an_abort_hook_of_a_leak,
        an_end_of_a_region,      a_callback,
        an_end_of_a_future,      a_callback_of_a_finalizer_of_a_callback};
    (void)state;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        stuck s = {.w = world_new(&(ebb_runtime_opts){.watched = true}, false), .make = hooks[i]};
        ebb_watchdog dog = {0};
        ebb_work who = {0, NULL};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, pump_stuck, &s), 0);
        wait_for(&s.spinning, 1);
        assert_int_equal(ebb_watchdog_check(s.w->rt, &dog, 0, &who), EBB_OK);
        assert_int_equal(ebb_watchdog_check(s.w->rt, &dog, EBB_SECOND, &who), EBB_TIMEOUT);
        assert_non_null(who.site);
        assert_string_equal(who.site, "what hangs");
        assert_int_equal(who.id, s.id);
        atomic_store(&s.release, 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(ebb_watchdog_check(s.w->rt, &dog, 99 * EBB_SECOND, &who), EBB_OK);
        assert_int_equal(ebb_watchdog_check(s.w->rt, &dog, 999 * EBB_SECOND, &who), EBB_OK);
        assert_int_equal(ebb_runtime_adopt(s.w->rt), EBB_OK);
        world_end(s.w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poll_that_does_not_return_is_reported_after_1_s_and_then_every_10),
        cmocka_unit_test(short_polls_are_never_reported_however_many_there_are),
        cmocka_unit_test(the_hook_that_does_not_return_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
