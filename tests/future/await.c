/* Awaiting a future that has ended: whatever is attached to it meanwhile, the await returns. */
#include "tests/support/future_world.h"

/* A task that makes a future, is parked until that is finished, attaches something, and awaits it. */
typedef struct waiter {
    future_world *fw;
    ebb_future *f;
    ebb_value value;
    ebb_status (*attach)(ebb_cx *cx, struct waiter *w);
    probe probe;
    uint32_t step, waits;
    ebb_status status;
} waiter;

static const ebb_type object_type = {"object", 8, NULL, NULL, 0};

static ebb_status wait_poll(ebb_cx *cx, void *state) {
    waiter *w = state;
    if (w->step++ == 0) {
        w->f = ebb_future_ready(cx, w->value);
        return EBB_PENDING;
    }
    if (w->step == 2) assert_int_equal(w->attach(cx, w), EBB_OK);
    w->status = ebb_await(cx, w->f, &w->value);
    if (w->status == EBB_PENDING) w->waits++;
    return w->status;
}

static ebb_status attach_probe(ebb_cx *cx, waiter *w) {
    (void)cx;
    (void)probe_on(&w->probe, w->f);
    return EBB_OK;
}

static ebb_status attach_hold(ebb_cx *cx, waiter *w) {
    return ebb_future_hold(w->f, ebb_gc_new(cx, &object_type));
}

static ebb_status attach_both(ebb_cx *cx, waiter *w) {
    ebb_status st = attach_hold(cx, w);
    return st == EBB_OK ? attach_probe(cx, w) : st;
}

static void run_waiter(future_world *fw, waiter *w, ebb_value v) {
    w->fw = fw;
    w->value = v;
    w->status = EBB_PENDING;
    ebb_task t = ebb_spawn(fw->host, fw->root, wait_poll, w, &(ebb_task_opts){.keep = true});
    future_settle(fw);
    assert_int_equal(ebb_task_wake(fw->host, t), EBB_OK);
    future_settle(fw);
    assert_int_equal(ebb_task_join(fw->host, t), EBB_OK);
}

static void a_callback_on_a_finished_future_does_not_hang_its_await(void **state) {
    future_world *fw = *state;
    waiter w = {.attach = attach_probe};
    run_waiter(fw, &w, ebb_value_int(42));
    assert_int_equal(w.value.as.i, 42);
    probe_completed(&w.probe, 42); /* it has run before, and has seen the value */
}

static void a_hold_on_a_finished_future_does_not_hang_its_await(void **state) {
    future_world *fw = *state;
    waiter w = {.attach = attach_hold};
    run_waiter(fw, &w, ebb_value_int(42));
    assert_int_equal(w.value.as.i, 42);
    future_collect(fw);
}

static void the_word_is_moved_to_the_await_after_the_callbacks(void **state) {
    future_world *fw = *state;
    waiter w = {.attach = attach_both};
    run_waiter(fw, &w, future_fd(fw, 1));
    assert_non_null(w.value.type);
    assert_int_equal(w.probe.done, 1);
    assert_int_equal(future_fd_freed(fw, 1), 0);
    ebb_value_discard(fw->host, w.value);
    assert_int_equal(future_fd_freed(fw, 1), 1);
}

/* The awaiter was told, and before it is polled somebody else attaches another callback. */
static void a_callback_that_comes_between_the_wake_and_the_poll(void **state) {
    future_world *fw = *state;
    waiter w = {.fw = fw, .attach = attach_probe, .value = ebb_value_int(7), .status = EBB_PENDING};
    probe late = {0};
    ebb_task t = ebb_spawn(fw->host, fw->root, wait_poll, &w, &(ebb_task_opts){.keep = true});
    future_settle(fw);
    (void)ebb_future_keep(w.f);
    assert_int_equal(ebb_task_wake(fw->host, t), EBB_OK);
    while (w.waits == 0) assert_int_equal(ebb_runtime_pump(fw->rt, 1), EBB_PENDING);
    while (w.probe.cleanups == 0) assert_int_equal(ebb_runtime_pump(fw->rt, 1), EBB_PENDING);
    (void)probe_on(&late, w.f);
    future_settle(fw);
    assert_int_equal(ebb_task_join(fw->host, t), EBB_OK);
    probe_completed(&late, 7);
    ebb_future_drop(w.f);
}

/* A task of another region awaits it, so that its callbacks are another's to run. */
static void the_await_of_another_region(void **state) {
    future_world *fw = *state;
    waiter w = {.fw = fw, .attach = attach_probe, .value = ebb_value_int(9), .step = 1};
    w.f = ebb_future_ready(fw->host, w.value);
    future_settle(fw);
    ebb_region r = ebb_region_open(fw->host, NULL);
    ebb_task t = ebb_spawn(fw->host, r, wait_poll, &w, &(ebb_task_opts){.keep = true});
    future_settle(fw);
    assert_int_equal(ebb_task_join(fw->host, t), EBB_OK);
    probe_completed(&w.probe, 9);
    ebb_region_close(fw->host, r);
    future_settle(fw);
}

/* A task that is cancelled while it waits for the callbacks lets go of the future. */
static void a_cancel_while_it_waits_for_the_callbacks(void **state) {
    future_world *fw = *state;
    waiter w = {.fw = fw, .attach = attach_both, .value = future_fd(fw, 2)};
    ebb_task t = ebb_spawn(fw->host, fw->root, wait_poll, &w, &(ebb_task_opts){.keep = true});
    future_settle(fw);
    assert_int_equal(ebb_task_wake(fw->host, t), EBB_OK);
    while (w.waits == 0) assert_int_equal(ebb_runtime_pump(fw->rt, 1), EBB_PENDING);
    ebb_task_cancel(fw->host, t, EBB_CANCEL_USER, "enough");
    future_settle(fw);
    assert_int_equal(w.status, EBB_CANCELLED);
    assert_int_equal(ebb_task_join(fw->host, t), EBB_CANCELLED);
    assert_int_equal(w.probe.cleanups, 1);
    assert_int_equal(future_fd_freed(fw, 2), 1);
}

/* ---- no memory ------------------------------------------------------------------------------------------------- */

static ebb_status await_once(ebb_cx *cx, void *state) {
    waiter *w = state;
    w->status = ebb_await(cx, w->f, &w->value);
    if (w->status != EBB_ERR_NOT_AWAITED) return w->status == EBB_PENDING ? EBB_PENDING : EBB_OK;
    w->waits++;
    w->fw->memory->fail_at = 0;
    (void)ebb_task_wake(cx, ebb_cx_task(cx)); /* nothing was consumed: it may be tried again */
    return EBB_PENDING;
}

/* A region whose first future is another's: to wait for it needs memory. */
static void an_await_without_memory_has_a_status_of_its_own(void **state) {
    future_world *fw = *state;
    uint32_t refused = 0;
    for (uint64_t n = 1; n <= 8; n++) {
        waiter w = {.fw = fw, .f = ebb_promise_new(fw->host, NULL, NULL), .status = EBB_PENDING};
        ebb_region r = ebb_region_open(fw->host, NULL);
        ebb_future *f = w.f;
        ebb_spawn(fw->host, r, await_once, &w);
        fw->memory->fail_at = fw->memory->calls + n;
        future_settle(fw);
        fw->memory->fail_at = 0;
        refused += w.waits;
        assert_int_equal(ebb_promise_settle(f, ebb_value_int(3)), EBB_OK);
        future_settle(fw);
        assert_int_equal(w.status, EBB_OK);
        assert_int_equal(w.value.as.i, 3);
        ebb_region_close(fw->host, r);
        future_settle(fw);
    }
    assert_true(refused > 0);
}

static void a_future_that_failed_for_want_of_memory_says_so(void **state) {
    future_world *fw = *state;
    waiter w = {.fw = fw, .f = ebb_future_failed(fw->host, EBB_ERR_NOMEM), .status = EBB_PENDING};
    ebb_spawn(fw->host, fw->root, await_once, &w);
    future_settle(fw);
    assert_int_equal(w.status, EBB_ERR_NOMEM);
    assert_int_equal(w.waits, 0);
}

/* ---- joins in a callback ---------------------------------------------------------------------------------------- */

typedef struct joins {
    ebb_region region;
    ebb_status first, last;
} joins;

static ebb_status wait_for_ever(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

static void join_in_a_callback(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    joins *j = arg;
    (void)st;
    (void)v;
    j->region = ebb_region_open(cx, NULL);
    j->first = ebb_region_join(cx, j->region);
    (void)ebb_spawn(cx, j->region, wait_for_ever, NULL);
    j->last = ebb_region_join(cx, j->region);
}

static void a_join_in_a_callback_is_refused_and_changes_nothing(void **state) {
    future_world *fw = *state;
    joins j = {.first = EBB_OK, .last = EBB_OK};
    ebb_future *f = ebb_future_ready(fw->host, ebb_value_none());
    assert_int_equal(ebb_future_on_done(f, join_in_a_callback, &j), EBB_OK);
    future_settle(fw);
    assert_int_equal(j.first, EBB_ERR_NOT_TASK);
    assert_int_equal(j.last, EBB_ERR_NOT_TASK);
    assert_int_equal(state_of(fw->world, j.region), EBB_REGION_OPEN);
    ebb_future_drop(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_callback_on_a_finished_future_does_not_hang_its_await),
        IN_FUTURES(a_hold_on_a_finished_future_does_not_hang_its_await),
        IN_FUTURES(the_word_is_moved_to_the_await_after_the_callbacks),
        IN_FUTURES(a_callback_that_comes_between_the_wake_and_the_poll),
        IN_FUTURES(the_await_of_another_region),
        IN_FUTURES(a_cancel_while_it_waits_for_the_callbacks),
        IN_FUTURES(an_await_without_memory_has_a_status_of_its_own),
        IN_FUTURES(a_future_that_failed_for_want_of_memory_says_so),
        IN_FUTURES(a_join_in_a_callback_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
