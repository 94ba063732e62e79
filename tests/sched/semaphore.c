/* Semaphores: first come, first served, and a permit is never lost with a waiter. */
#include "tests/support/world.h"

static void takes_one(ebb_cx *cx, puppet *p) {
    if (p->number != 0) return; /* it has it */
    p->seen = ebb_sem_acquire(cx, p->arg, &p->wait);
    if (p->seen == EBB_OK) p->number = 1;
    p->returns = p->seen == EBB_CANCELLED ? EBB_CANCELLED : EBB_PENDING;
}

static puppet *taker(world *w, ebb_sem *s) {
    return puppet_start(w, w->root, (puppet){.act = takes_one, .arg = s, .returns = EBB_PENDING});
}

static ebb_sem *sem_of(world *w, uint32_t permits) {
    ebb_sem *s = world_keep(w, sizeof *s);
    ebb_sem_init(s, permits);
    return s;
}

static void permits_are_given_until_none_is_left_and_then_in_order_of_asking(void **state) {
    world *w = *state;
    ebb_sem *s = sem_of(w, 2);
    puppet *p[5];
    for (int i = 0; i < 5; i++) p[i] = taker(w, s);
    world_settle(w);
    for (uint64_t i = 0; i < 5; i++) assert_int_equal(p[i]->number, i < 2);
    assert_int_equal(s->free, 0);
    for (int next = 2; next < 5; next++) {
        ebb_sem_release(w->host, s);
        puppet *newcomer = taker(w, s); /* may not come in between */
        world_settle(w);
        assert_int_equal(p[next]->number, 1);
        assert_int_equal(newcomer->number, 0);
        ebb_task_cancel(w->host, newcomer->id, EBB_CANCEL_USER, NULL);
        world_settle(w);
    }
    ebb_sem_release(w->host, s);
    assert_int_equal(s->free, 1);
}

static void a_waiter_that_is_cancelled_leaves_the_queue(void **state) {
    world *w = *state;
    ebb_sem *s = sem_of(w, 0);
    puppet *p[3];
    for (int i = 0; i < 3; i++) p[i] = taker(w, s);
    world_settle(w);
    ebb_task_cancel(w->host, p[1]->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(info_of(w, p[1]->id).status, EBB_CANCELLED);
    ebb_sem_release(w->host, s);
    ebb_sem_release(w->host, s);
    world_settle(w);
    assert_int_equal(p[0]->number, 1);
    assert_int_equal(p[2]->number, 1);
    assert_int_equal(s->free, 0);
}

static void a_permit_granted_to_one_who_is_then_cancelled_goes_to_the_next(void **state) {
    world *w = *state;
    for (int how = 0; how < 3; how++) {
        ebb_sem *s = sem_of(w, 0);
        puppet *a = taker(w, s), *b = taker(w, s);
        world_settle(w);
        ebb_sem_release(w->host, s); /* granted to the first, which has not been polled yet */
        if (how == 0) ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, NULL);
        if (how > 0) a->act = NULL;
        if (how == 1) a->returns = EBB_OK;            /* returns without looking */
        if (how == 2) ebb_task_force(w->host, a->id); /* is abandoned */
        world_settle(w);
        assert_int_equal(phase_of(w, a->id), EBB_TASK_COMPLETED);
        assert_int_equal(a->number, 0);
        assert_int_equal(b->number, 1);
        assert_int_equal(s->free, 0);
    }
}

static void with_nobody_left_to_have_it_the_permit_is_free_again(void **state) {
    world *w = *state;
    ebb_sem *s = sem_of(w, 0);
    puppet *a = taker(w, s);
    world_settle(w);
    ebb_sem_release(w->host, s);
    ebb_task_cancel(w->host, a->id, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(a->number, 0);
    assert_int_equal(s->free, 1);
}

/* Every way in which releases, cancels and polls can follow each other: the permits add up. */
static void at_every_interleaving_the_permits_add_up(void **state) {
    world *w = *state;
    enum { STEPS = 7, WAYS = 3 * 3 * 3 * 3 * 3 * 3 * 3 };
    for (uint32_t way = 0; way < WAYS; way++) {
        ebb_sem *s = sem_of(w, 1);
        puppet *p[3];
        uint32_t released = 0, code = way, victim = 0;
        for (int i = 0; i < 3; i++) p[i] = taker(w, s);
        for (int step = 0; step < STEPS; step++, code /= 3) {
            if (code % 3 == 0) (void)ebb_runtime_pump(w->rt, 1);
            if (code % 3 == 1) ebb_sem_release(w->host, s), released++;
            if (code % 3 == 2 && victim < 3) ebb_task_cancel(w->host, p[victim++]->id, EBB_CANCEL_USER, NULL);
        }
        world_settle(w);
        uint64_t held = p[0]->number + p[1]->number + p[2]->number;
        assert_int_equal(s->free + held, 1 + released);
        for (int i = 0; i < 3; i++) {
            if (s->free > 0)
                assert_int_not_equal(p[i]->seen, EBB_PENDING); /* nobody waits for what is there */
            p[i]->act = NULL;
            p[i]->returns = EBB_OK;
            (void)ebb_task_wake(w->host, p[i]->id);
        }
        world_settle(w);
    }
}

static void the_host_may_take_a_permit_but_not_wait_for_one(void **state) {
    world *w = *state;
    ebb_sem *s = sem_of(w, 1);
    ebb_wait wait = {0};
    assert_int_equal(ebb_sem_acquire(w->host, s, &wait), EBB_OK);
    assert_int_equal(ebb_sem_acquire(w->host, s, &wait), EBB_ERR_NOT_TASK);
    assert_null(s->first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(permits_are_given_until_none_is_left_and_then_in_order_of_asking),
        IN_WORLD(a_waiter_that_is_cancelled_leaves_the_queue),
        IN_WORLD(a_permit_granted_to_one_who_is_then_cancelled_goes_to_the_next),
        IN_WORLD(with_nobody_left_to_have_it_the_permit_is_free_again),
        IN_WORLD(at_every_interleaving_the_permits_add_up),
        IN_WORLD(the_host_may_take_a_permit_but_not_wait_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
