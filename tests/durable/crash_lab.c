/* Two hosts, each a runtime with a worker, on one lab store in virtual time, and a mix of orchestrations. At the n-th call
 * that the first host makes it crashes, or the call fails, or its answer is lost, for each n. Whatever n is, each instance
 * ends once and as it should, and nothing of it is left. */
#include "durable/lab_rows.h"
#include "tests/support/durable_mix.h"
#include "tests/support/durable_world.h"

#define LEASE (5 * EBB_SECOND)

typedef struct stage {
    ebb__lab_world *lab;
    durable *host[2]; /* [0] NULL: it has crashed */
    mix_pace pace;
    ebb__store_fault fault;
    uint64_t fault_at, delays;
    bool slow; /* calls take up to 60 ms, and no fiber is kept */
    bool hit, crashed;
    const char *op;    /* of the call that was hit */
    uint64_t keys[64]; /* of instances that have ended */
    ebb_provider_token acks[64];
    size_t keys_n;
    char wrong[200]; /* the first thing; a commit is on a fiber, where no test may fail */
} stage;

static ebb__store_fault fault_at(void *arg, uint64_t n, const ebb_provider_call *c) {
    stage *s = arg;
    if (n != s->fault_at) return EBB__FAULT_NONE;
    s->hit = true;
    s->op = ebb__call_types[c->op].name;
    return s->fault;
}

static void crash(void *arg) {
    ((stage *)arg)->crashed = true;
}

/* The client's own calls are answered at once. */
static uint64_t delay(void *arg, const ebb_provider_call *c) {
    stage *s = arg;
    const bool clients =
        c->op >= EBB_PROVIDER_START && c->op != EBB_PROVIDER_HISTORY && c->op != EBB_PROVIDER_MARK;
    return s->slow && !clients ? ++s->delays * UINT64_C(7919) % 61 * EBB_MS : 0;
}

/* ---- time of both hosts ------------------------------------------------------------------------------------------ */

static uint64_t polls_of(const durable *d) {
    return d != NULL ? stats_of(d->world).polls : 0;
}

static void settle(stage *s) {
    uint64_t before;
    do {
        before = polls_of(s->host[0]) + polls_of(s->host[1]);
        for (int i = 0; i < 2; i++) {
            if (s->host[i] != NULL) store_settle(s->host[i]->world);
        }
    } while (polls_of(s->host[0]) + polls_of(s->host[1]) != before);
}

/* What has crashed is forced: nothing of it runs any more, and nothing of it is closed. */
static void end_host(stage *s, int i) {
    world *w = s->host[i]->world;
    assert_int_equal(s->host[i]->errors, 0);
    if (i == 0 && s->crashed) ebb_region_force(w->host, w->root);
    s->host[i] = NULL;
    world_end(w);
}

static void pass(stage *s, uint64_t span) {
    const uint64_t end = ebb_now(s->host[1]->world->host) + span;
    for (;;) {
        uint64_t due = end;
        settle(s);
        if (s->crashed && s->host[0] != NULL) end_host(s, 0);
        for (int i = 0; i < 2; i++) {
            const uint64_t next = s->host[i] != NULL ? ebb_runtime_next_due(s->host[i]->world->rt) : end;
            if (next < due) due = next;
        }
        for (int i = 0; i < 2; i++) {
            if (s->host[i] != NULL) ebb_runtime_advance(s->host[i]->world->rt, due);
        }
        if (due == end) break;
    }
    settle(s);
}

/* ---- begun and ended --------------------------------------------------------------------------------------------- */

static void is_wrong(stage *s, const char *text) {
    if (s->wrong[0] == 0) (void)snprintf(s->wrong, sizeof s->wrong, "%s", text);
}

/* Between two commits no row of work or timers is left of what has ended, and nothing ends twice. */
static void committed(void *arg, const ebb_provider_call *c) {
    stage *s = arg;
    const ebb_provider_ack_turn_call *a = (const ebb_provider_ack_turn_call *)(const void *)c;
    size_t i = 0;
    char text[200];
    if (!ebb__lab_world_check(s->lab, text, sizeof text)) is_wrong(s, text);
    if (c->op != EBB_PROVIDER_ACK_TURN || a->ends == 0) return;
    while (i < s->keys_n && s->keys[i] != a->key) i++;
    if (i == 64) return;
    if (i == s->keys_n) {
        s->keys[s->keys_n++] = a->key;
        s->acks[i] = a->ack_id;
    }
    if (!ebb__token_is(s->acks[i], a->ack_id))
        is_wrong(s, "an instance has ended twice"); /* not the same ack again */
    const ebb__lab_instance *of = ebb__lab_find_key(ebb__lab_world_stores(s->lab), a->key);
    if (of->work.n + of->timers.n != 0) is_wrong(s, "what has ended has rows");
}

static durable *begin_host(stage *s, uint8_t id, const ebb__store_faults *faults) {
    world *w = world_new(&(ebb_runtime_opts){.runtime_id = id}, false);
    durable *d = world_keep(w, sizeof *d);
    assert_int_equal(ebb__lab_world_use(w->rt, s->lab), EBB_OK);
    d->world = w;
    d->store = open_store(w, "lab:");
    ebb__store_set_faults(d->store, faults);
    d->worker =
        durable_open(d, &(ebb_worker_opts){.lease = LEASE, .cache = s->slow ? EBB_WORKER_NO_CACHE : 0});
    assert_int_equal(mix_register(d->worker, &s->pace), EBB_OK);
    return d;
}

static void *libc_memory(void *ctx, void *p, size_t old, size_t n) {
    (void)ctx;
    (void)old;
    if (n != 0) return realloc(p, n);
    free(p);
    return NULL;
}

static void verify(stage *s, const char *id, uint64_t executions) {
    durable *d = s->host[1];
    for (uint64_t e = 1; e <= executions; e++) {
        const ebb_history_opts o = {.execution = e, .verify = true};
        assert_int_equal(durable_await(d, ebb_instance_history(d->world->host, d->store, id, &o)), EBB_OK);
    }
}

static void dump(void *ctx, const char *text, size_t n) {
    (void)ctx;
    print_error("%.*s", (int)n, text);
}

static void check_instance(stage *s, const char *id, ebb_instance_state state, const char *output,
                           uint64_t executions) {
    char expected[100];
    const char *found = durable_state(s->host[1], id);
    (void)snprintf(expected, sizeof expected, "%s%s%s", ebb_instance_state_name(state),
                   *output != 0 ? " " : "", output);
    if (strncmp(found, expected, strlen(expected)) != 0) ebb__lab_world_dump(s->lab, dump, NULL);
    if (strncmp(found, expected, strlen(expected)) != 0)
        fail_msg("%s is '%s' and not '%s' after fault %d at call %llu (%s)%s", id, found, expected,
                 (int)s->fault, (unsigned long long)s->fault_at, s->op, s->slow ? ", slow" : "");
    assert_string_equal(durable_rows(s->host[1], id), "work 0 claimed 0 timers 0 messages 0");
    verify(s, id, executions);
}

static void check_all(stage *s) {
    char other[64];
    s->slow = false;
    for (int i = 0; i < MIX_STARTED; i++) {
        const mix_kind *k = &mix_kinds[i];
        check_instance(s, k->name, k->state, k->output, k->executions);
        (void)snprintf(other, sizeof other, "%s%s", k->name, k->other != NULL ? k->other : "");
        if (k->other != NULL) check_instance(s, other, k->other_state, "", 1);
    }
    assert_string_equal(s->wrong, "");
    assert_int_equal(s->keys_n, MIX_STARTED + 2);
}

static void play_out(stage *s) {
    durable *client = s->host[1];
    char span[24];
    (void)snprintf(span, sizeof span, "%llu", (unsigned long long)s->pace.timer);
    for (int i = 0; i < MIX_STARTED; i++) durable_start(client, mix_kinds[i].name, mix_kinds[i].name, span);
    assert_int_equal(ebb_worker_begin(s->host[0]->worker), EBB_OK);
    pass(s, 100 * EBB_MS); /* most of it is the first host's */
    assert_int_equal(ebb_worker_begin(client->worker), EBB_OK);
    pass(s, EBB_SECOND);
    durable_signal(client, "signals", "go", "x");
    pass(s, EBB_SECOND);
    durable_signal(client, "signals", "go", "y");
    assert_int_equal(
        durable_await(client, ebb_instance_cancel(client->world->host, client->store, "saga", "")), EBB_OK);
    pass(s, 60 * EBB_SECOND);
}

/* Returns whether the n-th call came. */
static bool play(ebb__store_fault fault, bool slow, uint64_t n) {
    stage s = {.pace = {EBB_SECOND, 2 * EBB_SECOND}, .fault = fault, .fault_at = n, .slow = slow};
    const ebb__store_faults faults = {fault_at, crash, &s};
    assert_int_equal(ebb__lab_world_new((ebb_allocator){libc_memory, NULL}, &s.lab), EBB_OK);
    ebb__lab_world_set_committed(s.lab, committed, &s);
    ebb__lab_world_set_delay(s.lab, delay, &s);
    s.host[0] = begin_host(&s, 1, &faults);
    s.host[1] = begin_host(&s, 2, NULL);
    play_out(&s);
    check_all(&s);
    for (int i = 0; i < 2; i++) {
        if (s.host[i] != NULL) end_host(&s, i);
    }
    ebb__lab_world_free(s.lab);
    return s.hit;
}

static void at_every_call(ebb__store_fault fault) {
    for (int slow = 0; slow < 2; slow++) {
        uint64_t n = 0;
        while (play(fault, slow, n)) n++;
        print_message("%llu calls%s\n", (unsigned long long)n, slow ? ", slow ones" : "");
        assert_true(n > 100);
    }
}

static void a_crash_before_the_nth_call_loses_nothing(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_CRASH_BEFORE);
}
static void a_crash_after_the_nth_call_does_nothing_twice(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_CRASH_AFTER);
}
static void the_nth_call_may_fail(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_BEFORE);
}
static void the_answer_of_the_nth_call_may_be_lost(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_LOST_REPLY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_of_the_nth_call_may_be_lost),
        cmocka_unit_test(the_nth_call_may_fail),
        cmocka_unit_test(a_crash_before_the_nth_call_loses_nothing),
        cmocka_unit_test(a_crash_after_the_nth_call_does_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
