/* A journal of a run with fibers replays to the same trace: for the kernel a fiber is a task like any other,
 * and its replayed task needs no stack. */
#include "fiber/fiber.h"

#include "tests/support/replay_run.h"

typedef struct shop {
    ebb_chan *orders;
    ebb_sem oven;
    ebb_task cook[3];
    int served;
} shop;

static ebb_status closes_the_oven(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_sem_release(cx, &s->oven);
    return EBB_OK;
}

static ebb_status cooks(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_wait wait = {.cx = NULL};
    ebb_status st = ebb_sem_acquire(cx, &s->oven, &wait);
    if (st != EBB_OK) return st;
    (void)ebb_defer(cx, closes_the_oven, s);
    int order;
    while ((st = ebb_chan_recv(cx, s->orders, &wait, &order)) == EBB_OK) {
        ebb_sleeper nap = {.due = 0};
        st = ebb_sleep(cx, &nap, (uint64_t)order * EBB_MS);
        if (st != EBB_OK) break;
        s->served++;
    }
    (void)ebb_mask(cx);
    ebb_sleeper nap = {.due = 0};
    (void)ebb_sleep(cx, &nap, EBB_MS);
    (void)ebb_unmask(cx);
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static ebb_status orders(ebb_cx *cx, void *arg) {
    shop *s = arg;
    ebb_wait wait = {.cx = NULL};
    ebb_region r = ebb_region_open(cx, NULL);
    for (int i = 0; i < 3; i++) {
        s->cook[i] = ebb_fiber_spawn(cx, r, cooks, s, &(ebb_task_opts){.keep = true, .priority = 3});
    }
    for (int i = 1; i <= 8; i++) {
        ebb_status st = ebb_chan_send(cx, s->orders, &wait, &i);
        if (st != EBB_OK) return st;
        if (i % 3 == 0 && (st = ebb_fiber_yield(cx)) != EBB_OK) return st;
    }
    ebb_chan_close(cx, s->orders);
    ebb_status st = ebb_task_join(cx, s->cook[0]);
    return st != EBB_OK ? st : ebb_region_join(cx, r);
}

static void lets_go(ebb_wait *w) {
    const ebb_task *other = w->on;
    (void)ebb_task_wake(ebb_runtime_host(ebb_cx_runtime(w->cx)), *other);
}

static ebb_status never_stops(ebb_cx *cx, void *arg) {
    ebb_wait wait = {.cx = NULL};
    shop *s = arg;
    while (s->served >= 0) {
        if (ebb_cancelled(cx)) (void)ebb_fiber_park(cx);
        else (void)ebb_sem_acquire(cx, &s->oven, &wait);
        s->served++;
    }
    return EBB_FAILED;
}

/* `verb` is applied to everything at the time `at`. */
static void run_shop(uint64_t at, void (*verb)(ebb_cx *cx, ebb_region r), int served) {
    run r = record(NULL);
    shop s = {.served = 0};
    assert_int_equal(ebb_chan_new(r.rt, 2, sizeof(int), &s.orders), EBB_OK);
    ebb_sem_init(&s.oven, 2);
    ebb_region shops = ebb_region_open(r.host, NULL);
    ebb_fiber_spawn(r.host, shops, orders, &s);
    for (uint64_t now = 0; now < 40; now++) {
        at_pump(&r, now * EBB_MS);
        if (now == at) verb(r.host, shops);
    }
    at_pump(&r, 20 * EBB_SECOND);
    assert_int_equal(s.served, served);
    ebb_chan_free(s.orders);
    stop_and_compare(&r);
}

static void polite(ebb_cx *cx, ebb_region r) {
    ebb_region_cancel(cx, r, EBB_CANCEL_USER, "closing time");
}

static void forced(ebb_cx *cx, ebb_region r) {
    ebb_region_force(cx, r);
}

static void a_run_of_fibers_replays(void **state) {
    (void)state;
    run_shop(100, NULL, 8);
}

static void a_run_of_fibers_that_are_cancelled_or_forced_replays(void **state) {
    (void)state;
    run_shop(0, polite, 0);
    run_shop(4, polite, 3);
    run_shop(7, forced, 4);
}

static ebb_status waits_confined(ebb_cx *cx, void *arg) {
    ebb_wait wait = {.cx = NULL};
    static const ebb_wait_kind kind = {"a step", lets_go};
    if (ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), ends_at_once, NULL).id) != EBB_ERR_DURABLE_CONTEXT)
        return EBB_FAILED;
    for (;;) (void)ebb__fiber_wait(cx, &wait, &kind, arg);
}

static void a_run_with_discarded_fibers_replays(void **state) {
    (void)state;
    run r = record(NULL);
    shop s = {.served = 0};
    assert_int_equal(ebb_chan_new(r.rt, 2, sizeof(int), &s.orders), EBB_OK);
    ebb_sem_init(&s.oven, 1);
    ebb_region shops = ebb_region_open(r.host, NULL);
    ebb_task t[4];
    for (int i = 0; i < 3; i++) t[i] = ebb_fiber_spawn(r.host, shops, cooks, &s);
    t[3] = ebb__fiber_spawn_confined(r.host, shops, waits_confined, &t[1], 0x5a, NULL, EBB_SITE);
    assert_int_equal(ebb__task_discard(r.host, t[2]), EBB_OK); /* it never ran */
    at_pump(&r, 1);
    assert_int_equal(ebb__task_discard(r.host, t[0]), EBB_ERR_OWES); /* it has the oven */
    assert_int_equal(ebb__task_discard(r.host, t[3]), EBB_OK);       /* the hook of its wait wakes t[1] */
    at_pump(&r, 2);
    assert_int_equal(ebb__task_discard(r.host, t[1]), EBB_OK); /* it waits for the oven */
    assert_int_equal(ebb__task_discard(r.host, t[1]), EBB_ERR_STALE);
    ebb_chan_close(r.host, s.orders);
    at_pump(&r, 20 * EBB_MS);
    ebb_chan_free(s.orders);
    stop(&r);
    assert_int_equal(count(&r.trace, EBB_EV_DISCARDED), 3);
    assert_replays(&r.journal, &r.trace);
    forget(&r);
}

static void a_run_with_abandoned_fibers_replays(void **state) {
    (void)state;
    run r = record(NULL);
    shop s = {.served = 0};
    ebb_sem_init(&s.oven, 1);
    ebb_region shops = ebb_region_open(r.host, NULL);
    for (int i = 0; i < 3; i++) ebb_fiber_spawn(r.host, shops, never_stops, &s);
    at_pump(&r, 1);
    ebb_region_cancel(r.host, shops, EBB_CANCEL_SHUTDOWN, NULL);
    for (uint64_t now = 1; now < 1000; now += 50) at_pump(&r, now * EBB_MS);
    ebb_runtime_stats st;
    ebb_runtime_stats_of(r.rt, &st);
    assert_int_equal(st.abandoned, 3);
    stop_and_compare(&r);
}

static void a_run_that_is_freed_with_fibers_in_it_replays(void **state) {
    (void)state;
    run r = record(NULL);
    shop s = {.served = 0};
    assert_int_equal(ebb_chan_new(r.rt, 2, sizeof(int), &s.orders), EBB_OK);
    ebb_sem_init(&s.oven, 2);
    ebb_fiber_spawn(r.host, ebb_runtime_root(r.rt), orders, &s);
    at_pump(&r, 2 * EBB_MS);
    ebb_chan_free(s.orders);
    stop_and_compare(&r);
}

static void a_fiber_that_was_refused_is_refused_again(void **state) {
    (void)state;
    run r = record(NULL);
    shop s = {.served = 0};
    ebb_sem_init(&s.oven, 0);
    assert_int_equal(ebb_fiber_setup(r.rt, &(ebb_fiber_opts){.max = 2}), EBB_OK);
    ebb_region shops = ebb_region_open(r.host, NULL);
    for (int i = 0; i < 3; i++) {
        ebb_task t = ebb_fiber_spawn(r.host, shops, cooks, &s);
        assert_int_equal(ebb_id_status(t.id), i < 2 ? EBB_OK : EBB_ERR_LIMIT);
    }
    ebb_region_close(r.host, shops);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(r.host, shops, cooks, &s).id), EBB_ERR_CLOSED);
    at_pump(&r, 1);
    assert_int_equal(ebb_region_join(r.host, shops), EBB_ERR_LIMIT);
    stop_and_compare(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_fibers_replays),
        cmocka_unit_test(a_run_of_fibers_that_are_cancelled_or_forced_replays),
        cmocka_unit_test(a_run_with_abandoned_fibers_replays),
        cmocka_unit_test(a_run_with_discarded_fibers_replays),
        cmocka_unit_test(a_run_that_is_freed_with_fibers_in_it_replays),
        cmocka_unit_test(a_fiber_that_was_refused_is_refused_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
