/* How fibers end, what they leave behind, what the machine keeps for them, and bad use. */
#include "tests/support/world.h"

#include <pthread.h>
#include <unwind.h>

#include <ebb/fiber.h>

#include "fiber/sanitizer.h"
#include "fiber/switch.h"

static ebb_fiber_stats fibers_of(world *w) {
    ebb_fiber_stats s;
    ebb_fiber_stats_of(w->rt, &s);
    return s;
}

static ebb_task kept_fiber(world *w, ebb_region r, ebb_fiber_fn fn, void *arg) {
    return ebb_fiber_spawn(w->host, r, fn, arg, &(ebb_task_opts){.keep = true});
}

static ebb_status nap(ebb_cx *cx, uint64_t ms) {
    ebb_sleeper s = {.due = 0};
    return ebb_sleep(cx, &s, ms * EBB_MS);
}

/* ---- the end --------------------------------------------------------------------------------------- */

static ebb_status says_arg(ebb_cx *cx, void *arg) {
    puppet *p = arg;
    (void)cx;
    world_say(p->world, p->says);
    return EBB_OK;
}

static ebb_status sleeps_as_a_poll(ebb_cx *cx, void *arg) {
    puppet *p = arg;
    ebb_status st = ebb_sleep(cx, &p->nap, EBB_MS);
    if (p->polls++ == 0) assert_int_equal(st, EBB_PENDING);
    if (st == EBB_OK) world_say(p->world, p->says);
    return st;
}

static ebb_status defers_three(ebb_cx *cx, void *arg) {
    puppet **p = arg;
    assert_int_equal(ebb_defer(cx, says_arg, p[0]), EBB_OK);
    assert_int_equal(ebb_defer(cx, sleeps_as_a_poll, p[1]), EBB_OK);
    assert_int_equal(ebb_defer(cx, says_arg, p[2]), EBB_OK);
    (void)nap(cx, 1);
    world_say(p[0]->world, "body");
    return EBB_OK;
}

static void finalizers_of_a_fiber_run_after_it_as_polls_and_its_stack_waits_for_them(void **state) {
    world *w = *state;
    puppet *p[3] = {puppet_new(w, (puppet){.says = "first"}), puppet_new(w, (puppet){.says = "second"}),
                    puppet_new(w, (puppet){.says = "third"})};
    ebb_fiber_spawn(w->host, w->root, defers_three, p);
    world_pass(w, EBB_MS);
    assert_string_equal(w->log, "body third ");
    assert_int_equal(fibers_of(w).alive, 1);
    world_pass(w, EBB_MS);
    assert_string_equal(w->log, "body third second first ");
    assert_int_equal(fibers_of(w).alive, 0);
}

static ebb_status leaves_a_region_open(ebb_cx *cx, void *arg) {
    ebb_region r = ebb_region_open(cx, NULL);
    ebb_spawn(cx, r, puppet_poll, arg);
    (void)nap(cx, 1);
    return EBB_OK;
}

static void takes_its_time(ebb_cx *cx, puppet *p) {
    if (!ebb_cancelled(cx) && p->number == 0) return;
    if (p->number++ == 0) (void)ebb_mask(cx);
    p->returns = ebb_sleep(cx, &p->nap, 3 * EBB_MS);
}

static void the_stack_stays_until_the_regions_that_a_fiber_left_open_are_closed(void **state) {
    world *w = *state;
    puppet *p = puppet_new(w, (puppet){.act = takes_its_time, .returns = EBB_PENDING});
    ebb_task t = kept_fiber(w, w->root, leaves_a_region_open, p);
    world_pass(w, 2 * EBB_MS);
    assert_int_equal(fibers_of(w).alive, 1);
    world_pass(w, 3 * EBB_MS);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

/* What lies on the stack of a fiber that never returns. */
typedef struct remains {
    world *w;
    ebb_wait wait;
    uint64_t magic;
    ebb_sleeper nap;
} remains;
enum { MAGIC = 0x5eed };

static void left_behind(ebb_wait *wait) {
    remains *r = wait->on;
    assert_int_equal(r->magic, MAGIC);
    world_say(r->w, "dropped");
}
static const ebb_wait_kind leaving = {"nothing", left_behind};

static ebb_status finds_magic(ebb_cx *cx, void *arg) {
    remains *r = arg;
    assert_int_equal(r->magic, MAGIC);
    assert_ptr_equal(r->wait.cx, NULL);
    ebb_status st = ebb_sleep(cx, &r->nap, EBB_MS);
    if (st == EBB_OK) world_say(r->w, "finalized");
    return st;
}

static void aborts_with_magic(void *arg) {
    remains *r = arg;
    assert_int_equal(r->magic, MAGIC);
    world_say(r->w, "aborted");
}

static ebb_status never_returns(ebb_cx *cx, void *arg) {
    remains r = {.w = arg, .magic = MAGIC};
    assert_int_equal(ebb_defer(cx, finds_magic, &r), EBB_OK);
    assert_int_equal(
        ebb_id_status(ebb_obligation_reserve(cx, EBB_OBLIGATION_LEASE, aborts_with_magic, &r).id), EBB_OK);
    assert_int_equal(ebb_wait_begin(cx, &r.wait, &leaving, &r), EBB_OK);
    while (ebb_fiber_park(cx) == EBB_OK) {}
    return EBB_FAILED;
}

static void a_fiber_that_is_abandoned_gives_its_stack_back_when_all_that_uses_it_is_done(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_task t = kept_fiber(w, r, never_returns, w);
    world_settle(w);
    ebb_region_cancel(w->host, r, EBB_CANCEL_USER, NULL);
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_string_equal(w->log, "dropped ");
    assert_int_equal(fibers_of(w).alive, 1);
    world_pass(w, EBB_MS);
    assert_string_equal(w->log, "dropped finalized aborted ");
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(fibers_of(w).pooled, 1);
    assert_int_equal(report_of(w, r).abandoned, 1);
    assert_int_equal(ebb_task_join(w->host, t), EBB_CANCELLED);
}

static ebb_status sums_while_it_sleeps(ebb_cx *cx, void *arg) {
    uint64_t sum = 0, start = ebb_now(cx);
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(nap(cx, 10), EBB_OK);
        assert_int_equal(ebb_now(cx), start + i * 10 * EBB_MS);
        sum += i;
    }
    *(uint64_t *)arg = sum;
    return (ebb_status)-1234;
}

/* What ASan keeps its marks around, on the fiber's own stack and away from it. */
static ebb_status only_parks(ebb_cx *cx, void *arg) {
    int n = *(int *)arg;
    char local[64], *large = __builtin_alloca(1000 + (size_t)n * 8);
    memset(large, n, 1000 + (size_t)n * 8);
    memset(local, n, sizeof local);
    while (ebb_fiber_park(cx) == EBB_OK) assert_int_equal(large[17] + local[3], 2 * n);
    return EBB_FAILED;
}

static void abandon_one(world *w, int n) {
    ebb_region r = open_region(w, w->root);
    ebb_fiber_spawn(w->host, r, only_parks, &n);
    world_settle(w);
    ebb_region_force(w->host, r);
    world_settle(w);
    assert_int_equal(report_of(w, r).abandoned, 1);
}

static long address_pages(void) {
    long total = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &total), 1);
    fclose(f);
    return total;
}

static void stacks_of_abandoned_fibers_serve_the_next_ones(void **state) {
    world *w = *state;
    abandon_one(w, 1);
    long before = address_pages();
    for (int i = 2; i < 60; i++) {
        abandon_one(w, i);
        assert_int_equal(fibers_of(w).alive, 0);
        assert_int_equal(fibers_of(w).pooled, 1);
    }
    if (!EBB__TSAN) assert_true(address_pages() - before < 2048);
    uint64_t sum = 0;
    ebb_fiber_spawn(w->host, open_region(w, w->root), sums_while_it_sleeps, &sum);
    world_pass(w, 40 * EBB_MS);
    assert_int_equal(sum, 10);
}

static ebb_status faults(ebb_cx *cx, void *arg) {
    (void)arg;
    (void)nap(cx, 1);
    return EBB_FAULTED;
}

static void a_fault_in_a_fiber_is_a_fault_of_its_task(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_fiber_spawn(w->host, r, faults, NULL);
    world_pass(w, EBB_MS);
    assert_int_equal(report_of(w, r).status, EBB_FAULTED);
}

/* ---- the machine ----------------------------------------------------------------------------------- */

/* About 100 bytes a level, more with a sanitizer. */
static int __attribute__((noinline)) descend(ebb_cx *cx, int depth) {
    volatile int here = depth;
    if (depth == 0) return nap(cx, 1) == EBB_OK ? 0 : -1;
    int below = descend(cx, depth - 1);
    return below < 0 ? below : below + (here == depth);
}

static ebb_status goes_deep(ebb_cx *cx, void *arg) {
    int *depth = arg;
    return descend(cx, *depth) == *depth ? EBB_OK : EBB_FAILED;
}

static void a_fiber_may_recurse_and_await_at_the_bottom(void **state) {
    world *w = *state;
    int depth = 200;
    ebb_task t[3];
    for (int i = 0; i < 3; i++) t[i] = kept_fiber(w, w->root, goes_deep, &depth);
    world_pass(w, EBB_MS);
    for (int i = 0; i < 3; i++) assert_int_equal(ebb_task_join(w->host, t[i]), EBB_OK);
}

/* As many numbers as there are callee-saved registers for them live across the switches. */
static ebb_status counts_in_registers(ebb_cx *cx, void *arg) {
    const volatile int *from = arg;
    int a = from[0], b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7;
    double s = from[0], t = s + 1, u = s + 2, v = s + 3, w = s + 4, x = s + 5, y = s + 6, z = s + 7;
    for (int i = 0; i < 10; i++) {
        if (ebb_fiber_yield(cx) != EBB_OK) return EBB_FAILED;
        a++, b++, c++, d++, e++, f++, g++, h++;
        s++, t++, u++, v++, w++, x++, y++, z++;
    }
    bool ints =
        b == a + 1 && c == a + 2 && d == a + 3 && e == a + 4 && f == a + 5 && g == a + 6 && h == a + 7;
    bool doubles =
        t == s + 1 && u == s + 2 && v == s + 3 && w == s + 4 && x == s + 5 && y == s + 6 && z == s + 7;
    return ints && doubles && a == from[0] + 10 && s == from[0] + 10 ? EBB_OK : EBB_FAILED;
}

static void each_fiber_keeps_its_registers(void **state) {
    world *w = *state;
    int from[3] = {100, 200, 300};
    ebb_task t[3];
    for (int i = 0; i < 3; i++) t[i] = kept_fiber(w, w->root, counts_in_registers, &from[i]);
    world_settle(w);
    for (int i = 0; i < 3; i++) assert_int_equal(ebb_task_join(w->host, t[i]), EBB_OK);
}

typedef struct frames {
    int n;
    uintptr_t last;
} frames;

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg) {
    frames *f = arg;
    uintptr_t at = (uintptr_t)_Unwind_GetIP(context);
    if (at == 0) return _URC_END_OF_STACK;
    f->last = at;
    return ++f->n < 64 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static ebb_status looks_back(ebb_cx *cx, void *arg) {
    frames f = {0};
    (void)arg;
    if (ebb_fiber_yield(cx) != EBB_OK) return EBB_FAILED;
    (void)_Unwind_Backtrace(on_frame, &f);
    uintptr_t into_entry = f.last - (uintptr_t)ebb__switch_entry;
    return f.n > 2 && f.n < 16 && into_entry < 32 ? EBB_OK : EBB_FAILED;
}

static void a_backtrace_in_a_fiber_ends_at_its_entry(void **state) {
    world *w = *state;
    ebb_task t = kept_fiber(w, w->root, looks_back, NULL);
    world_settle(w);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

#if defined(__x86_64__)
/* The two units round up, down or to the nearest, which is how a program starts. */
typedef struct modes {
    uint32_t sse;
    uint16_t x87;
} modes;

static modes modes_now(void) {
    modes m;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(m.sse), "=m"(m.x87));
    m.sse &= 0xffc0; /* without the flags of what has happened */
    return m;
}

static void set_modes(modes m) {
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(m.sse), "m"(m.x87));
}

static modes rounding(modes m, bool up) {
    unsigned how = up ? 2 : 1;
    return (modes){m.sse | how << 13, (uint16_t)(m.x87 | how << 10)};
}

static bool equal(modes a, modes b) {
    return a.sse == b.sse && a.x87 == b.x87;
}
#elif defined(__aarch64__)
typedef struct modes {
    uint64_t fpcr;
} modes;

static modes modes_now(void) {
    modes m;
    __asm__ volatile("mrs %0, fpcr" : "=r"(m.fpcr));
    return m;
}

static void set_modes(modes m) {
    __asm__ volatile("msr fpcr, %0" ::"r"(m.fpcr));
}

static modes rounding(modes m, bool up) {
    return (modes){m.fpcr | (up ? UINT64_C(1) << 22 : UINT64_C(2) << 22)};
}

static bool equal(modes a, modes b) {
    return a.fpcr == b.fpcr;
}
#endif

typedef struct rounder {
    modes pumps, own;
    long double sum;
} rounder;

static ebb_status keeps_modes(ebb_cx *cx, void *arg) {
    rounder *r = arg;
    assert_true(equal(modes_now(), r->pumps));
    set_modes(r->own);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ebb_fiber_yield(cx), EBB_OK);
        assert_true(equal(modes_now(), r->own));
        r->sum += 0.5L;
    }
    return EBB_OK;
}

static void each_fiber_keeps_its_floating_point_modes(void **state) {
    world *w = *state;
    modes host = modes_now();
    rounder up = {host, rounding(host, true), 0}, down = {host, rounding(host, false), 0};
    ebb_fiber_spawn(w->host, w->root, keeps_modes, &up);
    ebb_fiber_spawn(w->host, w->root, keeps_modes, &down);
    ebb_status st;
    do {
        st = ebb_runtime_pump(w->rt, 1);
        assert_true(equal(modes_now(), host));
    } while (st == EBB_PENDING);
    assert_true(up.sum == 5.0L && down.sum == 5.0L);
}

/* ---- bad use --------------------------------------------------------------------------------------- */

static ebb_status returns_pending(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_PENDING;
}

static void a_fiber_can_not_return_pending(void **state) {
    world *w = *state;
    ebb_region r = open_region(w, w->root);
    ebb_fiber_spawn(w->host, r, returns_pending, NULL);
    world_settle(w);
    assert_int_equal(report_of(w, r).status, EBB_ERR_INVALID);
}

static ebb_status pumps(ebb_cx *cx, void *arg) {
    *(ebb_status *)arg = ebb_runtime_pump(ebb_cx_runtime(cx), 10);
    return EBB_OK;
}

static void a_pump_inside_a_fiber_is_refused(void **state) {
    world *w = *state;
    ebb_status seen = EBB_OK;
    ebb_fiber_spawn(w->host, w->root, pumps, &seen);
    world_settle(w);
    assert_int_equal(seen, EBB_ERR_REENTERED);
}

static void parks_like_a_fiber(ebb_cx *cx, puppet *p) {
    p->seen = ebb_fiber_park(cx);
    assert_int_equal(ebb_fiber_yield(cx), p->seen);
}

static ebb_status parks_another(ebb_cx *cx, void *arg) {
    ebb_cx **other = arg;
    assert_int_equal(ebb_fiber_park(other[0]), EBB_ERR_INVALID);
    assert_int_equal(ebb_fiber_yield(other[0]), EBB_ERR_INVALID);
    assert_int_equal(ebb_fiber_park(other[1]), EBB_ERR_INVALID);
    return ebb_fiber_yield(cx);
}

static ebb_status tells_its_cx(ebb_cx *cx, void *arg) {
    *(ebb_cx **)arg = cx;
    (void)nap(cx, 5);
    return EBB_OK;
}

static void only_the_fiber_that_runs_can_park(void **state) {
    world *w = *state;
    ebb_cx *other[2] = {NULL, w->host};
    puppet *p = puppet_start(w, w->root, (puppet){.act = parks_like_a_fiber});
    ebb_fiber_spawn(w->host, w->root, tells_its_cx, &other[0]);
    ebb_task t = kept_fiber(w, w->root, parks_another, other);
    assert_int_equal(ebb_fiber_park(w->host), EBB_ERR_INVALID);
    world_settle(w);
    assert_int_equal(p->seen, EBB_ERR_INVALID);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
}

static ebb_status never_runs(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_OK;
}

static void a_spawn_that_is_refused_leaves_nothing_behind(void **state) {
    world *w = *state;
    ebb_region closed = open_region(w, w->root);
    ebb_region_close(w->host, closed);
    ebb_task_opts wrong = {.size = 1};
    ebb_region bad = {0};
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, closed, never_runs, NULL).id), EBB_ERR_CLOSED);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, w->root, NULL, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, bad, never_runs, NULL).id), EBB_ERR_INVALID);
    assert_int_equal(ebb_id_status(ebb_fiber_spawn(w->host, w->root, never_runs, NULL, &wrong).id),
                     EBB_ERR_VERSION);
    assert_int_equal(fibers_of(w).alive, 0);
    assert_int_equal(report_of(w, w->root).status, EBB_OK);
}

/* ---- two runtimes on one thread -------------------------------------------------------------------- */

typedef struct nest {
    ebb_runtime *inner;
    ebb_cx *outer;
    int passed;
} nest;

static ebb_status inner_fiber(ebb_cx *cx, void *arg) {
    nest *n = arg;
    assert_int_equal(ebb_fiber_park(n->outer), EBB_ERR_INVALID); /* its stack is not the one in use */
    assert_int_equal(nap(cx, 1), EBB_OK);
    n->passed++;
    return EBB_OK;
}

static ebb_status outer_fiber(ebb_cx *cx, void *arg) {
    nest *n = arg;
    n->outer = cx;
    for (int i = 0; i < 3; i++) {
        ebb_fiber_spawn(ebb_runtime_host(n->inner), ebb_runtime_root(n->inner), inner_fiber, n);
        assert_int_equal(ebb_runtime_pump(n->inner, 10), EBB_OK);
        assert_int_equal(nap(cx, 1), EBB_OK);
        ebb_runtime_advance(n->inner, ebb_now(cx));
        assert_int_equal(ebb_runtime_pump(n->inner, 10), EBB_OK);
    }
    return EBB_OK;
}

static void a_fiber_may_pump_another_runtime_with_fibers(void **state) {
    world *w = *state;
    nest n = {.passed = 0};
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator(), .runtime_id = 9};
    assert_int_equal(ebb_runtime_new(&o, &n.inner), EBB_OK);
    ebb_task t = kept_fiber(w, w->root, outer_fiber, &n);
    world_pass(w, 3 * EBB_MS);
    assert_int_equal(ebb_task_join(w->host, t), EBB_OK);
    assert_int_equal(n.passed, 3);
    ebb_runtime_free(n.inner);
}

/* ---- two threads ----------------------------------------------------------------------------------- */

static ebb_status counts_to_hundred(ebb_cx *cx, void *arg) {
    uint64_t *n = arg;
    for (int i = 0; i < 100; i++) {
        ++*n;
        if (nap(cx, 1) != EBB_OK) return EBB_FAILED;
    }
    return EBB_OK;
}

static void *runs_fifty(void *arg) {
    ebb_runtime_opts o = {.allocator = ebb_libc_allocator()};
    ebb_runtime *rt;
    if (ebb_runtime_new(&o, &rt) != EBB_OK) return NULL;
    for (int i = 0; i < 50; i++)
        ebb_fiber_spawn(ebb_runtime_host(rt), ebb_runtime_root(rt), counts_to_hundred, arg);
    while (ebb_runtime_pump(rt, 10) == EBB_PENDING || ebb_runtime_next_due(rt) != EBB_FOREVER)
        ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    ebb_runtime_free(rt);
    return arg;
}

static void runtimes_on_several_threads_run_fibers_side_by_side(void **state) {
    pthread_t t[4];
    uint64_t n[4] = {0};
    (void)state;
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, runs_fifty, &n[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
        assert_int_equal(n[i], 5000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(finalizers_of_a_fiber_run_after_it_as_polls_and_its_stack_waits_for_them),
        IN_WORLD(the_stack_stays_until_the_regions_that_a_fiber_left_open_are_closed),
        IN_WORLD(a_fiber_that_is_abandoned_gives_its_stack_back_when_all_that_uses_it_is_done),
        IN_WORLD(stacks_of_abandoned_fibers_serve_the_next_ones),
        IN_WORLD(a_fault_in_a_fiber_is_a_fault_of_its_task),
        IN_WORLD(a_fiber_may_recurse_and_await_at_the_bottom),
        IN_WORLD(each_fiber_keeps_its_registers),
        IN_WORLD(each_fiber_keeps_its_floating_point_modes),
        IN_WORLD(a_backtrace_in_a_fiber_ends_at_its_entry),
        IN_WORLD(a_fiber_can_not_return_pending),
        IN_WORLD(a_pump_inside_a_fiber_is_refused),
        IN_WORLD(only_the_fiber_that_runs_can_park),
        IN_WORLD(a_spawn_that_is_refused_leaves_nothing_behind),
        IN_WORLD(a_fiber_may_pump_another_runtime_with_fibers),
        cmocka_unit_test(runtimes_on_several_threads_run_fibers_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
