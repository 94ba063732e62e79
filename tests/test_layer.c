/* Layers: several may have the same hook, a slot belongs to one, and records are found by slot. */
#include "tests/support/world.h"

#include "kernel/layer.h"

static char calls[64];

static void note(char who) {
    size_t n = strlen(calls);
    assert_true(n + 1 < sizeof calls);
    calls[n] = who;
}

static void a_leaked(ebb_runtime *rt, const ebb__leak *leak) {
    assert_int_equal(leak->what, EBB__LEAK_OBLIGATION);
    assert_ptr_equal(ebb__layer_record(rt, 5), calls);
    note('a');
}

static void b_leaked(ebb_runtime *rt, const ebb__leak *leak) {
    assert_string_equal(leak->site, "lease.c:1");
    assert_ptr_equal(ebb__layer_record(rt, 6), calls + 1);
    note('b');
}

static void a_ended(ebb_cx *cx, ebb_status status) {
    assert_true(ebb_cx_task(cx).id != 0);
    assert_int_equal(status, EBB_OK);
    note('A');
}

static void b_ended(ebb_cx *cx, ebb_status status) {
    (void)cx;
    (void)status;
    note('B');
}

static void a_freed(ebb_runtime *rt) {
    (void)rt;
    note('1');
}

static void b_freed(ebb_runtime *rt) {
    (void)rt;
    note('2');
}

static bool parks(ebb_cx *cx) {
    (void)cx;
    note('p');
    return false;
}

static const ebb__layer a = {
    .slot = 5, .hooks = {.park = parks, .leaked = a_leaked, .task_ended = a_ended, .freed = a_freed}};
static const ebb__layer b = {
    .slot = 6, .hooks = {.park = parks, .leaked = b_leaked, .task_ended = b_ended, .freed = b_freed}};

static ebb_status leaks_a_lease(ebb_cx *cx, void *state) {
    (void)state;
    ebb__task_watch(cx);
    (void)ebb_obligation_reserve_site(cx, EBB_OBLIGATION_LEASE, NULL, NULL, "lease.c:1");
    return EBB_OK;
}

static ebb_status waits_in_place(ebb_cx *cx, void *state) {
    static ebb_wait wait;
    uint64_t item;
    return ebb_chan_recv(cx, state, &wait, &item) == EBB_PENDING ? EBB_OK : EBB_FAILED;
}

static void a_slot_belongs_to_one_layer(void **state) {
    world *w = *state;
    static const ebb__layer beyond = {.slot = EBB__LAYERS};
    assert_null(ebb__layer_record(w->rt, 5));
    assert_int_equal(ebb__layer_add(w->rt, &beyond, calls), EBB_ERR_INVALID);
    assert_int_equal(ebb__layer_add(w->rt, &a, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb__layer_add(w->rt, &a, calls), EBB_OK);
    assert_int_equal(ebb__layer_add(w->rt, &a, calls), EBB_ERR_BUSY);
    assert_ptr_equal(ebb__layer_record(w->rt, 5), calls);
    ebb__layer_remove(w->rt, &a);
    assert_null(ebb__layer_record(w->rt, 5));
}

static void layers_with_the_same_hook_are_called_in_the_order_of_their_slots(void **state) {
    world *w = *state;
    memset(calls, 0, sizeof calls);
    assert_int_equal(ebb__layer_add(w->rt, &b, calls + 1), EBB_OK);
    (void)ebb_spawn(w->host, w->root, leaks_a_lease, NULL);
    world_settle(w);
    assert_string_equal(calls, "bB"); /* alone, it is called directly */
    assert_int_equal(ebb__layer_add(w->rt, &a, calls), EBB_OK);
    (void)ebb_spawn(w->host, w->root, leaks_a_lease, NULL);
    world_settle(w);
    assert_string_equal(calls, "bBabAB");
    ebb__layer_remove(w->rt, &b);
    (void)ebb_spawn(w->host, w->root, leaks_a_lease, NULL);
    world_settle(w);
    assert_string_equal(calls, "bBabABaA");
    ebb__layer_remove(w->rt, &a);
}

static void an_await_asks_every_layer_until_one_can_park(void **state) {
    world *w = *state;
    ebb_chan *ch = NULL;
    memset(calls, 0, sizeof calls);
    assert_int_equal(ebb_chan_new(w->rt, 1, sizeof(uint64_t), &ch), EBB_OK);
    assert_int_equal(ebb__layer_add(w->rt, &a, calls), EBB_OK);
    assert_int_equal(ebb__layer_add(w->rt, &b, calls + 1), EBB_OK);
    (void)ebb_spawn(w->host, w->root, waits_in_place, ch);
    world_settle(w);
    assert_string_equal(calls, "ppAB"); /* neither could: the await is pending */
    ebb__layer_remove(w->rt, &a);
    ebb__layer_remove(w->rt, &b);
    ebb_chan_free(ch);
}

static void all_hear_of_the_end_of_the_runtime(void **state) {
    (void)state;
    ebb_runtime *rt;
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    memset(calls, 0, sizeof calls);
    assert_int_equal(ebb_runtime_new(&opts, &rt), EBB_OK);
    assert_int_equal(ebb__layer_add(rt, &b, calls + 1), EBB_OK);
    assert_int_equal(ebb__layer_add(rt, &a, calls), EBB_OK);
    ebb_runtime_free(rt);
    assert_string_equal(calls, "12");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_slot_belongs_to_one_layer),
        IN_WORLD(layers_with_the_same_hook_are_called_in_the_order_of_their_slots),
        IN_WORLD(an_await_asks_every_layer_until_one_can_park),
        cmocka_unit_test(all_hear_of_the_end_of_the_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
