/* Every scenario again with a verb at its n-th suspension point, for each n: said by the host right
 * after that poll, and by the task itself from within it; to the root, and to each region and task by
 * itself. Whatever the moment, everything ends in order and in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kernel/layer.h"
#include "tests/support/share.h"
#include "tests/support/sweep_world.h"

static const uint64_t cleanup_ns[] = {0, 5000 * EBB_MS, 2000 * EBB_MS, 500 * EBB_MS};

static sweep_world world; /* too large for a stack */
static uint64_t runs;

/* From each point to the next that is tried; scenarios begin at different ones. */
enum { POINT_STEP = SHARE(1, 5) };

/* ---- the acts ----------------------------------------------------------------------------------- */

/* What is asked to stop has its budget, and a tenth for the clock's grain. */
static void must_be_over(sweep_world *w, uint64_t budget_ns, bool (*over)(sweep_world *w)) {
    w->limit = w->acted_time + budget_ns + budget_ns / 10;
    w->over = over;
}

static uint64_t budget_of(const sweep_world *w) {
    return cleanup_ns[ebb_cancel_kind_severity(w->kind)];
}

/* The finalizers keep their part, at most that of a polite cancel. */
static uint64_t budget_of_force(void) {
    return cleanup_ns[EBB_SEVERITY_POLITE] / 5;
}

static bool root_is_closed(sweep_world *w) {
    return sweep_closed(w, ebb_runtime_root(w->rt));
}

static bool region_is_closed(sweep_world *w) {
    return w->victim >= w->regions || sweep_closed(w, w->region[w->victim]);
}

static bool task_has_ended(sweep_world *w) {
    return w->victim >= w->tasks || sweep_ended(w, w->task[w->victim]);
}

static void cancel_root(sweep_world *w, ebb_cx *cx) {
    must_be_over(w, budget_of(w), root_is_closed);
    ebb_region_cancel(cx, ebb_runtime_root(w->rt), w->kind, "the n-th point");
}

static void force_root(sweep_world *w, ebb_cx *cx) {
    must_be_over(w, budget_of_force(), root_is_closed);
    ebb_region_force(cx, ebb_runtime_root(w->rt));
}

static void close_root(sweep_world *w, ebb_cx *cx) {
    ebb_region_close(cx, ebb_runtime_root(w->rt));
}

static void cancel_region(sweep_world *w, ebb_cx *cx) {
    if (w->victim >= w->regions) return;
    must_be_over(w, budget_of(w), region_is_closed);
    ebb_region_cancel(cx, w->region[w->victim], w->kind, NULL);
}

static void force_region(sweep_world *w, ebb_cx *cx) {
    if (w->victim >= w->regions) return;
    must_be_over(w, budget_of_force(), region_is_closed);
    ebb_region_force(cx, w->region[w->victim]);
}

static void close_region(sweep_world *w, ebb_cx *cx) {
    if (w->victim < w->regions) ebb_region_close(cx, w->region[w->victim]);
}

static void cancel_task(sweep_world *w, ebb_cx *cx) {
    if (w->victim >= w->tasks) return;
    must_be_over(w, budget_of(w), task_has_ended);
    ebb_task_cancel(cx, w->task[w->victim], w->kind, "you");
}

static void force_task(sweep_world *w, ebb_cx *cx) {
    if (w->victim >= w->tasks) return;
    must_be_over(w, budget_of_force(), task_has_ended);
    ebb_task_force(cx, w->task[w->victim]);
}

/* A task that owes something or is under a request refuses, and goes on. */
static void discard_task(sweep_world *w, ebb_cx *cx) {
    if (w->victim >= w->tasks) return;
    w->discarded = ebb__task_discard(cx, w->task[w->victim]) == EBB_OK;
}

/* ---- one run ------------------------------------------------------------------------------------ */

typedef struct plan {
    const char *name;
    void (*act)(sweep_world *w, ebb_cx *cx);
    ebb_cancel_kind kind;
    bool within;
} plan;

static void failed_at(const sweep_scenario *s, const plan *p, uint64_t n, uint32_t victim, const char *what) {
    fail_msg("%s, %s (%s) %s point %u, victim %u: %s", s->name, p->name, ebb_cancel_kind_name(p->kind),
             p->within ? "within" : "after", (unsigned)n, (unsigned)victim, what);
}

static void run(const sweep_scenario *s, const plan *p, uint64_t n, uint32_t victim) {
    sweep_world *w = &world;
    memset(w, 0, sizeof *w);
    w->act = p->act;
    w->act_at = n;
    w->act_within = p->within;
    w->kind = p->kind;
    w->victim = victim;
    runs++;
    assert_true(sweep_begin(w, s));
    if (!sweep_run(w)) failed_at(s, p, n, victim, "it never stops");
    ebb_region_cancel(w->host, ebb_runtime_root(w->rt), EBB_CANCEL_USER, "the end");
    if (!sweep_run(w)) failed_at(s, p, n, victim, "it never ends");
    const char *broken = sweep_judge(w, true);
    if (broken != NULL) failed_at(s, p, n, victim, broken);
    sweep_end(w);
    assert_int_equal(w->failing.live, 0);
}

typedef struct extent {
    uint64_t points;
    uint32_t regions, tasks;
} extent;

static extent measure(const sweep_scenario *s) {
    static const plan nothing = {.name = "nothing"};
    run(s, &nothing, 0, 0);
    return (extent){world.points, world.regions, world.tasks};
}

/* ---- the sweeps --------------------------------------------------------------------------------- */

enum { ON_ROOT, ON_REGIONS, ON_TASKS };

static uint32_t victims_of(extent e, int target) {
    return target == ON_ROOT ? 1 : target == ON_REGIONS ? e.regions : e.tasks;
}

/* A scenario with many victims has many of the same kind: not each of them at each point. */
static uint32_t stride_of(uint32_t victims) {
    return victims <= 12 ? 1 : 7;
}

static void sweep(plan p, int target) {
    uint64_t before = runs;
    for (size_t i = 0; i < sweep_scenario_count; i++) {
        extent e = measure(&sweep_scenarios[i]);
        uint32_t victims = victims_of(e, target), stride = stride_of(victims);
        for (uint64_t n = 1 + i % POINT_STEP; n <= e.points; n += POINT_STEP) {
            for (uint32_t v = (uint32_t)n % stride; v < victims; v += stride) {
                for (int within = 0; within < 2; within++) {
                    p.within = within != 0;
                    run(&sweep_scenarios[i], &p, n, v);
                }
            }
        }
    }
    print_message("%s: %u runs\n", p.name, (unsigned)(runs - before));
}

static void cancel_everywhere(void (*act)(sweep_world *, ebb_cx *), const char *name, int target) {
    static const ebb_cancel_kind kinds[] = {EBB_CANCEL_USER, EBB_CANCEL_TIMEOUT, EBB_CANCEL_SHUTDOWN};
    for (size_t i = 0; i < 3; i++) sweep((plan){.name = name, .act = act, .kind = kinds[i]}, target);
}

static void cancelling_the_root_at_any_point_ends_everything(void **s) {
    (void)s;
    cancel_everywhere(cancel_root, "cancel the root", ON_ROOT);
}

static void cancelling_one_region_at_any_point_ends_it(void **s) {
    (void)s;
    cancel_everywhere(cancel_region, "cancel a region", ON_REGIONS);
}

static void cancelling_one_task_at_any_point_ends_it(void **s) {
    (void)s;
    cancel_everywhere(cancel_task, "cancel a task", ON_TASKS);
}

static void forcing_at_any_point_ends_it_within_the_finalizers_part(void **s) {
    (void)s;
    sweep((plan){.name = "force the root", .act = force_root}, ON_ROOT);
    sweep((plan){.name = "force a region", .act = force_region}, ON_REGIONS);
    sweep((plan){.name = "force a task", .act = force_task}, ON_TASKS);
}

static void closing_at_any_point_and_cancelling_later_ends_everything(void **s) {
    (void)s;
    sweep((plan){.name = "close the root", .act = close_root}, ON_ROOT);
    sweep((plan){.name = "close a region", .act = close_region}, ON_REGIONS);
}

static void discarding_one_task_at_any_point_leaves_the_rest_in_order(void **s) {
    (void)s;
    sweep((plan){.name = "discard a task", .act = discard_task}, ON_TASKS);
}

/* A run that failed has left its world behind. */
static int clear(void **s) {
    (void)s;
    sweep_end(&world);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(cancelling_the_root_at_any_point_ends_everything, clear),
        cmocka_unit_test_teardown(cancelling_one_region_at_any_point_ends_it, clear),
        cmocka_unit_test_teardown(cancelling_one_task_at_any_point_ends_it, clear),
        cmocka_unit_test_teardown(forcing_at_any_point_ends_it_within_the_finalizers_part, clear),
        cmocka_unit_test_teardown(discarding_one_task_at_any_point_leaves_the_rest_in_order, clear),
        cmocka_unit_test_teardown(closing_at_any_point_and_cancelling_later_ends_everything, clear),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%u runs in all\n", (unsigned)runs);
    return failed;
}
