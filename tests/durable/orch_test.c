/* ebb_orch_test: an orchestration with scripted answers, plain, then evicted, crashed and cancelled after every turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/durable.h>
#include <ebb/ebb.h>

static ebb_status pay(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts thrice = {.attempts = 3, .backoff = EBB_BACKOFF_FIXED};
    ebb_step race[] = {ebb_orch_call(o, "charge", in, &thrice), ebb_orch_timer(o, 30 * EBB_SECOND)};
    size_t won;
    ebb_status st = ebb_orch_select(o, 2, race, &won);
    if (st != EBB_OK) return st;
    if (won == 1) return EBB_TIMEOUT;
    ebb_blob receipt;
    st = ebb_orch_await(o, race[0], &receipt);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_event(o, "confirm"), NULL);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_child(o, "ship", receipt, NULL), out);
    return st;
}

static ebb_status ship(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "pack", in, NULL), out);
}

static ebb_orch_fn child(void *arg, const char *name) {
    (void)arg;
    return strcmp(name, "ship") == 0 ? ship : NULL;
}

/* The first two charges fail. */
static void answer(void *arg, ebb_test_call *c) {
    const uint64_t *latency = arg;
    c->after = *latency;
    if (strcmp(c->name, "charge") == 0 && c->attempt < 3) {
        c->status = EBB_FAILED;
        c->failure.code = "busy";
    }
    c->output = ebb_blob_text(strcmp(c->name, "charge") == 0 ? "receipt" : "parcel");
}

static ebb_orch_test_opts opts_of(ebb_failing *memory, ebb_orch_fn fn, uint64_t *latency) {
    static const ebb_test_signal confirm = {.at = 20 * EBB_SECOND, .name = "confirm"};
    *memory = (ebb_failing){.inner = ebb_libc_allocator()};
    return (ebb_orch_test_opts){.allocator = ebb_failing_allocator(memory),
                                .fn = fn,
                                .input = {"7", 1},
                                .answer = answer,
                                .arg = latency,
                                .child = child,
                                .signals = &confirm,
                                .signals_n = 1};
}

static void each_disturbance_gives_the_same_history(void **state) {
    ebb_failing memory;
    uint64_t latency = EBB_SECOND;
    ebb_orch_test_opts o = opts_of(&memory, pay, &latency);
    ebb_orch_test_result r;
    (void)state;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_OK);
    assert_int_equal(r.state, EBB_INSTANCE_COMPLETED);
    assert_string_equal(r.output, "parcel");
    assert_string_equal(r.difference, "");
    assert_true(r.turns >= 7);
    assert_int_equal(r.runs, 1 + 4 * r.turns);
    assert_non_null(strstr(r.history, "signalled \"confirm\""));
    ebb_orch_test_free(&o, &r);
    assert_int_equal(memory.live, 0);
}

static void a_slow_answer_loses(void **state) {
    ebb_failing memory;
    uint64_t latency = 20 * EBB_SECOND;
    ebb_orch_test_opts o = opts_of(&memory, pay, &latency);
    ebb_orch_test_result r;
    (void)state;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_OK);
    assert_int_equal(r.state, EBB_INSTANCE_FAILED);
    assert_int_equal(r.status, EBB_TIMEOUT);
    ebb_orch_test_free(&o, &r);
    latency = EBB_FOREVER;
    o.signals_n = 0;
    o.plain_only = true;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_OK);
    assert_int_equal(r.runs, 1);
    ebb_orch_test_free(&o, &r);
    assert_int_equal(memory.live, 0);
}

static ebb_status counts(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    static int n;
    char text[16];
    (void)in;
    (void)snprintf(text, sizeof text, "%d", n++);
    return ebb_orch_await(o, ebb_orch_call(o, "pack", ebb_blob_text(text), NULL), out);
}

static void static_state_is_named_with_its_line(void **state) {
    ebb_failing memory;
    uint64_t latency = EBB_SECOND;
    ebb_orch_test_opts o = opts_of(&memory, counts, &latency);
    ebb_orch_test_result r;
    (void)state;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_ERR_DIVERGED);
    assert_non_null(strstr(r.difference, "the plain run: turn 1 has event #2"));
    assert_non_null(strstr(r.difference, "durable/orch_test.c:"));
    ebb_orch_test_free(&o, &r);
    assert_int_equal(memory.live, 0);
}

static ebb_status deaf(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "pack", in, NULL), out);
    while (st != EBB_ERR_STALE) st = ebb_orch_await(o, ebb_orch_event(o, "never"), NULL);
    return st;
}

static void one_that_a_cancel_does_not_end_is_terminated(void **state) {
    ebb_failing memory;
    uint64_t latency = EBB_SECOND;
    ebb_orch_test_opts o = opts_of(&memory, deaf, &latency);
    ebb_orch_test_result r;
    (void)state;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_OK);
    assert_int_equal(r.state, EBB_INSTANCE_RUNNING);
    assert_int_equal(r.status, EBB_PENDING);
    ebb_orch_test_free(&o, &r);
    assert_int_equal(memory.live, 0);
}

static void memory_may_fail_at_any_allocation(void **state) {
    ebb_orch_test_result r;
    (void)state;
    for (uint64_t n = 1;; n++) {
        ebb_failing memory;
        uint64_t latency = EBB_SECOND;
        ebb_orch_test_opts o = opts_of(&memory, pay, &latency);
        o.plain_only = true;
        memory.fail_at = n;
        const ebb_status st = ebb_orch_test(&o, &r);
        const bool failed = memory.failures > 0;
        assert_true(st == EBB_OK || (failed && st == EBB_ERR_NOMEM));
        ebb_orch_test_free(&o, &r);
        assert_int_equal(memory.live, 0);
        if (!failed) break;
        assert_true(n < 10000);
    }
    const ebb_orch_test_opts none = {.size = 0};
    assert_int_equal(ebb_orch_test(&none, &r), EBB_ERR_INVALID);
    assert_int_equal(ebb_orch_test(NULL, &r), EBB_ERR_INVALID);
}

/* A saga: its charge is in no cancel set, and may outlive it. */
static ebb_status saga(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_step charge = ebb_orch_shield(o, ebb_orch_call(o, "charge-once", in, NULL));
    const ebb_step pause = ebb_orch_timer(o, EBB_SECOND);
    size_t won;
    (void)out;
    const ebb_step race[] = {charge, pause};
    return ebb_orch_select(o, 2, race, &won);
}

static void a_shielded_call_may_outlive_a_cancel(void **state) {
    ebb_failing memory;
    uint64_t latency = EBB_FOREVER;
    ebb_orch_test_opts o = opts_of(&memory, saga, &latency);
    ebb_orch_test_result r;
    (void)state;
    assert_int_equal(ebb_orch_test(&o, &r), EBB_OK);
    assert_string_equal(r.difference, "");
    assert_non_null(strstr(r.history, "step_cancelled"));
    ebb_orch_test_free(&o, &r);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_disturbance_gives_the_same_history),
        cmocka_unit_test(a_slow_answer_loses),
        cmocka_unit_test(static_state_is_named_with_its_line),
        cmocka_unit_test(one_that_a_cancel_does_not_end_is_terminated),
        cmocka_unit_test(a_shielded_call_may_outlive_a_cancel),
        cmocka_unit_test(memory_may_fail_at_any_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
