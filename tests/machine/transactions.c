/* A dispatch happens as a whole or not at all, and what it has staged arrives in that order. */
#include "tests/support/world.h"

enum { GO = 1, PING, TELL, ASK, ASK_TOO, YES, NO, TICK, KINDS };
enum { IDLE, BUSY, DONE, STATES };

/* What the next GO does. The same type plays all parts. */
typedef struct part {
    ebb_machine peer, other;
    ebb_status (*act)(ebb_machines *ms, struct part *p, const ebb_message *m);
    uint64_t number;
} part;

static char seen[4096]; /* "kind@state " for each handled message */
static world *now;

static void note(const char *text) {
    assert_true(strlen(seen) + strlen(text) + 2 < sizeof seen);
    strcat(seen, text);
    strcat(seen, " ");
}

static ebb_status on_go(ebb_machines *ms, void *self, const ebb_message *m) {
    part *p = self;
    note("go");
    return p->act == NULL ? EBB_OK : p->act(ms, p, m);
}
static ebb_status on_ping(ebb_machines *ms, void *self, const ebb_message *m) {
    part *p = self;
    (void)ms;
    (void)m;
    p->number++;
    note("ping");
    return EBB_OK;
}
static ebb_status on_tell(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    note("tell");
    return EBB_OK;
}
static ebb_status on_ask(ebb_machines *ms, void *self, const ebb_message *m) {
    note(m->kind == ASK ? "ask" : "ask_too");
    part *p = self;
    if (p->act != NULL) return p->act(ms, p, m);
    return ebb_machine_reply(ms, (ebb_request){0}, YES, &p->number, sizeof p->number);
}
static ebb_status on_yes(ebb_machines *ms, void *self, const ebb_message *m) {
    part *p = self;
    note(m->kind == YES ? "yes" : "no");
    assert_true(m->origin_kind == ASK || m->origin_kind == ASK_TOO);
    return p->number == 77 ? ebb_machine_become(ms, BUSY, NULL) : EBB_OK;
}
static ebb_status on_failed(ebb_machines *ms, void *self, const ebb_message *m) {
    static const char *const names[] = {"?", "timeout", "stopped", "faulted", "unhandled"};
    (void)ms;
    (void)self;
    note(names[m->failure]);
    return EBB_OK;
}
static ebb_status on_tick(ebb_machines *ms, void *self, const ebb_message *m) {
    part *p = self;
    note("tick");
    return p->number > 100 ? p->act(ms, p, m) : EBB_OK;
}
static ebb_status enters_busy(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    note("entry");
    assert_int_equal(ebb_machine_become(ms, IDLE, NULL), EBB_ERR_INVALID);
    return EBB_OK;
}
static ebb_status leaves_idle(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    note("exit");
    return EBB_OK;
}
static ebb_status never_13(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)m;
    return ((part *)self)->number == 13 ? EBB_FAILED : EBB_OK;
}

#define ON(fn)                                                                                               \
    { fn, NULL, EBB_MACHINE_HANDLE }
#define DEFER                                                                                                \
    { NULL, NULL, EBB_MACHINE_DEFER }
#define IGNORE                                                                                               \
    { NULL, NULL, EBB_MACHINE_IGNORE }
static const ebb_machine_rule table[STATES][KINDS] = {
    [IDLE] = {ON(on_failed), ON(on_go), ON(on_ping), ON(on_tell), ON(on_ask), ON(on_ask), ON(on_yes),
              ON(on_yes), ON(on_tick)},
    [BUSY] = {[GO] = ON(on_go), [PING] = DEFER, [TELL] = IGNORE, [ASK] = ON(on_ask), [TICK] = ON(on_tick)},
};
static const ebb_machine_state states[STATES] = {
    {.name = "Idle", .exit = leaves_idle, .invariant = never_13},
    {.name = "Busy", .entry = enters_busy},
    {.name = "Done", .final = true},
};
static const ebb_machine_type type = {.name = "Part",
                                      .states = states,
                                      .table = &table[0][0],
                                      .fields = sizeof(part),
                                      .n_states = STATES,
                                      .columns = KINDS,
                                      .mailbox = 3};
static const ebb_machine_type recovers = {.name = "Recovers",
                                          .states = states,
                                          .table = &table[0][0],
                                          .fields = sizeof(part),
                                          .n_states = STATES,
                                          .columns = KINDS,
                                          .mailbox = 3,
                                          .fault_state = BUSY + 1};

/* ---- the stage ---------------------------------------------------------------------------------------------- */

static ebb_machines *ms;
static uint32_t faults, full;
static ebb_dead_reason last_dead;

static void on_dead(void *arg, const ebb_dead_letter *dead) {
    (void)arg;
    last_dead = dead->reason;
    note("(dead)");
}
static void on_full(void *arg, ebb_machine to, uint16_t kind) {
    (void)arg;
    (void)to;
    (void)kind;
    full++;
}
static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    (void)arg;
    (void)machine;
    (void)kind;
    (void)st;
    faults++;
}

static void open_stage(world *w) {
    ebb_machines_opts opts = {
        .n_kinds = KINDS, .dead_letter = on_dead, .overflow = on_full, .fault = on_fault};
    now = w;
    seen[0] = 0;
    faults = full = 0;
    assert_int_equal(ebb_machines_open(w->host, &ms, &opts), EBB_OK);
}

static ebb_machine make(part p) {
    ebb_machine m = ebb_machine_spawn(ms, &type, IDLE, &p);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    return m;
}

static void send(ebb_machine to, uint16_t kind) {
    assert_int_equal(ebb_machine_send(ms, to, kind, NULL, 0), EBB_OK);
}

static ebb_machine_info look(ebb_machine m) {
    ebb_machine_info info;
    assert_int_equal(ebb_machine_info_of(ms, m, &info), EBB_OK);
    return info;
}

static ebb_machines_stats count(void) {
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    return s;
}

/* Closes in good order: nothing may be left. */
static void close_stage(world *w) {
    ebb_region_close(w->host, ebb_machines_region(ms));
    world_settle(w);
    if (count().machines > 0) ebb_region_cancel(w->host, ebb_machines_region(ms), EBB_CANCEL_USER, NULL);
    world_settle(w);
    ebb_machines_stats s = count();
    assert_int_equal(s.machines, 0);
    assert_int_equal(s.cells, 0);
    assert_int_equal(s.pending, 0);
    assert_int_equal(s.timers, 0);
    assert_int_equal(s.subscriptions, 0);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static int up(void **state) {
    int st = world_up(state);
    open_stage(*state);
    return st;
}
static int down(void **state) {
    close_stage(*state);
    return world_down(state);
}
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, up, down)

/* ---- places ---------------------------------------------------------------------------------------------------- */

static ebb_status sends_and_asks_and_faults(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    if (ebb_machine_send(m, p->peer, PING, NULL, 0) != EBB_OK) return EBB_FAILED;
    return ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, 0, 0).id); /* `?` */
}
static ebb_status sends_and_asks_and_goes_on(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    ebb_status st = ebb_machine_send(m, p->peer, PING, NULL, 0);
    p->number = st == EBB_OK;
    st = ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, 0, 0).id);
    p->number += st == EBB_ERR_MAILBOX_FULL ? 10 : 0;
    return EBB_OK;
}

/* A receiver that was not started, with one free place. */
static ebb_machine nearly_full(void) {
    ebb_machine m = ebb_machine_spawn(ms, &type, IDLE, &(part){0});
    send(m, PING);
    send(m, PING);
    assert_int_equal(look(m).reserved, 2);
    return m;
}

static void a_send_and_a_request_to_one_free_place_roll_back_as_a_whole(void **state) {
    ebb_machine to = nearly_full(), m = make((part){.peer = to, .act = sends_and_asks_and_faults});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(look(to).reserved, 2);
    assert_int_equal(look(to).queued, 2);
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_FAULTED);
    assert_int_equal(faults, 1);
    assert_int_equal(full, 1);
    assert_int_equal(count().pending, 0);
}

static void a_send_stays_staged_when_the_request_behind_it_finds_the_mailbox_full(void **state) {
    ebb_machine to = nearly_full(), m = make((part){.peer = to, .act = sends_and_asks_and_goes_on});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(((const part *)look(m).fields)->number, 11);
    assert_int_equal(look(to).reserved, 3);
    assert_int_equal(look(to).queued, 3);
    assert_int_equal(ebb_machine_start(ms, to), EBB_OK);
    world_settle(*state);
    assert_string_equal(seen, "go ping ping ping ");
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static ebb_status asks_then_sends(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    assert_int_equal(ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, 0, 0).id), EBB_OK);
    return ebb_machine_send(m, p->peer, PING, NULL, 0);
}

static void a_request_and_a_send_arrive_in_the_order_in_which_they_were_staged(void **state) {
    ebb_machine to = make((part){0}), m = make((part){.peer = to, .act = asks_then_sends});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go ask yes ping ");
}

static ebb_status sends_and_ends(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    assert_int_equal(ebb_machine_send(m, p->peer, PING, NULL, 0), EBB_OK);
    assert_int_equal(ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, 0, 0).id), EBB_OK);
    return ebb_machine_become(m, DONE, NULL);
}

static void a_handler_that_ends_in_a_final_state_delivers_its_effects(void **state) {
    ebb_machine to = make((part){0}), m = make((part){.peer = to, .act = sends_and_ends});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go exit ping ask (dead) "); /* the reply finds nobody */
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_STOPPED);
    assert_int_equal(last_dead, EBB_DEAD_LATE);
}

static ebb_status spawns_and_greets(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    part child = {.number = 5};
    p->other = ebb_machine_spawn(m, &type, IDLE, &child);
    assert_int_equal(ebb_id_status(p->other.id), EBB_OK);
    assert_int_equal(ebb_machine_send(m, p->other, PING, NULL, 0), EBB_OK);
    assert_int_equal(ebb_machine_start(m, p->other), EBB_OK);
    assert_int_equal(ebb_machine_send(m, p->other, TELL, NULL, 0), EBB_OK);
    return p->number == 1 ? EBB_FAILED : EBB_OK;
}

static void a_handler_that_spawns_can_send_to_what_it_has_spawned(void **state) {
    ebb_machine m = make((part){.act = spawns_and_greets});
    send(m, GO);
    world_settle(*state);
    ebb_machine child = ((const part *)look(m).fields)->other;
    assert_string_equal(seen, "go ping tell ");
    assert_int_equal(((const part *)look(child).fields)->number, 6);
    assert_int_equal(count().machines, 2);
}

static void a_spawn_that_is_rolled_back_leaves_an_id_that_nothing_has(void **state) {
    ebb_machine m = make((part){.act = spawns_and_greets, .number = 1});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(count().machines, 1);
    assert_int_equal(count().cells, 0);
    ebb_machine next = make((part){0}); /* in the same slot */
    assert_int_not_equal(next.id, 0);
    assert_int_equal(ebb_machine_send(ms, (ebb_machine){next.id - 1}, PING, NULL, 0), EBB_ERR_NOT_RUNNING);
    assert_int_equal(ebb_machine_send(ms, (ebb_machine){next.id + 1}, PING, NULL, 0),
                     EBB_ERR_UNKNOWN_MACHINE);
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static ebb_status asks(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    return ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, p->number * EBB_MS, 0).id);
}

static void a_requester_that_stops_while_its_request_is_queued_gets_nothing(void **state) {
    ebb_machine to = ebb_machine_spawn(ms, &type, IDLE, &(part){0});
    ebb_machine m = make((part){.peer = to, .act = asks});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(ebb_machine_stop(ms, m), EBB_OK);
    assert_int_equal(ebb_machine_start(ms, to), EBB_OK);
    world_settle(*state);
    assert_string_equal(seen, "go ask (dead) ");
    assert_int_equal(last_dead, EBB_DEAD_LATE);
    assert_int_equal(count().pending, 0);
}

static ebb_status faults_always(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)p;
    (void)msg;
    (void)ebb_machine_reply(m, (ebb_request){0}, YES, NULL, 0);
    return EBB_FAILED;
}

static void the_fault_of_a_responder_reaches_its_requester(void **state) {
    ebb_machine to = make((part){.act = faults_always}), m = make((part){.peer = to, .act = asks});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go ask (dead) faulted ");
    assert_int_equal(look(to).lifecycle, EBB_MACHINE_FAULTED);
    assert_int_equal(ebb_machine_send(ms, to, PING, NULL, 0), EBB_ERR_NOT_RUNNING);
}

static ebb_status asks_twice(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    assert_int_equal(ebb_id_status(ebb_machine_request(m, p->peer, ASK, NULL, 0, 0, 1).id), EBB_OK);
    return ebb_id_status(ebb_machine_request(m, p->peer, ASK_TOO, NULL, 0, 0, 2).id);
}

static void a_second_reply_in_a_state_that_does_not_handle_it_is_a_dead_letter(void **state) {
    ebb_machine to = make((part){0}), m = make((part){.peer = to, .act = asks_twice, .number = 77});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go ask yes exit entry ask_too (dead) ");
    assert_int_equal(last_dead, EBB_DEAD_UNHANDLED);
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_RUNNING);
    assert_int_equal(look(m).pending, 0);
}

static void a_request_that_nobody_handles_fails_as_unhandled(void **state) {
    ebb_machine to = ebb_machine_spawn(ms, &type, BUSY, &(part){0});
    ebb_machine m = make((part){.peer = to, .act = asks_twice});
    assert_int_equal(ebb_machine_start(ms, to), EBB_OK);
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "entry go ask yes (dead) unhandled ");
}

static void a_request_times_out_and_its_late_reply_is_a_dead_letter(void **state) {
    ebb_machine to = ebb_machine_spawn(ms, &type, IDLE, &(part){0});
    ebb_machine m = make((part){.peer = to, .act = asks, .number = 5});
    send(m, GO);
    world_pass(*state, 4 * EBB_MS);
    assert_string_equal(seen, "go ");
    world_pass(*state, 2 * EBB_MS);
    assert_string_equal(seen, "go timeout ");
    assert_int_equal(ebb_machine_start(ms, to), EBB_OK);
    world_settle(*state);
    assert_string_equal(seen, "go timeout ask (dead) ");
    assert_int_equal(last_dead, EBB_DEAD_LATE);
}

static ebb_status does_not_reply(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)m;
    (void)p;
    (void)msg;
    return EBB_OK;
}
static ebb_status replies_twice(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)p;
    assert_int_equal(ebb_machine_reply(m, msg->request, YES, NULL, 0), EBB_OK);
    assert_int_equal(ebb_machine_reply(m, msg->request, NO, NULL, 0), EBB_ERR_REPLIED);
    return EBB_OK;
}

static void a_handler_that_does_not_reply_has_faulted(void **state) {
    ebb_machine to = make((part){.act = does_not_reply}), m = make((part){.peer = to, .act = asks});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go ask (dead) faulted ");
}

static void a_second_reply_to_one_request_is_refused(void **state) {
    ebb_machine to = make((part){.act = replies_twice}), m = make((part){.peer = to, .act = asks});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go ask yes ");
}

static ebb_request held;
static ebb_status holds(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)p;
    (void)msg;
    held = ebb_machine_hold(m);
    return ebb_id_status(held.id);
}

static void a_capability_that_the_program_holds_is_an_obligation_until_it_replies(void **state) {
    world *w = *state;
    ebb_machine to = make((part){.act = holds}), m = make((part){.peer = to, .act = asks});
    send(m, GO);
    world_settle(w);
    assert_string_equal(seen, "go ask ");
    assert_int_equal(look(to).held, 1);
    assert_int_equal(stats_of(w).obligations, 1);
    assert_int_equal(ebb_machine_reply(ms, held, YES, NULL, 0), EBB_OK);
    world_settle(w);
    assert_string_equal(seen, "go ask yes ");
    assert_int_equal(stats_of(w).obligations, 0);
    assert_int_equal(ebb_machine_reply(ms, held, YES, NULL, 0), EBB_ERR_REPLIED);
}

/* ---- states, timers, subscriptions ---------------------------------------------------------------------------------- */

static ebb_status toggles(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    p->number++;
    return ebb_machine_become(m, p->number % 2 == 1 ? BUSY : IDLE, NULL);
}

static void deferred_messages_come_back_in_order_and_before_newer_ones(void **state) {
    ebb_machine m = make((part){.act = toggles});
    send(m, GO);
    world_settle(*state);
    send(m, PING);
    send(m, PING);
    world_settle(*state);
    assert_int_equal(look(m).deferred, 2);
    assert_int_equal(look(m).reserved, 2);
    seen[0] = 0;
    send(m, GO);
    world_settle(*state);
    send(m, TELL);
    world_settle(*state);
    assert_string_equal(seen, "go ping ping tell ");
}

static ebb_status arms(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    assert_int_equal(ebb_machine_after(m, 3 * EBB_MS, TICK), EBB_OK);
    p->number++;
    return p->number == 2 ? ebb_machine_become(m, BUSY, NULL) : EBB_OK;
}

static void timers_of_a_state_end_with_it(void **state) {
    ebb_machine m = make((part){.act = arms});
    send(m, GO);
    world_pass(*state, 2 * EBB_MS);
    send(m, GO); /* changes the state: the first timer is gone, the new one belongs to the new state */
    world_pass(*state, 2 * EBB_MS);
    assert_string_equal(seen, "go go exit entry ");
    world_pass(*state, 2 * EBB_MS);
    assert_string_equal(seen, "go go exit entry tick ");
    assert_int_equal(count().timers, 0);
}

static ebb_status arms_at_once(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    p->number--;
    return ebb_machine_after(m, 0, TICK);
}

/* The second timer is due at the time at which the first has just fired. */
static void timers_that_are_due_at_once_follow_each_other(void **state) {
    ebb_machine m = make((part){.act = arms_at_once, .number = 103});
    send(m, GO);
    world_settle(*state);
    assert_string_equal(seen, "go tick tick tick ");
    assert_int_equal(count().timers, 0);
}

static ebb_status subscribes(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    assert_int_equal(ebb_machine_subscribe(m, PING, 9), EBB_OK);
    return p->number == 1 ? EBB_FAILED : EBB_OK;
}

static void a_publish_reaches_all_subscribers_or_none(void **state) {
    ebb_machine a = make((part){.act = subscribes}), b = make((part){.act = subscribes});
    make((part){0});
    assert_int_equal(ebb_machine_publish(ms, PING, 9, NULL, 0), EBB_OK);
    assert_int_equal(last_dead, EBB_DEAD_NOBODY);
    send(a, GO);
    send(b, GO);
    world_settle(*state);
    assert_int_equal(ebb_machine_publish(ms, PING, 9, NULL, 0), EBB_OK);
    world_settle(*state);
    assert_string_equal(seen, "(dead) go go ping ping ");
    for (int i = 0; i < 3; i++) send(b, TELL);
    assert_int_equal(ebb_machine_publish(ms, PING, 9, NULL, 0), EBB_ERR_MAILBOX_FULL);
    assert_int_equal(look(a).queued, 0);
    world_settle(*state);
}

static ebb_status breaks_the_invariant(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)m;
    (void)msg;
    p->number = 13;
    return EBB_OK;
}

static void an_invariant_that_does_not_hold_is_a_fault(void **state) {
    ebb_machine m = make((part){.act = breaks_the_invariant, .number = 1});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_FAULTED);
    assert_int_equal(((const part *)look(m).fields)->number, 1);
}

static void a_fault_leads_to_the_state_for_faults_and_a_second_one_there_is_final(void **state) {
    ebb_machine m = ebb_machine_spawn(ms, &recovers, IDLE, &(part){.act = faults_always});
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    send(m, GO);
    send(m, PING);
    world_settle(*state);
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_RUNNING);
    assert_int_equal(look(m).state, BUSY);
    assert_string_equal(seen, "go (dead) "); /* without the entry; the queue is kept, and deferred there */
    assert_int_equal(look(m).deferred, 1);
    send(m, GO);
    world_settle(*state);
    assert_int_equal(look(m).lifecycle, EBB_MACHINE_FAULTED);
    assert_int_equal(faults, 2);
}

static ebb_status replaces_fields(ebb_machines *m, part *p, const ebb_message *msg) {
    (void)msg;
    part *next = ebb_machine_alloc(m, sizeof *next);
    *next = (part){.number = 4};
    p->number = 3;
    return ebb_machine_become(m, BUSY, next);
}

static void the_fields_of_the_next_state_replace_the_old_ones(void **state) {
    ebb_machine m = make((part){.act = replaces_fields});
    send(m, GO);
    world_settle(*state);
    assert_int_equal(((const part *)look(m).fields)->number, 4);
    assert_string_equal(seen, "go exit entry ");
}

/* ---- limits ------------------------------------------------------------------------------------------------------------ */

static ebb_status exceeds(ebb_machines *m, part *p, const ebb_message *msg) {
    static unsigned char bytes[EBB_MACHINE_MESSAGE_MAX + 1];
    (void)msg;
    assert_int_equal(ebb_machine_send(m, p->peer, PING, bytes, sizeof bytes), EBB_ERR_LIMIT);
    for (uint32_t i = 0; i < EBB_MACHINE_TIMERS; i++)
        assert_int_equal(ebb_machine_after(m, EBB_MS, TICK), EBB_OK);
    assert_int_equal(ebb_machine_after(m, EBB_MS, TICK), EBB_ERR_LIMIT);
    assert_null(ebb_machine_alloc(m, EBB_MACHINE_DISPATCH_MAX));
    assert_non_null(ebb_machine_alloc(m, EBB_MACHINE_DISPATCH_MAX / 2));
    for (uint32_t i = 0; i < 7; i++) { /* to machines of its own, since a mailbox has three places */
        ebb_machine to = ebb_machine_spawn(m, &type, IDLE, NULL);
        assert_int_equal(ebb_machine_send(m, to, PING, bytes, EBB_MACHINE_MESSAGE_MAX), EBB_OK);
    }
    assert_int_equal(ebb_machine_send(m, p->peer, PING, bytes, EBB_MACHINE_MESSAGE_MAX), EBB_ERR_LIMIT);
    return EBB_FAILED;
}

static void limits_are_errors_with_names(void **state) {
    ebb_machine m = make((part){.act = exceeds});
    ((part *)(uintptr_t)look(m).fields)->peer = m;
    send(m, GO);
    world_settle(*state);
    assert_int_equal(count().cells, 0);
    ebb_machine_type large = type;
    large.fields = EBB_MACHINE_FIELDS_MAX + 1;
    assert_int_equal(ebb_id_status(ebb_machine_spawn(ms, &large, IDLE, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_machine_spawn(ms, &type, STATES, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_machine_send(ms, m, KINDS, NULL, 0), EBB_ERR_NOT_RUNNING);
    ebb_machine other = make((part){0});
    assert_int_equal(ebb_machine_send(ms, other, KINDS, NULL, 0), EBB_ERR_INVALID);
    assert_int_equal(ebb_machines_free(ms), EBB_ERR_BUSY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_send_and_a_request_to_one_free_place_roll_back_as_a_whole),
        ON_STAGE(a_send_stays_staged_when_the_request_behind_it_finds_the_mailbox_full),
        ON_STAGE(a_request_and_a_send_arrive_in_the_order_in_which_they_were_staged),
        ON_STAGE(a_handler_that_ends_in_a_final_state_delivers_its_effects),
        ON_STAGE(a_handler_that_spawns_can_send_to_what_it_has_spawned),
        ON_STAGE(a_spawn_that_is_rolled_back_leaves_an_id_that_nothing_has),
        ON_STAGE(a_requester_that_stops_while_its_request_is_queued_gets_nothing),
        ON_STAGE(the_fault_of_a_responder_reaches_its_requester),
        ON_STAGE(a_second_reply_in_a_state_that_does_not_handle_it_is_a_dead_letter),
        ON_STAGE(a_request_that_nobody_handles_fails_as_unhandled),
        ON_STAGE(a_request_times_out_and_its_late_reply_is_a_dead_letter),
        ON_STAGE(a_handler_that_does_not_reply_has_faulted),
        ON_STAGE(a_second_reply_to_one_request_is_refused),
        ON_STAGE(a_capability_that_the_program_holds_is_an_obligation_until_it_replies),
        ON_STAGE(deferred_messages_come_back_in_order_and_before_newer_ones),
        ON_STAGE(timers_of_a_state_end_with_it),
        ON_STAGE(timers_that_are_due_at_once_follow_each_other),
        ON_STAGE(a_publish_reaches_all_subscribers_or_none),
        ON_STAGE(an_invariant_that_does_not_hold_is_a_fault),
        ON_STAGE(a_fault_leads_to_the_state_for_faults_and_a_second_one_there_is_final),
        ON_STAGE(the_fields_of_the_next_state_replace_the_old_ones),
        ON_STAGE(limits_are_errors_with_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
