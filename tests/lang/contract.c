/* What the source document demands of the front end, by its own names: Frozen Invariants, Diagnostics (Planned), milestones.
 * The programs are those of fixtures/lang/codes. */
#include "tests/support/lang_world.h"

#include "lang/check.h"

/* Whether compiling a file raises a code. "" asks for no diagnostic at all. */
static bool raises(const char *path, const char *code) {
    lang_text text = lang_read(path);
    lang_modules m = {0};
    ebb_lang *c = lang_new(&m);
    size_t n;
    bool found = false;
    (void)ebb_lang_compile(c, path, text.s, text.n);
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) found = found || strcmp(all[i]->code, code) == 0;
    if (code[0] == 0) found = n == 0;
    ebb_lang_free(c);
    lang_modules_free(&m);
    free(text.s);
    return found;
}

static void holds(const char *code) {
    char path[128];
    snprintf(path, sizeof path, "fixtures/lang/codes/%s.bad.ebb", code);
    assert_true(raises(path, code));
    snprintf(path, sizeof path, "fixtures/lang/codes/%s.ok.ebb", code);
    assert_true(raises(path, ""));
}

/* A program in a text. */
static bool says(const char *text, const char *code) {
    ebb_lang *c = lang_new(NULL);
    size_t n;
    bool found = false;
    (void)ebb_lang_compile(c, "x.ebb", text, strlen(text));
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) found = found || strcmp(all[i]->code, code) == 0;
    if (code[0] == 0) found = n == 0;
    ebb_lang_free(c);
    return found;
}

static void invariant_1_a_managed_machine_is_not_called_and_its_value_is_gone(void **state) {
    (void)state;
    holds("E0505");
    assert_true(says("typestate V { fn new() -> A { A } state A { fn go() -> B { B } } state B; }\n"
                     "fn main() { let v = V::new(); let m = spawn(v); start(m); let w = v.go(); w; }",
                     "E0501"));
}

static void invariant_4_a_handler_of_the_state_hides_the_default(void **state) {
    (void)state;
    static const char text[] = "type Ping = {}\n"
                               "typestate M { fn new() -> A { A } on Ping { print(\"default\"); }\n"
                               "state A { on Ping -> B { B } } state B; }";
    ebb_lang *c = lang_new(NULL);
    assert_int_equal(ebb_lang_compile(c, "x.ebb", text, sizeof text - 1), EBB_OK);
    const ebb__program *p = ebb__lang_program(c);
    assert_int_equal(p->machines[0].states[0].n_entries, 1);
    assert_int_equal(p->machines[0].states[1].n_entries, 1);
    assert_string_equal(p->machines[0].states[0].entries[0].fn->name, "M.A.on Ping");
    assert_string_equal(p->machines[0].states[1].entries[0].fn->name, "M.*.on Ping");
    ebb_lang_free(c);
}

static void invariant_5_handles_are_typed_and_ids_are_never_made_or_compared(void **state) {
    (void)state;
    holds("E0806");
    holds("E0801");
    holds("E0510");
}

static void invariant_6_exactly_one_reply_on_every_normal_way_out(void **state) {
    (void)state;
    holds("E0506");
    holds("E0507");
    holds("E0509");
    holds("E0511");
}

static void invariant_6_a_fault_owes_no_reply(void **state) {
    (void)state;
    static const char text[] =
        "@error type Bad = {}\n"
        "protocol P { msg Q msg R req C -> S: Q => R role C; role S { state A { on Q { effects: [reply R] } "
        "} } }\n"
        "fn check(ok: bool) -> () | Bad { if !ok { return Bad; } }\n"
        "typestate S : P::S { fn new() -> A { A }\n"
        "state A { on Q -> stay | Bad { check(true)?; if false { trap(\"no\"); } reply(R); } } }";
    assert_true(says(text, ""));
}

static void invariant_7_conformance_is_shape_and_no_more(void **state) {
    (void)state;
    holds("E0703");
    holds("E0704");
    holds("E0705");
    /* A state that does not handle what may arrive there is no error. */
    assert_true(says(
        "type Ping = {}\ntype Pong = {}\n"
        "typestate M { fn new() -> A { A } state A { on Ping -> B { B } } state B { on Pong -> A { A } } }",
        ""));
}

static void invariant_8_handlers_of_one_response_are_disjoint_and_determined(void **state) {
    (void)state;
    holds("E0602");
    holds("E0603");
    holds("E0604");
}

static void diagnostic_1_duplicate_on_for_the_same_state_and_payload(void **state) {
    (void)state;
    holds("E0601");
}

static void diagnostic_2_overlapping_pattern_form_handlers(void **state) {
    (void)state;
    holds("E0602");
}

static void diagnostic_3_ambiguous_provenance_requires_for(void **state) {
    (void)state;
    holds("E0603");
}

static void diagnostic_4_missing_required_transition_handler(void **state) {
    (void)state;
    holds("E0703");
}

static void diagnostic_5_invalid_send_or_request_target_or_payload(void **state) {
    (void)state;
    holds("E0709");
    holds("E0801");
    holds("E0804");
    holds("E0805");
}

static void diagnostic_6_invalid_reply_payload(void **state) {
    (void)state;
    holds("E0802");
}

static void diagnostic_7_capability_not_consumed_on_all_paths(void **state) {
    (void)state;
    holds("E0506");
}

static void diagnostic_8_capability_consumed_multiple_times(void **state) {
    (void)state;
    holds("E0507");
}

static void diagnostic_9_managed_machine_used_via_direct_call(void **state) {
    (void)state;
    holds("E0505");
}

static void diagnostic_10_a_delivery_failure_is_surfaced_at_the_call(void **state) {
    (void)state;
    holds("W0901");
}

static void milestone_1_typestates_implement_roles_by_path(void **state) {
    (void)state;
    holds("E0701");
    holds("E0702");
    holds("E0706");
}

static void milestone_1_shorthands_are_the_canonical_handler(void **state) {
    (void)state;
    assert_true(says("type Ping = { n: i64 }\n"
                     "typestate M { fn new() -> A { A }\n"
                     "state A { on Ping(p: Ping) -> B { p; B } } state B { on Ping(p) -> C { p; C } } state "
                     "C { on Ping {} } }",
                     ""));
    holds("E0610");
}

static void there_is_no_async_no_restart_and_no_way_around_a_reply(void **state) {
    (void)state;
    assert_true(says("async fn f() {}", "E0105"));
    assert_true(says("typestate M { fn new() -> A { A } state A; }\n"
                     "fn main() { let m = M::spawn(); start(m); restart(m); }",
                     "E0201"));
    assert_true(says(
        "protocol P { msg Q msg R req C -> S: Q => R role C; role S { state A { on Q { effects: [reply R] } "
        "} } }\n"
        "typestate S : P::S { fn new() -> A { A }\nstate A { @no_reply on Q {} } }",
        "E0105"));
}

static void each_primitive_has_its_forms(void **state) {
    (void)state;
    static const char text[] =
        "type Note = {}\n"
        "protocol P { msg Q msg R req C -> S: Q => R role C; role S { state A { on Q { effects: [reply R] } "
        "} } }\n"
        "typestate S : P::S { fn new() -> A { A }\n"
        "state A { on Q(_q, cap: ReplyCap<R>) { reply(cap, R); } on Note {} } }\n"
        "typestate C { fields { s: Machine<S> } fn new(s: Machine<S>) -> A { A { s } }\n"
        "state A { on Note -> stay | MachineError {\n"
        "  send(self.s, Note)?; self.s.send(Note)?; emit Send(self.s, Note)?;\n"
        "  request(self.s, P::Q)?; self.s.request(P::Q)?;\n"
        "  let pending = emit Request(self.s, P::Q)?; forget(pending);\n"
        "} on P::R {} on RequestFailed {} } }\n"
        "fn main() -> () | MachineError { let s = S::spawn(); start(s); let c = C::spawn(s); start(c); "
        "send(c, "
        "Note)?; }\n";
    assert_true(says(text, ""));
    holds("E0806");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invariant_1_a_managed_machine_is_not_called_and_its_value_is_gone),
        cmocka_unit_test(invariant_4_a_handler_of_the_state_hides_the_default),
        cmocka_unit_test(invariant_5_handles_are_typed_and_ids_are_never_made_or_compared),
        cmocka_unit_test(invariant_6_exactly_one_reply_on_every_normal_way_out),
        cmocka_unit_test(invariant_6_a_fault_owes_no_reply),
        cmocka_unit_test(invariant_7_conformance_is_shape_and_no_more),
        cmocka_unit_test(invariant_8_handlers_of_one_response_are_disjoint_and_determined),
        cmocka_unit_test(diagnostic_1_duplicate_on_for_the_same_state_and_payload),
        cmocka_unit_test(diagnostic_2_overlapping_pattern_form_handlers),
        cmocka_unit_test(diagnostic_3_ambiguous_provenance_requires_for),
        cmocka_unit_test(diagnostic_4_missing_required_transition_handler),
        cmocka_unit_test(diagnostic_5_invalid_send_or_request_target_or_payload),
        cmocka_unit_test(diagnostic_6_invalid_reply_payload),
        cmocka_unit_test(diagnostic_7_capability_not_consumed_on_all_paths),
        cmocka_unit_test(diagnostic_8_capability_consumed_multiple_times),
        cmocka_unit_test(diagnostic_9_managed_machine_used_via_direct_call),
        cmocka_unit_test(diagnostic_10_a_delivery_failure_is_surfaced_at_the_call),
        cmocka_unit_test(milestone_1_typestates_implement_roles_by_path),
        cmocka_unit_test(milestone_1_shorthands_are_the_canonical_handler),
        cmocka_unit_test(there_is_no_async_no_restart_and_no_way_around_a_reply),
        cmocka_unit_test(each_primitive_has_its_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
