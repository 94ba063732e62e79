/* Scripts: what each line does, what it answers, and that nothing in a line can break anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lab/script.h"
#include <ebb/ebb.h>

typedef struct world {
    ebb_runtime *rt;
    ebb__script *script;
} world;

static int make_world(void **state) {
    static world w;
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    assert_int_equal(ebb_runtime_new(&opts, &w.rt), EBB_OK);
    w.script = ebb__script_new(w.rt, opts.allocator);
    assert_non_null(w.script);
    *state = &w;
    return 0;
}

static int end_world(void **state) {
    world *w = *state;
    ebb__script_free(w->script);
    ebb_runtime_free(w->rt);
    return 0;
}

/* The line is understood and answered so. */
static void says(world *w, const char *line, ebb_status answer) {
    char message[EBB__SCRIPT_MESSAGE];
    ebb_status st = ebb__script_line(w->script, line, strlen(line), message);
    if (st != EBB_OK) fail_msg("%s: %s: %s", line, ebb_status_name(st), message);
    if (ebb__script_result(w->script) != answer) {
        fail_msg("%s: expected %s, found %s", line, ebb_status_name(answer),
                 ebb_status_name(ebb__script_result(w->script)));
    }
}

static void ok(world *w, const char *line) {
    says(w, line, EBB_OK);
}

static ebb_task_info info_of(world *w, const char *name) {
    ebb_task_info info;
    ebb_task t = {ebb__script_id(w->script, name)};
    assert_int_equal(ebb_task_info_of(ebb_runtime_host(w->rt), t, &info), EBB_OK);
    return info;
}

static ebb_task_phase phase_of(world *w, const char *name) {
    return info_of(w, name).phase;
}

static ebb_region_state state_of(world *w, const char *name) {
    ebb_region_state state;
    ebb_region r = {ebb__script_id(w->script, name)};
    assert_int_equal(ebb_region_state_of(ebb_runtime_host(w->rt), r, &state), EBB_OK);
    return state;
}

/* ---- lines ------------------------------------------------------------------------------------ */

static void empty_lines_and_comments_do_nothing(void **state) {
    ok(*state, "");
    ok(*state, "   \t ");
    ok(*state, "# a comment ; with | marks \" and quotes");
    ok(*state, "open job # and a comment after it");
    assert_int_equal(state_of(*state, "job"), EBB_REGION_OPEN);
}

static void names_stand_for_ids_and_back(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: park");
    ok(w, "reserve slot permit in job");
    uint64_t job = ebb__script_id(w->script, "job"), worker = ebb__script_id(w->script, "worker");
    assert_string_equal(ebb__script_name(w->script, EBB__REGION, job), "job");
    assert_string_equal(ebb__script_name(w->script, EBB__TASK, worker), "worker");
    assert_string_equal(ebb__script_name(w->script, EBB__REGION, ebb_runtime_root(w->rt).id), "root");
    assert_null(ebb__script_name(w->script, EBB__TASK, job));
    assert_null(ebb__script_name(w->script, EBB__OBLIGATION, 0));
    assert_int_equal(ebb__script_id(w->script, "nobody"), 0);
    const ebb__thing *t = ebb__script_things(w->script);
    static const char *const order[] = {"root", "job", "worker", "slot"};
    for (size_t i = 0; i < 4; i++, t = t->next) assert_string_equal(t->name, order[i]);
    assert_null(t);
}

static void a_name_that_is_used_again_stands_for_the_new_one(void **state) {
    world *w = *state;
    ok(w, "open job");
    uint64_t first = ebb__script_id(w->script, "job");
    ok(w, "open job");
    uint64_t second = ebb__script_id(w->script, "job");
    assert_true(first != second);
    assert_string_equal(ebb__script_name(w->script, EBB__REGION, first), "job");
    ok(w, "close job");
    ok(w, "pump");
    ebb_region_state s;
    assert_int_equal(ebb_region_state_of(ebb_runtime_host(w->rt), (ebb_region){first}, &s), EBB_OK);
    assert_int_equal(s, EBB_REGION_OPEN);
}

static void an_unknown_name_is_an_answer(void **state) {
    static const char *const lines[] = {"open a in nobody",
                                        "spawn t in nobody: park",
                                        "spawn t in root as nobody",
                                        "close nobody",
                                        "cancel nobody USER",
                                        "force nobody",
                                        "cancel-task nobody USER",
                                        "force-task nobody",
                                        "wake nobody",
                                        "join nobody",
                                        "join-task nobody",
                                        "commit nobody",
                                        "reserve o ack in nobody",
                                        "abort nobody",
                                        "defer nobody",
                                        "defer root as nobody",
                                        "witness nobody w",
                                        "check nobody nobody",
                                        "chain nobody"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) says(*state, lines[i], EBB_ERR_INVALID);
}

static void a_name_of_another_kind_is_an_answer(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: park");
    ok(w, "reserve slot permit in job");
    says(w, "wake job", EBB_ERR_INVALID);
    says(w, "close worker", EBB_ERR_INVALID);
    says(w, "commit worker", EBB_ERR_INVALID);
    says(w, "join slot", EBB_ERR_INVALID);
    says(w, "check job worker", EBB_ERR_INVALID);
}

static void what_was_refused_stays_refused_under_its_name(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "close job");
    says(w, "spawn late in job: park", EBB_ERR_CLOSED);
    says(w, "wake late", EBB_ERR_CLOSED);
    says(w, "join-task late", EBB_ERR_CLOSED);
    says(w, "open sub in job", EBB_ERR_CLOSED);
    says(w, "spawn deep in sub: park", EBB_ERR_CLOSED);
    ok(w, "close sub");
}

static void what_has_ended_is_an_answer(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: return OK");
    ok(w, "reserve slot permit in job");
    ok(w, "commit slot");
    ok(w, "pump");
    says(w, "wake worker", EBB_ERR_STALE);
    ok(w, "cancel-task worker USER");
    says(w, "join-task worker", EBB_ERR_STALE);
    says(w, "witness worker w", EBB_ERR_STALE);
    says(w, "commit slot", EBB_ERR_RESOLVED);
    says(w, "abort slot", EBB_ERR_RESOLVED);
    ok(w, "close job");
    ok(w, "join job");
    says(w, "join job", EBB_ERR_STALE);
    says(w, "chain job", EBB_ERR_STALE);
    says(w, "open sub in job", EBB_ERR_STALE);
    says(w, "defer job", EBB_ERR_STALE);
    ok(w, "close job");
    ok(w, "force job");
}

/* ---- steps ------------------------------------------------------------------------------------ */

static void a_task_does_its_steps_and_ends(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job keep: yield; park; return FAILED");
    ok(w, "pump");
    assert_int_equal(phase_of(w, "worker"), EBB_TASK_RUNNING);
    ok(w, "wake worker");
    ok(w, "pump");
    says(w, "join-task worker", EBB_FAILED);
}

static void a_body_without_an_end_returns_ok(void **state) {
    world *w = *state;
    ok(w, "spawn a keep: yield");
    ok(w, "spawn b keep:");
    ok(w, "pump");
    ok(w, "join-task a");
    ok(w, "join-task b");
}

static void a_status_of_the_users_own_comes_back(void **state) {
    world *w = *state;
    ok(w, "open job collect");
    ok(w, "spawn a in job keep: return -1234");
    ok(w, "spawn b in job keep: fault");
    ok(w, "pump");
    says(w, "join-task a", (ebb_status)-1234);
    says(w, "join-task b", EBB_FAULTED);
}

static void cancelled_goes_to_the_steps_after_the_bar(void **state) {
    world *w = *state;
    static const char *const waits[] = {"park", "checkpoint; park", "sleep 1s", "join sub",
                                        "join-task other"};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        char line[160];
        ok(w, "open job");
        snprintf(line, sizeof line,
                 "spawn worker in job keep: open sub; spawn other in sub keep as idle; %s; return OK | "
                 "reserve late io; expect CANCELLED; return TIMEOUT",
                 waits[i]);
        ok(w, "body idle: park");
        ok(w, line);
        ok(w, "pump");
        ok(w, "cancel job USER");
        ok(w, "pump");
        says(w, "join-task worker", EBB_CANCELLED);
        says(w, "join job", EBB_CANCELLED);
    }
}

static void without_a_bar_cancelled_is_the_end(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job keep: park; return OK");
    ok(w, "pump");
    ok(w, "cancel-task worker USER \"enough\"");
    assert_string_equal(info_of(w, "worker").reason.message, "enough");
    ok(w, "pump");
    says(w, "join-task worker", EBB_CANCELLED);
}

static void what_is_joined_may_be_cancelled_without_its_joiner(void **state) {
    world *w = *state;
    ok(w, "body idle: park");
    ok(w, "open job");
    ok(w, "spawn worker in job keep: open sub; spawn other in sub as idle; join sub; expect CANCELLED; "
          "return OK");
    ok(w, "pump");
    ok(w, "cancel sub USER");
    ok(w, "pump");
    ok(w, "join-task worker");
}

static void after_the_bar_cancelled_is_only_an_answer(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: park | checkpoint; expect CANCELLED; sleep 1s; expect CANCELLED; park; "
          "expect CANCELLED; mask; sleep 10ms; expect OK; park; expect OK");
    ok(w, "pump");
    ok(w, "cancel job USER");
    ok(w, "pump");
    ok(w, "wake worker");
    ok(w, "pump");
    assert_int_equal(phase_of(w, "worker"), EBB_TASK_CANCELLING);
    ok(w, "advance 10ms");
    ok(w, "pump");
    ok(w, "wake worker");
    ok(w, "pump");
    says(w, "join job", EBB_CANCELLED);
}

static void expect_faults_when_it_is_wrong(void **state) {
    world *w = *state;
    ok(w, "open job collect");
    ok(w, "spawn worker in job keep: mask; expect OK; expect OK; expect ERR_CLOSED; return OK");
    ok(w, "pump");
    says(w, "join-task worker", EBB_FAULTED);
}

static void ignoring_leads_to_being_abandoned(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: ignore");
    ok(w, "pump");
    ok(w, "cancel job SHUTDOWN");
    ok(w, "pump");
    assert_int_equal(phase_of(w, "worker"), EBB_TASK_CANCEL_REQUESTED);
    ok(w, "advance 500ms");
    ok(w, "pump");
    ebb_region_report report;
    ebb_work work;
    ebb_region job = {ebb__script_id(w->script, "job")};
    assert_int_equal(ebb_region_report_of(ebb_runtime_host(w->rt), job, &report), EBB_OK);
    assert_int_equal(report.abandoned, 1);
    assert_int_equal(ebb_region_abandoned_at(ebb_runtime_host(w->rt), job, 0, &work), EBB_OK);
    assert_string_equal(work.site, "worker");
    says(w, "join job", EBB_CANCELLED);
}

static void a_loop_without_a_wait_lets_others_run(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn spinner in job: checkpoint; loop");
    ok(w, "spawn worker in job keep: return OK");
    says(w, "pump 2", EBB_PENDING);
    ok(w, "join-task worker");
    says(w, "pump", EBB_PENDING);
    ok(w, "cancel job USER");
    ok(w, "pump");
    says(w, "join job", EBB_CANCELLED);
}

static void tasks_open_and_spawn_and_join(void **state) {
    world *w = *state;
    ok(w, "body child: sleep 5ms; return OK");
    ok(w, "body bad: return FAILED");
    ok(w, "open job");
    ok(w, "spawn a in job keep: open sub; spawn b in sub keep as child; spawn b2 in sub as child; "
          "join-task b; expect OK; join sub; expect OK; open next collect; spawn c in next as bad; "
          "join next; expect FAILED");
    ok(w, "pump");
    ok(w, "advance 5ms");
    ok(w, "pump");
    ok(w, "join-task a");
    says(w, "wake b2", EBB_ERR_STALE);
    says(w, "wake c", EBB_ERR_STALE);
}

static void the_verbs_work_from_tasks_too(void **state) {
    world *w = *state;
    ok(w, "open one");
    ok(w, "open two");
    ok(w, "open three");
    ok(w, "spawn a in one: park");
    ok(w, "spawn b in two: park");
    ok(w, "spawn c in three keep: park");
    ok(w, "spawn d in three keep: park; return OK");
    ok(w, "spawn boss: yield; cancel one USER; force two; cancel-task c TIMEOUT \"late\"; wake d; "
          "close three; close nobody; expect ERR_INVALID; pump; expect ERR_REENTERED");
    ok(w, "pump");
    says(w, "join one", EBB_CANCELLED);
    says(w, "join two", EBB_CANCELLED);
    says(w, "join-task c", EBB_CANCELLED);
    ok(w, "join-task d");
}

/* ---- obligations and finalizers --------------------------------------------------------------- */

static uint32_t aborts_of(world *w, const char *name) {
    for (const ebb__thing *t = ebb__script_things(w->script); t != NULL; t = t->next) {
        if (t->kind == EBB__OBLIGATION && strcmp(t->name, name) == 0) return t->aborts;
    }
    fail_msg("no obligation %s", name);
    return 0;
}

static void the_abort_hook_runs_for_aborts_and_leaks(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn worker in job: reserve kept ack; commit kept; reserve given lease; abort given; reserve "
          "lost io");
    ok(w, "pump");
    assert_int_equal(aborts_of(w, "kept"), 0);
    assert_int_equal(aborts_of(w, "given"), 1);
    assert_int_equal(aborts_of(w, "lost"), 1);
    ok(w, "close job");
    ok(w, "join job");
}

static void finalizers_may_wait_or_be_stuck_or_have_a_body(void **state) {
    world *w = *state;
    ok(w, "body tidy: sleep 10ms; expect OK; open scope cleanup; spawn help in scope as tidy2; join scope; "
          "expect OK");
    ok(w, "body tidy2: yield");
    ok(w, "open job");
    ok(w, "defer job pending 3");
    ok(w, "defer job");
    ok(w, "spawn worker in job: defer; defer pending 2; defer as tidy");
    ok(w, "pump");
    assert_int_equal(phase_of(w, "worker"), EBB_TASK_RUNNING);
    ok(w, "advance 10ms");
    ok(w, "pump");
    ok(w, "close job");
    ok(w, "pump");
    ok(w, "join job");
    ok(w, "open job");
    ok(w, "spawn worker in job: defer stuck");
    ok(w, "pump");
    ok(w, "cancel job USER within 100ms");
    ok(w, "pump");
    assert_int_equal(state_of(w, "job"), EBB_REGION_DRAINING);
    ok(w, "advance 100ms");
    ok(w, "pump");
    assert_int_equal(state_of(w, "job"), EBB_REGION_CLOSED);
}

/* ---- options ---------------------------------------------------------------------------------- */

static void options_reach_the_kernel(void **state) {
    world *w = *state;
    ok(w, "advance 1s");
    ok(w, "open job deadline 50ms priority 3 collect");
    ok(w, "spawn a in job priority 9 polls 2 keep: yield; loop");
    assert_int_equal(info_of(w, "a").budget.priority, 9);
    ok(w, "spawn b in job deadline 20ms: park");
    assert_int_equal(info_of(w, "b").lane, EBB_LANE_TIMED);
    says(w, "pump 20", EBB_PENDING);
    assert_int_equal(info_of(w, "a").reason.kind, EBB_CANCEL_BUDGET);
    ok(w, "cancel-task a USER");
    ok(w, "force-task a");
    ok(w, "pump");
    ok(w, "advance 20ms");
    ok(w, "pump");
    ok(w, "advance 30ms");
    ok(w, "pump");
    says(w, "join job", EBB_CANCELLED);
}

static void a_cancel_may_bring_its_own_budget(void **state) {
    world *w = *state;
    ok(w, "open job");
    ok(w, "spawn a in job: mask; park; loop");
    ok(w, "pump");
    ok(w, "advance 1ms");
    ok(w, "cancel job USER \"a reason\" within 30ms polls 7");
    assert_int_equal(info_of(w, "a").budget.deadline, 31 * EBB_MS);
    assert_int_equal(info_of(w, "a").budget.polls, 7);
    ok(w, "cancel job USER polls 5");
    assert_int_equal(info_of(w, "a").budget.polls, 5);
    uint32_t n;
    ok(w, "chain job");
    const ebb_region_cause *cause = ebb__script_chain(w->script, &n);
    assert_int_equal(n, 1);
    assert_string_equal(cause[0].reason.message, "a reason");
    ok(w, "turn 5 6");
    ebb__script_chain(w->script, &n);
    assert_int_equal(n, 0);
}

/* ---- what is not understood ------------------------------------------------------------------- */

static void refused(world *w, const char *line, size_t n, const char *message) {
    char found[EBB__SCRIPT_MESSAGE];
    memset(found, 'x', sizeof found);
    assert_int_equal(ebb__script_line(w->script, line, n, found), EBB_ERR_SYNTAX);
    if (strncmp(found, message, strlen(message)) != 0) {
        fail_msg("%s\n  expected: %s\n  found:    %s", line, message, found);
    }
}

static void errors_name_the_word_and_what_was_expected(void **state) {
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"frob", "word 1: found 'frob', expected a verb such as open"},
        {"\"open\" a", "word 1: found '\"open\"', expected a verb"},
        {"; open a", "word 1: found ';', expected a verb"},
        {"park", "word 1: found 'park', expected something that the host does"},
        {"open", "word 2: the line ends here, expected a name"},
        {"open 7up", "word 2: found '7up', expected a name"},
        {"open a in", "word 4: the line ends here, expected a name"},
        {"open a in b in c", "word 5: found 'in', expected the end of the line"},
        {"open deadline", "word 2: found 'deadline', expected a name"},
        {"open a b", "word 3: found 'b', expected the end of the line"},
        {"open a deadline 5", "word 4: found '5', expected a time such as 10ms"},
        {"open a deadline ms", "word 4: found 'ms', expected a time"},
        {"open a deadline 5min", "word 4: found '5min', expected a time"},
        {"open a deadline 99999999999999999999s", "word 4: found '99999999999999999999s', expected a time"},
        {"advance 366000s000", "word 2: found '366000s000', expected a time"},
        {"advance 31536001s", "word 2: found '31536001s', expected a time"},
        {"open a priority 256", "word 4: found '256', expected a priority, 0 to 255"},
        {"pump 0", "word 2: found '0', expected a number of polls, 1 to 10000"},
        {"pump 10001", "word 2: found '10001', expected a number of polls"},
        {"turn 1", "word 3: the line ends here, expected a microtask batch"},
        {"turn 0 1", "word 2: found '0', expected a host turn"},
        {"cancel a", "word 3: the line ends here, expected a cancel kind"},
        {"cancel a PARENT", "word 3: found 'PARENT', expected a cancel kind"},
        {"cancel a USER \"no end", "word 4: found '\"no end', expected a closing quote"},
        {"cancel a USER \"", "word 4: found '\"', expected a closing quote"},
        {"reserve a thing", "word 3: found 'thing', expected permit"},
        {"spawn t in a", "word 5: the line ends here, expected ':' and steps"},
        {"spawn t polls 0 in a: park", "word 4: found '0', expected a number of polls"},
        {"spawn t: frob", "word 4: found 'frob', expected a step such as"},
        {"spawn t: park park", "word 5: found 'park', expected ';', '|' or the end"},
        {"spawn t: ;", "word 4: found ';', expected a step"},
        {"spawn t: park | park | park", "word 7: found '|', expected the end of the line"},
        {"spawn t: advance 1ms", "word 4: found 'advance', expected a step; this is for the host only"},
        {"spawn t: spawn u in a", "word 8: the line ends here, expected 'as' and the name"},
        {"spawn t: return", "word 5: the line ends here, expected a status"},
        {"spawn t: return PENDING", "word 5: found 'PENDING', expected a status that ends a task"},
        {"spawn t: return 5", "word 5: found '5', expected a status"},
        {"spawn t: return -1000", "word 5: found '-1000', expected a status"},
        {"spawn t: return -99999999999", "word 5: found '-99999999999', expected a status"},
        {"spawn t: return -", "word 5: found '-', expected a status"},
        {"spawn t: expect EBB_", "word 5: found 'EBB_', expected a status"},
        {"body b park", "word 3: found 'park', expected ':' and steps"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused(*state, bad[i].line, strlen(bad[i].line), bad[i].message);
    }
}

static void a_name_may_be_63_bytes_and_no_more(void **state) {
    char line[128] = "open ";
    memset(line + 5, 'a', 63);
    ok(*state, line);
    line[5 + 63] = 'a';
    refused(*state, line, 5 + 64, "word 2: found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'");
}

static void bytes_that_are_no_text_are_shown_as_question_marks(void **state) {
    refused(*state, "open \0\033[2J", 10,
            "word 2: found '?"
            "?[2J', expected a name");
    refused(*state, "\xff\xfe", 2,
            "word 1: found '?"
            "?', expected a verb");
}

static void nothing_is_done_by_a_line_that_is_not_understood(void **state) {
    world *w = *state;
    ebb_runtime_stats before, after;
    ebb_runtime_stats_of(w->rt, &before);
    refused(w, "spawn t in root: park; frob", 27, "word 8");
    refused(w, "open a deadline 5", 17, "word 4");
    ebb_runtime_stats_of(w->rt, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb__script_id(w->script, "t"), 0);
}

static void a_body_has_a_limit(void **state) {
    static char line[16384] = "body b: ";
    size_t n = strlen(line);
    for (int i = 0; i < EBB__SCRIPT_BODY; i++, n += 6) memcpy(line + n, "yield;", sizeof "yield;");
    char message[EBB__SCRIPT_MESSAGE];
    assert_int_equal(ebb__script_line(((world *)*state)->script, line, n, message), EBB_OK);
    memcpy(line + n, "yield;", sizeof "yield;");
    refused(*state, line, n + 6, "word 2052: found 'yield', expected no more than 1024 steps");
}

static void a_script_makes_no_more_than_its_limit(void **state) {
    world *w = *state;
    ok(w, "body bomb: spawn t in root as bomb; spawn u in root as bomb; open r; reserve o ack; commit o; "
          "defer; loop");
    ok(w, "spawn t in root as bomb");
    for (int i = 0; i < 3; i++) says(w, "pump", EBB_PENDING);
    says(w, "open r", EBB_ERR_LIMIT);
    says(w, "reserve o ack in root", EBB_ERR_LIMIT);
    says(w, "spawn t in root as bomb", EBB_ERR_LIMIT);
    says(w, "defer root", EBB_ERR_LIMIT);
}

/* ---- memory ----------------------------------------------------------------------------------- */

static const char busy_a[] =
    "spawn a in job keep: reserve o1 ack; defer; defer as child; sleep 5ms; park | commit o1; open s "
    "cleanup; spawn b in s as child; mask; join s";
static const char *const busy[] = {
    "body child: reserve o2 io; yield; commit o2",
    "open job collect",
    busy_a,
    "spawn c in job: open q; spawn d in q as child; join q; cancel-task a USER \"a message\"",
    "pump",
    "witness a w1",
    "advance 5ms",
    "pump",
    "cancel job SHUTDOWN \"another\"",
    "chain job",
    "pump",
};

/* Every allocation of the script fails once; the script says so, and loses nothing. */
static void every_line_survives_every_failed_allocation(void **state) {
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        ebb_failing f = {.inner = ebb_libc_allocator(), .fail_at = nth};
        ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
        ebb_runtime *rt;
        assert_int_equal(ebb_runtime_new(&opts, &rt), EBB_OK);
        ebb__script *s = ebb__script_new(rt, ebb_failing_allocator(&f));
        for (size_t i = 0; s != NULL && i < sizeof busy / sizeof *busy; i++) {
            char message[EBB__SCRIPT_MESSAGE];
            ebb_status st = ebb__script_line(s, busy[i], strlen(busy[i]), message);
            assert_true(st == EBB_OK || st == EBB_ERR_NOMEM);
        }
        uint64_t failures = f.failures;
        ebb__script_free(s);
        ebb_runtime_free(rt);
        assert_int_equal(f.live, 0);
        if (failures == 0) {
            assert_true(nth > 5);
            return;
        }
    }
}

typedef struct kept {
    uint8_t bytes[65536];
    size_t n;
} kept;

static void keep(void *ctx, const void *bytes, size_t n) {
    kept *out = ctx;
    assert_true(n <= sizeof out->bytes - out->n);
    memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

static void two_runs_write_the_same_trace_byte_for_byte(void **state) {
    (void)state;
    static kept traces[2];
    for (int run = 0; run < 2; run++) {
        ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
        ebb_runtime *rt;
        assert_int_equal(ebb_runtime_new(&opts, &rt), EBB_OK);
        assert_int_equal(ebb_trace_start(rt, 1 << 18), EBB_OK);
        ebb__script *s = ebb__script_new(rt, opts.allocator);
        for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
            char message[EBB__SCRIPT_MESSAGE];
            assert_int_equal(ebb__script_line(s, busy[i], strlen(busy[i]), message), EBB_OK);
        }
        ebb_trace_take(rt, true, keep, &traces[run]);
        ebb__script_free(s);
        ebb_runtime_free(rt);
    }
    assert_true(traces[0].n > 1000);
    assert_int_equal(traces[0].n, traces[1].n);
    assert_memory_equal(traces[0].bytes, traces[1].bytes, traces[0].n);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(empty_lines_and_comments_do_nothing),
        IN_A_WORLD(names_stand_for_ids_and_back),
        IN_A_WORLD(a_name_that_is_used_again_stands_for_the_new_one),
        IN_A_WORLD(an_unknown_name_is_an_answer),
        IN_A_WORLD(a_name_of_another_kind_is_an_answer),
        IN_A_WORLD(what_was_refused_stays_refused_under_its_name),
        IN_A_WORLD(what_has_ended_is_an_answer),
        IN_A_WORLD(a_task_does_its_steps_and_ends),
        IN_A_WORLD(a_body_without_an_end_returns_ok),
        IN_A_WORLD(a_status_of_the_users_own_comes_back),
        IN_A_WORLD(cancelled_goes_to_the_steps_after_the_bar),
        IN_A_WORLD(without_a_bar_cancelled_is_the_end),
        IN_A_WORLD(what_is_joined_may_be_cancelled_without_its_joiner),
        IN_A_WORLD(after_the_bar_cancelled_is_only_an_answer),
        IN_A_WORLD(expect_faults_when_it_is_wrong),
        IN_A_WORLD(ignoring_leads_to_being_abandoned),
        IN_A_WORLD(a_loop_without_a_wait_lets_others_run),
        IN_A_WORLD(tasks_open_and_spawn_and_join),
        IN_A_WORLD(the_verbs_work_from_tasks_too),
        IN_A_WORLD(the_abort_hook_runs_for_aborts_and_leaks),
        IN_A_WORLD(finalizers_may_wait_or_be_stuck_or_have_a_body),
        IN_A_WORLD(options_reach_the_kernel),
        IN_A_WORLD(a_cancel_may_bring_its_own_budget),
        IN_A_WORLD(errors_name_the_word_and_what_was_expected),
        IN_A_WORLD(a_name_may_be_63_bytes_and_no_more),
        IN_A_WORLD(bytes_that_are_no_text_are_shown_as_question_marks),
        IN_A_WORLD(nothing_is_done_by_a_line_that_is_not_understood),
        IN_A_WORLD(a_body_has_a_limit),
        IN_A_WORLD(a_script_makes_no_more_than_its_limit),
        cmocka_unit_test(every_line_survives_every_failed_allocation),
        cmocka_unit_test(two_runs_write_the_same_trace_byte_for_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
