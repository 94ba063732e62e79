/* Scenarios that go on until nothing is left to do: timers are waited for, and machines too. */
#include "tests/support/program_world.h"

static ebb_lab *new_lab(void) {
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    assert_non_null(lab);
    return lab;
}

/* ---- a task that sleeps ---- */

enum { NAPS = 500 }; /* more decisions than the lab is patient */

typedef struct sleeper {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    uint32_t naps;
} sleeper;

static ebb_status sleeper_poll(ebb_cx *cx, void *state) {
    sleeper *s = state;
    ebb_status st;
    EBB_BEGIN(s);
    while (s->naps < NAPS) {
        EBB_AWAIT(s, st, ebb_sleep(cx, &s->nap, 1000 * EBB_MS));
        if (st != EBB_OK) return st;
        s->naps++;
    }
    EBB_END(s);
}

static ebb_status sleeper_setup(ebb_lab *lab) {
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, 0));
    return ebb_id_status(ebb_spawn(host, ebb_lab_region(lab, 0), sleeper_poll, ebb_lab_state(lab)).id);
}

static void sleeper_check(ebb_lab *lab) {
    const sleeper *s = ebb_lab_state(lab);
    uint32_t *least = ebb_lab_arg(lab);
    if (s->naps < *least) *least = s->naps;
    if (s->naps < NAPS) ebb_lab_fail_as(lab, "tired", "it was woken");
}

static void a_round_waits_for_its_timers_if_it_shall(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    uint32_t least = NAPS;
    ebb_lab_scenario s = {.name = "sleeper",
                          .about = "",
                          .state_size = sizeof(sleeper),
                          .setup = sleeper_setup,
                          .check = sleeper_check,
                          .until_quiet = true,
                          .arg = &least};
    ebb_lab_case c = {.scenario = &s, .seed = 1};
    ebb_lab_explore_result r;
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 50}, &r), EBB_OK);
    assert_int_equal(least, NAPS);
    s.until_quiet = false;
    assert_int_equal(ebb_lab_explore(lab, &c, NULL, &r), EBB_FAILED);
    assert_string_equal(r.failure.failure, "tired");
    assert_string_equal(c.failure, "tired");
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

/* ---- machines ---- */

static const char text[] =
    "type Go = { left: i64 }\n"
    "typestate Busy { fn new() -> On { On }\n"
    "  state On { on Go(g) -> stay | MachineError {\n"
    "    if g.left > 0 { send(self, Go { left: g.left - 1 })?; } else { print(\"done\"); } } } }\n"
    "typestate Bell { fn new() -> One { One }\n"
    "  state One { after 10ms -> Two { Two } }\n"
    "  state Two { after 10ms -> Three { Three } }\n"
    "  state Three { entry { print(\"rings\"); } } }\n"
    "fn main() -> () | MachineError {\n"
    "  let busy = Busy::spawn(); let bell = Bell::spawn(); start(busy); start(bell);\n"
    "  send(busy, Go { left: 20 })?; }\n";

typedef struct bells {
    ebb_lang *lang;
    ebb_program *p;
    lang_text said;
    bool early, late;
} bells;

static void bells_print(void *ctx, const char *line, size_t n) {
    lang_write(&((bells *)ctx)->said, line, n);
}

static ebb_status bells_setup(ebb_lab *lab) {
    bells *b = ebb_lab_arg(lab);
    ebb_program_opts opts = {
        .allocator = ebb_libc_allocator(), .parent = ebb_lab_region(lab, 0), .print = bells_print, .ctx = b};
    assert_int_equal(ebb_program_free(b->p), EBB_OK); /* its runtime is gone */
    b->said.n = 0;
    assert_int_equal(ebb_program_new(b->lang, &opts, &b->p), EBB_OK);
    assert_int_equal(ebb_program_open(ebb_runtime_host(ebb_lab_runtime(lab, 0)), b->p), EBB_OK);
    return ebb_program_start(b->p);
}

static void bells_check(ebb_lab *lab) {
    bells *b = ebb_lab_arg(lab);
    assert_int_equal(b->said.n, 9);
    if (memcmp(b->said.s, "ringsdone", 9) == 0) b->early = true;
    if (memcmp(b->said.s, "donerings", 9) == 0) b->late = true;
}

/* Both timers of the bell: the second is armed when machines are busy. */
static void time_may_move_on_while_machines_are_busy(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    bells b = {.lang = program_compile("bell.ebb", text, sizeof text - 1), .said = lang_empty()};
    const ebb_lab_scenario s = {.name = "bell",
                                .about = "",
                                .setup = bells_setup,
                                .check = bells_check,
                                .until_quiet = true,
                                .arg = &b};
    ebb_lab_case c = {.scenario = &s, .recorded = true};
    ebb_lab_result r;
    ebb_lab_explore_result e;
    assert_int_equal(ebb_lab_run(lab, &c, NULL, &r), EBB_OK);
    assert_true(b.late && !b.early); /* in the plain schedule time moves on when all wait */
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 100}, &e), EBB_OK);
    assert_true(b.early);
    ebb_lab_free(lab);
    assert_int_equal(ebb_program_free(b.p), EBB_OK);
    ebb_lang_free(b.lang);
    free(b.said.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_waits_for_its_timers_if_it_shall),
        cmocka_unit_test(time_may_move_on_while_machines_are_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
