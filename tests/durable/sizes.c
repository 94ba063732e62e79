/* Sizes that nobody has every day: fans of 1 to 10,000 calls, payloads of 10 bytes to 1 MB, crowds of instances. What they cost
 * grows as they do. */
#include "tests/support/loop_world.h"

#include "durable/store.h"

enum { FAN_MOST = 9999, PLACES = 64 };

typedef struct sizes {
    unsigned instances, fan;
    size_t payload;
    const char *path;
    ebb_instance_state state; /* of the last that has ended */
    char text[200];           /* why it is suspended */
    double statements;        /* an activity */
    ebb_store *store;
    unsigned begun;
} sizes;

static unsigned fan; /* of the orchestrations: a constant in each run */

static ebb_status echo(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    (void)cx;
    (void)a;
    *out = in;
    return EBB_OK;
}

static ebb_status fan_out(ebb_orch *o, ebb_blob in, ebb_blob *out) {
    ebb_step *all = ebb_orch_alloc(o, fan * sizeof *all);
    for (unsigned i = 0; i < fan; i++) all[i] = ebb_orch_call(o, "echo", in, NULL);
    ebb_status st = ebb_orch_join(o, fan, all);
    for (unsigned i = 0; i < fan && st == EBB_OK; i++) {
        st = ebb_orch_await(o, all[i], out);
        if (st == EBB_OK && (out->n != in.n || memcmp(out->at, in.at, in.n) != 0)) st = EBB_FAILED;
    }
    *out = ebb_blob_text("all");
    return st;
}

static ebb_status client(ebb_cx *cx, void *arg) {
    sizes *s = arg;
    char id[24], *payload = calloc(1, s->payload);
    ebb_value v;
    (void)snprintf(id, sizeof id, "i%u", s->begun++);
    memset(payload, 'x', s->payload);
    const ebb_start_opts o = {.id = id, .name = "fan", .input = {payload, s->payload}};
    ebb_status st = ebb_await(cx, ebb_instance_start(cx, s->store, &o), NULL);
    free(payload);
    if (st == EBB_OK) st = ebb_await(cx, ebb_instance_wait(cx, s->store, id), &v);
    if (st == EBB_ERR_SUSPENDED) (void)snprintf(s->text, sizeof s->text, "%s", ebb_durable_error());
    s->state = st == EBB_ERR_SUSPENDED ? EBB_INSTANCE_SUSPENDED : EBB_INSTANCE_RUNNING;
    if (st != EBB_OK) return EBB_OK;
    s->state = ebb_instance_info_of(&v)->state;
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static void silent(void *arg, ebb_durable_level level, const char *instance, const char *text) {
    (void)arg;
    (void)level;
    (void)instance;
    (void)text;
}

static ebb_status sizes_main(ebb_cx *cx, void *arg) {
    sizes *s = arg;
    char url[160];
    ebb_value v;
    ebb_worker *w;
    ebb_provider_stats before, after;
    (void)snprintf(url, sizeof url, "sqlite:%s", s->path);
    const ebb_store_opts open = {.url = url, .durability = EBB_DURABILITY_NORMAL};
    const ebb_worker_opts opts = {.turns = PLACES, .activities = PLACES, .log = silent};
    fan = s->fan;
    assert_int_equal(ebb_await(cx, ebb_store_open(cx, &open), &v), EBB_OK);
    s->store = ebb_store_of(&v);
    ebb__store_stats(s->store, &before);
    assert_int_equal(ebb_worker_open(cx, s->store, &opts, &w), EBB_OK);
    assert_int_equal(ebb_worker_orch(w, "fan", 1, fan_out), EBB_OK);
    assert_int_equal(ebb_worker_activity(w, "echo", echo, NULL, NULL), EBB_OK);
    assert_int_equal(ebb_worker_begin(w), EBB_OK);
    const ebb_region r = ebb_region_open(cx, NULL);
    for (unsigned i = 0; i < s->instances; i++) (void)ebb_fiber_spawn(cx, r, client, s);
    assert_int_equal(ebb_region_join(cx, r), EBB_OK);
    ebb__store_stats(s->store, &after);
    s->statements = (double)(after.statements - before.statements) / s->instances / s->fan;
    ebb_region_cancel(cx, ebb_worker_region(w), EBB_CANCEL_SHUTDOWN, "");
    return EBB_OK;
}

static sizes run(loop_world *w, unsigned instances, unsigned of, size_t payload) {
    static int files;
    char path[128], name[24];
    (void)snprintf(name, sizeof name, "%d.db", files++);
    (void)snprintf(path, sizeof path, "%s", path_in(w, name));
    sizes s = {.instances = instances, .fan = of, .payload = payload, .path = path};
    ebb_loop *loop = NULL;
    const ebb_loop_opts opts = {.runtime = {.allocator = ebb_libc_allocator()}};
    assert_int_equal(ebb_loop_new(&opts, sizes_main, &s, &loop), EBB_OK);
    assert_int_equal(ebb_loop_join(loop), EBB_OK);
    print_message("%u instances, a fan of %u, %zu bytes: %.1f statements an activity\n", instances, of,
                  payload, s.statements);
    return s;
}

static void a_call_costs_the_same_in_a_fan_of_any_size(void **state) {
    const sizes one = run(*state, 1, 1, 10), some = run(*state, 1, 100, 10);
    const sizes many = run(*state, 1, FAN_MOST, 10);
    assert_int_equal(one.state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(some.state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(many.state, EBB_INSTANCE_COMPLETED);
    assert_true(many.statements < 8); /* six, and what is fetched and not there */
}

static void an_instance_costs_the_same_in_a_crowd_of_any_size(void **state) {
    const sizes few = run(*state, 10, 1, 10), many = run(*state, 1000, 1, 10);
    assert_int_equal(few.state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(many.state, EBB_INSTANCE_COMPLETED);
    assert_true(many.statements < 2 * few.statements);
}

static void payloads_of_any_size_up_to_the_limit_come_back(void **state) {
    assert_int_equal(run(*state, 1, 10, 10000).state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(run(*state, 1, 3, 1000000).state, EBB_INSTANCE_COMPLETED);
    assert_int_equal(run(*state, 1, 1, EBB_DURABLE_PAYLOAD).state, EBB_INSTANCE_COMPLETED);
}

static void a_turn_that_is_too_large_says_so(void **state) {
    const sizes s = run(*state, 1, EBB_DURABLE_TURN / EBB_DURABLE_PAYLOAD, EBB_DURABLE_PAYLOAD);
    assert_int_equal(s.state, EBB_INSTANCE_SUSPENDED);
    assert_non_null(strstr(s.text, "turn 1: "));
    assert_non_null(strstr(s.text, " bytes of events (67108864)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_call_costs_the_same_in_a_fan_of_any_size),
        ON_A_LOOP(an_instance_costs_the_same_in_a_crowd_of_any_size),
        ON_A_LOOP(payloads_of_any_size_up_to_the_limit_come_back),
        ON_A_LOOP(a_turn_that_is_too_large_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
