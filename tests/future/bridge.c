/* Bounded queues between two runtimes: order, backpressure, fairness, cancels, ends. */
#include "tests/support/two_worlds.h"

enum { CAPACITY = 2 };

/* A task that sends or receives a number of items, one after the other. */
typedef struct walker {
    ebb_bridge *bridge;
    ebb_wait wait;
    ebb_task id;
    uint64_t item; /* the next to send, or the last that was received */
    uint32_t left, done;
    ebb_status st;
} walker;

static ebb_status walk(ebb_cx *cx, walker *w, bool sends) {
    while (w->left > 0) {
        w->st = sends ? ebb_bridge_send(cx, w->bridge, &w->wait, &w->item)
                      : ebb_bridge_recv(cx, w->bridge, &w->wait, &w->item);
        if (w->st == EBB_PENDING) return EBB_PENDING;
        if (w->st != EBB_OK) return w->st == EBB_CANCELLED ? w->st : EBB_OK;
        w->item += sends;
        w->left--;
        w->done++;
    }
    return EBB_OK;
}

static ebb_status send_some(ebb_cx *cx, void *state) {
    return walk(cx, state, true);
}

static ebb_status receive_some(ebb_cx *cx, void *state) {
    return walk(cx, state, false);
}

static walker *start(world *w, ebb_bridge *b, ebb_poll_fn poll, uint64_t first, uint32_t n) {
    walker *k = world_keep(w, sizeof *k);
    *k = (walker){.bridge = b, .item = first, .left = n, .st = EBB_PENDING};
    k->id = ebb_spawn(w->host, w->root, poll, k);
    assert_int_equal(ebb_id_status(k->id.id), EBB_OK);
    turn(w);
    return k;
}

static walker *sender(two *t, ebb_bridge *b, uint64_t first, uint32_t n) {
    return start(t->a, b, send_some, first, n);
}

static walker *receiver(two *t, ebb_bridge *b, uint32_t n) {
    return start(t->b, b, receive_some, 0, n);
}

static ebb_bridge *bridge(two *t) {
    ebb_bridge *b;
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, CAPACITY, sizeof(uint64_t), &b), EBB_OK);
    meet(t);
    return b;
}

/* ---- items ------------------------------------------------------------------------------------------------ */

static void items_cross_in_order(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *s = sender(t, b, 1, 7);
    for (uint64_t i = 1; i <= 7; i++) {
        walker *r = receiver(t, b, 1);
        meet(t);
        assert_int_equal(r->st, EBB_OK);
        assert_int_equal(r->item, i);
    }
    assert_int_equal(s->done, 7);
    ebb_bridge_release(b);
}

static void a_full_bridge_makes_its_sender_wait(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *s = sender(t, b, 1, 3);
    assert_int_equal(s->done, CAPACITY);
    meet(t);
    assert_int_equal(s->done, CAPACITY);
    (void)receiver(t, b, 1);
    meet(t);
    assert_int_equal(s->done, 3);
    ebb_bridge_release(b);
}

/* A receiver that waits is told once, however much is sent before it has heard of it. */
static void one_letter_tells_of_any_number_of_items(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *r = receiver(t, b, 2);
    uint64_t calls = t->a->memory.calls + t->b->memory.calls;
    t->woken_b = 0;
    uint64_t item = 5;
    ebb_wait w = {.cx = NULL};
    assert_int_equal(ebb_bridge_send(t->a->host, b, &w, &item), EBB_OK);
    assert_int_equal(ebb_bridge_send(t->a->host, b, &w, &item), EBB_OK);
    assert_int_equal(t->woken_b, 1);
    turn(t->b);
    assert_int_equal(r->done, 2);
    assert_int_equal(t->a->memory.calls + t->b->memory.calls, calls);
    assert_int_equal(ebb_bridge_send(t->a->host, b, &w, &item), EBB_OK);
    assert_int_equal(t->woken_b, 1); /* nobody waits */
    ebb_bridge_release(b);
}

static void items_may_be_empty(void **state) {
    two *t = *state;
    ebb_bridge *b;
    ebb_wait w = {.cx = NULL};
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 1, 0, &b), EBB_OK);
    assert_int_equal(ebb_bridge_send(t->a->host, b, &w, NULL), EBB_OK);
    assert_int_equal(ebb_bridge_recv(t->b->host, b, &w, NULL), EBB_OK);
    meet(t);
    ebb_bridge_release(b);
}

/* ---- who waits ------------------------------------------------------------------------------------------------ */

static void waiters_are_served_first_come_first_served(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *first = receiver(t, b, 1), *second = receiver(t, b, 1);
    (void)sender(t, b, 1, 1);
    walker *late = world_keep(t->b, sizeof *late);
    *late = (walker){.bridge = b, .left = 1, .st = EBB_PENDING};
    late->id = ebb_spawn(t->b->host, t->b->root, receive_some, late); /* comes when the item is there */
    world_settle(t->b);
    assert_int_equal(late->st, EBB_PENDING);
    turn(t->b);
    assert_int_equal(first->st, EBB_OK);
    assert_int_equal(second->st, EBB_PENDING);
    assert_int_equal(late->st, EBB_PENDING);
    (void)sender(t, b, 2, 2);
    meet(t);
    assert_int_equal(second->item, 2);
    assert_int_equal(late->item, 3);
    ebb_bridge_release(b);
}

static void senders_are_served_first_come_first_served(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    (void)sender(t, b, 1, CAPACITY);
    walker *first = sender(t, b, 11, 1), *second = sender(t, b, 12, 1);
    (void)receiver(t, b, 1);
    walker *late = sender(t, b, 13, 1); /* which takes the message in */
    assert_int_equal(first->st, EBB_OK);
    assert_int_equal(second->st, EBB_PENDING);
    assert_int_equal(late->st, EBB_PENDING);
    walker *r = receiver(t, b, 4);
    meet(t);
    assert_int_equal(r->item, 13);
    ebb_bridge_release(b);
}

static void a_cancelled_receiver_leaves_its_item_to_the_next(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *first = receiver(t, b, 1), *second = receiver(t, b, 1);
    (void)sender(t, b, 9, 1);
    ebb_inbox_receive(t->b->rt); /* it is granted, */
    ebb_task_cancel(t->b->host, first->id, EBB_CANCEL_USER, "and cancelled");
    world_settle(t->b);
    assert_int_equal(first->st, EBB_CANCELLED);
    assert_int_equal(second->st, EBB_OK);
    assert_int_equal(second->item, 9);
    ebb_bridge_release(b);
}

static void a_cancelled_sender_leaves_its_place_to_the_next(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    (void)sender(t, b, 1, CAPACITY);
    walker *first = sender(t, b, 11, 1), *second = sender(t, b, 12, 1);
    (void)receiver(t, b, 1);
    ebb_inbox_receive(t->a->rt);
    ebb_task_cancel(t->a->host, first->id, EBB_CANCEL_USER, "it was granted a place");
    world_settle(t->a);
    assert_int_equal(first->st, EBB_CANCELLED);
    assert_int_equal(second->st, EBB_OK);
    walker *r = receiver(t, b, 2);
    meet(t);
    assert_int_equal(r->item, 12);
    (void)sender(t, b, 21, CAPACITY); /* all places are there */
    walker *full = sender(t, b, 31, 1);
    assert_int_equal(full->st, EBB_PENDING);
    ebb_task_cancel(t->a->host, full->id, EBB_CANCEL_USER, "over");
    world_settle(t->a);
    ebb_bridge_release(b);
}

static void the_host_does_not_wait(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    ebb_wait w = {.cx = NULL};
    uint64_t item = 0;
    assert_int_equal(ebb_bridge_recv(t->b->host, b, &w, &item), EBB_ERR_NOT_TASK);
    for (int i = 0; i < CAPACITY; i++) assert_int_equal(ebb_bridge_send(t->a->host, b, &w, &item), EBB_OK);
    assert_int_equal(ebb_bridge_send(t->a->host, b, &w, &item), EBB_ERR_NOT_TASK);
    meet(t);
    ebb_bridge_release(b);
}

/* ---- ends ------------------------------------------------------------------------------------------------------- */

static void what_was_sent_before_the_end_is_received(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    (void)sender(t, b, 1, 2);
    assert_int_equal(ebb_bridge_close(t->a->host, b), EBB_OK);
    walker *late = sender(t, b, 3, 1);
    assert_int_equal(late->st, EBB_ERR_CLOSED);
    walker *r = receiver(t, b, 3);
    assert_int_equal(r->done, 2);
    assert_int_equal(r->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void a_close_wakes_who_waits_on_the_other_side(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *r = receiver(t, b, 1);
    assert_int_equal(ebb_bridge_close(t->a->host, b), EBB_OK);
    turn(t->b);
    assert_int_equal(r->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void the_receiving_side_closes_and_gets_what_was_sent_meanwhile(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    assert_int_equal(ebb_bridge_close(t->b->host, b), EBB_OK);
    walker *r = receiver(t, b, 9);
    assert_int_equal(r->st, EBB_PENDING); /* the other side has not agreed yet */
    turn(t->a);
    turn(t->b);
    assert_int_equal(r->st, EBB_ERR_CLOSED);
    walker *s = sender(t, b, 1, 1);
    assert_int_equal(s->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void a_sender_that_waits_hears_of_the_other_sides_close(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *s = sender(t, b, 1, 9);
    assert_int_equal(ebb_bridge_close(t->b->host, b), EBB_OK);
    turn(t->a);
    assert_int_equal(s->st, EBB_ERR_CLOSED);
    assert_int_equal(s->done, CAPACITY);
    walker *r = receiver(t, b, 9);
    meet(t);
    assert_int_equal(r->done, CAPACITY);
    assert_int_equal(r->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void a_side_whose_runtime_is_freed_closes_it(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *s = sender(t, b, 1, 9);
    doom(t->b);
    turn(t->a);
    assert_int_equal(s->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void a_sending_side_whose_runtime_is_freed_closes_it(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    walker *r = receiver(t, b, 9);
    (void)sender(t, b, 1, 1);
    doom(t->a);
    turn(t->b);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->st, EBB_ERR_CLOSED);
    ebb_bridge_release(b);
}

static void a_bridge_to_a_runtime_that_is_gone_is_closed(void **state) {
    two *t = *state;
    ebb_bridge *before, *after;
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 1, 8, &before), EBB_OK);
    doom(t->b);
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 1, 8, &after), EBB_OK);
    turn(t->a);
    assert_int_equal(sender(t, before, 1, 1)->st, EBB_ERR_CLOSED);
    assert_int_equal(sender(t, after, 1, 1)->st, EBB_ERR_CLOSED);
    ebb_bridge_release(before);
    ebb_bridge_release(after);
}

/* ---- bad use, memory ----------------------------------------------------------------------------------------------- */

static void each_side_has_its_own_runtime(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    ebb_wait w = {.cx = NULL};
    uint64_t item = 0;
    assert_int_equal(ebb_bridge_send(t->b->host, b, &w, &item), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_bridge_recv(t->a->host, b, &w, &item), EBB_ERR_FOREIGN);
    world *other = world_new(NULL, false);
    assert_int_equal(ebb_bridge_close(other->host, b), EBB_ERR_FOREIGN);
    world_end(other);
    ebb_bridge_release(b);
}

static void what_can_not_be_made_is_refused(void **state) {
    two *t = *state;
    ebb_bridge *b;
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 0, 8, &b), EBB_ERR_INVALID);
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, UINT32_MAX, 0, &b), EBB_ERR_INVALID);
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 1u << 30, 8, &b), EBB_ERR_INVALID);
    assert_int_equal(ebb_bridge_new(NULL, t->to_b, 1, 8, &b), EBB_ERR_INVALID);
    assert_int_equal(ebb_bridge_new(t->to_a, NULL, 1, 8, &b), EBB_ERR_INVALID);
    t->a->memory.fail_at = t->a->memory.calls + 1;
    assert_int_equal(ebb_bridge_new(t->to_a, t->to_b, 1, 8, &b), EBB_ERR_NOMEM);
    assert_null(b);
    ebb_bridge_release(NULL);
}

static void the_last_reference_frees_it(void **state) {
    two *t = *state;
    int64_t live = t->a->memory.live;
    ebb_bridge *b = bridge(t);
    assert_ptr_equal(ebb_bridge_keep(b), b);
    ebb_bridge_release(b);
    (void)sender(t, b, 1, 1);
    meet(t);
    assert_true(t->a->memory.live > live);
    ebb_bridge_release(b);
    int64_t before = t->a->memory.live;
    meet(t);
    assert_int_equal(t->a->memory.live, before - 1);
}

/* ---- futures ---------------------------------------------------------------------------------------------- */

static ebb_value claim_of(world *w, ebb_future *f) {
    ebb_value v;
    turn(w);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    return v;
}

static void an_item_that_nobody_takes_goes_to_the_next(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    uint64_t item = 7, got = 0;
    assert_int_equal(ebb_bridge_try_recv(t->b->host, b, &got), EBB_PENDING);
    ebb_future *first = ebb_bridge_recv_future(t->b->host, b), *third = NULL;
    walker *second = receiver(t, b, 1);
    third = ebb_within(t->b->host, ebb_bridge_recv_future(t->b->host, b), EBB_MS);
    assert_int_equal(ebb_bridge_try_send(t->a->host, b, &item), EBB_OK);
    meet(t);
    assert_int_equal(second->st, EBB_PENDING);
    ebb_value_discard(t->b->host, claim_of(t->b, first));
    meet(t);
    assert_true(second->st == EBB_OK && second->item == 7);
    world_pass(t->b, 2 * EBB_MS);
    assert_int_equal(ebb_await(t->b->host, third, NULL), EBB_TIMEOUT);
    assert_int_equal(ebb_bridge_try_send(t->a->host, b, &item), EBB_OK);
    ebb_value v = claim_of(t->b, ebb_bridge_recv_future(t->b->host, b));
    assert_int_equal(ebb_bridge_try_recv(t->b->host, b, &got), EBB_PENDING); /* it is granted */
    assert_int_equal(ebb_bridge_take(t->b->host, &v, &got), EBB_OK);
    assert_int_equal(ebb_bridge_take(t->b->host, &v, &got), EBB_ERR_INVALID);
    assert_int_equal(got, 7);
    ebb_bridge_release(b);
}

static void a_place_that_nobody_uses_goes_to_the_next(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    uint64_t item = 1, got = 0;
    ebb_value v[CAPACITY];
    for (int i = 0; i < CAPACITY; i++) v[i] = claim_of(t->a, ebb_bridge_send_future(t->a->host, b));
    assert_int_equal(ebb_bridge_try_send(t->a->host, b, &item), EBB_PENDING);
    walker *next = sender(t, b, 9, 1);
    assert_int_equal(next->st, EBB_PENDING);
    ebb_value_discard(t->a->host, v[0]);
    turn(t->a);
    assert_int_equal(next->st, EBB_OK);
    assert_int_equal(ebb_bridge_put(t->a->host, &v[1], &item), EBB_OK);
    assert_int_equal(ebb_bridge_put(t->a->host, &v[1], &item), EBB_ERR_INVALID);
    meet(t);
    assert_int_equal(ebb_bridge_try_recv(t->b->host, b, &got), EBB_OK);
    assert_int_equal(got, 9);
    assert_int_equal(ebb_bridge_try_recv(t->b->host, b, &got), EBB_OK);
    assert_int_equal(got, 1);
    ebb_bridge_release(b);
}

static void a_close_ends_its_futures(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    uint64_t item = 1;
    ebb_value place = claim_of(t->a, ebb_bridge_send_future(t->a->host, b));
    ebb_value other = claim_of(t->a, ebb_bridge_send_future(t->a->host, b));
    ebb_future *send = ebb_bridge_send_future(t->a->host, b), *recv = ebb_bridge_recv_future(t->b->host, b);
    meet(t);
    assert_int_equal(ebb_bridge_close(t->b->host, b), EBB_OK);
    meet(t);
    assert_int_equal(ebb_await(t->a->host, send, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(t->b->host, recv, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_bridge_put(t->a->host, &place, &item), EBB_ERR_CLOSED);
    ebb_value_discard(t->a->host, other);
    assert_int_equal(ebb_bridge_try_send(t->a->host, b, &item), EBB_ERR_CLOSED);
    assert_int_equal(ebb_bridge_try_recv(t->b->host, b, &item), EBB_ERR_CLOSED);
    recv = ebb_bridge_recv_future(t->b->host, b);
    turn(t->b);
    assert_int_equal(ebb_await(t->b->host, recv, NULL), EBB_ERR_CLOSED);
    assert_int_equal(ebb_await(t->b->host, ebb_bridge_send_future(t->b->host, b), NULL), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_await(t->a->host, ebb_bridge_recv_future(t->a->host, b), NULL), EBB_ERR_FOREIGN);
    assert_int_equal(ebb_await(t->a->host, ebb_bridge_recv_future(t->a->host, NULL), NULL), EBB_ERR_INVALID);
    ebb_bridge_release(b);
}

/* The bridge is released first: claims and waiting futures keep it. */
static void a_runtime_that_is_freed_gives_its_claims_back(void **state) {
    two *t = *state;
    ebb_bridge *b = bridge(t);
    uint64_t item = 1;
    assert_int_equal(ebb_bridge_try_send(t->a->host, b, &item), EBB_OK);
    for (int i = 0; i < 2; i++) (void)ebb_bridge_recv_future(t->b->host, b);
    ebb_future *send = ebb_bridge_send_future(t->a->host, b);
    ebb_bridge_release(b);
    meet(t);
    doom(t->b);
    ebb_value v = claim_of(t->a, send);
    ebb_value_discard(t->a->host, v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TWO_WORLDS(items_cross_in_order),
        IN_TWO_WORLDS(a_full_bridge_makes_its_sender_wait),
        IN_TWO_WORLDS(one_letter_tells_of_any_number_of_items),
        IN_TWO_WORLDS(items_may_be_empty),
        IN_TWO_WORLDS(waiters_are_served_first_come_first_served),
        IN_TWO_WORLDS(senders_are_served_first_come_first_served),
        IN_TWO_WORLDS(a_cancelled_receiver_leaves_its_item_to_the_next),
        IN_TWO_WORLDS(a_cancelled_sender_leaves_its_place_to_the_next),
        IN_TWO_WORLDS(the_host_does_not_wait),
        IN_TWO_WORLDS(what_was_sent_before_the_end_is_received),
        IN_TWO_WORLDS(a_close_wakes_who_waits_on_the_other_side),
        IN_TWO_WORLDS(the_receiving_side_closes_and_gets_what_was_sent_meanwhile),
        IN_TWO_WORLDS(a_sender_that_waits_hears_of_the_other_sides_close),
        IN_TWO_WORLDS(a_side_whose_runtime_is_freed_closes_it),
        IN_TWO_WORLDS(a_sending_side_whose_runtime_is_freed_closes_it),
        IN_TWO_WORLDS(a_bridge_to_a_runtime_that_is_gone_is_closed),
        IN_TWO_WORLDS(each_side_has_its_own_runtime),
        IN_TWO_WORLDS(what_can_not_be_made_is_refused),
        IN_TWO_WORLDS(the_last_reference_frees_it),
        IN_TWO_WORLDS(an_item_that_nobody_takes_goes_to_the_next),
        IN_TWO_WORLDS(a_place_that_nobody_uses_goes_to_the_next),
        IN_TWO_WORLDS(a_close_ends_its_futures),
        IN_TWO_WORLDS(a_runtime_that_is_freed_gives_its_claims_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
