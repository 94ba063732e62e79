/* The examples of the source document, and ours: each block goes through the parser, whole or in a typestate, and what is
 * said about it is known; the programs of examples/lang are accepted without a word. */
#include "tests/support/lang_world.h"

#include "lang/check.h"

/* The codes of a program, in order, with a blank behind each. */
static lang_text codes_of(const char *path) {
    lang_text text = lang_read(path), codes = lang_empty();
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    size_t n;
    (void)ebb_lang_compile(c, path, text.s, text.n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) {
        lang_write(&codes, all[i]->code, 5);
        lang_write(&codes, " ", 1);
    }
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(text.s);
    return codes;
}

static void every_block_of_the_source_is_parsed(void **state) {
    (void)state;
    static const struct {
        const char *name, *codes;
    } blocks[] = {
        {"01_payloads", ""},
        {"02_protocol_roles", "E0702 "}, /* its Client lacks `state Ready;` */
        {"03_implements_role", "E0701 E0107 E0701 E0107 "},
        {"04_state_handler", "E0401 E0201 E0107 "},
        {"05_response_provenance", "E0401 E0201 E0201 E0403 E0201 E0201 E0201 E0403 E0201 "},
        {"06_canonical_response", "E0201 E0201 E0403 E0403 E0201 E0201 E0201 E0201 E0201 E0201 E0201 "},
        {"07_default_handler", "E0201 E0403 E0201 "},
        {"08_inter_machine", "W0901 W0902 "},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        char path[128];
        snprintf(path, sizeof path, "fixtures/lang/blocks/004_%s.ebb", blocks[i].name);
        lang_text codes = codes_of(path);
        for (size_t at = 0; at < codes.n; at += 6) { /* a hole is all that the parser has to say */
            bool syntax = memcmp(codes.s + at, "E01", 3) == 0;
            assert_true(!syntax || memcmp(codes.s + at, "E0107", 5) == 0);
        }
        assert_string_equal(codes.s, blocks[i].codes);
        free(codes.s);
    }
}

static size_t examples;

static void is_accepted(const char *path) {
    lang_text codes = codes_of(path);
    if (codes.n > 0) fail_msg("%s: %s", path, codes.s);
    free(codes.s);
    examples++;
}

static void the_examples_are_accepted_without_a_word(void **state) {
    (void)state;
    examples = 0;
    lang_each("examples/lang/*.ebb", is_accepted);
    assert_true(examples >= 10);
}

/* What a back end reads: the authorisation protocol, down to its tables. */
static const ebb__ir_machine *machine_named(const ebb__program *p, const char *name) {
    for (uint32_t i = 0; i < p->n_machines; i++) {
        if (strcmp(p->machines[i].name, name) == 0) return &p->machines[i];
    }
    fail_msg("no machine %s", name);
    return NULL;
}

static bool contains(const ebb__ir *x, uint8_t op) {
    if (x->op == op) return true;
    for (uint32_t i = 0; i < x->n; i++) {
        if (contains(x->args[i], op)) return true;
    }
    return false;
}

static void the_program_of_an_example_has_tables_slots_and_typed_bodies(void **state) {
    (void)state;
    lang_text text = lang_read("examples/lang/auth.ebb");
    ebb_lang *c = lang_new(NULL);
    assert_int_equal(ebb_lang_compile(c, "auth.ebb", text.s, text.n), EBB_OK);
    const ebb__program *p = ebb__lang_program(c);
    assert_non_null(p);
    assert_non_null(p->main);
    const ebb__ir_machine *m = machine_named(p, "Connection");
    assert_int_equal(m->n_states, 2);
    assert_string_equal(m->states[0].name, "Running");
    assert_int_equal(m->states[0].n_entries, 4);
    for (uint32_t i = 0; i < m->states[0].n_entries; i++) {
        const ebb__ir_entry *e = &m->states[0].entries[i];
        assert_in_range(e->kind, 1, p->n_kinds - 1);
        assert_non_null(e->fn);
        assert_true(e->fn->n_params <= e->fn->n_slots);
        assert_false(contains(e->fn->body, EBB__OP_INVALID));
        if (i > 0) assert_true(m->states[0].entries[i - 1].kind <= e->kind);
    }
    const ebb__ir_machine *service = machine_named(p, "AuthService");
    assert_int_equal(service->states[0].n_entries, 1);
    const ebb__ir_entry *ask = &service->states[0].entries[0];
    assert_true(ask->fn->has_implicit_cap);
    assert_true(contains(ask->fn->body, EBB__OP_REPLY));
    assert_int_not_equal(p->kinds[ask->kind].responses, 0);
    assert_int_equal(p->kinds[ask->kind].within_ms, 5000);
    ebb_lang_free(c);
    free(text.s);
}

static void an_item_with_a_syntax_error_brings_no_consequences(void **state) {
    (void)state;
    static const char text[] = "typestate M {\n"
                               "    fn new() -> A { A }\n"
                               "    state A { on Nothing -> Nowhere { unknown(1) } }\n"
                               "type T = { n: i64 }\n"
                               "fn f(t: T) -> string { t.n }\n";
    ebb_lang *c = lang_new(NULL);
    size_t n;
    assert_int_equal(ebb_lang_compile(c, "x.ebb", text, sizeof text - 1), EBB_FAILED);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    assert_int_equal(n, 2);
    assert_string_equal(all[0]->code, "E0106");
    assert_string_equal(all[1]->code, "E0301"); /* another item is checked */
    ebb_lang_free(c);
}

static void expect_codes(const char *text, const char *wanted) {
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    lang_text codes = lang_empty();
    size_t n;
    (void)ebb_lang_compile(c, "x.ebb", text, strlen(text));
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) lang_write(&codes, all[i]->code, 5), lang_write(&codes, " ", 1);
    assert_string_equal(codes.s, wanted);
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(codes.s);
}

static void a_name_that_is_declared_twice_brings_no_consequences(void **state) {
    (void)state;
    expect_codes("protocol Queue { msg Put role Worker { state S { on Put; } } }\n"
                 "typestate Queue : Queue::Worker {\n"
                 "    fn new() -> S { S }\n"
                 "    state S { on Put {} }\n"
                 "}\n"
                 "fn use(q: Machine<Queue>) -> () | MachineError { send(q, Queue::Put)?; }\n"
                 "fn main() -> () | MachineError { use(Queue::spawn())?; }\n",
                 "E0202 ");
}

static void a_role_that_is_not_known_brings_no_consequences(void **state) {
    (void)state;
    expect_codes("protocol P { msg Put role Worker { state S { on Put; } } }\n"
                 "typestate T : P::Wroker {\n"
                 "    fields { other: Machine<P::Worker> as Worker }\n"
                 "    fn new(other: Machine<P::Worker>) -> S { S { other } }\n"
                 "    state S { on Put -> stay | MachineError { send(self.other, Put)?; } }\n"
                 "}\n",
                 "E0701 ");
}

static void a_request_in_a_function_brings_no_consequences(void **state) {
    (void)state;
    expect_codes("protocol P {\n"
                 "    msg Q\n"
                 "    msg R\n"
                 "    req X -> Y: Q => R\n"
                 "    role X;\n"
                 "    role Y { state S { on Q { effects: [reply R] } } }\n"
                 "}\n"
                 "typestate T {\n"
                 "    fields { y: Machine<P::Y> }\n"
                 "    fn new(y: Machine<P::Y>) -> S { S { y } }\n"
                 "    fn ask() -> () | MachineError { request(self.y, P::Q)?; }\n"
                 "    state S {\n"
                 "        on P::R for P::Q -> stay | MachineError { self.ask()?; }\n"
                 "        on RequestFailed for P::Q {}\n"
                 "    }\n"
                 "}\n",
                 "E0807 ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_of_the_source_is_parsed),
        cmocka_unit_test(the_examples_are_accepted_without_a_word),
        cmocka_unit_test(an_item_with_a_syntax_error_brings_no_consequences),
        cmocka_unit_test(a_name_that_is_declared_twice_brings_no_consequences),
        cmocka_unit_test(a_role_that_is_not_known_brings_no_consequences),
        cmocka_unit_test(a_request_in_a_function_brings_no_consequences),
        cmocka_unit_test(the_program_of_an_example_has_tables_slots_and_typed_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
