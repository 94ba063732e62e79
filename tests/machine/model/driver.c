/* Random programs under random schedules, on the real machines and on the model; everything is compared after every
 * poll. EBB_MODEL_SEED is the first seed, EBB_MODEL_TURNS the number of turns in all. */
#include "kernel/layer.h"
#include "sched/pump.h"
#include "tests/machine/model/model.h"
#include "tests/support/share.h"

enum { TURNS = 300000 / SHARE(10, 5), TURNS_A_WORLD = 900 };

typedef struct bench {
    ebb_runtime *rt;
    real *real;
    model *model;
    uint64_t seed, random, choices, replayed;
    uint64_t now;
    uint64_t turns;
    ebb_failing memory;
    ebb_checker *check;
    ebb_trace_reader reader;
    uint8_t *trace;
    size_t trace_n, trace_room;
} bench;

/* Both sides draw from generators with the same state. */
static uint32_t choose(void *ctx, uint32_t n) {
    return (uint32_t)(next_random(ctx) % n);
}

static void compare(bench *b, const char *after) {
    api *r = real_api(b->real), *m = model_api(b->model);
    size_t i = 0;
    while (i < r->n && i < m->n && r->log[i] == m->log[i]) i++;
    if (i < r->n || i < m->n) {
        size_t from = i > 300 ? i - 300 : 0;
        fail_msg("seed %llu, turn %llu, after %s: the logs differ\nreal:  %.*s\nmodel: %.*s",
                 (unsigned long long)b->seed, (unsigned long long)b->turns, after,
                 (int)(r->n - from > 600 ? 600 : r->n - from), r->log + from,
                 (int)(m->n - from > 600 ? 600 : m->n - from), m->log + from);
    }
    assert_int_equal(r->machines, m->machines);
    assert_int_equal(r->requests, m->requests);
    for (int k = 0; k < r->machines; k++) {
        machine_view x = real_view(b->real, k), y = model_view(b->model, k);
        const char *f[] = {"lifecycle", "state", "queued", "deferred",      "reserved",
                           "pending",   "held",  "timers", "subscriptions", "count"};
        const uint32_t *p = (const uint32_t *)(const void *)&x, *q = (const uint32_t *)(const void *)&y;
        for (size_t j = 0; j < sizeof x / sizeof *p; j++)
            if (p[j] != q[j])
                fail_msg("seed %llu, turn %llu, after %s: %s of machine %d is %u, in the model %u\n%s",
                         (unsigned long long)b->seed, (unsigned long long)b->turns, after, f[j], k, p[j],
                         q[j], r->log + (r->n > 400 ? r->n - 400 : 0));
    }
    ebb_machines_stats s, t = model_stats(b->model);
    ebb_machines_stats_of(real_machines(b->real), &s);
#define SAME(field)                                                                                          \
    if (s.field != t.field)                                                                                  \
    fail_msg("seed %llu, turn %llu, after %s: %s is %llu, in the model %llu\n%s",                            \
             (unsigned long long)b->seed, (unsigned long long)b->turns, after, #field,                       \
             (unsigned long long)s.field, (unsigned long long)t.field,                                       \
             r->log + (r->n > 400 ? r->n - 400 : 0))
    SAME(dispatched);
    SAME(committed);
    SAME(rolled_back);
    SAME(dead);
    SAME(ignored);
    SAME(refused);
    SAME(requests);
    SAME(faults);
    SAME(machines);
    SAME(queued);
    SAME(pending);
    SAME(timers);
    SAME(subscriptions);
    SAME(cells);
#undef SAME
}

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    bench *b = ctx;
    if (b->trace_n + n > b->trace_room) {
        b->trace_room = 2 * (b->trace_n + n);
        b->trace = realloc(b->trace, b->trace_room);
    }
    memcpy(b->trace + b->trace_n, bytes, n);
    b->trace_n += n;
}

static bool poll_once(bench *b) {
    uint64_t polls = ebb__rt_polls(b->rt);
    (void)ebb_runtime_pump(b->rt, 1);
    if (ebb__rt_polls(b->rt) == polls) return false;
    b->turns++;
    model_turn(b->model);
    compare(b, "a poll");
    ebb_trace_take(b->rt, false, keep_trace, b);
    return true;
}

static void advance(bench *b) {
    b->now += (1 + next_random(&b->random) % 4) * (EBB_MS / 2);
    ebb_runtime_advance(b->rt, b->now);
    model_advance(b->model, b->now);
}

static void act(bench *b) {
    uint64_t seed = next_random(&b->random);
    run_host(real_api(b->real), seed);
    run_host(model_api(b->model), seed);
    compare(b, "an action of the host");
}

static void begin(bench *b, uint64_t seed) {
    *b = (bench){.seed = seed, .random = seed, .choices = seed ^ 7, .replayed = seed ^ 7};
    b->memory.inner = ebb_libc_allocator();
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&b->memory), .runtime_id = 3};
    assert_int_equal(ebb_runtime_new(&opts, &b->rt), EBB_OK);
    assert_int_equal(ebb_trace_start(b->rt, 1 << 20), EBB_OK);
    ebb__rt_set_stepped(b->rt, true);
    if (seed % 2 == 0) ebb__set_chooser(b->rt, choose, &b->choices);
    b->real = real_new(b->rt);
    b->model = model_new(choose, &b->replayed);
}

static uint32_t first(void *ctx, uint32_t n) {
    (void)ctx;
    (void)n;
    return 0;
}

/* The oracles hold, and a replay of the checker finds nothing. */
static void check_trace(bench *b) {
    ebb_event ev;
    ebb_trace_take(b->rt, true, keep_trace, b);
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    assert_int_equal(ebb_trace_reader_open(&b->reader, b->trace, b->trace_n), EBB_OK);
    while (ebb_trace_reader_next(&b->reader, &ev) == EBB_OK) {
        if (ebb_checker_event(c, &ev) == EBB_OK) continue;
        const ebb_violation *v = ebb_checker_violation(c);
        fail_msg("seed %llu: %s: %s, at event %llu", (unsigned long long)b->seed, ebb_oracle_name(v->oracle),
                 v->text, (unsigned long long)v->event.decision_seq);
    }
    assert_int_equal(ebb_checker_end(c, true), EBB_OK);
    ebb_checker_free(c);
}

static void end(bench *b) {
    ebb_cx *host = ebb_runtime_host(b->rt);
    ebb_region region = ebb_machines_region(real_machines(b->real));
    uint32_t how = (uint32_t)(next_random(&b->random) % 3);
    if (how > 0) {
        ebb_region_close(host, region);
        model_close(b->model);
        for (int i = 0; i < 300; i++) {
            if (!poll_once(b)) advance(b);
            if (i % 16 == 0) act(b);
        }
    }
    if (!model_ended(b->model)) {
        ebb_region_cancel(host, region, EBB_CANCEL_USER, "the end");
        model_cancel(b->model);
    }
    while (poll_once(b)) {}
    assert_true(model_ended(b->model));
    ebb_status st = ebb_region_join(host, region);
    assert_true(st == EBB_OK || st == EBB_CANCELLED);
}

static void finish(bench *b) {
    check_trace(b);
    real_free(b->real);
    ebb_runtime_free(b->rt);
    model_free(b->model);
    assert_int_equal(b->memory.live, 0);
    free(b->trace);
}

static uint64_t run(uint64_t seed) {
    static bench b;
    begin(&b, seed);
    if (seed % 2 != 0) {
        model_free(b.model);
        b.model = model_new(first, NULL);
    }
    for (int i = 0; i < 12; i++) act(&b);
    while (b.turns < TURNS_A_WORLD && real_api(b.real)->requests < REQUESTS - 200) {
        uint32_t what = (uint32_t)(next_random(&b.random) % 8);
        if (what < 5 && poll_once(&b)) continue;
        if (what == 5) advance(&b);
        act(&b);
        b.turns++;
    }
    end(&b);
    finish(&b);
    return b.turns;
}

static void the_machines_do_what_the_model_does(void **state) {
    (void)state;
    const char *seed = getenv("EBB_MODEL_SEED"), *turns = getenv("EBB_MODEL_TURNS");
    uint64_t first_seed = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    uint64_t n = turns != NULL ? strtoull(turns, NULL, 10) : TURNS;
    for (uint64_t s = first_seed, done = 0; done < n; s++) done += run(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_machines_do_what_the_model_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
