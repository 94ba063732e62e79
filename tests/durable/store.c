/* Stores: opened, closed, shared, and what a worker asks of them from a start to the turn after an activity. */
#include <pthread.h>

#include "tests/support/store_world.h"

static ebb_provider_node join(world *w, ebb_store *s) {
    ebb_provider_join_call *c = new_call(s, EBB_PROVIDER_JOIN);
    const ebb_provider_runs runs[] = {{"pay", 1}};
    c->name = "w";
    c->lease = 30 * EBB_SECOND;
    c->runs = runs;
    c->runs_n = 1;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    const ebb_provider_node node = c->node;
    free_call(c);
    return node;
}

static void start(world *w, ebb_store *s, const char *id) {
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = id;
    c->name = "pay";
    c->message = ebb_blob_text("begin");
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    assert_false(c->existed);
    free_call(c);
}

static ebb_provider_fetch_turns_call *fetch_turns(world *w, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_turns_call *c = new_call(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = node;
    c->most = 10;
    c->messages = 100;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    return c;
}

static ebb_provider_fetch_work_call *fetch_work(world *w, ebb_store *s, ebb_provider_node node) {
    ebb_provider_fetch_work_call *c = new_call(s, EBB_PROVIDER_FETCH_WORK);
    const ebb_provider_queue queue = {"charge", 10};
    c->node = node;
    c->queues = &queue;
    c->queues_n = 1;
    c->most = 10;
    c->lease = 30 * EBB_SECOND;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    return c;
}

static void ack_turn(world *w, ebb_store *s, ebb_provider_node node, const ebb_provider_turn_item *item) {
    ebb_provider_ack_turn_call *c = new_call(s, EBB_PROVIDER_ACK_TURN);
    const ebb_provider_work work = {
        .activity = 2, .queue = "charge", .session = "", .name = "charge", .attempt = 1};
    const ebb_provider_message_key acked = item->messages[0].at;
    c->node = node;
    c->token = item->token;
    c->ack_id = ebb__token_new(ebb__store_host(s));
    c->key = item->key;
    c->execution = item->execution;
    c->turn = item->turn + 1;
    c->body = ebb_blob_text("turn 1");
    c->acked = &acked;
    c->acked_n = 1;
    c->work = &work;
    c->work_n = 1;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    free_call(c);
}

static void ack_work(world *w, ebb_store *s, ebb_provider_node node, const ebb_provider_work_item *item) {
    ebb_provider_ack_work_call *c = new_call(s, EBB_PROVIDER_ACK_WORK);
    const ebb_blob message = ebb_blob_text("charged");
    c->node = node;
    c->token = item->token;
    c->ack_id = ebb__token_new(ebb__store_host(s));
    c->key = item->key;
    c->execution = item->execution;
    c->activity = item->activity;
    c->message = &message;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    assert_false(c->dropped);
    free_call(c);
}

static void an_activity_leads_to_the_next_turn(void **state) {
    world *w = *state;
    ebb_store *s = open_store(w, "lab:");
    const ebb_provider_node node = join(w, s);
    start(w, s, "order-7");
    ebb_provider_fetch_turns_call *turns = fetch_turns(w, s, node);
    assert_int_equal(turns->items_n, 1);
    assert_string_equal(turns->items[0].id, "order-7");
    assert_int_equal(turns->items[0].messages_n, 1);
    ack_turn(w, s, node, &turns->items[0]);
    free_call(turns);
    ebb_provider_fetch_work_call *work = fetch_work(w, s, node);
    assert_int_equal(work->items_n, 1);
    assert_string_equal(work->items[0].name, "charge");
    ack_work(w, s, node, &work->items[0]);
    free_call(work);
    turns = fetch_turns(w, s, node);
    assert_int_equal(turns->items_n, 1);
    assert_int_equal(turns->items[0].turn, 1);
    assert_int_equal(turns->items[0].messages[0].at.kind, EBB_PROVIDER_MESSAGE_ACTIVITY);
    assert_int_equal(turns->items[0].messages[0].step, 2);
    assert_memory_equal(turns->items[0].messages[0].body.at, "charged", 7);
    free_call(turns);
    close_store(w, s);
}

static void the_region_closes_what_is_left_open(void **state) {
    world *w = *state;
    (void)open_store(w, "lab:a");
    (void)open_store(w, "lab:b");
}

static void stores_of_one_name_are_one(void **state) {
    world *w = *state;
    ebb_store *a = open_store(w, "lab:x"), *b = open_store(w, "lab:x"), *other = open_store(w, "lab:y");
    start(w, a, "order-7");
    ebb_provider_instance_call *c = new_call(b, EBB_PROVIDER_INSTANCE);
    c->id = "order-7";
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_OK);
    free_call(c);
    c = new_call(other, EBB_PROVIDER_INSTANCE);
    c->id = "order-7";
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_ERR_UNKNOWN_INSTANCE);
    free_call(c);
    close_store(w, a);
    close_store(w, b);
}

static ebb_status opens_as(world *w, const char *url) {
    ebb_future *f = ebb_store_open(w->host, &(ebb_store_opts){.url = url});
    store_settle(w);
    return ebb_await(w->host, f, NULL);
}

static void a_bad_url_is_named(void **state) {
    world *w = *state;
    assert_int_equal(opens_as(w, "mongo://u:secret@h/x"), EBB_ERR_INVALID);
    assert_string_equal(ebb_durable_error(), "no provider has the scheme of 'mongo://u:***@h/x'");
    assert_int_equal(opens_as(w, NULL), EBB_ERR_INVALID);
    assert_int_equal(opens_as(w, ""), EBB_ERR_INVALID);
    assert_int_equal(opens_as(w, "lab:"), EBB_OK); /* discarded, and so closed */
}

static void count_hint(void *arg, const ebb_provider_hint *h) {
    if (h->kind == EBB_PROVIDER_HINT_TURNS) ++*(int *)arg;
}

static void hints_come_to_every_store(void **state) {
    world *w = *state;
    ebb_store *a = open_store(w, "lab:"), *b = open_store(w, "lab:");
    int heard = 0;
    ebb__hint_listener l = {.hint = count_hint, .arg = &heard};
    ebb__store_listen(b, &l);
    start(w, a, "order-7");
    assert_int_equal(heard, 1);
    ebb__store_unlisten(b, &l);
    start(w, a, "order-8");
    assert_int_equal(heard, 1);
}

static ebb__store_fault fail_first(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)arg;
    (void)c;
    return n < 3 ? EBB__FAULT_LOST_REPLY : EBB__FAULT_NONE;
}

static void an_insistent_call_asks_until_it_is_answered(void **state) {
    world *w = *state;
    ebb_store *s = open_store(w, "lab:");
    const ebb__store_faults faults = {fail_first, NULL, NULL};
    ebb_value v;
    ebb__store_set_faults(s, &faults);
    ebb_provider_start_call *c = new_call(s, EBB_PROVIDER_START);
    c->id = "order-7";
    c->name = "pay";
    ebb_future *f = ebb__call_insist(w->host, &c->call, EBB_FOREVER, EBB_SITE);
    store_settle(w);
    assert_int_equal(ebb_future_status_of(f), EBB_PENDING);
    world_pass(w, 100 * EBB_MS);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    c = ebb__call_of(&v);
    assert_int_equal(c->call.status, EBB_OK);
    assert_int_equal(c->call.attempt, 4);
    assert_true(c->existed);
    ebb_value_discard(w->host, v);
}

static ebb__store_fault fail_all(void *arg, uint64_t n, const ebb_provider_call *c) {
    (void)arg;
    (void)n;
    (void)c;
    return EBB__FAULT_BEFORE;
}

static ebb_future *insist_on_read(world *w, ebb_store *s, uint64_t until) {
    ebb_provider_instance_call *c = new_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "order-7";
    return ebb__call_insist(w->host, &c->call, until, EBB_SITE);
}

static void an_insistent_call_gives_up_in_time(void **state) {
    world *w = *state;
    ebb_store *s = open_store(w, "lab:");
    const ebb__store_faults faults = {fail_all, NULL, NULL};
    ebb_value v;
    ebb__store_set_faults(s, &faults);
    ebb_future *f = insist_on_read(w, s, world_now(w) + EBB_SECOND);
    world_pass(w, 2 * EBB_SECOND);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    assert_int_equal(((ebb_provider_call *)ebb__call_of(&v))->status, EBB_ERR_UNAVAILABLE);
    assert_int_equal(((ebb_provider_call *)ebb__call_of(&v))->attempt, 7); /* 10 + 20 + ... + 320 ms */
    ebb_value_discard(w->host, v);
    f = insist_on_read(w, s, EBB_FOREVER);
    world_pass(w, 10 * EBB_MS);
    close_store(w, s); /* ends the pause */
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    ebb_value_discard(w->host, v);
}

static ebb_status opens_with(world *w, const ebb_store_opts *opts, ebb_value *v) {
    ebb_future *f = ebb_store_open(w->host, opts);
    store_settle(w);
    return ebb_await(w->host, f, v);
}

static void a_store_that_is_only_read_takes_no_writes(void **state) {
    world *w = *state;
    ebb_value v;
    const ebb_store_opts missing = {.url = "lab:", .no_create = true};
    const ebb_store_opts reads = {.url = "lab:", .read_only = true};
    assert_int_equal(opens_with(w, &missing, NULL), EBB_ERR_SCHEMA);
    ebb_store *s = open_store(w, "lab:");
    start(w, s, "order-7");
    assert_int_equal(opens_with(w, &reads, &v), EBB_OK);
    ebb_store *reader = ebb_store_of(&v);
    ebb_provider_send_call *c = new_call(reader, EBB_PROVIDER_SEND);
    c->id = "order-7";
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    c = ask_store(w, c);
    assert_int_equal(c->call.status, EBB_ERR_CLOSED);
    free_call(c);
    ebb_provider_instance_call *i = new_call(reader, EBB_PROVIDER_INSTANCE);
    i->id = "order-7";
    i = ask_store(w, i);
    assert_int_equal(i->call.status, EBB_OK);
    free_call(i);
    ebb_provider_stats stats;
    ebb__store_stats(s, &stats);
    assert_int_equal(stats.commits, 1);
    ebb__store_stats(reader, &stats);
    assert_int_equal(stats.commits, 0);
}

/* ---- closing ------------------------------------------------------------------------------------------------------ */

static uint64_t slowly(void *arg, const ebb_provider_call *c) {
    (void)arg;
    (void)c;
    return 50 * EBB_MS;
}

/* A store in memory whose calls take 50 ms. */
static ebb_store *open_slow(world *w, ebb__lab_world **lab) {
    assert_int_equal(ebb__lab_world_new(w->allocator, lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, *lab), EBB_OK);
    ebb__lab_world_set_delay(*lab, slowly, NULL);
    return open_store(w, "lab:");
}

static ebb_future *read_slowly(world *w, ebb_store *s) {
    ebb_provider_instance_call *c = new_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "order-7";
    return ebb__call_begin(w->host, &c->call, EBB_SITE);
}

static void the_queue_of_a_store_is_as_long_as_asked(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    ebb_value v;
    const ebb_store_opts opts = {.url = "lab:", .queued = 2};
    assert_int_equal(ebb__lab_world_new(w->allocator, &lab), EBB_OK);
    assert_int_equal(ebb__lab_world_use(w->rt, lab), EBB_OK);
    ebb__lab_world_set_delay(lab, slowly, NULL);
    assert_int_equal(opens_with(w, &opts, &v), EBB_OK);
    ebb_store *s = ebb_store_of(&v);
    ebb_future *a = read_slowly(w, s), *b = read_slowly(w, s);
    assert_int_equal(ebb_await(w->host, read_slowly(w, s), NULL), EBB_ERR_BUSY);
    world_pass(w, 60 * EBB_MS);
    store_settle(w);
    assert_int_equal(ebb_await(w->host, a, NULL), EBB_OK);
    assert_int_equal(ebb_await(w->host, b, NULL), EBB_OK);
    ebb__lab_world_free(lab);
}

static void a_close_waits_for_what_is_in_flight(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    ebb_store *s = open_slow(w, &lab);
    ebb_future *read = read_slowly(w, s), *close = ebb_store_close(w->host, s);
    assert_int_equal(ebb_await(w->host, read_slowly(w, s), NULL), EBB_ERR_CLOSED);
    ebb_future *again = ebb_store_close(w->host, s);
    assert_int_equal(ebb_future_status_of(again), EBB_ERR_CLOSED);
    ebb_future_drop(again);
    world_pass(w, 49 * EBB_MS);
    assert_int_equal(ebb_future_status_of(close), EBB_PENDING);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(ebb_await(w->host, read, NULL), EBB_OK);
    assert_int_equal(ebb_await(w->host, close, NULL), EBB_OK);
    ebb__lab_world_free(lab);
}

static void a_region_closes_after_what_is_in_flight(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    ebb_store *s = open_slow(w, &lab);
    (void)read_slowly(w, s);
    ebb_region_close(w->host, w->root);
    world_pass(w, 40 * EBB_MS);
    store_settle(w);
    assert_int_not_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    world_pass(w, 20 * EBB_MS);
    store_settle(w);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    ebb__lab_world_free(lab);
}

static void a_region_is_forced_with_a_call_in_flight(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    ebb_store *s = open_slow(w, &lab);
    (void)read_slowly(w, s);
    ebb_region_force(w->host, w->root);
    world_pass(w, 100 * EBB_MS);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    ebb__lab_world_free(lab);
}

/* Nobody receives the message that the future was settled before the runtime is freed. The end of the world counts what is
 * freed. */
static void an_answer_that_nobody_receives_is_freed_once(void **state) {
    world *w = *state;
    ebb__lab_world *lab;
    ebb_store *s = open_slow(w, &lab);
    (void)read_slowly(w, s);
    ebb_region_close(w->host, w->root);
    world_pass(w, 100 * EBB_MS);
    assert_int_not_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    ebb__lab_world_free(lab);
}

static void a_held_store_is_not_closed(void **state) {
    world *w = *state;
    ebb_store *s = open_store(w, "lab:");
    ebb__store_hold(s);
    assert_int_equal(ebb_await(w->host, ebb_store_close(w->host, s), NULL), EBB_ERR_BUSY);
    assert_string_equal(ebb_durable_error(), "1 workers are open on the store");
    ebb__store_unhold(s);
    close_store(w, s);
}

static void a_discarded_store_closes_when_nobody_holds_it(void **state) {
    world *w = *state;
    ebb_value v;
    ebb_future *f = ebb_store_open(w->host, &(ebb_store_opts){.url = "lab:"});
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, &v), EBB_OK);
    ebb_store *s = ebb_store_of(&v);
    ebb__store_hold(s);
    const int64_t live = w->memory.live;
    ebb_value_discard(w->host, v);
    assert_int_equal(w->memory.live, live);
    ebb__store_unhold(s);
    assert_true(w->memory.live < live);
}

static void many_stores_of_one_region_leave_nothing(void **state) {
    world *w = *state;
    close_store(w, open_store(w, "lab:"));
    const int64_t live = w->memory.live;
    for (int i = 0; i < 20; i++) close_store(w, open_store(w, "lab:"));
    assert_int_equal(w->memory.live, live);
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static ebb_provider_open_call *opening; /* that the provider has not answered */
static int closes;

static void hold_open(ebb_provider_open_call *c) {
    opening = c;
}
static void count_close(void *self, ebb_provider_close_call *c) {
    (void)self;
    closes++;
    ebb_provider_done(&c->call, EBB_OK, NULL);
}
static const ebb_provider late = {
    .size = sizeof late, .scheme = "late", .open = hold_open, .close = count_close};

static ebb_future *open_late(world *w, const ebb_provider *p) {
    opening = NULL;
    closes = 0;
    return ebb_store_open(w->host, &(ebb_store_opts){.url = "late:x", .provider = p});
}

static void an_open_fails_as_the_provider_says(void **state) {
    world *w = *state;
    ebb_future *f = open_late(w, &late);
    assert_string_equal(opening->opts->url, "late:x");
    ebb_provider_done(&opening->call, EBB_ERR_UNAVAILABLE, "the database is away");
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, NULL), EBB_ERR_UNAVAILABLE);
    assert_string_equal(ebb_durable_error(), "the database is away");
    assert_int_equal(closes, 0); /* there is nothing to close */
}

static void an_open_that_was_cancelled_is_closed(void **state) {
    world *w = *state;
    ebb_future *f = open_late(w, &late);
    assert_true(ebb_future_cancel(f, EBB_CANCEL_USER));
    store_settle(w);
    ebb_provider_done(&opening->call, EBB_OK, NULL);
    store_settle(w);
    assert_int_equal(closes, 1);
    ebb_future_drop(f);
}

static void an_open_that_outlives_its_region_is_closed(void **state) {
    world *w = *state;
    (void)open_late(w, &late);
    ebb_region_force(w->host, w->root);
    world_pass(w, EBB_SECOND);
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    ebb_provider_done(&opening->call, EBB_OK, NULL);
    assert_int_equal(closes, 1);
}

static void a_provider_of_another_size_is_refused(void **state) {
    world *w = *state;
    static const ebb_provider other = {.size = sizeof other - 8, .scheme = "late", .open = hold_open};
    assert_int_equal(ebb_await(w->host, open_late(w, &other), NULL), EBB_ERR_VERSION);
    assert_null(opening);
}

/* ---- hints ------------------------------------------------------------------------------------------------------------- */

typedef struct heard {
    uint64_t gone, lost, last;
    ebb_store *store;
    ebb__hint_listener listener;
} heard;

static void hear(void *arg, const ebb_provider_hint *h) {
    heard *to = arg;
    if (h->kind == EBB_PROVIDER_HINT_LOST) to->lost++;
    if (h->kind != EBB_PROVIDER_HINT_GONE) return;
    assert_int_equal(h->activity, to->last + 1); /* in order */
    assert_string_equal(h->queue, "mail@night");
    to->last = h->activity;
    to->gone++;
}

static void send_hints(ebb_store *s, uint64_t n) {
    const ebb_provider_host *host = ebb__store_host(s);
    for (uint64_t i = 1; i <= n; i++)
        host->hint(host->ctx, &(ebb_provider_hint){
                                  .kind = EBB_PROVIDER_HINT_GONE, .activity = i, .queue = "mail@night"});
}

static void hints_past_the_buffer_are_lost_and_said_to_be(void **state) {
    world *w = *state;
    heard *h = world_keep(w, sizeof *h);
    ebb_store *s = open_store(w, "lab:");
    h->listener = (ebb__hint_listener){.hint = hear, .arg = h};
    ebb__store_listen(s, &h->listener);
    send_hints(s, 10000);
    store_settle(w);
    assert_int_equal(h->gone, 10000);
    assert_int_equal(h->lost, 0);
    h->last = 0;
    send_hints(s, EBB__HINT_BYTES / 32);
    store_settle(w);
    assert_int_equal(h->lost, 1);
    assert_true(h->gone > 20000); /* what had a place has come */
    w->memory.fail_at = w->memory.calls + 1;
    send_hints(s, 1);
    w->memory.fail_at = 0;
    store_settle(w);
    assert_int_equal(h->lost, 2);
}

static void *send_there(void *arg) {
    send_hints(arg, 100);
    return NULL;
}

static void hints_come_from_other_threads(void **state) {
    world *w = *state;
    heard *h = world_keep(w, sizeof *h);
    pthread_t t;
    ebb_store *s = open_store(w, "lab:");
    h->listener = (ebb__hint_listener){.hint = hear, .arg = h};
    ebb__store_listen(s, &h->listener);
    assert_int_equal(pthread_create(&t, NULL, send_there, s), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(h->gone, 0); /* not on that thread */
    store_settle(w);
    assert_int_equal(h->gone, 100);
}

static void leave_and_hear(void *arg, const ebb_provider_hint *hint) {
    heard *h = arg;
    (void)hint;
    h->gone++;
    ebb__store_unlisten(h->store, &h->listener);
}

static void a_listener_may_leave_while_it_hears(void **state) {
    world *w = *state;
    heard *h = world_keep(w, 3 * sizeof *h);
    ebb_store *s = open_store(w, "lab:");
    for (int i = 0; i < 3; i++) {
        h[i].store = s;
        h[i].listener = (ebb__hint_listener){.hint = leave_and_hear, .arg = &h[i]};
        ebb__store_listen(s, &h[i].listener);
    }
    send_hints(s, 2);
    store_settle(w);
    for (int i = 0; i < 3; i++) assert_int_equal(h[i].gone, 1);
}

static void a_hint_on_its_way_does_not_need_the_store(void **state) {
    world *w = *state;
    ebb_store *s = open_store(w, "lab:");
    send_hints(s, 3);
    ebb_future *f = ebb_store_close(w->host, s); /* before the hints were received */
    store_settle(w);
    assert_int_equal(ebb_await(w->host, f, NULL), EBB_OK);
}

static void a_store_without_memory_leaves_nothing(void **state) {
    world *w = *state;
    ebb_status st = EBB_ERR_NOMEM;
    for (uint64_t n = 1; st != EBB_OK; n++) {
        ebb_value v = ebb_value_none();
        assert_true(n < 200);
        w->memory.fail_at = w->memory.calls + n;
        ebb_future *f = ebb_store_open(w->host, &(ebb_store_opts){.url = "lab:", .listen_url = "x"});
        store_settle(w);
        st = ebb_await(w->host, f, &v);
        w->memory.fail_at = 0;
        assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
        if (st == EBB_OK) ebb_value_discard(w->host, v);
        store_settle(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(an_activity_leads_to_the_next_turn),
        IN_WORLD(the_region_closes_what_is_left_open),
        IN_WORLD(stores_of_one_name_are_one),
        IN_WORLD(a_bad_url_is_named),
        IN_WORLD(hints_come_to_every_store),
        IN_WORLD(an_insistent_call_asks_until_it_is_answered),
        IN_WORLD(an_insistent_call_gives_up_in_time),
        IN_WORLD(a_store_that_is_only_read_takes_no_writes),
        IN_WORLD(the_queue_of_a_store_is_as_long_as_asked),
        IN_WORLD(a_close_waits_for_what_is_in_flight),
        IN_WORLD(a_region_closes_after_what_is_in_flight),
        IN_WORLD(a_region_is_forced_with_a_call_in_flight),
        IN_WORLD(an_answer_that_nobody_receives_is_freed_once),
        IN_WORLD(a_held_store_is_not_closed),
        IN_WORLD(a_discarded_store_closes_when_nobody_holds_it),
        IN_WORLD(many_stores_of_one_region_leave_nothing),
        IN_WORLD(an_open_fails_as_the_provider_says),
        IN_WORLD(an_open_that_was_cancelled_is_closed),
        IN_WORLD(an_open_that_outlives_its_region_is_closed),
        IN_WORLD(a_provider_of_another_size_is_refused),
        IN_WORLD(hints_past_the_buffer_are_lost_and_said_to_be),
        IN_WORLD(hints_come_from_other_threads),
        IN_WORLD(a_listener_may_leave_while_it_hears),
        IN_WORLD(a_hint_on_its_way_does_not_need_the_store),
        IN_WORLD(a_store_without_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
