/* Cancellation injection: good programs pass whatever the moment, and each planted bug is found and named. */
#include "kernel/layer.h"
#include "tests/support/world.h"
#include "workflow/audit.h"

#define MS(n) ((n)*EBB_MS)

/* ---- a program, and what can be wrong with it -------------------------------------------------------- */

typedef enum bug {
    NO_BUG,
    FORGETS,     /* does not resolve its obligation if it is stopped in its second step */
    LEAKS,       /* does not free its channel if it is stopped in its third step */
    SPINS,       /* a task outside of the workflow, which never ends once that is asked to stop */
    WAITS,       /* a task outside of the workflow, which waits for nobody */
    IGNORES,     /* a task of the workflow that does not hear a cancel */
    HALF_UNDONE, /* the handler undoes nothing if the work was stopped in its second step */
} bug;

typedef struct worker {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_wait wait;
    ebb_obligation fence;
    ebb_chan *channel;
    uint32_t step;
    ebb_status outcome;
} worker;

typedef struct undo {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    ebb_wait wait;
} undo;

typedef struct program {
    bug bug;
    worker worker;
    undo undo;
    ebb_sem turn;     /* who has it may change what is written: the work, and then the handler */
    uint32_t written; /* one a step; none is left of work that was stopped, all three of work that was not */
    uint32_t states;  /* that on_state was told */
    ebb_workflow target;
} program;

enum { STEPS = 3 };

/* Which bug the next program has. A state is zeroed before each run, so that it can't come with it. */
static bug planted;

static ebb_status write_one(ebb_cx *cx, program *p) {
    ebb_status st = ebb_id_status(p->worker.fence.id);
    if (st == EBB_OK) st = ebb_sleep(cx, &p->worker.nap, MS(10));
    p->written += st == EBB_OK;
    return st;
}

/* What it holds, however it ended. */
static ebb_status let_go(ebb_cx *cx, program *p) {
    worker *w = &p->worker;
    bool done = w->outcome == EBB_OK;
    if (done) (void)ebb_obligation_commit(cx, w->fence);
    else if (p->bug != FORGETS || w->step != 1) (void)ebb_obligation_abort(cx, w->fence);
    if (done || p->bug != LEAKS || w->step != 2) ebb_chan_free(w->channel);
    ebb_sem_release(cx, &p->turn);
    return w->outcome;
}

static ebb_status work(ebb_cx *cx, void *state) {
    program *p = state;
    worker *w = &p->worker;
    ebb_status st;
    EBB_BEGIN(w);
    EBB_AWAIT(w, st, ebb_sem_acquire(cx, &p->turn, &w->wait));
    if (st != EBB_OK) return st;
    w->outcome = ebb_chan_new(ebb_cx_runtime(cx), 1, sizeof(int), &w->channel);
    if (w->outcome != EBB_OK) return w->outcome;
    w->fence = ebb_obligation_reserve(cx, EBB_OBLIGATION_FENCE, NULL, NULL);
    for (w->step = 0; w->step < STEPS; w->step++) {
        w->outcome = ebb_stopping(cx) ? EBB_CANCELLED : EBB_OK;
        if (w->outcome == EBB_OK) EBB_AWAIT(w, w->outcome, write_one(cx, p));
        if (w->outcome != EBB_OK) break;
    }
    return let_go(cx, p);
    EBB_END(w);
}

/* One record at a time, until it has no time left. */
static ebb_status take_back(ebb_cx *cx, ebb_drain *d, void *state) {
    program *p = state;
    ebb_status st;
    EBB_BEGIN(&p->undo);
    EBB_AWAIT(&p->undo, st, ebb_sem_acquire(cx, &p->turn, &p->undo.wait));
    if (st != EBB_OK) return st;
    while (p->written > 0 && p->written < STEPS && !(p->bug == HALF_UNDONE && p->written == 1)) {
        EBB_AWAIT(&p->undo, st, ebb_sleep(cx, &p->undo.nap, MS(1)));
        if (st != EBB_OK) break;
        p->written--;
    }
    ebb_sem_release(cx, &p->turn);
    ebb_drain_evidence(d, "left", p->written == 0 ? "nothing" : "something");
    EBB_END(&p->undo);
}

static ebb_status spin(ebb_cx *cx, void *state) {
    program *p = state;
    ebb_workflow_report r;
    ebb_status st = ebb_workflow_report_of(cx, p->target, &r);
    if (st == EBB_OK && r.state == EBB_WORKFLOW_IDLE && !ebb_stopping(cx)) return EBB_PENDING;
    if (p->states < 2 || p->written == STEPS) return EBB_OK;
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_status wait_for_nobody(ebb_cx *cx, void *state) {
    (void)cx;
    (void)state;
    return EBB_PENDING;
}

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    program *p = arg;
    (void)wf;
    (void)from;
    (void)to;
    p->states++;
}

static ebb_status open_with(ebb_cx *cx, ebb_audit *audit, program *p, ebb_workflow_opts opts) {
    p->bug = planted;
    ebb_sem_init(&p->turn, 1);
    opts.audit = audit;
    opts.on_state = on_state;
    opts.arg = p;
    p->target = ebb_workflow_open(cx, &opts);
    ebb_status st = ebb_id_status(p->target.id);
    if (st == EBB_OK) st = ebb_workflow_on_drain(cx, p->target, "take back", take_back, p);
    if (st != EBB_OK) return st;
    ebb_region r = ebb_workflow_region(cx, p->target);
    st = ebb_id_status(ebb_spawn(cx, r, work, p).id);
    if (st == EBB_OK && p->bug == IGNORES) st = ebb_id_status(ebb_spawn(cx, r, wait_for_nobody, p).id);
    if (st == EBB_OK && p->bug == SPINS) st = ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), spin, p).id);
    if (st == EBB_OK && p->bug == WAITS)
        st = ebb_id_status(ebb_spawn(cx, ebb_cx_region(cx), wait_for_nobody, p).id);
    return st;
}

static ebb_status publish(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    program *p = state;
    ebb_status st =
        open_with(cx, audit, p, (ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .name = "v1"});
    *target = p->target;
    return st;
}

/* Whatever the moment: all or nothing, unless there was no time to undo it. */
static ebb_status all_or_nothing(void *state, const ebb_workflow_report *report) {
    const program *p = state;
    return p->written == 0 || p->written == STEPS || report->drain_timed_out ? EBB_OK : EBB_FAILED;
}

static ebb_injection injection(bug b) {
    planted = b;
    return (ebb_injection){
        .name = "publish", .setup = publish, .check = all_or_nothing, .state_size = sizeof(program)};
}

/* ---- good programs ----------------------------------------------------------------------------------- */

static ebb_injected passes(const ebb_injection *what) {
    ebb_injected out;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    ebb_status st = ebb_inject(ebb_failing_allocator(&memory), what, &out);
    if (st != EBB_OK) fail_msg("%s: %s", ebb_status_name(st), out.text);
    assert_string_equal(out.text, "");
    assert_int_equal(memory.live, 0);
    return out;
}

static void a_program_that_undoes_its_work_passes_at_every_point(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    ebb_injected out = passes(&what);
    /* One that counts. Then, before the first poll and after each, three ways to stop it, and three ways
     * to disturb it in each of the five states between the request and the end; and force after each poll
     * of the drain. */
    assert_true(out.points >= STEPS + 1);
    uint64_t cuts = out.runs - (1 + (out.points + 1) * (3 + 3 * 5));
    assert_in_range(cuts, out.points, out.runs);
    assert_int_equal(out.leaks, 0);
    /* By force before the request, with it, and in the drain: when it starts, and at each poll but the
     * last. */
    assert_in_range(out.forced, (out.points + 1) * 3 + 1, (out.points + 1) * 3 + cuts);
}

static void the_same_program_gives_the_same_runs(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    ebb_injected first = passes(&what), second = passes(&what);
    assert_memory_equal(&first, &second, sizeof first);
}

static ebb_status whole_process(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    program *p = state;
    ebb_status st =
        open_with(cx, audit, p, (ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .root = true});
    *target = p->target;
    return st;
}

static void the_workflow_of_the_root_can_be_the_target(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    what.setup = whole_process;
    assert_true(passes(&what).runs > 50);
}

static ebb_status nested(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    program *p = state;
    ebb_workflow outer =
        ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_lifecycle_shutdown, .audit = audit});
    if (ebb_id_status(outer.id) != EBB_OK) return ebb_id_status(outer.id);
    ebb_status st = open_with(
        cx, audit, p,
        (ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .parent = ebb_workflow_region(cx, outer)});
    *target = p->target;
    return st;
}

static void a_nested_workflow_can_be_the_target(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    what.setup = nested;
    assert_true(passes(&what).runs > 50);
}

static ebb_status patient(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    program *p = state;
    ebb_status st =
        open_with(cx, audit, p, (ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .no_force = true});
    *target = p->target;
    return st;
}

static void one_that_waits_for_an_operator_gets_one(void **state) {
    (void)state;
    ebb_injection what = injection(IGNORES);
    what.setup = patient;
    what.expect_leaks = true;
    ebb_injected out = passes(&what);
    assert_int_equal(out.leaks, out.runs);
}

/* ---- one that goes on for ever ----------------------------------------------------------------------- */

static ebb_status tick(ebb_cx *cx, void *state) {
    program *p = state;
    ebb_status st;
    EBB_BEGIN(&p->worker);
    while (!ebb_stopping(cx)) {
        EBB_AWAIT(&p->worker, st, ebb_sleep(cx, &p->worker.nap, 500 * EBB_MS));
        if (st != EBB_OK) return st;
        p->worker.step++;
    }
    EBB_END(&p->worker);
}

static ebb_status clockwork(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    *target = ebb_workflow_open(
        cx, &(ebb_workflow_opts){.type = &ebb_workflow_health_check_cancel, .audit = audit});
    if (ebb_id_status(target->id) != EBB_OK) return ebb_id_status(target->id);
    return ebb_id_status(ebb_spawn(cx, ebb_workflow_region(cx, *target), tick, state).id);
}

static void a_program_that_goes_on_for_ever_has_a_horizon(void **state) {
    (void)state;
    ebb_injected out = passes(&(ebb_injection){.setup = clockwork, .state_size = sizeof(program)});
    assert_in_range(out.points, 20, 30); /* 10 s, twice a second */
}

/* ---- planted bugs ------------------------------------------------------------------------------------ */

static void is_found(ebb_injection what, const char *text) {
    ebb_injected out;
    ebb_failing memory = {.inner = ebb_libc_allocator()};
    assert_int_equal(ebb_inject(ebb_failing_allocator(&memory), &what, &out), EBB_ERR_ORACLE);
    if (strstr(out.text, text) == NULL) fail_msg("expected '%s' in '%s'", text, out.text);
    if (strncmp(out.text, "publish, ", 9) != 0) fail_msg("expected the name first in '%s'", out.text);
    ebb_injected alone; /* the failing run can be run alone */
    what.only = &out.run;
    assert_int_equal(ebb_inject(ebb_libc_allocator(), &what, &alone), EBB_ERR_ORACLE);
    assert_string_equal(alone.text, out.text);
    assert_true(alone.runs <= 2);
    assert_int_equal(memory.live, 0); /* of one that does not end, or leaks, too */
}

static void an_obligation_that_one_path_forgets_is_found_and_named(void **state) {
    (void)state;
    is_found(injection(FORGETS), "obligation_leaked, from tests/lab/inject.c:");
}

static void memory_that_one_path_keeps_is_found(void **state) {
    (void)state;
    is_found(injection(LEAKS), "expected that all memory is given back, found 1 blocks that are not");
}

static void one_that_never_ends_is_a_livelock(void **state) {
    (void)state;
    ebb_injection what = injection(SPINS);
    what.max_polls = 2000;
    is_found(what, "livelock: expected that it ends, found that it still runs after 2001 polls");
}

static void one_that_waits_for_nobody_is_stuck(void **state) {
    (void)state;
    is_found(injection(WAITS), "stopped by nobody: expected that everything ends when the root is closed");
}

static void work_that_ignores_a_cancel_is_left(void **state) {
    (void)state;
    is_found(injection(IGNORES), "abandoned, from tests/lab/inject.c:");
}

static void a_check_that_does_not_agree_says_where(void **state) {
    (void)state;
    is_found(injection(HALF_UNDONE), "expected that the check agrees, found EBB_FAILED");
}

static void a_failure_names_its_point_and_what_was_done_there(void **state) {
    (void)state;
    ebb_injected out;
    ebb_injection what = injection(HALF_UNDONE);
    assert_int_equal(ebb_inject(ebb_libc_allocator(), &what, &out), EBB_ERR_ORACLE);
    char point[40];
    snprintf(point, sizeof point, " of %u, at 0 ms, a request: ", (unsigned)out.points);
    assert_non_null(strstr(out.text, "publish, point "));
    if (strstr(out.text, point) == NULL) fail_msg("expected '%s' in '%s'", point, out.text);
}

static ebb_status nobody_disturbs_it(void *state, const ebb_workflow_report *report) {
    (void)state;
    return report->absorbed > 0 ? EBB_FAILED : EBB_OK;
}

static void a_failure_names_the_state_in_which_it_was_disturbed(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    what.check = nobody_disturbs_it;
    is_found(what, "point 0 of 6, at 0 ms, a request, then a request in CANCEL_REQUESTED: expected that the "
                   "check agrees");
}

/* A line that says what has never been. */
static ebb_status lie(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    ebb_status st = publish(cx, audit, state, target);
    ebb__audit_entry e = {.event = EBB__WE_DRAIN_STARTED, .type = "publish_abort", .name = "v1", .number = 1};
    e.from = EBB_WORKFLOW_CANCEL_REQUESTED;
    e.to = EBB_WORKFLOW_DRAINING;
    return st == EBB_OK ? ebb__audit_write(audit, &e) : st;
}

static void an_audit_log_that_does_not_verify_is_found(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    what.setup = lie;
    is_found(what, "publish, stopped by nobody: audit log, line 3, ");
}

static ebb_status loses_a_line(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    ebb_status st = publish(cx, audit, state, target);
    audit->seq++; /* as if one had been written between */
    return st;
}

static void a_line_that_is_missing_is_found(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    what.setup = loses_a_line;
    is_found(what, "publish, stopped by nobody: audit log, line 3, audit-complete: ");
}

#ifdef EBB_MUTANTS
static int mutant;

static ebb_status with_mutant(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    ebb__set_mutant(ebb_cx_runtime(cx), mutant);
    return publish(cx, audit, state, target);
}

/* Bugs of the kernel's that show in this program, and that no assert meets first; the lab has programs
 * for the others. */
static void bugs_of_the_kernel_are_found_too(void **state) {
    static const struct {
        ebb_oracle oracle;
        const char *text;
    } bugs[] = {
        {EBB_ORACLE_PARENT_FIRST, ", a cancel from around it: parents_before_children at event "},
        {EBB_ORACLE_REGION_LEAK,
         "expected that everything ends when the root is closed, found 0 tasks and 2"},
        {EBB_ORACLE_LOST_WAKE, "expected that everything ends when the root is closed, found 3 tasks"}};
    (void)state;
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        ebb_injection what = injection(NO_BUG);
        what.setup = with_mutant;
        mutant = (int)bugs[i].oracle;
        is_found(what, bugs[i].text);
    }
}
#endif

/* ---- bad input, no memory ---------------------------------------------------------------------------- */

static ebb_status no_target(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    (void)cx;
    (void)audit;
    (void)state;
    (void)target;
    return EBB_OK;
}

static ebb_status refuses(ebb_cx *cx, ebb_audit *audit, void *state, ebb_workflow *target) {
    (void)cx;
    (void)audit;
    (void)state;
    (void)target;
    return (ebb_status)-1234;
}

static void what_setup_says_is_passed_on(void **state) {
    (void)state;
    ebb_injected out;
    ebb_allocator a = ebb_libc_allocator();
    assert_int_equal(ebb_inject(a, &(ebb_injection){.setup = refuses}, &out), -1234);
    assert_int_equal(ebb_inject(a, &(ebb_injection){.setup = no_target}, &out), EBB_ERR_INVALID);
    assert_int_equal(ebb_inject(a, &(ebb_injection){.name = "none"}, &out), EBB_ERR_INVALID);
    assert_int_equal(ebb_inject(a, NULL, &out), EBB_ERR_INVALID);
}

static void without_memory_it_says_so_and_keeps_nothing(void **state) {
    (void)state;
    ebb_injection what = injection(NO_BUG);
    ebb_status st = EBB_ERR_NOMEM;
    uint64_t n = 0;
    /* Every allocation of the first runs, then some of all. */
    for (; st == EBB_ERR_NOMEM; n += n < 300 ? 1 : 1 + n / 8) {
        ebb_injected out;
        ebb_failing memory = {.inner = ebb_libc_allocator(), .fail_at = n + 1};
        st = ebb_inject(ebb_failing_allocator(&memory), &what, &out);
        assert_int_equal(memory.live, 0);
        if (memory.failures == 0) assert_int_equal(st, EBB_OK);
        else assert_int_equal(st, EBB_ERR_NOMEM);
        assert_string_equal(out.text, "");
    }
    assert_int_equal(st, EBB_OK);
    assert_true(n > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_undoes_its_work_passes_at_every_point),
        cmocka_unit_test(the_same_program_gives_the_same_runs),
        cmocka_unit_test(the_workflow_of_the_root_can_be_the_target),
        cmocka_unit_test(a_nested_workflow_can_be_the_target),
        cmocka_unit_test(one_that_waits_for_an_operator_gets_one),
        cmocka_unit_test(a_program_that_goes_on_for_ever_has_a_horizon),
        cmocka_unit_test(an_obligation_that_one_path_forgets_is_found_and_named),
        cmocka_unit_test(memory_that_one_path_keeps_is_found),
        cmocka_unit_test(one_that_never_ends_is_a_livelock),
        cmocka_unit_test(one_that_waits_for_nobody_is_stuck),
        cmocka_unit_test(work_that_ignores_a_cancel_is_left),
        cmocka_unit_test(a_check_that_does_not_agree_says_where),
        cmocka_unit_test(a_failure_names_its_point_and_what_was_done_there),
        cmocka_unit_test(a_failure_names_the_state_in_which_it_was_disturbed),
        cmocka_unit_test(an_audit_log_that_does_not_verify_is_found),
        cmocka_unit_test(a_line_that_is_missing_is_found),
#ifdef EBB_MUTANTS
        cmocka_unit_test(bugs_of_the_kernel_are_found_too),
#endif
        cmocka_unit_test(what_setup_says_is_passed_on),
        cmocka_unit_test(without_memory_it_says_so_and_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
