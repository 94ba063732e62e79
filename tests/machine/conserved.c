/* Whatever fails, nothing is lost: with the n-th allocation refused, for each n, and with a fault after the n-th
 * staged effect, for each n, all places, capabilities, cells and bytes are there again. */
#include "tests/support/world.h"

enum { GO = 1, ASK, YES, KINDS };

static unsigned char big[200];
static uint32_t keeps, drops; /* of references in payloads */

typedef struct node {
    ebb_machine peer;
    uint32_t fault_after; /* stages this many effects, then faults; 0: never */
    ebb_request held;
} node;

static ebb_request held_now;
static ebb_status answer(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    if (m->size == 1) { /* a held one is answered with the next request */
        n->held = ebb_machine_hold(ms);
        held_now = n->held;
        return ebb_id_status(n->held.id);
    }
    if (n->held.id != 0) {
        ebb_status st = ebb_machine_reply(ms, n->held, YES, big, sizeof big);
        if (st != EBB_OK) return st;
    }
    n->held.id = 0;
    return ebb_machine_reply(ms, m->request, YES, big, sizeof big);
}

static const ebb_machine_type type;

/* Every kind of effect; the n-th is the last one, if n is not 0. */
static ebb_status go(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    uint32_t left = n->fault_after;
    ebb_machine child;
#define STEP(call)                                                                                           \
    do {                                                                                                     \
        ebb_status st_ = (call);                                                                             \
        if (st_ != EBB_OK) return st_;                                                                       \
        if (left > 0 && --left == 0) return EBB_FAULTED;                                                     \
    } while (0)
    STEP(ebb_machine_send(ms, n->peer, YES, big, sizeof big));
    STEP(ebb_machine_send(ms, m->self, YES, big, 8));
    STEP(ebb_id_status(ebb_machine_request(ms, n->peer, ASK, big, 1, 0, 0).id));
    STEP(ebb_id_status(ebb_machine_request(ms, n->peer, ASK, big, sizeof big, 5 * EBB_MS, 0).id));
    STEP(ebb_machine_subscribe(ms, YES, 1));
    STEP(ebb_machine_publish(ms, YES, 2, big, sizeof big));
    STEP(ebb_machine_after(ms, EBB_MS, YES));
    STEP(ebb_id_status((child = ebb_machine_spawn(ms, &type, 0, NULL)).id));
    STEP(ebb_machine_send(ms, child, YES, big, sizeof big));
    STEP(ebb_machine_start(ms, child));
    STEP(ebb_machine_stop(ms, child));
    STEP(ebb_machine_unsubscribe(ms, YES, 3));
    if (ebb_machine_alloc(ms, 9000) == NULL) return EBB_ERR_NOMEM;
#undef STEP
    return EBB_OK;
}
static ebb_status yes(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    return EBB_OK;
}
enum { EFFECTS = 12 };

static const ebb_machine_rule table[KINDS] = {{yes, NULL, EBB_MACHINE_HANDLE},
                                              {go, NULL, EBB_MACHINE_HANDLE},
                                              {answer, NULL, EBB_MACHINE_HANDLE},
                                              {yes, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type type = {.name = "Node",
                                      .states = &state,
                                      .table = table,
                                      .fields = sizeof(node),
                                      .n_states = 1,
                                      .columns = KINDS,
                                      .mailbox = 8};

static void keep(void *payload) {
    (void)payload;
    keeps++;
}
static void drop(void *payload) {
    (void)payload;
    drops++;
}
static const ebb_machine_kind kinds[KINDS] = {[YES] = {"Yes", keep, drop}};

typedef struct scene {
    ebb_failing memory;
    ebb_runtime *rt;
    ebb_machines *ms;
    ebb_machine a, b;
    bool no_memory; /* somebody was told */
} scene;

static void heard(scene *s, ebb_status st) {
    if (st == EBB_ERR_NOMEM) s->no_memory = true;
}

static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    (void)machine;
    (void)kind;
    heard(arg, st);
}

static bool begin(scene *s, uint64_t fail_at) {
    *s = (scene){.memory = {.inner = ebb_libc_allocator(), .fail_at = fail_at}};
    keeps = drops = 0;
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&s->memory), .runtime_id = 1};
    ebb_status st = ebb_runtime_new(&opts, &s->rt);
    heard(s, st);
    if (st != EBB_OK) return false;
    ebb_machines_opts mo = {.n_kinds = KINDS, .kinds = kinds, .fault = on_fault, .arg = s};
    st = ebb_machines_open(ebb_runtime_host(s->rt), &s->ms, &mo);
    heard(s, st);
    return st == EBB_OK;
}

static void pump(scene *s) {
    while (ebb_runtime_pump(s->rt, 100) == EBB_PENDING) {}
}

static void pass(scene *s, uint64_t now) {
    ebb_runtime_advance(s->rt, now);
    pump(s);
}

static void play(scene *s, uint32_t fault_after) {
    s->b = ebb_machine_spawn(s->ms, &type, 0, NULL);
    heard(s, ebb_id_status(s->b.id));
    s->a = ebb_machine_spawn(s->ms, &type, 0, &(node){.peer = s->b, .fault_after = fault_after});
    heard(s, ebb_id_status(s->a.id));
    heard(s, ebb_machine_start(s->ms, s->a));
    heard(s, ebb_machine_start(s->ms, s->b));
    heard(s, ebb_machine_send(s->ms, s->a, GO, NULL, 0));
    pump(s);
    pass(s, 3 * EBB_MS);
    pass(s, 9 * EBB_MS);
}

static void finish(scene *s, bool cancel) {
    if (s->ms != NULL) {
        ebb_machines_stats st;
        ebb_cx *host = ebb_runtime_host(s->rt);
        ebb_region region = ebb_machines_region(s->ms);
        if (cancel) ebb_region_cancel(host, region, EBB_CANCEL_USER, NULL);
        else ebb_region_close(host, region);
        pump(s);
        ebb_machines_stats_of(s->ms, &st);
        if (!cancel && st.machines > 0) { /* a request of ours is held for ever */
            ebb_region_cancel(host, region, EBB_CANCEL_USER, NULL);
            pump(s);
            ebb_machines_stats_of(s->ms, &st);
        }
        assert_int_equal(st.machines, 0);
        assert_int_equal(st.cells, 0);
        assert_int_equal(st.pending, 0);
        assert_int_equal(st.timers, 0);
        assert_int_equal(st.subscriptions, 0);
        assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
    }
    ebb_runtime_free(s->rt);
    assert_int_equal(s->memory.live, 0);
}

/* Without memory for its timer the dispatcher looks at the clock instead, and nobody has to be told: then all is done
 * that would have been done. */
static uint64_t allocations_with(uint64_t n, bool cancel, uint64_t all) {
    scene s;
    ebb_machines_stats st = {0};
    if (begin(&s, n)) play(&s, 0);
    if (s.ms != NULL) ebb_machines_stats_of(s.ms, &st);
    if (s.memory.failures > 0 && !s.no_memory && st.committed != all)
        fail_msg("allocation %u failed and nobody was told", (unsigned)n);
    uint64_t calls = n == 0 && all == 0 ? st.committed : s.memory.calls;
    finish(&s, cancel);
    return calls;
}

static void nothing_is_lost_when_an_allocation_fails(void **unused) {
    (void)unused;
    uint64_t all = allocations_with(0, false, 0), calls = allocations_with(0, false, all);
    assert_true(all > 5 && calls > 20);
    for (uint64_t n = 1; n <= calls; n++) {
        (void)allocations_with(n, false, all);
        (void)allocations_with(n, true, all);
    }
}

/* All counts that a rollback must restore. */
static void look(scene *s, uint32_t out[8]) {
    ebb_machines_stats st;
    ebb_machine_info a, b;
    ebb_machines_stats_of(s->ms, &st);
    (void)ebb_machine_info_of(s->ms, s->a, &a);
    (void)ebb_machine_info_of(s->ms, s->b, &b);
    uint32_t all[8] = {st.machines,      st.cells,   st.pending, st.timers,
                       st.subscriptions, b.reserved, b.queued,   a.reserved};
    memcpy(out, all, sizeof all);
}

static void nothing_is_lost_when_a_handler_faults_after_any_of_its_effects(void **unused) {
    (void)unused;
    for (uint32_t n = 1; n <= EFFECTS; n++) {
        scene s;
        uint32_t before[8], after[8];
        assert_true(begin(&s, 0));
        s.b = ebb_machine_spawn(s.ms, &type, 0, NULL);
        s.a = ebb_machine_spawn(s.ms, &type, 0, &(node){.peer = s.b, .fault_after = n});
        assert_int_equal(ebb_machine_start(s.ms, s.a), EBB_OK);
        pump(&s);
        look(&s, before);
        assert_int_equal(ebb_machine_send(s.ms, s.a, GO, NULL, 0), EBB_OK);
        pump(&s);
        look(&s, after);
        assert_memory_equal(before, after, sizeof before);
        ebb_machines_stats st;
        ebb_machines_stats_of(s.ms, &st);
        assert_int_equal(st.rolled_back, 1);
        assert_int_equal(st.requests, 0);
        finish(&s, false);
    }
}

static void a_runtime_that_is_freed_at_once_frees_its_machines(void **unused) {
    (void)unused;
    scene s;
    assert_true(begin(&s, 0));
    play(&s, 0);
    (void)ebb_machine_send(s.ms, s.a, GO, NULL, 0);
    (void)ebb_machine_send(s.ms, s.b, YES, big, sizeof big);
    ebb_runtime_free(s.rt);
    assert_int_equal(ebb_machine_send(s.ms, s.a, GO, NULL, 0), EBB_ERR_CLOSED);
    assert_int_equal(ebb_machines_free(s.ms), EBB_OK);
    assert_int_equal(s.memory.live, 0);
}

static void count_answer(void *arg, const ebb_message *m) {
    assert_int_equal(m->failure, EBB_REQUEST_STOPPED);
    ++*(uint32_t *)arg;
}

/* One is in the mailbox, one is held. */
static void a_call_is_answered_even_if_the_runtime_is_freed_first(void **unused) {
    (void)unused;
    scene s;
    uint32_t answers = 0;
    assert_true(begin(&s, 0));
    s.a = ebb_machine_spawn(s.ms, &type, 0, NULL);
    assert_int_equal(ebb_machine_start(s.ms, s.a), EBB_OK);
    for (int i = 0; i < 2; i++) {
        ebb_request r = ebb_machine_call(s.ms, s.a, ASK, big, 1, 0, count_answer, &answers);
        assert_int_equal(ebb_id_status(r.id), EBB_OK);
        if (i == 0) pump(&s);
    }
    ebb_runtime_free(s.rt);
    assert_int_equal(answers, 2);
    assert_int_equal(ebb_machines_free(s.ms), EBB_OK);
    assert_int_equal(s.memory.live, 0);
}

/* One runtime of machines after the other: ids are not used again. */
static void ids_are_not_used_again_by_the_next_runtime_of_machines(void **unused) {
    (void)unused;
    scene s;
    assert_true(begin(&s, 0));
    play(&s, 0);
    ebb_machine old = s.a;
    uint32_t answers = 0;
    enum { ASKED = 6 };
    ebb_request asked[ASKED];
    for (int i = 0; i < ASKED; i++)
        asked[i] = ebb_machine_call(s.ms, s.b, ASK, big, 1, 0, count_answer, &answers);
    assert_int_equal(ebb_id_status(asked[ASKED - 1].id), EBB_OK);
    ebb_region_cancel(ebb_runtime_host(s.rt), ebb_machines_region(s.ms), EBB_CANCEL_USER, NULL);
    pump(&s);
    assert_int_equal(ebb_machines_free(s.ms), EBB_OK);
    assert_int_equal(ebb_machines_open(ebb_runtime_host(s.rt), &s.ms, &(ebb_machines_opts){.n_kinds = KINDS}),
                     EBB_OK);
    assert_int_equal(answers, ASKED);
    for (int i = 0; i < 3; i++) {
        ebb_machine m = ebb_machine_spawn(s.ms, &type, 0, NULL);
        assert_int_not_equal(m.id, old.id);
        for (int k = 0; k < 3; k++) {
            ebb_request r = ebb_machine_call(s.ms, m, ASK, big, 1, 0, count_answer, &answers);
            for (int j = 0; j < ASKED; j++) assert_int_not_equal(r.id, asked[j].id);
        }
    }
    for (int j = 0; j < ASKED; j++) assert_int_equal(ebb_machine_forget(s.ms, asked[j]), EBB_ERR_STALE);
    assert_int_equal(ebb_machine_send(s.ms, old, GO, NULL, 0), EBB_ERR_NOT_RUNNING);
    finish(&s, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_when_an_allocation_fails),
        cmocka_unit_test(nothing_is_lost_when_a_handler_faults_after_any_of_its_effects),
        cmocka_unit_test(a_runtime_that_is_freed_at_once_frees_its_machines),
        cmocka_unit_test(a_call_is_answered_even_if_the_runtime_is_freed_first),
        cmocka_unit_test(ids_are_not_used_again_by_the_next_runtime_of_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
