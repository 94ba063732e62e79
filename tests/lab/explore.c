/* The lab: the same decisions give the same run, every decision can be explored, what fails can be kept,
 * cut down and replayed, and the built-in scenarios hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>

#include "kernel/rt.h"

typedef struct bytes {
    uint8_t *p;
    size_t n, room;
} bytes;

static void append(bytes *b, const void *p, size_t n) {
    if (b->n + n > b->room) {
        b->room = (b->n + n) * 2;
        b->p = realloc(b->p, b->room);
        assert_non_null(b->p);
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

typedef struct records {
    bytes trace[EBB_LAB_RUNTIMES], journal[EBB_LAB_RUNTIMES];
} records;

static void keep_trace(void *ctx, uint32_t runtime, const void *p, size_t n) {
    append(&((records *)ctx)->trace[runtime], p, n);
}

static void keep_journal(void *ctx, uint32_t runtime, const void *p, size_t n) {
    append(&((records *)ctx)->journal[runtime], p, n);
}

static void write_bytes(void *ctx, const void *p, size_t n) {
    append(ctx, p, n);
}

static void free_records(records *r) {
    for (uint32_t i = 0; i < EBB_LAB_RUNTIMES; i++) {
        free(r->trace[i].p);
        free(r->journal[i].p);
    }
}

static ebb_lab *new_lab(void) {
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    assert_non_null(lab);
    return lab;
}

static ebb_lab_result run_recorded(ebb_lab *lab, const ebb_lab_case *c, uint64_t events, records *out) {
    ebb_lab_result r;
    *out = (records){.trace = {{0}}};
    ebb_lab_opts o = {.min_events = events, .trace = keep_trace, .journal = keep_journal, .ctx = out};
    (void)ebb_lab_run(lab, c, &o, &r);
    return r;
}

static const ebb_lab_scenario *scenario(const char *name) {
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        if (strcmp(ebb_lab_scenario_at(i)->name, name) == 0) return ebb_lab_scenario_at(i);
    }
    fail_msg("there is no scenario %s", name);
    return NULL;
}

static bool same_bytes(const bytes *a, const bytes *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* ---- runs ----------------------------------------------------------------------------------------- */

static void the_same_seed_gives_the_same_trace_and_another_seed_another(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        uint32_t different = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            ebb_lab_case c = {.scenario = ebb_lab_scenario_at(i), .seed = seed}, next = c;
            next.seed++;
            records a, b, other;
            assert_int_equal(run_recorded(lab, &c, 0, &a).status, EBB_OK);
            assert_int_equal(run_recorded(lab, &c, 0, &b).status, EBB_OK);
            assert_int_equal(run_recorded(lab, &next, 0, &other).status, EBB_OK);
            for (uint32_t k = 0; k < EBB_LAB_RUNTIMES; k++) {
                assert_true(same_bytes(&a.trace[k], &b.trace[k]));
                assert_true(same_bytes(&a.journal[k], &b.journal[k]));
            }
            different += !same_bytes(&a.trace[0], &other.trace[0]);
            free_records(&a);
            free_records(&b);
            free_records(&other);
        }
        assert_true(different >= 5);
    }
    ebb_lab_free(lab);
}

static void what_was_captured_repeats_the_run(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        ebb_lab_case c = {.scenario = ebb_lab_scenario_at(i), .seed = 7}, again = c;
        records a, b;
        (void)run_recorded(lab, &c, 0, &a);
        assert_int_equal(ebb_lab_capture(lab, &again), EBB_OK);
        again.seed = 0; /* which no longer matters */
        (void)run_recorded(lab, &again, 0, &b);
        for (uint32_t k = 0; k < EBB_LAB_RUNTIMES; k++) assert_true(same_bytes(&a.trace[k], &b.trace[k]));
        free_records(&a);
        free_records(&b);
        ebb_lab_case_free(lab, &again);
    }
    ebb_lab_free(lab);
}

static void built_in_scenarios_hold_under_random_schedules(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        ebb_lab_case c = {.scenario = ebb_lab_scenario_at(i), .seed = 1};
        ebb_lab_explore_result r;
        (void)ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 1000}, &r);
        if (r.failure.status != EBB_OK) {
            fail_msg("%s, seed %llu: %s: %s", c.scenario->name, (unsigned long long)c.seed, r.failure.failure,
                     r.failure.text);
        }
        assert_int_equal(r.schedules, 1000);
        ebb_lab_case_free(lab, &c);
    }
    ebb_lab_free(lab);
}

static void rounds_are_repeated_until_there_are_enough_events_and_the_trace_has_no_gap(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        ebb_lab_case c = {.scenario = ebb_lab_scenario_at(i), .seed = 3};
        records rec;
        ebb_lab_result r = run_recorded(lab, &c, 20000, &rec);
        assert_int_equal(r.status, EBB_OK);
        assert_true(r.events >= 20000);
        assert_true(r.rounds > 1);
        ebb_trace_reader reader;
        ebb_event ev;
        ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
        assert_int_equal(ebb_trace_reader_open(&reader, rec.trace[0].p, rec.trace[0].n), EBB_OK);
        while (ebb_trace_reader_next(&reader, &ev) == EBB_OK)
            assert_int_equal(ebb_checker_event(check, &ev), EBB_OK);
        assert_int_equal(reader.offset, rec.trace[0].n);
        assert_int_equal(ebb_checker_end(check, true), EBB_OK);
        ebb_checker_free(check);
        free_records(&rec);
    }
    ebb_lab_free(lab);
}

static void a_journal_from_the_lab_replays_to_its_trace(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    for (uint64_t seed = 1; seed <= 300; seed++) {
        ebb_lab_case c = {.scenario = ebb_lab_scenario_at(seed % 8), .seed = seed};
        records rec;
        assert_int_equal(run_recorded(lab, &c, 0, &rec).status, EBB_OK);
        for (uint32_t k = 0; k < EBB_LAB_RUNTIMES && rec.journal[k].n > 0; k++) {
            bytes trace = {0};
            ebb_journal_replay_result r;
            ebb_status st = ebb_journal_replay(ebb_libc_allocator(), rec.journal[k].p, rec.journal[k].n,
                                               write_bytes, &trace, &r);
            if (st != EBB_OK) fail_msg("%s, seed %d: %s", c.scenario->name, (int)seed, r.message);
            /* The same events; where blocks end depends on when they are taken. */
            ebb_trace_reader a, b;
            ebb_event x, y;
            assert_int_equal(ebb_trace_reader_open(&a, rec.trace[k].p, rec.trace[k].n), EBB_OK);
            assert_int_equal(ebb_trace_reader_open(&b, trace.p, trace.n), EBB_OK);
            while (ebb_trace_reader_next(&a, &x) == EBB_OK) {
                assert_int_equal(ebb_trace_reader_next(&b, &y), EBB_OK);
                ebb_record one = ebb_event_record(&x), other = ebb_event_record(&y);
                assert_memory_equal(&one, &other, sizeof one);
                assert_int_equal(x.decision_seq, y.decision_seq);
                assert_int_equal(x.time, y.time);
                assert_int_equal(x.host_turn_id, y.host_turn_id);
                assert_int_equal(x.microtask_batch_id, y.microtask_batch_id);
            }
            assert_int_equal(ebb_trace_reader_next(&b, &y), EBB_PENDING);
            free(trace.p);
        }
        free_records(&rec);
    }
    ebb_lab_free(lab);
}

/* ---- a scenario of one's own ------------------------------------------------------------------------ */

enum { WORKERS = 4 };

typedef struct worker {
    struct order *order;
    uint32_t number;
} worker;

typedef struct order {
    ebb_lab *lab;
    uint32_t started;
    worker worker[WORKERS];
} order;

/* A bug of the usual kind: it holds as long as the third worker is not the first. */
static ebb_status worker_poll(ebb_cx *cx, void *arg) {
    worker *w = arg;
    (void)cx;
    if (w->order->started++ == 0 && w->number == 2) ebb_lab_fail(w->order->lab, "the third was first");
    return EBB_OK;
}

static ebb_status order_setup(ebb_lab *lab) {
    order *o = ebb_lab_state(lab);
    o->lab = lab;
    for (uint32_t i = 0; i < WORKERS; i++) {
        o->worker[i] = (worker){o, i};
        (void)ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), worker_poll,
                        &o->worker[i]);
    }
    return EBB_OK;
}

static const ebb_lab_scenario order_scenario = {
    .name = "order", .about = "a race", .state_size = sizeof(order), .setup = order_setup};

static void a_failure_is_found_cut_down_saved_and_replayed(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = &order_scenario, .seed = 1}, loaded;
    ebb_lab_explore_result e;
    ebb_lab_result r;
    ebb_lab_error error;
    assert_int_equal(ebb_lab_explore(lab, &c, NULL, &e), EBB_FAILED);
    assert_string_equal(e.failure.failure, "check");
    assert_string_equal(e.failure.text, "the third was first");
    assert_true(c.recorded);
    assert_int_equal(ebb_lab_shrink(lab, &c, 0, NULL, NULL), EBB_OK);
    assert_int_equal(c.n_choices, 2); /* one poll; the third task */
    assert_int_equal(c.choices[0], 0);
    assert_int_equal(c.choices[1], 2);
    bytes file = {0};
    ebb_lab_save(&c, write_bytes, &file);
    assert_int_equal(ebb_lab_load(lab, (char *)file.p, file.n, &order_scenario, &loaded, &error), EBB_OK);
    assert_ptr_equal(loaded.scenario, &order_scenario);
    assert_string_equal(loaded.failure, "check");
    assert_int_equal(ebb_lab_run(lab, &loaded, NULL, &r), EBB_FAILED);
    assert_string_equal(r.text, "the third was first");
    loaded.n_choices = 1;
    assert_int_equal(ebb_lab_run(lab, &loaded, NULL, &r), EBB_OK);
    loaded.n_choices = 2;
    ebb_lab_case_free(lab, &loaded);
    ebb_lab_case_free(lab, &c);
    free(file.p);
    ebb_lab_free(lab);
}

static void exploring_by_depth_finds_the_one_bad_way(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = &order_scenario};
    ebb_lab_explore_result e;
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.depth = 2}, &e), EBB_FAILED);
    assert_int_equal(e.schedules, 3);
    assert_int_equal(c.n_choices, 2);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

typedef struct seen {
    uint32_t count[2][3];
} seen;
static seen ways;

static ebb_status ways_setup(ebb_lab *lab) {
    uint32_t a = ebb_lab_choose(lab, 2), b = ebb_lab_choose(lab, 3);
    ways.count[a][b]++;
    return EBB_OK;
}

static const ebb_lab_scenario ways_scenario = {.name = "ways", .about = "", .setup = ways_setup};

static void exploring_by_depth_goes_every_way_once(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = &ways_scenario};
    ebb_lab_explore_result e;
    ways = (seen){.count = {{0}}};
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.depth = 2}, &e), EBB_OK);
    assert_int_equal(e.schedules, 6);
    assert_true(e.exhausted);
    for (int a = 0; a < 2; a++) {
        for (int b = 0; b < 3; b++) assert_int_equal(ways.count[a][b], 1);
    }
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.depth = 2, .schedules = 6}, &e),
                     EBB_OK);
    assert_true(e.exhausted);
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.depth = 2, .schedules = 5}, &e),
                     EBB_OK);
    assert_false(e.exhausted);
    ebb_lab_free(lab);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

typedef struct post {
    uint64_t last[3];
    uint32_t arrived;
    bool overtaken; /* one sender's by another's */
} post;
static bool any_overtaken;

static ebb_status parked_poll(ebb_cx *cx, void *arg) {
    (void)arg;
    return ebb_checkpoint(cx) == EBB_OK ? EBB_PENDING : EBB_CANCELLED;
}

/* Runtimes 0 and 1 both write to runtime 2. */
static ebb_status post_setup(ebb_lab *lab) {
    ebb_task t =
        ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 2)), ebb_lab_region(lab, 2), parked_poll, NULL);
    for (uint64_t i = 1; i <= 5; i++) {
        for (uint32_t from = 0; from < 2; from++) {
            ebb_lab_send(lab, ebb_runtime_host(ebb_lab_runtime(lab, from)),
                         &(ebb_msg){.verb = EBB_MSG_WORD, .target = t.id, .word = i * 10 + from});
        }
    }
    return EBB_OK;
}

static void post_received(ebb_lab *lab, const ebb_msg *msg) {
    post *p = ebb_lab_state(lab);
    uint64_t from = msg->word % 10, i = msg->word / 10;
    if (p->last[from] + 1 != i) ebb_lab_fail(lab, "a message overtook another of its pair");
    p->last[from] = i;
    p->overtaken |= p->last[1] > p->last[0];
    p->arrived++;
}

static void post_check(ebb_lab *lab) {
    post *p = ebb_lab_state(lab);
    if (p->arrived != 10) ebb_lab_fail(lab, "a message was lost");
    any_overtaken |= p->overtaken;
}

static const ebb_lab_scenario post_scenario = {.name = "post",
                                               .about = "",
                                               .runtimes = 3,
                                               .state_size = sizeof(post),
                                               .setup = post_setup,
                                               .received = post_received,
                                               .check = post_check};

static void messages_of_a_pair_keep_their_order_and_others_may_overtake(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = &post_scenario};
    ebb_lab_explore_result e;
    any_overtaken = false;
    assert_int_equal(ebb_lab_explore(lab, &c, &(ebb_lab_explore_opts){.schedules = 50}, &e), EBB_OK);
    assert_true(any_overtaken);
    ebb_lab_free(lab);
}

static void endless_received(ebb_lab *lab, const ebb_msg *msg) {
    ebb_lab_send(lab, ebb_runtime_host(ebb_lab_runtime(lab, 0)), msg);
}

static ebb_status endless_setup(ebb_lab *lab) {
    ebb_task t =
        ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), parked_poll, NULL);
    ebb_lab_send(lab, ebb_runtime_host(ebb_lab_runtime(lab, 0)),
                 &(ebb_msg){.verb = EBB_MSG_WAKE, .target = t.id});
    return EBB_OK;
}

static const ebb_lab_scenario endless_scenario = {
    .name = "endless", .about = "", .setup = endless_setup, .received = endless_received};

static void a_run_that_does_not_end_is_a_livelock(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_result r;
    ebb_lab_case c = {.scenario = &endless_scenario};
    assert_int_equal(ebb_lab_run(lab, &c, &(ebb_lab_opts){.max_steps = 5000}, &r), EBB_ERR_LIMIT);
    assert_string_equal(r.failure, "livelock");
    ebb_lab_free(lab);
}

static ebb_status deaf_poll(ebb_cx *cx, void *arg) {
    (void)cx;
    (void)arg;
    return EBB_PENDING;
}

static ebb_status deaf_setup(ebb_lab *lab) {
    return ebb_id_status(
        ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), deaf_poll, NULL).id);
}

/* Cancels, and then takes away the timer that would force. */
static void deaf_step(ebb_lab *lab, uint32_t n) {
    ebb_runtime *rt = ebb_lab_runtime(lab, 0);
    ebb_region r = ebb_lab_region(lab, 0);
    (void)n;
    ebb_region_cancel(ebb_runtime_host(rt), r, EBB_CANCEL_USER, "");
    ebb__wheel_disarm(&rt->wheel, ebb__wheel_ref(EBB__W_REGION, (uint32_t)(r.id >> 32) & 0xffffff));
}

static const ebb_lab_scenario deaf_scenario = {
    .name = "deaf", .about = "", .steps = 1, .setup = deaf_setup, .step = deaf_step};

static void a_task_that_nothing_will_ever_force_is_a_leak(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_result r;
    ebb_lab_case c = {.scenario = &deaf_scenario};
    assert_int_equal(ebb_lab_run(lab, &c, NULL, &r), EBB_ERR_ORACLE);
    assert_string_equal(r.failure, "task_leak");
    assert_non_null(strstr(r.text, "no timer will force it"));
    ebb_lab_free(lab);
}

/* ---- files ------------------------------------------------------------------------------------------- */

#define HEAD "ebb-lab 1\ncontract " EBB_CONTRACT "\n"

static void a_malformed_file_is_refused_with_its_line(void **state) {
    (void)state;
    static const struct {
        const char *file;
        ebb_status status;
        uint32_t line;
        const char *says;
    } bad[] = {
        {"", EBB_ERR_VERSION, 1, "'ebb-lab 1', found nothing"},
        {"ebb-lab 2\n", EBB_ERR_VERSION, 1, "found 'ebb-lab 2'"},
        {"ebb-lab 1\ncontract other\n", EBB_ERR_VERSION, 2, "the contract " EBB_CONTRACT ", found 'other'"},
        {HEAD "scenario none\nseed 1\n", EBB_ERR_SYNTAX, 3, "the name of a scenario, found 'none'"},
        {HEAD "scenario race\nseed x\n", EBB_ERR_SYNTAX, 4, "a number of 64 bits, found 'x'"},
        {HEAD "scenario race\nseed 18446744073709551616\n", EBB_ERR_SYNTAX, 4, "a number of 64 bits"},
        {HEAD "scenario race\nseed\n", EBB_ERR_SYNTAX, 4, "found nothing"},
        {HEAD "scenario race\n", EBB_ERR_SYNTAX, 3, "a line 'seed NUMBER' before the end"},
        {HEAD "seed 1\n", EBB_ERR_SYNTAX, 3, "a line 'scenario NAME' before the end"},
        {HEAD "scenario race\nseed 1\nchoices 1 65536\n", EBB_ERR_SYNTAX, 5, "found '65536'"},
        {HEAD "scenario race\nseed 1\nchoices 1  2\n", EBB_ERR_SYNTAX, 5, "a choice, 0 to 65535"},
        {HEAD "scenario race\nseed 1\nchoices 1*1000001\n", EBB_ERR_SYNTAX, 5,
         "CHOICE*TIMES, found '1*1000001'"},
        {HEAD "scenario race\nseed 1\nchoices\n", EBB_ERR_SYNTAX, 5, "found nothing"},
        {HEAD "scenario race\nseed 1\nplant bug\n", EBB_ERR_SYNTAX, 5, "the name of an oracle, found 'bug'"},
        {HEAD "scenario race\nseed 1\n\n# a comment\nsteps 3\n", EBB_ERR_SYNTAX, 7,
         "line or choices, found 'steps'"},
    };
    ebb_lab *lab = new_lab();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ebb_lab_case c;
        ebb_lab_error error;
        assert_int_equal(ebb_lab_load(lab, bad[i].file, strlen(bad[i].file), NULL, &c, &error),
                         bad[i].status);
        assert_int_equal(error.line, bad[i].line);
        if (strstr(error.text, bad[i].says) == NULL)
            fail_msg("'%s' does not say '%s'", error.text, bad[i].says);
        assert_null(c.choices);
        assert_null(c.script);
    }
    ebb_lab_free(lab);
}

static void a_case_is_the_same_after_saving_and_loading(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = scenario("storm"), .seed = UINT64_MAX}, loaded;
    ebb_lab_error error;
    ebb_lab_result r;
    (void)ebb_lab_run(lab, &c, NULL, &r);
    assert_int_equal(ebb_lab_capture(lab, &c), EBB_OK);
    c.plant = EBB_ORACLE_FAIRNESS;
    strcpy(c.failure, "fairness");
    bytes first = {0}, second = {0};
    ebb_lab_save(&c, write_bytes, &first);
    assert_int_equal(ebb_lab_load(lab, (char *)first.p, first.n, NULL, &loaded, &error), EBB_OK);
    assert_true(loaded.seed == UINT64_MAX);
    assert_int_equal(loaded.plant, EBB_ORACLE_FAIRNESS);
    assert_string_equal(loaded.failure, "fairness");
    assert_int_equal(loaded.n_choices, c.n_choices);
    assert_memory_equal(loaded.choices, c.choices, c.n_choices * sizeof *c.choices);
    assert_int_equal(loaded.script_n, c.script_n);
    assert_memory_equal(loaded.script, c.script, c.script_n);
    ebb_lab_save(&loaded, write_bytes, &second);
    assert_true(same_bytes(&first, &second));
    free(first.p);
    free(second.p);
    ebb_lab_case_free(lab, &loaded);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

static void the_same_choice_many_times_is_written_once(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    uint16_t choices[1003] = {[0] = 5, [1002] = 7};
    ebb_lab_case c = {.scenario = scenario("race"), .recorded = true, .choices = choices, .n_choices = 1003},
                 loaded;
    ebb_lab_error error;
    bytes file = {0};
    ebb_lab_save(&c, write_bytes, &file);
    append(&file, "", 1);
    assert_non_null(strstr((char *)file.p, "\nchoices 5 0*1001 7\n"));
    assert_int_equal(ebb_lab_load(lab, (char *)file.p, file.n - 1, NULL, &loaded, &error), EBB_OK);
    assert_int_equal(loaded.n_choices, 1003);
    assert_memory_equal(loaded.choices, choices, sizeof choices);
    ebb_lab_case_free(lab, &loaded);
    free(file.p);
    ebb_lab_free(lab);
}

static void cutting_down_keeps_only_the_lines_that_matter(void **state) {
    (void)state;
    static const char file[] =
        HEAD "scenario storm\nseed 1\nfails script\nline open r0\nline spawn t in r0: park; yield\n"
             "line pump\nline wash r0\nline close r0\nchoices 1 1 1 1 1 1\n";
    ebb_lab *lab = new_lab();
    ebb_lab_case c;
    ebb_lab_error error;
    ebb_lab_result r;
    assert_int_equal(ebb_lab_load(lab, file, sizeof file - 1, NULL, &c, &error), EBB_OK);
    assert_int_equal(ebb_lab_run(lab, &c, NULL, &r), EBB_ERR_SYNTAX);
    assert_string_equal(r.failure, "script");
    assert_non_null(strstr(r.text, "found 'wash'"));
    assert_int_equal(ebb_lab_shrink(lab, &c, 0, NULL, NULL), EBB_OK);
    assert_int_equal(c.n_choices, 0);
    assert_int_equal(c.script_n, strlen("wash r0\n"));
    assert_memory_equal(c.script, "wash r0\n", c.script_n);
    ebb_lab_case_free(lab, &c);
    ebb_lab_free(lab);
}

static void what_does_not_fail_is_not_cut_down(void **state) {
    (void)state;
    ebb_lab *lab = new_lab();
    ebb_lab_case c = {.scenario = scenario("race"), .recorded = true, .failure = "task_leak"};
    assert_int_equal(ebb_lab_shrink(lab, &c, 0, NULL, NULL), EBB_ERR_INVALID);
    ebb_lab_free(lab);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static void wherever_memory_ends_a_run_ends_in_order_and_frees_all(void **state) {
    (void)state;
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            ebb_failing mem = {.inner = ebb_libc_allocator(), .fail_at = n};
            ebb_lab *lab = ebb_lab_new(ebb_failing_allocator(&mem));
            ebb_lab_case c = {.scenario = ebb_lab_scenario_at(i), .seed = 4};
            ebb_lab_result r = {.status = EBB_ERR_NOMEM};
            if (lab != NULL) (void)ebb_lab_run(lab, &c, NULL, &r);
            failed = mem.failures > 0;
            if (r.status != EBB_OK && r.status != EBB_ERR_NOMEM) {
                fail_msg("%s, allocation %d: %s: %s", c.scenario->name, (int)n, r.failure, r.text);
            }
            ebb_lab_free(lab);
            assert_int_equal(mem.live, 0);
        }
    }
}

static void wherever_memory_ends_files_and_cutting_down_leak_nothing(void **state) {
    (void)state;
    static const char file[] =
        HEAD "scenario storm\nseed 1\nfails script\nline open r0\nline wash r0\nchoices 1 1\n";
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        ebb_failing mem = {.inner = ebb_libc_allocator(), .fail_at = n};
        ebb_lab *lab = ebb_lab_new(ebb_failing_allocator(&mem));
        ebb_lab_case c;
        ebb_lab_error error;
        if (lab != NULL) {
            ebb_status st = ebb_lab_load(lab, file, sizeof file - 1, NULL, &c, &error);
            if (st == EBB_OK) st = ebb_lab_shrink(lab, &c, 0, NULL, NULL);
            assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
            ebb_lab_case_free(lab, &c);
        }
        failed = mem.failures > 0;
        ebb_lab_free(lab);
        assert_int_equal(mem.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_trace_and_another_seed_another),
        cmocka_unit_test(what_was_captured_repeats_the_run),
        cmocka_unit_test(built_in_scenarios_hold_under_random_schedules),
        cmocka_unit_test(rounds_are_repeated_until_there_are_enough_events_and_the_trace_has_no_gap),
        cmocka_unit_test(a_journal_from_the_lab_replays_to_its_trace),
        cmocka_unit_test(a_failure_is_found_cut_down_saved_and_replayed),
        cmocka_unit_test(exploring_by_depth_finds_the_one_bad_way),
        cmocka_unit_test(exploring_by_depth_goes_every_way_once),
        cmocka_unit_test(messages_of_a_pair_keep_their_order_and_others_may_overtake),
        cmocka_unit_test(a_run_that_does_not_end_is_a_livelock),
        cmocka_unit_test(a_task_that_nothing_will_ever_force_is_a_leak),
        cmocka_unit_test(a_malformed_file_is_refused_with_its_line),
        cmocka_unit_test(a_case_is_the_same_after_saving_and_loading),
        cmocka_unit_test(the_same_choice_many_times_is_written_once),
        cmocka_unit_test(cutting_down_keeps_only_the_lines_that_matter),
        cmocka_unit_test(what_does_not_fail_is_not_cut_down),
        cmocka_unit_test(wherever_memory_ends_a_run_ends_in_order_and_frees_all),
        cmocka_unit_test(wherever_memory_ends_files_and_cutting_down_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
