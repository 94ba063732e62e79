/* Several runtimes of machines in one runtime: their ids stay apart, their messages are in one order, and each ends by
 * itself. Every trace is checked against the rules of machines when the world ends. */
#include "machine/machine.h"
#include "tests/support/world.h"

enum { GO = 1, ASK, YES, KINDS };

typedef struct node {
    ebb_machine peer;
    uint64_t left, seen;
} node;

static ebb_status go(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    (void)m;
    n->seen++;
    if (n->left == 0) return EBB_OK;
    n->left--;
    return ebb_id_status(ebb_machine_request(ms, n->peer, ASK, NULL, 0, 0, 0).id);
}
static ebb_status ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_reply(ms, (ebb_request){0}, YES, NULL, 0);
}
static ebb_status yes(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    return ebb_machine_send(ms, m->self, GO, NULL, 0);
}
static const ebb_machine_rule table[KINDS] = {{NULL, NULL, EBB_MACHINE_NONE},
                                              {go, NULL, EBB_MACHINE_HANDLE},
                                              {ask, NULL, EBB_MACHINE_HANDLE},
                                              {yes, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type type = {.name = "Node",
                                      .states = &state,
                                      .table = table,
                                      .fields = sizeof(node),
                                      .n_states = 1,
                                      .columns = KINDS};

static ebb_machines *open_machines(world *w, const char *name) {
    ebb_machines *ms;
    assert_int_equal(ebb_machines_open(w->host, &ms, &(ebb_machines_opts){.n_kinds = KINDS, .name = name}),
                     EBB_OK);
    return ms;
}

static ebb_machine make(ebb_machines *ms, node n) {
    ebb_machine m = ebb_machine_spawn(ms, &type, 0, &n);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    return m;
}

static ebb_machine play(ebb_machines *ms, uint64_t left) {
    ebb_machine b = make(ms, (node){0}), a = make(ms, (node){.peer = b, .left = left});
    assert_int_equal(ebb_machine_send(ms, a, GO, NULL, 0), EBB_OK);
    return a;
}

static uint64_t seen_by(const ebb_machines *ms, ebb_machine m) {
    ebb_machine_info info;
    assert_int_equal(ebb_machine_info_of(ms, m, &info), EBB_OK);
    return info.type == NULL ? 0 : ((const node *)info.fields)->seen;
}

static void close_machines(world *w, ebb_machines *ms) {
    (void)ebb_region_close(w->host, ebb_machines_region(ms));
    world_settle(w);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

/* Their dispatchers take turns; the rules of the trace want the numbers of messages in one order. */
static void two_sets_play_beside_each_other(void **s) {
    world *w = *s;
    ebb_machines *one = open_machines(w, "one"), *two = open_machines(w, "two");
    ebb_machine a = play(one, 100), b = play(two, 200);
    world_settle(w);
    assert_int_equal(seen_by(one, a), 101);
    assert_int_equal(seen_by(two, b), 201);
    close_machines(w, one);
    ebb_machine c = play(two, 10);
    world_settle(w);
    assert_int_equal(seen_by(two, c), 11);
    close_machines(w, two);
}

static void a_machine_of_another_set_is_unknown(void **s) {
    world *w = *s;
    ebb_machines *one = open_machines(w, NULL), *two = open_machines(w, NULL);
    ebb_machine a = make(one, (node){0}), b = make(two, (node){0});
    ebb_machine_info info;
    assert_true(a.id != b.id);
    assert_int_equal(ebb_machine_send(one, b, GO, NULL, 0), EBB_ERR_UNKNOWN_MACHINE);
    assert_int_equal(ebb_machine_send(two, a, GO, NULL, 0), EBB_ERR_UNKNOWN_MACHINE);
    assert_int_equal(ebb_machine_stop(two, a), EBB_ERR_UNKNOWN_MACHINE);
    assert_int_equal(ebb_machine_info_of(two, a, &info), EBB_ERR_UNKNOWN_MACHINE);
    assert_ptr_equal(ebb__machines_of(w->rt, a.id), one);
    assert_ptr_equal(ebb__machines_of(w->rt, b.id), two);
    close_machines(w, one);
    assert_null(ebb__machines_of(w->rt, a.id));
    close_machines(w, two);
}

static void a_place_is_used_again_with_other_ids(void **s) {
    world *w = *s;
    ebb_machines *one = open_machines(w, NULL), *two = open_machines(w, NULL);
    ebb_machine before = make(two, (node){0});
    close_machines(w, two);
    two = open_machines(w, NULL);
    ebb_machine after = make(two, (node){0});
    assert_true(after.id != before.id);
    assert_int_equal(ebb_machine_send(two, before, GO, NULL, 0), EBB_ERR_NOT_RUNNING);
    assert_int_equal(ebb_machine_send(one, before, GO, NULL, 0), EBB_ERR_UNKNOWN_MACHINE);
    close_machines(w, two);
    close_machines(w, one);
}

static void they_are_counted_up_to_the_limit(void **s) {
    world *w = *s;
    ebb_machines *all[EBB_MACHINES_MAX], *more, *at = NULL;
    for (uint32_t i = 0; i < EBB_MACHINES_MAX; i++) {
        all[i] = open_machines(w, NULL);
        (void)play(all[i], 2);
    }
    assert_int_equal(ebb_machines_open(w->host, &more, &(ebb_machines_opts){.n_kinds = 2}), EBB_ERR_LIMIT);
    assert_null(more);
    for (uint32_t i = 0; i < EBB_MACHINES_MAX; i++)
        assert_ptr_equal(at = ebb__machines_next(w->rt, at), all[i]);
    assert_null(ebb__machines_next(w->rt, at));
    world_settle(w);
    close_machines(w, all[7]);
    assert_ptr_equal(ebb__machines_next(w->rt, all[6]), all[8]);
    all[7] = open_machines(w, NULL);
    assert_ptr_equal(ebb__machines_next(w->rt, all[6]), all[7]);
    for (uint32_t i = 0; i < EBB_MACHINES_MAX; i++) close_machines(w, all[i]);
    assert_null(ebb__machines_next(w->rt, NULL));
}

/* As if the slots had been used 67 million times. */
static void generations_never_reach_those_of_the_next_place(void **s) {
    const uint32_t last = (UINT32_C(1) << EBB__SET_SHIFT) - 1;
    world *w = *s;
    ebb_machines *ms = open_machines(w, NULL);
    ebb_machine m = make(ms, (node){0});
    assert_int_equal(ebb_machine_stop(ms, m), EBB_OK);
    world_settle(w);
    ebb__machine_at(ms, 1)->generation = last;
    m = make(ms, (node){0});
    assert_int_equal(m.id >> 32 & 0xffffff, 1);
    assert_int_equal((uint32_t)m.id, last);
    assert_int_equal(ebb_machine_stop(ms, m), EBB_OK);
    world_settle(w);
    m = make(ms, (node){0});
    assert_int_equal(m.id >> 32 & 0xffffff, 2);
    (void)play(ms, 1);
    world_settle(w);
    ebb__pending_at(ms, 1)->generation = last;
    (void)play(ms, 1);
    world_settle(w);
    assert_int_equal(ms->pendings.retired, 1);
    assert_int_equal(ms->machines.retired, 1);
    close_machines(w, ms);
    ms = open_machines(w, NULL); /* at another place: the first has no generations left */
    assert_int_equal((uint32_t)make(ms, (node){0}).id, last + 2);
    close_machines(w, ms);
}

static ebb_status fails(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    return EBB_FAILED;
}

static void a_machine_has_its_age_and_what_went_wrong(void **s) {
    static const ebb_machine_state states[2] = {{.name = "Works"}, {.name = "Broken"}};
    static const ebb_machine_rule both[4] = {{NULL, NULL, EBB_MACHINE_NONE},
                                             {fails, NULL, EBB_MACHINE_HANDLE},
                                             {NULL, NULL, EBB_MACHINE_NONE},
                                             {NULL, NULL, EBB_MACHINE_NONE}};
    static const ebb_machine_type goes_on = {.name = "GoesOn",
                                             .states = states,
                                             .table = both,
                                             .n_states = 2,
                                             .columns = 2,
                                             .mailbox = 3,
                                             .fault_state = 2};
    world *w = *s;
    ebb_machines *ms = open_machines(w, NULL);
    ebb_machine_info info;
    world_pass(w, 7 * EBB_MS);
    ebb_machine m = ebb_machine_spawn(ms, &goes_on, 0, NULL);
    uint64_t then = world_now(w);
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    world_pass(w, 5 * EBB_MS);
    for (int i = 0; i < 3; i++) assert_int_equal(ebb_machine_send(ms, m, GO, NULL, 0), EBB_OK);
    world_settle(w);
    assert_int_equal(ebb_machine_info_of(ms, m, &info), EBB_OK);
    assert_int_equal(info.spawned_at, then);
    assert_int_equal(info.faults, 1);
    assert_int_equal(info.dropped, 3); /* the one that faulted, and two that the new state does not handle */
    assert_int_equal(info.mailbox, 3);
    assert_int_equal(info.state, 1);
    assert_int_equal(ebb_machine_stop(ms, m), EBB_OK);
    m = ebb_machine_spawn(ms, &goes_on, 0, NULL); /* in the same slot */
    assert_int_equal(ebb_machine_info_of(ms, m, &info), EBB_OK);
    assert_int_equal(info.faults + info.dropped, 0);
    assert_int_equal(info.spawned_at, world_now(w));
    close_machines(w, ms);
}

/* Freed before its machines: what is left is freed with each set. */
static void sets_outlive_their_runtime(void **s) {
    (void)s;
    ebb_runtime *rt;
    ebb_machines *ms[3];
    assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt), EBB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            ebb_machines_open(ebb_runtime_host(rt), &ms[i], &(ebb_machines_opts){.n_kinds = KINDS}), EBB_OK);
        (void)play(ms[i], 5);
    }
    ebb_runtime_free(rt);
    for (int i = 0; i < 3; i++) assert_int_equal(ebb_machines_free(ms[i]), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(two_sets_play_beside_each_other),
        IN_WORLD(a_machine_of_another_set_is_unknown),
        IN_WORLD(a_place_is_used_again_with_other_ids),
        IN_WORLD(they_are_counted_up_to_the_limit),
        IN_WORLD(generations_never_reach_those_of_the_next_place),
        IN_WORLD(a_machine_has_its_age_and_what_went_wrong),
        cmocka_unit_test(sets_outlive_their_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
