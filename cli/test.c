/* cli/test.c - `ebb test`: programs of typestate machines in the lab, in virtual time, by one schedule or many. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/case.h"
#include "cli/test_program.h"

#include "cli/help.h"

const ebb__help ebb__help_test = {
    .name = "test",
    .what = "test programs of typestate machines in the lab",
    .text = "Runs programs in the lab: time is virtual, and so are clocks, timers and the console. Without "
            "an option "
            "it takes the plain schedule, in which each machine gets its turn in order and time moves on "
            "when all "
            "wait.\n\n"
            "A program fails if a machine faults and no `fault ->` catches it, an assertion, invariant or "
            "spec does "
            "not hold, machines wait for each other for ever (stuck), a spec ends in a hot state, it does "
            "not come "
            "to its end (livelock), or a rule of the trace is broken. Comments in its file say more:\n\n"
            "  //> TEXT   the next line of the output, in the plain schedule. Faults, dead\n"
            "             letters and full mailboxes are lines of it: ! fault MACHINE\n"
            "             MESSAGE: WHY. A fault that is listed is no failure in any schedule\n"
            "  //< TEXT   the next line that is typed",
    .forms = (const ebb__help_form[]){{NULL, "FILE...", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--trace", "FILE", NULL, 0,
             "Records the run of one program; `ebb trace verify --strict --quiescent FILE` checks it."},
            {"--explore", NULL, NULL, 0,
             "Many schedules. The lab chooses whose turn is next, when time moves on, and when a line is "
             "typed. A "
             "failure is cut down and written to a file."},
            {"--schedules", "N", NULL, 0, "With --explore, how many; default 1000."},
            {"--seed", "N", NULL, 0, "With --explore, the first seed; default 1."},
            {"--out", "FILE", NULL, 0, "With --explore, where a failure goes; default NAME.lab."},
            {"--replay", "FILE", NULL, 0, "Runs the failure again that --explore has written."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "success"},
                                     {"1", "a program failed or does not compile"},
                                     {"2", "wrong arguments or files"},
                                     {0}},
};

enum { STORY_MAX = 64 << 10 }; /* bytes of a story that are printed */

typedef struct request {
    const char *out, *trace, *replay;
    uint64_t schedules, seed;
    bool explore, tuned, help; /* tuned: there is an option of --explore */
    char **paths;
    int n_paths;
} request;

/* ---- arguments ---- */

static bool parse_option(request *q, const char *option, const char *value) {
    static const char *const known[] = {"--out", "--trace", "--replay", "--schedules", "--seed"};
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && strcmp(option, known[i]) != 0) i++;
    if (i == n) {
        ebb__cli_error("unknown option '%s'", option);
        return false;
    }
    if (value == NULL) {
        ebb__cli_error("%s needs a value", option);
        return false;
    }
    q->tuned |= strcmp(option, "--trace") != 0 && strcmp(option, "--replay") != 0;
    if (strcmp(option, "--out") == 0) q->out = value;
    else if (strcmp(option, "--trace") == 0) q->trace = value;
    else if (strcmp(option, "--replay") == 0) q->replay = value;
    else if (strcmp(option, "--schedules") == 0)
        return ebb__cli_number(option, value, 1, UINT64_MAX, &q->schedules);
    else return ebb__cli_number(option, value, 0, UINT64_MAX, &q->seed);
    return true;
}

/* The paths move to the front of `argv`. */
static bool parse_all(request *q, int argc, char **argv) {
    q->paths = argv;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) q->help = true;
        else if (strcmp(argv[i], "--explore") == 0) q->explore = true;
        else if (argv[i][0] != '-') q->paths[q->n_paths++] = argv[i];
        else {
            if (!parse_option(q, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) return false;
            i++;
        }
    }
    return true;
}

static bool fits_together(const request *q) {
    const char *wrong = NULL;
    if (q->explore && q->replay != NULL) wrong = "--explore and --replay exclude each other";
    else if (q->explore && q->trace != NULL) wrong = "--trace is of one run; give it with --replay";
    else if (!q->explore && q->tuned) wrong = "--schedules, --seed and --out need --explore";
    else if (q->n_paths == 0) wrong = "test takes a file";
    else if (q->n_paths > 1 && (q->replay != NULL || q->trace != NULL || q->out != NULL))
        wrong = "--replay, --trace and --out take one file";
    if (wrong != NULL) ebb__cli_error("%s", wrong);
    return wrong == NULL;
}

/* ---- the story of a run ---- */

/* The end of a long one. */
static size_t story_from(const ebb__test_program *t) {
    if (t->said.n <= STORY_MAX) return 0;
    const char *cut = t->said.bytes + t->said.n - STORY_MAX, *line = memchr(cut, '\n', STORY_MAX - 1);
    return line == NULL ? t->said.n - STORY_MAX : (size_t)(line - t->said.bytes) + 1;
}

static void print_story(const ebb__test_program *t) {
    size_t from = story_from(t);
    if (from > 0) printf("  ... %zu bytes before\n", from);
    for (size_t at = from; at < t->said.n;) {
        const char *line = t->said.bytes + at, *stop = memchr(line, '\n', t->said.n - at);
        printf("  > %.*s\n", (int)(stop - line), line);
        at += (size_t)(stop - line) + 1;
    }
    if (t->machines.n > 0) fwrite(t->machines.bytes, 1, t->machines.n, stdout);
}

/* ---- exploring ---- */

static uint64_t clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* "philosophers.lab", in the directory that we are in. */
static int keep(ebb_lab *lab, const request *q, const ebb__test_program *t, ebb_lab_case *c) {
    char path[sizeof t->name + sizeof ".lab"];
    size_t n = strlen(t->name);
    if (n > 4 && strcmp(t->name + n - 4, ".ebb") == 0) n -= 4;
    (void)snprintf(path, sizeof path, "%.*s.lab", (int)n, t->name);
    return ebb__case_keep(lab, c, q->out != NULL ? q->out : path, t->compiled.path, false);
}

static int explore(ebb_lab *lab, const request *q, ebb__test_program *t) {
    ebb_lab_case c = {.scenario = &t->scenario, .seed = q->seed};
    ebb_lab_explore_result r;
    uint64_t start = clock_us();
    int code = ebb__case_explore(lab, &c, q->schedules, 0, false, &r);
    uint64_t us = clock_us() - start + 1;
    printf("%s: %" PRIu64 " schedules, %" PRIu64 " a second%s\n", t->name, r.schedules,
           r.schedules * 1000000 / us, code == EBB__EXIT_OK ? ", nothing failed" : "");
    if (code == EBB__EXIT_BAD) code = keep(lab, q, t, &c);
    ebb_lab_case_free(lab, &c);
    return code;
}

/* ---- one schedule ---- */

static int run_plain(ebb_lab *lab, const request *q, ebb__test_program *t) {
    ebb_lab_case c = {.scenario = &t->scenario, .seed = 1, .recorded = true};
    ebb_lab_result r;
    t->compares = true;
    int code = ebb__case_run(lab, &c, &(ebb__case_files){.trace = q->trace}, 0, &r);
    if (code == EBB__EXIT_BAD) print_story(t);
    if (code == EBB__EXIT_OK) printf("%s: ok\n", t->name);
    return code;
}

static int replay(ebb_lab *lab, const request *q, ebb__test_program *t) {
    ebb_lab_case c;
    if (!ebb__case_load(lab, q->replay, &t->scenario, true, &c)) return EBB__EXIT_USAGE;
    int code = ebb__case_replay(lab, q->replay, &c, &(ebb__case_files){.trace = q->trace});
    print_story(t);
    ebb_lab_case_free(lab, &c);
    return code;
}

/* ---- the command ---- */

static int test_file(const request *q, const char *path) {
    ebb__test_program t;
    int code = ebb__test_program_open(&t, path);
    ebb_lab *lab = code == EBB__EXIT_OK ? ebb_lab_new(ebb__cli_allocator()) : NULL;
    if (lab != NULL) code = (q->explore ? explore : q->replay != NULL ? replay : run_plain)(lab, q, &t);
    else if (code == EBB__EXIT_OK) {
        ebb__cli_error("%s", ebb_status_text(EBB_ERR_NOMEM));
        code = EBB__EXIT_USAGE;
    }
    ebb_lab_free(lab);
    ebb__test_program_close(&t);
    return code;
}

/* The worst exit code counts. */
int ebb__cmd_test(int argc, char **argv) {
    request q = {.schedules = 1000, .seed = 1};
    int worst = EBB__EXIT_OK;
    if (!parse_all(&q, argc - 1, argv + 1)) return EBB__EXIT_USAGE;
    if (q.help) return ebb__help_show(&ebb__help_test);
    if (argc == 1) return ebb__help_refuse(&ebb__help_test);
    if (!fits_together(&q)) return EBB__EXIT_USAGE;
    for (int i = 0; i < q.n_paths; i++) {
        int code = test_file(&q, q.paths[i]);
        if (code > worst) worst = code;
    }
    return worst;
}
