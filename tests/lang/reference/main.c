/* Random programs, by the VM and by the reference: they print the same, report the same, and give the same trace, byte for
 * byte. EBB_REFERENCE_PROGRAMS says how many, EBB_REFERENCE_SEED which first. */
#include "tests/lang/reference/reference.h"
#include "tests/support/share.h"

/* All operations are seen in WHOLE programs. */
enum { WHOLE = 300, PROGRAMS = WHOLE / SHARE(5, 5), TURNS = 40 };

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *s = getenv(name);
    return s == NULL ? otherwise : strtoull(s, NULL, 10);
}

typedef struct outcome {
    lang_text said, trace;
    uint64_t committed, faults;
    bool limit; /* a function has too many registers */
} outcome;

/* Main and some turns: machines may go on for ever. */
static outcome run(ebb_lang *c, reference *r, int64_t budget) {
    program_world x = {.w = world_new(NULL, true), .c = c, .said = lang_empty()};
    ebb_program_opts opts = program_opts(&x);
    ebb__exec exec = {reference_call, r};
    outcome o = {.trace = lang_empty()};
    ebb_status st = ebb__program_new(c, &opts, r == NULL ? NULL : &exec, &x.p);
    assert_true(st == EBB_OK || (r == NULL && st == EBB_ERR_LIMIT));
    o.limit = st != EBB_OK;
    if (st == EBB_OK) {
        ebb_machines_stats stats;
        x.p->budget = budget;
        assert_int_equal(ebb_program_open(x.w->host, x.p), EBB_OK);
        (void)ebb_program_start(x.p);
        for (int i = 0; i < TURNS; i++) {
            (void)ebb_runtime_pump(x.w->rt, 2);
            uint64_t due = ebb_runtime_next_due(x.w->rt);
            if (due != EBB_FOREVER && due > ebb_now(x.w->host)) ebb_runtime_advance(x.w->rt, due);
        }
        ebb_machines_stats_of(x.p->ms, &stats);
        o.committed = stats.committed;
        o.faults = stats.rolled_back;
        (void)ebb_region_cancel(x.w->host, ebb_machines_region(x.p->ms), EBB_CANCEL_USER, "test");
        world_finish(x.w);
        assert_int_equal(x.p->blocks, x.p->n_specs);
        assert_int_equal(ebb_program_free(x.p), EBB_OK);
    }
    lang_write(&o.trace, (const char *)x.w->trace, x.w->trace_n);
    o.said = x.said;
    world_end(x.w);
    return o;
}

static void free_outcome(outcome *o) {
    free(o->said.s);
    free(o->trace.s);
}

/* How much memory a dispatch takes is not the language's: where it was used up, the two differ. */
static bool is_full(const outcome *o) {
    return strstr(o->said.s, "the memory of a dispatch is used up") != NULL;
}

static bool is_same(const lang_text *a, const lang_text *b) {
    return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

static uint64_t committed, faults, skipped;

static void compare(const char *path, const lang_text *text, reference *r, int64_t budget) {
    ebb_lang *c = program_compile(path, text->s, text->n);
    outcome vm = run(c, NULL, budget), plain = {0};
    if (!vm.limit) plain = run(c, r, budget);
    if (vm.limit || is_full(&vm) || is_full(&plain)) {
        skipped++;
    } else {
        if (!is_same(&vm.said, &plain.said) || !is_same(&vm.trace, &plain.trace)) {
            fprintf(stderr, "%s\n%s\n---- the VM says\n%s---- the reference\n%s", path, text->s, vm.said.s,
                    plain.said.s);
            fail();
        }
        committed += vm.committed;
        faults += vm.faults;
    }
    free_outcome(&plain);
    free_outcome(&vm);
    ebb_lang_free(c);
}

/* Every operation has been run; an ARM is part of a MATCH. */
static void check_operations(const reference *r) {
    for (uint32_t op = EBB__OP_INVALID + 1; op < EBB__OPS; op++) {
        if (r->seen[op] == 0 && op != EBB__OP_ARM) fail_msg("operation %u was not run", op);
    }
}

static void random_programs_run_as_the_reference_says(void **state) {
    (void)state;
    static const int64_t budgets[] = {EBB__DISPATCH_BUDGET, 1000, 30};
    uint64_t n = number_of("EBB_REFERENCE_PROGRAMS", PROGRAMS), seed = number_of("EBB_REFERENCE_SEED", 1);
    reference r = {0};
    committed = faults = skipped = 0;
    for (uint64_t i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof path, "seed-%llu.ebb", (unsigned long long)(seed + i));
        lang_text text = generate(seed + i);
        compare(path, &text, &r, budgets[i % 3]);
        free(text.s);
    }
    print_message(
        "%llu programs: %llu dispatches committed, %llu rolled back, %llu operations, %llu too large\n",
        (unsigned long long)n, (unsigned long long)committed, (unsigned long long)faults,
        (unsigned long long)r.ops, (unsigned long long)skipped);
    if (n >= WHOLE) check_operations(&r);
    assert_true(committed > 10 * n && faults > n / 2 && skipped < n / 10 + 1);
}

static void compare_file(const char *path) {
    static reference r;
    lang_text text = lang_read(path);
    compare(path, &text, &r, EBB__DISPATCH_BUDGET);
    free(text.s);
}

static void the_examples_run_as_the_reference_says(void **state) {
    (void)state;
    lang_each("examples/lang/*.ebb", compare_file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_run_as_the_reference_says),
        cmocka_unit_test(the_examples_run_as_the_reference_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
