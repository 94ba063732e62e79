/* Programs as activities, on a loop with real processes. */
#include "tests/support/loop_world.h"

#include "kernel/layer.h"
#include <ebb/durable.h>

typedef struct scene {
    loop_world *world;
    ebb_orch_fn fn;
    ebb_store *store;
    char state[32], output[512], code[64], message[600];
    ebb_status (*meanwhile)(ebb_cx *cx, struct scene *s);
    const char *traceparent; /* NULL: none */
    ebb__trace_context trace;
} scene;

static void add(ebb_worker *w, const char *name, const char *script) {
    const char *args[] = {"sh", "-c", script, NULL};
    assert_int_equal(ebb_worker_command(w, name, &(ebb_process_opts){.file = "/bin/sh", .args = args}, NULL),
                     EBB_OK);
}

static void put(char *to, size_t room, const char *text, size_t n) {
    (void)snprintf(to, room, "%.*s", (int)n, text);
}

static ebb_status start_poll(ebb_cx *cx, void *arg) {
    scene *s = arg;
    return ebb_await(cx, ebb_instance_start(cx, s->store, &(ebb_start_opts){.id = "i", .name = "o"}), NULL);
}

/* In a region of its own, which has a trace context if the scene has one. */
static ebb_status start(ebb_cx *cx, scene *s) {
    ebb_region r = ebb_region_open(cx, NULL);
    if (s->traceparent != NULL) {
        (void)ebb_traceparent_parse(s->traceparent, strlen(s->traceparent), &s->trace.at);
        ebb__region_set_trace(ebb_loop_runtime(s->world->loop), r, &s->trace);
    }
    (void)ebb_fiber_spawn(cx, r, start_poll, s);
    return ebb_region_join(cx, r);
}

static ebb_status run(ebb_cx *cx, void *arg) {
    scene *s = arg;
    ebb_worker *w;
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = "lab:"}), &v);
    if (st != EBB_OK) return st;
    s->store = ebb_store_of(&v);
    st = ebb_worker_open(cx, s->store, NULL, &w);
    if (st != EBB_OK) return st;
    add(w, "cat", "cat");
    add(w, "flaky",
        "read -r l; case $l in *'\"attempt\":3'*) printf done;; *) echo first >&2; echo try later >&2; exit "
        "75;; esac");
    add(w, "broken", "echo no such file >&2; exit 3");
    add(w, "killed", "kill -9 $$");
    add(w, "much", "head -c 3000000 /dev/zero");
    add(w, "slow", "sleep 60");
    add(w, "trace", "printf %s \"${TRACEPARENT:-none} ${PATH:+path}\"");
    (void)ebb_worker_orch(w, "o", 1, s->fn);
    st = ebb_worker_begin(w);
    if (st == EBB_OK) st = start(cx, s);
    if (st == EBB_OK && s->meanwhile != NULL) st = s->meanwhile(cx, s);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s->store, "i"), &v);
    if (st != EBB_OK) return st;
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    put(s->state, sizeof s->state, ebb_instance_state_name(i->state), 31);
    put(s->output, sizeof s->output, i->output.n != 0 ? i->output.at : "", i->output.n);
    if (i->failure.code != NULL) put(s->code, sizeof s->code, i->failure.code, 63);
    if (i->failure.message != NULL) put(s->message, sizeof s->message, i->failure.message, 599);
    ebb_value_discard(cx, v);
    ebb_region_close(cx, ebb_worker_region(w));
    return EBB_OK;
}

static scene play(void **state, ebb_orch_fn fn, ebb_status (*meanwhile)(ebb_cx *cx, scene *s)) {
    scene s = {.world = *state, .fn = fn, .meanwhile = meanwhile};
    assert_int_equal(run_fiber(*state, run, &s), EBB_OK);
    return s;
}

static ebb_status call_cat(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_call(o, "cat", ebb_blob_text("{\"amount\":7}"), NULL), out);
}

static void it_gets_json_and_its_output_is_the_result(void **state) {
    scene s = play(state, call_cat, NULL);
    assert_string_equal(s.state, "Completed");
    assert_non_null(strstr(s.output, "\"input\":{\"amount\":7}"));
    assert_non_null(strstr(s.output, "\"attempt\":1"));
    assert_non_null(strstr(s.output, "\"key\":\""));
}

static ebb_status call_trace(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    (void)in;
    return ebb_orch_await(o, ebb_orch_call(o, "trace", ebb_blob_text("1"), NULL), out);
}

static void it_gets_the_trace_context_in_its_environment(void **state) {
    static const char trace[] = "00-0af7651916cd43dd8448eb211c80319c-";
    scene s = {.world = *state,
               .fn = call_trace,
               .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
    assert_int_equal(setenv("TRACEPARENT", "00-that-of-the-worker", 1), 0);
    assert_int_equal(run_fiber(*state, run, &s), EBB_OK);
    assert_int_equal(unsetenv("TRACEPARENT"), 0);
    assert_string_equal(s.state, "Completed");
    assert_memory_equal(s.output, trace, sizeof trace - 1);
    assert_null(strstr(s.output, "b7ad6b7169203331"));
    assert_string_equal(s.output + 55, " path");
}

static void without_a_context_it_has_none(void **state) {
    scene s = play(state, call_trace, NULL);
    assert_string_equal(s.output, "none path");
}

static ebb_status call_flaky(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts opts = {.attempts = 5, .backoff = EBB_BACKOFF_NONE};
    return ebb_orch_await(o, ebb_orch_call(o, "flaky", in, &opts), out);
}

static void exit_75_is_worth_another_attempt(void **state) {
    scene s = play(state, call_flaky, NULL);
    assert_string_equal(s.state, "Completed");
    assert_string_equal(s.output, "done");
}

static ebb_status call_broken(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    const ebb_call_opts opts = {.attempts = 5};
    return ebb_orch_await(o, ebb_orch_call(o, "broken", in, &opts), out);
}

static void other_exits_are_final_with_the_last_line_of_its_errors(void **state) {
    scene s = play(state, call_broken, NULL); /* at once: there is no pause of a second */
    assert_string_equal(s.state, "Failed");
    assert_string_equal(s.code, "exit_3");
    assert_string_equal(s.message, "no such file");
}

static ebb_status call_killed(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "killed", in, NULL), out);
}

static void a_signal_is_final(void **state) {
    assert_string_equal(play(state, call_killed, NULL).code, "signal_9");
}

static ebb_status call_much(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "much", in, NULL), out) == EBB_ERR_LIMIT ? EBB_OK : EBB_FAILED;
}

static void a_result_is_limited(void **state) {
    assert_string_equal(play(state, call_much, NULL).state, "Completed");
}

static ebb_status call_slow(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    return ebb_orch_await(o, ebb_orch_call(o, "slow", in, NULL), out);
}

static ebb_status cancel_soon(ebb_cx *cx, scene *s) {
    ebb_sleeper nap = {0};
    (void)ebb_sleep(cx, &nap, 100 * EBB_MS);
    return ebb_await(cx, ebb_instance_cancel(cx, s->store, "i", "enough"), NULL);
}

static void a_cancel_ends_the_program(void **state) {
    const uint64_t before = uv_hrtime();
    assert_string_equal(play(state, call_slow, cancel_soon).state, "Cancelled");
    assert_true(uv_hrtime() - before < 30 * EBB_SECOND); /* and not the minute that it sleeps */
}

static void it_needs_a_program(void **state) {
    (void)state;
    assert_int_equal(ebb_worker_command(NULL, "x", NULL, NULL), EBB_ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(it_gets_json_and_its_output_is_the_result),
        ON_A_LOOP(it_gets_the_trace_context_in_its_environment),
        ON_A_LOOP(without_a_context_it_has_none),
        ON_A_LOOP(exit_75_is_worth_another_attempt),
        ON_A_LOOP(other_exits_are_final_with_the_last_line_of_its_errors),
        ON_A_LOOP(a_signal_is_final),
        ON_A_LOOP(a_result_is_limited),
        ON_A_LOOP(a_cancel_ends_the_program),
        ON_A_LOOP(it_needs_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
