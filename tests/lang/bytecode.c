/* Bytecode: what the verifier accepts runs clean, whatever it is; a fault at any instruction, unit of the budget or
 * allocation leaves nothing behind. EBB_BYTECODE_MUTANTS says how many programs are mutated, EBB_BYTECODE_SEED which. */
#include "tests/support/bytecode_run.h"
#include "tests/support/program_world.h"
#include "tests/support/share.h"

enum { MUTANTS = 100000 / SHARE(10, 5), BUDGET = 300 };

static const char *const paths[] = {"fixtures/lang/run/full.ebb",  "fixtures/lang/run/life.ebb",
                                    "fixtures/lang/run/order.ebb", "fixtures/lang/run/requests.ebb",
                                    "fixtures/lang/run/spec.ebb",  "fixtures/lang/run/values.ebb"};
enum { PATHS = sizeof paths / sizeof *paths };

static uint64_t next(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *s = getenv(name);
    return s == NULL ? otherwise : strtoull(s, NULL, 10);
}

/* ---- what the compiler makes ---- */

static size_t compiled;

/* Of a program that compiles, every function passes the verifier. */
static void is_verified(const char *path) {
    lang_text text = lang_read(path);
    lang_modules modules = {0};
    ebb_lang *c = lang_new(&modules);
    ebb__image m;
    if (ebb_lang_compile(c, path, text.s, text.n) == EBB_OK) {
        assert_int_equal(ebb__image_make(c, ebb_libc_allocator(), &m), EBB_OK);
        assert_int_equal(ebb__emit_all(&m), EBB_OK);
        for (uint32_t i = 0; i < m.n_codes; i++) {
            const char *why;
            uint32_t pc;
            if (!ebb__verify(&m, i, &why, &pc))
                fail_msg("%s: %s at %u: %s", path, m.ir->fns[i]->name, pc, why);
        }
        ebb__image_free(&m);
        compiled++;
    }
    ebb_lang_free(c);
    lang_modules_free(&modules);
    free(text.s);
}

static void what_the_compiler_makes_is_accepted(void **state) {
    (void)state;
    compiled = 0;
    lang_each("fixtures/lang/*/*.ebb", is_verified);
    lang_each("examples/lang/*.ebb", is_verified);
    assert_true(compiled > 100);
}

/* ---- mutants ---- */

/* One to three changes: a byte, a word from elsewhere, a register, two words swapped. */
static void mutate(uint32_t *code, uint32_t n, uint64_t *seed) {
    for (uint64_t times = 1 + next(seed) % 3; times > 0; times--) {
        uint32_t at = (uint32_t)(next(seed) % n), other = (uint32_t)(next(seed) % n),
                 byte = (uint32_t)(next(seed) % 4);
        switch (next(seed) % 5) {
        case 0: code[at] ^= (uint32_t)(next(seed) % 256) << 8 * byte; break;
        case 1: code[at] = code[other]; break;
        case 2: code[at] = (code[at] & 0xff) | (code[other] & ~UINT32_C(0xff)); break;
        case 3:
            code[at] = (code[at] & ~(UINT32_C(255) << 8 * byte)) | (uint32_t)(next(seed) % 8) << 8 * byte;
            break;
        default:
            if (code[at] < 256) code[at] = (uint32_t)(next(seed) % 64); /* an extra word: a type */
            else code[at] = (code[at] & ~UINT32_C(0xff)) | (uint32_t)(next(seed) % EBB__VM_OPS);
        }
    }
}

static void what_the_verifier_accepts_runs_clean(void **state) {
    (void)state;
    uint64_t seed = number_of("EBB_BYTECODE_SEED", 88172645463325252),
             all = number_of("EBB_BYTECODE_MUTANTS", MUTANTS);
    uint64_t accepted = 0;
    for (size_t i = 0; i < PATHS; i++) {
        lang_text text = lang_read(paths[i]);
        bytecode_run r = {0};
        bytecode_open(&r, text.s, text.n, BUDGET);
        for (uint64_t k = 0; k < all / PATHS; k++) {
            ebb__bytecode *b = &r.p->image.codes[next(&seed) % r.p->image.n_codes];
            const uint32_t *good = b->at;
            uint32_t *bad = malloc(b->n * sizeof *bad); /* exact, so that a read behind it is found */
            memcpy(bad, good, b->n * sizeof *bad);
            mutate(bad, b->n, &seed);
            b->at = bad;
            if (ebb__verify(&r.p->image, (uint32_t)(b - r.p->image.codes), NULL, NULL)) {
                accepted++;
                bytecode_run_once(&r);
            }
            b->at = good;
            free(bad);
        }
        bytecode_close(&r);
        free(text.s);
    }
    print_message("%llu of %llu accepted\n", (unsigned long long)accepted, (unsigned long long)all);
    assert_true(accepted > all / 50 && accepted < all);
}

/* ---- what the verifier refuses ---- */

static const char small[] = "type P = { a: i64, s: string }\n"
                            "fn f(p: P, n: i64) -> i64 { var t = 0; for i in 0..n { t += p.a; } t }\n"
                            "fn main() { print(str(f(P { a: 1, s: \"x\" }, 2))); }\n";

static bool verifies(const bytecode_run *r, const uint32_t *code, uint32_t n, const char **why) {
    ebb__bytecode *b = &r->p->image.codes[0];
    ebb__bytecode good = *b;
    uint32_t *copy = malloc((n + 1) * sizeof *copy);
    memcpy(copy, code, n * sizeof *copy);
    b->at = copy;
    b->n = n;
    bool ok = ebb__verify(&r->p->image, 0, why, NULL);
    *b = good;
    free(copy);
    return ok;
}

#define CODE(op, a, b, c) ((uint32_t)EBB__VM_##op | (a)*256u | (b)*65536u | (c)*16777216u)

static void the_verifier_names_what_is_wrong(void **state) {
    (void)state;
    bytecode_run r = {0};
    bytecode_open(&r, small, sizeof small - 1, BUDGET);
    assert_string_equal(r.p->image.ir->fns[0]->name, "f"); /* r0: p; w0: n */
    static const struct {
        uint32_t n, code[4];
        const char *why;
    } bad[] = {
        {0, {0}, "there is no code"},
        {1, {CODE(RETURN_W, 0, 0, 0)}, NULL},
        {1, {EBB__VM_OPS}, "no such instruction"},
        {1, {CODE(UNIT, 0, 0, 0)}, "the instruction is cut"},
        {1, {CODE(MOVE_W, 1, 0, 0)}, "the code does not end"},
        {1, {CODE(RETURN_W, 1, 0, 0)}, "the word is not set"},
        {1, {CODE(RETURN_W, 200, 0, 0)}, "the word is not set"},
        {2, {CODE(MOVE_R, 100, 0, 0), CODE(RETURN_W, 0, 0, 0)}, "no such reference register"},
        {2, {CODE(GET_W, 1, 0, 0), CODE(RETURN_W, 0, 0, 0)}, "the types do not fit the instruction"},
        {2, {CODE(GET_W, 1, 0, 1), CODE(RETURN_W, 1, 0, 0)}, NULL},
        {2, {CODE(GET_W, 1, 0, 2), CODE(RETURN_W, 1, 0, 0)}, "the types do not fit the instruction"},
        {1, {CODE(RETURN_R, 0, 0, 0)}, "the types do not fit the instruction"},
        {2, {CODE(PRINT, 0, 0, 0), CODE(RETURN_W, 0, 0, 0)}, "the types do not fit the instruction"},
        {1, {CODE(LOOP, 0, 0, 0)}, NULL},
        {1, {CODE(JUMP, 0, 0, 0)}, "only LOOP goes back, and only back"},
        {1, {CODE(LOOP, 9, 0, 0)}, "the jump leads to no instruction"},
        {4,
         {CODE(JUMP, 2, 0, 0), CODE(BOX, 1, 0, 0), 4, CODE(RETURN_W, 0, 0, 0)},
         "the jump leads to no instruction"},
        {4, {CODE(JUMP_IF, 0, 2, 0), CODE(INT, 1, 7, 0), CODE(RETURN_W, 1, 0, 0), 0}, "the word is not set"},
        {3, {CODE(CALL_W, 1, 0, 0), 99, CODE(RETURN_W, 0, 0, 0)}, "no such function"},
        {3, {CODE(CALL_W, 1, 0, 0), 0, CODE(RETURN_W, 1, 0, 0)}, NULL},
        {3, {CODE(CALL_W, 1, 1, 0), 0, CODE(RETURN_W, 1, 0, 0)}, "the reference is not set"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why;
        bool ok = verifies(&r, bad[i].code, bad[i].n, &why);
        if (ok != (bad[i].why == NULL)) fail_msg("row %zu: %s", i, ok ? "accepted" : why);
        if (!ok) assert_string_equal(why, bad[i].why);
    }
    bytecode_close(&r);
}

/* ---- faults ---- */

/* Each instruction of each function is one that traps, in a run of its own. */
static void a_fault_at_any_instruction_leaves_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < PATHS; i++) {
        lang_text text = lang_read(paths[i]);
        bytecode_run r = {0};
        bytecode_open(&r, text.s, text.n, EBB__DISPATCH_BUDGET);
        uint64_t reached = 0;
        for (uint32_t f = 0; f < r.p->image.n_codes; f++) {
            ebb__bytecode *b = &r.p->image.codes[f];
            uint32_t *code = malloc(b->n * sizeof *code);
            const uint32_t *good = b->at;
            b->at = code;
            for (uint32_t pc = 0; pc < b->n; pc += 1u + ebb__vm_infos[good[pc] & 255].extra) {
                memcpy(code, good, b->n * sizeof *code);
                code[pc] = EBB__VM_UNREACHABLE;
                uint64_t before = r.faults;
                bytecode_run_once(&r);
                reached += r.faults > before;
            }
            b->at = good;
            free(code);
        }
        assert_true(reached > 20);
        bytecode_close(&r);
        free(text.s);
    }
}

static void a_fault_at_any_unit_of_the_budget_leaves_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < PATHS; i++) {
        lang_text text = lang_read(paths[i]);
        bytecode_run r = {0};
        bytecode_open(&r, text.s, text.n, 0);
        for (int64_t budget = 0; budget < 60; budget++) {
            r.p->budget = budget;
            bytecode_run_once(&r);
        }
        bytecode_close(&r);
        free(text.s);
    }
}

/* Without memory for its timer the dispatcher looks at the clock in each turn, so the turns are counted. */
static void run_without_memory(program_world *x) {
    (void)ebb_program_start(x->p);
    for (int i = 0; i < 20; i++) {
        (void)ebb_runtime_pump(x->w->rt, 20);
        uint64_t due = ebb_runtime_next_due(x->w->rt);
        if (due != EBB_FOREVER) ebb_runtime_advance(x->w->rt, due);
    }
}

/* The n-th allocation fails, for every n; from then on all of them, or that one. */
static bool exhaust(const char *path, const lang_text *text, uint64_t n, bool all) {
    program_world x = program_new(path, text->s, text->n);
    x.silent = true;
    ebb_failing *memory = &x.w->memory;
    uint64_t failures = memory->failures;
    memory->fail_at = memory->calls + n;
    memory->fail_after = all;
    ebb_program_opts opts = program_opts(&x);
    ebb_status st = ebb_program_new(x.c, &opts, &x.p);
    if (st == EBB_OK) st = ebb_program_open(x.w->host, x.p);
    if (st == EBB_OK) run_without_memory(&x);
    else assert_int_equal(st, EBB_ERR_NOMEM);
    bool failed = memory->failures > failures;
    memory->fail_at = 0;
    memory->fail_after = false;
    if (x.p != NULL) {
        if (x.p->ms != NULL) {
            world_finish(x.w);
            ebb_region_cancel(x.w->host, ebb_machines_region(x.p->ms), EBB_CANCEL_USER, "test");
            world_finish(x.w);
        }
        assert_int_equal(x.p->blocks, x.p->n_specs);
        assert_int_equal(ebb_program_free(x.p), EBB_OK);
    }
    program_end(&x);
    return failed;
}

static void a_failed_allocation_is_a_fault_and_nothing_leaks(void **state) {
    (void)state;
    for (size_t i = 0; i < PATHS; i++) {
        lang_text text = lang_read(paths[i]);
        uint64_t n = 1;
        while (exhaust(paths[i], &text, n, n % 2 == 0)) n++;
        assert_true(n > 15);
        free(text.s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_compiler_makes_is_accepted),
        cmocka_unit_test(what_the_verifier_accepts_runs_clean),
        cmocka_unit_test(the_verifier_names_what_is_wrong),
        cmocka_unit_test(a_fault_at_any_instruction_leaves_nothing),
        cmocka_unit_test(a_fault_at_any_unit_of_the_budget_leaves_nothing),
        cmocka_unit_test(a_failed_allocation_is_a_fault_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
