/* Crowds: a million wide, a million deep, on a small stack and without memory; and ids that never
 * come back. */
#include "tests/support/world.h"

#include <pthread.h>

#include "kernel/rt.h"

enum { MILLION = 1000 * 1000, STACK_BYTES = 256 * 1024 };

/* ---- on a small stack --------------------------------------------------------------------------- */

/* What runs there may not use cmocka, which jumps: it says what is wrong, NULL if nothing is. */
typedef const char *on_small_stack(world *w);

typedef struct job {
    on_small_stack *run;
    world *w;
    const char *wrong;
} job;

static void *run_job(void *arg) {
    job *j = arg;
    j->wrong = j->run(j->w);
    return NULL;
}

static void run_on_small_stack(world *w, on_small_stack *run) {
    job j = {run, w, NULL};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_job, &j), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attr);
    if (j.wrong != NULL) fail_msg("%s", j.wrong);
}

static ebb_status heeds(ebb_cx *cx, void *state) {
    ++*(uint32_t *)state;
    return ebb_checkpoint(cx) == EBB_CANCELLED ? EBB_CANCELLED : EBB_PENDING;
}

static void no_more_memory(world *w) {
    w->memory.fail_at = w->memory.calls + 1;
    w->memory.fail_after = true;
}

static bool pump_all(world *w) {
    for (int i = 0; i < 10000; i++) {
        if (ebb_runtime_pump(w->rt, 4096) == EBB_OK) return true;
    }
    return false;
}

static const char *cancel_a_million(world *w, ebb_region r, uint32_t tasks, ebb_status joined) {
    ebb_runtime_stats s;
    no_more_memory(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, "all of you");
    if (w->memory.failures != 0) return "a cancel asked for memory";
    ebb_runtime_stats_of(w->rt, &s);
    if (s.runnable != tasks) return "not all were queued";
    if (!pump_all(w)) return "the pump does not end";
    ebb_runtime_stats_of(w->rt, &s);
    if (s.tasks != 0) return "not all have ended";
    if (state_of(w, r) != EBB_REGION_CLOSED) return "the region is not closed";
    w->memory.fail_at = 0;
    return ebb_region_join(w->host, r) == joined ? NULL : "join says something else";
}

static const char *wide(world *w) {
    uint32_t *polls = world_keep(w, sizeof *polls);
    ebb_region r = ebb_region_open(w->host, NULL);
    for (uint32_t i = 0; i < MILLION; i++) {
        if (ebb_id_status(ebb_spawn(w->host, r, heeds, polls).id) != EBB_OK) return "a spawn failed";
    }
    if (!pump_all(w)) return "the pump does not end";
    const char *wrong = cancel_a_million(w, r, MILLION, EBB_CANCELLED);
    return wrong == NULL && *polls != 2 * MILLION ? "not every task was polled twice" : wrong;
}

static const char *deep(world *w) {
    uint32_t *polls = world_keep(w, sizeof *polls);
    ebb_region top = ebb_region_open(w->host, NULL), r = top;
    for (uint32_t i = 1; i < MILLION; i++) {
        r = ebb_region_open(w->host, &(ebb_region_opts){.parent = r});
        if (ebb_id_status(r.id) != EBB_OK) return "an open failed";
    }
    if (ebb_id_status(ebb_spawn(w->host, r, heeds, polls).id) != EBB_OK) return "a spawn failed";
    if (!pump_all(w)) return "the pump does not end";
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    const char *wrong = cancel_a_million(w, top, 1, EBB_OK);
    if (wrong != NULL) return wrong;
    if (ebb_region_causes(w->host, r, chain, EBB_CHAIN_DEPTH, &n, &cut) != EBB_ERR_STALE)
        return "r is still there";
    ebb_runtime_stats s;
    ebb_runtime_stats_of(w->rt, &s);
    return s.regions == 1 ? NULL : "regions are left";
}

static const char *close_and_force_deep(world *w) {
    uint32_t *polls = world_keep(w, sizeof *polls);
    ebb_region top = ebb_region_open(w->host, NULL), r = top;
    for (uint32_t i = 1; i < MILLION; i++) r = ebb_region_open(w->host, &(ebb_region_opts){.parent = r});
    (void)ebb_spawn(w->host, r, heeds, polls);
    if (!pump_all(w)) return "the pump does not end";
    no_more_memory(w);
    ebb_region_close(w->host, top);
    if (!pump_all(w)) return "the pump does not end";
    if (state_of(w, r) != EBB_REGION_DRAINING) return "the deepest does not drain";
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    uint32_t n;
    bool cut;
    ebb_region_force(w->host, top);
    (void)ebb_region_causes(w->host, r, chain, EBB_CHAIN_DEPTH, &n, &cut);
    if (n != EBB_CHAIN_DEPTH || !cut || chain[n - 1].region.id != top.id) return "the chain is wrong";
    if (w->memory.failures != 0) return "a verb asked for memory";
    if (!pump_all(w)) return "the pump does not end";
    w->memory.fail_at = 0;
    return ebb_region_join(w->host, top) == EBB_OK ? NULL : "join says something else";
}

static void a_million_tasks_in_one_region_are_cancelled(void **state) {
    run_on_small_stack(*state, wide);
}

static void a_million_nested_regions_are_cancelled(void **state) {
    run_on_small_stack(*state, deep);
}

static void a_million_nested_regions_are_closed_and_then_forced(void **state) {
    run_on_small_stack(*state, close_and_force_deep);
}

static void freeing_a_runtime_full_of_work_runs_nobodys_code_and_leaks_nothing(void **state) {
    (void)state;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime *rt;
    ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&memory)};
    assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
    uint32_t polls = 0;
    ebb_region r = ebb_runtime_root(rt);
    for (int i = 0; i < 5000; i++) {
        if (i % 3 == 0) r = ebb_region_open(ebb_runtime_host(rt), &(ebb_region_opts){.parent = r});
        (void)ebb_spawn(ebb_runtime_host(rt), r, heeds, &polls);
        (void)ebb_region_reserve(ebb_runtime_host(rt), r, EBB_OBLIGATION_IO, NULL, NULL);
        (void)ebb_region_defer(ebb_runtime_host(rt), r, heeds, &polls);
    }
    ebb_region_cancel(ebb_runtime_host(rt), ebb_runtime_root(rt), EBB_CANCEL_USER, NULL);
    ebb_runtime_free(rt);
    assert_int_equal(polls, 0);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.live_bytes, 0);
}

/* ---- ids ---------------------------------------------------------------------------------------- */

static void the_generations_of_a_slot_run_out_and_it_is_retired_not_reused(void **state) {
    world *w = *state;
    puppet *p = puppet_new(w, (puppet){.returns = EBB_OK});
    ebb_task first = ebb_spawn(w->host, w->root, puppet_poll, p);
    world_settle(w);
    uint32_t slot = (uint32_t)(first.id >> 32);
    ebb__task_at(w->rt, slot)->generation = UINT32_MAX - 2; /* as after four billion tasks */
    uint64_t last = 0;
    for (int i = 0; i < 10; i++) {
        ebb_task t = ebb_spawn(w->host, w->root, puppet_poll, p);
        assert_int_equal(ebb_id_status(t.id), EBB_OK);
        assert_int_not_equal(t.id, first.id);
        assert_int_not_equal(t.id, last);
        assert_int_equal(t.id >> 32 == slot, i < 3);
        last = t.id;
        world_settle(w);
        assert_int_equal(ebb_task_wake(w->host, t), EBB_ERR_STALE);
        assert_int_equal(ebb_task_wake(w->host, first), EBB_ERR_STALE);
    }
    assert_int_equal(stats_of(w).retired, 1);
    ebb_region r = open_region(w, w->root);
    uint32_t region_slot = (uint32_t)(r.id >> 32);
    ebb_region_close(w->host, r);
    world_settle(w);
    (void)ebb_region_join(w->host, r);
    ebb__region_at(w->rt, region_slot)->generation = UINT32_MAX;
    ebb_region old = open_region(w, w->root);
    assert_int_equal(old.id >> 32, region_slot);
    ebb_region_close(w->host, old);
    world_settle(w);
    (void)ebb_region_join(w->host, old);
    assert_int_equal(stats_of(w).retired, 2);
    assert_int_not_equal(open_region(w, w->root).id >> 32, region_slot);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void no_id_is_given_twice(void **state) {
    world *w = *state;
    enum { IDS = 200 * 1000 };
    uint64_t *ids = world_keep(w, IDS * sizeof *ids);
    puppet *p = puppet_new(w, (puppet){.returns = EBB_OK});
    for (uint32_t i = 0; i < IDS; i++) {
        ids[i] = ebb_spawn(w->host, w->root, puppet_poll, p).id;
        if (i % 7 == 0) (void)ebb_runtime_pump(w->rt, i % 13);
    }
    world_settle(w);
    qsort(ids, IDS, sizeof *ids, by_value);
    for (uint32_t i = 1; i < IDS; i++) {
        if (ids[i - 1] == ids[i]) fail_msg("the id %016llx came twice", (unsigned long long)ids[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(a_million_tasks_in_one_region_are_cancelled),
        IN_UNTRACED_WORLD(a_million_nested_regions_are_cancelled),
        IN_UNTRACED_WORLD(a_million_nested_regions_are_closed_and_then_forced),
        cmocka_unit_test(freeing_a_runtime_full_of_work_runs_nobodys_code_and_leaks_nothing),
        IN_UNTRACED_WORLD(the_generations_of_a_slot_run_out_and_it_is_retired_not_reused),
        IN_UNTRACED_WORLD(no_id_is_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
