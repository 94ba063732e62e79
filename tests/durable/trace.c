/* Trace contexts of instances: from the work that starts one to its activities and children, the same in every replay. */
#include "tests/support/durable_world.h"

#include "durable/context.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define HEADER "00-" TRACE "-b7ad6b7169203331-01"

/* ---- what activities see ------------------------------------------------------------------------------------------- */

enum { SEEN = 64 };
static char seen[SEEN][EBB_TRACEPARENT_TEXT + 1];
static char inputs[SEEN][64];
static size_t seen_n;

/* Notes its context and its input. Fails once if its input is "again". */
static ebb_status note(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_traceparent t;
    (void)out;
    assert_true(seen_n < SEEN);
    snprintf(inputs[seen_n], sizeof inputs[0], "%.*s", (int)in.n, in.n != 0 ? (const char *)in.at : "");
    snprintf(seen[seen_n], sizeof seen[0], "none");
    if (ebb_cx_traceparent(cx, &t)) ebb_traceparent_text(&t, seen[seen_n]);
    seen_n++;
    return strcmp(inputs[seen_n - 1], "again") == 0 && ebb_activity_attempt(a) == 1 ? EBB_FAILED : EBB_OK;
}

static ebb_status leaf(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "note", in, NULL), out);
}

/* Two calls, one that is retried, a child, and once more as a new execution. */
static ebb_status root(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts twice = {.attempts = 2};
    const bool last = in.n == 4;
    ebb_status st = ebb_orch_await(o, ebb_orch_call(o, "note", ebb_blob_text("first"), NULL), out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_call(o, "note", ebb_blob_text("again"), &twice), out);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_timer(o, EBB_SECOND), NULL);
    if (st == EBB_OK) st = ebb_orch_await(o, ebb_orch_child(o, "leaf", ebb_blob_text("child"), NULL), out);
    if (st != EBB_OK || last) return st;
    return ebb_orch_continue_as_new(o, ebb_blob_text("last"), 0);
}

/* ---- the stage ----------------------------------------------------------------------------------------------------- */

typedef struct starter {
    durable *d;
    ebb_future *f;
    const char *id, *name, *input;
    size_t input_n;
    ebb__trace_context context;
} starter;

static ebb_status start_poll(ebb_cx *cx, void *arg) {
    starter *s = arg;
    const ebb_start_opts o = {.id = s->id, .name = s->name, .input = {s->input, s->input_n}};
    if (s->f == NULL) s->f = ebb_instance_start(cx, s->d->store, &o);
    return ebb_await(cx, s->f, NULL);
}

/* Starts an instance from a region; `header` NULL: one without a context. */
static void start_from(durable *d, const char *header, const char *id, const char *name, const char *input,
                       size_t input_n) {
    starter *s = world_keep(d->world, sizeof *s);
    *s = (starter){.d = d, .id = id, .name = name, .input = input, .input_n = input_n};
    ebb_region r = ebb_region_open(d->world->host, NULL);
    if (header != NULL) {
        assert_int_equal(ebb_traceparent_parse(header, strlen(header), &s->context.at), EBB_OK);
        ebb__region_set_trace(d->world->rt, r, &s->context);
    }
    assert_int_equal(ebb_id_status(ebb_spawn(d->world->host, r, start_poll, s).id), EBB_OK);
    durable_pass(d, 100 * EBB_SECOND);
    ebb_region_close(d->world->host, r);
}

static durable *begin(void **state, uint32_t cache) {
    durable *d = durable_new(*state, &(ebb_worker_opts){.cache = cache});
    seen_n = 0;
    assert_int_equal(ebb_worker_activity(d->worker, "note", note, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "root", 1, root), EBB_OK);
    assert_int_equal(ebb_worker_orch(d->worker, "leaf", 1, leaf), EBB_OK);
    assert_int_equal(ebb_worker_begin(d->worker), EBB_OK);
    return d;
}

static void assert_all_of_one_trace(void) {
    for (size_t i = 0; i < seen_n; i++) {
        assert_memory_equal(seen[i], "00-" TRACE "-", 36);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(seen[i], seen[k]);
    }
}

/* Of the code that sees it, in order, for a cache of every instance and one of none. */
static void every_activity_of_an_instance_has_its_trace_and_a_span(void **state) {
    static const char *const order[] = {"first", "again", "again", "child",
                                        "first", "again", "again", "child"};
    durable *d = begin(state, 100);
    start_from(d, HEADER, "a", "root", "x", 1);
    assert_string_equal(durable_state(d, "a"), "Completed");
    assert_int_equal(seen_n, 8);
    for (size_t i = 0; i < 8; i++) assert_string_equal(inputs[i], order[i]);
    assert_all_of_one_trace();
    assert_int_equal(d->errors, 0);
}

static void replays_give_the_same_contexts(void **state) {
    durable *d = begin(state, EBB_WORKER_NO_CACHE);
    start_from(d, HEADER, "a", "root", "x", 1);
    assert_string_equal(durable_state(d, "a"), "Completed");
    assert_int_equal(seen_n, 8); /* nothing runs twice */
    assert_all_of_one_trace();
    assert_true(durable_stats(d).replays > 4);
    assert_int_equal(d->errors, 0);
}

static void one_without_a_context_has_none(void **state) {
    durable *d = begin(state, 100);
    start_from(d, NULL, "a", "root", "x", 1);
    assert_string_equal(durable_state(d, "a"), "Completed");
    assert_int_equal(seen_n, 8);
    for (size_t i = 0; i < seen_n; i++) assert_string_equal(seen[i], "none");
}

/* A binary input that looks like a wrapped one arrives as it is. */
static void an_input_that_begins_like_a_context_is_whole(void **state) {
    static const char like[] = "\xEB"
                               "T\x01"
                               "0123456789abcdefSPANSPAN\x01rest";
    durable *d = begin(state, 100);
    start_from(d, NULL, "a", "leaf", like, sizeof like - 1);
    start_from(d, HEADER, "b", "leaf", like, sizeof like - 1);
    start_from(d, NULL, "c", "leaf", "", 0);
    start_from(d, HEADER, "d", "leaf", "", 0);
    assert_int_equal(seen_n, 4);
    assert_string_equal(inputs[0], like);
    assert_string_equal(inputs[1], like);
    assert_string_equal(inputs[2], "");
    assert_string_equal(inputs[3], "");
    assert_string_equal(seen[0], "none");
    assert_memory_equal(seen[1], "00-" TRACE, 35);
    assert_string_equal(seen[2], "none");
    assert_memory_equal(seen[3], "00-" TRACE, 35);
}

/* Work that is scheduled again by an operator has the context that it had. */
static void a_reset_gives_activities_their_context_again(void **state) {
    durable *d = begin(state, 100);
    char first[EBB_TRACEPARENT_TEXT + 1];
    start_from(d, HEADER, "a", "leaf", "x", 1);
    assert_int_equal(seen_n, 1);
    memcpy(first, seen[0], sizeof first);
    assert_int_equal(durable_await(d, ebb_instance_reset(d->world->host, d->store, "a", 2)), EBB_OK);
    durable_pass(d, 100 * EBB_SECOND);
    assert_int_equal(seen_n, 2);
    assert_string_equal(seen[1], first);
    assert_string_equal(inputs[1], "x");
}

/* ---- the wrap ------------------------------------------------------------------------------------------------------ */

static void an_input_of_any_size_is_wrapped_and_unwrapped(void **state) {
    world *w = *state;
    uint8_t bytes[64];
    ebb_traceparent t, got;
    ebb__arena a;
    assert_int_equal(ebb_traceparent_parse(HEADER, EBB_TRACEPARENT_TEXT, &t), EBB_OK);
    ebb__arena_init(&a, w->allocator, 512);
    memset(bytes, 'x', sizeof bytes);
    for (int marked = 0; marked < 2; marked++) {
        if (marked) memcpy(bytes, "\xEBT\x01", 3);
        for (size_t n = 0; n <= sizeof bytes; n++) {
            for (int with = 0; with < 2; with++) {
                const ebb_blob in = {bytes, n}, row = ebb__context_wrap(&a, with ? &t : NULL, in);
                ebb_blob out;
                assert_int_equal(ebb__context_unwrap(row, &got, &out), with);
                assert_int_equal(out.n, n);
                if (n > 0) assert_memory_equal(out.at, bytes, n);
                if (with) assert_memory_equal(&got, &t, sizeof t);
                if (!with && (!marked || n < 2)) assert_ptr_equal(row.at, in.at); /* nothing is copied */
            }
        }
    }
    w->memory.fail_at = w->memory.calls + 1;
    uint8_t *large = calloc(1, 4096);
    const ebb_blob none = ebb__context_wrap(&a, &t, (ebb_blob){large, 4096});
    assert_true(none.at == NULL && none.n != 0);
    w->memory.fail_at = 0;
    free(large);
    ebb__arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(every_activity_of_an_instance_has_its_trace_and_a_span),
        IN_WORLD(replays_give_the_same_contexts),
        IN_WORLD(one_without_a_context_has_none),
        IN_WORLD(an_input_that_begins_like_a_context_is_whole),
        IN_WORLD(a_reset_gives_activities_their_context_again),
        IN_WORLD(an_input_of_any_size_is_wrapped_and_unwrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
