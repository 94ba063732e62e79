/* Bridges between two threads: all items arrive, in order, with tasks that are cancelled and sides that close
 * at any moment. */
#include "tests/future/peer_threads.h"

enum { ITEMS = SLOW_BUILD ? 100000 : 1000000, LIVES = SLOW_BUILD ? 300 : 2000, WALKERS = 3 };

typedef struct walker {
    struct crossing *x;
    ebb_wait wait;
    uint64_t item;
} walker;

typedef struct crossing {
    loop from, to;
    ebb_bridge *bridge;
    walker sender[WALKERS], receiver[WALKERS];
    uint64_t sent, received; /* each its own thread's */
    uint64_t limit;
    uint64_t close_at; /* the receiving side closes after so many; 0: never */
    uint32_t sending, receiving;
} crossing;

static void sender_over(ebb_cx *cx, crossing *x) {
    if (--x->sending > 0) return;
    (void)ebb_bridge_close(cx, x->bridge);
    ebb_bridge_release(x->bridge);
    loop_stop(&x->from);
}

static ebb_status send_items(ebb_cx *cx, void *state) {
    walker *w = state;
    crossing *x = w->x;
    ebb_status st = EBB_OK;
    while (x->sent < x->limit || w->wait.cx != NULL) {
        w->item = x->sent + 1;
        st = ebb_bridge_send(cx, x->bridge, &w->wait, &w->item);
        if (st == EBB_PENDING) return st;
        if (st != EBB_OK) break;
        x->sent++;
    }
    assert_true(st == EBB_OK || st == EBB_ERR_CLOSED);
    sender_over(cx, x);
    return EBB_OK;
}

static void receiver_over(crossing *x) {
    if (--x->receiving > 0) return;
    ebb_bridge_release(x->bridge);
    loop_stop(&x->to);
}

static ebb_status receive_items(ebb_cx *cx, void *state) {
    walker *w = state;
    crossing *x = w->x;
    ebb_status st;
    while ((st = ebb_bridge_recv(cx, x->bridge, &w->wait, &w->item)) == EBB_OK) {
        x->received++;
        assert_int_equal(w->item, x->received);
        if (x->received == x->close_at) (void)ebb_bridge_close(cx, x->bridge);
    }
    if (st == EBB_PENDING) return st;
    assert_int_equal(st, EBB_ERR_CLOSED);
    receiver_over(x);
    return EBB_OK;
}

static ebb_status start_senders(ebb_cx *cx, void *state) {
    crossing *x = state;
    for (uint32_t i = 0; i < WALKERS; i++) (void)ebb_spawn(cx, ebb_cx_region(cx), send_items, &x->sender[i]);
    return EBB_OK;
}

static ebb_status start_receivers(ebb_cx *cx, void *state) {
    crossing *x = state;
    for (uint32_t i = 0; i < WALKERS; i++) {
        (void)ebb_spawn(cx, ebb_cx_region(cx), receive_items, &x->receiver[i]);
    }
    return EBB_OK;
}

static void cross(uint64_t items, uint32_t capacity, uint64_t close_at, bool spin) {
    crossing *x = calloc(1, sizeof *x);
    x->limit = items;
    x->close_at = close_at;
    x->sending = x->receiving = WALKERS;
    for (uint32_t i = 0; i < WALKERS; i++) x->sender[i].x = x->receiver[i].x = x;
    loop_new(&x->from, 1, false);
    loop_new(&x->to, 2, false);
    x->from.spins = x->to.spins = spin;
    assert_int_equal(ebb_bridge_new(x->from.peer, x->to.peer, capacity, sizeof(uint64_t), &x->bridge),
                     EBB_OK);
    (void)ebb_bridge_keep(x->bridge);
    loop_start(&x->to, start_receivers, x);
    loop_start(&x->from, start_senders, x);
    loop_join(&x->from);
    loop_join(&x->to);
    assert_int_equal(x->sent, x->received);
    if (close_at == 0) assert_in_range(x->sent, items, items + WALKERS - 1); /* who waited sends one more */
    free(x);
}

static void a_million_items_cross_in_order(void **state) {
    (void)state;
    cross(ITEMS, 256, 0, false);
    cross(ITEMS / 20, 1, 0, false);
    cross(ITEMS / 10, 3, 0, false);
}

/* Where nobody sleeps, a side that begins to wait meets the other in the act. */
static void no_wake_is_lost_between_threads_that_spin(void **state) {
    (void)state;
    for (uint32_t capacity = 1; capacity <= 4; capacity++) cross(ITEMS / 8, capacity, 0, true);
}

static void a_receiver_that_closes_has_had_all_that_was_sent(void **state) {
    (void)state;
    uint64_t random = 31415926535;
    for (uint32_t i = 0; i < LIVES; i++) {
        uint64_t items = 1 + next_random(&random) % 200;
        cross(items, 1 + (uint32_t)(next_random(&random) % 8), 1 + next_random(&random) % items, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_items_cross_in_order),
        cmocka_unit_test(no_wake_is_lost_between_threads_that_spin),
        cmocka_unit_test(a_receiver_that_closes_has_had_all_that_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
