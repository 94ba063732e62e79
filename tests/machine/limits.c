/* Limits at their edges: what is exactly as large as allowed works, and one more is refused by name. */
#include "tests/support/world.h"

#include <stdlib.h>

enum { GO = 1, TELL, TICK, LAST = 65535, KINDS = 65536, COLUMNS = 5 };

static ebb_machines *ms;
static ebb_machine self_of_many[20];
static uint32_t handled, ticks[4], n_ticks;
static ebb_status (*act)(const ebb_message *m);
static unsigned char bytes[EBB_MACHINE_MESSAGE_MAX];

static ebb_status go(ebb_machines *m, void *self, const ebb_message *msg) {
    (void)m;
    (void)self;
    return act(msg);
}
static ebb_status tell(ebb_machines *m, void *self, const ebb_message *msg) {
    (void)m;
    (void)self;
    (void)msg;
    handled++;
    return EBB_OK;
}
static ebb_status tick(ebb_machines *m, void *self, const ebb_message *msg) {
    (void)m;
    (void)self;
    ticks[n_ticks++ % 4] = msg->kind;
    return EBB_OK;
}

static uint16_t column[KINDS];
static const ebb_machine_rule rules[2][COLUMNS] = {
    {{tick, NULL, EBB_MACHINE_HANDLE},
     {go, NULL, EBB_MACHINE_HANDLE},
     {tell, NULL, EBB_MACHINE_HANDLE},
     {tick, NULL, EBB_MACHINE_HANDLE},
     {tell, NULL, EBB_MACHINE_HANDLE}},
    {{0}, {go, NULL, EBB_MACHINE_HANDLE}, {NULL, NULL, EBB_MACHINE_DEFER}, {0}, {0}},
};
static const ebb_machine_state states[2] = {{.name = "Open"}, {.name = "Shut"}};
static const ebb_machine_type type = {.name = "Limit",
                                      .states = states,
                                      .table = &rules[0][0],
                                      .column = column,
                                      .fields = EBB_MACHINE_FIELDS_MAX,
                                      .n_states = 2,
                                      .columns = COLUMNS,
                                      .mailbox = EBB_MACHINE_MAILBOX_MAX};

static void prepare(void) {
    for (uint16_t k = 0; k < COLUMNS - 1; k++) column[k] = (uint16_t)(k + 1);
    column[LAST] = COLUMNS;
    handled = n_ticks = 0;
}
static int up(void **state) {
    prepare();
    return world_up(state);
}
static int up_untraced(void **state) { /* the trace of a crowd is too long */
    prepare();
    return world_up_untraced(state);
}

static void begin(void **state, uint32_t max_machines) {
    world *w = *state;
    ebb_machines_opts opts = {.n_kinds = KINDS, .max_machines = max_machines};
    assert_int_equal(ebb_machines_open(w->host, &ms, &opts), EBB_OK);
}

static ebb_machine make(uint32_t state) {
    ebb_machine m = ebb_machine_spawn(ms, &type, state, NULL);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    return m;
}

static void run(void **state, ebb_machine m, ebb_status (*what)(const ebb_message *m)) {
    act = what;
    assert_int_equal(ebb_machine_send(ms, m, GO, NULL, 0), EBB_OK);
    world_settle(*state);
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    assert_int_equal(s.faults, 0);
}

static void end(void **state) {
    world *w = *state;
    ebb_region_cancel(w->host, ebb_machines_region(ms), EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static ebb_status opens(const ebb_message *m) {
    (void)m;
    return ebb_machine_become(ms, 0, NULL);
}

static void a_mailbox_holds_65535_messages(void **state) {
    begin(state, 0);
    ebb_machine m = make(1);
    for (uint32_t i = 0; i < EBB_MACHINE_MAILBOX_MAX - 1; i++)
        assert_int_equal(ebb_machine_send(ms, m, TELL, &i, sizeof i), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, m, GO, NULL, 0), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, m, TELL, NULL, 0), EBB_ERR_MAILBOX_FULL);
    act = opens;
    world_settle(*state);
    assert_int_equal(handled, EBB_MACHINE_MAILBOX_MAX - 1);
    end(state);
}

static void kinds_go_up_to_65535(void **state) {
    begin(state, 0);
    ebb_machine m = make(0);
    assert_int_equal(ebb_machine_send(ms, m, LAST, NULL, 0), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, m, LAST - 1, NULL, 0), EBB_OK); /* no state handles it */
    world_settle(*state);
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    assert_int_equal(handled, 1);
    assert_int_equal(s.dead, 1);
    end(state);
}

static void machines_are_counted_while_they_are_alive(void **state) {
    begin(state, 2);
    ebb_machine a = make(0), b = make(0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_id_status(ebb_machine_spawn(ms, &type, 0, NULL).id), EBB_ERR_LIMIT);
        assert_int_equal(ebb_machine_stop(ms, a), EBB_OK);
        assert_int_equal(ebb_machine_stop(ms, b), EBB_OK);
        a = make(0);
        b = make(0);
    }
    end(state);
}

/* ---- a dispatch ---------------------------------------------------------------------------------------------- */

enum { CELL = 64 };

static ebb_status stages_all_it_may(const ebb_message *m) {
    for (uint32_t i = 0; i < 15; i++)
        assert_int_equal(ebb_machine_send(ms, m->self, TELL, bytes, sizeof bytes), EBB_OK);
    size_t left = EBB_MACHINE_DISPATCH_MAX - 15 * (sizeof bytes + CELL);
    assert_null(ebb_machine_alloc(ms, left + 1));
    assert_non_null(ebb_machine_alloc(ms, left - CELL - 8));
    assert_int_equal(ebb_machine_send(ms, m->self, TELL, bytes, 9), EBB_ERR_LIMIT);
    assert_int_equal(ebb_machine_send(ms, m->self, TELL, bytes, 8), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, m->self, TELL, bytes, 0), EBB_ERR_LIMIT);
    assert_null(ebb_machine_alloc(ms, 1));
    return EBB_OK;
}

static void a_dispatch_stages_one_mebibyte(void **state) {
    begin(state, 0);
    run(state, make(0), stages_all_it_may);
    assert_int_equal(handled, 16);
    end(state);
}

static ebb_status subscribes(const ebb_message *m) {
    (void)m;
    return ebb_machine_subscribe(ms, TELL, 1);
}
static ebb_status publishes_too_much(const ebb_message *m) {
    assert_int_equal(ebb_machine_publish(ms, TELL, 1, bytes, sizeof bytes), EBB_ERR_LIMIT);
    return ebb_machine_send(ms, m->self, TELL, bytes, sizeof bytes);
}

/* It has staged nothing: so the dispatch can still stage all that it may. */
static void a_publish_that_is_too_large_takes_nothing_of_the_dispatch(void **state) {
    begin(state, 0);
    for (size_t i = 0; i < 20; i++) run(state, self_of_many[i] = make(0), subscribes);
    run(state, self_of_many[0], publishes_too_much);
    assert_int_equal(handled, 1);
    end(state);
}

/* ---- times ----------------------------------------------------------------------------------------------------- */

static ebb_status arms(const ebb_message *m) {
    (void)m;
    assert_int_equal(ebb_machine_after(ms, EBB_FOREVER, TICK), EBB_OK);
    assert_int_equal(ebb_machine_after(ms, EBB_FOREVER - 1, TICK), EBB_OK);
    assert_int_equal(ebb_machine_after(ms, EBB_MS, TICK), EBB_OK);
    return ebb_machine_after(ms, 0, TICK);
}

static void a_timer_for_ever_never_expires(void **state) {
    begin(state, 0);
    ebb_machine m = make(0);
    run(state, m, arms);
    world_pass(*state, 3600 * EBB_SECOND);
    assert_int_equal(n_ticks, 2);
    ebb_machine_info info;
    assert_int_equal(ebb_machine_info_of(ms, m, &info), EBB_OK);
    assert_int_equal(info.timers, 2);
    end(state);
}

#define AT_LIMITS(test) cmocka_unit_test_setup_teardown(test, up, world_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mailbox_holds_65535_messages, up_untraced, world_down),
        AT_LIMITS(kinds_go_up_to_65535),
        AT_LIMITS(machines_are_counted_while_they_are_alive),
        AT_LIMITS(a_dispatch_stages_one_mebibyte),
        AT_LIMITS(a_publish_that_is_too_large_takes_nothing_of_the_dispatch),
        AT_LIMITS(a_timer_for_ever_never_expires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
