/* The lab provider beyond its contract: its rows agree after every commit, a call without memory changes nothing, hosts share
 * a store and survive each other, and a crash or a lost answer at the n-th call loses nothing and does nothing twice. */
#include <stdlib.h>

#include "durable/lab_rows.h"
#include "tests/support/suite_run.h"

/* ---- rows agree ------------------------------------------------------------------------------------------------- */

typedef struct watch {
    ebb__lab_world *world;
    uint64_t checked, large;
    char text[200];
} watch;

/* Looking at a large store takes too long for every commit. */
static void look(void *arg, const ebb_provider_call *c) {
    watch *k = arg;
    const ebb__lab_data *d = ebb__lab_world_stores(k->world);
    (void)c;
    if (d->by_work_n + d->due.n + d->instances.n > 300) k->large++;
    else if (k->text[0] == 0) {
        k->checked++;
        (void)ebb__lab_world_check(k->world, k->text, sizeof k->text);
    }
}

static void rows_agree_after_every_commit_of_the_suite(void **state) {
    world *w = *state;
    watch k = {0};
    suite_run *r = world_keep(w, sizeof *r);
    assert_int_equal(ebb__lab_world_new(w->allocator, &k.world), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, k.world), EBB_OK);
    ebb__lab_world_set_committed(k.world, look, &k);
    r->url = "lab:";
    run_suite(w, r);
    assert_int_equal(r->failed, 0);
    assert_string_equal(k.text, "");
    assert_true(k.checked > 1000);
    ebb__lab_world_free(k.world);
}

static void a_row_that_is_out_of_order_is_noticed(void **state) {
    world *w = *state;
    char text[200];
    ebb__lab_world *lab;
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, lab), EBB_OK);
    ebb_store *s = open_store(w, "lab:");
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = "order-7";
    c->name = "pay";
    free_call(ask_store(w, c));
    assert_true(ebb__lab_world_check(lab, text, sizeof text));
    ebb__lab_instance *i = ebb__lab_find(ebb__lab_world_stores(lab), "order-7");
    i->turn = 3;
    assert_false(ebb__lab_world_check(lab, text, sizeof text));
    assert_string_equal(text, "store '', instance 'order-7': the last turn is another");
    i->turn = 0;
    close_store(w, s);
    ebb__lab_world_free(lab);
}

/* ---- without memory ------------------------------------------------------------------------------------------------ */

typedef struct dump {
    char at[20000];
    size_t n;
} dump;

static void append(void *ctx, const char *text, size_t n) {
    dump *d = ctx;
    assert_true(d->n + n < sizeof d->at);
    memcpy(d->at + d->n, text, n);
    d->at[d->n += n] = 0;
}

static void take_dump(const ebb__lab_world *lab, dump *d) {
    d->n = 0;
    ebb__lab_world_dump(lab, append, d);
}

typedef struct scene {
    world *w;
    ebb_store *s;
    ebb__lab_world *lab;
    ebb_provider_node node;
    uint64_t key;
    ebb_provider_token turn_token, work_token;
    ebb_provider_message_key message;
    dump before, after;
} scene;

static void *join_call(scene *s) {
    static const ebb_provider_runs runs[] = {{"pay", 1}};
    ebb_provider_join_call *c = new_call(s->s, EBB_PROVIDER_JOIN);
    c->lease = 30 * EBB_SECOND;
    c->runs = runs;
    c->runs_n = 1;
    return c;
}
static void *start_call(scene *s) {
    ebb_provider_start_call *c = new_call(s->s, EBB_PROVIDER_START);
    c->id = "order-7";
    c->name = "pay";
    c->version = 1;
    c->input = ebb_blob_text("in");
    return c;
}
static void *fetch_call(scene *s) {
    ebb_provider_fetch_turns_call *c = new_call(s->s, EBB_PROVIDER_FETCH_TURNS);
    c->node = s->node;
    c->most = 10;
    return c;
}
static void *ack_call(scene *s) {
    static const ebb_provider_work work[] = {
        {.activity = 1, .queue = "charge", .session = "gpu", .name = "charge", .input = {"x", 1}},
        {.activity = 2, .queue = "mail", .session = "", .name = "mail"}};
    static const ebb_provider_timer timer = {3, UINT64_C(1) << 62};
    static const ebb_provider_value value = {"key", {"value", 5}};
    static const ebb_provider_outgoing out[] = {
        {.id = "child", .kind = EBB_PROVIDER_MESSAGE_START, .step = 4, .name = "pay", .version = 1},
        {.id = "order-7", .kind = EBB_PROVIDER_MESSAGE_START, .step = 5, .name = "pay"},
        {.id = "order-7", .kind = EBB_PROVIDER_MESSAGE_SIGNAL, .body = {"self", 4}}};
    static const ebb_blob custom = {"half", 4};
    ebb_provider_ack_turn_call *c = new_call(s->s, EBB_PROVIDER_ACK_TURN);
    c->node = s->node;
    c->token = s->turn_token;
    c->ack_id = (ebb_provider_token){1, 1};
    c->key = s->key;
    c->execution = c->turn = 1;
    c->body = ebb_blob_text("turn");
    c->acked = &s->message;
    c->acked_n = 1;
    c->work = work;
    c->work_n = 2;
    c->timers = &timer;
    c->timers_n = 1;
    c->values = &value;
    c->values_n = 1;
    c->custom = &custom;
    c->outgoing = out;
    c->outgoing_n = 3;
    return c;
}
static void *fetch_work_call(scene *s) {
    static const ebb_provider_queue queue = {"charge", 10};
    ebb_provider_fetch_work_call *c = new_call(s->s, EBB_PROVIDER_FETCH_WORK);
    c->node = s->node;
    c->queues = &queue;
    c->queues_n = 1;
    c->most = 10;
    c->lease = 30 * EBB_SECOND;
    return c;
}
static void *ack_work_call(scene *s) {
    static const ebb_blob message = {"charged", 7};
    ebb_provider_ack_work_call *c = new_call(s->s, EBB_PROVIDER_ACK_WORK);
    c->token = s->work_token;
    c->ack_id = (ebb_provider_token){2, 2};
    c->key = s->key;
    c->execution = c->activity = 1;
    c->message = &message;
    return c;
}
static void *send_call(scene *s) {
    static const ebb_provider_start_call other = {.id = "order-8", .name = "pay", .version = 1};
    ebb_provider_send_call *c = new_call(s->s, EBB_PROVIDER_SEND);
    c->id = "order-8";
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    c->dedup = "one";
    c->body = ebb_blob_text("signal");
    c->start = &other;
    return c;
}
static void *mark_call(scene *s) {
    ebb_provider_mark_call *c = new_call(s->s, EBB_PROVIDER_MARK);
    c->key = s->key;
    c->execution = c->turn = 1;
    c->state = EBB_INSTANCE_SUSPENDED;
    c->text = "stop";
    return c;
}
static void *renew_call(scene *s) {
    ebb_provider_renew_call *c = new_call(s->s, EBB_PROVIDER_RENEW);
    c->node = s->node;
    c->lease = 30 * EBB_SECOND;
    c->tokens = &s->work_token;
    c->tokens_n = 1;
    return c;
}
static void *list_call(scene *s) {
    static const ebb_instance_filter f = {.size = sizeof f, .parent = "order-7", .tree = true, .most = 10};
    ebb_provider_list_call *c = new_call(s->s, EBB_PROVIDER_LIST);
    c->filter = &f;
    return c;
}
static void *history_call(scene *s) {
    ebb_provider_history_call *c = new_call(s->s, EBB_PROVIDER_HISTORY);
    c->id = "order-7";
    return c;
}
static void *value_call(scene *s) {
    ebb_provider_value_call *c = new_call(s->s, EBB_PROVIDER_VALUE);
    c->id = "order-7";
    c->key = "key";
    return c;
}
static void *reset_call(scene *s) {
    static const ebb_provider_work work = {.activity = 1, .queue = "charge", .session = "", .name = "charge"};
    static const ebb_provider_message message = {.at.kind = EBB_PROVIDER_MESSAGE_SIGNAL, .body = {"x", 1}};
    static const ebb_provider_timer timer = {9, UINT64_C(1) << 62};
    static const ebb_provider_value value = {"new", {"value", 5}};
    ebb_provider_reset_call *c = new_call(s->s, EBB_PROVIDER_RESET);
    c->key = s->key;
    c->execution = c->turn = c->keep = 1;
    c->work = &work;
    c->messages = &message;
    c->timers = &timer;
    c->values = &value;
    c->work_n = c->messages_n = c->timers_n = c->values_n = 1;
    return c;
}

/* Fails each allocation of the call in turn, until it has all it needs. Returns the call. */
static void *fail_each(scene *s, void *(*make)(scene *s)) {
    for (uint64_t n = 1;; n++) {
        char text[200];
        assert_true(n < 200);
        ebb_value v = ebb_value_none();
        ebb_provider_call *c = make(s);
        const bool starts =
            c->op == EBB_PROVIDER_START; /* may be committed without an answer; see its repetition */
        take_dump(s->lab, &s->before);
        s->w->memory.fail_at = s->w->memory.calls + n;
        ebb_future *f = ebb__call_begin(s->w->host, c, EBB_SITE);
        s->w->memory.fail_at = 0;
        store_settle(s->w);
        const ebb_status st = ebb_await(s->w->host, f, &v);
        c = st == EBB_OK ? ebb__call_of(&v) : NULL;
        assert_true(ebb__lab_world_check(s->lab, text, sizeof text));
        if (c != NULL && c->status == EBB_OK) return c;
        assert_int_equal(c != NULL ? c->status : st, EBB_ERR_NOMEM);
        take_dump(s->lab, &s->after);
        if (!starts) assert_string_equal(s->after.at, s->before.at);
        ebb_value_discard(s->w->host, v);
    }
}

static void a_call_without_memory_changes_nothing(void **state) {
    scene *s = world_keep(*state, sizeof *s);
    s->w = *state;
    assert_int_equal(ebb__lab_world_new(s->w->allocator, &s->lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(s->w->rt, s->lab), EBB_OK);
    s->s = open_store(s->w, "lab:");
    ebb_provider_join_call *join = fail_each(s, join_call);
    s->node = join->node;
    free_call(join);
    ebb_provider_start_call *start = fail_each(s, start_call);
    s->key = start->row.key;
    free_call(start);
    ebb_provider_fetch_turns_call *turns = fail_each(s, fetch_call);
    assert_int_equal(turns->items_n, 1);
    assert_int_equal(turns->items[0].attempts, 1); /* the failed ones have charged nothing */
    s->turn_token = turns->items[0].token;
    s->message = turns->items[0].messages[0].at;
    free_call(turns);
    free_call(fail_each(s, ack_call));
    ebb_provider_fetch_work_call *work = fail_each(s, fetch_work_call);
    assert_int_equal(work->items_n, 1);
    s->work_token = work->items[0].token;
    free_call(work);
    void *(*const rest[])(scene *) = {renew_call,   ack_work_call, send_call, list_call,
                                      history_call, value_call,    mark_call, reset_call};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) free_call(fail_each(s, rest[i]));
    close_store(s->w, s->s);
    ebb__lab_world_free(s->lab);
}

/* ---- delay ------------------------------------------------------------------------------------------------------------ */

static uint64_t delay(void *arg, const ebb_provider_call *c) {
    (void)c;
    return *(uint64_t *)arg;
}

static void calls_take_their_time(void **state) {
    world *w = *state;
    uint64_t span = 50 * EBB_MS;
    ebb__lab_world *lab;
    ebb_value v;
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, lab), EBB_OK);
    ebb_store *s = open_store(w, "lab:");
    ebb__lab_world_set_delay(lab, delay, &span);
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = "order-7";
    c->name = "pay";
    ebb_future *f = ebb__call_begin(w->host, &c->call, EBB_SITE);
    world_pass(w, 49 * EBB_MS);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    assert_int_equal(ebb__lab_world_stores(lab)->instances.n, 0);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    ebb_value_discard(w->host, v);
    assert_int_equal(ebb__lab_world_stores(lab)->instances.n, 1);
    close_store(w, s);
    ebb__lab_world_free(lab);
}

/* ---- hosts that crash ----------------------------------------------------------------------------------------------------- */

/* A worker of one orchestration: its first turn calls an activity, its second ends it. Each host has a runtime. */
typedef struct host {
    world *w;
    ebb_store *s;
    ebb_provider_node node;
    bool crashed;
} host;

typedef struct drama {
    ebb__lab_world *lab;
    ebb__store_fault fault;
    uint64_t fault_at;
    bool hit;
    host host[2];
} drama;

static ebb__store_fault fault_at(void *arg, uint64_t n, const ebb_provider_call *c) {
    drama *d = arg;
    (void)c;
    if (n != d->fault_at) return EBB__FAULT_NONE;
    d->hit = true;
    return d->fault;
}

static void crash(void *arg) {
    ((drama *)arg)->host[0].crashed = true;
}

/* NULL: the host has crashed. */
static void *ask_until_answered(host *h, void *call) {
    ebb_value v;
    ebb_future *f = ebb__call_insist(h->w->host, call, EBB_FOREVER, EBB_SITE);
    for (int i = 0; i < 100; i++) {
        store_settle(h->w);
        if (ebb_future_status_of(f) != EBB_PENDING) break;
        world_pass(h->w, 10 * EBB_MS);
    }
    if (ebb_future_status_of(f) == EBB_PENDING) {
        assert_true(h->crashed);
        return NULL;
    }
    assert_int_equal(ebb_await(h->w->host, f, &v), EBB_OK);
    return ebb__call_of(&v);
}

static bool is_ok(const ebb_provider_call *c) {
    return c != NULL && c->status == EBB_OK;
}

static bool join_host(host *h) {
    const ebb_provider_runs runs[] = {{"pay", 1}};
    ebb_provider_join_call *c = new_call(h->s, EBB_PROVIDER_JOIN);
    c->lease = 30 * EBB_SECOND;
    c->runs = runs;
    c->runs_n = 1;
    c = ask_until_answered(h, c);
    const bool ok = c != NULL && is_ok(&c->call);
    if (ok) h->node = c->node;
    free_call(c);
    return ok;
}

static void start_instance(host *h) {
    ebb_provider_start_call *c = new_call(h->s, EBB_PROVIDER_START);
    c->id = "order-7";
    c->name = "pay";
    c->version = 1;
    free_call(ask_until_answered(h, c));
}

static bool has_kind(const ebb_provider_turn_item *item, ebb_provider_message_kind kind) {
    for (size_t i = 0; i < item->messages_n; i++)
        if (item->messages[i].at.kind == kind) return true;
    return false;
}

static void run_turn(host *h, const ebb_provider_turn_item *item) {
    ebb_provider_message_key acked[8];
    const ebb_provider_work work = {.activity = 2, .queue = "charge", .session = "", .name = "charge"};
    ebb_provider_ack_turn_call *c = new_call(h->s, EBB_PROVIDER_ACK_TURN);
    assert_true(item->messages_n <= 8);
    for (size_t i = 0; i < item->messages_n; i++) acked[i] = item->messages[i].at;
    c->node = h->node;
    c->token = item->token;
    c->ack_id = ebb__token_new(ebb__store_host(h->s));
    c->key = item->key;
    c->execution = item->execution;
    c->turn = item->turn + 1;
    c->acked = acked;
    c->acked_n = item->messages_n;
    if (has_kind(item, EBB_PROVIDER_MESSAGE_START)) {
        c->work = &work;
        c->work_n = 1;
    }
    if (has_kind(item, EBB_PROVIDER_MESSAGE_ACTIVITY)) c->ends = EBB_INSTANCE_COMPLETED;
    free_call(ask_until_answered(h, c));
}

static void run_turns(host *h) {
    ebb_provider_fetch_turns_call *c = new_call(h->s, EBB_PROVIDER_FETCH_TURNS);
    c->node = h->node;
    c->most = 4;
    c->suspects = true;
    c = ask_until_answered(h, c);
    for (size_t i = 0; c != NULL && is_ok(&c->call) && i < c->items_n && !h->crashed; i++)
        run_turn(h, &c->items[i]);
    free_call(c);
}

static void run_work(host *h) {
    const ebb_provider_queue queue = {"charge", 10};
    const ebb_blob message = ebb_blob_text("charged");
    ebb_provider_fetch_work_call *c = new_call(h->s, EBB_PROVIDER_FETCH_WORK);
    c->node = h->node;
    c->queues = &queue;
    c->queues_n = 1;
    c->most = 1;
    c->lease = 30 * EBB_SECOND;
    c->suspects = true;
    c = ask_until_answered(h, c);
    if (c != NULL && is_ok(&c->call) && c->items_n == 1) {
        ebb_provider_ack_work_call *a = new_call(h->s, EBB_PROVIDER_ACK_WORK);
        a->node = h->node;
        a->token = c->items[0].token;
        a->ack_id = ebb__token_new(ebb__store_host(h->s));
        a->key = c->items[0].key;
        a->execution = c->items[0].execution;
        a->activity = c->items[0].activity;
        a->message = &message;
        free_call(ask_until_answered(h, a));
    }
    free_call(c);
}

static ebb_instance_state state_now(const drama *d) {
    const ebb__lab_instance *i = ebb__lab_find(ebb__lab_world_stores(d->lab), "order-7");
    return i != NULL ? i->state : 0;
}

/* Until the instance has ended or the host has crashed. What a lost answer has claimed is free after its lease. */
static void perform(drama *d, host *h) {
    if (!join_host(h)) return;
    for (int i = 0; i < 20 && !h->crashed && state_now(d) != EBB_INSTANCE_COMPLETED; i++) {
        start_instance(h);
        if (!h->crashed) run_turns(h);
        if (!h->crashed) run_work(h);
        if (i % 4 == 3) {
            ebb__lab_world_advance(d->lab, 31 * EBB_SECOND);
            if (!h->crashed && !join_host(h)) return;
        }
    }
}

static void host_begin(drama *d, host *h) {
    h->w = world_new(NULL, false);
    h->crashed = false;
    assert_int_equal(ebb__lab_world_use(h->w->rt, d->lab), EBB_OK);
    h->s = open_store(h->w, "lab:");
}

/* A host that has crashed is forced: nothing of it runs any more. */
static void host_end(host *h) {
    if (h->crashed) ebb_region_force(h->w->host, h->w->root);
    world_end(h->w);
}

static void is_whole(drama *d) {
    char text[200];
    ebb__lab_instance *i = ebb__lab_find(ebb__lab_world_stores(d->lab), "order-7");
    assert_non_null(i);
    assert_int_equal(i->state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(i->turns.n, 2);
    assert_int_equal(i->work.n, 0);
    assert_int_equal(i->messages.n, 0);
    assert_int_equal(i->timers.n, 0);
    assert_int_equal(ebb__lab_world_stores(d->lab)->instances.n, 1);
    if (!ebb__lab_world_check(d->lab, text, sizeof text)) fail_msg("%s", text);
}

static void *libc_memory(void *ctx, void *p, size_t old, size_t n) {
    (void)ctx;
    (void)old;
    if (n != 0) return realloc(p, n);
    free(p);
    return NULL;
}

/* Returns whether the n-th call came. */
static bool play(ebb__store_fault fault, uint64_t n) {
    drama d = {.fault = fault, .fault_at = n};
    const ebb__store_faults faults = {fault_at, crash, &d};
    assert_int_equal(ebb__lab_world_new((ebb_allocator){libc_memory, NULL}, &d.lab), EBB_OK);
    host_begin(&d, &d.host[0]);
    ebb__store_set_faults(d.host[0].s, &faults);
    perform(&d, &d.host[0]);
    host_begin(&d, &d.host[1]);
    if (d.host[0].crashed) ebb__lab_world_advance(d.lab, 31 * EBB_SECOND);
    perform(&d, &d.host[1]);
    is_whole(&d);
    host_end(&d.host[0]);
    host_end(&d.host[1]);
    ebb__lab_world_free(d.lab);
    return d.hit;
}

static void at_every_call(ebb__store_fault fault) {
    uint64_t n = 0;
    while (play(fault, n)) n++;
    assert_true(n >= 6); /* join, start, fetch, ack, fetch, ack, ... */
}

static void a_failed_call_loses_nothing(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_BEFORE);
}
static void a_lost_answer_does_nothing_twice(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_LOST_REPLY);
}
static void a_crash_before_a_call_loses_nothing(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_CRASH_BEFORE);
}
static void a_crash_after_a_call_does_nothing_twice(void **state) {
    (void)state;
    at_every_call(EBB__FAULT_CRASH_AFTER);
}

static void two_runtimes_share_a_store_by_its_name(void **state) {
    drama d = {0};
    (void)state;
    assert_int_equal(ebb__lab_world_new((ebb_allocator){libc_memory, NULL}, &d.lab), EBB_OK);
    host_begin(&d, &d.host[0]);
    host_begin(&d, &d.host[1]);
    assert_true(join_host(&d.host[0]) && join_host(&d.host[1]));
    assert_true(d.host[0].node.id != d.host[1].node.id);
    start_instance(&d.host[0]);
    run_turns(&d.host[1]); /* each does what the other has left */
    run_work(&d.host[0]);
    run_turns(&d.host[1]);
    is_whole(&d);
    close_store(d.host[0].w, d.host[0].s);
    host_end(&d.host[0]);
    is_whole(&d); /* the rows outlive a host */
    host_end(&d.host[1]);
    ebb__lab_world_free(d.lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(rows_agree_after_every_commit_of_the_suite),
        IN_WORLD(a_row_that_is_out_of_order_is_noticed),
        IN_UNTRACED_WORLD(a_call_without_memory_changes_nothing),
        IN_WORLD(calls_take_their_time),
        cmocka_unit_test(two_runtimes_share_a_store_by_its_name),
        cmocka_unit_test(a_failed_call_loses_nothing),
        cmocka_unit_test(a_lost_answer_does_nothing_twice),
        cmocka_unit_test(a_crash_before_a_call_loses_nothing),
        cmocka_unit_test(a_crash_after_a_call_does_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
