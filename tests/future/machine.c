/* A request to a machine as a future: its reply is the value, and each failure has its status. */
#include "tests/support/future_world.h"

#include <ebb/machine.h>

enum { ADD = 1, HANG, BREAK, SUM, KINDS };

static ebb_request held;

static ebb_status on_add(ebb_machines *ms, void *self, const ebb_message *m) {
    uint64_t *sum = self;
    *sum += *(const uint64_t *)m->payload;
    return ebb_machine_reply(ms, m->request, SUM, sum, sizeof *sum);
}
static ebb_status on_hang(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    held = ebb_machine_hold(ms);
    return ebb_id_status(held.id);
}
static ebb_status on_break(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    (void)self;
    (void)m;
    return EBB_FAILED;
}
static const ebb_machine_rule table[KINDS] = {[ADD] = {on_add, NULL, EBB_MACHINE_HANDLE},
                                              [HANG] = {on_hang, NULL, EBB_MACHINE_HANDLE},
                                              [BREAK] = {on_break, NULL, EBB_MACHINE_HANDLE}};
static const ebb_machine_state state = {.name = "Only"};
static const ebb_machine_type type = {.name = "Sum",
                                      .states = &state,
                                      .table = table,
                                      .fields = sizeof(uint64_t),
                                      .n_states = 1,
                                      .columns = KINDS};

typedef struct stage {
    future_world *fw;
    ebb_machines *ms;
    ebb_machine m;
} stage;

static stage begin(void **st) {
    stage s = {.fw = *st};
    assert_int_equal(ebb_machines_open(s.fw->host, &s.ms, &(ebb_machines_opts){.n_kinds = KINDS}), EBB_OK);
    s.m = ebb_machine_spawn(s.ms, &type, 0, NULL);
    assert_int_equal(ebb_machine_start(s.ms, s.m), EBB_OK);
    return s;
}

static void end(stage *s) {
    ebb_region_cancel(s->fw->host, ebb_machines_region(s->ms), EBB_CANCEL_USER, NULL);
    future_settle(s->fw);
    assert_int_equal(ebb_machines_free(s->ms), EBB_OK);
}

static ebb_future *ask(stage *s, uint16_t kind, uint64_t n, uint64_t within) {
    return ebb_machine_ask(s->fw->host, s->ms, s->m, kind, &n, sizeof n, within);
}

/* Asked and awaited once it has ended. */
static ebb_status fate(stage *s, ebb_future *f, uint64_t *sum) {
    ebb_value v;
    future_settle(s->fw);
    ebb_status st = ebb_await(s->fw->host, f, &v);
    if (st != EBB_OK) return st;
    const ebb_machine_answer *a = v.as.p;
    assert_int_equal(a->kind, SUM);
    assert_int_equal(a->size, sizeof *sum);
    memcpy(sum, a->payload, sizeof *sum);
    ebb_value_discard(s->fw->host, v);
    return EBB_OK;
}

static void a_reply_is_the_value_of_the_future(void **st) {
    stage s = begin(st);
    uint64_t sum = 0;
    ebb_future *one = ask(&s, ADD, 3, 0), *two = ask(&s, ADD, 4, 0);
    assert_int_equal(fate(&s, one, &sum), EBB_OK);
    assert_int_equal(sum, 3);
    assert_int_equal(fate(&s, two, &sum), EBB_OK);
    assert_int_equal(sum, 7);
    end(&s);
}

static void each_failure_has_its_status(void **st) {
    stage s = begin(st);
    uint64_t sum;
    assert_int_equal(fate(&s, ask(&s, SUM, 0, 0), &sum), EBB_ERR_UNHANDLED);
    ebb_future *late = ask(&s, HANG, 0, 2 * EBB_MS);
    future_settle(s.fw);
    future_pass(s.fw, 5 * EBB_MS);
    assert_int_equal(fate(&s, late, &sum), EBB_TIMEOUT);
    ebb_future *stopped = ask(&s, HANG, 0, 0);
    future_settle(s.fw);
    assert_int_equal(ebb_machine_stop(s.ms, s.m), EBB_OK);
    assert_int_equal(fate(&s, stopped, &sum), EBB_ERR_NOT_RUNNING);
    assert_int_equal(fate(&s, ask(&s, ADD, 1, 0), &sum), EBB_ERR_NOT_RUNNING);
    s.m = ebb_machine_spawn(s.ms, &type, 0, NULL);
    assert_int_equal(ebb_machine_start(s.ms, s.m), EBB_OK);
    assert_int_equal(fate(&s, ask(&s, BREAK, 0, 0), &sum), EBB_FAULTED);
    end(&s);
}

static void a_future_that_is_cancelled_leaves_the_reply_to_nobody(void **st) {
    stage s = begin(st);
    ebb_machines_stats stats;
    ebb_future *f = ask(&s, HANG, 0, 0);
    future_settle(s.fw);
    (void)ebb_future_keep(f);
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    future_settle(s.fw);
    ebb_future_drop(f);
    assert_int_equal(ebb_machine_reply(s.ms, held, SUM, NULL, 0), EBB_OK);
    ebb_machines_stats_of(s.ms, &stats);
    assert_int_equal(stats.dead, 1);
    assert_int_equal(stats.pending, 0);
    end(&s);
}

/* Its memory is given back when the machines are freed. */
static void a_future_may_be_pending_when_the_runtime_is_freed(void **st) {
    (void)st;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_machines *ms;
    uint64_t n = 0;
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&memory)};
    assert_int_equal(ebb_runtime_new(&opts, &rt), EBB_OK);
    ebb_cx *host = ebb_runtime_host(rt);
    assert_int_equal(ebb_machines_open(host, &ms, &(ebb_machines_opts){.n_kinds = KINDS}), EBB_OK);
    ebb_machine m = ebb_machine_spawn(ms, &type, 0, NULL);
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    ebb_future *f = ebb_machine_ask(host, ms, m, HANG, &n, sizeof n, 0);
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) {}
    assert_int_equal(ebb_future_state_of(f), EBB_FUTURE_PENDING);
    ebb_runtime_free(rt);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
    assert_int_equal(memory.live, 0);
}

/* ---- references in replies ---------------------------------------------------------------------------------- */

static int references; /* to what the payload of SUM refers to */
static void keep_reference(void *payload) {
    (void)payload;
    references++;
}
static void drop_reference(void *payload) {
    (void)payload;
    references--;
}

static void the_value_of_the_future_keeps_what_the_reply_refers_to(void **st) {
    future_world *fw = *st;
    ebb_value v;
    static const ebb_machine_kind kinds[KINDS] = {[SUM] = {"Sum", keep_reference, drop_reference}};
    stage s = {.fw = fw};
    ebb_machines_opts opts = {.n_kinds = KINDS, .kinds = kinds};
    assert_int_equal(ebb_machines_open(fw->host, &s.ms, &opts), EBB_OK);
    s.m = ebb_machine_spawn(s.ms, &type, 0, NULL);
    assert_int_equal(ebb_machine_start(s.ms, s.m), EBB_OK);
    references = 1; /* the handler's, that it gives to the reply */
    ebb_future *f = ask(&s, ADD, 1, 0);
    future_settle(fw);
    assert_int_equal(references, 1);
    assert_int_equal(ebb_await(fw->host, f, &v), EBB_OK);
    ebb_value_discard(fw->host, v);
    assert_int_equal(references, 0);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FUTURES(a_reply_is_the_value_of_the_future),
        IN_FUTURES(each_failure_has_its_status),
        IN_FUTURES(a_future_that_is_cancelled_leaves_the_reply_to_nobody),
        cmocka_unit_test(a_future_may_be_pending_when_the_runtime_is_freed),
        IN_FUTURES(the_value_of_the_future_keeps_what_the_reply_refers_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
