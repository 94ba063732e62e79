/* The lab keeps the large blocks of its runtimes for the next run, a bounded number of them, and gives all of them back. */
#include <ebb/ebb.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LARGE = 64 * 1024, RUNS = 300, MOST_KEPT = 4 * EBB_LAB_RUNTIMES };

typedef struct ledger {
    uint64_t taken, live; /* large blocks */
    uint64_t blocks;      /* all that are live */
} ledger;

static void *count(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ledger *l = ctx;
    void *p = NULL;
    if (new_size > 0 && (p = realloc(ptr, new_size)) == NULL) return NULL;
    if (new_size == 0) free(ptr);
    l->taken += new_size >= LARGE;
    l->live += new_size >= LARGE;
    if (ptr != NULL) l->live -= old_size >= LARGE;
    l->blocks += new_size > 0;
    l->blocks -= ptr != NULL;
    return p;
}

/* A queue in the memory of the runtime, of as many ints as the case has as its seed. */
static ebb_status setup(ebb_lab *lab) {
    const uint64_t *room = ebb_lab_arg(lab);
    ebb_chan **jobs = ebb_lab_state(lab);
    return ebb_chan_new(ebb_lab_runtime(lab, 0), (uint32_t)*room, sizeof(int), jobs);
}

static void teardown(ebb_lab *lab) {
    ebb_chan_free(*(ebb_chan **)ebb_lab_state(lab));
}

static void run(ebb_lab *lab, uint64_t room) {
    ebb_lab_scenario scenario = {.name = "queue",
                                 .about = "a queue",
                                 .state_size = sizeof(ebb_chan *),
                                 .setup = setup,
                                 .teardown = teardown,
                                 .arg = &room};
    ebb_lab_case c = {.scenario = &scenario, .seed = 1};
    ebb_lab_result r;
    assert_int_equal(ebb_lab_run(lab, &c, NULL, &r), EBB_OK);
}

static void a_run_takes_the_large_blocks_of_the_one_before(void **state) {
    (void)state;
    ledger l = {0};
    ebb_lab *lab = ebb_lab_new((ebb_allocator){count, &l});
    run(lab, LARGE);
    uint64_t first = l.taken;
    assert_true(first >= 2); /* the trace and the queue */
    for (int i = 0; i < RUNS; i++) run(lab, LARGE);
    assert_int_equal(l.taken, first);
    ebb_lab_free(lab);
    assert_int_equal(l.blocks, 0);
}

static void sizes_that_never_come_again_do_not_fill_the_memory(void **state) {
    (void)state;
    ledger l = {0};
    ebb_lab *lab = ebb_lab_new((ebb_allocator){count, &l});
    for (uint64_t i = 0; i < RUNS; i++) run(lab, LARGE + i);
    assert_int_equal(l.live, MOST_KEPT);
    ebb_lab_free(lab);
    assert_int_equal(l.blocks, 0);
}

/* As the machines of a program do. */
static ebb_status setup_to_keep(ebb_lab *lab) {
    ebb_chan **jobs = ebb_lab_arg(lab);
    return ebb_chan_new(ebb_lab_runtime(lab, 0), LARGE, sizeof(int), jobs);
}

static void memory_of_a_runtime_may_outlive_the_lab(void **state) {
    (void)state;
    ledger l = {0};
    ebb_lab *lab = ebb_lab_new((ebb_allocator){count, &l});
    ebb_chan *jobs = NULL;
    ebb_lab_scenario scenario = {.name = "queue", .about = "a queue", .setup = setup_to_keep, .arg = &jobs};
    ebb_lab_case c = {.scenario = &scenario, .seed = 1};
    ebb_lab_result r;
    assert_int_equal(ebb_lab_run(lab, &c, NULL, &r), EBB_OK);
    ebb_lab_free(lab);
    assert_true(l.blocks > 0);
    ebb_chan_free(jobs);
    assert_int_equal(l.blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_the_large_blocks_of_the_one_before),
        cmocka_unit_test(sizes_that_never_come_again_do_not_fill_the_memory),
        cmocka_unit_test(memory_of_a_runtime_may_outlive_the_lab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
