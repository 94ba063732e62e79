/* Hooks and the host call back while machines end: what they may do, and that nothing is left behind or hangs. */
#include "tests/support/world.h"

enum { GO = 1, ASK, YES, TICK, KINDS };
enum { ONE, LAST, STATES };

typedef struct node {
    uint64_t what;
    ebb_machine peer;
} node;
enum { QUIET, ARMS, PUBLISHES, SPAWNS_AND_FAULTS, FAULTS, ASKS };

static const ebb_machine_type type, finals;
static ebb_request held;
static uint32_t settled;

static ebb_status go(ebb_machines *ms, void *self, const ebb_message *m) {
    const node *n = self;
    (void)m;
    switch (n->what) {
    case ARMS: return ebb_machine_after(ms, EBB_MS, TICK);
    case PUBLISHES: return ebb_machine_publish(ms, YES, 7, NULL, 0);
    case SPAWNS_AND_FAULTS: (void)ebb_machine_spawn(ms, &type, ONE, &(node){0}); return EBB_FAILED;
    case FAULTS: return EBB_FAILED;
    case ASKS: return ebb_id_status(ebb_machine_request(ms, n->peer, ASK, NULL, 0, 0, 0).id);
    default: return EBB_OK;
    }
}
static ebb_status ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    held = ebb_machine_hold(ms);
    return ebb_id_status(held.id);
}
static ebb_status tick(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_publish(ms, YES, 7, NULL, 0);
}
static ebb_status heard(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    return EBB_OK;
}

static void on_settle(const ebb_machine_type *t, bool committed, uint32_t old_state, void *old,
                      uint32_t now_state, void *now) {
    (void)t;
    (void)committed;
    (void)old_state;
    (void)now_state;
    if (now == NULL && ((const node *)old)->what == QUIET) settled++;
}

#define ON(fn)                                                                                               \
    { fn, NULL, EBB_MACHINE_HANDLE }
static const ebb_machine_rule table[STATES][KINDS] = {
    {ON(heard), ON(go), ON(ask), {NULL, NULL, EBB_MACHINE_DEFER}, ON(tick)}, {{0}}};
static const ebb_machine_state states[STATES] = {{.name = "One"}, {.name = "Last"}},
                               final_states[STATES] = {{.name = "One"}, {.name = "Last", .final = true}};
static const ebb_machine_type type = {.name = "Node",
                                      .states = states,
                                      .table = &table[0][0],
                                      .fields = sizeof(node),
                                      .n_states = STATES,
                                      .columns = KINDS,
                                      .settle = on_settle};
static const ebb_machine_type finals = {.name = "Finals",
                                        .states = final_states,
                                        .table = &table[0][0],
                                        .fields = sizeof(node),
                                        .n_states = STATES,
                                        .columns = KINDS,
                                        .fault_state = LAST + 1};

/* ---- the stage ---------------------------------------------------------------------------------------------- */

typedef struct stage {
    world *w;
    ebb_machines *ms;
    uint32_t dead, answers, faults;
    ebb_machine target;
    ebb_request call;
    ebb_status status;
    void (*on_dead)(struct stage *s);
    void (*on_fault)(struct stage *s);
} stage;

static void on_dead(void *arg, const ebb_dead_letter *dead) {
    stage *s = arg;
    (void)dead;
    s->dead++;
    if (s->on_dead != NULL) s->on_dead(s);
}
static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    stage *s = arg;
    (void)machine;
    (void)kind;
    (void)st;
    s->faults++;
    if (s->on_fault != NULL) s->on_fault(s);
}
static void answered(void *arg, const ebb_message *m) {
    stage *s = arg;
    (void)m;
    s->answers++;
}

static void begin(stage *s, void **state) {
    *s = (stage){.w = *state};
    settled = 0;
    held = (ebb_request){0};
    ebb_machines_opts opts = {.n_kinds = KINDS, .dead_letter = on_dead, .fault = on_fault, .arg = s};
    assert_int_equal(ebb_machines_open(s->w->host, &s->ms, &opts), EBB_OK);
}

static ebb_machine make(stage *s, const ebb_machine_type *t, node n) {
    ebb_machine m = ebb_machine_spawn(s->ms, t, ONE, &n);
    assert_int_equal(ebb_machine_start(s->ms, m), EBB_OK);
    return m;
}

static void send(stage *s, ebb_machine m, uint16_t kind) {
    assert_int_equal(ebb_machine_send(s->ms, m, kind, NULL, 0), EBB_OK);
}

static uint32_t machines(const stage *s) {
    ebb_machines_stats st;
    ebb_machines_stats_of(s->ms, &st);
    return st.machines;
}

static void close_region(stage *s) {
    ebb_region_close(s->w->host, ebb_machines_region(s->ms));
}

/* After a close that needs no cancel. */
static void end(stage *s) {
    world_settle(s->w);
    assert_int_equal(machines(s), 0);
    assert_int_equal(ebb_region_join(s->w->host, ebb_machines_region(s->ms)), EBB_OK);
    assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
}

/* ---- close --------------------------------------------------------------------------------------------------- */

static void a_close_ends_when_the_program_replies_to_the_last_request(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = make(&s, &type, (node){0});
    ebb_request r = ebb_machine_call(s.ms, m, ASK, NULL, 0, 0, answered, &s);
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    world_settle(s.w);
    close_region(&s);
    world_settle(s.w);
    assert_int_equal(machines(&s), 1);
    assert_int_equal(ebb_machine_reply(s.ms, held, YES, NULL, 0), EBB_OK);
    assert_int_equal(s.answers, 1);
    end(&s);
}

static void arm_and_stop_in_turns(stage *s, uint64_t what) {
    enum { MANY = 200 };
    ebb_machine old = make(s, &type, (node){.what = what});
    for (int i = 0; i < MANY; i++) (void)make(s, &type, (node){0});
    send(s, old, GO);
    world_settle(s->w);
    close_region(s);
    while (machines(s) > MANY / 2) (void)ebb_runtime_pump(s->w->rt, 1);
    ebb_runtime_advance(s->w->rt, world_now(s->w) + 5 * EBB_MS);
}

static void a_timer_may_expire_while_machines_stop(void **state) {
    stage s;
    begin(&s, state);
    arm_and_stop_in_turns(&s, ARMS);
    end(&s);
    assert_int_equal(s.dead, 1); /* its publish */
}

static void sends_to_the_oldest(stage *s) {
    s->on_dead = NULL;
    s->status = ebb_machine_send(s->ms, s->target, YES, NULL, 0);
}

/* The oldest machine defers what the hook sends, and is stopped with it. */
static void what_a_hook_sends_while_machines_stop_becomes_a_dead_letter(void **state) {
    stage s;
    begin(&s, state);
    s.target = make(&s, &type, (node){0});
    s.on_dead = sends_to_the_oldest;
    arm_and_stop_in_turns(&s, ARMS);
    end(&s);
    assert_int_equal(s.status, EBB_OK);
    assert_int_equal(s.dead, 2);
}

static void asks_the_oldest(stage *s) {
    s->on_dead = NULL;
    s->status = ebb_id_status(ebb_machine_call(s->ms, s->target, ASK, NULL, 0, 0, answered, s).id);
}

static void a_call_that_a_hook_makes_while_machines_stop_is_answered(void **state) {
    stage s;
    begin(&s, state);
    s.target = make(&s, &type, (node){0});
    s.on_dead = asks_the_oldest;
    arm_and_stop_in_turns(&s, ARMS);
    end(&s);
    assert_int_equal(s.status, EBB_OK);
    assert_int_equal(s.answers, 1);
}

static void spawns(stage *s) {
    s->status = ebb_id_status(ebb_machine_spawn(s->ms, &type, ONE, NULL).id);
}

static void a_hook_spawns_until_the_close(void **state) {
    stage s;
    begin(&s, state);
    s.on_fault = spawns;
    send(&s, make(&s, &type, (node){.what = FAULTS}), GO);
    world_settle(s.w);
    assert_int_equal(s.status, EBB_OK);
    send(&s, make(&s, &type, (node){.what = FAULTS}), GO);
    close_region(&s);
    world_settle(s.w);
    assert_int_equal(s.faults, 2);
    assert_int_equal(s.status, EBB_ERR_CLOSED);
    end(&s);
}

/* ---- calls from outside --------------------------------------------------------------------------------------- */

static void forgets_the_call(stage *s) {
    s->status = ebb_machine_forget(s->ms, s->call);
}

/* The machine stops, which makes a dead letter and ends the call; the hook for the first comes before the answer. */
static void a_call_that_a_hook_forgets_is_not_answered(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = make(&s, &type, (node){0});
    s.call = ebb_machine_call(s.ms, m, ASK, NULL, 0, 0, answered, &s);
    world_settle(s.w);
    send(&s, m, YES);
    s.on_dead = forgets_the_call;
    assert_int_equal(ebb_machine_stop(s.ms, m), EBB_OK);
    assert_int_equal(s.status, EBB_OK);
    assert_int_equal(s.answers, 0);
    assert_int_equal(ebb_machine_forget(s.ms, s.call), EBB_ERR_STALE);
    close_region(&s);
    end(&s);
}

static void forgets_itself(void *arg, const ebb_message *m) {
    stage *s = arg;
    s->answers++;
    s->status = ebb_machine_forget(s->ms, m->request);
}

static void a_call_is_forgotten_once(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = make(&s, &type, (node){0});
    s.call = ebb_machine_call(s.ms, m, ASK, NULL, 0, 0, answered, &s);
    world_settle(s.w);
    assert_int_equal(ebb_machine_forget(s.ms, s.call), EBB_OK);
    assert_int_equal(ebb_machine_forget(s.ms, s.call), EBB_ERR_STALE);
    assert_int_equal(ebb_machine_reply(s.ms, held, YES, NULL, 0), EBB_OK);
    assert_int_equal(s.answers, 0);
    assert_int_equal(s.dead, 1);
    close_region(&s);
    end(&s);
}

static void a_call_that_is_being_answered_has_ended(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine m = make(&s, &type, (node){0});
    (void)ebb_machine_call(s.ms, m, TICK + 0, NULL, 0, 0, forgets_itself, &s);
    world_settle(s.w);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.status, EBB_ERR_STALE);
    close_region(&s);
    end(&s);
}

/* ---- faults --------------------------------------------------------------------------------------------------- */

/* Else what the fields refer to would be lost. */
static void a_spawn_that_is_rolled_back_settles_its_fields(void **state) {
    stage s;
    begin(&s, state);
    send(&s, make(&s, &type, (node){.what = SPAWNS_AND_FAULTS}), GO);
    world_settle(s.w);
    assert_int_equal(settled, 1);
    close_region(&s);
    end(&s);
}

static void a_machine_whose_fault_state_is_final_stops_there(void **state) {
    stage s;
    ebb_machine_info info;
    begin(&s, state);
    ebb_machine m = make(&s, &finals, (node){.what = FAULTS});
    send(&s, m, GO);
    send(&s, m, YES);
    world_settle(s.w);
    assert_int_equal(ebb_machine_info_of(s.ms, m, &info), EBB_OK);
    assert_int_equal(info.lifecycle, EBB_MACHINE_STOPPED);
    assert_int_equal(s.dead, 2);
    close_region(&s);
    end(&s);
}

/* ---- texts ---------------------------------------------------------------------------------------------------- */

static char text[4096];
static void write_text(void *ctx, const char *t, size_t n) {
    (void)ctx;
    if (strlen(text) + n < sizeof text) strncat(text, t, n);
}

static void an_answered_request_is_not_waited_for(void **state) {
    stage s;
    begin(&s, state);
    ebb_machine peer = make(&s, &type, (node){0}), m = make(&s, &type, (node){.what = ASKS, .peer = peer});
    send(&s, m, GO);
    world_settle(s.w);
    assert_int_equal(ebb_machine_reply(s.ms, held, YES, NULL, 0), EBB_OK);
    world_settle(s.w); /* deferred: it stays in the mailbox */
    text[0] = 0;
    assert_int_equal(ebb_machine_explain(s.ms, m, write_text, NULL), EBB_OK);
    assert_non_null(strstr(text, "deferred reply"));
    assert_null(strstr(text, "waits for the reply to"));
    ebb_region_cancel(s.w->host, ebb_machines_region(s.ms), EBB_CANCEL_USER, NULL);
    world_settle(s.w);
    assert_int_equal(ebb_machines_free(s.ms), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_close_ends_when_the_program_replies_to_the_last_request),
        IN_WORLD(a_timer_may_expire_while_machines_stop),
        IN_WORLD(what_a_hook_sends_while_machines_stop_becomes_a_dead_letter),
        IN_WORLD(a_call_that_a_hook_makes_while_machines_stop_is_answered),
        IN_WORLD(a_hook_spawns_until_the_close),
        IN_WORLD(a_call_that_a_hook_forgets_is_not_answered),
        IN_WORLD(a_call_is_forgotten_once),
        IN_WORLD(a_call_that_is_being_answered_has_ended),
        IN_WORLD(a_spawn_that_is_rolled_back_settles_its_fields),
        IN_WORLD(a_machine_whose_fault_state_is_final_stops_there),
        IN_WORLD(an_answered_request_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
