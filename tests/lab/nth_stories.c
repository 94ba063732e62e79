/* The fixtures of the contract and the scenarios of the lab again: each with its n-th allocation refused, alone
 * and with all that follow, and each with a verb after its n-th poll, for each n. Whatever goes wrong and whenever:
 * the oracles find nothing, everything ends, and all memory is given back.
 *
 * Polls are counted by standing in for ebb_runtime_pump; the program is linked with --wrap for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/script.h"
#include "tests/support/sweep_world.h"

enum { TRACE_BYTES = 256 * 1024, TURNS_MAX = 100000, FIXTURES_MAX = 64, SEEDS = 40, MAX_STEPS = 5000 };

/* ---- acts ------------------------------------------------------------------------------------------------- */

typedef enum verb { CLOSE, CANCEL_USER, CANCEL_SHUTDOWN, FORCE, VERBS } verb;
static const char *const verb_names[] = {"close", "cancel politely", "cancel", "force"};

static void say(ebb_cx *cx, verb v, ebb_region region) {
    if (v == CLOSE) ebb_region_close(cx, region);
    else if (v == FORCE) ebb_region_force(cx, region);
    else
        ebb_region_cancel(cx, region, v == CANCEL_USER ? EBB_CANCEL_USER : EBB_CANCEL_SHUTDOWN,
                          "the n-th poll");
}

static void say_to_task(ebb_cx *cx, verb v, ebb_task task) {
    if (v == FORCE) ebb_task_force(cx, task);
    else if (v != CLOSE)
        ebb_task_cancel(cx, task, v == CANCEL_USER ? EBB_CANCEL_USER : EBB_CANCEL_SHUTDOWN, "the n-th poll");
}

/* What is done after which poll of the run. */
typedef struct plan {
    uint64_t at; /* 0: nothing */
    verb verb;
    uint32_t
        victim; /* 0: the root of the runtime that was pumped; i: the i-th thing that the script has made */
    const ebb__script *script;
    uint64_t polls; /* so far */
} plan;

static plan now_playing;

static void act(ebb_runtime *rt) {
    const plan *p = &now_playing;
    ebb_cx *host = ebb_runtime_host(rt);
    if (p->victim == 0) {
        say(host, p->verb, ebb_runtime_root(rt));
        return;
    }
    const ebb__thing *t = ebb__script_things(p->script);
    for (uint32_t i = 1; t != NULL && i < p->victim; i++) t = t->next;
    if (t != NULL && t->kind == EBB__REGION) say(host, p->verb, (ebb_region){t->id});
    if (t != NULL && t->kind == EBB__TASK) say_to_task(host, p->verb, (ebb_task){t->id});
}

ebb_status __real_ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls);
ebb_status __wrap_ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls);
ebb_status __wrap_ebb_runtime_pump(ebb_runtime *rt, uint32_t max_polls) {
    static bool inside; /* a task that pumps is refused, and that is no poll */
    if (inside) return __real_ebb_runtime_pump(rt, max_polls);
    ebb_status st = EBB_PENDING;
    for (uint32_t i = 0; i < max_polls && st == EBB_PENDING; i++) {
        inside = true;
        st = __real_ebb_runtime_pump(rt, 1);
        inside = false;
        if (++now_playing.polls != now_playing.at) continue;
        act(rt);
        st = EBB_PENDING;
    }
    return st;
}

/* ---- fixtures --------------------------------------------------------------------------------------------- */

typedef struct fixture {
    char name[128];
    json_t *json;
    const json_t *script;
} fixture;

static fixture fixtures[FIXTURES_MAX];
static size_t fixture_count;

static int by_name(const void *a, const void *b) {
    return strcmp(((const fixture *)a)->name, ((const fixture *)b)->name);
}

static int load_fixtures(void **state) {
    (void)state;
    DIR *dir = opendir("fixtures/cancel");
    if (dir == NULL) return -1;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (strstr(e->d_name, ".json") == NULL || fixture_count == FIXTURES_MAX) continue;
        char path[300];
        fixture *f = &fixtures[fixture_count++];
        snprintf(path, sizeof path, "fixtures/cancel/%s", e->d_name);
        snprintf(f->name, sizeof f->name, "%.100s", e->d_name);
        f->json = json_load_file(path, 0, NULL);
        f->script = json_object_get(f->json, "script");
        if (!json_is_array(f->script)) return -1;
    }
    (void)closedir(dir);
    qsort(fixtures, fixture_count, sizeof *fixtures, by_name);
    return fixture_count < 18 ? -1 : 0;
}

static int free_fixtures(void **state) {
    (void)state;
    for (size_t i = 0; i < fixture_count; i++) json_decref(fixtures[i].json);
    return 0;
}

/* One run of a fixture. */
typedef struct story {
    ebb_failing memory;
    ebb_runtime *rt;
    ebb__script *script;
    uint8_t *trace;
    size_t trace_n, trace_room;
    bool traced;
    uint64_t things;
} story;

static story run;

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    story *s = ctx;
    if (s->trace_n + n > s->trace_room) {
        s->trace_room = (s->trace_n + n) * 2;
        s->trace = realloc(s->trace, s->trace_room);
        if (s->trace == NULL) abort();
    }
    memcpy(s->trace + s->trace_n, bytes, n);
    s->trace_n += n;
}

/* The text of what the oracles have found; NULL: nothing. */
static const char *judge(story *s) {
    static char text[320];
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_trace_take(s->rt, true, keep_trace, s);
    if (ebb_trace_reader_open(&reader, s->trace, s->trace_n) != EBB_OK) return "the trace has no header";
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    if (c == NULL) abort();
    ebb_status read = EBB_OK, st = EBB_OK;
    while (st == EBB_OK && (read = ebb_trace_reader_next(&reader, &ev)) == EBB_OK)
        st = ebb_checker_event(c, &ev);
    if (st == EBB_OK && read == EBB_PENDING) st = ebb_checker_end(c, true);
    const ebb_violation *v = ebb_checker_violation(c);
    if (v != NULL) {
        snprintf(text, sizeof text, "%s at event %" PRIu64 ": %s", ebb_oracle_name(v->oracle),
                 v->event.decision_seq, v->text);
    } else if (st != EBB_OK || read < 0) {
        snprintf(text, sizeof text, "the trace can't be read");
    }
    ebb_checker_free(c);
    return v != NULL || st != EBB_OK || read < 0 ? text : NULL;
}

/* Pumps, and lets time pass, until nothing happens by itself any more. */
static bool settle(ebb_runtime *rt) {
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        if (ebb_runtime_pump(rt, 1000) != EBB_OK) continue;
        uint64_t due = ebb_runtime_next_due(rt);
        if (due == EBB_FOREVER) return true;
        ebb_runtime_advance(rt, due);
    }
    return false;
}

static void count_things(story *s) {
    s->things = 0;
    for (const ebb__thing *t = ebb__script_things(s->script); t != NULL; t = t->next) s->things++;
}

/* NULL, or what went wrong. */
static const char *play(story *s, const fixture *f) {
    ebb_runtime_opts opts = {.allocator = ebb_failing_allocator(&s->memory)};
    if (ebb_runtime_new(&opts, &s->rt) != EBB_OK) return NULL;
    s->traced = ebb_trace_start(s->rt, TRACE_BYTES) == EBB_OK;
    s->script = ebb__script_new(s->rt, opts.allocator);
    if (s->script == NULL) return NULL;
    now_playing.script = s->script;
    char message[EBB__SCRIPT_MESSAGE];
    for (size_t i = 0; i < json_array_size(f->script); i++) {
        const char *line = json_string_value(json_array_get(f->script, i));
        ebb_status st = ebb__script_line(s->script, line, strlen(line), message);
        if (st != EBB_OK && st != EBB_ERR_NOMEM) return "a line is not understood";
    }
    ebb_region_cancel(ebb_runtime_host(s->rt), ebb_runtime_root(s->rt), EBB_CANCEL_SHUTDOWN, "the end");
    if (!settle(s->rt)) return "it never ends";
    count_things(s);
    ebb_region_state state;
    ebb_status st = ebb_region_state_of(ebb_runtime_host(s->rt), ebb_runtime_root(s->rt), &state);
    if (st != EBB_OK || state != EBB_REGION_CLOSED) return "the root is not closed";
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(s->rt, &stats);
    if (stats.tasks + stats.regions + stats.obligations + stats.runnable != 0) return "something is left";
    if (stats.illegal != 0) return "an illegal transition was tried";
    return s->traced ? judge(s) : NULL;
}

static void close_story(story *s) {
    ebb__script_free(s->script);
    ebb_runtime_free(s->rt);
    free(s->trace);
    s->script = NULL;
    s->rt = NULL;
    s->trace = NULL;
}

static void play_fixture(const fixture *f, plan p, uint64_t fail_at, bool fail_after) {
    memset(&run, 0, sizeof run);
    run.memory = (ebb_failing){.inner = ebb_libc_allocator(), .fail_at = fail_at, .fail_after = fail_after};
    now_playing = p;
    const char *wrong = play(&run, f);
    if (wrong != NULL) {
        fail_msg("%s, allocation %u%s refused, %s to %u after poll %u: %s", f->name, (unsigned)fail_at,
                 fail_after ? " and later ones" : "", verb_names[p.verb], (unsigned)p.victim, (unsigned)p.at,
                 wrong);
    }
    close_story(&run);
    if (run.memory.live != 0) {
        fail_msg("%s, allocation %u: %d blocks leaked", f->name, (unsigned)fail_at, (int)run.memory.live);
    }
}

static void a_fixture_survives_the_nth_allocation_failing(void **state) {
    (void)state;
    uint64_t runs = 0;
    for (size_t i = 0; i < fixture_count; i++) {
        play_fixture(&fixtures[i], (plan){0}, 0, false);
        uint64_t calls = run.memory.calls;
        for (uint64_t n = 1; n <= calls; n++, runs += 2) {
            play_fixture(&fixtures[i], (plan){0}, n, false);
            play_fixture(&fixtures[i], (plan){0}, n, true);
        }
    }
    print_message("%" PRIu64 " runs\n", runs);
}

static void a_fixture_ends_in_order_with_a_verb_after_its_nth_poll(void **state) {
    (void)state;
    uint64_t runs = 0;
    for (size_t i = 0; i < fixture_count; i++) {
        play_fixture(&fixtures[i], (plan){0}, 0, false);
        uint64_t polls = now_playing.polls, things = run.things;
        uint32_t stride = things <= 12 ? 1 : 5;
        for (uint64_t n = 1; n <= polls; n++) {
            for (uint32_t v = 0; v <= things; v += v == 0 ? 1 : stride) {
                for (verb how = CLOSE; how < VERBS; how++, runs++)
                    play_fixture(&fixtures[i], (plan){.at = n, .verb = how, .victim = v}, 0, false);
            }
        }
    }
    print_message("%" PRIu64 " runs\n", runs);
}

/* ---- the lab ---------------------------------------------------------------------------------------------- */

static ebb_failing lab_memory;
static ebb_lab *lab;

static ebb_status run_lab(const ebb_lab_scenario *s, uint64_t seed, plan p, uint64_t fail_at, bool fail_after,
                          ebb_lab_result *out) {
    lab_memory = (ebb_failing){.inner = ebb_libc_allocator(), .fail_at = fail_at, .fail_after = fail_after};
    now_playing = p;
    *out = (ebb_lab_result){.status = EBB_ERR_NOMEM};
    lab = ebb_lab_new(ebb_failing_allocator(&lab_memory));
    if (lab == NULL) return EBB_ERR_NOMEM;
    ebb_lab_case c = {.scenario = s, .seed = seed};
    const ebb_lab_opts opts = {.max_steps = MAX_STEPS};
    ebb_status st = ebb_lab_run(lab, &c, &opts, out);
    ebb_lab_free(lab);
    lab = NULL;
    if (lab_memory.live != 0) {
        fail_msg("%s, seed %u, allocation %u: %d blocks leaked", s->name, (unsigned)seed, (unsigned)fail_at,
                 (int)lab_memory.live);
    }
    return st;
}

/* A task that found no memory has not done its part, and the scenario's own account may say so. */
static void starve(const ebb_lab_scenario *s, uint64_t seed, uint64_t n, bool after) {
    ebb_lab_result r;
    ebb_status st = run_lab(s, seed, (plan){0}, n, after, &r);
    if (st == EBB_OK || st == EBB_ERR_NOMEM || st == EBB_FAILED) return;
    fail_msg("%s, seed %u, allocation %u%s refused: %s: %s", s->name, (unsigned)seed, (unsigned)n,
             after ? " and later ones" : "", r.failure, r.text);
}

static void a_scenario_survives_the_nth_allocation_failing(void **state) {
    (void)state;
    uint64_t runs = 0;
    ebb_lab_result r;
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        const ebb_lab_scenario *s = ebb_lab_scenario_at(i);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            assert_int_equal(run_lab(s, seed, (plan){0}, 0, false, &r), EBB_OK);
            uint64_t calls = lab_memory.calls, stride = 1 + calls / 300;
            for (uint64_t n = 1; n <= calls; n += stride, runs += 2) {
                starve(s, seed, n, false);
                starve(s, seed, n, true);
            }
        }
    }
    print_message("%" PRIu64 " runs\n", runs);
}

static void a_scenario_ends_in_order_with_a_verb_after_its_nth_poll(void **state) {
    (void)state;
    uint64_t runs = 0;
    ebb_lab_result r;
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        const ebb_lab_scenario *s = ebb_lab_scenario_at(i);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            assert_int_equal(run_lab(s, seed, (plan){0}, 0, false, &r), EBB_OK);
            uint64_t polls = now_playing.polls, stride = 1 + polls / 200;
            for (uint64_t n = 1; n <= polls; n += stride) {
                for (verb how = CLOSE; how < VERBS; how++, runs++) {
                    if (run_lab(s, seed, (plan){.at = n, .verb = how}, 0, false, &r) == EBB_OK) continue;
                    fail_msg("%s, seed %u, %s the root after poll %u: %s: %s", s->name, (unsigned)seed,
                             verb_names[how], (unsigned)n, r.failure, r.text);
                }
            }
        }
    }
    print_message("%" PRIu64 " runs\n", runs);
}

/* A run that failed has left its world behind. */
static int clear(void **state) {
    (void)state;
    close_story(&run);
    ebb_lab_free(lab);
    lab = NULL;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_fixture_survives_the_nth_allocation_failing, clear),
        cmocka_unit_test_teardown(a_fixture_ends_in_order_with_a_verb_after_its_nth_poll, clear),
        cmocka_unit_test_teardown(a_scenario_survives_the_nth_allocation_failing, clear),
        cmocka_unit_test_teardown(a_scenario_ends_in_order_with_a_verb_after_its_nth_poll, clear),
    };
    return cmocka_run_group_tests(tests, load_fixtures, free_fixtures);
}
