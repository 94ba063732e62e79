/* How many fibers there may be, what they leave behind, and what happens when there is no memory. */
#include "tests/support/world.h"

#include <ebb/fiber.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fiber/sanitizer.h"

enum {
    /* TSan takes maps of its own for each. */
    CROWD = EBB__TSAN ? 5000 : EBB_FIBER_MAX,
    KEPT = 1024, /* of a crowd that was there lately */
    SHORT_LIVES = EBB__TSAN ? 10000 : 100000
};

static ebb_fiber_stats fibers_of(world *w) {
    ebb_fiber_stats s;
    ebb_fiber_stats_of(w->rt, &s);
    return s;
}

static ebb_status parks(ebb_cx *cx, void *arg) {
    (void)arg;
    if (ebb_checkpoint(cx) == EBB_OK) (void)ebb_fiber_park(cx);
    return ebb_checkpoint(cx);
}

static ebb_status ends_at_once(ebb_cx *cx, void *arg) {
    (void)cx;
    if (arg != NULL) ++*(uint32_t *)arg;
    return EBB_OK;
}

/* ---- the limit ------------------------------------------------------------------------------------- */

static void as_many_as_the_limit_live_at_once_and_one_more_is_a_named_error(void **state) {
    world *w = *state;
    if (EBB__TSAN) assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.max = CROWD}), EBB_OK);
    ebb_region crowd = open_region(w, w->root), late = open_region(w, w->root);
    ebb_task first = {0};
    for (int i = 0; i < CROWD; i++) {
        ebb_task t = ebb_fiber_spawn(w->host, crowd, parks, NULL);
        assert_int_equal(ebb_id_status(t.id), EBB_OK);
        if (i == 0) first = t;
    }
    world_settle(w);
    assert_int_equal(fibers_of(w).alive, CROWD);

    ebb_task refused = ebb_fiber_spawn(w->host, late, parks, NULL);
    assert_int_equal(ebb_id_status(refused.id), EBB_ERR_LIMIT);
    assert_int_equal(ebb_task_join(w->host, refused), EBB_ERR_LIMIT);
    assert_int_equal(report_of(w, late).status, EBB_ERR_LIMIT);
    assert_int_equal(fibers_of(w).alive, CROWD);

    assert_int_equal(ebb_task_wake(w->host, first), EBB_OK);
    world_settle(w);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, crowd, parks, NULL).id), EBB_OK);
    assert_int_equal(fibers_of(w).peak, CROWD);

    ebb_region_cancel(w->host, crowd, EBB_CANCEL_USER, NULL);
    world_settle(w);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(report_of(w, crowd).abandoned, 0);
}

static void a_refused_fiber_says_what_is_wrong_with_its_region_first(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root), closed = open_region(w, w->root);
    ebb_region_close(w->host, closed);
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.max = 1}), EBB_OK);
    ebb_fiber_spawn(w->host, w->root, parks, NULL);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, closed, parks, NULL).id), EBB_ERR_CLOSED);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, (ebb_region){0}, parks, NULL).id),
                     EBB_ERR_INVALID);
    ebb_task refused = ebb_fiber_spawn(w->host, r, parks, NULL);
    assert_int_equal(ebb_id_status(refused.id), EBB_ERR_LIMIT);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, (ebb_region){refused.id}, parks, NULL).id),
                     EBB_ERR_LIMIT);
    assert_int_equal(count_events(w, EBB_EV_REFUSED, 0), 4);
}

static void setting_up_takes_only_what_makes_sense(void **state) {
    world *w = *state;
    assert_int_equal(ebb_fiber_setup(w->rt, NULL), EBB_ERR_INVALID);
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.size = 3}), EBB_ERR_VERSION);
    uint32_t least = EBB_FIBER_STACK_LEAST, most = EBB_FIBER_STACK_MOST;
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.stack_bytes = least - 1}), EBB_ERR_INVALID);
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.stack_bytes = most + 1}), EBB_ERR_INVALID);
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.stack_bytes = most}), EBB_OK);
    ebb_fiber_opts o = {.size = sizeof o, .stack_bytes = least + 1};
    assert_int_equal(ebb_fiber_setup(w->rt, &o), EBB_OK);
    ebb_task t = ebb_fiber_spawn(w->host, w->root, parks, NULL);
    assert_int_equal(ebb_fiber_setup(w->rt, &o), EBB_ERR_INVALID);
    world_settle(w);
    assert_int_equal(ebb_task_wake(w->host, t), EBB_OK);
    world_settle(w);
    assert_int_equal(fibers_of(w).pooled, 1);
    assert_int_equal(ebb_fiber_setup(w->rt, &o), EBB_OK);
    assert_int_equal(fibers_of(w).pooled, 0);
}

static ebb_status fills_most_of_a_megabyte(ebb_cx *cx, void *arg) {
    char large[900 * 1024];
    memset(large, 7, sizeof large);
    (void)ebb_fiber_yield(cx);
    for (size_t i = 0; i < sizeof large; i++) *(uint64_t *)arg += (uint64_t)large[i];
    return EBB_OK;
}

static void a_stack_is_as_large_as_it_was_set_up(void **state) {
    world *w = *state;
    uint64_t sum = 0;
    assert_int_equal(ebb_fiber_setup(w->rt, &(ebb_fiber_opts){.stack_bytes = 1 << 20}), EBB_OK);
    ebb_fiber_spawn(w->host, w->root, fills_most_of_a_megabyte, &sum);
    world_settle(w);
    assert_int_equal(sum, 7 * 900 * 1024);
}

/* ---- what is left behind --------------------------------------------------------------------------- */

static long resident_pages(void) {
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
    fclose(f);
    return resident;
}

static long maps(void) {
    long lines = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    return lines;
}

static void short_lives(world *w, uint32_t n, uint32_t at_once) {
    uint32_t ended = 0;
    for (uint32_t i = 0; i < n; i += at_once) {
        for (uint32_t k = 0; k < at_once; k++) ebb_fiber_spawn(w->host, w->root, ends_at_once, &ended);
        world_settle(w);
    }
    assert_int_equal(ended, n);
}

static void many_short_lives_use_the_same_few_stacks(void **state) {
    world *w = *state;
    short_lives(w, SHORT_LIVES / 10, 1);
    short_lives(w, SHORT_LIVES / 10, 1000);
    long before = resident_pages(), mapped = maps();
    short_lives(w, SHORT_LIVES, 1);
    short_lives(w, SHORT_LIVES, 1000);
    if (EBB__ASAN || EBB__TSAN || EBB_EMULATED) return; /* what they need for themselves grows */
    assert_true(resident_pages() - before < 64);
    assert_true(maps() - mapped < 8);
}

static void a_crowd_that_has_gone_leaves_few_stacks(void **state) {
    world *w = *state;
    long mapped = maps();
    ebb_region r = open_region(w, w->root);
    for (int i = 0; i < CROWD; i++) ebb_fiber_spawn(w->host, r, parks, NULL);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    for (ebb_status st = EBB_PENDING; st == EBB_PENDING;) {
        st = ebb_runtime_pump(w->rt, 100);
        uint32_t alive = fibers_of(w).alive;
        assert_true(fibers_of(w).pooled <= (alive > KEPT ? alive : KEPT) + 256);
    }
    assert_int_equal(fibers_of(w).alive, 0);
    assert_in_range(fibers_of(w).pooled, 1, KEPT + 256);
    if (!EBB__TSAN) assert_true(maps() - mapped <= 2 * (KEPT + 256) + 100);
}

static ebb_status parks_deep(ebb_cx *cx, void *arg) {
    char large[8192];
    memset(large, 1, sizeof large);
    ebb_sleeper nap = {.due = 0};
    (void)ebb_sleep(cx, &nap, EBB_SECOND);
    return large[*(int *)arg] == 1 ? EBB_OK : EBB_FAILED;
}

static void freeing_the_runtime_frees_fibers_in_any_state(void **state) {
    int zero = 0;
    (void)state;
    long mapped = maps();
    for (int i = 0; i < 20; i++) {
        ebb_failing memory = {.inner = ebb_libc_allocator()};
        ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&memory)};
        ebb_runtime *rt;
        assert_int_equal(ebb_runtime_new(&o, &rt), EBB_OK);
        ebb_cx *host = ebb_runtime_host(rt);
        for (int k = 0; k < 50; k++) ebb_fiber_spawn(host, ebb_runtime_root(rt), ends_at_once, NULL);
        (void)ebb_runtime_pump(rt, 1000);
        for (int k = 0; k < 30; k++) ebb_fiber_spawn(host, ebb_runtime_root(rt), parks_deep, &zero);
        (void)ebb_runtime_pump(rt, 20);
        ebb_region_cancel(host, ebb_runtime_root(rt), EBB_CANCEL_USER, NULL);
        (void)ebb_runtime_pump(rt, 10);
        ebb_fiber_stats s;
        ebb_fiber_stats_of(rt, &s);
        assert_in_range(s.alive, 1, 29);
        ebb_runtime_free(rt);
        assert_int_equal(memory.live, 0);
        assert_int_equal(memory.live_bytes, 0);
    }
    if (!EBB__TSAN) assert_true(maps() - mapped < 16);
}

/* ---- no memory ------------------------------------------------------------------------------------- */

typedef struct family {
    uint32_t ended, refused;
} family;

static ebb_status has_children(ebb_cx *cx, void *arg) {
    family *f = arg;
    ebb_sleeper nap = {.due = 0};
    ebb_region r = ebb_region_open(cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
    if (ebb_id_status(r.id) != EBB_OK) f->refused++;
    for (int i = 0; i < 3; i++) {
        if (ebb_id_status(ebb_fiber_spawn(cx, r, ends_at_once, &f->ended).id) != EBB_OK) f->refused++;
    }
    ebb_status st = ebb_sleep(cx, &nap, EBB_MS);
    if (st == EBB_ERR_NOMEM) f->refused++;
    if (ebb_region_join(cx, r) == EBB_ERR_NOMEM && f->refused == 0) return EBB_FAILED;
    return EBB_OK;
}

/* The number of allocations that were asked for. */
static uint64_t with_failure_at(uint64_t n, bool and_after) {
    ebb_failing memory = {.inner = ebb_libc_allocator(), .fail_at = n, .fail_after = and_after};
    ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&memory)};
    family f = {0, 0};
    ebb_runtime *rt;
    if (ebb_runtime_new(&o, &rt) == EBB_OK) {
        ebb_cx *host = ebb_runtime_host(rt);
        for (int i = 0; i < 4; i++) {
            ebb_region r = ebb_region_open(host, NULL);
            if (ebb_id_status(r.id) != EBB_OK ||
                ebb_id_status(ebb_fiber_spawn(host, r, has_children, &f).id) != EBB_OK) {
                f.refused++;
            }
        }
        (void)ebb_runtime_pump(rt, 1000);
        ebb_runtime_advance(rt, 2 * EBB_MS);
        assert_int_equal(ebb_runtime_pump(rt, 1000), EBB_OK);
        ebb_fiber_stats s;
        ebb_fiber_stats_of(rt, &s);
        assert_int_equal(s.alive, 0);
        if (memory.failures == 0) assert_int_equal(f.ended, 12);
        else assert_true(f.refused > 0);
        ebb_runtime_free(rt);
    }
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.live_bytes, 0);
    return memory.calls;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    uint64_t calls = with_failure_at(0, false);
    for (uint64_t n = 1; n <= calls; n++) {
        (void)with_failure_at(n, false);
        (void)with_failure_at(n, true);
    }
    assert_true(calls > 10);
}

/* In a child process: addresses are few there. 0 if all is as it should be. */
static int without_addresses(void) {
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_runtime_opts o = {.allocator = ebb_failing_allocator(&memory)};
    ebb_runtime *rt;
    uint32_t ended = 0;
    struct rlimit few = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    if (ebb_runtime_new(&o, &rt) != EBB_OK || setrlimit(RLIMIT_AS, &few) != 0) return 1;
    if (ebb_fiber_setup(rt, &(ebb_fiber_opts){.stack_bytes = 400 << 20}) != EBB_OK) return 2;
    ebb_region r = ebb_region_open(ebb_runtime_host(rt), NULL);
    if (ebb_id_status(ebb_fiber_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), ends_at_once, &ended).id) !=
        EBB_OK)
        return 3;
    ebb_task t = {0};
    for (int i = 0; i < 3 && ebb_id_status(t.id) != EBB_ERR_NOMEM; i++) {
        t = ebb_fiber_spawn(ebb_runtime_host(rt), r, ends_at_once, &ended);
    }
    if (ebb_id_status(t.id) != EBB_ERR_NOMEM) return 4;
    (void)ebb_runtime_pump(rt, 100);
    if (ebb_region_join(ebb_runtime_host(rt), r) != EBB_ERR_NOMEM) return 5;
    ebb_runtime_free(rt);
    return memory.live == 0 ? 0 : 6;
}

static void a_stack_that_the_system_does_not_give_is_a_named_error(void **state) {
    (void)state;
    if (EBB__ASAN || EBB__TSAN) {
        print_message("skipped: a sanitizer needs all addresses, they can't be limited\n");
        skip();
    }
    if (EBB_EMULATED) {
        print_message("skipped: the emulator does not pass the limit on\n");
        skip();
    }
    pid_t child = fork();
    if (child == 0) _exit(without_addresses());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(as_many_as_the_limit_live_at_once_and_one_more_is_a_named_error),
        IN_WORLD(a_refused_fiber_says_what_is_wrong_with_its_region_first),
        IN_WORLD(setting_up_takes_only_what_makes_sense),
        IN_WORLD(a_stack_is_as_large_as_it_was_set_up),
        IN_UNTRACED_WORLD(many_short_lives_use_the_same_few_stacks),
        IN_UNTRACED_WORLD(a_crowd_that_has_gone_leaves_few_stacks),
        cmocka_unit_test(freeing_the_runtime_frees_fibers_in_any_state),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_stack_that_the_system_does_not_give_is_a_named_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
