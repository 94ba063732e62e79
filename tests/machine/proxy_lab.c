/* A proxy in the lab: every order in which two runtimes run and their messages arrive, while the machine, the proxy and the
 * runtimes of machines are stopped, closed, cancelled and forced. What was accepted is handled once, in order, or is a
 * dead letter; a request is answered once. */
#include "tests/future/peer_lab.h"
#include "tests/machine/proxy.h"

enum { STEPS = 10, CREDITS = 2 };

typedef struct link {
    ebb_lab *lab;
    lab_peer peers[2];
    ebb_machines *ms[2];
    ebb_machine m[2], proxy;
    uint64_t number;      /* of the last order */
    uint32_t sent, asked; /* that were accepted */
    uint32_t dead;        /* messages that became dead letters, on either side */
    uint32_t replied;     /* of the held capabilities */
    bool strange;         /* the home does not know of the proxy yet */
    bool calm;            /* nothing ends before all is done */
} link;

static void on_dead(void *arg, const ebb_dead_letter *dead) {
    link *l = arg;
    bool lost = dead->payload == NULL && dead->to.id == l->proxy.id;
    if (dead->kind == PUT || dead->kind == LATER || lost) l->dead++;
}

/* As on_do, but it counts. */
static ebb_status on_order(ebb_machines *ms, void *self, const ebb_message *m) {
    order o;
    ebb_status st = on_do(ms, self, m);
    link *l = *(link **)self;
    memcpy(&o, m->payload, sizeof o);
    if (at_near.st == EBB_OK && o.asks) l->asked++;
    else if (at_near.st == EBB_OK) l->sent++;
    return st;
}

static const ebb_machine_rule order_table[KINDS] = {
    [EBB_MACHINE_REQUEST_FAILED] = {on_answer, NULL, EBB_MACHINE_HANDLE},
    [DO] = {on_order, NULL, EBB_MACHINE_HANDLE},
    [SUM] = {on_answer, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_type order_type = {.name = "Near",
                                            .states = &near_state,
                                            .table = order_table,
                                            .fields = sizeof(link *),
                                            .n_states = 1,
                                            .columns = KINDS};

static ebb_status open_side(link *l, uint32_t i) {
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(l->lab, i));
    ebb_machines_opts o = {.parent = ebb_lab_region(l->lab, i),
                           .n_kinds = KINDS,
                           .kinds = proxy_kinds,
                           .dead_letter = on_dead,
                           .arg = l};
    ebb_status st = ebb_machines_open(host, &l->ms[i], &o);
    if (st != EBB_OK) return st;
    l->m[i] = ebb_machine_spawn(l->ms[i], i == 0 ? &order_type : &home_type, 0, i == 0 ? &l : NULL);
    return ebb_machine_start(l->ms[i], l->m[i]);
}

static ebb_status setup(ebb_lab *lab) {
    link *l = ebb_lab_state(lab);
    ebb_machine_remote *r;
    l->lab = lab;
    proxy_roles_reset();
    ebb_status st = lab_peers(lab, l->peers, 2);
    for (uint32_t i = 0; i < 2 && st == EBB_OK; i++) st = open_side(l, i);
    if (st != EBB_OK) return st;
    st = ebb_machine_remote_new(l->ms[1], l->m[1], &(ebb_machine_remote_opts){.credits = CREDITS}, &r);
    if (st != EBB_OK) return st;
    l->proxy = ebb_machine_remote_import(l->ms[0], r);
    /* A home that is forced before it knows of the proxy can't say what was under way, if the proxy ends as well. */
    l->strange = ebb_lab_choose(lab, 2) == 1;
    if (!l->strange) ebb_inbox_receive(ebb_lab_runtime(lab, 1));
    return ebb_id_status(l->proxy.id);
}

static ebb_status calm_setup(ebb_lab *lab) {
    ((link *)ebb_lab_state(lab))->calm = true;
    return setup(lab);
}

static void give_order(link *l) {
    static const uint16_t kinds[] = {PUT, ASK, HANG, LATER, PUT, UNKNOWN};
    uint16_t kind = kinds[ebb_lab_choose(l->lab, l->calm ? 2 : 6)];
    order o = {.to = l->proxy, .kind = kind, .number = ++l->number, .asks = kind != PUT && kind != LATER};
    (void)ebb_machine_send(l->ms[0], l->m[0], DO, &o, sizeof o);
}

static void reply_to_one(link *l) {
    uint64_t n = 5;
    if (l->replied == at_home.held_n) return;
    (void)ebb_machine_reply(l->ms[1], at_home.held[l->replied++], SUM, &n, sizeof n);
}

static void end_something(link *l) {
    uint32_t i = ebb_lab_choose(l->lab, 2);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(l->lab, i));
    ebb_region region = ebb_machines_region(l->ms[i]);
    switch (ebb_lab_choose(l->lab, 6)) {
    case 0: (void)ebb_machine_stop(l->ms[i], i == 0 ? l->proxy : l->m[1]); break;
    case 1: (void)ebb_machine_send(l->ms[1], l->m[1], BREAK, NULL, 0); break;
    case 2: (void)ebb_machine_send(l->ms[1], l->m[1], WAKE, NULL, 0); break;
    case 3: ebb_region_close(host, region); break;
    case 4: ebb_region_cancel(host, region, EBB_CANCEL_USER, NULL); break;
    default: ebb_region_force(host, region); break;
    }
}

static void act(ebb_lab *lab, uint32_t n) {
    link *l = ebb_lab_state(lab);
    (void)n;
    if (l->calm) give_order(l);
    else switch (ebb_lab_choose(lab, 8)) {
        case 5: reply_to_one(l); break;
        case 6: end_something(l); break;
        case 7: (void)ebb_machine_send(l->ms[1], l->m[1], WAKE, NULL, 0); break;
        default: give_order(l); break;
        }
}

/* Numbers of messages that are never deferred come in order. */
static bool in_order(const link *l) {
    for (uint32_t i = 1; i < at_home.got_n; i++)
        if (at_home.got[i] <= at_home.got[i - 1]) return !l->calm;
    return true;
}

static void check(ebb_lab *lab) {
    link *l = ebb_lab_state(lab);
    uint32_t known = at_home.got_n + l->dead;
    if (known > l->sent || (known < l->sent && (l->calm || !l->strange)))
        ebb_lab_fail(lab, "a message was lost or doubled");
    if (at_near.heard_n > l->asked) ebb_lab_fail(lab, "a request was answered twice");
    /* The lab itself cancels what is left at the end. */
    if (at_near.heard_n < l->asked && l->calm) ebb_lab_fail(lab, "a request was not answered");
    if (l->calm && l->dead > 0) ebb_lab_fail(lab, "a message became a dead letter");
    if (!in_order(l)) ebb_lab_fail(lab, "messages came in another order");
    for (uint32_t i = 0; i < 2; i++) {
        ebb_machines_stats s;
        ebb_machines_stats_of(l->ms[i], &s);
        if (s.machines + s.queued + s.pending + s.cells > 0) ebb_lab_fail(lab, "something is left");
    }
}

static void teardown(ebb_lab *lab) {
    link *l = ebb_lab_state(lab);
    for (uint32_t i = 0; i < 2; i++) (void)ebb_machines_free(l->ms[i]);
    lab_peers_release(l->peers, 2);
}

static const ebb_lab_scenario calm = {.name = "proxy_calm",
                                      .about = "messages and requests to a proxy with two credits",
                                      .runtimes = 2,
                                      .steps = STEPS,
                                      .state_size = sizeof(link),
                                      .setup = calm_setup,
                                      .step = act,
                                      .received = lab_take_in,
                                      .check = check,
                                      .teardown = teardown};

static const ebb_lab_scenario storm = {
    .name = "proxy_storm",
    .about = "the same, while either end stops, closes, is cancelled and forced",
    .runtimes = 2,
    .steps = STEPS,
    .state_size = sizeof(link),
    .setup = setup,
    .step = act,
    .received = lab_take_in,
    .check = check,
    .teardown = teardown};

static void what_is_sent_arrives_in_order_and_is_answered(void **state) {
    (void)state;
    lab_explore(&calm, 500, 8, 250, NULL);
}

static void whatever_ends_nothing_is_lost_silently(void **state) {
    (void)state;
    lab_explore(&storm, 3000, 8, 1000, NULL);
}

static void each_runtime_replays_alone(void **state) {
    (void)state;
    lab_replays(&storm, 40);
}

static void the_same_seed_gives_the_same_traces(void **state) {
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        lab_records r[2] = {{.trace = {{0}}}, {.trace = {{0}}}};
        for (uint32_t k = 0; k < 2; k++) {
            ebb_lab_case c = {.scenario = &storm, .seed = seed};
            ebb_lab_opts o = {.trace = lab_keep_trace, .journal = lab_keep_journal, .ctx = &r[k]};
            ebb_lab_result result;
            assert_int_equal(ebb_lab_run(lab, &c, &o, &result), EBB_OK);
        }
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(r[0].trace[i].n, r[1].trace[i].n);
            assert_true(r[0].trace[i].n > 1000);
            assert_memory_equal(r[0].trace[i].p, r[1].trace[i].p, r[0].trace[i].n);
            for (uint32_t k = 0; k < 2; k++) {
                free(r[k].trace[i].p);
                free(r[k].journal[i].p);
            }
        }
    }
    ebb_lab_free(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_arrives_in_order_and_is_answered),
        cmocka_unit_test(whatever_ends_nothing_is_lost_silently),
        cmocka_unit_test(each_runtime_replays_alone),
        cmocka_unit_test(the_same_seed_gives_the_same_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
