/* Loops on threads of their own. */
#include "tests/support/loop_world.h"

static ebb_failing memory;

static ebb_loop_opts opts_with(uint64_t fail_at) {
    memory = (ebb_failing){.inner = ebb_libc_allocator(), .fail_at = fail_at};
    return (ebb_loop_opts){.runtime = {.allocator = ebb_failing_allocator(&memory)}};
}

static int up(void **state) {
    (void)state;
    alarm(ALARM_S);
    return 0;
}

/* ---- joining ------------------------------------------------------------------------------------------ */

static ebb_status returns(ebb_cx *cx, void *arg) {
    (void)cx;
    return *(const ebb_status *)arg;
}

static void joining_gives_what_the_first_task_returned(void **state) {
    (void)state;
    const ebb_status each[] = {EBB_OK, EBB_FAILED, (ebb_status)-4321};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        ebb_loop_opts opts = opts_with(0);
        ebb_loop *l;
        ebb_status st = each[i];
        assert_int_equal(ebb_loop_new(&opts, returns, &st, &l), EBB_OK);
        assert_int_equal(ebb_loop_join(l), st);
        assert_int_equal(memory.live, 0);
    }
}

typedef struct crowd {
    int left;
    uv_thread_t thread;
} crowd;

static ebb_status last_to_leave(ebb_cx *cx, void *arg) {
    crowd *c = arg;
    for (int i = 0; i < 3; i++) {
        ebb_status st = ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
        if (st != EBB_OK) return st;
    }
    if (--c->left > 0) ebb_fiber_spawn(cx, ebb_cx_region(cx), last_to_leave, c); /* it is still open */
    return EBB_OK;
}

static ebb_status starts_and_returns(ebb_cx *cx, void *arg) {
    crowd *c = arg;
    c->thread = uv_thread_self();
    ebb_fiber_spawn(cx, ebb_cx_region(cx), last_to_leave, arg);
    return EBB_OK;
}

static void a_loop_ends_when_the_last_task_of_its_first_region_has(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    crowd c = {.left = 5};
    assert_int_equal(ebb_loop_new(&opts, starts_and_returns, &c, &l), EBB_OK);
    assert_int_equal(ebb_loop_join(l), EBB_OK);
    assert_int_equal(c.left, 0);
    uv_thread_t here = uv_thread_self();
    assert_false(uv_thread_equal(&c.thread, &here));
    assert_int_equal(memory.live, 0);
}

/* ---- stopping ------------------------------------------------------------------------------------------- */

typedef struct waiting {
    uv_sem_t began;
    _Atomic bool let_go;
    ebb_status seen, stop, join;
    ebb_loop *_Atomic loop;
} waiting;

static ebb_status waits_for_ever(ebb_cx *cx, void *arg) {
    waiting *w = arg;
    uv_sem_post(&w->began);
    w->seen = ebb_await(cx, ebb_future_never(cx), NULL);
    return w->seen;
}

static void stopping_cancels_what_runs(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) {
        ebb_loop_opts opts = opts_with(0);
        ebb_loop *l;
        waiting w = {.seen = EBB_PENDING};
        uv_sem_init(&w.began, 0);
        assert_int_equal(ebb_loop_new(&opts, waits_for_ever, &w, &l), EBB_OK);
        if (round % 2 == 0) uv_sem_wait(&w.began);
        assert_int_equal(ebb_loop_stop(l), EBB_CANCELLED);
        assert_int_equal(w.seen, EBB_CANCELLED);
        assert_int_equal(memory.live, 0);
        uv_sem_destroy(&w.began);
    }
}

static ebb_status fails(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return (ebb_status)-4321;
}

/* Its region fails, and is stopped while it drains. */
static ebb_status drains(ebb_cx *cx, void *arg) {
    waiting *w = arg;
    ebb_spawn(cx, ebb_cx_region(cx), fails, NULL);
    (void)ebb_mask(cx);
    for (int i = 0; i < 20; i++) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    uv_sem_post(&w->began); /* the stop has a budget: what is left to do is short, even on a busy machine */
    for (int i = 0; i < 4; i++) (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    (void)ebb_unmask(cx);
    return EBB_OK;
}

static void joining_tells_how_it_went_even_if_it_was_stopped(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    waiting w = {.seen = EBB_PENDING};
    uv_sem_init(&w.began, 0);
    assert_int_equal(ebb_loop_new(&opts, drains, &w, &l), EBB_OK);
    uv_sem_wait(&w.began);
    assert_int_equal(ebb_loop_stop(l), (ebb_status)-4321);
    assert_int_equal(memory.live, 0);
    uv_sem_destroy(&w.began);
}

static void stopping_one_that_ends_by_itself_is_no_race(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        ebb_loop_opts opts = opts_with(0);
        ebb_loop *l;
        ebb_status st = EBB_OK;
        assert_int_equal(ebb_loop_new(&opts, returns, &st, &l), EBB_OK);
        for (volatile int i = 0; i < round * 2000; i++) continue;
        assert_int_equal(ebb_loop_stop(l), EBB_OK);
        assert_int_equal(memory.live, 0);
    }
}

static ebb_status until_let_go(void *arg, ebb_value *v) {
    waiting *w = arg;
    (void)v;
    while (!w->let_go) continue;
    return EBB_OK;
}

static ebb_status blocks(ebb_cx *cx, void *arg) {
    waiting *w = arg;
    ebb_future *f = ebb_pool_run(cx, until_let_go, w);
    uv_sem_post(&w->began);
    ebb_status st = ebb_await(cx, f, NULL);
    w->let_go = true;
    return st;
}

static void stopping_waits_for_what_can_not_be_stopped(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    waiting w = {.let_go = false};
    uv_sem_init(&w.began, 0);
    assert_int_equal(ebb_loop_new(&opts, blocks, &w, &l), EBB_OK);
    uv_sem_wait(&w.began);
    assert_int_equal(ebb_loop_stop(l), EBB_CANCELLED);
    assert_true(w.let_go);
    assert_int_equal(memory.live, 0);
    uv_sem_destroy(&w.began);
}

/* Work that outlives the budget: the root has closed without it, and the loop still waits. */
static ebb_status outlives(void *arg, ebb_value *v) {
    waiting *w = arg;
    (void)v;
    while (!w->let_go) continue;
    for (int i = 0; i < 100; i++) uv_sleep(1);
    return EBB_OK;
}

static ebb_status is_forced(ebb_cx *cx, void *arg) {
    waiting *w = arg;
    ebb_future *f = ebb_pool_run(cx, outlives, w);
    uv_sem_post(&w->began);
    (void)ebb_await(cx, f, NULL);
    w->let_go = true;
    ebb_region_force(cx, ebb_cx_region(cx));
    return EBB_CANCELLED;
}

static void what_was_abandoned_keeps_its_memory_until_it_is_done(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    waiting w = {.let_go = false};
    uv_sem_init(&w.began, 0);
    assert_int_equal(ebb_loop_new(&opts, is_forced, &w, &l), EBB_OK);
    uv_sem_wait(&w.began);
    (void)ebb_loop_stop(l);
    assert_int_equal(memory.live, 0);
    uv_sem_destroy(&w.began);
}

static ebb_status joins_itself(ebb_cx *cx, void *arg) {
    waiting *w = arg;
    (void)cx;
    uv_sem_wait(&w->began);
    w->stop = ebb_loop_stop(w->loop);
    w->join = ebb_loop_join(w->loop);
    w->seen = ebb_loop_close(w->loop, NULL, 0, NULL);
    return EBB_OK;
}

static void a_loop_can_not_join_itself(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    waiting w = {.seen = EBB_OK};
    uv_sem_init(&w.began, 0);
    assert_int_equal(ebb_loop_new(&opts, joins_itself, &w, &l), EBB_OK);
    w.loop = l;
    uv_sem_post(&w.began);
    assert_int_equal(ebb_loop_join(l), EBB_OK);
    assert_int_equal(w.stop, EBB_ERR_THREAD);
    assert_int_equal(w.join, EBB_ERR_THREAD);
    assert_int_equal(w.seen, EBB_ERR_INVALID);
    uv_sem_destroy(&w.began);
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

static void bad_options_are_refused(void **state) {
    (void)state;
    ebb_loop *l;
    ebb_loop_opts opts = opts_with(0);
    assert_int_equal(ebb_loop_new(&opts, NULL, NULL, &l), EBB_ERR_INVALID);
    assert_int_equal(ebb_loop_new(NULL, returns, NULL, &l), EBB_ERR_INVALID);
    opts.size = 1;
    assert_int_equal(ebb_loop_new(&opts, returns, NULL, &l), EBB_ERR_VERSION);
    opts.size = 0;
    opts.runtime.size = 1;
    assert_int_equal(ebb_loop_new(&opts, returns, NULL, &l), EBB_ERR_VERSION);
    assert_null(l);
    assert_int_equal(memory.live, 0);
}

static void without_memory_nothing_is_left_behind(void **state) {
    (void)state;
    uint64_t n = 0;
    do {
        ebb_loop_opts opts = opts_with(++n);
        ebb_loop *l;
        ebb_status ok = EBB_OK, st = ebb_loop_new(&opts, returns, &ok, &l);
        if (st == EBB_OK) assert_int_equal(ebb_loop_join(l), EBB_OK);
        else assert_int_equal(st, EBB_ERR_NOMEM);
        assert_int_equal(memory.live, 0);
    } while (memory.failures > 0);
    assert_in_range(n, 5, 200);
}

/* ---- several ---------------------------------------------------------------------------------------------------- */

typedef struct duet {
    uv_sem_t passed;
    ebb_remote *remote;
    ebb_value got;
} duet;

static ebb_status listens(ebb_cx *cx, void *arg) {
    duet *d = arg;
    static const ebb_operation op = {"duet", NULL, NULL};
    ebb_future *f = ebb_promise_new(cx, &op, NULL);
    if (ebb_remote_new(f, &d->remote) != EBB_OK) return EBB_FAILED;
    uv_sem_post(&d->passed);
    return ebb_await(cx, f, &d->got);
}

static ebb_status sings(ebb_cx *cx, void *arg) {
    duet *d = arg;
    (void)cx;
    uv_sem_wait(&d->passed);
    ebb_status st = ebb_remote_settle(d->remote, ebb_value_int(42));
    ebb_remote_release(d->remote);
    return st;
}

static void one_loop_settles_what_another_waits_for(void **state) {
    (void)state;
    static ebb_failing other;
    for (int round = 0; round < 50; round++) {
        ebb_loop_opts a = opts_with(0), b = a;
        ebb_loop *l, *m;
        duet d = {.remote = NULL};
        other = (ebb_failing){.inner = ebb_libc_allocator()}; /* an allocator a thread */
        b.runtime.allocator = ebb_failing_allocator(&other);
        uv_sem_init(&d.passed, 0);
        assert_int_equal(ebb_loop_new(&b, sings, &d, &m), EBB_OK);
        assert_int_equal(ebb_loop_new(&a, listens, &d, &l), EBB_OK);
        assert_int_equal(ebb_loop_join(l), EBB_OK);
        assert_int_equal(ebb_loop_join(m), EBB_OK);
        assert_int_equal(d.got.as.i, 42);
        assert_int_equal(memory.live + other.live, 0);
        uv_sem_destroy(&d.passed);
    }
}

/* ---- far regions --------------------------------------------------------------------------------------------------- */

typedef struct far_job {
    ebb_peer *peer;
    uv_thread_t asked, ran;
} far_job;

static ebb_status far_body(ebb_cx *cx, void *arg) {
    far_job *j = arg;
    (void)cx;
    j->ran = uv_thread_self();
    return EBB_OK;
}

static ebb_status asks_the_other(ebb_cx *cx, void *arg) {
    far_job *j = arg;
    j->asked = uv_thread_self();
    return ebb_await(cx, ebb_peer_run(cx, j->peer, far_body, j), NULL);
}

static void a_loop_runs_what_another_asks_for(void **state) {
    (void)state;
    /* What lies between two is freed on either thread: no counting here. */
    ebb_loop_opts a = {.runtime = {.allocator = ebb_libc_allocator(), .runtime_id = 1}}, b = a;
    ebb_loop *worker, *asker;
    waiting w = {.seen = EBB_PENDING};
    far_job j = {.peer = NULL};
    b.runtime.runtime_id = 2;
    uv_sem_init(&w.began, 0);
    assert_int_equal(ebb_loop_new(&a, waits_for_ever, &w, &worker), EBB_OK);
    j.peer = ebb_peer_keep(ebb_loop_peer(worker));
    assert_int_equal(ebb_loop_new(&b, asks_the_other, &j, &asker), EBB_OK);
    assert_int_equal(ebb_loop_join(asker), EBB_OK);
    assert_false(uv_thread_equal(&j.asked, &j.ran));
    uv_sem_wait(&w.began);
    assert_int_equal(ebb_loop_stop(worker), EBB_CANCELLED);
    assert_int_equal(ebb_loop_new(&b, asks_the_other, &j, &asker), EBB_OK);
    assert_int_equal(ebb_loop_join(asker), EBB_ERR_CLOSED); /* the handle outlives its loop */
    ebb_peer_release(j.peer);
    uv_sem_destroy(&w.began);
}

static ebb_status writes_to_nobody(ebb_cx *cx, void *arg) {
    int fd[2];
    (void)arg;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0) return EBB_FAILED;
    ebb_stream s = ebb_stream_adopt(cx, fd[0]);
    close(fd[1]);
    return ebb_await(cx, ebb_stream_write(cx, s, "x", 1), NULL);
}

static void who_writes_to_nobody_does_not_end_the_process(void **state) {
    (void)state;
    ebb_loop_opts opts = opts_with(0);
    ebb_loop *l;
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(ebb_loop_new(&opts, writes_to_nobody, NULL, &l), EBB_OK);
    assert_int_equal(ebb_loop_join(l), EBB_ERRNO(EPIPE));
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joining_gives_what_the_first_task_returned),
        cmocka_unit_test(a_loop_ends_when_the_last_task_of_its_first_region_has),
        cmocka_unit_test(stopping_cancels_what_runs),
        cmocka_unit_test(joining_tells_how_it_went_even_if_it_was_stopped),
        cmocka_unit_test(stopping_one_that_ends_by_itself_is_no_race),
        cmocka_unit_test(stopping_waits_for_what_can_not_be_stopped),
        cmocka_unit_test(what_was_abandoned_keeps_its_memory_until_it_is_done),
        cmocka_unit_test(a_loop_can_not_join_itself),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
        cmocka_unit_test(one_loop_settles_what_another_waits_for),
        cmocka_unit_test(a_loop_runs_what_another_asks_for),
        cmocka_unit_test(who_writes_to_nobody_does_not_end_the_process),
    };
    return cmocka_run_group_tests(tests, up, NULL);
}
