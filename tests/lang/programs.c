/* Programs run: those of fixtures/lang/run say what their lines "//> " say, and so do the examples. */
#include "tests/support/program_world.h"

static void says_what_it_should(const char *path) {
    lang_text text = lang_read(path), expected = program_expects(&text);
    lang_text said = program_says(path, text.s, text.n, NULL);
    if (strcmp(said.s, expected.s) != 0) {
        fprintf(stderr, "%s says\n%snot\n%s", path, said.s, expected.s); /* fail_msg cuts it */
        fail();
    }
    free(text.s);
    free(expected.s);
    free(said.s);
}

static void every_program_says_what_its_comments_say(void **state) {
    (void)state;
    lang_each("fixtures/lang/run/*.ebb", says_what_it_should);
}

static const struct {
    const char *name, *says;
} examples[] = {
    {"auth", "alice may\n"},
    {"commit", "order 7 committed\norder 8 committed\n"},
    {"commit_naive", "order 7 committed\norder 8 committed\n"}, /* in this schedule */
    {"connection", "connecting to example.net\nidle after 32 bytes\n"},
    {"fault", "rolled back with the rest if what follows fails\n"
              "! fault Divider Divide: an error was passed on: ByZero\n"
              "! dead Divider Divide: the machine has faulted\n"},
    {"light", "switched on 1 times\n"},
    {"philosophers", "1 eats\n0 eats\n2 eats\n"},
    {"philosophers_naive", NULL}, /* they wait for ever */
    {"request", "2 more is 2\n"},
    {"valve", "18\n"},
    {"vending", "tea, and 30 back\n"},
};

static void every_example_says_what_it_should(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        char path[128];
        ebb_program_end end;
        snprintf(path, sizeof path, "examples/lang/%s.ebb", examples[i].name);
        lang_text text = lang_read(path), said = program_says(path, text.s, text.n, &end);
        if (examples[i].says != NULL) assert_string_equal(said.s, examples[i].says);
        assert_int_equal(end.waiting, examples[i].says == NULL ? 3 : 0);
        assert_int_equal(end.main, EBB_OK);
        free(text.s);
        free(said.s);
    }
}

static size_t seen;

static void is_an_example(const char *path) {
    (void)path;
    seen++;
}

static void no_example_is_left_out(void **state) {
    (void)state;
    seen = 0;
    lang_each("examples/lang/*.ebb", is_an_example);
    assert_int_equal(seen, sizeof examples / sizeof *examples);
}

/* ---- how it has ended ---- */

static const char hot_text[] = "type Go = {}\n"
                               "typestate M { fn new() -> On { On } state On { on Go { assert(false); } } }\n"
                               "typestate N { fn new() -> On { On } state On { on Go {} }\n"
                               "  state Off; invariant false; fault -> Off; }\n"
                               "spec Ends observes Go { state Off { on Go -> On { On } } hot state On; }\n"
                               "spec Other observes Go { hot state On; }\n"
                               "fn main() -> () | MachineError { let m = M::spawn(); let n = N::spawn();\n"
                               "  start(m); start(n); send(m, Go)?; send(n, Go)?; }\n";

static void report_in_short(void *ctx, const ebb_program_event *e) {
    char line[64];
    if (e->what != EBB_PROGRAM_FAULT) return;
    int n = snprintf(line, sizeof line, "%s %s %d\n", e->name, e->broken, e->goes_on);
    lang_write(&((program_world *)ctx)->said, line, (size_t)n);
}

static void a_fault_says_what_is_broken_and_the_end_names_a_hot_spec(void **state) {
    (void)state;
    program_world x = program_new("hot.ebb", hot_text, sizeof hot_text - 1);
    ebb_program_opts opts = program_opts(&x);
    ebb_program_end end;
    opts.report = report_in_short;
    assert_int_equal(ebb_program_new(x.c, &opts, &x.p), EBB_OK);
    assert_int_equal(ebb_program_open(x.w->host, x.p), EBB_OK);
    program_run(&x);
    assert_string_equal(x.said.s, "N invariant 1\nM assert 0\n");
    ebb_program_end_of(x.p, &end);
    assert_int_equal(end.hot, 1);
    assert_string_equal(end.hot_spec, "Other");
    assert_string_equal(end.hot_state, "On");
    program_stop(&x, NULL);
    program_end(&x);
}

static void record(const char *path, lang_text *out) {
    lang_text text = lang_read(path);
    program_world x = program_new(path, text.s, text.n);
    program_open(&x);
    program_run(&x);
    program_stop(&x, NULL);
    *out = lang_empty();
    lang_write(out, (const char *)x.w->trace, x.w->trace_n);
    program_end(&x);
    free(text.s);
}

static void the_same_program_gives_the_same_trace(void **state) {
    (void)state;
    lang_text once, twice;
    record("fixtures/lang/run/requests.ebb", &once);
    record("fixtures/lang/run/requests.ebb", &twice);
    assert_true(once.n > 4096);
    assert_int_equal(once.n, twice.n);
    assert_memory_equal(once.s, twice.s, once.n);
    free(once.s);
    free(twice.s);
}

/* ---- the host ---- */

static const char host_text[] =
    "type Add = { n: i64, u: u64, yes: bool, what: string, raw: bytes, span: duration }\n"
    "type Plain = {}\n"
    "typestate Sum { fields { n: i64 } fn new() -> On { On { n: 0 } }\n"
    "  state On { entry { subscribe(Plain, \"all\"); }\n"
    "    on Add(a) { self.n += a.n; print(f\"{self.n} {a.u} {a.yes} {a.what} {a.raw} {a.span}\"); }\n"
    "    on Plain { print(\"plain\"); } } }\n"
    "fn main() { let s = Sum::spawn(); start(s); print(f\"{s}\"); }\n";

static ebb_machine first_machine(const program_world *x) {
    return (ebb_machine){ebb__machine_id(x->p->ms, x->p->ms->youngest)};
}

static void the_host_sends_messages_by_name(void **state) {
    (void)state;
    program_world x = program_new("host.ebb", host_text, sizeof host_text - 1);
    program_open(&x);
    program_run(&x);
    assert_true(ebb_program_is_quiet(x.p));
    ebb_program_field fields[] = {{.name = "n", .i64 = -5},
                                  {.name = "u", .u64 = UINT64_MAX},
                                  {.name = "yes", .boolean = true},
                                  {.name = "what", .bytes = "x", .n = 1},
                                  {.name = "raw", .bytes = "\0\"", .n = 2},
                                  {.name = "span", .i64 = 90000}};
    assert_int_equal(ebb_program_send(x.p, first_machine(&x), "Add", fields, 6), EBB_OK);
    assert_int_equal(ebb_program_send(x.p, first_machine(&x), "Add", fields, 5), EBB_ERR_INVALID);
    assert_int_equal(ebb_program_send(x.p, first_machine(&x), "Subtract", fields, 6), EBB_ERR_INVALID);
    assert_int_equal(ebb_program_publish(x.p, "Plain", "all", NULL, 0), EBB_OK);
    assert_int_equal(ebb_program_publish(x.p, "Plain", "other", NULL, 0), EBB_OK);
    world_finish(x.w);
    assert_string_equal(x.said.s, "Sum#1\n! dead - Plain: nobody has subscribed\n"
                                  "-5 18446744073709551615 true x b\"\\0\\\"\" 90s\nplain\n");
    program_stop(&x, NULL);
    program_end(&x);
}

static void a_program_is_opened_and_started_once(void **state) {
    (void)state;
    program_world x = program_new("host.ebb", host_text, sizeof host_text - 1);
    ebb_program_opts opts = program_opts(&x);
    ebb_program *none;
    assert_int_equal(ebb_program_new(x.c, &opts, &x.p), EBB_OK);
    assert_int_equal(ebb_program_start(x.p), EBB_ERR_INVALID);
    assert_int_equal(ebb_program_open(x.w->host, x.p), EBB_OK);
    assert_int_equal(ebb_program_open(x.w->host, x.p), EBB_ERR_RESOLVED);
    assert_int_equal(ebb_program_start(x.p), EBB_OK);
    assert_int_equal(ebb_program_start(x.p), EBB_ERR_RESOLVED);
    assert_int_equal(ebb_program_free(x.p), EBB_ERR_BUSY);
    opts.allocator.fn = NULL;
    assert_int_equal(ebb_program_new(x.c, &opts, &none), EBB_ERR_INVALID);
    program_stop(&x, NULL);
    program_end(&x);
}

static void a_function_with_too_many_variables_is_named(void **state) {
    (void)state;
    lang_text text = lang_empty();
    const char *head = "fn large(n: i64) -> i64 {\n", *tail = " }\nfn main() { print(str(large(1))); }\n";
    lang_write(&text, head, strlen(head));
    for (int i = 0; i < 300; i++) {
        char line[64];
        lang_write(&text, line, (size_t)snprintf(line, sizeof line, "let a%d = n + %d;\n", i, i));
    }
    lang_write(&text, "a0", 2);
    for (int i = 1; i < 150; i++) {
        char line[64];
        lang_write(&text, line, (size_t)snprintf(line, sizeof line, " + a%d", i));
    }
    lang_write(&text, tail, strlen(tail));
    program_world x = program_new("large.ebb", text.s, text.n);
    ebb_program_opts opts = program_opts(&x);
    assert_int_equal(ebb_program_new(x.c, &opts, &x.p), EBB_ERR_LIMIT);
    assert_null(x.p);
    assert_non_null(strstr(x.said.s, "! limit large -: more than 250 variables"));
    program_end(&x);
    free(text.s);
}

static void a_program_with_too_many_messages_says_so(void **state) {
    (void)state;
    lang_text text = lang_empty();
    for (int i = 0; i < 65536; i++) {
        char line[32];
        lang_write(&text, line, (size_t)snprintf(line, sizeof line, "type T%d = {}\n", i));
    }
    lang_write(&text, "fn main() {}\n", 13);
    program_world x = program_new("large.ebb", text.s, text.n);
    ebb_program_opts opts = program_opts(&x);
    assert_int_equal(ebb_program_new(x.c, &opts, &x.p), EBB_ERR_LIMIT);
    assert_string_equal(x.said.s, "! limit the program -: more than 65,535 types\n");
    program_end(&x);
    free(text.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_program_says_what_its_comments_say),
        cmocka_unit_test(every_example_says_what_it_should),
        cmocka_unit_test(no_example_is_left_out),
        cmocka_unit_test(a_fault_says_what_is_broken_and_the_end_names_a_hot_spec),
        cmocka_unit_test(the_same_program_gives_the_same_trace),
        cmocka_unit_test(the_host_sends_messages_by_name),
        cmocka_unit_test(a_function_with_too_many_variables_is_named),
        cmocka_unit_test(a_program_with_too_many_messages_says_so),
        cmocka_unit_test(a_program_is_opened_and_started_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
