/* The SQLite provider: turns, work, timers, clients and operators, one call at a time. */
#include "tests/support/sqlite_scene.h"

static scene *opened(world *w) {
    scene *s = scene_new(w);
    const ebb_status st = scene_open(s, "a.db", EBB_DURABILITY_NORMAL);
    if (st != EBB_OK) fail_msg("open: %s %s", ebb_status_name(st), s->text);
    assert_int_equal(scene_join(s), EBB_OK);
    return s;
}

static ebb_status ack(scene *s, ebb_provider_ack_turn_call *c) {
    return scene_status(s, c);
}

/* The first turn of an instance, with one activity. */
static void first_turn(scene *s, const char *id) {
    static const ebb_provider_work work = {.activity = 2, .queue = "charge", .session = "", .name = "charge"};
    assert_int_equal(scene_start(s, id), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 1);
    assert_string_equal(f->items[0].id, id);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "turn 1");
    c->work = &work;
    c->work_n = 1;
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__call_free(&f->call);
}

static void an_activity_leads_to_the_next_turn(void **state) {
    scene *s = opened(*state);
    const ebb_blob message = ebb_blob_text("charged");
    first_turn(s, "order-7");
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 10);
    assert_int_equal(w->items_n, 1);
    assert_string_equal(w->items[0].name, "charge");
    assert_string_equal(w->items[0].id, "order-7");
    assert_int_equal(w->items[0].attempts, 1);
    assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], &message)), EBB_OK);
    assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], &message)), EBB_ERR_GONE);
    ebb__call_free(&w->call);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 1);
    assert_int_equal(f->items[0].turn, 1);
    assert_int_equal(f->items[0].messages_n, 1);
    assert_int_equal(f->items[0].messages[0].at.kind, EBB_PROVIDER_MESSAGE_ACTIVITY);
    assert_int_equal(f->items[0].messages[0].step, 2);
    assert_memory_equal(f->items[0].messages[0].body.at, "charged", 7);
    ebb__call_free(&f->call);
    scene_end(s);
}

static void a_turn_is_committed_once(void **state) {
    scene *s = opened(*state);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one"),
                               *same = scene_ack(s, &f->items[0], "one");
    same->ack_id = c->ack_id;
    ebb_provider_ack_turn_call *other = scene_ack(s, &f->items[0], "two");
    assert_int_equal(ack(s, c), EBB_OK);
    assert_int_equal(ack(s, same), EBB_OK);
    assert_int_equal(ack(s, other), EBB_ERR_FENCED);
    assert_non_null(strstr(s->text, "turn 1 of execution 1"));
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM hist"), 1);
    ebb__call_free(&f->call);
    scene_end(s);
}

static void a_member_that_fails_is_undone_alone(void **state) {
    static const ebb_provider_work_done missing = {1, 99, {1, 1}};
    scene *s = opened(*state);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    assert_int_equal(scene_start(s, "b"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 2);
    ebb_provider_ack_turn_call *bad = scene_ack(s, &f->items[0], "bad");
    bad->done = &missing;
    bad->done_n = 1;
    ebb_future *first = scene_begin(s, bad), *second = scene_begin(s, scene_ack(s, &f->items[1], "good"));
    bad = scene_end_call(s, first);
    assert_int_equal(bad->call.status, EBB_ERR_GONE);
    assert_int_equal(bad->gone_at, 0);
    ebb__call_free(&bad->call);
    ebb_provider_call *good = scene_end_call(s, second);
    assert_int_equal(good->status, EBB_OK);
    ebb__call_free(good);
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM hist"), 1);
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM inbox"), 1);
    ebb__call_free(&f->call);
    scene_end(s);
}

/* In one batch: the turn comes after what makes it void, and must see it. */
static void a_turn_behind_a_reset_or_a_removal_is_fenced(void **state) {
    scene *s = opened(*state);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(scene_start(s, i == 0 ? "a" : "b"), EBB_OK);
        ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
        assert_int_equal(f->items_n, 1);
        const uint64_t key = f->items[0].key;
        ebb_provider_reset_call *reset = scene_call(s, EBB_PROVIDER_RESET);
        ebb_provider_remove_call *removal = scene_call(s, EBB_PROVIDER_REMOVE);
        reset->key = key;
        reset->execution = 1;
        removal->keys = &key;
        removal->keys_n = 1;
        removal->force = true;
        ebb_future *first = scene_begin(s, i == 0 ? (void *)reset : (void *)removal);
        ebb_future *second = scene_begin(s, scene_ack(s, &f->items[0], "late"));
        ebb__call_free(i == 0 ? &removal->call : &reset->call);
        ebb_provider_call *c = scene_end_call(s, first);
        assert_int_equal(c->status, EBB_OK);
        ebb__call_free(c);
        c = scene_end_call(s, second);
        assert_int_equal(c->status, EBB_ERR_FENCED);
        ebb__call_free(c);
        ebb__call_free(&f->call);
    }
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM hist"), 0);
    scene_end(s);
}

static void a_timer_that_is_due_is_a_message(void **state) {
    scene *s = opened(*state);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    const ebb_provider_timer timer = {3, f->now + 60 * EBB_SECOND};
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one");
    c->timers = &timer;
    c->timers_n = 1;
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__call_free(&f->call);
    f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 0);
    assert_in_range(f->again, 1, 60 * EBB_SECOND);
    ebb__call_free(&f->call);
    atomic_fetch_add(&s->boot, 20 * EBB_SECOND);
    ebb_provider_renew_call *r = scene_call(s, EBB_PROVIDER_RENEW);
    r->node = s->node;
    r->lease = 60 * EBB_SECOND;
    assert_int_equal(scene_status(s, r), EBB_OK);
    atomic_fetch_add(&s->boot, 41 * EBB_SECOND);
    f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 1);
    assert_int_equal(f->items[0].messages[0].at.kind, EBB_PROVIDER_MESSAGE_TIMER);
    assert_int_equal(f->items[0].messages[0].step, 3);
    assert_int_equal(ack(s, scene_ack(s, &f->items[0], "two")), EBB_OK);
    ebb__call_free(&f->call);
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM timer"), 0);
    scene_end(s);
}

static void the_wall_clock_moves_nothing(void **state) {
    scene *s = opened(*state);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    const uint64_t before = f->now;
    const ebb_provider_timer timer = {3, before + 1800 * EBB_SECOND};
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one");
    c->timers = &timer;
    c->timers_n = 1;
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__call_free(&f->call);
    for (int i = 0; i < 2; i++) { /* an hour ahead, then two back */
        atomic_fetch_add(&s->wall, i == 0 ? 3600 * EBB_SECOND : 0 - 7200 * EBB_SECOND);
        f = scene_fetch(s, 10);
        assert_int_equal(f->items_n, 0);
        assert_in_range(f->now, before, before + 600 * EBB_SECOND);
        ebb__call_free(&f->call);
    }
    scene_close(s); /* the wall is an hour behind: the stored maximum counts */
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    f = scene_fetch(s, 10);
    assert_true(f->now >= before);
    ebb__call_free(&f->call);
    scene_end(s);
}

static void a_cancel_set_goes_with_its_turn(void **state) {
    enum { MANY = 1000 };
    scene *s = opened(*state);
    ebb_provider_work *work = world_keep(s->w, MANY * sizeof *work);
    for (uint64_t i = 0; i < MANY; i++)
        work[i] = (ebb_provider_work){.activity = i + 2, .queue = "charge", .session = "", .name = "charge"};
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one");
    c->work = work;
    c->work_n = MANY;
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__call_free(&f->call);
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 5);
    assert_int_equal(w->items_n, 5);
    assert_int_equal(scene_signal(s, "a", "stop", NULL), EBB_OK);
    f = scene_fetch(s, 10);
    c = scene_ack(s, &f->items[0], "two");
    c->all_work = true;
    c->cause = EBB_CANCEL_RACE_LOST;
    assert_int_equal(ack(s, c), EBB_OK);
    assert_int_equal(atomic_load(&s->hints[EBB_PROVIDER_HINT_GONE]), MANY);
    assert_int_equal(atomic_load(&s->gone_cause), EBB_CANCEL_RACE_LOST);
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM work"), 0);
    assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], NULL)), EBB_ERR_GONE);
    ebb_provider_renew_call *r = scene_call(s, EBB_PROVIDER_RENEW);
    r->node = s->node;
    r->lease = 30 * EBB_SECOND;
    r->tokens = &w->items[1].token;
    r->tokens_n = 1;
    r = scene_ask(s, r);
    assert_int_equal(r->gone_n, 1);
    assert_false(r->lost);
    ebb__call_free(&r->call);
    ebb__call_free(&w->call);
    ebb__call_free(&f->call);
    scene_end(s);
}

/* A turn that follows the end of an activity in the process that runs the instance. */
static void a_hot_step_costs_three_statements(void **state) {
    scene *s = opened(*state);
    ebb_provider_work work = {
        .activity = 2, .queue = "charge", .session = "", .name = "charge", .token = {7, 7}};
    ebb_provider_stats before, after;
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one");
    c->work = &work;
    c->work_n = 1;
    c->keep = true;
    assert_int_equal(ack(s, c), EBB_OK);
    const ebb_provider_work_done done = {1, 2, {7, 7}};
    ebb_provider_work next = work;
    next.activity = 4;
    next.token.lo = 8;
    c = scene_ack(s, &f->items[0], "two");
    c->turn = 2;
    c->acked_n = 0;
    c->done = &done;
    c->done_n = 1;
    c->work = &next;
    c->work_n = 1;
    c->keep = true;
    ebb__provider_sqlite.stats(s->gate.self, &before);
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__provider_sqlite.stats(s->gate.self, &after);
    assert_in_range(after.statements - before.statements, 3, 4); /* 4: with the clock, now and then */
    ebb__call_free(&f->call);
    scene_end(s);
}

static void signals_are_limited_and_deduplicated(void **state) {
    scene *s = opened(*state);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(scene_signal(s, "a", "x", "d"), EBB_OK);
    assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM inbox"), 2);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items[0].messages_n, 2);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "one");
    c->unread = EBB_DURABLE_SIGNALS;
    assert_int_equal(ack(s, c), EBB_OK);
    assert_int_equal(scene_signal(s, "a", "x", NULL), EBB_ERR_LIMIT);
    assert_int_equal(scene_signal(s, "nobody", "x", NULL), EBB_ERR_UNKNOWN_INSTANCE);
    ebb__call_free(&f->call);
    scene_end(s);
}

/* The rest of the signals is counted when their bound says so, not for each. */
static void a_signal_costs_the_same_behind_many(void **state) {
    enum { MANY = 200 };
    scene *s = opened(*state);
    ebb_provider_stats before, after;
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    for (int i = 0; i < MANY; i++) assert_int_equal(scene_signal(s, "a", "x", NULL), EBB_OK);
    ebb__provider_sqlite.stats(s->gate.self, &before);
    for (int i = 0; i < MANY; i++) assert_int_equal(scene_signal(s, "a", "x", NULL), EBB_OK);
    ebb__provider_sqlite.stats(s->gate.self, &after);
    assert_in_range(after.statements - before.statements, 2 * MANY, 2 * MANY + 20);
    scene_end(s);
}

static void a_step_costs_six_statements(void **state) {
    scene *s = opened(*state);
    const ebb_blob message = ebb_blob_text("charged");
    ebb_provider_stats before, after;
    ebb_provider_work work = {
        .activity = 2, .queue = "charge", .session = "", .name = "charge", .token = {7, 7}};
    first_turn(s, "order-7");
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 10);
    ebb__provider_sqlite.stats(s->gate.self, &before);
    assert_int_equal(scene_status(s, scene_ack_work(s, &w->items[0], &message)), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "turn 2");
    work.activity = 4;
    c->work = &work;
    c->work_n = 1;
    assert_int_equal(ack(s, c), EBB_OK);
    ebb__provider_sqlite.stats(s->gate.self, &after);
    assert_in_range(after.statements - before.statements, 6, 7);
    ebb__call_free(&w->call);
    ebb__call_free(&f->call);
    scene_end(s);
}

static void a_store_for_reading_writes_nothing(void **state) {
    scene *s = opened(*state), *reader = scene_beside(s);
    char url[600];
    first_turn(s, "a");
    (void)snprintf(url, sizeof url, "sqlite:%s", scene_path(s, "a.db"));
    assert_int_equal(scene_open_with(reader, &(ebb_store_opts){.url = url, .read_only = true}), EBB_OK);
    assert_int_equal(scene_start(reader, "b"), EBB_ERR_CLOSED);
    ebb_provider_instance_call *c = scene_call(reader, EBB_PROVIDER_INSTANCE);
    c->id = "a";
    c = scene_ask(reader, c);
    assert_int_equal(c->call.status, EBB_OK);
    assert_int_equal(c->row.turn, 1);
    ebb__call_free(&c->call);
    scene_close(reader);
    scene_end(s);
}

/* A fetch without memory for its answer claims nothing. */
static void no_memory_loses_no_message(void **state) {
    scene *s = opened(*state);
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    bool failed = true;
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    s->gate.allocator = ebb_failing_allocator(&memory);
    for (uint64_t n = 1; failed; n++) {
        memory.fail_at = 0;
        ebb_provider_fetch_turns_call *f = scene_call(s, EBB_PROVIDER_FETCH_TURNS);
        f->node = s->node;
        f->most = 8;
        f->messages = 1000;
        memory.failures = 0;
        memory.fail_at = memory.calls + n;
        f = scene_ask(s, f);
        failed = memory.failures != 0;
        memory.fail_at = 0;
        if (f->call.status != EBB_OK) assert_int_equal(f->call.status, EBB_ERR_NOMEM);
        if (f->call.status != EBB_OK) assert_int_equal(f->items_n, 0);
        else assert_int_equal(f->items_n, 1);
        if (f->items_n == 1) {
            ebb_provider_abandon_turns_call *a = scene_call(s, EBB_PROVIDER_ABANDON_TURNS);
            a->node = s->node;
            a->tokens = &f->items[0].token;
            a->tokens_n = 1;
            assert_int_equal(scene_status(s, a), EBB_OK);
        }
        ebb__call_free(&f->call);
    }
    s->gate.allocator = ebb_libc_allocator();
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 8);
    assert_int_equal(f->items_n, 1);
    assert_int_equal(f->items[0].attempts, 1);
    ebb__call_free(&f->call);
    scene_end(s);
}

static void a_damaged_history_row_stops_nobody_else(void **state) {
    scene *s = opened(*state);
    first_turn(s, "a");
    first_turn(s, "b");
    (void)scene_number(s, "a.db",
                       "UPDATE hist SET body = NULL WHERE inst = (SELECT key FROM inst WHERE id = 'a')");
    for (int i = 0; i < 2; i++) {
        ebb_provider_history_call *c = scene_call(s, EBB_PROVIDER_HISTORY);
        c->id = i == 0 ? "a" : "b";
        c = scene_ask(s, c);
        assert_int_equal(c->call.status, i == 0 ? EBB_ERR_CORRUPT : EBB_OK);
        if (i == 0) assert_string_equal(s->text, "turn 1 of execution 1 has no body");
        else assert_int_equal(c->turns_n, 1);
        ebb__call_free(&c->call);
    }
    scene_end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(an_activity_leads_to_the_next_turn),
        IN_WORLD(a_turn_is_committed_once),
        IN_WORLD(a_member_that_fails_is_undone_alone),
        IN_WORLD(a_turn_behind_a_reset_or_a_removal_is_fenced),
        IN_WORLD(a_timer_that_is_due_is_a_message),
        IN_WORLD(the_wall_clock_moves_nothing),
        IN_WORLD(a_cancel_set_goes_with_its_turn),
        IN_WORLD(a_hot_step_costs_three_statements),
        IN_WORLD(signals_are_limited_and_deduplicated),
        IN_WORLD(a_signal_costs_the_same_behind_many),
        IN_WORLD(a_step_costs_six_statements),
        IN_WORLD(a_store_for_reading_writes_nothing),
        IN_WORLD(no_memory_loses_no_message),
        IN_WORLD(a_damaged_history_row_stops_nobody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
