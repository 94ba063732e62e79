/* Every scenario again with its n-th allocation refused, for each n: alone, and with all that follow.
 * Nothing crashes, whoever asked is told, the verbs still work, and everything is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/support/sweep_world.h"

typedef void (*ending)(sweep_world *w);

static void end_by_cancel(sweep_world *w) {
    ebb_region_cancel(w->host, ebb_runtime_root(w->rt), EBB_CANCEL_SHUTDOWN, "no memory");
}

static void end_by_force(sweep_world *w) {
    ebb_region_force(w->host, ebb_runtime_root(w->rt));
}

/* What runs may go on to its end; what can't is cancelled then. */
static void end_by_close(sweep_world *w) {
    ebb_region_close(w->host, ebb_runtime_root(w->rt));
    if (!sweep_run(w)) fail_msg("%s: closing never stops", w->scenario->name);
    end_by_cancel(w);
}

static sweep_world world; /* too large for a stack */

/* The number of allocations that were asked for. */
static uint64_t run(const sweep_scenario *s, uint64_t fail_at, bool fail_after, bool early, ending end) {
    sweep_world *w = &world;
    memset(w, 0, sizeof *w);
    w->failing.fail_at = fail_at;
    w->failing.fail_after = fail_after;
    if (sweep_begin(w, s)) {
        if (!early && !sweep_run(w))
            fail_msg("%s, allocation %u: it never stops", s->name, (unsigned)fail_at);
        end(w);
        if (!sweep_run(w)) fail_msg("%s, allocation %u: it never ends", s->name, (unsigned)fail_at);
        const char *broken = sweep_judge(w, true);
        if (broken != NULL) {
            fail_msg("%s, allocation %u%s: %s", s->name, (unsigned)fail_at, fail_after ? " and after" : "",
                     broken);
        }
    }
    uint64_t failures = w->failing.failures, told = w->no_memory, calls = w->failing.calls;
    sweep_end(w);
    if (failures > 0 && told == 0) fail_msg("%s, allocation %u: nobody was told", s->name, (unsigned)fail_at);
    if (w->failing.live != 0)
        fail_msg("%s, allocation %u: %d blocks leaked", s->name, (unsigned)fail_at, (int)w->failing.live);
    assert_int_equal(w->failing.live_bytes, 0);
    return calls;
}

static void sweep(bool fail_after, bool early, ending end) {
    uint64_t runs = 0;
    for (size_t i = 0; i < sweep_scenario_count; i++) {
        uint64_t calls = run(&sweep_scenarios[i], 0, false, early, end);
        for (uint64_t n = 1; n <= calls; n++) (void)run(&sweep_scenarios[i], n, fail_after, early, end);
        runs += calls + 1;
    }
    print_message("%u runs\n", (unsigned)runs);
}

static void one_allocation_fails_then_close(void **s) {
    (void)s;
    sweep(false, false, end_by_close);
}
static void one_allocation_fails_then_cancel(void **s) {
    (void)s;
    sweep(false, true, end_by_cancel);
}
static void one_allocation_fails_then_force(void **s) {
    (void)s;
    sweep(false, true, end_by_force);
}
static void all_allocations_fail_then_close(void **s) {
    (void)s;
    sweep(true, false, end_by_close);
}
static void all_allocations_fail_then_cancel(void **s) {
    (void)s;
    sweep(true, true, end_by_cancel);
}
static void all_allocations_fail_then_force(void **s) {
    (void)s;
    sweep(true, true, end_by_force);
}

/* A run that failed has left its world behind. */
static int clear(void **s) {
    (void)s;
    sweep_end(&world);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_allocation_fails_then_close, clear),
        cmocka_unit_test_teardown(one_allocation_fails_then_cancel, clear),
        cmocka_unit_test_teardown(one_allocation_fails_then_force, clear),
        cmocka_unit_test_teardown(all_allocations_fail_then_close, clear),
        cmocka_unit_test_teardown(all_allocations_fail_then_cancel, clear),
        cmocka_unit_test_teardown(all_allocations_fail_then_force, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
