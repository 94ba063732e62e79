/* Operators: terminate, resume, reset, delete, lists, bulk, histories that are read and verified. */
#include "tests/support/durable_world.h"

static ebb_status fan(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step all[3] = {ebb_orch_call(o, "hang", in, NULL),
                       ebb_orch_child(o, "echoes", in, &(ebb_child_opts){.id = "kid"}),
                       ebb_orch_event(o, "go")};
    (void)out;
    return ebb_orch_join(o, 3, all);
}

static ebb_status echoes(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_blob more;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_event(o, "go"), &more);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "echo", more, NULL), out);
    return st;
}

static durable *world_of(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "fan", 1, fan), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "echoes", 1, echoes), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    return d;
}

static ebb_status verified(durable *d, const char *id, uint64_t execution) {
    const ebb_history_opts o = {.verify = true, .execution = execution};
    ebb_future *f = ebb_instance_history(d->world->host, d->store, id, &o);
    durable_pass(d, EBB_MS);
    ebb_status st = ebb_await(d->world->host, f, NULL);
    if (st != EBB_OK) print_error("%s\n", ebb_durable_error());
    return st;
}

static ebb_status ended(durable *d, ebb_future *f) {
    durable_pass(d, EBB_MS);
    return ebb_await(d->world->host, f, NULL);
}

static void terminate_runs_no_code_and_deletes_everything(void **state) {
    durable *d = world_of(state);
    durable_start(d, "a", "fan", "7");
    durable_pass(d, 2 * EBB_SECOND);
    assert_string_equal(durable_rows(d, "a"), "work 1 claimed 1 timers 0 messages 0");
    assert_int_equal(ended(d, ebb_instance_terminate(d->world->host, d->store, "a", "by hand")), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Terminated by hand");
    assert_int_equal(durable_stats(d).hot, 0);
    assert_string_equal(durable_rows(d, "a"), "work 0 claimed 0 timers 0 messages 0");
    assert_int_equal(d->cancelled, 1);
    assert_string_equal(durable_state(d, "kid"), "Cancelled its parent was ended by an operator");
    assert_int_equal(verified(d, "a", 0), EBB_OK);
    assert_int_equal(verified(d, "kid", 0), EBB_OK);
    assert_int_equal(ended(d, ebb_instance_terminate(d->world->host, d->store, "a", NULL)),
                     EBB_ERR_UNKNOWN_INSTANCE);
    assert_int_equal(ended(d, ebb_instance_terminate(d->world->host, d->store, "", NULL)), EBB_ERR_INVALID);
}

/* Its only event is the end: nothing can be kept of it, and its id can be used again. */
static void an_instance_is_terminated_before_its_first_turn(void **state) {
    durable *d = world_of(state);
    ebb_cx *host = d->world->host;
    durable_start(d, "a", "nobody_has_this", "7");
    assert_int_equal(ended(d, ebb_instance_terminate(host, d->store, "a", "by hand")), EBB_OK);
    assert_string_equal(durable_state(d, "a"), "Terminated by hand");
    assert_int_equal(verified(d, "a", 0), EBB_OK);
    assert_int_equal(ended(d, ebb_instance_reset(host, d->store, "a", 1)), EBB_ERR_INVALID);
    assert_string_equal(ebb_durable_error(), "a ends in turn 1");
    const ebb_start_opts again = {.id = "a", .name = "fan", .input = ebb_blob_text("7"), .reuse = true};
    assert_int_equal(ended(d, ebb_instance_start(host, d->store, &again)), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_int_equal(verified(d, "a", 2), EBB_OK);
}

static ebb_status waits_for_kid(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_child(o, "echoes", in, &(ebb_child_opts){.id = "kid"}), out);
}

static void a_parent_learns_that_its_child_was_terminated(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "waits", 1, waits_for_kid), EBB_OK);
    durable_start(d, "a", "waits", "7");
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_pass(d, EBB_SECOND); /* nobody can run the child: it never gets a turn */
    assert_string_equal(durable_state(d, "kid"), "Running");
    assert_int_equal(ended(d, ebb_instance_terminate(d->world->host, d->store, "kid", "")), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Failed EBB_CANCELLED");
}

static void a_reset_goes_back_and_delivers_signals_again(void **state) {
    durable *d = world_of(state);
    durable_start(d, "a", "echoes", "7");
    durable_pass(d, 2 * EBB_SECOND);
    durable_signal(d, "a", "go", "8");
    durable_pass(d, 2 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 8");
    assert_int_equal(d->started, 2);
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 99)), EBB_ERR_INVALID);
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 2)), EBB_OK);
    assert_string_equal(durable_state(d, "a"), "Running");
    durable_pass(d, 5 * EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 8");
    assert_int_equal(d->started, 4); /* both activities once more */
    assert_int_equal(verified(d, "a", 1), EBB_OK);
    assert_int_equal(verified(d, "a", 2), EBB_OK);
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 8)),
                     EBB_ERR_INVALID); /* its end */
}

/* Says where it is, from the second step on. */
static ebb_status tells(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    static const char *const steps[] = {"packed", "sent"};
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    for (size_t i = 0; i < 2 && st == EBB_OK; i++) {
        st = ebb_orch_set_status(o, ebb_blob_text(steps[i]));
        if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "echo", in, NULL), out);
    }
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), out) : st;
}

static const char *custom_of(durable *d, const char *id) {
    static char text[64];
    ebb_value v;
    ebb_future *f = ebb_instance_status(d->world->host, d->store, id);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK);
    const ebb_blob b = ebb_instance_info_of(&v)->custom;
    (void)snprintf(text, sizeof text, "%.*s", (int)b.n, b.n != 0 ? (const char *)b.at : "");
    ebb_value_discard(d->world->host, v);
    return text;
}

/* Events: 1 started, 2 activity_scheduled, 3 activity_completed, 4 custom_set, 5 activity_scheduled, ... */
static void a_reset_takes_the_status_back_too(void **state) {
    durable *d = durable_new(*state, NULL);
    assert_int_equal(ebb_worker_orch(d->worker, "tells", 1, tells), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "tells", "7");
    durable_pass(d, 10 * EBB_SECOND);
    assert_string_equal(custom_of(d, "a"), "sent");
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 4)), EBB_OK);
    durable_pass(d, EBB_SECOND / 2);
    assert_string_equal(custom_of(d, "a"), "packed");
    durable_pass(d, 10 * EBB_SECOND);
    assert_string_equal(custom_of(d, "a"), "sent");
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 2)), EBB_OK);
    durable_pass(d, EBB_SECOND / 2);
    assert_string_equal(custom_of(d, "a"), "");
    durable_pass(d, 10 * EBB_SECOND);
    assert_int_equal(verified(d, "a", 3), EBB_OK);
    durable_signal(d, "a", "go", "9");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "a"), "Completed 9");
}

static ebb_status has_kid(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step first = ebb_orch_child(o, "names", in, NULL);
    ebb_status st = ebb_orch_await(o, first, out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_event(o, "go"), NULL);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_child(o, "names", in, NULL), out) : st;
}

/* Its id, and a number of its own. */
static ebb_status names(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    char *text = ebb_orch_alloc(o, 300);
    (void)in;
    out->n = (size_t)snprintf(text, 300, "%s %llx", ebb_orch_id(o), (unsigned long long)ebb_orch_random(o));
    out->at = text;
    return EBB_OK;
}

/* Events: 1 started, 2 child_started, 3 child_completed, 4 event_awaited, 5 signalled, 6 child_started, ... */
static void a_reset_starts_other_children_than_before(void **state) {
    durable *d = durable_new(*state, NULL);
    char before[600], after[600];
    assert_int_equal(ebb_worker_orch(d->worker, "parent", 1, has_kid), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "names", 1, names), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "parent", "7");
    durable_signal(d, "a", "go", "");
    durable_pass(d, EBB_SECOND);
    (void)snprintf(before, sizeof before, "%s", durable_state(d, "a"));
    assert_non_null(strstr(before, "Completed a/6-"));
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 3)), EBB_OK);
    durable_pass(d, EBB_SECOND);
    (void)snprintf(after, sizeof after, "%s", durable_state(d, "a"));
    assert_non_null(strstr(after, "Completed a/"));
    assert_string_not_equal(strchr(after, '-'), strchr(before, '-')); /* neither its id nor its number */
    assert_int_equal(verified(d, "a", 2), EBB_OK);
    assert_int_equal(ended(d, ebb_instance_reset(d->world->host, d->store, "a", 1)), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_non_null(strstr(durable_state(d, "a"), "Completed a/"));
    assert_string_not_equal(durable_state(d, "a"), after);
    assert_int_equal(verified(d, "a", 3), EBB_OK);
}

static int generation;

static ebb_status changing(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, generation == 0 ? "echo" : "other", in, NULL), out);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), NULL) : st;
}

static void changed_code_suspends_and_a_resume_goes_on(void **state) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.cache = EBB_WORKER_NO_CACHE});
    assert_int_equal(ebb_worker_orch(d->worker, "changing", 1, changing), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    durable_start(d, "a", "changing", "7");
    durable_pass(d, 2 * EBB_SECOND);
    generation = 1;
    durable_signal(d, "a", "go", "");
    durable_pass(d, EBB_SECOND);
    const char *said = durable_state(d, "a");
    assert_non_null(strstr(said, "Suspended turn 1 has event #2 activity_scheduled \"echo\""));
    assert_non_null(strstr(said, "\"other\""));
    assert_non_null(strstr(said, "durable/operator.c:"));
    generation = 0; /* the code is mended */
    assert_int_equal(ended(d, ebb_instance_resume(d->world->host, d->store, "a")), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_non_null(strstr(durable_state(d, "a"), "Completed"));
    assert_int_equal(ended(d, ebb_instance_resume(d->world->host, d->store, "a")), EBB_ERR_UNKNOWN_INSTANCE);
}

static bool has_patch;

static ebb_status patched(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const bool other = has_patch ? ebb_orch_patched(o, "other") : generation != 0;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, other ? "other" : "echo", in, NULL), out);
    return st == EBB_OK ? ebb_orch_await(o, ebb_orch_event(o, "go"), NULL) : st;
}

static ebb_status says_other(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    (void)in;
    *out = ebb_blob_text("other");
    return EBB_OK;
}

/* Code is changed under an instance, which is suspended; with a patch marker it goes on in the old way, and others take the
 * new one. */
static void a_suspended_instance_goes_on_with_a_patch(void **state) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.cache = EBB_WORKER_NO_CACHE});
    assert_int_equal(ebb_worker_orch(d->worker, "patched", 1, patched), EBB_OK);
    assert_int_equal(ebb_worker_activity(d->worker, "other", says_other, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    generation = 0;
    has_patch = false;
    durable_start(d, "old", "patched", "7");
    durable_pass(d, 2 * EBB_SECOND);
    generation = 1;
    durable_signal(d, "old", "go", "");
    durable_pass(d, EBB_SECOND);
    assert_non_null(strstr(durable_state(d, "old"), "Suspended turn 1 has event #2"));
    has_patch = true;
    assert_int_equal(ended(d, ebb_instance_resume(d->world->host, d->store, "old")), EBB_OK);
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "old"), "Completed 7");
    durable_start(d, "new", "patched", "7");
    durable_pass(d, EBB_SECOND);
    durable_signal(d, "new", "go", "");
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "new"), "Completed other");
    assert_int_equal(verified(d, "old", 0), EBB_OK);
    generation = 0;
}

static void a_delete_leaves_nothing(void **state) {
    durable *d = world_of(state);
    durable_start(d, "a", "echoes", "7");
    durable_pass(d, 2 * EBB_SECOND);
    assert_int_equal(ended(d, ebb_instance_delete(d->world->host, d->store, "a", false)), EBB_ERR_BUSY);
    assert_int_equal(ended(d, ebb_instance_delete(d->world->host, d->store, "a", true)), EBB_OK);
    assert_string_equal(durable_state(d, "a"), "EBB_ERR_UNKNOWN_INSTANCE");
    assert_int_equal(ended(d, ebb_instance_delete(d->world->host, d->store, "a", true)),
                     EBB_ERR_UNKNOWN_INSTANCE);
}

static bool stop_at_once(void *arg, uint64_t done) {
    *(uint64_t *)arg = done;
    return false;
}

static int64_t number(durable *d, ebb_future *f) {
    ebb_value v;
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK);
    return v.as.i;
}

static void many_are_listed_cancelled_and_pruned(void **state) {
    durable *d = world_of(state);
    char id[24];
    uint64_t seen = 0;
    ebb_value v;
    size_t n;
    for (int i = 0; i < 25; i++) {
        (void)snprintf(id, sizeof id, "%s-%02d", i % 5 == 0 ? "other" : "mine", i);
        durable_start(d, id, "echoes", "7");
    }
    durable_pass(d, 2 * EBB_SECOND);
    ebb_instance_filter f = {.prefix = "mine", .most = 7};
    ebb_future *list = ebb_instance_list(d->world->host, d->store, &f);
    store_settle(d->world);
    assert_int_equal(ebb_await(d->world->host, list, &v), EBB_OK);
    const ebb_instance_info *infos = ebb_instances_of(&v, &n);
    assert_int_equal(n, 7);
    assert_string_equal(infos[0].id, "mine-01");
    assert_string_equal(infos[6].id, "mine-08");
    ebb_value_discard(d->world->host, v);
    assert_int_equal(
        number(d, ebb_instance_cancel_all(d->world->host, d->store, &f, &(ebb_bulk_opts){.dry_run = true})),
        20);
    const ebb_bulk_opts stops = {.progress = stop_at_once, .arg = &seen, .reason = "first page"};
    assert_int_equal(number(d, ebb_instance_cancel_all(d->world->host, d->store, &f, &stops)), 7);
    assert_int_equal(seen, 7);
    durable_pass(d, EBB_SECOND);
    assert_string_equal(durable_state(d, "mine-01"), "Cancelled first page");
    assert_int_equal(number(d, ebb_instance_cancel_all(d->world->host, d->store, &f, NULL)), 13);
    durable_pass(d, EBB_SECOND);
    assert_int_equal(
        number(d, ebb_instance_prune(d->world->host, d->store, &f, &(ebb_bulk_opts){.dry_run = true})), 20);
    assert_int_equal(number(d, ebb_instance_prune(d->world->host, d->store, NULL, NULL)), 20);
    assert_string_equal(durable_state(d, "mine-01"), "EBB_ERR_UNKNOWN_INSTANCE");
    assert_string_equal(durable_state(d, "other-00"), "Running");
    f.most = 1001;
    assert_int_equal(ended(d, ebb_instance_list(d->world->host, d->store, &f)), EBB_ERR_LIMIT);
}

static void a_history_is_json_and_verified(void **state) {
    durable *d = world_of(state);
    ebb_value v;
    size_t n;
    durable_start(d, "a", "echoes", "{\"amount\":7}");
    durable_pass(d, 2 * EBB_SECOND);
    ebb_future *f = ebb_instance_history(d->world->host, d->store, "a", NULL);
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK);
    const ebb_history_event *e = ebb_history_of(&v, &n);
    assert_int_equal(n, 4);
    assert_string_equal(e[1].kind, "activity_scheduled");
    assert_non_null(strstr(e[1].json, "\"name\":\"echo\""));
    assert_non_null(strstr(e[1].json, "\"body\":{\"amount\":7}"));
    assert_int_equal(e[2].turn, 2);
    ebb_value_discard(d->world->host, v);
    assert_int_equal(verified(d, "a", 0), EBB_OK);
    f = ebb_instance_history(d->world->host, d->store, "a", &(ebb_history_opts){.after = 1, .most = 1});
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(d->world->host, f, &v), EBB_OK);
    e = ebb_history_of(&v, &n);
    assert_int_equal(n, 2);
    assert_string_equal(e[0].kind, "activity_completed");
    ebb_value_discard(d->world->host, v);
    f = ebb_instance_history(d->world->host, d->store, "a", NULL);
    (void)ebb_future_cancel(f, EBB_CANCEL_USER); /* the fiber goes on to its end */
    durable_pass(d, EBB_MS);
    assert_int_equal(ebb_await(d->world->host, f, NULL), EBB_CANCELLED);
    assert_int_equal(ended(d, ebb_instance_history(d->world->host, d->store, "b", NULL)),
                     EBB_ERR_UNKNOWN_INSTANCE);
}

enum { WAIT = 6, PRUNE = 7, OPERATIONS = 12 };

static ebb_future *operate(durable *d, int which) {
    ebb_cx *cx = d->world->host;
    const ebb_instance_filter f = {.prefix = "a"};
    const ebb_start_opts start = {.id = "c", .name = "echoes", .input = ebb_blob_text("8")};
    switch (which) {
    case 0: return ebb_instance_history(cx, d->store, "a", &(ebb_history_opts){.verify = true});
    case 1: return ebb_instance_list(cx, d->store, &f);
    case 2: return ebb_instance_cancel_all(cx, d->store, &f, &(ebb_bulk_opts){.dry_run = true});
    case 3: return ebb_instance_status(cx, d->store, "a");
    case 4: return ebb_instance_reset(cx, d->store, "a", 1);
    case 5: return ebb_instance_terminate(cx, d->store, "a", "enough");
    case WAIT: return ebb_instance_wait(cx, d->store, "a");
    case PRUNE: return ebb_instance_prune(cx, d->store, &f, NULL);
    case 8: return ebb_instance_start(cx, d->store, &start);
    case 9: return ebb_instance_signal(cx, d->store, &(ebb_signal_opts){.name = "go", .start = &start});
    case 10: return ebb_instance_cancel(cx, d->store, "b", "enough");
    default: return ebb_instance_get(cx, d->store, "b", "key");
    }
}

/* They fail with EBB_ERR_NOMEM, or have succeeded, and nothing is used that is gone. */
static void operations_bear_failed_allocations(void **state) {
    (void)state;
    for (int which = 0; which < OPERATIONS; which++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            world *w = world_new(NULL, false);
            durable *d = world_of((void **)&w);
            durable_start(d, "a", "echoes", "7");
            durable_start(d, "b", "echoes", "7");
            durable_pass(d, 2 * EBB_SECOND);
            ebb_region_cancel(w->host, ebb_worker_region(d->worker), EBB_CANCEL_USER, "");
            durable_pass(d, EBB_SECOND);
            if (which == WAIT || which == PRUNE) assert_int_equal(durable_await(d, operate(d, 5)), EBB_OK);
            w->memory.fail_at = w->memory.calls + n;
            ebb_future *f = operate(d, which);
            durable_pass(d, 2 * EBB_SECOND);
            failed = w->memory.failures > 0;
            w->memory.fail_at = 0;
            durable_pass(d, 2 * EBB_SECOND);
            const ebb_status st = ebb_await(w->host, f, NULL);
            assert_true(st == EBB_OK || (failed && st == EBB_ERR_NOMEM));
            world_end(w);
            assert_true(n < 500);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(terminate_runs_no_code_and_deletes_everything),
        IN_WORLD(an_instance_is_terminated_before_its_first_turn),
        IN_WORLD(a_parent_learns_that_its_child_was_terminated),
        IN_WORLD(a_reset_goes_back_and_delivers_signals_again),
        IN_WORLD(a_reset_takes_the_status_back_too),
        IN_WORLD(a_reset_starts_other_children_than_before),
        IN_WORLD(changed_code_suspends_and_a_resume_goes_on),
        IN_WORLD(a_suspended_instance_goes_on_with_a_patch),
        IN_WORLD(a_delete_leaves_nothing),
        IN_WORLD(many_are_listed_cancelled_and_pruned),
        IN_WORLD(a_history_is_json_and_verified),
        cmocka_unit_test(operations_bear_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
