/* The runtime of machines as a whole: the same program gives the same trace, close and cancel drain it, and a million
 * machines are drained within a budget. */
#include "kernel/layer.h"
#include "tests/support/world.h"

enum { GO = 1, ASK, YES, KINDS };

typedef struct node {
    ebb_machine peer;
    uint64_t left;
} node;

static uint32_t last_words;

static ebb_status go(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    (void)m;
    if (n->left == 0) return EBB_OK;
    n->left--;
    if (n->left % 3 == 0) return ebb_id_status(ebb_machine_request(ms, n->peer, ASK, NULL, 0, 0, 0).id);
    return ebb_machine_send(ms, n->peer, GO, NULL, 0);
}
static ebb_status ask(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_reply(ms, (ebb_request){0}, YES, NULL, 0);
}
static ebb_status yes(ebb_machines *ms, void *self, const ebb_message *m) {
    node *n = self;
    if (m->failure == EBB_REQUEST_STOPPED) last_words++;
    return n->left == 0 ? EBB_OK : ebb_machine_send(ms, m->self, GO, NULL, 0);
}
static const ebb_machine_rule table[KINDS] = {{yes, NULL, EBB_MACHINE_HANDLE},
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

static ebb_machines *open_machines(world *w) {
    ebb_machines *ms;
    assert_int_equal(ebb_machines_open(w->host, &ms, &(ebb_machines_opts){.n_kinds = KINDS}), EBB_OK);
    last_words = 0;
    return ms;
}

static ebb_machine make(ebb_machines *ms, node n) {
    ebb_machine m = ebb_machine_spawn(ms, &type, 0, &n);
    assert_int_equal(ebb_id_status(m.id), EBB_OK);
    return m;
}

/* Two machines that play until `left` is used up. */
static ebb_machine pair(ebb_machines *ms, uint64_t left) {
    ebb_machine a = make(ms, (node){.left = left}), b = make(ms, (node){.peer = a, .left = left});
    ebb_machine_info info;
    (void)ebb_machine_info_of(ms, a, &info);
    ((node *)(uintptr_t)info.fields)->peer = b;
    assert_int_equal(ebb_machine_start(ms, a), EBB_OK);
    assert_int_equal(ebb_machine_start(ms, b), EBB_OK);
    return a;
}

static uint32_t machines_of(const ebb_machines *ms) {
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    return s.machines;
}

static uint8_t *traces[4];
static size_t sizes[4];
static void keep(void *ctx, const void *bytes, size_t n) {
    size_t i = *(size_t *)ctx;
    traces[i] = realloc(traces[i], sizes[i] + n);
    memcpy(traces[i] + sizes[i], bytes, n);
    sizes[i] += n;
}

/* Twice, and a third time from the journal. */
static void the_same_program_gives_the_same_trace(void **unused) {
    (void)unused;
    size_t journal = 2;
    for (size_t i = 0; i < 2; i++) {
        ebb_runtime *rt;
        ebb_machines *ms;
        assert_int_equal(ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt),
                         EBB_OK);
        assert_int_equal(ebb_trace_start(rt, 1 << 20), EBB_OK);
        if (i == 0) assert_int_equal(ebb_journal_start(rt, 1 << 20), EBB_OK);
        assert_int_equal(ebb_machines_open(ebb_runtime_host(rt), &ms, &(ebb_machines_opts){.n_kinds = KINDS}),
                         EBB_OK);
        assert_int_equal(ebb_machine_send(ms, pair(ms, 500), GO, NULL, 0), EBB_OK);
        while (ebb_runtime_pump(rt, 7) == EBB_PENDING) {}
        ebb_region_close(ebb_runtime_host(rt), ebb_machines_region(ms));
        while (ebb_runtime_pump(rt, 7) == EBB_PENDING) {}
        ebb_trace_take(rt, true, keep, &i);
        if (i == 0) ebb_journal_take(rt, true, keep, &journal);
        assert_int_equal(ebb_machines_free(ms), EBB_OK);
        ebb_runtime_free(rt);
    }
    assert_true(sizes[0] > 50000);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(traces[0], traces[1], sizes[0]);
    size_t replay = 3;
    ebb_journal_replay_result result;
    ebb_status st = ebb_journal_replay(ebb_libc_allocator(), traces[2], sizes[2], keep, &replay, &result);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), result.message);
    assert_int_equal(sizes[0], sizes[3]);
    assert_memory_equal(traces[0], traces[3], sizes[0]);
    for (size_t i = 0; i < 4; i++) free(traces[i]);
}

static void a_close_lets_what_is_queued_finish_and_refuses_the_rest(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    ebb_machine a = pair(ms, 300);
    assert_int_equal(ebb_machine_send(ms, a, GO, NULL, 0), EBB_OK);
    ebb_region_close(w->host, ebb_machines_region(ms));
    assert_int_equal(ebb_machine_send(ms, a, GO, NULL, 0), EBB_ERR_CLOSED);
    assert_int_equal(ebb_id_status(ebb_machine_spawn(ms, &type, 0, NULL).id), EBB_ERR_CLOSED);
    world_settle(w);
    ebb_machines_stats s;
    ebb_machines_stats_of(ms, &s);
    assert_true(s.committed > 300);
    assert_int_equal(s.machines, 0);
    assert_int_equal(s.dead, 0);
    assert_int_equal(ebb_region_join(w->host, ebb_machines_region(ms)), EBB_OK);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static void a_cancel_tells_those_who_wait_and_stops_all(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    ebb_machine never = make(ms, (node){0}); /* is not started: it answers nobody */
    ebb_machine a = make(ms, (node){.peer = never, .left = 1});
    assert_int_equal(ebb_machine_start(ms, a), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, a, GO, NULL, 0), EBB_OK);
    world_settle(w);
    ebb_region_cancel(w->host, ebb_machines_region(ms), EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(last_words, 1);
    assert_int_equal(machines_of(ms), 0);
    assert_int_equal(ebb_region_join(w->host, ebb_machines_region(ms)), EBB_CANCELLED);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

typedef struct caller {
    ebb_machines *ms;
    ebb_machine to;
    ebb_status sent;
    bool ends;
} caller;

static ebb_status call(ebb_cx *cx, void *arg) {
    caller *c = arg;
    if (!c->ends) {
        if (ebb_stopping(cx)) c->sent = ebb_machine_send(c->ms, c->to, GO, NULL, 0);
        return EBB_PENDING;
    }
    return EBB_OK;
}

static void a_unit_of_the_closed_service_may_send_until_it_ends(void **st) {
    world *w = *st;
    ebb_region service = ebb_region_open(w->host, NULL);
    ebb_region unit = ebb_region_open(w->host, &(ebb_region_opts){.parent = service, .unit = true});
    ebb_region plain = ebb_region_open(w->host, &(ebb_region_opts){.parent = service});
    ebb_machines *ms;
    assert_int_equal(
        ebb_machines_open(w->host, &ms, &(ebb_machines_opts){.n_kinds = KINDS, .parent = service}), EBB_OK);
    ebb_machine m = make(ms, (node){0});
    assert_int_equal(ebb_machine_start(ms, m), EBB_OK);
    caller in = {ms, m, EBB_PENDING, false}, out = {ms, m, EBB_PENDING, false};
    ebb_task inside = ebb_spawn(w->host, unit, call, &in), outside = ebb_spawn(w->host, plain, call, &out);
    world_settle(w);
    ebb_region_close(w->host, service);
    world_settle(w);
    assert_int_equal(in.sent, EBB_OK);
    assert_int_equal(out.sent, EBB_ERR_CLOSED);
    assert_int_equal(machines_of(ms), 1);
    in.ends = out.ends = true;
    (void)ebb_task_wake(w->host, inside);
    (void)ebb_task_wake(w->host, outside);
    world_settle(w);
    ebb_region_close(w->host, unit);
    world_settle(w);
    assert_int_equal(machines_of(ms), 0);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

/* ---- crowds -------------------------------------------------------------------------------------------------------- */

enum { MILLION = 1000000 };

static void a_million_machines_drain_within_the_polls_of_a_forced_budget(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    for (uint32_t i = 0; i < MILLION; i++) {
        ebb_machine m = make(ms, (node){0});
        (void)ebb_machine_start(ms, m);
        if (i % 16 == 0) assert_int_equal(ebb_machine_send(ms, m, GO, NULL, 0), EBB_OK);
    }
    assert_int_equal(machines_of(ms), MILLION);
    uint64_t polls = ebb__rt_polls(w->rt);
    ebb_region_cancel(w->host, ebb_machines_region(ms), EBB_CANCEL_SHUTDOWN, NULL);
    world_settle(w);
    assert_int_equal(machines_of(ms), 0);
    assert_true(ebb__rt_polls(w->rt) - polls <= 64);
    assert_int_equal(report_of(w, ebb_machines_region(ms)).abandoned, 0);
    assert_int_equal(ebb_region_join(w->host, ebb_machines_region(ms)), EBB_CANCELLED);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static ebb_status subscribe(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)self;
    (void)m;
    return ebb_machine_subscribe(ms, YES, 1);
}
static const ebb_machine_rule reader_table[KINDS] = {{0}, {subscribe, NULL, EBB_MACHINE_HANDLE}, {0}, {0}};
static const ebb_machine_type reader = {
    .name = "Reader", .states = &state, .table = reader_table, .n_states = 1, .columns = KINDS};

/* Each subscription is looked for first; a walk over all others would take half an hour. */
static void a_million_machines_subscribe_to_one_topic(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    ebb_machines_stats s;
    for (uint32_t i = 0; i < MILLION; i++) {
        ebb_machine m = ebb_machine_spawn(ms, &reader, 0, NULL);
        (void)ebb_machine_start(ms, m);
        assert_int_equal(ebb_machine_send(ms, m, GO, NULL, 0), EBB_OK);
    }
    world_settle(w);
    ebb_machines_stats_of(ms, &s);
    assert_int_equal(s.subscriptions, MILLION);
    assert_int_equal(ebb_machine_publish(ms, YES, 1, NULL, 0), EBB_ERR_LIMIT); /* the bytes of one dispatch */
    ebb_region_close(w->host, ebb_machines_region(ms));
    world_settle(w);
    ebb_machines_stats_of(ms, &s);
    assert_int_equal(s.subscriptions, 0);
    assert_int_equal(s.queued, 0);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

static void an_idle_machine_takes_its_record_and_its_fields(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    int64_t before = w->memory.live_bytes;
    for (uint32_t i = 0; i < MILLION / 10; i++) (void)make(ms, (node){0});
    double each = (double)(w->memory.live_bytes - before) / (MILLION / 10);
    assert_true(each <= 192 + sizeof(node)); /* measured: 82 */
    ebb_region_close(w->host, ebb_machines_region(ms));
    world_settle(w);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

/* ---- dump -------------------------------------------------------------------------------------------------------- */

static char text[4096];
static void write_text(void *ctx, const char *s, size_t n) {
    (void)ctx;
    if (strlen(text) + n < sizeof text) strncat(text, s, n);
}

static void a_dump_shows_machines_and_explain_says_what_one_waits_for(void **st) {
    world *w = *st;
    ebb_machines *ms = open_machines(w);
    ebb_machine never = make(ms, (node){0}), a = make(ms, (node){.peer = never, .left = 1});
    assert_int_equal(ebb_machine_start(ms, a), EBB_OK);
    assert_int_equal(ebb_machine_send(ms, a, GO, NULL, 0), EBB_OK);
    world_settle(w);
    text[0] = 0;
    ebb_runtime_dump(w->rt, write_text, NULL);
    assert_non_null(strstr(text, "waits for messages of machines"));
    assert_non_null(strstr(text, "machines: 2, 1 messages queued, 1 requests pending\n"));
    assert_non_null(strstr(text, " Created in Only, 1 queued\n"));
    text[0] = 0;
    assert_int_equal(ebb_machine_explain(ms, a, write_text, NULL), EBB_OK);
    assert_non_null(strstr(text, " Running in Only, waits for 1 replies\n"));
    assert_non_null(strstr(text, "  waits for the reply to kind 2 by Node#"));
    ebb_region_cancel(w->host, ebb_machines_region(ms), EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(ebb_machines_free(ms), EBB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_program_gives_the_same_trace),
        IN_WORLD(a_close_lets_what_is_queued_finish_and_refuses_the_rest),
        IN_WORLD(a_cancel_tells_those_who_wait_and_stops_all),
        IN_WORLD(a_unit_of_the_closed_service_may_send_until_it_ends),
        IN_UNTRACED_WORLD(a_million_machines_drain_within_the_polls_of_a_forced_budget),
        IN_UNTRACED_WORLD(a_million_machines_subscribe_to_one_topic),
        IN_UNTRACED_WORLD(an_idle_machine_takes_its_record_and_its_fields),
        IN_WORLD(a_dump_shows_machines_and_explain_says_what_one_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
